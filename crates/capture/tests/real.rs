//! The reader on captures of real hosts. They are not part of the project: where they are not
//! found beside it or in `KAVG_CAPTURES`, the tests say so and pass.

mod common;

use capture::{Because, Input, Limits, ReadOptions, Substitutes, anonymize, read};
use common::{differences, read_bytes, written};
use counters::{Controller, Kind};
use testing::real_capture;

const FILES: [(&str, usize, usize); 2] = [
    ("esxi65-all-counters-3-samples.csv", 17_426, 1_268),
    ("esxi65-default-counters-3-samples.csv", 7_630, 532),
];

#[test]
fn every_disk_column_world_and_identity_of_real_files_is_understood() {
    for (name, columns, disk_columns) in FILES {
        let Some(path) = real_capture(name) else { return };
        let capture = read(&[path], &ReadOptions::default(), &mut |_, _| ()).expect("readable");
        let [recording] = capture.recordings.as_slice() else { panic!("{name}: one host") };
        let (file, host) = (&capture.report.files[0], &capture.report.hosts[0]);
        assert_eq!(file.columns, columns, "{name}");
        let repeated = 4 * if columns > 10_000 { 32 } else { 9 };
        assert_eq!(file.disk_columns, disk_columns - repeated, "{name}");
        assert!(file.first_row_left_out && file.rows == 3 && recording.len() == 2, "{name}");
        assert_eq!((file.damaged_rows, file.bad_cells), (0, 0), "{name}");
        assert!(file.unknown_columns.is_empty(), "{name}: {:?}", file.unknown_columns);
        assert_eq!(host.unresolved_worlds, 0, "{name}");
        assert!(host.checks.len() >= 4, "{name}: {:?}", host.checks);
        for check in &host.checks {
            assert_eq!(check.held, check.tested, "{name}: {check:?}");
        }
    }
}

#[test]
fn joins_of_a_real_host_are_complete() {
    let Some(path) = real_capture(FILES[0].0) else { return };
    let capture = read(&[path], &ReadOptions::default(), &mut |_, _| ()).expect("readable");
    let recording = &capture.recordings[0];
    assert_eq!(recording.of_kind(Kind::Vm).count(), 6);
    assert_eq!(recording.of_kind(Kind::VirtualDisk).count(), 7);
    assert_eq!(recording.of_kind(Kind::World).count(), 14);
    let controllers: Vec<_> =
        recording.of_kind(Kind::VirtualDisk).map(|(_, disk)| disk.controller).collect();
    let lsi = controllers.iter().filter(|&&c| c == Some(Controller::LsiSas)).count();
    assert_eq!((lsi, controllers.len()), (1, 7));
    assert!(controllers.iter().all(Option::is_some));
    for kind in [Kind::Path, Kind::World, Kind::Partition] {
        assert!(recording.of_kind(kind).all(|(_, entity)| entity.device.is_some()), "{kind:?}");
    }
    assert!(recording.of_kind(Kind::Path).all(|(_, path)| path.adapter.is_some()));
    for link in &capture.report.hosts[0].disk_links {
        assert!(link.because != Because::Elimination && link.confidence > 0.5, "{link:?}");
    }
}

#[test]
fn a_real_recording_survives_the_writer() {
    for (name, ..) in FILES {
        let Some(path) = real_capture(name) else { return };
        let options = ReadOptions::default();
        let first = read(&[path], &options, &mut |_, _| ()).expect("readable");
        let second = read_bytes(written(&first.recordings[0])).expect("readable");
        let differences = differences(&first.recordings[0], &second.recordings[0]);
        assert_eq!(differences, [""; 0], "{name}");
    }
}

#[test]
fn a_real_capture_without_names_has_none_and_keeps_every_column() {
    for (name, columns, _) in FILES {
        let Some(path) = real_capture(name) else { return };
        let first = read(std::slice::from_ref(&path), &ReadOptions::default(), &mut |_, _| ());
        let first = first.expect("readable").recordings.remove(0);
        let (mut names, mut out) = (Substitutes::default(), Vec::new());
        let input = Input::open(&path).expect("readable").remove(0);
        let report = anonymize(input, &mut names, &Limits::default(), &mut out, &mut |_, _| ())
            .expect("readable");
        assert_eq!((report.copy.columns, report.copy.rows), (columns, 3), "{name}");
        assert!(report.dropped.is_empty() && report.emptied_cells == 0, "{name}: {report:?}");
        let text = String::from_utf8(out).expect("ASCII");
        let secret = |kind| first.of_kind(kind).map(|(_, entity)| entity.name.as_str());
        let devices = secret(Kind::Device).filter(|name| !name.starts_with("mpx."));
        for secret in secret(Kind::Vm).chain(devices).chain([first.host.as_str()]) {
            assert!(!text.contains(secret), "{name}: {secret}");
        }
        let second = read_bytes(text.into_bytes()).expect("readable").recordings.remove(0);
        assert!(first.columns().map(|c| c.2.to_vec()).eq(second.columns().map(|c| c.2.to_vec())));
    }
}

#[test]
fn real_histograms_are_read_whole() {
    let Some(path) = real_capture("vscsistats-sample.csv") else { return };
    let text = std::fs::read_to_string(path).expect("text");
    let histograms = capture::parse_vscsistats("sample", &text).expect("readable");
    assert_eq!(histograms.len(), 16);
    for histogram in &histograms {
        let commands: u64 = histogram.bins.iter().map(|bin| bin.commands).sum();
        assert_eq!(commands, histogram.count, "{:?}", histogram.metric);
        assert_eq!(histogram.bins.last().map(|bin| bin.limit), Some(None));
    }
}
