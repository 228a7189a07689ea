//! A scenario that was run, and what follows from it: the stack over each window, the verdicts, the
//! expectations. Who shows them stands above.

use std::cell::OnceCell;

use counters::Recording;
use diagnose::Verdict;
use scenario::Scenario;
use sim::{Checked, Outcome};

use levels::{Level, Measured, Stack};

use crate::{known, stack, verdict};

/// A scenario that was run.
pub(crate) struct Report {
    /// What was run.
    pub(crate) scenario: Scenario,
    /// What came out.
    pub(crate) outcome: Outcome,
    /// The stack over each window of the scenario.
    pub(crate) stacks: Vec<Stack>,
    /// The verdict on each host over each window, once somebody has asked for it.
    verdicts: Vec<OnceCell<Vec<Verdict>>>,
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

impl Report {
    pub(crate) fn new(scenario: Scenario, outcome: Outcome) -> Self {
        let stacks = outcome.windows.iter().map(|views| stack::of_run(&scenario, views)).collect();
        let verdicts = scenario.windows.iter().map(|_| OnceCell::new()).collect();
        Self { scenario, outcome, stacks, verdicts }
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

    /// The worst of the windows; of those that are alike, the first.
    pub(crate) fn worst(&self) -> usize {
        self.worst_of(self.named())
    }

    /// The one of some windows in which an I/O takes longest; those in which something is wrong
    /// come first.
    pub(crate) fn worst_of(&self, windows: impl Iterator<Item = usize>) -> usize {
        /// Longer by less than this is no difference.
        const ALIKE: f64 = 1.02;
        let worse = |best: (usize, bool, f64), window: (usize, bool, f64)| {
            let is_worse = match (best.1, window.1) {
                (false, true) => true,
                (true, false) => false,
                _ => window.2 > ALIKE * best.2,
            };
            if is_worse { window } else { best }
        };
        let costs = windows.map(|window| {
            let is_wrong = self.verdicts(window).iter().any(|verdict| !verdict.findings.is_empty());
            (window, is_wrong, longest_ms(&self.stacks[window]))
        });
        costs.reduce(worse).map_or(0, |worst| worst.0)
    }

    /// The samples of a window, of each host; the first is all that is after the warm-up.
    pub(crate) fn samples(&self, window: usize) -> Vec<Recording> {
        let hosts = self.outcome.recordings.iter().zip(&self.outcome.windows[window]);
        let window = &self.scenario.windows[window];
        hosts.map(|(all, view)| verdict::samples(&self.scenario, window, all, view)).collect()
    }

    /// The same, as whoever judges rows reads them.
    pub(crate) fn measured(&self, window: usize) -> Vec<Measured> {
        self.samples(window).into_iter().map(Measured::of).collect()
    }

    /// The verdict on each host over a window.
    pub(crate) fn verdicts(&self, window: usize) -> &[Verdict] {
        self.verdicts[window].get_or_init(|| {
            let samples = self.measured(window);
            let facts = known::facts(&self.scenario, &self.outcome, window, &samples);
            samples.iter().zip(&facts).map(|(own, facts)| verdict::judge(own, facts)).collect()
        })
    }
}

/// The mean time of an I/O; without end where some are under way and none completes.
fn longest_ms(stack: &Stack) -> f64 {
    let inside = |level: &Level| level.waiting() > Some(0.0) || level.in_use() > Some(0.0);
    let stands = stack.iops == 0.0 && stack.levels.iter().any(inside);
    if stands { f64::INFINITY } else { stack.total_ms.unwrap_or_default() }
}

/// The window of that name.
pub(crate) fn find_window(scenario: &Scenario, name: &str) -> Result<usize, String> {
    let windows = &scenario.windows;
    windows.iter().position(|window| window.name == name).ok_or_else(|| {
        let known: Vec<_> = windows.iter().map(|window| window.name.as_str()).collect();
        format!("--window {name}: there is no such window; there are {}", known.join(", "))
    })
}
