//! What stays of commands of several sizes that are held to a limit which counts by size, of the host or of an array: a
//! sum of their number and their data.

use super::{
    Case,
    steady::{ENOUGH_SAMPLES, MANY_SAMPLES, STILLER, is_held, is_surely_held},
};
use crate::{Spell, unrest_percent};

/// The sum of a rate and of the data that goes with it which does not move in some samples, as a rate, where there is
/// one.
pub(super) fn held_to_a_sum<'a>(
    case: &Case<'_>,
    spell: &Spell,
    [rate, kib_per_s]: [&'a dyn Fn(usize) -> Option<f64>; 2],
) -> Option<impl Fn(usize) -> Option<f64> + 'a> {
    let [rate_mean, kib_mean] = [rate, kib_per_s].map(|of| spell.mean(of).filter(|n| *n > 0.0));
    let (rate_mean, kib_mean) = (rate_mean?, kib_mean?);
    let parts = move |s: usize| Some((rate(s)? / rate_mean, kib_per_s(s)? / kib_mean));
    let pairs: Vec<(f64, f64)> = spell.samples.iter().filter_map(|&s| parts(s)).collect();
    let commands = spell.mean(|s| Some(rate(s)? * case.host.interval_s(s)))?;
    let [of_rate, of_data] = held_sum(&pairs, commands)?;
    Some(move |s| parts(s).map(|(a, b)| rate_mean * (of_rate * a + of_data * b)))
}

/// The weights, from 0 to 1, of two rates in the sum of both that moves least from sample to sample, each rate as a part of
/// its mean, where that sum is held and far stiller than the first rate alone; `commands` are those of an interval.
///
/// An IOPS limit counts each begun cost unit of a command [LAMW], so of commands of several sizes neither their number
/// stays nor their data, but a sum of both: exactly of two sizes, and nearly of more. What comes or ends by chance moves any such
/// sum at least as far as the root of its number does, for it is a compound Poisson sum: its variation is that of
/// the number times the root of 1 and the squared variation of what each counts. One weight is fitted, so as many samples are asked for as tell
/// half of chance from all of it; fewer tell the data alone.
fn held_sum(pairs: &[(f64, f64)], commands: f64) -> Option<[f64; 2]> {
    const WEIGHTS: u32 = 50;
    // The data alone are no weight to fit.
    let first = if pairs.len() < MANY_SAMPLES { WEIGHTS } else { 0 };
    if pairs.len() < ENOUGH_SAMPLES {
        return None;
    }
    let of_chance = |values: Vec<f64>| Some(unrest_percent(&values)? / 100.0 * commands.sqrt());
    let moves = |weight: f64| {
        of_chance(pairs.iter().map(|(a, b)| (1.0 - weight) * a + weight * b).collect())
    };
    // Of one size there is no sum to hold: what moves is what is printed.
    if is_held(of_chance(pairs.iter().map(|(a, b)| b / a).collect())) {
        return None;
    }
    let weights = (first..=WEIGHTS).map(|nth| f64::from(nth) / f64::from(WEIGHTS));
    let all = weights.filter_map(|weight| Some((moves(weight)?, weight)));
    let (least, weight) = all.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let of_rate = moves(0.0);
    let is_stiller = !is_surely_held(of_rate) && Some(least) <= of_rate.map(|of| STILLER * of);
    (is_stiller && is_held(Some(least))).then_some([1.0 - weight, weight])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, fixture::Bench};

    /// Of 4 and 64 KiB, each by chance, 16 outstanding: held to 100 MiB a second, or as many as the array does.
    #[test]
    fn a_bandwidth_at_which_commands_of_two_sizes_stay_is_qos() {
        let chance = |s: usize| [0.3, -1.2, 0.8, 1.4, -0.5, -0.9, 0.1][s % 7];
        let kib = move |s: usize| 4.0 + 60.0 * (0.3 + 0.006 * chance(s));
        let found = |rate: &'static dyn Fn(f64, f64) -> f64| {
            let mut bench = Bench::new(28);
            let name = |nth| format!("naa.600a098038303634722b4d5a6b6f724{nth}");
            bench.device(&name(2), 254).vm("web").iops_when(|s| 400.0 + (s % 5) as f64).davg(0.4);
            let rate = move |s: usize| rate(kib(s), [0.7, -0.4, 1.3, -1.5, 0.2][s % 5]);
            let vm = bench.device(&name(1), 254).vm("sql").size_kib_when(kib);
            vm.iops_when(rate).davg_when(move |s| 16_000.0 / rate(s));
            bench.findings().into_iter().find(|finding| finding.cause == Cause::ArrayQos)
        };
        let held = found(&|kib, _| 102_400.0 / kib).unwrap();
        assert!(held.sentence.contains("a sum of their number and data"), "{}", held.sentence);
        assert!((0.6..0.8).contains(&held.confidence), "{}", held.confidence);
        let free = found(&|_, chance| 4_655.0 * (1.0 + 0.0066 * chance));
        assert!(free.is_none_or(|free| !free.sentence.contains("a sum of their")));
    }

    /// 70 % of 4 KiB and 30 % of 64 KiB, or three sizes: let go by 1,500 cost units of 32 KiB a second, or as they come.
    #[test]
    fn a_limit_that_counts_by_size_holds_a_sum_of_commands_and_data() {
        const SIZES: [&[(f64, f64)]; 2] =
            [&[(0.7, 4.0), (1.0, 64.0)], &[(0.77, 8.0), (0.92, 128.0), (1.0, 256.0)]];
        let found = |sizes: &[(f64, f64)], is_held: bool, seed: u64| {
            let mut state = seed;
            let mut uniform = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as f64 / f64::from(1_u32 << 31)
            };
            let (mut pairs, mut over) = (Vec::new(), 0.0);
            for _ in 0..20 {
                let (mut commands, mut kib, mut units) = (0.0, 0.0, over);
                let by_chance = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
                let come = 5_000.0 + by_chance * 5_000_f64.sqrt();
                while if is_held { units < 7_500.0 } else { commands < come } {
                    let drawn = uniform();
                    let size = sizes.iter().find(|(below, _)| drawn < *below).unwrap().1;
                    commands += 1.0;
                    kib += size;
                    units += (size / 32.0).ceil();
                }
                over = units - 7_500.0;
                pairs.push((commands, kib));
            }
            let all = pairs.iter().map(|pair| pair.0).sum::<f64>() / pairs.len() as f64;
            let kib = pairs.iter().map(|pair| pair.1).sum::<f64>() / pairs.len() as f64;
            pairs.iter_mut().for_each(|pair| *pair = (pair.0 / all, pair.1 / kib));
            held_sum(&pairs, all).is_some()
        };
        for sizes in SIZES {
            let [held, free] =
                [true, false].map(|held| (0..100).filter(|seed| found(sizes, held, *seed)).count());
            assert!(held >= 99 && free <= 1, "{held} {free}");
        }
    }
}
