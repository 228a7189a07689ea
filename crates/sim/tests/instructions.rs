//! How many instructions an I/O takes, counted by callgrind where it is installed, and the budgets that
//! hold them: times depend on the machine and its neighbours, instructions do not.
//!
//! The budgets are for the profile of tests, whose assertions are on. What a release takes is told by
//! `cargo test --release -p sim --test instructions -- --nocapture`.
#![expect(clippy::print_stdout, reason = "the counts are what one asks for")]

use std::{env, io::Cursor, process::Command};

use counters::{MILLISECOND, Time};
use sim::bench::{MODELS, time_engine, time_journal};

/// What is counted: models (a) and (b) of the benchmark, the engine alone, and the same with a journal;
/// the most instructions an I/O, a twentieth above what was counted, for compilers differ; and a short
/// and a long run, whose difference leaves the set-up out.
const BUDGETS: [(&str, u64, [u64; 2]); 4] = [
    ("a", 1_245, [50, 150]),
    ("b", 1_315, [5, 10]),
    ("engine", 1_170, [2_000, 8_000]),
    ("journal", 1_830, [2_000, 8_000]),
];

/// What the test that callgrind runs is told: a name of [`BUDGETS`] and a length.
const RUN: &str = "KAVG_COUNTED_RUN";

#[test]
fn an_io_takes_no_more_instructions_than_its_budget() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        testing::skipped("no valgrind, which counts the instructions of an I/O");
        return;
    }
    let count = |(name, budget, lengths): (_, u64, [u64; 2])| {
        let [few, many] = lengths.map(|length| under_callgrind(name, length));
        ((many.1 - few.1) / (many.0 - few.0), budget, name)
    };
    let counted = BUDGETS.map(count);
    for (instructions, budget, name) in counted {
        println!("{name}: {instructions} instructions an I/O, of {budget}");
    }
    let over = counted.into_iter().filter(|(instructions, budget, _)| instructions > budget);
    assert_eq!(over.collect::<Vec<_>>(), []);
}

/// I/Os and instructions of a run.
fn under_callgrind(name: &str, length: u64) -> (u64, u64) {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "counted_run", "--nocapture", "--test-threads=1"])
        .env(RUN, format!("{name} {length}"))
        .output()
        .unwrap();
    let after = |text: &[u8], word: &str| {
        let text = String::from_utf8_lossy(text).into_owned();
        let rest = text.split_once(word).map(|(_, rest)| rest.split_whitespace().next());
        rest.flatten().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    (after(&output.stdout, "I/Os: "), after(&output.stderr, "Collected : "))
}

#[test]
#[ignore = "callgrind runs it, by the test above"]
fn counted_run() {
    let run = env::var(RUN).unwrap();
    let (name, length) = run.split_once(' ').unwrap();
    let length = length.parse().unwrap();
    let ios = match name {
        "a" => simulate(0, length),
        "b" => simulate(1, length),
        "engine" => time_engine(96, length).ios,
        _ => time_journal(96, length, Cursor::new(Vec::new())).unwrap().0.ios,
    };
    println!("I/Os: {ios}");
}

/// So many virtual milliseconds of a model.
fn simulate(model: usize, millis: u64) -> u64 {
    let mut scenario = MODELS[model].scenario();
    scenario.duration_ns = millis * MILLISECOND;
    scenario.sample_ns = scenario.duration_ns;
    scenario.windows[0].to = Time(scenario.duration_ns);
    sim::run(&scenario, 1, &()).ios
}
