//! A part of a file as it stands: groups of columns and a span of time, copied cell by cell.
//!
//! What is about CPU or memory is not understood here and can still be cut out, for a spreadsheet
//! or perfmon. A part by VM or device needs the joins: that is [`Slice`](crate::Slice).

use std::{collections::BTreeSet, io::Write};

use crate::{
    Error, Input, Limits,
    cells::Row,
    header::{HeaderLine, cells, group},
    input::{Block, lines},
    parse_stamp,
};

/// What to copy of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Groups as esxtop names them (`Physical Disk SCSI Device`, `Memory`), in any case; empty for
    /// all.
    pub groups: Vec<String>,
    /// The first instant copied, in milliseconds since 1970-01-01 UTC.
    pub from_ms: Option<i64>,
    /// The last instant copied.
    pub to_ms: Option<i64>,
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutReport {
    /// Columns, the time not among them.
    pub columns: usize,
    /// Rows.
    pub rows: u64,
    /// Rows left out because they have no time or another number of cells than the header.
    pub damaged_rows: u64,
}

/// Copies a part of `input` to `out`; lines end as esxtop ends them. The file is read and written
/// block by block.
///
/// # Errors
/// An input that cannot be read or is no capture, a group that it does not have, those of `out`.
pub fn cut(
    input: Input,
    part: &Cut,
    limits: &Limits,
    out: &mut impl Write,
) -> Result<CutReport, Error> {
    let name = input.name().to_owned();
    let mut copy =
        Copy { name, part, out, head: Vec::new(), body: None, report: CutReport::default() };
    input.blocks(limits, &mut |block: Block<'_>| copy.add(block.bytes))?;
    copy.finish()
}

/// A file being copied.
struct Copy<'a, W> {
    name: String,
    part: &'a Cut,
    out: &'a mut W,
    /// What came before the header was whole.
    head: Vec<u8>,
    body: Option<Body>,
    report: CutReport,
}

struct Body {
    /// The byte that ends a line.
    end: u8,
    /// Cells of a whole row.
    cells: usize,
    /// Cells that are copied, ascending, the time not among them.
    wanted: Vec<usize>,
}

impl<W: Write> Copy<'_, W> {
    fn add(&mut self, block: &[u8]) -> Result<(), Error> {
        if self.body.is_some() {
            return self.copy_rows(block);
        }
        self.head.extend_from_slice(block);
        let head = std::mem::take(&mut self.head);
        match HeaderLine::find(&self.name, &head)? {
            Some(line) => {
                self.copy_header(&head[line.cells], line.end)?;
                self.copy_rows(&head[line.rows..])
            }
            None => {
                self.head = head;
                Ok(())
            }
        }
    }

    fn finish(mut self) -> Result<CutReport, Error> {
        if self.body.is_none() {
            let head = std::mem::take(&mut self.head);
            let line = HeaderLine::find_at_end(&self.name, &head)?;
            self.copy_header(&head[line.cells], line.end)?;
        }
        self.out.flush().map_err(|error| self.not_written(&error))?;
        Ok(self.report)
    }

    fn copy_header(&mut self, header: &[u8], end: u8) -> Result<(), Error> {
        let mut all: Vec<&[u8]> = cells(header).collect();
        if all.last().is_some_and(|cell| cell.is_empty()) {
            all.pop();
        }
        let groups: Vec<String> = all.iter().map(|cell| group(cell).unwrap_or_default()).collect();
        for wanted in &self.part.groups {
            if !groups.iter().any(|group| group.eq_ignore_ascii_case(wanted)) {
                let known: BTreeSet<_> =
                    groups.iter().map(String::as_str).filter(|group| !group.is_empty()).collect();
                let known = known.into_iter().collect::<Vec<_>>().join(", ");
                let what = format!("has no group '{wanted}'; it has {known}");
                return Err(Error::new(&self.name, what));
            }
        }
        let is_wanted = |group: &String| {
            let groups = &self.part.groups;
            groups.is_empty() || groups.iter().any(|wanted| group.eq_ignore_ascii_case(wanted))
        };
        let wanted: Vec<usize> = (1..all.len()).filter(|&cell| is_wanted(&groups[cell])).collect();
        self.report.columns = wanted.len();
        let copied = [0].iter().chain(&wanted).flat_map(|&cell| [all[cell], b","]);
        let line: Vec<u8> = copied.flatten().copied().chain([b'\n']).collect();
        self.body = Some(Body { end, cells: all.len(), wanted });
        self.write(&line)
    }

    fn copy_rows(&mut self, block: &[u8]) -> Result<(), Error> {
        let Some(body) = &self.body else { return Ok(()) };
        let mut copied = Vec::new();
        for (line, _) in lines(block, body.end).filter(|(line, _)| !line.trim_ascii().is_empty()) {
            let before = copied.len();
            let time_ms = body.copy_row(line, &mut copied);
            let within = |time_ms| {
                self.part.from_ms.is_none_or(|from| time_ms >= from)
                    && self.part.to_ms.is_none_or(|to| time_ms <= to)
            };
            match time_ms {
                Some(time_ms) if within(time_ms) => self.report.rows += 1,
                Some(_) => copied.truncate(before),
                None => {
                    copied.truncate(before);
                    self.report.damaged_rows += 1;
                }
            }
        }
        self.write(&copied)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).map_err(|error| self.not_written(&error))
    }

    fn not_written(&self, error: &std::io::Error) -> Error {
        Error::new(&self.name, format!("its part cannot be written: {error}"))
    }
}

impl Body {
    /// Copies a row; its time, or `None` when it is damaged.
    fn copy_row(&self, line: &[u8], out: &mut Vec<u8>) -> Option<i64> {
        let mut row = Row::new(line);
        let stamp = row.next()?;
        out.extend_from_slice(stamp);
        out.push(b',');
        for &cell in &self.wanted {
            row.skip(cell - row.cells);
            out.extend_from_slice(row.next()?);
            out.push(b',');
        }
        row.skip(usize::MAX);
        out.push(b'\n');
        let (time_ms, _) = parse_stamp(stamp)?;
        (row.cells == self.cells).then_some(time_ms)
    }
}
