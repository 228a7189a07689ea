//! A line that sets something, and the hosts that have what it names: settings by name become the
//! knobs of hosts. One resolution serves the events of a file, `--set` and a running host.

use counters::{Controller, DeviceId, DeviceKind, VdiskId, VmId};
use engine::{VdiskConfig, VmConfig};
use knobs::{
    Allocation, AllocationChange, Disks, Driver, GuestDriver, GuestName, GuestOs, IoControl, Knob,
    Line, MOVED_TO, Refusal, Setting, Version,
};

use crate::{Host, datastore::is_network, names};

/// What a line sets, and on which host.
pub(crate) type Knobs = Vec<(usize, Knob)>;

/// What a line sets: on the host of its prefix (`esx-1: storage core …`), or on every one of
/// `hosts` that has the device, driver or guest. What a host refuses in any state is refused.
pub(crate) fn settings(
    line: &str,
    hosts: &[(usize, &Host)],
) -> Result<(Vec<Setting>, Knobs), String> {
    let Line { host, settings } = line.parse()?;
    let knobs = on_hosts(host.as_deref(), &settings, hosts)?;
    Ok((settings, knobs))
}

/// The same for settings that are no text any more.
pub(crate) fn on_hosts(
    prefix: Option<&str>,
    settings: &[Setting],
    hosts: &[(usize, &Host)],
) -> Result<Knobs, String> {
    let known = hosts.iter().map(|(_, host)| host.config.name.as_str());
    let is_named = prefix.map(|name| names::meant(name, known));
    let is_meant = |host: &Host| is_named.as_ref().is_none_or(|is_it| is_it(&host.config.name));
    let meant: Vec<_> = hosts.iter().filter(|(_, host)| is_meant(host)).copied().collect();
    if let (Some(name), true) = (prefix, meant.is_empty()) {
        let known = hosts.iter().map(|(_, host)| host.config.name.as_str());
        return Err(names::unknown("host", name, known));
    }
    let mut resolved = Knobs::new();
    for setting in settings {
        let before = resolved.len();
        for (index, host) in &meant {
            for knob in setting.on(*host)? {
                let knob = after(&resolved, (*index, host), setting, knob)?;
                knob.check(host.config.version)?;
                resolved.push((*index, knob));
            }
        }
        if resolved.len() == before && !is_of_policy(setting) {
            return Err(nowhere(setting, hosts));
        }
    }
    Ok(resolved)
}

/// A knob of a line that may have set something else of the same disk before: limit, reservation and shares
/// are one knob, and each setting turns a part of it.
fn after(
    resolved: &Knobs,
    (index, host): (usize, &Host),
    setting: &Setting,
    knob: Knob,
) -> Result<Knob, Refusal> {
    let (Setting::Allocation { allocation: change, .. }, Knob::Allocation { vdisk, .. }) =
        (setting, knob)
    else {
        return Ok(knob);
    };
    let before = resolved.iter().rev().find_map(|known| match known {
        (at, Knob::Allocation { vdisk: of, allocation }) if (*at, *of) == (index, vdisk) => {
            Some(*allocation)
        }
        _ => None,
    });
    let Some(was) = before else { return Ok(knob) };
    Ok(Knob::Allocation { vdisk, allocation: change.of(was, host)? })
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

    fn controlled(&self, datastore: &str) -> Result<Option<(DeviceId, IoControl)>, Refusal> {
        let all = self.datastores.iter().enumerate();
        let all = all.flat_map(|(device, on)| on.iter().map(move |name| (device, name.as_str())));
        let place = names::place(datastore, all.clone().map(|(_, name)| name));
        let Some((device, _)) = place.and_then(|place| all.clone().nth(place)) else {
            return Ok(None);
        };
        let id = DeviceId::new(device);
        let refusal = |why| format!("Storage I/O Control of `{datastore}`: {why}");
        self.check_control(id).map_err(refusal)?;
        let control = self.settings.iter().find_map(|knob| match knob {
            Knob::StorageIoControl { device, control } if *device == id => Some(*control),
            _ => None,
        });
        Ok(Some((id, control.unwrap_or(IoControl::Off))))
    }

    fn has_driver(&self, driver: &'static Driver) -> bool {
        self.config.adapters.iter().any(|adapter| adapter.driver == driver)
    }

    fn vms(&self, name: Option<&str>) -> Vec<(VmId, GuestOs)> {
        let is_named = name.map(|name| self.meant(name));
        let is_it =
            |vm: &VmConfig| !vm.system && is_named.as_ref().is_none_or(|is_it| is_it(&vm.name));
        let all = self.config.vms.iter().zip(&self.guests).enumerate();
        let meant = all.filter(|(_, (vm, _))| is_it(vm));
        meant.map(|(index, (_, guest))| (VmId::new(index), *guest)).collect()
    }

    fn has_pvscsi(&self, vm: VmId) -> bool {
        let Self { config, .. } = self;
        let mut own = config.vdisks.iter().filter(|disk| disk.vm == vm);
        own.any(|disk| config.vscsi[disk.vscsi.index()].controller == Controller::Pvscsi)
    }

    fn disks(&self, disks: &Disks) -> Vec<(VdiskId, Allocation)> {
        let own = |disk: &str| disk.split(MOVED_TO).next().map(str::to_string);
        let all = self.config.vdisks.iter().enumerate();
        let found = |(index, vdisk): (usize, &VdiskConfig)| (VdiskId::new(index), vdisk.allocation);
        match disks {
            Disks::Of(name) => {
                let is_meant = self.meant(&name.vm);
                let is_it = |vdisk: &VdiskConfig| {
                    is_meant(&self.config.vms[vdisk.vm.index()].name)
                        && name.disk.is_none_or(|at| Some(at.to_string()) == own(&vdisk.name))
                };
                all.filter(|(_, vdisk)| is_it(vdisk)).map(found).collect()
            }
            Disks::With(policy) => {
                let place = self.policy_named(policy);
                let has = |index: usize| place.is_some() && self.policy_of[index] == place;
                all.filter(|(index, _)| has(*index)).map(found).collect()
            }
        }
    }

    fn policy(&self, name: &str) -> Result<Allocation, Refusal> {
        let found = self.policy_named(name).map(|place| self.policies[place].allocation);
        found.ok_or_else(|| {
            let known = self.policies.iter().map(|policy| policy.name.as_str());
            names::unknown("storage policy", name, known).into()
        })
    }
}

impl Host {
    /// Tells its virtual machines of a name.
    fn meant<'a>(&'a self, name: &'a str) -> impl Fn(&str) -> bool + 'a {
        names::meant(name, self.config.vms.iter().map(|vm| vm.name.as_str()))
    }

    fn policy_named(&self, name: &str) -> Option<usize> {
        names::place(name, self.policies.iter().map(|policy| policy.name.as_str()))
    }

    /// Whether Storage I/O Control is for what is on a device: VMFS and NFS, and no RDM [VCAT].
    ///
    /// # Errors
    /// One line: what it is instead.
    pub fn check_control(&self, device: DeviceId) -> Result<(), String> {
        let what = match self.config.devices[device.index()].kind {
            DeviceKind::ProtocolEndpoint => "vVols",
            _ if self.rdms.contains(&device) => "an RDM",
            _ => return Ok(()),
        };
        Err(format!("it is for VMFS and NFS, and this is {what}"))
    }

    /// Notes which disks have which storage policy and what each says, after a setting that was taken. What it
    /// sets of disks are knobs.
    pub fn note(&mut self, setting: &Setting) {
        let Setting::Allocation { vdisk: of, allocation: change } = setting else { return };
        let given = match (of, change) {
            (Disks::With(name), _) => {
                let Some(place) = self.policy_named(name) else { return };
                let was = self.policies[place].allocation;
                self.policies[place].allocation = change.of(was, self).unwrap_or(was);
                return;
            }
            (_, AllocationChange::Policy(Some(name))) => self.policy_named(name),
            _ => None,
        };
        for (vdisk, _) in knobs::Host::disks(self, of) {
            self.policy_of[vdisk.index()] = given;
        }
    }
}

/// Whether it is what a storage policy says, which may be of no disk yet.
fn is_of_policy(setting: &Setting) -> bool {
    matches!(setting, Setting::Allocation { vdisk: Disks::With(_), .. })
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
            let system = system.map_or(String::new(), |system| format!("{} ", system.name()));
            format!("there is no {system}guest with a disk on PVSCSI")
        }
        Setting::Allocation { vdisk: Disks::Of(disk), .. } => {
            match vms().any(names::meant(&disk.vm, vms())) {
                true => format!("there is no disk `{disk}`"),
                false => names::unknown("VM", &disk.vm, vms()),
            }
        }
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
