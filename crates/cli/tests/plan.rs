//! `kavg plan`: VMs per datastore by the closed formulas, checked by simulation.

mod common;

use common::{every_key, json, kavg};

const ASKED: [&str; 9] =
    ["plan", "--hosts", "2", "--active", "16", "--lun-depth", "128", "--driver", "lpfc"];

#[test]
fn a_plan_says_what_fits_and_what_to_type() {
    let said = kavg(&ASKED);
    assert_eq!(said.code, 0, "{}", said.err);
    insta::assert_snapshot!(said.out);
}

/// S3: four VMs on each of eight datastores, evenly on two hosts, have 16 commands each; and the rule of 10, 15
/// or 20 VMs, which is of two hosts and of so many active.
#[test]
fn the_hosts_of_s3() {
    let vms = |active: &str| {
        let value = json(&["plan", "--hosts", "2", "--active", active, "--vms", "32", "--json"]);
        (value["vms"].as_u64().unwrap(), value["datastores"].as_u64().unwrap())
    };
    assert_eq!(vms("16"), (4, 8));
    assert_eq!(["6", "4.2", "3.2"].map(|active| vms(active).0), [10, 14, 20]);
}

#[test]
fn the_json_is_documented_and_says_the_same() {
    let value = json(&[&ASKED[..], &["--json", "--vms", "30"]].concat());
    assert_eq!((&value["vms"], &value["vms_on_host"]), (&8.into(), &4.into()));
    assert_eq!(value["datastores"], 4);
    let page = include_str!("../../../docs/reference/json.md");
    let (_, page) = page.split_once("# The JSON of a plan").unwrap();
    every_key(&value, &[], &mut |key| {
        assert!(page.contains(&format!("`{key}`")), "docs/reference/json.md lacks `{key}`");
    });
}

/// 5 active on each of 4 VMs are more than a host's 16: only 3 fit, and a lone VM has no more than its host.
#[test]
fn a_part_below_the_default_is_set_for_one_vm_too() {
    let value = json(&[
        "plan",
        "--hosts",
        "16",
        "--active",
        "5",
        "--port-depth",
        "2048",
        "--luns",
        "8",
        "--json",
    ]);
    assert_eq!((&value["depth"], &value["vms_on_host"]), (&16.into(), &3.into()));
    let lines: Vec<_> = value["commands"].as_array().unwrap().iter().collect();
    assert_eq!(
        lines,
        [
            "esxcli storage core device set -d DEVICE -O 16",
            "esxcli storage core device set -d DEVICE -m 16"
        ]
    );
}

#[test]
fn what_cannot_be_planned_is_one_line() {
    let bad: [(&[&str], &str); 6] = [
        (&["--hosts", "8", "--active", "1", "--lun-depth", "3"], "3 of the LUN / 8 hosts"),
        (&["--hosts", "0", "--active", "1"], "0 is not in 1..=1024"),
        (&["--hosts", "1", "--active", "NaN"], "it is a number from 0.1 to 254"),
        (&["--hosts", "1", "--active", "1", "--davg", "1e9"], "it is a number from 0.01 to 1000"),
        (&["--hosts", "1", "--active", "1", "--driver", "nvme_pcie"], "there are nfnic"),
        (&["--hosts", "1", "--active", "1", "--port-depth", "64"], "--luns"),
    ];
    for (arguments, says) in bad {
        let said = kavg(&[&["plan"], arguments].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}");
        assert!(said.err.contains(says), "{arguments:?}: {}", said.err);
    }
}
