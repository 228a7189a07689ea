//! A device that does not answer: commands are outstanding, nothing completes. All paths down
//! looks like this, and so does an array that hangs. It may have begun before the recording did.

use counters::Counter;

use super::{Case, Rank, Rule, changes, number};
use crate::{
    Cause, Device, Evidence, Finding, Flow, LevelKind, Party, Queue, Spell, largest, mean,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Array,
    rank: |_| Rank::Fault,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, &[Counter::Aborts]],
    find,
};

/// Commands that must be outstanding: a single one may be a long one.
const OUTSTANDING: f64 = 2.0;

/// Samples in a row that it must last, after load and without any.
const LASTING: [usize; 2] = [2, 3];
/// Seconds after load that are enough in one sample.
const STALL_S: f64 = 4.5;

fn find(case: &Case<'_>) -> Vec<Finding> {
    case.host.devices.iter().filter_map(|device| found(case, device)).collect()
}

fn found(case: &Case<'_>, device: &Device<'_>) -> Option<Finding> {
    let first = device.busy.first().map_or(0, |before| before + 1);
    let after: Vec<usize> = (first..case.host.times_ms.len()).collect();
    let silent = |sample: usize| is_silent(device, sample);
    let lasting = LASTING[usize::from(device.busy.is_empty())];
    let lasts = |run: &[usize]| {
        let seconds: f64 = run.iter().map(|&sample| case.host.interval_s(sample)).sum();
        run.len() >= lasting || !device.busy.is_empty() && seconds >= STALL_S
    };
    let lasts = after.split(|sample| !silent(*sample)).any(lasts);
    let spell = Spell::any(&after, silent).filter(|_| lasts)?;
    judge(case, device, &spell)
}

fn is_silent(device: &Device<'_>, sample: usize) -> bool {
    device.flow.commands.at(sample) == Some(0.0)
        && device.queue.sampled(sample).is_some_and(|inside| inside >= OUTSTANDING)
}

fn judge(case: &Case<'_>, device: &Device<'_>, spell: &Spell) -> Option<Finding> {
    let name = device.flow.name;
    let inside = mean(spell.samples.iter().filter_map(|&sample| device.queue.sampled(sample)))?;
    let aborts = largest(device.faults.aborts.over(&spell.samples));
    let mut finding = case.finding(Cause::Silence, device.object(), spell);
    let dead = dead_paths(case, name);
    let why = match dead {
        Some(1) => "its path is down".into(),
        Some(all) => format!("all its {all} paths are down"),
        None => "as when all paths are down".into(),
    };
    finding.sentence = format!(
        "{name} does not answer: {} commands are outstanding and none completes, {why}.",
        number(inside)
    );
    finding.standing = inside;
    finding.evidence = vec![
        Evidence::new("commands per second", 0.0, "1/s"),
        Evidence::new("ACTV + QUED, sampled", inside, ""),
    ];
    finding.evidence.extend(Evidence::of([("aborts per second, at most", aborts, "1/s")]));
    if dead.is_some() {
        finding.confidence = 0.99;
    } else {
        finding.confidence = if aborts > Some(0.0) { 0.95 } else { 0.85 };
        finding.raise_confidence =
            vec!["\"APD\" or \"permanently inaccessible\" in vmkernel.log and vobd.log".into()];
    }
    finding.sufferers = stopped(device, &spell.samples);
    finding.changes = vec![changes::look(
        "Find out what happened to the paths, the fabric and the array in this window.",
        vec![
            format!("esxcli storage core path list -d {}", changes::shell(name)),
            "esxcli storage core adapter list".into(),
        ],
    )];
    finding.do_not =
        vec!["Do not reboot the host first: it may hang on the device it cannot reach.".into()];
    Some(finding)
}

/// How many paths a device has, where all of them are known to be down.
fn dead_paths(case: &Case<'_>, name: &str) -> Option<usize> {
    let paths = case.facts.device(name).paths.as_ref()?;
    let dead = paths.dead.as_ref().map_or(0, |dead| dead.len());
    (dead > 0 && paths.working == 0).then_some(dead)
}

/// Who had load before, or has commands outstanding: nothing of it completes, and what does not
/// complete has no latency.
fn stopped(device: &Device<'_>, samples: &[usize]) -> Vec<Party> {
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
    use crate::{Cause, Facts, Thresholds, fixture::Bench};

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
    fn silence_may_be_older_than_the_recording() {
        let mut bench = Bench::new(8);
        bench.device("naa.1", 64).vm("a").sampled(|_| 12);
        assert_eq!(bench.first(Cause::Silence, &Facts::default()).window.samples, 8);
    }

    #[test]
    fn a_device_that_is_merely_idle_is_not_silent() {
        let mut bench = Bench::new(8);
        let device = bench.device("naa.1", 64);
        device.vm("a").iops_when(|s| if s < 4 { 500.0 } else { 0.0 }).davg(1.0).sampled(|_| 0);
        assert!(bench.findings().is_empty());
    }
}
