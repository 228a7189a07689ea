//! Parts of a guest's memory that it lends to an I/O, so that its data need not be copied.
//!
//! Whoever has them keeps the guest's memory mapped. A guest reads and writes its memory whenever it
//! likes, so nothing here makes a slice of it: the daemon copies byte by byte, and the kernel is told
//! places. What was lent to the kernel comes back before the guest is told that the I/O has ended,
//! whatever becomes of it: see `machine.rs` of what cannot be recalled.

use std::{fmt::Debug, ops::Range, sync::Arc};

use smallvec::SmallVec;
use vm_memory::{Address, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, VolatileSlice};

use crate::access;

/// Parts at most that are lent as they are; a request of more is copied.
const LENT_MAX: usize = 256;

/// A part of the guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) at: GuestAddress,
    pub(crate) bytes: u32,
}

/// Parts of a request: a few for most of them, which need no memory of their own.
pub(crate) type Parts = SmallVec<[Part; 4]>;

/// Where bytes are in the daemon, and how many.
pub(crate) type Span = (*mut u8, usize);
/// Mostly there is one.
pub(crate) type Spans = SmallVec<[Span; 1]>;

/// Whoever keeps the memory of a guest mapped.
pub(crate) trait Lender: Debug + Send + Sync {
    /// The memory.
    fn map(&self) -> &GuestMemoryMmap;
}

/// What a guest has lent: a record that serves one request after the other.
#[derive(Clone, Debug)]
pub(crate) struct Lent {
    lender: Arc<dyn Lender>,
    parts: Parts,
    len: usize,
}

impl Lent {
    /// Nothing yet.
    pub(crate) fn new(lender: Arc<dyn Lender>) -> Self {
        Self { lender, parts: Parts::new(), len: 0 }
    }

    /// Whether that one has lent it.
    pub(crate) fn is_of<L: Lender>(&self, lender: &Arc<L>) -> bool {
        Arc::as_ptr(&self.lender).cast::<()>() == Arc::as_ptr(lender).cast()
    }

    /// The parts.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// One more part, which is in the memory of the lender.
    #[inline]
    pub(crate) fn push(&mut self, part: Part) {
        self.len += part.bytes as usize;
        self.parts.push(part);
    }

    /// Only those parts stay.
    #[inline]
    pub(crate) fn keep(&mut self, kept: Range<usize>) {
        if kept != (0..self.parts.len()) {
            self.parts.truncate(kept.end);
            self.parts.drain(..kept.start);
            self.len = self.parts.iter().map(|part| part.bytes as usize).sum();
        }
    }

    /// Nothing is lent any longer. Room for more parts than most requests have is not kept.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        match self.parts.spilled() {
            true => self.parts = Parts::new(),
            false => self.parts.clear(),
        }
    }

    /// Whether the parts can be lent as they are: they begin and end at multiples of `align`.
    pub(crate) fn is_aligned(&self, align: u32) -> bool {
        let is_aligned =
            |part: &Part| (part.at.0 | u64::from(part.bytes)) & u64::from(align - 1) == 0;
        self.parts.len() <= LENT_MAX && self.parts.iter().all(is_aligned)
    }

    /// How many bytes.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Writes a byte that is no part of it: how its request ended.
    pub(crate) fn write_status(&self, at: GuestAddress, status: u8) {
        // It was looked up with the parts.
        let _ = access::put(self.lender.map(), at, status);
    }

    /// So many of the bytes.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        let parts = self.pieces(range.clone()).collect();
        Self { lender: Arc::clone(&self.lender), parts, len: range.len() }
    }

    /// What a range is in.
    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = Part> + '_ {
        let (mut skip, mut left) = (range.start, range.len());
        self.parts.iter().filter_map(move |part| {
            let all = part.bytes as usize;
            let from = skip.min(all);
            let bytes = (all - from).min(left);
            (skip, left) = (skip - from, left - bytes);
            let at = part.at.unchecked_add(from as u64);
            (bytes > 0).then_some(Part { at, bytes: bytes as u32 })
        })
    }

    /// Copies from it what is there from a place on. Memory that was taken away reads as zeroes.
    pub(crate) fn copy_to(&self, from: usize, mut into: &mut [u8]) {
        for part in self.pieces(from..from + into.len()) {
            let (now, later) = into.split_at_mut(part.bytes as usize);
            // It was looked up when it was lent.
            let _ = access::read(self.lender.map(), part.at, now);
            into = later;
        }
    }

    /// Copies into it, from a place on.
    pub(crate) fn copy_from(&self, at: usize, mut bytes: &[u8]) {
        for part in self.pieces(at..at + bytes.len()) {
            let (now, later) = bytes.split_at(part.bytes as usize);
            let _ = access::write(self.lender.map(), part.at, now);
            bytes = later;
        }
    }

    /// Where a range is in the daemon, for the kernel: nothing else may read or write there. It is so
    /// as long as this lives.
    pub(crate) fn spans(&self, range: Range<usize>) -> Spans {
        let map = self.lender.map();
        let mut spans = Spans::new();
        let mut add = |slice: VolatileSlice<'_>| {
            spans.push((slice.ptr_guard_mut().as_ptr(), slice.len()));
        };
        for part in self.pieces(range) {
            let bytes = part.bytes as usize;
            match access::slice(map, part.at, bytes) {
                Some(slice) => add(slice),
                None => {
                    GuestMemoryBackend::get_slices(map, part.at, bytes).flatten().for_each(&mut add)
                }
            }
        }
        spans
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The memory of a guest for tests: two regions of 64 KiB, one behind the other.
    #[derive(Debug)]
    pub(crate) struct Guest(pub(crate) GuestMemoryMmap);

    impl Lender for Guest {
        fn map(&self) -> &GuestMemoryMmap {
            &self.0
        }
    }

    pub(crate) const REGION: u64 = 64 << 10;

    impl Guest {
        pub(crate) fn new() -> Arc<Self> {
            let ranges = [0, REGION].map(|at| (GuestAddress(at), REGION as usize));
            Arc::new(Self(GuestMemoryMmap::from_ranges(&ranges).expect("memory")))
        }
    }

    /// Parts at these places, of so many bytes each.
    pub(crate) fn lend(guest: &Arc<Guest>, parts: &[(u64, u32)]) -> Lent {
        let mut lent = Lent::new(guest.clone());
        let part = |&(at, bytes)| Part { at: GuestAddress(at), bytes };
        parts.iter().map(part).for_each(|part| lent.push(part));
        lent
    }

    #[test]
    fn what_is_cut_into_parts_is_one_range() {
        let guest = Guest::new();
        let lent = lend(&guest, &[(100, 10), (0, 5), (REGION - 3, 8)]);
        let all: Vec<u8> = (1..=23).collect();
        lent.copy_from(0, &all);
        let mut back = [0; 23];
        lent.copy_to(0, &mut back);
        assert_eq!(back, *all);
        for (from, to) in [(0, 23), (3, 12), (10, 15), (14, 23), (7, 7)] {
            let part = lent.part(from..to);
            let mut back = vec![0; to - from];
            part.copy_to(0, &mut back);
            assert_eq!((back.as_slice(), part.len()), (&all[from..to], to - from));
            let spans = part.spans(0..to - from);
            assert_eq!(spans.iter().map(|(_, bytes)| bytes).sum::<usize>(), to - from);
        }
        // The last part is in two regions, which are not neighbours in the daemon.
        assert_eq!(lent.spans(0..23).len(), 4);
        assert_eq!(lent.spans(16..20).len(), 2);
    }

    #[test]
    fn what_is_not_aligned_is_not_lent() {
        let guest = Guest::new();
        for (wanted, align, is_lent) in [
            (lend(&guest, &[(512, 512), (4096, 1024)]), 512, true),
            (lend(&guest, &[(512, 512), (4096, 1024)]), 4096, false),
            (lend(&guest, &[(512, 511), (4096, 1)]), 512, false),
            (lend(&guest, &[(1, 512)]), 512, false),
            (lend(&guest, &[(1, 7)]), 1, true),
            (lend(&guest, &[(0, 1); LENT_MAX + 1]), 1, false),
        ] {
            assert_eq!(wanted.is_aligned(align), is_lent, "{align}");
        }
    }
}
