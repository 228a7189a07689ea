//! A change as it was simulated: today beside after, counter by counter.

use diagnose::{Simulated, SimulatedRow};
use maud::{Markup, html};

use super::words::{number, text};

/// Rows of a table; the others are counted.
const ROWS: usize = 12;
/// Doubts that stand open.
const DOUBTS: usize = 3;

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
            (doubts(&simulated.doubts))
        }
    }
}

/// What the range rests on; of many things the rest has to be asked for.
fn doubts(doubts: &[String]) -> Markup {
    let (open, rest) = doubts.split_at(doubts.len().min(DOUBTS));
    let list =
        |lines: &[String]| html! { ul.doubts { @for line in lines { li { (text(line)) } } } };
    html! {
        @if !open.is_empty() { (list(open)) }
        @if !rest.is_empty() {
            details { summary.shell { "and " (rest.len()) " more doubts" } (list(rest)) }
        }
    }
}

fn table(rows: &[SimulatedRow]) -> Markup {
    let (shown, rest) = rows.split_at(rows.len().min(ROWS));
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
                tbody { @for object in shown.chunk_by(|a, b| a.object == b.object) { (lines(object)) } }
            }
        }
        @if !rest.is_empty() { p.more { "and " (rest.len()) " more counters" } }
    }
}

/// The counters of one object.
fn lines(rows: &[SimulatedRow]) -> Markup {
    html! {
        @for (index, row) in rows.iter().enumerate() {
            @let (low, high) = (number(Some(row.low)), number(Some(row.high)));
            tr {
                @if index == 0 { th.name scope="rowgroup" rowspan=(rows.len()) { (row.object) } }
                td { (row.counter) @if !matches!(row.unit, "" | "1/s") { span.unit { " " (row.unit) } } }
                td.n { (number(row.captured)) }
                td.n { (number(Some(row.today))) }
                td.n { b { (low) @if high != low { " to " (high) } } }
            }
        }
    }
}
