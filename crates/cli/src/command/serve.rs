//! `kavg serve`: the disks of a file for real guests, from real storage, until it is told to end.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use capture::read_text;
use clap::Args;
use live::{Daemon, Options, Settings, Signals};
use scenario::Scenario;

use crate::{Result, talk::say, text::clean};

/// The file that is handed out.
const EXAMPLE: &str = include_str!("serve.toml");

/// Serve the disks of a file over NBD, with the stack of ESXi between them and their storage
///
/// A line for each disk says where a client finds it; then all of them can be opened. SIGTERM and
/// SIGINT end it: what is under way is answered.
///
/// Exit code: 0 when it was told to end, 2 when something cannot be opened or a journal not be written.
#[derive(Args)]
pub(crate) struct Serve {
    /// A scenario file whose datastores have a `backend`
    #[arg(value_name = "HOST.toml", required_unless_present = "example")]
    file: Option<PathBuf>,
    /// Put a setting in force before anything is served, as esxcli takes it; `HOST: ` in front of it
    /// for one host; can be given several times
    #[arg(long, value_name = "ESXCLI LINE")]
    set: Vec<String>,
    /// Record every input of the stack in a new file of DIR for each component, for `kavg replay`
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    /// A Unix socket for `kavg esxcli`, `kavg esxtop` and `kavg diagnose --live`; only its owner may
    /// open it
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Where settings are kept that are changed at work, to be in force again at the next start; beside
    /// HOST.toml and named as it, with `.settings` at the end, unless this names another file
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Print a commented file to start from
    #[arg(long, conflicts_with_all = ["file", "set", "journal", "control", "settings"])]
    example: bool,
}

impl Serve {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let Some(path) = &self.file else {
            out.write_all(EXAMPLE.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        };
        let file = path.display().to_string();
        let base = path.parent().unwrap_or(Path::new(""));
        let kept = self.settings.clone().unwrap_or_else(|| path.with_extension("settings"));
        let kept = Settings::read(&kept)?;
        let scenario = self.load(path, &file, base, &kept)?;
        let signals = Signals::hold()?;
        let (journal, control) = (self.journal.as_deref(), self.control.as_deref());
        let options = Options { file: &file, base, journal, control, settings: Some(&kept) };
        let told = live::confine(&scenario, options)?;
        let daemon = Daemon::start(&scenario, options)?;
        told.iter().chain(&daemon.notes).for_each(|note| say(&clean(note)));
        for place in &daemon.places {
            let uris = place.uris.join(" ");
            writeln!(out, "{} {} {uris}", clean(&place.export), place.bytes)?;
        }
        out.flush()?;
        signals.wait();
        daemon.stop()?;
        Ok(ExitCode::SUCCESS)
    }

    fn load(&self, path: &Path, file: &str, base: &Path, kept: &Settings) -> Result<Scenario> {
        let read = |path: &Path| read_text(path).map_err(|error| error.to_string());
        let text = read(path)?;
        let mut include = |name: &str| read(&base.join(name));
        let mut scenario = Scenario::parse_served(file, &text, &mut include)?;
        for (place, line) in kept.lines() {
            if let Err(what) = scenario.set(&line) {
                say(&clean(&format!("{place}: {what}; it is left out")));
            }
        }
        self.set.iter().try_for_each(|line| scenario.set(line))?;
        Ok(scenario)
    }
}
