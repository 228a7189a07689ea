//! The IOPS limits that hold VMs of whose commands others have too many before them: each virtual disk
//! there its own, a little below what it does.

use counters::EntityId;
use knobs::{AllocationChange, DiskName, Setting, Version, default_cost_unit_kib, powershell_name};

use crate::{
    Change, Device, Facts, Host, LimitFacts, Party, Step, Vdisk, VdiskFacts,
    changes::{UNDO_AS_SHOWN, in_cost_units, limits, look, setting, tell_of_policy},
    mean, number,
};

/// The part of what a disk does that it is held to.
pub(crate) const BELOW: f64 = 0.9;
/// What a VM is slower by that is held.
const RISK: &str = "The VM is slower whenever it would have been allowed more.";

/// Where VMs are to send less, and when it was seen.
pub(crate) struct Place<'a> {
    pub(crate) host: &'a Host<'a>,
    pub(crate) devices: Vec<&'a Device<'a>>,
    pub(crate) samples: &'a [usize],
}

/// A virtual disk there, and what is to be done about it.
struct Disk<'a> {
    /// As a line names it.
    name: String,
    device: Option<EntityId>,
    /// What is known of its limit.
    limit: Option<&'a LimitFacts>,
    /// What a run knows of it.
    known: Option<&'a VdiskFacts>,
    /// Commands a second, and the same as an IOPS limit counts them.
    iops: f64,
    units: f64,
    /// Mean commands of it that are out.
    inside: Option<f64>,
}

impl<'a> Disk<'a> {
    fn of(row: &Vdisk<'_>, samples: &[usize], size_kib: Option<f64>, facts: &'a Facts) -> Self {
        let over = |value: &dyn Fn(usize) -> Option<f64>| mean(samples.iter().map(|&s| value(s)));
        let iops = over(&|sample| row.rate(sample)).unwrap_or_default();
        let moved = over(&|sample| Some(row.rate(sample)? * row.size_kib(sample)?));
        let size_kib = moved.filter(|_| iops > 0.0).map(|kib| kib / iops).or(size_kib);
        Self {
            name: DiskName::from(row.name).to_string(),
            device: row.device,
            limit: facts.limits.get(row.name),
            known: facts.vdisks.get(row.name),
            iops,
            units: if iops > 0.0 { in_cost_units(iops, size_kib) } else { 0.0 },
            inside: over(&|sample| row.outstanding(sample)),
        }
    }

    /// The limit that is known to stand.
    fn stands(&self) -> Option<f64> {
        self.limit?.at_end.map(f64::from)
    }

    fn asks_iops(&self) -> Option<f64> {
        self.known?.asks_iops
    }
}

/// Limits for the virtual disks that VMs have in a place, so that what each wants beyond waits in its own queue.
/// Their commands have `size_kib` in the mean, where the disks' rows do not tell. Where no line can be typed the
/// words remain: of VMs whose disks there no row tells, since a limit is each disk's own, wherever it lies.
///
/// `None` where one of them has no disk there that a limit would hold and may: who is known to send at a rate of
/// its own and to get it waits without end below that.
pub(crate) fn hold(
    at: &Place<'_>,
    vms: &[&Party],
    size_kib: Option<f64>,
    facts: &Facts,
) -> Option<Change> {
    let called = vms.iter().find_map(|vm| at.host.called.get(vm.name.as_str()));
    let mut all = Vec::new();
    for vm in vms {
        let Some(disks) = at.disks(vm, size_kib, facts) else {
            let untold = untold(at, vms);
            return Some(match called {
                Some(called) => by_hand(&untold.what, called),
                None => untold,
            });
        };
        let held = if facts.esxi_version.is_some_and(|version| version < Version::V6_0) {
            held_together(disks)
        } else {
            held_each(disks)
        };
        if held.is_empty() {
            return None;
        }
        all.extend(held);
    }
    let what = told(&all, vms);
    if let Some(called) = called {
        return Some(by_hand(&what, called));
    }
    let step = |(disk, limit): &(Disk<'_>, u32)| {
        limits(&disk.name, Some(*limit), disk.limit.map(LimitFacts::undo))
    };
    let mut change = setting(what, None, all.iter().map(step).collect());
    change.risk = RISK.into();
    let unknown = |vm: &&&Party| {
        let is_own = |disk: &Disk<'_>| DiskName::from(&*disk.name).vm == vm.name;
        all.iter().any(|(disk, _)| disk.limit.is_none() && is_own(disk))
    };
    let shown: Vec<String> =
        vms.iter().filter(unknown).flat_map(|vm| limits(&vm.name, None, None).set.show()).collect();
    if !shown.is_empty() {
        change.powercli.splice(0..0, shown);
        change.undo = UNDO_AS_SHOWN.into();
    }
    if all.iter().any(|(disk, _)| disk.known.is_none()) {
        change.risk += " If it sends at a rate of its own, whatever is answered, what waits grows without end.";
    }
    let had = change.steps.iter().filter_map(|Step { undo, .. }| match undo {
        Some(Setting::Allocation { allocation, .. }) => Some(allocation.clone()),
        _ => None,
    });
    let had: Vec<AllocationChange> = had.collect();
    had.iter().for_each(|had| tell_of_policy(&mut change, had));
    Some(change)
}

/// The same of VMs on one device, whose commands are of its mean size.
pub(crate) fn hold_on(
    (host, device): (&Host<'_>, &Device<'_>),
    vms: &[&Party],
    samples: &[usize],
    facts: &Facts,
) -> Option<Change> {
    let at = Place { host, devices: vec![device], samples };
    hold(&at, vms, device.flow.size_kib(samples), facts)
}

impl<'a> Place<'a> {
    /// The virtual disks that a VM has there; `None` where rows do not tell those of nearly all that it does.
    fn disks<'f>(
        &self,
        vm: &Party,
        size_kib: Option<f64>,
        facts: &'f Facts,
    ) -> Option<Vec<Disk<'f>>> {
        const NEARLY: f64 = 0.8;
        let mut disks: Vec<Disk<'_>> = Vec::new();
        for row in self.devices.iter().flat_map(|device| self.host.vdisks_of(&vm.name, device)) {
            DiskName::from(row.name).disk?;
            let disk = Disk::of(row, self.samples, size_kib, facts);
            match disks.iter_mut().find(|other| other.name == disk.name) {
                // A disk that was moved has a row for each place.
                Some(other) => {
                    other.iops += disk.iops;
                    other.units += disk.units;
                }
                None => disks.push(disk),
            }
        }
        let told: f64 = disks.iter().map(|disk| disk.iops).sum();
        (told > 0.0 && told >= NEARLY * vm.iops).then_some(disks)
    }
}

/// The disks with the limits that are to be set, each a little below what it does. One that has next to nothing
/// of its VM's commands is left alone, and so is one that a lower limit holds already.
fn held_each(disks: Vec<Disk<'_>>) -> Vec<(Disk<'_>, u32)> {
    const LITTLE: f64 = 0.05;
    let inside: Option<f64> = disks.iter().map(|disk| disk.inside).sum();
    let limit = |disk: &Disk<'_>| (BELOW * disk.units).floor().max(1.0);
    let is_held = |disk: &Disk<'_>| {
        let is_part = disk.inside.zip(inside).is_none_or(|(own, all)| own >= LITTLE * all);
        let is_lower = disk.stands().is_none_or(|stands| limit(disk) < stands);
        let gets = gets_what_it_asks(disk.iops, disk.asks_iops());
        disk.iops > 0.0 && is_part && is_lower && !gets
    };
    let held = disks.into_iter().filter(is_held);
    let with_limit = held.map(|disk| {
        let limit = limit(&disk) as u32;
        (disk, limit)
    });
    with_limit.collect()
}

/// The same before ESXi 6.0, where the disks of a VM on a device have one limit, the sum of theirs, and none
/// where one of them has none [PFS, DOC50]: each has the same part of it, but those that have less already.
fn held_together(mut disks: Vec<Disk<'_>>) -> Vec<(Disk<'_>, u32)> {
    let mut held = Vec::new();
    disks.sort_by_key(|disk| disk.device.map(|device| device.0));
    while let Some(device) = disks.first().map(|disk| disk.device) {
        let (own, rest) = disks.into_iter().partition::<Vec<_>, _>(|disk| disk.device == device);
        disks = rest;
        let sum = |value: &dyn Fn(&Disk<'_>) -> Option<f64>| own.iter().map(value).sum();
        let asks: Option<f64> = sum(&|disk| disk.asks_iops());
        let [iops, units] = [sum(&|disk| Some(disk.iops)), sum(&|disk| Some(disk.units))]
            .map(Option::unwrap_or_default);
        if iops == 0.0 || gets_what_it_asks(iops, asks) {
            continue;
        }
        let part = BELOW * units / own.len() as f64;
        let has_less = |disk: &Disk<'_>| disk.stands().is_some_and(|stands| stands <= part);
        let (less, more) = own.into_iter().partition::<Vec<_>, _>(has_less);
        let taken: f64 = less.iter().filter_map(Disk::stands).sum();
        let limit = ((BELOW * units - taken) / more.len() as f64).floor().max(1.0);
        let is_lower = |disk: &Disk<'_>| disk.stands().is_none_or(|stands| limit < stands);
        held.extend(more.into_iter().filter(is_lower).map(|disk| (disk, limit as u32)));
    }
    held
}

/// What is to be set, in words.
fn told(all: &[(Disk<'_>, u32)], vms: &[&Party]) -> String {
    let unit = format!("counted in units of {} KiB as the limit is", default_cost_unit_kib());
    if let [(Disk { name, units, .. }, limit)] = all {
        return format!(
            "Give {name} an IOPS limit of {limit}. That is a little below the {} a second that it does, {unit}: what \
             it wants beyond waits in its own queue.",
            units.round()
        );
    }
    let names: Vec<&str> = vms.iter().map(|vm| vm.name.as_str()).collect();
    let limits = || all.iter().map(|(_, limit)| *limit);
    let (least, most) = (limits().min().unwrap_or_default(), limits().max().unwrap_or_default());
    let limits = if least == most { format!("{least}") } else { format!("{least} to {most}") };
    let units: f64 = all.iter().map(|(disk, _)| disk.units).sum();
    format!(
        "Give {} disks of {} IOPS limits of {limits}. Together that is a little below the {} a second that they do, \
         {unit}: what each wants beyond waits in its own queue.",
        all.len(),
        names.join(", "),
        units.round()
    )
}

/// What is left where no row tells which disks of the VMs are there, or what each of them does.
fn untold(at: &Place<'_>, vms: &[&Party]) -> Change {
    let names: Vec<&str> = vms.iter().map(|vm| vm.name.as_str()).collect();
    let there = match &at.devices[..] {
        [device] => device.flow.name.to_owned(),
        _ => "these devices".into(),
    };
    let rate: f64 = vms.iter().map(|vm| vm.iops).sum();
    let what = format!(
        "Hold {} by IOPS limits on the disks on {there}, each a tenth below what that disk does. Which disks those \
         are, and what each does of the {} a second, these rows do not tell: a limit is each disk's own, and one on \
         a disk elsewhere would slow what nobody waits for.",
        names.join(", "),
        number(rate)
    );
    look(what, Vec::new()).risking(RISK, "Set the limits again that they had")
}

/// Limits of a VM of which others have the name, which a line takes for all of them.
fn by_hand(what: &str, called: &str) -> Change {
    let what = format!(
        "{what} By hand: Get-VM {} gets every VM of that name. The number behind the name is the group of the \
         one that is meant, GID in esxtop.",
        powershell_name(called)
    );
    look(what, Vec::new()).risking(RISK, "Set the limit again that it had")
}

/// Whether who does so many commands a second does all that it sends at a rate of its own.
pub(crate) fn gets_what_it_asks(iops: f64, asks_iops: Option<f64>) -> bool {
    const NEARLY: f64 = 0.95;
    asks_iops.is_some_and(|asks_iops| asks_iops > 0.0 && iops >= NEARLY * asks_iops)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use counters::Kind;
    use knobs::Version;
    use levels::Measured;

    use crate::{
        Cause, Change, Facts, Thresholds, diagnose,
        fixture::{Bench, limited},
    };

    /// A VM with disks that do so much each on a full device of 32 slots, one that waits for those, and what the
    /// first does on another device.
    fn full(disks: &[f64], elsewhere: f64) -> Bench {
        let mut bench = Bench::new(6);
        let device = bench.device("naa.1", 32);
        for (slot, &iops) in disks.iter().enumerate() {
            device.vm("bully").slot(slot).iops(iops).davg(5.0).kavg(18.3);
        }
        device.vm("victim").iops(382.0).davg(5.0).kavg(18.3);
        if elsewhere > 0.0 {
            let device = bench.device("naa.2", 64);
            device.vm("bully").slot(disks.len()).iops(elsewhere).davg(0.4);
        }
        bench
    }

    fn change(bench: &Bench, facts: &Facts) -> Change {
        bench.first(Cause::NoisyNeighbour, facts).changes.remove(0)
    }

    /// What is set, and what takes it back.
    fn lines(change: &Change) -> Vec<(String, Option<String>)> {
        let line = |step: &crate::Step| {
            (step.set.to_string(), step.undo.as_ref().map(ToString::to_string))
        };
        change.steps.iter().map(line).collect()
    }

    fn line(slot: usize, limit: &str) -> String {
        format!("bully:scsi0:{slot}: DiskLimitIOPerSecond {limit}")
    }

    #[test]
    fn each_of_several_disks_is_held_below_what_it_does_itself() {
        let change =
            change(&full(&[2_002.0, 1_502.0, 1_502.0, 1_002.0, 1.0], 0.0), &Facts::default());
        let limits = ["1801", "1351", "1351", "901"].into_iter().enumerate();
        let expected: Vec<_> = limits.map(|(slot, limit)| (line(slot, limit), None)).collect();
        assert_eq!(lines(&change), expected);
        assert!(change.what.starts_with("Give 4 disks of bully IOPS limits of 901 to 1801."));
    }

    #[test]
    fn disks_on_other_devices_are_left_alone() {
        let bench = full(&[6_009.0], 16_000.0);
        assert_eq!(lines(&change(&bench, &Facts::default())), [(line(0, "5408"), None)]);
        // Where no row tells which of them are there, no line is given.
        let mut recording = bench.recording();
        let disks: Vec<_> = recording.of_kind(Kind::VirtualDisk).map(|(id, _)| id).collect();
        disks.into_iter().for_each(|disk| recording.entity_mut(disk).device = None);
        let verdict = diagnose(&Measured::of(recording), &Thresholds::default(), &Facts::default());
        let finding = verdict.findings.iter().find(|of| of.cause == Cause::NoisyNeighbour);
        let change = &finding.unwrap().changes[0];
        assert!(change.what.starts_with("Hold bully by IOPS limits on the disks on naa.1"));
        assert!(change.steps.is_empty() && change.powercli.is_empty(), "{change:?}");
    }

    #[test]
    fn a_limit_that_stands_is_not_raised_and_is_given_back() {
        let bench = full(&[1_002.0, 2_503.0, 2_503.0], 0.0);
        let mut facts = Facts::default();
        for (disk, limit) in [("bully:scsi0:0", 500), ("bully:scsi0:1", 2_600)] {
            let known = limited(disk, limit).limits[disk].clone();
            Arc::make_mut(&mut facts.limits).insert(disk.into(), known);
        }
        let undo = Some(line(1, "2600"));
        assert_eq!(
            lines(&change(&bench, &facts)),
            [(line(1, "2252"), undo.clone()), (line(2, "2252"), None)]
        );
        // Before ESXi 6.0 the limit is that of all together: 0.9 x 6,008, of which the first has 500.
        facts.esxi_version = Some(Version::V5_5);
        assert_eq!(
            lines(&change(&bench, &facts)),
            [(line(1, "2453"), undo), (line(2, "2453"), None)]
        );
    }
}
