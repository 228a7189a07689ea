//! A disk in the daemon's memory, gone with it. What was never written takes none.

use std::sync::LazyLock;

use counters::Op;

use crate::{buffer::Data, export::Extent, work::Work};

/// Memory is taken in pieces of so many bytes.
const CHUNK: usize = 64 << 10;
/// What was never written. As a constant it would be so many bytes of the binary.
static EMPTY: LazyLock<Box<[u8]>> = LazyLock::new(|| vec![0; CHUNK].into());

/// The bytes of a disk.
#[derive(Debug)]
pub(crate) struct Memory {
    chunks: Vec<Option<Box<[u8]>>>,
}

impl Memory {
    /// A disk of so many bytes, all zeroes.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { chunks: vec![None; bytes.div_ceil(CHUNK as u64) as usize] }
    }

    /// It has as many bytes from now on; those that are new are zeroes.
    pub(super) fn grow(&mut self, bytes: u64) {
        self.chunks.resize(bytes.div_ceil(CHUNK as u64) as usize, None);
    }

    /// Does a piece of work.
    pub(crate) fn work(&mut self, work: &mut Work) {
        match (work.op, &mut work.buffer) {
            (Op::Read, Some(buffer)) => self.read(work.at, buffer),
            (Op::Write | Op::WriteFua, Some(buffer)) => self.write(work.at, buffer),
            (Op::Discard | Op::WriteZeroes, _) => self.clear(work.at, work.bytes),
            _ => {}
        }
    }

    fn read(&self, at: u64, data: &mut Data) {
        let mut done = 0;
        for (chunk, from, bytes) in pieces(at, data.len()) {
            let chunk = self.chunks[chunk].as_deref().unwrap_or(&EMPTY);
            data.copy_from(done, &chunk[from..from + bytes]);
            done += bytes;
        }
    }

    fn write(&mut self, at: u64, data: &Data) {
        let mut done = 0;
        for (chunk, from, bytes) in pieces(at, data.len()) {
            let empty = || vec![0; CHUNK].into_boxed_slice();
            let chunk = self.chunks[chunk].get_or_insert_with(empty);
            data.copy_to(done, &mut chunk[from..from + bytes]);
            done += bytes;
        }
    }

    fn clear(&mut self, at: u64, bytes: u32) {
        for (chunk, from, bytes) in pieces(at, bytes as usize) {
            let chunk = &mut self.chunks[chunk];
            match chunk {
                Some(some) if bytes < CHUNK => some[from..from + bytes].fill(0),
                _ => *chunk = None,
            }
        }
    }

    /// Which parts are taken; neighbours of a kind are one.
    pub(crate) fn map(&self, at: u64, bytes: u32) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        for (chunk, _, bytes) in pieces(at, bytes as usize) {
            let (bytes, is_hole) = (bytes as u32, self.chunks[chunk].is_none());
            match extents.last_mut() {
                Some(last) if last.is_hole == is_hole => last.bytes += bytes,
                _ => extents.push(Extent { bytes, is_hole }),
            }
        }
        extents
    }
}

/// The chunks that so many bytes are in: which, from where in it, and how many.
fn pieces(at: u64, bytes: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let (mut at, mut left) = (at, bytes);
    std::iter::from_fn(move || {
        let (chunk, from) = ((at / CHUNK as u64) as usize, (at % CHUNK as u64) as usize);
        let bytes = left.min(CHUNK - from);
        at += bytes as u64;
        left -= bytes;
        (bytes > 0).then_some((chunk, from, bytes))
    })
}
