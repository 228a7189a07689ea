//! `kavg remedy`: what can be done for a VM that suffers from another, the best first.

use std::{
    io::Write,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, ValueHint::FilePath};
use sim::Source;

use crate::{
    Result, captures, facts,
    given::Given,
    journals::{self, Recorded},
    json,
    output::Outputs,
    remedy::{self, Case, Found, Ranking, candidates},
    report::{self, Report},
    seeds, shipped, simulate,
    sweep::{self, Axis, Job, Store},
    table::screen_width,
    talk::{say, wait_for},
    text::clean,
};

/// Try what can be done for a VM that suffers from another: remedies ranked
///
/// Deeper queues, a device or host of its own, limits, schedulers, Storage I/O Control, policies of the
/// array, fewer I/Os in the guest that causes it: each that applies is simulated, and one table says
/// what the good VM gains, what the bad one loses, how fair it is, when it acts and what to type
/// (`kavg help docs/remedy`). A host of which there is a capture or a journal is simulated as `kavg
/// whatif` models it, once for each reading of what the recording leaves open. Exit code: 0, and 2 when
/// the input is bad.
#[derive(Args)]
pub(crate) struct Remedy {
    /// A scenario file, `-` for standard input, or the name of a shipped scenario (`kavg scenarios`
    /// lists them); a capture of `esxtop -b` of one host (CSV, gzip, zstd, zip); or a journal, or a directory of
    /// its segments
    #[arg(value_name = "FILE|NAME")]
    source: String,
    /// The VM that suffers, instead of the one that the diagnosis names
    #[arg(long, value_name = "VM")]
    good: Option<String>,
    /// The VM that it suffers from, instead of the one that the diagnosis names
    #[arg(long, value_name = "VM")]
    bad: Option<String>,
    /// The window of that name instead of the worst one, of a scenario
    #[arg(long, value_name = "NAME")]
    window: Option<String>,
    /// Put a setting in force before every run of a scenario, as esxcli takes it; `HOST: ` in front of it for
    /// one host; can be given several times
    #[arg(long, value_name = "ESXCLI LINE")]
    set: Vec<String>,
    /// The seed of every run, instead of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run each remedy of a scenario with each of the seeds 1 to N: means with their 95 % confidence interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=seeds::SEEDS_MAX),
        conflicts_with = "seed")]
    seeds: Option<u64>,
    /// The output of `esxcli storage core device list` or another that `kavg diagnose` takes, on the host of a
    /// capture; can be given several times. Of a capture of several hosts, each with its host in front
    /// (`HOST:FILE`), or called as that (`HOST.txt`)
    #[arg(long, value_name = "FILE", value_parser = Given::parser(), value_hint = FilePath)]
    esxcli: Vec<Given>,
    /// Names of its datastores, a line each as `naa.600508b1001c4d41,gold-03`
    #[arg(long, value_name = "FILE")]
    names: Vec<PathBuf>,
    /// Print everything as JSON (`kavg help reference/json`)
    #[arg(long)]
    json: bool,
    /// Runs at a time [default: one for each CPU]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl Remedy {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let path = Path::new(&self.source);
        let told = self.esxcli.iter().map(|file| &file.path).chain(&self.names);
        Outputs::print([path].into_iter().chain(told.map(|path| &**path)))?;
        let is_recorded = captures::is_named_so(path) || journals::is_journal(path);
        self.check(is_recorded)?;
        let (case, sources, seeds) = match is_recorded {
            false => self.of_scenario()?,
            true => match self.of_recording()? {
                Found::Something(case, sources) => (*case, sources, vec![1]),
                Found::Nothing(host, headline) if self.json => {
                    json::write(&remedy::render_nothing_json(&host, &headline), out)?;
                    return Ok(ExitCode::SUCCESS);
                }
                Found::Nothing(host, headline) => {
                    let headline = clean(headline.trim_end_matches('.'));
                    writeln!(out, "{}: {headline}: there is nothing to remedy.", clean(&host))?;
                    return Ok(ExitCode::SUCCESS);
                }
            },
        };
        let (remedies, mut refused) = candidates(&case, &sources);
        let mut jobs = Vec::new();
        for source in sources {
            let edits = remedies.iter().map(|remedy| (remedy.what.clone(), remedy.edits.clone()));
            let as_it_is = ("as it is".to_owned(), Vec::new());
            let axis = Axis::named("remedy", std::iter::once(as_it_is).chain(edits));
            let base = source.scenario().map_err(|error| error.to_string())?;
            let job = Job::new(source, base, vec![axis], seeds.clone())?;
            let mut store = Store::temporary(job.runs())?;
            sweep::run(&job, &mut store, simulate::threads(self.threads))?;
            jobs.push((job, store));
        }
        let ranking = Ranking::of(&case, remedies, &mut jobs, &mut refused)?;
        let job = &jobs[0].0;
        if self.json {
            json::write(&remedy::render_json(&case, job, &ranking, &refused), out)?;
        } else {
            let text = remedy::render(&case, job, &ranking, &refused, screen_width());
            out.write_all(text.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses options that are not for what is given.
    fn check(&self, is_recorded: bool) -> Result<()> {
        let of_scenarios = [
            ("--window", self.window.is_some()),
            ("--set", !self.set.is_empty()),
            ("--seed", self.seed.is_some()),
            ("--seeds", self.seeds.is_some()),
        ];
        let of_captures =
            [("--esxcli", !self.esxcli.is_empty()), ("--names", !self.names.is_empty())];
        let (others, kind) = match is_recorded {
            true => (&of_scenarios[..], "scenarios"),
            false => (&of_captures[..], "captures"),
        };
        match others.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => {
                Err(format!("{option}: it is for {kind}, and {} is none", self.source).into())
            }
            None => Ok(()),
        }
    }

    /// The case of a scenario, what it is made from, and the seeds.
    fn of_scenario(&self) -> Result<(Case, Vec<Source>, Vec<u64>)> {
        let (source, base) = shipped::load(&self.source, &self.set).map_err(|refusal| {
            // A name that says nothing may be meant for either.
            let path = Path::new(&self.source);
            let is_neither = path.is_file() && path.extension().is_none_or(|own| own != "toml");
            let neither =
                "; it is read as a scenario: by its name it is no capture, by its bytes no journal";
            if is_neither { refusal + neither } else { refusal }
        })?;
        base.warnings.iter().for_each(|warning| say(&clean(warning)));
        let seeds = seeds::asked(self.seeds, self.seed.unwrap_or(base.seed));
        let window = self.window.as_deref();
        let window = window.map(|name| report::find_window(&base, name)).transpose()?;
        let mut first = base;
        first.seed = seeds[0];
        let outcome = wait_for("simulating", || sim::run(&first, 1, &()));
        let report = Report::new(first, outcome);
        let window = window.unwrap_or_else(|| report.worst());
        let case = Case::of(report, window, self.good.as_deref(), self.bad.as_deref())?;
        Ok((case, vec![source], seeds))
    }

    /// What there is to remedy on the host of a capture or a journal; of several hosts on the first where there is
    /// something. As of `whatif`, why the others have no answer is told where none has one.
    fn of_recording(&self) -> Result<Found> {
        let (hosts, _) = journals::recorded(&[PathBuf::from(&self.source)], &self.esxcli)?;
        let (good, bad) = (self.good.as_deref(), self.bad.as_deref());
        let (mut nothing, mut refusal) = (None, None);
        for mut host in hosts.into_iter().map(Recorded::by_end) {
            facts::add_names(&mut host.facts, &self.names)?;
            match wait_for("simulating", || remedy::find(host, good, bad)) {
                Ok(something @ Found::Something(..)) => return Ok(something),
                Ok(found) => nothing = nothing.or(Some(found)),
                Err(why) => refusal = refusal.or(Some(why)),
            }
        }
        match (refusal, nothing) {
            (None, Some(nothing)) => Ok(nothing),
            (why, _) => Err(why.unwrap_or_else(|| "it has no host".into()).into()),
        }
    }
}
