//! Host adapter queue: commands have a slot of their device and wait at the path or the adapter.
//!
//! The QAVG of path and adapter rows covers only the queues there; the device queue's wait is in
//! their KAVG [CAP-A]. So a QAVG above nothing on an adapter row is the adapter's. Where its row has none and all its
//! slots (AQLEN) are taken, what the devices behind it hold beside free slots of their own waits for it.

use counters::Counter;
use levels::most_first;

use super::{Case, Rank, Rule, changes, number};
use crate::{
    Adapter, Cause, Device, Evidence, Finding, Flow, FullQueue, LevelKind, Queue, Spell, Threshold,
    little, mean, path_changes, reaches,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Adapter,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, &[Counter::AdapterQDepth]],
    find,
};

/// Use of AQLEN from which the adapter itself is the limit.
const FULL: f64 = 0.7;
/// Use of AQLEN from which all its slots are taken.
const ALL: f64 = 0.95;

fn find(case: &Case<'_>) -> Vec<Finding> {
    case.host.adapters.iter().filter_map(|adapter| judge(case, adapter)).collect()
}

/// The busy devices behind an adapter.
fn behind<'a>(case: &'a Case<'_>, adapter: &Adapter<'_>) -> Vec<&'a Device<'a>> {
    let id = adapter.id;
    let leads = |device: &&Device<'_>| device.paths.iter().any(|path| path.adapter == Some(id));
    case.host.busy_devices().filter(leads).collect()
}

/// The spell in which commands with a slot of their device wait at an adapter that leads to it.
pub(super) fn full(case: &Case<'_>, device: &Device<'_>) -> Option<Spell> {
    let adapters = case.host.adapters_of(device).into_iter();
    adapters.filter_map(|adapter| spell(adapter, &behind(case, adapter))).next()
}

/// Whether an adapter that leads to a device has no slot left in a sample.
pub(super) fn has_none_left(case: &Case<'_>, device: &Device<'_>, sample: usize) -> bool {
    case.host.adapters_of(device).iter().any(|adapter| is_used_up(adapter, sample))
}

fn is_used_up(adapter: &Adapter<'_>, sample: usize) -> bool {
    let slots = adapter.aqlen.at(sample).filter(|slots| *slots > 0.0).map(|slots| ALL * slots);
    reaches(adapter.flow.in_flight(sample), slots)
}

/// What waits at an adapter in a sample: so many commands, and how long each of its own does, in milliseconds.
fn waiting(adapter: &Adapter<'_>, devices: &[&Device<'_>], sample: usize) -> Option<(f64, f64)> {
    let held = || {
        let held = devices.iter().filter(|device| device.is_held(sample));
        held.map(|device| Some(little(device.flow.rate(sample)?, device.held_ms(sample)?))).sum()
    };
    let own = adapter.flow.own_waiting(sample).filter(|own| *own > 0.0);
    let commands = own.or_else(|| is_used_up(adapter, sample).then(held)?)?;
    Some((commands, 1000.0 * commands / adapter.flow.rate(sample)?))
}

fn spell(adapter: &Adapter<'_>, devices: &[&Device<'_>]) -> Option<Spell> {
    let limits = devices.iter().min_by(|a, b| a.quickest_ms.total_cmp(&b.quickest_ms))?.limits;
    let mut busy: Vec<usize> = devices.iter().flat_map(|d| d.maybe_busy.iter().copied()).collect();
    busy.sort_unstable();
    busy.dedup();
    Spell::find(&busy, |sample| {
        let (commands, wait_ms) = waiting(adapter, devices, sample)?;
        Some(wait_ms >= limits.get(Threshold::QavgMs) && commands >= limits.get(Threshold::Waiting))
    })
}

fn judge(case: &Case<'_>, adapter: &Adapter<'_>) -> Option<Finding> {
    let flow = &adapter.flow;
    let devices = behind(case, adapter);
    let spell = spell(adapter, &devices)?;
    let depth = mean(adapter.aqlen.over(&spell.samples)).filter(|depth| *depth > 0.0);
    let in_flight = spell.mean(|sample| flow.in_flight(sample));
    let wait_ms =
        flow.per_command(&spell.samples, |_, s| Some(waiting(adapter, &devices, s)?.1))?;
    let mut finding = case.finding(Cause::AdapterQueue, adapter.object(), &spell);
    finding.standing = spell.mean(|s| Some(waiting(adapter, &devices, s)?.0))?;
    finding.limit = depth;
    let slots = |depth| format!("{} slots (AQLEN)", number(depth));
    let limit = depth.map_or_else(|| "queue".into(), slots);
    finding.sentence = format!(
        "The {limit} of {} fill up: {} commands that have a slot of their device wait {} ms each \
         at the adapter.",
        flow.name,
        number(finding.standing),
        number(wait_ms)
    );
    finding.evidence = Evidence::of([
        ("commands per second", flow.mean_rate(&spell.samples), "1/s"),
        ("QAVG of the adapter", Some(wait_ms), "ms"),
        ("AQLEN", depth, ""),
        ("in flight, by Little's law", in_flight, ""),
        ("devices with load behind it", Some(devices.len() as f64), ""),
    ])
    .collect();
    let confirmed = depth.is_some_and(|depth| in_flight >= Some(FULL * depth));
    finding.confidence = if confirmed { 0.95 } else { 0.75 } * spell.weight();
    if depth.is_none() {
        finding.raise_confidence = vec!["AQLEN, which only `esxtop -b -a` records".into()];
    }
    finding.sufferers = senders(&devices, &spell);
    finding.causers = super::causers(&finding.sufferers);
    let policies = devices
        .iter()
        .filter_map(|device| path_changes::use_all_paths(case.host, device, case.facts));
    finding.changes = fix(case, &devices, &spell, flow.name);
    finding.changes.extend(policies.take(MOST));
    finding.do_not = vec![
        "Do not raise the depth of devices behind this adapter: together they already send more \
         than it takes."
            .into(),
    ];
    Some(finding)
}

/// Devices that are named.
pub(super) const MOST: usize = 5;

/// The VMs that send through the adapter's devices, the one with most slots first.
fn senders(devices: &[&Device<'_>], spell: &Spell) -> Vec<crate::Party> {
    let mut vms: Vec<_> =
        devices.iter().flat_map(|device| device.tenants(&spell.samples)).collect();
    most_first(&mut vms, |vm| vm.slots);
    vms
}

/// What is told of a full queue, what to do about it, and what not, where the other devices behind its
/// adapters would leave it fewer of their slots than it has now, once each has more.
pub(super) fn instead_of_deeper(
    case: &Case<'_>,
    device: &Device<'_>,
    full: &FullQueue,
    finding: &mut Finding,
) {
    let samples = &full.spell.samples;
    let names: Vec<&str> =
        case.host.adapters_of(device).iter().map(|adapter| adapter.flow.name).collect();
    let adapters = names.join(" and ");
    let deeper = 2.0 * full.depth;
    let slots = case.host.adapter_slots(device).unwrap_or_default();
    let left = case.room_at_adapters(device, samples, deeper).unwrap_or_default().max(0.0);
    let davg_ms = |of: &Device<'_>| of.flow.per_command(samples, Flow::davg).unwrap_or_default();
    let is_other =
        |other: &&Device<'_>| other.id != device.id && case.host.share_an_adapter(device, other);
    let others = case.host.busy_devices().filter(is_other);
    let slowest = others.max_by(|a, b| davg_ms(a).total_cmp(&davg_ms(b)));
    let keeps = slowest.filter(|slowest| davg_ms(slowest) > davg_ms(device)).map(|slowest| {
        let (name, [theirs, own]) =
            (slowest.flow.name, [davg_ms(slowest), davg_ms(device)].map(number));
        format!(": {name} keeps each for {theirs} ms (DAVG), {} for {own}", device.flow.name)
    });
    finding.sentence += &format!(
        " With {} slots each, the other devices would take {} of the {} of {adapters} (AQLEN) with what \
         waits for them, and leave it {}{}.",
        number(deeper),
        number(slots - left),
        number(slots),
        number(left),
        keeps.unwrap_or_default()
    );
    finding.changes = vec![spread(case, &adapters)];
    finding.do_not = vec![format!(
        "Do not raise the depth: with more slots for each, the other devices would leave it fewer of the \
         {} of {adapters} (AQLEN) than it has now, and who is slow there keeps out who is quick.",
        number(slots)
    )];
}

/// More adapters for the devices behind those.
fn spread(case: &Case<'_>, adapters: &str) -> crate::Change {
    let what = if case.host.adapters.len() > 1 {
        format!(
            "Spread the devices over the host's adapters, so that more than {adapters} carry them."
        )
    } else {
        format!(
            "Give the host another adapter beside {adapters}, and spread the devices over both."
        )
    };
    changes::look(
        what,
        vec!["esxcli storage core path list".into(), "esxcli storage nmp device list".into()],
    )
    .risking("A device changes its paths under load: one at a time.", "Set its paths back")
}

/// DSNRO acts where VMs compete on a device, a driver's depth on any; the paths of other adapters
/// help where there are others.
fn fix(
    case: &Case<'_>,
    devices: &[&Device<'_>],
    spell: &Spell,
    adapter: &str,
) -> Vec<crate::Change> {
    let compete = |device: &&Device<'_>| device.tenants(&spell.samples).len() > 1;
    let how = match devices.iter().any(compete) {
        true => "DSNRO where several VMs share a device, the driver's depth elsewhere",
        false => "the driver's depth: DSNRO does not act on a device that one VM has alone",
    };
    let lower = changes::look(
        format!(
            "Lower the depth of the devices that need it least ({how}), so that those behind the \
             adapter fit into it."
        ),
        Vec::new(),
    )
    .risking("Their VMs wait in the device queue instead.", "Raise it again");
    vec![spread(case, adapter), lower]
}

#[cfg(test)]
mod tests {
    use counters::Counter;

    use crate::{Cause, Facts, fixture::Bench};

    #[test]
    fn a_wait_at_the_adapter_is_the_adapters() {
        let mut bench = Bench::new(6);
        bench.adapter_wait_ms(0.8);
        bench.aqlen(256);
        for name in ["naa.1", "naa.2", "naa.3", "naa.4"] {
            bench.device(name, 128).vm(name).iops(100_000.0).davg(0.6).kavg(0.8);
        }
        let finding = bench.only(Cause::AdapterQueue, &Facts::default());
        assert_eq!((finding.at.name.as_str(), finding.sufferers.len()), ("vmhba1", 4));
        assert!(finding.causers.is_empty(), "all are alike");
        assert!(finding.confidence > 0.9);
    }

    #[test]
    fn what_devices_hold_beside_free_slots_before_a_full_adapter_waits_for_it() {
        let found = |aqlen: u32| {
            let mut bench = Bench::new(6);
            bench.aqlen(aqlen);
            for name in ["naa.1", "naa.2", "naa.3", "naa.4"] {
                let device = bench.device(name, 128);
                device
                    .vm(name)
                    .iops_when(|s| 100_000.0 + s as f64)
                    .davg(0.64)
                    .kavg(5.0)
                    .sampled(|_| 64);
            }
            let causes: Vec<Cause> = bench.findings().iter().map(|found| found.cause).collect();
            causes
        };
        assert_eq!(found(256), [Cause::AdapterQueue]);
        assert_eq!(found(512), [Cause::HostWait; 4]);
    }

    #[test]
    fn what_is_advised_can_act_on_what_is_there() {
        let advice = |adapters: usize| {
            let mut bench = Bench::new(6);
            bench.paths(adapters).adapter_each().adapter_wait_ms(0.8);
            bench.aqlen(64);
            for device in ["naa.1", "naa.2"] {
                bench.device(device, 128).vm(device).iops(100_000.0).davg(0.6).kavg(0.8);
            }
            let finding = bench.first(Cause::AdapterQueue, &Facts::default());
            finding.changes.iter().map(|change| change.what.clone()).collect::<Vec<_>>().join(" ")
        };
        let alone = advice(1);
        assert!(alone.starts_with("Give the host another adapter"), "{alone}");
        assert!(alone.contains("DSNRO does not act"), "{alone}");
        let several = advice(2);
        assert!(several.starts_with("Spread the devices over the host's adapters"), "{several}");
    }

    #[test]
    fn nobody_waits_for_an_adapter_of_which_most_slots_are_free() {
        let mut bench = Bench::new(12);
        bench.adapter_wait_ms(3.0);
        bench.aqlen(1_024);
        bench.device("naa.1", 32).vm("a").iops(10_000.0).davg(3.2).kavg(3.0);
        let finding = bench.only(Cause::DeviceDepth, &Facts::default());
        assert_eq!(finding.limit, Some(32.0));
    }

    #[test]
    fn a_qavg_of_0_beside_queued_commands_was_not_measured() {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 32);
        device.counter(Counter::QueueLatency, |_| 0.0);
        device.vm("a").iops(10_000.0).davg(3.2).kavg(3.0);
        bench.only(Cause::DeviceDepth, &Facts::default());
    }
}
