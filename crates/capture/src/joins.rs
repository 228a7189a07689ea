//! What no column says: which device holds a virtual disk, and which a path leads to where the order
//! of the columns does not tell.
//!
//! A VM with a world on one device leaves no choice. Otherwise the I/Os of a virtual disk must be
//! among those of the VM's world on the device, sample by sample [CAP-A]; what no world has is on
//! an NFS volume, where VMs have no worlds. So is a path, whose name does not tell its device: the
//! commands of a device are those of its paths together.

use counters::sorted::{Ordered, sort, sort_by};
use std::collections::{BTreeMap, BTreeSet};

use counters::{Counter, EntityId, Kind, Recording};

use crate::{
    check::check,
    report::{Because, DiskLink, HostReport},
};

/// Confidence from which a link is entered into the recording.
const SURE_ENOUGH: f64 = 0.5;

/// What of a virtual disk is compared with a world, and the weight of a unit: a mebibyte weighs as
/// much as 16 commands of 64 KiB.
const COMPARED: [(Counter, f64); 4] = [
    (Counter::Reads, 1.0),
    (Counter::Writes, 1.0),
    (Counter::MbRead, 16.0),
    (Counter::MbWritten, 16.0),
];

/// Windows of time that series are averaged over before they are compared.
const WINDOWS: usize = 64;

/// What sampling and rounding may do to the energy of a series.
const NOISE: f64 = 0.01;

/// What I/Os of a world that are no virtual disk's weigh against the same number missing.
const LEFT_OVER: f64 = 0.01;

/// Times that every virtual disk of a VM is tried on every device.
const SWEEPS: usize = 8;

/// Paths times devices up to which paths are tried on every device.
const MOST_TRIED: usize = 4_096;

/// Links the paths and virtual disks of a host to devices and checks its numbers.
pub(crate) fn describe(recording: &mut Recording) -> HostReport {
    if carry_more_than_their_devices(recording) {
        untie_paths(recording);
    }
    let untied_paths = tie_paths(recording);
    let disk_links = disk_links(recording);
    for link in disk_links.iter().filter(|link| link.confidence >= SURE_ENOUGH) {
        recording.entity_mut(link.disk).device = Some(link.device);
    }
    let unresolved = |entity: &counters::Entity| entity.vm.is_none() && entity.process.is_none();
    let mut kinds: Vec<Kind> = recording.columns().map(|c| recording.entity(c.0).kind).collect();
    sort(&mut kinds);
    kinds.dedup();
    HostReport {
        host: recording.host.clone(),
        disk_links,
        repeated_samples: 0,
        untied_paths,
        namesakes: namesakes(recording),
        unresolved_worlds: recording.of_kind(Kind::World).filter(|w| unresolved(w.1)).count(),
        checks: check(recording),
        kinds,
    }
}

/// The VMs of each name that several have.
fn namesakes(recording: &Recording) -> BTreeMap<String, Vec<String>> {
    let mut namesakes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, vm) in recording.of_kind(Kind::Vm) {
        if let Some(called) = &vm.called {
            namesakes.entry(called.clone()).or_default().push(vm.name.clone());
        }
    }
    namesakes
}

/// Takes back what the order of the columns says of the devices that paths lead to.
pub(crate) fn untie_paths(recording: &mut Recording) {
    let paths: Vec<EntityId> = recording.of_kind(Kind::Path).map(|(id, _)| id).collect();
    paths.into_iter().for_each(|path| recording.entity_mut(path).device = None);
}

/// Whether a path has commands that its device has not, in most samples: then it is not that
/// device's. Those that are split or sent again may be some more.
fn carry_more_than_their_devices(recording: &Recording) -> bool {
    const SOME_MORE: f64 = 2.0;
    let mut paths = recording.of_kind(Kind::Path);
    paths.any(|(path, entity)| {
        let device = entity.device.and_then(|id| recording.series(id, Counter::Commands));
        let series = recording.series(path, Counter::Commands).zip(device);
        let pairs = series.into_iter().flat_map(|(path, device)| path.iter().zip(device));
        let more = pairs.filter(|(path, device)| **path > SOME_MORE * (**device + 1.0));
        2 * more.count() > recording.len()
    })
}

/// Gives paths with commands that have no device the one of which they are, as far as the series
/// tell. Returns how many are left.
fn tie_paths(recording: &mut Recording) -> usize {
    let (mut untied, mut tied) = (Vec::new(), Vec::new());
    for (path, entity) in recording.of_kind(Kind::Path) {
        let series = series(recording, path);
        match entity.device {
            Some(device) => tied.push((device, series)),
            None if energy(&series) > 0.0 => untied.push((path, series)),
            None => {}
        }
    }
    let devices = recording.of_kind(Kind::Device).map(|(device, _)| device);
    let mut targets: Vec<Target> =
        devices.map(|device| Target { device, series: series(recording, device) }).collect();
    if untied.len().saturating_mul(targets.len()) > MOST_TRIED {
        return untied.len();
    }
    for (device, series) in tied {
        if let Some(target) = targets.iter_mut().find(|target| target.device == device) {
            add(&mut target.series, &series, -1.0);
        }
    }
    let (paths, all): (Vec<_>, Vec<_>) = untied.into_iter().unzip();
    let settled = settle(&all, &targets, None);
    let mut left = 0;
    for (place, path) in paths.into_iter().enumerate() {
        let sure = settled.places[place]
            .filter(|&target| confidence(&all, &targets, &settled, (place, target)) >= SURE_ENOUGH);
        match sure {
            Some(target) => recording.entity_mut(path).device = Some(targets[target].device),
            None => left += 1,
        }
    }
    left
}

/// The device of each virtual disk, as far as names and series tell.
fn disk_links(recording: &Recording) -> Vec<DiskLink> {
    let volumes: Vec<_> = recording
        .of_kind(Kind::NfsVolume)
        .map(|(device, _)| Target { device, series: series(recording, device) })
        .collect();
    let mut vms: BTreeMap<EntityId, Vec<EntityId>> = BTreeMap::new();
    for (id, entity) in recording.of_kind(Kind::World).chain(recording.of_kind(Kind::VirtualDisk)) {
        if let Some(vm) = entity.vm {
            vms.entry(vm).or_default().push(id);
        }
    }
    let mut links: Vec<DiskLink> =
        vms.values().flat_map(|parts| links_of_vm(recording, parts, !volumes.is_empty())).collect();
    if volumes.is_empty() {
        return links;
    }
    let of_vms = recording.of_kind(Kind::VirtualDisk).filter(|(_, disk)| disk.vm.is_some());
    let linked: BTreeSet<EntityId> = links.iter().map(|link| link.disk).into_set();
    let left = of_vms.map(|(id, _)| id).filter(|id| !linked.contains(id));
    let left: Vec<EntityId> = left.collect();
    links.extend(links_to_volumes(recording, &left, &volumes));
    links
}

/// Where I/Os may have gone: a device or NFS volume, and the I/Os counted there.
struct Target {
    device: EntityId,
    series: Vec<f64>,
}

/// The links of one VM to the devices of its worlds, of which and of virtual disks `parts` are.
fn links_of_vm(recording: &Recording, parts: &[EntityId], has_volumes: bool) -> Vec<DiskLink> {
    let of_kind = |kind| {
        let parts = parts.iter().map(|&id| (id, recording.entity(id)));
        parts.filter(move |(_, entity)| entity.kind == kind)
    };
    let mut targets: Vec<Target> = Vec::new();
    for (world, entity) in of_kind(Kind::World) {
        let Some(device) = entity.device else { continue };
        let series = series(recording, world);
        match targets.iter_mut().find(|known| known.device == device) {
            Some(known) => add(&mut known.series, &series, 1.0),
            None => targets.push(Target { device, series }),
        }
    }
    let (ids, disks): (Vec<_>, Vec<_>) =
        of_kind(Kind::VirtualDisk).map(|(id, _)| (id, series(recording, id))).unzip();
    if let ([only], false) = (targets.as_slice(), has_volumes) {
        let because = Because::OnlyDevice;
        let link = |disk| DiskLink { disk, device: only.device, confidence: 1.0, because };
        return ids.into_iter().map(link).collect();
    }
    let settled = settle(&disks, &targets, None);
    let link = |(place, disk): (usize, EntityId)| {
        let target = settled.places[place]?;
        let confidence = confidence(&disks, &targets, &settled, (place, target));
        let (device, because) = (targets[target].device, Because::Series);
        Some(DiskLink { disk, device, confidence, because })
    };
    ids.into_iter().enumerate().filter_map(link).collect()
}

/// The I/Os of an object, averaged over at most [`WINDOWS`] windows of time.
fn series(recording: &Recording, entity: EntityId) -> Vec<f64> {
    let window = recording.len().div_ceil(WINDOWS).max(1);
    let windows = recording.len().div_ceil(window);
    let mut all = Vec::with_capacity(COMPARED.len() * windows);
    for (counter, weight) in COMPARED {
        let Some(values) = recording.series(entity, counter) else {
            all.resize(all.len() + windows, 0.0);
            continue;
        };
        all.extend(values.chunks(window).map(|chunk| {
            let sum: f64 = chunk.iter().filter(|value| !value.is_nan()).sum();
            weight * sum / chunk.len() as f64
        }));
    }
    all
}

fn add(sum: &mut [f64], values: &[f64], factor: f64) {
    for (sum, value) in sum.iter_mut().zip(values) {
        *sum += factor * value;
    }
}

fn energy(series: &[f64]) -> f64 {
    series.iter().map(|value| value * value).sum()
}

/// The share of a disk's I/Os that a target explains: 1 when all of them are in it, below 0 when
/// taking them away leaves more than there was.
fn explained(target: &[f64], disk: &[f64]) -> f64 {
    let product: f64 = target.iter().zip(disk).map(|(target, disk)| target * disk).sum();
    match energy(disk) {
        0.0 => 0.0,
        energy => 2.0 * product / energy - 1.0,
    }
}

/// What is wrong with what is left of a target: less than nothing is impossible, more than nothing
/// is usual, for worlds also swap and read the files of their VM.
fn misfit(left: &[f64]) -> f64 {
    let weigh = |value: &f64| value * value * if *value < 0.0 { 1.0 } else { LEFT_OVER };
    left.iter().map(weigh).sum()
}

/// Virtual disks placed on targets, and what is left unexplained of these.
struct Settled {
    places: Vec<Option<usize>>,
    left: Vec<Vec<f64>>,
}

impl Settled {
    fn error(&self) -> f64 {
        self.left.iter().map(|left| misfit(left)).sum()
    }
}

/// Places every disk where it explains most of what is left, the busiest first, until nothing
/// moves any more. `forced` is a disk and the target that it must stay on.
fn settle(disks: &[Vec<f64>], targets: &[Target], forced: Option<(usize, usize)>) -> Settled {
    let mut left: Vec<Vec<f64>> = targets.iter().map(|target| target.series.clone()).collect();
    let mut places = vec![None; disks.len()];
    let mut order: Vec<usize> = (0..disks.len()).collect();
    sort_by(&mut order, |&a, &b| energy(&disks[b]).total_cmp(&energy(&disks[a])));
    if let Some((disk, target)) = forced {
        order.retain(|&other| other != disk);
        add(&mut left[target], &disks[disk], -1.0);
        places[disk] = Some(target);
    }
    for _ in 0..SWEEPS {
        let mut moved = false;
        for &disk in &order {
            let before = places[disk];
            if let Some(target) = before {
                add(&mut left[target], &disks[disk], 1.0);
            }
            let shares = left.iter().map(|left| explained(left, &disks[disk]));
            let best = shares.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
            places[disk] = best.filter(|best| best.1 > 0.0).map(|best| best.0);
            if let Some(target) = places[disk] {
                add(&mut left[target], &disks[disk], -1.0);
            }
            moved |= places[disk] != before;
        }
        if !moved {
            break;
        }
    }
    Settled { places, left }
}

/// How well a disk fits its target, and how much worse everything fits when it is on another: 1
/// when everything fits now and nothing would then, 0 when that fits as well.
fn confidence(
    disks: &[Vec<f64>],
    targets: &[Target],
    settled: &Settled,
    (disk, target): (usize, usize),
) -> f64 {
    let energy_of_disk = energy(&disks[disk]);
    let error = settled.error();
    let elsewhere = (0..targets.len())
        .filter(|&other| other != target)
        .map(|other| settle(disks, targets, Some((disk, other))).error());
    let mut without = settled.left[target].clone();
    add(&mut without, &disks[disk], 1.0);
    let worse = |other: f64| (other - error) / (other + NOISE * energy_of_disk);
    elsewhere.map(worse).fold(explained(&without, &disks[disk]), f64::min).clamp(0.0, 1.0)
}

/// The NFS volumes that hold the disks which no world accounts for: the I/Os of a volume are those of all VMs on it,
/// so that a disk for which another has room as well is on either.
fn links_to_volumes(recording: &Recording, ids: &[EntityId], volumes: &[Target]) -> Vec<DiskLink> {
    let disks: Vec<_> = ids.iter().map(|&id| series(recording, id)).collect();
    let settled = settle(&disks, volumes, None);
    let link = |(place, &disk): (usize, &EntityId)| {
        let target = settled.places[place]?;
        let mut own = settled.left[target].clone();
        add(&mut own, &disks[place], 1.0);
        let others = settled.left.iter().enumerate().filter(|(other, _)| *other != target);
        let second = others.map(|(_, left)| explained(left, &disks[place])).fold(0.0, f64::max);
        let confidence = explained(&own, &disks[place]).min(1.0) - second;
        let (device, because) = (volumes[target].device, Because::Elimination);
        Some(DiskLink { disk, device, confidence, because })
    };
    ids.iter().enumerate().filter_map(link).collect()
}

#[cfg(test)]
mod tests {
    use counters::Entity;

    use super::*;

    /// What is as busy as another, but for chance, is told from it by its own I/Os sample by sample.
    #[test]
    fn each_of_two_volumes_has_the_disk_of_which_it_has_the_ios() {
        let mut recording = Recording::new("esx".into());
        recording.times_ms = (0..12).map(|sample| 5_000 * sample).collect();
        let rate = |of: f64, step: usize| {
            let reads = (0..12).map(|s| of + 20.0 * (s * step % 7) as f64);
            reads.collect::<Vec<f64>>()
        };
        let mut add = |entity: Entity, reads: Vec<f64>| {
            let id = recording.add_entity(entity);
            recording.set_column(id, Counter::Reads, reads);
            id
        };
        let volumes = [("gold", 390.0, 3), ("silver", 300.0, 5)]
            .map(|(name, of, step)| add(Entity::new(Kind::NfsVolume, name.into()), rate(of, step)));
        let disks = [("n2", 300.0, 5), ("n1", 390.0, 3)].map(|(name, of, step)| {
            let vm = add(Entity::new(Kind::Vm, name.into()), rate(of, step));
            let disk = Entity::new(Kind::VirtualDisk, format!("{name}:scsi0:0"));
            add(Entity { vm: Some(vm), ..disk }, rate(of, step))
        });
        let links = disk_links(&recording);
        let found: Vec<_> = links.iter().map(|link| (link.disk, link.device)).collect();
        assert_eq!(found, [(disks[0], volumes[1]), (disks[1], volumes[0])]);
        assert!(links.iter().all(|link| link.confidence > 0.9), "{links:?}");
    }
}
