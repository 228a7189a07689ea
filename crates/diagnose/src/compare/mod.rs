//! Captures side by side: what became of a host, and who else is on its devices.
//!
//! It stands beside the verdict: recordings go in with the verdicts on them, a
//! [`Comparison`] comes out, and every report prints that. The trap of every
//! before and after is the load: a latency that fell because there was less to do proves nothing,
//! so each object is asked for its load first (`trend`), and each number for its noise (`noise`).

mod figures;
mod headline;
mod noise;
mod shared;
mod trend;

use std::collections::BTreeMap;

use counters::{EntityId, Kind};
use levels::{Measured, most_first};

use crate::{
    BeforeAfter, Comparison, Facts, Finding, FindingChange, Host, ObjectChange, ObjectName,
    Thresholds, Trend, Verdict,
};
use figures::{Moment, figures, moments};

/// A recording with the verdict on it.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The samples of one host.
    pub recording: &'a Measured,
    /// What [`diagnose`](crate::diagnose) says of them.
    pub verdict: &'a Verdict,
}

/// The objects that are compared, in the order in which they are shown.
const KINDS: [Kind; 4] = [Kind::Device, Kind::NfsVolume, Kind::Vm, Kind::VirtualDisk];
/// Commands per second below which an object has no load: latency below that is never judged.
const MIN_IOPS: f64 = 1.0;

/// Compares two sides of one or more hosts each; `after` may be empty.
///
/// A host that is on both sides is compared with itself; a device that several hosts use is shown
/// with all of them.
#[must_use]
pub fn compare(before: &[Judged<'_>], after: &[Judged<'_>]) -> Comparison {
    let counterpart = |of: &Judged<'_>, side: &[Judged<'_>]| {
        side.iter().position(|other| is_same_host(of, other))
    };
    let pairs: Vec<_> = before
        .iter()
        .filter_map(|was| Some((*was, *after.get(counterpart(was, after)?)?)))
        .collect();
    let alone = |side: &[Judged<'_>], other: &[Judged<'_>]| -> Vec<String> {
        let lonely = side.iter().filter(|host| counterpart(host, other).is_none());
        lonely.map(|host| host.verdict.host.clone()).collect()
    };
    let (only_before, only_after) = if after.is_empty() {
        Default::default()
    } else {
        (alone(before, after), alone(after, before))
    };
    let latest = before.iter().filter(|was| counterpart(was, after).is_none()).chain(after);
    let shared = shared::devices(&latest.copied().collect::<Vec<_>>());
    let hosts: Vec<_> = pairs.iter().map(|(was, is)| before_after(was, is)).collect();
    Comparison {
        headline: headline::headline(&hosts, &shared),
        cautions: headline::cautions(&pairs, &hosts),
        hosts,
        only_before,
        only_after,
        notes: shared::together(&shared).into_iter().collect(),
        shared,
        method: noise::METHOD,
    }
}

/// Tells the `facts` of each recording what others of its host show of a limit that may be lower in it: DQLEN while VMs
/// competed.
pub fn remember(others: &[Measured], recordings: &[Measured], facts: &mut [Facts]) {
    for (recording, facts) in recordings.iter().zip(facts) {
        let of_host = others.iter().find(|other| is_one_host(&other.host, &recording.host));
        let Some(other) = of_host else { continue };
        let thresholds = Thresholds::default();
        for device in Host::observe(other, &thresholds, &Facts::default()).busy_devices() {
            let Some(competed) = device.competed() else { continue };
            facts.devices.entry(device.flow.name.into()).or_default().competed = Some(competed);
        }
    }
}

/// Whether two recordings are of one host: one may name it in full, the other by its first part.
fn is_same_host(a: &Judged<'_>, b: &Judged<'_>) -> bool {
    is_one_host(&a.recording.host, &b.recording.host)
}

fn is_one_host(a: &str, b: &str) -> bool {
    let is_short_for = |short: &str, full: &str| {
        full.split_once('.').is_some_and(|(first, _)| first.eq_ignore_ascii_case(short))
    };
    a.eq_ignore_ascii_case(b) || is_short_for(a, b) || is_short_for(b, a)
}

fn before_after(before: &Judged<'_>, after: &Judged<'_>) -> BeforeAfter {
    let mut result = BeforeAfter {
        host: before.verdict.host.clone(),
        before: before.verdict.window,
        after: after.verdict.window,
        objects: Vec::new(),
        only_before: Vec::new(),
        only_after: Vec::new(),
        gone: Vec::new(),
        new: Vec::new(),
        remaining: Vec::new(),
    };
    if before.recording.is_empty() || after.recording.is_empty() {
        return result;
    }
    for kind in KINDS {
        compare_kind(&mut result, kind, before.recording, after.recording);
    }
    compare_findings(&mut result, &before.verdict.findings, &after.verdict.findings);
    result
}

/// Adds the objects of one kind, the one first in which commands spend most time.
fn compare_kind(result: &mut BeforeAfter, kind: Kind, before: &Measured, after: &Measured) {
    let (was, is) = (names(before, kind), names(after, kind));
    let alone = |side: &BTreeMap<&str, EntityId>, other: &BTreeMap<&str, EntityId>| {
        let lonely = side.keys().filter(|name| !other.contains_key(*name));
        lonely.map(|name| ObjectName { kind, name: (*name).into() }).collect::<Vec<_>>()
    };
    result.only_before.extend(alone(&was, &is));
    result.only_after.extend(alone(&is, &was));
    let both = was.iter().filter_map(|(name, id)| Some((*name, *id, *is.get(name)?)));
    let mut objects: Vec<(f64, ObjectChange)> = both
        .filter_map(|(name, was, is)| {
            let object = ObjectName { kind, name: name.into() };
            compare_object(object, &moments(before, was), &moments(after, is))
        })
        .collect();
    most_first(&mut objects, |object| object.0);
    result.objects.extend(objects.into_iter().map(|(_, object)| object));
}

/// The objects of a kind by name; of two that have the same, the first.
fn names(recording: &Measured, kind: Kind) -> BTreeMap<&str, EntityId> {
    let mut names = BTreeMap::new();
    for (id, entity) in recording.of_kind(kind) {
        names.entry(entity.name.as_str()).or_insert(id);
    }
    names
}

/// An object with load on either side, and the mean commands outstanding in it.
fn compare_object(
    object: ObjectName,
    before: &[Moment],
    after: &[Moment],
) -> Option<(f64, ObjectChange)> {
    let mut change = ObjectChange {
        object,
        trend: Trend::Unknown,
        sentence: String::new(),
        figures: figures(before, after),
    };
    let rate = change.figure(figures::RATE)?;
    let (was, is) = (rate.before.unwrap_or(0.0), rate.after.unwrap_or(0.0));
    if was.max(is) < MIN_IOPS {
        return None;
    }
    trend::judge(&mut change);
    let gavg = change.figure(figures::GAVG);
    let [was_ms, is_ms] = [gavg.and_then(|f| f.before), gavg.and_then(|f| f.after)];
    let inside = (was * was_ms.unwrap_or(0.0)).max(is * is_ms.unwrap_or(0.0));
    Some((inside, change))
}

fn compare_findings(result: &mut BeforeAfter, before: &[Finding], after: &[Finding]) {
    let same = |a: &Finding, b: &Finding| {
        a.cause == b.cause && a.objects().any(|one| b.objects().any(|other| one == other))
    };
    for finding in before {
        match after.iter().find(|other| same(finding, other)) {
            Some(now) => result.remaining.push(finding_change(now, Some(finding), Some(now))),
            None => result.gone.push(finding_change(finding, Some(finding), None)),
        }
    }
    let is_new = |finding: &&Finding| !before.iter().any(|other| same(finding, other));
    let new = after.iter().filter(is_new);
    result.new.extend(new.map(|finding| finding_change(finding, None, Some(finding))));
}

fn finding_change(
    finding: &Finding,
    before: Option<&Finding>,
    after: Option<&Finding>,
) -> FindingChange {
    FindingChange {
        cause: finding.cause,
        at: finding.at.clone(),
        sentence: finding.sentence.clone(),
        standing_before: before.map(|finding| finding.standing),
        standing_after: after.map(|finding| finding.standing),
    }
}

#[cfg(test)]
mod tests {
    use levels::Measured;

    use super::{Judged, compare, remember};
    use crate::{Cause, Facts, Thresholds, diagnose, fixture::Bench};

    /// What DSNRO of 32 and of 8 makes of 64 commands of one VM and one at a time of another, as measured.
    fn of(depth: u32, [big_iops, small_iops]: [f64; 2], davg_ms: f64, kavg_ms: f64) -> Measured {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", depth);
        let wobble = |s: usize| [1.0, 0.99, 1.01][s % 3];
        let batch = device.vm("batch").davg(davg_ms).kavg(kavg_ms);
        batch.iops_when(move |s| big_iops * wobble(s));
        device.vm("web").davg(davg_ms).kavg(0.13).iops_when(move |s| small_iops * wobble(s));
        Measured::of(bench.recording())
    }

    #[test]
    fn a_dsnro_that_was_lowered_between_two_captures_is_no_depth_of_a_driver() {
        let before = [of(32, [11_816.0, 325.0], 2.69, 2.73)];
        let after = [of(8, [6_535.0, 741.0], 1.1, 8.69)];
        let thresholds = Thresholds::default();
        let mut facts = [Facts::default()];
        let cause = |facts: &Facts| diagnose(&after[0], &thresholds, facts).findings[0].cause;
        assert_eq!(cause(&facts[0]), Cause::DeviceDepth);
        remember(&before, &after, &mut facts);
        let was = diagnose(&before[0], &thresholds, &Facts::default());
        let is = diagnose(&after[0], &thresholds, &facts[0]);
        assert_eq!(is.findings[0].cause, Cause::Dsnro);
        let told =
            "is held at 8 slots (DSNRO, or Device Max Queue Depth (-m): 32 in the other capture";
        assert!(is.findings[0].sentence.contains(told), "{}", is.findings[0].sentence);
        let side = |recording, verdict| [Judged { recording, verdict }];
        let compared = compare(&side(&before[0], &was), &side(&after[0], &is));
        assert!(compared.hosts[0].new.is_empty(), "{:?}", compared.hosts[0].new);
        let apart = "; web is better off (2.82 to 1.23 ms), batch is worse (5.42 to 9.79 ms)";
        assert!(compared.headline.contains(apart), "{}", compared.headline);
    }

    #[test]
    fn a_depth_at_which_other_vms_competed_tells_nothing() {
        let mut before = Bench::new(8);
        let device = before.device("naa.1", 32);
        for vm in ["x", "y"] {
            device.vm(vm).iops(9_000.0).davg(1.5).kavg(1.5);
        }
        let mut facts = [Facts::default()];
        let after = [of(8, [6_535.0, 741.0], 1.1, 8.69)];
        remember(&[Measured::of(before.recording())], &after, &mut facts);
        let verdict = diagnose(&after[0], &Thresholds::default(), &facts[0]);
        assert_eq!(verdict.findings[0].cause, Cause::DeviceDepth);
    }
}
