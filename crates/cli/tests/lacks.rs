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

    /// The capture with its columns in the order of a key of their place and name; the time is first.
    fn rearranged<K: Ord>(&self, name: &str, key: impl Fn(usize, &str) -> K) -> String {
        let text = std::fs::read_to_string(self.path("whole")).unwrap();
        let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let mut places: Vec<usize> = (1..head.len()).filter(|at| !head[*at].is_empty()).collect();
        places.sort_by_key(|&place| key(place, head[place]));
        let line = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            let moved = places.iter().map(|&place| cells[place]);
            std::iter::once(cells[0]).chain(moved).collect::<Vec<_>>().join(",")
        };
        self.write(name, &(text.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"))
    }
}

/// The causes found with their places and how sure they are, and what is said to lack first.
fn findings(file: &str) -> (Vec<String>, String) {
    let said = common::json(&["diagnose", "--no-simulate", "--json", file]);
    let verdict = &said["verdicts"][0];
    let told = |f: &serde_json::Value| format!("{} {} {}", f["cause"], f["at"], f["confidence"]);
    let findings = verdict["findings"].as_array().unwrap().iter().map(told).collect();
    (findings, verdict["lacks"][0]["what"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn the_order_of_the_columns_changes_no_finding() {
    for scenario in ["outage-apd", "outage-pdl", "s4-other-device"] {
        let copies = Copies::of(&format!("../../../../scenarios/{scenario}.toml"));
        let (expected, lack) = findings(&copies.path("whole"));
        assert!(!expected.is_empty() && lack.is_empty(), "{scenario}: {lack}");
        let mut files = vec![
            copies.rearranged("sorted", |_, name| name.to_owned()),
            copies.rearranged("reversed", |place, _| std::cmp::Reverse(place)),
        ];
        for seed in 1..=4 {
            // A multiple of the golden ratio in 64 bits, which scatters places (Knuth 6.4).
            let key = |place: usize, _: &str| {
                (place as u64 + 1_000 * seed).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            };
            files.push(copies.rearranged(&format!("seed-{seed}"), key));
        }
        for file in files {
            let (found, lack) = findings(&file);
            assert_eq!(found, expected, "{file}");
            // Of the paths of a device on which hardly a command completes nothing can be told.
            assert!(
                lack.is_empty() || lack == "paths" && scenario == "outage-pdl",
                "{file}: {lack}"
            );
        }
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
    add("Physical Disk Adapter(vmhba1)", &[("Adapter Q Depth", 2_048.0)]);
    for device in 0..count {
        let queue = [("Device Q Depth", 64.0), ("Active Commands", 0.0), ("Queued Commands", 0.0)];
        add(&format!("Physical Disk SCSI Device(naa.{device:04})"), &queue);
        add(&format!("Physical Disk SCSI Device(naa.{device:04})"), &io(100.0));
        let faults = [("Aborts/sec", 0.0), ("Conflicts/sec", 0.0), ("Failed Commands/sec", 0.0)];
        add(&format!("Physical Disk SCSI Device(naa.{device:04})"), &faults);
        let data = [("MBytes Read/sec", 0.4), ("MBytes Written/sec", 0.0)];
        add(&format!("Physical Disk SCSI Device(naa.{device:04})"), &data);
        add(&format!("Physical Disk Path(vmhba1:C0:T0:L{device})"), &io(100.0));
        add(
            &format!("Physical Disk Per-Device-Per-World(naa.{device:04}-{})", 9000 + device),
            &io(100.0),
        );
    }
    for device in 0..count {
        let latency = [("Average MilliSec/Read", 0.5), ("Average MilliSec/Write", 0.0)];
        add(&format!("Virtual Disk(vm{device}:scsi0:0)"), &io(100.0)[..2]);
        add(&format!("Virtual Disk(vm{device}:scsi0:0)"), &latency);
        let leader = 9000 + device;
        add(&format!("Vcpu({device}:vm{device}:1:NetWorld-VM-{leader})"), &[("% Used", 1.0)]);
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
        ("no worlds", 1, Some(28), "There are no worlds of naa.0000"),
        ("no virtual disks", 1, Some(34), "No virtual disks in this recording"),
        ("disks of one VM", 2, Some(65), "No virtual disks of naa.0001-9001 in this"),
    ];
    for (name, devices, columns, lacks) in cases {
        let file = copies.write(name, &quiet(devices, columns));
        let said = diagnose(&[&file]);
        assert_eq!(said.err, "", "{name}");
        let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        if lacks.is_empty() {
            assert_eq!(said.code, 0, "{name}: {flat}");
            assert!(flat.starts_with("Nothing is wrong: no storage problem"), "{flat}");
            continue;
        }
        assert_eq!(said.code, 3, "{name}: {flat}");
        assert!(flat.starts_with("Not whole: ") && flat.contains(lacks), "{name}: {flat}");
        assert!(flat.contains("What was recorded cannot tell whether there is a storage problem"));
        assert!(!flat.contains("no storage problem"), "{name}: {flat}");
    }
}

#[test]
fn numbers_that_do_not_add_up_take_the_all_clear_back() {
    let copies = Copies(tempfile::tempdir().unwrap());
    let quiet = quiet(1, None);
    let place = |object: &str, counter: &str| {
        let mut names = quiet.lines().next().unwrap().split(',');
        names.position(|name| name.contains(object) && name.contains(counter)).unwrap()
    };
    let gavg = place("SCSI Device", "Guest MilliSec/Command");
    let world = place("Per-World", "Commands/sec");
    let mangle = |places: &[usize], value: &str| {
        let line = |line: &str| {
            let mut cells: Vec<&str> = line.split(',').collect();
            if !line.contains("PDH") {
                places.iter().for_each(|place| cells[*place] = value);
            }
            cells.join(",")
        };
        quiet.lines().map(line).collect::<Vec<_>>().join("\n")
    };
    let cases = [
        (mangle(&[gavg], "\"7.00\""), "GAVG is not DAVG + KAVG on naa.0000"),
        (mangle(&[world], "\"300.00\""), "The worlds on naa.0000 do more than the device"),
        (mangle(&[world, world + 1], "\"30.00\""), "do as little as 30"),
        (mangle(&[world], "\"30.00\""), "There are no credible rates of the worlds of naa.0000"),
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

#[test]
fn datastores_stand_in_every_output_by_their_names() {
    let copies = Copies::of("s1-competing-worlds");
    let device = "naa.60000970000197800380533030303445";
    let names = copies.write("names", &format!("device,datastore\n{device},gold 03\n"));
    let extents = copies.write(
        "extents",
        &format!(
            "Volume Name  VMFS UUID  Extent Number  Device Name{gap}  Partition\n\
             -----------  ---------  -------------  {dashes}  ---------\n\
             gold 03      5bc7459f               0  {device}          1\n",
            gap = " ".repeat(device.len() - "Device Name".len()),
            dashes = "-".repeat(device.len())
        ),
    );
    for option in [["--names", &names], ["--esxcli", &extents]] {
        let page = copies.path("page");
        let whole = copies.path("whole");
        let said = diagnose(&[&[&whole, "--html", &page], &option[..]].concat());
        assert_eq!((said.code, said.err.as_str()), (1, ""));
        let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.starts_with("big on datastore gold 03: Device queue full"), "{flat}");
        assert!(flat.contains("1. Device queue full, limited by DSNRO (gold 03 (naa.600009"));
        assert!(flat.contains(&format!("device set -d {device} -O")), "{flat}");
        let page = std::fs::read_to_string(&page).unwrap();
        assert!(page.contains("big on datastore gold 03"));
        let markdown = diagnose(&[&[&whole, "--markdown"], &option[..]].concat());
        assert!(markdown.out.contains("**big on datastore gold 03"), "{}", markdown.out);
        let json = diagnose(&[&[&whole, "--json"], &option[..]].concat());
        let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
        let verdict = &json["verdicts"][0];
        assert_eq!(verdict["names"][device], "gold 03");
        assert_eq!(verdict["findings"][0]["datastore"], "gold 03");
        assert_eq!(verdict["findings"][1]["datastore"], "gold 03");
    }
}

/// NFS has GAVG alone: a volume without trouble, and one that answers in 80 ms.
#[test]
fn nothing_about_nfs_leans_on_davg() {
    let copies = Copies(tempfile::tempdir().unwrap());
    let volume = r"\\esx\Physical Disk NFS Volume(nfs-01)";
    let head = ["Active Commands", "Commands/sec", "Average Guest MilliSec/Command"]
        .map(|counter| format!("\"{volume}\\{counter}\""))
        .join(",");
    for (gavg, code) in [("1.00", 0), ("80.00", 1)] {
        let row =
            |n: usize| format!("\"01/01/2024 10:00:{:02}\",\"4\",\"500.00\",\"{gavg}\"\n", 5 * n);
        let rows: String = (0..12).map(row).collect();
        let text = format!("\"(PDH-CSV 4.0) (UTC)(0)\",{head}\n{rows}");
        let said = diagnose(&[&copies.write("nfs", &text)]);
        assert_eq!((said.code, said.err.as_str()), (code, ""), "{}", said.out);
        assert!(said.out.contains("GAVG") && !said.out.contains("DAVG"), "{}", said.out);
    }
}
