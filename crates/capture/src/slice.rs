//! A part of a recording: by time, kind of object, VM or device.

use counters::{EntityId, Kind, Recording};

/// What to keep of a recording. The default keeps everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The first instant kept, in milliseconds since 1970-01-01 UTC.
    pub from_ms: Option<i64>,
    /// The last instant kept.
    pub to_ms: Option<i64>,
    /// Kinds of objects kept; empty for all.
    pub kinds: Vec<Kind>,
    /// Names of VMs: they are kept with all that their I/Os pass. Together with
    /// [`Slice::devices`], what belongs to any of either is kept; both empty for all.
    pub vms: Vec<String>,
    /// Names of devices and NFS volumes: they are kept with all that passes them.
    pub devices: Vec<String>,
}

impl Slice {
    /// The part of `recording`. Objects that a kept one belongs to stay, without columns.
    ///
    /// # Errors
    /// The name of a VM or device that the recording does not have.
    pub fn apply(&self, recording: &Recording) -> Result<Recording, String> {
        let named = self.named(recording)?;
        let mut keep = match named.as_slice() {
            [] => vec![true; recording.entities().len()],
            named => related(recording, named),
        };
        for (keep, entity) in keep.iter_mut().zip(recording.entities()) {
            *keep &= self.kinds.is_empty() || self.kinds.contains(&entity.kind);
        }
        let within = |&time: &i64| {
            self.from_ms.is_none_or(|from| time >= from) && self.to_ms.is_none_or(|to| time <= to)
        };
        let order: Vec<usize> = recording
            .times_ms
            .iter()
            .enumerate()
            .filter(|(_, time)| within(time))
            .map(|(sample, _)| sample)
            .collect();
        Ok(part(recording, &order, &keep))
    }

    fn named(&self, recording: &Recording) -> Result<Vec<EntityId>, String> {
        let vms = self.vms.iter().map(|name| {
            recording.find(Kind::Vm, name).ok_or_else(|| unknown(recording, name, &[Kind::Vm]))
        });
        let devices = self.devices.iter().map(|name| {
            let kinds = [Kind::Device, Kind::NfsVolume];
            let found = kinds.iter().find_map(|&kind| recording.find(kind, name));
            found.ok_or_else(|| unknown(recording, name, &kinds))
        });
        vms.chain(devices).collect()
    }
}

pub(crate) fn unknown(recording: &Recording, name: &str, kinds: &[Kind]) -> String {
    let known: Vec<&str> = recording
        .entities()
        .iter()
        .filter(|entity| kinds.contains(&entity.kind))
        .map(|entity| entity.name.as_str())
        .collect();
    let what = if kinds.contains(&Kind::Vm) { "VM" } else { "device" };
    format!("no {what} '{name}' in the capture; it has {}", known.join(", "))
}

/// Of every object, whether it is on the way of the I/Os of a named VM or device.
pub(crate) fn related(recording: &Recording, named: &[EntityId]) -> Vec<bool> {
    let mut near = vec![false; recording.entities().len()];
    named.iter().for_each(|id| near[id.0 as usize] = true);
    let is = |set: &[bool], id: Option<EntityId>| id.is_some_and(|id| set[id.0 as usize]);
    // Worlds and virtual disks say which VM uses which device: they bring in the other end.
    let mut ends = near.clone();
    for entity in recording.entities() {
        for (id, other) in [(entity.vm, entity.device), (entity.device, entity.vm)] {
            if let (true, Some(other)) = (is(&near, id), other) {
                ends[other.0 as usize] = true;
            }
        }
    }
    // What is on a device that is in belongs to it, but for the worlds and disks of other VMs.
    let mut all = ends.clone();
    for (place, entity) in recording.entities().iter().enumerate() {
        let shared = matches!(entity.kind, Kind::Path | Kind::Partition);
        let devices = if shared { &ends } else { &near };
        all[place] |= is(devices, entity.device) || is(&near, entity.vm);
        if let (true, Some(adapter)) = (all[place], entity.adapter) {
            all[adapter.0 as usize] = true;
        }
    }
    all
}

/// The samples of a recording in another order.
pub(crate) fn samples(recording: &Recording, order: &[usize]) -> Recording {
    part(recording, order, &vec![true; recording.entities().len()])
}

/// Some samples of the columns of some objects.
fn part(recording: &Recording, order: &[usize], keep: &[bool]) -> Recording {
    let mut present = keep.to_vec();
    for (entity, _) in recording.entities().iter().zip(keep).filter(|(_, keep)| **keep) {
        for id in [entity.device, entity.adapter, entity.vm].into_iter().flatten() {
            present[id.0 as usize] = true;
        }
    }
    let mut next = 0;
    let ids: Vec<Option<EntityId>> = present
        .iter()
        .map(|&present| {
            next += u32::from(present);
            present.then(|| EntityId(next - 1))
        })
        .collect();
    let new_id = |id: Option<EntityId>| id.and_then(|id| ids[id.0 as usize]);
    let mut result = Recording::new(recording.host.clone());
    result.times_ms = order.iter().map(|&sample| recording.times_ms[sample]).collect();
    result.begin_ms = order.first().and_then(|&first| {
        let length_ms = (1_000.0 * recording.interval_s(first)?) as i64;
        recording.times_ms[first].checked_sub(length_ms)
    });
    for (entity, _) in recording.entities().iter().zip(&present).filter(|(_, present)| **present) {
        let mut entity = entity.clone();
        entity.device = new_id(entity.device);
        entity.adapter = new_id(entity.adapter);
        entity.vm = new_id(entity.vm);
        result.add_entity(entity);
    }
    for (id, counter, values) in recording.columns() {
        if let (Some(new), true) = (ids[id.0 as usize], keep[id.0 as usize]) {
            result.set_column(new, counter, order.iter().map(|&sample| values[sample]).collect());
        }
    }
    result
}
