//! `kavg serve` under real guests: Linux in User-Mode, and Linux in QEMU without KVM, whose daemon is
//! killed meanwhile.

#[path = "common/daemon.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod daemon;
#[path = "common/machine.rs"]
mod machine;

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use daemon::Site;
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

/// What a guest does: a file system, two files of the same random bytes that are read from the disk again,
/// and as many more as are asked for.
fn job(rounds: u32) -> String {
    format!(
        "cd /sys/block/vda
echo SIZE $(cat size) SERIAL $(cat serial) CACHE $(cat cache_type) QUEUES $(ls mq | wc -l)
mke2fs -q /dev/vda > /dev/null && mount -t ext4 /dev/vda /mnt
dd if=/dev/urandom of=/mnt/a bs=64k count=100 2> /dev/null
cp /mnt/a /mnt/b; sync
i=0; while [ $i -lt {rounds} ]; do echo ROUND $i; cp /mnt/a /mnt/c; sync; i=$((i+1)); done
echo 3 > /proc/sys/vm/drop_caches
for f in /mnt/*; do [ -f $f ] && echo SUM $(md5sum $f); done
fstrim /mnt && echo TRIMMED
cd /; umount /mnt && echo UNMOUNTED
"
    )
}

/// A guest waits until its disk has grown.
const GROWTH: &str = "echo GROW
i=0; while [ $(cat /sys/block/vda/size) = 131072 ] && [ $i -lt 1000 ]; do i=$((i+1)); done
echo GREW $(cat /sys/block/vda/size)
";

/// What a guest that did its job has said, and what it has left on its disk.
fn check(site: &Site, said: &str, files: usize) {
    assert!(said.contains("SIZE 131072 SERIAL first CACHE write back"), "{said}");
    let sums: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("SUM ")).collect();
    assert_eq!(sums.len(), files, "{said}");
    assert!(sums.iter().all(|sum| sum.get(..32) == sums[0].get(..32)), "{said}");
    assert!(["TRIMMED", "UNMOUNTED", "ENDED"].iter().all(|word| said.contains(word)), "{said}");
    match Command::new("e2fsck").args(["-fn"]).arg(site.path("a_scsi0-0.img")).output() {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(_) => skipped("e2fsck is not there to look at what a guest has written (e2fsprogs)"),
    }
}

#[test]
fn user_mode_linux_works_on_a_disk() {
    if !machine::has("busybox-static", "/bin/busybox")
        || !machine::has("user-mode-linux", "/usr/bin/linux.uml")
    {
        return;
    }
    let modules = machine::uml_modules().expect("the package has them");
    let site = Site::new(DISKS);
    let daemon = site.serve(1, &["--journal", "journals"]);
    let blk = modules.join("drivers/block/virtio_blk.ko");
    let initrd = machine::initrd(site.directory.path(), &[blk], &job(0), "halt -f");
    let said = Command::new("/usr/bin/linux.uml")
        .args(["mem=256M", "rw", "quiet", "con=null", "con0=null,fd:1", "panic=-1"])
        .arg(format!("initrd={}", initrd.display()))
        .arg(format!("virtio_uml.device={}:2", site.path("first.sock").display()))
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    daemon.stop();
    check(&site, &String::from_utf8_lossy(&said.stdout), 2);
    let journal = fs::read_dir(site.path("journals")).unwrap().next().unwrap().unwrap().path();
    let replayed = Command::new(env!("CARGO_BIN_EXE_kavg")).arg("replay").arg(journal).output();
    let replayed = String::from_utf8(replayed.unwrap().stdout).unwrap();
    assert!(replayed.contains("identical, bit for bit: outputs and counters"), "{replayed}");
}

/// Boots from the disk's first block, so that the firmware has its rings first; then the daemon is killed
/// three times while files are copied, and the guest goes on each time. At last its disk grows.
#[test]
fn a_guest_of_qemu_outlives_its_daemon() {
    if !machine::has("busybox-static", "/bin/busybox")
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
    let initrd =
        machine::initrd(site.directory.path(), &modules, &(job(12) + GROWTH), "poweroff -f");
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
    check(&site, &said, 3);
    assert!(said.contains("QUEUES 2") && said.contains("GREW 262144"), "{said}");
}

fn qemu(directory: &Path, kernel: &Path, initrd: &Path) -> std::process::Child {
    let mut qemu = Command::new("/usr/bin/qemu-system-x86_64");
    qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    qemu.args(["-monitor", "none", "-serial", "stdio", "-accel", "tcg", "-cpu", "max"]);
    qemu.args(["-m", "256", "-smp", "2", "-M", "q35,memory-backend=mem"]);
    qemu.args(["-object", "memory-backend-memfd,id=mem,size=256M,share=on"]);
    qemu.args(["-chardev", "socket,id=kavg,path=first.sock,reconnect=1"]);
    qemu.args(["-device", "vhost-user-blk-pci,chardev=kavg,num-queues=2"]);
    qemu.args(["-append", "console=ttyS0 quiet panic=-1", "-kernel"]).arg(kernel);
    qemu.arg("-initrd").arg(initrd).current_dir(directory);
    let said = File::create(directory.join("qemu.log")).expect("room for a file");
    qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(said);
    qemu.spawn().expect("it starts")
}
