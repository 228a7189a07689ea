//! `kavg diagnose`: what is wrong in a capture, and what to type.

use std::{io::Write, path::PathBuf, process::ExitCode};

use clap::Args;
use diagnose::{Profile, Thresholds};

use crate::{
    Result,
    diagnosis::{Diagnosis, Side},
    facts, html, json,
    output::Outputs,
    whatif,
};

/// Find the queue that hurts in a capture of esxtop, with evidence and commands
///
/// Exit code: 0 when nothing is wrong, 1 when there are findings, 2 when the input is bad, 3 when
/// nothing was found and the capture lacks what it takes to say that nothing is wrong. With
/// `--compare` the captures behind it decide.
#[derive(Args)]
pub(crate) struct Diagnose {
    /// Captures of `esxtop -b`: CSV, gzip, zstd, zip, or `-` for standard input; several files of
    /// one host are joined
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
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
    /// device list` or `storage vmfs extent list` on the same host; can be given several times
    #[arg(long, value_name = "FILE")]
    esxcli: Vec<PathBuf>,
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
        let mut facts = facts::read(&self.esxcli)?;
        facts::add_names(&mut facts, &self.names)?;
        let side = |files: &[PathBuf]| -> Result<Side> {
            let mut side = Side::read(files, &thresholds, &facts)?;
            if !self.no_simulate {
                whatif::simulate(&side.recordings, &mut side.verdicts, &facts);
            }
            Ok(side)
        };
        let before = side(&self.files)?;
        let after = (!self.compare.is_empty()).then(|| side(&self.compare)).transpose()?;
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
        }
        Ok(ExitCode::from(diagnosis.exit_code()))
    }

    fn outputs(&self) -> Outputs {
        Outputs::beside(
            self.files.iter().chain(&self.compare).chain(&self.esxcli).chain(&self.names),
        )
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
