//! What a ring has in flight, noted in memory that outlives the daemon: the front end keeps it, and hands
//! it to the next daemon, which resumes what the one before had begun and not ended.
//!
//! The layout is that of split rings in [VHU], "Inflight I/O tracking": 16 bytes of a head, then 16 for
//! each descriptor. A request is noted before it is begun; when some have ended, the used ring names them,
//! their notes go, and then the position of the used ring is noted. Where the daemon was killed between these,
//! the positions differ, and the chain that begins with the last note says which notes to take away.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::atomic::Ordering,
};

use nix::{
    sys::memfd::{MFdFlags, memfd_create},
    unistd::ftruncate,
};
use vm_memory::GuestAddress;

use super::{
    memory::{Area, Memory},
    wire::{InflightArea, Region},
};

/// Bytes of the head of a ring, and of each descriptor.
const HEAD: usize = 16;
const NOTE: usize = 16;
/// Rings begin at multiples of this.
const ALIGNED: usize = 64;
/// Places in the head of a ring.
const VERSION: usize = 8;
const ENTRIES: usize = 10;
const LAST: usize = 12;
const USED: usize = 14;
/// Places in a note.
const IS_IN_FLIGHT: usize = 0;
const NEXT: usize = 6;
const COUNTER: usize = 8;

const fn ring_bytes(entries: u16) -> usize {
    (HEAD + NOTE * entries as usize).next_multiple_of(ALIGNED)
}

/// New memory for the rings of a device: what it is, and its file.
pub(super) fn create(rings: u16, entries: u16) -> io::Result<(InflightArea, OwnedFd)> {
    let bytes = ring_bytes(entries) as u64 * u64::from(rings);
    let file = memfd_create("in flight", MFdFlags::MFD_CLOEXEC)?;
    ftruncate(file.as_fd(), bytes as i64)?;
    let area = InflightArea { bytes, offset: 0, rings, entries };
    for mut ring in open(area, file.try_clone()?)? {
        ring.put(VERSION, 1_u16);
        ring.put(ENTRIES, entries);
    }
    Ok((area, file))
}

/// The notes of each ring.
pub(super) fn open(area: InflightArea, file: OwnedFd) -> io::Result<Vec<Notes>> {
    let InflightArea { bytes, offset, rings, entries } = area;
    let each = ring_bytes(entries);
    if bytes < each as u64 * u64::from(rings) || entries == 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let memory = Memory::new(vec![(Region { guest: 0, bytes, user: 0, offset }, file)])?;
    let ring = |ring: u16| {
        let area = memory.area(GuestAddress(each as u64 * u64::from(ring)), each);
        Ok(Notes { area: area.ok_or(io::ErrorKind::InvalidInput)?, entries, counter: 0 })
    };
    (0..rings).map(ring).collect()
}

/// What a ring has in flight.
#[derive(Debug)]
pub(super) struct Notes {
    area: Area,
    entries: u16,
    counter: u64,
}

impl Notes {
    #[inline]
    fn get<T: vm_memory::AtomicAccess + Default>(&self, place: usize) -> T {
        self.area.load(place, Ordering::Acquire).unwrap_or_default()
    }

    #[inline]
    fn put<T: vm_memory::AtomicAccess>(&mut self, place: usize, value: T) {
        // It is as large as its ring.
        let _ = self.area.store(place, value, Ordering::Release);
    }

    const fn note(&self, head: u16) -> usize {
        HEAD + NOTE * (head % self.entries) as usize
    }

    /// A request has come from the ring.
    pub(super) fn begin(&mut self, head: u16) {
        let note = self.note(head);
        self.counter += 1;
        self.put(note + COUNTER, self.counter);
        self.put(note + IS_IN_FLIGHT, 1_u8);
    }

    /// One is about to be told as used.
    pub(super) fn ends(&mut self, head: u16) {
        let last = self.get::<u16>(LAST);
        self.put(self.note(head) + NEXT, last);
        self.put(LAST, head);
    }

    /// The used ring, which is at this position now, tells of the last so many.
    pub(super) fn ended(&mut self, told: u16, used: u16) {
        let mut head = self.get::<u16>(LAST);
        for _ in 0..told {
            let note = self.note(head);
            self.put(note + IS_IN_FLIGHT, 0_u8);
            head = self.get(note + NEXT);
        }
        self.put(USED, used);
    }

    /// What is in flight by these notes, in the order in which it came, when the used ring is at this
    /// position.
    pub(super) fn resume(&mut self, used: u16) -> Vec<u16> {
        let told = used.wrapping_sub(self.get(USED)).min(self.entries);
        self.ended(told, used);
        let noted = |head: &u16| self.get::<u8>(self.note(*head) + IS_IN_FLIGHT) == 1;
        let counted = |head: u16| (self.get::<u64>(self.note(head) + COUNTER), head);
        let mut heads: Vec<_> = (0..self.entries).filter(noted).map(counted).collect();
        heads.sort_unstable();
        self.counter = heads.last().map_or(0, |(counter, _)| *counter);
        heads.into_iter().map(|(_, head)| head).collect()
    }

    /// Nothing is in flight any more: the guest has forgotten all.
    pub(super) fn forget(&mut self) {
        (0..self.entries).for_each(|head| self.put(self.note(head) + IS_IN_FLIGHT, 0_u8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(file: &OwnedFd, area: InflightArea) -> Notes {
        open(area, file.try_clone().unwrap()).unwrap().remove(1)
    }

    #[test]
    fn what_was_in_flight_is_resumed_in_its_order() {
        let (area, file) = create(2, 8).unwrap();
        assert_eq!(area, InflightArea { bytes: 2 * 192, offset: 0, rings: 2, entries: 8 });
        let mut first = notes(&file, area);
        [5, 2, 7, 1].into_iter().for_each(|head| first.begin(head));
        first.ends(2);
        first.ended(1, 1);
        assert_eq!(notes(&file, area).resume(1), [5, 7, 1]);
        // Killed after the used ring has told of 7, and before its note is gone.
        first.ends(7);
        let mut second = notes(&file, area);
        assert_eq!(second.resume(2), [5, 1]);
        // And before the used ring has told of 5: it runs again.
        second.ends(5);
        assert_eq!(notes(&file, area).resume(2), [5, 1]);
        second.forget();
        assert_eq!(notes(&file, area).resume(2), [0_u16; 0]);
    }

    #[test]
    fn memory_that_is_no_good_does_no_harm() {
        let (area, file) = create(2, 8).unwrap();
        for wrong in [
            InflightArea { bytes: 100, ..area },
            InflightArea { entries: 0, ..area },
            InflightArea { entries: 1_000, ..area },
            InflightArea { offset: u64::MAX, ..area },
            InflightArea { offset: 1, ..area },
        ] {
            assert!(open(wrong, file.try_clone().unwrap()).is_err(), "{wrong:?}");
        }
        let mut cut = notes(&file, area);
        ftruncate(file.as_fd(), 0).unwrap();
        assert_eq!(cut.resume(3), [0_u16; 0]);
        assert!(cut.area.is_torn());
        cut.begin(1);
        assert_eq!(cut.resume(3), [1], "it is memory still");
    }
}
