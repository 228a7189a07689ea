//! Ids of parts of a host. A file that is read again numbers them anew, and in an engine an id is never
//! another's: so each part keeps the id that it had there, whatever its place in the file has become.

use counters::{AdapterId, DeviceId, PathId, VdiskId, VmId, VscsiId};
use engine::{
    AdapterConfig, DeviceConfig, Error, HostConfig, Input, Object, Part, PathConfig, VdiskConfig,
    VmConfig, VscsiConfig,
};
use knobs::{Knob, TargetId};

/// Ids of one noun: the number that each has in engines, by its place in the file.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    of: Vec<u16>,
    /// How many there have been.
    count: usize,
}

/// The ids of a host's parts in engines, by those in its file.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    pub(crate) adapters: Numbers,
    pub(crate) devices: Numbers,
    pub(crate) paths: Numbers,
    pub(crate) vms: Numbers,
    pub(crate) vscsi: Numbers,
    pub(crate) vdisks: Numbers,
}

/// Of each part in a new reading of the file its place in the one before; nothing where it is new.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Same {
    pub(crate) adapters: Vec<Option<usize>>,
    pub(crate) devices: Vec<Option<usize>>,
    pub(crate) paths: Vec<Option<usize>>,
    pub(crate) vms: Vec<Option<usize>>,
    pub(crate) vscsi: Vec<Option<usize>>,
    pub(crate) vdisks: Vec<Option<usize>>,
}

/// What is behind the name of a part that has gone: another may have its name.
const GONE: &str = "@gone";

impl Numbers {
    /// As they are in the file.
    fn first(count: usize) -> Self {
        Self { of: (0..=u16::MAX).take(count).collect(), count }
    }

    pub(crate) fn get(&self, place: usize) -> usize {
        self.of[place].into()
    }

    /// The place of one in the file, if it has one.
    pub(crate) fn place(&self, number: usize) -> Option<usize> {
        self.of.iter().position(|known| usize::from(*known) == number)
    }

    /// Adds the parts of a file that are new to those that are known, each at its number, and marks the
    /// names of those that have gone.
    fn add<T>(
        &self,
        known: &mut Vec<T>,
        file: &[T],
        numbered: impl Fn(&T) -> T,
        name: impl Fn(&mut T) -> Option<&mut String>,
    ) {
        let gone = known.iter_mut().enumerate().filter(|(number, _)| self.place(*number).is_none());
        for name in gone.filter_map(|(_, part)| name(part)).filter(|name| !name.ends_with(GONE)) {
            name.push_str(GONE);
        }
        // What is new has the next numbers, in the order of the file.
        let before = known.len();
        let new = file.iter().enumerate().filter(|(place, _)| self.get(*place) >= before);
        known.extend(new.map(|(_, part)| numbered(part)));
    }

    /// Those of a new reading: what is new has the next ones.
    fn next(&self, noun: &str, same: &[Option<usize>]) -> Result<Self, String> {
        let mut count = self.count;
        let number = |was: &Option<usize>| match was {
            Some(was) => Ok(self.of[*was]),
            None => {
                count += 1;
                let full = |_| format!("there have been 65,536 of {noun}: begin the daemon anew");
                u16::try_from(count - 1).map_err(full)
            }
        };
        let of = same.iter().map(number).collect::<Result<_, _>>()?;
        Ok(Self { of, count })
    }
}

impl Ids {
    /// Those of a host as it is begun.
    pub(crate) fn new(config: &HostConfig) -> Self {
        Self {
            adapters: Numbers::first(config.adapters.len()),
            devices: Numbers::first(config.devices.len()),
            paths: Numbers::first(config.paths.len()),
            vms: Numbers::first(config.vms.len()),
            vscsi: Numbers::first(config.vscsi.len()),
            vdisks: Numbers::first(config.vdisks.len()),
        }
    }

    /// Those of a new reading of its file.
    ///
    /// # Errors
    /// When there have been too many of a noun.
    pub(crate) fn next(&self, same: &Same) -> Result<Self, String> {
        Ok(Self {
            adapters: self.adapters.next("adapters", &same.adapters)?,
            devices: self.devices.next("devices", &same.devices)?,
            paths: self.paths.next("paths", &same.paths)?,
            vms: self.vms.next("VMs", &same.vms)?,
            vscsi: self.vscsi.next("virtual adapters", &same.vscsi)?,
            vdisks: self.vdisks.next("disks", &same.vdisks)?,
        })
    }

    /// A host with all that it was ever made of, as engines number it: what is new in the file comes to
    /// what was `known`, and what the file does not have any more is called so.
    pub(crate) fn known(&self, known: &HostConfig, file: &HostConfig) -> HostConfig {
        let mut all = known.clone();
        let HostConfig { adapters, devices, paths, vms, vscsi, vdisks, .. } = &mut all;
        let same = AdapterConfig::clone;
        self.adapters.add(adapters, &file.adapters, same, |part| Some(&mut part.name));
        let same = DeviceConfig::clone;
        self.devices.add(devices, &file.devices, same, |part| Some(&mut part.name));
        let path = |path: &PathConfig| PathConfig {
            device: self.device(path.device),
            adapter: self.adapter(path.adapter),
            ..path.clone()
        };
        self.paths.add(paths, &file.paths, path, |part| Some(&mut part.name));
        self.vms.add(vms, &file.vms, VmConfig::clone, |part| Some(&mut part.name));
        let of_vm = |part: &VscsiConfig| VscsiConfig { vm: self.vm(part.vm), ..part.clone() };
        self.vscsi.add(vscsi, &file.vscsi, of_vm, |_| None);
        let disk = |disk: &VdiskConfig| VdiskConfig {
            vm: self.vm(disk.vm),
            vscsi: self.vscsi(disk.vscsi),
            device: self.device(disk.device),
            ..disk.clone()
        };
        self.vdisks.add(vdisks, &file.vdisks, disk, |part| Some(&mut part.name));
        all
    }

    pub(crate) fn adapter(&self, id: AdapterId) -> AdapterId {
        AdapterId::new(self.adapters.get(id.index()))
    }

    pub(crate) fn device(&self, id: DeviceId) -> DeviceId {
        DeviceId::new(self.devices.get(id.index()))
    }

    fn path(&self, id: PathId) -> PathId {
        PathId::new(self.paths.get(id.index()))
    }

    pub(crate) fn vm(&self, id: VmId) -> VmId {
        VmId::new(self.vms.get(id.index()))
    }

    fn vscsi(&self, id: VscsiId) -> VscsiId {
        VscsiId::new(self.vscsi.get(id.index()))
    }

    pub(crate) fn vdisk(&self, id: VdiskId) -> VdiskId {
        VdiskId::new(self.vdisks.get(id.index()))
    }

    /// What an engine is told, from what is said in ids of the file.
    pub(crate) fn input(&self, input: Input) -> Input {
        match input {
            Input::Set(knob) => Input::Set(self.knob(knob)),
            Input::Path { path, up } => Input::Path { path: self.path(path), up },
            Input::Attach(part) => Input::Attach(self.part(part)),
            Input::Detach { object, drain } => Input::Detach { object: self.object(object), drain },
            other => other,
        }
    }

    fn knob(&self, mut knob: Knob) -> Knob {
        match knob.id() {
            TargetId::Device(id) => *id = self.device(*id),
            TargetId::Vm(id) => *id = self.vm(*id),
            TargetId::Vdisk(id) => *id = self.vdisk(*id),
            TargetId::Host => {}
        }
        knob
    }

    fn part(&self, mut part: Part) -> Part {
        match &mut part {
            Part::Adapter { id, .. } => *id = self.adapter(*id),
            Part::Device { id, .. } => *id = self.device(*id),
            Part::Path { id, device, adapter, .. } => {
                *id = self.path(*id);
                (*device, *adapter) = (self.device(*device), self.adapter(*adapter));
            }
            Part::Vscsi { id, vm, .. } => (*id, *vm) = (self.vscsi(*id), self.vm(*vm)),
            Part::Vdisk { id, vscsi, device, .. } => {
                *id = self.vdisk(*id);
                (*vscsi, *device) = (self.vscsi(*vscsi), self.device(*device));
            }
        }
        part
    }

    fn object(&self, object: Object) -> Object {
        match object {
            Object::Adapter(id) => Object::Adapter(self.adapter(id)),
            Object::Device(id) => Object::Device(self.device(id)),
            Object::Path(id) => Object::Path(self.path(id)),
            Object::Vm(id) => Object::Vm(self.vm(id)),
            Object::Vdisk(id) => Object::Vdisk(self.vdisk(id)),
        }
    }

    /// An engine's refusal in ids of the file; nothing where it is about what the file does not have.
    pub(crate) fn error(&self, error: &Error) -> Option<Error> {
        let place = |noun: &str, number: usize| match noun {
            "adapter" => self.adapters.place(number),
            "device" => self.devices.place(number),
            "path" => self.paths.place(number),
            "virtual disk" => self.vdisks.place(number),
            _ => None,
        };
        Some(match *error {
            Error::Unknown(noun, id) => Error::Unknown(noun, place(noun, id)?),
            Error::InUse(noun, id) => Error::InUse(noun, place(noun, id)?),
            ref other => other.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use scenario::Scenario;

    use super::*;

    fn host(disks: &[(&str, &str)]) -> HostConfig {
        let mut text = "title = \"t\"\n[host.h.nbd]\nsocket = \"s\"\n[host.h.adapter.vmhba1]\n\
                        driver = \"qlnativefc\"\n[datastore.m]\nbackend = \"null\"\n"
            .to_owned();
        for (vm, disk) in disks {
            text += &format!("[vm.{vm}.disk.\"{disk}\"]\ndatastore = \"m\"\nsize = \"1m\"\n");
        }
        let scenario = Scenario::parse_served("h.toml", &text, &mut |_| Err(String::new()));
        scenario.expect("a sound file").hosts.remove(0).config
    }

    fn disks(host: &HostConfig) -> Vec<(&str, &str)> {
        let vm = |id: VmId| host.vms[id.index()].name.as_str();
        host.vdisks.iter().map(|disk| (vm(disk.vm), disk.name.as_str())).collect()
    }

    /// What a host was ever made of has its numbers, whatever the order of the file.
    #[test]
    fn what_has_gone_keeps_its_number_and_leaves_its_name() {
        let first = host(&[("a", "scsi0:0"), ("b", "scsi0:0"), ("b", "scsi0:1")]);
        let ids = Ids::new(&first);
        let alone = Same {
            adapters: vec![Some(0)],
            devices: vec![Some(0)],
            paths: vec![Some(0)],
            ..Same::default()
        };
        // A new VM is in front, and one that had two disks has the first of them anew.
        let second = host(&[("c", "scsi0:0"), ("b", "scsi0:0"), ("b", "scsi0:1")]);
        let same = Same {
            vms: vec![None, Some(1)],
            vscsi: vec![None, Some(1)],
            vdisks: vec![None, None, Some(2)],
            ..alone
        };
        let ids = ids.next(&same).expect("there is room");
        let known = ids.known(&first, &second);
        let expected = [
            ("a@gone", "scsi0:0@gone"),
            ("b", "scsi0:0@gone"),
            ("b", "scsi0:1"),
            ("c", "scsi0:0"),
            ("b", "scsi0:0"),
        ];
        assert_eq!(disks(&known), expected);
        let numbers: Vec<_> = (0..3).map(|place| ids.vdisks.get(place)).collect();
        assert_eq!(numbers, [3, 4, 2]);
    }
}
