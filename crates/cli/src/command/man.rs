//! `kavg man`: the pages of the manual, from the table behind `--help`. Packages carry them.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, CommandFactory};

use super::Arguments;
use crate::{Result, output::Outputs};

/// Write a page of the manual for each command
#[derive(Args)]
pub(crate) struct Man {
    /// Folder to write them to; it has to exist
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

impl Man {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let mut root = Arguments::command();
        root.build();
        let pages = write(&root, &self.to, &mut Outputs::beside::<&Path>([]))?;
        writeln!(out, "{}: {pages} pages", self.to.display())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the pages of a command and of those below it: how many.
fn write(command: &clap::Command, folder: &Path, outputs: &mut Outputs) -> Result<usize> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let page = clap_mangen::Man::new(command.clone());
    let output = outputs.claim(&folder.join(format!("{name}.1")))?;
    output.write(|file| Ok(page.render(file)?))?;
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown
        .map(|command| write(command, folder, outputs))
        .sum::<Result<usize>>()
        .map(|below| below + 1)
}
