//! Names replaced consistently, so that a capture can be given away whole.
//!
//! A header cell is taken apart, and every part that is not esxtop's own word is replaced: names
//! of hosts, VMs, devices, volumes, switches, ports and processes. What is not understood does not
//! pass: an instance of a form never seen is replaced as a whole, a column of a group or counter
//! that is not in the tables is dropped, a cell that is no number is emptied. What diagnosis needs
//! stays: the kind of a device name and its vendor's number, adapters and paths, buses, ids of
//! worlds and ports, esxtop's and ESXi's own words, times and every value.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use crate::{
    CopyReport, Error, Input, Limits, Progress,
    bus::split_virtual_disk,
    catalogue::{Group, Instance},
    copy::{Rewrite, Row, copy},
    header::{Cell, text_of},
};

/// The first cell of every capture: what a host wrote there may name its time zone, so times are told in UTC.
const FIRST_CELL: &[u8] = b"\"(PDH-CSV 4.0) (UTC)(0)\",";

/// Hexadecimal digits of an `naa.` name that name the vendor and no unit: the format, 5 or 6, and
/// an OUI.
const VENDOR_DIGITS: usize = 7;

/// Groups of the VMkernel [CAP-A].
const KERNEL_GROUPS: [&str; 5] = ["system", "helper", "drivers", "ft", "vmotion"];

/// Processes of ESXi; their groups have the id of a world behind a dot [CAP-A].
const PROCESSES: [&str; 28] = [
    "busybox",
    "dcui",
    "dhclient-uw",
    "esxtop",
    "getty",
    "hostd",
    "hostdCgiServer",
    "init",
    "ioFilterVPServer",
    "net-cdp",
    "net-lacp",
    "net-lbt",
    "nfsgssd",
    "nscd",
    "rhttpproxy",
    "sdrsInjector",
    "sh",
    "slpd",
    "smartd",
    "sshd",
    "storageRM",
    "swapobjd",
    "vmkdevmgr",
    "vmkeventd",
    "vmsyslogd",
    "vmware-usbarbitrator",
    "vobd",
    "vpxa",
];

/// Worlds of a VM: what stands before the number in their names [CAP-A].
const VM_WORLDS: [&str; 6] =
    ["vmx-vcpu-", "vmx-vthread-", "vmast.", "NetWorld-VM-", "PVSCSI-", "LSI-"];

/// Worlds of a VM that have no number [CAP-A].
const VM_WORLDS_ALONE: [&str; 3] = ["vmx", "vmx-mks", "vmx-svga"];

/// What was replaced and left out of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnonymizeReport {
    /// What was copied.
    pub copy: CopyReport,
    /// Columns left out because esxtop has no such group or counter as far as is known:
    /// `Group\Counter` and how many.
    pub dropped: BTreeMap<String, usize>,
    /// Cells emptied because they hold no number.
    pub emptied_cells: u64,
}

/// The substitutes given so far. One value serves several files, so that a name becomes the same
/// in all of them.
#[derive(Default)]
pub struct Substitutes {
    given: BTreeMap<(&'static str, String), String>,
    counts: BTreeMap<&'static str, usize>,
}

impl Substitutes {
    /// What was replaced: kind of name, name, substitute.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str, &str)> {
        self.given.iter().map(|((kind, name), given)| (*kind, name.as_str(), given.as_str()))
    }

    /// How many names of each kind were replaced.
    #[must_use]
    pub const fn counts(&self) -> &BTreeMap<&'static str, usize> {
        &self.counts
    }

    fn of(&mut self, kind: &'static str, name: &str) -> String {
        self.with(kind, name, |number| format!("{kind}{number}"))
    }

    fn with(
        &mut self,
        kind: &'static str,
        name: &str,
        substitute: impl Fn(usize) -> String,
    ) -> String {
        let counts = &mut self.counts;
        let given = self.given.entry((kind, name.into())).or_insert_with(|| {
            let count = counts.entry(kind).or_default();
            *count += 1;
            substitute(*count)
        });
        given.clone()
    }
}

/// Copies `input` to `out` with its names replaced, every column that is understood kept. The file
/// is read and written block by block.
///
/// # Errors
/// An input that cannot be read or is no capture, those of `out`.
pub fn anonymize(
    input: Input,
    substitutes: &mut Substitutes,
    limits: &Limits,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<AnonymizeReport, Error> {
    let mut names = Anonymize { substitutes, kept: Vec::new(), report: AnonymizeReport::default() };
    let copied = copy(input, limits, &mut names, out, progress)?;
    Ok(AnonymizeReport { copy: copied, ..names.report })
}

/// A file on its way.
struct Anonymize<'a> {
    substitutes: &'a mut Substitutes,
    /// Positions of the columns that are kept.
    kept: Vec<usize>,
    report: AnonymizeReport,
}

impl Rewrite for Anonymize<'_> {
    fn header(&mut self, _: &str, cells: &[&[u8]]) -> Result<Vec<u8>, Error> {
        let texts: Vec<_> = cells.iter().map(|cell| text_of(cell)).collect();
        let columns: Vec<_> = texts.iter().map(|text| Column::parse(text)).collect();
        let known = Known::of(&columns);
        let mut names = Names { known, given: self.substitutes };
        let mut header = FIRST_CELL.to_vec();
        for (position, column) in columns.iter().enumerate().skip(1) {
            match column {
                Column::Named { cell, glued } if is_understood(cell) => {
                    let glue = if *glued { "   -" } else { "" };
                    header.extend_from_slice(format!("{glue}\"{}\",", names.cell(cell)).as_bytes());
                }
                Column::Glue => header.extend_from_slice(b"   -,"),
                Column::Named { cell, .. } => {
                    let name = format!("{}\\{}", cell.group, cell.counter);
                    *self.report.dropped.entry(name).or_default() += 1;
                    continue;
                }
                Column::Other(text) => {
                    *self.report.dropped.entry((*text).into()).or_default() += 1;
                    continue;
                }
            }
            self.kept.push(position);
        }
        Ok(header)
    }

    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(&row.stamp(0));
        out.push(b',');
        for &position in &self.kept {
            let cell = row.cells[position];
            if cell.iter().all(|&byte| is_of_a_number(byte)) {
                out.extend_from_slice(cell);
            } else {
                out.extend_from_slice(b"\"\"");
                self.report.emptied_cells += 1;
            }
            out.push(b',');
        }
        true
    }
}

const fn is_of_a_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E' | b'"' | b' ')
}

/// A cell of the header.
enum Column<'a> {
    /// A column, and whether the `-` of the value before it stands in its cell, as `esxtop -a` 6.5
    /// prints it [CAP-A].
    Named {
        cell: Cell<'a>,
        glued: bool,
    },
    /// A `-` alone, the last of such a line.
    Glue,
    Other(&'a str),
}

impl<'a> Column<'a> {
    fn parse(text: &'a str) -> Self {
        if text == "-" {
            return Self::Glue;
        }
        let inner = text.strip_prefix("-\"");
        match Cell::parse(inner.unwrap_or(text)) {
            Some(cell) => Self::Named { cell, glued: inner.is_some() },
            None => Self::Other(text),
        }
    }

    const fn cell(&self) -> Option<&Cell<'a>> {
        match self {
            Self::Named { cell, .. } => Some(cell),
            Self::Glue | Self::Other(_) => None,
        }
    }
}

fn is_understood(cell: &Cell<'_>) -> bool {
    Group::find(cell.group).is_some_and(|group| group.has(cell.counter))
}

/// What the header tells of names before any is replaced.
#[derive(Default)]
struct Known {
    vms: BTreeSet<String>,
    /// Names of groups by id: names hold colons, and a world's column does not say where its
    /// group's ends.
    groups: BTreeMap<String, String>,
}

impl Known {
    fn of(columns: &[Column<'_>]) -> Self {
        let mut known = Self::default();
        let cells = || columns.iter().filter_map(Column::cell);
        for cell in cells() {
            let Some(instance) = cell.instance else { continue };
            match cell.group {
                "Virtual Disk" => {
                    let vm = split_virtual_disk(instance).map_or(instance, |(vm, _)| vm);
                    known.vms.insert(vm.into());
                }
                "Group Cpu" | "Group Memory" => {
                    let Some((id, name)) = instance.split_once(':') else { continue };
                    known.groups.insert(id.into(), name.into());
                }
                _ => {}
            }
        }
        // A VM may have no disk; its worlds tell.
        for cell in cells().filter(|cell| cell.group == "Vcpu") {
            let Some(world) = cell.instance.and_then(|instance| known.world(instance)) else {
                continue;
            };
            if world.name == "vmx" || world.name.starts_with("vmast.") {
                let vm = world.group_name.to_owned();
                known.vms.insert(vm);
            }
        }
        known
    }

    /// Takes `<gid>:<group>:<world>:<name>` apart.
    fn world<'a>(&self, instance: &'a str) -> Option<World<'a>> {
        let (group, rest) = instance.split_once(':')?;
        let length = self.groups.get(group).filter(|name| {
            rest.strip_prefix(name.as_str()).is_some_and(|after| after.starts_with(':'))
        });
        let (group_name, rest) = match length {
            Some(name) => (&rest[..name.len()], &rest[name.len() + 1..]),
            None => rest.split_once(':')?,
        };
        let (id, name) = rest.split_once(':')?;
        (is_number(group) && is_number(id)).then_some(World { group, group_name, id, name })
    }
}

/// A world as the group `Vcpu` names it.
struct World<'a> {
    group: &'a str,
    group_name: &'a str,
    id: &'a str,
    name: &'a str,
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether `text` is `prefix` and a number.
fn is_numbered(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(is_number)
}

/// Gives names that need not stay secret back, and substitutes for all others.
struct Names<'a> {
    known: Known,
    given: &'a mut Substitutes,
}

impl Names<'_> {
    /// A cell with every name in it replaced.
    fn cell(&mut self, cell: &Cell<'_>) -> String {
        let host = self.given.of("host", cell.host);
        let (group, counter) = (cell.group, cell.counter);
        match cell.instance {
            Some(instance) => {
                let instance = self.instance(group, instance);
                format!("\\\\{host}\\{group}({instance})\\{counter}")
            }
            None => format!("\\\\{host}\\{group}\\{counter}"),
        }
    }

    fn instance(&mut self, group: &str, instance: &str) -> String {
        let form = Group::find(group).map(|group| group.instance);
        let understood = match form {
            Some(Instance::Hardware) => is_hardware(instance).then(|| instance.to_owned()),
            Some(Instance::Group) => self.group(instance),
            Some(Instance::World) => self.world(instance),
            Some(Instance::Port) => self.port(instance),
            Some(Instance::Disk) => self.disk(group, instance),
            None => None,
        };
        understood.unwrap_or_else(|| self.given.of("instance", instance))
    }

    fn group(&mut self, instance: &str) -> Option<String> {
        let (id, name) = instance.split_once(':').filter(|(id, _)| is_number(id))?;
        Some(format!("{id}:{}", self.group_name(name)))
    }

    /// A VM, a group of the kernel, or a process with the id of its first world.
    fn group_name(&mut self, name: &str) -> String {
        if self.known.vms.contains(name) {
            return self.given.of("vm", name);
        }
        if KERNEL_GROUPS.contains(&name) {
            return name.into();
        }
        match name.rsplit_once('.').filter(|(_, id)| is_number(id)) {
            Some((process, id)) => format!("{}.{id}", self.process(process)),
            None => self.given.of("group", name),
        }
    }

    fn process(&mut self, name: &str) -> String {
        match PROCESSES.contains(&name) {
            true => name.into(),
            false => self.given.of("process", name),
        }
    }

    fn world(&mut self, instance: &str) -> Option<String> {
        let known = std::mem::take(&mut self.known);
        let world = known.world(instance);
        self.known = known;
        let World { group, group_name, id, name } = world?;
        let name = self.world_name(group_name, name);
        Some(format!("{group}:{}:{id}:{name}", self.group_name(group_name)))
    }

    fn world_name(&mut self, group: &str, name: &str) -> String {
        if !self.known.vms.contains(group) {
            return self.process_world(name);
        }
        let (head, tail) = name.split_once(':').unwrap_or((name, ""));
        let is_known = VM_WORLDS_ALONE.contains(&head)
            || VM_WORLDS.iter().any(|prefix| is_numbered(head, prefix));
        match is_known {
            true if tail.is_empty() => head.into(),
            true if is_number(tail) => name.into(),
            true if tail == group => format!("{head}:{}", self.given.of("vm", group)),
            _ => self.given.of("world", name),
        }
    }

    fn process_world(&mut self, name: &str) -> String {
        match PROCESSES.contains(&name) {
            true => name.into(),
            false => self.given.of("world", name),
        }
    }

    fn port(&mut self, instance: &str) -> Option<String> {
        let (switch, rest) = instance.split_once(':')?;
        let (port, rest) = rest.split_once(':').filter(|(port, _)| is_number(port))?;
        let with_world = rest.split_once(':').filter(|(world, _)| is_number(world));
        let (world, name) = match with_world {
            Some((world, name)) => (format!("{world}:"), name),
            None => (String::new(), rest),
        };
        let own = name == "Management"
            || ["vmk", "vmnic", "Shadow of vmnic"].iter().any(|p| is_numbered(name, p));
        let name = match own {
            true => name.into(),
            false if self.known.vms.contains(name) => self.given.of("vm", name),
            false => self.given.of("port", name),
        };
        Some(format!("{}:{port}:{world}{name}", self.given.of("switch", switch)))
    }

    fn disk(&mut self, group: &str, instance: &str) -> Option<String> {
        Some(match group {
            "Physical Disk" => match instance.split_once(':') {
                Some((adapter, path)) => format!("{}:{}", self.adapter(adapter), self.path(path)),
                None => self.adapter(instance),
            },
            "Physical Disk Adapter" => self.adapter(instance),
            "Physical Disk Path" => self.path(instance),
            "Physical Disk SCSI Device" => self.device(instance),
            "Physical Disk Per-Device-Per-World" | "Physical Disk Partition" => {
                let (device, part) = instance.rsplit_once('-').filter(|(_, p)| is_number(p))?;
                format!("{}-{part}", self.device(device))
            }
            "Physical Disk NFS Volume" => self.given.of("nfs", instance),
            _ => match split_virtual_disk(instance) {
                Some((vm, _)) => format!("{}{}", self.given.of("vm", vm), &instance[vm.len()..]),
                None => self.given.of("vm", instance),
            },
        })
    }

    fn adapter(&mut self, name: &str) -> String {
        match is_numbered(name, "vmhba") {
            true => name.into(),
            false => self.given.of("adapter", name),
        }
    }

    /// `vmhba1:C0:T2:L0`; a name of another form holds addresses or serial numbers.
    fn path(&mut self, name: &str) -> String {
        let Some((adapter, place)) = name.split_once(':') else {
            return self.given.of("path", name);
        };
        let adapter = self.adapter(adapter);
        match is_place(place) {
            true => format!("{adapter}:{place}"),
            false => format!("{adapter}:{}", self.given.of("path", place)),
        }
    }

    /// `mpx.` names tell nothing but a path.
    fn device(&mut self, name: &str) -> String {
        let (kind, rest) = name.split_once('.').unwrap_or(("", name));
        match kind {
            "mpx" if is_numbered_path(rest) => name.into(),
            "naa" if is_hex(rest) && rest.len() > VENDOR_DIGITS && rest.starts_with(['5', '6']) => {
                let (vendor, width) = (&rest[..VENDOR_DIGITS], rest.len() - VENDOR_DIGITS);
                let given = |number| format!("naa.{vendor}{number:0width$}");
                self.given.with("device", name, given)
            }
            "naa" | "eui" | "t10" | "mpx" | "vml" => {
                self.given.with("device", name, |number| format!("{kind}.device{number}"))
            }
            _ => self.given.of("device", name),
        }
    }
}

/// `vmhba0:C0:T5:L0`.
fn is_numbered_path(text: &str) -> bool {
    text.split_once(':').is_some_and(|(adapter, p)| is_numbered(adapter, "vmhba") && is_place(p))
}

/// `C0:T2:L0`: channel, target and LUN.
fn is_place(text: &str) -> bool {
    let mut parts = text.split(':');
    let numbered = ["C", "T", "L"].iter().all(|p| parts.next().is_some_and(|t| is_numbered(t, p)));
    numbered && parts.next().is_none()
}

/// Processors, nodes, interrupts and all of them: `_Total`, `12`, `PCPU 1`, `0xfe:CPU1`.
fn is_hardware(instance: &str) -> bool {
    instance.split([' ', ':']).all(|word| {
        matches!(word, "_Total" | "PCPU")
            || is_number(word)
            || is_numbered(word, "CPU")
            || word.strip_prefix("0x").is_some_and(is_hex)
    })
}
