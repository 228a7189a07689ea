//! The journal of a component under load, in segments: each replays alone and all of them as one.

use counters::sorted::sort;
use std::{
    fs::{self, File},
    path::PathBuf,
};

use counters::MILLISECOND;
use journal::{Limits, Replay, Report};

use super::{bench::Bench, *};
use crate::{
    executor::medium::{Dice, Medium},
    record::Record,
};

const BYTES: u64 = 64 << 10;
const READ: u16 = 0;
const WRITE: u16 = 1;
const EPOCH_MS: u64 = 1_700_000_000_000;

/// The files that a run leaves in a directory, in order; `stop` is whether it comes to its end.
fn run(directory: &std::path::Path, seed: u64, cap_bytes: u64, stop: bool) -> Vec<PathBuf> {
    let mut medium = Medium::new(seed, vec![0; 2 * BYTES as usize]);
    medium.each = BYTES as usize;
    let mut bench = Bench::new("", 512, BYTES, medium);
    let record =
        Record::create(directory, "h-0", EPOCH_MS, cap_bytes, |_| {}).expect("a directory");
    let limits = Limits { epoch_ms: EPOCH_MS, segment_bytes: record.segment_bytes() };
    let journal = Journal::of_real_time(record, "h-0", [&bench.config], limits);
    bench.machine.journal = Some(journal.expect("it can be written"));
    let mut dice = Dice(seed);
    for round in 0..3000 {
        for client in 0..2 {
            while bench.clients[client].open() < 8 {
                let (kind, at) = (dice.roll(2) as u16, dice.roll(15) * 4096);
                let data = vec![1; if kind == WRITE { 4096 } else { 0 }];
                debug_assert!(kind == READ || kind == WRITE);
                bench.clients[client].ask((0, kind), at, 4096, &data);
            }
            // One of them is silent for a while, so that commands are asked back.
            bench.medium().silent = if round % 1000 > 990 { vec![client] } else { Vec::new() };
        }
        bench.pass(if round % 1000 > 990 { 5 * SECOND } else { dice.roll(MILLISECOND) });
        bench.clients.iter_mut().for_each(|client| while client.answer().is_some() {});
    }
    if stop {
        bench.machine.finish().expect("it can be written");
    }
    let entries = fs::read_dir(directory).expect("it is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it is there").path()).collect();
    sort(&mut files);
    files
}

fn replay(files: &[PathBuf]) -> Report {
    let mut replay = Replay::default();
    for file in files {
        let file = File::open(file).expect("it is there");
        replay.segment(file, &mut ()).expect("it is sound");
    }
    replay.report()
}

#[test]
fn a_loaded_component_leaves_segments_that_replay_alone_and_as_one() {
    for seed in 1..=20 {
        let directory = tempfile::tempdir().expect("a directory");
        let files = run(directory.path(), seed, 1 << 20, true);
        assert!(files.len() > 2, "{seed}: {files:?}");
        for from in 0..files.len() {
            let report = replay(&files[from..]);
            assert_eq!((&report.difference, &report.holes[..], report.cut), (&None, &[][..], None));
            assert_eq!(report.begin == Time::ZERO, from == 0, "{seed}");
            assert!(report.inputs > 0);
        }
    }
}

#[test]
fn the_oldest_segments_go_and_what_is_left_replays() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = run(directory.path(), 1, 100 << 10, true);
    let first = files[0].file_name().expect("a name").to_string_lossy().into_owned();
    assert!(first > "h-0-1700000000000-000000.journal".into(), "{first}");
    let report = replay(&files);
    assert_eq!((report.difference, report.cut), (None, None));
    assert!(report.begin > Time::ZERO && report.holes.is_empty());
}
