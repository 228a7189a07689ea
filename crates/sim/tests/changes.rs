//! Disks, adapters and datastores come and go while the run goes on.

mod common;

use counters::SECOND;
use sim::{Logged, check, run};

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

/// Every expectation of a scenario is met, and only these are refused: seconds and hosts.
fn holds_but_for(text: &str, expected: &[(u64, usize)]) {
    let scenario = common::scenario(text);
    let outcome = run(&scenario, 1, &());
    let missed: Vec<_> = check(&scenario, &outcome).into_iter().filter(|one| !one.holds).collect();
    assert!(missed.is_empty(), "{missed:?}");
    let refused = outcome.log.iter().filter(|line| matches!(line.what, Logged::Refused(_)));
    let refused: Vec<_> = refused.map(|line| (line.at.0 / SECOND, line.host)).collect();
    assert_eq!(refused, expected);
}

#[test]
fn parts_come_and_go_while_the_others_run() {
    holds_but_for(SCENARIO, &[]);
}

/// Two hosts and two datastores; a VM moves its disks and itself, with a limit that goes along.
const MOVES: &str = r#"
title = "A disk moves while its datastore is silent, its VM moves, and its limit changes"
duration = "60s"

[array.a]
servers = 64
service = "1ms"
spread = "constant"

[host.esx]
count = 2
[host.esx.adapter.vmhba1]
driver = "qlnativefc"

[datastore.here]
[datastore.there]

[vm.web]
host = "esx-1"
disk."scsi0:0".datastore = "here"
disk."scsi0:1".datastore = "here"

[[workload]]
vm = "web"
disk = ["scsi0:0", "scsi0:1"]
threads = 1
rate = 200

[[event]]
at = "5s"
datastore = "here"
state = "silent"

[[event]]
at = "10s"
vm = "web"
migrate = { datastore = "there" }

# What the disks have under way is still on the silent device: they cannot come back to it.
[[event]]
at = "15s"
vm = "web"
migrate = { datastore = "here", disk = "scsi0:1" }

[[event]]
at = "20s"
datastore = "here"
state = "up"

[[event]]
at = "25s"
vm = "web"
allocation = { disk = "scsi0:0", limit = 50 }

[[event]]
at = "30s"
vm = "web"
migrate = "esx-2"

[[event]]
at = "40s"
vm = "web"
migrate = { datastore = "here", disk = "scsi0:0" }

[[window]]
name = "refused"
from = "16s"
to = "20s"

[[window]]
name = "there"
from = "21s"
to = "25s"

[[window]]
name = "other-host"
from = "31s"
to = "40s"

[[window]]
name = "back"
from = "41s"

[[expect]]
window = "refused"
vm = "web"
counter = "cmds"
max = 0

[[expect]]
window = "there"
datastore = "there"
host = "esx-1"
counter = "cmds"
value = 400
within = 2

[[expect]]
window = "other-host"
vm = "web"
disk = "scsi0:0@there"
host = "esx-2"
counter = "cmds"
value = 50
within = 1

[[expect]]
window = "back"
vm = "web"
disk = "scsi0:0"
host = "esx-2"
counter = "cmds"
value = 50
within = 1
"#;

#[test]
fn a_disk_moves_with_its_limit_and_on_every_host_that_knows_its_vm() {
    holds_but_for(MOVES, &[(15, 0)]);
}

/// A disk whose commands nobody answers is removed, and added too early: it comes when they have been answered.
const TOO_EARLY: &str = r#"
title = "A disk comes back while it still has commands under way"
duration = "20s"

[array.a]
servers = 8
service = "1ms"

[host.esx.adapter.vmhba1]
driver = "fnic"

[datastore.ds]

[vm.web]
disk."scsi0:0".datastore = "ds"
workload = { arrival = "fixed", rate = 100 }

[[event]]
at = "5s"
datastore = "ds"
state = "silent"

[[event]]
at = "6s"
remove = { vm = "web", disk = "scsi0:0", drain = true }

[[event]]
at = "7s"
add = { vm = "web", disk = "scsi0:0" }

[[event]]
at = "8s"
datastore = "ds"
state = "up"

[[window]]
name = "away"
from = "7s"
to = "8s"

[[window]]
name = "again"
from = "9s"

[[expect]]
window = "away"
vm = "web"
counter = "cmds"
max = 0

[[expect]]
window = "again"
vm = "web"
counter = "cmds"
value = 100
within = 1
"#;

#[test]
fn what_comes_back_too_early_waits() {
    holds_but_for(TOO_EARLY, &[]);
}

#[test]
fn an_array_that_takes_a_lost_device_back_after_it_was_removed_changes_nothing() {
    let events = r#"
[[event]]
at = "10s"
datastore = "ds"
state = "lost"
[[event]]
at = "20s"
remove = { vm = "old" }
[[event]]
at = "21s"
remove = { vm = "new" }
[[event]]
at = "22s"
remove = { datastore = "ds" }
[[event]]
at = "30s"
datastore = "ds"
state = "up"
"#;
    let (text, _) = SCENARIO.split_once("[[event]]").unwrap();
    let outcome = run(&common::scenario(&format!("{text}{events}")), 1, &());
    assert!(outcome.ios > 0);
}
