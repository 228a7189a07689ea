//! A sweep as JSON, in the shape of `docs/reference/json.md`: of each point every figure over the seeds.

use counters::{Counter, PERCENTILES};
use serde::{Serialize, Serializer, ser::Error};
use serde_json::{Value, json};
use std::cell::RefCell;

use crate::{
    Result,
    json::{VERSION, object, seconds},
    spread::Spread,
};

use super::{
    figures::{Figures, PARTS, Row, STACK_KEYS, figure, place_of_part},
    job::Job,
    results::{By, Results, Window},
    store::Store,
};

/// All of it; the points come one after the other, since all of them may not fit into memory.
#[derive(Serialize)]
pub(crate) struct Sweep<'a> {
    version: u32,
    scenario: &'a str,
    title: &'a str,
    source: &'a str,
    over: Vec<Value>,
    seeds: &'a [u64],
    knees: Vec<Value>,
    points: Points<'a>,
}

struct Points<'a> {
    job: &'a Job,
    store: RefCell<&'a mut Store>,
}

impl<'a> Sweep<'a> {
    pub(crate) fn new(results: &Results<'a>, store: &'a mut Store) -> Self {
        let job = results.job;
        let over = |axis: &super::axis::Axis| json!({ "key": axis.name, "values": axis.values });
        Self {
            version: VERSION,
            scenario: &job.base.name,
            title: &job.base.title,
            source: &job.base.source,
            over: job.axes.iter().map(over).collect(),
            seeds: &job.seeds,
            knees: results.windows.iter().flat_map(|window| knees(results, window)).collect(),
            points: Points { job, store: RefCell::new(store) },
        }
    }
}

fn knees(results: &Results<'_>, window: &Window) -> Vec<Value> {
    let of = |line: std::ops::Range<usize>| {
        By::ALL.into_iter().filter_map(move |by| {
            let point = results.knee(window, &line, by)?;
            Some(json!({ "window": window.name, "by": by.key(), "over": over(results.job, point) }))
        })
    };
    results.lines().flat_map(of).collect()
}

/// The value of each axis at a point, as it was typed.
fn over(job: &Job, point: usize) -> Value {
    object(job.values(point).map(|(axis, value)| (axis.name.clone(), json!(value)))).into()
}

impl Serialize for Points<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut points = out.serialize_seq(Some(self.job.points()))?;
        for point in 0..self.job.points() {
            let point = self.point(point).map_err(|error| S::Error::custom(error.to_string()))?;
            points.serialize_element(&point)?;
        }
        points.end()
    }
}

impl Points<'_> {
    fn point(&self, point: usize) -> Result<Value> {
        let mut store = self.store.borrow_mut();
        let runs = self.job.runs_of(point).map(|run| store.get(run));
        let runs: Vec<_> = runs.collect::<Result<_>>()?;
        let windows = (0..runs[0].windows.len()).map(|window| of_window(&runs, window));
        Ok(json!({ "over": over(self.job, point), "windows": windows.collect::<Vec<_>>() }))
    }
}

fn of_window(runs: &[Figures], index: usize) -> Value {
    let window = &runs[0].windows[index];
    let rows = |place: usize| -> Vec<&Row> {
        runs.iter().filter_map(|run| run.windows.get(index)?.rows.get(place)).collect()
    };
    let stacks: Vec<_> =
        runs.iter().filter_map(|run| Some(run.windows.get(index)?.stack())).collect();
    let stack = STACK_KEYS.iter().filter_map(|key| {
        let (place, _) = figure(key)?;
        let spread = Spread::of(stacks.iter().map(|stack| stack[place]));
        Some(((*key).to_owned(), Spread::json(spread)))
    });
    let mut hosts: Vec<(&str, Vec<Value>)> = Vec::new();
    for place in 1..window.rows.len() {
        let rows = rows(place);
        let host = rows[0].names[0].as_deref().unwrap_or_default();
        match hosts.last_mut().filter(|(known, _)| *known == host) {
            Some((_, objects)) => objects.push(of_object(&rows)),
            None => hosts.push((host, vec![of_object(&rows)])),
        }
    }
    let host = |(host, objects)| json!({ "host": host, "objects": objects });
    json!({
        "name": window.name,
        "from_s": seconds(window.from),
        "to_s": seconds(window.to),
        "stack": object(stack),
        "hosts": hosts.into_iter().map(host).collect::<Vec<_>>(),
    })
}

/// An object over the runs: counters that no run has are left out.
fn of_object(rows: &[&Row]) -> Value {
    let spread = |place: usize| Spread::of(rows.iter().map(|row| row.figures[place]));
    let is_there = |place: usize| rows.iter().any(|row| row.figures[place].is_some());
    let counters = Counter::TABLE.iter().enumerate().filter(|(place, _)| is_there(*place));
    let counters = counters.map(|(place, info)| (info.key.to_owned(), Spread::json(spread(place))));
    let percentiles = PARTS.iter().enumerate().filter_map(|(part, name)| {
        let places = || place_of_part(part)..place_of_part(part) + PERCENTILES.len();
        let own = places().zip(PERCENTILES);
        let own = own
            .map(|(place, (share, _))| (share.info().key.to_owned(), Spread::json(spread(place))));
        places().any(is_there).then(|| ((*name).to_owned(), object(own).into()))
    });
    json!({
        "kind": rows[0].names[1],
        "name": rows[0].names[2],
        "counters": object(counters),
        "percentiles": Some(object(percentiles)).filter(|all| !all.is_empty()),
    })
}
