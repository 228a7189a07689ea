//! What a run says of its own scenario: its causes are those that the file plants, and every line
//! that it proposes is one that this scenario takes.

mod common;

use std::{collections::BTreeMap, path::Path};

use common::{data, json};
use counters::{DeviceId, Time};
use engine::{Engine, Input};
use knobs::{Advanced, Knob};
use scenario::{Host, Scenario};
use serde_json::Value;
use sim::Source;

/// A scenario of one host, an array and what is put into it.
fn scenario(array: &str, adapter: &str, rest: &str) -> String {
    format!(
        "title = \"t\"\nduration = \"24s\"\nwarmup = \"4s\"\nsample = \"1s\"\n[array.box]\n{array}\n\
         [host.esx01.adapter.vmhba1]\n{adapter}\n{rest}"
    )
}

/// The driver of an adapter whose paths are found dead as soon as they are: what is told of those that are down counts.
const TOLD_AT_ONCE: &str = "driver = \"qlnativefc\"\ndead_after = \"0s\"";

/// A run of a text, as JSON.
fn run(text: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("made.toml");
    std::fs::write(&file, text).unwrap();
    json(&["run", "--json", file.to_str().unwrap()])
}

/// The findings of the last window.
fn findings(run: &Value) -> Vec<&Value> {
    let windows = run["windows"].as_array().unwrap();
    let verdicts = windows.last().unwrap()["verdicts"].as_array().unwrap();
    verdicts.iter().flat_map(|verdict| verdict["findings"].as_array().unwrap()).collect()
}

fn causes(run: &Value) -> Vec<&str> {
    findings(run).iter().map(|finding| finding["cause"].as_str().unwrap()).collect()
}

const VM: &str = "[vm.sql.disk.\"scsi0:1\"]\ndatastore = \"prod\"\n";

#[test]
fn a_saturated_array_without_qos_is_not_called_qos() {
    let rest = format!(
        "[datastore.prod]\narray = \"box\"\n{VM}[vm.sql.workload]\nthreads = 64\n\
         [array.fast]\nservers = 64\nservice = \"0.2ms\"\n[datastore.gold]\narray = \"fast\"\n\
         [vm.web.disk.\"scsi0:1\"]\ndatastore = \"gold\"\n[vm.web.workload]\nthreads = 8\n"
    );
    let array = "servers = 4\nservice = \"2ms\"\nspread = \"constant\"";
    let run = run(&scenario(array, "driver = \"nfnic\"\nlun_depth = 128", &rest));
    assert_eq!(causes(&run)[0], "array-slow");
    let sentence = findings(&run)[0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("array box is saturated: it works "), "{sentence}");
    assert!(!causes(&run).contains(&"array-qos"));
}

#[test]
fn an_array_whose_load_is_known_is_not_to_be_looked_at_but_relieved() {
    let rest = format!("[datastore.prod]\ndsnro = 128\n{VM}[vm.sql.workload]\nthreads = 60\n");
    let adapter = "driver = \"lpfc\"\nlun_depth = 128";
    let guest = "[vm.sql]\nguest = \"linux\"\ncount = 2\n";
    let run = run(&scenario("servers = 16\nservice = \"5ms\"", adapter, &(rest + guest)));
    let found = findings(&run)[0];
    assert_eq!(found["cause"], "array-slow");
    assert!(found["changes"][0]["what"].as_str().unwrap().starts_with("Ask less of the array"));
    assert!(found["raise_confidence"].as_array().unwrap().is_empty());
}

#[test]
fn a_saturated_flash_array_is_no_health() {
    let rest = format!("[datastore.prod]\n{VM}[vm.sql.workload]\nthreads = 60\n");
    let run = run(&scenario(
        "servers = 4\nservice = \"0.1ms\"",
        "driver = \"nfnic\"\nlun_depth = 128",
        &rest,
    ));
    assert_eq!(causes(&run), ["array-slow"]);
}

/// 1 Gbit/s carries 119 MiB/s: 595 commands a second of 205 KiB. Nothing has a policy.
#[test]
fn a_full_link_is_no_policy() {
    let rest = format!(
        "[datastore.prod]\n{VM}[vm.sql.workload]\nthreads = 4\nsize = \"8k\"\n\
         [vm.bk.disk.\"scsi0:1\"]\ndatastore = \"prod\"\n[vm.bk.workload]\nthreads = 16\n\
         size = \"256k\"\nstart = \"14s\"\n"
    );
    let array = "servers = 32\nservice = \"0.6ms\"\nlink = \"1Gbit/s\"";
    let run = run(&scenario(array, "driver = \"iscsi_vmk\"", &rest));
    assert_eq!(causes(&run)[0], "array-slow");
    let sentence = findings(&run)[0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("the link to array box is "), "{sentence}");
    assert!(!causes(&run).contains(&"array-qos"));
}

/// At 3,000 a second ten threads take 3.33 ms each, whatever another volume does: less of that is as
/// much more wait for the policy.
#[test]
fn who_is_held_by_a_policy_is_nobodys_victim() {
    let rest = format!(
        "[array.box.qos.q]\nmax = 3000\n[datastore.prod]\nqos = \"q\"\n{VM}[vm.sql.workload]\n\
         threads = 10\n[datastore.busy]\n[vm.b.disk.\"scsi0:1\"]\ndatastore = \"busy\"\n\
         [vm.b.workload]\nthreads = 60\n"
    );
    let run = run(&scenario("servers = 16\nservice = \"0.5ms\"", "driver = \"lpfc\"", &rest));
    let about_sql = |finding: &&&Value| {
        let sufferers = finding["sufferers"].as_array().unwrap();
        sufferers.iter().any(|party| party["name"] == "sql")
    };
    let findings = findings(&run);
    let causes: Vec<_> = findings.iter().filter(about_sql).map(|f| &f["cause"]).collect();
    assert_eq!(causes, ["array-qos"]);
}

/// Of 32 commands that wait for the 32 slots all but two wait for limits: no deeper queue helps them.
#[test]
fn who_waits_for_a_limit_is_no_victim_of_a_full_queue() {
    let vm = |name: &str, disk: &str, threads: u32| {
        format!(
            "[vm.{name}.disk.\"scsi0:1\"]\ndatastore = \"prod\"\n{disk}\n[vm.{name}.workload]\n\
             threads = {threads}\n"
        )
    };
    let with = |rest: String| {
        let limited = vm("a", "limit = 1000", 16) + &vm("b", "limit = 3000", 16);
        let rest = format!("[datastore.prod]\n{limited}{rest}");
        run(&scenario(
            "servers = 64\nservice = \"0.4ms\"",
            "driver = \"lpfc\"\nlun_depth = 64",
            &rest,
        ))
    };
    let alone = with(vm("c", "adapter = \"lsilogic\"", 100));
    assert_eq!(causes(&alone)[..2], ["iops-limit", "iops-limit"]);
    assert!(!causes(&alone).contains(&"dsnro"));
    let beside = with(vm("c", "", 45) + &vm("d", "", 10));
    let finding = *findings(&beside).iter().find(|finding| finding["cause"] == "dsnro").unwrap();
    let sufferers = finding["sufferers"].as_array().unwrap();
    let named = |name: &str| sufferers.iter().any(|party| party["name"] == name);
    assert!(named("c") && !named("a") && !named("b"), "{sufferers:?}");
}

/// For 3 s of 10 thirty threads share 1,000 commands a second: 30 ms each, beside free slots.
#[test]
fn a_limit_that_holds_in_bursts_is_told() {
    let rest = format!(
        "[datastore.prod]\n{VM}limit = 1000\n[vm.sql.workload]\nthreads = 30\non = \"3s\"\n\
         off = \"7s\"\n[vm.x.disk.\"scsi0:1\"]\ndatastore = \"prod\"\n[vm.x.workload]\nthreads = 2\n"
    );
    let run = run(&scenario("servers = 64\nservice = \"0.4ms\"", "driver = \"lpfc\"", &rest));
    assert_eq!(causes(&run), ["iops-limit"]);
    assert_eq!(findings(&run)[0]["sufferers"][0]["name"], "sql");
}

/// The second half of a window saturates its array or its link, the first leaves both alone.
#[test]
fn a_load_of_half_a_window_is_judged_where_it_is_there() {
    let halves = |threads: u32, size: &str| {
        format!(
            "[datastore.prod]\n{VM}[vm.sql]\nguest = \"linux\"\n[vm.sql.workload]\nthreads = 4\n\
             phases = [{{ for = \"12s\" }}, {{ for = \"12s\", threads = {threads} }}]\nsize = \"{size}\"\n"
        )
    };
    let cases = [
        (
            "servers = 32\nservice = \"0.5ms\"",
            halves(240, "8k"),
            "most of a command's time there is wait for others",
        ),
        (
            "servers = 256\nservice = \"0.3ms\"\nlink = \"400MB/s\"",
            halves(100, "64k"),
            "the link to array box is 100 % full",
        ),
    ];
    for (array, rest, expected) in cases {
        let run = run(&scenario(array, "driver = \"lpfc\"\nlun_depth = 254", &rest));
        assert_eq!(causes(&run), ["array-slow"], "{array}");
        let finding = findings(&run)[0];
        assert!(finding["sentence"].as_str().unwrap().contains(expected), "{finding}");
        assert_eq!(finding["window"]["samples"], 12, "{}", finding["window"]);
    }
}

/// A guest at its depth above a device queue that is full: the queue is what is raised.
#[test]
fn nothing_is_raised_above_a_queue_that_is_full() {
    let rest = format!(
        "[datastore.prod]\n{VM}[vm.sql]\nguest = \"windows\"\ncount = 3\n[vm.sql.workload]\n\
         arrival = \"poisson\"\nrate = 17000\nsize = \"8k\"\n"
    );
    let array = "servers = 128\nservice = \"0.5ms\"\nround_trip = \"0.1ms\"";
    let run = run(&scenario(array, "driver = \"lpfc\"\nlun_depth = 128", &rest));
    assert_eq!(causes(&run), ["dsnro", "virtual-disk-cap"]);
    let finding = findings(&run)[1];
    assert_eq!(finding["also"].as_array().unwrap().len(), 2, "{finding}");
    assert_eq!(finding["changes"].as_array().unwrap().len(), 0, "{finding}");
    let not = finding["do_not"][0].as_str().unwrap();
    assert!(not.contains("the device queue below it is full"), "{not}");
}

#[test]
fn a_policy_of_the_array_is_known() {
    let array =
        "servers = 64\nservice = \"0.3ms\"\n[array.box.qos.bronze]\nmax = 20000\nburst = 20000";
    let rest = format!(
        "[datastore.prod]\nqos = \"bronze\"\n{VM}[vm.sql.workload]\nthreads = 60\nsize = \"4k\"\n"
    );
    let run = run(&scenario(array, "driver = \"nfnic\"\nlun_depth = 128", &rest));
    assert_eq!(causes(&run), ["array-qos"]);
}

/// A VM with so many threads on a volume with a policy of so many commands a second.
fn under_policy(max: u32, threads: u32) -> Value {
    let array = format!(
        "servers = 128\nservice = \"0.5ms\"\nround_trip = \"0.1ms\"\n[array.box.qos.p]\nmax = {max}"
    );
    let rest = format!(
        "[datastore.prod]\nqos = \"p\"\n{VM}[vm.sql.workload]\nthreads = {threads}\nsize = \"8k\"\n"
    );
    run(&scenario(&array, "driver = \"lpfc\"\nlun_depth = 128", &rest))
}

#[test]
fn a_policy_that_takes_most_of_a_quick_commands_time_is_known() {
    for (max, threads) in [(20_000, 60), (10_000, 20), (40_000, 60), (2_000, 5)] {
        let run = under_policy(max, threads);
        assert_eq!(causes(&run), ["array-qos"], "{max}");
        let sentence = findings(&run)[0]["sentence"].as_str().unwrap();
        assert!(sentence.starts_with("The QoS policy of array box holds "), "{sentence}");
    }
    assert!(causes(&under_policy(60_000, 20)).is_empty());
}

#[test]
fn an_iops_limit_on_nfs_is_known() {
    let run = |limit| {
        let rest = format!(
            "[datastore.prod]\nkind = \"nfs\"\n{VM}limit = {limit}\n[vm.sql.workload]\nthreads = 16\n\
             size = \"8k\"\n[vm.web.disk.\"scsi0:1\"]\ndatastore = \"prod\"\n[vm.web.workload]\nthreads = 2\n"
        );
        run(&scenario("servers = 128\nservice = \"0.5ms\"", "driver = \"lpfc\"", &rest))
    };
    assert!(causes(&run(40_000)).is_empty());
    let held = run(800);
    assert_eq!(causes(&held), ["iops-limit"]);
    assert_eq!(findings(&held)[0]["sufferers"][0]["name"], "sql:scsi0:1");
    let sentence = findings(&held)[0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("commands a second by its IOPS limit of 800: "), "{sentence}");
}

#[test]
fn a_dead_path_is_a_finding_whatever_the_latency() {
    let rest = format!(
        "[host.esx01.adapter.vmhba2]\n{TOLD_AT_ONCE}\n[datastore.prod]\n{VM}\
         [vm.sql.workload]\nthreads = 4\nrate = 500\n[[event]]\nat = \"2s\"\npath = \"vmhba2\"\nstate = \"down\"\n"
    );
    let run = run(&scenario("servers = 64\nservice = \"0.4ms\"", "driver = \"qlnativefc\"", &rest));
    assert_eq!(causes(&run), ["path-down"]);
    let sentence = findings(&run)[0]["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("vmhba2:C0:T0:L0 is down: 1 of the 2 paths of "), "{sentence}");
}

#[test]
fn an_iops_limit_that_an_event_sets_is_known() {
    let rest = format!(
        "[datastore.prod]\n{VM}[vm.sql.workload]\nthreads = 30\nsize = \"8k\"\n\
         [[event]]\nat = \"2s\"\nvm = \"sql\"\nallocation = {{ disk = \"scsi0:1\", limit = 733 }}\n"
    );
    let run = run(&scenario("servers = 64\nservice = \"0.4ms\"", "driver = \"nfnic\"", &rest));
    assert_eq!(causes(&run)[0], "iops-limit");
    let sentence = findings(&run)[0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("by its IOPS limit of 733"), "{sentence}");
}

#[test]
fn a_limit_that_an_event_raises_is_taken_back_to_what_it_is_then() {
    let rest = format!(
        "[datastore.prod]\n{VM}limit = 300\n[vm.sql.workload]\nthreads = 30\nsize = \"8k\"\n\
         [[event]]\nat = \"14s\"\nvm = \"sql\"\nallocation = {{ disk = \"scsi0:1\", limit = 400 }}\n"
    );
    let run = run(&scenario("servers = 64\nservice = \"0.4ms\"", "driver = \"nfnic\"", &rest));
    let finding = &findings(&run)[0];
    let sentence = finding["sentence"].as_str().unwrap();
    assert!(sentence.contains("by its IOPS limit of 300, which is 400 at the end"), "{sentence}");
    let undo = &finding["changes"][0]["steps"][0]["undo"];
    assert_eq!(undo, "sql:scsi0:1: DiskLimitIOPerSecond 400");
}

#[test]
fn throttling_that_is_on_and_acts_is_known() {
    let rest = format!(
        "[datastore.prod]\n{VM}[vm.sql.workload]\nthreads = 64\n\
         [[event]]\nat = \"1s\"\nesxcli = \"system settings advanced set -o /Disk/QFullSampleSize -i 32\"\n"
    );
    let array = "servers = 32\nservice = \"0.5ms\"\nqueue_limit = 40";
    let run = run(&scenario(array, "driver = \"qlnativefc\"", &rest));
    assert!(causes(&run).contains(&"adaptive-throttling"), "{:?}", causes(&run));
}

#[test]
fn an_application_that_sends_no_more_is_not_at_the_depth_of_its_disk() {
    let rest = format!(
        "[datastore.prod]\n{VM}limit = 1941\n[vm.sql.workload]\narrival = \"poisson\"\n\
         rate = 4000\noutstanding = 32\nbacklog = 100\n"
    );
    let run = run(&scenario("servers = 16\nservice = \"1ms\"", "driver = \"lpfc\"", &rest));
    assert_eq!(causes(&run), ["iops-limit"]);
}

#[test]
fn a_vm_at_its_own_limit_is_no_victim_of_its_neighbour() {
    let rest = format!(
        "[datastore.prod]\n{VM}limit = 700\n[vm.sql.workload]\nthreads = 30\nsize = \"8k\"\n\
         [vm.free.disk.\"scsi0:1\"]\ndatastore = \"prod\"\n[vm.free.workload]\nthreads = 16\nsize = \"8k\"\n"
    );
    let run = run(&scenario(
        "servers = 64\nservice = \"0.4ms\"",
        "driver = \"nfnic\"\nlun_depth = 64",
        &rest,
    ));
    assert_eq!(causes(&run), ["iops-limit"]);
}

/// A file of a scenario, as a run reads it.
fn read(file: &Path) -> Result<String, String> {
    capture::read_text(file).map_err(|error| error.to_string())
}

/// The scenarios that ship and those of the tests.
fn files() -> Vec<std::path::PathBuf> {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = [shipped, data()].map(|directory| directory.read_dir().unwrap());
    let mut files: Vec<_> =
        entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    let is_scenario = |file: &Path| {
        file.extension().is_some_and(|extension| extension == "toml")
            && Source::load(file, Vec::new(), &read).is_ok()
    };
    files.retain(|file| is_scenario(file));
    files.sort();
    files
}

/// The lines of a change that set something, in their order: of esxcli, of PowerCLI or in the guest.
fn settings(change: &Value, key: &str) -> Vec<String> {
    let lines = change[key].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    let sets = |line: &&str| match key {
        "esxcli" => line.contains(" set "),
        "powercli" => ["$esxcli.", "Get-VM "].iter().any(|with| line.starts_with(with)),
        _ => ["reg add ", "echo "].iter().any(|with| line.starts_with(with)),
    };
    lines.filter(sets).map(String::from).collect()
}

/// What all verdicts of a run propose.
fn changes(run: &Value) -> impl Iterator<Item = &Value> {
    let verdicts = run["windows"].as_array().unwrap().iter();
    let verdicts = verdicts.flat_map(|window| window["verdicts"].as_array().unwrap());
    let findings = verdicts.flat_map(|verdict| verdict["findings"].as_array().unwrap());
    findings.flat_map(|finding| finding["changes"].as_array().unwrap())
}

/// What the hosts of a scenario are set to: limits as the engine has them, policies, options.
fn in_force(scenario: &Scenario) -> String {
    let of_host = |host: &Host| {
        let mut engine = Engine::new(&host.config);
        let mut options: BTreeMap<_, _> = BTreeMap::new();
        for knob in &host.settings {
            engine.handle_input(Time::ZERO, Input::Set(*knob)).unwrap();
            if let Knob::Advanced { option, value } = *knob {
                options.insert(option.info().path, value);
            }
        }
        let is_default = |path: &str, value: u32| {
            let info = Advanced::from_path(path).unwrap().info();
            info.option == Advanced::VvolPesnro || info.default == value
        };
        options.retain(|path, value| !is_default(path, *value));
        let devices = (0..host.config.devices.len()).map(DeviceId::new);
        let devices: Vec<_> = devices.map(|id| engine.device_limits(id)).collect();
        let policies: Vec<_> = host.config.devices.iter().map(|d| d.path_policy).collect();
        let (adapters, disks) = (&host.config.vscsi, &host.config.vdisks);
        let throttles = |knob: &&Knob| matches!(knob, Knob::QueueFull { .. });
        let throttles: Vec<_> = host.settings.iter().filter(throttles).collect();
        format!("{devices:?}{policies:?}{adapters:?}{disks:?}{options:?}{throttles:?}")
    };
    scenario.hosts.iter().map(of_host).collect()
}

/// Every line that is proposed is fed back after those before it in its change: it is taken, and it
/// changes what is in force.
#[test]
fn every_line_that_is_proposed_is_taken_and_changes_something() {
    let (mut told, mut refused, mut idle) = (0, Vec::new(), Vec::new());
    for file in files() {
        let run = json(&["run", "--json", file.to_str().unwrap()]);
        let (_, scenario) = Source::load(&file, Vec::new(), &read).unwrap();
        let of_change = |change| ["esxcli", "powercli", "guest"].map(|key| settings(change, key));
        for lines in changes(&run).flat_map(of_change) {
            let mut with = scenario.clone();
            for line in lines {
                told += 1;
                let before = in_force(&with);
                match with.set(&line) {
                    Err(error) => refused.push(format!("{}: {error}", file.display())),
                    Ok(()) if in_force(&with) == before => {
                        idle.push(format!("{}: {line}", file.display()));
                    }
                    Ok(()) => {}
                }
            }
        }
    }
    assert!(told > 20, "{told}");
    assert!(refused.is_empty(), "{} of {told}: {refused:#?}", refused.len());
    assert!(idle.is_empty(), "{} of {told}: {idle:#?}", idle.len());
}

#[test]
fn the_window_in_which_something_is_wrong_is_shown() {
    let rest = format!(
        "[datastore.prod]\n{VM}[vm.sql.workload]\nthreads = 4\nrate = 500\n\
         [[event]]\nat = \"12s\"\npath = \"vmhba1\"\nstate = \"down\"\n\
         [[window]]\nname = \"up\"\nto = \"12s\"\n[[window]]\nname = \"down\"\nfrom = \"13s\"\n"
    );
    let text = scenario("servers = 64\nservice = \"0.4ms\"", "driver = \"qlnativefc\"", &rest);
    let out = common::kavg_with(&["run", "-"], &text).out;
    assert!(out.contains("The stack in window down, "), "{out}");
    assert!(causes(&run(&text)).contains(&"silence"));
}

/// A scenario in which one host of competing VMs fills the queue of a device.
fn competing(adapter: &str, datastore: &str, vm: &str) -> String {
    let rest = format!("[datastore.prod]\n{datastore}\n{VM}{vm}");
    scenario("servers = 64\nservice = \"2ms\"", adapter, &rest)
}

#[test]
fn a_depth_and_a_dsnro_that_both_hold_the_queue_are_one_change() {
    let vms = "[vm.sql]\ncount = 4\n[vm.sql.workload]\nthreads = 30\n";
    let run = run(&competing("driver = \"lpfc\"\nlun_depth = 32", "dsnro = 32", vms));
    let change = &findings(&run)[0]["changes"][0];
    let lines = settings(change, "esxcli");
    assert!(lines[0].contains("lpfc_lun_queue_depth="), "{lines:?}");
    assert!(lines[1].contains("storage core device set -d "), "{lines:?}");
    let windows = run["windows"].as_array().unwrap();
    let advice = windows.last().unwrap()["verdicts"][0]["advice"].as_str().unwrap();
    assert!(advice.contains("and after the reboot DSNRO of "), "{advice}");
}

/// A host on which lines of esxcli set Device Max Queue Depth of the device that a VM works on, from the
/// beginning or by events every 3 s.
fn lowered(array: &str, threads: u32, first: u32, depths: &[u32]) -> Value {
    let device = "naa.60000000000000000000000000000001";
    let line = |depth: u32| format!("esxcli storage core device set -d {device} -m {depth}");
    let mut rest = format!(
        "[datastore.prod]\ndevice = \"{device}\"\ndsnro = 8\n{VM}[vm.sql.workload]\n\
         threads = {threads}\n[vm.sql]\nguest = \"linux\"\n"
    );
    for (at, depth) in (5..).step_by(3).zip(depths) {
        rest += &format!("[[event]]\nat = \"{at}s\"\nesxcli = \"{}\"\n", line(*depth));
    }
    let text = scenario(array, "driver = \"qlnativefc\"", &rest);
    run(&format!("esxcli = [\"{}\"]\n{text}", line(first)))
}

#[test]
fn a_device_that_was_lowered_is_not_held_by_its_driver() {
    // `-m` lowers one device below what its driver gives every one [QD254].
    const QUICK: &str = "servers = 200\nservice = \"6ms\"";
    let run = lowered(QUICK, 48, 24, &[]);
    let [finding] = findings(&run)[..] else { panic!("{:?}", causes(&run)) };
    let sentence = finding["sentence"].as_str().unwrap();
    assert!(sentence.contains("which was lowered: the HBA's driver gives 64)"), "{sentence}");
    let change = &finding["changes"][0];
    assert!(change["esxcli"][0].as_str().unwrap().ends_with(" -m 64"), "{change}");
    assert_eq!((&finding["cause"], &change["effect"]), (&"device-depth".into(), &"at-once".into()));
    // kavg has no Storage I/O Control, and throttling is off: `-m` holds what waits at each depth.
    for depths in [&[58, 51, 45, 40, 36, 40][..], &[16, 48], &[58, 20, 33, 20]] {
        let run = lowered(QUICK, 100, 64, depths);
        let [finding] = findings(&run)[..] else { panic!("{depths:?}: {:?}", causes(&run)) };
        let what = finding["changes"][0]["what"].as_str().unwrap();
        let last = format!("to {} in the end", depths.last().unwrap());
        assert!(what.contains("at the 64 that") && what.contains(&last), "{depths:?}: {what}");
    }
    // As deep as anybody fills, at every step; and what is slow stays slow.
    let depths = &[58, 51, 45, 40, 36, 40];
    assert!(causes(&lowered(QUICK, 16, 64, depths)).is_empty());
    let run = lowered("spindles = 12\nraid = \"0\"\nservice = \"11ms\"", 120, 64, depths);
    assert_eq!(causes(&run)[0], "array-slow");
    assert!(!causes(&run).contains(&"sioc"));
}

#[test]
fn dsnro_is_raised_no_further_than_its_range() {
    let vms = "[vm.sql]\ncount = 4\n[vm.sql.workload]\nthreads = 60\n";
    let run = run(&competing("driver = \"lpfc\"\nlun_depth = 512", "", vms));
    let lines = settings(&findings(&run)[0]["changes"][0], "esxcli");
    assert!(lines[0].ends_with(" -O 256"), "{lines:?}");
}

/// A device is called by its datastore in words, never in what is typed.
#[test]
fn no_command_stands_in_the_words_of_a_change() {
    for file in files() {
        let run = json(&["run", "--json", file.to_str().unwrap()]);
        for change in changes(&run) {
            let what = change["what"].as_str().unwrap();
            assert!(!what.contains(" -d "), "{}: {what}", file.display());
            for line in change["esxcli"].as_array().unwrap() {
                assert!(!line.as_str().unwrap().contains(" ("), "{}: {line}", file.display());
            }
        }
    }
}

#[test]
fn dsnro_of_a_protocol_endpoint_is_set_where_it_is_in_force() {
    let vms = "[vm.sql]\ncount = 2\n[vm.sql.workload]\nthreads = 60\n";
    let line = |datastore: &str| {
        let run = run(&competing("driver = \"nfnic\"\nlun_depth = 128", datastore, vms));
        let changes = findings(&run)[0]["changes"].as_array().unwrap().clone();
        changes.iter().flat_map(|change| settings(change, "esxcli")).next().unwrap()
    };
    assert!(line("kind = \"vvol\"\ndsnro = 32").contains("storage core device set -d "));
}

/// 32 threads, 8 of them at the server: 24 wait in the host, which no counter of NFS tells.
#[test]
fn slots_that_an_nfs_mount_lacks_are_told_and_no_server_is_blamed() {
    let rest = "[datastore.prod]\nkind = \"nfs\"\n[vm.sql.disk.\"scsi0:1\"]\ndatastore = \"prod\"\n\
        [vm.sql.workload]\nthreads = 32\n[[event]]\nat = \"0s\"\n\
        esxcli = \"system settings advanced set -o /NFS/MaxQueueDepth -i 8\"\n";
    let run = run(&scenario("servers = 64\nservice = \"10ms\"", "driver = \"nfnic\"", rest));
    let [short] = &findings(&run)[..] else { panic!("{:?}", findings(&run)) };
    assert_eq!(short["cause"], "device-depth");
    let lines = settings(&short["changes"][0], "esxcli");
    assert!(lines[0].ends_with("/NFS/MaxQueueDepth -i 64"), "{lines:?}");
}

#[test]
fn a_host_with_ats_switched_off_is_told_to_switch_it_on() {
    let rest = format!(
        "[host.esx02.adapter.vmhba1]\ndriver = \"nfnic\"\n[datastore.prod]\n\
         [datastore.prod.metadata]\nrate = 20\nlock = \"ats\"\n{VM}[vm.sql]\nhost = \"esx01\"\n\
         [vm.sql.workload]\nthreads = 8\n[[event]]\nat = \"0s\"\n\
         esxcli = \"system settings advanced set -o /VMFS3/HardwareAcceleratedLocking -i 0\"\n"
    );
    let run = run(&scenario("servers = 64\nservice = \"2ms\"", "driver = \"nfnic\"", &rest));
    let found = findings(&run).into_iter().find(|f| f["cause"] == "reservation-conflicts").unwrap();
    let lines = settings(&found["changes"][0], "esxcli");
    assert!(lines[0].ends_with("/VMFS3/HardwareAcceleratedLocking -i 1"), "{lines:?}");
}

/// Where a finding of a run stands: window, host, cause, object.
fn place(window: &Value, verdict: &Value, finding: &Value) -> [String; 4] {
    [&window["name"], &verdict["host"], &finding["cause"], &finding["at"]].map(ToString::to_string)
}

/// The limit of each finding of a run, and the latency of each VM in each window.
fn figures(run: &Value) -> (BTreeMap<[String; 4], Value>, BTreeMap<[String; 2], f64>) {
    let (mut limits, mut latencies) = (BTreeMap::new(), BTreeMap::new());
    for window in run["windows"].as_array().unwrap() {
        for verdict in window["verdicts"].as_array().unwrap() {
            for finding in verdict["findings"].as_array().unwrap() {
                limits.insert(place(window, verdict, finding), finding["limit"].clone());
            }
        }
        let hosts = window["hosts"].as_array().unwrap().iter();
        for object in hosts.flat_map(|host| host["objects"].as_array().unwrap()) {
            let value = |key: &str| object["counters"][key].as_f64().unwrap_or(0.0);
            let time = value("reads") * value("lat_rd") + value("writes") * value("lat_wr");
            if object["kind"] == "vm" && value("cmds") > 0.0 {
                let name = object["name"].as_str().unwrap().to_owned();
                latencies.insert([window["name"].to_string(), name], time / value("cmds"));
            }
        }
    }
    (limits, latencies)
}

/// The first change of a finding that sets something, as it is typed on its host.
fn first_change(verdict: &Value, finding: &Value) -> Option<Vec<String>> {
    let host = verdict["host"].as_str().unwrap();
    let changes = finding["changes"].as_array().unwrap().iter();
    let mut lines = changes.flat_map(|change| {
        let esxcli = settings(change, "esxcli").into_iter().map(|line| format!("{host}: {line}"));
        [esxcli.collect(), settings(change, "guest"), settings(change, "powercli")]
    });
    lines.find(|lines: &Vec<String>| !lines.is_empty())
}

/// What is proposed first of each finding is fed back: then the finding is gone, or it meets another
/// limit, or who suffers is quicker. Windows in which the scenario sets something itself are left out.
#[test]
fn what_is_proposed_changes_what_it_promises_to() {
    const QUICKER: f64 = 0.95;
    let (mut told, mut idle) = (0, Vec::new());
    for file in files() {
        let path = file.to_str().unwrap();
        let (_, scenario) = Source::load(&file, Vec::new(), &read).unwrap();
        let sets = |window: &Value| {
            let to = window["to_s"].as_f64().unwrap();
            scenario.events.iter().any(|event| {
                matches!(event.action, scenario::Action::Set(_)) && event.at.0 as f64 <= to * 1e9
            })
        };
        let run = json(&["run", "--json", path]);
        let (before, was) = figures(&run);
        let mut tried = BTreeMap::new();
        for window in run["windows"].as_array().unwrap().iter().filter(|window| !sets(window)) {
            let verdicts = window["verdicts"].as_array().unwrap().iter();
            let findings = verdicts.flat_map(|v| {
                v["findings"].as_array().unwrap().iter().map(move |finding| (v, finding))
            });
            for (verdict, finding) in findings {
                let Some(lines) = first_change(verdict, finding) else { continue };
                let (after, is) = tried.entry(lines.clone()).or_insert_with(|| {
                    let mut arguments = vec!["run", "--json", path];
                    arguments.extend(lines.iter().flat_map(|line| ["--set", line]));
                    figures(&json(&arguments))
                });
                told += 1;
                let key = place(window, verdict, finding);
                let is_other = after.get(&key).is_none_or(|limit| *limit != before[&key]);
                let sufferers = finding["sufferers"].as_array().unwrap().iter();
                let mut names = sufferers.map(|party| party["name"].as_str().unwrap());
                let is_quicker = names.any(|name| {
                    let vm = name.split(" of ").next().unwrap_or(name).to_owned();
                    let vm = [window["name"].to_string(), vm];
                    was.get(&vm).zip(is.get(&vm)).is_some_and(|(was, is)| *is < QUICKER * was)
                });
                if !is_other && !is_quicker {
                    idle.push(format!("{path}: {key:?}: {lines:?}"));
                }
            }
        }
    }
    assert!(told > 20, "{told}");
    assert!(idle.is_empty(), "{} of {told}: {idle:#?}", idle.len());
}

#[test]
fn who_waits_for_an_array_that_another_host_crowds_is_named_with_who_crowds_it() {
    for depth in [32, 128] {
        let rest = format!(
            "[host.esx02.adapter.vmhba1]\ndriver = \"lpfc\"\nlun_depth = {depth}\n\
             [datastore.a]\nhosts = [\"esx01\"]\n[datastore.b]\nhosts = [\"esx02\"]\n\
             [vm.victim]\nhost = \"esx01\"\n[vm.victim.disk.\"scsi0:1\"]\ndatastore = \"a\"\n\
             [vm.victim.workload]\nthreads = 2\n\
             [vm.bully]\nhost = \"esx02\"\n[vm.bully.disk.\"scsi0:1\"]\ndatastore = \"b\"\n\
             [vm.bully.workload]\nthreads = 64\n"
        );
        let run = run(&scenario("servers = 16\nservice = \"4ms\"", "driver = \"lpfc\"", &rest));
        assert_eq!(causes(&run), ["array-slow", "array-slow"], "{depth}");
        for (finding, victim, bully) in [
            (findings(&run)[0], "victim", "bully of esx02"),
            (findings(&run)[1], "victim of esx01", "bully"),
        ] {
            assert_eq!(finding["sufferers"][0]["name"], victim);
            assert_eq!(finding["causers"][0]["name"], bully);
            assert!(
                finding["do_not"][0].as_str().unwrap().starts_with("Do not raise queue depths")
            );
            assert!(finding["changes"][0]["esxcli"].as_array().unwrap().is_empty());
        }
    }
}

/// Bursts of a second in ten that no sample catches: 300 threads of Linux guests, which may have 254
/// out each, for the 32 slots of DSNRO.
#[test]
fn a_queue_that_is_full_between_the_samples_is_what_is_raised() {
    let rest = format!(
        "[datastore.prod]\n{VM}[vm.sql.workload]\narrival = \"poisson\"\nrate = 2000\n[vm.b]\n\
         count = 3\nguest = \"linux\"\n[vm.b.disk.\"scsi0:1\"]\ndatastore = \"prod\"\n\
         [vm.b.workload]\nthreads = 100\nsize = \"32k\"\non = \"400ms\"\noff = \"4600ms\"\n"
    );
    let adapter = "driver = \"lpfc\"\nlun_depth = 64";
    let run = run(&scenario("servers = 64\nservice = \"0.4ms\"", adapter, &rest));
    assert_eq!(causes(&run), ["dsnro"]);
}

/// Three that do the same crowd an array: to limit one of them alone helps by a third.
#[test]
fn of_those_that_crowd_an_array_alike_all_are_to_be_limited() {
    let rest = format!(
        "[datastore.prod]\n{VM}[vm.sql.workload]\nthreads = 4\n[datastore.busy]\n[vm.x]\n\
         count = 3\n[vm.x.disk.\"scsi0:1\"]\ndatastore = \"busy\"\n[vm.x.workload]\nthreads = 64\n"
    );
    let run = run(&scenario("servers = 16\nservice = \"0.5ms\"", "driver = \"lpfc\"", &rest));
    let what = findings(&run)[0]["changes"][0]["what"].as_str().unwrap();
    assert!(["x-1", "x-2", "x-3"].iter().all(|name| what.contains(name)), "{what}");
}

/// The headline of the last window.
fn headline(run: &Value) -> &str {
    let windows = run["windows"].as_array().unwrap();
    windows.last().unwrap()["verdicts"][0]["headline"].as_str().unwrap()
}

/// A VM behind two adapters, or one, of which the first goes down in the second window.
fn path_down(adapters: &str) -> Value {
    let rest = format!(
        "{adapters}[datastore.prod]\n{VM}[vm.sql.workload]\nthreads = 4\n\
         [[event]]\nat = \"12s\"\npath = \"vmhba1\"\nstate = \"down\"\n\
         [[window]]\nname = \"up\"\nto = \"12s\"\n[[window]]\nname = \"down\"\nfrom = \"13s\"\n"
    );
    run(&scenario("servers = 64\nservice = \"0.4ms\"", TOLD_AT_ONCE, &rest))
}

#[test]
fn a_lost_path_that_makes_nobody_slower_is_lost_redundancy() {
    let run = path_down("[host.esx01.adapter.vmhba2]\ndriver = \"qlnativefc\"\n");
    assert_eq!(
        headline(&run),
        "vmhba1:C0:T0:L0 on datastore prod: Path lost, redundancy is gone; nobody is slower."
    );
    assert!(findings(&run)[0]["sufferers"].as_array().unwrap().is_empty());
}

#[test]
fn a_path_that_comes_and_goes_is_told_with_all_its_outages() {
    let mut rest = format!(
        "[host.esx01.adapter.vmhba2]\ndriver = \"lpfc\"\n[datastore.prod]\npath_policy = \"fixed\"\n{VM}\
         [vm.sql.workload]\nthreads = 16\n"
    );
    for (place, at) in (6..24).step_by(3).enumerate() {
        let state = ["down", "up"][place % 2];
        rest += &format!("[[event]]\nat = \"{at}.5s\"\npath = \"vmhba1\"\nstate = \"{state}\"\n");
    }
    let run = run(&scenario("servers = 64\nservice = \"0.5ms\"", TOLD_AT_ONCE, &rest));
    assert_eq!(causes(&run), ["path-down"]);
    let sentence = findings(&run)[0]["sentence"].as_str().unwrap();
    assert!(sentence.contains(" It flaps: it went down 3 times and is up again"), "{sentence}");
    assert_eq!(findings(&run)[0]["window"]["samples"], 12);
}

#[test]
fn paths_that_go_down_by_turns_leave_one() {
    let mut rest = format!(
        "[host.esx01.adapter.vmhba2]\n{TOLD_AT_ONCE}\n[datastore.prod]\npath_policy = \"mru\"\n\
         {VM}[vm.sql.workload]\nthreads = 8\n"
    );
    let event = |at: usize, path: &str, state: &str| {
        format!("[[event]]\nat = \"{at}s\"\npath = \"{path}\"\nstate = \"{state}\"\n")
    };
    rest += &event(6, "vmhba1", "down");
    for (turn, at) in (9..24).step_by(3).enumerate() {
        let paths = ["vmhba1", "vmhba2"];
        rest += &event(at, paths[turn % 2], "up");
        rest += &event(at, paths[(turn + 1) % 2], "down");
    }
    let run = run(&scenario("servers = 64\nservice = \"0.5ms\"", TOLD_AT_ONCE, &rest));
    let sentence = findings(&run)[0]["sentence"].as_str().unwrap();
    let told = "by turns: never fewer than 1 of the 2 paths of";
    assert!(sentence.contains(told) && !sentence.contains("none of"), "{sentence}");
}

#[test]
fn who_stands_still_on_a_device_without_paths_is_named() {
    let run = path_down("");
    assert_eq!(headline(&run), "sql on datastore prod: Device does not answer.");
    let sentence = findings(&run)[0]["sentence"].as_str().unwrap();
    let told = "none completes, its path vmhba1:C0:T0:L0 is down.";
    assert!(sentence.ends_with(told), "{sentence}");
}

#[test]
fn a_workload_that_is_over_before_the_window_begins_is_told() {
    let rest = format!(
        "[datastore.prod]\n{VM}[vm.sql.workload]\nthreads = 4\nstop = \"3s\"\n\
         [vm.web.disk.\"scsi0:1\"]\ndatastore = \"prod\"\n[vm.web.workload]\nthreads = 1\n"
    );
    let run = run(&scenario("servers = 8\nservice = \"1ms\"", "driver = \"nfnic\"", &rest));
    let notes = run["windows"][0]["notes"].to_string();
    let told = "workload sql:scsi0:1 ended at 3 s, before the window begins at 4 s";
    assert!(notes.contains(told), "{notes}");
}

#[test]
fn headline_and_advice_fit_a_ticket() {
    for file in files() {
        let run = json(&["run", "--json", file.to_str().unwrap()]);
        let windows = run["windows"].as_array().unwrap().iter();
        for verdict in windows.flat_map(|window| window["verdicts"].as_array().unwrap()) {
            for line in [&verdict["headline"], &verdict["advice"]] {
                let line = line.as_str().unwrap_or_default();
                assert!(line.len() <= 156, "{}: {line}", file.display());
            }
        }
    }
}
