//! Storage policies in runs: what is proposed of a disk that has one can be taken back, and what is asked of
//! one is answered.

mod common;

use common::json;
use serde_json::Value;

/// Web is held by gold, its limit is lifted and set again, and then gold says something else.
const SITE: &str = r#"
title = "t"
duration = "40s"
warmup = "1s"
sample = "1s"
esxi = "7.0"
array.flash = { servers = 16, service = "0.4ms" }
host.esx.adapter.vmhba1 = { driver = "qlnativefc" }
datastore.shared = {}
storage_policy.gold = { limit = 2_000 }

[vm.web]
guest = "linux"
disk."scsi0:1" = { datastore = "shared", storage_policy = "gold" }
workload = { threads = 8 }

[[window]]
name = "before"
to = "10s"

[[window]]
name = "after"
from = "30s"
"#;

/// A run of the site with some events.
fn run(events: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("made.toml");
    std::fs::write(&file, format!("{SITE}{events}")).unwrap();
    json(&["run", "--json", file.to_str().unwrap()])
}

/// A window of a run.
fn window<'a>(run: &'a Value, name: &str) -> &'a Value {
    let mut windows = run["windows"].as_array().unwrap().iter();
    windows.find(|window| window["name"] == name).unwrap()
}

/// The limit that is found in a window.
fn limit<'a>(run: &'a Value, name: &str) -> &'a Value {
    let findings = window(run, name)["verdicts"][0]["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["cause"] == "iops-limit").unwrap()
}

/// An event of a line.
fn event(at: u32, line: &Value) -> String {
    format!("[[event]]\nat = \"{at}s\"\nesxcli = {line}\n")
}

#[test]
fn the_undo_of_a_limit_gives_the_storage_policy_back() {
    let later = "[[event]]\nat = \"25s\"\nstorage_policy = { name = \"gold\", limit = 500 }\n";
    let found = run("");
    let found = limit(&found, "before");
    let sentence = found["sentence"].as_str().unwrap();
    assert!(sentence.contains("of 2,000, of its storage policy gold:"), "{sentence}");
    let change = &found["changes"][0];
    let risk = change["risk"].as_str().unwrap();
    assert!(risk.contains("takes a disk from its storage policy, gold"), "{risk}");
    let step = &change["steps"][0];
    assert_eq!(step["set"], "web:scsi0:1: DiskLimitIOPerSecond -1");
    assert_eq!(step["undo"], "web:scsi0:1: StoragePolicy gold");
    // Both lines typed, the disk follows its policy as before.
    let back = run(&[event(10, &step["set"]), event(20, &step["undo"]), later.into()].concat());
    let sentence = limit(&back, "after")["sentence"].as_str().unwrap();
    assert!(sentence.contains("its IOPS limit of 500, of its storage policy gold"), "{sentence}");
    // With a number of its own at the end it is that which is named and given back.
    let own = Value::from("web: DiskLimitIOPerSecond 700");
    let own = run(&[event(20, &own), later.into()].concat());
    let own = limit(&own, "after");
    assert!(!own["sentence"].as_str().unwrap().contains("gold"));
    assert_eq!(own["changes"][0]["steps"][0]["undo"], "web:scsi0:1: DiskLimitIOPerSecond 700");
}

/// What is said beside the figures of a window.
fn notes(site: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("made.toml");
    std::fs::write(&file, site).unwrap();
    let run = json(&["run", "--json", file.to_str().unwrap()]);
    window(&run, "after")["notes"].to_string()
}

#[test]
fn reservations_that_cannot_be_kept_are_told() {
    let with = |gold: &str| notes(&SITE.replace("{ limit = 2_000 }", gold));
    assert_eq!(with("{ limit = 2_000, reservation = 2_000 }"), "[]");
    let told = "[\"web:scsi0:1 has a reservation of 2001, above its IOPS limit of 2000\"]";
    assert_eq!(with("{ limit = 2_000, reservation = 2_001 }"), told);
    // What an event changes before the window is as good.
    let event = |says: &str| {
        let policy = format!("storage_policy = {{ name = \"gold\", {says} }}");
        format!("{SITE}[[event]]\nat = \"20s\"\n{policy}\n")
    };
    assert_eq!(notes(&event("reservation = 2_001")), told);
    let lifted =
        event("limit = 4_000").replace("limit = 2_000", "limit = 2_000, reservation = 2_001");
    assert_eq!(notes(&lifted), "[]");
}

#[test]
fn reservations_beyond_what_a_device_does_are_told() {
    let slow = SITE.replace("servers = 16, service = \"0.4ms\"", "servers = 2, service = \"4ms\"");
    let slow = slow.replace("threads = 8", "threads = 96");
    let with = |reservation: u32| {
        notes(&slow.replace("limit = 2_000", &format!("reservation = {reservation}")))
    };
    let is_told = |told: &str, does: f64| {
        let (_, said) = told
            .split_once(" I/Os a second are reserved, more than the ")
            .unwrap_or_else(|| panic!("{told}"));
        let said: f64 = said.split(' ').next().unwrap().replace(',', "").parse().unwrap();
        assert!((said / does - 1.0).abs() < 0.01, "{told}");
    };
    assert_eq!(with(400), "[]");
    // Two servers do 500 of 4 KiB, and of 64 KiB as many, which are two units each.
    is_told(&with(530), 500.0);
    // Where a window that goes by shares leaves it few slots, that is the reason.
    let shared = slow.replace("shared = {}", "shared = { congestion_threshold = \"5ms\" }");
    let shared = notes(&shared.replace("limit = 2_000", "reservation = 530"));
    let why = "in the DQLEN that Storage I/O Control leaves it, which goes by shares";
    assert!(shared.contains(why) && !with(530).contains(why), "{shared}");
    let large = slow.replace("threads = 96", "threads = 96, size = \"64k\"");
    let with_large = |reservation: u32| {
        notes(&large.replace("limit = 2_000", &format!("reservation = {reservation}")))
    };
    assert_eq!(with_large(900), "[]");
    is_told(&with_large(1_030), 1000.0);
    // What is reserved is what an event made of it.
    let event = |at: u32, reservation: u32| {
        let event = format!("storage_policy = {{ name = \"gold\", reservation = {reservation} }}");
        format!("\n[[event]]\nat = \"{at}s\"\n{event}\n")
    };
    assert_eq!(
        notes(&format!(
            "{}{}",
            slow.replace("limit = 2_000", "reservation = 4_000"),
            event(20, 400)
        )),
        "[]"
    );
    is_told(&notes(&format!("{slow}{}", event(20, 4_000))), 500.0);
}

/// A virtual machine that went to another host is one.
#[test]
fn a_vm_that_migrates_is_counted_once() {
    let site = SITE.replace(
        "[vm.web]\n",
        "[host.other.adapter.vmhba1]\ndriver = \"qlnativefc\"\n\n[vm.web]\nhost = \"esx\"\n",
    );
    let event = |what: &str| format!("{site}[[event]]\nat = \"20s\"\nvm = \"web\"\n{what}\n");
    assert_eq!(notes(&event("migrate = \"other\"")), "[]");
    assert!(notes(&event("power = \"off\"")).contains("0 VMs on at its end, 1 when the run began"));
}

/// Numbers for adaptive throttling that never throttle, which ESXi takes for a host and refuses for a device.
#[test]
fn a_threshold_that_no_sample_reaches_is_told() {
    let set = |size: u32, threshold: u32| {
        let option = |name: &str, value: u32| {
            format!("\"system settings advanced set -o /Disk/QFull{name} -i {value}\"")
        };
        let lines = [option("SampleSize", size), option("Threshold", threshold)].join(", ");
        notes(&SITE.replacen("esxi =", &format!("esxcli = [{lines}]\nesxi ="), 1))
    };
    let told = "[\"host esx: adaptive throttling never acts by /Disk/QFullThreshold of 8, above \
                /Disk/QFullSampleSize of 4: no 4 results have 8 that are bad\"]";
    assert_eq!(set(4, 8), told);
    assert_eq!(set(8, 8), "[]");
    assert_eq!(set(0, 8), "[]");
    let event = "[[event]]\nat = \"20s\"\nesxcli = \"system settings advanced set -o /Disk/QFullSampleSize -i 4\"\n";
    assert_eq!(notes(&format!("{SITE}{event}")), told);
}

/// Two hosts that one array refuses are not equal where it answers at once.
#[test]
fn refusals_without_a_round_trip_are_told() {
    let full = SITE.replace("servers = 16", "servers = 2, queue_limit = 4");
    let full =
        full.replace("limit = 2_000", "shares = 1_000").replace("threads = 8", "threads = 32");
    assert_eq!(notes(&full), "[]");
    let web = full.split_once("[vm.web]").unwrap().1.split_once("[[window]]").unwrap().0;
    let other =
        "[host.other.adapter.vmhba1]\ndriver = \"qlnativefc\"\n\n[vm.web]\nhost = \"esx\"\n";
    let both = full.replace("[vm.web]\n", other);
    let both = both.replacen("[[window]]", &format!("[vm.db]\nhost = \"other\"{web}[[window]]"), 1);
    assert_eq!(
        notes(&both),
        "[\"array flash: it refuses commands and has no `round_trip`: those whom it refuses ask again at one \
         instant and in one order, and the first may have every place\"]"
    );
    let apart = both.replace("servers = 2", "round_trip = \"0.1ms\", servers = 2");
    assert_eq!(notes(&apart), "[]");
}
