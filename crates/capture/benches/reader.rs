//! How fast a large capture is read: `cargo bench -p capture [-- COLUMNS ROWS]`.
//!
//! The file is made of disk columns from the project's own writer with columns of worlds before
//! and others behind them, as in real captures [CAP-A], in the temporary folder, and removed
//! afterwards. Beside the reader runs a bare loop that skips to the disk columns and adds them up.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    num::NonZeroUsize,
    path::Path,
    time::Instant,
};

use capture::{ReadOptions, read, write_esxtop};
use counters::{Controller, Counter, Entity, EntityId, Format, Kind, Recording};
use memchr::memchr_iter;

fn main() -> io::Result<()> {
    let sizes: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let (columns, rows) = match sizes.as_slice() {
        [columns, rows, ..] => (*columns, *rows),
        _ => (20_000, 4_500),
    };
    let path = std::env::temp_dir().join(format!("kavg-bench-{}.csv", std::process::id()));
    let disk = generate(&path, columns, rows)?;
    let size = std::fs::metadata(&path)?.len();
    println!(
        "{columns} columns ({} about disks), {rows} rows, {} MB",
        disk.end - disk.start,
        size / 1_000_000
    );
    best("count lines", || Ok(memchr_iter(b'\n', &map(&path)?).count()))?;
    for threads in [1, 2] {
        let name = format!("bare loop, {threads} threads");
        best(&name, || Ok(bare(&map(&path)?, &disk, threads) as usize))?;
    }
    for threads in [1, 2] {
        let threads_used = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
        let options = ReadOptions { threads: threads_used, ..ReadOptions::default() };
        best(&format!("read, {threads} threads"), || {
            let capture = read(std::slice::from_ref(&path), &options, &mut |_, _| ())
                .map_err(io::Error::other)?;
            let held = resident_mb();
            println!("  {held} MB held beside the mapping");
            Ok(capture.recordings[0].len())
        })?;
    }
    std::fs::remove_file(&path)
}

#[expect(unsafe_code, reason = "what the reader is compared with reads from a mapping as well")]
fn map(path: &Path) -> io::Result<memmap2::Mmap> {
    // SAFETY: nobody changes the file of this process while it runs.
    unsafe { memmap2::Mmap::map(&File::open(path)?) }
}

/// Prints the shortest of five runs.
fn best(what: &str, mut run: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
    let mut shortest = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        std::hint::black_box(run()?);
        shortest = shortest.min(start.elapsed().as_secs_f64());
    }
    println!("{what}: {shortest:.3} s");
    Ok(())
}

/// Memory of the process that is no file's, where the system tells.
fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0_u64) / 1024
}

/// Writes a capture; returns the cells of it that are about disks.
fn generate(path: &Path, columns: usize, rows: usize) -> io::Result<std::ops::Range<usize>> {
    let recording = recording(columns / 5, rows);
    let mut disk = Vec::new();
    write_esxtop(&recording, &mut disk)?;
    let header_cells =
        memchr_iter(b',', &disk[..disk.iter().position(|&b| b == b'\n').unwrap_or(0)]).count();
    let others = columns.saturating_sub(header_cells);
    let (before, after) = (others - others / 40, others / 40);
    let mut out = BufWriter::new(File::create(path)?);
    for (index, line) in disk.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let stamp = line.iter().position(|&byte| byte == b',').map_or(0, |comma| comma + 1);
        out.write_all(&line[..stamp])?;
        write_others(&mut out, index, 0..before)?;
        out.write_all(&line[stamp..line.len() - 1])?;
        write_others(&mut out, index, before..before + after)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(1 + before..before + header_cells)
}

fn write_others(out: &mut impl Write, row: usize, cells: std::ops::Range<usize>) -> io::Result<()> {
    for cell in cells {
        if row == 0 {
            let world = 65_536 + cell / 24;
            write!(
                out,
                "\"\\\\esx01\\Vcpu(1:system:{world}:helper-{world})\\Counter {}\",",
                cell % 24
            )?;
        } else if (cell * 7 + row).is_multiple_of(5) {
            write!(out, "\"{}.{:02}\",", (cell + row) % 100, row % 100)?;
        } else {
            out.write_all(b"\"0.00\",")?;
        }
    }
    Ok(())
}

/// A host whose disk columns are about `columns`.
fn recording(columns: usize, rows: usize) -> Recording {
    let mut recording = Recording::new("esx01".into());
    recording.times_ms = (0..rows as i64).map(|row| 1_767_225_600_000 + row * 5_000).collect();
    let adapter = recording.add_entity(Entity::new(Kind::Adapter, "vmhba1".into()));
    let vms = columns / (2 * (34 + 10));
    let mut used = 0;
    for vm in 0..vms {
        let vm_id = recording.add_entity(Entity::new(Kind::Vm, format!("vm{vm}")));
        let mut disk = Entity::new(Kind::VirtualDisk, format!("vm{vm}:scsi0:0"));
        disk.vm = Some(vm_id);
        disk.controller = Some(Controller::Pvscsi);
        let disk = recording.add_entity(disk);
        fill(&mut recording, disk, rows, &mut used);
    }
    let mut device_number = 0;
    while used + 3 * 31 + 52 + 34 * 16 < columns {
        let name = format!("naa.600{device_number:029x}");
        let device = recording.add_entity(Entity::new(Kind::Device, name.clone()));
        fill(&mut recording, device, rows, &mut used);
        let mut path = Entity::new(Kind::Path, format!("vmhba1:C0:T0:L{device_number}"));
        path.adapter = Some(adapter);
        path.device = Some(device);
        let path = recording.add_entity(path);
        fill(&mut recording, path, rows, &mut used);
        for world in 0..16 {
            let name = format!("{name}-{}", 1_000_000 + world);
            let mut world = Entity::new(Kind::World, name);
            world.device = Some(device);
            let world = recording.add_entity(world);
            fill(&mut recording, world, rows, &mut used);
        }
        device_number += 1;
    }
    recording
}

fn fill(recording: &mut Recording, entity: EntityId, rows: usize, used: &mut usize) {
    let kind = recording.entity(entity).kind;
    for counter in kind.counters().filter(|counter| counter.info().in_esxtop) {
        *used += 1;
        let busy = counter <= Counter::QueueLatency;
        let scale = if counter.info().format == Format::Integer { 1.0 } else { 0.01 };
        let value =
            |row: usize| if busy { ((row * 31 + *used * 17) % 25_000) as f64 * scale } else { 0.0 };
        let values = (0..rows).map(value).collect();
        recording.set_column(entity, counter, values);
    }
}

/// The least that a reader of the disk columns must do.
fn bare(bytes: &[u8], disk: &std::ops::Range<usize>, threads: usize) -> u64 {
    let middle = if threads == 1 {
        bytes.len()
    } else {
        let half = bytes.len() / 2;
        half + bytes[half..].iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1)
    };
    std::thread::scope(|scope| {
        let second = scope.spawn(|| bare_part(&bytes[middle..], disk));
        bare_part(&bytes[..middle], disk) + second.join().unwrap_or_default()
    })
}

fn bare_part(mut bytes: &[u8], disk: &std::ops::Range<usize>) -> u64 {
    let mut sum = 0;
    while !bytes.is_empty() {
        let mut at = 0;
        let mut left = disk.start;
        loop {
            let commas = memchr_iter(b',', &bytes[at..bytes.len().min(at + 1024)]).count();
            if commas >= left {
                break;
            }
            left -= commas;
            at += 1024;
        }
        at += memchr_iter(b',', &bytes[at..]).nth(left - 1).map_or(0, |comma| comma + 1);
        let mut cells = disk.end - disk.start;
        let mut value = 0;
        while cells > 0 && at < bytes.len() {
            match bytes[at] {
                b',' => {
                    cells -= 1;
                    sum += value;
                    value = 0;
                }
                digit @ b'0'..=b'9' => value = value * 10 + u64::from(digit - b'0'),
                _ => {}
            }
            at += 1;
        }
        let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1);
        bytes = &bytes[end..];
    }
    sum
}
