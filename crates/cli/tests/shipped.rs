//! Every shipped scenario shows what was published, and its CSV is diagnosed as the run itself is.

mod common;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use common::json;

fn scenarios() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> =
        directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(!files.is_empty());
    files
}

/// What is published is tested as published: only a figure that is missed may have another bound
/// beside it.
#[test]
fn expectations_hold_on_each_of_the_seeds_1_to_20() {
    let mut wrong = Vec::new();
    for file in scenarios() {
        let run = json(&["run", "--json", "--seeds", "20", file.to_str().unwrap()]);
        for one in run["expectations"].as_array().unwrap() {
            let is_declared_miss =
                !one["published"].is_null() && one["published"] != one["expected"];
            let holds = one["holds"] == true && one["seeds_met"] == 20;
            if !holds || one["missed"] != is_declared_miss {
                wrong.push(format!("{}:{}: {one}", file.display(), one["line"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Causes below the host that no row of a capture tells from a slow array.
const BELOW: [&str; 4] = ["command-window", "host-link", "switch-link", "slow-way"];

type Places = BTreeSet<(String, String)>;

/// Cause and place of every finding, and those of them that may be a path which was left, of which a capture says that
/// it was lost or left; and what is said of arrays, which names all their slow devices.
/// What a run knows and no column of esxtop has is left out: how busy an array is and its policies,
/// what waits inside the guests; and where commands wait because an array's queue refuses them, which stands
/// beside. Two decimals decide the order of findings that are alike, so it is
/// not looked at.
fn said(verdict: &serde_json::Value) -> (Places, Places, String, BTreeSet<String>) {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let findings = verdict["findings"].as_array().unwrap().iter();
    let is_refused = |finding: &&serde_json::Value| {
        let mut evidence = finding["evidence"].as_array().unwrap().iter();
        evidence.any(|one| one["label"] == "refusals per second")
    };
    let refused = findings.clone().filter(is_refused).map(|finding| text(&finding["at"])).collect();
    let (arrays, others): (Vec<_>, Vec<_>) =
        findings.partition(|finding| text(&finding["cause"]).starts_with("array-"));
    let place = |finding: &&serde_json::Value| (text(&finding["cause"]), text(&finding["at"]));
    // What an event ends, as by the reboot of a guest, a run knows, and a capture takes for that at best.
    let is_left = |finding: &&&serde_json::Value| {
        ["path-down", "aborts"].contains(&text(&finding["cause"]).as_str())
            && finding["confidence"].as_f64() <= Some(0.5)
    };
    let left = others.iter().filter(is_left).map(place).collect();
    let others = others.iter().map(place);
    // What a guest holds back, a window below the host, lost segments and the rate of a link are in no row of a capture: only a
    // run knows them.
    let told = |(cause, _): &(String, String)| {
        !cause.starts_with("virtual-") && !BELOW.contains(&&**cause)
    };
    let arrays = arrays.iter().map(ToString::to_string).collect();
    (others.filter(told).collect(), left, arrays, refused)
}

#[test]
fn the_csv_is_diagnosed_as_the_run_is() {
    let directory = tempfile::tempdir().unwrap();
    for file in scenarios() {
        let csv = directory.path().join("run.csv");
        let run = json(&["run", "--json", "--csv", csv.to_str().unwrap(), file.to_str().unwrap()]);
        let of_run: Vec<_> =
            run["windows"][0]["verdicts"].as_array().unwrap().iter().map(said).collect();
        let mut written: Vec<_> =
            directory.path().read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        written.sort();
        let mut arguments = vec!["diagnose", "--json"];
        arguments.extend(written.iter().map(|path| path.to_str().unwrap()));
        let of_csv: Vec<_> =
            json(&arguments)["verdicts"].as_array().unwrap().iter().map(said).collect();
        assert_eq!(of_csv.len(), of_run.len());
        for ((csv, left, arrays, _), (run, _, held, refused)) in of_csv.iter().zip(&of_run) {
            // Where commands are slow below a full queue, a capture that cannot know how busy the
            // array is speaks of the array alone.
            let is_known = |at: &String| arrays.contains(at.as_str()) || refused.contains(at);
            let unsaid: Vec<_> = run.difference(csv).filter(|(_, at)| !is_known(at)).collect();
            // Which policy the array has only a run knows: behind it no full queue is told.
            let is_held = |(cause, at): &(String, String)| {
                ["dsnro", "device-depth"].contains(&&**cause)
                    && held.contains("array-qos")
                    && held.contains(at)
            };
            let is_so =
                csv.iter().all(|one| run.contains(one) || left.contains(one) || is_held(one));
            assert!(is_so && unsaid.is_empty(), "{}: {csv:?}", file.display());
        }
        written.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
}
