//! Captures that are not whole, mangled as people mangle them: what is missing is said first, and
//! an all-clear is not given.

mod common;

use common::{Said, kavg};
use tempfile::TempDir;

/// A capture that `kavg run` wrote, and copies of it.
struct Copies(TempDir);

impl Copies {
    fn of(scenario: &str) -> Self {
        let copies = Self(tempfile::tempdir().unwrap());
        let said = kavg(&["run", scenario, "-q", "--csv", &copies.path("whole")]);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        copies
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(format!("{name}.csv")).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// The capture with those columns only of which the header passes; the time always does.
    fn columns(&self, name: &str, passes: impl Fn(usize, &str) -> bool) -> String {
        let text = std::fs::read_to_string(self.path("whole")).unwrap();
        let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let kept = |place: usize| place == 0 || head.get(place).is_some_and(|c| passes(place, c));
        let line = |line: &str| {
            let cells = line.split(',').enumerate().filter(|(place, _)| kept(*place));
            cells.map(|(_, cell)| cell).collect::<Vec<_>>().join(",")
        };
        self.write(name, &(text.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"))
    }
}

fn diagnose(arguments: &[&str]) -> Said {
    kavg(&[&["diagnose", "--no-simulate"], arguments].concat())
}

/// A quiet host: `count` devices of a hundred commands a second, each with a VM.
fn quiet(count: usize, columns: Option<usize>) -> String {
    let mut cells = vec![("(PDH-CSV 4.0) (UTC)(0)".to_owned(), String::new())];
    let mut add = |object: &str, counters: &[(&str, f64)]| {
        for (counter, value) in counters {
            cells.push((format!(r"\\esx\{object}\{counter}"), format!("{value:.2}")));
        }
    };
    let io = |iops: f64| {
        [
            ("Commands/sec", iops),
            ("Reads/sec", iops),
            ("Average Driver MilliSec/Command", 0.5),
            ("Average Kernel MilliSec/Command", 0.0),
            ("Average Guest MilliSec/Command", 0.5),
            ("Average Queue MilliSec/Command", 0.0),
        ]
    };
    add("Physical Disk Adapter(vmhba1)", &io(100.0 * count as f64));
    for device in 0..count {
        let queue = [("Device Q Depth", 64.0), ("Active Commands", 0.0), ("Queued Commands", 0.0)];
        add(&format!("Physical Disk SCSI Device(naa.{device:04})"), &queue);
        add(&format!("Physical Disk SCSI Device(naa.{device:04})"), &io(100.0));
        add(&format!("Physical Disk Path(vmhba1:C0:T0:L{device})"), &io(100.0));
        add(
            &format!("Physical Disk Per-Device-Per-World(naa.{device:04}-{})", 9000 + device),
            &io(100.0),
        );
    }
    cells.truncate(columns.unwrap_or(cells.len()));
    let quoted = |cells: Vec<String>| format!("\"{}\"\n", cells.join("\",\""));
    let row = |second: usize| {
        let time = format!("01/01/2024 10:00:{second:02}");
        let values = cells.iter().skip(1).map(|(_, value)| value.clone());
        quoted(std::iter::once(time).chain(values).collect())
    };
    let head = quoted(cells.iter().map(|(name, _)| name.clone()).collect());
    (0..12).map(|sample| row(5 * sample)).fold(head, |text, row| text + &row)
}

#[test]
fn a_whole_capture_is_given_the_all_clear_and_a_part_of_it_is_not() {
    let copies = Copies(tempfile::tempdir().unwrap());
    let cases = [
        ("whole", 1_000, None, ""),
        ("spreadsheet", 1_000, Some(16_384), "ends at column 16,384, the last that a spreadsheet"),
        ("cut", 20, Some(200), "The adapters do more than the devices in this file"),
        ("adapters", 20, Some(7), "There are no devices in this file."),
        ("no worlds", 1, Some(22), "There are no worlds of naa.0000"),
    ];
    for (name, devices, columns, lacks) in cases {
        let file = copies.write(name, &quiet(devices, columns));
        let said = diagnose(&[&file]);
        assert_eq!(said.err, "", "{name}");
        let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        if lacks.is_empty() {
            assert_eq!(said.code, 0, "{name}: {flat}");
            assert!(flat.starts_with("Nothing is wrong: there is no storage problem"), "{flat}");
            continue;
        }
        assert_eq!(said.code, 3, "{name}: {flat}");
        assert!(flat.starts_with("Not whole: ") && flat.contains(lacks), "{name}: {flat}");
        assert!(flat.contains("This capture cannot tell whether there is a storage problem"));
        assert!(!flat.contains("no storage problem"), "{name}: {flat}");
    }
}

#[test]
fn numbers_that_do_not_add_up_take_the_all_clear_back() {
    let copies = Copies(tempfile::tempdir().unwrap());
    let quiet = quiet(1, None);
    let columns = quiet.lines().next().unwrap().split(',').count();
    let gavg =
        quiet.lines().next().unwrap().split(',').position(|cell| {
            cell.contains("SCSI Device") && cell.contains("Guest MilliSec/Command")
        });
    let mangle = |place: usize, value: &str| {
        let line = |line: &str| {
            let mut cells: Vec<&str> = line.split(',').collect();
            if !line.contains("PDH") {
                cells[place] = value;
            }
            cells.join(",")
        };
        quiet.lines().map(line).collect::<Vec<_>>().join("\n")
    };
    let world = columns - 6;
    let cases = [
        (mangle(gavg.unwrap(), "\"7.00\""), "GAVG is not DAVG + KAVG on naa.0000"),
        (mangle(world, "\"300.00\""), "The worlds on naa.0000 do more than the device"),
        (mangle(world, "\"30.00\""), "do as little as 30"),
    ];
    for (text, expected) in cases {
        let said = diagnose(&[&copies.write("mangled", &text)]);
        assert_eq!(said.code, 3, "{}", said.out);
        assert!(said.out.starts_with("Not whole: ") && said.out.contains(expected), "{}", said.out);
    }
}

#[test]
fn a_capture_cut_to_one_vm_does_not_turn_dsnro_into_the_drivers_depth() {
    let copies = Copies::of("s1-competing-worlds");
    for vm in ["big", "small"] {
        let part = copies.path(vm);
        let said = kavg(&["capture", "cut", &copies.path("whole"), "--vm", vm, "-o", &part]);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        let said = diagnose(&[&part]);
        assert_eq!((said.code, said.err.as_str()), (1, ""), "{vm}");
        assert!(said.out.starts_with("Not whole: The worlds in this file do"), "{}", said.out);
        assert!(said.out.contains("\n1. Device queue full, limited by DSNRO ("), "{}", said.out);
        assert!(!said.out.contains("module parameters set"), "{}", said.out);
    }
}

#[test]
fn a_counter_without_which_nothing_can_be_judged_is_named() {
    let copies = Copies::of("s1-dsnro-128");
    for counter in ["Device Q Depth", "Average Driver MilliSec/Command", "Commands/sec"] {
        let part = copies
            .columns("part", |_, cell| !(cell.contains("SCSI Device") && cell.contains(counter)));
        let said = diagnose(&[&part]);
        let expected = format!("Not whole: There is no \"{counter}\" of any device in this file.");
        let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&expected), "{counter}: {flat}");
        assert_ne!(said.code, 0, "{counter}: {flat}");
    }
}
