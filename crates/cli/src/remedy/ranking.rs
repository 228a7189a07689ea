//! What came of the remedies, the best first.
//!
//! One is before another where the good one gains more by it; of those by which it gains alike, where
//! the bad one loses less; of those that cost alike, where it acts sooner. Alike is the same whole per
//! cent: finer than that no simulation of a host tells them apart. What the bad one gains by the way
//! makes no remedy better.

use std::collections::BTreeMap;

use knobs::Advanced;

use crate::{
    Result,
    spread::Spread,
    sweep::{Job, Rows, Store, flows},
};

use super::{candidates::Remedy, case::Case, jain::jain};

/// What the two did, over the seeds.
pub(crate) struct Figures {
    /// Milliseconds that an I/O of the good one takes, as its guest sees it; `None` where none ended.
    pub(crate) good_ms: Option<Spread>,
    pub(crate) good_iops: Option<Spread>,
    pub(crate) bad_iops: Option<Spread>,
    pub(crate) bad_mib: Option<Spread>,
    /// Jain's index over all VMs, of what each does for each of its shares.
    pub(crate) fairness: Option<Spread>,
}

/// A remedy with what came of it.
pub(crate) struct Ranked {
    pub(crate) remedy: Remedy,
    pub(crate) figures: Figures,
    /// What part of its latency the good one is rid of; below 0 where it has more.
    pub(crate) gain: Option<f64>,
    /// What part of its I/Os the bad one loses; below 0 where it has more.
    pub(crate) loss: Option<f64>,
}

/// All of it.
pub(crate) struct Ranking {
    pub(crate) as_it_is: Figures,
    /// The best first.
    pub(crate) remedies: Vec<Ranked>,
}

impl Ranking {
    /// Reads the runs of a job: its first point is the scenario as it is, then come the remedies.
    pub(crate) fn of(
        case: &Case,
        remedies: Vec<Remedy>,
        job: &Job,
        store: &mut Store,
    ) -> Result<Self> {
        let as_it_is = figures(case, job, store, 0)?;
        let mut all = Vec::new();
        for (point, remedy) in (1..).zip(remedies) {
            let figures = figures(case, job, store, point)?;
            let gain = lost(as_it_is.good_ms, figures.good_ms);
            let loss = lost(as_it_is.bad_iops, figures.bad_iops);
            all.push(Ranked { remedy, figures, gain, loss });
        }
        let order = |one: &Ranked| {
            let percent = |part: Option<f64>| (100.0 * part.unwrap_or(f64::NEG_INFINITY)).round();
            (-percent(one.gain), percent(one.loss).max(0.0), one.remedy.effect())
        };
        all.sort_by(|a, b| {
            let ((gain_a, loss_a, effect_a), (gain_b, loss_b, effect_b)) = (order(a), order(b));
            gain_a.total_cmp(&gain_b).then(loss_a.total_cmp(&loss_b)).then(effect_a.cmp(&effect_b))
        });
        Ok(Self { as_it_is, remedies: all })
    }
}

/// What part of a figure is gone.
fn lost(before: Option<Spread>, after: Option<Spread>) -> Option<f64> {
    let (before, after) = (before?.mean, after?.mean);
    (before > 0.0).then(|| 1.0 - after / before)
}

fn figures(case: &Case, job: &Job, store: &mut Store, point: usize) -> Result<Figures> {
    let runs = job.runs_of(point).map(|run| store.get(run));
    let windows = runs.map(|run| Ok(run?.windows.swap_remove(case.window)));
    let windows: Vec<Rows> = windows.collect::<Result<_>>()?;
    let over = |figure: &dyn Fn(&Rows) -> Option<f64>| Spread::of(windows.iter().map(figure));
    let of = |rows: &Rows, vm: &str| flows(rows).remove(vm).unwrap_or_default();
    let (good, bad) = (|rows: &Rows| of(rows, &case.good), |rows: &Rows| of(rows, &case.bad));
    let shares = case.shares();
    Ok(Figures {
        good_ms: over(&|rows| good(rows).total_ms()),
        good_iops: over(&|rows| Some(good(rows).iops)),
        bad_iops: over(&|rows| Some(bad(rows).iops)),
        bad_mib: over(&|rows| Some(bad(rows).mib)),
        fairness: over(&|rows| fairness(&shares, rows)),
    })
}

/// Throughput counted as shares count it, for each share that the scenario gives: what a remedy changes
/// of the shares is held against the same.
fn fairness(shares: &BTreeMap<&str, f64>, rows: &Rows) -> Option<f64> {
    let unit = f64::from(Advanced::SchedCostUnit.info().default);
    let flows = flows(rows);
    let units = |vm: &str| flows.get(vm).map_or(0.0, |flow| flow.units(unit));
    let each = shares.iter().map(|(vm, shares)| units(vm) / shares);
    jain(&each.collect::<Vec<_>>())
}
