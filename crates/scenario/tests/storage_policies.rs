//! Storage policies in a file, in lines and in events: what each disk has, and when.

mod common;

use scenario::{Action, Beside, Scenario};

const SITE: &str = r#"
title = "policies"
duration = "100s"
esxi = "6.7"

[array.a]
servers = 8
service = "1ms"

[host.esx]
count = 2

[host.esx.adapter.vmhba1]
driver = "fnic"

[datastore.ds]
count = 2

[storage_policy.gold]
limit = 2_000
shares = "high"

[storage_policy.low]
reservation = 0

[vm.sql]
host = "esx-1"

[vm.sql.disk."scsi0:0"]
datastore = "ds-1"
storage_policy = "gold"

[vm.sql.disk."scsi0:1"]
datastore = "ds-1"
limit = 100

[vm.web]
host = "esx-2"

[vm.web.disk."scsi0:0"]
datastore = "ds-1"
storage_policy = "low"
"#;

/// Each disk by its VM and name, and what it has: limit, reservation, shares.
fn disks(scenario: &Scenario) -> Vec<String> {
    let of = |host: &scenario::Host| -> Vec<String> {
        let disks = host.config.vdisks.iter().zip(&host.policy_of);
        let text = disks.map(|(disk, policy)| {
            let vm = &host.config.vms[disk.vm.index()].name;
            let policy = policy.map_or("-", |policy| host.policies[policy].name.as_str());
            format!("{vm}:{} {policy} {}", disk.name, allocation(disk.allocation))
        });
        text.collect()
    };
    scenario.hosts.iter().flat_map(of).collect()
}

fn allocation(of: knobs::Allocation) -> String {
    let limit = of.limit_iops.map_or("-".into(), |limit| limit.to_string());
    format!("{limit} {} {}", of.reservation_iops, of.shares)
}

/// What events set, and when.
fn set(scenario: &Scenario) -> Vec<String> {
    let set = scenario.events.iter().filter_map(|event| {
        let Action::Set(knobs::Knob::Allocation { vdisk, allocation: of }) = event.action else {
            return None;
        };
        let config = &scenario.hosts[event.host].config;
        let disk = &config.vdisks[vdisk.index()];
        let vm = &config.vms[disk.vm.index()].name;
        let at = event.at.0 / counters::SECOND;
        Some(format!("{at}: {vm}:{} {}", disk.name, allocation(of)))
    });
    set.collect()
}

fn with(events: &str) -> Scenario {
    common::parse("site.toml", &format!("{SITE}{events}")).unwrap()
}

#[test]
fn disks_have_what_their_policies_say() {
    let mut scenario = with("");
    let expected =
        ["sql:scsi0:0 gold 2000 0 2000", "sql:scsi0:1 - 100 0 1000", "web:scsi0:0 low 1000 0 500"];
    assert_eq!(disks(&scenario), expected, "a table of a preset's name changes what it says");
    let steps: [(&str, [&str; 3]); 5] = [
        (
            "storage policy gold: DiskLimitIOPerSecond 3000",
            ["sql:scsi0:0 gold 3000 0 2000", expected[1], expected[2]],
        ),
        (
            "web: StoragePolicy gold",
            ["sql:scsi0:0 gold 3000 0 2000", expected[1], "web:scsi0:0 gold 3000 0 2000"],
        ),
        // Nobody has it any more; it changes all the same.
        (
            "storage policy low: NumDiskShares 700",
            ["sql:scsi0:0 gold 3000 0 2000", expected[1], "web:scsi0:0 gold 3000 0 2000"],
        ),
        (
            "sql:scsi0:0: StorageIOAllocationReservation 10",
            ["sql:scsi0:0 - 3000 10 2000", expected[1], "web:scsi0:0 gold 3000 0 2000"],
        ),
        (
            "sql: StoragePolicy low",
            [
                "sql:scsi0:0 low 1000 0 700",
                "sql:scsi0:1 low 1000 0 700",
                "web:scsi0:0 gold 3000 0 2000",
            ],
        ),
    ];
    for (line, expected) in steps {
        scenario.set(line).unwrap();
        assert_eq!(disks(&scenario), expected, "{line}");
    }
}

/// Lines and tables of events go on from one another, whichever way something was set before, and a disk takes
/// what it has along to another datastore.
#[test]
fn events_go_on_from_one_another() {
    let scenario = with(
        r#"
[[event]]
at = "1s"
esxcli = ["sql:scsi0:1: NumDiskShares 500", "sql:scsi0:1: StorageIOAllocationReservation 5"]
[[event]]
at = "2s"
vm = "sql"
allocation = { disk = "scsi0:1", limit = 200 }
[[event]]
at = "3s"
esxcli = "storage policy gold: DiskLimitIOPerSecond 4000"
[[event]]
at = "4s"
vm = "web"
allocation = { disk = "scsi0:0", storage_policy = "gold" }
[[event]]
at = "5s"
storage_policy = { name = "gold", shares = 4_000 }
[[event]]
at = "6s"
vm = "sql"
migrate = { datastore = "ds-2" }
[[event]]
at = "7s"
storage_policy = { name = "gold", limit = "unlimited" }
[[event]]
at = "8s"
esxcli = "sql:scsi0:0: DiskLimitIOPerSecond 50"
[[event]]
at = "9s"
esxcli = "storage policy gold: NumDiskShares 100"
[[event]]
at = "10s"
vm = "sql"
migrate = { datastore = "ds-1" }
"#,
    );
    let expected = [
        "1: sql:scsi0:1 100 0 500",
        "1: sql:scsi0:1 100 5 500",
        "2: sql:scsi0:1 200 5 500",
        "3: sql:scsi0:0 4000 0 2000",
        "4: web:scsi0:0 4000 0 2000",
        "5: sql:scsi0:0 4000 0 4000",
        "5: web:scsi0:0 4000 0 4000",
        "6: sql:scsi0:0@ds-2 4000 0 4000",
        "6: sql:scsi0:1@ds-2 200 5 500",
        "7: sql:scsi0:0@ds-2 - 0 4000",
        "7: web:scsi0:0 - 0 4000",
        "8: sql:scsi0:0@ds-2 50 0 4000",
        "9: web:scsi0:0 - 0 100",
        "10: sql:scsi0:0 50 0 4000",
        "10: sql:scsi0:1 200 5 500",
    ];
    assert_eq!(set(&scenario), expected);
}

/// Only the length of a policy's name is limited [SPBM]; `none` is no policy.
#[test]
fn names_of_policies_have_blanks_and_none_takes_one_off() {
    let mut scenario = with("[storage_policy.\"Gold Tier (R\u{e4}um)\"]\nlimit = 5\n");
    let [_, own, low] = [0, 1, 2].map(|at| disks(&scenario)[at].clone());
    let steps = [
        (
            "sql:scsi0:0: StoragePolicy Gold Tier (R\u{e4}um)",
            "sql:scsi0:0 Gold Tier (R\u{e4}um) 5 0 1000",
        ),
        (
            "storage policy Gold Tier (R\u{e4}um): NumDiskShares 900",
            "sql:scsi0:0 Gold Tier (R\u{e4}um) 5 0 900",
        ),
        ("sql:scsi0:0: StoragePolicy none", "sql:scsi0:0 - - 0 1000"),
        (
            "storage policy 'Gold Tier (R\u{e4}um)': DiskLimitIOPerSecond 6",
            "sql:scsi0:0 - - 0 1000",
        ),
        (
            "sql:scsi0:0: StoragePolicy \"gold tier (R\u{e4}um)\"",
            "sql:scsi0:0 Gold Tier (R\u{e4}um) 6 0 900",
        ),
        ("sql:scsi0:0: StoragePolicy None", "sql:scsi0:0 - - 0 1000"),
    ];
    for (line, expected) in steps {
        scenario.set(line).unwrap();
        assert_eq!(disks(&scenario), [expected, &own, &low], "{line}");
    }
    let taken = with(
        "[[event]]\nat = \"1s\"\nvm = \"sql\"\nallocation = { disk = \"scsi0:0\", storage_policy = \"none\" }\n",
    );
    assert_eq!(set(&taken), ["1: sql:scsi0:0 - 0 1000"]);
    assert_eq!(taken.given.last().unwrap().policy, None);
    let event = |deed: &str| format!("[[event]]\nat = \"1s\"\n{deed}\n");
    let refused = [
        ("[storage_policy.\"a: b\"]\n".into(), "`a: b` is no name of a storage policy"),
        (format!("[storage_policy.{}]\n", "x".repeat(81)), "1 to 80 characters"),
        ("[storage_policy.none]\n".into(), "and is not `none`"),
        ("[storage_policy.None]\n".into(), "and is not `none` in any case"),
        ("[storage_policy.\"'x'\"]\n".into(), "no quote at its beginning"),
        (
            "[storage_policy.Gold]\n".into(),
            "`gold` and `Gold` are one name of a storage policy: they differ in case alone",
        ),
        (
            "[storage_policy.HIGH]\n".into(),
            "`high` and `HIGH` are one name of a storage policy: they differ in case alone",
        ),
        (
            event("storage_policy = { name = \"gold\" }"),
            "it sets nothing; it has at least one of `shares`",
        ),
        (
            event("vm = \"sql\"\nallocation = { disk = \"scsi0:0\" }"),
            "it sets nothing; it has at least one of `storage_policy`",
        ),
    ];
    for (text, expected) in refused {
        let error = common::parse("site.toml", &format!("{SITE}{text}")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Limit and shares are one cmdlet, in either order, and each turns its part of what the disk has.
#[test]
fn a_cmdlet_sets_limit_and_shares() {
    let get = "Get-VM web | Get-VMResourceConfiguration | Set-VMResourceConfiguration -Disk (Get-HardDisk -VM web)";
    let parts = ["-DiskLimitIOPerSecond 700", "-DiskSharesLevel Custom -NumDiskShares 900"];
    for [first, second] in [parts, [parts[1], parts[0]]] {
        let line = format!("{get} {first} {second}");
        let mut scenario = with("");
        scenario.set(&line).unwrap();
        assert_eq!(disks(&scenario)[2], "web:scsi0:0 - 700 0 900", "{line}");
        let scenario = with(&format!("[[event]]\nat = \"1s\"\nesxcli = \"{line}\"\n"));
        assert_eq!(set(&scenario).last().unwrap(), "1: web:scsi0:0 700 0 900", "{line}");
    }
}

/// A line beside the file is there before its events, and they go on from it: whom it gives another storage policy,
/// or numbers of its own, is not of those whom an event on the policy of the file means; whom it gives that one, is.
#[test]
fn events_go_on_from_lines_beside_the_file() {
    let later = "[[event]]\nat = \"1s\"\nstorage_policy = { name = \"gold\", shares = 700 }\n";
    let cases: [(&str, &[&str]); 5] = [
        ("sql:scsi0:1: NumDiskShares 300", &["1: sql:scsi0:0 2000 0 700"]),
        ("sql:scsi0:0: StoragePolicy low", &[]),
        ("sql:scsi0:0: DiskLimitIOPerSecond 50", &[]),
        ("web: StoragePolicy gold", &["1: sql:scsi0:0 2000 0 700", "1: web:scsi0:0 2000 0 700"]),
        ("storage policy gold: DiskLimitIOPerSecond 3000", &["1: sql:scsi0:0 3000 0 700"]),
    ];
    for (line, expected) in cases {
        let beside = Beside { overs: &[], lines: &[line.to_owned()] };
        let text = format!("{SITE}{later}");
        let none = &mut |_: &str| Err("there are no files".into());
        let scenario = Scenario::parse_with("site.toml", &text, &beside, none).unwrap();
        assert_eq!(set(&scenario), expected, "{line}");
    }
}
