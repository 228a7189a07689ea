//! A chain of descriptors: which parts of its memory a guest lends to a request.
//!
//! Nothing in it can be trusted: it is walked no further than a limit, each part has to be in the guest's
//! memory, and what makes no sense is `None`. (`virtio-queue` has the rings; its own walk ends silently at
//! what is wrong, and begins only where the available ring says, not at what was in flight.)

use virtio_bindings::virtio_ring::VRING_DESC_F_NEXT;
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Address, GuestAddress, GuestMemoryBackend, VolatileMemory, VolatileSlice};

use super::memory::Memory;
use crate::{
    access,
    lent::{Part, Parts},
};

/// Parts of a request at most: data, head and status.
const PARTS_MAX: usize = 1_024;
/// Bytes of a descriptor.
const DESCRIPTOR: u32 = 16;

/// The parts of a request: first those that are read, then those that are written.
#[derive(Debug, Default)]
pub(super) struct Chain {
    pub(super) readable: Parts,
    pub(super) writable: Parts,
}

/// Where descriptors are, and how many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) at: GuestAddress,
    pub(super) entries: u16,
}

impl Chain {
    /// Walks the chain that begins with a descriptor of the table.
    pub(super) fn walk(memory: &Memory, table: Table, head: u16) -> Option<Self> {
        let mut chain = Self::default();
        let mut table = Descriptors::of(memory, table);
        let mut descriptor = table.get(head)?;
        if descriptor.refers_to_indirect_table() {
            table = Descriptors::of(memory, Table::indirect(&descriptor)?);
            descriptor = table.get(0)?;
        }
        for _ in 0..table.of.entries {
            if descriptor.refers_to_indirect_table() {
                return None;
            }
            chain.add(memory, &descriptor)?;
            if descriptor.flags() & VRING_DESC_F_NEXT as u16 == 0 {
                return Some(chain);
            }
            descriptor = table.get(descriptor.next())?;
        }
        None
    }

    fn add(&mut self, memory: &Memory, descriptor: &Descriptor) -> Option<()> {
        let part = Part { at: descriptor.addr(), bytes: descriptor.len() };
        let is_room = self.readable.len() + self.writable.len() < PARTS_MAX;
        if !is_room || !memory.has(part.at, part.bytes) {
            return None;
        }
        match descriptor.is_write_only() {
            true => self.writable.push(part),
            false if self.writable.is_empty() => self.readable.push(part),
            false => return None,
        }
        Some(())
    }
}

impl Table {
    fn indirect(descriptor: &Descriptor) -> Option<Self> {
        let entries = u16::try_from(descriptor.len() / DESCRIPTOR).ok()?;
        let is_whole = descriptor.len().is_multiple_of(DESCRIPTOR);
        is_whole.then_some(Self { at: descriptor.addr(), entries })
    }
}

/// A table in a guest's memory, looked up once for all that is read of it.
struct Descriptors<'a> {
    memory: &'a Memory,
    of: Table,
    /// Where it is, if that is in one region.
    whole: Option<VolatileSlice<'a>>,
}

impl<'a> Descriptors<'a> {
    fn of(memory: &'a Memory, of: Table) -> Self {
        let bytes = usize::from(of.entries) * DESCRIPTOR as usize;
        Self { memory, of, whole: memory.map().get_slice(of.at, bytes).ok() }
    }

    fn get(&self, index: u16) -> Option<Descriptor> {
        let offset = u64::from(index) * u64::from(DESCRIPTOR);
        if index >= self.of.entries {
            return None;
        }
        match &self.whole {
            Some(whole) => whole.get_ref(offset as usize).ok().map(|descriptor| descriptor.load()),
            None => access::get(self.memory.map(), self.of.at.checked_add(offset)?),
        }
    }
}

/// How many bytes are in parts.
pub(super) fn bytes(parts: &[Part]) -> u64 {
    parts.iter().map(|part| u64::from(part.bytes)).sum()
}

/// Copies what parts have, as far as there is room for it.
pub(super) fn gather(memory: &Memory, parts: &[Part], into: &mut [u8]) -> bool {
    let mut rest = into;
    parts.iter().all(|part| {
        let bytes = rest.len().min(part.bytes as usize);
        let (now, later) = std::mem::take(&mut rest).split_at_mut(bytes);
        rest = later;
        memory.read(part.at, now)
    })
}

/// Copies into parts as much as there is.
pub(super) fn scatter(memory: &Memory, parts: &[Part], from: &[u8]) -> bool {
    let mut rest = from;
    parts.iter().all(|part| {
        let (now, later) = rest.split_at(rest.len().min(part.bytes as usize));
        rest = later;
        memory.write(part.at, now)
    })
}

/// Takes so many bytes off the beginning of parts.
pub(super) fn cut_front(parts: &mut Parts, bytes: u32) {
    let mut left = bytes;
    for part in parts.iter_mut() {
        let cut = left.min(part.bytes);
        part.at = part.at.unchecked_add(cut.into());
        part.bytes -= cut;
        left -= cut;
    }
    parts.retain(|part| part.bytes > 0);
}

/// Takes the last byte off parts; where it is.
pub(super) fn cut_last(parts: &mut Parts) -> Option<GuestAddress> {
    parts.retain(|part| part.bytes > 0);
    let last = parts.last_mut()?;
    last.bytes -= 1;
    let at = last.at.unchecked_add(last.bytes.into());
    parts.retain(|part| part.bytes > 0);
    Some(at)
}
