//! The event list: what will happen, by time and then by key.
//!
//! ```text
//!   front              year: a slot for each of so many short spans          far
//!   12 ns, 9 ns   |  [ 40 ] [    ] [ 97, 80 ] [    ] ... [ 611 ] [    ]  |  a heap
//!                now                                                  a year ahead
//! ```
//!
//! A calendar: an event lies in the slot of its time, and a bit says which slots hold one. A slot is about as
//! long as the time from one event to the next, so most hold one event or none. What does not fit that
//! picture is still in order: several events of a slot are sorted when it is their turn, and what is more
//! than a year ahead waits in a heap. What happens at the same nanosecond happens in the order of the keys:
//! the order is part of the model, not of the list, so no other list, thread count or split of the scenario
//! changes a single bit of a result.

use std::{cmp::Reverse, collections::BinaryHeap};

use counters::Time;

use crate::key::{Class, Key};

/// No entry.
const NONE: u32 = u32::MAX;
/// Slots of a word of `used`, and of a year at least.
const WORD: usize = u64::BITS as usize;
/// Slots of a year for each event that is pending, at least.
const ROOM: usize = 4;

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

/// Something that will happen, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    at: Time,
    event: Pending,
}

impl Due {
    /// What the order is by.
    #[inline]
    const fn rank(&self) -> (Time, Key) {
        (self.at, self.event.key)
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// An event in its slot.
#[derive(Clone, Copy, Debug)]
struct Entry {
    due: Due,
    /// Another one of its slot, or of those that are free.
    next: u32,
}

/// What is pending.
#[derive(Clone, Debug)]
pub(crate) struct EventList {
    /// The first event of each slot; the others of it follow in any order.
    slots: Box<[u32]>,
    /// A bit for each slot that holds an event.
    used: Box<[u64]>,
    /// log2 of the nanoseconds of a slot.
    slot_bits: u32,
    /// The slot, counted from the beginning of time, with which the year begins.
    now: u64,
    entries: Vec<Entry>,
    free: u32,
    /// What happens before the year, the next one last.
    front: Vec<Due>,
    /// What was more than a year ahead when it came, and the slot of the first of it.
    far: BinaryHeap<Reverse<Due>>,
    far_slot: u64,
    /// Events taken out of slots since the last look at their length, and when that was.
    taken: u64,
    looked: Time,
}

impl Default for EventList {
    fn default() -> Self {
        Self {
            slots: vec![NONE; WORD].into(),
            used: vec![0; 1].into(),
            slot_bits: 10,
            now: 0,
            entries: Vec::new(),
            free: NONE,
            front: Vec::new(),
            far: BinaryHeap::new(),
            far_slot: u64::MAX,
            taken: 0,
            looked: Time::ZERO,
        }
    }
}

impl EventList {
    /// Adds an event.
    #[inline(always)]
    pub(crate) fn push(&mut self, at: Time, event: Pending) {
        if self.free == NONE {
            self.grow();
        }
        let new = self.free;
        // It is written where it stays, wherever that is linked: to make it elsewhere and copy it would stall.
        let entry = &mut self.entries[new as usize];
        self.free = entry.next;
        entry.due = Due { at, event };
        let slots = &mut *self.slots;
        let slot = at.0 >> self.slot_bits;
        if slot.wrapping_sub(self.now) >= slots.len() as u64 {
            return self.put_aside(new, slot);
        }
        let place = slot as usize & (slots.len() - 1);
        let first = std::mem::replace(&mut slots[place], new);
        entry.next = first;
        if first == NONE {
            self.used[place / WORD] |= 1 << (place % WORD);
        } else {
            self.keep_first(place, first, new);
        }
    }

    /// Takes the next event if it happens before `limit`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, limit: Time) -> Option<(Time, Pending)> {
        if !self.front.is_empty() {
            let next = self.front.pop_if(|due| due.at < limit)?;
            return Some((next.at, next.event));
        }
        let mut slot = self.next_used();
        if slot >= self.far_slot {
            slot = self.come_near(slot, limit)?;
        }
        let slots = &mut *self.slots;
        let place = slot as usize & (slots.len() - 1);
        let taken = slots[place];
        let entry = &mut self.entries[taken as usize];
        let Entry { due, next } = *entry;
        if due.at >= limit {
            return None;
        }
        slots[place] = next;
        entry.next = std::mem::replace(&mut self.free, taken);
        self.now = slot;
        self.taken += 1;
        if next == NONE {
            self.used[place / WORD] &= !(1 << (place % WORD));
        } else if self.entries[next as usize].next != NONE {
            self.sort_slot(slot);
        }
        Some((due.at, due.event))
    }

    /// The first event of a slot stays first where another one came before it, if it happens first.
    #[inline]
    fn keep_first(&mut self, place: usize, first: u32, new: u32) {
        if self.entries[first as usize].due < self.entries[new as usize].due {
            self.slots[place] = first;
            self.entries[new as usize].next = self.entries[first as usize].next;
            self.entries[first as usize].next = new;
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.free = self.entries.len() as u32;
        assert!(self.free != NONE, "more events pending than can be numbered");
        // By an eighth: for many hosts the room that doubling leaves adds up.
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len() / 8 + WORD);
        }
        let due = Due { at: Time::NEVER, event: Pending::of(Key::new(Class::Event, 0, 0)) };
        self.entries.push(Entry { due, next: NONE });
    }

    /// Moves a new event that is not of this year to those before it, or after it.
    #[cold]
    fn put_aside(&mut self, new: u32, slot: u64) {
        let due = self.free(new);
        if slot < self.now {
            let later = self.front.partition_point(|other| *other > due);
            self.front.insert(later, due);
        } else {
            self.far_slot = self.far_slot.min(slot);
            self.far.push(Reverse(due));
        }
    }

    /// What lay in an entry, which is free now.
    #[inline]
    fn free(&mut self, entry: u32) -> Due {
        let Entry { due, next } = &mut self.entries[entry as usize];
        *next = std::mem::replace(&mut self.free, entry);
        *due
    }

    /// The place in the year of a slot.
    #[inline]
    const fn place_of(&self, slot: u64) -> usize {
        slot as usize & (self.slots.len() - 1)
    }

    /// The next slot that holds an event; none is [`u64::MAX`].
    #[inline(always)]
    fn next_used(&mut self) -> u64 {
        let place = self.place_of(self.now);
        let rest = self.used[place / WORD] >> (place % WORD);
        if rest == 0 { self.next_word() } else { self.now + u64::from(rest.trailing_zeros()) }
    }

    /// The same where it is not in the word of the present one.
    fn next_word(&mut self) -> u64 {
        self.look();
        let words = self.used.len() as u64;
        let first = self.now / WORD as u64;
        let mut all =
            (first..=first + words).map(|word| (word, self.used[(word % words) as usize]));
        let begins = self.now % WORD as u64;
        let later = all.next().map(|(word, bits)| (word, bits >> begins << begins));
        let found = later.into_iter().chain(all).find(|(_, bits)| *bits != 0);
        found.map_or(u64::MAX, |(word, bits)| word * WORD as u64 + u64::from(bits.trailing_zeros()))
    }

    /// Goes on with what was more than a year ahead, where that is next and happens before `limit`: the next
    /// slot that holds an event. `slot` is that of this year.
    #[cold]
    fn come_near(&mut self, mut slot: u64, limit: Time) -> Option<u64> {
        while slot >= self.far_slot {
            if slot == u64::MAX {
                self.far.peek().filter(|Reverse(first)| first.at < limit)?;
                self.now = self.far_slot;
            }
            while self.far_slot - self.now < self.slots.len() as u64
                && let Some(Reverse(due)) = self.far.pop()
            {
                self.push(due.at, due.event);
                let next = self.far.peek();
                self.far_slot = next.map_or(u64::MAX, |next| next.0.at.0 >> self.slot_bits);
            }
            slot = self.next_used();
        }
        Some(slot)
    }

    /// Brings what is left of a slot to the front: more than one, of which the next is not known.
    #[cold]
    fn sort_slot(&mut self, slot: u64) {
        self.empty(slot);
        self.front.sort_unstable_by(|one, other| other.cmp(one));
        self.now = slot + 1;
        self.look();
    }

    /// Moves what lies in a slot to the front, in any order.
    fn empty(&mut self, slot: u64) {
        let place = self.place_of(slot);
        self.used[place / WORD] &= !(1 << (place % WORD));
        let mut next = std::mem::replace(&mut self.slots[place], NONE);
        while next != NONE {
            let freed = next;
            next = self.entries[freed as usize].next;
            let due = self.free(freed);
            self.front.push(due);
            self.taken += 1;
        }
    }

    /// Once in as many events as a year has slots, looks whether there are enough of them, and of the right
    /// length; where there are not, makes others.
    fn look(&mut self) {
        if self.taken < self.slots.len() as u64 {
            return;
        }
        let here = Time(self.now << self.slot_bits);
        let gap_ns = (here - self.looked) / self.taken;
        (self.taken, self.looked) = (0, here);
        let slot_ns = 1 << self.slot_bits;
        let is_right = gap_ns == 0 || (gap_ns / 4..=gap_ns + gap_ns / 2).contains(&slot_ns);
        let slots = (ROOM * (self.entries.len() + self.far.len())).next_power_of_two().max(WORD);
        let is_enough = (slots..=8 * slots).contains(&self.slots.len());
        if !is_right || !is_enough {
            self.resize(if is_right { self.slot_bits } else { gap_ns.ilog2() }, slots);
        }
    }

    /// Changes the length and the number of the slots.
    fn resize(&mut self, slot_bits: u32, slots: usize) {
        let mut all: Vec<_> = std::mem::take(&mut self.far).into_iter().map(|due| due.0).collect();
        let front = std::mem::take(&mut self.front);
        let begins = self.now << self.slot_bits;
        (0..self.slots.len() as u64).for_each(|slot| self.empty(slot));
        all.append(&mut self.front);
        // What is in front already stays before the year.
        let whole = if front.is_empty() { 0 } else { (1 << slot_bits) - 1 };
        *self = Self {
            slots: vec![NONE; slots].into(),
            used: vec![0; slots / WORD].into(),
            slot_bits,
            now: begins.saturating_add(whole) >> slot_bits,
            front,
            looked: self.looked,
            ..Self::default()
        };
        all.into_iter().for_each(|Due { at, event }| self.push(at, event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Takes the next event before `limit`, which must be the one expected; when it happens.
    fn pop(
        list: &mut EventList,
        expected: &mut BTreeSet<(Time, Key)>,
        limit: Time,
    ) -> Result<Option<Time>, TestCaseError> {
        let next = expected.first().copied().filter(|(at, _)| *at < limit);
        let popped = list.pop_before(limit).map(|(at, event)| (at, event.key));
        prop_assert_eq!(popped, next);
        next.inspect(|next| _ = expected.remove(next));
        Ok(next.map(|(at, _)| at))
    }

    fn key(index: u64) -> Key {
        Key::new(Class::Arrival, 0, index)
    }

    proptest! {
        /// Times from equal to hours apart, pops with and without a limit. Keys fall, so that order of
        /// arrival and order of keys differ.
        #[test]
        fn events_come_out_by_time_and_key(
            steps in prop::collection::vec((0_u32..53, any::<u64>(), 0_usize..4, any::<bool>()), 1..600),
        ) {
            let (mut list, mut expected) = (EventList::default(), BTreeSet::new());
            let mut now = Time(77);
            for (index, (bits, ahead, pops, limited)) in (0..).zip(steps) {
                let at = now + (ahead & ((1 << bits) - 1));
                list.push(at, Pending::of(key(1000 - index)));
                expected.insert((at, key(1000 - index)));
                let limit = if limited { at } else { Time::NEVER };
                for _ in 0..pops {
                    now = pop(&mut list, &mut expected, limit)?.unwrap_or(now);
                }
            }
            while pop(&mut list, &mut expected, Time::NEVER)?.is_some() {}
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Many and few, close together and far apart, with many at one instant: slots are made anew.
        #[test]
        fn the_order_is_the_same_whatever_the_slots(
            spans in prop::collection::vec((0_u32..30, 1_u64..20_000), 1..5),
            factor in any::<u64>(),
        ) {
            let (mut list, mut expected) = (EventList::default(), BTreeSet::new());
            let (mut now, mut index) = (Time(5), 0);
            for (bits, count) in spans {
                for _ in 0..count {
                    index += 1;
                    let mixed = factor.wrapping_add(index).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
                    let (at, rank) = (now + mixed % (1 << bits), (mixed % 97) << 20 | index);
                    list.push(at, Pending::of(key(rank)));
                    expected.insert((at, key(rank)));
                    if index % 3 == 0 {
                        now = pop(&mut list, &mut expected, Time::NEVER)?.unwrap_or(now);
                    }
                }
                while expected.len() > 100 {
                    now = pop(&mut list, &mut expected, Time::NEVER)?.unwrap_or(now);
                }
            }
        }
    }
}
