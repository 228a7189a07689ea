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
        clap_complete::generate(self.shell, &mut Arguments::command(), "kavg", &mut script);
        out.write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
