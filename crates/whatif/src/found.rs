//! A depth that is found by latency (kavg's own law): the one at which a command takes twice what it takes alone, and
//! that is known of arrays alone which were seen with next to nothing outstanding.
//!
//! Readings have the array at an end, equal servers that are full or one that nobody waits for; where it is between,
//! the depth that is found is so as well, and costs some of the rate, which at either end it does not. How much at
//! most follows where latency rises no slower with each command more, from `alone` for one to twice that for the depth:
//!
//! ```text
//!   ms(n) >= alone * (1 + (n - 1) / (depth - 1)), so n / ms(n) <= (depth - 1) / alone, twice the rate at that depth
//! ```

use counters::Counter;
use diagnose::SimulatedRow;
use knobs::Setting;

use crate::{
    ArrayCalibration, DeviceCalibration, GuestCalibration, Habit,
    question::Asked,
    ranges::{LEVEL, place_in, place_of},
    run::Key,
};

/// The least part of the rate that is left.
const LEFT: f64 = 0.5;
/// Commands outstanding of which one is as good as alone.
const ALONE: f64 = 2.0;

/// The devices of which the depth is to be found, and how long a command takes alone at whose array no sample shows.
fn unknown<'c>(
    (calibrated, arrays): (&'c [DeviceCalibration], &'c [ArrayCalibration]),
    settings: &'c [Setting],
) -> impl Iterator<Item = &'c DeviceCalibration> {
    let finds = |device: &str| {
        let is_it = |set: &Setting| match set {
            Setting::DepthByLatency { device: name, on } => *on && name == device,
            _ => false,
        };
        settings.iter().any(is_it)
    };
    calibrated.iter().filter(move |of| finds(&of.device) && arrays[of.array].outstanding[0] > ALONE)
}

/// Why the range is as wide, and what would tell.
pub(crate) fn doubt(
    model: (&[DeviceCalibration], &[ArrayCalibration]),
    asked: &Asked<'_>,
) -> Option<String> {
    let device = unknown(model, asked.settings).next()?;
    Some(format!(
        "A depth that is found by latency is the one at which a command takes twice what it takes alone, and how long \
         that is no sample shows: of {} it may be any up to today's, and leaves half of the rate at least. A recording \
         that begins in a quiet hour would tell.",
        device.device
    ))
}

/// What holds of a device whose depth is found, whatever the readings say.
pub(crate) fn hold(
    keys: &[Key],
    model: (&[DeviceCalibration], &[ArrayCalibration]),
    asked: &Asked<'_>,
    rows: &mut [SimulatedRow],
) {
    for device in unknown(model, asked.settings) {
        let place = |counter| place_of(keys, &device.device, counter);
        let stands: f64 = device.guests.iter().map(|guest| guest.outstanding).sum();
        for (counter, least, most) in [
            (Counter::DeviceQDepth, 1.0, 0.0),
            (Counter::MeanActive, 1.0, 0.0),
            (Counter::MeanQueued, f64::INFINITY, stands),
        ] {
            if let Some(at) = place(counter) {
                rows[at].low = rows[at].low.min(least);
                rows[at].high = rows[at].high.max(most);
            }
        }
        // Who comes at a rate of its own comes all the same, and waits.
        let comes = device.guests.iter().any(|guest| guest.habit != Habit::Closed);
        let late_ms = if comes { (1.0 - LEFT) * asked.span_ms / 2.0 } else { 0.0 };
        hold_to_half(keys, (true, &device.device), (1.0, late_ms), rows);
        let all = device.guests.iter().map(|guest| guest.iops).sum::<f64>();
        let each = all / device.guests.len().max(1) as f64;
        for GuestCalibration { vm, iops, .. } in &device.guests {
            // With fewer slots who has the most of them has a part as large as any at least.
            hold_to_half(keys, (false, vm), ((each / iops.max(1e-9)).min(1.0), late_ms), rows);
        }
    }
}

/// What is left of a rate at least, of which that `part` goes besides to who has fewer slots today.
fn hold_to_half(
    keys: &[Key],
    of: (bool, &str),
    (part, late_ms): (f64, f64),
    rows: &mut [SimulatedRow],
) {
    let left = LEFT * part;
    for (counter, is_rate) in [(Counter::Commands, true), (Counter::GuestLatency, false)] {
        let Some(at) = place_in(keys, of, counter) else { continue };
        let (row, Some(captured)) = (&mut rows[at], keys[at].captured) else { continue };
        let chance = keys[at].chance + LEVEL;
        if is_rate {
            row.low = row.low.min(captured * left * (1.0 - chance));
        } else {
            row.high = row.high.max((captured / left + late_ms) * (1.0 + chance));
        }
    }
}
