//! A chain of descriptors: which parts of its memory a guest lends to a request.
//!
//! Nothing in it can be trusted: it is walked no further than a limit, each part has to be in the guest's
//! memory, and what makes no sense is `None`. (`virtio-queue` has the rings; its own walk ends silently at
//! what is wrong, and begins only where the available ring says, not at what was in flight.)

use vm_memory::{Address, GuestAddress, VolatileMemory, VolatileSlice};

use super::memory::Reader;
use crate::lent::{Lent, Part};

/// Parts of a request at most: data, head and status.
const PARTS_MAX: usize = 1_024;
/// Bytes of a descriptor.
pub(super) const DESCRIPTOR: usize = 16;
/// Bytes of the head of a request.
pub(super) const HEAD: usize = 16;

/// A chain that was walked. Its parts are in a record: first those that are read behind the head, then those that are
/// written before the status. None of them is empty.
#[derive(Debug)]
pub(super) struct Chain {
    /// What is read first: as many bytes of it as there are.
    head: [u8; HEAD],
    head_bytes: usize,
    /// How many of the parts are read.
    readable: usize,
    /// Whether parts that are written have begun.
    is_written: bool,
    /// The last byte that is written: where it is told how the request ended.
    pub(super) status: GuestAddress,
}

impl Chain {
    /// Walks the chain that begins with a descriptor of the table, into a record that has nothing yet.
    pub(super) fn walk(
        memory: &mut Reader<'_>,
        table: VolatileSlice<'_>,
        head: u16,
        record: &mut Lent,
    ) -> Option<Self> {
        let status = GuestAddress(0);
        let mut chain =
            Self { head: [0; HEAD], head_bytes: 0, readable: 0, is_written: false, status };
        let mut table = Table::Whole(table);
        let mut descriptor = table.get(memory, head)?;
        if descriptor.is(Descriptor::INDIRECT) {
            table = Table::indirect(memory, descriptor)?;
            descriptor = table.get(memory, 0)?;
        }
        for _ in 0..table.entries().min(PARTS_MAX) {
            if descriptor.is(Descriptor::INDIRECT) {
                return None;
            }
            chain.add(memory, descriptor, record)?;
            if !descriptor.is(Descriptor::NEXT) {
                return Some(chain);
            }
            descriptor = table.get(memory, descriptor.next)?;
        }
        None
    }

    #[inline]
    fn add(
        &mut self,
        memory: &mut Reader<'_>,
        descriptor: Descriptor,
        record: &mut Lent,
    ) -> Option<()> {
        let mut part = Part { at: descriptor.at, bytes: descriptor.bytes };
        let whole = memory.slice(part.at, part.bytes as usize);
        if part.bytes == 0 || whole.is_none() && !memory.has(part.at, part.bytes) {
            return None;
        }
        let is_last = !descriptor.is(Descriptor::NEXT);
        if descriptor.is(Descriptor::WRITE) {
            self.is_written = true;
            if is_last {
                part.bytes -= 1;
                self.status = part.at.unchecked_add(part.bytes.into());
            }
        } else if self.is_written || is_last {
            return None;
        } else {
            self.take_head(memory, whole, &mut part)?;
            self.readable += usize::from(part.bytes > 0);
        }
        if part.bytes > 0 {
            record.push(part);
        }
        Some(())
    }

    /// Takes off a part what of it belongs to the head.
    #[inline]
    fn take_head(
        &mut self,
        memory: &Reader<'_>,
        whole: Option<VolatileSlice<'_>>,
        part: &mut Part,
    ) -> Option<()> {
        let bytes = (HEAD - self.head_bytes).min(part.bytes as usize);
        match (bytes, whole) {
            (0, _) => return Some(()),
            // Guests have it in one piece.
            (HEAD, Some(whole)) => {
                self.head = whole.get_ref::<u128>(0).ok()?.load().to_ne_bytes();
            }
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

    /// Leaves only what is read behind the head.
    pub(super) fn keep_readable(&self, record: &mut Lent) {
        record.keep(0..self.readable);
    }

    /// Leaves only what is written.
    pub(super) fn keep_writable(&self, record: &mut Lent) {
        record.keep(self.readable..record.parts().len());
    }
}

/// A descriptor, as it was when it was read.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    at: GuestAddress,
    bytes: u32,
    flags: u16,
    next: u16,
}

impl Descriptor {
    /// Flags: another one follows, what it describes is written, and it describes a table of others.
    const NEXT: u16 = 1;
    const WRITE: u16 = 2;
    const INDIRECT: u16 = 4;

    #[inline]
    const fn of(word: u128) -> Self {
        let word = u128::from_le(word);
        let (at, rest) = (GuestAddress(word as u64), (word >> 64) as u64);
        Self { at, bytes: rest as u32, flags: (rest >> 32) as u16, next: (rest >> 48) as u16 }
    }

    #[inline]
    const fn is(self, flag: u16) -> bool {
        self.flags & flag != 0
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
    fn indirect(memory: &mut Reader<'a>, descriptor: Descriptor) -> Option<Self> {
        let Descriptor { at, bytes, .. } = descriptor;
        let entries = u16::try_from(bytes as usize / DESCRIPTOR).ok()?;
        let is_whole = (bytes as usize).is_multiple_of(DESCRIPTOR);
        let cut = Self::Cut { at, entries };
        is_whole.then(|| memory.slice(at, bytes as usize).map_or(cut, Self::Whole))
    }

    fn entries(&self) -> usize {
        match self {
            Self::Whole(table) => table.len() / DESCRIPTOR,
            Self::Cut { entries, .. } => (*entries).into(),
        }
    }

    #[inline]
    fn get(&self, memory: &Reader<'_>, index: u16) -> Option<Descriptor> {
        let offset = usize::from(index) * DESCRIPTOR;
        let word = match self {
            Self::Whole(table) => table.get_ref(offset).ok()?.load(),
            Self::Cut { at, entries } if index < *entries => {
                memory.get(at.checked_add(offset as u64)?)?
            }
            Self::Cut { .. } => return None,
        };
        Some(Descriptor::of(word))
    }
}
