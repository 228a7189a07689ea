//! Calls by io_uring: the one place of the crate that the compiler cannot check.
//!
//! The kernel reads and writes the data of a job while it has it. So a job, with its file and its data,
//! or what keeps a guest's memory mapped that has lent them, is kept here from its submission until it came
//! back; what has not come back when the ring goes is never freed.

use std::{
    collections::VecDeque,
    fmt, io, mem,
    os::fd::{AsRawFd, BorrowedFd},
};

use counters::IoId;
use io_uring::{
    IoUring, opcode,
    squeue::{Entry, Flags},
    types::{Fd, FsyncFlags},
};
use nix::libc;

use crate::{
    lent::Span,
    work::{Call, Job, Returned},
};

/// Submissions that a ring has room for.
const ENTRIES: u32 = 256;
/// Submissions that the kernel is told of in one call where it has nothing yet: the disk is at work with the first ones
/// while the next are prepared, and does not end all at one instant. 32 at once were 15 % fewer I/Os.
const FIRST_TOLD: usize = 4;
/// What the answer to an attempt to cancel is known by.
const CANCEL: u64 = u64::MAX;

/// A ring and what it has.
pub(super) struct Ring {
    ring: IoUring,
    jobs: Vec<Option<Held>>,
    free: Vec<usize>,
    /// What the kernel was not told of yet.
    fresh: VecDeque<Entry>,
}

/// A job that the kernel has, and where its data are if they are in several places.
#[derive(Debug)]
struct Held {
    job: Job,
    places: Box<[Place]>,
}

/// A place of data, as the kernel has it in its lists.
#[derive(Debug)]
#[repr(transparent)]
struct Place(libc::iovec);

#[expect(unsafe_code, reason = "the compiler does not know what a place is of")]
// SAFETY: it is an address for the kernel, and goes where the job goes, which keeps what is there.
unsafe impl Send for Place {}

impl Ring {
    pub(super) fn new() -> io::Result<Self> {
        // The kernel says when it has something for this thread to do, which needs no interrupt then.
        let mut builder = IoUring::builder();
        let ring = builder.setup_coop_taskrun().setup_taskrun_flag().build(ENTRIES);
        let ring = ring.or_else(|_| IoUring::new(ENTRIES))?;
        // What is far waits in a thread of the kernel's: those that hang may not be all there are. Kernels before
        // 5.15 are not to be told.
        let _ = ring.submitter().register_iowq_max_workers(&mut [ENTRIES, 0]);
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
        let held = self.jobs[place].insert(Held { job, places: Box::default() });
        let is_far = held.job.is_far;
        let entry = held.entry().user_data(place as u64);
        self.fresh.push_back(if is_far { entry.flags(Flags::ASYNC) } else { entry });
    }

    /// Tells the kernel of what is new: of as much at once as it has already, for then the disk is not without work
    /// meanwhile. What it does not take now it takes the next time.
    pub(super) fn flush(&mut self) {
        while !self.fresh.is_empty() {
            let has = (self.jobs.len() - self.free.len()).saturating_sub(self.fresh.len());
            for _ in 0..has.max(FIRST_TOLD) {
                let Some(entry) = self.fresh.front() else { break };
                #[expect(
                    unsafe_code,
                    reason = "the kernel gets the addresses that are in the entry"
                )]
                // SAFETY: they are those of data that `jobs` has until they came back: in a buffer or a
                // list on the heap, where it stays when `jobs` grows and nobody looks at it
                // meanwhile; or in the memory of a guest, which is mapped until then, and to which there
                // is no reference ever.
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
            let Some(completion) = self.ring.completion().next() else {
                // Any call of it does, and there will be one where something is new.
                let has_more = self.fresh.is_empty() && self.ring.submission().taskrun();
                if !has_more || self.ring.submit().is_err() || self.ring.completion().is_empty() {
                    return None;
                }
                continue;
            };
            if completion.user_data() == CANCEL {
                continue;
            }
            let place = usize::try_from(completion.user_data()).ok()?;
            let Held { job, .. } = self.jobs.get_mut(place)?.take()?;
            self.free.push(place);
            let result = completion.result();
            let moved = u32::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
            return Some((job, moved));
        }
    }

    pub(super) fn cancel(&mut self, io: IoId) {
        let is_it = |held: &Option<Held>| held.as_ref().is_some_and(|held| held.job.work.io == io);
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

impl Held {
    /// The submission of the job.
    fn entry(&mut self) -> Entry {
        let job = &mut self.job;
        let file = Fd(job.file.as_raw_fd());
        let (at, range) = job.range();
        let bytes = u64::from(job.bytes);
        let spans = job.buffer().map(|data| data.spans(range)).unwrap_or_default();
        match job.call {
            Call::Read | Call::Write { .. } | Call::Fill if spans.len() > 1 => {
                let place =
                    |(at, bytes): Span| Place(libc::iovec { iov_base: at.cast(), iov_len: bytes });
                self.places = spans.into_iter().map(place).collect();
                let (places, count) = (self.places.as_ptr().cast(), self.places.len() as u32);
                match job.call {
                    Call::Read => opcode::Readv::new(file, places, count).offset(at).build(),
                    call => {
                        let writev = opcode::Writev::new(file, places, count).offset(at);
                        writev.rw_flags(call.write_flags()).build()
                    }
                }
            }
            Call::Read => {
                let (place, length) = first(&spans);
                opcode::Read::new(file, place, length).offset(at).build()
            }
            Call::Write { .. } | Call::Fill => {
                let (place, length) = first(&spans);
                let write = opcode::Write::new(file, place, length).offset(at);
                write.rw_flags(job.call.write_flags()).build()
            }
            Call::Sync => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            Call::Punch | Call::Zero => {
                let mode = job.call.fallocate_flags().bits();
                opcode::Fallocate::new(file, bytes).offset(at).mode(mode).build()
            }
            // Threads look.
            Call::Look => opcode::Nop::new().build(),
        }
    }
}

/// The only place of data, or none.
fn first(spans: &[Span]) -> (*mut u8, u32) {
    let first = spans.first().copied();
    first.map_or((std::ptr::null_mut(), 0), |(at, bytes)| (at, bytes as u32))
}
