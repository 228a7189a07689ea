//! What back ends have to do, and the calls by which they do it.

use std::{fs::File, io, ops::Range, sync::Arc};

use counters::{IoId, Op, Status};
use nix::fcntl::FallocateFlags;

use crate::buffer::Data;

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
    pub(crate) buffer: Option<Data>,
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
    pub(crate) buffer: Option<Data>,
    /// `None`: it was let go of, as asked.
    pub(crate) status: Option<Status>,
}

impl Work {
    /// Where it ends, in bytes of the image.
    pub(crate) fn end_at(&self) -> u64 {
        self.at + u64::from(self.bytes)
    }
}

/// A call to make for a piece of work.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) file: Arc<File>,
    pub(crate) call: Call,
    /// What the call is about, in bytes of the image: of the work all, or a part, or whole blocks of it.
    pub(crate) at: u64,
    pub(crate) bytes: u32,
    /// Bytes that were moved by calls before.
    pub(crate) moved: u32,
    /// What they are moved from or to, where that is not the buffer of the work.
    pub(crate) bounce: Option<Data>,
    /// Whether another process or another host answers the call, which whoever makes it then waits for.
    pub(crate) is_far: bool,
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
    /// Whether the image has all of the range, which somebody may have cut: how many bytes of it there are.
    Look,
    /// The range reads as zeroes, and stays taken. An image that was cut has it again, as by a write.
    Zero,
    /// The range is overwritten with what is in the buffer, again and again.
    Fill,
}

impl Call {
    /// How `fallocate` does it.
    pub(crate) fn fallocate_flags(self) -> FallocateFlags {
        match self {
            Self::Zero => FallocateFlags::FALLOC_FL_ZERO_RANGE,
            _ => FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE,
        }
    }

    /// The flags of a write.
    pub(crate) const fn write_flags(self) -> i32 {
        match self {
            Self::Write { durable: true } => nix::libc::RWF_DSYNC,
            _ => 0,
        }
    }
}

impl Job {
    /// One that is about all of its work, and calls nothing yet.
    pub(crate) fn new(work: Work, file: Arc<File>) -> Self {
        let Work { at, bytes, .. } = work;
        Self { work, file, call: Call::Sync, at, bytes, moved: 0, bounce: None, is_far: false }
    }

    /// The buffer of the call.
    pub(crate) const fn buffer(&mut self) -> Option<&mut Data> {
        match &mut self.bounce {
            Some(bounce) => Some(bounce),
            None => self.work.buffer.as_mut(),
        }
    }

    /// Where the call begins in the image, and the bytes of the buffer that it moves.
    pub(crate) fn range(&mut self) -> (u64, Range<usize>) {
        let buffer = self.buffer().map_or(0, |buffer| buffer.len());
        let (moved, all) = (self.moved as usize, self.bytes as usize);
        let range = match self.call {
            Call::Fill => 0..buffer.min(all - moved),
            _ => moved.min(buffer)..buffer,
        };
        (self.at + u64::from(self.moved), range)
    }

    /// Copies what the work and the blocks that were read have in common: out of them for a read, into
    /// them for a write, and zeroes for what has no data.
    pub(crate) fn carry_over(&mut self) {
        let Some(Data::Own(bounce)) = &mut self.bounce else { return };
        let (from, to) =
            (self.at.max(self.work.at), (self.at + u64::from(self.bytes)).min(self.work.end_at()));
        let part = |begin: u64| (from - begin) as usize..(to - begin) as usize;
        let blocks = &mut bounce.bytes_mut()[part(self.at)];
        match (self.work.op, &mut self.work.buffer) {
            (Op::Read, Some(data)) => data.copy_from(part(self.work.at).start, blocks),
            (_, Some(data)) => data.copy_to(part(self.work.at).start, blocks),
            (_, None) => blocks.fill(0),
        }
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
    pub(crate) image: usize,
    pub(crate) file: Arc<File>,
    pub(crate) at: u64,
    pub(crate) bytes: u32,
    /// Whether the first extent is enough.
    pub(crate) one: bool,
}
