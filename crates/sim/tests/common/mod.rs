//! What the tests of the driver share.
#![allow(dead_code, reason = "each test file uses its part")]

use counters::{Counter, Kind, Recording};
use scenario::Scenario;
use sim::Source;

/// A run of a few milliseconds.
pub(crate) const SMALL: &str = include_str!("small.toml");
/// The base model of the reference (`simulation.md`, section 1) on servers chosen at random.
pub(crate) const BASE: &str = include_str!("base.toml");
/// Two hosts on one array, and an event of every kind.
pub(crate) const EVERYTHING: &str = include_str!("everything.toml");

pub(crate) fn source(text: &str) -> Source {
    Source { file: "test.toml".into(), text: text.into(), ..Source::default() }
}

pub(crate) fn scenario(text: &str) -> Scenario {
    source(text).scenario().unwrap_or_else(|error| panic!("{error}"))
}

/// A figure of a recording of one row, as that of a window is.
#[track_caller]
pub(crate) fn figure(recording: &Recording, kind: Kind, name: &str, counter: Counter) -> f64 {
    let entity = recording.find(kind, name).unwrap_or_else(|| panic!("no {name}"));
    recording.value(entity, counter, 0).unwrap_or_else(|| panic!("no {counter:?} of {name}"))
}

#[track_caller]
pub(crate) fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{found} is not {expected}");
}
