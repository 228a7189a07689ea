//! `kavg bench`: how fast this machine simulates and reads captures.

use std::{io::Write, num::NonZeroUsize, process::ExitCode};

use clap::{Args, Subcommand};
use sim::bench::{MODELS, Timing, time_floor, time_model};

use super::bench_capture::BenchCapture;
use crate::{Result, table::Table, text::whole};

/// I/Os of the bare loop: about a second.
const FLOOR_IOS: u64 = 20_000_000;

/// Measure how fast this machine simulates and reads captures
#[derive(Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Simulated I/Os per second of four models, beside a bare event loop without statistics
    Sim {
        /// Threads for models that fall into independent parts
        #[arg(long, value_name = "N", default_value = "1")]
        threads: NonZeroUsize,
    },
    Capture(BenchCapture),
}

impl Bench {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        let threads = match &self.what {
            What::Sim { threads } => *threads,
            What::Capture(capture) => return capture.run(out),
        };
        let head = ["model", "I/Os", "ns an I/O", "million/s", "of the floor's time"];
        let mut table = Table::new(&head).left(&[0]);
        let floor = time_floor(FLOOR_IOS);
        table.row(row("floor: a binary heap, no statistics", floor, floor));
        for model in &MODELS {
            table.row(row(model.name, time_model(model, threads.get()), floor));
        }
        out.write_all(table.render().as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn row(name: &str, timing: Timing, floor: Timing) -> Vec<String> {
    vec![
        name.into(),
        whole(timing.ios as f64),
        format!("{:.1}", timing.nanos_per_io()),
        format!("{:.1}", timing.millions_per_sec()),
        format!("{:.2}", timing.nanos_per_io() / floor.nanos_per_io()),
    ]
}
