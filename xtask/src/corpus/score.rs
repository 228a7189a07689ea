//! Findings held against the truth, and the table of it.

use std::collections::BTreeMap;
use std::ops::Range;

use diagnose::{Cause, Verdict};
use serde::Serialize;

/// Precision and recall that every cause must reach.
pub(crate) const BAR: f64 = 0.97;

/// How sure it is that a trouble has to be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sure {
    /// To pass it over is a miss.
    Certain,
    /// Naming it or not are both right.
    May,
}

/// A trouble that is in a capture.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Truth {
    /// Keys of causes; several where the rows fit each of them.
    pub(crate) causes: Vec<&'static str>,
    /// The objects at which naming it is right: a device and its paths, the devices of one array.
    pub(crate) places: Vec<String>,
    /// Rows of the file in which it holds, from 0 for the first after the header.
    pub(crate) rows: Range<usize>,
    /// How strong it is, in numbers.
    pub(crate) severity: String,
    pub(crate) sure: Sure,
}

impl Truth {
    fn fits(&self, cause: Cause, at: &str) -> bool {
        self.causes.contains(&cause.key()) && self.places.iter().any(|place| place == at)
    }
}

/// What became of one cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) found: u32,
    pub(crate) missed: u32,
    pub(crate) false_alarms: u32,
    /// Named where it may be: neither right nor wrong.
    pub(crate) may: u32,
}

impl Tally {
    /// The share of what was there that was named; nothing when it was never there.
    fn recall(&self) -> Option<f64> {
        share(self.found, self.missed)
    }

    /// The share of what was named that was there; nothing when it was never named.
    fn precision(&self) -> Option<f64> {
        share(self.found, self.false_alarms)
    }

    fn below_the_bar(&self) -> bool {
        [self.recall(), self.precision()].into_iter().flatten().any(|share| share < BAR)
    }
}

fn share(right: u32, wrong: u32) -> Option<f64> {
    (right + wrong > 0).then(|| f64::from(right) / f64::from(right + wrong))
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

impl Score {
    /// Counts one case; whether all of it was right.
    pub(crate) fn count(&mut self, case: &str, truths: &[Truth], verdict: &Verdict) -> bool {
        let before = self.lines.len();
        let named = verdict.findings.iter().flat_map(|finding| {
            finding.objects().map(|object| (finding.cause, object.name.as_str()))
        });
        let named: Vec<_> = named.collect();
        for &(cause, at) in &named {
            let mut fitting = truths.iter().filter(|truth| truth.fits(cause, at)).peekable();
            let tally = self.causes.entry(cause).or_default();
            if fitting.peek().is_none() {
                tally.false_alarms += 1;
                self.lines.push(format!("{case}: false {} at {at}", cause.key()));
            } else if fitting.all(|truth| truth.sure == Sure::May) {
                tally.may += 1;
            }
        }
        for truth in truths.iter().filter(|truth| truth.sure == Sure::Certain) {
            let found = named.iter().find(|(cause, at)| truth.fits(*cause, at));
            let Some(cause) = found.map(|named| named.0).or_else(|| truth.cause()) else {
                continue;
            };
            let tally = self.causes.entry(cause).or_default();
            if found.is_some() {
                tally.found += 1;
            } else {
                tally.missed += 1;
                let (rows, severity) = (&truth.rows, &truth.severity);
                self.lines.push(format!(
                    "{case}: missed {} at {} in rows {rows:?}: {severity}",
                    cause.key(),
                    truth.places[0]
                ));
            }
        }
        if truths.is_empty() {
            self.healthy[0] += 1;
            self.healthy[1] += u32::from(verdict.findings.is_empty());
        }
        self.lines.len() == before
    }

    /// The causes that stay below the bar.
    pub(crate) fn below_the_bar(&self) -> Vec<&'static str> {
        let below = self.causes.iter().filter(|(_, tally)| tally.below_the_bar());
        below.map(|(cause, _)| cause.key()).collect()
    }

    /// As Markdown; a cause that is in no capture is reported as absent.
    pub(crate) fn table(&self) -> String {
        let mut table = String::from(
            "| cause | there | found | missed | false | may | precision | recall |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        let figure = |share: Option<f64>, none: &str| {
            share.map_or(none.to_owned(), |share| format!("{share:.3}"))
        };
        for cause in Cause::ALL {
            let tally = self.causes.get(cause).copied().unwrap_or_default();
            table += &format!(
                "| `{}` | {} | {} | {} | {} | {} | {} | {} |\n",
                cause.key(),
                tally.found + tally.missed,
                tally.found,
                tally.missed,
                tally.false_alarms,
                tally.may,
                figure(tally.precision(), "never named"),
                figure(tally.recall(), "absent"),
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

impl Truth {
    /// The cause that is counted where none of those that fit was named: the first.
    fn cause(&self) -> Option<Cause> {
        Cause::ALL.iter().copied().find(|cause| self.causes.first() == Some(&cause.key()))
    }
}
