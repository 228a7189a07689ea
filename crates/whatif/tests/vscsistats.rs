//! Histograms of `vscsiStats` tell who waits for answers. They are made by hand and by a queue of a
//! few lines that is not kavg's: threads that pause, or arrivals, before slots before servers.

use std::{cmp::Reverse, collections::BinaryHeap, fmt::Write};

use capture::parse_vscsistats;
use diagnose::Facts;
use knobs::Line;
use levels::Measured;
use scenario::Scenario;
use whatif::{Answer, Error, GuestCalibration, Habit, Model, Question, Verdict};

const DEVICE: &str = "naa.600a098038303053743f4b5251444c41";
const DEEPER: &str = "system module parameters set -m nfnic -p lun_queue_depth_per_path=48";
/// Servers and the time that each takes, in microseconds.
const SERVERS: usize = 64;
const SERVICE_US: f64 = 2_000.0;

/// Who sends.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// So many threads, which pause for so many microseconds on average.
    Threads(usize, f64),
    /// So many commands a second.
    Rate(f64),
}

impl Load {
    /// The lines of a scenario.
    fn workload(self) -> String {
        match self {
            Self::Threads(threads, 0.0) => format!("threads = {threads}"),
            Self::Threads(threads, pause) => format!("threads = {threads}\nthink = \"{pause}us\""),
            Self::Rate(rate) => format!("arrival = \"poisson\"\nrate = {rate}"),
        }
    }
}

/// One VM behind a device queue; its load begins after 2 and then 12 threads, 10 s each.
fn recorded(depth: usize, load: Load) -> Measured {
    let text = format!(
        "title = \"a test\"\nduration = \"60s\"\nsample = \"2s\"\n\
         [array.flash]\nservers = {SERVERS}\nservice = \"{SERVICE_US}us\"\n\
         [host.esx.adapter.vmhba1]\ndriver = \"nfnic\"\nlun_depth = {depth}\n\
         [datastore.ds]\ndevice = \"{DEVICE}\"\n\
         [vm.sql]\nguest_driver = \"RequestRingPages=32,MaxQueueDepth=254\"\n\
         [vm.sql.disk.\"scsi0:0\"]\ndatastore = \"ds\"\nadapter = \"pvscsi\"\n\
         [[workload]]\nvm = \"sql\"\nname = \"few\"\nthreads = 2\nstop = \"10s\"\n\
         [[workload]]\nvm = \"sql\"\nname = \"some\"\nthreads = 12\nstart = \"10s\"\n\
         stop = \"20s\"\n\
         [[workload]]\nvm = \"sql\"\nname = \"many\"\n{}\nstart = \"20s\"\n",
        load.workload()
    );
    let no_files = &mut |_: &str| Err("no files".to_owned());
    let scenario = Scenario::parse("test.toml", &text, no_files).expect("a scenario");
    Measured::of(sim::run(&scenario, 1, &()).recordings.swap_remove(0))
}

/// Numbers between 0 and 1, by xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next()).ln()
    }
}

/// What is outstanding, itself counted, at each of many commands, and when they came, in
/// microseconds: a device of `depth` slots before servers of which each takes exponential time.
fn observed(depth: usize, load: Load, seed: u64) -> (Vec<i64>, Vec<f64>) {
    const COMMANDS: usize = 60_000;
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    // In whole nanoseconds; true is a command that comes, false one that ends.
    let mut events: BinaryHeap<Reverse<(u64, bool)>> = BinaryHeap::new();
    let at = |events: &mut BinaryHeap<_>, us: f64, comes: bool| {
        events.push(Reverse(((us * 1000.0) as u64, comes)));
    };
    match load {
        Load::Threads(threads, _) => (0..threads).for_each(|n| at(&mut events, n as f64, true)),
        Load::Rate(_) => at(&mut events, 0.0, true),
    }
    let (mut inside, mut served) = (0_usize, 0_usize);
    let (mut seen, mut times) = (Vec::new(), Vec::new());
    while seen.len() < COMMANDS {
        let Some(Reverse((now, comes))) = events.pop() else { break };
        let now_us = now as f64 / 1000.0;
        if comes {
            inside += 1;
            seen.push(inside as i64);
            times.push(now_us);
            if let Load::Rate(rate) = load {
                at(&mut events, now_us + random.exponential(1e6 / rate), true);
            }
        } else {
            (inside, served) = (inside - 1, served - 1);
            if let Load::Threads(_, pause) = load {
                at(&mut events, now_us + random.exponential(pause.max(1e-3)), true);
            }
        }
        while served < inside.min(depth).min(SERVERS) {
            served += 1;
            at(&mut events, now_us + random.exponential(SERVICE_US), false);
        }
    }
    (seen.split_off(1_000), times.split_off(1_000))
}

/// One block as `vscsiStats -p all -c` prints it [VSCSI].
fn block(title: &str, values: &[i64], limits: &[i64]) -> String {
    let sum: i64 = values.iter().sum();
    let mut out = format!(
        "Histogram: {title},virtual machine worldGroupID,{{world}},virtual disk handleID,8194 \
         (scsi0:0)\nmin,{}\nmax,{}\nmean,{}\ncount,{}\nFrequency,Histogram Bucket Limit\n",
        values.iter().min().unwrap(),
        values.iter().max().unwrap(),
        sum / values.len() as i64,
        values.len()
    );
    let mut below = i64::MIN;
    for &limit in limits {
        let count = values.iter().filter(|value| below < **value && **value <= limit).count();
        let _ = writeln!(out, "{count},{limit}");
        below = limit;
    }
    let above = values.iter().filter(|value| **value > below).count();
    let _ = writeln!(out, "{above},{below}");
    out
}

/// The histograms of a load, by the queue above.
fn counted(depth: usize, load: Load, seed: u64) -> String {
    let (seen, times) = observed(depth, load, seed);
    let gaps: Vec<i64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as i64).collect();
    block("IO lengths of commands", &vec![4_096; seen.len()], &[4_095, 4_096, 8_191])
        + &block(
            "number of outstanding IOs when a new IO is issued",
            &seen,
            &[1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 64],
        )
        + &block(
            "latency of IO interarrival time in Microseconds (us)",
            &gaps,
            &[1, 10, 100, 500, 1_000, 5_000, 15_000, 30_000, 50_000, 100_000],
        )
}

/// The leader world of the VM, as the rows of the recording name it.
fn world(recording: &Measured) -> String {
    let mut worlds = recording.of_kind(counters::Kind::World);
    let (_, world) = worlds.next().expect("the VM has a world");
    world.name.rsplit('-').next().expect("a number").into()
}

/// Asks for a deeper queue over the samples from `from` on.
fn ask_from(recording: &Measured, from: usize, histograms: &str) -> Result<Answer, Error> {
    let text = histograms.replace("{world}", &world(recording));
    let question = Question {
        settings: DEEPER.parse::<Line>().expect("a line").settings,
        window: (recording.times_ms[from - 1], i64::MAX),
        device: None,
        vms: Vec::new(),
        arrays: Vec::new(),
        vscsistats: if text.is_empty() {
            Vec::new()
        } else {
            parse_vscsistats("v.csv", &text).expect("histograms")
        },
        commands: 20_000.0,
    };
    let facts = Facts::default();
    let model = Model::calibrate(recording, &facts, &question)?;
    model.answer()
}

/// The same over all but the quiet third.
fn ask(recording: &Measured, histograms: &str) -> Result<Answer, Error> {
    ask_from(recording, 11, histograms)
}

fn guest(answer: &Answer) -> &GuestCalibration {
    &answer.calibration.devices[0].guests[0]
}

fn range(answer: &Answer) -> (f64, f64) {
    let row = &answer.simulated.rows[0];
    assert_eq!((row.object.as_str(), row.counter), (DEVICE, "CMDS/s"));
    (row.low, row.high)
}

#[test]
fn a_guest_whose_commands_outstanding_never_move_is_closed_and_the_range_is_narrower() {
    let load = Load::Threads(96, 0.0);
    let recording = recorded(32, load);
    // Five samples are too few to tell.
    let histograms = [String::new(), counted(32, load, 1)];
    let [alone, told] = histograms.map(|h| ask_from(&recording, 25, &h).unwrap());
    assert_eq!((guest(&alone).habit, guest(&told).habit), (Habit::Unknown, Habit::Closed));
    let says = guest(&told).vscsistats.as_deref().unwrap();
    assert!(says.contains("96 outstanding") && says.contains("closed"), "{says}");
    let (low, high) = range(&told);
    let (least, most) = range(&alone);
    assert!(low > 1.1 * least && high <= most, "{low} to {high}, {least} to {most} without");
    assert_eq!((alone.verdict, told.verdict), (Verdict::Bounded, Verdict::Identified));
    // S * (1 + (48 - 1) / 64) is 3.47 ms: 48 are answered 13,838 times a second.
    assert!(low <= 13_838.0 && 13_838.0 <= high, "{low} to {high}");
    let advice = |answer: &Answer| answer.simulated.doubts.join(" ").contains("`vscsiStats`");
    assert!(advice(&alone) && !advice(&told), "{:?}", told.simulated.doubts);
}

#[test]
fn a_pause_that_is_there_is_never_ruled_out() {
    for seed in 1..=20_u64 {
        let mut random = Random(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) | 1);
        let depth = 16 + (32.0 * random.next()) as usize;
        let threads = depth + 4 + (100.0 * random.next()) as usize;
        let pause_us = 4_000.0 * random.next();
        let load = Load::Threads(threads, pause_us);
        let answer = ask(&recorded(depth, load), &counted(depth, load, seed)).unwrap();
        let guest = guest(&answer);
        let most = guest.pause_ms.1.unwrap_or(f64::INFINITY);
        assert!(pause_us / 1000.0 <= 1.02 * most, "{seed}: {depth}, {load:?}: {guest:?}");
    }
}

#[test]
fn a_rate_of_its_own_is_never_taken_for_threads() {
    for seed in 1..=20_u64 {
        let part = 0.3 + 0.6 * Random(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) | 1).next();
        // 24 slots before servers of 2 ms.
        let load = Load::Rate((part * 12_000.0).round());
        let answer = ask(&recorded(24, load), &counted(24, load, seed)).unwrap();
        let guest = guest(&answer);
        assert!(guest.habit != Habit::Closed && guest.pause_ms.1.is_none(), "{seed}: {guest:?}");
    }
}

#[test]
fn histograms_of_another_load_tell_nothing_and_the_answer_says_so() {
    let recording = recorded(32, Load::Threads(48, 0.0));
    let other = counted(32, Load::Threads(8, 0.0), 1);
    let answer = ask_from(&recording, 25, &other).unwrap();
    let says = guest(&answer).vscsistats.as_deref().unwrap();
    assert!(says.contains("another load (8 outstanding"), "{says}");
    assert_eq!(guest(&answer).habit, Habit::Unknown);
}

#[test]
fn histograms_of_nobody_here_are_named() {
    let recording = recorded(32, Load::Threads(48, 0.0));
    let text = counted(32, Load::Threads(48, 0.0), 1);
    let error = ask(&recording, &text.replace("{world}", "77")).unwrap_err().to_string();
    assert!(error.starts_with("vscsiStats counted for world 77, and esx has no VM"), "{error}");
    let answer = ask(&recording, &text.replace("scsi0:0", "scsi1:3")).unwrap();
    let doubts = answer.simulated.doubts.join(" ");
    assert!(doubts.contains("vscsiStats of sql:scsi1:3 is not used"), "{doubts}");
}
