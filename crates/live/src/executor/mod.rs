//! Who makes the calls of back ends, so that no thread that serves guests ever waits for a disk:
//! io_uring, or threads where it is not permitted.

use std::{io, os::fd::BorrowedFd, sync::Arc};

use counters::IoId;

use crate::{
    mailbox::Mailbox,
    work::{Call, Job, Question, Returned},
};

#[cfg(test)]
pub(crate) mod medium;
mod pool;
mod ring;

use pool::Pool;
use ring::Ring;

/// Makes calls.
#[derive(Debug)]
pub(crate) struct Executor {
    ring: Option<Ring>,
    pool: Pool,
    /// What a test has in the place of both.
    #[cfg(test)]
    pub(crate) medium: Option<medium::Medium>,
}

/// Whether this process may use io_uring; threads make the calls where it may not.
///
/// # Errors
/// What the system says.
pub fn try_io_uring() -> io::Result<()> {
    Ring::new().map(drop)
}

impl Executor {
    /// An executor; what its threads do is told to `mailbox`.
    pub(crate) fn new(mailbox: Arc<Mailbox>) -> Self {
        let ring = Ring::new().ok();
        let pool = Pool::new(mailbox, ring.is_none());
        Self {
            ring,
            pool,
            #[cfg(test)]
            medium: None,
        }
    }

    /// One as where io_uring is not permitted.
    #[cfg(test)]
    pub(crate) fn of_threads(mailbox: Arc<Mailbox>) -> Self {
        Self { ring: None, pool: Pool::new(mailbox, true), medium: None }
    }

    /// One in front of a disk that does as it is told.
    #[cfg(test)]
    pub(crate) fn of_medium(medium: medium::Medium, mailbox: Arc<Mailbox>) -> Self {
        Self { medium: Some(medium), ..Self::of_threads(mailbox) }
    }

    /// What is to be waited for, where there is something.
    pub(crate) fn ring(&self) -> Option<BorrowedFd<'_>> {
        self.ring.as_ref().map(Ring::descriptor)
    }

    /// Takes a job; it begins with the next [`Self::flush`].
    pub(crate) fn submit(&mut self, job: Job) {
        #[cfg(test)]
        if let Some(medium) = &mut self.medium {
            return medium.submit(job);
        }
        match &mut self.ring {
            Some(ring) if job.call != Call::Look => ring.submit(job),
            _ => self.pool.submit(job),
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
        #[cfg(test)]
        if let Some(medium) = &mut self.medium {
            return medium.reap();
        }
        self.ring.as_mut()?.reap()
    }

    /// Tries to recall what is done for a command; it comes back in any case.
    pub(crate) fn cancel(&mut self, io: IoId) {
        if let Some(ring) = &mut self.ring {
            ring.cancel(io);
        }
    }

    /// An image is no longer there.
    pub(crate) fn close(&mut self, image: usize) {
        self.pool.close(image);
    }

    /// Asks a file about its holes; the answer comes by the mailbox.
    pub(crate) fn ask(&mut self, question: Question) {
        self.pool.ask(question);
    }
}
