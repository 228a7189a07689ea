//! Before and after, side by side: the figures of two runs, and the verdict on each.

use std::fmt::Write;

use levels::{Level, LevelKind, Queue, Stack};

use crate::{
    report::Report,
    table::Table,
    text::{BOLD, clean, count, millis, rate, shown, styled, whole},
    verdict,
};

/// A figure of a stack: its name, its value, how it is printed.
type Figure = (&'static str, fn(&Stack) -> Option<f64>, fn(f64) -> String);

const FIGURES: [Figure; 12] = [
    ("IOPS", |stack| Some(stack.iops), rate),
    ("MiB/s", |stack| Some(stack.mib_per_s), rate),
    ("total ms, as the guest sees it", |stack| stack.total_ms, millis),
    ("wait in the guest ms", |stack| stack.ms(&[LevelKind::Guest]), millis),
    ("GAVG ms", Stack::host_ms, millis),
    ("KAVG ms", Stack::kernel_ms, millis),
    ("DAVG ms", Stack::device_ms, millis),
    ("array ms", |stack| stack.ms(&[LevelKind::Array]), millis),
    ("waiting in guests", |stack| of(stack, LevelKind::Guest, Level::waiting), count),
    ("DQLEN", |stack| of(stack, LevelKind::Device, Level::limit), whole),
    ("ACTV", |stack| of(stack, LevelKind::Device, Level::in_use), count),
    ("QUED", |stack| of(stack, LevelKind::Device, Level::waiting), count),
];

fn of(stack: &Stack, kind: LevelKind, figure: fn(&Level) -> Option<f64>) -> Option<f64> {
    stack.level(kind).and_then(figure)
}

/// One side: what it is called, its run and the window looked at.
pub(crate) struct Side<'a> {
    pub(crate) name: &'a str,
    pub(crate) report: &'a Report,
    pub(crate) window: usize,
}

impl Side<'_> {
    fn stack(&self) -> &Stack {
        &self.report.stacks[self.window]
    }

    fn verdict(&self) -> &'static str {
        verdict::short(&self.report.verdicts(self.window))
    }
}

/// Both sides as tables: the stack as a whole, then the busiest virtual disks.
pub(crate) fn render(before: &Side<'_>, after: &Side<'_>, rows: usize) -> String {
    let mut table = Table::new(&["", "before", "after", "change"]).left(&[0]);
    for (name, value, print) in FIGURES {
        let (was, is) = (value(before.stack()), value(after.stack()));
        table.row(vec![name.into(), shown(was, print), shown(is, print), change(was, is)]);
    }
    let mut out = String::new();
    for (label, side) in [("before", before), ("after", after)] {
        let scenario = &side.report.scenario;
        let window = &scenario.windows[side.window].name;
        let label = styled(BOLD, &format!("{label:<6}"));
        let _ = writeln!(out, "{label}  {}, window {}", clean(side.name), clean(window));
        let _ = writeln!(out, "        {}", side.verdict());
    }
    let _ = write!(out, "\n{}\n{}", table.render(), disks(before.stack(), after.stack(), rows));
    out
}

/// IOPS and latency of the virtual disks that are in both, the busiest first.
fn disks(before: &Stack, after: &Stack, rows: usize) -> String {
    let head = ["virtual disk", "IOPS before", "after", "change", "ms before", "after", "change"];
    let mut table = Table::new(&head).left(&[0]);
    for was in disks_of(before).iter().take(rows) {
        let Some(is) = disks_of(after).into_iter().find(|is| is.name == was.name) else { continue };
        table.row(vec![
            was.name.clone(),
            rate(was.iops),
            rate(is.iops),
            change(Some(was.iops), Some(is.iops)),
            shown(was.ms, millis),
            shown(is.ms, millis),
            change(was.ms, is.ms),
        ]);
    }
    table.render()
}

/// The virtual disks, the busiest first.
fn disks_of(stack: &Stack) -> Vec<Queue> {
    let mut disks = stack.disks.clone();
    disks.sort_by(|a, b| b.iops.total_cmp(&a.iops));
    disks
}

/// By how much a figure rose or fell; where it is not on one side, nobody can tell.
fn change(was: Option<f64>, is: Option<f64>) -> String {
    let (Some(was), Some(is)) = (was, is) else { return String::new() };
    /// Where both are below this, there is nothing to divide.
    const NOTHING: f64 = 0.0005;
    if was.abs() < NOTHING {
        return if is.abs() < NOTHING { "=".into() } else { "new".into() };
    }
    let percent = 100.0 * (is - was) / was;
    if percent.abs() < 0.5 { "=".into() } else { format!("{percent:+.0} %") }
}
