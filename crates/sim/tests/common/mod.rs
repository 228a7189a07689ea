//! What the tests of the driver share.
#![allow(dead_code, reason = "each test file uses its part")]

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
