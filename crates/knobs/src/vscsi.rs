//! The virtual storage adapters and what a guest's driver makes of them: a table of facts from
//! the reference (`esxi-host-stack.md` section 1.2).

use alloc::vec::Vec;

use counters::{Controller, SECOND};

/// The guest operating system, as far as its PVSCSI driver differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestOs {
    /// Windows: PVSCSI starts at 64 per disk [KB-PV].
    Windows,
    /// Linux before 2014: 64 [KB-PV].
    LinuxOld,
    /// Linux since 2014: 254 [PVL].
    Linux,
}

/// A guest's system, as far as lines for its driver differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestSystem {
    /// Values of the registry.
    Windows,
    /// Parameters of a module.
    Linux,
}

impl GuestSystem {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Windows => "Windows",
            Self::Linux => "Linux",
        }
    }
}

impl GuestOs {
    /// Its system.
    #[must_use]
    pub const fn system(self) -> GuestSystem {
        match self {
            Self::Windows => GuestSystem::Windows,
            Self::LinuxOld | Self::Linux => GuestSystem::Linux,
        }
    }

    /// How long it waits for a command before it gives it up, in nanoseconds: with VMware Tools 60 s
    /// in Windows and 180 s in Linux, without them 10 s and 30 s [KB-TO; reference
    /// `esxi-host-stack.md` section 12].
    #[must_use]
    pub const fn disk_timeout_ns(self, has_tools: bool) -> u64 {
        SECOND
            * match (self.system(), has_tools) {
                (GuestSystem::Windows, true) => 60,
                (GuestSystem::Windows, false) => 10,
                (GuestSystem::Linux, true) => 180,
                (GuestSystem::Linux, false) => 30,
            }
    }
}

/// Commands that fit on one page of the PVSCSI request ring: 4,096 / 128 bytes [PVL].
pub const PVSCSI_COMMANDS_PER_PAGE: u32 = 32;
/// Pages of the ring by default [PVL].
pub const PVSCSI_RING_PAGES_DEFAULT: u32 = 8;
/// The most pages that the ring can have [PVL, KB-PV].
pub const PVSCSI_RING_PAGES_MAX: u32 = 32;
/// The greatest depth per disk that the driver takes [KB-PV].
pub const PVSCSI_DEPTH_MAX: u32 = 254;
/// The largest command that PVSCSI passes: 512 KB; the guest splits what is larger [VMB14].
pub const PVSCSI_MAX_TRANSFER: u32 = 512 << 10;
/// The largest command of the other adapters: 32 MB [VMB14].
pub const OTHER_MAX_TRANSFER: u32 = 32 << 20;

/// The limits of a virtual adapter with a given guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VscsiLimits {
    /// Commands that one virtual disk may have outstanding.
    pub disk_depth: u32,
    /// Commands that the adapter may have outstanding.
    pub adapter_depth: u32,
    /// The largest command in bytes.
    pub max_transfer: u32,
    /// The most disks on one adapter.
    pub disks_max: u32,
}

/// The depths that drivers of guests give a disk on a virtual adapter, unless somebody sets another,
/// ascending; with PVSCSI that of Linux is the most that can be set too.
#[must_use]
pub fn disk_depths(controller: Controller) -> Vec<u32> {
    let guests = [GuestOs::Windows, GuestOs::LinuxOld, GuestOs::Linux];
    let mut depths: Vec<u32> =
        guests.iter().map(|guest| limits_of(controller, *guest).disk_depth).collect();
    depths.dedup();
    depths
}

/// The limits that a virtual adapter starts with.
#[must_use]
pub const fn limits_of(controller: Controller, guest: GuestOs) -> VscsiLimits {
    let (disk_depth, adapter_depth, disks_max) = match controller {
        Controller::Pvscsi => {
            let depth = match guest {
                GuestOs::Windows | GuestOs::LinuxOld => 64,
                GuestOs::Linux => PVSCSI_DEPTH_MAX,
            };
            (depth, PVSCSI_RING_PAGES_DEFAULT * PVSCSI_COMMANDS_PER_PAGE, 64)
        }
        // [TBL, S0]
        Controller::LsiSas | Controller::LsiParallel => (32, 128, 15),
        // Windows' own driver sends one command at a time; 30 tags otherwise.
        Controller::BusLogic => match guest {
            GuestOs::Windows => (1, 1, 15),
            GuestOs::LinuxOld | GuestOs::Linux => (30, 30, 15),
        },
        // 32 NCQ tags on each of 30 ports.
        Controller::Ahci => (32, 32 * 30, 30),
        Controller::Nvme => (256, 1024, 15),
        Controller::Ide => (1, 2, 2),
    };
    let max_transfer = match controller {
        Controller::Pvscsi => PVSCSI_MAX_TRANSFER,
        _ => OTHER_MAX_TRANSFER,
    };
    VscsiLimits { disk_depth, adapter_depth, max_transfer, disks_max }
}
