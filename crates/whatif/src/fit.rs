//! The latency of the arrays of one reading, brought to what was recorded.
//!
//! An array is slower by as much as its latency is multiplied by, or by more where it is close to
//! what it can do. How much more the last step showed; of all steps the closest counts.

use crate::run::Figures;

/// What was tried for one reading.
pub(crate) struct Fit {
    arrays: Vec<Step>,
    /// How far the closest run was from the recording, its factors, and the run.
    closest: Option<(f64, Vec<f64>, Figures)>,
}

/// The factor by which the latency of an array is multiplied next.
#[derive(Clone, Copy)]
struct Step {
    scale: f64,
    /// How much further that is than before, and how much longer the recording took then, as factors.
    factor: f64,
    miss: f64,
}

impl Fit {
    pub(crate) fn of(arrays: usize) -> Self {
        Self { arrays: vec![Step { scale: 1.0, factor: 1.0, miss: 1.0 }; arrays], closest: None }
    }

    /// The factors of the next run.
    pub(crate) fn next_scales(&self) -> Vec<f64> {
        self.arrays.iter().map(|step| step.scale).collect()
    }

    /// Adds that run, and how much longer each array took in the recording, as a factor.
    pub(crate) fn add(&mut self, misses: &[f64], run: Figures) {
        let apart = misses.iter().map(|miss| miss.ln().abs()).sum();
        if self.closest.as_ref().is_none_or(|(closest, ..)| apart < *closest) {
            self.closest = Some((apart, self.next_scales(), run));
        }
        for (step, &miss) in self.arrays.iter_mut().zip(misses) {
            *step = step.next(miss);
        }
    }

    /// The factors of the closest run, and the run.
    pub(crate) fn best(self) -> (Vec<f64>, Figures) {
        self.closest.map(|(_, scales, run)| (scales, run)).unwrap_or_default()
    }
}

impl Step {
    fn next(self, miss: f64) -> Self {
        /// The most that one step does.
        const MOST: f64 = 3.0;
        /// The steepest answer that is believed, as a power of the factor.
        const STEEPEST: f64 = 8.0;
        let answer = (self.miss / miss).ln() / self.factor.ln();
        let power = if answer.is_finite() { answer.clamp(1.0, STEEPEST) } else { 1.0 };
        let factor = miss.powf(1.0 / power).clamp(1.0 / MOST, MOST);
        Self { scale: self.scale * factor, factor, miss }
    }
}

#[cfg(test)]
mod tests {
    use super::Fit;

    #[test]
    fn an_array_that_answers_steeply_is_brought_to_what_was_recorded() {
        for power in [1.0, 2.0, 5.0] {
            let mut fit = Fit::of(1);
            for _ in 0..5 {
                let miss = 2.0 / fit.next_scales()[0].powf(power);
                fit.add(&[miss], Vec::new());
            }
            let reached = fit.best().0[0].powf(power);
            assert!((reached / 2.0 - 1.0).abs() < 0.01, "{power}: {reached}");
        }
    }
}
