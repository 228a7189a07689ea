//! The PVSCSI driver's settings as a guest has them: Windows' registry value, Linux' module
//! parameters [KB-PV].

use std::ops::RangeInclusive;

use counters::Controller;
use engine::{
    GuestOs, PVSCSI_COMMANDS_PER_PAGE, PVSCSI_DEPTH_MAX, PVSCSI_RING_PAGES_DEFAULT,
    PVSCSI_RING_PAGES_MAX, limits_of,
};

use crate::names;

/// The driver's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pvscsi {
    /// Commands per virtual disk.
    pub(crate) depth: u32,
    /// Pages of the request ring.
    pub(crate) ring_pages: u32,
}

impl Pvscsi {
    /// What a guest starts with.
    fn default_of(guest: GuestOs) -> Self {
        let depth = limits_of(Controller::Pvscsi, guest).disk_depth;
        Self { depth, ring_pages: PVSCSI_RING_PAGES_DEFAULT }
    }

    /// Commands that the ring holds.
    pub(crate) fn ring(self) -> u32 {
        self.ring_pages * PVSCSI_COMMANDS_PER_PAGE
    }
}

const WINDOWS: [&str; 2] = ["MaxQueueDepth", "RequestRingPages"];
const LINUX: [&str; 2] = ["cmd_per_lun", "ring_pages"];

/// The system whose PVSCSI driver a line is for; `None` when it is a line for esxcli.
pub(crate) fn system_of_line(line: &str) -> Option<&'static str> {
    let line = line.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    if has(&["driverparameter", "requestringpages", "maxqueuedepth"]) {
        return Some(system_of(GuestOs::Windows));
    }
    has(&["vmw_pvscsi", "cmd_per_lun"]).then_some(system_of(GuestOs::Linux))
}

/// The system of a guest, as it is spoken of.
pub(crate) fn system_of(guest: GuestOs) -> &'static str {
    match guest {
        GuestOs::Windows => "Windows",
        GuestOs::LinuxOld | GuestOs::Linux => "Linux",
    }
}

/// Reads `RequestRingPages=32,MaxQueueDepth=254` (alone, after the name of the registry value,
/// `DriverParameter`, or in the `reg add` that sets it), or `vmw_pvscsi.cmd_per_lun=254 vmw_pvscsi.ring_pages=32` (also in the form
/// of a modprobe line). What it leaves out returns to the driver's default.
pub(crate) fn parse(line: &str, guest: GuestOs) -> Result<Pvscsi, String> {
    let names = if guest == GuestOs::Windows { WINDOWS } else { LINUX };
    let mut pvscsi = Pvscsi::default_of(guest);
    let mut seen = Vec::new();
    for word in words(line) {
        let (name, value) = word.split_once('=').ok_or_else(|| usage(word, guest))?;
        let name = name.trim_start_matches("vmw_pvscsi.");
        let Some(which) = names.iter().position(|known| known.eq_ignore_ascii_case(name)) else {
            return Err(usage(name, guest));
        };
        if seen.contains(&which) {
            return Err(format!("`{name}` is set twice"));
        }
        seen.push(which);
        match which {
            0 => pvscsi.depth = number(name, value, 1..=PVSCSI_DEPTH_MAX)?,
            _ => pvscsi.ring_pages = number(name, value, 1..=PVSCSI_RING_PAGES_MAX)?,
        }
    }
    if seen.is_empty() { Err(usage(line, guest)) } else { Ok(pvscsi) }
}

/// The settings of a line without what stands around them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim();
    let line = match line.strip_prefix("reg add ") {
        Some(rest) => rest.split_once(" /d ").map_or(rest, |(_, data)| data),
        None => line.strip_prefix("options vmw_pvscsi").unwrap_or(line),
    };
    let line = match line.strip_prefix("DriverParameter") {
        Some(rest) => rest.trim_start().trim_start_matches('='),
        None => line,
    };
    let separator = |c: char| c == ',' || c == '"' || c.is_whitespace();
    line.split(separator).filter(|word| !word.is_empty() && *word != "/f")
}

fn usage(word: &str, guest: GuestOs) -> String {
    let system = system_of(guest);
    let example = match guest {
        GuestOs::Windows => "RequestRingPages=32,MaxQueueDepth=254",
        GuestOs::LinuxOld | GuestOs::Linux => "vmw_pvscsi.cmd_per_lun=254 vmw_pvscsi.ring_pages=32",
    };
    format!("`{word}` is no setting of PVSCSI in a {system} guest; it is as `{example}`")
}

fn number(name: &str, value: &str, range: RangeInclusive<u32>) -> Result<u32, String> {
    value.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
        format!("{name} `{value}` is out of range; it is {} to {}", range.start(), range.end())
    })
}

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
        unit: digits(unit).filter(|unit| *unit <= 64).ok_or_else(refuse)?,
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
