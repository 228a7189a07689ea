//! `kavg bench capture` on a small capture: what it measures, not how long that takes.

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
