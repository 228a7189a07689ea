//! A path that is lost, and whether it is back.

use super::{
    Case,
    alike::{begin_together, united},
};
use crate::{Device, Finding, Path, Spell};

/// Samples that a path must rest: a hole in the file is none, and one alone is no loss.
pub(super) const LASTING: usize = 2;

/// A path that carries nothing any more, and since when.
pub(super) struct Lost<'a> {
    pub(super) device: &'a Device<'a>,
    pub(super) path: &'a Path<'a>,
    pub(super) spell: Spell,
    /// Whether it is known to be down.
    pub(super) is_known: bool,
}

/// What a device has whose paths were lost.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    /// The paths that were left meanwhile.
    pub(super) left: usize,
    /// The samples with load since all are back; none where they are not.
    pub(super) since: Option<usize>,
}

impl Rest {
    pub(super) fn of(case: &Case<'_>, left: usize, lost: &[Lost<'_>]) -> Self {
        let since: Option<Vec<usize>> = lost.iter().map(|lost| since_back(case, lost)).collect();
        Self { left, since: since.and_then(|each| each.into_iter().min()) }
    }

    /// In words that what was lost is back.
    pub(super) fn told(self) -> String {
        match self.since {
            None => String::new(),
            Some(0 | 1) => " It is back at the end.".into(),
            Some(since) => {
                format!(" It is back since then, for the last {since} samples with load.")
            }
        }
    }
}

/// Findings about paths, those of one target port that are lost together as one: the port is what is lost.
pub(super) fn of_targets(case: &Case<'_>, findings: Vec<Finding>) -> Vec<Finding> {
    let target =
        |finding: &Finding| finding.at.name.rsplit_once(":L").map(|(target, _)| target.to_owned());
    let does_alike = |one: &Finding, other: &Finding| {
        let what = |finding: &Finding| finding.changes.first().map(|change| change.what.clone());
        what(one) == what(other) && one.sufferers.is_empty() == other.sufferers.is_empty()
    };
    united(findings, "path", |first, other| {
        let is_one = target(first).is_some() && target(first) == target(other);
        is_one && begin_together(case, first, other) && does_alike(first, other)
    })
}

/// When a path was down, where that is known.
pub(super) fn outages<'c>(case: &'c Case<'_>, lost: &Lost<'_>) -> Option<&'c [(i64, i64)]> {
    let paths = case.facts.device(lost.device.flow.name).paths.as_ref()?;
    Some(paths.dead.as_ref()?.get(lost.path.flow.name)?)
}

/// In how many samples with load a path is back; `None` where it is not at the end.
fn since_back(case: &Case<'_>, lost: &Lost<'_>) -> Option<usize> {
    let Lost { device, path, spell, is_known } = lost;
    let (last, end) = (spell.samples.last()?, case.host.times_ms.last()?);
    let after = device.busy.iter().copied().filter(|sample| sample > last);
    let is_back = match is_known {
        true => outages(case, lost)?.iter().all(|outage| outage.1 < *end),
        // It may rest in the very last.
        false => after.clone().rev().take(LASTING).any(|sample| carries(device, path, sample)),
    };
    is_back.then(|| after.count())
}

/// Whether a path carries commands of its device: a number that is far more than the device does is none
/// of them, whatever else of its row bears it out.
pub(super) fn carries(device: &Device<'_>, path: &Path<'_>, sample: usize) -> bool {
    const FAR_MORE: f64 = 2.0;
    let most = device.flow.rate(sample).map_or(f64::INFINITY, |all| FAR_MORE * all);
    path.flow.rate(sample).is_some_and(|rate| rate > 0.0 && rate <= most)
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Facts, fixture::Bench};

    #[test]
    fn a_target_port_that_is_lost_is_one_finding_of_all_its_devices() {
        let mut bench = Bench::new(10);
        bench.paths(2).path_share(|path, sample| match (path, sample) {
            (_, 0..5) => 0.5,
            (path, _) => path as f64,
        });
        for device in ["naa.1", "naa.2", "naa.3"] {
            bench.device(device, 64).vm(device).iops(2_000.0).davg(0.5);
        }
        let finding = bench.only(Cause::PathDown, &Facts::default());
        let also: Vec<&str> = finding.also.iter().map(|at| at.name.as_str()).collect();
        assert_eq!(also, ["vmhba1:C0:T0:L1", "vmhba1:C0:T0:L2"]);
        assert!(finding.sentence.ends_with("The same is true of 2 other paths."));
        assert_eq!(finding.changes[0].esxcli[0], "esxcli storage core path list");
    }
}
