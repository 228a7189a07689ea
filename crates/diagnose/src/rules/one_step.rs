//! A depth that fell once and stays, though the same VMs competed above it before: DSNRO would have held them
//! there from the beginning [S1]. Storage I/O Control and adaptive throttling lower a depth while VMs compete, and
//! so does who sets one; of one step no row tells which.

use knobs::{CONGESTION_MS, DSNRO};

use super::{Case, LASTING, changes, number};
use crate::{Cause, Device, Finding, Flow, Spell};

/// How sure the cause is that is named first.
const LIKELY: f64 = 0.6;

/// The limits before and after the step, and what may have made it, the likeliest first; `None` where a source
/// tells what the limits are, or where none of the two may have. Nor where it is to DSNRO's default, for which
/// nobody has to set anything, and few rows show VMs that compete above it: one may show a limit that has just ended [S1].
fn step(case: &Case<'_>, device: &Device<'_>) -> Option<((f64, f64), Vec<Cause>)> {
    let facts = case.facts.device(device.flow.name);
    let (high, low, competed) = device.falls_beside_competition()?;
    let is_told = facts.dsnro.or(facts.dsnro_at_end).or(facts.max_queue_depth_at_end).is_some()
        || facts.max_queue_depth.is_some_and(|depth| f64::from(depth) <= low);
    let davg_ms = device.flow.per_command(&device.busy, Flow::davg);
    let is_possible = |cause: &Cause| match cause {
        Cause::Sioc => {
            facts.sioc != Some(false) && davg_ms >= Some(f64::from(*CONGESTION_MS.start()))
        }
        _ => facts.queue_full_sample_size != Some(0),
    };
    let causes = [Cause::Sioc, Cause::AdaptiveThrottling].into_iter().filter(is_possible);
    let causes: Vec<Cause> = causes.collect();
    let is_default = low == f64::from(DSNRO.default) && competed < LASTING;
    (!is_told && !is_default && !causes.is_empty()).then_some(((high, low), causes))
}

/// Whether a device's depth was lowered so.
pub(super) fn is_there(case: &Case<'_>, device: &Device<'_>) -> bool {
    step(case, device).is_some()
}

/// The finding about it, where this cause is the likeliest.
pub(super) fn judge(case: &Case<'_>, device: &Device<'_>, cause: Cause) -> Option<Finding> {
    let ((high, low), causes) = step(case, device)?;
    let is_lower = |sample: usize| {
        device.queue.dqlen.at(sample) == Some(low) && device.flow.waiting(sample) >= Some(1.0)
    };
    let spell = Spell::any(&device.busy, is_lower).filter(|_| causes.first() == Some(&cause))?;
    let name = device.flow.name;
    let (mut finding, _) = case.moved_depth(cause, device, high, &spell)?;
    let may = |cause: &Cause| match cause {
        Cause::Sioc => "Storage I/O Control",
        _ => "adaptive throttling",
    };
    let may: Vec<&str> = causes.iter().map(may).collect();
    finding.sentence = format!(
        "The depth of {name} falls from {} to {} while the same VMs competed as before, so it is no DSNRO that was \
         there before: {}, or somebody who set DSNRO or the device's depth meanwhile. Of one step the rows do not tell \
         which. {} commands wait.",
        number(high),
        number(low),
        may.join(" or "),
        number(finding.standing)
    );
    finding.confidence = LIKELY * spell.weight();
    let list = changes::show_device(name);
    finding.raise_confidence = vec![
        "a longer recording: Storage I/O Control and throttling go on moving the depth".into(),
        "siocActiveTimePercentage of the datastore in vCenter".into(),
        format!("DSNRO, Device Max Queue Depth and \"Queue Full Sample Size\" in `{list}`"),
    ];
    let what =
        "See what lowered the depth before anything is set: what it was and is, the line shows.";
    finding.changes = vec![changes::look(what, vec![list])];
    finding.do_not = vec![
        "Do not raise DSNRO on this alone: Storage I/O Control ignores it, and what throttles the depth would \
         do so again."
            .into(),
    ];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use crate::{Cause, DeviceFacts, Facts, Finding, Thresholds, fixture::Bench};

    /// Two equal VMs with 160 commands out on a device of those limits.
    fn two_vms(depths: &'static [u32], davg_ms: f64) -> Bench {
        let mut bench = Bench::new(depths.len());
        let device = bench.device("naa.1", 128).depth(|s| depths[s]);
        for vm in ["a", "b"] {
            let iops = move |s: usize| f64::from(depths[s]) / davg_ms * 500.0;
            let waits =
                move |s: usize| (160.0 - f64::from(depths[s])) * davg_ms / f64::from(depths[s]);
            device.vm(vm).iops_when(iops).davg(davg_ms).kavg_when(waits);
        }
        bench
    }

    fn first(bench: &Bench, facts: &Facts) -> Finding {
        bench.diagnose(&Thresholds::default(), facts).findings.swap_remove(0)
    }

    #[test]
    fn one_step_down_beside_the_same_competition_is_no_dsnro() {
        for depths in
            [&[128, 59, 59][..], &[128, 128, 59, 59], &[64, 38, 38], &[64, 64, 64, 45, 45]]
        {
            for (davg_ms, cause) in [(9.0, Cause::Sioc), (1.0, Cause::AdaptiveThrottling)] {
                let finding = first(&two_vms(depths, davg_ms), &Facts::default());
                assert_eq!(finding.cause, cause, "{depths:?}: {}", finding.sentence);
                assert!(finding.confidence <= 0.65, "{depths:?}: {}", finding.confidence);
                assert!(finding.changes.iter().all(|change| change.steps.is_empty()));
                assert!(finding.sentence.contains("adaptive throttling"), "{}", finding.sentence);
            }
        }
    }

    #[test]
    fn to_the_default_of_dsnro_it_is_told_where_more_than_a_few_rows_show_competition_above_it() {
        let cause = |depths| first(&two_vms(depths, 9.0), &Facts::default()).cause;
        assert_eq!(cause(&[64, 64, 64, 64, 32, 32, 32]), Cause::Sioc);
        assert_eq!(cause(&[64, 64, 32, 32]), Cause::Dsnro);
    }

    /// One VM sends 32 commands for each of the other, which have 128 slots together and then 59.
    #[test]
    fn nor_is_it_beside_one_that_sends_a_few_all_the_time() {
        let mut bench = Bench::new(3);
        let device = bench.device("naa.1", 128).depth(|s| [128, 59, 59][s]);
        let big = device.vm("big").iops_when(|s| [7_312.5, 6_533.5, 6_615.5][s]);
        big.davg_when(|s| [16.96, 8.58, 8.34][s]).kavg_when(|s| [0.54, 11.06, 11.04][s]);
        let small = device.vm("small").iops_when(|s| [233.0, 462.0, 470.5][s]);
        small.davg_when(|s| [17.22, 8.51, 8.34][s]).kavg(0.15);
        let finding = first(&bench, &Facts::default());
        assert_eq!(finding.cause, Cause::Sioc, "{}", finding.sentence);
    }

    #[test]
    fn where_competition_began_with_the_lower_depth_it_is_dsnro() {
        let mut bench = Bench::new(4);
        let device = bench.device("naa.1", 128).depth(|s| [128, 128, 48, 48][s]);
        device.vm("a").iops(3_000.0).davg(9.0).kavg_when(|s| if s < 2 { 0.0 } else { 30.0 });
        device.vm("b").iops_when(|s| if s < 2 { 0.0 } else { 2_000.0 }).davg(9.0).kavg(30.0);
        let finding = bench.first(Cause::Dsnro, &Facts::default());
        assert!(finding.sentence.contains("falls from 128 to 48"), "{}", finding.sentence);
    }

    #[test]
    fn what_is_told_of_the_limits_decides() {
        let known =
            DeviceFacts { max_queue_depth: Some(128), dsnro: Some(59), ..DeviceFacts::default() };
        let facts = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
        assert_eq!(first(&two_vms(&[128, 59, 59], 9.0), &facts).cause, Cause::Dsnro);
    }
}
