//! Numbers as sentences have them.

/// A number with three figures that count.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let digits = text.len();
    if value.abs() < 1000.0 || !text.is_char_boundary(digits.saturating_sub(3)) {
        return text;
    }
    let mut out = String::new();
    for (index, digit) in text.chars().enumerate() {
        if index > 0 && (digits - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
