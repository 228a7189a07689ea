//! What is asked: settings, for which devices, over which stretch of the recording.

use diagnose::Change;
use knobs::Effect;

use crate::Error;

/// An IOPS limit of a VM's disks, by the name that PowerCLI gives it.
const LIMIT: &str = "DiskLimitIOPerSecond";

/// A question to a recording.
#[derive(Clone, Debug)]
pub struct Question {
    /// Lines as esxcli takes them, or with a VM's name in front for its PVSCSI driver
    /// (`sql01: RequestRingPages=32,MaxQueueDepth=254`) or for the IOPS limit of its disks
    /// (`sql01: DiskLimitIOPerSecond 500`, -1 for none). All of them are one change, in force
    /// after the reboots that it needs.
    pub settings: Vec<String>,
    /// Begin and end of the stretch that is simulated, in milliseconds since 1970-01-01 UTC: the
    /// intervals that end after the first and not after the second.
    pub window: (i64, i64),
    /// The device in question; without one, all that the settings name or act on.
    pub device: Option<String>,
    /// Devices that share an array, by name; they count more than what names tell. One alone in
    /// its group shares with nobody.
    pub arrays: Vec<Vec<String>>,
    /// Commands that a run simulates, about: 100,000 answer in tens of milliseconds.
    pub commands: f64,
}

/// The settings of a change that was proposed for `at`, a device or virtual disk; nothing when it
/// sets nothing that a simulation knows. Of several lines of which one is to be typed, it is the
/// first; of those for Windows and Linux that for Windows.
#[must_use]
pub fn settings_of(change: &Change, at: &str) -> Vec<String> {
    let sets = |line: &&String| {
        let line = line.trim_start_matches("esxcli ");
        line.starts_with("storage core device set ")
            || line.starts_with("system module parameters set ")
            || line.starts_with("system settings advanced set ")
    };
    if let Some(line) = change.esxcli.iter().find(sets) {
        return vec![line.clone()];
    }
    let vm = at.rsplitn(3, ':').last().unwrap_or(at);
    let mut limits = change.powercli.iter().filter_map(|line| {
        let value = line.split("-DiskLimitIOPerSecond ").nth(1)?.split_whitespace().next()?;
        value.parse::<i64>().ok()
    });
    if let Some(limit) = limits.next_back() {
        return vec![format!("{vm}: {LIMIT} {limit}")];
    }
    if change.effect != Effect::GuestReboot {
        return Vec::new();
    }
    let windows = change.guest.iter().find(|line| line.contains("RequestRingPages="));
    let data = windows.and_then(|line| line.split('"').find(|part| part.contains('=')));
    data.map(|data| format!("{vm}: {data}")).into_iter().collect()
}

/// The VM whose disks a setting limits, and to how many I/Os a second; `None` when it is another
/// setting.
pub(crate) fn limit_of(line: &str) -> Option<(&str, Result<Option<u32>, Error>)> {
    let (vm, value) = line.split_once(LIMIT)?;
    let vm = vm.trim().strip_suffix(':')?;
    let value = value.trim_start_matches(['=', ' ']).trim();
    let limit = match value.parse::<i64>() {
        Ok(-1) => Ok(None),
        Ok(limit) if (1..=i64::from(i32::MAX)).contains(&limit) => Ok(u32::try_from(limit).ok()),
        _ => Err(Error::new(format!(
            "`{line}`: `{value}` is no limit; it is -1 (none) or 1 to {} I/Os a second",
            i32::MAX
        ))),
    };
    Some((vm, limit))
}
