//! Before and after, side by side: windows of the same name, the figures of two runs in one of them,
//! and the verdict on each.

use std::fmt::Write;

use levels::{Level, LevelKind, Queue, Stack, most_first};
use scenario::{Scenario, Window};

use crate::{
    report::Report,
    table::Table,
    text::{BOLD, clean, count, millis, rate, seconds, shown, styled, whole},
    verdict,
};

/// A figure of a stack: its name, its value, how it is printed.
pub(crate) type Figure = (&'static str, fn(&Stack) -> Option<f64>, fn(f64) -> String);

pub(crate) const FIGURES: [Figure; 12] = [
    ("IOPS", |stack| Some(stack.application_iops()), rate),
    ("MiB/s", |stack| Some(stack.mib_per_s), rate),
    ("total ms, as the guest sees it", Stack::application_ms, millis),
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
        verdict::short(self.report.verdicts(self.window))
    }
}

/// The windows of two runs that belong together, because both files name them so.
pub(crate) struct Pairs {
    /// Indices of windows: before, after. Without any of the same name, the two whole runs.
    pub(crate) windows: Vec<(usize, usize)>,
    /// The windows that have no counterpart: of before, of after.
    alone: [Vec<String>; 2],
    /// Of each pair that is not of the same time on both sides: its name, and when it is.
    apart: Vec<String>,
}

impl Pairs {
    /// The windows of the same name.
    pub(crate) fn of(before: &Scenario, after: &Scenario) -> Self {
        let names = [before, after].map(|scenario| &scenario.windows);
        let place = |side: usize, name: &str| names[side].iter().position(|w| w.name == name);
        let pair = |(index, window): (usize, &Window)| Some((index, place(1, &window.name)?));
        let mut windows: Vec<_> = names[0].iter().enumerate().filter_map(pair).collect();
        if windows.len() > 1 {
            // The whole run stands for its windows only where there are none.
            windows.remove(0);
        }
        let alone = [0, 1].map(|side| {
            let lacks = |window: &&Window| place(1 - side, &window.name).is_none();
            names[side].iter().filter(lacks).map(|window| clean(&window.name)).collect()
        });
        let when = |window: &Window| format!("{} to {}", seconds(window.from), seconds(window.to));
        let apart = windows.iter().map(|&(was, is)| [&names[0][was], &names[1][is]]);
        let apart = apart.filter(|[was, is]| (was.from, was.to) != (is.from, is.to));
        let told = |[was, is]: [&Window; 2]| {
            format!("window {}: {} before, {} after", clean(&was.name), when(was), when(is))
        };
        let apart = apart.map(told).collect();
        Self { windows, alone, apart }
    }

    /// The pair that was asked for by name; a name that one side lacks is told with those that both
    /// have.
    pub(crate) fn find(&self, before: &Scenario, name: &str) -> Result<(usize, usize), String> {
        let name_of = |pair: &(usize, usize)| before.windows[pair.0].name.as_str();
        let all = || std::iter::once(&(0, 0)).chain(self.windows.iter().filter(|pair| pair.0 > 0));
        all().find(|pair| name_of(pair) == name).copied().ok_or_else(|| {
            let known: Vec<_> = all().map(name_of).collect();
            format!("--window {name}: both sides must have it; they have {}", known.join(", "))
        })
    }

    /// What has no counterpart, in a line for each side, and what is of another time there.
    fn remarks(&self) -> String {
        let mut out = String::new();
        for (label, names) in ["before", "after"].iter().zip(&self.alone) {
            if !names.is_empty() {
                let _ = writeln!(out, "only {label}: window {}", names.join(", "));
            }
        }
        if self.windows == [(0, 0)] && !out.is_empty() {
            out.push_str(
                "no window has the same name on both sides: the whole runs are compared\n",
            );
        }
        self.apart.iter().for_each(|pair| _ = writeln!(out, "{pair}"));
        out
    }
}

/// Every pair of windows in a line, when there are several.
fn windows(before: &Side<'_>, after: &Side<'_>, pairs: &Pairs) -> String {
    if pairs.windows.len() < 2 {
        return String::new();
    }
    let head = [
        "",
        "window",
        "IOPS before",
        "after",
        "change",
        "ms before",
        "after",
        "change",
        "verdict after",
    ];
    let mut table = Table::new(&head).left(&[0, 1, 8]);
    for &(was, is) in &pairs.windows {
        let (old, new) = (&before.report.stacks[was], &after.report.stacks[is]);
        table.row(vec![
            if was == before.window { "▶" } else { "" }.into(),
            clean(&before.report.scenario.windows[was].name),
            rate(old.application_iops()),
            rate(new.application_iops()),
            change(Some(old.application_iops()), Some(new.application_iops())),
            shown(old.application_ms(), millis),
            shown(new.application_ms(), millis),
            change(old.application_ms(), new.application_ms()),
            verdict::short(after.report.verdicts(is)).into(),
        ]);
    }
    format!("{}\n", table.render())
}

/// Both sides as tables: the windows of both, the stack as a whole, then the busiest virtual disks.
pub(crate) fn render(before: &Side<'_>, after: &Side<'_>, pairs: &Pairs, rows: usize) -> String {
    let mut table = Table::new(&["", "before", "after", "change"]).left(&[0]);
    for (name, value, print) in FIGURES {
        let (was, is) = (value(before.stack()), value(after.stack()));
        let printed = [was, is].map(|value| shown(value, print));
        let change = if printed[0] == printed[1] { "=".into() } else { change(was, is) };
        let [was, is] = printed;
        table.row(vec![name.into(), was, is, change]);
    }
    let mut out = String::new();
    for (label, side) in [("before", before), ("after", after)] {
        let scenario = &side.report.scenario;
        let window = &scenario.windows[side.window].name;
        let label = styled(BOLD, &format!("{label:<6}"));
        let _ = writeln!(out, "{label}  {}, window {}", clean(side.name), clean(window));
        let _ = writeln!(out, "        {}", side.verdict());
    }
    out.push_str(&pairs.remarks());
    let _ = write!(
        out,
        "\n{}{}\n{}",
        windows(before, after, pairs),
        table.render(),
        disks(before.stack(), after.stack(), rows)
    );
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
    most_first(&mut disks, |disk| disk.iops);
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
