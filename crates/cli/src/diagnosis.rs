//! Captures with the verdicts on them, and all of it as text, Markdown or JSON.

use std::path::PathBuf;

use capture::{Capture, ReadOptions};
use diagnose::{
    Comparison, Facts, Judged, Thresholds, Verdict, compare, diagnose, render_comparison_styled,
    render_styled,
};
use serde::Serialize;

use crate::{Result, captures};

/// Captures of one time: a verdict for each host.
pub(crate) struct Side {
    /// What was read.
    pub(crate) capture: Capture,
    /// The verdict on each of its recordings.
    pub(crate) verdicts: Vec<Verdict>,
}

/// Everything there is to say: of one time, or of the times before and after a change.
#[derive(Serialize)]
pub(crate) struct Diagnosis<'a> {
    /// The version of the shape in `docs/reference/json.md`.
    version: u32,
    /// The verdicts of the first side.
    verdicts: &'a [Verdict],
    /// The verdicts of the second side, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a [Verdict]>,
    /// The hosts side by side, where there is something to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) comparison: Option<Comparison>,
}

impl Side {
    /// Reads captures and judges them. What was damaged is told.
    pub(crate) fn read(files: &[PathBuf], thresholds: &Thresholds, facts: &Facts) -> Result<Self> {
        let capture = captures::read(files, &ReadOptions::default())?;
        captures::complain(&capture.report);
        let judge = |recording| diagnose(recording, thresholds, facts);
        let verdicts = capture.recordings.iter().map(judge).collect();
        Ok(Self { capture, verdicts })
    }

    fn judged(&self) -> Vec<Judged<'_>> {
        let hosts = self.capture.recordings.iter().zip(&self.verdicts);
        hosts.map(|(recording, verdict)| Judged { recording, verdict }).collect()
    }
}

impl<'a> Diagnosis<'a> {
    /// Puts the sides together. Without a second one, hosts that share a device are compared.
    pub(crate) fn new(side: &'a Side, after: Option<&'a Side>) -> Self {
        let comparison = compare(&side.judged(), &after.map(Side::judged).unwrap_or_default());
        let is_empty = after.is_none() && comparison.shared.is_empty();
        Self {
            version: 1,
            verdicts: &side.verdicts,
            after: after.map(|after| after.verdicts.as_slice()),
            comparison: (!is_empty).then_some(comparison),
        }
    }

    /// The verdicts that count: those of the second side, where there is one.
    fn latest(&self) -> &'a [Verdict] {
        self.after.unwrap_or(self.verdicts)
    }

    /// Whether anything is wrong, after the change where there was one.
    pub(crate) fn has_findings(&self) -> bool {
        self.latest().iter().any(|verdict| !verdict.findings.is_empty())
    }

    /// For a terminal: what changed, then what is wrong.
    pub(crate) fn text(&self) -> String {
        let comparison = self.comparison.as_ref().map(render_comparison_styled);
        let verdicts = self.latest().iter().map(render_styled);
        match self.after {
            Some(_) => comparison.into_iter().chain(verdicts).collect::<Vec<_>>().join("\n"),
            None => verdicts.chain(comparison).collect::<Vec<_>>().join("\n"),
        }
    }
}
