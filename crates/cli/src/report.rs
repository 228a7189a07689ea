//! A run and what is to be said of it: first the answer, then the picture, then the tables that
//! an administrator knows, the verdict with its commands, and what was expected.

use std::fmt::Write;

use counters::{SECOND, Time};
use diagnose::Verdict;
use scenario::Scenario;
use sim::{Checked, Outcome};

use levels::Stack;

use crate::{
    esxtop, expectations, log, notes, picture, stack,
    text::{BOLD, clean, counted, millis, rate, shown, styled, whole},
    verdict, windows,
};

/// A scenario that was run.
pub(crate) struct Report {
    /// What was run.
    pub(crate) scenario: Scenario,
    /// What came out.
    pub(crate) outcome: Outcome,
    /// The stack over each window of the scenario.
    pub(crate) stacks: Vec<Stack>,
}

/// How a report is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Index of the window of which the picture, the tables and the verdict are.
    pub(crate) window: usize,
    /// Objects that are named at each level; the rest are summed.
    pub(crate) rows: usize,
    /// Columns of the screen; `None` when it is no screen.
    pub(crate) width: Option<usize>,
}

/// Columns of a picture when the width of the screen is not known.
const WIDTH: usize = 80;

impl Report {
    pub(crate) fn new(scenario: Scenario, outcome: Outcome) -> Self {
        let stacks = outcome.windows.iter().map(|views| stack::of_run(&scenario, views)).collect();
        Self { scenario, outcome, stacks }
    }

    /// Whether each expectation is met.
    pub(crate) fn checked(&self) -> Vec<Checked<'_>> {
        sim::check(&self.scenario, &self.outcome)
    }

    /// The windows that the file names; without any, the whole run.
    pub(crate) fn named(&self) -> std::ops::Range<usize> {
        let all = self.scenario.windows.len();
        usize::from(all > 1)..all
    }

    /// The window in which an I/O takes longest; of those that are alike, the first.
    pub(crate) fn worst(&self) -> usize {
        /// Longer by less than this is no difference.
        const ALIKE: f64 = 1.02;
        let longer = |best: usize, window: usize| {
            let is_longer =
                self.stacks[window].total_ms > self.stacks[best].total_ms.map(|best| ALIKE * best);
            if is_longer { window } else { best }
        };
        self.named().reduce(longer).unwrap_or(0)
    }

    /// The verdict on each host over a window.
    pub(crate) fn verdicts(&self, window: usize) -> Vec<Verdict> {
        let views = &self.outcome.windows[window];
        let hosts = self.outcome.recordings.iter().zip(views);
        let window = &self.scenario.windows[window];
        hosts
            .map(|(all, view)| verdict::samples(&self.scenario, window, all, view))
            .map(|samples| verdict::judge(&samples))
            .collect()
    }
}

/// The window of that name.
pub(crate) fn find_window(scenario: &Scenario, name: &str) -> Result<usize, String> {
    let windows = &scenario.windows;
    windows.iter().position(|window| window.name == name).ok_or_else(|| {
        let known: Vec<_> = windows.iter().map(|window| window.name.as_str()).collect();
        format!("--window {name}: there is no such window; there are {}", known.join(", "))
    })
}

/// The whole report.
pub(crate) fn render(report: &Report, layout: Layout) -> String {
    let Layout { window, rows, width } = layout;
    let verdicts = report.verdicts(window);
    let mut parts = vec![summary(report)];
    if report.named().len() > 1 {
        parts.push(windows::render(report, layout));
    }
    parts.push(notes::render(report));
    parts.push(heading(report, window));
    parts.push(verdict::list(&verdicts));
    parts.push(picture::render(&report.stacks[window], rows, width.unwrap_or(WIDTH)));
    parts.push(esxtop::render(&report.outcome.windows[window], rows, width));
    parts.push(format!("{}\n{}", styled(BOLD, "Verdict"), verdict::render(&verdicts)));
    parts.push(log::render(report));
    parts.push(expectations::render(&report.scenario, &report.checked()));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// What the picture below it is of.
fn heading(report: &Report, index: usize) -> String {
    let (window, stack) = (&report.scenario.windows[index], &report.stacks[index]);
    let name = match report.named().len() {
        1 => "The stack".to_owned(),
        _ => format!("The stack in window {}", clean(&window.name)),
    };
    format!(
        "{}, {} to {}: {} IOPS, {} MiB/s, {} ms an I/O\n",
        styled(BOLD, &name),
        seconds(window.from),
        seconds(window.to),
        rate(stack.iops),
        rate(stack.mib_per_s),
        shown(stack.total_ms, millis)
    )
}

/// The title, and in one sentence what was simulated.
fn summary(report: &Report) -> String {
    let scenario = &report.scenario;
    let mut versions: Vec<_> =
        scenario.hosts.iter().map(|host| host.config.version.name()).collect();
    versions.sort_unstable();
    versions.dedup();
    let sum = |number: fn(&scenario::Host) -> usize| scenario.hosts.iter().map(number).sum();
    let vms = |host: &scenario::Host| {
        host.config.vms.iter().filter(|vm| !vm.system && vm.powered_on).count()
    };
    let parts = [
        format!("{} with ESXi {}", counted(scenario.hosts.len(), "host"), versions.join(" and ")),
        counted(sum(vms), "VM"),
        counted(sum(|host| host.config.devices.len()), "device"),
        counted(scenario.arrays.len(), "array"),
    ];
    let mut out = format!("{}\n", styled(BOLD, &clean(&scenario.title)));
    let _ = writeln!(
        out,
        "{}: {}; {}, {} I/Os, seed {}",
        clean(&scenario.name),
        parts.join(", "),
        seconds(Time(scenario.duration_ns)),
        whole(report.outcome.ios as f64),
        scenario.seed
    );
    if !scenario.source.is_empty() {
        let _ = writeln!(out, "{}", clean(&scenario.source));
    }
    out
}

/// An instant of the run: `40 s`, `0.25 s`.
pub(crate) fn seconds(at: Time) -> String {
    format!("{} s", at.0 as f64 / SECOND as f64)
}
