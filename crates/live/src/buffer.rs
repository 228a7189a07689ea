//! Memory for data: what a request carries from its guest to the disk and back.
//!
//! A buffer begins where a page does, as O_DIRECT wants it. It belongs to one place at a time: to a
//! connection that fills it, to the request's record, or to whoever does the I/O, which gives it back.
//! Data of a virtual machine are in its own memory where they can be.

use std::ops::Range;

use smallvec::smallvec;

use crate::lent::{Lent, Spans};

/// What O_DIRECT wants of the place of a buffer, at most: a page.
const PAGE: usize = 4096;
/// The powers of two in which buffers come: a page is the smallest, and the largest has room for
/// [`BUFFER_MAX`] bytes that begin anywhere in a block.
const CLASSES: usize = (BUFFER_MAX / PAGE).ilog2() as usize + 2;
/// The largest buffer, which is the largest request.
pub(crate) const BUFFER_MAX: usize = 32 << 20;
/// Bytes that are kept for the next requests.
const SPARE_MAX: usize = 16 << 20;

/// Bytes that were freed after which the system gets them back.
const FREED_MAX: usize = 64 << 20;

/// Bytes from the beginning of a page on.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Box<[u8]>,
    start: u32,
    len: u32,
}

impl Buffer {
    fn new(class: usize) -> Self {
        let memory = vec![0; (PAGE << class) + PAGE].into_boxed_slice();
        let start = memory.as_ptr().align_offset(PAGE) as u32;
        Self { memory, start, len: 0 }
    }

    /// What it holds.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start as usize..][..self.len()]
    }

    /// The same, to be filled.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.len();
        &mut self.memory[self.start as usize..][..len]
    }

    /// How many it holds.
    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    fn class(&self) -> usize {
        ((self.memory.len() - PAGE) / PAGE).ilog2() as usize
    }
}

/// Where the data of an I/O are.
#[derive(Debug)]
pub(crate) enum Data {
    /// In the daemon's own memory.
    Own(Buffer),
    /// In the memory of a guest. What goes from hand to hand is small: moving it cost more than this memory.
    Lent(Box<Lent>),
}

impl Data {
    /// How many bytes.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::Own(buffer) => buffer.len(),
            Self::Lent(lent) => lent.len(),
        }
    }

    /// Copies out of them what is there from a place on.
    pub(crate) fn copy_to(&self, from: usize, into: &mut [u8]) {
        match self {
            Self::Own(buffer) => into.copy_from_slice(&buffer.bytes()[from..][..into.len()]),
            Self::Lent(lent) => lent.copy_to(from, into),
        }
    }

    /// Copies into them, from a place on.
    pub(crate) fn copy_from(&mut self, at: usize, bytes: &[u8]) {
        match self {
            Self::Own(buffer) => buffer.bytes_mut()[at..][..bytes.len()].copy_from_slice(bytes),
            Self::Lent(lent) => lent.copy_from(at, bytes),
        }
    }

    /// Where a range of them is, for the kernel.
    pub(crate) fn spans(&mut self, range: Range<usize>) -> Spans {
        match self {
            Self::Own(buffer) => {
                let bytes = &mut buffer.bytes_mut()[range];
                smallvec![(bytes.as_mut_ptr(), bytes.len())]
            }
            Self::Lent(lent) => lent.spans(range),
        }
    }
}

impl From<Buffer> for Data {
    fn from(buffer: Buffer) -> Self {
        Self::Own(buffer)
    }
}

/// Buffers that wait for their next use.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    spare: [Vec<Buffer>; CLASSES],
    spare_bytes: usize,
    /// Bytes that were not kept since the system was last given back what is free.
    freed: usize,
}

impl Buffers {
    /// A buffer of so many bytes, [`BUFFER_MAX`] and two blocks at most. What is in it is left from its last use.
    pub(crate) fn take(&mut self, len: usize) -> Buffer {
        let class = len.div_ceil(PAGE).next_power_of_two().ilog2() as usize;
        let mut buffer = match self.spare[class].pop() {
            Some(buffer) => {
                self.spare_bytes -= PAGE << class;
                buffer
            }
            None => Buffer::new(class),
        };
        buffer.len = len as u32;
        buffer
    }

    /// They are needed no longer.
    pub(crate) fn give(&mut self, data: impl Into<Data>) {
        let Data::Own(buffer) = data.into() else { return };
        let class = buffer.class();
        if self.spare_bytes + (PAGE << class) <= SPARE_MAX {
            self.spare_bytes += PAGE << class;
            self.spare[class].push(buffer);
        } else {
            self.freed += PAGE << class;
        }
    }

    /// A client has gone, and with it what it had not read.
    pub(crate) const fn trim_soon(&mut self) {
        self.freed = FREED_MAX;
    }

    /// Gives back to the system what was much and is free, where the allocator would keep it: between blocks
    /// that are not free it does. That takes milliseconds, so it is for who is about to sleep.
    pub(crate) fn trim(&mut self) {
        if self.freed >= FREED_MAX {
            self.freed = 0;
            #[cfg(target_env = "gnu")]
            {
                #[expect(unsafe_code, reason = "it is a function of another language")]
                // SAFETY: it takes a number, and may be called at any time by any thread.
                unsafe {
                    nix::libc::malloc_trim(0)
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_with_a_page_and_are_used_again() {
        let mut buffers = Buffers::default();
        for len in [1, 512, PAGE, PAGE + 1, 65_536, 1_000_000, BUFFER_MAX] {
            let mut buffer = buffers.take(len);
            assert_eq!(buffer.bytes().len(), len);
            assert!(buffer.bytes().as_ptr().align_offset(PAGE) == 0);
            buffer.bytes_mut().fill(7);
            buffers.give(buffer);
            assert_eq!(buffers.spare_bytes > 0, len <= SPARE_MAX, "{len}");
            let again = buffers.take(len);
            assert_eq!(buffers.spare_bytes, 0);
            assert_eq!(again.bytes()[0] == 7, len <= SPARE_MAX, "{len}");
        }
    }
}
