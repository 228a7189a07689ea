//! How many instructions an I/O takes, counted by callgrind where it is installed, and the budgets that
//! hold them: times depend on the machine and its neighbours, instructions do not.
//!
//! The budgets are for the profile of tests, whose assertions are on. What a release takes is told by
//! `cargo test --release -p sim --test instructions -- --nocapture`.
#![expect(clippy::print_stdout, reason = "the counts are what one asks for")]

use std::io::Cursor;

use counters::{MILLISECOND, Time};
use scenario::Scenario;
use sim::bench::{MODELS, scenario_with_laws, time_engine, time_journal};
use testing::callgrind;

/// What is counted: models (a) and (b) of the benchmark, (b) with every control law, the engine alone, and the same with a journal;
/// the most instructions an I/O, a twentieth above what was counted, for compilers differ; and a short
/// and a long run, whose difference leaves the set-up out.
const BUDGETS: [(&str, u64, [u64; 2]); 5] = [
    ("a", 1_245, [50, 150]),
    ("b", 1_315, [5, 10]),
    ("laws", 2_350, [50, 150]),
    ("engine", 1_170, [2_000, 8_000]),
    ("journal", 1_830, [2_000, 8_000]),
];

#[test]
fn an_io_takes_no_more_instructions_than_its_budget() {
    if !callgrind::is_there() {
        return;
    }
    let count = |(name, budget, lengths): (_, u64, [u64; 2])| {
        let [few, many] = lengths.map(|length| under_callgrind(name, length));
        ((many.1 - few.1) / (many.0 - few.0), budget, name)
    };
    callgrind::hold(&BUDGETS.map(count));
}

/// I/Os and instructions of a run, which is told a name of [`BUDGETS`] and a length.
fn under_callgrind(name: &str, length: u64) -> (u64, u64) {
    let (instructions, printed) = callgrind::run(&format!("{name} {length}"), &[]);
    (callgrind::number_after(&printed, "I/Os: "), instructions)
}

#[test]
#[ignore = "callgrind runs it, by the test above"]
fn counted_run() {
    let run = callgrind::wanted();
    let (name, length) = run.split_once(' ').unwrap();
    let length = length.parse().unwrap();
    let ios = match name {
        "a" => simulate(MODELS[0].scenario(), length),
        "b" => simulate(MODELS[1].scenario(), length),
        "laws" => simulate(scenario_with_laws(), length),
        "engine" => time_engine(96, length).ios,
        _ => time_journal(96, length, Cursor::new(Vec::new())).unwrap().0.ios,
    };
    println!("I/Os: {ios}");
}

/// So many virtual milliseconds of a model.
fn simulate(mut scenario: Scenario, millis: u64) -> u64 {
    scenario.duration_ns = millis * MILLISECOND;
    scenario.sample_ns = scenario.duration_ns;
    scenario.windows[0].to = Time(scenario.duration_ns);
    sim::run(&scenario, 1, &()).ios
}
