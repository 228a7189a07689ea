//! A load as it was recorded, played again: the requests that a guest sent, one after the other, where nothing draws
//! them. A guest whose requests are answered sooner sends the next ones sooner, or keeps to the times that it had:
//! a recording does not say which, so that both can be asked for.

use alloc::collections::VecDeque;

use counters::Time;

use crate::{
    config::{Tape, Taped},
    request::Io,
    tags::Tags,
};

/// A tape that is played.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    tape: Tape,
    /// The place of the next request.
    next: usize,
    /// When the recording begins this time.
    begins: Time,
    /// Threads that have sent nothing so far.
    fresh: u32,
    /// When the others had their answers, of which none let a request go yet.
    answers: VecDeque<Time>,
    /// When something happened last: what is late is due then.
    now: Time,
    free: Tags,
}

impl Player {
    pub(crate) fn new(tape: &Tape) -> Self {
        Self {
            tape: tape.clone(),
            next: 0,
            begins: Time::NEVER,
            fresh: tape.threads.unwrap_or_default(),
            answers: VecDeque::new(),
            now: Time::ZERO,
            free: Tags::full(tape.threads.unwrap_or(u32::MAX)),
        }
    }

    pub(crate) const fn start(&mut self, now: Time) {
        (self.next, self.begins, self.now) = (0, now, now);
    }

    /// When the next request is sent; [`Time::NEVER`] while it waits for an answer.
    pub(crate) fn next_wakeup(&self) -> Time {
        let next = self.tape.requests[self.next];
        let is_timed = self.fresh > 0 || self.tape.threads.is_none();
        let due = match self.answers.front() {
            _ if self.free.is_empty() => Time::NEVER,
            _ if is_timed => self.begins + next.at_ns,
            answer => answer.map_or(Time::NEVER, |at| *at + next.pause_ns),
        };
        due.max(self.now)
    }

    /// The next request that is due at `now`.
    pub(crate) fn wake(&mut self, now: Time) -> Option<Io> {
        if self.next_wakeup() > now {
            return None;
        }
        let tag = self.free.pop()?;
        self.now = now;
        let Taped { op, lba, bytes, waited_ns, .. } = self.tape.requests[self.next];
        self.next += 1;
        if self.next == self.tape.requests.len() {
            (self.next, self.begins) = (self.tape.again, self.begins + self.tape.span_ns);
        }
        match self.fresh {
            0 => self.answers.pop_front(),
            _ => None,
        };
        self.fresh = self.fresh.saturating_sub(1);
        Some(Io { op, lba, bytes, waited_ns, tag })
    }

    /// The request of a tag was answered.
    pub(crate) fn answered(&mut self, now: Time, tag: u32) {
        self.free.insert(tag);
        self.now = now;
        if self.tape.threads.is_some() {
            self.answers.push_back(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use counters::Op;

    use super::*;

    /// How many are sent in so many nanoseconds of which each takes `service_ns`.
    fn sent(tape: &Tape, service_ns: u64, until_ns: u64) -> u64 {
        let mut player = Player::new(tape);
        player.start(Time::ZERO);
        let (mut sent, mut under_way) = (0, VecDeque::<(Time, u32)>::new());
        loop {
            let ends = under_way.front().map_or(Time::NEVER, |first| first.0);
            let now = ends.min(player.next_wakeup());
            if now >= Time(until_ns) {
                return sent;
            }
            if ends <= now
                && let Some((_, tag)) = under_way.pop_front()
            {
                player.answered(now, tag);
            }
            while let Some(io) = player.wake(now) {
                sent += 1;
                under_way.push_back((now + service_ns, io.tag));
            }
        }
    }

    /// A guest with two outstanding, answered after 100 ns each, that sends the next one 10 ns after an answer.
    fn two(threads: Option<u32>) -> Tape {
        let of =
            |at_ns| Taped { at_ns, pause_ns: 10, waited_ns: 0, lba: 0, bytes: 4096, op: Op::Read };
        Tape { requests: [0, 55, 110, 165].map(of).into(), again: 0, span_ns: 220, threads }
    }

    #[test]
    fn a_guest_that_waits_is_as_quick_as_its_answers_and_one_that_does_not_keeps_its_times() {
        for service_ns in [40, 100, 1000] {
            let whole_ns = 220_000;
            let expected = 2 * whole_ns / (service_ns + 10);
            let found = sent(&two(Some(2)), service_ns, whole_ns);
            assert!(found.abs_diff(expected) <= 2, "{found} of {expected}");
            assert_eq!(sent(&two(None), service_ns, whole_ns), 4000);
        }
    }

    /// What came before is played once.
    #[test]
    fn it_goes_on_where_it_is_to() {
        for (threads, expected) in [(Some(2), 6), (None, 6)] {
            let tape = Tape { again: 2, span_ns: 110, ..two(threads) };
            assert_eq!(sent(&tape, 100, 330), expected, "{threads:?}");
        }
        let mut player = Player::new(&Tape { again: 2, span_ns: 110, ..two(None) });
        player.start(Time::ZERO);
        let times = core::iter::from_fn(|| {
            let at = player.next_wakeup();
            player.wake(at).map(|_| at.0)
        });
        assert_eq!(times.take(6).collect::<Vec<_>>(), [0, 55, 110, 165, 220, 275]);
    }

    #[test]
    fn no_more_are_outstanding_than_there_are_tags() {
        let tape = Tape { span_ns: 1, ..two(None) };
        let mut player = Player::new(&tape);
        player.start(Time::ZERO);
        let sent: Vec<Io> = core::iter::from_fn(|| player.wake(Time(1_000_000))).collect();
        assert_eq!((sent.len(), player.next_wakeup()), (1 << 16, Time::NEVER));
        player.answered(Time(2_000_000), 7);
        assert_eq!(player.next_wakeup(), Time(2_000_000));
        assert_eq!(player.wake(Time(2_000_000)).unwrap().tag, 7);
    }
}
