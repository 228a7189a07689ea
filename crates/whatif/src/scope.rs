//! What of a recording a question is about: samples, devices, their arrays and guests.

use counters::sorted::sort;
use counters::{DEFAULT_INTERVAL_S, EntityId, Kind};
use knobs::{ActsOn, DiskName, Disks, Setting};
use levels::{Measured, most_first, usual_interval_s};

use crate::{
    Error, GuestCalibration, Question,
    demand::{Others, Place, spread},
    error::some,
    lacks,
    observe::{Device, RATE_MIN, Tenant},
    question::depth_asked,
    rows::Row,
    shared::are_together,
    vscsi::Counted,
};

/// Devices that one model holds, the busiest first.
const DEVICES_MAX: usize = 16;

/// The devices in question, the busiest first, and then those that share an array with them; and
/// those of both that have no load of their own in the window.
pub(crate) fn devices<'a>(
    recording: &'a Measured,
    question: &Question,
    asked: &[EntityId],
    window: &[usize],
) -> Result<(Vec<Device<'a>>, Vec<Device<'a>>), Error> {
    let name = |id: EntityId| recording.entity(id).name.as_str();
    let is_near = |id: &EntityId| {
        asked.iter().any(|own| are_together(&question.arrays, name(*own), name(*id)))
    };
    let all = recording.of_kind(Kind::Device).map(|(id, _)| id);
    let others: Vec<EntityId> = all.filter(|id| !asked.contains(id)).filter(is_near).collect();
    let rate = |device: &Device<'_>| device.row.mean_rate(window).unwrap_or_default();
    let every: Vec<usize> = (0..recording.len()).collect();
    let busiest_first = |ids: &[EntityId]| {
        let all: Vec<Device<'a>> = ids.iter().map(|&id| Device::of(recording, id)).collect();
        all.iter().try_for_each(|device| lacks::check(device, &every, window))?;
        let is_busy = |device: &Device<'a>| !device.busy(window).is_empty();
        let (mut busy, idle): (Vec<_>, Vec<_>) = all.into_iter().partition(is_busy);
        most_first(&mut busy, rate);
        Ok((busy, idle))
    };
    let has_own = |device: &Device<'a>| !device.is_at_an_edge(window);
    let (mut devices, mut beside) = busiest_first(asked)?;
    if devices.iter().any(has_own) {
        beside.extend(devices.extract_if(.., |device| !has_own(device)));
    }
    if !devices.is_empty() {
        let (near, idle) = busiest_first(&others)?;
        let (near, ended): (Vec<_>, Vec<_>) = near.into_iter().partition(has_own);
        devices.extend(near);
        beside.extend(idle.into_iter().chain(ended));
    }
    devices.truncate(DEVICES_MAX);
    Ok((devices, beside))
}

/// The name of the first device of which DQLEN moves to and fro by itself.
pub(crate) fn flapping<'d>(devices: &'d [Device<'_>]) -> Option<&'d str> {
    let first = devices.iter().find(|device| device.flaps_to().is_some())?;
    Some(&first.name)
}

/// Why there is nothing to simulate, where no device in question has load that has an array to it.
pub(crate) fn nothing(question: &Question, idle: &[Device<'_>], window: &[usize]) -> Error {
    let is_used = |device: &&Device<'_>| device.row.mean_rate(window) >= Some(RATE_MIN);
    Error::new(match (idle.iter().find(is_used), &question.device) {
        (Some(device), _) => format!(
            "DAVG of {} is 0: no time is spent in its array, and there is none to simulate",
            device.name
        ),
        (None, Some(name)) => {
            format!("`{name}` is idle in this window: there is nothing to simulate")
        }
        (None, None) => "no device has load in this window: there is nothing to simulate".into(),
    })
}

/// By how much the latencies of one array's devices differ at most, as a factor, unless it is said or seen
/// that they share it: beyond that they are of different tiers or held to rates.
const ALIKE: f64 = 1.5;

/// Devices that share an array, by their places: of one name, and about as quick, or one slower while the other
/// has load.
pub(crate) fn groups(
    devices: &[Device<'_>],
    window: &[usize],
    said: &[Vec<String>],
) -> Vec<Vec<usize>> {
    let davg = |i: usize| devices[i].row.per_command(window, Row::davg).unwrap_or(f64::INFINITY);
    let is_said = |a: &str, b: &str| {
        said.iter().any(|group| [a, b].iter().all(|name| group.iter().any(|known| known == name)))
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, device) in devices.iter().enumerate() {
        let shares = |group: &&mut Vec<usize>| {
            let first = &devices[group[0]].name;
            let (low, high) = (davg(group[0]).min(davg(index)), davg(group[0]).max(davg(index)));
            let (own, of) = (&devices[group[0]], device);
            are_together(said, first, &device.name)
                && (high <= ALIKE * low
                    || is_said(first, &device.name)
                    || suffers(own, of, window)
                    || suffers(of, own, window))
        };
        match groups.iter_mut().find(shares) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// Whether a device that does no more in the window is slower there than while another rests.
fn suffers(device: &Device<'_>, other: &Device<'_>, window: &[usize]) -> bool {
    /// A rest has so many samples at least.
    const LEAST: usize = 3;
    /// What an unchanged load varies by, as a factor.
    const SAME: f64 = 1.25;
    /// The part of its commands in the window that another has outstanding at most while it rests.
    const RESTS: f64 = 0.25;
    let load = other.row.mean(window, Row::outstanding).unwrap_or_default();
    let rests = |s: &usize| other.row.outstanding(*s).unwrap_or_default() <= RESTS * load;
    let then: Vec<usize> = device.beside(window).into_iter().filter(rests).collect();
    let grown = |now: Option<f64>, then: Option<f64>| Some(now? / then?);
    let of = |samples: &[usize]| {
        [device.row.per_command(samples, Row::davg), device.row.mean_rate(samples)]
    };
    let ([davg, rate], [davg_then, rate_then]) = (of(window), of(&then));
    then.len() >= LEAST
        && grown(davg, davg_then) >= Some(ALIKE)
        && grown(rate, rate_then).is_some_and(|by| by <= SAME)
}

/// Whether an IOPS limit of a VM is asked for.
pub(crate) fn is_limited(settings: &[Setting], vm: &str) -> bool {
    of_vm(settings, vm).any(|set| matches!(set, Setting::Allocation { .. }))
}

/// Whether another depth of a VM's driver is asked for.
pub(crate) fn is_deepened(settings: &[Setting], vm: &str) -> bool {
    of_vm(settings, vm).any(|set| matches!(set, Setting::Pvscsi { .. }))
}

fn of_vm<'s>(settings: &'s [Setting], vm: &str) -> impl Iterator<Item = &'s Setting> {
    settings.iter().filter(move |set| set.vm() == Some(vm))
}

/// Its guests; those of whom nothing was measured in the window are not in it.
pub(crate) fn guests(
    device: &mut Device<'_>,
    window: &[usize],
    levels: &[Vec<usize>],
    (interval_s, settings): (f64, &[Setting]),
    counted: &[Counted<'_>],
) -> Vec<GuestCalibration> {
    let own = device.busy(window);
    let regimes = device.regimes(&own);
    // Whose VMs come or go may have another load then.
    let alike = device.alike(&regimes, &own);
    let beside = device.beside(&own);
    let free: Vec<usize> = beside.iter().copied().filter(|&s| !device.is_full(&[s])).collect();
    let asked = depth_asked(settings, &device.name);
    let seen = || own.iter().chain(&regimes).filter_map(|&s| device.depth(s));
    let is_between = asked.map(f64::from).is_some_and(|asked| {
        seen().any(|depth| depth <= asked) && seen().any(|depth| depth >= asked)
    });
    let of = |tenant: &Tenant<'_>| {
        let waiting = tenant.waiting(&own);
        let place = Place {
            is_full: device.is_full(&waiting),
            has_most_slots: device.has_most_slots(tenant, &waiting),
            has_richer: device.has_richer(tenant, &own),
            others_wait_ms: device.of_others(tenant, &own, Row::qavg),
            is_held: device.is_held(tenant, &own),
            unrest: (device.vms() > 1)
                .then(|| spread(&device.row, &own).map(|spread| spread * interval_s))
                .flatten(),
            interval_s,
            slots: device.mean_depth(&own).filter(|_| !device.is_nfs),
            rests: !device.resting.is_empty(),
            is_between,
            is_limited: is_limited(settings, &tenant.vm),
        };
        let like = tenant.like(&beside, &own);
        let others = Others { free: &free, regimes: &alike, all: &beside, like: &like };
        let guest = GuestCalibration::of(tenant, window, levels, others, place)?;
        Some(match counted.iter().find(|counted| counted.is_of(tenant)) {
            Some(counted) => counted.add_to(guest),
            None => guest,
        })
    };
    let guests: Vec<_> = device.tenants.iter().map(of).collect();
    let mut seen = guests.iter().map(Option::is_some);
    device.tenants.retain(|_| seen.next() == Some(true));
    guests.into_iter().flatten().collect()
}

/// The samples whose interval ends in the window.
pub(crate) fn samples_in(
    recording: &Measured,
    (from, to): (i64, i64),
) -> Result<Vec<usize>, Error> {
    let times = recording.times_ms.iter().enumerate();
    let samples: Vec<usize> =
        times.filter(|(_, at)| from < **at && **at <= to).map(|(sample, _)| sample).collect();
    if samples.is_empty() {
        return Err(Error::new(format!(
            "{}: no sample ends in the window; the recording has {}",
            recording.host,
            recording.len()
        )));
    }
    Ok(samples)
}

/// Seconds of an interval: the median.
pub(crate) fn interval_s(recording: &Measured) -> f64 {
    usual_interval_s(&recording.times_ms).unwrap_or(DEFAULT_INTERVAL_S)
}

/// The devices in question: that which is named, or those of the settings and of the VMs, or all of the kind that the
/// settings act on.
pub(crate) fn chosen(recording: &Measured, question: &Question) -> Result<Vec<EntityId>, Error> {
    let all = || {
        let of = |kind| recording.of_kind(kind).map(|(id, _)| id);
        of(Kind::Device).chain(of(Kind::NfsVolume))
    };
    let named = |name: &str| all().find(|id| recording.entity(*id).name == name);
    if let Some(name) = &question.device {
        return named(name).map(|id| vec![id]).ok_or_else(|| unknown_device(recording, name));
    }
    let mut found = Vec::new();
    for setting in &question.settings {
        if let Some(name) = setting.device() {
            found.push(named(name).ok_or_else(|| unknown_device(recording, name))?);
        }
        if let Some(vm) = setting.vm() {
            found.extend(devices_of(recording, vm)?);
        }
        check_disk(recording, setting)?;
    }
    for vm in &question.vms {
        found.extend(devices_of(recording, vm)?);
    }
    if found.is_empty() {
        let acts = |id: &EntityId| {
            let kind = recording.entity(*id).kind;
            question.settings.iter().any(|set| kind_of(set).is_none_or(|only| only == kind))
        };
        found.extend(all().filter(acts));
    }
    // A change that acts on nothing here is asked of what there is.
    if found.is_empty() {
        found.extend(all());
    }
    found.retain(|id| recording.entities().get(id.0 as usize).is_some());
    sort(&mut found);
    found.dedup();
    Ok(found)
}

/// The only kind of device that a setting acts on; nothing where it acts on any.
const fn kind_of(setting: &Setting) -> Option<Kind> {
    match setting {
        Setting::ModuleDepth { .. } => Some(Kind::Device),
        Setting::Advanced { option, .. } => match option.info().acts_on {
            ActsOn::Devices => Some(Kind::Device),
            ActsOn::NfsVolumes => Some(Kind::NfsVolume),
            ActsOn::Both => None,
        },
        _ => None,
    }
}

fn devices_of(recording: &Measured, vm: &str) -> Result<Vec<EntityId>, Error> {
    let vm_id = recording.find(Kind::Vm, vm).ok_or_else(|| {
        let names = recording.of_kind(Kind::Vm).map(|(_, vm)| vm.name.as_str());
        Error::new(format!("no VM `{vm}` in this recording; there are: {}", some(names)))
    })?;
    let parts = recording.of_kind(Kind::World).chain(recording.of_kind(Kind::VirtualDisk));
    Ok(parts
        .filter(|(_, part)| part.vm == Some(vm_id))
        .filter_map(|(_, part)| part.device)
        .collect())
}

/// Refuses a virtual disk that the recording does not have, where it has others of that VM.
fn check_disk(recording: &Measured, setting: &Setting) -> Result<(), Error> {
    let Setting::Allocation { vdisk: Disks::Of(DiskName { vm, disk: Some(place) }), .. } = setting
    else {
        return Ok(());
    };
    let vm_id = recording.find(Kind::Vm, vm);
    let own = || recording.of_kind(Kind::VirtualDisk).filter(|(_, disk)| disk.vm == vm_id);
    let name = format!("{vm}:{place}");
    if own().next().is_none() || own().any(|(_, disk)| disk.name == name) {
        return Ok(());
    }
    let names = own().map(|(_, disk)| disk.name.as_str());
    Err(Error::new(format!(
        "no virtual disk `{name}` in this recording; there are: {}",
        some(names)
    )))
}

/// Whether the limit of a VM's disk may count for nothing: before ESXi 6.0 all disks of a VM on a device have one,
/// and none where one of them has none [PFS].
pub(crate) fn may_share_limits(recording: &Measured, question: &Question, vm: &str) -> bool {
    let is_set = |name: &str| {
        question.settings.iter().any(|set| match set {
            Setting::Allocation { vdisk: Disks::Of(DiskName { disk, .. }), .. } => {
                disk.is_none_or(|place| name.ends_with(&format!(":{place}")))
            }
            _ => false,
        })
    };
    let vm = recording.find(Kind::Vm, vm);
    let disks = recording.of_kind(Kind::VirtualDisk).map(|(_, disk)| disk);
    let own: Vec<_> = disks.filter(|disk| disk.vm == vm && disk.device.is_some()).collect();
    let mut free = own.iter().filter(|disk| !is_set(&disk.name));
    free.any(|free| own.iter().any(|disk| is_set(&disk.name) && disk.device == free.device))
}

fn unknown_device(recording: &Measured, name: &str) -> Error {
    let names = recording.of_kind(Kind::Device).map(|(_, device)| device.name.as_str());
    Error::new(format!("no device `{name}` in this recording; there are: {}", some(names)))
}
