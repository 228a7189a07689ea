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
    talk::{progress, say},
    text::{roughly, seconds, whole},
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
        let ticker = (!is_stepped).then(|| Ticker::new(scenario));
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
        sim::run(scenario, self.threads(), &Ticker::new(scenario))
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

/// Tells a terminal how far a run is that takes long; and whoever else reads standard error, once, that it takes very
/// long.
struct Ticker {
    duration: Time,
    begun: Instant,
    is_terminal: bool,
    /// The virtual time before which an event is not worth a look at the clock, unless there were many.
    next_at: Time,
    /// Events since the last look.
    events: u32,
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
    /// How many times an event at most looks at the clock, but for one of so many.
    const LOOKS: u64 = 1000;
    const EVENTS: u32 = 1 << 20;
    /// After so long it is clear whether a run takes longer than that.
    const KNOWN: Duration = Duration::from_secs(10);
    const LONG: Duration = Duration::from_secs(600);

    fn new(scenario: &Scenario) -> Self {
        let begun = Instant::now();
        Self {
            duration: Time(scenario.duration_ns),
            begun,
            is_terminal: io::stderr().is_terminal(),
            next_at: Time::ZERO,
            events: 0,
            state: Mutex::new(Told { last: begun, ios: 0, any: false }),
        }
    }

    fn tell(&self, at: Time, ios: u64) {
        let Ok(mut told) = self.state.lock() else { return };
        told.ios += ios;
        if told.last.elapsed() < Self::INTERVAL {
            return;
        }
        told.last = Instant::now();
        let rest = left(self.begun.elapsed(), at, self.duration);
        let ios =
            if told.ios > 0 { format!(", {} I/Os", whole(told.ios as f64)) } else { "".into() };
        let percent = 100.0 * at.0 as f64 / self.duration.0 as f64;
        let done = format!("{percent:.0} % of {} simulated{ios}", seconds(self.duration));
        let is_long = self.begun.elapsed() >= Self::KNOWN && rest >= Self::LONG;
        if self.is_terminal {
            progress(&format!("{done}, {} left", roughly(rest)));
        } else if is_long && !told.any {
            say(&format!("kavg: this takes long: {done}, some {} left", roughly(rest)));
        }
        told.any |= self.is_terminal || is_long;
    }
}

/// How long a run still takes that came so far in a time, if it goes on so.
fn left(elapsed: Duration, at: Time, duration: Time) -> Duration {
    let rest = duration.since(at) as f64 / at.0.max(1) as f64;
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * rest).unwrap_or(Duration::MAX)
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
        self.events += 1;
        if at >= self.next_at || self.events >= Self::EVENTS {
            (self.next_at, self.events) = (at + self.duration.0 / Self::LOOKS, 0);
            self.tell(at, 0);
        }
    }
}

impl Progress for Ticker {
    fn reached(&self, at: Time, ios: u64) {
        self.tell(at, ios);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_in_proportion_and_never_too_much_to_tell() {
        let ten = Duration::from_secs(10);
        for (at, duration, expected) in [
            (1, 4, Duration::from_secs(30)),
            (4, 4, Duration::ZERO),
            (1, 60_000_000_000, Duration::from_secs(599_999_999_990)),
            (0, u64::MAX, Duration::MAX),
        ] {
            assert_eq!(left(ten, Time(at), Time(duration)), expected, "{at} of {duration}");
        }
    }
}
