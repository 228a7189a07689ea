//! A disk in a raw image or on a block device: by O_DIRECT where the filesystem takes it. It is opened
//! and locked here; what is done to it then is in `calls.rs`.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Seek, SeekFrom},
    os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, fcntl},
    libc,
    sys::{statfs::fstatfs, statvfs::fstatvfs},
};

use super::calls::Calls;
use crate::buffer::Buffers;

/// A sector, in which virtual disks are counted.
pub(crate) const SECTOR: u32 = counters::SECTOR as u32;
/// The largest block that O_DIRECT asks for.
const BLOCK_MAX: u32 = 4096;

/// What is said of an image that somebody else has locked.
pub const LOCKED: &str = "another process has it open: a second daemon, or qemu";
/// How long a lock is waited for, and how long it is not looked at meanwhile.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// How images of other formats begin: they are no raw images, and would be spoilt.
const FORMATS: [(&[u8], &str); 10] = [
    (b"QFI\xfb", "qcow2"),
    (b"KDMV", "vmdk"),
    (b"COWD", "vmdk"),
    (b"# Disk DescriptorFile", "vmdk"),
    (b"vhdxfile", "vhdx"),
    (VHD, "vhd"),
    (b"QED\0", "qed"),
    (b"<<< ", "vdi"),
    (b"WithoutFreeSpace", "parallels"),
    (b"WithouFreSpacExt", "parallels"),
];
/// How the last sector of a VHD of fixed size begins, which has nothing in front of its data.
const VHD: &[u8] = b"conectix";

/// Filesystems that another process or another host answers for, by what `statfs` says (statfs(2)): FUSE, NFS,
/// CIFS, SMB 2, SMB, Ceph, 9p.
const FAR: [u32; 7] =
    [0x6573_5546, 0x6969, 0xff53_4d42, 0xfe53_4d42, 0x517b, 0x00c3_6400, 0x0102_1997];

/// An open image.
#[derive(Debug)]
pub(crate) struct FileImage {
    pub(super) calls: Calls,
    /// What it is called where something is wrong with it.
    pub(crate) title: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// What it is read and written in.
    pub(crate) block: u32,
    /// What a discard gives back is whole blocks of so many bytes; of a block device and of a filesystem that somebody
    /// else answers for, which do not tell, `block`.
    pub(crate) frees: u32,
    /// Whether the page cache is passed by.
    pub(crate) is_direct: bool,
    /// What tells it from other files.
    pub(crate) identity: Identity,
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

/// An image that was made, and that is removed again where nothing comes of it.
#[derive(Debug)]
pub(crate) struct Made(Option<PathBuf>);

impl Made {
    /// It stays.
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // It is as empty as it was made: nobody was let in.
            let _ = fs::remove_file(path);
        }
    }
}

impl FileImage {
    /// Opens an image and locks it. One that is not there is made, where its size is given.
    ///
    /// # Errors
    /// What is wrong with it, without its name.
    pub(crate) fn open(
        path: &Path,
        size: Option<u64>,
        read_only: bool,
        is_raw: bool,
    ) -> Result<(Self, Option<Made>), String> {
        let is_new = !path.exists();
        if is_new && read_only {
            return Err(
                "there is no such image, and none is made of a disk that is `read_only`".into()
            );
        }
        if is_new && size.is_none() {
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
        let made = is_new.then(|| Made(Some(path.to_path_buf())));
        let metadata = file.metadata().map_err(in_words)?;
        if !metadata.is_file() && !metadata.file_type().is_block_device() {
            return Err("it is neither a raw image nor a block device".into());
        }
        lock(&file, read_only)?;
        if let (true, Some(size)) = (is_new, size) {
            file.set_len(size).map_err(in_words)?;
        }
        let identity = Identity::of(&metadata);
        refuse_formats(path, is_raw)?;
        let (found, bytes) = measure(&file, size, may_grow(&metadata, read_only))?;
        if bytes > found {
            file.set_len(bytes).map_err(in_words)?;
        }
        let block = settle(&file, bytes, is_direct)?;
        let is_far = is_far(&file).map_err(|error| error.desc().to_owned())?;
        let tells = metadata.is_file() && !is_far;
        let frees = if tells { freed(&file, block) } else { block };
        let calls = Calls::new(Arc::new(file), block).far(is_far);
        let title = path.display().to_string();
        Ok((Self { calls, title, bytes, block, frees, is_direct, identity }, made))
    }

    /// Looks at an image that is there as [`Self::open`] does, and leaves it as it is.
    ///
    /// # Errors
    /// Why it would be refused, without its name.
    pub(crate) fn look(
        path: &Path,
        size: Option<u64>,
        read_only: bool,
        is_raw: bool,
    ) -> Result<(), String> {
        let file = OpenOptions::new().read(true).write(!read_only).open(path).map_err(in_words)?;
        let metadata = file.metadata().map_err(in_words)?;
        lock(&file, read_only)?;
        refuse_formats(path, is_raw)?;
        measure(&file, size, may_grow(&metadata, read_only)).map(drop)
    }

    /// One that is no file, in front of the disk of a test.
    #[cfg(test)]
    pub(crate) fn of_test(bytes: u64, block: u32) -> Self {
        let file = File::open("/dev/null").expect("there is one");
        let (calls, identity) = (Calls::new(Arc::new(file), block), Identity::Device(0));
        let title = "an image".to_owned();
        Self { calls, title, bytes, block, frees: block, is_direct: true, identity }
    }

    /// The file, for whoever asks it about its holes.
    pub(crate) fn file(&self) -> Arc<File> {
        self.calls.file()
    }
}

/// Refuses an image of another format, unless it is said to be raw. Blocks are of no matter for a descriptor of its own.
fn refuse_formats(path: &Path, is_raw: bool) -> Result<(), String> {
    if is_raw {
        return Ok(());
    }
    let mut file = File::open(path).map_err(in_words)?;
    let bytes = file.seek(SeekFrom::End(0)).map_err(in_words)?;
    let sector = |at| {
        let mut sector = [0; SECTOR as usize];
        file.read_at(&mut sector, at).map(|_| sector).map_err(in_words)
    };
    let (first, last) = (sector(0)?, sector(bytes.saturating_sub(SECTOR.into()))?);
    let begins = FORMATS.iter().find(|(magic, _)| first.starts_with(magic));
    let format = begins.map(|(_, format)| *format);
    let Some(format) = format.or_else(|| last.starts_with(VHD).then_some("vhd")) else {
        return Ok(());
    };
    Err(format!(
        "it is an image of the format {format}; only raw ones are served: \
             qemu-img convert -O raw {0} {0}.raw; a guest can write that into a raw image too, \
             which `format = \"raw\"` of its disk serves as it is",
        path.display()
    ))
}

/// Whether it is of a filesystem that another process or another host answers for.
fn is_far(file: &File) -> nix::Result<bool> {
    let kind = fstatfs(file)?.filesystem_type().0;
    Ok(FAR.iter().any(|far| i128::from(*far) == i128::from(kind)))
}

/// The blocks in which a filesystem gives back what a file has, of `least` bytes at least.
fn freed(file: &File, least: u32) -> u32 {
    let told = fstatvfs(file).ok().and_then(|told| u32::try_from(told.fragment_size()).ok());
    told.filter(|bytes| bytes.is_power_of_two() && *bytes >= least).unwrap_or(least)
}

/// A file becomes larger with its disk, as it does when the host's file is read again at work.
fn may_grow(metadata: &Metadata, read_only: bool) -> bool {
    metadata.is_file() && !read_only
}

/// The size of a raw image, which is whole sectors, and the one that it is to have: that of its disk.
fn measure(mut file: &File, wanted: Option<u64>, may_grow: bool) -> Result<(u64, u64), String> {
    let bytes = file.seek(SeekFrom::End(0)).map_err(in_words)?;
    if bytes == 0 || !bytes.is_multiple_of(SECTOR.into()) {
        return Err(format!("it has {bytes} bytes, which are no whole sectors of {SECTOR}"));
    }
    match wanted {
        Some(wanted) if wanted != bytes && !(wanted > bytes && may_grow) => {
            Err(format!("it has {bytes} bytes, and `size` says {wanted}"))
        }
        _ => Ok((bytes, wanted.unwrap_or(bytes))),
    }
}

/// The block in which it is read and written.
fn settle(file: &File, bytes: u64, is_direct: bool) -> Result<u32, String> {
    let mut first = Buffers::default().take(BLOCK_MAX as usize);
    let mut read = |block: u32| {
        let block = u64::from(block).min(bytes) as usize;
        file.read_exact_at(&mut first.bytes_mut()[..block], 0)
    };
    let is_refused = |read: &io::Result<()>| {
        read.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL))
    };
    let (mut block, mut begin) = (SECTOR, read(SECTOR));
    if is_direct && is_refused(&begin) {
        (block, begin) = (BLOCK_MAX, read(BLOCK_MAX));
    }
    begin.map_err(in_words)?;
    if !bytes.is_multiple_of(block.into()) {
        return Err(format!("it has {bytes} bytes, which are no whole blocks of {block}"));
    }
    Ok(block)
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
                return Err(LOCKED.into());
            }
            Err(error) => return Err(format!("it cannot be locked: {}", error.desc())),
        }
    }
}

fn in_words(error: io::Error) -> String {
    error.to_string()
}
