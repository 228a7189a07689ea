//! `kavg esxcli` on a daemon at work: what it prints is what esxcli prints, and what it sets is set.

#[path = "common/control.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod control;
#[path = "common/daemon.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod daemon;
#[path = "common/nbd.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod nbd;

use std::{
    fs,
    process::{Command, Output},
};

use capture::{Esxcli, parse_esxcli};
use control::Control;
use daemon::{Site, TWO_DISKS as DISKS};
use nbd::{Client, READ};
use serde_json::{Value, json};

const DEVICE: &str = "naa.60000000000000000000000000000001";
/// Of a host with ESXi 8, from the reference [LIST8].
const LIST8: &str = include_str!("data/esxcli-core-device-list.txt");

fn kavg(site: &Site, words: &[&str]) -> Output {
    let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
    kavg.args(words).current_dir(site.directory.path()).output().expect("the binary starts")
}

/// What a line of esxcli prints.
fn esxcli(site: &Site, line: &str) -> String {
    let output = kavg(site, &["esxcli", "--live", "c", line]);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).expect("it writes UTF-8")
}

/// What is said of a line that is refused.
fn refusal(site: &Site, line: &str) -> String {
    let output = kavg(site, &["esxcli", "--live", "c", line]);
    assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
    String::from_utf8(output.stderr).expect("it writes UTF-8")
}

/// The depth and DSNRO of the device, as the reader of captures sees them.
fn depths(site: &Site) -> (Option<u32>, Option<u32>) {
    let text = esxcli(site, "storage core device list");
    let Ok(Esxcli::Devices(devices)) = parse_esxcli("list", &text) else { panic!("{text}") };
    assert_eq!(devices.len(), 1);
    assert_eq!(devices[0].name, DEVICE);
    (devices[0].max_queue_depth, devices[0].dsnro)
}

#[test]
fn lists_are_those_of_a_host() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    let list = esxcli(&site, "storage core device list");
    let keys = |text: &str| -> Vec<String> {
        let fields = text.lines().filter_map(|line| line.strip_prefix("   "));
        fields.map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(keys(&list), keys(LIST8));
    assert_eq!(depths(&site), (Some(64), Some(32)));
    let nmp = esxcli(&site, "storage nmp device list");
    let Ok(Esxcli::Nmp(devices)) = parse_esxcli("nmp", &nmp) else { panic!("{nmp}") };
    assert_eq!(devices[0].psp.as_deref(), Some("VMW_PSP_FIXED"));
    assert_eq!(devices[0].working_paths, ["vmhba1:C0:T0:L0"]);
    let adapters = esxcli(&site, "storage core adapter list");
    let Ok(Esxcli::Adapters(adapters)) = parse_esxcli("adapters", &adapters) else {
        panic!("{adapters}")
    };
    let named = adapters.iter().map(|adapter| (adapter.name.as_str(), adapter.driver.as_str()));
    assert_eq!(named.collect::<Vec<_>>(), [("vmhba1", "qlnativefc"), ("vmhba2", "qlnativefc")]);
    let mut client = Client::on(&site.socket(), "a:scsi0:0", false);
    (0..3).for_each(|_| assert_eq!(client.write(0, 0, &[1; 4096]), 0));
    let stats = esxcli(&site, "storage core device stats get");
    assert!(
        stats.contains("   Successful Commands: 3\n   Blocks Read: 0\n   Blocks Written: 24\n")
    );
    // Those of a host, in its order.
    let failed: Vec<&str> = stats.lines().filter(|line| line.starts_with("   Failed ")).collect();
    let parts = ["Commands", "Blocks Read", "Blocks Written"];
    let operations = ["Read", "Write", "Reserve"].map(|kind| format!("{kind} Operations"));
    let expected = parts.map(String::from).into_iter().chain(operations);
    let expected = expected.map(|part| format!("   Failed {part}: 0"));
    assert_eq!(failed, expected.collect::<Vec<_>>());
    let worlds = esxcli(&site, "storage core device world list");
    assert_eq!(worlds.lines().count(), 4, "{worlds}");
    assert!(worlds.lines().nth(2).is_some_and(|line| line.ends_with("  vmm0:a")));
    daemon.stop();
}

#[test]
fn programs_read_lists_as_esxcli_formats_them() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    let formatted = |formatter: &str, words: &str| {
        let mut line = vec!["esxcli", "--live", "c", formatter];
        line.extend(words.split(' '));
        let output = kavg(&site, &line);
        assert!(output.status.success(), "{line:?}: {output:?}");
        String::from_utf8(output.stdout).expect("it writes UTF-8")
    };
    let csv = formatted("--formatter=csv", "storage core device list");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 2, "{csv}");
    let value = |key: &str| {
        let column = lines[0].iter().position(|name| *name == key);
        lines[1][column.unwrap_or_else(|| panic!("{key}: {csv}"))]
    };
    // Scripts that people have read these; a comma stands behind the last.
    assert!(lines[0].is_sorted_by(|a, b| a < b || b.is_empty()), "{csv}");
    assert_eq!((lines[0].last(), lines[0].len()), (Some(&""), lines[1].len()));
    assert_eq!(value("Device"), DEVICE);
    assert_eq!(value("DeviceMaxQueueDepth"), "64");
    assert_eq!(value("NoofoutstandingIOswithcompetingworlds"), "32");
    let adapters = formatted("--formatter=csv", "storage core adapter list");
    assert!(adapters.starts_with("Capabilities,Description,Driver,HBAName,LinkState,UID,\n,"));
    let json = formatted("--formatter=json", "storage core device world list");
    let worlds: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(worlds.as_array().map(Vec::len), Some(2), "{json}");
    assert_eq!(worlds[0]["World Name"], "vmm0:a");
    assert!(worlds[0]["Open Count"].is_u64(), "{json}");
    let json = formatted("--formatter=json", "kavg disk list");
    let disks: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(disks[0]["DiskLimitIOPerSecond"], -1, "{json}");
    daemon.stop();
}

#[test]
fn what_is_set_is_listed_and_kept() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    let set = |words: &str| esxcli(&site, words);
    set(&format!("storage core device set -d {DEVICE} -O 16"));
    set(&format!("storage nmp device set -d {DEVICE} -P VMW_PSP_RR"));
    set(&format!("storage nmp psp roundrobin deviceconfig set -d {DEVICE} -t iops -I 1"));
    set("system settings advanced set -o /Disk/SchedQuantum -i 16");
    set("b: DiskLimitIOPerSecond 700");
    assert_eq!(depths(&site), (Some(64), Some(16)));
    let nmp = esxcli(&site, "storage nmp device list");
    let Ok(Esxcli::Nmp(devices)) = parse_esxcli("nmp", &nmp) else { panic!("{nmp}") };
    assert_eq!(devices[0].psp.as_deref(), Some("VMW_PSP_RR"));
    assert_eq!(devices[0].round_robin_iops, Some(1));
    assert_eq!(devices[0].working_paths.len(), 2);
    let changed = esxcli(&site, "system settings advanced list -d");
    assert!(changed.contains("   Path: /Disk/SchedQuantum\n   Type: integer\n   Int Value: 16\n"));
    daemon.stop();
    let kept = fs::read_to_string(site.path("h.settings")).unwrap();
    assert_eq!(
        kept,
        format!(
            "kavg settings 1\nstorage core device set -d {DEVICE} -O 16\n\
             storage nmp psp roundrobin deviceconfig set -d {DEVICE} -t iops -I 1\n\
             system settings advanced set -o /Disk/SchedQuantum -i 16\n\
             b: DiskLimitIOPerSecond 700\nend\n"
        )
    );
    let daemon = site.serve(2, &["--control", "c"]);
    assert_eq!(depths(&site), (Some(64), Some(16)));
    daemon.stop();
}

#[test]
fn what_needs_a_reboot_waits_for_it_and_says_so() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    let line = "system module parameters set -m qlnativefc -p ql2xmaxqdepth=128";
    let said = kavg(&site, &["esxcli", "--live", "c", line]);
    let said = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said, "it acts when the daemon is begun anew, as after a reboot of the host\n");
    assert_eq!(depths(&site), (Some(64), Some(32)));
    let parameters = esxcli(&site, "system module parameters list -m qlnativefc");
    let Ok(Esxcli::Parameters(parameters)) = parse_esxcli("p", &parameters) else {
        panic!("{parameters}")
    };
    assert_eq!(parameters[0].value.as_deref(), Some("128"));
    let refused = refusal(&site, &format!("storage core device set -d {DEVICE} -O 100"));
    assert!(refused.contains("allowed is 1 to 64, the Device Max Queue Depth"), "{refused}");
    let line = "a: vmw_pvscsi.cmd_per_lun=32";
    let said = String::from_utf8(kavg(&site, &["esxcli", "--live", "c", line]).stderr).unwrap();
    assert!(said.starts_with("it acts when the guest has let go of all its disks"), "{said}");
    daemon.stop();
    let daemon = site.serve(2, &["--control", "c"]);
    assert_eq!(depths(&site), (Some(128), Some(32)));
    daemon.stop();
}

#[test]
fn what_is_refused_changes_nothing() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    let set = format!("storage core device set -d {DEVICE}");
    for (line, expected) in [
        (format!("{set} -O 999"), "Unable to set device's sched-num-req-outstanding to 999"),
        (
            format!("{set} -m 65"),
            "Unable to set device's max-queue-depth to 65: allowed is 1 to 64",
        ),
        // The first half would do.
        (format!("{set} -m 32 -O 33"), "allowed is 1 to 32, the Device Max Queue Depth"),
        (set.clone(), "nothing is set"),
        ("storage core device set -d naa.7 -O 3".into(), "there is no device `naa.7`"),
        ("storage core device lst".into(), "did you mean `storage core device list`?"),
        ("storage core device list -d naa.7".into(), "there is no device `naa.7`"),
        ("system module parameters set -m lpfc -p lpfc_lun_queue_depth=64".into(), "`lpfc`"),
        ("storage core path set -p vmhba9:C0:T0:L0 -s off".into(), "there is no path"),
        (
            "system settings advanced list -o /Disk/x".into(),
            "also of `/Disk/SchedNumReqOutstanding` (until 5.1), `/Disk/SchedulerWithReservation` (since 5.5), ",
        ),
        ("c: DiskLimitIOPerSecond 5".into(), "there is no VM `c`"),
    ] {
        let said = refusal(&site, &line);
        assert!(said.contains(expected) && said.lines().count() == 1, "{line}: {said}");
        assert_eq!(depths(&site), (Some(64), Some(32)), "{line}");
    }
    assert!(!site.path("h.settings").exists());
    daemon.stop();
}

#[test]
fn a_path_goes_out_of_use_and_comes_back() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    let states = || -> Vec<String> {
        let paths = esxcli(&site, "storage core path list");
        let states = paths.lines().filter_map(|line| line.strip_prefix("   State: "));
        states.map(String::from).collect()
    };
    esxcli(&site, "storage core path set --path vmhba1:C0:T0:L0 --state off");
    assert_eq!(states(), ["off", "active"]);
    let mut client = Client::on(&site.socket(), "a:scsi0:0", false);
    assert_eq!(client.write(0, 0, &[1; 4096]), 0);
    let stats = esxcli(&site, "storage core adapter stats get -A vmhba2");
    assert!(stats.contains("   Successful Commands: 1\n"), "{stats}");
    esxcli(&site, "storage core path set --path vmhba1:C0:T0:L0 --state active");
    assert_eq!(states(), ["active", "active"]);
    let uid = format!("fc.vmhba2-fc.kavg-{DEVICE}");
    esxcli(&site, &format!("storage core path set -p {uid} -s off"));
    assert_eq!(states(), ["active", "off"]);
    let path = esxcli(&site, &format!("storage core path list -p {uid}"));
    assert!(path.starts_with(&uid) && path.contains("   State: off\n"), "{path}");
    daemon.stop();
}

#[test]
fn a_damaged_file_of_settings_is_told() {
    let site = Site::new(DISKS);
    for (text, expected) in [
        (&b""[..], "h.settings:1: a file of settings begins with `kavg settings 1`"),
        (b"kavg settings 1\n", "h.settings:1: the file is damaged: it does not end in `end`"),
        (b"kavg settings 1\nmoney\nend\n", "h.settings:2: `money`: there is no command `money`"),
        (b"kavg settings 1\n\xff\nend\n", "h.settings:2: holds bytes that are no UTF-8"),
        (&vec![b'\n'; (16 << 20) + 1], "h.settings: is larger than 16 MiB"),
    ] {
        fs::write(site.path("h.settings"), text).unwrap();
        let said = site.refusal();
        assert!(said.starts_with(&format!("kavg: {expected}")), "{said}");
    }
    // What was set on a device that the file has no more is no damage.
    let gone = "kavg settings 1\nstorage core device set -d naa.7 -O 3\nend\n";
    fs::write(site.path("h.settings"), gone).unwrap();
    site.serve(2, &[]).stop();
}

#[test]
fn a_setting_is_in_the_journal() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c", "--journal", "j"]);
    let mut client = Client::on(&site.socket(), "a:scsi0:0", false);
    for dsnro in [4, 64, 1] {
        esxcli(&site, &format!("storage core device set -d {DEVICE} -O {dsnro}"));
        (0..20).for_each(|at| assert_eq!(client.write(0, at * 4096, &[1; 4096]), 0));
    }
    esxcli(&site, "storage core path set -p vmhba1:C0:T0:L0 -s off");
    assert_eq!(client.write(0, 0, &[1; 4096]), 0);
    daemon.stop();
    let journal = fs::read_dir(site.path("j")).unwrap().next().unwrap().unwrap().path();
    let replay = kavg(&site, &["replay", journal.to_str().unwrap()]);
    let text = String::from_utf8(replay.stdout).unwrap();
    assert_eq!(replay.status.code(), Some(0), "{text}");
    assert!(text.contains("identical, bit for bit: outputs and counters"), "{text}");
}

#[test]
fn a_daemon_is_diagnosed_and_shown() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    let diagnosis = kavg(&site, &["diagnose", "--live", "c", "-d", "1", "-n", "2", "--json"]);
    assert_ne!(diagnosis.status.code(), Some(2), "{diagnosis:?}");
    assert!(String::from_utf8(diagnosis.stdout).unwrap().contains("\"host\": \"h\""));
    esxcli(&site, "storage core path set -p vmhba1:C0:T0:L0 -s off");
    let off = kavg(&site, &["diagnose", "--live", "c", "-d", "1", "-n", "2"]);
    let said = String::from_utf8(off.stderr).unwrap();
    assert!(said.contains(&format!("path vmhba1:C0:T0:L0 of {DEVICE} is off")), "{said}");
    esxcli(&site, "storage core path set -p vmhba2:C0:T0:L0 -s off");
    let mut client = Client::on(&site.socket(), "a:scsi0:0", false);
    (0..2).for_each(|_| _ = client.ask(0, READ, 0, 512, &[]));
    let cut = kavg(&site, &["diagnose", "--live", "c", "-d", "1", "-n", "2", "--no-simulate"]);
    assert_eq!(cut.status.code(), Some(1), "{cut:?}");
    let said = String::from_utf8(cut.stdout).unwrap();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("does not answer: 2 commands are outstanding and none"), "{said}");
    assert!(said.contains("all its 2 paths are down"), "{said}");
    let screens = kavg(&site, &["esxtop", "--live", "c", "-d", "1"]);
    let screens = String::from_utf8(screens.stdout).unwrap();
    assert!(screens.contains("esxtop u, devices") && screens.contains(DEVICE), "{screens}");
    daemon.stop();
    let gone = kavg(&site, &["diagnose", "--live", "c"]);
    let said = b"kavg: c: no daemon listens there; `kavg serve HOST.toml --control c` does\n";
    assert_eq!(gone.stderr, said);
}

#[test]
fn commands_are_listed_by_their_first_words() {
    let device = ["list", "set", "stats get", "world list"];
    let device = device.map(|command| format!("storage core device {command}"));
    let device: Vec<&str> = device.iter().map(String::as_str).collect();
    for (words, listed) in [
        ("storage core device", &device[..]),
        ("storage core device --help", &device),
        ("storage core device list -h", &device[..1]),
        ("kavg", &["kavg device set", "kavg disk list"]),
    ] {
        let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
        let output = kavg.arg("esxcli").args(words.split(' ')).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let commands = text.lines().map(|line| line.split(" [").next().unwrap());
        assert_eq!(commands.collect::<Vec<_>>(), listed, "{words}");
        assert_eq!(output.status.code(), Some(0), "{words}");
    }
    let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
    let output = kavg.args(["esxcli", "--formatter=xml", "storage"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("csv, json") && said.lines().count() == 1, "{said}");
    assert_eq!(output.status.code(), Some(2));
}

/// DQLEN of the device as it is now.
fn dqlen(site: &Site) -> f64 {
    let mut control = Control::on(site);
    let layout = control.counters();
    let columns = layout["layout"]["columns"].as_array().unwrap();
    let place = columns.iter().position(|column| column[1] == "dqlen").unwrap();
    control.counters()["row"]["values"][place].as_f64().unwrap()
}

#[test]
fn the_depth_falls_and_rises_with_competing_worlds_and_their_setting() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    let mut clients =
        ["a:scsi0:0", "b:scsi0:0"].map(|export| Client::on(&site.socket(), export, false));
    let mut compete = || {
        for _ in 0..20 {
            clients.iter_mut().for_each(|client| assert_eq!(client.write(0, 0, &[1; 512]), 0));
        }
    };
    assert_eq!(dqlen(&site), 64.0);
    compete();
    assert_eq!(dqlen(&site), 32.0, "DSNRO as it starts");
    esxcli(&site, &format!("storage core device set -d {DEVICE} -O 8"));
    assert_eq!(dqlen(&site), 8.0, "set while they compete");
    (0..200).for_each(|_| assert_eq!(clients[0].write(0, 0, &[1; 512]), 0));
    assert_eq!(dqlen(&site), 64.0, "one of them is alone");
    daemon.stop();
}

#[test]
fn storage_policies_are_set_at_work_and_follow_the_file() {
    let text = format!("[storage_policy.gold]\nlimit = 500\n{DISKS}storage_policy = \"gold\"\n");
    let site = Site::new(&text);
    let mut daemon = site.serve(2, &["--control", "c"]);
    let text = fs::read_to_string(site.path("h.toml")).unwrap();
    let disks = || {
        let disks = Control::on(&site).state()["disks"].take();
        let of = |disk: &Value| (disk["storage_policy"].clone(), disk["limit_iops"].clone());
        [of(&disks[0]), of(&disks[1])]
    };
    let gold = |limit: u32| (json!("gold"), json!(limit));
    assert_eq!(disks(), [(json!(null), json!(null)), gold(500)]);
    esxcli(&site, "storage policy gold: DiskLimitIOPerSecond 600");
    esxcli(
        &site,
        "Get-HardDisk -VM 'a' | Set-SpbmEntityConfiguration -StoragePolicy (Get-SpbmStoragePolicy -Name 'gold')",
    );
    assert_eq!(disks(), [gold(600), gold(600)]);
    let mut reload = |text: &str, start: &str| {
        fs::write(site.path("h.toml"), text).unwrap();
        daemon.signal("HUP");
        daemon.said_behind(start)
    };
    // The file says otherwise of the policy: who was given it at work has it on.
    let other = text.replace("limit = 500", "limit = 700");
    assert_eq!(reload(&other, "2 settings as the file says now"), "");
    assert_eq!(disks(), [gold(700), gold(700)]);
    let kept = fs::read_to_string(site.path("h.settings")).unwrap();
    assert_eq!(kept, "kavg settings 1\na: StoragePolicy gold\nend\n");
    // It says something else alone: what was set at work stays.
    esxcli(&site, "storage policy gold: NumDiskShares 2000");
    let silver = format!("{other}[storage_policy.silver]\nlimit = 100\n");
    assert_eq!(reload(&silver, "no disk, no device and no setting has changed in the file"), "");
    assert_eq!(disks(), [gold(700), gold(700)]);
    assert_eq!(Control::on(&site).state()["disks"][0]["shares"], 2000);
    esxcli(&site, "a: StoragePolicy silver");
    esxcli(&site, "b: DiskLimitIOPerSecond 50");
    assert_eq!(disks(), [(json!("silver"), json!(100)), (json!(null), json!(50))]);
    // Begun anew it is the same.
    daemon.stop();
    let daemon = site.serve(2, &["--control", "c"]);
    assert_eq!(disks(), [(json!("silver"), json!(100)), (json!(null), json!(50))]);
    assert_eq!(Control::on(&site).state()["disks"][1]["shares"], 2000);
    daemon.stop();
}

/// What disks may have, what policies say and the threshold are listed in the words that set them.
#[test]
fn what_disks_may_have_is_listed() {
    let site =
        Site::new(&format!("[storage_policy.\"Gold Tier\"]\nlimit = 500\n{DISKS}limit = 300\n"));
    let daemon = site.serve(2, &["--control", "c"]);
    esxcli(
        &site,
        "get-vm a | get-harddisk | set-spbmentityconfiguration -storagepolicy 'Gold Tier'",
    );
    esxcli(
        &site,
        "Set-Datastore fast -CongestionThresholdMillisecond 15 -StorageIOControlEnabled $true",
    );
    let listed = esxcli(&site, "kavg disk list");
    let block = |name: &str| -> String {
        let after = listed.split(&format!("{name}\n")).nth(1).unwrap_or_default();
        let fields = after.lines().map_while(|line| line.strip_prefix("   "));
        fields.collect::<Vec<_>>().join("; ")
    };
    let says = |limit| {
        format!(
            "DiskLimitIOPerSecond: {limit}; StorageIOAllocationReservation: 0; NumDiskShares: 1000"
        )
    };
    assert_eq!(block("a:scsi0:0"), format!("StoragePolicy: Gold Tier; {}", says(500)));
    assert_eq!(block("b:scsi0:0"), format!("StoragePolicy: none; {}", says(300)));
    assert_eq!(block("storage policy Gold Tier"), says(500));
    let control = "StorageIOControlEnabled: true; CongestionThresholdMillisecond: 15";
    assert_eq!(block("datastore fast"), control);
    // What the line leaves out stays, also in a daemon that is begun anew.
    esxcli(&site, "Get-Datastore FAST | Set-Datastore -CongestionThresholdMillisecond 20");
    esxcli(
        &site,
        "Get-AdvancedSetting -Entity H -Name Disk.SchedQuantum | Set-AdvancedSetting -Value 16",
    );
    daemon.stop();
    let daemon = site.serve(2, &["--control", "c"]);
    let listed = esxcli(&site, "kavg disk list");
    assert!(listed.contains(&control.replace("15", "20").replace("; ", "\n   ")), "{listed}");
    daemon.stop();
}

/// A storage policy goes while a setting that is kept gives it to a disk, and comes back: at work it is each time
/// as begun anew.
#[test]
fn a_storage_policy_goes_and_comes_back() {
    let gold = |limit: u32| format!("[storage_policy.gold]\nlimit = {limit}\n");
    let disks = format!("{DISKS}storage_policy = \"high\"\n");
    let site = Site::new(&(gold(3000) + &disks));
    let start = || site.serve(2, &["--control", "c"]);
    let file = site.path("h.toml");
    let text = fs::read_to_string(&file).unwrap();
    let of_b = || {
        let disk = &Control::on(&site).state()["disks"][1];
        ["storage_policy", "limit_iops", "shares"].map(|key| disk[key].clone())
    };
    let is = |policy: &str, limit: u32, shares: u32| [json!(policy), json!(limit), json!(shares)];
    let mut daemon = start();
    for line in ["b: StoragePolicy gold", "storage policy gold: NumDiskShares 3000"] {
        esxcli(&site, line);
    }
    assert_eq!(of_b(), is("gold", 3000, 3000));
    let (without, other) = (text.replace(&gold(3000), ""), text.replace(&gold(3000), &gold(50)));
    for (text, expected, notes) in [
        (&without, is("high", 100_000, 2000), 2),
        (&other, is("gold", 50, 3000), 0),
        (&without, is("high", 100_000, 2000), 2),
        (&text, is("gold", 3000, 3000), 0),
    ] {
        fs::write(&file, text).unwrap();
        daemon.signal("HUP");
        assert_eq!(daemon.said_behind("1 setting as the file says now"), "");
        for _ in 0..notes {
            let said = daemon.said_behind("h.settings:");
            assert!(said.contains("no storage policy `gold`") && said.ends_with("it is left out"));
        }
        assert_eq!(of_b(), expected);
        daemon.stop();
        daemon = start();
        assert_eq!(of_b(), expected, "begun anew");
    }
    daemon.stop();
}

#[test]
fn what_a_device_was_set_to_is_kept_whichever_line_the_depth_of_its_driver_has() {
    let site = Site::new(DISKS);
    let depth = |value: u32| {
        esxcli(
            &site,
            &format!("system module parameters set -m qlnativefc -p ql2xmaxqdepth={value}"),
        );
    };
    let daemon = site.serve(2, &["--control", "c"]);
    depth(128);
    daemon.stop();
    let daemon = site.serve(2, &["--control", "c"]);
    esxcli(&site, &format!("storage core device set -d {DEVICE} -m 100"));
    esxcli(&site, &format!("storage core device set -d {DEVICE} -O 90"));
    depth(200);
    daemon.stop();
    let daemon = site.serve(2, &["--control", "c"]);
    assert_eq!(depths(&site), (Some(100), Some(90)));
    daemon.stop();
}

#[test]
fn a_file_is_read_again() {
    let site = Site::new(DISKS);
    let mut daemon = site.serve(2, &["--control", "c"]);
    let text = fs::read_to_string(site.path("h.toml")).unwrap();
    esxcli(&site, "b: DiskLimitIOPerSecond 300");
    esxcli(&site, "a: DiskLimitIOPerSecond 400");
    let mut reload = |text: &str, start: &str| {
        fs::write(site.path("h.toml"), text).unwrap();
        daemon.signal("HUP");
        daemon.said_behind(start)
    };
    let limited = format!("{text}limit = 1_500\nshares = \"high\"\n");
    assert_eq!(reload(&limited, "1 setting as the file says now"), "");
    let kept = fs::read_to_string(site.path("h.settings")).unwrap();
    assert_eq!(kept, "kavg settings 1\na: DiskLimitIOPerSecond 400\nend\n");
    let disks = Control::on(&site).state()["disks"].take();
    assert_eq!((&disks[0]["limit_iops"], &disks[1]["limit_iops"]), (&json!(400), &json!(1500)));
    assert_eq!(disks[1]["shares"], 2000);
    let none = limited.replace("limit = 1_500", "limit = -1");
    assert_eq!(reload(&none, "1 setting as the file says now"), "");
    assert_eq!(Control::on(&site).state()["disks"][1]["limit_iops"], json!(null));
    let anew = "cannot be changed at work: begin the daemon anew";
    for (text, expected) in [
        (
            text.replace("\"8m\"", "\"4m\""),
            "h.toml:14: disk `a:scsi0:0`: `size`: 8388608 bytes are served, and 4194304 are fewer"
                .into(),
        ),
        (
            text.replace("driver = \"qlnativefc\"\n[datastore", "driver = \"fnic\"\n[datastore"),
            format!("h.toml:8: `driver` of adapter `vmhba2` {anew}"),
        ),
        (format!("{limited}esxcli = 3\n"), "h.toml:".into()),
    ] {
        let said = reload(&text, "h.toml is not taken: ");
        assert!(said.starts_with(&expected), "{said}");
    }
    assert_eq!(depths(&site), (Some(64), Some(32)));
    daemon.stop();
}
