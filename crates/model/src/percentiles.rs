//! A distribution of which a mean and some percentiles are known, as of a device that somebody measured.
//!
//! ```text
//!   ln time |              upper end: as steep as before the last one
//!           |            .'
//!           |         p99
//!           |     p95'
//!           | p50'             between two of them straight
//!           |'  lower end: as steep as the mean needs
//!           +----------------- z, a standard normal variable
//! ```
//!
//! So it is lognormal from one percentile to the next. Where a lower end that is flat has too little for the mean the upper
//! one rises as steeply as that needs; where one twice as steep as behind the first percentile has too much, the upper one is
//! flatter. Of 21 tables of fio's without their P99.9 that gives it back within a factor of 1.2 in the median; with a lower
//! end that goes on as behind the first and all the rest in the upper one it was 1.6, and a mean that a measured device
//! has was refused for every third.

use alloc::vec::Vec;

use crate::normal::{normal_exceeded_with, normal_tail};

/// Percentiles at most.
const KNOTS_MAX: usize = 6;
/// How steep the upper end may be: a lognormal with a variation of 90.
const STEEPEST: f64 = 3.0;
/// And the lower one: half of its times are next to nothing.
const SHEER: f64 = 12.0;

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
        let mut slopes = knots.windows(2).map(|pair| {
            let (rise, run) = (pair[1].1 - pair[0].1, pair[1].0 - pair[0].0);
            (rise / run).min(STEEPEST)
        });
        let first = slopes.next().unwrap_or_default();
        let last = slopes.next_back().unwrap_or(first);
        // The ends, lower and upper, from the least mean to the most.
        let turns =
            [(SHEER, 0.0), (2.0 * first, 0.0), (2.0 * first, last), (0.0, last), (0.0, STEEPEST)];
        let mean = |(lower, upper)| Self::with(&knots, lower, upper).mean();
        let (least, most) = (mean(turns[0]), mean(turns[4]));
        if !(least..=most).contains(&1.0) {
            return Err((least, most));
        }
        let reached = turns[1..].iter().position(|turn| mean(*turn) >= 1.0).unwrap_or(3);
        let (from, to) = (turns[reached], turns[reached + 1]);
        let between =
            |part: f64| (from.0 + part * (to.0 - from.0), from.1 + part * (to.1 - from.1));
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            *(if mean(between(middle)) < 1.0 { &mut low } else { &mut high }) = middle;
        }
        let (lower, upper) = between(low);
        Ok(Self::with(&knots, lower, upper))
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
                // Of two differences that are the same, that of the smaller numbers has digits left.
                let share = if to < slope {
                    normal_tail(slope - to) - normal_tail(slope - from)
                } else {
                    normal_tail(from - slope) - normal_tail(to - slope)
                };
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

    /// Devices that others measured with fio (P50, P90, P95, P99, P99.9, P99.99 and the mean, in us): all six can be
    /// told, and without the last two P99.9 is within a factor of two.
    #[test]
    fn published_tables_have_their_mean_and_a_tail_like_theirs() {
        let tails = [0.5, 0.1, 0.05, 0.01, 0.001, 0.0001];
        for (mean, times) in [
            (51.29, [49.0, 60.0, 67.0, 78.0, 94.0, 112.0]),
            (154.45, [149.0, 172.0, 192.0, 225.0, 239.0, 265.0]),
            (458.92, [434.0, 620.0, 692.0, 868.0, 1_288.0, 6_112.0]),
            (3_144.59, [3_195.0, 3_621.0, 3_720.0, 5_735.0, 6_652.0, 7_242.0]),
            (44.71, [71.0, 85.0, 88.0, 115.0, 221.0, 486.0]),
        ] {
            let points: Vec<_> = tails.into_iter().zip(times.map(|time| time / mean)).collect();
            let found = Percentiles::new(&points).unwrap();
            assert!((found.mean() - 1.0).abs() < 1e-9, "{mean}");
            let p999 = Percentiles::new(&points[..4]).unwrap().time(normal_exceeded_with(tails[4]));
            let off = p999 * mean / times[4];
            assert!((0.5..2.0).contains(&off), "{mean}: {off}");
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
