//! A path is lost: it carried I/O, stops for good, and the device goes on over others.
//!
//! A path that rests is no lost path: round robin sends 1,000 commands down one before it takes
//! the next [ELA], so only silence over many such turns counts.

use counters::Counter;

use super::{Case, Rank, Rule, changes, number};
use crate::{Cause, Device, Evidence, Finding, Flow, LevelKind, Path, Spell, mean};

pub(super) const RULE: Rule = Rule {
    level: LevelKind::Path,
    rank: |_| Rank::Fault,
    reads: &[Flow::COUNTERS, &[Counter::FailedCommands, Counter::Aborts]],
    find,
};

/// Commands of the device per path, before and after, that round robin cannot explain.
const MANY: f64 = 3_000.0;

fn find(case: &Case<'_>) -> Vec<Finding> {
    let lost = |device: &Device<'_>| {
        let paths = device.paths.iter();
        paths.filter_map(|path| judge(case, device, path)).collect::<Vec<_>>()
    };
    case.host.busy_devices().filter(|device| device.paths.len() > 1).flat_map(lost).collect()
}

/// Samples that a path must rest: a hole in the file is none, and one alone is no loss.
const LASTING: usize = 2;

/// The samples from the first without a command on the path until the path returns, or the end.
fn silence(case: &Case<'_>, device: &Device<'_>, path: &Path<'_>) -> Option<Spell> {
    let is_known = |sample: &usize| path.flow.commands.at(*sample).is_some();
    let busy: Vec<usize> = device.busy.iter().copied().filter(is_known).collect();
    let carries = |sample: usize| path.flow.rate(sample) > 0.0;
    let first = busy.iter().position(|&sample| carries(sample))?;
    let stop = first + busy.get(first..)?.iter().position(|&sample| !carries(sample))?;
    let rest = busy.get(stop..)?;
    let back = rest.iter().position(|&sample| carries(sample)).unwrap_or(rest.len());
    let silent = Spell { samples: rest.get(..back)?.to_vec(), of: busy.len() };
    let commands = |samples: &[usize], rate: &dyn Fn(usize) -> f64| -> f64 {
        samples.iter().map(|&sample| rate(sample) * case.host.interval_s(sample)).sum()
    };
    let before = commands(busy.get(first..stop)?, &|sample| path.flow.rate(sample));
    let after = commands(&silent.samples, &|sample| device.flow.rate(sample));
    let many = MANY * device.paths.len() as f64;
    let lasts = silent.samples.len() >= LASTING;
    (lasts && before >= MANY && after >= many).then_some(silent)
}

fn judge(case: &Case<'_>, device: &Device<'_>, path: &Path<'_>) -> Option<Finding> {
    let spell = silence(case, device, path)?;
    let name = device.flow.name;
    let before: Vec<usize> =
        device.busy.iter().copied().take_while(|sample| !spell.samples.contains(sample)).collect();
    let rate = path.flow.mean_rate(&before);
    let mut finding = case.finding(Cause::PathDown, path.flow.name, &spell);
    finding.sentence = format!(
        "Path {} of {name} stopped carrying I/O ({} commands a second before) while others went \
         on with {}.",
        path.flow.name,
        number(rate),
        number(device.flow.mean_rate(&spell.samples))
    );
    finding.evidence = vec![
        Evidence::new("commands per second on the path, before", rate, "1/s"),
        Evidence::new("on the device, before", device.flow.mean_rate(&before), "1/s"),
        Evidence::new("on the device, since", device.flow.mean_rate(&spell.samples), "1/s"),
        Evidence::new("paths of the device", device.paths.len() as f64, ""),
    ];
    let failed = mean(device.faults.failed.over(&spell.samples))
        + mean(device.faults.aborts.over(&spell.samples));
    finding.confidence = if failed > 0.0 { 0.85 } else { 0.7 };
    finding.raise_confidence = vec![format!(
        "\"State: dead\" in `esxcli storage core path list -d {}`",
        changes::shell(name)
    )];
    finding.sufferers = device.tenants(&spell.samples);
    finding.changes = vec![changes::look(
        "See whether the path is dead, and why: cable, port, zoning, array controller.",
        vec![
            format!("esxcli storage core path list -d {}", changes::shell(name)),
            "esxcli storage core adapter list".into(),
        ],
    )];
    finding.do_not = vec![
        "Do not raise queue depths to make up for it: the remaining paths carry everything already."
            .into(),
    ];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Facts, fixture::Bench};

    #[test]
    fn a_path_that_stops_while_the_other_goes_on_is_lost() {
        let mut bench = Bench::new(10);
        bench.paths(2).path_share(|path, sample| match (path, sample) {
            (0, 0..5) | (1, 0..5) => 0.5,
            (0, _) => 0.0,
            _ => 1.0,
        });
        bench.device("naa.1", 64).vm("a").iops(2_000.0).davg(0.5);
        let finding = bench.only(Cause::PathDown, &Facts::default());
        assert_eq!(finding.at, "vmhba1:C0:T0:L0");
    }

    #[test]
    fn paths_that_take_turns_are_not_lost() {
        let mut bench = Bench::new(10);
        bench.paths(2).path_share(|path, sample| f64::from(u8::from(sample % 2 == path)));
        bench.device("naa.1", 64).vm("a").iops(200.0).davg(0.5);
        assert!(bench.findings().is_empty());
    }
}
