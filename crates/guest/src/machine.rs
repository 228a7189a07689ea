//! A virtual machine without KVM, where a ring alone is not enough: Linux with busybox, a job, and programs of
//! this machine; and User-Mode Linux to run it, which needs no monitor and no privilege.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Where its package has busybox, which needs no library.
pub const BUSYBOX: &str = "/bin/busybox";
/// Where its package has User-Mode Linux.
pub const UML: &str = "/usr/bin/linux.uml";
const UML_MODULES: &str = "/usr/lib/uml/modules";

/// How a guest begins: what is mounted and loaded, then its job.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for m in $(cat /modules); do insmod /$m; done
. /job
echo ENDED
";

/// What a guest begins with and does.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// Modules of its kernel, in the order in which they are loaded.
    pub modules: &'a [PathBuf],
    /// Programs of this machine, which are brought with their libraries.
    pub programs: &'a [&'a str],
    /// Its job: lines of a shell.
    pub job: &'a str,
    /// What turns it off.
    pub end: &'a str,
}

impl Contents<'_> {
    /// Makes an initial file system of that in a directory.
    ///
    /// # Errors
    /// When a file is not there or there is no room.
    pub fn pack(&self, directory: &Path) -> io::Result<PathBuf> {
        let root = directory.join("root");
        for folder in ["bin", "dev", "proc", "sys", "mnt", "tmp"] {
            fs::create_dir_all(root.join(folder))?;
        }
        let mut names = String::new();
        for module in self.modules {
            let name = module.file_name().unwrap_or_default().to_string_lossy();
            fs::copy(module, root.join(&*name))?;
            names.extend([&*name, "\n"]);
        }
        fs::write(root.join("modules"), names)?;
        fs::write(root.join("job"), self.job)?;
        fs::write(root.join("init"), format!("{INIT}{}\n", self.end))?;
        fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755))?;
        [BUSYBOX].iter().chain(self.programs).try_for_each(|program| bring(program, &root))?;
        let initrd = directory.join("initrd");
        let pack = "cd \"$0\" && find . | /bin/busybox cpio -o -H newc > \"$1\" 2> /dev/null";
        let packed = Command::new("sh").args(["-c", pack]).args([&root, &initrd]).status()?;
        fs::remove_dir_all(root)?;
        if packed.success() { Ok(initrd) } else { Err(io::Error::other("busybox does not pack")) }
    }
}

/// Copies a program to where it is here, and the libraries that it has, if any.
fn bring(program: &str, root: &Path) -> io::Result<()> {
    let said = Command::new("ldd").arg(program).output()?;
    let said = String::from_utf8_lossy(&said.stdout);
    let libraries = said.split_whitespace().filter(|word| word.starts_with('/'));
    for file in libraries.chain([program]) {
        let to = root.join(file.trim_start_matches('/'));
        to.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::copy(file, to)?;
    }
    Ok(())
}

/// Whether its kernel runs any process here: that of Debian 12 has no room for the floating-point registers
/// of the newest processors, and stops at its first one, whatever it is.
///
/// # Errors
/// When it cannot be started.
pub fn runs_uml() -> io::Result<bool> {
    let root = ["mem=64M", "rootfstype=hostfs", "init=/bin/true", "con0=fd:0,fd:1", "con=null"];
    let said = Command::new(UML).args(root).stdin(Stdio::null()).output()?;
    Ok(!String::from_utf8_lossy(&said.stdout).contains("ptrace set fp regs failed"))
}

/// An initial file system for User-Mode Linux on a disk.
///
/// # Errors
/// When a file of its package or a program is not there, or there is no room.
pub fn pack_uml(directory: &Path, programs: &[&str], job: &str) -> io::Result<PathBuf> {
    let version = fs::read_dir(UML_MODULES)?.next().ok_or(io::ErrorKind::NotFound)??;
    let modules = [version.path().join("kernel/drivers/block/virtio_blk.ko")];
    Contents { modules: &modules, programs, job, end: "halt -f" }.pack(directory)
}

/// User-Mode Linux on the disk at that socket.
#[must_use]
pub fn uml(initrd: &Path, socket: &Path) -> Command {
    let mut uml = Command::new(UML);
    uml.args(["mem=512M", "rw", "quiet", "con=null", "con0=null,fd:1", "panic=-1"]);
    uml.arg(format!("initrd={}", initrd.display()));
    uml.arg(format!("virtio_uml.device={}:2", socket.display()));
    uml.stdin(Stdio::null());
    uml
}
