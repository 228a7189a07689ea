//! A wait below the host that is known in the mean, as that for a policy, a command window or a link is in a run: when it
//! counts, and for how many commands.

use levels::little;

use crate::{Device, Flow, Spell};

/// The part of the time below the host from which such a wait counts.
pub(super) const COUNTS: f64 = 0.1;
/// The part of it from which it is what makes a device slow.
pub(super) const MOST: f64 = 0.5;

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
