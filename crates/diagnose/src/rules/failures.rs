//! Commands that fail: the device answers, with an error.
//!
//! Single ones are everyday: a device refuses what it does not know, and the paths to it are asked
//! whether they are there. Where most of what is sent fails, its latency says nothing of storage.

use counters::Counter;

use super::{Case, Rank, Rule, changes, number};
use crate::{Cause, Device, Evidence, Finding, Flow, LevelKind, Spell, Threshold, mean};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Array,
    rank: |_| Rank::Fault,
    reads: &[Flow::COUNTERS, &[Counter::FailedCommands, Counter::Conflicts]],
    find,
};

/// Part of the commands that must fail.
const MOST: f64 = 0.5;

fn find(case: &Case<'_>) -> Vec<Finding> {
    case.each_device(|device| {
        let least = device.limits.get(Threshold::AbortsPerSecond);
        let spell = Spell::find(&device.busy, |sample| {
            let most = device.flow.rate(sample).map(|rate| (MOST * rate).max(least));
            most.is_some() && failing(device, sample) >= most
        })?;
        judge(case, device, &spell)
    })
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
    let mut finding = case.finding(Cause::Failures, device.object(), spell);
    finding.sentence = format!(
        "{} % of the commands on {name} fail: {} of {} a second.",
        number(100.0 * failing / rate),
        number(failing),
        number(rate)
    );
    finding.standing = spell.mean(|sample| device.flow.outstanding(sample))?;
    finding.evidence = vec![
        Evidence::new("FCMDS/s", failing, "1/s"),
        Evidence::new("commands per second", rate, "1/s"),
    ];
    finding.confidence = 0.9 * spell.weight();
    finding.raise_confidence = vec![
        "The sense data of the failed commands in vmkernel.log: \"H:\", \"D:\", \"P:\"".into(),
    ];
    finding.sufferers = device.tenants(samples);
    finding.changes = vec![changes::look(
        "Find out from their sense data what the device refuses, or why it cannot.",
        vec![format!("esxcli storage core device stats get -d {}", changes::shell(name))],
    )];
    finding.do_not =
        vec!["Do not go by its latency: that of a failed command is no storage's.".into()];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use counters::Counter;

    use crate::{Cause, Facts, fixture::Bench};

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

    #[test]
    fn a_few_are_everyday_and_conflicts_have_a_rule_of_their_own() {
        assert!(failing(2.0, 0.0).findings().is_empty());
        failing(60.0, 60.0).only(Cause::ReservationConflicts, &Facts::default());
    }

    #[test]
    fn what_may_all_be_conflicts_is_no_failure() {
        assert!(failing(90.0, f64::NAN).findings().is_empty());
    }
}
