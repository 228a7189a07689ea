fn main() {
    let floor = sim::bench::time_floor(20_000_000);
    println!("floor {:.1} ns {:.1} M/s", floor.nanos_per_io(), floor.millions_per_sec());
    for m in &sim::bench::MODELS {
        let t = sim::bench::time_model(m, 1);
        println!("{} {} {:.1} ns {:.1} M/s", m.name, t.ios, t.nanos_per_io(), t.millions_per_sec());
    }
}
