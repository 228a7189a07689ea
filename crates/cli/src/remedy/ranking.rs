//! What came of the remedies, the best first.
//!
//! One is before another where the good one gains more by it; of those by which it gains alike, where
//! the bad one loses less; of those that cost alike, where it acts sooner. What the bad one gains by the
//! way makes no remedy better. Of a recorded host one gains more where the least that any of its scenarios
//! says of it is more than the most that any says of the other; what may harm the good one is behind all that does not.

use std::collections::BTreeMap;

use knobs::{Advanced, Effect};
use serde_json::{Value, json};

use crate::{
    Result,
    jain::jain,
    spread::Spread,
    sweep::{Job, Rows, Store, flows},
};

use super::{
    bounds::{Bounds, Range, bounds},
    candidate::{Refused, Remedy},
    case::Case,
};

/// Parts that are alike: finer than that no simulation of a host tells them apart.
const ALIKE: f64 = 0.01;

/// A part of what there was, from the least to the most over the scenarios of a recorded host.
type Part = Range;

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

    fn mean(figure: Option<Self>) -> Option<f64> {
        figure.map(|figure| figure.spread.mean)
    }

    /// The same, between the ends of a range at least.
    fn widened(mut self, range: Option<Range>) -> Self {
        if let (Some([low, high]), Some([least, most])) = (range, &mut self.between) {
            (*least, *most) = (least.min(low), most.max(high));
        }
        self
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

impl Figures {
    /// The same, between what else is said of the two at least; commands of the bad one stay as large.
    fn widened(self, bounds: &Bounds) -> Self {
        let wider = |figure: Option<Figure>, range| figure.map(|own| own.widened(range));
        let size = Figure::mean(self.bad_mib).zip(Figure::mean(self.bad_iops));
        let size = size.filter(|(_, iops)| *iops > 0.0).map(|(mib, iops)| mib / iops);
        let bad_mib = bounds.bad_iops.zip(size).map(|(ends, size)| ends.map(|iops| iops * size));
        Self {
            good_ms: wider(self.good_ms, bounds.good_ms),
            good_iops: wider(self.good_iops, bounds.good_iops),
            bad_iops: wider(self.bad_iops, bounds.bad_iops),
            bad_mib: wider(self.bad_mib, bad_mib),
            fairness: self.fairness,
        }
    }
}

/// A remedy with what came of it.
pub(crate) struct Ranked {
    pub(crate) remedy: Remedy,
    /// 1 and how many are before it: those that are alike in all have one.
    pub(crate) place: usize,
    pub(crate) figures: Figures,
    /// What part of its latency the good one is rid of; below 0 where it has more. Where none of its I/Os ended
    /// before, each had taken the window at least.
    pub(crate) gain: Option<f64>,
    /// What part of its I/Os the bad one loses; below 0 where it has more.
    pub(crate) loss: Option<f64>,
}

/// All of it.
pub(crate) struct Ranking {
    /// How many scenarios it is over.
    pub(crate) scenarios: usize,
    pub(crate) as_it_is: Figures,
    /// Parts of what there was that differ by no more are alike.
    pub(crate) alike: f64,
    /// The best first.
    pub(crate) remedies: Vec<Ranked>,
}

impl Ranking {
    /// Reads the runs of jobs, one for each scenario: the first point is the scenario as it is, then come
    /// the remedies. Of which a recording does not tell what they do come to those that are `refused`.
    pub(crate) fn of(
        case: &Case,
        remedies: Vec<Remedy>,
        jobs: &mut [(Job, Store)],
        refused: &mut Vec<Refused>,
    ) -> Result<Self> {
        let as_it_is = figures(case, jobs, 0)?;
        let miss = case.original.as_ref().map(|original| original.miss);
        let alike = miss.unwrap_or_default().max(ALIKE);
        let (mut all, mut parts) = (Vec::new(), Vec::new());
        for (point, remedy) in (1..).zip(remedies) {
            let figures = figures(case, jobs, point)?;
            let [gain, loss] = parts_of(case, &as_it_is, &figures);
            let each = (0..jobs.len()).map(|job| {
                let own = &mut jobs[job..=job];
                let [before, after] =
                    [self::figures(case, own, 0)?, self::figures(case, own, point)?];
                Ok(parts_of(case, &before, &after))
            });
            let each = each.collect::<Result<Vec<_>>>()?;
            let range = |of: fn(&[Option<f64>; 2]) -> f64| {
                let all = || each.iter().map(of);
                [all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max)]
            };
            let bounds = match bounds(case, &remedy, loss.is_some_and(|loss| loss > ALIKE)) {
                Ok(bounds) => bounds,
                Err(why) => {
                    refused.push(Refused { key: remedy.key, what: remedy.what, why });
                    continue;
                }
            };
            let gains = range(|parts| parts[0].unwrap_or(f64::NEG_INFINITY));
            let gains =
                wider(gains, Figure::mean(as_it_is.good_ms), bounds.good_ms, |left| 1.0 - left);
            let keeps = range(|parts| -parts[1].unwrap_or_default().max(0.0));
            let keeps = wider(keeps, Figure::mean(as_it_is.bad_iops), bounds.bad_iops, |left| {
                (left - 1.0).min(0.0)
            });
            let figures = figures.widened(&bounds);
            parts.push((gains, keeps, remedy.effect()));
            all.push(Ranked { remedy, place: 0, figures, gain, loss });
        }
        for (one, place) in all.iter_mut().zip(places(&parts, alike)) {
            one.place = place;
        }
        levels::most_first(&mut all, |one| -(one.place as f64));
        Ok(Self { scenarios: jobs.len(), as_it_is, alike, remedies: all })
    }
}

/// A part, from the least to the most that it may be by the bounds of a figure besides, of which there was so much
/// before; `of` makes it of what is left of that.
fn wider(part: Part, before: Option<f64>, bounds: Option<Range>, of: fn(f64) -> f64) -> Part {
    let before = before.filter(|before| *before > 0.0);
    let ends = bounds.zip(before).map(|(ends, before)| ends.map(|end| of(end / before)));
    let ends = ends.into_iter().flatten();
    ends.fold(part, |[least, most], end| [least.min(end), most.max(end)])
}

/// The place of each remedy: whether the good one may wait longer by it, what it gains, what the bad one keeps,
/// and when it acts. Ranges that overlap, or are no further apart than what is `alike`, decide nothing; as that may
/// be so of two and again of one of them and a third, it counts how many are surely better.
fn places(parts: &[(Part, Part, Effect)], alike: f64) -> Vec<usize> {
    let better = |a: &Part, b: &Part| a[0] > b[1] + alike;
    let of = |is_before: &dyn Fn(usize, usize) -> bool| -> Vec<usize> {
        let all = 0..parts.len();
        all.clone().map(|own| all.clone().filter(|other| is_before(*other, own)).count()).collect()
    };
    let may_harm = |at: usize| parts[at].0[0] < -alike;
    let by_gain = of(&|a, b| better(&parts[a].0, &parts[b].0));
    let gains = |at: usize| (may_harm(at), by_gain[at]);
    let by_loss = of(&|a, b| gains(a) == gains(b) && better(&parts[a].1, &parts[b].1));
    let key = |at: usize| (gains(at), by_loss[at], parts[at].2);
    of(&|a, b| key(a) < key(b)).into_iter().map(|before| before + 1).collect()
}

/// What part of its latency the good one is rid of, and what part of its I/Os the bad one loses.
fn parts_of(case: &Case, before: &Figures, after: &Figures) -> [Option<f64>; 2] {
    // What is under way all the time takes that long at least.
    let before_ms = Figure::mean(before.good_ms).unwrap_or_else(|| case.window_ms());
    let lost = |before: f64, after: Option<Figure>| {
        (before > 0.0).then_some(1.0 - Figure::mean(after)? / before)
    };
    [
        lost(before_ms, after.good_ms),
        Figure::mean(before.bad_iops).and_then(|iops| lost(iops, after.bad_iops)),
    ]
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

#[cfg(test)]
mod tests {
    use super::*;

    type Case<'a> = (&'a [(Part, Part, Effect)], &'a [usize]);

    #[test]
    fn ranges_that_overlap_decide_nothing() {
        let now = Effect::AtOnce;
        let sure = |gain: f64, keeps: f64, effect| ([gain; 2], [keeps; 2], effect);
        let cases: [Case<'_>; 8] = [
            (&[sure(0.5, 0.0, now), sure(0.9, 0.0, now)], &[2, 1]),
            // Alike: what costs less, then what acts sooner.
            (&[sure(0.9, -0.5, now), sure(0.905, 0.0, now)], &[2, 1]),
            (&[sure(0.9, 0.0, Effect::HostReboot), sure(0.9, 0.0, now)], &[2, 1]),
            (&[sure(0.9, 0.0, now), sure(0.9, 0.0, now), sure(0.1, 0.0, now)], &[1, 1, 3]),
            // Either order.
            (&[([0.2, 0.9], [0.0; 2], now), sure(0.5, 0.0, now)], &[1, 1]),
            // What may harm is behind what does not, whatever else it may do; what is within what is alike is no harm.
            (&[([-0.02, 0.9], [0.0; 2], now), ([0.0, 0.1], [-0.9; 2], now)], &[2, 1]),
            (&[([-0.009, 0.9], [0.0; 2], now), ([0.0, 0.1], [-0.9; 2], now)], &[1, 2]),
            // The middle one is alike to both of the others, which are not.
            (&[sure(0.9, 0.0, now), sure(0.895, 0.0, now), sure(0.888, 0.0, now)], &[1, 1, 3]),
        ];
        for (parts, expected) in cases {
            assert_eq!(places(parts, ALIKE), expected, "{parts:?}");
        }
    }
}
