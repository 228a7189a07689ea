//! What a host at work is made of and set to: what esxcli lists, as data.

use knobs::PathPolicy;
use serde::{Deserialize, Serialize};

/// A host. Places are those in its own lists, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct HostState {
    /// Its name.
    pub name: String,
    /// The version of ESXi whose rules it has (`7.0`).
    pub version: String,
    /// Its adapters.
    pub adapters: Vec<Adapter>,
    /// Its devices.
    pub devices: Vec<Device>,
    /// Its paths.
    pub paths: Vec<Path>,
    /// Its virtual machines.
    pub vms: Vec<Vm>,
    /// Their disks.
    pub disks: Vec<Disk>,
    /// The storage policies that disks may have.
    #[serde(default)]
    pub storage_policies: Vec<StoragePolicy>,
    /// Worlds on devices.
    pub worlds: Vec<World>,
    /// Advanced options that the version has, by their paths: the value that is set.
    pub options: Vec<(String, u32)>,
}

/// An adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Adapter {
    /// Its name (`vmhba1`).
    pub name: String,
    /// The module that drives it (`nfnic`).
    pub driver: String,
    /// The depth that the module's parameter is set to, in force or not yet; `None` where nobody set it.
    pub lun_depth: Option<u32>,
    /// What it has counted.
    pub totals: Totals,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Device {
    /// Its name (`naa.…`).
    pub name: String,
    /// Whether it is an NFS mount, of which esxcli's storage commands know nothing.
    pub is_nfs: bool,
    /// Whether it is a protocol endpoint of virtual volumes.
    pub is_protocol_endpoint: bool,
    /// The datastores on it.
    pub datastores: Vec<String>,
    /// Bytes of the disks on it.
    pub bytes: u64,
    /// Device Max Queue Depth.
    pub max_queue_depth: u32,
    /// No of outstanding IOs with competing worlds (DSNRO).
    pub dsnro: u32,
    /// Adaptive throttling of this device; `None` is that of the host.
    pub throttle: Option<Throttle>,
    /// Whether its depth is found by latency.
    #[serde(default)]
    pub depth_by_latency: bool,
    /// Storage I/O Control of the datastore on it; `None` is off.
    #[serde(default)]
    pub congestion: Option<Congestion>,
    /// How paths are chosen.
    pub policy: Policy,
    /// What it has counted.
    pub totals: Totals,
}

/// Adaptive throttling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Throttle {
    /// Queue Full Sample Size.
    pub sample_size: u32,
    /// Queue Full Threshold.
    pub threshold: u32,
}

/// Storage I/O Control of a datastore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Congestion {
    /// The congestion threshold in microseconds.
    pub threshold_us: u32,
    /// Whether it only counts and holds nobody back.
    pub stats_only: bool,
}

/// How paths are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// `VMW_PSP_FIXED`
    #[default]
    Fixed,
    /// `VMW_PSP_MRU`
    MostRecentlyUsed,
    /// `VMW_PSP_RR`
    RoundRobin {
        /// I/Os down a path.
        iops: u32,
        /// Bytes down a path.
        bytes: u64,
    },
    /// `VMW_PSP_RR` by latency
    Latency {
        /// I/Os that probe each path.
        sampling_ios: u32,
        /// Nanoseconds between evaluations.
        eval_ns: u64,
    },
}

/// A path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Path {
    /// Its runtime name (`vmhba1:C0:T0:L3`).
    pub name: String,
    /// The place of its device.
    pub device: u32,
    /// The place of its adapter.
    pub adapter: u32,
    /// Whether it is used; not where somebody took it down.
    pub up: bool,
    /// Whether it is used and leads nowhere: a command on it was given up, or the device is gone.
    #[serde(default)]
    pub dead: bool,
    /// Whether it is active-optimised.
    pub optimized: bool,
}

/// A virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Vm {
    /// Its name.
    pub name: String,
    /// The id of its leader world.
    pub world: u32,
}

/// A virtual disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Disk {
    /// The place of its virtual machine.
    pub vm: u32,
    /// Its place there (`scsi0:1`).
    pub name: String,
    /// The place of its device.
    pub device: u32,
    /// The name by which clients ask for it; `None` where it is not served.
    pub export: Option<String>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its shares.
    pub shares: u32,
    /// I/Os a second that it may have; `None` is no limit.
    pub limit_iops: Option<u32>,
    /// I/Os a second that are reserved for it.
    pub reservation_iops: u32,
    /// The storage policy that says these three; `None` where it has none.
    #[serde(default)]
    pub storage_policy: Option<String>,
}

/// A storage policy: what each disk has that has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct StoragePolicy {
    /// Its name.
    pub name: String,
    /// Shares.
    pub shares: u32,
    /// I/Os a second that a disk may have; `None` is no limit.
    pub limit_iops: Option<u32>,
    /// I/Os a second that are reserved for it.
    pub reservation_iops: u32,
}

/// A virtual machine on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct World {
    /// The place of its device.
    pub device: u32,
    /// The place of its virtual machine.
    pub vm: u32,
    /// Its disks there.
    pub opens: u32,
}

/// What was counted since the daemon began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Totals {
    /// Commands that ended well.
    pub commands: u64,
    /// Reads among them.
    pub reads: u64,
    /// Writes among them.
    pub writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// SCSI reservations taken.
    pub reserves: u64,
    /// Results RESERVATION CONFLICT.
    pub conflicts: u64,
    /// Commands that failed.
    pub failed: u64,
    /// Reads among them.
    pub failed_reads: u64,
    /// Writes among them.
    pub failed_writes: u64,
    /// SCSI reservations among them.
    #[serde(default)]
    pub failed_reserves: u64,
    /// Commands that were split.
    pub splits: u64,
    /// Results TASK SET FULL or BUSY, which is counted of devices.
    #[serde(default)]
    pub refusals: u64,
}

impl HostState {
    /// Whether everything that is named by its place is there.
    pub(crate) fn is_whole(&self) -> bool {
        let [devices, adapters, vms] =
            [self.devices.len(), self.adapters.len(), self.vms.len()].map(|count| count as u64);
        let is_there = |place: u32, count: u64| u64::from(place) < count;
        let paths = self.paths.iter();
        let disks = self.disks.iter();
        let worlds = self.worlds.iter();
        paths
            .map(|path| is_there(path.device, devices) && is_there(path.adapter, adapters))
            .chain(disks.map(|disk| is_there(disk.device, devices) && is_there(disk.vm, vms)))
            .chain(worlds.map(|world| is_there(world.device, devices) && is_there(world.vm, vms)))
            .all(|is_whole| is_whole)
    }
}

impl Totals {
    /// Adds others.
    pub const fn add(&mut self, other: &Self) {
        self.commands += other.commands;
        self.reads += other.reads;
        self.writes += other.writes;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.reserves += other.reserves;
        self.conflicts += other.conflicts;
        self.failed += other.failed;
        self.failed_reads += other.failed_reads;
        self.failed_writes += other.failed_writes;
        self.failed_reserves += other.failed_reserves;
        self.splits += other.splits;
        self.refusals += other.refusals;
    }
}

impl From<PathPolicy> for Policy {
    fn from(policy: PathPolicy) -> Self {
        match policy {
            PathPolicy::Fixed => Self::Fixed,
            PathPolicy::MostRecentlyUsed => Self::MostRecentlyUsed,
            PathPolicy::RoundRobin { iops, bytes } => Self::RoundRobin { iops, bytes },
            PathPolicy::Latency { sampling_ios, eval_ns } => {
                Self::Latency { sampling_ios, eval_ns }
            }
        }
    }
}

impl From<Policy> for PathPolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Fixed => Self::Fixed,
            Policy::MostRecentlyUsed => Self::MostRecentlyUsed,
            Policy::RoundRobin { iops, bytes } => Self::RoundRobin { iops, bytes },
            Policy::Latency { sampling_ios, eval_ns } => Self::Latency { sampling_ios, eval_ns },
        }
    }
}
