//! A back end that answers nothing: what it has of others, and that time passes.

use counters::{DeviceId, Op, PathId, SECOND, Status, Time, VdiskId};
use engine::{Input, Object, Part, PathConfig, SchedPolicy};
use knobs::Allocation;

use crate::common::{Bench, disks, one_disk};

/// Four commands are at the adapter at a time. Twenty-eight of the silent device wait there before the one of the other.
#[test]
fn a_silent_device_leaves_its_slots_to_others() {
    let mut host = disks(SchedPolicy::Mclock, 32, &[Allocation::default(); 2]);
    (host.adapters[0].depth, host.adapters[0].timeout_ns) = (4, Some(5 * SECOND));
    host.devices.push(host.devices[0].clone());
    let other = DeviceId(1);
    host.paths.push(PathConfig { device: other, ..host.paths[0].clone() });
    host.vdisks[1].device = other;
    let mut bench = Bench::new(host);
    (0..32).for_each(|_| bench.submit(VdiskId(0), Op::Write, 0, 512));
    for _ in 0..3 {
        bench.submit(VdiskId(1), Op::Read, 0, 512);
        let of_other = |bench: &Bench| bench.out.iter().position(|sent| sent.path == PathId(1));
        while of_other(&bench).is_none() {
            bench.wake();
        }
        // As long as the host waits for the first of the silent device twice, and then never again.
        assert!(bench.now <= Time(10 * SECOND), "{:?}", bench.now);
        bench.answer(of_other(&bench).unwrap(), Status::Good);
    }
    // It answers after all: what it has, and the rest as it makes room.
    bench.now = Time(60 * SECOND);
    while !bench.out.is_empty() {
        bench.answer(0, Status::Good);
    }
    assert!(bench.alive.is_empty());
}

/// Its guest gave up a command, and another guest comes, which leaves the time to itself and gives up one as well.
#[test]
fn a_disk_that_comes_back_without_a_time_is_not_looked_after_for_ever() {
    let mut host = one_disk(SchedPolicy::Mclock, Allocation::default());
    (host.adapters[0].timeout_ns, host.vms[0].timeout_ns) = (Some(200 * SECOND), Some(30 * SECOND));
    let parts = host.parts(Object::Vdisk(VdiskId(0)));
    let mut bench = Bench::new(host);
    bench.submit(VdiskId(0), Op::Write, 0, 512);
    while bench.asked() == 0 {
        bench.wake();
    }
    bench.let_go(bench.out[0].io);
    assert!(bench.input(Input::Detach { object: Object::Vdisk(VdiskId(0)), drain: false }));
    for mut part in parts {
        if let Part::Vdisk { timeout_ns, .. } = &mut part {
            *timeout_ns = None;
            assert!(bench.input(Input::Attach(part)));
        }
    }
    bench.submit(VdiskId(0), Op::Write, 0, 512);
    let tag = bench.out[0].tag;
    bench.input(Input::Abort { vdisk: VdiskId(0), tag });
    while bench.now < Time(100 * SECOND) && bench.engine.next_wakeup().is_some() {
        let before = bench.now;
        bench.wake();
        assert!(bench.now > before, "time stands still at {before:?}");
    }
    bench.let_go(bench.out[0].io);
    assert!(bench.alive.is_empty());
}
