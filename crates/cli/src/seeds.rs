//! A scenario under several seeds: the mean of every figure, and how far chance may have moved it.
//! It stands beside `screen` and `json`, which show a single run.

use std::fmt::Write;

use serde_json::{Value, json};
use sim::Checked;

use crate::{
    compare::FIGURES,
    expectations::{self, OverSeeds},
    json, percentiles,
    report::Report,
    table::Table,
    text::{BOLD, clean, styled},
};

/// Seeds that are run at most: their figures are kept in memory.
pub(crate) const SEEDS_MAX: u64 = 1_000;

/// The runs of a scenario, by seed from 1; at least one.
pub(crate) struct Seeds {
    pub(crate) runs: Vec<Report>,
}

/// A figure over several seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    mean: f64,
    /// Half of the 95 % confidence interval of the mean; one seed has none.
    half: Option<f64>,
}

impl Spread {
    /// `None` where a seed does not have the figure.
    fn of(figures: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let all: Vec<f64> = figures.collect::<Option<_>>()?;
        let count = all.len() as f64;
        // From the first on, so that the mean of equal figures is that figure, to the last bit.
        let first = *all.first()?;
        let mean = first + all.iter().map(|figure| figure - first).sum::<f64>() / count;
        let squares: f64 = all.iter().map(|figure| (figure - mean).powi(2)).sum();
        let freedom = all.len().checked_sub(1).filter(|freedom| *freedom > 0);
        let half = freedom
            .map(|freedom| student_95(freedom) * (squares / freedom as f64).sqrt() / count.sqrt());
        Some(Self { mean, half })
    }

    fn json(spread: Option<Self>) -> Value {
        spread.map_or(Value::Null, |one| json!({ "mean": one.mean, "ci95": one.half }))
    }
}

/// Student's t, two-sided 95 %: from the table up to 10 degrees of freedom, and from its expansion
/// around the normal distribution above (Abramowitz and Stegun, 26.7.5), which is right to 0.0001
/// there.
fn student_95(freedom: usize) -> f64 {
    const TABLE: [f64; 10] =
        [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    let part = 1.0 / freedom as f64;
    let expansion = 1.959_96 + part * (2.372_3 + part * (2.822_5 + part * 2.555_9));
    TABLE.get(freedom - 1).copied().unwrap_or(expansion)
}

impl Seeds {
    fn spread(&self, figure: impl Fn(&Report) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.runs.iter().map(figure))
    }

    /// Every expectation held against the mean of its figure, and what the single seeds say.
    pub(crate) fn checked(&self) -> (Vec<Checked<'_>>, Vec<OverSeeds>) {
        let runs: Vec<_> = self.runs.iter().map(Report::checked).collect();
        let judged = self.runs[0].scenario.expectations.iter().enumerate().map(|(index, one)| {
            let own = || runs.iter().map(|run| run[index]);
            let known = |figure: f64| (!figure.is_nan()).then_some(figure);
            let spread = Spread::of(own().map(|checked| known(checked.figure)));
            let figure = spread.map_or(f64::NAN, |spread| spread.mean);
            let checked = Checked { expectation: one, figure, holds: one.bound.holds(figure) };
            let met = own().filter(|checked| checked.holds).count();
            let half = spread.and_then(|spread| spread.half);
            (checked, OverSeeds { half, met, of: runs.len() })
        });
        judged.unzip()
    }

    /// The expectations that are not met.
    pub(crate) fn failed(&self) -> String {
        let (checked, over) = self.checked();
        expectations::failed(&self.runs[0].scenario, &checked, &over)
    }

    /// What a terminal is told.
    pub(crate) fn render(&self) -> String {
        let scenario = &self.runs[0].scenario;
        let mut out = format!("{}\n", styled(BOLD, &clean(&scenario.title)));
        let _ = writeln!(
            out,
            "{}: seeds 1 to {}; means, and half of their 95 % confidence interval",
            clean(&scenario.name),
            self.runs.len()
        );
        if !scenario.source.is_empty() {
            let _ = writeln!(out, "{}", clean(&scenario.source));
        }
        let (checked, over) = self.checked();
        format!("{out}\n{}\n{}", self.figures(), expectations::render(scenario, &checked, &over))
    }

    /// The figures of the stack, with a column for each window.
    fn figures(&self) -> String {
        let first = &self.runs[0];
        let windows = || first.named().map(|index| clean(&first.scenario.windows[index].name));
        let head: Vec<_> = std::iter::once(String::new()).chain(windows()).collect();
        let mut table = Table::new(&head).left(&[0]);
        for (name, figure, print) in FIGURES {
            let cell = |window: usize| match self.spread(|run| figure(&run.stacks[window])) {
                Some(Spread { mean, half: Some(half) }) => {
                    format!("{} ± {}", print(mean), print(half))
                }
                Some(Spread { mean, half: None }) => print(mean),
                None => "-".into(),
            };
            table.row(std::iter::once(name.into()).chain(first.named().map(cell)).collect());
        }
        table.render()
    }

    /// Every counter of every object in every window, and the expectations.
    pub(crate) fn json(&self) -> Value {
        let first = &self.runs[0];
        let scenario = &first.scenario;
        let windows = scenario.windows.iter().enumerate().map(|(index, window)| {
            let stack = |figure: fn(&levels::Stack) -> Option<f64>| {
                Spread::json(self.spread(|run| figure(&run.stacks[index])))
            };
            let hosts = 0..first.outcome.windows[index].len();
            json!({
                "name": window.name,
                "from_s": json::seconds(window.from),
                "to_s": json::seconds(window.to),
                "stack": {
                    "iops": stack(|stack| Some(stack.iops)),
                    "mib_per_s": stack(|stack| Some(stack.mib_per_s)),
                    "total_ms": stack(|stack| stack.total_ms),
                },
                "hosts": hosts.map(|host| self.host(index, host)).collect::<Vec<_>>(),
            })
        });
        let (checked, over) = self.checked();
        let expectations = checked.iter().zip(over).map(|(checked, over)| {
            let mut value = json::expectation(first, checked);
            value["ci95"] = json!(over.half);
            value["seeds_met"] = json!(over.met);
            value
        });
        json!({
            "version": json::VERSION,
            "scenario": scenario.name,
            "title": scenario.title,
            "source": scenario.source,
            "seeds": self.runs.len(),
            "windows": windows.collect::<Vec<_>>(),
            "expectations": expectations.collect::<Vec<_>>(),
        })
    }

    /// The counters of a host over a window, and how long I/Os took.
    fn host(&self, window: usize, host: usize) -> Value {
        let views = self.runs.iter().map(|run| &run.outcome.windows[window][host]);
        let views: Vec<_> = views.collect();
        let counters = json::counters(&views[0].recording, |entity, counter| {
            let figures = views.iter().map(|view| view.recording.value(entity, counter, 0));
            Spread::json(Spread::of(figures))
        });
        let config = &self.runs[0].scenario.hosts[host];
        let all: Vec<_> = views.iter().map(|view| percentiles::of(config, view)).collect();
        let runs = |object| all.iter().map(|run| &run[object]).collect::<Vec<_>>();
        let objects = all[0].keys();
        let percentiles = objects.map(|object| (object.clone(), over(&runs(object)))).collect();
        json::of_host(&views[0].recording, counters, percentiles)
    }
}

/// Figures of the same shape, each over all runs.
fn over(runs: &[&Value]) -> Value {
    let part = |key: &String| over(&runs.iter().map(|run| &run[key]).collect::<Vec<_>>());
    match runs[0].as_object() {
        Some(parts) => parts.keys().map(|key| (key.clone(), part(key))).collect(),
        None => Spread::json(Spread::of(runs.iter().map(|run| run.as_f64()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_students_t() {
        let figures = |all: &[f64]| Spread::of(all.iter().copied().map(Some));
        let spread = figures(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        // The standard deviation is 1.291, that of the mean 0.6455, and t with 3 is 3.182.
        assert_eq!(spread.mean, 2.5);
        assert!((spread.half.unwrap() - 2.054).abs() < 0.001);
        assert_eq!(figures(&[7.0]), Some(Spread { mean: 7.0, half: None }));
        assert_eq!(figures(&[0.8; 20]), Some(Spread { mean: 0.8, half: Some(0.0) }));
        assert_eq!(Spread::of([Some(1.0), None].into_iter()), None);
        for (freedom, t) in [(1, 12.706), (10, 2.228), (11, 2.201), (19, 2.093), (100, 1.984)] {
            assert!((student_95(freedom) - t).abs() < 0.0006, "{freedom}");
        }
    }
}
