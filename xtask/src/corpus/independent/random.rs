//! Seeded draws: what makes one capture differ from the next.

use std::ops::Range;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded stream of numbers.
pub(super) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of a name (FNV-1a), so that a family that is added redraws no other.
    pub(super) fn of(name: &str) -> Self {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        Self(Xoshiro256PlusPlus::seed_from_u64(name.bytes().fold(0xcbf2_9ce4_8422_2325, mix)))
    }

    /// A number from 0 up to 1.
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.unit()
    }

    /// A number whose logarithm is even: ranges that span decades.
    pub(super) fn log_between(&mut self, from: f64, to: f64) -> f64 {
        self.between(from.ln(), to.ln()).exp()
    }

    pub(super) fn within(&mut self, range: Range<usize>) -> usize {
        range.start + (self.unit() * range.len() as f64) as usize
    }

    pub(super) fn chance(&mut self, of: f64) -> bool {
        self.unit() < of
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.within(0..from.len())]
    }

    /// A normal deviate of mean 0 and deviation 1 (the sum of twelve even draws).
    pub(super) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// A count of mean `mean`, as independent arrivals give it.
    pub(super) fn count(&mut self, mean: f64) -> f64 {
        if mean > 30.0 {
            return (mean + self.normal() * mean.sqrt()).round().max(0.0);
        }
        let (mut product, mut count) = (self.unit(), 0.0);
        while product > (-mean).exp() {
            product *= self.unit();
            count += 1.0;
        }
        count
    }
}
