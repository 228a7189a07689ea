//! When a device is slow by its latency, for the rules on what may make it so: the array, and the links on the way
//! there.

use super::Case;
use crate::{ArrayFacts, Device, Flow, Spell, Threshold, number, reaches};

/// When a latency of a device is too long: for as long as it is, or in the mean of all commands; a stall counts in one
/// sample. `ms` is that latency, and `is_known` tells where another sign than it counts.
pub(super) fn spell(
    case: &Case<'_>,
    device: &Device<'_>,
    ms: &dyn Fn(usize) -> Option<f64>,
    is_known: &dyn Fn(usize) -> bool,
) -> Option<Spell> {
    let (flow, limit) = (&device.flow, |threshold| device.limits.get(threshold));
    let stands = |sample| flow.in_flight(sample) >= Some(limit(Threshold::BusyOutstanding));
    let are_many = |sample| {
        let commands = flow.rate(sample).map(|rate| rate * case.host.interval_s(sample));
        commands >= Some(limit(Threshold::MinCommands))
    };
    let is_slow = |sample| {
        let is_slow = (is_known(sample) || reaches(ms(sample), device.slow_ms(sample)))
            && stands(sample)
            || reaches(ms(sample), device.surely_slow_ms(sample)) && are_many(sample);
        is_slow && !device.stalls.contains_key(&sample)
    };
    let stalls = |sample| ms(sample) >= Some(limit(Threshold::StallMs)) && stands(sample);
    let excess_ms = |_: &Flow<'_>, s| Some(ms(s)? - device.surely_slow_ms(s)?);
    let is_slow_in_the_mean = flow.per_command(&device.busy, excess_ms) >= Some(0.0);
    device
        .spell(is_slow)
        .or_else(|| Spell::any(&device.busy, stalls))
        .or_else(|| Spell::any(&device.busy, is_slow).filter(|_| is_slow_in_the_mean))
}

/// The commands of a turn of round robin, where a device has several paths in use and each turn fills the link of one
/// port of the array while the others rest: all of them have room, and commands wait all the same.
pub(super) fn takes_turns(case: &Case<'_>, device: &Device<'_>, samples: &[usize]) -> Option<u32> {
    let paths = case.facts.device(device.flow.name).paths.as_ref()?;
    let turn = paths.round_robin_iops.filter(|turn| *turn > 1 && paths.working > 1)?;
    let array = case.array(device)?;
    let ms = case.array_ms(device, samples)?;
    (array.uneven_ports(samples).is_some() && array.is_crowded(samples, ms)).then_some(turn)
}

/// What is said of a device whose commands take turns of so many at the ports of its array.
pub(super) fn in_turns(array: &ArrayFacts, samples: &[usize], turn: u32) -> String {
    let used = array.uneven_ports(samples).unwrap_or_default();
    format!(
        "round robin sends {turn} commands in a row to a port of array {}, whose link is full then while the others \
         rest: {} % of all of them are in use",
        array.name,
        number(100.0 * used)
    )
}

#[cfg(test)]
mod tests {
    use crate::{ArrayFacts, Cause, DeviceFacts, Facts, Thresholds, fixture::Bench};

    #[test]
    fn an_array_that_works_all_the_time_and_lets_wait_longer_than_it_serves_is_named() {
        let found = |busy: f64, davg_ms: f64| {
            let mut bench = Bench::new(6);
            let rate = move |s: usize| 30_000.0 / davg_ms + (s % 2) as f64 * 40.0;
            bench.device("naa.1", 64).vm("a").iops_when(rate).davg(davg_ms).sampled(|_| 30);
            let array = ArrayFacts {
                name: "silo".into(),
                service_ms: Some(2.1),
                busy: vec![busy; 6],
                ..ArrayFacts::default()
            };
            let known = DeviceFacts { array: Some(array.into()), ..DeviceFacts::default() };
            let facts = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
            let verdict = bench.diagnose(&Thresholds::default(), &facts);
            verdict.findings.iter().any(|finding| finding.cause == Cause::ArraySlow)
        };
        assert!(found(0.999, 7.5) && found(0.81, 9.3));
        assert!(!found(0.999, 2.5) && !found(0.85, 5.0) && !found(0.5, 9.3));
    }
}
