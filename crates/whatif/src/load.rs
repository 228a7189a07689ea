//! The load of a guest as a scenario has it: threads that wait for their answers and may pause, in bursts or under a
//! ceiling, or a rate of its own.

use crate::{
    demand::{GuestCalibration, Habit},
    reading::Demand,
};

/// Threads, or a rate. `cap` is the driver's depth where the guest stands at it; `duty` the part of
/// the time that bursts take; who is minor is not what fills the queue.
pub(crate) fn load(
    guest: &GuestCalibration,
    cap: Option<u32>,
    (rate, outstanding, duty): (f64, f64, Option<f64>),
    (demand, is_minor): (Demand, bool),
) -> String {
    /// Threads beyond a driver's depth that fill any other depth.
    const HUNGRY: u32 = 4;
    /// Threads as a multiple of what is outstanding that are next to a rate of their own.
    const MANY: f64 = 30.0;
    /// How much more than it was seen to do a rate of its own may be that does not hold it today.
    const CONTENT: f64 = 1.01;
    let (least_ms, most_ms) = guest.pause_ms;
    if let (Some(depth), Demand::Hungry) = (cap, demand) {
        return format!("threads = {}  # more than the driver's {depth}", depth * HUNGRY);
    }
    if let (Some(duty), Demand::Bursts) = (duty, demand) {
        let latency_s = outstanding / rate;
        let cycle_s = 20.0 * latency_s / duty;
        return format!(
            "threads = {:.0}  # in bursts: commands wait while slots are free on average\n\
             on = \"{:.6}s\"\noff = \"{:.6}s\"",
            (outstanding / duty).round().max(1.0),
            (cycle_s * duty).max(1e-6),
            (cycle_s * (1.0 - duty)).max(1e-6)
        );
    }
    let is_open = guest.habit == Habit::Open && guest.throttled_at_iops.is_none();
    let gavg_ms = 1000.0 * outstanding / rate;
    let pause_ms = match demand {
        _ if is_open => None,
        // A rate of its own would not stay just what the queue lets through: very many threads do.
        Demand::Rates if guest.is_pinned && !is_minor => Some(most_ms.unwrap_or(MANY * gavg_ms)),
        Demand::Rates => most_ms,
        _ => Some(least_ms),
    };
    let Some(pause_ms) = pause_ms else {
        return format!("arrival = \"poisson\"\nrate = {rate:.3}");
    };
    // It may want no more than it was seen to do.
    let content = guest.content_at_iops.filter(|_| demand == Demand::Rates);
    let ceiling = content.map_or(String::new(), |iops| {
        format!("\nrate = {:.3}  # no more was seen of it", CONTENT * iops.max(rate))
    });
    let wanted = outstanding + rate * pause_ms / 1000.0;
    let nearest = wanted.round().max(1.0);
    if (wanted / nearest - 1.0).abs() <= 0.02 && pause_ms <= 0.0 {
        return format!("threads = {nearest:.0}  # CMDS/s times GAVG{ceiling}");
    }
    // A pause makes whole threads of what is no whole number.
    let threads = wanted.ceil().clamp(1.0, 65_536.0);
    let think_us = (threads - outstanding).max(0.0) / rate * 1e6;
    format!(
        "threads = {threads:.0}  # CMDS/s times GAVG is {outstanding:.2}\n\
         think = \"{think_us:.3}us\"{ceiling}"
    )
}
