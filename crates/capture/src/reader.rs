//! Files become recordings.
//!
//! Blocks of whole lines come from [`Input`]; the header says which cells are wanted; the lines of
//! a block are shared between threads; values are turned from rows to columns block by block, so
//! that nothing is held twice.

use std::{num::NonZeroUsize, path::PathBuf};

use counters::{Counter, Kind, Recording, SHORTEST_INTERVAL_S};
use memchr::memrchr;

use crate::{
    Error, FileReport, HostReport, Input, Limits, Progress, ReadReport, Stamps, Zone,
    beginning::{is_rate, unmeasured},
    cells::{Damage, Layout, Rows},
    columns::Columns,
    header::{Header, HeaderLine, holds_header},
    input::{Block, MARK, lines},
    joins::describe,
    merge::merge_counted,
    report::ROWS_NAMED,
    slice,
    time::{refine, usual_step},
};

/// How much room is made at a time while a compressed file is read: how its bytes are spread over
/// the rows is not known.
const COMPRESSED_GROWTH: usize = 4;

/// Captures that may stand one behind the other in a file.
const MOST_HEADERS: u64 = 1_000;

/// What to read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The kinds of objects of which the columns are read.
    pub kinds: Vec<Kind>,
    /// The counters of which the columns are read.
    pub counters: Vec<Counter>,
    /// What a file may ask of the machine.
    pub limits: Limits,
    /// Threads that read rows.
    pub threads: NonZeroUsize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            kinds: Kind::ALL.to_vec(),
            counters: Counter::TABLE.iter().map(|info| info.counter).collect(),
            limits: Limits::default(),
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        }
    }
}

/// What captures hold.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// One recording for each host; several files of one host are joined in time.
    pub recordings: Vec<Recording>,
    /// What was read, what was left out, what was wrong.
    pub report: ReadReport,
}

/// Reads captures. `paths` may hold `-` for standard input, compressed files and archives;
/// `progress` is told the bytes read and their number, which is 0 while unknown.
///
/// # Errors
/// The first file that cannot be read or is no capture.
pub fn read(
    paths: &[PathBuf],
    options: &ReadOptions,
    progress: Progress<'_>,
) -> Result<Capture, Error> {
    let mut inputs = Vec::new();
    for path in paths {
        inputs.extend(Input::open(path)?);
    }
    read_inputs(inputs, options, progress)
}

/// Reads captures that are open already; like [`read`].
///
/// # Errors
/// The first input that cannot be read or is no capture.
pub fn read_inputs(
    inputs: Vec<Input>,
    options: &ReadOptions,
    progress: Progress<'_>,
) -> Result<Capture, Error> {
    let known = inputs.iter().all(|input| input.total_bytes() > 0);
    let total = if known { inputs.iter().map(Input::total_bytes).sum() } else { 0 };
    let mut before = 0;
    let mut recordings = Vec::new();
    let mut files = Vec::new();
    for input in inputs {
        let size = input.total_bytes();
        let file = read_file(input, options, &mut |done| progress(before + done, total))?;
        before += size;
        recordings.extend(file.0);
        files.push(file.1);
    }
    let described = |(mut recording, repeated_samples): (Recording, usize)| {
        let report = HostReport { repeated_samples, ..describe(&mut recording) };
        (recording, report)
    };
    let (recordings, hosts) = merge_counted(recordings).into_iter().map(described).unzip();
    Ok(Capture { recordings, report: ReadReport { files, hosts } })
}

fn read_file(
    input: Input,
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<(Vec<Recording>, FileReport), Error> {
    let threads = options.threads.get();
    let mut reader = Reader {
        name: input.name().into(),
        size: input.total_bytes(),
        plain: input.is_plain(),
        threads: if input.is_plain() { threads } else { (threads - 1).max(1) },
        header_bytes: 0,
        idle_bytes: 0,
        begun: false,
        options,
        report: FileReport { file: input.name().into(), ..FileReport::default() },
        lines: 0,
        head: Vec::new(),
        body: None,
        finished: Vec::new(),
        values: 0,
    };
    let ended_early = input.blocks(&options.limits, &mut |block| {
        reader.add(&block)?;
        progress(block.done);
        Ok(())
    })?;
    reader.report.ended_early = ended_early;
    reader.finish()
}

/// One file being read.
struct Reader<'a> {
    name: String,
    /// Bytes of the source, 0 when unknown, and whether they are the bytes of the lines.
    size: u64,
    plain: bool,
    /// Threads that read rows; where bytes have to be inflated, one does that.
    threads: usize,
    header_bytes: u64,
    /// Bytes since the last whole row.
    idle_bytes: u64,
    /// Whether a row was read.
    begun: bool,
    options: &'a ReadOptions,
    report: FileReport,
    /// Lines before the block in hand.
    lines: u64,
    /// What came before the header was whole.
    head: Vec<u8>,
    body: Option<Body>,
    /// What stood above a header in the middle, and how many values it has.
    finished: Vec<Recording>,
    values: usize,
}

/// The part below the header.
struct Body {
    header: Header,
    layout: Layout,
    /// The byte that ends a line.
    end: u8,
    /// Of each wanted column, whether it is 0 in esxtop's first sample.
    is_rate: Vec<bool>,
    /// The time of a first row without rates, which is left out.
    first_ms: Option<i64>,
    times_ms: Vec<i64>,
    /// The line of each row in the file.
    lines: Vec<u64>,
    columns: Columns,
    /// Rows that were turned to columns, to be filled again: fresh memory costs as much as parsing.
    turned: Vec<Rows>,
}

/// Lines of a block that one thread has read.
#[derive(Default)]
struct Part {
    rows: Rows,
    lines: u64,
    damaged_rows: u64,
    /// Line in this part, from 0.
    damaged: Vec<(u64, Damage)>,
    /// Bytes read: all, or those before another header.
    bytes: usize,
    /// Whether another header ended it.
    at_header: bool,
}

impl Reader<'_> {
    fn add(&mut self, block: &Block<'_>) -> Result<(), Error> {
        self.report.bytes += block.bytes.len() as u64;
        let mut head;
        let mut rest = block.bytes;
        loop {
            if self.body.is_none() {
                self.head.extend_from_slice(rest);
                head = std::mem::take(&mut self.head);
                let Some(line) = HeaderLine::find(&self.name, &head)? else {
                    self.head = head;
                    return Ok(());
                };
                self.header_bytes = line.rows as u64;
                self.start_body(&head, &line);
                rest = &head[line.rows..];
            }
            let Some(header) = self.add_rows(rest, block.done)? else { return Ok(()) };
            self.head = rest[header..].to_vec();
            rest = &[];
            self.end_body()?;
        }
    }

    /// Another capture begins in the same file.
    fn end_body(&mut self) -> Result<(), Error> {
        self.report.further_headers += 1;
        if self.report.further_headers > MOST_HEADERS {
            let what = format!("holds more than {MOST_HEADERS} headers; refused");
            return Err(Error::at(&self.name, self.lines, what));
        }
        self.begun = false;
        self.finish_body();
        Ok(())
    }

    fn start_body(&mut self, head: &[u8], line: &HeaderLine) {
        let before = &head[..line.cells.start];
        let text = String::from_utf8_lossy(before);
        let text = text.trim().trim_start_matches(MARK).trim();
        if !text.is_empty() {
            self.report.text_before_header = Some(text.to_owned());
        }
        self.lines += lines(&head[..line.rows], line.end).count() as u64;
        let mut header = Header::parse(&head[line.cells.clone()], &self.options.kinds);
        header.keep(&self.options.counters);
        let wanted = header.wanted();
        let is_rate = |&(_, host, place): &(usize, usize, usize)| {
            is_rate(header.hosts[host].columns[place].2)
        };
        if self.report.zone == Zone::Utc {
            self.report.zone.clone_from(&header.zone);
        }
        self.body = Some(Body {
            layout: Layout::new(header.cells, wanted.iter().map(|column| column.0)),
            end: line.end,
            is_rate: wanted.iter().map(is_rate).collect(),
            first_ms: None,
            times_ms: Vec::new(),
            lines: Vec::new(),
            turned: Vec::new(),
            columns: Columns::new(wanted.len()),
            header,
        });
    }

    /// Reads the rows of a block, of which the last source byte is `done`. Returns where another
    /// header begins.
    fn add_rows(&mut self, block: &[u8], done: u64) -> Result<Option<usize>, Error> {
        let Some(body) = &mut self.body else { return Ok(None) };
        let (mut parts, mut passed, mut rest) = (Vec::new(), 0, block);
        while !self.begun && !rest.is_empty() {
            let length = memchr::memchr(body.end, rest).map_or(rest.len(), |end| end + 1);
            let mut part = body.parse(&rest[..length], Rows::default());
            self.begun = !part.rows.times_ms.is_empty();
            if body.is_first_sample(&part.rows) {
                self.report.first_row_left_out = true;
                body.first_ms = part.rows.times_ms.first().copied();
                self.report.rows += 1;
                part.rows = Rows { stamps: part.rows.stamps, ..Rows::default() };
            }
            if part.at_header || !part.rows.times_ms.is_empty() {
                rest = if part.at_header { &[] } else { &rest[length..] };
                parts.push(part);
            } else {
                // There may be millions of them.
                note(&mut self.report, &mut self.lines, part);
                passed += length;
                rest = &rest[length..];
            }
        }
        parts.extend(body.parse_parallel(rest, self.threads));
        let header = parts.iter().position(|part| part.at_header).map(|last| {
            parts.truncate(last + 1);
            passed + parts.iter().map(|part| part.bytes).sum::<usize>()
        });
        let most_rows = self.options.limits.values / body.columns.width().max(1);
        let rows_before = body.times_ms.len();
        body.times_ms.extend(parts.iter().flat_map(|part| &part.rows.times_ms));
        let room = if self.plain {
            let rows_of = |bytes: u64| bytes.saturating_sub(self.header_bytes);
            body.room(rows_of(done), rows_of(self.size), most_rows)
        } else {
            let most_rows = most_rows.min(COMPRESSED_GROWTH * body.times_ms.len());
            body.room(done, self.size, most_rows)
        };
        let values: Vec<&[f64]> = parts.iter().map(|part| part.rows.values.as_slice()).collect();
        body.columns.append(&values, room, self.threads);
        for part in parts {
            body.lines.extend(part.rows.lines.iter().map(|line| self.lines + line + 1));
            body.turned.push(note(&mut self.report, &mut self.lines, part));
        }
        let values = body.times_ms.len().saturating_mul(body.columns.width());
        let has_row = body.times_ms.len() > rows_before;
        let read = &block[..header.unwrap_or(block.len())];
        let idle = self.options.limits.idle(self.idle_bytes, read, has_row);
        self.idle_bytes = idle.map_err(|what| Error::at(&self.name, self.lines, what))?;
        if self.values.saturating_add(values) > self.options.limits.values {
            let what = format!(
                "holds more than {} disk values; read fewer kinds of objects or cut the file",
                self.options.limits.values
            );
            return Err(Error::new(&self.name, what));
        }
        Ok(header)
    }

    /// Turns what stands below the header in hand into recordings.
    fn finish_body(&mut self) {
        let Some(body) = self.body.take() else { return };
        self.report.columns = self.report.columns.max(body.header.cells.saturating_sub(1));
        self.report.disk_columns = self.report.disk_columns.max(body.columns.width());
        self.report.duplicate_columns += body.header.duplicates;
        self.report.other_columns = self.report.other_columns.max(body.header.other_columns);
        self.report.unknown_columns.extend(body.header.unknown.clone());
        let hint = body.header.hosts.iter().find_map(|host| host.worlds.version());
        self.report.version = self.report.version.or(hint);
        self.values += body.times_ms.len() * body.columns.width();
        self.finished.extend(body.recordings(&mut self.report));
    }

    fn finish(mut self) -> Result<(Vec<Recording>, FileReport), Error> {
        if self.body.is_none() {
            let head = std::mem::take(&mut self.head);
            let line = HeaderLine::find_at_end(&self.name, &head)?;
            self.start_body(&head, &line);
        }
        self.finish_body();
        if self.finished.is_empty() {
            let what = "has no disk column; expected a capture of esxtop -b with disk fields on";
            return Err(Error::at(&self.name, self.lines.max(1), what));
        }
        Ok((self.finished, self.report))
    }
}

/// Adds what a part says to the report. Returns its rows, emptied.
fn note(report: &mut FileReport, lines: &mut u64, part: Part) -> Rows {
    for (line, damage) in part.damaged {
        report.add_damage(*lines + line + 1, damage);
    }
    *lines += part.lines;
    report.rows += part.rows.times_ms.len();
    report.damaged_rows += part.damaged_rows;
    report.bad_cells += part.rows.bad_cells;
    report.stamps = report.stamps.max(part.rows.stamps);
    part.rows.emptied()
}

impl Body {
    /// Reads the lines of a block into `rows`, which is empty.
    fn parse(&self, block: &[u8], rows: Rows) -> Part {
        let mut part = Part { rows, bytes: block.len(), ..Part::default() };
        for (line, ended) in lines(block, self.end) {
            if line.trim_ascii().is_empty() {
                part.lines += 1;
                continue;
            }
            match part.rows.add(line, ended, &self.layout) {
                Ok(()) => part.rows.lines.push(part.lines),
                Err(_) if holds_header(line) => {
                    part.bytes = line.as_ptr().addr() - block.as_ptr().addr();
                    part.at_header = true;
                    break;
                }
                Err(damage) => {
                    part.damaged_rows += 1;
                    if part.damaged.len() < ROWS_NAMED {
                        part.damaged.push((part.lines, damage));
                    }
                }
            }
            part.lines += 1;
        }
        part
    }

    fn parse_parallel(&mut self, block: &[u8], threads: usize) -> Vec<Part> {
        let mut shares = Vec::new();
        let mut rest = block;
        while !rest.is_empty() {
            let share = (block.len() / threads).clamp(1, rest.len());
            let end = memrchr(self.end, &rest[..share]).map_or_else(
                || memchr::memchr(self.end, rest).map_or(rest.len(), |end| end + 1),
                |end| end + 1,
            );
            let end = if shares.len() + 1 == threads { rest.len() } else { end };
            shares.push((&rest[..end], self.turned.pop().unwrap_or_default()));
            rest = &rest[end..];
        }
        let body = &*self;
        std::thread::scope(|scope| {
            let mine = shares.pop();
            let others: Vec<_> = shares
                .into_iter()
                .map(|(share, rows)| scope.spawn(move || body.parse(share, rows)))
                .collect();
            let mine = mine.map(|(share, rows)| body.parse(share, rows));
            let others = others.into_iter().map(|thread| match thread.join() {
                Ok(part) => part,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            others.chain(mine).collect()
        })
    }

    /// Whether a row is the first sample of esxtop, in which every rate and latency is 0 [CAP-A].
    /// Files that were merged have empty cells where one of them lacks a column.
    fn is_first_sample(&self, rows: &Rows) -> bool {
        let rates = rows.values.iter().zip(&self.is_rate).filter(|(_, rate)| **rate);
        let mut known = rates.map(|(value, _)| *value).filter(|value| !value.is_nan()).peekable();
        known.peek().is_some() && known.all(|value| value == 0.0)
    }

    /// How many rows to make room for: as many as `done` of `size` bytes promise, but no more than
    /// `most_rows`.
    fn room(&self, done: u64, size: u64, most_rows: usize) -> usize {
        /// Rows differ in length, and a little too much costs less than growing again.
        const MARGIN: f64 = 1.02;
        let rows = self.times_ms.len();
        let promised = (rows as f64 * MARGIN * size as f64 / done.max(1) as f64) as usize;
        promised.min(most_rows).max(rows)
    }

    fn recordings(self, report: &mut FileReport) -> Vec<Recording> {
        let (mut times_ms, lines) = (self.times_ms, self.lines);
        let to_utc_ms = self.header.zone.to_utc_ms(report.stamps);
        times_ms.iter_mut().for_each(|time| *time = time.saturating_add(to_utc_ms));
        let first_ms = self.first_ms.map(|time| time.saturating_add(to_utc_ms));
        let wanted = self.header.wanted();
        let mut hosts = self.header.hosts;
        let place = |column: usize| {
            let (_, host, place) = wanted[column];
            let (_, entity, counter) = hosts[host].columns[place];
            (host, entity, counter)
        };
        let places: Vec<_> = (0..wanted.len()).map(place).collect();
        let mut recordings: Vec<_> = hosts.iter_mut().map(|host| &mut host.recording).collect();
        self.columns.hand_over(&places, &mut recordings);
        let recordings = hosts.into_iter().map(|host| host.recording);
        let recordings = recordings.filter(|host| !host.entities().is_empty());
        timed(recordings.collect(), times_ms, &lines, report, first_ms)
    }
}

/// Gives the recordings of a file their times, without rows that are there twice and those of the first
/// sample, which was at `first_ms`.
fn timed(
    mut recordings: Vec<Recording>,
    mut times_ms: Vec<i64>,
    lines: &[u64],
    report: &mut FileReport,
    first_ms: Option<i64>,
) -> Vec<Recording> {
    let repeats = |row: usize| {
        let same = |values: &[f64]| values[row].to_bits() == values[row - 1].to_bits();
        recordings.iter().flat_map(Recording::columns).all(|column| same(column.2))
    };
    let is_alike = |row: usize| row > 0 && times_ms[row] == times_ms[row - 1];
    let alike = (0..times_ms.len()).filter(|&row| is_alike(row)).count();
    // Where minutes are all there is, or samples are many a second, rows may well be alike.
    let is_fast = report.stamps != Stamps::Seconds || 2 * alike > times_ms.len();
    let is_dense = usual_step(&times_ms) < 1_000 * i64::from(SHORTEST_INTERVAL_S);
    let is_new = |row: &usize| is_fast || !is_alike(*row) || is_dense && !repeats(*row);
    let begin = first_ms
        .map_or(0, |first_ms| unmeasured(&recordings, &times_ms, first_ms, is_fast || is_dense));
    report.unmeasured_rows += begin;
    let rows: Vec<usize> = (begin..times_ms.len()).filter(is_new).collect();
    report.repeated_rows += times_ms.len() - begin - rows.len();
    if rows.len() < times_ms.len() {
        for recording in &mut recordings {
            recording.times_ms.clone_from(&times_ms);
            *recording = slice::samples(recording, &rows);
        }
        times_ms = rows.iter().map(|&row| times_ms[row]).collect();
    }
    let jumps = refine(&mut times_ms, report.stamps);
    let lines_of = |places: Vec<usize>| places.into_iter().map(|place| lines[rows[place]]);
    report.clock_set_back.extend(lines_of(jumps.back));
    report.clock_set_ahead.extend(lines_of(jumps.ahead));
    report.stray_rows.extend(lines_of(jumps.strays));
    report.backward_steps += times_ms.windows(2).filter(|pair| pair[1] < pair[0]).count();
    recordings.iter_mut().for_each(|recording| recording.times_ms.clone_from(&times_ms));
    recordings
}
