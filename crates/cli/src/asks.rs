//! What guests send at a rate of their own, whatever is answered: a part of what `known.rs` tells the diagnosis.

use model::Arrival;
use scenario::{Scenario, Window};

/// Of each virtual disk of a host the commands a second that come in a window at rates of their own; `None` where some
/// come only when others are answered, as fast as that is.
pub(crate) fn asks(scenario: &Scenario, host: usize, window: &Window) -> Vec<Option<f64>> {
    let mut all = vec![Some(0.0); scenario.hosts[host].config.vdisks.len()];
    let runs = |work: &&scenario::Workload| {
        work.host == host && work.starts < window.to && work.stops > window.from
    };
    for work in scenario.workloads.iter().filter(runs) {
        let rate = match work.config.arrival {
            Arrival::Open { rate, .. } => Some(rate),
            Arrival::Closed { rate, .. } => rate.map(|rate| rate.per_sec),
        };
        let asked = &mut all[work.vdisk.index()];
        *asked = asked.zip(rate).map(|(asked, rate)| asked + rate);
    }
    all
}
