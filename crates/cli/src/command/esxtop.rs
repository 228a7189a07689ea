//! `kavg esxtop`: the counters of a daemon at work, as esxtop's screens or in the format of its batch
//! mode.

use std::{io::Write, process::ExitCode, thread::sleep, time::Duration};

use capture::write_esxtop;
use clap::Args;

use crate::{Result, esxtop, live::Live, table::screen_width};

/// Samples that are kept until all are there.
const SAMPLES_MAX: u64 = 100_000;

/// Read the counters of a daemon at work as esxtop shows them
///
/// Without `-b` it prints esxtop's screens of adapters, devices and virtual machines once. What it prints
/// with `-b` is a capture for `kavg diagnose` and all that reads esxtop's files; it comes when the last
/// sample is there.
#[derive(Args)]
pub(crate) struct Esxtop {
    /// Batch mode: a capture
    #[arg(short = 'b', long)]
    batch: bool,
    /// Seconds between samples
    #[arg(short = 'd', long, value_name = "SECONDS", default_value = "5",
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    delay: u64,
    /// How many samples
    #[arg(short = 'n', long, value_name = "N", default_value = "2", requires = "batch",
        value_parser = clap::value_parser!(u64).range(2..=SAMPLES_MAX))]
    samples: u64,
    /// How many objects of a kind a screen has
    #[arg(long, value_name = "N", default_value = "20", conflicts_with = "batch")]
    rows: usize,
    #[command(flatten)]
    live: Live,
}

impl Esxtop {
    pub(crate) fn run(&self, mut out: &mut dyn Write) -> Result {
        let mut daemon = self.live.connect()?;
        let wait = || sleep(Duration::from_secs(self.delay));
        let samples = if self.batch { self.samples as usize } else { 1 };
        let recording = daemon.record(samples, wait)?;
        if self.batch {
            write_esxtop(&recording, &mut out)?;
        } else {
            let screens = esxtop::render(&[&recording], self.rows, screen_width());
            out.write_all(screens.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
