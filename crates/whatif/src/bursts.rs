//! Who sends in bursts that are shorter than a sample, and what a limit leaves of them.
//!
//! The mean of a sample does not tell how long a burst is. It has no more outstanding than slots are there, or
//! than its virtual disk lets through where it waits for some, so it lasts that part of the sample at least that
//! its mean is of those; a limit cuts what comes meanwhile, and leaves unused what it would let through between.
//!
//! ```text
//!   outstanding |  most  ___      ___      a limit gives  min(limit, burst) * duty  to the mean,
//!               |       |   |    |   |     and the duty is  mean / most  at least
//!          mean |- - - -|- -|- - |- -|- -
//!               +-------'   '----'   '---
//! ```

use levels::{largest, mean};

use crate::{
    observe::{Tenant, is_unlike_a_queue},
    phases,
    rows::Row,
};

/// Bursts of a VM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bursts {
    /// The most commands that it has outstanding in one.
    pub(crate) most: f64,
    /// The most that an instant showed, where none of them waits for a slot.
    pub(crate) seen: Option<f64>,
}

impl Bursts {
    /// Those of a VM on a device with so many slots, where its instants or its rates show some.
    pub(crate) fn of(
        tenant: &Tenant<'_>,
        window: &[usize],
        (slots, interval_s): (Option<f64>, f64),
    ) -> Option<Self> {
        /// Part of a latency that is no wait.
        const NO_WAIT: f64 = 0.1;
        let world = tenant.world.as_ref()?;
        // Each instant, and the mean around it.
        let both = |s: &usize| world.present(*s).zip(world.outstanding(*s));
        // A step from one load to another is no burst.
        let settled = phases::settled(world, window);
        let instants: Option<Vec<(f64, f64)>> = settled.iter().map(both).collect();
        let stands = world.mean(window, Row::outstanding)?;
        let shows = match instants.as_deref() {
            Some(instants) => !is_steady(instants) || is_unlike_a_queue(instants),
            None => moves(&tenant.row, &settled, interval_s),
        };
        let all = tenant.outstanding_at_most();
        let of = |latency| world.per_command(window, latency);
        let is_free = of(Row::kavg)? <= NO_WAIT * of(Row::gavg)?;
        let most = slots.filter(|_| is_free).map_or(all, |slots| slots.min(all));
        let is_sure = instants.as_deref().is_some_and(is_beyond_chance);
        let seen = largest(instants.into_iter().flatten().map(|(n, _)| n));
        let seen = seen.filter(|_| is_free && is_sure);
        shows
            .then_some(Self { most: most.max(stands).max(seen.unwrap_or_default()).max(1.0), seen })
    }

    /// What a limit leaves at least of a rate with so many outstanding on average, in commands a second.
    pub(crate) fn least(self, (rate, outstanding): (f64, f64), limit: f64) -> f64 {
        rate.min(limit * (outstanding / self.most).min(1.0))
    }
}

/// What a limit leaves at least of what a guest that sends in bursts does in some samples, in commands a second.
pub(crate) fn mean_least(
    (row, bursts): (&Row<'_>, Option<Bursts>),
    samples: &[usize],
    limit: f64,
) -> f64 {
    let of = |&s: &usize| {
        let load = (row.rate(s)?, row.outstanding(s)?);
        let own = || load.0.min(limit * phases::part_of_time(row, s));
        Some(bursts.map_or_else(own, |bursts| bursts.least(load, limit)))
    };
    mean(samples.iter().map(of)).unwrap_or_default()
}

/// Whether instants show about as many as there are on average around them, and no more unevenly than chance makes
/// them.
fn is_steady(instants: &[(f64, f64)]) -> bool {
    /// Standard errors of their mean.
    const ERRORS: f64 = 2.5;
    /// The same of how often nothing is there.
    const EMPTY: f64 = 1.5;
    /// How much more than chance they may vary.
    const CHANCE: f64 = 2.0;
    /// What the last digits of what is printed come to, as a part of the mean and in commands.
    const GRAIN: [f64; 2] = [0.02, 0.1];
    let of =
        |of: &dyn Fn(f64, f64) -> f64| mean(instants.iter().map(|&(n, mean)| Some(of(n, mean))));
    let all = (of(&|n, mean| n - mean), of(&|n, mean| (n - mean).powi(2)), of(&|_, mean| mean));
    let (Some(apart), Some(squares), Some(stands)) = all else { return false };
    let error = ERRORS * (stands / instants.len() as f64).sqrt();
    let empty = of(&|n, _| f64::from(u8::from(n < 1.0))).unwrap_or_default();
    // Of a stream that never rests, as of a Poisson process at most; in samples without load nothing is there.
    let usual = of(&|_, mean| (-mean).exp()).unwrap_or_default();
    let often = usual + EMPTY * (usual * (1.0 - usual) / instants.len() as f64).sqrt();
    empty <= often
        && apart.abs() <= error + GRAIN[0] * stands + GRAIN[1]
        && squares <= CHANCE * stands + GRAIN[1]
}

/// Whether instants vary about the means around them so much more than those of a Poisson process that chance does not
/// make it: their squares over the mean are chi-squared then, with a variance of twice their number.
fn is_beyond_chance(instants: &[(f64, f64)]) -> bool {
    /// Standard errors of that, which is skewed: 1 in some thousands at ten instants.
    const ERRORS: f64 = 5.0;
    let of =
        |of: &dyn Fn(f64, f64) -> f64| mean(instants.iter().map(|&(n, mean)| Some(of(n, mean))));
    let both = of(&|n, mean| (n - mean).powi(2)).zip(of(&|_, mean| mean));
    let most = 1.0 + ERRORS * (2.0 / instants.len().max(1) as f64).sqrt();
    both.is_some_and(|(squares, stands)| squares > most * stands)
}

/// Whether its rate moves from sample to sample by more than chance: a change from one level of load to another
/// does not count.
fn moves(row: &Row<'_>, window: &[usize], interval_s: f64) -> bool {
    /// How much more than chance counts may differ, by their variance.
    const CHANCE: f64 = 4.0;
    /// The part by which they may besides.
    const PART: f64 = 0.02;
    /// The load changes where it is so much higher than before, as a factor.
    const JUMPS: f64 = 1.3;
    /// The part of the steps that are such changes at most.
    const FEW: f64 = 0.2;
    let count = |s: usize| Some(row.rate(s)? * interval_s);
    let all: Vec<(f64, f64)> =
        window.windows(2).filter_map(|two| count(two[0]).zip(count(two[1]))).collect();
    let stays = |(a, b): &&(f64, f64)| a.max(*b) <= JUMPS * a.min(*b);
    let still: Vec<(f64, f64)> = all.iter().filter(stays).copied().collect();
    let is_of_levels = (all.len() - still.len()) as f64 <= FEW * all.len() as f64;
    let steps = if is_of_levels { still } else { all };
    let variance = mean(steps.iter().map(|(a, b)| Some((a - b).powi(2) / 2.0)));
    let middle = mean(window.iter().map(|&s| count(s)));
    variance
        .zip(middle)
        .is_some_and(|(variance, middle)| variance > CHANCE * middle + (PART * middle).powi(2))
}
