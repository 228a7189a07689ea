//! The switch between locking by ATS and by reservations acts while the run goes on.

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

#[test]
fn conflicts_come_and_go_with_the_switch() {
    for seed in 1..=20 {
        let mut scenario = common::scenario(SCENARIO);
        scenario.seed = seed;
        let outcome = run(&scenario, 1, &());
        let missed: Vec<_> =
            check(&scenario, &outcome).into_iter().filter(|check| !check.holds).collect();
        assert!(missed.is_empty(), "seed {seed}: {missed:?}");
    }
}
