//! What is done to a scenario as it stands: what it asks for stays what it was, and what cannot be done
//! is refused.

use model::Arrival;
use scenario::{Action, Scenario};

const FILE: &str = r#"title = "x"
duration = "10s"

[array.a]
servers = 8
service = "1ms"

[host.esx.adapter.vmhba1]
driver = "qlnativefc"

[datastore.ds]

[datastore.nfs]
kind = "nfs"

[vm.one]

[vm.one.disk."scsi0:1"]
datastore = "ds"

[vm.one.workload]
name = "night"
threads = 5
rate = 100

[vm.two]

[vm.two.disk."scsi3:1"]
datastore = "ds"

[[workload]]
vm = "two"
arrival = "poisson"
rate = 300
outstanding = 9

[[workload]]
vm = "two"
name = "other"
threads = 1

[vm.three]

[vm.three.disk."scsi0:0"]
datastore = "nfs"

[vm.three.workload]
threads = 8

[[event]]
at = "1s"
stop = "night"

[[event]]
at = "2s"
vm = "three"
power = "off"
"#;

fn scenario() -> Scenario {
    let none = &mut |_: &str| Err("there are no files".into());
    Scenario::parse("x.toml", FILE, none).unwrap()
}

fn outstanding(scenario: &Scenario, vm: &str) -> Vec<u32> {
    scenario.workloads_of(vm).map(|own| own.outstanding()).collect()
}

fn refused(result: Result<(), scenario::Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn twice_the_disks_have_the_same_load_and_its_events() {
    let mut doubled = scenario();
    doubled.double_disks("one").unwrap();
    assert_eq!(outstanding(&doubled, "one"), [3, 2]);
    let rates = doubled.workloads_of("one").map(|own| match own.config.arrival {
        Arrival::Closed { rate, .. } => rate.map(|rate| rate.per_sec),
        Arrival::Open { .. } => None,
    });
    assert_eq!(rates.collect::<Vec<_>>(), [Some(50.0); 2]);
    let disks = doubled.workloads_of("one").map(|own| {
        let disk = &doubled.hosts[0].config.vdisks[own.vdisk.index()];
        (disk.name.as_str(), disk.vscsi)
    });
    let disks: Vec<_> = disks.collect();
    assert_eq!((disks[0].0, disks[1].0), ("scsi0:1", "scsi1:0"));
    assert_ne!(disks[0].1, disks[1].1);
    let stops =
        doubled.events.iter().filter(|event| matches!(event.action, Action::StopWorkload(_)));
    assert_eq!(stops.count(), 2);
    let why = refused(scenario().double_disks("two"));
    assert_eq!(why, "`two` has no free virtual adapter");
    assert!(refused(scenario().double_disks("three")).starts_with("an event of the file moves"));
}

#[test]
fn fewer_are_outstanding_each_its_part_and_one_at_least() {
    for (most, expected) in [(100, [9, 1]), (10, [9, 1]), (5, [4, 1]), (1, [1, 1])] {
        let mut fewer = scenario();
        fewer.set_outstanding("two", most);
        assert_eq!(outstanding(&fewer, "two"), expected, "{most}");
    }
}

/// One after the other are not outstanding together; one that pauses has what it may on its disk.
#[test]
fn what_is_not_at_work_at_once_has_all_of_it() {
    let none = &mut |_: &str| Err("there are no files".into());
    let turned = [
        ("rate = 300\noutstanding = 9", "rate = 300\noutstanding = 9\nstop = \"4s\""),
        ("threads = 1\n", "threads = 40\nthink = \"1s\"\nstart = \"4s\"\n"),
    ];
    let text = turned.iter().fold(FILE.to_owned(), |text, (was, is)| text.replace(was, is));
    let mut fewer = Scenario::parse("x.toml", &text, none).unwrap();
    assert_eq!(fewer.outstanding_of("two"), (40, 1));
    fewer.set_outstanding("two", 6);
    assert_eq!(outstanding(&fewer, "two"), [6, 40]);
    let host = &fewer.hosts[0];
    let disk = host.disks_of("two").next().unwrap();
    assert_eq!(host.config.vdisks[disk.index()].depth, 6);
}

#[test]
fn a_device_or_host_of_its_own_is_given_where_there_is_something_to_part_from() {
    let mut own = scenario();
    own.give_own_device("one").unwrap();
    let host = &own.hosts[0];
    let device = |vm| host.device_of(host.disks_of(vm).next().unwrap());
    assert_ne!(device("one"), device("two"));
    assert_eq!(refused(own.give_own_device("one")), "`one` shares no device that has a queue");
    assert_eq!(refused(own.give_own_device("two")), "`two` shares no device that has a queue");
    assert_eq!(refused(own.give_own_device("three")), "`three` shares no device that has a queue");
    own.give_own_host("two").unwrap();
    assert_eq!((own.home("one").unwrap(), own.home("two").unwrap()), (0, 1));
    assert!(refused(own.give_own_host("three")).starts_with("an event of the file moves"));
    assert!(refused(own.home("four").map(drop)).contains("there is no VM `four`"));
}
