//! What is asked: settings, for which devices, over which stretch of the recording.

use diagnose::Change;
use knobs::{Advanced, DiskName, LIMIT, Line, Setting};

use crate::Error;

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

/// The settings of a change, as lines; nothing when it sets nothing. Of drivers of which one is there
/// it is the first; where a guest's system is not known, it is Windows.
#[must_use]
pub fn settings_of(change: &Change) -> Vec<String> {
    change.steps.first().map(|step| step.set.to_string()).into_iter().collect()
}

/// The VM whose disks a setting limits, and to how many I/Os a second; `None` when it is another
/// setting.
pub(crate) fn limit_of(line: &str) -> Option<(&str, Result<Option<u32>, Error>)> {
    let (disk, _) = line.split_once(": ").filter(|(_, rest)| rest.starts_with(LIMIT))?;
    let limit = match line.parse().map(|Line { settings, .. }| settings) {
        Ok(settings) => match settings.first()? {
            Setting::Allocation { allocation, .. } => Ok(*allocation),
            _ => return None,
        },
        Err(refusal) => Err(Error::new(format!("`{line}`: {refusal}"))),
    };
    Some((&disk[..DiskName::from(disk).vm.len()], limit))
}

/// What the software initiator cuts commands into with these settings, in KiB [LAMW].
pub(crate) fn iscsi_kib(lines: &[String]) -> u32 {
    let settings = lines.iter().filter_map(|line| line.parse::<Line>().ok());
    let asked = settings.flat_map(|line| line.settings).filter_map(|setting| match setting {
        Setting::Advanced { option: Advanced::IscsiMaxIoSizeKb, value } => value,
        _ => None,
    });
    asked.last().unwrap_or(Advanced::IscsiMaxIoSizeKb.info().default)
}
