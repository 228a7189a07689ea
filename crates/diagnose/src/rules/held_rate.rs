//! A flow that an array holds to a rate, and what else it may be: what the rule on an array's QoS finds before it is
//! told as a finding.

use levels::array_of;

use super::{
    Case, EITHER,
    line_rate::LineRate,
    newcomer::Newcomer,
    number,
    quick_peer::{CONTRAST, faster_peer},
};
use crate::{Device, Flow, Spell, Threshold, reaches};

/// Commands in flight below which nobody is being held back.
pub(super) const HELD: f64 = 3.0;

/// A flow that is held to a rate.
pub(super) struct Held<'a> {
    pub(super) flow: &'a Flow<'a>,
    /// The VM, when it is one among others on the device.
    pub(super) vm: Option<&'a str>,
    pub(super) spell: Spell,
    /// What is answered faster, and in how many milliseconds, where the recording has it.
    pub(super) faster: Option<(String, f64)>,
    /// Whether that is another than the flow itself: then the array is not saturated.
    pub(super) beside: bool,
    /// The array that is known to have a policy for it; and the cost units a second that all policies there have
    /// together, where those hold it.
    pub(super) policy: Option<(String, Option<u32>)>,
    /// What the rate is where it may be that of a link, in MiB/s, and over which adapters.
    pub(super) link: Option<(f64, String)>,
    pub(super) certainty: f64,
    /// Whether not its rate stays but a sum of its commands and their data.
    pub(super) is_sum: bool,
}

impl<'a> Held<'a> {
    /// A whole device that is so, with nothing yet that tells why.
    pub(super) const fn of(flow: &'a Flow<'a>, spell: Spell, certainty: f64) -> Self {
        Self {
            flow,
            vm: None,
            spell,
            faster: None,
            beside: false,
            policy: None,
            link: None,
            certainty,
            is_sum: false,
        }
    }

    /// The same with the doubt that a link leaves, where nothing else is quick: half of the sureness
    /// where its line rate would look alike, and nothing where it is that.
    pub(super) fn or_by_a_link(mut self, case: &Case<'_>, device: &Device<'_>) -> Option<Self> {
        match LineRate::of(case, device, self.flow, &self.spell) {
            LineRate::Excluded => {}
            LineRate::Alike(mib_per_s, adapters) => {
                self.link = Some((mib_per_s, adapters));
                self.certainty = self.certainty.min(EITHER);
            }
            LineRate::Reached => return None,
        }
        Some(self)
    }

    /// What stays, in a sentence.
    pub(super) fn stays(&self) -> &'static str {
        if self.is_sum { "a sum of their number and data" } else { "the rate" }
    }

    /// What a rate that stays flat tells where nothing beside it is answered at once.
    pub(super) fn either(&self) -> String {
        let link = self.link.as_ref().map_or(String::new(), |(mib_per_s, _)| {
            format!(", or a link that carries no more than these {} MiB/s", number(*mib_per_s))
        });
        format!(
            "A QoS policy of the array does that, and so does an array that is saturated{link}: \
             these rows do not tell which."
        )
    }

    /// What would make it surer than the rows are.
    pub(super) fn surer(&self) -> Vec<String> {
        if self.policy.is_some() {
            return Vec::new();
        }
        let policy = match self.beside {
            true => "The array's own QoS counters, or its policy for this volume",
            false => "The array's utilization, and its policy for this volume, if it has one",
        };
        let link = self.link.as_ref().map(|(_, adapters)| {
            format!(
                "Load on another device behind {adapters}: a link holds all of them together, and \
                 their sum stays flat; a policy holds this volume alone"
            )
        });
        std::iter::once(policy.into()).chain(link).collect()
    }
}

/// Whether a flow is slow by any measure. What is merely slower than others may be on disks, or
/// miss a cache, and be paced by its application.
pub(super) fn is_slow(device: &Device<'_>, flow: &Flow<'_>, spell: &Spell) -> bool {
    const MOSTLY: f64 = 0.5;
    spell.share(|sample| reaches(flow.davg(sample), device.surely_slow_ms(sample))) > MOSTLY
}

/// Whether other devices of the same array are slow at the same time, by what they are else or by any measure, or load
/// it, and none is quick: then it is no volume that is held, but the array is slow.
pub(super) fn is_array_slow(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> bool {
    let davg_ms = device.flow.per_command(&spell.samples, Flow::davg).unwrap_or_default();
    let is_known = array_of(device.flow.name).is_some();
    if is_known && faster_peer(case, device, spell, davg_ms).is_some() {
        return false;
    }
    let is_so = |other: &Device<'_>| {
        let davg = other.flow.per_command(&spell.samples, Flow::davg);
        let loaded = spell.mean(|sample| other.flow.in_flight(sample)) >= Some(HELD);
        let slow_ms = (CONTRAST * other.quickest_ms).max(device.limits.get(Threshold::QosMs));
        loaded && (davg >= Some(slow_ms) || is_slow(other, &other.flow, spell))
    };
    case.others_of_array(device).any(is_so) || Newcomer::of(case, device, &spell.samples).is_some()
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Facts, fixture::Bench};

    fn volume(nth: u32) -> String {
        format!("naa.624a9370b1c2d3e4f5a6b7c80001100{nth}")
    }

    /// A sister volume of the same array that is quick.
    fn beside_a_quick_one(samples: usize) -> Bench {
        let mut bench = Bench::new(samples);
        let quick = bench.device(&volume(9), 64).vm("quick");
        quick.iops_when(|s| 600.0 + 40.0 * (s % 3) as f64).davg(0.5);
        bench
    }

    fn found(bench: &Bench) -> Vec<(Cause, String)> {
        let findings = bench.findings().into_iter();
        findings.map(|finding| (finding.cause, finding.at.name)).collect()
    }

    #[test]
    fn a_full_queue_before_a_volume_that_its_array_holds_is_no_reason_to_raise_it() {
        let mut bench = beside_a_quick_one(12);
        let held = bench.device(&volume(1), 32);
        held.vm("a").iops(1_000.0).davg(16.0).kavg(44.0);
        held.vm("b").iops(1_000.0).davg(16.0).kavg(4.0);
        assert_eq!(found(&bench), [(Cause::ArrayQos, volume(1))]);
        // Nothing beside it is quick: it may be a depth as well.
        let mut alone = Bench::new(12);
        let full = alone.device(&volume(1), 32);
        full.vm("a").iops(1_000.0).davg(16.0).kavg(44.0);
        full.vm("b").iops(1_000.0).davg(16.0).kavg(4.0);
        assert!(found(&alone).iter().any(|(cause, _)| *cause == Cause::Dsnro));
    }

    #[test]
    fn two_volumes_that_are_held_beside_a_quick_one_are_both_found() {
        for (rate, davg) in [(1_000.0, 30.0), (5_000.0, 6.0), (500.0, 40.0)] {
            let mut bench = beside_a_quick_one(12);
            let inside = |s: usize| 1.0 + 0.1 * (s % 4) as f64;
            bench.device(&volume(1), 64).vm("a").iops(1_000.0).davg_when(move |s| 20.0 * inside(s));
            bench.device(&volume(2), 64).vm("b").iops(rate).davg_when(move |s| davg * inside(s));
            let mut found = found(&bench);
            found.sort_by(|a, b| a.1.cmp(&b.1));
            let both = [(Cause::ArrayQos, volume(1)), (Cause::ArrayQos, volume(2))];
            assert_eq!(found, both, "{rate}");
        }
    }

    #[test]
    fn two_volumes_that_become_slow_at_once_are_a_slow_array() {
        let mut bench = Bench::new(16);
        for (nth, quick, slow) in [(1, 97_000.0, 15_600.0), (2, 24_300.0, 3_860.0)] {
            let vm = bench.device(&volume(nth), 64).vm(["a", "b"][nth as usize - 1]);
            vm.iops_when(move |s| if s < 9 { quick } else { slow + (s % 2) as f64 });
            vm.davg_when(|s| if s < 9 { 0.41 } else { 2.57 });
        }
        let finding = bench.only(Cause::ArraySlow, &Facts::default());
        assert_eq!(finding.also.len(), 1, "{}", finding.sentence);
    }

    #[test]
    fn what_is_served_as_much_at_once_at_other_times_is_asked_for() {
        let mut bench = Bench::new(26);
        let vm = bench.device(&volume(1), 64).vm("sql");
        vm.iops_when(|s| 3_611.0 + [8.0, -21.0, 13.0, 2.0, -9.0][s % 5]);
        vm.davg_when(|s| if s < 12 { 1.2 } else { 15.0 }).sampled(|s| if s < 12 { 4 } else { 54 });
        let finding = bench.only(Cause::ArraySlow, &Facts::default());
        assert_eq!(finding.window.samples, 14);
    }
}
