//! Files copied to other files: without their names, as parts with all their columns, as one.

mod common;

use std::path::PathBuf;

use capture::{
    Cut, Input, Limits, ReadOptions, Sequence, Substitutes, anonymize, cut, read, write_esxtop,
};
use common::{differences, read_bytes, small_file, small_host, written};
use counters::{Counter, Entity, Kind, Recording};

/// A header cell before and after; an empty one is dropped.
const NAMES: &[(&str, &str)] = &[
    (r"\\esx01.example.com\Memory\Free MBytes", r"\\host1\Memory\Free MBytes"),
    (
        r"\\esx01.example.com\Physical Cpu(_Total)\% Util Time",
        r"\\host1\Physical Cpu(_Total)\% Util Time",
    ),
    (r"\\esx01.example.com\Numa Node(1)\Free MBytes", r"\\host1\Numa Node(1)\Free MBytes"),
    (
        r"\\esx01.example.com\PCPU Power State(PCPU 12)\%C-State C0",
        r"\\host1\PCPU Power State(PCPU 12)\%C-State C0",
    ),
    (
        r"\\esx01.example.com\Interrupt Vector(0xfe:CPU1)\Interrupts/second",
        r"\\host1\Interrupt Vector(0xfe:CPU1)\Interrupts/second",
    ),
    (
        r"\\esx01.example.com\Interrupt Vector(0xfe vendor-x)\Interrupts/second",
        r"\\host1\Interrupt Vector(instance1)\Interrupts/second",
    ),
    (r"\\esx01.example.com\Group Cpu(1:system)\% Used", r"\\host1\Group Cpu(1:system)\% Used"),
    (
        r"\\esx01.example.com\Group Cpu(5481:hostd.66694)\% Used",
        r"\\host1\Group Cpu(5481:hostd.66694)\% Used",
    ),
    (
        r"\\esx01.example.com\Group Cpu(5482:payrolld.66700)\% Used",
        r"\\host1\Group Cpu(5482:process1.66700)\% Used",
    ),
    (r"\\esx01.example.com\Group Cpu(77:payroll: a.b)\% Used", r"\\host1\Group Cpu(77:vm1)\% Used"),
    (
        r"\\esx01.example.com\Group Memory(78:hostd.1)\Members",
        r"\\host1\Group Memory(78:vm2)\Members",
    ),
    (
        r"\\esx01.example.com\Vcpu(77:payroll: a.b:101:vmx)\% Used",
        r"\\host1\Vcpu(77:vm1:101:vmx)\% Used",
    ),
    (
        r"\\esx01.example.com\Vcpu(77:payroll: a.b:102:vmast.100)\% Used",
        r"\\host1\Vcpu(77:vm1:102:vmast.100)\% Used",
    ),
    (
        r"\\esx01.example.com\Vcpu(77:payroll: a.b:103:PVSCSI-100:0)\% Used",
        r"\\host1\Vcpu(77:vm1:103:PVSCSI-100:0)\% Used",
    ),
    (
        r"\\esx01.example.com\Vcpu(77:payroll: a.b:104:vmx-vcpu-0:payroll: a.b)\% Used",
        r"\\host1\Vcpu(77:vm1:104:vmx-vcpu-0:vm1)\% Used",
    ),
    (
        r"\\esx01.example.com\Vcpu(77:payroll: a.b:105:agent of payroll)\% Used",
        r"\\host1\Vcpu(77:vm1:105:world1)\% Used",
    ),
    (
        r"\\esx01.example.com\Vcpu(5481:hostd.66694:66694:hostd)\% Used",
        r"\\host1\Vcpu(5481:hostd.66694:66694:hostd)\% Used",
    ),
    (
        r"\\esx01.example.com\Vcpu(5481:hostd.66694:66695:hostd-payroll)\% Used",
        r"\\host1\Vcpu(5481:hostd.66694:66695:world2)\% Used",
    ),
    (
        r"\\esx01.example.com\Network Port(vSwitch0:335:vmnic0)\MBits Received/sec",
        r"\\host1\Network Port(switch1:335:vmnic0)\MBits Received/sec",
    ),
    (
        r"\\esx01.example.com\Network Port(vSwitch0:336:100:payroll: a.b)\MBits Received/sec",
        r"\\host1\Network Port(switch1:336:100:vm1)\MBits Received/sec",
    ),
    (
        r"\\esx01.example.com\Network Port(DMZ:337:100:payroll: a.b.eth1)\MBits Received/sec",
        r"\\host1\Network Port(switch2:337:100:port1)\MBits Received/sec",
    ),
    (
        r"\\esx01.example.com\Physical Disk(vmhba1)\Adapter Q Depth",
        r"\\host1\Physical Disk(vmhba1)\Adapter Q Depth",
    ),
    (
        r"\\esx01.example.com\Physical Disk(vmhba1:vmhba1:C0:T2:L0)\Commands/sec",
        r"\\host1\Physical Disk(vmhba1:vmhba1:C0:T2:L0)\Commands/sec",
    ),
    (
        r"\\esx01.example.com\Physical Disk Path(fc.2000:2001-fc.50:51-naa.6)\Commands/sec",
        r"\\host1\Physical Disk Path(adapter1:path1)\Commands/sec",
    ),
    (
        r"\\esx01.example.com\Physical Disk SCSI Device(naa.624a93700c4e2b8f00011001)\Load",
        r"\\host1\Physical Disk SCSI Device(naa.624a93700000000000000001)\Load",
    ),
    (
        r"\\esx01.example.com\Physical Disk SCSI Device(naa.35000c500a1b2c3d4)\Load",
        r"\\host1\Physical Disk SCSI Device(naa.device2)\Load",
    ),
    (
        r"\\esx01.example.com\Physical Disk SCSI Device(eui.00a0)\Load",
        r"\\host1\Physical Disk SCSI Device(eui.device3)\Load",
    ),
    (
        r"\\esx01.example.com\Physical Disk SCSI Device(mpx.vmhba0:C0:T5:L0)\Load",
        r"\\host1\Physical Disk SCSI Device(mpx.vmhba0:C0:T5:L0)\Load",
    ),
    (
        r"\\esx01.example.com\Physical Disk Per-Device-Per-World(naa.624a93700c4e2b8f00011001-100)\Load",
        r"\\host1\Physical Disk Per-Device-Per-World(naa.624a93700000000000000001-100)\Load",
    ),
    (
        r"\\esx01.example.com\Physical Disk Partition(eui.00a0-3)\Reads/sec",
        r"\\host1\Physical Disk Partition(eui.device3-3)\Reads/sec",
    ),
    (
        r"\\esx01.example.com\Physical Disk Partition(eui.00a0-x)\Reads/sec",
        r"\\host1\Physical Disk Partition(instance2)\Reads/sec",
    ),
    (
        r"\\esx01.example.com\Physical Disk NFS Volume(payroll-nfs)\Reads/sec",
        r"\\host1\Physical Disk NFS Volume(nfs1)\Reads/sec",
    ),
    (
        r"\\esx01.example.com\Virtual Disk(payroll: a.b:scsi0:1)\Reads/sec",
        r"\\host1\Virtual Disk(vm1:scsi0:1)\Reads/sec",
    ),
    (
        r"\\esx01.example.com\Virtual Disk(hostd.1)\Reads/sec",
        r"\\host1\Virtual Disk(vm2)\Reads/sec",
    ),
    (r"\\esx01.example.com\Payroll(1)\Reads/sec", ""),
    (r"\\esx01.example.com\Memory\Payroll MBytes", ""),
    (r"payroll", ""),
];

fn without_names(text: &str) -> (String, capture::AnonymizeReport) {
    let mut out = Vec::new();
    let input = Input::from_bytes("esx01.csv", text.as_bytes().to_vec());
    let mut names = Substitutes::default();
    let report = anonymize(input, &mut names, &Limits::default(), &mut out, &mut |_, _| ())
        .expect("a capture");
    (String::from_utf8(out).expect("ASCII"), report)
}

#[test]
fn every_name_is_replaced_and_esxtops_own_words_stay() {
    let header: String = NAMES.iter().map(|row| format!(",\"{}\"", row.0)).collect();
    let (text, report) = without_names(&format!("payroll\"(PDH-CSV 4.0) (CET)(60)\"{header}\n"));
    let expected: Vec<_> = NAMES.iter().map(|row| row.1).filter(|cell| !cell.is_empty()).collect();
    let cells: Vec<_> =
        text.trim_end_matches(",\n").split(',').map(|c| c.trim_matches('"')).collect();
    assert_eq!(cells[0], "(PDH-CSV 4.0) (UTC)(0)");
    assert_eq!(cells[1..], expected);
    let dropped: Vec<_> = report.dropped.into_iter().collect();
    let one = |name: &str| (name.to_owned(), 1);
    let expected = ["Memory\\Payroll MBytes", "Payroll\\Reads/sec", "payroll"].map(one);
    assert_eq!(dropped, expected);
}

#[test]
fn values_stay_and_what_is_no_number_goes() {
    let text = "\
\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\h\\Virtual Disk(a)\\Reads/sec\",\"\\\\h\\x\",\"\\\\h\\Memory\\Free MBytes\",   -\"\\\\h\\PCPU Power State(PCPU 1)\\%C-State C0\",   -
\"03/02/2026 10:00:00\",\"-1\",\"secret\",\"41 secret\",    73.1\"8.93\",    73.1
secret
\"03/02/2026 10:00:05\",\"0.50\",\"1\",\"1e5\",    73.1\"8.93\",    73.1
";
    let expected = "\
\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\host1\\Virtual Disk(vm1)\\Reads/sec\",\"\\\\host1\\Memory\\Free MBytes\",   -\"\\\\host1\\PCPU Power State(PCPU 1)\\%C-State C0\",   -,
\"03/02/2026 10:00:00\",\"-1\",\"\",    73.1\"8.93\",    73.1,
\"03/02/2026 10:00:05\",\"0.50\",\"1e5\",    73.1\"8.93\",    73.1,
";
    let (text, report) = without_names(text);
    assert_eq!(text, expected);
    assert_eq!((report.copy.rows, report.copy.damaged_rows, report.emptied_cells), (2, 1, 1));
}

#[test]
fn a_name_becomes_the_same_in_every_file() {
    let mut names = Substitutes::default();
    let mut header = |cells: &str| {
        let text = format!("\"(PDH-CSV 4.0) (UTC)(0)\",{cells}\n");
        let mut out = Vec::new();
        let input = Input::from_bytes("esx01.csv", text.into_bytes());
        anonymize(input, &mut names, &Limits::default(), &mut out, &mut |_, _| ())
            .expect("a capture");
        String::from_utf8(out).expect("ASCII")
    };
    header(r#""\\a\Virtual Disk(x)\Reads/sec","\\a\Virtual Disk(y)\Reads/sec""#);
    let second = header(r#""\\b\Virtual Disk(y)\Reads/sec""#);
    assert!(second.contains(r"\\host2\Virtual Disk(vm2)"), "{second}");
    let given: Vec<_> = names.iter().collect();
    let expected =
        [("host", "a", "host1"), ("host", "b", "host2"), ("vm", "x", "vm1"), ("vm", "y", "vm2")];
    assert_eq!(given, expected);
}

#[test]
fn a_capture_without_names_reads_like_the_one_with_them() {
    let (text, _) = without_names(&small_file());
    let (with, without) = (read_bytes(small_file().into()), read_bytes(text.into()));
    let (with, without) = (with.expect("readable"), without.expect("readable"));
    let shape = |capture: &capture::Capture| {
        let host = &capture.recordings[0];
        let objects: Vec<_> = host
            .entities()
            .iter()
            .map(|e| (e.kind, e.device, e.adapter, e.vm, e.controller, e.process.clone()))
            .collect();
        let columns: Vec<_> =
            host.columns().map(|(id, counter, values)| (id, counter, values.to_vec())).collect();
        (host.times_ms.clone(), objects, columns)
    };
    assert_eq!(shape(&without), shape(&with));
}

/// The header cells of a part of the small file, without host and counter.
fn objects_of(part: &Cut) -> Vec<String> {
    let mut out = Vec::new();
    let input = Input::from_bytes("esx01.csv", small_file().into_bytes());
    cut(input, part, &Limits::default(), &mut out, &mut |_, _| ()).expect("a part");
    let text = String::from_utf8(out).expect("ASCII");
    let header = text.lines().next().expect("a header").to_owned();
    let mut objects: Vec<String> = header
        .split("\",\"")
        .skip(1)
        .map(|cell| cell[r"\\esx01\".len()..cell.rfind('\\').expect("a counter")].to_owned())
        .collect();
    objects.dedup();
    objects
}

#[test]
fn a_vm_is_cut_out_with_its_worlds_and_all_that_its_ios_pass() {
    let part = Cut { vms: vec!["sql, main".into()], ..Cut::default() };
    let expected = [
        "Group Cpu(66698:sql, main)",
        "Vcpu(66698:sql, main:66699:vmast.200)",
        "Vcpu(66698:sql, main:66700:PVSCSI-200:0)",
        "Physical Disk(vmhba1)",
        "Physical Disk Adapter(vmhba1)",
        "Physical Disk(vmhba1:vmhba1:C0:T0:L1)",
        "Physical Disk(vmhba1:vmhba1:C0:T0:L3)",
        "Physical Disk SCSI Device(naa.601)",
        "Physical Disk Path(vmhba1:C0:T0:L1)",
        "Physical Disk Per-Device-Per-World(naa.601-200)",
        "Physical Disk SCSI Device(naa.603)",
        "Physical Disk Path(vmhba1:C0:T0:L3)",
        "Physical Disk Per-Device-Per-World(naa.603-200)",
        "Virtual Disk(sql, main)",
        "Virtual Disk(sql, main:scsi0:0)",
        "Virtual Disk(sql, main:scsi0:1)",
    ];
    assert_eq!(objects_of(&part), expected);
}

/// A disk beyond the devices with worlds of its VM is on an NFS volume, and any may be it.
#[test]
fn nfs_volumes_go_with_a_vm() {
    let nfs = r#""\\esx01\Physical Disk NFS Volume(gold)\Commands/sec","#;
    let disk = r#""\\esx01\Virtual Disk(web:scsi0:0)\Reads/sec","#;
    let text =
        format!("\"(PDH-CSV 4.0) (UTC)(0)\",{nfs}{disk}\n\"03/02/2026 10:00:00\",\"1\",\"1\",\n");
    let part = Cut { vms: vec!["web".into()], ..Cut::default() };
    let mut out = Vec::new();
    let input = Input::from_bytes("esx01.csv", text.clone().into_bytes());
    cut(input, &part, &Limits::default(), &mut out, &mut |_, _| ()).expect("a part");
    assert_eq!(String::from_utf8(out).expect("ASCII"), text);
}

#[test]
fn a_device_is_cut_out_with_the_vms_that_have_a_world_on_it() {
    let part = Cut { devices: vec!["naa.602".into()], ..Cut::default() };
    let expected = [
        "Group Cpu(66695:web (old))",
        "Vcpu(66695:web (old):66696:vmast.100)",
        "Vcpu(66695:web (old):66697:LSI-100:0)",
        "Physical Disk(vmhba1)",
        "Physical Disk Adapter(vmhba1)",
        "Physical Disk(vmhba1:vmhba1:C0:T0:L2)",
        "Physical Disk SCSI Device(naa.602)",
        "Physical Disk Path(vmhba1:C0:T0:L2)",
        "Physical Disk Per-Device-Per-World(naa.602-100)",
        "Virtual Disk(web (old))",
        "Virtual Disk(web (old):scsi0:0)",
        "Virtual Disk(web (old):scsi0:1)",
    ];
    assert_eq!(objects_of(&part), expected);
    let volume = Cut { devices: vec!["backup".into()], ..Cut::default() };
    assert_eq!(objects_of(&volume), ["Physical Disk NFS Volume(backup)"]);
}

#[test]
fn a_group_is_named_whole_or_in_part() {
    let groups = |name: &str| {
        let part = Cut { groups: vec![name.into()], ..Cut::default() };
        let mut groups: Vec<_> = objects_of(&part)
            .iter()
            .filter_map(|object| Some(object.split_once('(')?.0.to_owned()))
            .collect();
        groups.dedup();
        groups
    };
    assert_eq!(groups("physical disk"), ["Physical Disk"]);
    assert_eq!(groups("cpu"), ["Group Cpu", "Vcpu", "Group Cpu", "Vcpu", "Group Cpu", "Vcpu"]);
    assert!(groups("disk").len() > 6);
}

#[test]
fn a_header_in_the_middle_is_left_out_and_one_of_other_columns_refused() {
    let second = written(&later(small_host(2), 60_000));
    let twice = [small_file().as_bytes(), b"a message ", &second].concat();
    let mut out = Vec::new();
    let input = Input::from_bytes("esx01.csv", twice);
    let report = cut(input, &Cut::default(), &Limits::default(), &mut out, &mut |_, _| ())
        .expect("a capture");
    assert_eq!((report.rows, report.further_headers, report.damaged_rows), (6, 1, 0));
    let read = read_bytes(out).expect("a capture");
    assert_eq!((read.recordings[0].len(), read.report.files[0].further_headers), (5, 0));
    let other = small_file().replace("naa.603", "naa.604");
    let input = Input::from_bytes("esx01.csv", (small_file() + &other).into_bytes());
    let error = cut(input, &Cut::default(), &Limits::default(), &mut Vec::new(), &mut |_, _| ());
    let error = error.expect_err("two captures").to_string();
    assert!(error.starts_with("esx01.csv:6: another capture begins here"), "{error}");
}

/// A folder with files, and what a sequence of them becomes.
struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, Vec<u8>)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), bytes).expect("a temporary file");
        }
        Self(folder)
    }

    fn paths(&self, names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(|name| self.0.path().join(name)).collect()
    }

    fn merged(&self, names: &[&str]) -> (Vec<u8>, Vec<capture::SequenceReport>) {
        let limits = Limits::default();
        let mut hosts =
            Sequence::of(&self.paths(names), &limits, &mut |_, _| ()).expect("captures");
        assert_eq!(hosts.len(), 1);
        let mut out = Vec::new();
        let reports = hosts.remove(0).write(&limits, &mut out, &mut |_, _| ()).expect("memory");
        (out, reports)
    }
}

fn later(mut host: Recording, by_ms: i64) -> Recording {
    host.times_ms.iter_mut().for_each(|time| *time += by_ms);
    host
}

#[test]
fn files_of_one_host_become_one_in_the_order_of_time() {
    let second = later(small_host(4), 10_000);
    let files = Files::new(&[("a.csv", small_file().into()), ("b.csv", written(&second))]);
    let (out, reports) = files.merged(&["b.csv", "a.csv"]);
    let counts: Vec<_> = reports.iter().map(|r| (r.copy.rows, r.repeated_rows)).collect();
    // The second file begins at the last instant of the first, after a row of zeros.
    assert_eq!(counts, [(4, 0), (3, 1)]);
    let merged = read_bytes(out).expect("a capture");
    let both = files.paths(&["a.csv", "b.csv"]);
    let read = read(&both, &ReadOptions::default(), &mut |_, _| ()).expect("captures");
    assert_eq!(differences(&merged.recordings[0], &read.recordings[0]), [""; 0]);
}

#[test]
fn columns_that_a_file_lacks_are_empty() {
    let mut second = later(small_host(2), 60_000);
    let vm = second.add_entity(Entity::new(Kind::Vm, "new".into()));
    second.set_column(vm, Counter::Reads, vec![7.0, 8.0]);
    let files = Files::new(&[("a.csv", small_file().into()), ("b.csv", written(&second))]);
    let (out, reports) = files.merged(&["a.csv", "b.csv"]);
    // The writer numbers its worlds anew with the new VM.
    assert_eq!([reports[0].missing_columns, reports[1].missing_columns], [4, 2]);
    let capture = read_bytes(out).expect("a capture");
    assert!(capture.report.files[0].first_row_left_out);
    let host = &capture.recordings[0];
    let vm = host.find(Kind::Vm, "new").expect("the VM of the second file");
    let reads: Vec<_> = (0..5).map(|sample| host.value(vm, Counter::Reads, sample)).collect();
    assert_eq!(reads, [None, None, None, Some(7.0), Some(8.0)]);
}

#[test]
fn what_cannot_be_merged_is_refused() {
    let mut other = small_host(3);
    other.host = "esx02".into();
    let mut two = Vec::new();
    write_esxtop(&other, &mut two).expect("memory");
    let minutes = small_file().replace(":00\",", "\",").replace(":05\",", "\",");
    let files = Files::new(&[
        ("minutes.csv", minutes.into()),
        ("esx02.csv", two),
        ("esx01.csv", small_file().into()),
        ("other.txt", b"no capture\n".to_vec()),
    ]);
    let limits = Limits::default();
    let refused = |name: &str| {
        Sequence::of(&files.paths(&[name]), &limits, &mut |_, _| ())
            .err()
            .map(|error| error.what)
            .unwrap_or_default()
    };
    assert!(refused("minutes.csv").starts_with("has times without a date or without seconds"));
    assert!(refused("other.txt").starts_with("this is no esxtop capture"));
    assert!(refused("-").is_empty() || refused("nothing").contains("cannot be read"));
    let error = Sequence::of(&["-".into()], &limits, &mut |_, _| ()).err().expect("no file");
    assert!(error.to_string().starts_with("-: is read twice"), "{error}");
    let hosts = Sequence::of(&files.paths(&["esx02.csv", "esx01.csv"]), &limits, &mut |_, _| ())
        .expect("two");
    assert_eq!(hosts.iter().map(Sequence::host).collect::<Vec<_>>(), ["esx02", "esx01"]);
}
