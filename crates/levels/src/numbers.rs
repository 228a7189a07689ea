//! The few statistics that are made of numbers: what was not measured is left out of them, and of
//! nothing there is none.

use counters::sorted::sort_by;
use counters::{PERCENTILES, interval_s};

/// The numbers of a series that were measured: the others are left out of whatever is made of it.
fn measured<V: Into<Option<f64>>>(
    values: impl IntoIterator<Item = V>,
) -> impl Iterator<Item = f64> {
    values.into_iter().filter_map(Into::into)
}

/// The mean of what was measured; `None` of nothing.
#[must_use]
pub fn mean<V: Into<Option<f64>>>(values: impl IntoIterator<Item = V>) -> Option<f64> {
    let (sum, count) = measured(values).fold((0.0, 0.0), |(s, n), value| (s + value, n + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// What numbers of one kind add up to: `None` where one of them was not measured, for the rest is
/// not the sum; and of nothing.
#[must_use]
pub fn sum(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    values.into_iter().reduce(|a, b| Some(a? + b?)).flatten()
}

/// The mean of values by their weights; `None` where these weigh nothing. What is none is left out.
#[must_use]
pub fn weighted_mean(values: impl IntoIterator<Item = Option<(f64, f64)>>) -> Option<f64> {
    let add =
        |(sum, all): (f64, f64), (value, weight): (f64, f64)| (sum + value * weight, all + weight);
    let (sum, all) = values.into_iter().flatten().fold((0.0, 0.0), add);
    (all > 0.0).then(|| sum / all)
}

/// The median length of the intervals between samples, in seconds; `None` of a single one.
#[must_use]
pub fn usual_interval_s(times_ms: &[i64]) -> Option<f64> {
    median((1..times_ms.len()).map(|sample| interval_s(times_ms, sample)))
}

/// The largest of what was measured; `None` of nothing.
#[must_use]
pub fn largest<V: Into<Option<f64>>>(values: impl IntoIterator<Item = V>) -> Option<f64> {
    measured(values).reduce(f64::max)
}

/// The value that half of the measured ones do not exceed, of two in the middle the lower: a value
/// that was measured, and so a limit that was in force. `None` of nothing.
#[must_use]
pub fn median<V: Into<Option<f64>>>(values: impl IntoIterator<Item = V>) -> Option<f64> {
    quantile(values, 0.5)
}

/// The least of the measured values that a share (0 to 1) of all do not exceed; `None` of nothing.
/// A histogram's is [`counters::Histogram::quantile`].
#[must_use]
pub fn quantile<V: Into<Option<f64>>>(
    values: impl IntoIterator<Item = V>,
    share: f64,
) -> Option<f64> {
    let alike = measured(values).map(|value| Some((value, 1.0)));
    weighted_quantiles(alike, [share]).map(|[value]| value)
}

/// The least of the values that those with so much of all weight do not exceed, for each of the
/// shares (0 to 1); `None` where nothing weighs anything. What is none is left out.
#[must_use]
pub fn weighted_quantiles<const N: usize>(
    values: impl IntoIterator<Item = Option<(f64, f64)>>,
    shares: [f64; N],
) -> Option<[f64; N]> {
    /// A sum of weights may miss by its rounding what the same share of all comes to.
    const ROUNDED: f64 = 1.0 - 1e-9;
    let mut sorted: Vec<(f64, f64)> = values.into_iter().flatten().collect();
    sorted.retain(|(_, weight)| *weight > 0.0);
    sort_by(&mut sorted, |a, b| a.0.total_cmp(&b.0));
    let &(last, _) = sorted.last()?;
    let all: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    Some(shares.map(|share| {
        let (wanted, mut below) = (share * all * ROUNDED, 0.0);
        let reached = sorted.iter().find(|(_, weight)| {
            below += weight;
            below >= wanted
        });
        reached.map_or(last, |(value, _)| *value)
    }))
}

/// Puts items in order, the one with the largest number first, NaN last; equals stay as they were.
pub fn most_first<T>(items: &mut [T], number: impl Fn(&T) -> f64) {
    let number = |item: &T| {
        Some(number(item)).filter(|number| !number.is_nan()).unwrap_or(f64::NEG_INFINITY)
    };
    sort_by(items, |one, other| number(other).total_cmp(&number(one)));
}

/// P50, P95 and P99 of a latency: what it is of so many of the commands at most, each taken for the
/// mean of its sample. A sample has its latency and its commands.
#[must_use]
pub fn latency_percentiles(
    samples: impl IntoIterator<Item = Option<(f64, f64)>>,
) -> Option<[f64; 3]> {
    weighted_quantiles(samples, PERCENTILES.map(|(_, share)| share))
}

/// The value that occurs most often; the first of them when there are several.
#[must_use]
pub fn most_frequent(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut counts: Vec<(f64, usize)> = Vec::new();
    for value in values {
        match counts.iter_mut().find(|(seen, _)| *seen == value) {
            Some((_, count)) => *count += 1,
            None => counts.push((value, 1)),
        }
    }
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(value, _)| value)
}

/// How far a series moves from one value to the next, in percent: the median of the relative
/// steps, so that a level that changes once is still flat. Of two in the middle it is the larger: two
/// steps are too few to call one of them the exception. `None` for fewer than two values.
#[must_use]
pub fn unrest_percent(values: &[f64]) -> Option<f64> {
    let steps = values.windows(2).filter_map(|pair| match *pair {
        [a, b] if a.max(b) > 0.0 => Some(-100.0 * (a - b).abs() / a.max(b)),
        _ => None,
    });
    median(steps).map(f64::abs)
}

/// Whether a rate looks like a setting: two significant digits and the rest nothing, to 1 %.
#[must_use]
pub fn is_round(rate: f64) -> bool {
    is_round_within(rate, 0.01)
}

/// Whether a rate is that of a setting to some part of it.
#[must_use]
pub fn is_round_within(rate: f64, part: f64) -> bool {
    const LEADING: [f64; 12] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0, 10.0];
    if rate < 1.0 {
        return false;
    }
    let leading = rate / 10_f64.powf(rate.log10().floor());
    LEADING.iter().any(|round| (leading - round).abs() <= part * round)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_nothing_are_nothing() {
        let nothing: [Option<f64>; 2] = [None; 2];
        assert_eq!((mean(nothing), largest(nothing), sum(nothing)), (None, None, None));
        assert_eq!(sum([]), None);
        assert_eq!((quantile(nothing, 0.95), median(nothing)), (None, None));
        assert_eq!(most_frequent([]), None);
        assert_eq!(unrest_percent(&[1.0]), None);
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let values = [Some(1.0), None, Some(3.0)];
        assert_eq!((mean(values), largest(values)), (Some(2.0), Some(3.0)));
        assert_eq!(quantile(values, 0.0), Some(1.0));
    }

    #[test]
    fn the_most_comes_first_and_equals_stay_as_they_were() {
        for case in 0..4_usize.pow(5) {
            let number =
                |place: usize| [f64::NAN, 1.0, 2.0, 3.0][case / 4_usize.pow(place as u32) % 4];
            let mut items = [0, 1, 2, 3, 4];
            most_first(&mut items, |&item| number(item));
            let worth = |place: usize| if number(place).is_nan() { 0.0 } else { number(place) };
            let in_order = |pair: &[usize]| {
                let (one, next) = (worth(pair[0]), worth(pair[1]));
                one > next || one == next && pair[0] < pair[1]
            };
            assert!(items.windows(2).all(in_order), "case {case}: {items:?}");
        }
    }

    #[test]
    fn what_lacks_a_part_has_no_sum() {
        assert_eq!(sum([Some(1.0), Some(2.0)]), Some(3.0));
        assert_eq!(sum([Some(1.0), None]), None);
    }

    #[test]
    fn a_percentile_is_the_least_value_that_so_many_do_not_exceed() {
        let to = |last: u32| (1..=last).rev().map(f64::from);
        let of = |last| [0.0, 0.5, 0.95, 0.99, 1.0].map(|share| quantile(to(last), share));
        assert_eq!(of(100), [1.0, 50.0, 95.0, 99.0, 100.0].map(Some));
        assert_eq!(of(20), [1.0, 10.0, 19.0, 20.0, 20.0].map(Some));
        assert_eq!(of(3), [1.0, 2.0, 3.0, 3.0, 3.0].map(Some));
        assert_eq!(quantile(to(100), 0.07), Some(7.0));
    }

    #[test]
    fn a_percentile_of_a_latency_is_of_its_commands_and_not_of_its_samples() {
        let quiet = (0..9).map(|_| Some((1.0, 10.0)));
        let busy = [Some((20.0, 910.0)), None];
        assert_eq!(latency_percentiles(quiet.chain(busy)), Some([20.0; 3]));
        assert_eq!(latency_percentiles([Some((5.0, 0.0))]), None);
    }

    #[test]
    fn of_two_in_the_middle_the_median_is_the_lower() {
        assert_eq!(median([9.0, 1.0, 4.0, 2.0]), Some(2.0));
        assert_eq!(median([Some(3.0), None, Some(1.0), Some(2.0)]), Some(2.0));
    }

    #[test]
    fn a_hole_is_no_usual_interval() {
        assert_eq!(usual_interval_s(&[0, 5_000, 10_000, 310_000, 315_000]), Some(5.0));
        assert_eq!(usual_interval_s(&[0]), None);
    }

    #[test]
    fn a_percentile_by_weight_is_that_of_what_the_values_stand_for() {
        let values =
            [Some((9.0, 5.0)), Some((1.0, 90.0)), None, Some((4.0, 5.0)), Some((99.0, 0.0))];
        let shares = [0.5, 0.9, 0.95, 0.96, 1.0];
        assert_eq!(weighted_quantiles(values, shares), Some([1.0, 1.0, 4.0, 9.0, 9.0]));
        assert_eq!(weighted_quantiles([Some((1.0, 0.0)), None], shares), None);
    }

    #[test]
    fn a_level_that_changes_once_is_flat() {
        assert_eq!(unrest_percent(&[52.0, 52.0, 52.0, 26.0, 26.0]), Some(0.0));
        assert_eq!(unrest_percent(&[50.0, 100.0, 50.0]), Some(50.0));
        assert_eq!(unrest_percent(&[50.0, 100.0, 100.0]), Some(50.0));
    }

    #[test]
    fn the_most_frequent_value_is_found() {
        assert_eq!(most_frequent([128.0, 32.0, 32.0, 128.0]), Some(128.0));
        assert_eq!(most_frequent([128.0, 32.0, 32.0]), Some(32.0));
    }

    #[test]
    fn settings_are_round() {
        assert!([1_000.0, 2_512.0, 64_500.0 / 43.0].map(is_round).iter().all(|round| *round));
        assert!([0.0, 0.5, 1_370.0, 33_000.0].map(is_round).iter().all(|round| !round));
    }
}
