//! Keys of a file with other values: what they change, and how they are refused.

mod common;

use scenario::{Beside, Over, Scenario};

const FILE: &str = r#"title = "x"
duration = "10s"

[array.a]
servers = 8
service = "1ms"

[host.esx]
count = 2

[host.esx.adapter.vmhba1]
driver = "qlnativefc"

[datastore.ds]

[vm.one]

[vm.one.disk."scsi0:1"]
datastore = "ds"
shares = "high"

[vm.one.workload]
threads = 4
size = { "4k" = 1, "8k" = 1 }

[vm.two]

[vm.two.disk."scsi0:1"]
datastore = "ds"

[[workload]]
vm = "two"
name = "night"
threads = 8

[[workload]]
vm = "two"
threads = 16

[[window]]
name = "late"
from = "5s"
"#;

fn parse(key: &str, value: &str) -> Result<Scenario, String> {
    parse_in(FILE, key, value)
}

fn parse_in(file: &str, key: &str, value: &str) -> Result<Scenario, String> {
    let over = Over::new(key, value).map_err(|error| error.to_string())?;
    let none = &mut |_: &str| Err("there are no files".into());
    let beside = Beside { overs: &[over], lines: &[] };
    Scenario::parse_with("x.toml", file, &beside, none).map_err(|error| error.to_string())
}

/// The lines of what stands below move with a file's.
fn give_lines(from: &Scenario, to: &mut Scenario) {
    for (from, to) in from.hosts.iter().zip(&mut to.hosts) {
        to.sockets.line = from.sockets.line;
        to.lines.clone_from(&from.lines);
    }
    from.arrays.iter().zip(&mut to.arrays).for_each(|(from, to)| to.line = from.line);
}

#[test]
fn a_key_with_another_value_is_as_if_the_file_said_it() {
    let cases: &[(&str, &str, &str, &str)] = &[
        ("duration", "20s", "duration = \"10s\"", "duration = \"20s\""),
        ("seed", "7", "duration", "seed = 7\nduration"),
        ("array.a.servers", "3", "servers = 8", "servers = 3"),
        ("host.esx.adapter.vmhba1.lun_depth", "96", "[datastore", "lun_depth = 96\n[datastore"),
        ("host.esx.adapter.vmhba1.link", "8Gbit/s", "[datastore", "link = \"8Gbit/s\"\n[datastore"),
        ("host.*.esxi", "\"6.5\"", "count = 2", "count = 2\nesxi = \"6.5\""),
        ("datastore.ds.dsnro", "16", "[datastore.ds]", "[datastore.ds]\ndsnro = 16"),
        ("vm.one.disk.scsi0:1.shares", "low", "\"high\"", "\"low\""),
        ("vm.one.disk.\"scsi0:1\".shares", "500", "\"high\"", "500"),
        ("vm.one.workload.read", "70%", "threads = 4", "threads = 4\nread = \"70%\""),
        ("vm.one.workload.size", "{ \"64k\" = 1 }", "{ \"4k\" = 1, \"8k\" = 1 }", "\"64k\""),
        ("vm.one.workload.size.8k", "3", "\"8k\" = 1", "\"8k\" = 3"),
        ("workload.night.threads", "9", "threads = 8", "threads = 9"),
        ("workload.2.threads", "9", "threads = 16", "threads = 9"),
        ("window.late.from", "7s", "from = \"5s\"", "from = \"7s\""),
    ];
    for (key, value, was, is) in cases {
        assert_eq!(FILE.matches(was).count(), 1, "{was}");
        let expected = common::parse("x.toml", &FILE.replace(was, is)).unwrap();
        let mut actual = parse(key, value).unwrap_or_else(|error| panic!("{key}: {error}"));
        give_lines(&expected, &mut actual);
        assert_eq!(actual, expected, "{key}={value}");
    }
    let every = parse("workload.*.threads", "9").unwrap();
    let twice = FILE.replace("threads = 8", "threads = 9").replace("threads = 16", "threads = 9");
    assert_eq!(every, common::parse("x.toml", &twice).unwrap());
}

#[test]
fn keys_of_the_way_to_an_array_are_among_them() {
    const MOUNT: &str = "[datastore.ds]\nkind = \"nfs\"\nrpc_slots = 128";
    let file = FILE.replace("qlnativefc", "iscsi_vmk").replace("[datastore.ds]", MOUNT);
    let file = file.replace("\"iscsi_vmk\"", "\"iscsi_vmk\"\niscsi.window = 64");
    for (key, value, was, is) in [
        ("host.*.adapter.vmhba1.iscsi.window", "32", "window = 64", "window = 32"),
        (
            "host.esx.adapter.vmhba1.iscsi.initial_r2t",
            "true",
            "iscsi.window",
            "iscsi.initial_r2t = true\niscsi.window",
        ),
        ("datastore.ds.rpc_slots", "16", "rpc_slots = 128", "rpc_slots = 16"),
    ] {
        assert_eq!(file.matches(was).count(), 1, "{was}");
        let mut expected = common::parse("x.toml", &file.replace(was, is)).unwrap();
        let actual = parse_in(&file, key, value).unwrap_or_else(|error| panic!("{key}: {error}"));
        give_lines(&actual, &mut expected);
        assert_eq!(actual, expected, "{key}={value}");
    }
}

/// The group of the file in two, which say themselves where they are.
#[test]
fn one_of_a_group_is_on_another_datastore_as_if_the_file_said_it() {
    const OTHER: &str = "[datastore.ds]\n[datastore.other]";
    let disk = "[vm.two.disk.\"scsi0:1\"]\ndatastore = \"ds\"";
    let group = FILE.replace("[datastore.ds]", OTHER).replace("[vm.two]", "[vm.two]\ncount = 2");
    let (one, two) = (disk.replace("two", "two-1"), disk.replace("two", "two-2"));
    let parted = format!(
        "[vm.two-1]\nhost = \"esx-1\"\n{one}\n[vm.two-2]\nhost = \"esx-2\"\n{}",
        two.replace("ds\"", "other\"")
    );
    let expected = FILE.replace("[datastore.ds]", OTHER).replace(disk, "");
    let expected =
        expected.replace("[vm.two]", &parted).replace("\"two\"", "[\"two-1\", \"two-2\"]");
    let expected = common::parse("x.toml", &expected).unwrap();
    let is = |vm: &str, datastore: &str| {
        let beside = Beside { overs: &[Over::datastore(vm, datastore)], lines: &[] };
        let none = &mut |_: &str| Err("there are no files".into());
        let mut actual = Scenario::parse_with("x.toml", &group, &beside, none).unwrap();
        give_lines(&expected, &mut actual);
        actual == expected
    };
    assert!(is("two-2", "other"));
    assert!(!is("two-1", "other") && !is("two-2", "ds"));
}

#[test]
fn a_key_that_leads_nowhere_and_a_value_that_is_not_allowed_are_refused_in_their_place() {
    let cases = [
        ("vm..threads", "1", "`vm..threads` is no key; a key is as `vm.NAME.workload.threads`"),
        ("vm.\"one", "1", "`vm.\"one` is no key; a key is as `vm.NAME.workload.threads`"),
        ("", "1", "`` is no key; a key is as `vm.NAME.workload.threads`"),
        (
            "vm.noe.workload.threads",
            "1",
            "x.toml:16:2: key `vm`: there is no key `noe`; it is one of `one`, `two`",
        ),
        (
            "vm.one.workload",
            "1",
            "x.toml:22:9: key `vm.one.workload`: a whole number is not allowed here; it is a table",
        ),
        ("duration.x", "1", "x.toml:2:1: key `duration`: it is no table, and no key is in it"),
        (
            "workload.3.threads",
            "1",
            "x.toml:31:3: key `workload`: `3` is not in it; it is a list: 1 to 2, the `name` of one, or `*`",
        ),
        (
            "workload.1",
            "1",
            "x.toml:31:1: key `workload`: a whole number is not allowed here; it is a table",
        ),
        (
            "array.a.servers",
            "0",
            "x.toml:5:1: key `array.a.servers`: `0` is out of range; it is a whole number from 1 to 65536",
        ),
        (
            "array.a.servres",
            "1",
            "x.toml:4:8: key `array.a.servres`: there is no key `servres`; did you mean `servers`? it is one of \
             `servers`, `queue`, `service`, `spread`, `variation`, `write_service`, `per_kib`, `curve_size`, `spindles`, `raid`, `write_cache`, `write_cache_size`, `disk`, `curve`, \
             `overhead`, `read_cache`, `tier`, `background`, `xcopy`, `round_trip`, `link`, `write`, `unsolicited`, `max_burst`, `ports`, \
             `port_link`, `switch`, `queue_limit`, `lun_queue_limit`, `full`, `controllers`, `qos`, \
             `qos_capacity`, `burst_below`",
        ),
        (
            "array.a.service",
            "1",
            "x.toml:6:1: key `array.a.service`: a whole number is not allowed here; it is a duration in quotes \
             with its unit, as \"30s\"",
        ),
    ];
    for (key, value, expected) in cases {
        assert_eq!(parse(key, value).unwrap_err(), expected, "{key}={value}");
    }
}

#[test]
fn a_device_depth_is_that_of_the_driver_and_dsnro_in_every_version() {
    for version in ["5.1", "5.5", "7.0"] {
        let text = FILE.replace("count = 2", &format!("count = 2\nesxi = \"{version}\""));
        let text =
            text.replace("qlnativefc", if version == "5.1" { "qla2xxx" } else { "qlnativefc" });
        let mut scenario = common::parse("x.toml", &text).unwrap();
        scenario.set_device_depth(96).unwrap_or_else(|error| panic!("{version}: {error}"));
        for host in &scenario.hosts {
            assert!(host.config.adapters.iter().all(|adapter| adapter.lun_depth == 96));
            let own = host.config.devices.iter().all(|device| device.dsnro == Some(96));
            assert!(own || (version == "5.1" && host.settings.len() == 1), "{version}: {host:?}");
        }
        let refused = scenario.set_device_depth(0).unwrap_err().to_string();
        assert!(refused.contains("`0`") || refused.contains(" 0"), "{refused}");
    }
}
