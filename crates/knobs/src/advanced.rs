//! The advanced options of a host: `esxcli system settings advanced set -o OPTION -i VALUE`.
//!
//! A table of facts from the reference (`esxi-host-stack.md` section 2.5 and
//! `array-and-control.md` section 7.4). An option is named here and nowhere else.

use core::ops::RangeInclusive;

use crate::{Effect, Version};

macro_rules! advanced {
    ($($(#[doc = $doc:literal])* $name:ident = $path:literal, $default:literal, $min:literal ..= $max:literal, $effect:ident $(.$more:ident($($argument:expr),*))*;)*) => {
        /// An advanced option.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Advanced {$($(#[doc = $doc])* $name,)*}

        impl Advanced {
            /// Every option, in the order of the table.
            pub const TABLE: &'static [AdvancedInfo] = &[$(AdvancedInfo {
                option: Self::$name,
                path: $path,
                default: $default,
                later: None,
                min: $min,
                max: $max,
                effect: Effect::$effect,
                since: Version::OLDEST,
                until: Version::NEWEST,
                acts_on: ActsOn::Devices,
                meaning: concat!($($doc),*).trim_ascii(),
            }$(.$more($($argument),*))*),*];
        }
    };
}

/// What an option acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActsOn {
    /// SCSI devices alone.
    Devices,
    /// NFS volumes alone.
    NfsVolumes,
    /// Whatever a datastore is on.
    Both,
}

/// What is known of an advanced option.
#[derive(Clone, Copy, Debug)]
pub struct AdvancedInfo {
    /// The option.
    pub option: Advanced,
    /// Its path, as `-o` takes it.
    pub path: &'static str,
    /// Its default, in the oldest version that has it.
    pub default: u32,
    /// The version that changed the default, and to what.
    pub later: Option<(Version, u32)>,
    /// The least value.
    pub min: u32,
    /// The greatest.
    pub max: u32,
    /// When a change takes effect.
    pub effect: Effect,
    /// The first version that has it.
    pub since: Version,
    /// The last version that has it.
    pub until: Version,
    /// What it acts on.
    pub acts_on: ActsOn,
    /// What it is, in one sentence.
    pub meaning: &'static str,
}

// All from [LAMW] (section 2.5 of the reference); SchedNumReqOutstanding from [VMB12, S1], mClock
// since 5.5 from memory, protocol endpoints since 6.0 with vVols [LAMW];
// HardwareAcceleratedLocking from `array-and-control.md` section 7.4; APD since 5.1 [DOC-APD]
// (section 12). IOPS limits of disks on NFS count by the options of the scheduler too, and APD is of any datastore. When
// NfsMaxQueueDepth acts no source says: at once, as the others (ruling). Of MaxHWTransferSize the default and
// the most are from [XCOPY], the least is the smallest that a script sets (ruling).
advanced! {
    /// DSNRO of every device; from ESXi 5.5 each device has its own.
    SchedNumReqOutstanding = "/Disk/SchedNumReqOutstanding", 32, 1..=256, AtOnce.until(Version::V5_1);
    /// Sequential commands that a world may issue in a row.
    SchedQuantum = "/Disk/SchedQuantum", 8, 1..=64, AtOnce;
    /// Sectors within which a command counts as sequential.
    SectorMaxDiff = "/Disk/SectorMaxDiff", 2000, 0..=2_000_000, AtOnce;
    /// Commands in a row from one VM that lift the limit again; 0 disables.
    SchedQControlSeqReqs = "/Disk/SchedQControlSeqReqs", 128, 0..=2048, AtOnce;
    /// Switches between VMs that bring DSNRO into force; 0 disables.
    SchedQControlVmSwitches = "/Disk/SchedQControlVMSwitches", 6, 0..=2048, AtOnce;
    /// 1 is mClock, 0 the scheduler before it.
    SchedulerWithReservation = "/Disk/SchedulerWithReservation", 1, 0..=1, AtOnce.since(Version::V5_5).on(ActsOn::Both);
    /// Bytes that count as one I/O for limits, reservations and shares.
    SchedCostUnit = "/Disk/SchedCostUnit", 32768, 4096..=262_144, AtOnce.on(ActsOn::Both);
    /// I/Os that a world may bank while it is idle, where bursts are allowed.
    IdleCredit = "/Disk/IdleCredit", 32, 1..=512, AtOnce.on(ActsOn::Both);
    /// 1 lets a world that was idle burst: it spends what it banked.
    SchedReservationBurst = "/Disk/SchedReservationBurst", 1, 0..=1, AtOnce.since(Version::V5_5).on(ActsOn::Both);
    /// The largest command that the VMkernel passes on, in KB.
    DiskMaxIoSize = "/Disk/DiskMaxIOSize", 32767, 32..=32767, AtOnce;
    /// The largest command on an iSCSI wire, in KB.
    IscsiMaxIoSizeKb = "/ISCSI/MaxIoSizeKB", 128, 128..=512, HostReboot;
    /// Results in a window of adaptive throttling; 0 is off.
    QFullSampleSize = "/Disk/QFullSampleSize", 0, 0..=64, AtOnce;
    /// Bad results in the window that halve the depth.
    QFullThreshold = "/Disk/QFullThreshold", 8, 1..=16, AtOnce;
    /// Milliseconds for which a BUSY command is held; 0 is as 1.
    DelayOnBusy = "/Disk/DelayOnBusy", 400, 0..=5000, AtOnce;
    /// DSNRO of protocol endpoints of vVols. The default grew with 7.0 U2, and 7.0 is its U3 here.
    VvolPesnro = "/Scsi/ScsiVVolPESNRO", 128, 32..=4096, AtOnce.since(Version::V6_0).later(Version::V7_0, 256);
    /// 1 locks metadata by ATS where the array has it, 0 by SCSI reservations of the whole device.
    HardwareAcceleratedLocking = "/VMFS3/HardwareAcceleratedLocking", 1, 0..=1, AtOnce;
    /// 1 lets the array copy disks by itself (XCOPY) where it can, 0 has the data mover read and write.
    HardwareAcceleratedMove = "/DataMover/HardwareAcceleratedMove", 1, 0..=1, AtOnce;
    /// The largest copy that the array is asked for in a command, in KB.
    MaxHwTransferSize = "/DataMover/MaxHWTransferSize", 4096, 256..=16384, AtOnce;
    /// 1 ends the host's own I/O to a device without a path after APDTimeout, 0 tries it for ever.
    ApdHandlingEnable = "/Misc/APDHandlingEnable", 1, 0..=1, AtOnce.on(ActsOn::Both);
    /// Seconds from the loss of a device's last path until the host fails its own I/O.
    ApdTimeout = "/Misc/APDTimeout", 140, 20..=99_999, AtOnce.on(ActsOn::Both);
    /// Commands outstanding on one NFS mount; the default is no limit.
    NfsMaxQueueDepth = "/NFS/MaxQueueDepth", 4_294_967_295, 1..=4_294_967_295, AtOnce.on(ActsOn::NfsVolumes);
}

impl AdvancedInfo {
    const fn since(mut self, version: Version) -> Self {
        self.since = version;
        self
    }

    const fn until(mut self, version: Version) -> Self {
        self.until = version;
        self
    }

    const fn later(mut self, version: Version, default: u32) -> Self {
        self.later = Some((version, default));
        self
    }

    const fn on(mut self, acts_on: ActsOn) -> Self {
        self.acts_on = acts_on;
        self
    }

    /// Whether no version is without it.
    #[must_use]
    pub fn is_in_every_version(&self) -> bool {
        self.since == Version::OLDEST && self.until == Version::NEWEST
    }

    /// What it can be set to.
    #[must_use]
    pub const fn range(&self) -> RangeInclusive<u32> {
        self.min..=self.max
    }
}

/// DSNRO, "No of outstanding IOs with competing worlds": one option up to 5.1, a setting of each
/// device since, with the same default and the same range [HP, VMB12]; from ESXi 6.5 on the depth
/// of the device is its bound [S1].
pub const DSNRO: &AdvancedInfo = Advanced::SchedNumReqOutstanding.info();

impl Advanced {
    /// What is known of this option.
    #[must_use]
    pub const fn info(self) -> &'static AdvancedInfo {
        &Self::TABLE[self as usize]
    }

    /// The option of that path; `None` when kavg does not have it.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        Self::TABLE.iter().find(|info| info.path == path).map(|info| info.option)
    }

    /// Whether a version has it.
    #[must_use]
    pub fn exists_in(self, version: Version) -> bool {
        (self.info().since..=self.info().until).contains(&version)
    }

    /// Its default in a version.
    #[must_use]
    pub fn default_in(self, version: Version) -> u32 {
        let info = self.info();
        info.later.filter(|(since, _)| version >= *since).map_or(info.default, |(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, info) in Advanced::TABLE.iter().enumerate() {
            assert_eq!(info.option as usize, index, "{}", info.path);
            assert!(info.since <= info.until, "{}", info.path);
            for version in Version::ALL {
                let default = info.option.default_in(version);
                assert!(info.range().contains(&default), "{} {}", info.path, version.name());
            }
        }
    }

    #[test]
    fn defaults_and_options_come_and_go_with_versions() {
        assert_eq!(Advanced::VvolPesnro.default_in(Version::V6_7), 128);
        assert_eq!(Advanced::VvolPesnro.default_in(Version::V8_0), 256);
        assert!(Advanced::SchedNumReqOutstanding.exists_in(Version::V5_1));
        assert!(!Advanced::SchedNumReqOutstanding.exists_in(Version::V5_5));
        assert!(!Advanced::VvolPesnro.exists_in(Version::V5_5));
    }
}
