//! What is asked of a recorded host, by the commands that answer to settings; and the hook of the diagnosis: every
//! change that a verdict proposes is simulated, as far as a simulation knows it.

use counters::Kind;
use levels::Measured;
use std::collections::BTreeMap;

use ::whatif::{Model, Question};
use diagnose::{Change, Facts, Object, ObjectKind, Simulated, Verdict, Window};
use knobs::Setting;

/// Commands of one run where nobody asks for another number.
pub(crate) const COMMANDS: u32 = 300_000;
/// The same of the diagnosis: enough for a few per cent, few enough for all changes of a verdict to
/// take a blink.
const COMMANDS_OF_HOOK: u32 = 40_000;
/// How far today may be from the recording in so short a run for it to be surely within the tenth that a prediction
/// needs, in per cent: beyond that the run decides that `kavg whatif` takes.
const SURE_PERCENT: f64 = 5.0;

/// Settings that are asked about, over the intervals between two instants.
pub(crate) fn question(settings: Vec<Setting>, window: (i64, i64), commands: u32) -> Question {
    Question {
        settings,
        window,
        device: None,
        vms: Vec::new(),
        arrays: Vec::new(),
        vscsistats: Vec::new(),
        commands: f64::from(commands),
    }
}

/// The stretch that settings are asked about where nobody says one: that of the worst finding about what they act
/// on, or about that device; else of the worst.
pub(crate) fn window(verdict: &Verdict, settings: &[Setting], device: Option<&str>) -> Window {
    let is_meant = |finding: &&diagnose::Finding| {
        device.is_some_and(|device| finding.at.is_row(Kind::Device, device))
            || settings.iter().any(|setting| is_about(setting, &finding.at))
    };
    let finding = verdict.findings.iter().find(is_meant).or(verdict.findings.first());
    finding.map_or(verdict.window, |finding| finding.window)
}

/// Whether a setting is for an object: a device, or a VM with its disks.
fn is_about(setting: &Setting, at: &Object) -> bool {
    let is_of = |vm: &str| match at.kind {
        ObjectKind::Row(Kind::Vm) => at.name == vm,
        ObjectKind::Row(Kind::VirtualDisk) | ObjectKind::VirtualAdapter => {
            at.name.strip_prefix(vm).is_some_and(|rest| rest.starts_with(':'))
        }
        _ => false,
    };
    let is_device = |device| at.is_device() && at.name == device;
    setting.device().is_some_and(is_device) || setting.vm().is_some_and(is_of)
}

/// Fills in what a simulation says of each change of each verdict. A change that sets nothing
/// known, or of which nothing useful can be said, stays as it is: a range that holds everything
/// from nothing on is no prediction.
pub(crate) fn simulate(recordings: &[Measured], verdicts: &mut [Verdict], facts: &[Facts]) {
    for ((recording, facts), verdict) in recordings.iter().zip(facts).zip(verdicts) {
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
    let answer = |settings, commands| {
        let question = question(settings, (window.from_ms, window.to_ms), commands);
        Model::calibrate(recording, facts, &question).ok()?.answer().ok()
    };
    let few = answer(settings.clone(), COMMANDS_OF_HOOK)?;
    if !few.verdict.is_useful() {
        return None;
    }
    let is_near = few.calibration.mismatch_percent > SURE_PERCENT;
    let told = if is_near { answer(settings, COMMANDS)? } else { few };
    told.verdict.is_useful().then_some(told.simulated)
}
