//! `kavg remedy` on scenarios of its own: groups, locks of a datastore, and a neighbour that is not always at work.

mod common;

use std::fs;

use common::{json, kavg, mean, remedies};
use serde_json::Value;

/// A group at work, and one beside it.
const GROUP: &str = r#"
title = "A group beside another"
duration = "4s"
warmup = "1s"
[array.a]
servers = 4
service = "0.5ms"
[host.esx.adapter.vmhba1]
driver = "qlnativefc"
[datastore.d]
[datastore.free]
[vm.db]
count = 2
guest = "linux"
[vm.db.disk."scsi0:1"]
datastore = "d"
[vm.db.workload]
threads = 32
[vm.quiet]
guest = "linux"
[vm.quiet.disk."scsi0:1"]
datastore = "d"
[vm.quiet.workload]
threads = 1
"#;

/// Two hosts that lock one datastore.
const LOCKED: &str = r#"
title = "Locks of a datastore"
duration = "8s"
warmup = "1s"
[array.a]
servers = 32
service = "2ms"
[host.esx]
count = 2
[host.esx.adapter.vmhba1]
driver = "qlnativefc"
[datastore.shared]
[datastore.shared.metadata]
rate = 10
lock = "scsi2"
[vm.a]
host = "esx-1"
[vm.a.disk."scsi0:1"]
datastore = "shared"
[vm.a.workload]
threads = 8
[vm.b]
host = "esx-2"
[vm.b.disk."scsi0:1"]
datastore = "shared"
[vm.b.workload]
threads = 8
"#;

/// Of a group (`count`) one VM is moved, whichever of the two it is; as in a file that deals the group to the two.
#[test]
fn one_of_a_group_is_moved_to_another_datastore_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let dealt = GROUP.replace("\"d\"\n[vm.db.w", "[\"d\", \"free\"]\n[vm.db.w");
    let (file, dealt) = (file("group.toml", GROUP), file("dealt.toml", &dealt));
    let of = |file: &str, good: &str, bad: &str| {
        json(&["remedy", file, "--json", "--good", good, "--bad", bad])
    };
    let there = of(&dealt, "quiet", "db-1");
    for (good, bad) in [("quiet", "db-2"), ("db-2", "quiet")] {
        let value = of(&file, good, bad);
        let moved = |vm: &str| {
            let what = format!("{vm} on datastore free");
            remedies(&value).iter().find(|one| one["what"] == what).expect(&what).clone()
        };
        assert_eq!(
            moved("db-2")["by_hand"],
            serde_json::json!(["Move-VM -VM 'db-2' -Datastore 'free'"])
        );
        let quiet = if good == "quiet" { "good_iops" } else { "bad_iops" };
        assert_eq!(
            mean(&moved("db-2"), quiet),
            mean(&serde_json::json!({ "figures": there["as_it_is"] }), "good_iops")
        );
        moved("quiet");
    }
}

/// An option of the hosts where that makes reservations of locks, else another datastore; either is what a file
/// whose metadata is locked by ATS does, and where there is none, none is proposed.
#[test]
fn locks_by_reservations_are_those_by_ats() {
    const OFF: &str = "system settings advanced set -o /VMFS3/HardwareAcceleratedLocking -i";
    let folder = tempfile::tempdir().unwrap();
    let ask = |locks: &str| {
        let file = folder.path().join("locked.toml");
        fs::write(&file, LOCKED.replace("rate = 10\nlock = \"scsi2\"", locks)).unwrap();
        json(&["remedy", file.to_str().unwrap(), "--good", "a", "--bad", "b", "--json"])
    };
    let of = |value: &Value, list: &str| {
        let all = value[list].as_array().unwrap().iter();
        all.filter(|one| one["key"] == "locks").cloned().collect::<Vec<_>>()
    };
    let ats = ask("rate = 10\nlock = \"ats\"");
    assert_eq!(of(&ats, "refused")[0]["why"], "no lock of shared is a SCSI reservation");
    let stuck = "rate = 10\nlock = \"scsi2\"\nstuck = { host = \"esx-2\", start = \"2s\" }";
    for locks in ["rate = 10\nlock = \"scsi2\"", stuck] {
        let value = ask(locks);
        let [one] = &of(&value, "remedies")[..] else { panic!("{locks}: {value}") };
        assert_eq!(one["figures"], ats["as_it_is"], "{locks}");
        assert!(one["by_hand"][0].as_str().unwrap().contains("ATS-only"), "{one}");
        assert!(one["gain"].as_f64().unwrap() > 0.3, "{one}");
        let own = |one: &&Value| one["what"] == "a device of its own for a";
        let own = remedies(&value).iter().find(own).unwrap();
        assert!(mean(own, "good_iops") > 0.95 * mean(one, "good_iops"), "{own}");
    }
    let file = folder.path().join("locked.toml");
    fs::write(&file, LOCKED.replace("\"scsi2\"", "\"ats\"")).unwrap();
    let file = file.to_str().unwrap();
    let vms = ["--good", "a", "--bad", "b", "--json", "--set", &format!("{OFF} 0")];
    let value = json(&[&["remedy", file], &vms[..]].concat());
    let [one] = &of(&value, "remedies")[..] else { panic!("{value}") };
    assert_eq!(one["commands"], serde_json::json!([format!("esxcli {OFF} 1")]));
    assert_eq!(one["figures"], ats["as_it_is"]);
}

/// Conflicts have no VM that is their cause: what is to be done about them is told.
#[test]
fn where_nobody_is_to_blame_the_refusal_says_what_the_diagnosis_does() {
    let folder = tempfile::tempdir().unwrap();
    let [file, journal] = ["locked.toml", "locked.j"].map(|name| folder.path().join(name));
    fs::write(&file, LOCKED).unwrap();
    let [file, journal] = [&file, &journal].map(|path| path.to_str().unwrap());
    assert_eq!(kavg(&["run", file, "-q", "--journal", journal]).code, 0);
    for source in [file, journal] {
        let said = kavg(&["remedy", source]);
        assert_eq!((said.code, said.out.as_str()), (2, ""));
        let line = said.err.lines().last().unwrap();
        for words in ["SCSI reservation conflicts", "ATS", "; say which with --good VM --bad VM"] {
            assert!(line.contains(words), "{words}: {line}");
        }
    }
}

/// A VM that is at work for a third of the window: its limits are below what it does then, and hold it.
#[test]
fn a_limit_is_below_what_the_bad_one_does_while_it_is_at_work() {
    let folder = tempfile::tempdir().unwrap();
    let limits = |duration: &str, stop: &str| {
        let text = GROUP.replace("count = 2\n", "").replace("4s", duration);
        let text = text.replace("warmup", "sample = \"0.5s\"\nwarmup");
        let text = text.replace("threads = 32", &format!("threads = 32\nrate = 3000{stop}"));
        let file = folder.path().join("paused.toml");
        fs::write(&file, format!("{text}\n")).unwrap();
        let file = file.to_str().unwrap();
        let value = json(&["remedy", file, "--json", "--good", "quiet", "--bad", "db"]);
        let limits = remedies(&value).iter().filter(|one| one["key"] == "iops-limit");
        let each = limits.map(|one| {
            let what: Vec<_> = one["what"].as_str().unwrap().split(' ').collect();
            (what[4].parse::<f64>().unwrap(), mean(one, "bad_iops"))
        });
        each.collect::<Vec<_>>()
    };
    let all = limits("4s", "");
    // From 1 s, after the warm-up, to 4 s of 10 s.
    let third = limits("10s", "\nstop = \"4s\"");
    assert_eq!((all.len(), third.len()), (2, 2));
    for ((at, does), (limit, left)) in all.into_iter().zip(third) {
        assert!((limit / at - 1.0).abs() < 0.02, "{limit}, {at}");
        assert!((left / does - 1.0 / 3.0).abs() < 0.02, "{left}, {does}");
    }
}

/// Beside a device that showed the depth of the driver, alone with its VM: of the other one, on which VMs compete,
/// that depth is not recorded, and that is what is said.
#[test]
fn a_depth_that_another_device_showed_is_not_that_of_this_one() {
    let folder = tempfile::tempdir().unwrap();
    let [file, csv] = ["two.toml", "two.csv"].map(|name| folder.path().join(name));
    let alone =
        "[vm.alone.disk.\"scsi0:1\"]\ndatastore = \"free\"\n[vm.alone.workload]\nthreads = 16\n";
    let text = GROUP
        .replace("count = 2\n", "")
        .replace("4s", "20s")
        .replace("threads = 32", "threads = 60");
    fs::write(&file, format!("{text}{alone}")).unwrap();
    let [file, csv] = [&file, &csv].map(|path| path.to_str().unwrap());
    assert_eq!(kavg(&["run", file, "-q", "--csv", csv]).code, 0);
    let value = json(&["remedy", csv, "--json", "--good", "quiet", "--bad", "db"]);
    let refused = value["refused"].as_array().unwrap().iter().find(|one| one["key"] == "dsnro");
    let why = refused.unwrap()["why"].as_str().unwrap();
    assert!(why.contains("does not show how deep naa.") && why.contains("--esxcli"), "{why}");
}

/// An array that answers TASK SET FULL or BUSY to the twenty-first command, of which no model is one.
#[test]
fn a_full_array_is_no_limit_of_a_vm() {
    let folder = tempfile::tempdir().unwrap();
    for full in ["task-set-full", "busy"] {
        let [file, csv] = ["full.toml", "full.csv"].map(|name| folder.path().join(name));
        let array = format!(
            "service = \"1ms\"\nround_trip = \"0.2ms\"\nlun_queue_limit = 20\nfull = \"{full}\""
        );
        let text =
            GROUP.replace("servers = 4\nservice = \"0.5ms\"", &format!("servers = 1024\n{array}"));
        let text = text
            .replace("4s", "40s")
            .replace("count = 2", "count = 1")
            .replace("threads = 1\n", "threads = 20\n");
        fs::write(&file, text).unwrap();
        let [file, csv] = [&file, &csv].map(|path| path.to_str().unwrap());
        assert_eq!(kavg(&["run", file, "-q", "--csv", csv]).code, 0);
        let said = kavg(&["remedy", csv, "--good", "quiet", "--bad", "db-1"]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{full}");
        let why = "wait in the host while it has slots free, as where the array answers TASK SET FULL or BUSY";
        assert!(said.err.contains(why), "{full}: {}", said.err);
        let line = "db-1: DiskLimitIOPerSecond 2000";
        let answer = json(&["whatif", csv, "--json", "--set", line]);
        let doubts = answer["answers"][0]["simulated"]["doubts"].to_string();
        assert!(doubts.contains(why), "{full}: {doubts}");
    }
}

/// Storage I/O Control that is on is no remedy, but a higher threshold or none of it is; DSNRO, which it sets aside, is
/// not.
#[test]
fn what_is_on_already_is_no_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("on.toml");
    let refused = |text: &str| {
        fs::write(&file, text).unwrap();
        let vms = ["--json", "--good", "quiet", "--bad", "db"];
        let value = json(&[&["remedy", file.to_str().unwrap()], &vms[..]].concat());
        let whys = value["refused"].as_array().unwrap().iter();
        let whys = whys.filter(|one| ["sioc", "dsnro"].iter().any(|key| one["key"] == *key));
        whys.map(|one| one["why"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let off = GROUP.replace("count = 2\n", "");
    let none: [&str; 0] = [];
    assert_eq!(refused(&off), none);
    let on = off.replace("[datastore.d]", "[datastore.d]\ncongestion_threshold = \"30ms\"");
    assert_eq!(refused(&on), ["Storage I/O Control sets DSNRO aside"]);
    let value =
        json(&["remedy", file.to_str().unwrap(), "--json", "--good", "quiet", "--bad", "db"]);
    let own = remedies(&value).iter().filter(|one| one["key"] == "sioc");
    let whats: Vec<&str> = own.map(|one| one["what"].as_str().unwrap()).collect();
    assert_eq!(whats.len(), 2, "{whats:?}");
    for what in ["congestion threshold 50 ms", "no Storage I/O Control"] {
        assert!(whats.contains(&what), "{whats:?}");
    }
}

/// Two hosts come to an array by different controllers: one of them, or either with MRU, is what a file says that
/// has it so.
#[test]
fn hosts_that_thrash_an_array_are_to_stay_with_one_controller() {
    let vms = ["--window", "fixed", "--good", "v-1", "--bad", "v-2", "--json"];
    let value = json(&[&["remedy", "path-thrash"], &vms[..]].concat());
    let of = |key: &str| remedies(&value).iter().find(|one| one["key"] == key).unwrap();
    let mru = of("path-policy");
    let line =
        "esxcli storage nmp device set -d naa.60000000000000000000000000000001 -P VMW_PSP_MRU";
    assert_eq!((&mru["place"], &mru["commands"]), (&1.into(), &serde_json::json!([line])));
    // Both take the path to the owner: 8 / 0.5 ms each.
    assert!((mean(mru, "good_iops") / 16_000.0 - 1.0).abs() < 0.005, "{mru}");
    // With Fixed each takes its first path, whoever has the volume: 8 in two takeovers of 50 ms.
    let owner = of("owner");
    assert_eq!(
        owner["by_hand"],
        serde_json::json!(["on array a: the volume of shared to controller 2"])
    );
    assert!((mean(owner, "good_iops") / 80.0 - 1.0).abs() < 0.02, "{owner}");
}
