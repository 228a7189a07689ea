//! What holds for every array and workload, extremes included.

use counters::{Op, Status, Time};
use model::{
    Access, Array, ArrayConfig, Arrival, Background, Burst, ByCommand, Capacity, Ceiling, Command,
    Controllers, Cost, Disks, Front, Mix, Others, Outage, Percentiles, Qos, Queues, ReadCache,
    ServerQueue, Service, SizeMix, Spread, Tier, VolumeConfig, Workload, WorkloadConfig,
    WriteCache, WriteProtocol,
};
use proptest::{collection::vec, prelude::*};

/// Small, ordinary and extreme numbers alike.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..4_u64, 0..10_000_000_000_u64, Just(u64::MAX), any::<u64>()]
}

fn short_number() -> impl Strategy<Value = u32> {
    prop_oneof![0..4_u32, 0..100_000_u32, Just(u32::MAX), any::<u32>()]
}

fn spread() -> impl Strategy<Value = Spread> {
    prop_oneof![
        Just(Spread::Constant),
        Just(Spread::Exponential),
        any::<f64>().prop_map(Spread::Lognormal),
        (0.5..1.0_f64, 1.0..3.0_f64).prop_map(|(half, last)| {
            let points = Percentiles::new(&[(0.5, half), (0.01, last)]);
            points.map_or(Spread::Constant, Spread::Percentiles)
        })
    ]
}

fn service() -> impl Strategy<Value = Service> {
    prop_oneof![
        (short_number(), number(), spread(), server_queue(), by_command(), write_cache()).prop_map(
            |(servers, mean_ns, spread, queue, by, write_cache)| {
                Service::Servers { servers, mean_ns, spread, queue, by, write_cache }
            }
        ),
        (short_number(), number(), spread(), short_number(), write_cache()).prop_map(
            |(spindles, mean_ns, spread, write_penalty, write_cache)| {
                Service::Spindles { spindles, mean_ns, spread, write_penalty, write_cache }
            }
        ),
        disks().prop_map(Service::Disks),
        (vec((short_number(), number()), 0..4), spread(), by_command())
            .prop_map(|(points, spread, by)| Service::Curve(points, spread, by)),
    ]
}

fn by_command() -> impl Strategy<Value = ByCommand> {
    let numbers = (proptest::option::of(number()), prop_oneof![Just(0), number()], short_number());
    numbers.prop_map(|(write_ns, kib_ns, free_bytes)| ByCommand { write_ns, kib_ns, free_bytes })
}

fn server_queue() -> impl Strategy<Value = ServerQueue> {
    prop_oneof![Just(ServerQueue::Random), Just(ServerQueue::Shared)]
}

fn write_cache() -> impl Strategy<Value = Option<WriteCache>> {
    let cache = (number(), proptest::option::of(number()));
    proptest::option::of(cache.prop_map(|(ack_ns, bytes)| WriteCache { ack_ns, bytes }))
}

prop_compose! {
    fn disks()(
        (disks, data_disks, elevator, write_penalty) in
            (short_number(), short_number(), short_number(), short_number()),
        (bytes, turn_ns, seek_ns, bytes_per_sec, stripe_bytes) in
            (number(), number(), number(), number(), number()),
        write_cache in write_cache(),
    ) -> Disks {
        Disks {
            disks, data_disks, bytes, turn_ns, seek_ns, bytes_per_sec, stripe_bytes, elevator, write_penalty,
            write_cache,
        }
    }
}

fn write_protocol() -> impl Strategy<Value = WriteProtocol> {
    prop_oneof![
        Just(WriteProtocol::TransferReady),
        (short_number(), short_number()).prop_map(|(unsolicited, max_burst)| {
            WriteProtocol::Immediate { unsolicited, max_burst }
        }),
    ]
}

fn qos() -> impl Strategy<Value = Qos> {
    let cost = prop_oneof![Just(Cost::Flat), Just(Cost::SolidFire)];
    // Longer stretches of credit are walked second by second.
    let bytes = proptest::option::of(number());
    (short_number(), short_number(), short_number(), 0..3_600_u32, cost, bytes).prop_map(
        |(min, max, burst, burst_secs, cost, bytes_per_sec)| Qos {
            min,
            max,
            burst,
            burst_secs,
            cost,
            bytes_per_sec,
        },
    )
}

prop_compose! {
    fn controllers()(
        iops in proptest::option::of(short_number()),
        (extra_ns, takeover_ns, dead_after_ns) in (number(), number(), number()),
        active_passive in proptest::bool::ANY,
        times in (number(), number(), number(), number()),
    ) -> Controllers {
        let outage = |from, until| Outage { from: Time(from), until: Time(until) };
        let outages = [outage(times.0, times.1), outage(times.2, times.3)];
        Controllers { iops, extra_ns, takeover_ns, dead_after_ns, active_passive, outages }
    }
}

prop_compose! {
    fn queues()(
        ports in 0..4_u32,
        port_limit in proptest::option::of(short_number()),
        port_bytes_per_sec in proptest::option::of(number()),
        lun_limit in proptest::option::of(short_number()),
        is_busy in proptest::bool::ANY,
        controllers in proptest::option::of(controllers()),
    ) -> Queues {
        let full = if is_busy { Status::Busy } else { Status::TaskSetFull };
        Queues { ports, port_limit, port_bytes_per_sec, lun_limit, full, controllers }
    }
}

prop_compose! {
    fn array()(
        service in service(),
        round_trip_ns in number(),
        link_bytes_per_sec in proptest::option::of(number()),
        write_protocol in write_protocol(),
        queues in queues(),
        (overhead_ns, reads) in (number(), proptest::option::of((any::<f64>(), number()))),
        tier in proptest::option::of((any::<f64>(), short_number(), number())),
        background in proptest::option::of((0.0..1e4_f64, any::<f64>(), any::<u32>(), number(), 0_u64..1 << 24)),
        copier_bytes_per_sec in proptest::option::of(number()),
        capacity in proptest::option::of((short_number(), any::<f64>())),
        volumes in vec((proptest::option::of(qos()), number()), 1..3),
    ) -> ArrayConfig {
        let volumes = volumes.into_iter();
        let volumes =
            volumes.map(|(qos, reserve_hold_ns)| VolumeConfig { qos, reserve_hold_ns, stuck: None, owner: 1 }).collect();
        let capacity = capacity.map(|(units, burst_share)| Capacity { units, burst_share });
        let reads = reads.map(|(hits, hit_ns)| ReadCache { hits, hit_ns });
        let tier = tier.map(|(share, servers, mean_ns)| {
            Tier { share, servers, mean_ns, spread: Spread::Exponential, queue: ServerQueue::Random }
        });
        let background = background.map(|(rate, read_share, bytes, from, length)| {
            // Each command of its own is a step of the model: few, however late it is.
            let until = Time(from.saturating_add(length));
            Background { rate, outstanding: 4, read_share, bytes, from: Time(from), until }
        });
        let front = Front { overhead_ns, reads, tier, background, copier_bytes_per_sec };
        ArrayConfig {
            front, service, round_trip_ns, link_bytes_per_sec, write_protocol, queues, capacity, volumes,
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    prop::sample::select(&Op::ALL[..])
}

/// Steps of time with the commands that are dispatched after them.
fn commands() -> impl Strategy<Value = Vec<(u64, Command)>> {
    let command = (0..2_u32, 0..3_u32, 0..3_u32, op(), number(), short_number()).prop_map(
        |(volume, host, path, op, block, bytes)| Command { volume, host, path, op, block, bytes },
    );
    vec((number(), command), 0..64)
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let rate = prop_oneof![0.1..100_000.0_f64, any::<f64>()];
    let think_ns = prop_oneof![Just(0), number()];
    prop_oneof![
        (short_number(), think_ns, proptest::option::of((rate, any::<bool>()))).prop_map(
            |(threads, think_ns, rate)| {
                let rate = rate.map(|(per_sec, makes_up)| Ceiling { per_sec, makes_up });
                Arrival::Closed { threads, think_ns, rate }
            }
        ),
        (0.1..100_000.0_f64, any::<bool>(), short_number()).prop_map(
            |(rate, poisson, outstanding_max)| Arrival::Open {
                rate,
                poisson,
                outstanding_max,
                waiting_max: u32::MAX
            }
        ),
    ]
}

fn mix() -> impl Strategy<Value = Mix> {
    prop_oneof![
        (any::<f64>(), vec((short_number(), short_number()), 1..4)).prop_map(
            |(read_share, sizes)| Mix::ReadWrite {
                read_share,
                sizes: SizeMix(sizes),
                others: Others::default(),
            }
        ),
        Just(Mix::Reserve),
        Just(Mix::Ats),
    ]
}

prop_compose! {
    fn workload()(
        arrival in arrival(),
        mix in mix(),
        sequential in any::<bool>(),
        working_set in number(),
        burst in proptest::option::of((number(), number())),
    ) -> WorkloadConfig {
        let access = if sequential { Access::Sequential } else { Access::Random };
        let burst = burst.map(|(on_ns, off_ns)| Burst { on_ns, off_ns });
        WorkloadConfig { arrival, mix, access, working_set, burst, ios_max: None, tape: None }
    }
}

proptest! {
    #[test]
    fn no_answer_comes_before_a_round_trip(
        config in array(), commands in commands(), seed in any::<u64>(),
    ) {
        let (mut array, mut now) = (Array::new(&config, seed), Time::ZERO);
        let (mut accepted, mut inside) = (0, Vec::new());
        for (step_ns, mut command) in commands {
            now = now + step_ns;
            command.volume %= config.volumes.len() as u32;
            let answer = array.dispatch(now, command);
            prop_assert!(answer.at >= now + config.round_trip_ns);
            prop_assert!(answer.array_ns <= answer.at.since(now));
            accepted += u32::from(answer.status == Status::Good);
            prop_assert_eq!(array.outstanding(), accepted);
            inside.retain(|leaves| *leaves > now);
            if answer.status == Status::Good {
                inside.push(Time(answer.at.0.saturating_sub(config.round_trip_ns)));
            }
            let ports = Queues { ports: config.queues.ports.max(1), ..config.queues };
            prop_assert!(ports.of_ports().is_none_or(|limit| inside.len() <= limit as usize));
            prop_assert!(answer.status != ports.full || ports.are_limited());
        }
    }

    #[test]
    fn quality_of_service_is_first_come_first_served_and_keeps_its_rate(
        (max, burst) in (1..10_000_u32, 1..20_000_u32),
        steps in vec((0..10_000_000_u64, 0..2_000_000_u32), 1..300),
    ) {
        let qos = Qos { min: 0, max, burst, burst_secs: 2, cost: Cost::SolidFire, bytes_per_sec: None };
        let config = ArrayConfig {
            service: Service::Curve(vec![(1, 1_000)], Spread::Constant, ByCommand::default()),
            round_trip_ns: 100,
            link_bytes_per_sec: None,
            write_protocol: WriteProtocol::TransferReady,
            queues: Queues::default(),
capacity: None,
front: Front::default(),
            volumes: vec![VolumeConfig { qos: Some(qos), ..VolumeConfig::default() }],
        };
        let (mut array, mut now, mut last) = (Array::new(&config, 1), Time::ZERO, Time::ZERO);
        for (index, (step_ns, bytes)) in steps.into_iter().enumerate() {
            now = now + step_ns;
            let answer = array.dispatch(now, Command { volume: 0, host: 0, path: 0, op: Op::Read, block: 0, bytes });
            prop_assert!(answer.at >= last);
            last = answer.at;
            // Every command costs a unit at least.
            let fastest = index as u64 * 1_000_000_000 / u64::from(max.max(burst));
            prop_assert!(answer.at >= Time(fastest));
        }
    }

    #[test]
    fn a_workload_never_has_more_outstanding_than_it_may(
        config in workload(), seed in any::<u64>(), service_ns in vec(number(), 1..200),
    ) {
        let limit = match config.arrival {
            Arrival::Closed { threads, .. } => threads,
            Arrival::Open { outstanding_max, .. } => outstanding_max,
        };
        let limit = limit.clamp(1, 1 << 16) as usize;
        let mut workload = Workload::new(&config, seed);
        let (mut now, mut outstanding) = (Time::ZERO, Vec::new());
        workload.start(now);
        for service_ns in service_ns {
            for _ in 0..8 {
                outstanding.extend(workload.wake(now).map(|io| io.tag));
            }
            let mut tags = outstanding.clone();
            tags.sort_unstable();
            tags.dedup();
            prop_assert_eq!(tags.len(), outstanding.len());
            prop_assert!(tags.len() <= limit);
            // A leap of time with arrivals at a high rate would be drawn one by one.
            now = now + service_ns % 1_000_000_000;
            if let Some(tag) = outstanding.pop() {
                outstanding.extend(workload.complete(now, tag).map(|io| io.tag));
            }
        }
    }
}
