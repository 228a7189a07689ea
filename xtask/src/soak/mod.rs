//! `cargo xtask soak`: random hosts on random arrays, everything that can happen to them, and
//! every invariant of the engine after every step, or after every so many.
//!
//! A run is a row of episodes, each from a seed of its own: some hosts on one array. What failed
//! is told with the command that repeats its episode alone.

mod drive;
mod host;
mod ledger;

use std::collections::BTreeMap;
use std::time::Instant;

use crate::corpus::draw::Draw;
use drive::Episode;

const USAGE: &str = "usage: cargo xtask soak [--ios N] [--seed S] [--episode E] [--every STEPS]";

/// I/Os unless told.
const IOS: u64 = 1_000_000;
/// Episodes from one line of progress to the next.
const TOLD_EVERY: u64 = 1_000;

/// How often each kind of thing happened.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// Runs as many I/Os as told.
///
/// # Errors
/// One line: what is broken, where, and how to see it again.
pub(crate) fn soak(arguments: &[String]) -> Result<String, String> {
    let (mut ios, mut seed, mut only, mut every) = (IOS, 1, None, 1);
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err(USAGE.into()) };
        let number = value.parse::<u64>().map_err(|_| USAGE.to_owned())?;
        match name.as_str() {
            "--ios" => ios = number,
            "--seed" => seed = number,
            "--episode" => only = Some(number),
            "--every" if number > 0 => every = number,
            _ => return Err(USAGE.into()),
        }
    }
    match only {
        Some(episode) => {
            let mut counts = Counts::new();
            run_episode(seed, episode, every, &mut counts)?;
            Ok(report(seed, &counts))
        }
        None => run(ios, seed, every),
    }
}

fn run(ios: u64, seed: u64, every: u64) -> Result<String, String> {
    let (mut counts, start) = (Counts::new(), Instant::now());
    for episode in 0.. {
        let done = counts.get("I/Os").copied().unwrap_or(0);
        if episode % TOLD_EVERY == 0 {
            eprintln!("soak: {done} I/Os in {episode} episodes, {} s", start.elapsed().as_secs());
        }
        if done >= ios {
            break;
        }
        run_episode(seed, episode, every, &mut counts)?;
    }
    Ok(report(seed, &counts))
}

fn run_episode(seed: u64, episode: u64, every: u64, counts: &mut Counts) -> Result<(), String> {
    let mut running = Episode::new(Draw::new(&format!("soak {episode}"), seed), every);
    running.run().map_err(|broken| {
        format!(
            "{broken}\nat step {} of episode {episode} of seed {seed}; again with: \
             cargo xtask soak --seed {seed} --episode {episode}",
            running.steps
        )
    })?;
    for (what, times) in &running.counts {
        *counts.entry(what).or_default() += times;
    }
    *counts.entry("episodes").or_default() += 1;
    Ok(())
}

fn report(seed: u64, counts: &Counts) -> String {
    let of = |what: &str| counts.get(what).copied().unwrap_or(0);
    let lines: Vec<_> = counts.iter().map(|(what, times)| format!("{times:>12}  {what}")).collect();
    let inputs = of("inputs") as f64 / of("I/Os").max(1) as f64;
    format!(
        "{}\nsoak: every invariant held; seed {seed}, {inputs:.2} inputs an I/O",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::{run, soak};

    #[test]
    fn every_invariant_holds_over_a_million_ios() {
        let report = run(1_000_000, 1, 1).unwrap_or_else(|broken| panic!("{broken}"));
        let kinds = [
            "BUSY",
            "TASK SET FULL",
            "RESERVATION CONFLICT",
            "CHECK CONDITION",
            "paths lost",
            "aborts",
            "resets",
            "recalls",
            "late answers",
            "second answers",
            "paths down",
            "paths up",
            "powered off",
            "powered on",
            "guests rebooted",
            "hosts rebooted",
            "settings taken",
            "settings refused",
            "wild answers",
            "wake-ups",
            "LUN resets",
            "all paths down",
            "outages timed out",
            "permanent losses",
            "paths back",
            "parts attached",
            "parts detached",
            "large hosts",
        ];
        for kind in kinds {
            assert!(
                report.lines().any(|line| line.trim().ends_with(&format!("  {kind}"))),
                "{kind}\n{report}"
            );
        }
    }

    #[test]
    fn one_seed_gives_one_run_and_arguments_are_pairs_of_a_name_and_a_number() {
        assert_eq!(run(2_000, 3, 1), run(2_000, 3, 1));
        assert_ne!(run(2_000, 3, 1), run(2_000, 4, 1));
        for wrong in [&["--ios"][..], &["--ios", "many"], &["--for", "1"], &["--every", "0"]] {
            let wrong: Vec<_> = wrong.iter().map(ToString::to_string).collect();
            assert!(soak(&wrong).unwrap_err().starts_with("usage"));
        }
    }
}
