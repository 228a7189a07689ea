//! Limited by the array: QoS on a volume [S4].
//!
//! The array holds a volume to a rate by delaying what is above it. The rate is flat, the latency follows the number
//! outstanding, and whatever is not held to that rate is answered many times faster: another VM's volume behind the same
//! protocol endpoint, another device, or the same one when it asked for less.

use counters::Counter;
use levels::array_of;

use super::{
    ALIKE, Case, EITHER, LASTING, Rank, Rule,
    at_rest::{at_rest_ms, moves_kib_ms},
    by_size::held_to_a_sum,
    held_rate::{HELD, Held, is_array_slow, is_slow},
    iops_limit, is_faster,
    known_wait::{KnownWait, MOST},
    latency_evidence, number, policy_advice,
    quick_peer::{CONTRAST, faster_peer, quickest},
    silence,
    steady::{
        ENOUGH_SAMPLES, EXACTLY, LOOSE, MANY_SAMPLES, is_closed, is_closed_at_each, is_exact,
        is_held, is_paced, is_quieter, is_regulated, is_served_alike, is_steady, is_surely_exact,
        may_be_regulated, of_chance, rates, settled, spread,
    },
};
use crate::{
    Cause, Device, Evidence, Finding, Flow, LevelKind, Queue, Spell, Threshold, Vdisk, World, mean,
    median,
    observe::{is_round_within, little},
    unrest_percent,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Array,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, Vdisk::COUNTERS, &[Counter::ArrayLatency]],
    find,
};

/// The same where the rate stays to the command while the number outstanding moves this far.
const STILL_CONTRAST: f64 = 3.0;
const MOVES: f64 = 1.15;
/// The same of a rate that stays to the command, where the number outstanding does too.
const QUICKER: f64 = 1.5;
/// How far the number outstanding must vary for the rate's flatness to mean anything.
const SPREAD: f64 = 1.5;
/// How far the rate may vary meanwhile.
const LEVEL: f64 = 1.2;
/// The same where nothing else is quick: a saturated array still gives a little more to more.
const EXACT: f64 = 1.03;
const FOLLOWS: f64 = 1.25;
/// Commands that an array serves at a time when it is saturated: fewer than this is no array. The
/// narrowest that was calibrated is a group of 10 disks (reference, `array-and-control.md` 1).
const NARROW: f64 = 8.0;

/// Commands in flight from which a device that is no slower than disks is held back all the same:
/// an application that paces itself has few.
const CROWD: f64 = 8.0;
/// The same where many samples are surely at one rate: those of a few threads that pause are as still where an array takes the
/// same time for each.
const FEW: f64 = 6.0;
/// Part of the samples in which a crowd must stand where nothing else is quick.
const CROWDED: f64 = 0.9;

fn find(case: &Case<'_>) -> Vec<Finding> {
    case.each_device(|device| judge(case, device, &held(case, device)?))
}

/// Whether this rule has a finding on a device as a whole, by a policy that is known or by a quick device of an array
/// that its name tells: then more commands gain nothing.
pub(super) fn holds_whole(case: &Case<'_>, device: &Device<'_>) -> bool {
    let is_beside = |held: &Held<'_>| held.beside && array_of(device.flow.name).is_some();
    let is_sure = |held: Held<'_>| held.vm.is_none() && (held.policy.is_some() || is_beside(&held));
    held(case, device).is_some_and(is_sure)
}

/// Whether this rule has a finding on a device.
pub(super) fn applies(case: &Case<'_>, device: &Device<'_>) -> bool {
    held(case, device).is_some()
}

fn held<'a>(case: &Case<'_>, device: &'a Device<'a>) -> Option<Held<'a>> {
    match policy_wait_ms(case, case.host.vdisks_on(device)) {
        Some(_) => held_by_policy(case, device),
        None => held_vm(case, device).or_else(|| {
            let whole = || held_device(case, device).or_else(|| held_exactly(case, device));
            let held = held_by_size(case, device).or_else(whole)?;
            if held.beside { Some(held) } else { held.or_by_a_link(case, device) }
        }),
    }
}

/// What a command of some virtual disks waits at most for the policies of their volumes: 0 where none
/// has a policy, `None` where that is not known.
fn policy_wait_ms<'v, 'a: 'v>(
    case: &Case<'_>,
    disks: impl Iterator<Item = &'v Vdisk<'a>>,
) -> Option<f64> {
    let known = disks.map(|disk| case.facts.vdisks.get(disk.name));
    let known: Vec<_> = known.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())?;
    Some(known.iter().filter_map(|disk| disk.policy_wait_ms).fold(0.0, f64::max))
}

/// What is known to wait for its policy, for longer than chance makes it and in the samples that are
/// slower: whatever else such a command waits for, less of that is more of this. A volume of VMs
/// together is held as a whole; virtual volumes are held each for itself.
fn held_by_policy<'a>(case: &Case<'_>, device: &'a Device<'a>) -> Option<Held<'a>> {
    let facts = case.facts.device(device.flow.name);
    let array = facts.array.as_ref()?;
    let worlds = device.worlds.iter().filter(|w| facts.is_protocol_endpoint && !w.is_system);
    let whole = (!facts.is_protocol_endpoint).then_some((&device.flow, None));
    let flows = worlds.map(|world| (&world.flow, Some(world.owner))).chain(whole);
    let held = flows.filter_map(|(flow, vm)| {
        let wait_ms = match vm {
            Some(vm) => policy_wait_ms(case, case.host.vdisks_of(vm, device)),
            None => policy_wait_ms(case, case.host.vdisks_on(device)),
        }
        .filter(|wait_ms| *wait_ms > 0.0)?;
        let KnownWait { spell, davg_ms: davg, free_ms, inside: waiting } =
            KnownWait::of(device, flow, wait_ms)?;
        let times = |samples: &[usize]| Some(samples.len() as f64 * flow.mean_rate(samples)?);
        let explains =
            wait_ms * times(&device.busy)? >= MOST * (davg - free_ms) * times(&spell.samples)?;
        let faster = Some(("a command that the policy does not hold".into(), free_ms));
        let mut disks =
            case.host.vdisks_on(device).filter(|disk| vm.is_none_or(|vm| disk.vm == vm));
        let short_of = disks.find_map(|disk| case.facts.vdisks.get(disk.name)?.short_of_units);
        let counts =
            waiting >= device.limits.get(Threshold::Waiting) || is_slow(device, flow, &spell);
        let policy = Some((array.name.clone(), short_of));
        let held = Held { vm, faster, beside: true, policy, ..Held::of(flow, spell, 0.98) };
        (counts && explains).then_some((davg, held))
    });
    held.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, held)| held)
}

/// One VM on a device whose other VMs are answered fast.
fn held_vm<'a>(case: &Case<'_>, device: &'a Device<'a>) -> Option<Held<'a>> {
    let vms = || device.worlds.iter().filter(|world| !world.is_system);
    vms().find_map(|world| {
        let (spell, davg) = flat_and_slow(case, device, &world.flow)?;
        let is_quiet =
            spell.samples.len() < ENOUGH_SAMPLES || is_quieter(case, &spell, &world.flow);
        let is_held = is_quiet
            && (is_slow(device, &world.flow, &spell) || is_steady(&rates(&world.flow, &spell)));
        let faster = quicker_vm(device, (world.owner, &world.flow, davg), &spell.samples)?;
        let (vm, faster) = (Some(world.owner), Some(faster));
        is_held.then_some(Held { vm, faster, beside: true, ..Held::of(&world.flow, spell, 0.88) })
    })
}

/// The other VM on a device that is answered fastest, where that is far faster than one that takes so many milliseconds,
/// and how many that one takes.
fn quicker_vm(
    device: &Device<'_>,
    (vm, flow, davg_ms): (&str, &Flow<'_>, f64),
    samples: &[usize],
) -> Option<(String, f64)> {
    let others = device.worlds.iter().filter(|other| !other.is_system && other.owner != vm);
    others
        .filter_map(|other| Some((other, other.flow.per_command(samples, Flow::davg)?)))
        .filter(|(other, ms)| is_faster((&other.flow, *ms), (flow, davg_ms), samples))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(other, ms)| (other.owner.into(), ms))
}

/// A device, or one VM on it, of whose commands of several sizes a sum of number and data stays: a policy that counts
/// by size does that [S4], and so does one of bandwidth or a link.
fn held_by_size<'a>(case: &Case<'_>, device: &'a Device<'a>) -> Option<Held<'a>> {
    let vms = || device.worlds.iter().filter(|world| !world.is_system);
    let has_several = vms().count() > 1;
    let of_vm = vms().map(|world| (&world.flow, Some(world.owner))).filter(|_| has_several);
    of_vm.chain([(&device.flow, None)]).find_map(|(flow, vm)| {
        let (spell, davg) = slow_spell(case, device, flow)?;
        let [rate, kib]: [&dyn Fn(usize) -> Option<f64>; 2] =
            [&|s| flow.rate(s), &|s| Some(1_024.0 * flow.mib_per_s(s)?)];
        let _sum = held_to_a_sum(case, &spell, [rate, kib])?;
        let peer = match vm {
            Some(vm) => quicker_vm(device, (vm, flow, davg), &spell.samples),
            None => faster_peer(case, device, &spell, davg),
        };
        let own = || {
            let at_rest_ms = at_rest_ms(case, device);
            let is_quick = vm.is_none() && at_rest_ms * CONTRAST <= davg;
            is_quick.then(|| ("the same device at other times".to_owned(), at_rest_ms))
        };
        // Data that an application paces itself stay too; then its commands come when they are due.
        let is_closed = is_closed(device, &spell);
        let moves = spread(&spell, |sample| flow.in_flight(sample)) >= Some(MOVES);
        let (beside, faster) = (peer.is_some(), peer.or_else(own));
        let certainty = match (is_closed, moves) {
            (true, _) if beside => 0.75,
            (true, _) if faster.is_some() => 0.65,
            (false, true) if beside => 0.65,
            (true, _) if vm.is_none() => EITHER,
            (false, true) if faster.is_some() => EITHER,
            _ => return None,
        };
        // Of several VMs, one that paces itself and has the most data makes the sum of all stay.
        let is_paced_by =
            |world: &World<'_>| is_held(of_chance(case, &spell, |sample| world.flow.rate(sample)));
        let is_other = is_array_slow(case, device, &spell)
            || iops_limit::applies(case, device)
            || vm.is_none() && has_several && vms().any(is_paced_by);
        let held = Held { vm, faster, beside, is_sum: true, ..Held::of(flow, spell, certainty) };
        (!is_other).then_some(held)
    })
}

/// A whole device, slower than it was itself or than its peers are.
fn held_device<'a>(case: &Case<'_>, device: &'a Device<'a>) -> Option<Held<'a>> {
    let (spell, davg) = flat_and_slow(case, device, &device.flow)?;
    let few = spell.samples.len() < ENOUGH_SAMPLES;
    if spell.samples.len() < LASTING
        || is_array_slow(case, device, &spell)
        || iops_limit::applies(case, device)
    {
        return None;
    }
    let inside = spread(&spell, |sample| device.flow.in_flight(sample))?;
    let moved = spread(&spell, |sample| device.flow.rate(sample))?;
    let mut worlds = device.worlds.iter().filter(|world| !world.is_system).map(|world| &world.flow);
    let is_served_alike = |flow: &Flow<'_>| {
        is_served_alike(case.host, &spell.samples, [&|s| flow.rate(s), &|s| flow.davg(s)])
    };
    // A sum that is held is, however it is divided.
    let is_sum = is_exact(case, device, &spell);
    if is_served_alike(&device.flow) || !is_sum && worlds.any(is_served_alike) {
        return None;
    }
    let stays = moved <= LEVEL;
    let rate = device.flow.mean_rate(&spell.samples)?;
    let stalls = davg >= device.limits.get(Threshold::StallMs);
    let at_rest_ms = at_rest_ms(case, device);
    let itself = || ("the same device at other times".into(), at_rest_ms);
    let is_slow = is_slow(device, &device.flow, &spell);
    let is_still =
        is_steady(&rates(&device.flow, &spell)) && !(inside < MOVES && is_paced(device, &spell));
    let stands = is_slow || spell.mean(|sample| device.flow.in_flight(sample)) >= Some(CROWD);
    let contrast = if moved <= EXACT && inside >= MOVES { STILL_CONTRAST } else { CONTRAST };
    let own = (at_rest_ms * contrast <= davg && !stalls).then(itself);
    let is_narrow = (is_slow || is_still) && own.is_some() && is_narrow(device, rate, at_rest_ms);
    let peer = stands.then(|| faster_peer(case, device, &spell, davg)).flatten();
    let is_crowd =
        spell.share(|sample| device.flow.in_flight(sample) >= Some(2.0 * CROWD)) >= CROWDED;
    let is_free_to_rise =
        is_crowd || is_exact(case, device, &spell) && is_closed_at_each(device, &spell);
    // What comes at random is as still as chance has it, and how much of it is out moves with what each takes.
    let is_paced_by_it = is_quieter(case, &spell, &device.flow) || is_closed(device, &spell);
    let is_free = is_free_to_rise && is_paced_by_it;
    let follows = || (inside >= FOLLOWS && moved <= EXACT && is_free && !stalls).then(itself);
    let beside = peer.is_some();
    if few && !(own.is_some() && tells_in_few(case, device, &spell, inside)) {
        return None;
    }
    let faster = own.or(peer).or_else(follows)?;
    // A full queue holds the number at the array, and with it the rate; what is only asked for comes when it is due.
    let is_closed = is_closed(device, &spell);
    let is_round = is_still && is_closed && is_round_within(rate, EXACTLY);
    let is_set = stands && is_round && device.full.is_none();
    let is_regulated = is_closed && is_regulated(case, device, &spell);
    let is_still_while_inside_moves =
        stays && inside >= SPREAD || moved <= EXACT && inside >= MOVES;
    let signs = [is_still_while_inside_moves, is_narrow, is_regulated, is_set];
    let is_loose_in_steps =
        of_chance(case, &spell, |s| device.flow.rate(s)) > Some(LOOSE) && !beside;
    let certainty = match signs.iter().filter(|sign| **sign).count() {
        0 => return None,
        _ if few || is_loose_in_steps => EITHER,
        1 => 0.65,
        2 => 0.75,
        _ => 0.85,
    };
    let faster = Some(faster);
    let flow = &device.flow;
    Some(Held { faster, beside, ..Held::of(flow, spell, certainty) })
}

/// Whether a few samples tell a rate that is held: it stays to the command, or is one that somebody sets,
/// while the number outstanding moves.
fn tells_in_few(case: &Case<'_>, device: &Device<'_>, spell: &Spell, inside: f64) -> bool {
    let is_round = settled(&device.flow, spell.clone()).is_some();
    inside >= MOVES && (is_round || is_surely_exact(case, device, spell))
}

/// A whole device held to a rate, to the command, while a crowd is outstanding that does not wait in
/// the host: a round one, though nothing in the recording is quicker, or one beside a device behind the
/// same adapter that is; or one that was cut to it. What is slow by any measure may as well be an array
/// at its limit.
fn held_exactly<'a>(case: &Case<'_>, device: &'a Device<'a>) -> Option<Held<'a>> {
    let (flow, limit) = (&device.flow, |threshold| device.limits.get(threshold));
    let held = |least: f64| {
        device.spell(|sample| {
            flow.davg(sample) >= Some(limit(Threshold::QosMs))
                && flow.in_flight(sample) >= Some(least)
                && flow.waiting(sample).is_some_and(|waiting| waiting < limit(Threshold::Waiting))
        })
    };
    let quicker = |spell: &Spell| {
        let davg_ms = flow.per_command(&spell.samples, Flow::davg)?;
        quickest(case, device, spell, |_| true).filter(|(_, peer_ms)| peer_ms * QUICKER <= davg_ms)
    };
    let is_sure =
        |spell: &Spell| spell.samples.len() >= MANY_SAMPLES && is_surely_exact(case, device, spell);
    let in_a_crowd = || {
        let crowd = held(2.0 * CROWD);
        let few = || settled(flow, held(FEW)?).filter(is_sure);
        let spell = crowd.or_else(few)?;
        // A rate that is only asked for is as steady: then commands come when they are due.
        let is_held =
            |spell: &Spell| may_be_regulated(case, device, spell) && is_closed(device, spell);
        if let Some(spell) = settled(flow, spell.clone()).filter(is_held) {
            let faster = quicker(&spell);
            return Some((spell, faster));
        }
        let faster = quicker(&spell).filter(|_| is_held(&spell) && !is_paced(device, &spell))?;
        Some((spell, Some(faster)))
    };
    let burst = || after_a_burst(case, device, settled(flow, held(HELD)?)?);
    let (spell, faster) = in_a_crowd().or_else(burst)?;
    let is_set = spell.samples.len() >= ENOUGH_SAMPLES;
    let is_round = is_round_within(flow.mean_rate(&spell.samples)?, EXACTLY);
    let certainty = if is_round && faster.is_some() { 0.55 } else { EITHER };
    let is_other = is_slow(device, flow, &spell)
        || is_array_slow(case, device, &spell)
        || iops_limit::applies(case, device);
    let held = Held { faster, ..Held::of(flow, spell, certainty) };
    (is_set && !is_other).then_some(held)
}

/// A spell at a rate to which a device was cut: before, it did as much as it had credit for [S4]. The
/// same number is outstanding at either rate, so that what is asked for did not change, and each rate
/// stays to the command; what was answered faster, and in how many milliseconds.
fn after_a_burst(
    case: &Case<'_>,
    device: &Device<'_>,
    spell: Spell,
) -> Option<(Spell, Option<(String, f64)>)> {
    const CUT: f64 = 0.8;
    let flow = &device.flow;
    let first = spell.samples.first()?;
    let samples: Vec<usize> = device.busy.iter().copied().filter(|sample| sample < first).collect();
    let before = Spell { samples, of: spell.of };
    let grown =
        |value: &dyn Fn(usize) -> Option<f64>| Some(spell.mean(value)? / before.mean(value)?);
    let is_cut = grown(&|sample| flow.rate(sample))? <= CUT;
    let is_alike = ALIKE.contains(&grown(&|sample| flow.in_flight(sample))?);
    let are_exact = [&spell, &before].iter().all(|spell| is_exact(case, device, spell));
    let before_ms = flow.per_command(&before.samples, Flow::davg)?;
    let faster = ("the same device before, with as many outstanding,".into(), before_ms);
    (is_cut && is_alike && are_exact).then_some((spell, Some(faster)))
}

/// Whether a rate, at the latency of a device at rest, needs fewer servers than an array has.
fn is_narrow(device: &Device<'_>, rate: f64, at_rest_ms: f64) -> bool {
    at_rest_ms < device.limits.get(Threshold::FlashMs) && little(rate, at_rest_ms) < NARROW
}

/// The spell in which a flow has a latency worth asking about, and the latency, less what size alone may cost.
fn slow_spell(case: &Case<'_>, device: &Device<'_>, flow: &Flow<'_>) -> Option<(Spell, f64)> {
    let limit = |threshold| device.limits.get(threshold);
    let kib_ms = moves_kib_ms(case, device);
    let excess_ms = |flow: &Flow<'_>, sample| {
        let moves_ms = flow.transfer_ms(sample, limit(Threshold::TransferMib))?;
        let size = flow.size_kib(&[sample]);
        Some(flow.davg(sample)? - size.map_or(moves_ms, |kib| moves_ms.min(kib * kib_ms)))
    };
    let spell = device.spell(|sample| {
        excess_ms(flow, sample) >= Some(limit(Threshold::QosMs))
            && flow.in_flight(sample) >= Some(HELD)
            && !silence::stalls(case, device, sample)
    })?;
    let davg = flow.per_command(&spell.samples, excess_ms)?;
    Some((spell, davg))
}

/// The same where the rate does not move by more than counting whole commands explains.
fn flat_and_slow(case: &Case<'_>, device: &Device<'_>, flow: &Flow<'_>) -> Option<(Spell, f64)> {
    let (spell, davg) = slow_spell(case, device, flow)?;
    let rates = rates(flow, &spell);
    let commands = spell.mean(|s| Some(flow.rate(s)? * case.host.interval_s(s)))?;
    let grain = 100.0 * 2.0 / commands.max(1.0);
    let allowed = device.limits.get(Threshold::FlatPercent).max(grain);
    let is_flat = unrest_percent(&rates).is_none_or(|unrest| unrest <= allowed);
    (is_flat && is_served(device, flow, &spell) != Some(true)).then_some((spell, davg))
}

/// Whether a flow is served the rate of a spell without delay at other times: then no limit holds it
/// to that rate, but that is what is asked for. It may be served more before a policy sets in, or
/// while its credit for bursts lasts; then the spell must be a short one to be none of a limit.
fn is_served(device: &Device<'_>, flow: &Flow<'_>, spell: &Spell) -> Option<bool> {
    const SAME: f64 = 0.02;
    const SHORT: usize = 10;
    /// How many times the rate of a spell of seconds was served before it for that to be a stall.
    const MANY: f64 = 10.0;
    // A stall takes commands from the mean of a few samples.
    let rate = median(spell.samples.iter().map(|&sample| flow.rate(sample)))?;
    let davg = flow.per_command(&spell.samples, Flow::davg)?;
    let quick_ms = davg / CONTRAST;
    let is_quick = |&s: &usize| flow.davg(s).is_some_and(|davg| davg <= quick_ms);
    let quick: Vec<usize> = device.busy.iter().copied().filter(is_quick).collect();
    if quick.len() < LASTING && quick.iter().all(|s| spell.samples.contains(s)) {
        return None;
    }
    let quick: Vec<f64> = quick.into_iter().filter_map(|s| flow.rate(s)).collect();
    let served = median(quick.iter().copied())?;
    let is_short = SHORT * spell.samples.len() <= quick.len();
    let stalls = davg >= device.limits.get(Threshold::StallMs) && served >= MANY * rate;
    Some((served / rate - 1.0).abs() <= SAME || is_short && served > rate || stalls)
}

fn judge(case: &Case<'_>, device: &Device<'_>, held: &Held<'_>) -> Option<Finding> {
    let (name, samples) = (device.flow.name, &held.spell.samples);
    let rate = held.flow.mean_rate(samples)?;
    let davg = held.flow.per_command(samples, Flow::davg)?;
    let who = held.vm.map_or(name.into(), |vm| format!("{vm} on {name}"));
    let mut finding = case.finding(Cause::ArrayQos, device.object(), &held.spell);
    let size = held.flow.size_kib(samples).map(|kib| format!(" of {} KiB", number(kib)));
    let (rate_text, davg_text, size) = (number(rate), number(davg), size.unwrap_or_default());
    let latency = if device.is_nfs { "GAVG" } else { "DAVG" };
    let faster_ms = held.faster.as_ref().map_or(0.0, |faster| faster.1);
    finding.sentence = match (&held.policy, &held.faster) {
        (Some((array, Some(units))), _) => format!(
            "Array {array} shares {} cost units a second among all volumes with a policy, and has no more: {who} gets \
             {rate_text} commands a second{size}, less than its own policy allows, of whose {davg_text} ms ({latency}) each waits {} for that.",
            number(f64::from(*units)),
            number(davg - faster_ms)
        ),
        (Some((array, None)), _) => format!(
            "The QoS policy of array {array} holds {who} to {rate_text} commands a second{size}: \
             each takes {davg_text} ms ({latency}) and waits {} ms of them for that.",
            number(davg - faster_ms)
        ),
        (None, Some((what, _))) if held.beside => format!(
            "The array holds {who} to {rate_text} commands a second{size}: {} stays \
             flat while each takes {davg_text} ms ({latency}), and {what} is answered in {} ms.",
            held.stays(),
            number(faster_ms)
        ),
        (None, Some((what, _))) => format!(
            "{who} gets no more than {rate_text} commands a second{size}: {} stays flat while \
             each takes {davg_text} ms ({latency}), and {what} is answered in {} ms. {}",
            held.stays(),
            number(faster_ms),
            held.either()
        ),
        (None, None) => format!(
            "{who} gets no more than {rate_text} commands a second{size}: {} stays exactly the same \
             while {} are outstanding, so each takes {davg_text} ms ({latency}). {}",
            held.stays(),
            number(held.spell.mean(|sample| held.flow.in_flight(sample))?),
            held.either()
        ),
    };
    finding.standing = little(rate, davg - faster_ms);
    finding.evidence = latency_evidence(device, &held.spell);
    finding.evidence.push(Evidence::new(format!("{latency} of {who}"), davg, "ms"));
    let faster = held.faster.as_ref();
    let faster = faster.map(|(what, ms)| Evidence::new(format!("{latency} of {what}"), *ms, "ms"));
    finding.evidence.extend(faster);
    let array = mean(device.array_ms.over(samples)).filter(|ms| *ms > 0.0);
    finding.evidence.extend(Evidence::of([("latency that the array reports", array, "ms")]));
    finding.confidence = held.certainty * held.spell.weight();
    finding.raise_confidence = held.surer();
    finding.sufferers = super::sufferers(case, device, &held.spell);
    finding.causers = match held.vm {
        Some(vm) => {
            finding.sufferers.retain(|party| party.name == vm);
            finding.sufferers.clone()
        }
        None => super::causers_on(device, samples),
    };
    finding.changes = if held.beside { Vec::new() } else { vec![policy_advice::look_at_use()] };
    finding.changes.push(match &held.policy {
        Some((array, Some(_))) => policy_advice::ask_less_of_all(array),
        _ => policy_advice::raise_policy(),
    });
    finding.do_not = vec![
        "Do not raise queue depths for this VM's sake: its rate stays, only its latency grows."
            .into(),
    ];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use counters::{Controller, Counter, Entity, Kind, Recording};
    use levels::Measured;

    use crate::{Cause, Facts, Thresholds, diagnose, fixture::Bench};

    /// For NFS esxtop has GAVG alone, and VMs no rows there [ELA].
    #[test]
    fn a_held_nfs_volume_has_gavg_and_names_who_is_on_it() {
        const SAMPLES: usize = 24;
        let inside = |sample: usize| [23.0, 54.0, 17.0, 9.0, 26.0, 56.0, 41.0, 33.0][sample % 8];
        let mut recording = Recording::new("esx1".into());
        recording.times_ms = (0..SAMPLES as i64).map(|sample| 5_000 * sample).collect();
        let volume = recording.add_entity(Entity::new(Kind::NfsVolume, "nfs1".into()));
        let vm = recording.add_entity(Entity::new(Kind::Vm, "sql".into()));
        let mut disk = Entity::new(Kind::VirtualDisk, "sql:scsi0:1".into());
        (disk.device, disk.vm) = (Some(volume), Some(vm));
        let disk = recording.add_entity(disk);
        let rows = [
            (volume, Counter::Commands, Counter::GuestLatency),
            (disk, Counter::Reads, Counter::VdiskReadLatency),
        ];
        for (row, rate, latency) in rows {
            let ms = (0..SAMPLES).map(|sample| inside(sample) / 3.0).collect();
            recording.set_constant(row, rate, 3_000.0, SAMPLES);
            recording.set_column(row, latency, ms);
        }
        recording.set_constant(disk, Counter::Commands, 3_000.0, SAMPLES);
        let verdict = diagnose(&Measured::of(recording), &Thresholds::default(), &Facts::default());
        let [held] = &verdict.findings[..] else { panic!("{}", verdict.headline) };
        assert_eq!((held.cause, &*held.sufferers[0].name), (Cause::ArrayQos, "sql:scsi0:1"));
        assert!(held.sentence.contains("ms (GAVG)"), "{}", held.sentence);
        let labels = held.evidence.iter().map(|each| &each.label);
        assert!(!held.sentence.contains("DAVG") && labels.clone().all(|l| !l.contains("DAVG")));
    }

    #[test]
    fn a_flat_rate_beside_a_fast_neighbour_is_qos() {
        let finding = Bench::noisy_neighbour().first(Cause::ArrayQos, &Facts::default());
        assert_eq!(finding.causers[0].name, "bad");
        assert!(finding.sentence.contains("good is answered in 1 ms"), "{}", finding.sentence);
    }

    #[test]
    fn a_rate_that_stays_while_latency_follows_the_outstanding_is_qos() {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", 128);
        device.vm("a").iops_when(|s| if s < 3 { 500.0 } else { 5_000.0 }).davg_when(|s| match s {
            0..3 => 0.3,
            _ => 2.0 + s as f64,
        });
        let finding = bench.only(Cause::ArrayQos, &Facts::default());
        assert!(finding.sentence.contains("5,000 commands a second"), "{}", finding.sentence);
    }

    #[test]
    fn a_stall_makes_no_limit_of_a_rate_that_was_served_at_once_before() {
        // 2,000 a second are asked for all the time; the array gets slow, and stalls once.
        let mut bench = Bench::new(14);
        let vm = bench.device("naa.1", 128).vm("a");
        vm.iops_when(|s| if s == 8 { 3.0 } else { 2_000.0 + 9.0 * (s % 4) as f64 });
        vm.davg_when(|s| match s {
            0..6 => 0.3,
            8 => 6_000.0,
            _ => 3.0,
        });
        let findings = bench.findings();
        assert!(findings.iter().all(|found| found.cause != Cause::ArrayQos), "{findings:?}");
    }

    #[test]
    fn large_commands_that_were_quick_at_rest_are_no_excuse_for_slow_ones() {
        // 64 KiB in 0.16 ms while there is little to do: at `transfer_mib_s` they would take 1.6 ms.
        let mut bench = Bench::new(12);
        let vm = bench.device("naa.1", 256).vm("a").size_kib(64.0);
        let slow_ms = |s: usize| [4.85, 1.49, 1.96, 2.89, 2.79, 3.54, 2.05, 1.21][s - 4];
        vm.iops_when(|s| if s < 4 { 20.0 } else { 10_708.0 });
        vm.davg_when(move |s| if s < 4 { 0.16 } else { slow_ms(s) });
        let finding = bench.only(Cause::ArrayQos, &Facts::default());
        assert!(finding.sentence.contains("10,708 commands a second"), "{}", finding.sentence);
        assert!(finding.confidence <= 0.5, "a link may hold as many bytes: {}", finding.confidence);
    }

    #[test]
    fn a_policy_that_sets_in_within_a_sample_is_one_at_30_000_a_second_too() {
        let mut bench = Bench::new(27);
        let vm = bench.device("naa.1", 64).vm("a");
        vm.iops_when(|s| match s {
            0..4 => 2_845.0 + 2.0 * s as f64,
            4 => 16_430.0,
            _ => 30_000.0 - 0.5 * (s % 2) as f64,
        });
        vm.davg_when(|s| [0.41, 1.49, 1.6][usize::from(s > 3) + usize::from(s > 4)])
            .sampled(|s| if s < 4 { 1 } else { 48 });
        let finding = bench.only(Cause::ArrayQos, &Facts::default());
        assert!(finding.sentence.contains("no more than 30,000 commands"), "{}", finding.sentence);
        assert!(finding.sentence.contains("these rows do not tell which"), "{}", finding.sentence);
    }

    #[test]
    fn a_rate_that_is_cut_when_credit_is_spent_is_a_policys() {
        // 6,000 a second while there is credit and 2,000 after it, with 13 to 14 outstanding [S4].
        let held = |burst: f64, rate: f64| {
            let mut bench = Bench::new(27);
            let vm = bench.device("naa.1", 32).vm("a");
            vm.iops_when(move |s| if s < 2 { burst } else { rate });
            vm.davg_when(move |s| 1_000.0 / if s < 2 { burst / 12.7 } else { rate / 14.2 });
            vm.sampled(|s| [12, 12, 17, 12, 14, 19, 13][s % 7]);
            bench.findings()
        };
        let causes = |findings: &[crate::Finding]| -> Vec<Cause> {
            findings.iter().map(|finding| finding.cause).collect()
        };
        assert_eq!(causes(&held(6_000.0, 2_000.0)), [Cause::ArrayQos]);
        // A rate that nobody set, and one that was never more.
        assert_eq!(causes(&held(6_000.0, 2_037.0)), []);
        assert_eq!(causes(&held(2_000.0, 2_000.0)), []);
    }

    /// A link of 400 MB/s carries 6,104 commands a second of 64 KiB; before, there is little to do.
    fn at_a_line_rate() -> Bench {
        let mut bench = Bench::new(11);
        let vm = bench.device("naa.1", 254).vm("sql").size_kib(64.0);
        vm.iops_when(|s| if s < 5 { 1_471.0 } else { 6_104.0 });
        vm.davg_when(|s| if s < 5 { 0.68 } else { 16.4 });
        bench
    }

    #[test]
    fn without_a_quick_neighbour_a_line_rate_is_said_to_be_as_likely_as_a_policy() {
        let finding = at_a_line_rate().only(Cause::ArrayQos, &Facts::default());
        let words = "or a link that carries no more than these 382 MiB/s";
        assert!(finding.sentence.contains(words), "{}", finding.sentence);
        assert!(finding.confidence <= 0.5, "{}", finding.confidence);
        let tells = &finding.raise_confidence[1];
        assert!(tells.starts_with("Load on another device behind vmhba1:"), "{tells}");
        assert!(finding.changes[0].what.starts_with("Look at the utilization of the array"));
        let told = Bench::noisy_neighbour().first(Cause::ArrayQos, &Facts::default());
        assert!(!told.sentence.contains("saturated"), "{}", told.sentence);
        assert!(told.changes[0].what.starts_with("Raise the volume's policy"));
    }

    #[test]
    fn an_adapter_that_carries_more_at_other_times_is_not_at_its_line_rate() {
        let mut bench = at_a_line_rate();
        let other = bench.device("naa.2", 254).vm("backup").size_kib(512.0);
        other.iops_when(|s| if s < 5 { 1_000.0 } else { 0.0 }).davg(1.0);
        let finding = bench.first(Cause::ArrayQos, &Facts::default());
        assert!(!finding.sentence.contains("link"), "{}", finding.sentence);
        assert!(finding.confidence > 0.5, "{}", finding.confidence);
    }

    #[test]
    fn few_bytes_and_small_commands_are_no_line_rate() {
        let mut bench = Bench::new(8);
        let vm = bench.device("naa.1", 128).vm("a");
        vm.iops_when(|s| if s < 3 { 500.0 } else { 5_000.0 });
        vm.davg_when(|s| if s < 3 { 0.3 } else { 2.0 + s as f64 });
        let finding = bench.only(Cause::ArrayQos, &Facts::default());
        assert!(!finding.sentence.contains("link"), "{}", finding.sentence);
    }

    #[test]
    fn where_the_sum_of_an_adapter_is_what_stays_flat_no_volume_is_held() {
        let findings_with = |swing: f64| {
            let mut bench = Bench::new(14);
            for (name, sign) in [("naa.1", 1.0), ("naa.2", -1.0)] {
                let wave =
                    move |s: usize| if s.is_multiple_of(2) { sign * swing } else { -sign * swing };
                let inside = |s: usize| [60.0, 80.0, 100.0][s % 3];
                let rate = move |s: usize| if s < 5 { 500.0 } else { 3_000.0 + wave(s) };
                let vm = bench.device(name, 254).vm(name).size_kib(64.0);
                vm.iops_when(rate);
                vm.davg_when(move |s| if s < 5 { 0.5 } else { inside(s) * 1_000.0 / rate(s) });
            }
            bench.findings()
        };
        let is_held = |swing| findings_with(swing).iter().any(|f| f.cause == Cause::ArrayQos);
        assert_eq!([is_held(0.0), is_held(60.0)], [true, false]);
    }

    #[test]
    fn a_limit_of_tens_of_thousands_is_qos_too() {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 128);
        let rate = |s: usize| if s < 4 { 8_000.0 } else { 20_000.0 + 20.0 * (s % 2) as f64 };
        device.vm("a").iops_when(rate).davg_when(|s| if s < 4 { 0.3 } else { 3.0 });
        bench.first(Cause::ArrayQos, &Facts::default());
    }

    #[test]
    fn several_volumes_of_one_array_that_are_slow_at_once_are_a_slow_array() {
        let mut bench = Bench::new(9);
        for volume in ["000143ac", "000143ad"] {
            let device = bench.device(&format!("naa.624a93704bfab20d4b694df7{volume}"), 64);
            let rate = |s: usize| if s < 3 { 300.0 } else { 500.0 };
            device.vm(volume).iops_when(rate).davg_when(|s| if s < 3 { 0.4 } else { 40.0 });
        }
        bench.only(Cause::ArraySlow, &Facts::default());
    }

    #[test]
    fn a_rate_that_is_flat_because_one_command_waits_for_the_last_is_none() {
        for (rate, davg) in [(0.5, 2_000.0), (100.0, 10.0), (4.0, 5_000.0)] {
            let mut bench = Bench::new(9);
            let device = bench.device("naa.1", 64);
            device.vm("a").iops(rate).davg_when(move |s| if s < 3 { 0.8 } else { davg });
            let mut findings = bench.findings().into_iter();
            assert!(findings.all(|finding| finding.cause != Cause::ArrayQos), "{rate}");
        }
    }

    #[test]
    fn a_rate_that_stays_whatever_is_outstanding_is_qos_without_any_contrast() {
        let mut bench = Bench::new(12);
        let inside = |s: usize| [70.0, 95.0, 48.0, 110.0, 66.0, 82.0][s % 6];
        let vm = bench.device("naa.1", 256).vm("a").iops_when(|s| 4_720.0 + 15.0 * (s % 3) as f64);
        vm.davg_when(move |s| inside(s) / 4.735);
        bench.only(Cause::ArrayQos, &Facts::default());
    }

    #[test]
    fn a_round_rate_that_never_moves_is_qos_in_a_recording_without_a_quiet_hour() {
        for rate in [5_000.0, 20_000.0, 25_000.0, 60_000.0] {
            let mut bench = Bench::new(12);
            bench.device("naa.1", 128).vm("a").iops(rate).davg(60_000.0 / rate);
            let finding = bench.first(Cause::ArrayQos, &Facts::default());
            assert!(finding.confidence < 0.6, "{rate}: {}", finding.confidence);
        }
        let mut odd = Bench::new(12);
        odd.device("naa.1", 128).vm("a").iops(21_370.0).davg(2.8);
        assert!(odd.findings().iter().all(|finding| finding.cause != Cause::ArrayQos));
    }

    #[test]
    fn what_is_asked_for_at_a_constant_rate_is_none() {
        let swing = |s: usize| [20.0, 34.0, 58.0, 53.0, 25.0, 42.0][s % 6];
        for quiet in [0, 6, 12] {
            let mut bench = Bench::new(24);
            let vm = bench.device("naa.1", 64).vm("paced");
            vm.iops_when(|s| 495.0 + (s * 7 % 11) as f64);
            vm.davg_when(move |s| if s < quiet { 0.5 } else { swing(s) });
            bench.only(Cause::ArraySlow, &Facts::default());
        }
    }

    #[test]
    fn a_paced_load_whose_number_outstanding_scatters_is_not_held_back() {
        for rate in [1_500.0, 2_500.0] {
            let mut bench = Bench::new(40);
            let vm = bench.device("naa.1", 128).vm("paced").iops(rate);
            let davg = move |s: usize| if s < 4 { 0.4 } else { 10_000.0 / rate };
            vm.davg_when(davg).sampled(|s| [7, 12, 10, 15, 8, 11, 6, 13, 9][s % 9]);
            assert!(bench.findings().iter().all(|finding| finding.cause != Cause::ArrayQos));
        }
    }

    #[test]
    fn the_round_rate_of_a_full_queue_is_its_own() {
        let mut bench = Bench::new(12);
        for (name, davg, kavg) in [("0001", 6.4, 12.9), ("0002", 0.4, 0.0)] {
            let device = bench.device(&format!("naa.600508b1001c87660c0bd32f8e0f{name}"), 32);
            let rate = |s: usize| 4_980.0 + 20.0 * (s % 3) as f64;
            device.vm(name).iops_when(rate).davg(davg).kavg(kavg);
        }
        assert!(bench.findings().iter().all(|finding| finding.cause != Cause::ArrayQos));
    }

    #[test]
    fn two_slow_samples_of_a_failover_are_none() {
        let mut bench = Bench::new(60);
        let is_pause = |s: usize| s == 30 || s == 31;
        let vm = bench.device("naa.1", 64).vm("a");
        vm.iops_when(move |s| if is_pause(s) { 49.0 } else { 5_900.0 + 20.0 * (s % 9) as f64 });
        vm.davg_when(move |s| if is_pause(s) { 890.0 } else { 1.0 });
        assert!(bench.findings().iter().all(|finding| finding.cause != Cause::ArrayQos));
    }

    #[test]
    fn a_rate_that_stays_to_the_command_is_qos_at_three_times_the_latency_at_rest() {
        let mut bench = Bench::new(60);
        let vm = bench.device("naa.1", 128).vm("a");
        vm.iops_when(|s| if s < 20 { 12_000.0 } else { 44_910.0 + 20.0 * (s % 10) as f64 });
        let inside = |s: usize| 60.0 * (1.0 + 0.2 * (s as f64).sin());
        vm.davg_when(move |s| if s < 20 { 0.3 } else { inside(s) / 45.0 });
        bench.only(Cause::ArrayQos, &Facts::default());
    }

    #[test]
    fn a_saturated_array_without_contrast_is_not_called_qos() {
        let mut bench = Bench::new(8);
        bench.device("naa.1", 128).vm("a").iops(3_360.0).davg(37.0);
        bench.only(Cause::ArraySlow, &Facts::default());
    }

    #[test]
    fn two_quiet_samples_of_many_tell_what_the_device_does_at_rest() {
        let mut bench = Bench::new(40);
        let rate = |s: usize| if s < 2 { 40.0 } else { 7_600.0 + 30.0 * (s % 3) as f64 };
        let vm = bench.device("naa.1", 256).vm("a").iops_when(rate);
        vm.davg_when(|s| if s < 2 { 0.44 } else { 10.2 }).controller(Controller::Nvme);
        let finding = bench.only(Cause::ArrayQos, &Facts::default());
        assert!(finding.sentence.contains("answered in 0.44 ms"), "{}", finding.sentence);
    }
}
