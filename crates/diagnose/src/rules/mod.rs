//! The rules: one cause, one small file, all of one shape. A rule looks at what was observed and
//! returns the findings of its cause; what it needs of another rule it asks that rule for.

mod aborts;
mod adapter_queue;
mod adaptive_throttling;
mod alike;
mod array_qos;
mod array_slow;
mod at_rest;
mod behind;
mod by_shares;
mod by_size;
mod command_window;
mod copies;
mod crowd;
mod device_depth;
mod dsnro;
mod failures;
mod held_rate;
mod host_link;
mod host_wait;
mod iops_limit;
mod knee;
mod known_wait;
mod less_load;
mod line_rate;
mod lost_path;
mod newcomer;
mod noisy_neighbour;
mod one_step;
mod path_down;
mod path_thrash;
mod policy_advice;
mod quick_peer;
mod quiet;
mod raised;
mod refused;
mod reservations;
mod shared;
mod silence;
mod sioc;
mod slow;
mod slow_way;
mod splitting;
mod steady;
mod suspect;
mod switch_link;
mod virtual_adapter;
mod virtual_cap;
mod virtual_disk;
mod who_pays;

use counters::sorted::sort_by;
use std::{collections::BTreeMap, ops::RangeInclusive};

use counters::Counter;
use knobs::disk_depths;
use levels::{array_of, most_first};

use crate::{
    ArrayFacts, ArrayQueue, Cause, Change, Device, Evidence, Facts, Finding, Flow, FullQueue, Host,
    LevelKind, Object, Party, Spell, Threshold, Vdisk, changes, little, mean, number, reaches,
};

use crowd::Crowd;
use knee::Knee;
pub(crate) use knee::SAME_MIX;
pub(crate) use quick_peer::CONTRAST;
pub(crate) use steady::{EXACTLY, is_served_alike};

/// How sure a finding is at most whose rows fit another cause as well: which, they do not tell.
const EITHER: f64 = 0.5;
/// How many times one load is another that counts as like it.
pub(crate) const ALIKE: RangeInclusive<f64> = 0.8..=1.25;
/// Samples that a state must last to be none of chance.
const LASTING: usize = 3;

/// What a rule has to go by.
pub(crate) struct Case<'a> {
    host: &'a Host<'a>,
    facts: &'a Facts,
    /// The hosts that are judged together, this one among them.
    hosts: &'a [Host<'a>],
    /// What crowds the arrays that are known, by their names.
    crowds: BTreeMap<String, Crowd>,
}

/// A rule: what it declares of itself, and how it finds its cause. Whoever needs to know asks for
/// the rule by the cause.
pub(crate) struct Rule {
    /// The level of the stack that it blames.
    pub(crate) level: LevelKind,
    /// Where a finding of it stands among those of others.
    pub(crate) rank: fn(&Finding) -> Rank,
    /// The counters that it looks at.
    pub(crate) reads: &'static [&'static [Counter]],
    /// The findings of its cause.
    pub(crate) find: fn(&Case<'_>) -> Vec<Finding>,
}

/// Where findings stand: the first is the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Something is broken.
    Fault,
    /// Commands wait.
    Wait,
    /// The limit that comes next once those waits are gone.
    Next,
    /// The shape of the commands costs time.
    Shape,
    /// Nobody is slower for it yet.
    Harmless,
}

impl Cause {
    /// The rule that looks for it.
    pub(crate) const fn rule(self) -> &'static Rule {
        match self {
            Self::Silence => &silence::RULE,
            Self::PathDown => &path_down::RULE,
            Self::PathThrash => &path_thrash::RULE,
            Self::Aborts => &aborts::RULE,
            Self::Failures => &failures::RULE,
            Self::ReservationConflicts => &reservations::RULE,
            Self::NoisyNeighbour => &noisy_neighbour::RULE,
            Self::ArrayQos => &array_qos::RULE,
            Self::ArraySlow => &array_slow::RULE,
            Self::CommandWindow => &command_window::RULE,
            Self::HostLink => &host_link::RULE,
            Self::SwitchLink => &switch_link::RULE,
            Self::SlowWay => &slow_way::RULE,
            Self::AdaptiveThrottling => &adaptive_throttling::RULE,
            Self::Sioc => &sioc::RULE,
            Self::Dsnro => &dsnro::RULE,
            Self::DeviceDepth => &device_depth::RULE,
            Self::AdapterQueue => &adapter_queue::RULE,
            Self::IopsLimit => &iops_limit::RULE,
            Self::HostWait => &host_wait::RULE,
            Self::VirtualDiskCap => &virtual_disk::RULE,
            Self::VirtualAdapterCap => &virtual_adapter::RULE,
            Self::Splitting => &splitting::RULE,
        }
    }

    /// The level of the stack that it blames.
    #[must_use]
    pub const fn level(self) -> LevelKind {
        self.rule().level
    }
}

/// What all rules find, the worst first.
pub(crate) fn find_all(case: &Case<'_>) -> Vec<Finding> {
    let rules = Cause::ALL.iter().map(|cause| cause.rule());
    let mut findings: Vec<Finding> = rules.flat_map(|rule| (rule.find)(case)).collect();
    let rank = |finding: &Finding| (finding.cause.rule().rank)(finding);
    sort_by(&mut findings, |a, b| rank(a).cmp(&rank(b)).then(b.standing.total_cmp(&a.standing)));
    silence_first(&mut findings);
    findings
}

/// Puts the silence that a lost path made before the path, where it lasts longer than what the path costs later.
fn silence_first(findings: &mut [Finding]) {
    let Some(lost) = findings.first().filter(|first| first.cause == Cause::PathDown) else {
        return;
    };
    let is_longer = |silent: &Finding| {
        let samples = [silent, lost].map(|finding| finding.window.samples);
        samples[0] > samples[1] && silent.sufferers.iter().any(|vm| lost.hurts(&vm.name))
    };
    let silence = |finding: &Finding| finding.cause == Cause::Silence && is_longer(finding);
    if let Some(place) = findings.iter().position(silence) {
        findings[..=place].rotate_right(1);
    }
}

/// Whether commands that take so many milliseconds are answered faster than others that take so many, by more than the
/// size of these costs at most: what is so many times as large may take as many times as long.
fn is_faster(quick: (&Flow<'_>, f64), slow: (&Flow<'_>, f64), samples: &[usize]) -> bool {
    let kib = |flow: &Flow<'_>| flow.size_kib(samples).filter(|kib| *kib > 0.0);
    let larger = kib(slow.0).zip(kib(quick.0)).map_or(1.0, |(slow, quick)| slow / quick);
    quick.1 > 0.0 && quick.1 * CONTRAST.max(larger) <= slow.1
}

impl<'a> Case<'a> {
    pub(crate) fn new(host: &'a Host<'a>, hosts: &'a [Host<'a>], facts: &'a Facts) -> Self {
        Self { host, facts, hosts, crowds: Crowd::all(facts) }
    }

    /// The other devices with load of the array of a device; none where no name tells an array.
    fn others_of_array<'d>(
        &self,
        device: &'d Device<'_>,
    ) -> impl Iterator<Item = &'a Device<'a>> + use<'a, 'd> {
        let array = array_of(device.flow.name);
        let is_other = move |other: &&Device<'_>| {
            other.id != device.id && array.is_some() && array_of(other.flow.name) == array
        };
        self.host.busy_devices().filter(is_other)
    }
}

impl Case<'_> {
    /// A finding about the object `at`, with nothing yet but its window.
    fn finding(&self, cause: Cause, at: Object, spell: &Spell) -> Finding {
        Finding {
            cause,
            at,
            also: Vec::new(),
            datastore: None,
            sentence: String::new(),
            window: self.host.window(spell),
            standing: 0.0,
            limit: None,
            evidence: Vec::new(),
            confidence: 0.0,
            raise_confidence: Vec::new(),
            sufferers: Vec::new(),
            causers: Vec::new(),
            changes: Vec::new(),
            do_not: Vec::new(),
            caution: None,
        }
    }

    /// A finding about a depth that something moves below `base`, with who waits meanwhile and what is
    /// seen of it; and the lowest depth.
    fn moved_depth(
        &self,
        cause: Cause,
        device: &Device<'_>,
        base: f64,
        spell: &Spell,
    ) -> Option<(Finding, f64)> {
        let lowest = device.queue.dqlen.over(&spell.samples).fold(base, f64::min);
        let mut finding = self.finding(cause, device.object(), spell);
        finding.standing = spell.mean(|sample| device.flow.waiting(sample))?;
        finding.evidence = queue_evidence(device, spell);
        finding.evidence.push(Evidence::new("lowest DQLEN", lowest, ""));
        finding.sufferers = device.tenants(&spell.samples);
        Some((finding, lowest))
    }

    /// What is known of the array behind a device.
    fn array(&self, device: &Device<'_>) -> Option<&ArrayFacts> {
        self.facts.device(device.flow.name).array.as_deref()
    }

    /// What commands of a device take at its array and on the round trip to it, in milliseconds: what the array
    /// reports, and DAVG where nobody knows, or where it has links of its own, whose time it does not report.
    fn array_ms(&self, device: &Device<'_>, samples: &[usize]) -> Option<f64> {
        let davg_ms = device.flow.per_command(samples, Flow::davg)?;
        let known_ms = || {
            let array = self.array(device).filter(|array| array.link_busy.is_empty())?;
            let reported = |_: &Flow<'_>, sample| device.array_ms.at(sample);
            Some(device.flow.per_command(samples, reported)? + array.round_trip_ms)
        };
        Some(known_ms().map_or(davg_ms, |known_ms| known_ms.min(davg_ms)))
    }

    /// Whether the array behind a device is known to do all it can for the commands of some samples.
    fn is_array_full(&self, device: &Device<'_>, samples: &[usize]) -> bool {
        let array = self.array(device).zip(self.array_ms(device, samples));
        array.is_some_and(|(array, ms)| array.is_full(samples, ms))
    }

    /// Whether more commands are known to gain nothing at the array behind a device, to be refused
    /// there, to be held to a rate there, or to take it from others.
    fn is_array_spent(&self, device: &Device<'_>, samples: &[usize]) -> bool {
        self.is_array_full(device, samples)
            || self.array_queue(device).is_some_and(ArrayQueue::is_full)
            || crowd::Crowded::of(self, device).is_some()
            || array_qos::holds_whole(self, device)
    }

    /// The queue of the array that is known to stand before a device.
    fn array_queue(&self, device: &Device<'_>) -> Option<&ArrayQueue> {
        self.facts.device(device.flow.name).array_queue.as_ref()
    }

    /// What the paths in use take, where they are known to be full and others of the device idle.
    fn full_paths(&self, device: &Device<'_>, samples: &[usize]) -> Option<u32> {
        const FULL: f64 = 0.95;
        let facts = self.facts.device(device.flow.name);
        let working = u32::try_from(facts.paths.as_ref()?.working).ok()?;
        let slots = facts.depth_of_path?.saturating_mul(working);
        let inside = device.flow.mean_in_flight(samples);
        (Some(slots) < facts.max_queue_depth && inside >= Some(FULL * f64::from(slots)))
            .then_some(slots)
    }

    /// What a deeper queue gains at most, where the array behind it is known to have little left.
    fn little_room(&self, device: &Device<'_>, samples: &[usize]) -> Option<String> {
        const MUCH: f64 = 0.5;
        let array = self.array(device)?;
        let work = array.work(samples);
        (MUCH..1.0).contains(&work).then(|| {
            format!(
                "Do not expect much of a deeper queue: array {} works {} % of the time already, so \
                 the rate can grow by {} % at most.",
                array.name,
                number(100.0 * work),
                number(100.0 * (1.0 / work - 1.0))
            )
        })
    }

    /// What is left to do, and what a deeper queue would cost, where the array behind a full one is
    /// known to have little left and VMs wait for others there, or to have nothing left: the rate grows by
    /// that at most, and by Little's law each command takes the longer for it, those of VMs that do not wait
    /// on the host too.
    fn cost_of_more(&self, device: &Device<'_>, full: &FullQueue) -> Option<(Change, String)> {
        /// How many times as long as today all commands take, which nobody pays for a quarter more.
        const FAR_LONGER: f64 = 2.0;
        let samples = &full.spell.samples;
        let busy = device.limits.get(Threshold::ArrayPercent) / 100.0;
        let davg_ms = device.flow.per_command(samples, Flow::davg)?;
        let (array, rate) = (self.array(device)?, device.flow.mean_rate(samples)?);
        let work = array.work(samples);
        let then_ms = 1000.0 * full.demand * work / rate;
        let is_crowded = array.is_crowded(samples, self.array_ms(device, samples)?);
        let is_far_longer = then_ms >= FAR_LONGER * davg_ms;
        let is_longer = then_ms > davg_ms && (is_far_longer || work >= ArrayFacts::SPENT);
        let counts = work >= busy && (is_crowded || is_longer);
        let cost = || {
            let [then, now] = [then_ms, davg_ms].map(number);
            let each = match then_ms > davg_ms {
                true => format!(
                    "with all that wait let through each command takes {then} ms there instead of {now}, also of \
                     VMs that do not wait today"
                ),
                false => format!(
                    "most of the {now} ms that a command takes there is wait for others already"
                ),
            };
            format!(
                "Do not raise the depth: array {} works {} % of the time, so the rate can grow by {} % at most, and \
                 {each}.",
                array.name,
                number(100.0 * work),
                number(100.0 * (1.0 / work - 1.0)),
            )
        };
        counts.then(|| (less_load::of_known(array, samples), cost()))
    }

    /// The full queue of a device as it is without those who wait there for their own IOPS limits: what the
    /// others wait must count as it must of a device.
    fn full_queue(&self, device: &Device<'_>) -> Option<FullQueue> {
        let mut full = device.full.clone()?;
        let held = iops_limit::waiting_for_limits(self, device);
        if held.is_empty() {
            return Some(full);
        }
        let samples = &full.spell.samples;
        let others = device.tenants(samples).into_iter().filter(|vm| !held.contains_key(&*vm.name));
        let rate: f64 = others.map(|vm| vm.iops).sum();
        let held_back: f64 = held.values().sum();
        full.waiting -= held_back;
        full.demand -= held_back;
        full.wait_ms = 1000.0 * full.waiting / rate.max(f64::MIN_POSITIVE);
        let least_ms = device.least_wait_ms(device.flow.per_command(samples, Flow::davg)?);
        let counts = full.waiting >= device.limits.get(Threshold::Waiting);
        (counts && full.wait_ms >= least_ms).then_some(full)
    }

    /// The full queue of a device, unless the array before it is known to do all it can or to be
    /// crowded. A depth that is found by latency is as short as it is for that.
    fn short_queue(&self, device: &Device<'_>) -> Option<FullQueue> {
        let is_found = self.facts.device(device.flow.name).finds_depth;
        let is_short =
            |full: &FullQueue| is_found || !self.is_array_spent(device, &full.spell.samples);
        self.full_queue(device).filter(is_short)
    }

    /// The advice of a finding about a full queue, where a deeper one would not help: before adapters
    /// that others would fill, and before an array that is slow for every VM, where more commands only
    /// wait [S0].
    fn spare_what_is_behind(&self, device: &Device<'_>, full: &FullQueue, finding: &mut Finding) {
        let samples = &full.spell.samples;
        if f64::from(self.deeper(device, full, 0.0)) <= full.depth {
            adapter_queue::instead_of_deeper(self, device, full, finding);
            finding.caution = None;
        }
        if let Some(told) = shared::takes_longer(self, device, &full.spell) {
            if array_qos::applies(self, device) {
                finding.changes.clear();
            }
            let look = "Look at the policy (QoS) and the tier of the volume on its array first: where they make it \
                        slow, a deeper queue only moves the wait there.";
            finding.changes.insert(0, changes::look(look, Vec::new()));
            finding.do_not.insert(0, format!("Do not raise the depth before that: {told}."));
        }
        if let Some(told) = shared::waits_elsewhere(self, device, samples) {
            finding.changes = vec![changes::look(
                "Look at the utilization of the array first, and at its busiest volumes: a deeper queue \
                 gains what the array has left, and beyond that takes it from the other hosts.",
                Vec::new(),
            )];
            finding.caution = None;
            finding.do_not = vec![format!("Do not raise the depth before that: {told}.")];
        }
        if let Some((instead, cost)) = self.cost_of_more(device, full) {
            finding.changes = vec![instead];
            finding.caution = None;
            finding.do_not = vec![cost];
        }
        let knee = Knee::of(device, samples).map(|knee| knee.told());
        if let Some(told) = knee.or_else(|| knee::queue_at_array(device, samples)) {
            finding.changes = vec![less_load::of_array()];
            finding.caution = None;
            finding.do_not = vec![format!("Do not raise the depth: {told}.")];
        }
        let told = command_window::instead_of_deeper(self, device);
        let told = told.or_else(|| host_link::instead_of_deeper(self, device));
        if let Some(told) = told.or_else(|| switch_link::instead_of_deeper(self, device)) {
            finding.changes.clear();
            finding.caution = None;
            finding.do_not = vec![told];
        } else if self.is_slow_for_all(device, samples) {
            finding.changes.clear();
            finding.caution = None;
            finding.do_not = vec![
                "Do not raise the depth before the array answers in time: more commands only wait \
                 there."
                    .into(),
            ];
        }
        who_pays::tell(self, device, full, finding);
        quiet::tell(self, device, full, finding);
    }

    /// Why a deeper queue gains nothing, for a finding of another rule about a device whose queue is full; nothing where
    /// it does.
    fn why_no_deeper(
        &self,
        device: &Device<'_>,
        full: &FullQueue,
        finding: &Finding,
    ) -> Vec<String> {
        let mut as_full = finding.clone();
        self.spare_what_is_behind(device, full, &mut as_full);
        as_full.do_not
    }

    /// What a command of a device takes below the host, in milliseconds, where its array is found slow in some
    /// of these samples.
    fn slow_array_ms(&self, device: &Device<'_>, samples: &[usize]) -> Option<f64> {
        array_slow::slow_ms(self, device, samples)
    }

    /// Whether an array is slow for every VM, and not known to be so for another reason than what
    /// is asked of it.
    fn is_slow_for_all(&self, device: &Device<'_>, samples: &[usize]) -> bool {
        let ms = self.array_ms(device, samples);
        let is_crowded = |array: &ArrayFacts| ms.is_some_and(|ms| array.is_crowded(samples, ms));
        let excess_ms = |flow: &Flow<'_>, s| Some(flow.davg(s)? - device.surely_slow_ms(s)?);
        let is_slow = |flow: &Flow<'_>| flow.per_command(samples, excess_ms) >= Some(0.0);
        let mut worlds = device.worlds.iter().map(|world| &world.flow);
        self.array(device).is_none_or(is_crowded)
            && is_slow(&device.flow)
            && worlds.all(|flow| flow.mean_rate(samples) == Some(0.0) || is_slow(flow))
    }

    /// The depth that a full queue needs for those who wait, or for the `demand` of a guest if that is
    /// more: no deeper than what its disks and its adapters let through, and only so deep that the other
    /// devices leave it more of those adapters than it has now. Where there is no such depth above that of
    /// today, it is that or less.
    fn deeper(&self, device: &Device<'_>, full: &FullQueue, demand: f64) -> u32 {
        let deepest = |disk: &Vdisk<'_>| disk_depths(disk.controller?).into_iter().max();
        let disks: Option<u32> = self.host.vdisks_on(device).map(deepest).sum();
        let known = [disks.map(f64::from), self.host.adapter_slots(device)].into_iter().flatten();
        let most = known.filter(|most| *most > full.depth).fold(f64::INFINITY, f64::min);
        let deepest = changes::depth_for(full.depth, demand.max(full.demand), most);
        let fits = |depth: &u32| {
            let room = self.room_at_adapters(device, &full.spell.samples, f64::from(*depth));
            f64::from(*depth) <= full.depth || room.is_none_or(|room| room > full.depth)
        };
        let depths = std::iter::successors(Some(deepest), |depth| Some(depth / 2));
        depths.into_iter().find(fits).unwrap_or_default()
    }

    /// What the other devices leave of the adapters that lead to one, once each has so many slots: what
    /// waits for them now would fill those, and keep them for as long as it takes there.
    fn room_at_adapters(&self, device: &Device<'_>, samples: &[usize], depth: f64) -> Option<f64> {
        let is_other = |other: &&Device<'_>| {
            other.flow.name != device.flow.name && self.host.share_an_adapter(device, other)
        };
        let outstanding = |other: &Device<'_>| {
            mean(samples.iter().map(|&sample| other.flow.outstanding(sample))).unwrap_or_default()
        };
        let others = self.host.busy_devices().filter(is_other);
        let taken: f64 = others.map(|other| outstanding(other).min(depth)).sum();
        Some(self.host.adapter_slots(device)? - taken)
    }

    /// The findings of a rule that judges each device with load for itself.
    fn each_device(&self, judge: impl Fn(&Device<'_>) -> Option<Finding>) -> Vec<Finding> {
        self.host.busy_devices().filter_map(judge).collect()
    }
}

/// Where a full queue stands: one that is not to be deepened is what comes after the array.
fn rank_of_queue(finding: &Finding) -> Rank {
    if finding.changes.is_empty() { Rank::Next } else { Rank::Wait }
}

/// Those on a device whose wait for its slots, and for no limit of their own, counts; all of them
/// where it counts for nobody alone.
fn waiting(case: &Case<'_>, device: &Device<'_>, samples: &[usize]) -> Vec<Party> {
    let held = iops_limit::waiting_for_limits(case, device);
    let mut all = device.tenants(samples);
    all.retain(|party| !held.contains_key(&party.name));
    let least_ms = device.limits.get(Threshold::KavgMs);
    let waits = |party: &&Party| party.waiting >= Some(least_ms * party.iops / 1000.0);
    let waiting: Vec<Party> = all.iter().filter(waits).cloned().collect();
    if waiting.is_empty() { all } else { waiting }
}

/// Who is on the device and is not answered far faster than all are in the mean: its worlds, or on an NFS volume,
/// where VMs have none, the virtual disks.
fn sufferers(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Vec<Party> {
    let samples = &spell.samples;
    let disks = || {
        let parties =
            case.host.vdisks_on(device).filter_map(|disk| Party::of_disk(disk.name, disk, samples));
        let mut parties: Vec<Party> = parties.collect();
        most_first(&mut parties, |party| party.slots);
        parties
    };
    let mut parties = if device.is_nfs { disks() } else { device.tenants(samples) };
    let mean_ms = device.flow.per_command(samples, Flow::gavg).unwrap_or_default();
    parties.retain(|party| party.gavg_ms.is_none_or(|ms| ms * CONTRAST >= mean_ms));
    parties
}

/// The same of what is behind the device: not who waits for the IOPS limits of its own disks for most of its time,
/// where anybody else is there.
fn sufferers_behind(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Vec<Party> {
    const MOST: f64 = 0.5;
    let all = sufferers(case, device, spell);
    let held = iops_limit::waiting_for_limits(case, device);
    let is_held = |party: &&Party| {
        let outstanding = party.gavg_ms.map(|ms| MOST * little(party.iops, ms));
        reaches(held.get(&party.name).copied(), outstanding)
    };
    let others: Vec<Party> = all.iter().filter(|party| !is_held(party)).cloned().collect();
    if others.is_empty() { all } else { others }
}

/// Those of some parties, the one with most slots first, that cause what all of them suffer: whoever
/// is alone, or holds more than the others by more than chance. Where all are alike nobody is it.
fn causers(parties: &[Party]) -> Vec<Party> {
    const MOST: usize = 5;
    let leading = leading(parties);
    let all_alike = leading == parties.len() && leading > 1;
    parties.iter().take(if all_alike { 0 } else { leading.min(MOST) }).cloned().collect()
}

/// Those of the VMs on a device that cause what all of them suffer; nobody where the recording lacks
/// some of them.
fn causers_on(device: &Device<'_>, samples: &[usize]) -> Vec<Party> {
    let all = || causers(&device.tenants(samples));
    if device.hides_worlds(samples) { Vec::new() } else { all() }
}

/// How many of some parties, the one with most slots first, differ from that one by chance alone.
fn leading(parties: &[Party]) -> usize {
    const NOISE: f64 = 1.5;
    let most = parties.first().map_or(0.0, |first| first.slots);
    parties.iter().take_while(|party| party.slots * NOISE >= most).count()
}

/// The numbers of a device queue over a spell.
fn queue_evidence(device: &Device<'_>, spell: &Spell) -> Vec<Evidence> {
    let (flow, queue) = (&device.flow, &device.queue);
    let samples = &spell.samples;
    Evidence::of([
        ("commands per second", flow.mean_rate(samples), "1/s"),
        ("DQLEN", mean(queue.dqlen.over(samples)), ""),
        ("ACTV, sampled", mean(queue.actv.over(samples)), ""),
        ("QUED, sampled", mean(queue.qued.over(samples)), ""),
        ("in the slots, by Little's law", spell.mean(|s| device.in_slots(s)), ""),
        ("waiting, by Little's law", spell.mean(|s| flow.waiting(s)), ""),
        ("DAVG", flow.per_command(samples, Flow::davg), "ms"),
        ("KAVG", flow.per_command(samples, Flow::kavg), "ms"),
        ("QAVG", flow.per_command(samples, Flow::qavg), "ms"),
    ])
    .collect()
}

/// The rate and the latencies of a device over a spell.
fn latency_evidence(device: &Device<'_>, spell: &Spell) -> Vec<Evidence> {
    let (flow, samples) = (&device.flow, &spell.samples);
    let latency = if device.is_nfs { "GAVG" } else { "DAVG" };
    let mut evidence: Vec<Evidence> = Evidence::of([
        ("commands per second", flow.mean_rate(samples), "1/s"),
        ("mean size", flow.size_kib(samples), "KiB"),
        ("outstanding, by Little's law", spell.mean(|s| flow.outstanding(s)), ""),
        (latency, flow.per_command(samples, Flow::davg), "ms"),
        ("KAVG", flow.per_command(samples, Flow::kavg), "ms"),
    ])
    .collect();
    let quickest = format!("quickest {latency} of the device");
    evidence.push(Evidence::new(quickest, device.quickest_ms, "ms"));
    evidence
}

#[cfg(test)]
mod tests {
    use super::causers;
    use crate::{Cause, Party, fixture::Bench};

    /// 1 MiB takes 128 times what 8 KiB do, of an array that has no policy.
    #[test]
    fn larger_commands_that_take_as_many_times_as_long_are_no_qos() {
        let is_held = |kib: f64| {
            let mut bench = Bench::new(20);
            let device = bench.device("naa.1", 64);
            device.vm("web").iops_when(|s| 500.0 + 20.0 * (s % 3) as f64).davg(0.5);
            device.vm("backup").size_kib(kib).iops(300.0).davg(45.0);
            bench.findings().iter().any(|finding| finding.cause == Cause::ArrayQos)
        };
        assert_eq!([is_held(1_024.0), is_held(8.0)], [false, true]);
    }

    #[test]
    fn of_those_that_are_alike_nobody_is_the_cause() {
        let parties = |slots: &[f64]| -> Vec<Party> {
            let party = |slots: &f64| Party {
                name: "vm".into(),
                iops: 1_459.0,
                gavg_ms: Some(20.0),
                slots: *slots,
                waiting: Some(0.0),
            };
            slots.iter().map(party).collect()
        };
        let named = |slots: &[f64]| causers(&parties(slots)).len();
        assert_eq!(named(&[14.5928, 14.5906]), 0);
        assert_eq!([named(&[14.6]), named(&[30.0, 2.0]), named(&[30.0, 29.0, 2.0])], [1, 1, 2]);
        assert_eq!(named(&[]), 0);
    }
}
