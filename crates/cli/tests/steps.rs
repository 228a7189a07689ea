//! Steps that `kavg run` proposes are lines that `--set` takes on the same scenario, on the host that is meant;
//! what takes them back gives the same figures again.

mod common;

use common::kavg;
use serde_json::Value;

/// Hosts before one array, the same in all of the scenarios.
const HEAD: &str = r#"
title = "t"
duration = "3s"
warmup = "1s"
sample = "1s"
"#;

const DEVICE: &str = "naa.600000000000000000000000000000aa";

/// Two hosts with the drivers and the threads of one, or of each of two, VMs.
fn two_hosts(
    array: &str,
    drivers: [&str; 2],
    vms: [(&str, u32, u32); 2],
    lines: &[String],
) -> String {
    let mut text = format!("{HEAD}esxcli = {lines:?}\narray.fa = {{ {array} }}\n");
    text += &format!("datastore.gold = {{ device = {DEVICE:?} }}\n");
    for ((host, driver), (vm, count, threads)) in ["esx-a", "esx-b"].iter().zip(drivers).zip(vms) {
        text += &format!(
            "host.{host}.adapter.vmhba2 = {{ driver = {driver:?} }}\n\
             [vm.{vm}]\nhost = {host:?}\ncount = {count}\ndisk.\"scsi0:0\".datastore = \"gold\"\n\
             workload.threads = {threads}\n"
        );
    }
    let (vms, hosts): (Vec<_>, Vec<_>) = text.lines().partition(|line| !line.starts_with("host."));
    let (head, vms) = vms.split_at(vms.iter().position(|line| line.starts_with("[vm")).unwrap());
    [head, &hosts, vms].concat().join("\n")
}

/// The figures of all hosts in a run, and what it was refused.
fn run(file: &str, lines: &[&str]) -> (Value, Vec<Value>) {
    let lines = lines.iter().flat_map(|line| ["--set", line]);
    let said = kavg(&["run", "--json", file].into_iter().chain(lines).collect::<Vec<_>>());
    assert!(said.code < 2, "{}", said.err);
    let run: Value = serde_json::from_str(&said.out).unwrap();
    let refused = run["log"].as_array().unwrap().iter().filter(|line| line["event"] == "refused");
    let refused = refused.cloned().collect();
    (run, refused)
}

fn list<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    of[key].as_array().unwrap().iter()
}

fn texts<'a>(steps: &[&'a Value], key: &str) -> Vec<&'a str> {
    steps.iter().map(|step| step[key].as_str().unwrap_or_else(|| panic!("{step}"))).collect()
}

#[test]
fn steps_of_several_hosts_are_taken_where_they_are_meant_and_taken_back() {
    let dsnro = |host, depth| format!("{host}: storage core device set -d {DEVICE} -O {depth}");
    let roomy = "servers = 256, service = \"1ms\"";
    let both = ["qlnativefc"; 2];
    let cases = [
        // The other host's driver gives its devices 64: it refuses a DSNRO of 256.
        (
            two_hosts(roomy, ["qlnativefc", "lpfc"], [("a", 1, 8), ("b", 2, 60)], &[]),
            vec!["esx-b: system module parameters set -m lpfc -p lpfc_lun_queue_depth=256"],
        ),
        // Each host has a DSNRO of its own.
        (
            two_hosts(
                roomy,
                both,
                [("a", 2, 30), ("b", 2, 30)],
                &[dsnro("esx-a", 16), dsnro("esx-b", 24)],
            ),
            vec![
                "esx-a: storage core device set -d naa.600000000000000000000000000000aa -O 64",
                "esx-b: storage core device set -d naa.600000000000000000000000000000aa -O 64",
            ],
        ),
        // Who fills the array is on the other host, and has no limit so far.
        (
            two_hosts(
                "servers = 4, service = \"4ms\"",
                both,
                [("hog", 1, 60), ("victim", 1, 2)],
                &[],
            ),
            vec!["hog-1:scsi0:0: DiskLimitIOPerSecond "],
        ),
    ];
    let directory = tempfile::tempdir().unwrap();
    for (place, (text, expected)) in cases.into_iter().enumerate() {
        let file = directory.path().join(format!("{place}.toml"));
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let (base, _) = run(file, &[]);
        let figures = |run: &Value| run["windows"][0]["hosts"].clone();
        let mut proposed = Vec::new();
        for verdict in list(&base["windows"][0], "verdicts") {
            for change in list(verdict, "findings").flat_map(|finding| list(finding, "changes")) {
                let steps: Vec<&Value> = list(change, "steps").collect();
                let (set, mut undo) = (texts(&steps, "set"), texts(&steps, "undo"));
                if set.is_empty() {
                    continue;
                }
                let (changed, refused) = run(file, &set);
                assert!(refused.is_empty(), "{set:?}: {refused:?}");
                assert_ne!(figures(&changed), figures(&base), "{set:?}");
                undo.reverse();
                let (back, _) = run(file, &[set.clone(), undo.clone()].concat());
                assert_eq!(figures(&back), figures(&base), "{set:?} and {undo:?}");
                // What is typed on the host is a line of esxcli, and nothing is in front.
                let mut typed = list(change, "esxcli").map(|line| line.as_str().unwrap());
                assert!(typed.all(|line| line.starts_with("esxcli ")), "{change}");
                proposed.extend(set);
            }
        }
        for line in expected {
            assert!(proposed.iter().any(|set| set.starts_with(line)), "{line}: {proposed:?}");
        }
        let told = kavg(&["run", file]).out;
        let host = proposed.iter().find_map(|set| set.split_once(": storage core"));
        if let Some((host, _)) = host {
            assert!(told.contains(&format!("{host}> esxcli storage core device set")), "{told}");
        }
    }
}
