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

/// Nor does a parameter that is set beside the depth bound what a vendor says.
#[test]
fn another_parameter_changes_no_advice() {
    let advice = |others: &str| {
        let folder = tempfile::tempdir().unwrap();
        host(folder.path(), "a", QLOGIC, &[SOLIDFIRE]);
        let file = folder.path().join("a.txt");
        let text = fs::read_to_string(&file).unwrap();
        let depth = "ql2xmaxqdepth             int          Depth\n";
        assert!(text.contains(depth), "{text}");
        fs::write(&file, text.replace(depth, &format!("{depth}{others}"))).unwrap();
        let vendor = &json(folder.path(), &[])["vendors"][0];
        (advised(&json(folder.path(), &[])), vendor["bound"].clone())
    };
    assert_eq!(advice("ql2xlog                   int   3      Log\n"), advice(""));
}

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

/// The depth that DSNRO needs on one host lowers no other one: its lines are for that host.
#[test]
fn a_depth_that_a_vendor_needs_on_one_host_is_set_there_alone() {
    let pure =
        |depth, dsnro| Shown { vendor: "PURE", model: "FlashArray", depth, dsnro, ..SOLIDFIRE };
    let folder = tempfile::tempdir().unwrap();
    for (name, depth, dsnro) in [("a", 64, 32), ("b", 64, 32), ("c", 24, 24)] {
        host(folder.path(), name, QLOGIC, &[pure(depth, dsnro)]);
        let file = folder.path().join(format!("{name}.txt"));
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("int          Depth", &format!("int   {depth}     Depth")))
            .unwrap();
    }
    let lines = advised(&json(folder.path(), &[]));
    let expected = [
        "c: system module parameters set -m qlnativefc -p ql2xmaxqdepth=32",
        "c: storage core device set -d naa.6f47acc1 -m 32",
        "storage core device set -d naa.6f47acc1 -O 32",
    ];
    assert_eq!(lines, expected);
    let sets: Vec<&str> = lines.iter().flat_map(|line| ["--set", line]).collect();
    let report = json(folder.path(), &sets);
    let hosts: Vec<_> =
        report["plans"].as_array().unwrap().iter().map(|plan| &plan["host"]).collect();
    assert_eq!(hosts, ["c"], "{report:#}");
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

/// Throttling of a host is that of its devices, and weighed as theirs: of arrays that say different things each is
/// heard.
#[test]
fn no_host_is_planned_away_from_the_throttling_that_a_vendor_says() {
    let array = |name, vendor, model| Shown { name, vendor, model, ..SOLIDFIRE };
    let netapp = || array("naa.600a0980", "NETAPP", "LUN C-Mode");
    let threepar = || array("naa.60002ac0", "3PARdata", "VV");
    let other = || array("naa.60060160", "DGC", "VRAID");
    let plan = |devices: &[Shown], throttling: [(u32, u32); 3]| {
        let folder = tempfile::tempdir().unwrap();
        for (name, (size, threshold)) in ["a", "b", "c"].into_iter().zip(throttling) {
            host(folder.path(), name, QLOGIC, devices);
            let file = folder.path().join(format!("{name}.txt"));
            let options = [("QFullSampleSize", size), ("QFullThreshold", threshold)]
                .map(|(name, value)| format!("   Path: /Disk/{name}\n   Int Value: {value}\n\n"));
            fs::write(&file, fs::read_to_string(&file).unwrap() + &options.concat()).unwrap();
        }
        json(folder.path(), &[])["plans"].clone()
    };
    let now = |plans: &Value| plans[0]["plan"]["now"].as_array().unwrap().len();
    let off = [(32, 8), (0, 8), (0, 8)];
    let left = plan(&[netapp()], off);
    assert_eq!((&left[0]["host"], now(&left)), (&"a".into(), 0));
    let why = left[0]["refused"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("NetApp ONTAP: its vendor says 32 [KB-QF35], from which"), "{why}");
    assert_eq!(now(&plan(&[netapp(), threepar()], [(32, 4), (0, 8), (0, 8)])), 0);
    // Of another array nobody says anything, and what most have that is nearer is planned.
    assert_eq!(now(&plan(&[other()], off)), 1);
    assert_eq!(now(&plan(&[netapp()], [(0, 8), (32, 8), (32, 8)])), 1);
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

/// A file that was cut in the middle of a number tells another one, which would become every host's.
#[test]
fn what_was_cut_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        host(folder.path(), name, QLOGIC, &[SOLIDFIRE]);
    }
    let file = folder.path().join("b.txt");
    let text = fs::read_to_string(&file).unwrap();
    let (before, _) = text.rsplit_once("Device Max Queue Depth: ").unwrap();
    fs::write(&file, format!("{before}Device Max Queue Depth: 6")).unwrap();
    let said = settings(folder.path(), &["--like", "b"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("b.txt: it ends in the middle of a line"), "{}", said.err);
}

#[test]
fn a_depth_of_nothing_is_planned_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    host(folder.path(), "a", QLOGIC, &[SOLIDFIRE]);
    let report = json(folder.path(), &["--set", "storage core device set -d * -m 0"]);
    let plan = &report["plans"][0];
    assert_eq!(plan["plan"]["now"], Value::Array(Vec::new()), "{report}");
    let why = plan["refused"][0]["why"].as_str().unwrap();
    assert!(why.ends_with("allowed is 1 to what the driver gives"), "{why}");
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

/// A namespace of NVMe has its depth of its controller: no parameter of a driver for LUNs is set for it, and what
/// that gives LUNs is not told by it.
#[test]
fn no_driver_of_luns_is_set_for_a_namespace() {
    const NAMESPACE: &str = "eui.00e6a1234d5f0012";
    let folder = tempfile::tempdir().unwrap();
    let lun = |dsnro| Shown { vendor: "DGC", depth: 128, dsnro, ..SOLIDFIRE };
    for (name, depth) in [("a", 1023), ("b", 1023), ("c", 256)] {
        host(folder.path(), name, ISCSI, &[lun(32)]);
        let namespace = Shown { name: NAMESPACE, vendor: "NVMe", depth, ..SOLIDFIRE }.text();
        let namespace = namespace.replace("Plugin: NMP", "Plugin: HPP");
        let file = folder.path().join(format!("{name}.txt"));
        fs::write(&file, fs::read_to_string(&file).unwrap() + &namespace).unwrap();
    }
    let report = json(folder.path(), &[]);
    let plan = &report["plans"][0];
    assert_eq!((&plan["host"], &plan["plan"]["reboot"]), (&"c".into(), &false.into()));
    assert!(plan["refused"][0]["why"].as_str().unwrap().contains("nothing tells what"), "{plan:#}");
    // 256 is within no reach of the LUN, though the namespace has more.
    let lines = ["-m 256", "-O 256"].map(|set| format!("storage core device set -d naa.* {set}"));
    let [depth, dsnro] = &lines;
    let report = json(folder.path(), &["--set", depth, "--set", dsnro]);
    let plans = report["plans"].as_array().unwrap();
    assert_eq!(plans.len(), 3);
    for plan in plans {
        let why =
            plan["refused"].as_array().unwrap().iter().map(|one| one["why"].as_str().unwrap());
        assert!(why.clone().all(|why| why.contains("driver")) && why.count() == 2, "{plan:#}");
        assert_eq!(plan["plan"]["now"], serde_json::json!([]));
    }
    // With the driver it is.
    let module = "system module parameters set -m iscsi_vmk -p iscsivmk_LunQDepth=256";
    let report = json(folder.path(), &["--set", dsnro, "--set", module]);
    for plan in report["plans"].as_array().unwrap() {
        let after = texts(&plan["plan"]["after_reboot"]);
        assert!(after.len() == 1 && after[0].ends_with("-O 256"), "{plan:#}");
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

/// DSNRO of protocol endpoints follows their option, and no line of theirs is planned beside it.
#[test]
fn dsnro_of_protocol_endpoints_is_their_option() {
    let folder = tempfile::tempdir().unwrap();
    for (name, pesnro) in [("a", 256), ("b", 256), ("c", 128)] {
        host(folder.path(), name, ISCSI, &[Shown { vendor: "DGC", depth: 128, ..SOLIDFIRE }]);
        let endpoint =
            Shown { name: "naa.7", vendor: "DGC", depth: 128, dsnro: pesnro, ..SOLIDFIRE };
        let endpoint = endpoint.text().replace("   Is Local", "   Is VVOL PE: true\n   Is Local");
        let option = format!("   Path: /Scsi/ScsiVVolPESNRO\n   Int Value: {pesnro}\n");
        let file = folder.path().join(format!("{name}.txt"));
        fs::write(&file, fs::read_to_string(&file).unwrap() + &endpoint + &option).unwrap();
    }
    let line =
        |value| format!("esxcli system settings advanced set -o /Scsi/ScsiVVolPESNRO -i {value}");
    let [lines, back, why] = planned(&json(folder.path(), &[]), "c");
    assert_eq!((lines, back, why.len()), (vec![line(256)], vec![line(128)], 0));
    let set = "storage core device set -d naa.7 -O 250";
    let [_, _, why] = planned(&json(folder.path(), &["--set", set]), "c");
    assert!(why[0].contains("/Scsi/ScsiVVolPESNRO sets DSNRO of a protocol endpoint"), "{why:?}");
}

/// Adds the protocol endpoint of a SolidFire to the outputs of a host, with the value of its option.
fn add_endpoint(folder: &Path, name: &str, depth: u32, dsnro: u32) {
    let endpoint = Shown { name: ENDPOINT, depth, dsnro, ..SOLIDFIRE };
    let endpoint = endpoint.text().replace("   Is Local", "   Is VVOL PE: true\n   Is Local");
    let option = "   Path: /Scsi/ScsiVVolPESNRO\n   Int Value: 128\n";
    add(folder, name, &(endpoint + option));
}

const ENDPOINT: &str = "naa.6f47acc1d766f6c0";

/// What [S4] found, and what it typed: its endpoint had DSNRO 32 beside an option of 128, and took 256 as soon as the
/// driver gave as much.
#[test]
fn a_protocol_endpoint_that_is_as_deep_as_its_driver_lets_it_follows_that() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        host(folder.path(), name, ISCSI, &[Shown { depth: 128, ..SOLIDFIRE }]);
        add_endpoint(folder.path(), name, 128, 32);
    }
    let module = "system module parameters set -m iscsi_vmk -p iscsivmk_LunQDepth=256";
    let dsnro = format!("storage core device set -d {ENDPOINT} -O 256");
    let report = json(folder.path(), &["--set", module, "--set", &dsnro]);
    let plans = report["plans"].as_array().unwrap();
    assert_eq!(plans.len(), 2);
    for plan in plans {
        let lines = |plan: &Value| {
            let parts =
                ["now", "before_reboot", "after_reboot"].map(|part| texts(&plan[part]).join(" "));
            parts.map(|line| line.replace("esxcli ", ""))
        };
        assert_eq!(lines(&plan["plan"]), ["", module, &dsnro]);
        let back =
            [&dsnro, module].map(|line| line.replace("-O 256", "-O 32").replace("256", "128"));
        assert_eq!(lines(&plan["undo"]), [back[0].as_str(), &back[1], ""]);
        assert_eq!(plan["refused"], serde_json::json!([]));
    }
    // Without the driver it is refused, for the reason that the host gives.
    let [_, _, why] = planned(&json(folder.path(), &["--set", &dsnro]), "a");
    assert!(why[0].contains("Queue Depth is 128; set the depth of its driver as well"), "{why:?}");
    // What the vendor says is of the endpoint as well.
    let report = json(folder.path(), &[]);
    assert_eq!(report["vendors"][1]["is"][0]["devices"], 2, "{report:#}");
    let sets: Vec<String> = advised(&report);
    let sets: Vec<&str> = sets.iter().flat_map(|line| ["--set", line]).collect();
    let report = json(folder.path(), &sets);
    for plan in report["plans"].as_array().unwrap() {
        assert_eq!(texts(&plan["plan"]["after_reboot"]).len(), 2, "{plan:#}");
    }
}

/// The endpoint that is as its vendor says is left, though two are not; another vendor says nothing of endpoints.
#[test]
fn no_endpoint_is_planned_away_from_what_its_vendor_says() {
    let fleet = |dsnro: [u32; 3]| {
        let folder = tempfile::tempdir().unwrap();
        for (name, dsnro) in ["a", "b", "c"].into_iter().zip(dsnro) {
            host(folder.path(), name, ISCSI, &[]);
            let file = folder.path().join(format!("{name}.txt"));
            let text =
                fs::read_to_string(&file).unwrap().replace("int          D", "int   256    D");
            fs::write(&file, text).unwrap();
            add_endpoint(folder.path(), name, 256, dsnro);
        }
        json(folder.path(), &[])
    };
    let report = fleet([32, 32, 256]);
    let [lines, _, why] = planned(&report, "c");
    assert!(lines.is_empty() && why[0].contains("its vendor says 256 [S4]"), "{report:#}");
    let raise = format!("storage core device set -d {ENDPOINT} -O 256");
    assert_eq!(advised(&report), [&*raise]);
    assert_eq!(planned(&fleet([256, 256, 32]), "c")[0], [format!("esxcli {raise}")]);
}

/// Adds an output to those of a host.
fn add(folder: &Path, name: &str, output: &str) {
    let file = folder.join(format!("{name}.txt"));
    fs::write(&file, fs::read_to_string(&file).unwrap() + output).unwrap();
}

/// Some builds of lpfc give 30 where others give 32: no line for a device brings the two, the parameter does.
#[test]
fn the_parameter_makes_a_build_deeper_that_gives_less_than_others() {
    let folder = tempfile::tempdir().unwrap();
    let emulex = ("lpfc", "lpfc_lun_queue_depth");
    let lun = |name, depth| Shown { name, vendor: "DGC", depth, dsnro: depth, ..SOLIDFIRE };
    for (name, depth) in [("a", 32), ("b", 32), ("c", 30)] {
        host(folder.path(), name, emulex, &[lun("naa.1", depth), lun("naa.2", depth)]);
    }
    let report = json(folder.path(), &[]);
    let plans = report["plans"].as_array().unwrap();
    assert_eq!((plans.len(), &plans[0]["host"]), (1, &"c".into()), "{report:#}");
    let plan = &plans[0]["plan"];
    let set = "esxcli system module parameters set -m lpfc -p lpfc_lun_queue_depth=32";
    assert_eq!((texts(&plan["now"]), texts(&plan["before_reboot"])), (vec![], vec![set]));
    let dsnro = ["1", "2"].map(|of| format!("esxcli storage core device set -d naa.{of} -O 32"));
    assert_eq!(texts(&plan["after_reboot"]), dsnro);
    assert_eq!(plans[0]["refused"], serde_json::json!([]));
}

/// An adapter whose driver is in no table: that is told by its name, and no line lowers what is nearer to its vendor's
/// depth, because another host cannot be made as deep.
#[test]
fn a_driver_that_is_not_known_is_named_and_lowers_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = ("qedf", "qedf_depth");
    for (name, depth) in [("a", 64), ("b", 32)] {
        let lun = Shown { vendor: "COMPELNT", model: "Compellent Vol", depth, ..SOLIDFIRE };
        host(folder.path(), name, unknown, &[lun]);
    }
    let report = json(folder.path(), &[]);
    let said = &report["vendors"][0];
    assert_eq!((&said["value"], &said["lines"]), (&"255".into(), &serde_json::json!([])));
    assert_eq!(said["bound"], "driver qedf of b is not known, and gives 32");
    let said = settings(folder.path(), &[]).out;
    assert!(
        said.contains("\na, b: driver qedf is not known, and what it gives devices\n"),
        "{said}"
    );
    assert!(!said.contains("adapter list") && !said.contains("-m 32"), "{said}");
    let set = "storage core device set -d naa.6f47acc1 -m 128";
    let [_, _, why] = planned(&json(folder.path(), &["--set", set]), "a");
    assert!(why[0].contains("driver qedf is not known"), "{why:?}");
    // No host is held down by another one's driver either: 256 is what the vendor says, and one has it.
    let folder = tempfile::tempdir().unwrap();
    host(folder.path(), "a", QLOGIC, &[SOLIDFIRE]);
    host(folder.path(), "b", ISCSI, &[Shown { depth: 256, dsnro: 256, ..SOLIDFIRE }]);
    assert!(advised(&json(folder.path(), &[])).is_empty());
}

/// What only software iSCSI uses is not compared with hosts that have none, nor set there.
#[test]
fn an_option_of_a_transport_counts_hosts_that_have_it() {
    let folder = tempfile::tempdir().unwrap();
    for (name, driver, size) in
        [("fc1", QLOGIC, 128), ("fc2", QLOGIC, 128), ("is1", ISCSI, 512), ("is2", ISCSI, 512)]
    {
        host(folder.path(), name, driver, &[]);
        let option = format!("   Path: /ISCSI/MaxIoSizeKB\n   Int Value: {size}\n");
        add(folder.path(), name, &option);
    }
    assert_eq!(json(folder.path(), &[])["differences"], serde_json::json!([]));
    assert_eq!(json(folder.path(), &["--like", "is1"])["plans"], serde_json::json!([]));
    let set = "system settings advanced set -o /ISCSI/MaxIoSizeKB -i 256";
    let report = json(folder.path(), &["--set", set]);
    let hosts = report["plans"].as_array().unwrap().iter().map(|plan| &plan["host"]);
    assert_eq!(hosts.collect::<Vec<_>>(), ["is1", "is2"]);
    let said = settings(folder.path(), &["--set", &format!("fc*: {set}")]);
    assert!(said.code == 2 && said.err.contains("no host has what it sets"), "{said:?}");
}

/// What is off its default on a host, and what others tell nothing of, is not taken for alike.
#[test]
fn what_some_hosts_do_not_tell_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        host(folder.path(), name, ISCSI, &[Shown { vendor: "DGC", depth: 128, ..SOLIDFIRE }]);
    }
    assert_eq!(settings(folder.path(), &[]).code, 0);
    let option = |name, value, default| {
        format!("   Path: {name}\n   Int Value: {value}\n   Default Int Value: {default}\n\n")
    };
    // What is at its default is not worth a word: the others are most likely at theirs.
    add(folder.path(), "a", &option("/Disk/QFullThreshold", 8, 8));
    assert_eq!(settings(folder.path(), &[]).code, 0);
    add(folder.path(), "a", &option("/Disk/QFullSampleSize", 32, 0));
    let iscsi = "Name        Current  Default  Min  Max  Settable  Inherit\n\
                 ----------  -------  -------  ---  ---  --------  -------\n\
                 DelayedAck  false    true     na   na   true      false\n";
    add(folder.path(), "b", iscsi);
    let said = settings(folder.path(), &[]);
    let expected = "\nWhat is not told\n\
        b, c: /Disk/QFullSampleSize, which is 32 on a, and 0 by default (`esxcli system settings advanced list`)\n\
        a, c: DelayedAck, which is false on b, and true by default (`esxcli iscsi adapter param get`)\n\n\
        What several hosts tell does not differ.\n";
    assert!(said.code == 1 && said.out.ends_with(expected), "{said:?}");
    let untold = &json(folder.path(), &[])["untold"][0];
    let is = ["setting", "value", "default"].map(|key| untold[key].as_str().unwrap());
    assert_eq!(is, ["/Disk/QFullSampleSize", "32", "0"]);
    assert_eq!(untold["hosts"], serde_json::json!(["a"]));
    assert_eq!(untold["silent"], serde_json::json!(["b", "c"]));
    // As soon as all tell it, it is a difference like any other.
    for name in ["b", "c"] {
        add(folder.path(), name, &option("/Disk/QFullSampleSize", 0, 0));
    }
    let report = json(folder.path(), &[]);
    assert_eq!(report["differences"][0]["setting"], "/Disk/QFullSampleSize");
    assert_eq!(report["untold"].as_array().unwrap().len(), 1);
}

/// Writes a device as `storage nmp device list` shows it, with more outputs.
fn nmp(folder: &Path, name: &str, (policy, config): (&str, &str), more: &str) {
    let text = format!(
        "   Product: VMware ESXi\n   Version: 6.7.0\n\nnaa.1\n   Storage Array Type: VMW_SATP_ALUA\n   Path Selection \
         Policy: VMW_PSP_{policy}\n   Path Selection Policy Device Config: {{{config}}}\n   Working Paths: \
         vmhba1:C0:T0:L1\n\n{more}"
    );
    fs::write(folder.join(format!("{name}.txt")), text).unwrap();
}

const ROUND_ROBIN: (&str, &str) = ("RR", "policy=rr,iops=1000,bytes=10485760,useANO=0;");

#[test]
fn the_latency_policy_waits_for_its_option() {
    for (value, is_planned) in [(0, false), (1, true)] {
        let folder = tempfile::tempdir().unwrap();
        let latency = ("RR", "policy=latency,latencyEvalTime=180000,samplingCycles=16,useANO=0;");
        ["a", "b"].into_iter().for_each(|name| nmp(folder.path(), name, latency, ""));
        let option = format!("   Path: /Misc/EnablePSPLatencyPolicy\n   Int Value: {value}\n");
        nmp(folder.path(), "c", ROUND_ROBIN, &option);
        let [lines, _, why] = planned(&json(folder.path(), &[]), "c");
        assert_eq!((lines.len(), why.is_empty()), (usize::from(is_planned), is_planned));
        let first = "esxcli system settings advanced set -o /Misc/EnablePSPLatencyPolicy -i 1";
        assert!(is_planned || why[0].contains(first), "{why:?}");
    }
}

/// What kavg has no line for is told where hosts differ in it.
#[test]
fn other_controllers_and_delayed_acknowledgements_are_told() {
    let folder = tempfile::tempdir().unwrap();
    for (name, use_ano, delayed_ack) in [("a", 0, false), ("b", 0, false), ("c", 1, true)] {
        let config = format!("policy=rr,iops=1000,bytes=10485760,useANO={use_ano};");
        let iscsi = format!(
            "Name        Current  Default  Min  Max  Settable  Inherit\n\
             ----------  -------  -------  ---  ---  --------  -------\n\
             DelayedAck  {delayed_ack:<7}  true     na   na   true      false\n"
        );
        nmp(folder.path(), name, ("RR", &config), &iscsi);
    }
    let report = json(folder.path(), &[]);
    let told = report["differences"].as_array().unwrap().iter().map(|one| {
        let [kind, value, host] =
            [&one["kind"], &one["values"][1]["value"], &one["values"][1]["hosts"][0]];
        [kind, value, host].map(|text| text.as_str().unwrap())
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told, [["use-ano", "1", "c"], ["delayed-ack", "true", "c"]]);
    assert_eq!(report["plans"], serde_json::json!([]));
    let said = settings(folder.path(), &[]);
    assert!(
        said.code == 1 && said.out.contains("\nuseANO and DelayedAck are told alone"),
        "{said:?}"
    );
    let said = settings(folder.path(), &["--plan", "esxcli"]);
    assert!(said.err.starts_with("nothing is planned: "), "{}", said.err);
}

#[test]
fn the_way_back_to_fixed_has_its_preferred_path() {
    let folder = tempfile::tempdir().unwrap();
    ["a", "b"].into_iter().for_each(|name| nmp(folder.path(), name, ROUND_ROBIN, ""));
    let fixed = ("FIXED", "preferred=vmhba3:C0:T1:L1;current=vmhba3:C0:T1:L1");
    nmp(folder.path(), "c", fixed, "");
    let [lines, back, _] = planned(&json(folder.path(), &[]), "c");
    assert_eq!(lines, ["esxcli storage nmp device set -d naa.1 -P VMW_PSP_RR"]);
    let preferred = "storage nmp psp fixed deviceconfig set -d naa.1 -p vmhba3:C0:T1:L1";
    let policy = "esxcli storage nmp device set -d naa.1 -P VMW_PSP_FIXED";
    assert_eq!(back, [policy.to_owned(), format!("esxcli {preferred}")]);
    let said = settings(folder.path(), &["--plan", "powercli"]).out;
    let call = "# $esxcli.storage.nmp.psp.fixed.deviceconfig.set.Invoke(@{device='naa.1'; path='vmhba3:C0:T1:L1'})";
    assert!(said.contains(call), "{said}");
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
