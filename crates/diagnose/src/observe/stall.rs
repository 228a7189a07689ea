//! A device that gave no answer for a part of a sample: what the sample completes proves it.

use std::collections::BTreeMap;

use super::{Device, Host, largest, reaches};
use crate::Threshold;

/// How far more commands than there are slots must be outstanding by Little's law, and how many times
/// longer than those beside them they must take, for them to be older than their sample.
const BEYOND: f64 = 1.1;
const FAR: f64 = 9.0;
/// What a sample completes at most that makes up for one in which nothing did, against the mean.
const MADE_UP: f64 = 2.0;

/// The samples before which a device gave no answer, and for how many seconds.
pub(super) fn all(host: &Host<'_>, device: &Device<'_>) -> BTreeMap<usize, f64> {
    let samples = 0..host.times_ms.len();
    samples.filter_map(|sample| Some((sample, stalled_s(host, device, sample)?))).collect()
}

/// For how many seconds a device gave no answer before what a sample completes, where that is proven:
/// by Little's law far more commands were outstanding than there are slots, so they are older than
/// the sample, and those before and after it are quick. So they are where more commands wait for slots
/// than are in them, at a rate that is none of a burst: all slots were taken for that part of the
/// sample. A mean of a second and more is a slow array's, which has a rule of its own.
fn stalled_s(host: &Host<'_>, device: &Device<'_>, sample: usize) -> Option<f64> {
    let depths = [Some(sample), sample.checked_sub(1)].into_iter().flatten();
    let slots = largest(depths.filter_map(|sample| device.queue.depth_at(sample)))?;
    let inside = device.flow.in_flight(sample)?;
    let stall_ms = device.limits.get(Threshold::StallMs);
    let davg = device.flow.davg(sample).filter(|ms| *ms < stall_ms)?;
    let seconds = inside * host.interval_s(sample) / slots;
    let is_beyond = || inside >= BEYOND * slots || waits_in_a_part(device, sample);
    let measured = |sample: usize| device.flow.davg(sample).filter(|ms| *ms > 0.0);
    // The samples beside it may be far away on an idle device: they are looked for last.
    let is_far = || {
        let before = (0..sample).rev().find_map(measured);
        let after = (sample + 1..host.times_ms.len()).find_map(measured);
        [before, after].into_iter().flatten().all(|ms| davg >= FAR * ms)
    };
    (1_000.0 * seconds >= stall_ms && is_beyond() && is_far()).then_some(seconds)
}

/// Whether more commands wait in a sample than are in the slots, and neither their number nor their
/// size is the reason: what waits beside free slots came while all of them were taken.
fn waits_in_a_part(device: &Device<'_>, sample: usize) -> bool {
    let usual = device.flow.mean_rate(&device.busy).map(|rate| MADE_UP * rate);
    reaches(device.flow.waiting(sample), device.flow.in_flight(sample))
        && reaches(usual, device.flow.rate(sample))
        && reaches(device.flow.davg(sample), device.slow_ms(sample))
}
