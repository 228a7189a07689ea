//! Time that commands lose between host and array: to segments of iSCSI that are lost, or on paths to the controller
//! that does not have their volume.
//!
//! Neither a queue of the host nor the array has them meanwhile, so the time is in DAVG alone (reference,
//! `array-and-control.md` 7.2 and 7.5). No row tells it from a slow array; a run knows it.

use super::{
    Case, Rank, Rule, changes,
    known_wait::{KnownWait, MOST},
    latency_evidence, number, sufferers,
};
use crate::{
    Cause, Change, Detour, Device, Evidence, Finding, Flow, LevelKind, LostOnTheWay, Queue, Spell,
    Threshold, path_changes,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Fabric,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS],
    find,
};

/// A device whose commands lose time on the way.
struct Held<'a> {
    device: &'a Device<'a>,
    lost: &'a LostOnTheWay,
    spell: Spell,
    davg_ms: f64,
    /// Mean commands that are held up.
    inside: f64,
}

impl<'a> Held<'a> {
    /// As far as it counts, what takes most.
    fn find(case: &'a Case<'_>, device: &'a Device<'a>) -> Option<Self> {
        let lost = &case.facts.device(device.flow.name).lost_on_the_way;
        let lost = lost.iter().max_by(|a, b| a.wait_ms.total_cmp(&b.wait_ms))?;
        let KnownWait { spell, davg_ms, inside, .. } = KnownWait::of_device(device, lost.wait_ms)?;
        let counts = inside >= device.limits.get(Threshold::Waiting);
        counts.then_some(Self { device, lost, spell, davg_ms, inside })
    }
}

/// Whether a device is slow because of what its commands lose on the way.
pub(super) fn explains(case: &Case<'_>, device: &Device<'_>) -> bool {
    Held::find(case, device).is_some_and(|held| held.lost.wait_ms >= MOST * held.davg_ms)
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    case.each_device(|device| Some(judge(case, &Held::find(case, device)?)))
}

fn judge(case: &Case<'_>, held: &Held<'_>) -> Finding {
    let Held { device, lost, spell, davg_ms, inside } = held;
    let mut finding = case.finding(Cause::SlowWay, device.object(), spell);
    finding.sentence = format!(
        "Of the {} ms that a command of {} takes below the host (DAVG) it loses {} ms on the way: {}.",
        number(*davg_ms),
        device.flow.name,
        number(lost.wait_ms),
        why(&lost.to)
    );
    finding.standing = *inside;
    finding.evidence = latency_evidence(device, spell);
    finding.evidence.push(Evidence::new("lost on the way", lost.wait_ms, "ms"));
    finding.confidence = 0.98;
    finding.sufferers = sufferers(case, device, spell);
    finding.changes = fix(case, device, &lost.to);
    finding.do_not = vec![
        "Do not raise queue depths, nor look at the array's disks: it is not what is slow.".into(),
    ];
    finding
}

fn why(detour: &Detour) -> String {
    let percent = |share: f64| number(100.0 * share);
    match detour {
        Detour::LostSegments { adapter, share, ack_ms } => format!(
            "{} % of the segments to {adapter} are lost, and the array sends each again when the one before is \
             acknowledged, which this host keeps back for {} ms (delayed ACK)",
            percent(*share),
            number(*ack_ms)
        ),
        Detour::OtherController { array, share, extra_ms, .. } => format!(
            "{} % of its commands come by a path that is not optimized, to the controller of array {array} that does \
             not have the volume, and take {} ms longer",
            percent(*share),
            number(*extra_ms)
        ),
    }
}

fn fix(case: &Case<'_>, device: &Device<'_>, detour: &Detour) -> Vec<Change> {
    let name = changes::shell(device.flow.name);
    match detour {
        // The lines that set it are told nowhere with what they need besides [KB-ACK].
        Detour::LostSegments { adapter, .. } => vec![
            changes::look(
                format!(
                    "Switch DelayedAck of {adapter} off (false), on every host, if the array sends lost segments again \
                     one at a time."
                ),
                vec![format!("esxcli iscsi adapter param get -A {}", changes::shell(adapter))],
            )
            .risking("It is in force when the host was rebooted, which has to be evacuated.", "Switch it on again"),
            changes::look(
                "Find where segments are lost: cables, ports and switches on the way, flow control, sizes of packets \
                 that differ (MTU).",
                Vec::new(),
            ),
        ],
        Detour::OtherController { has_optimized, .. } => {
            let lines = vec![
                format!("esxcli storage nmp path list -d {name}"),
                format!("esxcli storage core path list -d {name}"),
            ];
            let back = changes::look(
                "Bring back the paths to the controller that has the volume, or make the other one its owner on the array. The \
                 lines show which paths are active and which are not optimized.",
                lines,
            );
            let paths = has_optimized.then(|| path_changes::use_all_paths(case.host, device, case.facts));
            paths.flatten().into_iter().chain([back]).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Detour, DeviceFacts, Facts, LostOnTheWay, PathFacts, fixture::Bench};

    fn facts(to: Detour, wait_ms: f64) -> Facts {
        let paths =
            PathFacts { policy: "VMW_PSP_FIXED".into(), working: 1, ..PathFacts::default() };
        let known = DeviceFacts {
            lost_on_the_way: vec![LostOnTheWay { to, wait_ms }],
            paths: Some(paths),
            ..DeviceFacts::default()
        };
        Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() }
    }

    fn slow(davg_ms: f64) -> Bench {
        let mut bench = Bench::new(6);
        let rate = move |s: usize| 4_000.0 / davg_ms + (s % 2) as f64;
        bench.device("naa.1", 128).vm("a").iops_when(rate).davg(davg_ms);
        bench
    }

    fn segments() -> Detour {
        Detour::LostSegments { adapter: "vmhba64".into(), share: 0.01, ack_ms: 200.0 }
    }

    #[test]
    fn segments_that_are_lost_are_not_the_arrays_fault() {
        let finding = slow(88.0).only(Cause::SlowWay, &facts(segments(), 86.0));
        let told = "it loses 86 ms on the way: 1 % of the segments to vmhba64 are lost";
        assert!(finding.sentence.contains(told), "{}", finding.sentence);
        assert!(finding.changes[0].what.starts_with("Switch DelayedAck of vmhba64 off"));
        // Without what a run knows the rows fit an array as well.
        slow(88.0).only(Cause::ArraySlow, &Facts::default());
    }

    #[test]
    fn an_array_that_is_slow_as_well_is_named_beside() {
        let known = facts(segments(), 30.0);
        slow(88.0).first(Cause::SlowWay, &known);
        slow(88.0).first(Cause::ArraySlow, &known);
    }

    #[test]
    fn a_path_that_is_not_optimized_is_left_for_one_that_is() {
        let to = |has_optimized| Detour::OtherController {
            array: "b".into(),
            share: 1.0,
            extra_ms: 30.0,
            has_optimized,
        };
        let mut bench = slow(30.5);
        bench.paths(2);
        let finding = bench.only(Cause::SlowWay, &facts(to(true), 30.0));
        assert!(
            finding.sentence.contains("100 % of its commands come by a path that is not optimized")
        );
        let line = "esxcli storage nmp device set -d naa.1 -P VMW_PSP_RR";
        assert_eq!(finding.changes[0].esxcli, [line]);
        let finding = bench.only(Cause::SlowWay, &facts(to(false), 30.0));
        assert!(
            finding.changes[0].what.starts_with("Bring back the paths"),
            "{:?}",
            finding.changes
        );
    }

    #[test]
    fn what_is_lost_now_and_then_is_none() {
        let found = slow(2.0).diagnose(&Default::default(), &facts(segments(), 0.1)).findings;
        assert!(found.is_empty(), "{found:?}");
    }
}
