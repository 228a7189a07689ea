//! The commands: one file each. What a command prints goes to the writer that it is handed.

use std::io::Write;

use clap::{Parser, Subcommand};

use crate::Result;

mod balance;
mod bench;
mod bench_capture;
mod bench_experiments;
mod bench_guest;
mod bench_live;
mod bench_neighbour;
mod bench_parts;
mod bench_servers;
mod capture;
mod completions;
mod diagnose;
mod doctor;
mod esxcli;
mod esxtop;
mod explain;
mod help;
mod man;
mod new;
mod plan;
mod reference;
mod remedy;
mod replay;
mod run;
mod scenarios;
mod serve;
mod settings;
mod sweep;
mod vscsistats;
mod whatif;

/// The ESXi storage I/O stack: simulated, explained, diagnosed.
#[derive(Parser)]
#[command(name = "kavg", version = env!("KAVG_VERSION"), about, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
#[command(
    after_help = "A file that is written replaces what was there only when it is whole, and is never \
    one that is read."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Run(run::Run),
    Sweep(sweep::Sweep),
    Remedy(remedy::Remedy),
    Plan(plan::PlanArguments),
    Balance(balance::BalanceArguments),
    Diagnose(diagnose::Diagnose),
    Whatif(whatif::Whatif),
    Settings(settings::Settings),
    Capture(capture::Capture),
    New(new::New),
    Scenarios(scenarios::Scenarios),
    Serve(serve::Serve),
    Esxcli(esxcli::Esxcli),
    Esxtop(esxtop::Esxtop),
    #[command(name = "vscsiStats", alias = "vscsistats")]
    Vscsistats(vscsistats::Vscsistats),
    Doctor(doctor::Doctor),
    Explain(explain::Explain),
    Help(help::Help),
    Replay(replay::Replay),
    Bench(bench::Bench),
    Completions(completions::Completions),
    Man(man::Man),
    #[command(hide = true)]
    Reference(reference::Reference),
}

impl Command {
    /// Does what was asked for.
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        match self {
            Self::Run(command) => command.run(out),
            Self::Sweep(command) => command.run(out),
            Self::Remedy(command) => command.run(out),
            Self::Plan(command) => command.run(out),
            Self::Balance(command) => command.run(out),
            Self::Diagnose(command) => command.run(out),
            Self::Whatif(command) => command.run(out),
            Self::Settings(command) => command.run(out),
            Self::Capture(command) => command.run(out),
            Self::New(command) => command.run(out),
            Self::Scenarios(command) => command.run(out),
            Self::Serve(command) => command.run(out),
            Self::Esxcli(command) => command.run(out),
            Self::Esxtop(command) => command.run(out),
            Self::Vscsistats(command) => command.run(out),
            Self::Doctor(command) => command.run(out),
            Self::Explain(command) => command.run(out),
            Self::Help(command) => command.run(out),
            Self::Replay(command) => command.run(out),
            Self::Bench(command) => command.run(out),
            Self::Completions(command) => command.run(out),
            Self::Man(command) => command.run(out),
            Self::Reference(command) => command.run(out),
        }
    }
}
