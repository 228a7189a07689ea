//! What back ends have to do, and the calls by which they do it.

use std::{fs::File, io, ops::Range, sync::Arc};

use counters::{IoId, Op, Status};
use nix::fcntl::FallocateFlags;

use crate::buffer::Buffer;

/// A command of the engine, as a back end sees it.
#[derive(Debug)]
pub(crate) struct Work {
    /// The command.
    pub(crate) io: IoId,
    /// The image, by its place.
    pub(crate) image: usize,
    pub(crate) op: Op,
    /// Where it begins, in bytes of the image.
    pub(crate) at: u64,
    pub(crate) bytes: u32,
    /// The data of a write, or where to those of a read.
    pub(crate) buffer: Option<Buffer>,
    /// Of a discard or of zeroes: whether it is to be durable.
    pub(crate) fua: bool,
    /// Of zeroes: whether the space stays taken.
    pub(crate) keeps_space: bool,
}

/// How a piece of work ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) io: IoId,
    /// The buffer comes back.
    pub(crate) buffer: Option<Buffer>,
    /// `None`: it was let go of, as asked.
    pub(crate) status: Option<Status>,
}

impl Work {
    /// It has ended.
    pub(crate) fn end(self, status: Status) -> Ended {
        Ended { io: self.io, buffer: self.buffer, status: Some(status) }
    }
}

/// A call to make for a piece of work.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) file: Arc<File>,
    pub(crate) call: Call,
    /// Bytes that were moved by calls before.
    pub(crate) moved: u32,
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    Write {
        /// Whether it is to be durable when it comes back.
        durable: bool,
    },
    /// What was written is durable.
    Sync,
    /// The range is given back, and reads as zeroes.
    Punch,
    /// The range reads as zeroes, and stays taken.
    Zero,
    /// The range is overwritten with what is in the buffer, again and again.
    Fill,
}

impl Call {
    /// How `fallocate` does it.
    pub(crate) fn fallocate_flags(self) -> FallocateFlags {
        let how = match self {
            Self::Zero => FallocateFlags::FALLOC_FL_ZERO_RANGE,
            _ => FallocateFlags::FALLOC_FL_PUNCH_HOLE,
        };
        how | FallocateFlags::FALLOC_FL_KEEP_SIZE
    }
}

impl Job {
    /// Where the call begins in the image, and the bytes of the buffer that it moves.
    pub(crate) fn range(&self) -> (u64, Range<usize>) {
        let buffer = self.work.buffer.as_ref().map_or(0, |buffer| buffer.len());
        let (moved, all) = (self.moved as usize, self.work.bytes as usize);
        let range = match self.call {
            Call::Fill => 0..buffer.min(all - moved),
            _ => moved.min(buffer)..buffer,
        };
        (self.work.at + u64::from(self.moved), range)
    }
}

/// A job that came back: how many bytes were moved, or what went wrong.
pub(crate) type Returned = (Job, io::Result<u32>);

/// A question about the holes of an image.
#[derive(Debug)]
pub(crate) struct Question {
    /// Who asks, and what it is known by there.
    pub(crate) guest: u64,
    pub(crate) cookie: u64,
    pub(crate) file: Arc<File>,
    pub(crate) at: u64,
    pub(crate) bytes: u32,
    /// Whether the first extent is enough.
    pub(crate) one: bool,
}
