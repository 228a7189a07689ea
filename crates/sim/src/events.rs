//! The event list: what will happen, by time and then by key.
//!
//! ```text
//!   front              year: a slot for each of so many short spans          far
//!   12 ns, 9 ns   |  [ 40 ] [    ] [ 97, 80 ] [    ] ... [ 611 ] [    ]  |  a heap
//!               begins                                                a year ahead
//! ```
//!
//! A calendar: an event lies in the slot of its time, and a bit says which slots hold one. A slot is about as
//! long as the time from one event to the next, so most hold one or two, the first of them first. What does not
//! fit that picture is still in order: what is left of three and more is sorted when it is their turn, and what
//! is more than a year ahead waits in a heap. What happens at the same nanosecond happens in the order of the keys:
//! the order is part of the model, not of the list, so no other list, thread count or split of the scenario
//! changes a single bit of a result.

use std::{cmp::Reverse, collections::BinaryHeap, num::NonZeroU64};

use counters::{IoId, Time};
use model::Answer;
use scenario::ARRAYS_MAX;

use crate::key::{Class, Key};

/// No entry.
const NONE: u32 = u32::MAX;
/// Slots of a page.
const WORD: usize = u64::BITS as usize;
/// Slots: at least so many, and so many for each event that is pending.
const SLOTS: usize = 1024;
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
    /// Of the answer to a command: which use of its place it is, and what it tells.
    pub(crate) generation: u32,
    pub(crate) told: Told,
}

/// What an answer tells: the latency that the array reports, above the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told(u64);

impl Told {
    const ARRAY_BITS: u32 = 20;
    /// What takes longer, 4 hours and 53 minutes, is reported as that.
    const LATENCY_MAX: u64 = u64::MAX >> Self::ARRAY_BITS;
    const NOTHING: Self = Self(0);

    #[inline(always)]
    const fn new(array: u32, array_ns: u64) -> Self {
        let most = Self::LATENCY_MAX;
        let array_ns = if array_ns < most { array_ns } else { most };
        Self(array_ns << Self::ARRAY_BITS | array as u64)
    }

    #[inline(always)]
    pub(crate) const fn array(self) -> u32 {
        self.0 as u32 & ((1 << Self::ARRAY_BITS) - 1)
    }

    #[inline(always)]
    pub(crate) const fn array_ns(self) -> u64 {
        self.0 >> Self::ARRAY_BITS
    }
}

// A scenario with more is refused.
const _: () = assert!(ARRAYS_MAX <= 1 << Told::ARRAY_BITS);

impl Pending {
    /// Anything but the answer to a command.
    pub(crate) const fn of(key: Key) -> Self {
        Self { key, generation: 0, told: Told::NOTHING }
    }

    /// The answer of an array to a command of a host; `done` is [`Key::done`] of that.
    #[inline(always)]
    pub(crate) const fn answer(done: Key, io: IoId, array: u32, answer: Answer) -> Self {
        let key = done.of(io.slot(), answer.status);
        Self { key, generation: io.generation(), told: Told::new(array, answer.array_ns) }
    }

    /// What was in parts, each of which fits into a register.
    #[inline(always)]
    pub(crate) const fn of_parts((key, generation): (Key, u32), told: Told) -> Self {
        Self { key, generation, told }
    }

    /// What it is about, and which use of its place that is: with what it tells, its parts.
    #[inline(always)]
    pub(crate) const fn of_what(&self) -> (Key, u32) {
        (self.key, self.generation)
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
    told: Told,
    generation: u32,
    /// Another one of its slot, or of those that are free.
    next: u32,
}

impl Entry {
    #[inline(always)]
    const fn new(at: Time, event: Pending, next: u32) -> Self {
        let Pending { key, generation, told } = event;
        Self { at, key, told, generation, next }
    }

    #[inline(always)]
    const fn event(&self) -> Pending {
        Pending { key: self.key, generation: self.generation, told: self.told }
    }
}

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

/// The place of a slot in its page.
const fn place_of(slot: u64) -> usize {
    slot as usize % WORD
}

/// The first slot of its page.
const fn first_of_page(slot: u64) -> u64 {
    slot / WORD as u64 * WORD as u64
}

/// What is pending.
#[derive(Clone, Debug)]
pub(crate) struct EventList {
    /// The slots: a power of two of pages.
    pages: Box<[Page]>,
    /// The bits that tell pages apart.
    page_mask: usize,
    /// log2 of the nanoseconds of a slot.
    slot_bits: u32,
    /// The slot, counted from the beginning of time, with which the year begins: the next event that is not in front is
    /// in its page or a later one.
    begins: u64,
    /// Its page.
    first_page: usize,
    /// How many slots it has: to the end of the last page. In none two years meet, so what comes first in one happens
    /// first.
    year: u64,
    entries: Vec<Entry>,
    free: u32,
    /// What happens before the year, the next one last.
    front: Vec<Entry>,
    /// What is after it.
    far: BinaryHeap<Reverse<Entry>>,
    /// Events taken out of slots since the last look at their length, and when that was.
    taken: u64,
    looked: Time,
    /// The slot that was looked at ahead of time, and the last events that were seen there, the newest first.
    ahead: u64,
    seen: [u32; SEEN],
}

impl Default for EventList {
    fn default() -> Self {
        Self::new(SLOT_BITS, SLOTS)
    }
}

impl EventList {
    fn new(slot_bits: u32, slots: usize) -> Self {
        Self {
            pages: vec![Page::EMPTY; slots / WORD].into(),
            page_mask: slots / WORD - 1,
            slot_bits,
            begins: 0,
            first_page: 0,
            year: slots as u64,
            entries: Vec::new(),
            free: NONE,
            front: Vec::new(),
            // More than is ever so far ahead, mostly: nothing is allocated later.
            far: BinaryHeap::with_capacity(slots / 128 + 8),
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
        let slot = at.0 >> self.slot_bits;
        if slot.wrapping_sub(self.begins) >= self.year {
            // In parts, or each event would lie in memory for this rare way.
            return self.put_aside(at, event.of_what(), event.told);
        }
        let (page, place, new) = (self.page_of(slot), place_of(slot), self.free);
        let entry = &mut self.entries[new as usize];
        self.free = entry.next;
        let page = &mut self.pages[page];
        let first = std::mem::replace(&mut page.slots[place], new);
        // It is written where it stays: to make it elsewhere and copy it would stall.
        *entry = Entry::new(at, event, first);
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
            let page = &mut self.pages[self.first_page];
            let Some(used) = NonZeroU64::new(page.used) else {
                self.go_on(limit)?;
                continue;
            };
            let place = used.trailing_zeros() as usize;
            let taken = page.slots[place];
            let entry = &mut self.entries[taken as usize];
            let (at, event, next) = (entry.at, entry.event(), entry.next);
            if at >= limit {
                return None;
            }
            page.slots[place] = next;
            entry.next = std::mem::replace(&mut self.free, taken);
            self.taken += 1;
            if next == NONE {
                page.used &= page.used - 1;
            } else if self.entries[next as usize].next != NONE {
                self.sort_slot(place);
            }
            return Some((at, event));
        }
    }

    /// Goes on to the next page that holds an event, if that happens before `limit`.
    #[inline(never)]
    fn go_on(&mut self, limit: Time) -> Option<()> {
        self.look();
        (self.next_at() < limit).then(|| {
            let next = self.next_used().min(self.far_slot());
            self.begin_with(self.begins.max(first_of_page(next)));
        })
    }

    /// The year begins with a slot.
    fn begin_with(&mut self, slot: u64) {
        (self.begins, self.first_page) = (slot, self.page_of(slot));
        self.year = (self.slots() - place_of(slot)) as u64;
        self.come_near();
    }

    /// The page of a slot.
    #[inline(always)]
    const fn page_of(&self, slot: u64) -> usize {
        (slot as usize / WORD) & self.page_mask
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
        let first = &self.pages[self.first_page];
        let here = first_of_page(self.begins) + u64::from(first.used.trailing_zeros());
        let last = self.entries.get(self.seen[0] as usize);
        let mut next = last.filter(|_| self.ahead >= here).map_or(NONE, |last| last.next);
        if next == NONE {
            let slot = here.max(self.ahead + 1);
            if slot - here >= AHEAD {
                return None;
            }
            let (page, place) = (&self.pages[self.page_of(slot)], place_of(slot));
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
    pub(crate) fn next_at(&self) -> Time {
        if let Some(next) = self.front.last() {
            return next.at;
        }
        let far = self.far.peek().map_or(Time::NEVER, |Reverse(first)| first.at);
        let slot = self.next_used();
        if slot == u64::MAX {
            return far;
        }
        let next = self.pages[self.page_of(slot)].slots[place_of(slot)];
        self.entries[next as usize].at.min(far)
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
        let slots = self.slots();
        if ROOM * self.entries.len() >= slots {
            self.resize(self.slot_bits, 2 * slots);
        }
        self.free = self.entries.len() as u32;
        assert!(self.free != NONE, "more events pending than can be numbered");
        // By a sixteenth: for many hosts the room that doubling leaves adds up.
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len() / 16 + WORD / 4);
        }
        let nothing = Pending::of(Key::new(Class::Event, 0, 0));
        self.entries.push(Entry::new(Time::NEVER, nothing, NONE));
    }

    const fn slots(&self) -> usize {
        self.pages.len() * WORD
    }

    /// Puts a new event that is not of this year to those before it, or after it.
    #[cold]
    fn put_aside(&mut self, at: Time, of: (Key, u32), told: Told) {
        let entry = Entry::new(at, Pending::of_parts(of, told), NONE);
        if at.0 >> self.slot_bits < self.begins {
            let later = self.front.partition_point(|other| *other > entry);
            self.front.insert(later, entry);
        } else {
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

    /// The next slot of the year that holds an event; none is [`u64::MAX`].
    fn next_used(&self) -> u64 {
        let first = first_of_page(self.begins);
        let mut pages = (first..).step_by(WORD).take(self.pages.len());
        let used = |slot: u64| self.pages[self.page_of(slot)].used;
        let found = pages.find(|slot| used(*slot) != 0);
        found.map_or(u64::MAX, |slot| slot + u64::from(used(slot).trailing_zeros()))
    }

    /// Takes in what was after the year and is in it now.
    fn come_near(&mut self) {
        while self.far_slot() - self.begins < self.year
            && let Some(Reverse(first)) = self.far.pop()
        {
            self.push(first.at, first.event());
        }
    }

    /// The slot of the first event after the year; none is [`u64::MAX`].
    fn far_slot(&self) -> u64 {
        self.far.peek().map_or(u64::MAX, |Reverse(first)| first.at.0 >> self.slot_bits)
    }

    /// Brings what is left of a slot of the first page to the front: more than one, of which the next is not known.
    #[cold]
    fn sort_slot(&mut self, place: usize) {
        let slot = first_of_page(self.begins) + place as u64;
        self.empty(slot);
        self.front.sort_unstable_by(|one, other| other.cmp(one));
        self.begin_with(slot + 1);
        self.look();
    }

    /// Moves what lies in a slot to the front, in any order.
    fn empty(&mut self, slot: u64) {
        let (page, place) = (self.page_of(slot), place_of(slot));
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
        let here = Time(self.begins << self.slot_bits);
        let gap_ns = (here - self.looked) / self.taken;
        (self.taken, self.looked) = (0, here);
        let pending = self.entries.len() + self.far.len();
        let slots = (ROOM * pending).next_power_of_two().max(SLOTS);
        let wanted_ns = (gap_ns / 2).max(gap_ns.saturating_mul(4 * pending as u64) / slots as u64);
        let is_right = (wanted_ns / 2..=3 * wanted_ns).contains(&(1 << self.slot_bits));
        let is_enough = (slots..=4 * slots).contains(&self.slots());
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
        let begins = self.begins << self.slot_bits;
        (0..self.slots() as u64).for_each(|slot| self.empty(slot));
        all.append(&mut self.front);
        // What is in front already stays before the year.
        let whole = if front.is_empty() { 0 } else { (1 << slot_bits) - 1 };
        let begins = begins.saturating_add(whole) >> slot_bits;
        *self = Self { front, looked: self.looked, ..Self::new(slot_bits, slots) };
        self.begin_with(begins);
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
