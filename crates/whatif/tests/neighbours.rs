//! VMs beside each other, on one device or on two of one array, and what a change of one does to the other: loads that
//! come in levels, commands that cost more than others, shares, and devices of which no row tells whether they feel each other. The truth is the same host with the change.

#[path = "common/asked.rs"]
mod asked;
#[path = "common/changed.rs"]
mod changed;

use asked::{question, recorded};
use changed::changed;
use counters::{Counter, Kind, Recording};
use diagnose::Facts;
use whatif::{Answer, Model, Verdict};

/// The devices, of one array by their names.
const DEVICES: [&str; 2] =
    ["naa.600a098038303053743f4b5251444c41", "naa.600a098038303053743f4b5251444c42"];

/// Virtual disks on them, the one of `web` on the second, and what they send from when on.
fn host(array: &str, loads: &[(&str, &str)]) -> String {
    let mut text = format!(
        "title = \"a test\"\nduration = \"60s\"\nsample = \"2s\"\n[array.one]\n{array}\n\
         [host.esx.adapter.vmhba1]\ndriver = \"qlnativefc\"\nlun_depth = 64\n\
         [datastore.ds]\ndevice = \"{}\"\n[datastore.other]\ndevice = \"{}\"\n",
        DEVICES[0], DEVICES[1]
    );
    for vm in ["sql", "app", "web"] {
        if loads.iter().any(|(name, _)| *name == vm) {
            let store = if vm == "web" { "other" } else { "ds" };
            text += &format!(
                "[vm.{vm}.disk.\"scsi0:0\"]\ndatastore = \"{store}\"\nadapter = \"pvscsi\"\n"
            );
        }
    }
    for (index, (vm, load)) in loads.iter().enumerate() {
        text += &format!("[[workload]]\nvm = \"{vm}\"\nname = \"{vm}{index}\"\n{load}\n");
    }
    text
}

/// Asks its recording from a sample on, and holds rates and latencies of devices and the rates of VMs against the truth.
fn check(text: &str, from: usize, line: &str) -> Answer {
    let recording = recorded(text);
    let window = (recording.times_ms[from], recording.times_ms[recording.len() - 1]);
    let facts = Facts::default();
    let question = question(line, window, 20_000.0);
    let answer = Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap();
    let truth = changed(text, line);
    for row in &answer.simulated.rows {
        let Some(own) = figure(&truth, &row.object, row.counter, from + 1) else { continue };
        // Half a per cent and two standard errors of a rate over so many seconds.
        let rate = figure(&truth, &row.object, "CMDS/s", from + 1).unwrap_or(1.0);
        let slack = (0.005 + 2.0 / (rate * 40.0).sqrt()) * own;
        let is_in = row.low - slack <= own && own <= row.high + slack;
        assert!(is_in, "{line}\n{text}\n{} {}: {own}\n{answer:?}", row.object, row.counter);
    }
    answer
}

/// What a device or a VM did from a sample on.
fn figure(of: &Recording, object: &str, counter: &str, from: usize) -> Option<f64> {
    let device = of.find(Kind::Device, object);
    let id = device.or_else(|| of.find(Kind::VirtualDisk, &format!("{object}:scsi0:0")))?;
    let rates = &of.series(id, Counter::Commands)?[from..];
    let all: f64 = rates.iter().sum();
    match counter {
        "CMDS/s" => Some(all / rates.len() as f64),
        "GAVG/cmd" if device.is_some() => {
            let took = &of.series(id, Counter::GuestLatency)?[from..];
            Some(rates.iter().zip(took).map(|(rate, ms)| rate * ms).sum::<f64>() / all)
        }
        _ => None,
    }
}

#[test]
fn a_limit_cuts_each_level_of_a_load_and_not_its_mean() {
    // Two threads send less than the limit lets through, six just as much and twelve twice that, beside forty of
    // another VM: all of them together are of one level.
    let array = "servers = 48\nservice = \"7.14ms\"\nspread = \"lognormal\"\nvariation = 1.1\nqueue = \"shared\"";
    for limit in [700, 900] {
        let text = host(
            array,
            &[
                ("sql", "threads = 40\nsize = \"8k\""),
                ("web", "threads = 2\nsize = \"8k\"\nstop = \"15s\""),
                ("web", "threads = 6\nsize = \"8k\"\nstart = \"15s\"\nstop = \"30s\""),
                ("web", "threads = 12\nsize = \"8k\"\nstart = \"30s\""),
            ],
        );
        let answer = check(&text, 0, &format!("web: DiskLimitIOPerSecond {limit}"));
        assert_ne!(answer.verdict, Verdict::NoModel, "{answer:?}");
    }
}

#[test]
fn devices_of_one_array_that_no_row_shows_apart_may_feel_each_other() {
    // Writes cost more than reads, so that the one is quicker than the other and both are of one array all the same.
    let array = "servers = 24\nservice = \"0.8ms\"\nwrite_service = \"3ms\"\nqueue = \"shared\"";
    let loads = [
        ("sql", "threads = 4\nread = \"50%\"\nstop = \"20s\""),
        ("sql", "threads = 30\nread = \"50%\"\nstart = \"20s\""),
        ("app", "threads = 12\nread = \"50%\""),
        ("web", "threads = 10\nread = \"100%\""),
    ];
    let line = format!("storage core device set -d {} -O 64", DEVICES[0]);
    let text = host(array, &loads);
    for line in [&line, &line.replace("64", "8"), "sql: DiskLimitIOPerSecond 3000"] {
        check(&text, 11, line);
    }
}

#[test]
fn loads_that_take_turns_are_levels() {
    // 7 threads, and 57 more in every second sample.
    let array =
        "curve = [[1, \"0.5ms\"], [16, \"0.8ms\"], [64, \"2.4ms\"]]\nspread = \"exponential\"";
    let turns: Vec<String> = (0..15)
        .map(|turn| {
            format!("threads = 57\nstart = \"{}s\"\nstop = \"{}s\"", 4 * turn + 2, 4 * turn + 4)
        })
        .collect();
    let mut loads = vec![("sql", "threads = 7"), ("app", "threads = 8")];
    loads.extend(turns.iter().map(|turn| ("sql", turn.as_str())));
    let line = format!("storage core device set -d {} -O 32", DEVICES[0]);
    let answer = check(
        &host(array, &loads).replace("[datastore.ds]", "[datastore.ds]\ndsnro = 64"),
        0,
        &line,
    );
    let knows_none = |doubt: &String| doubt.contains("whenever there was load");
    assert!(!answer.simulated.doubts.iter().any(knows_none), "{answer:?}");
}

#[test]
fn what_costs_more_by_its_size_is_held_by_no_policy() {
    // 256 KiB always take 15.8 ms, 32 times as long as 8 KiB would, so that their rate stands as still as a policy's.
    let array = "servers = 64\nservice = \"0.4ms\"\nqueue = \"shared\"\nspread = \"constant\"\nper_kib = \"60us\"";
    let loads = [("app", "threads = 2\nsize = \"8k\""), ("sql", "threads = 16\nsize = \"256k\"")];
    let line = format!("storage core device set -d {} -O 8", DEVICES[0]);
    let answer = check(&host(array, &loads), 0, &line);
    assert_ne!(answer.verdict, Verdict::Identified, "{answer:?}");
}

#[test]
fn vms_have_the_shares_that_the_recording_has() {
    let array = "servers = 16\nservice = \"1ms\"";
    let text = host(array, &[("sql", "threads = 32"), ("app", "threads = 32")]);
    let text = text.replacen("adapter = \"pvscsi\"", "adapter = \"pvscsi\"\nshares = 4000", 1);
    let answer = check(&text, 0, &format!("storage core device set -d {} -O 16", DEVICES[0]));
    assert!(answer.simulated.rows.iter().any(|row| row.object == "sql"), "{answer:?}");
}
