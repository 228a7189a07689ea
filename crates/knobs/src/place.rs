//! Virtual disks by name, as a line says them: of a virtual machine, and where in it (`sql01:scsi0:1`).

use alloc::string::String;
use core::fmt;

/// Virtual disks of which a line sets something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disks {
    /// Those of that name.
    Of(DiskName),
    /// Those that have a storage policy or are given it later: what the policy says is set.
    With(String),
}

impl From<DiskName> for Disks {
    fn from(name: DiskName) -> Self {
        Self::Of(name)
    }
}

/// Virtual disks by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskName {
    /// The virtual machine.
    pub vm: String,
    /// The disk; `None` is all of the machine's.
    pub disk: Option<DiskPlace>,
}

/// In kavg's own rows: behind it stands the datastore that an event moved a disk to.
pub const MOVED_TO: char = '@';

/// The kinds of virtual adapters, as the names of disks begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusKind {
    /// PVSCSI, LSI Logic and BusLogic.
    Scsi,
    /// AHCI.
    Sata,
    /// IDE.
    Ide,
    /// NVMe.
    Nvme,
}

impl BusKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Scsi, Self::Sata, Self::Ide, Self::Nvme];

    /// How the name of a disk begins.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scsi => "scsi",
            Self::Sata => "sata",
            Self::Ide => "ide",
            Self::Nvme => "nvme",
        }
    }
}

/// Where a disk is in its virtual machine: `scsi0:1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskPlace {
    /// What the adapter is.
    pub kind: BusKind,
    /// The virtual adapter.
    pub bus: u32,
    /// The disk of the adapter.
    pub unit: u32,
}

impl From<&str> for DiskName {
    /// `sql01:scsi0:1` is one disk of `sql01`, wherever it was moved to, `sql01` all of them.
    fn from(text: &str) -> Self {
        let place = |text: &str| {
            let begins = |kind: BusKind| Some((kind, text.strip_prefix(kind.name())?));
            let (kind, rest) = BusKind::ALL.into_iter().find_map(begins)?;
            let (bus, unit) = rest.split_once(':')?;
            let unit = unit.split(MOVED_TO).next()?;
            Some(DiskPlace { kind, bus: bus.parse().ok()?, unit: unit.parse().ok()? })
        };
        let mut splits = text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
        match splits.find_map(|(vm, rest)| Some((vm, place(rest)?))) {
            Some((vm, disk)) => Self { vm: vm.into(), disk: Some(disk) },
            None => Self { vm: text.into(), disk: None },
        }
    }
}

impl fmt::Display for DiskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.vm)?;
        self.disk.map_or(Ok(()), |disk| write!(f, ":{disk}"))
    }
}

impl fmt::Display for DiskPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}:{}", self.kind.name(), self.bus, self.unit)
    }
}
