//! Calls by threads: what io_uring has no call for, and all of them where it is not permitted. Each image
//! has its own, so that one which never answers keeps none of another's.

use std::{
    io,
    os::unix::fs::FileExt,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use nix::{
    errno::Errno,
    fcntl::fallocate,
    unistd::{Whence, lseek64},
};

use crate::{
    buffer::{Buffers, Data},
    export::Extent,
    mailbox::{Letter, Mailbox},
    work::{Call, Job, Question},
};

/// Threads of an image where there is no io_uring: as many calls are under way.
const THREADS: usize = 16;
/// Threads beside io_uring.
const THREADS_BESIDE: usize = 1;
/// Extents that an answer has at most; a client asks again for the rest.
const EXTENTS_MAX: usize = 1_024;

/// Threads, begun with the first call of each image.
#[derive(Debug)]
pub(super) struct Pool {
    mailbox: Arc<Mailbox>,
    threads: usize,
    /// By image.
    tasks: Vec<Option<Sender<Task>>>,
}

#[derive(Debug)]
enum Task {
    Job(Job),
    Question(Question),
}

impl Pool {
    pub(super) fn new(mailbox: Arc<Mailbox>, is_all: bool) -> Self {
        let threads = if is_all { THREADS } else { THREADS_BESIDE };
        Self { mailbox, threads, tasks: Vec::new() }
    }

    pub(super) fn submit(&mut self, job: Job) {
        self.send(job.work.image, Task::Job(job));
    }

    pub(super) fn ask(&mut self, question: Question) {
        self.send(question.image, Task::Question(question));
    }

    /// The threads of an image end with what they were given.
    pub(super) fn close(&mut self, image: usize) {
        if let Some(tasks) = self.tasks.get_mut(image) {
            *tasks = None;
        }
    }

    fn send(&mut self, image: usize, task: Task) {
        if self.tasks.len() <= image {
            self.tasks.resize_with(image + 1, || None);
        }
        let tasks = self.tasks[image].get_or_insert_with(|| begin(self.threads, &self.mailbox));
        if let Err(refused) = tasks.send(task) {
            let failed = io::Error::from_raw_os_error(Errno::EAGAIN as i32);
            self.mailbox.send(refused.0.ended(Err(failed)));
        }
    }
}

/// Begins as many threads as the machine allows.
fn begin(threads: usize, mailbox: &Arc<Mailbox>) -> Sender<Task> {
    let (sender, receiver) = channel();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..threads {
        let (receiver, mailbox) = (Arc::clone(&receiver), Arc::clone(mailbox));
        let work = move || serve(&receiver, &mailbox);
        drop(thread::Builder::new().name("calls".into()).spawn(work));
    }
    sender
}

fn serve(tasks: &Mutex<Receiver<Task>>, mailbox: &Mailbox) {
    loop {
        let next = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut task) = next else { return };
        let result = match &mut task {
            Task::Job(job) => perform(job),
            Task::Question(_) => Ok(0),
        };
        mailbox.send(task.ended(result));
    }
}

impl Task {
    fn ended(self, result: io::Result<u32>) -> Letter {
        match self {
            Self::Job(job) => Letter::Returned(Box::new((job, result))),
            Self::Question(question) => {
                let extents = result.map(|_| extents(&question)).unwrap_or_default();
                Letter::Mapped { guest: question.guest, cookie: question.cookie, extents }
            }
        }
    }
}

fn perform(job: &mut Job) -> io::Result<u32> {
    let (at, range) = job.range();
    let file = Arc::clone(&job.file);
    let (call, bytes) = (job.call, job.bytes);
    let moved = match (call, job.buffer()) {
        (Call::Read, Some(Data::Own(buffer))) => {
            file.read_at(&mut buffer.bytes_mut()[range], at)?
        }
        (Call::Write { .. } | Call::Fill, Some(Data::Own(buffer))) => {
            file.write_at(&buffer.bytes()[range], at)?
        }
        // There is no call here that takes memory which is not the daemon's own.
        (Call::Read, Some(Data::Lent(lent))) => {
            let mut own = Buffers::default().take(range.len());
            let read = file.read_at(own.bytes_mut(), at)?;
            lent.copy_from(range.start, &own.bytes()[..read]);
            read
        }
        (Call::Write { .. }, Some(Data::Lent(lent))) => {
            let mut own = Buffers::default().take(range.len());
            lent.copy_to(range.start, own.bytes_mut());
            file.write_at(own.bytes(), at)?
        }
        (Call::Punch | Call::Zero, _) => {
            fallocate(&*file, call.fallocate_flags(), at as i64, bytes.into())?;
            0
        }
        (Call::Look, _) => {
            let end = lseek64(&*file, 0, Whence::SeekEnd)? as u64;
            end.saturating_sub(at).min(bytes.into()) as usize
        }
        _ => 0,
    };
    if matches!(call, Call::Sync | Call::Write { durable: true }) {
        file.sync_data()?;
    }
    Ok(moved as u32)
}

/// What parts of a range are allocated. Where the file does not tell, all of it is.
fn extents(question: &Question) -> Vec<Extent> {
    let Question { file, at, bytes, one, .. } = question;
    let most = if *one { 1 } else { EXTENTS_MAX };
    let end = at + u64::from(*bytes);
    let seek = |from: u64, whence| {
        let found = lseek64(file, from as i64, whence);
        found.map(|found| u64::try_from(found).unwrap_or(end).clamp(from, end))
    };
    let (mut from, mut extents) = (*at, Vec::new());
    while from < end && extents.len() < most {
        let data = match seek(from, Whence::SeekData) {
            Ok(data) => data,
            Err(Errno::ENXIO) => end,
            Err(_) => from,
        };
        let is_hole = data > from;
        let to = if is_hole { data } else { seek(from, Whence::SeekHole).unwrap_or(end) };
        // A hole that somebody filled between the two calls.
        let to = if to == from { end } else { to };
        extents.push(Extent { bytes: (to - from) as u32, is_hole });
        from = to;
    }
    extents
}
