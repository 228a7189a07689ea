//! What holds the bytes of disks. A back end is a file here: it is started on a piece of work, and has
//! ended it at once or ends it later, by an executor.

use std::io;

use counters::{IoId, Op, Status};
use nix::errno::Errno;

use crate::{
    buffer::{Buffers, Data},
    executor::Executor,
    export::Extent,
    work::{Ended, Job, Work},
};

mod calls;
mod changes;
pub(crate) mod file;
mod memory;

use calls::Calls;
pub use file::LOCKED;
pub(crate) use file::{FileImage, Made};
pub(crate) use memory::Memory;

/// An image: what a virtual disk is in real time.
#[derive(Debug)]
pub(crate) enum Image {
    /// Nothing is kept. Reads give zeroes, or what was in the memory that a guest has lent.
    Null,
    Memory(Memory),
    File(FileImage),
}

impl Image {
    /// Does a piece of work where that needs no call; how it ended, if it was done.
    #[inline]
    pub(crate) fn try_now(&mut self, work: &mut Work) -> Option<Status> {
        match self {
            Self::Null => null(work),
            Self::Memory(memory) => memory.work(work),
            Self::File(_) => return None,
        }
        Some(Status::Good)
    }

    /// Begins a piece of work; how it ended, if it has.
    pub(crate) fn start(
        &mut self,
        mut work: Work,
        executor: &mut Executor,
        buffers: &mut Buffers,
    ) -> Option<Ended> {
        match (self.try_now(&mut work), self) {
            (None, Self::File(file)) => file.calls.start(work, executor, buffers),
            (status, _) => Some(Ended { io: work.io, buffer: work.buffer, status }),
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
        self.calls()?.resume(job, result, executor, buffers)
    }

    /// What a call of it failed with since this was asked, and what it is called.
    pub(crate) fn take_failure(&mut self) -> Option<(Errno, &str)> {
        match self {
            Self::Null | Self::Memory(_) => None,
            Self::File(file) => Some((file.calls.take_failure()?, &file.title)),
        }
    }

    /// Begins what need not wait any longer; how the first of it ended that has, after which this is
    /// called again.
    pub(crate) fn wake(&mut self, executor: &mut Executor, buffers: &mut Buffers) -> Option<Ended> {
        self.calls()?.wake(executor, buffers)
    }

    /// Tries to recall a command; how it ended, if that is so at once.
    pub(crate) fn cancel(&mut self, io: IoId, executor: &mut Executor) -> Option<Ended> {
        self.calls()?.cancel(io, executor)
    }

    /// A command of so many bytes is not waited for any longer.
    pub(crate) fn let_go(&mut self, io: IoId, bytes: u32) {
        if let Some(calls) = self.calls() {
            calls.let_go(io, bytes);
        }
    }

    /// It has become as large as this.
    pub(crate) fn grow(&mut self, bytes: u64) {
        if let Self::Memory(memory) = self {
            memory.grow(bytes);
        }
    }

    const fn calls(&mut self) -> Option<&mut Calls> {
        match self {
            Self::Null | Self::Memory(_) => None,
            Self::File(file) => Some(&mut file.calls),
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

/// The back end that keeps nothing. What a guest has lent stays as it is.
fn null(work: &mut Work) {
    if let (Op::Read, Some(Data::Own(buffer))) = (work.op, &mut work.buffer) {
        buffer.bytes_mut().fill(0);
    }
}
