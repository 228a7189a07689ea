//! How many instructions an I/O of a virtual machine takes, counted by callgrind where it is installed, and the budgets
//! that hold them: of a component and the guest that fills its ring, without the thread that writes a journal.
//!
//! The budgets are for the profile of tests, whose assertions are on. What a release takes is told by
//! `cargo test --release -p live --test instructions -- --nocapture`.
#![expect(clippy::print_stdout, reason = "the counts are what one asks for")]

use std::{env, process::Command, thread};

use guest::{Ask, Disk, Ring, Shape, Wish};
use live::{Alone, Extent};

/// How much of a component works (the second as the first, with what is in flight noted), and the most instructions
/// an I/O, a twentieth above what was counted.
const BUDGETS: [(&str, u64); 4] =
    [("rings", 2_240), ("noted", 2_610), ("whole", 3_740), ("journal", 4_340)];
/// What is read at once, and how many are under way.
const BYTES: u32 = 4096;
const DEPTH: u64 = 32;
/// I/Os before it is counted, and those that are.
const WARM: u64 = 4_000;
const IOS: u64 = 20_000;

/// What the test that callgrind runs is told: a name of [`BUDGETS`].
const RUN: &str = "KAVG_COUNTED_RUN";

#[test]
fn an_io_takes_no_more_instructions_than_its_budget() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        testing::skipped("no valgrind, which counts the instructions of an I/O");
        return;
    }
    let counted = BUDGETS.map(|(name, budget)| (under_callgrind(name) / IOS, budget, name));
    for (instructions, budget, name) in counted {
        println!("{name}: {instructions} instructions an I/O, of {budget}");
    }
    let over = counted.into_iter().filter(|(instructions, budget, _)| instructions > budget);
    assert_eq!(over.collect::<Vec<_>>(), []);
}

/// Instructions of what [`counted_io`] does.
fn under_callgrind(name: &str) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*counted_io*")
        .arg(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "counted_run", "--nocapture", "--test-threads=1"])
        .env(RUN, name)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let counted = text.split_once("Collected : ").map(|(_, rest)| rest.trim());
    let counted = counted.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    counted.unwrap_or_else(|| panic!("{text}"))
}

#[test]
#[ignore = "callgrind runs it, by the test above"]
fn counted_run() {
    let site = tempfile::tempdir().expect("room for a directory");
    let (socket, journals) = (site.path().join("disk"), site.path().join("journals"));
    let run = env::var(RUN).unwrap();
    let extent = match run.as_str() {
        "rings" | "noted" => Extent::Rings,
        "whole" => Extent::Whole,
        _ => Extent::Journalled(&journals, 64 << 20),
    };
    let mut alone = Alone::new(&socket, extent).expect("it begins");
    let wish = Wish { inflight: run == "noted", ..Wish::all(Shape::one_ring(BYTES)) };
    let connecting = thread::spawn(move || Disk::connect(&socket, wish));
    while !connecting.is_finished() {
        alone.pass();
        thread::yield_now();
    }
    let mut disk = connecting.join().expect("it connects").expect("they agree");
    let ring = &mut disk.rings[0];
    for sector in 0..DEPTH {
        ring.submit(Ask::Read(8 * sector, BYTES));
    }
    work(&mut alone, ring, WARM);
    counted_io(&mut alone, ring);
}

/// The guest and the component take turns on this thread.
fn work(alone: &mut Alone, ring: &mut Ring, ios: u64) {
    let mut done = 0;
    while done < ios {
        ring.kick();
        alone.pass();
        while let Some(ended) = ring.poll() {
            assert_eq!(ended.status, 0);
            done += 1;
            ring.repeat(8 * (done * 7_919 % 32_768));
        }
    }
}

/// What callgrind counts.
#[inline(never)]
fn counted_io(alone: &mut Alone, ring: &mut Ring) {
    work(alone, ring, IOS);
}
