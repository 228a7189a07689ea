//! The parts of several VMs after a change of a depth: the order in which a device serves them is in no counter.

#[path = "common/asked.rs"]
mod asked;
#[path = "common/changed.rs"]
mod changed;

use asked::{question, recorded};
use changed::changed;
use counters::{Counter, Kind, Recording};
use diagnose::Facts;
use whatif::Model;

/// The only device of these hosts.
const DEVICE: &str = "naa.600a098038303053743f4b5251444c41";

/// Two VMs behind a queue.
struct Host {
    array: &'static str,
    workloads: [&'static str; 2],
    /// Its DSNRO, and what else is said of it.
    queue: &'static str,
    /// The sample from which both send.
    from: usize,
    asked: u32,
}

impl Host {
    fn text(&self) -> String {
        let Self { array, workloads: [sql, web], queue, .. } = self;
        let vm = |name: &str, load: &str| {
            format!(
                "[vm.{name}.disk.\"scsi0:0\"]\ndatastore = \"ds\"\nadapter = \"pvscsi\"\n\
                 [vm.{name}.workload]\n{load}\n"
            )
        };
        format!(
            "title = \"a test\"\nduration = \"60s\"\nsample = \"2s\"\n[array.arr]\n{array}\n\
             [host.esx.adapter.vmhba1]\ndriver = \"qlnativefc\"\nlun_depth = 64\n\
             [datastore.ds]\ndevice = \"{DEVICE}\"\ndsnro = {queue}\n{}{}",
            vm("sql", sql),
            vm("web", web)
        )
    }

    /// Holds the rates of the answer against those of the host itself with the change.
    fn check(&self) {
        let text = self.text();
        let line = format!("storage core device set -d {DEVICE} -O {}", self.asked);
        let recording = recorded(&text);
        let window = (recording.times_ms[self.from] - 1, i64::MAX);
        let (question, facts) = (question(&line, window, 50_000.0), Facts::default());
        let answer = Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap();
        let truth = changed(&text, &line);
        for row in answer.simulated.rows.iter().filter(|row| row.counter == "CMDS/s") {
            let own = self.rate(&truth, &row.object);
            // Two standard errors of the truth itself, and what two samples differ by.
            let slack = 2.0 * (own / 44.0).sqrt() + 0.005 * own;
            let is_in = row.low - slack <= own && own <= row.high + slack;
            assert!(is_in, "{text}\n{}: {} to {}, {own}", row.object, row.low, row.high);
        }
    }

    /// Commands a second of the device, or of a VM.
    fn rate(&self, recording: &Recording, name: &str) -> f64 {
        let disk = || recording.find(Kind::VirtualDisk, &format!("{name}:scsi0:0"));
        let id = recording.find(Kind::Device, name).or_else(disk).unwrap();
        let rates = &recording.series(id, Counter::Commands).unwrap()[self.from..];
        rates.iter().sum::<f64>() / rates.len() as f64
    }
}

const SLOW: &str = "servers = 8\nservice = \"4ms\"";
const STILL: &str = "servers = 4\nservice = \"2ms\"\nspread = \"constant\"";
const FLASH: &str = "servers = 40\nservice = \"1ms\"";

#[test]
fn who_was_served_before_another_came_is_between_two_orders() {
    // One VM is there first: the order of this version remembers what it had by then.
    for (queue, asked) in [("32", 64), ("32", 48)] {
        let workloads = ["threads = 60", "threads = 40\nstart = \"24s\""];
        Host { array: STILL, workloads, queue, from: 14, asked }.check();
    }
}

#[test]
fn what_no_queue_shows_today_is_served_in_either_order_then() {
    for queue in ["32", "32\nscheduler = \"sfq\""] {
        for asked in [8, 4] {
            let workloads = ["threads = 12", "threads = 6"];
            Host { array: SLOW, workloads, queue, from: 1, asked }.check();
        }
    }
}

#[test]
fn as_few_slots_as_there_are_commands_on_average_are_full_at_times() {
    let workloads = ["threads = 30\nthink = \"3ms\"", "arrival = \"poisson\"\nrate = 300"];
    for asked in [6, 8, 12] {
        Host { array: FLASH, workloads, queue: "32", from: 1, asked }.check();
    }
}

#[test]
fn a_rate_that_stood_still_at_two_depths_may_do_so_at_a_third() {
    // One VM alone has 40 commands there, and with another one 32 of a DSNRO of 32.
    let link = "servers = 96\nservice = \"400us\"\nspread = \"constant\"\nlink = \"40MB/s\"";
    let curve = "curve = [[1, \"1ms\"], [16, \"1ms\"], [4096, \"256ms\"]]";
    for array in [link, curve] {
        let workloads = ["threads = 40", "threads = 30\nstart = \"24s\""];
        Host { array, workloads, queue: "32", from: 14, asked: 64 }.check();
    }
}
