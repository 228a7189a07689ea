//! Switches: what crosses the link of one shares it, and all that goes through one fails with it.

mod common;

use common::{close, figure, scenario};
use counters::{Counter, Kind};
use sim::{Outcome, run};

/// Reads of 64 KiB a second of which the data are 8 Gbit/s.
const FULL: f64 = 8e9 / 8.0 / 65_536.0;

/// Hosts with 64 reads of 64 KiB outstanding each, by adapters on `edge`, at an array that answers in 0.5 ms.
fn shared(hosts: u32, array: &str, adapter: &str) -> String {
    format!(
        r#"
title = "One link"
duration = "5s"
warmup = "1s"
[switch.edge]
link = "8Gbit/s"
[switch.core]
link = "4Gbit/s"
[array.a]
servers = 65536
service = "0.5ms"
spread = "constant"
{array}
[host.h]
count = {hosts}
[host.h.adapter.vmhba1]
driver = "qlnativefc"
{adapter}
[datastore.ds]
[vm.v]
count = {hosts}
disk."scsi0:0".datastore = "ds"
workload = {{ threads = 64, size = "64k" }}
"#
    )
}

/// What each VM does a second in the window of that place.
fn rates(outcome: &Outcome, window: usize) -> Vec<f64> {
    let hosts = outcome.windows[window].iter().zip(1..);
    let rate = |name: String, recording| figure(recording, Kind::Vm, &name, Counter::Commands);
    hosts.map(|(view, vm)| rate(format!("v-{vm}"), &view.recording)).collect()
}

#[test]
fn hosts_share_the_link_of_their_switch_in_equal_parts_and_what_stays_on_it_is_free_of_it() {
    let edge = "switch = \"edge\"";
    let by_port = "switch = \"edge\"\nlink = \"16Gbit/s\"";
    let free = 64.0 / 0.5e-3;
    for (hosts, array, adapter, all) in [
        (2, "", edge, FULL),
        (4, "", by_port, FULL),
        (2, "switch = \"core\"", edge, FULL / 2.0),
        (2, "switch = \"core\"", "", FULL / 2.0),
        (2, edge, edge, 2.0 * free),
        (2, edge, by_port, 4.0 * FULL),
        // The paths of the first host end at `core`, those of the second at `edge`.
        (2, "ports = 2\nswitch = [\"core\", \"edge\"]", "switch = \"core\"", free + FULL / 2.0),
    ] {
        let found = rates(&run(&scenario(&shared(hosts, array, adapter)), 1, &()), 0);
        close(found.iter().sum(), all, 0.005);
        if !array.contains("ports") {
            found.iter().for_each(|rate| close(*rate, all / f64::from(hosts), 0.01));
        }
    }
}

/// Reads and writes have a direction each.
#[test]
fn the_directions_of_a_link_are_apart() {
    let text = shared(2, "write = \"immediate\"\nunsolicited = \"64k\"", "switch = \"edge\"");
    let text = text.replace("threads = 64,", "threads = 64, read = \"50%\",");
    let found = rates(&run(&scenario(&text), 1, &()), 0);
    // Random halves keep both full but for moments when most of what is out is of one kind.
    let all = found.iter().sum::<f64>() / (2.0 * FULL);
    assert!((0.9..=1.001).contains(&all), "{all}");
}

#[test]
fn mounts_of_nfs_cross_the_link_of_the_switch_of_their_port() {
    let text = shared(2, "", "").replace("[datastore.ds]", "[datastore.ds]\nkind = \"nfs\"");
    let text = text.replace("count = 2\n[host", "count = 2\nnfs_switch = \"edge\"\n[host");
    let found = rates(&run(&scenario(&text), 1, &()), 0);
    found.iter().for_each(|rate| close(*rate, FULL / 2.0, 0.01));
}

/// One read at a time of 1 ms, by the adapter on `left` first; the second host has one there alone.
fn two_fabrics(second: &str, events: &[(u32, &str, &str)]) -> Outcome {
    let mut text = format!(
        r#"
title = "Two fabrics"
duration = "12s"
[switch.left]
[switch.right]
[array.a]
servers = 8
queue = "shared"
service = "1ms"
spread = "constant"
[host.h1.adapter.vmhba1]
driver = "qlnativefc"
switch = "left"
dead_after = "2s"
[host.h1.adapter.vmhba2]
driver = "qlnativefc"
switch = "right"
[host.h2.adapter.vmhba1]
driver = "qlnativefc"
switch = "left"
{second}
[datastore.ds]
path_policy = "fixed"
[vm.v-1]
host = "h1"
disk."scsi0:0".datastore = "ds"
workload = {{ threads = 1 }}
[vm.v-2]
host = "h2"
disk."scsi0:0".datastore = "ds"
workload = {{ threads = 1 }}
"#
    );
    for (at, what, state) in events {
        text += &format!("[[event]]\nat = \"{at}s\"\n{what}\nstate = \"{state}\"\n");
    }
    for second in 0..11 {
        text += &format!(
            "[[window]]\nname = \"s{second}\"\nfrom = \"{second}.01s\"\nto = \"{}s\"\n",
            second + 1
        );
    }
    run(&scenario(&text), 1, &())
}

/// In each second, whether `v-1` is served by its first path (1), by its second one (2), or not (0); and `v-2`.
fn course(outcome: &Outcome) -> String {
    let served = |second: usize, host: usize, path: &str| {
        let recording = &outcome.windows[second + 1][host].recording;
        figure(recording, Kind::Path, path, Counter::Commands) > 900.0
    };
    let of = |second: usize| {
        let first = ["vmhba1:C0:T0:L0", "vmhba2:C0:T0:L0"].map(|path| served(second, 0, path));
        let by = match first {
            [true, _] => 1,
            [_, true] => 2,
            _ => 0,
        };
        format!("{by}{}", u32::from(served(second, 1, "vmhba1:C0:T0:L0")))
    };
    (0..11).map(of).collect::<Vec<_>>().join(" ")
}

const LEFT: &str = "switch = \"left\"";
const RIGHT: &str = "switch = \"right\"";
const CABLE: &str = "host = \"h1\"\npath = \"vmhba1\"";

/// The first host's driver takes 2 s to find that out, as with a cable that is pulled, and the second one's none.
#[test]
fn a_switch_takes_all_paths_through_it_until_it_is_back() {
    type Events = &'static [(u32, &'static str, &'static str)];
    let cases: [(&str, Events, &str); 8] = [
        ("no event", &[], "11 11 11 11 11 11 11 11 11 11 11"),
        ("the other one", &[(1, RIGHT, "down")], "11 11 11 11 11 11 11 11 11 11 11"),
        ("for good", &[(1, LEFT, "down")], "11 00 00 20 20 20 20 20 20 20 20"),
        ("and back", &[(1, LEFT, "down"), (6, LEFT, "up")], "11 00 00 20 20 20 11 11 11 11 11"),
        (
            "both",
            &[(1, LEFT, "down"), (5, RIGHT, "down"), (7, RIGHT, "up"), (9, LEFT, "up")],
            "11 00 00 20 20 00 00 20 20 11 11",
        ),
        (
            "with a cable of it",
            &[(1, CABLE, "down"), (2, LEFT, "down"), (6, CABLE, "up"), (8, LEFT, "up")],
            "11 01 00 20 20 20 20 20 11 11 11",
        ),
        (
            "and one that is mended while the switch is dead: what was found dead and never came back stays so",
            &[(1, CABLE, "down"), (4, LEFT, "down"), (5, CABLE, "up")],
            "11 01 01 21 20 20 20 20 20 20 20",
        ),
        (
            "and one that is pulled before the switch is back: it is dead without a break, and found so once",
            &[(1, LEFT, "down"), (2, CABLE, "down"), (2, LEFT, "up"), (7, CABLE, "up")],
            "11 00 01 21 21 21 21 11 11 11 11",
        ),
    ];
    for (what, events, expected) in cases {
        assert_eq!(course(&two_fabrics("", events)), expected, "{what}");
    }
}

/// Of the array's end as of the hosts'.
#[test]
fn hosts_of_one_switch_find_out_when_their_drivers_do() {
    let events = [(1, LEFT, "down"), (8, LEFT, "up")];
    let outcome = two_fabrics("dead_after = \"4s\"", &events);
    assert_eq!(course(&outcome), "11 00 00 20 20 20 20 20 11 11 11");
    let lost = outcome.log.iter().map(|line| (line.at.0 / counters::SECOND, line.host));
    assert_eq!(lost.collect::<Vec<_>>(), [(5, 1), (8, 1)]);
    let text = shared(1, "switch = \"core\"", "dead_after = \"1s\"");
    let text = text + "[[event]]\nat = \"1s\"\nswitch = \"core\"\nstate = \"down\"\n";
    // The 64 that the array has are answered, and no others in the 4 s of the window.
    assert_eq!(rates(&run(&scenario(&text), 1, &()), 0), [64.0 / 4.0]);
}
