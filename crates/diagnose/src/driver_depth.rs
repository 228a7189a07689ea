//! The depth that the HBA's driver gives a device: one fact for whoever judges a queue, DSNRO, or
//! what a line may set. A device has as much unless somebody lowered its Device Max Queue Depth
//! (`-m`), which cannot be more than the driver's [QD254].

use knobs::{Driver, Seen};

use crate::{Adapter, Device, Facts, Host, largest};

/// The driver's own depth: as a source knows it, or the deepest that another device behind the same
/// adapters has, where that is no less than what this one was seen to have. Where the device's own
/// depth rose over a reboot, the driver's was another before.
pub(crate) fn of(host: &Host<'_>, device: &Device<'_>, facts: &Facts) -> Option<u32> {
    let is_peer =
        |other: &&Device<'_>| other.id != device.id && host.share_an_adapter(device, other);
    let depth = |other: &Device<'_>| {
        let known = facts.device(other.flow.name).max_queue_depth.map(f64::from);
        largest([known, other.deepest()].into_iter().flatten())
    };
    let peers = || {
        let deepest = largest(host.devices.iter().filter(is_peer).filter_map(depth));
        deepest.filter(|deepest| Some(*deepest) >= device.deepest())
    };
    let seen = || peers().filter(|_| !device.rises_over_a_reboot(host)).map(|depth| depth as u32);
    let known = facts.device(device.flow.name).driver_depth;
    known.or_else(|| fixed(host, device, facts)).or_else(seen)
}

/// The depth of a driver that has no parameter for one, where a device has no more than that: with less
/// it was lowered.
fn fixed(host: &Host<'_>, device: &Device<'_>, facts: &Facts) -> Option<u32> {
    let adapters = host.adapters_of(device);
    let mut modules = adapters.iter().filter_map(|adapter| facts.drivers.get(adapter.flow.name));
    let driver =
        Driver::from_module(modules.next()?).filter(|driver| driver.parameter.is_none())?;
    Some(driver.depth_default).filter(|depth| Some(f64::from(*depth)) >= device.deepest())
}

/// What its driver gives a device that was lowered, in words: another device may be held by DSNRO, and
/// so tell the least.
pub(crate) fn gives(own: u32, host: &Host<'_>, device: &Device<'_>, facts: &Facts) -> String {
    let known = facts.device(device.flow.name).driver_depth.or_else(|| fixed(host, device, facts));
    let is_known = known.is_some();
    format!("the HBA's driver gives {own}{}", if is_known { "" } else { " or more" })
}

/// The depth that a device has itself: as a source says it, or else the deepest that it was seen to have.
pub(crate) fn own(device: &Device<'_>, facts: &Facts) -> Option<u32> {
    let known = facts.device(device.flow.name);
    let known = known.max_queue_depth.or(known.max_queue_depth_at_end);
    known.or_else(|| device.deepest().map(|depth| depth as u32))
}

/// The depth of a device without competition, as far as is known: its own, or the driver's, unless it
/// was lowered.
pub(crate) fn without_competition(
    host: &Host<'_>,
    device: &Device<'_>,
    facts: &Facts,
) -> Option<u32> {
    let known = facts.device(device.flow.name);
    let is_known = known.max_queue_depth.or(known.max_queue_depth_at_end).is_some();
    let own = own(device, facts);
    if is_known { own } else { own.max(of(host, device, facts)) }
}

/// The adapters that lead to a device, and the drivers that they may have.
pub(crate) struct Hba<'a> {
    /// The names of the adapters.
    pub(crate) names: String,
    /// The module of their driver, where it is known.
    pub(crate) module: Option<&'a str>,
    pub(crate) candidates: Vec<&'static Driver>,
}

impl<'a> Hba<'a> {
    /// Those of a device to which its driver, or each of its paths, gives so many commands.
    pub(crate) fn of(host: &Host<'_>, device: &Device<'_>, depth: u32, facts: &'a Facts) -> Self {
        let adapters = host.adapters_of(device);
        let module = adapters.iter().find_map(|adapter| facts.drivers.get(adapter.flow.name));
        let module = module.map(String::as_str);
        let names: Vec<_> = adapters.iter().map(|adapter| adapter.flow.name).collect();
        Self {
            names: if names.is_empty() { "the HBA".into() } else { names.join(", ") },
            module,
            candidates: candidates(depth, module, &seen(&adapters, facts), facts),
        }
    }

    /// A driver that, by its parameter, gives a device more than this, with that depth: either the
    /// device was lowered, or the host was not rebooted since.
    pub(crate) fn staged(&self, depth: u32, facts: &Facts) -> Option<(&'static Driver, u32)> {
        let drivers = self.candidates.iter();
        let mut staged = drivers.filter_map(|driver| Some((*driver, facts.depth_staged(driver)?)));
        staged.find(|(_, staged)| *staged > depth)
    }

    /// Whether a device may have been lowered to this depth, as far as nothing tells its driver's: it
    /// is less than any of these gives that nobody set.
    pub(crate) fn may_have_more(&self, depth: u32, facts: &Facts) -> bool {
        let has_more = |driver: &&Driver| {
            depth < driver.depth_default && facts.depth_staged(driver) != Some(depth)
        };
        !self.candidates.is_empty() && self.candidates.iter().all(has_more)
    }
}

/// The drivers that a device of this depth may have and that can give it more: the one of that
/// module, one whose parameter is known to be set to it, or those that the depth and the adapter
/// suggest.
pub(crate) fn candidates(
    depth: u32,
    module: Option<&str>,
    seen: &Seen,
    facts: &Facts,
) -> Vec<&'static Driver> {
    let is_set = |driver: &&Driver| facts.depth_set(driver) == Some(depth) && seen.allows(driver);
    let known = |module| Driver::from_module(module).filter(|driver| driver.parameter.is_some());
    let mut drivers: Vec<&'static Driver> = match module {
        Some(module) => known(module).into_iter().collect(),
        None => Driver::ALL.iter().filter(is_set).collect(),
    };
    if module.is_none() && drivers.is_empty() {
        drivers = Driver::candidates(depth, seen);
    }
    drivers.retain(|driver| driver.depth_max > depth);
    drivers
}

/// What the capture shows of the adapters of a device.
fn seen(adapters: &[&Adapter<'_>], facts: &Facts) -> Seen {
    let number = |name: &str| name.strip_prefix("vmhba")?.parse().ok();
    Seen {
        version: facts.esxi_version,
        adapter_depth: adapters
            .iter()
            .find_map(|adapter| adapter.aqlen.every().last())
            .map(|n| n as u32),
        number: adapters.iter().find_map(|adapter| number(adapter.flow.name)),
    }
}
