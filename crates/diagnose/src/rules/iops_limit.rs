//! An IOPS limit on a virtual disk: the host itself holds a disk to a rate, also when nothing is
//! congested. Its commands wait while the device has slots free.
//!
//! The wait shows in QAVG where the disk's scheduling queue holds them. A limit of a storage policy
//! is kept by a filter above the VMkernel's queues [src: SIOC v2], and then only the latency at the
//! virtual adapter has it. So a disk is judged by that latency less DAVG, and a VM by its QAVG
//! where the columns of virtual disks are missing.

use std::collections::BTreeMap;

use counters::{Counter, sorted::sort_by};
use knobs::default_cost_unit_kib;

use super::{
    ALIKE, Case, EITHER, Rank, Rule,
    by_shares::{Richer, like_shares},
    by_size::held_to_a_sum,
    changes, number, steady, sufferers,
    suspect::{Suspect, UNSEEN_PART, comes_or_goes, in_units, known_limit, limit_facts, suspects},
};
use crate::{
    Cause, Device, Evidence, Finding, Flow, LevelKind, LimitFacts, Queue, Spell, Threshold, Vdisk,
    is_round, largest, mean, observe::is_round_within, quantile, reaches, unrest_percent,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::World,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, Vdisk::COUNTERS, &[Counter::Conflicts]],
    find,
};

/// Part of the latency that must be wait.
const WAIT_PART: f64 = 0.2;
/// How much longer it must be than the device's queue makes anybody wait.
const UNEXPLAINED: f64 = 3.0;
/// Part of that wait that may be the path's or the adapter's.
const PATH_PART: f64 = 0.5;
/// How far above a rate others of the same recording are that make it no limit where few samples show it.
const PASSED: f64 = 1.5;
/// How far a rate may move that such a wait holds.
const UNSEEN_FLAT_PERCENT: f64 = 2.0;

/// How near to a known limit the rate must come: its second is not esxtop's.
const NEAR: f64 = 0.9;
/// The same where the device's queue makes its commands wait too: who has all that its limit lets go is held by that.
const REACHED: f64 = 0.98;

fn find(case: &Case<'_>) -> Vec<Finding> {
    let suspects = case.host.busy_devices().flat_map(|device| suspects(case, device));
    suspects.filter_map(|suspect| judge(case, &suspect, &held(case, &suspect)?)).collect()
}

/// What is held, and when.
struct Held {
    spell: Spell,
    what: What,
}

/// What stays of those that are held.
#[derive(Clone, Copy, PartialEq)]
enum What {
    /// Their rate; that of a known limit in bursts alone.
    Rate,
    /// A sum of the number and the data of commands of several sizes.
    Sum,
    /// The rate that is not passed, of a load that comes at random and only nearly reaches it.
    Ceiling(f64),
}

/// The VMs on a device that wait for the IOPS limits of their own disks, and the mean commands of each that do
/// so in the VMkernel, which has none that a filter above it holds; not where shares in a full queue do the
/// same.
pub(super) fn waiting_for_limits(case: &Case<'_>, device: &Device<'_>) -> BTreeMap<String, f64> {
    let mut held_back = BTreeMap::new();
    for suspect in suspects(case, device) {
        let is_sure = |spell: &Spell| {
            known_limit(case, &suspect).is_some() || like_shares(&suspect, spell).is_none()
        };
        let spell = held(case, &suspect).map(|held| held.spell).filter(is_sure);
        let Some(spell) = spell else { continue };
        let waiting = spell.mean(|s| suspect.waiting(s)).unwrap_or_default();
        let in_vmkernel = suspect.flow().and_then(|flow| spell.mean(|s| flow.waiting(s)));
        let held = held_back.entry(suspect.vm().to_owned()).or_default();
        *held = f64::min(*held + waiting, in_vmkernel.unwrap_or(f64::INFINITY));
    }
    held_back
}

/// Whether this rule has a finding on a device: then its rate is no array's.
pub(super) fn applies(case: &Case<'_>, device: &Device<'_>) -> bool {
    suspects(case, device).iter().any(|suspect| held(case, suspect).is_some())
}

/// Whether everything on a device waits in the host for limits that are known, and that let less than one of
/// its commands go in a sample.
pub(super) fn lets_none_go(case: &Case<'_>, device: &Device<'_>, sample: usize) -> bool {
    let is_inside = |suspect: &Suspect<'_>| {
        suspect.world.is_some_and(|world| world.queue.sampled(sample) > Some(0.0))
    };
    let waiting = suspects(case, device).into_iter().filter(is_inside);
    let rates: Option<Vec<f64>> = waiting
        .map(|suspect| {
            let units = in_units(case, &suspect, 1.0, &device.busy);
            Some(f64::from(known_limit(case, &suspect)??) / units)
        })
        .collect();
    let all: f64 = rates.unwrap_or_default().iter().sum();
    let is_below = device.queue.actv.at(sample) == Some(0.0);
    is_below && (f64::MIN_POSITIVE..1.0).contains(&(all * case.host.interval_s(sample)))
}

/// Whether it is known of every suspect on a device what limit it has.
pub(super) fn is_known_on(case: &Case<'_>, device: &Device<'_>) -> bool {
    suspects(case, device).iter().all(|suspect| known_limit(case, suspect).is_some())
}

/// The samples in which a suspect waits for no slot of the device, at a rate that is a known limit or
/// does not move.
fn held(case: &Case<'_>, suspect: &Suspect<'_>) -> Option<Held> {
    let spell = waits(case, suspect)?;
    let is_known = matches!(known_limit(case, suspect), Some(Some(_)));
    if is_known || is_at_a_limit(case, suspect, &spell, &|s| suspect.rate(s)) {
        return Some(Held { spell, what: What::Rate });
    }
    if is_held_by_size(case, suspect, &spell) == Some(true) {
        return Some(Held { spell, what: What::Sum });
    }
    let ceiling = ceiling(case, suspect, &spell).filter(|ceiling| {
        let size_kib = suspect.size_kib(&spell.samples);
        is_round(*ceiling) || is_round(changes::in_cost_units(*ceiling, size_kib))
    })?;
    Some(Held { spell, what: What::Ceiling(ceiling) })
}

/// The rate that a disk on a device nearly reaches, if it is no limit that anybody would set but by chance:
/// then rows do not tell what holds it.
pub(super) fn nearly_reached(case: &Case<'_>, device: &Device<'_>) -> Option<f64> {
    let all = suspects(case, device).into_iter();
    let mut unknown = all.filter(|suspect| known_limit(case, suspect).is_none());
    unknown.find_map(|suspect| ceiling(case, &suspect, &waits(case, &suspect)?))
}

/// The samples in which a suspect waits for no slot of the device, at a rate that comes to a known limit.
fn waits(case: &Case<'_>, suspect: &Suspect<'_>) -> Option<Spell> {
    let device = suspect.device;
    let known = known_limit(case, suspect);
    if device.is_nfs && known.is_none() {
        return None;
    }
    if known == Some(None) {
        return None;
    }
    let limit = |threshold| device.limits.get(threshold);
    // A thread alone waits nearly all the time; of a known limit it is enough that it is reached.
    let least = match known {
        Some(_) => 0.0,
        None => limit(Threshold::Waiting).min(limit(Threshold::BusyOutstanding)),
    };
    let is_held = |sample| {
        let wait_ms = suspect.wait_ms(sample)?;
        let latency_ms = suspect.latency_ms(sample)?;
        let counts = wait_ms >= suspect.least_wait_ms(suspect.davg_ms(sample))
            && wait_ms >= WAIT_PART * latency_ms
            && suspect.waiting(sample)? >= least;
        if device.is_nfs {
            let is_full = case.is_array_full(device, &[sample]);
            return Some(counts && wait_ms >= UNSEEN_PART * latency_ms && !is_full);
        }
        let has_all = || {
            let units = in_units(case, suspect, suspect.rate(sample)?, &[sample]);
            Some(units >= REACHED * f64::from(known??))
        };
        let holds = counts
            && device.path_wait_ms(sample)? < PATH_PART * wait_ms
            && (has_all() == Some(true) || wait_ms >= UNEXPLAINED * suspect.turn_ms(sample)?)
            && !suspect.is_refused(sample)?;
        Some(holds)
    };
    if let Some(Some(limit)) = known {
        let least = NEAR * f64::from(limit);
        let units = |s: usize| Some(in_units(case, suspect, suspect.rate(s)?, &[s]));
        let passes = |s| units(s) > Some(f64::from(limit) / NEAR) && comes_or_goes(case, suspect);
        let spell = Spell::any(&device.busy, |s| is_held(s) == Some(true) && !passes(s))?;
        let most = largest(spell.samples.iter().map(|&s| units(s)));
        let davg_ms = suspect.per_command(&device.busy, |s| suspect.davg_ms(s));
        let counts = suspect.per_command(&device.busy, |s| suspect.wait_ms(s))
            >= Some(suspect.least_wait_ms(davg_ms));
        // What comes at random or in bursts waits for a limit that it does not reach in the mean. But for conflicts
        // nothing else does that beside free slots.
        let is_calm = |&sample: &usize| device.faults.conflicts_at(sample) == Some(0.0);
        let is_alone = most >= Some(least) || spell.samples.iter().all(is_calm);
        return (is_alone && counts).then_some(spell);
    }
    let spell = device.spell(|sample| is_held(sample) == Some(true))?;
    // A queue that is full between the samples makes others wait so too, but at no rate that somebody sets.
    let in_bursts = device.full.as_ref().is_some_and(|full| full.in_bursts);
    (!in_bursts || is_set(case, suspect, &spell)).then_some(spell)
}

/// The rate of a VM on a device at which it stays in some samples as one that somebody sets, where nobody knows its
/// limits.
pub(super) fn rate_that_is_set(
    case: &Case<'_>,
    device: &Device<'_>,
    (vm, spell): (&str, &Spell),
) -> Option<f64> {
    rate_of(case, device, (vm, spell), is_set)
}

/// The same of one that stays, whether or not somebody would set it.
pub(super) fn rate_that_stays(
    case: &Case<'_>,
    device: &Device<'_>,
    (vm, spell): (&str, &Spell),
) -> Option<f64> {
    rate_of(case, device, (vm, spell), stays)
}

fn rate_of(
    case: &Case<'_>,
    device: &Device<'_>,
    (vm, spell): (&str, &Spell),
    is_such: fn(&Case<'_>, &Suspect<'_>, &Spell) -> bool,
) -> Option<f64> {
    let own = suspects(case, device).into_iter().filter(|suspect| suspect.vm() == vm);
    let mut unknown = own.filter(|suspect| known_limit(case, suspect).is_none());
    let such = unknown.find(|suspect| is_such(case, suspect, spell))?;
    spell.mean(|sample| such.rate(sample))
}

/// Whether the rate of a suspect stays, in samples enough.
fn stays(case: &Case<'_>, suspect: &Suspect<'_>, spell: &Spell) -> bool {
    let of_chance = steady::of_chance(case, spell, |sample| suspect.rate(sample));
    spell.samples.len() >= steady::ENOUGH_SAMPLES && steady::is_held(of_chance)
}

/// The same, and whether it is one that somebody sets.
fn is_set(case: &Case<'_>, suspect: &Suspect<'_>, spell: &Spell) -> bool {
    let rate = spell.mean(|sample| suspect.rate(sample));
    let is_round = |rate: f64| {
        let in_units = in_units(case, suspect, rate, &spell.samples);
        is_round_within(rate, steady::EXACTLY) || is_round_within(in_units, steady::EXACTLY)
    };
    stays(case, suspect, spell) && rate.is_some_and(is_round)
}

/// Whether a sum of the number of a suspect's commands and of their data does not move, where their sizes do: then a
/// limit that counts by size may hold them.
fn is_held_by_size(case: &Case<'_>, suspect: &Suspect<'_>, spell: &Spell) -> Option<bool> {
    let rates: [&dyn Fn(usize) -> Option<f64>; 2] =
        [&|s| suspect.rate(s), &|s| suspect.kib_per_s(s)];
    let sum = held_to_a_sum(case, spell, rates)?;
    Some(is_at_a_limit(case, suspect, spell, &sum))
}

/// Whether the rate of a suspect that waits does not move; `rate` is that, or what its limit may make of it.
fn is_at_a_limit(
    case: &Case<'_>,
    suspect: &Suspect<'_>,
    spell: &Spell,
    rate: &dyn Fn(usize) -> Option<f64>,
) -> bool {
    let device = suspect.device;
    // A rate that is held of a part of a device may stand beside what moves by chance, and beside a
    // number of the whole that stays.
    let is_held = steady::is_held(steady::of_chance(case, spell, rate));
    let is_free = |rate: &dyn Fn(usize) -> Option<f64>| steady::is_by_chance(case, spell, rate);
    let stays =
        || steady::held_number(case, device, spell).is_some_and(|n| !(n.is_sure && is_held));
    if is_free(rate) || !is_held && is_free(&|s| device.flow.rate(s)) || stays() {
        return false;
    }
    let rates: Vec<f64> = spell.samples.iter().filter_map(|&s| rate(s)).collect();
    let passed = largest(device.busy.iter().map(|&s| rate(s)));
    let is_passed = reaches(passed, mean(rates.iter().map(|rate| Some(PASSED * rate))));
    if is_passed && spell.samples.len() < steady::ENOUGH_SAMPLES {
        return false;
    }
    let unrest = unrest_percent(&rates);
    let commands = spell.mean(|s| Some(rate(s)? * case.host.interval_s(s)));
    // A limit lets as many go in each interval, one more or less.
    let grain = 100.0 / commands.unwrap_or_default().max(1.0);
    let allowed = device.limits.get(Threshold::FlatPercent).max(grain);
    let is_flat = unrest.is_none_or(|unrest| unrest <= allowed);
    let wait_ms = suspect.per_command(&spell.samples, |sample| suspect.wait_ms(sample));
    let latency_ms = suspect.per_command(&spell.samples, |sample| suspect.latency_ms(sample));
    let classic_ms = Threshold::KavgMs.info().classic;
    let least_ms = latency_ms.map(|latency_ms| classic_ms.max(UNSEEN_PART * latency_ms));
    let is_plain =
        reaches(wait_ms, least_ms) && unrest.is_some_and(|unrest| unrest <= UNSEEN_FLAT_PERCENT);
    let by_shares = || like_shares(suspect, spell).is_some_and(|richer| richer.is_known);
    is_flat && (is_plain || suspect.is_seen(spell)) && !by_shares()
}

/// The rate that a suspect does not pass, though what is asked for comes at random and leaves it below: as
/// many let go a second, one behind the other, make commands that come so wait as those of M/D/1 do, so rate
/// and wait tell what they are. Other holds are told from that by three signs: the wait grows with the rate, no
/// sample has more than that rate, and fewer commands are out beside those that wait than at other
/// times, so that it is no number that is held.
fn ceiling(case: &Case<'_>, suspect: &Suspect<'_>, spell: &Spell) -> Option<f64> {
    const ENOUGH_SAMPLES: usize = 12;
    /// What chance makes of the estimate in as many.
    const NEAR: f64 = 1.01;
    let device = suspect.device;
    let waiting = spell.mean(|sample| suspect.waiting(sample))?;
    let busy = (waiting * (waiting + 2.0)).sqrt() - waiting;
    let ceiling = spell.mean(|sample| suspect.rate(sample))? / busy.max(f64::MIN_POSITIVE);
    let most = |sample: usize| {
        Some(suspect.rate(sample)? <= NEAR * ceiling + 1.0 / case.host.interval_s(sample))
    };
    let is_kept = device.busy.iter().all(|&sample| most(sample) != Some(false));
    let tells = spell.samples.len() >= ENOUGH_SAMPLES && suspect.is_seen(spell);
    let is_number =
        || steady::held_number(case, device, spell).is_some() || is_number(suspect, spell);
    let is_ceiling = tells && is_kept && grows(case, suspect, spell) && !is_number();
    (is_ceiling && device.full.is_none()).then_some(ceiling)
}

/// Whether a suspect does more in the third of the samples in which it waits longest than in the third in
/// which it waits least: by more than chance moves the means of as many samples apart, which is half of
/// what it moves a sample by. A wait that hardly moves is no queue's.
fn grows(case: &Case<'_>, suspect: &Suspect<'_>, spell: &Spell) -> bool {
    const BY_CHANCE: f64 = 0.75;
    let of = |&sample: &usize| Some((suspect.wait_ms(sample)?, suspect.rate(sample)?));
    let mut all: Vec<(f64, f64)> = spell.samples.iter().filter_map(of).collect();
    sort_by(&mut all, |a, b| a.0.total_cmp(&b.0));
    let third = all.len() / 3;
    let (least, most) = (&all[..third], &all[all.len() - third..]);
    let rate = |part: &[(f64, f64)]| mean(part.iter().map(|(_, rate)| Some(*rate)));
    let wait_ms = |part: &[(f64, f64)]| mean(part.iter().map(|(wait_ms, _)| Some(*wait_ms)));
    let is_longer = wait_ms(most) > wait_ms(least).map(|ms| ALIKE.end() * ms);
    let grown = rate(most).zip(rate(least));
    let commands = spell.mean(|s| Some(suspect.rate(s)? * case.host.interval_s(s)));
    let step = rate(&all).zip(commands).map(|(rate, commands)| rate / commands.sqrt());
    is_longer && reaches(grown.map(|(most, least)| most - least), step.map(|step| BY_CHANCE * step))
}

/// Whether as many commands of a device are out as ever at the instants at which a suspect has some
/// waiting, as where an array takes no more [KB-QF]; also where nothing tells.
fn is_number(suspect: &Suspect<'_>, spell: &Spell) -> bool {
    const FEWER: f64 = 0.75;
    let queue = &suspect.device.queue;
    let waits = |sample: &&usize| {
        suspect.world.is_some_and(|world| world.queue.qued.at(**sample) >= Some(1.0))
    };
    let beside = spell.samples.iter().filter(waits).map(|&sample| queue.actv.at(sample));
    let most = largest(queue.actv.over(&spell.samples)).map(|most| FEWER * most);
    let few = quantile(beside, 0.25);
    few.is_none() || few > most
}

/// Whether another VM on the device of a suspect, with commands enough, hardly waits.
fn waits_alone(suspect: &Suspect<'_>, spell: &Spell) -> bool {
    const HARDLY: f64 = 0.1;
    let samples = &spell.samples;
    let least_ms =
        suspect.per_command(samples, |s| suspect.wait_ms(s)).map(|wait_ms| HARDLY * wait_ms);
    let others = suspect.device.worlds.iter().filter(|world| world.owner != suspect.vm());
    let mut others = others.filter(|world| {
        !world.is_system
            && world.flow.mean_rate(samples) >= Some(suspect.device.limits.get(Threshold::BusyIops))
    });
    others.any(|world| world.flow.per_command(samples, Flow::qavg) <= least_ms)
}

/// A limit, what it is at the end where that is another, and the storage policy of which it is that.
fn told(limit: u32, known: &LimitFacts) -> String {
    let (limit, at_end) = (f64::from(limit), known.at_end.map(f64::from));
    let told = match at_end.filter(|at_end| *at_end != limit) {
        Some(at_end) => format!("{}, which is {} at the end", number(limit), number(at_end)),
        None => number(limit),
    };
    let told = match known.together {
        Some(all) => format!("{told}, {} with its VM's other disks there", number(all.into())),
        None => told,
    };
    match known.policy_at_end.as_ref().filter(|_| at_end.is_some()) {
        Some(policy) => format!("{told}, of its storage policy {policy}"),
        None => told,
    }
}

fn judge(case: &Case<'_>, suspect: &Suspect<'_>, held: &Held) -> Option<Finding> {
    let spell = &held.spell;
    let (device, flow) = (suspect.device, suspect.flow());
    let (samples, vm, name) = (&spell.samples, suspect.vm(), suspect.name());
    let rate = spell.mean(|sample| suspect.rate(sample))?;
    let wait_ms = suspect.per_command(samples, |sample| suspect.wait_ms(sample))?;
    let is_seen = suspect.is_seen(spell);
    let mut finding = case.finding(Cause::IopsLimit, suspect.object(), spell);
    let place = if is_seen { "in the VMkernel" } else { "above the VMkernel's queues" };
    let (rate_text, wait) = (number(rate), number(wait_ms));
    let size = suspect.size_kib(samples);
    let normalised = in_units(case, suspect, rate, samples);
    let facts = limit_facts(case, suspect);
    let known = facts.and_then(|facts| Some((facts.iops?, facts)));
    finding.sentence = match known {
        Some((limit, facts)) if normalised >= NEAR * f64::from(limit) => format!(
            "{name} is held to {rate_text} commands a second by its IOPS limit of {}: each waits \
             {wait} ms {place}.",
            told(limit, facts)
        ),
        Some((limit, facts)) => format!(
            "{name} is held in bursts by its IOPS limit of {}: each command waits {wait} ms \
             {place}, at {rate_text} a second in the mean of those samples.",
            told(limit, facts)
        ),
        None => as_under_a_limit(suspect, held, [&rate_text, &wait, place]),
    };
    finding.standing = spell.mean(|sample| suspect.waiting(sample))?;
    let latency = suspect.disk.and_then(|disk| disk.latency_ms(samples));
    finding.evidence = vec![Evidence::new("commands per second", rate, "1/s")];
    let in_units = format!("the same in units of {} KiB", default_cost_unit_kib());
    match size.filter(|_| held.what == What::Sum).map(|size| size / default_cost_unit_kib()) {
        // Each command begins at most one unit more than it fills, and at least one.
        Some(filled) => finding.evidence.extend([
            Evidence::new(format!("{in_units}, at least"), rate * filled.max(1.0), "1/s"),
            Evidence::new("at most", rate * (filled + 1.0), "1/s"),
        ]),
        None => finding.evidence.push(Evidence::new(in_units, normalised, "1/s")),
    }
    finding.evidence.extend(Evidence::of([
        ("mean size", size, "KiB"),
        ("QAVG", flow.and_then(|flow| flow.per_command(samples, Flow::qavg)), "ms"),
        ("DAVG", flow.and_then(|flow| flow.per_command(samples, Flow::davg)), "ms"),
        ("waiting, by Little's law", Some(finding.standing), ""),
        ("DQLEN", mean(device.queue.dqlen.over(samples)), ""),
        ("ACTV, sampled", mean(device.queue.actv.over(samples)), ""),
        (Evidence::AT_DISK, latency, "ms"),
    ]));
    let is_ceiling = matches!(held.what, What::Ceiling(_));
    let certainty = match (is_round(rate) || is_round(normalised), is_seen) {
        _ if known.is_some() => 0.98,
        _ if held.what == What::Sum => 0.75,
        _ if is_ceiling && !waits_alone(suspect, spell) => 0.6,
        _ if is_ceiling => 0.75,
        (true, true) => 0.9,
        (false, true) => 0.75,
        (true, false) => 0.75,
        (false, false) => 0.6,
    };
    finding.confidence = certainty * spell.weight();
    if known.is_none() {
        finding.raise_confidence =
            vec![format!("The limits and the storage policy of {vm}, as below")];
    }
    finding.sufferers = sufferers(case, device, spell);
    finding.sufferers.retain(|party| party.name == if device.is_nfs { name } else { vm });
    finding.causers = finding.sufferers.clone();
    finding.changes = vec![changes::lift_limit(vm, name, facts)];
    finding.do_not = vec!["Do not raise queue depths: the limit holds whatever they are.".into()];
    let richer = like_shares(suspect, spell).filter(|_| known.is_none());
    if let Some(richer) = richer {
        or_by_shares(&mut finding, vm, &richer);
    }
    Some(finding)
}

/// What is said of one that is not known, with the rate, the wait in milliseconds and the place of that.
fn as_under_a_limit(suspect: &Suspect<'_>, held: &Held, [rate, wait, place]: [&str; 3]) -> String {
    let (device, name) = (suspect.device, suspect.name());
    let What::Ceiling(ceiling) = held.what else {
        let what = match device.full.is_some() {
            true => "serves others sooner",
            false => "has slots free",
        };
        if held.what == What::Sum {
            return format!(
                "Commands of {name} wait {wait} ms each {place} although {} {what}: {rate} a second are let go, fewer \
                 where they are larger, as under an IOPS limit, which counts each begun {} KiB of a command.",
                device.flow.name,
                number(default_cost_unit_kib())
            );
        }
        return format!(
            "{name} is held to {rate} commands a second: each waits {wait} ms {place} although {} {what}, as \
             under an IOPS limit.",
            device.flow.name
        );
    };
    let others = if waits_alone(suspect, &held.spell) { "; others there do not wait" } else { "" };
    format!(
        "Commands of {name} wait {wait} ms each {place} although {} has slots free, the longer the more come: \
         {rate} a second do in the mean, and never more than about {}, as under an IOPS limit that a load which \
         comes at random nearly reaches{others}.",
        device.flow.name,
        number(ceiling)
    )
}

/// Tells beside a limit of a VM that shares may do the same.
fn or_by_shares(finding: &mut Finding, vm: &str, richer: &Richer<'_>) {
    let Richer { vm: peer, times, .. } = richer;
    finding.sentence.push_str(&format!(
        " Or it is by shares: {peer} does {} times as much, and a full queue is divided in proportion \
         to them.",
        number(*times)
    ));
    finding.confidence = finding.confidence.min(EITHER);
    finding.raise_confidence.push(format!("The shares of the disks of {vm} and {peer}"));
    finding.do_not.clear();
}

#[cfg(test)]
mod tests {
    use counters::Counter;

    use crate::{
        Cause, Facts, Finding, Thresholds,
        fixture::{Bench, limited},
    };

    #[test]
    fn a_flat_rate_with_waits_beside_free_slots_is_a_limit() {
        let mut bench = Bench::new(6);
        let device = bench.device("naa.1", 64);
        device.vm("held").iops(1_000.0).davg(0.5).kavg(31.0);
        device.vm("free").iops_when(|s| 5_000.0 + 500.0 * s as f64).davg(0.5);
        let finding = bench.only(Cause::IopsLimit, &Facts::default());
        assert_eq!(
            (finding.at.name.as_str(), finding.sufferers[0].name.as_str()),
            ("held:scsi0:1", "held")
        );
        assert!(finding.confidence > 0.85);
    }

    /// 4 KiB in 7 of 10 commands and 64 KiB in the others count 1.3 each, though their mean size is less than a unit.
    #[test]
    fn a_known_limit_counts_commands_of_several_sizes_as_it_is_told() {
        let found = |limit_cost: Option<f64>| {
            let mut bench = Bench::new(20);
            let rate = |s: usize| 230.0 + [2.0, -3.0, 1.0, 4.0, -2.0][s % 5];
            let vm = bench.device("naa.1", 64).vm("a").iops_when(rate).davg(0.6).kavg(138.0);
            vm.size_kib(22.0).sampled(|_| 0);
            let mut facts = limited("a:scsi0:1", 300);
            let limits = std::sync::Arc::make_mut(&mut facts.limits);
            limits.values_mut().for_each(|limit| limit.cost = limit_cost);
            let finding = bench.diagnose(&Thresholds::default(), &facts).findings.remove(0);
            assert!(finding.sentence.contains("by its IOPS limit of 300"), "{}", finding.sentence);
            (finding.cause, finding.sentence.contains("in bursts"))
        };
        assert_eq!(found(Some(1.3)), (Cause::IopsLimit, false));
        // Counted as one each they never come to it in the mean.
        assert_eq!(found(None), (Cause::IopsLimit, true));
    }

    /// Two VMs at a full queue of 32, of which one has all that its limit lets go, and waits little longer than the other.
    #[test]
    fn who_has_all_that_a_known_limit_lets_go_is_held_by_it_beside_a_full_queue() {
        let is_held = |limit: u32| {
            let mut bench = Bench::new(20);
            let device = bench.device("naa.1", 32);
            device.vm("a").iops_when(|s| 1_000.0 - (s % 2) as f64).davg(2.0).kavg(6.0);
            device.vm("b").iops_when(|s| 14_000.0 + 90.0 * (s % 5) as f64).davg(2.0).kavg(4.0);
            let facts = limited("a:scsi0:1", limit);
            let verdict = bench.diagnose(&Thresholds::default(), &facts);
            verdict.findings.iter().any(|finding| finding.cause == Cause::IopsLimit)
        };
        assert_eq!([is_held(1_000), is_held(1_100)], [true, false]);
    }

    /// Two rows of a stall, one completed as many commands as the other, beside eighteen that did a hundred times as many.
    #[test]
    fn a_stall_is_no_limit() {
        let mut bench = Bench::new(20);
        let is_stall = |s: usize| (9..11).contains(&s);
        let vm = bench.device("naa.1", 64).vm("a");
        vm.iops_when(move |s| if is_stall(s) { 10.0 } else { 1_000.0 + (s % 3) as f64 });
        vm.davg(0.5).kavg_when(move |s| if is_stall(s) { 2_400.0 } else { 0.01 });
        let findings = bench.findings();
        assert!(findings.iter().all(|finding| finding.cause != Cause::IopsLimit), "{findings:?}");
    }

    /// Its commands are in neither ACTV nor QUED while they wait, so that the queue could be full between the samples.
    #[test]
    fn a_rate_that_stays_at_a_round_number_is_no_queue_that_is_full_in_bursts() {
        let found = |rate: f64| {
            let mut bench = Bench::new(21);
            let device = bench.device("naa.1", 32);
            let held = device.vm("held").iops_when(move |s| rate + 0.2 * (s % 2) as f64);
            held.davg(1.1).kavg(9.5).sampled(|s| [1, 0, 2, 1][s % 4]).queued(|_| 0);
            let free = device.vm("free").iops_when(|s| 300.0 + [4.0, -9.0, 7.0, -2.0][s % 4]);
            free.davg(1.1).sampled(|_| 0);
            bench.findings().remove(0).cause
        };
        assert_eq!(found(1_500.0), Cause::IopsLimit);
        assert_eq!(found(1_459.0), Cause::Dsnro);
    }

    /// 8 threads: 2.15 ms at an array that no sample shows to be flash, and 1.54 ms for the limit.
    #[test]
    fn a_wait_that_is_most_of_what_the_device_takes_counts_however_short() {
        let found = |kavg_ms: f64, facts: &Facts| {
            let mut bench = Bench::new(25);
            bench.device("naa.1", 64).vm("a").iops(2_167.0).davg(2.15).kavg(kavg_ms);
            bench.diagnose(&Thresholds::default(), facts).findings.len()
        };
        for facts in [Facts::default(), limited("a:scsi0:1", 2_186)] {
            assert_eq!((found(1.54, &facts), found(0.4, &facts)), (1, 0));
        }
    }

    /// A thread alone: 0.98 of its command waits in the mean, or 0.75 where the limit is known.
    #[test]
    fn a_limit_below_what_one_thread_does_is_one() {
        let held = |rate: f64, kavg_ms: f64, facts: &Facts| {
            let mut bench = Bench::new(12);
            bench.device("naa.1", 64).vm("a").iops(rate).davg(2.0).kavg(kavg_ms).sampled(|_| 0);
            bench.only(Cause::IopsLimit, facts).at.name
        };
        assert_eq!(held(10.0, 98.0, &Facts::default()), "a:scsi0:1");
        assert_eq!(held(125.0, 6.0, &limited("a:scsi0:1", 125)), "a:scsi0:1");
    }

    #[test]
    fn what_a_limit_holds_does_not_wait_for_the_device() {
        // b keeps 40 commands outstanding at a limit of 300: 40 / 300 s each, less what they are
        // served. a alone fills the 64 slots and waits for next to nothing: 0.5 command.
        let mut bench = Bench::new(29);
        let device = bench.device("naa.1", 64);
        device.vm("a").iops_when(|s| 61_000.0 + 100.0 * (s % 5) as f64).davg(1.04).kavg(0.008);
        device.vm("b").iops(300.0).davg(1.04).kavg(132.3);
        let finding = bench.only(Cause::IopsLimit, &Facts::default());
        assert_eq!(finding.at.name, "b:scsi0:1");
    }

    /// Shares of 4 to 1 divide a full queue of 32 as well as a limit of a quarter does.
    #[test]
    fn a_quarter_of_what_another_does_may_be_by_shares() {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 32);
        device.vm("hi").iops(38_575.0).davg(0.66).kavg(0.17);
        device.vm("lo").iops(9_644.0).davg(0.66).kavg(2.66);
        let findings = bench.findings();
        let held = findings.iter().find(|finding| finding.cause == Cause::IopsLimit).unwrap();
        assert!(held.sentence.contains("hi does 4 times as much"), "{}", held.sentence);
        assert!(held.confidence <= 0.5 && held.do_not.is_empty());
    }

    /// The same where the recording has shares: they tell.
    #[test]
    fn shares_that_are_known_tell_whether_it_is_by_them() {
        for (of_lo, is_limit) in [(500.0, false), (2_000.0, true)] {
            let mut bench = Bench::new(12);
            let device = bench.device("naa.1", 32);
            device.vm("hi").iops(38_575.0).davg(0.66).kavg(0.17).shares(2_000.0);
            device.vm("lo").iops(9_644.0).davg(0.66).kavg(2.66).shares(of_lo);
            let findings = bench.findings();
            let held = findings.iter().find(|finding| finding.cause == Cause::IopsLimit);
            assert_eq!(held.is_some(), is_limit, "{of_lo}");
            assert!(held.is_none_or(|held| !held.sentence.contains("shares")));
        }
    }

    #[test]
    fn a_wait_beside_free_slots_is_a_limit_whatever_the_neighbour_does() {
        for limit in [2_000.0, 3_000.0, 8_000.0, 15_000.0] {
            let mut bench = Bench::new(12);
            let device = bench.device("naa.1", 32);
            device.vm("app").iops(limit).davg(0.53).kavg(16_000.0 / limit - 0.53);
            device.vm("other").iops_when(|s| 7_600.0 + 60.0 * (s % 3) as f64).davg(0.53);
            let finding = bench.only(Cause::IopsLimit, &Facts::default());
            assert_eq!(finding.at.name, "app:scsi0:1", "{limit}");
            assert!(finding.causers.iter().all(|party| party.name == "app"), "{limit}");
        }
    }

    #[test]
    fn a_limit_above_the_vmkernel_shows_at_the_virtual_adapter_alone() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 64).vm("held").iops(500.0).davg(0.5).above_ms(30.0);
        let finding = bench.only(Cause::IopsLimit, &Facts::default());
        assert!(finding.sentence.contains("above the VMkernel's queues"), "{}", finding.sentence);
    }

    #[test]
    fn reservation_conflicts_hold_commands_without_any_limit() {
        for (conflicts, qavg) in [(4.0, 57.9), (40.0, 57.9), (40.0, 22_263.0)] {
            let mut bench = Bench::new(6);
            let device = bench.device("naa.1", 64);
            device.counter(Counter::Conflicts, move |_| conflicts);
            device.counter(Counter::QueueLatency, move |_| qavg);
            device.vm("held").iops(6.0).davg(9.0).kavg(57.9).sampled(|_| 0);
            let mut causes = bench.findings().into_iter().map(|finding| finding.cause);
            assert!(causes.all(|cause| cause == Cause::ReservationConflicts), "{conflicts}");
        }
    }

    #[test]
    fn where_no_depth_is_known_nobody_knows_of_free_slots() {
        let mut bench = Bench::new(30);
        let device = bench.device("naa.1", 0);
        for (vm, rate) in [("alpha", 7_000.0), ("beta", 3_000.0)] {
            device.vm(vm).iops_when(move |s| rate + (s % 7) as f64).davg(3.2).kavg(3.0);
        }
        let verdict = bench.diagnose(&Thresholds::default(), &Facts::default());
        assert!(verdict.findings.is_empty());
        assert!(verdict.lacks[0].sentence.contains("Device Q Depth"), "{:?}", verdict.lacks);
    }

    #[test]
    fn who_waits_beside_free_slots_is_held_whatever_the_devices_own_qued_says() {
        let mut bench = Bench::new(60);
        let device = bench.device("naa.1", 64);
        device.counter(Counter::QueuedCommands, |_| 0.0);
        device.counter(Counter::Commands, |s| 10_500.0 * (1.0 + 0.02 * (s as f64).sin()));
        device.vm("limited").iops(500.0).davg(2.0).kavg(40.0);
        device.vm("free").iops(10_000.0).davg(2.0).kavg(0.01);
        let verdict = bench.diagnose(&Thresholds::default(), &Facts::default());
        assert!(verdict.lacks.is_empty(), "{:?}", verdict.lacks);
        assert_eq!(verdict.findings[0].at.name, "limited:scsi0:1");
        assert_eq!(verdict.findings[0].cause, Cause::IopsLimit);
    }

    #[test]
    fn a_snapshot_that_costs_time_is_no_limit() {
        let mut bench = Bench::new(8);
        let rate = |sample: usize| 500.0 + 90.0 * (sample % 3) as f64;
        bench.device("naa.1", 64).vm("a").iops_when(rate).davg(0.5).above_ms(4.0);
        assert!(bench.findings().is_empty());
    }

    /// 24 rows of Poisson arrivals that one server after the other lets go, drawn by a program of a few lines
    /// that knows no rule: commands a second, their wait in milliseconds, and how many are out and
    /// wait at the instants. At 279 a second and one every 1/300 s, before an array of 5 ms; and at 760
    /// before one that takes 4 of 5 ms, and refuses what is more.
    type Rows = ([f64; 24], [f64; 24], [u32; 24], [u32; 24]);
    const NEAR_A_LIMIT: Rows = (
        [
            286.2, 286.0, 280.0, 279.0, 278.0, 281.4, 269.2, 281.0, 279.4, 287.0, 282.0, 283.4,
            272.2, 270.0, 290.8, 264.6, 293.4, 290.0, 281.0, 293.8, 276.6, 278.4, 279.8, 292.6,
        ],
        [
            20.5, 36.2, 17.7, 21.2, 21.5, 17.6, 14.6, 20.7, 16.8, 18.1, 25.7, 20.2, 14.5, 15.7,
            31.6, 14.7, 31.8, 37.3, 20.4, 55.8, 19.5, 21.2, 30.7, 47.9,
        ],
        [2, 1, 2, 0, 1, 3, 0, 1, 3, 2, 2, 1, 0, 1, 1, 2, 1, 0, 1, 2, 1, 4, 1, 2],
        [9, 19, 3, 12, 6, 4, 6, 7, 9, 2, 5, 8, 0, 1, 9, 2, 19, 0, 28, 5, 2, 2, 19, 3],
    );
    const REFUSED: Rows = (
        [
            758.2, 744.6, 756.8, 767.0, 742.4, 753.4, 759.2, 752.6, 743.8, 749.2, 763.0, 759.6,
            771.6, 762.4, 774.8, 758.2, 780.6, 763.2, 780.6, 753.4, 767.2, 746.0, 766.2, 781.4,
        ],
        [
            26.2, 16.0, 16.5, 19.8, 12.8, 23.6, 13.9, 16.1, 17.1, 14.2, 28.0, 28.8, 12.5, 32.4,
            49.6, 16.5, 19.6, 16.9, 33.3, 15.1, 25.1, 9.8, 16.5, 39.7,
        ],
        [0, 4, 2, 4, 4, 4, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 4, 4, 4, 4, 4, 4, 4],
        [0, 6, 0, 0, 34, 7, 0, 0, 25, 43, 10, 1, 20, 31, 33, 0, 0, 30, 46, 30, 0, 5, 0, 15],
    );

    fn at_random((rates, waits_ms, out, queued): &'static Rows, has_another: bool) -> Vec<Finding> {
        let mut bench = Bench::new(24);
        let device = bench.device("naa.1", 64);
        let vm = device.vm("held").iops_when(|s| rates[s]).davg(5.0).kavg_when(|s| waits_ms[s]);
        vm.sampled(|s| out[s]).queued(|s| queued[s]);
        if has_another {
            let rate = |s: usize| 700.0 + 20.0 * ((s * 7 % 5) as f64 - 2.0);
            device.vm("free").iops_when(rate).davg(5.0).kavg(0.02).sampled(|s| [3, 5, 2, 4][s % 4]);
        }
        bench.findings()
    }

    #[test]
    fn a_load_that_comes_at_random_near_its_limit_shows_the_limit() {
        for (has_another, least) in [(true, 0.7), (false, 0.55)] {
            let findings = at_random(&NEAR_A_LIMIT, has_another);
            let [found] = &findings[..] else { panic!("{findings:?}") };
            assert_eq!((found.cause, &*found.at.name), (Cause::IopsLimit, "held:scsi0:1"));
            assert!(found.sentence.contains("never more than about 300"), "{}", found.sentence);
            assert_eq!(found.sentence.contains("others there do not wait"), has_another);
            assert!((least..0.8).contains(&found.confidence), "{}", found.confidence);
            let names: Vec<&str> = found.sufferers.iter().map(|vm| &*vm.name).collect();
            assert_eq!(names, ["held"]);
        }
    }

    #[test]
    fn an_array_that_refuses_what_comes_at_random_is_no_limit() {
        for has_another in [false, true] {
            let findings = at_random(&REFUSED, has_another);
            let [found] = &findings[..] else { panic!("{findings:?}") };
            assert_eq!(found.cause, Cause::HostWait);
            let names: Vec<&str> = found.sufferers.iter().map(|vm| &*vm.name).collect();
            assert_eq!(names, ["held"]);
            assert_eq!(found.sentence.contains("those of others there for 0.02"), has_another);
        }
    }
}
