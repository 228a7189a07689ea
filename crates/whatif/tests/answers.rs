//! Small hosts whose answer is known, and questions that are refused in one line.

use counters::Recording;
use diagnose::Facts;
use scenario::Scenario;
use whatif::{Answer, Error, Habit, Model, Question, Seen};

/// The only device of these hosts.
const DEVICE: &str = "naa.60000000000000000000000000000001";

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

fn recorded(text: &str) -> Recording {
    let no_files = &mut |_: &str| Err("no files".to_owned());
    let scenario = Scenario::parse("test.toml", text, no_files).expect("a scenario");
    sim::run(&scenario, 1, &()).recordings.swap_remove(0)
}

fn question(recording: &Recording, line: &str) -> Question {
    let window = (i64::MIN, recording.times_ms.last().copied().unwrap_or(0));
    Question { settings: vec![line.into()], window, device: None, commands: 100_000.0 }
}

fn ask(text: &str, line: &str) -> Result<Answer, Error> {
    let recording = recorded(text);
    let question = question(&recording, line);
    Model::calibrate(&recording, &Facts::default(), &question)?.answer()
}

fn deeper(to: u32) -> String {
    format!("system module parameters set -m nfnic -p lun_queue_depth_per_path={to}")
}

#[test]
fn a_load_that_varied_tells_both_numbers_of_the_array() {
    let answer = ask(&host(32, VARIED), &deeper(64)).unwrap();
    let array = &answer.calibration.devices[0].array;
    assert_eq!(array.seen, Seen::Knee);
    assert!((50..=80).contains(&array.best.servers), "{array:?}");
    assert!((1.8..=2.2).contains(&array.best.service_ms), "{array:?}");
    assert_eq!(answer.calibration.devices[0].guests[0].habit, Habit::Closed);
    assert!(answer.calibration.mismatch_percent < 5.0, "{}", answer.calibration.mismatch_percent);
    assert!(answer.simulated.identified, "{:?}", answer.simulated);
    // 32 of 64 servers' commands become 64: (N/S) n / (N + n - 1), two thirds of the time.
    let rate = &answer.simulated.rows[0];
    assert_eq!((rate.object.as_str(), rate.counter), (DEVICE, "CMDS/s"));
    let after = (3_600.0 + 2.0 * 16_126.0) / 3.0;
    assert!(rate.low <= 1.05 * after && rate.high >= 0.95 * after, "{rate:?}, {after}");
}

#[test]
fn a_steady_load_tells_nothing_of_the_knee_and_the_answer_says_so() {
    let answer = ask(&host(32, STEADY), &deeper(64)).unwrap();
    assert_eq!(answer.calibration.devices[0].array.seen, Seen::Steady);
    assert!(!answer.simulated.identified);
    let sentence = &answer.simulated.sentence;
    assert!(sentence.starts_with("The recording cannot tell"), "{sentence}");
    let rate = &answer.simulated.rows[0];
    assert!(rate.low < 1.1 * rate.today && rate.high > 1.8 * rate.today, "{rate:?}");
    assert!(answer.simulated.doubts[0].contains("quiet hour"), "{:?}", answer.simulated.doubts);
}

#[test]
fn a_light_load_gains_nothing_from_a_deeper_queue() {
    let answer = ask(&host(32, LIGHT), &deeper(64)).unwrap();
    assert_eq!(answer.calibration.devices[0].guests[0].habit, Habit::Open);
    assert!(
        answer.simulated.sentence.starts_with("This changes nothing"),
        "{:?}",
        answer.simulated
    );
}

#[test]
fn a_limit_that_is_lifted_lets_a_guest_have_what_it_keeps_outstanding() {
    let limited = host(32, "[vm.sql.workload]\nthreads = 16\n")
        .replace("adapter = \"pvscsi\"", "adapter = \"pvscsi\"\nlimit = 1000");
    let answer = ask(&limited, "sql: DiskLimitIOPerSecond -1").unwrap();
    assert_eq!(answer.calibration.devices[0].guests[0].held_at_iops, Some(1000));
    let [rate, latency] = &answer.simulated.rows[..2] else { panic!("{:?}", answer.simulated) };
    // S * (1 + (16 - 1) / 64) is 2.47 ms: 16 are answered 6,480 times a second.
    assert!((rate.today - 1000.0).abs() < 20.0 && rate.high >= 6_300.0, "{rate:?}");
    assert!(latency.captured > Some(15.0) && latency.low < 2.6, "{latency:?}");
    let answer = ask(&limited, "sql: DiskLimitIOPerSecond 500").unwrap();
    assert!((answer.simulated.rows[0].high - 500.0).abs() < 10.0, "{:?}", answer.simulated);
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
    for part in [DEVICE, "lun_depth = 32", "# CMDS/s times GAVG", "# assumed", "latency rose"] {
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
        let error = ask(&host(32, STEADY), line).unwrap_err().to_string();
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
