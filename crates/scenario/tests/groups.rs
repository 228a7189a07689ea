//! Groups: what the file says once becomes so many things, each with its own name and time.

mod common;

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
    common::parse("groups.toml", &text).unwrap_or_else(|error| panic!("{error}"))
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

/// A week of 2,000 virtual disks: samples of 5 s would be 150 GB.
#[test]
fn a_run_keeps_no_more_values_than_memory_has_room_for() {
    let week = |sample: &str| {
        let head = HEAD.replace("60s\"", &format!("7d\"{sample}"));
        let vms = VMS.replace("count = 3", "count = 2_000");
        common::parse("week.toml", &format!("{head}{vms}"))
    };
    let scenario = week("").unwrap_or_else(|error| panic!("{error}"));
    let samples = scenario.duration_ns / scenario.sample_ns;
    let values = samples * scenario.hosts[0].config.inventory().values_max();
    assert!((100_000_000..=1 << 27).contains(&values), "{samples} samples");
    assert!(scenario.sample_ns.is_multiple_of(5_000_000_000));
    let refusal = week("\nsample = \"5s\"").unwrap_err().to_string();
    let allowed = "4:1: key `sample`: it must give 1 to ";
    assert!(refusal.starts_with(&format!("week.toml:{allowed}")), "{refusal}");
}

#[test]
fn more_workloads_of_a_disk_than_a_tag_can_tell_are_refused() {
    let of = |number: u32| {
        let mut text =
            HEAD.replace("count = 3\n", "") + "[vm.v.disk.\"scsi0:1\"]\ndatastore = \"ds\"\n";
        for name in 0..number {
            text += &format!("[[workload]]\nvm = \"v\"\nname = \"{name}\"\nthreads = 1\n");
        }
        Scenario::parse("many.toml", &text, &mut |_| Err("no files".into()))
    };
    assert_eq!(of(65_536).unwrap().workloads.len(), 65_536);
    let refused = of(65_537).unwrap_err().to_string();
    assert!(refused.ends_with("a disk has too many workloads; at most 65536 of each"), "{refused}");
}

/// What fio hands over in a system call waits for each other in the block layer of each of the disks.
#[test]
fn the_batch_of_a_job_is_that_of_the_block_layers_of_its_disks() {
    let vms = VMS.replace("count = 3", "count = 3\nguest = \"linux\"");
    let (head, _) = vms.split_once("[vm.web.workload]").unwrap();
    let job = "[vm.web.workload]\nfio = \"--name=a --direct=1 --ioengine=libaio --iodepth=32 --iodepth_batch=16\"";
    let text = format!("{HEAD}\n{head}block = {{}}\n{job}\n");
    let scenario = common::parse("fio.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let batches = scenario.hosts[0].blocks.iter().flatten().map(|block| block.batch);
    assert_eq!(batches.collect::<Vec<_>>(), [16, 16, 16]);
}
