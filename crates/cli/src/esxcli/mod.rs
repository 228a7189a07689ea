//! What esxcli prints, of a daemon at work: the keys, headings and order of real outputs [LIST8, LIST5,
//! KB-PATH, ELA, QD254]. `capture` reads such outputs; this is the other direction.
//!
//! What a host of kavg has nothing of (a serial number, a RAID level) is there as on a host that does
//! not know it, so that scripts find their lines.

mod blocks;
mod shown;
mod tables;

use control::{Device, HostState};
use knobs::{Query, unknown};

pub(crate) use self::{
    blocks::runtime_name,
    shown::{Formatter, Shown},
};
use crate::text::clean;

/// What a command shows of a host.
///
/// # Errors
/// One line: what the host does not have.
pub(crate) fn show(query: &Query, state: &HostState) -> Result<Shown, String> {
    let device = |name: &Option<String>| devices(state, name.as_deref());
    let shown = match query {
        Query::Devices { device: name } => blocks::devices(state, &device(name)?),
        Query::DeviceStats { device: name } => blocks::device_stats(state, &device(name)?),
        Query::Worlds { device: name } => tables::worlds(state, &device(name)?),
        Query::Adapters => tables::adapters(state),
        Query::AdapterStats { adapter } => blocks::adapter_stats(state, adapter.as_deref())?,
        Query::Paths { device: name, path } => {
            blocks::paths(state, &device(name)?, path.as_deref())?
        }
        Query::NmpDevices { device: name } => blocks::nmp_devices(state, &device(name)?),
        Query::RoundRobin { device: name } => {
            let only = devices(state, Some(name))?;
            blocks::round_robin(state, only[0])?
        }
        Query::Parameters { driver } => tables::parameters(state, driver)?,
        Query::Disks => blocks::disks(state),
        Query::Options { option, changed } => blocks::options(state, *option, *changed)?,
    };
    Ok(shown)
}

/// The device of that name, or all: those that are SCSI devices, by their places.
fn devices(state: &HostState, name: Option<&str>) -> Result<Vec<usize>, String> {
    let all = state.devices.iter().enumerate().filter(|(_, device)| !device.is_nfs);
    let is_it = |device: &Device| name.is_none_or(|name| device.name == name);
    let found: Vec<_> =
        all.clone().filter(|(_, device)| is_it(device)).map(|(place, _)| place).collect();
    match name {
        Some(name) if found.is_empty() => {
            Err(unknown("device", name, all.map(|(_, device)| device.name.as_str())))
        }
        _ => Ok(found),
    }
}

/// The name that people know a device by: that of its datastores.
fn display_name(device: &Device) -> String {
    clean(&format!("{} ({})", device.datastores.join(", "), device.name))
}
