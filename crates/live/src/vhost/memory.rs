//! A guest's memory: parts of files that its front end hands over, mapped as long as anything uses them.
//!
//! A table is never changed. A new one has the parts of the old one that stay, and an I/O keeps the table
//! that it began with, so a part is unmapped after the last I/O that it is in.

use counters::sorted::sort_by_key;
use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, atomic::Ordering},
};

use vm_memory::{
    Address, AtomicAccess, ByteValued, Bytes, FileOffset, GuestAddress, GuestMemoryBackend,
    GuestMemoryMmap, GuestMemoryRegion, GuestRegionMmap, MemoryRegionAddress, MmapRegion,
    VolatileSlice,
};

use super::{sigbus::Guard, wire::Region};
use crate::{access, lent::Lender};

/// Parts that a table has at most.
pub(super) const PARTS_MAX: usize = 64;

/// A table of memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    parts: Vec<Arc<Part>>,
    map: GuestMemoryMmap,
}

#[derive(Debug)]
struct Part {
    region: Region,
    guard: Guard,
    /// It goes after its guard.
    mapping: Arc<GuestRegionMmap>,
}

impl Memory {
    /// A table of these parts.
    pub(super) fn new(regions: Vec<(Region, OwnedFd)>) -> io::Result<Self> {
        let parts = regions.into_iter().map(|(region, file)| Part::new(region, file));
        Self::of(parts.collect::<io::Result<_>>()?)
    }

    /// This table and one more part.
    pub(super) fn with(&self, region: Region, file: OwnedFd) -> io::Result<Self> {
        let mut parts = self.parts.clone();
        parts.push(Part::new(region, file)?);
        Self::of(parts)
    }

    /// This table without a part.
    pub(super) fn without(&self, region: Region) -> io::Result<Self> {
        let is_it = |part: &Arc<Part>| {
            let Region { guest, bytes, user, .. } = part.region;
            (guest, bytes, user) == (region.guest, region.bytes, region.user)
        };
        let mut parts = self.parts.clone();
        let place = parts.iter().position(is_it).ok_or_else(refused)?;
        parts.remove(place);
        Self::of(parts)
    }

    fn of(mut parts: Vec<Arc<Part>>) -> io::Result<Self> {
        if parts.len() > PARTS_MAX {
            return Err(refused());
        }
        sort_by_key(&mut parts, |part| part.region.guest);
        let mappings = parts.iter().map(|part| Arc::clone(&part.mapping)).collect();
        let map = GuestMemoryMmap::from_arc_regions(mappings).map_err(io::Error::other)?;
        Ok(Self { parts, map })
    }

    /// Whether the guest has handed over none.
    pub(super) const fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Where the guest has what the front end has at an address.
    pub(super) fn guest(&self, user: u64) -> Option<GuestAddress> {
        self.parts.iter().find_map(|part| {
            let offset = user.checked_sub(part.region.user)?;
            (offset < part.region.bytes).then(|| GuestAddress(part.region.guest + offset))
        })
    }

    /// What reads and writes it.
    pub(super) const fn map(&self) -> &GuestMemoryMmap {
        &self.map
    }

    /// So many bytes from there on, which are used again and again; nothing where they are not all in one part.
    pub(super) fn area(&self, at: GuestAddress, bytes: usize) -> Option<Area> {
        let part = self.parts.iter().find(|part| part.slice(at, bytes).is_some())?;
        let offset = at.0 - part.region.guest;
        Some(Area { part: Arc::clone(part), offset, bytes })
    }

    /// Whether a part of it was taken away.
    pub(super) fn is_torn(&self) -> bool {
        self.parts.iter().any(|part| part.guard.is_torn())
    }
}

impl Lender for Memory {
    fn map(&self) -> &GuestMemoryMmap {
        &self.map
    }
}

/// A guest's memory as one request is read: most of that is in the part that was looked up last.
pub(super) struct Reader<'a> {
    memory: &'a Memory,
    /// That part: which it is, where it begins, and all of it.
    place: usize,
    from: u64,
    last: Option<VolatileSlice<'a>>,
}

impl<'a> Reader<'a> {
    /// Looks first in the part at a place, where the request before this one may have been.
    #[inline]
    pub(super) fn new(memory: &'a Memory, place: usize) -> Self {
        let mut reader = Self { memory, place, from: 0, last: None };
        reader.turn_to(place);
        reader
    }

    /// The place of the part that was looked up last.
    pub(super) const fn place(&self) -> usize {
        self.place
    }

    #[inline]
    fn turn_to(&mut self, place: usize) {
        if let Some(part) = self.memory.parts.get(place) {
            (self.place, self.from) = (place, part.region.guest);
            self.last = part.mapping.as_volatile_slice().ok();
        }
    }

    /// What is in one part.
    #[inline]
    pub(super) fn slice(&mut self, at: GuestAddress, bytes: usize) -> Option<VolatileSlice<'a>> {
        self.known(at, bytes).or_else(|| {
            let after = self.memory.parts.partition_point(|part| part.region.guest <= at.0);
            self.turn_to(after.checked_sub(1)?);
            self.known(at, bytes)
        })
    }

    #[inline]
    fn known(&self, at: GuestAddress, bytes: usize) -> Option<VolatileSlice<'a>> {
        // What is in front of the part is beyond its end as well.
        self.last?.subslice(at.0.wrapping_sub(self.from) as usize, bytes).ok()
    }

    /// Whether so many bytes are all there.
    #[inline]
    pub(super) fn has(&mut self, at: GuestAddress, bytes: u32) -> bool {
        bytes > 0 && self.slice(at, bytes as usize).is_some()
            || at.checked_add(bytes.into()).is_some()
                && GuestMemoryBackend::check_range(&self.memory.map, at, bytes as usize)
    }

    /// Reads a value that may be in two parts.
    #[cold]
    pub(super) fn get<T: ByteValued>(&self, at: GuestAddress) -> Option<T> {
        access::get(&self.memory.map, at)
    }

    /// Reads bytes.
    pub(super) fn read(&self, at: GuestAddress, into: &mut [u8]) -> bool {
        access::read(&self.memory.map, at, into)
    }
}

/// A place in a guest's memory that was looked up once: it stays mapped as long as this lives.
#[derive(Debug)]
pub(super) struct Area {
    part: Arc<Part>,
    /// From the beginning of the part.
    offset: u64,
    bytes: usize,
}

impl Area {
    /// All of it.
    #[inline]
    pub(super) fn slice(&self) -> Option<VolatileSlice<'_>> {
        self.part.mapping.get_slice(MemoryRegionAddress(self.offset), self.bytes).ok()
    }

    /// Reads a word of it at once.
    #[inline]
    pub(super) fn load<T: AtomicAccess>(&self, place: usize, order: Ordering) -> Option<T> {
        self.slice()?.load(place, order).ok()
    }

    /// Writes one at once.
    #[inline]
    pub(super) fn store<T: AtomicAccess>(
        &self,
        place: usize,
        value: T,
        order: Ordering,
    ) -> Option<()> {
        self.slice()?.store(value, place, order).ok()
    }

    /// Whether its part was taken away.
    #[cfg(test)]
    pub(super) fn is_torn(&self) -> bool {
        self.part.guard.is_torn()
    }
}

impl Part {
    fn new(region: Region, file: OwnedFd) -> io::Result<Arc<Self>> {
        let Region { guest, bytes, user, offset } = region;
        let ends = [guest, user, offset].iter().all(|start| start.checked_add(bytes).is_some());
        let length = usize::try_from(bytes).ok().filter(|_| ends && bytes > 0);
        let length = length.ok_or_else(refused)?;
        let file = FileOffset::new(file.into(), offset);
        let mapping = MmapRegion::from_file(file, length).map_err(io::Error::other)?;
        let guard = Guard::new(mapping.as_ptr() as usize, length)?;
        let mapping = GuestRegionMmap::new(mapping, GuestAddress(guest)).ok_or_else(refused)?;
        Ok(Arc::new(Self { region, guard, mapping: Arc::new(mapping) }))
    }

    fn slice(&self, at: GuestAddress, bytes: usize) -> Option<VolatileSlice<'_>> {
        access::slice_of(&self.mapping, at, bytes)
    }
}

fn refused() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}
