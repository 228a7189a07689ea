//! Adaptive queue depth against a full array: the sawtooth of a constant load is bounded, in both readings of
//! its two numbers, a LUN's queue is one for all hosts, and equal hosts are served alike where they can be.

mod common;

use common::{close, scenario};
use counters::{Counter, Kind, Recording};
use sim::run;

/// A host that throttles with a sample size of 32 and a threshold of 8, and a load that always fills it.
fn constant_load(reading: &str, limit: u32, depth: u32, round_trip: &str) -> String {
    format!(
        r#"
title = "A sawtooth"
duration = "14s"
warmup = "4s"
sample = "50ms"
esxcli = "system settings advanced set -o /Disk/QFullSampleSize -i 32"

[array.a]
servers = 512
service = "4ms"
round_trip = "{round_trip}"
queue_limit = {limit}

[host.esx]
throttle = "{reading}"

[host.esx.adapter.vmhba1]
driver = "qlnativefc"
lun_depth = {depth}

[datastore.d]

[vm.v]
guest = "linux"

[vm.v.disk."scsi0:1"]
datastore = "d"

[vm.v.workload]
threads = 254
"#
    )
}

/// It is cut to a half where the array is full, which is at one command more than it takes: what is known of
/// answers that are on their way comes late, so with a round trip it is cut twice and climbs
/// further. In the KB's reading 32 answers have to be bad, of which a deeper queue has more.
#[test]
fn the_sawtooth_of_a_constant_load_is_bounded() {
    for seed in 1..=20_u32 {
        let limit = 2 + seed * 37 % 97;
        let depth = [128, 254][seed as usize % 2];
        for reading in ["kernel", "kb"] {
            for round_trip in ["0s", "0.4ms"] {
                let mut scenario = scenario(&constant_load(reading, limit, depth, round_trip));
                scenario.seed = u64::from(seed);
                let outcome = run(&scenario, 1, &());
                let recording = &outcome.recordings[0];
                let device = recording.of_kind(Kind::Device).next().expect("a device").0;
                let depths = recording.series(device, Counter::DeviceQDepth).expect("DQLEN");
                // Without the first four seconds, in which it comes down from its full depth.
                let depths = &depths[80..];
                let lowest = depths.iter().copied().fold(f64::INFINITY, f64::min);
                let highest = depths.iter().copied().fold(0.0, f64::max);
                let is_strict = reading == "kernel" && round_trip == "0s";
                let limit = f64::from(limit);
                let bounds = if is_strict {
                    ((limit / 2.0).floor(), limit + 1.0)
                } else {
                    ((limit / 4.0).floor().max(1.0), 1.25 * limit + 5.0)
                };
                let case = format!("{reading}, {limit} of {depth}, {round_trip}, seed {seed}");
                assert!(lowest >= bounds.0, "{case}: DQLEN falls to {lowest}");
                assert!(highest <= bounds.1, "{case}: DQLEN climbs to {highest}");
                assert!(lowest < highest, "{case}: it neither falls nor climbs");
            }
        }
    }
}

/// Two hosts on a LUN that has places for eight commands and tells BUSY who comes on top.
fn busy(delay_ms: u32) -> String {
    format!(
        r#"
title = "A busy LUN"
duration = "20s"
warmup = "5s"
esxcli = "system settings advanced set -o /Disk/DelayOnBusy -i {delay_ms}"

[array.a]
servers = 1024
service = "1ms"
spread = "constant"
lun_queue_limit = 8
full = "busy"

[host.esx]
count = 2

[host.esx.adapter.vmhba1]
driver = "fnic"

[datastore.shared]

[vm.v]
count = 2

[vm.v.disk."scsi0:1"]
datastore = "shared"

[vm.v.workload]
threads = 16
"#
    )
}

/// Eight commands of the two hosts together: whoever comes on top is told BUSY and waits for
/// `Disk.DelayOnBusy` on its host, with its slot given back.
#[test]
fn the_queue_of_a_lun_is_one_for_all_hosts_and_busy_waits() {
    let outcome = run(&scenario(&busy(400)), 1, &());
    let window = &outcome.windows[0];
    let of = |host: usize, counter| {
        let recording = &window[host].recording;
        let device = recording.of_kind(Kind::Device).next().expect("a device").0;
        recording.value(device, counter, 0).expect("a figure")
    };
    let sum = |counter| of(0, counter) + of(1, counter);
    assert!(sum(Counter::MeanActive) <= 8.0, "{}", sum(Counter::MeanActive));
    assert!(sum(Counter::MeanQueued) >= 23.9, "{}", sum(Counter::MeanQueued));
    close(sum(Counter::Commands), 8_000.0, 0.1);
    assert!(sum(Counter::QueuedCommands) <= 0.0, "they are held, and slots are free");
}

/// Eight hosts that are alike in all, from the same instant on, before a port with 48 places.
fn equal_hosts(full: &str, law: &str) -> String {
    format!(
        r#"
title = "Equal hosts before a full port"
duration = "25s"
warmup = "5s"
sample = "1s"
{law}

[array.a]
servers = 1024
service = "2ms"
round_trip = "0.2ms"
queue_limit = 48
full = "{full}"

[host.esx]
count = 8

[host.esx.adapter.vmhba1]
driver = "qlnativefc"

[datastore.shared]

[vm.v]
count = 8
guest = "linux"

[vm.v.disk."scsi0:1"]
datastore = "shared"

[vm.v.workload]
threads = 64
"#
    )
}

/// Jain's index: 1 where all have the same, 1/8 where one of eight has all.
fn fairness(of: &[f64]) -> f64 {
    let sum: f64 = of.iter().sum();
    sum * sum / (of.len() as f64 * of.iter().map(|one| one * one).sum::<f64>())
}

fn mean(of: impl ExactSizeIterator<Item = f64>) -> f64 {
    let len = of.len() as f64;
    of.sum::<f64>() / len
}

/// What became of eight hosts: how fair it was in the whole run of each seed and in the mean of its seconds, and
/// what the host at each place of the scenario had in the mean of the seeds, of an eighth.
struct Served {
    whole: Vec<f64>,
    seconds: Vec<f64>,
    places: Vec<f64>,
}

#[expect(clippy::print_stdout, reason = "the table of docs/internals/engine.md, with --nocapture")]
fn served(full: &str, law: &str) -> Served {
    let mut served = Served { whole: Vec::new(), seconds: Vec::new(), places: vec![0.0; 8] };
    let (mut iops, mut least) = (Vec::new(), Vec::new());
    for seed in 1..=20 {
        let mut scenario = scenario(&equal_hosts(full, law));
        scenario.seed = seed;
        let of_host = |recording: &Recording| {
            let device = recording.of_kind(Kind::Device).next().expect("a device").0;
            recording.series(device, Counter::Commands).expect("CMDS/s")[5..].to_vec()
        };
        let hosts: Vec<Vec<f64>> = run(&scenario, 1, &()).recordings.iter().map(of_host).collect();
        let second = |at: usize| fairness(&hosts.iter().map(|host| host[at]).collect::<Vec<_>>());
        served.seconds.push(mean((0..hosts[0].len()).map(second)));
        let means: Vec<f64> = hosts.iter().map(|host| mean(host.iter().copied())).collect();
        let share = mean(means.iter().copied());
        served.places.iter_mut().zip(&means).for_each(|(all, own)| *all += own / share / 20.0);
        served.whole.push(fairness(&means));
        least.push(means.iter().copied().fold(f64::INFINITY, f64::min) / share);
        iops.push(8.0 * share);
    }
    let range = |of: &[f64]| {
        let least = of.iter().copied().fold(f64::INFINITY, f64::min);
        (least, of.iter().copied().fold(0.0, f64::max))
    };
    let ((low, high), (few, more)) = (range(&served.whole), range(&least));
    println!(
        "{full:<14} {law:<66} | {:.0} | {low:.2} to {high:.2} | {:.2} | {few:.2} to {more:.2} |",
        mean(iops.into_iter()),
        mean(served.seconds.iter().copied()),
    );
    served
}

/// A device that is given a sample size of 0 has none of its own: the host's counts, whenever that is said.
#[test]
fn a_device_without_a_sample_size_goes_by_that_of_its_host() {
    let depth_later = |line: &str| {
        let event = format!("[[event]]\nat = \"2s\"\nesxcli = \"{line}\"\n");
        let text = constant_load("kernel", 40, 128, "0s") + &event;
        let scenario =
            scenario(&text.replace("[datastore.d]", "[datastore.d]\ndevice = \"naa.1\""));
        let recording = &run(&scenario, 1, &()).recordings[0];
        let device = recording.find(Kind::Device, "naa.1").unwrap();
        let rows = recording.len() / 2..recording.len();
        rows.map(|row| recording.value(device, Counter::DeviceQDepth, row).unwrap())
            .fold(0.0, f64::max)
    };
    let of_device = |size| depth_later(&format!("storage core device set -d naa.1 -s {size} -q 8"));
    assert!(of_device(32) < 60.0);
    assert!(of_device(0) < 60.0, "{}", of_device(0));
    assert_eq!(depth_later("system settings advanced set -o /Disk/QFullSampleSize -i 0"), 128.0);
}

/// A command that is told BUSY waits by itself, so each asks as often as it was refused, and nobody is before the
/// others by his place in the scenario.
#[test]
fn equal_hosts_before_a_port_that_answers_busy_are_served_alike() {
    let served = served("busy", "");
    assert!(served.whole.iter().all(|jain| *jain >= 0.98), "{:?}", served.whole);
    assert!(served.places.iter().all(|of| (0.9..=1.1).contains(of)), "{:?}", served.places);
}

/// Each is halved and climbs by itself: alike in the run, and less so in a second.
#[test]
fn equal_hosts_that_all_throttle_are_served_alike() {
    const SAMPLE: &str =
        r#"esxcli = "system settings advanced set -o /Disk/QFullSampleSize -i 32""#;
    for (full, fair) in [("task-set-full", 0.85), ("busy", 0.99)] {
        let served = served(full, SAMPLE);
        assert!(served.whole.iter().all(|jain| *jain >= fair), "{full}: {:?}", served.whole);
        let places = served.places;
        assert!(places.iter().all(|of| (0.75..=1.25).contains(of)), "{full}: {places:?}");
    }
}

/// After TASK SET FULL a host asks again as commands of its own end: who has more places asks more often, and who
/// has none asks twice a second. So in a second one of them has nearly all, and it is not always the same one.
#[test]
fn equal_hosts_before_a_port_that_answers_task_set_full_are_not_served_alike() {
    let served = served("task-set-full", "");
    assert!(served.seconds.iter().all(|jain| *jain <= 0.25), "{:?}", served.seconds);
    assert!(mean(served.whole.iter().copied()) >= 0.2, "{:?}", served.whole);
}

/// At 0 a command that is told BUSY goes again after a millisecond: an array that refuses at once is
/// not asked for ever at one instant. A place is empty for no longer than that, so the eight places of
/// 1 ms do half of what they can, or more.
#[test]
fn busy_without_a_delay_comes_to_an_end() {
    let outcome = run(&scenario(&busy(0)), 1, &());
    let done: f64 = outcome.windows[0]
        .iter()
        .flat_map(|host| {
            let recording = &host.recording;
            let devices = recording.of_kind(Kind::Device);
            devices.filter_map(|(id, _)| recording.value(id, Counter::Commands, 0))
        })
        .sum();
    assert!((4_000.0..=8_000.1).contains(&done), "{done}");
}
