//! What the tests of the driver share.

use scenario::Scenario;
use sim::Source;

/// Two hosts on one array, and an event of every kind.
pub(crate) fn everything() -> (Source, Scenario) {
    let source = Source {
        file: "everything.toml".into(),
        text: include_str!("everything.toml").into(),
        ..Source::default()
    };
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    (source, scenario)
}
