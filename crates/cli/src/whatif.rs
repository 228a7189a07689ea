//! The hook of the diagnosis: every change that a verdict proposes is simulated, as far as a
//! simulation knows it.

use levels::Measured;
use std::collections::BTreeMap;

use ::whatif::{Model, Question};
use diagnose::{Change, Facts, Simulated, Verdict, Window};
use knobs::Setting;

/// Commands of one run: enough for a few per cent, few enough for all changes of a verdict to
/// take a blink.
const COMMANDS: f64 = 40_000.0;

/// Fills in what a simulation says of each change of each verdict. A change that sets nothing
/// known, or of which nothing useful can be said, stays as it is: a range that holds everything
/// from nothing on is no prediction.
pub(crate) fn simulate(recordings: &[Measured], verdicts: &mut [Verdict], facts: &Facts) {
    for (recording, verdict) in recordings.iter().zip(verdicts) {
        let mut known = BTreeMap::new();
        for finding in &mut verdict.findings {
            for change in &mut finding.changes {
                let settings = settings(change);
                if settings.is_empty() {
                    continue;
                }
                let lines: Vec<String> = settings.iter().map(Setting::to_string).collect();
                let key = (lines, finding.window.from_ms, finding.window.to_ms);
                let answer = known
                    .entry(key)
                    .or_insert_with(|| ask(recording, facts, settings, finding.window));
                change.simulated.clone_from(answer);
            }
        }
    }
}

/// What a change sets; of drivers of which one is there it is the first.
fn settings(change: &Change) -> Vec<Setting> {
    let is_driver = |setting: &&Setting| matches!(setting, Setting::ModuleDepth { .. });
    let sets = || change.steps.iter().map(|step| &step.set);
    let driver = sets().find(is_driver);
    driver.into_iter().chain(sets().filter(|setting| !is_driver(setting))).cloned().collect()
}

fn ask(
    recording: &Measured,
    facts: &Facts,
    settings: Vec<Setting>,
    window: Window,
) -> Option<Simulated> {
    let question = Question {
        settings,
        window: (window.from_ms, window.to_ms),
        device: None,
        vms: Vec::new(),
        arrays: Vec::new(),
        vscsistats: Vec::new(),
        commands: COMMANDS,
    };
    let answer = Model::calibrate(recording, facts, &question).ok()?.answer().ok()?;
    answer.verdict.is_useful().then_some(answer.simulated)
}
