//! A scenario that was run, and what follows from it: the stack over each window, the verdicts, the
//! expectations. Who shows them stands above.

use std::cell::OnceCell;

use counters::Recording;
use diagnose::{Cause, Thresholds, Verdict, diagnose_together};
use scenario::Scenario;
use sim::{Checked, Outcome};

use levels::{Level, LevelKind, Measured, Queue, Stack};

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
        let windows = scenario.windows.iter().zip(&outcome.windows);
        let stacks =
            windows.map(|(window, views)| stack::of_run(&scenario, window, views)).collect();
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

    /// The one of some windows in which an I/O takes longest; those in which a device does not answer come first,
    /// then those in which something else is wrong.
    pub(crate) fn worst_of(&self, windows: impl Iterator<Item = usize>) -> usize {
        /// Longer by less than this is no difference.
        const ALIKE: f64 = 1.02;
        let worse = |best: (usize, u8, f64), window: (usize, u8, f64)| {
            let is_longer = window.1 == best.1 && window.2 > ALIKE * best.2;
            if window.1 > best.1 || is_longer { window } else { best }
        };
        let costs = windows.map(|window| {
            let findings = self.verdicts(window).iter().flat_map(|verdict| &verdict.findings);
            let ranks = findings.map(|finding| if finding.cause == Cause::Silence { 2 } else { 1 });
            (window, ranks.max().unwrap_or(0), longest_ms(&self.stacks[window]))
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
            diagnose_together(&samples, &Thresholds::default(), &facts)
        })
    }
}

/// The mean time of an I/O, by Little's law that of those which do not complete as well; without end where some are
/// under way and none completes.
fn longest_ms(stack: &Stack) -> f64 {
    let inside = |level: &Level| level.waiting() > Some(0.0) || level.in_use() > Some(0.0);
    if stack.iops == 0.0 {
        return if stack.levels.iter().any(inside) { f64::INFINITY } else { 0.0 };
    }
    let kinds = [LevelKind::Guest, LevelKind::Device, LevelKind::Held];
    let levels = kinds.into_iter().filter_map(|kind| stack.level(kind));
    let outstanding: f64 = levels.flat_map(|level| &level.queues).filter_map(Queue::inside).sum();
    stack.total_ms.unwrap_or_default().max(1000.0 * outstanding / stack.iops)
}

/// The window of that name.
pub(crate) fn find_window(scenario: &Scenario, name: &str) -> Result<usize, String> {
    let windows = &scenario.windows;
    windows.iter().position(|window| window.name == name).ok_or_else(|| {
        let known: Vec<_> = windows.iter().map(|window| window.name.as_str()).collect();
        format!("--window {name}: there is no such window; there are {}", known.join(", "))
    })
}
