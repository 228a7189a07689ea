//! What is taken for an IOPS limit and what is not, and what one does that nobody comes to.

#[path = "common/asked.rs"]
mod asked;

use asked::{question, recorded};
use counters::{Counter, Kind, Recording};
use diagnose::Facts;
use levels::Measured;
use whatif::{Answer, Model, Verdict};

/// The only device of these hosts.
const DEVICE: &str = "naa.600a098038303053743f4b5251444c41";

/// Two VMs behind a queue of 32 while both send, which divides it evenly, and an array.
fn competing(array: &str, sql: &str, web: &str) -> String {
    let vm = |name: &str, load: &str| {
        format!(
            "[vm.{name}.disk.\"scsi0:0\"]\ndatastore = \"ds\"\nadapter = \"pvscsi\"\n\
             [vm.{name}.workload]\n{load}\n"
        )
    };
    format!(
        "title = \"a test\"\nduration = \"44s\"\nsample = \"2s\"\n[array.flash]\n{array}\n\
         [host.esx.adapter.vmhba1]\ndriver = \"qlnativefc\"\nlun_depth = 64\n\
         [datastore.ds]\ndevice = \"{DEVICE}\"\ndsnro = 32\nscheduler = \"sfq\"\n{}{}",
        vm("sql", sql),
        vm("web", web)
    )
}

/// The answer of a recording from a sample on.
fn ask(recording: &Measured, from: usize, line: &str) -> Answer {
    let last = recording.times_ms.last().copied().unwrap_or(0);
    let question = question(line, (recording.times_ms[from], last), 30_000.0);
    let facts = Facts::default();
    Model::calibrate(recording, &facts, &question).unwrap().answer().unwrap()
}

/// What a VM did in each sample from one on.
fn rates<'r>(recording: &'r Recording, vm: &str, from: usize) -> &'r [f64] {
    let disk = recording.find(Kind::VirtualDisk, &format!("{vm}:scsi0:0")).unwrap();
    &recording.series(disk, Counter::Commands).unwrap()[from..]
}

/// The range of commands a second of a VM, if the answer says one.
fn range(answer: &Answer, vm: &str) -> Option<(f64, f64)> {
    let mut rows = answer.simulated.rows.iter();
    let row = rows.find(|row| row.object == vm && row.counter == "CMDS/s");
    row.map(|row| (row.low, row.high))
}

/// The mean of what a VM did.
fn mean_rate(recording: &Recording, vm: &str) -> f64 {
    let own = rates(recording, vm, 1);
    own.iter().sum::<f64>() / own.len() as f64
}

#[test]
fn a_wait_for_the_slots_of_a_full_queue_is_no_limit() {
    // An array of one rate whatever is outstanding, and 55 threads alone until 22 others come: both get half of
    // the slots and of the rate, with no chance in it, and the 55 wait far longer for theirs.
    let array = "servers = 8\nservice = \"16ms\"\nspread = \"constant\"";
    let text = competing(array, "threads = 55", "threads = 22\nstart = \"14s\"");
    let recording = recorded(&text);
    let answer = ask(&recording, 9, &format!("storage core device set -d {DEVICE} -O 64"));
    let guests = &answer.calibration.devices[0].guests;
    let all: f64 = guests.iter().map(|guest| guest.iops).sum();
    for guest in guests {
        assert!((guest.iops - all / 2.0).abs() <= 1.0, "{guest:?}");
        assert_eq!(guest.held_at_iops, None, "{guest:?}");
    }
    // Nothing is said where no model divides the commands as they were, and so not that nothing is gained.
    assert!(
        range(&answer, "sql").is_some() || answer.verdict != Verdict::GainsNothing,
        "{:?}",
        answer.simulated
    );
    let truth = recorded(&text.replace("dsnro = 32", "dsnro = 64"));
    for vm in ["sql", "web"] {
        let own = rates(&truth, vm, 10);
        let rate = own.iter().sum::<f64>() / own.len() as f64;
        let is_said = |(low, high): (f64, f64)| low <= rate && rate <= high;
        assert!(range(&answer, vm).is_none_or(is_said), "{vm}: {:?}", answer.simulated);
    }
}

#[test]
fn a_limit_that_nobody_comes_to_changes_nothing() {
    let array = "servers = 32\nservice = \"30ms\"";
    let recording = recorded(&competing(array, "threads = 38", "threads = 8"));
    let [sql, web] = ["sql", "web"].map(|vm| rates(&recording, vm, 1));
    let most = sql.iter().copied().fold(0.0, f64::max);
    // Just above what it does in any sample the limit still cuts what is shorter.
    for times in [1.05, 1.3] {
        let limit = times * most;
        let answer = ask(&recording, 0, &format!("sql: DiskLimitIOPerSecond {limit:.0}"));
        let is_said = [Verdict::GainsNothing, Verdict::Identified].contains(&answer.verdict);
        assert!(is_said, "{limit}: {:?}", answer.simulated);
        for (vm, own) in [("sql", sql), ("web", web)] {
            let rate = own.iter().sum::<f64>() / own.len() as f64;
            let (low, high) = range(&answer, vm).unwrap();
            // What this one may leave of its limit others may have.
            let is_narrow = high <= 1.25 * low || vm == "web";
            let is_around = low <= rate && rate <= high && is_narrow;
            assert!(is_around, "{limit}: {vm} {low} to {high}, {rate}");
        }
    }
}

#[test]
fn the_pace_of_a_limit_close_to_the_rate_costs_what_comes_by_chance() {
    // Threads that come back by chance, behind a queue with room for all of them.
    for (sql, web, array) in [
        ("threads = 12", "threads = 6", "servers = 28\nservice = \"12.6ms\""),
        ("threads = 3", "threads = 8", "servers = 28\nservice = \"12.6ms\""),
        ("threads = 20\nthink = \"5ms\"", "threads = 6", "servers = 40\nservice = \"4ms\""),
    ] {
        let text = competing(array, sql, web);
        let recording = recorded(&text);
        let rate = mean_rate(&recording, "sql");
        for times in [0.9, 1.0, 1.03, 1.1, 1.5, 4.0] {
            let limit = (times * rate).round();
            let answer = ask(&recording, 0, &format!("sql: DiskLimitIOPerSecond {limit}"));
            let workload = "[vm.sql.workload]";
            let limited = text.replace(workload, &format!("limit = {limit}\n{workload}"));
            let truth = recorded(&limited);
            for vm in ["sql", "web"] {
                let (low, high) = range(&answer, vm).unwrap();
                let own = mean_rate(&truth, vm);
                // Two standard errors of the truth itself.
                let slack = 2.0 * (own / 44.0).sqrt();
                let is_in = low - slack <= own && own <= high + slack;
                assert!(is_in, "{sql}, {limit}: {vm} {low} to {high}, {own}");
            }
            assert!(answer.simulated.identified, "{sql}, {limit}: {:?}", answer.simulated);
        }
    }
}

#[test]
fn no_limit_lets_more_through_than_it_says() {
    // Few threads wait beside many that fill the queue: for their turn, or for a limit that is not seen.
    let array = "servers = 8\nservice = \"4ms\"";
    let recording = recorded(&competing(array, "threads = 60", "threads = 10\nthink = \"1ms\""));
    let own = rates(&recording, "web", 1);
    let limit = 1.1 * own.iter().copied().fold(0.0, f64::max);
    let answer = ask(&recording, 0, &format!("web: DiskLimitIOPerSecond {limit:.0}"));
    let (_, high) = range(&answer, "web").unwrap();
    // A margin for what chance does.
    assert!(high <= 1.08 * limit, "{high}, {limit}");
}

#[test]
fn what_comes_at_a_rate_of_its_own_waits_behind_a_limit_as_far_as_its_driver_goes() {
    // So many a second that GAVG as it is printed and chance leave open whether threads wait for their answers.
    for (guest, limit) in [("linux", 1000), ("windows", 12_000)] {
        let text = format!(
            "title = \"a test\"\nduration = \"16s\"\nsample = \"2s\"\n[array.flash]\nservers = 64\n\
             service = \"0.4ms\"\n[host.esx.adapter.vmhba1]\ndriver = \"lpfc\"\nlun_depth = 128\n\
             [datastore.ds]\ndevice = \"{DEVICE}\"\n[vm.sql]\nguest = \"{guest}\"\n\
             [vm.sql.disk.\"scsi0:0\"]\ndatastore = \"ds\"\n\
             [vm.sql.workload]\narrival = \"poisson\"\nrate = 24000\n"
        );
        let recording = recorded(&text);
        let answer = ask(&recording, 0, &format!("sql: DiskLimitIOPerSecond {limit}"));
        let truth = recorded(
            &text.replace("[vm.sql.workload]", &format!("limit = {limit}\n[vm.sql.workload]")),
        );
        let device = truth.find(Kind::Device, DEVICE).unwrap();
        // It fills up in the first sample.
        let own = truth.series(device, Counter::GuestLatency).unwrap()[2];
        let mut rows = answer.simulated.rows.iter();
        let row = rows.find(|row| row.object == "sql" && row.counter == "GAVG/cmd").unwrap();
        assert!(row.low <= own && own <= row.high, "{guest}, {limit}: {row:?}, {own}");
    }
}
