//! The hook of the diagnosis: every change that a verdict proposes is simulated, as far as a
//! simulation knows it.

use std::collections::BTreeMap;

use ::whatif::{Model, Question};
use counters::Recording;
use diagnose::{Facts, Simulated, Verdict, Window};
use knobs::Setting;

/// Commands of one run: enough for a few per cent, few enough for all changes of a verdict to
/// take a blink.
const COMMANDS: f64 = 40_000.0;

/// Fills in what a simulation says of each change of each verdict. A change that sets nothing
/// known, or of which nothing useful can be said, stays as it is: a range that holds everything
/// from nothing on is no prediction.
pub(crate) fn simulate(recordings: &[Recording], verdicts: &mut [Verdict], facts: &Facts) {
    for (recording, verdict) in recordings.iter().zip(verdicts) {
        let mut known = BTreeMap::new();
        for finding in &mut verdict.findings {
            for change in &mut finding.changes {
                // Of drivers of which one is there it is the first.
                let Some(step) = change.steps.first() else { continue };
                let key = (step.set.to_string(), finding.window.from_ms, finding.window.to_ms);
                let answer = known
                    .entry(key)
                    .or_insert_with(|| ask(recording, facts, &step.set, finding.window));
                change.simulated.clone_from(answer);
            }
        }
    }
}

fn ask(
    recording: &Recording,
    facts: &Facts,
    setting: &Setting,
    window: Window,
) -> Option<Simulated> {
    let question = Question {
        settings: vec![setting.clone()],
        window: (window.from_ms, window.to_ms),
        device: None,
        arrays: Vec::new(),
        commands: COMMANDS,
    };
    let answer = Model::calibrate(recording, facts, &question).ok()?.answer().ok()?;
    answer.verdict.is_useful().then_some(answer.simulated)
}
