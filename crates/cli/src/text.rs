//! Numbers and names as text: the smallest parts of every table.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use counters::{SECOND, Time};
pub(crate) use diagnose::{clean, fit};

/// Headings.
pub(crate) const BOLD: Style = Style::new().bold();
/// Lines and what matters less.
pub(crate) const DIM: Style = Style::new().dimmed();
/// A queue that is full, an expectation that is not met.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// An expectation that is met.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();

/// `text` in a style; without a terminal the codes are taken out again on the way.
pub(crate) fn styled(style: Style, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{style}{text}{style:#}") }
}

/// A whole number with thousands set apart: `65,012`.
pub(crate) fn whole(value: f64) -> String {
    let digits = format!("{:.0}", value.abs().round());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value <= -0.5 { format!("-{text}") } else { text }
}

/// A rate: `65,012`, and with a decimal when it is small: `26.3`.
pub(crate) fn rate(value: f64) -> String {
    if value.abs() < 99.95 { format!("{value:.1}") } else { whole(value) }
}

/// Milliseconds with as many decimals as tell something: `0.492`, `12.3`, `350`.
pub(crate) fn millis(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A mean number of I/Os: `31.9`, `1,024`.
pub(crate) fn count(value: f64) -> String {
    if value.abs() < 999.95 { format!("{value:.1}") } else { whole(value) }
}

/// A bar of `width` columns, filled by a `share` of 0 to 1.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (8 * width) as f64).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    text.push_str(EIGHTHS[eighths % 8]);
    let used = eighths.div_ceil(8);
    text.push_str(&"·".repeat(width - used));
    text
}

/// `1 host`, `2 hosts`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", whole(number as f64))
}

/// An instant of the run: `40 s`, `0.25 s`.
pub(crate) fn seconds(at: Time) -> String {
    format!("{} s", at.0 as f64 / SECOND as f64)
}

/// A time in one unit, or in two.
pub(crate) fn roughly(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds @ 100..6_000 => format!("{} min", seconds.div_ceil(60)),
        seconds @ 6_000..360_000 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        seconds => format!("{} days", whole((seconds / 86_400) as f64)),
    }
}

/// A figure, and nothing where there is none.
pub(crate) fn shown(value: Option<f64>, print: fn(f64) -> String) -> String {
    value.map(print).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_they_tell_something() {
        let cases = [(0.0, "0"), (999.4, "999"), (999.5, "1,000"), (-1234.0, "-1,234")];
        for (value, text) in cases.into_iter().chain([(1_234_567.0, "1,234,567"), (-0.4, "0")]) {
            assert_eq!(whole(value), text);
        }
        let cases = [(0.0, "0.000"), (0.4924, "0.492"), (0.9995, "1.00"), (9.994, "9.99")];
        for (value, text) in cases.into_iter().chain([(9.996, "10.0"), (99.96, "100")]) {
            assert_eq!(millis(value), text);
        }
        for (value, text) in [(0.0, "0.0"), (99.94, "99.9"), (99.96, "100"), (65_012.3, "65,012")] {
            assert_eq!(rate(value), text);
        }
        for (value, text) in [(0.04, "0.0"), (31.96, "32.0"), (999.94, "999.9"), (999.96, "1,000")]
        {
            assert_eq!(count(value), text);
        }
    }

    #[test]
    fn times_are_told_roughly() {
        let cases = [(0, "0 s"), (99, "99 s"), (100, "2 min"), (6_000, "1 h 40 min")];
        for (seconds, text) in
            cases.into_iter().chain([(360_000, "4 days"), (1 << 30, "12,427 days")])
        {
            assert_eq!(roughly(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn long_names_are_cut_in_the_middle_and_cannot_steer_a_terminal() {
        assert_eq!(fit("naa.6000", 8), "naa.6000");
        assert_eq!(fit("naa.60001", 8), "naa.…001");
        assert_eq!(fit("äöü", 2), "ä…");
        assert_eq!(fit("a", 0), "…");
        assert_eq!(clean("a\x1b[31m\n"), "a\u{fffd}[31m\u{fffd}");
        assert_eq!(clean("a\u{202e}b\u{9b}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(clean("a\u{200b}\u{e0041}\u{2060}ä"), "a\u{fffd}\u{fffd}\u{fffd}ä");
        // Fillers and joiners that take no place, or an empty one.
        assert_eq!(clean("a\u{3164}\u{34f}\u{fe0f}b"), "a\u{fffd}\u{fffd}\u{fffd}b");
    }

    #[test]
    fn a_bar_has_its_width_whatever_the_share() {
        let shares = [f64::NAN, -1.0, 0.0, 0.01, 0.5, 0.93, 1.0, 2.0];
        let bars = shares.map(|share| bar(share, 4));
        assert_eq!(bars, ["····", "····", "····", "····", "██··", "███▊", "████", "████"]);
    }
}
