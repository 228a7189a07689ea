//! Device queue full, limited by DSNRO [S1].
//!
//! As soon as several VMs compete on a device, its limit falls to DSNRO, 32 unless somebody
//! changed it. DQLEN then moves between two values, or sits at 32 for as long as they compete.

use knobs::Driver;
use levels::most_first;

use super::{
    Case, EITHER, Rule,
    alike::{are_of_one_time, united},
    changes, device_depth, number, one_step, queue_evidence, raised, sioc, virtual_disk,
};
use crate::{
    Cause, Device, Evidence, Finding, Flow, FullQueue, LevelKind, Motion, Queue, Vdisk,
    driver_depth, dsnro_advice,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Device,
    rank: super::rank_of_queue,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, Vdisk::COUNTERS],
    find,
};

/// How sure it is where no row tells which VMs there are.
const UNSEEN: f64 = 0.65;

/// How sure it is that DSNRO is the limit, and the depth above it, where that is known.
pub(super) fn certainty(
    case: &Case<'_>,
    device: &Device<'_>,
    full: &FullQueue,
) -> Option<(f64, Option<f64>)> {
    let lowered = matches!(device.motion(), Motion::TwoLevels { high, .. } if full.depth < high);
    // A limit that falls beside one VM alone falls for others, which were left out of the file.
    let hides = device.worlds.is_empty() || full.tenants == 1 && device.limit_falls();
    let unseen = hides && lowered;
    if unseen && device.rises_over_a_reboot(case.host) {
        return None;
    }
    let facts = case.facts.device(device.flow.name);
    if sioc::lowers(case, device) || one_step::is_there(case, device) {
        return None;
    }
    let known = facts.max_queue_depth.map(f64::from);
    if known.is_some_and(|depth| depth <= full.depth) {
        return None;
    }
    // What else holds a device at DSNRO, where its driver is known to give it more?
    let held = known.is_some() && device.motion() == Motion::Steady;
    if !unseen && !held && (full.tenants < 2 || (full.competitors < 2 && !lowered)) {
        return None;
    }
    if let Some(dsnro) = facts.dsnro {
        let above = known.or(device.deepest().filter(|deepest| *deepest > full.depth));
        let certainty = if above.is_some() { 0.98 } else { 0.8 };
        return (f64::from(dsnro) == full.depth).then_some((certainty, above));
    }
    if facts.dsnro_at_end.map(f64::from) == Some(full.depth) && known.is_some() {
        return Some((0.98, known));
    }
    if full.was.is_some() {
        let may_be_another = full.was > Some(full.depth) || device.rises_over_a_reboot(case.host);
        let certainty = if may_be_another { 0.65 } else { 0.8 };
        return Some((certainty, above_it(case, device, full)));
    }
    match device.motion() {
        Motion::Moving if facts.dsnro_at_end.is_some() => known.map(|depth| (0.98, Some(depth))),
        Motion::TwoLevels { low, high } if full.depth < high && is_a_drivers(high) => {
            let sure = match device.falls_beside_competition() {
                // To the default after a sample or two of competition above it, which DSNRO does not allow.
                Some(_) => EITHER,
                None if low == full.depth => 0.95,
                None => 0.8,
            };
            Some((if unseen { UNSEEN } else { sure }, Some(known.unwrap_or(high))))
        }
        Motion::Steady if full.depth == device_depth::DSNRO_DEFAULT => {
            let above = above_it(case, device, full);
            Some((if above.is_some() { 0.8 } else { 0.65 }, above))
        }
        _ => None,
    }
}

/// The depth of a device without competition, where one above the limit in force is known.
fn above_it(case: &Case<'_>, device: &Device<'_>, full: &FullQueue) -> Option<f64> {
    let above = driver_depth::without_competition(case.host, device, case.facts);
    above.map(f64::from).filter(|above| *above > full.depth)
}

/// Whether a depth may be what a driver gives a device: none that has a queue gives it less than the
/// least default, so two levels below that are a depth that was lowered further.
fn is_a_drivers(depth: f64) -> bool {
    let defaults = Driver::ALL.iter().map(|driver| driver.depth_default);
    defaults.filter(|default| *default > 1).min().is_some_and(|least| depth >= f64::from(least))
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = case.each_device(|device| {
        let full = &case.short_queue(device)?;
        let (certainty, above) = certainty(case, device, full)?;
        Some(judge(case, device, full, certainty, above))
    });
    most_first(&mut findings, |finding| finding.standing);
    united(findings, "device", |first, other| is_one_with(case, first, other))
}

/// Whether two devices are held at the same DSNRO at one time and the same is to be done about both and
/// left alone; then what is to be done in the first is that for both.
fn is_one_with(case: &Case<'_>, first: &mut Finding, other: &Finding) -> bool {
    let is_like = first.limit == other.limit
        && first.do_not == other.do_not
        && first.changes.len() == other.changes.len()
        && are_of_one_time(first, other);
    let names = [&first.at.name, &other.at.name].map(String::as_str);
    let both = first.changes.iter().zip(&other.changes);
    let both = both.map(|(one, with)| changes::of_both(case.host, [one, with], names));
    let Some(both) = is_like.then(|| both.collect()).flatten() else { return false };
    let told = format!("commands that wait for {}", other.at.name);
    first.evidence.push(Evidence::new(told, other.standing, ""));
    first.changes = both;
    true
}

fn judge(
    case: &Case<'_>,
    device: &Device<'_>,
    full: &FullQueue,
    certainty: f64,
    above: Option<f64>,
) -> Finding {
    let name = device.flow.name;
    let mut finding = case.finding(Cause::Dsnro, device.object(), &full.spell);
    finding.sentence = sentence(case, device, full, above);
    finding.standing = full.waiting;
    finding.limit = Some(full.depth);
    finding.evidence = queue_evidence(device, &full.spell);
    if !device.worlds.is_empty() {
        finding.evidence.push(Evidence::new("VMs that compete", full.competitors as f64, ""));
    }
    if let Some(above) = above {
        finding.evidence.push(Evidence::new("DQLEN without competition", above, ""));
    }
    finding.confidence = certainty * full.weight();
    finding.raise_confidence = device_depth::unknown(case, name, true);
    finding.sufferers = super::waiting(case, device, &full.spell.samples);
    finding.causers = super::causers_on(device, &full.spell.samples);
    finding.changes = fix(case, device, full, above);
    finding.do_not = vec![
        "Do not raise the HBA's parameter alone: while VMs compete, DSNRO overrides it.".into(),
    ];
    finding.do_not.extend(case.little_room(device, &full.spell.samples));
    finding.caution = Some(changes::CAUTION);
    case.spare_what_is_behind(device, full, &mut finding);
    raised::tell(case, device, full, &mut finding);
    finding
}

fn sentence(case: &Case<'_>, device: &Device<'_>, full: &FullQueue, above: Option<f64>) -> String {
    let at_end = case.facts.device(device.flow.name).dsnro_at_end;
    let depth = number(full.depth);
    let is_seen = device.queue.dqlen.every().any(|dqlen| dqlen == full.depth);
    let slots = match above.map(number) {
        Some(above) if !is_seen => {
            format!("has {depth} of the {above} slots that the samples between its bursts show")
        }
        Some(above) if full.flaps => {
            format!("goes to and fro between {above} and {depth} slots")
        }
        Some(above) if device.deepest() > Some(full.depth) && at_end.is_none() => {
            format!("falls from {above} to {depth} slots")
        }
        Some(above) => format!("is held at {depth} of {above} slots"),
        None => format!("is held at {depth} slots"),
    };
    let was = full.was.map(|was| {
        if was > full.depth {
            return format!(
                "DSNRO, or Device Max Queue Depth (-m): {} in the other capture, where VMs compete as well",
                number(was)
            );
        }
        let or = if device.rises_over_a_reboot(case.host) { ", or the driver's depth" } else { "" };
        format!("DSNRO{or}: it was {} before, while the same VMs competed", number(was))
    });
    let which = match above {
        _ if was.is_some() => was.as_deref().unwrap_or_default(),
        Some(_) if !is_seen => "DSNRO, unless somebody changed it",
        Some(_) => {
            &at_end.map_or("DSNRO".into(), |end| format!("DSNRO, which is {end} at the end"))
        }
        None => "DSNRO, or a driver's depth of the same number: these rows do not tell which",
    };
    let who = if full.tenants < 2 {
        format!("On {} the queue", device.flow.name)
    } else {
        let compete = full.competitors.max(2);
        let least = if device.hides_worlds(&full.spell.samples) { "At least " } else { "" };
        format!("{least}{compete} VMs compete on {}, so its queue", device.flow.name)
    };
    format!(
        "{who} {slots} ({which}){}: {} commands wait {} ms each \
         in the VMkernel.",
        if full.in_bursts { " and is full in bursts" } else { "" },
        number(full.waiting),
        number(full.wait_ms)
    )
}

/// DSNRO up to the depth that the device has; beyond that, once it is known, the driver's depth first.
/// What was changed meanwhile is not proposed again.
fn fix(
    case: &Case<'_>,
    device: &Device<'_>,
    full: &FullQueue,
    above: Option<f64>,
) -> Vec<crate::Change> {
    let caps = virtual_disk::on(case, device).map_or(0.0, |cap| cap.demand());
    let from = case.facts.device(device.flow.name).dsnro_at_end.unwrap_or(full.depth as u32);
    let wanted = case.deeper(device, full, caps).max(from);
    let reachable = above.map_or(wanted, |above| wanted.min(above as u32));
    let dsnro = || dsnro_advice::raise(case.host, device, (from, reachable), case.facts);
    let mut fix = Vec::from_iter((reachable > from).then(dsnro));
    match above.map(|above| above as u32) {
        None => fix.push(dsnro_advice::raise_driver_if_not_deeper(
            case.host,
            device,
            (from, wanted),
            case.facts,
        )),
        // What is out then has room in the depth that there is.
        Some(above) if full.demand.max(caps) <= f64::from(above) => {}
        Some(above)
            if reachable < wanted.min(dsnro_advice::most(device, case.facts))
                && driver_depth::own(device, case.facts) >= Some(above) =>
        {
            let (depths, dsnro) = ((above, wanted), Some(from));
            fix.push(changes::raise_depth(case.host, device, depths, dsnro, case.facts));
        }
        Some(_) => {}
    }
    fix
}

#[cfg(test)]
mod tests {
    use knobs::{Setting, Version};

    use crate::{
        ArrayFacts, Cause, Change, DeviceFacts, Facts, Finding, Step, Thresholds, fixture::Bench,
    };

    fn two_vms(depth: impl Fn(usize) -> u32 + 'static) -> Bench {
        let mut bench = Bench::new(10);
        let device = bench.device("naa.1", 32).depth(depth);
        device
            .vm("big")
            .iops(100_000.0)
            .davg(0.31)
            .kavg_when(|sample| if (3..7).contains(&sample) { 0.29 } else { 0.0 });
        device
            .vm("small")
            .iops_when(|sample| if (3..7).contains(&sample) { 2_000.0 } else { 0.0 })
            .davg(0.31)
            .kavg(0.29);
        bench
    }

    #[test]
    fn a_world_that_lacks_a_column_competes_with_what_the_others_tell() {
        use counters::{Counter, Kind};
        for counter in [Counter::Commands, Counter::DriverLatency, Counter::GuestLatency] {
            let bench = two_vms(|sample| if (3..7).contains(&sample) { 16 } else { 32 });
            let mut recording = bench.recording();
            let worlds = recording.of_kind(Kind::World).map(|(id, _)| id).collect::<Vec<_>>();
            recording.set_constant(worlds[1], Counter::ActiveCommands, 4.0, recording.len());
            recording.set_constant(worlds[1], Counter::QueuedCommands, 2.0, recording.len());
            recording.set_constant(worlds[1], counter, f64::NAN, recording.len());
            let verdict = crate::diagnose(
                &levels::Measured::of(recording),
                &Thresholds::default(),
                &Facts::default(),
            );
            let causes: Vec<_> = verdict.findings.iter().map(|finding| finding.cause).collect();
            assert!(!causes.contains(&Cause::DeviceDepth), "{counter:?}: {causes:?}");
            assert!(causes.contains(&Cause::Dsnro), "{counter:?}: {causes:?}");
        }
    }

    #[test]
    fn a_few_rows_of_which_half_tell_nothing_still_tell_what_the_others_do() {
        use counters::{Counter, Recording};
        const TIMES: [Counter; 4] = [
            Counter::DriverLatency,
            Counter::KernelLatency,
            Counter::GuestLatency,
            Counter::QueueLatency,
        ];
        let few = |rows: usize, high: u32| {
            let mut bench = Bench::new(rows);
            let half = rows / 2;
            let device = bench.device("naa.1", 32).depth(move |s| if s < half { high } else { 32 });
            for vm in ["a", "b", "c"] {
                device.vm(vm).iops(8_600.0).davg(1.24).kavg(1.86);
            }
            bench.recording()
        };
        // esxtop's first row is before those of the bench.
        let spoil = |all: &Recording, counters: &[Counter], with: f64, rows: usize| {
            let mut spoilt = all.clone();
            for (id, counter, values) in all.columns().filter(|of| counters.contains(&of.1)) {
                let mut values = values.to_vec();
                values[1..=rows / 2].fill(with);
                spoilt.set_column(id, counter, values);
            }
            spoilt
        };
        let mut failed = Vec::new();
        for rows in [3, 4] {
            for high in [32, 64] {
                let all = few(rows, high);
                for (what, counters, with) in [
                    ("no latencies", &TIMES[..], f64::NAN),
                    ("latencies of 0", &TIMES[..], 0.0),
                    ("no DQLEN", &[Counter::DeviceQDepth][..], f64::NAN),
                    ("DQLEN of 0", &[Counter::DeviceQDepth][..], 0.0),
                ] {
                    let recording = levels::Measured::of(spoil(&all, counters, with, rows));
                    let verdict =
                        crate::diagnose(&recording, &Thresholds::default(), &Facts::default());
                    let causes: Vec<_> = verdict.findings.iter().map(|f| f.cause).collect();
                    if causes.first() != Some(&Cause::Dsnro) {
                        failed.push((rows, high, what, causes, verdict.headline));
                    }
                }
            }
        }
        assert!(failed.is_empty(), "{failed:#?}");
    }

    #[test]
    fn a_limit_that_falls_while_vms_compete_is_dsnro() {
        let bench = two_vms(|sample| if (3..7).contains(&sample) { 32 } else { 128 });
        let finding = bench.only(Cause::Dsnro, &Facts::default());
        assert!(finding.sentence.contains("falls from 128 to 32"), "{}", finding.sentence);
        assert_eq!(finding.window.samples, 4);
        assert!(
            finding.changes[0].esxcli[0].starts_with("esxcli storage core device set -d naa.1 -O ")
        );
        assert_eq!(finding.changes[0].effect, knobs::Effect::AtOnce);
    }

    #[test]
    fn devices_held_alike_are_one_finding_with_a_line_for_each() {
        // [S3]: several datastores of a few VMs each, all held at 32 at one time.
        let find = |facts: &Facts| {
            let mut bench = Bench::new(10);
            for (index, name) in ["naa.1", "naa.2", "naa.3"].into_iter().enumerate() {
                let device =
                    bench.device(name, 32).depth(|sample| if sample < 7 { 32 } else { 64 });
                let kavg = move |sample| if sample < 7 { 2.2 + 0.05 * index as f64 } else { 0.0 };
                // Who is alone competes with nobody.
                for (vm, later) in [("a", 10_000.0), ("b", 0.0)] {
                    let rate = move |sample| if sample < 7 { 10_000.0 } else { later };
                    let vm = format!("{vm}-{name}");
                    device.vm(&vm).iops_when(rate).davg(1.6).kavg_when(kavg);
                }
            }
            bench.only(Cause::Dsnro, facts)
        };
        let finding = find(&Facts::default());
        let names: Vec<_> = finding.objects().map(|at| at.name.as_str()).collect();
        assert_eq!(names, ["naa.3", "naa.2", "naa.1"]);
        assert!(finding.sentence.ends_with("The same is true of 2 other devices."));
        let surer = "`esxcli storage core device list` as --esxcli FILE";
        assert!(finding.raise_confidence[0].starts_with(surer), "{:?}", finding.raise_confidence);
        assert_eq!((finding.changes.len(), finding.sufferers.len()), (2, 6));
        let told = "Raise DSNRO of naa.3 from 32 to 64, and those of 2 other devices by theirs, on every \
                    host that uses them.";
        assert_eq!(finding.changes[0].what, told);
        let line = |name| format!("esxcli storage core device set -d {name} -O 64");
        assert_eq!(finding.changes[0].esxcli, ["naa.3", "naa.2", "naa.1"].map(line));
        assert_eq!(finding.changes[0].undo_lines().len(), 3);
        let of_dsnro = |finding: &Finding| -> Vec<u32> {
            let lines = |change: &Change| {
                let is_driver = |step: &&Step| matches!(step.set, Setting::ModuleDepth { .. });
                change.steps.iter().filter(|step| !is_driver(step)).count() as u32
            };
            finding.changes.iter().map(lines).collect()
        };
        assert_eq!(of_dsnro(&finding), [3, 3], "{:?}", finding.changes);
        // Up to 5.1 it is one line for all.
        let facts = Facts { esxi_version: Some(Version::V5_1), ..Facts::default() };
        let finding = find(&facts);
        let line = "esxcli system settings advanced set -o /Disk/SchedNumReqOutstanding -i 64";
        assert_eq!(
            (finding.also.len(), &finding.changes[0].esxcli[..]),
            (2, &[line.to_owned()][..])
        );
        assert_eq!(of_dsnro(&finding), [1, 1], "{:?}", finding.changes);
    }

    #[test]
    fn what_was_changed_meanwhile_is_not_proposed_again() {
        // DSNRO is raised from 32 to 48 after half of the recording, on a device of 64: half as many are
        // done again.
        let mut bench = Bench::new(10);
        let device = bench.device("naa.1", 32).depth(|sample| if sample < 5 { 32 } else { 48 });
        for vm in ["a", "b", "c", "d"] {
            let kavg = |sample| if sample < 5 { 1.86 } else { 0.83 };
            device
                .vm(vm)
                .iops_when(|s| if s < 5 { 6_450.0 } else { 9_675.0 })
                .davg(1.24)
                .kavg_when(kavg);
        }
        let (max_queue_depth, dsnro_at_end) = (Some(64), Some(48));
        let known = DeviceFacts { max_queue_depth, dsnro_at_end, ..DeviceFacts::default() };
        let mut facts = Facts::default();
        facts.devices.insert("naa.1".into(), known);
        facts.drivers.insert("vmhba1".into(), "qlnativefc".into());
        let finding = bench.first(Cause::Dsnro, &facts);
        let told = "is held at 32 of 64 slots (DSNRO, which is 48 at the end)";
        assert!(finding.sentence.contains(told), "{}", finding.sentence);
        let [dsnro, driver] = &finding.changes[..] else { panic!("{:?}", finding.changes) };
        assert!(dsnro.what.contains("from 48 to 64"), "{}", dsnro.what);
        assert!(driver.what.contains("from 64 to 128"), "{}", driver.what);
        let undo = ["-O 48", "ql2xmaxqdepth=64"];
        let lines = driver.undo_lines();
        assert!(lines.iter().zip(undo).all(|(line, end)| line.ends_with(end)), "{lines:?}");
    }

    /// A VM with 64 commands out on a device of 64 beside one of 97 a second, after a while with 4: DSNRO comes
    /// and goes between two samples, of which one in 24 shows it. 61.4 are in the slots, 2.9 wait.
    fn flapping(waiting: f64) -> Bench {
        let mut bench = Bench::new(36);
        let is_low = |sample: usize| sample < 12 || sample == 20;
        let (few, kavg) = (|sample: usize| sample < 12, waiting / 16.4);
        let kavg = move |sample| if few(sample) { 0.0 } else { kavg };
        let davg = move |sample| if few(sample) { 1.55 } else { 3.72 };
        let device = bench.device("naa.1", 64);
        device.depth(move |sample| if is_low(sample) { 32 } else { 64 });
        let hog = device.vm("hog").iops_when(move |s| if few(s) { 2_600.0 } else { 16_400.0 });
        hog.davg_when(davg).kavg_when(kavg);
        hog.sampled(move |s| {
            if few(s) {
                4
            } else if is_low(s) {
                32
            } else {
                64
            }
        });
        hog.queued(move |s| if s == 20 { 32 } else { 0 });
        device.vm("small").iops(97.0).davg_when(davg).kavg_when(kavg).sampled(|_| 0);
        bench
    }

    #[test]
    fn a_limit_that_goes_to_and_fro_is_no_drivers_depth() {
        let known =
            DeviceFacts { max_queue_depth: Some(64), dsnro: Some(32), ..DeviceFacts::default() };
        let esxcli = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
        for facts in [Facts::default(), esxcli] {
            let finding = flapping(2.9).only(Cause::Dsnro, &facts);
            let told = "its queue goes to and fro between 64 and 32 slots (DSNRO)";
            assert!(finding.sentence.contains(told), "{}", finding.sentence);
            assert!(finding.confidence > 0.8, "{}", finding.confidence);
            assert_eq!((finding.limit, finding.window.samples), (Some(32.0), 24));
            let [dsnro] = &finding.changes[..] else { panic!("{:?}", finding.changes) };
            assert_eq!(dsnro.esxcli, ["esxcli storage core device set -d naa.1 -O 64"]);
        }
        // 30 more than the 64 slots are out all the time: those are short, whatever goes on below.
        let short = flapping(33.0).first(Cause::DeviceDepth, &Facts::default());
        assert!(short.sentence.contains("its 64 slots"), "{}", short.sentence);
    }

    #[test]
    fn a_limit_that_rises_while_the_same_vms_compete_was_set() {
        let set = |from: usize, rows: usize, facts: &Facts| {
            let mut bench = Bench::new(rows);
            let depth = move |sample: usize| if sample < from { 32_u32 } else { 48 };
            let device = bench.device("naa.1", 32).depth(depth);
            for vm in ["a", "b"] {
                let rate = move |sample| f64::from(depth(sample)) / 0.7 * 500.0;
                let wait = move |sample| (128.0 / f64::from(depth(sample)) - 1.0) * 0.7;
                device.vm(vm).iops_when(rate).davg(0.7).kavg_when(wait);
            }
            bench.only(Cause::Dsnro, facts)
        };
        let known =
            DeviceFacts { max_queue_depth: Some(64), dsnro: Some(48), ..DeviceFacts::default() };
        let esxcli = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
        for from in [1, 2, 10] {
            let finding = set(from, 20, &Facts::default());
            let told = "is held at 48 slots (DSNRO: it was 32 before, while the same VMs competed)";
            assert!(finding.sentence.contains(told), "{}", finding.sentence);
            assert!((0.75..=0.8).contains(&finding.confidence), "{}", finding.confidence);
            assert_eq!((finding.limit, finding.window.samples), (Some(48.0), 20 - from));
            let labels = |label: &str| finding.evidence.iter().any(|each| each.label == label);
            assert!(!labels("DQLEN without competition"), "{:?}", finding.evidence);
            assert!(finding.changes.iter().all(|change| change.steps.is_empty()));
            // What esxcli says now is what holds at the end.
            let finding = set(from, 20, &esxcli);
            assert!(finding.sentence.contains("at 48 of 64 slots"), "{}", finding.sentence);
            assert!(finding.confidence > 0.9, "{}", finding.confidence);
            assert!(finding.changes[0].esxcli[0].ends_with(" -O 64"), "{:?}", finding.changes);
        }
    }

    #[test]
    fn what_a_run_set_early_is_what_holds_at_the_end() {
        // One sample of 32, and 48 from then on: what was changed is judged as it is at the end.
        let mut bench = Bench::new(10);
        let depth = |sample: usize| if sample < 1 { 32_u32 } else { 48 };
        let device = bench.device("naa.1", 32).depth(depth);
        for vm in ["a", "b"] {
            device.vm(vm).iops_when(move |s| f64::from(depth(s)) * 714.0).davg(0.7).kavg(1.2);
        }
        let (max_queue_depth, dsnro_at_end) = (Some(64), Some(48));
        let known = DeviceFacts { max_queue_depth, dsnro_at_end, ..DeviceFacts::default() };
        let facts = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
        let finding = bench.only(Cause::Dsnro, &facts);
        assert!(finding.sentence.contains("is held at 48 of 64 slots"), "{}", finding.sentence);
        assert!(finding.changes[0].esxcli[0].ends_with(" -O 64"), "{:?}", finding.changes);
    }

    #[test]
    fn a_limit_that_falls_needs_no_rows_of_worlds() {
        let mut bench = two_vms(|sample| if (3..7).contains(&sample) { 32 } else { 128 });
        bench.without_worlds();
        let finding = bench.only(Cause::Dsnro, &Facts::default());
        assert!(finding.sentence.starts_with("On naa.1 the queue falls"), "{}", finding.sentence);
        assert!(finding.confidence < 0.7, "{}", finding.confidence);
    }

    #[test]
    fn a_limit_that_falls_beside_one_vm_alone_is_not_the_drivers() {
        // A file that was cut to one VM: what competes with it is not in it.
        let mut bench = Bench::new(10);
        let is_low = |sample: usize| (3..7).contains(&sample);
        let device = bench.device("naa.1", 32).depth(move |s| if is_low(s) { 32 } else { 128 });
        let kavg = move |sample| if is_low(sample) { 0.29 } else { 0.0 };
        device.vm("big").iops(100_000.0).davg(0.31).kavg_when(kavg);
        let finding = bench.only(Cause::Dsnro, &Facts::default());
        assert!(finding.confidence < 0.7, "{}", finding.confidence);
    }

    #[test]
    fn a_depth_that_only_another_device_shows_is_looked_at_before_dsnro_is_set_to_it() {
        // 6.5 refuses a DSNRO above Device Max Queue Depth, which may be anything from 33 on here.
        let mut bench = Bench::new(10);
        let device = bench.device("naa.1", 32);
        for vm in ["a", "b", "c"] {
            device.vm(vm).iops(8_600.0).davg(1.24).kavg(1.86);
        }
        bench.device("naa.2", 64).vm("idle").iops(20.0).davg(1.2);
        let finding = bench.only(Cause::Dsnro, &Facts::default());
        assert!(finding.sentence.contains("32 of 64 slots"), "{}", finding.sentence);
        let [look] = &finding.changes[..] else { panic!("{:?}", finding.changes) };
        assert!(look.steps.is_empty() && look.esxcli[0].contains("device list"), "{look:?}");
    }

    #[test]
    fn before_an_array_with_little_left_a_deeper_queue_is_not_proposed() {
        // 8 servers of 5 ms do 1,600 a second; 32 of 67 commands in the slots take 24 ms each.
        let mut bench = Bench::new(10);
        let device = bench.device("naa.1", 32).depth(|_| 32);
        device.vm("paced").iops(264.0).davg(24.3).kavg(1.0);
        device.vm("greedy").iops(1_053.0).davg(24.3).kavg(32.7);
        let at = |busy: f64| {
            let array = ArrayFacts {
                name: "a".into(),
                service_ms: Some(5.0),
                busy: vec![busy; 10],
                ..ArrayFacts::default()
            };
            let known = DeviceFacts {
                max_queue_depth: Some(64),
                dsnro: Some(32),
                array: Some(array.into()),
                ..DeviceFacts::default()
            };
            let mut facts = Facts::default();
            facts.devices.insert("naa.1".into(), known);
            bench.first(Cause::Dsnro, &facts)
        };
        let full = at(0.823);
        assert!(full.changes.iter().all(|change| change.steps.is_empty()), "{:?}", full.changes);
        // 67 commands at 1,600 a second are 41.7 ms.
        let told = "the rate can grow by 21.5 % at most, and with all that wait let through each command \
                    takes 41.7 ms there instead of 24.3";
        assert!(full.do_not[0].contains(told), "{:?}", full.do_not);
        assert!(at(0.3).changes[0].esxcli[0].ends_with("-O 64"));
    }

    #[test]
    fn without_worlds_a_depth_that_rises_over_a_reboot_may_be_the_drivers() {
        let mut bench = Bench::new(10);
        bench.interval_s(300);
        let device = bench.device("naa.1", 32).depth(|sample| if sample < 6 { 32 } else { 96 });
        let kavg = |sample| if sample < 6 { 0.49 } else { 0.0 };
        device.vm("only").iops(65_000.0).davg(0.49).kavg_when(kavg);
        bench.without_worlds();
        bench.only(Cause::DeviceDepth, &Facts::default());
    }

    #[test]
    fn a_depth_that_rises_while_the_host_runs_is_no_drivers() {
        // A module's parameter acts after a reboot [S0]; DSNRO, and the end of competition, at once [S1].
        let mut bench = Bench::new(10);
        let device = bench.device("naa.1", 32).depth(|sample| if sample < 6 { 32 } else { 96 });
        let kavg = |sample| if sample < 6 { 0.49 } else { 0.0 };
        device.vm("only").iops(65_000.0).davg(0.49).kavg_when(kavg);
        bench.without_worlds();
        let finding = bench.only(Cause::Dsnro, &Facts::default());
        assert!(finding.confidence < 0.7, "{}", finding.confidence);
    }

    #[test]
    fn bursts_that_the_samples_miss_meet_a_limit_that_they_do_not_show() {
        // Three VMs of 100 threads for 2 s in every 20, read every 5 s, on a device of 64 slots.
        let mut bench = Bench::new(23);
        let device = bench.device("naa.1", 64);
        let burst = |sample: usize| sample % 4 == 3;
        for vm in ["b-1", "b-2", "b-3"] {
            let rate = move |sample| if burst(sample) { 7_225.0 } else { 0.0 };
            device.vm(vm).iops_when(rate).davg(0.59).kavg(5.6).sampled(|_| 0);
        }
        let wait = move |sample| if burst(sample) { 5.6 } else { 0.0 };
        device.vm("oltp").iops(2_000.0).davg(0.41).kavg_when(wait).sampled(|_| 1);
        let finding = bench.only(Cause::Dsnro, &Facts::default());
        let told = "4 VMs compete on naa.1, so its queue has 32 of the 64 slots that the samples \
                    between its bursts show (DSNRO, unless somebody changed it) and is full in bursts";
        assert!(finding.sentence.starts_with(told), "{}", finding.sentence);
        assert_eq!(finding.window.samples, 5);
    }

    #[test]
    fn one_sample_of_each_burst_is_enough_where_they_come_again() {
        // A VM of 128 threads for 1 s in every 10, read every 2 s, beside a small one.
        let mut bench = Bench::new(27);
        bench.interval_s(2);
        let device = bench.device("naa.1", 32);
        let burst = |sample: usize| sample % 5 == 2;
        let rate = move |sample| if burst(sample) { 23_800.0 } else { 0.0 };
        device.vm("batch").iops_when(rate).davg(0.66).kavg(2.0).sampled(|_| 0);
        let wait = move |sample| if burst(sample) { 1.0 } else { 0.0 };
        device.vm("oltp").iops(800.0).davg(0.5).kavg_when(wait).sampled(|_| 1);
        let findings = bench.findings();
        let causes: Vec<Cause> = findings.iter().map(|finding| finding.cause).collect();
        assert_eq!(causes, [Cause::NoisyNeighbour, Cause::Dsnro]);
        let finding = &findings[1];
        assert_eq!(finding.causers[0].name, "batch");
        assert!(finding.sentence.contains("full in bursts"), "{}", finding.sentence);
    }

    #[test]
    fn beside_vms_that_were_cut_out_nobody_is_accused() {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", 32).depth(|s| if s < 4 { 32 } else { 64 });
        let kavg = |sample| if sample < 4 { 0.84 } else { 0.0 };
        for vm in ["sql-1", "sql-2", "sql-3", "sql-4"] {
            let vm_bench = device.vm(vm).iops(9_565.0).davg(0.84).kavg_when(kavg);
            if vm != "sql-1" {
                vm_bench.cut_out();
            }
        }
        let finding = bench.only(Cause::Dsnro, &Facts::default());
        assert!(finding.sentence.starts_with("At least 2 VMs compete"), "{}", finding.sentence);
        assert_eq!((finding.causers.len(), finding.sufferers.len()), (0, 1));
    }

    #[test]
    fn a_limit_that_sits_at_32_may_be_both() {
        let bench = two_vms(|_| 32);
        let finding = bench.only(Cause::Dsnro, &Facts::default());
        assert!(finding.confidence < 0.7);
        assert_eq!(finding.changes.len(), 2);
    }

    #[test]
    fn three_rows_tell_dsnro_where_its_limit_falls_in_one_of_them() {
        for depths in [[64, 64, 32], [64, 32, 32], [32, 64, 64], [32, 32, 64]] {
            let mut bench = Bench::new(3);
            let device = bench.device("naa.1", 64).depth(move |sample| depths[sample]);
            let rate = move |sample: usize| f64::from(depths[sample]) * 1_000.0;
            device.vm("a").iops_when(move |s| rate(s) * 0.6).davg(1.0).kavg(0.8);
            device.vm("b").iops_when(move |s| rate(s) * 0.4).davg(1.0).kavg(0.8);
            let finding = bench.first(Cause::Dsnro, &Facts::default());
            assert!(finding.sentence.contains("falls from 64 to 32"), "{}", finding.sentence);
        }
    }

    #[test]
    fn two_levels_that_nobody_sets_are_not_dsnro() {
        for depths in [[10, 6, 6], [10, 10, 7], [70, 64, 70], [126, 123, 123]] {
            let mut bench = Bench::new(3);
            let device = bench.device("naa.1", 64).depth(move |sample| depths[sample]);
            let rate = move |sample: usize| f64::from(depths[sample]) * 25.0;
            for vm in ["a", "b"] {
                device.vm(vm).iops_when(move |s| rate(s) / 2.0).davg(40.0).kavg(60.0);
            }
            let findings = bench.findings();
            assert!(findings.iter().all(|finding| finding.cause != Cause::Dsnro), "{depths:?}");
        }
    }

    #[test]
    fn rows_that_cannot_tell_say_so() {
        let mut bench = Bench::new(3);
        let device = bench.device("naa.1", 32);
        device.vm("a").iops(20_000.0).davg(0.8).kavg(0.8);
        device.vm("b").iops(20_000.0).davg(0.8).kavg(0.8);
        let finding = bench.only(Cause::Dsnro, &Facts::default());
        assert!(finding.sentence.contains("these rows do not tell which"), "{}", finding.sentence);
        assert!(finding.confidence < 0.7);
    }

    #[test]
    fn facts_decide_between_dsnro_and_the_driver() {
        let bench = two_vms(|_| 32);
        let mut facts = Facts::default();
        let device =
            DeviceFacts { max_queue_depth: Some(32), dsnro: Some(32), ..DeviceFacts::default() };
        facts.devices.insert("naa.1".into(), device.clone());
        bench.only(Cause::DeviceDepth, &facts);
        let device = DeviceFacts { max_queue_depth: Some(64), ..device };
        facts.devices.insert("naa.1".into(), device);
        let finding = bench.only(Cause::Dsnro, &facts);
        assert!(finding.confidence > 0.9 && finding.raise_confidence.is_empty());
    }

    #[test]
    fn a_depth_that_esxcli_says_is_never_lowered() {
        let mut facts = Facts::default();
        let device = DeviceFacts { max_queue_depth: Some(128), ..DeviceFacts::default() };
        facts.devices.insert("naa.1".into(), device);
        let finding = two_vms(|_| 32).only(Cause::Dsnro, &facts);
        assert_eq!(finding.changes.len(), 1);
        assert!(finding.changes[0].esxcli[0].ends_with(" -O 128"), "{:?}", finding.changes);
    }

    #[test]
    fn no_more_is_sent_to_an_array_that_is_slow_for_every_vm() {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", 32);
        device.vm("a").iops(550.0).davg(29.0).kavg(87.0);
        device.vm("b").iops(550.0).davg(29.0).kavg(87.0);
        let mut facts = Facts::default();
        let device = DeviceFacts { max_queue_depth: Some(96), ..DeviceFacts::default() };
        facts.devices.insert("naa.1".into(), device);
        let findings = bench.diagnose(&Thresholds::default(), &facts).findings;
        let finding = findings.iter().find(|finding| finding.cause == Cause::Dsnro).unwrap();
        assert!(finding.changes.is_empty(), "{:?}", finding.changes);
        assert!(finding.do_not[0].contains("before the array answers in time"));
    }

    #[test]
    fn the_global_option_is_used_where_dsnro_is_global() {
        let facts = Facts { esxi_version: Some(knobs::Version::V5_1), ..Facts::default() };
        let finding =
            two_vms(|sample| if sample < 7 { 32 } else { 128 }).only(Cause::Dsnro, &facts);
        let line = &finding.changes[0].esxcli[0];
        assert!(line.contains("/Disk/SchedNumReqOutstanding -i "), "{line}");
    }
}
