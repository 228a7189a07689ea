//! `kavg remedy`: each remedy is what a run of a file that says it does, and they are ranked as those
//! found who had the case.

mod common;

use std::{collections::BTreeSet, fs};

use common::{Said, data, every_key, json, kavg, mean, remedies};
use serde_json::Value;
use tempfile::TempDir;

const NOISY: &str = include_str!("../../../scenarios/noisy-neighbour.toml");
const S4: &str = include_str!("../../../scenarios/s4-solidfire.toml");

/// S4's scenario as far as a window that begins when DQLEN has fallen and lasts some reads of the good
/// one, with something else in place of something.
fn s4(folder: &TempDir, name: &str, turned: &[(&str, &str)]) -> String {
    let (text, _) = S4.split_once("[[window]]\nname = \"spent\"").unwrap();
    let mut text = text.replace("duration = \"120s\"", "duration = \"18s\"");
    text = text.replace("to = \"55s\"", "to = \"18s\"");
    for (was, is) in turned {
        assert!(text.contains(was), "{was}");
        text = text.replace(was, is);
    }
    let file = folder.path().join(name);
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A command of the quiet one is let through every 32 seconds, unless a policy frees it.
const STARVED: &str = r#"
title = "One that gets nothing"
duration = "10s"
warmup = "1s"
[array.a]
servers = 4
service = "0.5ms"
[host.esx.adapter.vmhba1]
driver = "qlnativefc"
[datastore.d]
[vm.loud]
guest = "linux"
[vm.loud.disk."scsi0:1"]
datastore = "d"
[vm.loud.workload]
threads = 32
[storage_policy.free]
shares = "high"
[vm.quiet]
guest = "linux"
[vm.quiet.disk."scsi0:1"]
datastore = "d"
limit = 1
[vm.quiet.workload]
threads = 1
size = "1m"
"#;

#[test]
fn a_table_ranks_what_can_be_done_with_its_commands() {
    let said = kavg(&["remedy", "s4-solidfire", "--window", "burst"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!(said.out);
}

/// What the author of S4 tried: the problem did not come with one I/O outstanding, with the VMs on two
/// devices (VMFS and vVols), and after the good one was migrated off the host; queues of 256 brought it
/// back to about 1 ms, and 3 to 4 ms are normal. iSCSI commands of 512 KB "didn't have any impact on this
/// problem". Latencies were 300 to 400 ms.
#[test]
fn what_helped_in_the_article_is_ranked_before_what_did_not() {
    const HELPED: [&str; 4] = ["queues", "own-device", "own-host", "outstanding"];
    let folder = tempfile::tempdir().unwrap();
    let file = s4(&folder, "s4.toml", &[]);
    for seed in 1..=20 {
        let value = json(&["remedy", &file, "--json", "--seed", &seed.to_string()]);
        assert_eq!((&value["good"], &value["bad"]), (&"good".into(), &"bad".into()));
        let is_harmed = |ms: f64| (300.0..=400.0).contains(&ms);
        assert!(is_harmed(value["as_it_is"]["good_ms"]["mean"].as_f64().unwrap()), "{seed}");
        let places = |key: &str| -> Vec<(usize, f64)> {
            let all = remedies(&value).iter().enumerate().filter(|(_, one)| one["key"] == key);
            all.map(|(place, one)| (place, mean(one, "good_ms"))).collect()
        };
        let [(no_impact, ms)] = places("iscsi-size")[..] else { panic!("seed {seed}") };
        assert!(is_harmed(ms), "seed {seed}: {ms}");
        for key in HELPED {
            let own = places(key);
            assert!(!own.is_empty(), "{key}, seed {seed}");
            for (place, ms) in own {
                assert!(ms <= 4.0 && place < no_impact, "{key}, seed {seed}: {ms} at {place}");
            }
        }
    }
}

/// Against runs of files that say themselves what the remedy does.
#[test]
fn a_remedy_does_what_a_file_that_says_so_does() {
    let folder = tempfile::tempdir().unwrap();
    let policy = (
        "[[window]]\nname = \"burst\"",
        "[storage_policy.slow]\nlimit = 205\n\n[[window]]\nname = \"burst\"",
    );
    let file = s4(&folder, "s4.toml", &[policy]);
    let value = json(&["remedy", &file, "--json"]);
    let good = "[vm.good.disk.\"scsi0:0\"]\ndatastore = \"vvols\"\nqos = \"bronze\"";
    let bad = "[vm.bad.disk.\"scsi0:0\"]\ndatastore = \"vvols\"\nqos = \"bronze\"";
    let on_vmfs = "[vm.good.disk.\"scsi0:0\"]\ndatastore = \"vmfs\"";
    let gold = bad.replace("bronze", "gold");
    let limited = format!("{bad}\nlimit = 205");
    let slow = format!("{bad}\nstorage_policy = \"slow\"");
    let vmfs = "[datastore.vmfs]\nqos = \"bronze\"\nbackend = \"memory\"\n\n[vm.bad]";
    let two_hosts = "[host.other.adapter.vmhba64]\ndriver = \"iscsi_vmk\"\n\n[host.other.nbd]\n\
                     socket = \"other.sock\"\n\n[vm.bad]\nhost = \"esx\"";
    let half = "[vm.bad.disk.\"scsi1:0\"]\ndatastore = \"vvols\"\nqos = \"bronze\"\n\
                size = \"1g\"\n\n\
                [vm.bad.workload]\ndisk = \"scsi0:0\"";
    let other_half = "[[workload]]\nvm = \"bad\"\ndisk = \"scsi1:0\"\nthreads = 20\nread = \"0%\"\n\
                      size = \"512k\"\n\n[[window]]";
    let cases: [(&str, &[(&str, &str)]); 10] = [
        ("a device of its own for good", &[("[vm.bad]", vmfs), (good, on_vmfs)]),
        (
            "good on another, idle host",
            &[("[vm.bad]", two_hosts), ("[vm.good]", "[vm.good]\nhost = \"other\"")],
        ),
        ("policy gold of the array for bad", &[(bad, &gold)]),
        ("an IOPS limit of 205 on bad", &[(bad, &limited)]),
        ("storage policy slow for bad", &[policy, (bad, &slow)]),
        ("1 outstanding in bad's guest", &[("iodepth=8\nnumjobs=5", "iodepth=1\nnumjobs=1")]),
        (
            "twice the disks for bad",
            &[("[vm.bad.workload]", half), ("iodepth=8", "iodepth=4"), ("[[window]]", other_half)],
        ),
        ("DSNRO 128", &[("dsnro = 32", "dsnro = 128")]),
        ("sfq in the device queue", &[("dsnro = 32", "dsnro = 32\nscheduler = \"sfq\"")]),
        ("no policy of the array for bad", &[(bad, &bad.replace("\nqos = \"bronze\"", ""))]),
    ];
    for (what, turned) in cases {
        let remedy = remedies(&value).iter().find(|one| one["what"] == what);
        let remedy = remedy.unwrap_or_else(|| panic!("{what}: {:?}", value["remedies"]));
        let run = json(&["run", &s4(&folder, "turned.toml", turned), "--json"]);
        let window = run["windows"].as_array().unwrap().iter().find(|own| own["name"] == "burst");
        let hosts = window.unwrap()["hosts"].as_array().unwrap();
        let objects = hosts.iter().flat_map(|host| host["objects"].as_array().unwrap());
        let disks: Vec<_> = objects.filter(|own| own["kind"] == "virtual disk").collect();
        let figure = |vm: &str, counter: &str| {
            let own = disks.iter().filter(|own| own["name"].as_str().unwrap().starts_with(vm));
            own.filter_map(|own| own["counters"][counter].as_f64()).sum::<f64>()
        };
        let figures = [
            ("good_ms", figure("good:", "total")),
            ("good_iops", figure("good:", "cmds")),
            ("bad_iops", figure("bad:", "cmds")),
            ("bad_mib_per_s", figure("bad:", "mbwrtn")),
        ];
        for (key, expected) in figures {
            let own = mean(remedy, key);
            assert!((own - expected).abs() <= 1e-9 * expected, "{what}: {key} {own}, {expected}");
        }
    }
}

#[test]
fn every_key_of_the_json_is_documented() {
    let page = include_str!("../../../docs/reference/json.md");
    let (_, page) = page.split_once("# The JSON of remedies").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let value = json(&["remedy", &s4(&folder, "s4.toml", &[]), "--json", "--seeds", "2"]);
    assert_eq!(value["version"], 1);
    every_key(&value, &[], &mut |key| {
        assert!(page.contains(&format!("`{key}`")), "docs/reference/json.md lacks `{key}`");
    });
}

#[test]
fn one_question_has_one_answer_however_many_threads_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = s4(&folder, "s4.toml", &[]);
    let with = |threads| kavg(&["remedy", &file, "--json", "--threads", threads]).out;
    assert!(with("1") == with("3"));
}

/// The bad one is the VM that is said to be it, and what an event of the file does is not overridden.
#[test]
fn what_does_not_apply_is_told_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let event =
        "[[event]]\nat = \"1s\"\nvm = \"good\"\npower = \"off\"\n\n[[window]]\nname = \"burst\"";
    let event = [("[[window]]\nname = \"burst\"", event), ("to = \"18s\"", "to = \"17s\"")];
    let file = s4(&folder, "off.toml", &event);
    let said = kavg(&["remedy", &file, "--good", "good", "--bad", "bad"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let lines = [
        "good on another, idle host: an event of the file moves `good` or switches it\n",
        "twice the disks for good: an event of the file moves `good` or switches",
        "another datastore: the host sees no other, on a device of its own\n",
        "Storage I/O Control: it is for VMFS and NFS, and this is vVols\n",
        "adaptive throttling: no array of the host ever says that it is full (`queue_limit`)\n",
        "good suffers from bad; seed 1",
    ];
    for line in lines {
        assert!(said.out.contains(line), "{line}: {}", said.out);
    }
}

/// What `run --csv` writes of a scenario, and what esxcli says of its device.
struct Captured {
    folder: TempDir,
}

impl Captured {
    fn new(scenario: &str) -> Self {
        Self::of_seed(scenario, "1")
    }

    fn of_seed(scenario: &str, seed: &str) -> Self {
        let captured = Self { folder: tempfile::tempdir().unwrap() };
        let csv = captured.path("host.csv");
        let said = kavg(&["run", scenario, "-q", "--seed", seed, "--csv", &csv]);
        assert_eq!(said.code, 0, "{said:?}");
        captured
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn remedy(&self, arguments: &[&str]) -> Said {
        kavg(&[&["remedy", &self.path("host.csv")], arguments].concat())
    }

    fn with(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }
}

const DEVICES: &str = "naa.6f47acc100000000736f6c6964000001\n   \
    Devfs Path: /vmfs/devices/disks/naa.6f47acc100000000736f6c6964000001\n   \
    Device Max Queue Depth: 128\n   No of outstanding IOs with competing worlds: 32\n";
const ADAPTERS: &str = "\
HBA Name  Driver     Link State  UID                 Capabilities  Description
--------  ---------  ----------  ------------------  ------------  ----------------------
vmhba64   iscsi_vmk  online      iqn.1998-01.vmware                iSCSI Software Adapter
";

const EXTENTS: &str = "\
Volume Name  VMFS UUID                            Extent Number  Device Name                           Partition
-----------  -----------------------------------  -------------  ------------------------------------  ---------
fast         5c6f1a7e-9d3c5b1e-6f2a-0025b5aa0001              0  DEVICE          1
";

/// The first `count` remedies without their numbers.
fn first(value: &Value, count: usize) -> Vec<String> {
    let what =
        |one: &Value| one["what"].as_str().unwrap().replace(|c: char| c.is_ascii_digit(), "");
    remedies(value).iter().take(count).map(what).collect()
}

/// The author's case from its capture alone: what helps the good one most is the same.
#[test]
fn a_capture_of_s4_ranks_as_its_scenario_does() {
    let captured = Captured::new("s4-solidfire");
    let devices = captured.with("devices.txt", DEVICES);
    let adapters = captured.with("adapters.txt", ADAPTERS);
    let of_capture = captured.remedy(&["--json", "--esxcli", &devices, "--esxcli", &adapters]);
    let of_capture: Value = serde_json::from_str(&of_capture.out).unwrap();
    let of_scenario = json(&["remedy", "s4-solidfire", "--window", "burst", "--json"]);
    assert_eq!((&of_capture["good"], &of_capture["bad"]), (&"good".into(), &"bad".into()));
    assert_eq!(of_capture["diagnosed"], true);
    assert_eq!(first(&of_capture, 3), first(&of_scenario, 3));
    // And each of those is rid of what it waited for: in every model that gives what was recorded, but that a setting
    // has what `whatif` says of it besides, which goes further.
    let ends = |value: &Value, end: &str| value["good_ms"][end].as_f64().unwrap();
    let least = ends(&of_capture["as_it_is"], "low");
    for remedy in &remedies(&of_capture)[..3] {
        let is_set = remedy["commands"] != serde_json::json!([]);
        let end = if is_set { "mean" } else { "high" };
        assert!(ends(&remedy["figures"], end) < 0.05 * least, "{remedy}");
    }
    // What of the host's is not known has no command.
    let refused = captured.remedy(&[]);
    let lines = [
        "deeper queues: the recording does not show the driver of vmhba64 (--esxcli with",
        "DSNRO up to the depth of the device: the recording does not show how deep naa.6f47",
        "other shares: a recording does not tell what shares do",
        "another policy of the array: a recording does not tell what the array does under another",
        "What the ranges and the order rest on\n",
        "models of it: from the least to the most\n",
    ];
    for line in lines {
        assert!(refused.out.contains(line), "{line}: {}", refused.out);
    }
}

/// What a capture says is before another is no worse in the scenario that was captured: how deep the knee of a
/// disk is no capture tells, so the order may be open, but what is ordered is ordered as it is.
#[test]
fn what_a_capture_ranks_is_so_in_its_scenario() {
    /// As parts of what there was are alike in a scenario.
    const ALIKE: f64 = 0.01;
    let names = "naa.602000002a9483f74083457eda8f4a95,found\n";
    let disk = ["--good", "victim-plain", "--bad", "noisy-plain"];
    let cases: [(&str, &str, &str, &[&str]); 2] =
        [("noisy-neighbour", "beside", names, &disk), ("s4-solidfire", "burst", "", &[])];
    for (name, window, names, vms) in cases {
        let captured = Captured::new(name);
        let names = captured.with("names.txt", names);
        let said = captured.remedy(&[vms, &["--json", "--names", &names]].concat());
        let of_capture: Value = serde_json::from_str(&said.out).unwrap();
        let of_scenario = json(&["remedy", name, "--window", window, "--json"]);
        let gains = |value: &Value| -> Vec<(String, f64, f64)> {
            let of = |one: &Value| {
                (
                    one["what"].as_str().unwrap().to_owned(),
                    one["place"].as_f64().unwrap(),
                    one["gain"].as_f64().unwrap(),
                )
            };
            remedies(value).iter().map(of).collect()
        };
        let (own, known) = (gains(&of_capture), gains(&of_scenario));
        let gain = |kind: &str| known.iter().find(|one| one.0 == kind).map(|one| one.2);
        let mut ordered = 0;
        for (first, place, gained) in &own {
            for (second, behind, less) in &own {
                let (Some(true_first), Some(true_second)) = (gain(first), gain(second)) else {
                    continue;
                };
                if place < behind && gained - less > ALIKE {
                    assert!(true_first > true_second - ALIKE, "{name}: {first}, {second}");
                    ordered += 1;
                }
            }
        }
        assert!(ordered > 10, "{name}: {ordered}");
        assert!(of_capture["alike"].as_f64().unwrap() >= ALIKE);
    }
}

/// The disk of the scenario has a full link, which no model has: what is relieved of it is in the ranges all the
/// same, for the recording shows the good one while the bad one rests.
#[test]
fn what_less_load_gives_is_in_the_ranges_of_a_capture() {
    let vms = ["--good", "victim-plain", "--bad", "noisy-plain", "--json"];
    let captured = Captured::new("noisy-neighbour");
    let of_capture: Value = serde_json::from_str(&captured.remedy(&vms).out).unwrap();
    let scenario = ["remedy", "noisy-neighbour", "--window", "beside"];
    let of_scenario = json(&[&scenario[..], &vms].concat());
    for key in ["iops-limit", "depth-by-latency", "outstanding", "pvscsi"] {
        // The higher limit first.
        let of = |value: &Value| {
            let all = remedies(value).iter().filter(|one| one["key"] == key);
            let mut all: Vec<Value> = all.cloned().collect();
            all.sort_by(|a, b| mean(a, "bad_iops").total_cmp(&mean(b, "bad_iops")));
            all
        };
        let (own, truths) = (of(&of_capture), of(&of_scenario));
        assert!(!own.is_empty() && own.len() == truths.len(), "{key}");
        for (own, truth) in own.iter().zip(&truths) {
            for figure in ["good_ms", "good_iops"] {
                let ends = &own["figures"][figure];
                let range = ends["low"].as_f64().unwrap()..=ends["high"].as_f64().unwrap();
                // What changes nothing is held to what chance does.
                let (truth, ends) = (mean(truth, figure), [*range.start(), *range.end()]);
                let range = 0.99 * ends[0]..=1.01 * ends[1];
                assert!(range.contains(&truth), "{figure}: {own}: {truth}");
            }
        }
    }
}

/// A volume that its policy holds looks like an array that is full: what a capture says of what is done about it
/// has what is so in its scenario in its range, and the sentences say why it is wide. The capture is of the window that the
/// scenario is asked about, in which the credit is spent: a sample in which it ends is of both.
#[test]
fn the_policy_of_a_volume_is_in_the_ranges_of_a_capture() {
    let captured = Captured::new("s4-vmfs");
    let (all, spent) = (captured.path("all.csv"), captured.path("host.csv"));
    fs::rename(&spent, &all).unwrap();
    let cut = ["capture", "cut", &all, "--from", "01/01/2020 00:01:15", "-o", &spent];
    assert_eq!(kavg(&cut).code, 0);
    let text = captured.remedy(&[]).out;
    assert!(text.contains("held a volume to its rate by a policy"), "{text}");
    let of_capture: Value = serde_json::from_str(&captured.remedy(&["--json"]).out).unwrap();
    let of_scenario = json(&["remedy", "s4-vmfs", "--json"]);
    for value in [&of_capture, &of_scenario] {
        assert_eq!((&value["good"], &value["bad"]), (&"good".into(), &"bad".into()));
        assert_eq!(value["diagnosed"], true);
    }
    let kinds = ["own-device", "own-host", "disks", "scheduler"];
    let mut known = 0;
    for remedy in remedies(&of_capture) {
        let is_it = |own: &&Value| own["what"] == remedy["what"];
        let Some(truth) = remedies(&of_scenario).iter().find(is_it) else { continue };
        if kinds.iter().any(|kind| remedy["key"] == *kind) {
            let end = |end: &str| remedy["figures"]["good_ms"][end].as_f64().unwrap();
            let truth = mean(truth, "good_ms");
            assert!(0.99 * end("low") <= truth && truth <= 1.01 * end("high"), "{truth}: {remedy}");
            known += 1;
        }
    }
    assert_eq!(known, 6, "{of_capture}");
}

/// Four servers of 2 ms, and DSNRO 32 below a device that takes 64: only who is alone has them.
const BELOW_THE_DEPTH: &str = r#"
title = "More waits than DSNRO lets out"
duration = "20s"
warmup = "2s"
sample = "2s"
[array.a]
servers = 4
service = "2ms"
[host.esx.adapter.vmhba1]
driver = "qlnativefc"
[datastore.fast]
[vm.web]
guest = "linux"
[vm.web.disk."scsi0:0"]
datastore = "fast"
[vm.web.workload]
threads = 1
[vm.batch]
guest = "linux"
[vm.batch.disk."scsi0:0"]
datastore = "fast"
[vm.batch.workload]
threads = 60
"#;

/// What ends the competition lets out what the device takes, which a DQLEN that stood at DSNRO does not show: what
/// comes of it is in the range, and a sentence says what would tell.
#[test]
fn the_depth_above_dsnro_is_in_the_ranges_of_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("below.toml");
    fs::write(&file, BELOW_THE_DEPTH).unwrap();
    let file = file.to_str().unwrap();
    let captured = Captured::new(file);
    let vms = ["--good", "web", "--bad", "batch"];
    let text = captured.remedy(&vms).out;
    assert!(text.contains("from no more above it to all that a driver gives"), "{text}");
    let of_capture = captured.remedy(&[&vms[..], &["--json"]].concat()).out;
    let of_capture: Value = serde_json::from_str(&of_capture).unwrap();
    let of_scenario = json(&[&["remedy", file], &vms[..], &["--json"]].concat());
    let range = |value: &Value| ["low", "high"].map(|end| value["good_ms"][end].as_f64().unwrap());
    assert!(range(&of_capture["as_it_is"])[1] < 20.0, "{of_capture}");
    let mut known = 0;
    for remedy in remedies(&of_capture) {
        let is_it = |own: &&Value| own["what"] == remedy["what"];
        let Some(truth) = remedies(&of_scenario).iter().find(is_it) else { continue };
        if ["own-device", "own-host", "sioc"].iter().any(|key| remedy["key"] == *key) {
            let ([low, high], truth) = (range(&remedy["figures"]), mean(truth, "good_ms"));
            assert!(0.99 * low <= truth && truth <= 1.01 * high, "{truth}: {remedy}");
            known += 1;
        }
    }
    assert_eq!(known, 5, "{of_capture}");
}

const FAST: &str = "naa.60200000d228cb696f1ab3d94c2f523c";

/// Goes through the lines of the remedies of a capture: what `whatif` says of one is within the range of its remedy.
/// The kinds that it answers to.
fn hold_what_whatif_says(capture: &str, of_remedy: &Value, shared: &[&str]) -> BTreeSet<String> {
    let name = |key: &str| of_remedy[key].as_str().unwrap();
    let figures = [
        (name("good"), "GAVG/cmd", "good_ms"),
        (name("good"), "CMDS/s", "good_iops"),
        (name("bad"), "CMDS/s", "bad_iops"),
    ];
    let mut answered = BTreeSet::new();
    for remedy in remedies(of_remedy).iter().filter(|one| one["by_hand"] == serde_json::json!([])) {
        // Of a guest whose system is not known there is a line for each.
        let lines = remedy["commands"].as_array().unwrap().iter();
        let lines = lines.take(if remedy["key"] == "pvscsi" { 1 } else { usize::MAX });
        let set: Vec<&str> = lines.flat_map(|line| ["--set", line.as_str().unwrap()]).collect();
        let of_whatif = json(&[&["whatif", capture, "--json"], shared, &set[..]].concat());
        let rows = of_whatif["answers"][0]["simulated"]["rows"].as_array().unwrap();
        for (vm, counter, figure) in figures {
            let is_its = |row: &&Value| row["object"] == vm && row["counter"] == counter;
            let Some(row) = rows.iter().find(is_its) else { continue };
            let ends = |of: &Value| ["low", "high"].map(|end| of[end].as_f64().unwrap());
            let ([low, high], own) = (ends(row), ends(&remedy["figures"][figure]));
            assert!(own[0] <= low && high <= own[1], "{figure}: {row}: {remedy}");
            answered.insert(remedy["key"].as_str().unwrap().to_owned());
        }
    }
    answered
}

/// A change has one range, whoever is asked.
/// Storage I/O Control sets DSNRO aside, and what the device takes beyond it is not known to either.
#[test]
fn what_whatif_says_of_a_line_is_within_the_range_of_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("below.toml");
    fs::write(&file, BELOW_THE_DEPTH).unwrap();
    let file = file.to_str().unwrap();
    let captured = Captured::new(file);
    let extents = captured.with("extents.txt", &EXTENTS.replace("DEVICE", FAST));
    let shared = ["--esxcli", &extents];
    let vms = ["--good", "web", "--bad", "batch", "--json"];
    let of_remedy = captured.remedy(&[&vms[..], &shared].concat()).out;
    let of_remedy: Value = serde_json::from_str(&of_remedy).unwrap();
    let answered = hold_what_whatif_says(&captured.path("host.csv"), &of_remedy, &shared);
    let kinds = ["depth-by-latency", "iops-limit", "pvscsi", "scheduler", "sioc", "storage-policy"];
    assert_eq!(answered.iter().map(String::as_str).collect::<Vec<_>>(), kinds);
    let sioc = |value: &Value| {
        remedies(value).iter().find(|one| one["key"] == "sioc").unwrap()["figures"]["good_ms"]
            .clone()
    };
    let own = sioc(&of_remedy);
    let truth = sioc(&json(&[&["remedy", file], &vms[..]].concat()))["mean"].as_f64().unwrap();
    assert!(
        own["low"].as_f64() <= Some(truth) && Some(truth) <= own["high"].as_f64(),
        "{own}: {truth}"
    );
}

/// What remedies of the capture of a published case come to.
fn of_capture(captured: &Captured, vms: &[&str]) -> Value {
    serde_json::from_str(&captured.remedy(&[vms, &["--json"]].concat()).out).unwrap()
}

/// The same of captures of published cases, whichever stretch either is asked about. One recording has one answer, so
/// two of each are enough.
fn hold_what_whatif_says_of(name: &str, vms: &[&str]) {
    for seed in ["1", "2"] {
        let captured = Captured::of_seed(name, seed);
        let remedies = of_capture(&captured, vms);
        let answered = hold_what_whatif_says(&captured.path("host.csv"), &remedies, &[]);
        for kind in ["depth-by-latency", "iops-limit", "pvscsi", "scheduler"] {
            assert!(answered.contains(kind), "{name}, seed {seed}: {answered:?}");
        }
    }
}

const PLAIN: [&str; 4] = ["--good", "victim-plain", "--bad", "noisy-plain"];

/// Of the disk with a full link what each remedy comes to in the scenario is in its range.
#[test]
fn remedies_of_a_capture_hold_what_is_so() {
    let name = "noisy-neighbour";
    for seed in ["1", "2", "3", "4", "5"] {
        let scenario = ["remedy", name, "--window", "beside", "--json", "--seed", seed];
        let truths = json(&[&scenario[..], &PLAIN].concat());
        let remedies = of_capture(&Captured::of_seed(name, seed), &PLAIN);
        let (held, all) = in_range(&remedies, &truths);
        // One I/O at a time of the noisy one takes less than any that was seen, by a tenth.
        assert!(all >= 30 && held >= all - 1, "seed {seed}: {held} of {all}");
    }
}

#[test]
fn remedies_of_a_capture_hold_what_whatif_says() {
    hold_what_whatif_says_of("noisy-neighbour", &PLAIN);
}

#[test]
fn remedies_of_a_capture_of_a_depth_that_is_found_hold_what_whatif_says() {
    let vms = ["--good", "victim-found", "--bad", "noisy-found"];
    hold_what_whatif_says_of("noisy-neighbour", &vms);
}

#[test]
fn remedies_of_a_capture_of_s4_hold_what_whatif_says() {
    hold_what_whatif_says_of("s4-solidfire", &[]);
}

/// How many figures of the remedies of a scenario are in the ranges of those of its capture, but for 1 %, and of how
/// many.
fn in_range(of_capture: &Value, truths: &Value) -> (usize, usize) {
    let (mut held, mut all) = (0, 0);
    for own in remedies(of_capture) {
        let is_it = |truth: &&Value| truth["what"] == own["what"];
        let Some(truth) = remedies(truths).iter().find(is_it) else { continue };
        for figure in ["good_ms", "good_iops", "bad_iops"] {
            let [low, high] =
                ["low", "high"].map(|end| own["figures"][figure][end].as_f64().unwrap());
            all += 1;
            held += usize::from((0.99 * low..=1.01 * high).contains(&mean(truth, figure)));
        }
    }
    (held, all)
}

/// What no model gives of a device that neither of the two uses refuses nothing of them.
#[test]
fn only_devices_of_the_two_refuse() {
    let folder = tempfile::tempdir().unwrap();
    // Both neighbours at work all the time.
    let (text, _) = NOISY.split_once("[[window]]").unwrap();
    let text = text.replace("stop = \"5s\"", "").replace("duration = \"7s\"", "duration = \"14s\"");
    let [file, journal] = ["nn.toml", "nn.journal"].map(|name| folder.path().join(name));
    fs::write(&file, text).unwrap();
    let [file, journal] = [&file, &journal].map(|path| path.to_str().unwrap());
    assert_eq!(kavg(&["run", file, "-q", "--journal", journal]).code, 0);
    let said = kavg(&["remedy", journal, "--good", "victim-plain", "--bad", "noisy-plain"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let why = "Devices that neither of them uses are in no model: No model of this host gives what was recorded";
    assert!(said.out.contains(why), "{}", said.out);
    let said = kavg(&["remedy", journal, "--good", "victim-found", "--bad", "noisy-found"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
}

/// A host that is as another one has its paths as the place of it among all gives them.
#[test]
fn another_host_at_the_port_of_the_other_vm_is_said_to_be_there() {
    let by_hand = |bad: &str| {
        let vms = ["--window", "fixed", "--good", "v-2", "--bad", bad, "--json"];
        let value = json(&[&["remedy", "fan-in"], &vms[..]].concat());
        let all = remedies(&value).iter();
        let mut own = all.filter(|one| one["what"] == format!("{bad} on another, idle host"));
        own.next().unwrap()["by_hand"].as_array().unwrap().len()
    };
    assert_eq!(by_hand("v-1"), 2);
}

/// What a file says of a datastore goes before the option of its host: the line alone would change nothing.
#[test]
fn an_order_that_the_file_gives_is_changed_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = s4(&folder, "s4.toml", &[("dsnro = 32", "dsnro = 32\nscheduler = \"mclock\"")]);
    let value = json(&["remedy", &file, "--json"]);
    let orders: Vec<_> = remedies(&value).iter().filter(|one| one["key"] == "scheduler").collect();
    let [sfq] = orders[..] else { panic!("{orders:?}") };
    assert_eq!(sfq["commands"], serde_json::json!([]));
    assert_eq!(
        sfq["by_hand"],
        serde_json::json!(["in the scenario: scheduler = \"sfq\" for vvols"])
    );
}

/// Of several hosts it is the one with somebody who suffers.
#[test]
fn a_journal_of_several_hosts_is_asked_for_the_one_with_a_case() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("hosts.j");
    let journal = journal.to_str().unwrap();
    assert_eq!(kavg(&["run", "s4-migration", "-q", "--journal", journal]).code, 0);
    let value = json(&["remedy", journal, "--json"]);
    assert_eq!(value["scenario"], "esx-1");
    assert_eq!((&value["good"], &value["bad"]), (&"good".into(), &"bad".into()));
    let said = kavg(&["remedy", journal, "--good", "nobody", "--bad", "bad"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("--good: there is no VM `nobody`"), "{}", said.err);
}

/// The author's first remedy: a VM that is alone on a host is not moved from there.
#[test]
fn a_host_of_its_own_is_one_for_a_vm_that_events_migrate() {
    let value = json(&["remedy", "s4-migration", "--json"]);
    let own: Vec<_> = remedies(&value).iter().filter(|one| one["key"] == "own-host").collect();
    assert_eq!(own.len(), 2);
    for one in own {
        assert!(one["place"] == 1 && mean(one, "good_ms") <= 4.0, "{one}");
    }
}

/// KB 311232: all hosts of a port have it, or the others take what it frees.
#[test]
fn adaptive_throttling_is_for_every_host_of_the_port_that_does_not_throttle() {
    let vms = ["--good", "first", "--bad", "second", "--json"];
    let one = json(&[&["remedy", "adaptive-beside-greedy", "--window", "one"], &vms[..]].concat());
    let adaptive = remedies(&one).iter().find(|one| one["key"] == "adaptive").unwrap();
    // The device of the other host: the first throttles already.
    let line = "esxcli storage core device set -d naa.60200000cdfc4305b13cc3b1b7837de2 -s 32 -q 8";
    assert_eq!(adaptive["commands"], serde_json::json!([line]));
    for figure in ["good_iops", "bad_iops"] {
        assert!((mean(adaptive, figure) / 6_500.0 - 1.0).abs() < 0.1, "{figure}: {adaptive}");
    }
    let both =
        json(&[&["remedy", "adaptive-beside-greedy", "--window", "both"], &vms[..]].concat());
    let refused = both["refused"].as_array().unwrap().iter().find(|one| one["key"] == "adaptive");
    assert_eq!(refused.unwrap()["why"], "all that work on the array throttle already");
}

/// One that gets nothing at all counts in the index, and is freed by what lets it in.
#[test]
fn who_is_starved_is_one_and_is_freed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("starved.toml");
    fs::write(&file, STARVED).unwrap();
    let value =
        json(&["remedy", file.to_str().unwrap(), "--json", "--good", "quiet", "--bad", "loud"]);
    let as_it_is = &value["as_it_is"];
    assert_eq!(
        (&as_it_is["good_ms"], as_it_is["good_iops"]["mean"].as_f64()),
        (&Value::Null, Some(0.0))
    );
    assert_eq!(as_it_is["fairness"]["mean"], 0.5);
    let first = &remedies(&value)[0];
    for what in ["no IOPS limit on quiet", "storage policy free for quiet"] {
        let lifted = remedies(&value).iter().find(|one| one["what"] == what).expect(what);
        assert!(lifted["gain"].as_f64().unwrap() > 0.99, "{lifted}");
    }
    assert!(first["gain"].as_f64().unwrap() > 0.9 && mean(first, "good_iops") > 100.0, "{first}");
    for one in remedies(&value) {
        assert_eq!(one["gain"].is_null(), mean(one, "good_iops") == 0.0, "{one}");
    }
}

/// VMs and datastores are called as their host calls them.
#[test]
fn what_is_typed_has_the_names_of_the_host() {
    let captured = Captured::new("s4-solidfire");
    let text = fs::read_to_string(captured.path("host.csv")).unwrap();
    let renamed = text.replace(":bad", ":SQL Server 1").replace("(bad", "(SQL Server 1");
    let file = captured.with("renamed.csv", &renamed);
    let value = json(&["remedy", &file, "--json"]);
    assert_eq!(value["bad"], "SQL Server 1", "{value}");
    let all = value["remedies"].to_string();
    assert!(all.contains("-VM 'SQL Server 1'") && !all.contains("SQL_Server"), "{all}");
}

/// A model has a queue that stands still, or has two depths.
#[test]
fn a_recording_that_identifies_no_model_says_so_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let event = |(at, depth): (u32, u32)| {
        let line = "storage core device set -d naa.6f47acc100000000736f6c6964000001 -O";
        format!("[[event]]\nat = \"{at}s\"\nesxcli = \"{line} {depth}\"\n\n")
    };
    let events: String = [(8, 24), (11, 16), (14, 20)].map(event).concat();
    let window = "[[window]]\nname = \"burst\"";
    let turned = [(window, &*format!("{events}{window}")), ("sample = \"5s\"", "sample = \"1s\"")];
    let file = s4(&folder, "moved.toml", &turned);
    let csv = folder.path().join("moved.csv");
    let csv = csv.to_str().unwrap();
    assert_eq!(kavg(&["run", &file, "-q", "--csv", csv]).err, "");
    let said = kavg(&["remedy", csv]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    let line = "kavg: esx: Something moves DQLEN of naa.6f47acc100000000736f6c6964000001 (adaptive \
                throttling, Storage I/O Control, or settings that were changed meanwhile), and no model \
                here follows it\n";
    assert_eq!(said.err, line);
}

#[test]
fn of_a_healthy_host_there_is_nothing_to_remedy() {
    let captured = Captured::new("s1-dsnro-128");
    let said = captured.remedy(&[]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert!(said.out.ends_with("there is nothing to remedy.\n"), "{}", said.out);
    let value: Value = serde_json::from_str(&captured.remedy(&["--json"]).out).unwrap();
    assert_eq!((&value["good"], remedies(&value).len()), (&Value::Null, 0));
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let idle = s4(&folder, "idle.toml", &[("[vm.good.workload]\nioping = true", "")]);
    let capture = folder.path().join("esx01.csv.gz");
    fs::write(&capture, "").unwrap();
    let capture = capture.to_str().unwrap();
    let [empty, tail, bare] = [("empty.journal", ""), ("tail.journal", "\u{7}\u{7}"), ("bare", "")]
        .map(|(name, text)| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        });
    let cases: &[(&[&str], &str)] = &[
        (&["nowhere"], "nowhere: there is no such file"),
        (&["bad.toml"], "kavg: bad.toml:2:"),
        (&[capture], "esx01.csv.gz:1: the file is empty"),
        (
            &[&bare],
            "bare:1:1: `duration` is missing; it is read as a scenario: by its name it is no ",
        ),
        (&[&empty], "empty.journal: it is no journal: it does not begin as one"),
        (&[&tail], "tail.journal: it is no journal: it does not begin as one"),
        (&[capture, "--seeds", "3"], "--seeds: it is for scenarios, and "),
        (&["two-queues.toml", "--esxcli", "x.txt"], "--esxcli: it is for captures, and two-"),
        (&["nowhere.csv"], "nowhere.csv"),
        (&["two-queues.toml"], "names no VM that suffers from another (sql on datastore prod: Dev"),
        (&["two-queues.toml", "--good", "sqr"], "--good: there is no VM `sqr`"),
        (&["two-queues.toml", "--good", "sql", "--bad", "sql"], "`sql` is no neighbour of itself"),
        (&[&idle, "--good", "good"], "--good: VM `good` has no workload"),
        (&["two-queues.toml", "--window", "no"], "are run, 64, 96"),
        (&["two-queues.toml", "--seeds", "0"], "--seeds"),
        (&["two-queues.toml", "--set", "x"], "`x`"),
    ];
    for (arguments, expected) in cases {
        let said = kavg(&[&["remedy"], *arguments].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}: {said:?}");
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{arguments:?}: {}", said.err);
    }
    assert!(data().join("two-queues.toml").exists());
}
