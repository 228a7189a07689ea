//! What holds of any array and any guests, whatever the readings say: it widens or narrows the range
//! that they span.
//!
//! It stands behind `answer`, which has simulated every reading. These are the laws that need no
//! model: a deeper queue serves no less, a shorter one loses no more than its part of what was in its
//! slots, what was seen at another depth may be so again, and by Little's law no command is under
//! way longer than the queues of the guests allow.

use counters::Counter;
use diagnose::SimulatedRow;
use levels::little;

use crate::{
    ArrayCalibration, DeviceCalibration, GuestCalibration, Habit,
    question::{Asked, Limited},
    run::Key,
};

/// What falls or rises by less than this is level.
const LEVEL: f64 = 0.01;

/// All of them, for a question that is one of depths.
pub(crate) fn hold(
    keys: &[Key],
    (calibrated, arrays): (&[DeviceCalibration], &[ArrayCalibration]),
    (rounding, asked): (f64, &Asked<'_>),
    rows: &mut [SimulatedRow],
) {
    // What the array holds to a rate stays at it.
    let is_held = calibrated.first().is_some_and(DeviceCalibration::is_mostly_held);
    let is_known = is_held || arrays.iter().all(ArrayCalibration::is_known_above);
    hold_to_laws(keys, (rounding, is_known), rows);
    hold_to_slots(keys, calibrated, asked, rows);
    hold_to_what_was_seen(keys, rounding, rows);
}

/// What holds of any array and any guests, whatever the readings say: a deeper queue makes the
/// commands of a device neither fewer nor longer under way between the virtual adapter and the
/// completion, a shorter one neither more nor shorter. It is said of the one device whose depth
/// moves, and not where several do.
fn hold_to_laws(keys: &[Key], (rounding, is_known): (f64, bool), rows: &mut [SimulatedRow]) {
    /// Change of DQLEN that counts.
    const MOVES: f64 = 0.02;
    /// Part that an array loses at most where it gets more than it was seen to take: one that
    /// answers TASK SET FULL does less with more, and so do some at great depth [PARDA].
    const REFUSED: f64 = 0.2;
    /// Part of GAVG that is a small wait.
    const SMALL: f64 = 0.1;
    let depths: Vec<(String, bool)> = keys
        .iter()
        .zip(rows.iter())
        .filter(|(key, _)| key.is(Counter::DeviceQDepth))
        .filter_map(|(key, row)| {
            let deeper = row.high > row.today * (1.0 + MOVES);
            let shorter = row.low < row.today * (1.0 - MOVES);
            (deeper != shorter).then(|| (key.object.clone(), deeper))
        })
        .collect();
    let [(device, is_deeper)] = depths.as_slice() else { return };
    let captured = |counter| {
        keys.iter()
            .find(|key| key.object == *device && key.is(counter))
            .and_then(|key| key.captured)
    };
    // A wait that is a small part of the whole may go altogether, bursts or not.
    let (gavg, kavg) = (captured(Counter::GuestLatency), captured(Counter::KernelLatency));
    let gone = match (gavg, kavg) {
        (Some(gavg), Some(kavg)) if *is_deeper && kavg <= SMALL * gavg => 1.0 - kavg / gavg,
        _ => 1.0,
    };
    let is_small = gavg.zip(kavg).is_some_and(|(gavg, kavg)| kavg <= SMALL * gavg);
    let is_refused = *is_deeper && !is_small && !is_known;
    // What the array loses its VMs lose.
    let of_vms = keys.iter().zip(rows.iter_mut()).filter(|(key, _)| !key.is_device());
    for (_, row) in of_vms.filter(|(key, _)| is_refused && key.is(Counter::Commands)) {
        row.low *= 1.0 - REFUSED;
    }
    for (key, row) in keys.iter().zip(rows).filter(|(key, _)| key.object == *device) {
        let Some(captured) = key.captured else { continue };
        let refused = if is_refused { REFUSED } else { 0.0 };
        let chance = key.chance + rounding + LEVEL + refused;
        let (least, most) = (captured * (1.0 - chance), captured * (1.0 + chance));
        if key.is(Counter::Commands) == *is_deeper && key.is_total() {
            row.low = if is_refused { row.low.min(least) } else { row.low.max(least) };
            row.high = row.high.max(most / gone);
        } else if key.is_total() {
            row.high = if is_refused { row.high.max(most) } else { row.high.min(most) };
            row.low = row.low.min(least * gone);
        }
    }
}

/// What a queue with fewer slots does at worst to commands that nobody holds back: it serves no
/// less than its part of what the slots in use served before (`array-and-control.md`, section 1: n
/// / R(n) rises with n, but no faster than n). If they come all the same, what it does not serve
/// waits until the load ends.
fn hold_to_slots(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    asked: &Asked<'_>,
    rows: &mut [SimulatedRow],
) {
    /// Part of the slots up to which chance does not fill them for long.
    const BRIM: f64 = 0.8;
    for device in calibrated {
        let comes = |guest: &GuestCalibration| guest.habit != Habit::Closed && !guest.is_pinned;
        let place = |counter| {
            keys.iter()
                .position(|key| key.is_device() && key.object == device.device && key.is(counter))
        };
        let captured = |counter| place(counter).and_then(|place| keys[place].captured);
        let counters = [Counter::Commands, Counter::DriverLatency, Counter::DeviceQDepth];
        let ([Some(rate), Some(davg_ms), Some(depth)], Some(slots)) =
            (counters.map(captured), place(Counter::DeviceQDepth).map(|place| rows[place].low))
        else {
            continue;
        };
        let in_use = if asked.is_bursty { depth } else { little(rate, davg_ms) };
        if slots >= depth || !(asked.is_bursty || device.guests.iter().any(comes)) {
            continue;
        }
        let lost = (1.0 - BRIM * slots / in_use.max(1e-9)).max(0.0);
        let is_own = |key: &Key| {
            key.object == device.device || device.guests.iter().any(|guest| guest.vm == key.object)
        };
        for (key, row) in keys.iter().zip(rows.iter_mut()).filter(|(key, _)| is_own(key)) {
            let Some(captured) = key.captured else { continue };
            if asked.is_bursty && key.is(Counter::Commands) {
                row.low = row.low.min(captured * (1.0 - key.chance) * slots / in_use);
            } else if key.is(Counter::GuestLatency) || key.is(Counter::KernelLatency) {
                row.high = row.high.max(captured + lost * asked.span_ms / 2.0);
            }
        }
    }
}

/// What was seen at the depth that is asked for, of a load that may be the one in question, may be so
/// again.
fn hold_to_what_was_seen(keys: &[Key], rounding: f64, rows: &mut [SimulatedRow]) {
    for (key, row) in keys.iter().zip(rows) {
        let Some(seen) = key.seen else { continue };
        let margin = key.chance + rounding;
        row.low = row.low.min(seen * (1.0 - margin));
        row.high = row.high.max(seen * (1.0 + margin));
    }
}

/// What an IOPS limit does whatever array and guests are: one that is lifted takes nothing from its
/// VM and gives the others nothing, one that is put on takes nothing from the others.
pub(crate) fn hold_to_limits(
    keys: &[Key],
    limited: Limited<'_>,
    rounding: f64,
    rows: &mut [SimulatedRow],
) {
    let own = keys.iter().position(|key| key.is_rate_of(limited.vm));
    // Of what its device did, all but what the VM did stays.
    let (had, has) = own.map_or((f64::INFINITY, 0.0), |own| (rows[own].today, rows[own].low));
    for (key, row) in keys.iter().zip(rows).filter(|(key, _)| key.is_total()) {
        let Some(captured) = key.captured else { continue };
        let chance = key.chance + rounding + LEVEL;
        let (least, most) = (captured * (1.0 - chance), captured * (1.0 + chance));
        let is_rate = key.is(Counter::Commands);
        let is_own = key.object == limited.vm;
        if key.is_device() {
            if is_rate && !limited.is_lifted {
                row.low = row.low.max((captured - had) * (1.0 - chance) + has);
            }
        } else if is_own == limited.is_lifted {
            // It gains.
            if is_rate {
                row.low = row.low.max(least);
            } else {
                row.high = row.high.min(most);
            }
        } else if !is_own {
            if is_rate {
                row.high = row.high.min(most);
            } else {
                row.low = row.low.max(least);
            }
        }
        row.high = row.high.max(row.low);
    }
}

/// What holds whatever is asked: no more commands are at a device than it has slots, and by Little's
/// law a command is under way no longer than all that guests can have outstanding take at the
/// rate.
pub(crate) fn hold_to_queues(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    rows: &mut [SimulatedRow],
) {
    for index in 0..rows.len() {
        let (key, object) = (&keys[index], &keys[index].object);
        let of = |counter| {
            let is_it = |other: &Key| {
                other.is_device() == key.is_device() && other.object == *object && other.is(counter)
            };
            keys.iter().position(is_it)
        };
        let most = if key.is(Counter::MeanActive) {
            of(Counter::DeviceQDepth).map(|place| rows[place].high)
        } else if key.is(Counter::GuestLatency) || key.is(Counter::KernelLatency) {
            let is_own =
                |device: &DeviceCalibration, guest: &GuestCalibration| match key.is_device() {
                    true => device.device == *object,
                    false => guest.vm == *object,
                };
            let guests = calibrated
                .iter()
                .flat_map(|device| device.guests.iter().filter(move |guest| is_own(device, guest)));
            let stands: Option<f64> = guests.map(|guest| guest.outstanding_max).sum();
            let rate = of(Counter::Commands).map(|place| rows[place].low);
            stands.zip(rate).map(|(stands, rate)| 1000.0 * stands / rate)
        } else {
            None
        };
        let Some(most) = most else { continue };
        let row = &mut rows[index];
        row.high = row.high.min(most.max(row.captured.unwrap_or(row.today)));
        row.low = row.low.min(row.high);
    }
}
