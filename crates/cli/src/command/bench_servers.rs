//! What `kavg bench live` measures with: servers on a CPU of their own, the files that they serve, and
//! places to read there.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::{NamedTempFile, TempDir};

/// What went wrong is a line.
pub(super) type Outcome<T> = std::result::Result<T, String>;

/// Bytes of a disk, and of one in a file.
pub(super) const DISK: u64 = 1 << 30;
pub(super) const FILE: u64 = 64 << 20;
/// The CPUs of servers and of the client.
const SERVER_CPU: &str = "0";
pub(super) const CLIENT_CPU: usize = 1;

/// What is done.
#[derive(Clone, Copy)]
pub(super) struct Work {
    pub(super) name: &'static str,
    pub(super) bytes: u32,
    pub(super) writes: bool,
    pub(super) in_order: bool,
}

/// Servers at work, which end with this, and the files that they serve.
pub(super) struct Servers {
    pub(super) children: Vec<Child>,
    /// Files in memory, and the directory of all others.
    memory: Vec<NamedTempFile>,
    images: TempDir,
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program on the CPU of servers.
pub(super) fn on_cpu(program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", SERVER_CPU, program]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

impl Servers {
    /// None yet; their files are in a directory of their own, in that one where one is given.
    pub(super) fn new(directory: Option<&Path>) -> std::io::Result<Self> {
        let images = match directory {
            Some(directory) => tempfile::tempdir_in(directory)?,
            None => tempfile::tempdir()?,
        };
        Ok(Self { children: Vec::new(), memory: Vec::new(), images })
    }

    /// Begins our own daemon of a file, with `DIRECTORY` where the images are, and waits until it serves
    /// so many disks; its process.
    pub(super) fn serve(
        &mut self,
        site: &Path,
        host: &str,
        disks: usize,
        arguments: &[&str],
    ) -> Outcome<u32> {
        let said = |error: std::io::Error| format!("kavg serve: {error}");
        let host = host.replace("DIRECTORY", &self.images.path().display().to_string());
        fs::write(site.join("h.toml"), host).map_err(said)?;
        let program = std::env::current_exe().map_err(said)?;
        let mut command = on_cpu(&program.display().to_string());
        command.args(["serve", "h.toml"]).args(arguments).current_dir(site);
        let mut child = command.spawn().map_err(said)?;
        let lines = child.stdout.take().map(BufReader::new);
        let ready =
            lines.map_or(0, |lines| lines.lines().take(disks).filter(|line| line.is_ok()).count());
        let process = child.id();
        self.children.push(child);
        if ready < disks {
            return Err("kavg serve did not begin".into());
        }
        Ok(process)
    }

    /// A new file in memory.
    pub(super) fn in_memory(&mut self) -> Outcome<PathBuf> {
        let made = NamedTempFile::new_in("/dev/shm");
        let made = made.and_then(|file| file.as_file().set_len(DISK).map(|()| file));
        let file = made.map_err(|error| format!("/dev/shm: {error}"))?;
        let path = file.path().to_path_buf();
        self.memory.push(file);
        Ok(path)
    }

    /// A new file that is written, so that reading it reaches the disk.
    pub(super) fn image(&self, name: &str) -> Outcome<PathBuf> {
        let path = self.images.path().join(name);
        let block = vec![0x5a; 1 << 20];
        let written = fs::File::create(&path).and_then(|mut file| {
            (0..FILE >> 20).try_for_each(|_| file.write_all(&block))?;
            file.sync_all()
        });
        written.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

/// Places to read or write: one after the other, or in no order.
pub(super) struct Places {
    work: Work,
    count: u64,
    last: u64,
}

impl Places {
    pub(super) fn new(disk: u64, work: Work) -> Self {
        Self { work, count: disk / u64::from(work.bytes), last: 1 }
    }

    /// Where the next one begins, in bytes.
    pub(super) fn next(&mut self) -> u64 {
        let place = if self.work.in_order {
            self.last += 1;
            self.last
        } else {
            self.last = self.last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            self.last >> 33
        };
        place % self.count * u64::from(self.work.bytes)
    }
}
