//! What others gain where a limit is put on a VM of a device that has bursts between its samples.
//!
//! How full its queue is in them no instant shows, and so not how long anybody waits for slots there. With fewer
//! outstanding an array does no more (reference `array-and-control.md`, section 1): what the VM loses is all that
//! another one can gain, and it waits for no slot then.

use counters::Counter;
use diagnose::SimulatedRow;

use crate::{
    DeviceCalibration,
    question::{Asked, Limited},
    ranges::{LEVEL, place_in, place_of},
    run::Key,
};

/// What holds of a device in bursts on which a limit is put, whatever the readings say.
pub(crate) fn hold(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    (limited, asked): (Limited<'_>, &Asked<'_>),
    rows: &mut [SimulatedRow],
) {
    let is_on = |of: &&DeviceCalibration| of.guests.iter().any(|guest| guest.vm == limited.vm);
    if !asked.is_bursty || limited.most_iops.is_none() {
        return;
    }
    for device in calibrated.iter().filter(is_on) {
        let rate = |of| {
            let at = place_in(keys, of, Counter::Commands)?;
            Some((at, keys[at].captured?))
        };
        let (Some((own, had)), Some((all, whole))) =
            (rate((false, limited.vm)), rate((true, &device.device)))
        else {
            continue;
        };
        let lost = (had - rows[own].low).max(0.0);
        let chance = |at: usize| 1.0 + keys[at].chance + LEVEL;
        rows[all].high = rows[all].high.max(whole * chance(all));
        for guest in device.guests.iter().filter(|guest| guest.vm != limited.vm) {
            let of = |counter| place_in(keys, (false, &guest.vm), counter);
            let Some((at, was)) = rate((false, &guest.vm)) else { continue };
            let most = (was + lost) * chance(at);
            rows[at].high = rows[at].high.max(most);
            if let Some(ms) = of(Counter::GuestLatency) {
                rows[ms].low = rows[ms].low.min(1000.0 * guest.outstanding / most.max(1e-9));
            }
        }
        let place = |counter| place_of(keys, &device.device, counter);
        for counter in [Counter::KernelLatency, Counter::MeanQueued] {
            if let Some(at) = place(counter) {
                rows[at].low = 0.0;
            }
        }
        if let (Some(gavg), Some(davg)) =
            (place(Counter::GuestLatency), place(Counter::DriverLatency))
        {
            rows[gavg].low = rows[gavg].low.min(rows[davg].low);
        }
    }
}
