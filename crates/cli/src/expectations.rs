//! What was expected of a run and what came of it: the published figure, what was derived from it,
//! ours, and whether that is a calibration, a prediction or a miss.

use scenario::{Bound, Role, Scenario};
use sim::Checked;

use crate::{
    table::Table,
    text::{BAD, BOLD, GOOD, clean, counted, styled, whole},
};

/// What several seeds say of an expectation whose figure is their mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverSeeds {
    /// Half of the confidence interval of the mean.
    pub(crate) half: Option<f64>,
    /// Seeds of which the own figure is as expected.
    pub(crate) met: usize,
    /// Seeds in all.
    pub(crate) of: usize,
}

/// Columns of the table; one in which nothing stands is left out.
const HEAD: [&str; 12] = [
    "",
    "window",
    "whose",
    "counter",
    "published",
    "expected",
    "ours",
    "± 95 %",
    "off by",
    "seeds",
    "is",
    "source",
];
/// Those of them that hold words.
const WORDS: [usize; 6] = [0, 1, 2, 3, 10, 11];

/// Every expectation in a line, and how many are met; with `seeds`, one for each, what those say.
pub(crate) fn render(scenario: &Scenario, checked: &[Checked<'_>], seeds: &[OverSeeds]) -> String {
    if checked.is_empty() {
        return String::new();
    }
    let failed = checked.iter().filter(|one| !one.holds).count();
    let missed = checked.iter().filter(|one| one.expectation.is_missed(one.figure)).count();
    let mut summary = match failed {
        0 => format!("Expectations: all {} met", checked.len()),
        _ => format!("Expectations: {failed} of {} not met", checked.len()),
    };
    if missed > 0 {
        summary = format!("{summary}; {} missed", counted(missed, "published figure"));
    }
    let order = |met: bool| (0..checked.len()).filter(move |&index| checked[index].holds == met);
    let all = order(false).chain(order(true));
    format!("{}\n{}", styled(BOLD, &summary), table(scenario, checked, seeds, all).render())
}

/// The expectations that are not met; nothing when there are none.
pub(crate) fn failed(scenario: &Scenario, checked: &[Checked<'_>], seeds: &[OverSeeds]) -> String {
    let failed: Vec<_> = (0..checked.len()).filter(|&index| !checked[index].holds).collect();
    if failed.is_empty() { String::new() } else { table(scenario, checked, seeds, failed).render() }
}

/// A line for each expectation in `order`.
pub(crate) fn table(
    scenario: &Scenario,
    checked: &[Checked<'_>],
    seeds: &[OverSeeds],
    order: impl IntoIterator<Item = usize>,
) -> Table {
    let row = |index: usize| row(scenario, &checked[index], seeds.get(index));
    let rows: Vec<_> = order.into_iter().map(row).collect();
    let is_used = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
    let columns: Vec<_> = (0..HEAD.len()).filter(is_used).collect();
    let head: Vec<_> = columns.iter().map(|&column| HEAD[column]).collect();
    let words: Vec<_> =
        (0..columns.len()).filter(|place| WORDS.contains(&columns[*place])).collect();
    let mut table = Table::new(&head).left(&words);
    for row in &rows {
        table.row(columns.iter().map(|&column| row[column].clone()).collect());
    }
    table
}

fn row(scenario: &Scenario, one: &Checked<'_>, seeds: Option<&OverSeeds>) -> [String; 12] {
    let expectation = one.expectation;
    let window = |index: usize| clean(&scenario.windows[index].name);
    let info = expectation.counter.info();
    let (over, unit) = match expectation.relative_to {
        Some(other) => (format!("{} / {}", window(expectation.window), window(other)), ""),
        None => (window(expectation.window), info.unit),
    };
    let is_missed = expectation.is_missed(one.figure);
    let tested = Some(expectation.bound).filter(|bound| Some(*bound) != expectation.published);
    let text = |bound: Option<Bound>| bound.map_or(String::new(), |bound| text(bound, unit));
    [
        match (one.holds, is_missed) {
            (false, _) => styled(BAD, "NOT"),
            (true, true) => styled(BOLD, "miss"),
            (true, false) => styled(GOOD, "met"),
        },
        over,
        clean(&expectation.subject_name),
        info.column.to_string(),
        text(expectation.published),
        text(tested),
        figure(one.figure),
        seeds.and_then(|seeds| seeds.half).map_or(String::new(), figure),
        deviation(expectation.published.unwrap_or(expectation.bound), one.figure),
        seeds.map_or(String::new(), |seeds| format!("{}/{}", seeds.met, seeds.of)),
        expectation.role.map_or("", Role::name).into(),
        clean(&expectation.source),
    ]
}

fn text(bound: Bound, unit: &str) -> String {
    let with_unit = |text: String| if unit.is_empty() { text } else { format!("{text} {unit}") };
    with_unit(match bound {
        Bound::Near { value, tolerance: 0.0 } => figure(value),
        Bound::Near { value, tolerance } => format!("{} ± {}", figure(value), figure(tolerance)),
        Bound::Between { min, max } if min == f64::NEG_INFINITY => format!("<= {}", figure(max)),
        Bound::Between { min, max } if max == f64::INFINITY => format!(">= {}", figure(min)),
        Bound::Between { min, max } => format!("{} to {}", figure(min), figure(max)),
    })
}

/// How far a figure is from the one expected, in per cent of it; from a range, how far outside.
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
