//! Other programs, timed: how long one runs and how much memory it holds meanwhile.

use std::{
    io,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The most memory that a process held.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Bytes of its own.
    pub(crate) own: u64,
    /// Bytes of files that it had mapped.
    pub(crate) mapped: u64,
}

/// Whether a program is there; it is asked for its version.
pub(crate) fn is_installed(program: &str) -> bool {
    let child = quiet(Command::new(program).arg("--version"));
    child.and_then(|mut child| child.wait()).is_ok_and(|status| status.success())
}

/// Seconds that a program takes, its output dropped.
pub(crate) fn time(command: &mut Command) -> io::Result<f64> {
    let start = Instant::now();
    let mut child = quiet(command)?;
    child.wait()?;
    Ok(start.elapsed().as_secs_f64())
}

/// The most memory that a program holds, looked at every two milliseconds; zeros where the system
/// does not tell.
pub(crate) fn memory(command: &mut Command) -> io::Result<Memory> {
    const EVERY: Duration = Duration::from_millis(2);
    let mut child = quiet(command)?;
    let mut most = Memory::default();
    while child.try_wait()?.is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
        let status = status.unwrap_or_default();
        most.own = most.own.max(field(&status, "RssAnon:"));
        most.mapped = most.mapped.max(field(&status, "RssFile:"));
        std::thread::sleep(EVERY);
    }
    Ok(most)
}

fn quiet(command: &mut Command) -> io::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// A figure of `/proc/PID/status`, which are in KiB, in bytes.
fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_tells_its_memory() {
        let status = "Name:\tkavg\nRssAnon:\t    2048 kB\nRssFile:\t      12 kB\n";
        assert_eq!(field(status, "RssAnon:"), 2 << 20);
        assert_eq!(field(status, "RssFile:"), 12 << 10);
        assert_eq!(field("", "RssAnon:"), 0);
    }
}
