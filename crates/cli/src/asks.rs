//! What guests send, at rates of their own and of which sizes: a part of what `known.rs` tells the diagnosis.

use knobs::cost_units;
use model::{Arrival, Mix, SizeMix};
use scenario::{Scenario, Window, Workload};

/// Of each virtual disk of a host the commands a second that come in a window at rates of their own; `None` where some
/// come only when others are answered, as fast as that is.
pub(crate) fn asks(scenario: &Scenario, host: usize, window: &Window) -> Vec<Option<f64>> {
    let mut all = vec![Some(0.0); scenario.hosts[host].config.vdisks.len()];
    for work in running(scenario, host, window) {
        let rate = match work.config.arrival {
            Arrival::Open { rate, .. } => Some(rate),
            Arrival::Closed { rate, .. } => rate.map(|rate| rate.per_sec),
        };
        let asked = &mut all[work.vdisk.index()];
        *asked = asked.zip(rate).map(|(asked, rate)| asked + rate);
    }
    all
}

/// Of each virtual disk of a host the I/Os that a command of it counts as before an IOPS limit in a window in the mean,
/// one for each begun `unit` of its bytes, by the sizes that its workload sends: of several the one
/// whose commands count most; `None` where it has none.
pub(crate) fn costs(
    scenario: &Scenario,
    host: usize,
    window: &Window,
    unit: u32,
) -> Vec<Option<f64>> {
    let mut all: Vec<Option<f64>> = vec![None; scenario.hosts[host].config.vdisks.len()];
    for work in running(scenario, host, window) {
        let Mix::ReadWrite { sizes, .. } = &work.config.mix else { continue };
        let most = &mut all[work.vdisk.index()];
        *most = Some(most.unwrap_or_default().max(mean_cost(sizes, unit)));
    }
    all
}

/// Of each virtual disk of a host the commands that its workloads have outstanding at most in a window; `None` where an
/// I/O of theirs may be several commands, or one of several.
pub(crate) fn outstanding_most(
    scenario: &Scenario,
    host: usize,
    window: &Window,
) -> Vec<Option<u32>> {
    let of = &scenario.hosts[host];
    let config = &of.config;
    let is_plain = |disk: usize| of.blocks[disk].is_none();
    let mut all: Vec<Option<u32>> =
        (0..config.vdisks.len()).map(|disk| is_plain(disk).then_some(0)).collect();
    for work in running(scenario, host, window) {
        let takes = config.vscsi[config.vdisks[work.vdisk.index()].vscsi.index()].max_transfer;
        let is_whole = match &work.config.mix {
            Mix::ReadWrite { sizes, .. } => sizes.0.iter().all(|&(bytes, _)| bytes <= takes),
            _ => false,
        };
        let most = &mut all[work.vdisk.index()];
        *most = most.filter(|_| is_whole).map(|most| most.saturating_add(work.outstanding()));
    }
    all
}

fn mean_cost(sizes: &SizeMix, unit: u32) -> f64 {
    let cost = |bytes: u32| f64::from(cost_units(bytes, unit));
    let all: f64 = sizes.0.iter().map(|&(_, weight)| f64::from(weight)).sum();
    sizes.0.iter().map(|&(bytes, weight)| cost(bytes) * f64::from(weight)).sum::<f64>() / all
}

/// The workloads of a host that send in a window.
fn running<'a>(
    scenario: &'a Scenario,
    host: usize,
    window: &'a Window,
) -> impl Iterator<Item = &'a Workload> {
    let runs = move |work: &&Workload| {
        work.host == host && work.starts < window.to && work.stops > window.from
    };
    scenario.workloads.iter().filter(runs)
}
