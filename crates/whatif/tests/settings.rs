//! Every setting that a line can set, asked of a host whose recording shows little: where there are figures the
//! same host simulated with the setting is in them, and where there are none the answer says what is not known.

#[path = "common/asked.rs"]
mod asked;
#[path = "common/changed.rs"]
mod changed;

use asked::{question, recorded};
use changed::changed;
use counters::{Counter, Kind, Recording};
use diagnose::Facts;
use knobs::Advanced;
use whatif::{Answer, Model, Verdict};

/// The only device of these hosts.
const DEVICE: &str = "naa.600a098038303053743f4b5251444c41";

/// Two VMs that fill a queue of 32, which is DSNRO, of a device of 64.
const HOST: &str = r#"
title = "a test"
duration = "24s"
sample = "2s"
[array.flash]
servers = 48
service = "20ms"
[host.esx.adapter.vmhba1]
driver = "qlnativefc"
[datastore.ds]
device = "naa.600a098038303053743f4b5251444c41"
[vm.sql.disk."scsi0:0"]
datastore = "ds"
adapter = "pvscsi"
[vm.sql.workload]
threads = 40
size = "8k"
[vm.web.disk."scsi0:0"]
datastore = "ds"
adapter = "pvscsi"
[vm.web.workload]
threads = 24
size = "8k"
"#;

/// The answer of a recording of a host without its first sample, or why there is none.
fn ask(text: &str, line: &str) -> Result<Answer, String> {
    let recording = recorded(text);
    let question = question(line, (recording.times_ms[0], i64::MAX), 2_000.0);
    let facts = Facts::default();
    let answer = Model::calibrate(&recording, &facts, &question).and_then(|model| model.answer());
    answer.map_err(|error| error.to_string())
}

/// Holds the rates of an answer, and DQLEN, against those of the host itself with the setting.
#[track_caller]
fn check(answer: &Answer, text: &str, line: &str) {
    let truth = changed(text, line);
    for row in &answer.simulated.rows {
        let counter = match row.counter {
            "CMDS/s" => Counter::Commands,
            "DQLEN" => Counter::DeviceQDepth,
            _ => continue,
        };
        let own = mean(&truth, &row.object, counter);
        // A hundredth, and what chance does to a rate in so many seconds.
        let slack = 2.0 * (own / 22.0).sqrt() + 0.01 * own;
        let is_in = row.low - slack <= own && own <= row.high + slack;
        assert!(is_in, "{line}: {} {} {own}, {:?}", row.object, row.counter, answer.simulated);
    }
}

/// What a counter of the device or of a VM was, without the first sample.
fn mean(recording: &Recording, name: &str, counter: Counter) -> f64 {
    let disk = || recording.find(Kind::VirtualDisk, &format!("{name}:scsi0:0"));
    let id = recording.find(Kind::Device, name).or_else(disk).unwrap();
    let values = &recording.series(id, counter).unwrap()[1..];
    values.iter().sum::<f64>() / values.len() as f64
}

/// A line for each setting, at both ends of its range.
fn lines() -> Vec<String> {
    let device = |rest: &str| format!("storage core device set -d {DEVICE} {rest}");
    let mut lines: Vec<String> =
        ["-O 1", "-O 16", "-m 8", "-m 64", "-s 32 -q 8"].map(device).into();
    for on in [true, false] {
        lines.push(format!("kavg device set -d {DEVICE} -l {on}"));
    }
    lines.extend(
        [
            "system module parameters set -m qlnativefc -p ql2xmaxqdepth=16",
            "system module parameters set -m qlnativefc -p ql2xmaxqdepth=128",
            "sql: RequestRingPages=32,MaxQueueDepth=254",
            "sql: DiskLimitIOPerSecond 500",
            "sql: DiskLimitIOPerSecond -1",
            "sql: NumDiskShares 4000",
            "sql: StorageIOAllocationReservation 500",
        ]
        .map(str::to_owned),
    );
    lines.push(format!("storage nmp device set -d {DEVICE} -P VMW_PSP_RR"));
    for info in Advanced::TABLE {
        for value in [info.min, info.max] {
            lines.push(format!("system settings advanced set -o {} -i {value}", info.path));
        }
    }
    lines
}

#[test]
fn what_no_recording_shows_is_not_said_to_gain_nothing() {
    let mut said_nothing = 0;
    for line in lines() {
        match ask(HOST, &line) {
            Ok(answer) if answer.simulated.rows.is_empty() => {
                let sentence = &answer.simulated.sentence;
                assert_eq!(answer.verdict, Verdict::NoModel, "{line}: {sentence}");
                assert!(sentence.contains("does not tell"), "{line}: {sentence}");
                said_nothing += 1;
            }
            Ok(answer) => check(&answer, HOST, &line),
            // One option is of old versions alone.
            Err(why) => {
                assert!(why.contains("does not tell") || why.contains("no option"), "{line}: {why}")
            }
        }
    }
    assert!(said_nothing > 10, "{said_nothing}");
}

#[test]
fn what_sets_dsnro_aside_brings_the_depth_to_bear_that_nothing_shows() {
    for (option, value) in [("SchedQControlVMSwitches", 0), ("SchedQControlSeqReqs", 2)] {
        let line = format!("system settings advanced set -o /Disk/{option} -i {value}");
        let answer = ask(HOST, &line).unwrap();
        assert!(matches!(answer.verdict, Verdict::Bounded | Verdict::CannotTell), "{answer:?}");
        check(&answer, HOST, &line);
        let doubts = answer.simulated.doubts.join(" ");
        assert!(
            doubts.contains("to all that a driver gives") && doubts.contains("--esxcli FILE"),
            "{doubts}"
        );
    }
}

#[test]
fn of_a_vm_alone_it_gains_nothing() {
    let (alone, _) = HOST.split_once("[vm.web.disk").unwrap();
    for option in
        ["SchedQControlVMSwitches -i 0", "SchedQControlSeqReqs -i 2", "SchedQuantum -i 64"]
    {
        let line = format!("system settings advanced set -o /Disk/{option}");
        let answer = ask(alone, &line).unwrap();
        assert_eq!(answer.verdict, Verdict::GainsNothing, "{line}: {answer:?}");
        check(&answer, alone, &line);
    }
}

#[test]
fn a_disk_that_is_not_there_is_refused_by_name() {
    let why = ask(HOST, "sql:scsi0:9: DiskLimitIOPerSecond 500").unwrap_err();
    assert_eq!(why, "no virtual disk `sql:scsi0:9` in this recording; there are: sql:scsi0:0");
}

#[test]
fn the_limit_of_one_of_several_disks_may_be_none_before_a_version_that_is_not_known() {
    let beside = "[vm.sql.disk.\"scsi0:1\"]\ndatastore = \"ds\"\nadapter = \"pvscsi\"\n\
                  [[workload]]\nvm = \"sql\"\ndisk = \"scsi0:1\"\nthreads = 2\nthink = \"4ms\"\n";
    let text = HOST.replace("[vm.sql.workload]", "[[workload]]\nvm = \"sql\"\ndisk = \"scsi0:0\"");
    let text = text.replace("[vm.web.workload]", "[[workload]]\nvm = \"web\"") + beside;
    let line = "sql:scsi0:0: DiskLimitIOPerSecond 200";
    for esxi in ["5.5", "7.0"] {
        let text = format!("esxi = \"{esxi}\"{text}");
        let answer = ask(&text, line).unwrap();
        let doubts = answer.simulated.doubts.join(" ");
        assert!(doubts.contains("`esxcli system version get` tells"), "{doubts}");
        // A VM has two disks here.
        let mut of_device = answer.clone();
        of_device.simulated.rows.retain(|row| row.object != "sql");
        check(&of_device, &text, line);
    }
}

#[test]
fn a_depth_that_is_found_may_cost_half_of_the_rate_of_an_array_that_was_never_seen_idle() {
    let line = format!("kavg device set -d {DEVICE} -l true");
    for array in [
        "servers = 4\nservice = \"2ms\"",
        "servers = 16\nservice = \"8ms\"",
        "servers = 1\nservice = \"1ms\"",
        "servers = 64\nservice = \"1ms\"\nlink = \"1Gbit/s\"",
    ] {
        let text = HOST.replace("servers = 48\nservice = \"20ms\"", array);
        for text in [text.replace("threads = 24", "threads = 1"), text] {
            let answer = ask(&text, &line).unwrap();
            assert!(!answer.simulated.identified, "{array}: {answer:?}");
            check(&answer, &text, &line);
            let doubts = answer.simulated.doubts.join(" ");
            assert!(doubts.contains("twice what it takes alone"), "{doubts}");
        }
    }
}

/// Two VMs, of which one sends so little that DSNRO never acts, share a queue that is deeper than any DSNRO.
#[test]
fn a_shared_queue_deeper_than_any_dsnro_is_modelled() {
    let host = HOST
        .replace("driver = \"qlnativefc\"", "driver = \"nvme_pcie\"")
        .replace("threads = 24", "arrival = \"poisson\"\nrate = 15");
    for line in ["sql: DiskLimitIOPerSecond 1000", "web: DiskLimitIOPerSecond 8"] {
        let answer = ask(&host, line).unwrap();
        check(&answer, &host, line);
    }
}

/// Of a host with a device and an NFS volume, those that an option acts on are modelled.
#[test]
fn what_acts_on_nfs_alone_or_on_devices_alone_is_asked_of_those() {
    let beside = r#"
[array.nas]
servers = 8
service = "1ms"
[datastore.vol]
kind = "nfs"
array = "nas"
[vm.files.disk."scsi0:0"]
datastore = "vol"
[vm.files.workload]
threads = 4
size = "8k"
"#;
    let host = HOST.replace("[datastore.ds]", "[datastore.ds]\narray = \"flash\"") + beside;
    let recording = recorded(&host);
    let modelled = |line: &str| {
        let question = question(line, (recording.times_ms[0], i64::MAX), 2_000.0);
        let facts = Facts::default();
        let text = Model::calibrate(&recording, &facts, &question).unwrap().scenario();
        [DEVICE, "kind = \"nfs\""].map(|what| text.contains(what))
    };
    for (line, expected) in [
        ("system settings advanced set -o /NFS/MaxQueueDepth -i 8", [false, true]),
        ("system settings advanced set -o /Disk/DiskMaxIOSize -i 128", [true, false]),
        ("system settings advanced set -o /Disk/SchedQControlVMSwitches -i 0", [true, false]),
        ("system settings advanced set -o /Disk/SchedCostUnit -i 4096", [true, true]),
        ("system settings advanced set -o /Misc/APDTimeout -i 20", [true, true]),
        ("system module parameters set -m qlnativefc -p ql2xmaxqdepth=16", [true, false]),
    ] {
        assert_eq!(modelled(line), expected, "{line}");
    }
    // A host without such volumes is asked of what it has.
    assert!(ask(HOST, "system settings advanced set -o /NFS/MaxQueueDepth -i 8").is_ok());
}
