//! `kavg bench`: how fast this machine simulates, queues, reads captures and serves disks.

use std::{io::Write, num::NonZeroUsize, process::ExitCode};

use clap::{Args, Subcommand};
use serde_json::json;
use sim::bench::{MODELS, Timing, time_engine, time_floor, time_journal, time_laws, time_model};

use super::{bench_capture::BenchCapture, bench_live::BenchLive};
use crate::{Result, json, table::Table, text::whole};

/// I/Os of the bare loop: about a second.
const FLOOR_IOS: u64 = 20_000_000;
/// I/Os of the engine alone in a round.
const ENGINE_IOS: u64 = 2_000_000;
/// Commands that the driver holds which does not answer at once.
const HELD: u32 = 96;

/// Measure how fast this machine simulates, queues, reads captures and serves disks
#[derive(Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Simulated I/Os per second of five models, beside a bare event loop without statistics
    Sim {
        /// Threads for models whose hosts can run apart
        #[arg(long, value_name = "N", default_value = "1")]
        threads: NonZeroUsize,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// The queueing stack alone, without arrays and workloads, beside the same loop; and its journal
    Engine {
        /// Times that everything is measured; medians are shown
        #[arg(long, value_name = "N", default_value = "5")]
        rounds: NonZeroUsize,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    Capture(BenchCapture),
    Live(BenchLive),
}

/// Times that model (b) is simulated with every control law and without, in turn.
const LAWS_ROUNDS: usize = 9;

/// What was timed, and how long it took.
type Timed = (&'static str, Timing);

impl Bench {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result {
        match &self.what {
            What::Sim { threads, json } => sim(threads.get(), *json, out),
            What::Engine { rounds, json } => engine(rounds.get(), *json, out),
            What::Capture(capture) => capture.run(out),
            What::Live(live) => live.run(out),
        }
    }
}

fn sim(threads: usize, as_json: bool, out: &mut dyn Write) -> Result {
    let mut timed = vec![floor(FLOOR_IOS)];
    timed.extend(MODELS.iter().map(|model| (model.name, time_model(model, threads))));
    let laws = laws();
    if as_json {
        let measured = measured(&timed);
        json::write(&json!({ "threads": threads, "measured": measured, "laws": laws }), out)?;
    } else {
        out.write_all(table("model", &timed).as_bytes())?;
        writeln!(out, "With every control law on, an I/O of (b) takes {laws:.2} times as long.")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How many times as long an I/O takes with every control law as without: the median of pairs that ran
/// one after the other.
fn laws() -> f64 {
    let ratio = |_| time_laws(true).nanos_per_io() / time_laws(false).nanos_per_io();
    levels::median((0..LAWS_ROUNDS).map(ratio)).unwrap_or(f64::NAN)
}

fn engine(rounds: usize, as_json: bool, out: &mut dyn Write) -> Result {
    let mut taken: [Vec<Timed>; 4] = Default::default();
    let mut bytes = 0.0;
    for _ in 0..rounds {
        let (journal, bytes_an_io) = time_journal(HELD, ENGINE_IOS, tempfile::tempfile()?)?;
        bytes = bytes_an_io;
        let round = [
            floor(ENGINE_IOS),
            ("a driver that answers at once", time_engine(1, ENGINE_IOS)),
            ("a driver that holds 96", time_engine(HELD, ENGINE_IOS)),
            ("the same, with a journal", journal),
        ];
        taken.iter_mut().zip(round).for_each(|(all, one)| all.push(one));
    }
    let timed = taken.map(|all| {
        let middle = levels::median(all.iter().map(|(_, timing)| timing.nanos as f64));
        let is_it = |(_, timing): &&Timed| Some(timing.nanos as f64) == middle;
        all.iter().find(is_it).copied().unwrap_or(all[0])
    });
    let journal_ns = timed[3].1.nanos_per_io() - timed[2].1.nanos_per_io();
    if as_json {
        let journal = json!({ "ns_per_io": journal_ns, "bytes_per_io": bytes });
        json::write(&json!({ "measured": measured(&timed), "journal": journal }), out)?;
    } else {
        out.write_all(table("engine", &timed).as_bytes())?;
        writeln!(out, "The journal takes {journal_ns:.1} ns and {bytes:.1} bytes an I/O.")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn floor(ios: u64) -> Timed {
    ("floor: a binary heap, no statistics", time_floor(ios))
}

/// As a table; what comes first is what the rest is compared with.
fn table(what: &str, timed: &[Timed]) -> String {
    let head = [what, "I/Os", "ns an I/O", "million/s", "of the floor's time"];
    let mut table = Table::new(&head).left(&[0]);
    for (name, timing) in timed {
        table.row(vec![
            (*name).into(),
            whole(timing.ios as f64),
            format!("{:.1}", timing.nanos_per_io()),
            format!("{:.1}", timing.millions_per_sec()),
            format!("{:.2}", ratio(timing, timed)),
        ]);
    }
    table.render()
}

fn measured(timed: &[Timed]) -> Vec<serde_json::Value> {
    let one = |(name, timing): &Timed| {
        json!({ "what": name, "ios": timing.ios, "ns_per_io": timing.nanos_per_io(),
            "ratio": ratio(timing, timed) })
    };
    timed.iter().map(one).collect()
}

fn ratio(timing: &Timing, timed: &[Timed]) -> f64 {
    timing.nanos_per_io() / timed[0].1.nanos_per_io()
}
