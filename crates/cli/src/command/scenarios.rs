//! `kavg scenarios`: what is inside the binary.

use std::{io::Write, process::ExitCode};

use clap::Args;

use crate::{Result, shipped, text::BOLD};

/// List the shipped scenarios with title and source, or print one
#[derive(Args)]
pub(crate) struct Scenarios {
    /// Print this scenario's file instead of the list
    #[arg(long, value_name = "NAME")]
    show: Option<String>,
}

impl Scenarios {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        if let Some(name) = &self.show {
            out.write_all(shipped::find(name)?.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        for (name, text) in shipped::all() {
            let scenario = shipped::source(name, text, &[]).scenario()?;
            writeln!(out, "{BOLD}{name}{BOLD:#}\n    {}\n    {}", scenario.title, scenario.source)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
