//! What open workloads ask for over a window and are not served: the notes tell it, and the verdict has it.

use std::collections::{BTreeMap, BTreeSet};

use counters::{Counter, EntityId, Kind, Recording, SECOND, VdiskId, sorted::Ordered};
use diagnose::Demand;
use engine::{HostConfig, VdiskConfig};
use levels::most_first;
use model::Arrival;
use scenario::Scenario;
use sim::{Outcome, WindowView};

/// A demand is met when so much of it is served.
pub(crate) const MET: f64 = 0.99;

/// A virtual disk whose open workload is not served what it asks for.
pub(crate) struct Unmet {
    /// Its host.
    pub(crate) host: usize,
    /// The name of its row (`sql01:scsi0:1`).
    pub(crate) name: String,
    pub(crate) demand: Demand,
    /// What the guest gave up a second after it was sent, where that is known.
    pub(crate) aborted: Option<f64>,
}

/// The disks whose open workloads are not served what they ask for, the worst first.
pub(crate) fn unmet(scenario: &Scenario, outcome: &Outcome, index: usize) -> Vec<Unmet> {
    let open = scenario.workloads.iter();
    let open = open.filter(|workload| matches!(workload.config.arrival, Arrival::Open { .. }));
    let disks: BTreeSet<_> = open.map(|workload| (workload.host, workload.vdisk)).into_set();
    let views = outcome.windows[index].iter();
    let rows: Vec<BTreeMap<&str, EntityId>> = views
        .map(|view| view.recording.of_kind(Kind::VirtualDisk))
        .map(|rows| rows.map(|(id, row)| (row.name.as_str(), id)).into_map())
        .collect();
    let demand = disks.into_iter().filter_map(|(host, id)| {
        let of = &scenario.hosts[host];
        // Where a guest has a block layer, or flash answers, nothing says what was served.
        let is_plain = of.blocks[id.index()].is_none() && !of.flash_caches.contains_key(&id);
        let config = &of.config;
        let name = config.disk_name(id);
        let view = outcome.windows[index].get(host)?;
        let recording = &view.recording;
        let row = *rows.get(host)?.get(name.as_str())?;
        let value = |counter| recording.value(row, counter, 0);
        let demand = Demand {
            offered: value(Counter::Offered)?,
            served: is_plain.then(|| served(view, id)),
            lost: value(Counter::Lost)?,
            waiting: value(Counter::MeanGuestQueued)?,
        };
        Some(Unmet { host, name, demand, aborted: aborted(config, recording, id) })
    });
    let served = |demand: &Demand| demand.served.unwrap_or(demand.offered - demand.lost);
    let is_unmet = |disk: &Unmet| served(&disk.demand) < MET * disk.demand.offered;
    let mut unmet: Vec<_> = demand.filter(is_unmet).collect();
    most_first(&mut unmet, |disk| disk.demand.offered - served(&disk.demand));
    unmet
}

/// I/Os of applications that end a second: the guest's driver may make several commands of one.
fn served(view: &WindowView, disk: VdiskId) -> f64 {
    let (now, then) = (&view.counters, &view.counters_before);
    let ended = now.vdisks[disk.index()].total.since(&then.vdisks[disk.index()].total).count();
    ended as f64 * SECOND as f64 / (now.at - then.at).max(1) as f64
}

/// What the guest of a virtual disk aborts a second: its world's count, where no other disk of the VM is
/// on the device.
fn aborted(config: &HostConfig, recording: &Recording, id: VdiskId) -> Option<f64> {
    let disk = &config.vdisks[id.index()];
    let shares = |other: &&VdiskConfig| other.vm == disk.vm && other.device == disk.device;
    let is_alone = config.vdisks.iter().filter(shares).count() == 1;
    let vm = &config.vms[disk.vm.index()].name;
    let device = &config.devices[disk.device.index()].name;
    let mut worlds = recording.of_kind(Kind::World).filter(|_| is_alone);
    let (world, _) = worlds.find(|(_, world)| {
        world.vm.is_some_and(|of| recording.entity(of).name == *vm)
            && world.device.is_some_and(|on| recording.entity(on).name == *device)
    })?;
    recording.value(world, Counter::Aborts, 0)
}
