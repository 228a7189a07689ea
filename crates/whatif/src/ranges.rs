//! The ranges of counters: where one stands among those of an answer, and how a bound moves it.

use counters::Counter;
use diagnose::SimulatedRow;

use crate::run::Key;

/// What falls or rises by less than this is level.
pub(crate) const LEVEL: f64 = 0.015;

/// The place of a counter of a device.
pub(crate) fn place_of(keys: &[Key], device: &str, counter: Counter) -> Option<usize> {
    place_in(keys, (true, device), counter)
}

/// The place of a counter of a device, or of a VM.
pub(crate) fn place_in(
    keys: &[Key],
    (is_device, object): (bool, &str),
    counter: Counter,
) -> Option<usize> {
    let is_it = |key: &Key| key.is_device() == is_device && key.object == object && key.is(counter);
    keys.iter().position(is_it)
}

/// Raises a range to no less than a bound.
pub(crate) fn at_least(row: &mut SimulatedRow, least: f64) {
    (row.low, row.high) = (row.low.max(least), row.high.max(least));
}

/// Lowers a range to no more than a bound.
pub(crate) fn at_most(row: &mut SimulatedRow, most: f64) {
    (row.low, row.high) = (row.low.min(most), row.high.min(most));
}
