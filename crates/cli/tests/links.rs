//! Links of a host's own ports: who fills one is named, in the verdict, its evidence and the picture; and windows in which
//! commands are not answered.

mod common;

use std::fs;

use common::{json, kavg};
use serde_json::Value;

/// Two VMs behind one port of a host, or of more: `backup` on array a, with 64 of 512 KiB outstanding, and `db` on array b,
/// with one of 8 KiB. Both arrays answer in 0.4 ms.
fn scenario(backup: &str, adapter: &str, more: &str) -> String {
    let store = |name: &str, vm: &str, load: &str| {
        format!(
            "[array.{name}]\nservers = 4096\nqueue = \"shared\"\nservice = \"0.4ms\"\nspread = \"constant\"\n\
             [datastore.{name}]\narray = \"{name}\"\n\
             [vm.{vm}]\nguest = \"linux\"\ndisk.\"scsi0:0\".datastore = \"{name}\"\nworkload = {{ {load} }}\n"
        )
    };
    format!(
        "title = \"t\"\nduration = \"24s\"\nwarmup = \"4s\"\nsample = \"2s\"\n{}{}[host.esx]\nadapter.vmhba1 = {{ {adapter} }}\n{more}",
        store("a", "backup", backup),
        store("b", "db", "threads = 1, size = \"8k\""),
    )
}

const BACKUP: &str = "threads = 64, size = \"512k\"";
const FC: &str = "driver = \"qlnativefc\", link = \"8Gbit/s\"";

/// What a run of a text says, as text and as JSON.
fn run(text: &str, options: &[&str]) -> (String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.toml");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let said = kavg(&[&["run", file], options].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    (said.out, json(&[&["run", file, "--json"], options].concat()))
}

/// The findings on a host over the first window.
fn findings(run: &Value, host: usize) -> &Vec<Value> {
    run["windows"][0]["verdicts"][host]["findings"].as_array().unwrap()
}

fn names(parties: &Value) -> Vec<&str> {
    parties.as_array().unwrap().iter().map(|party| party["name"].as_str().unwrap()).collect()
}

fn whats(finding: &Value) -> Vec<&str> {
    let changes = finding["changes"].as_array().unwrap();
    changes.iter().map(|change| change["what"].as_str().unwrap()).collect()
}

/// 64 x 512 KiB at 8 Gbit/s is 33.6 ms, for the one of 8 KiB behind them too, whose array has next to nothing to do.
#[test]
fn who_fills_a_hosts_link_is_the_cause_and_who_waits_behind_it_suffers() {
    let (text, value) = run(&scenario(BACKUP, FC, ""), &[]);
    let found = findings(&value, 0);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&found[0]["cause"], &found[0]["at"]), (&"host-link".into(), &"vmhba1".into()));
    assert_eq!([names(&found[0]["causers"]), names(&found[0]["sufferers"])], [["backup"], ["db"]]);
    let told = ["limit of", "port of its own"].map(|part| whats(&found[0]).concat().contains(part));
    assert_eq!(told, [true, true], "{:?}", whats(&found[0]));
    for part in [
        "db on vmhba1: Link of the host's own port too slow, 33.6 ms a command.",
        "The link of vmhba1 is 100 % full: of the 33.6 ms",
        "use of the link of vmhba1 100 %",
        "to a by vmhba1",
        "to b by vmhba1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // What is advised helps: db had 30 a second.
    let line = found[0]["changes"][0]["powercli"][0].as_str().unwrap();
    let (_, value) = run(&scenario(BACKUP, FC, ""), &["--set", line]);
    let disks = value["windows"][0]["stack"]["disks"].as_array().unwrap();
    let db = disks.iter().find(|disk| disk["name"] == "db scsi0:0").unwrap();
    assert!(db["ms"].as_f64().unwrap() < 1.0, "{db}");
}

/// 32 x 64 KiB at 1 Gbit/s: 16.8 ms, which is no slow disk's yet, and the link has nothing left.
#[test]
fn who_is_alone_on_a_full_link_is_told_so() {
    let iscsi = "driver = \"iscsi_vmk\", link = \"1Gbit/s\"";
    let (_, value) = run(
        &scenario(
            "threads = 32, size = \"64k\"",
            iscsi,
            "[[event]]\nat = \"1s\"\nvm = \"db\"\npower = \"off\"\n",
        ),
        &[],
    );
    let found = findings(&value, 0);
    assert_eq!((found.len(), &found[0]["cause"]), (1, &"host-link".into()), "{found:?}");
    assert_eq!([names(&found[0]["causers"]), names(&found[0]["sufferers"])], [["backup"]; 2]);
    assert!(
        whats(&found[0])[0].starts_with("Widen the link of a VMkernel port of vmhba1"),
        "{found:?}"
    );
}

#[test]
fn a_link_with_room_is_nobodys_cause_and_that_of_an_array_is_the_arrays() {
    let wide = FC.replace("8Gbit", "80Gbit");
    let light = "threads = 1, size = \"512k\"";
    let behind = |link: &str| format!("[array.a]\nlink = \"{link}\"\n");
    for (text, cause) in [
        (scenario(light, FC, ""), None),
        (
            scenario(BACKUP, &wide, "").replacen("[array.a]\n", &behind("8Gbit/s"), 1),
            Some("array-slow"),
        ),
    ] {
        let (_, value) = run(&text, &[]);
        let causes: Vec<_> =
            findings(&value, 0).iter().map(|one| one["cause"].as_str().unwrap()).collect();
        assert_eq!(causes, Vec::from_iter(cause));
    }
    // Of two links in a row that are both full each is named: to widen one alone gains nothing.
    let both = scenario(BACKUP, FC, "").replacen("[array.a]\n", &behind("8Gbit/s"), 1);
    let (_, value) = run(&both, &[]);
    let causes: Vec<_> =
        findings(&value, 0).iter().map(|one| one["cause"].as_str().unwrap()).collect();
    assert!(causes.contains(&"host-link") && causes.contains(&"array-slow"), "{causes:?}");
}

/// Round Robin is for who has a second link, and gains nothing where both paths leave by one.
#[test]
fn port_binding_is_told_as_what_it_is() {
    let value = json(&["run", "--json", "port-binding"]);
    let hosts = value["windows"][0]["verdicts"].as_array().unwrap();
    for (host, verdict) in hosts.iter().enumerate() {
        let found = findings(&value, host);
        assert_eq!((found.len(), &found[0]["cause"]), (1, &"host-link".into()), "{found:?}");
        let is_offered = whats(&found[0])[0].contains("let it use all that are active");
        assert_eq!(is_offered, verdict["host"] == "fixed", "{}", verdict["host"]);
    }
}

/// Of three VMs that have 15 outstanding each, two are not answered for 12 s while a controller is taken over: their commands
/// have no latency, and those of the third are quick. Later all are slower, at one controller.
#[test]
fn the_window_of_an_outage_is_the_worst() {
    let store = |name: &str, owner: u32| {
        format!(
            "[volume.{name}]\nowner = {owner}\n[datastore.{name}]\nvolume = \"{name}\"\npath_policy = \"fixed\"\n\
             [vm.{name}]\ndisk.\"scsi0:0\".datastore = \"{name}\"\nworkload = {{ threads = 15 }}\n"
        )
    };
    let event = "[[event]]\nat = \"10s\"\ncontroller = 2\nstate = \"down\"\n";
    let window = |name: &str, from: u32, to: u32| {
        format!("[[window]]\nname = \"{name}\"\nfrom = \"{from}s\"\nto = \"{to}s\"\n")
    };
    let text = format!(
        "title = \"t\"\nduration = \"40s\"\nsample = \"1s\"\n\
         [array.box]\nservers = 4096\nqueue = \"shared\"\nservice = \"1ms\"\nspread = \"constant\"\n\
         controllers = {{ iops = 20000, takeover = \"7s\", dead_after = \"12s\" }}\n\
         [host.esx]\nadapter.vmhba1 = {{ driver = \"qlnativefc\" }}\n{}{}{}{event}{}{}{}",
        store("x", 1),
        store("y", 2),
        store("z", 2),
        window("well", 2, 10),
        window("out", 10, 22),
        window("slow", 25, 40),
    );
    let (text, value) = run(&text, &[]);
    let ms = |window: usize| value["windows"][window]["stack"]["total_ms"].as_f64().unwrap();
    assert!(ms(2) < ms(3), "{} {}", ms(2), ms(3));
    assert!(text.contains("\n▶  out "), "{text}");
}

/// Two hosts on one switch: 64 x 512 KiB of `backup` at 8 Gbit/s are 33.6 ms, for the four of 8 KiB of the other host too.
#[test]
fn the_full_link_of_a_switch_is_told_on_each_host_and_which_fills_it() {
    let adapter = "driver = \"qlnativefc\", link = \"32Gbit/s\", switch = \"edge\"";
    let second = format!(
        "[host.other]\nadapter.vmhba1 = {{ {adapter} }}\n[switch.edge]\nlink = \"8Gbit/s\"\n"
    );
    let text = scenario(BACKUP, adapter, &second).replace("threads = 1, size", "threads = 4, size");
    let text = text
        .replace("[vm.backup]\n", "[vm.backup]\nhost = \"esx\"\n")
        .replace("[vm.db]\n", "[vm.db]\nhost = \"other\"\n");
    let (said, value) = run(&text, &[]);
    for (host, causers, sufferers, fix) in [
        (0, vec!["backup"], ["backup"], "Widen the link of switch edge"),
        (1, vec![], ["db"], "Widen the link of switch edge"),
    ] {
        let found = findings(&value, host);
        assert_eq!((found.len(), &found[0]["cause"]), (1, &"switch-link".into()), "{found:?}");
        assert_eq!(names(&found[0]["causers"]), causers);
        assert_eq!(names(&found[0]["sufferers"]), sufferers);
        assert!(whats(&found[0])[0].starts_with(fix), "{found:?}");
        let sentence = found[0]["sentence"].as_str().unwrap();
        assert!(sentence.contains("is 100 % full: of the 33.6 ms"), "{sentence}");
        assert!(sentence.contains("2 hosts share it; esx moves 953 of the"), "{sentence}");
    }
    assert!(said.contains("Link of a switch too slow"), "{said}");
    // With room there is nothing to say, and of two fabrics the other one is told.
    let (_, value) = run(&text.replace("\"8Gbit/s\"", "\"80Gbit/s\""), &[]);
    assert_ne!(
        findings(&value, 1).first().map(|found| &found["cause"]),
        Some(&"switch-link".into())
    );
    let beside = "adapter.vmhba2 = { driver = \"qlnativefc\" }\n[host.other]";
    let (_, value) = run(&text.replace("[host.other]", beside), &[]);
    let told = whats(&findings(&value, 0)[0]).concat();
    assert!(told.contains("let it use all that are active"), "{told}");
}

/// 512 KiB at 10 MiB/s are 50 ms, and 0.2 ms of the array: one command at a time waits for nobody.
#[test]
fn a_link_that_is_slow_for_one_command_is_named_and_no_path_policy() {
    let text = "title = \"t\"\nduration = \"10s\"\n[array.a]\nservers = 64\nservice = \"0.2ms\"\nspread = \"constant\"\n\
                port_link = \"10MiB/s\"\nports = 4\n[host.h.adapter.vmhba1]\ndriver = \"qlnativefc\"\n\
                [datastore.d]\npaths = 4\n[vm.x.disk.\"scsi0:1\"]\ndatastore = \"d\"\n\
                [vm.x.workload]\nthreads = 1\nsize = \"512k\"\n";
    let (_, run) = run(text, &[]);
    let finding = &findings(&run, 0)[0];
    let sentence = finding["sentence"].as_str().unwrap();
    let told = "the link to array a is slow for commands of that size: one takes 50.2 ms when nobody else sends any";
    assert!(sentence.contains(told), "{sentence}");
    assert!(whats(finding).iter().all(|what| !what.contains("round robin")), "{finding}");
}

/// 512 KiB at 100 Mbit/s are 41.9 ms, and 0.5 ms of the array, whichever link it is; 256 KiB are 21 ms, which is no slow
/// disk's.
#[test]
fn whichever_link_is_slow_for_one_command_it_is_named_as_such() {
    let text = |array: &str, host: &str, store: &str, size: &str| {
        format!(
            "title = \"t\"\nduration = \"10s\"\nsample = \"1s\"\n[switch.s]\nlink = \"100Mbit/s\"\n\
             [array.a]\nservers = 64\nservice = \"0.5ms\"\nspread = \"constant\"\n{array}\n[host.h]\n{host}\n\
             [datastore.d]\n{store}\n[vm.v]\nguest = \"linux\"\ndisk.\"scsi0:1\".datastore = \"d\"\n\
             workload = {{ threads = 1, size = \"{size}\" }}\n"
        )
    };
    const ADAPTER: &str = "adapter.vmhba1 = { driver = \"qlnativefc\"";
    let [fc, link, switch] = ["", ", link = \"100Mbit/s\"", ", switch = \"s\""]
        .map(|more| format!("{ADAPTER}{more} }}"));
    const ARRAY: &str = "the link to array a is slow for commands of that size";
    const HOST: &str = "is slow for commands of that size, and 98.2 % of the time in use";
    for (array, host, store, cause, told) in [
        ("link = \"100Mbit/s\"", &*fc, "", "array-slow", ARRAY),
        ("port_link = \"100Mbit/s\"", &fc, "", "array-slow", ARRAY),
        ("link = \"100Mbit/s\"", "", "kind = \"nfs\"", "array-slow", ARRAY),
        ("", &link, "", "host-link", HOST),
        ("", "nfs_link = \"100Mbit/s\"", "kind = \"nfs\"", "host-link", HOST),
        ("", &switch, "", "switch-link", HOST),
        ("", "nfs_switch = \"s\"", "kind = \"nfs\"", "switch-link", HOST),
    ] {
        let (_, value) = run(&text(array, host, store, "512k"), &[]);
        let found = findings(&value, 0);
        assert_eq!((found.len(), &found[0]["cause"]), (1, &cause.into()), "{found:?}");
        let sentence = found[0]["sentence"].as_str().unwrap();
        assert!(sentence.contains(told), "{sentence}");
        assert!(!sentence.contains("what else goes over it"), "{sentence}");
        assert!(
            told == ARRAY || sentence.contains("which is what its own 512 KiB take"),
            "{sentence}"
        );
        assert!(
            whats(&found[0])[0]
                .ends_with("or have guests send smaller commands: no other command is in the way.")
        );
        let (_, value) = run(&text(array, host, store, "256k"), &[]);
        assert!(findings(&value, 0).is_empty(), "{cause}: {:?}", findings(&value, 0));
    }
}

/// One command of 8 KiB of another host waits behind the 64 of 512 KiB that fill the link of the switch: 33.5 ms.
#[test]
fn who_waits_alone_behind_another_hosts_commands_waits_for_the_switch() {
    let adapter = "driver = \"qlnativefc\", switch = \"edge\"";
    let second = format!(
        "[host.other]\nadapter.vmhba1 = {{ {adapter} }}\n[switch.edge]\nlink = \"8Gbit/s\"\n"
    );
    let text = scenario(BACKUP, adapter, &second)
        .replace("[vm.backup]\n", "[vm.backup]\nhost = \"esx\"\n")
        .replace("[vm.db]\n", "[vm.db]\nhost = \"other\"\n");
    let (_, value) = run(&text, &[]);
    let found = findings(&value, 1);
    assert_eq!((found.len(), &found[0]["cause"]), (1, &"switch-link".into()), "{found:?}");
    let sentence = found[0]["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("behind what else goes over it. 2 hosts share it; esx moves"),
        "{sentence}"
    );
}
