//! Where the depths that esxcli says of a device are not those that the recording shows: the output
//! is of another time, or something lowers the depth. The recording is true of its own time, so the
//! findings rest on it alone, and nothing is to be set before both are of one time.

use counters::Kind;
use knobs::Setting;

use crate::{Cause, Change, Device, DeviceFacts, Facts, Finding, Host, Motion, changes, number};

/// A device on which a recording and esxcli disagree.
pub(crate) struct Disagreement {
    device: String,
    /// What says what.
    pub(crate) sentence: String,
}

/// How sure a finding about a depth may be while it is not known which limit made it.
const UNSURE: f64 = 0.6;

/// What a recording contradicts, which is taken out of the facts.
pub(crate) fn take_out(host: &Host<'_>, facts: &mut Facts) -> Vec<Disagreement> {
    let judge = |device: &Device<'_>| {
        let known = facts.devices.get_mut(device.flow.name)?;
        let (shown, alone) = match contradicting(device, known) {
            Some(shown) => (shown, None),
            None => lower_for_one(device, known)?,
        };
        let sentence = sentence(device.flow.name, shown, alone, known);
        (known.max_queue_depth, known.dsnro) = (None, None);
        Some(Disagreement { device: device.flow.name.into(), sentence })
    };
    host.busy_devices().filter_map(judge).collect()
}

/// A DQLEN that cannot be, as far as it is known what sets it: it is never above the device's depth
/// [S0], and where it stays below that it is DSNRO [S1], unless the depth of a protocol endpoint,
/// adaptive throttling, Storage I/O Control or a depth found by latency is in force.
fn contradicting(device: &Device<'_>, known: &DeviceFacts) -> Option<f64> {
    let most = f64::from(known.max_queue_depth?);
    let deepest = device.deepest()?;
    if deepest > most {
        return Some(deepest);
    }
    let lowest = match device.motion() {
        Motion::Steady => deepest,
        Motion::TwoLevels { low, .. } => low,
        Motion::Moving => return None,
    };
    let is_other = is_throttled(known) || has_other_limit(known) || known.sioc == Some(true);
    let dsnro = f64::from(known.dsnro.filter(|_| !is_other)?);
    // What DSNRO was before it was set is not what esxcli says now.
    let was = device.full.as_ref().and_then(|full| full.was);
    let mut shown = [lowest, deepest].into_iter().filter(|depth| Some(*depth) != was);
    shown.find(|depth| ![dsnro, most].contains(depth))
}

/// A DQLEN that stays below the device's depth while one VM alone has commands there, and that VM: DSNRO has no
/// say then [S0, S1]. Who knows whether Storage I/O Control is on knows the host itself, which an output of
/// esxcli does not, and what competes there.
fn lower_for_one(device: &Device<'_>, known: &DeviceFacts) -> Option<(f64, Option<String>)> {
    let deepest = device.deepest().filter(|_| device.motion() == Motion::Steady)?;
    let is_other = is_throttled(known) || has_other_limit(known) || known.sioc.is_some();
    let is_lower = deepest < f64::from(known.max_queue_depth?);
    let vm = device.only_vm(&device.busy)?;
    (is_lower && !is_other).then_some((deepest, Some(vm)))
}

/// Whether adaptive throttling, or the latency, sets its depth.
fn is_throttled(known: &DeviceFacts) -> bool {
    known.finds_depth || known.queue_full_sample_size.is_some_and(|size| size > 0)
}

/// Whether the host's option for protocol endpoints does.
fn has_other_limit(known: &DeviceFacts) -> bool {
    known.is_protocol_endpoint && known.has_own_dsnro != Some(true)
}

fn sentence(name: &str, shown: f64, alone: Option<String>, known: &DeviceFacts) -> String {
    let says = [
        ("Device Max Queue Depth", known.max_queue_depth),
        ("No of outstanding IOs with competing worlds", known.dsnro),
    ];
    let says = says.into_iter().filter_map(|(key, value)| Some(format!("\"{key}: {}\"", value?)));
    let whose = alone.map_or(String::new(), |vm| {
        format!(" while {vm} is the one VM that has commands there, so that DSNRO has no say")
    });
    format!(
        "DQLEN of {name} is {} in this capture{whose}, and the output of esxcli says {}: it is of \
         another time, or something lowered the depth. The capture is true of its own time and is \
         judged alone.",
        number(shown),
        says.collect::<Vec<_>>().join(" and ")
    )
}

/// What findings about the depth of such a device say of it, instead of lines that may set it lower
/// than it is today.
pub(crate) fn tell(disagreements: &[Disagreement], finding: &mut Finding) {
    let is_its =
        |disagreement: &Disagreement| finding.at.is_row(Kind::Device, &disagreement.device);
    let is_of_depth = |change: &Change| {
        change.steps.iter().any(|step| {
            matches!(
                step.set,
                Setting::SchedNumReqOutstanding { .. }
                    | Setting::MaxQueueDepth { .. }
                    | Setting::ModuleDepth { .. }
            )
        })
    };
    if !disagreements.iter().any(is_its) || !finding.changes.iter().any(is_of_depth) {
        return;
    }
    finding.changes.retain(|change| !is_of_depth(change));
    let what = format!(
        "See what limits {} today before anything is set: it may be deeper already.",
        finding.at.name
    );
    finding.changes.insert(0, changes::look(what, vec![changes::show_device(&finding.at.name)]));
    if finding.cause != Cause::NoisyNeighbour {
        finding.confidence = finding.confidence.min(UNSURE);
    }
    let list = changes::show_device(&finding.at.name);
    finding
        .raise_confidence
        .insert(0, format!("`{list}` of the same time: the one given disagrees with DQLEN"));
}

#[cfg(test)]
mod tests {
    use crate::{Cause, DeviceFacts, Facts, Thresholds, fixture::Bench};

    fn facts(max_queue_depth: u32, dsnro: u32) -> Facts {
        let depths = (Some(max_queue_depth), Some(dsnro));
        let device =
            DeviceFacts { max_queue_depth: depths.0, dsnro: depths.1, ..DeviceFacts::default() };
        Facts { devices: [("naa.1".into(), device)].into(), ..Facts::default() }
    }

    /// A queue of 64 that is full all the time.
    fn full() -> Bench {
        let mut bench = Bench::new(6);
        bench.device("naa.1", 64).vm("a").iops(20_000.0).davg(3.2).kavg(3.0);
        bench
    }

    #[test]
    fn a_full_queue_stays_a_finding_whatever_esxcli_says_of_another_time() {
        for (depth, dsnro) in [(128, 32), (32, 32), (256, 128)] {
            let verdict = full().diagnose(&Thresholds::default(), &facts(depth, dsnro));
            let finding = &verdict.findings[0];
            assert_eq!(finding.cause, Cause::DeviceDepth, "{depth}");
            assert!(finding.changes.iter().all(|change| change.steps.is_empty()), "{depth}");
            let advice = verdict.advice.unwrap();
            assert!(advice.contains("disagrees with DQLEN"), "{advice}");
            assert_eq!(verdict.disagreements.len(), 1);
            assert!(verdict.disagreements[0].contains("\"Device Max Queue Depth: "));
        }
    }

    #[test]
    fn depths_that_agree_are_no_disagreement() {
        let mut shared = Bench::new(6);
        let device = shared.device("naa.1", 64);
        for vm in ["a", "b"] {
            device.vm(vm).iops(10_000.0).davg(3.2).kavg(3.0);
        }
        for (bench, depth, dsnro) in [(full(), 64, 32), (shared, 128, 64)] {
            let verdict = bench.diagnose(&Thresholds::default(), &facts(depth, dsnro));
            assert!(verdict.disagreements.is_empty(), "{depth}");
        }
    }

    /// What a capture is made of.
    type Made<'a> = &'a dyn Fn(&mut Bench);

    #[test]
    fn dsnro_holds_no_vm_that_is_alone() {
        let alone = |bench: &mut Bench| {
            bench.device("naa.1", 32).vm("a").iops(16_000.0).davg(2.0).kavg(2.0);
        };
        let beside = |bench: &mut Bench| {
            let device = bench.device("naa.1", 32);
            device.vm("a").iops(15_000.0).davg(2.0).kavg(2.0);
            device.vm("b").iops(1_000.0).davg(2.0).kavg(2.0);
        };
        let cut = |bench: &mut Bench| {
            let device = bench.device("naa.1", 32);
            device.vm("a").iops(15_000.0).davg(2.0).kavg(2.0);
            device.vm("b").iops(1_000.0).davg(2.0).kavg(2.0).cut_out();
        };
        let known = |facts: DeviceFacts| Facts {
            devices: [("naa.1".into(), facts)].into(),
            ..Facts::default()
        };
        let both = || facts(64, 32).devices["naa.1"].clone();
        let cases: [(&str, Made<'_>, DeviceFacts, Cause); 5] = [
            ("alone", &alone, both(), Cause::DeviceDepth),
            ("DSNRO not told", &alone, DeviceFacts { dsnro: None, ..both() }, Cause::DeviceDepth),
            ("beside another", &beside, both(), Cause::Dsnro),
            ("another is cut out", &cut, both(), Cause::Dsnro),
            // kavg's own hosts may let the disks of one VM compete.
            ("not by esxcli", &alone, DeviceFacts { sioc: Some(false), ..both() }, Cause::Dsnro),
        ];
        for (name, made, facts, cause) in cases {
            let mut bench = Bench::new(6);
            made(&mut bench);
            let verdict = bench.diagnose(&Thresholds::default(), &known(facts));
            let causes: Vec<_> = verdict.findings.iter().map(|finding| finding.cause).collect();
            assert!(causes.contains(&cause), "{name}: {causes:?}");
            let is_told = cause == Cause::DeviceDepth;
            assert_eq!(!causes.contains(&Cause::Dsnro), is_told, "{name}: {causes:?}");
            let told = "is 32 in this capture while a is the one VM that has commands there, so that DSNRO \
                        has no say, and the output of esxcli says \"Device Max Queue Depth: 64\"";
            let tells = verdict.disagreements.iter().any(|sentence| sentence.contains(told));
            assert_eq!(tells, is_told, "{name}: {:?}", verdict.disagreements);
        }
    }

    #[test]
    fn what_throttling_lowers_contradicts_nothing() {
        let mut facts = facts(128, 32);
        facts.devices.get_mut("naa.1").unwrap().queue_full_sample_size = Some(32);
        let verdict = full().diagnose(&Thresholds::default(), &facts);
        assert!(verdict.disagreements.is_empty());
        assert_eq!(verdict.findings[0].cause, Cause::AdaptiveThrottling);
    }
}
