//! A device that does not answer: commands are outstanding, nothing completes. All paths down
//! looks like this, and so does an array that hangs. It may have begun before the recording did.

use counters::Counter;

use super::{
    Case, LASTING, Rank, Rule, adaptive_throttling,
    alike::{begin_together, united},
    changes, iops_limit, number, reservations,
};
use crate::{
    ArrayQueue, Cause, Change, Device, Evidence, Finding, Flow, LevelKind, Party, Queue, Spell,
    Stall, largest, mean, quantile,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Array,
    rank: |_| Rank::Fault,
    reads: &[
        Flow::COUNTERS,
        Queue::COUNTERS,
        &[Counter::Aborts, Counter::FailedCommands, Counter::Conflicts],
    ],
    find,
};

/// Commands that must be outstanding: a single one may be a long one, or wait for a limit.
const OUTSTANDING: f64 = 2.0;
/// Seconds after load from which on a single one is neither: in the host, where even a command of 512 KiB has
/// waited for the lowest limit by then, and below it, where a guest gives up what takes so long (Linux [KB-TO]).
const QUEUED_S: f64 = 4.5;
const ALONE_S: f64 = 30.0;

/// The part of the samples that has the quick commands.
const QUICK: f64 = 0.1;
/// Samples in a row that are enough after load.
const AFTER_LOAD: usize = 2;
/// Seconds after load that are enough in one sample.
const STALL_S: f64 = 4.5;
/// The same after so much load that many commands are missing, and how many.
const SHORT_S: f64 = 1.9;
const MISSING: f64 = 100.0;

/// Devices that fall silent together are one finding: whatever does that is one thing.
fn find(case: &Case<'_>) -> Vec<Finding> {
    let all = case.host.devices.iter().filter_map(|device| found(case, device));
    united(all, "device", |first, other| begin_together(case, first, other))
}

fn found(case: &Case<'_>, device: &Device<'_>) -> Option<Finding> {
    let every = case.host.every_sample();
    let runs = |least: f64| {
        let silent = every.split(move |sample| !is_silent(case, device, *sample, least));
        silent.filter(|run| !run.is_empty())
    };
    let least = if runs(1.0).any(|run| lasts_alone(case, device, run)) {
        1.0
    } else if runs(OUTSTANDING).any(|run| lasts(case, device, run)) {
        OUTSTANDING
    } else {
        f64::INFINITY
    };
    let silent = |sample| is_silent(case, device, sample, least);
    let spell = Spell::any(&every, |s| silent(s) || stalls(case, device, s))?;
    let still: Vec<usize> = spell.samples.iter().copied().filter(|&s| silent(s)).collect();
    judge(case, device, &spell, &still)
}

/// Whether a device gives no answer in a part of a sample, or is known to give none: what waits
/// meanwhile waits for that.
pub(super) fn stalls(case: &Case<'_>, device: &Device<'_>, sample: usize) -> bool {
    device.stalls.contains_key(&sample) || is_known(case, device, sample)
}

/// Whether samples without an answer are none of chance.
fn lasts(case: &Case<'_>, device: &Device<'_>, run: &[usize]) -> bool {
    let seconds: f64 = run.iter().map(|&sample| case.host.interval_s(sample)).sum();
    if takes_longer(device, seconds) {
        return false;
    }
    let Some(rate) = device.flow.mean_rate(&device.busy) else { return run.len() >= LASTING };
    run.len() >= AFTER_LOAD || seconds >= STALL_S || seconds >= SHORT_S && rate * seconds >= MISSING
}

/// The same where a single command is outstanding: after load alone, for without any it may be one that is
/// counted though nobody waits for it.
fn lasts_alone(case: &Case<'_>, device: &Device<'_>, run: &[usize]) -> bool {
    let seconds: f64 = run.iter().map(|&sample| case.host.interval_s(sample)).sum();
    let is_below = run.iter().any(|&sample| device.queue.actv.at(sample) != Some(0.0));
    let least_s = if is_below { ALONE_S } else { QUEUED_S };
    !device.busy.is_empty() && !takes_longer(device, seconds) && seconds >= least_s
}

/// Whether even the quick commands of a device take longer than that, there or in several samples in the host: it
/// is slow, and answers.
fn takes_longer(device: &Device<'_>, seconds: f64) -> bool {
    let gavg_ms = device.busy.iter().map(|&sample| device.flow.gavg(sample));
    let usual_ms = quantile(gavg_ms, QUICK).filter(|_| device.busy.len() >= LASTING);
    let quickest_ms =
        [Some(device.quickest_ms), usual_ms].into_iter().flatten().filter(|ms| ms.is_finite());
    largest(quickest_ms).is_some_and(|ms| 1000.0 * seconds <= ms)
}

/// Whether nothing of a device completes in a sample though `least` commands are outstanding.
fn is_silent(case: &Case<'_>, device: &Device<'_>, sample: usize, least: f64) -> bool {
    let none = device.flow.commands.at(sample) == Some(0.0);
    let has_no_path = !dead_paths(case, device.flow.name).is_empty();
    (none || only_the_hosts_own_fail(device, sample, least))
        && inside(device, sample) >= Some(least)
        && !adaptive_throttling::rests(case, device, sample)
        && reservations::collide(device, sample) != Some(true)
        && (has_no_path || !waits_for_another(case, device, sample))
}

/// Whether what is outstanding is known to wait for something else than an answer: the array says that its
/// queue is full, or limits let nothing go. Without a path nobody answers.
fn waits_for_another(case: &Case<'_>, device: &Device<'_>, sample: usize) -> bool {
    case.array_queue(device).is_some_and(ArrayQueue::refuses)
        || iops_limit::lets_none_go(case, device, sample)
}

/// Whether all that completes fails, and is the host's own: that it gives up on a device without paths
/// after a while (`Misc.APDTimeout`) while those of VMs go on waiting [DOC-APD].
fn only_the_hosts_own_fail(device: &Device<'_>, sample: usize, least: f64) -> bool {
    let mut vms = device.worlds.iter().filter(|world| !world.is_system);
    let waits = vms.clone().any(|world| world.queue.sampled(sample) >= Some(least));
    let fails = device.flow.commands.at(sample).is_some_and(|commands| {
        commands > 0.0 && device.faults.failed.at(sample) >= Some(commands)
    });
    fails && waits && vms.all(|world| world.flow.rate(sample) == Some(0.0))
}

/// Commands at the instant of the sample; of NFS esxtop has ACTV alone [ELA], and where no path is left all
/// wait in the host, of which a run alone tells.
fn inside(device: &Device<'_>, sample: usize) -> Option<f64> {
    let held = || device.held.at(sample).unwrap_or_default().ceil();
    let of_nfs = || Some(device.queue.actv.at(sample)? + held()).filter(|_| device.is_nfs);
    device.queue.sampled(sample).or_else(of_nfs)
}

/// Whether it is known that there is no answer in a sample in which there is somebody to be answered.
fn is_known(case: &Case<'_>, device: &Device<'_>, sample: usize) -> bool {
    is_array_silent(case, device, sample)
        || is_cut_off(case, device, sample)
        || on_cut_path(case, device, sample).is_some()
}

/// Whether the array gives none then.
fn is_array_silent(case: &Case<'_>, device: &Device<'_>, sample: usize) -> bool {
    let is_asked = || inside(device, sample) >= Some(1.0) || device.flow.rate(sample) > Some(0.0);
    is_among(case, sample, &case.facts.device(device.flow.name).silent) && is_asked()
}

/// Whether no path leads there, and nothing completes: what does in a part of a sample is told by its latency, unless
/// that is none because the outage is not over by then.
fn is_cut_off(case: &Case<'_>, device: &Device<'_>, sample: usize) -> bool {
    let (times, end) = (&case.facts.device(device.flow.name).cut_off, case.host.times_ms[sample]);
    let lasts = || times.iter().any(|(from, to)| (*from..*to).contains(&end));
    is_among(case, sample, times)
        && (is_waited_for(device, sample) || lasts() && inside(device, sample) >= Some(1.0))
}

/// Whether nothing completes though somebody waits for that.
fn is_waited_for(device: &Device<'_>, sample: usize) -> bool {
    device.flow.commands.at(sample) == Some(0.0) && inside(device, sample) >= Some(1.0)
}

/// The path that leads nowhere, with what is outstanding, while the host does not know that: others may lead there.
fn on_cut_path<'c>(case: &'c Case<'_>, device: &Device<'_>, sample: usize) -> Option<&'c str> {
    let mut cut = case.facts.device(device.flow.name).cut.iter();
    let path = cut.find(|path| path.is_used && is_among(case, sample, &path.times))?;
    let is_held = is_waited_for(device, sample);
    (is_held && !takes_longer(device, case.host.interval_s(sample))).then_some(&path.name)
}

/// The path that was down, be it just before, when commands were held up in a sample that completes them.
fn after_cut_path<'c>(case: &'c Case<'_>, device: &Device<'_>, sample: usize) -> Option<&'c str> {
    device.stalls.get(&sample)?;
    let paths = case.facts.device(device.flow.name).paths.as_ref()?;
    let (begin, end) = (case.host.begin_ms(sample), case.host.times_ms[sample]);
    let is_down = |times: &[(i64, i64)]| times.iter().any(|(from, to)| *from < end && begin <= *to);
    let mut down = paths.dead.as_ref()?.iter();
    down.find(|(_, times)| is_down(times)).map(|(name, _)| name.as_str())
}

/// Whether a sample has a part of any of those times.
fn is_among(case: &Case<'_>, sample: usize, times: &[(i64, i64)]) -> bool {
    let (begin, end) = (case.host.begin_ms(sample), case.host.times_ms[sample]);
    times.iter().any(|(from, to)| *from < end && begin < *to)
}

/// The finding about a device that gives no answer; `still` are the samples in which nothing completes.
fn judge(case: &Case<'_>, device: &Device<'_>, spell: &Spell, still: &[usize]) -> Option<Finding> {
    let (name, samples) = (device.flow.name, &spell.samples);
    let inside = largest(samples.iter().filter_map(|&sample| inside(device, sample)))?;
    let aborts = largest(device.faults.aborts.over(samples));
    let mut finding = case.finding(Cause::Silence, device.object(), spell);
    let dead = dead_paths(case, name);
    let any = |is: fn(&Case<'_>, &Device<'_>, usize) -> bool| {
        samples.iter().any(|&sample| is(case, device, sample))
    };
    let stalls = samples.iter().filter_map(|sample| device.stalls.get(sample));
    let stall = stalls.max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let on_path = samples.iter().find_map(|&sample| {
        on_cut_path(case, device, sample).or_else(|| after_cut_path(case, device, sample))
    });
    let why = match (&dead[..], on_path) {
        _ if any(is_array_silent) => "its array is known to give no answer".into(),
        ([path], _) => format!("its path {path} is down"),
        ([_, ..], _) => format!("all its {} paths are down", dead.len()),
        _ if any(is_cut_off) => "no path to it works".into(),
        ([], Some(path)) => format!("while {path} was dead and the host did not know it"),
        _ if device.is_nfs => "as when the server or the network is gone".into(),
        _ => "as when all paths are down".into(),
    };
    finding.sentence = match stall {
        Some(stall) if still.is_empty() => told(name, stall, &why),
        _ => format!(
            "{name} does not answer: {} outstanding and none completes, {why}.",
            if inside > 1.0 {
                format!("{} commands are", number(inside))
            } else {
                "one command is".into()
            }
        ),
    };
    finding.standing = inside;
    let rate = device.flow.mean_rate(if still.is_empty() { samples } else { still });
    let rate = rate.unwrap_or_default();
    finding.evidence = vec![
        Evidence::new("commands per second", rate, "1/s"),
        Evidence::new("ACTV + QUED, sampled", inside, ""),
    ];
    let davg = largest(samples.iter().filter_map(|&sample| device.flow.davg(sample)));
    finding.evidence.extend(Evidence::of([
        ("DAVG, at most", davg.filter(|ms| *ms > 0.0), "ms"),
        ("aborts per second, at most", aborts, "1/s"),
    ]));
    if !dead.is_empty() || on_path.is_some() || any(is_known) {
        finding.confidence = 0.99;
    } else {
        finding.confidence = if aborts > Some(0.0) { 0.95 } else { 0.85 };
        finding.raise_confidence =
            vec!["\"APD\" or \"permanently inaccessible\" in vmkernel.log and vobd.log".into()];
    }
    finding.sufferers = match still {
        [] => device.tenants(samples),
        _ => stopped(device, samples),
    };
    finding.changes = vec![look(device)];
    finding.do_not =
        vec!["Do not reboot the host first: it may hang on the device it cannot reach.".into()];
    Some(finding)
}

/// What is said of a device that answers again.
fn told(name: &str, stall: &Stall, why: &str) -> String {
    let seconds = number(stall.seconds);
    match stall.is_least {
        true => format!(
            "{name} did not answer for at least {seconds} s, {why}: so long what completes then held its slots \
             and was not answered."
        ),
        false => format!(
            "{name} did not answer for about {seconds} s, {why}: so long all its slots were taken, though as many \
             commands before and after it are answered at once."
        ),
    }
}

/// Where to look for what happened.
fn look(device: &Device<'_>) -> Change {
    if device.is_nfs {
        let what = "Find out what happened to the network and the server in this window.";
        return changes::look(what, Vec::new());
    }
    changes::look(
        "Find out what happened to the paths, the fabric and the array in this window.",
        vec![
            format!("esxcli storage core path list -d {}", changes::shell(device.flow.name)),
            "esxcli storage core adapter list".into(),
        ],
    )
}

/// The paths of a device, where all of them are known to be down.
fn dead_paths<'c>(case: &'c Case<'_>, name: &str) -> Vec<&'c str> {
    let paths = case.facts.device(name).paths.as_ref().filter(|paths| paths.working == 0);
    let dead = paths.and_then(|paths| paths.dead.as_ref());
    dead.into_iter().flatten().map(|(path, _)| path.as_str()).collect()
}

/// Who had load before, or has commands outstanding: nothing of it completes, and what does not
/// complete has no latency.
pub(super) fn stopped(device: &Device<'_>, samples: &[usize]) -> Vec<Party> {
    let mut stopped = device.tenants(&device.busy);
    for world in device.worlds.iter().filter(|world| !world.is_system) {
        let inside = mean(samples.iter().filter_map(|&sample| world.queue.sampled(sample)));
        let slots = inside.unwrap_or_default();
        if slots > 0.0 && stopped.iter().all(|party| party.name != world.owner) {
            let name = world.owner.into();
            stopped.push(Party { name, iops: 0.0, gavg_ms: None, slots, waiting: Some(0.0) });
        }
    }
    stopped.into_iter().map(|party| Party { iops: 0.0, gavg_ms: None, ..party }).collect()
}

#[cfg(test)]
mod tests {
    use counters::{Counter, Entity, Kind, Recording};
    use levels::Measured;

    use crate::{
        Cause, CutPath, Facts, Finding, Thresholds, diagnose,
        fixture::{self, Bench, limited},
    };

    #[test]
    fn a_device_whose_every_command_takes_longer_is_slow_and_not_silent() {
        // Eight commands at a time, 33 s each, read every 5 s: they complete in one sample of four.
        let mut bench = Bench::new(40);
        let device = bench.device("naa.1", 32);
        device
            .vm("a")
            .iops_when(|s| if s % 4 == 3 { 0.4 } else { 0.0 })
            .davg(33_000.0)
            .sampled(|_| 8);
        bench.only(Cause::ArraySlow, &Facts::default());
    }

    #[test]
    fn devices_that_fall_silent_together_are_one_finding() {
        let found = |since: [usize; 3]| {
            let mut bench = Bench::new(12);
            for (name, from) in ["naa.1", "naa.2", "naa.3"].into_iter().zip(since) {
                let vm = bench.device(name, 64).vm(name);
                vm.iops_when(move |s| if s < from { 500.0 } else { 0.0 }).davg(1.0).sampled(|_| 12);
            }
            let findings = bench.findings();
            findings.iter().map(|found| 1 + found.also.len()).collect::<Vec<_>>()
        };
        assert_eq!([found([6, 7, 6]), found([2, 6, 6])], [vec![3], vec![2, 1]]);
    }

    #[test]
    fn commands_that_never_complete_are_silence() {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", 64);
        device.vm("a").iops_when(|s| if s < 4 { 500.0 } else { 0.0 }).davg(1.0).sampled(|_| 12);
        let finding = bench.first(Cause::Silence, &Facts::default());
        assert_eq!((finding.window.samples, finding.sufferers[0].name.as_str()), (4, "a"));
        let verdict = bench.diagnose(&Thresholds::default(), &Facts::default());
        assert!(!verdict.headline.contains("ms a command"), "{}", verdict.headline);
        let text = crate::render_text(&verdict);
        assert!(text.contains("a (none completes)"), "{text}");
    }

    #[test]
    fn five_seconds_without_an_answer_are_named_in_one_sample() {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", 64);
        device.vm("a").iops_when(|s| if s == 4 { 0.0 } else { 500.0 }).davg(1.0).sampled(|_| 12);
        assert_eq!(bench.first(Cause::Silence, &Facts::default()).window.samples, 1);
    }

    #[test]
    fn two_seconds_of_nothing_are_named_where_ten_thousand_commands_are_missing() {
        let mut bench = Bench::new(24);
        bench.interval_s(2);
        let device = bench.device("naa.1", 64);
        device.vm("a").iops_when(|s| if s == 9 { 0.0 } else { 5_600.0 }).davg(1.4).sampled(|_| 8);
        assert_eq!(bench.first(Cause::Silence, &Facts::default()).window.samples, 1);
    }

    /// Eight threads that do 7,300 a second at 1.09 ms, for which a device is silent from the first
    /// sample to that before the `after`: each is answered once after so many seconds of 1 s.
    fn begins_silent(after: usize) -> Bench {
        let mut bench = Bench::new(28);
        bench.interval_s(1);
        let vm = bench.device("naa.1", 32).vm("a");
        vm.iops_when(move |s| if s < after { 0.0 } else { 7_300.0 + (s % 3) as f64 * 40.0 });
        vm.davg_when(
            move |s| if s == after { 1.09 + 8.0 * 1000.0 * after as f64 / 7_300.0 } else { 1.09 },
        );
        vm.sampled(|_| 8);
        bench
    }

    #[test]
    fn an_outage_in_which_the_recording_begins_is_told_for_as_long_as_it_lasts() {
        let verdict = begins_silent(19).diagnose(&Thresholds::default(), &Facts::default());
        let [finding] = &verdict.findings[..] else { panic!("{:?}", verdict.findings) };
        assert_eq!((finding.cause, finding.window.samples), (Cause::Silence, 20));
        let told = "does not answer: 8 commands are outstanding and none completes";
        assert!(finding.sentence.contains(told), "{}", finding.sentence);
        assert_eq!(finding.sufferers[0].name, "a");
        // Five rows of ten seconds, as when somebody starts to record because the host hangs.
        let mut bench = Bench::new(12);
        bench.interval_s(10);
        let rate = |s: usize| if s < 5 { 0.0 } else { 8_000.0 + (s % 3) as f64 * 30.0 };
        bench.device("naa.1", 32).vm("a").iops_when(rate).davg(1.0).sampled(|_| 8);
        assert_eq!(bench.only(Cause::Silence, &Facts::default()).window.samples, 5);
    }

    #[test]
    fn what_the_host_gives_up_of_its_own_is_no_answer_to_vms() {
        let (mut recording, [device, of_vm, own]) =
            fixture::beside_the_host("vmfs", (0..24).map(|sample| 5_000 * sample));
        // No path from sample 6 on; from 12 on the host fails its own lock of each second at once.
        let put = |load: f64, waits: f64, fails: f64| -> Vec<f64> {
            let value = |sample| match sample {
                6..12 => waits,
                12..18 => waits + fails,
                _ => load,
            };
            (0..24).map(value).collect()
        };
        recording.set_column(device, Counter::Commands, put(400.0, 0.0, 1.0));
        recording.set_column(device, Counter::FailedCommands, put(0.0, 0.0, 1.0));
        recording.set_column(of_vm, Counter::Commands, put(400.0, 0.0, 0.0));
        recording.set_column(own, Counter::Commands, put(0.0, 0.0, 1.0));
        for row in [device, of_vm] {
            recording.set_column(row, Counter::DriverLatency, put(2.0, 0.0, 0.0));
            recording.set_column(row, Counter::GuestLatency, put(2.0, 0.0, 0.0));
            recording.set_column(row, Counter::ActiveCommands, put(1.0, 0.0, 0.0));
            recording.set_column(row, Counter::QueuedCommands, put(0.0, 16.0, 0.0));
        }
        let verdict = diagnose(&Measured::of(recording), &Thresholds::default(), &Facts::default());
        let finding = &verdict.findings[0];
        assert_eq!((finding.cause, finding.window.samples), (Cause::Silence, 12), "{verdict:?}");
        assert_eq!(finding.sufferers[0].name, "a");
    }

    #[test]
    fn an_nfs_volume_that_gives_no_answer_for_20_s_is_silent() {
        let mut recording = Recording::new("esx1".into());
        recording.times_ms = (0..28).map(|sample| 2_000 * sample).collect();
        let volume = recording.add_entity(Entity::new(Kind::NfsVolume, "nfs1".into()));
        // Eight threads do 5,600 a second, but for nine samples; those eight complete in the next:
        // of its 5,654 commands they take 20 s each, so the mean is 29.7 ms.
        let put = |still: f64, after: f64, normal: f64| {
            let value = |sample| match sample {
                11..=19 => still,
                20 => after,
                _ => normal,
            };
            (0..28).map(value).collect::<Vec<f64>>()
        };
        recording.set_column(volume, Counter::Commands, put(0.0, 2_827.0, 5_600.0));
        recording.set_column(volume, Counter::GuestLatency, put(0.0, 29.71, 1.43));
        recording.set_constant(volume, Counter::ActiveCommands, 8.0, 28);
        let verdict = diagnose(&Measured::of(recording), &Thresholds::default(), &Facts::default());
        let finding = &verdict.findings[0];
        assert_eq!((finding.cause, finding.window.samples), (Cause::Silence, 9));
        assert!(!finding.sentence.contains("paths"), "{}", finding.sentence);
    }

    /// 400 commands a second at 0.4 ms, for which a device of 64 slots is silent for 3 s. It holds 64
    /// of them, the rest waits in the guest; in the sample that follows 702.5 a second complete,
    /// 64 of them after 3 s: 134 ms in the mean.
    fn short_stall() -> Bench {
        let mut bench = Bench::new(24);
        bench.interval_s(2);
        let after = |then: f64, normal: f64| move |s: usize| if s == 13 { then } else { normal };
        let vm = bench.device("naa.1", 64).vm("a");
        vm.iops_when(after(702.5, 400.0)).davg_when(after(133.84, 0.4));
        vm.sampled(|s| if s == 12 { 64 } else { 0 });
        bench
    }

    #[test]
    fn three_seconds_between_two_samples_are_proven_by_what_completes_then() {
        let finding = short_stall().first(Cause::Silence, &Facts::default());
        assert_eq!(finding.window.samples, 1);
        // 702.5/s x (0.13384 - 0.0004) s x 2 s are 187 s of waiting, of 64 commands: 2.93 s each.
        assert!(finding.sentence.contains("for about 2.93 s"), "{}", finding.sentence);
    }

    #[test]
    fn two_seconds_that_fill_the_slots_are_a_stall_though_some_come_later() {
        // 500 commands a second at 0.5 ms; 64 of 1,731 take 2.46 s: 91.3 ms in the mean, and by
        // Little's law 79 in 64 slots.
        let mut bench = Bench::new(24);
        bench.interval_s(2);
        let at = |then: f64, normal: f64| move |s: usize| if s == 13 { then } else { normal };
        bench.device("naa.1", 64).vm("a").iops_when(at(865.5, 500.0)).davg_when(at(91.31, 0.5));
        let finding = bench.only(Cause::Silence, &Facts::default());
        // 865.5/s x (0.09131 - 0.0005) s x 2 s / 64, or more: how many slots were taken by then is not told.
        assert!(finding.sentence.contains("for at least 2.46 s"), "{}", finding.sentence);
    }

    #[test]
    fn a_stall_within_a_sample_shows_in_who_waits_for_slots_that_are_mostly_free() {
        // 2,000 a second at 0.5 ms. For 1.5 s of 5 no command is answered: 64 hold the slots, 190
        // wait. So 19.2 + 1 are in the slots and 57 wait in the mean: 10.1 and 28.5 ms a command.
        let stalled = |rate: f64, size_kib: f64| {
            let mut bench = Bench::new(24);
            let at = |then: f64, normal: f64| move |s: usize| if s == 13 { then } else { normal };
            let vm = bench.device("naa.1", 64).vm("a").iops_when(at(rate, 2_000.0));
            vm.davg_when(at(10.1, 0.5)).kavg_when(at(28.5, 0.0)).size_kib(size_kib);
            bench.findings()
        };
        let finding = &stalled(2_000.0, 4.0)[0];
        assert_eq!((finding.cause, finding.window.samples), (Cause::Silence, 1));
        assert!(finding.sentence.contains("for about 1.5 s"), "{}", finding.sentence);
        assert_eq!(stalled(2_000.0, 4.0).len(), 1, "one cause, one finding");
        let is_none = |findings: Vec<Finding>| findings.iter().all(|f| f.cause != Cause::Silence);
        assert!(is_none(stalled(6_000.0, 4.0)), "a burst of three times the commands");
    }

    #[test]
    fn three_seconds_of_fifteen_are_a_stall_though_most_slots_are_free_in_the_mean() {
        // 2,000 a second at 0.5 ms, of a guest that sends 254 at most. For 3 s of 15 no command is
        // answered: 64 hold the slots, 190 wait. So 12.8 + 1 are in the slots and 38 wait in the mean.
        let mut bench = Bench::new(12);
        bench.interval_s(15);
        let at = |then: f64, normal: f64| move |s: usize| if s == 7 { then } else { normal };
        let vm = bench.device("naa.1", 64).vm("a").iops_when(at(2_000.0, 2_010.0));
        vm.davg_when(at(6.9, 0.5)).kavg_when(at(19.0, 0.0));
        let finding = bench.only(Cause::Silence, &Facts::default());
        // 2,000/s x (6.9 - 0.5) ms x 15 s / 64.
        assert!(finding.sentence.contains("for about 3 s"), "{}", finding.sentence);
    }

    /// 64 commands wait 2 s for an answer, of 6,336 that complete in half a second after that, 5 ms each: 25.2 ms
    /// in the mean, and by Little's law 319 in 64 slots.
    #[test]
    fn one_sample_alone_tells_what_its_slots_cannot_have_held_where_its_length_is_known() {
        let told = |begin_ms: Option<i64>| {
            let mut bench = Bench::new(1);
            bench.device("naa.1", 64).vm("a").iops(12_672.0).davg(25.2).sampled(|_| 64);
            let whole = bench.recording();
            let mut recording = Recording::new(whole.host.clone());
            whole.entities().iter().for_each(|entity| _ = recording.add_entity(entity.clone()));
            for (id, counter, values) in whole.columns() {
                recording.set_column(id, counter, vec![values[1]]);
            }
            (recording.times_ms, recording.begin_ms) = (vec![14_500], begin_ms);
            let recording = Measured::of(recording);
            diagnose(&recording, &Thresholds::default(), &Facts::default()).findings
        };
        let sentence = &told(Some(14_000))[0].sentence;
        // (12,672/s x 0.0252 s - 64) x 0.5 s / 64, and what they were in their slots for in that half second.
        assert!(sentence.contains("did not answer for at least 1.99 s"), "{sentence}");
        assert!(told(None).iter().all(|finding| finding.cause != Cause::Silence));
    }

    #[test]
    fn an_array_that_is_known_to_be_silent_is_named_so() {
        let bench = short_stall();
        let mut facts = Facts::default();
        let begin_ms = bench.recording().times_ms[13];
        facts.devices.entry("naa.1".into()).or_default().silent =
            vec![(begin_ms - 1_500, begin_ms + 1_500)];
        let finding = bench.first(Cause::Silence, &facts);
        assert_eq!((finding.window.samples, finding.confidence), (2, 0.99));
        assert!(finding.sentence.contains("known to give no answer"), "{}", finding.sentence);
    }

    #[test]
    fn silence_may_be_older_than_the_recording() {
        let mut bench = Bench::new(8);
        bench.device("naa.1", 64).vm("a").sampled(|_| 12);
        assert_eq!(bench.first(Cause::Silence, &Facts::default()).window.samples, 8);
    }

    #[test]
    fn what_waits_in_the_host_for_longer_than_a_row_is_not_unanswered() {
        // 16 commands, one of which goes every 15 s: 240 s each in the end, and 2 ms below the host.
        let mut bench = Bench::new(24);
        let goes = |s: usize| if s.is_multiple_of(3) { 0.2 } else { 0.0 };
        let vm = bench.device("naa.1", 64).vm("a").iops_when(goes).davg(2.0).kavg(120_000.0);
        vm.sampled(|_| 0).queued(|_| 16);
        bench.only(Cause::IopsLimit, &Facts::default());
    }

    #[test]
    fn a_known_limit_that_lets_nothing_go_for_a_row_is_no_silence() {
        // 10 a second are one command of 512 KiB in 1.6 s. Before, nothing held them.
        let mut bench = Bench::new(24);
        bench.interval_s(1);
        let goes = |s: usize| if s < 9 { 500.0 } else { f64::from(u8::from(s.is_multiple_of(3))) };
        let vm = bench.device("naa.1", 64).vm("a").iops_when(goes).davg(2.0).size_kib(512.0);
        vm.kavg_when(|s| if s < 9 { 0.0 } else { 23_000.0 }).sampled(|_| 0);
        vm.queued(|s| if s < 9 { 0 } else { 15 });
        bench.first(Cause::Silence, &Facts::default());
        bench.only(Cause::IopsLimit, &limited("a:scsi0:1", 10));
        // One that lets three go in a row does not explain a row without any.
        bench.first(Cause::Silence, &limited("a:scsi0:1", 50));
    }

    /// A guest with one thread has one command outstanding, whatever is wrong.
    #[test]
    fn a_single_command_that_nothing_answers_is_silence_too() {
        let one = |interval_s, silent: usize, queued: bool| {
            let mut bench = Bench::new(silent + 2);
            bench.interval_s(interval_s);
            let out = move |s: usize| u32::from(s >= 2);
            let vm = bench.device("naa.1", 64).vm("a").davg(1.0);
            vm.iops_when(|s| if s < 2 { 1_000.0 } else { 0.0 });
            vm.sampled(move |s| if queued { 0 } else { out(s) });
            vm.queued(move |s| if queued { out(s) } else { 0 });
            bench
        };
        // No path is left, so it waits in the host: 8 s.
        let finding = one(1, 8, true).only(Cause::Silence, &Facts::default());
        assert_eq!((finding.window.samples, finding.sufferers[0].name.as_str()), (8, "a"));
        let told = "does not answer: one command is outstanding and none completes";
        assert!(finding.sentence.contains(told), "{}", finding.sentence);
        assert!(one(1, 4, true).findings().is_empty(), "a limit may hold one so long");
        // It is out: Linux gives it up after 30 s.
        assert_eq!(one(5, 6, false).only(Cause::Silence, &Facts::default()).window.samples, 6);
        assert!(one(5, 5, false).findings().is_empty(), "a long one");
    }

    #[test]
    fn a_device_to_which_no_path_is_known_to_lead_is_silent_for_one_command() {
        let mut bench = Bench::new(10);
        let vm = bench.device("naa.1", 64).vm("a").davg(1.0);
        vm.iops_when(|s| if s < 8 { 1_000.0 } else { 0.0 }).sampled(|_| 1);
        let mut facts = Facts::default();
        let from_ms = bench.recording().times_ms[8];
        facts.devices.entry("naa.1".into()).or_default().cut_off = vec![(from_ms, i64::MAX)];
        let finding = bench.only(Cause::Silence, &facts);
        assert_eq!((finding.window.samples, finding.confidence), (2, 0.99));
        assert!(finding.sentence.ends_with("no path to it works."), "{}", finding.sentence);
    }

    #[test]
    fn a_device_that_is_merely_idle_is_not_silent() {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", 64);
        device.vm("a").iops_when(|s| if s < 4 { 500.0 } else { 0.0 }).davg(1.0).sampled(|_| 0);
        assert!(bench.findings().is_empty());
    }

    /// A mount that no path leads to has nothing out: what is asked waits in the host, which only a run's rows tell.
    #[test]
    fn an_nfs_volume_that_is_known_to_be_cut_off_is_silent_for_what_waits_in_the_host() {
        let found = |held: f64, is_known: bool| {
            let mut recording = Recording::new("esx1".into());
            recording.times_ms = (0..10).map(|sample| 1_000 * sample).collect();
            let volume = recording.add_entity(Entity::new(Kind::NfsVolume, "nfs1".into()));
            for (counter, value) in [(Counter::Commands, 0.0), (Counter::ActiveCommands, 0.0)] {
                recording.set_constant(volume, counter, value, 10);
            }
            recording.set_constant(volume, Counter::MeanQueued, held, 10);
            let mut facts = Facts::default();
            let cut_off = if is_known { vec![(-5_000, i64::MAX)] } else { Vec::new() };
            facts.devices.entry("nfs1".into()).or_default().cut_off = cut_off;
            diagnose(&Measured::of(recording), &Thresholds::default(), &facts).findings
        };
        let told = |held| found(held, true)[0].sentence.clone();
        assert!(told(1.0).contains("one command is outstanding and none completes, no path"));
        assert!(told(3.4).contains("4 commands are outstanding and none completes, no path"));
        assert!(found(0.0, true).is_empty() && found(1.0, false).is_empty());
    }

    #[test]
    fn a_path_that_is_dead_and_not_found_so_is_told_where_all_is_on_it() {
        let found = |is_used, davg_ms: f64| {
            let mut bench = Bench::new(10);
            let vm = bench.device("naa.1", 64).vm("a").davg(davg_ms);
            vm.iops_when(move |s| if s < 8 { 1_000.0 / davg_ms } else { 0.0 }).sampled(|_| 1);
            let from_ms = bench.recording().times_ms[8];
            let name = "vmhba1:C0:T0:L0".into();
            let cut = CutPath { name, times: vec![(from_ms, i64::MAX)], is_used, outstanding: 1 };
            let mut facts = Facts::default();
            facts.devices.entry("naa.1".into()).or_default().cut = vec![cut];
            bench.diagnose(&Thresholds::default(), &facts).findings
        };
        let [finding] = &found(true, 1.0)[..] else { panic!("{:?}", found(true, 1.0)) };
        assert_eq!((finding.cause, finding.window.samples), (Cause::Silence, 2));
        let told = "while vmhba1:C0:T0:L0 was dead and the host did not know it.";
        assert!(finding.sentence.ends_with(told), "{}", finding.sentence);
        let is_none =
            |found: Vec<Finding>| found.iter().all(|finding| finding.cause != Cause::Silence);
        assert!(is_none(found(false, 1.0)), "nothing went by it");
        assert!(is_none(found(true, 20_000.0)), "a row has no time for one");
    }
}
