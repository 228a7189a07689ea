//! The windows of a run side by side: what changed from one to the next.

use levels::{Level, LevelKind, Stack};

use crate::{
    report::Report,
    table::Table,
    text::{clean, count, millis, rate, seconds, shown, whole},
    verdict,
};

const HEAD: [&str; 11] = [
    "", "window", "time", "IOPS", "total ms", "in guest", "KAVG", "DAVG", "ACTV", "QUED", "verdict",
];

/// A line for each window; the one that is told below is marked.
pub(crate) fn table(report: &Report, told: usize) -> Table {
    let mut table = Table::new(&HEAD).left(&[0, 1, 2, 10]);
    for index in report.named() {
        let window = &report.scenario.windows[index];
        let stack = &report.stacks[index];
        let mut row = vec![
            if index == told { "▶" } else { "" }.into(),
            clean(&window.name),
            format!("{} to {}", seconds(window.from), seconds(window.to)),
        ];
        row.extend(figures(stack));
        row.push(verdict::short(report.verdicts(index)).into());
        table.row(row);
    }
    table
}

/// IOPS, the times, the queue.
fn figures(stack: &Stack) -> [String; 7] {
    let device = stack.level(LevelKind::Device);
    [
        rate(stack.application_iops()),
        shown(stack.application_ms(), millis),
        shown(stack.ms(&[LevelKind::Guest]), millis),
        shown(stack.kernel_ms(), millis),
        shown(stack.device_ms(), millis),
        device.map_or(String::new(), |level| {
            format!("{}/{}", shown(level.in_use(), count), shown(level.limit(), whole))
        }),
        shown(device.and_then(Level::waiting), count),
    ]
}
