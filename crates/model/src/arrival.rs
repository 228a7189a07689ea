//! Who may issue an I/O, and when: the threads of a closed loop, the slots of an open one.

use alloc::{boxed::Box, collections::VecDeque};

use counters::{Occupancy, Time};

use crate::{
    config::{Arrival, Ceiling, Spread, WAITING_MAX},
    pace::{Beat, Phases},
    random::Random,
    tags::Tags,
};

/// Threads that issue, wait, think, and issue again.
#[derive(Clone, Debug)]
pub(crate) struct ClosedLoop {
    /// Holds the threads to a rate.
    held: Option<Box<Held>>,
    /// Of threads that think between their I/Os.
    thinking: Option<Box<Thinking>>,
    /// Threads that would issue.
    idle: Tags,
    /// When the next of them may.
    issue_at: Time,
}

/// How long threads think, and those that do, by the end of it.
#[derive(Clone, Debug)]
struct Thinking {
    nanos: u64,
    until: VecDeque<(Time, u32)>,
}

/// What holds threads to a rate, and whether what was missed of it is made up for.
#[derive(Clone, Debug)]
struct Held {
    beat: Beat,
    makes_up: bool,
}

/// Arrivals that do not wait for completions.
#[derive(Clone, Debug)]
pub(crate) struct OpenLoop {
    beat: Beat,
    free: Tags,
    waiting_max: usize,
    /// Since when each arrival waits that found no slot free.
    waiting: VecDeque<Time>,
    aside: Aside,
}

/// What an application keeps to itself: arrivals that it has not submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// Arrivals that wait because `outstanding_max` I/Os are outstanding.
    pub waiting: Occupancy,
    /// Arrivals that were given up: they came when `waiting_max` were waiting, or waited when the
    /// workload stopped.
    pub lost: u64,
}

/// A tag that issues, and how long its I/O had waited in the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) tag: u32,
    pub(crate) waited_ns: u64,
}

impl Turn {
    pub(crate) const fn at_once(tag: u32) -> Self {
        Self { tag, waited_ns: 0 }
    }
}

impl ClosedLoop {
    fn new(threads: u32, think_ns: u64, rate: Option<Ceiling>) -> Self {
        let idle = Tags::full(threads);
        let until = || VecDeque::with_capacity(idle.len());
        let thinking =
            (think_ns > 0).then(|| Box::new(Thinking { nanos: think_ns, until: until() }));
        Self {
            held: rate.map(|Ceiling { per_sec, makes_up }| {
                Box::new(Held { beat: Beat::new(per_sec, Spread::Constant), makes_up })
            }),
            thinking,
            idle,
            issue_at: Time::ZERO,
        }
    }

    /// Whether a completion always makes the next I/O due at once.
    const fn is_free(&self) -> bool {
        self.thinking.is_none() && self.held.is_none()
    }

    fn start(&mut self, now: Time) {
        if let Some(held) = &mut self.held {
            held.beat.reset(0);
        }
        self.issue_at = now;
    }

    fn next_wakeup(&self) -> Time {
        let first = self.thinking.as_ref().and_then(|thinking| thinking.until.front());
        let thought = first.map_or(Time::NEVER, |&(end, _)| end);
        if self.idle.is_empty() { thought } else { thought.min(self.issue_at) }
    }

    fn wake(&mut self, now: Time, phases: &Phases, random: &mut Random) -> Option<u32> {
        if let Some(thinking) = &mut self.thinking {
            while let Some((_, tag)) = thinking.until.pop_front_if(|(end, _)| *end <= now) {
                self.idle.insert(tag);
            }
        }
        if self.idle.is_empty() || !self.may_issue(now, phases, random) {
            return None;
        }
        self.idle.pop()
    }

    fn complete(
        &mut self,
        now: Time,
        tag: u32,
        phases: &Phases,
        random: &mut Random,
    ) -> Option<u32> {
        if let Some(thinking) = &mut self.thinking {
            thinking.until.push_back((now + thinking.nanos, tag));
            return None;
        }
        if self.may_issue(now, phases, random) {
            return Some(tag);
        }
        self.idle.insert(tag);
        None
    }

    /// Whether the workload is on and its rate allows another I/O, which it then counts.
    fn may_issue(&mut self, now: Time, phases: &Phases, random: &mut Random) -> bool {
        let on_ns = phases.on_ns(now);
        let due_ns = self.held.as_ref().map_or(on_ns, |held| held.beat.next_ns.max(on_ns));
        self.issue_at = phases.at(due_ns);
        let due = self.issue_at <= now;
        if let Some(Held { beat, makes_up }) = self.held.as_deref_mut().filter(|_| due) {
            if beat.next_ns < on_ns && !*makes_up {
                beat.reset(on_ns);
            }
            beat.advance(random);
            self.issue_at = phases.at(beat.next_ns);
        }
        due
    }
}

impl OpenLoop {
    fn new(rate: f64, poisson: bool, outstanding_max: u32, waiting_max: u32) -> Self {
        let spread = if poisson { Spread::Exponential } else { Spread::Constant };
        let free = Tags::full(outstanding_max);
        Self {
            beat: Beat::new(rate, spread),
            free,
            waiting_max: waiting_max.min(WAITING_MAX) as usize,
            waiting: VecDeque::new(),
            aside: Aside::default(),
        }
    }

    fn start(&mut self, random: &mut Random) {
        self.beat.reset(0);
        self.beat.advance(random);
    }

    fn wake(&mut self, now: Time, phases: &Phases, random: &mut Random) -> Option<u32> {
        while phases.at(self.beat.next_ns) <= now {
            let arrived = phases.at(self.beat.next_ns);
            self.beat.advance(random);
            let slot = self.free.pop();
            if slot.is_some() {
                return slot;
            }
            if self.waiting.len() < self.waiting_max {
                self.waiting.push_back(arrived);
                self.aside.waiting.enter(arrived);
            } else {
                self.aside.lost += 1;
            }
        }
        None
    }

    fn complete(&mut self, now: Time, tag: u32) -> Option<Turn> {
        let Some(arrived) = self.waiting.pop_front() else {
            self.free.insert(tag);
            return None;
        };
        self.aside.waiting.leave(now);
        Some(Turn { tag, waited_ns: now.since(arrived) })
    }

    fn stop(&mut self, now: Time) {
        self.aside.lost += self.waiting.len() as u64;
        self.aside.waiting.set(0, now);
        self.waiting.clear();
    }
}

/// Either kind of loop.
#[derive(Clone, Debug)]
pub(crate) enum Arrivals {
    Closed(ClosedLoop),
    Open(Box<OpenLoop>),
}

impl Arrivals {
    pub(crate) fn new(arrival: &Arrival) -> Self {
        match *arrival {
            Arrival::Closed { threads, think_ns, rate } => {
                Self::Closed(ClosedLoop::new(threads, think_ns, rate))
            }
            Arrival::Open { rate, poisson, outstanding_max, waiting_max } => {
                Self::Open(Box::new(OpenLoop::new(rate, poisson, outstanding_max, waiting_max)))
            }
        }
    }

    /// Whether a completion always makes the next I/O due at once.
    pub(crate) const fn is_free(&self) -> bool {
        match self {
            Self::Closed(threads) => threads.is_free(),
            Self::Open(_) => false,
        }
    }

    pub(crate) fn start(&mut self, now: Time, random: &mut Random) {
        match self {
            Self::Closed(threads) => threads.start(now),
            Self::Open(arrivals) => arrivals.start(random),
        }
    }

    pub(crate) fn stop(&mut self, now: Time) {
        if let Self::Open(arrivals) = self {
            arrivals.stop(now);
        }
    }

    pub(crate) fn next_wakeup(&self, phases: &Phases) -> Time {
        match self {
            Self::Closed(threads) => threads.next_wakeup(),
            Self::Open(arrivals) => phases.at(arrivals.beat.next_ns),
        }
    }

    /// The tag that issues at `now`.
    pub(crate) fn wake(&mut self, now: Time, phases: &Phases, random: &mut Random) -> Option<u32> {
        match self {
            Self::Closed(threads) => threads.wake(now, phases, random),
            Self::Open(arrivals) => arrivals.wake(now, phases, random),
        }
    }

    /// The I/O of a tag ended: the tag when it issues at once.
    pub(crate) fn complete(
        &mut self,
        now: Time,
        tag: u32,
        phases: &Phases,
        random: &mut Random,
    ) -> Option<Turn> {
        match self {
            Self::Closed(threads) => threads.complete(now, tag, phases, random).map(Turn::at_once),
            Self::Open(arrivals) => arrivals.complete(now, tag),
        }
    }

    /// The I/O of a tag ended after the workload was stopped.
    pub(crate) fn retire(&mut self, tag: u32) {
        match self {
            Self::Closed(threads) => threads.idle.insert(tag),
            Self::Open(arrivals) => arrivals.free.insert(tag),
        }
    }

    /// What the application keeps to itself.
    pub(crate) fn aside(&self) -> Aside {
        match self {
            Self::Closed(_) => Aside::default(),
            Self::Open(arrivals) => arrivals.aside,
        }
    }

    /// The same, closed at `now`: from here on it is counted elsewhere.
    pub(crate) fn take_aside(&mut self, now: Time) -> Aside {
        let Self::Open(arrivals) = self else { return Aside::default() };
        let mut taken = core::mem::take(&mut arrivals.aside);
        arrivals.aside.waiting.set(taken.waiting.now(), now);
        taken.waiting.set(0, now);
        taken
    }
}

#[cfg(test)]
mod tests {
    use counters::{MILLISECOND, SECOND};

    use super::*;
    use crate::spread::Duration;

    /// One job of fio's that could do 1,000 a second is held to 800 [FIO]: an I/O that takes longer than its turn makes
    /// those behind it late, and these go at once. Without that it is 1 / (T + S e^(-T/S)) = 653.
    #[test]
    fn a_rate_that_was_missed_is_made_up_for_where_that_is_wanted() {
        for (makes_up, expected) in [(true, 800.0), (false, 653.4)] {
            let rate = Some(Ceiling { per_sec: 800.0, makes_up });
            let mut job = Arrivals::new(&Arrival::Closed { threads: 1, think_ns: 0, rate });
            let service = Duration::new(MILLISECOND, Spread::Exponential);
            let (phases, mut random) = (Phases::new(None), Random::new(1));
            let (mut now, mut ended) = (Time::ZERO, 0.0);
            job.start(now, &mut random);
            let mut issued = job.wake(now, &phases, &mut random);
            while now < Time(60 * SECOND) {
                if let Some(tag) = issued {
                    now = now + service.draw(random.bits());
                    ended += 1.0;
                    issued = job.complete(now, tag, &phases, &mut random).map(|turn| turn.tag);
                } else {
                    now = job.next_wakeup(&phases);
                    issued = job.wake(now, &phases, &mut random);
                }
            }
            let found: f64 = ended / 60.0;
            assert!((found / expected - 1.0).abs() < 0.01, "{found} of {expected}");
        }
    }
}
