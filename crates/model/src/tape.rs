//! A load as it was recorded, played again: the requests that a guest sent, one after the other, where nothing draws
//! them. A guest whose requests are answered sooner sends the next ones sooner, or keeps to the times that it had:
//! a recording does not say which, so that both can be asked for.

use alloc::{sync::Arc, vec::Vec};

use counters::{Op, Time};

use crate::{
    config::{Access, Arrival, Mix, Others, SizeMix, WorkloadConfig},
    request::{Io, SECTOR},
    tags::Tags,
};

/// A request that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taped {
    /// When it was sent, in nanoseconds from the begin of the recording.
    pub at_ns: u64,
    /// Nanoseconds from what last happened on its virtual disk, a request that was sent or one that was answered,
    /// to when it was sent.
    pub gap_ns: u64,
    /// Nanoseconds for which it had waited in the guest.
    pub waited_ns: u64,
    /// Its first sector of 512 bytes on the virtual disk.
    pub lba: u64,
    /// Its size in bytes.
    pub bytes: u32,
    /// The others that were outstanding on the virtual disk when it was sent.
    pub beside: u32,
    /// What it does.
    pub op: Op,
}

/// What was recorded of a virtual disk, from the first request to the last, and then again from the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tape {
    /// The requests in their order; at least one.
    pub requests: Arc<[Taped]>,
    /// How long the recording is in nanoseconds, above 0.
    pub span_ns: u64,
    /// Whether the guest waits for its answers: each request is sent when no more are outstanding than were then,
    /// and its gap later. Otherwise each is sent when it was.
    pub waits: bool,
}

impl WorkloadConfig {
    /// The load that was recorded.
    #[must_use]
    pub fn taped(tape: Tape) -> Self {
        let end = |taped: &Taped| {
            taped.lba.saturating_mul(SECTOR.into()).saturating_add(taped.bytes.into())
        };
        let others = Others { shares: Vec::new(), flush_after: None };
        Self {
            arrival: Arrival::Closed { threads: 1, think_ns: 0, rate: None },
            mix: Mix::ReadWrite { read_share: 1.0, sizes: SizeMix(Vec::new()), others },
            access: Access::Random,
            working_set: tape.requests.iter().map(end).max().unwrap_or_default(),
            burst: None,
            ios_max: None,
            tape: Some(tape),
        }
    }
}

/// A tape that is played.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    tape: Tape,
    /// The place of the next request.
    next: usize,
    /// When the recording begins this time.
    begins: Time,
    /// Since when no more are outstanding than the next request has beside it, nor another one was sent.
    since: Time,
    outstanding: u32,
    free: Tags,
}

impl Player {
    pub(crate) fn new(tape: &Tape) -> Self {
        Self {
            tape: tape.clone(),
            next: 0,
            begins: Time::NEVER,
            since: Time::NEVER,
            outstanding: 0,
            free: Tags::full(u32::MAX),
        }
    }

    pub(crate) const fn start(&mut self, now: Time) {
        (self.next, self.begins, self.since) = (0, now, now);
    }

    /// When the next request is sent; [`Time::NEVER`] while it waits for an answer.
    pub(crate) fn next_wakeup(&self) -> Time {
        let next = self.tape.requests[self.next];
        match self.tape.waits {
            _ if self.free.is_empty() => Time::NEVER,
            true if self.outstanding > next.beside => Time::NEVER,
            true => self.since + next.gap_ns,
            false => self.begins + next.at_ns,
        }
    }

    /// The next request that is due at `now`.
    pub(crate) fn wake(&mut self, now: Time) -> Option<Io> {
        if self.next_wakeup() > now {
            return None;
        }
        let tag = self.free.pop()?;
        let Taped { op, lba, bytes, waited_ns, .. } = self.tape.requests[self.next];
        self.next += 1;
        if self.next == self.tape.requests.len() {
            (self.next, self.begins) = (0, self.begins + self.tape.span_ns);
        }
        self.since = now;
        self.outstanding += 1;
        Some(Io { op, lba, bytes, waited_ns, tag })
    }

    /// The request of a tag was answered.
    pub(crate) fn answered(&mut self, now: Time, tag: u32) {
        self.free.insert(tag);
        if self.outstanding > self.tape.requests[self.next].beside {
            self.since = now;
        }
        self.outstanding -= 1;
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

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
    fn two(waits: bool) -> Tape {
        let of = |at_ns| Taped {
            at_ns,
            gap_ns: 10,
            waited_ns: 0,
            lba: 0,
            bytes: 4096,
            beside: 1,
            op: Op::Read,
        };
        Tape { requests: [0, 55, 110, 165].map(of).into(), span_ns: 220, waits }
    }

    #[test]
    fn a_guest_that_waits_is_as_quick_as_its_answers_and_one_that_does_not_keeps_its_times() {
        for service_ns in [40, 100, 1000] {
            let whole_ns = 220_000;
            let expected = 2 * whole_ns / (service_ns + 10);
            let found = sent(&two(true), service_ns, whole_ns);
            assert!(found.abs_diff(expected) <= 2, "{found} of {expected}");
            assert_eq!(sent(&two(false), service_ns, whole_ns), 4000);
        }
    }

    #[test]
    fn no_more_are_outstanding_than_there_are_tags() {
        let tape = Tape { span_ns: 1, ..two(false) };
        let mut player = Player::new(&tape);
        player.start(Time::ZERO);
        let sent: Vec<Io> = core::iter::from_fn(|| player.wake(Time(1_000_000))).collect();
        assert_eq!((sent.len(), player.next_wakeup()), (1 << 16, Time::NEVER));
        player.answered(Time(1_000_000), 7);
        assert_eq!(player.wake(Time(1_000_000)).unwrap().tag, 7);
    }
}
