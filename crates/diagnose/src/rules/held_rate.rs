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

impl Held<'_> {
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
    let array = array_of(device.flow.name);
    let davg_ms = device.flow.per_command(&spell.samples, Flow::davg).unwrap_or_default();
    if array.is_some() && faster_peer(case, device, spell, davg_ms).is_some() {
        return false;
    }
    let is_so = |other: &Device<'_>| {
        let davg = other.flow.per_command(&spell.samples, Flow::davg);
        let loaded = spell.mean(|sample| other.flow.in_flight(sample)) >= Some(HELD);
        let slow_ms = (CONTRAST * other.quickest_ms).max(device.limits.get(Threshold::QosMs));
        loaded && (davg >= Some(slow_ms) || is_slow(other, &other.flow, spell))
    };
    let mut others = case.host.busy_devices().filter(|other| other.id != device.id);
    array.is_some() && others.any(|other| array_of(other.flow.name) == array && is_so(other))
        || Newcomer::of(case, device, &spell.samples).is_some()
}
