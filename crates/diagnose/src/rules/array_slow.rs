//! The array is slow, or at its knee: DAVG is high and the host adds next to nothing [S0].
//!
//! DAVG is everything below the driver: fabric, array, and what the array waits for. Where the
//! rate no longer grows with the number outstanding, the array is at its knee and every further
//! command only waits longer.

use super::{
    ALIKE, Case, EITHER, LASTING, Rank, Rule, array_qos,
    behind::{self, Behind},
    changes, command_window, copies,
    crowd::Crowded,
    device_depth::explains_nfs,
    held_rate::HELD,
    host_link,
    knee::Knee,
    known_wait, latency_evidence, less_load, newcomer, number, path_thrash, policy_advice, slow,
    slow_way, splitting, steady, sufferers_behind, switch_link,
};
use crate::{
    ArrayFacts, Cause, Device, Evidence, Finding, Flow, FullQueue, LevelKind, Queue, Spell,
    Threshold, Vdisk, facts::share, mean, median, path_changes,
};
use levels::{array_of, most_first};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Array,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, Vdisk::COUNTERS],
    find,
};

/// Part of DAVG from which KAVG is worth a word.
const HOST_PART: f64 = 0.25;
/// DAVG in multiples of a command's own time, below which it is that time.
const PLAIN: f64 = 2.0;
/// Part of a command's own time that is most of it.
const MOST: f64 = 0.5;
/// Size from which the transfer itself takes its time.
const LARGE_KIB: f64 = 256.0;

fn find(case: &Case<'_>) -> Vec<Finding> {
    let (mut findings, mut slow) = (Vec::new(), Vec::new());
    for device in case.host.busy_devices().filter(|device| !is_told_elsewhere(case, device)) {
        let crowded = Crowded::of(case, device);
        if crowded.as_ref().is_some_and(|crowded| crowded.is_told_elsewhere(case)) {
            continue;
        }
        match crowded.and_then(|crowded| crowded.judge(case)) {
            Some(finding) => findings.push(finding),
            None => slow.extend(Slow::find(case, device)),
        }
    }
    most_first(&mut slow, |device| device.standing);
    while !slow.is_empty() {
        let worst = slow.remove(0);
        let (alike, rest) = slow.into_iter().partition(|other| worst.is_one_with(case, other));
        slow = rest;
        findings.push(judge(case, &worst, alike));
    }
    findings
}

/// Whether what makes a device slow, if anything does, is another finding's.
fn is_told_elsewhere(case: &Case<'_>, device: &Device<'_>) -> bool {
    explains_nfs(case, device)
        || array_qos::applies(case, device)
        || path_thrash::known(case, device).is_some()
        || command_window::explains(case, device)
        || host_link::explains(case, device)
        || switch_link::explains(case, device)
        || slow_way::explains(case, device)
        || splitting::explains(case, device)
}

/// What a command of a device takes at its array in some of these samples, in milliseconds, where this rule
/// has a finding on it then.
pub(super) fn slow_ms(case: &Case<'_>, device: &Device<'_>, samples: &[usize]) -> Option<f64> {
    if is_told_elsewhere(case, device) {
        return None;
    }
    let slow = Slow::find(case, device)?;
    slow.spell.samples.iter().any(|sample| samples.contains(sample)).then_some(slow.davg_ms)
}

/// A device, and when it is slow.
struct Slow<'a> {
    device: &'a Device<'a>,
    spell: Spell,
    why: Why,
    /// Mean commands at the array.
    standing: f64,
    davg_ms: f64,
}

/// What makes a device slow.
enum Why {
    /// A latency that is too long for what it is.
    Plain,
    /// It took so many milliseconds before, though no more was asked of it.
    Before(f64),
    /// Another of its array is asked for as much and takes so many milliseconds.
    Peer(String, f64),
    /// One VM that asks for no more waits behind another that came.
    Behind(Box<Behind>),
}

impl<'a> Slow<'a> {
    fn new(device: &'a Device<'a>, spell: Spell, why: Why) -> Option<Self> {
        let standing = spell.mean(|sample| device.flow.in_flight(sample))?;
        let davg_ms = device.flow.per_command(&spell.samples, Flow::davg)?;
        Some(Self { device, spell, why, standing, davg_ms })
    }

    /// Slow is a device by what its commands take at the array; or by what it was, and by others, where they take
    /// most of their time there.
    fn find(case: &Case<'_>, device: &'a Device<'a>) -> Option<Self> {
        let is_found = case.facts.device(device.flow.name).finds_depth;
        let is_short = !is_found && case.full_queue(device).is_some();
        let array_ms = |sample| case.array_ms(device, &[sample]);
        let is_known = |sample| {
            is_known_to_be_slow(case, device, &[sample])
                || is_short && case.is_array_full(device, &[sample])
        };
        let spell = slow::spell(case, device, &array_ms, &is_known);
        let plain = spell.and_then(|spell| Self::new(device, spell, Why::Plain));
        let is_arrays =
            |slow: &Self| case.array_ms(device, &slow.spell.samples) >= Some(MOST * slow.davg_ms);
        let by_contrast = || {
            Self::slowed(device).or_else(|| Self::beside_a_peer(case, device)).or_else(|| {
                let (spell, behind) = Behind::find(case, device)?;
                Self::new(device, spell, Why::Behind(behind.into()))
            })
        };
        let found = plain.or_else(|| by_contrast().filter(is_arrays));
        found.filter(|slow| !copies::are_all(device, &slow.spell.samples))
    }

    /// A device that takes several times as long as it did, at a rate that falls as much, with no
    /// more and no larger commands outstanding: it is another's load that it has.
    fn slowed(device: &'a Device<'a>) -> Option<Self> {
        const TIMES: f64 = 5.0;
        let (flow, limit) = (&device.flow, |threshold| device.limits.get(threshold));
        let far_ms = (TIMES * device.quickest_ms).max(limit(Threshold::FlashMs));
        let spell = device.spell(|sample| {
            flow.davg(sample) >= Some(far_ms)
                && flow.in_flight(sample) >= Some(limit(Threshold::BusyOutstanding))
        })?;
        let first = *spell.samples.first()?;
        let before: Vec<usize> = device.busy.iter().copied().filter(|s| *s < first).collect();
        let grown = |value: &dyn Fn(&[usize]) -> Option<f64>| {
            Some(value(&spell.samples)? / value(&before)?)
        };
        let lasts = before.len().min(spell.samples.len()) >= LASTING;
        let falls = grown(&|samples| flow.mean_rate(samples))? * TIMES <= *ALIKE.end();
        let inside = |samples: &[usize]| {
            Some(flow.mean_rate(samples)? * flow.per_command(samples, Flow::davg)?)
        };
        let is_alike =
            grown(&inside)? <= *ALIKE.end() && grown(&|s| flow.size_kib(s))? <= *ALIKE.end();
        let why = Why::Before(flow.per_command(&before, Flow::davg)?);
        if lasts && falls && is_alike { Self::new(device, spell, why) } else { None }
    }

    /// A device that takes far longer than flash may, while another of its array, over the same
    /// adapter, is asked for as much of the same size and answers like flash.
    fn beside_a_peer(case: &Case<'_>, device: &'a Device<'a>) -> Option<Self> {
        const TIMES: f64 = 9.0;
        let (flow, limit) = (&device.flow, |threshold| Some(device.limits.get(threshold)));
        let spell = Spell::find(&device.busy, |sample| {
            flow.davg(sample) >= limit(Threshold::FlashMs)
                && flow.in_flight(sample) >= limit(Threshold::BusyOutstanding)
        })?;
        let samples = &spell.samples;
        let times = |of: &dyn Fn(&Flow<'_>) -> Option<f64>, peer: &Device<'_>| {
            Some(of(flow)? / of(&peer.flow)?)
        };
        let is_peer = |peer: &&Device<'_>| {
            let is_alike = |of: &dyn Fn(&Flow<'_>) -> Option<f64>| {
                times(of, peer).is_some_and(|times| ALIKE.contains(&times))
            };
            peer.id != device.id
                && array_of(flow.name).is_some_and(|array| array_of(peer.flow.name) == Some(array))
                && case.host.share_an_adapter(device, peer)
                && is_alike(&|flow| flow.mean_rate(samples))
                && is_alike(&|flow| flow.size_kib(samples))
                && times(&|flow| flow.per_command(samples, Flow::davg), peer) >= Some(TIMES)
        };
        let peer = case.host.busy_devices().find(is_peer)?;
        let peer_ms = peer.flow.per_command(samples, Flow::davg)?;
        Self::new(device, spell, Why::Peer(peer.flow.name.into(), peer_ms))
    }

    /// Whether both are of one array and slow at one time: it is the array then, not a volume.
    fn is_one_with(&self, case: &Case<'_>, other: &Self) -> bool {
        let [mine, its] = [self, other].map(|slow| {
            let known = case.array(slow.device).map(|array| array.name.as_str());
            known.or_else(|| array_of(slow.device.flow.name))
        });
        mine.is_some()
            && mine == its
            && self.spell.samples.iter().any(|sample| other.spell.samples.contains(sample))
    }
}

impl Why {
    /// What it is worth: a factor for a confidence. A peer may stand on faster media.
    const fn weight(&self) -> f64 {
        if let Self::Peer(..) = self { 0.6 } else { 1.0 }
    }
}

/// The finding about the device `worst`, and others of its array that are slow with it.
fn judge(case: &Case<'_>, worst: &Slow<'_>, alike: Vec<Slow<'_>>) -> Finding {
    let (device, spell) = (worst.device, &worst.spell);
    let (flow, samples) = (&device.flow, &spell.samples);
    let davg = worst.davg_ms;
    let kavg = flow.per_command(samples, Flow::kavg);
    let knee = growth(device, spell).filter(|growth| *growth < 0.3);
    let mut finding = case.finding(Cause::ArraySlow, device.object(), spell);
    let array = case.array(device);
    finding.sentence = match &worst.why {
        Why::Before(before) => format!(
            "{} takes {} ms below the host (DAVG) where it took {} ms before, though this host asks \
             no more of it: the array got {} times slower, as when other hosts load it.",
            flow.name,
            number(davg),
            number(*before),
            number(davg / before)
        ),
        Why::Peer(peer, peer_ms) => format!(
            "{} takes {} ms below the host (DAVG), and {peer} of the same array {} ms at the same \
             rate and size.",
            flow.name,
            number(davg),
            number(*peer_ms)
        ),
        Why::Behind(behind) => behind.sentence(device, worst.standing),
        Why::Plain => {
            let known = known(case, device, samples);
            sentence(device, davg, kavg, known, knee.is_some(), alike.len())
        }
    };
    finding.also = alike.iter().map(|slow| slow.device.object()).collect();
    finding.standing = worst.standing + alike.iter().map(|slow| slow.standing).sum::<f64>();
    finding.evidence = latency_evidence(device, spell);
    if let Some(growth) = knee {
        let label = "growth of the rate with the outstanding (1 = in step)";
        finding.evidence.push(Evidence::new(label, growth, ""));
    }
    finding.evidence.extend(alike.iter().map(|slow| {
        Evidence::new(format!("DAVG of {}, same array", slow.device.flow.name), slow.davg_ms, "ms")
    }));
    let reported = mean(device.array_ms.over(samples)).filter(|ms| *ms > 0.0);
    finding.evidence.extend(Evidence::of([("latency that the array reports", reported, "ms")]));
    finding.evidence.extend(array.into_iter().flat_map(|array| known_evidence(array, samples)));
    let array_ms = case.array_ms(device, samples).unwrap_or(davg);
    let is_link = array.is_some_and(|array| is_slow_for_one(array, samples, array_ms));
    if is_link || is_known_to_be_slow(case, device, samples) {
        finding.confidence = 0.98;
    } else {
        finding.confidence = certainty(device, spell, davg, kavg) * worst.why.weight();
        if reported.is_none() {
            finding.raise_confidence = vec![surer(device).into()];
        }
    }
    finding.sufferers = sufferers_behind(case, device, spell);
    let others = alike.iter().flat_map(|slow| slow.device.tenants(&slow.spell.samples));
    finding.sufferers.extend(others);
    most_first(&mut finding.sufferers, |party| party.slots);
    finding.changes = fix(case, device, samples);
    name_causers(case, worst, knee.is_some(), &mut finding);
    newcomer::name(case, device, samples, &mut finding);
    finding.do_not.extend(depths(case, device, samples));
    if alike.is_empty() && array.is_none() && matches!(worst.why, Why::Plain) {
        leave_open(case, device, spell, &mut finding);
    }
    finding
}

/// Names who makes a device slow, and what is to be done about these.
fn name_causers(case: &Case<'_>, worst: &Slow<'_>, is_knee: bool, finding: &mut Finding) {
    let (device, samples) = (worst.device, &worst.spell.samples);
    match &worst.why {
        Why::Plain if case.array(device).is_some_and(|array| array.own_work(samples).is_some()) => {
        }
        Why::Plain => {
            copies::name_causers(device, samples, is_knee, finding);
            if is_known_to_be_slow(case, device, samples) {
                behind::hold_causers(case, device, samples, finding);
            }
        }
        Why::Behind(behind) => {
            finding.sufferers = vec![behind.victim.clone()];
            finding.causers = vec![behind.holder.clone()];
            finding.changes.splice(0..0, behind.fix(case, device, samples));
        }
        Why::Before(_) | Why::Peer(..) => {}
    }
}

/// Tells of a device that stays at its rate to the command that a policy may hold it there: more
/// often than not rates that nobody sets scatter.
fn leave_open(case: &Case<'_>, device: &Device<'_>, spell: &Spell, finding: &mut Finding) {
    let is_held = spell.mean(|sample| device.flow.in_flight(sample)) >= Some(HELD);
    let samples = spell.samples.len();
    let lasts = samples >= steady::ENOUGH_SAMPLES;
    let Some(rate) = device.flow.mean_rate(&spell.samples) else { return };
    let stall_ms = device.limits.get(Threshold::StallMs);
    let stalls = device.flow.per_command(&spell.samples, Flow::davg) >= Some(stall_ms);
    if device.is_nfs || !is_held || stalls || lasts && !steady::is_exact(case, device, spell) {
        return;
    }
    // Fewer rows are no surer: whether a rate stays is not seen in them.
    finding.sentence += &match lasts {
        true => format!(
            " Its rate stays at {} a second, as when a QoS policy of the array holds it there: these \
             rows do not tell which.",
            number(rate)
        ),
        false => format!(
            " A QoS policy of the array may hold it to its rate: {samples} {} too few to tell.",
            if samples == 1 { "sample is" } else { "samples are" }
        ),
    };
    finding.confidence = finding.confidence.min(EITHER);
    finding.raise_confidence.insert(0, policy_advice::TELLS.into());
}

/// What a deeper queue does before it; nothing where a short one is found that is worth raising.
fn depths(case: &Case<'_>, device: &Device<'_>, samples: &[usize]) -> Option<String> {
    let short = case.short_queue(device);
    let is_worth = |full: &FullQueue| {
        let samples = &full.spell.samples;
        !case.is_slow_for_all(device, samples) && Knee::of(device, samples).is_none()
    };
    if short.is_some_and(|full| is_worth(&full)) {
        return case.little_room(device, samples);
    }
    let spared = "Do not raise queue depths: more commands at a slow array only wait there instead of \
                  on the host.";
    Some(spared.into())
}

/// Whether the array behind a device is known to keep commands waiting for others.
fn is_known_to_be_slow(case: &Case<'_>, device: &Device<'_>, samples: &[usize]) -> bool {
    let array = case.array(device).zip(case.array_ms(device, samples));
    array.is_some_and(|(array, ms)| array.is_slow(samples, ms))
        || slow::takes_turns(case, device, samples).is_some()
}

/// What is known of the array's load.
fn known_evidence(array: &ArrayFacts, samples: &[usize]) -> impl Iterator<Item = Evidence> {
    let percent = |label: &str, shares: &[f64]| {
        let percent = 100.0 * share(shares, samples)?;
        Some(Evidence::new(format!("{label} {}", array.name), percent, "%"))
    };
    let alone = |ms| Evidence::new("a command that waits for nobody", ms, "ms");
    let evidence = [
        percent("work of array", &array.busy),
        percent("own work of array", &array.own_work),
        percent("use of the link to", &array.link_busy),
        percent("use of the links of all ports of", &array.ports_busy),
        array.service_ms.map(alone),
    ];
    evidence.into_iter().flatten()
}

/// What is known of a device's array and its ports.
fn known(case: &Case<'_>, device: &Device<'_>, samples: &[usize]) -> Option<String> {
    let array = case.array(device)?;
    let turns =
        slow::takes_turns(case, device, samples).map(|turn| slow::in_turns(array, samples, turn));
    turns.or_else(|| known_rest(array, samples, case.array_ms(device, samples)?))
}

/// Whether a command has the link to an array for itself, and takes most of its time there all the same.
fn is_slow_for_one(array: &ArrayFacts, samples: &[usize], ms: f64) -> bool {
    let is_alone = |alone: f64| ms < PLAIN * alone && array.wire_ms >= MOST * alone;
    array.is_held_by_its_link(samples) && array.service_ms.is_some_and(is_alone)
}

/// What a known array does with its time, where commands take so many milliseconds there.
fn known_rest(array: &ArrayFacts, samples: &[usize], ms: f64) -> Option<String> {
    let (name, percent) = (&array.name, |share: f64| number(100.0 * share));
    let is_full = array.is_full(samples, ms);
    let [busy, link] = [&array.busy, &array.link_busy].map(|shares| share(shares, samples));
    if let Some(own) = array.own_work(samples).filter(|_| array.is_crowded(samples, ms)) {
        return Some(format!(
            "array {name} works {} % of the time, {} % of it for itself (a rebuild, or what else it does in the \
             background), and most of a command's time there is wait for that",
            percent(array.work(samples)),
            percent(own)
        ));
    }
    if let Some((full, both)) = array.full_controller(samples).filter(|_| is_full) {
        return Some(format!(
            "controller {full} of array {name} is saturated: it works {} % of the time, and the other one {} %",
            percent(both[full - 1]),
            percent(both[2 - full])
        ));
    }
    match (busy, link, array.service_ms) {
        (Some(busy), ..) if busy >= link.unwrap_or(0.0) && is_full => {
            Some(format!("array {name} is saturated: it works {} % of the time", percent(busy)))
        }
        (_, Some(link), _) if is_full => {
            Some(format!("the link to array {name} is {} % full", percent(link)))
        }
        (_, Some(link), Some(alone)) if is_slow_for_one(array, samples, ms) => Some(format!(
            "the link to array {name} is slow for commands of that size: one takes {} ms when nobody else sends any, \
             nearly all of it on the link, which is in use {} % of the time",
            number(alone),
            percent(link)
        )),
        (Some(busy), _, Some(alone)) if ms < PLAIN * alone => Some(format!(
            "array {name} takes {} ms for a command even when it has nothing else to do, and \
             works {} % of the time",
            number(alone),
            percent(busy)
        )),
        (Some(busy), ..) => {
            let waits = match array.is_crowded(samples, ms) {
                true => ", and most of a command's time there is wait for others",
                false => "",
            };
            Some(format!("array {name} works {} % of the time{waits}", percent(busy)))
        }
        _ => None,
    }
}

fn sentence(
    device: &Device<'_>,
    davg: f64,
    kavg: Option<f64>,
    known: Option<String>,
    knee: bool,
    alike: usize,
) -> String {
    let name = device.flow.name;
    let others = match alike {
        0 => String::new(),
        1 => ", and so is another device of the same array".into(),
        more => format!(", and so are {more} other devices of the same array"),
    };
    let in_host = kavg.map(|kavg| format!(", {} ms in it (KAVG)", number(kavg)));
    let in_host = in_host.unwrap_or_default();
    if let (Some(rest), true) = (&known, device.is_nfs) {
        return format!("The NFS volume {name} answers in {} ms (GAVG): {rest}.", number(davg));
    }
    if let Some(rest) = known {
        return format!(
            "{name} takes {} ms below the host (DAVG){in_host}{others}: {rest}.",
            number(davg)
        );
    }
    if device.is_nfs {
        return format!(
            "The NFS volume {name} answers in {} ms (GAVG); for NFS esxtop cannot tell the host's \
             part from the server's.",
            number(davg)
        );
    }
    let rest = match (knee, kavg >= Some(HOST_PART * davg)) {
        (true, _) => {
            "and its rate no longer grows with the commands sent: the array is at its knee"
        }
        (false, true) => {
            "so the fabric or the array is slow, and what waits for it waits in the host besides"
        }
        (false, false) => "so the time is spent in the fabric or the array",
    };
    format!("{name} takes {} ms below the host (DAVG){in_host}, {rest}{others}.", number(davg))
}

/// What would tell the array from what is before it. For NFS esxtop has GAVG alone [ELA].
const fn surer(device: &Device<'_>) -> &'static str {
    if device.is_nfs {
        "The server's own latency for this volume: near GAVG, it is the server; far below, the \
         network or this host"
    } else {
        "The array's own latency for this volume: near DAVG, it is the array; far below, the \
         fabric or a volume limit"
    }
}

/// How the rate grows with the commands in flight, from the slow end of the spell to the busy
/// end: 1 in step, 0 not at all. `None` when they do not vary enough to tell.
fn growth(device: &Device<'_>, spell: &Spell) -> Option<f64> {
    const SPREAD: f64 = 1.5;
    let inside = |sample: &usize| device.flow.in_flight(*sample);
    let middle = median(spell.samples.iter().map(inside))?;
    let known = spell.samples.iter().filter(|sample| inside(sample).is_some());
    let (few, many): (Vec<usize>, Vec<usize>) =
        known.partition(|sample| inside(sample) < Some(middle));
    let ratio = |value: &dyn Fn(&usize) -> Option<f64>| {
        Some(mean(many.iter().map(value))? / mean(few.iter().map(value))?.max(f64::MIN_POSITIVE))
    };
    let load = ratio(&inside)?;
    let rate = ratio(&|sample| device.flow.rate(*sample))?;
    (load >= SPREAD && rate > 0.0).then(|| rate.ln() / load.ln())
}

fn certainty(device: &Device<'_>, spell: &Spell, davg: f64, kavg: Option<f64>) -> f64 {
    let part = |kavg: f64| kavg / (davg + kavg).max(f64::MIN_POSITIVE);
    let host_part = kavg.map_or(0.0, part);
    let large = device.flow.size_kib(&spell.samples) >= Some(LARGE_KIB);
    let base = if device.is_nfs { 0.6 } else { 0.9 - 0.4 * host_part };
    base * if large { 0.8 } else { 1.0 } * spell.weight()
}

fn fix(case: &Case<'_>, device: &Device<'_>, samples: &[usize]) -> Vec<crate::Change> {
    let name = device.flow.name;
    let array = case.array(device).zip(case.array_ms(device, samples));
    if let Some((array, _)) = array.filter(|(array, ms)| array.is_crowded(samples, *ms)) {
        let paths = array
            .uneven_ports(samples)
            .and_then(|_| path_changes::use_all_links(case.host, device, case.facts, false));
        return paths.into_iter().chain([less_load::of_known(array, samples)]).collect();
    }
    if array.is_some_and(|(array, ms)| is_slow_for_one(array, samples, ms)) {
        return vec![known_wait::smaller("the link to the array")];
    }
    let what = "Look at the array: its busiest volumes, ports, controllers and pools meanwhile.";
    let mut fix = vec![changes::look(what, Vec::new())];
    if array.is_some() {
        // It is known to take its own time, whatever the paths to it.
        return fix;
    }
    fix.extend(path_changes::use_all_paths(case.host, device, case.facts));
    if !device.is_nfs {
        fix.push(changes::look(
            "Look at the paths: are they all used, active-optimized and free of errors?",
            vec![
                format!("esxcli storage nmp device list -d {}", changes::shell(name)),
                format!("esxcli storage core path list -d {}", changes::shell(name)),
            ],
        ));
    }
    fix
}

#[cfg(test)]
mod tests {
    use counters::{Counter, Kind};
    use levels::Measured;

    use crate::{
        ArrayFacts, Cause, DeviceFacts, Facts, Profile, Thresholds, diagnose, fixture::Bench,
    };

    #[test]
    fn who_is_answered_at_once_beside_a_stall_suffers_nothing_and_no_policy_delays_by_seconds() {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 64);
        let sap = device.vm("sap").iops_when(|s| if s == 5 { 8.0 } else { 400.0 });
        sap.davg_when(|s| if s == 5 { 6_200.0 } else { 0.9 });
        device.vm("web").iops_when(|s| 20.0 + (s % 3) as f64).davg(0.86);
        let finding = bench.only(Cause::ArraySlow, &Facts::default());
        let names: Vec<&str> = finding.sufferers.iter().map(|vm| &*vm.name).collect();
        assert_eq!(names, ["sap"]);
        assert!(!finding.sentence.contains("QoS"), "{}", finding.sentence);
    }

    #[test]
    fn a_rate_that_stays_to_the_command_may_be_a_policys() {
        // 154 a second of 256 KiB is what a policy of 6,000 IOPS allows [S4].
        let mut bench = Bench::new(11);
        let vm = bench.device("naa.1", 128).vm("writer").size_kib(256.0);
        vm.iops_when(|s| [153.8, 153.9][s % 2]).davg(52.0);
        let finding = bench.only(Cause::ArraySlow, &Facts::default());
        let told =
            "Its rate stays at 154 a second, as when a QoS policy of the array holds it there";
        assert!(finding.sentence.contains(told), "{}", finding.sentence);
        assert!(finding.confidence <= 0.5, "{}", finding.confidence);
        assert!(finding.raise_confidence[0].starts_with("The array's policy for this volume"));
    }

    #[test]
    fn fewer_rows_are_no_surer() {
        // 32 of 64 KiB out at a policy of 200 a second take 160 ms each, by Little's law; or as many
        // where rows scatter.
        for scatter in [0.0, 0.05, 0.2] {
            let mut before = 0.0;
            for samples in 2..=24 {
                let mut bench = Bench::new(samples);
                let vm = bench.device("naa.1", 128).vm("a").size_kib(64.0);
                let rate = move |s: usize| 200.0 * (1.0 + scatter * [0.0, 1.0, -1.0][s % 3]);
                vm.iops_when(rate).davg_when(move |s| 32_000.0 / rate(s));
                let sure = bench.first(Cause::ArraySlow, &Facts::default()).confidence;
                assert!(sure >= before, "{scatter}, {samples} rows: {sure} after {before}");
                before = sure;
            }
        }
    }

    #[test]
    fn an_array_that_is_known_to_be_slow_alone_is_no_matter_of_paths() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 64).vm("a").iops_when(|s| 750.0 + (s % 2) as f64 * 40.0).davg(31.5);
        let array = ArrayFacts {
            name: "far".into(),
            service_ms: Some(30.0),
            busy: vec![0.06; 6],
            ..ArrayFacts::default()
        };
        let known = DeviceFacts { array: Some(array.into()), ..DeviceFacts::default() };
        let mut facts = Facts::default();
        facts.devices.insert("naa.1".into(), known);
        let changes = bench.only(Cause::ArraySlow, &facts).changes;
        assert!(changes.iter().all(|change| !change.what.contains("path")), "{changes:?}");
    }

    #[test]
    fn a_slow_array_is_named_and_no_queue_is_raised() {
        let mut bench = Bench::new(6);
        let rate = |sample: usize| 800.0 + 60.0 * (sample % 2) as f64;
        bench.device("naa.1", 64).vm("a").iops_when(rate).davg(40.0);
        let finding = bench.only(Cause::ArraySlow, &Facts::default());
        assert!(finding.confidence > 0.85);
        assert!(finding.caution.is_none());
    }

    #[test]
    fn a_full_queue_before_an_array_of_35_ms_is_not_to_be_deepened() {
        let mut bench = Bench::new(9);
        bench.device("naa.1", 32).vm("a").iops(920.0).davg(34.8).kavg(34.0);
        let findings = bench.findings();
        let causes: Vec<_> = findings.iter().map(|finding| finding.cause).collect();
        assert_eq!(causes, [Cause::ArraySlow, Cause::DeviceDepth]);
        let queue = &findings[1];
        assert!(queue.changes.is_empty() && queue.do_not[0].contains("raise the depth"));
        let finding = &findings[0];
        assert!(finding.do_not[0].contains("Do not raise queue depths"), "{:?}", finding.do_not);
    }

    #[test]
    fn what_esxcli_says_is_flash_is_judged_as_flash() {
        let mut bench = Bench::new(12);
        bench.device("naa.1", 128).vm("a").iops(8_000.0).davg(12.0);
        assert!(bench.findings().iter().all(|finding| finding.cause != Cause::ArraySlow));
        let flash = DeviceFacts { is_flash: true, ..DeviceFacts::default() };
        let facts = Facts { devices: [("naa.1".into(), flash)].into(), ..Facts::default() };
        bench.first(Cause::ArraySlow, &facts);
        let verdict = bench.diagnose(&Thresholds::default(), &facts);
        assert!(verdict.profiles[0].why.contains("Is SSD"), "{}", verdict.profiles[0].why);
    }

    #[test]
    fn a_volume_ten_times_slower_than_one_like_it_is_named() {
        let findings = |slow: f64, rate: f64| {
            let mut bench = Bench::new(12);
            for (volume, davg, rate) in [("01", slow, 3_000.0), ("02", 0.3, rate)] {
                let device =
                    bench.device(&format!("naa.600508b1001c4d41aabbccdd000000{volume}"), 64);
                let moves = move |s: usize| rate * (1.0 + 0.002 * (s * 7 % 11) as f64);
                device.vm(volume).iops_when(moves).davg(davg);
            }
            bench.findings()
        };
        let found = findings(3.0, 3_000.0);
        assert_eq!((found.len(), found[0].cause), (1, Cause::ArraySlow));
        assert!(found[0].confidence < 0.6, "{}", found[0].confidence);
        assert!(found[0].sentence.contains("of the same array 0.3 ms"), "{}", found[0].sentence);
        assert!(findings(1.9, 3_000.0).is_empty(), "as fast as flash");
        assert!(findings(3.0, 300.0).is_empty(), "another load");
    }

    #[test]
    fn at_its_knee_the_rate_no_longer_grows() {
        let mut bench = Bench::new(9);
        bench
            .device("naa.1", 128)
            .vm("a")
            .iops_when(|s| 3_000.0 + 300.0 * (s % 3) as f64)
            .davg_when(|s| 5.5 * (1 + s % 3) as f64);
        let verdict = bench.diagnose(&Thresholds::of(Profile::Flash), &Facts::default());
        assert!(verdict.findings[0].sentence.contains("at its knee"), "{}", verdict.headline);
    }

    #[test]
    fn a_command_that_is_always_outstanding_is_load_however_rare() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 64).vm("a").iops(0.2).davg(5_000.0);
        bench.only(Cause::ArraySlow, &Facts::default());
    }

    #[test]
    fn few_commands_are_judged_where_their_mean_is_worth_it() {
        let judged = |rate: f64| {
            let mut bench = Bench::new(6);
            bench.device("naa.1", 64).vm("a").iops(rate).davg(40.0);
            bench.findings().len()
        };
        assert_eq!([judged(12.0), judged(3.0)], [1, 0]);
    }

    #[test]
    fn a_stall_of_seconds_is_named_in_one_sample() {
        let mut bench = Bench::new(8);
        let davg = |s: usize| if s == 4 { 2_400.0 } else { 0.6 };
        bench.device("naa.1", 64).vm("a").iops(40.0).davg_when(davg);
        let finding = bench.only(Cause::ArraySlow, &Facts::default());
        assert_eq!(finding.window.samples, 1);
    }

    #[test]
    fn nothing_is_wrong_stands_beside_no_mean_of_137_ms() {
        let mut bench = Bench::new(9);
        let davg = |s: usize| if s.is_multiple_of(2) { 274.0 } else { 3.0 };
        bench.device("naa.1", 64).vm("a").iops(60.0).davg_when(davg);
        bench.only(Cause::ArraySlow, &Facts::default());
    }

    #[test]
    fn ten_times_slower_than_itself_is_slow_for_flash() {
        let mut bench = Bench::new(12);
        let rate = |s: usize| if s < 4 { 3_000.0 } else { 2_000.0 + 500.0 * (s % 3) as f64 };
        let davg = |s: usize| if s < 4 { 0.3 } else { 3.0 };
        bench.device("naa.1", 64).vm("a").iops_when(rate).davg_when(davg);
        bench.only(Cause::ArraySlow, &Facts::default());
    }

    #[test]
    fn a_device_that_slows_down_under_one_command_has_another_hosts_load() {
        let mut bench = Bench::new(27);
        let vm = bench.device("naa.1", 64).vm("victim");
        vm.iops_when(|s| if s < 12 { 1_692.0 } else { 210.0 });
        vm.davg_when(|s| if s < 12 { 0.59 } else { 4.76 });
        let finding = bench.only(Cause::ArraySlow, &Facts::default());
        assert!(finding.sentence.contains("8.07 times slower"), "{}", finding.sentence);
        assert_eq!((finding.window.samples, finding.causers.len()), (15, 0));
    }

    #[test]
    fn a_device_that_is_asked_for_more_did_not_slow_down() {
        let mut bench = Bench::new(27);
        let vm = bench.device("naa.1", 64).vm("a");
        vm.iops_when(|s| if s < 12 { 1_692.0 } else { 4_000.0 + 900.0 * (s % 3) as f64 });
        vm.davg_when(|s| if s < 12 { 0.59 } else { 4.76 });
        assert!(bench.findings().is_empty());
    }

    #[test]
    fn slow_devices_of_one_array_are_one_finding() {
        let mut bench = Bench::new(6);
        for volume in ["000143ac", "000143ad", "000143ae"] {
            let device = bench.device(&format!("naa.624a93704bfab20d4b694df7{volume}"), 64);
            device.vm(volume).iops(800.0).davg(40.0);
        }
        bench.device("naa.60000970000197800380533030303445", 64).vm("x").iops(700.0).davg(40.0);
        let findings = bench.findings();
        assert_eq!(findings.len(), 2);
        assert_eq!(findings[0].sufferers.len(), 3);
        assert!(findings[0].sentence.contains("2 other devices of the same array"));
    }

    #[test]
    fn the_same_latency_is_fine_for_disks_and_slow_for_flash() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 64).vm("a").iops(800.0).davg(8.0);
        let judged = |profile| bench.diagnose(&Thresholds::of(profile), &Facts::default());
        assert!(judged(Profile::Classic).findings.is_empty());
        assert_eq!(judged(Profile::Flash).findings[0].cause, Cause::ArraySlow);
    }

    /// 40 ms of which the array reports 5 are spent before it; nothing tells where links of its own are among that.
    #[test]
    fn what_the_array_is_known_to_have_no_part_in_is_not_its_own() {
        let found = |reported_ms, round_trip_ms, link_busy: &[f64]| {
            let mut bench = Bench::new(6);
            bench.device("naa.1", 64).vm("a").iops(800.0).davg(40.0);
            let mut recording = bench.recording();
            let (row, _) = recording.of_kind(Kind::Device).next().unwrap();
            recording.set_constant(row, Counter::ArrayLatency, reported_ms, 7);
            let array = ArrayFacts {
                name: "far".into(),
                service_ms: Some(5.0 + round_trip_ms),
                round_trip_ms,
                busy: vec![0.06; 6],
                link_busy: link_busy.into(),
                ..ArrayFacts::default()
            };
            let known = DeviceFacts { array: Some(array.into()), ..DeviceFacts::default() };
            let facts = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
            diagnose(&Measured::of(recording), &Thresholds::default(), &facts).findings.len()
        };
        assert_eq!([found(5.0, 0.0, &[]), found(39.9, 0.0, &[])], [0, 1]);
        assert_eq!([found(5.0, 34.9, &[]), found(5.0, 0.0, &[0.3; 6])], [1, 1]);
    }
}
