//! The published cases and the quiet hosts, as whole verdicts.

use counters::{Counter, EntityId, Recording};
use levels::Measured;

use crate::{
    Cause, Facts, Outcome, Profile, Thresholds, Verdict, diagnose, fixture::Bench, render_text,
};

fn judged(bench: &Bench) -> Verdict {
    bench.diagnose(&Thresholds::default(), &Facts::default())
}

fn causes(verdict: &Verdict) -> Vec<Cause> {
    verdict.findings.iter().map(|finding| finding.cause).collect()
}

/// S0, run A: 96 threads, PVSCSI 64, DQLEN 32.
fn s0_run_a() -> Bench {
    let mut bench = Bench::new(12);
    bench.aqlen(1024);
    let device = bench.device("naa.624a93704bfab20d4b694df7000143ac", 32);
    device.counter(Counter::Aborts, |_| 0.0);
    device.counter(Counter::Conflicts, |_| 0.0);
    let vm = device.vm("vdbench").iops(65_000.0).davg(0.49).kavg(0.45).size_kib(4.0);
    vm.sampled(|sample| [61, 64, 62, 63][sample % 4]);
    bench
}

#[test]
fn s0_run_a_is_two_limits_and_both_must_change() {
    let verdict = judged(&s0_run_a());
    assert_eq!(causes(&verdict), [Cause::DeviceDepth, Cause::VirtualDiskCap]);
    insta::assert_snapshot!(render_text(&verdict));
}

#[test]
fn s0_run_b_is_the_device_alone() {
    let mut bench = Bench::new(12);
    bench.device("naa.ac", 32).vm("vdbench").iops(65_000.0).davg(0.49).kavg(0.9).size_kib(4.0);
    let verdict = judged(&bench);
    assert_eq!(causes(&verdict), [Cause::DeviceDepth]);
}

#[test]
fn s0_run_c_is_healthy() {
    let mut bench = Bench::new(12);
    bench.device("naa.ac", 96).vm("vdbench").iops(125_000.0).davg(0.7).kavg(0.0).size_kib(4.0);
    let verdict = judged(&bench);
    assert_eq!(verdict.outcome, Outcome::Healthy);
    insta::assert_snapshot!(render_text(&verdict));
}

#[test]
fn s1_is_dsnro() {
    let competing = |sample: usize| (4..9).contains(&sample);
    let mut bench = Bench::new(14);
    let device = bench.device("naa.60000970000197800380533030303445", 128);
    device.depth(move |sample| if competing(sample) { 32 } else { 128 });
    let davg = move |sample| if competing(sample) { 0.31 } else { 0.5 };
    let kavg = move |sample| if competing(sample) { 0.29 } else { 0.0 };
    device.vm("first").iops(100_000.0).davg_when(davg).kavg_when(kavg).size_kib(32.0);
    let second = move |sample| if competing(sample) { 2_000.0 } else { 0.0 };
    device.vm("second").iops_when(second).davg(0.31).kavg(0.29);
    let verdict = judged(&bench);
    assert_eq!(verdict.findings[0].cause, Cause::Dsnro);
    assert!(!causes(&verdict).contains(&Cause::NoisyNeighbour));
    insta::assert_snapshot!(render_text(&verdict));
}

#[test]
fn s4_is_qos_and_a_noisy_neighbour() {
    let verdict = judged(&Bench::noisy_neighbour());
    assert_eq!(causes(&verdict), [Cause::NoisyNeighbour, Cause::ArrayQos, Cause::Dsnro]);
    insta::assert_snapshot!(render_text(&verdict));
}

#[test]
fn quiet_hosts_raise_nothing() {
    let mut bench = Bench::new(6);
    bench.device("mpx.vmhba0:C0:T5:L0", 31).vm("cdrom").iops(0.6).davg(31.9);
    bench.device("naa.1", 31).vm("idle").iops(18.0).davg(0.48).kavg(0.21);
    bench.device("naa.2", 31).vm("slow and rare").iops(0.4).davg(900.0).kavg(800.0);
    let verdict = judged(&bench);
    assert_eq!(verdict.outcome, Outcome::Healthy);
    assert!(verdict.headline.contains("no storage problem in these samples"));
}

#[test]
fn too_little_load_to_judge_is_no_all_clear() {
    for (rate, davg, told) in [
        (0.6, 30.0, "takes 30 ms a command"),
        (1.0, 137.0, "takes 137 ms a command"),
        (0.4, 900.0, "takes 900 ms a command"),
        (2.0, 60.0, "takes 60 ms a command"),
        (0.0, 0.0, "nothing to judge"),
    ] {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 31).vm("idle").iops(rate).davg(davg);
        let verdict = judged(&bench);
        assert_eq!(verdict.outcome, Outcome::Idle);
        assert!(verdict.headline.contains(told), "{}", verdict.headline);
        assert!(!verdict.headline.contains("no storage problem"), "{}", verdict.headline);
    }
}

#[test]
fn an_empty_recording_cannot_tell() {
    let recording = Measured::of(Recording::new("esx01".into()));
    let verdict = crate::diagnose(&recording, &Thresholds::default(), &Facts::default());
    assert_eq!(verdict.outcome, Outcome::CannotTell);
    assert!(!render_text(&verdict).is_empty());
}

#[test]
fn the_classic_profile_minds_a_short_wait_only_for_its_part_of_the_latency() {
    let mut thresholds = Thresholds::of(Profile::Classic);
    let names_it = |thresholds: &Thresholds| {
        causes(&s0_run_a().diagnose(thresholds, &Facts::default())).contains(&Cause::DeviceDepth)
    };
    assert!(names_it(&thresholds));
    thresholds.set("wait_pct", 1_000.0).unwrap();
    assert!(!names_it(&thresholds));
}

#[test]
fn a_verdict_is_json() {
    let text = serde_json::to_string_pretty(&judged(&s0_run_a())).unwrap();
    insta::assert_snapshot!(text);
}

/// A recording of which one sample in twenty is garbage: the whole sample, or one cell here and
/// one there.
fn littered(mut recording: Recording, scattered: bool) -> Recording {
    const GARBAGE: [f64; 6] = [
        -1.0,
        4_294_967_294.0,
        4_294_967_295.0,
        4_294_967_296.0,
        18_446_744_073_709_551_615.0,
        1e9,
    ];
    let columns: Vec<(EntityId, Counter, Vec<f64>)> =
        recording.columns().map(|(id, counter, values)| (id, counter, values.to_vec())).collect();
    for (index, (id, counter, mut values)) in columns.into_iter().enumerate() {
        let first = if scattered { index * 7 % 20 } else { 11 };
        for (turn, sample) in (first..values.len()).step_by(20).enumerate() {
            values[sample] = GARBAGE[(index + turn) % GARBAGE.len()];
        }
        recording.set_column(id, counter, values);
    }
    recording
}

#[test]
fn garbage_in_a_twentieth_of_the_samples_changes_no_verdict() {
    let mut quiet = Bench::new(40);
    quiet.device("naa.1", 64).vm("a").iops_when(|s| 500.0 + 40.0 * (s % 5) as f64).davg(0.5);
    let mut slow = Bench::new(40);
    slow.device("naa.1", 64).vm("a").iops_when(|s| 500.0 + 40.0 * (s % 5) as f64).davg(45.0);
    let mut held = Bench::new(40);
    held.device("naa.1", 64).vm("a").iops(1_000.0).davg(0.5).kavg(31.0);
    for bench in [quiet, slow, held, s0_run_a(), Bench::noisy_neighbour()] {
        let expected = causes(&judged(&bench));
        for scattered in [false, true] {
            let recording = Measured::of(littered(bench.recording(), scattered));
            let verdict = diagnose(&recording, &Thresholds::default(), &Facts::default());
            assert_eq!(causes(&verdict), expected, "{}", verdict.headline);
        }
    }
}
