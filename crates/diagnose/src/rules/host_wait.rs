//! Commands that the host holds for no queue that the capture shows: KAVG is above 3 ms [ELA 6.4]
//! while slots are free and the rate is no limit's.
//!
//! What is known to do that leaves no trace in the columns of a default capture: reservation
//! conflicts, on the passive host of a cluster above all, retries after BUSY, and a VMkernel that
//! gets no CPU (reference, `esxi-host-stack.md` section 8, question 7).

use counters::Counter;

use super::{Case, Rank, Rule, changes, iops_limit, number, queue_evidence, reservations};
use crate::{Cause, Device, Finding, Flow, LevelKind, Queue, Spell, Threshold, Vdisk, little};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Held,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, Vdisk::COUNTERS, &[Counter::Conflicts]],
    find,
};

/// Part of the samples that says what the others are.
const MOSTLY: f64 = 0.5;

fn find(case: &Case<'_>) -> Vec<Finding> {
    let unexplained =
        |device: &Device<'_>| device.full.is_none() && !iops_limit::applies(case, device);
    case.each_device(|device| {
        let spell = spell(device).filter(|_| unexplained(device))?;
        judge(case, device, &spell)
    })
}

/// The samples in which commands are held for as long as a slow array takes; in the mean of the
/// recording they count however they are spread. Where most of those that are held meet conflicts, a
/// sample that met none is no riddle.
fn spell(device: &Device<'_>) -> Option<Spell> {
    let flow = &device.flow;
    let held = Spell::any(&device.busy, |sample| device.is_held(sample))?;
    if held.share(|sample| reservations::collide(device, sample) == Some(true)) >= MOSTLY {
        return None;
    }
    let is_unexplained =
        |s: usize| device.is_held(s) && reservations::collide(device, s) == Some(false);
    let mean_ms = flow.per_command(&device.busy, |_, sample| device.held_ms(sample));
    let is_long_in_the_mean = mean_ms >= Some(device.limits.get(Threshold::HeldMs));
    device
        .spell(is_unexplained)
        .or_else(|| Spell::any(&device.busy, is_unexplained).filter(|_| is_long_in_the_mean))
}

fn judge(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Option<Finding> {
    let (flow, name) = (&device.flow, device.flow.name);
    let kavg = flow.per_command(&spell.samples, Flow::kavg)?;
    let mut finding = case.finding(Cause::HostWait, device.object(), spell);
    finding.sentence = format!(
        "Commands to {name} are held for {} ms each in the host (KAVG), for no queue that the \
         capture shows: slots are free.",
        number(kavg)
    );
    finding.standing = spell.mean(|s| Some(little(flow.rate(s)?, flow.kavg(s)?)))?;
    finding.evidence = queue_evidence(device, spell);
    finding.confidence = 0.7 * spell.weight();
    finding.raise_confidence = vec![
        "CONS/s, which `esxtop -b -a` records".into(),
        "%RDY and %CSTP of the VMs in the same window".into(),
    ];
    finding.sufferers = device.tenants(&spell.samples);
    finding.changes = vec![changes::look(
        "Look for what holds commands without a queue: reservation conflicts, BUSY and retries of \
         this device in vmkernel.log, and a host short of CPU.",
        vec![format!("esxcli storage core device stats get -d {}", changes::shell(name))],
    )];
    finding.do_not =
        vec!["Do not raise queue depths: the device has slots to spare already.".into()];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use counters::Counter;

    use crate::{Cause, Facts, fixture::Bench};

    #[test]
    fn nothing_is_wrong_stands_beside_no_mean_of_137_ms_in_the_host() {
        let mut bench = Bench::new(8);
        let rate = |sample: usize| 60.0 + 25.0 * (sample % 3) as f64;
        let vm = bench.device("naa.1", 64).vm("a").iops_when(rate);
        vm.davg(1.0).kavg(137.0).sampled(|_| 9);
        bench.only(Cause::HostWait, &Facts::default());
    }

    #[test]
    fn what_conflicts_hold_is_no_riddle_in_the_samples_that_do_not_show_them() {
        let mut bench = Bench::new(20);
        let device = bench.device("naa.1", 256);
        device.counter(Counter::Conflicts, |s| [4.0, f64::NAN, 3.0, 0.0, 5.0][s % 5]);
        device.counter(Counter::QueueLatency, |_| 0.0);
        device.vm("a").iops(350.0).davg(0.5).kavg(9.0).sampled(|_| 1);
        bench.only(Cause::ReservationConflicts, &Facts::default());
    }

    #[test]
    fn a_little_time_in_the_host_is_its_own() {
        let mut bench = Bench::new(8);
        let rate = |sample: usize| 400.0 + 90.0 * (sample % 3) as f64;
        bench.device("naa.1", 64).vm("a").iops_when(rate).davg(0.5).kavg(2.5).sampled(|_| 1);
        assert!(bench.findings().is_empty());
    }

    #[test]
    fn time_in_the_host_without_a_queue_is_no_limit_however_flat_the_rate() {
        let mut bench = Bench::new(6);
        let device = bench.device("naa.1", 128);
        device.counter(Counter::QueueLatency, |_| 0.0);
        device.vm("a").iops(400.0).davg(2.5).kavg(27.0).sampled(|_| 1);
        bench.only(Cause::HostWait, &Facts::default());
    }

    #[test]
    fn a_sample_with_a_full_queue_is_no_riddle() {
        let mut bench = Bench::new(20);
        let burst = |quiet: f64, full: f64| move |s: usize| if s == 9 { full } else { quiet };
        let vm = bench.device("naa.1", 64).vm("a").iops_when(burst(500.0, 600.0));
        vm.davg_when(burst(6.0, 107.0)).kavg_when(burst(0.0, 107.0));
        assert!(bench.findings().iter().all(|finding| finding.cause != Cause::HostWait));
    }
}
