//! The line rate of a link: what stays flat is bytes, not commands, and all that goes over the link is
//! held together. No source lists the rates of links, so only rows of adapters tell.

use super::Case;
use crate::{Adapter, Device, Flow, Spell, Threshold, unrest_percent};

/// How much a series moves at most that is held by a setting or a link.
pub(super) const STEADY_PERCENT: f64 = 1.0;

/// What a line rate has to do with a flow that stays flat.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LineRate {
    /// Nothing: its bytes are few or not flat, or its adapters carry more at other times.
    Excluded,
    /// It would look the same: so many MiB/s, over those adapters.
    Alike(f64, String),
    /// It is what holds the flow: that of an adapter, and not of one of its devices, stays flat.
    Reached,
}

impl LineRate {
    /// How much more an adapter carries at its best than at its line rate.
    const MORE: f64 = 1.2;

    pub(super) fn of(case: &Case<'_>, device: &Device<'_>, flow: &Flow<'_>, spell: &Spell) -> Self {
        let Some(mib_per_s) = spell.mean(|sample| flow.mib_per_s(sample)) else {
            return Self::Excluded;
        };
        let adapters = case.host.adapters_of(device);
        let carries_more = |adapter: &&Adapter<'_>| {
            let all = (0..case.host.times_ms.len()).filter_map(|s| adapter.flow.mib_per_s(s));
            let held = spell.mean(|sample| adapter.flow.mib_per_s(sample));
            held.is_some_and(|held| all.fold(0.0, f64::max) > Self::MORE * held)
        };
        let is_slow = mib_per_s < device.limits.get(Threshold::TransferMib);
        if is_slow || !is_of_bytes(flow, spell) || adapters.iter().any(carries_more) {
            return Self::Excluded;
        }
        if adapters.iter().any(|adapter| is_flatter(&adapter.flow, flow, spell)) {
            return Self::Reached;
        }
        let names: Vec<_> = adapters.iter().map(|adapter| adapter.flow.name).collect();
        Self::Alike(mib_per_s, if names.is_empty() { "its HBA".into() } else { names.join(", ") })
    }
}

fn unrest(spell: &Spell, value: impl Fn(usize) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = spell.samples.iter().filter_map(|&sample| value(sample)).collect();
    unrest_percent(&values)
}

/// Whether the bytes of a flow stay at least as flat as its commands, as far as two decimals tell.
fn is_of_bytes(flow: &Flow<'_>, spell: &Spell) -> bool {
    const GRAIN_PERCENT: f64 = 0.1;
    let [bytes, commands] = [unrest(spell, |s| flow.mib_per_s(s)), unrest(spell, |s| flow.rate(s))];
    bytes.zip(commands).is_some_and(|(bytes, commands)| bytes <= commands + GRAIN_PERCENT)
}

/// Whether the sum of an adapter stays flat while what one device has of it moves.
fn is_flatter(sum: &Flow<'_>, part: &Flow<'_>, spell: &Spell) -> bool {
    const TIMES: f64 = 3.0;
    let [sum, part] = [sum, part].map(|flow| unrest(spell, |s| flow.mib_per_s(s)));
    sum.zip(part)
        .is_some_and(|(sum, part)| sum <= STEADY_PERCENT && part >= TIMES * sum.max(STEADY_PERCENT))
}
