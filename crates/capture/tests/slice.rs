//! Parts of a recording: what stays and what goes.

mod common;

use capture::{CopyReport, Cut, Input, Limits, Slice, cut};
use common::{START_MS, differences, read_bytes, small_file, small_host, written};
use counters::{Kind, Recording};

fn with_columns(recording: &Recording) -> Vec<&str> {
    let mut ids: Vec<_> = recording.columns().map(|column| column.0).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(|id| recording.entity(id).name.as_str()).collect()
}

#[test]
fn a_vm_keeps_all_that_its_ios_pass() {
    let host = small_host(3);
    let slice = Slice { vms: vec!["web (old)".into()], ..Slice::default() };
    let part = slice.apply(&host).expect("the VM is there");
    let expected = [
        "vmhba1",
        "naa.601",
        "vmhba1:C0:T0:L1",
        "naa.602",
        "vmhba1:C0:T0:L2",
        "web (old)",
        "web (old):scsi0:0",
        "naa.601-100",
        "web (old):scsi0:1",
        "naa.602-100",
    ];
    assert_eq!(with_columns(&part), expected);
}

#[test]
fn a_device_keeps_all_that_pass_it() {
    let host = small_host(3);
    let slice = Slice { devices: vec!["naa.603".into()], ..Slice::default() };
    let part = slice.apply(&host).expect("the device is there");
    let expected =
        ["vmhba1", "naa.603", "vmhba1:C0:T0:L3", "sql, main", "sql, main:scsi0:1", "naa.603-200"];
    assert_eq!(with_columns(&part), expected);
}

#[test]
fn time_and_kinds_cut_samples_and_columns() {
    let host = small_host(4);
    let slice = Slice {
        from_ms: Some(START_MS + 5_000),
        to_ms: Some(START_MS + 10_000),
        kinds: vec![Kind::World],
        ..Slice::default()
    };
    let part = slice.apply(&host).expect("nothing is named");
    assert_eq!(part.times_ms, [START_MS + 5_000, START_MS + 10_000]);
    assert!(
        part.columns()
            .all(|(id, _, values)| { part.entity(id).kind == Kind::World && values.len() == 2 })
    );
    let read = read_bytes(written(&part)).expect("a part is a capture");
    assert_eq!(read.recordings[0].of_kind(Kind::World).count(), 5);
    assert_eq!(read.report.hosts[0].unresolved_worlds, 0);
}

#[test]
fn everything_is_kept_by_default_and_strangers_are_named() {
    let host = small_host(2);
    let whole = Slice::default().apply(&host).expect("nothing is named");
    assert_eq!(differences(&whole, &host), [""; 0]);
    let slice = Slice { vms: vec!["mail".into()], ..Slice::default() };
    let error = slice.apply(&host).expect_err("no such VM");
    assert_eq!(error, "no VM 'mail' in the capture; it has web (old), sql, main");
}

fn cut_text(text: &str, part: &Cut) -> Result<(CopyReport, String), String> {
    let input = Input::from_bytes("esx01.csv", text.as_bytes().to_vec());
    let mut out = Vec::new();
    let report = cut(input, part, &Limits::default(), &mut out, &mut |_, _| ())
        .map_err(|error| error.to_string())?;
    Ok((report, String::from_utf8(out).expect("ASCII")))
}

#[test]
fn groups_and_rows_are_copied_cell_by_cell() {
    let text = "\
\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\h\\Memory\\Free MBytes\",\"\\\\h\\Vcpu(1:a, b:2:c)\\% Used\",
\"03/02/2026 10:00:00\",\"4165\",\"0.50\",
\"03/02/2026 10:00:05\",\"4166\",\"0.60\",
\"03/02/2026 10:00:10\",\"41
";
    let from_ms = Some(START_MS + 5_000);
    let part = Cut { groups: vec!["vcpu".into()], from_ms, ..Cut::default() };
    let expected = "\
\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\h\\Vcpu(1:a, b:2:c)\\% Used\",
\"03/02/2026 10:00:05\",\"0.60\",
";
    let file = "esx01.csv".into();
    let report = CopyReport { file, columns: 1, rows: 1, damaged_rows: 1, ..CopyReport::default() };
    assert_eq!(cut_text(text, &part), Ok((report, expected.into())));
    let part = Cut { groups: vec!["Disk".into()], ..Cut::default() };
    let error = cut_text(text, &part).expect_err("no such group");
    assert_eq!(error, "esx01.csv: has no group 'Disk'; it has Memory, Vcpu");
}

#[test]
fn a_cut_of_everything_is_the_file() {
    let (report, copy) = cut_text(&small_file(), &Cut::default()).expect("a capture");
    assert_eq!(copy, small_file());
    assert_eq!(report.rows, 4);
}
