//! The corpus of the diagnosis (`cargo xtask corpus`): captures of which it is known what is wrong.
//!
//! There are two. In the one a case is simulated, its counters are written as a capture of esxtop
//! and read back, and what the diagnosis finds is held against what the simulation knows from
//! inside. In the other (`cargo xtask corpus independent`) nothing of ours makes the capture or says
//! what is so in it. Rules are written against the seeds for development; the figures that are
//! reported come from seeds that are held out.

mod case;
pub(crate) mod draw;
mod independent;
mod published;
mod score;
mod truth;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use capture::{Input, ReadOptions, read_inputs, write_esxtop};
use counters::Recording;
use diagnose::{Facts, Thresholds, Verdict, diagnose, render_text};
use levels::Measured;
use scenario::Scenario;

use case::{Case, HOST};
use independent::{Garbage, Planted, Size};
use score::{Score, Truth};
use truth::truth;

/// The first seed of those that rules are written against.
const DEVELOPMENT: u64 = 1;
/// The first seed of those that they are not, of either corpus. Whoever has read what was missed on them takes others.
const HELD_OUT: u64 = 22_000_001;
const HELD_OUT_OF_OTHERS: u64 = 21_000_001;
/// Seeds of each cell unless told.
const EACH: u64 = 20;

const USAGE: &str = "usage: cargo xtask corpus [independent] [--seeds held-out|development|FIRST] \
                     [--each N] [--misses] [--small] [--keep DIR] [--garbage none|some|each] [FAMILY] | NAME";

/// What is asked for.
struct Asked {
    by_others: bool,
    /// The first of the seeds that are held out.
    held_out: u64,
    first: u64,
    each: u64,
    /// Whether misses are named on held-out seeds too, which spends those.
    misses: bool,
    size: Size,
    keep: Option<PathBuf>,
    garbage: Garbage,
    name: Option<String>,
}

impl Asked {
    fn parse(arguments: &[String]) -> Option<Self> {
        let mut asked = Self {
            by_others: false,
            held_out: HELD_OUT,
            first: HELD_OUT,
            each: EACH,
            misses: false,
            size: Size::ANY,
            keep: None,
            garbage: Garbage::Some,
            name: None,
        };
        let mut words = arguments.iter().map(String::as_str).peekable();
        if words.next_if_eq(&"independent").is_some() {
            asked.by_others = true;
            (asked.held_out, asked.first) = (HELD_OUT_OF_OTHERS, HELD_OUT_OF_OTHERS);
        }
        while let Some(word) = words.next() {
            match word {
                "--misses" => asked.misses = true,
                "--seeds" => {
                    asked.first = match words.next()? {
                        "held-out" => asked.held_out,
                        "development" => DEVELOPMENT,
                        first => first.parse().ok().filter(|first| *first < asked.held_out)?,
                    }
                }
                "--each" => asked.each = words.next()?.parse().ok()?,
                "--small" if asked.by_others => asked.size = Size::SMALL,
                "--keep" if asked.by_others => asked.keep = Some(words.next()?.into()),
                "--garbage" if asked.by_others => asked.garbage = Garbage::named(words.next()?)?,
                name if words.peek().is_none() => asked.name = Some(name.to_owned()),
                _ => return None,
            }
        }
        Some(asked)
    }

    fn seeds(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.each)
    }
}

/// `cargo xtask corpus`: the table; of one case, how it was made, the truth and the verdict.
///
/// # Errors
/// One line when the arguments are not these.
pub(crate) fn corpus(arguments: &[String]) -> Result<String, String> {
    let asked = Asked::parse(arguments).ok_or(USAGE)?;
    let score = match (&asked.name, asked.by_others) {
        (Some(name), true) if name.contains('/') => return show_planted(name, asked.garbage),
        (Some(name), false) => return Ok(show(&Case::named(name).ok_or(USAGE)?)),
        (family, true) => {
            let mut names = independent::names(asked.seeds(), asked.size);
            names.retain(|name| family.as_ref().is_none_or(|family| is_of(name, family)));
            score_planted(&names, asked.garbage, asked.keep.as_deref())?
        }
        (None, false) => score(&Case::all(asked.seeds())),
    };
    let table = score.table();
    let shown = asked.misses || asked.first < asked.held_out;
    Ok(if shown { format!("{table}\n{}", score.lines.join("\n")) } else { table })
}

/// Whether a capture is of a family.
fn is_of(name: &str, family: &str) -> bool {
    name.rsplit('/').nth(1) == Some(family)
}

/// One case in full.
fn show(case: &Case) -> String {
    let (truths, verdict) = judge(case);
    format!("{}\n{}\n{}", case.text(), listed(&truths), render_text(&verdict))
}

/// One planted capture: what is so in it, and the verdict.
fn show_planted(name: &str, garbage: Garbage) -> Result<String, String> {
    let planted = Planted::named(name, garbage).ok_or(USAGE)?;
    let verdict = diagnosed(planted.csv.into_bytes());
    Ok(format!("{}\n{}", listed(&planted.truths), render_text(&verdict)))
}

fn listed(truths: &[Truth]) -> String {
    truths.iter().map(|truth| format!("{truth:?}\n")).collect()
}

fn score(cases: &[Case]) -> Score {
    let mut score = Score::default();
    for (case, (truths, verdict)) in cases.iter().zip(on_every_processor(cases, judge)) {
        score.count(&case.to_string(), &truths, &verdict);
    }
    score.lines.sort();
    score
}

/// Scores the planted captures of these names; those that are judged wrong are kept, each with its
/// truth.
fn score_planted(names: &[String], garbage: Garbage, keep: Option<&Path>) -> Result<Score, String> {
    let judge = |name: &String| {
        let planted = Planted::named(name, garbage).expect("it has that name");
        let verdict = diagnosed(planted.csv.into_bytes());
        (planted.truths, verdict)
    };
    let mut score = Score::default();
    for (name, (truths, verdict)) in names.iter().zip(on_every_processor(names, judge)) {
        let right = score.count(name, &truths, &verdict);
        if let Some(directory) = keep.filter(|_| !right) {
            keep_capture(directory, name, garbage, &truths).map_err(|error| error.to_string())?;
        }
    }
    Ok(score)
}

/// Writes a capture and its truth, as `family-seed.csv` and `.json`.
fn keep_capture(
    directory: &Path,
    name: &str,
    garbage: Garbage,
    truths: &[Truth],
) -> std::io::Result<()> {
    let Some(planted) = Planted::named(name, garbage) else { return Ok(()) };
    std::fs::create_dir_all(directory)?;
    let file = directory.join(name.replace('/', "-"));
    std::fs::write(file.with_extension("csv"), planted.csv)?;
    std::fs::write(file.with_extension("json"), serde_json::to_string_pretty(truths)?)
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
fn judge(case: &Case) -> (Vec<Truth>, Verdict) {
    let scenario = case.scenario();
    let outcome = sim::run(&scenario, 1, &());
    let host = scenario.hosts.iter().position(|host| host.config.name == HOST);
    let host = host.expect("every template uses that host");
    let mut text = Vec::new();
    write_esxtop(&outcome.recordings[host], &mut text).expect("memory takes it");
    (truth(&scenario, &outcome, host), diagnosed(text))
}

/// The verdict on a capture, as `kavg diagnose` gives it.
fn diagnosed(text: Vec<u8>) -> Verdict {
    diagnose(&read_esxtop(text), &Thresholds::default(), &Facts::default())
}

/// A recording as it comes back from a capture: what esxtop does not write is gone.
pub(crate) fn through_esxtop(recording: &Recording) -> Measured {
    let mut text = Vec::new();
    write_esxtop(recording, &mut text).expect("memory takes it");
    read_esxtop(text)
}

fn read_esxtop(text: Vec<u8>) -> Measured {
    let inputs = vec![Input::from_bytes("corpus", text)];
    let options = ReadOptions { counters: diagnose::needed(), ..ReadOptions::default() };
    let capture = read_inputs(inputs, &options, &mut |_, _| {});
    let mut capture = capture.expect("what is written can be read");
    Measured::of(capture.recordings.swap_remove(0))
}

#[cfg(test)]
mod tests {
    use diagnose::TICKET_LINE;

    use super::{
        DEVELOPMENT, Garbage, Planted, Score, Size, case::Case, diagnosed, independent, score,
        score_planted,
    };

    /// Places at which a cause must be certain for its share of right answers to be one.
    const PLACES: u32 = 100;

    fn assert_bar(score: &Score) {
        let lines = score.lines.join("\n");
        assert!(score.below_the_bar().is_empty(), "{}\n{lines}", score.table());
    }

    #[test]
    fn every_cause_reaches_the_bar_on_simulated_captures() {
        assert_bar(&score(&Case::all(DEVELOPMENT..DEVELOPMENT + 1)));
    }

    /// Short recordings are the hard ones; those that are long enough have garbage in them.
    #[test]
    fn every_cause_reaches_the_bar_on_a_hundred_places_of_independent_captures() {
        let names = independent::names(DEVELOPMENT..DEVELOPMENT + 300, Size::SMALL);
        let score = score_planted(&names, Garbage::Each, None).unwrap();
        assert_bar(&score);
        let few = score.causes.iter().find(|(_, tally)| tally.found + tally.missed < PLACES);
        assert!(few.is_none(), "{few:?}");
    }

    #[test]
    fn the_answer_to_an_independent_capture_fits_a_ticket() {
        for name in independent::names(DEVELOPMENT..DEVELOPMENT + 1, Size::ANY) {
            let planted = Planted::named(&name, Garbage::None).expect("it has that name");
            let verdict = diagnosed(planted.csv.into_bytes());
            for line in [Some(verdict.headline), verdict.advice].into_iter().flatten() {
                assert!(line.chars().count() <= TICKET_LINE, "{name}: {line}");
            }
        }
    }

    #[test]
    fn unknown_arguments_are_refused() {
        let refused: [&[&str]; 8] = [
            &["--seeds", "all"],
            &["--each", "x"],
            &["dsnro/both/1"],
            &["--each"],
            &["--keep", "there"],
            &["independent", "dsnro/x"],
            &["independent", "--garbage", "all"],
            &["--garbage", "each"],
        ];
        for words in refused {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            assert!(super::corpus(&words).unwrap_err().starts_with("usage: "), "{words:?}");
        }
    }
}
