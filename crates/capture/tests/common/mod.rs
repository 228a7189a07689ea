//! A small capture made by the project's own writer, and the reader on bytes.
#![allow(dead_code, reason = "each test file uses its part")]

use capture::{Capture, Error, Input, ReadOptions, read_inputs, write_esxtop};
use counters::{Controller, Counter, Entity, EntityId, Kind, Recording};

/// 2026-03-02 10:00:00 UTC.
pub(crate) const START_MS: i64 = 1_772_445_600_000;

/// One host: two VMs, a shared device, a device of its own for each VM's second disk, NFS.
pub(crate) fn small_host(samples: usize) -> Recording {
    let mut host = Recording::new("esx01".into());
    host.times_ms = (0..samples as i64).map(|sample| START_MS + sample * 5_000).collect();
    let adapter = host.add_entity(Entity::new(Kind::Adapter, "vmhba1".into()));
    let devices: Vec<EntityId> = (1..=3)
        .map(|lun| {
            let device = host.add_entity(Entity::new(Kind::Device, format!("naa.60{lun}")));
            let mut path = Entity::new(Kind::Path, format!("vmhba1:C0:T0:L{lun}"));
            (path.adapter, path.device) = (Some(adapter), Some(device));
            host.add_entity(path);
            device
        })
        .collect();
    let vms =
        [("web (old)", 100, Controller::LsiSas, 1), ("sql, main", 200, Controller::Pvscsi, 2)];
    for (name, leader, controller, second) in vms {
        let vm = host.add_entity(Entity::new(Kind::Vm, name.into()));
        for (unit, device) in [(0, devices[0]), (1, devices[second])] {
            let mut disk = Entity::new(Kind::VirtualDisk, format!("{name}:scsi0:{unit}"));
            disk.controller = Some(controller);
            (disk.vm, disk.device) = (Some(vm), Some(device));
            host.add_entity(disk);
            let name = format!("{}-{leader}", host.entity(device).name);
            let mut world = Entity::new(Kind::World, name);
            (world.vm, world.device) = (Some(vm), Some(device));
            host.add_entity(world);
        }
    }
    let mut hostd = Entity::new(Kind::World, "naa.601-66694".into());
    (hostd.device, hostd.process) = (Some(devices[0]), Some("hostd".into()));
    host.add_entity(hostd);
    host.add_entity(Entity::new(Kind::NfsVolume, "backup".into()));
    fill(&mut host);
    host
}

/// Commands that differ by virtual disk, and their sums at every level.
fn fill(host: &mut Recording) {
    let samples = host.len();
    let ids = |host: &Recording| (0..host.entities().len() as u32).map(EntityId);
    let of = |place: u32, sample: usize| ((place as usize * 37 + sample * 11) % 90 + 10) as f64;
    let mut sums = vec![vec![0.0; samples]; host.entities().len()];
    for id in ids(host).filter(|&id| host.entity(id).kind == Kind::VirtualDisk) {
        let disk = host.entity(id).clone();
        let world =
            |e: &Entity| e.kind == Kind::World && e.vm == disk.vm && e.device == disk.device;
        let path = |e: &Entity| e.kind == Kind::Path && e.device == disk.device;
        let with = |other: EntityId| {
            let e = host.entity(other);
            other == id
                || Some(other) == disk.vm
                || Some(other) == disk.device
                || world(e)
                || path(e)
                || e.kind == Kind::Adapter
        };
        for other in ids(host).filter(|&other| with(other)) {
            for (sample, sum) in sums[other.0 as usize].iter_mut().enumerate() {
                *sum += of(id.0, sample);
            }
        }
    }
    for (id, commands) in ids(host).collect::<Vec<_>>().into_iter().zip(sums) {
        let kind = host.entity(id).kind;
        for counter in kind.counters().filter(|counter| counter.info().in_esxtop) {
            let values = match counter {
                Counter::Commands | Counter::Reads => commands.clone(),
                Counter::DeviceQDepth => vec![32.0; samples],
                Counter::AdapterQDepth => vec![4096.0; samples],
                Counter::DriverLatency => vec![1.5; samples],
                Counter::KernelLatency => vec![0.25; samples],
                Counter::GuestLatency => vec![1.75; samples],
                _ => vec![0.0; samples],
            };
            host.set_column(id, counter, values);
        }
    }
}

/// The bytes that the writer makes of a recording.
pub(crate) fn written(recording: &Recording) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_esxtop(recording, &mut bytes).expect("memory takes all");
    bytes
}

/// The text of a small capture of three samples: a header line and four rows.
pub(crate) fn small_file() -> String {
    String::from_utf8(written(&small_host(3))).expect("ASCII")
}

pub(crate) fn read_bytes(bytes: Vec<u8>) -> Result<Capture, Error> {
    let input = Input::from_bytes("test.csv", bytes);
    read_inputs(vec![input], &ReadOptions::default(), &mut |_, _| ())
}

/// What one recording has and the other has not, by name.
pub(crate) fn differences(a: &Recording, b: &Recording) -> Vec<String> {
    let (a, b) = (shown(a), shown(b));
    let only = |a: &[String], b: &[String], sign| -> Vec<String> {
        a.iter().filter(|line| !b.contains(line)).map(|line| format!("{sign}{line}")).collect()
    };
    [only(&a, &b, '-'), only(&b, &a, '+')].concat()
}

fn shown(recording: &Recording) -> Vec<String> {
    let name = |id: Option<EntityId>| id.map(|id| recording.entity(id).name.clone());
    let mut all: Vec<String> = recording
        .entities()
        .iter()
        .map(|e| {
            let links = (name(e.device), name(e.adapter), name(e.vm));
            format!("{:?} {} {links:?} {:?} {:?}", e.kind, e.name, e.controller, e.process)
        })
        .collect();
    all.extend(recording.columns().map(|(id, counter, values)| {
        let entity = recording.entity(id);
        format!("{:?} {} {counter:?} {values:?}", entity.kind, entity.name)
    }));
    all.push(format!("{:?}", recording.times_ms));
    all
}
