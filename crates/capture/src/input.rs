//! Where the bytes of a capture come from: a mapped file, a compressed one, an archive, a stream.
//!
//! The lowest floor of the reader. Whatever the source, the floor above receives blocks of whole
//! lines, in order; compressed bytes are inflated by a thread of their own while the block
//! before is parsed. The kind of a file is told by its first bytes, never by its name.

use std::{
    fs::File,
    io::{self, Read, Seek},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
};

use memchr::{memchr, memchr2, memrchr};
use memmap2::Mmap;

use crate::Error;

/// Bytes handed to the parser at a time: enough rows to share between threads, few enough to
/// stay in the caches.
const BLOCK: usize = 16 << 20;

/// What a file may ask of the machine before it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one line. The longest header known has 5.2 MB for 52,000 columns [CAP].
    pub line_bytes: usize,
    /// Bytes that a compressed file may grow to.
    pub inflated_bytes: u64,
    /// Values kept: disk columns times samples.
    pub values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { line_bytes: 64 << 20, inflated_bytes: 64 << 30, values: 1 << 30 }
    }
}

/// An opened capture.
pub struct Input {
    name: String,
    source: Source,
    /// Bytes of the source read so far, and their number when it is known.
    done: Arc<AtomicU64>,
    total: u64,
}

enum Source {
    Mapped(Mmap),
    Bytes(Vec<u8>),
    Stream(Box<dyn Read + Send>),
    ZipEntry { archive: Box<zip::ZipArchive<File>>, index: usize },
}

/// A block of whole lines and how far the source was read for it.
pub(crate) struct Block<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) done: u64,
}

impl Input {
    /// Opens `path`; `-` is standard input. An archive yields one input for each file in it.
    ///
    /// # Errors
    /// A file that cannot be opened, an archive that cannot be read or holds no file.
    pub fn open(path: &Path) -> Result<Vec<Self>, Error> {
        let name = path.display().to_string();
        if name == "-" {
            return Self::stream("standard input", io::stdin()).map(|input| vec![input]);
        }
        let failed = |error: io::Error| Error::new(&name, format!("cannot be read: {error}"));
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(Error::new(&name, "is a directory; expected an esxtop capture"));
        }
        if !metadata.is_file() {
            return Self::stream(&name, file).map(|input| vec![input]);
        }
        Self::open_file(&name, file, metadata.len())
    }

    /// A capture that is in memory already.
    #[must_use]
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Self {
        let total = bytes.len() as u64;
        Self { name: name.into(), source: Source::Bytes(bytes), done: Arc::default(), total }
    }

    /// A capture that is read from a stream, plain or compressed (gzip, zstd).
    ///
    /// # Errors
    /// A stream that cannot be read, or a zip archive, whose directory is at its end.
    pub fn stream(name: &str, mut stream: impl Read + Send + 'static) -> Result<Self, Error> {
        let mut head = Vec::with_capacity(4);
        (&mut stream)
            .take(4)
            .read_to_end(&mut head)
            .map_err(|error| Error::new(name, format!("cannot be read: {error}")))?;
        let format = Format::of(&head);
        if format == Format::Zip {
            return Err(Error::new(name, "a zip archive cannot come from a stream; save it first"));
        }
        let done = Arc::default();
        let reader =
            Counted { inner: io::Cursor::new(head).chain(stream), done: Arc::clone(&done) };
        let source = Source::Stream(format.decoder(name, reader)?);
        Ok(Self { name: name.into(), source, done, total: 0 })
    }

    /// The name to say in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the file as it lies on disk; 0 when that is not known.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.total
    }

    /// Bytes of a file that is not compressed; 0 for any other.
    pub(crate) const fn plain_bytes(&self) -> u64 {
        match self.source {
            Source::Mapped(_) | Source::Bytes(_) => self.total,
            Source::Stream(_) | Source::ZipEntry { .. } => 0,
        }
    }

    fn open_file(name: &str, mut file: File, total: u64) -> Result<Vec<Self>, Error> {
        let failed = |error: io::Error| Error::new(name, format!("cannot be read: {error}"));
        let mut head = Vec::with_capacity(4);
        (&mut file).take(4).read_to_end(&mut head).map_err(failed)?;
        file.rewind().map_err(failed)?;
        let done = Arc::default();
        let source = match Format::of(&head) {
            Format::Zip => return Self::open_zip(name, &file),
            Format::Plain if total == 0 => Source::Bytes(Vec::new()),
            Format::Plain => Source::Mapped(map(&file).map_err(failed)?),
            format => {
                let reader = Counted { inner: file, done: Arc::clone(&done) };
                Source::Stream(format.decoder(name, reader)?)
            }
        };
        Ok(vec![Self { name: name.into(), source, done, total }])
    }

    fn open_zip(name: &str, file: &File) -> Result<Vec<Self>, Error> {
        let open = || {
            let file = file.try_clone()?;
            zip::ZipArchive::new(file).map_err(io::Error::from)
        };
        let failed = |error: io::Error| Error::new(name, format!("damaged zip archive: {error}"));
        let archive = open().map_err(failed)?;
        let mut inputs = Vec::new();
        for index in 0..archive.len() {
            let Some(Ok(entry)) = archive.name_for_index(index) else { continue };
            if !entry.to_ascii_lowercase().ends_with(".csv") || entry.starts_with("__MACOSX/") {
                continue;
            }
            let source = Source::ZipEntry { archive: Box::new(open().map_err(failed)?), index };
            let name = format!("{name}/{entry}");
            inputs.push(Self { name, source, done: Arc::default(), total: 0 });
        }
        if inputs.is_empty() {
            return Err(Error::new(name, "the zip archive holds no .csv file"));
        }
        Ok(inputs)
    }

    /// Hands every block to `parse`, in order. Returns why the source ended early, when it did.
    ///
    /// # Errors
    /// What `parse` returns, a line or an inflated size beyond the limits, a stream that fails
    /// before its first block.
    pub(crate) fn blocks(
        self,
        limits: &Limits,
        parse: &mut dyn FnMut(Block<'_>) -> Result<(), Error>,
    ) -> Result<Option<String>, Error> {
        let Self { name, source, done, .. } = self;
        match source {
            Source::Mapped(map) => slice_blocks(&name, &map, limits, parse),
            Source::Bytes(bytes) => slice_blocks(&name, &bytes, limits, parse),
            Source::Stream(mut stream) => {
                stream_blocks(&name, limits, &done, parse, move |sink| pump(&mut stream, sink))
            }
            Source::ZipEntry { mut archive, index } => {
                stream_blocks(&name, limits, &done, parse, move |sink| {
                    match archive.by_index(index) {
                        Ok(mut entry) => pump(&mut entry, sink),
                        Err(error) => sink.fail(io::Error::from(error)),
                    }
                })
            }
        }
    }
}

#[expect(unsafe_code, reason = "a mapping is the one way to read without copying")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is private and read-only, and no code relies on its bytes staying the
    // same: every index is found in the slice that is being read. A file that someone cuts
    // shorter meanwhile ends the process with SIGBUS, as it does any reader that maps files.
    unsafe { Mmap::map(file) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Plain,
    Gzip,
    Zstd,
    Zip,
}

impl Format {
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd] => Self::Zstd,
            [b'P', b'K', 3 | 5, 4 | 6] => Self::Zip,
            _ => Self::Plain,
        }
    }

    fn decoder(
        self,
        name: &str,
        reader: impl Read + Send + 'static,
    ) -> Result<Box<dyn Read + Send>, Error> {
        let reader = io::BufReader::with_capacity(1 << 18, reader);
        match self {
            Self::Gzip => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(reader))),
            Self::Zstd => match ruzstd::decoding::StreamingDecoder::new(reader) {
                Ok(decoder) => Ok(Box::new(decoder)),
                Err(error) => Err(Error::new(name, format!("damaged zstd file: {error}"))),
            },
            Self::Plain | Self::Zip => Ok(Box::new(reader)),
        }
    }
}

/// Counts the bytes that pass, for progress.
struct Counted<R> {
    inner: R,
    done: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.done.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Where the last line of `bytes` ends. A file without any `\n` has lines that end in `\r`.
fn last_line_end(bytes: &[u8]) -> Option<usize> {
    memrchr(b'\n', bytes).or_else(|| memrchr(b'\r', bytes)).map(|at| at + 1)
}

fn too_long(name: &str, limits: &Limits) -> Error {
    let mib = limits.line_bytes >> 20;
    Error::new(name, format!("a line longer than {mib} MiB; an esxtop capture has no such line"))
}

fn slice_blocks(
    name: &str,
    bytes: &[u8],
    limits: &Limits,
    parse: &mut dyn FnMut(Block<'_>) -> Result<(), Error>,
) -> Result<Option<String>, Error> {
    let mut start = 0;
    while start < bytes.len() {
        let rest = &bytes[start..];
        let window = &rest[..rest.len().min(BLOCK)];
        let length = if window.len() == rest.len() {
            rest.len()
        } else if let Some(end) = last_line_end(window) {
            end
        } else {
            let after = &rest[window.len()..];
            memchr2(b'\n', b'\r', after).map_or(rest.len(), |end| window.len() + end + 1)
        };
        if length > limits.line_bytes.max(BLOCK) {
            return Err(too_long(name, limits));
        }
        start += length;
        parse(Block { bytes: &rest[..length], done: start as u64 })?;
    }
    Ok(None)
}

/// The sending end of the inflating thread.
struct Sink {
    sender: mpsc::SyncSender<io::Result<Vec<u8>>>,
}

impl Sink {
    fn fail(&self, error: io::Error) {
        // The receiver is gone only when the parser has given up, and then nobody is to be told.
        let _ = self.sender.send(Err(error));
    }
}

/// Reads `stream` to its end in pieces of a block.
fn pump(stream: &mut dyn Read, sink: &Sink) {
    loop {
        let mut piece = Vec::new();
        let result = stream.take(BLOCK as u64).read_to_end(&mut piece);
        let ended = piece.is_empty();
        if !ended && sink.sender.send(Ok(piece)).is_err() {
            return;
        }
        match result {
            Err(error) => return sink.fail(error),
            Ok(_) if ended => return,
            Ok(_) => {}
        }
    }
}

fn stream_blocks(
    name: &str,
    limits: &Limits,
    done: &AtomicU64,
    parse: &mut dyn FnMut(Block<'_>) -> Result<(), Error>,
    produce: impl FnOnce(&Sink) + Send,
) -> Result<Option<String>, Error> {
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(1);
        scope.spawn(move || produce(&Sink { sender }));
        let mut pieces = Pieces { rest: Vec::new(), inflated: 0 };
        // The receiver is dropped with this closure's end, which stops the thread.
        for piece in receiver {
            let done = done.load(Ordering::Relaxed);
            match piece {
                Ok(piece) => pieces.add(name, piece, limits, done, parse)?,
                Err(error) if pieces.inflated == 0 => {
                    return Err(Error::new(name, format!("cannot be read: {error}")));
                }
                Err(error) => {
                    pieces.finish(done, parse)?;
                    return Ok(Some(error.to_string()));
                }
            }
        }
        pieces.finish(done.load(Ordering::Relaxed), parse)?;
        Ok(None)
    })
}

/// Puts the pieces of a stream together to whole lines.
struct Pieces {
    rest: Vec<u8>,
    inflated: u64,
}

impl Pieces {
    fn add(
        &mut self,
        name: &str,
        mut piece: Vec<u8>,
        limits: &Limits,
        done: u64,
        parse: &mut dyn FnMut(Block<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.inflated += piece.len() as u64;
        if self.inflated > limits.inflated_bytes {
            let gib = limits.inflated_bytes >> 30;
            return Err(Error::new(name, format!("inflates to more than {gib} GiB; refused")));
        }
        if self.rest.len() + piece.len() > limits.line_bytes.max(2 * BLOCK) {
            return Err(too_long(name, limits));
        }
        let Some(end) = last_line_end(&piece) else {
            self.rest.append(&mut piece);
            return Ok(());
        };
        let tail = piece.split_off(end);
        let block = if self.rest.is_empty() {
            piece
        } else {
            self.rest.append(&mut piece);
            std::mem::take(&mut self.rest)
        };
        self.rest = tail;
        parse(Block { bytes: &block, done })
    }

    fn finish(
        self,
        done: u64,
        parse: &mut dyn FnMut(Block<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.rest.is_empty() {
            return Ok(());
        }
        parse(Block { bytes: &self.rest, done })
    }
}

/// The lines of a block and whether each was ended.
pub(crate) fn lines(bytes: &[u8], end: u8) -> impl Iterator<Item = (&[u8], bool)> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, ended) = match memchr(end, rest) {
            Some(at) => {
                let line = &rest[..at];
                rest = &rest[at + 1..];
                (line, true)
            }
            None => (std::mem::take(&mut rest), false),
        };
        Some((line.strip_suffix(b"\r").unwrap_or(line), ended))
    })
}
