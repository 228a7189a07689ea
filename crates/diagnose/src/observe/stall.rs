//! A device that gave no answer for a part of a sample: what the sample completes proves it.

use std::collections::BTreeMap;

use counters::sorted::Ordered;

use super::{Device, Host, largest, reaches};
use crate::Threshold;

/// How far more commands than there are slots must be outstanding by Little's law, and how many times
/// longer than those beside them they must take, for them to be older than their sample.
const BEYOND: f64 = 1.1;
const FAR: f64 = 9.0;
/// What a sample completes at most that makes up for one in which nothing did, against the mean.
const MADE_UP: f64 = 2.0;
/// The part of the slots that is all of them.
const ALL: f64 = 0.95;

/// A time without an answer, as what the next sample completes proves it.
pub(crate) struct Stall {
    pub(crate) seconds: f64,
    /// Whether it may have been longer: nothing tells how long the commands of this device take, or not
    /// all slots are known to have been taken.
    pub(crate) is_least: bool,
}

/// The samples before which a device gave no answer, and for how long.
pub(super) fn all(host: &Host<'_>, device: &Device<'_>) -> BTreeMap<usize, Stall> {
    let samples = 0..host.times_ms.len();
    samples.filter_map(|sample| Some((sample, before(host, device, sample)?))).into_map()
}

/// How long a device gave no answer before what a sample completes, where that is proven: by Little's law
/// far more commands were outstanding than there are slots, so they are older than the sample, and those
/// before and after it are quick. So they are where more commands wait for slots than are in them, at a
/// rate that is none of a burst: all slots were taken for that part of the sample. A mean of a second and
/// more is a slow array's, which has a rule of its own.
///
/// The commands of a sample spend rate x interval x DAVG seconds in slots. As many would have spent
/// rate x interval x the usual DAVG; the rest is the wait of those that a silence of T caught. They are no
/// more than there are slots, and each waited T at most, so
///
/// ```text
///   T >= rate x interval x (DAVG - usual DAVG) / slots,   and equal where all slots were taken at its begin
/// ```
///
/// Where no other sample tells what is usual, all slots may have been taken for all of the sample: T is
/// longer than what they spent by that at least.
fn before(host: &Host<'_>, device: &Device<'_>, sample: usize) -> Option<Stall> {
    let last = sample.checked_sub(1);
    let depths = [Some(sample), last].into_iter().flatten();
    let slots = largest(depths.filter_map(|sample| device.queue.depth_at(sample)))?;
    let (inside, interval_s) = (device.flow.in_flight(sample)?, host.interval_s(sample));
    let stall_ms = device.limits.get(Threshold::StallMs);
    let davg = device.flow.davg(sample).filter(|ms| *ms < stall_ms)?;
    let waits = waits_in_a_part(device, sample);
    let is_beyond = inside >= BEYOND * slots || waits;
    if !is_beyond || 1_000.0 * inside * interval_s < slots * stall_ms {
        return None;
    }
    // The samples beside it may be far away on an idle device: they are looked for last.
    let measured = |sample: usize| device.flow.davg(sample).filter(|ms| *ms > 0.0);
    let earlier = (0..sample).rev().find_map(measured);
    let later = (sample + 1..host.times_ms.len()).find_map(measured);
    let usual = largest([earlier, later].into_iter().flatten());
    let own = match usual {
        Some(usual) => inside * usual / davg,
        None if host.knows_interval(sample) => slots,
        None => return None,
    };
    let were_taken = last.and_then(|last| device.queue.actv.at(last)) >= Some(ALL * slots);
    let stall = Stall {
        seconds: (inside - own) * interval_s / slots,
        is_least: usual.is_none() || !waits && !were_taken,
    };
    let is_far = usual.is_none_or(|usual| davg >= FAR * usual);
    (is_far && 1_000.0 * stall.seconds >= stall_ms).then_some(stall)
}

/// Whether more commands wait in a sample than are in the slots, and neither their number nor their
/// size is the reason: what waits beside free slots came while all of them were taken.
fn waits_in_a_part(device: &Device<'_>, sample: usize) -> bool {
    let usual = device.flow.mean_rate(&device.busy).map(|rate| MADE_UP * rate);
    reaches(device.flow.waiting(sample), device.flow.in_flight(sample))
        && reaches(usual, device.flow.rate(sample))
        && reaches(device.flow.davg(sample), device.slow_ms(sample))
}
