//! What a run knows of its own scenario and says: I/Os that are not served, depths as they are, and lines that the
//! host has and that undo what was set.

mod common;

use common::json;
use serde_json::Value;

/// A run of a text, as JSON.
fn run(text: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("made.toml");
    std::fs::write(&file, text).unwrap();
    json(&["run", "--json", file.to_str().unwrap()])
}

fn verdict(run: &Value) -> &Value {
    &run["windows"].as_array().unwrap().last().unwrap()["verdicts"][0]
}

fn findings(run: &Value) -> &Vec<Value> {
    verdict(run)["findings"].as_array().unwrap()
}

fn causes(run: &Value) -> Vec<&str> {
    findings(run).iter().map(|finding| finding["cause"].as_str().unwrap()).collect()
}

/// A scenario of one VM that asks for 4,000 I/Os a second and has two of them outstanding.
fn asks_too_much(array: &str, backlog: &str, outstanding: u32) -> String {
    format!(
        "title = \"t\"\nduration = \"20s\"\nwarmup = \"2s\"\nsample = \"1s\"\n[array.arr]\n{array}\n\
         service = \"1ms\"\nspread = \"constant\"\n[host.esx.adapter.vmhba1]\ndriver = \"nfnic\"\n\
         [datastore.g]\n[vm.app]\nguest = \"linux\"\n[vm.app.disk.\"scsi0:1\"]\ndatastore = \"g\"\n\
         [vm.app.workload]\narrival = \"poisson\"\nrate = 4000\n{backlog}\noutstanding = {outstanding}\n"
    )
}

#[test]
fn what_is_not_served_is_no_all_clear() {
    for (backlog, lost) in [("backlog = 100000", "0 lost"), ("backlog = 10", " lost; 9.")] {
        let run = run(&asks_too_much("servers = 256", backlog, 2));
        let verdict = verdict(&run);
        assert_eq!((findings(&run).len(), &verdict["outcome"]), (0, &"cannot-tell".into()));
        let headline = verdict["headline"].as_str().unwrap();
        assert!(headline.starts_with("app:scsi0:1: 4,0"), "{headline}");
        for told in ["I/Os a second offered, ", lost, " ms each in guest and application."] {
            assert!(headline.contains(told), "{told}: {headline}");
        }
        let lack = verdict["lacks"][0]["sentence"].as_str().unwrap();
        assert!(lack.contains("2 are outstanding of the 254 that its driver lets out"), "{lack}");
    }
}

#[test]
fn a_demand_that_is_served_is_an_all_clear() {
    let run = run(&asks_too_much("servers = 256", "", 64));
    assert_eq!(verdict(&run)["outcome"], "healthy", "{}", verdict(&run)["headline"]);
}

#[test]
fn a_finding_has_what_its_vm_is_not_served_in_its_headline() {
    let run = run(&asks_too_much("servers = 2", "backlog = 1000", 64));
    assert_eq!(causes(&run)[0], "array-slow");
    let headline = verdict(&run)["headline"].as_str().unwrap();
    for told in ["/s offered, ", " served, 2,0", " lost, ", " ms each in guest and application."] {
        assert!(headline.contains(told), "{told}: {headline}");
    }
}

/// A device on which two VMs have 40 threads each, under Storage I/O Control and with throttling on.
fn controlled(limit: &str) -> String {
    format!(
        "title = \"t\"\nduration = \"60s\"\nwarmup = \"4s\"\nsample = \"2s\"\n\
         esxcli = \"system settings advanced set -o /Disk/QFullSampleSize -i 32\"\n[array.arr]\nservers = 8\n\
         service = \"5ms\"\n{limit}\n[host.esx.adapter.vmhba1]\ndriver = \"lpfc\"\n[datastore.gold]\n\
         congestion_threshold = \"10ms\"\n[vm.app]\ncount = 2\nguest = \"linux\"\n[vm.app.disk.\"scsi0:1\"]\n\
         datastore = \"gold\"\n[vm.app.workload]\nthreads = 40\n"
    )
}

#[test]
fn an_array_that_refuses_nothing_throttles_nobody() {
    for limit in ["", "lun_queue_limit = 64"] {
        assert_eq!(causes(&run(&controlled(limit))), ["sioc"], "{limit}");
    }
    let refuses = controlled("lun_queue_limit = 8");
    assert!(causes(&run(&refuses)).contains(&"adaptive-throttling"));
}

/// Disks with more threads than their depth before an array that takes long: in short samples what is outstanding by
/// Little's law is another number than the depth.
#[test]
fn a_disk_is_at_the_depth_that_it_has() {
    let of = |adapter: &str, guest: &str, array: &str| {
        let text = format!(
            "title = \"t\"\nduration = \"6s\"\nwarmup = \"1s\"\nsample = \"500ms\"\n[array.a]\nservers = 1\n\
             {array}\n[host.h.adapter.vmhba1]\ndriver = \"lpfc\"\nlun_depth = 32\n[datastore.ds]\n[vm.v]\n\
             guest = \"{guest}\"\n[vm.v.disk.\"scsi0:0\"]\ndatastore = \"ds\"\nadapter = \"{adapter}\"\n\
             [vm.v.workload]\nthreads = 300\nsize = \"256k\"\n"
        );
        let run = run(&text);
        let of_disk = |finding: &&Value| finding["cause"] == "virtual-disk-cap";
        let finding =
            findings(&run).iter().find(of_disk).unwrap_or_else(|| panic!("{:?}", causes(&run)));
        finding["sentence"].as_str().unwrap().to_owned()
    };
    for service in
        ["service = \"5ms\"", "service = \"7ms\"", "service = \"3ms\"\nspread = \"constant\""]
    {
        let sentence = of("pvscsi", "linux", service);
        assert!(
            sentence.contains("254 that PVSCSI") || sentence.contains("fills the 254 "),
            "{sentence}"
        );
        let sentence = of("lsilogic", "windows", service);
        assert!(
            sentence.contains("the 32 that LSI") || sentence.contains("fills the 32 "),
            "{sentence}"
        );
    }
}

/// Two adapters of one driver, and a device behind the first that is full.
fn of_two_adapters(first: &str, second: &str) -> String {
    format!(
        "title = \"t\"\nduration = \"10s\"\nwarmup = \"1s\"\nsample = \"1s\"\n[array.a]\nservers = 64\n\
         service = \"1ms\"\n[host.esx.adapter.vmhba1]\ndriver = \"qlnativefc\"\n{first}\n\
         [host.esx.adapter.vmhba2]\ndriver = \"qlnativefc\"\n{second}\n[datastore.one]\nadapters = [\"vmhba1\"]\n\
         [datastore.two]\nadapters = [\"vmhba2\"]\n[vm.v]\nguest = \"linux\"\n[vm.v.disk.\"scsi0:0\"]\n\
         datastore = \"one\"\n[vm.v.workload]\nthreads = 60\n"
    )
}

#[test]
fn the_depth_of_a_driver_is_undone_as_it_was_for_all_of_its_adapters() {
    let step = |first, second| {
        let run = run(&of_two_adapters(first, second));
        assert_eq!(causes(&run)[0], "device-depth", "{:?}", causes(&run));
        let change = findings(&run)[0]["changes"][0].clone();
        (change["steps"][0].clone(), change["undo"].as_str().unwrap().to_owned())
    };
    let (one, _) = step("lun_depth = 16", "lun_depth = 16");
    assert_eq!(one["undo"], "system module parameters set -m qlnativefc -p ql2xmaxqdepth=16");
    let (none, why) = step("lun_depth = 16", "");
    assert_eq!(none["undo"], Value::Null);
    assert!(why.contains("depths of their own (vmhba1 16, vmhba2 64)"), "{why}");
    // What raises one lowers no other.
    let (none, _) = step("lun_depth = 16", "lun_depth = 200");
    assert_eq!(none["set"], "system module parameters set -m qlnativefc -p ql2xmaxqdepth=200");
}

#[test]
fn a_deeper_queue_before_an_array_that_has_nothing_left_is_not_the_advice() {
    let run = json(&["run", "--json", "sched-cost-unit"]);
    let verdict = &run["windows"].as_array().unwrap()[1]["verdicts"][0];
    let advice = verdict["advice"].as_str().unwrap();
    assert!(advice.starts_with("Ask less of the array"), "{advice}");
    let not = verdict["findings"][0]["do_not"][0].as_str().unwrap();
    assert!(not.contains("the rate can grow by 0.6"), "{not}");
}

#[test]
fn a_host_older_than_vvols_is_told_no_line_of_theirs() {
    let of = |version: &str| {
        let text = format!(
            "title = \"t\"\nesxi = \"{version}\"\nduration = \"10s\"\nwarmup = \"1s\"\nsample = \"1s\"\n[array.a]\n\
             servers = 512\nservice = \"1ms\"\n[host.esx.adapter.vmhba1]\ndriver = \"lpfc\"\nlun_depth = 254\n\
             [datastore.ds]\nkind = \"vvol\"\n[vm.v]\ncount = 2\nguest = \"linux\"\n[vm.v.disk.\"scsi0:0\"]\n\
             datastore = \"ds\"\n[vm.v.workload]\nthreads = 200\n"
        );
        let run = run(&text);
        assert_eq!(causes(&run)[0], "dsnro", "{:?}", causes(&run));
        findings(&run)[0]["changes"][0].clone()
    };
    let change = of("5.5");
    assert_eq!(change["steps"].as_array().unwrap().len(), 0);
    let what = change["what"].as_str().unwrap();
    assert!(what.starts_with("Update the host to ESXi 6.0 to raise DSNRO"), "{what}");
    let line = of("6.7")["steps"][0]["set"].as_str().unwrap().to_owned();
    assert!(line.contains("-o /Scsi/ScsiVVolPESNRO"), "{line}");
}
