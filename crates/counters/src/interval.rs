//! How long a sample's interval is, by the instants at which the samples end.

/// Seconds of an interval that does not tell: what `esxtop -b` takes when none is given [ELA].
pub const DEFAULT_INTERVAL_S: f64 = 5.0;

/// The length of a sample's interval in seconds, by the instants at which the samples end; that of
/// the first is taken from the second. `None` of a single one, and where the clock stood.
#[must_use]
pub fn interval_s(times_ms: &[i64], sample: usize) -> Option<f64> {
    let end = sample.max(1);
    let length_ms = times_ms.get(end)?.saturating_sub(*times_ms.get(end - 1)?);
    (length_ms > 0).then_some(length_ms as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::interval_s;

    #[test]
    fn an_interval_ends_at_its_sample() {
        let of = |times_ms: &[i64]| [0, 1, 2, 3].map(|sample| interval_s(times_ms, sample));
        assert_eq!(of(&[0, 5_000, 7_000]), [Some(5.0), Some(5.0), Some(2.0), None]);
        assert_eq!(of(&[0]), [None; 4]);
        assert_eq!(of(&[5_000, 5_000, 0]), [None; 4]);
    }
}
