//! The instants at which a workload may issue: an even or random beat, and on and off in turn.

use alloc::boxed::Box;

use counters::{SECOND, Time};

use crate::{
    config::{Burst, Spread},
    random::Random,
    spread::Duration,
};

/// Fraction bits of a beat's nanoseconds: 3,000,000 a second are met, not 3,003,003.
const FRACTION_BITS: u32 = 7;
/// The slowest beat: one in 1,000 seconds.
const RATE_MIN: f64 = 0.001;

/// A clock that beats at a rate. It runs only while the workload is on.
#[derive(Clone, Debug)]
pub(crate) struct Beat {
    interval: Duration,
    /// Time on, since the start, of the next beat; the rest is less than a nanosecond.
    pub(crate) next_ns: u64,
    rest: u64,
}

impl Beat {
    /// `rate` beats a second: at least 0.001, at most one a nanosecond.
    pub(crate) fn new(rate: f64, spread: Spread) -> Self {
        let interval = SECOND as f64 / rate.max(RATE_MIN);
        let fixed = libm::ceil(interval * f64::from(1 << FRACTION_BITS)) as u64;
        Self { interval: Duration::new(fixed.max(1 << FRACTION_BITS), spread), next_ns: 0, rest: 0 }
    }

    /// The time on of the next beat is `on_ns`.
    pub(crate) const fn reset(&mut self, on_ns: u64) {
        self.next_ns = on_ns;
        self.rest = 0;
    }

    /// Lets a beat pass.
    pub(crate) fn advance(&mut self, random: &mut Random) {
        let step = self.interval.draw(random.bits()) + self.rest;
        self.next_ns = self.next_ns.saturating_add(step >> FRACTION_BITS);
        self.rest = step % (1 << FRACTION_BITS);
    }
}

/// When the workload is on: always, or in bursts from its start.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    start: Time,
    /// Nanoseconds on and nanoseconds from one burst to the next; `None` is always on.
    burst: Option<Box<(u64, u64)>>,
}

impl Phases {
    pub(crate) fn new(burst: Option<Burst>) -> Self {
        let lengths = |Burst { on_ns, off_ns }| (on_ns.max(1), on_ns.max(1).saturating_add(off_ns));
        let pausing = burst.filter(|burst| burst.off_ns > 0);
        Self { start: Time::ZERO, burst: pausing.map(lengths).map(Box::new) }
    }

    pub(crate) const fn always_on(&self) -> bool {
        self.burst.is_none()
    }

    pub(crate) const fn start(&mut self, now: Time) {
        self.start = now;
    }

    /// Time on from the start until `now`.
    pub(crate) fn on_ns(&self, now: Time) -> u64 {
        let elapsed = now.since(self.start);
        self.burst.as_deref().map_or(elapsed, |(on_ns, period_ns)| {
            (elapsed / period_ns) * on_ns + (elapsed % period_ns).min(*on_ns)
        })
    }

    /// The instant at which a time on is reached and the workload is on.
    pub(crate) fn at(&self, on_ns: u64) -> Time {
        let elapsed = self.burst.as_deref().map_or(on_ns, |(burst_ns, period_ns)| {
            (on_ns / burst_ns).saturating_mul(*period_ns).saturating_add(on_ns % burst_ns)
        });
        self.start + elapsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_on_stands_still_while_off() {
        let mut phases = Phases::new(Some(Burst { on_ns: 10, off_ns: 5 }));
        phases.start(Time(100));
        for (now, on_ns) in [(100, 0), (109, 9), (110, 10), (114, 10), (115, 10), (116, 11)] {
            assert_eq!(phases.on_ns(Time(now)), on_ns, "{now}");
        }
        for (on_ns, at) in [(0, 100), (9, 109), (10, 115), (25, 135)] {
            assert_eq!(phases.at(on_ns), Time(at), "{on_ns}");
        }
        assert_eq!(phases.at(u64::MAX), Time::NEVER);
    }

    #[test]
    fn a_beat_keeps_its_rate_over_a_long_time() {
        let mut random = Random::new(1);
        for (rate, tolerance) in [(0.001, 1e-9), (3.0, 1e-9), (130_000.0, 1e-6), (3e6, 1e-5)] {
            let mut beat = Beat::new(rate, Spread::Constant);
            (0..100_000).for_each(|_| beat.advance(&mut random));
            let found = 100_000.0 * SECOND as f64 / beat.next_ns as f64;
            assert!(found <= rate * 1.000_000_1 && found > rate * (1.0 - tolerance), "{found}");
        }
    }

    #[test]
    fn extreme_rates_still_beat() {
        let mut random = Random::new(1);
        for rate in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 1e300] {
            let mut beat = Beat::new(rate, Spread::Constant);
            beat.advance(&mut random);
            assert!(beat.next_ns > 0, "{rate}");
        }
    }
}
