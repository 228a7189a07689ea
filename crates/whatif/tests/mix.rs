//! VMs whose commands differ, and a change by which the array gets other parts of them; and commands that the array
//! holds to a rate, which are outstanding and no load.

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

/// Two VMs of an array, and what is asked of the samples in which both send.
struct Host {
    array: &'static str,
    /// What their disks are, and what they send.
    vms: [[&'static str; 2]; 2],
    /// Where their disks are, besides the array.
    place: &'static str,
    from: usize,
    asked: &'static str,
}

impl Host {
    fn text(&self) -> String {
        let vm = |name: &str, [disk, load]: [&str; 2]| {
            format!(
                "[vm.{name}.disk.\"scsi0:0\"]\ndatastore = \"ds\"\nadapter = \"pvscsi\"\n{disk}\n\
                 [vm.{name}.workload]\n{load}\n"
            )
        };
        format!(
            "title = \"a test\"\nduration = \"40s\"\nsample = \"2s\"\n[array.arr]\n{}\n\
             [host.esx.adapter.vmhba1]\ndriver = \"qlnativefc\"\n[datastore.ds]\n{}\n{}{}",
            self.array,
            self.place,
            vm("sql", self.vms[0]),
            vm("web", self.vms[1])
        )
    }

    /// The answer, held against the host itself with the change.
    fn check(&self) -> Answer {
        let text = self.text();
        let line = self.asked.replace("DEVICE", DEVICE);
        let recording = recorded(&text);
        let answer = self.ask(&recording, &line);
        let truth = changed(&text, &line);
        assert!(!answer.simulated.rows.is_empty(), "{text}\n{:?}", answer.simulated);
        for row in answer.simulated.rows.iter().filter(|row| row.counter == "CMDS/s") {
            let own = self.rate(&truth, &row.object);
            // Two standard errors of the truth itself, and what two samples differ by.
            let slack = 2.0 * (own / 20.0).sqrt() + 0.005 * own;
            let is_in = row.low - slack <= own && own <= row.high + slack;
            assert!(is_in, "{text}\n{line}\n{}: {} to {}, {own}", row.object, row.low, row.high);
        }
        answer
    }

    fn ask(&self, recording: &Measured, line: &str) -> Answer {
        let question = question(line, (recording.times_ms[self.from] - 1, i64::MAX), 50_000.0);
        let facts = Facts::default();
        Model::calibrate(recording, &facts, &question).unwrap().answer().unwrap()
    }

    /// Commands a second of the device, or of a VM.
    fn rate(&self, recording: &Recording, name: &str) -> f64 {
        let disk = || recording.find(Kind::VirtualDisk, &format!("{name}:scsi0:0"));
        let device = recording.of_kind(Kind::Device).map(|(id, _)| id).next();
        let id = disk().or(device).unwrap();
        let rates = &recording.series(id, Counter::Commands).unwrap()[self.from..];
        rates.iter().sum::<f64>() / rates.len() as f64
    }
}

const FC: &str = "device = \"naa.600a098038303053743f4b5251444c41\"";
const READS: &str = "threads = 20\nsize = \"8k\"";
const DEAR_WRITES: &str = "servers = 8\nservice = \"400us\"\nwrite_service = \"2ms\"";

/// Whether the answer says that commands differ.
fn is_doubted(answer: &Answer) -> bool {
    answer.simulated.doubts.iter().any(|doubt| doubt.contains("commands of the VMs differ"))
}

#[test]
fn a_limit_of_dear_commands_frees_more_than_as_many_cheap_ones() {
    let late = |load: &'static str| [["", READS], ["", load]];
    for (array, vms, asked) in [
        (DEAR_WRITES, late("threads = 30\nsize = \"8k\"\nread = \"0%\"\nstart = \"20s\""), 500),
        (
            "servers = 8\nservice = \"400us\"\nwrite_service = \"1ms\"",
            [
                ["", "threads = 20\nsize = \"8k\"\nread = \"90%\""],
                ["", "threads = 30\nsize = \"8k\"\nread = \"20%\"\nstart = \"20s\""],
            ],
            1000,
        ),
        (
            "servers = 8\nservice = \"2ms\"\nwrite_service = \"300us\"",
            late("threads = 30\nsize = \"8k\"\nread = \"0%\"\nstart = \"20s\""),
            1000,
        ),
        (
            "servers = 8\nservice = \"500us\"\nper_kib = \"10us\"",
            late("threads = 30\nsize = \"64k\"\nstart = \"20s\""),
            2000,
        ),
    ] {
        let asked = format!("web: DiskLimitIOPerSecond {asked}").leak();
        let answer = Host { array, vms, place: FC, from: 10, asked }.check();
        assert!(is_doubted(&answer), "{:?}", answer.simulated);
    }
}

#[test]
fn nothing_shows_what_commands_cost_that_always_come_together() {
    let link = "servers = 64\nservice = \"300us\"\nlink = \"8Gbit/s\"";
    for (array, vms, asked) in [
        (DEAR_WRITES, [["", READS], ["", "threads = 30\nsize = \"8k\"\nread = \"0%\""]], 500),
        (link, [["", "threads = 16\nsize = \"4k\""], ["", "threads = 16\nsize = \"256k\""]], 1000),
    ] {
        let asked = format!("web: DiskLimitIOPerSecond {asked}").leak();
        let answer = Host { array, vms, place: FC, from: 1, asked }.check();
        assert!(is_doubted(&answer) && !answer.simulated.identified, "{:?}", answer.simulated);
    }
}

#[test]
fn dear_commands_that_are_let_in_cost_the_others_more_than_their_number() {
    let writes = "threads = 30\nsize = \"8k\"\nread = \"0%\"\nstart = \"20s\"";
    for asked in ["web: DiskLimitIOPerSecond 1500", "web: DiskLimitIOPerSecond -1"] {
        let vms = [["", READS], ["limit = 500", writes]];
        let answer = Host { array: DEAR_WRITES, vms, place: FC, from: 10, asked }.check();
        assert!(is_doubted(&answer), "{:?}", answer.simulated);
    }
    let vms = [
        ["", "threads = 60\nsize = \"8k\""],
        ["", "threads = 4\nsize = \"8k\"\nread = \"0%\"\nstart = \"20s\""],
    ];
    let asked = "storage core device set -d DEVICE -O 64";
    let answer = Host { array: DEAR_WRITES, vms, place: FC, from: 10, asked }.check();
    assert!(is_doubted(&answer), "{:?}", answer.simulated);
}

#[test]
fn commands_of_one_kind_are_no_doubt() {
    let vms = [["", READS], ["", "threads = 30\nsize = \"8k\"\nstart = \"20s\""]];
    let asked = "web: DiskLimitIOPerSecond 1000";
    let array = "servers = 8\nservice = \"400us\"";
    let answer = Host { array, vms, place: FC, from: 10, asked }.check();
    assert!(!is_doubted(&answer) && answer.simulated.identified, "{:?}", answer.simulated);
}

#[test]
fn what_a_policy_holds_is_no_load_that_others_may_have() {
    let place = "kind = \"vvol\"";
    for (array, asked) in [
        ("servers = 8\nservice = \"500us\"", "sql: DiskLimitIOPerSecond 2000"),
        ("servers = 4\nservice = \"300us\"", "sql: DiskLimitIOPerSecond 2000"),
        ("servers = 16\nservice = \"600us\"", "sql: DiskLimitIOPerSecond 3000"),
    ] {
        let array = format!(
            "{array}\n[array.arr.qos.gold]\nmax = 4000\n[array.arr.qos.none]\nmax = 900000"
        );
        let vms = [["qos = \"gold\"", "threads = 60\nsize = \"8k\""], ["qos = \"none\"", READS]];
        let answer = Host { array: array.leak(), vms, place, from: 1, asked }.check();
        assert_ne!(answer.verdict, Verdict::Identified);
    }
}
