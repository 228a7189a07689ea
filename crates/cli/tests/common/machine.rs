//! What virtual machines without KVM are made of: it is installed by the name of its package where this may be
//! done (as root, with apt), else the test skips by that name.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use testing::skipped;

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
        skipped(format_args!("{file} is not there for a guest ({package})"));
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
