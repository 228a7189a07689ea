//! `kavg completions`: what a shell needs to complete a line, from the table behind `--help`.

use std::{io::Write, process::ExitCode};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Arguments;
use crate::Result;

/// Print what a shell needs to complete `kavg …`
#[derive(Args)]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut shown(), "kavg", &mut script);
        out.write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The commands that `--help` shows: the scripts would offer the others too.
fn shown() -> clap::Command {
    let all = Arguments::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new("kavg")
        .version(env!("KAVG_VERSION"))
        .disable_help_subcommand(true)
        .subcommands(shown)
}
