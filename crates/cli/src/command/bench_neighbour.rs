//! The noisy neighbour of `kavg bench live`: a guest with one read under way on a disk, alone and beside one
//! with 128, where the device is as deep as its driver says and where its depth is found by latency.
//!
//! One thread is both guests and looks for answers all the time: what it measures has no wake-up in it.

use std::{
    io::Write,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use guest::{Ask, Disk, Shape, Wish};
use serde_json::json;

use super::bench_servers::{CLIENT_CPU, FILE, Outcome, Places, Servers, Work};
use crate::{Result, json, table::Table, text::whole};

/// The disks that are served: for each of the two guests one of each kind, and one where the depth of that
/// kind is found by latency.
const HOST: &str = include_str!("bench_neighbour.toml");
/// The kinds: a file by O_DIRECT, a model of the disk of the scenario `noisy-neighbour` that is ten times
/// slower, and one of servers with a queue each.
const KINDS: [&str; 3] = ["file", "link", "servers"];
/// What the neighbour has under way.
const DEPTH: usize = 128;
const READ: Work = Work { name: "4K read", bytes: 4 << 10, writes: false, in_order: false };
/// What goes by before anything counts: the depth is found meanwhile.
const SETTLE: Duration = Duration::from_secs(2);

/// How the victim is measured, in turns.
const TURNS: [Turn; 3] = [
    Turn { name: "alone", has_neighbour: false, is_found: false },
    Turn { name: "beside it", has_neighbour: true, is_found: false },
    Turn { name: "depth by latency", has_neighbour: true, is_found: true },
];

struct Turn {
    name: &'static str,
    has_neighbour: bool,
    is_found: bool,
}

/// What was measured in a turn.
#[derive(Clone, Copy, Default)]
struct Sample {
    victim_iops: f64,
    victim_p99_us: f64,
    neighbour_iops: f64,
}

/// The turns of a round.
type Round = [Sample; TURNS.len()];

/// Figures of the bars: each is better where it is higher or, of p99, lower.
struct Ratios {
    victim: f64,
    p99: f64,
    throughput: f64,
}

impl Ratios {
    fn of(rounds: &[Round]) -> Self {
        Self {
            victim: median(rounds, |[_, beside, found]| found.victim_iops / beside.victim_iops),
            p99: median(rounds, |[alone, _, found]| found.victim_p99_us / alone.victim_p99_us),
            throughput: median(rounds, |[_, beside, found]| found.iops() / beside.iops()),
        }
    }
}

impl Sample {
    fn iops(&self) -> f64 {
        self.victim_iops + self.neighbour_iops
    }
}

/// The median of a figure of the rounds.
fn median(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    levels::median(rounds.iter().map(of)).unwrap_or(f64::NAN)
}

/// Measures so many rounds of so long each on files in that directory, and on a model.
pub(super) fn run(
    directory: Option<&Path>,
    rounds: usize,
    time: Duration,
    as_json: bool,
    out: &mut dyn Write,
) -> Result {
    let site = tempfile::tempdir()?;
    let mut servers = Servers::new(directory)?;
    for vm in ["victim", "noisy"] {
        for disk in ["file", "file-found"] {
            servers.image(&format!("{vm}-{disk}.img"))?;
        }
    }
    servers.serve(site.path(), HOST, 4 * KINDS.len(), &[])?;
    guest::pin(CLIENT_CPU)?;
    let mut measured: [Vec<Round>; KINDS.len()] = Default::default();
    for _ in 0..rounds {
        for (kind, into) in KINDS.iter().zip(&mut measured) {
            let mut round = Round::default();
            for (turn, sample) in TURNS.iter().zip(&mut round) {
                *sample = measure(site.path(), kind, turn, time)?;
            }
            into.push(round);
        }
    }
    if as_json {
        let all = KINDS.iter().zip(&measured).map(|(kind, rounds)| in_json(kind, rounds));
        let all: Vec<_> = all.collect();
        json::write(&json!({ "rounds": rounds, "neighbour": all }), out)?;
    } else {
        KINDS
            .iter()
            .zip(&measured)
            .try_for_each(|(kind, rounds)| out.write_all(table(kind, rounds).as_bytes()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A guest at its disk.
struct Guest {
    disk: Disk,
    places: Places,
}

impl Guest {
    fn connect(site: &Path, vm: &str, kind: &str, turn: &Turn, depth: usize) -> Outcome<Self> {
        let suffix = if turn.is_found { "-found" } else { "" };
        let path = site.join(format!("{vm}.{kind}{suffix}"));
        let wish = Wish { inflight: false, ..Wish::all(Shape::one_ring(READ.bytes)) };
        let disk = Disk::connect(&path, wish)?;
        let mut own = Self { disk, places: Places::new(FILE, READ) };
        for _ in 0..depth {
            let sector = own.places.next() / guest::SECTOR;
            own.disk.rings[0].submit(Ask::Read(sector, READ.bytes));
        }
        own.disk.rings[0].kick();
        Ok(own)
    }

    /// Answers that have come, each of which is asked again; how many they are.
    fn turn(&mut self) -> Outcome<u64> {
        let ring = &mut self.disk.rings[0];
        let mut ios = 0;
        while let Some(done) = ring.poll() {
            if done.status != 0 {
                return Err(format!("an I/O has ended with {}", done.status));
            }
            ring.repeat(self.places.next() / guest::SECTOR);
            ios += 1;
        }
        if ios > 0 {
            ring.kick();
        }
        Ok(ios)
    }
}

fn measure(site: &Path, kind: &str, turn: &Turn, time: Duration) -> Outcome<Sample> {
    let mut noisy = match turn.has_neighbour {
        true => Some(Guest::connect(site, "noisy", kind, turn, DEPTH)?),
        false => None,
    };
    let mut victim = Guest::connect(site, "victim", kind, turn, 1)?;
    let (mut took, mut others, mut sent) = (Vec::new(), 0, Instant::now());
    let from = sent + SETTLE;
    loop {
        let now = Instant::now();
        if now >= from + time {
            break;
        }
        let ios = noisy.as_mut().map_or(Ok(0), Guest::turn)?;
        others += if now >= from { ios } else { 0 };
        if victim.turn()? > 0 {
            let now = Instant::now();
            if now >= from {
                took.push((now - sent).as_nanos() as u64);
            }
            sent = now;
        }
    }
    took.sort_unstable();
    let p99_ns = took.get(took.len() * 99 / 100).copied().unwrap_or(u64::MAX);
    Ok(Sample {
        victim_iops: took.len() as f64 / time.as_secs_f64(),
        victim_p99_us: p99_ns as f64 / 1e3,
        neighbour_iops: others as f64 / time.as_secs_f64(),
    })
}

/// The figures of a turn, in the median.
fn medians(rounds: &[Round], turn: usize) -> Sample {
    let of = |of: fn(&Sample) -> f64| median(rounds, |round| of(&round[turn]));
    Sample {
        victim_iops: of(|sample| sample.victim_iops),
        victim_p99_us: of(|sample| sample.victim_p99_us),
        neighbour_iops: of(|sample| sample.neighbour_iops),
    }
}

fn in_json(kind: &str, rounds: &[Round]) -> serde_json::Value {
    let turns = TURNS.iter().enumerate().map(|(place, turn)| {
        let Sample { victim_iops, victim_p99_us, neighbour_iops } = medians(rounds, place);
        json!({
            "turn": turn.name, "victim_iops": victim_iops, "victim_p99_us": victim_p99_us,
            "neighbour_iops": neighbour_iops,
        })
    });
    let Ratios { victim, p99, throughput } = Ratios::of(rounds);
    json!({
        "back_end": kind, "turns": turns.collect::<Vec<_>>(), "victim_times_beside": victim,
        "p99_times_alone": p99, "throughput_of_beside": throughput,
    })
}

fn table(kind: &str, rounds: &[Round]) -> String {
    let head = [kind, "victim", "p99", "neighbour", "together"];
    let mut table = Table::new(&head).left(&[0]);
    for (place, turn) in TURNS.iter().enumerate() {
        let sample = medians(rounds, place);
        table.row(vec![
            turn.name.into(),
            whole(sample.victim_iops),
            format!("{} us", whole(sample.victim_p99_us)),
            whole(sample.neighbour_iops),
            whole(sample.iops()),
        ]);
    }
    let Ratios { victim, p99, throughput } = Ratios::of(rounds);
    format!(
        "{}I/Os a second, medians. With the depth found by latency: the victim {victim:.2} times what it has \
         beside its neighbour, p99 {p99:.2} times that alone, throughput {throughput:.2} times.\n\n",
        table.render(),
    )
}
