//! What the simulator allocates: nothing for an I/O once warm, and little for a disk.
#![expect(unsafe_code, reason = "a global allocator that counts cannot be written without it")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use counters::{HostSnapshot, MILLISECOND, Time};
use engine::Engine;
use model::Arrival;
use scenario::Scenario;
use sim::{
    Watch,
    bench::{MODELS, Model},
};

thread_local! {
    /// Of this thread: allocations so far, and bytes that are allocated now.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting.
struct Counting;

// SAFETY: every call goes to the system's allocator as it came; the counters are plain cells,
// which neither allocate nor have a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE.set(LIVE.get().wrapping_add(layout.size()));
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get().wrapping_sub(layout.size()));
        // SAFETY: as above; the pointer came from `alloc`, that is, from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Hosts of each model: of one component, and of the last as many as run apart.
const HOSTS: [usize; MODELS.len()] = [1, 2, 10, 10, 20];

/// Model `index` of the benchmark, one component of it, so long.
fn model(index: usize, duration_ns: u64) -> Scenario {
    let mut scenario = MODELS[index].scenario();
    let hosts = HOSTS[index];
    scenario.hosts.truncate(hosts);
    scenario.workloads.retain(|workload| workload.host < hosts);
    scenario.duration_ns = duration_ns;
    scenario.sample_ns = duration_ns;
    scenario.windows[0].to = Time(duration_ns);
    scenario
}

#[test]
fn an_io_allocates_nothing_once_warm() {
    // A run twice as long has as much set up and as often sampled.
    let run = |index, duration_ns| {
        let scenario = model(index, duration_ns);
        let before = ALLOCATIONS.get();
        let ios = sim::run(&scenario, 1, &()).ios;
        (ios, ALLOCATIONS.get() - before)
    };
    for (index, Model { name, .. }) in MODELS.iter().enumerate() {
        let (few, warm) = run(index, 50 * MILLISECOND);
        let (many, longer) = run(index, 100 * MILLISECOND);
        assert!(many > few + 1000);
        assert_eq!(longer, warm, "{name}: {} more I/Os", many - few);
    }
}

#[test]
fn a_snapshot_is_filled_in_the_memory_that_it_has() {
    let scenario = model(1, 50 * MILLISECOND);
    let outcome = sim::run(&scenario, 1, &());
    for (host, view) in scenario.hosts.iter().zip(&outcome.windows[0]) {
        let engine = Engine::new(&host.config);
        let mut snapshot = HostSnapshot::clone(&view.counters);
        let before = ALLOCATIONS.get();
        engine.snapshot(Time::ZERO, &mut snapshot);
        engine.snapshot(Time(1), &mut snapshot);
        assert_eq!(ALLOCATIONS.get(), before);
        assert_eq!(snapshot.at, Time(1));
    }
}

/// The bytes that are allocated when a run begins, and the most while it goes on.
#[derive(Default)]
struct Memory {
    begin: Option<usize>,
    most: usize,
}

impl Watch for Memory {
    fn before(&mut self, _at: Time) {
        let live = LIVE.get();
        self.begin.get_or_insert(live);
        self.most = self.most.max(live);
    }
}

fn disks(scenario: &Scenario) -> usize {
    scenario.hosts.iter().map(|host| host.config.vdisks.len()).sum()
}

/// The stack of a disk that nobody has used yet; the report of a run adds the names of everything
/// and the counters as they were at its last sample.
#[test]
fn a_disk_at_rest_takes_less_than_2_kb() {
    let scenario = model(2, MILLISECOND);
    let before = LIVE.get();
    let engines: Vec<_> = scenario.hosts.iter().map(|host| Engine::new(&host.config)).collect();
    let stack = (LIVE.get() - before) / disks(&scenario);
    drop(engines);
    let (_, memory) = sim::run_watched(&scenario, Memory::default());
    let with_report = (memory.begin.expect("workloads start") - before) / disks(&scenario);
    assert!(stack < 2048 && with_report < 3000, "{stack}, with its report {with_report}");
}

/// With 96 I/Os outstanding, every histogram begun and the report of its run.
#[test]
fn a_running_disk_takes_less_than_10_kb() {
    let scenario = model(2, 20 * MILLISECOND);
    let before = LIVE.get();
    let (_, memory) = sim::run_watched(&scenario, Memory::default());
    let bytes = (memory.most - before) / disks(&scenario);
    assert!(bytes < 10_000, "{bytes}");
}

/// A record of 64 bytes in a table that grows by a sixteenth, and a seat among those of its virtual disk.
#[test]
fn an_io_in_flight_takes_72_bytes_at_most() {
    let most = |threads| {
        let mut scenario = model(2, 20 * MILLISECOND);
        for workload in &mut scenario.workloads {
            workload.config.arrival = Arrival::Closed { threads, think_ns: 0, rate: None };
        }
        let before = LIVE.get();
        let (_, memory) = sim::run_watched(&scenario, Memory::default());
        (memory.most - before) / disks(&scenario)
    };
    let bytes = (most(96) - most(8)) / (96 - 8);
    assert!(bytes <= 72, "{bytes}");
}
