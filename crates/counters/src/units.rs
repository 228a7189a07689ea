//! Time as every crate counts it: whole nanoseconds, never a float, never a clock.

use core::ops::{Add, Sub};

/// Nanoseconds in a microsecond.
pub const MICROSECOND: u64 = 1_000;
/// Nanoseconds in a millisecond.
pub const MILLISECOND: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
/// Bytes of a sector, in which places on disks and esxcli's blocks are counted.
pub const SECTOR: u64 = 512;

/// An instant: nanoseconds since the run began. Durations are plain `u64` nanoseconds whose
/// names end in `_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The instant at which a run begins.
    pub const ZERO: Self = Self(0);
    /// Later than every instant of a run: "never".
    pub const NEVER: Self = Self(u64::MAX);

    /// Nanoseconds from `earlier` to `self`, where it is known to be no later.
    #[inline]
    #[must_use]
    pub const fn after(self, earlier: Self) -> u64 {
        debug_assert!(earlier.0 <= self.0, "what is said to be earlier is later");
        self.0.wrapping_sub(earlier.0)
    }

    /// Nanoseconds from `earlier` to `self`; 0 when `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Time {
    type Output = Self;

    #[inline]
    fn add(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub for Time {
    type Output = u64;

    fn sub(self, earlier: Self) -> u64 {
        self.since(earlier)
    }
}

/// Nanoseconds as the milliseconds that esxtop prints.
#[must_use]
pub fn nanos_to_millis(nanos: f64) -> f64 {
    nanos / MILLISECOND as f64
}
