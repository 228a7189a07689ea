//! The commands: one file each. What a command prints goes to the writer that it is handed.

use std::io::Write;

use clap::{Parser, Subcommand};

use crate::Result;

mod run;

/// The ESXi storage I/O stack: simulated, explained, diagnosed.
#[derive(Parser)]
#[command(name = "kavg", version, about, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Run(run::Run),
}

impl Command {
    /// Does what was asked for.
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        match self {
            Self::Run(command) => command.run(out),
        }
    }
}
