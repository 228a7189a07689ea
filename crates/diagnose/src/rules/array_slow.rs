//! The array is slow, or at its knee: DAVG is high and the host adds next to nothing [S0].
//!
//! DAVG is everything below the driver: fabric, array, and what the array waits for. Where the
//! rate no longer grows with the number outstanding, the array is at its knee and every further
//! command only waits longer.

use counters::Counter;

use super::{Case, Rank, Rule, array_qos, changes, latency_evidence, number};
use crate::{
    Cause, Device, Evidence, Finding, Flow, LevelKind, Party, Spell, Threshold, Vdisk, mean,
    quantile,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Array,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Vdisk::COUNTERS, &[Counter::ArrayLatency]],
    find,
};

/// Part of DAVG from which KAVG is worth a word.
const HOST_PART: f64 = 0.25;
/// Size from which the transfer itself takes its time.
const LARGE_KIB: f64 = 256.0;

fn find(case: &Case<'_>) -> Vec<Finding> {
    case.each_device(|device| {
        if array_qos::applies(case, device) {
            return None;
        }
        let outstanding = device.limits.get(Threshold::BusyOutstanding);
        let spell = Spell::find(&device.busy, |sample| {
            device.flow.davg(sample) >= device.slow_ms(sample)
                && device.flow.in_flight(sample) >= outstanding
        })?;
        Some(judge(case, device, &spell))
    })
}

fn judge(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Finding {
    let (flow, samples) = (&device.flow, &spell.samples);
    let davg = flow.per_command(samples, Flow::davg);
    let kavg = flow.per_command(samples, Flow::kavg);
    let knee = growth(device, spell).filter(|growth| *growth < 0.3);
    let mut finding = case.finding(Cause::ArraySlow, flow.name, spell);
    finding.sentence = sentence(device, davg, kavg, knee.is_some());
    finding.standing = spell.mean(|sample| flow.in_flight(sample));
    finding.evidence = latency_evidence(device, spell);
    if let Some(growth) = knee {
        let label = "growth of the rate with the outstanding (1 = in step)";
        finding.evidence.push(Evidence::new(label, growth, ""));
    }
    let array = mean(device.array_ms.over(samples));
    if array > 0.0 {
        finding.evidence.push(Evidence::new("latency that the array reports", array, "ms"));
    }
    finding.confidence = certainty(device, spell, davg, kavg);
    finding.raise_confidence = vec![surer(device).into()];
    finding.sufferers = sufferers(case, device, samples);
    finding.causers = finding.sufferers.iter().take(1).cloned().collect();
    finding.changes = fix(case, device);
    finding.do_not = vec![
        "Do not raise queue depths: more commands at a slow array only wait there instead of on \
         the host."
            .into(),
    ];
    finding
}

fn sentence(device: &Device<'_>, davg: f64, kavg: f64, knee: bool) -> String {
    let name = device.flow.name;
    if device.is_nfs {
        return format!(
            "The NFS volume {name} answers in {} ms (GAVG); for NFS esxtop cannot tell the host's \
             part from the server's.",
            number(davg)
        );
    }
    let rest = match (knee, kavg >= HOST_PART * davg) {
        (true, _) => {
            "and its rate no longer grows with the commands sent: the array is at its knee"
        }
        (false, true) => {
            "so the fabric or the array is slow, and what waits for it waits in the host besides"
        }
        (false, false) => "so the time is spent in the fabric or the array",
    };
    format!(
        "{name} takes {} ms below the host (DAVG), {} ms in it (KAVG), {rest}.",
        number(davg),
        number(kavg)
    )
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

/// Who is on the device: its worlds, or on an NFS volume, where VMs have none, the virtual disks.
fn sufferers(case: &Case<'_>, device: &Device<'_>, samples: &[usize]) -> Vec<Party> {
    if !device.is_nfs {
        return device.tenants(samples);
    }
    let party = |disk: &Vdisk<'_>| Party {
        name: disk.name.into(),
        iops: mean(samples.iter().map(|&sample| disk.rate(sample))),
        gavg_ms: disk.latency_ms(samples),
        slots: mean(samples.iter().map(|&sample| disk.outstanding(sample))),
        waiting: 0.0,
    };
    let mut parties: Vec<Party> = case.host.vdisks_on(device).map(party).collect();
    parties.sort_by(|a, b| b.slots.total_cmp(&a.slots));
    parties
}

/// How the rate grows with the commands in flight, from the slow end of the spell to the busy
/// end: 1 in step, 0 not at all. `None` when they do not vary enough to tell.
fn growth(device: &Device<'_>, spell: &Spell) -> Option<f64> {
    const SPREAD: f64 = 1.5;
    let inside = |sample: &usize| device.flow.in_flight(*sample);
    let middle = quantile(spell.samples.iter().map(inside), 0.5)?;
    let (few, many): (Vec<usize>, Vec<usize>) =
        spell.samples.iter().partition(|sample| inside(sample) < middle);
    let ratio = |value: &dyn Fn(&usize) -> f64| {
        mean(many.iter().map(value)) / mean(few.iter().map(value)).max(f64::MIN_POSITIVE)
    };
    let load = ratio(&inside);
    let rate = ratio(&|sample| device.flow.rate(*sample));
    (!few.is_empty() && load >= SPREAD && rate > 0.0).then(|| rate.ln() / load.ln())
}

fn certainty(device: &Device<'_>, spell: &Spell, davg: f64, kavg: f64) -> f64 {
    let host_part = kavg / (davg + kavg).max(f64::MIN_POSITIVE);
    let large = device.flow.size_kib(&spell.samples) >= LARGE_KIB;
    let base = if device.is_nfs { 0.6 } else { 0.9 - 0.4 * host_part };
    base * if large { 0.8 } else { 1.0 } * spell.weight()
}

fn fix(case: &Case<'_>, device: &Device<'_>) -> Vec<crate::Change> {
    let name = device.flow.name;
    let mut fix = vec![changes::look(
        "Look at the array: the busiest volumes, ports, controllers and pools in the same window, \
         and limits set on this volume.",
        Vec::new(),
    )];
    fix.extend(changes::use_all_paths(case.host, device, case.facts));
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
    use crate::{Cause, Facts, Profile, Thresholds, fixture::Bench};

    #[test]
    fn a_slow_array_is_named_and_no_queue_is_raised() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 64).vm("a").iops(800.0).davg(40.0);
        let finding = bench.only(Cause::ArraySlow, &Facts::default());
        assert!(finding.confidence > 0.85);
        assert!(finding.caution.is_none());
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
    fn the_same_latency_is_fine_for_disks_and_slow_for_flash() {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 64).vm("a").iops(800.0).davg(8.0);
        let judged = |profile| bench.diagnose(&Thresholds::of(profile), &Facts::default());
        assert!(judged(Profile::Classic).findings.is_empty());
        assert_eq!(judged(Profile::Flash).findings[0].cause, Cause::ArraySlow);
    }
}
