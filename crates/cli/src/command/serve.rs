//! `kavg serve`: the disks of a file for real guests, from real storage, until it is told to end.

use std::{
    fs::metadata,
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use capture::read_text;
use clap::Args;
use live::{Daemon, Options, Settings, Signals, Told};
use scenario::{Backend, Scenario, parse_size};

use crate::{Result, output::Outputs, talk::say, text::clean};

/// The file that is handed out.
const EXAMPLE: &str = include_str!("serve.toml");

/// Serve the disks of a file over vhost-user and NBD, with the stack of ESXi between them and their storage
///
/// A line for each disk says where a client finds it; then all of them can be opened. SIGTERM and
/// SIGINT end it: what is under way is answered. SIGHUP has the file read again: limits, shares, depths
/// and settings that changed in it are in force then; and disks come, go, grow, or move.
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
    /// Record every input of the stack in files of DIR for each component, for `kavg replay`
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    /// The most that the files of a component have together, those of earlier daemons too: the oldest go
    #[arg(long, value_name = "SIZE", default_value = "4g", value_parser = journal_cap,
          requires = "journal")]
    journal_cap: u64,
    /// A Unix socket for `kavg esxcli`, `kavg esxtop` and `kavg diagnose --live`; only its owner may
    /// open it
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// An address of the loopback interface at which the counters are for Prometheus and all that read
    /// OpenMetrics: http://ADDRESS/metrics
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    metrics: Option<SocketAddr>,
    /// Where settings are kept that are changed at work, to be in force again at the next start; beside
    /// HOST.toml and named as it, with `.settings` at the end, unless this names another file
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Print a commented file to start from
    #[arg(long, conflicts_with_all = ["file", "set", "journal", "control", "metrics", "settings"])]
    example: bool,
}

/// A segment has up to a frame of 64 KiB more than its share.
fn journal_cap(text: &str) -> std::result::Result<u64, String> {
    const LEAST: u64 = 1 << 18;
    let bytes = parse_size(text)?;
    (bytes >= LEAST).then_some(bytes).ok_or_else(|| "allowed is 256k and more".into())
}

/// Whoever reads counters reads the names of VMs.
fn loopback(text: &str) -> std::result::Result<SocketAddr, String> {
    let address = text.parse::<SocketAddr>().ok().filter(|address| address.ip().is_loopback());
    address.ok_or_else(|| {
        "it is an address of the loopback interface with a port, as 127.0.0.1:9464".into()
    })
}

impl Serve {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let Some(path) = &self.file else {
            out.write_all(EXAMPLE.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        };
        let file = path.display().to_string();
        let base = path.parent().unwrap_or(Path::new(""));
        let kept_in = self.settings.clone().unwrap_or_else(|| Settings::place(path));
        let kept = Settings::read(&kept_in, text)?;
        let mut as_written = read(path, &file, base)?;
        let (scenario, left_out) = self.with_settings(&as_written, &kept)?;
        left_out.iter().for_each(|note| say(&clean(note)));
        self.stay_apart(&scenario, base, &kept_in)?;
        let signals = Signals::hold()?;
        let (journal, control) = (self.journal.as_deref(), self.control.as_deref());
        let options = Options {
            file: &file,
            base,
            journal,
            journal_cap_bytes: self.journal_cap,
            control,
            metrics: self.metrics,
            settings: Some(&kept),
            tell: |line| say(&clean(line)),
        };
        let told = live::confine(&scenario, options)?;
        let mut daemon = Daemon::start(&scenario, options)?;
        told.iter().for_each(|note| say(&clean(note)));
        tell(&daemon, out)?;
        while signals.wait() == Told::Reload {
            // Who serves goes on with what it has, whatever the file says.
            let reloaded = read(path, &file, base).and_then(|new| {
                self.stay_apart(&new, base, &kept_in)?;
                daemon.reload(&as_written, &new, &|file, kept| {
                    self.with_settings(file, kept).map_err(|what| what.to_string())
                })?;
                as_written = new;
                Ok(())
            });
            match reloaded {
                // Whoever read the first lines may be gone.
                Ok(()) => drop(tell(&daemon, out)),
                Err(what) => say(&clean(&format!("{file} is not taken: {what}"))),
            }
        }
        daemon.stop(options.tell)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses to write what is read or served.
    fn stay_apart(&self, scenario: &Scenario, base: &Path, kept_in: &PathBuf) -> Result<()> {
        let images = || scenario.hosts.iter().flat_map(|host| host.images.iter().flatten());
        let files = images().filter_map(|image| match &image.backend {
            Backend::File(name) => Some(name),
            _ => None,
        });
        let of_vhost = images().filter_map(|image| image.vhost_user.as_ref());
        let of_nbd = scenario.hosts.iter().filter_map(|host| host.nbd.as_ref()?.socket.as_ref());
        let served = files.chain(of_vhost).chain(of_nbd).map(|name| base.join(name));
        let mut outputs = Outputs::beside(served.chain(self.file.clone()));
        self.journal.iter().try_for_each(|folder| outputs.claim_folder(folder))?;
        self.control
            .iter()
            .chain([kept_in])
            .try_for_each(|written| outputs.claim_file(written).map(drop))
    }

    /// The file with what was set at work, and over that what the command line says; and a line for each that
    /// is left out.
    fn with_settings(&self, file: &Scenario, kept: &Settings) -> Result<(Scenario, Vec<String>)> {
        let (mut scenario, mut left_out) = (file.clone(), Vec::new());
        for (place, line) in kept.lines() {
            if let Err(what) = scenario.set(&line) {
                left_out.push(format!("{place}: {what}; it is left out"));
            }
        }
        self.set.iter().try_for_each(|line| scenario.set(line))?;
        Ok((scenario, left_out))
    }
}

/// Says what is worth a word, and where disks are found that are new.
fn tell(daemon: &Daemon, out: &mut dyn Write) -> std::io::Result<()> {
    daemon.notes.iter().for_each(|note| say(&clean(note)));
    for place in &daemon.places {
        let uris = place.uris.join(" ");
        writeln!(out, "{} {} {uris}", clean(&place.export), place.bytes)?;
    }
    out.flush()
}

/// The file as it is now.
fn read(path: &Path, file: &str, base: &Path) -> Result<Scenario> {
    let mut include = |name: &str| text(&base.join(name));
    Ok(Scenario::parse_served(file, &text(path)?, &mut include)?)
}

/// The text of a file. Whoever opened a pipe would wait for who fills it, and nothing would end the daemon then.
pub(super) fn text(path: &Path) -> std::result::Result<String, String> {
    if metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Err(format!("{}: it is no regular file", path.display()));
    }
    read_text(path).map_err(|error| error.to_string())
}
