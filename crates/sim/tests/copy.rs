//! Storage vMotion as load: what ends a copy, what does not, and what each does to the guest's writes.

mod common;

use common::scenario;
use counters::{Counter, Kind};
use sim::{CopyEnd, LogLine, Logged, Outcome, run};

/// A VM that writes everywhere on a disk of 1 GiB, 0.5 ms each, which is copied from 2 s on to where a write takes `there`:
/// 1,024 chunks, two at a time.
fn text(there: &str, rest: &str) -> String {
    format!(
        r#"
title = "A copy, and what happens to it"
duration = "20s"
warmup = "1s"
[array.here]
servers = 64
queue = "shared"
service = "0.5ms"
spread = "constant"
[array.there]
servers = 64
queue = "shared"
service = "{there}"
spread = "constant"
[host.esx]
boot = "1s"
adapter.vmhba1.driver = "qlnativefc"
[datastore.old]
array = "here"
[datastore.new]
array = "there"
[vm.db]
disk."scsi0:1".datastore = "old"
workload = {{ threads = 4, read = "0%", size = "4k", working_set = "1g" }}
[[event]]
at = "2s"
vm = "db"
migrate = {{ datastore = "new", copy = {{ size = "1g", chunk = "1m", outstanding = 2 }} }}
[[window]]
name = "after"
from = "15s"
to = "20s"
{rest}
"#
    )
}

fn ends(outcome: &Outcome) -> Vec<CopyEnd> {
    let end = |line: &LogLine| match line.what {
        Logged::Copied { end, .. } => Some(end),
        _ => None,
    };
    outcome.log.iter().filter_map(end).collect()
}

/// Writes a second of the VM after all, on its disk where it was and where it is to be.
fn after(outcome: &Outcome) -> [f64; 2] {
    let recording = &outcome.windows[1][0].recording;
    ["db:scsi0:1", "db:scsi0:1@new"]
        .map(|disk| common::figure(recording, Kind::VirtualDisk, disk, Counter::Commands))
}

/// Four threads of 0.5 ms, and of 1 ms after the copy: 1,024 chunks of 1.5 ms, two at a time.
#[test]
fn a_disk_goes_on_where_it_was_copied_to() {
    let outcome = run(&scenario(&text("1ms", "")), 1, &());
    let [CopyEnd::Copied(nanos)] = ends(&outcome)[..] else { panic!("{:?}", outcome.log) };
    assert_eq!(nanos, 1024 / 2 * 1_500_000);
    assert_eq!(after(&outcome), [0.0, 4_000.0]);
}

/// In none of these is a command of the guest lost: its four threads go on.
#[test]
fn a_copy_that_cannot_go_on_leaves_the_disk_where_it_is() {
    let event = |at: &str, what: &str| format!("[[event]]\nat = \"{at}\"\n{what}\n");
    let power = event("2100ms", "vm = \"db\"\npower = \"off\"")
        + &event("3s", "vm = \"db\"\npower = \"on\"");
    let reboot = event("2100ms", "host = \"esx\"\nreboot = true");
    let lost = event("2100ms", "datastore = \"new\"\nstate = \"lost\"");
    for (why, rest) in [("power", power), ("reboot", reboot), ("lost", lost)] {
        let outcome = run(&scenario(&text("1ms", &rest)), 1, &());
        assert_eq!(ends(&outcome), [CopyEnd::GivenUp], "{why}: {:?}", outcome.log);
        assert_eq!(after(&outcome), [8_000.0, 0.0], "{why}");
    }
}

/// What the data mover sent is not asked back: it goes on when the array does, and so do the guest's writes that are in one
/// place only.
#[test]
fn a_destination_that_is_silent_holds_the_copy() {
    let rest = r#"
[[event]]
at = "2100ms"
datastore = "new"
state = "silent"
[[event]]
at = "4100ms"
datastore = "new"
state = "up"
[[window]]
name = "silent"
from = "3s"
to = "4s"
"#;
    let outcome = run(&scenario(&text("1ms", rest)), 1, &());
    assert!(
        matches!(ends(&outcome)[..], [CopyEnd::Copied(2_767_000_000..2_770_000_000)]),
        "{:?}",
        outcome.log
    );
    assert_eq!(after(&outcome), [0.0, 4_000.0]);
    let recording = &outcome.windows[2][0].recording;
    assert_eq!(common::figure(recording, Kind::Vm, "db", Counter::Commands), 0.0);
}

#[test]
fn a_copy_outlives_a_reboot_of_the_guest() {
    let rest = "[[event]]\nat = \"2100ms\"\nvm = \"db\"\nreboot = true";
    let outcome = run(&scenario(&text("1ms", rest)), 1, &());
    assert!(matches!(ends(&outcome)[..], [CopyEnd::Copied(768_000_000)]), "{:?}", outcome.log);
    assert_eq!(after(&outcome), [0.0, 4_000.0]);
}

/// The disk that is removed is the one that is there; what there is of it elsewhere goes too.
#[test]
fn a_disk_that_is_removed_while_it_is_copied_is_gone() {
    let rest = "[[event]]\nat = \"2100ms\"\nremove = { vm = \"db\", disk = \"scsi0:1\" }";
    let outcome = run(&scenario(&text("1ms", rest)), 1, &());
    assert_eq!(ends(&outcome), [CopyEnd::GivenUp]);
    assert!(!outcome.log.iter().any(|line| matches!(line.what, Logged::Refused(_))));
    assert_eq!(after(&outcome), [0.0, 0.0]);
}

#[test]
fn a_run_that_ends_before_the_copy_says_what_is_left() {
    let long = text("1ms", "").replace("size = \"1g\", chunk", "size = \"64g\", chunk");
    let outcome = run(&scenario(&long), 1, &());
    let [CopyEnd::Unfinished(bytes)] = ends(&outcome)[..] else { panic!("{:?}", outcome.log) };
    // Two chunks of 1 MiB each 1.5 ms, for 18 s: 24,000 of 65,536, the last two of which end as the run does: too late.
    assert_eq!(bytes, (65_536 - 23_998) << 20);
}

/// Nothing is left where the disk was: its datastore can go.
#[test]
fn the_datastore_that_is_empty_after_a_copy_can_be_removed() {
    let rest = "[[event]]\nat = \"10s\"\nremove = { datastore = \"old\" }";
    let outcome = run(&scenario(&text("1ms", rest)), 1, &());
    assert!(!outcome.log.iter().any(|line| matches!(line.what, Logged::Refused(_))));
    assert_eq!(after(&outcome), [0.0, 4_000.0]);
}

/// Both places keep the limit of the disk, whenever it is set; and an event that finds it being copied is refused.
#[test]
fn what_is_set_meanwhile_holds_in_both_places() {
    let rest = r#"
[[event]]
at = "2100ms"
vm = "db"
allocation = { disk = "scsi0:1", limit = 100 }
[[event]]
at = "2200ms"
vm = "db"
migrate = { datastore = "old" }
[[window]]
name = "meanwhile"
from = "2200ms"
to = "2700ms"
"#;
    let outcome = run(&scenario(&text("1ms", rest)), 1, &());
    assert_eq!(after(&outcome), [0.0, 100.0]);
    let recording = &outcome.windows[2][0].recording;
    let meanwhile = common::figure(recording, Kind::VirtualDisk, "db:scsi0:1", Counter::Commands);
    assert_eq!(meanwhile, 100.0);
    let refused = outcome.log.iter().filter_map(|line| match &line.what {
        Logged::Refused(why) => Some(why.as_str()),
        _ => None,
    });
    let refused: Vec<_> = refused.collect();
    assert_eq!(refused, ["virtual disk `db:scsi0:1@new` is being copied"]);
}

/// A write that two places have to end takes as long as the slower one; there and back leaves nothing behind.
#[test]
fn a_disk_is_copied_there_and_back() {
    let rest = r#"
[[event]]
at = "6s"
vm = "db"
migrate = { datastore = "old", copy = { size = "1g", chunk = "1m", outstanding = 2 } }
"#;
    let outcome = run(&scenario(&text("1ms", rest)), 1, &());
    assert!(matches!(ends(&outcome)[..], [CopyEnd::Copied(a), CopyEnd::Copied(b)] if a == b));
    assert_eq!(after(&outcome), [8_000.0, 0.0]);
}

/// The array copies between its own VMFS volumes, where it can and may; else the host does, which is seen in what is read: 1 GiB
/// in a second, or none of it.
#[test]
fn the_array_copies_where_it_can_and_may() {
    let copy = "[[window]]\nname = \"copy\"\nfrom = \"2s\"\nto = \"3s\"\n";
    let off = "[[event]]\nat = \"1s\"\nesxcli = \"system settings advanced set -o /DataMover/HardwareAcceleratedMove -i 0\"\n";
    let one = |text: String| {
        text.replace("[datastore.new]\narray = \"there\"", "[datastore.new]\narray = \"here\"")
    };
    let can = |text: String| text.replace("\"0.5ms\"", "\"0.5ms\"\nxcopy = \"4096MiB/s\"");
    let nfs = |text: String| text.replace("[datastore.old]", "[datastore.old]\nkind = \"nfs\"");
    for (what, text, expected_mib) in [
        ("one array", can(one(text("0.5ms", copy))), 0.0),
        ("one that cannot", one(text("0.5ms", copy)), 1024.0),
        ("two arrays", can(text("0.5ms", copy)), 1024.0),
        ("NFS", nfs(can(one(text("0.5ms", copy)))), 1024.0),
        ("off", can(one(text("0.5ms", &format!("{copy}{off}")))), 1024.0),
    ] {
        let outcome = run(&scenario(&text), 1, &());
        assert!(matches!(ends(&outcome)[..], [CopyEnd::Copied(_)]), "{what}: {:?}", outcome.log);
        let recording = &outcome.windows[2][0].recording;
        let kinds = [Kind::Device, Kind::NfsVolume].into_iter();
        let rows = kinds.flat_map(|kind| recording.of_kind(kind));
        let read = rows.filter_map(|(row, _)| recording.value(row, Counter::MbRead, 0));
        let read: f64 = read.sum();
        assert_eq!(read, expected_mib, "{what}");
    }
}

/// Hosts that run apart copy as those that run together.
#[test]
fn copies_are_the_same_on_any_number_of_threads() {
    let copies = text("1ms", "[host.other]\ncount = 20\nadapter.vmhba1.driver = \"fnic\"\n")
        .replace("queue = \"shared\"\n", "queue = \"shared\"\nround_trip = \"0.1ms\"\n")
        .replace("[vm.db]", "[vm.db]\ncount = 40\nhost = [\"esx\", \"other\"]")
        .replace("duration = \"20s\"", "duration = \"4s\"")
        .replace("from = \"15s\"\nto = \"20s\"", "from = \"3s\"");
    let scenario = scenario(&copies);
    let [one, many] = [1, 8].map(|threads| run(&scenario, threads, &()));
    assert_eq!(ends(&one).len(), 40);
    assert_eq!(format!("{one:?}"), format!("{many:?}"));
}
