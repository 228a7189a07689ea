//! How many instructions an I/O of a virtual machine takes, counted by callgrind where it is installed, and the budgets
//! that hold them: of a component and the guest that fills its ring, without the thread that writes a journal.
//!
//! The budgets are for the profile of tests, whose assertions are on. What a release takes is told by
//! `cargo test --release -p live --test instructions -- --nocapture`.

mod beside;

use guest::{Ask, Ring, Shape, Wish};
use live::{Alone, Extent};
use testing::callgrind;

use beside::{BYTES, DEPTH, connected};

/// How much of a component works (the second as the first, with what is in flight noted), and the most instructions
/// an I/O, a twentieth above what was counted.
const BUDGETS: [(&str, u64); 4] =
    [("rings", 2_240), ("noted", 2_610), ("whole", 3_740), ("journal", 4_340)];
/// I/Os before it is counted, and those that are.
const WARM: u64 = 4_000;
const IOS: u64 = 20_000;

#[test]
fn an_io_takes_no_more_instructions_than_its_budget() {
    if !callgrind::is_there() {
        return;
    }
    let of_counted_io = ["--toggle-collect=*counted_io*"];
    let count =
        |(name, budget): (_, u64)| (callgrind::run(name, &of_counted_io).0 / IOS, budget, name);
    callgrind::hold(&BUDGETS.map(count));
}

#[test]
#[ignore = "callgrind runs it, by the test above"]
fn counted_run() {
    let site = tempfile::tempdir().expect("room for a directory");
    let (socket, journals) = (site.path().join("disk"), site.path().join("journals"));
    let run = callgrind::wanted();
    let extent = match run.as_str() {
        "rings" | "noted" => Extent::Rings,
        "whole" => Extent::Whole,
        _ => Extent::Journalled(&journals, 64 << 20),
    };
    let wish = Wish { inflight: run == "noted", ..Wish::all(Shape::one_ring(BYTES)) };
    let (mut alone, mut disk) = connected(&socket, extent, wish);
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
