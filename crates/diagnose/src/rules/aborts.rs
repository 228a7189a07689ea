//! Aborts and resets: a guest waited so long that it gave a command up (Windows after 60 s), or
//! somebody reset a device [ELA 6.4].

use super::{Case, changes, number};
use crate::{Cause, Device, Evidence, Finding, Spell, Threshold, largest};

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let all: Vec<usize> = (0..case.host.times_ms.len()).collect();
    let devices = case.host.devices.iter();
    devices.filter_map(|device| judge(case, device, &all)).collect()
}

/// Whether the load ended with the aborts, as when a VM is switched off.
fn is_farewell(device: &Device<'_>, sample: usize) -> bool {
    const GONE: f64 = 0.1;
    let rate = |sample: usize| device.flow.commands.at(sample);
    let before = sample.checked_sub(1).and_then(rate).unwrap_or(0.0);
    rate(sample + 1).is_some_and(|after| after < GONE * before)
}

fn judge(case: &Case<'_>, device: &Device<'_>, all: &[usize]) -> Option<Finding> {
    let faults = &device.faults;
    let limit = device.limits.get(Threshold::AbortsPerSecond);
    let spell = Spell::any(all, |sample| {
        let happens =
            faults.aborts.or_zero(sample) >= limit || faults.resets.or_zero(sample) >= limit;
        happens && !is_farewell(device, sample)
    })?;
    let name = device.flow.name;
    let (aborts, resets) =
        (largest(faults.aborts.over(&spell.samples)), largest(faults.resets.over(&spell.samples)));
    let mut finding = case.finding(Cause::Aborts, name, &spell);
    finding.sentence = format!(
        "Commands on {name} are given up: up to {} aborts and {} resets a second.",
        number(aborts),
        number(resets)
    );
    finding.evidence = vec![
        Evidence::new("aborts per second, at most", aborts, "1/s"),
        Evidence::new("resets per second, at most", resets, "1/s"),
        Evidence::new("GAVG", device.flow.per_command(&spell.samples, crate::Flow::gavg), "ms"),
    ];
    finding.confidence = if spell.samples.len() > 1 { 0.95 } else { 0.8 };
    finding.raise_confidence = vec!["The aborted commands in vmkernel.log name path and VM".into()];
    finding.sufferers = device.tenants(&spell.samples);
    finding.changes = vec![changes::look(
        "Find what held commands so long: the array, a path that loses frames, or a queue full \
         of commands that are slow on purpose.",
        vec![
            format!("esxcli storage core device stats get -d {}", changes::shell(name)),
            format!("esxcli storage core path list -d {}", changes::shell(name)),
        ],
    )];
    finding.do_not =
        vec!["Do not lengthen the guest's disk timeout to be rid of the message alone.".into()];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use counters::Counter;

    use crate::{Cause, Facts, fixture::Bench};

    #[test]
    fn aborts_are_named_even_in_a_single_sample() {
        let mut bench = Bench::new(6);
        let device = bench.device("naa.1", 64);
        device.counter(Counter::Aborts, |sample| if sample == 3 { 6.0 } else { 0.0 });
        device.vm("a").iops(500.0).davg(1.0);
        let finding = bench.only(Cause::Aborts, &Facts::default());
        assert_eq!((finding.window.samples, finding.evidence[0].value), (1, 6.0));
    }
}
