//! How a piece of work on a file is done: one call or a few of them, each a [`Job`] of the executor.
//!
//! What was moved short is moved on, what is to be durable is synced, and zeroes are written where the
//! filesystem cannot make them. What is of no whole blocks goes through a buffer of whole ones:
//!
//! ```text
//!   a read:              read the blocks -> hand out the part
//!   a write:   (alone)   read the blocks -> put the part in -> write them
//!   zeroes:    (alone)   the same of the block at either end, and the blocks between by fallocate,
//!                        after a hole a look whether the image still reaches as far
//! ```
//!
//! After a sync that failed no later one says success: what was lost, the kernel tells once.

#[cfg(test)]
mod tests;

use std::{fs::File, io, sync::Arc};

use counters::{IoId, Op, Status};
use nix::{errno::Errno, libc};

use super::changes::{Change, Changes};
use crate::{
    buffer::{Buffer, Buffers},
    executor::Executor,
    sense,
    work::{Call, Ended, Job, Work},
};

/// Zeroes that are written at once.
const ZEROES: u32 = 1 << 20;

/// What is done to a file.
#[derive(Debug)]
pub(crate) struct Calls {
    file: Arc<File>,
    /// Offsets and lengths of calls are multiples of so many bytes.
    block: u32,
    /// Whether another process or another host answers them.
    is_far: bool,
    changes: Changes,
    /// Whether a sync failed.
    is_lost: bool,
    /// What the last call failed with, until somebody asks.
    failed: Option<Errno>,
}

/// What becomes of a job that came back.
#[derive(Debug)]
enum Next {
    Again,
    /// What this call was about is done.
    Done,
    Ended(Option<Status>),
}

impl Calls {
    /// Calls on a file that moves blocks of so many bytes.
    pub(super) fn new(file: Arc<File>, block: u32) -> Self {
        let changes = Changes::default();
        Self { file, block, is_far: false, changes, is_lost: false, failed: None }
    }

    /// The same on a filesystem that may be another process's or another host's.
    pub(super) fn far(self, is_far: bool) -> Self {
        Self { is_far, ..self }
    }

    /// The file, for whoever asks it about its holes.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Begins a piece of work, or has it wait for its neighbours.
    pub(crate) fn start(
        &mut self,
        work: Work,
        executor: &mut Executor,
        buffers: &mut Buffers,
    ) -> Option<Ended> {
        let work = self.changes.admit(self.change(&work), work)?;
        self.begin(work, executor, buffers)
    }

    /// Begins what waited and need not any longer; the first of it that has ended at once, after which
    /// this is called again.
    pub(crate) fn wake(&mut self, executor: &mut Executor, buffers: &mut Buffers) -> Option<Ended> {
        while let Some(work) = self.changes.next() {
            let ended = self.begin(work, executor, buffers);
            if ended.is_some() {
                return ended;
            }
        }
        None
    }

    /// Tries to recall a command; how it ended, if it had not begun.
    pub(crate) fn cancel(&mut self, io: IoId, executor: &mut Executor) -> Option<Ended> {
        if let Some(work) = self.changes.recall(io) {
            return Some(Ended { io, buffer: work.buffer, status: None });
        }
        executor.cancel(io);
        None
    }

    /// A command is not waited for any longer: its buffer stays with the kernel, and so do its blocks.
    pub(crate) fn let_go(&mut self, io: IoId, bytes: u32) {
        self.changes.let_go(io, bytes.into());
    }

    /// A job came back: it goes on, or the work has ended.
    pub(crate) fn resume(
        &mut self,
        mut job: Job,
        result: io::Result<u32>,
        executor: &mut Executor,
        buffers: &mut Buffers,
    ) -> Option<Ended> {
        let result =
            result.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)));
        let is_lost = self.changes.is_lost(job.work.io);
        let next = match self.next(&mut job, result) {
            _ if is_lost => Next::Ended(None),
            Next::Done => self.go_on(&mut job, buffers),
            other => other,
        };
        match next {
            Next::Ended(status) => self.end(job, status, buffers),
            Next::Again | Next::Done => {
                if job.call == Call::Fill && job.bounce.is_none() {
                    job.bounce = Some(zeroes(job.bytes, buffers).into());
                }
                executor.submit(job);
                None
            }
        }
    }

    /// What a call failed with since this was asked.
    pub(crate) const fn take_failure(&mut self) -> Option<Errno> {
        self.failed.take()
    }

    /// What a command changes. Those of whole blocks are in nobody's way but of those that are not.
    fn change(&self, work: &Work) -> Change {
        let Work { io, op, .. } = *work;
        let (from, to) = match op {
            Op::Write | Op::WriteFua | Op::Discard | Op::WriteZeroes => {
                (self.floor(work.at), self.ceiling(work.end_at()))
            }
            _ => (0, 0),
        };
        let is_alone = (from, to) != (work.at, work.end_at()) && op != Op::Discard;
        Change { io, from, to, is_alone }
    }

    fn floor(&self, at: u64) -> u64 {
        at - at % u64::from(self.block)
    }

    fn ceiling(&self, at: u64) -> u64 {
        at.next_multiple_of(self.block.into())
    }

    fn begin(
        &mut self,
        work: Work,
        executor: &mut Executor,
        buffers: &mut Buffers,
    ) -> Option<Ended> {
        let is_durable = matches!(work.op, Op::Flush | Op::WriteFua);
        let from = work.at;
        let mut job = Job { is_far: self.is_far, ..Job::new(work, self.file()) };
        if self.is_lost && is_durable {
            return self.end(job, Some(sense::write_failed(Errno::EIO)), buffers);
        }
        if self.aim(&mut job, from, buffers) {
            executor.submit(job);
            return None;
        }
        self.end(job, Some(Status::Good), buffers)
    }

    /// Aims a job at what of its work begins at a place; `false` where nothing is to be done.
    fn aim(&self, job: &mut Job, from: u64, buffers: &mut Buffers) -> bool {
        let (op, end, block) = (job.work.op, job.work.end_at(), u64::from(self.block));
        let (mut to, is_whole) = match op {
            Op::Read | Op::Write | Op::WriteFua => {
                (end, from.is_multiple_of(block) && end.is_multiple_of(block))
            }
            Op::WriteZeroes if from.is_multiple_of(block) && end - from >= block => {
                (self.floor(end), true)
            }
            Op::WriteZeroes => (end.min(self.floor(from) + block), false),
            Op::Discard => (self.floor(end), true),
            _ => (from, true),
        };
        let mut at = if op == Op::Discard { self.ceiling(from) } else { from };
        job.call = match op {
            Op::Read => Call::Read,
            _ if !is_whole => Call::Read,
            Op::Write => Call::Write { durable: false },
            Op::WriteFua => Call::Write { durable: true },
            Op::Flush => Call::Sync,
            Op::Discard if at < to => Call::Punch,
            Op::WriteZeroes if job.work.keeps_space => Call::Zero,
            Op::WriteZeroes => Call::Punch,
            Op::Discard | Op::Ats | Op::Reserve | Op::Release | Op::Copy => return false,
        };
        if !is_whole {
            (at, to) = (self.floor(at), self.ceiling(to));
            job.bounce = Some(buffers.take((to - at) as usize).into());
        }
        (job.at, job.bytes, job.moved) = (at, (to - at) as u32, 0);
        true
    }

    /// What becomes of a job after a call.
    fn next(&mut self, job: &mut Job, result: Result<u32, Errno>) -> Next {
        let ended = |status| Next::Ended(Some(status));
        match (job.call, result) {
            (_, Err(Errno::ECANCELED)) => Next::Ended(None),
            (_, Err(Errno::EINTR | Errno::EAGAIN)) => Next::Again,
            (Call::Read | Call::Write { .. } | Call::Fill, Ok(0)) => self.fail(job, Errno::EIO),
            (Call::Read | Call::Write { .. } | Call::Fill, Ok(bytes)) => {
                job.moved += bytes;
                if job.moved < job.bytes { Next::Again } else { Next::Done }
            }
            (Call::Punch, Err(Errno::EOPNOTSUPP)) if job.work.op == Op::Discard => {
                ended(Status::Good)
            }
            (Call::Punch, Err(Errno::EOPNOTSUPP)) => {
                job.call = Call::Zero;
                Next::Again
            }
            (Call::Zero, Err(Errno::EOPNOTSUPP)) => {
                job.call = Call::Fill;
                Next::Again
            }
            // What is beyond the end has no holes, and would not be read.
            (Call::Punch, Ok(_)) if job.work.op == Op::WriteZeroes => {
                job.call = Call::Look;
                Next::Again
            }
            (Call::Look, Ok(there)) if there < job.bytes => {
                job.call = Call::Zero;
                Next::Again
            }
            (Call::Punch | Call::Look | Call::Zero, Ok(_)) => Next::Done,
            (Call::Sync, Ok(_)) => ended(Status::Good),
            (Call::Sync | Call::Write { durable: true }, Err(error)) => {
                self.is_lost = true;
                self.fail(job, error)
            }
            (_, Err(error)) => self.fail(job, error),
        }
    }

    fn fail(&mut self, job: &Job, error: Errno) -> Next {
        self.failed = Some(error);
        Next::Ended(Some(match job.call {
            Call::Read => sense::read_failed(),
            _ => sense::write_failed(error),
        }))
    }

    /// What comes after what was done.
    fn go_on(&self, job: &mut Job, buffers: &mut Buffers) -> Next {
        let op = job.work.op;
        if job.call == Call::Read && job.bounce.is_some() {
            job.carry_over();
            if op != Op::Read {
                job.call = Call::Write { durable: op == Op::WriteFua };
                job.moved = 0;
                return Next::Again;
            }
        }
        job.bounce.take().into_iter().for_each(|bounce| buffers.give(bounce));
        let done = job.at + u64::from(job.bytes);
        if op == Op::WriteZeroes && done < job.work.end_at() && self.aim(job, done, buffers) {
            return Next::Again;
        }
        let is_durable = !job.work.fua || matches!(op, Op::Read | Op::WriteFua);
        match (is_durable, self.is_lost) {
            (true, _) => Next::Ended(Some(Status::Good)),
            (false, true) => Next::Ended(Some(sense::write_failed(Errno::EIO))),
            (false, false) => {
                job.call = Call::Sync;
                Next::Again
            }
        }
    }

    /// It has ended; nobody is told of one that was let go of.
    fn end(&mut self, job: Job, status: Option<Status>, buffers: &mut Buffers) -> Option<Ended> {
        let Job { work: Work { io, buffer, .. }, bounce, .. } = job;
        bounce.into_iter().for_each(|bounce| buffers.give(bounce));
        if self.changes.leave(io) {
            buffer.into_iter().for_each(|buffer| buffers.give(buffer));
            return None;
        }
        Some(Ended { io, buffer, status })
    }
}

fn zeroes(bytes: u32, buffers: &mut Buffers) -> Buffer {
    let mut buffer = buffers.take(bytes.min(ZEROES) as usize);
    buffer.bytes_mut().fill(0);
    buffer
}
