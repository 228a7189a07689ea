//! Random numbers of one station. Every array and every workload has a stream of its own, so
//! what one of them draws never depends on how often another did.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded stream of random bits.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// A number below `n` from 64 random bits, without a division.
#[inline]
pub(crate) fn below(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

/// A number below `n` from the low half of the bits; the high half stays free for another draw.
#[inline]
pub(crate) fn below_low(bits: u64, n: u32) -> u32 {
    ((u64::from(bits as u32) * u64::from(n)) >> 32) as u32
}
