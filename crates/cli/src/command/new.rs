//! `kavg new`: a commented scenario to start from.

use std::{fs::OpenOptions, io::Write, path::PathBuf, process::ExitCode};

use clap::Args;

use crate::Result;

/// The scenario that is handed out.
const TEMPLATE: &str = include_str!("new.toml");

/// Write a commented scenario to start from
#[derive(Args)]
pub(crate) struct New {
    /// Where to; a file that is there already is left alone [default: standard output]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl New {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let Some(path) = &self.file else {
            out.write_all(TEMPLATE.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        };
        let name = path.display();
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|error| format!("{name}: {error}"))?;
        file.write_all(TEMPLATE.as_bytes()).map_err(|error| format!("{name}: {error}"))?;
        writeln!(out, "{name} is written; `kavg run {name}` runs it")?;
        Ok(ExitCode::SUCCESS)
    }
}
