//! VMFS's locks: the switch between ATS and reservations while the run goes on, the locks of what virtual
//! machines do, and a reservation that is not released.

mod common;

use sim::{check, run};

const SCENARIO: &str = r#"
title = "ATS switched off and on again"
duration = "30s"

[array.a]
servers = 16
service = "1ms"

[host.esx]
count = 2

[host.esx.adapter.vmhba1]
driver = "fnic"

[datastore.ds]

[datastore.ds.metadata]
rate = 5
lock = "ats"

[vm.sql]
count = 2

[vm.sql.disk."scsi0:1"]
datastore = "ds"

[vm.sql.workload]
threads = 4

[[event]]
at = "10s"
esxcli = "system settings advanced set -o /VMFS3/HardwareAcceleratedLocking -i 0"

[[event]]
at = "20s"
esxcli = "system settings advanced set -o /VMFS3/HardwareAcceleratedLocking -d"

[[window]]
name = "ats"
to = "10s"

[[window]]
name = "reservations"
from = "10s"
to = "20s"

[[window]]
name = "again"
from = "21s"

[[expect]]
window = "ats"
datastore = "ds"
counter = "cons"
max = 0
source = "array-and-control 7.4"

[[expect]]
window = "reservations"
datastore = "ds"
counter = "cons"
min = 1
source = "array-and-control 7.4"

[[expect]]
window = "reservations"
vm = "sql"
relative_to = "ats"
counter = "cmds"
max = 0.9
source = "array-and-control 7.4"

[[expect]]
window = "again"
datastore = "ds"
counter = "cons"
max = 0
source = "array-and-control 7.4"
"#;

const HOSTS: &str = r#"
title = "Locks by their reasons"
duration = "100s"

[array.a]
servers = 32
service = "1ms"

[host.esx]
count = 2

[host.esx.adapter.vmhba1]
driver = "fnic"

[datastore.ds]

[vm.server]
count = 6

[vm.server.disk."scsi0:1"]
datastore = "ds"

[vm.desk]
count = 4

[vm.desk.disk."scsi0:1"]
datastore = "ds"

[vm.server.workload]
threads = 2
rate = 20
"#;

/// Every expectation on each of the seeds 1 to 20.
fn holds(text: &str) {
    for seed in 1..=20 {
        let mut scenario = common::scenario(text);
        scenario.seed = seed;
        let outcome = run(&scenario, 1, &());
        let missed: Vec<_> =
            check(&scenario, &outcome).into_iter().filter(|check| !check.holds).collect();
        assert!(missed.is_empty(), "seed {seed}: {missed:?}");
    }
}

fn expect(datastore: &str, counter: &str, value: f64, within: f64) -> String {
    format!(
        "[[expect]]\nhost = \"esx-1\"\ndatastore = \"{datastore}\"\ncounter = \"{counter}\"\n\
         value = {value}\nwithin = {within}\nsource = \"array-and-control 7.4\"\n"
    )
}

#[test]
fn conflicts_come_and_go_with_the_switch() {
    holds(SCENARIO);
}

/// 5 VMs are at home on each host: 3 servers and 2 desks.
#[test]
fn each_virtual_machine_takes_the_locks_of_what_it_does_on_its_host() {
    let growth = "snapshot_growth = { locks = 3, rate = 1 }";
    let desks = "thin_growth = { locks = 2, rate = 2, vm = \"desk\" }";
    let storm = "power_on = { locks = 7, at = \"20s\" }";
    // Of 800 and of 1,500 that come at random, five standard deviations.
    for (line, each_s, within) in [(growth, 15.0, 2.0), (desks, 8.0, 1.5), (storm, 0.35, 0.0)] {
        let locks = format!("[datastore.ds.metadata]\nlock = \"scsi2\"\nhold = \"1ms\"\n{line}\n");
        holds(&format!("{HOSTS}{locks}{}", expect("ds", "resv", each_s, within)));
    }
}

/// Ten reservations a second of half a second each, on the only host, beside one thread: its commands take what the
/// array takes, and there is one of them.
#[test]
fn a_reservation_that_is_held_is_no_command_that_is_under_way() {
    let text = r#"
title = "One host takes locks"
duration = "60s"
warmup = "5s"

[array.a]
servers = 64
service = "1ms"
spread = "constant"

[host.esx-1.adapter.vmhba1]
driver = "fnic"

[datastore.ds.metadata]
lock = "scsi2"
hold = "500ms"
rate = 10

[vm.sql.disk."scsi0:1"]
datastore = "ds"

[vm.sql.workload]
threads = 1
"#;
    let means = [("resv", 10.0, 2.0), ("davg", 1.0, 0.001), ("actv_mean", 1.01, 0.002)];
    let expected = means.map(|(counter, value, within)| expect("ds", counter, value, within));
    holds(&format!("{text}{}", expected.concat()));
}

/// A VM has each of its locks for 50 ms and takes the next one then: ten in half a second, by ATS (counted) and by
/// reservations (a second).
#[test]
fn the_locks_of_an_operation_are_held_one_after_the_other() {
    for (lock, counter, value) in [("ats", "ats", 10.0), ("scsi2", "resv", 20.0)] {
        let storm = "power_on = { locks = 20, at = \"20s\", vm = \"desk-1\" }";
        let locks =
            format!("[datastore.ds.metadata]\nlock = \"{lock}\"\nhold = \"50ms\"\n{storm}\n");
        let half = "[[window]]\nname = \"half\"\nfrom = \"20s\"\nto = \"20.5s\"\n";
        let expected = expect("ds", counter, value, 0.0);
        let expected = expected.replace("[[expect]]", "[[expect]]\nwindow = \"half\"");
        holds(&format!("{HOSTS}{locks}{half}{expected}"));
    }
}

#[test]
fn a_reservation_that_sticks_makes_others_give_up_and_its_own_host_nothing() {
    let stuck = "stuck = { host = \"esx-2\", start = \"20s\", stop = \"40s\" }";
    let locks = format!("[datastore.ds.metadata]\nlock = \"scsi2\"\n{stuck}\n");
    // 6 threads give up after 80 x 60 ms, four times in 20 s, each command 81 times refused.
    let failed = expect("ds", "fcmds", 0.24, 0.001);
    holds(&format!("{HOSTS}{locks}{failed}"));
    let elsewhere = failed.replace("esx-1", "esx-2").replace("0.24", "0");
    holds(&format!("{HOSTS}{locks}{elsewhere}"));
    // So do the locks of its five machines, each of which is tried for as long.
    let storm = "power_on = { locks = 6, at = \"20s\" }\n";
    let failed =
        [("fresv", 0.2), ("fcmds", 0.44)].map(|(key, value)| expect("ds", key, value, 0.001));
    holds(&format!("{HOSTS}{locks}{storm}{}", failed.concat()));
}
