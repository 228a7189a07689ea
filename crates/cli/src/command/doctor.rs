//! `kavg doctor`: whether this machine can serve, and what to type where it cannot.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use capture::read_text;
use clap::Args;
use live::Settings;
use scenario::Scenario;
use serde::Serialize;

use super::serve::text;
use crate::{
    Result,
    doctor::{Check, System, Verdict, bad, check},
    text::clean,
};

/// Say whether this machine can serve disks, and what to type where something is in the way
///
/// It looks at the kernel, io_uring, hugepages and limits, and with HOST.toml at the files, directories and
/// sockets that it names. Nothing is changed or made.
///
/// Exit code: 0 when nothing is in the way, 1 when something is, 2 when HOST.toml is bad.
#[derive(Args)]
pub(crate) struct Doctor {
    /// A file as `kavg serve` takes it
    #[arg(value_name = "HOST.toml")]
    file: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints; `docs/reference/json.md` describes it.
#[derive(Serialize)]
struct Report {
    version: u32,
    checks: Vec<Check>,
}

impl Doctor {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let scenario = self.file.as_deref().map(load).transpose()?;
        let base = self.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let mut checks = check(&System::read(), scenario.as_ref(), base);
        checks.extend(self.file.as_deref().and_then(settings));
        let is_in_the_way = checks.iter().any(|check| check.verdict == Verdict::Bad);
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &Report { version: 1, checks })?;
            writeln!(out)?;
        } else {
            for check in &checks {
                writeln!(
                    out,
                    "{:4}  {:12} {}",
                    check.verdict.name(),
                    check.what,
                    clean(&check.says)
                )?;
                for line in &check.type_this {
                    writeln!(out, "{:19}$ {}", "", clean(line))?;
                }
            }
        }
        Ok(ExitCode::from(u8::from(is_in_the_way)))
    }
}

/// What is wrong with the settings that are kept beside the file, which a daemon refuses to begin with.
fn settings(file: &Path) -> Option<Check> {
    let path = Settings::place(file);
    let read = Settings::read(&path, text);
    let aside = format!("mv {0} {0}.aside", knobs::shell(&path.display().to_string()));
    Some(bad("settings", read.err()?, aside))
}

fn load(path: &Path) -> Result<Scenario> {
    let base = path.parent().unwrap_or(Path::new(""));
    let read = |path: &Path| read_text(path).map_err(|error| error.to_string());
    let text = read(path)?;
    let mut include = |name: &str| read(&base.join(name));
    Ok(Scenario::parse_served(&path.display().to_string(), &text, &mut include)?)
}
