//! A chain of descriptors: which parts of its memory a guest lends to a request.
//!
//! Nothing in it can be trusted: it is walked no further than a limit, each part has to be in the guest's
//! memory, and what makes no sense is `None`. (`virtio-queue` has the rings; its own walk ends silently at
//! what is wrong, and begins only where the available ring says, not at what was in flight.)

use virtio_bindings::virtio_ring::VRING_DESC_F_NEXT;
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Address, GuestAddress, VolatileMemory, VolatileSlice};

use super::memory::Reader;
use crate::lent::{Part, Parts};

/// Parts of a request at most: data, head and status.
const PARTS_MAX: u16 = 1_024;
/// Bytes of a descriptor.
pub(super) const DESCRIPTOR: usize = 16;
/// Bytes of the head of a request.
pub(super) const HEAD: usize = 16;

/// A chain that was walked. Its parts are with whoever had it walked: first those that are read behind the head, then
/// those that are written. None of them is empty.
#[derive(Debug)]
pub(super) struct Chain {
    /// What is read first: as many bytes of it as there are.
    head: [u8; HEAD],
    head_bytes: usize,
    /// How many of the parts are read.
    readable: usize,
    /// Whether parts that are written have begun.
    is_written: bool,
}

impl Chain {
    /// Walks the chain that begins with a descriptor of the table, into `parts`.
    pub(super) fn walk(
        memory: &mut Reader<'_>,
        table: VolatileSlice<'_>,
        head: u16,
        parts: &mut Parts,
    ) -> Option<Self> {
        let mut chain = Self { head: [0; HEAD], head_bytes: 0, readable: 0, is_written: false };
        let mut table = Table::Whole(table);
        let mut descriptor = table.get(memory, head)?;
        if descriptor.refers_to_indirect_table() {
            table = Table::indirect(memory, &descriptor)?;
            descriptor = table.get(memory, 0)?;
        }
        for _ in 0..table.entries().min(PARTS_MAX) {
            if descriptor.refers_to_indirect_table() {
                return None;
            }
            chain.add(memory, &descriptor, parts)?;
            if descriptor.flags() & VRING_DESC_F_NEXT as u16 == 0 {
                return Some(chain);
            }
            descriptor = table.get(memory, descriptor.next())?;
        }
        None
    }

    fn add(
        &mut self,
        memory: &mut Reader<'_>,
        descriptor: &Descriptor,
        parts: &mut Parts,
    ) -> Option<()> {
        let mut part = Part { at: descriptor.addr(), bytes: descriptor.len() };
        if !memory.has(part.at, part.bytes) {
            return None;
        }
        if descriptor.is_write_only() {
            self.is_written = true;
        } else if self.is_written {
            return None;
        } else {
            self.take_head(memory, &mut part)?;
            self.readable += usize::from(part.bytes > 0);
        }
        if part.bytes > 0 {
            parts.push(part);
        }
        Some(())
    }

    /// Takes off a part what of it belongs to the head.
    fn take_head(&mut self, memory: &mut Reader<'_>, part: &mut Part) -> Option<()> {
        let bytes = (HEAD - self.head_bytes).min(part.bytes as usize);
        match bytes {
            0 => return Some(()),
            // Guests have it in one piece.
            HEAD => self.head = memory.get::<u128>(part.at)?.to_ne_bytes(),
            _ => {
                let into = &mut self.head[self.head_bytes..][..bytes];
                memory.read(part.at, into).then_some(())?;
            }
        }
        self.head_bytes += bytes;
        *part = Part { at: part.at.unchecked_add(bytes as u64), bytes: part.bytes - bytes as u32 };
        Some(())
    }

    /// The head, if it is whole.
    pub(super) fn head(&self) -> Option<&[u8; HEAD]> {
        (self.head_bytes == HEAD).then_some(&self.head)
    }

    /// Takes the last byte off what is written; where it is.
    pub(super) fn cut_status(&self, parts: &mut Parts) -> Option<GuestAddress> {
        let last = parts[self.readable..].last_mut()?;
        last.bytes -= 1;
        let at = last.at.unchecked_add(last.bytes.into());
        if last.bytes == 0 {
            parts.pop();
        }
        Some(at)
    }

    /// Leaves only what is read behind the head.
    pub(super) fn keep_readable(&self, parts: &mut Parts) {
        parts.truncate(self.readable);
    }

    /// Leaves only what is written.
    pub(super) fn keep_writable(&self, parts: &mut Parts) {
        if self.readable > 0 {
            parts.drain(..self.readable);
        }
    }
}

/// A table of descriptors.
enum Table<'a> {
    /// In one part of the guest's memory, as nearly all are: looked up once for all that is read of it.
    Whole(VolatileSlice<'a>),
    /// In two.
    Cut { at: GuestAddress, entries: u16 },
}

impl<'a> Table<'a> {
    fn indirect(memory: &mut Reader<'a>, descriptor: &Descriptor) -> Option<Self> {
        let (at, bytes) = (descriptor.addr(), descriptor.len() as usize);
        let entries = u16::try_from(bytes / DESCRIPTOR).ok()?;
        let is_whole = bytes.is_multiple_of(DESCRIPTOR);
        let cut = Self::Cut { at, entries };
        is_whole.then(|| memory.slice(at, bytes).map_or(cut, Self::Whole))
    }

    fn entries(&self) -> u16 {
        match self {
            // There are no more than fit into it, or in a ring.
            Self::Whole(table) => (table.len() / DESCRIPTOR) as u16,
            Self::Cut { entries, .. } => *entries,
        }
    }

    fn get(&self, memory: &mut Reader<'_>, index: u16) -> Option<Descriptor> {
        let offset = usize::from(index) * DESCRIPTOR;
        match self {
            Self::Whole(table) => table.get_ref(offset).ok().map(|descriptor| descriptor.load()),
            Self::Cut { at, entries } if index < *entries => {
                memory.get(at.checked_add(offset as u64)?)
            }
            Self::Cut { .. } => None,
        }
    }
}
