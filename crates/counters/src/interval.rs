//! How long a sample's interval is, by the instants at which the samples end.

/// Seconds of an interval that does not tell: what `esxtop -b` takes when none is given [ELA].
pub const DEFAULT_INTERVAL_S: f64 = 5.0;

/// Seconds of the shortest interval of `esxtop -b` [ELA].
pub const SHORTEST_INTERVAL_S: u32 = 2;

/// The length of a sample's interval in seconds, by the instants at which the samples end; that of
/// the first is taken from the second. `None` of a single one, and where the clock stood.
#[must_use]
pub fn interval_s(times_ms: &[i64], sample: usize) -> Option<f64> {
    let end = sample.max(1);
    let length_ms = times_ms.get(end)?.saturating_sub(*times_ms.get(end - 1)?);
    (length_ms > 0).then_some(length_ms as f64 / 1000.0)
}

/// Whether two samples that lie so far apart, where others lie `usual_ms` apart, tell of a hole in the
/// file or of a clock that was set: no stall of a host is that long.
#[must_use]
pub const fn is_leap(length_ms: i64, usual_ms: i64) -> bool {
    const HOUR_MS: i64 = 3_600_000;
    const SAMPLES: i64 = 10;
    length_ms >= HOUR_MS && length_ms / SAMPLES >= usual_ms
}

/// The spans between two samples, where others lie `usual_ms` apart, from which at least two are
/// missing. A leap is none: files of different days, and a clock that was set, are no loss.
pub fn holes(times_ms: &[i64], usual_ms: i64) -> impl Iterator<Item = (i64, i64)> {
    const SAMPLES: i64 = 3;
    let spans = times_ms.windows(2).map(|pair| (pair[0], pair[1]));
    spans.filter(move |(from, to)| {
        let length_ms = to.saturating_sub(*from);
        usual_ms > 0 && length_ms / SAMPLES >= usual_ms && !is_leap(length_ms, usual_ms)
    })
}

#[cfg(test)]
mod tests {
    use super::{holes, interval_s, is_leap};

    #[test]
    fn a_hole_is_two_samples_that_are_missing() {
        let are = |times_ms: &[i64], expected: &[(i64, i64)]| {
            assert!(holes(times_ms, 5_000).eq(expected.iter().copied()), "{times_ms:?}");
        };
        are(&[0, 5_000, 15_000, 19_000], &[]);
        are(&[0, 5_000, 20_000, 25_000, 70_000], &[(5_000, 20_000), (25_000, 70_000)]);
        are(&[0, 5_000, 86_400_000], &[]);
        assert_eq!(holes(&[0, 0], 0).count(), 0);
    }

    #[test]
    fn a_leap_is_an_hour_and_ten_samples() {
        assert!(is_leap(3_600_000, 5_000) && !is_leap(3_599_999, 5_000));
        assert!(!is_leap(7_200_000, 3_600_000) && is_leap(i64::MAX, 3_600_000));
    }

    #[test]
    fn an_interval_ends_at_its_sample() {
        let of = |times_ms: &[i64]| [0, 1, 2, 3].map(|sample| interval_s(times_ms, sample));
        assert_eq!(of(&[0, 5_000, 7_000]), [Some(5.0), Some(5.0), Some(2.0), None]);
        assert_eq!(of(&[0]), [None; 4]);
        assert_eq!(of(&[5_000, 5_000, 0]), [None; 4]);
    }
}
