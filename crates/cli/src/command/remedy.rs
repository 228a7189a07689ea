//! `kavg remedy`: what can be done for a VM that suffers from another, the best first.

use std::{io::Write, num::NonZeroUsize, path::Path, process::ExitCode};

use clap::Args;

use crate::{
    Result, captures, json,
    output::Outputs,
    remedy::{self, Case, Ranking, candidates},
    report::{self, Report},
    seeds, shipped, simulate,
    sweep::{self, Axis, Job, Store},
    table::screen_width,
    talk::{say, wait_for},
    text::clean,
};

/// Try what can be done for a VM that suffers from another, in a scenario: remedies ranked
///
/// Deeper queues, a device or host of its own, limits, schedulers, Storage I/O Control, policies of the
/// array, fewer I/Os in the guest that causes it: each that applies is simulated, and one table says
/// what the good VM gains, what the bad one loses, how fair it is, when it acts and what to type
/// (`kavg help docs/remedy`). Exit code: 0, and 2 when the input is bad.
#[derive(Args)]
pub(crate) struct Remedy {
    /// A scenario file, `-` for standard input, or the name of a shipped scenario (`kavg scenarios`
    /// lists them)
    #[arg(value_name = "FILE|NAME")]
    source: String,
    /// The VM that suffers, instead of the one that the diagnosis names
    #[arg(long, value_name = "VM")]
    good: Option<String>,
    /// The VM that it suffers from, instead of the one that the diagnosis names
    #[arg(long, value_name = "VM")]
    bad: Option<String>,
    /// The window of that name instead of the worst one
    #[arg(long, value_name = "NAME")]
    window: Option<String>,
    /// Put a setting in force before every run, as esxcli takes it; `HOST: ` in front of it for one
    /// host; can be given several times
    #[arg(long, value_name = "ESXCLI LINE")]
    set: Vec<String>,
    /// The seed of every run, instead of the file's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run each remedy with each of the seeds 1 to N: means with their 95 % confidence interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=seeds::SEEDS_MAX),
        conflicts_with = "seed")]
    seeds: Option<u64>,
    /// Print everything as JSON (`kavg help reference/json`)
    #[arg(long)]
    json: bool,
    /// Runs at a time [default: one for each CPU]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl Remedy {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        Outputs::print([&self.source])?;
        if captures::is_named_so(Path::new(&self.source)) {
            let file = &self.source;
            return Err(format!(
                "{file}: a scenario is needed; for a capture or journal `kavg diagnose` says what to \
                 do, and `kavg whatif --set LINE` what it does"
            )
            .into());
        }
        let (source, base) = shipped::load(&self.source, &self.set)?;
        base.warnings.iter().for_each(|warning| say(&clean(warning)));
        let seeds = seeds::asked(self.seeds, self.seed.unwrap_or(base.seed));
        let window = self.window.as_deref();
        let window = window.map(|name| report::find_window(&base, name)).transpose()?;
        let mut first = base.clone();
        first.seed = seeds[0];
        let outcome = wait_for("simulating", || sim::run(&first, 1, &()));
        let report = Report::new(first, outcome);
        let window = window.unwrap_or_else(|| report.worst());
        let case = Case::of(report, window, self.good.as_deref(), self.bad.as_deref())?;
        let (remedies, refused) = candidates(&case, &source);
        let edits = remedies.iter().map(|remedy| (remedy.what.clone(), remedy.edits.clone()));
        let as_it_is = ("as it is".to_owned(), Vec::new());
        let axis = Axis::named("remedy", std::iter::once(as_it_is).chain(edits));
        let job = Job::new(source, base, vec![axis], seeds)?;
        let mut store = Store::temporary(job.runs())?;
        sweep::run(&job, &mut store, simulate::threads(self.threads))?;
        let ranking = Ranking::of(&case, remedies, &job, &mut store)?;
        if self.json {
            json::write(&remedy::render_json(&case, &job, &ranking, &refused), out)?;
        } else {
            let text = remedy::render(&case, &job, &ranking, &refused, screen_width());
            out.write_all(text.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
