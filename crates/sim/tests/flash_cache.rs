//! What becomes of a cache when its VM moves, is powered off, or its guest reboots.

mod common;

use common::scenario;
use counters::{Counter, Kind};
use sim::run;

/// A VM that reads 4 MiB from 5 ms or from 1 ms, and something that happens at 20 s.
fn text(event: &str) -> String {
    format!(
        r#"
title = "A cache, and what happens to it"
duration = "40s"
[array.disks]
servers = 64
queue = "shared"
service = "5ms"
spread = "constant"
[array.ssd]
servers = 64
queue = "shared"
service = "1ms"
spread = "constant"
[host.a.adapter.vmhba1]
driver = "qlnativefc"
[host.b]
boot = "1s"
adapter.vmhba1.driver = "qlnativefc"
[datastore.ds]
array = "disks"
[datastore.flash]
array = "ssd"
[vm.v]
host = "a"
disk."scsi0:1" = {{ datastore = "ds", flash_cache = {{ datastore = "flash", size = "4m", block = "8k" }} }}
workload = {{ threads = 1, size = "8k", working_set = "4m" }}
[[event]]
at = "20s"
vm = "v"
{event}
[[window]]
name = "before"
from = "15s"
to = "20s"
[[window]]
name = "after"
from = "20s"
to = "22s"
"#
    )
}

/// I/Os of the VM a second before and after, where it is then.
fn before_and_after(event: &str, host: usize) -> [f64; 2] {
    let scenario = scenario(&text(event));
    let outcome = run(&scenario, 1, &());
    [(1, 0), (2, host)].map(|(window, host)| {
        let recording = &outcome.windows[window][host].recording;
        common::figure(recording, Kind::Vm, "v", Counter::Commands)
    })
}

/// By default a cache goes with its VM, and it is discarded when that is powered off [VFRC].
#[test]
fn a_cache_moves_with_its_vm_outlives_its_guest_and_ends_when_it_is_powered_off() {
    for (event, host, is_warm) in [
        ("migrate = \"b\"", 1, true),
        ("reboot = true", 0, true),
        ("power = \"off\"\n[[event]]\nat = \"20s\"\nvm = \"v\"\npower = \"on\"", 0, false),
    ] {
        let [before, after] = before_and_after(event, host);
        assert!((before - 1_000.0).abs() < 10.0, "{event}: {before}");
        // 512 blocks: those of 2 s are mostly missed where nothing is held.
        assert_eq!(after > 990.0, is_warm, "{event}: {after}");
        assert!(is_warm || after < 450.0, "{event}: {after}");
    }
}

#[test]
fn a_disk_with_a_cache_stays_on_its_datastore() {
    let refused = common::source(&text("migrate = { datastore = \"flash\" }")).scenario();
    let refused = refused.expect_err("it is refused").to_string();
    assert!(refused.ends_with("a disk with a flash cache stays on its datastore"), "{refused}");
}
