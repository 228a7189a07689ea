//! Numbers and texts as bytes, which a journal is made of.
//!
//! A number takes as many bytes as it has sevens of bits. The lowest bits of the first byte say how
//! many: a one after as many zeroes as bytes follow. So a number is put in one store and read
//! without a look at each byte, which LEB128 needs. From 2^56 on it is a zero and eight bytes.

use alloc::{borrow::ToOwned, string::String, vec, vec::Vec};

/// What is wrong with bytes that nobody wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage(pub &'static str);

const OUT_OF_RANGE: Damage = Damage("a number out of its range");
const TOO_SHORT: Damage = Damage("a record that ends too early");

/// Numbers below this fit the short form.
const SHORT: u64 = 1 << 56;
/// The bytes of a word.
const WORD: usize = size_of::<u64>();

/// Where bytes are put, one behind the other.
pub trait Put {
    /// Appends the first bytes of a word, eight at most.
    fn put_word(&mut self, word: u64, bytes: usize);

    /// Appends bytes as they are.
    fn extend(&mut self, bytes: &[u8]);

    /// Appends a number.
    #[inline(always)]
    fn put_number(&mut self, number: u64) {
        if number >= SHORT {
            return self.put_long(number);
        }
        // A seventh, without a division, of what is less than 56.
        let more = ((number | 1).ilog2() * 37) >> 8;
        self.put_word((number << 1 | 1) << more, more as usize + 1);
    }

    /// Appends a number that the short form does not hold.
    #[cold]
    fn put_long(&mut self, number: u64) {
        self.put_word(0, 1);
        self.put_word(number, WORD);
    }

    /// Appends a number below 128, as [`Self::put_number`] does.
    #[inline(always)]
    fn put_small(&mut self, number: u8) {
        self.put_word(u64::from(number) << 1 | 1, 1);
    }

    /// Appends what a journal has two bytes for.
    #[inline(always)]
    fn put_mark(&mut self, mark: u16) {
        self.put_word(mark.into(), size_of::<u16>());
    }

    /// Appends a text: the number of its bytes, and they.
    fn put_text(&mut self, text: &str) {
        self.put_number(text.len() as u64);
        self.extend(text.as_bytes());
    }
}

/// What a frame is filled with.
#[derive(Clone, Debug)]
pub struct Payload {
    bytes: Vec<u8>,
    length: usize,
}

impl Payload {
    /// With room for so many bytes until it has to move.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes], length: 0 }
    }

    /// All of them.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }

    /// How many there are.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Only so many of them stay.
    pub const fn truncate(&mut self, length: usize) {
        self.length = length;
    }

    /// Begins a record of less than 256 bytes: its room is looked at once, and it is appended when it
    /// ends.
    #[inline(always)]
    pub fn begin_record(&mut self) -> Record<'_> {
        if self.bytes.len() < self.length + RECORD {
            self.grow(RECORD);
        }
        let room = self.bytes[self.length..].first_chunk_mut().expect("room for a record");
        Record { room, length: 0, end: &mut self.length }
    }

    /// Makes room for so many more, and for as many as there are.
    #[cold]
    fn grow(&mut self, more: usize) {
        self.bytes.resize(2 * (self.length + more), 0);
    }
}

impl Put for Payload {
    fn put_word(&mut self, word: u64, bytes: usize) {
        self.extend(&word.to_le_bytes()[..bytes]);
    }

    fn extend(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if end > self.bytes.len() {
            self.grow(bytes.len());
        }
        self.bytes[self.length..end].copy_from_slice(bytes);
        self.length = end;
    }
}

/// The bytes that a record has at most, and a word more: each number is one store of a word.
const RECORD: usize = u8::MAX as usize + WORD;

/// A record that is being put behind a payload.
#[derive(Debug)]
#[must_use = "it is appended when it ends"]
pub struct Record<'a> {
    room: &'a mut [u8; RECORD],
    /// Of a type that has no number beyond the room, so that no store has to look.
    length: u8,
    /// Where the payload ends.
    end: &'a mut usize,
}

impl Record<'_> {
    /// Appends it.
    #[inline(always)]
    pub fn end(self) {
        *self.end += usize::from(self.length);
    }
}

impl Put for Record<'_> {
    #[inline(always)]
    fn put_word(&mut self, word: u64, bytes: usize) {
        let at = usize::from(self.length);
        self.room[at..at + WORD].copy_from_slice(&word.to_le_bytes());
        // No input is as long (a test of `codec.rs` says so), and to ask would take longer than to put.
        self.length = self.length.wrapping_add(bytes as u8);
    }

    fn extend(&mut self, bytes: &[u8]) {
        let at = usize::from(self.length);
        self.room[at..at + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len() as u8;
    }
}

/// Bytes still to be read.
#[derive(Clone, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// Whether there is none left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Damage> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    /// So many as they are.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// A number that fits its type.
    ///
    /// # Errors
    /// When it does not, or there is none.
    pub fn number<T: TryFrom<u64>>(&mut self) -> Result<T, Damage> {
        let &first = self.0.first().ok_or(TOO_SHORT)?;
        let more = first.trailing_zeros();
        let number = if more < u8::BITS {
            let mut word = [0; 8];
            let taken = self.take(more as usize + 1)?;
            word[..taken.len()].copy_from_slice(taken);
            u64::from_le_bytes(word) >> (more + 1)
        } else {
            let [_, word @ ..] = self.fixed::<9>()?;
            u64::from_le_bytes(word)
        };
        T::try_from(number).map_err(|_| OUT_OF_RANGE)
    }

    /// A text, as [`Put::put_text`] puts it.
    ///
    /// # Errors
    /// When it is none.
    pub fn text(&mut self) -> Result<String, Damage> {
        let length = self.number()?;
        let text = core::str::from_utf8(self.take(length)?);
        text.map(str::to_owned).map_err(|_| Damage("a text that is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(number: u64) -> Vec<u8> {
        let mut payload = Payload::with_capacity(0);
        payload.put_number(number);
        payload.bytes().to_vec()
    }

    #[test]
    fn a_number_takes_a_byte_for_each_seven_bits_and_comes_back() {
        let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]).chain([u64::MAX]);
        for number in edges {
            let bytes = of(number);
            let bits = 64 - (number | 1).leading_zeros() as usize;
            assert_eq!(bytes.len(), bits.div_ceil(7).min(9), "{number}");
            let mut read = Bytes(&bytes);
            assert_eq!((read.number(), read.is_empty()), (Ok(number), true));
            for short in 0..bytes.len() {
                assert_eq!(Bytes(&bytes[..short]).number::<u64>(), Err(TOO_SHORT));
            }
        }
    }

    #[test]
    fn a_record_is_what_would_be_appended_without_it() {
        for room in 0..2 * RECORD {
            let (mut at_once, mut plain) =
                (Payload::with_capacity(room), Payload::with_capacity(0));
            for number in [0, 127, 128, SHORT - 1, SHORT, u64::MAX] {
                let mut record = at_once.begin_record();
                record.put_number(number);
                record.put_text("a name");
                record.end();
                plain.put_number(number);
                plain.put_text("a name");
            }
            assert_eq!(at_once.bytes(), plain.bytes());
        }
    }

    #[test]
    fn what_fits_nothing_is_refused() {
        assert_eq!(Bytes(&of(65_536)).number::<u16>(), Err(OUT_OF_RANGE));
        assert_eq!(Bytes(&of(3)).text(), Err(TOO_SHORT));
        assert_eq!(Bytes(&of(u64::MAX)).text(), Err(TOO_SHORT));
        assert!(Bytes(&[of(1), vec![0xff]].concat()).text().is_err());
    }
}
