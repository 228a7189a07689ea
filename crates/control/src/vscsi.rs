//! `vscsiStats` on the wire: what is wanted of which disks, and what they have counted.

use counters::VSCSI;
use serde::{Deserialize, Serialize};

/// What is wanted of `vscsiStats`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct VscsiOrder {
    /// What is to be done.
    pub act: VscsiAct,
    /// Of the disks of one virtual machine, by its leader world; of all where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<u32>,
    /// Of one disk of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<u64>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VscsiAct {
    /// To count, for half an hour from now on.
    Start,
    /// To count no more.
    Stop,
    /// To begin anew with nothing.
    Reset,
    /// Nothing: only to say what was counted.
    Read,
}

/// A virtual disk, and what it has counted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct VscsiDisk {
    /// The name of its virtual machine.
    pub vm: String,
    /// The leader world of that.
    pub world: u32,
    /// Its handle, by which `vscsiStats` knows it.
    pub handle: u64,
    /// Its place in the machine (`scsi0:1`).
    pub name: String,
    /// Its histograms, in the order of [`counters::VSCSI`]; none where it was never started.
    pub histograms: Vec<VscsiCounts>,
}

/// What one histogram has counted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct VscsiCounts {
    /// Least value, 0 while there is none.
    pub min: i64,
    /// Greatest value.
    pub max: i64,
    /// Mean value.
    pub mean: i64,
    /// Commands counted.
    pub count: u64,
    /// Commands by bin: one for each of [`counters::Metric::limits`], and one above the last.
    pub commands: Vec<u64>,
}

impl VscsiDisk {
    /// The first handle of a host; real ones are numbered from about there [VSCSI].
    pub const FIRST_HANDLE: u64 = 8192;

    /// Whether it has all histograms with all their bins, or none.
    pub(crate) fn is_whole(&self) -> bool {
        let bins = VSCSI.iter().map(|(metric, ..)| metric.limits().len() + 1);
        self.histograms.is_empty()
            || bins.eq(self.histograms.iter().map(|counts| counts.commands.len()))
    }
}
