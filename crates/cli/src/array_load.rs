//! How busy the arrays of a scenario and their links are in each sample of a window, and who has commands there: a part of
//! what `known.rs` tells the diagnosis.

use counters::sorted::{Ordered, sort_by};
use std::{collections::BTreeMap, sync::Arc};

use counters::{Counter, Entity, EntityId, Kind, MILLISECOND, Time, VdiskId};
use diagnose::{ArrayFacts, ArrayUser, Party};
use levels::{Flow, Measured, Vdisk, mean};
use model::{ArrayConfig, ByCommand, Controllers, Disks, PolicyWait, Queues, Service};
use scenario::{Array, Host, Scenario, Window};
use sim::{EPOCH_MS, WindowView};

use crate::{
    asks::asks,
    host_links::{add_bytes, moving_ms},
};

/// What all hosts ask of an array, a second, in one sample.
#[derive(Clone, Default)]
struct Load {
    /// Commands that servers or spindles work on, and those that a fast tier does.
    served: f64,
    of_tier: f64,
    /// Those of `served` that nobody asked for.
    own: f64,
    /// Bytes read and written.
    bytes: [f64; 2],
    /// The same of each port.
    ports: Vec<[f64; 2]>,
    /// Commands that came to each controller.
    controllers: [f64; 2],
}

/// How busy each array of a scenario is in each sample, and who has commands there.
pub(crate) fn arrays(
    scenario: &Scenario,
    window: &Window,
    views: &[WindowView],
    samples: &[Measured],
) -> Vec<Arc<ArrayFacts>> {
    let rows = samples.first().map_or(0, |own| own.len());
    let idle = |array: &Array| Load {
        ports: vec![[0.0; 2]; array.config.queues.ports as usize],
        ..Load::default()
    };
    let mut loads: Vec<_> = scenario.arrays.iter().map(|array| vec![idle(array); rows]).collect();
    for (index, (host, recording)) in scenario.hosts.iter().zip(samples).enumerate() {
        add_load(&mut loads, scenario, host, recording);
        add_load_of_ports(&mut loads, scenario, index, recording);
    }
    samples.iter().take(1).for_each(|recording| add_background(&mut loads, scenario, recording));
    let arrays = scenario.arrays.iter().zip(loads);
    let mut arrays: Vec<ArrayFacts> = arrays
        .map(|(array, loads)| ArrayFacts {
            name: array.name.clone(),
            service_ms: service_ms(&array.config, 1.0),
            wire_ms: 0.0,
            round_trip_ms: array.config.round_trip_ns as f64 / MILLISECOND as f64,
            moving_ms: 0.0,
            busy: loads.iter().filter_map(|load| busy(&array.config, load)).collect(),
            link_busy: loads.iter().filter_map(|load| link_busy(&array.config, load)).collect(),
            ports_busy: loads.iter().filter_map(|load| ports_busy(&array.config, load)).collect(),
            own_work: loads.iter().filter_map(|load| own_work(&array.config, load)).collect(),
            controllers: loads.iter().filter_map(|load| controllers(&array.config, load)).collect(),
            users: Vec::new(),
        })
        .collect();
    let crowded: Vec<Vec<usize>> = arrays.iter().map(|array| array.crowded().collect()).collect();
    for (index, (host, view)) in scenario.hosts.iter().zip(views).enumerate() {
        let (recording, asks) = (&samples[index], asks(scenario, index, window));
        for (array, user) in users(host, view, recording, (&crowded, &asks)) {
            arrays[array].users.push(user);
        }
    }
    arrays.into_iter().map(Arc::new).collect()
}

fn add_load(loads: &mut [Vec<Load>], scenario: &Scenario, host: &Host, recording: &Measured) {
    let disks: BTreeMap<&str, _> =
        recording.of_kind(Kind::VirtualDisk).map(|(id, disk)| (disk.name.as_str(), id)).into_map();
    let pieces: Vec<f64> = (0..recording.len()).map(|sample| pieces(recording, sample)).collect();
    for (disk, target) in (0..).map(VdiskId).zip(&host.targets) {
        let Some(&id) = disks.get(host.config.disk_name(disk).as_str()) else { continue };
        let writes = penalty(&scenario.arrays[target.array].config);
        let front = &scenario.arrays[target.array].config.front;
        let (missed, of_tier) = (front.missed(), front.of_tier());
        let loads = loads[target.array].iter_mut().zip(&pieces).enumerate();
        for (sample, (load, pieces)) in loads {
            let value = |counter| recording.value(id, counter, sample).unwrap_or(0.0);
            let (reads, written) =
                (pieces * missed * value(Counter::Reads), pieces * value(Counter::Writes));
            load.of_tier += of_tier * (reads + written);
            load.served += (1.0 - of_tier) * (reads + writes * written);
            add_bytes(&mut load.bytes, value);
        }
    }
}

/// What each write costs the servers or spindles of an array, in reads.
fn penalty(array: &ArrayConfig) -> f64 {
    match array.service {
        Service::Servers { mean_ns, by: ByCommand { write_ns: Some(write_ns), .. }, .. } => {
            write_ns as f64 / mean_ns as f64
        }
        Service::Curve(ref points, _, ByCommand { write_ns: Some(write_ns), .. }) => {
            points.first().map_or(1.0, |&(_, first_ns)| write_ns as f64 / first_ns as f64)
        }
        Service::Spindles { write_penalty, .. } | Service::Disks(Disks { write_penalty, .. }) => {
            f64::from(write_penalty)
        }
        _ => 1.0,
    }
}

/// What arrays do by themselves.
fn add_background(loads: &mut [Vec<Load>], scenario: &Scenario, recording: &Measured) {
    for (loads, Array { config, .. }) in loads.iter_mut().zip(&scenario.arrays) {
        let Some(background) = config.front.background else { continue };
        let of_each = background.read_share + (1.0 - background.read_share) * penalty(config);
        let ends =
            recording.times_ms.iter().map(|ms| Time((ms - EPOCH_MS).max(0) as u64 * MILLISECOND));
        for (load, end) in loads.iter_mut().zip(ends) {
            let begin = Time(end.0.saturating_sub(scenario.sample_ns));
            let own = of_each * background.rate_between(begin, end);
            load.served += own;
            load.own += own;
        }
    }
}

fn add_load_of_ports(
    loads: &mut [Vec<Load>],
    scenario: &Scenario,
    index: usize,
    recording: &Measured,
) {
    let host = &scenario.hosts[index];
    let rows: BTreeMap<&str, _> =
        recording.of_kind(Kind::Path).map(|(id, path)| (path.name.as_str(), id)).into_map();
    let disks = host.config.vdisks.iter().zip(&host.targets);
    let targets: BTreeMap<_, _> =
        disks.map(|(disk, target)| (disk.device.index(), *target)).into_map();
    for (place, path) in host.config.paths.iter().enumerate() {
        let (Some(&id), Some(target)) = (rows.get(&*path.name), targets.get(&path.device.index()))
        else {
            continue;
        };
        let owner = owner(&scenario.arrays[target.array].config, target.volume);
        for (sample, load) in loads[target.array].iter_mut().enumerate() {
            let port = Queues::port_of(index, place, load.ports.len());
            let value = |counter| recording.value(id, counter, sample).unwrap_or(0.0);
            add_bytes(&mut load.ports[port], value);
            let controller = owner.unwrap_or(Controllers::of_port(port));
            load.controllers[controller] += value(Counter::Commands);
        }
    }
}

/// The controller that does what is asked of a volume, whichever it comes to; `None` where it goes by that.
fn owner(array: &ArrayConfig, volume: u32) -> Option<usize> {
    array.queues.controllers.filter(Controllers::keep_volumes)?;
    array.volumes.get(volume as usize).map(|volume| usize::from(volume.owner))
}

/// The VMs on the devices of a host, device by device, with the array of each; `crowded` has the
/// samples of each array that count, and `asks` what comes to each disk at a rate of its own.
fn users(
    host: &Host,
    view: &WindowView,
    recording: &Measured,
    (crowded, asks): (&[Vec<usize>], &[Option<f64>]),
) -> Vec<(usize, ArrayUser)> {
    let disks = host.config.vdisks.iter().zip(&host.targets);
    let arrays: BTreeMap<&str, usize> = disks
        .map(|(disk, target)| (&*host.config.devices[disk.device.index()].name, target.array))
        .into_map();
    let user = |device: &str, of: &dyn Fn(&[usize]) -> Option<Use>| {
        let array = *arrays.get(device)?;
        let (vm, size_kib) = of(&crowded[array])?;
        let config = &host.config;
        let disks = config.vdisks.iter().zip((0..).map(VdiskId)).filter(|(disk, _)| {
            config.vms[disk.vm.index()].name == vm.name
                && *config.devices[disk.device.index()].name == *device
        });
        let asks_iops = disks.clone().map(|(_, id)| asks[id.index()]).sum();
        let user = ArrayUser {
            host: config.name.clone(),
            device: device.to_owned(),
            size_kib,
            policy_wait_ms: disks
                .filter_map(|(_, id)| policy_wait_ms(view, id))
                .fold(0.0, f64::max),
            asks_iops,
            vm,
        };
        (user.vm.iops > 0.0).then_some((array, user))
    };
    let of_world = |(id, world): (EntityId, &Entity)| {
        let (flow, owner) = (Flow::of(recording, id), levels::owner(recording, world));
        user(&recording.entity(world.device?).name, &|samples| {
            Some((Party::of(owner, &flow, samples)?, flow.size_kib(samples)))
        })
    };
    // A volume of NFS has no worlds: its virtual disks tell who is on it.
    let of_disk = |(id, disk): (EntityId, &Entity)| {
        let volume = recording.entity(disk.device?);
        let disk = Vdisk::of(recording, id);
        let of_disk = |samples: &[usize]| {
            let size_kib = mean(samples.iter().map(|&sample| disk.size_kib(sample)));
            Some((Party::of_disk(disk.vm, &disk, samples)?, size_kib))
        };
        (volume.kind == Kind::NfsVolume).then(|| user(&volume.name, &of_disk))?
    };
    let mut users: Vec<_> = recording.of_kind(Kind::World).filter_map(of_world).collect();
    users.extend(recording.of_kind(Kind::VirtualDisk).filter_map(of_disk));
    sort_by(&mut users, |a, b| a.1.device.cmp(&b.1.device));
    users
}

/// What a VM does, and the mean size of its commands in KiB.
type Use = (Party, Option<f64>);

/// Commands that a host sends for each that it counts: large ones are split on the way.
fn pieces(recording: &Measured, sample: usize) -> f64 {
    let sum = |counter| -> f64 {
        let adapters = recording.of_kind(Kind::Adapter);
        adapters.filter_map(|(id, _)| recording.value(id, counter, sample)).sum()
    };
    let more = sum(Counter::SplitCopies) - sum(Counter::SplitCommands);
    let commands = sum(Counter::Commands);
    if commands > 0.0 { 1.0 + more / commands } else { 1.0 }
}

/// What a command of that size is on the links of an array that nobody else uses: on that of all ports, and then on
/// that of its own.
pub(crate) fn wire_ms(array: &ArrayConfig, size_kib: f64) -> f64 {
    let links = [array.link_bytes_per_sec, array.queues.port_bytes_per_sec];
    links.into_iter().flatten().map(|rate| moving_ms(size_kib, rate)).sum()
}

/// What a server has a command of that size beyond one that has nothing to move.
pub(crate) fn served_bytes_ms(array: &ArrayConfig, size_kib: f64) -> f64 {
    let (Service::Servers { by, .. } | Service::Curve(_, _, by)) = &array.service else {
        return 0.0;
    };
    by.mean_ns(0, false, (1024.0 * size_kib) as u32) as f64 / MILLISECOND as f64
}

/// What a command takes that waits for nobody and has nothing to move, one round trip included: so many of them are
/// reads, 0 to 1, and a cache that has room acknowledges the others.
pub(crate) fn service_ms(array: &ArrayConfig, reads: f64) -> Option<f64> {
    let (mean_ns, cache) = match &array.service {
        Service::Servers { mean_ns, write_cache, .. }
        | Service::Spindles { mean_ns, write_cache, .. } => (*mean_ns, *write_cache),
        Service::Disks(disks) => (disks.alone_ns(), disks.write_cache),
        Service::Curve(points, ..) => (points.first()?.1, None),
    };
    let write_ns = cache.map_or(mean_ns, |cache| cache.ack_ns);
    let mean_ns = reads * mean_ns as f64 + (1.0 - reads) * write_ns as f64;
    let of_tier = array.front.of_tier();
    let tier_ns = array.front.tier.map_or(0.0, |tier| of_tier * tier.mean_ns as f64);
    let alone_ns = tier_ns + (1.0 - of_tier) * mean_ns;
    let all_ns = alone_ns + (array.front.overhead_ns + array.round_trip_ns) as f64;
    Some(all_ns / MILLISECOND as f64)
}

/// The mean share of servers or spindles at work; of a measured curve, of what it does at its end; of the controller
/// that has more to do, where that is more. What disks do goes by where it is.
fn busy(array: &ArrayConfig, load: &Load) -> Option<f64> {
    let (count, mean_ns) = match &array.service {
        Service::Servers { servers, mean_ns, by, .. } => {
            let of_bytes = (load.bytes[0] + load.bytes[1]) / 1024.0 * by.kib_ns as f64;
            let of_each = (1.0 - array.front.of_tier()) * of_bytes / load.served.max(1.0);
            (*servers, mean_ns.saturating_add(of_each as u64))
        }
        Service::Spindles { spindles, mean_ns, .. } => (*spindles, *mean_ns),
        Service::Disks(_) => return None,
        Service::Curve(points, _, by) => {
            let (&(_, first_ns), &(count, mean_ns)) = (points.first()?, points.last()?);
            let bytes = (load.bytes[0] + load.bytes[1]) / load.served.max(1.0);
            let alone_ns = by.mean_ns(first_ns, false, bytes as u32);
            (count, (mean_ns as f64 * alone_ns as f64 / first_ns as f64) as u64)
        }
    };
    let most = load.controllers[0].max(load.controllers[1]);
    let iops = array.queues.controllers.and_then(|controllers| controllers.iops);
    let controller = iops.map_or(0.0, |iops| most / f64::from(iops));
    let share =
        |rate: f64, mean_ns: u64, count: u32| rate * mean_ns as f64 / 1e9 / f64::from(count);
    let tier = array.front.tier;
    let tier = tier.map_or(0.0, |tier| share(load.of_tier, tier.mean_ns, tier.servers));
    Some(share(load.served, mean_ns, count).max(tier).max(controller).min(1.0))
}

/// The mean share of servers or spindles that work for nobody who asks; `None` where none do.
fn own_work(array: &ArrayConfig, load: &Load) -> Option<f64> {
    array.front.background?;
    let (count, mean_ns) = match &array.service {
        Service::Servers { servers, mean_ns, .. } => (*servers, *mean_ns),
        Service::Spindles { spindles, mean_ns, .. } => (*spindles, *mean_ns),
        _ => return None,
    };
    Some((load.own * mean_ns as f64 / 1e9 / f64::from(count)).min(1.0))
}

/// The share of each controller that is at work; `None` where they have no limit.
fn controllers(array: &ArrayConfig, load: &Load) -> Option<[f64; 2]> {
    let iops = array.queues.controllers?.iops?;
    Some(load.controllers.map(|rate| (rate / f64::from(iops)).min(1.0)))
}

/// The share of the links of all ports together that is in use; `None` where they have no limit.
fn ports_busy(array: &ArrayConfig, load: &Load) -> Option<f64> {
    let rate = array.queues.port_bytes_per_sec? as f64;
    mean(load.ports.iter().map(|bytes| (bytes[0].max(bytes[1]) / rate).min(1.0)))
}

/// The share of its fullest link that is in use; `None` where it has none with a limit.
fn link_busy(array: &ArrayConfig, load: &Load) -> Option<f64> {
    let share = |bytes: &[f64; 2], rate: u64| (bytes[0].max(bytes[1]) / rate as f64).min(1.0);
    let shared = array.link_bytes_per_sec.map(|rate| share(&load.bytes, rate));
    let of_port = array.queues.port_bytes_per_sec;
    let ports =
        of_port.into_iter().flat_map(|rate| load.ports.iter().map(move |all| share(all, rate)));
    shared.into_iter().chain(ports).reduce(f64::max)
}

/// What a command of a virtual disk waits in the mean for its volume's policy, in milliseconds.
pub(crate) fn policy_wait_ms(view: &WindowView, id: VdiskId) -> Option<f64> {
    let waits = &view.waits.policies;
    let at = waits.binary_search_by_key(&id, |(disk, _)| *disk).ok()?;
    let PolicyWait { commands, wait_ns } = waits[at].1;
    Some(wait_ns as f64 / commands.max(1) as f64 / MILLISECOND as f64)
}

/// Volumes that get less than their own policies allow because those of all volumes of the array together have no more,
/// by array and volume; and how many cost units a second that is.
pub(crate) fn short_of_units(
    scenario: &Scenario,
    samples: &[Measured],
) -> BTreeMap<(usize, u32), u32> {
    const FULL: f64 = 0.95;
    let mut used: BTreeMap<(usize, u32), f64> = BTreeMap::new();
    for (host, recording) in scenario.hosts.iter().zip(samples) {
        let rows = recording.of_kind(Kind::VirtualDisk).map(|(id, disk)| (&*disk.name, id));
        let rows: BTreeMap<&str, _> = rows.into_map();
        for (disk, target) in (0..).map(VdiskId).zip(&host.targets) {
            let name = host.config.disk_name(disk);
            let volume = scenario.arrays[target.array].config.volumes.get(target.volume as usize);
            let qos = volume.and_then(|volume| volume.qos.as_ref());
            let (Some(&id), Some(qos)) = (rows.get(&*name), qos) else { continue };
            let disk = Vdisk::of(recording, id);
            let units = |sample| {
                let bytes = disk.size_kib(sample).unwrap_or_default() * 1024.0;
                Some(disk.rate(sample)? * qos.cost.of(bytes as u32) as f64 / 100.0)
            };
            let units = mean((0..recording.len()).map(units)).unwrap_or_default();
            *used.entry((target.array, target.volume)).or_default() += units;
        }
    }
    let mut short = BTreeMap::new();
    for (index, Array { config, .. }) in scenario.arrays.iter().enumerate() {
        let Some(capacity) = config.capacity else { continue };
        let own = || used.range((index, 0)..(index + 1, 0));
        let all: f64 = own().map(|(_, units)| units).sum();
        let is_short = |(at, units): &(&(usize, u32), &f64)| {
            let qos = config.volumes[at.1 as usize].qos.as_ref();
            qos.is_some_and(|qos| **units < FULL * f64::from(qos.max))
        };
        if all >= FULL * f64::from(capacity.units) {
            short.extend(own().filter(is_short).map(|(at, _)| (*at, capacity.units)));
        }
    }
    short
}
