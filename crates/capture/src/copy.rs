//! A capture copied cell by cell, changed on the way: the floor below `cut`, `anonymize` and
//! `merge`, beside the reader.
//!
//! What is about CPU, memory or networks is not understood here and is copied all the same. The
//! file is read and written block by block, so that its size does not matter.

use std::{borrow::Cow, io::Write};

use counters::Counter;

use crate::{
    Error, Input, Limits, Progress,
    catalogue::{Group, Instance},
    cells::{number, whole_cells},
    header::{Cell, HeaderLine, holds_header, text_of},
    input::{Block, lines},
    time::{Stamps, format_stamp, parse_stamp},
    zone::Zone,
};

/// What is changed on the way.
pub(crate) trait Rewrite {
    /// Takes the header: the cells of `file`, the time's first. Returns what is written of it,
    /// without the end of the line; nothing when it is not to be written.
    fn header(&mut self, file: &str, cells: &[&[u8]]) -> Result<Vec<u8>, Error>;

    /// Adds what is written of a row to `out`, without the end of the line. False when nothing
    /// is.
    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) -> bool;
}

/// A whole row.
pub(crate) struct Row<'a> {
    /// Its instant, in milliseconds since 1970-01-01 UTC.
    pub(crate) time_ms: i64,
    /// How exact that is, and what was added to the time in its cell.
    stamps: Stamps,
    to_utc_ms: i64,
    /// As many as the header has, the time's first, quotes and blanks included.
    pub(crate) cells: &'a [&'a [u8]],
    /// Positions of rates and latencies of disks.
    rates: &'a [usize],
}

impl Row<'_> {
    /// The cell of its time by a clock that is `to_utc_ms` from UTC, as it stands where that is its own.
    pub(crate) fn stamp(&self, to_utc_ms: i64) -> Cow<'_, [u8]> {
        if self.to_utc_ms == to_utc_ms {
            return self.cells[0].into();
        }
        let text = format_stamp(self.time_ms.saturating_sub(to_utc_ms));
        let minutes = text.rsplit_once(':').filter(|_| self.stamps == Stamps::Minutes);
        format!("\"{}\"", minutes.map_or(&*text, |(minutes, _)| minutes)).into_bytes().into()
    }

    /// Whether every rate that is there is 0, as in the first sample of esxtop [CAP-A].
    pub(crate) fn is_first_sample(&self) -> bool {
        let values = self.rates.iter().map(|&cell| number(self.cells[cell]));
        let mut known = values.filter(|value| !value.is_some_and(f64::is_nan)).peekable();
        known.peek().is_some() && known.all(|value| value == Some(0.0))
    }
}

/// What was copied of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// The file as the user named it.
    pub file: String,
    /// Columns, the time not among them.
    pub columns: usize,
    /// Rows.
    pub rows: u64,
    /// Rows left out because they have no time or another number of cells than the header.
    pub damaged_rows: u64,
    /// Headers in the middle, where captures were put one behind the other; with the first row
    /// below each, which has no rates, they were left out.
    pub further_headers: u64,
    /// Why the data ended before the file did (a gzip file cut short).
    pub ended_early: Option<String>,
}

/// Copies `input` to `out` by way of `rewrite`.
///
/// # Errors
/// An input that cannot be read or is no capture, what `rewrite` refuses, those of `out`.
pub(crate) fn copy(
    input: Input,
    limits: &Limits,
    rewrite: &mut dyn Rewrite,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<CopyReport, Error> {
    let report = CopyReport { file: input.name().to_owned(), ..CopyReport::default() };
    let body = None;
    let mut copy =
        Copy { rewrite, out, limits, report, head: Vec::new(), body, lines: 0, idle_bytes: 0 };
    let total = input.total_bytes();
    let ended_early = input.blocks(limits, &mut |block: Block<'_>| {
        copy.add(block.bytes)?;
        progress(block.done, total);
        Ok(())
    })?;
    copy.report.ended_early = ended_early;
    copy.finish()
}

/// A file being copied.
struct Copy<'a> {
    rewrite: &'a mut dyn Rewrite,
    out: &'a mut dyn Write,
    limits: &'a Limits,
    report: CopyReport,
    /// What came before the header was whole.
    head: Vec<u8>,
    body: Option<Body>,
    /// Lines so far, and bytes since the last whole row.
    lines: u64,
    idle_bytes: u64,
}

struct Body {
    /// The header line as it stands.
    header: Vec<u8>,
    /// The byte that ends a line.
    end: u8,
    /// Cells of a whole row.
    cells: usize,
    /// The clock of the rows.
    zone: Zone,
    /// Positions of rates and latencies of disks.
    rates: Vec<usize>,
    /// Whether the next row is the first below a header in the middle.
    after_header: bool,
}

impl Copy<'_> {
    fn add(&mut self, block: &[u8]) -> Result<(), Error> {
        if self.body.is_some() {
            return self.add_rows(block);
        }
        self.head.extend_from_slice(block);
        let head = std::mem::take(&mut self.head);
        match HeaderLine::find(&self.report.file, &head)? {
            Some(line) => {
                self.start(&head, &line)?;
                self.add_rows(&head[line.rows..])
            }
            None => {
                self.head = head;
                Ok(())
            }
        }
    }

    fn finish(mut self) -> Result<CopyReport, Error> {
        if self.body.is_none() {
            let head = std::mem::take(&mut self.head);
            let line = HeaderLine::find_at_end(&self.report.file, &head)?;
            self.start(&head, &line)?;
        }
        self.out.flush().map_err(|error| self.not_written(&error))?;
        Ok(self.report)
    }

    fn start(&mut self, head: &[u8], line: &HeaderLine) -> Result<(), Error> {
        self.lines = lines(&head[..line.rows], line.end).count() as u64;
        let header = head[line.cells.clone()].to_vec();
        let all = whole_cells(&header);
        let mut written = self.rewrite.header(&self.report.file, &all)?;
        if !written.is_empty() {
            self.report.columns = whole_cells(&written).len() - 1;
            written.push(b'\n');
        }
        let rates = (1..all.len()).filter(|&cell| is_rate(all[cell])).collect();
        let (end, cells) = (line.end, all.len());
        let zone = all.first().map_or(Zone::Unknown, |cell| Zone::of(&text_of(cell)));
        self.body = Some(Body { header, end, cells, zone, rates, after_header: false });
        self.write(&written)
    }

    fn add_rows(&mut self, block: &[u8]) -> Result<(), Error> {
        let Some(body) = &mut self.body else { return Ok(()) };
        let (mut copied, mut row) = (Vec::with_capacity(block.len()), Vec::new());
        let (mut after_header, mut has_row) = (body.after_header, false);
        for (line, ended) in lines(block, body.end) {
            self.lines += 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            match body.row(line, ended, &mut row) {
                Some(row) => {
                    has_row = true;
                    let skip = std::mem::take(&mut after_header) && row.is_first_sample();
                    if !skip && self.rewrite.row(&row, &mut copied) {
                        copied.push(b'\n');
                        self.report.rows += 1;
                    }
                }
                None if line.ends_with(&body.header) => {
                    after_header = true;
                    self.report.further_headers += 1;
                }
                None if holds_header(line) => {
                    let what = "another capture begins here, with other columns; \
                                cut the file in two before this line";
                    return Err(Error::at(&self.report.file, self.lines, what));
                }
                None => self.report.damaged_rows += 1,
            }
        }
        body.after_header = after_header;
        let idle = self.limits.idle(self.idle_bytes, block, has_row);
        self.idle_bytes = idle.map_err(|what| Error::at(&self.report.file, self.lines, what))?;
        self.write(&copied)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).map_err(|error| self.not_written(&error))
    }

    fn not_written(&self, error: &std::io::Error) -> Error {
        Error::not_written(&self.report.file, error)
    }
}

impl Body {
    /// A line taken apart; `None` when it is damaged.
    fn row<'a, 'line: 'a>(
        &'a self,
        line: &'line [u8],
        ended: bool,
        into: &'a mut Vec<&'line [u8]>,
    ) -> Option<Row<'a>> {
        into.clear();
        into.extend(line.split(|&byte| byte == b','));
        into.pop_if(|cell| cell.is_empty());
        if into.len() > self.cells {
            *into = whole_cells(line);
        }
        let last = into.last()?;
        let cut = !ended && last.starts_with(b"\"") && (last.len() == 1 || !last.ends_with(b"\""));
        let (time_ms, stamps) = parse_stamp(into.first()?)?;
        let to_utc_ms = self.zone.to_utc_ms(stamps);
        let time_ms = time_ms.saturating_add(to_utc_ms);
        let whole = !cut && into.len() == self.cells;
        whole.then_some(Row { time_ms, stamps, to_utc_ms, cells: into, rates: &self.rates })
    }
}

fn is_rate(cell: &[u8]) -> bool {
    let text = text_of(cell);
    let is_rate = |cell: Cell<'_>| {
        let disk = Group::find(cell.group).is_some_and(|g| g.instance == Instance::Disk);
        let counter = Counter::from_batch_name(cell.counter).filter(|_| disk);
        counter.is_some_and(|counter| matches!(counter.info().unit, "1/s" | "MiB/s" | "ms"))
    };
    Cell::parse(&text).is_some_and(is_rate)
}
