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
const DEVICE: &str = "naa.6555503fa380614585c982774ac03727";
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

#[test]
fn the_published_after_lies_in_the_range() {
    let captured = Captured::new("s2-lun-depth");
    let said = captured.whatif(&["--set", DEEPER, "--to", BEFORE, "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let answers: Value = serde_json::from_str(&said.out).unwrap();
    let row = &answers[0]["simulated"]["rows"][0];
    assert_eq!((row["object"].as_str(), row["counter"].as_str()), (Some(DEVICE), Some("CMDS/s")));
    let figure = |key: &str| row[key].as_f64().unwrap();
    // S2: reads up by 37 %.
    let after = 1.37 * figure("captured");
    assert!(figure("low") <= after && after <= figure("high"), "{row}");
    assert!(answers[0]["calibration"]["mismatch_percent"].as_f64().unwrap() < 5.0);
    assert_eq!(answers[0]["calibration"]["devices"][0]["array"]["seen"], "knee");
}

#[test]
fn the_text_fits_80_columns_and_says_what_it_is_made_of() {
    let captured = Captured::new("s2-lun-depth");
    let said = captured.whatif(&["--set", DEEPER, "--to", BEFORE]);
    for part in ["What if on esx", "captured", "GAVG/cmd", "servers of", "keeps its commands"] {
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
    let captured = Captured::new("s1-competing-worlds");
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
fn what_cannot_be_asked_has_one_clear_line() {
    let captured = Captured::new("s2-lun-depth");
    let cases: [(&[&str], &str); 6] = [
        (&["--set", "storage core device set -d naa.9 -O 64"], "no device `naa.9`"),
        (&["--set", DEEPER, "--device", "naa.9"], "no device `naa.9`"),
        (&["--set", "reboot"], "command"),
        (
            &["--set", DEEPER, "--from", "01/01/2030 00:00:00", "--to", "01/02/2030 00:00:00"],
            "no sample",
        ),
        (&["--set", DEEPER, "--from", "soon"], "expected MM/DD/YYYY HH:MM:SS"),
        (&[], "--set <LINE>"),
    ];
    for (arguments, expected) in cases {
        let said = captured.whatif(arguments);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}: {said:?}");
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
    }
}
