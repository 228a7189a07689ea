//! `kavg diagnose`: what is wrong in a capture, and what to type.

use std::{
    error::Error,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    thread::sleep,
    time::Duration,
};

use capture::ReadReport;
use clap::{Args, ValueHint::FilePath};
use diagnose::{Facts, Profile, Thresholds};
use levels::Measured;

use crate::{
    Result, captures,
    diagnosis::{Diagnosis, Side},
    facts,
    given::{Given, Told},
    html, journals, json,
    live::Live,
    output::Outputs,
    talk::{say, wait_for},
    text::clean,
    whatif,
};

/// What was read: recordings, how, and what is known of the host of each.
type Read = (Vec<Measured>, ReadReport, Vec<Facts>);

/// Find the queue that hurts in a capture of esxtop, a journal or a daemon at work, with evidence and commands
///
/// Exit code: 0 when nothing is wrong, 1 when there are findings, 2 when the input is bad, 3 when
/// nothing was found and the capture lacks what it takes to say that nothing is wrong. With
/// `--compare` the captures behind it decide.
#[derive(Args)]
pub(crate) struct Diagnose {
    /// Captures of `esxtop -b`: CSV, gzip, zstd, zip, or `-` for standard input; several files of
    /// one host are joined. Or journals: of `kavg run --journal`, segments of `kavg serve --journal`, or a directory
    /// of them
    #[arg(value_name = "FILE", required_unless_present = "live")]
    files: Vec<PathBuf>,
    /// Diagnose a daemon at work instead, by its control socket: it is sampled as `-d` and `-n` say
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["files", "compare", "esxcli"])]
    live: Option<PathBuf>,
    /// Of which of the daemon's hosts, where it has several
    #[arg(long, value_name = "NAME", requires = "live")]
    host: Option<String>,
    /// Seconds between samples of a daemon
    #[arg(short = 'd', long, value_name = "SECONDS", default_value = "2", requires = "live",
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    delay: u64,
    /// How many samples of a daemon
    #[arg(short = 'n', long, value_name = "N", default_value = "5", requires = "live",
        value_parser = clap::value_parser!(u64).range(2..=10_000))]
    samples: u64,
    /// Captures after a change, or of other hosts: what became of each device, VM and finding, and
    /// who else is on the same devices
    #[arg(long, value_name = "FILE", num_args = 1..)]
    compare: Vec<PathBuf>,
    /// Judge every device by these thresholds instead of those that fit its own latency
    #[arg(long, value_name = "classic|flash", value_parser = profile)]
    profile: Option<Profile>,
    /// Set one threshold, as `davg_ms=10` (`kavg explain thresholds` lists them)
    #[arg(long, value_name = "KEY=VALUE")]
    set_threshold: Vec<String>,
    /// The output of `esxcli storage core device list`, `storage core adapter list`, `storage nmp
    /// device list` or `storage vmfs extent list` on the same host; can be given several times. Of
    /// captures of several hosts, each with its host in front (`HOST:FILE`), or called as that (`HOST.txt`)
    #[arg(long, value_name = "FILE", value_parser = Given::parser(), value_hint = FilePath)]
    esxcli: Vec<Given>,
    /// Names of datastores, a line each as `naa.600508b1001c4d41,gold-03`
    #[arg(long, value_name = "FILE")]
    names: Vec<PathBuf>,
    /// Do not simulate the changes that are proposed
    #[arg(long)]
    no_simulate: bool,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Print Markdown for a ticket
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Write the report as a page as well: one file with charts, to be opened in a browser; `-` is
    /// standard output, and nothing else is printed
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// What a daemon can do that no ESXi does.
fn tell_of_daemons(side: &Side, out: &mut dyn Write) -> Result<()> {
    for device in side.full_devices() {
        writeln!(
            out,
            "\nWhere one of several VMs fills {device}, kavg finds its depth by latency instead:\n\
             $ kavg esxcli kavg device set -d {device} -l true"
        )?;
    }
    Ok(())
}

fn profile(name: &str) -> std::result::Result<Profile, String> {
    Profile::from_name(name).ok_or_else(|| "allowed are classic and flash".into())
}

impl Diagnose {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let mut outputs = self.outputs();
        let page = self.html.as_deref().map(|page| outputs.claim(page)).transpose()?;
        let other = [(self.json, "--json"), (self.markdown, "--markdown")];
        let other = other.into_iter().find_map(|(is_asked, name)| is_asked.then_some(name));
        let is_piped = outputs.take_stdout(other)?;
        let thresholds = self.thresholds()?;
        let mut named = Facts::default();
        facts::add_names(&mut named, &self.names)?;
        let (mut before, mut after) = self.sides()?;
        if let Some(after) = &mut after {
            diagnose::remember(&before.0, &after.0, &mut after.2);
            diagnose::remember(&after.0, &before.0, &mut before.2);
        }
        let judged = |(recordings, report, mut facts): Read| {
            facts.iter_mut().for_each(|facts| facts.datastores.extend(named.datastores.clone()));
            let mut side = Side::judge(recordings, report, &thresholds, &facts);
            if !self.no_simulate {
                wait_for("simulating", || {
                    whatif::simulate(&side.recordings, &mut side.verdicts, &facts);
                });
            }
            side
        };
        let mut before = judged(before);
        if self.live.is_some() {
            before.speak_as_daemon(self.host.as_deref(), self.json);
        }
        let after = after.map(judged);
        let diagnosis = Diagnosis::new(&before, after.as_ref());
        if let Some(output) = page {
            let page = html::Page::new(&before, after.as_ref(), diagnosis.comparison.as_ref());
            output.write(|file| Ok(html::write(&page, file)?))?;
        }
        if is_piped {
            return Ok(ExitCode::from(diagnosis.exit_code()));
        }
        if self.json {
            json::write(&diagnosis, out)?;
        } else if self.markdown {
            out.write_all(diagnosis.markdown().as_bytes())?;
        } else {
            out.write_all(diagnosis.text().as_bytes())?;
            if self.live.is_some() {
                tell_of_daemons(&before, out)?;
            }
        }
        Ok(ExitCode::from(diagnosis.exit_code()))
    }

    /// What is judged, and what it is compared with.
    fn sides(&self) -> Result<(Read, Option<Read>)> {
        let compared = || (!self.compare.is_empty()).then_some(&self.compare);
        if let Some(socket) = &self.live {
            let (facts, recording) = self.sample(socket)?;
            return Ok(((vec![recording], ReadReport::default(), vec![facts]), None));
        }
        if self.files.iter().chain(&self.compare).any(|path| journals::is_journal(path)) {
            let read = |files: &Vec<PathBuf>| {
                let (sources, _) = journals::recorded(files, &self.esxcli)?;
                let each = sources.into_iter().map(|source| (source.recording, source.facts));
                let (recordings, facts) = each.unzip();
                Ok::<_, Box<dyn Error>>((recordings, ReadReport::default(), facts))
            };
            return Ok((read(&self.files)?, compared().map(read).transpose()?));
        }
        let told = Told::read(&self.esxcli)?;
        let before = captures::read_needed(&self.files)?;
        let after = compared().map(|files| captures::read_needed(files)).transpose()?;
        let known = told.of(before.0.iter().chain(after.iter().flat_map(|after| &after.0)))?;
        let with_facts = |(recordings, report): (Vec<Measured>, ReadReport)| {
            let facts = known.each(&recordings);
            (recordings, report, facts)
        };
        Ok((with_facts(before), after.map(with_facts)))
    }

    /// What a daemon is set to and has counted for a while.
    fn sample(&self, socket: &Path) -> Result<(Facts, Measured)> {
        let live = Live { live: Some(socket.to_owned()), host: self.host.clone() };
        let mut daemon = live.connect()?;
        let state = daemon.state()?;
        // A device without a path completes nothing that could be judged.
        for path in state.paths.iter().filter(|path| path.dead || !path.up) {
            let what = if path.up { "dead" } else { "off" };
            let device = state.devices.get(path.device as usize).map_or("", |device| &device.name);
            say(&clean(&format!("path {} of {device} is {what}", path.name)));
        }
        let mut facts = facts::of_state(&state)?;
        let wait = || sleep(Duration::from_secs(self.delay));
        let recording = daemon.record(self.samples as usize, wait)?;
        facts::add_what_was(&mut facts, [&state, &daemon.state()?]);
        Ok((facts, Measured::of(recording)))
    }

    fn outputs(&self) -> Outputs {
        let told = self.esxcli.iter().map(|file| &file.path);
        Outputs::beside(self.files.iter().chain(&self.compare).chain(told).chain(&self.names))
    }

    fn thresholds(&self) -> Result<Thresholds> {
        let mut thresholds = self.profile.map_or_else(Thresholds::default, Thresholds::of);
        for setting in &self.set_threshold {
            let (key, value) = setting.split_once('=').ok_or_else(|| {
                format!("--set-threshold {setting}: expected KEY=VALUE, as davg_ms=10")
            })?;
            let number = value
                .trim()
                .parse()
                .map_err(|_| format!("--set-threshold {setting}: `{value}` is no number"))?;
            thresholds.set(key.trim(), number)?;
        }
        Ok(thresholds)
    }
}
