//! Several files of one host become one, row by row, every column kept.
//!
//! The files are read twice: first for their headers and times, then to be copied one after the
//! other in the order of time. Nothing is held but headers, so that their size does not matter.

use counters::sorted::sort_by_key;
use std::{collections::BTreeMap, io::Write, path::PathBuf};

use counters::Recording;

use crate::{
    CopyReport, Error, Input, Limits, Progress, ReadOptions, Stamps, Zone,
    copy::{Rewrite, Row, copy},
    header::{Header, text_of},
    merge::is_same_host,
    parse_stamp,
};

/// Files of one host, in the order of time.
pub struct Sequence {
    files: Vec<Part>,
    /// Every column of any of the files, in the order in which they come.
    columns: Vec<Vec<u8>>,
}

/// What became of one file of a sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceReport {
    /// What was copied.
    pub copy: CopyReport,
    /// Rows left out because the files before it reach beyond their time.
    pub repeated_rows: u64,
    /// Columns of the sequence that this file does not have; their cells are empty.
    pub missing_columns: usize,
}

/// A file of a sequence.
struct Part {
    path: PathBuf,
    /// Which capture of an archive it is.
    index: usize,
    host: Recording,
    header: Vec<Vec<u8>>,
    first_ms: i64,
    last_ms: i64,
}

impl Sequence {
    /// Looks at the headers and times of files and puts those of the same host together.
    ///
    /// # Errors
    /// A file that cannot be read or is no capture, that comes from a stream, that holds several
    /// hosts, or of which the times are not those of esxtop.
    pub fn of(
        paths: &[PathBuf],
        limits: &Limits,
        progress: Progress<'_>,
    ) -> Result<Vec<Self>, Error> {
        let mut hosts: Vec<Vec<Part>> = Vec::new();
        for path in paths {
            let name = path.display().to_string();
            if !path.is_file() && path.exists() || name == "-" {
                return Err(Error::new(
                    &name,
                    "is read twice to be merged; save it to a file first",
                ));
            }
            for (index, input) in Input::open(path)?.into_iter().enumerate() {
                let Some(part) = Part::of(path.clone(), index, input, limits, progress)? else {
                    continue;
                };
                let is_same = |other: &Part| {
                    other.host.host == part.host.host && is_same_host(&other.host, &part.host)
                };
                let same = |host: &&mut Vec<Part>| host.iter().any(is_same);
                match hosts.iter_mut().find(same) {
                    Some(host) => host.push(part),
                    None => hosts.push(vec![part]),
                }
            }
        }
        Ok(hosts.into_iter().map(Self::of_host).collect())
    }

    fn of_host(mut files: Vec<Part>) -> Self {
        sort_by_key(&mut files, |file| (file.first_ms, file.last_ms));
        let mut columns: Vec<Vec<u8>> = Vec::new();
        let mut seen = BTreeMap::new();
        for cell in files.iter().flat_map(|file| &file.header[1..]) {
            seen.entry(cell).or_insert_with(|| columns.push(cell.clone()));
        }
        Self { files, columns }
    }

    /// The host's name as in the first file.
    #[must_use]
    pub fn host(&self) -> &str {
        self.files.first().map_or("", |file| file.host.host.as_str())
    }

    /// Copies the files to `out` as one.
    ///
    /// # Errors
    /// A file that cannot be read any more, those of `out`.
    pub fn write(
        &self,
        limits: &Limits,
        out: &mut dyn Write,
        progress: Progress<'_>,
    ) -> Result<Vec<SequenceReport>, Error> {
        let mut one = One { columns: &self.columns, to_utc_ms: 0, last_ms: None, next: None };
        let mut reports = Vec::new();
        for file in &self.files {
            let gone = || Error::new(&file.path.display().to_string(), "has changed meanwhile");
            let input = Input::open(&file.path)?.into_iter().nth(file.index).ok_or_else(gone)?;
            let copied = copy(input, limits, &mut one, out, progress)?;
            let part = one.next.take().ok_or_else(gone)?;
            one.last_ms = one.last_ms.max(part.last_ms);
            let missing_columns = part.positions.iter().filter(|place| place.is_none()).count();
            let repeated_rows = part.repeated_rows;
            reports.push(SequenceReport { copy: copied, repeated_rows, missing_columns });
        }
        Ok(reports)
    }
}

impl Part {
    /// The header and the times of a file; `None` when it has no row.
    fn of(
        path: PathBuf,
        index: usize,
        input: Input,
        limits: &Limits,
        progress: Progress<'_>,
    ) -> Result<Option<Self>, Error> {
        let name = input.name().to_owned();
        let mut span = Span::default();
        copy(input, limits, &mut span, &mut std::io::sink(), progress)?;
        let refuse = |what: &str| Err(Error::new(&name, what));
        if span.stamps != Stamps::Seconds {
            return refuse(
                "has times without a date or without seconds, as spreadsheets save them; \
                           they do not say what comes first",
            );
        }
        let kinds = ReadOptions::default().kinds;
        let line = span.header.join(&b","[..]);
        let mut hosts = Header::parse(&line, &kinds).hosts;
        if hosts.len() > 1 {
            return refuse("has columns of several hosts; expected one host in each file");
        }
        let host = hosts.pop().map(|host| host.recording).unwrap_or_default();
        let part = |(first_ms, last_ms)| Self {
            path,
            index,
            host,
            header: span.header,
            first_ms,
            last_ms,
        };
        Ok(span.times_ms.map(part))
    }
}

/// The header and the times of a file, of which nothing is written.
#[derive(Default)]
struct Span {
    header: Vec<Vec<u8>>,
    times_ms: Option<(i64, i64)>,
    stamps: Stamps,
}

impl Rewrite for Span {
    fn header(&mut self, _: &str, cells: &[&[u8]]) -> Result<Vec<u8>, Error> {
        self.header = cells.iter().map(|cell| cell.to_vec()).collect();
        Ok(Vec::new())
    }

    fn row(&mut self, row: &Row<'_>, _: &mut Vec<u8>) -> bool {
        let (first, last) = self.times_ms.unwrap_or((row.time_ms, row.time_ms));
        self.times_ms = Some((first.min(row.time_ms), last.max(row.time_ms)));
        let stamps = parse_stamp(row.cells[0]).map(|(_, stamps)| stamps);
        self.stamps = self.stamps.max(stamps.unwrap_or_default());
        false
    }
}

/// The file that is made of all.
struct One<'a> {
    columns: &'a [Vec<u8>],
    /// How far its clock, which is that of the first file, is from UTC.
    to_utc_ms: i64,
    /// The last instant of the files before; `None` for the first.
    last_ms: Option<i64>,
    /// The file on its way.
    next: Option<Next>,
}

struct Next {
    /// Where each column of the whole stands in this file.
    positions: Vec<Option<usize>>,
    begun: bool,
    last_ms: Option<i64>,
    repeated_rows: u64,
}

impl Rewrite for One<'_> {
    fn header(&mut self, _: &str, cells: &[&[u8]]) -> Result<Vec<u8>, Error> {
        let mut places = BTreeMap::new();
        for (position, cell) in cells.iter().enumerate().skip(1) {
            places.entry(*cell).or_insert(position);
        }
        let positions = self.columns.iter().map(|cell| places.get(cell.as_slice()).copied());
        let positions = positions.collect();
        self.next = Some(Next { positions, begun: false, last_ms: None, repeated_rows: 0 });
        if self.last_ms.is_some() {
            return Ok(Vec::new());
        }
        self.to_utc_ms = Zone::of(&text_of(cells[0])).to_utc_ms(Stamps::Seconds);
        let all = [cells[0]].into_iter().chain(self.columns.iter().map(Vec::as_slice));
        Ok(all.flat_map(|cell| [cell, b","]).flatten().copied().collect())
    }

    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) -> bool {
        let Some(next) = &mut self.next else { return false };
        let is_first = !std::mem::replace(&mut next.begun, true);
        if let Some(last_ms) = self.last_ms {
            // The zeros of a later file's first row would stand in the middle of the whole.
            if is_first && row.is_first_sample() {
                return false;
            }
            if row.time_ms <= last_ms {
                next.repeated_rows += 1;
                return false;
            }
        }
        next.last_ms = next.last_ms.max(Some(row.time_ms));
        out.extend_from_slice(&row.stamp(self.to_utc_ms));
        out.push(b',');
        for position in &next.positions {
            out.extend_from_slice(position.map_or(b"\"\"", |position| row.cells[position]));
            out.push(b',');
        }
        true
    }
}
