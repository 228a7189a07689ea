//! Frames: the unit in which a journal reaches its file, and in which it is trusted.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of the payload, little-endian, 2^28 at most |
//! | 4 | the low half of the XXH3-64 of these four bytes |
//! | 8 | XXH3-64 of the payload |
//! | length | payload |
//!
//! Both are seeded with the second of the frame before (0 first), which makes a chain of the frames:
//! none can be left out, doubled or moved. The length is checked on its own, so that a file that is
//! cut is told from one that is damaged: where a sound head promises more than there is, it is cut.

use std::{
    io::{self, ErrorKind, Read, Write},
    iter, mem,
    panic::resume_unwind,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel},
    thread::{self, JoinHandle},
    time::Duration,
};

use twox_hash::XxHash3_64;

use engine::codec::{Damage, Payload, Put};

use crate::{Error, MAGIC, VERSION, segment::Next};

const HEAD: usize = 16;
/// A frame is written once it is as long as this.
const FULL: usize = 1 << 16;
/// Frames on their way to the file at most, where whoever fills them waits for it,
const FRAMES: usize = 3;
/// and where nobody does: a second or more of a busy host.
const FRAMES_AHEAD: usize = 64;
/// How long the file may take for a frame at the end when nobody waits for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// No host takes more.
const LENGTH_MAX: u32 = 1 << 28;

fn head_check(chain: u64, length: [u8; 4]) -> [u8; 4] {
    let [a, b, c, d, ..] = XxHash3_64::oneshot_with_seed(chain, &length).to_le_bytes();
    [a, b, c, d]
}

/// How a file is gone on from to that of the segment with that number.
pub(crate) type GoOn<W> = fn(&mut W, u64) -> io::Result<()>;

/// A frame on its way to the file, and the segment that begins after it.
struct Filled {
    frame: Payload,
    then: Option<Box<Next>>,
}

/// Fills frames; a thread of its own writes them, so that whoever fills one never waits for a file
/// that is slow for a moment.
pub(crate) struct Writer<W> {
    /// The frame to be: room for its head, and its payload so far.
    frame: Payload,
    filled: SyncSender<Filled>,
    emptied: Receiver<Payload>,
    /// Those that are written and may be filled again.
    spare: Vec<Payload>,
    /// How many there are, and how many there may be.
    made: usize,
    most: usize,
    /// Bytes of the segment that were handed over.
    bytes: u64,
    waits: bool,
    writing: JoinHandle<io::Result<W>>,
}

impl<W: Write + Send + 'static> Writer<W> {
    /// `waits` says whether whoever fills frames waits for a file that does not keep up.
    pub(crate) fn new(mut out: W, waits: bool, go_on: GoOn<W>) -> io::Result<Self> {
        write_head(&mut out)?;
        let most = 1 + if waits { FRAMES } else { FRAMES_AHEAD };
        let (filled, to_write) = sync_channel(most);
        let (written, emptied) = sync_channel(most);
        let writing = thread::Builder::new().name("journal".into());
        let writing = writing.spawn(move || write_all(out, &to_write, &written, go_on))?;
        let (frame, spare, made, bytes) = (empty_frame(), Vec::new(), 1, HEAD_OF_FILE as u64);
        Ok(Self { frame, filled, emptied, spare, made, most, bytes, waits, writing })
    }

    /// Bytes of the segment so far, but for the state that it begins with.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes + self.frame.len() as u64
    }

    /// Where the payload is appended.
    #[inline]
    pub(crate) const fn payload(&mut self) -> &mut Payload {
        &mut self.frame
    }

    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.frame.len() >= FULL
    }

    /// Hands over what there is; `false` when that has to wait, and nobody does. After an error of the
    /// file, which [`Self::finish`] tells, nothing more is written.
    pub(crate) fn write(&mut self) -> bool {
        if self.frame.len() == HEAD {
            return true;
        }
        if !self.has_room() {
            return false;
        }
        self.hand_over(None);
        true
    }

    /// Hands over what there is, where there is room, with the segment that begins after it.
    pub(crate) fn write_last(&mut self, then: Next) {
        self.hand_over(Some(Box::new(then)));
        self.bytes = HEAD_OF_FILE as u64;
    }

    /// Whether there is an empty frame to go on with, which may be waited for.
    pub(crate) fn has_room(&mut self) -> bool {
        let is_written = self.collect();
        if self.spare.is_empty() && is_written && self.made < self.most {
            self.made += 1;
            self.spare.push(empty_frame());
        } else if self.spare.is_empty() && self.waits {
            self.spare.extend(self.emptied.recv());
        }
        !self.spare.is_empty() || !is_written
    }

    /// Whether everything that was handed over is written.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.collect() && self.spare.len() + 1 == self.made
    }

    /// Takes back what is written; `false` when nothing is written any more.
    fn collect(&mut self) -> bool {
        loop {
            match self.emptied.try_recv() {
                Ok(frame) => self.spare.push(frame),
                Err(error) => return error == TryRecvError::Empty,
            }
        }
    }

    /// After an error of the file nobody takes it.
    fn hand_over(&mut self, then: Option<Box<Next>>) {
        let Some(empty) = self.spare.pop() else { return self.frame.truncate(HEAD) };
        self.bytes += self.frame.len() as u64;
        let frame = mem::replace(&mut self.frame, empty);
        let _ = self.filled.send(Filled { frame, then });
    }

    /// Ends; where nobody waits for the file, it is given up when it takes none for a while.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        let too_slow = || io::Error::from(ErrorKind::TimedOut);
        if !self.write() {
            self.spare.push(self.emptied.recv_timeout(PATIENCE).map_err(|_| too_slow())?);
            self.hand_over(None);
        }
        drop(self.filled);
        if !self.waits {
            // The last frame comes back when all are written, and after it, or an error, nothing.
            let ended =
                iter::repeat_with(|| self.emptied.recv_timeout(PATIENCE)).find_map(Result::err);
            if ended == Some(RecvTimeoutError::Timeout) {
                return Err(too_slow());
            }
        }
        self.writing.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// What stands before the frames of a file.
const HEAD_OF_FILE: usize = MAGIC.len() + 1;

fn write_head(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[MAGIC.as_slice(), &[VERSION]].concat())
}

fn empty_frame() -> Payload {
    let mut frame = Payload::with_capacity(2 * FULL);
    frame.extend(&[0; HEAD]);
    frame
}

/// Writes each frame, and begins the segments.
fn write_all<W: Write>(
    mut out: W,
    frames: &Receiver<Filled>,
    written: &SyncSender<Payload>,
    go_on: GoOn<W>,
) -> io::Result<W> {
    let mut chain = 0;
    for Filled { mut frame, then } in frames {
        write_frame(&mut out, &mut frame, &mut chain)?;
        if let Some(next) = then {
            go_on(&mut out, next.number)?;
            chain = 0;
            write_head(&mut out)?;
            let mut first = empty_frame();
            next.put(&mut first);
            write_frame(&mut out, &mut first, &mut chain)?;
        }
        frame.truncate(HEAD);
        // Whoever fills them may be gone.
        let _ = written.send(frame);
    }
    Ok(out)
}

/// Seals and writes a frame, in one call.
fn write_frame(out: &mut impl Write, frame: &mut Payload, chain: &mut u64) -> io::Result<()> {
    let bytes = frame.bytes();
    let (head, payload) = bytes.split_at_mut(HEAD);
    let length = (payload.len() as u32).to_le_bytes();
    head[..4].copy_from_slice(&length);
    head[4..8].copy_from_slice(&head_check(*chain, length));
    *chain = XxHash3_64::oneshot_with_seed(*chain, payload);
    head[8..].copy_from_slice(&chain.to_le_bytes());
    out.write_all(bytes)?;
    out.flush()
}

/// Reads frames.
pub(crate) struct Reader<R> {
    input: R,
    pub(crate) payload: Vec<u8>,
    chain: u64,
    /// Where the frame begins.
    pub(crate) at: u64,
    /// How far the file is read.
    pub(crate) end: u64,
}

impl<R: Read> Reader<R> {
    /// `input` stands at byte `at` of the file.
    pub(crate) fn new(input: R, at: u64) -> Self {
        Self { input, payload: Vec::new(), chain: 0, at, end: at }
    }

    /// The frame has what nobody wrote.
    pub(crate) const fn damaged(&self, Damage(what): Damage) -> Error {
        Error::Damaged { at: self.at, what }
    }

    /// The next frame; `false` when the file ends before it, or within it.
    pub(crate) fn next(&mut self) -> Result<bool, Error> {
        self.at = self.end;
        let mut head = [0; HEAD];
        let filled = read_up_to(&mut self.input, &mut head)?;
        self.end += filled as u64;
        if filled < HEAD {
            return Ok(false);
        }
        let [a, b, c, d, e, f, g, h, checksum @ ..] = head;
        let (length, check) = ([a, b, c, d], [e, f, g, h]);
        if check != head_check(self.chain, length) {
            return Err(self.damaged(Damage("the checksum of its length does not fit")));
        }
        let length = u32::from_le_bytes(length);
        if length > LENGTH_MAX {
            return Err(self.damaged(Damage("a length out of its range")));
        }
        self.payload.clear();
        // Takes memory as bytes come, not as the length promises.
        let read = (&mut self.input).take(length.into()).read_to_end(&mut self.payload)?;
        self.end += read as u64;
        if read < length as usize {
            return Ok(false);
        }
        self.chain = XxHash3_64::oneshot_with_seed(self.chain, &self.payload);
        if self.chain.to_le_bytes() != checksum {
            return Err(self.damaged(Damage("the checksum does not fit")));
        }
        Ok(true)
    }

    /// That nothing follows.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        match read_up_to(&mut self.input, &mut [0])? {
            0 => Ok(()),
            _ => Err(self.damaged(Damage("bytes after the end"))),
        }
    }
}

/// Fills the buffer as far as there is something to fill it with.
pub(crate) fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(some) => filled += some,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
