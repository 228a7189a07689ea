//! Why a path is down: an event, its controller, the array's word that the device is gone, and its removal, each by itself.

mod common;

use common::scenario;
use counters::{Counter, Kind};
use engine::HostConfig;
use sim::{Logged, Outcome, in_words, run};

/// A host with a VM on an array with two controllers, `vmhba1:C0:T0:L0` to the first and `vmhba1:C0:T1:L0` to the second, and
/// what happens.
fn outcome(events: &[&str]) -> (Outcome, HostConfig) {
    let mut text = r#"
title = "Reasons"
duration = "12s"
[array.a]
servers = 8
queue = "shared"
service = "1ms"
spread = "constant"
[array.a.controllers]
takeover = "100ms"
dead_after = "1s"
[host.h.adapter.vmhba1]
driver = "qlnativefc"
[datastore.ds]
device = "naa.1"
path_policy = "fixed"
[vm.v.disk."scsi0:0"]
datastore = "ds"
[vm.v.workload]
threads = 1
[[window]]
name = "late"
from = "10s"
"#
    .to_string();
    events.iter().for_each(|event| text.push_str(&format!("[[event]]\n{event}\n")));
    let scenario = scenario(&text);
    (run(&scenario, 1, &()), scenario.hosts[0].config.clone())
}

/// Commands a second at the end of the run, by each path.
fn by_path(outcome: &Outcome) -> [f64; 2] {
    let recording = &outcome.windows[1][0].recording;
    ["vmhba1:C0:T0:L0", "vmhba1:C0:T1:L0"]
        .map(|path| common::figure(recording, Kind::Path, path, Counter::Commands))
}

const DEAD: &str = "at = \"2s\"\narray = \"a\"\ncontroller = 1\nstate = \"down\"";
const ALIVE: &str = "at = \"6s\"\narray = \"a\"\ncontroller = 1\nstate = \"up\"";

#[test]
fn a_path_is_up_when_no_reason_is_left() {
    let path =
        |at, state| format!("at = \"{at}s\"\npath = \"vmhba1:C0:T0:L0\"\nstate = \"{state}\"");
    let adapter = |at, state| format!("at = \"{at}s\"\npath = \"vmhba1\"\nstate = \"{state}\"");
    let removed = |at, deed, what| format!("at = \"{at}s\"\n{deed} = {{ {what} }}");
    let one = "path = \"vmhba1:C0:T0:L0\"";
    let (first, second) = ([1_000.0, 0.0], [0.0, 1_000.0]);
    let cases: [(&str, &[&str], [f64; 2]); 9] = [
        ("nothing", &[], first),
        ("a dead controller", &[DEAD], second),
        ("which comes back", &[DEAD, ALIVE], first),
        ("and whose path came up", &[DEAD, &path(4, "down"), &path(5, "up")], second),
        ("with its adapter", &[DEAD, &adapter(4, "down"), &adapter(5, "up")], second),
        ("an event keeps it down", &[DEAD, &path(4, "down"), ALIVE], second),
        ("until it ends", &[DEAD, &path(4, "down"), ALIVE, &path(8, "up")], first),
        ("removed", &[DEAD, &removed(4, "remove", one), &removed(5, "add", one)], second),
        ("and back", &[DEAD, &removed(4, "remove", one), ALIVE, &removed(7, "add", one)], first),
    ];
    for (what, events, expected) in cases {
        let (outcome, _) = outcome(events);
        let found = by_path(&outcome);
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() <= 10.0, "{what}: {found}, {:?}", outcome.log);
        }
    }
}

/// A path that comes up is none to a device which is gone for good, and when that is back, none that is down.
#[test]
fn a_path_does_not_bring_back_a_device_that_is_gone() {
    let face = |at, state| format!("at = \"{at}s\"\ndatastore = \"ds\"\nstate = \"{state}\"");
    let path =
        |at, state| format!("at = \"{at}s\"\npath = \"vmhba1:C0:T0:L0\"\nstate = \"{state}\"");
    let lines = |events: &[&str]| {
        let (outcome, config) = outcome(events);
        let said = outcome.log.iter().filter_map(|line| match line.what {
            Logged::Event(event) => Some((line.at.0 / counters::SECOND, in_words(event, &config))),
            _ => None,
        });
        (by_path(&outcome), said.collect::<Vec<_>>())
    };
    let lost = face(2, "lost");
    let (found, log) = lines(&[&lost, &path(4, "up")]);
    assert_eq!(found, [0.0, 0.0]);
    assert_eq!(log, [(2, "naa.1 is permanently lost: all its I/O fails".to_string())]);
    let (found, log) = lines(&[&lost, &path(4, "down"), &face(6, "up")]);
    assert!(found[0] == 0.0 && found[1] > 990.0, "{found:?}: {log:?}");
    assert_eq!(log.last().map(|(at, _)| *at), Some(6), "{log:?}");
}

/// Commands of eight threads a second, in the last two seconds of ten, on an active/passive array.
fn at_the_end(policy: &str, events: &str) -> f64 {
    let text = format!(
        r#"
title = "Ends"
duration = "10s"
[array.a]
servers = 8
queue = "shared"
service = "1ms"
spread = "constant"
controllers = {{ takeover = "300ms", active_passive = true }}
[host.h.adapter.vmhba1]
driver = "qlnativefc"
dead_after = "100ms"
timeout = "50ms"
[volume.v]
owner = 2
[datastore.ds]
volume = "v"
path_policy = "{policy}"
[vm.v]
guest = "linux"
disk."scsi0:0".datastore = "ds"
workload = {{ threads = 8 }}
[[window]]
name = "late"
from = "8s"
{events}"#
    );
    let outcome = run(&scenario(&text), 1, &());
    common::figure(&outcome.windows[1][0].recording, Kind::Adapter, "vmhba1", Counter::Commands)
}

/// What takes longer than a timeout because the other controller takes the volume over is not sent to the first one.
#[test]
fn a_host_does_not_fight_itself_for_a_volume() {
    let path = |at, state| {
        format!("[[event]]\nat = \"{at}s\"\npath = \"vmhba1:C0:T0:L0\"\nstate = \"{state}\"\n")
    };
    for policy in ["fixed", "mru", "rr"] {
        for events in [String::new(), path(2, "down") + &path(3, "up")] {
            let found = at_the_end(policy, &events);
            assert!(found > 7_900.0, "{policy}, {events}: {found}");
        }
    }
}

/// A path that is removed and added comes back, though the array has still to do with what was asked back.
#[test]
fn what_is_added_again_comes_when_the_last_of_it_has_ended() {
    for part in ["adapter = \"vmhba1\"", "path = \"vmhba1:C0:T1:L0\""] {
        let text = format!(
            r#"
title = "Again"
duration = "6s"
[array.a]
servers = 1
service = "5ms"
spread = "constant"
[host.h.adapter.vmhba1]
driver = "qlnativefc"
lun_depth = 200
[datastore.ds]
paths = 2
[vm.v]
guest = "linux"
disk."scsi0:0".datastore = "ds"
workload = {{ threads = 200 }}
[[window]]
name = "late"
from = "5s"
[[event]]
at = "900ms"
path = "vmhba1:C0:T0:L0"
state = "down"
[[event]]
at = "1s"
remove = {{ {part} }}
[[event]]
at = "1500ms"
add = {{ {part} }}
"#
        );
        let outcome = run(&scenario(&text), 1, &());
        let recording = &outcome.windows[1][0].recording;
        let found = common::figure(recording, Kind::Adapter, "vmhba1", Counter::Commands);
        assert!((found - 200.0).abs() <= 2.0, "{part}: {found}, {:?}", outcome.log);
    }
}

/// Commands a second by each of two paths, of two adapters, under the latency policy: with so many outstanding, and with a
/// second adapter that has this more.
fn by_latency(threads: u32, second: &str, seed: u64) -> [f64; 2] {
    let text = format!(
        r#"
title = "By latency"
duration = "3s"
warmup = "1s"
[array.a]
servers = 64
queue = "shared"
service = "0.5ms"
spread = "constant"
[host.h.adapter.vmhba1]
driver = "qlnativefc"
[host.h.adapter.vmhba2]
driver = "qlnativefc"
{second}
[datastore.ds]
path_policy = "latency"
[vm.v.disk."scsi0:0"]
datastore = "ds"
[vm.v.workload]
threads = {threads}
size = "64k"
"#
    );
    let mut scenario = scenario(&text);
    scenario.seed = seed;
    let outcome = run(&scenario, 1, &());
    let recording = &outcome.windows[0][0].recording;
    ["vmhba1:C0:T0:L0", "vmhba2:C0:T0:L0"]
        .map(|path| common::figure(recording, Kind::Path, path, Counter::Commands))
}

/// [DOC70]: without much work some paths are not used; a slower one is left out [CH-LAT].
#[test]
fn by_latency_much_work_takes_all_paths_that_are_about_as_fast() {
    let slow = "link = \"100MB/s\"";
    for seed in 1..=20 {
        assert_eq!(by_latency(1, "", seed), [2_000.0, 0.0], "one at a time, seed {seed}");
        let [first, second] = by_latency(32, "", seed);
        assert!((first - second).abs() < 0.02 * first, "{first} {second}, seed {seed}");
        let [first, second] = by_latency(32, slow, seed);
        assert!(first > 60_000.0 && second == 0.0, "{first} {second}, seed {seed}");
    }
}
