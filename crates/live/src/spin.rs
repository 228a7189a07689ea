//! How long a thread that found nothing looks again before it sleeps: to sleep and to be woken costs
//! more than most I/Os, and to look costs a processor.
//!
//! The rule is that of Linux for processors that have nothing to run (Documentation/virt/guest-halt-polling.rst):
//! what came soon after would have been found by looking longer, so it looks longer the next time; what
//! took longer than anybody wants to look is waited for asleep.

use counters::MICROSECOND;

/// The shortest and the longest look. A wake across cores costs 46 us, one for each side.
const MIN_NS: u64 = 20 * MICROSECOND;
const MAX_NS: u64 = 200 * MICROSECOND;

/// How long it looks now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spin(u64);

impl Default for Spin {
    fn default() -> Self {
        Self(MIN_NS)
    }
}

impl Spin {
    /// Nanoseconds without anything after which to sleep.
    pub(crate) const fn ns(self) -> u64 {
        self.0
    }

    /// It slept; so many nanoseconds were without anything in all.
    pub(crate) fn woken(&mut self, idle_ns: u64) {
        self.0 = if idle_ns <= MAX_NS { (2 * self.0).min(MAX_NS) } else { MIN_NS };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_as_long_as_that_is_of_use() {
        let mut spin = Spin::default();
        let looks = |spin: &mut Spin, idle_us: u64| {
            spin.woken(idle_us * MICROSECOND);
            spin.ns() / MICROSECOND
        };
        assert_eq!(
            [60, 60, 110, 190, 200].map(|idle| looks(&mut spin, idle)),
            [40, 80, 160, 200, 200]
        );
        assert_eq!([201, 5_000].map(|idle| looks(&mut spin, idle)), [20, 20]);
    }
}
