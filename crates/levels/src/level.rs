//! The levels of the stack, by which everybody names and finds them.

use serde::Serialize;

/// The levels, in the order in which an I/O meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelKind {
    /// Inside the guest, in front of the virtual disk.
    Guest,
    /// The virtual disk: what it lets out of the guest.
    VirtualDisk,
    /// The ring of a virtual adapter that several disks share.
    VirtualAdapter,
    /// The world of a VM on the device; what KAVG has beyond QAVG passes here [CAP-A].
    World,
    /// The device queue.
    Device,
    /// Held by the VMkernel elsewhere: BUSY, a conflict, a retry.
    Held,
    /// The paths of a device.
    Path,
    /// The host adapters.
    Adapter,
    /// The wire to the array.
    Fabric,
    /// The array, or all that is below the host where nobody can tell them apart.
    Array,
}

impl LevelKind {
    /// Its name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::VirtualDisk => "virtual disk",
            Self::VirtualAdapter => "vSCSI adapter",
            Self::World => "world",
            Self::Device => "device queue",
            Self::Held => "held and retried",
            Self::Path => "paths",
            Self::Adapter => "host adapter",
            Self::Fabric => "fabric",
            Self::Array => "array",
        }
    }
}
