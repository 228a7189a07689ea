//! `kavg esxtop -b`: the counters of a daemon at work, in the format of esxtop's batch mode.

use std::{io::Write, process::ExitCode, thread::sleep, time::Duration};

use capture::write_esxtop;
use clap::Args;

use crate::{Result, live::Live};

/// Samples that are kept until all are there.
const SAMPLES_MAX: u64 = 100_000;

/// Read the counters of `kavg serve --control SOCKET` as `esxtop -b` writes them
///
/// What it prints is a capture for `kavg diagnose` and all that reads esxtop's files; it comes when the
/// last sample is there.
#[derive(Args)]
pub(crate) struct Esxtop {
    /// Batch mode: the only one there is
    #[arg(short = 'b', long, required = true)]
    batch: bool,
    /// Seconds between samples
    #[arg(short = 'd', long, value_name = "SECONDS", default_value = "5",
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    delay: u64,
    /// How many samples
    #[arg(short = 'n', long, value_name = "N", default_value = "2",
        value_parser = clap::value_parser!(u64).range(2..=SAMPLES_MAX))]
    samples: u64,
    #[command(flatten)]
    live: Live,
}

impl Esxtop {
    pub(crate) fn run(&self, mut out: &mut dyn Write) -> Result {
        let mut daemon = self.live.connect()?;
        let wait = || sleep(Duration::from_secs(self.delay));
        let recording = daemon.record(self.samples as usize, wait)?;
        write_esxtop(&recording, &mut out)?;
        Ok(ExitCode::SUCCESS)
    }
}
