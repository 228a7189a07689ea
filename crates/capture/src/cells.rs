//! One row of a capture: skip to the columns that are wanted, and read their numbers.
//!
//! The hot loop of the reader. A row of 20,000 cells is 130 KB, of which a fifth is about disks;
//! the rest is only counted, comma by comma, to know that the row is whole.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

use crate::time::{Stamps, parse_stamp};

/// Bytes counted at a time on the way to a column.
const STRIDE: usize = 1 << 10;

/// Powers of ten that a `f64` holds exactly, with a mantissa below 2^53.
const POWERS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// From here on nothing is a number that was counted: 2^64, in percent.
const BEYOND: f64 = 2e21;

/// Below this a number is 0: esxtop prints two decimals.
const NOTHING: f64 = 1e-15;

/// What esxtop prints most, and the bytes of a word that it fills.
const ZEROS: [(u64, usize); 2] = [word(b"\"0.00\","), word(b"\"0\",")];

const fn word<const LENGTH: usize>(cell: &[u8; LENGTH]) -> (u64, usize) {
    let mut bytes = [0; 8];
    let mut place = 0;
    while place < LENGTH {
        bytes[place] = cell[place];
        place += 1;
    }
    (u64::from_le_bytes(bytes), LENGTH)
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It has another number of cells than the header.
    Cells {
        /// Cells in the row.
        found: usize,
        /// Cells in the header.
        expected: usize,
    },
    /// It does not begin with a time.
    Stamp(String),
    /// It is the last line of the file, and its end is missing.
    Cut,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cells { found, expected } => {
                write!(f, "{found} cells where the header has {expected}")
            }
            Self::Stamp(cell) => {
                write!(f, "'{cell}' is not a time; expected MM/DD/YYYY HH:MM:SS")
            }
            Self::Cut => write!(f, "the end of the line is missing"),
        }
    }
}

/// What the rows of one file have in common.
pub(crate) struct Layout {
    /// Cells of a whole row, without an empty one at the end.
    pub(crate) cells: usize,
    /// The wanted cells, ascending, as runs of neighbours; the first cell (the time) is in none.
    pub(crate) wanted: Vec<Range<usize>>,
}

impl Layout {
    /// Rows of so many cells, of which those at the positions `wanted` are read.
    pub(crate) fn new(cells: usize, wanted: impl IntoIterator<Item = usize>) -> Self {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for position in wanted {
            match runs.last_mut() {
                Some(run) if run.end == position => run.end += 1,
                _ => runs.push(position..position + 1),
            }
        }
        Self { cells, wanted: runs }
    }
}

/// Whole rows, one after the other.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) times_ms: Vec<i64>,
    /// The line of each row in what was read with it, from 0.
    pub(crate) lines: Vec<u64>,
    /// The wanted cells of each row.
    pub(crate) values: Vec<f64>,
    /// Coarsest stamp seen.
    pub(crate) stamps: Stamps,
    /// Wanted cells that hold no number; they are NaN.
    pub(crate) bad_cells: u64,
}

impl Rows {
    /// The same memory without rows.
    pub(crate) fn emptied(mut self) -> Self {
        self.times_ms.clear();
        self.lines.clear();
        self.values.clear();
        let Self { times_ms, lines, values, .. } = self;
        Self { times_ms, lines, values, ..Self::default() }
    }

    /// Reads a row and adds its values, or nothing when it is damaged. `ended` tells whether the
    /// line had its end.
    pub(crate) fn add(&mut self, line: &[u8], ended: bool, layout: &Layout) -> Result<(), Damage> {
        let before = self.values.len();
        let bad_before = self.bad_cells;
        let mut result = self.parse(line, ended, layout);
        if result.is_err() {
            self.values.truncate(before);
            self.bad_cells = bad_before;
        }
        if let Err(Damage::Cells { found, expected }) = result
            && found > expected
        {
            result = self.parse_quoted(line, layout).ok_or(Damage::Cells { found, expected });
        }
        result
    }

    /// Reads a row with commas in its cells; `None` when it has not as many cells as the header even so.
    #[cold]
    fn parse_quoted(&mut self, line: &[u8], layout: &Layout) -> Option<()> {
        let cells = whole_cells(line);
        let (time_ms, stamps) = parse_stamp(cells.first()?)?;
        if cells.len() != layout.cells {
            return None;
        }
        for &cell in layout.wanted.iter().flat_map(|run| &cells[run.clone()]) {
            let number = number(cell);
            self.bad_cells += u64::from(number.is_none());
            self.values.push(number.unwrap_or(f64::NAN));
        }
        self.stamps = self.stamps.max(stamps);
        self.times_ms.push(time_ms);
        Some(())
    }

    fn parse(&mut self, line: &[u8], ended: bool, layout: &Layout) -> Result<(), Damage> {
        let mut row = Row::new(line);
        let stamp = row.next().unwrap_or_default();
        for run in &layout.wanted {
            row.skip(run.start.saturating_sub(row.cells));
            let before = self.values.len();
            self.values.resize(before + run.len(), 0.0);
            self.bad_cells += row.numbers(&mut self.values[before..]);
        }
        row.skip(usize::MAX);
        let found = row.cells;
        if !ended && (found < layout.cells || is_cut(line)) {
            return Err(Damage::Cut);
        }
        if found != layout.cells {
            return Err(Damage::Cells { found, expected: layout.cells });
        }
        let Some((time_ms, stamps)) = parse_stamp(stamp) else {
            let shown = String::from_utf8_lossy(&stamp[..stamp.len().min(40)]);
            return Err(Damage::Stamp(shown.into_owned()));
        };
        self.stamps = self.stamps.max(stamps);
        self.times_ms.push(time_ms);
        Ok(())
    }
}

/// The cells of a line, blanks around them taken off.
///
/// A quoted cell ends at `",`, unless that quote is doubled as RFC 4180 has it; anything else ends at
/// the next comma outside quotes, which also keeps together the two cells that `esxtop -a` 6.5 prints
/// without a comma between them.
pub(crate) fn cells(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let length = if text.first() == Some(&b'"') {
            comma_behind_quotes(text)
        } else {
            comma_outside_quotes(text)
        };
        let (cell, after) = match length {
            Some(length) => (&text[..length], Some(&text[length + 1..])),
            None => (text, None),
        };
        rest = after;
        Some(cell.trim_ascii())
    })
}

/// The cells of a line, without an empty one at its end.
pub(crate) fn whole_cells(line: &[u8]) -> Vec<&[u8]> {
    let mut all: Vec<&[u8]> = cells(line).collect();
    all.pop_if(|cell| cell.is_empty());
    all
}

fn comma_behind_quotes(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr(b'"', text.get(at..)?)? + 1;
        match text.get(at)? {
            b',' => return Some(at),
            b'"' => at += 1,
            _ => {}
        }
    }
}

fn comma_outside_quotes(text: &[u8]) -> Option<usize> {
    let first = memchr(b',', text)?;
    if memchr(b'"', &text[..first]).is_none() {
        return Some(first);
    }
    let mut quoted = false;
    text.iter().position(|&byte| {
        quoted ^= byte == b'"';
        byte == b',' && !quoted
    })
}

/// Whether the last cell of a line begins with a quote and does not end with one.
fn is_cut(line: &[u8]) -> bool {
    let cell = memchr::memrchr(b',', line).map_or(line, |comma| &line[comma + 1..]);
    cell.starts_with(b"\"") && (cell.len() == 1 || !cell.ends_with(b"\""))
}

/// What is left of a row, and how many cells were taken from it.
pub(crate) struct Row<'a> {
    rest: &'a [u8],
    pub(crate) cells: usize,
}

impl<'a> Row<'a> {
    pub(crate) const fn new(line: &'a [u8]) -> Self {
        Self { rest: line, cells: 0 }
    }

    /// Reads cells into `values`, which are 0, as far as there are cells. Returns how many of them
    /// hold no number; they become NaN.
    fn numbers(&mut self, values: &mut [f64]) -> u64 {
        let mut bad = 0;
        for value in values {
            if let Some(length) = zero(self.rest) {
                self.rest = &self.rest[length..];
                self.cells += 1;
            } else if let Some((number, length)) = plain_number(self.rest) {
                *value = number;
                self.rest = &self.rest[length..];
                self.cells += 1;
            } else {
                let Some(cell) = self.next() else { return bad };
                let number = number(cell);
                bad += u64::from(number.is_none());
                *value = number.unwrap_or(f64::NAN);
            }
        }
        bad
    }

    /// Takes a cell; `None` at the end of the row.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest;
        if rest.is_empty() {
            return None;
        }
        self.cells += 1;
        // Cells are short: a plain loop beats a search.
        let near = &rest[..rest.len().min(16)];
        let comma = near.iter().position(|&byte| byte == b',').or_else(|| memchr(b',', rest));
        let Some(comma) = comma else {
            self.rest = &[];
            return Some(rest);
        };
        self.rest = &rest[comma + 1..];
        Some(&rest[..comma])
    }

    /// Skips that many cells, or what there is.
    pub(crate) fn skip(&mut self, mut cells: usize) {
        const FEW: usize = 8;
        while cells < FEW && cells > 0 && self.next().is_some() {
            cells -= 1;
        }
        while cells > 0 && !self.rest.is_empty() {
            let stride = &self.rest[..self.rest.len().min(STRIDE)];
            let commas = commas(stride);
            if commas >= cells {
                let last = memchr_iter(b',', stride).nth(cells - 1);
                self.rest = &self.rest[last.map_or(stride.len(), |comma| comma + 1)..];
                self.cells += cells;
                return;
            }
            self.cells += commas;
            cells -= commas;
            let at_end = stride.len() == self.rest.len();
            if at_end && stride.last() != Some(&b',') {
                self.cells += 1;
            }
            self.rest = &self.rest[stride.len()..];
        }
    }
}

/// How many commas there are. Every processor compares and adds many bytes at a time; `memchr` counts
/// bits, which costs twice as much where there is no instruction for that.
pub(crate) fn commas(bytes: &[u8]) -> usize {
    /// So few that their sum is a byte.
    const BLOCK: usize = 128;
    let is_comma = |byte: &u8| u8::from(*byte == b',');
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let blocks = blocks.iter().map(|block| usize::from(block.iter().map(is_comma).sum::<u8>()));
    blocks.sum::<usize>() + usize::from(rest.iter().map(is_comma).sum::<u8>())
}

/// The length of the cell with which `bytes` begin, its comma included, when it is a zero as
/// esxtop prints it.
#[inline]
fn zero(bytes: &[u8]) -> Option<usize> {
    let word = u64::from_le_bytes(*bytes.first_chunk()?);
    let is =
        |&(zero, length): &(u64, usize)| word << (64 - 8 * length) == zero << (64 - 8 * length);
    ZEROS.iter().find(|zero| is(zero)).map(|zero| zero.1)
}

/// The number in the cell with which `bytes` begin and the length of the cell, its comma included,
/// when it is a number as esxtop prints it: in quotes, of digits, with or without decimals.
#[inline]
fn plain_number(bytes: &[u8]) -> Option<(f64, usize)> {
    // So few digits that the mantissa is exact.
    const LONGEST: usize = 16;
    let (mut mantissa, mut decimals, mut point) = (0_u64, 0, false);
    if bytes.first() != Some(&b'"') {
        return None;
    }
    for (place, &byte) in bytes.iter().enumerate().take(LONGEST).skip(1) {
        match byte {
            b'0'..=b'9' => {
                mantissa = mantissa * 10 + u64::from(byte - b'0');
                decimals += usize::from(point);
            }
            b'.' if !point && place > 1 => point = true,
            b'"' if place > 1 && bytes.get(place + 1) == Some(&b',') => {
                return Some((mantissa as f64 / POWERS[decimals], place + 2));
            }
            _ => return None,
        }
    }
    None
}

/// The number in a cell, with or without quotes; NaN for an empty cell, `None` for anything that
/// is not a number.
#[inline]
pub(crate) fn number(cell: &[u8]) -> Option<f64> {
    let digits = match cell {
        [b'"', inner @ .., b'"'] => inner,
        _ => cell,
    };
    let (mut mantissa, mut decimals, mut point) = (0_u64, 0, false);
    if digits.is_empty() || digits.len() > 16 {
        return odd_number(digits);
    }
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                mantissa = mantissa * 10 + u64::from(byte - b'0');
                decimals += usize::from(point);
            }
            b'.' if !point => point = true,
            _ => return odd_number(digits),
        }
    }
    if mantissa >= 1 << 53 || (point && digits.len() == 1) {
        return odd_number(digits);
    }
    Some(mantissa as f64 / POWERS[decimals])
}

/// Signs, exponents, blanks, and more digits than fit.
#[cold]
fn odd_number(cell: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(cell).ok()?.trim();
    if text.is_empty() {
        return Some(f64::NAN);
    }
    let value: f64 = text.parse().ok().filter(|value: &f64| value.abs() < BEYOND)?;
    Some(if value.abs() < NOTHING { 0.0 } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_comma_is_counted() {
        for length in [0, 1, 127, 128, 129, 255, 256, 1_024, 1_100] {
            assert_eq!(commas(&vec![b','; length]), length);
            assert_eq!(commas(&b"0,".repeat(length)), length);
        }
    }

    #[test]
    fn numbers_are_read_in_every_form_seen() {
        let table = [
            ("\"0.00\"", Some(0.0)),
            ("12.5", Some(12.5)),
            ("\"-1\"", Some(-1.0)),
            ("    73.1", Some(73.1)),
            ("1.5E+05", Some(150_000.0)),
            ("\"18446744073709551615\"", Some(18_446_744_073_709_551_615.0)),
            ("    73.1\"8.93\"", None),
            ("\"12.", None),
            (".", None),
            ("1.2.3", None),
            ("inf", None),
            ("nan", None),
        ];
        for (cell, expected) in table {
            assert_eq!(number(cell.as_bytes()), expected, "{cell}");
        }
        assert!(number(b"\"\"").is_some_and(f64::is_nan));
        assert!(number(b"").is_some_and(f64::is_nan));
    }

    fn row(line: &str, ended: bool, cells: usize, wanted: &[usize]) -> Result<Vec<f64>, Damage> {
        let mut rows = Rows::default();
        let layout = Layout::new(cells, wanted.iter().copied());
        rows.add(line.as_bytes(), ended, &layout).map(|()| rows.values)
    }

    #[test]
    fn a_row_is_whole_or_damaged() {
        const T: &str = "\"04/26/2018 14:06:27\"";
        let cells = |found| Err(Damage::Cells { found, expected: 4 });
        let table = [
            (format!("{T},\"1\",\"0.00\",\"3.5\""), true, Ok(vec![1.0, 3.5])),
            (format!("{T},\"1\",\"0.00\",\"0.00\","), true, Ok(vec![1.0, 0.0])),
            ("4/26/2018 14:06:27,1,0,3.5".into(), true, Ok(vec![1.0, 3.5])),
            (format!("{T},\"1\",\"0.00\""), true, cells(3)),
            (format!("{T},\"1\",\"2\",\"3\",\"4\""), true, cells(5)),
            (format!("{T},\"1\",\"2\""), false, Err(Damage::Cut)),
            (format!("{T},\"1\",\"2\",\"3"), false, Err(Damage::Cut)),
            (format!("{T},\"1\",\"2\",\"3\""), false, Ok(vec![1.0, 3.0])),
            ("\"x\",1,2,3".into(), true, Err(Damage::Stamp("\"x\"".into()))),
            (String::new(), true, cells(0)),
        ];
        for (line, ended, expected) in table {
            assert_eq!(row(&line, ended, 4, &[1, 3]), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn a_number_is_what_the_standard_library_reads(text in "[0-9]{1,12}(\\.[0-9]{1,6})?") {
            prop_assert_eq!(number(text.as_bytes()), text.parse().ok());
        }

        #[test]
        fn a_row_is_cut_at_its_commas(
            numbers in prop::collection::vec(0_u32..10_000, 1..3_000),
            every in 1_usize..50,
        ) {
            let line = numbers.iter().fold("01/01/2026 00:00:00".to_owned(), |l, n| {
                format!("{l},\"{n}\"")
            });
            let wanted: Vec<_> = (1..=numbers.len()).step_by(every).collect();
            let expected: Vec<_> =
                wanted.iter().map(|&place| f64::from(numbers[place - 1])).collect();
            prop_assert_eq!(row(&line, true, numbers.len() + 1, &wanted), Ok(expected));
        }
    }
}
