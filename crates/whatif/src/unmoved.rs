//! The answer where nothing moves: all stays as it was recorded, but for chance.

use counters::Counter;
use diagnose::{Simulated, SimulatedRow};

use crate::{
    run::Key,
    said::{NARROW, Verdict, main_rows, sentence, width},
};

/// What the finite run of a simulation does to a figure.
pub(crate) const RUN: f64 = 0.005;

/// What stays, and what of it may be another all the same.
pub(crate) struct Still<'a> {
    /// The VM that the answer is about, where it is not about its device.
    pub(crate) vm: Option<&'a str>,
    /// The part of a latency that is a wait which may go.
    pub(crate) waits: f64,
    /// Whether all that waits in the host may be such a wait.
    pub(crate) is_of_limit: bool,
    /// Between which the depth of a device is then, where it is not what it was.
    pub(crate) depth: &'a dyn Fn(&Key) -> Option<[f64; 2]>,
}

/// The answer where all stays as it was recorded; `why` is said behind it.
pub(crate) fn unmoved(
    keys: &[Key],
    still: &Still<'_>,
    why: &str,
    doubts: Vec<String>,
) -> (Simulated, Verdict) {
    let row = |key: &Key| {
        let captured = key.captured.unwrap_or(0.0);
        let (quicker, more) = match key.is(Counter::Commands) {
            true => (1.0, 1.0 / (1.0 - still.waits)),
            false => (1.0 - still.waits, 1.0),
        };
        let is_wait = key.is(Counter::KernelLatency) || key.is(Counter::MeanQueued);
        let quicker = if is_wait && still.is_of_limit { 0.0 } else { quicker };
        let [low, high] = match key.is(Counter::DeviceQDepth) {
            true => (still.depth)(key).unwrap_or([captured; 2]),
            false => {
                let chance = key.chance + RUN;
                [(1.0 - chance) * quicker, (1.0 + chance) * more].map(|part| captured * part)
            }
        };
        SimulatedRow {
            object: key.object.clone(),
            counter: key.name,
            unit: key.unit,
            captured: key.captured,
            today: captured,
            low,
            high,
        }
    };
    let rows: Vec<SimulatedRow> = keys.iter().map(row).collect();
    let main = main_rows(keys, still.vm, &rows);
    // One sample tells nothing of what chance does.
    let is_known = main.first().is_none_or(|rate| width(rate) <= NARROW);
    let verdict = if is_known { Verdict::GainsNothing } else { Verdict::CannotTell };
    let sentence = sentence(&main, verdict) + why;
    (Simulated { sentence, identified: is_known, doubts, rows }, verdict)
}

/// No table, and why.
pub(crate) fn none(sentence: &str, doubts: Vec<String>) -> Simulated {
    Simulated { sentence: sentence.into(), identified: false, doubts, rows: Vec::new() }
}
