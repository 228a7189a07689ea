//! The documents of the scenario file are true: the reference names every key that the parser
//! takes and no other, and the scenario of the guide is one.

mod common;

use std::collections::BTreeSet;

const REFERENCE: &str = include_str!("../../../docs/reference/scenario.md");

/// A section of the reference, and a scenario with an unknown key in that table.
const SECTIONS: &[(&str, &str)] = &[
    ("The top of the file", "x = 1"),
    ("array.NAME", "[array.a]\nx = 1"),
    ("array.NAME.tier", "[array.a]\nservers = 1\nservice = \"1ms\"\ntier.x = 1"),
    ("array.NAME.background", "[array.a]\nservers = 1\nservice = \"1ms\"\nbackground.x = 1"),
    ("array.NAME.disk", "[array.a]\nspindles = 1\nraid = \"0\"\ndisk.x = 1"),
    ("array.NAME.controllers", "[array.a]\nservers = 1\nservice = \"1ms\"\ncontrollers.x = 1"),
    ("array.NAME.qos.NAME", "[array.a]\nservers = 1\nservice = \"1ms\"\nqos.gold.x = 1"),
    ("volume.NAME", "[volume.v]\nx = 1"),
    ("switch.NAME", "[switch.s]\nx = 1"),
    ("host.NAME", "[host.h]\nx = 1"),
    ("host.NAME.adapter.NAME", "[host.h.adapter.vmhba1]\nx = 1"),
    (
        "host.NAME.adapter.NAME.iscsi",
        "[host.h.adapter.vmhba64]\ndriver = \"iscsi_vmk\"\niscsi.x = 1",
    ),
    ("host.NAME.nbd", "[host.h]\nadapter.vmhba1.driver = \"fnic\"\nnbd.x = 1"),
    ("datastore.NAME", "[datastore.d]\nx = 1"),
    ("datastore.NAME.metadata", "[datastore.d]\nmetadata.x = 1"),
    ("storage_policy.NAME", "[storage_policy.p]\nx = 1"),
    ("vm.NAME", "[vm.v]\nx = 1"),
    ("vm.NAME.disk.\"scsi0:1\"", "[vm.v.disk.\"scsi0:1\"]\nx = 1"),
    (
        "vm.NAME.disk.\"scsi0:1\".block",
        "[vm.v]\nguest = \"linux\"\n[vm.v.disk.\"scsi0:1\"]\ndatastore = \"rest\"\nblock.x = 1",
    ),
    (
        "vm.NAME.disk.\"scsi0:1\".flash_cache",
        "[vm.v]\n[vm.v.disk.\"scsi0:1\"]\ndatastore = \"rest\"\nflash_cache.x = 1\n[vm.v.workload]\nthreads = 1",
    ),
    ("workload", "[[workload]]\nx = 1"),
    ("event", "[[event]]\nx = 1"),
    ("window", "[[window]]\nx = 1"),
    ("expect", "[[expect]]\nx = 1"),
];

/// What every scenario needs, so that the parser comes to the table in question.
const REST: &str = "
[array.rest]
servers = 1
service = \"1ms\"
[host.rest.adapter.vmhba1]
driver = \"fnic\"
[datastore.rest]
array = \"rest\"
[vm.rest]
[vm.rest.disk.\"scsi0:1\"]
datastore = \"rest\"
";

#[test]
fn the_reference_has_every_key_of_the_parser_and_no_other() {
    for (title, table) in SECTIONS {
        assert_eq!(documented(title), taken(table), "section `{title}`");
    }
}

#[test]
fn the_scenario_of_the_guide_is_one() {
    let guide = include_str!("../../../docs/guides/first-scenario.md");
    let text = guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let text = text.expect("the guide has a scenario");
    common::parse("two-vms.toml", text).expect("the scenario of the guide");
}

/// The keys in the first column of a section's tables.
fn documented(title: &str) -> BTreeSet<String> {
    let section = REFERENCE
        .split("\n## ")
        .find(|section| section.strip_prefix(title).is_some_and(|rest| rest.starts_with('\n')));
    let section = section.unwrap_or_else(|| panic!("the reference has no section `{title}`"));
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.flat_map(|row| in_backticks(row.split(" |").next().unwrap_or(row), 0)).collect()
}

/// The keys that the parser names when it refuses one.
fn taken(table: &str) -> BTreeSet<String> {
    let head = "title = \"t\"\nduration = \"1s\"\n";
    let text = format!("{head}{table}\n{REST}");
    let error = common::parse("x.toml", &text).expect_err("`x` is no key").to_string();
    let (_, keys) = error.split_once("it is one of ").unwrap_or_else(|| panic!("{table}: {error}"));
    in_backticks(keys, 1).collect()
}

/// Every other piece between backticks, from the first or the second on.
fn in_backticks(text: &str, first: usize) -> impl Iterator<Item = String> {
    text.split('`').skip(first).step_by(2).filter(|piece| !piece.is_empty()).map(String::from)
}
