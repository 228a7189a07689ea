//! The journal of a run is the same at every pace, replays bit for bit, and names what differs.

mod common;

use counters::{HostSnapshot, IoTotals, Op, Status, Time, VdiskId};
use engine::{Dispatch, Engine, Input, Output, Request};
use journal::{Journal, replay};
use scenario::Scenario;
use sim::{Clock, Paced, Step, Watch, run_watched};

/// A clock that is always on time.
struct OnTime(u64);

impl Clock for OnTime {
    fn now(&mut self) -> u64 {
        self.0
    }

    fn wait_until(&mut self, at_ns: u64) {
        self.0 = self.0.max(at_ns);
    }
}

/// The journal of a run, with its hosts as they are in `built`.
fn journal_of<W: Watch>(built: &Scenario, scenario: &Scenario, pace: W) -> Vec<u8> {
    let hosts = built.hosts.iter().map(|host| &host.config);
    let journal = Journal::new(Vec::new(), &built.name, hosts).unwrap();
    let (_, (_, journal)) = run_watched(scenario, (pace, journal));
    journal.finish().unwrap()
}

#[test]
fn journals_of_every_pace_are_the_same_and_replay_bit_for_bit() {
    let scenario = common::scenario(common::EVERYTHING);
    let journal = journal_of(&scenario, &scenario, ());
    for speed in [1.0, 10.0, 0.5, 1e6] {
        assert!(
            journal == journal_of(&scenario, &scenario, Paced::new(OnTime(0), speed)),
            "{speed}"
        );
    }
    let lines = "\n".repeat(100);
    let step = Step::new(&scenario, lines.as_bytes(), Vec::new());
    assert!(journal == journal_of(&scenario, &scenario, step));
    let report = replay(&journal[..]).unwrap();
    assert_eq!((report.difference, report.cut, report.name.as_str()), (None, None, "test"));
    assert!(report.inputs > 10_000 && report.outputs > 10_000);
}

#[test]
fn settings_and_waits_in_applications_are_in_the_journal() {
    let mut source = common::source(common::EVERYTHING);
    source.settings = vec!["esx1: storage core device set -d naa.1 -O 8".into()];
    // Open arrivals wait in the application: what they submit says how long.
    source.text +=
        "[[workload]]\nvm = \"log\"\nname = \"open\"\narrival = \"poisson\"\nrate = 4000\n";
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    let journal = journal_of(&scenario, &scenario, ());
    assert_eq!(replay(&journal[..]).unwrap().difference, None);
}

#[test]
fn what_still_waits_in_an_application_at_the_end_is_no_difference() {
    let load = "arrival = \"poisson\"\nrate = 16_000\noutstanding = 1";
    let scenario = common::scenario(&common::SMALL.replace("threads = 4", load));
    let journal = journal_of(&scenario, &scenario, ());
    assert_eq!(replay(&journal[..]).unwrap().difference, None);
}

#[test]
fn times_that_wrap_round_are_no_difference() {
    let scenario = common::scenario(common::SMALL);
    let config = &scenario.hosts[0].config;
    let mut journal = Journal::new(Vec::new(), "wraps", [config]).unwrap();
    let mut engine = Engine::new(config);
    let at = Time(1 << 56);
    // Each has waited for two years: 64 bits hold 255 of them.
    for tag in 0..600 {
        let (op, bytes) = (Op::Read, 4096);
        let request = Request { vdisk: VdiskId(0), op, lba: 0, bytes, waited_ns: at.0, tag };
        let mut next = Some(Input::Submit(request));
        while let Some(input) = next.take() {
            journal.input(0, at, &input);
            engine.handle_input(at, input).unwrap();
            while let Some(output) = engine.poll_output() {
                journal.output(0, &output);
                if let Output::Dispatch(Dispatch { io, .. }) = output {
                    next = Some(Input::Done { io, status: Status::Good, array_ns: at.0 });
                }
            }
        }
    }
    engine.check().unwrap();
    let mut counters = HostSnapshot::default();
    engine.snapshot(at, &mut counters);
    journal.counted(0, &counters);
    let report = replay(&journal.finish().unwrap()[..]).unwrap();
    assert_eq!((report.inputs, report.difference), (1200, None));
    let reads = counters.vdisks[0].io[Op::Read.direction() as usize];
    assert_eq!(reads.since(&IoTotals::default()).guest_ns, at.0.wrapping_mul(600));
}

#[test]
fn the_first_difference_is_named() {
    let guest = "[vm.sql]\nguest = \"linux_old\"\nguest_driver = \"cmd_per_lun=3\"\n[vm.sql.disk";
    let lower = common::scenario(&common::SMALL.replace("[vm.sql.disk", guest));
    let journal = journal_of(&lower, &common::scenario(common::SMALL), ());
    let difference = replay(&journal[..]).unwrap().difference.unwrap();
    insta::assert_snapshot!(
        difference,
        @"esx: what comes out from output 4 on differs, after input 4 at 0 ns (Submit(Request { vdisk: VdiskId(0), op: Read, lba: 514864, bytes: 4096, waited_ns: 0, tag: 3 })); recorded were 1, the replay gave 0"
    );
}

/// A host that has nothing to do hears of the latency of a datastore that it shares, whether anybody looks on or not.
#[test]
fn a_run_is_the_same_with_a_journal_and_without() {
    let scenario = common::scenario(
        r#"
title = "An idle host"
duration = "10s"
[array.a]
servers = 2
service = "5ms"
[host.h]
count = 2
adapter.vmhba1.driver = "qlnativefc"
[datastore.ds]
congestion_threshold = "10ms"
[vm.v]
host = "h-1"
disk."scsi0:1".datastore = "ds"
workload = { threads = 64 }
"#,
    );
    let journal = Journal::new(Vec::new(), "test", scenario.hosts.iter().map(|host| &host.config));
    let (watched, _) = run_watched(&scenario, journal.unwrap());
    for threads in [1, 2] {
        let seen = sim::run(&scenario, threads, &());
        assert!(seen.log.iter().any(|line| line.host == 1), "the idle host holds back too");
        assert_eq!((&seen.log, seen.ios), (&watched.log, watched.ios), "{threads} threads");
    }
}
