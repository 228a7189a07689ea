//! What a change cannot act on stays as it is, and is said to; what it acts on follows the rows. The truth is the same host with the change.

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

/// Two VMs before an array, behind a queue of 32 while both send.
fn host(array: &str, sql: &str, web: &str) -> String {
    let vm = |name: &str, load: &str| {
        format!(
            "[vm.{name}.disk.\"scsi0:0\"]\ndatastore = \"ds\"\nadapter = \"pvscsi\"\n\
             {load}\n"
        )
    };
    format!(
        "title = \"a test\"\nduration = \"40s\"\nsample = \"2s\"\n[array.flash]\n{array}\n\
         [host.esx.adapter.vmhba1]\ndriver = \"qlnativefc\"\n[datastore.ds]\ndevice = \"{DEVICE}\"\n{}{}",
        vm("sql", sql),
        vm("web", web)
    )
}

fn ask(recording: &Measured, line: &str) -> Answer {
    let last = recording.times_ms.last().copied().unwrap_or(0);
    let question = question(line, (recording.times_ms[0], last), 20_000.0);
    let facts = Facts::default();
    Model::calibrate(recording, &facts, &question).unwrap().answer().unwrap()
}

/// Holds the rates of the device and of the VMs against the truth.
#[track_caller]
fn check(answer: &Answer, truth: &Recording) {
    let mut held = 0;
    for row in answer.simulated.rows.iter().filter(|row| row.counter == "CMDS/s") {
        let disk = || truth.find(Kind::VirtualDisk, &format!("{}:scsi0:0", row.object));
        let id = truth.find(Kind::Device, &row.object).or_else(disk).unwrap();
        let rates = &truth.series(id, Counter::Commands).unwrap()[1..];
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        // Two standard errors of a rate over so many seconds.
        let slack = 2.0 * (mean / 38.0).sqrt();
        let is_in = row.low - slack <= mean && mean <= row.high + slack;
        assert!(is_in, "{}: {mean}, {:?}", row.object, answer.simulated);
        held += 1;
    }
    assert!(held > 1, "{:?}", answer.simulated);
}

const FLASH: &str = "servers = 64\nservice = \"500us\"\nround_trip = \"100us\"";

#[test]
fn more_slots_than_are_ever_used_gain_nothing() {
    let load = |threads: u32| format!("limit = 800\n[vm.sql.workload]\nthreads = {threads}");
    let text = host(FLASH, &load(16), "[vm.web.workload]\narrival = \"poisson\"\nrate = 350");
    let recording = recorded(&text);
    // Who waits does so for its limit alone, and never comes to the depth of its driver.
    for line in [
        &*format!("storage core device set -d {DEVICE} -O 64"),
        "sql: RequestRingPages=32,MaxQueueDepth=254",
    ] {
        let answer = ask(&recording, line);
        assert_eq!(answer.verdict, Verdict::GainsNothing, "{:?}", answer.simulated);
        check(&answer, &changed(&text, line));
    }
    // A queue that is full is another matter.
    let recording =
        recorded(&host(FLASH, "[vm.sql.workload]\nthreads = 48", &load(16).replace("sql", "web")));
    let answer = ask(&recording, &format!("storage core device set -d {DEVICE} -O 64"));
    assert_ne!(answer.verdict, Verdict::GainsNothing, "{:?}", answer.simulated);
}

#[test]
fn a_limit_above_what_anybody_can_do_is_none() {
    let text = host(FLASH, "[vm.sql.workload]\nthreads = 48", "[vm.web.workload]\nthreads = 30");
    let recording = recorded(&text);
    for limit in [1_000_000, 100_000_000, 1_000_000_000, i32::MAX] {
        let line = format!("sql: DiskLimitIOPerSecond {limit}");
        let answer = ask(&recording, &line);
        assert_eq!(answer.verdict, Verdict::GainsNothing, "{limit}: {:?}", answer.simulated);
        check(&answer, &changed(&text, &line));
    }
}

/// The range of a counter of an object.
fn range(answer: &Answer, object: &str, counter: &str) -> (f64, f64) {
    let mut rows = answer.simulated.rows.iter();
    let row = rows.find(|row| row.object == object && row.counter == counter);
    row.map(|row| (row.low, row.high)).unwrap_or_else(|| panic!("{:?}", answer.simulated))
}

#[test]
fn a_small_vm_gains_no_more_than_its_pauses_let_it() {
    let array =
        "curve = [[1, \"300us\"], [24, \"630us\"], [72, \"1650us\"]]\nround_trip = \"100us\"";
    let sql = "[vm.sql.workload]\nthreads = 32\nread = \"100%\"";
    let web = "[vm.web.workload]\narrival = \"poisson\"\nrate = 120\nread = \"60%\"";
    let text = host(array, sql, web);
    let line = "sql: DiskLimitIOPerSecond 500";
    let answer = ask(&recorded(&text), line);
    assert_eq!(answer.verdict, Verdict::Identified, "{:?}", answer.simulated);
    let (_, most) = range(&answer, "web", "CMDS/s");
    assert!(most < 200.0, "{:?}", answer.simulated);
    let (quickest_ms, _) = range(&answer, "web", "GAVG/cmd");
    assert!(quickest_ms > 0.005, "{:?}", answer.simulated);
    assert!(answer.simulated.sentence.contains(" sql falls to "), "{}", answer.simulated.sentence);
    check(&answer, &changed(&text, line));
}

#[test]
fn a_load_that_begins_or_moves_in_steps_sends_in_no_bursts() {
    let array = "servers = 48\nservice = \"5ms\"\nround_trip = \"1ms\"";
    let web = "[vm.web.workload]\narrival = \"poisson\"\nrate = 150";
    let steps = "arrival = \"poisson\"\nphases = [{ for = \"13s\", rate = 300 }, { for = \"27s\", rate = 900 }]";
    for load in ["threads = 32\nstart = \"13s\"", "threads = 30\non = \"11s\"\noff = \"8s\"", steps]
    {
        let text = host(array, &format!("[vm.sql.workload]\n{load}"), web);
        let line = "sql: DiskLimitIOPerSecond 500";
        let answer = ask(&recorded(&text), line);
        let is_said = |doubt: &String| doubt.contains("sends in bursts");
        assert!(!answer.simulated.doubts.iter().any(is_said), "{load}: {:?}", answer.simulated);
        let (low, high) = range(&answer, "sql", "CMDS/s");
        assert!(high < 1.5 * low, "{load}: {low} to {high}");
        check(&answer, &changed(&text, line));
    }
}

#[test]
fn a_limit_that_hardly_holds_may_take_all_of_its_wait_with_it() {
    let array = "servers = 8\nservice = \"8ms\"\nspread = \"constant\"";
    let text = host(
        array,
        "limit = 500\n[vm.sql.workload]\nthreads = 4",
        "[vm.web.workload]\nthreads = 4\nthink = \"3ms\"",
    );
    let recording = recorded(&text);
    for line in ["sql: DiskLimitIOPerSecond -1", "sql: DiskLimitIOPerSecond 2000"] {
        let answer = ask(&recording, line);
        let waits = answer.simulated.rows.iter().find(|row| row.counter == "KAVG/cmd");
        assert!(waits.is_none_or(|row| row.low <= 0.0), "{:?}", answer.simulated);
        let is_set = answer.simulated.sentence.contains("it is set so already");
        assert!(!is_set, "{}", answer.simulated.sentence);
        check(&answer, &changed(&text, line));
    }
}
