//! The guest of `kavg bench live --guest`: User-Mode Linux, whose own driver asks, and fio in it, which hands
//! over a batch at a time.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::Stdio,
};

use guest::machine::{BUSYBOX, UML, pack_uml, runs_uml, uml};
use tempfile::TempDir;

use super::bench_servers::Outcome;

const FIO: &str = "/usr/bin/fio";

/// It reads 4 KiB anywhere, hands over all that it may and looks for what has ended without sleeping, as to be woken
/// takes such a guest most of a millisecond where others want its CPU; and it says how many KiB it has read and
/// how many times a second. The time of each I/O is not taken: a clock costs it as much as an I/O. Its kernel
/// makes what it does not know of its command line the variables of a shell.
const JOB: &str = "echo none > /sys/block/vda/queue/scheduler
echo BEGIN
echo READ $(fio --name=r --filename=/dev/vda --rw=randread --bs=4k --direct=1 --norandommap --ioengine=io_uring \
    --iodepth=$depth --iodepth_batch_submit=$depth --iodepth_batch_complete_min=0 \
    --iodepth_batch_complete_max=$depth --gtod_reduce=1 --time_based --runtime=${millis}ms \
    --output-format=terse --terse-version=3 | cut -d ';' -f 6,8)
";

/// A guest that can be booted again and again.
pub(super) struct Guest {
    initrd: PathBuf,
    _directory: TempDir,
}

/// What it has read.
pub(super) struct Read {
    pub(super) ios: f64,
    pub(super) iops: f64,
    /// What a clock of the server's showed more at the end than when it began.
    pub(super) cpu_ns: u64,
}

impl Guest {
    pub(super) fn new() -> Outcome<Self> {
        let needed = [(BUSYBOX, "busybox-static"), (UML, "user-mode-linux"), (FIO, "fio")];
        let missing = needed.iter().find(|(file, _)| !Path::new(file).exists());
        if let Some((file, package)) = missing {
            return Err(format!("{file} is not there for a guest (package {package})"));
        }
        let said = |error: std::io::Error| format!("a guest: {error}");
        if !runs_uml().map_err(said)? {
            return Err(format!("{UML} cannot save the registers of this processor"));
        }
        let directory = tempfile::tempdir().map_err(said)?;
        let initrd = pack_uml(directory.path(), &[FIO], JOB).map_err(said)?;
        Ok(Self { initrd, _directory: directory })
    }

    /// Boots it on the disk at that socket; it runs where this thread runs.
    pub(super) fn read(
        &self,
        socket: &Path,
        depth: u16,
        millis: u32,
        cpu_ns: impl Fn() -> u64,
    ) -> Outcome<Read> {
        let said = |error: std::io::Error| format!("{UML}: {error}");
        let mut command = uml(&self.initrd, socket);
        command.args([format!("depth={depth}"), format!("millis={millis}")]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(said)?;
        let (mut begun, mut read) = (0, None);
        for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let line = line.map_err(said)?;
            if line.trim() == "BEGIN" {
                begun = cpu_ns();
            }
            let figures = line.trim().strip_prefix("READ ").and_then(|rest| rest.split_once(';'));
            let of =
                |(kib, iops): (&str, &str)| Some((kib.parse::<f64>().ok()?, iops.parse().ok()?));
            if let Some((kib, iops)) = figures.and_then(of) {
                read = Some(Read { ios: kib / 4.0, iops, cpu_ns: cpu_ns() - begun });
            }
        }
        child.wait().map_err(said)?;
        read.ok_or_else(|| "the guest has not read".into())
    }
}
