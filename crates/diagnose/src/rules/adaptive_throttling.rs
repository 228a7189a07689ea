//! Adaptive throttling: the array answers TASK SET FULL or BUSY, the host halves the depth and
//! lets it climb back one by one [KB-QF].

use counters::Counter;
use knobs::{CONGESTION_MS, DSNRO};

use super::{Case, Rank, Rule, changes, number, one_step};
use crate::{
    ArrayQueue, Cause, Device, DeviceFacts, Evidence, Finding, Flow, LevelKind, Motion, Queue,
    Spell, Threshold, halves_and_climbs, mean,
};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Device,
    rank: |_| Rank::Wait,
    reads: &[Flow::COUNTERS, Queue::COUNTERS, &[Counter::FailedCommands]],
    find,
};

/// Whether a depth that moves is moved by throttling. It is off unless somebody set
/// `Disk.QFullSampleSize` or its value for the device.
pub(super) fn applies(case: &Case<'_>, device: &Device<'_>) -> bool {
    let facts = case.facts.device(device.flow.name);
    let sample_size = facts.queue_full_sample_size;
    if is_never_refused(facts) {
        return false;
    }
    if let (Some(1..), Some(depth)) = (sample_size, facts.max_queue_depth) {
        if is_between_settings(device, facts, depth) && !is_refused(case, device) {
            return false;
        }
        let compete = device.competitors(&device.busy) > 1;
        let depth = facts.dsnro.filter(|_| compete).map_or(depth, |dsnro| dsnro.min(depth));
        return device.queue.dqlen.over(&device.busy).any(|dqlen| dqlen < f64::from(depth));
    }
    device.motion() == Motion::Moving
        && sample_size.is_none_or(|size| size > 0)
        && !is_congested(device)
}

/// Whether a run knows that nothing throttles: no queue of the array has a limit, so it can refuse nothing; or it
/// refused nothing, and it is Storage I/O Control that moves the depth.
fn is_never_refused(facts: &DeviceFacts) -> bool {
    let refuses = |queue: &ArrayQueue| queue.refusals > 0.0 || facts.sioc != Some(true);
    facts.array.is_some() && !facts.array_queue.as_ref().is_some_and(refuses)
}

/// Whether the limit takes no other values than Device Max Queue Depth and DSNRO, as it does for competition
/// [S1]. What throttling has halved climbs back one by one [KB-QF].
fn is_between_settings(device: &Device<'_>, facts: &DeviceFacts, depth: u32) -> bool {
    let dsnro = f64::from(facts.dsnro.unwrap_or(DSNRO.default));
    let mut depths = device.queue.dqlen.over(&device.busy);
    depths.all(|dqlen| dqlen == f64::from(depth) || dqlen == dsnro)
}

/// Whether something says that the array refused commands of a device: a run, which counts them, or commands
/// that failed.
fn is_refused(case: &Case<'_>, device: &Device<'_>) -> bool {
    match case.array(device) {
        Some(_) => case.array_queue(device).is_some_and(|queue| queue.refusals > 0.0),
        None => device.faults.failed.over(&device.busy).any(|failed| failed > 0.0),
    }
}

/// Whether a device that throttling has cut has nothing out in a sample: the array has answered the last that
/// was sent that it is full, and the host waits before it asks again (`Scsi.ScsiRestartStalledQueueLatency`
/// [LAMW]).
pub(super) fn rests(case: &Case<'_>, device: &Device<'_>, sample: usize) -> bool {
    let is_cut = || device.queue.dqlen.at(sample) < base(case, device);
    device.queue.actv.at(sample) == Some(0.0) && is_cut() && applies(case, device)
}

/// Whether a depth that moves is lower while the device is slow, as Storage I/O Control does it: by
/// its law the latency stays above the threshold for as long as it lowers anything [PARDA]. That of
/// flash counts where the depth does not halve and climb; and what halves and climbs while the device
/// is as slow at its full depth, and stays there, is throttling, for the other would have lowered that
/// as well. What [hovers] is no throttling, from the least threshold on that the other may have.
pub(super) fn is_congested(device: &Device<'_>) -> bool {
    let Some(base) = device.deepest() else { return false };
    let is_lower = |sample: &usize| device.queue.dqlen.at(*sample).is_some_and(|d| d < base);
    let (lower, full): (Vec<usize>, Vec<usize>) = device.busy.iter().partition(|s| is_lower(s));
    let depths: Vec<f64> = device.queue.dqlen.over(&device.busy).collect();
    if climbs_evenly(&depths) {
        return false;
    }
    let davg = |samples: &[usize]| device.flow.per_command(samples, Flow::davg);
    let threshold = if hovers(&depths) {
        least_congestion_ms()
    } else if halves_and_climbs(&depths) {
        let least = Threshold::CongestionMs.info().classic;
        let stays = full.windows(2).any(|pair| matches!(*pair, [a, b] if b == a + 1));
        davg(&full).filter(|_| stays).map_or(least, |full| full.max(least))
    } else {
        device.limits.get(Threshold::CongestionMs)
    };
    davg(&lower) >= Some(threshold)
}

/// The least congestion threshold that Storage I/O Control can have [API].
pub(super) fn least_congestion_ms() -> f64 {
    f64::from(*CONGESTION_MS.start())
}

/// Whether the limit, once it has come down, goes up and down near a level, as the window of Storage I/O Control
/// does under a steady load [PARDA]. One that is halved and climbs by one for so many good answers goes between
/// a number and its half [KB-QF]: so many samples in a part of that as narrow would be chance, in 1 of 25 cases.
pub(super) fn hovers(depths: &[f64]) -> bool {
    const LEAST: usize = 8;
    const NARROW: f64 = 1.5;
    let from = depths.windows(2).position(|pair| pair[1] > pair[0]).unwrap_or(depths.len());
    let settled = &depths[from..];
    let falls = settled.windows(2).filter(|pair| pair[1] < pair[0]).count();
    let least = settled.iter().copied().fold(f64::INFINITY, f64::min);
    let most = settled.iter().copied().fold(0.0, f64::max);
    settled.len() >= LEAST && falls > 1 && most < NARROW * least
}

/// Whether the limit does nothing but climb by even steps, one for so many good answers, and fall to just a half
/// of what it was [KB-QF]. What follows a latency that is too high falls to any number.
fn climbs_evenly(depths: &[f64]) -> bool {
    const EVEN: f64 = 1.0;
    const HALF: f64 = 0.5;
    let is_half = |pair: &&[f64]| (pair[1] - pair[0] / 2.0).abs() <= HALF;
    let climbs = depths.windows(2).filter(|pair| !is_half(pair)).map(|pair| pair[1] - pair[0]);
    let steps: Vec<f64> = climbs.collect();
    let least = steps.iter().copied().fold(f64::INFINITY, f64::min);
    let most = steps.iter().copied().fold(0.0, f64::max);
    least > 0.0 && most - least <= EVEN && steps.len() > 1
}

/// The depth without throttling.
fn base(case: &Case<'_>, device: &Device<'_>) -> Option<f64> {
    let known = case.facts.device(device.flow.name).max_queue_depth;
    known.map(f64::from).or_else(|| device.deepest())
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    case.each_device(|device| {
        if !applies(case, device) {
            return one_step::judge(case, device, Cause::AdaptiveThrottling);
        }
        let base = base(case, device)?;
        let is_lower = |s| device.queue.dqlen.at(s).is_some_and(|depth| depth < base);
        let spell = Spell::any(&device.busy, is_lower)?;
        judge(case, device, base, &spell)
    })
}

fn judge(case: &Case<'_>, device: &Device<'_>, base: f64, spell: &Spell) -> Option<Finding> {
    let (name, samples) = (device.flow.name, &spell.samples);
    let (mut finding, lowest) = case.moved_depth(Cause::AdaptiveThrottling, device, base, spell)?;
    let depths: Vec<f64> = device.queue.dqlen.over(&device.busy).collect();
    let failed = mean(device.faults.failed.over(samples));
    finding.sentence = format!(
        "The depth of {name} is cut from {} to as low as {} and climbs back: the array reports \
         its queue full and the host throttles itself.",
        number(base),
        number(lowest)
    );
    finding.evidence.extend(Evidence::of([("failed commands per second", failed, "1/s")]));
    let is_known = case.facts.device(name).queue_full_sample_size.is_some();
    let certainty = match (is_known, halves_and_climbs(&depths)) {
        (true, _) => 0.95,
        (false, true) => 0.85,
        (false, false) => 0.65,
    };
    finding.confidence = certainty * spell.weight();
    let davg = device.flow.per_command(samples, Flow::davg);
    let (says, halves) = (case.facts.device(name).sioc, halves_and_climbs(&depths));
    if !is_known && !halves && says.is_none() && davg >= Some(least_congestion_ms()) {
        finding.sentence.push_str(
            " Or Storage I/O Control lowers it, with a threshold below this latency: the rows do not tell \
             which.",
        );
        finding
            .raise_confidence
            .push("siocActiveTimePercentage of the datastore in vCenter".into());
    }
    if !is_known {
        let list = changes::show_device(name);
        let surer = [
            format!("\"Queue Full Sample Size\" above 0 in `{list}`"),
            "TASK SET FULL (0x28) or BUSY (0x8) in vmkernel.log".into(),
        ];
        finding.raise_confidence.splice(0..0, surer);
    }
    finding.causers = super::causers(&finding.sufferers);
    finding.changes = vec![changes::look(
        "Lower the load on the array's port or volume: fewer hosts or volumes on the port, lower \
         depths on the hosts that send most.",
        vec![changes::show_device(name)],
    )
    .risking("Whoever sends less is slower.", "Send more again")];
    finding.do_not = vec![
        "Do not raise the depth: the array has just said that it is full.".into(),
        "Do not switch throttling off on one host alone: hosts without it take the slots of those \
         with it."
            .into(),
    ];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use counters::Counter;

    use crate::{ArrayFacts, Cause, DeviceFacts, Facts, fixture::Bench};

    /// Two VMs of which the small one lets DQLEN fall to DSNRO now and then; nobody waits.
    #[test]
    fn a_depth_that_competition_moves_is_not_throttled() {
        let found = |low: u32, dsnro: Option<u32>, failed: f64, array: bool| {
            let mut bench = Bench::new(12);
            let device = bench.device("naa.1", 64);
            device.depth(move |s| if s % 4 == 1 { low } else { 64 });
            device.counter(Counter::FailedCommands, move |_| failed);
            device.vm("a").iops(3_000.0).davg(0.3);
            device.vm("b").iops(20.0).davg(0.3);
            let known = DeviceFacts {
                max_queue_depth: Some(64),
                dsnro,
                queue_full_sample_size: Some(32),
                array: array.then(|| ArrayFacts::default().into()),
                ..DeviceFacts::default()
            };
            let facts = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
            let findings = bench.diagnose(&Default::default(), &facts).findings;
            findings.iter().any(|finding| finding.cause == Cause::AdaptiveThrottling)
        };
        assert!(!found(32, Some(32), 0.0, false) && !found(32, None, 0.0, false));
        assert!(!found(16, Some(16), 0.0, false));
        assert!(found(16, Some(32), 0.0, false) && found(48, None, 0.0, false));
        // Something was refused there: what a run counts tells, and else what failed.
        assert!(found(32, Some(32), 1.5, false) && !found(32, Some(32), 1.5, true));
    }

    #[test]
    fn a_depth_that_halves_and_climbs_is_throttled() {
        let mut bench = Bench::new(10);
        let device = bench.device("naa.1", 64);
        device.depth(|s| [64, 64, 32, 40, 48, 56, 64, 32, 41, 50][s]);
        device.vm("a").iops(20_000.0).davg(1.5).kavg(0.8);
        let finding = bench.first(Cause::AdaptiveThrottling, &Facts::default());
        assert!(finding.sentence.contains("from 64 to as low as 32"), "{}", finding.sentence);
    }

    /// The rates of a host under Storage I/O Control at 12 ms, which is below what a device counts as congested at.
    #[test]
    fn a_depth_that_hovers_is_of_storage_io_control_from_its_least_threshold_on() {
        let of = |depths: &'static [u32], davg: f64| {
            let mut bench = Bench::new(depths.len());
            let device = bench.device("naa.1", 32);
            device.depth(move |s| depths[s]);
            let vm = device.vm("a");
            vm.iops_when(move |s| f64::from(depths[s]) / davg * 1_000.0).davg(davg).kavg(30.0);
            bench.findings()
        };
        let named = |depths, davg, wanted| {
            of(depths, davg).into_iter().find(|finding| finding.cause == wanted)
        };
        let near: &[u32] = &[32, 14, 10, 10, 9, 10, 11, 9, 10, 11, 10, 9];
        let wide: &[u32] = &[32, 14, 10, 10, 9, 10, 18, 9, 12, 17, 10, 15];
        assert!(named(near, 13.0, Cause::Sioc).is_some());
        assert_eq!(named(near, 13.0, Cause::AdaptiveThrottling), None);
        assert!(named(near, 4.0, Cause::AdaptiveThrottling).is_some(), "no threshold is so low");
        let says_both = |davg| {
            let throttled = named(wide, davg, Cause::AdaptiveThrottling).unwrap();
            throttled.sentence.contains("Or Storage I/O Control")
        };
        assert!(says_both(13.0) && !says_both(4.0));
    }

    #[test]
    fn three_samples_of_a_depth_that_climbs_are_throttled() {
        let mut bench = Bench::new(3);
        let device = bench.device("naa.1", 128);
        device.depth(|s| [64, 69, 74][s]);
        device.vm("a").iops(8_000.0).davg(8.5).kavg(5.0);
        bench.first(Cause::AdaptiveThrottling, &Facts::default());
    }

    #[test]
    fn a_depth_that_climbs_by_even_steps_and_falls_to_its_half_is_throttled_however_slow_the_device()
     {
        for depths in [&[127, 130, 133][..], &[127, 130, 133, 136, 68, 71, 74]] {
            let mut bench = Bench::new(depths.len());
            let device = bench.device("naa.1", 256);
            device.depth(|s| depths[s]);
            device.vm("a").iops(4_230.0).davg_when(|s| 30.0 + 0.6 * s as f64).kavg(24.0);
            let findings = bench.findings();
            assert!(findings.iter().any(|finding| finding.cause == Cause::AdaptiveThrottling));
            assert!(findings.iter().all(|finding| finding.cause != Cause::Sioc));
        }
    }

    #[test]
    fn a_depth_that_is_halved_again_and_again_is_throttled() {
        let mut bench = Bench::new(4);
        let device = bench.device("naa.1", 256);
        let depth = |s: usize| [254, 31, 7, 1][s];
        device.depth(depth);
        let rate = move |s: usize| if s == 0 { 158_000.0 } else { f64::from(depth(s)) * 2_700.0 };
        let wait = move |s: usize| if s == 0 { 0.0 } else { 170.0 / rate(s) * 1_000.0 };
        device
            .vm("a")
            .iops_when(rate)
            .davg_when(|s| if s == 0 { 1.1 } else { 0.37 })
            .kavg_when(wait);
        let findings = bench.findings();
        assert!(findings.iter().any(|finding| finding.cause == Cause::AdaptiveThrottling));
        assert!(findings.iter().all(|finding| finding.cause != Cause::DeviceDepth));
    }

    /// Another host fills the port: of what this one sends now and then next to nothing is taken.
    #[test]
    fn a_throttled_device_that_has_nothing_out_is_not_silent() {
        let mut bench = Bench::new(24);
        bench.interval_s(1);
        let device = bench.device("naa.1", 64);
        device.depth(|s| if s < 18 { 1 } else { 8 + s as u32 });
        let starved = |s: usize| [1.0, 0.0, 0.0, 5.0, 2.0, 0.0, 2.0, 8.0, 0.0][s % 9];
        let vm = device.vm("a").iops_when(move |s| if s < 18 { starved(s) } else { 6_000.0 });
        vm.davg(3.5).kavg_when(|s| if s < 18 { 20_000.0 } else { 7.0 });
        vm.sampled(|s| if s < 18 { 0 } else { 8 + s as u32 });
        vm.queued(|s| if s < 18 { 64 } else { 56 - s as u32 });
        bench.only(Cause::AdaptiveThrottling, &Facts::default());
    }

    #[test]
    fn a_depth_that_halves_on_a_device_that_is_slower_at_its_full_depth_is_throttled() {
        let mut bench = Bench::new(12);
        let device = bench.device("naa.1", 254);
        let at = |s: usize| s.checked_sub(6).filter(|at| *at < 3);
        device.depth(move |s| at(s).map_or(254, |at| [127, 132, 137][at]));
        let davg = move |s: usize| if at(s).is_some() { 22.0 } else { 34.0 };
        let vm = device.vm("a").iops_when(move |s| if at(s).is_some() { 5_850.0 } else { 6_450.0 });
        vm.davg_when(davg).kavg_when(move |s| if at(s).is_some() { 16.0 } else { 0.0 });
        let findings = bench.findings();
        assert!(findings.iter().any(|finding| finding.cause == Cause::AdaptiveThrottling));
        assert!(findings.iter().all(|finding| finding.cause != Cause::Sioc));
    }
}
