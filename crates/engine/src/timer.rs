//! The moments at which something happens in the engine by itself, the earliest first.

use alloc::{collections::BinaryHeap, vec::Vec};
use core::cmp::Reverse;

use counters::{DeviceId, IoId, Time};

use crate::codec::{Bytes, Damage, Field, Put, choices};

/// What a wake-up is for; earlier variants and lower ids first at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A device has something that may go now.
    Device(DeviceId),
    /// A held I/O, and its device, is to be sent again.
    Again(IoId, DeviceId),
    /// Commands of a device may be overdue.
    Watch(DeviceId),
    /// A device may have been without a path for too long.
    Apd(DeviceId),
    /// A device may have been held to one command at a time for long enough.
    Probe(DeviceId),
}

impl Timer {
    /// The device that it is for.
    #[inline]
    pub(crate) const fn device(self) -> DeviceId {
        match self {
            Self::Device(id)
            | Self::Again(_, id)
            | Self::Watch(id)
            | Self::Apd(id)
            | Self::Probe(id) => id,
        }
    }
}

/// All that are set. None is taken back: what it was for looks whether it still is.
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    set: BinaryHeap<Reverse<(Time, Timer)>>,
    /// When the first is due; never when there is none.
    next: Time,
}

impl Default for Timers {
    fn default() -> Self {
        Self { set: BinaryHeap::new(), next: Time::NEVER }
    }
}

impl Timers {
    pub(crate) fn set(&mut self, at: Time, timer: Timer) {
        self.set.push(Reverse((at, timer)));
        self.next = self.next.min(at);
    }

    /// Whether one is due.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.next <= now
    }

    /// Whether one is due before then.
    #[inline]
    pub(crate) fn is_due_before(&self, then: Time) -> bool {
        self.next < then
    }

    /// The first, if there is one.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Time, Timer)> {
        self.set.peek().map(|Reverse(first)| *first)
    }

    /// Every one, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Timer> + '_ {
        self.set.iter().map(|Reverse((_, timer))| *timer)
    }

    /// Takes the first when it is due.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<(Time, Timer)> {
        let first = self.first().filter(|(at, _)| *at <= now)?;
        self.set.pop();
        self.next = self.set.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
        Some(first)
    }
}

choices! {
    Timer {
        0 Device(id),
        1 Again(io, id),
        2 Watch(id),
        3 Apd(id),
        4 Probe(id),
    }
}

/// In the order of the heap, which is the same again when it is built from it.
impl Field for Timers {
    fn put(&self, to: &mut impl Put) {
        to.put_number(self.set.len() as u64);
        self.set.iter().for_each(|Reverse(timer)| timer.put(to));
    }

    fn take(from: &mut Bytes<'_>) -> Result<Self, Damage> {
        let set: Vec<(Time, Timer)> = Field::take(from)?;
        let set: BinaryHeap<_> = set.into_iter().map(Reverse).collect();
        let next = set.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
        Ok(Self { set, next })
    }
}
