//! A latency histogram in the manner of HDR: constant relative error, and no allocation but one at the
//! first entry, for most disks of a large scenario never see a write, or a wait. Eight buckets to the octave
//! from 256 ns to 137 s.
//!
//! What a disk's life touches is small: there are buckets up to 17 ms, and all once an entry takes longer. They
//! count in 16 bits, and what goes beyond is carried into high halves, which few histograms ever have.
//!
//! ```text
//!   [ low halves up to 17 ms | low halves of the rest ]   [ high halves ]
//!     from the first entry     once one takes longer        once one has 65,536
//! ```

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, iter};

use crate::Time;

/// log2 of the buckets in an octave.
const SUB_BITS: u32 = 3;
/// Buckets in an octave.
const SUB: u32 = 1 << SUB_BITS;
/// log2 of the first bound: everything faster falls into bucket 0.
const MIN_BITS: u32 = 8;
/// log2 of the last bound: everything slower falls into the last bucket.
const MAX_BITS: u32 = 37;
/// What the formula of [`unbounded_bucket_of`] gives for what is just below the first bound.
const FIRST: u64 = (f64::MAX_EXP as u64 - 1 + MIN_BITS as u64) * SUB as u64 - 1;
/// Buckets in all.
const BUCKETS: usize = ((MAX_BITS - MIN_BITS) * SUB) as usize + 2;
/// The first of them, up to 17 ms: few I/Os on disks that are well take longer.
const FEW: usize = ((24 - MIN_BITS) * SUB) as usize + 1;

/// Counts of durations in nanoseconds. A bucket spans 1/8 of an octave (at most 12.5 %); quantiles
/// are interpolated inside it. A bucket saturates at 4,294,967,295 entries.
#[derive(Clone, Default)]
pub struct Histogram {
    /// The low halves of the counts, of no bucket, of the first [`FEW`] or of all. What is slower than the last
    /// bound is found beyond them.
    low: Box<[u16]>,
    /// The high halves, once one is not 0.
    high: Option<Box<[u16; BUCKETS]>>,
}

impl Histogram {
    /// Entries of each of its [`Self::tables`].
    pub const BUCKETS: usize = BUCKETS;

    /// Becomes another one, in its own memory once it has as much.
    pub fn copy(&mut self, from: &Self) {
        self.low.clone_from(&from.low);
        self.high.clone_from(&from.high);
    }

    /// Its tables, for whoever keeps them elsewhere.
    #[must_use]
    pub fn tables(&self) -> [Option<impl Iterator<Item = u16>>; 2] {
        let low = Some(&*self.low).filter(|low| !low.is_empty());
        let high = self.high.as_deref().map(<[u16; BUCKETS]>::as_slice);
        [low, high].map(|half| Some(half?.iter().copied().chain(iter::repeat(0)).take(BUCKETS)))
    }

    /// What had these [`Self::tables`]; `None` of what never had.
    #[must_use]
    pub fn of_tables(tables: [Option<Vec<u16>>; 2]) -> Option<Self> {
        let is_whole = tables.iter().flatten().all(|half| half.len() == BUCKETS);
        let is_known = is_whole && (tables[0].is_some() || tables[1].is_none());
        let [low, high] = tables.map(|table| table.map(Vec::into_boxed_slice));
        let high = high.and_then(|high| high.try_into().ok());
        is_known.then(|| Self { low: low.unwrap_or_default(), high })
    }

    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        let bucket = unbounded_bucket_of(nanos);
        let Some(low) = self.low.get_mut(bucket) else { return self.reach(bucket) };
        *low = low.wrapping_add(1);
        if *low == 0 {
            self.carry(bucket);
        }
    }

    /// Counts the first duration of a bucket that was not needed so far, or one that is slower than the last bound.
    #[cold]
    fn reach(&mut self, bucket: usize) {
        let bucket = bucket.min(BUCKETS - 1);
        self.set(bucket, self.at(bucket).saturating_add(1));
    }

    /// The low half of a count has become 0.
    #[cold]
    fn carry(&mut self, bucket: usize) {
        self.set(bucket, self.at(bucket).saturating_add(1 << u16::BITS));
    }

    /// Entries of a bucket.
    fn at(&self, bucket: usize) -> u32 {
        let low = self.low.get(bucket).copied().map_or(0, u32::from);
        let high = self.high.as_ref().map_or(0, |high| u32::from(high[bucket]));
        high << u16::BITS | low
    }

    fn set(&mut self, bucket: usize, entries: u32) {
        let (low, high) = (entries as u16, (entries >> u16::BITS) as u16);
        let needed = if bucket < FEW { FEW } else { BUCKETS };
        if needed > self.low.len() {
            let mut halves = core::mem::take(&mut self.low).into_vec();
            halves.reserve_exact(needed - halves.len());
            halves.resize(needed, 0);
            self.low = halves.into();
        }
        self.low[bucket] = low;
        if high > 0 || self.high.is_some() {
            self.high.get_or_insert_with(|| Box::new([0; BUCKETS]))[bucket] = high;
        }
    }

    /// Every bucket that holds something, and its entries.
    fn used(&self) -> impl Iterator<Item = (usize, u32)> {
        let buckets = 0..self.low.len();
        buckets.map(|bucket| (bucket, self.at(bucket))).filter(|(_, entries)| *entries > 0)
    }

    /// Entries in all buckets.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.used().map(|(_, entries)| u64::from(entries)).sum()
    }

    /// The least duration in nanoseconds that a share (0 to 1) of the entries do not exceed, as near
    /// as their bucket tells: less than 256 ns is no time; `None` when there are none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let wanted = (share.clamp(0.0, 1.0) * total as f64).max(1.0);
        let mut below = 0.0;
        for (index, n) in self.used() {
            let here = f64::from(n);
            if below + here >= wanted {
                if index == 0 {
                    return Some(0);
                }
                let (low, high) = bounds_of(index);
                let inside = (wanted - below) / here;
                return Some(low + ((high - low) as f64 * inside) as u64);
            }
            below += here;
        }
        None
    }

    /// Adds the entries of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, entries) in other.used() {
            self.set(bucket, self.at(bucket).saturating_add(entries));
        }
    }

    /// The entries that came after an `earlier` reading of the same histogram.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut delta = Self::default();
        for (bucket, entries) in self.used() {
            delta.set(bucket, entries.saturating_sub(earlier.at(bucket)));
        }
        delta
    }

    /// Every bucket that holds something: its bounds in nanoseconds and its entries.
    pub fn filled(&self) -> impl Iterator<Item = (u64, u64, u32)> + '_ {
        self.used().map(|(bucket, entries)| {
            let (low, high) = bounds_of(bucket);
            (low, high, entries)
        })
    }
}

/// By what it holds, as a digest of counters has it, and not by its memory.
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.used()).finish()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.used().eq(other.used())
    }
}

impl Eq for Histogram {}

/// The exponent of a floating-point number and the first bits of its fraction, read as one whole
/// number, are the bucket: eight to the octave, in order. What is faster than the first bound is taken as what is
/// next to it there; what is slower than the last one is beyond all buckets.
#[inline]
fn unbounded_bucket_of(nanos: u64) -> usize {
    // Above the last bound the float is rounded, or negative with the sign as its highest bit: that cannot
    // bring it back.
    let float = nanos as i64 as f64;
    let bits = float.to_bits() >> (f64::MANTISSA_DIGITS - 1 - SUB_BITS);
    bits.saturating_sub(FIRST) as usize
}

fn bounds_of(bucket: usize) -> (u64, u64) {
    if bucket == 0 {
        return (0, 1 << MIN_BITS);
    }
    if bucket == BUCKETS - 1 {
        return (1 << MAX_BITS, Time::NEVER.0 >> 1);
    }
    let bucket = bucket as u32 - 1;
    let octave = MIN_BITS + bucket / SUB;
    let width = 1_u64 << (octave - SUB_BITS);
    let low = (1 << octave) + u64::from(bucket % SUB) * width;
    (low, low + width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn bucket_of(nanos: u64) -> usize {
        unbounded_bucket_of(nanos).min(BUCKETS - 1)
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn the_extremes_have_buckets() {
        let mut histogram = Histogram::default();
        histogram.record(0);
        histogram.record(u64::MAX);
        assert_eq!(histogram.count(), 2);
        assert!(histogram.quantile(1.0).unwrap() >= 1 << MAX_BITS);
    }

    #[test]
    fn what_came_since_is_what_was_recorded_since() {
        let mut before = Histogram::default();
        before.record(1_000_000);
        let mut after = before.clone();
        after.record(2_000_000);
        let mut only = Histogram::default();
        only.record(2_000_000);
        assert_eq!(after.since(&before), only);
    }

    #[test]
    fn a_percentile_is_the_least_duration_that_so_many_do_not_exceed() {
        let mut histogram = Histogram::default();
        (1..=1_000_u64).rev().for_each(|micros| histogram.record(1_000 * micros));
        for (share, exact) in [(0.0, 1), (0.5, 500), (0.95, 950), (0.99, 990), (1.0, 1_000)] {
            let found = histogram.quantile(share).unwrap();
            let (low, high) = bounds_of(bucket_of(1_000 * exact));
            assert!((low..=high).contains(&found), "{found} for {share}");
        }
        // Spread evenly over its bucket, it is met closely.
        assert!(histogram.quantile(0.95).unwrap().abs_diff(950_000) < 2_000);
    }

    #[test]
    fn a_bucket_holds_more_than_16_bits_and_saturates_at_32() {
        let mut histogram = Histogram::default();
        (0..200_000).for_each(|_| histogram.record(1_000_000));
        histogram.record(5_000);
        let before = histogram.clone();
        (0..100_000).for_each(|_| histogram.record(1_000_000));
        let entries =
            |histogram: &Histogram| histogram.filled().map(|(.., n)| n).collect::<Vec<_>>();
        assert_eq!(entries(&histogram), [1, 300_000]);
        assert_eq!(entries(&histogram.since(&before)), [100_000]);
        let mut sum = Histogram::default();
        (0..20_000).for_each(|_| sum.merge(&histogram));
        assert_eq!(entries(&sum), [20_000, u32::MAX]);
        (0..100_000).for_each(|_| sum.record(1_000_000));
        assert_eq!(entries(&sum), [20_000, u32::MAX]);
        let mut copied = before;
        copied.copy(&sum);
        assert_eq!(copied, sum);
    }

    #[test]
    fn it_grows_with_what_it_is_told_and_keeps_it() {
        let mut histogram = Histogram::default();
        let mut told = 0;
        for (nanos, entries, len) in
            [(0, 3, FEW), (1 << 24, 1, BUCKETS), (300, 65_536, 2 * BUCKETS)]
        {
            (0..entries).for_each(|_| histogram.record(nanos));
            told += entries;
            let halves = histogram.low.len() + histogram.high.as_ref().map_or(0, |high| high.len());
            assert_eq!((histogram.count(), halves), (told, len), "{nanos}");
            let tables = histogram.tables().map(|table| table.map(Vec::from_iter));
            assert_eq!(Histogram::of_tables(tables), Some(histogram.clone()));
        }
        let [low, high] = histogram.tables().map(|table| table.map(Vec::from_iter));
        assert_eq!(Histogram::of_tables([None, high]), None);
        assert_eq!(Histogram::of_tables([low.map(|low| low[1..].to_vec()), None]), None);
    }

    proptest! {
        #[test]
        fn a_value_lies_inside_its_bucket(nanos in 0_u64..1 << MAX_BITS) {
            let (low, high) = bounds_of(bucket_of(nanos));
            prop_assert!(low <= nanos && nanos < high);
            prop_assert!(low < 256 || (high - low) * 8 <= low);
        }

        #[test]
        fn buckets_are_in_order(a in any::<u64>(), b in any::<u64>()) {
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(bucket_of(low) <= bucket_of(high));
        }
    }
}
