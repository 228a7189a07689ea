//! Commands that the VMkernel cuts into smaller pieces than today (`Disk.DiskMaxIOSize`) [LAMW].
//!
//! A curve is of whole commands, and a run takes each piece for one: as dear as a whole. That is one end. Where an
//! array takes as much longer as a command is larger, the pieces together cost it what the whole did, and those
//! that are served at once are done sooner, up to as many times as they are: that is the other one.

use counters::Counter;
use diagnose::SimulatedRow;
use knobs::{Advanced, Setting};

use crate::{DeviceCalibration, cost::pieces_of, ranges::LEVEL, run::Key};

/// How many pieces a command becomes at most, of the guest with most; nothing where none is cut.
fn most(calibrated: &[DeviceCalibration], settings: &[Setting]) -> Option<f64> {
    let cut_kib = settings.iter().rev().find_map(|setting| match setting {
        Setting::Advanced { option: Advanced::DiskMaxIoSize, value } => {
            Some(f64::from(value.unwrap_or(Advanced::DiskMaxIoSize.info().default)))
        }
        _ => None,
    })?;
    let guests = calibrated.iter().flat_map(|device| &device.guests);
    let pieces = guests.map(|guest| pieces_of(guest.size_kib, cut_kib));
    pieces.reduce(f64::max).filter(|pieces| *pieces > 1.0)
}

/// Why the range is as wide.
pub(crate) fn doubt(calibrated: &[DeviceCalibration], settings: &[Setting]) -> Option<String> {
    let pieces = most(calibrated, settings)?;
    Some(format!(
        "What a piece of a command costs the array beside the whole no counter shows: as much, or its part, and up to \
         {pieces:.0} of them may be served at once. The change itself would tell, tried and recorded."
    ))
}

/// What holds where commands are cut, whatever the readings say.
pub(crate) fn hold(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    settings: &[Setting],
    rows: &mut [SimulatedRow],
) {
    let Some(pieces) = most(calibrated, settings) else { return };
    for (key, row) in keys.iter().zip(rows) {
        let Some(was) = key.captured.filter(|_| !key.is(Counter::DeviceQDepth)) else { continue };
        let chance = key.chance + LEVEL;
        let [quick, slow] = match key.is(Counter::Commands) {
            true => [was, was * pieces],
            false => [was / pieces, was],
        };
        (row.low, row.high) =
            (row.low.min(quick * (1.0 - chance)), row.high.max(slow * (1.0 + chance)));
    }
}
