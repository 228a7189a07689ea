//! What a run says of waits below its hosts: the part of array or way that it knows to be the cause, and what helps there.

mod common;

use std::fs;

use common::json;
use serde_json::Value;

/// What a run of a scenario says that has this between its head and its one host; the first finding is asked for.
fn run(text: &str, options: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.toml");
    let head = "title = \"t\"\nduration = \"20s\"\nwarmup = \"2s\"\nsample = \"1s\"\n";
    fs::write(&file, format!("{head}{text}")).unwrap();
    json(&[&["run", file.to_str().unwrap(), "--json"], options].concat())
}

const HOST: &str = "[host.esx.adapter.vmhba1]\ndriver = \"qlnativefc\"\n";

/// A VM with its disk on a datastore.
fn vm(name: &str, datastore: &str, workload: &str) -> String {
    format!(
        "[vm.{name}]\nguest = \"linux\"\ndisk.\"scsi0:1\".datastore = \"{datastore}\"\nworkload = {{ {workload} }}\n"
    )
}

fn first(run: &Value) -> &Value {
    &run["windows"][0]["verdicts"][0]["findings"][0]
}

fn whats(finding: &Value) -> Vec<&str> {
    let changes = finding["changes"].as_array().unwrap();
    changes.iter().map(|change| change["what"].as_str().unwrap()).collect()
}

/// The finding is of that cause, its sentence and its first advice have these.
fn tells(run: &Value, cause: &str, sentence: &str, advice: &str) {
    let finding = first(run);
    assert_eq!(finding["cause"], cause, "{finding}");
    assert!(finding["sentence"].as_str().unwrap().contains(sentence), "{}", finding["sentence"]);
    assert!(whats(finding)[0].contains(advice), "{:?}", whats(finding));
}

/// I/Os a second of all.
fn iops(run: &Value) -> f64 {
    let disks = run["windows"][0]["stack"]["disks"].as_array().unwrap().iter();
    disks.map(|disk| disk["iops"].as_f64().unwrap()).sum()
}

/// What a run does once the first advice was typed.
fn after(text: &str, run_before: &Value) -> Value {
    let change = &first(run_before)["changes"][0];
    let lines = change["esxcli"].as_array().unwrap().iter();
    let lines: Vec<_> = lines.map(|line| format!("esx: {}", line.as_str().unwrap())).collect();
    let options: Vec<_> = lines.iter().flat_map(|line| ["--set", line]).collect();
    run(text, &options)
}

/// 750 a second at rates of their own beside one of 60: a limit of nine tenths of it has no equilibrium. Those that send the
/// next when one is answered are held by it.
#[test]
fn who_sends_at_a_rate_of_its_own_is_moved_and_not_limited() {
    let with = |hot: &str, count: u32| {
        let hot = vm("hot", "d1", hot).replacen("]\n", &format!("]\ncount = {count}\n"), 1);
        let cold = vm("cold", "d2", "arrival = \"poisson\", rate = 60, size = \"8k\"");
        run(
            &format!(
                "[array.p]\nspindles = 8\nraid = \"10\"\nservice = \"6ms\"\n{HOST}[datastore.d1]\n[datastore.d2]\n{hot}{cold}"
            ),
            &[],
        )
    };
    let open = with("arrival = \"poisson\", rate = 250, size = \"8k\", outstanding = 64", 3);
    tells(&open, "array-slow", "of the 12", "to another array, or give this one more");
    assert!(
        whats(first(&open)).iter().all(|what| !what.contains("IOPS limit")),
        "{:?}",
        whats(first(&open))
    );
    let told = first(&open)["do_not"][0].as_str().unwrap();
    assert!(told.contains("whatever is answered"), "{told}");
    // What they ask for is more than there is, so they wait in any case; and so do threads.
    for hot in ["arrival = \"poisson\", rate = 900, outstanding = 64", "threads = 16"] {
        tells(&with(hot, 3), "array-slow", "cold", "IOPS limit");
    }
}

#[test]
fn work_of_the_arrays_own_is_the_arrays() {
    let run = run(
        &format!(
            "[array.a]\nspindles = 10\nservice = \"5ms\"\nraid = \"5\"\n\
             background = {{ rate = 1700, read = \"100%\", outstanding = 64 }}\n{HOST}[datastore.d]\n{}",
            vm("v", "d", "threads = 1, size = \"8k\"")
        ),
        &[],
    );
    tells(&run, "array-slow", "of it for itself (a rebuild", "Have the array do its own work");
    assert_eq!(first(&run)["causers"], serde_json::json!([]));
}

/// 1,907 a second of 64 KiB are 1 Gbit/s: two mounts, and both are named.
#[test]
fn the_link_of_nfs_is_the_hosts_own() {
    let vms = vm("a", "n1", "threads = 32, size = \"64k\"")
        + &vm("b", "n2", "threads = 32, size = \"64k\"");
    let value = run(
        &format!(
            "[array.f]\nservers = 512\nqueue = \"shared\"\nservice = \"1ms\"\n[host.esx]\nnfs_link = \"1Gbit/s\"\n\
             {HOST}[datastore.n1]\nkind = \"nfs\"\n[datastore.n2]\nkind = \"nfs\"\n{vms}"
        ),
        &[],
    );
    tells(&value, "host-link", "The link of vmk0 is 100 % full", "Widen the link of vmk0");
    let places =
        [&first(&value)["at"], &first(&value)["also"][0]["at"]].map(|at| at.as_str().unwrap());
    assert!(places.contains(&"n1") && places.contains(&"n2"), "{places:?}");
    // The picture has it in the fabric.
    let levels = value["windows"][0]["stack"]["levels"].as_array().unwrap();
    let ms = |kind: &str| {
        let level = levels.iter().find(|level| level["kind"] == kind).unwrap();
        level["queues"][0]["ms"].as_f64().unwrap()
    };
    assert!(ms("fabric") > 30.0 && ms("array") < 2.0, "{levels:?}");
}

/// 1 % of 46 segments of a read are lost, which takes 200 ms each: 90 ms; a tenth of that counts beside the 2 ms as well.
#[test]
fn lost_segments_are_not_the_arrays() {
    let with = |iscsi: &str| {
        run(
            &format!(
                "[array.b]\nservers = 4096\nqueue = \"shared\"\nservice = \"1ms\"\nspread = \"constant\"\n\
                 round_trip = \"1ms\"\n[host.esx.adapter.vmhba64]\ndriver = \"iscsi_vmk\"\niscsi = {{ {iscsi} }}\n\
                 [datastore.d]\n{}",
                vm("c", "d", "threads = 4, size = \"64k\"")
            ),
            &[],
        )
    };
    for (share, told) in [("1%", "1 % of the segments"), ("0.1%", "0.1 % of the segments")] {
        let value = with(&format!("loss = \"{share}\", ack_timer = \"200ms\""));
        tells(&value, "slow-way", told, "Switch DelayedAck of vmhba64 off");
    }
    let value = with("loss = \"0.1%\", delayed_ack = false");
    assert!(first(&value).is_null(), "{value}");
}

/// A command takes 30 ms longer by the controller that does not have the volume.
#[test]
fn a_path_that_is_not_optimized_is_named() {
    let text = format!(
        "[array.b]\nservers = 64\nqueue = \"shared\"\nservice = \"0.5ms\"\ncontrollers = {{ extra = \"30ms\" }}\n\
         [volume.v]\narray = \"b\"\nowner = 1\n{HOST}[datastore.far]\nvolume = \"v\"\n{}\
         [[event]]\nat = \"0s\"\nremove = {{ path = \"vmhba1:C0:T0:L0\" }}\n",
        vm("f", "far", "threads = 8")
    );
    let value = run(&text, &[]);
    tells(
        &value,
        "slow-way",
        "100 % of its commands come by a path that is not optimized",
        "Bring back the paths",
    );
}

/// 20,000 a second by each controller: two volumes at one of them, and at both.
#[test]
fn a_full_controller_beside_an_idle_one_is_told_of() {
    let with = |owner: u32| {
        let vms = vm("a", "l1", "threads = 60") + &vm("b", "l2", "threads = 60");
        run(
            &format!(
                "[array.a]\nservers = 512\nqueue = \"shared\"\nservice = \"0.5ms\"\n\
                 controllers = {{ iops = 20000, extra = \"0.5ms\", takeover = \"2s\" }}\n\
                 [volume.l1]\narray = \"a\"\nowner = 1\n[volume.l2]\narray = \"a\"\nowner = {owner}\n\
                 {HOST}[host.esx.adapter.vmhba2]\ndriver = \"qlnativefc\"\n\
                 [datastore.l1]\nvolume = \"l1\"\n[datastore.l2]\nvolume = \"l2\"\n{vms}"
            ),
            &[],
        )
    };
    let one = with(1);
    tells(
        &one,
        "array-slow",
        "controller 1 of array a is saturated",
        "Move volumes to the other controller",
    );
    assert!(iops(&with(2)) > 1.9 * iops(&one));
}

/// A port moves 15,259 a second of 64 KiB, and round robin by turns of 1,000 has one of both full and then the other.
#[test]
fn ports_of_which_one_is_full_at_a_time_are_to_be_used_in_turn() {
    let text = |policy: &str| {
        format!(
            "[array.a]\nservers = 512\nqueue = \"shared\"\nservice = \"0.5ms\"\nport_link = \"8Gbit/s\"\nports = 2\n\
             {HOST}[datastore.ds]\npaths = 2\npath_policy = \"{policy}\"\n{}",
            vm("v", "ds", "threads = 64, size = \"64k\"")
        )
    };
    for (policy, told, advice) in [
        ("fixed", "the link to array a is 100 % full", "let it use all that are active, in turn,"),
        (
            "rr",
            "round robin sends 1000 commands in a row to a port",
            "take the next path after every command",
        ),
    ] {
        let before = run(&text(policy), &[]);
        tells(&before, "array-slow", told, advice);
        let after = after(&text(policy), &before);
        assert!((iops(&after) / 30_518.0 - 1.0).abs() < 0.01, "{policy}: {}", iops(&after));
        assert!(iops(&before) < 0.8 * iops(&after), "{policy}: {}", iops(&before));
    }
}

/// In turn both links carry what the slower one does.
#[test]
fn of_links_of_unlike_rates_round_robin_is_to_choose_by_latency() {
    let text = format!(
        "[array.a]\nservers = 512\nqueue = \"shared\"\nservice = \"0.5ms\"\n{HOST}link = \"8Gbit/s\"\n\
         [host.esx.adapter.vmhba2]\ndriver = \"qlnativefc\"\nlink = \"1Gbit/s\"\n\
         [datastore.ds]\npath_policy = \"rr\"\n{}",
        vm("v", "ds", "threads = 32, size = \"64k\"")
    );
    let before = run(&text, &[]);
    tells(&before, "host-link", "The link of vmhba2 is 100 % full", "by latency: in turn, each");
    assert!(iops(&after(&text, &before)) > 2.0 * iops(&before));
}

/// 10,000 units are all that volumes have together which may have 18,000.
#[test]
fn policies_that_have_no_more_to_share_are_told_of() {
    let volume = |name: &str| {
        format!(
            "[datastore.{name}]\nqos = \"{name}\"\n{}",
            vm(name, name, "threads = 64, size = \"4k\"")
        )
    };
    let with = |max: u32| {
        run(
            &format!(
                "[array.sf]\nservers = 256\nservice = \"0.4ms\"\nqos_capacity = 10000\n\
                 qos.a = {{ min = 2000, max = {max}, cost = \"solidfire\" }}\n\
                 qos.b = {{ min = 1000, max = {max}, cost = \"solidfire\" }}\n{HOST}lun_depth = 128\n{}{}",
                volume("a"),
                volume("b")
            ),
            &[],
        )
    };
    tells(
        &with(8000),
        "array-qos",
        "shares 10,000 cost units a second",
        "Give array sf more of what its policies share",
    );
    tells(
        &with(4000),
        "array-qos",
        "The QoS policy of array sf holds",
        "Raise the volume's policy",
    );
}

/// The bronze policy of [S4] as it is printed: `min` acts in a shortage alone.
#[test]
fn the_least_of_a_policy_changes_nothing_where_nothing_is_short() {
    let with = |min: &str| {
        let text = format!(
            "[array.sf]\nservers = 256\nservice = \"0.4ms\"\n\
             qos.bronze = {{ {min}max = 1000, burst = 2000, cost = \"solidfire\" }}\n{HOST}[datastore.ds]\nqos = \"bronze\"\n{}",
            vm("v", "ds", "threads = 64, size = \"4k\"")
        );
        run(&text, &[])["windows"].clone()
    };
    assert_eq!(with("min = 25, "), with(""));
}

/// Four hosts of 16 slots each fill the 64 places of the array.
#[test]
fn who_waits_for_slots_before_a_full_array_is_told_why() {
    let rest = format!(
        "[array.a]\nservers = 64\nservice = \"1ms\"\nqueue = \"shared\"\nround_trip = \"0.1ms\"\nqueue_limit = 64\n\
         full = \"busy\"\n[host.esx]\ncount = 4\n{HOST}lun_depth = 16\n[datastore.ds]\n{}",
        vm("v", "ds", "threads = 32, size = \"8k\"").replacen("]\n", "]\ncount = 4\n", 1)
    );
    let value = run(&rest, &[]);
    let verdict = &value["windows"][0]["verdicts"][0];
    assert_eq!(verdict["findings"], serde_json::json!([]));
    let headline = verdict["headline"].as_str().unwrap();
    let told = "commands wait for the 16 slots of ds, but array a works ";
    assert!(headline.contains(told) && !headline.contains("Few"), "{headline}");
}

/// An iSCSI session takes MaxCmds commands [ELA]. Where a file says nothing of iSCSI sessions there is none, and 250 under way
/// are told of; an empty table is enough for one, which then does 128 in 1.4 ms.
#[test]
fn software_iscsi_that_nothing_holds_is_told_of() {
    let array = "[array.a]\nservers = 65536\nqueue = \"shared\"\nservice = \"1.4ms\"\nspread = \"constant\"\n";
    let text = |iscsi: &str| {
        let adapter =
            format!("[host.esx.adapter.vmhba64]\ndriver = \"iscsi_vmk\"\nlun_depth = 256\n{iscsi}");
        format!("{array}{adapter}\n[datastore.ds]\n{}", vm("v", "ds", "threads = 250"))
    };
    let told = |run: &Value| {
        let notes = run["windows"][0]["notes"].as_array().unwrap().iter();
        notes
            .filter(|note| note.as_str().unwrap().contains("(MaxCmds)"))
            .cloned()
            .collect::<Vec<_>>()
    };
    let free = run(&text(""), &[]);
    let line = "vmhba64 of esx: 250 commands are under way by it, and nothing holds them: with `iscsi = {}` an iSCSI session \
                takes 128 (MaxCmds)";
    assert_eq!(told(&free), [line]);
    let held = run(&text("iscsi = {}"), &[]);
    assert!(told(&held).is_empty());
    for (run, outstanding) in [(free, 250.0), (held, 128.0)] {
        assert!((iops(&run) / (outstanding / 1.4e-3) - 1.0).abs() < 0.005, "{}", iops(&run));
    }
}
