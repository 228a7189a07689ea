//! A disk that never answers: what its guests see, and what others see of it.

use counters::{MILLISECOND, SECOND};

use super::{bench::Bench, *};
use crate::executor::medium::Medium;

const BYTES: u64 = 64 << 10;
const READ: u16 = 0;
const WRITE: u16 = 1;
const EIO: u32 = 5;
/// As the file says it.
const GUEST_NS: u64 = 30 * SECOND;

fn bench(adapter: &str) -> Bench {
    let mut medium = Medium::new(5, vec![0; 2 * BYTES as usize]);
    medium.each = BYTES as usize;
    Bench::new(adapter, 512, BYTES, medium)
}

/// Passes of a tenth of a second until so much time is over.
fn wait(bench: &mut Bench, ns: u64) {
    let until = bench.now + ns;
    while bench.now < until {
        bench.pass(100 * MILLISECOND);
    }
}

#[test]
fn a_silent_disk_is_given_up_and_stops_no_other() {
    let mut bench = bench("");
    bench.medium().silent = vec![0];
    for n in 0..8 {
        bench.clients[0].ask(
            (0, if n % 2 == 0 { READ } else { WRITE }),
            n * 4096,
            4096,
            &vec![1; if n % 2 == 0 { 0 } else { 4096 }],
        );
    }
    wait(&mut bench, GUEST_NS - SECOND);
    assert!(bench.clients[0].answer().is_none(), "its guest still waits");
    // The other disk is served all the while.
    for n in 0..100 {
        bench.clients[1].ask((0, WRITE), n % 16 * 4096, 4096, &[7; 4096]);
        assert_eq!(bench.answer(1).error, 0);
    }
    wait(&mut bench, 3 * SECOND);
    for _ in 0..8 {
        assert_eq!(bench.answer(0).error, EIO);
    }
    let counters = bench.machine.counters();
    assert_eq!(
        (counters.vdisks[0].rare.get().aborts, counters.vdisks[1].rare.get().aborts),
        (8, 0)
    );
    bench.clients[1].ask((0, READ), 0, 4096, &[]);
    assert_eq!(bench.answer(1).data, [7; 4096]);
    // All its paths are dead: what is asked now waits in the host, and is given up as well.
    let usable = |bench: &Bench, path: usize| bench.machine.engine.is_usable(PathId::new(path));
    assert_eq!([usable(&bench, 0), usable(&bench, 1)], [false, true]);
    bench.clients[0].ask((0, READ), 0, 4096, &[]);
    wait(&mut bench, GUEST_NS + SECOND);
    assert_eq!(bench.answer(0).error, EIO);
    assert_eq!(bench.machine.counters().vdisks[0].rare.get().aborts, 9);
    // It answers at last, and is as good as before.
    bench.medium().silent.clear();
    wait(&mut bench, 10 * SECOND);
    bench.clients[0].ask((0, WRITE), 0, 4096, &[9; 4096]);
    assert_eq!(bench.answer(0).error, 0);
    assert!(bench.machine.hands.lost.is_empty() && usable(&bench, 0));
}

#[test]
fn what_is_written_later_is_not_undone_by_what_was_given_up() {
    let mut bench = bench("");
    bench.medium().silent = vec![0];
    bench.clients[0].ask((0, WRITE), 0, 4096, &[1; 4096]);
    wait(&mut bench, GUEST_NS + 2 * SECOND);
    assert_eq!(bench.answer(0).error, EIO);
    // The next one at the same place waits for the first, whatever the order in which the disk wakes up.
    bench.clients[0].ask((0, WRITE), 0, 4096, &[2; 4096]);
    wait(&mut bench, SECOND);
    bench.medium().silent.clear();
    assert_eq!(bench.answer(0).error, 0);
    bench.clients[0].ask((0, READ), 0, 4096, &[]);
    assert_eq!(bench.answer(0).data, [2; 4096]);
}

#[test]
fn a_host_that_keeps_the_time_resets_the_device() {
    let mut bench = bench("timeout = \"5s\"");
    bench.medium().silent = vec![0];
    bench.clients[0].ask((0, READ), 0, 4096, &[]);
    wait(&mut bench, GUEST_NS + 3 * SECOND);
    assert_eq!(bench.answer(0).error, EIO);
    let counters = bench.machine.counters();
    assert!(counters.vdisks[0].rare.get().overdue > 0, "{:?}", counters.vdisks[0]);
}

/// One that is to end does, whatever its disks do.
#[test]
fn a_component_ends_with_a_disk_that_is_silent() {
    let mut bench = bench("");
    bench.medium().silent = vec![0];
    bench.clients[0].ask((0, READ), 0, 4096, &[]);
    wait(&mut bench, SECOND);
    bench.machine.mailbox.send(Letter::Stop);
    bench.pass(SECOND);
    assert!(!bench.machine.is_over());
    wait(&mut bench, DRAIN_NS);
    assert!(bench.machine.is_over());
}
