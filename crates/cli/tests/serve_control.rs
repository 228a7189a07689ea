//! The control socket of `kavg serve`, and `kavg esxtop` at the other end of it.

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
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    process::{Command, Stdio},
};

use control::{Control, column};
use daemon::Site;
use nbd::Client;
use serde_json::json;

/// Two disks in memory that no adapter ties together.
const DISKS: &str = r#"
[host.h.adapter.vmhba2]
driver = "fnic"
[datastore.m]
device = "naa.60000000000000000000000000000001"
backend = "memory"
adapters = "vmhba1"
[datastore.n]
backend = "memory"
adapters = "vmhba2"
[vm.a.disk."scsi0:0"]
datastore = "m"
size = "1m"
[vm.b.disk."scsi0:0"]
datastore = "n"
size = "1m"
"#;

#[test]
fn a_row_has_what_was_counted_since_the_last_in_all_components() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    assert_eq!(fs::metadata(site.path("c")).unwrap().permissions().mode() & 0o777, 0o600);
    let mut control = Control::on(&site);
    let first = control.counters();
    assert_eq!(first["version"], 1);
    let layout = &first["layout"];
    assert_eq!(layout["host"], "h");
    let column = |name: &str, key: &str| column(layout, name, key);
    for (export, asked) in [("a:scsi0:0", 30), ("b:scsi0:0", 10)] {
        let mut client = Client::on(&site.socket(), export, false);
        (0..asked).for_each(|_| assert_eq!(client.write(0, 0, &[1; 4096]), 0));
    }
    let second = control.counters();
    let row = second["row"]["values"].as_array().unwrap();
    assert_eq!(row.len(), layout["columns"].as_array().unwrap().len());
    let [of_a, of_b] = ["a:scsi0:0", "b:scsi0:0"].map(|name| row[column(name, "cmds")].as_f64());
    let (of_a, of_b) = (of_a.unwrap(), of_b.unwrap());
    assert!(of_b > 0.0 && (of_a / of_b - 3.0).abs() < 0.01, "{of_a} {of_b}");
    let written = row[column("naa.60000000000000000000000000000001", "mbwrtn")].as_f64().unwrap();
    assert!(written > 0.0);
    let third = control.counters();
    assert_eq!(third["row"]["values"][column("a:scsi0:0", "cmds")], json!(0.0));
    daemon.stop();
    assert!(!site.path("c").exists());
}

/// Two VMs on a device behind an array that does not answer at once.
const COMPETING: &str = r#"
[array.flash]
servers = 8
service = "0.5ms"
[datastore.m]
device = "naa.60000000000000000000000000000001"
backend = "memory"
emulate = true
[vm.a.disk."scsi0:0"]
datastore = "m"
size = "1m"
[vm.b.disk."scsi0:0"]
datastore = "m"
size = "1m"
"#;

/// What a guest has under way.
const UNDER_WAY: usize = 64;

/// A guest that asks again as often as it is answered.
struct Busy(Client);

impl Busy {
    fn on(site: &Site, export: &str) -> Self {
        let mut client = Client::on(&site.socket(), export, false);
        (0..UNDER_WAY).for_each(|_| {
            client.ask(0, nbd::READ, 0, 512, &[]);
        });
        Self(client)
    }

    fn turn(&mut self) {
        for _ in 0..UNDER_WAY {
            assert_eq!(self.0.reply(512).error, 0);
            self.0.ask(0, nbd::READ, 0, 512, &[]);
        }
    }
}

/// Lets guests work until the device has that DQLEN, for so many turns at most.
fn work_until_dqlen(site: &Site, guests: &mut [&mut Busy], dqlen: f64) {
    const TURNS: usize = 1000;
    let mut control = Control::on(site);
    let first = control.counters();
    let place = column(&first["layout"], "naa.60000000000000000000000000000001", "dqlen");
    for _ in 0..TURNS {
        guests.iter_mut().for_each(|guest| guest.turn());
        if control.counters()["row"]["values"][place] == dqlen {
            return;
        }
    }
    panic!("DQLEN is not {dqlen} after {TURNS} turns");
}

#[test]
fn dqlen_falls_when_a_second_guest_comes_and_rises_when_it_has_gone() {
    let site = Site::new(COMPETING);
    let daemon = site.serve(2, &["--control", "c", "--journal", "journals"]);
    let mut first = Busy::on(&site, "a:scsi0:0");
    work_until_dqlen(&site, &mut [&mut first], 64.0);
    for _ in 0..2 {
        let mut second = Busy::on(&site, "b:scsi0:0");
        work_until_dqlen(&site, &mut [&mut first, &mut second], 32.0);
        drop(second);
        work_until_dqlen(&site, &mut [&mut first], 64.0);
    }
    drop(first);
    daemon.stop();
    let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
    let replay = kavg.args(["replay", "journals"]).current_dir(site.directory.path()).output();
    let said = String::from_utf8(replay.unwrap().stdout).unwrap();
    assert!(said.contains("identical, bit for bit: outputs and counters"), "{said}");
}

/// What is diagnosed of the daemon while a guest of `a` works, with this in its file and these options; on one line.
fn diagnosed(text: &str, options: &[&str]) -> String {
    let site = Site::new(text);
    let daemon = site.serve(2, &[&["--control", "c"], options].concat());
    let mut guest = Busy::on(&site, "a:scsi0:0");
    let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
    let diagnose = kavg.args(["diagnose", "--live", "c", "-d", "1", "-n", "3", "--no-simulate"]);
    diagnose.current_dir(site.directory.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = diagnose.spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        guest.turn();
    }
    let output = child.wait_with_output().unwrap();
    daemon.stop();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_diagnosed_of_a_daemon_has_its_limits_and_what_its_arrays_refuse() {
    let said = diagnosed(
        &format!("{COMPETING}limit = 2000\n").replace("[vm.b", "limit = 1500\n[vm.b"),
        &[],
    );
    assert!(said.contains("by its IOPS limit of 1,500"), "{said}");
    assert!(said.contains("host> kavg esxcli 'a:scsi0:0: DiskLimitIOPerSecond "), "{said}");
    assert!(!said.contains("PowerCLI>"), "{said}");
    let low = "storage core device set -d naa.60000000000000000000000000000001 -m 4";
    let said = diagnosed(COMPETING, &["--set", low]);
    let by_latency =
        "$ kavg esxcli kavg device set -d naa.60000000000000000000000000000001 -l true";
    assert!(said.contains(by_latency), "{said}");
    let said =
        diagnosed(&COMPETING.replace("[array.flash]", "[array.flash]\nlun_queue_limit = 4"), &[]);
    assert!(said.contains("its array takes no more, and answered TASK SET FULL or BUSY"), "{said}");
}

#[test]
fn what_makes_no_sense_is_refused_in_a_line() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    let mut control = Control::on(&site);
    for (line, expected) in [
        ("", "EOF while parsing"),
        ("{}", "missing field"),
        (r#"{"version":2,"ask":"counters"}"#, "version 2 is not known; it is 1"),
        (r#"{"version":1,"ask":"money"}"#, "unknown variant `money`, expected one of `counters`"),
        (r#"{"version":1,"ask":"counters","x":1}"#, "unknown field `x`"),
        (r#"{"version":1,"ask":"counters","host":"x"}"#, "`host` is one of h"),
        (&"[".repeat(4000), "invalid type: sequence"),
    ] {
        let answer = control.say(line);
        let error = answer["error"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(control.counters()["layout"]["host"], "h");
    let mut endless = Control::on(&site);
    assert!(endless.say(&"x".repeat(10_000))["error"].as_str().unwrap().contains("4096 bytes"));
    let mut strange = UnixStream::connect(site.path("c")).unwrap();
    strange.write_all(&[0xff, 0xfe, b'\n']).unwrap();
    drop(strange);
    assert_eq!(Control::on(&site).counters()["layout"]["host"], "h");
    daemon.stop();
}

#[test]
fn a_capture_comes_row_by_row_and_ends_with_the_daemon() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
    let esxtop = kavg.args(["esxtop", "-b", "-a", "-d", "1", "-n", "1000", "--live", "c"]);
    let esxtop = esxtop.current_dir(site.directory.path());
    let mut esxtop = esxtop.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut rows = BufReader::new(esxtop.stdout.take().unwrap()).lines().map_while(Result::ok);
    let begin: Vec<String> = rows.by_ref().take(4).collect();
    daemon.stop();
    let cells: BTreeSet<_> = begin.iter().map(|row| row.split("\",\"").count()).collect();
    assert!(begin[0].starts_with("\"(PDH-CSV 4.0)") && cells.len() == 1, "{begin:?}");
    assert!(rows.count() < 5, "what comes while it ends");
    let ended = esxtop.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.starts_with("kavg: the daemon"), "{said}");
}

#[test]
fn esxtop_prints_a_capture_that_is_diagnosed() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--control", "c"]);
    let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
    let esxtop = kavg.args(["esxtop", "-b", "-d", "1", "-n", "2", "--live", "c"]);
    let output = esxtop.current_dir(site.directory.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let capture = String::from_utf8(output.stdout).unwrap();
    assert!(capture.starts_with(r#""(PDH-CSV 4.0) (UTC)(0)","\\h\Group Cpu("#));
    assert!(capture.contains(r#"(naa.60000000000000000000000000000001)\Device Q Depth""#));
    assert_eq!(capture.lines().count(), 4, "a header, a row of nothing, two samples");
    fs::write(site.path("x.csv"), capture).unwrap();
    let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
    let diagnose = kavg.args(["diagnose", "x.csv"]).current_dir(site.directory.path());
    assert_ne!(diagnose.output().unwrap().status.code(), Some(2));
    daemon.stop();
    let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
    let gone = kavg.args(["esxtop", "-b", "--live", "c"]).current_dir(site.directory.path());
    let gone = gone.output().unwrap();
    assert_eq!(gone.status.code(), Some(2));
    let said = b"kavg: c: no daemon listens there; `kavg serve HOST.toml --control c` does\n";
    assert_eq!(gone.stderr, said);
}
