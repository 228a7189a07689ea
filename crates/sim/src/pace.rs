//! How fast virtual time passes: as fast as the machine allows, by the wall clock, or by hand.
//!
//! A run by the wall clock is the run in virtual time, held back: [`Paced`] waits before each
//! event and decides nothing, so both give the same result bit for bit. What it cannot hold to
//! is reported as its own lateness.

use std::{
    str::FromStr,
    thread,
    time::{Duration, Instant},
};

use counters::{Histogram, MICROSECOND, Time};

use crate::{Error, Watch};

/// How fast a run goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// From one event to the next without waiting.
    Virtual,
    /// By the wall clock.
    Real {
        /// Virtual seconds to a second: 1 is real time. 0.001 to 1,000,000.
        speed: f64,
    },
    /// One event at a time.
    Step,
}

impl FromStr for Pace {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "virtual" => return Ok(Self::Virtual),
            "real" => return Ok(Self::Real { speed: 1.0 }),
            "step" => return Ok(Self::Step),
            _ => {}
        }
        let factor = text.strip_suffix('x').and_then(|factor| factor.parse::<f64>().ok());
        match factor {
            Some(speed) if (1e-3..=1e6).contains(&speed) => Ok(Self::Real { speed }),
            _ => Err(Error::Pace(text.into())),
        }
    }
}

/// What a run by the wall clock goes by.
pub trait Clock {
    /// Nanoseconds since the run began.
    fn now(&mut self) -> u64;
    /// Returns once [`Clock::now`] has reached `at_ns`; at once when it has already.
    fn wait_until(&mut self, at_ns: u64);
}

/// The monotonic clock of the machine.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    start: Instant,
}

impl WallClock {
    /// How long before the instant it stops sleeping: a sleep is 8 to 23 us late even on an idle
    /// machine, a spin 30 ns; 80 us keep the 99th percentile at 120 ns (reference, simulation.md
    /// section 5).
    const SPIN_NS: u64 = 80 * MICROSECOND;

    /// A run begins now.
    #[must_use]
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for WallClock {
    fn now(&mut self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn wait_until(&mut self, at_ns: u64) {
        let left_ns = at_ns.saturating_sub(self.now());
        if left_ns > Self::SPIN_NS {
            thread::sleep(Duration::from_nanos(left_ns - Self::SPIN_NS));
        }
        while self.now() < at_ns {
            std::hint::spin_loop();
        }
    }
}

/// Holds a run back to the pace of a clock.
#[derive(Clone, Debug)]
pub struct Paced<C> {
    clock: C,
    speed: f64,
    lateness: Histogram,
}

impl<C: Clock> Paced<C> {
    /// `speed` virtual seconds pass in a second of `clock`.
    pub fn new(clock: C, speed: f64) -> Self {
        Self { clock, speed, lateness: Histogram::default() }
    }

    /// How long after its instant each event happened, in nanoseconds of the clock.
    #[must_use]
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }
}

impl<C: Clock> Watch for Paced<C> {
    /// Each event is timed from the beginning of the run, not from the event before it, so that
    /// being late once does not make everything after it late.
    fn before(&mut self, at: Time) {
        let due_ns = (at.0 as f64 / self.speed) as u64;
        self.clock.wait_until(due_ns);
        self.lateness.record(self.clock.now().saturating_sub(due_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_are_words_or_factors() {
        let real = |speed| Some(Pace::Real { speed });
        let cases = [
            ("virtual", Some(Pace::Virtual)),
            ("real", real(1.0)),
            ("step", Some(Pace::Step)),
            ("1x", real(1.0)),
            ("10x", real(10.0)),
            ("0.5x", real(0.5)),
            ("1000000x", real(1e6)),
            ("", None),
            ("x", None),
            ("10", None),
            ("10 x", None),
            ("-1x", None),
            ("0x", None),
            ("1e-9x", None),
            ("infx", None),
            ("NaNx", None),
            ("Virtual", None),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Pace>().ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_refused_pace_says_what_is_allowed() {
        let line = "fast".parse::<Pace>().unwrap_err().to_string();
        assert!(line.starts_with("`fast` is no pace: allowed are `virtual`"), "{line}");
        assert!(!line.contains('\n'));
    }

    /// A clock that is late by as much as it is told to be.
    struct Late {
        now: u64,
        by: u64,
    }

    impl Clock for Late {
        fn now(&mut self) -> u64 {
            self.now
        }

        fn wait_until(&mut self, at_ns: u64) {
            self.now = self.now.max(at_ns + self.by);
        }
    }

    #[test]
    fn events_are_timed_from_the_beginning_and_lateness_does_not_add_up() {
        let mut paced = Paced::new(Late { now: 0, by: 1_000 }, 0.5);
        for event in 1..=1_000 {
            paced.before(Time(event * 1_000_000));
        }
        assert_eq!(paced.clock.now, 2_000_000_000 + 1_000);
        assert_eq!(paced.lateness().count(), 1_000);
        assert!(paced.lateness().quantile(1.0).unwrap() < 1_100);
    }
}
