//! `kavg run`: whole outputs, and of every flag the effect that it has.

mod common;

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use common::{data, every_key, json, kavg, kavg_with};
use serde_json::Value;

/// The report without the text of the verdict, which belongs to the tests of `diagnose`.
fn without_verdict(report: &str) -> String {
    let (before, rest) = report.split_once("\nVerdict\n").expect("there is a verdict");
    let ends = ["\nLog\n", "\nExpectations"].iter().filter_map(|part| rest.find(part));
    let after = ends.min().expect("after it come the log and the expectations");
    format!("{before}\nVerdict\n...{}", &rest[after..])
}

#[test]
fn one_host_is_shown_with_both_of_its_queues() {
    let said = kavg(&["run", "two-queues.toml"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!(without_verdict(&said.out));
}

#[test]
fn of_many_vms_and_devices_the_busiest_are_named() {
    let said = kavg(&["run", "two-hosts.toml", "--rows", "3"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!(without_verdict(&said.out));
}

#[test]
fn before_and_after_stand_side_by_side() {
    let line = "system module parameters set -m fnic -p fnic_max_qdepth=96";
    let said = kavg(&["run", "two-queues.toml", "--window", "96", "--compare-set", line]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!(said.out);
}

#[test]
fn what_is_aborted_and_what_governs_nothing_is_told() {
    // Two paths that are down for 10 s, guests that give up after 1 s, and a host without vVols.
    let said = kavg(&["run", "aborted.toml"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let line = said.out.lines().find(|line| line.starts_with("v-1:scsi0:1: ")).unwrap();
    assert!(line.contains(" lost, ") && line.contains(" aborted; "), "{line}");
    let numbers = line.split(' ').filter_map(|word| word.parse::<f64>().ok());
    let [offered, served, lost, aborted, _] = numbers.collect::<Vec<_>>()[..] else {
        panic!("{line}");
    };
    assert!((offered - served - lost - aborted).abs() < 1.0, "{line}");
    let told = "host h: /Scsi/ScsiVVolPESNRO is set and governs none of its devices";
    assert!(said.out.contains(told), "{}", said.out);
}

/// Storage I/O Control that holds a depth all the time is what a run knows of itself, and no output of another time.
#[test]
fn storage_io_control_at_rest_is_told_as_what_it_is() {
    let said = kavg(&["run", "sioc-rests.toml", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let run: Value = serde_json::from_str(&said.out).unwrap();
    let verdict = &run["windows"][0]["verdicts"][0];
    let findings = verdict["findings"].as_array().unwrap();
    let causes: Vec<&str> = findings.iter().map(|one| one["cause"].as_str().unwrap()).collect();
    assert!(causes.contains(&"sioc") && !causes.contains(&"device-depth"), "{causes:?}");
    let text = verdict.to_string();
    assert!(text.contains("Storage I/O Control holds the depth of "), "{text}");
    assert!(!text.contains("--esxcli") && !text.contains("esxcli says"), "{text}");
}

/// A driver that a host of that version does not have is told in a line, and the run goes on.
#[test]
fn a_driver_of_another_version_is_told() {
    let text = fs::read_to_string(data().join("sioc-rests.toml")).unwrap();
    let text = text.replace("esxi = \"7.0\"", "esxi = \"8.0\"").replace("\"lpfc\"", "\"qla2xxx\"");
    let said = kavg_with(&["run", "-", "-q"], &text);
    let told = "host `esx1`: driver `qla2xxx` of vmhba1 is one of ESXi 5.1 and earlier, and the host has ESXi 8.0";
    assert_eq!((said.code, said.err.lines().count()), (0, 1), "{said:?}");
    assert!(said.err.contains(told), "{}", said.err);
}

/// Two hosts that hold back in vain: it is told in a note, in the log by a name, and what was found is said.
#[test]
fn a_workload_from_outside_and_what_was_found_are_told() {
    let said = kavg(&["run", "sioc-external", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let run: Value = serde_json::from_str(&said.out).unwrap();
    let notes = run["windows"][0]["notes"].as_array().unwrap();
    let told = "an external workload is told of 20 times, first at 48 s";
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains(told)), "{notes:?}");
    let log = run["log"].as_array().unwrap();
    let events: Vec<&Value> =
        log.iter().filter(|line| line["event"] == "external-workload").collect();
    assert_eq!(events.len(), 24, "two hosts, each 16 s but at the end");
    assert!(events.iter().all(|line| line["device"].as_str().unwrap().starts_with("naa.")));
    let finding = &run["windows"][0]["verdicts"][0]["findings"][0];
    assert_eq!(finding["cause"], "sioc");
    assert!(finding["sentence"].as_str().unwrap().contains("somebody else"), "{finding}");
    assert_eq!(run["congestion_thresholds"], Value::Array(Vec::new()));
    let found = &json(&["run", "sioc-automatic", "--json"])["congestion_thresholds"][0];
    assert_eq!((&found["datastore"], &found["percent_of_peak"]), (&"shared".into(), &90.0.into()));
    // Ten servers of 3.125 ms: S (9 + n) / 10 at n = 33.7, where they do nine tenths of what they do with 64.
    let threshold_ms = found["threshold_ms"].as_f64().unwrap();
    assert!((threshold_ms - 13.34).abs() < 0.2, "{threshold_ms}");
    let said = kavg(&["run", "sioc-automatic"]);
    assert!(said.out.contains(&format!("congestion threshold of shared: {threshold_ms} ms")));
}

/// What an NFS mount may have out is the host's option; the rest waits in the host.
#[test]
fn the_depth_of_nfs_mounts_is_set_for_a_host() {
    let text = "title = \"t\"\nduration = \"5s\"\n[array.a]\nservers = 8\nservice = \"1ms\"\n\
                [host.h.adapter.vmhba1]\ndriver = \"lpfc\"\n[datastore.nfs]\nkind = \"nfs\"\n\
                [vm.v]\ndisk.\"scsi0:1\" = { datastore = \"nfs\" }\nworkload = { threads = 32 }\n";
    let set = "system settings advanced set -o /NFS/MaxQueueDepth -i 2";
    let active = |more: &[&str]| {
        let said = kavg_with(&[&["run", "-", "--json"], more].concat(), text);
        assert_eq!(said.code, 0, "{}", said.err);
        let run: Value = serde_json::from_str(&said.out).unwrap();
        let objects = run["windows"][0]["hosts"][0]["objects"].as_array().unwrap();
        let volume = objects.iter().find(|object| object["kind"] == "nfs volume").unwrap();
        volume["counters"]["actv"].as_f64().unwrap()
    };
    assert_eq!((active(&[]), active(&["--set", set])), (32.0, 2.0));
}

/// Two hosts before an array that takes 48 commands.
#[test]
fn who_takes_the_places_of_an_array_is_told_so_and_an_nfs_volume_is_refused_too() {
    let of = |kind: &str, threads: [u32; 2]| {
        let vms = ["1", "2"].map(|at| {
            let threads = threads[usize::from(at == "2")];
            format!(
                "[datastore.ds-{at}]\nkind = \"{kind}\"\nhosts = \"esx-{at}\"\n[vm.vm-{at}]\nhost = \"esx-{at}\"\n\
                 disk.\"scsi0:1\" = {{ datastore = \"ds-{at}\" }}\nworkload = {{ threads = {threads} }}\n"
            )
        });
        let site = "title = \"t\"\nduration = \"30s\"\nwarmup = \"5s\"\nsample = \"1s\"\n\
            [array.a]\nservers = 16\nservice = \"1ms\"\nround_trip = \"100us\"\nqueue_limit = 48\n\
            [host.esx]\ncount = 2\nadapter.vmhba1 = { driver = \"qlnativefc\" }\n";
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("made.toml");
        fs::write(&file, format!("{site}{}", vms.concat())).unwrap();
        let mut run = json(&["run", "--json", file.to_str().unwrap()]);
        run["windows"][0]["verdicts"].take()
    };
    let told = of("vmfs", [40, 16]);
    let headline = told[0]["headline"].as_str().unwrap();
    assert!(headline.starts_with("Nothing is wrong here, but it takes 3"), "{headline}");
    assert!(headline.contains("of 48 places of the queue of a port of array a: "), "{headline}");
    assert!(headline.ends_with(" commands of esx-2 wait for one."), "{headline}");
    let told = of("nfs", [64, 64]);
    let findings = told[0]["findings"].as_array().unwrap().iter();
    let sentences: Vec<_> = findings.map(|finding| finding["sentence"].as_str().unwrap()).collect();
    let named = "each in the host though it has slots: the queue of a port of array a takes 48";
    assert!(sentences.iter().any(|sentence| sentence.contains(named)), "{sentences:?}");
}

#[test]
fn an_expectation_that_is_not_met_is_told_and_ends_with_1() {
    let said = kavg(&["run", "not-met.toml", "--quiet"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    insta::assert_snapshot!(said.out);
}

#[test]
fn quiet_says_nothing_when_all_is_met() {
    let said = kavg(&["run", "two-queues.toml", "-q"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""));
}

#[test]
fn set_puts_a_setting_in_force_before_the_run() {
    let dqlen = |arguments: &[&str]| {
        json(&[&["run", "two-queues.toml", "--json"], arguments].concat())["windows"][0]["stack"]
            ["levels"][2]["queues"][0]["limit"]
            .as_f64()
    };
    let line = "esx01: system module parameters set -m fnic -p fnic_max_qdepth=48";
    assert_eq!(dqlen(&[]), Some(32.0));
    assert_eq!(dqlen(&["--set", line]), Some(48.0));
    assert_eq!(dqlen(&["--set", line, "--set", &line.replace("48", "64")]), Some(64.0));
}

#[test]
fn one_seed_gives_one_result_whatever_the_threads() {
    let of = |seed, threads| {
        kavg(&["run", "two-hosts.toml", "--json", "--seed", seed, "--threads", threads]).out
    };
    assert_eq!(of("7", "1"), of("7", "4"));
    assert_ne!(of("7", "1"), of("8", "1"));
}

#[test]
fn seeds_give_means_and_judge_expectations_on_them() {
    let of =
        |seeds, more: &[&str]| kavg(&[&["run", "two-hosts.toml", "--seeds", seeds], more].concat());
    let [one, two] =
        ["1", "2"].map(|seed| json(&["run", "two-hosts.toml", "--json", "--seed", seed]));
    let both = json(&["run", "two-hosts.toml", "--json", "--seeds", "2"]);
    let alone = json(&["run", "two-hosts.toml", "--json", "--seeds", "1"]);
    let iops = |value: &Value| value["windows"][0]["stack"]["iops"].clone();
    let p99 = |value: &Value| {
        object(&value["windows"][0]["hosts"], "device")["percentiles"]["guest_ms"]["p99"].clone()
    };
    for of in [&iops as &dyn Fn(&Value) -> Value, &p99] {
        let (first, second) = (of(&one).as_f64().unwrap(), of(&two).as_f64().unwrap());
        let spread = of(&both);
        assert!((spread["mean"].as_f64().unwrap() - f64::midpoint(first, second)).abs() < 1e-6);
        // Of two figures the standard error of the mean is half of what is between them.
        let half = 12.706 * (first - second).abs() / 2.0;
        assert!((spread["ci95"].as_f64().unwrap() - half).abs() < 1e-3, "{spread}");
        assert!(of(&alone)["ci95"].is_null());
    }
    assert_eq!(of("4", &["--json", "--threads", "1"]).out, of("4", &["--json"]).out);
    let said = kavg(&["run", "not-met.toml", "--seeds", "3"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    insta::assert_snapshot!(said.out);
    assert!(kavg(&["run", "not-met.toml", "--seeds", "3", "-q"]).out.contains("0/3"));
    for refused in [&["--seeds", "0"][..], &["--seeds", "2", "--seed", "1"]] {
        let said = kavg(&[&["run", "two-hosts.toml"], refused].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""));
    }
}

#[test]
fn every_sets_the_samples_of_the_csv() {
    let directory = tempfile::tempdir().unwrap();
    let samples = |every: &[&str]| {
        let file = directory.path().join("samples.csv");
        let csv = ["run", "two-queues.toml", "-q", "--csv", file.to_str().unwrap()];
        assert_eq!(kavg(&[&csv, every].concat()).code, 0);
        std::fs::read_to_string(&file).unwrap().lines().count() - 2
    };
    assert_eq!(samples(&[]), 19);
    assert_eq!(samples(&["--every", "40ms"]), 9);
}

#[test]
fn each_host_has_a_csv_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("lab.csv");
    assert_eq!(kavg(&["run", "two-hosts.toml", "-q", "--csv", file.to_str().unwrap()]).code, 0);
    let mut names: Vec<_> =
        directory.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["lab.esx-1.csv", "lab.esx-2.csv"]);
}

#[test]
fn a_window_is_chosen_by_its_name() {
    let shown = |window: &str| {
        let out = kavg(&["run", "two-queues.toml", "--window", window]).out;
        out.lines().find(|line| line.starts_with("The stack")).unwrap().to_owned()
    };
    assert!(shown("96").starts_with("The stack in window 96, 0.22 s to 0.4 s: "));
    assert!(shown("run").starts_with("The stack in window run, 0.02 s to 0.4 s: "));
}

#[test]
fn windows_are_compared_by_name_and_what_has_no_counterpart_is_told() {
    let said = kavg(&["run", "two-queues.toml", "--compare", "two-hosts.toml"]);
    assert_eq!(said.code, 0, "{}", said.err);
    for line in [
        "before  two-queues.toml, window run\n",
        "after   two-hosts.toml, window run\n",
        "only before: window 64, 96\n",
        "no window has the same name on both sides: the whole runs are compared\n",
    ] {
        assert!(said.out.contains(line), "{line}: {}", said.out);
    }
    let asked = ["run", "two-queues.toml", "--compare", "two-hosts.toml", "--window", "64"];
    let said = kavg(&asked);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("--window 64: both sides must have it; they have run"), "{said:?}");
}

#[test]
fn every_pair_of_windows_has_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("renamed.toml");
    let text = std::fs::read_to_string(data().join("two-queues.toml")).unwrap();
    let text = text
        .replace("name = \"96\"", "name = \"more\"")
        .replace("window = \"96\"", "window = \"more\"");
    std::fs::write(&file, text).unwrap();
    let renamed = kavg(&["run", "two-queues.toml", "--compare", file.to_str().unwrap()]).out;
    assert!(renamed.contains("only before: window 96\nonly after: window more\n"), "{renamed}");
    assert!(renamed.contains(", window 64\n") && !renamed.contains("verdict after"), "{renamed}");
    let same = kavg(&["run", "two-queues.toml", "--compare", "two-queues.toml"]).out;
    assert!(same.contains("verdict after") && !same.contains("only "), "{same}");
}

#[test]
fn a_run_by_the_clock_gives_the_same_and_says_how_late_it_was() {
    let mut fast = json(&["run", "two-queues.toml", "--json"]);
    let mut paced = json(&["run", "two-queues.toml", "--json", "--pace", "1000x"]);
    assert!(fast["lateness"].is_null());
    assert_eq!(paced["lateness"].as_array().unwrap().len(), 6);
    (fast["lateness"], paced["lateness"]) = Default::default();
    assert_eq!(fast, paced);
    let said = kavg(&["run", "two-queues.toml", "--pace", "1000x"]);
    assert!(said.out.contains("\nLateness of "), "{}", said.out);
}

#[test]
fn step_lets_an_event_happen_for_each_line() {
    let arguments = ["run", "two-queues.toml", "-q", "--pace", "step"];
    assert_eq!(kavg_with(&arguments, "").out, "");
    let said = kavg_with(&arguments, "\n\n");
    assert!(said.out.contains("esx01 <- submit sql:scsi0:1 tag 0: read 4096 bytes"), "{said:?}");
}

#[test]
fn a_journal_is_replayed_to_the_same_result_a_cut_one_too_and_a_damaged_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("journal");
    let name = file.to_str().unwrap();
    for pace in ["virtual", "1000x"] {
        let run = ["run", "two-queues.toml", "-q", "--pace", pace, "--journal", name];
        assert_eq!(kavg(&run).code, 0);
        let said = kavg(&["replay", name]);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.out.ends_with("identical, bit for bit: outputs and counters\n"), "{said:?}");
    }
    let mut bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let said = kavg(&["replay", name]);
    assert_eq!(said.code, 0, "{said:?}");
    let cut = "as far as it goes: the journal is cut at byte ";
    assert!(said.out.contains(cut), "{said:?}");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let said = kavg(&["replay", name]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("the journal is damaged in the frame at byte "), "{said:?}");
}

#[test]
fn what_is_called_as_a_journal_and_is_none_keeps_nobody_from_those_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let [journal, other] = ["b.journal", "a.journal"].map(|name| directory.path().join(name));
    let folder = directory.path().to_str().unwrap();
    let run = ["run", "two-queues.toml", "-q", "--journal", journal.to_str().unwrap()];
    assert_eq!(kavg(&run).code, 0);
    std::fs::write(&other, "a journal of a filesystem\n").unwrap();
    let said = kavg(&["replay", folder]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.out.ends_with("identical, bit for bit: outputs and counters\n"), "{said:?}");
    assert_eq!(said.err, format!("{}: it is no journal, and left out\n", other.display()));
    // A segment of which the daemon was killed before it had a byte is none of those.
    let empty = directory.path().join("b-000001.journal");
    std::fs::write(&empty, "").unwrap();
    std::fs::rename(&journal, directory.path().join("b-000000.journal")).unwrap();
    std::fs::remove_file(&other).unwrap();
    let said = kavg(&["replay", folder]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    std::fs::write(&other, "a journal of a filesystem\n").unwrap();
    let said = kavg(&["diagnose", folder]);
    assert!(
        said.err.starts_with(&format!("{}: it is no journal, and left out\n", other.display()))
    );
    let said = kavg(&["replay", folder, other.to_str().unwrap()]);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "who names it means it");
}

/// An I/O each tenth of a second, so that frames end by the time that they hold.
const SLOW: &str = r#"
title = "slow"
duration = "60s"
[array.a]
servers = 1
service = "1ms"
[host.esx.adapter.vmhba1]
driver = "fnic"
[datastore.d]
[vm.v.disk."scsi0:0"]
datastore = "d"
[vm.v.workload]
arrival = "fixed"
rate = 10
"#;

#[test]
fn the_journal_of_a_killed_run_replays_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("slow.toml"), SLOW).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_kavg"))
        .args(["run", "slow.toml", "--pace", "step", "--journal", "slow.kj"])
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = run.stdin.take().unwrap();
    keys.write_all(&[b'\n'; 200]).unwrap();
    // Read from until the end: a run whose reader has gone ends, and its journal with it.
    let mut told = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(told.any(|line| line.starts_with("3.")));
    let mut files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let part = files.find(|file| file.extension().is_some_and(|end| end == "part")).unwrap();
    // Two of the three seconds that were seen, of ten submissions and ten answers each, are on their way.
    let inputs = || journal::replay(File::open(&part).unwrap()).map_or(0, |report| report.inputs);
    while inputs() < 40 {
        std::thread::yield_now();
    }
    run.kill().unwrap();
    run.wait().unwrap();
    drop(told);
    let said = kavg(&["replay", part.to_str().unwrap()]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.contains("as far as it goes: the journal is cut at byte "), "{said:?}");
}

#[test]
fn json_holds_windows_counters_verdicts_and_expectations() {
    let value = json(&["run", "two-queues.toml", "--json"]);
    let window = &value["windows"][1];
    assert_eq!(window["name"], "64");
    assert_eq!(window["hosts"][0]["objects"][0]["counters"]["aqlen"], 2048.0);
    assert_eq!(window["verdicts"][0]["findings"][0]["cause"], "device-depth");
    assert_eq!(value["expectations"][0]["holds"], true);
    assert_eq!(value["expectations"][1]["expected"]["min"], serde_json::Value::Null);
    let value = json(&["run", "two-hosts.toml", "--json"]);
    assert!(value["log"][0]["line"].as_str().unwrap().starts_with("DQLEN of naa."));
}

#[test]
fn every_key_of_the_json_is_documented() {
    let page = include_str!("../../../docs/reference/json.md");
    let (_, page) = page.split_once("# The JSON of a run").unwrap();
    for arguments in [["two-queues.toml", "--pace=1000x"], ["two-hosts.toml", "--pace=virtual"]] {
        let value = json(&[&["run", "--json"], arguments.as_slice()].concat());
        assert_eq!(value["version"], 1);
        // A verdict has a section of its own, and a test with `diagnose`.
        every_key(&value, &["counters", "verdicts"], &mut |key| {
            assert!(page.contains(&format!("`{key}`")), "docs/reference/json.md lacks `{key}`");
        });
    }
}

/// The object of a kind on the first host.
fn object<'a>(hosts: &'a Value, kind: &str) -> &'a Value {
    let objects = hosts[0]["objects"].as_array().unwrap();
    objects.iter().find(|object| object["kind"] == kind).unwrap()
}

#[test]
fn json_has_a_series_of_every_counter_with_the_times_of_its_samples() {
    let value = json(&["run", "two-queues.toml", "--json", "--every", "40ms"]);
    let times: Vec<_> = [0.08, 0.12, 0.16, 0.2, 0.24, 0.28, 0.32, 0.36, 0.4].into();
    assert_eq!(value["series"][0]["at_s"], Value::from(times));
    assert_eq!(value["series"][0]["host"], "esx01");
    for kind in ["device", "virtual disk", "adapter"] {
        let counters = &object(&value["series"], kind)["counters"];
        for (key, values) in counters.as_object().unwrap() {
            assert_eq!(values.as_array().unwrap().len(), 9, "{kind} {key}");
        }
    }
    let dqlen = &object(&value["series"], "device")["counters"]["dqlen"];
    assert_eq!(*dqlen, Value::from(vec![32.0; 9]));
}

/// What a disk's percentiles are is its counters' own; a device's parts are no more than the whole.
#[test]
fn json_has_percentiles_of_every_window() {
    let value = json(&["run", "two-queues.toml", "--json"]);
    for window in value["windows"].as_array().unwrap() {
        let of = |kind| object(&window["hosts"], kind);
        let (disk, device) = (of("virtual disk"), &of("device")["percentiles"]);
        let total = &disk["percentiles"]["total_ms"];
        assert_eq!(*total, of("vm")["percentiles"]["total_ms"]);
        let number = |value: &Value| value.as_f64().unwrap();
        for key in ["p50", "p95", "p99"] {
            assert_eq!(total[key], disk["counters"][key], "{key}");
            for part in ["guest_ms", "kernel_ms", "device_ms"] {
                assert!(number(&device[part][key]) <= number(&total[key]), "{part} {key}");
            }
        }
        assert!(number(&total["p50"]) < number(&total["p99"]));
        assert!(of("adapter")["percentiles"].is_null());
    }
}

/// What no I/O was measured of has no percentiles, neither in a window nor in a sample; zero would be
/// the quickest disk of all.
#[test]
fn percentiles_of_a_disk_without_io_are_null() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("idle.toml");
    let text = std::fs::read_to_string(data().join("two-queues.toml")).unwrap();
    let idle = "[vm.idle.disk.\"scsi0:1\"]\ndatastore = \"prod\"\n\n[[event]]";
    std::fs::write(&file, text.replacen("[[event]]", idle, 1)).unwrap();
    let value = json(&["run", file.to_str().unwrap(), "--json"]);
    let is_idle = |object: &&Value| object["name"] == "idle:scsi0:1";
    let objects = |value: &Value| value.as_array().unwrap().clone();
    for window in objects(&value["windows"]) {
        let all = objects(&window["hosts"][0]["objects"]);
        let disk = all.iter().find(is_idle).unwrap();
        for key in ["p50", "p95", "p99"] {
            let total = &disk["percentiles"]["total_ms"];
            assert_eq!([&total[key], &disk["counters"][key]], [&Value::Null; 2], "{key}");
        }
    }
    let all = objects(&value["series"][0]["objects"]);
    let samples = &all.iter().find(is_idle).unwrap()["counters"]["p99"];
    assert!(samples.as_array().unwrap().iter().all(Value::is_null), "{samples}");
}

#[test]
fn a_shipped_scenario_is_run_by_its_name_and_a_file_goes_first() {
    assert_eq!(kavg(&["run", "s4-iodepth-1", "-q"]).code, 0);
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(data().join("not-met.toml"), directory.path().join("s4-iodepth-1")).unwrap();
    let path = directory.path().join("s4-iodepth-1");
    assert_eq!(kavg(&["run", path.to_str().unwrap(), "-q"]).code, 1);
}

#[test]
fn a_queue_with_free_slots_says_that_an_iops_limit_holds_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("limited.toml");
    let text = std::fs::read_to_string(data().join("two-queues.toml")).unwrap();
    let text = text.replace(
        "datastore = \"prod\"\n\n[vm.sql.w",
        "datastore = \"prod\"\nlimit = 4000\n\n[vm.sql.w",
    );
    std::fs::write(&file, text).unwrap();
    let name = |path: &str| {
        let run = json(&["run", path, "--json"]);
        run["windows"][1]["stack"]["levels"][2]["queues"][0]["name"].as_str().unwrap().to_owned()
    };
    assert!(!name("two-queues.toml").ends_with(" (IOPS limit)"));
    assert!(name(file.to_str().unwrap()).ends_with(" (IOPS limit)"));
}

#[test]
fn what_has_to_be_known_of_a_window_stands_beside_its_figures() {
    let said = kavg(&["run", "notes.toml"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let notes: Vec<_> = said.out.lines().filter(|line| line.starts_with("Window ")).collect();
    insta::assert_snapshot!(notes.join("\n"));
    let json = json(&["run", "notes.toml", "--json"]);
    let rest = json["windows"][2]["notes"].as_array().expect("notes are a list");
    let rest = rest.iter().map(|note| format!("Window rest: {}", note.as_str().expect("a line")));
    assert!(rest.eq(notes.iter().filter(|line| line.starts_with("Window rest")).copied()));
}

#[cfg(feature = "parquet")]
#[test]
fn samples_are_parquet_where_the_file_is_called_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("samples.parquet");
    let said = kavg(&["run", "two-queues.toml", "-q", "--csv", file.to_str().unwrap()]);
    assert_eq!(said.code, 0, "{}", said.err);
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn a_scenario_comes_from_standard_input_and_its_samples_go_to_standard_output() {
    let text = std::fs::read_to_string(data().join("two-queues.toml")).unwrap();
    let said = kavg_with(&["run", "-", "--csv", "-"], &text);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.starts_with("\"(PDH-CSV 4.0) (UTC)(0)\","), "{:.80}", said.out);
    let refused = kavg(&["run", "two-hosts.toml", "--csv", "-"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("standard output takes one of several hosts"));
}

#[test]
fn what_a_host_refuses_in_a_run_is_said() {
    let text = r#"
        title = "a disk that would come back while its I/O is under way"
        duration = "1s"
        array.a1 = { servers = 1, service = "100ms" }
        host.h1.adapter.vmhba1.driver = "lpfc"
        datastore.here = {}
        datastore.there = {}
        [vm.web.disk."scsi1:0"]
        datastore = "here"
        [vm.web.workload]
        arrival = "poisson"
        rate = 500
        [[event]]
        at = "0.5s"
        vm = "web"
        migrate = { datastore = "there" }
        [[event]]
        at = "0.501s"
        vm = "web"
        migrate = { datastore = "here" }
    "#;
    let said = kavg_with(&["run", "-", "--json"], text);
    let line = "0.501000 s  h1  refused: virtual disk `web:scsi1:0` is in use\n";
    assert_eq!((said.code, said.err.as_str()), (0, line));
}

/// Held commands are on a level of their own, and a level's time is that of all commands.
#[test]
fn as_many_wait_on_a_level_as_littles_law_says() {
    let run = json(&["run", "--json", "s3-locks"]);
    let stack = &run["windows"].as_array().unwrap().last().unwrap()["stack"];
    let number = |value: &Value| value.as_f64().unwrap();
    let mut sum_ms = 0.0;
    for level in stack["levels"].as_array().unwrap() {
        for queue in level["queues"].as_array().unwrap() {
            if ["device", "held", "adapter"].contains(&level["kind"].as_str().unwrap()) {
                let by_law = number(&queue["iops"]) * number(&queue["ms"]) / 1_000.0;
                let waiting = number(&queue["waiting"]);
                assert!((waiting - by_law).abs() <= 0.1 + 0.02 * by_law, "{queue}");
            }
        }
        sum_ms += level["ms"].as_f64().unwrap_or_default();
    }
    // What the locks themselves take is of no virtual disk.
    assert!((sum_ms / number(&stack["total_ms"]) - 1.0).abs() < 0.02, "{sum_ms}: {stack}");
}

#[test]
fn a_reservation_that_nobody_keeps_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept.toml");
    let two_queues = fs::read_to_string(data().join("two-queues.toml")).unwrap();
    let disk = "[vm.sql.disk.\"scsi0:1\"]\n";
    let reserved = two_queues.replacen(disk, &format!("{disk}reservation = 500\n"), 1);
    let store = "[datastore.prod]\n";
    let told = "sql:scsi0:1 has a reservation, which only mClock keeps";
    let fair = reserved.replacen(store, &format!("{store}scheduler = \"sfq\"\n"), 1);
    let old = reserved.replacen("esxi = \"6.7\"", "esxi = \"5.1\"", 1);
    // Off from the middle of the first window (named `64`) on, and on again before the second.
    let option = |at, value| {
        let line =
            format!("system settings advanced set -o /Disk/SchedulerWithReservation -i {value}");
        format!("[[event]]\nat = \"{at}ms\"\nesxcli = \"{line}\"\n")
    };
    let off = format!("{reserved}\n{}{}", option(100, 0), option(210, 1));
    let on = format!("{reserved}\n{}{}", option(10, 0), option(19, 1));
    let cases = [
        (reserved, [true; 2]),
        (fair, [false; 2]),
        (old, [false; 2]),
        (off, [false, true]),
        (on, [true; 2]),
    ];
    for (text, is_kept) in cases {
        fs::write(&file, &text).unwrap();
        let run = json(&["run", file.to_str().unwrap(), "--json"]);
        let mut windows = run["windows"].as_array().unwrap().iter();
        let notes = ["64", "96"].map(|name| {
            windows.find(|window| window["name"] == name).unwrap()["notes"].to_string()
        });
        assert_eq!(
            notes.each_ref().map(|notes| !notes.contains(told)),
            is_kept,
            "{text}: {notes:?}"
        );
    }
}

/// The head line of a run of one VM on one array, and its stack.
fn head_of(disk: &str, workload: &str) -> (String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.toml");
    let text = format!(
        "title = \"t\"\nduration = \"10s\"\n[array.x]\nservers = 64\nservice = \"5ms\"\nspread = \"constant\"\n\
         [host.e.adapter.vmhba1]\ndriver = \"qlnativefc\"\n[datastore.d]\narray = \"x\"\n[vm.v]\nguest = \"linux\"\n\
         disk.\"scsi0:1\" = {{ datastore = \"d\"{disk} }}\nworkload = {{ {workload} }}\n"
    );
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let said = kavg(&["run", file]).out;
    let head = said.lines().find(|line| line.starts_with("The stack, ")).unwrap().to_owned();
    (head, json(&["run", "--json", file])["windows"][0]["stack"].clone())
}

#[test]
fn the_head_line_is_of_the_ios_of_applications_where_guests_cut_or_merge_them() {
    let (head, stack) = head_of("", "rate = 50, threads = 1, size = \"4k\"");
    assert!(head.contains(": 50.0 IOPS, 0.2 MiB/s, "), "{head}");
    assert_eq!(stack["application"], Value::Null);
    // PVSCSI's driver cuts a MiB in two.
    let (head, stack) = head_of("", "rate = 50, threads = 1, size = \"1m\"");
    assert!(
        head.contains(": 50.0 IOPS of applications, cut into 100 commands a second, 50.0 MiB/s, "),
        "{head}"
    );
    assert!(head.ends_with(" ms an I/O"), "{head}");
    assert_eq!(
        [&stack["iops"], &stack["application"]["iops"]].map(|iops| iops.as_f64().unwrap().round()),
        [100.0, 50.0]
    );
    let ms = |stack: &Value, key: &str| stack[key].as_f64().unwrap();
    assert!(ms(&stack["application"], "ms") >= ms(&stack, "total_ms"), "{stack}");
    // A plug merges 16 of one call; the guest knows the time of its commands.
    let block = ", block = { scheduler = \"none\", batch = 16 }";
    let (head, stack) = head_of(block, "threads = 16, access = \"sequential\"");
    assert!(
        head.contains(" IOPS of applications, merged into ") && head.ends_with(" ms a command"),
        "{head}"
    );
    assert!(ms(&stack["application"], "iops") > 2.0 * ms(&stack, "iops"), "{stack}");
    assert_eq!(stack["application"]["ms"], Value::Null);
}
