//! The event list when very much is pending: a wheel of slots, so that an event is not compared with
//! all others but moved a few times, each time beside those that happen near it.
//!
//! ```text
//!   level 2:  [ 33 ms each ............ ]      an event lies at the highest level at which its time
//!   level 1:      [ 33 us each ........ ]      differs from where the wheel stands; when the wheel
//!   level 0:           [ 32 ns each ... ]      comes to its slot, it moves to a lower one
//!   front:                  12 ns, 9 ns        in order of time and key, the next one last
//! ```
//!
//! Slots are chains of chunks from one pool: what is allocated is what is pending.

use std::cmp::Reverse;

use counters::Time;

use crate::{heap::Pending, key::Key};

/// log2 of the nanoseconds of a slot of the lowest level.
const SLOT_BITS: u32 = 5;
/// log2 of the slots of a level.
const LEVEL_BITS: u32 = 10;
/// Slots of a level.
const SLOTS: usize = 1 << LEVEL_BITS;
/// Levels, so that every time has one.
const LEVELS: usize = (u64::BITS - SLOT_BITS).div_ceil(LEVEL_BITS) as usize;
/// Events of a chunk.
const CHUNK: usize = 7;
/// No chunk.
const NONE: u32 = u32::MAX;
/// Events that are brought to the front together, where as many happen within so many nanoseconds.
const FRONT: usize = 12;
const FRONT_NS: u64 = 1 << 10;

/// Something that will happen, and when.
pub(crate) type Due = (Time, Pending);

/// What the order is by.
#[inline]
const fn rank((at, event): &Due) -> (Time, Key) {
    (*at, event.key)
}

#[derive(Clone, Debug)]
struct Chunk {
    events: [Due; CHUNK],
    len: u32,
    /// The one that was filled before it in its slot, or the next that is free.
    next: u32,
}

/// The slots of a level: the chunk that is being filled of each, and a bit for each that has one.
#[derive(Clone, Debug)]
struct Level {
    chunks: Box<[u32]>,
    used: [u64; SLOTS / 64],
}

impl Level {
    fn new() -> Self {
        Self { chunks: vec![NONE; SLOTS].into(), used: [0; SLOTS / 64] }
    }

    fn first_used(&self) -> Option<usize> {
        let word = self.used.iter().position(|word| *word != 0)?;
        Some(64 * word + self.used[word].trailing_zeros() as usize)
    }

    fn take(&mut self, slot: usize) -> u32 {
        self.used[slot / 64] &= !(1 << (slot % 64));
        std::mem::replace(&mut self.chunks[slot], NONE)
    }
}

/// What is pending, by time and then by key.
#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    levels: Vec<Level>,
    chunks: Vec<Chunk>,
    free: u32,
    len: usize,
    /// Where the wheel stands: what happens earlier is in front, all else in a slot.
    at: Time,
    front: Vec<Due>,
}

impl Wheel {
    /// An empty wheel, for what happens from `at` on.
    pub(crate) fn new(at: Time) -> Self {
        let levels = (0..LEVELS).map(|_| Level::new()).collect();
        Self { levels, chunks: Vec::new(), free: NONE, len: 0, at, front: Vec::new() }
    }

    /// How much is pending.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Adds an event.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, event: Pending) {
        self.len += 1;
        if at < self.at {
            let later = self.front.partition_point(|other| rank(other) > (at, event.key));
            self.front.insert(later, (at, event));
        } else {
            self.put((at, event));
        }
    }

    /// Takes the next event if it happens before `limit`.
    #[inline]
    pub(crate) fn pop_before(&mut self, limit: Time) -> Option<Due> {
        if self.front.is_empty() {
            self.advance(limit);
        }
        let next = self.front.pop_if(|(at, _)| *at < limit)?;
        self.len -= 1;
        Some(next)
    }

    /// Everything, in any order.
    pub(crate) fn drain(mut self) -> Vec<Due> {
        let mut all = std::mem::take(&mut self.front);
        for level in 0..LEVELS {
            while let Some(slot) = self.levels[level].first_used() {
                let chunks = self.levels[level].take(slot);
                self.empty(chunks, |_, event| all.push(event));
            }
        }
        all
    }

    /// Puts an event that does not happen before the wheel's time into its slot.
    #[inline]
    fn put(&mut self, event: Due) {
        let at = event.0.0 >> SLOT_BITS;
        let differs = at ^ (self.at.0 >> SLOT_BITS);
        let level = differs.checked_ilog2().map_or(0, |bit| bit / LEVEL_BITS) as usize;
        let slot = (at >> (LEVEL_BITS * level as u32)) as usize % SLOTS;
        let level = &mut self.levels[level];
        let mut chunk = level.chunks[slot];
        if chunk == NONE || self.chunks[chunk as usize].len as usize == CHUNK {
            level.used[slot / 64] |= 1 << (slot % 64);
            let filled = chunk;
            chunk = self.free;
            if chunk == NONE {
                chunk = self.chunks.len() as u32;
                self.chunks.push(Chunk { events: [event; CHUNK], len: 0, next: NONE });
            }
            self.free = std::mem::replace(&mut self.chunks[chunk as usize].next, filled);
            level.chunks[slot] = chunk;
        }
        let chunk = &mut self.chunks[chunk as usize];
        chunk.events[chunk.len as usize] = event;
        chunk.len += 1;
    }

    /// Hands over the events of a chain of chunks, and frees it.
    fn empty(&mut self, mut chain: u32, mut take: impl FnMut(&mut Self, Due)) {
        while chain != NONE {
            let chunk = &mut self.chunks[chain as usize];
            let (events, len) = (chunk.events, std::mem::take(&mut chunk.len) as usize);
            let next = std::mem::replace(&mut chunk.next, self.free);
            self.free = std::mem::replace(&mut chain, next);
            events[..len].iter().for_each(|event| take(self, *event));
        }
    }

    /// Brings what happens next to the front, if it may happen before `limit`.
    fn advance(&mut self, mut limit: Time) {
        while self.front.len() < FRONT {
            let Some((level, slot, begins)) = self.next_slot().filter(|next| next.2 < limit) else {
                break;
            };
            let chunks = self.levels[level].take(slot);
            if level > 0 {
                self.at = begins;
                self.empty(chunks, Self::put);
                continue;
            }
            self.at = begins + (1 << SLOT_BITS);
            self.empty(chunks, |wheel, event| wheel.front.push(event));
            self.settle();
            limit = limit.min(begins + FRONT_NS);
        }
        self.front.sort_unstable_by_key(|event| Reverse(rank(event)));
    }

    /// The first slot that holds something: its level, its place there, and when it begins.
    fn next_slot(&self) -> Option<(usize, usize, Time)> {
        let mut used = self.levels.iter().map(Level::first_used).enumerate();
        let (level, slot) = used.find_map(|(level, slot)| Some((level, slot?)))?;
        let shift = SLOT_BITS + LEVEL_BITS * level as u32;
        let above = self.at.0.checked_shr(shift + LEVEL_BITS).unwrap_or(0);
        Some((level, slot, Time((above << LEVEL_BITS | slot as u64) << shift)))
    }

    /// Where the wheel has come to a slot of a higher level, what lies there moves to lower ones.
    fn settle(&mut self) {
        for level in (1..LEVELS).rev() {
            let shift = SLOT_BITS + LEVEL_BITS * level as u32;
            let slot = (self.at.0 >> shift) as usize % SLOTS;
            let chunks = self.levels[level].take(slot);
            self.empty(chunks, Self::put);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Class;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Times from equal to hours apart, pops with and without a limit.
        #[test]
        fn events_come_out_by_time_and_key(
            steps in prop::collection::vec((0_u32..64, any::<u64>(), 0_usize..4, any::<bool>()), 1..600),
        ) {
            let (mut wheel, mut expected) = (Wheel::new(Time(77)), BTreeSet::new());
            let mut now = Time(77);
            for (index, (bits, ahead, pops, limited)) in (0..).zip(steps) {
                let event = Pending::of(Key::new(Class::Arrival, 0, 1000 - index));
                let at = now + (ahead & ((1 << bits) - 1));
                wheel.push(at, event);
                expected.insert((at, event.key));
                let limit = if limited { at } else { Time::NEVER };
                for _ in 0..pops {
                    let next = expected.first().copied().filter(|(at, _)| *at < limit);
                    let popped = wheel.pop_before(limit);
                    prop_assert_eq!(popped.map(|event| rank(&event)), next);
                    let Some(next) = next else { break };
                    expected.remove(&next);
                    now = next.0;
                }
                prop_assert_eq!(wheel.len(), expected.len());
            }
            let mut rest: Vec<_> = wheel.clone().drain().iter().map(rank).collect();
            rest.sort_unstable();
            prop_assert_eq!(&rest, &expected.iter().copied().collect::<Vec<_>>());
            for next in rest.into_iter().filter(|(at, _)| *at < Time::NEVER) {
                prop_assert_eq!(wheel.pop_before(Time::NEVER).map(|event| rank(&event)), Some(next));
            }
        }
    }
}
