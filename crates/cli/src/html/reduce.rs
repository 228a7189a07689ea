//! Long series made short enough for a page: of each bucket of samples the least and the largest
//! value stay, so peaks survive; and numbers written with four significant digits, runs of one
//! value as `[value,count]`.

use std::fmt::Write;

use counters::PERCENTILES;

/// Samples that go into a bucket so that at most `points` are left; 1 when nothing is reduced.
pub(super) fn bucket(samples: usize, points: usize) -> usize {
    if samples <= points { 1 } else { samples.div_ceil(points / 2) }
}

/// The least and the largest value of each bucket, in the order in which they came. A bucket
/// without a value stays without one.
pub(super) fn reduce(values: &[f64], bucket: usize) -> Vec<f64> {
    ends(values, bucket, extremes)
}

/// The first and the last instant of each bucket: where its two values are drawn.
pub(super) fn instants(times_ms: &[i64], bucket: usize) -> Vec<i64> {
    ends(times_ms, bucket, |times| match times {
        [] => [0, 0],
        [first, .., last] | [first @ last] => [*first, *last],
    })
}

/// Two values for each bucket of several samples, and one for a sample alone.
fn ends<T: Copy>(values: &[T], bucket: usize, of: fn(&[T]) -> [T; 2]) -> Vec<T> {
    let mut reduced = Vec::new();
    for bucket in values.chunks(bucket.max(1)) {
        match bucket {
            [one] => reduced.push(*one),
            several => reduced.extend(of(several)),
        }
    }
    reduced
}

fn extremes(values: &[f64]) -> [f64; 2] {
    let there = || values.iter().copied().enumerate().filter(|(_, value)| !value.is_nan());
    let least = there().min_by(|a, b| a.1.total_cmp(&b.1));
    let largest = there().max_by(|a, b| a.1.total_cmp(&b.1));
    match (least, largest) {
        (Some((low_at, low)), Some((high_at, high))) if high_at < low_at => [high, low],
        (Some((_, low)), Some((_, high))) => [low, high],
        _ => [f64::NAN; 2],
    }
}

/// P50, P95, P99 and the maximum of the values that there are.
pub(super) fn percentiles(values: &[f64]) -> Option<[f64; 4]> {
    let [p50, p95, p99] = PERCENTILES.map(|(_, share)| share);
    let there = values.iter().map(|value| (!value.is_nan()).then_some((*value, 1.0)));
    levels::weighted_quantiles(there, [p50, p95, p99, 1.0])
}

/// Values as a JSON array; none is null.
pub(super) fn pack(values: &[f64]) -> String {
    packed(values.iter().map(|value| short(*value)))
}

/// Instants as a JSON array: the first one, and then the steps.
pub(super) fn pack_instants(times_ms: &[i64]) -> String {
    let first = times_ms.iter().take(1).map(ToString::to_string);
    let steps = times_ms.windows(2).map(|pair| match *pair {
        [from, to] => to.saturating_sub(from).to_string(),
        _ => String::new(),
    });
    packed(first.chain(steps))
}

fn packed(cells: impl Iterator<Item = String>) -> String {
    let mut runs: Vec<(String, usize)> = Vec::new();
    for cell in cells {
        match runs.last_mut().filter(|(last, _)| *last == cell) {
            Some((_, count)) => *count += 1,
            None => runs.push((cell, 1)),
        }
    }
    let mut json = String::from("[");
    for (index, (cell, count)) in runs.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = match count {
            1 => write!(json, "{comma}{cell}"),
            count => write!(json, "{comma}[{cell},{count}]"),
        };
    }
    json + "]"
}

/// A number with four significant digits, at most six of them behind the point.
pub(super) fn short(value: f64) -> String {
    const SIGNIFICANT: i32 = 4;
    if !value.is_finite() {
        return "null".into();
    }
    let before = if value == 0.0 { 1 } else { value.abs().log10().floor() as i32 + 1 };
    let decimals = (SIGNIFICANT - before).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const NONE: f64 = f64::NAN;

    #[test]
    fn peaks_and_holes_survive_in_their_order() {
        let values = [1.0, 9.0, 2.0, 5.0, 0.5, 4.0, NONE, NONE, NONE, NONE, 3.0, NONE, 7.0];
        assert_eq!(pack(&reduce(&values, 3)), "[1,9,5,0.5,[null,2],[3,2],7]");
        assert_eq!(instants(&[0, 5, 10, 15, 20, 25, 30], 3), [0, 10, 15, 25, 30]);
        assert_eq!(reduce(&values[..6], 1), values[..6]);
    }

    #[test]
    fn no_more_points_are_left_than_asked_for() {
        for samples in [0, 1, 1_999, 2_000, 2_001, 4_500, 86_400] {
            let bucket = bucket(samples, 2_000);
            let left = reduce(&vec![1.0; samples], bucket).len();
            assert!(left <= 2_000, "{samples}: {left}");
            assert_eq!(bucket == 1, samples <= 2_000);
        }
    }

    #[test]
    fn numbers_are_short_and_runs_are_counted() {
        let cases = [(0.0, "0"), (0.492_449, "0.4924"), (65_012.3, "65012"), (12.3456, "12.35")];
        for (value, text) in cases.into_iter().chain([(32.0, "32"), (1e-9, "0"), (NONE, "null")]) {
            assert_eq!(short(value), text);
        }
        assert_eq!(pack(&[32.0, 32.0, 32.0, 1.5]), "[[32,3],1.5]");
        assert_eq!(pack_instants(&[1_000, 6_000, 11_000]), "[1000,[5000,2]]");
        assert_eq!((pack(&[]), pack_instants(&[])), ("[]".into(), "[]".into()));
    }

    #[test]
    fn percentiles_are_values_of_the_series() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentiles(&values), Some([100.0, 190.0, 198.0, 200.0]));
        assert_eq!(percentiles(&[NONE, 3.0]), Some([3.0; 4]));
        assert_eq!(percentiles(&[NONE]), None);
    }
}
