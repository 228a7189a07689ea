//! What `kavg whatif` says of a remedy that is nothing but settings: it knows laws that hold of any array, which no
//! run of a scenario does, and one change has one range.

use ::whatif::Model;
use counters::Counter;

use super::{candidates::Remedy, case::Case, find::question};

/// From the least to the most.
pub(super) type Range = [f64; 2];

/// Between what a remedy leaves the two VMs; `None` where nothing is said of one.
#[derive(Clone, Copy, Default)]
pub(super) struct Bounds {
    /// Milliseconds of a command of the good one below its virtual adapter.
    pub(super) good_ms: Option<Range>,
    pub(super) good_iops: Option<Range>,
    pub(super) bad_iops: Option<Range>,
}

/// What is said of a remedy for a recorded host.
pub(super) fn bounds(case: &Case, remedy: &Remedy) -> Bounds {
    rows(case, remedy).unwrap_or_default()
}

fn rows(case: &Case, remedy: &Remedy) -> Option<Bounds> {
    let original = case.original.as_ref()?;
    let question = question(original.window, remedy.typed(case)?, &[]);
    let model = Model::calibrate(&original.recording, &original.facts, &question).ok()?;
    let rows = model.answer().ok()?.simulated.rows;
    let range = |vm: &str, counter: Counter| {
        let name = counter.info().column;
        let vm = case.called(vm);
        let row = rows.iter().find(|row| row.object == vm && row.counter == name)?;
        Some([row.low, row.high])
    };
    Some(Bounds {
        good_ms: range(&case.good, Counter::GuestLatency),
        good_iops: range(&case.good, Counter::Commands),
        bad_iops: range(&case.bad, Counter::Commands),
    })
}
