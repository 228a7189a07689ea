//! Virtual machines without KVM: a kernel of Debian's, and busybox that does a job.
//!
//! What is needed is installed by the name of its package where this may be done (as root, with apt), else
//! the test skips by that name.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use testing::skipped;

/// How a guest begins: what is mounted and loaded, then its job.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for m in $(cat /modules); do insmod /$m; done
. /job
echo ENDED
";

fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then_some(output)
}

/// Whether a file that a package has is there, or could be installed.
pub(crate) fn has(package: &str, file: &str) -> bool {
    if !Path::new(file).exists() {
        // Another test may be installing.
        let wait = ["-o", "DPkg::Lock::Timeout=120"];
        let install = ["install", "-y", "-qq", "--no-install-recommends", package];
        let _ = run("apt-get", &[wait.as_slice(), &install].concat());
    }
    let is_there = Path::new(file).exists();
    if !is_there {
        skipped(format_args!("{file} is not there to boot a guest ({package})"));
    }
    is_there
}

/// The first path that a shell finds for a pattern.
fn find(pattern: &str) -> Option<PathBuf> {
    let found = run("sh", &["-c", &format!("ls -d {pattern} 2>/dev/null | tail -n 1")])?;
    let path = String::from_utf8(found.stdout).ok()?;
    Some(PathBuf::from(path.trim())).filter(|path| path.exists())
}

/// The kernel of Debian's clouds, its modules below `modules`: downloaded and unpacked once.
pub(crate) fn cloud_kernel() -> Option<(PathBuf, PathBuf)> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cloud-kernel");
    if !cache.join("unpacked").exists() {
        fs::create_dir_all(&cache).ok()?;
        let steps = "cd \"$0\" && rm -f *.deb
            image=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: //p' | head -n 1)
            apt-get download \"$image\" && dpkg-deb -x \"$image\"_*.deb . && touch unpacked";
        if run("sh", &["-c", steps, cache.to_str()?]).is_none() {
            skipped("there is no kernel for a guest of QEMU (linux-image-cloud-amd64)");
            return None;
        }
    }
    let cache = cache.display();
    Some((
        find(&format!("{cache}/boot/vmlinuz*"))?,
        find(&format!("{cache}/lib/modules/*/kernel"))?,
    ))
}

/// The modules of User-Mode Linux.
pub(crate) fn uml_modules() -> Option<PathBuf> {
    find("/usr/lib/uml/modules/*/kernel")
}

/// An initial file system with these modules and a job, after which `end` turns the guest off.
pub(crate) fn initrd(directory: &Path, modules: &[PathBuf], job: &str, end: &str) -> PathBuf {
    let root = directory.join("root");
    for folder in ["bin", "dev", "proc", "sys", "mnt"] {
        fs::create_dir_all(root.join(folder)).expect("room for a directory");
    }
    let put = |name: &str, text: &str| fs::write(root.join(name), text).expect("room for a file");
    let mut names = String::new();
    for module in modules {
        let name = module.file_name().and_then(|name| name.to_str()).expect("a name");
        fs::copy(module, root.join(name)).expect("a module");
        names.extend([name, "\n"]);
    }
    put("modules", &names);
    put("job", job);
    put("init", &format!("{INIT}{end}\n"));
    let may_run = fs::Permissions::from_mode(0o755);
    fs::set_permissions(root.join("init"), may_run).expect("a file of ours");
    fs::copy("/bin/busybox", root.join("bin/busybox")).expect("busybox");
    let initrd = directory.join("initrd");
    let pack = "cd \"$0\" && find . | /bin/busybox cpio -o -H newc > \"$1\"";
    let paths = [root.display().to_string(), initrd.display().to_string()];
    run("sh", &["-c", pack, &paths[0], &paths[1]]).expect("busybox packs");
    initrd
}
