//! A workload on one virtual disk: when it issues I/Os ([`Arrival`](crate::Arrival)), and which.

use alloc::boxed::Box;

use counters::Time;

use crate::{
    arrival::{Arrivals, Aside, Turn},
    config::WorkloadConfig,
    pace::Phases,
    random::Random,
    request::{Io, Requests},
    tape,
};

/// What an application does to a virtual disk.
#[derive(Clone, Debug)]
pub struct Workload {
    requests: Requests,
    random: Random,
    /// Running, and nothing but completions decides when: the next I/O follows at once.
    free: bool,
    running: bool,
    ios_max: u64,
    /// I/Os that are left to issue; not counted while it is free.
    left: u64,
    phases: Phases,
    arrivals: Arrivals,
    /// What is played in the place of what would be drawn.
    tape: Option<Box<tape::Player>>,
}

impl Workload {
    /// A workload that has not started, whose draws depend on `seed` alone. Values outside their
    /// ranges are taken as the nearest end of the range.
    #[must_use]
    pub fn new(config: &WorkloadConfig, seed: u64) -> Self {
        Self {
            requests: Requests::new(config),
            random: Random::new(seed),
            free: false,
            running: false,
            ios_max: config.ios_max.unwrap_or(u64::MAX),
            left: 0,
            phases: Phases::new(config.burst),
            arrivals: Arrivals::new(&config.arrival),
            tape: config.tape.as_ref().map(|tape| Box::new(tape::Player::new(tape))),
        }
    }

    /// Starts it, or starts it again: bursts, rates and the count of its I/Os begin anew.
    pub fn start(&mut self, now: Time) {
        self.running = true;
        self.left = self.ios_max;
        if let Some(tape) = &mut self.tape {
            return tape.start(now);
        }
        self.free = self.arrivals.is_free() && self.phases.always_on() && self.ios_max == u64::MAX;
        self.phases.start(now);
        self.arrivals.start(now, &mut self.random);
    }

    /// Stops it: it issues nothing more, and what waited in the application is lost. What is
    /// outstanding still has to be completed.
    pub fn stop(&mut self, now: Time) {
        self.running = false;
        self.free = false;
        self.arrivals.stop(now);
    }

    /// When it next wants [`wake`](Self::wake); [`Time::NEVER`] when only completions move it.
    #[must_use]
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        match &self.tape {
            _ if !self.issues() => Time::NEVER,
            Some(tape) => tape.next_wakeup(),
            None => self.arrivals.next_wakeup(&self.phases),
        }
    }

    /// The next I/O that is due at `now`; to be called until there is none.
    pub fn wake(&mut self, now: Time) -> Option<Io> {
        if !self.issues() {
            return None;
        }
        if let Some(tape) = &mut self.tape {
            return tape.wake(now);
        }
        let tag = self.arrivals.wake(now, &self.phases, &mut self.random)?;
        self.left -= 1;
        Some(self.requests.draw(&mut self.random, tag))
    }

    /// Whether it is on and has I/Os left.
    const fn issues(&self) -> bool {
        self.running && self.left > 0
    }

    /// Whether it is on and has issued all that it ever will.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.running && self.left == 0
    }

    /// The I/O of `tag` ended: the I/O that this makes due at once, if any.
    ///
    /// # Panics
    /// When `tag` is none that this workload gave out.
    #[inline(always)]
    pub fn complete(&mut self, now: Time, tag: u32) -> Option<Io> {
        let turn = if self.free { Turn::at_once(tag) } else { self.turn_after(now, tag)? };
        let io = self.requests.draw(&mut self.random, turn.tag);
        Some(Io { waited_ns: turn.waited_ns, ..io })
    }

    /// Who issues when the I/O of `tag` ended.
    fn turn_after(&mut self, now: Time, tag: u32) -> Option<Turn> {
        if let Some(tape) = &mut self.tape {
            tape.answered(now, tag);
            return None;
        }
        if !self.issues() {
            self.arrivals.retire(tag);
            return None;
        }
        let turn = self.arrivals.complete(now, tag, &self.phases, &mut self.random)?;
        self.left -= 1;
        Some(turn)
    }

    /// What the application keeps to itself: nothing in a closed loop.
    #[must_use]
    pub fn aside(&self) -> Aside {
        self.arrivals.aside()
    }

    /// The same, counted until `now`; from here on [`Workload::aside`] counts anew, beginning with
    /// what waits.
    pub fn take_aside(&mut self, now: Time) -> Aside {
        self.arrivals.take_aside(now)
    }
}
