//! IOPS limits so far above what a VM sends that they are none: nothing of it ever waits for its turn.

use knobs::DiskName;

use crate::{limited::Own, rows::Row};

/// The shortest time in which a command is answered, in seconds: sooner no device answers.
const SHORTEST_S: f64 = 1e-5;

/// Limits, with none in the place of those that never come to bear.
pub(crate) fn without_far<'d>(
    limits: Vec<(&'d DiskName, Option<u32>)>,
    window: &[usize],
    of_vm: impl Fn(&str) -> Vec<Own<'d>>,
) -> Vec<(&'d DiskName, Option<u32>)> {
    let is_near = |name: &DiskName, limit: u32| {
        let own = of_vm(&name.vm);
        own.is_empty() || own.iter().any(|of| !is_far(*of, f64::from(limit), window))
    };
    let nearer = |(name, limit): (&'d DiskName, Option<u32>)| {
        (name, limit.filter(|limit| is_near(name, *limit)))
    };
    limits.into_iter().map(nearer).collect()
}

/// Whether a limit never comes to bear: it is above what the commands that a disk lets through could come to, or, of
/// a VM that waits for none today, many times what it does in any sample, and what its bursts may come to.
fn is_far(Own { tenant, guest, may_wait }: Own<'_>, limit: f64, window: &[usize]) -> bool {
    /// How many times that is.
    const FAR: f64 = 20.0;
    let limit = limit / guest.units[1];
    if limit >= tenant.outstanding_at_most() / SHORTEST_S {
        return true;
    }
    let most = tenant.row.largest(window, Row::rate);
    let in_bursts = |most: f64| match guest.bursts {
        Some(bursts) => window.iter().all(|&s| {
            let load = tenant.row.rate(s).zip(tenant.row.outstanding(s));
            load.is_none_or(|load| bursts.least(load, limit) >= load.0)
        }),
        None => limit >= FAR * most,
    };
    let is_known = tenant.world.is_some() && !may_wait;
    is_known && most.is_some_and(|most| limit >= FAR * most && in_bursts(most))
}
