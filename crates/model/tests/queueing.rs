//! Arrays and workloads together, in an event loop of a dozen lines, held against the laws of
//! queueing and the reference `array-and-control.md`.

use std::collections::BTreeMap;

use counters::{MICROSECOND, MILLISECOND, Op, SECOND, Sense, Status, Time};
use model::{
    Access, Answer, Array, ArrayConfig, Arrival, Aside, Burst, ByCommand, Carried, Ceiling,
    Command, Controllers, Cost, Front, Io, Mix, Others, Outage, Qos, Queues, ReadCache,
    ServerQueue, Service, SizeMix, Spread, Stuck, VolumeConfig, Workload, WorkloadConfig,
    WriteProtocol,
};

fn array(service: Service) -> ArrayConfig {
    ArrayConfig {
        service,
        round_trip_ns: 0,
        link_bytes_per_sec: None,
        write_protocol: WriteProtocol::TransferReady,
        queues: Queues::default(),
        capacity: None,
        front: Front::default(),
        volumes: vec![VolumeConfig::default(); 2],
    }
}

fn servers(servers: u32, mean_ns: u64, spread: Spread) -> Service {
    Service::Servers {
        servers,
        mean_ns,
        spread,
        queue: ServerQueue::Random,
        by: ByCommand::default(),
        write_cache: None,
    }
}

fn closed(threads: u32) -> Arrival {
    Arrival::Closed { threads, think_ns: 0, rate: None }
}

fn workload(arrival: Arrival, read_share: f64, bytes: u32) -> WorkloadConfig {
    WorkloadConfig {
        arrival,
        mix: Mix::ReadWrite {
            read_share,
            sizes: SizeMix(vec![(bytes, 1)]),
            others: Others::default(),
        },
        access: Access::Random,
        working_set: 1 << 30,
        burst: None,
        ios_max: None,
        tape: None,
    }
}

/// What came of a run: each I/O with its dispatch and its answer.
type Run = Vec<(Time, Io, Answer)>;

fn run(array: &ArrayConfig, workload: &WorkloadConfig, seconds: u64) -> Run {
    let (mut array, mut workload) = (Array::new(array, 1), Workload::new(workload, 2));
    let mut run = Run::new();
    let mut pending: BTreeMap<(Time, usize), Status> = BTreeMap::new();
    let mut now = Time::ZERO;
    workload.start(now);
    loop {
        let answer = pending.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
        now = now.max(answer.min(workload.next_wakeup()));
        if now >= Time(seconds * SECOND) {
            return run;
        }
        let due = if answer <= now {
            let ((_, index), status) = pending.pop_first().unwrap();
            array.done(status);
            workload.complete(now, run[index].1.tag)
        } else {
            workload.wake(now)
        };
        if let Some(io) = due {
            let command = Command {
                volume: 0,
                host: 0,
                path: 0,
                op: io.op,
                block: io.lba / 8,
                bytes: io.bytes,
            };
            let answer = array.dispatch(now, command);
            pending.insert((answer.at, run.len()), answer.status);
            run.push((now, io, answer));
        }
    }
}

fn mean_response(run: &Run) -> f64 {
    let sum: u64 = run.iter().map(|(at, _, answer)| answer.at.since(*at)).sum();
    sum as f64 / run.len() as f64
}

fn close(found: f64, expected: f64, tolerance: f64) -> bool {
    (found / expected - 1.0).abs() <= tolerance
}

#[test]
fn closed_networks_obey_their_exact_solution() {
    // Section 1: R(n) = S (1 + (n-1)/N), X(n) = n / R(n).
    for (n, count) in [(1, 100), (8, 1), (32, 100), (64, 40), (96, 100)] {
        let service = servers(count, 500 * MICROSECOND, Spread::Exponential);
        let run = run(&array(service), &workload(closed(n), 1.0, 4096), 40);
        let expected = 500e3 * (1.0 + f64::from(n - 1) / f64::from(count));
        assert!(close(mean_response(&run), expected, 0.01), "n={n} N={count}");
        let rate = run.len() as f64 / 40.0;
        assert!(close(rate, f64::from(n) * 1e9 / expected, 0.01), "n={n} N={count}: {rate}");
    }
}

#[test]
fn one_server_with_constant_service_is_a_queue_without_variance() {
    let service = servers(1, 100 * MICROSECOND, Spread::Constant);
    let run = run(&array(service), &workload(closed(10), 1.0, 4096), 1);
    assert_eq!(run.last().unwrap().2.array_ns, 1_000 * MICROSECOND);
}

#[test]
fn the_array_counts_what_flasharray_counts() {
    // Section 7.1 and 7.5: operation, bytes, DAVG and array latency in microseconds.
    let immediate = WriteProtocol::Immediate { unsolicited: 32 << 10, max_burst: 256 << 10 };
    for (protocol, op, bytes, device, reported) in [
        (WriteProtocol::TransferReady, Op::Read, 4096, 400, 300),
        (WriteProtocol::TransferReady, Op::Write, 4096, 500, 400),
        (immediate, Op::Read, 4096, 400, 300),
        (immediate, Op::Write, 4096, 400, 300),
        (immediate, Op::Write, 128 << 10, 500, 400),
    ] {
        let mut config = array(servers(1, 300 * MICROSECOND, Spread::Constant));
        config.round_trip_ns = 100 * MICROSECOND;
        config.write_protocol = protocol;
        let answer = Array::new(&config, 1)
            .dispatch(Time(7), Command { volume: 0, host: 0, path: 0, op, block: 0, bytes });
        assert_eq!(answer.at, Time(7 + device * MICROSECOND), "{protocol:?} {op:?} {bytes}");
        assert_eq!(answer.array_ns, reported * MICROSECOND, "{protocol:?} {op:?} {bytes}");
    }
}

#[test]
fn a_link_caps_each_direction_at_its_rate() {
    let mut config = array(servers(100, 100 * MICROSECOND, Spread::Exponential));
    config.link_bytes_per_sec = Some(1_000_000_000);
    for (read_share, expected) in [(1.0, 1e9), (0.0, 1e9), (0.5, 2e9)] {
        let run = run(&config, &workload(closed(64), read_share, 32 << 10), 2);
        let rate = run.len() as f64 * 32768.0 / 2.0;
        assert!(close(rate, expected, 0.03), "{read_share}: {rate}");
    }
}

#[test]
fn a_raid_pool_loses_its_penalty_on_writes() {
    // Section 7.2: front-end rate = spindles * rate / (reads + penalty * writes).
    for (read_share, expected) in [(1.0, 1_000.0), (0.5, 400.0), (0.0, 250.0)] {
        let config = array(Service::Spindles {
            spindles: 10,
            mean_ns: 10 * MILLISECOND,
            spread: Spread::Constant,
            write_penalty: 4,
            write_cache: None,
        });
        let run = run(&config, &workload(closed(512), read_share, 16 << 10), 60);
        let rate = run.len() as f64 / 60.0;
        assert!(close(rate, expected, 0.06), "{read_share}: {rate}");
    }
}

#[test]
fn a_curve_gives_the_latency_of_the_outstanding_count() {
    let points = vec![(1, 100_000), (33, 420_000)];
    let config = array(Service::Curve(points, Spread::Constant, ByCommand::default()));
    let run = run(&config, &workload(closed(17), 1.0, 4096), 1);
    assert_eq!(run.last().unwrap().2.array_ns, 260_000);
}

#[test]
fn quality_of_service_delays_completions_to_its_rate() {
    // Section 8.5: bronze at 512 KiB, 26.3 I/Os a second while burst credit lasts, then 13.2.
    let mut config = array(servers(100, 500 * MICROSECOND, Spread::Constant));
    config.volumes[0].qos = Some(Qos {
        min: 0,
        max: 1_000,
        burst: 2_000,
        burst_secs: 60,
        cost: Cost::SolidFire,
        bytes_per_sec: None,
    });
    let run = run(&config, &workload(closed(32), 0.0, 512 << 10), 120);
    let ended = |from, to| {
        let ended = run
            .iter()
            .filter(|(_, _, answer)| (Time(from * SECOND)..Time(to * SECOND)).contains(&answer.at));
        ended.count() as f64 / (to - from) as f64
    };
    assert!(close(ended(0, 60), 26.3, 0.01), "{}", ended(0, 60));
    assert!(close(ended(62, 118), 13.2, 0.01), "{}", ended(62, 118));
    assert!(run.is_sorted_by_key(|(_, _, answer)| answer.at), "first come, first served");
    let throttled = run.iter().rev().find(|(_, _, answer)| answer.at < Time(60 * SECOND)).unwrap();
    assert!(throttled.2.array_ns > SECOND, "injected latency is the array's");
}

#[test]
fn above_its_limit_the_array_is_full() {
    let mut config = array(servers(1, SECOND, Spread::Constant));
    config.round_trip_ns = 100;
    config.queues.port_limit = Some(2);
    let mut array = Array::new(&config, 1);
    let read = Command { volume: 0, host: 0, path: 0, op: Op::Read, block: 0, bytes: 4096 };
    let answers = [0, 1, 2].map(|at| array.dispatch(Time(at), read));
    assert_eq!(
        answers.map(|answer| answer.status),
        [Status::Good, Status::Good, Status::TaskSetFull]
    );
    assert!((102..202).contains(&answers[2].at.0), "the way back, and a round trip more at most");
    assert_eq!(answers[2].array_ns, 0);
    array.done(Status::TaskSetFull);
    assert_eq!(array.outstanding(), 2);
    array.done(Status::Good);
    assert_eq!(array.dispatch(Time(SECOND), read).status, Status::Good);
}

#[test]
fn a_volume_at_its_limit_is_full_for_all_hosts_until_an_answer_arrives() {
    let mut config = array(servers(1, 1_000, Spread::Constant));
    config.round_trip_ns = 100;
    (config.queues.lun_limit, config.queues.full) = (Some(2), Status::Busy);
    let mut array = Array::new(&config, 1);
    let mut status = |now, volume, host| {
        array
            .dispatch(
                Time(now),
                Command { volume, host, path: 0, op: Op::Read, block: 0, bytes: 512 },
            )
            .status
    };
    assert_eq!([0, 1].map(|host| status(0, 0, host)), [Status::Good; 2]);
    assert_eq!([0, 1].map(|host| status(0, 0, host)), [Status::Busy; 2]);
    assert_eq!(status(0, 1, 0), Status::Good, "another volume");
    assert_eq!(status(999, 0, 2), Status::Busy, "it arrives before the first answer goes out");
    assert_eq!(status(1_000, 0, 2), Status::Good, "the answer is on its way");
    assert_eq!(status(1_000, 0, 0), Status::Busy);
}

/// Two hosts with two paths each to two ports: a host's second path leads to the port of the other's first.
#[test]
fn a_port_takes_what_comes_over_all_paths_that_lead_to_it() {
    let mut config = array(servers(1, 1_000, Spread::Constant));
    (config.queues.ports, config.queues.port_limit) = (2, Some(1));
    let mut array = Array::new(&config, 1);
    let mut status = |host, path| {
        let command = Command { volume: 0, host, path, op: Op::Read, block: 0, bytes: 512 };
        array.dispatch(Time(0), command).status
    };
    assert_eq!(status(0, 0), Status::Good);
    assert_eq!(status(1, 1), Status::TaskSetFull);
    assert_eq!(status(1, 0), Status::Good);
    assert_eq!(status(0, 1), Status::TaskSetFull);
}

/// An array whose commands take 100 ns, and those that another controller hands on 30 more, and what it
/// answers to a read of a host over a path of its own: the first host's first path leads to the first one.
fn two_controllers(
    change: impl Fn(&mut Controllers),
) -> impl FnMut(u64, u32, u32) -> (u64, Status) {
    let mut config = array(servers(65_536, 100, Spread::Constant));
    let mut both = Controllers {
        iops: None,
        extra_ns: 30,
        takeover_ns: 5_000,
        dead_after_ns: 40_000,
        active_passive: false,
        outages: [Outage::NONE; 2],
    };
    change(&mut both);
    (config.queues.ports, config.queues.controllers) = (2, Some(both));
    config.volumes[1].owner = 1;
    let mut array = Array::new(&config, 1);
    move |now, path, volume| {
        let read = Command { volume, host: 0, path, op: Op::Read, block: 0, bytes: 512 };
        let answer = array.dispatch(Time(now), read);
        (answer.at.0, answer.status)
    }
}

#[test]
fn a_volume_is_its_controller_s_until_that_fails_and_when_it_is_back() {
    let mut read = two_controllers(|both| {
        both.outages[0] = Outage { from: Time(10_000), until: Time(200_000) };
    });
    assert_eq!(read(0, 0, 0), (100, Status::Good));
    assert_eq!(read(0, 1, 0), (130, Status::Good), "handed on");
    assert_eq!(read(0, 1, 1), (100, Status::Good), "the other one's");
    assert_eq!(read(10_000, 0, 0), (50_000, Status::PathLost), "when hosts know");
    assert_eq!(read(49_999, 0, 1), (50_000, Status::PathLost), "whoever owns the volume");
    assert_eq!(read(60_000, 0, 0), (60_000 + SECOND, Status::PathLost), "a host that does not");
    let mut read = two_controllers(|both| {
        both.outages[0] = Outage { from: Time(10_000), until: Time(200_000) };
    });
    assert_eq!(read(11_000, 1, 0), (15_100, Status::Good), "waits until it is taken over");
    assert_eq!(read(11_000, 1, 1), (11_100, Status::Good));
    assert_eq!(read(60_000, 1, 0), (60_100, Status::Good), "its own now");
    assert_eq!(read(201_000, 0, 0), (205_100, Status::Good), "waits until it is given back");
    assert_eq!(read(300_000, 1, 0), (300_130, Status::Good));
}

#[test]
fn a_controller_that_failed_too_takes_over_when_it_is_back() {
    let mut read = two_controllers(|both| {
        both.outages[0] = Outage { from: Time(10_000), until: Time::NEVER };
        both.outages[1] = Outage { from: Time(12_000), until: Time(100_000) };
    });
    assert_eq!(read(11_000, 1, 0), (15_100, Status::Good));
    assert_eq!(read(101_000, 1, 0), (105_100, Status::Good));
    assert_eq!(read(101_000, 1, 1), (105_100, Status::Good), "its own too");
}

#[test]
fn without_alua_a_host_that_follows_hears_where_its_volume_is() {
    let mut both = Controllers {
        iops: None,
        extra_ns: 0,
        takeover_ns: 5_000,
        dead_after_ns: 0,
        active_passive: true,
        outages: [Outage::NONE; 2],
    };
    both.outages[1] = Outage { from: Time(50_000), until: Time::NEVER };
    let mut config = array(servers(65_536, 100, Spread::Constant));
    (config.queues.ports, config.queues.controllers) = (2, Some(both));
    let mut array = Array::new(&config, 1);
    let mut read = |now, path, follows| {
        let read = Command { volume: 0, host: 0, path, op: Op::Read, block: 0, bytes: 512 };
        let carried = Carried { follows, ..Carried::default() };
        let answer = array.dispatch_carried(Time(now), read, &carried);
        (answer.at.0, answer.status)
    };
    let standby = Status::CheckCondition(Sense::STANDBY);
    assert_eq!(read(0, 1, true), (0, standby));
    assert_eq!(read(0, 0, true), (100, Status::Good));
    assert_eq!(read(1_000, 1, false), (6_100, Status::Good), "it is brought there");
    assert_eq!(read(1_000, 0, true), (1_000, standby), "and goes there");
    assert_eq!(read(2_000, 1, true), (6_100, Status::Good));
    assert_eq!(read(3_000, 0, false), (11_100, Status::Good), "and back, once it has come");
    assert_eq!(read(4_000, 1, true), (4_000, standby));
    assert_eq!(read(60_000, 1, true).1, Status::PathLost, "who is out of order says nothing");
}

#[test]
fn a_controller_does_so_much_for_the_volumes_that_it_has() {
    let mut read = two_controllers(|both| both.iops = Some(1_000_000));
    assert_eq!([read(0, 0, 0).0, read(0, 0, 0).0], [1_100, 2_100], "1 us each");
    assert_eq!(read(0, 1, 0).0, 3_130, "the work is the owner's");
    assert_eq!(read(0, 1, 1).0, 1_100);
}

#[test]
fn without_alua_a_volume_goes_over_with_each_command_to_the_other_controller() {
    let mut read = two_controllers(|both| both.active_passive = true);
    assert_eq!([read(0, 0, 0).0, read(0, 1, 0).0], [100, 5_100]);
    assert_eq!([read(1_000, 1, 0).0, read(2_000, 0, 0).0], [5_100, 10_100], "one after the other");
    assert_eq!(read(3_000, 1, 0).0, 5_100, "before it leaves");
    assert_eq!(read(6_000, 1, 0).0, 15_100, "when it comes back");
    assert_eq!(read(7_000, 0, 0).0, 10_100);
    assert_eq!(read(8_000, 1, 0).0, 15_100, "with all that waits there");
    assert_eq!(read(20_000, 1, 0).0, 20_100);
}

#[test]
fn a_reservation_shuts_other_hosts_out_of_its_volume() {
    let mut config = array(servers(1, 100, Spread::Constant));
    config.volumes[0].reserve_hold_ns = 1_000;
    let mut array = Array::new(&config, 1);
    let reserve = Command { volume: 0, host: 1, path: 0, op: Op::Reserve, block: 0, bytes: 512 };
    let reserved = array.dispatch(Time(0), reserve);
    assert_eq!((reserved.status, reserved.at), (Status::Good, Time(100)), "the hold is the LUN's");
    let mut status = |now, volume, host, op| {
        array
            .dispatch(Time(now), Command { volume, host, path: 0, op, block: 0, bytes: 512 })
            .status
    };
    for op in [Op::Read, Op::Write, Op::Reserve, Op::Ats] {
        assert_eq!(status(500, 0, 2, op), Status::ReservationConflict, "{op:?}");
    }
    assert_eq!(status(500, 0, 1, Op::Read), Status::Good, "its own host");
    assert_eq!(status(500, 1, 2, Op::Read), Status::Good, "another volume");
    assert_eq!(status(1_099, 0, 2, Op::Read), Status::ReservationConflict, "the last moment");
    assert_eq!(status(1_100, 0, 2, Op::Read), Status::Good, "released");
    assert_eq!(status(1_150, 0, 1, Op::Reserve), Status::Good);
    assert_eq!(status(1_160, 0, 2, Op::Release), Status::ReservationConflict, "not its own");
    assert_eq!(status(1_170, 0, 1, Op::Release), Status::Good);
    assert_eq!(status(1_171, 0, 2, Op::Read), Status::Good, "given back before its time");
    assert_eq!(status(1_200, 0, 2, Op::Ats), Status::Good);
    assert_eq!(status(1_201, 0, 1, Op::Ats), Status::Good, "an ATS locks no host out");
}

#[test]
fn a_reservation_that_sticks_shuts_out_all_but_its_host_until_it_is_over() {
    let mut config = array(servers(1, 100, Spread::Constant));
    config.volumes[0].stuck = Some(Stuck { host: 1, from: Time(1_000), until: Time(9_000) });
    let mut array = Array::new(&config, 1);
    let mut status = |now, volume, host, op| {
        array
            .dispatch(Time(now), Command { volume, host, path: 0, op, block: 0, bytes: 512 })
            .status
    };
    assert_eq!(status(999, 0, 2, Op::Read), Status::Good, "not yet");
    for op in [Op::Read, Op::Write, Op::Reserve, Op::Ats, Op::Release] {
        assert_eq!(status(1_000, 0, 2, op), Status::ReservationConflict, "{op:?}");
    }
    assert_eq!(status(2_000, 0, 1, Op::Release), Status::Good, "it is not released");
    assert_eq!(status(2_000, 1, 2, Op::Read), Status::Good, "another volume");
    assert_eq!(status(8_999, 0, 2, Op::Read), Status::ReservationConflict, "the last moment");
    assert_eq!(status(9_000, 0, 2, Op::Read), Status::Good, "over");
}

#[test]
fn threads_with_a_target_rate_never_exceed_it() {
    // S0: 96 threads for 130,000 I/Os a second.
    let service = || servers(1_000, 500 * MICROSECOND, Spread::Exponential);
    let rate = Some(Ceiling { per_sec: 130_000.0, makes_up: false });
    let arrival = Arrival::Closed { threads: 96, think_ns: 0, rate };
    let fast = run(&array(service()), &workload(arrival.clone(), 1.0, 4096), 2);
    assert!(fast.len() <= 260_001 && fast.len() > 259_000, "{}", fast.len());
    let gaps = fast.windows(2).map(|pair| pair[1].0.since(pair[0].0));
    assert!(gaps.min().unwrap() >= 7_692, "no two closer than the rate allows");
    let slow = array(servers(32, 500 * MICROSECOND, Spread::Constant));
    let slow = run(&slow, &workload(arrival, 1.0, 4096), 2);
    let unlimited = array(servers(32, 500 * MICROSECOND, Spread::Constant));
    let unlimited = run(&unlimited, &workload(closed(96), 1.0, 4096), 2);
    assert!(close(slow.len() as f64, unlimited.len() as f64, 0.01), "a rate out of reach");
}

#[test]
fn ioping_is_one_thread_that_thinks() {
    let arrival = Arrival::Closed { threads: 1, think_ns: SECOND, rate: None };
    let config = array(servers(1, MILLISECOND, Spread::Constant));
    let run = run(&config, &workload(arrival, 1.0, 4096), 10);
    let starts: Vec<u64> = run.iter().map(|(at, ..)| at.0).collect();
    assert_eq!(starts, (0..10).map(|i| i * (SECOND + MILLISECOND)).collect::<Vec<_>>());
}

#[test]
fn open_arrivals_have_their_rate_and_their_spread() {
    let service = || servers(1 << 16, 10 * MICROSECOND, Spread::Constant);
    for (poisson, variation2) in [(true, 1.0), (false, 0.0)] {
        let arrival = Arrival::Open {
            rate: 100_000.0,
            poisson,
            outstanding_max: 4_096,
            waiting_max: u32::MAX,
        };
        let run = run(&array(service()), &workload(arrival, 1.0, 4096), 10);
        assert!(close(run.len() as f64, 1e6, 0.005), "{}", run.len());
        let gaps: Vec<f64> =
            run.windows(2).map(|pair| pair[1].0.since(pair[0].0) as f64 / 1e4).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let squares = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        assert!((squares / (mean * mean) - 1.0 - variation2).abs() < 0.01, "{squares}");
    }
}

#[test]
fn an_open_queue_obeys_pollaczek_and_khinchine() {
    // One server at 70 %: R = S (1 + rho (1 + cv^2) / (2 (1 - rho))).
    for (spread, cv2) in
        [(Spread::Constant, 0.0), (Spread::Exponential, 1.0), (Spread::Lognormal(2.0), 4.0)]
    {
        let arrival = Arrival::Open {
            rate: 7_000.0,
            poisson: true,
            outstanding_max: 1 << 16,
            waiting_max: u32::MAX,
        };
        let config = array(servers(1, 100 * MICROSECOND, spread));
        let run = run(&config, &workload(arrival, 1.0, 4096), 300);
        let expected = 1e5 * (1.0 + 0.7 * (1.0 + cv2) / 0.6);
        assert!(close(mean_response(&run), expected, 0.03), "{spread:?} {}", mean_response(&run));
    }
}

#[test]
fn arrivals_above_the_outstanding_limit_wait_in_the_application() {
    let arrival =
        Arrival::Open { rate: 1_000.0, poisson: false, outstanding_max: 2, waiting_max: u32::MAX };
    let mut workload = Workload::new(&workload(arrival, 1.0, 4096), 1);
    workload.start(Time::ZERO);
    let issued: Vec<_> =
        core::iter::from_fn(|| workload.wake(Time(10 * MILLISECOND))).map(|io| io.tag).collect();
    assert_eq!(issued, [0, 1]);
    assert_eq!(workload.aside().waiting.now(), 8);
    // The third arrival came at 3 ms.
    let next = workload.complete(Time(11 * MILLISECOND), 1).map(|io| (io.tag, io.waited_ns));
    assert_eq!(next, Some((1, 8 * MILLISECOND)));
    assert_eq!(workload.aside().waiting.now(), 7);
    workload.wake(Time(2_000 * SECOND));
    let lost = 2_000_000 - 1_000_000 - 3;
    assert_eq!((workload.aside().waiting.now(), workload.aside().lost), (1_000_000, lost));
    workload.stop(Time(2_000 * SECOND));
    assert_eq!((workload.aside().waiting.now(), workload.aside().lost), (0, lost + 1_000_000));
    assert_eq!(workload.complete(Time(2_000 * SECOND), 1), None);
    assert_eq!(workload.next_wakeup(), Time::NEVER);
}

#[test]
fn what_waits_in_the_application_can_be_counted_elsewhere_from_a_moment_on() {
    let arrival =
        Arrival::Open { rate: 1_000.0, poisson: false, outstanding_max: 1, waiting_max: u32::MAX };
    let mut workload = Workload::new(&workload(arrival, 1.0, 4096), 1);
    workload.start(Time::ZERO);
    while workload.wake(Time(4 * MILLISECOND)).is_some() {}
    // 1, 2 and 3 ms after their arrivals at 2, 3 and 4 ms; then all three wait on.
    let taken = workload.take_aside(Time(5 * MILLISECOND));
    let mean = |aside: &Aside, from, to| {
        aside.waiting.mean_since(
            &Default::default(),
            Time(from * MILLISECOND),
            Time(to * MILLISECOND),
        )
    };
    assert!((mean(&taken, 0, 6) - 1.0).abs() < 1e-9, "{taken:?}");
    assert_eq!(taken.waiting.now(), 0);
    assert_eq!(workload.aside().waiting.now(), 3);
    let waiting = workload.aside().waiting;
    let after = waiting.mean_since(&waiting, Time(5 * MILLISECOND), Time(9 * MILLISECOND));
    assert!((after - 3.0).abs() < 1e-9);
}

#[test]
fn bursts_pause_every_kind_of_arrival() {
    let burst = Some(Burst { on_ns: 10 * MILLISECOND, off_ns: 30 * MILLISECOND });
    let rate = Some(Ceiling { per_sec: 20_000.0, makes_up: false });
    for arrival in [
        closed(8),
        Arrival::Closed { threads: 8, think_ns: 50 * MICROSECOND, rate: None },
        Arrival::Closed { threads: 8, think_ns: 0, rate },
        Arrival::Open { rate: 20_000.0, poisson: true, outstanding_max: 64, waiting_max: u32::MAX },
    ] {
        let config = array(servers(8, 100 * MICROSECOND, Spread::Constant));
        let mut workload = workload(arrival.clone(), 1.0, 4096);
        let whole = run(&config, &workload, 2).len() as f64;
        workload.burst = burst;
        let run = run(&config, &workload, 2);
        assert!(run.iter().all(|(at, ..)| at.0 % (40 * MILLISECOND) < 10 * MILLISECOND));
        assert!(close(run.len() as f64, whole / 4.0, 0.05), "{arrival:?}: {} {whole}", run.len());
    }
}

#[test]
fn a_workload_that_is_stopped_and_started_has_as_many_threads_as_before() {
    let mut workload = Workload::new(&workload(closed(70), 1.0, 4096), 1);
    assert_eq!(workload.wake(Time::ZERO), None, "not started");
    workload.start(Time::ZERO);
    assert_eq!(workload.next_wakeup(), Time::ZERO);
    let first = core::iter::from_fn(|| workload.wake(Time::ZERO)).count();
    assert_eq!((first, workload.next_wakeup()), (70, Time::NEVER));
    workload.stop(Time(1));
    assert_eq!(workload.complete(Time(1), 5), None);
    assert_eq!(workload.wake(Time(2)), None);
    workload.start(Time(3));
    let again: Vec<_> = core::iter::from_fn(|| workload.wake(Time(3))).map(|io| io.tag).collect();
    assert_eq!(again, [5]);
}

#[test]
fn sequential_access_goes_through_the_working_set_and_begins_again() {
    let mut config = workload(closed(1), 1.0, 4096);
    config.access = Access::Sequential;
    config.working_set = 3 * 4096 + 512;
    let mut workload = Workload::new(&config, 1);
    workload.start(Time::ZERO);
    let first = workload.wake(Time::ZERO).unwrap();
    let next = (0..4).map(|_| workload.complete(Time(1), 0).unwrap().lba);
    assert_eq!((first.lba, next.collect::<Vec<_>>()), (0, vec![8, 16, 0, 8]));
}

#[test]
fn partly_random_access_goes_on_where_the_last_io_ended() {
    let mut config = workload(closed(1), 1.0, 4096);
    config.access = Access::Mixed(0.3);
    let mut workload = Workload::new(&config, 1);
    workload.start(Time::ZERO);
    let places: Vec<u64> =
        (0..100_000).filter_map(|_| workload.complete(Time(0), 0)).map(|io| io.lba).collect();
    let follows = places.windows(2).filter(|pair| pair[1] == pair[0] + 8).count();
    assert!(close(follows as f64 / places.len() as f64, 0.7, 0.01));
    assert_eq!(
        [0.0, 0.3, 1.0].map(Access::of),
        [Access::Sequential, Access::Mixed(0.3), Access::Random]
    );
}

#[test]
fn a_workload_is_over_after_so_many_ios_and_begins_anew_when_it_is_started() {
    for arrival in
        [closed(4), Arrival::Open { rate: 1e6, poisson: true, outstanding_max: 2, waiting_max: 9 }]
    {
        let config = WorkloadConfig { ios_max: Some(6), ..workload(arrival, 1.0, 4096) };
        let mut workload = Workload::new(&config, 1);
        for run in 0..2_u64 {
            let now = Time(run * SECOND);
            workload.start(now);
            let mut under_way: Vec<u32> = Vec::new();
            let mut issued = 0;
            while !workload.is_over() || !under_way.is_empty() {
                let later = now + MILLISECOND;
                under_way.extend(core::iter::from_fn(|| workload.wake(later)).map(|io| io.tag));
                issued = issued.max(under_way.len());
                let tag = under_way.remove(0);
                under_way.extend(workload.complete(later, tag).map(|io| io.tag));
            }
            assert_eq!(workload.next_wakeup(), Time::NEVER);
            workload.stop(now + MILLISECOND);
            assert!(issued <= 4);
        }
    }
}

#[test]
fn mixes_have_their_shares() {
    let mut config = workload(closed(1), 0.7, 4096);
    let sizes = SizeMix(vec![(4096, 3), (65536, 1)]);
    config.mix = Mix::ReadWrite { read_share: 0.7, sizes, others: Others::default() };
    config.working_set = 1 << 20;
    let mut workload = Workload::new(&config, 1);
    workload.start(Time::ZERO);
    let ios: Vec<Io> = (0..100_000).filter_map(|_| workload.complete(Time(0), 0)).collect();
    let share = |chosen: fn(&Io) -> bool| {
        ios.iter().filter(|io| chosen(io)).count() as f64 / ios.len() as f64
    };
    assert!(close(share(|io| io.op == Op::Read), 0.7, 0.01));
    assert!(close(share(|io| io.bytes == 4096), 0.75, 0.01));
    assert!(close(share(|io| io.lba < 1_024), 0.5, 0.02));
    assert!(ios.iter().all(|io| io.lba * 512 + u64::from(io.bytes) <= 1 << 20));
    for (mix, op) in [(Mix::Reserve, Op::Reserve), (Mix::Ats, Op::Ats)] {
        let mut workload = Workload::new(&WorkloadConfig { mix, ..config.clone() }, 1);
        workload.start(Time::ZERO);
        assert_eq!(workload.wake(Time::ZERO).map(|io| (io.op, io.bytes)), Some((op, 512)));
    }
}

#[test]
fn other_operations_have_their_shares_and_a_flush_follows_each_so_many_writes() {
    let mut config = workload(closed(1), 0.5, 4096);
    let shares = vec![(Op::Discard, 0.1), (Op::Ats, 0.2), (Op::WriteFua, 0.07)];
    let others = Others { shares, flush_after: Some(3) };
    config.mix = Mix::ReadWrite { read_share: 0.5, sizes: SizeMix(vec![(4096, 1)]), others };
    let mut workload = Workload::new(&config, 1);
    workload.start(Time::ZERO);
    let ios: Vec<Io> = (0..100_000).filter_map(|_| workload.complete(Time(0), 0)).collect();
    let (flushes, drawn): (Vec<Io>, Vec<Io>) = ios.iter().partition(|io| io.op == Op::Flush);
    let share = |op| drawn.iter().filter(|io| io.op == op).count() as f64 / drawn.len() as f64;
    for (op, part) in [(Op::Discard, 0.1), (Op::Ats, 0.2), (Op::WriteFua, 0.07)] {
        assert!(close(share(op), part, 0.01), "{op:?}: {}", share(op));
    }
    assert!(close(share(Op::Read), 0.63 / 2.0, 0.01) && close(share(Op::Write), 0.63 / 2.0, 0.01));
    assert!(flushes.iter().all(|io| (io.lba, io.bytes) == (0, 0)));
    assert!(drawn.iter().all(|io| io.bytes == if io.op == Op::Ats { 512 } else { 4096 }));
    let is_write = |io: &&Io| matches!(io.op, Op::Write | Op::WriteFua);
    let between =
        ios.split(|io| io.op == Op::Flush).map(|some| some.iter().filter(is_write).count());
    let between: Vec<usize> = between.collect();
    assert!(between[..between.len() - 1].iter().all(|writes| *writes == 3));
}

#[test]
fn one_seed_gives_one_result() {
    let config = array(servers(20, 500 * MICROSECOND, Spread::Lognormal(1.5)));
    let arrival =
        Arrival::Open { rate: 20_000.0, poisson: true, outstanding_max: 64, waiting_max: u32::MAX };
    let workload = workload(arrival, 0.5, 8192);
    assert!(run(&config, &workload, 1) == run(&config, &workload, 1));
}

/// An open array of 8 servers at 70 %, of 1 ms each: the response times of its commands in microseconds, ascending.
fn open_responses(queue: ServerQueue, front: Front) -> Vec<u64> {
    let spread = Spread::Exponential;
    let (by, write_cache) = (ByCommand::default(), None);
    let mut config = array(Service::Servers {
        servers: 8,
        mean_ns: MILLISECOND,
        spread,
        queue,
        by,
        write_cache,
    });
    config.front = front;
    let arrival = Arrival::Open {
        rate: 5_600.0,
        poisson: true,
        outstanding_max: 1 << 16,
        waiting_max: u32::MAX,
    };
    let run = run(&config, &workload(arrival, 1.0, 4096), 200);
    let mut all: Vec<_> =
        run.iter().map(|(at, _, answer)| answer.at.since(*at) / MICROSECOND).collect();
    all.sort_unstable();
    all
}

/// M/M/1 with exp(-t (1 - 0.7) / S) above t; M/M/8, whose commands wait with Erlang's 0.2706 and then 1 / 2.4 S in
/// the mean, so that 5 % take more than 3.171 S; and what a constant and a cache make of either.
#[test]
fn one_queue_before_all_servers_has_shorter_tails_than_one_before_each() {
    let plain = Front::default();
    let constant = Front { overhead_ns: 500 * MICROSECOND, ..plain };
    let cached = Front { reads: Some(ReadCache { hits: 0.6, hit_ns: 200 * MICROSECOND }), ..plain };
    for (queue, front, mean, p95) in [
        (ServerQueue::Random, plain, 3_333.0, 9_986.0),
        (ServerQueue::Shared, plain, 1_112.8, 3_170.5),
        (ServerQueue::Shared, constant, 1_612.8, 3_670.5),
        // Misses come 2,240 a second: 1 / (1 - 0.28) ms each, of which 1 in 8 takes more.
        (ServerQueue::Random, cached, 675.6, 2_888.0),
    ] {
        let all = open_responses(queue, front);
        let found = all.iter().sum::<u64>() as f64 / all.len() as f64;
        assert!(close(found, mean, 0.02), "{queue:?} {front:?}: {found}");
        let found = all[all.len() * 95 / 100] as f64;
        assert!(close(found, p95, 0.02), "{queue:?} {front:?}: P95 {found}");
    }
}

#[test]
fn no_server_is_idle_while_a_command_waits_in_the_one_queue() {
    let queue = ServerQueue::Shared;
    for spread in [Spread::Constant, Spread::Exponential] {
        let service = Service::Servers {
            servers: 8,
            mean_ns: 500 * MICROSECOND,
            spread,
            queue,
            by: ByCommand::default(),
            write_cache: None,
        };
        let run = run(&array(service), &workload(closed(12), 1.0, 4096), 20);
        assert!(close(run.len() as f64 / 20.0, 16_000.0, 0.01), "{spread:?}: {}", run.len());
    }
}

/// A policy of bytes alone: 100 MiB a second are 1,600 of 64 KiB, and who is alone does not wait.
#[test]
fn a_limit_of_bytes_holds_beside_that_of_commands() {
    let mut config = array(servers(100, 500 * MICROSECOND, Spread::Constant));
    for (max, threads, expected) in
        [(1 << 20, 8, 1_600.0), (1_000, 8, 1_000.0), (1_000, 1, 1_000.0)]
    {
        let bytes_per_sec = Some(100 << 20);
        let cost = Cost::Flat;
        config.volumes[0].qos =
            Some(Qos { min: 0, max, burst: max, burst_secs: 0, cost, bytes_per_sec });
        let run = run(&config, &workload(closed(threads), 0.5, 64 << 10), 10);
        assert!(close(run.len() as f64 / 10.0, expected, 0.01), "{max}: {}", run.len());
        assert_eq!(run[0].2.at.since(run[0].0), 500 * MICROSECOND);
    }
}

/// 100 us and 5 for each KiB of a read, 400 and 5 of a write; one in the middle of both by one queue before two.
#[test]
fn what_a_server_takes_goes_by_the_command() {
    let by =
        ByCommand { write_ns: Some(400 * MICROSECOND), kib_ns: 5 * MICROSECOND, free_bytes: 0 };
    for (queue, read_share, kib, expected) in [
        (ServerQueue::Random, 1.0, 16, 1e6 / 180.0),
        (ServerQueue::Random, 0.0, 16, 1e6 / 480.0),
        (ServerQueue::Random, 0.0, 128, 1e6 / 1_040.0),
        (ServerQueue::Shared, 0.5, 16, 2e6 / 330.0),
    ] {
        let count = if queue == ServerQueue::Shared { 2 } else { 1 };
        let (mean_ns, spread) = (100 * MICROSECOND, Spread::Constant);
        let config = array(Service::Servers {
            servers: count,
            mean_ns,
            spread,
            queue,
            by,
            write_cache: None,
        });
        let run = run(&config, &workload(closed(4), read_share, kib << 10), 20);
        assert!(close(run.len() as f64 / 20.0, expected, 0.02), "{kib} KiB: {}", run.len());
    }
}

/// A lognormal of variation 0.27 has its P99 at exp(2.326 s - s s / 2) of its mean, s s = ln(1 + 0.27 x 0.27).
#[test]
fn a_curve_with_a_spread_has_its_mean_and_a_tail() {
    let points = vec![(1, 76_000), (33, 420_000)];
    let config = array(Service::Curve(points, Spread::Lognormal(0.27), ByCommand::default()));
    let run = run(&config, &workload(closed(1), 1.0, 4096), 20);
    let mut all: Vec<_> = run.iter().map(|(_, _, answer)| answer.array_ns).collect();
    all.sort_unstable();
    let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
    assert!(close(mean, 76_000.0, 0.01), "{mean}");
    assert!(close(all[all.len() * 99 / 100] as f64, 1.79 * 76_000.0, 0.02));
}
