//! Names, numbers and instants as the page writes them.

use diagnose::{Window, steers};
use maud::{Markup, html};

/// Text from a file that can steer neither terminal nor browser: control characters, line and
/// paragraph separators and what turns the direction of writing become U+FFFD.
pub(super) fn safe(text: &str) -> String {
    text.chars().map(|c| if c != '\n' && steers(c) { '\u{fffd}' } else { c }).collect()
}

/// A sentence, with what stands between backticks as code.
pub(super) fn text(sentence: &str) -> Markup {
    let parts = sentence.split('`').enumerate();
    html! {
        @for (index, part) in parts {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// A number of which there may be none.
pub(super) fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), diagnose::number)
}

/// A number and its unit. A rate has its unit in its name.
pub(super) fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "" | "1/s" => diagnose::number(value),
        unit => format!("{} {unit}", diagnose::number(value)),
    }
}

/// When something held.
pub(super) fn span(window: &Window) -> String {
    diagnose::span(window.from_ms, window.to_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_replaced_and_other_scripts_are_not() {
        assert_eq!(
            safe("a\x1b\0\u{85}\u{202e}\u{2028}\u{2066}b"),
            "a\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}b"
        );
        assert_eq!(safe("Büro שלום 東京\n"), "Büro שלום 東京\n");
    }

    #[test]
    fn the_day_is_written_once() {
        let window = |from_ms, to_ms| Window { from_ms, to_ms, samples: 1, of: 1 };
        let day = 86_400_000;
        assert_eq!(span(&window(0, 60_000)), "1970-01-01 00:00:00 to 00:01:00 UTC");
        assert_eq!(span(&window(0, day)), "1970-01-01 00:00:00 to 1970-01-02 00:00:00 UTC");
    }

    #[test]
    fn backticks_are_code_and_the_rest_is_escaped() {
        let text = text("type `a < b` & <i>").into_string();
        assert_eq!(text, "type <code>a &lt; b</code> &amp; &lt;i&gt;");
    }
}
