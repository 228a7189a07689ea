//! What is kept of a run: every figure of every window, as rows of one table. The file of the state
//! holds them, and whatever a sweep shows is made of them.

use std::collections::BTreeMap;

use counters::{Counter, EntityId, Kind, PERCENTILES, Time};
use serde_json::Value;

use crate::{
    compare::{FIGURES, Figure},
    percentiles,
    report::Report,
};

/// How many figures a row has: the counters, percentiles of four times, MiB/s of the stack.
pub(crate) const COUNT: usize = Counter::TABLE.len() + PARTS.len() * PERCENTILES.len() + 1;
/// A bit for each says which there are.
const _: () = assert!(COUNT <= u128::BITS as usize);
/// The times of which there are percentiles, by their keys in JSON.
pub(crate) const PARTS: [&str; 4] = ["total_ms", "guest_ms", "kernel_ms", "device_ms"];
/// The figure that is no counter: both ways together.
const MIB: &str = "mib_per_s";
/// The kind of the row of the whole stack, which is the first of a window.
pub(crate) const STACK: &str = "stack";
/// The columns in which the row of the stack has [`FIGURES`].
pub(crate) const STACK_KEYS: [&str; FIGURES.len()] = [
    "cmds",
    MIB,
    "total",
    "guest_wait",
    "gavg",
    "kavg",
    "davg",
    "array",
    "gqued_mean",
    "dqlen",
    "actv_mean",
    "qued_mean",
];

/// The figures of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) windows: Vec<Window>,
}

/// Those of a window of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) name: String,
    pub(crate) from: Time,
    pub(crate) to: Time,
    /// The stack, then the objects of each host; at least one.
    pub(crate) rows: Vec<Row>,
}

/// Those of an object.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    /// As `capture::ROW_NAMES`.
    pub(crate) names: [Option<String>; capture::ROW_NAMES.len()],
    /// As [`keys`].
    pub(crate) figures: [Option<f64>; COUNT],
}

/// The name of each figure, in the order of a row.
pub(crate) fn keys() -> Vec<String> {
    let mut keys: Vec<_> = Counter::TABLE.iter().map(|info| info.key.to_owned()).collect();
    for part in PARTS {
        keys.extend(PERCENTILES.map(|(share, _)| format!("{part}_{}", share.info().key)));
    }
    keys.push(MIB.into());
    keys
}

/// Where the percentiles of a part begin in a row.
pub(crate) const fn place_of_part(part: usize) -> usize {
    Counter::TABLE.len() + part * PERCENTILES.len()
}

impl Figures {
    pub(crate) fn of(report: &Report) -> Self {
        let windows = report.scenario.windows.iter().enumerate().map(|(index, window)| Window {
            name: window.name.clone(),
            from: window.from,
            to: window.to,
            rows: rows(report, index),
        });
        Self { windows: windows.collect() }
    }
}

fn rows(report: &Report, window: usize) -> Vec<Row> {
    let mut stack = Row { names: Default::default(), figures: [None; COUNT] };
    stack.names[1] = Some(STACK.into());
    let keys = keys();
    for (key, (_, figure, _)) in STACK_KEYS.iter().zip(&FIGURES) {
        if let Some(place) = keys.iter().position(|known| known == key) {
            stack.figures[place] = figure(&report.stacks[window]);
        }
    }
    let mut rows = vec![stack];
    for (host, view) in report.scenario.hosts.iter().zip(&report.outcome.windows[window]) {
        let percentiles = percentiles::of(host, view);
        let recording = &view.recording;
        for (id, entity) in (0..).map(EntityId).zip(recording.entities()) {
            let mut figures = [None; COUNT];
            for (counter, values) in recording.columns_of(id) {
                figures[counter as usize] = values.first().copied().filter(|value| !value.is_nan());
            }
            put_percentiles(&percentiles, (entity.kind, &entity.name), &mut figures);
            let names = capture::row_names(recording, entity).map(|name| name.map(str::to_owned));
            rows.push(Row { names, figures });
        }
    }
    rows
}

fn put_percentiles(
    all: &BTreeMap<(Kind, String), Value>,
    (kind, name): (Kind, &String),
    figures: &mut [Option<f64>; COUNT],
) {
    let Some(own) = all.get(&(kind, name.clone())) else { return };
    for (index, part) in PARTS.into_iter().enumerate() {
        for (place, (share, _)) in (place_of_part(index)..).zip(PERCENTILES) {
            figures[place] = own[part][share.info().key].as_f64();
        }
    }
}

impl Row {
    /// Its host.
    pub(crate) fn host(&self) -> Option<&str> {
        self.names[0].as_deref()
    }

    /// What it is of.
    pub(crate) fn object(&self) -> Option<&str> {
        self.names[2].as_deref()
    }

    /// The VM that this belongs to.
    pub(crate) fn vm(&self) -> Option<&str> {
        self.names[3].as_deref()
    }

    /// A figure that is a counter.
    pub(crate) fn value(&self, counter: Counter) -> Option<f64> {
        self.figures[counter as usize]
    }
}

impl Window {
    /// The rows of objects of a kind.
    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.names[1].as_deref() == Some(kind.name()))
    }

    /// The figures of the stack, as [`FIGURES`].
    pub(crate) fn stack(&self) -> [Option<f64>; FIGURES.len()] {
        let keys = keys();
        let place = |key: &str| keys.iter().position(|known| known == key);
        STACK_KEYS.map(|key| self.rows.first()?.figures[place(key)?])
    }
}

/// As [`FIGURES`], by the key of the stack's row.
pub(crate) fn figure(key: &str) -> Option<(usize, &'static Figure)> {
    let place = STACK_KEYS.iter().position(|known| *known == key)?;
    Some((place, &FIGURES[place]))
}
