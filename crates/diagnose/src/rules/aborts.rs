//! Aborts and resets: a guest waited so long that it gave a command up (Windows after 60 s), or
//! somebody reset a device [ELA 6.4].
//!
//! Aborts also end the commands of a VM or a host that is reset. Then nobody waited before: the
//! load breaks off in one sample, at its usual latency.

use counters::Counter;

use super::{Case, Rank, Rule, changes, number};
use crate::{Cause, Column, Device, Evidence, Finding, Flow, LevelKind, Spell, Threshold, largest};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Array,
    rank,
    reads: &[Flow::COUNTERS, &[Counter::Aborts, Counter::Resets]],
    find,
};

/// Confidence from which aborts are a fault rather than the end of something.
const SURE: f64 = 0.8;

fn rank(finding: &Finding) -> Rank {
    if finding.confidence >= SURE { Rank::Fault } else { Rank::Next }
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    let all = case.host.every_sample();
    let devices = case.host.devices.iter();
    devices.filter_map(|device| judge(case, device, &all)).collect()
}

/// Whether somebody is known to have ended what was outstanding.
fn is_meant(case: &Case<'_>, device: &Device<'_>, sample: usize) -> bool {
    let times = case.host.begin_ms(sample)..=case.host.times_ms[sample];
    case.facts.device(device.flow.name).ended_ms.iter().any(|at| times.contains(at))
}

/// Whether the load ended with the aborts, as when a VM is switched off.
fn is_farewell(case: &Case<'_>, device: &Device<'_>, sample: usize) -> bool {
    const GONE: f64 = 0.1;
    let rate = |sample: usize| device.flow.rate(sample);
    let before = (0..sample).rev().find_map(rate);
    let after = (sample + 1..case.host.times_ms.len()).find_map(rate);
    before.zip(after).is_some_and(|(before, after)| after < GONE * before)
}

/// Whether commands were cut off rather than waited for: in this sample alone the load breaks off,
/// or about as many are aborted as were outstanding, and all were answered as fast as ever.
fn is_cut(case: &Case<'_>, device: &Device<'_>, sample: usize, limit: f64) -> bool {
    const BROKEN: f64 = 0.5;
    // Wide, for a second's resolution of the stamps makes intervals inexact.
    const ALL: std::ops::RangeInclusive<f64> = 0.5..=4.0;
    let stall_ms = device.limits.get(Threshold::StallMs);
    let Some(before) = sample.checked_sub(1) else { return false };
    let aborts = |sample: usize| device.faults.aborts.at(sample);
    let is_calm = |sample| aborts(sample).is_none_or(|rate| rate < limit);
    let alone = is_calm(before) && is_calm(sample + 1);
    let flow = &device.flow;
    let waited = [before, sample].iter().any(|s| flow.gavg(*s) >= Some(stall_ms));
    let broken = flow
        .rate(sample)
        .zip(flow.rate(before))
        .is_some_and(|(rate, usual)| usual > 0.0 && rate <= BROKEN * usual);
    let each = aborts(sample).zip(flow.outstanding(before)).map(|(rate, all)| rate / all);
    // A clock that was set, or rows that are missing, make an interval of which the rates are not.
    let are_all = [case.host.interval_s(sample), case.host.usual_s]
        .iter()
        .any(|seconds| each.is_some_and(|each| ALL.contains(&(each * seconds))));
    alone && !waited && (broken || are_all)
}

fn judge(case: &Case<'_>, device: &Device<'_>, all: &[usize]) -> Option<Finding> {
    let faults = &device.faults;
    let limit = device.limits.get(Threshold::AbortsPerSecond);
    let spell = Spell::any(all, |sample| {
        let happens = |rates: Column<'_>| rates.at(sample).is_some_and(|rate| rate >= limit);
        (happens(faults.aborts) || happens(faults.resets))
            && !is_farewell(case, device, sample)
            && !is_meant(case, device, sample)
    })?;
    let name = device.flow.name;
    let (aborts, resets) =
        (largest(faults.aborts.over(&spell.samples)), largest(faults.resets.over(&spell.samples)));
    let is_cut = spell.samples.iter().all(|&sample| is_cut(case, device, sample, limit));
    let mut finding = case.finding(Cause::Aborts, device.object(), &spell);
    let most = |most: Option<f64>, what| most.map(|most| format!("{} {what}", number(most)));
    let known: Vec<_> =
        [most(aborts, "aborts"), most(resets, "resets")].into_iter().flatten().collect();
    finding.sentence = format!(
        "Commands on {name} are given up: up to {} a second{}.",
        known.join(" and "),
        if is_cut {
            ", at once and after no wait, as when VMs or their host are reset"
        } else {
            ""
        }
    );
    let gavg = device.flow.per_command(&spell.samples, crate::Flow::gavg);
    finding.evidence = Evidence::of([
        ("aborts per second, at most", aborts, "1/s"),
        ("resets per second, at most", resets, "1/s"),
        ("GAVG", gavg, "ms"),
    ])
    .collect();
    finding.confidence = match (is_cut, spell.samples.len()) {
        (true, _) => 0.4,
        (false, 1) => 0.8,
        (false, _) => 0.95,
    };
    finding.raise_confidence = vec!["The aborted commands in vmkernel.log name path and VM".into()];
    finding.sufferers = device.tenants(&spell.samples);
    finding.changes = vec![changes::look(
        "Find what held commands so long: the array, a path that loses frames, or a queue full \
         of commands that are slow on purpose.",
        vec![
            format!("esxcli storage core device stats get -d {}", changes::shell(name)),
            format!("esxcli storage core path list -d {}", changes::shell(name)),
        ],
    )];
    finding.do_not =
        vec!["Do not lengthen the guest's disk timeout to be rid of the message alone.".into()];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::SURE;
    use counters::Counter;
    use levels::Measured;

    use crate::{Cause, DeviceFacts, Facts, Thresholds, fixture::Bench};

    #[test]
    fn aborts_are_named_even_in_a_single_sample() {
        let mut bench = Bench::new(6);
        let device = bench.device("naa.1", 64);
        device.counter(Counter::Aborts, |sample| if sample == 3 { 6.0 } else { 0.0 });
        device.vm("a").iops(500.0).davg(1.0);
        let finding = bench.only(Cause::Aborts, &Facts::default());
        assert_eq!((finding.window.samples, finding.evidence[0].value), (1, 6.0));
        assert!(finding.confidence >= SURE);
        assert!(finding.sentence.ends_with("up to 6 aborts a second."), "{}", finding.sentence);
    }

    #[test]
    fn what_somebody_is_known_to_have_ended_is_no_fault() {
        let found = |ended_ms: &[i64]| {
            let mut bench = Bench::new(6);
            let device = bench.device("naa.1", 64);
            device.counter(Counter::Aborts, |sample| if sample == 3 { 6.0 } else { 0.0 });
            device.vm("a").iops(500.0).davg(1.0);
            let known = DeviceFacts { ended_ms: ended_ms.to_vec(), ..DeviceFacts::default() };
            let facts = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
            bench.diagnose(&Thresholds::default(), &facts).findings.len()
        };
        assert_eq!([found(&[17_000]), found(&[9_000]), found(&[])], [0, 1, 1]);
    }

    #[test]
    fn a_clock_that_is_set_makes_no_fault_of_a_reset() {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 32);
        device.counter(Counter::Aborts, |sample| if sample == 6 { 6.0 } else { 0.0 });
        device.vm("a").iops(3_000.0).davg(10.0);
        let mut recording = bench.recording();
        for jump_ms in [0, 3_600_000, -4_000] {
            recording.times_ms[6..].iter_mut().for_each(|time| *time += jump_ms);
            let measured = Measured::of(recording.clone());
            let verdict = crate::diagnose(&measured, &Default::default(), &Facts::default());
            let aborts = verdict.findings.iter().find(|finding| finding.cause == Cause::Aborts);
            assert!(aborts.is_some_and(|finding| finding.confidence < SURE), "{jump_ms}");
            recording.times_ms[6..].iter_mut().for_each(|time| *time -= jump_ms);
        }
    }

    #[test]
    fn commands_cut_off_by_a_reset_do_not_head_the_verdict() {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 32);
        let is_reset = |sample: usize| sample == 4 || sample == 8;
        device.counter(Counter::Aborts, move |s| if is_reset(s) { 100.0 } else { 0.0 });
        let rate = move |sample: usize| if is_reset(sample) { 0.0 } else { 3_000.0 };
        device.vm("a").iops_when(rate).davg(10.0).kavg(10.0);
        let findings = bench.findings();
        assert_eq!(findings[0].cause, Cause::DeviceDepth);
        let aborts = findings.iter().find(|finding| finding.cause == Cause::Aborts).unwrap();
        assert!(aborts.confidence < SURE && aborts.sentence.contains("are reset"));
    }
}
