//! The knobs: what esxcli, the guest's drivers and a disk's policy set, with ranges and moments
//! of effect. How a command line becomes a knob is not known here.

use counters::{DeviceId, VdiskId, VmId};

use crate::Driver;

/// When a change of a setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// At once.
    AtOnce,
    /// When the guest has rebooted.
    GuestReboot,
    /// When the host has rebooted.
    HostReboot,
}

/// A change of one setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Knob {
    /// `storage core device set -O`: outstanding I/Os with competing worlds (DSNRO).
    SchedNumReqOutstanding {
        /// The device.
        device: DeviceId,
        /// 1 to 256; from ESXi 6.5 at most the device's depth [HP, S1].
        value: u32,
    },
    /// `storage core device set -m`: the device's depth, at most what the driver gives [QD254].
    MaxQueueDepth {
        /// The device.
        device: DeviceId,
        /// 1 to the driver's depth.
        value: u32,
    },
    /// `storage core device set -s -q`: adaptive throttling of one device [KB-QF].
    QueueFull {
        /// The device.
        device: DeviceId,
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
        vm: VmId,
        /// Commands per disk, 1 to 254.
        depth: u32,
        /// Pages of the ring, 1 to 32.
        ring_pages: u32,
    },
    /// `storage nmp device set -P` and `psp roundrobin deviceconfig set`.
    PathPolicy {
        /// The device.
        device: DeviceId,
        /// The policy.
        policy: PathPolicy,
    },
    /// A virtual disk's limit, reservation and shares.
    Allocation {
        /// The virtual disk.
        vdisk: VdiskId,
        /// The allocation.
        allocation: Allocation,
    },
}

/// What a virtual disk may have of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// 100 to 10,000; 500, 1,000 and 2,000 are Low, Normal and High [LAMW].
    pub shares: u32,
    /// The most I/Os of `Disk.SchedCostUnit` bytes a second; `None` is unlimited [API].
    pub limit_iops: Option<u32>,
    /// The least of them a second; 0 reserves nothing.
    pub reservation_iops: u32,
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

macro_rules! advanced {
    ($($(#[doc = $doc:literal])* $name:ident = $path:literal, $default:literal, $min:literal ..= $max:literal, $effect:ident;)*) => {
        /// An advanced option.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Advanced {$($(#[doc = $doc])* $name,)*}

        impl Advanced {
            /// Every option, in the order of the table.
            pub const TABLE: &'static [AdvancedInfo] = &[$(AdvancedInfo {
                option: Self::$name,
                path: $path,
                default: $default,
                min: $min,
                max: $max,
                effect: Effect::$effect,
                meaning: concat!($($doc),*).trim_ascii(),
            }),*];
        }
    };
}

/// What is known of an advanced option.
#[derive(Clone, Copy, Debug)]
pub struct AdvancedInfo {
    /// The option.
    pub option: Advanced,
    /// Its path, as `-o` takes it.
    pub path: &'static str,
    /// Its default.
    pub default: u32,
    /// The least value.
    pub min: u32,
    /// The greatest.
    pub max: u32,
    /// When a change takes effect.
    pub effect: Effect,
    /// What it is, in one sentence.
    pub meaning: &'static str,
}

// All from [LAMW] (section 2.5 of the reference); SchedNumReqOutstanding from [VMB12].
advanced! {
    /// DSNRO of every device; only up to ESXi 5.1.
    SchedNumReqOutstanding = "/Disk/SchedNumReqOutstanding", 32, 1..=256, AtOnce;
    /// Sequential commands that a world may issue in a row.
    SchedQuantum = "/Disk/SchedQuantum", 8, 1..=64, AtOnce;
    /// Sectors within which a command counts as sequential.
    SectorMaxDiff = "/Disk/SectorMaxDiff", 2000, 0..=2_000_000, AtOnce;
    /// Commands in a row from one VM that lift the limit again; 0 disables.
    SchedQControlSeqReqs = "/Disk/SchedQControlSeqReqs", 128, 0..=2048, AtOnce;
    /// Switches between VMs that bring DSNRO into force; 0 disables.
    SchedQControlVmSwitches = "/Disk/SchedQControlVMSwitches", 6, 0..=2048, AtOnce;
    /// 1 is mClock, 0 the scheduler before it.
    SchedulerWithReservation = "/Disk/SchedulerWithReservation", 1, 0..=1, AtOnce;
    /// Bytes that count as one I/O for limits, reservations and shares.
    SchedCostUnit = "/Disk/SchedCostUnit", 32768, 4096..=262_144, AtOnce;
    /// The largest command that the VMkernel passes on, in KB.
    DiskMaxIoSize = "/Disk/DiskMaxIOSize", 32767, 32..=32767, AtOnce;
    /// The largest command on an iSCSI wire, in KB.
    IscsiMaxIoSizeKb = "/ISCSI/MaxIoSizeKB", 128, 128..=512, HostReboot;
    /// Results in a window of adaptive throttling; 0 is off.
    QFullSampleSize = "/Disk/QFullSampleSize", 0, 0..=64, AtOnce;
    /// Bad results in the window that halve the depth.
    QFullThreshold = "/Disk/QFullThreshold", 8, 1..=16, AtOnce;
    /// Milliseconds for which a BUSY command is held.
    DelayOnBusy = "/Disk/DelayOnBusy", 400, 0..=5000, AtOnce;
    /// DSNRO of protocol endpoints; 256 from 7.0 U2.
    VvolPesnro = "/Scsi/ScsiVVolPESNRO", 128, 32..=4096, AtOnce;
}

impl Advanced {
    /// What is known of this option.
    #[must_use]
    pub fn info(self) -> &'static AdvancedInfo {
        &Self::TABLE[self as usize]
    }

    /// The option of that path; `None` when kavg does not have it.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        Self::TABLE.iter().find(|info| info.path == path).map(|info| info.option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, info) in Advanced::TABLE.iter().enumerate() {
            assert_eq!(info.option as usize, index, "{}", info.path);
            assert!(info.min <= info.default && info.default <= info.max, "{}", info.path);
        }
    }
}
