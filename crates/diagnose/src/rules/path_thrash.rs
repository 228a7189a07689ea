//! Path thrash: the controllers of an array take a volume from each other, because hosts send to both.
//!
//! A simulation knows how often volumes go over, and a device that takes as long is one of them. Of a host of
//! which nobody says that, only I/O that jumps from path to path shows it: where each host stays with a path of its
//! own, no counter tells it from a slow array.

use counters::Counter;
use knobs::{PathPolicy, PolicyChange, Setting};

use super::{Case, Rank, Rule, changes, number};
use crate::{
    Cause, Change, Device, Evidence, Finding, Flow, LevelKind, Spell, Step, Thrash, reaches,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Path,
    rank: |_| Rank::Fault,
    reads: &[Flow::COUNTERS, &[Counter::FailedCommands, Counter::Aborts]],
    find,
};

/// Commands of a device per path that round robin cannot explain.
pub(super) const MANY: f64 = 3_000.0;

fn find(case: &Case<'_>) -> Vec<Finding> {
    let devices = case.host.busy_devices();
    let found = devices.filter_map(|device| match known(case, device) {
        Some((thrash, spell)) => of_array(case, device, thrash, &spell),
        None => {
            let (jumps, spell) = jumps(case, device)?;
            of_jumps(case, device, jumps, &spell)
        }
    });
    found.collect()
}

/// What is known of the array of a device whose commands wait for its controllers, and when they do.
pub(super) fn known<'a>(case: &Case<'a>, device: &Device<'_>) -> Option<(&'a Thrash, Spell)> {
    /// Part of the time in which a volume goes over that its commands take in the mean.
    const PART: f64 = 0.5;
    let thrash = case.facts.device(device.flow.name).thrash.as_ref()?;
    let waits = |sample| device.flow.davg(sample) >= Some(PART * thrash.takeover_ms);
    Some((thrash, device.spell(waits)?))
}

/// How often all I/O jumps from one path to another and back, and when, where that is more often than a turn of
/// round robin explains or while the device is slow. Where it is known which paths are down, they tell.
pub(super) fn jumps(case: &Case<'_>, device: &Device<'_>) -> Option<(usize, Spell)> {
    const ALL: f64 = 0.95;
    const JUMPS: usize = 3;
    let paths = case.facts.device(device.flow.name).paths.as_ref();
    if device.paths.len() < 2 || paths.is_some_and(|paths| paths.dead.is_some()) {
        return None;
    }
    let alone = |sample: usize| {
        let all = device.flow.rate(sample).map(|rate| ALL * rate);
        device.paths.iter().position(|path| reaches(path.flow.rate(sample), all))
    };
    let turns: Vec<&[usize]> = device.busy.chunk_by(|a, b| alone(*a) == alone(*b)).collect();
    let jumps = turns.windows(2).filter(|pair| {
        let [from, to] = [pair[0][0], pair[1][0]].map(alone);
        from.is_some() && to.is_some()
    });
    let jumps = jumps.count();
    let spell = Spell::any(&device.busy, |sample| alone(sample).is_some())?;
    let turn = commands(case, &device.flow, &spell.samples) / turns.len() as f64;
    let counts = jumps >= JUMPS && (turn >= MANY || is_slow(device, &spell));
    counts.then_some((jumps, spell))
}

/// Whether a device is slow in half of some samples.
fn is_slow(device: &Device<'_>, spell: &Spell) -> bool {
    spell.share(|s| reaches(device.flow.davg(s), device.slow_ms(s))) >= 0.5
}

/// Commands of a flow over some samples, as far as they were measured.
pub(super) fn commands(case: &Case<'_>, flow: &Flow<'_>, samples: &[usize]) -> f64 {
    samples.iter().filter_map(|&s| Some(flow.rate(s)? * case.host.interval_s(s))).sum()
}

/// The finding about a device of an array that is known to hand its volumes over.
fn of_array(
    case: &Case<'_>,
    device: &Device<'_>,
    thrash: &Thrash,
    spell: &Spell,
) -> Option<Finding> {
    let Thrash { array, times, takeover_ms } = thrash;
    let what = ("times that volumes of the array went over", *times as f64, "");
    let (mut finding, davg) = finding(case, device, spell, what)?;
    finding.sentence = format!(
        "Hosts send to both controllers of array {array}, which has a volume at one of them at a time \
         (active/passive): volumes went over {times} times, {} ms each, and a command of {} takes {} ms \
         (DAVG).",
        number(*takeover_ms),
        device.flow.name,
        number(davg)
    );
    finding.confidence = 0.98;
    finding.changes = vec![one_controller(case, device)];
    Some(finding)
}

/// The finding about a device whose I/O jumps.
fn of_jumps(case: &Case<'_>, device: &Device<'_>, jumps: usize, spell: &Spell) -> Option<Finding> {
    let what = ("times that all I/O changed its path", jumps as f64, "");
    let (mut finding, davg) = finding(case, device, spell, what)?;
    // Each takeover stops every command.
    let is_slow = is_slow(device, spell);
    let why = match is_slow {
        true => "as when controllers or hosts take the device from each other",
        false => {
            "and is not slow: as when a path fails and comes back (cable, SFP, port), or, where each change \
             takes little, when controllers or hosts take the device from each other"
        }
    };
    finding.sentence = format!(
        "All I/O of {} jumped from one path to another {jumps} times and takes {} ms (DAVG), {why}.",
        device.flow.name,
        number(davg)
    );
    finding.confidence = if is_slow { 0.75 } else { 0.6 } * spell.weight();
    finding.raise_confidence =
        vec!["Path changes of the device in vmkernel.log, on every host that uses it".into()];
    let paths = || {
        let what = "See first whether a path fails and comes back: its cable, SFP and ports, and the errors that \
                    the host and the switch count there.";
        let name = changes::shell(device.flow.name);
        changes::look(what, vec![format!("esxcli storage core path list -d {name}")])
    };
    finding.changes = (!is_slow).then(paths).into_iter().chain([look(device.flow.name)]).collect();
    Some(finding)
}

/// What both have, beside `what` there is to count; and DAVG in milliseconds.
fn finding(
    case: &Case<'_>,
    device: &Device<'_>,
    spell: &Spell,
    what: (&str, f64, &'static str),
) -> Option<(Finding, f64)> {
    let davg = device.flow.per_command(&spell.samples, Flow::davg)?;
    let mut finding = case.finding(Cause::PathThrash, device.object(), spell);
    finding.evidence = vec![
        Evidence::new(what.0, what.1, what.2),
        Evidence::new("commands per second", device.flow.mean_rate(&spell.samples)?, "1/s"),
        Evidence::new("DAVG", davg, "ms"),
        Evidence::new("paths of the device", device.paths.len() as f64, ""),
    ];
    finding.sufferers = device.tenants(&spell.samples);
    finding.do_not = vec![
        "Do not raise queue depths: each change of the controller stops every command.".into(),
    ];
    Some((finding, davg))
}

/// What has all hosts stay with one controller: with MRU each takes the path to the one that has the volume [ELA].
fn one_controller(case: &Case<'_>, device: &Device<'_>) -> Change {
    let name = device.flow.name;
    let paths = case.facts.device(name).paths.as_ref();
    let is = paths.and_then(|paths| PolicyChange::plug_in(&paths.policy));
    let mru = PolicyChange::PlugIn(PathPolicy::MostRecentlyUsed);
    let Some(is) = is.filter(|is| *is != mru) else { return look(name) };
    let what = format!(
        "Let all hosts send the I/O of {name} to one controller: VMW_PSP_MRU on each of them, or VMW_PSP_FIXED with \
         a preferred path to the one that owns it."
    );
    let set = |policy| Setting::PathPolicy { device: name.to_string(), policy };
    let step = Step::new(set(mru), Some(set(is)));
    let mut change = changes::setting(what, Some(case.host), vec![step]);
    change.risk =
        "A host that has no path to that controller still takes the volume to the other one."
            .into();
    change
}

fn look(name: &str) -> Change {
    changes::look(
        "See that all hosts use the same controller for the device: the same policy, the same \
         preferred path, and zoning to both controllers from each.",
        vec![
            format!("esxcli storage nmp device list -d {}", changes::shell(name)),
            format!("esxcli storage core path list -d {}", changes::shell(name)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use crate::{Cause, DeviceFacts, Facts, PathFacts, Thrash, fixture::Bench};

    #[test]
    fn io_that_jumps_to_and_fro_is_path_thrash() {
        let mut bench = Bench::new(12);
        bench.paths(2).path_share(|path, sample| f64::from(u8::from(sample / 2 % 2 == path)));
        bench.device("naa.1", 64).vm("a").iops(400.0).davg(60.0);
        let finding = bench.first(Cause::PathThrash, &Facts::default());
        assert!(finding.sentence.contains("jumped from one path to another 5 times"));
    }

    #[test]
    fn io_that_jumps_without_being_slow_may_be_of_a_path_that_flaps() {
        let found = |rate: f64, davg: f64| {
            let mut bench = Bench::new(60);
            bench.paths(2).path_share(|path, sample| f64::from(u8::from(sample / 12 % 2 == path)));
            bench.device("naa.1", 64).vm("a").iops(rate).davg(davg);
            bench.first(Cause::PathThrash, &Facts::default())
        };
        let flaps = found(3_841.0, 1.01);
        assert!(flaps.sentence.contains("fails and comes back (cable"), "{}", flaps.sentence);
        assert!(flaps.changes[0].what.contains("its cable, SFP and ports"), "{:?}", flaps.changes);
        let slow = found(400.0, 60.0);
        assert!(flaps.confidence < 0.7 && slow.confidence > flaps.confidence);
        assert_eq!((flaps.changes.len(), slow.changes.len()), (2, 1));
    }

    /// One host of several, each with a path of its own: its counters show a slow array.
    #[test]
    fn controllers_that_are_known_to_take_volumes_from_each_other_are_no_slow_array() {
        let mut bench = Bench::new(8);
        bench.device("naa.1", 64).vm("a").iops(80.0).davg(100.0);
        let facts = |takeover_ms, policy: &str| {
            let thrash = Some(Thrash { array: "old".into(), times: 180, takeover_ms });
            let paths = PathFacts { policy: policy.into(), ..PathFacts::default() };
            let device = DeviceFacts { thrash, paths: Some(paths), ..DeviceFacts::default() };
            Facts { devices: [("naa.1".into(), device)].into(), ..Facts::default() }
        };
        bench.first(Cause::ArraySlow, &Facts::default());
        let finding = bench.only(Cause::PathThrash, &facts(50.0, "VMW_PSP_FIXED"));
        let mru = "esxcli storage nmp device set -d naa.1 -P VMW_PSP_MRU";
        assert_eq!(finding.changes[0].esxcli, [mru]);
        // Who goes by it already lacks a path.
        let finding = bench.only(Cause::PathThrash, &facts(50.0, "VMW_PSP_MRU"));
        assert!(finding.changes[0].steps.is_empty());
        // Another volume of that array.
        bench.first(Cause::ArraySlow, &facts(5_000.0, "VMW_PSP_FIXED"));
    }
}
