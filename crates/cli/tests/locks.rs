//! What a run says of locks: reservations, and the hosts that they shut out.

mod common;

use common::json;
use serde_json::Value;

/// The verdicts of a window of a shipped scenario; the last one, where no name is given.
fn verdicts(scenario: &str, window: Option<&str>) -> Vec<Value> {
    let run = json(&["run", "--json", scenario]);
    let mut windows = run["windows"].as_array().unwrap().iter();
    let found = windows.rfind(|known| window.is_none_or(|name| known["name"] == name)).unwrap();
    found["verdicts"].as_array().unwrap().clone()
}

fn findings(verdict: &Value) -> impl Iterator<Item = &Value> {
    verdict["findings"].as_array().unwrap().iter()
}

#[test]
fn a_datastore_that_locks_by_reservations_is_told_so_and_no_option_is_proposed() {
    let verdicts = verdicts("s3-locks", None);
    let mut all = verdicts.iter().flat_map(findings);
    let found = all.find(|found| found["cause"] == "reservation-conflicts").unwrap();
    let change = &found["changes"][0];
    assert!(change["what"].as_str().unwrap().contains("ATS-only"), "{change}");
    assert!(!found.to_string().contains("perennially"), "{found}");
    for found in verdicts.iter().flat_map(findings) {
        assert!(!found["changes"].to_string().contains("HardwareAcceleratedLocking"), "{found}");
    }
}

/// In the storm one of the hosts completes eight commands in its first second, of which hundreds are refused.
#[test]
fn a_host_that_reservations_shut_out_is_told_so() {
    for verdict in verdicts("boot-storm", Some("storm")) {
        let causes: Vec<_> = findings(&verdict).map(|found| &found["cause"]).collect();
        assert_eq!(causes, ["reservation-conflicts"], "{}", verdict["host"]);
    }
}
