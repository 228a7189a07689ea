//! A disk in a raw image or on a block device: by O_DIRECT where the filesystem takes it.
//!
//! A piece of work is one call or a few of them, each a [`Job`] of the executor: what was moved short
//! is moved on, what is to be durable is synced, and zeroes are written where the filesystem cannot make
//! them. After a sync that failed no later one says success: what was lost, the kernel tells once.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Seek, SeekFrom},
    os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use counters::{Op, Status};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, fcntl},
    libc,
};

use crate::{
    buffer::{Buffer, Buffers},
    executor::Executor,
    sense,
    work::{Call, Ended, Job, Work},
};

/// A sector, in which virtual disks are counted.
const SECTOR: u32 = 512;
/// The largest block that O_DIRECT asks for.
const BLOCK_MAX: u32 = 4096;
/// Zeroes that are written at once.
const ZEROES: u32 = 1 << 20;

/// How long a lock is waited for, and how long it is not looked at meanwhile.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// How images of other formats begin: they are no raw images, and would be spoilt.
const FORMATS: [(&[u8], &str); 8] = [
    (b"QFI\xfb", "qcow2"),
    (b"KDMV", "vmdk"),
    (b"COWD", "vmdk"),
    (b"# Disk DescriptorFile", "vmdk"),
    (b"vhdxfile", "vhdx"),
    (b"conectix", "vhd"),
    (b"QED\0", "qed"),
    (b"<<< ", "vdi"),
];

/// An open image.
#[derive(Debug)]
pub(crate) struct FileImage {
    file: Arc<File>,
    /// Its size.
    pub(crate) bytes: u64,
    /// Offsets and lengths are multiples of so many bytes.
    pub(crate) block: u32,
    /// Whether the page cache is passed by.
    pub(crate) is_direct: bool,
    /// What tells it from other files.
    pub(crate) identity: Identity,
    /// Whether a sync failed.
    is_lost: bool,
}

/// What tells a file from others, whatever its name: a block device has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    File(u64, u64),
    Device(u64),
}

impl Identity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        match metadata.file_type().is_block_device() {
            true => Self::Device(metadata.rdev()),
            false => Self::File(metadata.dev(), metadata.ino()),
        }
    }
}

/// What becomes of a job that came back.
enum Next {
    Again,
    Ended(Option<Status>),
}

impl FileImage {
    /// Opens an image and locks it. One that is not there is made, where its size is given.
    ///
    /// # Errors
    /// What is wrong with it, without its name.
    pub(crate) fn open(path: &Path, size: Option<u64>, read_only: bool) -> Result<Self, String> {
        let is_new = !path.exists();
        if is_new && (read_only || size.is_none()) {
            return Err("there is no such image; with `size` it is made".into());
        }
        let missing = |it: &&Path| is_new && !it.as_os_str().is_empty() && !it.is_dir();
        if let Some(directory) = path.parent().filter(missing) {
            return Err(format!("there is no directory `{}`; make it first", directory.display()));
        }
        let open = |flags| {
            let mut options = OpenOptions::new();
            options.read(true).write(!read_only).create_new(is_new).custom_flags(flags).mode(0o600);
            options.open(path)
        };
        let (file, is_direct) = match open(libc::O_DIRECT) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                // Where it is refused, the file may have been made all the same.
                let file = OpenOptions::new().read(true).write(!read_only).open(path);
                (file.or_else(|_| open(0)).map_err(in_words)?, false)
            }
            file => (file.map_err(in_words)?, true),
        };
        let metadata = file.metadata().map_err(in_words)?;
        if !metadata.is_file() && !metadata.file_type().is_block_device() {
            return Err("it is neither a raw image nor a block device".into());
        }
        lock(&file, read_only)?;
        if let (true, Some(size)) = (is_new, size) {
            file.set_len(size).map_err(in_words)?;
        }
        let identity = Identity::of(&metadata);
        let file = Arc::new(file);
        let mut image = Self { file, bytes: 0, block: SECTOR, is_direct, identity, is_lost: false };
        image.measure(size)?;
        image.settle(path)?;
        Ok(image)
    }

    /// Its size, which is whole sectors.
    fn measure(&mut self, wanted: Option<u64>) -> Result<(), String> {
        let bytes = (&*self.file).seek(SeekFrom::End(0)).map_err(in_words)?;
        if bytes == 0 || !bytes.is_multiple_of(SECTOR.into()) {
            return Err(format!("it has {bytes} bytes, which are no whole sectors of {SECTOR}"));
        }
        if let Some(wanted) = wanted.filter(|wanted| *wanted != bytes) {
            return Err(format!("it has {bytes} bytes, and `size` says {wanted}"));
        }
        self.bytes = bytes;
        Ok(())
    }

    /// The block in which it is read and written, and that it is no image of another format.
    fn settle(&mut self, path: &Path) -> Result<(), String> {
        let mut first = Buffers::default().take(BLOCK_MAX as usize);
        let mut read = |bytes: u32| {
            let bytes = u64::from(bytes).min(self.bytes) as usize;
            self.file.read_exact_at(&mut first.bytes_mut()[..bytes], 0)
        };
        let is_refused = |read: &io::Result<()>| {
            read.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL))
        };
        let mut begin = read(SECTOR);
        if self.is_direct && is_refused(&begin) {
            self.block = BLOCK_MAX;
            begin = read(BLOCK_MAX);
        }
        begin.map_err(in_words)?;
        let head = first.bytes();
        if let Some((_, format)) = FORMATS.iter().find(|(magic, _)| head.starts_with(magic)) {
            return Err(format!(
                "it is an image of the format {format}; only raw ones are served: \
                 qemu-img convert -O raw {0} {0}.raw",
                path.display()
            ));
        }
        if !self.bytes.is_multiple_of(self.block.into()) {
            return Err(format!(
                "it has {} bytes, which are no whole blocks of {}",
                self.bytes, self.block
            ));
        }
        Ok(())
    }

    /// The file, for whoever asks it about its holes.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Begins a piece of work.
    pub(crate) fn start(&mut self, work: Work, executor: &mut Executor) -> Option<Ended> {
        let call = match work.op {
            Op::Read => Call::Read,
            Op::Write => Call::Write { durable: false },
            Op::Flush | Op::WriteFua if self.is_lost => {
                return Some(work.end(sense::write_failed(Errno::EIO)));
            }
            Op::WriteFua => Call::Write { durable: true },
            Op::Flush => Call::Sync,
            Op::Discard => Call::Punch,
            Op::WriteZeroes if work.keeps_space => Call::Zero,
            Op::WriteZeroes => Call::Punch,
            Op::Ats | Op::Reserve | Op::Release => return Some(work.end(Status::Good)),
        };
        executor.submit(Job { work, file: self.file(), call, moved: 0 });
        None
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
        match self.next(&mut job, result) {
            Next::Again => {
                if let (Call::Fill, None) = (job.call, &job.work.buffer) {
                    job.work.buffer = Some(zeroes(job.work.bytes, buffers));
                }
                executor.submit(job);
                None
            }
            Next::Ended(status) => {
                let Work { io, op, mut buffer, .. } = job.work;
                if let (Op::WriteZeroes, Some(zeroes)) =
                    (op, buffer.take_if(|_| op == Op::WriteZeroes))
                {
                    buffers.give(zeroes);
                }
                Some(Ended { io, buffer, status })
            }
        }
    }

    /// What becomes of a job after a call.
    fn next(&mut self, job: &mut Job, result: Result<u32, Errno>) -> Next {
        let ended = |status| Next::Ended(Some(status));
        match (job.call, result) {
            (_, Err(Errno::ECANCELED)) => Next::Ended(None),
            (_, Err(Errno::EINTR | Errno::EAGAIN)) => Next::Again,
            (Call::Read, Err(_) | Ok(0)) => ended(sense::read_failed()),
            (Call::Write { .. } | Call::Fill, Ok(0)) => ended(sense::write_failed(Errno::EIO)),
            (Call::Read | Call::Write { .. } | Call::Fill, Ok(bytes)) => {
                job.moved += bytes;
                match (job.moved < job.work.bytes, job.call) {
                    (true, _) => Next::Again,
                    (false, Call::Fill) => self.sync_if_asked(job),
                    (false, _) => ended(Status::Good),
                }
            }
            (Call::Punch, Err(Errno::EOPNOTSUPP)) if job.work.op == Op::Discard => {
                ended(Status::Good)
            }
            (Call::Punch, Err(Errno::EOPNOTSUPP)) => self.again(job, Call::Zero),
            (Call::Zero, Err(Errno::EOPNOTSUPP)) => self.again(job, Call::Fill),
            (Call::Punch | Call::Zero, Ok(_)) => self.sync_if_asked(job),
            (Call::Sync, Ok(_)) => ended(Status::Good),
            (Call::Sync | Call::Write { durable: true }, Err(error)) => {
                self.is_lost = true;
                ended(sense::write_failed(error))
            }
            (
                Call::Write { durable: false } | Call::Fill | Call::Punch | Call::Zero,
                Err(error),
            ) => ended(sense::write_failed(error)),
        }
    }

    fn again(&self, job: &mut Job, call: Call) -> Next {
        job.call = call;
        Next::Again
    }

    fn sync_if_asked(&self, job: &mut Job) -> Next {
        match (job.work.fua, self.is_lost) {
            (false, _) => Next::Ended(Some(Status::Good)),
            (true, true) => Next::Ended(Some(sense::write_failed(Errno::EIO))),
            (true, false) => self.again(job, Call::Sync),
        }
    }
}

fn zeroes(bytes: u32, buffers: &mut Buffers) -> Buffer {
    let mut buffer = buffers.take(bytes.min(ZEROES) as usize);
    buffer.bytes_mut().fill(0);
    buffer
}

/// A lock on the whole file, on the descriptor that does the I/O: another daemon wants the same, and
/// qemu locks some of its bytes. That of a daemon which was killed is held until the last of its I/O has
/// landed, which is waited for.
fn lock(file: &File, read_only: bool) -> Result<(), String> {
    let kind = if read_only { libc::F_RDLCK } else { libc::F_WRLCK };
    let whole = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match fcntl(file, FcntlArg::F_OFD_SETLK(&whole)) {
            Ok(_) => return Ok(()),
            Err(Errno::EAGAIN | Errno::EACCES) if Instant::now() < until => sleep(LOCK_PAUSE),
            Err(Errno::EAGAIN | Errno::EACCES) => {
                return Err("another process has it open: a second daemon, or qemu".into());
            }
            Err(error) => return Err(format!("it cannot be locked: {}", error.desc())),
        }
    }
}

fn in_words(error: io::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use counters::{IoId, Sense};

    use super::*;
    use crate::mailbox::{Letter, Mailbox};

    fn mailbox() -> Arc<Mailbox> {
        Arc::new(Mailbox::new().unwrap())
    }

    fn image(bytes: u64) -> (tempfile::TempDir, FileImage) {
        let directory = tempfile::tempdir().unwrap();
        let image = FileImage::open(&directory.path().join("i"), Some(bytes), false).unwrap();
        (directory, image)
    }

    fn work(op: Op, at: u64, bytes: u32) -> Work {
        let io = IoId::new(0, 0);
        Work { io, image: 0, op, at, bytes, buffer: None, fua: false, keeps_space: false }
    }

    fn filled(byte: u8, bytes: u32, buffers: &mut Buffers) -> Option<Buffer> {
        let mut buffer = buffers.take(bytes as usize);
        buffer.bytes_mut().fill(byte);
        Some(buffer)
    }

    /// Does a piece of work to its end.
    fn done(
        image: &mut FileImage,
        work: Work,
        executor: &mut Executor,
        mailbox: &Mailbox,
    ) -> Ended {
        let begun = image.start(work, executor);
        finish(image, begun, executor, mailbox)
    }

    fn finish(
        image: &mut FileImage,
        mut ended: Option<Ended>,
        executor: &mut Executor,
        mailbox: &Mailbox,
    ) -> Ended {
        let buffers = &mut Buffers::default();
        while ended.is_none() {
            executor.flush();
            let letters = mailbox.take().into_iter().filter_map(|letter| match letter {
                Letter::Returned(returned) => Some(*returned),
                _ => None,
            });
            let returned: Vec<_> = executor.reap().into_iter().chain(letters).collect();
            for (job, result) in returned {
                ended = image.resume(job, result, executor, buffers);
            }
        }
        ended.unwrap()
    }

    #[test]
    fn both_executors_do_the_same() {
        let buffers = &mut Buffers::default();
        let (ring, threads) = (mailbox(), mailbox());
        for (mut executor, mailbox) in [
            (Executor::new(Arc::clone(&ring)), ring),
            (Executor::of_threads(Arc::clone(&threads)), threads),
        ] {
            let (_directory, mut image) = image(4 << 20);
            let mut do_it = |work| {
                let ended = done(&mut image, work, &mut executor, &mailbox);
                assert_eq!(ended.status, Some(Status::Good));
                ended.buffer
            };
            for op in [Op::Write, Op::WriteFua] {
                let buffer = filled(op as u8, 1 << 20, buffers);
                do_it(Work { buffer, ..work(op, 1 << 20, 1 << 20) });
                do_it(work(Op::Flush, 0, 0));
                let holes =
                    [(Op::Discard, false), (Op::WriteZeroes, false), (Op::WriteZeroes, true)];
                for (at, (hole, keeps_space)) in (0..).zip(holes) {
                    let fua = keeps_space;
                    let hole = work(hole, (1 << 20) + 8192 * at, 4096);
                    do_it(Work { fua, keeps_space, ..hole });
                }
                let buffer = filled(9, 1 << 20, buffers);
                let read = do_it(Work { buffer, ..work(Op::Read, 1 << 20, 1 << 20) }).unwrap();
                let expected =
                    |page: usize| if page < 6 && page.is_multiple_of(2) { 0 } else { op as u8 };
                for (page, bytes) in read.bytes().chunks(4096).enumerate() {
                    assert!(bytes.iter().all(|byte| *byte == expected(page)), "page {page}");
                }
            }
        }
    }

    #[test]
    fn what_a_call_returns_decides_how_it_goes_on() {
        const MEDIUM: u8 = 3;
        const PROTECT: u8 = 7;
        let durable = Call::Write { durable: true };
        let plain = Call::Write { durable: false };
        let cases = [
            (Op::Read, Call::Read, Ok(4096), Ok(Status::Good)),
            (Op::Read, Call::Read, Ok(512), Err(Call::Read)),
            (Op::Read, Call::Read, Err(Errno::EINTR), Err(Call::Read)),
            (Op::Read, Call::Read, Ok(0), Ok(sense::read_failed())),
            (Op::Read, Call::Read, Err(Errno::EIO), Ok(sense::read_failed())),
            (Op::Write, plain, Ok(0), Ok(sense::write_failed(Errno::EIO))),
            (Op::Write, plain, Err(Errno::ENOSPC), Ok(sense::write_failed(Errno::ENOSPC))),
            (Op::WriteFua, durable, Ok(4096), Ok(Status::Good)),
            (Op::Discard, Call::Punch, Err(Errno::EOPNOTSUPP), Ok(Status::Good)),
            (Op::WriteZeroes, Call::Punch, Err(Errno::EOPNOTSUPP), Err(Call::Zero)),
            (Op::WriteZeroes, Call::Zero, Err(Errno::EOPNOTSUPP), Err(Call::Fill)),
            (Op::WriteZeroes, Call::Zero, Err(Errno::EIO), Ok(sense::write_failed(Errno::EIO))),
            (Op::Flush, Call::Sync, Ok(0), Ok(Status::Good)),
        ];
        let (_directory, mut image) = image(1 << 20);
        for (op, call, result, expected) in cases {
            let mut job = Job { work: work(op, 0, 4096), file: image.file(), call, moved: 0 };
            let next = match image.next(&mut job, result) {
                Next::Ended(status) => Ok(status.unwrap()),
                Next::Again => Err(job.call),
            };
            assert_eq!(next, expected, "{op:?}, {call:?}, {result:?}");
            assert!(!image.is_lost);
        }
        let key = |status| match status {
            Status::CheckCondition(Sense { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        assert_eq!(key(sense::write_failed(Errno::EDQUOT)), PROTECT);
        assert_eq!(key(sense::read_failed()), MEDIUM);
    }

    #[test]
    fn after_a_sync_that_failed_none_says_success() {
        for call in [Call::Sync, Call::Write { durable: true }] {
            let (_directory, mut image) = image(1 << 20);
            let mut job = Job { work: work(Op::Flush, 0, 0), file: image.file(), call, moved: 0 };
            image.next(&mut job, Err(Errno::EIO));
            let mut executor = Executor::of_threads(mailbox());
            let buffers = &mut Buffers::default();
            for op in [Op::Flush, Op::WriteFua] {
                let buffer = filled(1, 4096, buffers);
                let ended = image.start(Work { buffer, ..work(op, 0, 4096) }, &mut executor);
                assert_eq!(ended.unwrap().status, Some(sense::write_failed(Errno::EIO)), "{op:?}");
            }
            let zeroes = Work { fua: true, ..work(Op::WriteZeroes, 0, 4096) };
            let mut job = Job { work: zeroes, file: image.file(), call: Call::Punch, moved: 0 };
            let next = image.next(&mut job, Ok(0));
            assert!(matches!(next, Next::Ended(Some(Status::CheckCondition(_)))));
        }
    }

    #[test]
    fn zeroes_are_written_where_they_cannot_be_made() {
        let mailbox = mailbox();
        let mut executor = Executor::new(Arc::clone(&mailbox));
        let buffers = &mut Buffers::default();
        let (_directory, mut image) = image(8 << 20);
        let buffer = filled(7, 4 << 20, buffers);
        done(&mut image, Work { buffer, ..work(Op::Write, 0, 4 << 20) }, &mut executor, &mailbox);
        let zeroes = work(Op::WriteZeroes, 4096, 3 << 20);
        let job = Job { work: zeroes, file: image.file(), call: Call::Zero, moved: 0 };
        let refused = Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        let begun = image.resume(job, refused, &mut executor, buffers);
        let ended = finish(&mut image, begun, &mut executor, &mailbox);
        assert_eq!(ended.status, Some(Status::Good));
        let buffer = filled(9, 4 << 20, buffers);
        let read = Work { buffer, ..work(Op::Read, 0, 4 << 20) };
        let read = done(&mut image, read, &mut executor, &mailbox).buffer.unwrap();
        let zeroes = 4096..4096 + (3 << 20);
        let is_right = |(at, byte): (usize, &u8)| *byte == if zeroes.contains(&at) { 0 } else { 7 };
        assert!(read.bytes().iter().enumerate().all(is_right));
    }
}
