//! The file: esxtop's batch format as esxtop-captures.md and sections 5.7 to 5.9 of
//! esxi-host-stack.md describe it. Its first row has no rates, for there was none before it.

use std::fmt::Write as _;

use super::host::{Controller, Host};
use super::random::Random;
use super::recording::{Io, Row, vms_on};

const IO: [&str; 5] =
    ["Commands/sec", "Reads/sec", "Writes/sec", "MBytes Read/sec", "MBytes Written/sec"];
const LEVELS: [&str; 4] = ["Driver", "Kernel", "Guest", "Queue"];
const QUEUE: [&str; 6] =
    ["Device Q Depth", "World Q Depth", "Active Commands", "Queued Commands", "% Used", "Load"];
const ERRORS: [&str; 8] = [
    "Failed Commands/sec",
    "Failed Reads/sec",
    "Failed Writes/sec",
    "Failed Bytes Read/sec",
    "Failed Bytes Written/sec",
    "Failed Reserves/sec",
    "Aborts/sec",
    "Resets/sec",
];
const SPLITS: [&str; 4] =
    ["PAE Commands/sec", "PAE Copies/sec", "Split Commands/sec", "Split Copies/sec"];

/// Where a column's numbers come from.
#[derive(Clone, Copy)]
enum Source {
    Device(usize),
    World(usize, usize),
    Path(usize, usize),
    Adapter(usize),
    /// A flow of an NFS volume's total.
    Nfs(usize),
    Disk(usize),
    VmDisks(usize),
    /// The same in every row.
    Constant(f64),
}

struct Column {
    group: String,
    counter: String,
    source: Source,
}

/// Writes the capture.
pub(super) fn write(host: &Host, rows: &[Row], random: &mut Random) -> String {
    let columns = columns(host);
    let end = if host.trailing_comma { ",\n" } else { "\n" };
    let mut text = String::from("\"(PDH-CSV 4.0) (UTC)(0)\"");
    for Column { group, counter, .. } in &columns {
        let _ = write!(text, ",\"\\\\{}\\{group}\\{counter}\"", host.name);
    }
    text.push_str(end);
    let mut seconds = random.within(0..50_000);
    for (index, row) in rows.iter().enumerate() {
        let spoilt = host.garbage && index > 0 && random.chance(0.05);
        let _ = write!(text, "\"{}\"", stamp(seconds));
        for column in &columns {
            let cell = cell(host, row, column, index == 0);
            let bad = spoilt && column.group.contains("Disk") && random.chance(0.5);
            let cell = if bad { random.pick(garbage(&column.counter)).to_owned() } else { cell };
            let _ = write!(text, ",\"{cell}\"");
        }
        text.push_str(end);
        seconds += host.interval_s as usize + usize::from(random.chance(0.07));
    }
    text
}

/// What counters print that ran backwards or were never measured. 65,535 of a time is all bits of 16,
/// and so it is of faults, for no device has so many; of a rate of commands it may be a rate.
fn garbage(counter: &str) -> &'static [&'static str] {
    const FAULTS: [&str; 4] = ["Aborts/sec", "Resets/sec", "Conflicts/sec", "Failed Commands/sec"];
    const OF_TIMES: [&str; 7] = [
        "65535.00",
        "",
        "4294967295",
        "18446744073709551615",
        "-1",
        "4294967295.00",
        "18446744073709551615.00",
    ];
    let is_rare = counter.contains("MilliSec") || FAULTS.contains(&counter);
    if is_rare { &OF_TIMES } else { &OF_TIMES[1..] }
}

/// `MM/DD/YYYY HH:MM:SS` of a day in May.
fn stamp(seconds: usize) -> String {
    let (day, rest) = (1 + seconds / 86_400, seconds % 86_400);
    format!("05/{day:02}/2023 {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

fn columns(host: &Host) -> Vec<Column> {
    let mut columns = Vec::new();
    processes(host, &mut columns);
    for (index, adapter) in host.adapters.iter().enumerate() {
        if host.all {
            let source = Source::Constant(f64::from(adapter.depth));
            push(
                &mut columns,
                &format!("Physical Disk({})", adapter.name),
                &["Adapter Q Depth"],
                source,
            );
        }
        block(
            host,
            &mut columns,
            &format!("Physical Disk Adapter({})", adapter.name),
            Source::Adapter(index),
        );
        for (device, path) in paths(host, index) {
            let name = &host.devices[device].paths[path].name;
            let group = format!("Physical Disk({}:{name})", adapter.name);
            block(host, &mut columns, &group, Source::Path(device, path));
        }
    }
    for index in 0..host.devices.len() {
        device(host, &mut columns, index);
    }
    for (vm, nouns) in host.vms.iter().enumerate() {
        disk(&mut columns, &nouns.name, Source::VmDisks(vm));
        for flow in (0..host.flows.len()).filter(|flow| host.flows[*flow].vm == vm) {
            disk(&mut columns, &host.disk(flow), Source::Disk(flow));
        }
    }
    columns
}

/// The worlds by whose names VMs, worlds and controllers are joined.
fn processes(host: &Host, columns: &mut Vec<Column>) {
    let first = if host.old { 32769 } else { 65537 };
    push(columns, "Group Cpu(1:system)", &["Members", "% Used"], Source::Constant(61.0));
    push(columns, &format!("Vcpu(1:system:{first}:idle1)"), &["% Used"], Source::Constant(0.0));
    for vm in &host.vms {
        let (group, name, world) = (vm.group, &vm.name, vm.world);
        push(
            columns,
            &format!("Group Cpu({group}:{name})"),
            &["Members", "% Used"],
            Source::Constant(9.0),
        );
        let mut worlds = vec![format!("{}:vmx", world - 1), format!("{}:vmast.{world}", world + 1)];
        match vm.controller {
            Controller::Pvscsi if !host.old => {
                worlds.push(format!("{}:PVSCSI-{world}:0", world + 2))
            }
            Controller::Lsi if !host.old => worlds.push(format!("{}:LSI-{world}:0", world + 2)),
            _ => {}
        }
        worlds.push(format!("{}:vmx-vcpu-0:{name}", world + 3));
        for helper in worlds {
            push(
                columns,
                &format!("Vcpu({group}:{name}:{helper})"),
                &["% Used"],
                Source::Constant(1.5),
            );
        }
    }
}

fn paths(host: &Host, adapter: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    host.devices.iter().enumerate().flat_map(move |(device, nouns)| {
        let paths = nouns.paths.iter().enumerate();
        paths.filter(move |(_, path)| path.adapter == adapter).map(move |(path, _)| (device, path))
    })
}

fn device(host: &Host, columns: &mut Vec<Column>, index: usize) {
    let device = &host.devices[index];
    if device.nfs {
        let group = format!("Physical Disk NFS Volume({})", device.name);
        push(columns, &group, &["Active Commands"], Source::Nfs(index));
        push(columns, &group, &IO, Source::Nfs(index));
        push(columns, &group, &["Average Guest MilliSec/Command"], Source::Nfs(index));
        return;
    }
    let group = format!("Physical Disk SCSI Device({})", device.name);
    push(columns, &group, &QUEUE, Source::Device(index));
    block(host, columns, &group, Source::Device(index));
    for (path, nouns) in device.paths.iter().enumerate() {
        let group = format!("Physical Disk Path({})", nouns.name);
        block(host, columns, &group, Source::Path(index, path));
    }
    for (world, vm) in vms_on(host, index).into_iter().enumerate() {
        let id = host.vms[vm].world;
        let group = format!("Physical Disk Per-Device-Per-World({}-{id})", device.name);
        if host.all {
            push(columns, &group, &["Shares"], Source::Constant(1000.0));
        }
        push(columns, &group, &QUEUE, Source::World(index, world));
        block(host, columns, &group, Source::World(index, world));
    }
}

fn push(columns: &mut Vec<Column>, group: &str, counters: &[&str], source: Source) {
    columns.extend(counters.iter().map(|counter| Column {
        group: group.to_owned(),
        counter: (*counter).to_owned(),
        source,
    }));
}

/// The counters that adapters, paths, devices and worlds have in common.
fn block(host: &Host, columns: &mut Vec<Column>, group: &str, source: Source) {
    push(columns, group, &IO, source);
    let latencies = |kind: &str| LEVELS.map(|level| format!("Average {level} MilliSec/{kind}"));
    let mut counters: Vec<String> = Vec::new();
    if host.all {
        counters.extend(["Reserves/sec", "Conflicts/sec"].map(str::to_owned));
    }
    counters.extend(latencies("Command"));
    if host.all {
        counters.extend(latencies("Read"));
        counters.extend(latencies("Write"));
        counters.extend(ERRORS.map(str::to_owned));
        if matches!(source, Source::Path(..) | Source::Adapter(_)) {
            counters.extend(SPLITS.map(str::to_owned));
        }
    }
    let names: Vec<&str> = counters.iter().map(String::as_str).collect();
    push(columns, group, &names, source);
}

fn disk(columns: &mut Vec<Column>, name: &str, source: Source) {
    let group = format!("Virtual Disk({name})");
    push(columns, &group, &IO, source);
    push(columns, &group, &["Average MilliSec/Read", "Average MilliSec/Write"], source);
}

fn cell(host: &Host, row: &Row, column: &Column, first: bool) -> String {
    let integer = matches!(
        column.counter.as_str(),
        "Device Q Depth"
            | "World Q Depth"
            | "Active Commands"
            | "Queued Commands"
            | "Adapter Q Depth"
            | "Shares"
            | "Members"
    );
    let value = value(host, row, column, first);
    if integer { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn value(host: &Host, row: &Row, column: &Column, first: bool) -> f64 {
    let (io, queue) = match column.source {
        Source::Constant(value) => return value,
        Source::Device(device) => {
            let io = row.devices[device];
            (io, io.device_queue + io.adapter_queue)
        }
        Source::World(device, world) => {
            let io = row.worlds[device][world];
            (Io { depth: row.devices[device].depth, ..io }, io.device_queue + io.adapter_queue)
        }
        Source::Path(device, path) => {
            let io = row.paths[device][path];
            (io, io.adapter_queue)
        }
        Source::Adapter(adapter) => (row.adapters[adapter], row.adapters[adapter].adapter_queue),
        Source::Nfs(device) => (row.devices[device], 0.0),
        Source::Disk(flow) => (row.disks[flow], 0.0),
        Source::VmDisks(vm) => (sum_disks(host, row, vm), 0.0),
    };
    let instant = matches!(
        column.counter.as_str(),
        "Device Q Depth" | "Active Commands" | "Queued Commands" | "% Used" | "Load"
    );
    if first && !instant { 0.0 } else { counter(&io, queue, &column.counter) }
}

fn sum_disks(host: &Host, row: &Row, vm: usize) -> Io {
    let mut sum = Io::default();
    for (flow, io) in host.flows.iter().zip(&row.disks) {
        if flow.vm == vm {
            sum.add(*io);
        }
    }
    sum
}

fn counter(io: &Io, queue: f64, name: &str) -> f64 {
    let mean =
        |sum: f64, of: f64| if io.commands() > 0.0 && of > 0.0 { sum / io.commands() } else { 0.0 };
    let of = match name.rsplit_once('/') {
        Some((_, "Read")) => io.reads,
        Some((_, "Write")) => io.writes,
        _ => io.commands(),
    };
    match name {
        "Device Q Depth" => io.depth,
        "Active Commands" => io.active,
        "Queued Commands" => io.queued,
        "% Used" if io.depth > 0.0 => 100.0 * io.active / io.depth,
        "Load" if io.depth > 0.0 => (io.active + io.queued) / io.depth,
        "Commands/sec" => io.commands() + io.reserves,
        "Reads/sec" => io.reads,
        "Writes/sec" => io.writes,
        "MBytes Read/sec" => io.mib_read,
        "MBytes Written/sec" => io.mib_written,
        "Reserves/sec" => io.reserves,
        "Conflicts/sec" => io.conflicts,
        "Aborts/sec" => io.aborts,
        "Resets/sec" => io.resets,
        "Failed Commands/sec" => io.failed,
        "Split Commands/sec" => io.split,
        "Split Copies/sec" => io.split * 2.0,
        _ if name.starts_with("Average Driver") => mean(io.driver, of),
        _ if name.starts_with("Average Kernel") => mean(io.kernel, of),
        _ if name.starts_with("Average Queue") => mean(queue, of),
        _ if name.starts_with("Average") => mean(io.driver + io.kernel, of),
        _ => 0.0,
    }
}
