//! Guests, virtual adapters and the places of disks, by the names of the scenario file.

use counters::Controller;
use knobs::{GuestOs, limits_of};

use crate::names;

/// The guests by the names of the scenario file.
pub(crate) const GUESTS: [(&str, GuestOs); 3] =
    [("windows", GuestOs::Windows), ("linux", GuestOs::Linux), ("linux_old", GuestOs::LinuxOld)];

/// Virtual adapters by the names of the scenario file, with the bus that their disks are on.
pub(crate) const CONTROLLERS: [(&str, (Controller, &str)); 7] = [
    ("pvscsi", (Controller::Pvscsi, "scsi")),
    ("lsisas", (Controller::LsiSas, "scsi")),
    ("lsilogic", (Controller::LsiParallel, "scsi")),
    ("buslogic", (Controller::BusLogic, "scsi")),
    ("ahci", (Controller::Ahci, "sata")),
    ("nvme", (Controller::Nvme, "nvme")),
    ("ide", (Controller::Ide, "ide")),
];

/// The highest unit: the most disks on one adapter, and the adapter itself among them.
const UNIT_MAX: u32 = limits_of(Controller::Pvscsi, GuestOs::Linux).disks_max;

/// A disk's place in its VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The kind of bus and its first adapter.
    pub(crate) bus: &'static str,
    /// Which adapter of that kind.
    pub(crate) adapter: u32,
    /// Which disk of the adapter.
    pub(crate) unit: u32,
    /// The type of adapter that a bus of this kind has when the file does not say.
    pub(crate) default: Controller,
}

/// Reads `scsi0:1`.
pub(crate) fn slot(name: &str) -> Result<Slot, String> {
    let refuse = || {
        format!(
            "`{name}` is no place of a disk; it is scsi, sata, nvme or ide with adapter 0 to 3 \
             and unit, as \"scsi0:1\""
        )
    };
    let &(_, (default, bus)) =
        CONTROLLERS.iter().find(|(_, (_, bus))| name.starts_with(bus)).ok_or_else(refuse)?;
    let (adapter, unit) = name[bus.len()..].split_once(':').ok_or_else(refuse)?;
    let digits = |text: &str| text.parse::<u32>().ok().filter(|number| number.to_string() == text);
    let slot = Slot {
        bus,
        adapter: digits(adapter).filter(|adapter| *adapter < 4).ok_or_else(refuse)?,
        unit: digits(unit).filter(|unit| *unit <= UNIT_MAX).ok_or_else(refuse)?,
        default,
    };
    if slot.bus == "scsi" && slot.unit == 7 {
        return Err(format!("`{name}` is the adapter itself; a disk is not on unit 7"));
    }
    Ok(slot)
}

/// "one of …" for a refusal of an adapter that does not go with the slot.
pub(crate) fn controllers_on(bus: &str) -> String {
    names::list(CONTROLLERS.iter().filter(|(_, (_, on))| *on == bus).map(|(name, _)| *name))
}
