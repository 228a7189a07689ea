//! What of `kavg serve` comes, goes, grows and moves while it works: as clients, lists and journals see it.

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
    fs::{self, File},
    io::Read,
    os::unix::net::UnixStream,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use control::Control;
use daemon::{Daemon, Site};
use guest::{Disk, Shape, Wish};
use nbd::Client;
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// Two disks of two VMs on one device, each in an image.
const DISKS: &str = r#"
[datastore.f]
device = "naa.60000000000000000000000000000001"
backend = "file"
directory = "."
[vm.a.disk."scsi0:0"]
datastore = "f"
size = "8m"
[vm.b.disk."scsi0:0"]
datastore = "f"
size = "8m"
"#;
/// Another datastore, in front of them, and a VM between them.
const MORE: &str = r#"
[datastore.e]
device = "naa.60000000000000000000000000000002"
backend = "memory"
[vm.c.disk."scsi0:0"]
datastore = "f"
size = "4m"
[vm.c.disk."scsi0:1"]
datastore = "e"
size = "4m"
"#;
const VM_B: &str = "[vm.b.disk.\"scsi0:0\"]\ndatastore = \"f\"\nsize = \"8m\"\n";

/// Has the file read again with this; what is said behind `start`.
fn reload(site: &Site, daemon: &mut Daemon, rest: &str, start: &str) -> String {
    site.write(rest);
    daemon.signal("HUP");
    daemon.said_behind(start)
}

/// The exports that a client is told.
fn exports(site: &Site) -> Vec<String> {
    let told = Client::greeted(&site.socket()).option(3, b"");
    let names = told.into_iter().filter(|(kind, _)| *kind == 2);
    let names = names.map(|(_, data)| String::from_utf8_lossy(&data[4..]).into_owned());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Replays every journal of a directory; what is said of each.
fn replayed(directory: &Path) -> Vec<String> {
    let replay = |entry: std::io::Result<fs::DirEntry>| {
        let mut kavg = Command::new(env!("CARGO_BIN_EXE_kavg"));
        let replay = kavg.arg("replay").arg(entry.expect("an entry").path()).output();
        let replay = replay.expect("the binary starts");
        assert_eq!(replay.status.code(), Some(0), "{replay:?}");
        String::from_utf8(replay.stdout).expect("it writes UTF-8")
    };
    fs::read_dir(directory).expect("a directory").map(replay).collect()
}

fn names(list: &Value, key: &str) -> Vec<String> {
    let names = list.as_array().expect("a list").iter();
    names.map(|entry| entry[key].as_str().expect("a name").to_owned()).collect()
}

/// Ends a guest's work with the test, however that ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A guest that is there all the while and misses nothing.
fn work(site: &Site, export: &str, is_over: &AtomicBool) {
    let mut client = Client::on(&site.socket(), export, false);
    for written in (0_u64..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
        let data = [written as u8; 4096];
        assert_eq!(client.write(0, written % 1000 * 4096, &data), 0);
        assert_eq!(client.read(written % 1000 * 4096, 4096), data);
    }
}

#[test]
fn disks_come_and_go_while_others_work() {
    let site = Site::new(DISKS);
    let mut daemon = site.serve(2, &["--control", "c", "--journal", "j"]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| work(&site, "a:scsi0:0", &is_over));
        let _over = Over(&is_over);
        let mut of_b = Client::on(&site.socket(), "b:scsi0:0", false);
        assert_eq!(of_b.write(0, 0, &[7; 4096]), 0);
        let path_before = Control::on(&site).state()["paths"][0]["name"].clone();

        let more = format!("{MORE}{DISKS}");
        reload(&site, &mut daemon, &more, "2 disks more");
        assert_eq!(exports(&site), ["a:scsi0:0", "b:scsi0:0", "c:scsi0:0", "c:scsi0:1"]);
        for export in ["c:scsi0:0", "c:scsi0:1"] {
            let mut client = Client::on(&site.socket(), export, false);
            assert_eq!(client.write(0, 4096, &[3; 4096]), 0);
            assert_eq!(client.read(4096, 4096), [3; 4096]);
        }
        let state = Control::on(&site).state();
        let devices = ["2", "1"].map(|end| format!("naa.6000000000000000000000000000000{end}"));
        assert_eq!(names(&state["devices"], "name"), devices);
        assert_eq!(state["paths"][1]["name"], path_before, "what is there keeps its name");
        let writes = |disk: &str| {
            let state = Control::on(&site).state();
            let device = state["devices"].as_array().unwrap().iter().find(|it| it["name"] == disk);
            device.map(|device| device["totals"]["writes"].as_u64().unwrap())
        };
        assert_eq!(writes(&devices[0]), Some(1));

        let without = more.replace(VM_B, "");
        reload(&site, &mut daemon, &without, "1 disk fewer");
        assert!(of_b.was_dropped(), "its client is told");
        assert_eq!(exports(&site), ["a:scsi0:0", "c:scsi0:0", "c:scsi0:1"]);
        // Its lock is given up: another daemon may have it.
        let directory = site.directory.path().display();
        let other = Site::new(&format!(
            "[datastore.f]\nbackend = \"file\"\ndirectory = \"{directory}\"\n{VM_B}"
        ));
        let second = other.serve(1, &[]);
        assert_eq!(Client::on(&other.socket(), "b:scsi0:0", false).read(0, 4096), [7; 4096]);
        second.stop();

        reload(&site, &mut daemon, DISKS, "1 disk more, 2 disks fewer");
        assert_eq!(Client::on(&site.socket(), "b:scsi0:0", false).read(0, 4096), [7; 4096]);
        assert_eq!(writes(&devices[0]), None, "the device is gone");
    });
    daemon.stop();
    let replayed = replayed(&site.path("j"));
    assert_eq!(replayed.len(), 3, "a segment begins wherever parts have come, with their names");
    assert!(replayed.iter().all(|said| said.contains("identical, bit for bit: outputs and")));
}

#[test]
fn what_cannot_change_at_work_is_refused_as_a_whole_in_one_line() {
    let site = Site::new(DISKS);
    let elsewhere = tempfile::tempdir().expect("room for a directory");
    let elsewhere = elsewhere.path().display();
    let mut daemon = site.serve(2, &["--control", "c"]);
    let mut client = Client::on(&site.socket(), "b:scsi0:0", false);
    let of_b = |line: &str| format!("{DISKS}{line}\n");
    let anew = "cannot be changed at work: begin the daemon anew";
    let outside = "is in none of the directories in which there were disks when the daemon began";
    let cases = [
        (of_b("read_only = true"), format!("h.toml:14: disk `b:scsi0:0`: `read_only` {anew}")),
        (of_b("export = \"x\""), format!("h.toml:14: disk `b:scsi0:0`: `export` {anew}")),
        (of_b("image = \"x.img\""), "h.toml:17: disk `b:scsi0:0`: `image`: ./x.img is not".into()),
        (of_b("[vm.b]\npower = \"off\""), format!("h.toml:17: `power` of VM `b` {anew}")),
        (
            DISKS.replace("[vm.a", "scheduler = \"mclock\"\n[vm.a"),
            format!(
                "h.toml:7: `scheduler` of device `naa.60000000000000000000000000000001` {anew}"
            ),
        ),
        (of_b("[host.h]\ncpus = [0]"), format!("h.toml:18: `cpus` of host `h` {anew}")),
        (DISKS.replace("\"8m\"", "\"4m\""), "h.toml:11: disk `a:scsi0:0`: `size`: 8388608".into()),
        (
            format!(
                "{DISKS}[datastore.x]\nbackend = \"file\"\ndirectory = \"{elsewhere}\"\n\
                     [vm.x.disk.\"scsi0:0\"]\ndatastore = \"x\"\nsize = \"1m\"\n"
            ),
            format!("h.toml:20: disk `x:scsi0:0`: {elsewhere}/x_scsi0-0.img {outside}"),
        ),
        (
            format!(
                "{DISKS}[vm.x.disk.\"scsi0:0\"]\ndatastore = \"f\"\nimage = \"a_scsi0-0.img\"\n"
            ),
            "h.toml:19: disk `x:scsi0:0`: `image`: ./a_scsi0-0.img: disk `a:scsi0:0` is the same"
                .into(),
        ),
        (
            format!("{DISKS}[vm.x.disk.\"scsi0:0\"]\ndatastore = \"f\"\nimage = \"h.settings\"\n"),
            "h.settings: is read from as ./h.settings; name another file".into(),
        ),
        (format!("{DISKS}x = 3\n"), "h.toml:17:1: key `vm.b.disk.scsi0:0.x`".into()),
    ];
    for (text, expected) in cases {
        // A part that could be changed is not, either.
        let text = format!("{text}{}", VM_B.replace("vm.b", "vm.new"));
        let said = reload(&site, &mut daemon, &text, "h.toml is not taken: ");
        assert!(said.starts_with(&expected), "{said}\n{expected}");
        assert_eq!(exports(&site), ["a:scsi0:0", "b:scsi0:0"]);
    }
    assert_eq!(client.write(0, 0, &[1; 512]), 0, "it was never dropped");
    daemon.stop();
}

/// A disk behind an array that is emulated.
const EMULATED: &str = r#"
[array.a]
servers = 8
service = "0.1ms"
[datastore.e]
backend = "null"
emulate = true
[vm.a.disk."scsi0:0"]
datastore = "e"
size = "1m"
"#;

#[test]
fn what_comes_beside_an_emulated_array_does_not_change_it() {
    let site = Site::new(EMULATED);
    let mut daemon = site.serve(1, &[]);
    let with = |store: &str, emulate: bool, disk: &str| {
        format!("[datastore.{store}]\nbackend = \"null\"\nemulate = {emulate}\n{disk}{EMULATED}")
    };
    let disk = |name: &str, store: &str| {
        format!("[vm.{name}.disk.\"scsi0:0\"]\ndatastore = \"{store}\"\nsize = \"1m\"\n")
    };
    reload(&site, &mut daemon, &with("n", false, ""), "1 device more");
    // In front of the file's datastores, so that numbers of volumes are others.
    let more = with("n", false, &format!("{}{}", disk("b", "n"), disk("c", "e")));
    reload(&site, &mut daemon, &more, "2 disks more");
    for export in ["a:scsi0:0", "b:scsi0:0", "c:scsi0:0"] {
        assert_eq!(Client::on(&site.socket(), export, false).write(0, 0, &[1; 512]), 0);
    }
    let refused = "h.toml is not taken: ";
    let said = reload(&site, &mut daemon, &with("x", true, &disk("x", "x")), refused);
    let line = "h.toml:9: disk `x:scsi0:0`: array `a`, which is emulated, is another one at work";
    assert!(said.starts_with(line), "{said}");
    let said = reload(&site, &mut daemon, &EMULATED.replace("= 8", "= 4"), refused);
    let line = "h.toml:7: array `a`, which is emulated, cannot be changed at work";
    assert!(said.starts_with(line), "{said}");
    daemon.stop();
}

#[test]
fn a_socket_that_somebody_removed_is_made_again() {
    let site = Site::new(DISKS);
    let mut daemon = site.serve(2, &[]);
    let mut before = Client::on(&site.socket(), "a:scsi0:0", false);
    fs::remove_file(site.socket()).unwrap();
    for _ in 0..2 {
        let said = reload(&site, &mut daemon, DISKS, "s was removed");
        assert_eq!(said, ", and is made again");
        assert_eq!(exports(&site), ["a:scsi0:0", "b:scsi0:0"]);
        fs::remove_file(site.socket()).unwrap();
    }
    assert_eq!(before.write(0, 0, &[1; 512]), 0, "who was there before is served on");
    // What is another's is left as it is.
    fs::write(site.socket(), "mine").unwrap();
    let said = reload(&site, &mut daemon, DISKS, "s was removed");
    assert!(said.starts_with(", and cannot be made again: a file is there"), "{said}");
    daemon.stop();
    assert_eq!(fs::read_to_string(site.socket()).unwrap(), "mine");
}

#[test]
fn sockets_of_disks_and_of_control_are_made_again_too() {
    let shape = Shape { rings: 1, entries: 64, data: MIB as u32, parts: 1 };
    let own = "[vm.b.disk.\"scsi0:0\"]\n";
    let disks = DISKS.replace(own, &format!("{own}vhost_user = \"b\"\n"));
    let site = Site::new(&disks);
    let mut daemon = site.serve(2, &["--control", "c"]);
    let before = Disk::connect(&site.path("b"), Wish::all(shape)).expect("it is let in");
    for _ in 0..2 {
        for socket in ["b", "c"] {
            fs::remove_file(site.path(socket)).unwrap();
            let said = reload(&site, &mut daemon, &disks, &format!("{socket} was removed"));
            assert_eq!(said, ", and is made again");
            UnixStream::connect(site.path(socket)).expect("somebody listens");
        }
    }
    drop(before);
    // That the guest before is gone the daemon sees when its turn is.
    let connect = || Disk::connect(&site.path("b"), Wish::all(shape));
    let mut after = (0..10_000).find_map(|_| connect().ok()).expect("it is let in there");
    assert_eq!(after.bytes().unwrap(), 8 * MIB);
    drop(after);
    daemon.stop();
    assert!(!site.path("b").exists() && !site.path("c").exists(), "they go with the daemon");
}

#[test]
fn a_disk_that_has_grown_is_told_to_its_guests() {
    let shape = Shape { rings: 1, entries: 64, data: MIB as u32, parts: 1 };
    let disks =
        DISKS.replace("[vm.b.disk.\"scsi0:0\"]\n", "[vm.b.disk.\"scsi0:0\"]\nvhost_user = \"b\"\n");
    let memory =
        "[datastore.m]\nbackend = \"memory\"\n[vm.m.disk.\"scsi0:0\"]\ndatastore = \"m\"\n";
    let disks = format!("{disks}{memory}size = \"8m\"\n");
    let site = Site::new(&disks);
    let mut daemon = site.serve(3, &["--control", "c", "--journal", "j"]);
    let mut of_b = Disk::connect(&site.path("b"), Wish::all(shape)).expect("it is let in");
    let mut told = of_b.listen().expect("it takes a socket");
    let mut of_a = Client::on(&site.socket(), "a:scsi0:0", false);

    // By the file, which makes the image larger, and by hand where the file says nothing.
    let larger = disks.replace("\"8m\"", "\"16m\"");
    reload(&site, &mut daemon, &larger, "disk `m:scsi0:0` has 16777216 bytes, before 8388608");
    for image in ["a_scsi0-0.img", "b_scsi0-0.img"] {
        assert_eq!(fs::metadata(site.path(image)).unwrap().len(), 16 * MIB);
    }
    let mut message = [0; 12];
    told.read_exact(&mut message).expect("the front end is told");
    assert_eq!(message, [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], "CONFIG_CHANGE_MSG");
    assert_eq!(of_b.bytes().unwrap(), 16 * MIB);
    let last = 16 * MIB - 4096;
    assert_ne!(of_a.write(0, last, &[1; 4096]), 0, "it knows of its first size");
    for export in ["a:scsi0:0", "m:scsi0:0"] {
        let mut client = Client::on(&site.socket(), export, false);
        assert_eq!(client.write(0, last, &[1; 4096]), 0);
        assert_eq!(client.read(last, 4096), [1; 4096]);
    }
    let by_hand = larger.replace("size = \"16m\"\n[vm.b", "[vm.b");
    File::options()
        .write(true)
        .open(site.path("a_scsi0-0.img"))
        .unwrap()
        .set_len(24 * MIB)
        .unwrap();
    reload(&site, &mut daemon, &by_hand, "disk `a:scsi0:0` has 25165824 bytes");
    assert_eq!(
        Client::on(&site.socket(), "a:scsi0:0", false).write(0, 24 * MIB - 512, &[2; 512]),
        0
    );
    let sizes = Control::on(&site).state();
    assert_eq!(sizes["disks"][0]["bytes"], 24 * MIB);

    fs::remove_file(site.path("a_scsi0-0.img")).unwrap();
    let said = reload(&site, &mut daemon, &by_hand, "h.toml:11: disk `a:scsi0:0`: ");
    assert_eq!(said, "./a_scsi0-0.img was deleted or replaced; the file that it was is served on");
    assert_eq!(of_a.write(0, 0, &[1; 512]), 0);
    daemon.stop();
    assert!(replayed(&site.path("j")).iter().all(|said| said.contains("identical, bit for bit")));
}

#[test]
fn a_disk_moves_to_another_device_and_its_guest_misses_nothing() {
    let image = "image = \"a.img\"\n";
    let two = format!(
        "[datastore.g]\ndevice = \"naa.60000000000000000000000000000002\"\n\
                       backend = \"file\"\ndirectory = \".\"\n{DISKS}{image}"
    );
    let site = Site::new(&two);
    let mut daemon = site.serve(2, &["--control", "c", "--journal", "j"]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| work(&site, "b:scsi0:0", &is_over));
        let _over = Over(&is_over);
        for _ in 0..3 {
            for (to, device) in [("g", "2"), ("f", "1")] {
                let at = two.rfind("datastore = \"f\"").unwrap();
                let moved = format!("{}datastore = \"{to}\"{}", &two[..at], &two[at + 15..]);
                let said = "disk `b:scsi0:0` is on another device";
                reload(&site, &mut daemon, &moved, said);
                let state = Control::on(&site).state();
                let place = state["disks"][1]["device"].as_u64().unwrap() as usize;
                let name = state["devices"][place]["name"].as_str().unwrap();
                assert!(name.ends_with(device), "{name}");
            }
        }
    });
    // Its file would be another one.
    let other = two.replace(&format!("\"8m\"\n{image}"), "\"8m\"\nimage = \"other.img\"\n");
    let said = reload(&site, &mut daemon, &other, "h.toml is not taken: ");
    assert!(said.contains("`image`: ./other.img is not the file that is served"), "{said}");
    daemon.stop();
    assert!(replayed(&site.path("j")).iter().all(|said| said.contains("identical, bit for bit")));
}

#[test]
fn a_pipe_in_the_place_of_the_file_keeps_the_daemon_from_nothing() {
    let site = Site::new(DISKS);
    let mut daemon = site.serve(2, &[]);
    fs::remove_file(site.path("h.toml")).unwrap();
    let made = Command::new("mkfifo").arg(site.path("h.toml")).status();
    assert!(made.expect("coreutils has it").success());
    daemon.signal("HUP");
    assert_eq!(daemon.said_behind("h.toml is not taken: h.toml: it is "), "no regular file");
    daemon.stop();
}

#[test]
fn what_a_guest_writes_makes_no_other_format_of_an_image_that_is_said_to_be_raw() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &[]);
    let mut client = Client::on(&site.socket(), "a:scsi0:0", false);
    assert_eq!(client.write(0, 0, b"QFI\xfb".repeat(128).as_slice()), 0);
    drop(client);
    daemon.stop();
    let refused = site.refusal();
    assert!(
        refused.contains("format qcow2") && refused.contains("`format = \"raw\"`"),
        "{refused}"
    );
    site.write(&DISKS.replace("size = \"8m\"", "size = \"8m\"\nformat = \"raw\""));
    let daemon = site.serve(2, &[]);
    let mut client = Client::on(&site.socket(), "a:scsi0:0", false);
    assert_eq!(client.read(0, 512), b"QFI\xfb".repeat(128));
    daemon.stop();
}

#[test]
fn a_device_of_virtual_machines_comes_and_goes() {
    let shape = Shape { rings: 1, entries: 64, data: MIB as u32, parts: 1 };
    let of_b = |line: &str| DISKS.replace("[vm.b", &format!("{line}[vm.b"));
    let of_a = of_b("vhost_user = \"a\"\n");
    let site = Site::new(&of_a);
    let mut daemon = site.serve(2, &[]);
    let mut a = Disk::connect(&site.path("a"), Wish::all(shape)).expect("it is let in");
    let more = format!("{of_a}{}vhost_user = \"n\"\n", VM_B.replace("vm.b", "vm.n"));
    for round in 0..3 {
        reload(&site, &mut daemon, &more, "1 disk more");
        let mut new = Disk::connect(&site.path("n"), Wish::all(shape)).expect("it is let in");
        assert_eq!(new.ask(0, guest::Ask::Write(0, &[round; 4096])).unwrap().0, 0);
        reload(&site, &mut daemon, &of_a, "1 disk fewer");
        assert!(!site.path("n").exists());
        assert_eq!(a.ask(0, guest::Ask::Write(0, &[round; 512])).unwrap().0, 0);
    }
    daemon.stop();
}
