//! What is asked of what is recorded, for tests of answers.

use knobs::Line;
use levels::Measured;
use scenario::Scenario;
use whatif::Question;

/// What the first host of a scenario without files records.
pub(crate) fn recorded(text: &str) -> Measured {
    let no_files = &mut |_: &str| Err("no files".to_owned());
    let scenario = Scenario::parse("test.toml", text, no_files).expect("a scenario");
    Measured::of(sim::run(&scenario, 1, &()).recordings.swap_remove(0))
}

/// What a line does to what was recorded in a window, found by so many commands.
pub(crate) fn question(line: &str, window: (i64, i64), commands: f64) -> Question {
    Question {
        settings: line.parse::<Line>().expect("a line").settings,
        window,
        device: None,
        vms: Vec::new(),
        arrays: Vec::new(),
        vscsistats: Vec::new(),
        commands,
    }
}
