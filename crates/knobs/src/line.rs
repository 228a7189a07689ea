//! Lines that set something, whatever their syntax: read into settings, and written from them by
//! the same definitions.

use alloc::{format, string::String, vec, vec::Vec};
use core::{fmt, str::FromStr};

use crate::{
    AllocationChange, Disks, GuestDriver, GuestName, GuestSystem, Manual, Refusal, Setting,
    command::{self, Call, SETTERS},
    disks, esxcli, guest, powercli, vcenter,
};

/// What a line sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The host, or the group of hosts, in front of a line of esxcli; `None` is every host that has
    /// what is set.
    pub host: Option<String>,
    /// The settings, in the order in which they are to be made.
    pub settings: Vec<Setting>,
}

/// The manual of lines: the form of each that sets something.
#[must_use]
pub fn manual() -> Vec<Manual> {
    [command::forms(), guest::forms(), disks::forms(), vcenter::forms()].concat()
}

/// Whether a line has no other form than esxcli's own.
pub(crate) fn is_esxcli(line: &str) -> bool {
    let is_powercli = powercli::is_call(line) || vcenter::is_cmdlets(line);
    let is_of_disks = line.contains(": ") || disks::mistyped(line).is_some();
    !is_powercli && !is_of_disks && GuestSystem::of_line(line).is_none()
}

impl FromStr for Line {
    type Err = Refusal;

    /// Reads a line as esxcli takes it (`storage core device set -d naa.1 -O 64`), with a host in
    /// front of it or not (`esx-1: storage core …`); as PowerCLI takes it, with a host in front of `$esxcli` or
    /// not; a line for the PVSCSI driver of a guest, with its VM in front or not; or the IOPS limit of a VM's disks
    /// (`sql01: DiskLimitIOPerSecond 500`, `sql01:scsi0:1: …` for one, -1 for none), their shares
    /// (`NumDiskShares`), reservation (`StorageIOAllocationReservation`) or storage policy
    /// (`StoragePolicy gold`); or what a policy says (`storage policy gold: DiskLimitIOPerSecond 500`).
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        let only = |setting| Self { host: None, settings: vec![setting] };
        let (name, command) = match text.split_once(": ") {
            Some((name, command)) => (Some(name.trim()), command),
            None => (None, text),
        };
        let host = name.filter(|name| !name.contains(char::is_whitespace)).map(String::from);
        if powercli::is_call(text) {
            return Ok(Self { host: None, settings: powercli::parse(text)?.settings()? });
        }
        if host.is_some() && powercli::is_call(command) {
            return Ok(Self { host, settings: powercli::parse(command)?.settings()? });
        }
        if let Some((disk, change)) = text.rsplit_once(": ")
            && let Some(allocation) = AllocationChange::read(change)
        {
            let (vdisk, allocation) = (Disks::from(disk), allocation?);
            return match (&vdisk, &allocation) {
                (Disks::With(_), AllocationChange::Policy(_)) => {
                    Err("disks have a storage policy; a policy has none".into())
                }
                _ => Ok(only(Setting::Allocation { vdisk, allocation })),
            };
        }
        if vcenter::is_cmdlets(text) {
            let (host, settings) = vcenter::parse(text)?;
            return Ok(Self { host, settings });
        }
        if let Some(system) = GuestSystem::of_line(command) {
            let GuestDriver { system, depth, ring_pages } = GuestDriver::parse(command, system)?;
            let vm = GuestName { vm: name.map(String::from), system: Some(system) };
            return Ok(only(Setting::Pvscsi { vm, depth, ring_pages }));
        }
        let call = esxcli::parse(if host.is_some() { command } else { text }, &SETTERS)
            .map_err(|refusal| disks::mistyped(text).unwrap_or(refusal))?;
        Ok(Self { host, settings: call.settings()? })
    }
}

impl Setting {
    /// The line for a host's shell; `None` when it is not esxcli that sets it.
    #[must_use]
    pub fn esxcli(&self) -> Option<String> {
        Call::of(self).map(|call| format!("esxcli {}", esxcli::print(&call)))
    }

    /// The line for PowerCLI; `None` when it is set inside the guest, or by the API alone.
    #[must_use]
    pub fn powercli(&self) -> Option<String> {
        match self {
            Self::Allocation { vdisk, allocation } => vcenter::print_allocation(vdisk, allocation),
            Self::StorageIoControl { device, control } => {
                Some(vcenter::print_sioc(device, *control))
            }
            _ => Call::of(self).map(|call| powercli::print(&call)),
        }
    }

    /// The lines to type in the guest, that for Windows first where its system is not known.
    #[must_use]
    pub fn guest(&self) -> Vec<String> {
        self.guest_drivers().into_iter().map(GuestDriver::line).collect()
    }

    fn guest_drivers(&self) -> Vec<GuestDriver> {
        let Self::Pvscsi { vm, depth, ring_pages } = self else { return Vec::new() };
        let (depth, ring_pages) = (*depth, *ring_pages);
        let driver = |system| GuestDriver { system, depth, ring_pages };
        match vm.system {
            Some(system) => vec![driver(system)],
            None => [GuestSystem::Windows, GuestSystem::Linux].map(driver).into(),
        }
    }
}

impl fmt::Display for Setting {
    /// The line that [`Line`] reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allocation { vdisk, allocation } => write!(f, "{vdisk}: {allocation}"),
            Self::Pvscsi { vm, .. } => {
                if let Some(vm) = &vm.vm {
                    write!(f, "{vm}: ")?;
                }
                let first = self.guest_drivers().into_iter().next();
                first.map_or(Ok(()), |driver| match driver.short() {
                    short if short.is_empty() => f.write_str(&driver.line()),
                    short => f.write_str(&short),
                })
            }
            Self::StorageIoControl { device, control } => {
                f.write_str(&vcenter::print_sioc(device, *control))
            }
            _ => Call::of(self).map_or(Ok(()), |call| f.write_str(&esxcli::print(&call))),
        }
    }
}
