//! When a device is slow by its latency, for the rules on what may make it so: the array, and the links on the way
//! there.

use super::Case;
use crate::{Device, Flow, Spell, Threshold, reaches};

/// When a latency of a device is too long: for as long as it is, or in the mean of all commands; a stall counts in one
/// sample. `ms` is that latency, and `is_known` tells where another sign than it counts.
pub(super) fn spell(
    case: &Case<'_>,
    device: &Device<'_>,
    ms: &dyn Fn(usize) -> Option<f64>,
    is_known: &dyn Fn(usize) -> bool,
) -> Option<Spell> {
    let (flow, limit) = (&device.flow, |threshold| device.limits.get(threshold));
    let stands = |sample| flow.in_flight(sample) >= Some(limit(Threshold::BusyOutstanding));
    let are_many = |sample| {
        let commands = flow.rate(sample).map(|rate| rate * case.host.interval_s(sample));
        commands >= Some(limit(Threshold::MinCommands))
    };
    let is_slow = |sample| {
        let is_slow = (is_known(sample) || reaches(ms(sample), device.slow_ms(sample)))
            && stands(sample)
            || reaches(ms(sample), device.surely_slow_ms(sample)) && are_many(sample);
        is_slow && !device.stalls.contains_key(&sample)
    };
    let stalls = |sample| ms(sample) >= Some(limit(Threshold::StallMs)) && stands(sample);
    let excess_ms = |_: &Flow<'_>, s| Some(ms(s)? - device.surely_slow_ms(s)?);
    let is_slow_in_the_mean = flow.per_command(&device.busy, excess_ms) >= Some(0.0);
    device
        .spell(is_slow)
        .or_else(|| Spell::any(&device.busy, stalls))
        .or_else(|| Spell::any(&device.busy, is_slow).filter(|_| is_slow_in_the_mean))
}
