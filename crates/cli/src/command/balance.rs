//! `kavg balance`: what Storage DRS would move, and what that gives.

use std::{io::Write, num::NonZeroUsize, path::PathBuf, process::ExitCode};

use clap::Args;
use counters::Time;
use scenario::Scenario;
use sim::Source;

use crate::{
    Result,
    balance::{Asked, Balance},
    json, report, shipped, simulate,
};

/// Say which VMs Storage DRS would move to which datastore, and simulate it
///
/// A datastore whose 90th percentile of latency is above the threshold gives VMs to others, while a metric of
/// fairness is below 1 - imbalance / 100 [SDRS]. The percentile is that of the means of the file's samples
/// (`sample`): longer ones have a lower one. Which VM and where to is found by simulating each of those with
/// most in flight on each other datastore of the cluster: the move after which the worst datastore is best, or,
/// where none makes it better, all commands together. Space is left out, and so is the copy itself, but for
/// `--apply` with `--copy` (`kavg help docs/vms-per-datastore`).
///
/// Exit code: 0, and 2 when the input is bad.
#[derive(Args)]
pub(crate) struct BalanceArguments {
    /// A scenario file, `-` for standard input, or the name of a shipped scenario (`kavg scenarios`
    /// lists them)
    #[arg(value_name = "FILE|NAME")]
    scenario: String,
    /// The datastores of the cluster, by name, with commas [default: all of kind vmfs and nfs]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cluster: Vec<String>,
    /// The window of that name instead of the whole run
    #[arg(long, value_name = "NAME")]
    window: Option<String>,
    /// The I/O latency threshold in milliseconds, 5 to 100
    #[arg(long, value_name = "MS", default_value = "15", value_parser = clap::value_parser!(u32).range(5..=100))]
    latency: u32,
    /// The I/O imbalance threshold, 1 to 100
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=100))]
    imbalance: u32,
    /// Moves at most
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=64))]
    moves: u32,
    /// Put a setting in force before every run, as esxcli takes it; can be given several times
    #[arg(long, value_name = "ESXCLI LINE")]
    set: Vec<String>,
    /// Write the scenario with the moves as events at the beginning of the window
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    apply: Option<PathBuf>,
    /// With --apply: let Storage vMotion copy the disks, with these keys, as 'size = "40g"'
    #[arg(long, value_name = "KEYS", requires = "apply")]
    copy: Option<String>,
    /// Print everything as JSON (`kavg help reference/json`)
    #[arg(long)]
    json: bool,
    /// Runs at a time [default: one for each CPU]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl BalanceArguments {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        if let Some(keys) = &self.copy {
            scenario::check_copy(keys).map_err(|error| format!("--copy: {error}"))?;
        }
        let (source, base) = shipped::load(&self.scenario, &self.set)?;
        let window = self.window.as_deref();
        let window = window.map(|name| report::find_window(&base, name)).transpose()?;
        let asked = Asked {
            cluster: self.cluster(&base)?,
            source,
            sample: Time(base.sample_ns),
            window: window.unwrap_or(0),
            latency_ms: f64::from(self.latency),
            imbalance: f64::from(self.imbalance),
            moves: self.moves as usize,
            threads: simulate::threads(self.threads),
        };
        let mut outputs = shipped::outputs_beside(&self.scenario, &asked.source);
        let applied = self.apply.as_deref().map(|path| outputs.claim(path)).transpose()?;
        let balance = Balance::of(&asked)?;
        if let Some(file) = applied {
            let at = base.windows[asked.window].from;
            let events = balance.events(&asked, at, self.copy.as_deref());
            let text = format!("{}\n{events}", asked.source.text.trim_end());
            let source = Source { text, ..asked.source.clone() };
            source.scenario().map_err(|error| format!("with the moves: {error}"))?;
            file.write(|out| Ok(out.write_all(source.text.as_bytes())?))?;
        }
        if self.json {
            json::write(&balance.to_json(&asked), out)?;
        } else {
            out.write_all(balance.render(&asked).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The datastores that are asked for, each the only one on its device.
    fn cluster(&self, base: &Scenario) -> Result<Vec<String>> {
        let mut known: Vec<&str> = Vec::new();
        for datastores in base.hosts.iter().flat_map(|host| &host.datastores) {
            if let [one] = &**datastores
                && !known.contains(&one.as_str())
            {
                known.push(one);
            }
        }
        let asked: Vec<&str> = self.cluster.iter().map(String::as_str).collect();
        let mut others = asked.iter().enumerate();
        if let Some((_, twice)) = others.find(|(place, name)| asked[..*place].contains(name)) {
            return Err(format!("--cluster: datastore `{twice}` is named twice").into());
        }
        if let Some(unknown) = asked.iter().find(|name| !known.contains(name)) {
            return Err(knobs::unknown("datastore on a device of its own", unknown, known).into());
        }
        let cluster = if asked.is_empty() { known } else { asked };
        if cluster.len() < 2 {
            return Err(
                format!("a cluster has 2 datastores at least; there is {}", cluster.len()).into()
            );
        }
        Ok(cluster.into_iter().map(str::to_owned).collect())
    }
}
