//! IOPS limits of a VM with several disks on a device: before ESXi 6.0 they hold all of them together, and only where
//! each disk has one [PFS, DOC50]; from then on each holds its own.

mod common;

use std::fs;

use common::json;

/// A VM of a disk that is asked for more than its limit, and one that is not.
const TWO: &str = r#"
title = "Limits of two disks"
duration = "20s"
warmup = "2s"
sample = "1s"
[array.fa]
servers = 64
service = "1ms"
[host.esx.adapter.vmhba2]
driver = "qlnativefc"
[datastore.d]
[vm.v]
workload = [{ disk = "scsi0:0", threads = 32 }, { disk = "scsi0:1", rate = 50, arrival = "fixed" }]
[vm.v.disk."scsi0:0"]
datastore = "d"
limit = 100
[vm.v.disk."scsi0:1"]
datastore = "d"
"#;

/// What is said of limits in a version, and what the first disk does.
fn said(esxi: &str, of_second: &str) -> (Vec<String>, f64) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.toml");
    fs::write(&file, format!("esxi = \"{esxi}\"\n{TWO}{of_second}")).unwrap();
    let run = json(&["run", file.to_str().unwrap(), "--json"]);
    let window = &run["windows"][0];
    let findings = window["verdicts"][0]["findings"].as_array().unwrap().iter();
    let of_limits = findings.filter(|finding| finding["cause"] == "iops-limit");
    let said = of_limits.map(|finding| finding["sentence"].as_str().unwrap().to_owned()).collect();
    let disks = window["stack"]["disks"].as_array().unwrap();
    let first = disks.iter().find(|disk| disk["name"] == "v scsi0:0").unwrap();
    (said, first["iops"].as_f64().unwrap())
}

#[test]
fn a_limit_is_named_only_where_it_acts() {
    let (named, iops) = said("5.5", "");
    assert_eq!(named, [""; 0]);
    assert!(iops > 20_000.0, "{iops}");
    let (named, iops) = said("6.0", "");
    assert!(
        named[0].contains("held to 100 commands a second by its IOPS limit of 100: "),
        "{named:?}"
    );
    assert!((iops - 100.0).abs() < 1.0, "{iops}");
}

#[test]
fn limits_that_hold_together_are_told_as_their_sum() {
    let (named, iops) = said("5.5", "limit = 100");
    assert!((iops - 150.0).abs() < 5.0, "{iops}");
    let limit = "by its IOPS limit of 100, 200 with its VM's other disks there: ";
    assert!(named[0].contains(limit), "{named:?}");
}

/// The queue of the device in the picture.
#[test]
fn a_queue_is_called_limited_only_where_a_limit_acts() {
    let name = |esxi: &str, of_second: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("made.toml");
        fs::write(&file, format!("esxi = \"{esxi}\"\n{TWO}{of_second}")).unwrap();
        let run = json(&["run", file.to_str().unwrap(), "--json"]);
        let levels = run["windows"][0]["stack"]["levels"].as_array().unwrap().clone();
        let device = levels.into_iter().find(|level| level["kind"] == "device").unwrap();
        device["queues"][0]["name"].as_str().unwrap().to_owned()
    };
    for (esxi, of_second, is_limited) in
        [("5.5", "", false), ("5.5", "limit = 100", true), ("6.0", "", true)]
    {
        let name = name(esxi, of_second);
        assert_eq!(name.ends_with(" (IOPS limit)"), is_limited, "{esxi} {of_second}: {name}");
    }
}
