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
//! So it is lognormal from one percentile to the next. Where two of them are further apart than those of any lognormal
//! that is taken for an end, there are two kinds of commands, as of a cache hits and misses: what is between them is of
//! the one or of the other, as many as the mean needs. Where a lower end that is flat has too little for the mean the
//! upper one rises as steeply as that needs; where one twice as steep as behind the first percentile has too much, the
//! upper one is flatter. Of 21 tables of fio's without their P99.9 that gives it back within a factor of 1.2 in the
//! median; with a lower end that goes on as behind the first and all the rest in the upper one it was 1.6, and a mean
//! that a measured device has was refused for every third.

use alloc::vec::Vec;

use crate::normal::{normal_exceeded_with, normal_tail};

/// Percentiles at most.
const KNOTS_MAX: usize = 17;
/// Pieces at most: a gap has two.
const PIECES_MAX: usize = KNOTS_MAX + 2;
/// Beyond this share a gap is none of kinds, but the tail of one.
const KIND_LEAST: f64 = 0.05;
/// How steep the upper end may be: a lognormal with a variation of 90.
const STEEPEST: f64 = 3.0;
/// And the lower one: half of its times are next to nothing.
const SHEER: f64 = 12.0;

/// Times in units of their mean, by what a standard normal variable is that often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentiles {
    /// The lower end, and what begins at each percentile.
    pieces: [Piece; PIECES_MAX],
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
    /// not falling; two to seventeen of them.
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
        let gap = gap(&knots);
        // The ends, lower and upper, and how early a gap is crossed, from the least mean to the most.
        let turns: &[Turn] = match gap {
            None => &[
                (SHEER, 0.0, 0.0),
                (2.0 * first, 0.0, 0.0),
                (2.0 * first, last, 0.0),
                (0.0, last, 0.0),
                (0.0, STEEPEST, 0.0),
            ],
            Some(_) => &[
                (SHEER, 0.0, 0.0),
                (2.0 * first, 0.0, 0.0),
                (first, last, 0.0),
                (first, last, 1.0),
                (0.0, last, 1.0),
                (0.0, STEEPEST, 1.0),
            ],
        };
        let mean = |turn| Self::with(&knots, gap, turn).mean();
        let (least, most) = (mean(turns[0]), mean(turns[turns.len() - 1]));
        if !(least..=most).contains(&1.0) {
            return Err((least, most));
        }
        let reached = turns[1..].iter().position(|turn| mean(*turn) >= 1.0);
        let reached = reached.unwrap_or(turns.len() - 2);
        let (from, to) = (turns[reached], turns[reached + 1]);
        let between = |part: f64| {
            let on = |from: f64, to: f64| from + part * (to - from);
            (on(from.0, to.0), on(from.1, to.1), on(from.2, to.2))
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            *(if mean(between(middle)) < 1.0 { &mut low } else { &mut high }) = middle;
        }
        Ok(Self::with(&knots, gap, between(low)))
    }

    fn with(knots: &[(f64, f64)], gap: Option<usize>, (lower, upper, early): Turn) -> Self {
        let none = Piece { at: f64::INFINITY, ln: 0.0, slope: 0.0 };
        let mut pieces = [none; PIECES_MAX];
        let mut next = 0;
        let mut add = |at, ln, slope| {
            pieces[next] = Piece { at, ln, slope };
            next += 1;
        };
        for (i, &(at, ln)) in knots.iter().enumerate() {
            if i == 0 {
                add(at, ln, lower);
            }
            match knots.get(i + 1) {
                Some(&(z, above)) if gap == Some(i) => {
                    add(at, ln, 0.0);
                    add(z - early * (z - at), above, 0.0);
                }
                Some(&(z, above)) => add(at, ln, (above - ln) / (z - at)),
                None => add(at, ln, upper),
            }
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

/// How steep the lower and the upper end are, and how early a gap is crossed: from 0, where all between its percentiles
/// is of the kind below, to 1.
type Turn = (f64, f64, f64);

/// The percentile behind which the widest gap between two kinds of commands is.
fn gap(knots: &[(f64, f64)]) -> Option<usize> {
    let furthest = normal_exceeded_with(KIND_LEAST);
    let slope = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
    let in_body = knots.windows(2).enumerate().filter(|(_, pair)| pair[1].0 <= furthest);
    let slopes = in_body.map(|(i, pair)| (i, slope(pair)));
    let widest = slopes.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (widest.1 > STEEPEST).then_some(widest.0)
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

    /// A cache: 65 % hits, lognormal around 0.2 ms, and misses around 8 ms; all that fio prints.
    #[test]
    fn percentiles_of_two_kinds_have_the_mean_of_both() {
        let kind = |median: f64, z: f64| median * libm::exp(0.1 * z);
        let tails = [
            0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.01, 0.005, 0.001,
            0.0005, 0.0001,
        ];
        let mean = (0.65 * 0.2 + 0.35 * 8.0) * libm::exp(0.005);
        let time = |tail: f64| match tail <= 0.35 {
            true => kind(8.0, normal_exceeded_with(tail / 0.35)),
            false => kind(0.2, normal_exceeded_with((tail - 0.35) / 0.65)),
        };
        let points = tails.map(|tail| (tail, time(tail) / mean));
        let found = Percentiles::new(&points).unwrap();
        assert!((found.mean() - 1.0).abs() < 1e-9);
        for (tail, time) in points {
            let off = found.time(normal_exceeded_with(tail)) / time;
            assert!((off - 1.0).abs() < 1e-6, "{tail}: {off}");
        }
        // The share of misses is between P60 and P70, and the mean tells it.
        let early = found.time(normal_exceeded_with(0.36)) * mean;
        let late = found.time(normal_exceeded_with(0.34)) * mean;
        assert!(early < 0.3 && late > 6.0, "{early} {late}");
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
