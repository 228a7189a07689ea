//! Expectations find the figure that they name, whoever's it is, and say whether it holds.

mod common;

use sim::{check, run};

const HEAD: &str = r#"
title = "Expectations"
duration = "200ms"

[array.fast]
servers = 8
service = "0.5ms"

[host.esx.adapter.vmhba1]
driver = "fnic"

[datastore.ds]
device = "naa.1"

[datastore.mount]
kind = "nfs"

[vm.sql]
guest = "linux_old"

[vm.sql.disk."scsi0:0"]
datastore = "ds"

[vm.sql.disk."scsi0:1"]
datastore = "mount"

[[workload]]
vm = "sql"
disk = "scsi0:0"
threads = 40

[[workload]]
vm = "sql"
disk = "scsi0:1"
arrival = "fixed"
rate = 1_000
stop = "100ms"

[[window]]
name = "first"
to = "100ms"

[[window]]
name = "second"
from = "100ms"
"#;

/// What is expected, and what comes of it: the figure as far as it is certain, and whether it
/// holds.
const CASES: &[(&str, Option<f64>, bool)] = &[
    ("datastore = 'ds'\ncounter = 'dqlen'\nvalue = 32\nwithin = 0", Some(32.0), true),
    ("device = 'naa.1'\ncounter = 'actv'\nvalue = 32\nwithin = '1%'", Some(32.0), true),
    ("device = 'naa.1'\ncounter = 'actv'\nmax = 31.5", Some(32.0), false),
    ("datastore = 'mount'\nwindow = 'first'\ncounter = 'cmds'\nmin = 900\nmax = 1100", None, true),
    ("datastore = 'mount'\nwindow = 'second'\ncounter = 'cmds'\nmax = 20", None, true),
    ("vm = 'sql'\ncounter = 'cmds'\nmin = 100", None, true),
    ("vm = 'sql'\ndisk = 'scsi0:0'\ncounter = 'total'\nmin = 0.5", None, true),
    ("vm = 'sql'\ndatastore = 'ds'\ncounter = 'qued'\nvalue = 8\nwithin = 0", Some(8.0), true),
    ("adapter = 'vmhba1'\ncounter = 'cmds'\nmin = 100", None, true),
    ("path = 'vmhba1:C0:T0:L0'\ncounter = 'davg'\nmin = 0.5", None, true),
    (
        "device = 'naa.1'\ncounter = 'cmds'\nwindow = 'second'\nrelative_to = 'first'\nmin = 1\nmax = 1.3",
        None,
        true,
    ),
    (
        "datastore = 'mount'\ncounter = 'cmds'\nwindow = 'second'\nrelative_to = 'first'\nmax = 0.05",
        None,
        true,
    ),
    // esxtop has the counter, and a simulation does not.
    ("device = 'naa.1'\ncounter = 'clone_rd'\nmin = 0", None, false),
];

#[test]
fn every_kind_of_subject_has_its_figure() {
    let expectations: String =
        CASES.iter().map(|(text, ..)| format!("\n[[expect]]\n{text}\n")).collect();
    let scenario = common::scenario(&(HEAD.to_string() + &expectations));
    let outcome = run(&scenario, 1, &());
    let checked = check(&scenario, &outcome);
    assert_eq!(checked.len(), CASES.len());
    for (found, (text, figure, holds)) in checked.iter().zip(CASES) {
        assert_eq!(found.holds, *holds, "{} for\n{text}", found.figure);
        assert!(figure.is_none_or(|figure| found.figure == figure), "{} for\n{text}", found.figure);
    }
}

/// Of a group the figure is the mean of its members; a member without a command has no time of one, and
/// counts in what is a rate.
#[test]
fn who_has_no_command_has_no_time_of_one() {
    let expectations = "
[[expect]]
datastore = 'shared'
counter = 'davg'
value = 2
within = 0

[[expect]]
datastore = 'shared'
counter = 'cmds'
value = 250
within = '1%'
";
    let site = "
title = 'Two hosts, one at work'
duration = '10s'

[array.a]
servers = 8
service = '2ms'
spread = 'constant'

[host.esx]
count = 2

[host.esx.adapter.vmhba1]
driver = 'fnic'

[datastore.shared]

[vm.sql]
host = 'esx-1'

[vm.sql.disk.'scsi0:0']
datastore = 'shared'

[vm.sql.workload]
threads = 1
";
    let scenario = common::scenario(&format!("{site}{expectations}"));
    let checked = check(&scenario, &run(&scenario, 1, &()));
    for found in &checked {
        assert!(found.holds, "{}", found.figure);
    }
}
