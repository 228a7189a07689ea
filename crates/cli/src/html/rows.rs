//! What a report needs of a recording beside its columns: who belongs to a device, and which
//! samples are in a window.

use std::collections::BTreeMap;

use counters::{Counter, Entity, EntityId, Kind, Recording};
use diagnose::Verdict;
use levels::{Column, Flow};

use super::reduce::percentiles;

/// The share of a VM in a device: its worlds there.
pub(super) struct Tenant<'a> {
    pub(super) name: &'a str,
    worlds: Vec<Flow<'a>>,
    load: f64,
}

/// A number of a row in a sample.
pub(super) type Figure<'a> = fn(&Flow<'a>, usize) -> f64;

/// Devices and NFS volumes that completed a command: those that were judged, then those with a
/// load that is not worth it (a CD-ROM); of each the one with most commands outstanding first.
pub(super) fn devices(recording: &Recording, verdict: &Verdict) -> Vec<EntityId> {
    let is_judged = |name: &str| verdict.profiles.iter().any(|profile| profile.device == name);
    let rank = |(id, entity): (EntityId, &Entity)| {
        (id, is_judged(&entity.name), load(recording, &Flow::of(recording, id)))
    };
    let of = |kind| recording.of_kind(kind);
    let mut devices: Vec<_> = of(Kind::Device).chain(of(Kind::NfsVolume)).map(rank).collect();
    devices.retain(|(_, _, load)| *load > 0.0);
    devices.sort_by(|a, b| b.1.cmp(&a.1).then(b.2.total_cmp(&a.2)));
    devices.into_iter().map(|(id, ..)| id).collect()
}

/// Mean commands outstanding over the whole recording, by Little's law.
fn load(recording: &Recording, flow: &Flow<'_>) -> f64 {
    let sum: f64 = (0..recording.len()).map(|sample| flow.outstanding(sample)).sum();
    sum / recording.len().max(1) as f64
}

/// The samples between two instants; a sample bears the instant at which its interval ends.
pub(super) fn samples(recording: &Recording, from_ms: i64, to_ms: i64) -> Vec<usize> {
    let inside = |(_, time): &(usize, &i64)| from_ms < **time && **time <= to_ms;
    recording.times_ms.iter().enumerate().filter(inside).map(|(sample, _)| sample).collect()
}

/// The device that an object is, is on, or leads to: of several the one with most load, which
/// comes first in `devices`. An object without a command is found by what it is.
pub(super) fn device_of(
    recording: &Recording,
    devices: &[EntityId],
    name: &str,
) -> Option<EntityId> {
    let mut named = recording.entities().iter().filter(|entity| is_named(entity, name));
    let first = named.next()?;
    match first.kind {
        Kind::Device | Kind::NfsVolume => recording.find(first.kind, name),
        Kind::Adapter => {
            let adapter = recording.find(Kind::Adapter, name);
            let paths = recording.of_kind(Kind::Path).filter(|(_, path)| path.adapter == adapter);
            let behind: Vec<_> = paths.filter_map(|(_, path)| path.device).collect();
            devices.iter().copied().find(|device| behind.contains(device))
        }
        _ => {
            let on: Vec<_> = named.chain([first]).filter_map(|entity| entity.device).collect();
            devices.iter().copied().find(|device| on.contains(device))
        }
    }
}

/// Whether an object bears the name, or is a disk of the virtual adapter of that name.
pub(super) fn is_named(entity: &Entity, name: &str) -> bool {
    let slot = || entity.name.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
    entity.name == name
        || entity.kind == Kind::VirtualDisk
            && slot().is_some_and(|slot| slot.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The VMs on a device, those with most commands outstanding first.
pub(super) fn tenants(recording: &Recording, device: EntityId) -> Vec<Tenant<'_>> {
    let mut tenants: BTreeMap<&str, Tenant<'_>> = BTreeMap::new();
    for (id, world) in recording.of_kind(Kind::World) {
        if world.device == Some(device) {
            let (name, flow) = (owner(recording, world), Flow::of(recording, id));
            let new = || Tenant { name, worlds: Vec::new(), load: 0.0 };
            let tenant = tenants.entry(name).or_insert_with(new);
            tenant.load += load(recording, &flow);
            tenant.worlds.push(flow);
        }
    }
    let mut tenants: Vec<_> = tenants.into_values().filter(|tenant| tenant.load > 0.0).collect();
    tenants.sort_by(|a, b| b.load.total_cmp(&a.load));
    tenants
}

/// The VM of a world, or the process that it is, or its own name.
fn owner<'a>(recording: &'a Recording, world: &'a Entity) -> &'a str {
    let vm = world.vm.map(|vm| recording.entity(vm).name.as_str());
    vm.or(world.process.as_deref()).unwrap_or(&world.name)
}

impl<'a> Tenant<'a> {
    /// Commands per second of all its worlds.
    pub(super) fn rate(&self, sample: usize) -> f64 {
        self.worlds.iter().map(|world| world.rate(sample)).sum()
    }

    /// GAVG over all its worlds; none without commands.
    pub(super) fn gavg(&self, sample: usize) -> Option<f64> {
        let rate = self.rate(sample);
        let time: f64 = self.worlds.iter().map(|w| w.rate(sample) * w.gavg(sample)).sum();
        (rate > 0.0).then_some(time / rate)
    }

    /// The mean over some samples of a number that its worlds add up to.
    pub(super) fn mean(&self, samples: &[usize], of: Figure<'a>) -> f64 {
        mean(samples, |sample| self.worlds.iter().map(|world| of(world, sample)).sum())
    }
}

/// What a virtual disk counts.
pub(super) struct Disk<'a> {
    pub(super) entity: &'a Entity,
    commands: [Column<'a>; 2],
    latency: [Column<'a>; 2],
    guest_wait: Column<'a>,
    guest_queued: Column<'a>,
}

impl<'a> Disk<'a> {
    pub(super) fn of(recording: &'a Recording, id: EntityId) -> Self {
        let column = |counter| Column::of(recording, id, counter);
        Self {
            entity: recording.entity(id),
            commands: [column(Counter::Reads), column(Counter::Writes)],
            latency: [column(Counter::VdiskReadLatency), column(Counter::VdiskWriteLatency)],
            guest_wait: column(Counter::GuestWait),
            guest_queued: column(Counter::MeanGuestQueued),
        }
    }

    /// Reads and writes per second.
    pub(super) fn rate(&self, sample: usize) -> f64 {
        self.commands.iter().map(|column| column.or_zero(sample)).sum()
    }

    /// Mean commands between the virtual adapter and the completion, by Little's law.
    pub(super) fn outstanding(&self, sample: usize) -> f64 {
        let ways = self.commands.iter().zip(&self.latency);
        ways.map(|(rate, ms)| rate.or_zero(sample) * ms.or_zero(sample)).sum::<f64>() / 1000.0
    }

    /// Time inside the guest, where the source knows it.
    pub(super) fn guest_wait_ms(&self, sample: usize) -> Option<f64> {
        self.guest_wait.at(sample)
    }

    /// Mean commands waiting inside the guest, where the source knows it.
    pub(super) fn guest_queued(&self, sample: usize) -> Option<f64> {
        self.guest_queued.at(sample)
    }
}

/// The limit in force in most samples: a mean of limits would be none that ever was.
pub(super) fn usual(limit: Column<'_>, samples: &[usize]) -> Option<f64> {
    let values: Vec<f64> = limit.over(samples).collect();
    percentiles(&values).map(|[median, ..]| median)
}

/// The mean of a number over samples; 0 over none.
pub(super) fn mean(samples: &[usize], value: impl Fn(usize) -> f64) -> f64 {
    let sum: f64 = samples.iter().map(|&sample| value(sample)).sum();
    sum / samples.len().max(1) as f64
}
