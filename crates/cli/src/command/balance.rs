//! `kavg balance`: what Storage DRS would move, and what that gives.

use std::{io::Write, num::NonZeroUsize, path::PathBuf, process::ExitCode};

use clap::Args;
use counters::{DeviceKind, Time, sorted::sort_by_key};
use scenario::Scenario;
use serde_json::json;
use sim::Source;

use crate::{
    Result,
    balance::{self, Asked, Balance},
    json, report, shipped, simulate,
};

/// Say which VMs Storage DRS would move to which datastore, and simulate it
///
/// A datastore whose 90th percentile of latency is above the threshold gives VMs to others, while a metric of
/// fairness is below 1 - imbalance / 100 [SDRS]. The percentile is that of the means of the file's samples
/// (`sample`): longer ones have a lower one. Which VM and where to is found by simulating each of those with
/// most in flight on each other datastore of the cluster: the move after which the worst datastore is best, or,
/// where none makes it better, all commands together. The latency is what VMs observe, as of Storage DRS since 5.1
/// [OBS], without what one waits for its own IOPS limit, wherever it is: that is told beside it. Space is left out,
/// and so is the copy itself, but for `--apply` with `--copy` (`kavg help docs/vms-per-datastore`).
///
/// Exit code: 0, and 2 when the input is bad.
#[derive(Args)]
pub(crate) struct BalanceArguments {
    /// A scenario file, `-` for standard input, or the name of a shipped scenario (`kavg scenarios`
    /// lists them)
    #[arg(value_name = "FILE|NAME")]
    scenario: String,
    /// The datastores of the cluster, by name, with commas [default: all of kind vmfs, and all of kind nfs as another
    /// cluster]
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
        let asked = |cluster| Asked {
            cluster,
            source: source.clone(),
            sample: Time(base.sample_ns),
            window: window.unwrap_or(0),
            latency_ms: f64::from(self.latency),
            imbalance: f64::from(self.imbalance),
            moves: self.moves as usize,
            threads: simulate::threads(self.threads),
        };
        let clusters: Vec<Asked> = self.clusters(&base)?.into_iter().map(asked).collect();
        let mut outputs = shipped::outputs_beside(&self.scenario, &source);
        let applied = self.apply.as_deref().map(|path| outputs.claim(path)).transpose()?;
        let at = base.windows[window.unwrap_or(0)].from;
        let as_it_is = balance::run(base);
        let balances: Vec<(&Asked, Balance)> =
            clusters.iter().map(|asked| (asked, Balance::of(asked, &as_it_is))).collect();
        if let Some(file) = applied {
            let events = balances
                .iter()
                .map(|(asked, balance)| balance.events(asked, at, self.copy.as_deref()));
            let text = format!("{}\n{}", source.text.trim_end(), events.collect::<String>());
            let source = Source { text, ..source.clone() };
            source.scenario().map_err(|error| format!("with the moves: {error}"))?;
            file.write(|out| Ok(out.write_all(source.text.as_bytes())?))?;
        }
        if self.json {
            let mut all: Vec<_> =
                balances.iter().map(|(asked, balance)| balance.to_json(asked)).collect();
            let value = match all.len() {
                1 => all.remove(0),
                _ => json!({ "version": 1, "clusters": all }),
            };
            json::write(&value, out)?;
        } else {
            let all: Vec<_> =
                balances.iter().map(|(asked, balance)| balance.render(asked)).collect();
            out.write_all(all.join("\n").as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The datastores that are asked for, each the only one on its device, or else those of each kind: NFS and VMFS
    /// datastores are not combined in one cluster [SDRS].
    fn clusters(&self, base: &Scenario) -> Result<Vec<Vec<String>>> {
        let mut known: Vec<(&str, bool)> = Vec::new();
        for host in &base.hosts {
            for (device, datastores) in host.config.devices.iter().zip(&host.datastores) {
                if let [one] = &**datastores
                    && !known.iter().any(|(name, _)| name == one)
                {
                    known.push((one.as_str(), device.kind == DeviceKind::Nfs));
                }
            }
        }
        let mut others = self.cluster.iter().enumerate();
        if let Some((_, twice)) = others.find(|(place, name)| self.cluster[..*place].contains(name))
        {
            return Err(format!("--cluster: datastore `{twice}` is named twice").into());
        }
        let is_known = |name: &&String| known.iter().any(|(known, _)| known == name);
        if let Some(unknown) = self.cluster.iter().find(|name| !is_known(name)) {
            let known = known.iter().map(|(name, _)| *name);
            return Err(knobs::unknown("datastore on a device of its own", unknown, known).into());
        }
        if !self.cluster.is_empty() {
            known.retain(|(name, _)| self.cluster.iter().any(|asked| asked == name));
            sort_by_key(&mut known, |(name, _)| {
                self.cluster.iter().position(|asked| asked == name)
            });
        }
        let clusters = [false, true].map(|is_nfs| {
            let of_kind = known.iter().filter(|(_, own)| *own == is_nfs);
            of_kind.map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()
        });
        match &clusters {
            [vmfs, nfs] if !vmfs.is_empty() && !nfs.is_empty() && !self.cluster.is_empty() => {
                let [vmfs, nfs] = [&vmfs[0], &nfs[0]];
                let why = "is not; a datastore cluster has one of the two";
                Err(format!("--cluster: `{nfs}` is NFS and `{vmfs}` {why}").into())
            }
            [vmfs, nfs] if vmfs.len() < 2 && nfs.len() < 2 => Err(match (vmfs.len(), nfs.len()) {
                (1, 1) => {
                    "a cluster has 2 datastores at least, all NFS or none; there is 1 of each"
                        .into()
                }
                (one, other) => {
                    format!("a cluster has 2 datastores at least; there is {}", one.max(other))
                        .into()
                }
            }),
            _ => Ok(clusters.into_iter().filter(|cluster| cluster.len() > 1).collect()),
        }
    }
}
