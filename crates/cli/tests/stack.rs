//! The stack of a run, held against closed forms: every I/O is where Little's law has it, on NFS as on VMFS, and the
//! levels together are the time that the guest sees.

mod common;

use std::fs;

use common::json;
use serde_json::Value;

/// What a run says of its first window.
fn window(text: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.toml");
    let head = "title = \"t\"\nwarmup = \"2s\"\nsample = \"1s\"\n";
    fs::write(&file, format!("{head}{text}")).unwrap();
    json(&["run", file.to_str().unwrap(), "--json"])["windows"][0].take()
}

/// The queues of a level, and its time.
fn level<'a>(window: &'a Value, kind: &str) -> (Vec<&'a Value>, f64) {
    let levels = window["stack"]["levels"].as_array().unwrap();
    let level = levels.iter().find(|level| level["kind"] == kind).expect("the level is there");
    (level["queues"].as_array().unwrap().iter().collect(), level["ms"].as_f64().unwrap_or_default())
}

fn figure(queue: &Value, key: &str) -> f64 {
    queue[key].as_f64().unwrap_or_else(|| panic!("{key} of {queue}"))
}

fn near(value: f64, expected: f64, within: f64) {
    assert!((value / expected - 1.0).abs() < within, "{value}, not {expected}");
}

/// Every queue's commands are its rate times its time, and the levels' times are all that the guest sees.
fn adds_up(window: &Value) {
    let levels = window["stack"]["levels"].as_array().unwrap().iter();
    let ms: f64 = levels.clone().filter_map(|level| level["ms"].as_f64()).sum();
    near(ms, figure(&window["stack"], "total_ms"), 0.01);
    for level in levels.filter(|level| level["kind"] == "array" || level["kind"] == "device") {
        let queues = level["queues"].as_array().unwrap().iter();
        for queue in queues {
            let key = if level["kind"] == "array" { "in_use" } else { "waiting" };
            let expected = figure(queue, "iops") * figure(queue, "ms") / 1_000.0;
            assert!((figure(queue, key) - expected).abs() < 0.02 * expected + 0.05, "{queue}");
        }
    }
}

const NAS: &str = r#"
duration = "22s"
[array.nas]
servers = 8
service = "1ms"
[host.esx]
[datastore.n]
kind = "nfs"
[vm.a.disk."scsi0:0"]
datastore = "n"
"#;

/// 200 a second of 1 ms are 0.2 commands at the array, and the other 31.8 of 32 threads wait in the host.
#[test]
fn what_a_limit_holds_on_nfs_waits_in_the_host() {
    let window = window(&format!("{NAS}limit = 200\n[vm.a.workload]\nthreads = 32\n"));
    adds_up(&window);
    let (queues, ms) = level(&window, "device");
    near(figure(queues[0], "waiting"), 31.8, 0.01);
    near(ms, 159.0, 0.01);
    assert_eq!((&queues[0]["name"], &queues[0]["limit"]), (&"n (IOPS limit)".into(), &Value::Null));
    near(figure(level(&window, "array").0[0], "in_use"), 0.2, 0.05);
}

/// With 16 at a time eight servers, one of them chosen by chance, do 8,000 x 16 / 23 a second; 48 of 64 wait.
#[test]
fn what_a_volume_of_nfs_has_no_room_for_waits_in_the_host() {
    let depth = r#"esxcli = "system settings advanced set -o /NFS/MaxQueueDepth -i 16""#;
    let window = window(&format!("{depth}{NAS}[vm.a.workload]\nthreads = 64\n"));
    adds_up(&window);
    near(figure(&window["stack"], "iops"), 8_000.0 * 16.0 / 23.0, 0.01);
    let (queues, _) = level(&window, "device");
    let queue = ["limit", "in_use", "waiting"].map(|key| figure(queues[0], key));
    assert_eq!(queue.map(f64::round), [16.0, 16.0, 48.0]);
    near(figure(level(&window, "array").0[0], "in_use"), 16.0, 0.01);
}

/// A level that the I/Os of NFS pass by takes no time of theirs: eight commands of 72 wait in a device's queue.
#[test]
fn nfs_beside_vmfs_counts_in_every_level() {
    let window = window(
        &format!(
            r#"{NAS}[vm.a.workload]
threads = 64
[array.fa]
servers = 64
service = "1ms"
[host.esx.adapter.vmhba2]
driver = "lpfc"
[datastore.v]
array = "fa"
[vm.b.disk."scsi0:0"]
datastore = "v"
limit = 50
[vm.b.workload]
threads = 8
"#
        )
        .replace("[datastore.n]", "[datastore.n]\narray = \"nas\""),
    );
    adds_up(&window);
    let (queues, ms) = level(&window, "device");
    assert_eq!(queues.len(), 1);
    near(figure(queues[0], "waiting"), 7.95, 0.01);
    near(ms / figure(&window["stack"], "total_ms"), 7.95 / 72.0, 0.02);
}

/// After an outage what waited ends all at once: no more was there than threads for that.
#[test]
fn what_ends_after_an_outage_was_there_once() {
    let window = window(
        r#"
duration = "14s"
[array.fa]
servers = 64
service = "1ms"
[host.esx.adapter.vmhba2]
driver = "lpfc"
[datastore.d]
[vm.v.disk."scsi0:0"]
datastore = "d"
[vm.v.workload]
threads = 32
[[event]]
at = "3s"
datastore = "d"
state = "silent"
[[event]]
at = "13s"
datastore = "d"
state = "up"
[[window]]
name = "after"
from = "12.5s"
to = "14s"
"#,
    );
    for kind in ["virtual-disk", "device", "adapter"] {
        assert_eq!(figure(level(&window, kind).0[0], "in_use").round(), 32.0, "{kind}");
    }
    let below = ["fabric", "array"].map(|kind| figure(level(&window, kind).0[0], "in_use"));
    near(below.iter().sum(), 32.0, 0.01);
}

/// The depth is DSNRO's only where that is what holds it, and its mean stands beside the mean in use.
#[test]
fn a_depth_is_called_by_what_sets_it() {
    let text = |more: &str, store: &str| {
        format!(
            r#"
duration = "32s"
{more}
[array.a]
servers = 4
service = "1ms"
queue_limit = 48
[host.esx.adapter.vmhba2]
driver = "qlnativefc"
[datastore.d]
{store}
[vm.v]
count = 2
disk."scsi0:0".datastore = "d"
workload.threads = 32
"#
        )
    };
    let throttled = "esxcli = \"system settings advanced set -o /Disk/QFullSampleSize -i 32\"";
    let cases = [
        (text("", "").replace("queue_limit = 48\n", ""), " (DSNRO)"),
        (text("", "congestion_threshold = \"5ms\""), " (SIOC)"),
        (text(throttled, "").replace("limit = 48", "limit = 12"), ""),
    ];
    for (text, by) in cases {
        let window = window(&text);
        let (queues, _) = level(&window, "device");
        let (name, limit) = (queues[0]["name"].as_str().unwrap(), figure(queues[0], "limit"));
        assert_eq!(name.find(" (").map_or("", |at| &name[at..]), by, "{name}");
        // What is out when the depth is cut stays out.
        assert!(figure(queues[0], "in_use") < 1.05 * limit, "{}", queues[0]);
    }
}
