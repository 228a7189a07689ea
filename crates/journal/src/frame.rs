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

use std::io::{self, ErrorKind, Read, Write};

use twox_hash::XxHash3_64;

use crate::{
    Error,
    bytes::{Damage, Payload},
};

const HEAD: usize = 16;
/// A frame is written once it is as long as this.
const FULL: usize = 1 << 16;
/// No host takes more.
const LENGTH_MAX: u32 = 1 << 28;

fn head_check(chain: u64, length: [u8; 4]) -> [u8; 4] {
    let [a, b, c, d, ..] = XxHash3_64::oneshot_with_seed(chain, &length).to_le_bytes();
    [a, b, c, d]
}

/// Writes frames.
pub(crate) struct Writer<W> {
    out: W,
    /// The frame to be: room for its head, and its payload so far.
    frame: Payload,
    chain: u64,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(out: W) -> Self {
        let mut frame = Payload::with_capacity(2 * FULL);
        frame.extend(&[0; HEAD]);
        Self { out, frame, chain: 0 }
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

    /// Hands what there is to the file, in one call.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        let frame = self.frame.bytes();
        let (head, payload) = frame.split_at_mut(HEAD);
        if payload.is_empty() {
            return Ok(());
        }
        let length = (payload.len() as u32).to_le_bytes();
        head[..4].copy_from_slice(&length);
        head[4..8].copy_from_slice(&head_check(self.chain, length));
        self.chain = XxHash3_64::oneshot_with_seed(self.chain, payload);
        head[8..].copy_from_slice(&self.chain.to_le_bytes());
        let written = self.out.write_all(frame).and_then(|()| self.out.flush());
        self.frame.truncate(HEAD);
        written
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.write()?;
        Ok(self.out)
    }
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
