//! Whatever bytes come: no panic, and a recording that holds together. The fuzz targets on their
//! seeds and on damaged seeds, with the compiler that everybody has. With `WRITE_CORPUS` set the
//! seeds become files that the fuzzer begins with.

mod common;

#[path = "../../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "it is a library of its own as well")]
mod targets;

use std::{
    io::{Cursor, Write},
    path::Path,
};

use capture::{Input, Limits, ReadOptions, merge, read_inputs};
use common::{START_MS, differences, small_file};
use counters::{Controller, Entity, EntityId, Format, Kind, Recording};
use proptest::{prelude::*, sample::Index, test_runner::TestRunner};

/// Inputs made of every seed.
const CASES: u32 = 24;

/// A change to an input: where, and what.
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

fn apply(mut bytes: Vec<u8>, edits: &[(Index, Edit)]) -> Vec<u8> {
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

#[test]
fn every_target_holds_on_its_seeds_and_on_damaged_ones() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let write = std::env::var_os("WRITE_CORPUS").is_some();
    for (target, number, seed) in targets::seeds(&root) {
        if write {
            let folder = root.join("fuzz/corpus").join(target);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("seed-{number}")), &seed).unwrap();
        }
        let run = targets::TARGETS.iter().find(|row| row.0 == target).unwrap().1;
        run(&seed);
        let edits = prop::collection::vec((any::<Index>(), edit()), 1..6);
        let config =
            ProptestConfig { cases: CASES, failure_persistence: None, ..Default::default() };
        let outcome = TestRunner::new(config).run(&edits, |edits| {
            run(&apply(seed.clone(), &edits));
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{target}, seed {number}: {error}"));
    }
}

#[test]
fn every_target_has_a_seed_and_a_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let seeds = targets::seeds(&root);
    for (target, _) in targets::TARGETS {
        assert!(seeds.iter().any(|seed| seed.0 == target), "{target}");
        let program = std::fs::read_to_string(root.join(format!("fuzz/targets/{target}.rs")));
        assert!(program.unwrap().contains(&format!("kavg_fuzz::{target}(bytes)")), "{target}");
    }
}

proptest! {
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
    let limits = Limits {
        line_bytes: 1 << 20,
        inflated_bytes: 32 << 20,
        values: 2_000,
        ..Limits::default()
    };
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
