//! A queue whose depth is that of instants: DSNRO may hold it while VMs compete, and all samples be of the time between.
//!
//! Then a deeper DSNRO takes a wait away that no depth of a row explains. How long the queue is held no row tells, but
//! what it costs does: the wait, which may go altogether. Whom the shared queue served in turn waits with all others at
//! the array then, no longer than its latency rises with the slots (reference `array-and-control.md`, section 1).

use counters::Counter;
use diagnose::{Facts, SimulatedRow};

use crate::{
    DeviceCalibration,
    observe::Device,
    question::{Asked, depth_asked},
    ranges::{LEVEL, place_in, place_of},
    run::Key,
};

/// The first device of which that may be so, and of which nothing says what DSNRO is.
pub(crate) fn of<'d>(
    devices: &'d [Device<'_>],
    facts: &Facts,
    window: &[usize],
) -> Option<&'d str> {
    let is_known = |name: &str| facts.devices.get(name).is_some_and(|facts| facts.dsnro.is_some());
    let mut own = devices.iter().filter(|device| !is_known(&device.name));
    own.find(|device| device.may_be_lowered(window)).map(|device| device.name.as_str())
}

/// The same where a depth of it is asked for.
pub(crate) fn asked<'a>(asked: &Asked<'a>) -> Option<(&'a str, u32)> {
    let device = asked.lowered?;
    Some((device, depth_asked(asked.settings, device)?))
}

/// Why something may be gained at a depth that every row has, and what would tell.
pub(crate) fn doubt(device: &str) -> String {
    format!(
        "Commands to {device} wait for slots while no row shows its queue full: DSNRO may hold it below the DQLEN of \
         the samples while its VMs compete between them, so the wait may go or stay. `esxcli storage core device list \
         -d {device}` says what DSNRO is (--esxcli FILE); a recording of shorter samples shows the depth in the bursts."
    )
}

/// What holds of that device, whatever the readings say.
pub(crate) fn hold(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    of: &Asked<'_>,
    rows: &mut [SimulatedRow],
) {
    let Some((name, slots)) = asked(of) else { return };
    let Some(device) = calibrated.iter().find(|device| device.device == name) else { return };
    let place = |counter| place_of(keys, name, counter);
    let with = |at: Option<usize>| Some((at?, keys[at?].captured?));
    let counters = [Counter::Commands, Counter::GuestLatency, Counter::KernelLatency];
    let [Some((all, rate)), Some((gavg, gavg_ms)), Some((kavg, kavg_ms))] =
        counters.map(|counter| with(place(counter)))
    else {
        return;
    };
    let Some((_, davg_ms)) = with(place(Counter::DriverLatency)) else { return };
    let chance = |at: usize| keys[at].chance + LEVEL;
    let least_ms = (gavg_ms - kavg_ms).min(davg_ms);
    rows[all].high = rows[all].high.max(rate * gavg_ms / least_ms.max(1e-9) * (1.0 + chance(all)));
    rows[gavg].low = rows[gavg].low.min(least_ms * (1.0 - chance(gavg)));
    rows[kavg].low = 0.0;
    if let Some(qued) = place(Counter::MeanQueued) {
        rows[qued].low = 0.0;
    }
    let of_vm = |vm: &str| {
        let of = |counter| with(place_in(keys, (false, vm), counter));
        Some((of(Counter::Commands)?, of(Counter::GuestLatency)?))
    };
    let vms: Vec<_> = device.guests.iter().filter_map(|guest| of_vm(&guest.vm)).collect();
    let slowest_ms = vms.iter().map(|(_, (_, ms))| *ms).fold(gavg_ms, f64::max);
    // As many as there are slots take no longer than their part of the slots in use does.
    let crowd = (f64::from(slots) / (rate * davg_ms / 1000.0).max(1e-9)).max(1.0);
    for &((at, own), (ms, own_ms)) in &vms {
        rows[at].high = rows[at].high.max(own * own_ms / least_ms);
        rows[ms].low = rows[ms].low.min(least_ms.min(own_ms) * (1.0 - chance(ms)));
    }
    let whole: f64 = vms.iter().map(|((at, _), _)| rows[*at].high).sum();
    for &((at, own), (ms, own_ms)) in &vms {
        // What the others cannot have is left.
        let left = (rows[all].low - (whole - rows[at].high)) / own;
        let part = (own_ms / (slowest_ms * crowd)).max(left).min(1.0);
        rows[at].low = rows[at].low.min(own * part * (1.0 - chance(at)));
        rows[ms].high = rows[ms].high.max(own_ms / part * (1.0 + chance(ms)));
    }
}
