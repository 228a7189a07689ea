//! A path is lost: it carried I/O, stops for good, and the device goes on over others.
//!
//! Where it is known which paths are down, nothing is inferred.
//!
//! A path that the latency policy of round robin leaves looks like a lost one, and so does one to a controller of an
//! active/passive array that its volume has left: where it may be that, both are said and nothing is to be mended.
//!
//! A path that rests is no lost path: round robin sends 1,000 commands down one before it takes
//! the next [ELA], so only silence over many such turns counts.

use counters::Counter;

use super::{
    ALIKE, Case, Rank, Rule, changes,
    lost_path::{LASTING, Lost, Rest, carries, of_targets, outages},
    number,
    path_thrash::{self, MANY, commands},
    silence,
};
use crate::{
    Adapter, Cause, CutPath, Device, Evidence, Finding, Flow, LevelKind, Party, Path, PathFacts,
    Spell, little, reaches,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Path,
    rank,
    reads: &[Flow::COUNTERS, &[Counter::FailedCommands, Counter::Aborts]],
    find,
};

/// Times that a path which had its turn in every sample must miss it, and turns of the others
/// meanwhile, whose load varies.
const TURNS: f64 = 3.0;
const TURNS_OF_OTHERS: f64 = 2.0;

/// The plug-in that may go by latency, and the one that goes by its first path wherever a volume is.
const ROUND_ROBIN: &str = "VMW_PSP_RR";
const FIXED: &str = "VMW_PSP_FIXED";

/// A lost path that costs those who suffer for it most of their time goes before all else; one that costs
/// less is a wait among others.
fn rank(finding: &Finding) -> Rank {
    const MOST: f64 = 0.5;
    let all = finding.sufferers.iter().map(|vm| vm.slots + vm.waiting.unwrap_or_default());
    match finding.standing >= MOST * all.sum::<f64>() {
        _ if finding.sufferers.is_empty() => Rank::Harmless,
        true => Rank::Fault,
        false => Rank::Wait,
    }
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    let (mut findings, mut lost) = (Vec::new(), Vec::new());
    let jumps = |device| path_thrash::jumps(case, device).is_some();
    for device in &case.host.devices {
        let paths = case.facts.device(device.flow.name).paths.as_ref();
        let known = paths.and_then(|paths| paths.dead.as_ref());
        let is_inferred = known.is_none() && device.paths.len() > 1;
        let is_inferred = is_inferred && !device.busy.is_empty() && !jumps(device);
        lost.extend(device.paths.iter().filter_map(|path| {
            let spell = match known {
                Some(dead) => dead_in(case, device, dead.get(path.flow.name)?)
                    .or_else(|| held_at_the_end(case, device, path))?,
                None => silence(case, device, path).filter(|_| is_inferred)?,
            };
            Some(Lost { device, path, spell, is_known: known.is_some() })
        }));
    }
    for adapter in &case.host.adapters {
        let is_its = |lost: &Lost<'_>| lost.path.adapter == Some(adapter.id);
        let (its, others): (Vec<_>, Vec<_>) = lost.into_iter().partition(is_its);
        lost = others;
        match lost_adapter(case, adapter, &its) {
            Some(finding) => findings.push(finding),
            None => lost.extend(its),
        }
    }
    for of_device in lost.chunk_by(|a, b| a.device.id == b.device.id) {
        match of_device {
            [Lost { is_known: true, device, .. }, ..] => {
                findings.extend(dead(case, device, of_device));
            }
            inferred => {
                findings.extend(inferred.iter().filter_map(|lost| judge(case, lost, inferred)));
            }
        }
    }
    of_targets(case, findings)
}

/// The finding about an adapter over which nothing goes any more: all that is lost there is one loss.
fn lost_adapter(case: &Case<'_>, adapter: &Adapter<'_>, its: &[Lost<'_>]) -> Option<Finding> {
    let (first, more) = its.split_first()?;
    let is_lost = |lost: &Lost<'_>, sample: &usize| lost.spell.samples.contains(sample);
    let samples: Vec<usize> = first.spell.samples.clone();
    let samples: Vec<usize> =
        samples.into_iter().filter(|s| more.iter().all(|lost| is_lost(lost, s))).collect();
    let carries = samples.iter().any(|sample| adapter.flow.rate(*sample) > Some(0.0));
    if more.is_empty() || samples.is_empty() || carries {
        return None;
    }
    let mut devices: Vec<&Device<'_>> = its.iter().map(|lost| lost.device).collect();
    devices.dedup_by_key(|device| device.id);
    let spell = Spell { samples, of: first.spell.of };
    let before: Vec<usize> =
        first.device.busy.iter().copied().take_while(|s| !spell.samples.contains(s)).collect();
    let rate = |samples: &[usize]| -> Option<f64> {
        devices.iter().map(|device| device.flow.mean_rate(samples)).sum()
    };
    let name = adapter.flow.name;
    let mut finding = case.finding(Cause::PathDown, adapter.object(), &spell);
    finding.sentence = format!(
        "All {} paths over {name} stopped carrying I/O, of {} device{}: the adapter, its link or its \
         switch is lost.",
        its.len(),
        devices.len(),
        if devices.len() == 1 { "" } else { "s" }
    );
    finding.evidence = Evidence::of([
        ("paths over the adapter without I/O", Some(its.len() as f64), ""),
        ("of devices", Some(devices.len() as f64), ""),
        ("commands per second on the adapter, before", adapter.flow.mean_rate(&before), "1/s"),
        ("on these devices, before", rate(&before), "1/s"),
        ("on these devices, since", rate(&spell.samples), "1/s"),
    ])
    .collect();
    finding.confidence = if its.iter().all(|lost| lost.is_known) { 0.99 } else { 0.85 };
    let left = |device: &&Device<'_>| {
        let lost = its.iter().filter(|lost| lost.device.id == device.id).count();
        device.paths.len().saturating_sub(lost)
    };
    let rest = Rest::of(case, devices.iter().map(left).min().unwrap_or_default(), its);
    finding.sentence.push_str(&rest.told());
    finding.sentence.push_str(&unfound(case, its));
    advise(case, &mut finding, &devices, &spell, rest);
    Some(finding)
}

/// The samples with load in which a path is known to be down, be it for a part of one.
fn dead_in(case: &Case<'_>, device: &Device<'_>, outages: &[(i64, i64)]) -> Option<Spell> {
    let is_down = |sample: usize| {
        let to = case.host.times_ms[sample];
        let from = to - (1_000.0 * case.host.interval_s(sample)) as i64;
        outages.iter().any(|outage| outage.0 < to && outage.1 > from)
    };
    Spell::any(&device.busy, is_down)
}

/// The last sample, be it without load, where commands are on a path by then that its host does not know to be dead; but
/// for a device that is silent because of it.
fn held_at_the_end(case: &Case<'_>, device: &Device<'_>, path: &Path<'_>) -> Option<Spell> {
    let mut unknown = unknown(case, device).filter(|cut| cut.outstanding > 0);
    let last = case.host.times_ms.len().checked_sub(1)?;
    let is_held = unknown.any(|cut| cut.name == path.flow.name);
    (is_held && !silence::stalls(case, device, last))
        .then(|| Spell { samples: vec![last], of: case.host.times_ms.len() })
}

/// The finding about paths that are known to be down.
fn dead(case: &Case<'_>, device: &Device<'_>, dead: &[Lost<'_>]) -> Option<Finding> {
    let (name, all) = (device.flow.name, device.paths.len());
    let Lost { path, spell, .. } = dead.first()?;
    let mut finding = case.finding(Cause::PathDown, path.object(), spell);
    let rate = device.flow.mean_rate(&spell.samples)?;
    let Course { is_over, at_once, told } = Course::of(case, dead);
    let left = all.saturating_sub(at_once);
    let be = |many: usize| match (many, is_over) {
        (1, false) => "is",
        (1, true) => "was",
        (_, false) => "are",
        (_, true) => "were",
    };
    let by_turns = at_once < dead.len();
    let left_over = match left {
        _ if all == 1 => format!("no other path of {name} is left"),
        0 => format!("none of the {all} paths of {name} {} left", be(0)),
        _ if by_turns => {
            format!("never fewer than {left} of the {all} paths of {name} {} left", be(left))
        }
        _ => format!("{left} of the {all} paths of {name} {} left", be(left)),
    };
    finding.sentence = format!(
        "{} {} down{}: {left_over} for its {} commands a second.",
        dead.iter().map(|lost| lost.path.flow.name).collect::<Vec<_>>().join(", "),
        be(dead.len()),
        if by_turns { " by turns" } else { "" },
        number(rate)
    );
    finding.evidence = vec![
        Evidence::new("paths of the device", all as f64, ""),
        Evidence::new("of them down at one time", at_once as f64, ""),
        Evidence::new("commands per second", rate, "1/s"),
    ];
    finding.confidence = 0.99;
    finding.sentence.push_str(&told);
    finding.sentence.push_str(&unfound(case, dead));
    advise(case, &mut finding, &[device], spell, Rest::of(case, left, dead));
    Some(finding)
}

/// Those of the paths of a device that the host does not know to be dead at the end.
fn unknown<'c>(case: &'c Case<'_>, device: &Device<'_>) -> impl Iterator<Item = &'c CutPath> {
    let end = case.host.times_ms.last().copied().unwrap_or_default();
    let lasts = move |path: &&CutPath| path.times.last().is_some_and(|(_, to)| *to > end);
    case.facts.device(device.flow.name).cut.iter().filter(lasts)
}

/// In words that the host has not found yet that paths are dead.
fn unfound(case: &Case<'_>, lost: &[Lost<'_>]) -> String {
    let cut = lost.iter().flat_map(|lost| {
        unknown(case, lost.device).filter(|path| path.name == lost.path.flow.name)
    });
    let outstanding: Vec<u32> = cut.map(|path| path.outstanding).collect();
    match (outstanding.len(), outstanding.iter().sum()) {
        (0, _) => String::new(),
        (_, 0) => " The host has not found that yet.".into(),
        (_, 1_u32) => " The host has not found that yet: one command is outstanding there.".into(),
        (_, all) => {
            format!(" The host has not found that yet: {all} commands are outstanding there.")
        }
    }
}

/// How paths that were down fared.
struct Course {
    /// Whether all are up again at the end.
    is_over: bool,
    /// The most of them that were down at one time.
    at_once: usize,
    /// In words whether they are up again, and how often they went down.
    told: String,
}

impl Course {
    fn of(case: &Case<'_>, dead: &[Lost<'_>]) -> Self {
        let of_all: Vec<_> = dead.iter().filter_map(|lost| outages(case, lost)).collect();
        let end = case.host.times_ms.last().copied().unwrap_or_default();
        let is_over = of_all.iter().copied().flatten().all(|outage| outage.1 < end);
        let is_down = |path: &[(i64, i64)], at| path.iter().any(|o| o.0 <= at && at < o.1);
        let down_at = |at: i64| of_all.iter().filter(|path| is_down(path, at)).count();
        let at_once = of_all.iter().copied().flatten().map(|outage| down_at(outage.0)).max();
        let again = if is_over { " and is up again at the end" } else { "" };
        let told = match of_all.iter().map(|path| path.len()).max().unwrap_or(0) {
            0 => String::new(),
            1 if is_over => " It is up again at the end.".into(),
            1 => String::new(),
            times => format!(" It flaps: it went down {times} times{again}."),
        };
        Self { is_over, at_once: at_once.unwrap_or(dead.len()), told }
    }
}

/// The longest time without a command on the path, where it is longer than a turn of the others.
fn silence(case: &Case<'_>, device: &Device<'_>, path: &Path<'_>) -> Option<Spell> {
    let is_known = |sample: &usize| path.flow.commands.at(*sample).is_some();
    let busy: Vec<usize> = device.busy.iter().copied().filter(is_known).collect();
    let carries = |sample: usize| carries(device, path, sample);
    let runs = busy.chunk_by(|a, b| carries(*a) == carries(*b));
    let silent = runs.filter(|run| !carries(run[0])).max_by_key(|run| run.len())?;
    let before: Vec<usize> = busy.iter().copied().take_while(|s| *s < silent[0]).collect();
    let after = commands(case, &device.flow, silent);
    let many = MANY * device.paths.len() as f64;
    let carried: Vec<usize> = before.iter().copied().filter(|&s| carries(s)).collect();
    let outlasts_turns = commands(case, &path.flow, &carried) >= MANY && after >= many;
    // Who has many turns in a sample misses them in one.
    let (samples, turns) = match has_even_share(device, path, &before) {
        true => (LASTING as f64, 1.0),
        false => (TURNS, TURNS_OF_OTHERS),
    };
    let misses_turns = longest_turn(case, device, path, &before)
        .is_some_and(|turn| silent.len() as f64 >= samples && after >= turns * turn);
    let is_lost = silent.len() >= LASTING && (outlasts_turns || misses_turns);
    is_lost.then(|| Spell { samples: silent.to_vec(), of: busy.len() })
}

/// Whether a path had the same part as any other of its device's commands in every sample, and in as many as
/// tell: then it has many turns in each.
fn has_even_share(device: &Device<'_>, path: &Path<'_>, samples: &[usize]) -> bool {
    let even = 1.0 / device.paths.len() as f64;
    let share = |&sample: &usize| Some(path.flow.rate(sample)? / device.flow.rate(sample)?);
    let is_even = |share: f64| ALIKE.contains(&(share / even));
    samples.len() as f64 >= TURNS && samples.iter().all(|s| share(s).is_some_and(is_even))
}

/// The most commands between two turns of a path that takes turns with others within the samples;
/// `None` where it does not, or not for long enough to tell.
fn longest_turn(
    case: &Case<'_>,
    device: &Device<'_>,
    path: &Path<'_>,
    before: &[usize],
) -> Option<f64> {
    const MOSTLY: f64 = 0.75;
    let carries = |path: &Path<'_>, sample: usize| carries(device, path, sample);
    let shares = |sample: &&usize| {
        let carrying = device.paths.iter().filter(|path| carries(path, **sample));
        carries(path, **sample) && carrying.count() > 1
    };
    let shared = before.iter().filter(shares).count() as f64;
    let rests = before.chunk_by(|a, b| carries(path, *a) == carries(path, *b));
    let rests = rests.filter(|run| !carries(path, run[0]));
    let longest = rests.map(|run| commands(case, &device.flow, run)).fold(0.0, f64::max);
    let sample = commands(case, &device.flow, before) / before.len() as f64;
    (shared >= TURNS && shared >= MOSTLY * before.len() as f64).then_some(longest + sample)
}

/// The finding about a path that is inferred to be lost, of `all` such ones of its device.
fn judge(case: &Case<'_>, lost: &Lost<'_>, all: &[Lost<'_>]) -> Option<Finding> {
    let Lost { device, path, spell, .. } = lost;
    let name = device.flow.name;
    let before: Vec<usize> =
        device.busy.iter().copied().take_while(|sample| !spell.samples.contains(sample)).collect();
    let rate = path.flow.mean_rate(&before)?;
    let rates = [&before, &spell.samples].map(|samples| device.flow.mean_rate(samples));
    let (rate_before, rate_since) = (rates[0]?, rates[1]?);
    let mut finding = case.finding(Cause::PathDown, path.object(), spell);
    finding.sentence = format!(
        "Path {} of {name} stopped carrying I/O ({} commands a second before) while others went \
         on with {}.",
        path.flow.name,
        number(rate),
        number(rate_since)
    );
    let is_lost =
        |other: &&Lost<'_>| other.spell.samples.iter().any(|sample| spell.samples.contains(sample));
    let left = device.paths.len().saturating_sub(all.iter().filter(is_lost).count());
    let rest = Rest::of(case, left, std::slice::from_ref(lost));
    finding.sentence.push_str(&rest.told());
    finding.evidence = vec![
        Evidence::new("commands per second on the path, before", rate, "1/s"),
        Evidence::new("on the device, before", rate_before, "1/s"),
        Evidence::new("on the device, since", rate_since, "1/s"),
        Evidence::new("paths of the device", device.paths.len() as f64, ""),
    ];
    let faults = [device.faults.failed, device.faults.aborts];
    let any_failed = faults.iter().any(|rates| rates.over(&spell.samples).any(|rate| rate > 0.0));
    finding.confidence = if any_failed { 0.85 } else { 0.7 };
    // What is back is dead no more.
    if rest.since.is_none() {
        let device = changes::shell(name);
        let sign = format!("\"State: dead\" in `esxcli storage core path list -d {device}`");
        finding.raise_confidence.push(sign);
    }
    let whole = carried_all(lost, &before);
    let by_latency = left_by_latency(case, lost, &before, whole);
    match by_latency.or_else(|| followed(case, lost, whole)).filter(|_| !any_failed) {
        Some(left) => leave(&mut finding, device, &left),
        None => advise(case, &mut finding, &[device], spell, rest),
    }
    Some(finding)
}

/// Why a path may be left that looks like a lost one.
struct Left {
    why: String,
    /// What decides, and in which list.
    sign: &'static str,
    list: &'static str,
}

/// Whether a path carried everything that its device did while it carried anything; but for the sample in which it
/// stopped.
fn carried_all(lost: &Lost<'_>, before: &[usize]) -> bool {
    const ALL: f64 = 0.95;
    let Lost { device, path, .. } = lost;
    let mut its: Vec<usize> =
        before.iter().copied().filter(|&s| carries(device, path, s)).collect();
    its.truncate(its.len().saturating_sub(1).max(1));
    let all = device.flow.mean_rate(&its).map(|all| ALL * all);
    reaches(path.flow.mean_rate(&its), all)
}

/// Why the latency policy of round robin may have left a path, of which it is not known that it is down: it sends
/// everything down the path that took least when it last looked [DOC67].
fn left_by_latency(
    case: &Case<'_>,
    lost: &Lost<'_>,
    before: &[usize],
    whole: bool,
) -> Option<Left> {
    const SLOWER: f64 = 1.1;
    let Lost { device, path, .. } = lost;
    let is_none =
        |paths: &PathFacts| paths.policy != ROUND_ROBIN || paths.round_robin_iops.is_some();
    let paths = case.facts.device(device.flow.name).paths.as_ref();
    let version = case.facts.esxi_version;
    if paths.is_some_and(is_none) || version.is_some_and(|version| !version.has_latency_policy()) {
        return None;
    }
    let others = device.paths.iter().filter(|other| other.flow.name != path.flow.name);
    let others = others.filter_map(|other| other.flow.per_command(before, Flow::davg));
    let (own, least) =
        (path.flow.per_command(before, Flow::davg)?, others.fold(f64::INFINITY, f64::min));
    let which = if whole {
        "the one that carried everything, as this did".into()
    } else if own > SLOWER * least {
        let [own, least] = [own, least].map(number);
        format!("one that is slower than another, as this was with {own} ms to {least}")
    } else {
        return None;
    };
    let why = format!("the latency policy of Round Robin leaves {which}");
    Some(Left { why, sign: "policy=latency", list: "nmp device" })
}

/// Why a host that used one path may have left it for its volume: the other controller of an active/passive array has
/// that, because another host had it taken over [ELA: MRU for active/passive arrays].
fn followed(case: &Case<'_>, lost: &Lost<'_>, whole: bool) -> Option<Left> {
    let paths = case.facts.device(lost.device.flow.name).paths.as_ref();
    let stays = paths.is_some_and(|paths| paths.policy == FIXED);
    let why = "a host leaves the controller of an active/passive array that another one had its volume taken from";
    (whole && !stays).then(|| Left { why: why.into(), sign: "State: standby", list: "core path" })
}

/// What is said of a path that may be left as well as lost.
fn leave(finding: &mut Finding, device: &Device<'_>, left: &Left) {
    let device = changes::shell(device.flow.name);
    let of_device = format!("esxcli storage nmp device list -d {device}");
    let Left { why, sign, list } = left;
    let sign = format!("`{sign}` in `esxcli storage {list} list -d {device}`");
    finding.sentence += &format!(" It is lost, or left: {why}. {sign} decides.");
    finding.confidence = 0.5;
    finding.raise_confidence.insert(0, format!("{sign} is a path that is left and needs nothing"));
    finding.changes = vec![changes::look(
        "See which it is: by the policy of the device, and by whether the path is dead.",
        vec![of_device, format!("esxcli storage core path list -d {device}")],
    )];
    finding.do_not = vec!["Do not mend a path before it is known to be dead.".into()];
}

/// The VMs that are slower than they were before a path was lost; where there is no before, slower
/// than the array is known to be for one that waits for nobody, or all of them; and all where some of their commands are
/// on a dead path still, for those have no latency. Who does little may differ by chance.
fn slower(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Vec<Party> {
    const CHANGED: f64 = 1.1;
    /// Standard errors of two means, each of which is one in the root of its commands.
    const ERRORS: f64 = 3.0;
    const WAITS: f64 = 2.0;
    if unknown(case, device).any(|path| path.outstanding > 0) {
        return device.tenants(&spell.samples);
    }
    let before = before(device, spell);
    let was = device.tenants(&before);
    let [s_before, s_since] = [&before, &spell.samples]
        .map(|samples| samples.iter().map(|&s| case.host.interval_s(s)).sum::<f64>());
    let alone_ms = case.array(device).and_then(|array| array.service_ms);
    let is_slower = |party: &Party| match was.iter().find(|was| was.name == party.name) {
        Some(was) => {
            let commands = [was.iops * s_before, party.iops * s_since].map(|all| all.max(1.0));
            let variance = 1.0 / commands[0] + 1.0 / commands[1];
            let changed = CHANGED.max(1.0 + ERRORS * variance.sqrt());
            let longer = party.gavg_ms.zip(was.gavg_ms).is_some_and(|(ms, was)| ms > changed * was);
            longer || party.iops * changed < was.iops
        }
        None => alone_ms.is_none_or(|alone_ms| party.gavg_ms > Some(WAITS * alone_ms)),
    };
    device.tenants(&spell.samples).into_iter().filter(is_slower).collect()
}

/// The commands that stand on a device for a lost path: by Little's law of how much longer they take since. Where
/// there is no before, all that they take below the host beyond one that waits for nobody may be for it. For how
/// long nothing is answered before the path is found dead is told by another finding.
fn standing(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Option<f64> {
    let answered = spell.samples.iter().copied().filter(|s| !device.stalls.contains_key(s));
    let (flow, samples) = (&device.flow, &answered.collect::<Vec<_>>());
    let before = before(device, spell);
    let longer_ms = if before.is_empty() {
        let alone_ms = case.array(device).and_then(|array| array.service_ms);
        flow.per_command(samples, Flow::davg)? - alone_ms.unwrap_or(device.quickest_ms)
    } else {
        flow.per_command(samples, Flow::gavg)? - flow.per_command(&before, Flow::gavg)?
    };
    Some(little(flow.mean_rate(samples)?, longer_ms.max(0.0)))
}

/// The samples with load before a path was lost.
fn before(device: &Device<'_>, spell: &Spell) -> Vec<usize> {
    let first = spell.samples.first().copied().unwrap_or_default();
    device.busy.iter().copied().take_while(|sample| *sample < first).collect()
}

/// Who is concerned by lost paths of some devices, and what to do.
fn advise(
    case: &Case<'_>,
    finding: &mut Finding,
    devices: &[&Device<'_>],
    spell: &Spell,
    Rest { left, since }: Rest,
) {
    const SHOWN: usize = 5;
    finding.sufferers = devices.iter().flat_map(|device| slower(case, device, spell)).collect();
    finding.standing = devices.iter().filter_map(|device| standing(case, device, spell)).sum();
    if finding.sufferers.is_empty() {
        finding.sentence.push_str(match (since, left) {
            (Some(_), _) => " Nobody was slower for it.",
            (None, 0 | 1) => " Redundancy is lost; nobody is slower for it.",
            (None, _) => " Nobody is slower for it.",
        });
    }
    finding.evidence.push(Evidence::new(Evidence::PATHS_LEFT, left as f64, ""));
    let is_back = since.is_some();
    let since = since.map(|since| Evidence::new(Evidence::PATHS_BACK, since as f64, ""));
    finding.evidence.extend(since);
    let list = |device: &&Device<'_>| {
        format!("esxcli storage core path list -d {}", changes::shell(device.flow.name))
    };
    let mut lines: Vec<String> = devices.iter().take(SHOWN).map(list).collect();
    lines.push("esxcli storage core adapter list".into());
    let what = match is_back {
        true => {
            "See why the path was lost, for it may be again: cable, port, zoning, array controller."
        }
        false => "See whether the path is dead, and why: cable, port, zoning, array controller.",
    };
    finding.changes = vec![changes::look(what, lines)];
    finding.do_not = vec![
        "Do not raise queue depths to make up for it: the remaining paths carry everything already."
            .into(),
    ];
}

#[cfg(test)]
mod tests {
    use knobs::Version;

    use crate::{Cause, CutPath, DeviceFacts, Facts, PathFacts, fixture::Bench};

    #[test]
    fn a_path_that_stops_while_the_other_goes_on_is_lost() {
        let mut bench = Bench::new(10);
        bench.paths(2).path_share(|path, sample| match (path, sample) {
            (0, 0..5) | (1, 0..5) => 0.5,
            (0, _) => 0.0,
            _ => 1.0,
        });
        bench.device("naa.1", 64).vm("a").iops(2_000.0).davg(0.5);
        let finding = bench.only(Cause::PathDown, &Facts::default());
        assert_eq!(finding.at.name, "vmhba1:C0:T0:L0");
    }

    /// Of four paths one or three are lost in samples of 20, for good or for a while.
    #[test]
    fn a_path_that_is_back_is_told_so_and_redundancy_is_gone_only_where_it_is() {
        let told = |paths: usize, lost: usize, until: usize| {
            let mut bench = Bench::new(20);
            bench.paths(paths).path_share(move |path, sample| match (6..until).contains(&sample) {
                true if path < lost => 0.0,
                true => 1.0 / (paths - lost) as f64,
                false => 1.0 / paths as f64,
            });
            bench.device("naa.1", 64).vm("a").iops_when(|s| 2_000.0 + (s % 3) as f64).davg(0.5);
            let verdict = bench.diagnose(&Default::default(), &Facts::default());
            assert_eq!(verdict.findings[0].cause, Cause::PathDown);
            (verdict.headline, verdict.findings[0].sentence.clone())
        };
        let line = |rest: &str| format!("vmhba1:C0:T0:L0: Path lost{rest}; nobody is slower.");
        for (paths, lost, until, headline, sentence) in [
            (2, 1, 20, ", redundancy is gone", " Redundancy is lost; nobody is slower for it."),
            (4, 1, 20, ", 3 paths are left", " Nobody is slower for it."),
            (4, 3, 20, ", redundancy is gone", " Redundancy is lost; nobody is slower for it."),
            (
                2,
                1,
                13,
                " in 7 of 20 samples, and is back",
                " It is back since then, for the last 7 samples with load. Nobody was slower for it.",
            ),
        ] {
            let (first, told) = told(paths, lost, until);
            assert_eq!(first, line(headline));
            assert!(told.ends_with(sentence), "{told}");
        }
    }

    /// Whatever somebody waits for goes before a path that nobody misses: 31 of 32 threads wait for one slot, 5 ms each.
    #[test]
    fn a_lost_path_that_nobody_is_slower_for_comes_last() {
        let mut bench = Bench::new(10);
        bench.paths(2).path_share(|path, sample| match (path, sample) {
            (_, 0..5) => 0.5,
            (path, _) => path as f64,
        });
        bench.device("naa.1", 1).vm("a").iops(200.0).davg(5.0).kavg(155.0);
        let findings = bench.findings();
        let causes: Vec<_> = findings.iter().map(|finding| finding.cause).collect();
        assert!(causes.len() > 1 && causes.last() == Some(&Cause::PathDown), "{causes:?}");
        assert!(findings[0].sufferers[0].name == "a", "{causes:?}");
    }

    /// 128 threads, of which 32 are in the slots for 6.5 ms: the others wait 19.5. Since the path was lost that takes 1.2
    /// times as long, or 4 times.
    #[test]
    fn a_lost_path_goes_before_a_full_queue_only_where_it_costs_more() {
        let first = |longer: f64| {
            let mut bench = Bench::new(12);
            bench.paths(2).path_share(|path, sample| match (path, sample) {
                (_, 0..5) => 0.5,
                (path, _) => path as f64,
            });
            let since = move |s: usize| if s < 5 { 1.0 } else { longer };
            let vm = bench.device("naa.1", 32).vm("a").iops_when(move |s| 4_923.0 / since(s));
            vm.davg_when(move |s| 6.5 * since(s)).kavg_when(move |s| 19.5 * since(s));
            vm.sampled(|_| 32).queued(|_| 96);
            bench.findings()[0].cause
        };
        assert_eq!(first(1.2), Cause::DeviceDepth);
        assert_eq!(first(4.0), Cause::PathDown);
    }

    #[test]
    fn what_an_idle_path_has_more_than_its_device_makes_it_no_lost_one() {
        use counters::{Counter, Kind};
        use levels::Measured;
        let mut bench = Bench::new(20);
        bench.paths(2).adapter_each().path_share(|path, _| if path == 0 { 1.0 } else { 0.0 });
        bench.device("naa.1", 64).vm("a").iops(2_000.0).davg(0.5);
        let mut recording = bench.recording();
        let second =
            |kind| recording.of_kind(kind).map(|(id, _)| id).nth(1).expect("there are two");
        let (path, adapter) = (second(Kind::Path), second(Kind::Adapter));
        // Reads bear the commands out, and the adapter's own were not measured.
        for (id, counter, cell) in [
            (path, Counter::Commands, 65_535.0),
            (path, Counter::Reads, 65_535.0),
            (path, Counter::Writes, 0.0),
            (adapter, Counter::Commands, f64::NAN),
        ] {
            let column = recording.series(id, counter);
            let mut values = column.map_or_else(|| vec![0.0; recording.len()], <[f64]>::to_vec);
            values[3] = cell;
            recording.set_column(id, counter, values);
        }
        let (thresholds, facts) = Default::default();
        let verdict = crate::diagnose(&Measured::of(recording), &thresholds, &facts);
        assert!(verdict.findings.is_empty(), "{}", verdict.headline);
    }

    #[test]
    fn a_lost_adapter_is_one_finding() {
        let mut bench = Bench::new(10);
        bench.paths(2).adapter_each().path_share(|path, sample| match (path, sample) {
            (_, 0..5) => 0.5,
            (path, _) => path as f64,
        });
        for name in ["naa.1", "naa.2", "naa.3"] {
            bench.device(name, 64).vm(name).iops(2_000.0).davg(0.5);
        }
        let finding = bench.only(Cause::PathDown, &Facts::default());
        assert_eq!(finding.at.name, "vmhba1");
        assert!(finding.sentence.contains("All 3 paths over vmhba1"), "{}", finding.sentence);
    }

    /// One path is left, by the latency policy or for its volume, or lost; which, only its host knows.
    #[test]
    fn a_path_that_may_be_left_is_no_lost_one_yet() {
        let paths = |policy: &str, round_robin_iops| {
            let mut facts = Facts::default();
            let paths =
                PathFacts { policy: policy.into(), round_robin_iops, working: 2, dead: None };
            let device = DeviceFacts { paths: Some(paths), ..DeviceFacts::default() };
            facts.devices.insert("naa.1".into(), device);
            facts
        };
        let version = |version| Facts { esxi_version: Some(version), ..Facts::default() };
        let shared = |path: usize, sample: usize| if sample < 5 { 0.5 } else { path as f64 };
        let alone = |path: usize, sample: usize| f64::from(u8::from((sample < 5) == (path == 0)));
        type Share = fn(usize, usize) -> f64;
        let table: [(Share, f64, Facts, f64, &str); 9] = [
            (shared, 1.0, Facts::default(), 0.7, "Redundancy is lost"),
            (
                shared,
                2.0,
                Facts::default(),
                0.5,
                "slower than another, as this was with 1 ms to 0.5",
            ),
            (
                shared,
                2.0,
                paths("VMW_PSP_RR", None),
                0.5,
                "`policy=latency` in `esxcli storage nmp device list -d naa.1`",
            ),
            (shared, 2.0, paths("VMW_PSP_RR", Some(1000)), 0.7, "Redundancy is lost"),
            (shared, 2.0, version(Version::V6_5), 0.7, "Redundancy is lost"),
            (alone, 1.0, version(Version::V7_0), 0.5, "that carried everything, as this did"),
            (alone, 1.0, paths("VMW_PSP_FIXED", None), 0.7, "Redundancy is lost"),
            (alone, 1.0, paths("VMW_PSP_MRU", None), 0.5, "`State: standby` in"),
            (alone, 1.0, version(Version::V6_5), 0.5, "that another one had its volume taken from"),
        ];
        for (share, slower, facts, confidence, says) in table {
            let mut bench = Bench::new(10);
            bench.paths(2).path_share(share);
            bench.path_davg(move |path| if path == 0 { slower } else { 1.0 });
            bench.device("naa.1", 64).vm("a").iops(2_000.0).davg(0.5);
            let finding = bench.only(Cause::PathDown, &facts);
            assert_eq!(finding.confidence, confidence, "{}", finding.sentence);
            assert!(finding.sentence.contains(says), "{}", finding.sentence);
            let lines = format!("{:?}", finding.changes);
            assert_eq!(lines.contains("cable"), confidence == 0.7, "{lines}");
        }
    }

    #[test]
    fn a_path_that_misses_its_turns_is_lost_at_any_rate() {
        let mut bench = Bench::new(10);
        bench.paths(2).path_share(|path, sample| match (path, sample) {
            (_, 0..5) => 0.5,
            (path, _) => path as f64,
        });
        bench.device("naa.1", 64).vm("a").iops(60.0).davg(0.5);
        bench.only(Cause::PathDown, &Facts::default());
    }

    /// An even part in each sample is many turns in each: two samples without one are as telling as three.
    #[test]
    fn two_samples_tell_where_every_one_before_had_many_turns() {
        let found = |uneven: f64| {
            let mut bench = Bench::new(5);
            bench.paths(2).path_share(move |path, sample| match (path, sample) {
                (path, 1) => 0.5 + uneven - 2.0 * uneven * path as f64,
                (_, 0..3) => 0.5,
                (path, _) => path as f64,
            });
            bench.device("naa.1", 64).vm("a").iops_when(|s| if s < 3 { 350.0 } else { 380.0 });
            bench.findings().iter().any(|finding| finding.cause == Cause::PathDown)
        };
        assert_eq!([found(0.0), found(0.3)], [true, false]);
    }

    #[test]
    fn a_turn_of_round_robin_that_spans_samples_is_no_loss() {
        let mut bench = Bench::new(40);
        bench.paths(2).path_share(|path, sample| f64::from(u8::from(sample / 10 % 2 == path)));
        bench.device("naa.1", 64).vm("a").iops(20.0).davg(0.5);
        assert!(bench.findings().is_empty());
    }

    #[test]
    fn paths_that_take_turns_are_not_lost() {
        let mut bench = Bench::new(10);
        bench.paths(2).path_share(|path, sample| f64::from(u8::from(sample % 2 == path)));
        bench.device("naa.1", 64).vm("a").iops(200.0).davg(0.5);
        assert!(bench.findings().is_empty());
    }

    /// Where the rows end before the path is cut, or the device has no load in the last, the last one stands for it.
    #[test]
    fn what_is_outstanding_on_a_path_that_is_not_found_dead_is_told() {
        let found = |paths, outstanding| {
            let mut bench = Bench::new(6);
            bench.paths(paths);
            bench.device("naa.1", 64).vm("a").iops(900.0).davg(0.5);
            let times = vec![(bench.recording().times_ms[6], i64::MAX)];
            let name = "vmhba1:C0:T0:L0".to_owned();
            let dead = Some([(name.clone(), times.clone())].into());
            let cut = vec![CutPath { name, times, is_used: true, outstanding }];
            let paths = Some(PathFacts { working: paths, dead, ..PathFacts::default() });
            let known = DeviceFacts { paths, cut, ..DeviceFacts::default() };
            let facts = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
            bench.diagnose(&Default::default(), &facts).findings
        };
        for (paths, outstanding, told) in [
            (
                2,
                3,
                "1 of the 2 paths of naa.1 is left for its 900 commands a second. The host has not found that yet: 3 \
                    commands are outstanding there.",
            ),
            (
                1,
                1,
                "no other path of naa.1 is left for its 900 commands a second. The host has not found that yet: one \
                    command is outstanding there.",
            ),
        ] {
            let found = found(paths, outstanding);
            assert_eq!((found.len(), found[0].cause), (1, Cause::PathDown), "{found:?}");
            assert!(found[0].sentence.ends_with(told), "{}", found[0].sentence);
            assert_eq!((found[0].sufferers.len(), found[0].window.samples), (1, 1));
        }
        assert!(found(2, 0).is_empty(), "nobody is on it, and it was up in all rows");
    }
}
