//! SCSI reservation conflicts: another host holds the whole device for its metadata, and every
//! command of this one is refused and retried [src: elatov 2012-05-12].

use counters::Counter;

use super::{Case, Rank, Rule, changes, number};
use crate::{Cause, Device, Evidence, Finding, Flow, LevelKind, Queue, Spell, Threshold, mean};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::World,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, &[Counter::Conflicts, Counter::FailedCommands]],
    find,
};

/// Single samples of conflicts from which they come back, where the host holds commands in each.
const REPEATED: usize = 3;

fn find(case: &Case<'_>) -> Vec<Finding> {
    case.each_device(|device| {
        let collide = |sample| collide(device, sample) == Some(true);
        let bursts = |sample| collide(sample) && device.is_held(sample);
        let spell = device.spell(collide).or_else(|| {
            Spell::any(&device.busy, bursts).filter(|spell| spell.samples.len() >= REPEATED)
        })?;
        judge(case, device, &spell)
    })
}

/// Whether conflicts count in a sample, where they were measured. The lowest step [DRILL] is enough where the host holds
/// commands with slots free, for that is how conflicts show besides [ELA 2012-08].
pub(super) fn collide(device: &Device<'_>, sample: usize) -> Option<bool> {
    const KEY: Threshold = Threshold::ConflictsPerSecond;
    let conflicts = device.faults.conflicts_at(sample)?;
    let is_noticed = !device.limits.is_set(KEY) && conflicts >= KEY.info().flash;
    Some(conflicts >= device.limits.get(KEY) || is_noticed && device.is_held(sample))
}

fn judge(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Option<Finding> {
    let (name, samples) = (device.flow.name, &spell.samples);
    let conflicts = mean(device.faults.conflicts.over(samples))?;
    let mut finding = case.finding(Cause::ReservationConflicts, device.object(), spell);
    let failed = mean(device.faults.failed.over(samples)).filter(|failed| *failed > 0.0);
    let given_up = failed
        .map(|failed| format!(", and {} a second are given up and fail", number(failed)))
        .unwrap_or_default();
    finding.sentence = format!(
        "{} commands a second on {name} meet a SCSI reservation of another host and are retried{given_up}.",
        number(conflicts)
    );
    finding.standing = spell.mean(|sample| device.faults.retrying(sample))?;
    finding.evidence = Evidence::of([
        ("CONS/s", Some(conflicts), "1/s"),
        ("commands per second", device.flow.mean_rate(samples), "1/s"),
        ("DAVG", device.flow.per_command(samples, Flow::davg), "ms"),
        ("KAVG", device.flow.per_command(samples, Flow::kavg), "ms"),
        ("FCMDS/s", failed, "1/s"),
    ])
    .collect();
    finding.confidence = 0.95 * spell.weight();
    finding.raise_confidence = vec![format!(
        "`esxcli storage core device vaai status get -d {}`: ATS",
        changes::shell(name)
    )];
    finding.sufferers = device.tenants(samples);
    finding.changes = fix(case, name);
    finding.do_not =
        vec!["Do not change queue depths: a refused command is refused whatever they are.".into()];
    Some(finding)
}

fn fix(case: &Case<'_>, name: &str) -> Vec<crate::Change> {
    let rdm = changes::look(
        "If it is the RDM of a Windows cluster: mark it as perennially reserved on the passive hosts, where \
         the line says whether it is.",
        vec![format!("esxcli storage core device list -d {}", changes::shell(name))],
    )
    .risking("None for an RDM; never for a datastore.", "Unmark it");
    let mut fix = vec![
        changes::lock_by_ats(case.host, name, case.facts),
        changes::look(
            "Spread operations that lock the volume (power-on, snapshots, growing thin disks) \
             over time and over datastores.",
            Vec::new(),
        )
        .risking("What is spread is done later.", "Nothing to undo"),
    ];
    // Where it is known how a datastore there is locked, it is one.
    if case.facts.device(name).locks_by_scsi2.is_none() {
        fix.insert(1, rdm);
    }
    fix
}

#[cfg(test)]
mod tests {
    use counters::Counter;

    use crate::{Cause, Facts, fixture::Bench};

    #[test]
    fn conflicts_are_named() {
        let mut bench = Bench::new(6);
        let device = bench.device("naa.1", 64);
        device.counter(Counter::Conflicts, |_| 40.0);
        device.vm("a").iops(500.0).davg(4.0);
        bench.only(Cause::ReservationConflicts, &Facts::default());
    }

    /// Of 64 slots 1.5 are in use, and no sample has anything queued.
    #[test]
    fn what_conflicts_hold_is_no_queue_that_is_full_between_the_samples() {
        let mut bench = Bench::new(30);
        let device = bench.device("naa.1", 64);
        device.counter(Counter::Conflicts, |s| 50.0 + (s * 7 % 30) as f64);
        for (vm, rate) in [("a", 352.0), ("b", 154.0)] {
            let vm = device.vm(vm).iops_when(move |s| rate * (1.0 + 0.05 * (s % 4) as f64));
            vm.davg(3.0).kavg_when(|s| 15.0 + (s * 5 % 11) as f64).sampled(|_| 1);
        }
        let first = bench.first(Cause::ReservationConflicts, &Facts::default());
        assert!(first.sufferers.iter().any(|vm| vm.name == "a"));
        assert!(bench.findings().iter().all(|found| found.cause != Cause::DeviceDepth));
    }

    #[test]
    fn a_host_that_is_shut_out_has_load_however_little_it_completes() {
        // 32 commands are sent again every 60 ms, and given up after 4.8 s; some rows have none that ended.
        for (rate, failed) in [(10.0, 6.0), (6.4, 6.4), (0.4, 0.4), (0.0, 0.0)] {
            let mut bench = Bench::new(8);
            let device = bench.device("naa.1", 32);
            device.counter(Counter::Conflicts, |s| if s < 2 { 0.0 } else { 502.0 });
            device.counter(Counter::FailedCommands, move |s| if s < 2 { 0.0 } else { failed });
            device.counter(Counter::QueueLatency, |_| 0.0);
            let vm = device.vm("a").iops_when(move |s| if s < 2 { 900.0 } else { rate }).davg(2.0);
            vm.kavg_when(|s| if s < 2 { 0.0 } else { 4_800.0 }).sampled(|_| 0);
            let finding = bench.only(Cause::ReservationConflicts, &Facts::default());
            assert_eq!((finding.window.samples, finding.window.of), (6, 8), "{rate}");
            let is_told = finding.sentence.contains("a second are given up and fail");
            assert_eq!(is_told, failed > 0.0, "{}", finding.sentence);
        }
    }

    #[test]
    fn a_device_that_refuses_answers() {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", 32);
        device.counter(Counter::Conflicts, |s| if s < 2 { 0.0 } else { 133.0 });
        device.vm("a").iops_when(|s| if s < 2 { 900.0 } else { 0.0 }).davg(2.0).sampled(|_| 8);
        bench.only(Cause::ReservationConflicts, &Facts::default());
    }

    #[test]
    fn each_advice_says_what_it_may_cost() {
        let mut bench = Bench::new(6);
        let device = bench.device("naa.1", 64);
        device.counter(Counter::Conflicts, |_| 40.0);
        device.vm("a").iops(500.0).davg(4.0);
        for locks_by_scsi2 in [None, Some(false), Some(true)] {
            let mut facts = Facts::default();
            facts.devices.entry("naa.1".into()).or_default().locks_by_scsi2 = locks_by_scsi2;
            let finding = bench.only(Cause::ReservationConflicts, &facts);
            for change in &finding.changes {
                assert!(!change.risk.starts_with("None, it only"), "{change:?}");
                assert!(!change.risk.is_empty() && !change.undo.is_empty(), "{change:?}");
            }
        }
    }

    #[test]
    fn conflicts_while_the_host_holds_commands_are_no_iops_limit() {
        for (conflicts, queued_ms) in [(1.0, 0.01), (5.0, 0.01), (8.0, 40.0), (12.0, 40.0)] {
            let mut bench = Bench::new(20);
            let device = bench.device("naa.1", 64);
            device.counter(Counter::Conflicts, move |_| conflicts);
            device.counter(Counter::QueueLatency, move |_| queued_ms);
            device.vm("a").iops_when(|s| 490.0 + (s * 3 % 20) as f64).davg(3.0).kavg(40.0);
            bench.only(Cause::ReservationConflicts, &Facts::default());
        }
    }

    /// 590 a second of which 150 or 62 are refused: 9 or 3.7 commands wait for their retries, 3.5 are in slots.
    #[test]
    fn what_waits_for_retries_waits_for_no_slot() {
        for (conflicts, kavg) in [(150.0, 15.25), (62.0, 6.3), (500.0, 53.0)] {
            for depth in [32, 64] {
                let mut bench = Bench::new(8);
                let device = bench.device("naa.1", depth);
                device.counter(Counter::Conflicts, move |_| conflicts);
                for (vm, rate) in [("files", 560.0), ("web", 30.0)] {
                    let vm = device.vm(vm).iops_when(move |s| rate + (s * 3 % 20) as f64);
                    vm.davg(6.0).kavg(kavg).sampled(|s| s as u32 % 8 / 2);
                }
                bench.only(Cause::ReservationConflicts, &Facts::default());
            }
        }
    }

    /// 50 a second wait for retries, which are 3 commands, and 12 for slots; QAVG has both, or the slots alone.
    #[test]
    fn a_queue_that_is_full_beside_conflicts_is_named_by_what_waits_for_slots() {
        for qavg in [0.25, 0.2] {
            let mut bench = Bench::new(8);
            let device = bench.device("naa.1", 32);
            device.counter(Counter::Conflicts, |_| 50.0);
            device.counter(Counter::QueueLatency, move |_| qavg);
            for vm in ["a", "b"] {
                device.vm(vm).iops(30_000.0).davg(0.53).kavg(0.25);
            }
            let finding = bench.first(Cause::Dsnro, &Facts::default());
            let told = "12 commands wait 0.2 ms each";
            assert!(finding.sentence.contains(told), "{}", finding.sentence);
            bench.first(Cause::ReservationConflicts, &Facts::default());
        }
    }

    #[test]
    fn conflicts_that_come_back_in_single_samples_are_named() {
        let mut bench = Bench::new(30);
        let device = bench.device("naa.1", 64);
        device.counter(Counter::Conflicts, |s| if s % 3 == 0 { 15.0 } else { 0.0 });
        let vm = device.vm("a").iops_when(|s| 490.0 + (s * 3 % 20) as f64).davg(3.0);
        vm.kavg_when(|s| if s % 3 == 0 { 60.0 } else { 0.02 }).sampled(|_| 2);
        let finding = bench.only(Cause::ReservationConflicts, &Facts::default());
        assert_eq!(finding.window.samples, 10);
    }

    #[test]
    fn few_conflicts_are_named_where_the_host_holds_commands_meanwhile() {
        let mut bench = Bench::new(6);
        let device = bench.device("naa.1", 256);
        device.counter(Counter::Conflicts, |_| 3.0);
        device.counter(Counter::QueueLatency, |_| 0.0);
        device.vm("a").iops(690.0).davg(5.0).kavg(5.1).sampled(|_| 4);
        bench.only(Cause::ReservationConflicts, &Facts::default());
    }
}
