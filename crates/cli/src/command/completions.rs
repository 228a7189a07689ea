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
        match self.shell {
            Shell::Bash => out.write_all(offer_files(&String::from_utf8(script)?).as_bytes())?,
            _ => out.write_all(&script)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The script for bash offers options alone where nothing is typed yet, and so types their dash: where a
/// command has nothing but options, files are what is meant.
fn offer_files(script: &str) -> String {
    let mut has_commands = true;
    let lines = script.lines().map(|line| {
        if let Some(words) = line.trim().strip_prefix("opts=") {
            has_commands = !words.trim_matches('"').split(' ').all(|word| word.starts_with('-'));
        }
        match line.split_once(" || ${COMP_CWORD} -eq ") {
            Some((begin, _)) if !has_commands => format!("{begin} ]] ; then\n"),
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
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
