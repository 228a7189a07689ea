//! Devices that are of one array by their names and are modelled apart, for they are not alike as quick and no row
//! shows one of them without the other: whether the one feels the load of the other is not known.
//!
//! With more outstanding an array does no less and is no quicker (reference `array-and-control.md`, section 1), so
//! latency stays at least, and goes with the commands of both together at most. Who is quicker waits as much longer
//! or shorter behind them as the slowest does, where they wait in one line; and who has fewer commands than before
//! may be no quicker, where the others take what it leaves.

use counters::Counter;
use diagnose::SimulatedRow;
use levels::little;

use crate::{
    DeviceCalibration, GuestCalibration,
    question::Asked,
    ranges::{LEVEL, place_in, place_of},
    run::Key,
    shared::are_together,
};

/// The part of a latency that is left at least, of which nothing shows how much of it is a wait for others.
pub(crate) const LEFT: f64 = 0.1;

/// What holds of each of them where a change gives another one more or fewer commands at the array.
pub(crate) fn hold(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    asked: &Asked<'_>,
    rows: &mut [SimulatedRow],
) {
    let parts: Vec<[f64; 3]> = calibrated
        .iter()
        .map(|device| crowd(keys, (device, calibrated), asked.said, rows))
        .collect();
    for (device, [shorter_ms, longer_ms, fewer]) in calibrated.iter().zip(parts) {
        let kept = if asked.is_of_depth { left(keys, device, fewer, rows) } else { 1.0 };
        let vms = device.guests.iter().map(|guest| (false, guest.vm.as_str()));
        let pauses_ms = device.guests.iter().map(|guest: &GuestCalibration| guest.pause_ms.0);
        let pause_ms = pauses_ms.reduce(f64::min).unwrap_or_default();
        for of in vms.chain([(true, device.device.as_str())]) {
            let place = |counter| place_in(keys, of, counter);
            let (Some(rate), Some(gavg)) = (place(Counter::Commands), place(Counter::GuestLatency))
            else {
                continue;
            };
            let was_ms = keys[gavg].captured.unwrap_or(rows[gavg].today).max(1e-9);
            let slower = |ms: f64| (ms + pause_ms) / (was_ms + pause_ms);
            let part = (1.0 - shorter_ms / was_ms).max(LEFT);
            rows[rate].low *= kept / slower(was_ms + longer_ms);
            rows[rate].high /= slower(was_ms * part);
            rows[gavg].high /= kept;
            for at in [Some(gavg), place(Counter::DriverLatency)].into_iter().flatten() {
                (rows[at].low, rows[at].high) = (rows[at].low * part, rows[at].high + longer_ms);
            }
        }
    }
}

/// To which part the least of a device's rate comes down where its commands take as long as before, of which it has
/// `fewer` at the array, as a part.
fn left(keys: &[Key], device: &DeviceCalibration, fewer: f64, rows: &[SimulatedRow]) -> f64 {
    let rate = place_of(keys, &device.device, Counter::Commands);
    let least = |at: usize| Some(keys[at].captured? * (1.0 - fewer) / rows[at].low.max(1e-9));
    rate.and_then(least).filter(|_| fewer > 0.0).map_or(1.0, |part| part.min(1.0))
}

/// How many milliseconds shorter and longer the slowest commands take at most where a device shares its array with
/// those that are modelled apart, and which part of its own commands it has no more there; nothing where there are
/// none.
fn crowd(
    keys: &[Key],
    (device, all): (&DeviceCalibration, &[DeviceCalibration]),
    said: &[Vec<String>],
    rows: &[SimulatedRow],
) -> [f64; 3] {
    let captured =
        |of: &DeviceCalibration, counter| keys[place_of(keys, &of.device, counter)?].captured;
    let load = |of: &DeviceCalibration| {
        let ms = captured(of, Counter::DriverLatency)?;
        Some((little(captured(of, Counter::Commands)?, ms), ms))
    };
    // Parts by which there are fewer and more, but for what chance does.
    let change = |of: &DeviceCalibration| {
        let at = place_of(keys, &of.device, Counter::MeanActive)?;
        let was = keys[at].captured.unwrap_or(rows[at].today).max(1e-9);
        let chance = keys[at].chance + LEVEL;
        let part = |to: f64| Some(to / was - 1.0).filter(|part| part.abs() > chance);
        let [fewer, more] = [rows[at].low, rows[at].high].map(|to| part(to).unwrap_or_default());
        Some([(-fewer).max(0.0), more.max(0.0)])
    };
    let is_apart = |of: &&DeviceCalibration| {
        of.array != device.array && are_together(said, &of.device, &device.device)
    };
    let mut others = all.iter().filter(is_apart).peekable();
    let (Some((mut whole, mut slowest_ms)), true) = (load(device), others.peek().is_some()) else {
        return [0.0; 3];
    };
    let (mut fewer, mut more) = (0.0, 0.0);
    for (other, (inside, ms)) in others.filter_map(|other| Some((other, load(other)?))) {
        let [less, further] = change(other).unwrap_or_default();
        (fewer, more) = (fewer + less * inside, more + further * inside);
        (whole, slowest_ms) = (whole + inside, slowest_ms.max(ms));
    }
    let own = change(device).map_or(0.0, |[fewer, _]| fewer);
    [slowest_ms * fewer / whole.max(1e-9), slowest_ms * more / whole.max(1e-9), own]
}
