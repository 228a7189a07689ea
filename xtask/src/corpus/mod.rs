//! The corpus of the diagnosis (`cargo xtask corpus`): captures of which it is known what is wrong.
//!
//! A case is simulated, its counters are written as a capture of esxtop and read back, so that the
//! diagnosis sees what it would see of a real host and nothing else. What it finds is held against
//! what the simulation knows from inside. Rules are written against the seeds for development;
//! the figures that are reported come from seeds that are held out. A second corpus is planted by
//! formulas instead (`cargo xtask corpus planted`).

mod case;
pub(crate) mod draw;
mod planted;
mod score;
mod truth;

use std::sync::atomic::{AtomicUsize, Ordering};

use capture::{Input, ReadOptions, read_inputs, write_esxtop};
use counters::Recording;
use diagnose::{Facts, Thresholds, Verdict, diagnose, render_text};
use scenario::Scenario;

use case::{Case, HOST};
use score::Score;
use truth::{Truth, truth};

/// The first seed of those that rules are written against.
const DEVELOPMENT: u64 = 1;
/// The first seed of those that they are not.
const HELD_OUT: u64 = 4_000_001;
/// Seeds of each cell unless told.
const EACH: u64 = 20;

const USAGE: &str =
    "usage: cargo xtask corpus [planted] [--seeds held-out|development] [--each N] | NAME";

/// `cargo xtask corpus`: the table; of one case, its scenario, the truth and the verdict.
///
/// # Errors
/// One line when the arguments are not these.
pub(crate) fn corpus(arguments: &[String]) -> Result<String, String> {
    let (mut first, mut each) = (HELD_OUT, EACH);
    let mut words = arguments.iter().map(String::as_str).peekable();
    let by_formulas = words.next_if_eq(&"planted").is_some();
    while let Some(word) = words.next() {
        match (word, words.next()) {
            ("--seeds", Some("held-out")) => first = HELD_OUT,
            ("--seeds", Some("development")) => first = DEVELOPMENT,
            ("--each", Some(number)) => each = number.parse().map_err(|_| USAGE)?,
            (name, None) => return Ok(show(&Case::named(name).ok_or(USAGE)?)),
            _ => return Err(USAGE.into()),
        }
    }
    let seeds = first..first.saturating_add(each);
    let score = if by_formulas { planted::score(seeds) } else { score(&Case::all(seeds)) };
    Ok(format!("{}\n{}", score.table(), score.lines.join("\n")))
}

/// One case in full.
fn show(case: &Case) -> String {
    let (truth, verdict) = judge(case);
    let truth: Vec<_> = truth
        .iter()
        .map(|((cause, at), sure)| {
            format!("{} at {at}{}", cause.key(), if *sure { "" } else { ", borderline" })
        })
        .collect();
    format!("{}\n{}\n\n{}", case.text(), truth.join("\n"), render_text(&verdict))
}

fn score(cases: &[Case]) -> Score {
    let mut score = Score::default();
    for (case, (truth, verdict)) in cases.iter().zip(on_every_processor(cases, judge)) {
        score.count(&case.to_string(), &truth, &verdict);
    }
    score.lines.sort();
    score
}

/// What each case gives, in the order of the cases, worked out on every processor.
pub(crate) fn on_every_processor<C: Sync, T: Send>(
    cases: &[C],
    give: impl Fn(&C) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut given = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(index) else { return given };
            given.push((index, give(case)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut given: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|w| w.join().expect("a case is judged")).collect()
    });
    given.sort_by_key(|(index, _)| *index);
    given.into_iter().map(|(_, given)| given).collect()
}

/// The scenario of a case.
///
/// # Panics
/// When its template is none.
pub(crate) fn scenario_of(name: &str, text: &str) -> Scenario {
    let no_files = &mut |_: &str| Err("templates name no files".to_owned());
    Scenario::parse(name, text, no_files).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What is wrong in a case, and what the diagnosis says of its capture.
fn judge(case: &Case) -> (Truth, Verdict) {
    let scenario = case.scenario();
    let outcome = sim::run(&scenario, 1, &());
    let host = scenario.hosts.iter().position(|host| host.config.name == HOST);
    let host = host.expect("every template uses that host");
    let recording = through_esxtop(&outcome.recordings[host]);
    let verdict = diagnose(&recording, &Thresholds::default(), &Facts::default());
    (truth(&scenario, &outcome, host), verdict)
}

/// A recording as it comes back from a capture: what esxtop does not write is gone.
pub(crate) fn through_esxtop(recording: &Recording) -> Recording {
    let mut text = Vec::new();
    write_esxtop(recording, &mut text).expect("memory takes it");
    let inputs = vec![Input::from_bytes("corpus", text)];
    let options = ReadOptions { counters: diagnose::needed(), ..ReadOptions::default() };
    let capture = read_inputs(inputs, &options, &mut |_, _| {});
    capture.expect("what is written can be read").recordings.swap_remove(0)
}

#[cfg(test)]
mod tests {
    use super::{HELD_OUT, case::Case, planted, score};

    #[test]
    fn every_cause_reaches_the_bar_on_held_out_seeds() {
        let score = score(&Case::all(HELD_OUT..HELD_OUT + 1));
        assert!(score.below_the_bar().is_empty(), "{}\n{}", score.table(), score.lines.join("\n"));
    }

    #[test]
    fn planted_causes_are_found_and_nothing_else() {
        let score = planted::score(HELD_OUT..HELD_OUT + 4);
        assert!(score.below_the_bar().is_empty(), "{}\n{}", score.table(), score.lines.join("\n"));
        assert_eq!(score.healthy[0], score.healthy[1], "{}", score.lines.join("\n"));
    }

    #[test]
    fn unknown_arguments_are_refused() {
        for words in [&["--seeds", "all"][..], &["--each", "x"], &["dsnro/both/1"], &["--each"]] {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            assert!(super::corpus(&words).unwrap_err().starts_with("usage: "), "{words:?}");
        }
    }
}
