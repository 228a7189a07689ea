//! A virtual disk or virtual adapter at its queue depth: what does not fit waits in the guest,
//! where no counter of the host sees it [S0].
//!
//! It shows all the same: the number outstanding (ACTV + QUED, or rate times latency) stays at
//! 64 or 254 for PVSCSI, at 32 for LSI Logic [KB-PV, TBL], whatever happens below.

use counters::Controller;

use super::{Case, changes, number};
use crate::{
    Cause, Device, Evidence, Finding, Spell, Threshold, Vdisk, largest, mean, quantile,
    unrest_percent,
};

/// How near to a cap the mean may stay below it: commands on their way in or out [S0: 61 of 64].
const BELOW: f64 = 0.93;
/// How far above it: columns are not read at one instant, and 254 is also given as 256.
const ABOVE: f64 = 1.03;

/// A virtual disk, or the disks of one virtual adapter, at a cap.
pub(super) struct Cap<'a> {
    disk: &'a Vdisk<'a>,
    cause: Cause,
    pub(super) limit: u32,
    /// Commands that the guest wants outstanding, as far as that is known.
    pub(super) demand: f64,
    outstanding: f64,
    /// The wait in the guest, where the source knows it: milliseconds and commands.
    wait: Option<(f64, f64)>,
    spell: Spell,
    certainty: f64,
}

/// The cap that the busiest virtual disk of a device is at.
pub(super) fn on<'a>(case: &Case<'a>, device: &Device<'_>) -> Option<Cap<'a>> {
    let caps = case.host.vdisks_on(device).filter_map(|disk| of_disk(case, disk));
    caps.max_by(|a, b| a.demand.total_cmp(&b.demand))
}

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let disks: Vec<Cap<'_>> = case.host.vdisks.iter().filter_map(|d| of_disk(case, d)).collect();
    let adapters = adapters(case, &disks);
    disks.iter().chain(&adapters).map(|cap| judge(case, cap)).collect()
}

/// Depths of one disk, by the type of its controller.
fn disk_caps(disk: &Vdisk<'_>) -> &'static [u32] {
    match disk.controller {
        Some(Controller::Pvscsi) | None => &[64, 254],
        Some(Controller::LsiSas | Controller::LsiParallel | Controller::Ahci) => &[32],
        _ => &[],
    }
}

/// Depths of a virtual adapter, by its type.
fn adapter_caps(disk: &Vdisk<'_>) -> &'static [u32] {
    match disk.controller {
        Some(Controller::Pvscsi) => &[254, 1024],
        Some(Controller::LsiSas | Controller::LsiParallel) => &[128],
        _ => &[],
    }
}

/// The samples in which a disk has load.
fn busy(case: &Case<'_>, disk: &Vdisk<'_>) -> Vec<usize> {
    let limit = |threshold| case.host.limits.get(threshold);
    let is_busy = |sample: &usize| {
        disk.rate(*sample) >= limit(Threshold::BusyIops)
            && disk.outstanding(*sample) >= limit(Threshold::BusyOutstanding)
    };
    (0..case.host.times_ms.len()).filter(is_busy).collect()
}

fn of_disk<'a>(case: &Case<'a>, disk: &'a Vdisk<'a>) -> Option<Cap<'a>> {
    let busy = busy(case, disk);
    if disk.guest_wait.is_there() {
        return known_wait(case, disk, &busy);
    }
    disk_caps(disk).iter().find_map(|&limit| plateau(case, disk, &busy, limit))
}

/// The wait in the guest, where the source knows it.
fn known_wait<'a>(case: &Case<'a>, disk: &'a Vdisk<'a>, busy: &[usize]) -> Option<Cap<'a>> {
    let waiting = case.host.limits.get(Threshold::Waiting);
    let device = case.host.devices.iter().find(|device| disk.device == Some(device.id));
    let limits = device.map_or(case.host.limits, |device| device.limits);
    let spell = Spell::find(busy, |sample| {
        disk.guest_wait.or_zero(sample) >= limits.get(Threshold::KavgMs)
            && disk.guest_queued.or_zero(sample) >= waiting
    })?;
    let outstanding = spell.mean(|sample| disk.outstanding(sample));
    let queued = mean(disk.guest_queued.over(&spell.samples));
    let wait_ms = mean(disk.guest_wait.over(&spell.samples));
    let near = |cap: &&u32| is_at(outstanding, **cap);
    let at = disk_caps(disk).iter().find(near);
    Some(Cap {
        disk,
        cause: Cause::VirtualDiskCap,
        limit: at.copied().unwrap_or(outstanding.round() as u32),
        demand: outstanding + queued,
        outstanding,
        wait: Some((wait_ms, queued)),
        spell,
        certainty: 0.97,
    })
}

fn is_at(outstanding: f64, cap: u32) -> bool {
    let cap = f64::from(cap);
    (BELOW * cap..=ABOVE * cap).contains(&outstanding)
}

/// A number outstanding that stays at a cap. An open flow of commands may have the same mean, but
/// its samples go beyond the cap.
fn plateau<'a>(
    case: &Case<'a>,
    disk: &'a Vdisk<'a>,
    busy: &[usize],
    limit: u32,
) -> Option<Cap<'a>> {
    let spell = Spell::find(busy, |sample| is_at(disk.outstanding(sample), limit))?;
    let inside: Vec<f64> = spell.samples.iter().map(|&sample| disk.outstanding(sample)).collect();
    let sampled = sampled(case, disk, &spell);
    if unrest_percent(&inside).is_some_and(|u| u > case.host.limits.get(Threshold::FlatPercent))
        || largest(sampled.iter().copied()) > ABOVE * f64::from(limit)
        || quantile(sampled.iter().copied(), 0.5).is_some_and(|middle| !is_at(middle, limit))
    {
        return None;
    }
    let certainty = match (disk.controller, sampled.is_empty()) {
        (Some(_), false) => 0.8,
        (Some(_), true) => 0.65,
        (None, false) => 0.6,
        (None, true) => 0.4,
    };
    let outstanding = mean(inside);
    Some(Cap {
        disk,
        cause: Cause::VirtualDiskCap,
        limit,
        demand: f64::from(limit),
        outstanding,
        wait: None,
        spell,
        certainty,
    })
}

/// ACTV + QUED of the disk's VM on its device, when no other disk of the VM is there.
fn sampled(case: &Case<'_>, disk: &Vdisk<'_>, spell: &Spell) -> Vec<f64> {
    let Some(device) = case.host.devices.iter().find(|device| disk.device == Some(device.id))
    else {
        return Vec::new();
    };
    let alone = case.host.vdisks_on(device).filter(|other| other.vm == disk.vm).count() == 1;
    let world = device.worlds.iter().find(|world| world.owner == disk.vm && alone);
    let sampled = |sample: &usize| world?.queue.sampled(*sample);
    spell.samples.iter().filter_map(sampled).collect()
}

/// Virtual adapters whose disks are together at the cap of the adapter while none is at its own.
fn adapters<'a>(case: &Case<'a>, capped: &[Cap<'a>]) -> Vec<Cap<'a>> {
    let mut seen: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for disk in &case.host.vdisks {
        let name = disk.adapter();
        if seen.contains(&name) || capped.iter().any(|cap| cap.disk.adapter() == name) {
            continue;
        }
        seen.push(name);
        let disks: Vec<_> = case.host.vdisks.iter().filter(|d| d.adapter() == name).collect();
        if disks.len() > 1 {
            found.extend(adapter_caps(disk).iter().find_map(|&cap| of_adapter(case, &disks, cap)));
        }
    }
    found
}

fn of_adapter<'a>(case: &Case<'a>, disks: &[&'a Vdisk<'a>], limit: u32) -> Option<Cap<'a>> {
    let (disk, _) = disks.split_first()?;
    let sum = |sample: usize| disks.iter().map(|disk| disk.outstanding(sample)).sum::<f64>();
    let all: Vec<usize> = (0..case.host.times_ms.len()).collect();
    let spell = Spell::find(&all, |sample| is_at(sum(sample), limit))?;
    let inside: Vec<f64> = spell.samples.iter().map(|&sample| sum(sample)).collect();
    if unrest_percent(&inside).is_some_and(|u| u > case.host.limits.get(Threshold::FlatPercent)) {
        return None;
    }
    Some(Cap {
        disk,
        cause: Cause::VirtualAdapterCap,
        limit,
        demand: f64::from(limit),
        outstanding: mean(inside),
        wait: None,
        spell,
        certainty: 0.6,
    })
}

fn judge(case: &Case<'_>, cap: &Cap<'_>) -> Finding {
    let disk = cap.disk;
    let at = if cap.cause == Cause::VirtualDiskCap { disk.name } else { disk.adapter() };
    let mut finding = case.finding(cap.cause, at, &cap.spell);
    finding.sentence = sentence(cap, at);
    finding.standing = cap.wait.map_or(0.0, |(_, queued)| queued);
    finding.evidence = vec![
        Evidence::new("outstanding, by Little's law", cap.outstanding, ""),
        Evidence::new("its limit", f64::from(cap.limit), ""),
        Evidence::new("latency at the virtual adapter", disk.latency_ms(&cap.spell.samples), "ms"),
    ];
    if let Some((wait_ms, queued)) = cap.wait {
        finding.evidence.push(Evidence::new("wait in the guest", wait_ms, "ms"));
        finding.evidence.push(Evidence::new("waiting in the guest", queued, ""));
    } else {
        finding.raise_confidence = vec![format!(
            "The guest's own queue length (Windows: Avg. Disk Queue Length; Linux: aqu-sz of \
             iostat -x): above {} it confirms it",
            cap.limit
        )];
    }
    finding.confidence = cap.certainty * cap.spell.weight();
    finding.sufferers = parties(case, cap);
    finding.causers = finding.sufferers.clone();
    finding.changes = fix(cap);
    finding.do_not = vec![
        "Do not raise the guest's depth alone where the device queue is full: the wait only moves \
         from the guest into the VMkernel."
            .into(),
    ];
    finding.caution = Some(changes::CAUTION);
    finding
}

fn sentence(cap: &Cap<'_>, at: &str) -> String {
    let what = match cap.disk.controller {
        Some(Controller::Pvscsi) => "PVSCSI",
        Some(Controller::LsiSas) => "LSI Logic SAS",
        Some(Controller::LsiParallel) => "LSI Logic Parallel",
        Some(Controller::Ahci) => "AHCI",
        _ => "its driver",
    };
    let wait =
        cap.wait.map_or("what exceeds it waits in the guest, unseen by the host".into(), |w| {
            format!("{} commands wait {} ms each in the guest", number(w.1), number(w.0))
        });
    format!(
        "{at} stays at {} outstanding commands, the {} that {what} allows: {wait}.",
        number(cap.outstanding),
        cap.limit
    )
}

/// The VM, as it appears on the device of the disk.
fn parties(case: &Case<'_>, cap: &Cap<'_>) -> Vec<crate::Party> {
    let device = case.host.devices.iter().find(|device| cap.disk.device == Some(device.id));
    let mut parties = device.map_or(Vec::new(), |device| device.tenants(&cap.spell.samples));
    parties.retain(|party| party.name == cap.disk.vm);
    parties
}

fn fix(cap: &Cap<'_>) -> Vec<crate::Change> {
    let vm = cap.disk.vm;
    let mut fix = Vec::new();
    match cap.disk.controller {
        Some(Controller::Pvscsi) | None if cap.limit < 254 => fix.push(changes::raise_pvscsi(vm)),
        Some(Controller::Pvscsi) | None => {}
        _ => fix.push(changes::advice(
            format!(
                "Move the disk of {vm} to a PVSCSI adapter: {} commands cannot be raised here.",
                cap.limit
            ),
            Vec::new(),
        )),
    }
    fix.push(changes::spread(vm));
    fix
}

#[cfg(test)]
mod tests {
    use counters::Controller;

    use crate::{Cause, Effect, Facts, fixture::Bench};

    #[test]
    fn pvscsi_that_stays_at_64_is_at_its_depth() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 128).vm("sql01").iops(103_000.0).davg(0.62);
        let finding = bench.only(Cause::VirtualDiskCap, &Facts::default());
        assert_eq!(finding.changes[0].effect, Effect::GuestReboot);
        assert!(finding.changes[0].guest[0].contains("RequestRingPages=32,MaxQueueDepth=254"));
    }

    #[test]
    fn lsi_stays_at_32_and_another_number_is_no_cap() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 64).vm("a").iops(64_000.0).davg(0.5).controller(Controller::LsiSas);
        bench.device("naa.2", 64).vm("b").iops(40_000.0).davg(0.5).controller(Controller::Pvscsi);
        let finding = bench.only(Cause::VirtualDiskCap, &Facts::default());
        assert_eq!(finding.at, "a:scsi0:1");
    }

    #[test]
    fn a_number_that_goes_beyond_the_cap_is_none() {
        let mut bench = Bench::new(8);
        let vm = bench.device("naa.1", 254).vm("a").iops(100_000.0).davg(0.62);
        vm.sampled(|s| [50, 62, 78, 61, 66, 57, 71, 60][s]);
        assert!(bench.findings().is_empty());
    }

    #[test]
    fn kavgs_own_counter_decides_where_it_is_there() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 128).vm("a").iops(103_000.0).davg(0.62).guest_wait(0.3, 32.0);
        let finding = bench.only(Cause::VirtualDiskCap, &Facts::default());
        assert!(finding.confidence > 0.95 && finding.standing == 32.0);
        let mut bench = Bench::new(6);
        bench.device("naa.1", 128).vm("a").iops(103_000.0).davg(0.62).guest_wait(0.0, 0.0);
        assert!(bench.findings().is_empty());
    }
}
