//! A simulated run on the page: what was run, its windows side by side, what has to be known of
//! them, and what was expected. The tables are those of the terminal (`windows`, `expectations`).

use anstream::adapter::strip_str;
use capture::format_stamp;
use counters::Time;
use maud::{Markup, html};
use sim::EPOCH_MS;

use crate::{
    expectations, notes,
    report::Report,
    table::Table,
    text::{seconds, whole},
    windows,
};

/// The run; the verdicts on the page are those over one of its windows.
pub(super) fn render(report: &Report, window: usize) -> Markup {
    let scenario = &report.scenario;
    let checked = report.checked();
    let expectations = expectations::table(scenario, &checked, &[], 0..checked.len());
    let notes = notes::render(report);
    html! {
        section.overview aria-labelledby="run" {
            h1 #run { (scenario.title) }
            @if !scenario.source.is_empty() { p { (scenario.source) } }
            dl.facts {
                div { dt { "Scenario" } dd { (scenario.name) } }
                div { dt { "Simulated" } dd { (seconds(Time(scenario.duration_ns))) } }
                div { dt { "I/Os" } dd { (whole(report.outcome.ios as f64)) } }
                div { dt { "Seed" } dd { (scenario.seed) } }
            }
            (table("Windows", &windows::table(report, window)))
            @if !notes.is_empty() { ul { @for note in notes.lines() { li { (note) } } } }
            p.note {
                "Verdict, stack and findings below are those over window "
                b { (scenario.windows[window].name) } "; charts and numbers those of the whole run "
                "after its warm-up. Its clock begins at " (format_stamp(EPOCH_MS)) "."
            }
            (table("Expectations", &expectations))
        }
    }
}

/// A table of the terminal, under its title.
pub(super) fn table(title: &str, table: &Table) -> Markup {
    let class = |column: usize| if table.left.contains(&column) { "text" } else { "n" };
    html! {
        @if !table.rows.is_empty() {
            h2 { (title) }
            div.wide tabindex="0" role="region" aria-label=(title) {
                table {
                    thead {
                        tr { @for (column, head) in table.head.iter().enumerate() {
                            th.(class(column)) scope="col" { (head) }
                        } }
                    }
                    tbody { @for row in &table.rows {
                        tr { @for (column, cell) in row.iter().enumerate() {
                            td.(class(column)) { (strip_str(cell)) }
                        } }
                    } }
                }
            }
        }
    }
}
