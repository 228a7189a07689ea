//! What stands beside a device on its array: other hosts, by the names of their devices, as captures of one time show
//! them, and quicker devices of the same host.

use levels::array_of;

use super::{
    Case, number,
    quick_peer::{CONTRAST, quickest},
};
use crate::{Device, Flow, Host, Spell, Threshold};

/// Who of another host waits at the array behind a device, where the device's own commands do: what a
/// deeper queue here gets more of the array then, those wait for. Slow is from when on the latency of a
/// held volume is asked about on flash, and from the published threshold on of disks.
pub(super) fn waits_elsewhere(
    case: &Case<'_>,
    device: &Device<'_>,
    samples: &[usize],
) -> Option<String> {
    // Who knows the array has its work to go by.
    let array = array_of(device.flow.name).filter(|_| case.array(device).is_none())?;
    let davg_ms = device.flow.per_command(samples, Flow::davg);
    let times = case.host.begin_ms(*samples.first()?)..*case.host.times_ms.get(*samples.last()?)?;
    let mut others = case.hosts.iter().filter(|host| !std::ptr::eq(*host, case.host));
    let waits = |host: &Host<'_>| {
        let is_meanwhile = |&sample: &usize| times.contains(&host.times_ms[sample]);
        let of_it = |other: &&Device<'_>| array_of(other.flow.name) == Some(array);
        host.busy_devices().filter(of_it).find_map(|other| {
            let meanwhile: Vec<usize> = other.busy.iter().copied().filter(is_meanwhile).collect();
            let ms = other.flow.per_command(&meanwhile, Flow::davg)?;
            let inside = other.flow.mean_in_flight(&meanwhile)?;
            let is_long = ms >= long_ms(other) && davg_ms >= Some(long_ms(device));
            is_long.then(|| {
                format!(
                    "on {} of the same array {} has {} commands outstanding, and each takes {} ms there \
                     (DAVG)",
                    other.flow.name,
                    host.name,
                    number(inside),
                    number(ms)
                )
            })
        })
    };
    others.find_map(waits)
}

/// What a device takes for a command beside a quick one behind the same adapters, where it is far slower and nothing tells
/// its array: a policy or slower disks below do that, and then a deeper queue only moves the wait there.
pub(super) fn takes_longer(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Option<String> {
    let ms = device.flow.per_command(&spell.samples, Flow::davg)?;
    let (quick, quick_ms) = quickest(case, device, spell, |_| true)?;
    let is_far = ms >= (CONTRAST * quick_ms).max(device.limits.get(Threshold::QosMs));
    (is_far && case.array(device).is_none()).then(|| {
        format!(
            "{} takes {} ms a command below the host (DAVG), {quick} beside it {}",
            device.flow.name,
            number(ms),
            number(quick_ms)
        )
    })
}

fn long_ms(device: &Device<'_>) -> f64 {
    let is_flash = device.quickest_ms < device.limits.get(Threshold::FlashMs);
    device.limits.get(if is_flash { Threshold::QosMs } else { Threshold::DavgMs })
}

#[cfg(test)]
mod tests {
    use levels::Measured;

    use crate::{Cause, Facts, Thresholds, Verdict, diagnose_together, fixture::Bench};

    const FULL: &str = "naa.602000002a8a6553fc83abafc747b54f";

    /// A host with a queue that DSNRO keeps at 32, and another with 4 commands on a device.
    fn hosts(device: &str, davg_ms: f64) -> Vec<Verdict> {
        let mut one = Bench::new(8);
        let full = one.device(FULL, 32).depth(|sample| if sample == 0 { 64 } else { 32 });
        for vm in ["x-1", "x-2", "x-3"] {
            full.vm(vm).iops(10_667.0 / davg_ms).davg(davg_ms).kavg(5.0 * davg_ms);
        }
        let mut other = Bench::new(8);
        other.device(device, 64).vm("v").iops(4_000.0 / davg_ms).davg(davg_ms);
        let recordings = [one, other].map(|bench| Measured::of(bench.recording()));
        diagnose_together(
            &recordings,
            &Thresholds::default(),
            &[Facts::default(), Facts::default()],
        )
    }

    fn lines(verdicts: &[Verdict]) -> usize {
        let finding = verdicts[0].findings.iter().find(|finding| finding.cause == Cause::Dsnro);
        finding.unwrap().changes.iter().map(|change| change.steps.len()).sum()
    }

    #[test]
    fn before_an_array_where_another_host_waits_no_depth_is_raised() {
        // 1.4 ms is much on flash [S0].
        let shared = hosts("naa.602000002a8a6553fc83abafc747b44f", 1.59);
        assert_eq!(lines(&shared), 0);
        let finding = &shared[0].findings[0];
        assert!(finding.changes[0].what.starts_with("Look at the utilization of the array first"));
        assert!(
            finding.do_not[0].contains("esx01 has 4 commands outstanding, and each takes 1.59 ms")
        );
    }

    #[test]
    fn a_volume_far_slower_than_the_one_beside_it_is_looked_at_before_its_queue_is_deepened() {
        let told = |quick_ms: f64| {
            let mut bench = Bench::new(12);
            let moves = |s: usize| 1.0 + 0.1 * (s % 3) as f64;
            let full = bench.device("naa.1", 32);
            full.vm("a")
                .iops_when(move |s| 3_200.0 / moves(s))
                .davg_when(move |s| 10.0 * moves(s))
                .kavg(9.0);
            bench.device("naa.2", 64).vm("b").iops_when(|s| 900.0 + (s % 3) as f64).davg(quick_ms);
            let finding = bench.first(Cause::DeviceDepth, &Facts::default());
            (
                finding.changes[0].what.starts_with("Look at the policy (QoS)"),
                finding.do_not.join(" "),
            )
        };
        let (looks, not) = told(0.4);
        let expected = "Do not raise the depth before that: naa.1 takes 10.9 ms a command below the host (DAVG), naa.2 \
                        beside it 0.4.";
        assert!(looks && not.contains(expected), "{not}");
        assert!(!told(6.0).0);
    }

    #[test]
    fn an_array_that_is_quick_or_anothers_is_no_reason() {
        assert_ne!(lines(&hosts("naa.602000002a8a6553fc83abafc747b44f", 0.4)), 0);
        assert_ne!(lines(&hosts("naa.624a93704bfab20d4b694df7000143ac", 1.59)), 0);
    }
}
