//! How deep drivers and devices are planned to be: together, whatever no output tells, so that the next look plans
//! nothing.

mod common;
#[path = "common/typed.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod typed;

use std::fs;

use counters::DeviceId;
use serde_json::Value;
use testing::fleet::{DrawnDevice, DrawnHost};
use typed::{Host, folder, follow, json, texts};

const QLOGIC: (&str, &str, u32) = ("qlnativefc", "ql2xmaxqdepth", 64);
const EMULEX: (&str, &str, u32) = ("lpfc", "lpfc_lun_queue_depth", 32);

/// A host: its driver, what that was set to at its last boot and since, and its devices by number, each with depth and
/// DSNRO.
fn drawn(
    name: &str,
    driver: (&'static str, &'static str, u32),
    [depth, staged]: [Option<u32>; 2],
    devices: &[(u32, u32, u32)],
) -> DrawnHost {
    let device = |&(number, max_depth, dsnro): &(u32, u32, u32)| DrawnDevice {
        name: format!("naa.624a93704bfab20d4b694df7{number:08x}"),
        max_depth,
        dsnro,
        queue_full: (0, 0),
        iops: Some(1000),
    };
    let (name, devices) = (name.to_owned(), devices.iter().map(device).collect());
    DrawnHost { name, driver, depth, staged, options: Vec::new(), devices }
}

/// Hosts as they are after a plan.
fn after(hosts: &[DrawnHost], report: &Value) -> Vec<DrawnHost> {
    let plans = report["plans"].as_array().unwrap();
    let of = |drawn: &DrawnHost| {
        let (mut host, mut after) = (Host::of(drawn), drawn.clone());
        let was = host.staged;
        if let Some(plan) = plans.iter().find(|plan| plan["host"] == drawn.name) {
            host.follow(&plan["plan"]).unwrap();
        }
        after.staged = (host.staged != was).then_some(host.staged).or(drawn.staged);
        for (id, device) in (0..).map(DeviceId).zip(&mut after.devices) {
            let limits = host.engine.device_limits(id).unwrap();
            (device.max_depth, device.dsnro) = (limits.max_queue_depth, limits.dsnro);
        }
        after
    };
    hosts.iter().map(of).collect()
}

/// What is typed on a host, shortened: the device's number, and what is set; `reboot` where it reboots.
fn typed(report: &Value, host: &str) -> String {
    let plans = report["plans"].as_array().unwrap();
    let Some(plan) = plans.iter().find(|plan| plan["host"] == host) else { return String::new() };
    let plan = &plan["plan"];
    let short = |line: &str| match line.split_once(" -p ") {
        Some((_, set)) => set.to_owned(),
        None => line[line.len() - " -m 64".len() - 1..].to_owned(),
    };
    let lines = |part: &str| texts(&plan[part]).map(short).collect::<Vec<_>>();
    let reboot = (plan["reboot"] == true).then(|| "reboot".to_owned());
    let lines =
        [lines("now"), lines("before_reboot"), reboot.into_iter().collect(), lines("after_reboot")];
    lines.concat().join(", ")
}

/// Every line of a plan is taken, and the next look plans none.
fn settle(what: &str, hosts: &[DrawnHost], more: &[&str]) -> Value {
    let report = json(folder(hosts).path(), more);
    follow(hosts, &report);
    let next = json(folder(&after(hosts, &report)).path(), more);
    for plan in next["plans"].as_array().unwrap() {
        assert_eq!(typed(&next, plan["host"].as_str().unwrap()), "", "{what}: {report:#} {next:#}");
    }
    report
}

/// Drivers and devices of hosts: what is planned for the one does not undo what is planned for the other.
#[test]
fn depths_of_drivers_and_devices_are_planned_together() {
    let q = |name: &str, depth, devices: &[(u32, u32, u32)]| {
        drawn(name, QLOGIC, [depth, None], devices)
    };
    let e = |name: &str, depth, devices: &[(u32, u32, u32)]| {
        drawn(name, EMULEX, [depth, None], devices)
    };
    // A parameter of 64 above devices of 16: booted and lowered, or not booted since it was 16.
    let above = |is_booted, devices: &[(u32, u32, u32)]| {
        let set = if is_booted { [Some(64), None] } else { [Some(devices[0].1), Some(64)] };
        let others = ["a", "b"].map(|name| e(name, Some(64), &[(1, 64, 32), (2, 64, 32)]));
        [&others[..], &[drawn("c", EMULEX, set, devices)]].concat()
    };
    let both = "reboot, 1 -m 64, 1 -O 32, 2 -m 64, 2 -O 32";
    let table: [(&str, Vec<DrawnHost>, &str, &str); 7] = [
        ("lowered", above(true, &[(1, 16, 16), (2, 16, 16)]), "c", both),
        ("not booted", above(false, &[(1, 16, 16), (2, 16, 16)]), "c", both),
        ("lowered to different depths", above(true, &[(1, 16, 16), (2, 24, 24)]), "c", both),
        (
            "the device of d follows what others have then",
            [
                ("a", 1, None),
                ("b", 2, Some(254)),
                ("c", 2, Some(254)),
                ("d", 2, None),
                ("e", 3, None),
            ]
            .map(|(name, device, depth)| q(name, depth, &[(device, depth.unwrap_or(64), 32)]))
            .to_vec(),
            "d",
            "",
        ),
        (
            "a driver is as on most hosts, also where a device would have more",
            [1, 2, 3]
                .map(|place| q(&format!("q{place}"), None, &[(1, 64, 32)]))
                .into_iter()
                .chain([("a", 1, Some(128)), ("b", 1, None), ("c", 2, None)].map(
                    |(name, device, depth)| e(name, depth, &[(device, depth.unwrap_or(32), 32)]),
                ))
                .collect(),
            "a",
            "lpfc_lun_queue_depth=32, reboot",
        ),
        (
            "a device that is alike stays so behind a deeper driver",
            vec![
                q("a1", Some(128), &[(1, 128, 32), (2, 64, 32)]),
                q("a2", Some(128), &[(1, 128, 32), (2, 64, 32)]),
                q("b", None, &[(1, 64, 32), (2, 64, 32)]),
            ],
            "b",
            "ql2xmaxqdepth=128, reboot, 2 -m 64",
        ),
        (
            "drivers of several hosts are made deeper together",
            [("q1", QLOGIC), ("q2", QLOGIC), ("q3", QLOGIC), ("a", EMULEX), ("b", EMULEX)]
                .map(|(name, driver)| drawn(name, driver, [None; 2], &[(1, driver.2, 32)]))
                .to_vec(),
            "b",
            "lpfc_lun_queue_depth=64, reboot",
        ),
    ];
    for (what, hosts, host, expected) in table {
        assert_eq!(typed(&settle(what, &hosts, &[]), host), expected, "{what}");
        let like = hosts[0].name.clone();
        settle(what, &hosts, &["--like", &like]);
    }
}

/// What nobody asked for is not planned: whether a device was lowered or its host has to boot no output tells.
#[test]
fn a_depth_that_may_take_a_reboot_has_its_reason() {
    let depth = "storage core device set -d naa.* -m 64";
    let module = "system module parameters set -m lpfc -p lpfc_lun_queue_depth=64";
    for set in [[Some(64), None], [Some(16), Some(64)]] {
        let hosts = [drawn("c", EMULEX, set, &[(1, 16, 16)])];
        let report = settle("alone", &hosts, &["--set", depth]);
        let why = report["plans"][0]["refused"][0]["why"].as_str().unwrap();
        assert!(
            why.starts_with("its driver gives 16 at most as far as devices show, and is set to 64"),
            "{why}"
        );
        let report = settle("with its driver", &hosts, &["--set", depth, "--set", module]);
        assert_eq!(typed(&report, "c"), "reboot, 1 -m 64");
    }
}

/// Hosts of two drivers, set to anything, lowered devices, and parameters that no boot has brought.
#[test]
fn the_look_after_a_plan_plans_nothing() {
    for seed in 1..=60_u64 {
        let mut state = seed;
        let mut of = |among: &[u32]| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            among[(state >> 33) as usize % among.len()]
        };
        let hosts: Vec<DrawnHost> = (0..of(&[2, 3, 4, 5, 7]))
            .map(|place| {
                let driver = [QLOGIC, EMULEX][of(&[0, 0, seed as u32 % 2]) as usize];
                let set = [&[0, 0, 0, 64, 16, 48, 96, 128][..], &[0, 0, 0, 0, 32, 64, 200]];
                let [depth, staged] = set.map(|among| Some(of(among)).filter(|depth| *depth > 0));
                let gives = depth.unwrap_or(driver.2);
                let mut devices = Vec::new();
                for number in 1..=4 {
                    let depth = gives.min(of(&[1000, 1000, 1000, 1000, 8, 16, 24, 32]));
                    let dsnro = depth.min(of(&[32, 32, 32, 16, 64]));
                    devices.extend((of(&[0, 1, 1, 1, 1, 1]) > 0).then_some((number, depth, dsnro)));
                }
                drawn(&format!("h{place}"), driver, [depth, staged], &devices)
            })
            .collect();
        settle(&format!("seed {seed}"), &hosts, &[]);
        settle(&format!("seed {seed}, like"), &hosts, &["--like", "h0"]);
    }
}

/// A device that HPP has may be behind the driver that the plan makes less deep: only a reboot gives it more again.
#[test]
fn the_way_back_of_a_device_of_which_nothing_tells_the_driver_waits_for_its_reboot() {
    let folder = tempfile::tempdir().unwrap();
    for (name, depth) in [("a", None), ("b", None), ("c", Some(96))] {
        let is = depth.unwrap_or(32);
        let host = drawn(name, EMULEX, [depth, None], &[(1, is, 32), (2, is, 32)]);
        let text = host.outputs();
        let (before, second) = text.split_at(text.rfind("   Multipath Plugin: NMP").unwrap());
        let text = [before, &second.replacen("NMP", "HPP", 1)].concat();
        fs::write(folder.path().join(format!("{name}.txt")), text).unwrap();
    }
    let report = json(folder.path(), &[]);
    assert_eq!(typed(&report, "c"), "2 -m 32, lpfc_lun_queue_depth=32, reboot");
    let undo = &report["plans"][0]["undo"];
    assert_eq!(texts(&undo["now"]).count(), 0, "{undo:#}");
    assert!(texts(&undo["after_reboot"]).any(|line| line.ends_with("2 -m 96")), "{undo:#}");
    assert_eq!(report["plans"][0]["not_undone"], 0);
}

/// The reboot for one driver brings what another one was set to since the last: on the way back that gives as much as
/// before, and is set so again.
#[test]
fn the_way_back_of_a_parameter_that_waited_for_a_boot_has_both() {
    let folder = tempfile::tempdir().unwrap();
    for (name, staged, depth) in [("a", None, 32), ("b", None, 32), ("c", Some(16), 48)] {
        let of = |driver, set, device| drawn(name, driver, set, &[device]).outputs();
        let first = of(QLOGIC, [None, staged], (1, 64, 32));
        let second = of(EMULEX, [Some(depth), None], (2, depth, 32));
        let text = first + &second.replace("vmhba1", "vmhba2");
        fs::write(folder.path().join(format!("{name}.txt")), text).unwrap();
    }
    let like_a = ["--set", "c: system module parameters set -m lpfc -p lpfc_lun_queue_depth=32"];
    let report = json(folder.path(), &like_a);
    let plan = &report["plans"][0];
    assert_eq!(
        (&plan["host"], plan["plan"]["reboot"] == true),
        (&Value::from("c"), true),
        "{plan:#}"
    );
    assert_eq!(plan["not_undone"], 0, "{plan:#}");
    let [before, after] = ["before_reboot", "after_reboot"]
        .map(|part| texts(&plan["undo"][part]).collect::<Vec<_>>());
    let set = |depth: u32| {
        format!("esxcli system module parameters set -m qlnativefc -p ql2xmaxqdepth={depth}")
    };
    assert!(before.contains(&set(64).as_str()), "{plan:#}");
    assert_eq!(after.last(), Some(&set(16).as_str()), "{plan:#}");
}
