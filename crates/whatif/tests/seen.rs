//! What a recording shows beside the load in question, and what follows from it: a lighter load of the same
//! commands, a depth that was tried on the way to the one that is asked for, and who is there at the instants
//! of the samples.

#[path = "common/asked.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod asked;

use asked::question;
use counters::{Counter, Kind};
use diagnose::{DeviceFacts, Facts};
use levels::Measured;
use scenario::Scenario;
use whatif::{Answer, Habit, Model, Seen, Verdict};

/// The only device of these hosts.
const DEVICE: &str = "naa.600a098038303053743f4b5251444c41";

/// One VM on one device of an array, with the depth of the driver and its workloads.
fn host(array: &str, depth: u32, workloads: &str) -> String {
    format!(
        "title = \"a test\"\nduration = \"60s\"\nsample = \"2s\"\n[array.arr]\n{array}\n\
         [host.esx.adapter.vmhba1]\ndriver = \"qlnativefc\"\nlun_depth = {depth}\n\
         [datastore.ds]\ndevice = \"{DEVICE}\"\n\
         [vm.sql]\nguest_driver = \"RequestRingPages=32,MaxQueueDepth=254\"\n\
         [vm.sql.disk.\"scsi0:0\"]\ndatastore = \"ds\"\nadapter = \"pvscsi\"\n{workloads}"
    )
}

/// So many threads, and before them for a third of the time so few.
fn step(few: u32, many: u32) -> String {
    format!(
        "[[workload]]\nvm = \"sql\"\nname = \"few\"\nthreads = {few}\nstop = \"20s\"\n\
         [[workload]]\nvm = \"sql\"\nname = \"many\"\nthreads = {many}\nstart = \"20s\"\n"
    )
}

const FLASH: &str = "servers = 40\nservice = \"1ms\"";

fn scenario(text: &str) -> Scenario {
    let no_files = &mut |_: &str| Err("no files".to_owned());
    Scenario::parse("test.toml", text, no_files).expect("a scenario")
}

fn recorded(scenario: &Scenario) -> Measured {
    Measured::of(sim::run(scenario, 1, &()).recordings.swap_remove(0))
}

/// What these samples are asked, of a host that does not throttle its queue.
fn ask(recording: &Measured, samples: [usize; 2], line: &str) -> Answer {
    let known = DeviceFacts { queue_full_sample_size: Some(0), ..DeviceFacts::default() };
    ask_knowing(known, recording, samples, line)
}

/// The same with what is known of its device.
fn ask_knowing(
    known: DeviceFacts,
    recording: &Measured,
    samples: [usize; 2],
    line: &str,
) -> Answer {
    let window = (recording.times_ms[samples[0]] - 1, recording.times_ms[samples[1]]);
    let question = question(line, window, 50_000.0);
    let facts = Facts { devices: [(DEVICE.to_owned(), known)].into(), ..Facts::default() };
    Model::calibrate(recording, &facts, &question).expect("a model").answer().expect("an answer")
}

fn depth(depth: u32) -> String {
    format!("storage core device set -d {DEVICE} -m {depth}")
}

/// The range of commands a second.
fn range(answer: &Answer) -> (f64, f64) {
    let row = answer.simulated.rows.first().expect("a table");
    assert_eq!((&*row.object, row.counter), (DEVICE, "CMDS/s"));
    (row.low, row.high)
}

/// Commands a second in some samples.
fn rate(recording: &Measured, samples: [usize; 2]) -> f64 {
    let id = recording.find(Kind::Device, DEVICE).expect("it is there");
    let rates =
        &recording.series(id, Counter::Commands).expect("a column")[samples[0]..=samples[1]];
    rates.iter().sum::<f64>() / rates.len() as f64
}

const DEEPER: &str = "system module parameters set -m qlnativefc -p ql2xmaxqdepth=96";

#[test]
fn what_rose_from_a_much_lighter_load_on_does_not_rise_less_beyond() {
    // Four threads and 64 are too far apart for a slope where the queue is full, and there is no other load.
    let text = host(FLASH, 64, &step(4, 120));
    let recording = recorded(&scenario(&text));
    let answer = ask(&recording, [12, 29], DEEPER);
    assert_eq!(answer.calibration.arrays[0].seen, Seen::Knee);
    let (low, high) = range(&answer);
    let mut changed = scenario(&text);
    changed.set(DEEPER).expect("a setting");
    let truth = rate(&recorded(&changed), [12, 29]);
    assert!(low <= truth && truth <= high, "{low} to {high}, {truth}");
    // As quick as today it would be half as much again.
    let today = rate(&recording, [12, 29]);
    assert!(low > 0.95 * today && high < 1.35 * today, "{low} to {high} of {today}");
}

#[test]
fn where_latency_did_not_rise_from_a_lighter_load_on_nothing_is_known_beyond() {
    let level = "curve = [[1, \"1ms\"], [256, \"1ms\"], [4096, \"16ms\"]]";
    let text = host(level, 64, &step(4, 120));
    let answer = ask(&recorded(&scenario(&text)), [12, 29], DEEPER);
    assert_eq!(answer.calibration.arrays[0].seen, Seen::NoKnee);
}

#[test]
fn a_deeper_queue_than_one_that_was_tried_gives_no_less_than_that_did() {
    // A guest at its driver's depth, which may have no more to send for all that its queue shows.
    let text = host(FLASH, 64, "[vm.sql.workload]\nthreads = 300\n");
    let with = |first: u32, then: u32| {
        let mut text =
            text.replace("duration", &format!("esxcli = \"{}\"\nduration", depth(first)));
        text += &format!("[[event]]\nat = \"30s\"\nesxcli = \"{}\"\n", depth(then));
        recorded(&scenario(&text))
    };
    let (before, tried) = ([0, 14], [16, 29]);
    let recording = with(8, 24);
    let (low, _) = range(&ask(&recording, before, &depth(32)));
    let seen = rate(&recording, tried);
    assert!(low > 0.95 * seen && low < 1.01 * seen.max(rate(&with(8, 32), tried)), "{low}, {seen}");
    // And one that is shorter than that no more.
    let recording = with(32, 16);
    let (_, high) = range(&ask(&recording, before, &depth(12)));
    assert!(high < 1.05 * rate(&recording, tried), "{high}, {}", rate(&recording, tried));
}

#[test]
fn who_is_there_with_the_same_number_at_every_instant_pauses_never() {
    let habit = |workload: &str| {
        let text = host(FLASH, 16, &format!("[vm.sql.workload]\n{workload}\n"));
        let answer = ask(&recorded(&scenario(&text)), [1, 29], DEEPER);
        answer.calibration.devices[0].guests[0].habit
    };
    assert_eq!(habit("threads = 40"), Habit::Closed);
    // These have as many outstanding, and a few pause at each instant.
    assert_eq!(habit("threads = 43\nthink = \"200us\""), Habit::Unknown);
    // At its driver's depth nobody knows what else it wants.
    assert_eq!(habit("threads = 300"), Habit::Unknown);
}

#[test]
fn a_depth_that_is_seen_between_bursts_is_not_the_one_in_them() {
    // Bursts of three VMs, over before the next sample, the last of them alone for a while: DQLEN is back at the
    // driver's depth by then, and ACTV at nothing.
    const BURSTS: &str = "threads = 40\non = \"500ms\"\noff = \"1500ms\"\n\
                          start = { first = \"0s\", every = \"200ms\" }\n";
    let text = host(FLASH, 64, BURSTS)
        .replace("[vm.sql]\n", "[vm.sql]\ncount = 3\n")
        .replace("threads", "[vm.sql.workload]\nthreads");
    let dsnro = format!("storage core device set -d {DEVICE} -O 64");
    let recording = recorded(&scenario(&text));
    let id = recording.find(Kind::Device, DEVICE).expect("it is there");
    let seen = recording.series(id, Counter::DeviceQDepth).expect("a column");
    assert!(seen[1..].iter().all(|depth| *depth == 64.0), "{seen:?}");
    let answer = ask(&recording, [1, 29], &dsnro);
    assert_eq!(answer.verdict, Verdict::NoModel);
    assert!(answer.simulated.sentence.contains("seen between them"), "{answer:?}");
    let mut changed = scenario(&text);
    changed.set(&dsnro).expect("a setting");
    let rates = [&recording, &recorded(&changed)].map(|of| rate(of, [1, 29]));
    assert!(rates[1] > 1.1 * rates[0], "{rates:?}");
}

#[test]
fn without_rows_of_vms_a_depth_of_dsnros_is_not_known_to_be_the_devices() {
    // One VM before a driver's depth of 32, and two that DSNRO holds to 32 of 64, look the same then.
    for (depth, vms) in [(32, 1), (64, 2)] {
        let text = host(FLASH, depth, "[vm.sql.workload]\nthreads = 300\n")
            .replace("[vm.sql]\n", &format!("[vm.sql]\ncount = {vms}\n"));
        let mut recording = sim::run(&scenario(&text), 1, &()).recordings.swap_remove(0);
        for kind in [Kind::World, Kind::VirtualDisk] {
            let of_vms: Vec<_> = recording.of_kind(kind).map(|(id, _)| id).collect();
            of_vms.into_iter().for_each(|id| recording.entity_mut(id).device = None);
        }
        let recording = Measured::of(recording);
        let answer = ask(&recording, [1, 29], DEEPER);
        assert_eq!(answer.verdict, Verdict::NoModel, "{vms} VMs: {answer:?}");
        let sentence = &answer.simulated.sentence;
        assert!(sentence.contains("is DSNRO or its own depth"), "{sentence}");
        // esxcli tells.
        if depth == 32 {
            let known = DeviceFacts {
                queue_full_sample_size: Some(0),
                max_queue_depth: Some(depth),
                dsnro: Some(32),
                ..DeviceFacts::default()
            };
            let answer = ask_knowing(known, &recording, [1, 29], DEEPER);
            assert!(!matches!(answer.verdict, Verdict::NoModel), "{answer:?}");
        }
    }
}

#[test]
fn made_up_names_leave_open_whether_devices_share_an_array() {
    // A queue of 128 that is full, cut to 16: the neighbour gains by it, or it has an array of its own.
    for other in ["one", "two"] {
        let array =
            |name: &str, ms: u32| format!("[array.{name}]\nservers = 128\nservice = \"{ms}ms\"\n");
        let device = |end: u32, array: &str, name: &str, threads: u32| {
            format!(
                "[datastore.{name}]\ndevice = \"naa.6000000000000000000000000000000{end}\"\narray = \"{array}\"\n\
                 [vm.{name}]\nguest = \"linux\"\n[vm.{name}.disk.\"scsi0:0\"]\ndatastore = \"{name}\"\n\
                 [vm.{name}.workload]\nthreads = {threads}\n"
            )
        };
        // As quick as the busy one is now.
        let second = if other == "two" { array("two", 6) } else { String::new() };
        let arrays = array("one", 3) + &second;
        let text = format!(
            "title = \"a test\"\nduration = \"30s\"\nsample = \"2s\"\n{arrays}\
             [host.esx.adapter.vmhba1]\ndriver = \"iscsi_vmk\"\nlun_depth = 128\n{}{}",
            device(1, "one", "sql", 200),
            device(2, other, "web", 2)
        );
        let line = "system module parameters set -m iscsi_vmk -p iscsivmk_LunQDepth=16";
        let recording = recorded(&scenario(&text));
        let (question, facts) =
            (question(line, (recording.times_ms[0], i64::MAX), 30_000.0), Facts::default());
        let answer = Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap();
        assert!(
            answer.simulated.doubts.iter().any(|doubt| doubt.contains("no vendor")),
            "{:?}",
            answer.simulated
        );
        let truth = recorded(&scenario(&text.replace("lun_depth = 128", "lun_depth = 16")));
        let disk = truth.find(Kind::VirtualDisk, "web:scsi0:0").unwrap();
        let own = &truth.series(disk, Counter::Commands).unwrap()[1..];
        let own = own.iter().sum::<f64>() / own.len() as f64;
        let mut rows = answer.simulated.rows.iter();
        let row = rows.find(|row| row.object == "web" && row.counter == "CMDS/s").unwrap();
        assert!(row.low <= own && own <= row.high, "{other}: {row:?}, {own}");
    }
}

/// What the last forty seconds of a host with a change come to.
fn after(text: &str, line: &str) -> f64 {
    let mut changed = scenario(text);
    changed.set(line).expect("a setting");
    rate(&recorded(&changed), [12, 29])
}

#[test]
fn a_rate_that_a_limit_keeps_still_is_no_sign_of_a_full_array() {
    // A quiet hour of quicker commands under the same limit: the rate is that of the limit in both.
    let lifted = "sql: DiskLimitIOPerSecond -1";
    let spindles = "spindles = 32\nservice = \"7ms\"\nraid = \"5\"\nround_trip = \"200us\"";
    let many = "read = \"83%\"\nsize = \"16k\"\nthreads";
    let loads =
        step(4, 42).replace("name = \"many\"\nthreads", &format!("name = \"many\"\n{many}"));
    let text = host(spindles, 32, &loads);
    let limited = text.replace("adapter = \"pvscsi\"\n", "adapter = \"pvscsi\"\nlimit = 291\n");
    assert_ne!(text, limited);
    let answer = ask(&recorded(&scenario(&limited)), [0, 29], lifted);
    let (low, high) = range(&answer);
    let truth = rate(&recorded(&scenario(&text)), [0, 29]);
    assert!(low <= truth && truth <= high, "{low} to {high}, {truth}");
    assert_eq!(answer.verdict, Verdict::CannotTell);
}

#[test]
fn a_quiet_hour_of_reads_is_no_like_load_of_one_with_an_eighth_of_writes() {
    // Behind RAID 5 a write is the work of four reads.
    let spindles = "spindles = 21\nservice = \"7308us\"\nraid = \"5\"\nround_trip = \"200us\"";
    let many = "name = \"many\"\nread = \"88%\"\nthreads";
    let text = host(spindles, 24, &step(8, 69).replace("name = \"many\"\nthreads", many));
    let recording = recorded(&scenario(&text));
    let (low, high) = range(&ask(&recording, [12, 29], &depth(6)));
    let truth = after(&text, &depth(6));
    assert!(low <= truth && truth <= high, "{low} to {high}, {truth}");
}

/// 56 threads that need no more than the driver's 64, and then 150 that do, of which 86 wait in the guest.
#[test]
fn what_waits_in_a_guest_in_a_part_of_the_time_is_no_load_that_gains_nothing() {
    let loads =
        [(8, "stop = \"20s\""), (56, "start = \"20s\"\nstop = \"40s\""), (150, "start = \"40s\"")];
    let loads = loads.map(|(threads, times)| {
        format!("[[workload]]\nvm = \"sql\"\nname = \"{threads}\"\nthreads = {threads}\n{times}\n")
    });
    let text = host("servers = 16\nservice = \"2ms\"", 128, &loads.concat());
    let text = text.replace("MaxQueueDepth=254", "MaxQueueDepth=64");
    let line = "sql: RequestRingPages=32,MaxQueueDepth=254";
    let answer = ask(&recorded(&scenario(&text)), [0, 29], line);
    let mut changed = scenario(&text);
    changed.set(line).expect("a setting");
    let after = recorded(&changed);
    let id = after.find(Kind::Device, DEVICE).expect("it is there");
    let [rates, ms] = [Counter::Commands, Counter::GuestLatency]
        .map(|counter| after.series(id, counter).expect("a column"));
    let inside: f64 = rates.iter().zip(ms).map(|(rate, ms)| rate * ms).sum();
    let truth_ms = inside / rates.iter().sum::<f64>();
    let gavg = &answer.simulated.rows[1];
    assert_eq!((gavg.object.as_str(), gavg.counter), (DEVICE, "GAVG/cmd"));
    assert!(truth_ms > 1.3 * gavg.today, "{truth_ms} {}", gavg.today);
    assert!(gavg.low <= truth_ms && truth_ms <= gavg.high, "{gavg:?}, {truth_ms}");
}
