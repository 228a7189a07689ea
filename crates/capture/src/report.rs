//! What was read, what was left out and what was wrong: nothing is lost silently.

use std::collections::BTreeMap;

use counters::{EntityId, Kind};

use crate::{Check, Stamps, Zone, cells::Damage};

/// Damaged rows that a report names; the others are counted.
pub(crate) const ROWS_NAMED: usize = 20;

/// What one file held.
#[derive(Clone, Debug, Default)]
pub struct FileReport {
    /// The file as the user named it.
    pub file: String,
    /// Bytes read, after inflating.
    pub bytes: u64,
    /// Columns of the header, the time not among them.
    pub columns: usize,
    /// Columns of disk counters that were read.
    pub disk_columns: usize,
    /// Rows read.
    pub rows: usize,
    /// Whether the first row had nothing but zero rates, as esxtop's first sample has, and was
    /// left out [CAP-A].
    pub first_row_left_out: bool,
    /// Rows that could not be read.
    pub damaged_rows: u64,
    /// The first of them: line and damage.
    pub damaged: Vec<(u64, Damage)>,
    /// Cells of disk counters that hold no number.
    pub bad_cells: u64,
    /// Columns that came twice; the first was taken.
    pub duplicate_columns: usize,
    /// Columns of known groups that say nothing of disks.
    pub other_columns: usize,
    /// Columns that no capture known to this reader has: `Group\Counter` and how many.
    pub unknown_columns: BTreeMap<String, usize>,
    /// Headers in the middle, where captures stand one behind the other; they are read like files
    /// of their own.
    pub further_headers: u64,
    /// Rows at the beginning that show commands and no rates, though what completes next did not wait: the
    /// first sample once more. They are left out.
    pub unmeasured_rows: usize,
    /// Rows with the time of the row above, and its values where samples are more than one in 2 s; they
    /// are left out.
    pub repeated_rows: usize,
    /// Lines of the first rows after the clock was set back, as at the end of daylight saving: the rows
    /// before are moved back, and all stay in the order of the file.
    pub clock_set_back: Vec<u64>,
    /// Lines of the first rows after the clock was set ahead, or after a hole: an hour or more.
    pub clock_set_ahead: Vec<u64>,
    /// Lines of rows with a time far from that of all others; they are put between their neighbours.
    pub stray_rows: Vec<u64>,
    /// Rows with a time before that of the row above; they are put in the order of time.
    pub backward_steps: usize,
    /// Text before the header, as `esxtop -b &> file` leaves it.
    pub text_before_header: Option<String>,
    /// How exact the times are.
    pub stamps: Stamps,
    /// The clock of the times in the file, as its header says; where it is another one than UTC, they are
    /// turned into that.
    pub zone: Zone,
    /// What the ids of worlds tell of the version of ESXi.
    pub version: Option<VersionHint>,
    /// Why the data ended before the file did (a gzip file cut short).
    pub ended_early: Option<String>,
}

/// Columns that a spreadsheet keeps; it drops the others without a word when it saves.
const SPREADSHEET_COLUMNS: usize = 16_384;

impl FileReport {
    /// Whether the file has just the columns that a spreadsheet keeps, the time among them.
    #[must_use]
    pub const fn ends_where_spreadsheets_do(&self) -> bool {
        self.columns + 1 == SPREADSHEET_COLUMNS
    }

    /// Takes note of a damaged row.
    pub(crate) fn add_damage(&mut self, line: u64, damage: Damage) {
        if self.damaged.len() < ROWS_NAMED {
            self.damaged.push((line, damage));
        }
    }
}

/// A guess at the version of ESXi.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionHint {
    /// The versions that suit.
    pub versions: &'static str,
    /// What the guess rests on: the id of the VMkernel's first world.
    pub first_world: u64,
}

/// How sure it is which device holds a virtual disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskLink {
    /// The virtual disk.
    pub disk: EntityId,
    /// The device or NFS volume that suits best.
    pub device: EntityId,
    /// 0 to 1: how much better than the next candidate.
    pub confidence: f64,
    /// What the link rests on.
    pub because: Because,
}

/// What a link between a virtual disk and a device rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// The VM has a world on one device only.
    OnlyDevice,
    /// The series of the virtual disk is in the series of the VM's world on the device.
    Series,
    /// No world of the VM has its I/Os, and there is an NFS volume that can.
    Elimination,
}

/// What is known of one host's recording.
#[derive(Clone, Debug, Default)]
pub struct HostReport {
    /// The host's name as in the file.
    pub host: String,
    /// Which device each virtual disk is on.
    pub disk_links: Vec<DiskLink>,
    /// Samples left out because there was one of the same instant already.
    pub repeated_samples: usize,
    /// Paths with commands of which it is not known to which device they lead.
    pub untied_paths: usize,
    /// The VMs of one name, told apart by their groups: that name, and theirs. Their virtual disks are left out.
    pub namesakes: BTreeMap<String, Vec<String>>,
    /// Worlds that are neither a VM's nor a known process.
    pub unresolved_worlds: usize,
    /// Identities that the numbers of a sound file obey.
    pub checks: Vec<Check>,
    /// Kinds of objects that the files hold.
    pub kinds: Vec<Kind>,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct ReadReport {
    /// One for each file, in the order given.
    pub files: Vec<FileReport>,
    /// One for each recording, in the same order.
    pub hosts: Vec<HostReport>,
}
