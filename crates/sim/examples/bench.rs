fn main() {
    let which: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(9);
    if which > 3 {
        let floor = sim::bench::time_floor(20_000_000);
        println!("floor {:.1} ns {:.1} M/s", floor.nanos_per_io(), floor.millions_per_sec());
    }
    for (i, m) in sim::bench::MODELS.iter().enumerate() {
        if which < 4 && i != which {
            continue;
        }
        let t = sim::bench::time_model(m, 1);
        println!("{} {} {:.1} ns {:.1} M/s", m.name, t.ios, t.nanos_per_io(), t.millions_per_sec());
    }
}
