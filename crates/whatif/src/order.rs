//! In which order a device serves the VMs that wait for it: that of the host's version, and others that give the
//! same recording.
//!
//! What a VM got is no sign of the order where both give it, and after a change they may give something else: the
//! answer spans them. Which one is in force no counter tells.

use counters::Counter;
use knobs::Setting;

use crate::{
    Error, answer,
    build::Plan,
    reading::{Order, Reading},
    run::{self, Figures, Key},
};

/// Runs each reading with the factors of its arrays, and `settings` in force.
pub(crate) fn run_each(
    plan: &Plan<'_>,
    (readings, scales): (&[Reading], &[Vec<f64>]),
    (settings, keys): (&[Setting], &[Key]),
) -> Result<Vec<Figures>, Error> {
    let texts = readings.iter().zip(scales).map(|(r, scales)| plan.scenario(*r, scales));
    let jobs: Vec<_> = texts.map(|text| (text, settings)).collect();
    run::run_all(&jobs, keys).into_iter().collect()
}

/// The runs of today and after a change, of readings in the usual order, with those in another one by which VMs may
/// be served for all that was recorded.
pub(crate) fn others(
    [plan, changed]: [&Plan<'_>; 2],
    (readings, scales): (&[Reading], &[Vec<f64>]),
    (settings, keys): (&[Setting], &[Key]),
    (mut today, mut after): (Vec<Figures>, Vec<Figures>),
) -> Result<(Vec<Figures>, Vec<Figures>), Error> {
    let gives = |of: &[Figures]| answer::likely(keys.to_vec(), of.to_vec()).is_ok();
    let other = Order::ALL[1];
    let own: Vec<_> = readings.iter().map(|own| Reading { order: other, ..*own }).collect();
    if gives(&today) {
        let own_today = run_each(plan, (&own, scales), (&[], keys))?;
        if gives(&own_today) || is_towards(keys, &today, &own_today) {
            after.extend(run_each(changed, (&own, scales), (settings, keys))?);
            today.extend(own_today);
        }
    }
    Ok((today, after))
}

/// Whether a VM had more or less than it has in one order, and another one goes as far: an order that remembers
/// who was served before is between the two for as long.
fn is_towards(keys: &[Key], one: &[Figures], other: &[Figures]) -> bool {
    /// Part of a rate by which a model may miss it.
    const MISS: f64 = 0.02;
    let ends = |of: &[Figures], index: usize| {
        let means = || of.iter().filter_map(|figures| Some(figures[index]?.mean));
        [means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max)]
    };
    let is_rate = |(_, key): &(usize, &Key)| !key.is_device() && key.is(Counter::Commands);
    keys.iter().enumerate().filter(is_rate).any(|(index, key)| {
        let Some(rate) = key.captured else { return false };
        let ([low, high], [least, most]) = (ends(one, index), ends(other, index));
        let miss = key.chance + MISS;
        rate > high * (1.0 + miss) && most >= rate || rate < low * (1.0 - miss) && least <= rate
    })
}
