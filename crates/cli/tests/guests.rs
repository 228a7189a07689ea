//! `kavg serve` under real guests: Linux in User-Mode, and Linux in QEMU without KVM, whose daemon is
//! killed meanwhile. fio verifies in both what it wrote.

#[path = "common/control.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod control;
#[path = "common/daemon.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod daemon;
#[path = "common/machine.rs"]
mod machine;

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use control::{Control, column};
use daemon::Site;
use guest::machine::{BUSYBOX, Contents, UML, pack_uml, runs_uml, uml};
use testing::skipped;

const DISKS: &str = r#"
[datastore.f]
backend = "file"
directory = "."
[vm.a]
[vm.a.disk."scsi0:0"]
datastore = "f"
size = "64m"
export = "first"
vhost_user = "first.sock"
"#;

const FIO: &str = "/usr/bin/fio";

/// What a guest does: a file system, two files of the same random bytes that are read from the disk again,
/// and as many more as are asked for, while fio writes another anywhere and verifies it, again and again.
fn job(rounds: u32, programs: &[&str]) -> String {
    let verify = if programs.contains(&FIO) { VERIFY } else { "" };
    format!(
        "cd /sys/block/vda
echo SIZE $(cat size) SERIAL $(cat serial) CACHE $(cat cache_type) QUEUES $(ls mq | wc -l)
mke2fs -q /dev/vda > /dev/null && mount -t ext4 /dev/vda /mnt
{verify}
dd if=/dev/urandom of=/mnt/a bs=64k count=100 2> /dev/null
cp /mnt/a /mnt/b; sync
i=0; while [ $i -lt {rounds} ]; do echo ROUND $i; cp /mnt/a /mnt/c; sync; i=$((i+1)); done
touch /over; wait
echo 3 > /proc/sys/vm/drop_caches
for f in /mnt/*; do [ -f $f ] && echo SUM $(md5sum $f); done
fstrim /mnt && echo TRIMMED
cd /; umount /mnt && echo UNMOUNTED
"
    )
}

const VERIFY: &str = "mkdir /mnt/v
verify() {
    fio --name=v --filename=/mnt/v/v --size=8m --rw=randwrite --bs=4k-64k --direct=1 --ioengine=libaio \
        --iodepth=16 --fsync=32 --verify=crc32c --verify_fatal=1 --verify_backlog=64 > /said 2>&1 &&
        echo VERIFIED || { cat /said; echo SPOILT; false; }
}
(while verify && [ ! -e /over ]; do :; done) &
";

/// fio, where it can be had.
fn programs() -> Vec<&'static str> {
    if machine::has("fio", FIO) { vec![FIO] } else { Vec::new() }
}

/// A guest waits until its disk has grown.
const GROWTH: &str = "echo GROW
i=0; while [ $(cat /sys/block/vda/size) = 131072 ] && [ $i -lt 1000 ]; do i=$((i+1)); done
echo GREW $(cat /sys/block/vda/size)
";

/// What a guest that did its job with these programs has said, and what it has left on its disk.
fn check(site: &Site, said: &str, files: usize, programs: &[&str]) {
    assert!(said.contains("SIZE 131072 SERIAL first CACHE write back"), "{said}");
    let sums: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("SUM ")).collect();
    assert_eq!(sums.len(), files, "{said}");
    assert!(sums.iter().all(|sum| sum.get(..32) == sums[0].get(..32)), "{said}");
    assert!(["TRIMMED", "UNMOUNTED", "ENDED"].iter().all(|word| said.contains(word)), "{said}");
    assert!(programs.is_empty() || said.contains("VERIFIED"), "{said}");
    assert!(!said.contains("SPOILT"), "{said}");
    match Command::new("e2fsck").args(["-fn"]).arg(site.path("a_scsi0-0.img")).output() {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(_) => skipped("e2fsck is not there to look at what a guest has written (e2fsprogs)"),
    }
}

fn has_uml() -> bool {
    machine::has("busybox-static", BUSYBOX) && machine::has("user-mode-linux", UML) && uml_runs()
}

fn uml_runs() -> bool {
    let runs = runs_uml().expect("it starts");
    if !runs {
        skipped("User-Mode Linux cannot save this processor's registers");
    }
    runs
}

#[test]
fn user_mode_linux_works_on_a_disk() {
    if !has_uml() {
        return;
    }
    let site = Site::new(DISKS);
    let programs = programs();
    let packed = pack_uml(site.directory.path(), &programs, &job(0, &programs));
    let initrd = packed.expect("all of it is there");
    let daemon = site.serve(1, &["--journal", "journals"]);
    let said = uml(&initrd, &site.path("first.sock")).output().expect("it starts");
    daemon.stop();
    check(&site, &String::from_utf8_lossy(&said.stdout), 2, &programs);
    let journal = fs::read_dir(site.path("journals")).unwrap().next().unwrap().unwrap().path();
    let replayed = Command::new(env!("CARGO_BIN_EXE_kavg")).arg("replay").arg(journal).output();
    let replayed = String::from_utf8(replayed.unwrap().stdout).unwrap();
    assert!(replayed.contains("identical, bit for bit: outputs and counters"), "{replayed}");
}

const DEVICE: &str = "naa.60000000000000000000000000000001";

/// Two VMs on one device, behind an array that does not answer at once.
const COMPETING: &str = r#"
[array.flash]
servers = 16
service = "2ms"
[datastore.m]
device = "naa.60000000000000000000000000000001"
backend = "memory"
emulate = true
[vm.a.disk."scsi0:0"]
datastore = "m"
size = "64m"
vhost_user = "a.sock"
[vm.b.disk."scsi0:0"]
datastore = "m"
size = "64m"
vhost_user = "b.sock"
"#;

/// Reads 64 at a time for ever, and says that time goes by.
const BUSY: &str =
    "fio --name=b --filename=/dev/vda --rw=randread --bs=4k --direct=1 --ioengine=libaio \
    --iodepth=64 --norandommap --time_based --runtime=1h > /dev/null 2>&1 &
while dd if=/dev/vda of=/dev/null bs=4k count=64 iflag=direct 2> /dev/null; do echo TURN; done
";

/// A guest of User-Mode Linux that ends with this.
struct Guest {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Guest {
    fn on(initrd: &Path, socket: &Path) -> Self {
        let mut uml = uml(initrd, socket);
        uml.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = uml.spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { child, lines }
    }

    /// Lets it work until the device has that DQLEN, for so many turns at most.
    fn work_until_dqlen(&mut self, site: &Site, dqlen: f64) {
        const TURNS: usize = 1000;
        let mut control = Control::on(site);
        let first = control.counters();
        let place = column(&first["layout"], DEVICE, "dqlen");
        let mut lines = self.lines.by_ref().take(TURNS);
        let is_so = |_| control.counters()["row"]["values"][place] == dqlen;
        assert!(lines.any(is_so), "DQLEN is not {dqlen} after {TURNS} turns");
    }
}

impl Drop for Guest {
    /// Kills it with its processes, each of which is one of Linux too.
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
        let _ = self.child.wait();
    }
}

#[test]
fn dqlen_falls_and_rises_with_a_second_guest() {
    let programs = programs();
    if programs.is_empty() || !has_uml() {
        return;
    }
    let site = Site::new(COMPETING);
    let packed = pack_uml(site.directory.path(), &programs, BUSY);
    let initrd = packed.expect("all of it is there");
    let daemon = site.serve(2, &["--control", "c"]);
    let mut first = Guest::on(&initrd, &site.path("a.sock"));
    first.work_until_dqlen(&site, 64.0);
    let second = Guest::on(&initrd, &site.path("b.sock"));
    first.work_until_dqlen(&site, 32.0);
    drop(second);
    first.work_until_dqlen(&site, 64.0);
    drop(first);
    daemon.stop();
}

/// Boots from the disk's first block, so that the firmware has its rings first; then the daemon is killed
/// three times while files are copied and fio verifies, and the guest goes on each time. At last its disk grows.
#[test]
fn a_guest_of_qemu_outlives_its_daemon() {
    if !machine::has("busybox-static", BUSYBOX)
        || !machine::has("qemu-system-x86", "/usr/bin/qemu-system-x86_64")
    {
        return;
    }
    let Some((kernel, modules)) = machine::cloud_kernel() else { return };
    let of = |name: &str| modules.join(format!("drivers/{name}.ko"));
    let modules = [
        "virtio/virtio_ring",
        "virtio/virtio",
        "virtio/virtio_pci_modern_dev",
        "virtio/virtio_pci_legacy_dev",
        "virtio/virtio_pci",
        "block/virtio_blk",
    ]
    .map(of);
    let site = Site::new(DISKS);
    let mut daemon = site.serve(1, &[]);
    let programs = programs();
    let job = job(12, &programs) + GROWTH;
    let contents =
        Contents { modules: &modules, programs: &programs, job: &job, end: "poweroff -f" };
    let initrd = contents.pack(site.directory.path()).expect("all of it is there");
    let mut guest = qemu(site.directory.path(), &kernel, &initrd);
    let mut said = String::new();
    for line in BufReader::new(guest.stdout.take().expect("it is piped")).lines() {
        let line = line.expect("text");
        if ["ROUND 2", "ROUND 5", "ROUND 8"].contains(&line.trim()) {
            drop(daemon);
            daemon = site.serve(1, &[]);
        }
        if line.trim() == "GROW" {
            fs::write(
                site.path("h.toml"),
                fs::read_to_string(site.path("h.toml"))
                    .expect("it is there")
                    .replace("64m", "128m"),
            )
            .expect("room");
            daemon.signal("HUP");
        }
        said.extend([line.trim(), "\n"]);
    }
    assert!(guest.wait().expect("it ends").success(), "{said}");
    daemon.stop();
    check(&site, &said, 3, &programs);
    assert!(said.contains("QUEUES 2") && said.contains("GREW 262144"), "{said}");
}

fn qemu(directory: &Path, kernel: &Path, initrd: &Path) -> std::process::Child {
    let mut qemu = Command::new("/usr/bin/qemu-system-x86_64");
    qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    qemu.args(["-monitor", "none", "-serial", "stdio", "-accel", "tcg", "-cpu", "max"]);
    qemu.args(["-m", "768", "-smp", "2", "-M", "q35,memory-backend=mem"]);
    qemu.args(["-object", "memory-backend-memfd,id=mem,size=768M,share=on"]);
    qemu.args(["-chardev", "socket,id=kavg,path=first.sock,reconnect=1"]);
    qemu.args(["-device", "vhost-user-blk-pci,chardev=kavg,num-queues=2"]);
    qemu.args(["-append", "console=ttyS0 quiet panic=-1", "-kernel"]).arg(kernel);
    qemu.arg("-initrd").arg(initrd).current_dir(directory);
    let said = File::create(directory.join("qemu.log")).expect("room for a file");
    qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(said);
    qemu.spawn().expect("it starts")
}
