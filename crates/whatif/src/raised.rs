//! What a VM still waits whose limit is raised: the new one paces it as well, and may hold it.
//!
//! A reading of threads that come back evenly has next to no such wait. Where they come back by chance (see `pace`) it is
//! what their number takes more behind the limit than without, and where the limit holds them, all that is left of it.

use counters::Counter;
use diagnose::SimulatedRow;

use crate::{
    DeviceCalibration, pace,
    ranges::{LEVEL, place_in, place_of},
    run::Key,
};

/// What holds of the devices of a VM that gets a limit above what it does, whatever the readings say.
pub(crate) fn hold(
    keys: &[Key],
    calibrated: &[DeviceCalibration],
    (vm, limit): (&str, f64),
    rows: &mut [SimulatedRow],
) {
    let Some(own) = place_in(keys, (false, vm), Counter::Commands) else { return };
    for device in calibrated {
        let guests = device.guests.iter().filter(|guest| guest.vm == vm);
        let stands: f64 = guests.map(|guest| guest.outstanding).sum();
        let place = |counter| place_of(keys, &device.device, counter);
        let Some(all) = place(Counter::Commands).filter(|_| stands > 0.0) else { continue };
        let waiting = waiting(stands, [rows[own].low, rows[own].high], limit);
        let wait_ms = 1000.0 * waiting / rows[all].low.max(1e-9);
        for (counter, most) in [(Counter::KernelLatency, wait_ms), (Counter::MeanQueued, waiting)] {
            if let Some(at) = place(counter) {
                rows[at].high = rows[at].high.max(most * (1.0 + LEVEL));
            }
        }
    }
}

/// How many of some threads wait for their turns at most that would do between two rates without a limit.
fn waiting(stands: f64, [low, high]: [f64; 2], limit: f64) -> f64 {
    /// Rates that are looked at.
    const STEPS: u32 = 8;
    /// Part of a limit from which it may be what holds the rate: there might be any more without it.
    const NEAR: f64 = 0.9;
    let most = if high >= NEAR * limit { 2.0 * limit } else { high };
    let of = |step: u32| {
        let free = low + (most - low) * f64::from(step) / f64::from(STEPS);
        let done = pace::least(stands, free, limit);
        // As long at the array as without it.
        stands * (1.0 - done / free.max(1e-9))
    };
    (0..=STEPS).map(of).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::waiting;

    #[test]
    fn threads_wait_for_turns_close_to_their_limit_alone() {
        assert!(waiting(16.0, [900.0, 1_000.0], 100_000.0) < 0.1);
        let close = waiting(16.0, [900.0, 1_600.0], 2_000.0);
        assert!((0.5..4.0).contains(&close), "{close}");
        // At twice the limit half of them wait.
        assert!((waiting(16.0, [900.0, 2_000.0], 2_000.0) - 8.0).abs() < 0.5);
    }
}
