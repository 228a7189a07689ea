//! A journal is the same at every pace, replays bit for bit, and is refused when it is damaged.

mod common;

use scenario::Scenario;
use sim::{Clock, Journal, Paced, Source, Watch, replay, run_watched};

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

fn journal_of<W: Watch>(source: &Source, scenario: &Scenario, pace: W) -> Vec<u8> {
    let journal = Journal::new(Vec::new(), source, scenario.hosts.len()).unwrap();
    let (outcome, (_, journal)) = run_watched(scenario, (pace, journal));
    journal.finish(&outcome).unwrap()
}

#[test]
fn journals_of_every_pace_are_the_same_and_replay_bit_for_bit() {
    let (source, scenario) = common::everything();
    let journal = journal_of(&source, &scenario, ());
    for speed in [1.0, 10.0, 0.5, 1e6] {
        assert!(journal == journal_of(&source, &scenario, Paced::new(OnTime(0), speed)), "{speed}");
    }
    let report = replay(&journal[..]).unwrap();
    assert_eq!(report.difference, None);
    assert_eq!(report.scenario, "everything");
    assert!(report.inputs > 10_000 && report.outputs > 10_000, "{report:?}");
}
