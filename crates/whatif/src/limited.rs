//! What an IOPS limit does to its VM, from the rows alone: what it leaves of each, and what its pace costs.

use levels::mean;

use crate::{
    build::Plan,
    bursts,
    demand::{GuestCalibration, Habit},
    observe::Tenant,
    pace, phases,
    question::{Held, Paced},
};

/// What is recorded of a VM on a device, and what it is taken for.
#[derive(Clone, Copy)]
pub(crate) struct Own<'m> {
    pub(crate) tenant: &'m Tenant<'m>,
    pub(crate) guest: &'m GuestCalibration,
    /// Whether it may wait for a limit today: what it would send without one no sample shows then.
    pub(crate) may_wait: bool,
}

/// What the limits of a VM's disks let through at most.
pub(crate) fn most_iops(own: &[Own<'_>], changed: &Plan<'_>) -> f64 {
    let of = |guest: &GuestCalibration| {
        changed.limit_asked(guest).map_or(f64::INFINITY, |limit| limit / guest.units[0])
    };
    own.iter().map(|own| of(own.guest)).sum()
}

/// What a VM does behind the pace of the limits of its disks at least, level by level of load.
pub(crate) fn paced(
    own: &[Own<'_>],
    (levels, window): (&[Vec<usize>], &[usize]),
    changed: &Plan<'_>,
) -> Paced {
    let mut all = Paced::default();
    for Own { tenant, guest, .. } in own {
        let limit = changed.limit_asked(guest).map_or(f64::INFINITY, |n| n / guest.units[1]);
        for level in levels {
            let Some((rate, outstanding)) = tenant.row.load(level) else { continue };
            let pausing = rate * guest.pause_ms.0 / 1000.0;
            // What comes at a rate of its own comes all the same, and what a limit paces today waits there.
            let is_its_own = guest.habit == Habit::Open || guest.held_at_iops.is_some();
            let least = |pausing: f64| pace::least(outstanding + pausing, rate, limit);
            let iops = match guest.bursts.filter(|_| limit.is_finite()) {
                bursts @ Some(_) => bursts::mean_least((&tenant.row, bursts), level, limit),
                None if is_its_own || limit.is_infinite() => rate.min(limit),
                None => least(pausing),
            };
            let waits = pausing * (1.0 - iops / rate.max(1e-9));
            let most = rate * guest.pause_ms.1.unwrap_or_default() / 1000.0;
            let waits_most = match guest.bursts {
                // As many as it may have wait for their turns.
                Some(_) => iops / limit * tenant.outstanding_at_most() - outstanding,
                None if is_its_own || limit.is_infinite() => 0.0,
                None => most * (1.0 - least(most) / rate.max(1e-9)),
            };
            let part = level.len() as f64 / window.len().max(1) as f64;
            all.iops += part * iops;
            all.outstanding += part * (outstanding + waits.max(0.0));
            all.longest += part * (outstanding + waits.max(waits_most).max(0.0));
            all.today[0] += part * rate;
            all.today[1] += part * outstanding;
        }
    }
    all
}

/// What a VM does where its disks are held to limits: all that these let through of what it
/// sent in each sample, and of what waited from one to the next, with no fewer commands outstanding. `None` where they
/// let through all of it.
pub(crate) fn held(
    each: &[Own<'_>],
    (window, interval_s): (&[usize], f64),
    changed: &Plan<'_>,
) -> Option<Held> {
    /// What chance does to what it sends.
    const CHANCE: f64 = 0.03;
    let (mut all, mut sent, mut held_back) = (Held::default(), 0.0, 0.0);
    for own in each {
        let Own { tenant, guest, may_wait } = *own;
        let limit = changed.limit_asked(guest).unwrap_or(f64::INFINITY);
        let [most, fewest] = guest.units.map(|units| limit / units);
        let least = |&s: &usize| tenant.row.rate(s).map(|rate| rate.min(fewest));
        let rates = mean(window.iter().map(least)).unwrap_or_default();
        sent += tenant.row.mean_rate(window).unwrap_or_default();
        held_back += rates;
        let least = bursts::mean_least((&tenant.row, guest.bursts), window, fewest);
        let turns = if guest.bursts.is_some() { fewest.min(f64::MAX) } else { least };
        // Who waits for nothing today and never has more there than on average has all of its threads there.
        let is_all = !may_wait && guest.never_pauses;
        let stands = if is_all { guest.outstanding } else { guest.outstanding_at_most() };
        let waiting = guest.outstanding_at_most();
        let most = match most.is_finite() && !may_wait {
            true => {
                let most_sent = phases::mean_most(&tenant.row, window, (most, waiting), interval_s);
                most.min(most_sent * (1.0 + CHANCE))
            }
            false => most,
        };
        let own = Held {
            iops: [least.min(most), most],
            outstanding: [guest.outstanding, stands.max(guest.outstanding)],
            turns,
        };
        all.turns += own.turns;
        for end in 0..2 {
            all.iops[end] += own.iops[end];
            all.outstanding[end] += own.outstanding[end];
        }
    }
    (held_back < sent).then_some(all)
}
