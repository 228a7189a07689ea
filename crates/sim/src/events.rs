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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Class, Key};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Takes the next event, which must be the one expected; when it happens.
    fn pop(
        list: &mut EventList,
        expected: &mut BTreeSet<(Time, Key)>,
    ) -> Result<Time, TestCaseError> {
        let popped = list.pop_before(Time::NEVER).map(|(at, event)| (at, event.key));
        prop_assert_eq!(popped, expected.pop_first());
        Ok(popped.map_or(Time::ZERO, |(at, _)| at))
    }

    proptest! {
           #![proptest_config(ProptestConfig::with_cases(16))]

           /// It is filled until the heap is left for the wheel and emptied until that is left for the heap,
           /// with many at one instant.
           #[test]
           fn the_order_is_the_same_whatever_the_width(
               spans in prop::collection::vec(1_u64..50_000, 1..4),
               factor in any::<u64>(),
           ) {
               let (mut list, mut expected) = (EventList::default(), BTreeSet::new());
               let (mut now, mut index) = (Time(5), 0);
               for span in spans {
                   for _ in 0..2 * WIDE {
                       index += 1;
                       let mixed = factor.wrapping_add(index).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
                       let (at, rank) = (now + mixed % span, (mixed % 97) << 20 | index);
    let key = Key::new(Class::Arrival, 0, rank);
                       list.push(at, Pending::of(key));
                       expected.insert((at, key));
                       if index % 3 == 0 {
                           now = pop(&mut list, &mut expected)?;
                       }
                   }
                   prop_assert!(matches!(list, EventList::Wide(_)));
                   while expected.len() > 1_000 {
                       now = pop(&mut list, &mut expected)?;
                   }
                   prop_assert!(matches!(list, EventList::Narrow(_)));
               }
           }
       }
}
