//! Who makes the calls of back ends, so that no thread that serves guests ever waits for a disk:
//! io_uring, or threads where it is not permitted.

use std::{fs::File, io, os::fd::BorrowedFd, sync::Arc};

use counters::IoId;
use nix::fcntl::FallocateFlags;

use crate::{backend::Work, mailbox::Mailbox};

mod pool;
mod ring;

use pool::Pool;
pub(crate) use pool::Question;
use ring::Ring;

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
    fn fallocate_flags(self) -> FallocateFlags {
        let how = match self {
            Self::Zero => FallocateFlags::FALLOC_FL_ZERO_RANGE,
            _ => FallocateFlags::FALLOC_FL_PUNCH_HOLE,
        };
        how | FallocateFlags::FALLOC_FL_KEEP_SIZE
    }
}

impl Job {
    /// Where the call begins in the image, and the bytes of the buffer that it moves.
    fn range(&self) -> (u64, std::ops::Range<usize>) {
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

/// Makes calls.
#[derive(Debug)]
pub(crate) struct Executor {
    ring: Option<Ring>,
    pool: Pool,
}

impl Executor {
    /// An executor; what its threads do is told to `mailbox`.
    pub(crate) fn new(mailbox: Arc<Mailbox>) -> Self {
        let ring = Ring::new().ok();
        let pool = Pool::new(mailbox, ring.is_none());
        Self { ring, pool }
    }

    /// What is to be waited for, where there is something.
    pub(crate) fn ring(&self) -> Option<BorrowedFd<'_>> {
        self.ring.as_ref().map(Ring::descriptor)
    }

    /// Takes a job; it begins with the next [`Self::flush`].
    pub(crate) fn submit(&mut self, job: Job) {
        match &mut self.ring {
            Some(ring) => ring.submit(job),
            None => self.pool.submit(job),
        }
    }

    /// All that was taken begins.
    pub(crate) fn flush(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.flush();
        }
    }

    /// A job that came back; those of threads come by the mailbox.
    pub(crate) fn reap(&mut self) -> Option<Returned> {
        self.ring.as_mut()?.reap()
    }

    /// Tries to recall what is done for a command; it comes back in any case.
    pub(crate) fn cancel(&mut self, io: IoId) {
        if let Some(ring) = &mut self.ring {
            ring.cancel(io);
        }
    }

    /// Asks a file about its holes; the answer comes by the mailbox.
    pub(crate) fn ask(&mut self, question: Question) {
        self.pool.ask(question);
    }
}
