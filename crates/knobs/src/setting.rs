//! A setting: what esxcli, the guest's drivers and a disk's policy set, and when it acts.
//!
//! What it is set on is a name in a line that somebody types ([`Setting`]) and an id on the host
//! that has the thing ([`Knob`]); the fields are the same.

use alloc::string::String;
use core::ops::RangeInclusive;

use counters::{DeviceId, VdiskId, VmId};

use crate::{Advanced, Driver};

/// A setting on a host whose things have ids.
pub type Knob = Setting<DeviceId, VmId, VdiskId>;

/// A change of one setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting<Device = String, Vm = String, Vdisk = String> {
    /// `storage core device set -O`: outstanding I/Os with competing worlds (DSNRO).
    SchedNumReqOutstanding {
        /// The device.
        device: Device,
        /// 1 to 256; from ESXi 6.5 at most the device's depth [HP, S1].
        value: u32,
    },
    /// `storage core device set -m`: the device's depth, at most what the driver gives [QD254].
    MaxQueueDepth {
        /// The device.
        device: Device,
        /// 1 to the driver's depth.
        value: u32,
    },
    /// `storage core device set -s -q`: adaptive throttling of one device [KB-QF].
    QueueFull {
        /// The device.
        device: Device,
        /// Results in a window, 0 (off) to 64 [LAMW].
        sample_size: u32,
        /// Bad results that halve the depth, 1 to 16 and at most the sample size [LAMW].
        threshold: u32,
    },
    /// `system settings advanced set`.
    Advanced {
        /// The option.
        option: Advanced,
        /// A value in its range.
        value: u32,
    },
    /// `system module parameters set`: the depth of every device behind a driver.
    ModuleDepth {
        /// The driver.
        driver: &'static Driver,
        /// A value in the parameter's range.
        value: u32,
    },
    /// The PVSCSI driver inside a guest: registry value or module parameters [KB-PV].
    Pvscsi {
        /// The virtual machine.
        vm: Vm,
        /// Commands per disk, 1 to 254.
        depth: u32,
        /// Pages of the ring, 1 to 32.
        ring_pages: u32,
    },
    /// `storage nmp device set -P` and `psp roundrobin deviceconfig set`.
    PathPolicy {
        /// The device.
        device: Device,
        /// The policy.
        policy: PathPolicy,
    },
    /// A virtual disk's limit, reservation and shares.
    Allocation {
        /// The virtual disk.
        vdisk: Vdisk,
        /// The allocation.
        allocation: Allocation,
    },
}

/// What a virtual disk may have of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// [`Self::SHARES`]; 500, 1,000 and 2,000 are Low, Normal and High [LAMW].
    pub shares: u32,
    /// The most I/Os of `Disk.SchedCostUnit` bytes a second; `None` is unlimited [API].
    pub limit_iops: Option<u32>,
    /// The least of them a second; 0 reserves nothing.
    pub reservation_iops: u32,
}

impl Allocation {
    /// Shares go from 100 to 10,000 [LAMW].
    pub const SHARES: RangeInclusive<u32> = 100..=10_000;
}

impl Default for Allocation {
    fn default() -> Self {
        Self { shares: 1000, limit_iops: None, reservation_iops: 0 }
    }
}

/// How the next path is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPolicy {
    /// `VMW_PSP_FIXED`: the first path, and back to it when it is up again.
    Fixed,
    /// `VMW_PSP_MRU`: the path used last for as long as it is up.
    MostRecentlyUsed,
    /// `VMW_PSP_RR`: the next path after so many I/Os or so many bytes [ELA, BB].
    RoundRobin {
        /// I/Os, 1,000 by default.
        iops: u32,
        /// Bytes, 10,485,760 by default.
        bytes: u64,
    },
    /// `VMW_PSP_RR` with `policy=latency` [DOC67].
    Latency {
        /// I/Os that probe each path, 16 by default.
        sampling_ios: u32,
        /// Nanoseconds between evaluations, 180 s by default.
        eval_ns: u64,
    },
}

impl PathPolicy {
    /// Round robin as it starts: 1,000 I/Os or 10,485,760 bytes [ELA].
    pub const ROUND_ROBIN: Self = Self::RoundRobin { iops: 1000, bytes: 10_485_760 };
    /// The latency policy as it starts: 16 I/Os a path every 180 s [DOC67].
    pub const LATENCY: Self = Self::Latency { sampling_ios: 16, eval_ns: 180 * counters::SECOND };
}
