//! Storage policies where the host's queue is congested: a limit holds nobody to less or more than without
//! congestion, and a reservation is kept [API].

mod common;

use counters::{Counter, Kind};
use sim::run;

/// Four slots of 4 ms do 1,000 commands a second at most, and three VMs ask for all that there is.
const CROWDED: &str = r#"
title = "Policies in a crowd"
duration = "60s"
warmup = "5s"
array.a = { servers = 64, service = "4ms" }

[host.esx]
adapter.vmhba1 = { driver = "qlnativefc" }

[datastore.ds]
dsnro = 4

[storage_policy.held]
limit = 100

[storage_policy.kept]
reservation = 300

[vm.held]
guest = "linux"
disk."scsi0:1" = { datastore = "ds", storage_policy = "held" }
workload = { threads = 64 }

[vm.kept]
guest = "linux"
disk."scsi0:1" = { datastore = "ds", storage_policy = "kept" }
workload = { threads = 48 }

[vm.crowd]
count = 3
guest = "linux"
disk."scsi0:1" = { datastore = "ds" }
workload = { threads = 64 }
"#;

/// Commands a second of both, after some lines.
fn rates(seed: u64, lines: &[&str]) -> [f64; 2] {
    let mut scenario = common::scenario(CROWDED);
    scenario.seed = seed;
    lines.iter().for_each(|line| scenario.set(line).unwrap());
    let outcome = run(&scenario, 1, &());
    let seen = &outcome.windows[0][0].recording;
    ["held", "kept"].map(|vm| common::figure(seen, Kind::Vm, vm, Counter::Commands))
}

#[test]
fn a_limit_and_a_reservation_hold_in_a_crowd() {
    for seed in 1..=20 {
        let [held, kept] = rates(seed, &[]);
        common::close(held, 100.0, 0.01);
        assert!(kept >= 0.98 * 300.0, "seed {seed}: {kept}");
        // It is the policies that do it.
        let [held, kept] = rates(
            seed,
            &[
                "storage policy held: DiskLimitIOPerSecond -1",
                "storage policy kept: StorageIOAllocationReservation 0",
            ],
        );
        assert!(held > 150.0 && kept < 200.0, "seed {seed}: {held} {kept}");
    }
}
