//! What a host is made of, before the engine is built from it. Every vector is indexed by the id
//! of its noun; whoever fills it has checked that ids name something.

use alloc::{format, string::String, vec::Vec};
use core::ops::RangeInclusive;

use counters::{
    AdapterId, AdapterInfo, Controller, DeviceId, DeviceInfo, DeviceKind, Inventory, PathInfo,
    VdiskId, VdiskInfo, VmId, VmInfo, VscsiId,
};

use knobs::{Advanced, Allocation, Driver, PathPolicy, Transport, Version};

/// One host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Who competes on a device (ruling: VMs).
    pub competition_unit: CompetitionUnit,
    /// What several paths make of a device's depth (ruling: the value of one path).
    pub depth_mode: DepthMode,
    /// Which reading of adaptive throttling is in force (ruling: the kernel's).
    pub throttle_mode: ThrottleMode,
    /// What a share is under mClock: so many hundredths of an I/O a second, [`WEIGHT_SCALE`] (ruling: 100;
    /// reference `array-and-control.md` section 8.5).
    pub weight_scale_percent: u32,
    /// Host adapters.
    pub adapters: Vec<AdapterConfig>,
    /// Devices.
    pub devices: Vec<DeviceConfig>,
    /// Paths; every device has at least one.
    pub paths: Vec<PathConfig>,
    /// Virtual machines.
    pub vms: Vec<VmConfig>,
    /// Virtual storage adapters.
    pub vscsi: Vec<VscsiConfig>,
    /// Virtual disks.
    pub vdisks: Vec<VdiskConfig>,
}

/// The values of [`HostConfig::weight_scale_percent`]: at 1, a thousand shares are 10 I/Os a second, fewer than
/// any device does.
pub const WEIGHT_SCALE: RangeInclusive<u32> = 1..=100_000;

/// A host adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterConfig {
    /// Its name (`vmhba1`).
    pub name: String,
    /// Its driver.
    pub driver: &'static Driver,
    /// The depth per LUN that the driver was loaded with.
    pub lun_depth: u32,
    /// The adapter's own limit (AQLEN).
    pub depth: u32,
    /// How long a command may be with the driver, in nanoseconds above 0; `None` is for ever.
    pub timeout_ns: Option<u64>,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Its name (`naa.…`), or the datastore's for NFS.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Outstanding I/Os with competing worlds; `None` is the version's default.
    pub dsnro: Option<u32>,
    /// How queued I/Os are ordered; `None` is what the version and its options say.
    pub policy: Option<SchedPolicy>,
    /// How paths are chosen.
    pub path_policy: PathPolicy,
}

/// A path of a device through an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathConfig {
    /// Its name (`vmhba1:C0:T0:L3`).
    pub name: String,
    /// The device it leads to.
    pub device: DeviceId,
    /// The adapter it leaves by.
    pub adapter: AdapterId,
    /// What the array is to commands that come over it.
    pub access: PathAccess,
}

/// What an array is to commands of a path, as it tells its hosts (ALUA). Paths that are not optimized are
/// used only when no path of the device that is optimized is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAccess {
    /// It serves them by the controller that does not own the device.
    NonOptimized,
    /// It serves them by the one that does; so does an array that makes no difference.
    Optimized,
    /// It hands the device over to the controller that they came to. The policy Fixed goes to its first path and
    /// has that done; the path used last is as good as any once it was done.
    Standby,
}

impl PathAccess {
    /// In the order of their values.
    pub const ALL: [Self; 3] = [Self::NonOptimized, Self::Optimized, Self::Standby];
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmConfig {
    /// Its name.
    pub name: String,
    /// The id of its leader world.
    pub world: u32,
    /// A system process of the host: it has worlds and no virtual disks of its own.
    pub system: bool,
    /// Whether it is on at the start.
    pub powered_on: bool,
    /// How long its guest waits for a command before it gives it up, in nanoseconds above 0; `None`
    /// where it keeps the time itself, as a real one does.
    pub timeout_ns: Option<u64>,
}

/// A virtual storage adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VscsiConfig {
    /// Its virtual machine.
    pub vm: VmId,
    /// Its type.
    pub controller: Controller,
    /// Commands that it may have outstanding.
    pub depth: u32,
    /// The largest command in bytes; the guest splits what is larger.
    pub max_transfer: u32,
}

/// A virtual disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VdiskConfig {
    /// Its place in the VM (`scsi0:1`).
    pub name: String,
    /// Its virtual machine.
    pub vm: VmId,
    /// Its virtual adapter.
    pub vscsi: VscsiId,
    /// The device its I/Os go to.
    pub device: DeviceId,
    /// Commands that it may have outstanding.
    pub depth: u32,
    /// Its limit, reservation and shares.
    pub allocation: Allocation,
}

/// How I/Os that wait for a slot of a device are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedPolicy {
    /// In the order of their arrival.
    Fifo,
    /// True proportional sharing (start-time fair queueing), with the sequential affinity of the
    /// classic scheduler: `Disk.SchedulerWithReservation=0` [VMB12].
    Sfq,
    /// mClock tags, with shares as absolute rates.
    Mclock,
}

impl SchedPolicy {
    /// What serves the devices of a host that say nothing else: mClock, or what came before it where
    /// the version has no other or `with_reservation`, the value of
    /// `Disk.SchedulerWithReservation`, is 0 [VMB12].
    #[must_use]
    pub fn default_in(version: Version, with_reservation: u32) -> Self {
        let has_mclock = Advanced::SchedulerWithReservation.exists_in(version);
        if has_mclock && with_reservation == 1 { Self::Mclock } else { Self::Sfq }
    }

    /// Bytes that an IOPS limit of a host with it counts as one I/O, where `Disk.SchedCostUnit` is `cost_unit`
    /// bytes: the scheduler before mClock counts I/Os of any size [YB-LIMIT, SPITERI].
    #[must_use]
    pub const fn limit_unit(self, cost_unit: u32) -> u32 {
        match self {
            Self::Mclock => cost_unit,
            Self::Fifo | Self::Sfq => u32::MAX,
        }
    }
}

/// Who counts as competing on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompetitionUnit {
    /// Virtual machines.
    Vm,
    /// Files of virtual machines.
    File,
}

/// What several paths make of the depth of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepthMode {
    /// The depth of one path.
    PathValue,
    /// The sum over the paths that are up.
    SumOfActivePaths,
}

/// The two readings of adaptive throttling (reference, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottleMode {
    /// `threshold` bad results in a window of `sample size` halve the depth.
    Kernel,
    /// `sample size` bad results halve the depth, `threshold` good ones add one.
    Kb,
}

impl HostConfig {
    /// A virtual disk by its VM and its name there, as its row is called.
    #[must_use]
    pub fn disk_name(&self, vdisk: VdiskId) -> String {
        let disk = &self.vdisks[vdisk.index()];
        format!("{}:{}", self.vms[disk.vm.index()].name, disk.name)
    }

    /// Who is who on this host.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        let adapters = self
            .adapters
            .iter()
            .map(|a| AdapterInfo {
                name: a.name.clone(),
                storage: a.driver.transport != Transport::Network,
            })
            .collect();
        let devices = self.devices.iter();
        let paths = self.paths.iter();
        let vms = self.vms.iter();
        let vdisks = self.vdisks.iter();
        Inventory {
            host: self.name.clone(),
            adapters,
            devices: devices.map(|d| DeviceInfo { name: d.name.clone(), kind: d.kind }).collect(),
            paths: paths
                .map(|p| PathInfo { name: p.name.clone(), device: p.device, adapter: p.adapter })
                .collect(),
            vms: vms
                .map(|vm| VmInfo { name: vm.name.clone(), world: vm.world, system: vm.system })
                .collect(),
            vdisks: vdisks
                .map(|d| VdiskInfo {
                    name: d.name.clone(),
                    vm: d.vm,
                    device: d.device,
                    controller: self.vscsi[d.vscsi.index()].controller,
                })
                .collect(),
        }
    }
}
