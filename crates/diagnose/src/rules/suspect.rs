//! What may be held to a rate: a virtual disk on a device, or a VM there of which no disk is known.

use counters::Kind;
use levels::weighted_mean;

use super::{Case, changes, reservations::collide};
use crate::{
    Device, Flow, LimitFacts, Object, Spell, Threshold, Vdisk, World, little, mean, reaches,
};

/// What a wait that no queue of the VMkernel shows must come to, besides `kavg_ms` of disks: snapshots and filters cost time
/// there too, but neither make a rate flat nor take most of a command's time.
pub(super) const UNSEEN_PART: f64 = 0.5;

/// What may be held to a rate.
#[derive(Clone, Copy)]
pub(super) struct Suspect<'a> {
    pub(super) device: &'a Device<'a>,
    /// Its VM there; on NFS VMs have no rows.
    pub(super) world: Option<&'a World<'a>>,
    /// The virtual disk, where there are columns of it.
    pub(super) disk: Option<&'a Vdisk<'a>>,
    /// On NFS: what a command takes there that waits for nobody, where that is known.
    pub(super) alone_ms: Option<f64>,
}

impl<'a> Suspect<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.disk.map_or(self.vm(), |disk| disk.name)
    }

    pub(super) fn object(&self) -> Object {
        let kind = if self.disk.is_some() { Kind::VirtualDisk } else { Kind::Vm };
        Object::row(kind, self.name())
    }

    pub(super) fn vm(&self) -> &'a str {
        self.world.map(|world| world.owner).or(self.disk.map(|disk| disk.vm)).unwrap_or_default()
    }

    pub(super) fn flow(&self) -> Option<&'a Flow<'a>> {
        self.world.map(|world| &world.flow)
    }

    pub(super) fn size_kib(&self, samples: &[usize]) -> Option<f64> {
        let of_disk = || mean(samples.iter().map(|&sample| self.disk?.size_kib(sample)));
        self.flow().map_or_else(of_disk, |flow| flow.size_kib(samples))
    }

    pub(super) fn rate(&self, sample: usize) -> Option<f64> {
        self.disk.map_or_else(|| self.flow()?.rate(sample), |disk| disk.rate(sample))
    }

    pub(super) fn latency_ms(&self, sample: usize) -> Option<f64> {
        let of_disk = |disk: &Vdisk<'_>| disk.latency_at(sample);
        self.disk.map_or_else(|| self.flow()?.gavg(sample), of_disk)
    }

    /// What the device's queue costs a command in the mean while all slots are taken: a slot must
    /// come free for it and for each that waits before it, and a large command waits as often as the
    /// unit of shares fits into it [LAMW]. Who holds most of the slots itself waits for its own
    /// commands, however long that takes.
    pub(super) fn turn_ms(&self, sample: usize) -> Option<f64> {
        if !self.device.may_be_full(sample)? {
            return Some(0.0);
        }
        let flow = &self.device.flow;
        if self.flow()?.in_flight(sample)? > 0.5 * flow.in_flight(sample)? {
            return Some(f64::INFINITY);
        }
        let of_disk = self.disk.and_then(|disk| disk.size_kib(sample));
        let own = of_disk.or_else(|| self.flow()?.size_kib(&[sample]));
        let units = |rate: f64, size_kib| changes::in_cost_units(rate, size_kib) / rate;
        let own = units(self.rate(sample)?, own);
        let all = units(flow.rate(sample)?, flow.size_kib(&[sample]));
        let turn_s = (flow.waiting(sample)? + 1.0) / flow.rate(sample)?.max(f64::MIN_POSITIVE);
        Some(1_000.0 * turn_s * (own / all).max(1.0))
    }

    /// Whether conflicts with other hosts' reservations count, or explain half of what waits.
    pub(super) fn is_refused(&self, sample: usize) -> Option<bool> {
        let explained = self.device.faults.retrying(sample)? >= 0.5 * self.waiting(sample)?;
        Some(explained || collide(self.device, sample)?)
    }

    /// Mean commands that wait.
    pub(super) fn waiting(&self, sample: usize) -> Option<f64> {
        Some(little(self.rate(sample)?, self.wait_ms(sample)?))
    }

    /// Time in the VMkernel that is no queue belongs to the host, not to a limit: those of the
    /// VMkernel show in QAVG, and a policy's filter is above KAVG. NFS has neither [ELA].
    pub(super) fn wait_ms(&self, sample: usize) -> Option<f64> {
        let Some(flow) = self.flow() else {
            return Some(self.latency_ms(sample)? - self.alone_ms?);
        };
        if self.disk.is_none() {
            return flow.qavg(sample);
        }
        let held = (flow.kavg(sample)? - flow.qavg(sample)?).max(0.0);
        Some((self.latency_ms(sample)? - flow.davg(sample)? - held).max(0.0))
    }

    /// The mean over commands of a time.
    pub(super) fn per_command(
        &self,
        samples: &[usize],
        millis: impl Fn(usize) -> Option<f64>,
    ) -> Option<f64> {
        weighted_mean(samples.iter().map(|&s| Some((millis(s)?, self.rate(s)?))))
    }

    /// KiB a second.
    pub(super) fn kib_per_s(&self, sample: usize) -> Option<f64> {
        let of_disk = |disk: &Vdisk<'_>| disk.size_kib(sample);
        let of_vm = || self.flow()?.size_kib(&[sample]);
        Some(self.rate(sample)? * self.disk.map_or_else(of_vm, of_disk)?)
    }

    /// What it must wait for that to count: of what the device takes, as much as the wait for its slots.
    pub(super) fn least_wait_ms(&self, davg_ms: Option<f64>) -> f64 {
        let kavg_ms = self.device.limits.get(Threshold::KavgMs);
        davg_ms.map_or(kavg_ms, |davg_ms| self.device.least_wait_ms(davg_ms))
    }

    pub(super) fn davg_ms(&self, sample: usize) -> Option<f64> {
        self.flow()?.davg(sample)
    }

    /// Whether the VMkernel's own queue accounts for the wait.
    pub(super) fn is_seen(&self, spell: &Spell) -> bool {
        let qavg_ms = self.flow().and_then(|flow| flow.per_command(&spell.samples, Flow::qavg));
        let wait_ms = self.per_command(&spell.samples, |sample| self.wait_ms(sample));
        reaches(qavg_ms, wait_ms.map(|wait_ms| UNSEEN_PART * wait_ms))
    }
}

/// The virtual disks on a device, and the VMs there of which no disk is known.
pub(super) fn suspects<'a>(case: &'a Case<'_>, device: &'a Device<'_>) -> Vec<Suspect<'a>> {
    if device.is_nfs {
        let alone_ms = case.array(device).and_then(|array| array.service_ms);
        let suspect = |disk| Suspect { device, world: None, disk: Some(disk), alone_ms };
        return case.host.vdisks_on(device).map(suspect).collect();
    }
    let vms = device.worlds.iter().filter(|world| !world.is_system);
    let of_vm = |world: &'a World<'a>| {
        let alone = Suspect { device, world: Some(world), disk: None, alone_ms: None };
        let disks = case.host.vdisks_of(world.owner, device);
        let mut suspects: Vec<_> =
            disks.map(|disk| Suspect { disk: Some(disk), ..alone }).collect();
        if suspects.is_empty() {
            suspects.push(alone);
        }
        suspects
    };
    vms.flat_map(of_vm).collect()
}

/// What is known of the limit of a suspect.
pub(super) fn limit_facts<'a>(case: &Case<'a>, suspect: &Suspect<'_>) -> Option<&'a LimitFacts> {
    case.facts.limits.get(suspect.disk?.name)
}

/// The limit of a suspect, as far as it is known of its disk: `Some(None)` is known to be none.
pub(super) fn known_limit(case: &Case<'_>, suspect: &Suspect<'_>) -> Option<Option<u32>> {
    Some(limit_facts(case, suspect)?.iops)
}

/// Whether the limit of a suspect was in force for a part of the time alone: then it has nothing to say of what passes it.
pub(super) fn comes_or_goes(case: &Case<'_>, suspect: &Suspect<'_>) -> bool {
    limit_facts(case, suspect).is_some_and(|known| known.at_end != known.iops)
}

/// So many commands a second of a suspect as its limit counts them: by what each is known to count, else by their mean
/// size.
pub(super) fn in_units(
    case: &Case<'_>,
    suspect: &Suspect<'_>,
    rate: f64,
    samples: &[usize],
) -> f64 {
    let cost = limit_facts(case, suspect).and_then(|limit| limit.cost);
    let by_size = || changes::in_cost_units(rate, suspect.size_kib(samples));
    cost.map_or_else(by_size, |cost| cost * rate)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{
        Cause, Thresholds,
        fixture::{Bench, limited},
    };

    /// A limit that was there in three of twenty samples holds nobody who does twice as much in the others, though what is
    /// sent waits then, too.
    #[test]
    fn a_limit_of_a_part_of_the_time_holds_nothing_that_passes_it() {
        let mut bench = Bench::new(20);
        let is_limited = |s: usize| (9..12).contains(&s);
        let vm = bench.device("naa.1", 64).vm("a").davg(0.5);
        vm.iops_when(move |s| if is_limited(s) { 3_000.0 } else { 5_600.0 + (s % 7) as f64 })
            .kavg(8.0);
        let mut facts = limited("a:scsi0:1", 3_000);
        let limits = Arc::make_mut(&mut facts.limits);
        limits.values_mut().for_each(|limit| limit.at_end = None);
        let findings = bench.diagnose(&Thresholds::default(), &facts).findings;
        let held = findings.iter().find(|finding| finding.cause == Cause::IopsLimit).unwrap();
        assert_eq!(held.window.samples, 3, "{}", held.sentence);
    }
}
