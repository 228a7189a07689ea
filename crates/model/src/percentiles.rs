//! A distribution of which a mean and some percentiles are known, as of a device that somebody measured.
//!
//! ```text
//!   ln time |              upper end: as steep as the mean needs
//!           |            .'
//!           |         p99
//!           |     p95'
//!           | p50'             between two of them straight
//!           |'  lower end: as steep as behind p50
//!           +----------------- z, a standard normal variable
//! ```
//!
//! So it is lognormal from one percentile to the next. Where even a flat upper end has too much for the mean the lower
//! one falls as steeply as that needs.

use alloc::vec::Vec;

use crate::normal::{normal_exceeded_with, normal_tail};

/// Percentiles at most.
const KNOTS_MAX: usize = 6;
/// How steep an end may be: a lognormal with a variation of 90.
const STEEPEST: f64 = 3.0;

/// Times in units of their mean, by what a standard normal variable is that often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentiles {
    /// The lower end, and what begins at each percentile.
    pieces: [Piece; KNOTS_MAX + 1],
}

/// A straight piece of the logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    /// Where it is known, its logarithm there, and how that rises.
    at: f64,
    ln: f64,
    slope: f64,
}

impl Percentiles {
    /// Of the probabilities with which times are exceeded, falling, and these times in units of the mean, above 0 and
    /// not falling; two to six of them.
    ///
    /// # Errors
    ///
    /// Where no distribution of this kind has the mean: the least and the most that it may be, in the same unit.
    pub fn new(points: &[(f64, f64)]) -> Result<Self, (f64, f64)> {
        let knots: Vec<_> = points
            .iter()
            .take(KNOTS_MAX)
            .map(|&(tail, time)| (normal_exceeded_with(tail), libm::log(time)))
            .collect();
        let natural = match knots[..] {
            [(z, ln), (next_z, next_ln), ..] => ((next_ln - ln) / (next_z - z)).min(STEEPEST),
            _ => 0.0,
        };
        // From -1, the lower end at its steepest, over 0, the upper one flat, to 1, that one at its steepest.
        let with_ends = |ends: f64| {
            let lower = natural + (-ends).max(0.0) * (STEEPEST - natural);
            Self::with(&knots, lower, ends.max(0.0) * STEEPEST)
        };
        let (mut low, mut high) = (-1.0, 1.0);
        let (least, most) = (with_ends(low).mean(), with_ends(high).mean());
        if !(least..=most).contains(&1.0) {
            return Err((least, most));
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            *(if with_ends(middle).mean() < 1.0 { &mut low } else { &mut high }) = middle;
        }
        Ok(with_ends(low))
    }

    fn with(knots: &[(f64, f64)], lower: f64, upper: f64) -> Self {
        let none = Piece { at: f64::INFINITY, ln: 0.0, slope: 0.0 };
        let mut pieces = [none; KNOTS_MAX + 1];
        for (i, &(at, ln)) in knots.iter().enumerate() {
            let slope = knots.get(i + 1).map_or(upper, |&(z, above)| (above - ln) / (z - at));
            if i == 0 {
                pieces[0] = Piece { at, ln, slope: lower };
            }
            pieces[i + 1] = Piece { at, ln, slope };
        }
        Self { pieces }
    }

    /// The time that belongs to a standard normal variable.
    pub(crate) fn time(&self, z: f64) -> f64 {
        let [lower, rest @ ..] = &self.pieces;
        let piece = rest.iter().rev().find(|piece| piece.at <= z).unwrap_or(lower);
        libm::exp(piece.ln + piece.slope * (z - piece.at))
    }

    fn mean(&self) -> f64 {
        self.mean_below(f64::INFINITY)
    }

    /// What the times below that of a standard normal variable give of the mean.
    pub(crate) fn mean_below(&self, z: f64) -> f64 {
        let mut mean = 0.0;
        for (i, piece) in self.pieces.iter().enumerate() {
            let Piece { at, ln, slope } = *piece;
            let from = if i == 0 { f64::NEG_INFINITY } else { at };
            let to = self.pieces.get(i + 1).map_or(z, |next| next.at.min(z));
            if from < to {
                let share = normal_tail(from - slope) - normal_tail(to - slope);
                mean += libm::exp(ln - slope * at + slope * slope / 2.0) * share;
            }
        }
        mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Percentiles of the lognormal are those of the lognormal, ends and all.
    #[test]
    fn percentiles_of_a_lognormal_make_it_again() {
        for sigma in [0.1_f64, 0.5, 1.5] {
            let lognormal = |z: f64| libm::exp(sigma * z - sigma * sigma / 2.0);
            let points =
                [0.5, 0.05, 0.01].map(|tail| (tail, lognormal(normal_exceeded_with(tail))));
            let found = Percentiles::new(&points).unwrap();
            for z in [-4.0, -1.0, 0.0, 1.0, 2.0, 4.0] {
                let off = found.time(z) / lognormal(z);
                assert!((off - 1.0).abs() < 1e-6, "{sigma} at {z}: {off}");
            }
        }
    }

    /// A mean below the median, above nearly all, and none that can be.
    #[test]
    fn the_ends_hold_the_mean_or_say_where_it_may_be() {
        for (points, has_mean) in [
            ([(0.5, 1.02), (0.01, 1.05)], true),
            ([(0.5, 0.855), (0.01, 3.09)], true),
            ([(0.5, 0.7), (0.01, 6.0)], true),
            ([(0.5, 0.1), (0.01, 0.2)], false),
            ([(0.5, 10.0), (0.01, 11.0)], false),
            ([(0.5, 0.001), (0.01, 0.001)], false),
        ] {
            match Percentiles::new(&points) {
                Ok(found) => {
                    assert!(has_mean && (found.mean() - 1.0).abs() < 1e-9, "{points:?}");
                    for (tail, time) in points {
                        let off = found.time(normal_exceeded_with(tail)) / time;
                        assert!((off - 1.0).abs() < 1e-6, "{points:?}: {off}");
                    }
                }
                Err((least, most)) => {
                    assert!(!has_mean && !(least..=most).contains(&1.0), "{points:?}");
                }
            }
        }
    }
}
