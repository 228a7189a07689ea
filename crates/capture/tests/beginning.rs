//! The rows at the very beginning: the first sample, once or more, and a silence that is older than the
//! recording.

use capture::{Capture, Input, ReadOptions, read_inputs};
use counters::{Counter, Kind};

/// 2026-01-01 10:00:00 UTC.
const START_MS: i64 = 1_767_261_600_000;
const COLUMNS: [&str; 5] = [
    "Device Q Depth",
    "Active Commands",
    "Queued Commands",
    "Commands/sec",
    "Average Guest MilliSec/Command",
];
/// Eight commands are outstanding: the first sample, 1,600 a second at 5 ms, and as many after a silence of 5 s:
/// 8 of 8,000 took 5 s more.
const FIRST: [&str; 5] = ["64", "8", "0", "0.00", "0.00"];
const BUSY: [&str; 5] = ["64", "8", "0", "1600.00", "5.00"];
const AFTER: [&str; 5] = ["64", "8", "0", "1600.00", "10.00"];
/// The first sample of an idle device.
const IDLE: [&str; 5] = ["64", "0", "0", "0.00", "0.00"];

fn read(rows: &[(i64, [&str; 5])]) -> Capture {
    let mut text = String::from("\"(PDH-CSV 4.0) (UTC)(0)\"");
    for column in COLUMNS {
        text += &format!(",\"\\\\esx\\Physical Disk SCSI Device(naa.1)\\{column}\"");
    }
    for (seconds, cells) in rows {
        let stamp = capture::format_stamp(START_MS + 1_000 * seconds);
        text += &format!("\n\"{stamp}\",\"{}\"", cells.join("\",\""));
    }
    let input = Input::from_bytes("esx.csv", (text + "\n").into_bytes());
    read_inputs(vec![input], &ReadOptions::default(), &mut |_, _| ()).expect("a capture")
}

/// Some rows, and twelve of load every 5 s from a time on.
fn before_load(rows: &[(i64, [&'static str; 5])], from: i64) -> Vec<(i64, [&'static str; 5])> {
    rows.iter().copied().chain((0..12).map(|row| (from + 5 * row, BUSY))).collect()
}

/// The seconds of the samples, and the rows that were taken for the first sample once more.
fn taken(rows: &[(i64, [&'static str; 5])], from: i64) -> (Vec<i64>, usize) {
    let capture = read(&before_load(rows, from));
    let times = capture.recordings[0].times_ms.iter().map(|time| (time - START_MS) / 1_000);
    (times.collect(), capture.report.files[0].unmeasured_rows)
}

#[test]
fn the_first_sample_once_more_is_no_measurement() {
    let every = |from: i64| (0..12).map(|row| from + 5 * row).collect::<Vec<_>>();
    assert_eq!(taken(&[(0, FIRST)], 5), (every(5), 0));
    for (rows, from, again) in [
        (&[(0, FIRST), (0, FIRST)][..], 5, 1),
        (&[(0, FIRST), (1, FIRST)], 5, 1),
        (&[(0, FIRST), (5, FIRST)], 10, 1),
        (&[(0, FIRST), (0, FIRST), (0, FIRST), (5, FIRST)], 10, 3),
    ] {
        assert_eq!(taken(rows, from), (every(from), again), "{rows:?}");
    }
}

#[test]
fn a_silence_that_begins_a_recording_stays() {
    // What completes after it waited for it.
    for row in [AFTER, ["64", "0", "0", "1.60", "5004.00"]] {
        let capture = read(&before_load(&[(0, FIRST), (5, FIRST), (10, row)], 15));
        assert_eq!(capture.recordings[0].len(), 14, "{row:?}");
    }
    // Nothing completes at all, and of two devices one does not come back.
    let silent: Vec<_> = (0..12).map(|row| (5 * row, FIRST)).collect();
    assert_eq!(read(&silent).recordings[0].len(), 11);
    // The first sample twice, and then a silence.
    let doubled: Vec<_> = [(0, FIRST)].into_iter().chain(silent).collect();
    let capture = read(&doubled);
    assert_eq!((capture.recordings[0].len(), capture.report.files[0].unmeasured_rows), (11, 1));
}

#[test]
fn an_idle_beginning_is_measured() {
    let (times, again) = taken(&[(0, IDLE), (5, IDLE), (10, IDLE)], 15);
    assert_eq!((times.len(), again), (14, 0));
    let capture = read(&before_load(&[(0, IDLE), (5, IDLE)], 10));
    let recording = &capture.recordings[0];
    let device = recording.find(Kind::Device, "naa.1").expect("a device");
    assert_eq!(recording.value(device, Counter::Commands, 0), Some(0.0));
}
