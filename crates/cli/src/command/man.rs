//! `kavg man`: the pages of the manual, from the table behind `--help`. Packages carry them.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, CommandFactory};

use super::Arguments;
use crate::{
    Result,
    output::{Outputs, Pending, finish_all},
    text::clean,
};

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
        let mut pages = Vec::new();
        write(&root, &self.to, &mut Outputs::beside::<&Path>([]), &mut pages)?;
        let number = pages.len();
        finish_all(pages.into_iter().map(Ok))?;
        writeln!(out, "{}: {number} pages", clean(&self.to.display().to_string()))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the pages of a command and of those below it.
fn write(
    command: &clap::Command,
    folder: &Path,
    outputs: &mut Outputs,
    pages: &mut Vec<Pending>,
) -> Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let page = clap_mangen::Man::new(command.clone());
    let mut file = outputs.claim(&folder.join(format!("{name}.1")))?.open()?;
    page.render(&mut file)?;
    pages.push(file);
    let mut shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.try_for_each(|command| write(command, folder, outputs, pages))
}
