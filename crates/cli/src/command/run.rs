//! `kavg run`: simulates a scenario and shows where the time goes.

use std::{io::Write, process::ExitCode};

use clap::Args;

use crate::{Result, expectations, picture, shipped, stack::Stack};

/// Simulate a scenario and show where the time goes
#[derive(Args)]
pub(crate) struct Run {
    /// A scenario file, or the name of a shipped scenario (`kavg scenarios` lists them)
    #[arg(value_name = "FILE|NAME")]
    source: String,
}

impl Run {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let scenario = shipped::load(&self.source)?;
        let outcome = sim::run(&scenario, 2, &());
        for (window, views) in scenario.windows.iter().zip(&outcome.windows) {
            writeln!(out, "{}", window.name)?;
            let stack = Stack::new(&scenario, views);
            writeln!(out, "{}", picture::render(&stack, 5, 80))?;
        }
        let checked = sim::check(&scenario, &outcome);
        writeln!(out, "{}", expectations::render(&scenario, &checked))?;
        Ok(ExitCode::SUCCESS)
    }
}
