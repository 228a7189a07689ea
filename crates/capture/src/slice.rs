//! A part of a recording: by time, kind of object, VM or device.

use counters::{Entity, EntityId, Kind, Recording};

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
        let chosen = |(id, entity): (EntityId, &Entity)| {
            (self.kinds.is_empty() || self.kinds.contains(&entity.kind))
                && (named.is_empty() || is_related(recording, id, &named))
        };
        let keep: Vec<bool> = (0..).map(EntityId).zip(recording.entities()).map(chosen).collect();
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

fn unknown(recording: &Recording, name: &str, kinds: &[Kind]) -> String {
    let known: Vec<&str> = recording
        .entities()
        .iter()
        .filter(|entity| kinds.contains(&entity.kind))
        .map(|entity| entity.name.as_str())
        .collect();
    let what = if kinds.contains(&Kind::Vm) { "VM" } else { "device" };
    format!("no {what} '{name}' in the capture; it has {}", known.join(", "))
}

/// Whether an object is on the way of the I/Os of a named VM or device.
fn is_related(recording: &Recording, id: EntityId, named: &[EntityId]) -> bool {
    let entity = recording.entity(id);
    let is_named = |id: Option<EntityId>| id.is_some_and(|id| named.contains(&id));
    if is_named(Some(id)) || is_named(entity.device) || is_named(entity.vm) {
        return true;
    }
    let all = || recording.entities().iter();
    // A named VM uses a device, and a named device is used by a VM, where a world or disk says so.
    let meets =
        |device: EntityId| all().any(|other| other.device == Some(device) && is_named(other.vm));
    match entity.kind {
        Kind::Device | Kind::NfsVolume => meets(id),
        Kind::Path | Kind::Partition => entity.device.is_some_and(meets),
        Kind::Adapter => all().any(|path| {
            path.adapter == Some(id) && (is_named(path.device) || path.device.is_some_and(meets))
        }),
        Kind::Vm => all().any(|other| other.vm == Some(id) && is_named(other.device)),
        Kind::World | Kind::VirtualDisk => false,
    }
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
