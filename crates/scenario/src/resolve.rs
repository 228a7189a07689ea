//! A line that sets something, and the hosts that have what it names: settings by name become the
//! knobs of hosts. One resolution serves the events of a file, `--set` and a running host.

use counters::{Controller, DeviceId, DeviceKind, VdiskId, VmId};
use engine::HostConfig;
use knobs::{
    Allocation, DiskName, GuestDriver, GuestName, GuestOs, Knob, Line, PVSCSI_RING_PAGES_DEFAULT,
    PolicyChange, Setting, limits_of,
};

use crate::{Host, datastore::is_network, names};

/// What a line sets, and on which host.
pub(crate) type Settings = Vec<(usize, Knob)>;

/// What a line sets: on the host of its prefix (`esx-1: storage core …`), or on every one of
/// `hosts` that has the device, driver or guest. What a host refuses in any state is refused.
pub(crate) fn settings(line: &str, hosts: &[(usize, &Host)]) -> Result<Settings, String> {
    let Line { host, settings } = line.parse()?;
    on_hosts(host.as_deref(), &settings, hosts)
}

/// The same for settings that are no text any more.
pub(crate) fn on_hosts(
    prefix: Option<&str>,
    settings: &[Setting],
    hosts: &[(usize, &Host)],
) -> Result<Settings, String> {
    let is_meant =
        |host: &Host| prefix.is_none_or(|name| names::is_member(&host.config.name, name));
    let meant: Vec<_> = hosts.iter().filter(|(_, host)| is_meant(host)).copied().collect();
    if let (Some(name), true) = (prefix, meant.is_empty()) {
        let known = hosts.iter().map(|(_, host)| host.config.name.as_str());
        return Err(names::unknown("host", name, known));
    }
    let mut resolved = Settings::new();
    for setting in settings {
        let before = resolved.len();
        for (index, host) in &meant {
            for knob in of_host(setting, host)? {
                knob.check(host.config.version)?;
                resolved.push((*index, knob));
            }
        }
        if resolved.len() == before {
            return Err(nowhere(setting, hosts));
        }
    }
    Ok(resolved)
}

/// What a setting is on a host; nothing when the host lacks what it names.
fn of_host(setting: &Setting, host: &Host) -> Result<Vec<Knob>, String> {
    let config = &host.config;
    let one = |name: &str, knob: &dyn Fn(DeviceId) -> Knob| {
        device(name, config).map(|device| device.map(knob).into_iter().collect())
    };
    match *setting {
        Setting::SchedNumReqOutstanding { device: ref name, value } => {
            one(name, &|device| Knob::SchedNumReqOutstanding { device, value })
        }
        Setting::MaxQueueDepth { device: ref name, value } => {
            one(name, &|device| Knob::MaxQueueDepth { device, value })
        }
        Setting::QueueFull { device: ref name, sample_size, threshold } => {
            one(name, &|device| Knob::QueueFull { device, sample_size, threshold })
        }
        Setting::PathPolicy { device: ref name, policy } => {
            one(name, &|device| Knob::PathPolicy { device, policy: PolicyChange::policy(policy) })
        }
        Setting::Advanced { option, value } => {
            let value = value.unwrap_or_else(|| option.default_in(config.version));
            Ok(vec![Knob::Advanced { option, value }])
        }
        Setting::ModuleDepth { driver, value } => {
            let loaded = config.adapters.iter().any(|adapter| adapter.driver == driver);
            Ok(loaded.then_some(Knob::ModuleDepth { driver, value }).into_iter().collect())
        }
        Setting::Pvscsi { ref vm, depth, ring_pages } => guests(vm, host, (depth, ring_pages)),
        Setting::Allocation { ref vdisk, allocation } => Ok(disks(vdisk, config)
            .map(|(vdisk, was)| {
                let allocation = Allocation { limit_iops: allocation, ..was };
                Knob::Allocation { vdisk, allocation }
            })
            .collect()),
    }
}

/// The device of that name on a host, when the host has it.
fn device(name: &str, host: &HostConfig) -> Result<Option<DeviceId>, String> {
    let Some(index) = host.devices.iter().position(|device| device.name == name) else {
        return Ok(None);
    };
    if host.devices[index].kind == DeviceKind::Nfs {
        return Err(format!("`{name}` is an NFS datastore: it has no SCSI device"));
    }
    Ok(Some(DeviceId::new(index)))
}

/// The guests that are meant; what a line leaves out is the default of the guest's driver.
fn guests(
    name: &GuestName,
    host: &Host,
    (depth, ring_pages): (Option<u32>, Option<u32>),
) -> Result<Vec<Knob>, String> {
    let mut knobs = Vec::new();
    for (vm, (config, &guest)) in host.config.vms.iter().zip(&host.guests).enumerate() {
        let is_it = name.vm.as_ref().is_none_or(|name| names::is_member(&config.name, name));
        let suits = name.system.is_none_or(|system| system == guest.system());
        match (is_it && !config.system, suits) {
            (true, true) => {
                let (depth, ring_pages) = pvscsi(guest, depth, ring_pages);
                knobs.push(Knob::Pvscsi { vm: VmId::new(vm), depth, ring_pages });
            }
            (true, false) if name.vm.is_some() => {
                let setting = Setting::Pvscsi { vm: name.clone(), depth, ring_pages };
                return Err(format!(
                    "`{setting}` is no setting of PVSCSI in a {} guest",
                    guest.system().name()
                ));
            }
            _ => {}
        }
    }
    Ok(knobs)
}

/// The depth and the pages of a guest's driver; what is left out is the default.
fn pvscsi(guest: GuestOs, depth: Option<u32>, ring_pages: Option<u32>) -> (u32, u32) {
    let default = || limits_of(Controller::Pvscsi, guest).disk_depth;
    (depth.unwrap_or_else(default), ring_pages.unwrap_or(PVSCSI_RING_PAGES_DEFAULT))
}

/// The depth and the pages that a line of the file sets in a guest.
pub(crate) fn guest_driver(line: &str, guest: GuestOs) -> Result<(u32, u32), String> {
    let GuestDriver { depth, ring_pages, .. } = GuestDriver::parse(line, guest.system())?;
    Ok(pvscsi(guest, depth, ring_pages))
}

/// The virtual disks of that name with what they are allowed.
fn disks<'a>(
    name: &'a DiskName,
    host: &'a HostConfig,
) -> impl Iterator<Item = (VdiskId, Allocation)> + 'a {
    let of_vm = |vm: VmId| names::is_member(&host.vms[vm.index()].name, &name.vm);
    let is_it = move |disk: &str| name.disk.is_none_or(|place| place.to_string() == disk);
    let all = host.vdisks.iter().enumerate();
    all.filter(move |(_, vdisk)| of_vm(vdisk.vm) && is_it(&vdisk.name))
        .map(|(index, vdisk)| (VdiskId::new(index), vdisk.allocation))
}

/// Why a setting set nothing: no host has what it names.
fn nowhere(setting: &Setting, hosts: &[(usize, &Host)]) -> String {
    let configs = || hosts.iter().map(|(_, host)| &host.config);
    let vms = || configs().flat_map(|host| &host.vms).filter(|vm| !vm.system);
    let vms = || vms().map(|vm| vm.name.as_str());
    match setting {
        Setting::ModuleDepth { driver, .. } => {
            let loaded = configs().flat_map(|host| &host.adapters).filter(|a| !is_network(a));
            names::unknown("loaded module", driver.module, loaded.map(|a| a.driver.module))
        }
        Setting::Pvscsi { vm: GuestName { vm: Some(name), .. }, .. } => {
            names::unknown("VM", name, vms())
        }
        Setting::Pvscsi { vm: GuestName { system, .. }, .. } => {
            format!("there is no {} guest", system.map_or("", |system| system.name()))
        }
        Setting::Allocation { vdisk, .. } if vms().any(|vm| names::is_member(vm, &vdisk.vm)) => {
            format!("there is no disk `{vdisk}`")
        }
        Setting::Allocation { vdisk, .. } => names::unknown("VM", &vdisk.vm, vms()),
        Setting::SchedNumReqOutstanding { device, .. }
        | Setting::MaxQueueDepth { device, .. }
        | Setting::QueueFull { device, .. }
        | Setting::PathPolicy { device, .. } => {
            let scsi = |device: &&engine::DeviceConfig| device.kind != DeviceKind::Nfs;
            let devices = configs().flat_map(|host| &host.devices).filter(scsi);
            names::unknown("device", device, devices.map(|device| device.name.as_str()))
        }
        Setting::Advanced { option, .. } => format!("no host has {}", option.info().path),
    }
}
