//! A VM that waits behind another at the array: its commands take several times as long as they did,
//! though it asks for no more, since another came that holds most of the commands on the device. No
//! queue of the host is full then, and no latency need be long for what the array is.

use std::cmp::Ordering::Equal;

use knobs::DiskName;

use super::{ALIKE, Case, LASTING, noisy_neighbour::MODEST_SHARE, number};
use crate::{
    Change, Device, Finding, Party, Spell, Threshold, Vdisk, World, limit_advice, little, mean,
    quantile,
};

/// How many times as long as in its quick samples a command must take, and as many commands as before
/// the other must have there.
const TIMES: f64 = 4.0;
/// Share of the commands on the device that is most of them.
const MOST: f64 = 0.5;

/// Who waits behind whom.
pub(super) struct Behind {
    pub(super) victim: Party,
    /// What a command of the victim took before, in milliseconds.
    before_ms: f64,
    pub(super) holder: Party,
}

impl Behind {
    /// The VM on a device that waits longest so, and when.
    pub(super) fn find(case: &Case<'_>, device: &Device<'_>) -> Option<(Spell, Self)> {
        if device.full.is_some() {
            return None;
        }
        let shares = Share::all(case, device);
        let found = shares.iter().filter_map(|share| share.behind(device, &shares));
        found.max_by(|a, b| a.1.victim.gavg_ms.partial_cmp(&b.1.victim.gavg_ms).unwrap_or(Equal))
    }

    /// What is told of a device with so many commands.
    pub(super) fn sentence(&self, device: &Device<'_>, commands: f64) -> String {
        let Self { victim, before_ms, holder } = self;
        format!(
            "{} takes {} ms a command on {} ({}) where it took {} ms before, though it asks for no \
             more: {} came and has {} of the {} commands there.",
            victim.name,
            number(victim.gavg_ms.unwrap_or_default()),
            device.flow.name,
            if device.is_nfs { "GAVG" } else { "DAVG" },
            number(*before_ms),
            holder.name,
            number(holder.slots),
            number(commands)
        )
    }

    /// Who holds most of the commands is to send fewer; of a virtual disk it is its VM.
    pub(super) fn fix(
        &self,
        case: &Case<'_>,
        device: &Device<'_>,
        samples: &[usize],
    ) -> Option<Change> {
        let vm = Party { name: DiskName::from(&*self.holder.name).vm, ..self.holder.clone() };
        limit_advice::hold_on((case.host, device), &[&vm], samples, case.facts)
    }
}

/// Holds those who cause a finding by a limit, where others suffer beside them and they have next to all of the
/// commands on the device: a saturated array is quick again for these once a part of that is gone.
pub(super) fn hold_causers(
    case: &Case<'_>,
    device: &Device<'_>,
    samples: &[usize],
    finding: &mut Finding,
) {
    let Finding { causers, sufferers, changes, .. } = finding;
    let slots = |parties: &[Party]| parties.iter().map(|vm| vm.slots).sum::<f64>();
    let is_causer = |vm: &Party| causers.iter().any(|causer| causer.name == vm.name);
    let is_theirs = slots(causers) >= (1.0 - MODEST_SHARE) * slots(sufferers);
    if causers.is_empty() || sufferers.iter().all(is_causer) || !is_theirs {
        return;
    }
    let vms: Vec<&Party> = causers.iter().collect();
    if let Some(limit) = limit_advice::hold_on((case.host, device), &vms, samples, case.facts) {
        changes.insert(0, limit);
        sufferers.retain(|vm| !is_causer(vm));
    }
}

/// What a VM has of a device: its world, or on an NFS volume, where VMs have none, a virtual disk.
enum Share<'a> {
    World(&'a World<'a>),
    Disk(&'a Vdisk<'a>),
}

impl<'a> Share<'a> {
    fn all(case: &'a Case<'_>, device: &'a Device<'_>) -> Vec<Self> {
        if device.is_nfs {
            return case.host.vdisks_on(device).map(Self::Disk).collect();
        }
        let worlds = device.worlds.iter().filter(|world| !world.is_system);
        worlds.map(Self::World).collect()
    }

    const fn name(&self) -> &'a str {
        match self {
            Self::World(world) => world.owner,
            Self::Disk(disk) => disk.name,
        }
    }

    fn rate(&self, sample: usize) -> Option<f64> {
        match self {
            Self::World(world) => world.flow.rate(sample),
            Self::Disk(disk) => disk.rate(sample),
        }
    }

    /// Time of a command below the host, as far as the source tells.
    fn ms(&self, sample: usize) -> Option<f64> {
        match self {
            Self::World(world) => world.flow.davg(sample),
            Self::Disk(disk) => disk.latency_at(sample),
        }
    }

    fn size_kib(&self, sample: usize) -> Option<f64> {
        match self {
            Self::World(world) => world.flow.size_kib(&[sample]),
            Self::Disk(disk) => disk.size_kib(sample),
        }
    }

    fn inside(&self, sample: usize) -> Option<f64> {
        match self.rate(sample)? {
            0.0 => Some(0.0),
            rate => Some(little(rate, self.ms(sample)?)),
        }
    }

    /// Whether most of what it does in some samples is new, in bytes or commands: who only has more outstanding
    /// waits as the others do, for an array that became slow.
    fn came(&self, before: &[usize], then: &[usize]) -> bool {
        let is_new = |value: &dyn Fn(usize) -> Option<f64>| {
            over(before, value).unwrap_or(0.0) <= (1.0 - MOST) * over(then, value).unwrap_or(0.0)
        };
        let bytes = |sample| Some(self.rate(sample)? * self.size_kib(sample)?);
        is_new(&|sample| self.rate(sample)) || is_new(&bytes)
    }

    /// When its commands wait behind those of another that came, and behind whose.
    fn behind(&self, device: &Device<'_>, all: &[Self]) -> Option<(Spell, Behind)> {
        let limit = |threshold| device.limits.get(threshold);
        let quick_ms = quantile(device.busy.iter().map(|&sample| self.ms(sample)), 0.1)?;
        let far_ms = (TIMES * quick_ms).max(limit(Threshold::FlashMs));
        let spell = Spell::find(&device.busy, |sample| {
            self.ms(sample) >= Some(far_ms)
                && self.inside(sample) >= Some(limit(Threshold::BusyOutstanding))
        })?;
        let first = *spell.samples.first()?;
        let before: Vec<usize> = device.busy.iter().copied().filter(|s| *s < first).collect();
        let grown = |value: &dyn Fn(usize) -> Option<f64>| {
            Some(over(&spell.samples, value)? / over(&before, value)?)
        };
        let is_alike = grown(&|s| self.rate(s))? <= *ALIKE.end()
            && grown(&|s| self.size_kib(s))? <= *ALIKE.end();
        let whole = spell.mean(|sample| device.flow.in_flight(sample))?;
        let held = |other: &&Self| {
            let inside = |samples| over(samples, &|sample| other.inside(sample));
            let now = inside(&spell.samples).unwrap_or(0.0);
            let was = inside(&before).unwrap_or(0.0);
            other.name() != self.name()
                && now >= MOST * whole
                && now >= TIMES * was
                && other.came(&before, &spell.samples)
        };
        let holder = all.iter().find(held)?.party(&spell)?;
        let before_ms = over(&before, &|s| self.ms(s))?;
        let lasts = before.len().min(spell.samples.len()) >= LASTING;
        let victim = self.party(&spell)?;
        (lasts && is_alike).then_some((spell, Behind { victim, before_ms, holder }))
    }

    fn party(&self, spell: &Spell) -> Option<Party> {
        Some(Party {
            name: self.name().into(),
            iops: spell.mean(|s| self.rate(s))?,
            gavg_ms: spell.mean(|s| self.ms(s)),
            slots: spell.mean(|sample| self.inside(sample))?,
            waiting: None,
        })
    }
}

fn over(samples: &[usize], value: &dyn Fn(usize) -> Option<f64>) -> Option<f64> {
    mean(samples.iter().map(|&sample| value(sample)))
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Facts, fixture::Bench};

    /// A VM that does 500 a second, and a second one that comes with 60 commands in half of the
    /// recording; both take as long then.
    fn with_another(rate: impl Fn(usize) -> f64 + 'static, then_ms: f64) -> Bench {
        let mut bench = Bench::new(16);
        let device = bench.device("naa.1", 128);
        let ms = move |sample: usize| if sample < 8 { 1.0 } else { then_ms };
        device.vm("oltp").iops_when(rate).davg_when(ms);
        let other = move |sample: usize| {
            if sample < 8 { 0.0 } else { (60_000.0 + 900.0 * (sample % 3) as f64) / then_ms }
        };
        device.vm("backup").iops_when(other).davg(then_ms).size_kib(64.0);
        bench
    }

    #[test]
    fn who_asks_for_no_more_and_waits_behind_another_is_told() {
        let finding = with_another(|_| 500.0, 4.7).only(Cause::ArraySlow, &Facts::default());
        let told = "oltp takes 4.7 ms a command on naa.1 (DAVG) where it took 1 ms before, though it \
                    asks for no more: backup came and has";
        assert!(finding.sentence.starts_with(told), "{}", finding.sentence);
        assert_eq!((&*finding.sufferers[0].name, &*finding.causers[0].name), ("oltp", "backup"));
        assert!(finding.changes[0].what.starts_with("Give backup:scsi0:1 an IOPS limit"));
    }

    /// The array becomes slow for both, and both send what they sent: the one with more outstanding is no cause.
    #[test]
    fn who_sends_as_before_did_not_come() {
        let mut bench = Bench::new(16);
        let device = bench.device("naa.1", 128);
        let ms = |sample: usize| if sample < 8 { 0.8 } else { 6.3 };
        let about = |rate: f64| move |sample: usize| rate * [1.0, 0.97, 1.02, 1.01][sample % 4];
        device.vm("small").iops_when(about(300.0)).davg_when(ms);
        device.vm("big").iops_when(about(900.0)).davg_when(ms).size_kib(64.0);
        let findings = bench.findings();
        assert!(findings.iter().all(|finding| finding.causers.is_empty()), "{findings:?}");
    }

    #[test]
    fn who_asks_for_more_or_waits_little_longer_is_not() {
        let grows = |sample: usize| if sample < 8 { 500.0 } else { 900.0 };
        assert!(with_another(grows, 4.7).findings().is_empty());
        assert!(with_another(|_| 500.0, 2.5).findings().is_empty());
    }
}
