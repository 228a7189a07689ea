//! Groups: what the file says once becomes so many things, each with its own name and time.

use model::Access;
use scenario::Scenario;

const HEAD: &str = r#"
title = "Groups"
duration = "60s"

[array.a]
servers = 8
service = "1ms"

[host.esx.adapter.vmhba1]
driver = "fnic"

[datastore.ds]
count = 3
"#;

const VMS: &str = r#"
[vm.web]
count = 3

[vm.web.disk."scsi0:1"]
datastore = "ds"

[vm.web.workload]
threads = 4
"#;

fn parse(datastore: &str, workload: &str) -> Scenario {
    let text = format!("{HEAD}{datastore}\n{VMS}{workload}\n");
    Scenario::parse("groups.toml", &text, &mut |_| Err("there are no files".into()))
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_devices_of_a_group_are_named_one_by_one_or_from_the_first_on() {
    let names = |device: &str| {
        let scenario = parse(&format!("device = {device}"), "");
        let devices = scenario.hosts[0].config.devices.iter();
        devices.map(|device| device.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        names("\"naa.600a098000000f\"").concat(),
        "naa.600a098000000fnaa.600a0980000010naa.600a0980000011"
    );
    assert_eq!(names("[\"naa.1\", \"eui.7\", \"naa.3\"]"), ["naa.1", "eui.7", "naa.3"]);
}

#[test]
fn copies_of_a_workload_start_one_after_the_other() {
    let scenario = parse("", "start = { first = \"5s\", every = \"2s\" }");
    let starts: Vec<_> =
        scenario.workloads.iter().map(|own| own.starts.0 / 1_000_000_000).collect();
    assert_eq!(starts, [5, 7, 9]);
}

#[test]
fn access_is_a_word_or_the_share_that_is_random() {
    let access = |text: &str| parse("", &format!("access = \"{text}\"")).workloads[0].config.access;
    assert_eq!(access("sequential"), Access::Sequential);
    assert_eq!(access("0%"), Access::Sequential);
    assert_eq!(access("30%"), Access::Mixed(0.3));
}
