//! A change as it was simulated: today beside after, counter by counter.

use diagnose::{Simulated, SimulatedRow};
use maud::{Markup, html};

use super::words::{number, text};

/// Rows of a table; the others are counted.
const ROWS: usize = 12;

/// The answer, its table and its doubts.
pub(super) fn render(simulated: &Simulated) -> Markup {
    html! {
        div.simulated {
            h5 {
                "Simulated"
                @if !simulated.identified { span.tag { "what is possible, not what is likely" } }
            }
            p { (text(&simulated.sentence)) }
            @if !simulated.rows.is_empty() { (table(&simulated.rows)) }
            @if !simulated.doubts.is_empty() {
                ul.doubts { @for doubt in &simulated.doubts { li { (text(doubt)) } } }
            }
        }
    }
}

fn table(rows: &[SimulatedRow]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Before and after" {
            table {
                thead {
                    tr {
                        th scope="col" { "object" }
                        th scope="col" { "counter" }
                        th.n scope="col" { "captured" }
                        th.n scope="col" { "simulated today" }
                        th.n scope="col" { "after the change" }
                    }
                }
                tbody { @for row in rows.iter().take(ROWS) { (line(row)) } }
            }
        }
        @if rows.len() > ROWS { p.more { "and " (rows.len() - ROWS) " more counters" } }
    }
}

fn line(row: &SimulatedRow) -> Markup {
    let (low, high) = (number(Some(row.low)), number(Some(row.high)));
    html! {
        tr {
            th.name scope="row" { (row.object) }
            td { (row.counter) @if !row.unit.is_empty() { span.unit { " " (row.unit) } } }
            td.n { (number(row.captured)) }
            td.n { (number(Some(row.today))) }
            td.n { b { (low) @if high != low { " to " (high) } } }
        }
    }
}
