//! `kavg whatif JOURNAL --on FILE`: what guests sent, played on the arrays of the file. Judged by what the guests of
//! the file do themselves under the setting that is asked for.

mod common;

use common::{json, kavg};
use serde_json::Value;
use tempfile::TempDir;

/// A queue of two for two guests, of which `a` is what is tried, on an array that has room for more.
fn host(workload: &str) -> String {
    format!(
        r#"
title = "t"
duration = "12s"
warmup = "2s"
sample = "2s"
[array.a]
servers = 16
service = "0.5ms"
spread = "exponential"
[host.esx.adapter.vmhba1]
driver = "qlnativefc"
[datastore.d]
array = "a"
device = "naa.1"
dsnro = 2
[vm.a]
guest = "linux"
[vm.a.disk."scsi0:0"]
datastore = "d"
[vm.a.workload]
{workload}
[vm.b]
guest = "linux"
[vm.b.disk."scsi0:0"]
datastore = "d"
[vm.b.workload]
threads = 2
"#
    )
}

struct Site(TempDir);

impl Site {
    fn new(scenario: &str) -> Self {
        let site = Self(tempfile::tempdir().unwrap());
        std::fs::write(site.path("host.toml"), scenario).unwrap();
        site
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// The journal of a run with a seed.
    fn journal(&self, seed: u64) -> String {
        let journal = self.path(&format!("{seed}.kj"));
        let (host, seed) = (self.path("host.toml"), seed.to_string());
        let said = kavg(&["run", &host, "-q", "--seed", &seed, "--journal", &journal]);
        assert_eq!(said.code, 0, "{said:?}");
        journal
    }

    /// The only answer about all but the first two seconds.
    fn ask(&self, journal: &str, line: &str) -> Value {
        self.ask_of(journal, line, [2, 12])
    }

    /// The only answer about the time between two seconds.
    fn ask_of(&self, journal: &str, line: &str, seconds: [u32; 2]) -> Value {
        let host = self.path("host.toml");
        let [from, to] = seconds.map(|second| format!("01/01/2020 00:00:{second:02}"));
        let window = ["--from", &from, "--to", &to, "--json"];
        let said =
            kavg(&[&["whatif", journal, "--on", &host, "--set", line][..], &window].concat());
        assert_eq!(said.code, 0, "{said:?}");
        let answers: Value = serde_json::from_str(&said.out).unwrap();
        answers["answers"][0].clone()
    }
}

/// The range of a counter.
fn range(answer: &Value, object: &str, counter: &str) -> [f64; 2] {
    let rows = answer["simulated"]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["object"] == object && row["counter"] == counter);
    let row = row.unwrap_or_else(|| panic!("{object} {counter}: {answer}"));
    ["low", "high"].map(|end| row[end].as_f64().unwrap())
}

const DEEPER: &str = "storage core device set -d naa.1 -O 16";

/// What the guests of the file do under the line: a counter of an object.
fn truth(run: &Value, kind: &str, name: &str, counter: &str) -> f64 {
    let windows = run["windows"].as_array().unwrap();
    let objects = windows.last().unwrap()["hosts"][0]["objects"].as_array().unwrap();
    let found = objects.iter().find(|object| object["kind"] == kind && object["name"] == name);
    let found = found.unwrap_or_else(|| panic!("{kind} {name}: {run}"));
    found["counters"][counter].as_f64().unwrap()
}

/// What one run differs by from another, as a part of it: exponential times, and some ten thousand commands.
const CHANCE: f64 = 0.02;

fn holds(answer: &Value, (object, counter): (&str, &str), truth: f64, what: &str) {
    let [low, high] = range(answer, object, counter);
    let is_in = low * (1.0 - CHANCE) <= truth && truth <= high * (1.0 + CHANCE);
    assert!(is_in, "{what}: {counter} of {object} is {truth}, and {low} to {high} was said");
}

/// Over guests that wait, that pause, and that send at rates, each under the same seeds.
#[test]
fn what_the_guests_do_is_in_the_range() {
    let guests = [
        ("threads = 4", true),
        ("threads = 8\nthink = \"2ms\"", false),
        ("rate = 1500\narrival = \"poisson\"\noutstanding = 64", false),
        ("rate = 1500\narrival = \"fixed\"\noutstanding = 64", false),
    ];
    for (workload, is_sure) in guests {
        let site = Site::new(&host(workload).replace("12s", "22s"));
        let file = site.path("host.toml");
        for seed in 1..=20 {
            let what = format!("{workload}, seed {seed}");
            let answer = site.ask_of(&site.journal(seed), DEEPER, [2, 22]);
            let miss = answer["calibration"]["mismatch_percent"].as_f64().unwrap();
            assert!(miss < 5.0, "{what}: {miss}");
            let seed = seed.to_string();
            let run = json(&["run", &file, "--seed", &seed, "--json", "--set", DEEPER]);
            for (name, counter) in [("cmds", "CMDS/s"), ("gavg", "GAVG/cmd")] {
                let device = truth(&run, "device", "naa.1", name);
                holds(&answer, ("naa.1", counter), device, &what);
            }
            for vm in ["a", "b"] {
                holds(&answer, (vm, "CMDS/s"), truth(&run, "vm", vm, "cmds"), &what);
            }
            let doubts = answer["simulated"]["doubts"].as_array().unwrap();
            assert_eq!(doubts.is_empty(), is_sure, "{what}: {doubts:?}");
        }
    }
}

/// Nobody has to say when: a load that begins and ends in the midst of a journal is found there.
#[test]
fn a_load_that_begins_and_ends_is_found() {
    let spell = "start = \"5.3s\"\nstop = \"18.3s\"\n";
    let text = host("threads = 4").replace("threads", &format!("{spell}threads"));
    let text = text.replace("duration = \"12s\"", "duration = \"24s\"");
    let window = "\n[[window]]\nname = \"load\"\nfrom = \"7s\"\nto = \"18s\"\n";
    let site = Site::new(&(text + window));
    let file = site.path("host.toml");
    for seed in 1..=20 {
        let journal = site.journal(seed);
        let said = kavg(&["whatif", &journal, "--on", &file, "--set", DEEPER, "--json"]);
        assert_eq!(said.code, 0, "seed {seed}: {said:?}");
        let answers: Value = serde_json::from_str(&said.out).unwrap();
        let answer = &answers["answers"][0];
        let miss = answer["calibration"]["mismatch_percent"].as_f64().unwrap();
        assert!(miss < 5.0, "seed {seed}: {miss}");
        let seed = seed.to_string();
        let run = json(&["run", &file, "--seed", &seed, "--json", "--set", DEEPER]);
        for vm in ["a", "b"] {
            holds(answer, (vm, "CMDS/s"), truth(&run, "vm", vm, "cmds"), &format!("seed {seed}"));
        }
    }
}

/// 128 outstanding on a disk that the array holds to a rate, and another VM that sends twice a second: six times that the
/// one comes after the other make DSNRO be in force, which takes seconds.
const SELDOM: &str = r#"
title = "t"
duration = "30s"
sample = "2s"
[array.a]
servers = 64
service = "0.9ms"
[array.a.qos.slow]
max = 20
[host.esx.adapter.vmhba1]
driver = "qlnativefc"
[datastore.d]
array = "a"
kind = "vvol"
device = "naa.1"
dsnro = 32
[vm.batch]
guest = "linux"
[vm.batch.disk."scsi0:0"]
datastore = "d"
qos = "slow"
[vm.batch.workload]
threads = 128
[vm.web]
guest = "linux"
[vm.web.disk."scsi0:0"]
datastore = "d"
[vm.web.workload]
threads = 1
think = "500ms"
"#;

/// What is played begins as the journal was then, however short the window is.
#[test]
fn who_competes_when_the_window_begins_is_known() {
    let site = Site::new(SELDOM);
    for seed in 1..=20 {
        let journal = site.journal(seed);
        for window in [[12, 14], [14, 18], [20, 28]] {
            let what = format!("seed {seed}, {window:?}");
            let answer = site.ask_of(&journal, DEEPER, window);
            let miss = answer["calibration"]["mismatch_percent"].as_f64().unwrap();
            assert!(miss < 5.0, "{what}: {miss}");
            let rows = answer["simulated"]["rows"].as_array().unwrap();
            let depth = rows.iter().find(|row| row["counter"] == "DQLEN");
            let depth = depth.unwrap_or_else(|| panic!("{what}: {answer}"));
            let both = (&depth["captured"], &depth["today"]);
            assert_eq!(both, (&32.0.into(), &32.0.into()), "{what}: {answer}");
        }
    }
}

/// What was set at work is in force in what is played.
#[test]
fn what_was_set_meanwhile_is_in_force() {
    let event = "\n[[event]]\nat = \"1s\"\nhost = \"esx\"\nesxcli = \"storage core device set -d naa.1 -O 6\"\n";
    let site = Site::new(&(host("threads = 4") + event));
    let answer = site.ask(&site.journal(1), DEEPER);
    let rows = answer["simulated"]["rows"].as_array().unwrap();
    let depth = rows.iter().find(|row| row["counter"] == "DQLEN").unwrap();
    assert_eq!((&depth["captured"], &depth["today"]), (&6.0.into(), &6.0.into()), "{answer}");
    assert_eq!(range(&answer, "naa.1", "DQLEN"), [16.0; 2]);
    let played = &answer["played"];
    assert_eq!(
        (played["on"].as_str().unwrap(), &played["disks"]),
        (&*site.path("host.toml"), &2.into())
    );
    assert!(answer["simulated"]["doubts"].as_array().unwrap().is_empty(), "{answer}");
}

/// What was set within the window is set in what is played when it was, unless it is what is asked for.
#[test]
fn what_was_set_within_the_window_is_set_then() {
    let event = "\n[[event]]\nat = \"9s\"\nhost = \"esx\"\nesxcli = \"storage core device set -d naa.1 -O 6\"\n";
    let still = host("threads = 4").replace("12s", "22s");
    let (moved, site) = (Site::new(&(still.clone() + event)), Site::new(&still));
    for seed in 1..=20 {
        let journal = moved.journal(seed);
        for (line, file) in [(DEEPER, &site), ("b: DiskLimitIOPerSecond 300", &moved)] {
            let what = format!("seed {seed}, {line}");
            let answer = moved.ask_of(&journal, line, [4, 22]);
            let miss = answer["calibration"]["mismatch_percent"].as_f64().unwrap();
            assert!(miss < 3.0, "{what}: {miss}");
            assert!(answer["simulated"]["doubts"].as_array().unwrap().is_empty(), "{answer}");
            let (file, seed) = (file.path("host.toml"), seed.to_string());
            let run = json(&["run", &file, "--seed", &seed, "--json", "--set", line]);
            for vm in ["a", "b"] {
                holds(&answer, (vm, "CMDS/s"), truth(&run, "vm", vm, "cmds"), &what);
            }
        }
    }
}

/// What is asked for leaves the rest of what was set: the limit of a disk whose shares are asked for, and of a DSNRO as
/// much as the depth has.
#[test]
fn what_is_asked_for_leaves_the_rest_of_what_was_set() {
    let event =
        |line: &str| format!("\n[[event]]\nat = \"9s\"\nhost = \"esx\"\nesxcli = \"{line}\"\n");
    let text = |line: &str| host("threads = 4").replace("12s", "22s") + &event(line);
    let cases = [
        ("a: DiskLimitIOPerSecond 900", "a: NumDiskShares 4000", "a: DiskLimitIOPerSecond 900"),
        ("a: NumDiskShares 4000", "a: DiskLimitIOPerSecond 900", "a: NumDiskShares 4000"),
        (
            "storage core device set -d naa.1 -O 6",
            "storage core device set -d naa.1 -m 4",
            "storage core device set -d naa.1 -O 4",
        ),
    ];
    for (set, line, comes_to) in cases {
        let (site, known) = (Site::new(&text(set)), Site::new(&text(comes_to)));
        for seed in 1..=20 {
            let journal = site.journal(seed);
            let (file, seed) = (known.path("host.toml"), seed.to_string());
            for window in [[4, 22], [12, 22]] {
                let what = format!("seed {seed}, {set}, {line}, {window:?}");
                let answer = site.ask_of(&journal, line, window);
                let from =
                    format!("[[window]]\nname = \"w\"\nfrom = \"{}s\"\nto = \"20s\"\n", window[0]);
                std::fs::write(&file, text(comes_to) + &from).unwrap();
                let run = json(&["run", &file, "--seed", &seed, "--json", "--set", line]);
                for vm in ["a", "b"] {
                    holds(&answer, (vm, "CMDS/s"), truth(&run, "vm", vm, "cmds"), &what);
                }
            }
        }
    }
}

/// Where more was sent right before the window, its own end is played first, and all of it counts in its order.
#[test]
fn what_follows_more_load_is_played_from_its_first_instant() {
    let more = "[vm.c]\n[vm.c.disk.\"scsi0:0\"]\ndatastore = \"d\"\n[vm.c.workload]\nthreads = 64\nstop = \"9.9s\"\n";
    let event = "[[event]]\nat = \"13s\"\nhost = \"esx\"\nesxcli = \"storage core device set -d naa.1 -O 6\"\n";
    let window = "[[window]]\nname = \"after\"\nfrom = \"10s\"\nto = \"20s\"\n";
    let text = host("threads = 4").replace("12s", "22s") + more + event + window;
    let site = Site::new(&text);
    let file = site.path("host.toml");
    for seed in 1..=20 {
        let what = format!("seed {seed}");
        let line = "b: DiskLimitIOPerSecond 300";
        let answer = site.ask_of(&site.journal(seed), line, [10, 20]);
        let miss = answer["calibration"]["mismatch_percent"].as_f64().unwrap();
        assert!(miss < 3.0, "{what}: {miss}");
        let rows = answer["simulated"]["rows"].as_array().unwrap();
        let depth = rows.iter().find(|row| row["counter"] == "DQLEN").unwrap();
        let depths = ["captured", "today"].map(|of| depth[of].as_f64().unwrap());
        assert!(depths.iter().all(|depth| (depth - 4.8).abs() < 0.05), "{what}: {depths:?}");
        let run = json(&["run", &file, "--seed", &seed.to_string(), "--json", "--set", line]);
        for vm in ["a", "b"] {
            holds(&answer, (vm, "CMDS/s"), truth(&run, "vm", vm, "cmds"), &what);
        }
    }
}

/// Without a limit, which is set in the middle, the guest does what it did before that: of the whole, or of the time before,
/// lifting it gains nothing.
#[test]
fn a_limit_that_was_set_in_the_middle_is_lifted_where_it_is() {
    let event = "\n[[event]]\nat = \"11s\"\nesxcli = \"a: DiskLimitIOPerSecond 300\"\n";
    let text = host("threads = 4").replace("12s", "30s").replace("dsnro = 2", "dsnro = 16");
    let site = Site::new(&(text + event));
    for seed in 1..=20 {
        let (journal, file) = (site.journal(seed), site.path("host.toml"));
        for on in [&["--on", &file][..], &[]] {
            let ask = ["whatif", &journal, "--json", "--set", "a: DiskLimitIOPerSecond -1"];
            let said = kavg(&[&ask[..], on].concat());
            assert_eq!(said.code, 0, "{said:?}");
            let answers: Value = serde_json::from_str(&said.out).unwrap();
            let answer = &answers["answers"][0];
            let doubts = answer["simulated"]["doubts"].to_string();
            let since = "the last by 01/01/2020 00:00:13 UTC: this is of the time since then.";
            assert!(doubts.contains(since), "seed {seed}, {on:?}: {answer}");
            // Four of six at 16 servers with a queue each: each meets the others there (X and R of section 1 of `array-and-control.md`).
            let [low, high] = range(answer, "a", "CMDS/s");
            let rate = 4.0 / (0.5e-3 * (16.0 + 5.0) / 16.0);
            assert!(low < 1.03 * rate && high > 0.97 * rate, "seed {seed}, {on:?}: {answer}");
        }
    }
}

/// A limit makes requests late that are played at their times, and `duration` is no matter of who is asked so.
#[test]
fn what_comes_at_times_of_its_own_may_wait_without_end() {
    let site = Site::new(&host("rate = 1500\narrival = \"poisson\"\noutstanding = 64"));
    let journal = site.journal(1);
    let served =
        host("threads = 1").replace("duration = \"12s\"", "").replace("warmup = \"2s\"", "");
    std::fs::write(site.path("host.toml"), served).unwrap();
    let answer = site.ask(&journal, "a: DiskLimitIOPerSecond 300");
    let [low, high] = range(&answer, "a", "GAVG/cmd");
    // The 64 that the application has at most take 213 ms at 300 a second. Played are as many as were seen, and all that
    // come: these fill the ring of 256, which takes 853 ms.
    assert!(low < 213.0 && high > 850.0, "{answer}");
    // What is simulated today may be a twentieth off, and what is said after is by as much.
    let [low, high] = range(&answer, "a", "CMDS/s");
    assert!(low > 285.0 && high < 315.0, "{answer}");
}

/// A limit, shares: what no capture tells.
#[test]
fn shares_and_limits_are_asked_for() {
    let site = Site::new(&host("threads = 2"));
    let journal = site.journal(1);
    let line = "b: DiskLimitIOPerSecond 200";
    let answer = site.ask(&journal, line);
    let [low, high] = range(&answer, "b", "CMDS/s");
    assert!(low > 190.0 && high < 206.0, "{answer}");
    let file = site.path("host.toml");
    let run = json(&["run", &file, "--seed", "1", "--json", "--set", line]);
    holds(&answer, ("a", "CMDS/s"), truth(&run, "vm", "a", "cmds"), line);
}

#[test]
fn what_cannot_be_played_is_refused_in_a_line() {
    let site = Site::new(&host("threads = 4"));
    let journal = site.journal(1);
    let write = |name: &str, from: &str, to: &str| {
        std::fs::write(site.path(name), host("threads = 4").replace(from, to)).unwrap();
        site.path(name)
    };
    let capture = site.path("host.csv");
    assert_eq!(kavg(&["run", &site.path("host.toml"), "-q", "--csv", &capture]).code, 0);
    let other_host = write("other-host.toml", "host.esx", "host.esx2");
    let other_disk = write("other-disk.toml", "[vm.a.disk.\"scsi0:0\"]", "[vm.a.disk.\"scsi0:1\"]");
    let other_device = write("other-device.toml", "naa.1", "naa.2");
    let broken = write("broken.toml", "servers = 16", "servers = 0");
    let file = site.path("host.toml");
    let refused: [(&[&str], &str); 7] = [
        (
            &[&capture, "--on", &file],
            "--on: a capture does not tell what each guest sent; a journal does",
        ),
        (&[&journal, "--on", &other_host], "other-host.toml: it has no host `esx` of the journal"),
        (
            &[&journal, "--on", &other_disk],
            "other-disk.toml: it has no virtual disk `a:scsi0:0` of the journal",
        ),
        (&[&journal, "--on", &other_device], "naa.1"),
        (&[&journal, "--on", &broken], "broken.toml:7:1: key `array.a.servers`"),
        (
            &[&journal, "--on", "none"],
            "none: there is no such file and no shipped scenario of that name",
        ),
        (
            &[
                &journal,
                "--on",
                &file,
                "--from",
                "01/01/2020 00:00:00",
                "--to",
                "01/01/2020 00:00:01",
            ],
            "esx: no whole sample is in the window: they are of 2 s, and end from 2020-01-01 00:00:02 to 00:00:10 UTC",
        ),
    ];
    for (arguments, expected) in refused {
        let said = kavg(&[&["whatif"], arguments, &["--set", DEEPER]].concat());
        let last = said.err.lines().last().unwrap_or_default();
        assert!(said.code == 2 && said.out.is_empty() && last.contains(expected), "{said:?}");
    }
}
