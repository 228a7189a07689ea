//! The event list: what will happen, by time and then by key. A heap is the fastest while it lies in the
//! nearest cache; beyond that a wheel is. The order is the same.

use counters::Time;

use crate::{
    heap::{Heap, Pending},
    wheel::Wheel,
};

/// More than this is too much for the heap, and less than a quarter of it too little for the wheel.
const WIDE: usize = 16_384;

/// What is pending.
#[derive(Clone, Debug)]
pub(crate) enum EventList {
    Narrow(Heap),
    Wide(Wheel),
}

impl Default for EventList {
    fn default() -> Self {
        Self::Narrow(Heap::default())
    }
}

impl EventList {
    /// Adds an event.
    #[inline(always)]
    pub(crate) fn push(&mut self, at: Time, event: Pending) {
        match self {
            Self::Narrow(heap) => {
                heap.push(at, event);
                if heap.len() > WIDE {
                    self.widen();
                }
            }
            Self::Wide(wheel) => wheel.push(at, event),
        }
    }

    /// Takes the next event if it happens before `limit`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, limit: Time) -> Option<(Time, Pending)> {
        match self {
            Self::Narrow(heap) => heap.pop_before(limit),
            Self::Wide(wheel) => {
                let next = wheel.pop_before(limit);
                if wheel.len() < WIDE / 4 {
                    self.narrow();
                }
                next
            }
        }
    }

    #[cold]
    fn widen(&mut self) {
        let all = self.take();
        let first = all.iter().map(|(at, _)| *at).min().unwrap_or_default();
        let mut wheel = Wheel::new(first);
        all.into_iter().for_each(|(at, event)| wheel.push(at, event));
        *self = Self::Wide(wheel);
    }

    #[cold]
    fn narrow(&mut self) {
        let mut heap = Heap::default();
        self.take().into_iter().for_each(|(at, event)| heap.push(at, event));
        *self = Self::Narrow(heap);
    }

    fn take(&mut self) -> Vec<(Time, Pending)> {
        match std::mem::take(self) {
            Self::Narrow(heap) => heap.drain(),
            Self::Wide(wheel) => wheel.drain(),
        }
    }
}
