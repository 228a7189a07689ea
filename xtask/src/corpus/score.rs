//! Findings held against the truth, and the table of it.

use std::collections::{BTreeMap, BTreeSet};

use diagnose::{Cause, Verdict};

use super::truth::Truth;

/// Precision and recall that every cause must reach.
pub(crate) const BAR: f64 = 0.95;

/// What became of one cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) found: u32,
    pub(crate) missed: u32,
    pub(crate) false_alarms: u32,
    /// Named where it was borderline: neither right nor wrong.
    pub(crate) borderline: u32,
}

/// What became of all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    pub(crate) causes: BTreeMap<Cause, Tally>,
    /// Captures in which nothing is wrong, and those of them without a finding.
    pub(crate) healthy: [u32; 2],
    /// A line for each finding that is wrong and each that is missing.
    pub(crate) lines: Vec<String>,
}

impl Tally {
    /// The share of what was named that was there; 1 when nothing was named.
    pub(crate) fn precision(&self) -> f64 {
        share(self.found, self.false_alarms)
    }

    /// The share of what was there that was named; 1 when nothing was there.
    pub(crate) fn recall(&self) -> f64 {
        share(self.found, self.missed)
    }
}

fn share(right: u32, wrong: u32) -> f64 {
    if right + wrong == 0 { 1.0 } else { f64::from(right) / f64::from(right + wrong) }
}

impl Score {
    /// Counts one case.
    pub(crate) fn count(&mut self, case: &str, truth: &Truth, verdict: &Verdict) {
        let findings = verdict.findings.iter();
        let named: BTreeSet<_> =
            findings.map(|finding| (finding.cause, finding.at.clone())).collect();
        for item @ (cause, at) in &named {
            let tally = self.causes.entry(*cause).or_default();
            match truth.get(item) {
                Some(true) => tally.found += 1,
                Some(false) => tally.borderline += 1,
                None => {
                    tally.false_alarms += 1;
                    self.lines.push(format!("{case}: false {} at {at}", cause.key()));
                }
            }
        }
        let missing = truth.iter().filter(|(item, sure)| **sure && !named.contains(*item));
        for ((cause, at), _) in missing {
            let tally = self.causes.entry(*cause).or_default();
            // Where DSNRO and the driver's depth are one number, either name is right.
            let other = (Cause::DeviceDepth, at.clone());
            if *cause == Cause::Dsnro && truth.contains_key(&other) && named.contains(&other) {
                tally.found += 1;
                continue;
            }
            tally.missed += 1;
            self.lines.push(format!("{case}: missed {} at {at}", cause.key()));
        }
        if truth.is_empty() {
            self.healthy[0] += 1;
            self.healthy[1] += u32::from(named.is_empty());
        }
    }

    /// The causes that stay below the bar.
    pub(crate) fn below_the_bar(&self) -> Vec<&'static str> {
        let below = |tally: &Tally| tally.precision() < BAR || tally.recall() < BAR;
        self.causes.iter().filter(|(_, tally)| below(tally)).map(|(cause, _)| cause.key()).collect()
    }

    /// As Markdown.
    pub(crate) fn table(&self) -> String {
        let mut table = String::from(
            "| cause | there | found | missed | false | borderline | precision | recall |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for (cause, tally) in &self.causes {
            table += &format!(
                "| `{}` | {} | {} | {} | {} | {} | {:.3} | {:.3} |\n",
                cause.key(),
                tally.found + tally.missed,
                tally.found,
                tally.missed,
                tally.false_alarms,
                tally.borderline,
                tally.precision(),
                tally.recall()
            );
        }
        let [healthy, silent] = self.healthy;
        let below = self.below_the_bar();
        let below = if below.is_empty() { "none".to_owned() } else { below.join(", ") };
        table
            + &format!(
                "\nNothing wrong: {silent} of {healthy} such captures without a finding.\n\
                 Below {BAR}: {below}.\n"
            )
    }
}
