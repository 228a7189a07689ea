//! How long reading counters keeps a component from its work, and a copy of its engine for a segment of its
//! journal: `cargo bench -p sim --bench snapshot` prints what a snapshot takes, into memory that is new and
//! into that of one before, and what a copy takes.
#![expect(clippy::print_stdout, reason = "the table is what a benchmark is for")]

use std::time::Instant;

use counters::{HostSnapshot, Op, Status, Time, VdiskId};
use engine::{Engine, Input, Output, Request};
use scenario::Scenario;

/// Disks of a component.
const DISKS: [usize; 3] = [10, 100, 400];
/// I/Os of each disk before, so that its histogram is filled.
const IOS: usize = 2_000;
/// Readings.
const ROUNDS: usize = 2_000;

fn main() {
    println!(
        "{:>5}  {:>20}  {:>20}  {:>20}",
        "disks", "new memory, us", "same memory, us", "copy, us"
    );
    let columns = format!("  {:>10} {:>9}", "median", "99 %").repeat(3);
    println!("{:>5}{columns}", "");
    for disks in DISKS {
        let (engine, now) = worked(disks);
        let (mut new, mut same, mut copy) = (Vec::new(), Vec::new(), Vec::new());
        let mut kept = HostSnapshot::default();
        for _ in 0..ROUNDS {
            let mut fresh = HostSnapshot::default();
            new.push(timed(|| engine.snapshot(now, &mut fresh)));
            same.push(timed(|| engine.snapshot(now, &mut kept)));
            let mut copied = None;
            copy.push(timed(|| copied = Some(engine.clone())));
        }
        print!("{disks:>5}");
        for mut each in [new, same, copy] {
            each.sort_by(f64::total_cmp);
            print!("  {:>10.1} {:>9.1}", each[ROUNDS / 2], each[ROUNDS * 99 / 100]);
        }
        println!();
    }
}

/// How many microseconds it takes.
fn timed(what: impl FnOnce()) -> f64 {
    let began = Instant::now();
    what();
    began.elapsed().as_nanos() as f64 / 1e3
}

/// A host with so many disks on ten devices, each of which has done I/O of any latency.
fn worked(disks: usize) -> (Engine, Time) {
    let mut text = "title = \"t\"\nduration = \"1s\"\n[array.a]\nservers = 8\nservice = \"1ms\"\n\
                    [host.h.adapter.vmhba1]\ndriver = \"qlnativefc\"\n"
        .to_owned();
    (0..10).for_each(|store| text.push_str(&format!("[datastore.d{store}]\n")));
    for vm in 0..disks {
        let store = vm % 10;
        text.push_str(&format!("[vm.v{vm}.disk.\"scsi0:0\"]\ndatastore = \"d{store}\"\n"));
        text.push_str(&format!("[vm.v{vm}.workload]\nthreads = 1\n"));
    }
    let scenario = Scenario::parse("bench.toml", &text, &mut |_| Err("no file".into()));
    let scenario = scenario.expect("the file is good");
    let mut engine = Engine::new(&scenario.hosts[0].config);
    let mut now = 0;
    for io in 0..disks * IOS {
        now += 1_000 + (io as u64 * 7_919) % 50_000;
        let op = if io % 3 == 0 { Op::Write } else { Op::Read };
        let vdisk = VdiskId::new(io % disks);
        let request = Request { vdisk, op, lba: 0, bytes: 4096, waited_ns: 0, tag: 0 };
        engine.handle_input(Time(now), Input::Submit(request)).expect("it is taken");
        while let Some(output) = engine.poll_output() {
            let Output::Dispatch(sent) = output else { continue };
            now += 20_000 + (io as u64 * 104_729) % 3_000_000;
            let done = Input::Done { io: sent.io, status: Status::Good, array_ns: 0 };
            engine.handle_input(Time(now), done).expect("it is under way");
        }
    }
    (engine, Time(now))
}
