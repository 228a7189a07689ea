//! Why a path is down: an event, its controller, the array's word that the device is gone, and its removal, each by itself.

mod common;

use common::scenario;
use counters::{Counter, Kind};
use engine::HostConfig;
use sim::{Logged, Outcome, in_words, run};

/// A host with a VM on an array with two controllers, `vmhba1:C0:T0:L0` to the first and `vmhba1:C0:T1:L0` to the second, and
/// what happens. A path goes down at once, as where an administrator takes it down: it is why it is down that counts here.
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
dead_after = "0s"
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

/// Reads of 1 ms of a thread a second in each of these windows, by two adapters with that driver, when the first path goes
/// down at 10 s; and what the log says.
fn failover(driver: &str, rest: &str, seed: u64) -> ([f64; 3], Vec<String>) {
    let text = format!(
        r#"
title = "Failover"
duration = "60s"
sample = "1s"
[array.a]
servers = 8
service = "1ms"
spread = "constant"
[host.h.adapter.vmhba1]
driver = "{driver}"
[host.h.adapter.vmhba2]
driver = "{driver}"
[datastore.ds]
device = "naa.1"
path_policy = "fixed"
[vm.v]
guest = "windows"
timeout = "58s"
disk."scsi0:0".datastore = "ds"
workload = {{ threads = 1 }}
[[window]]
name = "at-once"
from = "11s"
to = "20s"
[[window]]
name = "later"
from = "21s"
to = "40s"
[[window]]
name = "at-last"
from = "41s"
[[event]]
at = "10s"
path = "vmhba1"
state = "down"
{rest}"#
    );
    let mut scenario = scenario(&text);
    scenario.seed = seed;
    let outcome = run(&scenario, 1, &());
    let in_window = |window: usize| {
        let recording = &outcome.windows[window][0].recording;
        common::figure(recording, Kind::Device, "naa.1", Counter::Commands)
    };
    let said = outcome.log.iter().filter_map(|line| match line.what {
        Logged::Event(event) => Some(in_words(event, &scenario.hosts[0].config)),
        _ => None,
    });
    ([1, 2, 3].map(in_window), said.collect())
}

/// I/O pauses for 30 s, be it with Fibre Channel or with iSCSI [DOC-APD]; there is no network before a local disk.
#[test]
fn a_failover_takes_30_s_where_the_file_does_not_say() {
    for seed in 1..=20 {
        for driver in ["qlnativefc", "lpfc", "nfnic", "iscsi_vmk"] {
            assert_eq!(failover(driver, "", seed).0, [0.0, 0.0, 1_000.0], "{driver}, seed {seed}");
        }
        assert_eq!(failover("nhpsa", "", seed).0, [1_000.0; 3], "seed {seed}");
    }
}

/// What came to be up before the driver found out is never down, and what waited goes by it again; what is not found dead before
/// the run ends is not.
#[test]
fn a_path_is_not_found_dead_that_is_up_again() {
    let event =
        |at, state| format!("[[event]]\nat = \"{at}s\"\npath = \"vmhba1\"\nstate = \"{state}\"\n");
    let cases: [(&[_], [f64; 3]); 5] = [
        (&[(20, "up")], [0.0, 1_000.0, 1_000.0]),
        (&[(20, "up"), (40, "down")], [0.0, 1_000.0, 0.0]),
        (&[(15, "down"), (20, "up")], [0.0, 1_000.0, 1_000.0]),
        (&[(20, "up"), (21, "down"), (40, "up")], [0.0, 0.0, 1_000.0]),
        (&[(40, "up")], [0.0, 0.0, 1_000.0]),
    ];
    for (events, expected) in cases {
        let rest: String = events.iter().map(|(at, state)| event(*at, state)).collect();
        let (found, log) = failover("lpfc", &rest, 1);
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() <= 1.0, "{events:?}: {found}, {log:?}");
        }
    }
}

/// What is taken away while its cable is out and not found so sends what it holds by the other path; a device that goes
/// with its paths, which nobody uses, takes nothing from others.
#[test]
fn what_is_removed_before_it_is_found_dead_holds_nothing() {
    let idle = "[datastore.idle]\ndevice = \"naa.2\"\n";
    let remove = |what| format!("[[event]]\nat = \"20s\"\nremove = {what}\n");
    let cases = [
        (remove("{ adapter = \"vmhba1\" }"), [0.0, 1_000.0, 1_000.0]),
        (remove("{ path = \"vmhba1:C0:T0:L0\" }"), [0.0, 1_000.0, 1_000.0]),
        (format!("{idle}{}", remove("{ datastore = \"idle\" }")), [0.0, 0.0, 1_000.0]),
    ];
    for (rest, expected) in cases {
        for seed in 1..=20 {
            assert_eq!(failover("lpfc", &rest, seed).0, expected, "{rest}, seed {seed}");
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
dead_after = "0s"
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
