//! Adaptive queue depth: TASK SET FULL and BUSY halve a device's depth, good results let it climb
//! back one at a time [KB-QF, LAMW].
//!
//! The kernel's option texts and the KB say different things about the two numbers; both readings
//! are here ([`ThrottleMode`]). Off by default: a sample size of 0.

use crate::{ThrottleMode, codec::records};

/// The state of one device.
#[derive(Clone, Debug)]
pub(crate) struct Throttle {
    mode: ThrottleMode,
    sample_size: u32,
    threshold: u32,
    /// Whether the two numbers were set for this device rather than for the host.
    is_own: bool,
    /// The depth it allows; `None` while it does not throttle.
    depth: Option<u32>,
    results: u32,
    bad: u32,
    good: u32,
}

impl Throttle {
    pub(crate) const fn new(mode: ThrottleMode) -> Self {
        Self {
            mode,
            sample_size: 0,
            threshold: 0,
            is_own: false,
            depth: None,
            results: 0,
            bad: 0,
            good: 0,
        }
    }

    /// Whether what it has counted is less than what it acts on, or little more where that was lowered.
    pub(crate) fn is_sound(&self) -> bool {
        const RESULTS_MAX: u32 = 1 << 16;
        [self.results, self.bad, self.good].into_iter().all(|results| results < RESULTS_MAX)
            && self.depth.is_none_or(|depth| depth < u32::MAX)
    }

    /// Whether it counts results.
    pub(crate) const fn is_on(&self) -> bool {
        self.sample_size != 0
    }

    /// Queue Full Sample Size.
    pub(crate) const fn sample_size(&self) -> u32 {
        self.sample_size
    }

    /// Changes the two numbers of this device; a sample size of 0 leaves it to the host's.
    pub(crate) const fn set(&mut self, sample_size: u32, threshold: u32) {
        *self = Self { sample_size, threshold, is_own: sample_size > 0, ..Self::new(self.mode) };
    }

    /// Changes the host's two numbers, which count where a device has none of its own.
    pub(crate) const fn set_global(&mut self, sample_size: u32, threshold: u32) {
        let is_same = self.sample_size == sample_size && self.threshold == threshold;
        if !self.is_own && !is_same {
            *self = Self { sample_size, threshold, ..Self::new(self.mode) };
        }
    }

    /// The limit that it puts on a device whose depth would be `base`.
    #[inline]
    pub(crate) fn limit(&self, base: u32) -> u32 {
        self.depth.map_or(base, |depth| depth.min(base))
    }

    /// Counts a result. `true` when the limit changed.
    #[inline]
    pub(crate) fn count(&mut self, is_good: bool, base: u32) -> bool {
        if !self.is_on() {
            return false;
        }
        let before = self.depth;
        if is_good {
            self.count_good(base);
        } else {
            self.count_bad(base);
        }
        self.depth != before
    }

    const fn count_good(&mut self, base: u32) {
        self.count_in_window();
        self.good += 1;
        if self.good < self.threshold {
            return;
        }
        self.good = 0;
        if let Some(depth) = self.depth {
            self.depth = if depth + 1 < base { Some(depth + 1) } else { None };
        }
    }

    fn count_bad(&mut self, base: u32) {
        self.bad += 1;
        if self.mode == ThrottleMode::Kernel {
            self.good = 0;
        }
        let limit = match self.mode {
            ThrottleMode::Kernel => self.threshold,
            ThrottleMode::Kb => self.sample_size,
        };
        if self.bad >= limit {
            self.depth = Some((self.limit(base) / 2).max(1));
            self.bad = 0;
            self.results = 0;
        } else {
            self.count_in_window();
        }
    }

    /// In the kernel's reading bad results are counted among the last `sample_size` only.
    const fn count_in_window(&mut self) {
        if matches!(self.mode, ThrottleMode::Kernel) {
            self.results += 1;
            if self.results >= self.sample_size {
                self.results = 0;
                self.bad = 0;
            }
        }
    }
}

records! {
    Throttle { mode, sample_size, threshold, is_own, depth, results, bad, good }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn throttled(mode: ThrottleMode, bad: u32) -> Throttle {
        let mut throttle = Throttle::new(mode);
        throttle.set(32, 8);
        for _ in 0..bad {
            throttle.count(false, 64);
        }
        throttle
    }

    #[test]
    fn it_is_off_by_default() {
        let mut throttle = Throttle::new(ThrottleMode::Kernel);
        assert!(!throttle.count(false, 64));
        assert_eq!(throttle.limit(64), 64);
    }

    #[test]
    fn the_kernel_reading_halves_at_the_threshold_and_the_kb_reading_at_the_sample_size() {
        assert_eq!(throttled(ThrottleMode::Kernel, 7).limit(64), 64);
        assert_eq!(throttled(ThrottleMode::Kernel, 8).limit(64), 32);
        assert_eq!(throttled(ThrottleMode::Kb, 31).limit(64), 64);
        assert_eq!(throttled(ThrottleMode::Kb, 32).limit(64), 32);
    }

    #[test]
    fn it_never_falls_below_one_and_climbs_back_one_at_a_time() {
        let mut throttle = throttled(ThrottleMode::Kernel, 8 * 10);
        assert_eq!(throttle.limit(64), 1);
        for _ in 0..8 {
            throttle.count(true, 64);
        }
        assert_eq!(throttle.limit(64), 2);
        for _ in 0..8 * 62 {
            throttle.count(true, 64);
        }
        assert_eq!(throttle.limit(64), 64);
    }

    #[test]
    fn bad_results_far_apart_do_not_add_up_in_the_kernel_reading() {
        let mut throttle = throttled(ThrottleMode::Kernel, 7);
        for _ in 0..32 {
            throttle.count(true, 64);
        }
        throttle.count(false, 64);
        assert_eq!(throttle.limit(64), 64);
    }
}
