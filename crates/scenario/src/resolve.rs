//! A line that sets something, and the hosts that have what it names: settings by name become the
//! knobs of hosts. One resolution serves the events of a file, `--set` and a running host.

use counters::{DeviceId, DeviceKind, VdiskId, VmId};
use engine::VmConfig;
use knobs::{
    Allocation, DiskName, Driver, GuestDriver, GuestName, GuestOs, Knob, Line, MOVED_TO, Refusal,
    Setting, Version,
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
            for knob in setting.on(*host)? {
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

impl knobs::Host for Host {
    fn version(&self) -> Version {
        self.config.version
    }

    fn device(&self, name: &str) -> Result<Option<DeviceId>, Refusal> {
        let devices = &self.config.devices;
        let Some(index) = devices.iter().position(|device| device.name == name) else {
            return Ok(None);
        };
        if devices[index].kind == DeviceKind::Nfs {
            return Err(format!("`{name}` is an NFS datastore: it has no SCSI device").into());
        }
        Ok(Some(DeviceId::new(index)))
    }

    fn datastore(&self, name: &str) -> Option<DeviceId> {
        let is_it = |on: &Vec<String>| on.iter().any(|known| known == name);
        self.datastores.iter().position(is_it).map(DeviceId::new)
    }

    fn has_driver(&self, driver: &'static Driver) -> bool {
        self.config.adapters.iter().any(|adapter| adapter.driver == driver)
    }

    fn vms(&self, name: Option<&str>) -> Vec<(VmId, GuestOs)> {
        let is_it =
            |vm: &VmConfig| !vm.system && name.is_none_or(|name| names::is_member(&vm.name, name));
        let all = self.config.vms.iter().zip(&self.guests).enumerate();
        let meant = all.filter(|(_, (vm, _))| is_it(vm));
        meant.map(|(index, (_, guest))| (VmId::new(index), *guest)).collect()
    }

    fn disks(&self, name: &DiskName) -> Vec<(VdiskId, Allocation)> {
        let of_vm = |vm: VmId| names::is_member(&self.config.vms[vm.index()].name, &name.vm);
        let own = |disk: &str| disk.split(MOVED_TO).next().map(str::to_string);
        let is_it = |disk: &str| name.disk.is_none_or(|place| Some(place.to_string()) == own(disk));
        let all = self.config.vdisks.iter().enumerate();
        all.filter(|(_, vdisk)| of_vm(vdisk.vm) && is_it(&vdisk.name))
            .map(|(index, vdisk)| (VdiskId::new(index), vdisk.allocation))
            .collect()
    }
}

/// The depth and the pages that a line of the file sets in a guest.
pub(crate) fn guest_driver(line: &str, guest: GuestOs) -> Result<(u32, u32), String> {
    Ok(GuestDriver::parse(line, guest.system())?.with_defaults(guest))
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
        Setting::StorageIoControl { device, .. } => {
            let known = hosts.iter().flat_map(|(_, host)| host.datastores.iter().flatten());
            names::unknown("datastore", device, known.map(String::as_str))
        }
        Setting::Advanced { option, .. } => format!("no host has {}", option.info().path),
        other => {
            let scsi = |device: &&engine::DeviceConfig| device.kind != DeviceKind::Nfs;
            let devices = configs().flat_map(|host| &host.devices).filter(scsi);
            let known = devices.map(|device| device.name.as_str());
            names::unknown("device", other.device().unwrap_or_default(), known)
        }
    }
}
