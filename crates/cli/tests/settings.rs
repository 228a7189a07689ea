//! Settings of many hosts: what was planted is found and nothing else, and every line of a plan is taken by
//! the host that it is for. The hosts are engines, which refuse what a host refuses.

mod common;
#[path = "common/typed.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod typed;

use std::{collections::BTreeSet, fs, path::Path};

use common::kavg;
use serde_json::Value;
use testing::fleet::{DrawnHost, Planted, Size, draw};
use typed::{Host, folder, follow, json, settings, texts};

const SIZE: Size = Size { hosts: 14, devices: 8, one_in: 5 };
const SEEDS: std::ops::RangeInclusive<u64> = 1..=20;

/// What differs, by the words of who planted it.
fn claims(report: &Value) -> BTreeSet<Planted> {
    let mut claims = BTreeSet::new();
    for one in report["differences"].as_array().unwrap() {
        let kind = one["kind"].as_str().unwrap();
        let known =
            ["driver-depth", "max-queue-depth", "dsnro", "queue-full", "path-policy", "option"];
        let kind = known.into_iter().find(|known| *known == kind).unwrap();
        let device = if kind == "option" { &one["setting"] } else { &one["device"] };
        let others = one["values"].as_array().unwrap().iter();
        for value in others.filter(|value| value["value"] != one["majority"]) {
            claims.extend(texts(&value["hosts"]).map(|host| Planted {
                kind,
                device: device.as_str().map(String::from),
                host: host.into(),
                value: value["value"].as_str().unwrap().into(),
            }));
        }
    }
    claims
}

#[test]
fn what_was_changed_is_found_and_nothing_else() {
    for seed in SEEDS {
        let (hosts, planted) = draw(seed, SIZE);
        let folder = folder(&hosts);
        let report = json(folder.path(), &[]);
        assert_eq!(claims(&report), planted.iter().cloned().collect(), "seed {seed}");
        let is_as_said = report["vendors"].as_array().unwrap().is_empty();
        let code = settings(folder.path(), &[]).code;
        assert_eq!(code, i32::from(!planted.is_empty() || !is_as_said), "seed {seed}");
    }
}

#[test]
fn every_line_is_taken_and_hosts_are_alike_then_and_as_before_after_the_way_back() {
    for seed in SEEDS {
        let (hosts, _) = draw(seed, SIZE);
        let folder = folder(&hosts);
        let states = follow(&hosts, &json(folder.path(), &[]));
        assert!(states.iter().all(|state| *state == states[0]), "seed {seed}: {states:#?}");
        let states = follow(&hosts, &json(folder.path(), &["--like", "esx0003"]));
        // What a module was set to acts on others as soon as they boot.
        let is_booted = hosts[3].staged.is_none();
        assert!(
            !is_booted || states.iter().all(|state| *state == Host::of(&hosts[3]).state()),
            "seed {seed}"
        );
    }
}

#[test]
fn lines_that_are_set_everywhere_are_taken_or_refused_with_a_reason() {
    for seed in SEEDS {
        let (hosts, _) = draw(seed, SIZE);
        let folder = folder(&hosts);
        let (module, parameter, _) = hosts[0].driver;
        let depths = [24, 36, 50, 100, 200, 250];
        let depth = |at: u64| depths[((seed * 7 + at * 5) % 6) as usize];
        let module =
            format!("system module parameters set -m {module} -p {parameter}={}", depth(1));
        let dsnro = format!("storage core device set -d naa.624a9370* -O {}", depth(2));
        let most = format!("storage core device set -d *3 -m {}", depth(3));
        let some = format!("esx000*: storage core device set -d *1 -m {}", depth(4));
        for lines in [
            vec![&module],
            vec![&dsnro],
            vec![&most],
            vec![&dsnro, &most],
            vec![&module, &dsnro],
            vec![&module, &dsnro, &most, &some],
            vec![&dsnro, &some],
        ] {
            let sets: Vec<&str> = lines.iter().flat_map(|line| ["--set", line]).collect();
            let report = json(folder.path(), &sets);
            follow(&hosts, &report);
            let refused = report["plans"].as_array().unwrap().iter();
            // A depth of a device alone leaves the drivers as they are.
            let boots = |plan: &&Value| plan["plan"]["reboot"] == true;
            assert!(lines.contains(&&module) || !refused.clone().any(|plan| boots(&plan)));
            let refused = refused.flat_map(|plan| plan["refused"].as_array().unwrap());
            // Only a depth that something else does not give is out of reach of these.
            for refused in refused {
                let why = refused["why"].as_str().unwrap();
                let is_known = ["its Device Max Queue Depth is ", "its driver gives "];
                assert!(is_known.iter().any(|known| why.starts_with(known)), "{why}");
            }
        }
    }
}

/// Five hosts: one boots with another depth, one has another DSNRO.
fn five() -> Vec<DrawnHost> {
    let (mut hosts, _) = draw(2, Size { hosts: 5, devices: 3, one_in: u64::MAX });
    for (place, host) in hosts.iter_mut().enumerate() {
        host.depth = (place == 1).then_some(16);
        let depth = host.depth.unwrap_or(host.driver.2);
        host.devices.iter_mut().for_each(|device| device.max_depth = depth);
    }
    hosts[4].devices[2].dsnro = 8;
    hosts
}

#[test]
fn a_screen_says_what_differs_and_what_to_type() {
    let folder = folder(&five());
    let said = settings(folder.path(), &[]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    insta::assert_snapshot!(said.out);
}

#[test]
fn a_plan_is_printed_for_each_of_three_tools() {
    let folder = folder(&five());
    for form in ["esxcli", "powercli", "ansible"] {
        let said = settings(folder.path(), &["--plan", form]);
        assert_eq!((said.code, said.err.as_str()), (1, ""));
        insta::assert_snapshot!(form, said.out);
    }
}

/// A plan that is run as one script ends at the first reboot: what a host takes only then is not typed before.
#[test]
fn a_script_ends_at_a_reboot() {
    let hosts = five();
    let folder = folder(&hosts);
    let (module, parameter, _) = hosts[0].driver;
    let module = format!("system module parameters set -m {module} -p {parameter}=128");
    let dsnro = "storage core device set -d naa.624a9370* -O 100";
    let said = settings(folder.path(), &["--set", &module, "--set", dsnro, "--plan", "esxcli"]);
    assert_eq!(said.out.matches("\nexit # reboot esx").count(), 5, "{}", said.out);
    assert!(
        said.out.contains("\n# esx0000, after its reboot\nesxcli storage core"),
        "{}",
        said.out
    );
    let script = format!("esxcli() {{ echo \"$@\"; }}\n{}", said.out);
    let run = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8(run.stdout).unwrap(), format!("{module}\n"));
}

#[test]
fn a_line_that_is_refused_says_why_and_becomes_possible_with_the_one_before() {
    let hosts = five();
    let folder = folder(&hosts);
    let dsnro = "storage core device set -d naa.624a9370* -O 100";
    let said = settings(folder.path(), &["--set", dsnro]);
    insta::assert_snapshot!(said.out);
    let (module, parameter, _) = hosts[0].driver;
    let module = format!("system module parameters set -m {module} -p {parameter}=128");
    let report = json(folder.path(), &["--set", dsnro, "--set", &module]);
    let states = follow(&hosts, &report);
    assert!(states.iter().all(|state| state[..3].iter().all(|device| device == "128 100")));
    assert_eq!(report["plans"][0]["plan"]["after_reboot"].as_array().unwrap().len(), 3);
}

#[test]
fn a_driver_is_set_as_deep_as_the_devices_of_most_hosts_are() {
    let mut hosts = five();
    let [qlogic, cisco] =
        [("qlnativefc", "ql2xmaxqdepth", 64), ("nfnic", "lun_queue_depth_per_path", 32)];
    for (place, host) in hosts.iter_mut().enumerate() {
        (host.driver, host.depth) = (if place == 3 { cisco } else { qlogic }, None);
        host.devices.iter_mut().for_each(|device| device.max_depth = host.driver.2);
    }
    // One device of the other host was lowered, and stays behind when the driver is raised.
    hosts[3].devices[1].max_depth = 20;
    let report = json(folder(&hosts).path(), &[]);
    let states = follow(&hosts, &report);
    assert!(states.iter().all(|state| *state == states[0]));
    let plan = &report["plans"][0];
    assert_eq!(plan["host"], "esx0003");
    let line = "esxcli system module parameters set -m nfnic -p lun_queue_depth_per_path=64";
    assert_eq!(texts(&plan["plan"]["before_reboot"]).collect::<Vec<_>>(), [line]);
    let line = format!("esxcli storage core device set -d {} -m 64", hosts[3].devices[1].name);
    assert_eq!(texts(&plan["plan"]["after_reboot"]).collect::<Vec<_>>(), [line]);
}

/// A host whose driver goes deeper than most: its devices are lowered, and no reboot brings them back.
#[test]
fn the_way_back_raises_what_the_plan_lowered() {
    let mut hosts = five();
    hosts[1].depth = None;
    let depth = hosts[0].driver.2;
    hosts[1].devices.iter_mut().for_each(|device| device.max_depth = depth);
    let deep = &mut hosts[3];
    deep.driver = ("iscsi_vmk", "iscsivmk_LunQDepth", 128);
    for device in &mut deep.devices {
        (device.max_depth, device.dsnro) = (128, 128);
    }
    let report = json(folder(&hosts).path(), &[]);
    let states = follow(&hosts, &report);
    assert!(states[3].iter().zip(&states[0]).take(2).all(|(own, other)| own == other));
    let plan = &report["plans"][0];
    assert_eq!((&plan["host"], &plan["undo"]["reboot"]), (&"esx0003".into(), &false.into()));
    let undo: Vec<&str> = texts(&plan["undo"]["now"]).collect();
    assert!(undo[0].ends_with(" -m 128") && undo[1].ends_with(" -O 128"), "{undo:?}");
}

/// Sets another parameter of a host's module, in its outputs.
fn set_another_parameter(folder: &Path, host: &DrawnHost) {
    let file = folder.join(format!("{}.txt", host.name));
    let others = "ql2xother                 int   7      Another\n";
    let text = fs::read_to_string(&file).unwrap();
    let at = text.find(&format!("{:<24}  int", host.driver.1)).unwrap();
    fs::write(&file, format!("{}{others}{}", &text[..at], &text[at..])).unwrap();
}

#[test]
fn a_line_of_a_module_repeats_its_other_parameters() {
    let hosts = five();
    let folder = folder(&hosts);
    set_another_parameter(folder.path(), &hosts[1]);
    let report = json(folder.path(), &[]);
    let plan = &report["plans"][0];
    let (module, parameter, default) = hosts[1].driver;
    for (lines, depth) in [(&plan["plan"], default), (&plan["undo"], 16)] {
        let lines: Vec<&str> = texts(&lines["before_reboot"]).collect();
        let parameters = format!("-m {module} -p '{parameter}={depth} ql2xother=7'");
        assert!(lines.iter().any(|line| line.ends_with(&parameters)), "{lines:?}");
    }
    let line = format!("system module parameters set -m {module} -p '{parameter}=32 x=1'");
    let said = settings(folder.path(), &["--set", &line]);
    let refusal = "other parameters of a module stay as each host has them; leave out `x=1`";
    assert!(said.code == 2 && said.err.contains(refusal), "{said:?}");
}

#[test]
fn hosts_that_are_alike_are_told_so() {
    let hosts = &five()[2..4];
    let said = settings(folder(hosts).path(), &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.ends_with("All hosts are set alike, as far as their outputs tell.\n"));
    assert_eq!(settings(folder(hosts).path(), &["--plan", "esxcli"]).out, "");
}

/// By Fixed, hosts take the volumes of an active/passive array from each other; most of them are no model then.
#[test]
fn fixed_is_not_planned_for_an_active_passive_array() {
    for (satp, planned) in [("VMW_SATP_DEFAULT_AP", false), ("VMW_SATP_DEFAULT_AA", true)] {
        let folder = tempfile::tempdir().unwrap();
        for (host, policy) in [("a", "FIXED"), ("b", "FIXED"), ("c", "MRU")] {
            let text = format!(
                "naa.1\n   Device Display Name: x\n   Storage Array Type: {satp}\n   Path Selection Policy: VMW_PSP_{policy}\n   \
                 Path Selection Policy Device Config: {{}}\n   Working Paths: vmhba1:C0:T0:L1\n"
            );
            fs::write(folder.path().join(format!("{host}.txt")), text).unwrap();
        }
        let lines = settings(folder.path(), &["--plan", "esxcli"]).out;
        assert_eq!(
            lines.contains("storage nmp device set -d naa.1 -P VMW_PSP_FIXED"),
            planned,
            "{lines}"
        );
        let said = settings(folder.path(), &[]).out;
        assert_eq!(said.contains("hosts take it from each other"), !planned, "{said}");
    }
}

#[test]
fn outputs_of_a_host_may_lie_in_a_folder_of_its_name_or_in_folders_of_each_command() {
    let folder = tempfile::tempdir().unwrap();
    for host in five() {
        let text = host.outputs();
        // The name of a device has a line of its own.
        let display = text.find("   Device Display Name").unwrap();
        let at = text[..display - 1].rfind('\n').unwrap() + 1;
        let (devices, nmp) = text.split_at(at);
        for (kind, text) in [("devices", devices), ("nmp", nmp)] {
            for path in [format!("each/{}/{kind}", host.name), format!("{kind}/{}.out", host.name)]
            {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        }
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let each = kavg(&["settings", &path("each")]);
    assert_eq!((each.code, each.err.as_str()), (1, ""));
    let kinds = kavg(&["settings", &path("devices"), &path("nmp")]);
    assert_eq!(each.out, kinds.out);
}

#[test]
fn what_cannot_be_compared_is_refused_in_a_line() {
    let hosts = five();
    let good = folder(&hosts);
    let good = good.path();
    let bad = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = bad.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let depth = file("depth.txt", "naa.1\n   Devfs Path: x\n   Device Max Queue Depth: many\n");
    let other = file("other.txt", "Hello\n");
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let good = good.to_str().unwrap();
    let own = format!("{good}/esx0001.txt");
    let twice = file("a.txt", "naa.1\n   Device Max Queue Depth: 64\n");
    fs::create_dir(bad.path().join("d")).unwrap();
    let once_more = file("d/a.txt", "naa.1\n   Device Max Queue Depth: 32\n");
    let cases: &[(&[&str], &str)] = &[
        (
            &[&twice, &once_more],
            "a: 'Device Max Queue Depth' of naa.1 is 64 in one output and 32 in",
        ),
        (&["nowhere"], "kavg: nowhere: "),
        (&[empty], "holds no file; a host has a file, or a folder of files, of its name"),
        (&[&depth], "depth.txt:3: 'Device Max Queue Depth' is 'many'; expected a whole number"),
        (&[good, &other], "other.txt: this is no output of esxcli that is understood"),
        (&[good, "--like", "esx9"], "there is no host `esx9`; it is one of `esx0000`"),
        (&[good, "--set", "reboot"], "there is no command `reboot`"),
        (&[good, "--set", "storage core device set -d naa.5 -O 64"], "no host has what it sets"),
        (&[good, "--set", "sql: DiskLimitIOPerSecond 5"], "esxcli sets nothing of that kind"),
        (&[good, "-o", &own], "esx0001.txt: is read from; name another file"),
        (&[good, "--plan", "salt"], "[possible values: esxcli, powercli, ansible]"),
    ];
    for (arguments, expected) in cases {
        let said = kavg(&[&["settings"], *arguments].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}: {said:?}");
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{arguments:?}: {}", said.err);
    }
}

#[test]
fn what_is_written_to_a_file_is_what_is_printed() {
    let folder = folder(&five());
    let other = tempfile::tempdir().unwrap();
    let file = other.path().join("said");
    for form in [&["--plan", "ansible"][..], &[]] {
        let said = settings(folder.path(), &[form, &["-o", file.to_str().unwrap()]].concat());
        assert_eq!((said.code, said.out.as_str()), (1, ""));
        let printed = settings(folder.path(), form).out;
        assert_eq!(fs::read_to_string(&file).unwrap(), printed);
    }
}
