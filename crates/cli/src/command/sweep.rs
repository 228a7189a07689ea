//! `kavg sweep`: a scenario under many settings, with many seeds.

use std::{io::Write, num::NonZeroUsize, path::PathBuf, process::ExitCode};

use clap::Args;
use scenario::{Scenario, is_member};

use crate::{
    Result, captures, html, json,
    output::Outputs,
    report, seeds, shipped, simulate,
    sweep::{self, Axis, Job, Results, Store, Sweep as Json},
    table::screen_width,
    talk::say,
    text::{clean, whole},
};

/// Simulate a scenario with every combination of some values
///
/// A value is turned by its KEY: a key of the file, as `vm.NAME.workload.threads` (`*` is every one of a
/// table or list); an advanced option, as `Disk.SchedQuantum`; `device.depth`, which is the driver's
/// depth per device and DSNRO of every host together; or a line as `--set` takes it with `{}` for
/// the value. VALUES are as `1,8,64`, `16..256x2` or `10%..50%+10`
/// (`kavg help reference/sweep`). Exit code: 0, and 2 when the input is bad.
#[derive(Args)]
pub(crate) struct Sweep {
    /// A scenario file, `-` for standard input, or the name of a shipped scenario (`kavg scenarios`
    /// lists them)
    #[arg(value_name = "FILE|NAME")]
    source: String,
    /// What to turn, and its values; given several times, every combination is run, and the knee is
    /// looked for along the first one
    #[arg(long, required = true, value_name = "KEY=VALUES", value_parser = Axis::parse)]
    over: Vec<Axis>,
    /// Put a setting in force before every run, as esxcli takes it; `HOST: ` in front of it for one
    /// host; can be given several times
    #[arg(long, value_name = "ESXCLI LINE")]
    set: Vec<String>,
    /// The seed of every run, instead of the file's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run each point with each of the seeds 1 to N: means with their 95 % confidence interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=seeds::SEEDS_MAX),
        conflicts_with = "seed")]
    seeds: Option<u64>,
    /// Show the window of that name alone
    #[arg(long, value_name = "NAME")]
    window: Option<String>,
    /// Show beside the whole stack what this VM does, or all of a group (`count`) together, and what
    /// its guest waits; can be given several times
    #[arg(long, value_name = "NAME")]
    vm: Vec<String>,
    /// Keep every run that is done in FILE, and go on with those that are there: after a kill, or to
    /// write another output
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Write every figure of every run as a table (`kavg help reference/sweep`); a name that ends in
    /// `.parquet` gets Parquet; `-` is standard output, and nothing else is printed
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write charts of throughput and latency with the knee as a page; `-` is standard output, and
    /// nothing else is printed
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print every figure of every point as JSON (`kavg help reference/json`)
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
    /// Print nothing
    #[arg(long, short)]
    quiet: bool,
    /// Runs at a time [default: one for each CPU]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl Sweep {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        Outputs::print([&self.source])?;
        let overs: Vec<_> = self.over.iter().flat_map(Axis::overs).collect();
        let (source, base) = shipped::load_with(&self.source, &self.set, &overs)?;
        base.warnings.iter().for_each(|warning| say(&clean(warning)));
        let window = self.window.as_deref();
        window.map(|name| report::find_window(&base, name)).transpose()?;
        for vm in &self.vm {
            require_work(&base, vm)?;
        }
        let mut outputs = shipped::outputs_beside(&self.source, &source);
        let csv = self.csv.as_deref();
        csv.map(captures::require_table).transpose()?;
        let csv = csv.map(|path| outputs.claim(path)).transpose()?;
        let page = self.html.as_deref().map(|path| outputs.claim(path)).transpose()?;
        let state = self.state.as_deref().map(|path| outputs.claim_kept(path)).transpose()?;
        let is_piped = outputs.take_stdout(self.json.then_some("--json"))?;
        let seeds = seeds::asked(self.seeds, self.seed.unwrap_or(base.seed));
        let job = Job::new(source, base, self.over.clone(), seeds)?;
        let mut store = match state {
            Some(state) => Store::open(state, &job.lines(), job.runs())?,
            None => Store::temporary(job.runs())?,
        };
        if store.done() > 0 {
            let [done, all] = [store.done(), job.runs()].map(|runs| whole(runs as f64));
            say(&format!("{done} of {all} runs are done already"));
        }
        sweep::run(&job, &mut store, simulate::threads(self.threads))?;
        let results = Results::of(&job, &mut store, window, &self.vm)?;
        if let Some(csv) = csv {
            sweep::write_rows(&job, &mut store, csv)?;
        }
        if let Some(page) = page {
            page.write(|file| Ok(html::write_sweep(&results, file)?))?;
        }
        if self.json {
            json::write(&Json::new(&results, &mut store), out)?;
        } else if !is_piped && !self.quiet {
            out.write_all(sweep::render(&results, screen_width()).as_bytes())?;
        }
        store.require_kept()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Refuses a name of no VM with a workload, nor of a group in which one is.
fn require_work(base: &Scenario, name: &str) -> std::result::Result<(), String> {
    let vms = base.hosts.iter().flat_map(|host| &host.config.vms);
    let mut members = vms.filter(|vm| is_member(&vm.name, name));
    match base.home(name) {
        Err(error) if !members.any(|vm| base.home(&vm.name).is_ok()) => {
            Err(format!("--vm: {error}"))
        }
        _ => Ok(()),
    }
}
