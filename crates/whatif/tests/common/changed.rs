//! The truth of a change, for tests of answers: the same host with it.

use counters::Recording;
use scenario::Scenario;

/// What the first host of a scenario without files records with a line in force.
pub(crate) fn changed(text: &str, line: &str) -> Recording {
    let no_files = &mut |_: &str| Err("no files".to_owned());
    let mut scenario = Scenario::parse("test.toml", text, no_files).expect("a scenario");
    scenario.set(line).expect("a setting");
    sim::run(&scenario, 1, &()).recordings.swap_remove(0)
}
