//! A recording in esxtop's own batch format, so that esxtop's readers take it.
//!
//! The format is that of a default capture of ESXi 6.5 [CAP-A]: quoted cells, a comma at the end
//! of every line, two decimals for rates and plain integers for depths and counts, a first row
//! in which every rate is 0. Columns stand in the order of real files [CAP-A, CAP-B]. Before them
//! come as many columns of worlds as let any reader join worlds, VMs and virtual adapters.

use counters::sorted::sort;
use std::io::{self, Write};

use counters::{
    Controller, Counter, DEFAULT_INTERVAL_S, Entity, EntityId, Format, Kind, Recording,
};

use crate::{
    bus::{Bus, split_virtual_disk},
    format_stamp,
};

/// A column of the file.
struct Column<'a> {
    group: &'static str,
    instance: String,
    /// Name and format of the counter.
    counter: Counter,
    /// `None` for a world, of which nothing but the name is told.
    values: Option<&'a [f64]>,
}

/// Writes `recording` as `esxtop -b` would have. Counters that esxtop does not have are left out;
/// a value that is not known becomes an empty cell.
///
/// # Errors
/// Those of `out`.
pub fn write_esxtop(recording: &Recording, out: &mut impl Write) -> io::Result<()> {
    each_line(recording, &mut |line| out.write_all(line))?;
    out.flush()
}

/// Writes the header of [`write_esxtop`] alone, for rows that come one by one.
///
/// # Errors
/// Those of `out`.
pub fn write_esxtop_header(recording: &Recording, out: &mut impl Write) -> io::Result<()> {
    out.write_all(header(&recording.host, &columns(recording)).as_bytes())?;
    out.flush()
}

/// Writes the rows of [`write_esxtop`] alone, below the header of a recording with the same columns;
/// esxtop's first row too where these are `first`.
///
/// # Errors
/// Those of `out`.
pub fn write_esxtop_rows(
    recording: &Recording,
    first: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    each_row(recording, &columns(recording), first, &mut |row| out.write_all(row))?;
    out.flush()
}

/// Hands every line of `recording` to `write`, the header first.
pub(crate) fn each_line(
    recording: &Recording,
    write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let columns = columns(recording);
    write(header(&recording.host, &columns).as_bytes())?;
    each_row(recording, &columns, true, write)
}

fn columns(recording: &Recording) -> Vec<Column<'_>> {
    let mut columns = world_columns(recording);
    disk_columns(recording, &mut columns);
    columns
}

fn header(host: &str, columns: &[Column<'_>]) -> String {
    let host = escaped(host);
    let mut line = String::from("\"(PDH-CSV 4.0) (UTC)(0)\",");
    for Column { group, instance, counter, .. } in columns {
        let name = counter.info().batch_name;
        line += &format!("\"\\\\{host}\\{group}({})\\{name}\",", escaped(instance));
    }
    line.push('\n');
    line
}

fn each_row(
    recording: &Recording,
    columns: &[Column<'_>],
    first: bool,
    write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut row = Vec::new();
    if let Some(&time_ms) = recording.times_ms.first().filter(|_| first) {
        let interval_s = recording.interval_s(0).unwrap_or(DEFAULT_INTERVAL_S);
        let before = time_ms.saturating_sub((1000.0 * interval_s) as i64);
        write_row(&mut row, before, columns, None);
        write(&row)?;
    }
    for (sample, &time_ms) in recording.times_ms.iter().enumerate() {
        row.clear();
        write_row(&mut row, time_ms, columns, Some(sample));
        write(&row)?;
    }
    Ok(())
}

/// A name without what would end its cell, as vSphere writes such characters (`%5c`).
fn escaped(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '"' | '\\' | '\0'..='\x1f' => escaped += &format!("%{:02x}", c as u32),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A row of values; without a sample, esxtop's first row, which has depths and no rates.
fn write_row(row: &mut Vec<u8>, time_ms: i64, columns: &[Column<'_>], sample: Option<usize>) {
    row.push(b'"');
    row.extend_from_slice(format_stamp(time_ms).as_bytes());
    row.extend_from_slice(b"\",");
    for column in columns {
        let value = match (column.values, sample) {
            (Some(values), Some(sample)) => values.get(sample).copied().unwrap_or(f64::NAN),
            (Some(values), None) if is_depth(column.counter) => {
                values.first().copied().unwrap_or(f64::NAN)
            }
            _ => 0.0,
        };
        row.push(b'"');
        write_value(row, value, column.counter.info().format);
        row.extend_from_slice(b"\",");
    }
    row.push(b'\n');
}

const fn is_depth(counter: Counter) -> bool {
    matches!(counter, Counter::AdapterQDepth | Counter::DeviceQDepth | Counter::WorldQDepth)
}

pub(crate) fn write_value(row: &mut Vec<u8>, value: f64, format: Format) {
    // Beyond this, hundredths are no exact integers any more.
    const EXACT: f64 = 1e13;
    if value.is_nan() {
        return;
    }
    let scale = if format == Format::Integer { 1.0 } else { 100.0 };
    let scaled = (value * scale).round_ties_even();
    if scaled.abs() > EXACT {
        row.extend_from_slice(format!("{value:.0}").as_bytes());
        return;
    }
    if scaled < 0.0 {
        row.push(b'-');
    }
    let number = scaled.abs() as u64;
    match format {
        Format::Integer => write_integer(row, number),
        Format::Decimal2 => {
            write_integer(row, number / 100);
            let hundredths = (number % 100) as u8;
            row.extend_from_slice(&[b'.', b'0' + hundredths / 10, b'0' + hundredths % 10]);
        }
    }
}

fn write_integer(row: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    row.extend_from_slice(&digits[start..]);
}

/// The columns of groups and worlds that say which world is whose: a VM's leader world is in the
/// names of its helpers, a system world has a column of its own [CAP-A].
fn world_columns(recording: &Recording) -> Vec<Column<'static>> {
    let ids: Vec<(u64, &Entity)> = recording
        .of_kind(Kind::World)
        .filter_map(|(_, world)| Some((world.name.rsplit_once('-')?.1.parse().ok()?, world)))
        .collect();
    let mut names = Names {
        // Helpers get numbers that no world on a device has.
        next: ids.iter().map(|(id, _)| id + 1).max().unwrap_or(1),
        columns: Vec::new(),
    };
    for (vm, entity) in recording.of_kind(Kind::Vm) {
        let mut leaders: Vec<u64> =
            ids.iter().filter(|(_, world)| world.vm == Some(vm)).map(|(id, _)| *id).collect();
        sort(&mut leaders);
        leaders.dedup();
        names.add_vm(&entity.name, &leaders, &scsi_adapters(recording, vm));
    }
    let mut processes: Vec<(u64, &str)> = ids
        .iter()
        .filter(|(_, world)| world.vm.is_none())
        .filter_map(|(id, world)| Some((*id, world.process.as_deref()?)))
        .collect();
    sort(&mut processes);
    processes.dedup();
    for (id, process) in processes {
        names.add_process(id, process);
    }
    names.columns
}

/// The SCSI adapters of a VM of which the type has a world: bus and name of the world.
fn scsi_adapters(recording: &Recording, vm: EntityId) -> Vec<(String, &'static str)> {
    let mut adapters: Vec<_> = recording
        .of_kind(Kind::VirtualDisk)
        .filter(|(_, disk)| disk.vm == Some(vm))
        .filter_map(|(_, disk)| {
            let Some((_, Bus::Scsi(bus))) = split_virtual_disk(&disk.name) else { return None };
            match disk.controller? {
                Controller::Pvscsi => Some((bus.to_owned(), "PVSCSI")),
                Controller::LsiSas | Controller::LsiParallel => Some((bus.to_owned(), "LSI")),
                _ => None,
            }
        })
        .collect();
    sort(&mut adapters);
    adapters.dedup();
    adapters
}

/// Columns of groups and worlds, and the numbers given to them.
struct Names {
    next: u64,
    columns: Vec<Column<'static>>,
}

impl Names {
    fn add_vm(&mut self, vm: &str, leaders: &[u64], adapters: &[(String, &str)]) {
        let group = self.add_group(vm);
        let leader = leaders.first().copied().unwrap_or_else(|| self.number());
        for leader in leaders {
            self.add_world(group, vm, None, &format!("vmast.{leader}"));
        }
        for (bus, name) in adapters {
            self.add_world(group, vm, None, &format!("{name}-{leader}:{bus}"));
        }
    }

    fn add_process(&mut self, id: u64, process: &str) {
        let name = format!("{process}.{id}");
        let group = self.add_group(&name);
        self.add_world(group, &name, Some(id), process);
    }

    fn number(&mut self) -> u64 {
        self.next = self.next.saturating_add(1);
        self.next - 1
    }

    fn add_group(&mut self, name: &str) -> u64 {
        let group = self.number();
        self.add("Group Cpu", format!("{group}:{name}"));
        group
    }

    fn add_world(&mut self, group: u64, group_name: &str, id: Option<u64>, name: &str) {
        let id = id.unwrap_or_else(|| self.number());
        self.add("Vcpu", format!("{group}:{group_name}:{id}:{name}"));
    }

    fn add(&mut self, group: &'static str, instance: String) {
        self.columns.push(Column { group, instance, counter: Counter::PercentUsed, values: None });
    }
}

/// The disk columns in the order of real files [CAP-A, CAP-B].
fn disk_columns<'a>(recording: &'a Recording, columns: &mut Vec<Column<'a>>) {
    let ids = |kind| recording.of_kind(kind).map(|(id, _)| id);
    let parts = |kind, parent: fn(&Entity) -> Option<EntityId>, id| {
        recording.of_kind(kind).filter(move |(_, e)| parent(e) == Some(id)).map(|(part, _)| part)
    };
    let mut disks = Disks { recording, columns };
    for adapter in ids(Kind::Adapter) {
        disks.add_adapter(adapter);
        for path in parts(Kind::Path, |path| path.adapter, adapter) {
            disks.add_repeated_path(adapter, path);
        }
    }
    for device in ids(Kind::Device) {
        for kind in [Kind::Device, Kind::Path, Kind::World, Kind::Partition] {
            let of_device =
                |(id, entity): &(EntityId, &Entity)| *id == device || entity.device == Some(device);
            for (id, _) in recording.of_kind(kind).filter(of_device) {
                disks.add(group(kind), id, |_| true);
            }
        }
    }
    for volume in ids(Kind::NfsVolume) {
        disks.add(group(Kind::NfsVolume), volume, |_| true);
    }
    for vm in ids(Kind::Vm) {
        disks.add(group(Kind::Vm), vm, |_| true);
        for disk in parts(Kind::VirtualDisk, |disk| disk.vm, vm) {
            disks.add(group(Kind::VirtualDisk), disk, |_| true);
        }
    }
}

/// The group in which `esxtop -b` prints an object.
const fn group(kind: Kind) -> &'static str {
    match kind {
        Kind::Adapter => "Physical Disk Adapter",
        Kind::Path => "Physical Disk Path",
        Kind::Device => "Physical Disk SCSI Device",
        Kind::World => "Physical Disk Per-Device-Per-World",
        Kind::Partition => "Physical Disk Partition",
        Kind::NfsVolume => "Physical Disk NFS Volume",
        Kind::Vm | Kind::VirtualDisk => "Virtual Disk",
    }
}

/// Disk columns being collected.
struct Disks<'a, 'b> {
    recording: &'a Recording,
    columns: &'b mut Vec<Column<'a>>,
}

impl Disks<'_, '_> {
    /// The columns of an object that the recording has and esxtop knows.
    fn add(&mut self, group: &'static str, id: EntityId, wanted: impl Fn(Counter) -> bool) {
        let entity = self.recording.entity(id);
        self.add_as(group, &entity.name, id, wanted);
    }

    fn add_as(
        &mut self,
        group: &'static str,
        instance: &str,
        id: EntityId,
        wanted: impl Fn(Counter) -> bool,
    ) {
        for counter in self.recording.entity(id).kind.counters() {
            let values = self.recording.series(id, counter);
            if values.is_some() && counter.info().in_esxtop && wanted(counter) {
                self.columns.push(Column { group, instance: instance.into(), counter, values });
            }
        }
    }

    /// AQLEN is in the group `Physical Disk`, the rest is not [CAP-A].
    fn add_adapter(&mut self, id: EntityId) {
        self.add("Physical Disk", id, |counter| counter == Counter::AdapterQDepth);
        self.add(group(Kind::Adapter), id, |counter| counter != Counter::AdapterQDepth);
    }

    /// A path once more, below its adapter and with the adapter's AQLEN [CAP-A].
    fn add_repeated_path(&mut self, adapter: EntityId, path: EntityId) {
        let name = |id: EntityId| self.recording.entity(id).name.as_str();
        let instance = format!("{}:{}", name(adapter), name(path));
        self.add_as("Physical Disk", &instance, adapter, |c| c == Counter::AdapterQDepth);
        self.add_as("Physical Disk", &instance, path, |_| true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_as_esxtop_writes_it() {
        let mut host = Recording::new("esx01".into());
        host.times_ms = vec![1_772_445_600_000, 1_772_445_602_000];
        let adapter = host.add_entity(Entity::new(Kind::Adapter, "vmhba1".into()));
        let vm = host.add_entity(Entity::new(Kind::Vm, "a \"b\\".into()));
        let device = host.add_entity(Entity::new(Kind::Device, "naa.1".into()));
        let mut path = Entity::new(Kind::Path, "vmhba1:C0:T0:L0".into());
        (path.adapter, path.device) = (Some(adapter), Some(device));
        let path = host.add_entity(path);
        let mut disk = Entity::new(Kind::VirtualDisk, "a \"b\\:scsi1:0".into());
        (disk.vm, disk.controller) = (Some(vm), Some(Controller::Pvscsi));
        let disk = host.add_entity(disk);
        let mut world = Entity::new(Kind::World, "naa.1-480214".into());
        (world.vm, world.device) = (Some(vm), Some(device));
        let world = host.add_entity(world);
        let columns = [
            (disk, Counter::Reads, [0.125, 2.0]),
            (world, Counter::Load, [1.005, f64::NAN]),
            (path, Counter::Commands, [1e15, 0.0]),
            (adapter, Counter::AdapterQDepth, [4096.0, 4096.0]),
            (adapter, Counter::Commands, [-1.5, 123_456.789]),
            (device, Counter::DeviceQDepth, [64.0, 32.0]),
            (disk, Counter::GuestWait, [9.0, 9.0]),
        ];
        for (id, counter, values) in columns {
            host.set_column(id, counter, values.to_vec());
        }
        let mut out = Vec::new();
        write_esxtop(&host, &mut out).expect("memory takes all");
        let expected = r#"
"(PDH-CSV 4.0) (UTC)(0)"
"\\esx01\Group Cpu(480215:a %22b%5c)\% Used"
"\\esx01\Vcpu(480215:a %22b%5c:480216:vmast.480214)\% Used"
"\\esx01\Vcpu(480215:a %22b%5c:480217:PVSCSI-480214:1)\% Used"
"\\esx01\Physical Disk(vmhba1)\Adapter Q Depth"
"\\esx01\Physical Disk Adapter(vmhba1)\Commands/sec"
"\\esx01\Physical Disk(vmhba1:vmhba1:C0:T0:L0)\Adapter Q Depth"
"\\esx01\Physical Disk(vmhba1:vmhba1:C0:T0:L0)\Commands/sec"
"\\esx01\Physical Disk SCSI Device(naa.1)\Device Q Depth"
"\\esx01\Physical Disk Path(vmhba1:C0:T0:L0)\Commands/sec"
"\\esx01\Physical Disk Per-Device-Per-World(naa.1-480214)\Load"
"\\esx01\Virtual Disk(a %22b%5c:scsi1:0)\Reads/sec"

"03/02/2026 09:59:58","0.00","0.00","0.00","4096","0.00","4096","0.00","64","0.00","0.00","0.00",
"03/02/2026 10:00:00","0.00","0.00","0.00","4096","-1.50","4096","1000000000000000","64","1000000000000000","1.00","0.12",
"03/02/2026 10:00:02","0.00","0.00","0.00","4096","123456.79","4096","0.00","32","0.00","","2.00",
"#;
        let text = String::from_utf8(out).expect("text");
        let (header, rows) = text.split_once('\n').expect("a header");
        let header = header.replace("\",", "\"\n");
        assert_eq!(format!("\n{header}\n{rows}"), expected);
    }
}
