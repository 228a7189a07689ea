//! Bytes in checksummed blocks: what a journal is written through and read through.
//!
//! A block is
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of the payload, little-endian, 1 to 65,536 |
//! | 8 | XXH3-64 of the payload, little-endian, seeded with that of the block before (0 first) |
//! | length | payload |
//!
//! The seed makes a chain of the blocks: none can be left out, doubled or moved. What is read is
//! checked before it is looked at, so whoever reads numbers out of it meets damage once, here.

use std::{
    io::{self, ErrorKind, Read, Write},
    ops::Range,
};

use twox_hash::XxHash3_64;

use crate::Error;

const PAYLOAD_MAX: usize = 1 << 16;
const HEAD: usize = 12;
/// A text longer than this was written by no run.
const TEXT_MAX: u64 = 1 << 28;
/// More parameter files or settings than this were given to no run.
const LIST_MAX: u64 = 1 << 16;

/// Appends a number: seven bits a byte, lowest first, the eighth set while more follow.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends a text: the number of its bytes, and they.
pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// Writes blocks.
pub(crate) struct Writer<W> {
    out: W,
    /// What is not yet in a block.
    pub(crate) pending: Vec<u8>,
    chain: u64,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, pending: Vec::with_capacity(2 * PAYLOAD_MAX), chain: 0 }
    }

    /// Writes what is pending once it fills a block.
    #[inline]
    pub(crate) fn flush_full(&mut self) -> io::Result<()> {
        if self.pending.len() >= PAYLOAD_MAX { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        for payload in self.pending.chunks(PAYLOAD_MAX) {
            self.chain = XxHash3_64::oneshot_with_seed(self.chain, payload);
            self.out.write_all(&(payload.len() as u32).to_le_bytes())?;
            self.out.write_all(&self.chain.to_le_bytes())?;
            self.out.write_all(payload)?;
        }
        self.pending.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Reads blocks.
pub(crate) struct Reader<R> {
    input: R,
    payload: Vec<u8>,
    /// What of the payload has been read.
    read: usize,
    chain: u64,
    /// Where the block begins, and where the next one does.
    at: u64,
    next: u64,
}

impl<R: Read> Reader<R> {
    /// `input` stands at byte `at` of the file.
    pub(crate) fn new(input: R, at: u64) -> Self {
        Self { input, payload: Vec::new(), read: 0, chain: 0, at, next: at }
    }

    pub(crate) fn damaged(&self, what: &'static str) -> Error {
        Error::JournalDamaged { at: self.at, what }
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        while self.read == self.payload.len() {
            if !self.next_block()? {
                return Err(Error::JournalCut { at: self.next });
            }
        }
        let byte = self.payload[self.read];
        self.read += 1;
        Ok(byte)
    }

    /// Eight bytes, little-endian.
    pub(crate) fn fixed(&mut self) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(u64::from_le_bytes(bytes))
    }

    /// A number that fits its type.
    pub(crate) fn number<T: TryFrom<u64>>(&mut self) -> Result<T, Error> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return T::try_from(number).map_err(|_| self.damaged("a number out of its range"));
            }
        }
        Err(self.damaged("a number out of its range"))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Error> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.damaged("neither yes nor no")),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String, Error> {
        let length: u64 = self.number()?;
        if length > TEXT_MAX {
            return Err(self.damaged("a text longer than any"));
        }
        let bytes = (0..length).map(|_| self.byte()).collect::<Result<_, _>>()?;
        String::from_utf8(bytes).map_err(|_| self.damaged("a text that is not UTF-8"))
    }

    /// A place for each entry of a list, whose number is read.
    pub(crate) fn list(&mut self) -> Result<Range<u64>, Error> {
        match self.number()? {
            entries @ 0..=LIST_MAX => Ok(0..entries),
            _ => Err(self.damaged("a list longer than any")),
        }
    }

    /// That nothing follows.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        if self.read < self.payload.len() || self.next_block()? {
            return Err(self.damaged("bytes after the end"));
        }
        Ok(())
    }

    /// The next block; `false` when the file ends before it.
    fn next_block(&mut self) -> Result<bool, Error> {
        self.at = self.next;
        let mut head = [0; HEAD];
        match read_up_to(&mut self.input, &mut head)? {
            0 => return Ok(false),
            HEAD => {}
            some => return Err(Error::JournalCut { at: self.at + some as u64 }),
        }
        let [a, b, c, d, checksum @ ..] = head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if !(1..=PAYLOAD_MAX).contains(&length) {
            return Err(self.damaged("a length out of its range"));
        }
        self.payload.resize(length, 0);
        self.read = 0;
        let got = read_up_to(&mut self.input, &mut self.payload)?;
        self.next = self.at + (HEAD + got) as u64;
        if got < length {
            return Err(Error::JournalCut { at: self.next });
        }
        self.chain = XxHash3_64::oneshot_with_seed(self.chain, &self.payload);
        if self.chain != u64::from_le_bytes(checksum) {
            return Err(self.damaged("the checksum does not fit"));
        }
        Ok(true)
    }
}

/// Fills the buffer as far as there is something to fill it with.
pub(crate) fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize, Error> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(some) => filled += some,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::File { file: "the journal".into(), error }),
        }
    }
    Ok(filled)
}
