//! Disks, adapters and datastores come and go while the run goes on.

mod common;

use sim::{LogLine, Logged, check, run};

const SCENARIO: &str = r#"
title = "A disk and an adapter come, another goes"
duration = "40s"

[array.a]
servers = 64
service = "1ms"
spread = "constant"

[host.esx.adapter.vmhba1]
driver = "qlnativefc"

[host.esx.adapter.vmhba2]
driver = "qlnativefc"

[datastore.ds]
path_policy = "rr"

[vm.old.disk."scsi0:0"]
datastore = "ds"
[vm.old.workload]
threads = 1
rate = 100

[vm.new.disk."scsi0:0"]
datastore = "ds"
[vm.new.workload]
threads = 1
rate = 100

[[event]]
at = "10s"
add = { vm = "new", disk = "scsi0:0" }

[[event]]
at = "10s"
add = { adapter = "vmhba2" }

[[event]]
at = "20s"
remove = { vm = "old" }

[[event]]
at = "20s"
remove = { adapter = "vmhba1", drain = true }

[[event]]
at = "30s"
add = { vm = "old" }

[[window]]
name = "before"
to = "10s"

[[window]]
name = "both"
from = "10s"
to = "20s"

[[window]]
name = "new"
from = "20s"
to = "30s"

[[window]]
name = "again"
from = "30s"

[[expect]]
window = "before"
adapter = "vmhba2"
counter = "cmds"
max = 0

[[expect]]
window = "before"
vm = "new"
counter = "cmds"
max = 0

[[expect]]
window = "both"
vm = "new"
counter = "cmds"
value = 100
within = 1

[[expect]]
window = "both"
adapter = "vmhba2"
counter = "cmds"
min = 10

[[expect]]
window = "new"
vm = "old"
counter = "cmds"
max = 0.1

[[expect]]
window = "new"
adapter = "vmhba1"
counter = "cmds"
max = 0.2

[[expect]]
window = "new"
vm = "new"
counter = "cmds"
value = 100
within = 1

[[expect]]
window = "again"
vm = "old"
counter = "cmds"
value = 100
within = 1

[[expect]]
datastore = "ds"
counter = "fcmds"
max = 0
"#;

#[test]
fn parts_come_and_go_while_the_others_run() {
    let scenario = common::scenario(SCENARIO);
    let outcome = run(&scenario, 1, &());
    let failed: Vec<_> =
        check(&scenario, &outcome).into_iter().filter(|checked| !checked.holds).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let refused = |line: &LogLine| matches!(line.what, Logged::Refused(_));
    assert!(!outcome.log.iter().any(refused), "{:?}", outcome.log);
}
