//! A limit put on who sends in bursts that are shorter than a sample, and a step beyond one that was tried, of
//! guests that may ask for no more than that gave them: the truth is the same host with the change.

#[path = "common/asked.rs"]
mod asked;
#[path = "common/changed.rs"]
mod changed;

use asked::{question, recorded};
use changed::changed;
use counters::{Counter, Kind, Recording};
use diagnose::Facts;
use levels::Measured;
use whatif::{Answer, Model, Verdict};

/// The only device of these hosts.
const DEVICE: &str = "naa.600a098038303053743f4b5251444c41";

/// Two VMs before an array with room for both.
fn host(sql: &str, web: &str, more: &str) -> String {
    let vm = |name: &str, load: &str| {
        format!(
            "[vm.{name}.disk.\"scsi0:0\"]\ndatastore = \"ds\"\nadapter = \"pvscsi\"\n\
             [vm.{name}.workload]\n{load}\n"
        )
    };
    format!(
        "title = \"a test\"\nduration = \"40s\"\nsample = \"2s\"\n[array.flash]\nservers = 48\n\
         service = \"5ms\"\nround_trip = \"1ms\"\n[host.esx.adapter.vmhba1]\ndriver = \"nfnic\"\n\
         [datastore.ds]\ndevice = \"{DEVICE}\"\n{}{}{more}",
        vm("sql", sql),
        vm("web", web)
    )
}

fn ask(recording: &Measured, to: usize, line: &str) -> Answer {
    let question = question(line, (recording.times_ms[0], recording.times_ms[to]), 20_000.0);
    let facts = Facts::default();
    Model::calibrate(recording, &facts, &question).unwrap().answer().unwrap()
}

/// Holds the rates of the device and of the VMs against the truth, and the latency of the device.
#[track_caller]
fn check(answer: &Answer, truth: &Recording) {
    let series = |name: &str, counter| {
        let disk = || truth.find(Kind::VirtualDisk, &format!("{name}:scsi0:0"));
        let id = truth.find(Kind::Device, name).or_else(disk).unwrap();
        truth.series(id, counter).unwrap()[1..].to_vec()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let mut held = 0;
    for row in &answer.simulated.rows {
        let rates = series(&row.object, Counter::Commands);
        let own = match row.counter {
            "CMDS/s" => mean(&rates),
            "GAVG/cmd" if row.object == DEVICE => {
                let took = series(&row.object, Counter::GuestLatency);
                let all: Vec<f64> = took.iter().zip(&rates).map(|(ms, rate)| ms * rate).collect();
                mean(&all) / mean(&rates)
            }
            _ => continue,
        };
        // Two standard errors of a rate over so many seconds.
        let slack = 2.0 * (mean(&rates) / 38.0).sqrt() / mean(&rates) * own;
        let is_in = row.low - slack <= own && own <= row.high + slack;
        assert!(is_in, "{} {}: {own}, {:?}", row.object, row.counter, answer.simulated);
        held += 1;
    }
    assert!(held > 1, "{:?}", answer.simulated);
}

#[test]
fn a_limit_cuts_bursts_that_no_sample_shows() {
    // Most of what it does is done in a third of the time, or in a part of every second sample.
    for (bursts, limit) in [
        ("on = \"300ms\"\noff = \"700ms\"", 300),
        ("on = \"300ms\"\noff = \"771ms\"", 300),
        ("on = \"1s\"\noff = \"3s\"", 300),
    ] {
        let sql = format!("threads = 12\nthink = \"20ms\"\n{bursts}");
        let text = host(&sql, "threads = 8", "");
        let line = format!("sql: DiskLimitIOPerSecond {limit}");
        let recording = recorded(&text);
        let answer = ask(&recording, 19, &line);
        check(&answer, &changed(&text, &line));
        let sentence = &answer.simulated.sentence;
        assert!(!answer.simulated.identified && sentence.contains("sql does "), "{sentence}");
        let doubts = answer.simulated.doubts.join(" ");
        assert!(doubts.contains("sql sends in bursts that are shorter than a sample"), "{doubts}");
    }
}

#[test]
fn who_is_there_at_every_instant_sends_in_no_bursts() {
    for sql in
        ["threads = 12", "threads = 12\nthink = \"20ms\"", "arrival = \"poisson\"\nrate = 400"]
    {
        let text = host(sql, "threads = 8", "");
        let answer = ask(&recorded(&text), 19, "sql: DiskLimitIOPerSecond 300");
        let doubts = answer.simulated.doubts.join(" ");
        assert!(!doubts.contains("bursts"), "{sql}: {doubts}");
    }
}

#[test]
fn a_load_that_grows_once_sends_in_no_bursts() {
    // A quarter of the time there is a tenth of the load: next to nothing beside the mean of all.
    let sql =
        "threads = 44\nphases = [{ for = \"12s\", threads = 2 }, { for = \"60s\", threads = 44 }]";
    let text = host(sql, "threads = 2", "");
    let line = format!("storage core device set -d {DEVICE} -O 24");
    let answer = ask(&recorded(&text), 19, &line);
    check(&answer, &changed(&text, &line));
    let array = &answer.calibration.arrays[0];
    assert!(array.outstanding[0] < 6.0, "{array:?}");
    let doubts = answer.simulated.doubts.join(" ");
    assert!(!doubts.contains("in bursts"), "{doubts}");
}

#[test]
fn a_depth_cuts_bursts_that_instants_show_beside_a_neighbour() {
    // An instant of many is one of a burst; a Poisson process beside it has load all the time.
    let web = "arrival = \"poisson\"\nrate = 1500";
    let depth = |depth: u32| format!("storage core device set -d {DEVICE} -O {depth}");
    let guest = "sql: RequestRingPages=32,MaxQueueDepth=4".to_owned();
    for (sql, line, is_cut) in [
        ("threads = 12\non = \"31ms\"\noff = \"122ms\"", depth(8), true),
        ("threads = 12\non = \"31ms\"\noff = \"122ms\"", guest.clone(), true),
        // No instant shows more than that depth.
        ("threads = 12\non = \"31ms\"\noff = \"122ms\"", depth(20), false),
        // Nobody rests.
        ("arrival = \"poisson\"\nrate = 400", guest, false),
        ("threads = 12\nthink = \"20ms\"", depth(4), false),
    ] {
        let text = host(sql, web, "");
        let answer = ask(&recorded(&text), 19, &line);
        let doubts = answer.simulated.doubts.join(" ");
        let is_told = doubts.contains("sql sends in bursts that are shorter than a sample");
        assert_eq!(is_told, is_cut, "{sql} {line}: {doubts}");
        if is_cut {
            check(&answer, &changed(&text, &line));
            let sentence = &answer.simulated.sentence;
            assert!(!sentence.contains("No VM loses commands"), "{sentence}");
        }
    }
}

#[test]
fn a_step_beyond_one_that_was_tried_gives_no_more_to_a_rate_of_its_own() {
    let depth = |depth: u32| format!("storage core device set -d {DEVICE} -m {depth}");
    let tried = format!("[[event]]\nat = \"20s\"\nesxcli = \"{}\"\n", depth(32));
    for load in
        ["threads = 64\nrate = 3700", "arrival = \"poisson\"\nrate = 3700\noutstanding = 64"]
    {
        let text = host(load, "threads = 1", "").replace("nfnic", "qlnativefc");
        let (text, _) = text.split_once("[vm.web.disk").unwrap();
        let before = format!("esxcli = [\"{}\"]\n{text}{tried}", depth(24));
        let answer = ask(&recorded(&before), 9, &depth(64));
        assert!(!matches!(answer.verdict, Verdict::NoModel), "{answer:?}");
        check(&answer, &changed(text, &depth(64)));
    }
}
