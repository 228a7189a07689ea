//! The event list while little is pending: a 4-ary heap of words, each the time of an event and the place where it lies.
//!
//! ```text
//!   word:  40 bits of nanoseconds since the epoch | 24 bits of place
//! ```
//!
//! What is further ahead than 40 bits can say, 18 minutes, waits apart until the heap is empty
//! and a new epoch begins. What happens at the same nanosecond happens in the order of its keys:
//! the order is part of the model, not of the list, so no other list, thread count or split of
//! the scenario changes a single bit of a result.

use std::cmp::Reverse;

use counters::Time;

use crate::key::Key;

/// Children of a node.
const ARITY: usize = 4;
/// No position in any heap.
const NOBODY: usize = usize::MAX;
/// Bits of a word that say where the event lies: 16 million may be pending.
const PLACE_BITS: u32 = 24;
/// Nanoseconds that a heap can reach ahead of its epoch.
const REACH: u64 = 1 << (64 - PLACE_BITS);

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) key: Key,
    /// Of the answer to a command: which use of its place it is, the array that answers, and the
    /// latency that it reports.
    pub(crate) generation: u32,
    pub(crate) array: u32,
    pub(crate) array_ns: u64,
}

impl Pending {
    /// Anything but the answer to a command.
    pub(crate) const fn of(key: Key) -> Self {
        Self { key, generation: 0, array: 0, array_ns: 0 }
    }
}

/// What is left of a top that was taken.
#[derive(Clone, Copy, Debug)]
struct Hole {
    /// The place of its event, which the next one may have.
    place: u32,
    /// The least word below it.
    least: usize,
}

/// What is pending, by time and then by key.
///
/// Removing the top is put off: what handles an event mostly adds one, and the new event then
/// takes the place of the old one in a single pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heap {
    words: Vec<u64>,
    /// The top when it has been taken and not yet been replaced.
    hole: Option<Hole>,
    /// The events by place, and the places that are free.
    events: Vec<Pending>,
    free: Vec<u32>,
    epoch: Time,
    /// Beyond the reach of the epoch.
    far: Vec<(Time, Pending)>,
    /// What is left of several events at the instant `tied_at`, last first.
    tied: Vec<Pending>,
    tied_at: Time,
}

impl Heap {
    /// How much is pending within reach.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.words.len()
    }

    /// Everything, in any order.
    pub(crate) fn drain(mut self) -> Vec<(Time, Pending)> {
        self.close_hole();
        let place = |word: u64| (word & ((1 << PLACE_BITS) - 1)) as usize;
        let within = self.words.iter().map(|word| (self.time_of(*word), self.events[place(*word)]));
        let tied = self.tied.iter().map(|event| (self.tied_at, *event));
        within.chain(tied).chain(self.far.iter().copied()).collect()
    }

    /// Adds an event.
    #[inline(always)]
    pub(crate) fn push(&mut self, at: Time, event: Pending) {
        let ahead = at - self.epoch;
        match self.hole {
            Some(Hole { place, least }) if ahead < REACH => {
                self.hole = None;
                self.events[place as usize] = event;
                self.sift_down(word(ahead, place), least);
            }
            _ => self.add(at, event),
        }
    }

    /// Takes the next event if it happens before `limit`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, limit: Time) -> Option<(Time, Pending)> {
        if !self.tied.is_empty() {
            return self.tied.pop().map(|event| (self.tied_at, event));
        }
        self.close_hole();
        if self.words.is_empty() {
            self.begin_epoch(limit);
        }
        let &top = self.words.first()?;
        let at = self.time_of(top);
        if at >= limit {
            return None;
        }
        let Hole { place, least } = self.take_top(top);
        if self.words.get(least).is_some_and(|word| self.time_of(*word) == at) {
            self.gather_ties(at, place);
            return self.tied.pop().map(|event| (at, event));
        }
        Some((at, self.events[place as usize]))
    }

    /// Gathers what happens at the same instant as the event of a top just taken.
    #[cold]
    fn gather_ties(&mut self, at: Time, mut place: u32) {
        self.tied_at = at;
        loop {
            self.tied.push(self.events[place as usize]);
            self.close_hole();
            let top = self.words.first().copied();
            let Some(top) = top.filter(|&top| self.time_of(top) == at) else { break };
            place = self.take_top(top).place;
        }
        self.tied.sort_unstable_by_key(|event| Reverse(event.key));
    }

    /// Goes on with what was out of reach, if it happens before `limit`.
    #[cold]
    fn begin_epoch(&mut self, limit: Time) {
        let first = self.far.iter().map(|&(at, _)| at).min();
        let Some(first) = first.filter(|at| *at < limit) else { return };
        self.epoch = first;
        for (at, event) in std::mem::take(&mut self.far) {
            self.add(at, event);
        }
    }

    /// Adds an event where it belongs: to those at the present instant, as the last word of the
    /// heap, or to what is out of reach.
    fn add(&mut self, at: Time, event: Pending) {
        if !self.tied.is_empty() && at == self.tied_at {
            let later = self.tied.partition_point(|other| other.key > event.key);
            self.tied.insert(later, event);
            return;
        }
        let ahead = at - self.epoch;
        if ahead >= REACH {
            self.far.push((at, event));
            return;
        }
        self.close_hole();
        let place = self.free.pop().unwrap_or(self.events.len() as u32);
        if place as usize == self.events.len() {
            assert!(place < 1 << PLACE_BITS, "more events pending than can be numbered");
            self.events.push(event);
        }
        self.events[place as usize] = event;
        self.words.push(0);
        self.sift_up(self.words.len() - 1, word(ahead, place));
    }

    /// Takes the top out and leaves a hole.
    #[inline]
    fn take_top(&mut self, top: u64) -> Hole {
        let place = top as u32 & ((1 << PLACE_BITS) - 1);
        let hole = Hole { place, least: least_child(&self.words, 0) };
        self.hole = Some(hole);
        hole
    }

    #[inline]
    fn time_of(&self, word: u64) -> Time {
        self.epoch + (word >> PLACE_BITS)
    }

    /// Fills the hole with the last word.
    #[inline]
    fn close_hole(&mut self) {
        if let Some(Hole { place, .. }) = self.hole.take() {
            self.refill(place);
        }
    }

    #[cold]
    fn refill(&mut self, place: u32) {
        self.free.push(place);
        if let Some(last) = self.words.pop().filter(|_| !self.words.is_empty()) {
            self.sift_down(last, least_child(&self.words, 0));
        }
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, word: u64) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.words[parent] <= word {
                break;
            }
            self.words[at] = self.words[parent];
            at = parent;
        }
        self.words[at] = word;
    }

    /// Puts `word` where the top was; `least` is the least below it.
    #[inline(always)]
    fn sift_down(&mut self, word: u64, mut least: usize) {
        let words = self.words.as_mut_slice();
        let mut at = 0;
        while let Some(&above) = words.get(least).filter(|least| **least < word) {
            words[at] = above;
            at = least;
            least = least_child(words, at);
        }
        words[at] = word;
    }
}

#[inline]
const fn word(ahead: u64, place: u32) -> u64 {
    ahead << PLACE_BITS | place as u64
}

/// The position of the least child of a node, or [`NOBODY`].
#[inline]
fn least_child(words: &[u64], node: usize) -> usize {
    // That a node fits 32 bits, as its place does, tells the compiler that nothing overflows.
    let first = node as u32 as usize * ARITY + 1;
    match words.get(first..first + ARITY) {
        Some(children) => first + least_of_four(children),
        None => (first..words.len()).min_by_key(|&at| words[at]).unwrap_or(NOBODY),
    }
}

/// The position of the least of four words. The comparisons add up to an index, because branches
/// on them would be mispredicted half of the time.
#[inline]
fn least_of_four(words: &[u64]) -> usize {
    let low = usize::from(words[1] < words[0]);
    let high = 2 + usize::from(words[3] < words[2]);
    low + (high - low) * usize::from(words[high] < words[low])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Class;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn pending(index: u64) -> Pending {
        Pending { array_ns: index, ..Pending::of(Key::new(Class::Arrival, 0, index)) }
    }

    proptest! {
        /// Times are few, so that many are equal, and some lie in later epochs.
        #[test]
        fn events_come_out_by_time_and_key(steps in prop::collection::vec((0_u64..6, 0_u64..3), 1..300)) {
            let (mut list, mut expected) = (Heap::default(), BTreeSet::new());
            let mut now = Time::ZERO;
            for (index, (far, pops)) in (0..).zip(steps) {
                // Keys fall, so that order of arrival and order of keys differ.
                let event = pending(1000 - index);
                let at = now + if far == 5 { REACH + 7 } else { far };
                list.push(at, event);
                expected.insert((at, event.key));
                for _ in 0..pops {
                    let popped = list.pop_before(Time::NEVER);
                    prop_assert_eq!(popped.map(|(at, event)| (at, event.key)), expected.pop_first());
                    now = popped.map_or(now, |(at, _)| at);
                }
            }
            while let Some((at, event)) = list.pop_before(Time::NEVER) {
                prop_assert_eq!(Some((at, event.key)), expected.pop_first());
            }
            prop_assert!(expected.is_empty());
        }
    }

    #[test]
    fn an_event_at_the_limit_stays() {
        let mut list = Heap::default();
        for at in [Time(7), Time(REACH + 7)] {
            list.push(at, pending(1));
            assert_eq!(list.pop_before(at), None);
            assert_eq!(list.pop_before(at + 1), Some((at, pending(1))));
            assert_eq!(list.pop_before(Time::NEVER), None);
        }
    }
}
