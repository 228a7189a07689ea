//! Whatever happens to whatever host, in any order: every invariant holds after every input, and
//! every I/O that was taken is completed exactly once.

mod common;
mod sharing;
mod silence;

use std::collections::BTreeMap;

use common::{Act, Bench, act, counters as counters_of, host, one_disk, wait};
use counters::{
    AdapterId, DeviceId, DeviceKind, IoId, IoTotals, MILLISECOND, Op, PathId, SECOND, Sense,
    Status, Time, VdiskId, VmId, VscsiId,
};
use engine::{
    DepthMode, Dispatch, Engine, HostConfig, Input, Object, Output, Part, PathAccess, PathConfig,
    Request, SchedPolicy, VdiskConfig, VmConfig, VscsiConfig,
    codec::{Bytes, Field, Payload},
};
use knobs::{Advanced, Allocation, Knob, PathPolicy, Version};
use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};

/// A host whose only disk has so many reads under way for two seconds, and what holds after each answer.
fn busy(
    host: HostConfig,
    bytes: u32,
    threads: u32,
    service_ns: u64,
    holds: impl Fn(&Bench),
) -> Bench {
    let mut bench = Bench::new(host);
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
        holds(&bench);
    }
    bench
}

/// 100 a second: 100 of 64 KiB before mClock, 50 with it [YB-LIMIT].
#[test]
fn a_limit_counts_large_ios_twice_from_mclock_on() {
    let allocation = Allocation { limit_iops: Some(100), ..Allocation::default() };
    for (version, expected) in [(Version::V5_1, 200), (Version::V5_5, 100)] {
        let host = HostConfig { version, ..one_disk(SchedPolicy::Sfq, allocation) };
        let bench = busy(host, 65_536, 4, 0, |_| ());
        assert!(bench.sent.abs_diff(expected) <= 1, "{version:?}: {}", bench.sent);
    }
}

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
        // Before mClock a limit counts I/Os; with it, units of `Disk.SchedCostUnit`, 32 KiB.
        (version, unit) in select(vec![(Version::V5_1, u32::MAX), (Version::V5_5, 32_768)]),
    ) {
        let allocation = Allocation { limit_iops: Some(limit), ..Allocation::default() };
        let host = HostConfig { version, ..one_disk(policy, allocation) };
        let cost = u64::from(bytes.div_ceil(unit));
        busy(host, bytes, threads, service_ns, |bench| {
            let sent = bench.sent * cost;
            let allowed = u64::from(limit) * bench.now.0 / SECOND + cost;
            assert!(sent <= allowed, "{sent} units are above {allowed}");
        });
    }
}

proptest! {
    /// It is put into bytes and taken out of them at any moment, and goes on as the one that was not.
    #[test]
    fn an_engine_goes_on_from_its_bytes(
        host in host(),
        acts in vec((wait(), act(), any::<bool>()), 1..150),
    ) {
        let (mut whole, mut taken) = (Bench::new(host.clone()), Bench::new(host));
        for (wait_ns, act, again) in &acts {
            for bench in [&mut whole, &mut taken] {
                bench.now = bench.now + *wait_ns;
                bench.act(act);
            }
            if *again {
                let bytes = bytes_of(&taken.engine);
                prop_assert_eq!(&bytes, &bytes_of(&whole.engine));
                let mut from = Bytes(&bytes);
                taken.engine = Engine::take(&mut from).expect("what was put");
                prop_assert!(from.is_empty());
                prop_assert_eq!(&bytes, &bytes_of(&taken.engine));
            }
            prop_assert_eq!(&whole.out, &taken.out);
        }
        [&mut whole, &mut taken].into_iter().for_each(Bench::drain);
        prop_assert_eq!(counters_of(&whole.engine), counters_of(&taken.engine));
        prop_assert_eq!(bytes_of(&whole.engine), bytes_of(&taken.engine));
    }

    /// Bytes that nobody wrote are refused, or are an engine that nothing makes panic.
    #[test]
    fn bytes_that_nobody_wrote_are_no_engine_or_a_sound_one(
        host in host(),
        before in vec((wait(), act()), 1..60),
        changes in vec((any::<Index>(), any::<u8>()), 1..3),
        after in vec((wait(), act()), 1..60),
    ) {
        let mut bench = Bench::new(host);
        for (wait_ns, act) in &before {
            bench.now = bench.now + *wait_ns;
            bench.act(act);
        }
        let mut bytes = bytes_of(&bench.engine);
        for (at, byte) in &changes {
            *at.get_mut(&mut bytes) = *byte;
        }
        if let Ok(mut engine) = Engine::take(&mut Bytes(&bytes)) {
            let mut now = bench.now;
            for (wait_ns, act) in &after {
                now = now + *wait_ns;
                for input in inputs_of(act, &bench) {
                    let _ = engine.handle_input(now, input);
                }
            }
            counters_of(&engine);
        }
    }
}

fn bytes_of(engine: &Engine) -> Vec<u8> {
    let mut payload = Payload::with_capacity(0);
    engine.put(&mut payload);
    payload.bytes().to_vec()
}

/// What an act is to an engine that is not the bench's.
fn inputs_of(act: &Act, bench: &Bench) -> Vec<Input> {
    let out = bench.out.iter().map(|sent| sent.io);
    match *act {
        Act::Submit { vdisk, op, lba, bytes } => {
            vec![Input::Submit(Request { vdisk, op, lba, bytes, waited_ns: 0, tag: 0 })]
        }
        Act::Answer(_, status) | Act::Again(_, status) => {
            out.map(|io| Input::Done { io, status, array_ns: 0 }).collect()
        }
        Act::Wild(io, status) => vec![Input::Done { io, status, array_ns: 0 }],
        Act::LetGo(_) | Act::LetGoUnasked(_) => out.map(|io| Input::Cancelled { io }).collect(),
        Act::Abort(tag) => vec![Input::Abort { vdisk: VdiskId(0), tag: tag as u32 % 8 }],
        Act::Other(input) => vec![input],
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
        access: PathAccess::Optimized,
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
    while let Some(sent) = bench.out.last().copied() {
        let is_lost = bench.engine.is_lost(sent.io);
        assert_eq!(is_lost, sent.path == PathId(0));
        let status = if is_lost { Status::PathLost } else { Status::Good };
        bench.answer(bench.out.len() - 1, status);
    }
    // What was down the lost path is sent again, down the other one.
    assert_eq!(counters_of(&bench.engine).paths[1].io.get()[0].commands, 40);
}

#[test]
fn what_is_sent_at_the_instant_a_path_comes_back_is_not_lost() {
    let mut bench = Bench::new(one_disk(SchedPolicy::Mclock, Allocation::default()));
    bench.submit(VdiskId(0), Op::Read, 0, 512);
    for up in [false, true] {
        bench.input(Input::Path { path: PathId(0), up });
    }
    assert!(bench.engine.is_lost(bench.out[0].io));
    bench.answer(0, Status::PathLost);
    assert_eq!(bench.alive.len(), 1, "what was lost is sent again");
    assert!(!bench.engine.is_lost(bench.out[0].io));
    bench.answer(0, Status::Good);
    assert!(bench.alive.is_empty());
}

/// What has been done has been done, a compare and write most of all: sent again it would not compare.
#[test]
fn an_answer_counts_also_by_a_path_that_went_down() {
    let mut bench = Bench::new(one_disk(SchedPolicy::Mclock, Allocation::default()));
    bench.submit(VdiskId(0), Op::Ats, 0, 512);
    bench.input(Input::Path { path: PathId(0), up: false });
    bench.answer(0, Status::Good);
    assert!(bench.alive.is_empty() && bench.out.is_empty());
}

/// Every way of an I/O to its end frees its record and its seat: at once, after a wait in the guest,
/// in pieces, in parts, sent again. A second use of the places finds nothing of the first.
#[test]
fn what_has_ended_is_found_by_no_reset_and_no_reboot() {
    let mut bench = Bench::new(one_disk(SchedPolicy::Mclock, Allocation::default()));
    let (option, value) = (Advanced::DiskMaxIoSize, 512);
    bench.input(Input::Set(Knob::Advanced { option, value }));
    for _ in 0..2 {
        for bytes in [512, 1 << 20, 3 << 20].into_iter().cycle().take(90) {
            bench.submit(VdiskId(0), Op::Read, 0, bytes);
        }
        bench.answer(0, Status::TaskSetFull);
        while !bench.out.is_empty() {
            bench.answer(0, Status::Good);
        }
        assert!(bench.alive.is_empty());
        for input in [Input::Reset(VdiskId(0)), Input::RebootGuest(VmId(0)), Input::Reboot] {
            bench.input(input);
        }
        assert!(bench.out.is_empty());
    }
    let disk = &counters_of(&bench.engine).vdisks[0];
    // The adapter takes 1 MiB: the largest of each three are three commands, and one I/O of the application.
    assert_eq!((disk.rare.get().aborts, disk.io[0].commands), (0, 60 * (1 + 1 + 3)));
    assert_eq!((disk.offered, disk.total.count()), (180, 180));
}

/// A reboot meets I/Os at every level at once: with the driver, at the adapter, at the path, held, queued
/// and in the guest. Each ends once, and its place is one's alone afterwards.
#[test]
fn a_reboot_frees_what_is_at_every_level_once() {
    let mut host = one_disk(SchedPolicy::Mclock, Allocation::default());
    host.depth_mode = DepthMode::SumOfActivePaths;
    host.paths.push(PathConfig { name: "vmhba1:C0:T1:L0".into(), ..host.paths[0].clone() });
    (host.adapters[0].depth, host.vdisks[0].depth) = (20, 80);
    let mut bench = Bench::new(host);
    for round in 1..=3 {
        (0..100).for_each(|_| bench.submit(VdiskId(0), Op::Read, 0, 512));
        bench.answer(0, Status::Busy);
        let found = counters_of(&bench.engine);
        let (disk, path) = (&found.vdisks[0], &found.paths[0]);
        assert_eq!((disk.guest_queued.now(), disk.queued.now(), disk.slots.now()), (20, 15, 64));
        assert_eq!((path.queued.now(), found.adapters[0].queued.now()), (32, 12));
        assert_eq!((bench.out.len(), found.devices[0].held.now()), (20, 1));
        bench.input(Input::Reboot);
        assert_eq!((bench.out.len(), bench.alive.len()), (20, 20), "the driver has those still");
        bench.answer(0, Status::PathLost);
        while !bench.out.is_empty() {
            bench.answer(0, Status::Good);
        }
        assert!(bench.alive.is_empty());
        let disk = &counters_of(&bench.engine).vdisks[0];
        assert_eq!((disk.rare.get().aborts, disk.offered), (100 * round, 100 * round));
    }
}

#[test]
fn a_standby_path_is_taken_by_fixed_as_its_first_and_by_mru_as_its_last() {
    let mut host = impatient();
    host.paths[0].access = PathAccess::Standby;
    host.devices[0].path_policy = PathPolicy::Fixed;
    let mut bench = Bench::new(host);
    let mut goes_by = |input: Option<Input>| {
        input.into_iter().for_each(|input| assert!(bench.input(input)));
        bench.submit(VdiskId(0), Op::Read, 0, 512);
        let path = bench.out[0].path.0;
        bench.answer(0, Status::Good);
        path
    };
    let policy = |policy| Some(Input::Set(Knob::PathPolicy { device: DeviceId(0), policy }));
    let optimized = |up| Some(Input::Path { path: PathId(1), up });
    assert_eq!(goes_by(None), 0);
    assert_eq!(goes_by(policy(PathPolicy::MostRecentlyUsed)), 1);
    assert_eq!(goes_by(optimized(false)), 0);
    assert_eq!(goes_by(optimized(true)), 0, "it stays");
    assert_eq!(goes_by(policy(PathPolicy::ROUND_ROBIN)), 1);
    assert_eq!(goes_by(policy(PathPolicy::Fixed)), 0);
}

#[test]
fn a_host_follows_a_device_to_the_other_controller_and_has_it_taken_over_where_it_can_not() {
    let mut host = impatient();
    host.paths[0].access = PathAccess::Standby;
    host.devices[0].path_policy = PathPolicy::MostRecentlyUsed;
    let mut bench = Bench::new(host);
    let mut goes_by = |input: Option<Input>, standby: usize| {
        input.into_iter().for_each(|input| assert!(bench.input(input)));
        bench.submit(VdiskId(0), Op::Read, 0, 512);
        let mut paths = vec![bench.out[0].path.0];
        for _ in 0..standby {
            bench.answer(0, Status::CheckCondition(Sense::STANDBY));
            paths.push(bench.out[0].path.0);
        }
        bench.answer(0, Status::Good);
        (paths, bench.engine.takeovers(PathId(0)))
    };
    let up = |path, up| Some(Input::Path { path: PathId(path), up });
    let policy = |policy| Some(Input::Set(Knob::PathPolicy { device: DeviceId(0), policy }));
    assert_eq!(goes_by(None, 0), (vec![1], Some(0)));
    assert_eq!(goes_by(None, 1), (vec![1, 0], Some(0)), "it is there");
    assert_eq!(goes_by(policy(PathPolicy::ROUND_ROBIN), 0), (vec![0], Some(0)), "and stays");
    assert_eq!(goes_by(up(0, false), 0), (vec![1], Some(0)), "it was brought back by another host");
    assert_eq!(goes_by(None, 1), (vec![1, 1], Some(1)), "there is no other path");
    assert_eq!(goes_by(up(0, true), 0), (vec![1], Some(1)));
    assert_eq!(goes_by(policy(PathPolicy::Fixed), 0), (vec![0], None));
}

/// What the paths of a device have carried is told by each of them as the driver saw it, and what
/// failed without a path by none.
#[test]
fn each_path_tells_what_it_has_carried() {
    let mut host = impatient();
    host.devices[0].path_policy = PathPolicy::RoundRobin { iops: 3, bytes: u64::MAX };
    let mut bench = Bench::new(host);
    (0..60).for_each(|_| bench.submit(VdiskId(0), Op::Write, 0, 512));
    let (mut sent_at, mut spent, mut carried) = (BTreeMap::new(), BTreeMap::new(), [(0, 0); 2]);
    let lost = Status::CheckCondition(Sense::PERMANENT_LOSS[0]);
    while !bench.out.is_empty() {
        for sent in &bench.out {
            sent_at.entry(sent.io).or_insert(bench.now);
        }
        bench.now = bench.now + 1_000;
        let Dispatch { io, request, path, .. } = bench.out[0];
        *spent.entry(request).or_insert(0) += bench.now - sent_at[&io];
        bench.answer(0, if bench.sent > 50 { lost } else { Status::Good });
        if !bench.alive.contains_key(&request) {
            let (commands, device_ns) = &mut carried[path.index()];
            (*commands, *device_ns) = (*commands + 1, *device_ns + spent[&request]);
        }
    }
    let found = counters_of(&bench.engine);
    let io = |totals: &[IoTotals; 3]| (totals[1].commands, totals[1].device_ns);
    let on_paths = [0, 1].map(|path: usize| io(&found.paths[path].io.get()));
    let disk = &found.vdisks[0];
    assert_eq!(carried.map(|(commands, _)| commands).iter().sum::<u64>(), 51);
    assert_eq!(disk.io[1].commands, 60);
    assert_eq!((on_paths, found.paths[1].io.get()[1].queue_ns), (carried, 0));
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

/// The array holds two commands and refuses at once what comes on top.
#[test]
fn of_a_command_in_pieces_only_what_was_refused_is_sent_again() {
    let mut bench = Bench::new(one_disk(SchedPolicy::Mclock, Allocation::default()));
    let (option, value) = (Advanced::DiskMaxIoSize, 32);
    bench.input(Input::Set(Knob::Advanced { option, value }));
    bench.submit(VdiskId(0), Op::Write, 0, 8 * 32_768);
    for left in [8, 6, 4, 2] {
        assert_eq!(bench.out.len(), left);
        while bench.out.len() > 2 {
            bench.answer(2, Status::TaskSetFull);
        }
        bench.answer(0, Status::Good);
        bench.answer(0, Status::Good);
    }
    assert!(bench.alive.is_empty());
    assert_eq!(counters_of(&bench.engine).paths[0].split_copies, 8);
}

/// The array holds four of the disk's eight.
#[test]
fn after_a_refusal_each_completion_lets_one_more_go() {
    let mut bench = Bench::new(one_disk(SchedPolicy::Mclock, Allocation::default()));
    (0..8).for_each(|_| bench.submit(VdiskId(0), Op::Read, 0, 512));
    while bench.out.len() > 4 {
        bench.answer(4, Status::TaskSetFull);
    }
    bench.answer(0, Status::Good);
    assert_eq!(bench.out.len(), 5, "one in its place and one more");
    bench.answer(4, Status::TaskSetFull);
    assert_eq!(bench.out.len(), 4);
    while !bench.out.is_empty() {
        bench.answer(0, Status::Good);
    }
    bench.submit(VdiskId(0), Op::Read, 0, 512);
    bench.answer(0, Status::TaskSetFull);
    assert!(bench.out.is_empty(), "nothing is outstanding that could complete");
    bench.now = bench.now + 500 * MILLISECOND;
    bench.input(Input::Tick);
    assert_eq!(bench.out.len(), 1, "a stalled queue is started again after 500 ms");
}

/// The bytes of those that move none only say where: they are not cut, count as one I/O and as no
/// data. What is nothing without a byte is refused without one.
#[test]
fn every_operation_takes_a_slot_and_is_counted_as_what_it_is() {
    let mut bench = Bench::new(one_disk(SchedPolicy::Mclock, Allocation::default()));
    let bytes = 8 << 20;
    for op in Op::ALL {
        bench.submit(VdiskId(0), op, 0, 0);
        assert_eq!(bench.out.is_empty(), op.needs_bytes(), "{op:?}");
        bench.submit(VdiskId(0), op, 0, bytes);
        // The largest command of the adapter has 1 MiB.
        let commands = if op.moves_data() { 8 } else { 1 };
        let sent = bench.out.iter().filter(|sent| sent.bytes > 0);
        assert_eq!(sent.clone().count(), commands, "{op:?}");
        assert!(sent.clone().all(|sent| sent.op == op));
        let counters = counters_of(&bench.engine);
        assert_eq!(counters.devices[0].active.now() as usize, bench.out.len());
        while !bench.out.is_empty() {
            bench.answer(0, Status::Good);
        }
    }
    let disk = &counters_of(&bench.engine).vdisks[0];
    assert_eq!(disk.io.map(|io| io.commands), [8, 16, 2 + 1 + 1 + 8 + 9 + 9 + 1]);
    assert_eq!(disk.io.map(|io| io.bytes >> 20), [8, 16, 24]);
    assert_eq!(
        (disk.rare.get().flushes, disk.rare.get().discards, disk.rare.get().zeroes),
        (2, 1, 1)
    );
    assert_eq!((disk.rare.get().ats, disk.rare.get().reserves, disk.rare.get().copies), (8, 9, 1));
}

#[test]
fn why_a_command_failed_reaches_the_guest() {
    let mut engine = Engine::new(&one_disk(SchedPolicy::Mclock, Allocation::default()));
    let (vdisk, op) = (VdiskId(0), Op::Write);
    let request = Request { vdisk, op, lba: 0, bytes: 512, waited_ns: 0, tag: 7 };
    let id = engine.handle_input(Time(1), Input::Submit(request)).unwrap().unwrap();
    let Some(Output::Dispatch(sent)) = engine.poll_output() else { panic!("it was not sent") };
    assert_eq!((sent.request, sent.tag, sent.offset, sent.bytes), (id, 7, 0, 512));
    let status = Status::CheckCondition(Sense { key: 7, code: 0x27, qualifier: 2 });
    engine.handle_input(Time(2), Input::Done { io: sent.io, status, array_ns: 0 }).unwrap();
    let told = Output::Complete { request: id, vdisk, tag: 7, status };
    assert_eq!(engine.poll_output(), Some(told));
}

/// The adapter has four slots for two devices, and the first one is silent.
#[test]
fn a_silent_back_end_keeps_no_slot_from_others_and_nothing_is_sent_twice() {
    let mut host = one_disk(SchedPolicy::Mclock, Allocation::default());
    host.adapters[0].depth = 4;
    host.adapters[0].timeout_ns = Some(10 * MILLISECOND);
    host.devices.push(host.devices[0].clone());
    host.paths.push(PathConfig { device: DeviceId(1), ..host.paths[0].clone() });
    host.vdisks.push(VdiskConfig { device: DeviceId(1), ..host.vdisks[0].clone() });
    let mut bench = Bench::new(host);
    for vdisk in [0, 0, 0, 0, 1] {
        bench.submit(VdiskId(vdisk), Op::Read, 0, 512);
    }
    assert_eq!(bench.out.len(), 4, "the fifth waits at the adapter");
    for (at_ms, asked, out) in [(10, 4, 4), (19, 4, 4), (20, 4, 5)] {
        bench.now = Time(at_ms * MILLISECOND);
        bench.input(Input::Tick);
        assert_eq!((bench.asked(), bench.out.len()), (asked, out), "after {at_ms} ms");
    }
    assert_eq!(bench.out[4].vdisk, VdiskId(1), "its slot was written off");
    assert_eq!(bench.alive.len(), 5, "no guest was told anything");

    let silent: Vec<_> = bench.out[..4].iter().map(|sent| sent.io).collect();
    bench.answer(0, Status::Good);
    assert_eq!(bench.alive.len(), 4, "a late answer is one");
    bench.let_go(silent[1]);
    assert_eq!(bench.alive.len(), 4, "what is known dead is sent again");
    assert!(bench.out.iter().all(|sent| sent.io != silent[1]));
    assert_eq!(bench.out.len(), 4);
    bench.input(Input::Reset(VdiskId(0)));
    assert_eq!(bench.alive.len(), 4, "the driver has what the guest gives up");
    bench.let_go(silent[2]);
    bench.let_go(silent[3]);
    assert_eq!(bench.alive.len(), 2);
    let disk = &counters_of(&bench.engine).vdisks[0];
    assert_eq!(
        (disk.rare.get().overdue, disk.rare.get().aborts, disk.rare.get().resets),
        (4, 3, 1)
    );
}

/// One disk whose guest waits 30 s, reached over two paths.
fn impatient() -> HostConfig {
    let mut host = one_disk(SchedPolicy::Mclock, Allocation::default());
    host.vms[0].timeout_ns = Some(30 * SECOND);
    host.paths.push(PathConfig { name: "vmhba1:C0:T1:L0".into(), ..host.paths[0].clone() });
    host
}

fn wake_at(bench: &mut Bench, seconds: u64) {
    while bench.engine.next_wakeup().is_some_and(|wakeup| wakeup.at <= Time(seconds * SECOND)) {
        bench.wake();
    }
    bench.now = Time(seconds * SECOND);
}

#[test]
fn a_guest_aborts_after_its_timeout_and_resets_when_that_does_not_help() {
    let mut bench = Bench::new(impatient());
    (0..2).for_each(|_| bench.submit(VdiskId(0), Op::Read, 0, 512));
    bench.now = Time(10 * SECOND);
    bench.submit(VdiskId(0), Op::Read, 0, 512);
    for (second, asked, resets) in [(29, 0, 0), (30, 2, 0), (59, 3, 0), (60, 3, 1), (90, 3, 2)] {
        wake_at(&mut bench, second);
        let disk = &counters_of(&bench.engine).vdisks[0];
        let aborts = u64::try_from(asked).unwrap();
        assert_eq!(
            (bench.asked(), disk.rare.get().aborts, disk.rare.get().resets),
            (asked, aborts, resets),
            "{second} s"
        );
    }
    while !bench.out.is_empty() {
        bench.let_go(bench.out[0].io);
    }
    assert!(bench.alive.is_empty());
    wake_at(&mut bench, 200);
    assert_eq!(bench.engine.next_wakeup(), None, "nothing is under way");
    assert_eq!(counters_of(&bench.engine).vdisks[0].rare.get().resets, 2);
}

#[test]
fn a_guest_looks_sixteen_times_in_its_timeout() {
    let mut host = impatient();
    host.vms[0].timeout_ns = Some(SECOND);
    let mut bench = Bench::new(host);
    bench.now = Time(10 * MILLISECOND);
    bench.submit(VdiskId(0), Op::Read, 0, 512);
    while bench.asked() == 0 {
        bench.wake();
    }
    assert_eq!(bench.now, Time(SECOND / 16 * 17));
}

#[test]
fn what_waits_for_a_path_waits_for_its_guest_and_a_process_of_the_host_for_the_timer() {
    let mut host = impatient();
    host.vms.push(VmConfig { system: true, timeout_ns: None, ..host.vms[0].clone() });
    host.vscsi.push(VscsiConfig { vm: VmId(1), ..host.vscsi[0].clone() });
    host.vdisks.push(VdiskConfig { vm: VmId(1), vscsi: VscsiId(1), ..host.vdisks[0].clone() });
    let mut bench = Bench::new(host);
    for path in [0, 1] {
        bench.input(Input::Path { path: PathId(path), up: false });
    }
    bench.submit(VdiskId(1), Op::Ats, 0, 512);
    bench.now = Time(130 * SECOND);
    bench.submit(VdiskId(0), Op::Read, 0, 512);
    wake_at(&mut bench, 139);
    assert_eq!(bench.alive.len(), 2);
    wake_at(&mut bench, 140);
    assert_eq!(bench.alive.len(), 1, "`Misc.APDTimeout` ended that of the host");
    bench.submit(VdiskId(1), Op::Ats, 0, 512);
    assert_eq!(bench.alive.len(), 1, "and so does the next at once");
    wake_at(&mut bench, 159);
    assert_eq!(bench.alive.len(), 1);
    bench.input(Input::Path { path: PathId(1), up: true });
    bench.submit(VdiskId(1), Op::Ats, 0, 512);
    assert_eq!(bench.out.len(), 2, "a path is back");
    let counters = counters_of(&bench.engine);
    assert_eq!(
        (counters.vdisks[1].rare.get().failed, counters.vdisks[0].rare.get().aborts),
        ([0, 0, 2], 0)
    );
}

#[test]
fn an_outage_is_timed_from_when_that_is_switched_on_and_for_as_long_as_was_set_then() {
    let mut bench = Bench::new(impatient());
    let set = |bench: &mut Bench, option, value| {
        assert!(bench.input(Input::Set(Knob::Advanced { option, value })));
    };
    set(&mut bench, Advanced::ApdHandlingEnable, 0);
    for path in [0, 1] {
        bench.input(Input::Path { path: PathId(path), up: false });
    }
    assert_eq!(bench.engine.next_wakeup(), None, "it waits for ever");
    bench.now = Time(1_000 * SECOND);
    set(&mut bench, Advanced::ApdHandlingEnable, 1);
    let timed_out = Time(1_140 * SECOND);
    assert_eq!(bench.engine.next_wakeup().map(|wakeup| wakeup.at), Some(timed_out));
    set(&mut bench, Advanced::ApdTimeout, 20);
    assert_eq!(bench.engine.next_wakeup().map(|wakeup| wakeup.at), Some(timed_out));
}

#[test]
fn a_device_is_lost_when_every_path_says_so_and_back_with_the_first_that_is_up() {
    let lost = Status::CheckCondition(Sense::PERMANENT_LOSS[0]);
    let mut bench = Bench::new(impatient());
    (0..40).for_each(|_| bench.submit(VdiskId(0), Op::Write, 0, 512));
    assert_eq!(bench.out.len(), 32);
    bench.answer(0, lost);
    assert_eq!((bench.out.len(), bench.alive.len()), (32, 40), "another path is tried");
    assert_eq!(bench.out[31].path, PathId(1));
    bench.answer(31, lost);
    assert_eq!((bench.out.len(), bench.alive.len()), (31, 31), "what waited has failed");
    assert_eq!(counters_of(&bench.engine).vdisks[0].rare.get().failed, [0, 9, 0]);
    bench.submit(VdiskId(0), Op::Write, 0, 512);
    assert_eq!(bench.alive.len(), 31);
    bench.answer(0, Status::Good);
    bench.answer(0, Status::PathLost);
    assert_eq!(bench.alive.len(), 29, "what the driver had ends with its answer");
    bench.input(Input::Path { path: PathId(0), up: true });
    bench.submit(VdiskId(0), Op::Write, 0, 512);
    assert_eq!((bench.out.len(), bench.alive.len()), (30, 30));
}

#[test]
fn what_is_overdue_is_sent_again_down_another_path() {
    let mut host = impatient();
    host.adapters[0].timeout_ns = Some(SECOND);
    let mut bench = Bench::new(host);
    bench.submit(VdiskId(0), Op::Write, 0, 512);
    wake_at(&mut bench, 2);
    bench.let_go(bench.out[0].io);
    assert_eq!(bench.out[0].path, PathId(1));
    let counters = counters_of(&bench.engine);
    assert_eq!((counters.devices[0].resets, counters.vdisks[0].rare.get().overdue), (1, 1));
}

fn disk(id: u16, device: u16) -> Part {
    Part::Vdisk {
        id: VdiskId(id),
        vscsi: VscsiId(0),
        device: DeviceId(device),
        depth: 64,
        max_transfer: 1 << 20,
        allocation: Allocation::default(),
        powered_on: true,
        system: false,
        timeout_ns: None,
    }
}

/// Before ESXi 6.0 the disks of a VM share a world, which has a limit only where each of them has one.
#[test]
fn a_disk_that_comes_without_a_limit_lifts_that_of_its_world() {
    let limited = Allocation { limit_iops: Some(10), ..Allocation::default() };
    let host = HostConfig { version: Version::V5_1, ..one_disk(SchedPolicy::Mclock, limited) };
    let mut bench = Bench::new(host);
    (0..40).for_each(|_| bench.submit(VdiskId(0), Op::Write, 0, 512));
    assert_eq!(bench.out.len(), 0);
    assert!(bench.input(Input::Attach(disk(1, 0))));
    assert_eq!(bench.out.len(), 32);
}

/// The disk on one device goes on as another id on a second device, which comes with its path while
/// the first one works.
#[test]
fn a_disk_moves_to_a_device_that_was_not_there_and_its_old_place_is_drained() {
    let mut bench = Bench::new(one_disk(SchedPolicy::Mclock, Allocation::default()));
    (0..70).for_each(|_| bench.submit(VdiskId(0), Op::Write, 0, 512));
    let device = Part::Device {
        id: DeviceId(1),
        kind: DeviceKind::Scsi,
        dsnro: None,
        policy: None,
        path_policy: PathPolicy::Fixed,
    };
    let (id, adapter) = (PathId(1), AdapterId(0));
    let access = PathAccess::Optimized;
    let path = Part::Path { id, device: DeviceId(1), adapter, access, up: true };
    for part in [device, path, disk(1, 1)] {
        assert!(bench.input(Input::Attach(part)), "{part:?}");
    }
    let drain = |object| Input::Detach { object, drain: true };
    assert!(bench.input(drain(Object::Vdisk(VdiskId(0)))));
    bench.submit(VdiskId(0), Op::Read, 0, 512);
    assert_eq!(bench.alive.len(), 70, "the old place takes nothing more");
    bench.submit(VdiskId(1), Op::Read, 0, 512);
    assert_eq!(bench.out.last().map(|sent| sent.path), Some(PathId(1)));
    let again = disk(0, 0);
    assert!(!bench.input(Input::Attach(again)), "it is being drained");
    while !bench.out.is_empty() {
        bench.answer(0, Status::Good);
    }
    let disks = counters_of(&bench.engine).vdisks;
    assert_eq!(
        (disks[0].io[1].commands, disks[0].rare.get().aborts, disks[1].io[0].commands),
        (70, 0, 1)
    );
    assert!(bench.input(drain(Object::Device(DeviceId(0)))));
    assert!(!bench.input(Input::Attach(again)), "its device is gone");
    assert!(!bench.input(drain(Object::Device(DeviceId(1)))), "a disk is on it");
}

#[test]
fn what_is_removed_ends_in_the_two_steps_of_every_abort_and_a_path_loses_what_it_has() {
    let mut bench = Bench::new(impatient());
    (0..40).for_each(|_| bench.submit(VdiskId(0), Op::Write, 0, 512));
    let remove = |object| Input::Detach { object, drain: false };
    assert!(bench.input(remove(Object::Path(PathId(0)))));
    assert_eq!(bench.asked(), bench.out.len());
    bench.answer(0, Status::Good);
    assert_eq!(bench.alive.len(), 39, "it was done before it was asked back");
    bench.let_go(bench.out[0].io);
    assert_eq!(bench.alive.len(), 39, "and this is sent again");
    assert_eq!(bench.out.last().map(|sent| sent.path), Some(PathId(1)));
    assert!(!bench.input(Input::Path { path: PathId(0), up: true }), "there is none");
    assert!(bench.input(remove(Object::Vm(VmId(0)))));
    assert_eq!((bench.asked(), bench.alive.len()), (32, 32));
    while !bench.out.is_empty() {
        bench.let_go(bench.out[0].io);
    }
    assert!(bench.alive.is_empty());
    assert_eq!(counters_of(&bench.engine).vdisks[0].rare.get().aborts, 39);
}
