//! The stack as a picture: a box for each level, from the guest down to the array.
//!
//! It is one inline SVG without a view box: boxes and gauges are as wide as the page, letters as
//! large as anywhere else. The gauge of a box shows who is in (up to the limit) and, behind the
//! limit, who waits.

use levels::{Level, LevelKind, Queue};
use maud::{Markup, html};

use super::{
    stack::Blamed,
    words::{number, span},
};
use crate::text::fit;

/// Height of a box, of the gap between two, and of the heads above the numbers.
const BOX: usize = 64;
const GAP: usize = 16;
const HEADS: usize = 22;
/// The right edges of the four columns of numbers, in percent of the width.
const COLUMNS: [(&str, &str); 4] =
    [("limit", "61%"), ("in use", "74%"), ("waiting", "87%"), ("ms", "98%")];
/// The width of a gauge, in percent of the picture's.
const GAUGE: f64 = 44.0;
/// Findings that are marked on a level.
const MARKS: usize = 4;
/// Letters of a name.
const NAME: usize = 46;

/// The picture, and what it shows.
pub(super) fn render(stack: &Blamed) -> Markup {
    let height = HEADS + stack.levels.len() * (BOX + GAP);
    let total: f64 = stack.levels.iter().filter_map(|level| level.ms).sum();
    html! {
        figure.stack {
            svg width="100%" height=(height) role="group" aria-label="The I/O stack, from the guest to the array" {
                @for (head, x) in COLUMNS { text.head x=(x) y="14" { (head) } }
                @for (index, level) in stack.levels.iter().enumerate() {
                    (level_box(level, HEADS + index * (BOX + GAP), stack, total))
                }
            }
            figcaption {
                b { (stack.device) } ", " (span(&stack.window)) ": means over "
                (stack.window.samples) " samples with commands. “In use” and “waiting” are commands, "
                "by Little’s law; “ms” is the time that a command spends on a level, and adds up to "
                (number(Some(total))) " ms. A number in a circle is that of a finding."
            }
        }
    }
}

fn level_box(level: &Level, y: usize, stack: &Blamed, total: f64) -> Markup {
    let is_guilty = stack.guilty == Some(level.kind);
    let queue = level.whole();
    let numbers = [queue.limit, queue.in_use, queue.waiting, level.ms];
    let blaming = stack.findings.iter().filter(|(kind, _)| *kind == level.kind);
    let findings: Vec<usize> = blaming.map(|(_, number)| *number).collect();
    let share = level.ms.filter(|_| total > 0.0).map(|ms| 100.0 * ms / total);
    html! {
        svg.level.guilty[is_guilty] y=(y) width="100%" height=(BOX + GAP) {
            rect.box x="1" y="1" width="99.7%" height=(BOX - 2) rx="8" {}
            @if level.kind != LevelKind::Array {
                path.flow d=(format!("M28 {BOX} v{} m-4 -5 l4 5 l4 -5", GAP - 2)) {}
            }
            svg width="55%" height=(BOX) {
                text.title x="14" y="21" { (level.kind.title()) }
                text.whose x="14" y="38" { (fit(&queue.name, NAME)) }
            }
            (marks(&findings))
            (gauge(&queue))
            @for ((_, x), value) in COLUMNS.iter().zip(numbers) {
                text.number x=(x) y="31" { (number(value)) }
            }
            @if let Some(share) = share.filter(|share| *share >= 0.5) {
                text.share x=(COLUMNS[3].1) y="50" { (format!("{share:.0} %")) }
            }
        }
    }
}

/// The numbers of the findings that blame a level, from right to left.
fn marks(findings: &[usize]) -> Markup {
    html! {
        @for (place, finding) in findings.iter().take(MARKS).rev().enumerate() {
            svg.mark x="54%" y="16" {
                circle cx=(-10 - 22 * place as i32) r="9" {}
                text x=(-10 - 22 * place as i32) y="4" { (finding) }
            }
        }
    }
}

/// Who is in, as far as the limit goes, and who waits behind it. The whole of it is the limit and
/// all that wait; without a limit there is nothing to measure by.
fn gauge(queue: &Queue) -> Markup {
    let (Some(limit), Some(in_use)) = (queue.limit, queue.in_use) else { return html! {} };
    let waiting = queue.waiting.unwrap_or_default();
    let whole = limit.max(in_use) + waiting;
    if whole <= 0.0 {
        return html! {};
    }
    let percent = |commands: f64| format!("{:.2}%", GAUGE * commands / whole);
    html! {
        svg x="14" y="46" width="100%" height="8" {
            rect.track width=(percent(limit.max(in_use))) height="8" rx="2" {}
            rect.used width=(percent(in_use)) height="8" rx="2" {}
            rect.waits x=(percent(limit.max(in_use))) width=(percent(waiting)) height="8" rx="2" {}
        }
    }
}
