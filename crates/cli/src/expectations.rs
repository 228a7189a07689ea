//! What was expected of a run and what came of it: the published figure, ours, the deviation.

use scenario::{Bound, Scenario};
use sim::Checked;

use crate::{
    table::Table,
    text::{BAD, BOLD, GOOD, clean, styled, whole},
};

/// Every expectation in a line, and how many are met.
pub(crate) fn render(scenario: &Scenario, checked: &[Checked<'_>]) -> String {
    if checked.is_empty() {
        return String::new();
    }
    let failed = checked.iter().filter(|one| !one.holds).count();
    let summary = match failed {
        0 => format!("Expectations: all {} met", checked.len()),
        _ => format!("Expectations: {failed} of {} not met", checked.len()),
    };
    let (met, not_met): (Vec<_>, Vec<_>) = checked.iter().partition(|one| one.holds);
    let all = not_met.into_iter().chain(met);
    format!("{}\n{}", styled(BOLD, &summary), lines(scenario, all))
}

/// The expectations that are not met; nothing when there are none.
pub(crate) fn failed(scenario: &Scenario, checked: &[Checked<'_>]) -> String {
    if checked.iter().all(|one| one.holds) {
        return String::new();
    }
    lines(scenario, checked.iter().filter(|one| !one.holds))
}

fn lines<'a>(scenario: &Scenario, checked: impl Iterator<Item = &'a Checked<'a>>) -> String {
    table(scenario, checked).render()
}

/// A line for each expectation.
pub(crate) fn table<'a>(
    scenario: &Scenario,
    checked: impl IntoIterator<Item = &'a Checked<'a>>,
) -> Table {
    let head = ["", "window", "whose", "counter", "expected", "ours", "off by", "source"];
    let mut table = Table::new(&head).left(&[0, 1, 2, 3, 7]);
    for one in checked {
        table.row(row(scenario, one));
    }
    table
}

fn row(scenario: &Scenario, one: &Checked<'_>) -> Vec<String> {
    let expectation = one.expectation;
    let window = |index: usize| clean(&scenario.windows[index].name);
    let info = expectation.counter.info();
    let (over, unit) = match expectation.relative_to {
        Some(other) => (format!("{} / {}", window(expectation.window), window(other)), ""),
        None => (window(expectation.window), info.unit),
    };
    vec![
        if one.holds { styled(GOOD, "met") } else { styled(BAD, "NOT") },
        over,
        clean(&expectation.subject_name),
        info.column.to_string(),
        expected(expectation.bound, unit),
        figure(one.figure),
        deviation(expectation.bound, one.figure),
        clean(&expectation.source),
    ]
}

fn expected(bound: Bound, unit: &str) -> String {
    let with_unit = |text: String| if unit.is_empty() { text } else { format!("{text} {unit}") };
    with_unit(match bound {
        Bound::Near { value, tolerance } => format!("{} ± {}", figure(value), figure(tolerance)),
        Bound::Between { min, max } if min == f64::NEG_INFINITY => format!("<= {}", figure(max)),
        Bound::Between { min, max } if max == f64::INFINITY => format!(">= {}", figure(min)),
        Bound::Between { min, max } => format!("{} to {}", figure(min), figure(max)),
    })
}

/// How far a figure is from the published one, in per cent of it; from a range, how far outside.
fn deviation(bound: Bound, figure: f64) -> String {
    let from = match bound {
        Bound::Near { value, .. } => value,
        Bound::Between { min, .. } if figure < min => min,
        Bound::Between { max, .. } if figure > max => max,
        Bound::Between { .. } => return String::new(),
    };
    if from == 0.0 || figure.is_nan() {
        return String::new();
    }
    format!("{:+.1} %", 100.0 * (figure - from) / from.abs())
}

/// A figure of any unit: whole when large, three decimals when small.
pub(crate) fn figure(value: f64) -> String {
    if value.is_nan() {
        return "none".into();
    }
    if value.abs() >= 999.5 {
        return whole(value);
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
