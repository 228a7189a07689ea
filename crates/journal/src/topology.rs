//! Whether a host that was read can be built: [`Engine::new`](engine::Engine::new) takes it that
//! whoever made the configuration has looked. Checksums tell damage, not what somebody made up.

use counters::DeviceId;
use engine::{HostConfig, codec::Damage};
use knobs::{Knob, PVSCSI_MAX_TRANSFER};

/// Ids have 16 bits.
const OBJECTS_MAX: usize = 1 << 16;

pub(crate) fn check(config: &HostConfig) -> Result<(), Damage> {
    let HostConfig { adapters, devices, paths, vms, vscsi, vdisks, .. } = config;
    let numbers =
        [adapters.len(), devices.len(), paths.len(), vms.len(), vscsi.len(), vdisks.len()];
    require(numbers.into_iter().all(|number| number <= OBJECTS_MAX), "more than has an id")?;
    let linked = paths
        .iter()
        .all(|path| path.device.index() < devices.len() && path.adapter.index() < adapters.len())
        && vscsi.iter().all(|vscsi| vscsi.vm.index() < vms.len())
        && vdisks.iter().all(|disk| {
            disk.vm.index() < vms.len()
                && disk.vscsi.index() < vscsi.len()
                && disk.device.index() < devices.len()
        });
    require(linked, "an id that names nothing")?;
    let mut reached = vec![false; devices.len()];
    paths.iter().for_each(|path| reached[path.device.index()] = true);
    require(!reached.contains(&false), "a device without a path")?;
    let limited = adapters
        .iter()
        .all(|adapter| adapter.lun_depth > 0 && adapter.depth > 0 && adapter.timeout_ns != Some(0))
        && vscsi.iter().all(|vscsi| vscsi.depth > 0)
        && vdisks.iter().all(|disk| disk.depth > 0)
        && vms.iter().all(|vm| vm.timeout_ns != Some(0));
    require(limited, "a limit that nothing has")?;
    vscsi.iter().try_for_each(|vscsi| check_transfer(vscsi.max_transfer))?;
    let set = settings(config).all(|knob| knob.check(config.version).is_ok());
    require(set, "a setting out of its range")
}

/// Whether some virtual adapter has it as its largest command.
pub(crate) fn check_transfer(max_transfer: u32) -> Result<(), Damage> {
    require(max_transfer >= PVSCSI_MAX_TRANSFER, "a limit that nothing has")
}

/// What the host was built with and could be set on it.
fn settings(config: &HostConfig) -> impl Iterator<Item = Knob> {
    let devices = config.devices.iter().enumerate();
    let policies = devices.map(|(device, of)| Knob::PathPolicy {
        device: DeviceId::new(device),
        policy: of.path_policy,
    });
    let vdisks = config.vdisks.iter().enumerate();
    let allocations = vdisks.map(|(vdisk, of)| Knob::Allocation {
        vdisk: counters::VdiskId::new(vdisk),
        allocation: of.allocation,
    });
    policies.chain(allocations)
}

fn require(holds: bool, what: &'static str) -> Result<(), Damage> {
    if holds { Ok(()) } else { Err(Damage(what)) }
}
