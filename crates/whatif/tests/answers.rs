//! Small hosts whose answer is known, and questions that are refused in one line.

#[path = "common/asked.rs"]
mod asked;
#[path = "common/changed.rs"]
mod changed;

use asked::recorded;
use changed::changed;
use counters::{Counter, Kind, Recording};
use diagnose::{DeviceFacts, Facts};
use knobs::Line;
use levels::Measured;
use scenario::Scenario;
use whatif::{Answer, Error, Habit, Model, Question, Seen, Verdict};

/// The only device of these hosts.
const DEVICE: &str = "naa.600a098038303053743f4b5251444c41";

/// One VM on one device of 64 servers, with its depth and its workloads.
fn host(depth: u32, workloads: &str) -> String {
    format!(
        "title = \"a test\"\nduration = \"60s\"\nsample = \"2s\"\n\
         [array.flash]\nservers = 64\nservice = \"2ms\"\n\
         [host.esx.adapter.vmhba1]\ndriver = \"nfnic\"\nlun_depth = {depth}\n\
         [datastore.ds]\ndevice = \"{DEVICE}\"\n\
         [vm.sql]\nguest_driver = \"RequestRingPages=32,MaxQueueDepth=254\"\n\
         [vm.sql.disk.\"scsi0:0\"]\ndatastore = \"ds\"\nadapter = \"pvscsi\"\n{workloads}"
    )
}

const STEADY: &str = "[vm.sql.workload]\nthreads = 96\n";
const VARIED: &str = "[[workload]]\nvm = \"sql\"\nname = \"a\"\nthreads = 8\nstop = \"20s\"\n\
                      [[workload]]\nvm = \"sql\"\nname = \"b\"\nthreads = 96\nstart = \"20s\"\n";
const LIGHT: &str = "[vm.sql.workload]\narrival = \"poisson\"\nrate = 2000\n";

fn question(recording: &Recording, line: &str) -> Question {
    let window = (i64::MIN, recording.times_ms.last().copied().unwrap_or(0));
    asked::question(line, window, 50_000.0)
}

fn ask(text: &str, line: &str) -> Result<Answer, Error> {
    let recording = recorded(text);
    let question = question(&recording, line);
    Model::calibrate(&recording, &Facts::default(), &question)?.answer()
}

fn deeper(to: u32) -> String {
    format!("system module parameters set -m nfnic -p lun_queue_depth_per_path={to}")
}

/// What the same host does with a change: commands a second over the second half of the run.
fn truth(text: &str, line: &str) -> f64 {
    rate_of(&changed(text, line), Kind::Device, DEVICE)
}

fn rate_of(recording: &Recording, kind: Kind, name: &str) -> f64 {
    let id = recording.find(kind, name).expect("it is there");
    let rates = recording.series(id, Counter::Commands).expect("a column");
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// The range of commands a second of an object.
fn range(answer: &Answer, object: &str) -> (f64, f64) {
    let mut rows = answer.simulated.rows.iter();
    let row = rows.find(|row| row.object == object && row.counter == "CMDS/s");
    assert!(row.is_some(), "{:?}", answer.simulated);
    row.map(|row| (row.low, row.high)).expect("a row")
}

#[track_caller]
fn holds((low, high): (f64, f64), truth: f64) {
    // A hundredth is what chance does to the truth in a minute.
    assert!(low <= 1.01 * truth && truth <= 1.01 * high, "{low} to {high}, {truth}");
}

#[test]
fn a_load_that_varied_tells_how_the_array_goes_on() {
    let answer = ask(&host(32, VARIED), &deeper(64)).unwrap();
    let array = &answer.calibration.arrays[0];
    assert_eq!(array.seen, Seen::Knee);
    assert!(answer.calibration.mismatch_percent < 5.0, "{}", answer.calibration.mismatch_percent);
    holds(range(&answer, DEVICE), truth(&host(32, VARIED), &deeper(64)));
}

#[test]
fn a_steady_load_tells_nothing_of_the_knee_and_the_answer_says_so() {
    let answer = ask(&host(32, STEADY), &deeper(64)).unwrap();
    assert_eq!(answer.calibration.arrays[0].seen, Seen::Steady);
    assert_eq!((answer.verdict, answer.simulated.identified), (Verdict::CannotTell, false));
    let sentence = &answer.simulated.sentence;
    assert!(sentence.starts_with("The recording cannot tell"), "{sentence}");
    let (low, high) = range(&answer, DEVICE);
    let today = answer.simulated.rows[0].today;
    assert!(low < 1.05 * today && high > 1.8 * today, "{low} to {high}, {today}");
    assert!(answer.simulated.doubts[0].contains("quiet hour"), "{:?}", answer.simulated.doubts);
}

/// A quiet time of other commands, and then threads behind a full queue.
fn quiet_then_full(threads: u32) -> String {
    format!(
        "[[workload]]\nvm = \"sql\"\nname = \"quiet\"\nthreads = 4\nstop = \"20s\"\n\
         [[workload]]\nvm = \"sql\"\nname = \"load\"\nthreads = {threads}\nread = \"60%\"\n\
         size = \"16k\"\nstart = \"20s\"\n"
    )
}

#[test]
fn a_quiet_time_of_other_commands_bounds_what_a_shorter_queue_costs() {
    let shorter = format!("storage core device set -d {DEVICE} -m 8");
    let text = host(32, &quiet_then_full(96));
    let recording = recorded(&text);
    let mut question = question(&recording, &shorter);
    question.window.0 = recording.times_ms[11];
    let facts = Facts::default();
    let model = Model::calibrate(&recording, &facts, &question).unwrap();
    let answer = model.answer().unwrap();
    assert_eq!(answer.verdict, Verdict::Identified, "{:?}", answer.simulated);
    let (low, high) = range(&answer, DEVICE);
    assert!(high <= 1.25 * low, "{low} to {high}");
    let no_files = &mut |_: &str| Err("no files".to_owned());
    let mut scenario = Scenario::parse("test.toml", &text, no_files).unwrap();
    scenario.set(&shorter).unwrap();
    let after = sim::run(&scenario, 1, &()).recordings.swap_remove(0);
    let id = after.find(Kind::Device, DEVICE).unwrap();
    let rates = &after.series(id, Counter::Commands).unwrap()[12..];
    holds(range(&answer, DEVICE), rates.iter().sum::<f64>() / rates.len() as f64);
}

#[test]
fn a_quiet_time_says_no_more_of_a_load_whose_commands_are_far_larger() {
    let text = host(32, &quiet_then_full(96).replace("16k", "64k"));
    let recording = recorded(&text);
    let mut question = question(&recording, &deeper(64));
    question.window.0 = recording.times_ms[11];
    let facts = Facts::default();
    let model = Model::calibrate(&recording, &facts, &question).unwrap();
    assert_eq!(model.answer().unwrap().calibration.arrays[0].seen, Seen::Steady);
}

#[test]
fn a_light_load_gains_nothing_from_a_deeper_queue() {
    let answer = ask(&host(32, LIGHT), &deeper(64)).unwrap();
    assert_eq!((answer.verdict, answer.simulated.identified), (Verdict::GainsNothing, true));
    assert!(answer.simulated.sentence.starts_with("This gains nothing"), "{:?}", answer.simulated);
}

#[test]
fn threads_that_come_and_go_behind_a_full_queue_are_no_rate() {
    // Of the threads a tenth comes and goes: the rate is that of the queue, and stands still.
    let extra = |name: &str, on: &str, off: &str| {
        format!(
            "[[workload]]\nvm = \"sql\"\nname = \"{name}\"\nthreads = 5\non = \"{on}\"\n\
             off = \"{off}\"\n"
        )
    };
    let text = host(32, &format!("{STEADY}{}{}", extra("x", "3s", "4s"), extra("y", "5s", "2s")));
    let answer = ask(&text, &deeper(128)).unwrap();
    let (low, high) = range(&answer, DEVICE);
    holds((low, high), truth(&text, &deeper(128)));
    assert!(high > 1.5 * low && !answer.simulated.identified, "{low} to {high}");
}

fn depth(depth: u32) -> String {
    format!("storage core device set -d {DEVICE} -m {depth}")
}

/// A host of 16 slots, and the same of which half of the recording has 32.
fn tried() -> (String, String) {
    let text = host(64, "[vm.sql.workload]\nthreads = 80\nthink = \"3ms\"\n")
        .replace("duration", &format!("esxcli = \"{}\"\nduration", depth(16)));
    let tried = format!("{text}[[event]]\nat = \"30s\"\nesxcli = \"{}\"\n", depth(32));
    (text, tried)
}

#[test]
fn where_no_model_fits_a_change_that_was_tried_is_answered_with_what_was_seen() {
    let mut recording = Recording::clone(&recorded(&tried().1));
    let id = recording.find(Kind::Device, DEVICE).unwrap();
    let of = |recording: &Recording, counter| recording.series(id, counter).unwrap().to_vec();
    // The first half takes twice as long as all of its parts together.
    let mut gavg = of(&recording, Counter::GuestLatency);
    gavg[..15].iter_mut().for_each(|ms| *ms *= 2.0);
    recording.set_column(id, Counter::GuestLatency, gavg);
    let recording = Measured::of(recording);
    let window = (i64::MIN, recording.times_ms[14]);
    let facts = Facts::default();
    let ask = |line: &str| {
        let question = Question { window, ..question(&recording, line) };
        Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap()
    };
    let answer = ask(&depth(32));
    assert_eq!(answer.verdict, Verdict::Identified, "{:?}", answer.simulated);
    let after = &of(&recording, Counter::Commands)[15..];
    holds(range(&answer, DEVICE), after.iter().sum::<f64>() / after.len() as f64);
    assert_eq!(row(&answer, DEVICE, "DQLEN"), (32.0, 32.0));
    let doubt = &answer.simulated.doubts[0];
    assert!(doubt.contains("what the recording itself shows"), "{doubt}");
    // Nobody tried that.
    assert_eq!(ask(&depth(24)).verdict, Verdict::NoModel);
}

#[test]
fn a_change_that_was_tried_tells_both_the_array_and_the_guests() {
    let (text, tried) = tried();
    let recording = recorded(&tried);
    let line = depth(32);
    let window = (i64::MIN, recording.times_ms[14]);
    let question = Question { window, ..question(&recording, &line) };
    let facts = Facts::default();
    let both = Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap();
    assert_eq!(both.verdict, Verdict::Identified, "{:?}", both.simulated);
    holds(range(&both, DEVICE), truth(&text, &line));
    let before = ask(&text, &line).unwrap();
    let width = |(low, high): (f64, f64)| high / low;
    assert!(width(range(&both, DEVICE)) < width(range(&before, DEVICE)) - 0.3);
    // What was tried itself is so again: nothing here moves by more than a hundredth.
    assert!(width(range(&both, DEVICE)) < 1.06, "{:?}", both.simulated);
}

#[test]
fn less_than_today_is_in_the_range_where_the_host_may_throttle_and_the_answer_says_so() {
    let recording = recorded(&host(32, STEADY));
    let question = question(&recording, &deeper(64));
    let ask = |sample_size: Option<u32>| {
        let known = DeviceFacts { queue_full_sample_size: sample_size, ..DeviceFacts::default() };
        let facts = Facts { devices: [(DEVICE.to_owned(), known)].into(), ..Facts::default() };
        Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap()
    };
    for (sample_size, may_throttle) in [(None, true), (Some(32), true), (Some(0), false)] {
        let answer = ask(sample_size);
        let (low, _) = range(&answer, DEVICE);
        let today = answer.simulated.rows[0].captured.unwrap();
        let told = answer.simulated.doubts.iter().any(|doubt| doubt.contains("TASK SET FULL"));
        assert_eq!((low < 0.8 * today, told), (may_throttle, may_throttle), "{answer:?}");
        // Half the slots, and back by one: three quarters of them on average [KB-QF].
        assert!(low > 0.7 * today, "{low} of {today}");
    }
}

#[test]
fn an_open_load_that_waits_in_its_guest_may_wait_nowhere_behind_a_deeper_queue() {
    // Beyond the 254 of the driver what comes waits where nobody sees it; 24 slots serve 10,700 a second
    // of these, and 13,000 need 26 to 40 of 64 slots.
    let load = "[vm.sql.workload]\narrival = \"poisson\"\nrate = 13000\n";
    let text = host(24, load);
    let answer = ask(&text, &deeper(64)).unwrap();
    let no_files = &mut |_: &str| Err("no files".to_owned());
    let mut scenario = Scenario::parse("test.toml", &text, no_files).unwrap();
    scenario.set(&deeper(64)).unwrap();
    let after = sim::run(&scenario, 1, &()).recordings.swap_remove(0);
    let id = after.find(Kind::Device, DEVICE).unwrap();
    let gavg_ms = after.series(id, Counter::GuestLatency).unwrap()[20];
    let (low, high) = row(&answer, DEVICE, "GAVG/cmd");
    assert!(low <= gavg_ms && gavg_ms <= high, "{low} to {high}, {gavg_ms}");
}

#[test]
fn a_load_in_steps_that_waits_only_where_its_queue_is_full_is_held_by_no_limit() {
    let step = |name: &str, rate: u32, from: u32| {
        format!(
            "[[workload]]\nvm = \"sql\"\nname = \"{name}\"\narrival = \"poisson\"\nrate = {rate}\n\
             start = \"{from}s\"\nstop = \"{}s\"\n",
            from + 20
        )
    };
    let load = step("few", 4_000, 0) + &step("some", 8_000, 20) + &step("many", 14_000, 40);
    let answer = ask(&host(24, &load), &deeper(64)).unwrap();
    let guest = &answer.calibration.devices[0].guests[0];
    assert_eq!(guest.held_at_iops, None, "{guest:?}");
    holds(range(&answer, DEVICE), truth(&host(24, &load), &deeper(64)));
}

/// The host with a second VM on another device of the same array.
fn neighbours() -> String {
    let other = "naa.600a098038303053743f4b5251444c42";
    host(16, VARIED).replace("threads = 96", "threads = 64")
        + &format!(
            "[datastore.other]\ndevice = \"{other}\"\n[vm.web.disk.\"scsi0:0\"]\n\
             datastore = \"other\"\n[vm.web.workload]\nthreads = 12\n"
        )
}

#[test]
fn what_a_change_takes_from_the_neighbours_of_an_array_is_part_of_the_answer() {
    let text = neighbours();
    let line = format!("storage core device set -d {DEVICE} -m 4");
    let answer = ask(&text, &line).unwrap();
    assert_eq!(answer.calibration.arrays.len(), 1);
    assert_eq!(answer.calibration.arrays[0].devices.len(), 2);
    let no_files = &mut |_: &str| Err("no files".to_owned());
    let mut scenario = Scenario::parse("test.toml", &text, no_files).unwrap();
    scenario.set(&line).unwrap();
    let changed = sim::run(&scenario, 1, &()).recordings.swap_remove(0);
    for vm in ["sql", "web"] {
        let id = changed.find(Kind::Vm, vm).unwrap();
        let disks = changed.of_kind(Kind::VirtualDisk).filter(|(_, disk)| disk.vm == Some(id));
        let rate: f64 = disks
            .map(|(disk, _)| changed.series(disk, Counter::Commands).unwrap())
            .map(|rates| rates.iter().sum::<f64>() / rates.len() as f64)
            .sum();
        holds(range(&answer, vm), rate);
    }
    assert!(answer.simulated.sentence.contains("VMs that lose commands: sql"), "{answer:?}");
}

#[test]
fn who_keeps_its_number_while_a_neighbour_comes_waits_for_its_answers() {
    let recording = recorded(&neighbours());
    let mut question = question(&recording, &format!("storage core device set -d {DEVICE} -m 4"));
    question.window.0 = recording.times_ms[11];
    let answer = Model::calibrate(&recording, &Facts::default(), &question).unwrap().answer();
    let web = &answer.unwrap().calibration.devices[1].guests[0];
    assert_eq!((&*web.vm, web.habit), ("web", Habit::Closed), "{web:?}");
}

#[test]
fn a_small_step_of_the_load_tells_how_latency_goes() {
    let text = host(24, VARIED).replace("threads = 8", "threads = 20");
    let shorter = format!("storage core device set -d {DEVICE} -m 12");
    let answer = ask(&text, &shorter).unwrap();
    let (low, high) = range(&answer, DEVICE);
    assert!(high < 0.8 * answer.simulated.rows[0].today, "{:?}", answer.simulated);
    holds((low, high), truth(&text, &shorter));
}

#[test]
fn a_depth_that_is_set_is_no_range() {
    let answer =
        ask(&host(16, VARIED), &format!("storage core device set -d {DEVICE} -m 12")).unwrap();
    let row = answer.simulated.rows.iter().find(|row| row.counter == "DQLEN").unwrap();
    assert_eq!((row.low, row.high), (12.0, 12.0), "{row:?}");
}

#[test]
fn commands_that_wait_for_reservations_of_other_hosts_have_no_model() {
    let locks = "[datastore.ds]\nmetadata = { rate = 8, lock = \"scsi2\" }\n";
    let text = host(32, STEADY)
        .replace("[host.esx.adapter", "[host.esx]\ncount = 2\n[host.esx.adapter")
        .replace("[datastore.ds]\n", locks)
        .replace("[vm.sql]\n", "[vm.sql]\nhost = \"esx-1\"\n");
    let answer = ask(&text, &depth(16)).unwrap();
    assert_eq!((answer.verdict, answer.simulated.rows.len()), (Verdict::NoModel, 0));
    let sentence = &answer.simulated.sentence;
    assert!(sentence.contains("meet SCSI reservations of other hosts"), "{sentence}");
}

#[test]
fn a_limit_that_throttling_never_comes_to_gains_nothing() {
    let throttled = format!(
        "\n[[event]]\nat = \"0s\"\nesxcli = \"storage core device set -d {DEVICE} -s 32 -q 4\"\n"
    );
    let text = host(64, STEADY).replacen("[array.flash]\n", "[array.flash]\nqueue_limit = 24\n", 1);
    let line = format!("storage core device set -d {DEVICE} -m 64");
    let answer = ask(&(text + &throttled), &line).unwrap();
    assert_eq!(answer.verdict, Verdict::GainsNothing, "{answer:?}");
    assert!(answer.simulated.doubts[0].contains("never let it come to the limit"), "{answer:?}");
}

#[test]
fn two_arrays_that_give_one_recording_differ_fourfold_at_another_depth() {
    let arrays = ["512ms", "2ms"].map(|end| {
        let curve = format!("curve = [[1, \"2ms\"], [16, \"2ms\"], [4096, \"{end}\"]]");
        host(16, STEADY).replace("servers = 64\nservice = \"2ms\"", &curve)
    });
    let [one, other] = arrays.each_ref().map(|text| recorded(text));
    assert_eq!(one.len(), other.len());
    // Every counter of every object in every sample; NaN stands for a latency without commands.
    let is_same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
    for ((id, counter, a), (other_id, other_counter, b)) in one.columns().zip(other.columns()) {
        assert_eq!((id, counter), (other_id, other_counter));
        assert!(a.iter().zip(b).all(is_same), "{counter:?} of {}", one.entity(id).name);
    }
    let [few, many] = arrays.each_ref().map(|text| truth(text, &deeper(64)));
    assert!(many > 3.5 * few, "{few} and {many}");
    let answer = ask(&arrays[0], &deeper(64)).unwrap();
    assert_eq!(answer.verdict, Verdict::CannotTell);
    for rate in [few, many] {
        holds(range(&answer, DEVICE), rate);
    }
}

#[test]
fn it_can_be_said_that_a_device_has_its_array_alone() {
    let recording = recorded(&neighbours());
    let line = format!("storage core device set -d {DEVICE} -m 4");
    let arrays = vec![vec![DEVICE.to_owned()]];
    let question = Question { arrays, ..question(&recording, &line) };
    let facts = Facts::default();
    let answer = Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap();
    assert_eq!(answer.calibration.devices.len(), 1);
    assert!(answer.simulated.rows.iter().all(|row| row.object != "web"));
}

#[test]
fn where_today_does_not_come_out_there_is_no_after() {
    let mut recording = Recording::clone(&recorded(&host(32, VARIED)));
    let id = recording.find(Kind::Device, DEVICE).unwrap();
    let doubled = recording.series(id, Counter::Commands).unwrap().iter().map(|n| 2.0 * n);
    let doubled = doubled.collect();
    recording.set_column(id, Counter::Commands, doubled);
    let recording = Measured::of(recording);
    let question = question(&recording, &deeper(64));
    let facts = Facts::default();
    let answer = Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap();
    assert_eq!((answer.verdict, answer.simulated.rows.len()), (Verdict::NoModel, 0));
    let sentence = &answer.simulated.sentence;
    assert!(sentence.starts_with("No model of this host gives what was recorded"), "{sentence}");
}

#[test]
fn a_limit_that_is_lifted_lets_a_guest_have_what_it_keeps_outstanding() {
    let limited = host(32, "[vm.sql.workload]\nthreads = 16\n")
        .replace("adapter = \"pvscsi\"", "adapter = \"pvscsi\"\nlimit = 1000");
    let answer = ask(&limited, "sql: DiskLimitIOPerSecond -1").unwrap();
    assert_eq!(answer.calibration.devices[0].guests[0].held_at_iops, Some(1000));
    // S * (1 + (16 - 1) / 64) is 2.47 ms: 16 are answered 6,480 times a second.
    holds(range(&answer, DEVICE), 6_480.0);
    let answer = ask(&limited, "sql: DiskLimitIOPerSecond 500").unwrap();
    holds(range(&answer, DEVICE), 500.0);
}

#[test]
fn a_recording_of_a_few_commands_at_a_time_says_nothing_of_many() {
    for (threads, limit) in [(30, 2000), (10, 2050), (64, 2000), (30, 2500), (30, 10_000)] {
        let free = host(64, &format!("[vm.sql.workload]\nthreads = {threads}\n"))
            .replace("service = \"2ms\"", "service = \"0.9ms\"\nround_trip = \"0.1ms\"");
        let adapter = "adapter = \"pvscsi\"";
        let limited = free.replace(adapter, &format!("{adapter}\nlimit = {limit}"));
        let answer = ask(&limited, "sql: DiskLimitIOPerSecond -1").unwrap();
        assert_eq!(answer.verdict, Verdict::CannotTell, "{threads}, {limit}: {answer:?}");
        holds(range(&answer, "sql"), rate_of(&recorded(&free), Kind::Device, DEVICE));
        holds(range(&answer, "sql"), f64::from(limit));
    }
}

#[test]
fn what_is_set_already_changes_nothing_and_the_answer_says_so() {
    for line in [
        deeper(32),
        format!("storage core device set -d {DEVICE} -O 32"),
        format!("storage core device set -d {DEVICE} -m 32"),
        "system settings advanced set -o /Disk/SchedQuantum -i 8".into(),
    ] {
        let answer = ask(&host(32, VARIED), &line).unwrap();
        assert_eq!(answer.verdict, Verdict::GainsNothing, "{line}: {answer:?}");
        assert!(answer.simulated.sentence.contains("it is set so already"), "{line}: {answer:?}");
        let rate = answer.simulated.rows[0].captured.unwrap();
        holds(range(&answer, DEVICE), rate);
    }
}

#[test]
fn one_question_has_one_answer() {
    let ask = || ask(&host(32, VARIED), &deeper(96)).unwrap();
    assert_eq!(ask(), ask());
}

#[test]
fn the_model_is_a_scenario_that_says_where_its_numbers_come_from() {
    let recording = recorded(&host(32, VARIED));
    let question = question(&recording, &deeper(64));
    let facts = Facts::default();
    let text = Model::calibrate(&recording, &facts, &question).unwrap().scenario();
    let no_files = &mut |_: &str| Err("no files".to_owned());
    Scenario::parse("model.toml", &text, no_files).unwrap();
    for part in
        [DEVICE, "lun_depth = 32", "# CMDS/s times GAVG", "# assumed", "latency rose", "curve = "]
    {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn bad_questions_have_one_clear_line() {
    let cases = [
        (
            "storage core device set -d naa.2 -O 64",
            "no device `naa.2` in this recording; there are",
        ),
        ("storage core device set -d", "needs a value"),
        ("storage core device set -o 64", "in upper case"),
        ("system module parameters set -m nfnic -p lun_queue_depth_per_path=9999", "1 to 1024"),
        (
            "web: RequestRingPages=32,MaxQueueDepth=254",
            "no VM `web` in this recording; there are: sql",
        ),
        ("sql: RequestRingPages=32,MaxQueueDepth=999", "out of range"),
        ("sql: DiskLimitIOPerSecond 0", "it is -1 (none) or 1 to 2147483647"),
        ("web: DiskLimitIOPerSecond 5", "no VM `web` in this recording; there are: sql"),
        ("reboot", "command"),
    ];
    for (line, expected) in cases {
        let error = match line.parse::<Line>() {
            Ok(_) => ask(&host(32, STEADY), line).unwrap_err().to_string(),
            Err(refusal) => refusal.to_string(),
        };
        assert!(error.contains(expected) && !error.contains('\n'), "{line}: {error}");
    }
}

#[test]
fn an_idle_host_and_an_empty_window_have_one_clear_line() {
    let idle = host(32, "");
    let error = ask(&idle, &deeper(64)).unwrap_err().to_string();
    assert_eq!(error, "no device has load in this window: there is nothing to simulate");
    let recording = recorded(&host(32, STEADY));
    let facts = Facts::default();
    for (window, device, expected) in [
        ((0, 1), None, "esx: no sample ends in the window; the recording has 30"),
        ((i64::MIN, i64::MAX), Some("naa.9"), "no device `naa.9` in this recording"),
    ] {
        let device = device.map(str::to_owned);
        let question = Question { window, device, ..question(&recording, &deeper(64)) };
        let error = Model::calibrate(&recording, &facts, &question).err().unwrap().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// The rows of a counter of an object.
fn row(answer: &Answer, object: &str, counter: &str) -> (f64, f64) {
    let mut rows = answer.simulated.rows.iter();
    let row = rows.find(|row| row.object == object && row.counter == counter);
    row.map(|row| (row.low, row.high)).unwrap_or_else(|| panic!("{:?}", answer.simulated))
}

/// Three VMs of 24 threads that rest for a second of three: in samples of 5 s no queue is full.
fn bursts() -> String {
    let vms: String = ["a", "b", "c"]
        .iter()
        .map(|vm| {
            format!(
                "[vm.{vm}]\nguest = \"windows\"\n[vm.{vm}.disk.\"scsi0:1\"]\ndatastore = \"ds\"\n\
                 [vm.{vm}.workload]\nthreads = 24\nthink = \"1ms\"\non = \"2s\"\noff = \"1s\"\n\
                 size = \"8k\"\n"
            )
        })
        .collect();
    format!(
        "title = \"a test\"\nduration = \"60s\"\nwarmup = \"5s\"\nsample = \"5s\"\n\
         [array.flash]\nservers = 128\nservice = \"0.5ms\"\nround_trip = \"0.1ms\"\n\
         [host.esx.adapter.vmhba1]\ndriver = \"lpfc\"\nlun_depth = 128\n\
         [datastore.ds]\ndevice = \"{DEVICE}\"\n{vms}"
    )
}

#[test]
fn bursts_shorter_than_a_sample_make_no_shorter_queue_harmless() {
    let line = format!("storage core device set -d {DEVICE} -O 16");
    let answer = ask(&bursts(), &line).unwrap();
    assert!(!answer.simulated.identified, "{:?}", answer.simulated);
    // 16 slots are answered in 0.6 ms, two thirds of the time: 17,800 a second.
    let rate = 16.0 / 0.6e-3 * 2.0 / 3.0;
    holds(range(&answer, DEVICE), rate);
    // By Little's law three disks of 254 wait no longer than that.
    let (_, high) = row(&answer, DEVICE, "GAVG/cmd");
    let (least, _) = range(&answer, DEVICE);
    assert!(high <= 1.01 * 3.0 * 254.0 / least * 1000.0, "{high} at {least}");
    let ((_, active), (_, slots)) = (row(&answer, DEVICE, "ACTV"), row(&answer, DEVICE, "DQLEN"));
    assert!(active <= slots, "{active} of {slots}");
}

#[test]
fn bursts_in_step_with_the_samples_are_no_limit() {
    // Every sample ends between two bursts, or within one: ACTV is always 0, or always 32.
    for start in ["0s", "1.8s"] {
        let workload = format!(
            "[[workload]]\nvm = \"sql\"\nname = \"batch\"\nthreads = 200\non = \"300ms\"\n\
             off = \"1700ms\"\nstart = \"{start}\"\n"
        );
        let host = host(32, &workload);
        holds(range(&ask(&host, &deeper(128)).unwrap(), DEVICE), truth(&host, &deeper(128)));
    }
}

#[test]
fn a_low_limit_leaves_latencies_that_were_measured() {
    // 160 threads before 16 servers of 0.4 ms: alone a command takes 0.4 ms.
    let text = host(254, "[vm.sql.workload]\nthreads = 160\n")
        .replace("servers = 64\nservice = \"2ms\"", "servers = 16\nservice = \"0.4ms\"");
    for limit in [5, 20, 500] {
        let answer = ask(&text, &format!("sql: DiskLimitIOPerSecond {limit}")).unwrap();
        holds(range(&answer, "sql"), f64::from(limit));
        let (low, high) = row(&answer, DEVICE, "DAVG/cmd");
        assert!(0.0 < low && low <= 0.4 && high >= 0.4, "{limit}: {low} to {high}");
        // Little: 160 wait for one after the other.
        let (low, high) = row(&answer, "sql", "GAVG/cmd");
        let gavg_ms = 160_000.0 / f64::from(limit);
        assert!(low <= gavg_ms && high >= gavg_ms, "{limit}: {low} to {high}");
    }
    // At one a second 160 of them take minutes: no guest waits so long, and the answer says so.
    let answer = ask(&text, "sql: DiskLimitIOPerSecond 1").unwrap();
    for object in ["sql", DEVICE] {
        holds(range(&answer, object), 1.0);
        let (low, high) = row(&answer, object, "GAVG/cmd");
        assert!(low <= 160_000.0 && high >= 160_000.0, "{low} to {high}");
    }
    let gives_up = |doubt: &String| doubt.contains("sql may give up");
    assert!(answer.simulated.doubts.iter().any(gives_up), "{:?}", answer.simulated.doubts);
}

#[test]
fn a_vm_among_busy_ones_does_just_the_limit_that_is_put_on_it() {
    // Three VMs of 9,000 a second from 16 threads each.
    let vms: String = ["a", "b", "c"]
        .iter()
        .map(|vm| {
            format!(
                "[vm.{vm}]\nguest = \"windows\"\n[vm.{vm}.disk.\"scsi0:1\"]\ndatastore = \"ds\"\n\
                 [vm.{vm}.workload]\nthreads = 16\nthink = \"500us\"\nrate = 9000\nsize = \"SIZE\"\n"
            )
        })
        .collect();
    let text = format!(
        "title = \"a test\"\nduration = \"60s\"\nwarmup = \"5s\"\nsample = \"5s\"\n\
         [array.flash]\nservers = 128\nservice = \"0.5ms\"\nround_trip = \"0.1ms\"\n\
         [host.esx.adapter.vmhba1]\ndriver = \"lpfc\"\nlun_depth = 64\n\
         [datastore.ds]\ndevice = \"{DEVICE}\"\n{vms}"
    );
    // A command of 64 KiB counts as two [LAMW].
    for (size, limit, rate) in [("8k", 1, 1.0), ("8k", 5, 5.0), ("64k", 4, 2.0), ("8k", 50, 50.0)] {
        let text = text.replace("SIZE", size);
        let answer = ask(&text, &format!("a: DiskLimitIOPerSecond {limit}")).unwrap();
        let (low, high) = range(&answer, "a");
        assert!(low <= rate && rate <= high && high <= 1.1 * low, "{limit}: {low} to {high}");
        // 16 threads wait for it.
        let (low, high) = row(&answer, "a", "GAVG/cmd");
        let gavg_ms = 16_000.0 / rate;
        assert!(low <= gavg_ms && high >= gavg_ms, "{limit}: {low} to {high}, {gavg_ms}");
        // The others do 18,000 as before, and all wait for 16 more in a second.
        holds(range(&answer, DEVICE), 18_000.0 + rate);
        let (low, high) = row(&answer, DEVICE, "KAVG/cmd");
        assert!(low <= 16.0 / 18.0 && high >= 16.0 / 18.0, "{limit}: {low} to {high}");
        let (low, high) = row(&answer, DEVICE, "GAVG/cmd");
        let gavg_ms = 16.0 / 18.0 + 0.6;
        assert!(low <= gavg_ms && high >= gavg_ms, "{limit}: {low} to {high}");
    }
}

#[test]
fn a_limit_that_is_lifted_is_answered_for_its_vm() {
    let other = "[vm.web.disk.\"scsi0:0\"]\ndatastore = \"ds\"\n[vm.web.workload]\nthreads = 8\n";
    let text = host(32, &format!("[vm.sql.workload]\nthreads = 16\n{other}")).replacen(
        "adapter = \"pvscsi\"",
        "adapter = \"pvscsi\"\nlimit = 1000",
        1,
    );
    let answer = ask(&text, "sql: DiskLimitIOPerSecond -1").unwrap();
    assert!(answer.simulated.sentence.contains("sql does "), "{:?}", answer.simulated);
    // 24 are answered in S * (1 + 23 / 64) = 2.72 ms.
    holds(range(&answer, "sql"), 16.0 / 2.72e-3);
    let answer = ask(&text, "web: DiskLimitIOPerSecond -1").unwrap();
    assert!(answer.simulated.sentence.starts_with("This gains nothing: web"), "{answer:?}");
}

#[test]
fn half_of_the_last_digit_that_esxtop_prints_is_no_miss() {
    // 0.044 ms at the array and 0.004 ms in the VMkernel are 0.048 ms; printed, 0.04, 0.00 and 0.05.
    let mut recording = Recording::clone(&recorded(&host(32, LIGHT)));
    let printed = [
        (Counter::DriverLatency, 0.04),
        (Counter::KernelLatency, 0.0),
        (Counter::QueueLatency, 0.0),
        (Counter::GuestLatency, 0.05),
        (Counter::VdiskReadLatency, 0.05),
    ];
    for kind in [Kind::Device, Kind::World, Kind::VirtualDisk] {
        let ids: Vec<_> = recording.of_kind(kind).map(|(id, _)| id).collect();
        for (id, (counter, ms)) in ids.iter().flat_map(|&id| printed.map(|of| (id, of))) {
            if recording.series(id, counter).is_some() {
                recording.set_column(id, counter, vec![ms; recording.len()]);
            }
        }
    }
    let recording = Measured::of(recording);
    let question = question(&recording, &deeper(64));
    let facts = Facts::default();
    let answer = Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap();
    assert_ne!(answer.verdict, Verdict::NoModel, "{answer:?}");
    holds(range(&answer, DEVICE), 2_000.0);
}

#[test]
fn a_wait_behind_a_full_queue_may_be_that_for_a_limit() {
    // Five threads beside a guest that fills 16 slots: without its limit `a` does a little more.
    let vm = |name: &str, limit: &str, load: &str| {
        format!(
            "[vm.{name}]\nguest_driver = \"RequestRingPages=32,MaxQueueDepth=64\"\n\
             [vm.{name}.disk.\"scsi0:0\"]\ndatastore = \"ds\"\nadapter = \"pvscsi\"\n{limit}\
             [[workload]]\nvm = \"{name}\"\nname = \"load\"\nstart = \"8s\"\nread = \"72%\"\nsize = \"8k\"\n{load}\n"
        )
    };
    let text = |limit: &str| {
        format!(
            "title = \"a test\"\nduration = \"26s\"\nseed = 14\nsample = \"2s\"\n\
             [array.flash]\nservers = 132\nservice = \"738us\"\nspread = \"constant\"\n\
             link = \"1538MB/s\"\nround_trip = \"80us\"\n\
             [host.esx.adapter.vmhba1]\ndriver = \"qlnativefc\"\nlun_depth = 128\n\
             [datastore.ds]\ndevice = \"{DEVICE}\"\ndsnro = 16\n{}{}[[workload]]\nvm = \"a\"\n\
             name = \"quiet\"\nthreads = 1\nstop = \"8s\"\n",
            vm("a", limit, "threads = 5"),
            vm("b", "", "arrival = \"poisson\"\nrate = 132286")
        )
    };
    let recording = recorded(&text("limit = 4950\n"));
    let mut question = question(&recording, "a: DiskLimitIOPerSecond -1");
    question.window.0 = recording.times_ms[3];
    let facts = Facts::default();
    let answer = Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap();
    assert_ne!(answer.verdict, Verdict::GainsNothing, "{answer:?}");
    let free = recorded(&text(""));
    for name in ["a", "b"] {
        let disk = free.find(Kind::VirtualDisk, &format!("{name}:scsi0:0")).unwrap();
        let rates = &free.series(disk, Counter::Commands).unwrap()[4..];
        holds(range(&answer, name), rates.iter().sum::<f64>() / rates.len() as f64);
    }
}

/// A closed guest of commands of that size beside a quiet one, with the printed MB/s off by as much as
/// its last digit may be.
fn sized(size: &str, off_mib_per_s: f64) -> Measured {
    let other = "[vm.web.disk.\"scsi0:0\"]\ndatastore = \"ds\"\n[vm.web.workload]\nthreads = 1\n";
    let load = format!("[vm.sql.workload]\nthreads = 16\nread = \"100%\"\nsize = {size}\n{other}");
    let mut recording = Recording::clone(&recorded(&host(32, &load)));
    for kind in [Kind::Device, Kind::World, Kind::VirtualDisk] {
        let ids: Vec<_> = recording.of_kind(kind).map(|(id, _)| id).collect();
        for id in ids {
            if let Some(column) = recording.series(id, Counter::MbRead) {
                let column = column.iter().map(|mib| mib + off_mib_per_s).collect();
                recording.set_column(id, Counter::MbRead, column);
            }
        }
    }
    Measured::of(recording)
}

#[test]
fn a_command_counts_whole_cost_units_whatever_the_last_digit_of_its_bytes_says() {
    // 32 KiB are one, 64 KiB two, 33 KiB two [LAMW].
    for (size, units) in [("\"32k\"", 1.0), ("\"64k\"", 2.0), ("\"33k\"", 2.0)] {
        for off in [-0.005, 0.0, 0.005] {
            let recording = sized(size, off);
            let question = question(&recording, "sql: DiskLimitIOPerSecond 2000");
            let facts = Facts::default();
            let answer = Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap();
            let ((low, high), rate) = (range(&answer, "sql"), 2_000.0 / units);
            assert!(low <= rate && (rate..=1.0001 * rate).contains(&high), "{size}: {low}, {high}");
            let says_why = answer.simulated.sentence.contains("KiB of a command count as one");
            assert_eq!(says_why, units > 1.0, "{size}: {:?}", answer.simulated);
            // The device does what its VMs do.
            let (device, web) = (range(&answer, DEVICE), range(&answer, "web"));
            assert!(device.0 <= high + web.1 && low + web.0 <= device.1, "{:?}", answer.simulated);
        }
    }
}

#[test]
fn a_mean_size_leaves_open_what_commands_of_several_sizes_count() {
    // Half of 8 KiB, which counts one, and half of 64 KiB, which counts two.
    let recording = sized("{ 8k = 1, 64k = 1 }", 0.0);
    let question = question(&recording, "sql: DiskLimitIOPerSecond 3000");
    let facts = Facts::default();
    let answer = Model::calibrate(&recording, &facts, &question).unwrap().answer().unwrap();
    holds(range(&answer, "sql"), 3_000.0 / 1.5);
    let is_said = |doubt: &String| doubt.contains("count as one") && doubt.contains("sql");
    assert!(answer.simulated.doubts.iter().any(is_said), "{:?}", answer.simulated.doubts);
}

#[test]
fn a_rate_that_something_holds_is_not_taken_for_that_of_its_guest() {
    // QoS holds the volume to 300 a second, and 16 threads wait for it: 16 / 300 s each.
    let text = host(64, "[vm.sql.workload]\nthreads = 16\n")
        .replace("[host", "[array.flash.qos.p]\nmax = 300\n[host")
        .replace("[vm.sql]", "qos = \"p\"\n[vm.sql]");
    let answer = ask(&text, &format!("storage core device set -d {DEVICE} -m 8")).unwrap();
    assert_ne!(answer.calibration.devices[0].guests[0].habit, whatif::Habit::Open);
    holds(range(&answer, DEVICE), 300.0);
    let (low, high) = row(&answer, DEVICE, "GAVG/cmd");
    assert!(low <= 53.4 && 53.3 <= high, "{low} to {high}");
}

#[test]
fn what_pieces_cost_is_not_modelled_and_the_answer_says_so() {
    let text = host(64, "[vm.sql.workload]\nthreads = 16\nsize = \"512k\"\n")
        .replace("driver = \"nfnic\"\nlun_depth = 64", "driver = \"iscsi_vmk\"");
    let answer = ask(&text, "system settings advanced set -o /ISCSI/MaxIoSizeKB -i 512").unwrap();
    assert_eq!(answer.verdict, Verdict::NoModel, "{:?}", answer.simulated);
    assert!(answer.simulated.sentence.contains("not modelled"), "{:?}", answer.simulated);
}
