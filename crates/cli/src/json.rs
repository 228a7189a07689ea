//! A run as JSON: every figure of every window and of every sample, verdicts, expectations, log.

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, Write},
};

use counters::{Counter, EntityId, Kind, Recording, SECOND, Time};
use diagnose::steers;
use scenario::{Bound, Role, Window};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sim::{Checked, EPOCH_MS, WindowView};

use crate::{Result, log, notes, percentiles, report::Report};

/// The version of the shape that `docs/reference/json.md` describes.
pub(crate) const VERSION: u32 = 1;

/// Writes a value as JSON. What would steer a terminal is spelled as `\u202e`: only strings can hold
/// it, so a program reads the same names.
pub(crate) fn write(value: &impl Serialize, out: &mut dyn Write) -> Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer_pretty(Spelled(&mut out), value)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// Spells what would steer a terminal. `serde_json` writes strings, never a part of a letter.
struct Spelled<W>(W);

impl<W: Write> Write for Spelled<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Ok(text) = str::from_utf8(bytes) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let mut from = 0;
        for (at, c) in text.char_indices().filter(|(_, c)| *c != '\n' && steers(*c)) {
            write!(self.0, "{}\\u{:04x}", &text[from..at], u32::from(c))?;
            from = at + c.len_utf8();
        }
        self.0.write_all(&bytes[from..])?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The whole run. Times are seconds and milliseconds as their names say; a figure that there is
/// not is null.
pub(crate) fn render(report: &Report) -> Value {
    let scenario = &report.scenario;
    let windows = scenario.windows.iter().enumerate();
    let thresholds = scenario.thresholds.iter().map(|found| {
        let threshold_ms = f64::from(found.threshold_us) / 1000.0;
        json!({
            "datastore": found.datastore,
            "percent_of_peak": 100.0 * found.share,
            "threshold_ms": threshold_ms,
        })
    });
    let log = report.outcome.log.iter().map(|line| {
        let host = &scenario.hosts[line.host].config.name;
        let (event, device) = log::event(report, line);
        let at_s = seconds(line.at);
        let text = log::text(report, line);
        json!({ "at_s": at_s, "host": host, "event": event, "device": device, "line": text })
    });
    json!({
        "version": VERSION,
        "scenario": scenario.name,
        "title": scenario.title,
        "source": scenario.source,
        "seed": scenario.seed,
        "duration_s": seconds(Time(scenario.duration_ns)),
        "ios": report.outcome.ios,
        "congestion_thresholds": thresholds.collect::<Vec<_>>(),
        "windows": windows.map(|(index, window)| of_window(report, index, window))
            .collect::<Vec<_>>(),
        "series": report.samples(0).iter().map(series).collect::<Vec<_>>(),
        "expectations": report.checked().iter().map(|one| expectation(report, one))
            .collect::<Vec<_>>(),
        "log": log.collect::<Vec<_>>(),
    })
}

/// An object, by an insertion for each field: what is collected is put in order first.
pub(crate) fn object(fields: impl Iterator<Item = (String, Value)>) -> Map<String, Value> {
    let mut object = Map::new();
    object.extend(fields);
    object
}

fn of_window(report: &Report, index: usize, window: &Window) -> Value {
    let hosts = report.scenario.hosts.iter().zip(&report.outcome.windows[index]);
    let host = |(host, view): (_, &WindowView)| {
        of_host(&view.recording, own_counters(&view.recording), percentiles::of(host, view))
    };
    json!({
        "name": window.name,
        "from_s": seconds(window.from),
        "to_s": seconds(window.to),
        "notes": notes::of(report, index),
        "stack": report.stacks[index],
        "hosts": hosts.map(host).collect::<Vec<_>>(),
        "verdicts": report.verdicts(index),
    })
}

/// The counters of a host's objects, beside each how long its I/Os took.
pub(crate) fn of_host(
    recording: &Recording,
    mut counters: Value,
    mut percentiles: BTreeMap<(Kind, String), Value>,
) -> Value {
    let objects = counters["objects"].as_array_mut().into_iter().flatten();
    for (object, entity) in objects.zip(recording.entities()) {
        object["percentiles"] = json!(percentiles.remove(&(entity.kind, entity.name.clone())));
    }
    counters
}

fn own_counters(recording: &Recording) -> Value {
    counters(recording, |entity, counter| json!(recording.value(entity, counter, 0)))
}

/// Every sample: the instants, and of every counter as many values. What is missing is null.
fn series(recording: &Recording) -> Value {
    let mut value = counters(recording, |entity, counter| json!(recording.series(entity, counter)));
    let at = recording.times_ms.iter().map(|ms| (ms - EPOCH_MS) as f64 / 1e3);
    value["at_s"] = at.collect();
    value
}

/// Every counter of every object of a host, by its key, with the figure that there is of it.
pub(crate) fn counters(
    recording: &Recording,
    figure: impl Fn(EntityId, Counter) -> Value,
) -> Value {
    let mut objects: Vec<Map<String, Value>> = vec![Map::new(); recording.entities().len()];
    for (entity, counter, _) in recording.columns() {
        if let Some(object) = objects.get_mut(entity.0 as usize) {
            object.insert(counter.info().key.into(), figure(entity, counter));
        }
    }
    let objects = recording.entities().iter().zip(objects).map(|(entity, counters)| {
        json!({ "kind": entity.kind.name(), "name": entity.name, "counters": counters })
    });
    json!({ "host": recording.host, "objects": objects.collect::<Vec<_>>() })
}

pub(crate) fn expectation(report: &Report, one: &Checked<'_>) -> Value {
    let expectation = one.expectation;
    let name = |index: usize| report.scenario.windows[index].name.as_str();
    let bound = |bound: Bound| match bound {
        Bound::Near { value, tolerance } => json!({ "value": value, "within": tolerance }),
        Bound::Between { min, max } => json!({ "min": min, "max": max }),
    };
    json!({
        "window": name(expectation.window),
        "relative_to": expectation.relative_to.map(name),
        "whose": expectation.subject_name,
        "counter": expectation.counter.info().key,
        "expected": bound(expectation.bound),
        "published": expectation.published.map(bound),
        "role": expectation.role.map(Role::name),
        "figure": one.figure,
        "holds": one.holds,
        "missed": expectation.is_missed(one.figure),
        "source": expectation.source,
        "line": expectation.line,
    })
}

pub(crate) fn seconds(at: Time) -> f64 {
    at.0 as f64 / SECOND as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_json_steers_a_terminal_and_every_name_is_what_it_was() {
        let name = "a\u{202e}b\u{9b}c\u{feff}\n\"";
        let mut out = Vec::new();
        write(&json!({ "name": name }), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains(|c| c != '\n' && steers(c)), "{text:?}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["name"], name);
    }
}
