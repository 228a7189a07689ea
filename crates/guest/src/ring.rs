//! A ring as a driver fills it [VIRTIO], 2.7.

use std::{
    os::fd::{AsRawFd, BorrowedFd},
    sync::atomic::{Ordering, fence},
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use vm_memory::{
    Address, Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion,
    VolatileSlice,
};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

use crate::{
    Ask,
    layout::{Places, Slot},
};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const NO_NOTIFY: u16 = 1;

/// A request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// What it was known by.
    pub slot: u16,
    /// How it ended: 0 is well.
    pub status: u8,
    /// Bytes that were written for it, the status included.
    pub written: u32,
}

/// A ring.
#[derive(Debug)]
pub struct Ring {
    pub(crate) places: Places,
    memory: GuestMemoryMmap,
    event_idx: bool,
    indirect: bool,
    /// Requests made available, and those that were seen as used.
    available: u16,
    seen: u16,
    /// What was available when the back end was kicked last.
    kicked: u16,
    free: Vec<u16>,
    /// How it is kicked, how it calls, and how it says that the ring makes no sense.
    pub(crate) kick: EventFd,
    pub(crate) call: EventFd,
    pub(crate) err: EventFd,
    /// How often it was kicked.
    pub kicks: u64,
}

impl Ring {
    pub(crate) fn new(
        places: Places,
        memory: GuestMemoryMmap,
        (event_idx, indirect): (bool, bool),
    ) -> Result<Self, String> {
        let (kick, call, err) = (bell()?, bell()?, bell()?);
        let shape = places.shape;
        let slots = if indirect { shape.entries } else { shape.entries / 3 };
        let free = (0..slots).rev().collect();
        let (available, seen, kicked, kicks) = (0, 0, 0, 0);
        Ok(Self {
            places,
            memory,
            event_idx,
            indirect,
            available,
            seen,
            kicked,
            free,
            kick,
            call,
            err,
            kicks,
        })
    }

    fn get<T: vm_memory::AtomicAccess>(&self, at: GuestAddress) -> T {
        let word =
            self.word(at, size_of::<T>()).and_then(|word| word.load(0, Ordering::Acquire).ok());
        word.expect("it is in the guest's own memory")
    }

    fn put<T: vm_memory::AtomicAccess>(&self, at: GuestAddress, value: T) {
        let word = self.word(at, size_of::<T>());
        let stored = word.and_then(|word| word.store(value, 0, Ordering::Release).ok());
        stored.expect("it is in the guest's own memory");
    }

    /// A word of the memory, which is one region. The library walks regions for each: that was most of what a guest
    /// did for an I/O.
    fn word(&self, at: GuestAddress, bytes: usize) -> Option<VolatileSlice<'_>> {
        let region = self.memory.find_region(at)?;
        region.get_slice(region.to_region_addr(at)?, bytes).ok()
    }

    fn fill(&self, at: GuestAddress, bytes: &[u8]) {
        self.memory.write_slice(bytes, at).expect("it is in the guest's own memory");
    }

    fn describe(
        &self,
        at: GuestAddress,
        (address, bytes): (GuestAddress, u32),
        flags: u16,
        next: u16,
    ) {
        let mut descriptor = [0; 16];
        descriptor[..8].copy_from_slice(&address.0.to_le_bytes());
        descriptor[8..12].copy_from_slice(&bytes.to_le_bytes());
        descriptor[12..14].copy_from_slice(&flags.to_le_bytes());
        descriptor[14..].copy_from_slice(&next.to_le_bytes());
        self.fill(at, &descriptor);
    }

    /// Requests that there is room for.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.free.len()
    }

    /// Makes a request available; what it is known by.
    ///
    /// # Panics
    /// When there is no room for it.
    pub fn submit(&mut self, ask: Ask<'_>) -> u16 {
        let number = self.free.pop().expect("there is room for it");
        let slot = self.places.slot(number);
        let head = self.lay_out(number, slot, ask);
        self.offer(head);
        number
    }

    /// Makes the request that has ended last available again, for another sector: the back end sees it
    /// with the next [`Self::kick`]. A driver that keeps its requests writes no more than this.
    ///
    /// # Panics
    /// When none has ended.
    pub fn repeat(&mut self, sector: u64) {
        let number = self.free.pop().expect("one has ended");
        let slot = self.places.slot(number);
        self.put(slot.head().unchecked_add(8), sector);
        self.put(slot.status(), 0xff_u8);
        self.enter(if self.indirect { number } else { 3 * number });
    }

    /// Makes the chain that begins with a descriptor available, whatever is there.
    pub fn offer(&mut self, head: u16) {
        self.enter(head);
        self.publish();
    }

    fn enter(&mut self, head: u16) {
        let entry = u64::from(self.available % self.places.shape.entries);
        let available = self.places.available();
        self.put(available.unchecked_add(4 + 2 * entry), head);
        self.available = self.available.wrapping_add(1);
    }

    fn publish(&self) {
        self.put(self.places.available().unchecked_add(2), self.available);
    }

    /// Writes a request into its slot; the first of its descriptors.
    fn lay_out(&self, number: u16, slot: Slot, ask: Ask<'_>) -> u16 {
        let range = |sector: u64, sectors: u32, flags: u32| {
            [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat()
        };
        let owned;
        // What the slot has from before is as good as any.
        let as_it_is = if let Ask::Fill(_, bytes) = ask { bytes } else { 0 };
        let (kind, sector, readable, room): (u32, u64, &[u8], u32) = match ask {
            Ask::Read(sector, bytes) => (0, sector, &[], bytes),
            Ask::Write(sector, bytes) => (1, sector, bytes, 0),
            Ask::Fill(sector, _) => (1, sector, &[], 0),
            Ask::Flush => (4, 0, &[], 0),
            Ask::Id => (8, 0, &[], 20),
            Ask::Other(kind, readable, room) => (kind, 0, readable, room),
            Ask::Discard(sector, sectors) => {
                owned = range(sector, sectors, 0);
                (11, 0, &owned, 0)
            }
            Ask::WriteZeroes(sector, sectors, unmap) => {
                owned = range(sector, sectors, unmap.into());
                (13, 0, &owned, 0)
            }
        };
        let mut head = [0; 16];
        head[..4].copy_from_slice(&kind.to_le_bytes());
        head[8..].copy_from_slice(&sector.to_le_bytes());
        self.fill(slot.head(), &head);
        self.put(slot.status(), 0xff_u8);
        self.fill(slot.data(), readable);
        let mut parts = vec![(slot.head(), 16, 0)];
        self.cut(slot, readable.len() as u32 + as_it_is, 0, &mut parts);
        self.cut(slot, room, WRITE, &mut parts);
        parts.push((slot.status(), 1, WRITE));
        self.chain(number, slot, &parts)
    }

    /// Cuts the data into parts of whole sectors.
    fn cut(&self, slot: Slot, bytes: u32, flags: u16, parts: &mut Vec<(GuestAddress, u32, u16)>) {
        let each = bytes.div_ceil(self.places.shape.parts.into()).next_multiple_of(512);
        let mut from = 0;
        while from < bytes {
            let length = each.min(bytes - from);
            parts.push((slot.data().unchecked_add(from.into()), length, flags));
            from += length;
        }
    }

    fn chain(&self, number: u16, slot: Slot, parts: &[(GuestAddress, u32, u16)]) -> u16 {
        let first = if self.indirect { 0 } else { 3 * number };
        let place = |index: u16| match self.indirect {
            true => slot.table().unchecked_add(16 * u64::from(index)),
            false => self.places.descriptor(index),
        };
        for (index, (at, bytes, flags)) in (first..).zip(parts) {
            let is_last = usize::from(index - first) == parts.len() - 1;
            let more = if is_last { 0 } else { NEXT };
            self.describe(place(index), (*at, *bytes), flags | more, index + 1);
        }
        if self.indirect {
            let table = (slot.table(), 16 * parts.len() as u32);
            self.describe(self.places.descriptor(number), table, INDIRECT, 0);
            return number;
        }
        first
    }

    /// Gives it another kick and another call.
    ///
    /// # Errors
    /// When there is none left.
    pub fn new_bells(&mut self) -> Result<(), String> {
        (self.kick, self.call) = (bell()?, bell()?);
        Ok(())
    }

    /// Kicks the back end, whether it wants to be or not.
    pub fn kick_anyway(&self) {
        self.kick.write(1).expect("an eventfd takes a one");
    }

    /// Waits so long to be told that the ring makes no sense; whether it was.
    #[must_use]
    pub fn waits_for_err(&self, patience: Duration) -> bool {
        sleep(&self.err, patience)
    }

    /// Kicks the back end if it wants to be.
    pub fn kick(&mut self) {
        self.publish();
        fence(Ordering::SeqCst);
        let used = self.places.used();
        let is_wanted = if self.event_idx {
            let entries = u64::from(self.places.shape.entries);
            let event = self.get::<u16>(used.unchecked_add(4 + 8 * entries));
            let since = self.available.wrapping_sub(self.kicked);
            self.available.wrapping_sub(event).wrapping_sub(1) < since
        } else {
            self.get::<u16>(used) & NO_NOTIFY == 0
        };
        self.kicked = self.available;
        if is_wanted {
            self.kicks += 1;
            self.kick_anyway();
        }
    }

    /// The next request that has ended.
    pub fn poll(&mut self) -> Option<Done> {
        let used = self.places.used();
        if self.get::<u16>(used.unchecked_add(2)) == self.seen {
            return None;
        }
        let entry = u64::from(self.seen % self.places.shape.entries);
        let at = used.unchecked_add(4 + 8 * entry);
        let head = self.get::<u32>(at) as u16;
        let written = self.get(at.unchecked_add(4));
        self.seen = self.seen.wrapping_add(1);
        let slot = if self.indirect { head } else { head / 3 };
        let status = self.get(self.places.slot(slot).status());
        self.free.push(slot);
        Some(Done { slot, status, written })
    }

    /// The same, and waits to be called for so long; a back end that does not call is not seen.
    pub fn wait(&mut self, patience: Duration) -> Option<Done> {
        let until = Instant::now() + patience;
        loop {
            if let Some(done) = self.poll() {
                return Some(done);
            }
            self.want_call();
            if let Some(done) = self.poll() {
                return Some(done);
            }
            let left = until.checked_duration_since(Instant::now())?;
            sleep(&self.call, left).then_some(())?;
        }
    }

    /// The back end is to call when the next request has ended.
    fn want_call(&self) {
        if self.event_idx {
            let entries = u64::from(self.places.shape.entries);
            self.put(self.places.available().unchecked_add(4 + 2 * entries), self.seen);
        }
        fence(Ordering::SeqCst);
    }

    /// The data of a request.
    #[must_use]
    pub fn data(&self, slot: u16, bytes: usize) -> Vec<u8> {
        let mut data = vec![0; bytes];
        let at = self.places.slot(slot).data();
        self.memory.read_slice(&mut data, at).expect("it is in the guest's own memory");
        data
    }

    /// Writes anything into the memory of the ring, from its descriptors on.
    pub fn scribble(&self, offset: u64, bytes: &[u8]) {
        self.fill(self.places.descriptor(0).unchecked_add(offset), bytes);
    }

    /// What was seen as used, from where a back end goes on that has lost its state.
    #[must_use]
    pub const fn seen(&self) -> u16 {
        self.seen
    }

    /// As a driver that begins anew.
    pub fn reset(&mut self) {
        let shape = self.places.shape;
        let rings =
            vec![0; self.places.slot(0).head().0 as usize - self.places.descriptor(0).0 as usize];
        self.fill(self.places.descriptor(0), &rings);
        (self.available, self.seen, self.kicked) = (0, 0, 0);
        let slots = if self.indirect { shape.entries } else { shape.entries / 3 };
        self.free = (0..slots).rev().collect();
    }
}

fn bell() -> Result<EventFd, String> {
    EventFd::new(EFD_NONBLOCK).map_err(|error| format!("an eventfd: {error}"))
}

/// Waits so long for a bell; whether it rang.
fn sleep(bell: &EventFd, patience: Duration) -> bool {
    #[expect(unsafe_code, reason = "the crate hands out a number")]
    // SAFETY: it is open as long as the bell, which is borrowed.
    let number = unsafe { BorrowedFd::borrow_raw(bell.as_raw_fd()) };
    let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    let rang = poll(&mut [PollFd::new(number, PollFlags::POLLIN)], patience) == Ok(1);
    rang && bell.read().is_ok()
}
