//! The commands: one file each. What a command prints goes to the writer that it is handed.

use std::io::Write;

use clap::{Parser, Subcommand};

use crate::Result;

mod bench;
mod bench_capture;
mod capture;
mod diagnose;
mod explain;
mod new;
mod reference;
mod replay;
mod run;
mod scenarios;
mod whatif;

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
    Diagnose(diagnose::Diagnose),
    Whatif(whatif::Whatif),
    Capture(capture::Capture),
    New(new::New),
    Scenarios(scenarios::Scenarios),
    Explain(explain::Explain),
    Replay(replay::Replay),
    Bench(bench::Bench),
    #[command(hide = true)]
    Reference(reference::Reference),
}

impl Command {
    /// Does what was asked for.
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        match self {
            Self::Run(command) => command.run(out),
            Self::Diagnose(command) => command.run(out),
            Self::Whatif(command) => command.run(out),
            Self::Capture(command) => command.run(out),
            Self::New(command) => command.run(out),
            Self::Scenarios(command) => command.run(out),
            Self::Explain(command) => command.run(out),
            Self::Replay(command) => command.run(out),
            Self::Bench(command) => command.run(out),
            Self::Reference(command) => command.run(out),
        }
    }
}
