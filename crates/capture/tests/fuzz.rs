//! Whatever bytes come: no panic, and a recording that holds together.

mod common;

use std::io::{Cursor, Write};

use capture::{Cut, Input, Limits, ReadOptions, cut, merge, read_inputs};
use common::{START_MS, differences, read_bytes, small_file, written};
use counters::{Controller, Entity, EntityId, Format, Kind, Recording};
use proptest::prelude::*;

/// A change to a file.
#[derive(Clone, Debug)]
enum Edit {
    Set(u8),
    Insert(Vec<u8>),
    Remove(usize),
    Repeat(usize),
    Cut,
}

fn edit() -> impl Strategy<Value = Edit> {
    let special = prop::sample::select(b"\",\\\n\r()-: .0\xfc\0".as_slice());
    prop_oneof![
        special.prop_map(Edit::Set),
        any::<u8>().prop_map(Edit::Set),
        "[\",\\\\()\n0-9.]{0,6}".prop_map(|text| Edit::Insert(text.into_bytes())),
        (1_usize..200).prop_map(Edit::Remove),
        (1_usize..2_000).prop_map(Edit::Repeat),
        Just(Edit::Cut),
    ]
}

fn apply(mut bytes: Vec<u8>, edits: &[(prop::sample::Index, Edit)]) -> Vec<u8> {
    for (place, edit) in edits {
        if bytes.is_empty() {
            break;
        }
        let at = place.index(bytes.len());
        let end = |length: usize| (at + length).min(bytes.len());
        match edit {
            Edit::Set(byte) => bytes[at] = *byte,
            Edit::Insert(new) => drop(bytes.splice(at..at, new.iter().copied())),
            Edit::Remove(length) => drop(bytes.drain(at..end(*length))),
            Edit::Repeat(length) => {
                let copy = bytes[at..end(*length)].to_vec();
                drop(bytes.splice(at..at, copy));
            }
            Edit::Cut => bytes.truncate(at),
        }
    }
    bytes
}

fn assert_sound(capture: &capture::Capture) {
    for recording in &capture.recordings {
        assert!(recording.times_ms.is_sorted_by(|a, b| a < b));
        for (id, _, values) in recording.columns() {
            assert!((id.0 as usize) < recording.entities().len());
            assert_eq!(values.len(), recording.len());
        }
    }
}

fn edits() -> impl Strategy<Value = Vec<(prop::sample::Index, Edit)>> {
    prop::collection::vec((any::<prop::sample::Index>(), edit()), 1..6)
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let _ = read_bytes(bytes);
    }

    #[test]
    fn any_text_below_a_header(text in "([\",0-9./: \r-]{0,40}\n){0,6}") {
        let header = small_file().lines().next().unwrap_or_default().to_owned();
        if let Ok(capture) = read_bytes(format!("{header}\n{text}").into_bytes()) {
            assert_sound(&capture);
        }
    }

    #[test]
    fn a_damaged_file(edits in edits()) {
        let bytes = apply(small_file().into_bytes(), &edits);
        let input = Input::from_bytes("test.csv", bytes.clone());
        let _ = cut(input, &Cut::default(), &Limits::default(), &mut Vec::new());
        match read_bytes(bytes) {
            Ok(capture) => assert_sound(&capture),
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }

    #[test]
    fn a_damaged_gzip_file(edits in edits()) {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(small_file().as_bytes())?;
        let input = Input::stream("-", Cursor::new(apply(gzip.finish()?, &edits)));
        let capture = input.and_then(|input| {
            read_inputs(vec![input], &ReadOptions::default(), &mut |_, _| ())
        });
        if let Ok(capture) = capture {
            assert_sound(&capture);
        }
    }

    #[test]
    fn a_recording_written_is_the_recording_read(host in host()) {
        let capture = read_bytes(written(&host)).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let [read] = capture.recordings.as_slice() else {
            return Err(TestCaseError::fail("one host"));
        };
        // Which device holds a virtual disk is guessed from series, and these are noise.
        let read = without_disk_links(read);
        prop_assert_eq!(differences(&read, &host), [""; 0]);
        prop_assert_eq!(capture.report.files[0].bad_cells, 0);
    }

    #[test]
    fn parts_of_a_recording_join_to_the_whole(host in host(), place: prop::sample::Index) {
        let split = place.index(host.len() + 1);
        let part = |keep: std::ops::Range<usize>| {
            let mut part = host.clone();
            part.times_ms = host.times_ms[keep.clone()].to_vec();
            for (id, counter, values) in host.columns() {
                part.set_column(id, counter, values[keep.clone()].to_vec());
            }
            part
        };
        let joined = merge(vec![part(split..host.len()), part(0..split)]);
        prop_assert_eq!(joined.len(), 1);
        prop_assert_eq!(differences(&joined[0], &host), [""; 0]);
    }
}

#[test]
fn what_asks_for_too_much_is_refused() {
    let limits = Limits { line_bytes: 1 << 20, inflated_bytes: 32 << 20, values: 2_000 };
    let options = ReadOptions { limits, ..ReadOptions::default() };
    let gzip = |piece: &[u8], times: usize| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for _ in 0..times {
            gzip.write_all(piece).expect("memory");
        }
        Input::stream("bomb", Cursor::new(gzip.finish().expect("memory"))).expect("gzip")
    };
    let text = small_file();
    let rows = text.split_once('\n').expect("a header").1;
    let table = [
        (Input::from_bytes("long", vec![b'x'; 40 << 20]), "a line longer than 1 MiB"),
        (gzip(&[0; 1 << 20], 40), "a line longer than 1 MiB"),
        (gzip((text.clone() + &"\n".repeat(40 << 20)).as_bytes(), 1), "more than 32 MiB"),
        (
            Input::from_bytes("rows", (text.clone() + rows).into_bytes()),
            "more than 2000 disk values",
        ),
    ];
    for (input, expected) in table {
        let error = read_inputs(vec![input], &options, &mut |_, _| ()).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

fn without_disk_links(recording: &Recording) -> Recording {
    let mut recording = recording.clone();
    for id in (0..recording.entities().len() as u32).map(EntityId) {
        if recording.entity(id).kind == Kind::VirtualDisk {
            recording.entity_mut(id).device = None;
        }
    }
    recording
}

/// A host of random shape with random values, as precise as esxtop prints them.
fn host() -> impl Strategy<Value = Recording> {
    let name = "[a-zA-Z][a-zA-Z0-9 ,.()_-]{0,12}";
    let names = prop::collection::btree_set(name, 0..4);
    let values = prop::collection::vec(0_u32..100_000, 64);
    (names, 1_usize..4, 1_usize..5, values, any::<bool>()).prop_map(
        |(names, devices, samples, values, odd)| {
            let mut host = shape(&names.into_iter().collect::<Vec<_>>(), devices);
            host.times_ms = (0..samples as i64).map(|s| START_MS + s * 7_000).collect();
            let mut values = values.into_iter().cycle();
            for id in (0..host.entities().len() as u32).map(EntityId) {
                let counters = host.entity(id).kind.counters().skip(usize::from(odd));
                for counter in counters.filter(|counter| counter.info().in_esxtop).step_by(2) {
                    let scale = match counter.info().format {
                        Format::Integer => 1.0,
                        Format::Decimal2 => 100.0,
                    };
                    let value = |_| f64::from(values.next().unwrap_or(1)) / scale;
                    host.set_column(id, counter, (0..samples).map(value).collect());
                }
            }
            host
        },
    )
}

fn shape(vms: &[String], devices: usize) -> Recording {
    let mut host = Recording::new("esx.example".into());
    let mut add = |entity: Entity| host.add_entity(entity);
    let adapter = add(Entity::new(Kind::Adapter, "vmhba64".into()));
    let vm_ids: Vec<_> = vms.iter().map(|vm| add(Entity::new(Kind::Vm, vm.clone()))).collect();
    for number in 0..devices {
        let name = format!("eui.0{number}-x");
        let device = add(Entity::new(Kind::Device, name.clone()));
        let mut path = Entity::new(Kind::Path, format!("vmhba64:C0:T{number}:L0"));
        (path.adapter, path.device) = (Some(adapter), Some(device));
        add(path);
        let mut partition = Entity::new(Kind::Partition, format!("{name}-1"));
        partition.device = Some(device);
        add(partition);
        for (leader, &vm) in (1_000..).step_by(10).zip(&vm_ids) {
            let mut world = Entity::new(Kind::World, format!("{name}-{leader}"));
            (world.vm, world.device) = (Some(vm), Some(device));
            add(world);
        }
        let mut process = Entity::new(Kind::World, format!("{name}-77"));
        (process.process, process.device) = (Some("vobd".into()), Some(device));
        add(process);
    }
    let buses = [
        ("scsi0:0", Some(Controller::Pvscsi)),
        ("scsi1:0", Some(Controller::LsiSas)),
        ("scsi2:3", None),
        ("nvme0:0", Some(Controller::Nvme)),
        ("sata0:1", Some(Controller::Ahci)),
        ("ide1:0", Some(Controller::Ide)),
    ];
    for (vm, &id) in vms.iter().zip(&vm_ids) {
        for (bus, controller) in buses {
            let mut disk = Entity::new(Kind::VirtualDisk, format!("{vm}:{bus}"));
            (disk.vm, disk.controller) = (Some(id), controller);
            add(disk);
        }
    }
    host
}
