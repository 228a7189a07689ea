//! What a machine needs to serve disks: what is there, judged, and what to type.
//!
//! What is read of the system is one value ([`System`]); the judgement is a function of it, and of the
//! files that a host of the file names.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::{
        fs::{FileTypeExt, MetadataExt, fchown},
        net::UnixStream,
    },
    path::Path,
    time::Duration,
};

use scenario::{Backend, Image, Scenario, Sockets};
use serde::Serialize;

/// The oldest kernel whose io_uring reads, writes and allocates files as the daemon asks it to
/// (`IORING_OP_READ`, `IORING_OP_FALLOCATE`: 5.6).
const KERNEL_MIN: (u32, u32) = (5, 6);
/// The first kernel that does not count rings to RLIMIT_MEMLOCK.
const KERNEL_RINGS_FREE: (u32, u32) = (5, 12);
/// What a daemon locks where they are counted: some rings of 256 entries.
const MEMLOCK_MIN: u64 = 8 << 20;
/// Descriptors beside those of images: sockets, clients, rings.
const FILES_BESIDE: u64 = 256;

/// What is known of the machine; `None` where the system does not tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct System {
    /// Version and release.
    pub(crate) kernel: Option<(u32, u32)>,
    /// `kernel.io_uring_disabled`.
    pub(crate) io_uring_disabled: Option<u32>,
    /// Why a ring cannot be made.
    pub(crate) io_uring: Option<String>,
    /// Free hugepages, and their size in KiB.
    pub(crate) hugepages: Option<(u64, u64)>,
    /// RLIMIT_MEMLOCK, soft, in bytes.
    pub(crate) memlock: Option<u64>,
    /// RLIMIT_NOFILE, soft.
    pub(crate) nofile: Option<u64>,
}

/// Something that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    /// What.
    pub(crate) what: &'static str,
    /// How it is.
    pub(crate) verdict: Verdict,
    /// The same in words.
    pub(crate) says: String,
    /// What to type.
    #[serde(rename = "type")]
    pub(crate) type_this: Vec<String>,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// As it should be.
    Good,
    /// It works, and could be better.
    Hint,
    /// It does not work.
    Bad,
}

impl Verdict {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Hint => "hint",
            Self::Bad => "bad",
        }
    }
}

impl System {
    /// What this machine tells.
    pub(crate) fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let memory = text("/proc/meminfo");
        let of_memory = |key: &str| {
            let line = memory.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let limits = text("/proc/self/limits");
        let limit = |name: &str| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
            match line.split_whitespace().next()? {
                "unlimited" => Some(u64::MAX),
                number => number.parse().ok(),
            }
        };
        Self {
            kernel: release(&text("/proc/sys/kernel/osrelease")),
            io_uring_disabled: text("/proc/sys/kernel/io_uring_disabled").trim().parse().ok(),
            io_uring: live::try_io_uring().err().map(|error| error.to_string()),
            hugepages: of_memory("HugePages_Free:").zip(of_memory("Hugepagesize:")),
            memlock: limit("Max locked memory"),
            nofile: limit("Max open files"),
        }
    }
}

/// `6.1` of `6.1.0-18-amd64`.
fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Judges a machine, and what a file names where there is one; names of files begin at `base`.
pub(crate) fn check(system: &System, scenario: Option<&Scenario>, base: &Path) -> Vec<Check> {
    let images = scenario.map_or(0, |scenario| scenario.hosts.iter().map(|h| h.images.len()).sum());
    let mut checks = vec![
        kernel(system),
        io_uring(system),
        hugepages(system),
        memlock(system),
        nofile(system, images as u64),
    ];
    for host in scenario.iter().flat_map(|scenario| &scenario.hosts) {
        let sockets = host.nbd.iter().filter_map(|nbd| nbd.socket.as_ref());
        let own = host.images.iter().flatten().filter_map(|image| image.vhost_user.as_ref());
        checks.extend(sockets.chain(own).map(|path| socket(&base.join(path))));
        checks.extend(group(&host.sockets));
        checks.extend(host.nbd.iter().filter_map(|nbd| nbd.tcp).map(tcp));
        let images = host.images.iter().flatten().filter_map(|image| match &image.backend {
            Backend::File(path) => Some((base.join(path), image)),
            Backend::Null | Backend::Memory => None,
        });
        checks.extend(images.map(|(path, wanted)| image(&path, wanted)));
        checks.extend(host.cpus.iter().map(|cpu| match live::try_cpu(*cpu) {
            Ok(()) => good("cpus", format!("CPU {cpu}")),
            Err(error) => bad("cpus", error, "nproc --all".into()),
        }));
    }
    checks
}

fn good(what: &'static str, says: String) -> Check {
    Check { what, verdict: Verdict::Good, says, type_this: Vec::new() }
}

fn hint(what: &'static str, says: String, line: &str) -> Check {
    Check { what, verdict: Verdict::Hint, says, type_this: vec![line.to_owned()] }
}

/// What does not work, and what to type.
pub(crate) fn bad(what: &'static str, says: String, line: String) -> Check {
    Check { what, verdict: Verdict::Bad, says, type_this: vec![line] }
}

fn kernel(system: &System) -> Check {
    let (major, minor) = KERNEL_MIN;
    match system.kernel {
        Some(release) if release >= KERNEL_MIN => {
            good("kernel", format!("{}.{}", release.0, release.1))
        }
        Some(release) => hint(
            "kernel",
            format!(
                "{}.{} is older than {major}.{minor}: threads make the calls instead of io_uring",
                release.0, release.1
            ),
            "uname -r",
        ),
        None => hint("kernel", "the system does not tell its version".into(), "uname -r"),
    }
}

fn io_uring(system: &System) -> Check {
    let Some(error) = &system.io_uring else { return good("io_uring", "can be used".into()) };
    let threads = "threads make the calls, which costs CPU time";
    match system.io_uring_disabled {
        Some(disabled @ 1..) => hint(
            "io_uring",
            format!("kernel.io_uring_disabled is {disabled}: {threads}"),
            "sudo sysctl kernel.io_uring_disabled=0",
        ),
        _ => hint(
            "io_uring",
            format!("{error}, as under a seccomp filter of a container: {threads}"),
            "docker run --security-opt seccomp=unconfined …",
        ),
    }
}

fn hugepages(system: &System) -> Check {
    match system.hugepages {
        Some((free @ 1.., kib)) => good("hugepages", format!("{free} of {} MiB free", kib >> 10)),
        _ => hint(
            "hugepages",
            "none free: guests run from ordinary memory, with more misses of the TLB".into(),
            "sudo sysctl vm.nr_hugepages=1024",
        ),
    }
}

fn memlock(system: &System) -> Check {
    let is_counted = system.kernel.is_some_and(|kernel| kernel < KERNEL_RINGS_FREE);
    match system.memlock {
        Some(bytes) if is_counted && bytes < MEMLOCK_MIN => hint(
            "memlock",
            format!(
                "{} KiB may be locked, and this kernel counts rings to it: io_uring may be refused",
                bytes >> 10
            ),
            "ulimit -l 8192",
        ),
        Some(u64::MAX) => good("memlock", "unlimited".into()),
        Some(bytes) => good("memlock", format!("{} KiB", bytes >> 10)),
        None => good("memlock", "the system does not tell".into()),
    }
}

fn nofile(system: &System, images: u64) -> Check {
    let needed = images + FILES_BESIDE;
    match system.nofile {
        Some(files) if files < needed => bad(
            "nofile",
            format!("{files} files may be open, and {needed} may be needed"),
            format!("ulimit -n {}", needed.next_power_of_two()),
        ),
        Some(u64::MAX) => good("nofile", "unlimited".into()),
        Some(files) => good("nofile", format!("{files} files")),
        None => good("nofile", "the system does not tell".into()),
    }
}

/// The directory of a file that will be made can be written to. What is there is not touched: a file
/// without a name is made and is gone.
fn directory(what: &'static str, path: &Path) -> Check {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new(".")).to_path_buf();
    let name = knobs::shell(&parent.display().to_string());
    match tempfile::tempfile_in(&parent) {
        Ok(_) => good(what, path.display().to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bad(what, format!("{} is not there", parent.display()), format!("mkdir -p {name}"))
        }
        Err(error) => refused(what, &parent, &error, format!("sudo chown \"$USER\" {name}")),
    }
}

/// What the system refuses for: a directory on the way that may not be entered, or the file itself.
fn refused(what: &'static str, path: &Path, error: &io::Error, line: String) -> Check {
    let Some(closed) = closed(path) else {
        return bad(what, format!("{}: {error}", path.display()), line);
    };
    let name = knobs::shell(&closed.display().to_string());
    let line = match is_own(closed) {
        true => format!("chmod u+x {name}"),
        false => format!("sudo chmod a+x {name}"),
    };
    bad(what, format!("{} may not be entered: {error}", closed.display()), line)
}

/// The directory on the way to a file that may not be entered.
fn closed(path: &Path) -> Option<&Path> {
    let is_denied = |at: &Path| {
        fs::symlink_metadata(at).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    };
    let found = path.ancestors().find(|at| !is_denied(at))?;
    let is_here = found.as_os_str().is_empty();
    is_denied(path).then_some(if is_here { Path::new(".") } else { found })
}

/// Whether a file is of who asks, as whose process it is.
fn is_own(path: &Path) -> bool {
    let owner = |path: &Path| fs::metadata(path).map(|found| found.uid()).ok();
    owner(path).is_some_and(|uid| owner(Path::new("/proc/self")) == Some(uid))
}

/// The group of sockets is there, and a file can be given to it.
fn group(sockets: &Sockets) -> Option<Check> {
    const WHAT: &str = "group";
    let name = knobs::shell(sockets.group.as_ref()?);
    Some(match live::group_of(sockets) {
        Err(error) => bad(WHAT, error, format!("sudo groupadd {name}")),
        Ok(found) => {
            let id = found.map(|(_, id)| id);
            match tempfile::tempfile().and_then(|file| fchown(file, None, id)) {
                Ok(()) => good(WHAT, name),
                Err(error) => {
                    let line = format!("sudo usermod -aG {name} \"$USER\"");
                    bad(WHAT, format!("{name}: {error}"), line)
                }
            }
        }
    })
}

/// A Unix socket can be made, in the place of one that nobody listens at any more; or a daemon is there.
fn socket(path: &Path) -> Check {
    const WHAT: &str = "socket";
    let shown = path.display();
    let line = || format!("ls -l {}", knobs::shell(&shown.to_string()));
    if fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket()) {
        return bad(WHAT, format!("{shown} is there and no socket"), line());
    }
    match UnixStream::connect(path) {
        Ok(_) => good(WHAT, format!("{shown}, where a daemon listens")),
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
        {
            directory(WHAT, path)
        }
        Err(error) => refused(WHAT, path, &error, line()),
    }
}

/// An address is free, or a server of NBD is there: this daemon's, for all that can be seen.
fn tcp(address: SocketAddr) -> Check {
    const WHAT: &str = "tcp";
    match TcpListener::bind(address) {
        Ok(_) => good(WHAT, address.to_string()),
        Err(error) if error.kind() == ErrorKind::AddrInUse && greets(address) => {
            good(WHAT, format!("{address}, where a server of NBD listens"))
        }
        Err(error) => {
            let line = format!("ss -ltnp sport = :{}", address.port());
            bad(WHAT, format!("{address}: {error}"), line)
        }
    }
}

/// Whether who listens there begins as a server of NBD does [NBD].
fn greets(address: SocketAddr) -> bool {
    const PATIENCE: Duration = Duration::from_secs(2);
    let mut magic = [0; 8];
    let greeting = TcpStream::connect_timeout(&address, PATIENCE).and_then(|mut stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.read_exact(&mut magic)
    });
    greeting.is_ok() && magic == *b"NBDMAGIC"
}

/// An image that is there can be opened; one that is not can be made, where its size is told.
fn image(path: &Path, &Image { read_only, size, is_raw, .. }: &Image) -> Check {
    const WHAT: &str = "image";
    let shown = path.display();
    let name = knobs::shell(&shown.to_string());
    match OpenOptions::new().read(true).write(!read_only).open(path) {
        Ok(file) => match file.metadata() {
            Ok(found) if found.is_file() || found.file_type().is_block_device() => {
                match live::look_at_image(path, size, read_only, is_raw) {
                    Ok(()) => good(WHAT, shown.to_string()),
                    Err(error) => {
                        // A lock has no owner that anybody is told, but who has the file open is.
                        let look = if error == live::LOCKED { "sudo fuser -v" } else { "ls -l" };
                        bad(WHAT, format!("{shown}: {error}"), format!("{look} {name}"))
                    }
                }
            }
            _ => bad(
                WHAT,
                format!("{shown} is neither a file nor a block device"),
                format!("ls -l {name}"),
            ),
        },
        Err(error) if error.kind() == ErrorKind::NotFound && read_only => bad(
            WHAT,
            format!("{shown} is not there, and none is made of a disk that is `read_only`"),
            format!("ls -l {name}"),
        ),
        Err(error) if error.kind() == ErrorKind::NotFound && size.is_some() => {
            directory(WHAT, path)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => bad(
            WHAT,
            format!("{shown} is not there, and its disk has no `size` to make it of"),
            format!("truncate -s 10G {name}"),
        ),
        Err(error) => refused(WHAT, path, &error, access(path, &name, read_only)),
    }
}

/// How one gets at a file: devices belong to a group, and of one's own it is the mode that is in the way.
fn access(path: &Path, name: &str, read_only: bool) -> String {
    let is_device = fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    match (is_device, is_own(path)) {
        (true, _) => "sudo usermod -aG disk \"$USER\"".into(),
        (false, true) if read_only => format!("chmod u+r {name}"),
        (false, true) if File::open(path).is_ok() => {
            format!("chmod u+w {name}    # or `read_only = true` of its disk")
        }
        (false, true) => format!("chmod u+rw {name}"),
        (false, false) => format!("sudo chown \"$USER\" {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(system: &System) -> Vec<(&'static str, Verdict)> {
        let checks = check(system, None, Path::new(""));
        checks.iter().map(|check| (check.what, check.verdict)).collect()
    }

    #[test]
    fn releases_are_read() {
        let table = [
            ("6.1.0-18-amd64\n", Some((6, 1))),
            ("5.4.0", Some((5, 4))),
            ("", None),
            ("linux", None),
            ("6", None),
        ];
        for (text, expected) in table {
            assert_eq!(release(text), expected, "{text}");
        }
    }

    #[test]
    fn the_mode_of_a_file_of_ones_own_is_in_the_way() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let line = |read_only| access(file.path(), "x", read_only);
        assert_eq!(line(true), "chmod u+r x");
        assert_eq!(line(false), "chmod u+w x    # or `read_only = true` of its disk");
        assert_eq!(access(Path::new("/nowhere"), "x", false), "sudo chown \"$USER\" x");
    }

    #[test]
    fn each_thing_in_the_way_is_told() {
        let fine = System {
            kernel: Some((6, 6)),
            io_uring_disabled: Some(0),
            io_uring: None,
            hugepages: Some((8, 2048)),
            memlock: Some(64 << 10),
            nofile: Some(1024),
        };
        assert!(verdicts(&fine).iter().all(|(_, verdict)| *verdict == Verdict::Good));
        let no = Some("Operation not permitted".to_owned());
        let table = [
            (
                System { kernel: Some((4, 18)), memlock: None, ..fine.clone() },
                "kernel",
                Verdict::Hint,
            ),
            (System { io_uring: no.clone(), ..fine.clone() }, "io_uring", Verdict::Hint),
            (System { hugepages: Some((0, 2048)), ..fine.clone() }, "hugepages", Verdict::Hint),
            (System { kernel: Some((5, 10)), ..fine.clone() }, "memlock", Verdict::Hint),
            (System { nofile: Some(128), ..fine.clone() }, "nofile", Verdict::Bad),
        ];
        for (system, what, verdict) in table {
            let others = verdicts(&system);
            let told: Vec<_> = others.iter().filter(|(_, v)| *v != Verdict::Good).collect();
            assert_eq!(told, [&(what, verdict)], "{system:?}");
        }
        let disabled = System { io_uring_disabled: Some(2), io_uring: no, ..fine };
        let told = check(&disabled, None, Path::new(""));
        assert_eq!(told[1].type_this, ["sudo sysctl kernel.io_uring_disabled=0"]);
    }
}
