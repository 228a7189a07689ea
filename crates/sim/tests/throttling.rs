//! Adaptive queue depth against a full array: the sawtooth of a constant load is bounded, in both readings of
//! its two numbers, and a LUN's queue is one for all hosts.

mod common;

use common::{close, scenario};
use counters::{Counter, Kind};
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
