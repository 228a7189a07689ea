//! Captures whose header names another clock than UTC: instants are UTC, and copies keep the clock or say so.

mod common;

use std::path::PathBuf;

use capture::{
    Cut, Input, Limits, Sequence, Substitutes, Zone, anonymize, cut, format_stamp, parse_stamp,
};
use common::{START_MS, read_bytes, small_file};

const HOUR_MS: i64 = 3_600_000;
const EAST: &str = "(Eastern Daylight Time)(240)";

/// The small file with the clock of a zone, `to_utc_ms` from UTC.
fn small_file_in(zone: &str, to_utc_ms: i64) -> String {
    let moved = |line: &str| {
        let (stamp, rest) = line.split_once(',').expect("cells");
        let stamp = match parse_stamp(stamp.as_bytes()) {
            Some((time_ms, _)) => format!("\"{}\"", format_stamp(time_ms - to_utc_ms)),
            None => stamp.replace("(UTC)(0)", zone),
        };
        format!("{stamp},{rest}\n")
    };
    small_file().lines().map(moved).collect()
}

#[test]
fn times_of_another_clock_are_told_in_utc() {
    let utc = read_bytes(small_file().into_bytes()).expect("sound");
    assert_eq!(utc.report.files[0].zone, Zone::Utc);
    for (zone, to_utc_ms) in
        [(EAST, 4 * HOUR_MS), ("(CET)(-60)", -HOUR_MS), ("()(-330)", -19_800_000)]
    {
        let capture = read_bytes(small_file_in(zone, to_utc_ms).into_bytes()).expect("sound");
        assert_eq!(capture.recordings[0].times_ms, utc.recordings[0].times_ms, "{zone}");
        assert!(matches!(capture.report.files[0].zone, Zone::Other { .. }), "{zone}");
    }
    let unknown = read_bytes(small_file_in("", 0).into_bytes()).expect("sound");
    assert_eq!(unknown.report.files[0].zone, Zone::Unknown);
    assert_eq!(unknown.recordings[0].times_ms, utc.recordings[0].times_ms);
}

#[test]
fn a_window_of_a_copy_is_in_utc_and_its_rows_stay_as_they_are() {
    let text = small_file_in(EAST, 4 * HOUR_MS);
    let part = Cut { from_ms: Some(START_MS), to_ms: Some(START_MS), ..Cut::default() };
    let mut out = Vec::new();
    let input = Input::from_bytes("esx01.csv", text.clone().into_bytes());
    cut(input, &part, &Limits::default(), &mut out, &mut |_, _| ()).expect("a capture");
    let stamp = format!("\"{}\"", format_stamp(START_MS - 4 * HOUR_MS));
    let expected: Vec<&str> =
        text.lines().filter(|line| line.starts_with(&stamp) || line.contains("PDH-CSV")).collect();
    assert_eq!(String::from_utf8(out).expect("text").lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_copy_without_names_names_no_zone() {
    let copied = |text: String| {
        let mut out = Vec::new();
        let input = Input::from_bytes("esx01.csv", text.into_bytes());
        let mut names = Substitutes::default();
        anonymize(input, &mut names, &Limits::default(), &mut out, &mut |_, _| ())
            .expect("a capture");
        String::from_utf8(out).expect("text")
    };
    assert_eq!(copied(small_file_in(EAST, 4 * HOUR_MS)), copied(small_file()));
}

#[test]
fn files_of_two_clocks_become_one_of_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let later: String = small_file_in("(Eastern Standard Time)(300)", 5 * HOUR_MS - 60_000);
    let files = [("a.csv", small_file_in(EAST, 4 * HOUR_MS)), ("b.csv", later)];
    let paths = files.map(|(name, text)| {
        let path: PathBuf = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    });
    let sequences = Sequence::of(&paths, &Limits::default(), &mut |_, _| ()).expect("captures");
    let mut out = Vec::new();
    sequences[0].write(&Limits::default(), &mut out, &mut |_, _| ()).expect("written");
    let capture = read_bytes(out).expect("sound");
    let seconds = |from: i64| (0..3).map(move |row| START_MS + from + 5_000 * row);
    let expected: Vec<i64> = seconds(0).chain(seconds(60_000)).collect();
    assert_eq!(capture.recordings[0].times_ms, expected);
}
