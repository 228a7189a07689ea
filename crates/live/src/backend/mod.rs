//! What holds the bytes of disks. A back end is a file here: it is started on a piece of work, and has
//! ended it at once or ends it later, by an executor.

use std::io;

use counters::{IoId, Op, Status};

use crate::{
    buffer::{Buffer, Buffers},
    executor::{Executor, Job},
    export::Extent,
};

pub(crate) mod file;
mod memory;

pub(crate) use file::FileImage;
pub(crate) use memory::Memory;

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

/// An image: what a virtual disk is in real time.
#[derive(Debug)]
pub(crate) enum Image {
    /// Nothing is kept, and reads give zeroes.
    Null,
    Memory(Memory),
    File(FileImage),
}

impl Image {
    /// Begins a piece of work; how it ended, if it has.
    pub(crate) fn start(&mut self, work: Work, executor: &mut Executor) -> Option<Ended> {
        match self {
            Self::Null => Some(null(work)),
            Self::Memory(memory) => Some(memory.work(work)),
            Self::File(file) => file.start(work, executor),
        }
    }

    /// A job of this image came back; how the work ended, if it has.
    pub(crate) fn resume(
        &mut self,
        job: Job,
        result: io::Result<u32>,
        executor: &mut Executor,
        buffers: &mut Buffers,
    ) -> Option<Ended> {
        match self {
            Self::Null | Self::Memory(_) => None,
            Self::File(file) => file.resume(job, result, executor, buffers),
        }
    }

    /// What parts are allocated, where that is known at once.
    pub(crate) fn map(&self, at: u64, bytes: u32) -> Option<Vec<Extent>> {
        match self {
            Self::Null => Some(vec![Extent { bytes, is_hole: true }]),
            Self::Memory(memory) => Some(memory.map(at, bytes)),
            Self::File(_) => None,
        }
    }
}

/// The back end that keeps nothing.
fn null(mut work: Work) -> Ended {
    if let (Op::Read, Some(buffer)) = (work.op, &mut work.buffer) {
        buffer.bytes_mut().fill(0);
    }
    work.end(Status::Good)
}
