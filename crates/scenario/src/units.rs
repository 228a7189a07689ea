//! Values with their units as people write them: `0.37ms`, `4k`, `70%`, `32Gbit/s`.
//!
//! Each parser returns what is wrong together with what is allowed; who calls adds the place.

/// The longest duration: 100 days, so that nanoseconds are exact in a double.
const DAYS_MAX: f64 = 100.0;
/// The largest size: 8 PiB, so that bytes are exact in a double.
const SIZE_MAX: f64 = 9_007_199_254_740_992.0;

const NANOS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86400e9),
];

const BYTES: &[(&str, f64)] = &[
    ("", 1.0),
    ("b", 1.0),
    ("k", 1024.0),
    ("kb", 1024.0),
    ("kib", 1024.0),
    ("m", 1_048_576.0),
    ("mb", 1_048_576.0),
    ("mib", 1_048_576.0),
    ("g", 1_073_741_824.0),
    ("gb", 1_073_741_824.0),
    ("gib", 1_073_741_824.0),
    ("t", 1_099_511_627_776.0),
    ("tb", 1_099_511_627_776.0),
    ("tib", 1_099_511_627_776.0),
];

const BYTES_PER_SECOND: &[(&str, f64)] = &[
    ("mbit/s", 1e6 / 8.0),
    ("gbit/s", 1e9 / 8.0),
    ("mb/s", 1e6),
    ("gb/s", 1e9),
    ("mib/s", 1_048_576.0),
    ("gib/s", 1_073_741_824.0),
];

/// A duration with its unit (`500us`, `30s`, `5min`) in nanoseconds, 0 to 100 days.
///
/// # Errors
/// What is wrong and what is allowed, without the place.
pub fn duration(text: &str) -> Result<u64, String> {
    let allowed = "a duration is a number with its unit, as \"500us\", \"0.37ms\", \"30s\", \
                   \"5min\", \"2h\" or \"1d\"";
    let nanos = scaled(text, NANOS).ok_or_else(|| format!("`{text}` is no duration; {allowed}"))?;
    bounded(text, nanos, DAYS_MAX * 86400e9, "a duration is at most 100 days")
}

/// A size in bytes; the units are powers of 1,024.
///
/// # Errors
/// One line that says what a size is.
pub fn size(text: &str) -> Result<u64, String> {
    let allowed = "a size is a number with k, m, g or t (powers of 1,024), as \"4k\" or \"1.5g\"";
    let bytes = scaled(text, BYTES).ok_or_else(|| format!("`{text}` is no size; {allowed}"))?;
    bounded(text, bytes, SIZE_MAX, "a size is at most 8192t")
}

/// A link's speed in bytes a second, above 0.
pub(crate) fn bandwidth(text: &str) -> Result<u64, String> {
    let allowed = "a bandwidth is as \"16Gbit/s\", \"800MB/s\" or \"400MiB/s\"";
    let refuse = || format!("`{text}` is no bandwidth above 0; {allowed}");
    let rate = scaled(text, BYTES_PER_SECOND).filter(|rate| *rate >= 1.0).ok_or_else(refuse)?;
    bounded(text, rate, 1e15, "a bandwidth is at most 1000000GB/s")
}

/// A share from 0 to 1, written in per cent.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let value = text.trim().strip_suffix('%').and_then(|number| decimal(number.trim()));
    match value {
        Some(value) if value <= 100.0 => Ok(value / 100.0),
        _ => Err(format!("`{text}` is no share; a share is \"0%\" to \"100%\"")),
    }
}

fn bounded(text: &str, value: f64, max: f64, allowed: &str) -> Result<u64, String> {
    if value > max {
        return Err(format!("`{text}` is too much; {allowed}"));
    }
    Ok(value.round() as u64)
}

/// A number times the factor of its unit.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim().to_lowercase();
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    Some(decimal(number)? * factor)
}

/// Digits with at most one point: no sign, no exponent, no `inf`.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_units() {
        let durations = [
            ("30s", Some(30_000_000_000)),
            ("0.37ms", Some(370_000)),
            ("500us", Some(500_000)),
            ("500 µs", Some(500_000)),
            ("5min", Some(300_000_000_000)),
            ("2h", Some(7_200_000_000_000)),
            ("0s", Some(0)),
            ("100d", Some(8_640_000_000_000_000)),
            ("101d", None),
            ("30", None),
            ("-1s", None),
            ("1e3s", None),
            ("inf s", None),
            ("", None),
            (".s", None),
            ("1.2.3s", None),
            ("5 parsecs", None),
        ];
        check(duration, &durations);
        let sizes = [
            ("4k", Some(4096)),
            ("512K", Some(524_288)),
            ("1.5m", Some(1_572_864)),
            ("512MB", Some(536_870_912)),
            ("1GiB", Some(1_073_741_824)),
            ("4096", Some(4096)),
            ("8192t", Some(1 << 53)),
            ("8193t", None),
            ("4x", None),
            ("k", None),
        ];
        check(size, &sizes);
        let bandwidths = [
            ("32Gbit/s", Some(4_000_000_000)),
            ("800MB/s", Some(800_000_000)),
            ("1 MiB/s", Some(1_048_576)),
            ("0Gbit/s", None),
            ("10", None),
            ("10Gbit", None),
        ];
        check(bandwidth, &bandwidths);
        let shares = [("70%", Some(0.7)), ("0%", Some(0.0)), ("100 %", Some(1.0)), ("101%", None)];
        check(percent, &shares);
        check(percent, &[("0.7", None), ("-1%", None), ("NaN%", None)]);
    }

    fn check<T: PartialEq + std::fmt::Debug + Copy>(
        parse: impl Fn(&str) -> Result<T, String>,
        table: &[(&str, Option<T>)],
    ) {
        for (text, value) in table {
            assert_eq!(parse(text).ok(), *value, "{text}");
        }
    }
}
