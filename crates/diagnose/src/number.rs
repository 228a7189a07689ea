//! Numbers as people write them.

/// A number as people write it: three significant digits, thousands apart.
#[must_use]
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let text = if text == "-0" { "0" } else { text };
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if grouped.ends_with(|c: char| c.is_ascii_digit()) && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// A number that may not have been measured.
pub(crate) fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), number)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_read_well() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (-0.001, "0"),
            (0.449, "0.45"),
            (1.0, "1"),
            (31.96, "32"),
            (61.1, "61.1"),
            (100.0, "100"),
            (65_000.4, "65,000"),
            (1_234_567.0, "1,234,567"),
            (-419.2, "-419"),
            (-65_000.4, "-65,000"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
