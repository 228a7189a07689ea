//! Commands that fail: the device answers, with an error.
//!
//! Single ones are everyday: a device refuses what it does not know, and the paths to it are asked
//! whether they are there. No source has a bound; one in twenty, over several samples, is no such
//! thing. Where most of what is sent fails, its latency says nothing of storage.

use counters::Counter;

use super::{Case, LASTING, Rank, Rule, changes, number};
use crate::{Cause, Change, Device, Evidence, Finding, Flow, LevelKind, Spell, Threshold, mean};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Array,
    rank: |_| Rank::Fault,
    reads: &[Flow::COUNTERS, &[Counter::FailedCommands, Counter::Conflicts]],
    find,
};

/// Part of the commands that must fail.
const MANY: f64 = 0.05;
/// Part of them from which on the latency is that of commands that fail.
const MOST: f64 = 0.5;
/// What all of them are, beyond rounding.
const ALL: f64 = 0.99;
/// How many times more a device must have done before that for two samples to be enough.
const BREAK: f64 = 10.0;

fn find(case: &Case<'_>) -> Vec<Finding> {
    let found = |device: &Device<'_>| {
        let least = device.limits.get(Threshold::AbortsPerSecond);
        let many_fail = Spell::find(&device.busy, |sample| fails(device, sample, MANY, least));
        let spell = all_fail(case, device).or(many_fail)?;
        judge(case, device, &spell)
    };
    case.host.devices.iter().filter_map(found).collect()
}

/// Whether such a part of the commands fails, and so many a second.
fn fails(device: &Device<'_>, sample: usize, part: f64, least: f64) -> bool {
    let most = device.flow.rate(sample).map(|rate| (part * rate).max(least));
    most.is_some() && failing(device, sample) >= most
}

/// The samples in which all that is sent fails, however little it is: a guest whose commands all fail
/// sends next to none. What only the host asks of a device may fail every day.
fn all_fail(case: &Case<'_>, device: &Device<'_>) -> Option<Spell> {
    let every = case.host.every_sample();
    let all_fail =
        |sample: usize| device.flow.rate(sample) > Some(0.0) && fails(device, sample, ALL, 0.0);
    let is_known = |s: &usize| device.flow.rate(*s).is_some() && failing(device, *s).is_some();
    let known: Vec<usize> = every.iter().copied().filter(is_known).collect();
    let mut runs = known.split(|&sample| !all_fail(sample)).filter(|run| !run.is_empty());
    let is_lost = !case.facts.device(device.flow.name).lost.is_empty();
    let lasts = is_lost || runs.any(|run| lasts(device, run));
    let spell = Spell::any(&every, all_fail).filter(|_| lasts)?;
    let is_sent = device.worlds.is_empty() || !device.tenants(&spell.samples).is_empty();
    is_sent.then_some(spell)
}

/// Whether a run of samples in which all fails is none of chance, those between them in which it was
/// not measured counted too: it is long, or it ends a load.
fn lasts(device: &Device<'_>, run: &[usize]) -> bool {
    let [first, .., last] = *run else { return false };
    let before = device.busy.iter().rfind(|sample| **sample < first);
    let load = before.and_then(|&sample| device.flow.rate(sample));
    let since = device.flow.mean_rate(run);
    let ends_load = since.zip(load).is_some_and(|(since, load)| since * BREAK <= load);
    last - first >= LASTING - 1 || ends_load
}

/// Commands that fail in a second, but for those that meet a reservation of another host: they are
/// sent again.
fn failing(device: &Device<'_>, sample: usize) -> Option<f64> {
    Some(device.faults.failed.at(sample)? - device.faults.conflicts_at(sample)?)
}

fn judge(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Option<Finding> {
    let (name, samples) = (device.flow.name, &spell.samples);
    let failing = mean(samples.iter().filter_map(|&sample| failing(device, sample)))?;
    let rate = device.flow.mean_rate(samples)?;
    let is_lost = !case.facts.device(name).lost.is_empty();
    let mut finding = case.finding(Cause::Failures, device.object(), spell);
    finding.sentence = format!(
        "{} % of the commands on {name} fail: {} of {} a second{}.",
        number(100.0 * failing / rate),
        number(failing),
        number(rate),
        if is_lost { ", for the device is permanently lost (PDL)" } else { "" }
    );
    let outstanding = spell.mean(|sample| device.flow.outstanding(sample));
    finding.standing = outstanding.unwrap_or_default();
    finding.evidence = vec![
        Evidence::new("FCMDS/s", failing, "1/s"),
        Evidence::new("commands per second", rate, "1/s"),
    ];
    finding.confidence = 0.99;
    if !is_lost {
        finding.confidence = 0.9 * spell.weight();
        finding.raise_confidence = vec![
            "The sense data of the failed commands in vmkernel.log: \"H:\", \"D:\", \"P:\"".into(),
        ];
    }
    finding.sufferers = device.tenants(samples);
    finding.changes = if is_lost { vec![map_again(name)] } else { vec![] };
    finding.changes.push(changes::look(
        "Find out from their sense data what the device refuses, or why it cannot.",
        vec![format!("esxcli storage core device stats get -d {}", changes::shell(name))],
    ));
    if failing >= MOST * rate {
        let latency = "Do not go by its latency: that of a failed command is no storage's.";
        finding.do_not.push(latency.into());
    }
    if is_lost {
        let wait =
            "Do not wait for it: no timer runs for a lost device, and what is sent fails at once.";
        finding.do_not.push(wait.into());
    }
    Some(finding)
}

/// What ends a permanent loss: its array says on every path that there is no such logical unit, by
/// sense 5h/25h/00h, 4h/3Eh/01h, 4h/3Eh/03h or 4h/4Ch/00h [KB-PDL, DOC-APD].
fn map_again(name: &str) -> Change {
    changes::look(
        "Ask who removed the volume on the array, or took this host out of its group, and map it again \
         or move its VMs. The array says by sense 5h/25h/00h that it is gone, or by 4h/3Eh or 4h/4Ch that \
         it is broken.",
        vec![format!("esxcli storage core path list -d {}", changes::shell(name))],
    )
}

#[cfg(test)]
mod tests {
    use counters::Counter;

    use crate::{Cause, Facts, fixture::Bench};

    #[test]
    fn a_lost_device_says_nothing_of_how_quick_the_array_is() {
        // 2,000 a second at 3 ms, and in the middle 96 a second that fail at once.
        let mut bench = Bench::new(11);
        let device = bench.device("naa.1", 64);
        let lost = |sample: usize| (4..8).contains(&sample);
        device.counter(Counter::FailedCommands, move |s| if lost(s) { 96.0 } else { 0.0 });
        let rate = move |s| if lost(s) { 96.0 } else { 2_000.0 + 70.0 * (s % 3) as f64 };
        device.vm("a").iops_when(rate).davg_when(move |s| if lost(s) { 0.02 } else { 3.06 });
        let finding = bench.only(Cause::Failures, &Facts::default());
        assert!(finding.changes[0].what.starts_with("Find out from their sense data"));
        let mut facts = Facts::default();
        facts.devices.entry("naa.1".into()).or_default().lost = vec![(25_000, 45_000)];
        let finding = bench.only(Cause::Failures, &facts);
        assert!(finding.changes[0].what.contains("map it again"), "{:?}", finding.changes);
    }

    fn failing(failed: f64, conflicts: f64) -> Bench {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 64);
        device.counter(Counter::FailedCommands, move |_| failed);
        device.counter(Counter::Conflicts, move |_| conflicts);
        device.vm("a").iops_when(|s| 98.0 + (s % 5) as f64).davg(1.0);
        bench
    }

    #[test]
    fn nine_of_ten_commands_that_fail_are_a_fault() {
        let finding = failing(90.0, 0.0).only(Cause::Failures, &Facts::default());
        assert!(finding.sentence.contains("commands on naa.1 fail: 90 of"), "{}", finding.sentence);
    }

    /// A VM that does 14,000 a second until its device is lost; then 8 a second, all of which fail.
    fn lost(samples: usize) -> Bench {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 64);
        let is_lost = move |s: usize| s >= 12 - samples;
        device.counter(Counter::FailedCommands, move |s| if is_lost(s) { 8.0 } else { 0.0 });
        let vm = device.vm("a").iops_when(move |s| if is_lost(s) { 8.0 } else { 14_000.0 });
        vm.davg_when(move |s| if is_lost(s) { 0.0 } else { 0.57 });
        bench
    }

    #[test]
    fn where_all_fail_it_is_a_fault_at_any_rate() {
        let finding = lost(4).only(Cause::Failures, &Facts::default());
        assert!(finding.sentence.starts_with("100 % of the commands"), "{}", finding.sentence);
        assert_eq!((finding.window.samples, finding.sufferers[0].name.as_str()), (4, "a"));
        assert!(lost(1).findings().is_empty(), "one sample of few commands is everyday");
    }

    #[test]
    fn two_rows_after_a_load_are_a_lost_device_and_two_that_were_always_so_are_not() {
        assert_eq!(lost(2).only(Cause::Failures, &Facts::default()).window.samples, 2);
        let mut bench = Bench::new(2);
        let device = bench.device("naa.1", 64);
        device.counter(Counter::FailedCommands, |_| 8.0);
        device.vm("a").iops(8.0).davg(0.0);
        assert!(bench.findings().iter().all(|finding| finding.cause != Cause::Failures));
    }

    #[test]
    fn samples_that_were_not_measured_end_no_run_of_failures() {
        // 400 a second, and in the middle 16 that all fail; of four samples two are empty.
        let failed = |s: usize| [0.0, 16.0, f64::NAN, f64::NAN, 16.0, 0.0][s.clamp(3, 8) - 3];
        let mut bench = Bench::new(11);
        let device = bench.device("naa.1", 64);
        device.counter(Counter::FailedCommands, failed);
        let is_lost = |s: usize| (4..8).contains(&s);
        let vm = device.vm("a").iops_when(move |s| if is_lost(s) { 16.0 } else { 400.0 });
        vm.davg_when(move |s| if is_lost(s) { 0.0 } else { 2.1 });
        assert_eq!(bench.only(Cause::Failures, &Facts::default()).window.samples, 2);
    }

    #[test]
    fn a_device_that_is_known_to_be_lost_is_named_in_one_sample() {
        let mut facts = Facts::default();
        facts.devices.entry("naa.1".into()).or_default().lost = vec![(0, i64::MAX)];
        let finding = lost(1).only(Cause::Failures, &facts);
        assert!(finding.sentence.contains("permanently lost"), "{}", finding.sentence);
    }

    #[test]
    fn a_few_are_everyday_and_conflicts_have_a_rule_of_their_own() {
        assert!(failing(2.0, 0.0).findings().is_empty());
        let finding = failing(20.0, 0.0).only(Cause::Failures, &Facts::default());
        assert!(finding.sentence.starts_with("20.1 % of the commands"), "{}", finding.sentence);
        assert!(finding.do_not.is_empty(), "four of five are answered");
        failing(60.0, 60.0).only(Cause::ReservationConflicts, &Facts::default());
    }

    #[test]
    fn what_may_all_be_conflicts_is_no_failure() {
        assert!(failing(90.0, f64::NAN).findings().is_empty());
    }
}
