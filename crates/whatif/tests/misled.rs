//! Hosts of which a recording says less than it seems to: bursts in step with its samples, rates of a guest's own
//! behind a full queue, a quiet hour of another kind, commands that are cut. The truth is the same host with the
//! change.

#[path = "common/asked.rs"]
mod asked;
#[path = "common/changed.rs"]
mod changed;

use asked::{question, recorded};
use changed::changed;
use counters::{Counter, Kind, Recording};
use diagnose::Facts;
use whatif::{Model, Verdict};

/// The only device of these hosts.
const DEVICE: &str = "naa.600a098038303053743f4b5251444c41";

const FLASH: &str = "servers = 48\nservice = \"0.5ms\"\nspread = \"lognormal\"\nvariation = 1.0\nround_trip = \"50us\"";
const ROOMY: &str = "servers = 400\nservice = \"1ms\"\nround_trip = \"50us\"";
const SPINDLES: &str = "spindles = 24\nservice = \"5ms\"\nraid = \"10\"\nround_trip = \"200us\"";
const FULL: &str = "curve = [[1, \"0.3ms\"], [32, \"0.6ms\"]]";
const SEEKS: &str =
    "spindles = 12\nraid = \"10\"\ndisk = { rpm = 10000, size = \"600g\" }\nround_trip = \"200us\"";

const WRITES: &str = "servers = 32\nservice = \"1ms\"\nround_trip = \"0.1ms\"\nper_kib = \"4us\"";

/// Half a second on and half a second off: over at every sample.
const BURSTS: &str = "on = \"500ms\"\noff = \"500ms\"";

/// A host with an array, a driver's depth of `depth` and a DSNRO of 32, and what VMs send: `quiet` until 20 s, and
/// the load in question.
struct Host<'a> {
    array: &'a str,
    depth: u32,
    loads: &'a [(&'a str, &'a str)],
    /// The first sample in question.
    from: usize,
    line: &'a str,
}

impl Host<'_> {
    fn text(&self) -> String {
        let mut text = format!(
            "title = \"a test\"\nduration = \"60s\"\nsample = \"2s\"\n[array.one]\n{}\n\
             [host.esx.adapter.vmhba1]\ndriver = \"qlnativefc\"\nlun_depth = {}\n\
             [datastore.ds]\ndevice = \"{DEVICE}\"\ndsnro = 32\n",
            self.array, self.depth
        );
        for vm in ["sql", "app", "web"] {
            if self.loads.iter().any(|(name, _)| *name == vm) {
                text += &format!(
                    "[vm.{vm}]\nguest_driver = \"RequestRingPages=32,MaxQueueDepth=254\"\n\
                     [vm.{vm}.disk.\"scsi0:0\"]\ndatastore = \"ds\"\nadapter = \"pvscsi\"\n"
                );
            }
        }
        for (index, (vm, load)) in self.loads.iter().enumerate() {
            let load = load.replace("BURSTS", BURSTS);
            text += &format!("[[workload]]\nvm = \"{vm}\"\nname = \"{vm}{index}\"\n{load}\n");
        }
        text
    }

    /// Asks its recording, and holds each rate and the latency of the device against the truth.
    fn check(&self) -> Verdict {
        self.check_in("", i64::MAX)
    }

    /// The same of a recording in which DSNRO was set to `tried` after half of it, of the time before.
    fn check_tried(&self, tried: u32) -> Verdict {
        let tried = DSNRO.replace("64", &tried.to_string()).replace("DEVICE", DEVICE);
        let event = format!("[[event]]\nat = \"30s\"\nesxcli = \"{tried}\"\n");
        self.check_in(&event, 26_000)
    }

    fn check_in(&self, event: &str, to_ms: i64) -> Verdict {
        let (text, line) = (self.text(), self.line.replace("DEVICE", DEVICE));
        let recording = recorded(&(text.clone() + event));
        let begins = recording.times_ms[0];
        let window = (recording.times_ms[self.from], begins.saturating_add(to_ms));
        let question = question(&line, window, 20_000.0);
        let facts = Facts::default();
        let answer = Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap();
        let truth = changed(&text, &line);
        for row in &answer.simulated.rows {
            let Some(own) = figure(&truth, &row.object, row.counter, self.from + 1) else {
                continue;
            };
            // Half a per cent and two standard errors of a rate over so many seconds.
            let rate = figure(&truth, &row.object, "CMDS/s", self.from + 1).unwrap_or(1.0);
            let slack = (0.005 + 2.0 / (rate * 40.0).sqrt()) * own;
            let is_in = row.low - slack <= own && own <= row.high + slack;
            assert!(is_in, "{line}\n{text}\n{} {}: {own}\n{answer:?}", row.object, row.counter);
        }
        answer.verdict
    }
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

const DSNRO: &str = "storage core device set -d DEVICE -O 64";
const SHORTER: &str = "storage core device set -d DEVICE -m 16";
const WEB: &str = "web: DiskLimitIOPerSecond 4000";
const SQL: &str = "sql: DiskLimitIOPerSecond 5000";

#[test]
fn bursts_in_step_with_the_samples_hide_what_competes() {
    const STEADY: &[(&str, &str)] = &[("sql", "threads = 16"), ("web", "threads = 32\nBURSTS")];
    const BOTH: &[(&str, &str)] =
        &[("sql", "threads = 24\nBURSTS"), ("web", "threads = 40\nBURSTS")];
    for (array, depth, loads, line) in [
        (FLASH, 64, STEADY, DSNRO),
        (FLASH, 64, STEADY, WEB),
        (SPINDLES, 128, STEADY, DSNRO),
        (ROOMY, 32, STEADY, SQL),
        (ROOMY, 32, STEADY, WEB),
        (ROOMY, 32, STEADY, "web: DiskLimitIOPerSecond 9000"),
        (FLASH, 32, &[("sql", "threads = 8"), ("web", "threads = 64\nBURSTS")], SHORTER),
        (FLASH, 64, BOTH, WEB),
        (FLASH, 64, BOTH, DSNRO),
    ] {
        let host = Host { array, depth, loads, from: 0, line };
        let verdict = host.check();
        let is_sure = matches!(verdict, Verdict::GainsNothing | Verdict::Identified);
        assert!(!is_sure, "{verdict:?}\n{line}\n{}", host.text());
    }
}

#[test]
fn a_queue_that_is_held_between_the_samples_alone_may_gain_what_it_waits() {
    // While eight threads join fifty, DSNRO holds them to 32, and the samples are of the time without them.
    let array = "servers = 64\nservice = \"4ms\"\nspread = \"lognormal\"\nvariation = 0.8\nqueue = \"shared\"";
    let loads = &[
        ("sql", "threads = 50\nsize = \"8k\""),
        ("web", "threads = 8\nsize = \"8k\"\non = \"400ms\"\noff = \"5600ms\""),
    ];
    let verdict = Host { array, depth: 64, loads, from: 0, line: DSNRO }.check();
    assert_eq!(verdict, Verdict::Identified);
    let verdict = Host { array, depth: 64, loads, from: 0, line: SHORTER }.check();
    assert_eq!(verdict, Verdict::NoModel, "DSNRO may be less already");
}

#[test]
fn a_queue_may_count_more_for_commands_of_which_the_mean_size_is_known_alone() {
    let array = "servers = 200\nservice = \"1.5ms\"\nspread = \"exponential\"\nlink = \"2Gbit/s\"";
    let line = "storage core device set -d DEVICE -O 16";
    let sizes = "size = { \"4k\" = 70, \"64k\" = 30 }";
    let [few, many] = ["threads = 3\nstop = \"20s\"", "threads = 24\nstart = \"20s\""];
    let [few, many] = [few, many].map(|threads| format!("{threads}\n{sizes}"));
    let [quiet, busy] = ["rate = 1000\nstop = \"20s\"", "rate = 7900\nstart = \"20s\""];
    let [quiet, busy] =
        [quiet, busy].map(|rate| format!("arrival = \"poisson\"\nsize = \"8k\"\n{rate}"));
    let loads = &[("sql", &*quiet), ("sql", &*busy), ("web", &*few), ("web", &*many)];
    Host { array, depth: 64, loads, from: 11, line }.check();
}

#[test]
fn who_asks_for_less_than_its_part_of_a_full_queue_is_not_held_by_it() {
    // What it has outstanding goes with its rate, which is its own: a deeper queue takes nothing from it.
    let array = "servers = 24\nservice = \"1ms\"\nqueue = \"shared\"";
    let loads = &[
        ("sql", "arrival = \"poisson\"\nrate = 500\nstop = \"20s\""),
        ("sql", "arrival = \"poisson\"\nrate = 4000\nstart = \"20s\""),
        ("app", "threads = 4\nstop = \"20s\""),
        ("app", "threads = 30\nthink = \"0.3ms\"\nstart = \"20s\""),
        ("web", "threads = 20"),
    ];
    Host { array, depth: 64, loads, from: 11, line: DSNRO }.check();
}

#[test]
fn a_depth_that_flaps_is_that_of_no_row() {
    // One command in 70 to 150 is the other VM's: DQLEN is 32 and 64 in turn, many times between two samples.
    for (web, sql) in [
        ("size = \"64k\"\nread = \"0%\"", "threads = 1\nsize = \"8k\"\nthink = \"5ms\""),
        ("size = \"64k\"\nread = \"0%\"", "threads = 1\nsize = \"8k\"\nthink = \"6ms\""),
        ("size = \"32k\"\nread = \"0%\"", "threads = 1\nsize = \"8k\"\nthink = \"3ms\""),
        ("size = \"32k\"", "arrival = \"poisson\"\nrate = 150\nsize = \"8k\""),
        ("size = \"8k\"", "arrival = \"poisson\"\nrate = 250\nsize = \"8k\""),
    ] {
        let [few, many] = ["threads = 4\nstop = \"20s\"", "threads = 64\nstart = \"20s\""];
        let [few, many] = [few, many].map(|threads| format!("{threads}\n{web}"));
        let loads = &[("sql", sql), ("web", &few), ("web", &many)];
        let verdict = Host { array: WRITES, depth: 64, loads, from: 11, line: DSNRO }.check();
        // What comes evenly beside it no model has so, and what comes by chance one may.
        assert!(sql.contains("poisson") || verdict == Verdict::NoModel, "{verdict:?} {web} {sql}");
    }
}

#[test]
fn a_depth_between_two_that_were_tried_may_be_that_of_the_knee() {
    // Flat up to 50 or 60, as a link has it, and no other load than those of the two depths.
    let loads = &[("sql", "threads = 96"), ("web", "threads = 96")];
    for (array, asked) in [
        ("curve = [[1, \"0.7ms\"], [50, \"0.7ms\"]]", "48"),
        ("curve = [[1, \"0.7ms\"], [60, \"0.7ms\"]]", "56"),
        ("servers = 50\nqueue = \"shared\"\nservice = \"0.7ms\"\nspread = \"constant\"", "40"),
    ] {
        let line = DSNRO.replace("64", asked);
        Host { array, depth: 128, loads, from: 0, line: &line }.check_tried(64);
    }
}

#[test]
fn a_rate_of_its_own_behind_a_full_queue_may_want_no_more() {
    for (array, loads, from, line) in [
        (FLASH, &[("sql", "threads = 32\nrate = 24000"), ("web", "threads = 64")], 0, WEB),
        (FLASH, &[("sql", "threads = 32\nrate = 24000"), ("web", "threads = 64")], 0, DSNRO),
        (
            FLASH,
            &[("sql", "threads = 32\nrate = 18000"), ("web", "threads = 64\nstart = \"20s\"")],
            11,
            WEB,
        ),
        (
            ROOMY,
            &[("sql", "threads = 32\nrate = 15000"), ("web", "threads = 64\nstart = \"20s\"")],
            11,
            WEB,
        ),
        (
            FLASH,
            &[
                ("sql", "arrival = \"poisson\"\nrate = 20000\noutstanding = 32"),
                ("web", "threads = 64\nstart = \"20s\""),
            ],
            11,
            WEB,
        ),
        (
            FULL,
            &[
                ("sql", "arrival = \"poisson\"\nrate = 30000\noutstanding = 32"),
                ("web", "threads = 64"),
            ],
            0,
            WEB,
        ),
    ] as [(_, &[(&str, &str)], _, _); 6]
    {
        Host { array, depth: 64, loads, from, line }.check();
    }
}

#[test]
fn who_kept_its_number_while_slots_were_free_wants_more() {
    // Eight threads, and then 48 that fill the queue: what they get is no rate of their own.
    let loads = &[("sql", "threads = 8\nstop = \"20s\""), ("sql", "threads = 48\nstart = \"20s\"")];
    let verdict = Host { array: ROOMY, depth: 32, loads, from: 11, line: SHORTER }.check();
    assert_eq!(verdict, Verdict::Identified);
}

#[test]
fn a_quiet_hour_that_did_more_tells_nothing_of_the_busy_one() {
    for line in [SHORTER, "system module parameters set -m qlnativefc -p ql2xmaxqdepth=64"] {
        let loads = &[
            ("sql", "threads = 4\naccess = \"sequential\"\nstop = \"20s\""),
            ("sql", "threads = 48\nworking_set = \"500g\"\nstart = \"20s\""),
        ];
        let verdict = Host { array: SEEKS, depth: 32, loads, from: 11, line }.check();
        assert_eq!(verdict, Verdict::CannotTell, "{line}");
    }
}

#[test]
fn pieces_of_a_command_may_cost_their_part_or_as_much_as_the_whole() {
    for array in [
        "servers = 32\nservice = \"0.3ms\"\nper_kib = \"4us\"\nround_trip = \"50us\"",
        "curve = [[1, \"0.5ms\"], [32, \"1ms\"], [128, \"3ms\"]]\ncurve_size = \"4k\"\nper_kib = \"2us\"",
        SPINDLES,
        FLASH,
    ] {
        let loads = &[("sql", "threads = 16\nsize = \"512k\"")];
        let line = "system settings advanced set -o /Disk/DiskMaxIOSize -i 128";
        Host { array, depth: 64, loads, from: 0, line }.check();
    }
}
