//! A scenario under several seeds: the mean of every figure, and how far chance may have moved it.
//! It stands beside `screen` and `json`, which show a single run.

use std::fmt::Write;

use counters::sorted::Ordered;
use serde_json::{Value, json};
use sim::Checked;

use crate::{
    compare::FIGURES,
    expectations::{self, OverSeeds},
    json, percentiles,
    report::Report,
    spread::Spread,
    table::Table,
    text::{BOLD, clean, styled},
};

/// Seeds that are run at most: their figures are kept in memory.
pub(crate) const SEEDS_MAX: u64 = 1_000;

/// The seeds of several runs: from 1 to `last`, or that `one`.
pub(crate) fn asked(last: Option<u64>, one: u64) -> Vec<u64> {
    last.map_or(vec![one], |last| (1..=last).collect())
}

/// So many seeds in words, and what figures are over them.
pub(crate) fn in_words(seeds: usize) -> String {
    format!("seeds 1 to {seeds}; means, and half of their 95 % confidence interval")
}

/// The runs of a scenario, by seed from 1; at least one.
pub(crate) struct Seeds {
    pub(crate) runs: Vec<Report>,
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
        let _ = writeln!(out, "{}: {}", clean(&scenario.name), in_words(self.runs.len()));
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
            let cell =
                |window: usize| Spread::text(self.spread(|run| figure(&run.stacks[window])), print);
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
        let percentiles = objects.map(|object| (object.clone(), over(&runs(object)))).into_map();
        json::of_host(&views[0].recording, counters, percentiles)
    }
}

/// Figures of the same shape, each over all runs.
fn over(runs: &[&Value]) -> Value {
    let part = |key: &String| over(&runs.iter().map(|run| &run[key]).collect::<Vec<_>>());
    match runs[0].as_object() {
        Some(parts) => json::object(parts.keys().map(|key| (key.clone(), part(key)))).into(),
        None => Spread::json(Spread::of(runs.iter().map(|run| run.as_f64()))),
    }
}
