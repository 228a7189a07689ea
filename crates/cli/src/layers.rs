//! Where a command of the worst finding spends its time: the levels of the stack in a line each,
//! for a terminal of 80 columns.

use std::fmt::Write;

use diagnose::Verdict;
use levels::{Level, Measured};

use crate::{
    html::stack::Blamed,
    text::{BAD, BOLD, DIM, bar, clean, count, millis, shown, styled, whole},
};

/// Columns of the bar that shows a level's share of the time.
const BAR: usize = 14;

/// The levels on the device of the worst finding; nothing when there is no finding.
pub(crate) fn render(recording: &Measured, verdict: &Verdict) -> String {
    let stack = Blamed::of_verdict(recording, verdict).filter(|stack| stack.guilty.is_some());
    stack.map(|stack| table(&stack, &verdict.named(&stack.device))).unwrap_or_default()
}

fn table(stack: &Blamed, device: &str) -> String {
    let total: f64 = stack.levels.iter().filter_map(|level| level.ms).sum();
    let title = format!("Where the time goes on {}", clean(device));
    let head = format!("{:23}{:>9}{:>9}{:>9}{:>9}", "", "limit", "in use", "waiting", "ms");
    let mut out = format!("{}\n{}\n", styled(BOLD, &title), styled(DIM, &head));
    for level in &stack.levels {
        let _ = writeln!(out, "{}", line(level, total, stack.guilty == Some(level.kind)));
    }
    out
}

fn line(level: &Level, total: f64, is_guilty: bool) -> String {
    let queue = level.whole();
    let figures = format!(
        "   {:20}{:>9}{:>9}{:>9}{:>9}",
        level.kind.title(),
        shown(queue.limit, whole),
        shown(queue.in_use, count),
        shown(queue.waiting, count),
        shown(level.ms, millis)
    );
    let share = level.ms.filter(|_| total > 0.0).map(|ms| bar(ms / total, BAR));
    let share = share.unwrap_or_else(|| " ".repeat(BAR));
    if is_guilty {
        styled(BAD, &format!("{figures} {share} here"))
    } else {
        format!("{figures} {share}").trim_end().into()
    }
}
