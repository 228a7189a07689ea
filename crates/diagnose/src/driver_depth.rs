//! The depth that the HBA's driver gives a device: one fact for whoever judges a queue, DSNRO, or
//! what a line may set. A device has as much unless somebody lowered its Device Max Queue Depth
//! (`-m`), which cannot be more than the driver's [QD254].

use knobs::{Driver, Seen};

use crate::{Adapter, Device, Facts, Host, largest};

/// The driver's own depth: as a source knows it, or the deepest that another device behind the same
/// adapters and no others has, where that is no less than what this one was seen to have: another adapter may
/// have another driver, which gave it that. Where the device's own depth rose over a reboot, the driver's was
/// another before.
pub(crate) fn of(host: &Host<'_>, device: &Device<'_>, facts: &Facts) -> Option<u32> {
    let adapters = host.adapters_of(device);
    let module = |adapter: &Adapter<'_>| facts.drivers.get(adapter.flow.name);
    let is_alike = |adapter: &&Adapter<'_>| {
        let is_one = |own: &&Adapter<'_>| {
            own.id == adapter.id || module(own).is_some() && module(own) == module(adapter)
        };
        adapters.iter().any(is_one)
    };
    let is_peer = |other: &&Device<'_>| {
        other.id != device.id
            && host.share_an_adapter(device, other)
            && host.adapters_of(other).iter().all(is_alike)
    };
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

/// What a driver's parameter is, where it gives a device `from`: as a source has it. `None` where a run gives its
/// adapters depths of their own, which no line sets.
pub(crate) fn as_set(driver: &Driver, from: u32, facts: &Facts) -> Option<u32> {
    let mut given = facts.depths_given(driver).map(|(_, depth)| depth);
    let Some(first) = given.next() else { return Some(facts.depth_set(driver).unwrap_or(from)) };
    given.all(|depth| depth == first).then_some(first)
}

/// What is said instead of a line that undoes then.
pub(crate) fn has_no_undo(driver: &Driver, facts: &Facts) -> String {
    let given = facts.depths_given(driver).map(|(name, depth)| format!("{name} {depth}"));
    format!(
        "Set what was, and reboot the host. Adapters of {} have depths of their own ({}), which no line gives: its \
         parameter is one for all",
        driver.module,
        Vec::from_iter(given).join(", ")
    )
}

/// A depth for a driver that is raised to `to`: no adapter of it gets less than it has, for the parameter is one for
/// all.
pub(crate) fn at_least(drivers: &[&'static Driver], to: u32, facts: &Facts) -> u32 {
    drivers.iter().flat_map(|driver| facts.depths_given(driver)).map(|own| own.1).fold(to, u32::max)
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

#[cfg(test)]
mod tests {
    use counters::{Counter, Entity, EntityId, Kind, Recording};
    use levels::Measured;

    use crate::{Cause, Facts, Finding, Thresholds, diagnose};

    /// A device of 28 slots behind an adapter, full, and one of 64 behind that and another, or behind it alone.
    fn beside_a_deeper(adapters: &[&str], drivers: &[(&str, &str)]) -> Finding {
        const SAMPLES: usize = 9;
        let mut recording = Recording::new("esx1".into());
        recording.times_ms = (0..SAMPLES as i64).map(|sample| 5_000 * sample).collect();
        let set = |recording: &mut Recording, row: EntityId, values: &[(Counter, f64)]| {
            for (counter, value) in values {
                recording.set_constant(row, *counter, *value, SAMPLES);
            }
        };
        let io = |rate: f64, kavg_ms: f64| {
            [
                (Counter::Commands, rate),
                (Counter::DriverLatency, 3.0),
                (Counter::KernelLatency, kavg_ms),
                (Counter::GuestLatency, 3.0 + kavg_ms),
            ]
        };
        let mut adapter =
            |name| (name, recording.add_entity(Entity::new(Kind::Adapter, String::from(name))));
        let behind = ["vmhba1", "vmhba2"].map(&mut adapter);
        for (name, depth, kavg_ms, leads) in
            [("naa.1", 28.0, 3.8, &["vmhba2"][..]), ("naa.2", 64.0, 0.0, adapters)]
        {
            let device = recording.add_entity(Entity::new(Kind::Device, name.into()));
            let rate = if kavg_ms > 0.0 { 9_330.0 } else { 900.0 };
            set(&mut recording, device, &io(rate, kavg_ms));
            let queued = if kavg_ms > 0.0 { 36.0 } else { 0.0 };
            let queue = [
                (Counter::QueueLatency, kavg_ms),
                (Counter::DeviceQDepth, depth),
                (Counter::ActiveCommands, (0.003 * rate).round()),
                (Counter::QueuedCommands, queued),
            ];
            set(&mut recording, device, &queue);
            let vm = recording.add_entity(Entity::new(Kind::Vm, format!("vm-{name}")));
            let world = Entity {
                vm: Some(vm),
                device: Some(device),
                ..Entity::new(Kind::World, "w".into())
            };
            let world = recording.add_entity(world);
            set(&mut recording, world, &io(rate, kavg_ms));
            for (adapter, id) in behind.iter().filter(|(adapter, _)| leads.contains(adapter)) {
                let path = Entity {
                    device: Some(device),
                    adapter: Some(*id),
                    ..Entity::new(Kind::Path, format!("{adapter}:C0:T0:{name}"))
                };
                let path = recording.add_entity(path);
                set(&mut recording, path, &io(rate / leads.len() as f64, 0.0));
            }
        }
        let mut facts = Facts::default();
        for (adapter, driver) in drivers {
            facts.drivers.insert((*adapter).into(), (*driver).into());
        }
        let verdict = diagnose(&Measured::of(recording), &Thresholds::default(), &facts);
        let found = verdict.findings.into_iter().find(|found| found.cause == Cause::DeviceDepth);
        found.unwrap_or_else(|| panic!("{}", verdict.headline))
    }

    #[test]
    fn a_depth_that_another_adapters_driver_may_give_lowers_nobody() {
        let both = &["vmhba1", "vmhba2"][..];
        let lowered = |finding: &Finding| finding.sentence.contains("which was lowered");
        let unknown = beside_a_deeper(both, &[]);
        assert!(!lowered(&unknown), "{}", unknown.sentence);
        let told = "A depth of 28 is that of nhpsa (HP Smart Array), and none that can be set";
        assert!(unknown.changes[0].what.starts_with(told), "{}", unknown.changes[0].what);
        assert!(lowered(&beside_a_deeper(&["vmhba2"], &[])));
        assert!(lowered(&beside_a_deeper(both, &[("vmhba1", "lpfc"), ("vmhba2", "lpfc")])));
        assert!(!lowered(&beside_a_deeper(both, &[("vmhba1", "lpfc"), ("vmhba2", "hpsa")])));
    }
}
