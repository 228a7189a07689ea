//! Storage I/O Control: the datastore is congested, and each host's depth follows its shares and
//! the common latency, never above the device's own [ELA 2012-07].

use super::{Case, Rank, Rule, adaptive_throttling, changes, iops_limit, number, one_step};
use crate::{
    Cause, Device, Evidence, Finding, Flow, LevelKind, Motion, Queue, Spell, Threshold, Vdisk,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Device,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, Vdisk::COUNTERS],
    find,
};

/// How often the depth must have changed: Storage I/O Control sets a new one every few seconds
/// [ELA 2012-07], a person does not. In a few samples twice is as often.
const CHANGES: usize = 3;
const FEW: usize = 12;

/// Whether it is known to be what lowers a device's depth.
pub(super) fn lowers(case: &Case<'_>, device: &Device<'_>) -> bool {
    let facts = case.facts.device(device.flow.name);
    let is_lower =
        |depth: u32| device.queue.dqlen.over(&device.busy).any(|dqlen| dqlen < f64::from(depth));
    facts.sioc == Some(true) && facts.max_queue_depth.is_some_and(is_lower)
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    case.each_device(|device| {
        let facts = case.facts.device(device.flow.name);
        if let Some(depth) = facts.sioc_depth {
            return on_nfs(case, device, depth);
        }
        if let Some(base) = facts.max_queue_depth.map(f64::from).filter(|_| lowers(case, device)) {
            let is_held = |sample: usize| {
                device.queue.dqlen.at(sample) < Some(base)
                    && device.flow.waiting(sample) >= Some(1.0)
            };
            return judge(case, device, base, &device.spell(is_held)?);
        }
        if let Some(finding) = one_step::judge(case, device, Cause::Sioc) {
            return Some(finding);
        }
        if facts.sioc == Some(false)
            || device.motion() != Motion::Moving
            || adaptive_throttling::applies(case, device)
        {
            return None;
        }
        let mut depths: Vec<f64> = device.queue.dqlen.over(&device.busy).collect();
        let samples = depths.len();
        depths.dedup();
        let least = if samples <= FEW { CHANGES - 1 } else { CHANGES };
        if depths.len() <= least {
            return None;
        }
        let base = device.deepest()?;
        // Without throttling nothing else moves it by itself.
        let is_sure = facts.queue_full_sample_size == Some(0) || facts.sioc == Some(true);
        let every: Vec<f64> = device.queue.dqlen.over(&device.busy).collect();
        let threshold = match is_sure || adaptive_throttling::hovers(&every) {
            true => adaptive_throttling::least_congestion_ms(),
            false => device.limits.get(Threshold::CongestionMs),
        };
        let is_congested = |s: usize| device.flow.davg(s) >= Some(threshold);
        let is_lower = |sample: &usize| device.queue.dqlen.at(*sample) < Some(base);
        let spell = device.spell(is_congested)?;
        spell.samples.iter().any(is_lower).then_some(())?;
        judge(case, device, base, &spell)
    })
}

/// An NFS volume of which more is outstanding than it is known to have out at a time, without what waits for
/// limits of its own: its rows have neither DQLEN nor what waits, and GAVG has both parts.
pub(super) fn full_on_nfs(
    case: &Case<'_>,
    cause: Cause,
    device: &Device<'_>,
    depth: u32,
) -> Option<(Finding, Spell)> {
    let held: f64 = iops_limit::waiting_for_limits(case, device).values().sum();
    let waiting = |sample: usize| Some(device.flow.outstanding(sample)? - f64::from(depth) - held);
    let spell = device.spell(|sample| waiting(sample) >= Some(1.0))?;
    let mut finding = case.finding(cause, device.object(), &spell);
    finding.standing = spell.mean(waiting)?;
    finding.evidence = super::latency_evidence(device, &spell);
    finding.evidence.push(Evidence::new("lowest depth", depth.into(), ""));
    finding.sufferers = super::sufferers(case, device, &spell);
    Some((finding, spell))
}

fn on_nfs(case: &Case<'_>, device: &Device<'_>, depth: u32) -> Option<Finding> {
    let (mut finding, spell) = full_on_nfs(case, Cause::Sioc, device, depth)?;
    let gavg = device.flow.per_command(&spell.samples, Flow::davg)?;
    finding.sentence = format!(
        "Storage I/O Control has cut what {} may have out to as few as {} commands: the datastore is congested \
         ({} ms GAVG, with what they wait in the host) and the hosts share what the server can do.",
        device.flow.name,
        number(depth.into()),
        number(gavg)
    );
    advise(case, device, &mut finding, &spell);
    Some(finding)
}

fn judge(case: &Case<'_>, device: &Device<'_>, base: f64, spell: &Spell) -> Option<Finding> {
    let (name, samples) = (device.flow.name, &spell.samples);
    let davg = device.flow.per_command(samples, Flow::davg)?;
    let (mut finding, lowest) = case.moved_depth(Cause::Sioc, device, base, spell)?;
    let rests = samples.iter().all(|sample| device.queue.dqlen.at(*sample) == Some(lowest));
    let does = match rests {
        true => format!("holds the depth of {name} at {} of {}", number(lowest), number(base)),
        false => {
            format!("moves the depth of {name} between {} and {}", number(lowest), number(base))
        }
    };
    finding.sentence = format!(
        "Storage I/O Control {does}: the datastore is congested ({} ms DAVG) and the hosts share \
         what the array can do.",
        number(davg)
    );
    advise(case, device, &mut finding, spell);
    Some(finding)
}

/// How sure it is, what else is known of it, and what to do.
fn advise(case: &Case<'_>, device: &Device<'_>, finding: &mut Finding, spell: &Spell) {
    let facts = case.facts.device(device.flow.name);
    let known = [("congestion threshold", facts.congestion_ms, "ms")];
    finding.evidence.extend(Evidence::of(known));
    if facts.sioc == Some(true) {
        finding.confidence = 0.98;
    } else {
        finding.confidence = 0.7 * spell.weight();
        finding.raise_confidence = vec![
            "siocActiveTimePercentage of the datastore in vCenter, or /var/log/storagerm.log"
                .into(),
        ];
    }
    if facts.external_workloads > 0 {
        let times = f64::from(facts.external_workloads);
        finding.evidence.push(Evidence::new("external workload told of, times", times, ""));
        finding.sentence.push_str(
            " Hosts held back and the latency stayed: somebody else uses what is behind it.",
        );
        finding.changes = vec![changes::look(
            "Find who uses the disks behind the datastore beside its hosts (another volume on the same \
             disks, a backup, a host outside), and keep it off or limit it.",
            Vec::new(),
        )
        .risking("Whoever is limited is slower.", "Lift the limit again")];
    }
    finding.changes.push(changes::look(
        "Bring the datastore below its congestion threshold: move load elsewhere, or set shares \
         and limits so that the right VMs get the slots.",
        Vec::new(),
    )
    .risking("Whoever has fewer shares waits longer.", "Set shares and limits back"));
    finding.do_not = vec![
        "Do not raise DSNRO: Storage I/O Control ignores it.".into(),
        "Do not raise the congestion threshold above 50 ms to get the depth back: that buys latency \
         and no throughput."
            .into(),
    ];
}

#[cfg(test)]
mod tests {
    use counters::{Counter, Entity, Kind, Recording};
    use levels::Measured;

    use crate::{Cause, DeviceFacts, Facts, Thresholds, diagnose, fixture::Bench};

    #[test]
    fn a_depth_that_halves_and_comes_back_while_the_device_is_slow_is_sioc() {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", 64);
        device.depth(|s| [64, 64, 23, 20, 17, 19, 64, 64][s]);
        let is_slow = |s: usize| (2..6).contains(&s);
        let davg = move |s: usize| if is_slow(s) { 40.0 } else { 0.4 };
        let vm = device.vm("a").iops_when(move |s| if is_slow(s) { 480.0 } else { 9_000.0 });
        vm.davg_when(davg).kavg_when(move |s| if is_slow(s) { 30.0 } else { 0.0 });
        bench.first(Cause::Sioc, &Facts::default());
    }

    #[test]
    fn a_depth_that_follows_a_high_latency_is_sioc() {
        let mut bench = Bench::new(10);
        let device = bench.device("naa.1", 64);
        device.depth(|s| [64, 58, 52, 47, 44, 42, 41, 43, 45, 44][s]);
        device.vm("a").iops(1_500.0).davg(32.0).kavg(12.0);
        let finding = bench.first(Cause::Sioc, &Facts::default());
        assert!(finding.sentence.contains("between 41 and 64"), "{}", finding.sentence);
    }

    /// Where it is known to be on, it is what lowers the depth, whatever the latency and however still.
    #[test]
    fn where_it_is_known_to_be_on_a_low_depth_is_its() {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", 10);
        for vm in ["a", "b"] {
            device.vm(vm).iops(385.0).davg(13.0).kavg(74.0);
        }
        let known = |sioc| DeviceFacts {
            max_queue_depth: Some(64),
            sioc: Some(sioc),
            ..DeviceFacts::default()
        };
        let facts = |sioc| Facts {
            devices: [("naa.1".to_owned(), known(sioc))].into(),
            ..Facts::default()
        };
        let finding = bench.first(Cause::Sioc, &facts(true));
        assert!(finding.sentence.contains("at 10 of 64"), "{}", finding.sentence);
        // Nor does it contradict what is known that DSNRO is another.
        let mut known = facts(true);
        known.devices.get_mut("naa.1").unwrap().dsnro = Some(32);
        let verdict = bench.diagnose(&Thresholds::default(), &known);
        assert!(verdict.disagreements.is_empty(), "{:?}", verdict.disagreements);
        assert_eq!(verdict.findings[0].cause, Cause::Sioc);
        let off = bench.diagnose(&Thresholds::default(), &facts(false));
        assert!(off.findings.iter().all(|other| other.cause != Cause::Sioc));
    }

    /// An NFS volume has neither DQLEN nor what waits in its rows: what is known tells.
    #[test]
    fn where_it_is_known_to_cut_an_nfs_volume_it_is_named_with_who_is_outside() {
        let findings = |sioc_depth| {
            let mut recording = Recording::new("esx1".into());
            recording.times_ms = (0..12).map(|sample| 5_000 * sample).collect();
            let volume = recording.add_entity(Entity::new(Kind::NfsVolume, "nfs1".into()));
            recording.set_constant(volume, Counter::Commands, 1_000.0, 12);
            recording.set_constant(volume, Counter::GuestLatency, 48.0, 12);
            let known = DeviceFacts {
                sioc: Some(true),
                sioc_depth,
                congestion_ms: Some(30.0),
                external_workloads: 3,
                ..DeviceFacts::default()
            };
            let facts = Facts { devices: [("nfs1".to_owned(), known)].into(), ..Facts::default() };
            diagnose(&Measured::of(recording), &Thresholds::default(), &facts).findings
        };
        let found = findings(Some(31));
        let sioc = found.iter().find(|finding| finding.cause == Cause::Sioc).unwrap();
        assert!(sioc.sentence.contains("nfs1 may have out to as few as 31"), "{}", sioc.sentence);
        assert!(sioc.sentence.contains("somebody else"), "{}", sioc.sentence);
        assert_eq!(sioc.standing.round(), 17.0);
        let evidence =
            |label| sioc.evidence.iter().find(|one| one.label == label).map(|one| one.value);
        assert_eq!(evidence("congestion threshold"), Some(30.0));
        assert_eq!(evidence("external workload told of, times"), Some(3.0));
        assert!(findings(None).iter().all(|finding| finding.cause != Cause::Sioc));
    }

    #[test]
    fn two_changes_within_a_few_samples_are_sioc_too() {
        let mut bench = Bench::new(5);
        let device = bench.device("naa.1", 64);
        device.depth(|s| [12, 6, 6, 6, 8][s]);
        let inside = |s: usize| [12.0, 6.0, 6.0, 6.0, 8.0][s];
        let davg = |s: usize| [91.0, 59.0, 36.0, 39.0, 26.0][s];
        let vm = device.vm("a").iops_when(move |s| inside(s) / davg(s) * 1_000.0);
        vm.davg_when(davg).kavg_when(move |s| 43.0 / inside(s) * davg(s));
        assert!(bench.findings().iter().any(|finding| finding.cause == Cause::Sioc));
    }

    #[test]
    fn a_depth_that_is_halved_from_one_slow_sample_is_sioc() {
        let mut bench = Bench::new(7);
        let device = bench.device("naa.1", 64);
        device.depth(|s| [13, 7, 8, 9, 12, 10, 12][s]);
        let inside = |s: usize| [13.0, 7.0, 8.0, 9.0, 12.0, 10.0, 12.0][s];
        let davg = |s: usize| [85.0, 66.0, 34.0, 30.0, 25.0, 40.0, 26.0][s];
        let vm = device.vm("a").iops_when(move |s| inside(s) / davg(s) * 1_000.0);
        vm.davg_when(davg).kavg_when(move |s| 45.0 / inside(s) * davg(s));
        let findings = bench.findings();
        assert!(findings.iter().any(|finding| finding.cause == Cause::Sioc));
        assert!(findings.iter().all(|finding| finding.cause != Cause::AdaptiveThrottling));
    }

    #[test]
    fn another_depth_in_each_of_three_slow_samples_is_sioc() {
        let mut bench = Bench::new(3);
        let device = bench.device("naa.1", 64);
        device.depth(|s| [52, 40, 38][s]);
        for vm in ["a", "b"] {
            device.vm(vm).iops(500.0).davg(40.0).kavg(26.0);
        }
        bench.first(Cause::Sioc, &Facts::default());
        assert!(bench.findings().iter().all(|finding| finding.cause != Cause::Dsnro));
    }
}
