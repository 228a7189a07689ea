//! A journal is the same at every pace, replays bit for bit, and is refused when it is damaged.

mod common;

use std::sync::LazyLock;

use proptest::prelude::*;
use scenario::Scenario;
use sim::{Clock, Error, Journal, Paced, Source, Step, Watch, replay, run_watched};

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
    let source = common::source(common::EVERYTHING);
    let scenario = common::scenario(common::EVERYTHING);
    let journal = journal_of(&source, &scenario, ());
    for speed in [1.0, 10.0, 0.5, 1e6] {
        assert!(journal == journal_of(&source, &scenario, Paced::new(OnTime(0), speed)), "{speed}");
    }
    let lines = "\n".repeat(100);
    let step = Step::new(&scenario, lines.as_bytes(), Vec::new());
    assert!(journal == journal_of(&source, &scenario, step));
    let report = replay(&journal[..]).unwrap();
    assert_eq!(report.difference, None);
    assert_eq!(report.scenario, "test");
    assert!(report.inputs > 10_000 && report.outputs > 10_000, "{report:?}");
}

#[test]
fn settings_and_parameter_files_are_in_the_journal() {
    let mut source = common::source(common::EVERYTHING);
    source.settings = vec!["esx1: storage core device set -d naa.1 -O 8".into()];
    source.text += "\n[[workload]]\nvm = \"log\"\nname = \"more\"\nfio = \"more.fio\"\n";
    // Open arrivals wait in the application: what they submit says how long.
    source.text +=
        "[[workload]]\nvm = \"log\"\nname = \"open\"\narrival = \"poisson\"\nrate = 4000\n";
    source.includes = vec![("more.fio".into(), "[more]\nbs=4k\nrw=randread\niodepth=4\n".into())];
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    let journal = journal_of(&source, &scenario, ());
    assert_eq!(replay(&journal[..]).unwrap().difference, None);
}

/// The journal of a short run.
static SHORT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    journal_of(&common::source(common::SMALL), &common::scenario(common::SMALL), ())
});

#[test]
fn the_first_difference_is_named() {
    let guest = "[vm.sql]\nguest = \"linux_old\"\nguest_driver = \"cmd_per_lun=3\"\n[vm.sql.disk";
    let lower = common::source(&common::SMALL.replace("[vm.sql.disk", guest));
    let journal = journal_of(&lower, &common::scenario(common::SMALL), ());
    let difference = replay(&journal[..]).unwrap().difference.unwrap();
    insta::assert_snapshot!(
        difference,
        @"esx: output 4 differs, polled after input 4 at 0 ns (Submit(Request { vdisk: VdiskId(0), op: Read, lba: 514864, bytes: 4096, waited_ns: 0, tag: 3 })); the replay gave none"
    );
}

#[test]
fn a_cut_journal_is_refused_wherever_it_is_cut() {
    for length in 0..SHORT.len() {
        let error = replay(&SHORT[..length]).unwrap_err();
        let is_right = match error {
            Error::NotAJournal => length < 9,
            Error::JournalCut { at } => at == length as u64,
            _ => false,
        };
        assert!(is_right && !error.to_string().contains('\n'), "{length}: {error}");
    }
}

#[test]
fn what_is_no_journal_is_refused_in_one_line() {
    let mut newer = SHORT.clone();
    newer[8] = 3;
    let longer = [SHORT.as_slice(), &[0]].concat();
    let doubled = [SHORT.as_slice(), &SHORT[9..]].concat();
    let cases: [(&[u8], &str); 5] = [
        (b"", "this is no journal of kavg"),
        (b"[array.fast]\nservers = 4\n", "this is no journal of kavg"),
        (&newer, "the journal has version 3 of the format; allowed is 2"),
        (&longer, "the journal is cut: it ends at byte "),
        (&doubled, "the journal is damaged in the block at byte "),
    ];
    for (bytes, expected) in cases {
        let line = replay(bytes).unwrap_err().to_string();
        assert!(line.starts_with(expected), "{line}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(replay(&bytes[..]).is_err());
        prop_assert!(replay(&[b"KAVGJRNL\x02", &bytes[..]].concat()[..]).is_err());
    }

    #[test]
    fn a_changed_byte_is_found(at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let mut journal = SHORT.clone();
        *at.get_mut(&mut journal) ^= flip;
        prop_assert!(replay(&journal[..]).is_err());
    }
}
