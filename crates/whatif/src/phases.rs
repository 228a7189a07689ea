//! Loads that begin, end or move in steps, each of several samples: what moves the rate is in the rows then, and is no
//! burst between them.
//!
//! ```text
//!   outstanding |        ___________       a sample in which a step falls has a part of the one load and a part of
//!               |       |           |      the other, so that its mean is between them, and that of its instant is
//!               |    .--|           |--.   one of both: how long the load lasted in it is what its mean is of the
//!               |____|              |__|   higher of the two
//! ```

use crate::rows::{ROUNDING_MS, Row};

/// By how much the loads on the sides of a step differ at least, as a factor.
const STEPS: f64 = 1.3;
/// Commands outstanding that are as good as none.
const NONE: f64 = 0.05;

/// Whether a load goes on from one sample to the next; what is beyond the recording is as here.
fn is_like(row: &Row<'_>, one: Option<usize>, other: Option<usize>) -> bool {
    let stands = |s: Option<usize>| row.outstanding(s?);
    stands(one).zip(stands(other)).is_none_or(|(a, b)| {
        let (low, high) = (a.min(b), a.max(b));
        high <= NONE || high <= STEPS * low
    })
}

/// The greater of the loads between which the one of a sample is, where a step falls into it and those on its sides
/// last for several samples.
fn stepped(row: &Row<'_>, s: usize) -> Option<f64> {
    let before = s.checked_sub(1)?;
    let [was, own, is] = [before, s, s + 1].map(|s| row.outstanding(s));
    let (was, own, is) = (was?, own?, is?);
    let (low, high) = (was.min(is), was.max(is));
    let is_step = high > STEPS * low && (low..high).contains(&own) && high > NONE;
    let lasts =
        is_like(row, before.checked_sub(1), Some(before)) && is_like(row, Some(s + 1), Some(s + 2));
    (is_step && lasts).then_some(high)
}

/// The part of a sample in which a load was there: all of it but where a step falls into it.
pub(crate) fn part_of_time(row: &Row<'_>, s: usize) -> f64 {
    let of = |high: f64| row.outstanding(s).map(|own| (own / high).clamp(0.0, 1.0));
    stepped(row, s).and_then(of).unwrap_or(1.0)
}

/// Of these samples those that have one load each, and whose instants are of that; all where these are next to none.
pub(crate) fn settled(row: &Row<'_>, samples: &[usize]) -> Vec<usize> {
    /// Samples that are enough to tell.
    const LEAST: usize = 4;
    let is_settled = |&s: &usize| {
        let lasts = is_like(row, s.checked_sub(1), Some(s));
        // The instant may be one of the next load already.
        let ends = lasts && !is_like(row, Some(s), Some(s + 1)) && {
            stepped(row, s + 1).is_some() || is_like(row, Some(s + 1), Some(s + 2))
        };
        stepped(row, s).is_none() && !ends
    };
    let settled: Vec<usize> = samples.iter().copied().filter(is_settled).collect();
    if settled.len() < LEAST.min(samples.len()) { samples.to_vec() } else { settled }
}

/// Whether the threads of a guest never pause: at every instant with load as many commands are there as on average
/// around it. Nor are there ever more of them than that.
pub(crate) fn never_pauses(row: &Row<'_>, samples: &[usize]) -> bool {
    /// Part by which the number of an instant may differ.
    const LIKE: f64 = 0.01;
    /// What the last digit of a latency comes to, in seconds.
    const ROUNDING_S: f64 = ROUNDING_MS / 1000.0;
    /// Commands of which one may be there now and then.
    const SOME: f64 = 0.5;
    /// Samples that are enough to tell.
    const LEAST: usize = 4;
    let is_busy = |s: &usize| row.outstanding(*s).is_some_and(|stands| stands > NONE);
    let busy: Vec<usize> = settled(row, samples).into_iter().filter(is_busy).collect();
    let is_still = |&s: &usize| {
        let (present, stands, rate) = (row.present(s)?, row.outstanding(s)?, row.rate(s)?);
        let is_it = (present - stands).abs() <= LIKE * stands + rate * ROUNDING_S;
        Some(is_it && stands > SOME)
    };
    busy.len() >= LEAST && busy.iter().all(|s| is_still(s) == Some(true))
}

/// Commands a second that a limit lets through at most of what was sent in some samples, in time's order, where as
/// many as `waiting` wait for their turns from one sample to the next.
pub(crate) fn mean_most(
    row: &Row<'_>,
    samples: &[usize],
    (limit, waiting): (f64, f64),
    interval_s: f64,
) -> f64 {
    let turns = limit * interval_s;
    let (mut done, mut left) = (0.0, 0.0);
    for &s in samples {
        let sent = row.rate(s).map_or(turns, |rate| rate * interval_s);
        let own = (left + sent).min(turns);
        left = (left + sent - own).min(waiting);
        done += own;
    }
    done / (samples.len().max(1) as f64 * interval_s)
}
