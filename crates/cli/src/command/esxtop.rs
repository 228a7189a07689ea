//! `kavg esxtop`: the counters of a daemon at work, as esxtop's screens or in the format of its batch
//! mode.

use std::{io::Write, mem, process::ExitCode, thread::sleep, time::Duration};

use capture::{write_esxtop_header, write_esxtop_rows};
use clap::Args;
use control::Client;

use crate::{Result, esxtop, live::Live, table::screen_width};

/// Read the counters of a daemon at work as esxtop shows them
///
/// Without `-b` it prints esxtop's screens of adapters, devices and virtual machines once. What it prints
/// with `-b` is a capture for `kavg diagnose` and all that reads esxtop's files: its header at once, and
/// each row when its sample is there. Where what is there changes, another header comes, and as many samples.
#[derive(Args)]
pub(crate) struct Esxtop {
    /// Batch mode: a capture
    #[arg(short = 'b', long)]
    batch: bool,
    /// All columns, which are there anyway: lines for esxtop have it
    #[arg(short = 'a', long = "all", requires = "batch")]
    _all: bool,
    /// Seconds between samples
    #[arg(short = 'd', long, value_name = "SECONDS", default_value = "5",
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    delay: u64,
    /// How many samples
    #[arg(short = 'n', long, value_name = "N", default_value = "2", requires = "batch",
        value_parser = clap::value_parser!(u64).range(2..))]
    samples: u64,
    /// How many objects of a kind a screen has
    #[arg(long, value_name = "N", default_value = "20", conflicts_with = "batch")]
    rows: usize,
    #[command(flatten)]
    live: Live,
}

impl Esxtop {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let mut daemon = self.live.connect()?;
        let wait = || sleep(Duration::from_secs(self.delay));
        if self.batch {
            self.write_rows(&mut daemon, wait, out)?;
        } else {
            let recording = daemon.record(1, wait)?;
            let screens = esxtop::render(&[&recording], self.rows, screen_width());
            out.write_all(screens.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The capture, row by row.
    fn write_rows(
        &self,
        daemon: &mut Client,
        wait: impl Fn(),
        mut out: &mut dyn Write,
    ) -> Result<()> {
        let mut is_first = true;
        daemon.each_sample(self.samples as usize, wait, |sample| -> Result<()> {
            let Some(&at_ms) = sample.times_ms.first() else {
                is_first = true;
                return Ok(write_esxtop_header(sample, &mut out)?);
            };
            let mut sample = sample.clone();
            sample.begin_ms = Some(at_ms - 1000 * self.delay as i64);
            Ok(write_esxtop_rows(&sample, mem::take(&mut is_first), &mut out)?)
        })
    }
}
