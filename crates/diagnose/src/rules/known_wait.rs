//! A wait below the host that is known in the mean, as that for a policy, a command window or a link is in a run: when it
//! counts, and for how many commands.

use levels::little;

use super::Case;
use crate::{Device, Flow, Spell, facts::share};

/// The part of the time below the host from which such a wait counts.
pub(super) const COUNTS: f64 = 0.1;
/// The part of it from which it is what makes a device slow.
pub(super) const MOST: f64 = 0.5;
/// The share of a link in use from which it is what holds the devices, whatever else takes its time.
const FULL: f64 = 0.9;
/// What is to be left alone where commands wait for a link.
pub(super) const NO_DEEPER: &str =
    "Do not raise the depth of devices, nor DSNRO: more commands only wait for the same link.";

/// The samples in which commands take longer than they do without it.
pub(super) struct KnownWait {
    pub(super) spell: Spell,
    /// What they take below the host then, in milliseconds.
    pub(super) davg_ms: f64,
    /// What they take without it.
    pub(super) free_ms: f64,
    /// Mean commands that wait.
    pub(super) inside: f64,
}

impl KnownWait {
    /// That of a row on a device, of so many milliseconds in the mean of all its samples.
    pub(super) fn of(device: &Device<'_>, flow: &Flow<'_>, wait_ms: f64) -> Option<Self> {
        let free_ms = (flow.per_command(&device.busy, Flow::davg)? - wait_ms).max(0.0);
        let counts = |s| flow.davg(s).is_some_and(|davg| davg - free_ms >= COUNTS * davg);
        let spell = device.spell(counts)?;
        let davg_ms = flow.per_command(&spell.samples, Flow::davg)?;
        let inside = little(flow.mean_rate(&spell.samples)?, davg_ms - free_ms);
        Some(Self { spell, davg_ms, free_ms, inside })
    }

    /// That of a whole device, where it counts in the mean as well.
    pub(super) fn of_device(device: &Device<'_>, wait_ms: f64) -> Option<Self> {
        let mean_ms = device.flow.per_command(&device.busy, Flow::davg)?;
        (wait_ms >= COUNTS * mean_ms).then(|| Self::of(device, &device.flow, wait_ms))?
    }
}

/// A device whose commands wait for a link, of which `L` is known.
pub(super) struct OnLink<'a, L> {
    pub(super) device: &'a Device<'a>,
    pub(super) link: &'a L,
    pub(super) spell: Spell,
    pub(super) davg_ms: f64,
    /// The part of it on the link.
    pub(super) link_ms: f64,
    /// The share of the link in use.
    pub(super) busy: f64,
    /// Mean commands on the link.
    pub(super) inside: f64,
}

impl<'a, L> OnLink<'a, L> {
    /// As far as it counts: the samples in which commands take longer than they do without the link, on which they are so
    /// long in the mean, and which is so full in each sample.
    pub(super) fn of(
        device: &'a Device<'a>,
        link: &'a L,
        (time_ms, busy): (f64, &[f64]),
    ) -> Option<Self> {
        let KnownWait { spell, davg_ms, free_ms, inside } = KnownWait::of_device(device, time_ms)?;
        let (link_ms, busy) = (davg_ms - free_ms, share(busy, &spell.samples)?);
        let least = if busy >= FULL { COUNTS } else { MOST };
        let held = Self { device, link, spell, davg_ms, link_ms, busy, inside };
        (link_ms >= least * davg_ms).then_some(held)
    }

    /// Whether the device is slow because of the link, and not of the array as well.
    pub(super) fn explains(&self, case: &Case<'_>) -> bool {
        self.link_ms >= MOST * self.davg_ms && !case.is_array_full(self.device, &self.spell.samples)
    }
}
