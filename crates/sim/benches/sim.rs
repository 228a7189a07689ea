//! How fast the simulator is: `cargo bench -p sim` prints every model beside the floor, on one
//! thread and on all.
#![expect(clippy::print_stdout, reason = "the table is what a benchmark is for")]

use std::thread;

use sim::bench::{MODELS, Timing, time_floor, time_laws, time_model};

/// Rounds in which the floor and every model take turns.
const ROUNDS: usize = 5;
/// Pairs of runs with every control law and without.
const LAWS_ROUNDS: usize = 9;
/// I/Os of the floor in a round.
const FLOOR_IOS: u64 = 5_000_000;

fn main() {
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
    let laws = |_| time_laws(true).nanos_per_io() / time_laws(false).nanos_per_io();
    let laws = median((0..LAWS_ROUNDS).map(laws));
    println!("(b) with every control law on: {laws:.2} times the time of an I/O without");
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
