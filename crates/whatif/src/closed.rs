//! What Little's law leaves the VMs of a device on which a limit is put, whatever the readings say.
//!
//! How quick an array is for fewer commands than it had, no sample may show, but what that comes to is bounded: so many
//! times as quick as commands were there at most, and of a VM that has less than one outstanding its pauses are what
//! makes its rate. What a device has outstanding is the sum of what its VMs have.

use counters::Counter;
use diagnose::SimulatedRow;
use levels::{little, sum};

use crate::{
    DeviceCalibration, GuestCalibration,
    ranges::{LEVEL, at_least, at_most, place_in, place_of},
    run::Key,
};

/// What holds of the devices on which a VM has a limit, before what holds of sums.
pub(crate) fn hold(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    vm: &str,
    rows: &mut [SimulatedRow],
) {
    let is_on = |of: &&DeviceCalibration| of.guests.iter().any(|guest| guest.vm == vm);
    for device in calibrated.iter().filter(is_on) {
        hold_to_quickest(keys, device, rows);
        for guest in device.guests.iter().filter(|guest| guest.vm != vm) {
            hold_to_pauses(keys, guest, rows);
        }
        hold_to_threads(keys, device, vm, rows);
        hold_to_outstanding(keys, device, rows);
    }
}

/// A command takes no less than its part of what it takes beside all that there are (reference `array-and-control.md`,
/// section 1: n / R(n) rises with n).
fn hold_to_quickest(keys: &[Key], device: &DeviceCalibration, rows: &mut [SimulatedRow]) {
    let place = |counter| place_of(keys, &device.device, counter);
    let with = |counter| keys[place(counter)?].captured;
    let (Some(rate), Some(davg_ms)) = (with(Counter::Commands), with(Counter::DriverLatency))
    else {
        return;
    };
    // In bursts there are as many as there are slots.
    let slots = with(Counter::DeviceQDepth).unwrap_or(f64::INFINITY);
    let most = little(rate, davg_ms).max(slots).max(1.0);
    let of_guest = |guest: &GuestCalibration| guest.davg_ms.unwrap_or(davg_ms) / most;
    let quickest_ms = device.guests.iter().map(of_guest).fold(davg_ms / most, f64::min);
    for counter in [Counter::DriverLatency, Counter::GuestLatency] {
        if let Some(at) = place(counter) {
            at_least(&mut rows[at], quickest_ms);
        }
    }
    for guest in &device.guests {
        if let Some(at) = place_in(keys, (false, &guest.vm), Counter::GuestLatency) {
            at_least(&mut rows[at], of_guest(guest));
        }
    }
}

/// Who has less than one command outstanding sends no more than its pauses let it.
fn hold_to_pauses(keys: &[Key], guest: &GuestCalibration, rows: &mut [SimulatedRow]) {
    let Some(at) = place_in(keys, (false, &guest.vm), Counter::Commands) else { return };
    let most = guest.most_iops();
    if let Some(was) = keys[at].captured.filter(|_| most.is_finite()) {
        at_most(&mut rows[at], was.max(most) * (1.0 + keys[at].chance + LEVEL));
    }
}

/// Whose threads never pause may do as many as it is answered quickly, and its device with it: no more than the array did
/// for the VM that has the limit, for with fewer outstanding it serves no more.
fn hold_to_threads(keys: &[Key], device: &DeviceCalibration, vm: &str, rows: &mut [SimulatedRow]) {
    let mut more = 0.0;
    let limited = place_in(keys, (false, vm), Counter::Commands);
    let lost = limited.and_then(|at| Some((keys[at].captured? - rows[at].low).max(0.0)));
    let others = device.guests.iter().filter(|guest| guest.vm != vm && guest.never_pauses);
    for guest in others {
        let place = |counter| place_in(keys, (false, &guest.vm), counter);
        let (Some(rate), Some(gavg)) = (place(Counter::Commands), place(Counter::GuestLatency))
        else {
            continue;
        };
        let all = guest.iops + lost.unwrap_or_default();
        let most = (1000.0 * guest.outstanding / rows[gavg].low.max(1e-9)).min(all);
        more += (most - rows[rate].high).max(0.0);
        rows[rate].high = rows[rate].high.max(most);
    }
    let place = |counter| place_of(keys, &device.device, counter);
    let Some(rate) = place(Counter::Commands).filter(|_| more > 0.0) else { return };
    let was = rows[rate].high;
    rows[rate].high += more;
    // The waits of the others are of so many more commands.
    let part = was / rows[rate].high;
    for counter in [Counter::GuestLatency, Counter::KernelLatency] {
        if let Some(at) = place(counter) {
            rows[at].low *= part;
        }
    }
}

/// The commands of a device take no longer than all that its VMs may have outstanding, at its rate.
fn hold_to_outstanding(keys: &[Key], device: &DeviceCalibration, rows: &mut [SimulatedRow]) {
    let place = |counter| place_of(keys, &device.device, counter);
    let (Some(all), Some(gavg)) = (place(Counter::Commands), place(Counter::GuestLatency)) else {
        return;
    };
    let stands = device.guests.iter().map(|guest| {
        let of = |counter| place_in(keys, (false, &guest.vm), counter);
        let (rate, ms) = (of(Counter::Commands)?, of(Counter::GuestLatency)?);
        Some(little(rows[rate].high, rows[ms].high))
    });
    let Some(stands) = sum(stands) else { return };
    let most_ms = 1000.0 * stands / rows[all].low.max(1e-9);
    let most_ms = most_ms * (1.0 + LEVEL);
    if most_ms > rows[gavg].low {
        at_most(&mut rows[gavg], most_ms);
    }
    let whole_ms = rows[gavg].high;
    for counter in [Counter::KernelLatency, Counter::DriverLatency] {
        if let Some(at) = place(counter).filter(|at| rows[*at].low <= whole_ms) {
            at_most(&mut rows[at], whole_ms);
        }
    }
}
