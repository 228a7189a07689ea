//! Instructions as callgrind counts them, where it is installed: what the tests have in common that hold an I/O to a
//! budget. Such a test runs its own program again, of which the ignored test `counted_run` does what is counted.

use std::{env, process::Command};

use crate::skipped;

/// What `counted_run` is told.
const RUN: &str = "KAVG_COUNTED_RUN";

/// What `counted_run` is to do.
///
/// # Panics
/// When it was not called by [`run`].
#[must_use]
pub fn wanted() -> String {
    env::var(RUN).unwrap()
}

/// Whether callgrind is installed; else it is said that the test skips.
#[must_use]
pub fn is_there() -> bool {
    let is_there = Command::new("valgrind").arg("--version").output().is_ok();
    if !is_there {
        skipped("no valgrind, which counts the instructions of an I/O");
    }
    is_there
}

/// The instructions of a run of `counted_run`, which is told `wanted`, and what it printed. `options` are callgrind's.
///
/// # Panics
/// When it fails, with what callgrind said.
#[must_use]
pub fn run(wanted: &str, options: &[&str]) -> (u64, String) {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(options)
        .arg(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "counted_run", "--nocapture", "--test-threads=1"])
        .env(RUN, wanted)
        .output()
        .unwrap();
    let [printed, said] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    (number_after(&said, "Collected : "), printed.into_owned())
}

/// The number that stands behind a word.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn number_after(text: &str, word: &str) -> u64 {
    let rest = text.split_once(word).map(|(_, rest)| rest.split_whitespace().next());
    rest.flatten().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// Holds the instructions of an I/O to their budgets: counted, budget and name of each.
///
/// # Panics
/// When one takes more.
#[expect(clippy::print_stdout, reason = "the counts are what one asks for")]
pub fn hold(counted: &[(u64, u64, &str)]) {
    for (instructions, budget, name) in counted {
        println!("{name}: {instructions} instructions an I/O, of {budget}");
    }
    let over = counted.iter().filter(|(instructions, budget, _)| instructions > budget);
    assert_eq!(over.collect::<Vec<_>>(), [] as [&(u64, u64, &str); 0]);
}
