//! The parts of `kavg bench live --parts`: what an I/O takes when a request is answered as it comes from its
//! ring, and what each thing that `kavg serve` does beside adds to that.
//!
//! The guest and the component take turns on one thread, so that nobody waits or is woken, and what counts is
//! the processor's time of that thread: other programs slow it down, but are no part of it.

use std::{fs, io::Write, path::Path, process::ExitCode, thread};

use guest::{Ask, Disk, Shape, Wish};
use live::{Alone, Extent};
use serde_json::json;
use sim::bench::{Timing, time_counters, time_engine};

use super::bench_servers::{CLIENT_CPU, DISK, Outcome, Places, Work};
use crate::{Result, json, table::Table};

const READ: Work = Work { name: "4K read", bytes: 4 << 10, writes: false, in_order: false };
/// What a guest has under way.
const DEPTHS: [u16; 2] = [1, 32];
/// I/Os of each measurement.
const IOS: u64 = 1_000_000;
/// I/Os before it.
const WARM: u64 = 20_000;
/// What the journal may have: more than one measurement writes.
const JOURNAL_BYTES: u64 = 256 << 20;

/// What is measured: with each of the first four there is more than with the one before.
const PARTS: [&str; 6] = [
    "rings, and the guest that fills them",
    "with the clock, and sockets looked at",
    "with engine, stamps and counters",
    "with a journal",
    "the engine alone, stamps and counters in it",
    "the counters alone",
];
const RINGS: usize = 0;
const JOURNAL: usize = 3;

/// Nanoseconds an I/O of each part.
type Round = [f64; PARTS.len()];

/// Measures so many rounds, in turns.
pub(super) fn run(rounds: usize, as_json: bool, out: &mut dyn Write) -> Result {
    guest::pin(CLIENT_CPU)?;
    let mut measured: [Vec<Round>; DEPTHS.len()] = Default::default();
    for _ in 0..rounds {
        for (depth, into) in DEPTHS.into_iter().zip(&mut measured) {
            into.push(round(depth)?);
        }
    }
    let measured = DEPTHS.into_iter().zip(&measured);
    if as_json {
        let all: Vec<_> = measured.map(|(depth, rounds)| in_json(depth, rounds)).collect();
        json::write(&json!({ "rounds": rounds, "ios": IOS, "depths": all }), out)?;
    } else {
        measured
            .into_iter()
            .try_for_each(|(depth, rounds)| out.write_all(table(depth, rounds).as_bytes()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn round(depth: u16) -> Outcome<Round> {
    let site = tempfile::tempdir().map_err(|error| error.to_string())?;
    let of = |extent| served(site.path(), extent, depth);
    let per_io = |what: &dyn Fn() -> Timing| Ok::<_, String>(timed(what)? as f64 / IOS as f64);
    Ok([
        of(Extent::Rings)?,
        of(Extent::Passes)?,
        of(Extent::Whole)?,
        of(Extent::Journalled(&site.path().join("journals"), JOURNAL_BYTES))?,
        per_io(&|| time_engine(depth.into(), IOS))?,
        per_io(&|| time_counters(IOS))?,
    ])
}

/// What an I/O takes with so much of a component.
fn served(site: &Path, extent: Extent<'_>, depth: u16) -> Outcome<f64> {
    let socket = site.join("disk");
    let mut alone = Alone::new(&socket, extent)?;
    let wish = Wish { inflight: false, ..Wish::all(Shape::one_ring(READ.bytes)) };
    let connecting = thread::spawn(move || Disk::connect(&socket, wish));
    while !connecting.is_finished() {
        alone.pass();
    }
    let mut disk = connecting.join().map_err(|_| "the guest has ended")??;
    let (ring, mut places) = (&mut disk.rings[0], Places::new(DISK, READ));
    for _ in 0..depth {
        ring.submit(Ask::Read(places.next() / guest::SECTOR, READ.bytes));
    }
    let mut work = |ios| {
        let mut done = 0;
        while done < ios {
            ring.kick();
            alone.pass();
            while ring.poll().is_some() {
                done += 1;
                ring.repeat(places.next() / guest::SECTOR);
            }
        }
    };
    work(WARM);
    Ok(timed(|| work(IOS))? as f64 / IOS as f64)
}

/// The processor's time of this thread that something takes.
fn timed<T>(what: impl FnOnce() -> T) -> Outcome<u64> {
    let now = || {
        let text = fs::read_to_string("/proc/thread-self/schedstat").ok();
        text.and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
    };
    let from = now();
    what();
    from.zip(now())
        .map(|(from, to)| to - from)
        .ok_or_else(|| "the kernel keeps no schedstat".into())
}

/// The median of a figure of the rounds.
fn median(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    levels::median(rounds.iter().map(of)).unwrap_or(f64::NAN)
}

/// What a part takes, and what it adds to the one before: of those that are more of a component.
fn figures(rounds: &[Round], part: usize) -> (f64, Option<f64>) {
    let has_one_before = part > RINGS && part <= JOURNAL;
    let adds = has_one_before.then(|| median(rounds, |round| round[part] - round[part - 1]));
    (median(rounds, |round| round[part]), adds)
}

/// What all that is ours adds to the rings.
fn added(rounds: &[Round]) -> f64 {
    median(rounds, |round| round[JOURNAL] - round[RINGS])
}

fn in_json(depth: u16, rounds: &[Round]) -> serde_json::Value {
    let parts = PARTS.iter().enumerate().map(|(part, name)| {
        let (ns_per_io, adds_ns) = figures(rounds, part);
        json!({ "part": name, "cpu_ns_per_io": ns_per_io, "adds_ns": adds_ns })
    });
    json!({ "depth": depth, "parts": parts.collect::<Vec<_>>(), "adds_ns": added(rounds) })
}

fn table(depth: u16, rounds: &[Round]) -> String {
    let head = [&format!("depth {depth}")[..], "ns an I/O", "adds"];
    let mut table = Table::new(&head).left(&[0]);
    for (part, name) in PARTS.iter().enumerate() {
        let (ns, adds) = figures(rounds, part);
        let adds = adds.map_or("-".into(), |adds| format!("{adds:.1}"));
        table.row(vec![(*name).into(), format!("{ns:.1}"), adds]);
    }
    let added = added(rounds);
    format!(
        "{}Together {added:.1} ns of the processor's time more than the rings, medians.\n\n",
        table.render()
    )
}
