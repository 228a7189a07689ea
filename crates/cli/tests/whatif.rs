//! `kavg whatif`, and the changes that `kavg diagnose` simulates, on captures that `kavg run
//! --csv` wrote.

mod common;

use common::{Said, kavg};
use serde_json::Value;
use tempfile::TempDir;

/// The capture of a shipped scenario, and the change that it makes half-way.
struct Captured {
    directory: TempDir,
}

/// The filer of s2-lun-depth, and the change that its event makes.
const DEVICE: &str = "naa.602000002a6681987983555503fa3806";
const DEEPER: &str = "system module parameters set -m qla2300_707 -p ql2xmaxqdepth=64";
/// The end of its window `before`.
const BEFORE: &str = "01/01/2020 00:01:00";

impl Captured {
    fn new(scenario: &str) -> Self {
        let captured = Self { directory: tempfile::tempdir().unwrap() };
        let said = kavg(&["run", scenario, "-q", "--csv", &captured.path("host.csv")]);
        assert_eq!(said.code, 0, "{said:?}");
        captured
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    fn whatif(&self, arguments: &[&str]) -> Said {
        kavg(&[&["whatif", &self.path("host.csv")], arguments].concat())
    }
}

/// The capture of a shipped scenario from `from` to `to`, in seconds, and no line of what came
/// after: what somebody has who asks before the change.
fn before(scenario: &str, from: u32, to: u32) -> Captured {
    let captured = Captured::new(scenario);
    let text = std::fs::read_to_string(captured.path("host.csv")).unwrap();
    let stamp = |seconds: u32| format!("\"01/01/2020 00:{:02}:{:02}\"", seconds / 60, seconds % 60);
    let (from, to) = (stamp(from), stamp(to));
    let is_before = |line: &&str| {
        let at = line.split(',').next().unwrap_or("");
        !at.starts_with("\"01/") || (from.as_str() < at && at <= to.as_str())
    };
    let cut: Vec<&str> = text.lines().filter(is_before).collect();
    assert!(cut.len() > 5, "{}", cut.len());
    std::fs::write(captured.path("host.csv"), cut.join("\n") + "\n").unwrap();
    captured
}

/// The answer to a change over the whole of a capture, and the range of a counter of an object.
fn asked(captured: &Captured, lines: &[&str]) -> Value {
    let sets: Vec<&str> = lines.iter().flat_map(|line| ["--set", line]).collect();
    let whole = ["--from", "01/01/2020 00:00:00", "--to", "01/01/2020 01:00:00", "--json"];
    let said = captured.whatif(&[&sets[..], &whole].concat());
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let answers: Value = serde_json::from_str(&said.out).unwrap();
    answers["answers"][0].clone()
}

#[track_caller]
fn holds(answer: &Value, object: &str, counter: &str, truth: f64) {
    let rows = answer["simulated"]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["object"] == object && row["counter"] == counter);
    let row = row.unwrap_or_else(|| panic!("{object} {counter}: {}", answer["simulated"]));
    let figure = |key: &str| row[key].as_f64().unwrap();
    assert!(figure("low") <= truth && truth <= figure("high"), "{truth}: {row}");
}

#[test]
fn s0_the_published_after_lies_in_the_range() {
    let device = "naa.624a93704bfab20d4b694df7000143ac";
    // B: the guest's queue is 96 deep already. S0: 125,000 IOPS with the adapter's at 96.
    let answer = asked(
        &before("s0-flasharray", 22, 40),
        &["system module parameters set -m fnic -p fnic_max_qdepth=96"],
    );
    holds(&answer, device, "CMDS/s", 125_000.0);
    // A: both queues at once.
    let answer = asked(
        &before("s0-flasharray", 2, 20),
        &[
            "system module parameters set -m fnic -p fnic_max_qdepth=96",
            "win2012: RequestRingPages=8,MaxQueueDepth=96",
        ],
    );
    holds(&answer, device, "CMDS/s", 125_000.0);
}

#[test]
fn s1_the_published_after_lies_in_the_range() {
    let device = "naa.60000970000197800380533030303445";
    let line = format!("storage core device set -d {device} -O 128");
    let answer = asked(&before("s1-competing-worlds", 13, 22), &[&line]);
    // S1: 100,000 and the other's 2,000, at what one VM alone had below the guest.
    holds(&answer, device, "CMDS/s", 102_000.0);
}

#[test]
fn s1_what_the_capture_shows_at_the_depth_that_is_asked_for_is_in_the_range() {
    let line = "storage core device set -d naa.60000970000197800380533030303445 -O 128";
    let said = Captured::new("s1-competing-worlds").whatif(&["--set", line, "--json"]);
    let answers: Value = serde_json::from_str(&said.out).unwrap();
    let answer = &answers["answers"][0];
    // S1: at 128 about 50 of 102,000 a second are outstanding, so a command takes 0.49 ms (Little), as
    // before the other VM came, and nobody loses any.
    holds(answer, "naa.60000970000197800380533030303445", "GAVG/cmd", 50.0 / 102.0);
    holds(answer, "small", "CMDS/s", 2_000.0);
    holds(answer, "big", "CMDS/s", 100_000.0);
}

#[test]
fn s1_a_deeper_row_whose_slots_were_not_full_tells_of_a_depth_between() {
    let line = "storage core device set -d naa.60000970000197800380533030303445 -O 64";
    let said = Captured::new("s1-competing-worlds").whatif(&["--set", line, "--json"]);
    let answers: Value = serde_json::from_str(&said.out).unwrap();
    // The 50 that are outstanding at 128 find room in 64, too.
    holds(&answers["answers"][0], "naa.60000970000197800380533030303445", "GAVG/cmd", 50.0 / 102.0);
    holds(&answers["answers"][0], "small", "CMDS/s", 2_000.0);
}

#[test]
fn s2_the_published_after_lies_in_the_range() {
    let answer = asked(&before("s2-lun-depth", 5, 600), &[DEEPER]);
    let row = &answer["simulated"]["rows"][0];
    // S2: reads up by 37 %.
    holds(&answer, DEVICE, "CMDS/s", 1.37 * row["captured"].as_f64().unwrap());
    assert!(answer["calibration"]["mismatch_percent"].as_f64().unwrap() < 5.0);
}

/// A replay samples what a capture would have had: of S1 before anybody has raised DSNRO.
#[test]
fn s1_the_published_after_lies_in_the_range_of_a_journal() {
    let site = Captured { directory: tempfile::tempdir().unwrap() };
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/s1-competing-worlds.toml");
    let text = std::fs::read_to_string(shipped).unwrap();
    // Without what it expects of later times, and without those.
    let text = text.split("[[window]]").next().unwrap().replace("\"32s\"", "\"22s\"");
    std::fs::write(site.path("s1.toml"), text).unwrap();
    let journal = site.path("s1.kj");
    assert_eq!(kavg(&["run", &site.path("s1.toml"), "-q", "--journal", &journal]).code, 0);
    let device = "naa.60000970000197800380533030303445";
    let line = format!("storage core device set -d {device} -O 128");
    let both = ["--from", "01/01/2020 00:00:14", "--to", "01/01/2020 00:00:22", "--json"];
    let said = kavg(&[&["whatif", &journal, "--set", &line][..], &both].concat());
    let told = "replayed to the same, and taken as esxtop would have recorded it every 2 s\n";
    assert_eq!((said.code, said.err.as_str()), (0, told));
    let answers: Value = serde_json::from_str(&said.out).unwrap();
    let answer = &answers["answers"][0];
    // S1: 100,000 and the other's 2,000, at what one VM alone had below the guest.
    holds(answer, device, "CMDS/s", 102_000.0);
    holds(answer, "small", "CMDS/s", 2_000.0);
    let row = &answer["simulated"]["rows"][0];
    assert!((row["captured"].as_f64().unwrap() / 102_000.0 - 1.0).abs() < 0.01, "{row}");
    assert!(answer["calibration"]["mismatch_percent"].as_f64().unwrap() < 5.0);
}

/// Some seconds of a guest, as a journal and as a capture.
const SMALL: &str = r#"
title = "small"
duration = "9s"
sample = "1s"
[array.a]
servers = 4
service = "5ms"
[host.esx.adapter.vmhba1]
driver = "qlnativefc"
[datastore.d]
array = "a"
device = "naa.1"
dsnro = 2
[vm.a.disk."scsi0:0"]
datastore = "d"
[vm.a.workload]
threads = 4
[vm.b.disk."scsi0:0"]
datastore = "d"
[vm.b.workload]
threads = 4
"#;

/// No model follows a depth that is set more than once; since the last time it is one.
#[test]
fn of_a_journal_in_which_depths_were_set_it_is_asked_since_the_last() {
    let site = Captured { directory: tempfile::tempdir().unwrap() };
    let set = |(at, depth): (u32, u32)| {
        let line = format!("storage core device set -d naa.1 -O {depth}");
        format!("[[event]]\nat = \"{at}s\"\nhost = \"esx\"\nesxcli = \"{line}\"\n")
    };
    let events = [(7, 5), (13, 3)].map(set).concat();
    let text = SMALL.replace("9s", "40s") + &events;
    std::fs::write(site.path("s.toml"), text).unwrap();
    let (scenario, journal) = (site.path("s.toml"), site.path("s.kj"));
    for seed in 1..=20 {
        let seed = seed.to_string();
        let run = ["run", &scenario, "-q", "--seed", &seed, "--journal", &journal];
        assert_eq!(kavg(&run).code, 0);
        let ask = |also: &[&str]| {
            let line = "storage core device set -d naa.1 -O 2";
            let few = ["whatif", &journal, "--commands", "5000", "--json", "--set", line];
            let said = kavg(&[&few[..], also].concat());
            assert_eq!(said.code, 0, "seed {seed}: {said:?}");
            let answers: Value = serde_json::from_str(&said.out).unwrap();
            let answer = answers["answers"][0].clone();
            let doubts = answer["simulated"]["doubts"].to_string().replace("\\\"", "\"");
            (answer, doubts)
        };
        let (whole, said) = ask(&["--from", "01/01/2020 00:00:00"]);
        assert_eq!(whole["verdict"], "no-model", "seed {seed}: {whole}");
        let set =
            "Depths or limits on naa.1 were set meanwhile, the last by 01/01/2020 00:00:15 UTC";
        let from = "of the time since then there is an answer (`--from \"01/01/2020 00:00:15\"`).";
        assert!(said.contains(&format!("{set}: {from}")), "seed {seed}: {said}");
        let (own, said) = ask(&[]);
        let since = format!("{set}: this is of the time since then.");
        assert!(said.contains(&since), "seed {seed}: {said}");
        let (named, _) = ask(&["--from", "01/01/2020 00:00:15"]);
        assert_ne!(named["verdict"], "no-model", "seed {seed}: {named}");
        assert_eq!(own["simulated"]["rows"], named["simulated"]["rows"], "seed {seed}");
    }
}

/// What is set later says nothing of a time before it.
#[test]
fn of_a_window_it_is_asked_with_the_depths_of_its_own_end() {
    let site = Captured { directory: tempfile::tempdir().unwrap() };
    let line = |depth| format!("storage core device set -d naa.1 -O {depth}");
    let event = format!("[[event]]\nat = \"21s\"\nhost = \"esx\"\nesxcli = \"{}\"\n", line(3));
    std::fs::write(site.path("s.toml"), SMALL.replace("9s", "30s") + &event).unwrap();
    let (scenario, journal) = (site.path("s.toml"), site.path("s.kj"));
    for seed in 1..=20 {
        let seed = seed.to_string();
        let run = ["run", &scenario, "-q", "--seed", &seed, "--journal", &journal];
        assert_eq!(kavg(&run).code, 0);
        let window = ["--from", "01/01/2020 00:00:02", "--to", "01/01/2020 00:00:18"];
        let set = line(4);
        let few = ["whatif", &journal, "--commands", "5000", "--json", "--set", &set];
        let said = kavg(&[&few[..], &window].concat());
        assert_eq!(said.code, 0, "seed {seed}: {said:?}");
        let answers: Value = serde_json::from_str(&said.out).unwrap();
        let answer = &answers["answers"][0];
        assert_ne!(answer["verdict"], "no-model", "seed {seed}: {answer}");
        let rows = answer["simulated"]["rows"].as_array().unwrap();
        let depth = rows.iter().find(|row| row["counter"] == "DQLEN").unwrap();
        assert_eq!([&depth["captured"], &depth["today"]], [2.0, 2.0], "seed {seed}: {answer}");
    }
}

#[test]
fn journals_that_tell_nothing_are_refused_in_a_line_and_cut_ones_tell_what_they_have() {
    let site = Captured { directory: tempfile::tempdir().unwrap() };
    std::fs::write(site.path("s.toml"), SMALL).unwrap();
    let (scenario, journal, capture) = (site.path("s.toml"), site.path("s.kj"), site.path("s.csv"));
    let run = ["run", &scenario, "-q", "--journal", &journal, "--csv", &capture];
    assert_eq!(kavg(&run).code, 0);
    let bytes = std::fs::read(&journal).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(site.path(name), bytes).unwrap();
        site.path(name)
    };
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    let mut older = bytes.clone();
    older[8] = 4;
    let [damaged, older] = [write("damaged.kj", &damaged), write("older.kj", &older)];
    let [short, head] = [write("short.kj", &bytes[..20_000]), write("head.kj", &bytes[..20])];
    let cut = write("cut.kj", &bytes[..bytes.len() / 2]);
    let empty = write("empty.kj", b"");
    let directory = site.path("none");
    std::fs::create_dir(&directory).unwrap();
    let refused: [(&[&str], &str); 9] = [
        (&[&journal, &capture], "captures and journals in one question: ask about one of them"),
        (&[&journal, "--esxcli", &capture], "--esxcli: a journal says itself what esxcli would"),
        (&[&damaged], "damaged.kj: the journal is damaged in the frame at byte "),
        (&[&older], "older.kj: the journal has version 4 of the format; allowed is "),
        (&[&short], "short.kj: not two rows of 2 s are in it to tell from"),
        (&[&head], "head.kj: the journal is cut: it ends at byte 20"),
        (&[&empty], "empty.kj:1: the file is empty"),
        (&[&directory], "none: no journal is in this directory"),
        (&[&journal, "--device", "naa.2"], "naa.2"),
    ];
    let line = ["--set", "storage core device set -d naa.1 -O 32"];
    for (files, expected) in refused {
        let said = kavg(&[&["whatif"], files, &line].concat());
        let last = said.err.lines().last().unwrap_or_default();
        assert!(said.code == 2 && said.out.is_empty() && last.contains(expected), "{said:?}");
    }
    let apart = site.path("apart");
    std::fs::create_dir(&apart).unwrap();
    std::fs::copy(&journal, site.path("apart/h-0-0-000000.journal")).unwrap();
    let over = ["--scenario", &site.path("apart/h-0-0-000000.journal")];
    let said = kavg(&[&["whatif", &apart][..], &line, &over].concat());
    assert!(said.code == 2 && said.err.contains("000000.journal: "), "{said:?}");
    assert_eq!(std::fs::read(site.path("apart/h-0-0-000000.journal")).unwrap(), bytes);
    for told in [&journal, &cut, &apart] {
        let said = kavg(&[&["whatif", told][..], &line, &["--json"]].concat());
        assert_eq!(said.code, 0, "{said:?}");
        let answers: Value = serde_json::from_str(&said.out).unwrap();
        // Four are served at once, and DSNRO lets two out: twice as many.
        holds(&answers["answers"][0], "naa.1", "CMDS/s", 800.0);
    }
}

/// What the eight datastores had of the array before tells how it answers to more from the one: the time in
/// which all moved to it has no load that varies.
#[test]
fn s3_what_the_other_datastores_did_before_narrows_what_a_deeper_queue_gains() {
    let captured = Captured::new("s3-vms-per-datastore");
    let line = "storage core device set -d naa.60200000eedf6acfd091dc9f5358dc0e -O 64";
    let said = kavg(&["whatif", &captured.path("host.esx-1.csv"), "--set", line, "--json"]);
    let answers: Value = serde_json::from_str(&said.out).unwrap();
    let answer = &answers["answers"][0];
    let row = &answer["simulated"]["rows"][0];
    // X(128) / X(64) of the array's model, which both hosts share (`s3-depths`).
    let truth = 1.388 * row["captured"].as_f64().unwrap();
    holds(answer, "naa.60200000eedf6acfd091dc9f5358dc0e", "CMDS/s", truth);
    // The guests may send at rates of their own: then more slots serve no more of them, but at once.
    assert_eq!(answer["verdict"], "bounded", "{}", answer["simulated"]);
}

#[test]
fn s4_the_published_after_lies_in_the_range() {
    let line = "storage core device set -d naa.6f47acc100000000736f6c6964000001 -O 256";
    let answer = asked(
        &before("s4-solidfire", 10, 55),
        &[
            "system module parameters set -m iscsi_vmk -p iscsivmk_LunQDepth=256",
            line,
            "system settings advanced set -o /ISCSI/MaxIoSizeKB -i 512",
        ],
    );
    // S4: about 1 ms for the good neighbour, as before the bad one came; that one stays as it is.
    holds(&answer, "good", "GAVG/cmd", 1.0);
    holds(&answer, "bad", "CMDS/s", 26.0);
    let sentence = answer["simulated"]["sentence"].as_str().unwrap();
    assert!(!sentence.contains("nothing"), "{sentence}");
}

#[test]
fn s4_whole_the_published_after_lies_in_the_range_though_the_burst_credit_ends() {
    let captured = Captured::new("s4-solidfire");
    let line = "storage core device set -d naa.6f47acc100000000736f6c6964000001 -O 256";
    let lines = [
        "system module parameters set -m iscsi_vmk -p iscsivmk_LunQDepth=256",
        line,
        "system settings advanced set -o /ISCSI/MaxIoSizeKB -i 512",
    ];
    let answer = asked(&captured, &lines);
    holds(&answer, "good", "GAVG/cmd", 1.0);
    // Half of it at the burst rate, half at the other: 25.6 and 12.8 a second [S4].
    holds(&answer, "bad", "CMDS/s", 19.2);
    // A limit between the two leaves credit for bursts, and the good neighbour alone.
    let answer = asked(&captured, &["bad: DiskLimitIOPerSecond 272"]);
    holds(&answer, "good", "GAVG/cmd", 1.0);
    holds(&answer, "bad", "CMDS/s", 17.0);
    // What the host takes is not in the capture: the answer says so.
    let answer = asked(&captured, &[line]);
    let sentence = answer["simulated"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("if Device Max Queue Depth of"), "{sentence}");
}

/// An answer about VMs, held against the simulation of the shipped scenario with a line in force.
#[track_caller]
fn holds_what_comes(answer: &Value, (scenario, window): (&str, &str), line: &str, vms: &[&str]) {
    let said = kavg(&["run", scenario, "--window", window, "--json", "--set", line]);
    // The figures that are published are those without it.
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let run: Value = serde_json::from_str(&said.out).unwrap();
    let windows = run["windows"].as_array().unwrap();
    let window = windows.iter().find(|other| other["name"] == window).unwrap();
    let objects = window["hosts"][0]["objects"].as_array().unwrap();
    for vm in vms {
        let disk = format!("{vm}:scsi0:0");
        let disk = objects.iter().find(|object| object["name"] == disk).unwrap();
        for (name, counter) in [("CMDS/s", "cmds"), ("GAVG/cmd", "total")] {
            holds(answer, vm, name, disk["counters"][counter].as_f64().unwrap());
        }
    }
}

#[test]
fn a_limit_on_the_bad_neighbour_of_s4_frees_the_good_one() {
    for (scenario, line) in [
        // A limit counts 32 KiB [LAMW]: 512 KiB are 16 of them.
        ("s4-solidfire", "bad: DiskLimitIOPerSecond 184"),
        ("s4-gold", "bad: DiskLimitIOPerSecond 553"),
    ] {
        let answer = asked(&before(scenario, 75, 120), &[line]);
        holds_what_comes(&answer, (scenario, "spent"), line, &["bad", "good"]);
        let sentence = answer["simulated"]["sentence"].as_str().unwrap();
        let lines = ["good 0.", "ms instead of"];
        assert!(lines.iter().all(|part| sentence.contains(part)), "{sentence}");
        assert!(!sentence.contains("lose commands: good"), "{sentence}");
    }
}

/// A storage policy whose numbers are known is asked as its limit.
#[test]
fn a_storage_policy_is_asked_as_its_number() {
    let capture = before("s4-solidfire", 75, 120);
    let simulated = |lines: &[&str]| asked(&capture, lines)["simulated"].clone();
    let number = simulated(&["bad: DiskLimitIOPerSecond 184"]);
    let policy = ["bad: StoragePolicy gold", "storage policy gold: DiskLimitIOPerSecond 184"];
    assert_eq!(simulated(&policy), number);
    let low = simulated(&["bad: DiskLimitIOPerSecond 1000"]);
    assert_eq!(simulated(&["bad: StoragePolicy low"]), low);
    // As vCenter takes the name, whatever its case.
    let cmdlets = "Get-VM BAD | Get-HardDisk | Set-SpbmEntityConfiguration -StoragePolicy low";
    assert_eq!(simulated(&[cmdlets]), low);
}

#[test]
fn the_published_change_of_s4_is_told_by_the_vm_that_waited() {
    let answer = asked(
        &before("s4-solidfire", 10, 55),
        &[
            "system module parameters set -m iscsi_vmk -p iscsivmk_LunQDepth=256",
            "storage core device set -d naa.6f47acc100000000736f6c6964000001 -O 256",
        ],
    );
    let line = "storage core device set -d naa.6f47acc100000000736f6c6964000001 -O 128";
    holds_what_comes(&answer, ("s4-solidfire", "burst"), line, &["bad", "good"]);
    let sentence = answer["simulated"]["sentence"].as_str().unwrap();
    assert!(!sentence.contains("nothing"), "{sentence}");
    assert!(sentence.contains("VMs whose latency moves otherwise: good 0."), "{sentence}");
}

/// A guest with pauses behind a depth of 16, of 32 after 30 s.
const TRIED: &str = r#"
title = "a change that is tried"
duration = "60s"
sample = "2s"
esxcli = "storage core device set -d naa.600a098038303053743f4b5251444c41 -m 16"
[array.flash]
servers = 64
service = "2ms"
[host.esx.adapter.vmhba1]
driver = "nfnic"
lun_depth = 64
[datastore.ds]
device = "naa.600a098038303053743f4b5251444c41"
[vm.sql]
guest_driver = "RequestRingPages=32,MaxQueueDepth=254"
[vm.sql.disk."scsi0:0"]
datastore = "ds"
adapter = "pvscsi"
[vm.sql.workload]
threads = 80
think = "3ms"
[[event]]
at = "30s"
esxcli = "storage core device set -d naa.600a098038303053743f4b5251444c41 -m 32"
"#;

#[test]
fn a_change_that_was_tried_and_recorded_in_a_file_of_its_own_narrows_the_answer() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("tried.toml"), TRIED).unwrap();
    let said = kavg(&["run", &path("tried.toml"), "-q", "--csv", &path("esx.csv")]);
    assert_eq!(said.code, 0, "{said:?}");
    let text = std::fs::read_to_string(path("esx.csv")).unwrap();
    let end = "01/01/2020 00:00:29";
    let (header, rows) = text.split_once('\n').unwrap();
    let (early, late): (Vec<&str>, Vec<&str>) =
        rows.lines().partition(|row| row.trim_start_matches('"') < end);
    for (name, rows) in [("before.csv", early), ("after.csv", late)] {
        assert!(rows.len() > 10, "{name}");
        std::fs::write(path(name), format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    }
    let line = "storage core device set -d naa.600a098038303053743f4b5251444c41 -m 24";
    let widths = [&["before.csv"][..], &["before.csv", "after.csv"]].map(|names| {
        let files: Vec<String> = names.iter().map(|name| path(name)).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let said =
            kavg(&[&["whatif"], &files[..], &["--set", line, "--to", end, "--json"]].concat());
        assert_eq!(said.code, 0, "{said:?}");
        let said: Value = serde_json::from_str(&said.out).unwrap();
        let row = &said["answers"][0]["simulated"]["rows"][0];
        assert_eq!(row["counter"], "CMDS/s");
        row["high"].as_f64().unwrap() / row["low"].as_f64().unwrap()
    });
    assert!(widths[1] < 0.9 * widths[0] && widths[1] < 1.25, "{widths:?}");
}

#[test]
fn samples_that_another_file_has_already_are_told() {
    let captured = Captured::new("s2-lun-depth");
    let after = captured.path("after.csv");
    let said = kavg(&["run", "s2-lun-depth", "-q", "--set", DEEPER, "--csv", &after]);
    assert_eq!(said.err, "", "{said:?}");
    let said = captured.whatif(&[&after, "--set", DEEPER, "--to", BEFORE]);
    assert_eq!((said.code, said.err.lines().count()), (0, 1), "{said:?}");
    assert!(said.err.contains("left out: an earlier file has one of the same instant"), "{said:?}");
}

/// Every key of a value and of what it holds.
fn keys(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => {
            map.iter().flat_map(|(key, value)| [vec![key.clone()], keys(value)].concat()).collect()
        }
        Value::Array(values) => values.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_key_of_the_json_is_documented() {
    let captured = Captured::new("s2-lun-depth");
    let said = captured.whatif(&["--set", DEEPER, "--to", BEFORE, "--json"]);
    let answers: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(answers["version"], 1);
    let page = include_str!("../../../docs/reference/json.md");
    let part = page.split("# The JSON of a what-if").nth(1).unwrap();
    for key in keys(&answers) {
        assert!(part.contains(&format!("`{key}`")), "`{key}` is not documented");
    }
}

#[test]
fn an_array_is_named_by_devices_that_the_capture_has() {
    let captured = Captured::new("s2-lun-depth");
    let said = captured.whatif(&["--set", DEEPER, "--array", DEVICE, "--to", BEFORE]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = captured.whatif(&["--set", DEEPER, "--array", "naa.1,naa.2"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("--array naa.1,naa.2: no device `naa.1`"), "{}", said.err);
}

/// A histogram of one disk that stayed at 30 outstanding, as `vscsiStats -p all -c` prints it.
fn histogram(world: &str) -> String {
    format!(
        "Histogram: number of outstanding IOs when a new IO is issued,virtual machine \
         worldGroupID,{world},virtual disk handleID,8194 (scsi0:0)\nmin,30\nmax,30\nmean,30\n\
         count,90000\nFrequency,Histogram Bucket Limit\n0,28\n90000,32\n0,64\n0,64\n"
    )
}

#[test]
fn histograms_of_vscsistats_are_used_and_the_answer_says_how() {
    let captured = Captured::new("s2-lun-depth");
    let header = std::fs::read_to_string(captured.path("host.csv")).unwrap();
    let world = header.split(&format!("({DEVICE}-")).nth(1).unwrap().split(')').next().unwrap();
    let file = captured.path("v.csv");
    std::fs::write(&file, histogram(world)).unwrap();
    let said = captured.whatif(&["--set", DEEPER, "--to", BEFORE, "--vscsistats", &file]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert!(said.out.replace("\n  ", " ").contains("vscsiStats: "), "{}", said.out);
    let json = captured.whatif(&["--set", DEEPER, "--vscsistats", &file, "--json"]);
    let all: Value = serde_json::from_str(&json.out).unwrap();
    let guest = &all["answers"][0]["calibration"]["devices"][0]["guests"][0];
    assert!(guest["vscsistats"].as_str().unwrap().starts_with("vscsiStats: "), "{guest}");
    for (text, expected) in [
        (String::new(), "v.csv: holds no histogram"),
        ("Histogram: heights of people\n".into(), "v.csv:1: 'Histogram: heights of people'"),
        (histogram(world).replace("90000,32", "many,32"), "v.csv:8: 'many,32' is not understood"),
        (histogram("7"), "vscsiStats counted for world 7"),
    ] {
        std::fs::write(&file, text).unwrap();
        let said = captured.whatif(&["--set", DEEPER, "--vscsistats", &file]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{said:?}");
        assert!(said.err.contains(expected) && said.err.lines().count() == 1, "{}", said.err);
    }
    let said = captured.whatif(&["--set", DEEPER, "--vscsistats", &captured.path("none.csv")]);
    assert_eq!((said.code, said.err.lines().count()), (2, 1), "{said:?}");
}

#[test]
fn the_text_fits_80_columns_and_says_what_it_is_made_of() {
    let captured = Captured::new("s2-lun-depth");
    let said = captured.whatif(&["--set", DEEPER, "--to", BEFORE]);
    for part in ["What if on esx", "captured", "GAVG/cmd", "array of", "outstanding"] {
        assert!(said.out.contains(part), "{part} in\n{}", said.out);
    }
    let widest = said.out.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}\n{}", said.out);
}

#[test]
fn the_model_is_a_scenario_that_runs() {
    let captured = Captured::new("s2-lun-depth");
    let model = captured.path("model.toml");
    assert_eq!(captured.whatif(&["--scenario", &model]).code, 0);
    let deeper = "system module parameters set -m nfnic -p lun_queue_depth_per_path=64";
    let said = kavg(&["run", &model, "--compare-set", deeper]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert!(said.out.contains("before  after  change"), "{}", said.out);
}

#[test]
fn diagnose_simulates_what_it_proposes_unless_told_not_to() {
    let captured = Captured::new("s2-lun-depth");
    let file = captured.path("host.csv");
    let simulated = |arguments: &[&str]| {
        let said = kavg(&[&["diagnose", "--json", &file], arguments].concat());
        let all: Value = serde_json::from_str(&said.out).unwrap();
        all["verdicts"][0]["findings"][0]["changes"][0]["simulated"].clone()
    };
    let shown = simulated(&[]);
    assert!(shown["sentence"].is_string() && shown["rows"].is_array(), "{shown}");
    assert_eq!(simulated(&["--no-simulate"]), Value::Null);
}

#[test]
fn diagnose_says_what_the_change_of_the_published_s1_case_does() {
    let captured = Captured::new("s1-competing-worlds");
    let said = kavg(&["diagnose", &captured.path("host.csv")]);
    assert!(
        said.out.contains("   Simulated naa.60000970000197800380533030303445 does"),
        "{said:?}"
    );
}

#[test]
fn a_depth_that_no_host_takes_is_refused_though_the_capture_does_not_show_the_limit() {
    let captured = Captured::new("s4-solidfire");
    let line = "storage core device set -d naa.6f47acc100000000736f6c6964000001 -O 999";
    let said = captured.whatif(&["--set", line]);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{said:?}");
    for part in ["sched-num-req-outstanding to 999: allowed is 1 to 256", "--esxcli FILE"] {
        assert!(said.err.contains(part), "{part} in {}", said.err);
    }
}

#[test]
fn what_cannot_be_asked_has_one_clear_line() {
    let captured = Captured::new("s2-lun-depth");
    let cases: [(&[&str], &str); 7] = [
        (&["--set", "storage core device set -d naa.9 -O 64"], "no device `naa.9`"),
        (
            &["--set", "Set-Datastore ds -CongestionThresholdMillisecond 15"],
            "a recording does not tell whether Storage I/O Control is on: give -StorageIOControlEnabled too",
        ),
        (&["--set", DEEPER, "--device", "naa.9"], "no device `naa.9`"),
        (&["--set", "reboot"], "command"),
        (
            &["--set", DEEPER, "--from", "01/01/2030 00:00:00", "--to", "01/02/2030 00:00:00"],
            "no sample",
        ),
        (&["--set", DEEPER, "--from", "soon"], "expected YYYY-MM-DD HH:MM:SS or MM/DD/YYYY"),
        (&[], "--set <LINE>"),
    ];
    for (arguments, expected) in cases {
        let said = captured.whatif(arguments);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}: {said:?}");
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
    }
}
