//! The kinds of objects that have counters.

/// The kinds of objects that esxtop has disk counters for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A host adapter (`vmhba1`).
    Adapter,
    /// A path (`vmhba1:C0:T2:L0`).
    Path,
    /// A SCSI device (`naa.…`).
    Device,
    /// A world on a device (`naa.…-480214`).
    World,
    /// A partition of a device (`naa.…-1`).
    Partition,
    /// An NFS volume, by the name of its datastore.
    NfsVolume,
    /// A virtual machine: the sum of its virtual disks.
    Vm,
    /// A virtual disk (`sql01:scsi0:1`).
    VirtualDisk,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Adapter,
        Self::Path,
        Self::Device,
        Self::World,
        Self::Partition,
        Self::NfsVolume,
        Self::Vm,
        Self::VirtualDisk,
    ];

    /// What an object of this kind is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adapter => "adapter",
            Self::Path => "path",
            Self::Device => "device",
            Self::World => "world",
            Self::Partition => "partition",
            Self::NfsVolume => "nfs volume",
            Self::Vm => "vm",
            Self::VirtualDisk => "virtual disk",
        }
    }
}
