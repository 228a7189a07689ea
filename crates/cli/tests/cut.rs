//! Ways to storage that lead nowhere: a run knows of them whatever its hosts know, names them for each kind of datastore,
//! policy and window, and calls nothing of that the array.

mod common;

use std::fs;

use common::json;
use serde_json::Value;

/// A VM on an array that answers in 5 ms, for so long, with rows of so many seconds; `way` is what leads there.
fn scenario(way: &str, threads: u32, (duration, sample): (u32, u32), rest: &str) -> String {
    format!(
        "title = \"t\"\nduration = \"{duration}s\"\nsample = \"{sample}s\"\n\
         [array.a]\nservers = 4096\nservice = \"5ms\"\nspread = \"constant\"\n{way}\
         [vm.v]\nguest = \"linux\"\ndisk.\"scsi0:1\".datastore = \"d\"\nworkload = {{ threads = {threads} }}\n{rest}"
    )
}

fn event(at: u32, what: &str, state: &str) -> String {
    format!("[[event]]\nat = \"{at}s\"\n{what}\nstate = \"{state}\"\n")
}

fn window(from: u32, to: u32) -> String {
    format!("[[window]]\nname = \"w\"\nfrom = \"{from}s\"\nto = \"{to}s\"\n")
}

/// Cause and sentence of the findings over the last window.
fn findings(text: &str) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.toml");
    fs::write(&file, text).unwrap();
    let run = json(&["run", file.to_str().unwrap(), "--json"]);
    let verdict = &run["windows"].as_array().unwrap().last().unwrap()["verdicts"][0];
    let told = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = verdict["findings"].as_array().unwrap().iter();
    findings.map(|one| (told(&one["cause"]), told(&one["sentence"]))).collect()
}

/// The findings are one of that cause, which says all of that.
fn check_only(text: &str, cause: &str, parts: &[&str]) {
    let found = findings(text);
    let [(only, sentence)] = &found[..] else { panic!("{found:?}: {text}") };
    let says = parts.iter().all(|part| sentence.contains(part));
    assert!(only == cause && says, "{found:?} for {parts:?}: {text}");
}

const NFS: &str = "[switch.s]\n[host.h]\nnfs_switch = \"s\"\n[datastore.d]\nkind = \"nfs\"\n";

/// A mount finds at once that no way is left, and what is asked waits in the host: esxtop's row has none of it [ELA].
#[test]
fn a_mount_behind_a_switch_that_is_down_is_silent() {
    let down =
        |from, to| event(from, "switch = \"s\"", "down") + &event(to, "switch = \"s\"", "up");
    for (threads, outstanding) in
        [(1, "one command is"), (4, "4 commands are"), (64, "64 commands are")]
    {
        let told = format!("{outstanding} outstanding and none completes, no path to it works");
        for (time, rest) in [
            ((30, 1), down(4, 24) + &window(6, 20)),
            ((30, 1), down(4, 24) + &window(0, 30)),
            ((30, 1), down(4, 24) + &window(20, 28)),
            ((20, 1), event(10, "switch = \"s\"", "down") + &window(4, 20)),
            ((13, 5), event(10, "switch = \"s\"", "down") + &window(0, 13)),
        ] {
            check_only(&scenario(NFS, threads, time, &rest), "silence", &[&told]);
        }
    }
}

/// A host with so many adapters, of which the first is cut after 10 s and found dead 30 s later.
fn paths(adapters: u32, policy: &str) -> String {
    let adapter = |number| format!("adapter.vmhba{number} = {{ driver = \"qlnativefc\" }}\n");
    let adapters: String = (1..=adapters).map(adapter).collect();
    format!("[host.h]\n{adapters}[datastore.d]\npath_policy = \"{policy}\"\n")
}

#[test]
fn a_path_that_is_dead_and_not_found_so_is_named_with_what_is_on_it() {
    const HELD: &str =
        "none completes, while vmhba1:C0:T0:L0 was dead and the host did not know it";
    const ALONE: &str = "none completes, no path to it works";
    const FIRST: &str = "vmhba1:C0:T0:L0 is down: 1 of the 2 paths of";
    let cut = |name: &str| event(10, &format!("path = \"{name}\""), "down");
    for threads in [1, 4] {
        let count = if threads == 1 { "one command is" } else { "4 commands are" };
        let left = format!("The host has not found that yet: {count} outstanding there.");
        for policy in ["fixed", "mru", "rr"] {
            for (adapters, time, window, cause, told) in [
                (2, (40, 1), window(0, 13), "silence", [count, HELD]),
                (2, (40, 1), window(11, 13), "silence", [count, HELD]),
                (1, (40, 1), window(0, 13), "silence", [count, ALONE]),
                // The rows end before the window does, and before the run does when it is cut.
                (2, (40, 5), window(0, 13), "path-down", [FIRST, &left]),
                (1, (40, 5), window(0, 13), "path-down", ["no other path of", &left]),
                (2, (13, 5), String::new(), "path-down", [FIRST, &left]),
                (2, (40, 5), window(10, 13), "path-down", [FIRST, &left]),
            ] {
                let rest = cut("vmhba1") + &window;
                check_only(&scenario(&paths(adapters, policy), threads, time, &rest), cause, &told);
            }
        }
        // Nobody is on the other one yet.
        let rest = cut("vmhba2") + &window(0, 13);
        let told = [
            "vmhba2:C0:T0:L0 is down",
            "has not found that yet. Redundancy is lost; nobody is slower",
        ];
        check_only(&scenario(&paths(2, "fixed"), threads, (40, 1), &rest), "path-down", &told);
    }
}

/// 64 commands are on a path for 2 s before they go by the other one. That is no time of the array, whose 5 ms are known.
#[test]
fn what_was_on_a_dead_path_is_no_slow_array() {
    let way = paths(2, "fixed").replace("qlnativefc\"", "qlnativefc\", dead_after = \"2s\"");
    for threads in [4, 64] {
        for (from, to) in [(12, 13), (8, 20)] {
            let rest = event(10, "path = \"vmhba1\"", "down") + &window(from, to);
            let found = findings(&scenario(&way, threads, (20, 1), &rest));
            let causes: Vec<&str> = found.iter().map(|(cause, _)| cause.as_str()).collect();
            assert!(causes.contains(&"path-down") && !causes.contains(&"array-slow"), "{found:?}");
            // A row alone does not tell how long it is: of 1 s.
            assert!(!found.iter().any(|(_, told)| told.contains("for about 1")), "{found:?}");
        }
    }
}
