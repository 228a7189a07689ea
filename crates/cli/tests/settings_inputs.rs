//! Settings of many hosts that are told by other things than whole outputs: what vendors say of their arrays, plug-ins
//! that are not NMP, captures, and files of other kinds.

mod common;

use std::{fs, path::Path};

use common::kavg;
use serde_json::Value;

/// A device as `storage core device list` shows it.
struct Shown {
    name: &'static str,
    vendor: &'static str,
    model: &'static str,
    depth: u32,
    dsnro: u32,
}

const SOLIDFIRE: Shown =
    Shown { name: "naa.6f47acc1", vendor: "SolidFir", model: "SSD SAN", depth: 64, dsnro: 32 };

impl Shown {
    fn text(&self) -> String {
        let Self { name, vendor, model, depth, dsnro } = self;
        format!(
            "{name}\n   Multipath Plugin: NMP\n   Vendor: {vendor}\n   Model: {model}\n   Is Local: false\n   Queue Full Sample \
             Size: 0\n   Queue Full Threshold: 0\n   Device Max Queue Depth: {depth}\n   No of outstanding IOs with \
             competing worlds: {dsnro}\n\n"
        )
    }
}

/// Writes a host with one driver, whose parameter is not set.
fn host(folder: &Path, name: &str, driver: (&str, &str), devices: &[Shown]) {
    let (module, parameter) = driver;
    let devices: String = devices.iter().map(Shown::text).collect();
    let text = format!(
        "   Product: VMware ESXi\n   Version: 7.0.3\n\n\
         HBA Name  Driver      Link State  UID   Capabilities  Description\n\
         --------  ----------  ----------  ----  ------------  -----------\n\
         vmhba1    {module:<10}  link-up     fc.1                A port\n\n\
         Name                      Type  Value  Description\n\
         ------------------------  ----  -----  -----------\n\
         {parameter:<24}  int          Depth\n\n{devices}"
    );
    fs::write(folder.join(format!("{name}.txt")), text).unwrap();
}

const QLOGIC: (&str, &str) = ("qlnativefc", "ql2xmaxqdepth");
const ISCSI: (&str, &str) = ("iscsi_vmk", "iscsivmk_LunQDepth");

fn settings(folder: &Path, more: &[&str]) -> common::Said {
    kavg(&[&["settings", folder.to_str().unwrap()], more].concat())
}

fn json(folder: &Path, more: &[&str]) -> Value {
    let said = settings(folder, &[more, &["--json"]].concat());
    serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"))
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// The lines of the first vendor that is named.
fn advised(report: &Value) -> Vec<String> {
    texts(&report["vendors"][0]["lines"]).into_iter().map(String::from).collect()
}

/// Devices, a host for each driver, what the lines end with, and what bounds them.
type Case = (
    Vec<Shown>,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
    Option<&'static str>,
);

#[test]
fn what_a_vendor_says_is_taken_as_it_is_printed() {
    let pure_nvme = Shown { vendor: "NVMe", model: "Pure Storage FlashA", dsnro: 64, ..SOLIDFIRE };
    let lowered = Shown { depth: 20, ..SOLIDFIRE };
    let beside = Shown { name: "naa.7", vendor: "DGC", model: "VRAID", ..SOLIDFIRE };
    let of = |vendor, model| Shown { vendor, model, ..SOLIDFIRE };
    let table: [Case; 8] = [
        (
            vec![SOLIDFIRE],
            &[QLOGIC],
            &["set -m qlnativefc -p ql2xmaxqdepth=254", "-m 254", "-O 254"],
            Some("qlnativefc gives 254 at most"),
        ),
        (
            vec![Shown { depth: 128, ..SOLIDFIRE }],
            &[ISCSI],
            &["LunQDepth=256", "-m 256", "-O 256"],
            None,
        ),
        (vec![lowered, beside], &[QLOGIC], &["=254", "-m 254", "-O 254"], Some("254 at most")),
        (vec![pure_nvme], &[QLOGIC], &["-O 32"], None),
        (
            vec![of("COMPELNT", "Compellent Vol")],
            &[QLOGIC],
            &["=254", "-m 254"],
            Some("254 at most"),
        ),
        (vec![of("DATERA", "IBLOCK")], &[QLOGIC], &["-m 16"], None),
        (vec![of("B*BRIDGE", "VDISK")], &[QLOGIC, ISCSI], &["=192", "-m 192", "-O 64"], None),
        (vec![of("3PARdata", "VV")], &[QLOGIC], &["-s 32 -q 4"], None),
    ];
    for (devices, drivers, expected, bound) in table {
        let folder = tempfile::tempdir().unwrap();
        for (place, driver) in drivers.iter().enumerate() {
            host(folder.path(), &format!("esx{place}"), *driver, &devices);
        }
        let report = json(folder.path(), &[]);
        let lines = advised(&report);
        for part in expected {
            assert!(lines.iter().any(|line| line.ends_with(part)), "{part}: {lines:?}");
        }
        let said = report["vendors"][0]["bound"].as_str();
        assert_eq!(said.is_some(), bound.is_some(), "{said:?}");
        assert!(said.unwrap_or_default().ends_with(bound.unwrap_or_default()), "{said:?}");
        let sets: Vec<&str> = lines.iter().flat_map(|line| ["--set", line]).collect();
        let report = json(folder.path(), &sets);
        for plan in report["plans"].as_array().unwrap() {
            assert!(plan["refused"].as_array().unwrap().is_empty(), "{plan:#}");
        }
        // All is said on the screen, and nobody takes the hosts for well.
        let said = settings(folder.path(), &[]);
        assert_eq!(said.code, 1);
        let is_shown = lines.iter().all(|line| said.out.contains(&format!("--set \"{line}\"")));
        assert!(is_shown, "{}", said.out);
        assert!(
            said.out.ends_with("All hosts are set alike, and not as vendors say.\n"),
            "{}",
            said.out
        );
    }
}

#[test]
fn hosts_that_have_all_that_is_within_reach_are_well() {
    let folder = tempfile::tempdir().unwrap();
    host(folder.path(), "a", QLOGIC, &[Shown { depth: 254, dsnro: 254, ..SOLIDFIRE }]);
    let said = settings(folder.path(), &[]);
    assert_eq!((said.code, json(folder.path(), &[])["vendors"].as_array().unwrap().len()), (0, 0));
}

#[test]
fn throttling_of_the_host_is_that_of_its_devices() {
    let folder = tempfile::tempdir().unwrap();
    let netapp = Shown { vendor: "NETAPP", model: "LUN C-Mode", ..SOLIDFIRE };
    host(folder.path(), "a", QLOGIC, &[netapp]);
    assert_eq!(advised(&json(folder.path(), &[])).len(), 1);
    let file = folder.path().join("a.txt");
    let option =
        |name, value| format!("   Path: /Disk/{name}\n   Type: integer\n   Int Value: {value}\n\n");
    let options = [option("QFullSampleSize", 32), option("QFullThreshold", 8)].concat();
    fs::write(&file, fs::read_to_string(&file).unwrap() + &options).unwrap();
    assert_eq!(settings(folder.path(), &[]).code, 0);
}

#[test]
fn no_host_is_planned_away_from_what_its_vendor_says() {
    let plan = |depths: [(u32, u32); 3]| {
        let folder = tempfile::tempdir().unwrap();
        for (name, (depth, dsnro)) in ["a", "b", "c"].into_iter().zip(depths) {
            host(folder.path(), name, ISCSI, &[Shown { depth, dsnro, ..SOLIDFIRE }]);
        }
        json(folder.path(), &[])["plans"].clone()
    };
    // 256 is what the vendor says: 128 is nearer than 32, and 16 is not.
    let left = plan([(128, 32), (128, 32), (128, 128)]);
    assert_eq!(left[0]["plan"]["now"], Value::Array(Vec::new()));
    assert_eq!(left[0]["host"], "c");
    let why = left[0]["refused"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("SolidFire: its vendor says 256 [S4], from which most hosts"), "{why}");
    let raised = plan([(128, 32), (128, 32), (128, 16)]);
    assert!(texts(&raised[0]["plan"]["now"])[0].ends_with("-O 32"), "{raised}");
    assert_eq!(raised[0]["refused"], Value::Array(Vec::new()));
}

#[test]
fn a_line_is_for_devices_of_the_vendor_alone() {
    let folder = tempfile::tempdir().unwrap();
    let second = Shown { name: "naa.6f47acc2", ..SOLIDFIRE };
    let names = |other| {
        let other = Shown { name: other, vendor: "DGC", model: "VRAID", ..SOLIDFIRE };
        host(folder.path(), "a", QLOGIC, &[SOLIDFIRE, Shown { ..second }, other]);
        json(folder.path(), &[])["vendors"][1].clone()
    };
    let said = names("naa.7");
    let is = serde_json::json!([{ "value": "32", "dsnro": 32, "devices": 2 }]);
    assert_eq!((&said["array"], &said["source"]), (&"SolidFire".into(), &"S4".into()));
    assert_eq!((&said["kind"], &said["dsnro"], &said["is"]), (&"dsnro".into(), &256.into(), &is));
    assert_eq!(said["names"], "naa.6f47acc*");
    let said = names("naa.6f47acc3");
    assert_eq!((&said["names"], &said["lines"]), (&Value::Null, &serde_json::json!([])));
}

#[test]
fn no_line_of_nmp_is_planned_where_another_plug_in_has_the_paths() {
    let folder = tempfile::tempdir().unwrap();
    let text = SOLIDFIRE.text().replace("Plugin: NMP", "Plugin: HPP");
    for name in ["a", "b"] {
        fs::write(folder.path().join(format!("{name}.txt")), &text).unwrap();
    }
    for line in [
        "storage nmp device set -d * -P VMW_PSP_RR",
        "storage nmp psp roundrobin deviceconfig set -d * -t iops -I 1",
    ] {
        let report = json(folder.path(), &["--set", line]);
        let plans = report["plans"].as_array().unwrap();
        assert_eq!(plans.len(), 2);
        for plan in plans {
            assert_eq!(plan["plan"]["now"], Value::Array(Vec::new()));
            let why = plan["refused"][0]["why"].as_str().unwrap();
            assert!(why.contains("`storage hpp device set` is not read"), "{why}");
        }
        // A plan of nothing is none without a word.
        let said = settings(folder.path(), &["--set", line, "--plan", "esxcli"]);
        assert_eq!((said.code, said.out.as_str()), (1, ""));
        assert!(said.err.starts_with("not in the plan: a, b: storage nmp "), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1);
    }
}

/// A protocol endpoint of vVols is as deep as its own option says, and no LUN of which vendors say something.
#[test]
fn the_depth_of_a_protocol_endpoint_is_not_that_of_its_driver() {
    let folder = tempfile::tempdir().unwrap();
    let lun =
        |name, depth, dsnro| Shown { name, vendor: "PURE", model: "FlashArray", depth, dsnro };
    for (name, depth) in [("a", 64), ("b", 64), ("c", 32)] {
        host(folder.path(), name, QLOGIC, &[lun("naa.624a9370aa", depth, 32)]);
        let endpoint = lun("naa.624a9370bb", 128, 128).text();
        let endpoint = endpoint.replace("   Is Local", "   Is VVOL PE: true\n   Is Local");
        let file = folder.path().join(format!("{name}.txt"));
        let told = fs::read_to_string(&file).unwrap() + &endpoint;
        let set = told.replace("int          Depth", &format!("int   {depth}     Depth"));
        fs::write(&file, set).unwrap();
    }
    let report = json(folder.path(), &[]);
    assert_eq!(report["vendors"], serde_json::json!([]));
    let plans = report["plans"].as_array().unwrap();
    let plan = &plans.iter().find(|plan| plan["host"] == "c").unwrap()["plan"];
    let module = "esxcli system module parameters set -m qlnativefc -p ql2xmaxqdepth=64";
    assert_eq!((texts(&plan["now"]), texts(&plan["before_reboot"])), (vec![], vec![module]));
}

#[test]
fn a_plan_without_a_majority_says_so() {
    let folder = tempfile::tempdir().unwrap();
    host(folder.path(), "a", QLOGIC, &[Shown { vendor: "DGC", ..SOLIDFIRE }]);
    host(folder.path(), "b", QLOGIC, &[Shown { vendor: "DGC", dsnro: 8, ..SOLIDFIRE }]);
    let said = settings(folder.path(), &["--plan", "ansible"]);
    assert_eq!(said.code, 1);
    assert!(said.err.starts_with("nothing is planned: no value is that of most hosts"), "{said:?}");
}

const DEVICE: &str = "naa.60000000000000000000000000000001";

/// A capture of a host of that name, whose device is so deep.
fn capture(folder: &Path, file: &str, host: &str, depth: u32) {
    let path = folder.join(format!("{file}.csv"));
    let scenario = fs::read_to_string(common::data().join("two-queues.toml")).unwrap();
    let scenario = scenario
        .replace("\"fnic\"", "\"qlnativefc\"")
        .replace("host.esx01", &format!("host.{host}"));
    let file = folder.join(".scenario.toml");
    fs::write(&file, scenario).unwrap();
    let set = format!("storage core device set -d {DEVICE} -m {depth}");
    let [file, csv] = [&file, &path].map(|path| path.to_str().unwrap());
    let said = kavg(&["run", file, "-q", "--csv", csv, "--set", &set]);
    assert_ne!(said.code, 2, "{said:?}");
}

/// The lines of a host's plan and of its way back, and why others are none.
fn planned(report: &Value, host: &str) -> [Vec<String>; 3] {
    let plans = report["plans"].as_array().unwrap();
    let plan = plans.iter().find(|plan| plan["host"] == host).unwrap();
    let why = plan["refused"].as_array().unwrap().iter().map(|one| one["why"].to_string());
    let lines = |plan: &Value| texts(&plan["now"]).into_iter().map(String::from).collect();
    [lines(&plan["plan"]), lines(&plan["undo"]), why.collect()]
}

#[test]
fn captures_show_the_limit_that_was_in_force_and_what_may_be_typed() {
    let folder = tempfile::tempdir().unwrap();
    let all = [("a", 48), ("b", 48), ("c", 64), ("d", 40)];
    all.into_iter()
        .for_each(|(name, depth)| capture(folder.path(), name, &format!("esx-{name}"), depth));
    let report = json(folder.path(), &[]);
    let differs = &report["differences"][0];
    // Hosts are called as they call themselves.
    let others = &differs["values"][0]["hosts"];
    assert_eq!(
        (&differs["kind"], others),
        (&"dqlen".into(), &serde_json::json!(["esx-a", "esx-b"]))
    );
    // What is deeper can be lowered; of what gives less nobody knows how much it can.
    let line = |depth| format!("esxcli storage core device set -d {DEVICE} -m {depth}");
    let [lines, back, _] = planned(&report, "esx-c");
    assert_eq!((lines, back), (vec![line(48)], vec![line(64)]));
    let [lines, _, why] = planned(&report, "esx-d");
    assert!(
        lines.is_empty() && why[0].contains("nothing tells which driver it is behind"),
        "{why:?}"
    );
    let set = format!("storage core device set -d {DEVICE} -m 64");
    assert!(
        planned(&json(folder.path(), &["--set", &set]), "esx-a")[2][0].contains("nothing tells")
    );
    // What may be DSNRO is no model.
    all.into_iter()
        .take(2)
        .for_each(|(name, _)| capture(folder.path(), name, &format!("esx-{name}"), 32));
    let [lines, _, why] = planned(&json(folder.path(), &[]), "esx-c");
    assert!(lines.is_empty() && why[0].contains("a capture shows DSNRO"), "{why:?}");
    assert_eq!(planned(&json(folder.path(), &["--like", "esx-a"]), "esx-c")[0], [line(32)]);
}

#[test]
fn hosts_that_call_themselves_alike_are_told_apart_by_their_files() {
    let folder = tempfile::tempdir().unwrap();
    ["a", "b"].into_iter().for_each(|name| capture(folder.path(), name, "localhost", 64));
    let report = json(folder.path(), &[]);
    let names: Vec<_> =
        report["hosts"].as_array().unwrap().iter().map(|host| &host["host"]).collect();
    assert_eq!(names, ["a", "b"]);
    // One of which there are outputs besides is one host with them.
    let folder = tempfile::tempdir().unwrap();
    capture(folder.path(), "monday", "esx", 64);
    host(folder.path(), "esx", QLOGIC, &[SOLIDFIRE]);
    assert_eq!(json(folder.path(), &[])["hosts"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_no_output_is_left_out_of_a_folder_and_refused_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    host(folder.path(), "a", QLOGIC, &[Shown { vendor: "DGC", ..SOLIDFIRE }]);
    for (name, text, why) in [
        ("notes.txt", "Hello\n", "notes.txt: this is no output of esxcli that is understood"),
        ("scsi.csv", "Histogram,1\n", "scsi.csv:1: this is no esxtop capture"),
    ] {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        let said = settings(folder.path(), &[]);
        assert_eq!((said.code, said.err.lines().count()), (0, 1), "{said:?}");
        assert!(said.err.starts_with("left out: ") && said.err.contains(why), "{}", said.err);
        assert!(said.out.starts_with("1 host, "), "{}", said.out);
        let alone = kavg(&["settings", file.to_str().unwrap()]);
        assert!(alone.code == 2 && alone.err.contains(why), "{alone:?}");
        fs::remove_file(file).unwrap();
    }
    // A folder of nothing else is refused, and so is an output with a number that is none.
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("notes.txt"), "Hello\n").unwrap();
    let said = settings(other.path(), &[]);
    assert!(said.code == 2 && said.err.contains("this is no output of esxcli"), "{said:?}");
    let text = SOLIDFIRE.text().replace(": 64", ": many");
    fs::write(folder.path().join("b.txt"), text).unwrap();
    let said = settings(folder.path(), &[]);
    assert!(said.code == 2 && said.err.contains("is 'many'; expected a whole number"), "{said:?}");
}
