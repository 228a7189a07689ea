//! The inverse of deflate (RFC 1951), for captures that were piped through gzip.
//!
//! Reading a compressed capture takes as long as inflating it, so this is the one place where a
//! library does not do: those that take a stream at a time need twice as long (see
//! `docs/performance.md`). Symbols are decoded by tables of 11 and 8 bits, three literals to a
//! refill of the bit buffer, and matches are copied 32 bytes at a time, as libdeflate does.

use std::io::{self, Read};

/// How far back a match reaches at most.
const HISTORY: usize = 1 << 15;
/// Bytes inflated at a time: with the history they stay in the second-level cache.
const PIECE: usize = 1 << 17;
/// Bytes copied at a time.
const STEP: usize = 32;
/// The longest match, and what copying writes beyond it.
const LONGEST: usize = 258 + STEP;
/// Bytes of the source read at a time.
const INPUT: usize = 1 << 18;
/// Bytes of input that one symbol may need, with the reach of a refill.
const SYMBOL: usize = 32;

/// Bits that the first look into a table decodes.
const LITERAL_BITS: u32 = 11;
const DISTANCE_BITS: u32 = 8;
/// Entries: the first table and as many more as codes of 15 bits can need.
const LITERAL_ENTRIES: usize = 1 << 13;
const DISTANCE_ENTRIES: usize = 1 << 12;

/// An entry: bits to drop (5 bits), bits of the code among them (5 bits), flags, and the literal,
/// the base of the length or distance, or where a further table begins (16 bits).
const CODE_SHIFT: u32 = 5;
const LITERAL: u32 = 1 << 15;
const SPECIAL: u32 = 1 << 14;
const END: u32 = 1 << 13;
const TABLE: u32 = 1 << 12;
const VALUE_SHIFT: u32 = 16;

#[rustfmt::skip]
const LENGTHS: [(u16, u8); 29] = [
    (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0), (10, 0), (11, 1), (13, 1), (15, 1),
    (17, 1), (19, 2), (23, 2), (27, 2), (31, 2), (35, 3), (43, 3), (51, 3), (59, 3), (67, 4),
    (83, 4), (99, 4), (115, 4), (131, 5), (163, 5), (195, 5), (227, 5), (258, 0),
];
#[rustfmt::skip]
const DISTANCES: [(u16, u8); 30] = [
    (1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (7, 1), (9, 2), (13, 2), (17, 3), (25, 3), (33, 4),
    (49, 4), (65, 5), (97, 5), (129, 6), (193, 6), (257, 7), (385, 7), (513, 8), (769, 8),
    (1025, 9), (1537, 9), (2049, 10), (3073, 10), (4097, 11), (6145, 11), (8193, 12), (12289, 12),
    (16385, 13), (24577, 13),
];
/// The order in which the lengths of the codes of lengths come.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Where a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a block.
    Between,
    /// In a stored block with so many bytes left.
    Stored(usize),
    /// In a block of codes.
    Codes,
    /// Behind the last block.
    Done,
}

/// One deflate stream after the other out of a source.
pub(crate) struct Inflate<R> {
    source: R,
    input: Vec<u8>,
    /// Bytes of the input that are in the bit buffer or behind it.
    at: usize,
    ended: bool,
    bits: u64,
    count: u32,
    state: State,
    last: bool,
    literals: Box<[u32; LITERAL_ENTRIES]>,
    distances: Box<[u32; DISTANCE_ENTRIES]>,
    /// What was inflated: the history and what was not taken yet, from `taken` to `filled`.
    window: Box<[u8]>,
    taken: usize,
    filled: usize,
    /// Where this stream begins in the window; no match reaches before it.
    floor: usize,
    /// What went wrong behind what was inflated.
    failed: Option<io::Error>,
}

pub(crate) fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("damaged gzip data: {what}"))
}

pub(crate) fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "unexpected end of gzip data")
}

impl<R: Read> Inflate<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            input: Vec::with_capacity(INPUT),
            at: 0,
            ended: false,
            bits: 0,
            count: 0,
            state: State::Done,
            last: false,
            literals: Box::new([0; LITERAL_ENTRIES]),
            distances: Box::new([0; DISTANCE_ENTRIES]),
            window: vec![0; HISTORY + PIECE + LONGEST].into(),
            taken: 0,
            filled: 0,
            floor: 0,
            failed: None,
        }
    }

    /// Begins a new stream at the byte in hand.
    pub(crate) const fn begin(&mut self) {
        self.state = State::Between;
        self.last = false;
        self.floor = self.filled;
    }

    /// A byte outside of the streams; `None` at the end of the source.
    pub(crate) fn byte(&mut self) -> io::Result<Option<u8>> {
        if self.at >= self.input.len() {
            self.more()?;
        }
        let byte = self.input.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        Ok(byte)
    }

    /// What was inflated and not taken yet, after inflating some when there was none; nothing at
    /// the end of the stream.
    pub(crate) fn inflated(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.filled && self.state != State::Done {
            self.make_room();
            self.inflate();
        }
        if self.taken == self.filled
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        Ok(&self.window[self.taken..self.filled])
    }

    pub(crate) fn take(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.filled);
    }

    /// Moves the history to the begin of the window.
    fn make_room(&mut self) {
        let from = self.filled.saturating_sub(HISTORY);
        self.window.copy_within(from..self.filled, 0);
        self.filled -= from;
        self.taken = self.filled;
        self.floor = self.floor.saturating_sub(from);
    }

    /// Inflates until the window is full or the stream ends, be it by damage.
    fn inflate(&mut self) {
        let end = self.window.len() - LONGEST;
        while self.filled < end && self.state != State::Done {
            let result = match self.state {
                State::Between => self.block(),
                State::Stored(left) => self.stored(left, end),
                _ => self.codes(end),
            };
            if let Err(error) = result {
                self.failed = Some(error);
                self.state = State::Done;
            }
        }
    }

    /// Reads more of the source behind what is left of the input.
    fn more(&mut self) -> io::Result<()> {
        // The bit buffer may give some back.
        let kept = self.at.min(8);
        self.input.drain(..self.at - kept);
        self.at = kept;
        let room = (INPUT - self.input.len().min(INPUT)) as u64;
        let before = self.input.len();
        (&mut self.source).take(room).read_to_end(&mut self.input)?;
        self.ended = self.input.len() == before;
        Ok(())
    }

    /// Makes sure that the input holds a symbol, if the source does.
    fn ready(&mut self) -> io::Result<()> {
        if self.input.len() - self.at < SYMBOL && !self.ended {
            self.more()?;
        }
        Ok(())
    }

    /// Takes bits, 32 at most.
    fn take_bits(&mut self, number: u32) -> io::Result<u32> {
        while self.count < number {
            if self.at >= self.input.len() && !self.ended {
                self.more()?;
            }
            let byte = self.input.get(self.at).ok_or_else(cut_off)?;
            self.bits |= u64::from(*byte) << self.count;
            self.at += 1;
            self.count += 8;
        }
        let value = self.bits & ((1 << number) - 1);
        self.bits >>= number;
        self.count -= number;
        Ok(value as u32)
    }

    /// Gives whole bytes of the bit buffer back to the input and drops the rest of the one begun.
    fn align(&mut self) {
        self.at -= (self.count / 8) as usize;
        (self.bits, self.count) = (0, 0);
    }

    /// Reads the begin of a block.
    fn block(&mut self) -> io::Result<()> {
        if self.last {
            self.align();
            self.state = State::Done;
            return Ok(());
        }
        self.last = self.take_bits(1)? == 1;
        match self.take_bits(2)? {
            0 => {
                self.align();
                let (length, check) = (self.take_bits(16)?, self.take_bits(16)?);
                if length ^ check != 0xffff {
                    return Err(damaged("the length of a stored block"));
                }
                self.state = State::Stored(length as usize);
            }
            1 => {
                let literals: Vec<u8> = [(144, 8), (112, 9), (24, 7), (8, 8)]
                    .into_iter()
                    .flat_map(|(times, length)| std::iter::repeat_n(length, times))
                    .collect();
                self.tables(&literals, &[5; 32])?;
            }
            2 => self.own_codes()?,
            _ => return Err(damaged("a block of no known kind")),
        }
        Ok(())
    }

    fn stored(&mut self, left: usize, end: usize) -> io::Result<()> {
        if left == 0 {
            self.state = State::Between;
            return Ok(());
        }
        if self.at >= self.input.len() {
            self.more()?;
        }
        let number = left.min(self.input.len() - self.at).min(end - self.filled);
        if number == 0 {
            return Err(cut_off());
        }
        let to = self.filled + number;
        self.window[self.filled..to].copy_from_slice(&self.input[self.at..self.at + number]);
        (self.at, self.filled) = (self.at + number, to);
        self.state = State::Stored(left - number);
        Ok(())
    }

    /// Reads the codes of a block that brings its own.
    fn own_codes(&mut self) -> io::Result<()> {
        let literals = self.take_bits(5)? as usize + 257;
        let distances = self.take_bits(5)? as usize + 1;
        let given = self.take_bits(4)? as usize + 4;
        if literals > 286 || distances > 30 {
            return Err(damaged("too many codes"));
        }
        let mut of_lengths = [0; 19];
        for &place in &ORDER[..given] {
            of_lengths[place] = self.take_bits(3)? as u8;
        }
        const BITS: u32 = 7;
        let mut table = [0; 1 << BITS];
        let entry = |symbol: usize| (symbol as u32) << VALUE_SHIFT;
        fill(&mut table, BITS, &of_lengths, entry)?;
        let mut lengths = [0_u8; 286 + 30];
        let mut at = 0;
        while at < literals + distances {
            let symbol = self.symbol(&table, BITS)?;
            let (value, times) = match symbol {
                0..16 => (symbol as u8, 1),
                16 if at == 0 => return Err(damaged("a repeated length without one")),
                16 => (lengths[at - 1], 3 + self.take_bits(2)? as usize),
                17 => (0, 3 + self.take_bits(3)? as usize),
                _ => (0, 11 + self.take_bits(7)? as usize),
            };
            if at + times > literals + distances {
                return Err(damaged("too many lengths"));
            }
            lengths[at..at + times].fill(value);
            at += times;
        }
        self.tables(&lengths[..literals], &lengths[literals..literals + distances])
    }

    /// Decodes one symbol bit by bit: there are few of them.
    fn symbol(&mut self, table: &[u32], bits: u32) -> io::Result<u32> {
        self.ready()?;
        while self.count < bits && self.at < self.input.len() {
            self.bits |= u64::from(self.input[self.at]) << self.count;
            self.at += 1;
            self.count += 8;
        }
        let entry = table[(self.bits & ((1 << bits) - 1)) as usize];
        let length = entry & 31;
        if length == 0 {
            return Err(damaged("a code of no symbol"));
        }
        self.take_bits(length)?;
        Ok(entry >> VALUE_SHIFT)
    }

    fn tables(&mut self, literals: &[u8], distances: &[u8]) -> io::Result<()> {
        fill(&mut self.literals[..], LITERAL_BITS, literals, |symbol| match symbol {
            0..256 => LITERAL | (symbol as u32) << VALUE_SHIFT,
            256 => SPECIAL | END,
            _ => LENGTHS.get(symbol - 257).map_or(SPECIAL, based),
        })?;
        fill(&mut self.distances[..], DISTANCE_BITS, distances, |symbol| {
            DISTANCES.get(symbol).map_or(SPECIAL, based)
        })?;
        self.state = State::Codes;
        Ok(())
    }

    /// Decodes symbols until the window is full or the block ends.
    fn codes(&mut self, end: usize) -> io::Result<()> {
        while self.filled < end && self.state == State::Codes {
            self.ready()?;
            if self.input.len() - self.at < SYMBOL {
                // Near the end of the source, zeros stand for what comes after it.
                let (length, before) = (self.input.len(), self.filled);
                self.input.resize(length + 2 * SYMBOL, 0);
                let result = self.decode(before + 1);
                self.input.truncate(length);
                if 8 * self.at > 8 * length + self.count as usize {
                    self.filled = before;
                    return Err(cut_off());
                }
                self.give_back(length);
                result?;
            } else {
                self.decode(end)?;
            }
        }
        Ok(())
    }

    /// Takes bytes out of the bit buffer that are not the source's.
    fn give_back(&mut self, length: usize) {
        while self.at > length {
            self.at -= 1;
            self.count -= 8;
        }
        self.bits &= mask(self.count);
    }

    /// Decodes symbols while the window has room and the input holds a whole one.
    fn decode(&mut self, end: usize) -> io::Result<()> {
        let mut bits = Bits { input: &self.input, at: self.at, bits: self.bits, count: self.count };
        let mut out = Out { window: &mut self.window, to: self.filled, end, floor: self.floor };
        let ended = symbols(&mut bits, &mut out, &self.literals, &self.distances);
        self.filled = out.to;
        (self.at, self.count, self.bits) = (bits.at, bits.count, bits.bits & mask(bits.count));
        if ended? {
            self.state = State::Between;
        }
        Ok(())
    }
}

/// The input as bits, the first one lowest. Above those that count may be some of the next.
struct Bits<'a> {
    input: &'a [u8],
    at: usize,
    bits: u64,
    count: u32,
}

impl Bits<'_> {
    /// Fills up to 56 bits at least, if the input has eight bytes.
    #[inline(always)]
    fn refill(&mut self) {
        if let Some(word) = self.input.get(self.at..).and_then(|rest| rest.first_chunk()) {
            self.bits |= u64::from_le_bytes(*word) << self.count;
            self.at += ((63 - self.count) >> 3) as usize;
            self.count |= 56;
        }
    }

    /// Drops the bits of an entry, extra ones among them.
    #[inline(always)]
    fn pass(&mut self, entry: u32) {
        self.bits >>= entry & 31;
        self.count = self.count.wrapping_sub(entry & 31);
    }

    #[inline(always)]
    fn literal(&self, table: &[u32; LITERAL_ENTRIES]) -> u32 {
        table[(self.bits & ((1 << LITERAL_BITS) - 1)) as usize]
    }

    #[inline(always)]
    fn distance(&self, table: &[u32; DISTANCE_ENTRIES]) -> u32 {
        let entry = table[(self.bits & ((1 << DISTANCE_BITS) - 1)) as usize];
        if entry & TABLE == 0 { entry } else { further(table, entry, self.bits, DISTANCE_BITS) }
    }
}

/// The window as it is filled, up to `end` and a match beyond.
struct Out<'a> {
    window: &'a mut [u8],
    to: usize,
    end: usize,
    floor: usize,
}

impl Out<'_> {
    #[inline(always)]
    fn put(&mut self, entry: u32) {
        self.window[self.to] = (entry >> VALUE_SHIFT) as u8;
        self.to += 1;
    }
}

/// Decodes symbols; true when the block ended. After a refill there are bits for three literals
/// and a length; the next symbol is looked up before a match is copied.
#[inline(always)]
fn symbols(
    bits: &mut Bits<'_>,
    out: &mut Out<'_>,
    literals: &[u32; LITERAL_ENTRIES],
    distances: &[u32; DISTANCE_ENTRIES],
) -> io::Result<bool> {
    bits.refill();
    let mut entry = bits.literal(literals);
    'symbols: while out.to < out.end && bits.at + SYMBOL <= bits.input.len() {
        for _ in 0..3 {
            if entry & LITERAL == 0 {
                break;
            }
            bits.pass(entry);
            out.put(entry);
            entry = bits.literal(literals);
        }
        if entry & LITERAL != 0 {
            bits.refill();
            continue 'symbols;
        }
        if entry & TABLE != 0 {
            entry = further(literals, entry, bits.bits, LITERAL_BITS);
            if entry & LITERAL != 0 {
                bits.pass(entry);
                out.put(entry);
                bits.refill();
                entry = bits.literal(literals);
                continue 'symbols;
            }
        }
        if entry & END != 0 {
            bits.pass(entry);
            return Ok(true);
        }
        if entry & SPECIAL != 0 {
            return Err(damaged("a code of no symbol"));
        }
        let length = value(entry, bits.bits);
        bits.pass(entry);
        bits.refill();
        let back = bits.distance(distances);
        let distance = value(back, bits.bits);
        if back & SPECIAL != 0 || distance > out.to - out.floor {
            return Err(damaged("a match before the begin"));
        }
        bits.pass(back);
        bits.refill();
        entry = bits.literal(literals);
        copy(out.window, out.to, distance, length);
        out.to += length;
    }
    Ok(false)
}

/// The bits that count.
const fn mask(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// A base and its extra bits as an entry, of which the bits of the code are still to be added.
fn based(&(base, extra): &(u16, u8)) -> u32 {
    u32::from(base) << VALUE_SHIFT | u32::from(extra)
}

/// The length or distance of an entry: its base and the extra bits behind the code.
#[inline(always)]
fn value(entry: u32, bits: u64) -> usize {
    let (all, code) = (entry & 31, entry >> CODE_SHIFT & 31);
    let extra = (bits & ((1 << all) - 1)) >> code;
    (entry >> VALUE_SHIFT) as usize + extra as usize
}

/// The entry of a code that is longer than the first table has bits.
#[inline(always)]
fn further(table: &[u32], entry: u32, bits: u64, first: u32) -> u32 {
    let further = (bits >> first) & ((1 << (entry & 31)) - 1);
    table.get((entry >> VALUE_SHIFT) as usize + further as usize).copied().unwrap_or(SPECIAL)
}

/// Copies a match, 32 bytes at a time; what is written beyond it is overwritten later.
#[inline(always)]
fn copy(window: &mut [u8], to: usize, distance: usize, length: usize) {
    let (mut from, mut at, mut gap) = (to - distance, to, distance);
    let end = to + length;
    // What repeats in less than a step is first spread until it does not.
    while gap < STEP {
        window.copy_within(from..from + STEP, at);
        at += gap;
        gap *= 2;
    }
    while at < end {
        window.copy_within(from..from + STEP, at);
        from += STEP;
        at += STEP;
    }
}

/// Makes the table of a code from the lengths of its symbols' codes.
fn fill(
    table: &mut [u32],
    first: u32,
    lengths: &[u8],
    entry: impl Fn(usize) -> u32,
) -> io::Result<()> {
    let mut counts = [0_usize; 16];
    lengths.iter().for_each(|&length| counts[usize::from(length)] += 1);
    counts[0] = 0;
    let used: u32 = (1..16).map(|length| (counts[length] as u32) << (15 - length)).sum();
    let single = counts[1] == 1 && lengths.iter().filter(|length| **length > 0).count() == 1;
    if used > 1 << 15 || (used < 1 << 15 && used > 0 && !single) {
        return Err(damaged("codes that do not fit together"));
    }
    let mut next = [0_u32; 16];
    for length in 1..15 {
        next[length + 1] = (next[length] + counts[length] as u32) << 1;
    }
    table.fill(SPECIAL);
    let mut free = 1_usize << first;
    // Where the further table of a first part begins, and its bits.
    let mut order: Vec<(u8, usize)> = (0..lengths.len())
        .filter(|&symbol| lengths[symbol] > 0)
        .map(|symbol| (lengths[symbol], symbol))
        .collect();
    order.sort_unstable();
    for (length, symbol) in order {
        let length = u32::from(length);
        let code = next[length as usize];
        next[length as usize] += 1;
        let reversed = (code.reverse_bits() >> (32 - length)) as usize;
        let symbol = entry(symbol);
        // Extra bits are dropped with the code.
        let is_plain = symbol & (LITERAL | SPECIAL) != 0;
        let extra = if is_plain { 0 } else { symbol & 31 };
        let symbol = (symbol & !31) | (length + extra) | length << CODE_SHIFT;
        if length <= first {
            table[..1 << first]
                .iter_mut()
                .skip(reversed)
                .step_by(1 << length)
                .for_each(|e| *e = symbol);
            continue;
        }
        let start = reversed & ((1 << first) - 1);
        if table[start] & TABLE == 0 {
            let bits = 15 - first;
            table[start] = TABLE | SPECIAL | (free as u32) << VALUE_SHIFT | bits;
            free += 1 << bits;
        }
        let (begin, bits) = ((table[start] >> VALUE_SHIFT) as usize, table[start] & 31);
        let rest = reversed >> first;
        let Some(further) = table.get_mut(begin..begin + (1 << bits)) else {
            return Err(damaged("too many long codes"));
        };
        further.iter_mut().skip(rest).step_by(1 << (length - first)).for_each(|e| *e = symbol);
    }
    Ok(())
}
