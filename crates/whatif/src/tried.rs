//! What was seen at other depths: at the one that is asked for, and at one that was tried on the way there.

use counters::Counter;
use diagnose::SimulatedRow;
use knobs::Setting;
use levels::Measured;

use crate::{
    DeviceCalibration, Habit,
    observe::Device,
    question::depth_asked,
    ranges::{LEVEL, place_of},
    run::{self, Key},
};

/// What was seen at the depth that is asked for, of a load that may be the one in question, may be so
/// again; what was tried is so again, but for chance.
pub(crate) fn hold_to_what_was_seen(keys: &[Key], rounding: f64, rows: &mut [SimulatedRow]) {
    for (key, row) in keys.iter().zip(rows) {
        let Some([low, high]) = key.seen_between(rounding) else { continue };
        let chance = key.chance + LEVEL;
        let around = [low * (1.0 - chance), high * (1.0 + chance)];
        let overlaps = row.low <= around[1] && around[0] <= row.high;
        (row.low, row.high) = match key.seen.is_some_and(|seen| seen.is_tried) {
            true if overlaps => (row.low.max(around[0]), row.high.min(around[1])),
            true => (around[0], around[1]),
            false => (row.low.min(low), row.high.max(high)),
        };
    }
}

/// What a queue does at least that is deeper than one that was tried, where guests may ask for no more than that
/// gave them, and what they had put aside before may be gone by its end: what waited there may wait nowhere, and no
/// more is at the array.
pub(crate) fn hold_to_tried(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    rounding: f64,
    rows: &mut [SimulatedRow],
) {
    for device in calibrated {
        let place = |counter| place_of(keys, &device.device, counter);
        let counters = [Counter::DeviceQDepth, Counter::DriverLatency];
        let [Some(depth), Some(davg)] = counters.map(place) else { continue };
        let (Some(davg_ms), Some(was)) = (keys[davg].least_between(), keys[davg].captured) else {
            continue;
        };
        if rows[depth].high <= rows[depth].today {
            continue;
        }
        let is_own = |key: &Key| {
            key.object == device.device || device.guests.iter().any(|guest| guest.vm == key.object)
        };
        for (key, row) in keys.iter().zip(rows.iter_mut()).filter(|(key, _)| is_own(key)) {
            let (Some([_, high]), Some(least)) =
                (key.between(rounding + LEVEL), key.least_between())
            else {
                continue;
            };
            let own_ms = device
                .guests
                .iter()
                .find(|guest| guest.vm == key.object)
                .and_then(|guest| guest.davg_ms);
            let least = match () {
                () if key.is(Counter::GuestLatency) => {
                    davg_ms * own_ms.map_or(1.0, |own_ms| own_ms / was)
                }
                () if key.is(Counter::KernelLatency) || key.is(Counter::MeanQueued) => 0.0,
                () if key.is(Counter::DeviceQDepth) => continue,
                () => least,
            };
            row.low = row.low.min(least * (1.0 - key.chance - rounding - LEVEL));
            row.high = row.high.max(high);
        }
    }
}

/// Adds to the counters what was seen at the depths that are asked for, and at those that were tried on the
/// way there. Whether what is asked for was tried, and whether guests want more than those gave.
pub(crate) fn add_seen(
    keys: &mut [Key],
    recording: &Measured,
    (devices, calibrated): (&[Device<'_>], &[DeviceCalibration]),
    (settings, window): (&[Setting], &[usize]),
) -> [bool; 2] {
    let (mut is_tried, mut is_hungry) = (false, true);
    for (device, of) in devices.iter().zip(calibrated) {
        let Some(asked) = depth_asked(settings, &device.name) else { continue };
        let asked = f64::from(asked);
        let seen = device.seen_at(asked, window);
        let is_beside = device.is_beside(asked, &seen, window);
        if !seen.is_empty() {
            let seen = (asked, seen.as_slice(), is_beside);
            run::add_seen(keys, (recording, device), seen, |key| &mut key.seen);
        }
        is_tried |= is_beside;
        if let Some((depth, seen)) = device.tried_towards(asked, window) {
            let seen = (depth, seen.as_slice(), true);
            let is_closed = of.guests.iter().all(|guest| guest.habit == Habit::Closed);
            is_hungry &= is_closed && device.keeps_waiting(seen.1, window);
            run::add_seen(keys, (recording, device), seen, |key| &mut key.between);
        }
    }
    [is_tried, is_hungry]
}
