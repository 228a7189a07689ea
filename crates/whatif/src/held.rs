//! What a change leaves of commands that the array holds to a rate (QoS of a volume).
//!
//! They are outstanding, and no load: an array of which they are the most was never seen with as many at work. So
//! nothing shows how long those take that are not held where more of them come in their place.

use counters::Counter;
use diagnose::SimulatedRow;
use levels::little;

use crate::{
    DeviceCalibration, GuestCalibration,
    ranges::{place_in, place_of},
    run::Key,
};

/// Why it is not known how much others gain where less waits at the array for a policy, and what would tell.
pub(crate) fn doubt(calibrated: &[DeviceCalibration]) -> Option<String> {
    let device = calibrated.iter().find(|device| device.is_throttled())?;
    Some(format!(
        "What waits at the array of {} for a rate that it is held to is outstanding and no load, so nothing shows how \
         quick the others are where more of them come in its place: at worst they do what they do today. A recording \
         in which it waits less would tell.",
        device.device
    ))
}

/// What holds of devices of which the array holds disks to rates, whatever the readings say.
pub(crate) fn hold_to_policies(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    rows: &mut [SimulatedRow],
) {
    hold_to_freed(keys, calibrated, rows);
    for device in calibrated.iter().filter(|device| device.is_throttled()) {
        hold_to_waits(keys, device, rows);
    }
}

/// What a VM does at most under a limit between two rates that the array held it to at different times: credit for bursts
/// that is not spent lasts (reference `array-and-control.md`, section 6.1), so it may have the limit all the time, and wait
/// for nothing at the array then.
pub(crate) fn hold_to_credit(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    (vm, limit_iops): (&str, f64),
    rows: &mut [SimulatedRow],
) {
    let of_vm = |vm: &str, counter| place_in(keys, (false, vm), counter);
    for device in calibrated {
        let Some(guest) = device.guests.iter().find(|guest| guest.vm == vm) else { continue };
        let [least, most] =
            [f64::min, f64::max].map(|of| guest.throttled.iter().copied().reduce(of));
        let place = |counter| place_of(keys, &device.device, counter);
        let (Some(own), Some(all)) = (of_vm(vm, Counter::Commands), place(Counter::Commands))
        else {
            continue;
        };
        let to = most.unwrap_or_default().min(limit_iops);
        if least.is_none_or(|least| limit_iops <= least) {
            continue;
        }
        rows[own].high = rows[own].high.max(to);
        let mut vms: Vec<&str> = device.guests.iter().map(|guest| guest.vm.as_str()).collect();
        vms.dedup();
        let highs = vms.iter().filter_map(|vm| Some(rows[of_vm(vm, Counter::Commands)?].high));
        let (was, becomes) = (rows[all].high, highs.sum::<f64>().max(rows[all].high));
        rows[all].high = becomes;
        let free = device.guests.iter().filter(|guest| guest.throttled_at_iops.is_none());
        let free_ms = free.filter_map(|guest| guest.davg_ms).reduce(f64::min);
        let inside = free_ms.map(|ms| little(rows[all].low, ms));
        // By Little's law, of as many outstanding.
        let gavg = place(Counter::GuestLatency);
        let gavg_ms = gavg.map(|gavg| rows[gavg].low * was / becomes);
        let lows = [
            (place(Counter::DriverLatency), free_ms),
            (place(Counter::MeanActive), inside),
            (gavg, gavg_ms),
        ];
        for (place, low) in lows {
            if let (Some(place), Some(low)) = (place, low) {
                rows[place].low = rows[place].low.min(low);
            }
        }
    }
}

/// What the array makes of commands below the rates that it holds disks to: where it counts their
/// pieces, which come at once, one of each such disk may be waiting there (reference
/// `array-and-control.md`, section 6.4).
fn hold_to_waits(keys: &[Key], device: &DeviceCalibration, rows: &mut [SimulatedRow]) {
    let place = |counter| place_of(keys, &device.device, counter);
    let held = device.guests.iter().filter(|guest| guest.throttled_at_iops.is_some()).count();
    let Some(rate) = place(Counter::Commands) else { return };
    let waiting = held as f64;
    // By Little's law. They do not wait in the host then.
    let wait_ms = 1000.0 * waiting / rows[rate].low.max(1e-9);
    for (there, host, part) in [
        (Counter::DriverLatency, Counter::KernelLatency, wait_ms),
        (Counter::MeanActive, Counter::MeanQueued, waiting),
    ] {
        if let (Some(there), Some(host)) = (place(there), place(host)) {
            rows[there].high += part;
            rows[host].low = (rows[host].low - part).max(0.0);
        }
    }
}

/// What those do at least that the array does not hold, where the others leave slots to them or there are more of
/// these: as much as today, for as long as today all in all.
pub(crate) fn hold_to_freed(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    rows: &mut [SimulatedRow],
) {
    for device in calibrated.iter().filter(|device| device.is_throttled()) {
        hold_to_today(keys, device, rows);
    }
}

/// Whether those that the array does not hold are as good as alone there, one after the other, before and after:
/// each then takes what it takes today.
fn come_alone(keys: &[Key], device: &DeviceCalibration, rows: &[SimulatedRow]) -> bool {
    /// Commands that are there on average.
    const ALONE: f64 = 0.1;
    let inside = |guest: &GuestCalibration| {
        let rate = place_in(keys, (false, &guest.vm), Counter::Commands)?;
        Some(little(rows[rate].high, guest.davg_ms?))
    };
    let free = device.guests.iter().filter(|guest| guest.throttled_at_iops.is_none());
    free.map(inside).sum::<Option<f64>>().is_some_and(|inside| inside <= ALONE)
}

fn hold_to_today(keys: &[Key], device: &DeviceCalibration, rows: &mut [SimulatedRow]) {
    let place = |counter| place_of(keys, &device.device, counter);
    let (Some(all), Some(gavg)) = (place(Counter::Commands), place(Counter::GuestLatency)) else {
        return;
    };
    let (mut fewer, mut slowest) = (0.0, 0.0_f64);
    let is_free = |guest: &&GuestCalibration| guest.throttled_at_iops.is_none();
    if come_alone(keys, device, rows) {
        return;
    }
    for guest in device.guests.iter().filter(is_free) {
        let of = |counter| place_in(keys, (false, &guest.vm), counter);
        let (Some(rate), Some(ms)) = (of(Counter::Commands), of(Counter::GuestLatency)) else {
            continue;
        };
        let today = |at: usize, part: f64| {
            keys[at].captured.map(|was| was * (1.0 + part * keys[at].chance))
        };
        let (Some(least), Some(most)) = (today(rate, -1.0), today(ms, 1.0)) else { continue };
        fewer += (rows[rate].low - least).max(0.0);
        rows[rate].low = rows[rate].low.min(least);
        rows[ms].high = rows[ms].high.max(most);
        slowest = slowest.max(most);
    }
    let was = rows[all].low;
    if fewer <= 0.0 || was <= fewer {
        return;
    }
    rows[all].low = was - fewer;
    // By Little's law, of as many outstanding.
    let longer = was / rows[all].low;
    rows[gavg].high *= longer;
    if let Some(davg) = place(Counter::DriverLatency) {
        rows[davg].high = rows[davg].high.max(slowest);
    }
    // What a limit lets through is as long on its way, and does not wait before it then.
    let held = device.guests.iter().filter(|guest| guest.throttled_at_iops.is_some());
    let rates = held.filter_map(|guest| place_in(keys, (false, &guest.vm), Counter::Commands));
    let inside = little(rates.map(|at| rows[at].high).sum(), slowest);
    let (actv, qued) = (place(Counter::MeanActive), place(Counter::MeanQueued));
    let (Some(actv), Some(qued), Some(kavg)) = (actv, qued, place(Counter::KernelLatency)) else {
        return;
    };
    rows[actv].high += inside;
    let less = (1.0 - inside / rows[qued].low.max(1e-9)).max(0.0);
    rows[qued].low *= less;
    (rows[kavg].low, rows[kavg].high) = (rows[kavg].low * less, rows[kavg].high * longer);
}
