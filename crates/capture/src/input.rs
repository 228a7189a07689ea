//! Where the bytes of a capture come from: a mapped file, a compressed one, an archive, a stream.
//!
//! A file that is cut shorter while it is mapped cannot be read safely: a page beyond its new end
//! ends the process. Before every block the file is asked for its length, so that only a cut in
//! the few milliseconds in which one block is parsed is fatal. A file that grows is read as far
//! as it went when it was opened.
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

use crate::{
    Error,
    header::{HEADER_WITHIN, holds_header},
};

/// Bytes handed to the parser at a time: enough rows to share between threads, few enough to
/// stay in the caches.
const BLOCK: usize = 16 << 20;

/// Bytes read from a stream at a time: small enough to be inflated and parsed side by side.
const PIECE: usize = 4 << 20;

/// What Windows puts in front of text to say how it is encoded.
pub(crate) const MARK: &str = "\u{feff}";

/// Captures in one archive.
const MOST_ENTRIES: usize = 1_000;

/// Is told the bytes read and their number, which is 0 while unknown.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// What a file may ask of the machine before it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one line. The longest header known has 5.2 MB for 52,000 columns [CAP].
    pub line_bytes: usize,
    /// Bytes that a compressed file may grow to.
    pub inflated_bytes: u64,
    /// Bytes without a whole row: empty lines, or what is no row.
    pub idle_bytes: u64,
    /// Values kept: disk columns times samples.
    pub values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: 64 << 20,
            inflated_bytes: 64 << 30,
            idle_bytes: 256 << 20,
            values: 1 << 30,
        }
    }
}

impl Limits {
    /// The bytes since the last whole row, with those of a block; the line of a refusal when they
    /// are too many.
    pub(crate) fn idle(&self, before: u64, block: &[u8], has_row: bool) -> Result<u64, String> {
        let idle = if has_row { 0 } else { before + block.len() as u64 };
        if idle <= self.idle_bytes {
            return Ok(idle);
        }
        Err(format!(
            "{} MiB without a whole row; an esxtop capture has none",
            self.idle_bytes >> 20
        ))
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
    Mapped(Mmap, File),
    Bytes(Vec<u8>),
    Stream(Box<dyn Read + Send>),
    /// An entry of an archive.
    ZipEntry(Archive, usize),
}

/// An archive whose entries share one file; they are read one after the other.
type Archive = zip::ZipArchive<Arc<File>>;

/// A block of whole lines and how far the source was read for it.
pub(crate) struct Block<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) done: u64,
}

impl Input {
    /// Opens `path`; `-` is standard input. An archive yields one input for each capture in it: what else
    /// is called `.csv` (a README, an inventory) is passed over.
    ///
    /// # Errors
    /// A file that cannot be opened, an archive that cannot be read or holds no `.csv` file.
    pub fn open(path: &Path) -> Result<Vec<Self>, Error> {
        let name = path.display().to_string();
        if name == "-" {
            return Self::stream("standard input", io::stdin()).map(|input| vec![input]);
        }
        let failed = |error: io::Error| Error::unreadable(&name, &error);
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
        let source = match Format::of(&bytes) {
            format @ (Format::Utf16Le | Format::Utf16Be) => {
                Source::Stream(Box::new(Utf16::new(io::Cursor::new(bytes), format)))
            }
            _ => Source::Bytes(bytes),
        };
        Self { name: name.into(), source, done: Arc::default(), total }
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
            .map_err(|error| Error::unreadable(name, &error))?;
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

    /// Whether the bytes of the file are those of the lines.
    pub(crate) const fn is_plain(&self) -> bool {
        matches!(self.source, Source::Mapped(..) | Source::Bytes(_))
    }

    fn open_file(name: &str, mut file: File, total: u64) -> Result<Vec<Self>, Error> {
        let failed = |error: io::Error| Error::unreadable(name, &error);
        let mut head = Vec::with_capacity(4);
        (&mut file).take(4).read_to_end(&mut head).map_err(failed)?;
        file.rewind().map_err(failed)?;
        let done = Arc::default();
        let source = match Format::of(&head) {
            Format::Zip => return Self::open_zip(name, file),
            Format::Plain if total == 0 => Source::Bytes(Vec::new()),
            Format::Plain => Source::Mapped(map(&file).map_err(failed)?, file),
            format => {
                let reader = Counted { inner: file, done: Arc::clone(&done) };
                Source::Stream(format.decoder(name, reader)?)
            }
        };
        Ok(vec![Self { name: name.into(), source, done, total }])
    }

    fn open_zip(name: &str, file: File) -> Result<Vec<Self>, Error> {
        let failed = |error| Error::new(name, format!("damaged zip archive: {error}"));
        let archive = Archive::new(Arc::new(file)).map_err(failed)?;
        let is_csv = |entry: &str| {
            entry.to_ascii_lowercase().ends_with(".csv") && !entry.starts_with("__MACOSX/")
        };
        let mut inputs = Vec::new();
        for index in 0..archive.len() {
            let Some(Ok(entry)) = archive.name_for_index(index) else { continue };
            if is_csv(&entry) {
                let source = Source::ZipEntry(archive.clone(), index);
                let name = format!("{name}/{entry}");
                inputs.push(Self { name, source, done: Arc::default(), total: 0 });
            }
            if inputs.len() > MOST_ENTRIES {
                let what = format!("holds more than {MOST_ENTRIES} captures; refused");
                return Err(Error::new(name, what));
            }
        }
        if inputs.is_empty() {
            return Err(Error::new(name, "the zip archive holds no .csv file"));
        }
        // Without a capture among them the first one's refusal says why it is none.
        if inputs.iter().any(Self::is_capture) {
            inputs.retain(Self::is_capture);
        }
        Ok(inputs)
    }

    /// Whether an entry of an archive has a header where a capture has it.
    fn is_capture(&self) -> bool {
        let Source::ZipEntry(archive, index) = &self.source else { return true };
        let mut head = Vec::new();
        let mut archive = archive.clone();
        let Ok(entry) = archive.by_index(*index) else { return false };
        // What of a damaged entry can be read tells as well.
        let _ = entry.take(HEADER_WITHIN as u64).read_to_end(&mut head);
        holds_header(&head)
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
            Source::Mapped(map, file) => slice_blocks(&name, &map, Some(&file), limits, parse),
            Source::Bytes(bytes) => slice_blocks(&name, &bytes, None, limits, parse),
            Source::Stream(mut stream) => {
                stream_blocks(&name, limits, &done, parse, move |sink| sink.pump(&mut stream))
            }
            Source::ZipEntry(mut archive, index) => {
                stream_blocks(&name, limits, &done, parse, move |sink| {
                    match archive.by_index(index) {
                        Ok(mut entry) => sink.pump(&mut entry),
                        Err(error) => drop(sink.send(Err(Stop::Failed(error.into())))),
                    }
                })
            }
        }
    }
}

#[expect(unsafe_code, reason = "a mapping is the one way to read without copying")]
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is private and read-only, and no code relies on its bytes staying the
    // same: every index is found in the slice that is being read. A file that someone cuts
    // shorter meanwhile is noticed before the next block; within one, it ends the process with
    // SIGBUS, as it does any reader that maps files.
    unsafe { Mmap::map(file) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Plain,
    Gzip,
    Zstd,
    Zip,
    /// What a redirection in PowerShell writes.
    Utf16Le,
    Utf16Be,
}

impl Format {
    pub(crate) fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd] => Self::Zstd,
            [b'P', b'K', 3 | 5, 4 | 6] => Self::Zip,
            [0xff, 0xfe, ..] => Self::Utf16Le,
            [0xfe, 0xff, ..] => Self::Utf16Be,
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
            Self::Utf16Le | Self::Utf16Be => Ok(Box::new(Utf16::new(reader, self))),
            Self::Plain | Self::Zip => Ok(Box::new(reader)),
        }
    }
}

/// UTF-16 read as UTF-8.
pub(crate) struct Utf16<R> {
    inner: R,
    unit: fn([u8; 2]) -> u16,
    /// Units and bytes that are not whole characters yet.
    units: Vec<u16>,
    odd: Vec<u8>,
    /// Text that was not taken yet.
    text: io::Cursor<Vec<u8>>,
}

impl<R: Read> Utf16<R> {
    pub(crate) fn new(inner: R, format: Format) -> Self {
        let unit = if format == Format::Utf16Be { u16::from_be_bytes } else { u16::from_le_bytes };
        Self { inner, unit, units: Vec::new(), odd: Vec::new(), text: io::Cursor::default() }
    }

    /// Reads more text; nothing at the end.
    fn fill(&mut self) -> io::Result<()> {
        const BYTES: u64 = 1 << 16;
        let read = (&mut self.inner).take(BYTES).read_to_end(&mut self.odd)?;
        let (pairs, odd) = self.odd.as_chunks::<2>();
        self.units.extend(pairs.iter().map(|pair| (self.unit)(*pair)));
        self.odd = odd.to_vec();
        let is_first_half = |unit: &u16| (0xd800..0xdc00).contains(unit);
        let half = self.units.pop_if(|unit| read > 0 && is_first_half(unit));
        let text: String = char::decode_utf16(self.units.drain(..))
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
        self.units.extend(half);
        self.text = io::Cursor::new(text.into_bytes());
        Ok(())
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        self.fill()?;
        self.text.read(buffer)
    }
}

/// What inflates a compressed file.
pub(crate) fn decoder(mut file: File) -> io::Result<Box<dyn Read + Send>> {
    let mut head = Vec::with_capacity(4);
    (&mut file).take(4).read_to_end(&mut head)?;
    file.rewind()?;
    Format::of(&head).decoder("", file).map_err(io::Error::other)
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

fn too_long(limits: &Limits) -> String {
    let mib = limits.line_bytes >> 20;
    format!("a line longer than {mib} MiB; an esxtop capture has no such line")
}

/// Hands on the blocks of `bytes`, which are those of `file` when it is mapped.
fn slice_blocks(
    name: &str,
    bytes: &[u8],
    file: Option<&File>,
    limits: &Limits,
    parse: &mut dyn FnMut(Block<'_>) -> Result<(), Error>,
) -> Result<Option<String>, Error> {
    let mut start = 0;
    while start < bytes.len() {
        let now = file.and_then(|file| file.metadata().ok()).map(|metadata| metadata.len());
        if now.is_some_and(|now| now < bytes.len() as u64) {
            return Ok(Some("the file was cut shorter while it was read".into()));
        }
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
            return Err(Error::new(name, too_long(limits)));
        }
        start += length;
        parse(Block { bytes: &rest[..length], done: start as u64 })?;
    }
    Ok(None)
}

/// Why a stream gives no more blocks.
enum Stop {
    Failed(io::Error),
    Refused(String),
}

/// Memory with a block of whole lines at its begin, and the bytes of these.
type Filled = (Vec<u8>, usize);

/// The sending end of the thread that reads a stream.
struct Sink {
    sender: mpsc::SyncSender<Result<Filled, Stop>>,
    /// Blocks that were parsed, to be filled again: fresh memory costs as much as inflating.
    parsed: mpsc::Receiver<Vec<u8>>,
    limits: Limits,
}

impl Sink {
    /// Passes on blocks or the reason why there are no more; false when nobody listens any more.
    fn send(&self, block: Result<Filled, Stop>) -> bool {
        self.sender.send(block).is_ok()
    }

    /// Reads `stream` to its end and passes on blocks of whole lines.
    fn pump(&self, stream: &mut dyn Read) {
        let mut block = vec![0; PIECE];
        let mut length = 0;
        let mut inflated = 0;
        loop {
            let before = length;
            let room = before.max(PIECE / 2) + PIECE / 2;
            block.resize(room.max(block.len()), 0);
            let result = fill(stream, &mut block[..room], &mut length);
            inflated += (length - before) as u64;
            let ended = result.is_err() || length == before;
            if let Err(refused) = self.allow(inflated, length) {
                self.send(Err(Stop::Refused(refused)));
                return;
            }
            let end = if ended { Some(length) } else { last_line_end(&block[..length]) };
            let Some(end) = end else { continue };
            let mut next = self.parsed.try_recv().unwrap_or_else(|_| vec![0; PIECE]);
            let tail = length - end;
            next.resize(tail.max(next.len()), 0);
            next[..tail].copy_from_slice(&block[end..length]);
            length = tail;
            if !self.send(Ok((std::mem::replace(&mut block, next), end))) {
                return;
            }
            if let Err(error) = result {
                self.send(Err(Stop::Failed(error)));
                return;
            }
            if ended {
                return;
            }
        }
    }

    fn allow(&self, inflated: u64, line_bytes: usize) -> Result<(), String> {
        if inflated > self.limits.inflated_bytes {
            let mib = self.limits.inflated_bytes >> 20;
            return Err(format!("has more than {mib} MiB; refused"));
        }
        if line_bytes > self.limits.line_bytes.max(2 * PIECE) {
            return Err(too_long(&self.limits));
        }
        Ok(())
    }
}

/// Reads until `block`, of which `length` bytes are filled, is full or the stream ends.
fn fill(stream: &mut dyn Read, block: &mut [u8], length: &mut usize) -> io::Result<()> {
    while *length < block.len() {
        match stream.read(&mut block[*length..]) {
            Ok(0) => break,
            Ok(read) => *length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
        let (recycle, parsed) = mpsc::channel();
        let sink = Sink { sender, parsed, limits: *limits };
        scope.spawn(move || produce(&sink));
        let mut empty = true;
        // The receiver is dropped when this closure ends, which stops the thread.
        for block in receiver {
            match block {
                Ok((block, length)) => {
                    empty &= length == 0;
                    let done = done.load(Ordering::Relaxed);
                    parse(Block { bytes: &block[..length], done })?;
                    // The thread may have ended; then the block is of no more use.
                    let _ = recycle.send(block);
                }
                Err(Stop::Refused(what)) => return Err(Error::new(name, what)),
                Err(Stop::Failed(error)) if empty => {
                    return Err(Error::unreadable(name, &error));
                }
                Err(Stop::Failed(error)) => return Ok(Some(error.to_string())),
            }
        }
        Ok(None)
    })
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
