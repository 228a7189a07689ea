//! `kavg serve` under other people's clients: libnbd's tools, qemu's, and fio. What is not installed is
//! skipped by name.

#[path = "common/daemon.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod daemon;

use std::{
    fs,
    process::{Command, Output},
};

use daemon::Site;
use testing::skipped;

const DISKS: &str = r#"
[datastore.f]
backend = "file"
directory = "."
[datastore.m]
backend = "memory"
[vm.a]
[vm.a.disk."scsi0:0"]
datastore = "f"
size = "32m"
export = "file"
[vm.b]
[vm.b.disk."scsi0:0"]
datastore = "m"
size = "32m"
export = "memory"
"#;

/// Where the clients of a site find an export.
fn uri(export: &str) -> String {
    format!("nbd+unix:///{export}?socket=s")
}

/// Runs a program in the directory of a site; nothing when it is not there, which is said.
fn run(site: &Site, package: &str, program: &str, arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(site.directory.path()).output();
    if output.is_err() {
        skipped(format_args!("{program} is not there to be a client of `kavg serve` ({package})"));
    }
    output.ok()
}

/// The same of one that must end well; what it printed.
fn well(site: &Site, package: &str, program: &str, arguments: &[&str]) -> Option<String> {
    let output = run(site, package, program, arguments)?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    Some(said)
}

/// A file of 32 MiB, half of it holes.
fn source(site: &Site) {
    let mut state = 1_u32;
    let mut bytes = vec![0_u8; 32 << 20];
    for chunk in bytes.chunks_mut(1 << 20).step_by(2) {
        for byte in chunk {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
    }
    fs::write(site.path("source"), bytes).expect("room for a file");
}

#[test]
fn nbdinfo_reads_what_there_is() {
    let site = Site::new(DISKS);
    let _daemon = site.serve(2, &[]);
    let said = well(&site, "libnbd-bin", "nbdinfo", &["--list", "nbd+unix:///?socket=s"]);
    for expected in ["export=\"file\"", "export=\"memory\"", "base:allocation", "can_fua: true"] {
        assert!(said.as_ref().is_none_or(|said| said.contains(expected)), "{said:?}");
    }
    let map = well(&site, "libnbd-bin", "nbdinfo", &["--map", &uri("memory")]);
    assert!(map.is_none_or(|map| map.contains("hole,zero")));
}

#[test]
fn nbdcopy_copies_there_and_back() {
    let site = Site::new(DISKS);
    let _daemon = site.serve(2, &[]);
    source(&site);
    for export in ["file", "memory"] {
        for arguments in [["source", &uri(export)], [&uri(export), "back"]] {
            if well(&site, "libnbd-bin", "nbdcopy", &arguments).is_none() {
                return;
            }
        }
        assert!(fs::read(site.path("source")).unwrap() == fs::read(site.path("back")).unwrap());
    }
}

#[test]
fn qemu_converts_compares_and_finds_its_patterns() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &[]);
    source(&site);
    for export in ["file", "memory"] {
        let uri = uri(export);
        let convert = ["convert", "-n", "-f", "raw", "-O", "raw", "source", &uri];
        well(&site, "qemu-utils", "qemu-img", &convert);
        let compare = ["compare", "-f", "raw", "-F", "raw", "source", &uri];
        well(&site, "qemu-utils", "qemu-img", &compare);
        let steps = [
            "write -P 7 0 256k",
            "read -P 7 0 256k",
            "write -z 4k 8k",
            "read -P 0 4k 8k",
            "write -z -u 16k 8k",
            "read -P 0 16k 8k",
            "write -f -P 9 1m 2m",
            "flush",
            "discard 64k 64k",
            "read -P 9 1m 2m",
            "aio_write -P 3 4m 64k",
            "aio_flush",
            "read -P 3 4m 64k",
        ];
        let steps = steps.iter().flat_map(|step| ["-c", step]);
        let arguments: Vec<_> = ["-f", "raw", &uri].into_iter().chain(steps).collect();
        let said = well(&site, "qemu-utils", "qemu-io", &arguments);
        assert!(said.is_none_or(|said| !said.contains("verification failed")));
    }
    // The image is the daemon's as long as it runs.
    let open = ["-f", "raw", "a_scsi0-0.img", "-c", "read 0 4k"];
    let refused = run(&site, "qemu-utils", "qemu-io", &open);
    assert!(refused.is_none_or(|output| !output.status.success()));
    daemon.stop();
    well(&site, "qemu-utils", "qemu-io", &open);
}

#[test]
fn systemd_finds_little_exposed() {
    let site = Site::new(DISKS);
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/kavg@.service");
    let analyze = ["security", "--offline=true", unit];
    let Some(output) = run(&site, "systemd", "systemd-analyze", &analyze) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    let Some((_, level)) = said.rsplit_once("kavg@i.service: ") else {
        return skipped("this systemd-analyze does not look at files");
    };
    let level: f64 = level.split(' ').next().unwrap().parse().expect("a number");
    assert!(level < 2.0, "{said}");
    let verified = run(&site, "systemd", "systemd-analyze", &["verify", unit]);
    let said = verified.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    let complaints = said.unwrap_or_default();
    let is_other = |line: &&str| line.contains("kavg@") && !line.contains(": Command ");
    assert_eq!(complaints.lines().find(is_other), None);
}

#[test]
fn fio_verifies_what_it_wrote() {
    let site = Site::new(DISKS);
    let daemon = site.serve(2, &["--journal", "journals"]);
    let engines = run(&site, "fio", "fio", &["--enghelp"]);
    let has_nbd = |output: Output| String::from_utf8_lossy(&output.stdout).contains("nbd");
    if !engines.is_some_and(has_nbd) {
        return skipped("fio has no engine for NBD here");
    }
    for export in ["file", "memory"] {
        let uri = format!("--uri={}", uri(export));
        let arguments = [
            "--name=v",
            "--ioengine=nbd",
            &uri,
            "--rw=randrw",
            "--bs=4k-64k",
            "--bs_unaligned=0",
            "--size=16m",
            "--iodepth=32",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--fsync=64",
        ];
        well(&site, "fio", "fio", &arguments);
    }
    daemon.stop();
    let journal = fs::read_dir(site.path("journals")).unwrap().next().unwrap().unwrap().path();
    let replay = Command::new(env!("CARGO_BIN_EXE_kavg")).arg("replay").arg(journal).output();
    let said = String::from_utf8(replay.unwrap().stdout).unwrap();
    assert!(said.contains("identical, bit for bit: outputs and counters"), "{said}");
}
