//! Whatever happens to whatever host, in any order: every invariant holds after every input, and
//! every I/O that was taken is completed exactly once.

mod common;

use common::{Bench, act, counters as counters_of, host, one_disk, wait};
use counters::{AdapterId, DeviceId, IoId, MILLISECOND, Op, PathId, SECOND, Status, Time, VdiskId};
use engine::{DepthMode, Input, PathConfig, SchedPolicy};
use knobs::Allocation;
use proptest::{collection::vec, prelude::*, sample::select};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_invariant_holds_after_every_input(
        host in host(),
        acts in vec((wait(), act()), 1..300),
    ) {
        let mut bench = Bench::new(host);
        for (wait_ns, act) in &acts {
            bench.now = bench.now + *wait_ns;
            bench.act(act);
        }
        bench.drain();
        let counters = counters_of(&bench.engine);
        for device in &counters.devices {
            prop_assert_eq!((device.active.now(), device.queued.now()), (0, 0));
        }
        if bench.is_plain {
            let totals = counters.vdisks.iter().flat_map(|disk| disk.io);
            let sum: u64 = totals.map(|io| io.guest_ns + io.kernel_ns + io.device_ns).sum();
            prop_assert_eq!(sum, bench.waited_ns);
        }
    }

    #[test]
    fn no_disk_gets_more_than_its_limit(
        policy in select(vec![SchedPolicy::Fifo, SchedPolicy::Sfq, SchedPolicy::Mclock]),
        limit in 1..2_000_u32,
        bytes in select(vec![512_u32, 32_768, 32_769, 262_144]),
        threads in 1..40_u32,
        service_ns in 0..10 * MILLISECOND,
    ) {
        let allocation = Allocation { limit_iops: Some(limit), ..Allocation::default() };
        let mut bench = Bench::new(one_disk(policy, allocation));
        // `Disk.SchedCostUnit` is 32 KiB.
        let cost = u64::from(bytes.div_ceil(32_768));
        while bench.now < Time(2 * SECOND) {
            while bench.alive.len() < threads as usize {
                bench.submit(VdiskId(0), Op::Read, 0, bytes);
            }
            if bench.out.is_empty() {
                bench.wake();
            }
            bench.now = bench.now + service_ns;
            while !bench.out.is_empty() {
                bench.answer(bench.out.len() - 1, Status::Good);
            }
            let sent = bench.sent * cost;
            let allowed = u64::from(limit) * bench.now.0 / SECOND + cost;
            prop_assert!(sent <= allowed, "{sent} units are above {allowed}");
        }
    }
}

#[test]
fn an_aborted_hold_does_not_shorten_the_hold_of_the_next_io_in_its_place() {
    let mut bench = Bench::new(one_disk(SchedPolicy::Mclock, Allocation::default()));
    let busy_at = |bench: &mut Bench, at_ms: u64| {
        bench.now = Time(at_ms * MILLISECOND);
        bench.submit(VdiskId(0), Op::Read, 0, 512);
        bench.answer(0, Status::Busy);
    };
    busy_at(&mut bench, 0);
    bench.input(Input::Abort { vdisk: VdiskId(0), tag: 0 });
    busy_at(&mut bench, 100);
    bench.now = Time(400 * MILLISECOND);
    bench.input(Input::Tick);
    assert!(bench.out.is_empty(), "it is held for 400 ms from 100 ms on");
    bench.now = Time(500 * MILLISECOND);
    bench.input(Input::Tick);
    assert_eq!(bench.out[0].io, IoId::new(0, 3), "a new id each time that it is sent");
}

#[test]
fn a_path_takes_its_own_depth_when_the_device_has_that_of_all_its_paths() {
    let mut host = one_disk(SchedPolicy::Mclock, Allocation::default());
    host.depth_mode = DepthMode::SumOfActivePaths;
    host.paths.push(PathConfig {
        name: "vmhba1:C0:T1:L0".into(),
        device: DeviceId(0),
        adapter: AdapterId(0),
        optimized: true,
    });
    let mut bench = Bench::new(host);
    for _ in 0..40 {
        bench.submit(VdiskId(0), Op::Read, 0, 512);
    }
    // DQLEN is 2 x 32, but the fixed policy sends everything down the first path.
    let counters = counters_of(&bench.engine);
    assert_eq!((counters.devices[0].depth, counters.devices[0].active.now()), (64, 40));
    assert_eq!((counters.paths[0].active.now(), counters.paths[0].queued.now()), (32, 8));
    assert_eq!(bench.out.len(), 32);

    // What waits for a path that goes down takes the other one.
    bench.input(Input::Path { path: PathId(0), up: false });
    let counters = counters_of(&bench.engine);
    assert_eq!((counters.paths[0].active.now(), counters.paths[0].queued.now()), (32, 0));
    assert_eq!(counters.devices[0].depth, 32);
    while !bench.out.is_empty() {
        bench.answer(bench.out.len() - 1, Status::Good);
    }
    // What was down the lost path is sent again, down the other one.
    assert_eq!(counters_of(&bench.engine).paths[1].io[0].commands, 40);
}

#[test]
fn what_is_sent_at_the_instant_a_path_comes_back_is_not_lost() {
    let mut bench = Bench::new(one_disk(SchedPolicy::Mclock, Allocation::default()));
    bench.submit(VdiskId(0), Op::Read, 0, 512);
    for up in [false, true] {
        bench.input(Input::Path { path: PathId(0), up });
    }
    bench.answer(0, Status::Good);
    assert_eq!(bench.alive.len(), 1, "what was lost is sent again");
    bench.answer(0, Status::Good);
    assert!(bench.alive.is_empty());
}

#[test]
fn a_refusal_does_not_start_a_full_queue() {
    let mut bench = Bench::new(one_disk(SchedPolicy::Mclock, Allocation::default()));
    for _ in 0..3 {
        bench.submit(VdiskId(0), Op::Read, 0, 512);
    }
    assert_eq!(bench.out.len(), 3);
    bench.answer(0, Status::TaskSetFull);
    bench.answer(0, Status::Busy);
    assert_eq!(bench.out.len(), 1, "nothing completed at the array");
    bench.answer(0, Status::Good);
    assert_eq!(bench.out.len(), 1, "the one that was refused first");
}
