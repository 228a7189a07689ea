//! What the reader is measured against: large captures, and the least that any reader must do.
//!
//! `kavg bench capture` times these beside the whole of `kavg diagnose` and foreign programs.

use std::{
    fs::File,
    io::{self, Read, Write},
    ops::Range,
    path::Path,
};

use memchr::{memchr, memchr_iter};

pub use crate::generate::{Shape, generate};
use crate::{
    cells::commas,
    header::{Header, HeaderLine},
    input::{decoder, map},
};

/// Bytes of which the commas are counted at a time.
const STRIDE: usize = 1 << 10;

/// The cells from the first to the last disk column of a capture that lies uncompressed.
///
/// # Errors
/// A file that cannot be read or is no capture.
pub fn disk_cells(path: &Path) -> io::Result<Range<usize>> {
    let bytes = map(&File::open(path)?)?;
    let line = HeaderLine::find(&path.display().to_string(), &bytes).map_err(io::Error::other)?;
    let line = line.ok_or_else(|| io::Error::other(format!("{}: no header", path.display())))?;
    let wanted = Header::parse(&bytes[line.cells], &crate::ReadOptions::default().kinds).wanted();
    let first = wanted.first().map_or(0, |column| column.0);
    Ok(first..wanted.last().map_or(0, |column| column.0 + 1))
}

/// The bare loop: skips to the disk columns of every row and adds up their digits, without a look
/// at whether the row is whole, and without keeping anything.
///
/// # Errors
/// A file that cannot be mapped.
pub fn bare_loop(path: &Path, disk: &Range<usize>, threads: usize) -> io::Result<u64> {
    let bytes = map(&File::open(path)?)?;
    let mut shares = Vec::new();
    let mut rest: &[u8] = &bytes;
    for left in (1..=threads.max(1)).rev() {
        let share = rest.len() / left;
        let end = memchr(b'\n', &rest[share..]).map_or(rest.len(), |end| share + end + 1);
        let (share, after) = rest.split_at(end);
        shares.push(share);
        rest = after;
    }
    std::thread::scope(|scope| {
        let sums: Vec<_> =
            shares.into_iter().map(|share| scope.spawn(|| add_up(share, disk))).collect();
        let sums = sums.into_iter().map(|sum| sum.join());
        sums.map(|sum| sum.map_err(|_| io::Error::other("a thread failed"))).sum()
    })
}

fn add_up(mut bytes: &[u8], disk: &Range<usize>) -> u64 {
    let mut sum = 0_u64;
    while !bytes.is_empty() {
        let mut cells = disk.len();
        let mut value = 0_u64;
        let mut at = begin_of_cell(bytes, disk.start);
        while let (1.., Some(byte)) = (cells, bytes.get(at)) {
            match byte {
                b',' => {
                    cells -= 1;
                    sum = sum.wrapping_add(value);
                    value = 0;
                }
                b'0'..=b'9' => value = value.wrapping_mul(10) + u64::from(byte - b'0'),
                _ => {}
            }
            at += 1;
        }
        let rest = &bytes[at.min(bytes.len())..];
        bytes = memchr(b'\n', rest).map_or(&[], |end| &rest[end + 1..]);
    }
    sum
}

/// Where a cell of the first row of `bytes` begins.
fn begin_of_cell(bytes: &[u8], cell: usize) -> usize {
    let (mut at, mut left) = (0, cell);
    for stride in bytes.chunks(STRIDE) {
        let commas = commas(stride);
        if commas >= left {
            break;
        }
        left -= commas;
        at += stride.len();
    }
    let comma = left.checked_sub(1).and_then(|last| memchr_iter(b',', &bytes[at..]).nth(last));
    comma.map_or(at, |comma| at + comma + 1)
}

/// Inflates a compressed file with the reader's own library, and drops what comes out. Returns
/// its bytes.
///
/// # Errors
/// A file that cannot be read.
pub fn inflate(path: &Path) -> io::Result<u64> {
    let mut stream = decoder(File::open(path)?)?;
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(bytes),
            read => bytes += read as u64,
        }
    }
}

/// Writes a file as `gzip` does by default.
///
/// # Errors
/// A file that cannot be read, those of `out`.
pub fn gzip(path: &Path, out: &mut impl Write) -> io::Result<()> {
    let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
    io::copy(&mut File::open(path)?, &mut encoder)?;
    encoder.finish().map(|_| ())
}

/// Writes a file as zstd, quickly.
///
/// # Errors
/// A file that cannot be read, those of `out`.
pub fn zstd(path: &Path, out: &mut impl Write) -> io::Result<()> {
    use ruzstd::encoding::{CompressionLevel, compress};
    compress(File::open(path)?, &mut *out, CompressionLevel::Fastest);
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bare_loop_adds_up_the_disk_cells_of_every_row() {
        let row = format!("t,{}\"1.50\",\"2\",\"3\",9,\n", "7,".repeat(2_000));
        let rows = row.repeat(3);
        assert_eq!(begin_of_cell(rows.as_bytes(), 0), 0);
        assert_eq!(add_up(rows.as_bytes(), &(2_001..2_004)), 3 * (150 + 2 + 3));
        assert_eq!(add_up(b"t,1\nt", &(5..7)), 0);
    }
}
