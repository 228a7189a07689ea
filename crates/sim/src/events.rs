//! The event list: what will happen, by time and then by key.
//!
//! ```text
//!   front              year: a slot for each of so many short spans          far
//!   12 ns, 9 ns   |  [ 40 ] [    ] [ 97, 80 ] [    ] ... [ 611 ] [    ]  |  a heap
//!                now                                                  a year ahead
//! ```
//!
//! A calendar: an event lies in the slot of its time, and a bit says which slots hold one. A slot is about as
//! long as the time from one event to the next, so most hold one or two, the first of them first. What does not
//! fit that picture is still in order: what is left of three and more is sorted when it is their turn, and what
//! is more than a year ahead waits in a heap. What happens at the same nanosecond happens in the order of the keys:
//! the order is part of the model, not of the list, so no other list, thread count or split of the scenario
//! changes a single bit of a result.

use std::{cmp::Reverse, collections::BinaryHeap};

use counters::{IoId, Time};
use model::Answer;
use scenario::ARRAYS_MAX;

use crate::key::{Class, Key};

/// No entry.
const NONE: u32 = u32::MAX;
/// Slots of a page.
const WORD: usize = u64::BITS as usize;
/// Slots of a year: at least so many, and so many for each event that is pending.
const YEAR: usize = 1024;
const ROOM: usize = 2;
/// log2 of the nanoseconds of a slot to begin with: 1 us.
const SLOT_BITS: u32 = 10;
/// Pending events from which on it pays to look ahead, how many slots ahead, and how many of the events that were
/// seen so are remembered.
const WIDE: usize = 1 << 14;
const AHEAD: u64 = 24;
const SEEN: usize = 4;

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

    /// The answer of an array to a command of a host; `done` is [`Key::done`] of that.
    #[inline(always)]
    pub(crate) const fn answer(done: Key, io: IoId, array: u32, answer: Answer) -> Self {
        let key = done.of(io.slot(), answer.status);
        Self { key, generation: io.generation(), array, array_ns: answer.array_ns }
    }

    /// The answer in parts: what it is about and which use of its place that is, and what it tells.
    #[inline(always)]
    pub(crate) const fn of_parts((key, generation): (Key, u32), told: (u32, u64)) -> Self {
        Self { key, generation, array: told.0, array_ns: told.1 }
    }

    /// The first of its parts.
    #[inline(always)]
    pub(crate) const fn of_what(&self) -> (Key, u32) {
        (self.key, self.generation)
    }

    /// The second.
    #[inline(always)]
    pub(crate) const fn told(&self) -> (u32, u64) {
        (self.array, self.array_ns)
    }

    /// The command that is answered.
    #[inline]
    pub(crate) const fn io(&self) -> IoId {
        IoId::new(self.key.slot(), self.generation)
    }
}

/// An event in its slot: 32 bytes, so that none lies across two cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(32))]
pub(crate) struct Entry {
    at: Time,
    key: Key,
    /// The array that answers, above the latency that it reports.
    answer: u64,
    generation: u32,
    /// Another one of its slot, or of those that are free.
    next: u32,
}

impl Entry {
    /// Bits of a latency: what takes longer, 4 hours and 53 minutes, is reported as that.
    const LATENCY_BITS: u32 = 44;
    const LATENCY_MAX: u64 = (1 << Self::LATENCY_BITS) - 1;

    #[inline]
    fn new(at: Time, event: Pending) -> Self {
        let Pending { key, generation, array, array_ns } = event;
        let answer = u64::from(array) << Self::LATENCY_BITS | array_ns.min(Self::LATENCY_MAX);
        Self { at, key, answer, generation, next: NONE }
    }

    #[inline]
    const fn event(&self) -> Pending {
        Pending {
            key: self.key,
            generation: self.generation,
            array: (self.answer >> Self::LATENCY_BITS) as u32,
            array_ns: self.answer & Self::LATENCY_MAX,
        }
    }
}

// A scenario with more is refused.
const _: () = assert!(ARRAYS_MAX <= 1 << (u64::BITS - Entry::LATENCY_BITS));

/// By time, then by key.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.key).cmp(&(other.at, other.key))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Slots that lie together: whoever looks for the next one that holds an event has it at hand.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// A bit for each slot that holds an event.
    used: u64,
    /// The first event of each slot; the others of it follow in any order.
    slots: [u32; WORD],
}

impl Page {
    const EMPTY: Self = Self { used: 0, slots: [NONE; WORD] };
}

/// The page in the year of a slot, and its place there.
#[inline(always)]
const fn place_of(slot: u64, pages: &[Page]) -> (usize, usize) {
    ((slot as usize / WORD) & (pages.len() - 1), slot as usize % WORD)
}

/// What is pending.
#[derive(Clone, Debug)]
pub(crate) struct EventList {
    /// The slots of a year, in a power of two of pages.
    pages: Box<[Page]>,
    /// How many slots there are.
    year: u64,
    /// log2 of the nanoseconds of a slot.
    slot_bits: u32,
    /// The slot, counted from the beginning of time, with which the year begins.
    now: u64,
    entries: Vec<Entry>,
    free: u32,
    /// What happens before the year, the next one last.
    front: Vec<Entry>,
    /// What was more than a year ahead when it came, and the slot of the first of it.
    far: BinaryHeap<Reverse<Entry>>,
    far_slot: u64,
    /// Events taken out of slots since the last look at their length, and when that was.
    taken: u64,
    looked: Time,
    /// The slot that was looked at ahead of time, and the last events that were seen there, the newest first.
    ahead: u64,
    seen: [u32; SEEN],
}

impl Default for EventList {
    fn default() -> Self {
        Self::new(SLOT_BITS, YEAR)
    }
}

impl EventList {
    fn new(slot_bits: u32, slots: usize) -> Self {
        Self {
            pages: vec![Page::EMPTY; slots / WORD].into(),
            year: slots as u64,
            slot_bits,
            now: 0,
            entries: Vec::new(),
            free: NONE,
            front: Vec::new(),
            // More than is ever so far ahead, mostly: nothing is allocated later.
            far: BinaryHeap::with_capacity(slots / 128),
            far_slot: u64::MAX,
            taken: 0,
            looked: Time::ZERO,
            ahead: 0,
            seen: [NONE; SEEN],
        }
    }

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
        *entry = Entry::new(at, event);
        let slot = at.0 >> self.slot_bits;
        if slot.wrapping_sub(self.now) >= self.year {
            return self.put_aside(new, slot);
        }
        let (page, place) = place_of(slot, &self.pages);
        let page = &mut self.pages[page];
        let first = std::mem::replace(&mut page.slots[place], new);
        entry.next = first;
        if first == NONE {
            page.used |= 1 << place;
        } else {
            Self::keep_first(&mut self.entries, &mut page.slots[place], first);
        }
    }

    /// Takes the next event if it happens before `limit`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, limit: Time) -> Option<(Time, Pending)> {
        if !self.front.is_empty() {
            let next = self.front.pop_if(|next| next.at < limit)?;
            return Some((next.at, next.event()));
        }
        loop {
            let (page, place) = place_of(self.now, &self.pages);
            let page = &mut self.pages[page];
            let rest = page.used >> place;
            let slot = self.now + u64::from(rest.trailing_zeros());
            if rest == 0 || slot >= self.far_slot {
                self.go_on(limit)?;
                continue;
            }
            let place = slot as usize % WORD;
            let taken = page.slots[place];
            let entry = &mut self.entries[taken as usize];
            let (at, event, next) = (entry.at, entry.event(), entry.next);
            if at >= limit {
                return None;
            }
            page.slots[place] = next;
            entry.next = std::mem::replace(&mut self.free, taken);
            self.now = slot;
            self.taken += 1;
            if next == NONE {
                page.used &= !(1 << place);
            } else if self.entries[next as usize].next != NONE {
                self.sort_slot(slot);
            }
            return Some((at, event));
        }
    }

    /// Goes on to the next slot that holds an event, where that is not in the present page, if it happens
    /// before `limit`.
    #[inline(never)]
    fn go_on(&mut self, limit: Time) -> Option<()> {
        let mut slot = self.next_used();
        if slot >= self.far_slot {
            slot = self.come_near(slot, limit)?;
        }
        let (page, place) = place_of(slot, &self.pages);
        let next = self.pages[page].slots[place];
        (self.entries[next as usize].at < limit).then(|| self.now = slot)
    }

    /// Whether it pays to look ahead.
    #[inline]
    pub(crate) const fn is_wide(&self) -> bool {
        self.entries.len() >= WIDE
    }

    /// One more of the events that come next, `None` where enough of them were seen. It is as it will be but where another one
    /// comes before it meanwhile, and may be none that is pending: who looks ahead is content with that. Of what is
    /// there only the one before is read.
    pub(crate) fn look_ahead(&mut self) -> Option<&Entry> {
        let last = self.entries.get(self.seen[0] as usize);
        let mut next = last.filter(|_| self.ahead >= self.now).map_or(NONE, |last| last.next);
        if next == NONE {
            let last = self.ahead.max(self.now);
            if last - self.now >= AHEAD {
                return None;
            }
            let slot = last + 1;
            let (page, place) = place_of(slot, &self.pages);
            let page = &self.pages[page];
            // To the end of its page at most: the next look is in the next one.
            let empty = (page.used >> place).trailing_zeros().min((WORD - 1 - place) as u32);
            self.ahead = slot + u64::from(empty);
            next = page.slots[place + empty as usize];
        }
        self.seen.copy_within(..SEEN - 1, 1);
        self.seen[0] = next;
        self.entries.get(next as usize)
    }

    /// The event that was seen so many looks ago.
    pub(crate) fn seen(&self, ago: usize) -> Option<Pending> {
        self.entries.get(self.seen[ago] as usize).map(Entry::event)
    }

    /// When the next event happens, or never.
    pub(crate) fn next_at(&mut self) -> Time {
        if let Some(next) = self.front.last() {
            return next.at;
        }
        let slot = self.next_used();
        let far = self.far.peek().map_or(Time::NEVER, |first| first.0.at);
        if slot == u64::MAX {
            return far;
        }
        let (page, place) = place_of(slot, &self.pages);
        self.entries[self.pages[page].slots[place] as usize].at.min(far)
    }

    /// The first event of a slot stays first where another one came before it, if it happens first.
    #[inline]
    fn keep_first(entries: &mut [Entry], slot: &mut u32, first: u32) {
        let new = *slot;
        if entries[first as usize] < entries[new as usize] {
            *slot = first;
            entries[new as usize].next = entries[first as usize].next;
            entries[first as usize].next = new;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slots = self.year as usize;
        if ROOM * self.entries.len() >= slots {
            self.resize(self.slot_bits, 2 * slots);
        }
        self.free = self.entries.len() as u32;
        assert!(self.free != NONE, "more events pending than can be numbered");
        // By a sixteenth: for many hosts the room that doubling leaves adds up.
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len() / 16 + WORD / 4);
        }
        self.entries.push(Entry::new(Time::NEVER, Pending::of(Key::new(Class::Event, 0, 0))));
    }

    /// Moves a new event that is not of this year to those before it, or after it.
    #[cold]
    fn put_aside(&mut self, new: u32, slot: u64) {
        let entry = self.free(new);
        if slot < self.now {
            let later = self.front.partition_point(|other| *other > entry);
            self.front.insert(later, entry);
        } else {
            self.far_slot = self.far_slot.min(slot);
            self.far.push(Reverse(entry));
        }
    }

    /// What lay in a place, which is free now.
    #[inline]
    fn free(&mut self, place: u32) -> Entry {
        let entry = self.entries[place as usize];
        self.entries[place as usize].next = std::mem::replace(&mut self.free, place);
        entry
    }

    /// The next slot that holds an event; none is [`u64::MAX`].
    fn next_used(&mut self) -> u64 {
        let (page, place) = place_of(self.now, &self.pages);
        let rest = self.pages[page].used >> place;
        if rest == 0 { self.next_word() } else { self.now + u64::from(rest.trailing_zeros()) }
    }

    /// The same where it is not in the page of the present one.
    fn next_word(&mut self) -> u64 {
        self.look();
        let words = self.pages.len() as u64;
        let first = self.now / WORD as u64;
        let mut all =
            (first..=first + words).map(|word| (word, self.pages[(word % words) as usize].used));
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
            while self.far_slot - self.now < self.year
                && let Some(Reverse(first)) = self.far.pop()
            {
                self.push(first.at, first.event());
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
        let (page, place) = place_of(slot, &self.pages);
        let page = &mut self.pages[page];
        page.used &= !(1 << place);
        let mut next = std::mem::replace(&mut page.slots[place], NONE);
        while next != NONE {
            let entry = self.free(next);
            next = entry.next;
            self.front.push(entry);
            self.taken += 1;
        }
    }

    /// Once in as many events as are pending, looks whether there are enough slots, and of the right length;
    /// where there are not, makes others. A year is to be four times as long as it takes until as many events
    /// as are pending have happened: few are further ahead. A slot is not to be shorter than half the time
    /// from one event to the next: most would be empty.
    fn look(&mut self) {
        if self.taken < self.entries.len().max(WORD) as u64 {
            return;
        }
        let here = Time(self.now << self.slot_bits);
        let gap_ns = (here - self.looked) / self.taken;
        (self.taken, self.looked) = (0, here);
        let pending = self.entries.len() + self.far.len();
        let slots = (ROOM * pending).next_power_of_two().max(YEAR);
        let wanted_ns = (gap_ns / 2).max(gap_ns.saturating_mul(4 * pending as u64) / slots as u64);
        let is_right = (wanted_ns / 2..=3 * wanted_ns).contains(&(1 << self.slot_bits));
        let is_enough = (slots..=4 * slots).contains(&(self.year as usize));
        match (wanted_ns + wanted_ns / 2).checked_ilog2().filter(|_| !is_right) {
            Some(slot_bits) => self.resize(slot_bits, slots),
            None if !is_enough => self.resize(self.slot_bits, slots),
            None => {}
        }
    }

    /// Changes the length and the number of the slots.
    fn resize(&mut self, slot_bits: u32, slots: usize) {
        let mut all: Vec<_> = std::mem::take(&mut self.far).into_iter().map(|far| far.0).collect();
        let mut front = std::mem::take(&mut self.front);
        front.shrink_to(WORD);
        let begins = self.now << self.slot_bits;
        (0..self.year).for_each(|slot| self.empty(slot));
        all.append(&mut self.front);
        // What is in front already stays before the year.
        let whole = if front.is_empty() { 0 } else { (1 << slot_bits) - 1 };
        let now = begins.saturating_add(whole) >> slot_bits;
        *self = Self { now, front, looked: self.looked, ..Self::new(slot_bits, slots) };
        all.into_iter().for_each(|entry| self.push(entry.at, entry.event()));
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

    #[test]
    fn what_is_seen_ahead_comes_next() {
        let mut list = EventList::default();
        for (index, slot) in (1..).zip([1, 3, 3, 9, AHEAD, AHEAD + 1]) {
            list.push(Time(slot << SLOT_BITS), Pending::of(key(index)));
        }
        let seen: Vec<_> = std::iter::from_fn(|| list.look_ahead().map(|seen| seen.key)).collect();
        assert_eq!(seen, [1, 2, 3, 4, 5].map(key));
        assert_eq!(list.seen(0).map(|event| event.key), Some(key(5)));
        assert_eq!(list.seen(3).map(|event| event.key), Some(key(2)));
        assert_eq!(list.pop_before(Time::NEVER).map(|(_, event)| event.key), Some(key(1)));
        assert_eq!(list.look_ahead().map(|seen| seen.key), Some(key(6)));
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
                    list.look_ahead();
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
