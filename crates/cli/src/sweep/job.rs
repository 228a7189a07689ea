//! What a sweep is to do: a scenario, what is turned, and the seeds. It is a function of the texts
//! alone, so that a sweep that goes on does the same.

use std::ops::Range;

use scenario::Scenario;
use sha2::{Digest, Sha256};
use sim::Source;

use super::{axis::Axis, edit::edited};
use crate::{seeds, talk::progress, text::whole};

/// Runs of one sweep at most: what is known of each is kept in memory, its place in the file of the
/// state.
const RUNS_MAX: usize = 1_000_000;

/// Points that are read between two times that a terminal is told how far it is.
const TOLD_EACH: usize = 256;

/// A sweep.
pub(crate) struct Job {
    source: Source,
    /// The scenario as it is without any axis.
    pub(crate) base: Scenario,
    /// What is turned; at least one.
    pub(crate) axes: Vec<Axis>,
    /// The seeds of each point; at least one.
    pub(crate) seeds: Vec<u64>,
}

impl Job {
    /// # Errors
    /// One line, when an axis is there twice, when there are too many runs, and when a point is
    /// refused.
    pub(crate) fn new(
        source: Source,
        base: Scenario,
        axes: Vec<Axis>,
        seeds: Vec<u64>,
    ) -> Result<Self, String> {
        for (index, axis) in axes.iter().enumerate() {
            if axes[..index].iter().any(|other| other.name == axis.name) {
                return Err(format!("--over {}: it is there twice", axis.name));
            }
        }
        let points = axes.iter().try_fold(1_usize, |all, axis| all.checked_mul(axis.values.len()));
        let runs = points.and_then(|points| points.checked_mul(seeds.len()));
        if runs.is_none_or(|runs| runs > RUNS_MAX) {
            return Err(format!("--over: that makes more than {RUNS_MAX} runs"));
        }
        let job = Self { source, base, axes, seeds };
        job.require_apart()?;
        let points = job.points();
        for point in 0..points {
            if point > 0 && point.is_multiple_of(TOLD_EACH) {
                progress(&format!(
                    "{} of {} points read",
                    whole(point as f64),
                    whole(points as f64)
                ));
            }
            job.scenario(point)?;
        }
        progress("");
        Ok(job)
    }

    /// Refuses two axes of which one undoes what the other does, in their order or in any: a row would
    /// name a value that was not in force.
    fn require_apart(&self) -> Result<(), String> {
        let ends =
            |axis: &Axis| [axis.values[0].clone(), axis.values[axis.values.len() - 1].clone()];
        for (index, later) in self.axes.iter().enumerate() {
            for earlier in &self.axes[..index] {
                let edited = |edits: [&[_]; 2]| edited(&self.source, &edits.concat()).ok();
                // What one does to the file alone is nothing any more beside whatever the other does.
                let is_lost = |one: &Axis, other: &Axis| {
                    let mut lost = false;
                    for value in ends(one) {
                        let own = one.edits(&value)?;
                        let counts = edited([&own, &[]]).is_some_and(|alone| alone != self.base);
                        let mut all = counts;
                        for value in ends(other) {
                            let other = other.edits(&value)?;
                            let both = edited([&own, &other]);
                            all &= both.is_some() && both == edited([&other, &[]]);
                        }
                        lost |= all;
                    }
                    Ok::<_, String>(lost)
                };
                let mut differ = is_lost(earlier, later)? || is_lost(later, earlier)?;
                for (one, other) in ends(earlier).iter().zip(ends(later).iter().rev()) {
                    let [one, other] = [earlier.edits(one)?, later.edits(other)?];
                    let [there, back] = [edited([&one, &other]), edited([&other, &one])];
                    differ |= there.is_some() && back.is_some() && there != back;
                }
                if differ {
                    return Err(format!(
                        "--over {} and --over {}: both turn the same thing",
                        earlier.name, later.name
                    ));
                }
            }
        }
        Ok(())
    }

    /// The points: every combination of values. The first axis turns fastest.
    pub(crate) fn points(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    pub(crate) fn runs(&self) -> usize {
        self.points() * self.seeds.len()
    }

    /// The value of each axis at a point.
    pub(crate) fn values(&self, point: usize) -> impl Iterator<Item = (&Axis, &str)> {
        let mut rest = point;
        self.axes.iter().map(move |axis| {
            let index = rest % axis.values.len();
            rest /= axis.values.len();
            (axis, axis.values[index].as_str())
        })
    }

    /// The scenario of a run: the seeds of a point follow each other.
    pub(crate) fn scenario_of(&self, run: usize) -> Result<Scenario, String> {
        let (point, seed) = self.place(run);
        let mut scenario = self.scenario(point)?;
        scenario.seed = seed;
        Ok(scenario)
    }

    /// The point that a run is of, and its seed.
    pub(crate) fn place(&self, run: usize) -> (usize, u64) {
        (run / self.seeds.len(), self.seeds[run % self.seeds.len()])
    }

    /// The runs of a point, by seed.
    pub(crate) fn runs_of(&self, point: usize) -> Range<usize> {
        let first = point * self.seeds.len();
        first..first + self.seeds.len()
    }

    /// The seeds in words, and what figures are over them.
    pub(crate) fn seeds_in_words(&self) -> String {
        match self.seeds[..] {
            [only] => format!("seed {only}"),
            _ => seeds::in_words(self.seeds.len()),
        }
    }

    fn scenario(&self, point: usize) -> Result<Scenario, String> {
        let edits: Result<Vec<_>, _> =
            self.values(point).map(|(axis, value)| axis.edits(value)).collect();
        let scenario = edits.and_then(|edits| edited(&self.source, &edits.concat()));
        scenario.map_err(|error| {
            let overs: Vec<_> = self
                .values(point)
                .map(|(axis, value)| format!("--over {}={value}", axis.name))
                .collect();
            format!("{}: {error}", overs.join(" "))
        })
    }

    /// Everything that a run depends on, a line for each: two jobs with the same lines have the same
    /// results.
    pub(crate) fn lines(&self) -> String {
        let Source { file, text, includes, settings } = &self.source;
        let digest = |text: &str| {
            let bytes = Sha256::digest(text);
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let mut lines = vec![
            format!("kavg {}", env!("KAVG_VERSION")),
            format!("scenario {file}, SHA-256 {}", digest(text)),
        ];
        lines.extend(
            includes.iter().map(|(name, text)| format!("file {name}, SHA-256 {}", digest(text))),
        );
        lines.extend(settings.iter().map(|line| format!("--set {line}")));
        let over = |axis: &Axis| format!("--over {}={}", axis.name, axis.values.join(","));
        lines.extend(self.axes.iter().map(over));
        let seeds: Vec<_> = self.seeds.iter().map(u64::to_string).collect();
        lines.push(format!("seeds {}", seeds.join(",")));
        lines.join("\n")
    }
}
