//! Ids of parts of a host. A file that is read again numbers them anew, and in an engine an id is never
//! another's: so each part keeps the id that it had there, whatever its place in the file has become.

use counters::{AdapterId, DeviceId, PathId, VdiskId, VmId, VscsiId};
use engine::{Error, HostConfig, Input, Object, Part};
use knobs::Knob;

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
        match &mut knob {
            Knob::SchedNumReqOutstanding { device, .. }
            | Knob::MaxQueueDepth { device, .. }
            | Knob::QueueFull { device, .. }
            | Knob::DepthByLatency { device, .. }
            | Knob::StorageIoControl { device, .. }
            | Knob::PathPolicy { device, .. } => *device = self.device(*device),
            Knob::Pvscsi { vm, .. } => *vm = self.vm(*vm),
            Knob::Allocation { vdisk, .. } => *vdisk = self.vdisk(*vdisk),
            Knob::Advanced { .. } | Knob::ModuleDepth { .. } => {}
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
