//! Every oddity seen in real files, made on purpose in a file that is sound: each one must give
//! the same recording, or a damage that is counted, or a clear refusal.

mod common;

use std::io::Write;

use capture::{Capture, Cut, Damage, Input, Limits, ReadOptions, Stamps, cut, read_inputs};
use common::{START_MS, differences, read_bytes, small_file, small_host, written};
use counters::{Counter, Entity, Kind, Recording};

fn lines(text: &str) -> Vec<String> {
    text.lines().map(Into::into).collect()
}

fn same_recording(what: &str, bytes: Vec<u8>) -> Capture {
    let sound = read_bytes(small_file().into_bytes()).expect("sound");
    let odd = read_bytes(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(odd.recordings.len(), 1, "{what}");
    assert_eq!(differences(&odd.recordings[0], &sound.recordings[0]), [""; 0], "{what}");
    assert_eq!(odd.report.files[0].damaged_rows, 0, "{what}");
    odd
}

#[test]
fn the_writers_own_file_is_read_whole() {
    let capture = read_bytes(small_file().into_bytes()).expect("sound");
    assert_eq!(differences(&capture.recordings[0], &small_host(3)), [""; 0]);
    let (file, host) = (&capture.report.files[0], &capture.report.hosts[0]);
    assert!(file.first_row_left_out && file.rows == 4 && file.unknown_columns.is_empty());
    assert!(host.unresolved_worlds == 0 && host.disk_links.len() == 4);
    assert!(host.disk_links.iter().all(|link| link.confidence > 0.9), "{:?}", host.disk_links);
    assert!(host.checks.iter().all(|check| check.held == check.tested), "{:?}", host.checks);
}

#[test]
fn vms_of_one_name_are_told_apart_by_their_groups() {
    let alike = small_file().replace("sql, main", "web (old)");
    let capture = read_bytes(alike.into_bytes()).expect("sound");
    let (recording, host) = (&capture.recordings[0], &capture.report.hosts[0]);
    let [(name, vms)] = &host.namesakes.iter().collect::<Vec<_>>()[..] else { panic!("{host:?}") };
    assert_eq!((name.as_str(), vms.len()), ("web (old)", 2));
    let all: Vec<&str> = recording.of_kind(Kind::Vm).map(|(_, vm)| vm.name.as_str()).collect();
    assert_eq!(&all, *vms);
    // Each has the worlds of its group; of virtual disks nobody knows whose they are.
    let leaders = recording.of_kind(Kind::Vm).map(|(vm, entity)| {
        assert!(entity.name.starts_with("web (old) ("), "{entity:?}");
        let worlds = recording.of_kind(Kind::World).filter(|(_, world)| world.vm == Some(vm));
        worlds.map(|(_, world)| world.name.rsplit_once('-').expect("an id").1).collect::<Vec<_>>()
    });
    assert_eq!(leaders.collect::<Vec<_>>(), [["100"; 2], ["200"; 2]]);
    let of_disks = [Kind::Vm, Kind::VirtualDisk];
    let mut columns = recording.columns().map(|column| recording.entity(column.0).kind);
    assert!(columns.all(|kind| !of_disks.contains(&kind)));
    // Joined with a capture of another time they stay apart.
    let alike = small_file().replace("sql, main", "web (old)");
    let joined = capture::merge(
        [alike.clone(), alike]
            .map(|text| read_bytes(text.into_bytes()).expect("sound").recordings.remove(0))
            .into(),
    );
    assert_eq!(joined[0].of_kind(Kind::Vm).filter(|(_, vm)| vm.called.is_some()).count(), 2);
}

/// The small file with its columns in another order; the time stays first.
fn rearranged<K: Ord>(key: impl Fn(usize, &str) -> K) -> Vec<u8> {
    let text = small_file();
    // A name in it has a comma, none has one between quotes.
    let cells = |line: &str| line.split("\",").map(str::to_owned).collect::<Vec<_>>();
    let head = cells(text.lines().next().expect("a header"));
    let mut places: Vec<usize> = (1..head.len()).filter(|at| !head[*at].is_empty()).collect();
    places.sort_by_key(|&place| key(place, &head[place]));
    let line = |line: &str| {
        let cells = cells(line);
        let moved = std::iter::once(0).chain(places.iter().copied());
        moved.map(|place| format!("{}\"", cells[place])).collect::<Vec<_>>().join(",") + "\n"
    };
    text.lines().map(line).collect::<String>().into_bytes()
}

#[test]
fn paths_are_tied_to_their_devices_in_any_order_of_the_columns() {
    let ties = |bytes: Vec<u8>| -> Vec<(String, String)> {
        let recording = read_bytes(bytes).expect("readable").recordings.remove(0);
        let paths = recording.of_kind(Kind::Path);
        let device = |entity: &Entity| recording.entity(entity.device.expect("tied")).name.clone();
        let mut ties: Vec<_> = paths.map(|(_, path)| (path.name.clone(), device(path))).collect();
        ties.sort();
        ties
    };
    let expected: Vec<_> =
        (1..=3).map(|lun| (format!("vmhba1:C0:T0:L{lun}"), format!("naa.60{lun}"))).collect();
    assert_eq!(ties(small_file().into_bytes()), expected);
    assert_eq!(ties(rearranged(|_, name| name.to_owned())), expected);
    assert_eq!(ties(rearranged(|place, _| std::cmp::Reverse(place))), expected);
    // The blocks of paths exchanged between whole blocks of devices: only the numbers tell.
    let text = small_file();
    let head: Vec<&str> = text.lines().next().expect("a header").split("\",").collect();
    let begin = |lun: usize| {
        let path = format!("Physical Disk Path(vmhba1:C0:T0:L{lun})");
        head.iter().position(|cell| cell.contains(&path)).expect("it is there")
    };
    let exchanged = rearranged(|place, name| match name.contains("Physical Disk Path(") {
        true if name.contains(":L1)") => (begin(2), place),
        true if name.contains(":L2)") => (begin(1), place),
        _ => (place, place),
    });
    assert_eq!(ties(exchanged), expected);
}

#[test]
fn odd_forms_give_the_same_recording() {
    let text = small_file();
    let no_end_commas: String =
        lines(&text).iter().map(|l| format!("{}\n", &l[..l.len() - 1])).collect();
    let glued = |line: &String| match line.starts_with("\"(") {
        true => format!("{line}   -\"\\\\esx01\\PCPU Power State(PCPU 1)\\%C-State C0\",   -\n"),
        false => format!("{line}    73.1\"8.93\",    73.9\n"),
    };
    let table: Vec<(&str, Vec<u8>)> = vec![
        ("no comma at the end", no_end_commas.into_bytes()),
        ("two values in one cell", lines(&text).iter().map(glued).collect::<String>().into()),
        ("CRLF", text.replace('\n', "\r\n").into()),
        ("CR", text.replace('\n', "\r").into()),
        ("empty lines", text.replace('\n', "\n\n").into()),
        ("no end of the last line", text.trim_end().into()),
        ("text before the header", format!("no termcap entry for `xterm'\nx{text}").into()),
        ("UTF-8 mark", format!("\u{feff}{text}").into()),
        ("other hosts' groups", text.replace("\"Vcpu(", "\"Quantum Cpu(").into()),
    ];
    for (what, bytes) in table {
        same_recording(what, bytes);
    }
}

#[test]
fn text_before_the_header_is_reported() {
    let bytes = format!("no termcap entry for `xterm' terminal{}", small_file()).into_bytes();
    let capture = same_recording("text", bytes);
    let text = capture.report.files[0].text_before_header.as_deref();
    assert_eq!(text, Some("no termcap entry for `xterm' terminal"));
}

#[test]
fn a_file_that_ends_inside_of_its_header_is_refused() {
    let text = small_file();
    let header = lines(&text).remove(0);
    let cell = header.rfind(",\"").unwrap();
    for end in [cell + 2, cell + 3, header.len() - 2] {
        let error = read_bytes(header.as_bytes()[..end].to_vec()).unwrap_err().to_string();
        assert!(error.contains("1: the file ends inside of the header"), "{end}: {error}");
    }
    assert!(read_bytes(header.as_bytes()[..cell].to_vec()).is_ok(), "a header alone");
}

/// Quotes gone but around names with commas, decimals without their zeros, no seconds.
fn excel(text: &str, stamp: impl Fn(&str) -> String) -> String {
    let rows = lines(text).into_iter().enumerate().map(|(index, line)| {
        let cells = line.trim_end_matches(',').trim_matches('"').split("\",\"").enumerate();
        let cells: Vec<String> = cells
            .map(|(place, cell)| match (index, place) {
                (0, _) if cell.contains(',') => format!("\"{cell}\""),
                (0, _) => cell.to_owned(),
                (_, 0) => stamp(cell),
                _ => cell.strip_suffix(".00").unwrap_or(cell).to_owned(),
            })
            .collect();
        cells.join(",") + "\r\n"
    });
    rows.collect()
}

#[test]
fn a_file_saved_by_excel_is_spread_over_its_minutes() {
    let minutes = excel(&small_file(), |cell| cell.replace("03/02", "3/2")[..14].to_owned());
    let capture = read_bytes(minutes.into_bytes()).expect("readable");
    let recording = &capture.recordings[0];
    assert_eq!(capture.report.files[0].stamps, Stamps::Minutes);
    // The row of zeros has the last stamp of 9:59; three rows at 10:00 share its minute.
    let expected = [START_MS, START_MS + 20_000, START_MS + 40_000];
    assert_eq!(recording.times_ms, expected);
    let times = excel(&small_file(), |cell| cell[11..].to_owned());
    let capture = read_bytes(times.into_bytes()).expect("readable");
    assert_eq!(capture.report.files[0].stamps, Stamps::TimeOnly);
    assert_eq!(capture.recordings[0].times_ms[1] - capture.recordings[0].times_ms[0], 5_000);
    let sound = small_host(3);
    let load = |recording: &counters::Recording| {
        let device = recording.find(Kind::Device, "naa.601").expect("there");
        recording.series(device, Counter::Commands).map(<[f64]>::to_vec)
    };
    assert_eq!(load(&capture.recordings[0]), load(&sound));
}

#[test]
fn damaged_rows_are_counted_and_named() {
    let sound = lines(&small_file());
    let cells = sound[1].matches(',').count();
    let cut = |line: &str| line[..line.len() / 2].to_owned();
    let table = [
        (
            "cut last line",
            vec![sound[0].clone(), sound[1].clone(), sound[2].clone(), cut(&sound[3])],
            (4, Damage::Cut),
        ),
        (
            "a message between rows",
            vec![sound[0].clone(), "disk full".into(), sound[1].clone(), sound[2].clone() + "\n"],
            (2, Damage::Cells { found: 1, expected: cells }),
        ),
        (
            "a row without time",
            vec![
                sound[0].clone(),
                sound[1].clone(),
                sound[2].replace("03/02/2026", "yesterday"),
                sound[3].clone() + "\n",
            ],
            (3, Damage::Stamp("\"yesterday 10:00:00\"".into())),
        ),
    ];
    for (what, file, damage) in table {
        let capture = read_bytes(file.join("\n").into_bytes()).expect(what);
        let report = &capture.report.files[0];
        assert_eq!(report.damaged, [damage], "{what}");
        assert_eq!((report.damaged_rows, capture.recordings[0].len()), (1, 1), "{what}");
    }
}

#[test]
fn a_cell_that_is_no_number_is_unknown_and_counted() {
    let mut file = lines(&small_file());
    file[3] = file[3].replace("\"4096\"", "\"many\"");
    let capture = read_bytes((file.join("\n") + "\n").into_bytes()).expect("readable");
    assert_eq!(capture.report.files[0].bad_cells, 1);
    let recording = &capture.recordings[0];
    let adapter = recording.find(Kind::Adapter, "vmhba1").expect("there");
    assert_eq!(recording.value(adapter, Counter::AdapterQDepth, 1), None);
    assert_eq!(recording.value(adapter, Counter::AdapterQDepth, 2), Some(4096.0));
}

#[test]
fn columns_that_come_twice_are_missing_or_are_new() {
    let file = lines(&small_file());
    let device = "\"\\\\esx01\\Physical Disk SCSI Device(naa.601)";
    let added = [
        (format!("{device}\\Commands/sec\","), 1, 0),
        (format!("{device}\\Entanglement/sec\","), 0, 1),
        ("\"\\\\esx01\\Quantum Disk(naa.601)\\Commands/sec\",".into(), 0, 1),
        ("nonsense,".into(), 0, 0),
    ];
    for (cell, duplicates, unknown) in added {
        let header = file[0].clone() + &cell;
        let rows = file[1..].iter().map(|row| row.clone() + "\"7.00\",\n");
        let text = header + "\n" + &rows.collect::<String>();
        let report = same_recording(&cell, text.into_bytes()).report.files.remove(0);
        assert_eq!(report.duplicate_columns, duplicates, "{cell}");
        assert_eq!(report.unknown_columns.values().sum::<usize>(), unknown, "{cell}");
    }
    let without = excel(&small_file(), str::to_owned).replace("Queued Commands", "Sleeping");
    let capture = read_bytes(without.into_bytes()).expect("readable");
    let recording = &capture.recordings[0];
    assert!(recording.columns().all(|column| column.1 != Counter::QueuedCommands));
}

#[test]
fn utf_16_as_powershell_writes_it_is_read() {
    let text = format!("\u{feff}{}", small_file().replace("web (old)", "Z\u{fc}rich \u{1f5fb}"));
    let bytes = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<_>>();
    for bytes in [bytes(u16::to_le_bytes), bytes(u16::to_be_bytes)] {
        let capture = read_bytes(bytes.clone()).expect("readable");
        let host = &capture.recordings[0];
        assert!(host.find(Kind::Vm, "Z\u{fc}rich \u{1f5fb}").is_some() && host.len() == 3);
        let odd = [bytes, vec![b'"']].concat();
        assert_eq!(read_bytes(odd).expect("readable").report.files[0].damaged_rows, 0);
    }
}

#[test]
fn captures_one_behind_the_other_are_read_like_two_files() {
    let with_vm = |host: &mut Recording| {
        let vm = host.add_entity(Entity::new(Kind::Vm, "new".into()));
        host.set_column(vm, Counter::Reads, vec![7.0; 3]);
    };
    for change in [|_: &mut Recording| (), with_vm] {
        let mut second = small_host(3);
        second.times_ms.iter_mut().for_each(|time| *time += 60_000);
        change(&mut second);
        let (a, b) = (small_file().into_bytes(), written(&second));
        let joined = [a.clone(), b"a message of the shell ".to_vec(), b.clone()].concat();
        let joined = read_bytes(joined).expect("readable");
        let apart = [("a", a), ("b", b)].map(|(name, bytes)| Input::from_bytes(name, bytes));
        let apart = read_inputs(apart.into(), &ReadOptions::default(), &mut |_, _| ());
        let apart = apart.expect("readable");
        assert_eq!(differences(&joined.recordings[0], &apart.recordings[0]), [""; 0]);
        let file = &joined.report.files[0];
        assert_eq!((file.further_headers, file.damaged_rows, file.rows), (1, 0, 8));
    }
    let many = small_file().lines().next().unwrap_or_default().to_owned() + "\n";
    let error = read_bytes(many.repeat(1_002).into()).expect_err("too many").to_string();
    assert_eq!(error, "test.csv:1001: holds more than 1000 headers; refused");
}

#[test]
fn times_that_run_backwards_are_put_in_order_and_counted() {
    let mut lines = lines(&small_file());
    lines.swap(2, 4);
    let capture = read_bytes((lines.join("\n") + "\n").into()).expect("readable");
    let times = [START_MS, START_MS + 5_000, START_MS + 10_000];
    assert_eq!(capture.recordings[0].times_ms, times);
    assert_eq!(capture.report.files[0].backward_steps, 2);
    lines.push(lines[2].clone());
    let capture = read_bytes((lines.join("\n") + "\n").into()).expect("readable");
    assert_eq!(capture.recordings[0].len(), 3);
    assert_eq!(capture.report.hosts[0].repeated_samples, 1);
}

#[test]
fn a_row_that_is_there_twice_counts_once() {
    let twice =
        lines(&small_file()).iter().enumerate().fold(String::new(), |text, (place, line)| {
            text + &format!("{line}\n").repeat(if place == 3 { 3 } else { 1 })
        });
    let capture = same_recording("twice", twice.into());
    assert_eq!(capture.report.files[0].repeated_rows, 2);
    // A steady simulation, four samples a second.
    let mut steady = small_host(1);
    let columns = steady.columns().map(|(id, counter, values)| (id, counter, vec![values[0]; 12]));
    for (id, counter, values) in columns.collect::<Vec<_>>() {
        steady.set_column(id, counter, values);
    }
    steady.times_ms = (0..12).map(|sample| START_MS + 250 * sample).collect();
    let capture = read_bytes(written(&steady)).expect("readable");
    assert_eq!((capture.report.files[0].repeated_rows, capture.recordings[0].len()), (0, 12));
}

#[test]
fn rows_around_a_clock_that_was_set_back_stay_in_order() {
    let host = small_host(60);
    let mut late = host.clone();
    late.times_ms[30..].iter_mut().for_each(|time| *time -= 60_000);
    let capture = read_bytes(written(&late)).expect("readable");
    let read = &capture.recordings[0];
    assert!(read.times_ms.windows(2).all(|pair| pair[1] - pair[0] == 5_000));
    assert_eq!(read.times_ms.last(), late.times_ms.last());
    let mut unmoved = read.clone();
    unmoved.times_ms.clone_from(&host.times_ms);
    assert_eq!(differences(&unmoved, &host), [""; 0]);
    let file = &capture.report.files[0];
    assert_eq!((file.clock_set_back.as_slice(), file.backward_steps), ([33].as_slice(), 0));
}

#[test]
fn a_row_far_from_all_others_and_a_clock_set_ahead_are_named_by_their_lines() {
    let host = small_host(60);
    let read = |change: fn(&mut Vec<i64>)| {
        let mut changed = host.clone();
        change(&mut changed.times_ms);
        let mut text = String::from_utf8(written(&changed)).expect("text");
        // Damaged and empty lines are lines.
        let row = text.find('\n').unwrap_or_default() + 1;
        text.insert_str(row, "\ndamaged\n");
        let mut capture = read_bytes(text.into()).expect("readable");
        (capture.recordings.remove(0).times_ms, capture.report.files.remove(0))
    };
    let (times, file) = read(|times| times[30] = 0);
    assert_eq!((times, file.stray_rows.as_slice()), (host.times_ms.clone(), [35].as_slice()));
    let (times, file) = read(|times| times[30..].iter_mut().for_each(|time| *time += 9_000_000));
    assert_eq!(times[30] - times[29], 9_005_000);
    assert_eq!((file.clock_set_ahead.as_slice(), file.backward_steps), ([35].as_slice(), 0));
}

#[test]
fn two_rows_of_one_time_are_one() {
    let mut host = small_host(6);
    host.times_ms[3] = host.times_ms[2];
    let capture = read_bytes(written(&host)).expect("readable");
    assert_eq!((capture.report.files[0].repeated_rows, capture.recordings[0].len()), (1, 5));
}

#[test]
fn cells_that_hold_no_number_are_counted() {
    let odd = [
        "1e999", "-1e308", "1,234.5", "1,5", "NaN", "inf", "-inf", "0x1f", "1;5", "1 000.5", "--1",
        "12a", "1.2.3",
    ];
    for cell in odd {
        let text = small_file().replacen("\"1.50\"", &format!("\"{cell}\""), 1);
        let capture = read_bytes(text.into()).expect("readable");
        let file = &capture.report.files[0];
        assert_eq!((file.bad_cells, file.damaged_rows, file.rows), (1, 0, 4), "{cell}");
    }
    // What no division survives.
    let tiny = same_recording("tiny", small_file().replacen("\"0.00\"", "\"5e-324\"", 1).into());
    assert_eq!(tiny.report.files[0].bad_cells, 0);
}

#[test]
fn a_file_with_objects_and_no_counter_that_is_known_is_read() {
    let text =
        "(PDH-CSV 4.0),\\\\h\\Physical Disk SCSI Device(naa.1)\\New\n03/02/2026 10:00:00,1\n";
    let capture = read_bytes(text.into()).expect("readable");
    let host = &capture.recordings[0];
    assert_eq!((host.entities().len(), host.columns().count(), host.len()), (1, 0, 1));
    assert_eq!(capture.report.files[0].unknown_columns.len(), 1);
}

/// A header of that many columns of one device each, twice if wanted, and a row.
fn wide(columns: usize, name: impl Fn(usize) -> String) -> Vec<u8> {
    let mut text = String::from("\"(PDH-CSV 4.0) (UTC)(0)\"");
    for column in 0..columns {
        text += &format!(",\"\\\\h\\Physical Disk SCSI Device({})\\Reads/sec\"", name(column));
    }
    for second in 0..2 {
        text += &format!("\n\"03/02/2026 10:00:0{second}\"{}", ",\"1.00\"".repeat(columns));
    }
    text.into_bytes()
}

#[test]
fn wide_files_and_long_lines_are_read() {
    let all = |capture: Result<Capture, capture::Error>| {
        let capture = capture.expect("readable");
        (capture.recordings[0].columns().count(), capture.report.files[0].duplicate_columns)
    };
    let of_its_own = |column: usize| format!("naa.{column}");
    assert_eq!(all(read_bytes(wide(100_000, of_its_own))), (100_000, 0));
    assert_eq!(all(read_bytes(wide(200_000, |_| "naa.1".into()))), (1, 199_999));
    let header = wide(60_000, of_its_own).split(|byte| *byte == b'\n').next().map(<[u8]>::to_vec);
    let capture = read_bytes(header.unwrap_or_default()).expect("a header alone");
    assert_eq!((capture.recordings[0].len(), capture.report.files[0].columns), (0, 60_000));
}

#[test]
fn a_file_cut_shorter_while_it_is_read_ends_early() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("esx01.csv");
    // Two blocks of the reader, of which the second is blank.
    std::fs::write(&path, small_file() + &"\n".repeat(40 << 20)).expect("a temporary file");
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("the file");
    let mut cut = |_, _| file.set_len(100).expect("it is cut");
    let capture = capture::read(&[path], &ReadOptions::default(), &mut cut).expect("its begin");
    let why = capture.report.files[0].ended_early.as_deref();
    assert_eq!(
        (why, capture.recordings[0].len()),
        (Some("the file was cut shorter while it was read"), 3)
    );
}

#[test]
fn names_in_latin_1_are_read() {
    let text = small_file().replace("web (old)", "Z\u{fc}rich (alt)");
    let bytes: Vec<u8> = text.chars().map(|c| c as u8).collect();
    let capture = read_bytes(bytes).expect("readable");
    assert!(capture.recordings[0].find(Kind::Vm, "Z\u{fc}rich (alt)").is_some());
}

#[test]
fn several_hosts_and_several_files_become_as_many_recordings_as_hosts() {
    let mut second = small_host(6);
    second.times_ms.iter_mut().for_each(|time| *time += 60_000);
    let mut third = small_host(3);
    third.host = "esx02".into();
    let inputs = |order: [usize; 3]| {
        let all = [written(&small_host(3)), written(&second), written(&third)];
        order.map(|file| Input::from_bytes(&format!("{file}.csv"), all[file].clone())).into()
    };
    let read = |inputs| read_inputs(inputs, &ReadOptions::default(), &mut |_, _| ());
    let capture = read(inputs([1, 2, 0])).expect("readable");
    let hosts: Vec<_> = capture.recordings.iter().map(|r| (r.host.as_str(), r.len())).collect();
    assert_eq!(hosts, [("esx01", 9), ("esx02", 3)]);
    assert!(capture.recordings[0].times_ms.is_sorted());
    let twice = read(inputs([0, 0, 2])).expect("readable");
    assert_eq!(twice.recordings[0].len(), 3);
}

#[test]
fn names_that_a_spreadsheet_quotes_are_read() {
    let quoted = |name: &str| small_file().replace("web (old)", &name.replace('"', "\"\""));
    for name in ["a \"b\", c", "\"", "\"\",\"", "two\nlines", "\r\n\"x\""] {
        let capture = read_bytes(quoted(name).into()).expect(name);
        let host = &capture.recordings[0];
        assert!(host.find(Kind::Vm, name).is_some() && host.len() == 3, "{name:?}");
        let cut_row = quoted(name) + "\"x\"\n";
        let damaged = &read_bytes(cut_row.clone().into()).expect(name).report.files[0].damaged;
        assert_eq!(damaged[0].0, cut_row.lines().count() as u64, "{name:?}");
        let mut out = Vec::new();
        let input = Input::from_bytes("quoted.csv", quoted(name).into());
        let part = Cut { vms: vec![name.into()], ..Cut::default() };
        cut(input, &part, &Limits::default(), &mut out, &mut |_, _| ()).expect(name);
        let part = read_bytes(out).expect(name);
        assert!(part.recordings[0].find(Kind::Vm, name).is_some(), "{name:?}");
    }
    let endless = "\"(PDH-CSV 4.0)\",\"\\\\h\\Virtual Disk(a)\\Reads/sec\",\"".to_owned();
    let endless = endless + &"\n".repeat(4 << 20);
    assert_eq!(read_bytes(endless.into()).expect("a header").recordings[0].len(), 0);
    // As esxtop writes it: one quote in a name, in an odd number of columns.
    for header in ["\"\\\\h\\Virtual Disk(9\" disk)\\Reads/sec\"", "\"\\\\h\\Virtual Disk(9\" disk"]
    {
        let rows = "\"03/02/2026 10:00:00\",\"1\"\n\"03/02/2026 10:00:05\",\"2\"\n";
        let text =
            format!("\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\h\\Virtual Disk(a)\\Reads/sec\",{header}\n");
        let text = text + &rows.replace("\n", ",\"3\"\n");
        let capture = read_bytes(text.into()).expect(header);
        assert_eq!(capture.recordings[0].len(), 2, "{header}");
    }
}

#[test]
fn of_an_archive_the_captures_are_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.zip");
    let open = |entries: &[(&str, &str)]| {
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).expect("a file"));
        for (name, content) in entries {
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(*name, options).expect("a file");
            zip.write_all(content.as_bytes()).expect("a file");
        }
        zip.finish().expect("a file");
        let inputs = Input::open(&path).expect("an archive");
        inputs
            .iter()
            .map(|input| input.name().rsplit('/').next().unwrap_or("").to_owned())
            .collect()
    };
    let (readme, capture) = ("what,why\n1,2\n", &small_file());
    let names: Vec<String> =
        open(&[("README.csv", readme), ("esx01.csv", capture), ("esx02.csv", capture)]);
    assert_eq!(names, ["esx01.csv", "esx02.csv"]);
    let names: Vec<String> = open(&[("README.csv", readme)]);
    assert_eq!(names, ["README.csv"]);
}

#[test]
fn compressed_files_and_archives_are_the_same() {
    let folder = std::env::temp_dir().join(format!("kavg-oddities-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let text = small_file();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).expect("memory");
    let gzip = gzip.finish().expect("memory");
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(text.as_bytes(), level);
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, content) in [("readme.txt", "no capture"), ("esx01.csv", text.as_str())] {
        zip.start_file(name, options).expect("memory");
        zip.write_all(content.as_bytes()).expect("memory");
    }
    let zip = zip.finish().expect("memory").into_inner();
    let cut = gzip[..gzip.len() - 12].to_vec();
    let files = [("a.csv", text.into_bytes()), ("b.gz", gzip), ("c", zstd), ("d.zip", zip)];
    let sound = small_host(3);
    let read = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        capture::read(&[path], &ReadOptions::default(), &mut |_, _| ())
    };
    for (name, bytes) in files {
        let capture = read(name, &bytes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(differences(&capture.recordings[0], &sound), [""; 0], "{name}");
    }
    let capture = read("e.gz", &cut).expect("the part that is there");
    assert!(capture.report.files[0].ended_early.is_some());
    std::fs::remove_dir_all(&folder).expect("a temporary folder");
}

#[test]
fn what_is_no_capture_is_refused_with_a_reason() {
    let rows = lines(&small_file())[1..].join("\n");
    let table: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty", vec![], "test.csv:1: the file is empty; expected the header of esxtop -b"),
        ("blank", b" \n\n".to_vec(), "test.csv:1: the file is empty"),
        ("binary", vec![0, 1, 2, 3], "test.csv:1: the file is binary"),
        ("NULs", vec![0; 1 << 20], "test.csv:1: the file is binary"),
        ("UTF-16", vec![0xff, 0xfe, b'"', 0], "test.csv:1: this is no esxtop capture"),
        (
            "semicolons",
            b"\"(PDH-CSV 4.0) (UTC)(0)\";\"\\\\h\\Memory\\Kernel MBytes\"\n".to_vec(),
            "test.csv:1: its cells are separated by semicolons",
        ),
        (
            "tabs",
            b"(PDH-CSV 4.0) (UTC)(0)\t\\\\h\\Memory\\Kernel MBytes\n".to_vec(),
            "test.csv:1: its cells are separated by tabs",
        ),
        ("no header", rows.into_bytes(), "test.csv:1: the file has rows and no header"),
        ("other", b"a,b\n1,2\n".to_vec(), "test.csv:1: this is no esxtop capture"),
        (
            "no disks",
            b"\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\h\\Memory\\Kernel MBytes\"\n".to_vec(),
            "test.csv:1: has no disk column",
        ),
    ];
    for (what, bytes, expected) in table {
        let error = read_bytes(bytes).expect_err(what).to_string();
        assert!(error.starts_with(expected), "{what}: {error}");
        assert!(!error.contains('\n'), "{what}: {error}");
    }
}

#[test]
fn lines_without_a_row_have_a_bound_wherever_they_stand() {
    let limits = Limits { idle_bytes: 1 << 20, ..Limits::default() };
    let options = ReadOptions { limits, ..ReadOptions::default() };
    let input = |bytes: &str| Input::stream("idle.csv", std::io::Cursor::new(bytes.to_owned()));
    let text = small_file();
    let (header, rows) = text.split_at(text.find('\n').expect("a header") + 1);
    for line in ["\n", "1\n"] {
        let fit = line.repeat((1 << 20) / line.len());
        let fits = input(&format!("{header}{fit}{rows}{fit}")).expect("a stream");
        let capture = read_inputs(vec![fits], &options, &mut |_, _| ()).expect("it fits");
        assert_eq!(capture.report.files[0].rows, 4, "{line:?}");
        // Blocks of a stream have four MiB.
        let endless = line.repeat((12 << 20) / line.len());
        for text in [format!("{header}{endless}"), format!("{text}{endless}{rows}")] {
            let read = read_inputs(vec![input(&text).expect("a stream")], &options, &mut |_, _| ());
            let mut out = Vec::new();
            let cut = cut(
                input(&text).expect("a stream"),
                &Cut::default(),
                &limits,
                &mut out,
                &mut |_, _| (),
            );
            for error in [read.err(), cut.err()] {
                let error = error.expect("refused");
                assert_eq!(error.what, "1 MiB without a whole row; an esxtop capture has none");
                assert!(error.line.is_some_and(|line| line > 1_000));
            }
        }
    }
}
