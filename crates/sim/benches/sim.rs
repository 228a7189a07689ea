//! How fast the simulator is: `cargo bench -p sim` prints every model beside the floor, on one
//! thread and on all.
//!
//! `cargo bench -p sim -- a 500` simulates 500 milliseconds of model (a) and prints the number of
//! I/Os, for `scripts/callgrind.sh`.
#![expect(clippy::print_stdout, reason = "the table is what a benchmark is for")]

use std::{env, thread};

use counters::{MILLISECOND, Time};
use sim::bench::{MODELS, Model, Timing, time_floor, time_model};

/// Rounds in which the floor and every model take turns.
const ROUNDS: usize = 5;
/// I/Os of the floor in a round.
const FLOOR_IOS: u64 = 5_000_000;

fn main() {
    let mut words = env::args().skip(1).filter(|word| word != "--bench");
    if let (Some(letter), Some(millis)) = (words.next(), words.next()) {
        let model = MODELS.iter().find(|model| model.name.starts_with(&format!("({letter})")));
        let model = model.expect("the models are a, b, c, d");
        println!("{}", count(model, millis.parse().expect("milliseconds are a whole number")));
        return;
    }
    let all = thread::available_parallelism().map_or(1, |count| count.get());
    println!("{:<42} {:>7} {:>9} {:>8} {:>9}", "model", "threads", "ns an I/O", "M/s", "floors");
    let mut lines = vec![("floor: binary heap, no statistics".to_owned(), 1, Vec::new())];
    for threads in [1, all] {
        lines.extend(MODELS.map(|model| (model.name.to_owned(), threads, Vec::new())));
    }
    for _ in 0..ROUNDS {
        lines[0].2.push(time_floor(FLOOR_IOS));
        for (index, (_, threads, timings)) in lines.iter_mut().skip(1).enumerate() {
            timings.push(time_model(&MODELS[index % MODELS.len()], *threads));
        }
    }
    let floors = lines[0].2.clone();
    for (name, threads, timings) in lines {
        let nanos = median(timings.iter().map(|timing| timing.nanos_per_io()));
        let ratio =
            |(timing, floor): (&Timing, &Timing)| timing.nanos_per_io() / floor.nanos_per_io();
        let ratio = median(timings.iter().zip(&floors).map(ratio));
        println!("{name:<42} {threads:>7} {nanos:>9.1} {:>8.2} {ratio:>9.2}", 1000.0 / nanos);
    }
}

/// I/Os that so many virtual milliseconds of a model hold.
fn count(model: &Model, millis: u64) -> u64 {
    let mut scenario = model.scenario();
    scenario.duration_ns = millis * MILLISECOND;
    scenario.sample_ns = scenario.duration_ns;
    scenario.windows[0].to = Time(scenario.duration_ns);
    sim::run(&scenario, 1, &()).ios
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
