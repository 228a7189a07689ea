//! Calls by io_uring: the one place of the crate that the compiler cannot check.
//!
//! The kernel reads and writes the buffer of a job while it has it. So a job, with its buffer and its
//! file, is kept here from its submission until it came back; what has not come back when the ring goes
//! is never freed.

use std::{
    collections::VecDeque,
    fmt, io, mem,
    os::fd::{AsRawFd, BorrowedFd},
};

use counters::IoId;
use io_uring::{
    IoUring, opcode,
    squeue::Entry,
    types::{Fd, FsyncFlags},
};
use nix::libc;

use crate::work::{Call, Job, Returned};

/// Submissions that are made at once; more go in several system calls.
const ENTRIES: u32 = 256;
/// What the answer to an attempt to cancel is known by.
const CANCEL: u64 = u64::MAX;

/// A ring and what it has.
pub(super) struct Ring {
    ring: IoUring,
    jobs: Vec<Option<Job>>,
    free: Vec<usize>,
    /// What the kernel was not told of yet.
    fresh: VecDeque<Entry>,
}

impl Ring {
    pub(super) fn new() -> io::Result<Self> {
        let ring = IoUring::builder().setup_coop_taskrun().build(ENTRIES);
        let ring = ring.or_else(|_| IoUring::new(ENTRIES))?;
        Ok(Self { ring, jobs: Vec::new(), free: Vec::new(), fresh: VecDeque::new() })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        let descriptor = self.ring.as_raw_fd();
        #[expect(unsafe_code, reason = "the crate hands out a number")]
        // SAFETY: it is open as long as the ring, which is borrowed.
        unsafe {
            BorrowedFd::borrow_raw(descriptor)
        }
    }

    pub(super) fn submit(&mut self, job: Job) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() - 1
        });
        let entry = entry(self.jobs[place].insert(job)).user_data(place as u64);
        self.fresh.push_back(entry);
    }

    /// Tells the kernel of what is new; what it does not take now it takes the next time.
    pub(super) fn flush(&mut self) {
        while !self.fresh.is_empty() {
            while let Some(entry) = self.fresh.front() {
                #[expect(
                    unsafe_code,
                    reason = "the kernel gets the addresses that are in the entry"
                )]
                // SAFETY: they are those of a buffer that `jobs` has until it came back, on the heap,
                // where it stays when `jobs` grows; and nobody looks at it there meanwhile.
                let is_full = unsafe { self.ring.submission().push(entry) }.is_err();
                if is_full {
                    break;
                }
                self.fresh.pop_front();
            }
            if self.ring.submit().is_err() {
                return;
            }
        }
    }

    pub(super) fn reap(&mut self) -> Option<Returned> {
        loop {
            let completion = self.ring.completion().next()?;
            if completion.user_data() == CANCEL {
                continue;
            }
            let place = usize::try_from(completion.user_data()).ok()?;
            let job = self.jobs.get_mut(place)?.take()?;
            self.free.push(place);
            let result = completion.result();
            let moved = u32::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
            return Some((job, moved));
        }
    }

    pub(super) fn cancel(&mut self, io: IoId) {
        let is_it = |job: &Option<Job>| job.as_ref().is_some_and(|job| job.work.io == io);
        if let Some(place) = self.jobs.iter().position(is_it) {
            let cancel = opcode::AsyncCancel::new(place as u64).build();
            self.fresh.push_back(cancel.user_data(CANCEL));
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        mem::forget(mem::take(&mut self.jobs));
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("jobs", &self.jobs).finish_non_exhaustive()
    }
}

/// The submission of a job.
fn entry(job: &mut Job) -> Entry {
    let file = Fd(job.file.as_raw_fd());
    let (at, range) = job.range();
    let (bytes, length) = (u64::from(job.bytes), range.len() as u32);
    let place = |job: &mut Job| {
        let buffer = job.buffer();
        buffer.map_or(std::ptr::null_mut(), |buffer| buffer.bytes_mut()[range].as_mut_ptr())
    };
    match job.call {
        Call::Read => opcode::Read::new(file, place(job), length).offset(at).build(),
        Call::Write { durable } => {
            let flags = if durable { libc::RWF_DSYNC } else { 0 };
            opcode::Write::new(file, place(job), length).offset(at).rw_flags(flags).build()
        }
        Call::Fill => opcode::Write::new(file, place(job), length).offset(at).build(),
        Call::Sync => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        Call::Punch | Call::Zero => {
            let mode = job.call.fallocate_flags().bits();
            opcode::Fallocate::new(file, bytes).offset(at).mode(mode).build()
        }
    }
}
