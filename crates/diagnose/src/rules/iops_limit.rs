//! An IOPS limit on a virtual disk: the host itself holds a disk to a rate, also when nothing is
//! congested. Its commands wait in the VMkernel while the device has slots free.

use super::{Case, changes, number};
use crate::{
    Cause, Device, Evidence, Finding, Flow, Spell, Threshold, World, is_round, mean, unrest_percent,
};

/// Part of the latency that must be wait in the VMkernel.
const WAIT_PART: f64 = 0.2;
/// Part of that wait that may be the path's or the adapter's.
const PATH_PART: f64 = 0.5;
/// The chunk by which limits count a command [src: API, LAMW `Disk.SchedCostUnit`].
const COST_UNIT_KIB: f64 = 32.0;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let limited = |device: &Device<'_>| {
        let vms = device.worlds.iter().filter(|world| !world.is_system);
        vms.filter_map(|world| judge(case, device, world)).collect::<Vec<_>>()
    };
    case.host.busy_devices().flat_map(limited).collect()
}

/// The samples in which a VM waits on a device that has room, at a rate that does not move.
fn held(case: &Case<'_>, device: &Device<'_>, world: &World<'_>) -> Option<Spell> {
    if device.full.is_some() {
        return None;
    }
    let flow = &world.flow;
    let limit = |threshold| device.limits.get(threshold);
    let spell = Spell::find(&device.busy, |sample| {
        flow.qavg(sample) >= limit(Threshold::KavgMs)
            && flow.qavg(sample) >= WAIT_PART * flow.gavg(sample)
            && flow.waiting(sample) >= limit(Threshold::Waiting)
            && device.path_wait_ms(sample) < PATH_PART * flow.qavg(sample)
    })?;
    let rates: Vec<f64> = spell.samples.iter().map(|&sample| flow.rate(sample)).collect();
    let commands = spell.mean(|sample| flow.rate(sample) * case.host.interval_s(sample));
    let allowed = limit(Threshold::FlatPercent).max(200.0 / commands.max(1.0));
    unrest_percent(&rates).is_none_or(|unrest| unrest <= allowed).then_some(spell)
}

fn judge(case: &Case<'_>, device: &Device<'_>, world: &World<'_>) -> Option<Finding> {
    let spell = held(case, device, world)?;
    let (flow, samples) = (&world.flow, &spell.samples);
    let rate = flow.mean_rate(samples);
    let size = flow.size_kib(samples);
    let normalised = rate * (size / COST_UNIT_KIB).ceil().max(1.0);
    let wait_ms = flow.per_command(samples, Flow::qavg);
    let mut finding = case.finding(Cause::IopsLimit, device.flow.name, &spell);
    finding.sentence = format!(
        "{} is held to {} commands a second on {}: they wait {} ms each in the VMkernel although \
         the device has slots free, as under an IOPS limit.",
        world.owner,
        number(rate),
        device.flow.name,
        number(wait_ms)
    );
    finding.standing = spell.mean(|sample| flow.waiting(sample));
    finding.evidence = vec![
        Evidence::new("commands per second", rate, "1/s"),
        Evidence::new("the same in units of 32 KiB", normalised, "1/s"),
        Evidence::new("mean size", size, "KiB"),
        Evidence::new("QAVG", wait_ms, "ms"),
        Evidence::new("DAVG", flow.per_command(samples, Flow::davg), "ms"),
        Evidence::new("waiting, by Little's law", finding.standing, ""),
        Evidence::new("DQLEN", mean(device.queue.dqlen.over(samples)), ""),
        Evidence::new("ACTV, sampled", mean(device.queue.actv.over(samples)), ""),
    ];
    let round = is_round(rate) || is_round(normalised);
    finding.confidence = if round { 0.9 } else { 0.75 } * spell.weight();
    finding.raise_confidence = vec![format!(
        "The limits of {}: Get-VM NAME | Get-VMResourceConfiguration, and its storage policy",
        world.owner
    )];
    finding.sufferers = device.tenants(samples);
    finding.sufferers.retain(|party| party.name == world.owner);
    finding.causers = finding.sufferers.clone();
    let mut lift = changes::limit_iops(world.owner);
    lift.what =
        format!("Raise or remove the limit of {} (-1 is none), if it is not meant.", world.owner);
    lift.risk = "The VM takes more of the device from the others.".into();
    lift.undo = "Set the limit that was there".into();
    finding.changes = vec![lift];
    finding.do_not = vec!["Do not raise queue depths: the limit holds whatever they are.".into()];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Facts, fixture::Bench};

    #[test]
    fn a_flat_rate_with_waits_beside_free_slots_is_a_limit() {
        let mut bench = Bench::new(6);
        let device = bench.device("naa.1", 64);
        device.vm("held").iops(1_000.0).davg(0.5).kavg(31.0);
        device.vm("free").iops_when(|s| 5_000.0 + 500.0 * s as f64).davg(0.5);
        let finding = bench.only(Cause::IopsLimit, &Facts::default());
        assert_eq!(finding.sufferers[0].name, "held");
        assert!(finding.confidence > 0.85);
    }
}
