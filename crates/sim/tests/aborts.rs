//! What guests abort: an array that has not begun with it does not do it.

mod common;

use common::{close, figure, scenario};
use counters::{Counter, Kind};
use sim::run;

/// A VM that gives up what takes a second on an array that does 50 a second, and another one when that has stopped.
fn text(servers: &str, (hosts, place): (usize, &str)) -> String {
    format!(
        r#"
title = "Aborted commands"
duration = "60s"
[array.a]
{servers}
spread = "constant"
[host.h]
count = {hosts}
adapter.vmhba1.driver = "qlnativefc"
[datastore.ds]
[vm.v]
{place}
timeout = "1s"
disk."scsi0:1".datastore = "ds"
workload = {{ threads = 64, stop = "30s" }}
[vm.w]
host = "h-1"
disk."scsi0:1".datastore = "ds"
workload = {{ threads = 1, start = "33s" }}
[[window]]
name = "crowd"
from = "10s"
to = "30s"
[[window]]
name = "alone"
from = "34s"
"#
    )
}

#[test]
fn what_was_aborted_before_it_was_begun_takes_nothing_from_others() {
    for servers in [
        "servers = 1\nservice = \"20ms\"",
        "servers = 1\nservice = \"20ms\"\nqueue = \"shared\"",
        "servers = 4\nservice = \"80ms\"\nqueue = \"shared\"",
    ] {
        let outcome = run(&scenario(&text(servers, (1, "host = \"h-1\""))), 1, &());
        let commands = |window: usize, vm| {
            figure(&outcome.windows[window][0].recording, Kind::Vm, vm, Counter::Commands)
        };
        // What waits for more than a second is given up, and its time goes to what comes next and fits in.
        close(commands(1, "v"), 50.0, 0.2);
        let alone = if servers.contains("80ms") { 12.5 } else { 50.0 };
        close(commands(2, "w"), alone, 0.01);
    }
}

/// Hosts that run apart tell the array of it by post, in the same order.
#[test]
fn hosts_that_run_apart_take_back_the_same() {
    let apart = text("servers = 1\nservice = \"20ms\"\nround_trip = \"0.2ms\"", (20, "count = 20"));
    let scenario = scenario(&apart);
    let (alone, threads) = (run(&scenario, 1, &()), run(&scenario, 3, &()));
    let (watched, ()) = sim::run_watched(&scenario, ());
    for outcome in [&alone, &threads] {
        assert!(format!("{outcome:?}") == format!("{watched:?}"));
    }
}

/// 55 threads wait 1.1 s for an IOPS limit of 50, and their guest gives up after a second: the limit is served all the same.
#[test]
fn a_limit_is_served_although_its_guest_gives_up() {
    for threads in [45, 55, 64] {
        let text = format!(
            r#"
title = "A limit and a timeout"
duration = "40s"
warmup = "4s"
[array.a]
servers = 8
service = "1ms"
[host.h.adapter.vmhba1]
driver = "qlnativefc"
[datastore.ds]
[vm.v]
timeout = "1s"
disk."scsi0:1" = {{ datastore = "ds", limit = 50 }}
workload = {{ threads = {threads} }}
"#
        );
        let outcome = run(&scenario(&text), 1, &());
        let recording = &outcome.windows[0][0].recording;
        close(figure(recording, Kind::Vm, "v", Counter::Commands), 50.0, 0.05);
    }
}
