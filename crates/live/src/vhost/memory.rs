//! A guest's memory: parts of files that its front end hands over, mapped as long as anything uses them.
//!
//! A table is never changed. A new one has the parts of the old one that stay, and an I/O keeps the table
//! that it began with, so a part is unmapped after the last I/O that it is in.

use counters::sorted::sort_by_key;
use std::{io, os::fd::OwnedFd, sync::Arc};

use vm_memory::{
    Address, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion,
    GuestRegionMmap, MmapRegion,
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

    /// Whether so many bytes are all there.
    pub(super) fn has(&self, at: GuestAddress, bytes: u32) -> bool {
        let Some(end) = at.checked_add(bytes.into()) else { return false };
        // Nearly all are in one region.
        let is_in_one = |region: &GuestRegionMmap| bytes > 0 && end.0 - 1 <= region.last_addr().0;
        self.map.find_region(at).is_some_and(is_in_one)
            || GuestMemoryBackend::check_range(&self.map, at, bytes as usize)
    }

    pub(super) fn read(&self, at: GuestAddress, into: &mut [u8]) -> bool {
        access::read(&self.map, at, into)
    }

    pub(super) fn write(&self, at: GuestAddress, bytes: &[u8]) -> bool {
        access::write(&self.map, at, bytes)
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
}

fn refused() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}
