//! What a run says of answers that stay away for a while, of paths that are lost, and of copies by an array: held
//! against what the scenario did.

mod common;

use std::fs;

use common::json;
use serde_json::Value;

/// What a run says over its last window: the findings of its one host.
fn findings(text: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.toml");
    fs::write(&file, format!("title = \"t\"\n{text}")).unwrap();
    let run = json(&["run", "--json", file.to_str().unwrap()]);
    let window = run["windows"].as_array().unwrap().last().unwrap();
    window["verdicts"][0]["findings"].as_array().unwrap().clone()
}

fn causes(findings: &[Value]) -> Vec<&str> {
    findings.iter().map(|finding| finding["cause"].as_str().unwrap()).collect()
}

/// A device whose one path in use gives no answer from 6.3 s on for so many seconds, until it is found dead or comes
/// back; samples and the judged window as told, in milliseconds.
fn silent(
    seconds: u32,
    threads: u32,
    sample_ms: u32,
    has_other: bool,
    window: [u32; 2],
) -> Vec<Value> {
    let adapter = |number, dead_after: u32| {
        format!(
            "[host.e.adapter.vmhba{number}]\ndriver = \"qlnativefc\"\ndead_after = \"{dead_after}s\"\n"
        )
    };
    let (first, other) = match has_other {
        true => (adapter(1, seconds), adapter(2, seconds)),
        false => (adapter(1, 60), String::new()),
    };
    let back = match has_other {
        true => String::new(),
        false => format!(
            "[[event]]\nat = \"{}ms\"\npath = \"vmhba1\"\nstate = \"up\"\n",
            6_300 + 1_000 * seconds
        ),
    };
    let [from, to] = window;
    findings(&format!(
        "duration = \"20s\"\nsample = \"{sample_ms}ms\"\n[array.x]\nservers = 65536\nservice = \"5ms\"\n\
         spread = \"constant\"\n{first}{other}[datastore.d]\narray = \"x\"\npath_policy = \"fixed\"\n\
         [vm.v]\nguest = \"linux\"\ndisk.\"scsi0:1\".datastore = \"d\"\nworkload = {{ threads = {threads} }}\n\
         [[event]]\nat = \"6.3s\"\npath = \"vmhba1\"\nstate = \"down\"\n{back}\
         [[window]]\nname = \"w\"\nfrom = \"{from}ms\"\nto = \"{to}ms\"\n"
    ))
}

/// The seconds that a sentence tells, and whether it was for that long at least.
fn told(finding: &Value) -> Option<(f64, bool)> {
    let sentence = finding["sentence"].as_str().unwrap();
    let (_, rest) = sentence.split_once(" did not answer for ")?;
    let mut words = rest.split(' ');
    let is_least = words.by_ref().find(|word| matches!(*word, "about" | "least"))? == "least";
    Some((words.next()?.parse().ok()?, is_least))
}

/// Samples of which one or two have no answer at all, and a window that is the one sample in which answers come again.
#[test]
fn a_silence_is_told_for_as_long_as_it_was_within_a_sample_or_at_least_so_long() {
    let mut is_told = 0;
    for sample_ms in [500, 1_000, 2_000] {
        for (threads, seconds) in [(64, 2), (64, 4), (256, 2), (256, 4), (16, 4)] {
            for has_other in [true, false] {
                let end = 6_300 + 1_000 * seconds;
                let from = end / sample_ms * sample_ms;
                for window in [[from, from + sample_ms], [from, 20_000], [from - sample_ms, 20_000]]
                {
                    let found = silent(seconds, threads, sample_ms, has_other, window);
                    let Some((least_or_about, is_least)) = found.iter().find_map(told) else {
                        continue;
                    };
                    is_told += 1;
                    let (off, sample_s) =
                        (least_or_about - f64::from(seconds), f64::from(sample_ms) / 1_000.0);
                    let fits = if is_least { off <= 0.05 } else { off.abs() <= sample_s };
                    assert!(
                        fits,
                        "{seconds} s, {threads} threads, {sample_ms} ms, {has_other}, {window:?}: {found:?}"
                    );
                }
            }
        }
    }
    assert!(is_told >= 20, "{is_told}");
}

/// 128 threads, 32 slots: whoever is not in one waits 19.5 ms of 26, with one path as with two.
fn crowded(at: &str) -> Vec<Value> {
    findings(&format!(
        "duration = \"12s\"\nsample = \"1s\"\n[array.x]\nservers = 64\nservice = \"5ms\"\nspread = \"constant\"\n\
         [host.e.adapter.vmhba1]\ndriver = \"qlnativefc\"\ndead_after = \"1s\"\nlun_depth = 32\n\
         [host.e.adapter.vmhba2]\ndriver = \"qlnativefc\"\ndead_after = \"1s\"\nlun_depth = 32\n\
         [datastore.d]\narray = \"x\"\npath_policy = \"rr\"\n[vm.v]\nguest = \"linux\"\n\
         disk.\"scsi0:1\".datastore = \"d\"\nworkload = {{ threads = 128 }}\n{at}"
    ))
}

#[test]
fn a_lost_path_that_leaves_another_comes_after_a_queue_that_costs_more() {
    let down =
        |adapter| format!("[[event]]\nat = \"3s\"\npath = \"{adapter}\"\nstate = \"down\"\n");
    let found = crowded(&down("vmhba1"));
    assert_eq!(causes(&found)[..2], ["device-depth", "path-down"]);
    assert!(found[0]["standing"].as_f64() > found[1]["standing"].as_f64(), "{found:?}");
    let found = crowded(&(down("vmhba1") + &down("vmhba2")));
    assert_eq!(causes(&found)[0], "silence");
}

/// An array copies 4 MiB at a time for a move of one VM's disk, beside another VM.
fn beside_a_copy(mib: u32, iops: u32, service: &str) -> Vec<Value> {
    findings(&format!(
        "duration = \"12s\"\nwarmup = \"1s\"\nsample = \"1s\"\n[array.san]\nservers = 256\nqueue = \"shared\"\n\
         service = \"{service}\"\nspread = \"constant\"\nxcopy = \"{mib}MiB/s\"\n\
         [host.esx.adapter.vmhba1]\ndriver = \"qlnativefc\"\n[datastore.old]\n[datastore.new]\n\
         [vm.db]\ndisk.\"scsi0:1\".datastore = \"old\"\nworkload = {{ threads = 1, rate = {iops} }}\n\
         [vm.two]\ndisk.\"scsi0:1\".datastore = \"new\"\nworkload = {{ threads = 1, rate = {iops} }}\n\
         [[event]]\nat = \"2s\"\nvm = \"db\"\nmigrate = {{ datastore = \"new\", copy = {{ size = \"8g\" }} }}\n"
    ))
}

#[test]
fn a_copy_by_the_array_makes_no_array_slow_beside_which_no_vm_is() {
    for (mib, iops) in [(50, 50), (100, 50), (50, 100), (200, 20)] {
        assert_eq!(
            causes(&beside_a_copy(mib, iops, "1ms")),
            [""; 0],
            "{mib} MiB/s, {iops} a second"
        );
    }
    assert_eq!(causes(&beside_a_copy(50, 50, "40ms"))[0], "array-slow", "all VMs are slow as well");
}
