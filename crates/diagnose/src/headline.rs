//! The answer in two lines that fit a ticket: who suffers, where and from what; and the one thing
//! to do about it.

use std::collections::BTreeMap;

use counters::sorted::Ordered;
use knobs::Effect;
use levels::weighted_mean;

use crate::{
    ArrayQueue, Cause, Device, Evidence, Facts, Finding, Flow, Host, Lack, Lacking, Object,
    Outcome, Party, Profile, Threshold, Verdict, largest, median, number,
    rules::CONTRAST,
    thresholds::NEXT_STEP,
    unexplained::{HELD, own_ms},
};

/// The answer where an all-clear would be a guess.
const CANNOT_TELL: &str =
    "What was recorded cannot tell whether there is a storage problem: it is not whole.";

/// The most characters of either line: two of a terminal.
pub const TICKET_LINE: usize = 2 * crate::page::WIDTH;

/// How sure a finding must be for its change to be the advice, rather than to look first.
const SURE_ENOUGH: f64 = 0.7;

/// Below this the line says how sure it is.
const SURE: f64 = 0.9;

/// How many times one latency is another from which the line has both.
const APART: f64 = 1.1;

/// What can be said of a recording that is not whole: of a device without a rate, or without latencies, nothing.
fn of_the_rest(host: &Host<'_>) -> String {
    let is_judged = |device: &&Device<'_>| !device.busy.is_empty() || device.maybe_busy.is_empty();
    let (all, judged) = (host.devices.len(), host.devices.iter().filter(is_judged).count());
    match all - judged {
        0 => "Nothing is wrong in what there is of it.".into(),
        left => format!("{left} of {all} devices could not be judged."),
    }
}

/// The first line.
pub(crate) fn headline(
    host: &Host<'_>,
    outcome: Outcome,
    findings: &[Finding],
    lacks: &[Lack],
    facts: &Facts,
) -> String {
    let reason = lacks.iter().find(|lack| lack.what == Lacking::Reason);
    match (outcome, findings.first()) {
        (_, Some(first)) => of_finding(first),
        (Outcome::CannotTell, _) => match reason {
            Some(Lack { sentence, .. }) => sentence
                .split_once(". ")
                .map_or_else(|| sentence.clone(), |(first, _)| format!("{first}.")),
            None => format!("{CANNOT_TELL} {}", of_the_rest(host)),
        },
        (Outcome::Idle, _) => too_little(host),
        _ => takes_places(facts)
            .or_else(|| spent(host, facts))
            .or_else(|| well_of_disks(host, facts))
            .unwrap_or_else(|| {
                let well = "Nothing is wrong: no storage problem in these samples";
                match slow_beside_the_mean(host, facts) {
                    Some(latencies) => format!("{well}; {latencies}."),
                    None => {
                        let queues = queues(host, facts).map(|told| format!(". {told}"));
                        format!("{well}{}; {}.", queues.unwrap_or_default(), latencies(host))
                    }
                }
            }),
    }
}

/// What is said of a host that has no problem and is another's.
fn takes_places(facts: &Facts) -> Option<String> {
    let queues = facts.devices.values().filter_map(|device| device.array_queue.as_ref());
    let (queue, (host, waiting)) =
        queues.filter_map(|queue| Some((queue, queue.leaves_none()?))).next()?;
    Some(format!(
        "Nothing is wrong here, but it takes {} of {} places of {}: {} commands of {host} wait for one.",
        number(queue.own),
        queue.takes,
        queue.name(),
        number(waiting)
    ))
}

/// What is said of a full queue that is none to be deepened, for the array behind it has little left.
fn spent(host: &Host<'_>, facts: &Facts) -> Option<String> {
    const BUSY: f64 = 0.8;
    host.busy_devices().find_map(|device| {
        let (full, known) = (device.full.as_ref()?, facts.device(device.flow.name));
        let array = known.array.as_deref()?;
        let work = array.work(&full.spell.samples);
        let has_less = match known.array_queue.as_ref().filter(|queue| queue.is_full()) {
            _ if work >= BUSY => {
                format!("array {} works {} % of the time", array.name, number(100.0 * work))
            }
            Some(queue) => format!("{} is full", queue.name()),
            None => return None,
        };
        let place = facts.datastores.get(device.flow.name).map_or(device.flow.name, String::as_str);
        Some(format!(
            "Nothing is wrong in the host: {} commands wait for the {} slots of {place}, but {has_less}: a deeper queue \
             gains little.",
            number(full.waiting),
            number(full.depth)
        ))
    })
}

/// What is said of a device that takes no longer than disks do and far longer than another behind the same adapter, than
/// at times itself, or than flash may: no counter tells the media, and of flash it would not be well. A run knows what its arrays are.
fn well_of_disks(host: &Host<'_>, facts: &Facts) -> Option<String> {
    let is_judged = |d: &&Device<'_>| !d.is_nfs && facts.device(d.flow.name).array.is_none();
    let timed = |device| Some((device, own_ms(host, device)?));
    let all: Vec<(&Device<'_>, f64)> =
        host.busy_devices().filter(is_judged).filter_map(timed).collect();
    let is_as_disk = |device: &Device<'_>| {
        device.limits.profile == Profile::Classic
            && device.flow.mean_in_flight(&device.busy) >= Some(HELD)
    };
    let quick_beside = |slow: &Device<'_>, ms: f64| {
        all.iter().find(|(quick, its)| {
            // What is left of large commands beside the time that moves their data may be nothing.
            *its > 0.0 && CONTRAST * its <= ms && host.share_an_adapter(slow, quick)
        })
    };
    let as_disks = || all.iter().filter(|(device, _)| is_as_disk(device));
    let pairs = as_disks().filter_map(|(slow, ms)| Some((slow, ms, quick_beside(slow, *ms)?)));
    let place = |device: &Device<'_>| {
        facts.datastores.get(device.flow.name).map_or(device.flow.name, String::as_str).to_owned()
    };
    let told = |slow, ms, beside: String| {
        format!(
            "Nothing is wrong if {} is on disks: it takes {} ms a command (DAVG), {beside}.",
            place(slow),
            number(ms)
        )
    };
    let davg = |device: &Device<'_>| device.flow.per_command(&device.busy, Flow::davg);
    let beside = || {
        let (slow, _, (quick, _)) = pairs.max_by(|a, b| a.1.total_cmp(b.1))?;
        Some(told(
            slow,
            davg(slow)?,
            format!("{} beside it {}", place(quick), number(davg(quick)?)),
        ))
    };
    let at_times = || {
        let each = as_disks().filter_map(|(slow, _)| Some((slow, quick_at_times(host, slow)?)));
        let (slow, [usual_ms, quick_ms]) = each.max_by(|a, b| a.1[0].total_cmp(&b.1[0]))?;
        Some(told(slow, usual_ms, format!("{} in its quickest sample", number(quick_ms))))
    };
    let always = || {
        let least_ms = NEXT_STEP * Threshold::DavgMs.info().flash;
        let each = as_disks().filter(|(_, ms)| *ms >= least_ms);
        let (slow, _) = each.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(told(slow, davg(slow)?, "and flash is quicker".into()))
    };
    beside().or_else(at_times).or_else(always)
}

/// What a command of a device takes in most samples and in the quickest, in milliseconds, where these are ten times apart.
fn quick_at_times(host: &Host<'_>, device: &Device<'_>) -> Option<[f64; 2]> {
    const FAR: f64 = 10.0;
    let least = host.limits.get(Threshold::MinCommands);
    let counts =
        |&&s: &&usize| device.flow.rate(s).is_some_and(|rate| rate * host.interval_s(s) >= least);
    let usual_ms = median(device.busy.iter().map(|&s| device.flow.davg(s)))?;
    let quick = device.busy.iter().filter(counts).filter_map(|&s| device.flow.davg(s));
    let quick_ms = quick.filter(|ms| *ms > 0.0).reduce(f64::min)?;
    (usual_ms >= FAR * quick_ms).then_some([usual_ms, quick_ms])
}

/// What is said of the queues where none is found to hurt: slots that are all taken hurt nobody
/// while no command waits for them. Of NFS alone no row tells a queue.
fn queues(host: &Host<'_>, facts: &Facts) -> Option<&'static str> {
    let mut at_array = facts.devices.values().filter_map(|device| device.array_queue.as_ref());
    match host.busy_devices().any(Device::is_used_up) || at_array.any(ArrayQueue::is_full) {
        true => Some("Few commands wait"),
        false => host.busy_devices().any(|device| !device.is_nfs).then_some("No queue is full"),
    }
}

/// What is said where no device has load, for however slow its few commands are.
fn too_little(host: &Host<'_>) -> String {
    let all = host.every_sample();
    let latencies = host.devices.iter().map(|device| device.flow.per_command(&all, Flow::gavg));
    match largest(latencies.flatten()) {
        None => "There is nothing to judge in these samples: no device completes a command.".into(),
        Some(slowest_ms) => format!(
            "There is too little load to judge: no device completes {} commands a second or has one \
             outstanding all the time. The slowest takes {} ms a command.",
            number(host.limits.get(Threshold::BusyIops)),
            number(slowest_ms),
        ),
    }
}

/// Where a command takes its time on a host without trouble, in the guest as far as the source knows it;
/// for NFS esxtop has GAVG alone [ELA].
fn latencies(host: &Host<'_>) -> String {
    let [davg, kavg] = [Flow::davg, Flow::kavg].map(|latency| per_command(host, false, latency));
    let nfs = per_command(host, true, Flow::gavg).map(number);
    let scsi = davg.zip(kavg).map(|(davg, kavg)| {
        format!("{} ms below the host (DAVG), {} in it (KAVG)", number(davg), number(kavg))
    });
    let nfs = nfs.map(|gavg| format!("{gavg} ms on NFS (GAVG)"));
    let all = host.every_sample();
    let waits = host.vdisks.iter().flat_map(|disk| {
        all.iter().map(|&sample| Some((disk.guest_wait.at(sample)?, disk.rate(sample)?)))
    });
    let guest = weighted_mean(waits).filter(|ms| *ms > 0.0);
    let guest = guest.map(|ms| format!("{} in the guest", number(ms)));
    let parts = scsi.into_iter().chain(nfs).chain(guest);
    format!("commands take {}", Vec::from_iter(parts).join(", "))
}

/// The device that is slowest in the mean of its own commands, be they too few to judge it by, and that mean in
/// milliseconds; for NFS GAVG. Averages over a few commands are none.
pub(crate) fn slowest<'h, 'a>(host: &'h Host<'a>, is_nfs: bool) -> Option<(&'h Device<'a>, f64)> {
    let of = |device: &'h Device<'a>| {
        let samples = own_samples(host, device);
        let commands = |&s: &usize| Some(device.flow.rate(s)? * host.interval_s(s));
        let commands: f64 = samples.iter().filter_map(commands).sum();
        let counts = !device.busy.is_empty() || commands >= host.limits.get(Threshold::MinCommands);
        let ms = device.flow.per_command(&samples, Flow::davg)?;
        counts.then_some((device, ms))
    };
    let devices = host.devices.iter().filter(|device| device.is_nfs == is_nfs);
    devices.filter_map(of).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The samples in which a device has load; all of them where it has none.
fn own_samples(host: &Host<'_>, device: &Device<'_>) -> Vec<usize> {
    if device.busy.is_empty() { host.every_sample() } else { device.busy.clone() }
}

/// What is said of a device that is far slower than all of them are in the mean: which, and at what rate.
fn slow_beside_the_mean(host: &Host<'_>, facts: &Facts) -> Option<String> {
    let (device, ms) = slowest(host, false)?;
    let mean_ms = per_command(host, false, Flow::davg)?;
    let rate = device.flow.mean_rate(&own_samples(host, device))?;
    let least_ms = host.limits.get(Threshold::QosMs).max(CONTRAST * mean_ms);
    let place = facts.datastores.get(device.flow.name).map_or(device.flow.name, String::as_str);
    (ms >= least_ms).then(|| {
        format!(
            "commands take {} ms (DAVG), {} on {place} ({}/s{})",
            number(mean_ms),
            number(ms),
            number(rate),
            if device.busy.is_empty() { ", too few to judge" } else { "" }
        )
    })
}

/// The second line: the first change of the worst finding, or what to look at while it is not sure;
/// where nothing is to be changed, what is to be left alone.
pub(crate) fn advice(findings: &[Finding]) -> Option<String> {
    let first = findings.first()?;
    if let Some(look) = first.raise_confidence.first().filter(|_| first.confidence < SURE_ENOUGH) {
        return Some(format!("First, to be sure: {}.", look.trim_end_matches('.')));
    }
    let Some(change) = first.changes.first() else {
        let alone = first.do_not.first()?.split(". ").next().unwrap_or_default();
        return Some(format!("{}.", alone.trim_end_matches('.')));
    };
    let what = change.what.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let what = match &first.datastore {
        Some(datastore) => without_devices(what, datastore),
        None => what.into(),
    };
    let when = match change.effect {
        Effect::AtOnce => "",
        _ if what.contains("reboot") => "",
        effect => &format!(" ({})", effect.text()),
    };
    Some(format!("{what}{when}."))
}

fn of_finding(finding: &Finding) -> String {
    let at = &finding.at.name;
    let at = &match finding.also.len() {
        0 => at.clone(),
        more => format!("{at} and {more} more"),
    };
    let place = match &finding.datastore {
        Some(datastore) if finding.at.is_device() => match finding.also.len() {
            0 => format!("datastore {datastore}"),
            1 => format!("datastore {datastore} and another device"),
            more => format!("datastore {datastore} and {more} other devices"),
        },
        Some(datastore) => format!("{at} on datastore {datastore}"),
        None => at.clone(),
    };
    let place = match who(&finding.sufferers) {
        Some(who) if !at.starts_with(&who) => format!("{who} on {place}"),
        _ => place,
    };
    let is_sure = finding.confidence >= SURE_ENOUGH;
    if finding.cause == Cause::PathDown && finding.sufferers.is_empty() && is_sure {
        let (title, (paths, is_back)) = (finding.cause.title(), paths(finding));
        let when = if is_back { when(finding) } else { String::new() };
        return with_room(&when, |when| {
            format!("{place}: {title}{when}{paths}; nobody is slower.")
        });
    }
    let all_ms = finding.sufferers.iter().filter_map(|party| party.gavg_ms.filter(|ms| *ms > 0.0));
    let cost = all_ms.clone().reduce(f64::max);
    // One number stands for several VMs where they are alike.
    let least = all_ms.reduce(f64::min).filter(|least| cost >= Some(APART * least));
    let least = least.map(|ms| format!("{} to ", number(ms))).unwrap_or_default();
    // A limit may hold a disk above what the VM's latency counts.
    let at_disk =
        finding.evidence.iter().find(|each| each.label == Evidence::AT_DISK).map(|each| each.value);
    let cost = at_disk.filter(|_| finding.cause == Cause::IopsLimit).or(cost);
    // The latency of a failed command is no storage's.
    let cost = cost.filter(|_| finding.cause != Cause::Failures);
    let cost = cost.map(|ms| format!(", {least}{} ms a command", number(ms)));
    let is_timed = cost.is_some() || finding.cause == Cause::Silence;
    let when = if is_timed { when(finding) } else { String::new() };
    let rate = finding.evidence.iter().find(|each| each.unit == "1/s");
    let rate = rate.filter(|_| finding.cause == Cause::IopsLimit);
    let rate = rate.map(|rate| format!(", {}/s", number(rate.value))).unwrap_or_default();
    let sure = match finding.confidence {
        sure if sure < SURE => format!(" ({:.0} % sure)", 100.0 * sure),
        _ => String::new(),
    };
    let (title, cost) = (finding.cause.title(), cost.unwrap_or_default());
    with_room(&when, |when| format!("{place}: {title}{rate}{cost}{when}{sure}."))
}

/// What is left of the paths of a device, or that it has all of them again, and whether it has.
fn paths(finding: &Finding) -> (String, bool) {
    let figure = |label| finding.evidence.iter().find(|each| each.label == label);
    match figure(Evidence::PATHS_LEFT) {
        _ if figure(Evidence::PATHS_BACK).is_some() => (", and is back".into(), true),
        Some(left) if left.value > 1.0 => {
            (format!(", {} paths are left", number(left.value)), false)
        }
        _ => (", redundancy is gone".into(), false),
    }
}

/// A line with when it was so; where there is no room for that, the finding itself says when.
fn with_room(when: &str, line: impl Fn(&str) -> String) -> String {
    let whole = line(when);
    if whole.chars().count() <= TICKET_LINE { whole } else { line("") }
}

/// In how many samples, where what is said of them is not of nearly all of those with load.
fn when(finding: &Finding) -> String {
    let crate::Window { samples, of, .. } = finding.window;
    if 10 * samples >= 9 * of { String::new() } else { format!(" in {samples} of {of} samples") }
}

/// A text without the device names behind that of their datastore, which stands in it already.
fn without_devices(text: &str, datastore: &str) -> String {
    match text.split_once(&format!("{datastore} (")) {
        Some((before, rest)) => match rest.split_once(')') {
            Some((_, after)) => format!("{before}{datastore}{after}"),
            None => text.into(),
        },
        None => text.into(),
    }
}

/// The VM that suffers most, and how many more do.
fn who(sufferers: &[Party]) -> Option<String> {
    match sufferers {
        [] => None,
        [one] => Some(one.name.clone()),
        [first, second] => Some(format!("{} and {}", first.name, second.name)),
        [first, rest @ ..] => Some(format!("{} and {} more", first.name, rest.len())),
    }
}

impl Verdict {
    /// Puts first what the file lacks beyond what its rows show, and takes back an all-clear.
    pub fn lack(&mut self, lack: Lack) {
        self.lacks.insert(0, lack);
        if self.findings.is_empty() {
            (self.outcome, self.headline) = (Outcome::CannotTell, CANNOT_TELL.into());
        }
    }
}

/// The mean of a latency over the commands of all devices with load, of NFS or of SCSI.
fn per_command<'a>(
    host: &Host<'a>,
    is_nfs: bool,
    latency: fn(&Flow<'a>, usize) -> Option<f64>,
) -> Option<f64> {
    let devices = host.busy_devices().filter(|device| device.is_nfs == is_nfs);
    let commands =
        |device: &Device<'a>| Some(device.flow.mean_rate(&device.busy)? * device.busy.len() as f64);
    let time = |device: &Device<'a>| {
        Some((device.flow.per_command(&device.busy, latency)?, commands(device)?))
    };
    weighted_mean(devices.map(time))
}

/// The datastores on devices of this host.
pub(crate) fn names(host: &Host<'_>, facts: &Facts) -> BTreeMap<String, String> {
    let devices = host.devices.iter().map(|device| device.flow.name);
    let named = |name: &str| Some((name.to_owned(), facts.datastores.get(name)?.clone()));
    devices.filter_map(named).into_map()
}

/// Gives a finding the name of its datastore, and its words beside the device's.
pub(crate) fn name(
    finding: &mut Finding,
    objects: &BTreeMap<Object, &Device<'_>>,
    names: &BTreeMap<String, String>,
) {
    let Some(device) = objects.get(&finding.at) else { return };
    let device_name = device.flow.name;
    finding.datastore = match names.get(device_name) {
        None if device.is_nfs => Some(device_name.to_owned()),
        known => known.cloned(),
    };
    if let Some(datastore) = names.get(device_name) {
        let tell = |text: &mut String| *text = told(text, device_name, datastore);
        tell(&mut finding.sentence);
        finding.changes.iter_mut().for_each(|change| tell(&mut change.what));
    }
}

/// A text with the name of the datastore in front of the first mention of the device.
fn told(text: &str, device: &str, datastore: &str) -> String {
    let ends = |at: &usize| {
        let after = text.get(at + device.len()..).and_then(|rest| rest.chars().next());
        !after.is_some_and(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    match text.match_indices(device).map(|(at, _)| at).find(ends) {
        Some(at) => {
            let (before, after) = (&text[..at], &text[at + device.len()..]);
            format!("{before}{datastore} ({device}){after}")
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use counters::{Kind, Status};

    use super::told;
    use crate::{ArrayFacts, ArrayQueue, DeviceFacts, Facts, Thresholds, fixture::Bench};

    #[test]
    fn an_all_clear_names_the_slow_device_that_a_mean_would_hide() {
        let said = |rate: f64, davg: f64| {
            let mut bench = Bench::new(24);
            bench
                .device("naa.1", 64)
                .vm("a")
                .iops_when(|s| 2_000.0 + (s * 7 % 5) as f64)
                .davg(1.01);
            let device = bench.device("naa.600508b1001c4d41aa0000000000a002", 64);
            device
                .vm("b")
                .iops_when(move |s| rate + (s % 3) as f64 * 0.4)
                .davg(davg)
                .sampled(|_| 0);
            let verdict = bench.diagnose(&Thresholds::default(), &Facts::default());
            let highest = verdict.evidence.iter().find(|each| each.label == "highest mean DAVG");
            (verdict.headline, highest.unwrap().value)
        };
        let (line, highest) = said(0.2, 141.0);
        let told = "no storage problem in these samples; commands take 1.01 ms (DAVG), 141 on \
                    naa.600508b1001c4d41aa0000000000a002 (0.58/s, too few to judge).";
        assert!(line.ends_with(told), "{line}");
        assert_eq!(highest.round(), 141.0);
        // A mean of a few commands is none, and what is alike is no news.
        let (line, highest) = said(0.0, 141.0);
        assert!(
            line.ends_with("commands take 1.01 ms below the host (DAVG), 0 in it (KAVG)."),
            "{line}"
        );
        assert_eq!(highest.round(), 1.0);
        assert!(said(20.0, 1.5).0.contains("ms below the host (DAVG)"));
    }

    #[test]
    fn the_headline_names_disk_path_and_rate_beside_the_datastore() {
        let mut facts = Facts::default();
        facts.datastores.insert("naa.1".into(), "gold".into());
        let headline =
            |bench: &Bench| bench.diagnose(&Thresholds::default(), &facts).headline.clone();
        let mut limit = Bench::new(6);
        limit.device("naa.1", 64).vm("held").iops(1_000.0).davg(0.5).kavg(31.0);
        let line = "held:scsi0:1 on datastore gold: IOPS limit on a virtual disk, 1,000/s, 31.5 ms a \
                    command.";
        assert_eq!(headline(&limit), line);
        let mut lost = Bench::new(12);
        lost.paths(2).path_share(|path, s| match (path, s) {
            (0, 0..6) => 1.0,
            (1, 6..) => 1.0,
            _ => 0.0,
        });
        lost.device("naa.1", 64).vm("a").iops(24_000.0).davg(0.65);
        let line = headline(&lost);
        assert!(line.starts_with("vmhba1:C0:T0:L0 on datastore gold: Path lost"), "{line}");
    }

    #[test]
    fn a_disk_that_is_called_as_a_device_is_not_taken_for_it() {
        let mut facts = Facts::default();
        facts.datastores.insert("naa.2".into(), "gold".into());
        facts.datastores.insert("held:scsi0:1".into(), "other".into());
        let mut bench = Bench::new(6);
        bench.device("held:scsi0:1", 64);
        bench.device("naa.2", 64).vm("held").iops(1_000.0).davg(0.5).kavg(31.0);
        let verdict = bench.diagnose(&Thresholds::default(), &facts);
        let finding = &verdict.findings[0];
        assert!(finding.at.is_row(Kind::VirtualDisk, "held:scsi0:1"), "{:?}", finding.at);
        assert_eq!(finding.datastore.as_deref(), Some("gold"));
        assert_eq!(verdict.place(&finding.at), "held:scsi0:1");
    }

    #[test]
    fn a_queue_of_which_every_slot_is_taken_is_not_said_to_have_room() {
        // 1,907/s x 16.78 ms are 32: every slot of the device, and nobody waits.
        let mut bench = Bench::new(12);
        bench.device("naa.1", 32).vm("a").iops(1_907.0).davg(16.78);
        let verdict = bench.diagnose(&Thresholds::default(), &Facts::default());
        assert!(!verdict.headline.contains("No queue is full"), "{}", verdict.headline);
    }

    #[test]
    fn the_latency_of_one_vm_is_not_said_of_another() {
        let line = |of_b: f64| {
            let mut bench = Bench::new(12);
            let device = bench.device("naa.1", 32);
            device.vm("a").iops(9_000.0).davg(1.8).kavg(4.0);
            device.vm("b").iops(8_000.0).davg(1.8).kavg(of_b);
            bench.diagnose(&Thresholds::default(), &Facts::default()).headline
        };
        assert!(line(4.0).contains(", 5.8 ms a command"), "{}", line(4.0));
        assert!(line(2.0).contains(", 3.8 to 5.8 ms a command"), "{}", line(2.0));
    }

    #[test]
    fn what_is_well_of_disks_alone_is_said_to_be() {
        let told = |slow_ms: f64, threads: f64| {
            let mut bench = Bench::new(12);
            let rate = move |s: usize| threads * 1_000.0 / slow_ms * [1.0, 0.7, 1.2][s % 3];
            bench.device("naa.1", 64).vm("a").iops_when(rate).davg(slow_ms);
            bench.device("naa.2", 64).vm("b").iops_when(|s| 900.0 + (s % 3) as f64).davg(0.35);
            bench.diagnose(&Thresholds::default(), &Facts::default()).headline
        };
        let line = "Nothing is wrong if naa.1 is on disks: it takes 12 ms a command (DAVG), naa.2 beside it 0.35.";
        assert_eq!(told(12.0, 8.0), line);
        // Quick in one sample of twelve, at many commands.
        let mut bench = Bench::new(12);
        let is_quick = |s: usize| s == 0;
        let vm = bench.device("naa.1", 64).vm("a");
        vm.iops_when(move |s| if is_quick(s) { 14_000.0 } else { 800.0 + 9.0 * (s % 3) as f64 });
        vm.davg_when(move |s| if is_quick(s) { 0.57 } else { 9.9 });
        let line = bench.diagnose(&Thresholds::default(), &Facts::default()).headline;
        let expected = "Nothing is wrong if naa.1 is on disks: it takes 9.9 ms a command (DAVG), 0.57 in its quickest sample.";
        assert_eq!(line, expected);
        for line in [told(1.9, 8.0), told(12.0, 1.0)] {
            assert!(line.starts_with("Nothing is wrong: no storage problem"), "{line}");
        }
    }

    #[test]
    fn who_waits_before_an_array_that_has_little_left_is_told_so() {
        let mut bench = Bench::new(12);
        bench.device("naa.1", 16).vm("a").iops(14_600.0).davg(1.1).kavg(1.1);
        let line = |busy: f64| {
            let array = ArrayFacts {
                name: "box".into(),
                service_ms: Some(1.0),
                busy: vec![busy; 12],
                ..ArrayFacts::default()
            };
            let queue = ArrayQueue {
                array: "box".into(),
                of_port: true,
                takes: 64,
                inside: 64.0,
                own: 16.0,
                most: None,
                shut_out: None,
                part: None,
                answer: Status::Busy,
                refusals: 0.0,
                waiting: 0.0,
                delay_ms: 400,
                least_delay_ms: 400,
            };
            let known = DeviceFacts {
                array: Some(array.into()),
                array_queue: Some(queue),
                ..DeviceFacts::default()
            };
            let facts = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
            bench.diagnose(&Thresholds::default(), &facts).headline.clone()
        };
        let told = "Nothing is wrong in the host: 16.1 commands wait for the 16 slots of naa.1, but array box works 91.2 % \
                    of the time: a deeper queue gains little.";
        assert_eq!(line(0.912), told);
        assert!(
            line(0.5).contains("but the queue of a port of array box is full:"),
            "{}",
            line(0.5)
        );
    }

    #[test]
    fn a_datastore_stands_before_the_whole_name_of_its_device() {
        let told = |text: &str| told(text, "naa.1", "gold");
        assert_eq!(told("naa.12 and naa.1, naa.1."), "naa.12 and gold (naa.1), naa.1.");
        assert_eq!(told("naa.1"), "gold (naa.1)");
        assert_eq!(told("none"), "none");
    }
}
