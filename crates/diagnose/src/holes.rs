//! Empty cells: what was not measured makes no finding, and none of another cause.

use std::collections::BTreeSet;

use crate::{Cause, Facts, Object, Thresholds, diagnose, fixture::Bench};
use counters::{Counter, EntityId, Kind, Recording};
use levels::Measured;

/// The causes that are found, each with its object.
fn found(recording: &Recording) -> BTreeSet<(Cause, Object)> {
    let verdict =
        diagnose(&Measured::of(recording.clone()), &Thresholds::default(), &Facts::default());
    let findings = verdict.findings.iter();
    findings.flat_map(|finding| finding.objects().map(|at| (finding.cause, at.clone()))).collect()
}

/// A recording without those cells of which `is_empty` is told the column and the sample.
fn emptied(
    whole: &Recording,
    mut is_empty: impl FnMut(EntityId, Counter, usize) -> bool,
) -> Recording {
    let mut recording = whole.clone();
    for (id, counter, values) in whole.columns() {
        let left = |(sample, value): (usize, &f64)| {
            if is_empty(id, counter, sample) { f64::NAN } else { *value }
        };
        recording.set_column(id, counter, values.iter().enumerate().map(left).collect());
    }
    recording
}

/// Whether a cell is one of the twentieth that is empty by the seed (SplitMix64).
fn is_drawn(seed: u64, cell: u64) -> bool {
    let mut state = (seed << 32 | cell).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    state = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ state >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (state ^ state >> 31).is_multiple_of(20)
}

/// One VM that fills a device at its driver's depth, and another that hardly does anything there.
fn full_at_the_drivers_depth(depth: u32) -> Bench {
    let mut bench = Bench::new(28);
    let device = bench.device("naa.1", depth);
    let rate = f64::from(depth) * 2_000.0;
    device
        .vm("sql01")
        .iops_when(move |s| rate * (1.0 + 0.01 * (s % 3) as f64))
        .davg(0.49)
        .kavg(0.45);
    device.vm("idle").iops_when(|s| 2.0 + (s % 5) as f64).davg(0.49).kavg(0.45);
    bench
}

#[test]
fn three_empty_cells_of_a_column_make_no_dsnro_of_the_drivers_depth() {
    for depth in [32, 64] {
        let whole = full_at_the_drivers_depth(depth).recording();
        let expected = found(&whole);
        let causes: Vec<_> = expected.iter().map(|(cause, _)| *cause).collect();
        assert!(causes.contains(&Cause::DeviceDepth), "{causes:?}");
        let columns: Vec<_> = whole.columns().map(|(id, counter, _)| (id, counter)).collect();
        for (id, counter) in columns {
            for empty in [[4, 13, 22], [12, 13, 14], [1, 2, 28]] {
                let recording =
                    emptied(&whole, |i, c, s| (i, c) == (id, counter) && empty.contains(&s));
                let name = &whole.entity(id).name;
                assert_eq!(found(&recording), expected, "{name} {counter:?} {empty:?}");
            }
        }
    }
}

/// A virtual disk that stays at a depth of PVSCSI but for its thirteenth sample.
fn once_beyond_its_cap() -> Bench {
    let mut bench = Bench::new(40);
    let vm = bench.device("naa.1", 254).vm("a").davg(0.62);
    vm.iops_when(|s| if s == 12 { 150_000.0 } else { 103_000.0 + 100.0 * (s % 3) as f64 });
    bench
}

#[test]
fn the_row_of_the_world_tells_what_the_empty_row_of_a_disk_exceeds() {
    let whole = once_beyond_its_cap().recording();
    let disk = whole.of_kind(Kind::VirtualDisk).map(|(id, _)| id).next();
    let recording = emptied(&whole, |id, _, sample| Some(id) == disk && sample == 13);
    assert_eq!([found(&whole), found(&recording)], [BTreeSet::new(), BTreeSet::new()]);
    let within = emptied(&whole, |_, _, sample| sample == 13);
    assert!(!found(&within).is_empty());
}

/// Hosts whose samples come near to a finding, and hosts that have one.
fn benches() -> Vec<(&'static str, Bench)> {
    let bad = |s: usize| [5, 7, 20, 22, 33, 35].contains(&s);
    let varied = |s: usize| 1_000.0 + 40.0 * (s % 5) as f64;
    let host = |build: &dyn Fn(&mut Bench)| {
        let mut bench = Bench::new(40);
        build(&mut bench);
        bench
    };
    let slow = host(&|bench| {
        let vm = bench.device("naa.1", 64).vm("a").iops_when(varied);
        vm.davg_when(move |s| if bad(s) { 45.0 } else { 0.5 });
    });
    let held = host(&|bench| {
        let vm = bench.device("naa.1", 64).vm("a").iops_when(varied).davg(0.5);
        vm.kavg_when(move |s| if bad(s) { 45.0 } else { 0.0 });
    });
    let full = host(&|bench| {
        let vm = bench.device("naa.1", 32).vm("a").davg(0.49);
        vm.iops_when(move |s| if bad(s) { 65_000.0 } else { 20_000.0 + varied(s) });
        vm.kavg_when(move |s| if bad(s) { 0.45 } else { 0.0 });
    });
    let waits_at_the_adapter = host(&|bench| {
        bench.device("naa.1", 64).vm("a").iops_when(varied).davg(0.5);
        bench.aqlen(64);
    });
    let at_its_cap = host(&|bench| {
        bench.device("naa.1", 254).vm("a").davg(0.62).iops(103_000.0);
    });
    let several = host(&|bench| {
        let device = bench.device("naa.1", 64);
        device.vm("a").iops_when(varied).davg_when(|s| 2.0 + (s % 7) as f64);
        device.vm("b").iops_when(move |s| 3.0 * varied(s)).davg_when(|s| 2.0 + (s % 7) as f64);
        bench.device("naa.2", 64).vm("c").iops_when(varied).davg(18.0);
        bench.paths(2).path_share(|path, s| if s % 2 == 0 { 0.4 } else { 0.6 - 0.2 * path as f64 });
    });
    vec![
        ("slow at times", slow),
        ("held at times", held),
        ("full at times", full),
        ("at the adapter", waits_at_the_adapter),
        ("once beyond its cap", once_beyond_its_cap()),
        ("at its cap", at_its_cap),
        ("several", several),
        ("full", full_at_the_drivers_depth(32)),
        ("noisy neighbour", Bench::noisy_neighbour()),
    ]
}

#[test]
fn a_twentieth_of_empty_cells_makes_no_finding() {
    for (name, bench) in benches() {
        let whole = bench.recording();
        let expected = found(&whole);
        for seed in 1..=20 {
            let mut cell = 0;
            let recording = emptied(&whole, |_, _, _| {
                cell += 1;
                is_drawn(seed, cell)
            });
            let found = found(&recording);
            let made: Vec<_> = found.difference(&expected).collect();
            assert!(made.is_empty(), "{name}, seed {seed}: {made:?} beside {expected:?}");
        }
    }
}
