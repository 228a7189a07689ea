//! `kavg bench` on a small scale: what it measures, not how long that takes.

mod common;

use common::kavg;
use serde_json::Value;

#[test]
fn a_capture_is_generated_once_and_everything_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap();
    let shape = ["--columns", "1000", "--rows", "8", "--rounds", "1", "--in", place];
    let said = kavg(&[["bench", "capture", "--json"].as_slice(), &shape].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("generating"), "{}", said.err);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&report["columns"], &report["rows"]), (&1000.into(), &8.into()));
    let measured = report["measured"].as_array().unwrap();
    let of = |what: &str| measured.iter().find(|one| one["what"] == what).unwrap();
    assert_eq!(of("read, 2 threads")["to"], "bare loop, 2 threads");
    assert!(of("kavg diagnose, all of it")["median_s"].as_f64().unwrap() > 0.0);
    assert!(of("kavg diagnose .gz, all of it")["ratio"].as_f64().unwrap() > 0.0);
    let again = kavg(&[["bench", "capture"].as_slice(), &shape].concat());
    assert!(again.out.starts_with("1,000 columns, "), "{}", again.out);
    assert!(!again.err.contains("generating"), "{}", again.err);
}

#[test]
fn the_engine_alone_is_measured_beside_the_floor_and_its_journal_is_small() {
    let said = kavg(&["bench", "engine", "--rounds", "1", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    let measured = report["measured"].as_array().unwrap();
    assert_eq!(measured.len(), 4);
    assert_eq!((&measured[0]["ratio"], &measured[3]["ios"]), (&1.0.into(), &2_000_000.into()));
    assert!(measured.iter().all(|one| one["ns_per_io"].as_f64().unwrap() > 0.0));
    // Bytes do not depend on the machine: the bar is 32.
    assert!(report["journal"]["bytes_per_io"].as_f64().unwrap() < 32.0, "{report}");
}

#[test]
fn real_ios_are_measured_by_both_ways_on_all_back_ends() {
    let said = kavg(&["bench", "live", "--rounds", "1", "--millis", "20", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    let measured = report["measured"].as_array().unwrap();
    let own = measured.iter().filter(|one| one["server"] == "kavg");
    assert_eq!(own.clone().count(), 54, "two ways, three back ends, three kinds, three depths");
    assert!(own.clone().all(|one| one["iops"].as_f64().unwrap() > 0.0));
    assert!(own.clone().all(|one| one["cpu_ns_per_io"].as_f64().unwrap() > 0.0));
    let said = kavg(&["bench", "live", "--back-end", "tape"]);
    assert!(
        said.code != 0 && said.err.contains("[possible values: null, memory, file]"),
        "{}",
        said.err
    );
}
