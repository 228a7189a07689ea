//! The validation of what-if (`cargo xtask whatif`): answers held against the truth.
//!
//! A case is simulated, its counters are written as a capture of esxtop and read back, and that
//! alone is asked what a change would do. Then the case itself is simulated with the change. What
//! answers there are arrays that the calibration does not have (servers, spindles, caches, links,
//! bends), and guests that it does not have either (threads that come and go, bursts, pauses,
//! several loads at once). The code is written against the seeds for development; the figures
//! that are reported come from seeds that are held out.

mod case;
mod score;

use counters::{Counter, EntityId, Kind, Recording};
use diagnose::{Facts, Thresholds, diagnose};
use whatif::{Answer, Model, Question};

use crate::corpus::{on_every_processor, through_esxtop};
use case::Case;
use score::{Judged, Outcome, Score};

/// The first seed of those that the code is written against.
const DEVELOPMENT: u64 = 1;
/// The first seed of those that it is not.
const HELD_OUT: u64 = 36_000_001;
/// Seeds of each template unless told.
const EACH: u64 = 20;
/// Commands that a run simulates.
const COMMANDS: f64 = 100_000.0;

const USAGE: &str = "usage: cargo xtask whatif [--seeds held-out|development] [--each N] | NAME";

/// `cargo xtask whatif`: the table; of one case, its scenario, the model and the answer.
///
/// # Errors
/// One line when the arguments are not these.
pub(crate) fn whatif(arguments: &[String]) -> Result<String, String> {
    let (mut first, mut each) = (HELD_OUT, EACH);
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match (word, words.next()) {
            ("--seeds", Some("held-out")) => first = HELD_OUT,
            ("--seeds", Some("development")) => first = DEVELOPMENT,
            ("--each", Some(number)) => each = number.parse().map_err(|_| USAGE)?,
            (name, None) => return Ok(show(&Case::named(name).ok_or(USAGE)?)),
            _ => return Err(USAGE.into()),
        }
    }
    let score = score(&Case::all(first..first.saturating_add(each)));
    let held = 100.0 * score.held();
    let lines = score.lines.join("\n");
    Ok(format!("{}\nFigures in range: {held:.1} %\n{lines}", score.table()))
}

/// One case in full.
fn show(case: &Case) -> String {
    let text = case.text();
    match ask(case) {
        Err(refusal) => format!("{text}\n{refusal}"),
        Ok(asked) => {
            let answer = serde_json::to_string_pretty(&asked.answer).unwrap_or_default();
            format!("{text}\n{}\n{answer}\n{:#?}", asked.model, judge(case, &asked))
        }
    }
}

fn score(cases: &[Case]) -> Score {
    let mut score = Score::default();
    let outcomes = on_every_processor(cases, |case| ask(case).map(|asked| judge(case, &asked)));
    for (case, outcome) in cases.iter().zip(outcomes) {
        score.count([case.kind(), case.array()], &case.to_string(), outcome);
    }
    score.lines.sort();
    score
}

/// What a capture of a case was asked, and what it answered.
struct Asked {
    window: (i64, i64),
    model: String,
    answer: Answer,
}

/// Asks the capture of a case what its change would do, over the window of the worst finding.
fn ask(case: &Case) -> Result<Asked, whatif::Error> {
    let recording = through_esxtop(&sim::run(&case.scenario(), 1, &()).recordings[0]);
    let facts = Facts::default();
    let verdict = diagnose(&recording, &Thresholds::default(), &facts);
    let worst = verdict.findings.first().map_or(verdict.window, |finding| finding.window);
    let window = if case.is_tried() {
        (i64::MIN, recording.times_ms[recording.len() / 2 - 2])
    } else {
        (worst.from_ms, worst.to_ms)
    };
    let question = Question {
        settings: case.change().settings,
        window,
        device: None,
        vms: Vec::new(),
        arrays: Vec::new(),
        vscsistats: Vec::new(),
        commands: COMMANDS,
    };
    let model = Model::calibrate(&recording, &facts, &question)?;
    Ok(Asked { window, model: model.scenario(), answer: model.answer()? })
}

/// Holds an answer against the case with its change.
fn judge(case: &Case, asked: &Asked) -> Outcome {
    let truth = &sim::run(&case.changed(), 1, &()).recordings[0];
    let rows = &asked.answer.simulated.rows;
    let judged = |index: usize| {
        let row = &rows[index];
        let (counter, kind) = match row.counter {
            "CMDS/s" => (Counter::Commands, "IOPS"),
            "GAVG/cmd" => (Counter::GuestLatency, "GAVG"),
            _ => return None,
        };
        let device = truth.find(Kind::Device, &row.object);
        let id = device.or_else(|| truth.find(Kind::Vm, &row.object)).expect("the same host");
        if device.is_none() && counter == Counter::GuestLatency {
            return None;
        }
        let (truth, error) = figure(truth, id, counter, asked.window);
        let captured = row.captured.unwrap_or(0.0);
        let (today, low, high) = (row.today, row.low, row.high);
        let is_device = device.is_some();
        Some(Judged { kind, is_device, captured, today, low, high, truth, error })
    };
    Outcome { verdict: asked.answer.verdict, judged: (0..rows.len()).filter_map(judged).collect() }
}

/// A rate or a latency of an object over a window, and two standard errors of it: how it differs
/// from sample to sample.
fn figure(recording: &Recording, id: EntityId, counter: Counter, window: (i64, i64)) -> (f64, f64) {
    let samples = recording.times_ms.iter().enumerate();
    let samples = samples.filter(|(_, at)| window.0 < **at && **at <= window.1);
    let value = |counter, sample| recording.value(id, counter, sample).unwrap_or(0.0);
    let rates_and_values: Vec<(f64, f64)> =
        samples.map(|(s, _)| (value(Counter::Commands, s), value(counter, s))).collect();
    let count = rates_and_values.len().max(1) as f64;
    let commands: f64 = rates_and_values.iter().map(|(rate, _)| rate).sum();
    let time: f64 = rates_and_values.iter().map(|(rate, value)| rate * value).sum();
    let mean =
        if counter == Counter::Commands { commands / count } else { time / commands.max(1e-9) };
    let steps = rates_and_values.windows(2).map(|pair| (pair[1].1 - pair[0].1).powi(2) / 2.0);
    let variance = steps.sum::<f64>() / (count - 1.0).max(1.0);
    (mean, 2.0 * (variance / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::{HELD_OUT, case::Case, score};

    #[test]
    fn the_truth_lies_in_the_range_on_held_out_seeds() {
        let score = score(&Case::all(HELD_OUT..HELD_OUT + 2));
        assert!(score.held() >= 0.95, "{}\n{}", score.table(), score.lines.join("\n"));
    }

    #[test]
    fn unknown_arguments_are_refused() {
        for words in [&["--seeds", "all"][..], &["--each", "x"], &["x/1"], &["--each"]] {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            assert!(super::whatif(&words).unwrap_err().starts_with("usage: "), "{words:?}");
        }
    }
}
