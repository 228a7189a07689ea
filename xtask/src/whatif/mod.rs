//! The validation of what-if (`cargo xtask whatif`): answers held against the truth.
//!
//! A case is simulated, its counters are written as a capture of esxtop and read back, and that
//! alone is asked what a change would do. Then the case itself is simulated with the change. The
//! code is written against the seeds for development; the figures that are reported come from
//! seeds that are held out.

mod case;
mod score;

use counters::{Counter, Kind, Recording};
use diagnose::{Facts, Thresholds, diagnose};
use whatif::{Answer, Model, Question};

use crate::corpus::{on_every_processor, through_esxtop};
use case::Case;
use score::{Judged, Outcome, Score};

/// The first seed of those that the code is written against.
const DEVELOPMENT: u64 = 1;
/// The first seed of those that it is not.
const HELD_OUT: u64 = 3_000_001;
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
    Ok(format!("{}\nIOPS and GAVG of devices in range: {held:.1} %\n{lines}", score.table()))
}

/// One case in full.
fn show(case: &Case) -> String {
    let asked = ask(case);
    let answer = serde_json::to_string_pretty(&asked.answer).unwrap_or_default();
    let outcome = judge(case, &asked);
    format!("{}\n{}\n{answer}\n{outcome:#?}", case.text(), asked.model)
}

fn score(cases: &[Case]) -> Score {
    let mut score = Score::default();
    let outcomes = on_every_processor(cases, |case| judge(case, &ask(case)));
    for (case, outcome) in cases.iter().zip(outcomes) {
        score.count(case.kind(), &case.to_string(), outcome);
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
fn ask(case: &Case) -> Asked {
    let recording = through_esxtop(&sim::run(&case.scenario(), 1, &()).recordings[0]);
    let facts = Facts::default();
    let verdict = diagnose(&recording, &Thresholds::default(), &facts);
    let worst = verdict.findings.first().map_or(verdict.window, |finding| finding.window);
    let window = (worst.from_ms, worst.to_ms);
    let device = recording.of_kind(Kind::Device).next().map(|(_, device)| device.name.clone());
    let question = Question { settings: vec![case.change()], window, device, commands: COMMANDS };
    let model = Model::calibrate(&recording, &facts, &question);
    let model = model.unwrap_or_else(|error| panic!("{case}: {error}"));
    let answer =
        model.answer().unwrap_or_else(|error| panic!("{case}: {error}\n{}", model.scenario()));
    Asked { window, model: model.scenario(), answer }
}

/// Holds an answer against the case with its change.
fn judge(case: &Case, asked: &Asked) -> Outcome {
    let truth = &sim::run(&case.changed(), 1, &()).recordings[0];
    let rows = &asked.answer.simulated.rows;
    let judged = |object: &str, counter: &str, truth: f64| {
        let row = rows.iter().find(|row| row.object == object && row.counter == counter)?;
        let captured = row.captured.unwrap_or(0.0);
        Some(Judged { captured, today: row.today, low: row.low, high: row.high, truth })
    };
    let object = &rows[0].object;
    let [rate, ms] = figures(truth, Kind::Device, object, asked.window);
    let device = [judged(object, "CMDS/s", rate), judged(object, "GAVG/cmd", ms)];
    let vms = truth.of_kind(Kind::Vm).flat_map(|(_, vm)| {
        let [rate, _] = figures(truth, Kind::Vm, &vm.name, asked.window);
        judged(&vm.name, "CMDS/s", rate)
    });
    Outcome {
        identified: asked.answer.simulated.identified,
        device: device.map(|judged| judged.expect("a device has rate and latency")),
        vms: vms.collect(),
    }
}

/// CMDS/s and GAVG of an object over a window.
fn figures(recording: &Recording, kind: Kind, name: &str, window: (i64, i64)) -> [f64; 2] {
    let id = recording.find(kind, name).expect("the same host");
    let samples = recording.times_ms.iter().enumerate();
    let samples = samples.filter(|(_, at)| window.0 < **at && **at <= window.1);
    let (mut commands, mut time, mut count) = (0.0, 0.0, 0.0);
    for (sample, _) in samples {
        let rate = recording.value(id, Counter::Commands, sample).unwrap_or(0.0);
        commands += rate;
        time += rate * recording.value(id, Counter::GuestLatency, sample).unwrap_or(0.0);
        count += 1.0;
    }
    [commands / f64::max(count, 1.0), time / f64::max(commands, 1e-9)]
}

#[cfg(test)]
mod tests {
    use super::{HELD_OUT, case::Case, score};

    #[test]
    fn the_truth_lies_in_the_range_on_held_out_seeds() {
        let score = score(&Case::all(HELD_OUT..HELD_OUT + 2));
        assert!(score.held() >= 0.9, "{}\n{}", score.table(), score.lines.join("\n"));
    }

    #[test]
    fn unknown_arguments_are_refused() {
        for words in [&["--seeds", "all"][..], &["--each", "x"], &["x/1"], &["--each"]] {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            assert!(super::whatif(&words).unwrap_err().starts_with("usage: "), "{words:?}");
        }
    }
}
