//! What is in a capture, and how to record what is not.
//!
//! A default `esxtop -b` lacks AQLEN, the split by direction, errors and shares [CAP]; the command
//! to get them is printed with a configuration that leaves out everything but disks and the
//! names of worlds, so that the file stays small.

use counters::{Counter, Kind, Recording, SHORTEST_INTERVAL_S, holes};

use crate::{Capture, time::usual_step};

/// What a capture does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// The depth of the adapter queue (AQLEN).
    AdapterDepth,
    /// Latency of reads and writes apart.
    Directions,
    /// Aborts, resets, failures and reservations.
    Errors,
    /// Shares of worlds.
    Shares,
    /// Who shares a device.
    Worlds,
    /// What each virtual disk does.
    VirtualDisks,
    /// Enough samples to see a change.
    Samples,
    /// Samples in the middle.
    Rows,
}

/// Samples below which nothing can be said about change.
const FEW_SAMPLES: usize = 12;

impl Missing {
    const ALL: [Self; 8] = [
        Self::AdapterDepth,
        Self::Directions,
        Self::Errors,
        Self::Shares,
        Self::Worlds,
        Self::VirtualDisks,
        Self::Samples,
        Self::Rows,
    ];

    /// What cannot be said without it.
    #[must_use]
    pub const fn consequence(self) -> &'static str {
        match self {
            Self::AdapterDepth => "no AQLEN: a full adapter queue cannot be told from a slow array",
            Self::Directions => "no latency by direction: slow writes hide behind fast reads",
            Self::Errors => "no aborts, resets or reservation conflicts",
            Self::Shares => "no shares: who is favoured on a device is not known",
            Self::Worlds => "no worlds: who shares a device is not known",
            Self::VirtualDisks => "no virtual disks: what a guest sees is not known",
            Self::Samples => "few samples: plateaus and changes cannot be seen",
            Self::Rows => "rows missing in the middle: what happened then is not known",
        }
    }

    fn is_missing(self, recording: &Recording) -> bool {
        let without = |kind: Kind, counter: Counter| {
            recording.of_kind(kind).next().is_some()
                && recording.of_kind(kind).all(|(id, _)| recording.series(id, counter).is_none())
        };
        match self {
            Self::AdapterDepth => without(Kind::Adapter, Counter::AdapterQDepth),
            Self::Directions => without(Kind::Device, Counter::DriverLatencyRead),
            Self::Errors => without(Kind::Device, Counter::Aborts),
            Self::Shares => without(Kind::World, Counter::Shares),
            Self::Worlds => recording.of_kind(Kind::World).next().is_none(),
            Self::VirtualDisks => recording.of_kind(Kind::VirtualDisk).next().is_none(),
            Self::Samples => recording.len() < FEW_SAMPLES,
            Self::Rows => {
                let times_ms = &recording.times_ms;
                holes(times_ms, usual_step(times_ms)).next().is_some()
            }
        }
    }
}

/// What one host's recording holds.
#[derive(Clone, Debug, PartialEq)]
pub struct HostInfo {
    /// The host's name.
    pub host: String,
    /// Samples.
    pub samples: usize,
    /// The first and last instant, in milliseconds since 1970-01-01 UTC.
    pub span_ms: Option<(i64, i64)>,
    /// Objects of each kind.
    pub objects: Vec<(Kind, usize)>,
    /// Columns of disk counters.
    pub columns: usize,
    /// Worlds on devices that are a VM's.
    pub vm_worlds: usize,
    /// What it does not tell.
    pub missing: Vec<Missing>,
}

/// What each host's recording holds.
#[must_use]
pub fn info(capture: &Capture) -> Vec<HostInfo> {
    capture.recordings.iter().map(host_info).collect()
}

fn host_info(recording: &Recording) -> HostInfo {
    let times = &recording.times_ms;
    let count = |kind| (kind, recording.of_kind(kind).count());
    let objects = crate::ReadOptions::default().kinds.into_iter().map(count);
    HostInfo {
        host: recording.host.clone(),
        samples: recording.len(),
        span_ms: times.first().copied().zip(times.last().copied()),
        objects: objects.filter(|(_, count)| *count > 0).collect(),
        columns: recording.columns().count(),
        vm_worlds: recording.of_kind(Kind::World).filter(|(_, world)| world.vm.is_some()).count(),
        missing: Missing::ALL.into_iter().filter(|m| m.is_missing(recording)).collect(),
    }
}

/// How to record a capture that lacks nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordCommand {
    /// To be typed on the host.
    pub command: String,
    /// The file that the command takes its fields from.
    pub rc_file: &'static str,
    /// Its text.
    pub rc_text: String,
    /// The command for a version of esxtop that does not take the file: everything, ten times as
    /// large.
    pub command_without_rc: String,
}

/// Fields of each screen, capitals shown: of the CPU screen what names worlds, of the adapter,
/// device and VM screens everything, of the others nothing [CAP-B, ELA].
const RC_FIELDS: [&str; 9] = [
    "abcDeFghij",
    "abcdefghijklmnopq",
    "ABCDEFGHIJKL",
    "ABCDEFGHIJKLMNOP",
    "ABCDEFGH",
    "abcdefghijklmnopq",
    "abcdef",
    "abcde",
    "abcd",
];

/// The command that records `samples` samples every `interval_s` seconds, at least 2.
#[must_use]
pub fn record_command(interval_s: u32, samples: u32) -> RecordCommand {
    const FILE: &str = "kavg.esxtoprc";
    let interval_s = interval_s.max(SHORTEST_INTERVAL_S);
    // The last line is the interval and the screen to begin with: devices.
    let rc_text = RC_FIELDS.join("\n") + &format!("\n{interval_s}u\n");
    let command = |fields: &str| {
        format!("esxtop -b {fields} -d {interval_s} -n {samples} | gzip > $(hostname -s).csv.gz")
    };
    RecordCommand {
        command: command(&format!("-c {FILE}")),
        rc_file: FILE,
        rc_text,
        command_without_rc: command("-a"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counters::Entity;

    #[test]
    fn what_a_recording_lacks_is_said() {
        let mut recording = Recording::new("esx01".into());
        recording.times_ms = vec![0, 5_000, 10_000, 16_000];
        let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
        recording.set_column(device, Counter::Aborts, vec![0.0; 4]);
        let expected = HostInfo {
            host: "esx01".into(),
            samples: 4,
            span_ms: Some((0, 16_000)),
            objects: vec![(Kind::Device, 1)],
            columns: 1,
            vm_worlds: 0,
            missing: vec![
                Missing::Directions,
                Missing::Worlds,
                Missing::VirtualDisks,
                Missing::Samples,
            ],
        };
        let capture = Capture { recordings: vec![recording], ..Capture::default() };
        assert_eq!(info(&capture), [expected]);
    }

    #[test]
    fn a_hole_of_40_s_between_rows_of_5_s_is_told() {
        let mut recording = Recording::new("esx01".into());
        recording.times_ms =
            (0..30).map(|row| 5_000 * (row + if row < 15 { 0 } else { 8 })).collect();
        assert!(Missing::Rows.is_missing(&recording));
        recording.times_ms = (0..30).map(|row| 5_000 * row).collect();
        assert!(!Missing::Rows.is_missing(&recording));
    }

    #[test]
    fn the_command_takes_every_disk_field() {
        let command = record_command(1, 720);
        assert_eq!(
            command.command,
            "esxtop -b -c kavg.esxtoprc -d 2 -n 720 | gzip > $(hostname -s).csv.gz"
        );
        let lines: Vec<&str> = command.rc_text.lines().collect();
        assert_eq!((lines.len(), lines[9]), (10, "2u"));
        // Adapter, device and VM screens have 12, 16 and 8 fields [CAP-B].
        assert_eq!(lines[2..5], ["ABCDEFGHIJKL", "ABCDEFGHIJKLMNOP", "ABCDEFGH"]);
    }
}
