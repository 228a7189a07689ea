//! `kavg run`: simulates a scenario and shows where the time goes.

use std::{io::Write, num::NonZeroUsize, path::PathBuf, process::ExitCode};

use clap::Args;
use scenario::Scenario;
use sim::Checked;

use crate::{
    Result, captures,
    compare::{self, Pairs, Side},
    expectations, html, json, lateness, log,
    output::Outputs,
    report::{self, Layout, Report},
    screen,
    seeds::{SEEDS_MAX, Seeds},
    shipped,
    simulate::{Drive, Driven},
    table::screen_width,
    talk::say,
    text::clean,
};

/// Simulate a scenario and show where the time goes
///
/// Exit code: 0 when every expectation is met, 1 when one is not, 2 when the input is bad.
#[derive(Args)]
pub(crate) struct Run {
    /// A scenario file, `-` for standard input, or the name of a shipped scenario (`kavg scenarios`
    /// lists them)
    #[arg(value_name = "FILE|NAME")]
    source: String,
    /// Put a setting in force before the run begins, as esxcli takes it; `HOST: ` in front of it
    /// for one host; can be given several times
    #[arg(long, value_name = "ESXCLI LINE")]
    set: Vec<String>,
    /// The seed of every random stream, instead of the file's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run with each of the seeds 1 to N: the mean of every figure with its 95 % confidence
    /// interval, and expectations judged on the mean
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=SEEDS_MAX),
        conflicts_with_all = ["other", "seed", "window", "rows", "csv", "html", "pace", "journal"])]
    seeds: Option<u64>,
    /// The time between samples (`1s`, `500ms`), instead of the file's
    #[arg(long, value_name = "TIME", value_parser = scenario::parse_duration)]
    every: Option<u64>,
    /// Show the window of that name instead of the worst one
    #[arg(long, value_name = "NAME")]
    window: Option<String>,
    /// Objects named at each level of the stack; the rest are summed
    #[arg(long, value_name = "N", default_value = "5")]
    rows: NonZeroUsize,
    /// Print everything as JSON (`kavg help reference/json`)
    #[arg(long, conflicts_with_all = ["other", "quiet"])]
    json: bool,
    /// Write the samples after the warm-up in the format of `esxtop -b`; of several hosts each
    /// into a file of its own, with the host's name in it; a name that ends in `.parquet` gets a
    /// table as of `kavg capture convert`, with kavg's own counters and nothing rounded; `-` is standard
    /// output, and nothing else is printed
    #[arg(long, value_name = "FILE", conflicts_with = "other")]
    csv: Option<PathBuf>,
    /// Write the report as a page as well: one file with charts, to be opened in a browser; `-` is
    /// standard output, and nothing else is printed
    #[arg(long, value_name = "FILE", conflicts_with = "other")]
    html: Option<PathBuf>,
    /// Say nothing but what is not as expected
    #[arg(long, short, conflicts_with = "other")]
    quiet: bool,
    #[command(flatten)]
    other: Other,
    #[command(flatten)]
    drive: Drive,
}

/// What a run is compared with.
#[derive(Args)]
#[group(id = "other")]
struct Other {
    /// Compare with another scenario: before and after, side by side
    #[arg(long, value_name = "FILE|NAME")]
    compare: Option<String>,
    /// Compare with the same scenario under other settings; can be given several times
    #[arg(long, value_name = "ESXCLI LINE")]
    compare_set: Vec<String>,
}

impl Run {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        Outputs::print([Some(&self.source), self.other.compare.as_ref()].into_iter().flatten())?;
        let (source, mut scenario) = shipped::load(&self.source, &self.set)?;
        let mut outputs = shipped::outputs_beside(&self.source, &source);
        outputs.leaves_inputs()?;
        self.override_in(&mut scenario)?;
        if self.other.is_given() {
            return self.run_both(scenario, out);
        }
        if let Some(seeds) = self.seeds {
            return self.run_seeds(&scenario, seeds, out);
        }
        let window = self.window_of(&scenario)?;
        let hosts = scenario.hosts.iter().map(|host| host.config.name.as_str());
        let csv = self.csv.as_deref();
        let csv = csv.map(|path| captures::claim_samples(path, hosts, &mut outputs)).transpose()?;
        let page = self.html.as_deref().map(|page| outputs.claim(page)).transpose()?;
        let other = if self.json { Some("--json") } else { self.drive.prints() };
        let is_piped = outputs.take_stdout(other)?;
        let Driven { outcome, lateness } = self.drive.run(&scenario, &mut outputs, out)?;
        let report = Report::new(scenario, outcome);
        log::refusals(&report).for_each(|line| say(&line));
        if let Some(files) = csv {
            let names: Vec<_> =
                files.iter().map(|file| file.name().display().to_string()).collect();
            captures::write(&report.samples(0), files)?;
            if names.len() > 1 && !self.quiet {
                say(&clean(&format!("written: {}", names.join(", "))));
            }
        }
        let window = || window.unwrap_or_else(|| report.worst());
        if let Some(output) = page {
            let window = window();
            let samples = report.measured(0);
            let page = html::Page::of_run(&report, window, &samples, report.verdicts(window));
            output.write(|file| Ok(html::write(&page, file)?))?;
        }
        if is_piped {
            return Ok(exit_code(&report.checked()));
        }
        if self.json {
            let mut value = json::render(&report);
            value["lateness"] = serde_json::to_value(lateness.as_ref().map(lateness::quantiles))?;
            json::write(&value, out)?;
        } else if self.quiet {
            let failed = expectations::failed(&report.scenario, &report.checked(), &[]);
            out.write_all(failed.as_bytes())?;
        } else {
            let layout = self.layout(window());
            out.write_all(screen::render(&report, layout).as_bytes())?;
            if let Some(lateness) = &lateness {
                write!(out, "\n{}", lateness::render(lateness))?;
            }
        }
        Ok(exit_code(&report.checked()))
    }

    /// The same under several seeds.
    fn run_seeds(&self, scenario: &Scenario, seeds: u64, out: &mut dyn Write) -> Result {
        let seeds = Seeds { runs: self.drive.run_seeds(scenario, seeds) };
        match (self.json, self.quiet) {
            (true, _) => json::write(&seeds.json(), out)?,
            (false, true) => out.write_all(seeds.failed().as_bytes())?,
            (false, false) => out.write_all(seeds.render().as_bytes())?,
        }
        Ok(exit_code(&seeds.checked().0))
    }

    /// What the command line has to say beside the file.
    fn override_in(&self, scenario: &mut Scenario) -> Result<()> {
        scenario.seed = self.seed.unwrap_or(scenario.seed);
        if let Some(every) = self.every {
            scenario.set_sample(every).map_err(|what| format!("--every: {what}"))?;
        }
        for warning in &scenario.warnings {
            say(&clean(warning));
        }
        Ok(())
    }

    /// The window that was asked for; a wrong name is told before the run.
    fn window_of(&self, scenario: &Scenario) -> Result<Option<usize>> {
        let named = self.window.as_deref();
        Ok(named.map(|name| report::find_window(scenario, name)).transpose()?)
    }

    fn layout(&self, window: usize) -> Layout {
        Layout { window, rows: self.rows.get(), width: screen_width() }
    }

    /// Before and after, side by side.
    fn run_both(&self, scenario: Scenario, out: &mut dyn Write) -> Result {
        let source = self.other.compare.as_deref().unwrap_or(&self.source);
        let mut settings = if self.other.compare.is_none() { self.set.clone() } else { Vec::new() };
        settings.extend(self.other.compare_set.iter().cloned());
        let (read, mut other) = shipped::load(source, &settings)?;
        shipped::outputs_beside(source, &read).leaves_inputs()?;
        self.override_in(&mut other)?;
        let pairs = Pairs::of(&scenario, &other);
        let asked = self.window.as_deref();
        let asked = asked.map(|name| pairs.find(&scenario, name)).transpose()?;
        let [before, after] = [scenario, other].map(|scenario| {
            let outcome = self.drive.run_fast(&scenario);
            Report::new(scenario, outcome)
        });
        let worst = before.worst_of(pairs.windows.iter().map(|pair| pair.0));
        let of_worst = || pairs.windows.iter().find(|pair| pair.0 == worst).copied();
        let (window, of_after) = asked.or_else(of_worst).unwrap_or_default();
        let named = |source: &str, settings: &[String]| {
            let settings = settings.iter().map(|line| format!(", {line}"));
            format!("{source}{}", settings.collect::<String>())
        };
        let names = [named(&self.source, &self.set), named(source, &settings)];
        let before = Side { name: &names[0], report: &before, window };
        let after = Side { name: &names[1], report: &after, window: of_after };
        out.write_all(compare::render(&before, &after, &pairs, self.rows.get()).as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Other {
    fn is_given(&self) -> bool {
        self.compare.is_some() || !self.compare_set.is_empty()
    }
}

/// Whether every expectation is met.
fn exit_code(checked: &[Checked<'_>]) -> ExitCode {
    ExitCode::from(u8::from(!checked.iter().all(|one| one.holds)))
}
