//! Noisy neighbour on a shared device [S4].
//!
//! One VM holds most slots of a full device queue. Another asks for next to nothing, the array
//! answers it quickly, and yet each of its commands waits many times as long for a slot.

use super::{
    Case, EITHER, Rank, Rule, by_shares::times_as_many, changes, dsnro, iops_limit, number,
    queue_evidence,
};
use crate::{
    Cause, Device, Evidence, Finding, Flow, FullQueue, LevelKind, Party, Queue, Threshold, Vdisk,
    driver_depth, dsnro_advice,
    limit_advice::{self, Place},
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::World,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, Vdisk::COUNTERS],
    find,
};

/// A VM, or a device, whose share of the commands is no more than this asks for next to nothing.
pub(super) const MODEST_SHARE: f64 = 0.2;
/// The wait, in multiples of its own service, from which a modest VM suffers: longer than it is
/// served, as far as rows tell.
const UNFAIR: f64 = 0.95;
/// How much longer than the queue makes anybody wait: the wait of a VM that is held by a limit of
/// its own is no neighbour's.
const OWN: f64 = 3.0;
/// How many times longer than another's commands are served those of a VM must be for it to hold
/// slots that its IOPS do not show.
const LONG: f64 = 2.0;
/// Commands that a VM must have completed for its latency to mean anything.
pub(super) const ENOUGH_COMMANDS: f64 = 3.0;

fn find(case: &Case<'_>) -> Vec<Finding> {
    case.each_device(|device| {
        let full = &case.full_queue(device)?;
        let tenants = device.tenants(&full.spell.samples);
        let (holder, others) = tenants.split_first()?;
        let slots: f64 = tenants.iter().map(|tenant| tenant.slots).sum();
        if holder.slots * 100.0 < slots * device.limits.get(Threshold::SlotsPercent) {
            return None;
        }
        // By Little's law nothing that others do makes those quicker who are held to a rate of their own.
        let held = iops_limit::waiting_for_limits(case, device);
        let suffers = |tenant: &&Party| {
            !held.contains_key(&tenant.name)
                && !has_its_part(device, full, [holder, tenant])
                && suffers(case, device, full, [holder, tenant], slots)
        };
        let sufferers: Vec<Party> = others.iter().filter(suffers).cloned().collect();
        let timed = sufferers.iter().filter_map(|party| Some((party, party.gavg_ms?)));
        let (worst, gavg_ms) = timed.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(judge(case, device, full, holder, (worst.clone(), gavg_ms), sufferers))
    })
}

/// Whether a VM has of the slots what its shares give it beside the holder, which has more of them: as somebody set it.
fn has_its_part(device: &Device<'_>, full: &FullQueue, [holder, tenant]: [&Party; 2]) -> bool {
    const MORE: f64 = 1.5;
    const NEARLY: f64 = 0.8;
    times_as_many(device, [&holder.name, &tenant.name], &full.spell)
        .is_some_and(|times| times >= MORE && times * tenant.slots >= NEARLY * holder.slots)
}

fn suffers(
    case: &Case<'_>,
    device: &Device<'_>,
    full: &FullQueue,
    [holder, tenant]: [&Party; 2],
    slots: f64,
) -> bool {
    let seconds: f64 = full.spell.samples.iter().map(|s| case.host.interval_s(*s)).sum();
    let rate = device.flow.mean_rate(&full.spell.samples);
    let (Some(wait), service, Some(rate)) = (tenant.waiting, tenant.slots, rate) else {
        return false;
    };
    // A slot comes free with every command of the others, for those of them that wait first.
    let others = rate - tenant.iops;
    let turn_s = ((full.waiting - wait).max(0.0) + 1.0) / others.max(f64::MIN_POSITIVE);
    // As many of a VM with more shares go first.
    let shares = times_as_many(device, [&holder.name, &tenant.name], &full.spell);
    let turn_s = turn_s * shares.unwrap_or(1.0).max(1.0);
    tenant.slots <= MODEST_SHARE * slots
        && wait >= UNFAIR * service
        && tenant.iops * seconds >= ENOUGH_COMMANDS
        && wait <= OWN * turn_s * tenant.iops
        && wait * 1000.0 / tenant.iops >= device.limits.get(Threshold::KavgMs)
}

fn judge(
    case: &Case<'_>,
    device: &Device<'_>,
    full: &FullQueue,
    holder: &Party,
    (worst, gavg_ms): (Party, f64),
    sufferers: Vec<Party>,
) -> Finding {
    let name = device.flow.name;
    let mut finding = case.finding(Cause::NoisyNeighbour, device.object(), &full.spell);
    let service_ms = worst.slots * 1000.0 / worst.iops;
    finding.sentence = format!(
        "{} holds {} of the {} slots of {name} and {} other VM{} for them: {} sees {} ms although \
         its own commands take {} ms.",
        holder.name,
        number(holder.slots.min(full.depth)),
        number(full.depth),
        sufferers.len(),
        if sufferers.len() == 1 { " waits" } else { "s wait" },
        worst.name,
        number(gavg_ms),
        number(service_ms)
    );
    finding.standing = holder.slots + full.waiting;
    finding.evidence = queue_evidence(device, &full.spell);
    finding.evidence.extend([
        Evidence::new(format!("slots held by {}", holder.name), holder.slots, ""),
        Evidence::new(format!("GAVG of {}", worst.name), gavg_ms, "ms"),
        Evidence::new(format!("DAVG of {}", worst.name), service_ms, "ms"),
    ]);
    finding.confidence = 0.95 * full.weight();
    finding.raise_confidence = vec![
        "Move the suffering VM to another device or host: its latency must be normal there".into(),
    ];
    let in_vain = case.why_no_deeper(device, full, &finding);
    finding.changes = fix(case, device, full, holder, in_vain.is_empty());
    finding.do_not = in_vain;
    if holder.slots * 1000.0 / holder.iops >= LONG * service_ms {
        finding.do_not.push(format!(
            "Do not look for the culprit by IOPS: {} does only {} a second, its commands are slow or \
             large.",
            holder.name,
            number(holder.iops)
        ));
    }
    let set = iops_limit::rate_that_is_set(case, device, (&worst.name, &full.spell));
    if let Some(rate) = set {
        finding.sentence += &format!(
            " But {} stays at {} a second, as under an IOPS limit of its own, with which it would wait as long \
             without its neighbour.",
            worst.name,
            number(rate)
        );
        finding.confidence = finding.confidence.min(EITHER);
        finding.raise_confidence = vec![format!("The IOPS limits of the disks of {}", worst.name)];
        finding.changes.splice(0..0, changes::show_limits(&[&worst.name]));
    }
    finding.causers = vec![holder.clone()];
    finding.sufferers = sufferers;
    finding.caution = Some(changes::CAUTION);
    finding
}

/// More slots than the holder can fill, where that gains anything, or a holder that cannot fill them.
fn fix(
    case: &Case<'_>,
    device: &Device<'_>,
    full: &FullQueue,
    holder: &Party,
    gains: bool,
) -> Vec<crate::Change> {
    let most = dsnro_advice::most(device, case.facts);
    let to = case.deeper(device, full, 0.0).min(most.max(full.depth as u32));
    let facts = case.facts.device(device.flow.name);
    let known = facts.max_queue_depth;
    let from = full.depth as u32;
    let deepest = driver_depth::without_competition(case.host, device, case.facts).unwrap_or(from);
    let reachable = known.map_or(to, |depth| to.min(depth));
    let world = device.world_of(&holder.name);
    let size_kib = world.and_then(|world| world.flow.size_kib(&full.spell.samples));
    let at = Place { host: case.host, devices: vec![device], samples: &full.spell.samples };
    let mut changes: Vec<_> =
        limit_advice::hold(&at, &[holder], size_kib, case.facts).into_iter().collect();
    let is_dsnro = match facts.dsnro {
        Some(dsnro) => dsnro == from,
        None => dsnro::certainty(case, device, full).is_some(),
    };
    if reachable > from && is_dsnro && gains {
        let depths = (from, reachable);
        changes.push(dsnro_advice::raise(case.host, device, depths, case.facts));
    }
    let is_deepened = to > deepest && gains;
    if is_deepened && known.is_none() && deepest == from {
        changes.push(dsnro_advice::raise_driver_if_not_deeper(
            case.host,
            device,
            (from, to),
            case.facts,
        ));
    } else if is_deepened {
        let (depths, dsnro) = ((deepest, to), known.map(|_| facts.dsnro.unwrap_or(from)));
        let mut deeper = changes::raise_depth(case.host, device, depths, dsnro, case.facts);
        if known.is_none() {
            deeper.what.insert_str(0, "Before DSNRO can go there: ");
        }
        changes.push(deeper);
    }
    changes.push(
        changes::look(
            format!(
                "Move {} to a datastore on another device: queues are not shared.",
                holder.name
            ),
            Vec::new(),
        )
        .risking("The move copies its disks and loads both devices.", "Move it back"),
    );
    changes
}

#[cfg(test)]
mod tests {
    use crate::{Cause, DeviceFacts, Facts, fixture::Bench};

    #[test]
    fn a_modest_vm_that_waits_for_anothers_slots_suffers() {
        let bench = Bench::noisy_neighbour();
        let finding = bench.first(Cause::NoisyNeighbour, &Facts::default());
        assert_eq!(finding.causers[0].name, "bad");
        assert_eq!(finding.sufferers[0].name, "good");
        assert!(finding.sufferers[0].gavg_ms > Some(300.0));
    }

    #[test]
    fn only_whose_commands_are_slow_is_not_to_be_looked_for_by_iops() {
        let by_iops = |bench: Bench| {
            let finding = bench.first(Cause::NoisyNeighbour, &Facts::default());
            finding.do_not.iter().any(|line| line.contains("by IOPS"))
        };
        assert!(by_iops(Bench::noisy_neighbour()));
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 32);
        device.vm("bully").iops(41_305.0).davg(0.703).kavg(0.75);
        device.vm("victim").iops(1_375.0).davg(0.703).kavg(0.75);
        assert!(!by_iops(bench));
    }

    #[test]
    fn a_victim_that_stays_at_a_round_rate_may_be_held_by_its_own_limit() {
        let found = |rate: fn(usize) -> f64| {
            let mut bench = Bench::new(12);
            let device = bench.device("naa.1", 32);
            device.vm("big").iops_when(|s| 4_850.0 + 9.0 * (s % 4) as f64).davg(6.2).kavg(7.0);
            device.vm("lim").iops_when(rate).davg(6.2).kavg(13.8);
            bench.first(Cause::NoisyNeighbour, &Facts::default())
        };
        let set = found(|_| 300.0);
        assert!(set.sentence.contains("lim stays at 300 a second"), "{}", set.sentence);
        assert!(set.confidence <= 0.5 && set.changes[0].what.contains("limits"), "{set:?}");
        let free = found(|s| 300.0 + [4.0, -9.0, 7.0, -2.0][s % 4]);
        assert!(free.confidence > 0.9 && !free.sentence.contains("stays"), "{}", free.sentence);
    }

    #[test]
    fn a_vm_that_its_own_limit_holds_is_nobodys_victim() {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 32);
        device.vm("busy").iops_when(|s| 60_000.0 + 2_000.0 * (s % 3) as f64).davg(0.5).kavg(0.2);
        device.vm("held").iops(500.0).davg(0.5).kavg(40.0);
        let findings = bench.findings();
        assert!(findings.iter().all(|finding| finding.cause != Cause::NoisyNeighbour));
        let held = bench.first(Cause::IopsLimit, &Facts::default());
        assert_eq!(held.at.name, "held:scsi0:1");
    }

    /// A hundred times as many shares are 0.3 of 32 slots for who has them not, and a wait of fifteen commands before half
    /// a one.
    #[test]
    fn who_has_few_shares_waits_for_who_has_many_and_for_no_limit() {
        let found = |of_small: f64| {
            let mut bench = Bench::new(12);
            let device = bench.device("naa.1", 32);
            let (big, small) = (device.vm("big"), 100.0);
            big.iops_when(|s| 6_290.0 + 9.0 * (s % 4) as f64).davg(5.0).kavg(0.7).shares(10_000.0);
            device.vm("small").iops(small).davg(5.0).kavg(155.0).shares(of_small);
            bench.findings()
        };
        let few = found(100.0);
        assert!(few.iter().all(|finding| finding.cause != Cause::IopsLimit), "{few:?}");
        // It has what its shares give it, so nobody takes it from it.
        assert_eq!(few[0].cause, Cause::Dsnro);
        assert_eq!(found(10_000.0)[0].cause, Cause::IopsLimit);
    }

    /// 12 commands at 200 a second take 60 ms whatever others do: 12 of them in a slot, and 13 before one.
    #[test]
    fn a_limit_above_the_queue_that_a_neighbour_fills_makes_nobody_its_victim() {
        let found = |above_ms| {
            let mut bench = Bench::new(10);
            let device = bench.device("naa.1", 32);
            device.vm("big").iops_when(|s| 2_480.0 + 5.0 * (s % 3) as f64).davg(11.9).kavg(13.0);
            device.vm("lim").iops(200.0).davg(11.8).kavg(13.3).above_ms(above_ms);
            bench.findings()
        };
        let causes = |above_ms| -> Vec<Cause> { found(above_ms).iter().map(|f| f.cause).collect() };
        assert_eq!(causes(0.0)[0], Cause::NoisyNeighbour);
        assert_eq!(causes(35.0), [Cause::Dsnro, Cause::IopsLimit]);
        // Of what the limit holds, 2.7 wait in the device's queue: 2,485/s x 13 ms are left there.
        let sentence = &found(35.0)[0].sentence;
        assert!(sentence.contains("32.3 commands wait 13 ms each"), "{sentence}");
    }

    #[test]
    fn a_depth_that_esxcli_says_is_never_lowered() {
        let mut facts = Facts::default();
        let device = DeviceFacts { max_queue_depth: Some(128), ..DeviceFacts::default() };
        facts.devices.insert("naa.pe".into(), device);
        let mut bench = Bench::new(6);
        let device = bench.device("naa.pe", 32);
        device.vm("bad").iops(26.0).davg(1_230.0).kavg(308.0).size_kib(512.0);
        device.vm("good").iops(0.75).davg(1.0).kavg(330.0);
        let finding = bench.first(Cause::NoisyNeighbour, &facts);
        let lines = finding.changes.iter().flat_map(|change| &change.esxcli);
        assert!(lines.clone().all(|line| line.contains(" -O 64")), "{lines:?}");
        assert!(lines.count() > 0);
    }

    #[test]
    fn two_vms_that_share_a_full_queue_evenly_are_no_noise() {
        let mut bench = Bench::new(6);
        let device = bench.device("naa.1", 32);
        device.vm("a").iops(30_000.0).davg(0.5).kavg(0.5);
        device.vm("b").iops(30_000.0).davg(0.5).kavg(0.5);
        assert!(bench.findings().iter().all(|finding| finding.cause != Cause::NoisyNeighbour));
    }
}
