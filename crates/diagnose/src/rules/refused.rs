//! Commands that wait in the host because a queue of the array is full, its volume's or a port's, as only
//! a scenario knows: what it answers, who has its places, and what helps [KB-QF, LAMW].

use counters::Status;
use knobs::{Advanced, QFULL_SAMPLE_SIZE, Setting};

use super::{Case, adaptive_throttling, changes, iops_limit, number, queue_evidence, silence};
use crate::{
    ArrayQueue, Cause, Change, Device, Evidence, Finding, Flow, Party, Spell, Step, Threshold,
    World,
};

/// What waits for slots that adaptive throttling has taken waits for that, and for an IOPS limit for
/// that. A device may have no load to be seen: nothing of it completes.
pub(super) fn found(case: &Case<'_>, device: &Device<'_>) -> Option<Finding> {
    let queue = case.array_queue(device).filter(|queue| queue.refuses())?;
    let is_throttled = !device.busy.is_empty() && adaptive_throttling::applies(case, device);
    if is_throttled || !iops_limit::waiting_for_limits(case, device).is_empty() {
        return None;
    }
    let all = case.host.every_sample();
    let rate = device.flow.mean_rate(&all).unwrap_or_default();
    let wait_ms = (rate > 0.0).then(|| 1000.0 * queue.waiting / rate);
    let least_ms = device.flow.per_command(&all, Flow::davg).map(|ms| device.least_wait_ms(ms));
    let counts = queue.waiting >= device.limits.get(Threshold::Waiting);
    let is_long = wait_ms.zip(least_ms).is_none_or(|(wait_ms, least_ms)| wait_ms >= least_ms);
    let among = if device.busy.is_empty() { &all } else { &device.busy };
    let spell = Spell::any(among, |_| counts && is_long)?;
    Some(judge(case, device, queue, &spell, wait_ms))
}

fn judge(
    case: &Case<'_>,
    device: &Device<'_>,
    queue: &ArrayQueue,
    spell: &Spell,
    wait_ms: Option<f64>,
) -> Finding {
    const FAR_LESS: f64 = 0.5;
    let mut finding = case.finding(Cause::HostWait, device.object(), spell);
    let how_long = wait_ms.map_or("wait in the host and none completes".into(), |wait_ms| {
        // esxtop has no KAVG of NFS [ELA].
        let kavg = if device.is_nfs { "" } else { " (KAVG)" };
        format!("wait {} ms each in the host{kavg}", number(wait_ms))
    });
    let slots = if !device.is_used_up() { " though it has slots" } else { "" };
    finding.sentence = format!(
        "{} commands to {} {how_long}{slots}: {}.",
        number(queue.waiting),
        device.flow.name,
        queue.told()
    );
    finding.standing = queue.waiting;
    finding.evidence = queue_evidence(device, spell);
    finding.evidence.extend([
        Evidence::new("commands that the queue takes", queue.takes.into(), ""),
        Evidence::new("commands there, of all hosts", queue.inside, ""),
        Evidence::new("refusals per second", queue.refusals, "1/s"),
    ]);
    finding.confidence = 0.98;
    finding.sufferers = device.tenants(&spell.samples);
    if finding.sufferers.is_empty() {
        finding.sufferers = stopped(device, &spell.samples);
    }
    let own = spell.mean(|sample| device.flow.in_flight(sample)).unwrap_or_default();
    let other = queue.most.as_ref().map_or(0.0, |(_, inside)| *inside);
    if other <= FAR_LESS * own {
        finding.causers = super::causers(&finding.sufferers);
    }
    let has_less = own <= FAR_LESS * other;
    finding.changes = what_helps(case, device, queue, has_less);
    finding.do_not =
        vec!["Do not raise the device's depth: what is behind it takes no more.".into()];
    finding
}

/// Whose commands do not complete: those who have some to be seen, or all, for what is held until it is sent
/// again stands in no column.
fn stopped(device: &Device<'_>, samples: &[usize]) -> Vec<Party> {
    let seen = silence::stopped(device, samples);
    if !seen.is_empty() {
        return seen;
    }
    let worlds = device.worlds.iter().filter(|world| !world.is_system);
    let none = |world: &World<'_>| Party {
        name: world.owner.into(),
        iops: 0.0,
        gavg_ms: None,
        slots: 0.0,
        waiting: None,
    };
    worlds.map(none).collect()
}

/// For each host its own part where another has most of it, and else more places.
fn what_helps(
    case: &Case<'_>,
    device: &Device<'_>,
    queue: &ArrayQueue,
    has_less: bool,
) -> Vec<Change> {
    let known = case.facts.device(device.flow.name);
    // A host that has the queue for itself only keeps its own commands back by it.
    let is_off = known.queue_full_sample_size == Some(0) && queue.most.is_some();
    let is_unfair = has_less || queue.answer == Status::TaskSetFull;
    let throttle = (is_off && is_unfair).then(|| throttle(case, device, queue));
    let part = has_less.then(|| lower_to_part(case, device, queue)).flatten();
    let what = format!(
        "Give {} more than {} places, or spread the VMs over more volumes and ports. Its vendor says what \
         each takes.",
        queue.name(),
        queue.takes
    );
    let deeper = changes::look(what, Vec::new())
        .risking("The array has more to do at once.", "Set what was");
    let (first, last) = if has_less { (None, Some(deeper)) } else { (Some(deeper), None) };
    ask_as_soon(case, queue)
        .into_iter()
        .chain(first)
        .chain(part)
        .chain(throttle)
        .chain(last)
        .collect()
}

/// One setting, and what takes it back.
fn sets(case: &Case<'_>, what: String, [set, undo]: [Setting; 2], risk: &str) -> Change {
    let steps = vec![Step::new(set, Some(undo))];
    Change { risk: risk.into(), ..changes::setting(what, Some(case.host), steps) }
}

fn ask_as_soon(case: &Case<'_>, queue: &ArrayQueue) -> Option<Change> {
    let (from, to) = (queue.delay_ms, queue.least_delay_ms);
    let info = Advanced::DelayOnBusy.info();
    let set = |value| Setting::Advanced { option: info.option, value: Some(value) };
    let what = format!(
        "Lower {} from {from} to {to}, as another host has it. Who asks {} again sooner gets the place.",
        info.path,
        queue.name()
    );
    let risk = "The array is asked more often while it is full.";
    let is_late = queue.answer == Status::Busy && to < from;
    is_late.then(|| sets(case, what, [to, from].map(set), risk))
}

fn lower_to_part(case: &Case<'_>, device: &Device<'_>, queue: &ArrayQueue) -> Option<Change> {
    let from = case.facts.device(device.flow.name).last_depths()[0]?;
    let to = queue.part.filter(|part| *part < from)?;
    let set = |value| Setting::MaxQueueDepth { device: device.flow.name.to_string(), value };
    let what = format!(
        "Lower Device Max Queue Depth of {} from {from} to {to} on every host, its part of {}. None is \
         refused then.",
        device.flow.name,
        queue.name()
    );
    let risk = "A host has no more than that while the others have nothing to do.";
    Some(sets(case, what, [to, from].map(set), risk))
}

fn throttle(case: &Case<'_>, device: &Device<'_>, queue: &ArrayQueue) -> Change {
    let set = |sample_size| Setting::QueueFull {
        device: device.flow.name.to_string(),
        sample_size,
        threshold: Advanced::QFullThreshold.info().default,
    };
    let what = format!(
        "Switch adaptive queue depth of {} on, on every host that uses {}. Who is refused then sends less \
         until there is room.",
        device.flow.name,
        queue.name()
    );
    let risk = "A host without it takes the places that the others leave.";
    sets(case, what, [QFULL_SAMPLE_SIZE, 0].map(set), risk)
}

#[cfg(test)]
pub(super) mod tests {
    use counters::{Counter, Status};

    use crate::{ArrayQueue, Cause, Facts, fixture::Bench};

    /// The queue of a volume that refuses what is more than it takes, so that some wait in the host.
    pub(in crate::rules) fn full(takes: u32, waiting: f64) -> ArrayQueue {
        ArrayQueue {
            array: "a".into(),
            of_port: false,
            takes,
            inside: takes.into(),
            own: 0.0,
            shut_out: None,
            most: None,
            part: Some(takes),
            answer: Status::TaskSetFull,
            refusals: 500.0,
            waiting,
            delay_ms: 400,
            least_delay_ms: 400,
        }
    }

    /// A device behind which that stands.
    pub(in crate::rules) fn before(queue: ArrayQueue) -> Facts {
        let mut facts = Facts::default();
        let device = facts.devices.entry("naa.1".into()).or_default();
        (device.array_queue, device.max_queue_depth) = (Some(queue), Some(64));
        device.queue_full_sample_size = Some(0);
        facts
    }

    #[test]
    fn a_device_that_is_refused_all_is_not_silent() {
        let most = Some(("esx02".into(), 16.0));
        let full =
            |answer| ArrayQueue { most: most.clone(), part: Some(8), answer, ..full(16, 16.0) };
        let named = |answer| {
            let mut bench = Bench::new(12);
            let queued = if answer == Status::Busy { 0 } else { 16 };
            bench.device("naa.1", 64).vm("v").iops(0.0).queued(move |_| queued);
            bench.only(Cause::HostWait, &before(full(answer)))
        };
        for (answer, text) in [(Status::Busy, "BUSY"), (Status::TaskSetFull, "TASK SET FULL")] {
            let finding = named(answer);
            let told = format!(
                "16 commands to naa.1 wait in the host and none completes though it has slots: the queue \
                 of the volume of array a takes 16 commands, of which esx02 has 16, and it answers \
                 {text} to more."
            );
            assert_eq!(finding.sentence, told);
            assert_eq!((&*finding.sufferers[0].name, finding.causers.len()), ("v", 0));
            let lines: Vec<_> = finding.changes.iter().flat_map(|change| &change.esxcli).collect();
            assert!(lines[0].ends_with("-d naa.1 -m 8"), "{lines:?}");
            assert!(lines[1].ends_with("-d naa.1 -s 32 -q 8"), "{lines:?}");
        }
    }

    /// Who sends less leaves places to others: there is none, and the host's own commands wait for them longer.
    #[test]
    fn a_host_that_has_the_queue_for_itself_is_not_to_be_throttled() {
        let mut bench = Bench::new(12);
        let vm = bench.device("naa.1", 64).vm("v");
        vm.iops_when(|s| 4_000.0 + 2_000.0 * (s * 7 % 5) as f64)
            .davg(0.75)
            .kavg(5.0)
            .sampled(|_| 5);
        let lines = |queue| -> Vec<String> {
            let finding = bench.only(Cause::HostWait, &before(queue));
            assert!(finding.changes[0].what.contains("more than 4 places"), "{finding:?}");
            finding.changes.into_iter().flat_map(|change| change.esxcli).collect()
        };
        assert_eq!(lines(full(4, 35.0)), [""; 0]);
        let most = Some(("esx02".into(), 2.0));
        assert!(lines(ArrayQueue { most, ..full(4, 35.0) })[0].ends_with("-s 32 -q 8"));
    }

    #[test]
    fn hosts_that_wait_alike_for_an_array_that_answers_busy_are_told_alike() {
        // 7,200/s of both and 8 of each held; the samples of one scatter more.
        let mut told = Vec::new();
        for scatter in [0.2, 1.5] {
            let mut bench = Bench::new(25);
            let device = bench.device("naa.1", 64);
            device.counter(Counter::QueueLatency, |_| 0.0);
            let vm = device.vm("v").iops_when(|s| 3_600.0 + 60.0 * (s % 3) as f64);
            vm.davg(2.2).kavg_when(move |s| 2.2 + scatter * ((s % 3) as f64 - 1.0)).sampled(|_| 8);
            let most = Some(("esx02".into(), 8.0));
            let queue = ArrayQueue { most, answer: Status::Busy, ..full(16, 8.0) };
            let finding = bench.only(Cause::HostWait, &before(queue));
            told.push((finding.sentence, finding.changes));
        }
        assert_eq!(told[0], told[1]);
        assert!(told[0].1[0].what.contains("the queue of the volume of array a"), "{told:?}");
    }

    #[test]
    fn who_asks_an_array_that_answers_busy_later_than_others_is_to_ask_as_soon() {
        let mut bench = Bench::new(12);
        bench
            .device("naa.1", 64)
            .vm("v")
            .iops_when(|s| 600.0 + 300.0 * (s * 7 % 5) as f64)
            .davg(2.2)
            .kavg(15.0)
            .sampled(|_| 2);
        let most = Some(("esx02".into(), 14.0));
        let queue = ArrayQueue { most, answer: Status::Busy, least_delay_ms: 10, ..full(16, 13.5) };
        let finding = bench.only(Cause::HostWait, &before(queue));
        let line = &finding.changes[0].esxcli[0];
        assert!(line.ends_with("-o /Disk/DelayOnBusy -i 10"), "{line}");
    }

    #[test]
    fn an_array_that_takes_no_more_is_named_beside_free_slots() {
        // Two VMs of 24 threads before an array whose queue takes 20: 28 of the 48 wait, which at
        // 20,900 a second is 1.34 ms.
        for depth in [32, 64] {
            let mut bench = Bench::new(9);
            let device = bench.device("naa.1", depth);
            for vm in ["v-1", "v-2"] {
                let rate = |sample: usize| 10_450.0 + 1_500.0 * ((sample % 3) as f64 - 1.0);
                device.vm(vm).iops_when(rate).davg(0.957).kavg(1.34).sampled(|_| 10);
            }
            let finding = bench.only(Cause::HostWait, &before(full(20, 28.0)));
            let told = "in the host (KAVG) though it has slots: the queue of the volume of array a takes 20";
            assert!(finding.sentence.contains(told), "{}", finding.sentence);
            assert!(bench.findings().iter().all(|finding| finding.cause != Cause::HostWait));
        }
    }
}
