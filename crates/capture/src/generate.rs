//! Large captures of an invented host, to measure with: their shape is that of real ones.
//!
//! A capture of all counters of a real host has 16,133 columns of worlds and memory, nearly all of
//! them before the one block of disk columns, which is as wide as the host has devices [CAP-A].
//! Three cells of four are zero, most columns never change. The disk columns come from the writer
//! that every recording goes through; the others are put into its lines.

use std::io::{self, Write};

use counters::{Controller, Counter, Entity, EntityId, Format, Kind, Recording};

use crate::writer::{each_line, write_value};

/// Columns that are not about disks in a capture of all counters [CAP-A].
const OTHER_COLUMNS: usize = 16_133;

/// One of so many other columns stands behind the disk columns [CAP-A].
const BEHIND: usize = 36;

/// A world's counters [CAP-A].
const VCPU: [(&str, Format); 24] = [
    ("% Used", Format::Decimal2),
    ("% Run", Format::Decimal2),
    ("% System", Format::Decimal2),
    ("% Wait", Format::Decimal2),
    ("% VmWait", Format::Decimal2),
    ("% Ready", Format::Decimal2),
    ("% Idle", Format::Decimal2),
    ("% Overlap", Format::Decimal2),
    ("% CoStop", Format::Decimal2),
    ("% Max Limited", Format::Decimal2),
    ("% Swap Wait", Format::Decimal2),
    ("Switches/sec", Format::Decimal2),
    ("Migrates/sec", Format::Decimal2),
    ("Quantum Expires/sec", Format::Decimal2),
    ("Wakeups/sec", Format::Decimal2),
    ("Alloc Min", Format::Integer),
    ("Alloc Max", Format::Integer),
    ("Alloc Shares", Format::Integer),
    ("Alloc Min Limited", Format::Integer),
    ("% CPU Latency", Format::Decimal2),
    ("% Memory Latency", Format::Decimal2),
    ("% Demand", Format::Integer),
    ("Effective Min (MHz)", Format::Integer),
    ("Physical Cpu", Format::Integer),
];

/// VMs with a virtual disk on each device.
const VMS: usize = 3;

/// How large a generated capture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Columns, the time among them.
    pub columns: usize,
    /// Rows below the header.
    pub rows: usize,
}

impl Shape {
    /// Columns that are about disks, to within one device's.
    #[must_use]
    pub const fn disk_columns(self) -> usize {
        let others = self.columns / 5 * 4;
        self.columns - if others < OTHER_COLUMNS { others } else { OTHER_COLUMNS }
    }
}

/// Writes a capture of that shape. The same shape always gives the same bytes. `progress` is told
/// the rows written.
///
/// # Errors
/// Those of `out`.
pub fn generate(
    shape: Shape,
    out: &mut impl Write,
    progress: &mut dyn FnMut(usize),
) -> io::Result<()> {
    let recording = host(shape);
    let mut others = 0;
    let mut row = Vec::new();
    let mut rows = 0;
    each_line(&recording, &mut |line| {
        let stamp = line.iter().position(|&byte| byte == b',').map_or(0, |comma| comma + 1);
        if rows == 0 {
            let cells = memchr::memmem::find_iter(line, "\",").count();
            others = shape.columns.saturating_sub(cells);
        }
        let before = others - others / BEHIND;
        row.clear();
        row.extend_from_slice(&line[..stamp]);
        (0..before).for_each(|column| add_other(&mut row, column, rows));
        row.extend_from_slice(&line[stamp..line.len() - 1]);
        (before..others).for_each(|column| add_other(&mut row, column, rows));
        row.push(b'\n');
        out.write_all(&row)?;
        progress(rows);
        rows += 1;
        Ok(())
    })?;
    out.flush()
}

/// A number that looks like chance, the same for the same column and row.
fn noise(column: usize, row: usize) -> u64 {
    let mut x = (column as u64) << 32 ^ row as u64;
    for factor in [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb_u64] {
        x = (x ^ x >> 29).wrapping_mul(factor);
    }
    x ^ x >> 32
}

/// Adds a cell of a world's counter to the header or to a row. Of real ones, 73 of 100 are zero,
/// 10 are another constant, the rest moves [CAP-A].
fn add_other(line: &mut Vec<u8>, column: usize, row: usize) {
    let (name, format) = VCPU[column % VCPU.len()];
    if row == 0 {
        let world = 65_536 + column / VCPU.len();
        let cell = format!("\"\\\\esx01\\Vcpu(1:system:{world}:helper-{world})\\{name}\",");
        line.extend_from_slice(cell.as_bytes());
        return;
    }
    let value = match noise(column, 0) % 100 {
        0..73 => 0.0,
        73..83 => 100.0,
        _ => (noise(column, row) % 1_000) as f64 / 100.0,
    };
    line.push(b'"');
    write_value(line, value, format);
    line.extend_from_slice(b"\",");
}

/// The I/Os of an object, sample by sample, with two decimals as in a file.
struct Load {
    commands: Vec<f64>,
    driver_ms: Vec<f64>,
    kernel_ms: Vec<f64>,
}

impl Load {
    fn none(rows: usize) -> Self {
        Self { commands: vec![0.0; rows], driver_ms: vec![0.0; rows], kernel_ms: vec![0.0; rows] }
    }

    /// What a VM sends. One of three is idle; on one device of eight, the commands of the others
    /// wait in a full queue for a fifth of the time.
    fn of_vm(vm: usize, device: usize, rows: usize) -> Self {
        let mut load = Self::none(rows);
        if vm.is_multiple_of(VMS) {
            return load;
        }
        let base = 20 + noise(vm, 0) % 400;
        for row in 0..rows {
            let chance = noise(vm, row + 1);
            let pressed = device.is_multiple_of(8) && (2 * rows / 5..3 * rows / 5).contains(&row);
            let (rate, driver, kernel) = if pressed { (8, 900, 800) } else { (1, 60, 0) };
            load.commands[row] = (rate * base * (80 + chance % 40)) as f64 / 100.0;
            load.driver_ms[row] = hundredths(driver + (chance >> 16) % 40);
            load.kernel_ms[row] = hundredths(kernel + (chance >> 32) % 3);
        }
        load
    }

    /// Adds another load: rates add up, latencies are means over the commands.
    fn add(&mut self, other: &Self) {
        for row in 0..self.commands.len() {
            let (mine, theirs) = (self.commands[row], other.commands[row]);
            let all = mine + theirs;
            let mean = |a: f64, b: f64| if all > 0.0 { (mine * a + theirs * b) / all } else { 0.0 };
            self.driver_ms[row] = printed(mean(self.driver_ms[row], other.driver_ms[row]));
            self.kernel_ms[row] = printed(mean(self.kernel_ms[row], other.kernel_ms[row]));
            self.commands[row] = printed(all);
        }
    }

    /// The value of a counter in a row of an object with this load.
    fn value(&self, counter: Counter, row: usize) -> f64 {
        const DEPTH: f64 = 32.0;
        let (commands, driver, kernel) =
            (self.commands[row], self.driver_ms[row], self.kernel_ms[row]);
        let active = (commands * driver / 1_000.0).round().min(DEPTH);
        let queued = (commands * kernel / 1_000.0).floor();
        let reads = printed(0.7 * commands);
        match counter {
            Counter::AdapterQDepth => 4_096.0,
            Counter::Shares => 1_000.0,
            Counter::DeviceQDepth => DEPTH,
            Counter::ActiveCommands => active,
            Counter::QueuedCommands => queued,
            Counter::PercentUsed => 100.0 * active / DEPTH,
            Counter::Load => (active + queued) / DEPTH,
            Counter::Commands => commands,
            Counter::Reads => reads,
            Counter::Writes => commands - reads,
            Counter::MbRead => reads / 128.0,
            Counter::MbWritten => (commands - reads) / 128.0,
            Counter::DriverLatency | Counter::DriverLatencyRead => driver,
            Counter::DriverLatencyWrite => 0.8 * driver,
            Counter::KernelLatency | Counter::KernelLatencyRead | Counter::KernelLatencyWrite => {
                kernel
            }
            Counter::QueueLatency | Counter::QueueLatencyRead | Counter::QueueLatencyWrite => {
                kernel
            }
            Counter::GuestLatency | Counter::GuestLatencyRead => driver + kernel,
            Counter::GuestLatencyWrite => 0.8 * driver + kernel,
            Counter::VdiskReadLatency => driver + kernel,
            Counter::VdiskWriteLatency => 0.8 * driver + kernel,
            _ => 0.0,
        }
    }
}

fn hundredths(number: u64) -> f64 {
    number as f64 / 100.0
}

fn printed(value: f64) -> f64 {
    (100.0 * value).round() / 100.0
}

/// A host with as many devices as the shape has room for.
fn host(shape: Shape) -> Recording {
    // The first row is the writer's: esxtop's first sample.
    let rows = shape.rows.saturating_sub(1);
    let mut recording = Recording::new("esx01".into());
    recording.times_ms = (0..rows as i64).map(|row| 1_767_225_600_000 + row * 5_000).collect();
    let adapters = ["vmhba1", "vmhba2"]
        .map(|name| recording.add_entity(Entity::new(Kind::Adapter, name.into())));
    let mut carried = adapters.map(|_| Load::none(rows));
    let counters_of =
        |kind: Kind| kind.counters().filter(|counter| counter.info().in_esxtop).count();
    let per_vm = [Kind::World, Kind::Vm, Kind::VirtualDisk].map(counters_of).iter().sum::<usize>();
    // Each path stands twice in a file, the second time with its adapter's AQLEN.
    let per_device = [Kind::Device, Kind::Partition].map(counters_of).iter().sum::<usize>()
        + adapters.len() * (2 * counters_of(Kind::Path) + 1)
        + VMS * per_vm;
    for device in 0..(shape.disk_columns() / per_device).max(1) {
        let load = add_device(&mut recording, device, &adapters);
        carried[device % 2].add(&load);
    }
    for (adapter, load) in adapters.iter().zip(&carried) {
        fill(&mut recording, *adapter, load);
    }
    recording
}

/// Adds a device with its VMs, its two paths, of which one is used, and a partition.
fn add_device(recording: &mut Recording, number: usize, adapters: &[EntityId; 2]) -> Load {
    let rows = recording.len();
    let name = format!("naa.600508b1001c{number:020x}");
    let device = recording.add_entity(Entity::new(Kind::Device, name.clone()));
    let mut load = Load::none(rows);
    for place in 0..VMS {
        let vm = VMS * number + place;
        let sent = Load::of_vm(vm, number, rows);
        add_vm(recording, vm, device, &sent);
        load.add(&sent);
    }
    let idle = Load::none(rows);
    for (place, &adapter) in adapters.iter().enumerate() {
        let path = format!("{}:C0:T0:L{number}", recording.entity(adapter).name);
        let mut path = Entity::new(Kind::Path, path);
        (path.adapter, path.device) = (Some(adapter), Some(device));
        let path = recording.add_entity(path);
        fill(recording, path, if place == number % 2 { &load } else { &idle });
    }
    let mut partition = Entity::new(Kind::Partition, format!("{name}-1"));
    partition.device = Some(device);
    let partition = recording.add_entity(partition);
    fill(recording, partition, &load);
    fill(recording, device, &load);
    load
}

/// Adds a VM with a virtual disk on a device and its world there.
fn add_vm(recording: &mut Recording, number: usize, device: EntityId, load: &Load) {
    let vm = recording.add_entity(Entity::new(Kind::Vm, format!("vm{number:03}")));
    let mut disk = Entity::new(Kind::VirtualDisk, format!("vm{number:03}:scsi0:0"));
    (disk.vm, disk.controller) = (Some(vm), Some(Controller::Pvscsi));
    let disk = recording.add_entity(disk);
    let world = format!("{}-{}", recording.entity(device).name, 2_100_000 + number);
    let mut world = Entity::new(Kind::World, world);
    (world.vm, world.device) = (Some(vm), Some(device));
    let world = recording.add_entity(world);
    for object in [vm, disk, world] {
        fill(recording, object, load);
    }
}

/// Sets every counter that esxtop has for an object.
fn fill(recording: &mut Recording, object: EntityId, load: &Load) {
    let counters = recording.entity(object).kind.counters();
    for counter in counters.filter(|counter| counter.info().in_esxtop) {
        let values = (0..recording.len()).map(|row| load.value(counter, row)).collect();
        recording.set_column(object, counter, values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, ReadOptions, read_inputs};

    #[test]
    fn a_generated_capture_is_sound_and_has_its_shape() {
        let shape = Shape { columns: 5_000, rows: 20 };
        let mut file = Vec::new();
        generate(shape, &mut file, &mut |_| ()).expect("memory takes all");
        let input = Input::from_bytes("generated", file);
        let capture =
            read_inputs(vec![input], &ReadOptions::default(), &mut |_, _| ()).expect("a capture");
        let (report, host) = (&capture.report.files[0], &capture.report.hosts[0]);
        assert_eq!((report.columns + 1, report.rows), (shape.columns, shape.rows));
        assert_eq!((report.damaged_rows, report.bad_cells, report.duplicate_columns), (0, 0, 0));
        assert!(report.disk_columns * 3 > shape.disk_columns());
        assert!(host.checks.iter().all(|check| check.tested == check.held), "{:?}", host.checks);
        assert_eq!(host.unresolved_worlds, 0);
    }
}
