//! What came of the remedies, the best first.
//!
//! One is before another where the good one gains more by it; of those by which it gains alike, where
//! the bad one loses less; of those that cost alike, where it acts sooner. What the bad one gains by the
//! way makes no remedy better. Of a recorded host its likeliest scenario says the order.

use std::collections::BTreeMap;

use knobs::Advanced;
use serde_json::{Value, json};

use crate::{
    Result,
    spread::Spread,
    sweep::{Job, Rows, Store, flows},
};

use super::{candidates::Remedy, case::Case, jain::jain};

/// Parts that are alike: finer than that no simulation of a host tells them apart.
const ALIKE: f64 = 0.01;
/// The same of a recorded host: less than that is no change where `kavg whatif` simulates one.
const ALIKE_RECORDED: f64 = 0.05;

/// A figure over the runs of a remedy.
#[derive(Clone, Copy)]
pub(crate) struct Figure {
    /// Over the seeds; of a recorded host that of its likeliest scenario.
    spread: Spread,
    /// Of a recorded host, between which it is over all of its scenarios.
    between: Option<[f64; 2]>,
}

impl Figure {
    fn of(runs: impl Iterator<Item = Option<f64>> + Clone, is_recorded: bool) -> Option<Self> {
        if !is_recorded {
            return Spread::of(runs).map(|spread| Self { spread, between: None });
        }
        let spread = Spread::of(runs.clone().take(1))?;
        let mut between = [spread.mean; 2];
        for run in runs {
            let run = run?;
            between = [between[0].min(run), between[1].max(run)];
        }
        Some(Self { spread, between: Some(between) })
    }

    /// As the JSON has it; null where there is none.
    pub(super) fn json(figure: Option<Self>) -> Value {
        figure.map_or(Value::Null, |Self { spread, between }| {
            let [low, high] = between.map_or([None; 2], |ends| ends.map(Some));
            json!({ "mean": spread.mean, "ci95": spread.half, "low": low, "high": high })
        })
    }

    /// As the table has it; `-` where there is none.
    pub(super) fn text(figure: Option<Self>, print: fn(f64) -> String) -> String {
        match figure.and_then(|figure| figure.between) {
            None => Spread::text(figure.map(|figure| figure.spread), print),
            Some(between) => match between.map(print) {
                [low, high] if low == high => low,
                [low, high] => format!("{low} to {high}"),
            },
        }
    }
}

/// What the two did, over the seeds or the scenarios of a recorded host.
pub(crate) struct Figures {
    /// Milliseconds that an I/O of the good one takes, as its guest sees it; `None` where none ended.
    pub(crate) good_ms: Option<Figure>,
    pub(crate) good_iops: Option<Figure>,
    pub(crate) bad_iops: Option<Figure>,
    pub(crate) bad_mib: Option<Figure>,
    /// Jain's index over all VMs, of what each does for each of its shares.
    pub(crate) fairness: Option<Figure>,
}

/// A remedy with what came of it.
pub(crate) struct Ranked {
    pub(crate) remedy: Remedy,
    pub(crate) figures: Figures,
    /// What part of its latency the good one is rid of; below 0 where it has more, and all where none of
    /// its I/Os ended before.
    pub(crate) gain: Option<f64>,
    /// What part of its I/Os the bad one loses; below 0 where it has more.
    pub(crate) loss: Option<f64>,
}

/// All of it.
pub(crate) struct Ranking {
    /// How many scenarios it is over.
    pub(crate) scenarios: usize,
    pub(crate) as_it_is: Figures,
    /// The best first.
    pub(crate) remedies: Vec<Ranked>,
}

impl Ranking {
    /// Reads the runs of jobs, one for each scenario: the first point is the scenario as it is, then come
    /// the remedies.
    pub(crate) fn of(
        case: &Case,
        remedies: Vec<Remedy>,
        jobs: &mut [(Job, Store)],
    ) -> Result<Self> {
        let as_it_is = figures(case, jobs, 0)?;
        let mut all = Vec::new();
        for (point, remedy) in (1..).zip(remedies) {
            let figures = figures(case, jobs, point)?;
            let gain = match (as_it_is.good_ms, figures.good_ms) {
                (None, Some(_)) => Some(1.0),
                (before, after) => lost(before, after),
            };
            let loss = lost(as_it_is.bad_iops, figures.bad_iops);
            all.push(Ranked { remedy, figures, gain, loss });
        }
        let alike = if case.original.is_some() { ALIKE_RECORDED } else { ALIKE };
        let order = |one: &Ranked| {
            let steps = |part: Option<f64>| (part.unwrap_or(f64::NEG_INFINITY) / alike).round();
            (-steps(one.gain), steps(one.loss).max(0.0), one.remedy.effect())
        };
        all.sort_by(|a, b| {
            let ((gain_a, loss_a, effect_a), (gain_b, loss_b, effect_b)) = (order(a), order(b));
            gain_a.total_cmp(&gain_b).then(loss_a.total_cmp(&loss_b)).then(effect_a.cmp(&effect_b))
        });
        Ok(Self { scenarios: jobs.len(), as_it_is, remedies: all })
    }
}

/// What part of a figure is gone.
fn lost(before: Option<Figure>, after: Option<Figure>) -> Option<f64> {
    let (before, after) = (before?.spread.mean, after?.spread.mean);
    (before > 0.0).then(|| 1.0 - after / before)
}

fn figures(case: &Case, jobs: &mut [(Job, Store)], point: usize) -> Result<Figures> {
    let mut windows: Vec<Rows> = Vec::new();
    for (job, store) in jobs {
        for run in job.runs_of(point) {
            windows.push(store.get(run)?.windows.swap_remove(case.window));
        }
    }
    let is_recorded = case.original.is_some();
    let over =
        |figure: &dyn Fn(&Rows) -> Option<f64>| Figure::of(windows.iter().map(figure), is_recorded);
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
