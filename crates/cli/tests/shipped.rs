//! Every shipped scenario shows what was published, and its CSV is diagnosed as the run itself is.

mod common;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use common::{json, kavg};

fn scenarios() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> =
        directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn expectations_hold() {
    let table: String = scenarios()
        .iter()
        .map(|file| {
            let said = kavg(&["run", "-q", file.to_str().unwrap()]);
            let name = file.file_stem().unwrap().display().to_string();
            let result = if said.code == 0 { "ok" } else { "NOT" };
            format!("{name} {result}\n{}{}", said.out, said.err)
        })
        .collect();
    assert!(!table.contains(" NOT\n"), "{table}");
}

/// Cause and place of every finding that counters alone tell. Left out is what a run knows and no
/// column of esxtop has: how busy an array is and its policies, what waits inside the guests. Two
/// decimals decide the order of findings that are alike, so it is not looked at.
fn said(verdict: &serde_json::Value) -> BTreeSet<String> {
    let findings = verdict["findings"].as_array().unwrap().iter();
    let causes = findings.map(|finding| (finding["cause"].as_str().unwrap(), &finding["at"]));
    let told = causes
        .filter(|(cause, _)| !["array-", "virtual-"].iter().any(|known| cause.starts_with(known)));
    told.map(|(cause, at)| format!("{cause} {at}")).collect()
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
        assert_eq!(of_csv, of_run, "{}", file.display());
        written.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
}
