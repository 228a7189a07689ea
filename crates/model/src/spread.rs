//! Random durations from tables, in integers at the time of the draw: every machine draws the
//! same, and nothing is computed that a table can hold (reference `simulation.md`, section 2a).
//!
//! A table is the inverse of the distribution function in 1,024 cells, linear inside each. The
//! cells lie along the upper tail as floating-point numbers do: 32 to each halving of the
//! probability to be exceeded, so the tail is as fine as the body and nearly all draws fall into
//! the first few cache lines.

use alloc::boxed::Box;
use core::f64::consts::{LN_2, SQRT_2};

use crate::config::Spread;

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
    Exponential,
    Lognormal(Box<Table>),
}

impl Duration {
    /// Durations of this `mean`, in whatever unit the caller counts.
    pub(crate) fn new(mean: u64, spread: Spread) -> Self {
        let shape = match spread {
            Spread::Constant => Shape::Constant,
            Spread::Exponential => Shape::Exponential,
            Spread::Lognormal(variation) => Shape::Lognormal(lognormal(variation)),
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
            Shape::Exponential => look_up(&EXPONENTIAL, bits),
            Shape::Lognormal(table) => look_up(table, bits),
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
    let mut bounds = [0.0; OCTAVES * CELLS + 1];
    for (i, bound) in bounds.iter_mut().enumerate().skip(1) {
        *bound = libm::exp(sigma * (normal_exceeded_with(tail_of(i)) - sigma / 2.0));
    }
    // The lowest cell begins where its mean, a partial expectation, is met.
    let share = 1.0 - tail_of(1);
    let mean = normal_tail(sigma - normal_exceeded_with(tail_of(1))) / share;
    bounds[0] = (2.0 * mean - bounds[1]).max(0.0);
    Box::new(scaled(&bounds))
}

/// The probability that a standard normal variable exceeds `z`.
fn normal_tail(z: f64) -> f64 {
    libm::erfc(z / SQRT_2) / 2.0
}

/// What a standard normal variable exceeds with this probability, by bisection.
fn normal_exceeded_with(probability: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..52 {
        let middle = (low + high) / 2.0;
        if normal_tail(middle) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

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
