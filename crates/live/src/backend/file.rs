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
