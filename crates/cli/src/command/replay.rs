//! `kavg replay`: a recorded run again in virtual time, compared bit for bit.

use std::{fs::File, io::BufReader, io::Write, path::PathBuf, process::ExitCode};

use clap::Args;

use crate::{
    Result,
    text::{seconds, whole},
};

/// Feed a journal back in virtual time and compare outputs and counters bit for bit
///
/// Exit code: 0 when they are identical, 1 when they are not, 2 when the journal is bad.
#[derive(Args)]
pub(crate) struct Replay {
    /// A journal that `kavg run --journal` wrote
    #[arg(value_name = "JOURNAL")]
    journal: PathBuf,
}

impl Replay {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", self.journal.display());
        let file = File::open(&self.journal).map_err(|error| named(&error))?;
        let report = sim::replay(BufReader::new(file)).map_err(|error| named(&error))?;
        writeln!(
            out,
            "{}: {} inputs fed up to {}, {} outputs compared",
            report.scenario,
            whole(report.inputs as f64),
            seconds(report.end),
            whole(report.outputs as f64)
        )?;
        let Some(difference) = report.difference else {
            writeln!(out, "identical, bit for bit: outputs and counters")?;
            return Ok(ExitCode::SUCCESS);
        };
        writeln!(out, "different: {difference}")?;
        Ok(ExitCode::from(1))
    }
}
