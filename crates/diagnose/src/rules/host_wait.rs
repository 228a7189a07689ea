//! Commands that the host holds for no queue that the capture shows: KAVG is above 3 ms [ELA 6.4], or
//! commands are queued (QUED) and wait for as long as counts in a queue, while slots are free and the
//! rate is no limit's.
//!
//! What is known to do that leaves no trace in the columns of a default capture: reservation
//! conflicts, on the passive host of a cluster above all, retries after BUSY, and a VMkernel that
//! gets no CPU (reference, `esxi-host-stack.md` section 8, question 7).

use counters::Counter;

use super::{
    Case, LASTING, Rank, Rule, adapter_queue, changes, iops_limit, number, queue_evidence, refused,
    reservations, silence, steady,
};
use crate::{
    Cause, Device, Evidence, Finding, Flow, LevelKind, Party, Queue, Spell, Threshold, Vdisk,
    World, little, path_changes, reaches,
};
use levels::weighted_mean;

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Held,
    rank: |_| Rank::Wait,
    reads: &[
        Flow::COUNTERS,
        Queue::COUNTERS,
        Vdisk::COUNTERS,
        &[Counter::AdapterQDepth, Counter::Conflicts],
    ],
    find,
};

/// Commands of a VM that must wait while none completes.
const STARVED: f64 = 2.0;
/// Part of the samples that says what the others are.
const MOSTLY: f64 = 0.5;

fn find(case: &Case<'_>) -> Vec<Finding> {
    let unexplained =
        |device: &Device<'_>| device.full.is_none() && !iops_limit::applies(case, device);
    let held = |device: &Device<'_>| {
        let spell = spell(case, device).filter(|_| unexplained(device))?;
        answered_full(case, device, &spell).or_else(|| judge(case, device, &spell))
    };
    let whole = case.each_device(|device| match starved(case, device) {
        Some(_) => held(device),
        None => refused::found(case, device)
            .or_else(|| behind_paths(case, device))
            .or_else(|| held(device)),
    });
    let starved = case.each_device(|device| starved(case, device));
    // Of a device that is refused all it sends nothing completes.
    let still = case.host.devices.iter().filter(|device| device.busy.is_empty());
    let still = still.filter_map(|device| refused::found(case, device));
    whole.into_iter().chain(starved).chain(still).collect()
}

/// Commands that wait in the host for the paths in use, beside idle ones. The device has slots enough.
fn behind_paths(case: &Case<'_>, device: &Device<'_>) -> Option<Finding> {
    let flow = &device.flow;
    let spell = device.spell(|sample| {
        let counts = flow.waiting(sample) >= Some(device.limits.get(Threshold::Waiting));
        let least_ms = flow.davg(sample).map(|davg_ms| device.least_wait_ms(davg_ms));
        let is_full = || case.full_paths(device, &[sample]).is_some();
        counts && reaches(flow.kavg(sample), least_ms) && is_full()
    })?;
    let waiting = spell.mean(|sample| flow.waiting(sample))?;
    let takes = case.full_paths(device, &spell.samples)?;
    let mut finding = case.finding(Cause::HostWait, device.object(), &spell);
    finding.sentence = format!(
        "{} commands to {} wait {} ms each in the host (KAVG) though it has slots: the paths in use take \
         {takes} of them, and the others are idle.",
        number(waiting),
        flow.name,
        number(flow.per_command(&spell.samples, Flow::kavg)?),
    );
    finding.standing = waiting;
    finding.evidence = queue_evidence(device, &spell);
    finding.evidence.push(Evidence::new("commands that the paths in use take", takes.into(), ""));
    finding.confidence = 0.98;
    finding.sufferers = device.tenants(&spell.samples);
    finding.causers = super::causers(&finding.sufferers);
    finding.changes =
        path_changes::use_all_paths(case.host, device, case.facts).into_iter().collect();
    finding.do_not =
        vec!["Do not raise the device's depth: what is behind it takes no more.".into()];
    Some(finding)
}

/// Commands that are held because the array takes no more, as the host has counted: then each that is held was refused,
/// if only because another came before it.
fn answered_full(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Option<Finding> {
    /// Refusals for each command of those that are held.
    const OFTEN: f64 = 0.1;
    let (flow, name) = (&device.flow, device.flow.name);
    let refusals = case.facts.device(name).refusals? as f64;
    let commands: Option<f64> = case
        .host
        .every_sample()
        .into_iter()
        .map(|s| Some(flow.rate(s)? * case.host.interval_s(s)))
        .sum();
    let commands = commands.filter(|commands| refusals >= (OFTEN * commands).max(1.0))?;
    let held = HeldBack::of(device, &spell.samples)?;
    let mut finding = case.finding(Cause::HostWait, device.object(), spell);
    finding.sentence = format!(
        "{} though slots are free: its array takes no more, and answered TASK SET FULL or BUSY {} times meanwhile.",
        held.sentence(name),
        number(refusals)
    );
    finding.standing = spell.mean(|s| Some(little(flow.rate(s)?, flow.kavg(s)?)))?;
    finding.evidence = queue_evidence(device, spell);
    finding.evidence.extend([
        Evidence::new("results TASK SET FULL or BUSY", refusals, ""),
        Evidence::new("commands meanwhile", commands, ""),
    ]);
    finding.confidence = 0.95 * spell.weight();
    finding.sufferers = held.vms;
    finding.causers = super::causers(&finding.sufferers);
    finding.changes = vec![
        changes::look(
            "Give the queue of the array, the volume's or its port's, more places, or spread the VMs over more \
             volumes and ports. Its vendor says what each takes.",
            Vec::new(),
        )
        .risking("The array has more to do at once.", "Set what was"),
    ];
    finding.do_not =
        vec!["Do not raise the device's depth: what is behind it takes no more.".into()];
    Some(finding)
}

/// The VM of a device that has most commands waiting of those of which none completes, while others on
/// the device go on: no latency shows that, for what does not complete has none.
fn starved(case: &Case<'_>, device: &Device<'_>) -> Option<Finding> {
    let queued = |world: &World<'_>, sample: usize| {
        let is_still = world.flow.rate(sample) == Some(0.0);
        world.queue.qued.at(sample).filter(|qued| is_still && *qued >= STARVED)
    };
    let starves = |world: &World<'_>| {
        let waits = |sample: usize| queued(world, sample).is_some();
        let mut runs = device.busy.split(|&sample| !waits(sample));
        let lasts = runs.any(|run| run.len() >= LASTING);
        Spell::any(&device.busy, waits).filter(|_| lasts)
    };
    let worlds = device.worlds.iter().filter(|world| !world.is_system);
    let all = worlds.filter_map(|world| {
        let spell = starves(world)?;
        Some((world, spell.mean(|sample| queued(world, sample))?, spell))
    });
    let (world, waiting, spell) = all.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (name, samples) = (device.flow.name, &spell.samples);
    let rate = device.flow.mean_rate(samples)?;
    let queue = case.array_queue(device).filter(|queue| queue.refuses());
    let why = queue.map(|queue| format!(": {}", queue.told()));
    let mut finding = case.finding(Cause::HostWait, device.object(), &spell);
    finding.sentence = format!(
        "{} commands of {} wait for {name} and none completes, while others do {} a second there{}.",
        number(waiting),
        world.owner,
        number(rate),
        why.as_deref().unwrap_or_default()
    );
    finding.standing = waiting;
    finding.evidence = queue_evidence(device, &spell);
    finding.evidence.push(Evidence::new(format!("QUED of {}", world.owner), waiting, ""));
    finding.confidence = if why.is_some() { 0.98 } else { 0.85 };
    let waiting = Some(waiting);
    let name = world.owner.into();
    finding.sufferers = vec![Party { name, iops: 0.0, gavg_ms: None, slots: 0.0, waiting }];
    finding.causers = device.tenants(samples);
    finding.changes = vec![changes::look(
        "Find out what keeps its commands from being sent: an array that answers that its queue is \
         full, or others that take every slot that comes free.",
        vec![format!(
            "esxcli storage core device stats get -d {}",
            changes::shell(device.flow.name)
        )],
    )];
    Some(finding)
}

/// The samples in which commands are held for as long as a slow array takes; in the mean of the
/// recording they count however they are spread, and those of a stall in any sample; and those in which one VM's are,
/// beside others that are not. Where most of those that
/// are held meet conflicts, a sample that met none is no riddle.
fn spell(case: &Case<'_>, device: &Device<'_>) -> Option<Spell> {
    let flow = &device.flow;
    let is_held = |sample: usize| device.is_held(sample) || device.holds_one(sample);
    let held = Spell::any(&device.busy, is_held)?;
    if held.share(|sample| reservations::collide(device, sample) == Some(true)) >= MOSTLY {
        return None;
    }
    let is_explained = |s: usize| {
        reservations::collide(device, s) != Some(false)
            || is_back(case, device, s)
            || silence::stalls(case, device, s)
            || adapter_queue::has_none_left(case, device, s)
    };
    let is_unexplained = |s: usize| device.is_held(s) && !is_explained(s);
    let mean_ms = flow.per_command(&device.busy, |_, sample| device.held_ms(sample));
    let is_long_in_the_mean = mean_ms >= Some(device.limits.get(Threshold::HeldMs));
    let stall_ms = device.limits.get(Threshold::StallMs);
    let stalls = |s| is_unexplained(s) && device.held_ms(s) >= Some(stall_ms);
    let is_one_held = |s: usize| device.holds_one(s) && !is_explained(s);
    device
        .spell(is_unexplained)
        .or_else(|| Spell::any(&device.busy, is_unexplained).filter(|_| is_long_in_the_mean))
        .or_else(|| Spell::any(&device.busy, stalls))
        .or_else(|| device.spell(is_one_held))
}

/// Whether a device is back that hardly answered in the sample before: it had more commands then than
/// it completed in all of it, and completes far more now. What these waited is the outage's.
fn is_back(case: &Case<'_>, device: &Device<'_>, sample: usize) -> bool {
    const FAR_MORE: f64 = 10.0;
    let is_back = || {
        let before = sample.checked_sub(1)?;
        let [was, now] = [before, sample].map(|sample| device.flow.rate(sample));
        let stuck = device.queue.sampled(before)? > was? * case.host.interval_s(before);
        Some(stuck && now? > FAR_MORE * was?)
    };
    is_back() == Some(true)
}

/// Whose commands to a device the host holds: where it holds some far longer than others, those alone.
struct HeldBack {
    vms: Vec<Party>,
    /// How long, in milliseconds.
    kavg_ms: f64,
    /// What QAVG has of that: what the VMkernel counts there waits in the queue of its own VM.
    qavg_ms: Option<f64>,
    /// The same of the others, where there are some.
    others_ms: Option<f64>,
}

impl HeldBack {
    fn of(device: &Device<'_>, samples: &[usize]) -> Option<Self> {
        const FAR_LESS: f64 = 0.5;
        let kavg_ms = device.flow.per_command(samples, Flow::kavg)?;
        let qavg_ms = device.flow.per_command(samples, Flow::qavg);
        let of = |world: &World<'_>| world.flow.per_command(samples, Flow::kavg);
        let worlds = device.worlds.iter().filter(|world| !world.is_system && of(world).is_some());
        let (held, others): (Vec<&World<'_>>, Vec<_>) =
            worlds.partition(|world| of(world) >= Some(FAR_LESS * kavg_ms));
        let mut vms = device.tenants(samples);
        if held.is_empty() || others.is_empty() {
            return Some(Self { vms, kavg_ms, qavg_ms, others_ms: None });
        }
        let qavg = |world: &World<'_>| world.flow.per_command(samples, Flow::qavg);
        let mean_of = |worlds: &[&World<'_>], ms: &dyn Fn(&World<'_>) -> Option<f64>| {
            let each = |world: &&World<'_>| Some((ms(world)?, world.flow.mean_rate(samples)?));
            weighted_mean(worlds.iter().map(each))
        };
        vms.retain(|vm| held.iter().any(|world| world.owner == vm.name));
        let (kavg_ms, others_ms) = (mean_of(&held, &of)?, mean_of(&others, &of));
        Some(Self { vms, kavg_ms, qavg_ms: mean_of(&held, &qavg), others_ms })
    }

    fn sentence(&self, name: &str) -> String {
        const NAMED: usize = 3;
        let whose = match &self.vms[..] {
            [] => String::new(),
            _ if self.others_ms.is_none() => String::new(),
            vms if vms.len() > NAMED => format!("of {} VMs ", vms.len()),
            vms => {
                let names: Vec<&str> = vms.iter().map(|vm| &*vm.name).collect();
                format!("of {} ", names.join(", "))
            }
        };
        let others =
            self.others_ms.map(|ms| format!(" and those of others there for {}", number(ms)));
        format!(
            "Commands {whose}to {name} are held for {} ms each in the host (KAVG){}",
            number(self.kavg_ms),
            others.unwrap_or_default()
        )
    }
}

fn judge(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Option<Finding> {
    let (flow, name) = (&device.flow, device.flow.name);
    let held = HeldBack::of(device, &spell.samples)?;
    let mut finding = case.finding(Cause::HostWait, device.object(), spell);
    // Where refusals are counted they are not what holds these.
    let is_counted = case.facts.device(name).refusals.is_some();
    let held_number = steady::held_number(case, device, spell).filter(|_| !is_counted);
    let ceiling = iops_limit::nearly_reached(case, device).filter(|_| held_number.is_none());
    let free = ceiling.map_or("slots are free".into(), |ceiling| {
        format!(
            "slots are free, and more wait where more come, as for an IOPS limit of about {} that the load nearly \
             reaches, or for an array that takes no more",
            number(ceiling)
        )
    });
    let why = held_number.map_or(free, |held| {
        let or_a_limit = if held.is_sure { "" } else { ", and so may an IOPS limit of a disk" };
        format!(
            "slots are free, and never more than {} commands are out. So does an array that takes no \
             more and answers TASK SET FULL or BUSY while adaptive throttling is off{or_a_limit}",
            number(held.commands)
        )
    });
    let set = match &held.vms[..] {
        [vm] => iops_limit::rate_that_stays(case, device, (&vm.name, spell)),
        _ => None,
    };
    let is_queued = reaches(held.qavg_ms, Some(MOSTLY * held.kavg_ms));
    let may_be_limited = (is_queued || set.is_some())
        && held_number.is_none_or(|held| !held.is_sure)
        && !iops_limit::is_known_on(case, device);
    let is_no_other = held_number.is_none() && ceiling.is_none();
    finding.sentence = match may_be_limited && is_queued && is_no_other {
        true => format!(
            "{}, in the queues of the VMs themselves (QAVG) though slots are free: an IOPS limit or a storage policy \
             of their disks is the first to look at.",
            held.sentence(name)
        ),
        false => format!("{}, for no queue that the counters show: {why}.", held.sentence(name)),
    };
    if let Some(rate) = set.filter(|_| may_be_limited && is_no_other) {
        let rate = number(rate);
        finding.sentence +=
            &format!(" Its rate stays at {rate} a second, as under an IOPS limit of its disks.");
    }
    finding.standing = spell.mean(|s| Some(little(flow.rate(s)?, flow.kavg(s)?)))?;
    finding.evidence = queue_evidence(device, spell);
    let is_either = held_number.is_some_and(|held| !held.is_sure) || ceiling.is_some();
    finding.confidence = if is_either { 0.5 } else { 0.7 } * spell.weight();
    finding.raise_confidence = match held_number.map(|held| held.commands).or(ceiling) {
        Some(_) => {
            let limits = is_either.then(|| "The IOPS limits of the disks".into());
            let refusals = "TASK SET FULL (0x28) or BUSY (0x8) in vmkernel.log".into();
            [refusals].into_iter().chain(limits).collect()
        }
        None => {
            let lacks_conflicts = !device.faults.conflicts.is_there();
            let conflicts = "CONS/s, which `esxtop -b -a` records".into();
            let ready = "%RDY and %CSTP of the VMs in the same window".into();
            lacks_conflicts.then_some(conflicts).into_iter().chain([ready]).collect()
        }
    };
    finding.sufferers = held.vms;
    let names: Vec<&str> = finding.sufferers.iter().map(|vm| vm.name.as_str()).collect();
    let limits = may_be_limited.then(|| changes::show_limits(&names)).flatten();
    finding.changes = limits.into_iter().collect();
    finding.changes.push(changes::look(
        "Look for what holds commands without a queue: reservation conflicts, BUSY and retries of \
         this device in vmkernel.log, and a host short of CPU.",
        vec![format!("esxcli storage core device stats get -d {}", changes::shell(name))],
    ));
    finding.do_not =
        vec!["Do not raise queue depths: the device has slots to spare already.".into()];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use counters::Counter;

    use super::super::refused::tests::{before, full};
    use crate::{Cause, DeviceFacts, Facts, PathFacts, Thresholds, fixture::Bench};

    #[test]
    fn nothing_is_wrong_stands_beside_no_mean_of_137_ms_in_the_host() {
        let mut bench = Bench::new(8);
        let rate = |sample: usize| 60.0 + 25.0 * (sample % 3) as f64;
        let vm = bench.device("naa.1", 64).vm("a").iops_when(rate);
        vm.davg(1.0).kavg(137.0).sampled(|_| 9);
        bench.only(Cause::HostWait, &Facts::default());
    }

    #[test]
    fn seconds_in_one_sample_of_many_are_told() {
        let held = |kavg_ms: f64| {
            let mut bench = Bench::new(60);
            let vm = bench.device("naa.1", 64).vm("a");
            vm.iops_when(|s| if s == 30 { 12.0 } else { 1_000.0 + 50.0 * (s % 7) as f64 });
            vm.davg(0.5).kavg_when(move |s| if s == 30 { kavg_ms } else { 0.01 });
            bench.findings().iter().map(|finding| finding.cause).collect::<Vec<_>>()
        };
        assert_eq!(held(4_000.0), [Cause::HostWait]);
        assert_eq!(held(40.0), []);
    }

    #[test]
    fn what_waits_in_the_queue_of_its_vm_may_be_limited_and_the_line_that_shows_it_is_first() {
        let found = |qavg_ms: f64| {
            let mut bench = Bench::new(12);
            let rate = |sample: usize| 1_900.0 + 90.0 * (sample % 3) as f64;
            let device = bench.device("naa.1", 64);
            device.counter(Counter::QueueLatency, move |_| qavg_ms);
            device.vm("a").iops_when(rate).davg(0.5).kavg(7.5).sampled(|_| 1);
            bench.only(Cause::HostWait, &Facts::default())
        };
        let limited = found(7.5);
        assert!(limited.changes[0].powercli[0].contains("DiskLimitIOPerSecond"), "{limited:?}");
        // The rows of a bench have CONS/s.
        assert!(limited.raise_confidence[0].starts_with("%RDY"), "{limited:?}");
        assert!(found(0.0).changes[0].powercli.is_empty());
    }

    #[test]
    fn a_vm_that_completes_nothing_beside_another_is_named() {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 32);
        device.vm("v-1").iops(20_910.0).davg(0.956).kavg(0.191).sampled(|_| 20);
        device.vm("v-2").iops(0.0).queued(|_| 24);
        let finding = bench.only(Cause::HostWait, &Facts::default());
        assert!(finding.sentence.starts_with("24 commands of v-2 wait"), "{}", finding.sentence);
        assert_eq!((finding.window.samples, &*finding.sufferers[0].name), (12, "v-2"));
        // 20,910/s x 0.956 ms are 20 at the array.
        let finding = bench.only(Cause::HostWait, &before(full(20, 24.0)));
        assert!(finding.sentence.contains("array a takes 20"), "{}", finding.sentence);
    }

    #[test]
    fn one_path_that_is_full_beside_idle_ones_is_named() {
        // 64 threads, four paths of 16 commands, of which a fixed policy uses one.
        let paths =
            PathFacts { policy: "VMW_PSP_FIXED".into(), working: 1, ..PathFacts::default() };
        let device = DeviceFacts {
            max_queue_depth: Some(64),
            depth_of_path: Some(16),
            paths: Some(paths),
            ..DeviceFacts::default()
        };
        let facts = Facts { devices: [("naa.1".into(), device)].into(), ..Facts::default() };
        let mut bench = Bench::new(9);
        bench.paths(4).adapter_each();
        let rate = |sample: usize| 25_900.0 + 100.0 * (sample % 3) as f64;
        bench.device("naa.1", 64).vm("v").iops_when(rate).davg(0.62).kavg(1.85).sampled(|_| 64);
        let findings = bench.diagnose(&Thresholds::default(), &facts).findings;
        let finding = findings.iter().find(|finding| finding.cause == Cause::HostWait).unwrap();
        let told = "the paths in use take 16 of them, and the others are idle";
        assert!(finding.sentence.contains(told), "{}", finding.sentence);
        assert!(finding.changes[0].esxcli[0].contains("-P VMW_PSP_RR"), "{:?}", finding.changes);
    }

    #[test]
    fn an_array_that_takes_a_fixed_number_is_told_from_the_rows_of_its_queue() {
        // 40 threads. An array that takes 20 at 1.95 ms in the mean, whose rate scatters with the
        // latency; and one that takes 4 at 0.262 ms each, whose rate stays as that of a limit does.
        let scatter = |s: usize| 1.0 + 0.015 * ((s * 7 % 5) as f64 - 2.0) / 2.0;
        let mut bench = Bench::new(40);
        let vm = bench.device("naa.1", 64).vm("a").iops_when(move |s| 10_256.0 * scatter(s));
        vm.davg_when(move |s| 1.95 / scatter(s)).kavg(1.95).sampled(|_| 20).queued(|_| 20);
        let finding = bench.only(Cause::HostWait, &Facts::default());
        assert!(finding.sentence.contains("never more than 20 commands"), "{}", finding.sentence);
        assert!(!finding.sentence.contains("IOPS limit"), "{}", finding.sentence);
        let mut bench = Bench::new(40);
        let rate = |s: usize| 15_269.0 + 10.0 * (s % 3) as f64;
        let vm = bench.device("naa.1", 64).vm("a").iops_when(rate);
        vm.davg(0.262).kavg(2.36).sampled(|_| 4).queued(|_| 36);
        let finding = bench.only(Cause::HostWait, &Facts::default());
        assert!(finding.sentence.contains("TASK SET FULL"), "{}", finding.sentence);
        assert!(finding.sentence.contains("IOPS limit of a disk"), "{}", finding.sentence);
        assert!(finding.confidence <= 0.5, "{}", finding.confidence);
    }

    /// The same array of 20, of which the host has counted how often it refused; and one that refused nothing.
    #[test]
    fn refusals_that_are_counted_tell_whether_the_array_takes_no_more() {
        let found = |refusals: u64| {
            let device = DeviceFacts { refusals: Some(refusals), ..DeviceFacts::default() };
            let facts = Facts { devices: [("naa.1".into(), device)].into(), ..Facts::default() };
            let scatter = |s: usize| 1.0 + 0.015 * ((s * 7 % 5) as f64 - 2.0) / 2.0;
            let mut bench = Bench::new(40);
            let vm = bench.device("naa.1", 64).vm("a").iops_when(move |s| 10_256.0 * scatter(s));
            vm.davg_when(move |s| 1.95 / scatter(s)).kavg(1.95).sampled(|_| 20).queued(|_| 20);
            bench.only(Cause::HostWait, &facts)
        };
        let refused = found(1_900_000);
        let told = "its array takes no more, and answered TASK SET FULL or BUSY 1,900,000 times";
        assert!(refused.sentence.contains(told), "{}", refused.sentence);
        assert!(refused.confidence > 0.9 && refused.raise_confidence.is_empty(), "{refused:?}");
        assert!(refused.changes[0].what.starts_with("Give the queue of the array"));
        let other = found(12);
        assert!(!other.sentence.contains("TASK SET FULL"), "{}", other.sentence);
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
        for (rate, davg_ms, kavg_ms, is_told) in
            [(1_400.0, 0.5, 0.9, false), (400.0, 0.5, 2.5, true), (400.0, 6.0, 2.5, false)]
        {
            let mut bench = Bench::new(8);
            let rate = move |sample: usize| rate * (1.0 + 0.2 * (sample % 3) as f64);
            let device = bench.device("naa.1", 64);
            device.counter(Counter::QueueLatency, |_| 0.0);
            device.vm("a").iops_when(rate).davg(davg_ms).kavg(kavg_ms).sampled(|_| 1).queued(|_| 0);
            assert_eq!(!bench.findings().is_empty(), is_told, "{kavg_ms} beside {davg_ms}");
        }
    }

    #[test]
    fn one_vm_that_is_held_is_told_beside_others_that_hide_it_in_the_mean() {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", 64);
        let slow = |sample: usize| 690.0 + 50.0 * (sample % 3) as f64;
        device.counter(Counter::QueueLatency, |_| 0.0);
        device.vm("app").iops_when(slow).davg(1.5).kavg(10.1).sampled(|_| 1).queued(|_| 0);
        device.vm("web").iops_when(|s| 3_400.0 + 150.0 * (s % 4) as f64).davg(1.5).queued(|_| 0);
        let finding = bench.only(Cause::HostWait, &Facts::default());
        assert_eq!((finding.sufferers.len(), &*finding.sufferers[0].name), (1, "app"));
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

    #[test]
    fn a_number_that_is_held_beside_free_slots_is_no_rates_limit() {
        // An array that takes 24 and refuses what is more, before 50 threads.
        let mut bench = Bench::new(12);
        let rate = |sample: usize| 4_900.0 + 60.0 * (sample % 3) as f64;
        let vm = bench.device("naa.1", 64).vm("sql").iops_when(rate);
        vm.davg_when(move |s| 24_000.0 / rate(s)).kavg_when(move |s| 26_000.0 / rate(s));
        let finding = bench.only(Cause::HostWait, &Facts::default());
        assert!(finding.sentence.contains("never more than 24"), "{}", finding.sentence);
    }

    #[test]
    fn what_waited_for_an_outage_is_the_outages() {
        let out = |sample: usize| (3..9).contains(&sample);
        let mut bench = Bench::new(14);
        let vm =
            bench.device("naa.1", 32).vm("a").iops_when(move |s| if out(s) { 0.0 } else { 400.0 });
        vm.davg(2.0).kavg_when(|sample| if sample == 9 { 3_000.0 } else { 0.0 });
        vm.sampled(|_| 0).queued(move |sample| if out(sample) { 48 } else { 0 });
        bench.only(Cause::Silence, &Facts::default());
    }
}
