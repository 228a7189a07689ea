//! The header line of a capture: which column is which counter of which object.
//!
//! A header cell is `"\\<host>\<Group>(<instance>)\<Counter>"` [CAP-A]. What links the objects
//! is partly in the names and partly in the order of the columns: the paths, worlds and
//! partitions of a device follow it [CAP-A, CAP-B].

use counters::sorted::{Ordered, sort, sort_by_key};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use counters::{Counter, Entity, EntityId, Kind, Recording};
use memchr::{memchr, memchr_iter, memchr2, memmem};

use crate::{
    Error, Zone,
    bus::{Bus, split_virtual_disk},
    cells::cells,
    joins::untie_paths,
    worlds::Worlds,
};

/// What the first cell of every capture holds.
const MARK: &[u8] = b"(PDH-CSV";

/// Bytes in which the header must begin. Messages of a shell may stand before it [CAP].
pub(crate) const HEADER_WITHIN: usize = 1 << 16;

/// Bytes in which a line that ends inside of quotes must go on to its end.
const HEADER_LONGEST: usize = 64 << 20;

/// Groups of real captures that say nothing of disks [CAP-A, CAP-B, NMON].
const OTHER_GROUPS: [&str; 14] = [
    "Memory",
    "Physical Cpu Load",
    "Physical Cpu",
    "Power",
    "VSAN",
    "Group Cpu",
    "Vcpu",
    "Group Memory",
    "Network Port",
    "Interrupt Cookie",
    "Interrupt Vector",
    "PCPU Power State",
    "Numa Node",
    "VSAN(Owner)",
];

/// Whether a line is a header, with or without text before it.
pub(crate) fn holds_header(line: &[u8]) -> bool {
    memmem::find(&line[..line.len().min(HEADER_WITHIN)], MARK).is_some()
}

/// Where the header line is.
pub(crate) struct HeaderLine {
    /// Its cells, without the end of the line.
    pub(crate) cells: Range<usize>,
    /// Where the rows begin.
    pub(crate) rows: usize,
    /// The byte that ends a line.
    pub(crate) end: u8,
}

impl HeaderLine {
    /// Finds the header at the begin of a file; `None` when more of the file is needed.
    pub(crate) fn find(name: &str, head: &[u8]) -> Result<Option<Self>, Error> {
        Self::find_in(name, head, false)
    }

    fn find_in(name: &str, head: &[u8], is_all: bool) -> Result<Option<Self>, Error> {
        let window = &head[..head.len().min(HEADER_WITHIN)];
        let Some(mark) = memmem::find(window, MARK) else {
            let more = head.len() < HEADER_WITHIN;
            return if more { Ok(None) } else { Err(no_header(name, window)) };
        };
        let start = mark - usize::from(mark > 0 && head[mark - 1] == b'"');
        let Some(length) = line_length(&head[start..], is_all) else { return Ok(None) };
        let after = &head[start + length..];
        let (end, width) = match after {
            [b'\r', b'\n', ..] => (b'\n', 2),
            [end, ..] => (*end, 1),
            [] => return Ok(None),
        };
        let cells = start..start + length;
        if let Some(separator) = foreign_separator(&head[cells.clone()]) {
            let what = format!(
                "its cells are separated by {separator}, as a spreadsheet saves them where the \
                 comma is the decimal sign; expected commas between cells and points in numbers"
            );
            return Err(Error::at(name, 1, what));
        }
        Ok(Some(Self { rows: cells.end + width, cells, end }))
    }

    /// Finds the header of a file that ends with it.
    pub(crate) fn find_at_end(name: &str, head: &[u8]) -> Result<Self, Error> {
        let line = Self::find_in(name, &[head, b"\n"].concat(), true)?;
        let mut line = line.ok_or_else(|| no_header(name, head))?;
        line.rows = line.rows.min(head.len());
        if line.rows == head.len() && is_cut(&head[line.cells.clone()]) {
            let what = "the file ends inside of the header, whose last cell has no end; expected the whole \
                        file that esxtop -b wrote";
            return Err(Error::at(name, 1, what.to_owned()));
        }
        Ok(line)
    }
}

/// Whether a header ends inside of its last cell.
fn is_cut(header: &[u8]) -> bool {
    let last = memmem::rfind(header, b",\"").map_or(header, |comma| &header[comma + 1..]);
    let is_open = memchr_iter(b'"', last).count() % 2 == 1;
    is_open && last.starts_with(b"\"") && !last[1..].trim_ascii_end().ends_with(b"\"")
}

/// Where the line that begins with `text` ends: behind quotes that it opened, for a spreadsheet leaves
/// the ends of lines in names. esxtop leaves a quote in a name alone, so that one more may be opened than
/// closed: then rows follow. `None` when more than this is needed, unless this `is_all`.
fn line_length(text: &[u8], is_all: bool) -> Option<usize> {
    // A time fits, with the end of the line above it.
    const BELOW: usize = 64;
    let next = |from: usize| memchr2(b'\n', b'\r', &text[from..]).map(|end| from + end);
    let first = next(0)?;
    let (mut from, mut end, mut is_open) = (0, first, false);
    loop {
        is_open ^= memchr_iter(b'"', &text[from..end]).count() % 2 == 1;
        let below = text[end..text.len().min(end + BELOW)].trim_ascii_start();
        let cell = below.split(|byte| *byte == b',').next();
        if !is_open || cell.is_some_and(|cell| crate::parse_stamp(cell).is_some()) {
            return Some(end);
        }
        from = end + 1;
        match next(from) {
            Some(found) if found < HEADER_LONGEST => end = found,
            None if !is_all && text.len() < HEADER_LONGEST => return None,
            _ => return Some(first),
        }
    }
}

/// What stands between cells in the place of a comma.
fn foreign_separator(header: &[u8]) -> Option<&'static str> {
    let first = memchr(b'\\', header).map_or(header, |name| &header[..name]);
    match first.trim_ascii_end().strip_suffix(b"\"").unwrap_or(first).last()? {
        b';' => Some("semicolons"),
        b'\t' => Some("tabs"),
        _ => None,
    }
}

/// Why a file without a header is none of ours.
fn no_header(name: &str, head: &[u8]) -> Error {
    let expected = "expected the header of esxtop -b, which begins with \"(PDH-CSV 4.0)";
    let first = head.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    let cell = first.split(|&byte| byte == b',').next().unwrap_or_default();
    let what = if head.trim_ascii().is_empty() {
        "the file is empty"
    } else if head.starts_with(b"PAR1") {
        "the file is Parquet"
    } else if head.contains(&0) {
        "the file is binary"
    } else if crate::parse_stamp(cell).is_some() {
        "the file has rows and no header, as later parts of a split file have"
    } else {
        "this is no esxtop capture"
    };
    Error::at(name, 1, format!("{what}; {expected}"))
}

/// What the header says.
#[derive(Default)]
pub(crate) struct Header {
    /// Cells of the header and of every whole row, without an empty one at the end.
    pub(crate) cells: usize,
    /// The clock of the rows.
    pub(crate) zone: Zone,
    /// The hosts, in the order in which they appear.
    pub(crate) hosts: Vec<Host>,
    host_index: BTreeMap<String, usize>,
    /// Columns that came twice; the first is taken.
    pub(crate) duplicates: usize,
    /// Columns of known groups that are not about disks.
    pub(crate) other_columns: usize,
    /// Columns that nobody has seen before, by `Group\Counter`.
    pub(crate) unknown: BTreeMap<String, usize>,
}

/// The columns of one host.
pub(crate) struct Host {
    /// The objects with their links, still without values.
    pub(crate) recording: Recording,
    /// Position in the line, object and counter of each column to read; ascending.
    pub(crate) columns: Vec<(usize, EntityId, Counter)>,
    /// Who the worlds are.
    pub(crate) worlds: Worlds,
    index: BTreeMap<(Kind, String), EntityId>,
    seen: BTreeSet<(EntityId, Counter)>,
    /// Columns of the group `Physical Disk`, which repeats paths and adapters.
    repeats: Vec<(usize, EntityId, Counter)>,
    /// The device whose block of columns this is.
    device: Option<EntityId>,
    /// The devices whose block has begun.
    begun: BTreeSet<EntityId>,
    /// Whether blocks are torn or hold what is another device's: then no path is told by its place.
    is_shuffled: bool,
}

/// A header cell in parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cell<'a> {
    pub(crate) host: &'a str,
    pub(crate) group: &'a str,
    pub(crate) instance: Option<&'a str>,
    pub(crate) counter: &'a str,
}

impl<'a> Cell<'a> {
    /// Takes a cell apart. Names hold parentheses, so an instance ends at the last `)` before
    /// the last `\` [CAP-A].
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (host, rest) = text.strip_prefix(r"\\")?.split_once('\\')?;
        let (object, counter) = rest.rsplit_once('\\')?;
        let (group, instance) = match object.strip_suffix(')').and_then(|o| o.split_once('(')) {
            Some((group, instance)) => (group, Some(instance)),
            None => (object, None),
        };
        Some(Self { host, group, instance, counter })
    }
}

/// The text of a header cell, without its quotes; a doubled one in it is one, as RFC 4180 has it.
pub(crate) fn text_of(cell: &[u8]) -> Cow<'_, str> {
    let text = decode(unquoted(cell));
    if text.contains("\"\"") { text.replace("\"\"", "\"").into() } else { text }
}

fn unquoted(cell: &[u8]) -> &[u8] {
    let cell = cell.strip_prefix(b"\"").unwrap_or(cell);
    cell.strip_suffix(b"\"").unwrap_or(cell)
}

/// UTF-8 where it is, Latin-1 otherwise.
fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
    }
}

impl Header {
    /// Reads a header line, of which the first cell holds [`MARK`]. Objects of other kinds than
    /// `kinds` are named, and their columns are left out.
    pub(crate) fn parse(line: &[u8], kinds: &[Kind]) -> Self {
        let counters: BTreeMap<_, _> =
            Counter::TABLE.iter().map(|info| (info.batch_name, info.counter)).into_map();
        let mut header = Self::default();
        let mut empty_end = false;
        for (position, cell) in cells(line).enumerate() {
            header.cells += 1;
            empty_end = cell.is_empty();
            if position == 0 {
                header.zone = Zone::of(&text_of(cell));
            } else if !cell.is_empty() {
                header.add(position, &text_of(cell), &counters);
            }
        }
        header.cells -= usize::from(empty_end);
        for host in &mut header.hosts {
            header.duplicates += host.finish(kinds);
        }
        header
    }

    /// Leaves out the columns of other counters than these.
    pub(crate) fn keep(&mut self, counters: &[Counter]) {
        for host in &mut self.hosts {
            host.columns.retain(|column| counters.contains(&column.2));
        }
    }

    /// Columns to read, of all hosts: position, host, and place among the host's columns.
    pub(crate) fn wanted(&self) -> Vec<(usize, usize, usize)> {
        let mut wanted: Vec<_> = self
            .hosts
            .iter()
            .enumerate()
            .flat_map(|(host, h)| {
                h.columns.iter().enumerate().map(move |(place, column)| (column.0, host, place))
            })
            .collect();
        sort(&mut wanted);
        wanted
    }

    fn add(&mut self, position: usize, text: &str, counters: &BTreeMap<&str, Counter>) {
        let Some(cell) = Cell::parse(text) else {
            // The two cells without a comma between them end in a cell of a known kind.
            self.other_columns += 1;
            return;
        };
        let host = self.host(cell.host);
        let Some((entity, repeats)) = host.object(&cell) else {
            if OTHER_GROUPS.contains(&cell.group) {
                self.other_columns += 1;
            } else {
                self.count_unknown(&cell);
            }
            return;
        };
        match counters.get(cell.counter) {
            Some(&counter) if repeats => host.repeats.push((position, entity, counter)),
            Some(&counter) if host.seen.insert((entity, counter)) => {
                host.columns.push((position, entity, counter));
            }
            Some(_) => self.duplicates += 1,
            None => self.count_unknown(&cell),
        }
    }

    fn count_unknown(&mut self, cell: &Cell<'_>) {
        *self.unknown.entry(format!("{}\\{}", cell.group, cell.counter)).or_default() += 1;
    }

    fn host(&mut self, name: &str) -> &mut Host {
        let index = self.host_index.get(name).copied().unwrap_or_else(|| {
            self.host_index.insert(name.into(), self.hosts.len());
            self.hosts.push(Host::new(name));
            self.hosts.len() - 1
        });
        &mut self.hosts[index]
    }
}

impl Host {
    fn new(name: &str) -> Self {
        Self {
            recording: Recording::new(name.into()),
            columns: Vec::new(),
            worlds: Worlds::default(),
            index: BTreeMap::new(),
            seen: BTreeSet::new(),
            repeats: Vec::new(),
            device: None,
            begun: BTreeSet::new(),
            is_shuffled: false,
        }
    }

    fn entity(&mut self, kind: Kind, name: &str) -> EntityId {
        let recording = &mut self.recording;
        *self
            .index
            .entry((kind, name.into()))
            .or_insert_with(|| recording.add_entity(Entity::new(kind, name.into())))
    }

    /// The object of a cell, and whether its group repeats what another one has. `None` when the
    /// group is not about disks.
    fn object(&mut self, cell: &Cell<'_>) -> Option<(EntityId, bool)> {
        let instance = cell.instance?;
        let device = match cell.group {
            "Physical Disk Path" | "Physical Disk Per-Device-Per-World" => self.device,
            "Physical Disk Partition" => self.device,
            _ => self.device.take(),
        };
        match cell.group {
            "Physical Disk" => return Some(self.adapter_or_path(instance)),
            "Physical Disk Adapter" => Some(self.entity(Kind::Adapter, instance)),
            "Physical Disk SCSI Device" => {
                let own = self.entity(Kind::Device, instance);
                self.is_shuffled |= self.begun.insert(own) == (device == Some(own));
                self.device = Some(own);
                self.device
            }
            "Physical Disk Path" => Some(self.path(instance, device)),
            "Physical Disk Per-Device-Per-World" => Some(self.part(Kind::World, instance)),
            "Physical Disk Partition" => Some(self.part(Kind::Partition, instance)),
            "Physical Disk NFS Volume" => Some(self.entity(Kind::NfsVolume, instance)),
            "Virtual Disk" => Some(self.virtual_disk(instance)),
            group => {
                self.worlds.add(group, instance);
                None
            }
        }
        .map(|entity| (entity, false))
    }

    /// `vmhba0`, which alone has AQLEN, or `vmhba0:vmhba0:C0:T2:L0`, which repeats a path [CAP-A].
    fn adapter_or_path(&mut self, instance: &str) -> (EntityId, bool) {
        match instance.split_once(':') {
            Some((_, path)) => (self.path(path, None), true),
            None => (self.entity(Kind::Adapter, instance), false),
        }
    }

    fn path(&mut self, name: &str, device: Option<EntityId>) -> EntityId {
        let path = self.entity(Kind::Path, name);
        let adapter = name.split_once(':').map(|(adapter, _)| self.entity(Kind::Adapter, adapter));
        let entity = self.recording.entity_mut(path);
        entity.adapter = adapter;
        entity.device = entity.device.or(device);
        path
    }

    /// A world or partition: `<device>-<number>`, split at the last `-` [CAP-A].
    fn part(&mut self, kind: Kind, name: &str) -> EntityId {
        let part = self.entity(kind, name);
        let device = name.rsplit_once('-').map(|(device, _)| self.entity(Kind::Device, device));
        self.is_shuffled |= self.device.is_some() && self.device != device;
        self.recording.entity_mut(part).device = device;
        part
    }

    fn virtual_disk(&mut self, name: &str) -> EntityId {
        let Some((vm, bus)) = split_virtual_disk(name) else {
            return self.entity(Kind::Vm, name);
        };
        let vm = self.entity(Kind::Vm, vm);
        let disk = self.entity(Kind::VirtualDisk, name);
        let entity = self.recording.entity_mut(disk);
        entity.vm = Some(vm);
        entity.controller = match bus {
            Bus::Scsi(_) => None,
            Bus::Other(controller) => Some(controller),
        };
        disk
    }

    /// Fills what only `Physical Disk` has, leaves out what nobody asked for, and links the
    /// worlds. Returns how many columns came twice.
    fn finish(&mut self, kinds: &[Kind]) -> usize {
        let mut duplicates = 0;
        for (position, entity, counter) in std::mem::take(&mut self.repeats) {
            let entity = match (counter, self.recording.entity(entity).adapter) {
                (Counter::AdapterQDepth, Some(adapter)) => adapter,
                _ => entity,
            };
            if self.seen.insert((entity, counter)) {
                self.columns.push((position, entity, counter));
            } else if self.recording.entity(entity).kind == Kind::Device {
                duplicates += 1;
            }
        }
        if self.is_shuffled {
            untie_paths(&mut self.recording);
        }
        let recording = &self.recording;
        self.columns.retain(|column| kinds.contains(&recording.entity(column.1).kind));
        sort_by_key(&mut self.columns, |column| column.0);
        let untold = self.worlds.link(&mut self.recording);
        self.columns.retain(|column| !untold.contains(&column.1));
        duplicates
    }
}
