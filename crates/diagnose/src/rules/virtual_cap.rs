//! What the rules of virtual disks and virtual adapters share: the cap, and the finding about it.
//!
//! What does not fit waits in the guest, where no counter of the host sees it [S0]. It shows all
//! the same: the number outstanding (ACTV + QUED, or rate times latency) stays at the cap,
//! whatever happens below.

use std::borrow::Cow;

use counters::{Controller, Kind};
use knobs::{Effect, PVSCSI_DEPTH_MAX};

use super::{
    ALIKE, Case, adapter_queue, adaptive_throttling, array_qos, changes, command_window, host_link,
    iops_limit, knee::Knee, newcomer, number, shared, sioc, switch_link,
};
use crate::{
    Cause, Device, Evidence, Finding, Motion, Object, ObjectKind, ROUNDED, Spell, Vdisk,
    dsnro_advice, largest, little, reaches, unrest_percent,
};
use levels::weighted_mean;

/// How near to a cap the mean may stay below it: commands on their way in or out [S0: 61 of 64].
const BELOW: f64 = 0.93;
/// How far above it: 254 is also given as 256 [KB-PV, TBL].
const ABOVE: f64 = 1.008;
/// How far above it ACTV + QUED may be, which are not read at one instant.
pub(super) const SAMPLED_ABOVE: f64 = 1.03;
/// How far a number at its cap moves. A load that has the cap as its mean by chance moves more, but
/// two samples of it may be alike.
const STILL_PERCENT: [f64; 2] = [0.5, 2.0];
const FEW: usize = 2;

/// Virtual disks that are together at a cap: one at its own, or those of a virtual adapter.
pub(super) struct Cap<'a> {
    pub(super) cause: Cause,
    /// Their name: of the disk, or of the adapter.
    pub(super) at: &'a str,
    pub(super) disk: &'a Vdisk<'a>,
    pub(super) limit: u32,
    pub(super) outstanding: f64,
    /// The wait in the guest, where the source knows it.
    pub(super) wait: Option<Wait>,
    pub(super) spell: Spell,
    pub(super) certainty: f64,
}

/// A wait inside the guest.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    /// Mean commands that wait.
    pub(super) commands: f64,
    /// Mean wait of a command.
    pub(super) millis: f64,
}

impl Cap<'_> {
    fn object(&self) -> Object {
        match self.cause {
            Cause::VirtualAdapterCap => {
                Object { kind: ObjectKind::VirtualAdapter, name: self.at.into() }
            }
            _ => Object::row(Kind::VirtualDisk, self.at),
        }
    }

    /// Commands that the guest wants outstanding, as far as that is known.
    pub(super) fn demand(&self) -> f64 {
        self.wait.map_or(f64::from(self.limit), |wait| self.outstanding + wait.commands)
    }
}

/// Whether virtual disks are together at a cap in a sample, as far as rounded latencies can tell;
/// `None` where they were not measured.
pub(super) fn are_at(
    case: &Case<'_>,
    disks: &[&Vdisk<'_>],
    sample: usize,
    cap: u32,
) -> Option<bool> {
    let sum = |value: fn(&Vdisk<'_>, usize) -> Option<f64>| -> Option<f64> {
        disks.iter().map(|disk| value(disk, sample)).sum()
    };
    let inside = sum(|disk, sample| disk.outstanding(sample))?;
    Some(inside >= BELOW * f64::from(cap) && !exceed(case, disks, sample, cap))
}

/// Whether more is outstanding than a cap lets through. Commands that began before the interval
/// count in it as a whole.
fn exceed(case: &Case<'_>, disks: &[&Vdisk<'_>], sample: usize, cap: u32) -> bool {
    let least: Option<f64> = disks.iter().map(|disk| disk.least_outstanding(sample)).sum();
    let begun_before = largest(disks.iter().filter_map(|disk| disk.latency_at(sample)))
        .unwrap_or_default()
        / (1_000.0 * case.host.interval_s(sample)).max(1.0);
    least > Some(ABOVE * f64::from(cap) * (1.0 + begun_before))
}

/// Whether a number outstanding is that of a cap.
pub(super) fn is_at(outstanding: f64, cap: u32) -> bool {
    let cap = f64::from(cap);
    (BELOW * cap..=ABOVE * cap).contains(&outstanding)
}

/// Whether a number outstanding stays where it is, as far as rounded latencies can tell.
pub(super) fn is_still(disks: &[&Vdisk<'_>], spell: &Spell) -> bool {
    let sum = |s: usize| disks.iter().map(|disk| disk.outstanding(s)).sum::<Option<f64>>();
    let lost = |disk: &&Vdisk<'_>, s| Some(little(disk.rate(s)?, ROUNDED));
    let lost = |s| disks.iter().map(|disk| lost(disk, s)).sum::<Option<f64>>();
    let values: Vec<f64> = spell.samples.iter().filter_map(|&sample| sum(sample)).collect();
    let (Some(lost), Some(mean)) = (spell.mean(lost), spell.mean(sum)) else { return false };
    let rounding = 100.0 * lost / mean.max(f64::MIN_POSITIVE);
    let still = STILL_PERCENT[usize::from(values.len() > FEW)].max(rounding);
    unrest_percent(&values).is_none_or(|unrest| unrest <= still)
}

/// Whether no sample of the recording has more outstanding than the cap: a driver's depth does not
/// change while its guest runs.
pub(super) fn is_kept(case: &Case<'_>, disks: &[&Vdisk<'_>], cap: u32) -> bool {
    !(0..case.host.times_ms.len()).any(|sample| exceed(case, disks, sample, cap))
}

/// The wait in the guest of some disks together; `None` where the source does not know it.
pub(super) fn wait_of(disks: &[&Vdisk<'_>], spell: &Spell) -> Option<Wait> {
    if !disks.iter().all(|disk| disk.guest_wait.is_there()) {
        return None;
    }
    let sum = |value: &dyn Fn(&Vdisk<'_>, usize) -> Option<f64>| {
        spell.mean(|sample| disks.iter().map(|disk| value(disk, sample)).sum::<Option<f64>>())
    };
    let waits = |disk: &Vdisk<'_>, s| Some((disk.guest_wait.at(s)?, disk.rate(s)?));
    let each = |&s: &usize| disks.iter().map(move |disk| waits(disk, s));
    Some(Wait {
        commands: sum(&|disk, sample| disk.guest_queued.at(sample))?,
        millis: weighted_mean(spell.samples.iter().flat_map(each))?,
    })
}

/// The finding about a cap.
pub(super) fn judge(case: &Case<'_>, cap: &Cap<'_>) -> Finding {
    let disk = cap.disk;
    let mut finding = case.finding(cap.cause, cap.object(), &cap.spell);
    finding.sentence = sentence(cap);
    finding.standing = cap.wait.map_or(0.0, |wait| wait.commands);
    finding.limit = Some(f64::from(cap.limit));
    finding.evidence = vec![
        Evidence::new("outstanding, by Little's law", cap.outstanding, ""),
        Evidence::new("its limit", f64::from(cap.limit), ""),
    ];
    let latency = disk.latency_ms(&cap.spell.samples);
    finding.evidence.extend(Evidence::of([(Evidence::AT_DISK, latency, "ms")]));
    if let Some(wait) = cap.wait {
        finding.evidence.push(Evidence::new(Evidence::IN_GUEST, wait.millis, "ms"));
        finding.evidence.push(Evidence::new("waiting in the guest", wait.commands, ""));
    } else {
        finding.raise_confidence = vec![format!(
            "The guest's own queue length (Windows: Avg. Disk Queue Length; Linux: aqu-sz of \
             iostat -x): above {} it confirms it",
            cap.limit
        )];
    }
    finding.confidence = cap.certainty * cap.spell.weight();
    finding.sufferers = parties(case, cap);
    finding.causers = finding.sufferers.clone();
    let device = case.host.device_of(disk);
    if let Some(why) = device.and_then(|device| full_below(case, device, cap)) {
        finding.do_not = vec![format!("Do not raise the guest's depth now: {why}.")];
        return finding;
    }
    if let Some(device) = device.filter(|device| has_no_more_slots(device, cap)) {
        let both = deepen_both(case, device, cap);
        let word = if both.is_some() { "alone" } else { "now" };
        finding.do_not = vec![format!("Do not raise the guest's depth {word}: {NO_MORE_SLOTS}.")];
        finding.caution = both.is_some().then_some(changes::CAUTION);
        finding.changes = both.into_iter().flatten().collect();
        return finding;
    }
    finding.changes = fix(case, cap);
    finding.caution = Some(changes::CAUTION);
    finding
}

/// What is full below a virtual disk at the same time: then a deeper queue in the guest gains nothing.
fn full_below(case: &Case<'_>, device: &Device<'_>, cap: &Cap<'_>) -> Option<Cow<'static, str>> {
    let samples = &cap.spell.samples;
    if array_qos::applies(case, device) {
        return Some(
            "the rate below it stays, as when a QoS policy of the array holds it there, and more \
             commands only wait longer then"
                .into(),
        );
    }
    if iops_limit::waiting_for_limits(case, device).contains_key(cap.disk.vm) {
        return Some("its VM waits for an IOPS limit, which holds whatever is deeper".into());
    }
    if command_window::instead_of_deeper(case, device).is_some() {
        return Some("what leaves the host waits for its command window, which is full".into());
    }
    if case.is_array_spent(device, samples) {
        return Some("the array does all it can, and more commands only wait there".into());
    }
    if let Some(told) = newcomer::slows_another(case, device, samples) {
        return Some(told.into());
    }
    if let Some(slow_ms) = case.slow_array_ms(device, samples) {
        let slow_ms = number(slow_ms);
        let told = format!("{} takes {slow_ms} ms (DAVG) already", device.flow.name);
        return Some(format!("{told}, and more commands only wait there").into());
    }
    let below = full_in_host(case, device, cap).map(Cow::from);
    let knee = || Knee::of(device, &with_fewest(device, cap));
    below.or_else(|| knee().map(|knee| knee.told().into()))
}

/// The samples in which the array has fewest commands of a device of those in which it has as many as one disk
/// sends at its depth.
fn with_fewest(device: &Device<'_>, cap: &Cap<'_>) -> Vec<usize> {
    let inside = |sample: usize| device.flow.in_flight(sample);
    let at_depth = device.busy.iter().copied();
    let at_depth = at_depth.filter(|&sample| inside(sample) >= Some(BELOW * f64::from(cap.limit)));
    let least = at_depth.clone().filter_map(inside).reduce(f64::min);
    let most = least.map(|least| ALIKE.end() * least);
    at_depth.filter(|&sample| reaches(most, inside(sample))).collect()
}

/// The same of what is in the host.
fn full_in_host(case: &Case<'_>, device: &Device<'_>, cap: &Cap<'_>) -> Option<&'static str> {
    let samples = &cap.spell.samples;
    let is_meanwhile = |spell: &Spell| spell.samples.iter().any(|s| samples.contains(s));
    if device.full.as_ref().is_some_and(|full| is_meanwhile(&full.spell)) {
        return Some(
            "the device queue below it is full, and the wait only moves from the guest into the \
             VMkernel. Once that queue has room, this limit is the next",
        );
    }
    let is_adapter_full =
        adapter_queue::full(case, device).is_some_and(|spell| is_meanwhile(&spell));
    is_adapter_full.then_some(
        "the adapter's queue below it is full, and the wait only moves from the guest into the host",
    )
}

const NO_MORE_SLOTS: &str = "the device queue below it has no more slots than that (DQLEN), and what more it sends waits in \
     the VMkernel";

/// Whether a device has no more slots than one virtual disk sends.
fn has_no_more_slots(device: &Device<'_>, cap: &Cap<'_>) -> bool {
    let slots = largest(device.queue.dqlen.over(&cap.spell.samples));
    let limit = f64::from(cap.limit);
    cap.cause == Cause::VirtualDiskCap && slots.is_some_and(|slots| slots <= limit)
}

/// What is to be done where a device has as many slots as a disk on it sends, and nothing else holds the device or
/// is full below it: the device is deepened and then the disk, for each alone leaves the other as the limit.
fn deepen_both(case: &Case<'_>, device: &Device<'_>, cap: &Cap<'_>) -> Option<[crate::Change; 2]> {
    let samples = &cap.spell.samples;
    let slots = f64::from(cap.limit);
    let is_own = device.motion() == Motion::Steady
        && device.deepest() == Some(slots)
        && !sioc::lowers(case, device)
        && !adaptive_throttling::applies(case, device);
    let to = changes::depth_for(slots, cap.demand(), f64::INFINITY);
    let has_room =
        case.room_at_adapters(device, samples, to.into()).is_none_or(|room| room > slots);
    let is_full_behind = shared::waits_elsewhere(case, device, samples).is_some()
        || host_link::instead_of_deeper(case, device).is_some()
        || switch_link::instead_of_deeper(case, device).is_some();
    if !is_own || !has_room || is_full_behind {
        return None;
    }
    let mut of_guest = fix(case, cap);
    // More disks would share the same slots.
    of_guest.truncate(of_guest.len() - 1);
    let mut of_guest = of_guest.pop()?;
    let mut of_device =
        dsnro_advice::deepen(case.host, device, (cap.limit, to), samples, case.facts);
    of_device.what = format!("First of two steps (alone it gains nothing): {}", of_device.what);
    of_guest.what += " It comes second: alone it gains nothing either.";
    Some([of_device, of_guest])
}

fn sentence(cap: &Cap<'_>) -> String {
    let what = cap.disk.controller.map_or("its driver", Controller::name);
    let unseen = "what exceeds it waits in the guest, unseen by the host".into();
    let wait = cap.wait.map_or(unseen, |wait| {
        let (commands, millis) = (number(wait.commands), number(wait.millis));
        format!("{commands} commands wait {millis} ms each in the guest")
    });
    let (at, limit, most) = (cap.at, cap.limit, f64::from(cap.limit));
    // A command that is handed over at the instant at which another ends may count beside it.
    let inside = number(cap.outstanding.min(most));
    if cap.outstanding >= BELOW * most {
        format!(
            "{at} stays at {inside} outstanding commands, the {limit} that {what} allows: {wait}."
        )
    } else if has_steady_wait(cap) {
        format!("{at} fills the {limit} commands that {what} allows: {wait}.")
    } else {
        format!(
            "{at} fills the {limit} commands that {what} allows, though not all the time ({inside} \
             are outstanding in the mean): {wait}."
        )
    }
}

/// Whether as many wait in the guest of a disk all the time, so that no place of it was free: by Little's law it may
/// have fewer outstanding in samples in which commands end that began before there were as many.
fn has_steady_wait(cap: &Cap<'_>) -> bool {
    let queued = |sample: &usize| cap.disk.guest_queued.at(*sample);
    let is_steady =
        |wait: Wait| cap.spell.samples.iter().all(|s| queued(s) >= Some(BELOW * wait.commands));
    cap.cause == Cause::VirtualDiskCap && cap.wait.is_some_and(is_steady)
}

/// The VM, as it appears on the device of the disk.
fn parties(case: &Case<'_>, cap: &Cap<'_>) -> Vec<crate::Party> {
    let device = case.host.device_of(cap.disk);
    let mut parties = device.map_or(Vec::new(), |device| device.tenants(&cap.spell.samples));
    parties.retain(|party| party.name == cap.disk.vm);
    parties
}

fn fix(case: &Case<'_>, cap: &Cap<'_>) -> Vec<crate::Change> {
    let vm = cap.disk.vm;
    let known = case.facts.vdisks.get(cap.disk.name);
    let mut fix = Vec::new();
    let is_ring = cap.cause == Cause::VirtualAdapterCap;
    match cap.disk.controller {
        // What a full ring leaves of each disk tells nothing of its depth.
        Some(Controller::Pvscsi) if is_ring => {
            fix.extend(changes::raise_pvscsi(vm, None, known));
        }
        Some(Controller::Pvscsi) | None if cap.limit < PVSCSI_DEPTH_MAX => {
            fix.extend(changes::raise_pvscsi(vm, Some(cap.limit), known));
        }
        Some(Controller::Pvscsi) | None => {}
        Some(_) if cap.limit >= PVSCSI_DEPTH_MAX => {}
        Some(_) => {
            let commands = match cap.limit {
                1 => "the one command".into(),
                more => format!("the {more} commands"),
            };
            let what = format!(
                "Move the disk of {vm} to a PVSCSI adapter, which takes up to {PVSCSI_DEPTH_MAX}: \
                 {commands} of this one cannot be more."
            );
            let mut to_pvscsi = changes::look(what, Vec::new()).risking(
                "The guest needs the PVSCSI driver before its boot disk moves.",
                "Move it back to the old adapter",
            );
            to_pvscsi.effect = Effect::GuestReboot;
            fix.push(to_pvscsi);
        }
    }
    fix.push(changes::spread(vm));
    fix
}
