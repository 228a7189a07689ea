//! Random durations from tables, in integers at the time of the draw: every machine draws the
//! same, and nothing is computed that a table can hold (reference `simulation.md`, section 2a).
//!
//! A table is the inverse of the distribution function in 1,024 cells, linear inside each. The
//! cells lie along the upper tail as floating-point numbers do: 32 to each halving of the
//! probability to be exceeded, so the tail is as fine as the body and nearly all draws fall into
//! the first few cache lines.

use alloc::boxed::Box;
use core::f64::consts::LN_2;

use crate::{
    config::Spread,
    normal::{normal_exceeded_with, normal_tail},
    percentiles::Percentiles,
};

/// Halvings of the tail probability: draws reach down to 2^-32.
const OCTAVES: usize = 32;
/// log2 of the cells of an octave.
const CELL_BITS: u32 = 5;
/// Cells of an octave.
const CELLS: usize = 1 << CELL_BITS;
/// Bits that place a draw inside its cell.
const FRACTION_BITS: u32 = 27;
/// Fraction bits of a table's values, whose mean is 1.
const UNIT_BITS: u32 = 24;
/// The longest mean: a day and a half. Longer ones would overflow in the tail and outlive any run.
const MEAN_MAX: u64 = 1 << 47;

/// Bounds of the cells, in units of the mean.
type Table = [u64; OCTAVES * CELLS + 1];

static EXPONENTIAL: Table = exponential();

/// A duration around a mean.
#[derive(Clone, Debug)]
pub(crate) struct Duration {
    mean: u64,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    Constant,
    Exponential(&'static Table),
    Table(Box<Table>),
}

impl Duration {
    /// Durations of this `mean`, in whatever unit the caller counts.
    pub(crate) fn new(mean: u64, spread: Spread) -> Self {
        let shape = match spread {
            Spread::Constant => Shape::Constant,
            Spread::Exponential => Shape::Exponential(&EXPONENTIAL),
            Spread::Lognormal(variation) => Shape::Table(lognormal(variation)),
            Spread::Percentiles(percentiles) => Shape::Table(of_percentiles(&percentiles)),
        };
        Self { mean: mean.min(MEAN_MAX), shape }
    }

    /// Other durations of the same spread.
    pub(crate) fn set_mean(&mut self, mean: u64) {
        self.mean = mean.min(MEAN_MAX);
    }

    /// One duration from 64 random bits; the low half is hardly used and may pick something else.
    #[inline(always)]
    pub(crate) fn draw(&self, bits: u64) -> u64 {
        let unit = match &self.shape {
            Shape::Constant => return self.mean,
            Shape::Exponential(table) => look_up(table, bits),
            Shape::Table(table) => look_up(table, bits),
        };
        ((u128::from(unit) * u128::from(self.mean)) >> UNIT_BITS) as u64
    }
}

#[inline]
fn look_up(table: &Table, bits: u64) -> u64 {
    let tail = bits | 1 << (63 - (OCTAVES - 1));
    let octave = tail.leading_zeros();
    let within = !(tail << (octave + 1));
    let index = (octave << CELL_BITS | (within >> (64 - CELL_BITS)) as u32) as usize;
    let fraction = (within << CELL_BITS) >> (64 - FRACTION_BITS);
    let (low, high) = (table[index], table[index + 1]);
    low + (((high - low) * fraction) >> FRACTION_BITS)
}

/// The probability to be exceeded that belongs to a bound.
const fn tail_of(bound: usize) -> f64 {
    let octave = 1.0 / (1_u64 << (bound / CELLS)) as f64;
    octave * (1.0 - (bound % CELLS) as f64 / (2 * CELLS) as f64)
}

/// Scales bounds so that the mean of the draws is exactly 1.
const fn scaled(bounds: &[f64; OCTAVES * CELLS + 1]) -> Table {
    let mut mean = 0.0;
    let mut i = 0;
    while i + 1 < bounds.len() {
        mean += (tail_of(i) - tail_of(i + 1)) * (bounds[i] + bounds[i + 1]) / 2.0;
        i += 1;
    }
    let mut table = [0; OCTAVES * CELLS + 1];
    i = 0;
    while i < bounds.len() {
        table[i] = (bounds[i] / mean * (1_u64 << UNIT_BITS) as f64) as u64;
        i += 1;
    }
    table
}

/// x = -ln(tail), built by the compiler.
const fn exponential() -> Table {
    let mut bounds = [0.0; OCTAVES * CELLS + 1];
    let mut i = 0;
    while i < bounds.len() {
        let halvings = (i / CELLS) as f64;
        bounds[i] = halvings * LN_2 - ln_1m((i % CELLS) as f64 / (2 * CELLS) as f64);
        i += 1;
    }
    scaled(&bounds)
}

/// ln(1 - x) for x from 0 to 1/2, by the series of the area tangent.
const fn ln_1m(x: f64) -> f64 {
    let z = x / (2.0 - x);
    let mut power = z;
    let mut sum = 0.0;
    let mut odd = 1;
    while odd < 41 {
        sum += power / odd as f64;
        power *= z * z;
        odd += 2;
    }
    -2.0 * sum
}

/// x = exp(sigma z - sigma^2 / 2), whose mean is 1 and whose coefficient of variation is
/// `variation`.
fn lognormal(variation: f64) -> Box<Table> {
    let variation = if variation > 0.0 { variation.min(10.0) } else { 0.0 };
    let sigma = libm::sqrt(libm::log1p(variation * variation));
    let time = |z: f64| libm::exp(sigma * (z - sigma / 2.0));
    table(time, |z| normal_tail(sigma - z))
}

fn of_percentiles(percentiles: &Percentiles) -> Box<Table> {
    table(|z| percentiles.time(z), |z| percentiles.mean_below(z))
}

/// Of times by a standard normal variable, and what those below one give of the mean.
fn table(time: impl Fn(f64) -> f64, mean_below: impl Fn(f64) -> f64) -> Box<Table> {
    let mut bounds = [0.0; OCTAVES * CELLS + 1];
    for (i, bound) in bounds.iter_mut().enumerate().skip(1) {
        *bound = time(normal_exceeded_with(tail_of(i)));
    }
    // The lowest cell begins where its mean, a partial expectation, is met.
    let share = 1.0 - tail_of(1);
    let mean = mean_below(normal_exceeded_with(tail_of(1))) / share;
    bounds[0] = (2.0 * mean - bounds[1]).max(0.0);
    Box::new(scaled(&bounds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use alloc::vec::Vec;

    /// Mean and squared coefficient of variation of a table, cell by cell.
    fn moments(table: &Table) -> (f64, f64) {
        let unit = (1_u64 << UNIT_BITS) as f64;
        let (mut first, mut second) = (0.0, 0.0);
        for i in 0..table.len() - 1 {
            let share = tail_of(i) - tail_of(i + 1);
            let (a, b) = (table[i] as f64 / unit, table[i + 1] as f64 / unit);
            first += share * (a + b) / 2.0;
            second += share * (a * a + a * b + b * b) / 3.0;
        }
        (first, second / (first * first) - 1.0)
    }

    #[test]
    fn tables_have_the_mean_and_the_variation_of_their_distribution() {
        // A variation of 10 lives to 3 % in what is rarer than 2^-32.
        let lognormals = [(0.1, 0.01), (0.5, 0.001), (1.0, 0.001), (3.0, 0.001), (10.0, 0.03)]
            .map(|(cv, tolerance)| (*lognormal(cv), cv * cv, tolerance));
        for (table, variation2, tolerance) in
            [(EXPONENTIAL, 1.0, 0.001)].into_iter().chain(lognormals)
        {
            let (mean, found) = moments(&table);
            assert!((mean - 1.0).abs() < 1e-5, "mean {mean}");
            assert!((found / variation2 - 1.0).abs() < tolerance, "{found} for {variation2}");
            assert!(table.is_sorted());
        }
    }

    /// A drive under fio, as published: mean 1,141 us, percentiles from the 50th to the 99.99th, and a deviation of
    /// 1,375 us, which is not given to the table [MP600].
    #[test]
    fn a_table_of_percentiles_has_them_the_mean_and_nearly_the_deviation() {
        let published = [(0.5, 1_074.0), (0.1, 1_254.0), (0.05, 1_336.0), (0.01, 1_500.0)];
        let points = published.into_iter().chain([(0.001, 24_511.0), (0.0001, 53_216.0)]);
        let points: Vec<_> = points.map(|(tail, us)| (tail, us / 1_141.25)).collect();
        let table = of_percentiles(&Percentiles::new(&points).unwrap());
        let (mean, variation2) = moments(&table);
        assert!((mean - 1.0).abs() < 1e-5 && table.is_sorted(), "{mean}");
        let found = variation2.sqrt() / (1_374.54 / 1_141.25);
        assert!((found - 1.0).abs() < 0.1, "deviation: {found}");
        for (tail, time) in points {
            let found = look_up(&table, (tail * 18_446_744_073_709_551_616.0) as u64) as f64;
            let off = found / (1_u64 << UNIT_BITS) as f64 / time;
            assert!((off - 1.0).abs() < 0.01, "{tail}: {off}");
        }
    }

    /// Hits of a cache in 0.2 ms, 65 %, and misses in 8 ms: with what fio prints of them, draws are as often so long.
    #[test]
    fn a_table_of_two_kinds_has_the_percentiles_of_both() {
        let tails = [
            0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.01, 0.005, 0.001,
            0.0005, 0.0001,
        ];
        let mean = 0.65 * 0.2 + 0.35 * 8.0;
        let points = tails.map(|tail| (tail, if tail < 0.35 { 8.0 } else { 0.2 } / mean));
        let table = of_percentiles(&Percentiles::new(&points).unwrap());
        assert!((moments(&table).0 - 1.0).abs() < 1e-5 && table.is_sorted());
        let mut random = Random::new(1);
        let mut drawn: Vec<u64> = (0..200_000).map(|_| look_up(&table, random.bits())).collect();
        drawn.sort_unstable();
        for (tail, time) in points {
            let found = drawn[((1.0 - tail) * drawn.len() as f64) as usize];
            let off = found as f64 / (1_u64 << UNIT_BITS) as f64 / time;
            assert!((off - 1.0).abs() < 0.03, "{tail}: {off}");
        }
        let misses = drawn.iter().filter(|&&unit| unit > 1 << UNIT_BITS).count() as f64;
        assert!((misses / drawn.len() as f64 - 0.35).abs() < 0.01, "{misses}");
    }

    #[test]
    fn quantiles_of_the_exponential_are_met() {
        for (bound, quantile) in [(32, LN_2), (64, 2.0 * LN_2), (1024, 32.0 * LN_2)] {
            let found = EXPONENTIAL[bound] as f64 / (1_u64 << UNIT_BITS) as f64;
            assert!((found / quantile - 1.0).abs() < 3e-4, "{found} for {quantile}");
        }
    }

    #[test]
    fn draws_have_the_mean() {
        for spread in [Spread::Constant, Spread::Exponential, Spread::Lognormal(1.0)] {
            let duration = Duration::new(500_000, spread);
            let mut random = Random::new(7);
            let n = 4_000_000;
            let sum: u64 = (0..n).map(|_| duration.draw(random.bits())).sum();
            let mean = sum as f64 / f64::from(n);
            assert!((mean / 500_000.0 - 1.0).abs() < 0.002, "{spread:?}: {mean}");
        }
    }

    #[test]
    fn the_extremes_of_the_bits_are_the_ends_of_the_table() {
        let duration = Duration::new(u64::MAX, Spread::Lognormal(f64::INFINITY));
        assert!(duration.draw(0) > duration.draw(1 << 63));
        assert!(duration.draw(u64::MAX) < duration.draw(1 << 63));
        assert_eq!(Duration::new(9, Spread::Lognormal(f64::NAN)).draw(1 << 40), 9);
    }
}
