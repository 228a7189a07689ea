//! `kavg new`: a commented scenario to start from.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;

use crate::{
    Result,
    output::{Outputs, is_stdout},
    text::clean,
};

/// The scenario that is handed out.
const TEMPLATE: &str = include_str!("new.toml");

/// Write a commented scenario to start from
#[derive(Args)]
pub(crate) struct New {
    /// Where to; a file that is there already is left alone; `-` is standard output [default: standard output]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl New {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let Some(path) = self.file.as_deref().filter(|path| !is_stdout(path)) else {
            out.write_all(TEMPLATE.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        };
        let name = path.display();
        if path.symlink_metadata().is_ok() {
            return Err(format!("{name}: is there already; name a new file").into());
        }
        let output = Outputs::beside::<&Path>([]).claim(path)?;
        output.write(|file| Ok(file.write_all(TEMPLATE.as_bytes())?))?;
        let name = clean(&name.to_string());
        writeln!(out, "{name} is written; `kavg run {name}` runs it")?;
        Ok(ExitCode::SUCCESS)
    }
}
