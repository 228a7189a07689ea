//! What a simulation says of a change: the nouns of before and after.
//!
//! Nobody here simulates. Whoever can fills them in, and every report prints them.

use serde::Serialize;

use crate::number;

/// A change, simulated on a model that was calibrated from the recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulated {
    /// The answer in one plain sentence, with its range; or why there is none.
    pub sentence: String,
    /// Whether the recording tells how the array and the guests answer to the change. Where it
    /// does not, the range is what is possible rather than what is likely.
    pub identified: bool,
    /// What the range rests on, and what would narrow it.
    pub doubts: Vec<String>,
    /// Captured, simulated as it is, simulated with the change: counter by counter.
    pub rows: Vec<SimulatedRow>,
}

/// One counter of one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedRow {
    /// The device, VM or virtual disk, as the recording names it.
    pub object: String,
    /// The counter as esxtop's header names it: `CMDS/s`, `GAVG/cmd`, `QUED`.
    pub counter: &'static str,
    /// Its unit; empty for plain numbers.
    pub unit: &'static str,
    /// What the recording shows; nothing where it has no such counter.
    pub captured: Option<f64>,
    /// What the simulation gives for the host as it is.
    pub today: f64,
    /// With the change: the least of all readings of the recording that fit it.
    pub low: f64,
    /// With the change: the greatest of them.
    pub high: f64,
}

impl SimulatedRow {
    /// What it is after the change, as text: `12.5`, or `10 to 15`. Between the least and the most
    /// favourable reading, the smaller number comes first.
    pub(crate) fn range(&self) -> String {
        let (low, high) = (number(self.low.min(self.high)), number(self.low.max(self.high)));
        if low == high { low } else { format!("{low} to {high}") }
    }
}
