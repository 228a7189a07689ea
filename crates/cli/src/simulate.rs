//! How a run is driven: as fast as it goes, by the wall clock, or by hand; with a journal or
//! without; and what is said on the way.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    num::NonZeroUsize,
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use counters::{Histogram, Time};
use journal::Journal;
use scenario::Scenario;
use sim::{Outcome, Pace, Paced, Progress, Step, WallClock, Watch};

use crate::{
    Result,
    output::{Outputs, Pending},
    report::Report,
    talk::progress,
    text::{seconds, whole},
};

/// How a run goes.
#[derive(Args)]
pub(crate) struct Drive {
    /// How fast virtual time passes: `virtual` (as fast as the machine allows), `real`, a factor
    /// such as `10x`, or `step` (an event for each line of standard input)
    #[arg(long, default_value = "virtual", value_name = "PACE", conflicts_with = "other")]
    pace: Pace,
    /// Record every input of the stack in FILE, for `kavg replay`
    #[arg(long, value_name = "FILE", conflicts_with = "other")]
    journal: Option<PathBuf>,
    /// Threads for hosts of the scenario that can run apart [default: one for each CPU]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

/// What a run yields.
pub(crate) struct Driven {
    pub(crate) outcome: Outcome,
    /// By how much events were late, when the run went by the wall clock.
    pub(crate) lateness: Option<Histogram>,
}

impl Drive {
    /// Runs a scenario. Steps are told to `out`; a journal is one of its `outputs`.
    pub(crate) fn run(
        &self,
        scenario: &Scenario,
        outputs: &mut Outputs,
        out: &mut dyn Write,
    ) -> Result<Driven> {
        let paced = match self.pace {
            Pace::Virtual if self.journal.is_none() => {
                return Ok(Driven { outcome: self.run_fast(scenario), lateness: None });
            }
            Pace::Real { speed } => Some(Paced::new(WallClock::start(), speed)),
            Pace::Virtual | Pace::Step => None,
        };
        let is_stepped = self.pace == Pace::Step;
        let step = is_stepped.then(|| Step::new(scenario, io::stdin().lock(), out));
        let journal = self.open_journal(scenario, outputs)?;
        let ticker = Ticker::new(scenario).filter(|_| !is_stepped);
        let watch = ((ticker, paced), (step, journal));
        let (outcome, ((_, paced), (step, journal))) = sim::run_watched(scenario, watch);
        step.map(Step::finish).transpose()?;
        if let Some(journal) = journal {
            journal.finish()?.finish()?;
        }
        let lateness = paced.map(|paced| paced.lateness().clone());
        Ok(Driven { outcome, lateness })
    }

    /// The option with which a run prints on its way.
    pub(crate) fn prints(&self) -> Option<&'static str> {
        (self.pace == Pace::Step).then_some("--pace step")
    }

    fn threads(&self) -> usize {
        threads(self.threads)
    }

    /// Runs a scenario with each of the seeds from 1, in their order; a run has one thread. Of the
    /// samples nothing is kept.
    pub(crate) fn run_seeds(&self, scenario: &Scenario, seeds: u64) -> Vec<Report> {
        let next = AtomicU64::new(1);
        let runs = Mutex::new(BTreeMap::new());
        let work = || loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > seeds {
                return;
            }
            let scenario = Scenario { seed, ..scenario.clone() };
            let mut outcome = sim::run(&scenario, 1, &());
            outcome.recordings.clear();
            let report = Report::new(scenario, outcome);
            let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.insert(seed, report);
            progress(&match runs.len() {
                all if all as u64 == seeds => String::new(),
                some => format!("{some} of {seeds} seeds simulated"),
            });
        };
        thread::scope(|scope| (0..self.threads()).for_each(|_| drop(scope.spawn(work))));
        runs.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
    }

    /// Runs a scenario as fast as the machine allows.
    pub(crate) fn run_fast(&self, scenario: &Scenario) -> Outcome {
        let threads = self.threads();
        match Ticker::new(scenario) {
            Some(ticker) => sim::run(scenario, threads, &ticker),
            None => sim::run(scenario, threads, &()),
        }
    }

    fn open_journal(
        &self,
        scenario: &Scenario,
        outputs: &mut Outputs,
    ) -> Result<Option<Journal<Pending>>> {
        let Some(path) = &self.journal else { return Ok(None) };
        let file = outputs.claim_file(path)?.open()?;
        let hosts = scenario.hosts.iter().map(|host| &host.config);
        Ok(Some(Journal::new(file, &scenario.name, hosts)?))
    }
}

/// So many threads, or one for each CPU.
pub(crate) fn threads(asked: Option<NonZeroUsize>) -> usize {
    asked.or(thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// Tells a terminal how far a run is that takes long.
struct Ticker {
    duration: Time,
    /// The virtual time before which an event is not worth a look at the clock.
    next_at: Time,
    state: Mutex<Told>,
}

/// What was told.
struct Told {
    last: Instant,
    ios: u64,
    any: bool,
}

impl Ticker {
    /// Nothing is told earlier than this, nor more often.
    const INTERVAL: Duration = Duration::from_millis(500);
    /// How many times an event at most looks at the clock.
    const LOOKS: u64 = 1000;

    /// `None` when standard error is no terminal.
    fn new(scenario: &Scenario) -> Option<Self> {
        let told = Told { last: Instant::now(), ios: 0, any: false };
        let duration = Time(scenario.duration_ns);
        let ticker = Self { duration, next_at: Time::ZERO, state: Mutex::new(told) };
        io::stderr().is_terminal().then_some(ticker)
    }

    fn tell(&self, at: Time, ios: u64) {
        let Ok(mut told) = self.state.lock() else { return };
        told.ios += ios;
        if told.last.elapsed() < Self::INTERVAL {
            return;
        }
        (told.last, told.any) = (Instant::now(), true);
        let done = 100 * at.0 / self.duration.0;
        let ios =
            if told.ios > 0 { format!(", {} I/Os", whole(told.ios as f64)) } else { "".into() };
        progress(&format!("{done} % of {} simulated{ios}", seconds(self.duration)));
    }
}

impl Drop for Ticker {
    /// Leaves the line clean.
    fn drop(&mut self) {
        if self.state.get_mut().is_ok_and(|told| told.any) {
            progress("");
        }
    }
}

impl Watch for Ticker {
    fn before(&mut self, at: Time) {
        if at >= self.next_at {
            self.next_at = at + self.duration.0 / Self::LOOKS;
            self.tell(at, 0);
        }
    }
}

impl Progress for Ticker {
    fn reached(&self, at: Time, ios: u64) {
        self.tell(at, ios);
    }
}
