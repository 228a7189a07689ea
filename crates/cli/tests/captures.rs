//! `kavg diagnose` and `kavg capture` on captures that `kavg run --csv` wrote.

mod common;

use std::path::PathBuf;

use common::{Said, kavg, kavg_with};
use tempfile::TempDir;

/// Captures of the scenarios of the tests and of a shipped one, and where they are.
struct Captures {
    directory: TempDir,
}

impl Captures {
    fn new() -> Self {
        let captures = Self { directory: tempfile::tempdir().unwrap() };
        let lab = captures.path("lab.csv");
        let made = [
            ("two-queues.toml", "one.csv"),
            ("two-hosts.toml", "lab.csv"),
            ("s4-iodepth-1", "long.csv"),
        ];
        for (scenario, file) in made {
            let said = kavg(&["run", scenario, "-q", "--csv", &captures.path(file)]);
            assert_eq!(said.code, 0, "{said:?}");
        }
        assert!(!PathBuf::from(lab).exists());
        captures
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs `kavg` and takes the directory out of what it says.
    fn kavg(&self, arguments: &[&str]) -> Said {
        let mut said = kavg(arguments);
        let place = self.path("");
        (said.out, said.err) = (said.out.replace(&place, ""), said.err.replace(&place, ""));
        said
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

#[test]
fn a_diagnosis_names_the_queue_and_ends_with_1() {
    let captures = Captures::new();
    let said = captures.kavg(&["diagnose", &captures.path("one.csv")]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let device = "naa.60000000000000000000000000000001";
    for expected in [
        format!("sql on {device}: Device queue full, limited by its\nown depth"),
        "Raise the driver's depth per device (vmhba1) from 32".into(),
        "1. Device queue full, limited by its own depth".into(),
        "host> esxcli system module parameters set -m ".into(),
    ] {
        assert!(said.out.contains(&expected), "{}", said.out);
    }
}

#[test]
fn nothing_wrong_ends_with_0() {
    let captures = Captures::new();
    let calm = captures.path("lab.esx-2.csv");
    let said = captures.kavg(&["diagnose", &calm]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    assert!(said.out.starts_with("Nothing is wrong"), "{}", said.out);
}

#[test]
fn standard_input_is_read_and_several_hosts_are_told_apart() {
    let captures = Captures::new();
    let piped = kavg_with(&["diagnose", "-"], &captures.read("one.csv"));
    assert_eq!(piped.out, kavg(&["diagnose", &captures.path("one.csv")]).out);
    let hosts = [captures.path("lab.esx-1.csv"), captures.path("lab.esx-2.csv")];
    let said = kavg(&["diagnose", &hosts[0], &hosts[1], "--json"]);
    let verdicts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((verdicts["verdicts"][0]["host"].as_str(), said.code), (Some("esx-1"), 1));
    assert_eq!(verdicts["verdicts"][1]["host"], "esx-2");
}

#[test]
fn profile_and_thresholds_decide_from_when_a_number_counts() {
    let captures = Captures::new();
    let file = captures.path("one.csv");
    let judged = |arguments: &[&str]| {
        let said = captures.kavg(&[&["diagnose", "--json", &file], arguments].concat());
        let verdicts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let profile =
            verdicts["verdicts"][0]["profiles"][0]["profile"].as_str().unwrap().to_owned();
        (profile, said.out.contains("\"device-depth\""))
    };
    assert_eq!(judged(&[]), ("flash".into(), true));
    assert_eq!(judged(&["--profile", "classic"]).0, "classic");
    let high = ["--set-threshold", "kavg_ms=1000", "--set-threshold", "waiting=1000"];
    assert_eq!(judged(&high), ("flash".into(), false));
}

#[test]
fn outputs_of_esxcli_name_the_driver_that_is_there() {
    let captures = Captures::new();
    let file = captures.path("adapters.txt");
    let adapters = "\
HBA Name  Driver  Link State  UID               Capabilities  Description
--------  ------  ----------  ----------------  ------------  -----------
vmhba1    nfnic   link-up     fc.20:21          Second Level  Cisco UCS
";
    std::fs::write(&file, adapters).unwrap();
    let said = captures.kavg(&["diagnose", &captures.path("one.csv"), "--esxcli", &file]);
    assert!(said.out.contains("-m nfnic -p"), "{}", said.out);
    assert!(!said.out.contains("-m lpfc -p"), "{}", said.out);
}

/// A device as `storage core device list` prints it.
fn depths(max: u32, dsnro: u32) -> String {
    let device = "naa.6000000000000000000000000000000a";
    format!(
        "{device}\n   Devfs Path: /vmfs/devices/disks/{device}\n   Device Max Queue Depth: {max}\n   \
         No of outstanding IOs with competing worlds: {dsnro}\n"
    )
}

#[test]
fn an_output_of_esxcli_is_of_one_host() {
    let captures = Captures::new();
    let hosts = ["lab.esx-1.csv", "lab.esx-2.csv"].map(|name| captures.path(name));
    let [out, called] = ["out.txt", "ESX-2.txt"].map(|name| captures.path(name));
    std::fs::write(&out, depths(30, 30)).unwrap();
    std::fs::write(&called, depths(31, 31)).unwrap();
    let in_front = format!("esx-1:{out}");
    let of_both = [in_front.as_str(), &called];
    let of_other = [format!("esx-3: {out}")];
    let refused = [
        (
            &["--esxcli", &out][..],
            "out.txt: an output of esxcli does not say of which host it is, and the captures are of esx-1, esx-2: put \
             the host in front (--esxcli esx-1:out.txt), or call the file as its host (esx-1.txt)",
        ),
        (&["--esxcli", &of_other[0]], "--esxcli esx-3:out.txt: the captures are of esx-1, esx-2"),
    ];
    let line = "storage core device set -d naa.6000000000000000000000000000000a -O 16";
    for command in [&["diagnose"][..], &["whatif", "--set", line]] {
        for (options, refusal) in &refused {
            let files = [hosts[0].as_str(), &hosts[1]];
            let said = captures.kavg(&[command, &files, *options].concat());
            assert_eq!((said.code, said.err), (2, format!("kavg: {refusal}\n")), "{command:?}");
        }
    }
    // Captures behind --compare are of hosts as well.
    let said = captures.kavg(&["diagnose", &hosts[0], "--compare", &hosts[1], "--esxcli", &out]);
    assert!(said.err.contains("the captures are of esx-1, esx-2"), "{}", said.err);
    let asked = [
        &["diagnose", "--json", &hosts[0], &hosts[1]],
        &of_both.map(|of| ["--esxcli", of]).concat()[..],
    ];
    let said = captures.kavg(&asked.concat());
    let told: serde_json::Value = serde_json::from_str(&said.out).expect(&said.err);
    let verdicts = told["verdicts"].as_array().unwrap();
    // Both capture more than their output says: each is told its own.
    for (verdict, depth) in verdicts.iter().zip([30, 31]) {
        let sentence = verdict["disagreements"][0].as_str().unwrap();
        assert!(sentence.contains(&format!("\"Device Max Queue Depth: {depth}\"")), "{sentence}");
    }
    // Of one host every file is, whatever its name.
    let said = captures.kavg(&["diagnose", &hosts[0], "--esxcli", &called]);
    assert!(said.out.contains("Device Max Queue Depth: 31"), "{}", said.out);
}

/// Three VMs on a device, of which one fills it.
const NAMESAKES: &str = r#"
title = "t"
duration = "4s"
warmup = "1s"
sample = "200ms"
array.fa = { servers = 256, service = "2ms" }
host.esx.adapter.vmhba1 = { driver = "qlnativefc" }
datastore.gold = { scheduler = "fifo" }

[vm.web-1]
disk."scsi0:0".datastore = "gold"
workload.threads = 60

[vm.web-2]
disk."scsi0:0".datastore = "gold"
workload.threads = 2

[vm.sql]
disk."scsi0:0".datastore = "gold"
workload.threads = 2
"#;

#[test]
fn vms_of_one_name_are_told_apart_and_no_line_is_for_both() {
    let captures = Captures::new();
    let [made, apart, alike] =
        ["made.toml", "apart.csv", "alike.csv"].map(|name| captures.path(name));
    std::fs::write(&made, NAMESAKES).unwrap();
    assert_eq!(captures.kavg(&["run", &made, "-q", "--csv", &apart]).code, 0);
    let text = captures.read("apart.csv");
    let group = |vm: &str| {
        let (front, _) = text.split_once(&format!(":{vm})\\% Used")).unwrap();
        front.rsplit_once('(').unwrap().1.to_owned()
    };
    let names = ["web-1", "web-2"].map(|vm| format!("web ({})", group(vm)));
    std::fs::write(&alike, text.replace("web-1", "web").replace("web-2", "web")).unwrap();
    let found = |file: &str| {
        let said = captures.kavg(&["diagnose", "--json", file]);
        let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let mut findings = told["verdicts"][0]["findings"].as_array().unwrap().iter();
        let finding = findings.find(|finding| finding["cause"] == "noisy-neighbour");
        let finding = finding.expect("one VM holds the slots").clone();
        let parties = |key: &str| -> Vec<String> {
            let all = finding[key].as_array().unwrap().iter();
            let mut all: Vec<_> = all.map(|vm| vm["name"].as_str().unwrap().to_owned()).collect();
            all.sort();
            all
        };
        let parties = [parties("causers"), parties("sufferers")];
        (finding["cause"].clone(), parties, finding["changes"][0].clone(), said.err)
    };
    let (cause, parties, change, complaint) = found(&apart);
    let [causers, sufferers] = &parties;
    assert_eq!((cause.as_str(), complaint.as_str()), (Some("noisy-neighbour"), ""));
    assert_eq!(
        (&causers[..], &sufferers[..]),
        (&["web-1".to_owned()][..], &["sql".to_owned(), "web-2".into()][..])
    );
    assert!(change["powercli"][1].as_str().unwrap().starts_with("Get-VM 'web-1'"), "{change}");
    let (same, parties, change, complaint) = found(&alike);
    assert_eq!(same, cause);
    assert_eq!(parties, [vec![names[0].clone()], vec!["sql".into(), names[1].clone()]]);
    assert_eq!(
        (&change["powercli"], &change["steps"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
    let what = change["what"].as_str().unwrap();
    let told = format!("Hold {} by IOPS limits on the disks on ", names[0]);
    assert!(what.starts_with(&told) && what.contains("Get-VM 'web' gets every VM"), "{what}");
    let told =
        format!("esx: 2 VMs are called web: here they are {} and {}, with", names[0], names[1]);
    assert!(complaint.starts_with(&told), "{complaint}");
}

#[test]
fn damage_is_told_and_the_rest_is_judged() {
    let captures = Captures::new();
    let whole = captures.read("one.csv");
    let lines: Vec<&str> = whole.lines().collect();
    let cut = [&lines[..5], &["\"01/01/2020 00:00:01\",\"1\","], &lines[5..]].concat().join("\n");
    let file = captures.path("damaged.csv");
    std::fs::write(&file, cut + "\n").unwrap();
    let said = captures.kavg(&["diagnose", &file]);
    assert_eq!(said.code, 1);
    assert!(said.err.starts_with("damaged.csv:6: 2 cells where the header has"), "{}", said.err);
    assert!(said.err.ends_with("; 1 row left out in all\n"), "{}", said.err);
}

#[test]
fn info_tells_what_is_in_it() {
    let captures = Captures::new();
    let said = captures.kavg(&["capture", "info", &captures.path("lab.esx-1.csv")]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!(said.out);
}

#[test]
fn columns_has_a_line_for_each() {
    let captures = Captures::new();
    let said = captures.kavg(&["capture", "columns", &captures.path("one.csv")]);
    let line = said.out.lines().find(|line| line.contains("Device Q Depth")).unwrap();
    let cells: Vec<_> = line.split_whitespace().collect();
    assert_eq!(cells[..3], ["esx01", "device", "naa.60000000000000000000000000000001"]);
    assert_eq!(cells[cells.len() - 3..], ["32", "32", "32"]);
}

#[test]
fn a_part_is_cut_out_by_group_vm_and_device() {
    let captures = Captures::new();
    let file = captures.path("lab.esx-1.csv");
    let cut = |arguments: &[&str]| {
        let said = captures.kavg(&[&["capture", "cut", &file], arguments].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said.out.lines().next().unwrap().to_owned()
    };
    let whole = cut(&[]);
    assert!(whole.contains("calm-1:scsi0:0") && whole.contains("(vmhba1)"));
    let devices = cut(&["--group", "scsi device,physical disk adapter"]);
    assert!(!devices.contains("Virtual Disk") && devices.contains("Physical Disk SCSI Device"));
    let of_vm = cut(&["--vm", "loud"]);
    assert!(of_vm.contains("(loud:scsi0:0)") && !of_vm.contains("calm-1:"));
    assert!(of_vm.contains(":loud)\\% Used") && of_vm.contains(":PVSCSI-"), "{of_vm}");
    let of_device = cut(&["--device", "naa.6000000000000000000000000000000b"]);
    assert!(!of_device.contains("(loud:scsi0:0)") && of_device.contains("calm-1:"));
    let said = captures.kavg(&["capture", "cut", &file, "--vm", "nobody"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    let expected = "kavg: lab.esx-1.csv: no VM 'nobody' in the capture; it has loud";
    assert!(said.err.starts_with(expected), "{said:?}");
}

#[test]
fn a_part_is_cut_out_by_time() {
    let captures = Captures::new();
    let file = captures.path("long.csv");
    let cut = |arguments: &[&str]| captures.kavg(&[&["capture", "cut", &file], arguments].concat());
    let said = cut(&["--from", "01/01/2020 00:00:40", "--to", "01/01/2020 00:00:50"]);
    let times: Vec<_> = said.out.lines().skip(1).map(|line| &line[12..20]).collect();
    assert_eq!(times, ["00:00:40", "00:00:45", "00:00:50"]);
    let said = cut(&["--from", "01/01/2030 00:00:00"]);
    assert_eq!((said.code, said.out.lines().count()), (2, 1));
    assert_eq!(said.err, "kavg: nothing was recorded between --from and --to\n");
}

#[test]
fn parts_are_merged_in_the_order_of_time() {
    let captures = Captures::new();
    let whole = captures.read("long.csv");
    let mut lines: Vec<&str> = whole.lines().collect();
    let header = lines.remove(0);
    let (early, late) = lines.split_at(8);
    for (name, rows) in [("late.csv", late), ("early.csv", early)] {
        let text = [&[header], rows].concat().join("\n") + "\n";
        std::fs::write(captures.path(name), text).unwrap();
    }
    let output = captures.path("merged.csv");
    let parts = [captures.path("late.csv"), captures.path("early.csv")];
    let said = captures.kavg(&["capture", "merge", &parts[0], &parts[1], "-o", &output]);
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
    assert_eq!(captures.read("merged.csv").lines().count(), whole.lines().count());
    let hosts = [captures.path("lab.esx-1.csv"), captures.path("lab.esx-2.csv")];
    let said = captures.kavg(&["capture", "merge", &hosts[0], &hosts[1]]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("several hosts; name a file"), "{said:?}");
    std::fs::write(captures.path("header.csv"), format!("{header}\n")).unwrap();
    let said = captures.kavg(&["capture", "merge", &captures.path("header.csv")]);
    let refusal = "kavg: header.csv: no row below a header, so nothing to merge\n";
    assert_eq!((said.code, said.err.as_str()), (2, refusal));
}

#[test]
fn names_are_replaced_and_the_verdict_stays() {
    let captures = Captures::new();
    let (file, output) = (captures.path("one.csv"), captures.path("anonymous.csv"));
    let mapping = captures.path("mapping.csv");
    let arguments = ["capture", "anonymize", &file, "-o", &output, "--mapping", &mapping];
    let said = captures.kavg(&arguments);
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
    assert_eq!(said.err, "names replaced: device 1, host 1, vm 1\n");
    let text = captures.read("anonymous.csv");
    assert!(!text.contains("sql") && !text.contains("esx01"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&mapping).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "the names that were taken out are the user's own");
    }
    let mapping = captures.read("mapping.csv");
    assert!(mapping.contains("host,esx01,host1\n"), "{mapping}");
    let causes = |file: &str| {
        let said = captures.kavg(&["diagnose", "--json", &captures.path(file)]);
        let verdicts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let findings = verdicts["verdicts"][0]["findings"].as_array().unwrap().clone();
        findings.iter().map(|finding| finding["cause"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(causes("anonymous.csv"), causes("one.csv"));
}

#[test]
fn what_would_steer_a_terminal_is_a_code_in_the_mapping() {
    let captures = Captures::new();
    let (file, mapping) = (captures.path("odd.csv"), captures.path("mapping.csv"));
    let text = captures.read("one.csv").replace("sql", "s\u{9b}\u{202e}\u{e0041}ql");
    std::fs::write(&file, text).unwrap();
    let output = captures.path("anonymous.csv");
    let arguments = ["capture", "anonymize", &file, "-o", &output, "--mapping", &mapping];
    assert_eq!(captures.kavg(&arguments).code, 0);
    let mapping = captures.read("mapping.csv");
    assert!(!mapping.contains(['\u{9b}', '\u{202e}', '\u{e0041}']), "{mapping}");
    assert!(mapping.contains(r"s\u{9b}\u{202e}\u{e0041}ql"), "{mapping}");
}

#[test]
#[cfg(target_os = "linux")]
fn no_copy_without_names_stays_whose_mapping_has_no_room() {
    let captures = Captures::new();
    let (file, output) = (captures.path("one.csv"), captures.path("anonymous.csv"));
    let arguments = ["capture", "anonymize", &file, "-o", &output, "--mapping", "/dev/full"];
    let said = captures.kavg(&arguments);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(!std::path::Path::new(&output).exists());
}

#[test]
fn several_captures_without_names_are_numbered_and_nothing_read_is_written_over() {
    let captures = Captures::new();
    let hosts = [captures.path("lab.esx-1.csv"), captures.path("lab.esx-2.csv")];
    let output = captures.path("shared.csv");
    let said = captures.kavg(&["capture", "anonymize", &hosts[0], &hosts[1], "-o", &output]);
    assert_eq!(said.code, 0, "{said:?}");
    let hosts_in = |name: &str| captures.read(name).contains("\\\\host2\\");
    assert_eq!([hosts_in("shared.1.csv"), hosts_in("shared.2.csv")], [false, true]);
    let before = captures.read("one.csv");
    for command in ["cut", "anonymize", "merge"] {
        let file = captures.path("one.csv");
        let said = captures.kavg(&["capture", command, &file, "-o", &file]);
        assert_eq!(said.err, "kavg: one.csv: is read from; name another file\n");
        assert_eq!((said.code, captures.read("one.csv") == before), (2, true));
    }
    let kept = captures.path("long.csv");
    let said = captures.kavg(&["capture", "cut", &hosts[0], "--vm", "nobody", "-o", &kept]);
    assert_eq!((said.code, captures.read("long.csv").is_empty()), (2, false));
}

#[test]
fn the_plain_table_is_written_by_the_extension() {
    let captures = Captures::new();
    let file = captures.path("one.csv");
    let said = captures.kavg(&["capture", "convert", &file, "-o", &captures.path("plain.csv")]);
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
    assert!(captures.read("plain.csv").starts_with("time,host,kind,object,vm,device,adapter,"));
    #[cfg(feature = "parquet")]
    {
        let output = captures.path("plain.parquet");
        assert_eq!(captures.kavg(&["capture", "convert", &file, "-o", &output]).code, 0);
        assert!(std::fs::read(output).unwrap().starts_with(b"PAR1"));
    }
}

#[test]
fn histograms_of_vscsistats_are_told_in_a_line_each() {
    let captures = Captures::new();
    let file = captures.path("histograms.csv");
    let text = "\
Histogram: latency of IOs in Microseconds (us),virtual machine worldGroupID,2099979,virtual disk \
handleID,8194 (scsi0:1)
min,120
max,9000
mean,400
count,100
Frequency,Histogram Bucket Limit
10,100
86,500
4,1000
0,1000
";
    std::fs::write(&file, text).unwrap();
    let said = captures.kavg(&["capture", "histograms", &file]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let cells: Vec<_> = said.out.lines().nth(1).unwrap().split_whitespace().collect();
    let expected =
        ["2099979", "scsi0:1", "latency", "us", "all", "100", "120", "400", "9,000", "500"];
    assert_eq!(cells, expected);
}

#[test]
fn the_command_to_record_says_what_is_missing() {
    let captures = Captures::new();
    let part = captures.path("part.csv");
    let one = captures.path("one.csv");
    let arguments = ["capture", "cut", &one, "--group", "scsi device", "-o", &part];
    assert_eq!(captures.kavg(&arguments).code, 0);
    let said = captures.kavg(&["capture", "command", &part, "--every", "10s", "--samples", "60"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    insta::assert_snapshot!(said.out);
}

/// A capture of one device with eight commands outstanding, 1,600 a second at 5 ms, by a clock: the first sample
/// `firsts` times, 5 s apart.
fn one_device(zone: &str, firsts: usize) -> String {
    let columns = [
        ("Device Q Depth", "64", "64"),
        ("Active Commands", "8", "8"),
        ("Queued Commands", "0", "0"),
        ("Commands/sec", "0.00", "1600.00"),
        ("Average Driver MilliSec/Command", "0.00", "5.00"),
        ("Average Guest MilliSec/Command", "0.00", "5.00"),
    ];
    let mut text = format!("\"(PDH-CSV 4.0) {zone}\"");
    for (column, ..) in columns {
        text += &format!(",\"\\\\esx\\Physical Disk SCSI Device(naa.1)\\{column}\"");
    }
    for row in 0..firsts + 12 {
        let seconds = 5 * row;
        text += &format!("\n\"03/02/2026 10:{:02}:{:02}\"", seconds / 60, seconds % 60);
        for (_, first, busy) in columns {
            text += &format!(",\"{}\"", if row < firsts { first } else { busy });
        }
    }
    text + "\n"
}

#[test]
fn the_first_sample_once_more_is_no_silence() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("esx.csv");
    for (firsts, left_out) in [(1, None), (2, Some("1 row at")), (3, Some("2 rows at"))] {
        std::fs::write(&file, one_device("(UTC)(0)", firsts)).unwrap();
        let said = kavg(&["diagnose", file.to_str().unwrap(), "--no-simulate"]);
        assert!(!said.out.contains("does not answer"), "{firsts}: {}", said.out);
        let told = " the beginning without rates, the first sample once more: left out";
        let told = left_out.map(|rows| format!("{rows}{told}"));
        assert_eq!(said.err.contains("once more"), told.is_some(), "{}", said.err);
        assert!(told.is_none_or(|told| said.err.contains(&told)), "{}", said.err);
    }
}

#[test]
fn times_of_another_clock_are_told_in_utc_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("esx.csv");
    let name = file.to_str().unwrap();
    std::fs::write(&file, one_device("(Eastern Standard Time)(300)", 1)).unwrap();
    let note = "times of Eastern Standard Time, 300 min west of UTC: told in UTC";
    let info = kavg(&["capture", "info", name]);
    assert!(
        info.out.contains("from 03/02/2026 15:00:05 to 03/02/2026 15:01:00 UTC"),
        "{}",
        info.out
    );
    assert!(info.out.contains(note), "{}", info.out);
    let diagnosed = kavg(&["diagnose", name, "--no-simulate", "--html", "-"]);
    assert!(diagnosed.out.contains("2026-03-02 15:00:00 to 15:01:00 UTC"), "{}", diagnosed.out);
    assert!(diagnosed.out.contains(note) && diagnosed.err.contains(note), "{}", diagnosed.err);
    let text = kavg(&["diagnose", name, "--no-simulate"]).out;
    assert!(text.contains("2026-03-02 15:00:00 to 15:01:00 UTC"), "{text}");
    let json = kavg(&["diagnose", name, "--no-simulate", "--json"]).out;
    assert!(json.contains("\"from_ms\": 1772463600000"), "{json}");
    std::fs::write(&file, one_device("", 1)).unwrap();
    let info = kavg(&["capture", "info", name]).out;
    assert!(info.contains("times are of the host's clock, told as UTC"), "{info}");
    assert!(info.contains("from 03/02/2026 10:00:05"), "{info}");
}
