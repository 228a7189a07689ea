//! Device queue full, limited by the device's own depth [S0].
//!
//! Commands wait because every slot of the device is taken, its limit does not move, and one VM
//! alone is enough to fill it, so DSNRO has no say: DQLEN is the device's maximum, which is what the
//! HBA's driver gives it unless somebody lowered that [QD254]. With several VMs the same holds when
//! DQLEN is a depth that DSNRO does not have by default. Where no row tells which VMs there are, and
//! DQLEN stays at DSNRO, it may be either: a command that shows both is told, and no line. Before an array that is known to do all it
//! can, a full queue is no cause: a deeper one gains nothing.

use knobs::{Advanced, DSNRO, Setting};
use levels::most_first;

use super::{
    Case, Rule, adaptive_throttling,
    alike::{are_of_one_time, united},
    changes, iops_limit, number, queue_evidence, sioc,
    virtual_cap::Cap,
    virtual_disk,
};
use crate::{
    Cause, Device, Evidence, Finding, Flow, FullQueue, LevelKind, Motion, Queue, Step, Threshold,
    Vdisk,
    driver_depth::{self, Hba},
    dsnro_advice,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Device,
    rank: super::rank_of_queue,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, Vdisk::COUNTERS],
    find,
};

/// DSNRO, unless somebody changed it.
pub(super) const DSNRO_DEFAULT: f64 = DSNRO.default as f64;

/// What tells a queue that is full in bursts from an IOPS limit.
const UNSEEN: &str = "A recording every 2 s, which catches bursts (ACTV at DQLEN with QUED above 0, or \
    slots free), and the IOPS limits of the disks";

/// Whether the driver's depth is the limit, and how sure that is.
pub(super) fn certainty(case: &Case<'_>, device: &Device<'_>, full: &FullQueue) -> Option<f64> {
    let facts = case.facts.device(device.flow.name);
    if facts.finds_depth {
        return Some(0.98);
    }
    if sioc::lowers(case, device) {
        return None;
    }
    if let Some(depth) = facts.max_queue_depth {
        return (f64::from(depth) <= full.depth).then_some(0.98);
    }
    if full.was > Some(full.depth) {
        return None;
    }
    let dsnro = facts.dsnro.map(f64::from);
    if facts.max_queue_depth_at_end.is_some() && !adaptive_throttling::applies(case, device) {
        return (full.competitors < 2 || dsnro != Some(full.depth)).then_some(0.9);
    }
    if full.competitors > 1 && dsnro.is_some() && device.motion() == Motion::Steady {
        return (dsnro != Some(full.depth)).then_some(0.9);
    }
    match (device.motion(), full.competitors) {
        (Motion::Moving, _) => None,
        (Motion::TwoLevels { .. }, 0)
            if device.worlds.is_empty() && device.rises_over_a_reboot(case.host) =>
        {
            Some(0.6)
        }
        (Motion::TwoLevels { high, .. }, _)
            if full.depth < high && (full.tenants != 1 || device.limit_falls()) =>
        {
            None
        }
        (Motion::Steady, _) if may_be_dsnro(case, device, full) => Some(0.5),
        (Motion::Steady, 0) => Some(0.6),
        (Motion::Steady, 1) => Some(0.92),
        (_, 0 | 1) => Some(0.8),
        (Motion::Steady, _) if full.depth != DSNRO_DEFAULT => Some(0.6),
        _ => None,
    }
}

/// Whether DSNRO may be what is full, for nothing tells whether several VMs compete or what the device takes
/// itself [S1]: there are no rows of worlds, or none that says what others than one do.
fn may_be_dsnro(case: &Case<'_>, device: &Device<'_>, full: &FullQueue) -> bool {
    let facts = case.facts.device(device.flow.name);
    let is_blind = || full.competitors < 2 && tells_not_who(device, full);
    (device.worlds.is_empty() || is_blind())
        && device.motion() == Motion::Steady
        && facts.max_queue_depth.or(facts.max_queue_depth_at_end).is_none()
        && facts.dsnro.map_or(DSNRO_DEFAULT, f64::from) == full.depth
}

/// Whether VMs may be on the device that the rows of worlds do not show, or of which columns are missing.
fn tells_not_who(device: &Device<'_>, full: &FullQueue) -> bool {
    let samples = &full.spell.samples;
    device.hides_worlds(samples)
        || device.unmeasured(samples) > 0
        || device.has_blind_worlds(samples)
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = case.each_device(|device| {
        if device.is_nfs {
            return on_nfs(case, device);
        }
        let full = &case.short_queue(device)?;
        let certainty = certainty(case, device, full)?;
        Some(match case.facts.device(device.flow.name).finds_depth {
            true => judge_found(case, device, full, certainty),
            false => judge(case, device, full, certainty),
        })
    });
    most_first(&mut findings, |finding| finding.standing);
    united(findings, "device", |first, other| is_deepened_with(case, first, other))
}

/// An NFS volume of which it is known how many commands it may have out, where Storage I/O Control does not hold
/// it to fewer and its server has more to give.
fn on_nfs(case: &Case<'_>, device: &Device<'_>) -> Option<Finding> {
    let facts = case.facts.device(device.flow.name);
    let depth = facts.max_queue_depth.filter(|_| facts.sioc_depth.is_none())?;
    let (mut finding, spell) = sioc::full_on_nfs(case, Cause::DeviceDepth, device, depth)?;
    let (rate, slots) = (device.flow.mean_rate(&spell.samples)?, f64::from(depth));
    let [wait_ms, server_ms] = [finding.standing, slots].map(|count| 1000.0 * count / rate);
    if wait_ms < device.least_wait_ms(server_ms) || case.is_array_spent(device, &spell.samples) {
        return None;
    }
    let info = Advanced::NfsMaxQueueDepth.info();
    let deeper = changes::depth_for(slots, slots + finding.standing, f64::INFINITY);
    finding.sentence = format!(
        "The NFS volume {} may have {} commands out ({}), and {} wait {} ms each in the host for that: GAVG has \
         it beside the {} ms that the server takes.",
        device.flow.name,
        number(slots),
        info.path,
        number(finding.standing),
        number(wait_ms),
        number(server_ms)
    );
    finding.limit = Some(slots);
    finding.confidence = 0.98;
    let set = |value| Setting::Advanced { option: info.option, value: Some(value) };
    let what = format!("Raise {} from {depth} to {deeper}.", info.path);
    let steps = vec![Step::new(set(deeper), Some(set(depth)))];
    finding.changes = vec![changes::setting(what, Some(case.host), steps)];
    finding.changes[0].risk =
        "It is of all NFS mounts of the host, and the server has to take what waited here.".into();
    finding.do_not = vec!["Do not take GAVG for the latency of the server.".into()];
    Some(finding)
}

/// Whether an NFS volume's latency is that of its own slots: its server answers in time.
pub(super) fn explains_nfs(case: &Case<'_>, device: &Device<'_>) -> bool {
    let server_ms = || {
        let slots = on_nfs(case, device)?.limit?;
        Some(1000.0 * slots / device.flow.mean_rate(&device.busy)?)
    };
    device.is_nfs && server_ms().is_some_and(|ms| ms < device.limits.get(Threshold::DavgMs))
}

/// Whether the driver's parameter that deepens one device deepens the other too, both being short at one
/// time; then the change is that for both.
fn is_deepened_with(case: &Case<'_>, first: &mut Finding, other: &Finding) -> bool {
    let ([change], [with]) = (&first.changes[..], &other.changes[..]) else { return false };
    let names = [&first.at.name, &other.at.name].map(String::as_str);
    let both = || match change.steps.is_empty() {
        true => changes::of_both(case.host, [change, with], names),
        false => changes::of_one_driver(case.host, [change, with]),
    };
    let Some(both) = are_of_one_time(first, other).then(both).flatten() else { return false };
    let told = format!("commands that wait for {}", other.at.name);
    first.evidence.push(Evidence::new(told, other.standing, ""));
    first.changes = vec![both];
    true
}

/// The lines of esxcli that would tell which limit is in force, as far as they are not known; DSNRO
/// says something only where VMs compete.
pub(super) fn unknown(case: &Case<'_>, name: &str, compete: bool) -> Vec<String> {
    let facts = case.facts.device(name);
    let hides = case.facts.prints_no_depth(name);
    let lines = [
        ("Device Max Queue Depth", facts.max_queue_depth.is_none() && !hides),
        ("DSNRO", compete && facts.dsnro.is_none()),
    ];
    let lacking: Vec<_> = lines.iter().filter(|line| line.1).map(|line| line.0).collect();
    let told = || {
        let list = changes::show_device(name);
        format!("`{list}` as --esxcli FILE: {}", lacking.join(" and "))
    };
    let alone = || format!("DQLEN of {name} while one VM alone has commands there");
    (!lacking.is_empty()).then(told).into_iter().chain(hides.then(alone)).collect()
}

/// What holds the commands next once the device takes more: the depth of a virtual disk that is at it,
/// or what the adapters take, if that is less than the new `depth`.
fn next_limit(
    case: &Case<'_>,
    device: &Device<'_>,
    at_cap: Option<&Cap<'_>>,
    depth: u32,
) -> String {
    let disk = at_cap.map(|cap| (f64::from(cap.limit), "the virtual disk's own"));
    let adapters = case.host.adapter_slots(device).filter(|slots| *slots < f64::from(depth));
    let adapters = adapters.map(|slots| (slots, "the host adapter's AQLEN of"));
    let next = disk.into_iter().chain(adapters).min_by(|a, b| a.0.total_cmp(&b.0));
    next.map_or(String::new(), |(limit, whose)| {
        format!("; behind it, the next limit is {whose} {}", number(limit))
    })
}

/// How many slots there are: the least and the most where the limit moves while they are taken.
fn slots(device: &Device<'_>, full: &FullQueue) -> String {
    let depths = || device.queue.dqlen.over(&full.spell.samples);
    match (depths().reduce(f64::min), depths().reduce(f64::max)) {
        (Some(least), Some(most)) if least < most => {
            format!("{} to {}", number(least), number(most))
        }
        _ => number(full.depth),
    }
}

/// Whether it is the driver's depth, or one to which the device was lowered.
fn whose_depth(case: &Case<'_>, device: &Device<'_>, depth: u32) -> String {
    let at_end = case.facts.device(device.flow.name).max_queue_depth_at_end;
    match driver_depth::of(case.host, device, case.facts) {
        Some(own) if own > depth => {
            let end =
                at_end.map_or(", which was lowered".into(), |end| format!(", {end} at the end"));
            let gives = driver_depth::gives(own, case.host, device, case.facts);
            format!("Device Max Queue Depth{end}: {gives}")
        }
        None if Hba::of(case.host, device, depth, case.facts).may_have_more(depth, case.facts) => {
            "Device Max Queue Depth, the driver's or a lower one".into()
        }
        _ => "the depth of the HBA's driver".into(),
    }
}

fn judge(case: &Case<'_>, device: &Device<'_>, full: &FullQueue, certainty: f64) -> Finding {
    let name = device.flow.name;
    let next = virtual_disk::on(case, device);
    let demand = next.as_ref().map_or(0.0, Cap::demand);
    let facts = case.facts.device(name);
    let from = facts.max_queue_depth_at_end.unwrap_or(full.depth as u32);
    let depths = (from, case.deeper(device, full, demand).max(from));
    let mut finding = case.finding(Cause::DeviceDepth, device.object(), &full.spell);
    let may_be_dsnro = may_be_dsnro(case, device, full);
    let whose = match may_be_dsnro {
        true => {
            "the device's own depth, or DSNRO where several VMs compete: without rows of all VMs nothing tells which"
        }
        false => &whose_depth(case, device, from),
    };
    finding.sentence = format!(
        "The device queue of {name} is full{}: its {} slots (DQLEN, {whose}) are taken while {} commands \
         wait {} ms each in the VMkernel{}.",
        if full.in_bursts { " in bursts" } else { "" },
        if facts.max_queue_depth_at_end.is_some() {
            slots(device, full)
        } else {
            number(full.depth)
        },
        number(full.waiting),
        number(full.wait_ms),
        next_limit(case, device, next.as_ref(), depths.1)
    );
    finding.standing = full.waiting;
    finding.limit = Some(full.depth);
    finding.evidence = queue_evidence(device, &full.spell);
    finding.confidence = certainty * full.weight();
    finding.raise_confidence = unknown(case, name, may_be_dsnro || full.competitors > 1);
    if full.is_unseen() && !iops_limit::is_known_on(case, device) {
        finding.sentence.push_str(
            " No sample caught it full, so it may also be an IOPS limit that holds the bursts.",
        );
        finding.raise_confidence.insert(0, UNSEEN.into());
    }
    finding.sufferers = super::waiting(case, device, &full.spell.samples);
    finding.causers = super::causers_on(device, &full.spell.samples);
    if may_be_dsnro {
        let of_whom =
            if facts.dsnro.is_some() { "DSNRO" } else { "DSNRO, unless somebody changed it" };
        finding.evidence.push(Evidence::new(of_whom, full.depth, ""));
    }
    finding.changes = fix(case, device, full, depths);
    finding.do_not = vec![
        match may_be_dsnro {
            true => "Do not raise DSNRO or the driver's depth before both are known: the lower one stays the limit.",
            false => "Do not raise DSNRO alone: it never lifts DQLEN above Device Max Queue Depth.",
        }
        .into(),
        "Do not raise only the guest's depth: the same commands would wait in the VMkernel.".into(),
    ];
    finding.do_not.extend(case.little_room(device, &full.spell.samples));
    finding.caution = Some(changes::CAUTION);
    case.spare_what_is_behind(device, full, &mut finding);
    finding
}

/// A depth that follows the latency is no short queue: what waits here would wait in the device.
fn judge_found(case: &Case<'_>, device: &Device<'_>, full: &FullQueue, certainty: f64) -> Finding {
    let name = device.flow.name;
    let mut finding = case.finding(Cause::DeviceDepth, device.object(), &full.spell);
    finding.sentence = format!(
        "The device queue of {name} is full: its {} slots (DQLEN, found by latency: with so many out a \
         command takes twice what it takes alone) are taken while {} commands wait {} ms each in the \
         VMkernel.",
        slots(device, full),
        number(full.waiting),
        number(full.wait_ms)
    );
    finding.standing = full.waiting;
    finding.limit = Some(full.depth);
    finding.evidence = queue_evidence(device, &full.spell);
    finding.confidence = certainty * full.weight();
    finding.sufferers = super::waiting(case, device, &full.spell.samples);
    finding.causers = super::causers_on(device, &full.spell.samples);
    finding.changes = vec![changes::look(
        "Ask less of the device, or let shares say who waits: a deeper queue would only move the \
         wait into the device, where they do not count.",
        Vec::new(),
    )
    .risking("Whoever has fewer shares waits longer.", "Set shares back")];
    finding.do_not =
        vec!["Do not raise depths: DQLEN stays where the latency of the device says.".into()];
    finding
}

/// A deeper device, and DSNRO with it where that would hold it; what was changed meanwhile is not
/// proposed again.
fn fix(
    case: &Case<'_>,
    device: &Device<'_>,
    full: &FullQueue,
    depths: (u32, u32),
) -> Vec<crate::Change> {
    if depths.1 == depths.0 {
        return Vec::new();
    }
    let facts = case.facts.device(device.flow.name);
    let known = facts.max_queue_depth.or(facts.max_queue_depth_at_end);
    let dsnro = facts.dsnro_at_end.or(facts.dsnro).unwrap_or(depths.0);
    let holds = full.competitors > 1 && dsnro < depths.1;
    let with = known.filter(|_| holds).map(|_| dsnro);
    vec![match known {
        None if may_be_dsnro(case, device, full) => {
            dsnro_advice::raise_what_holds(case.host, device, depths, case.facts)
        }
        None if full.competitors > 1 => {
            dsnro_advice::raise_driver_if_not_deeper(case.host, device, depths, case.facts)
        }
        _ => changes::raise_depth(case.host, device, depths, with, case.facts),
    }]
}

#[cfg(test)]
mod tests {
    use counters::{Counter, Entity, Kind, Recording};
    use levels::Measured;

    use crate::{Cause, DeviceFacts, Facts, Thresholds, diagnose, fixture::Bench};

    /// Of one slot 0.7 of a command wait in the mean, three quarters of what it takes.
    #[test]
    fn a_queue_of_one_slot_is_short_where_less_than_one_command_waits() {
        for (kavg, found) in [(3.0, 1), (0.5, 0)] {
            let mut bench = Bench::new(19);
            let rate = |s: usize| 245.0 + 3.0 * (s % 3) as f64;
            bench.device("naa.1", 1).vm("a").iops_when(rate).davg(4.0).kavg(kavg).sampled(|_| 1);
            let causes = bench.findings().into_iter().map(|finding| finding.cause);
            assert_eq!(causes.filter(|cause| *cause == Cause::DeviceDepth).count(), found);
        }
    }

    #[test]
    fn a_depth_found_by_latency_is_no_short_queue() {
        let mut bench = Bench::new(10);
        let device = bench.device("naa.1", 254);
        device.depth(|s| [11, 12, 12, 12, 11, 12, 13, 12, 12, 12][s]);
        device.vm("a").iops(78_000.0).davg(0.15).kavg(1.5);
        let known = DeviceFacts {
            max_queue_depth: Some(254),
            dsnro: Some(254),
            queue_full_sample_size: Some(0),
            sioc: Some(false),
            finds_depth: true,
            ..DeviceFacts::default()
        };
        let facts = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
        let finding = bench.first(Cause::DeviceDepth, &facts);
        assert!(finding.sentence.contains("found by latency"), "{}", finding.sentence);
        assert!(finding.changes.iter().all(|change| change.steps.is_empty()));
    }

    /// 32 outstanding at 800 a second, 40 ms each: with 8 of them at the server that takes 10 ms.
    #[test]
    fn slots_that_an_nfs_volume_is_known_to_have_are_not_the_servers_latency() {
        let found = |max_queue_depth| {
            let mut recording = Recording::new("esx1".into());
            recording.times_ms = (0..12).map(|sample| 5_000 * sample).collect();
            let volume = recording.add_entity(Entity::new(Kind::NfsVolume, "nfs1".into()));
            recording.set_constant(volume, Counter::Commands, 800.0, 12);
            recording.set_constant(volume, Counter::GuestLatency, 40.0, 12);
            let known = DeviceFacts { max_queue_depth, ..DeviceFacts::default() };
            let facts = Facts { devices: [("nfs1".into(), known)].into(), ..Facts::default() };
            diagnose(&Measured::of(recording), &Thresholds::default(), &facts).findings
        };
        let causes = |depth| found(depth).iter().map(|one| one.cause).collect::<Vec<_>>();
        assert_eq!(causes(None), [Cause::ArraySlow]);
        assert_eq!(causes(Some(32)), [Cause::ArraySlow]);
        // 24 there take 30 ms: that is slow besides.
        assert_eq!(causes(Some(24)), [Cause::ArraySlow, Cause::DeviceDepth]);
        let [short] = &found(Some(8))[..] else { panic!("{:?}", causes(Some(8))) };
        let told = "24 wait 30 ms each in the host for that: GAVG has it beside the 10 ms that";
        assert!(short.sentence.contains(told), "{}", short.sentence);
        let step = &short.changes[0].steps[0];
        let line = "system settings advanced set -o /NFS/MaxQueueDepth -i";
        assert_eq!(step.set.to_string(), format!("{line} 64"));
        assert_eq!(step.undo.as_ref().unwrap().to_string(), format!("{line} 8"));
    }

    #[test]
    fn a_device_below_what_its_driver_always_gives_was_lowered() {
        let found = |module: &str| {
            let mut bench = Bench::new(6);
            bench.device("naa.1", 64).vm("a").iops(65_000.0).davg(0.98).kavg(0.9);
            let mut facts = Facts::default();
            facts.drivers.insert("vmhba1".into(), module.into());
            bench.first(Cause::DeviceDepth, &facts)
        };
        let lowered = found("nvme_pcie");
        assert!(lowered.sentence.contains("the HBA's driver gives 1023"), "{}", lowered.sentence);
        let change = &lowered.changes[0];
        assert!(change.what.contains("It was lowered"), "{}", change.what);
        assert!(change.esxcli[0].contains("-d naa.1 -m "), "{:?}", change.esxcli);
        let odd = found("vmw_ahci");
        assert!(!odd.changes[0].what.contains("none that can be set"), "{}", odd.changes[0].what);
    }

    #[test]
    fn one_vm_that_fills_a_steady_queue_points_at_the_driver() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 32).vm("sql01").iops(65_000.0).davg(0.49).kavg(0.45);
        let finding = bench.only(Cause::DeviceDepth, &Facts::default());
        assert!(finding.confidence > 0.8, "{}", finding.confidence);
        assert!(finding.changes[0].esxcli.iter().any(|line| line.contains("fnic_max_qdepth=128")));
        assert_eq!(finding.changes[0].effect, knobs::Effect::HostReboot);
    }

    /// DSNRO is 32 too unless somebody changed it, and may hold several VMs to it [S1].
    #[test]
    fn without_rows_of_vms_dsnro_may_be_what_is_full() {
        let full = |depth: u32, devices: &[&str]| {
            let mut bench = Bench::new(10);
            for name in devices {
                let rate = 1_000.0 * f64::from(depth) / 0.49;
                bench.device(name, depth).vm("unseen").iops(rate).davg(0.49).kavg(0.45);
            }
            bench.without_worlds();
            bench
        };
        let finding = full(32, &["naa.1"]).only(Cause::DeviceDepth, &Facts::default());
        let told = "the device's own depth, or DSNRO where several VMs compete";
        assert!(finding.sentence.contains(told), "{}", finding.sentence);
        assert!(finding.evidence.iter().any(|each| each.label.starts_with("DSNRO")));
        let [look] = &finding.changes[..] else { panic!("{:?}", finding.changes) };
        assert!(look.steps.is_empty() && look.what.contains("No of outstanding IOs"), "{look:?}");
        assert_eq!(look.esxcli, ["esxcli storage core device list -d naa.1"]);
        assert!(finding.confidence <= 0.5 && finding.raise_confidence[0].ends_with("and DSNRO"));
        assert!(finding.do_not[0].contains("before both are known"), "{:?}", finding.do_not);
        // Of many that is one finding.
        let finding =
            full(32, &["naa.1", "naa.2", "naa.3"]).only(Cause::DeviceDepth, &Facts::default());
        assert_eq!((finding.also.len(), finding.changes[0].esxcli.len()), (2, 3));
        // What esxcli says decides.
        let known = |max, dsnro| {
            let device =
                DeviceFacts { max_queue_depth: max, dsnro: Some(dsnro), ..DeviceFacts::default() };
            Facts { devices: [("naa.1".into(), device)].into(), ..Facts::default() }
        };
        let cases = [
            (32, known(Some(32), 32), Cause::DeviceDepth),
            (32, known(Some(64), 32), Cause::Dsnro),
            (32, known(None, 64), Cause::DeviceDepth),
            (64, Facts::default(), Cause::DeviceDepth),
        ];
        for (depth, facts, cause) in cases {
            let finding = full(depth, &["naa.1"]).only(cause, &facts);
            assert!(!finding.sentence.contains("nothing tells which"), "{}", finding.sentence);
            assert!(finding.changes.iter().all(|change| !change.steps.is_empty()), "{facts:?}");
        }
    }

    /// Two VMs on 32 slots, and a file that was cut before the numbers of the second, or of both.
    #[test]
    fn where_the_rows_of_vms_are_cut_dsnro_may_be_what_is_full() {
        let cut = |kept: usize, is_row_there: bool, counters: &[Counter]| {
            let mut bench = Bench::new(12);
            let device = bench.device("naa.1", 32);
            device.vm("a").iops(36_000.0).davg(0.5).kavg(0.6);
            let other = device.vm("b").iops(24_000.0).davg(0.5).kavg(0.5);
            if !is_row_there {
                other.cut_out();
            }
            let mut recording = bench.recording();
            let worlds: Vec<_> = recording.of_kind(Kind::World).map(|(id, _)| id).collect();
            for world in worlds.into_iter().skip(kept) {
                for counter in counters {
                    recording.set_constant(world, *counter, f64::NAN, recording.len());
                }
            }
            let facts = Facts::default();
            diagnose(&Measured::of(recording), &Thresholds::default(), &facts).findings.remove(0)
        };
        const ALL: [Counter; 7] = [
            Counter::Commands,
            Counter::ActiveCommands,
            Counter::QueuedCommands,
            Counter::DriverLatency,
            Counter::KernelLatency,
            Counter::GuestLatency,
            Counter::QueueLatency,
        ];
        for kept in [0, 1] {
            let finding = cut(kept, true, &ALL);
            assert_eq!(finding.cause, Cause::DeviceDepth);
            let told = "or DSNRO where several VMs compete: without rows of all VMs nothing tells";
            assert!(finding.sentence.contains(told), "{}", finding.sentence);
            assert!(finding.confidence <= 0.5, "{}", finding.confidence);
            assert!(finding.changes[0].steps.is_empty(), "{:?}", finding.changes);
        }
        // The rates that are there tell of two VMs at least.
        let finding = cut(0, false, &ALL[3..]);
        assert_eq!(finding.cause, Cause::Dsnro);
        assert!(finding.sentence.contains("these rows do not tell which"), "{}", finding.sentence);
        assert!(finding.changes.iter().all(|change| change.steps.is_empty()));
    }

    #[test]
    fn the_driver_that_is_there_is_named_alone() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 32).vm("sql01").iops(65_000.0).davg(0.49).kavg(0.45);
        let mut facts = Facts::default();
        facts.drivers.insert("vmhba1".into(), "nfnic".into());
        let device = DeviceFacts { max_queue_depth: Some(32), ..DeviceFacts::default() };
        facts.devices.insert("naa.1".into(), device);
        let finding = bench.only(Cause::DeviceDepth, &facts);
        let line = "esxcli system module parameters set -m nfnic -p lun_queue_depth_per_path=128";
        assert_eq!(finding.changes[0].esxcli, [line]);
        assert!(finding.confidence > 0.95);
    }

    #[test]
    fn what_one_parameter_deepens_is_one_finding_with_one_line() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 32).vm("sql01").iops(65_000.0).davg(0.49).kavg(0.45);
        bench.device("naa.2", 32).vm("web01").iops(65_000.0).davg(0.49).kavg(1.45);
        let mut facts = Facts::default();
        facts.drivers.insert("vmhba1".into(), "nfnic".into());
        for name in ["naa.1", "naa.2"] {
            let device = DeviceFacts { max_queue_depth: Some(32), ..DeviceFacts::default() };
            facts.devices.insert(name.into(), device);
        }
        let finding = bench.only(Cause::DeviceDepth, &facts);
        let names: Vec<_> = finding.objects().map(|at| at.name.as_str()).collect();
        assert_eq!(names, ["naa.2", "naa.1"]);
        let line = "esxcli system module parameters set -m nfnic -p lun_queue_depth_per_path=256";
        let [change] = &finding.changes[..] else { panic!("{:?}", finding.changes) };
        assert_eq!((&change.esxcli, change.undo_lines().len()), (&vec![line.to_owned()], 1));
        assert!(change.what.ends_with("The line deepens naa.1 as well."), "{}", change.what);
        assert_eq!(finding.sufferers.len(), 2);
    }

    #[test]
    fn one_line_for_many_devices_says_so_once() {
        let mut bench = Bench::new(6);
        for (name, kavg) in [("naa.1", 0.45), ("naa.2", 0.5), ("naa.3", 0.55), ("naa.4", 0.6)] {
            bench.device(name, 32).vm(name).iops(65_000.0).davg(0.49).kavg(kavg);
        }
        let mut facts = Facts::default();
        facts.drivers.insert("vmhba1".into(), "nfnic".into());
        let finding = bench.only(Cause::DeviceDepth, &facts);
        let what = &finding.changes[0].what;
        assert!(what.ends_with(" The line deepens naa.3 and 2 more as well."), "{what}");
        assert_eq!(what.matches("The line deepens").count(), 1, "{what}");
    }

    #[test]
    fn where_a_slow_device_would_fill_the_adapter_no_depth_is_raised() {
        // The array holds naa.2 to 900 a second, of which 72 are outstanding: with 64 slots each, it
        // fills the 64 of the adapter alone, and naa.1 gets what is left.
        let finding = |aqlen: u32| {
            let mut bench = Bench::new(8);
            bench.aqlen(aqlen);
            bench.device("naa.1", 32).vm("quick").iops(53_000.0).davg(0.6).kavg(3.0);
            bench.device("naa.2", 32).vm("held").iops(900.0).davg(35.5).kavg(44.4);
            let mut facts = Facts::default();
            facts.drivers.insert("vmhba1".into(), "fnic".into());
            let device = DeviceFacts { max_queue_depth: Some(32), ..DeviceFacts::default() };
            facts.devices.insert("naa.1".into(), device);
            let mut findings = bench.diagnose(&Thresholds::default(), &facts).findings;
            findings.retain(|found| found.cause == Cause::DeviceDepth && found.at.name == "naa.1");
            findings.remove(0)
        };
        for aqlen in [64, 80] {
            let full = finding(aqlen);
            assert!(full.changes.iter().all(|change| change.steps.is_empty()), "{full:?}");
            assert!(full.changes[0].what.contains("another adapter beside vmhba1"), "{full:?}");
            let why = format!(
                "With 64 slots each, the other devices would take 64 of the {aqlen} of vmhba1 (AQLEN) \
                 with what waits for them, and leave it {}: naa.2 keeps each for 35.5 ms (DAVG), naa.1 \
                 for 0.6.",
                aqlen - 64
            );
            assert!(full.sentence.ends_with(&why), "{}", full.sentence);
            assert!(
                full.do_not[0].contains(&format!("of the {aqlen} of vmhba1 (AQLEN) than it has"))
            );
        }
        for roomy in [128, 2_048] {
            assert!(!finding(roomy).changes[0].steps.is_empty(), "{roomy}");
        }
    }

    /// A device of 24 slots that one VM fills, as `esxcli storage core device set -m 24` makes it of one
    /// that qlnativefc gives 64 [QD254].
    fn lowered() -> Bench {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 24).vm("sql01").iops(7_290.0).davg(3.29).kavg(3.29);
        bench
    }

    #[test]
    fn a_device_that_was_lowered_below_its_driver_is_set_back_at_once() {
        let line = "esxcli storage core device set -d naa.1 -m 64";
        let of_driver = |parameter: &str| {
            let mut facts = Facts::default();
            facts.drivers.insert("vmhba1".into(), "qlnativefc".into());
            facts.parameters.insert("ql2xmaxqdepth".into(), parameter.into());
            facts
        };
        let mut known = Facts::default();
        let driver_depth = Some(64);
        let device = DeviceFacts { driver_depth, ..DeviceFacts::default() };
        known.devices.insert("naa.1".into(), device);
        let mut beside = lowered();
        beside.device("naa.2", 64).vm("web01").iops(300.0).davg(3.2);
        let cases = [
            (lowered(), known),
            (beside, Facts::default()),
            (lowered(), of_driver("64")),
            (lowered(), of_driver("")),
        ];
        for (bench, facts) in cases {
            let finding = bench.only(Cause::DeviceDepth, &facts);
            let [change] = &finding.changes[..] else { panic!("{:?}", finding.changes) };
            assert_eq!(change.esxcli, [line]);
            assert_eq!(change.undo_lines(), ["esxcli storage core device set -d naa.1 -m 24"]);
            assert_eq!(change.effect, knobs::Effect::AtOnce);
        }
    }

    #[test]
    fn a_depth_that_its_drivers_parameter_says_is_the_drivers() {
        let mut facts = Facts::default();
        facts.drivers.insert("vmhba1".into(), "qlnativefc".into());
        facts.parameters.insert("ql2xmaxqdepth".into(), "24".into());
        let finding = lowered().only(Cause::DeviceDepth, &facts);
        let line = "esxcli system module parameters set -m qlnativefc -p ql2xmaxqdepth=64";
        assert_eq!(finding.changes[0].esxcli, [line]);
        assert!(finding.sentence.contains("the depth of the HBA's driver"), "{}", finding.sentence);
    }

    #[test]
    fn a_depth_that_no_driver_has_by_default_is_not_said_to_be_the_drivers() {
        let finding = lowered().only(Cause::DeviceDepth, &Facts::default());
        assert!(finding.sentence.contains("the driver's or a lower one"), "{}", finding.sentence);
        assert!(finding.changes[0].steps.is_empty(), "{:?}", finding.changes);
    }

    #[test]
    fn depths_of_paths_that_are_added_are_raised_and_undone_each() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 32).vm("sql01").iops(65_000.0).davg(0.49).kavg(0.45);
        let mut facts = Facts::default();
        facts.drivers.insert("vmhba1".into(), "lpfc".into());
        let device = DeviceFacts {
            max_queue_depth: Some(32),
            depth_of_path: Some(16),
            ..DeviceFacts::default()
        };
        facts.devices.insert("naa.1".into(), device);
        let change = &bench.only(Cause::DeviceDepth, &facts).changes[0];
        let set = |depth| {
            format!("esxcli system module parameters set -m lpfc -p lpfc_lun_queue_depth={depth}")
        };
        assert_eq!((&change.esxcli, change.undo_lines()), (&vec![set(64)], vec![set(16)]));
        assert!(change.what.contains(" from 16 to 64"), "{}", change.what);
    }

    #[test]
    fn a_wait_without_a_full_queue_is_not_the_devices() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 128).vm("sql01").iops(1_000.0).davg(0.5).kavg(10.0);
        assert!(bench.findings().iter().all(|finding| finding.cause != Cause::DeviceDepth));
    }

    /// A guest that has 200 commands out for a part of the time and none for the rest, before 32 slots and
    /// an array that takes 4.2 ms; `caught` tells of each sample whether it falls into a burst.
    fn in_bursts(part: f64, caught: impl Fn(usize) -> bool + Copy + 'static) -> Bench {
        let mut bench = Bench::new(12);
        let vm = bench.device("naa.1", 32).vm("batch");
        let rate = part * 32.0 / 0.0042;
        vm.iops_when(move |sample| rate * [1.0, 1.004][sample % 2]);
        vm.davg(4.2).kavg(168.0 / 32.0 * 4.2);
        vm.sampled(move |sample| if caught(sample) { 32 } else { 0 });
        vm.queued(move |sample| if caught(sample) { 168 } else { 0 });
        bench
    }

    #[test]
    fn bursts_that_no_sample_catches_may_be_a_limits() {
        for part in [0.05, 0.15, 0.3] {
            let finding = in_bursts(part, |_| false).only(Cause::DeviceDepth, &Facts::default());
            assert!(finding.sentence.contains("may also be an IOPS limit"), "{}", finding.sentence);
            assert!(finding.confidence < 0.6, "{}", finding.confidence);
        }
    }

    #[test]
    fn bursts_that_a_sample_catches_before_a_full_queue_are_no_limits() {
        for part in [0.1, 0.2, 0.4] {
            let caught = in_bursts(part, |sample| sample % 5 == 3);
            let finding = caught.only(Cause::DeviceDepth, &Facts::default());
            assert!(!finding.sentence.contains("limit"), "{}", finding.sentence);
            assert!(finding.confidence > 0.7, "{}", finding.confidence);
            // 200 come at once.
            assert!(finding.changes[0].what.contains("from 32 to 256"), "{:?}", finding.changes);
        }
    }
}
