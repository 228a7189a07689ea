//! What is done to a scenario that no key of its file and no setting says: its parts are put
//! somewhere else, or ask for less. Whoever looks for a remedy tries them.

use std::collections::{BTreeMap, BTreeSet};

use counters::{DeviceId, DeviceKind, Time, VdiskId, VmId, VscsiId};
use engine::{DeviceConfig, PathAccess, PathConfig, VdiskConfig};
use knobs::DiskName;
use model::{Arrival, Ceiling, Mix, Qos, VolumeConfig, WorkloadConfig};

use crate::{
    Action, Array, Error, Host, Scenario, Target, TimedEvent, Workload, datastore::IDS_MAX, names,
};

/// Virtual adapters of a virtual machine.
const ADAPTERS_MAX: u32 = 4;

impl Host {
    /// The virtual disks of a virtual machine here; none where it is not known.
    pub fn disks_of<'a>(&'a self, vm: &'a str) -> impl Iterator<Item = VdiskId> + 'a {
        let all = self.config.vdisks.iter().enumerate();
        all.filter(move |(_, disk)| self.config.vms[disk.vm.index()].name == vm)
            .map(|(index, _)| VdiskId::new(index))
    }

    /// Whether a virtual disk is on a datastore.
    fn is_on(&self, disk: VdiskId, datastore: &str) -> bool {
        self.datastores[self.device_of(disk).index()].iter().any(|name| name == datastore)
    }

    /// The device on which a virtual disk is.
    #[must_use]
    pub fn device_of(&self, disk: VdiskId) -> DeviceId {
        self.config.vdisks[disk.index()].device
    }
}

impl Workload {
    /// Whether it is one of a virtual machine.
    fn is_of(&self, hosts: &[Host], vm: &str) -> bool {
        let config = &hosts[self.host].config;
        config.vms[config.vdisks[self.vdisk.index()].vm.index()].name == vm
    }

    /// Whether it may be at work while another is; when an event starts one is not known before.
    fn overlaps(&self, other: &Self) -> bool {
        let ends_before = |a: &Self, b: &Self| a.stops < Time::NEVER && a.stops <= b.starts;
        let is_known = |own: &Self| own.starts < Time::NEVER;
        !(is_known(self) && is_known(other))
            || !ends_before(self, other) && !ends_before(other, self)
    }

    /// How many I/Os it has outstanding at most.
    #[must_use]
    pub const fn outstanding(&self) -> u32 {
        match self.config.arrival {
            Arrival::Closed { threads, .. } => threads,
            Arrival::Open { outstanding_max, .. } => outstanding_max,
        }
    }
}

impl Array {
    /// Gives the array one more volume, as another is but for who has that reserved.
    fn add_volume_like(&mut self, volume: u32, name: String) -> u32 {
        let like = self.config.volumes[volume as usize].clone();
        self.config.volumes.push(VolumeConfig { stuck: None, ..like });
        self.volumes.push(name);
        self.config.volumes.len() as u32 - 1
    }
}

impl Scenario {
    /// Puts the disks of a virtual machine on devices that it has to itself, on every host that knows
    /// it: for each device that it has one more, reached as that one, with DSNRO as it starts, and
    /// volumes as it had. A device of it alone stays.
    ///
    /// # Errors
    /// One line, when all of its devices are its own, or have no queue; and where an array has two controllers.
    pub fn give_own_device(&mut self, vm: &str) -> Result<(), Error> {
        self.require_equal_paths()?;
        let mut is_moved = false;
        for host in 0..self.hosts.len() {
            let Host { config, .. } = &self.hosts[host];
            if 2 * config.devices.len().max(config.paths.len()) > IDS_MAX {
                return Err(Error::new(format!("host `{}` has too many devices", config.name)));
            }
            for device in 0..config.devices.len() {
                is_moved |= self.part_device(host, DeviceId::new(device), vm);
            }
        }
        let alone = || Error::new(format!("`{vm}` shares no device that has a queue"));
        is_moved.then_some(()).ok_or_else(alone)
    }

    /// Whether a virtual machine shared a device of a host, and now does not.
    fn part_device(&mut self, host: usize, device: DeviceId, vm: &str) -> bool {
        let Self { hosts, arrays, .. } = self;
        let Host { config, initiator, targets, datastores, rdms, .. } = &mut hosts[host];
        let is_own = |index: usize| config.vms[config.vdisks[index].vm.index()].name == vm;
        let (own, others): (Vec<usize>, Vec<usize>) = (0..config.vdisks.len())
            .filter(|index| config.vdisks[*index].device == device)
            .partition(|index| is_own(*index));
        let old = &config.devices[device.index()];
        if own.is_empty() || others.is_empty() || old.kind == DeviceKind::Nfs {
            return false;
        }
        let name = format!("{}.{}", old.name, datastores.len());
        let new =
            DeviceConfig { name: name.clone(), kind: DeviceKind::Scsi, dsnro: None, ..old.clone() };
        let id = DeviceId::new(config.devices.len());
        config.devices.push(new);
        let like = (0..config.paths.len()).filter(|path| config.paths[*path].device == device);
        let nexuses = like.map(|path| initiator.of_path.get(path).copied().flatten());
        let nexuses: Vec<_> = nexuses.collect();
        let paths = config.paths.iter().filter(|path| path.device == device);
        let paths = paths.enumerate().map(|(index, path)| PathConfig {
            name: format!("{}.{}.{index}", path.name, id.index()),
            device: id,
            ..path.clone()
        });
        let paths: Vec<_> = paths.collect();
        initiator.of_path.resize(config.paths.len(), None);
        initiator.of_path.extend(nexuses);
        config.paths.extend(paths);
        datastores.push(vec![name.clone()]);
        if rdms.contains(&device) {
            rdms.push(id);
        }
        for index in own {
            let Target { array, volume } = targets[index];
            config.vdisks[index].device = id;
            let volume = arrays[array].add_volume_like(volume, name.clone());
            targets[index] = Target { array, volume };
        }
        true
    }

    /// Lets the workloads of a virtual machine run on a host that is as theirs, with nothing else at
    /// work on it. There it stays: no event migrates it.
    ///
    /// # Errors
    /// One line, when the file moves its disks, or switches it on or off, or it has no workload; and where an
    /// array has two controllers.
    pub fn give_own_host(&mut self, vm: &str) -> Result<(), Error> {
        self.require_equal_paths()?;
        let host = self.home(vm)?;
        let hosts = &self.hosts;
        self.events.retain(|event| match event.action {
            Action::Migrate { vm: id, .. } => hosts[event.host].config.vms[id.index()].name != vm,
            _ => true,
        });
        self.require_still(vm)?;
        let mut new = self.hosts[host].clone();
        new.config.name = format!("{}.{}", new.config.name, self.hosts.len());
        let index = self.hosts.len();
        let own: Vec<_> = self.hosts[host].disks_of(vm).collect();
        let workloads = self.workloads.iter_mut();
        for workload in workloads.filter(|w| w.host == host && own.contains(&w.vdisk)) {
            workload.host = index;
        }
        let of_both = |action: &Action| {
            let is_of_path = matches!(action, Action::Cut { .. } | Action::Path { .. });
            is_of_path || matches!(action, Action::Set(_) | Action::Face { .. })
        };
        let events = std::mem::take(&mut self.events).into_iter().flat_map(|event| {
            let copy = (event.host == host && of_both(&event.action)).then(|| event.clone());
            [Some(event), copy.map(|copy| TimedEvent { host: index, ..copy })]
        });
        self.events = events.flatten().collect();
        self.hosts.push(new);
        Ok(())
    }

    /// Gives a virtual machine a second disk beside each that it has, on the same datastore, the new ones
    /// together on one more virtual adapter as its first one is. What its workloads ask for is halved
    /// between the two; one with one I/O outstanding stays where it is.
    ///
    /// # Errors
    /// One line, when no virtual adapter is free, the file moves or switches it, or nothing can be halved.
    pub fn double_disks(&mut self, vm: &str) -> Result<(), Error> {
        self.require_still(vm)?;
        let mut second = BTreeMap::new();
        for index in 0..self.hosts.len() {
            self.double_disks_on(index, vm, &mut second)?;
        }
        let before = self.workloads.len();
        for index in 0..before {
            let workload = &mut self.workloads[index];
            let Some(vdisk) = second.get(&(workload.host, workload.vdisk)) else { continue };
            let Some(config) = halve(&mut workload.config) else { continue };
            let name = format!("{}.2", workload.name);
            let half = Workload { name, vdisk: *vdisk, config, ..workload.clone() };
            self.workloads.push(half);
            let new = self.workloads.len() - 1;
            let events = std::mem::take(&mut self.events).into_iter().flat_map(|event| {
                let action = match event.action {
                    Action::StartWorkload(of) if of == index => Some(Action::StartWorkload(new)),
                    Action::StopWorkload(of) if of == index => Some(Action::StopWorkload(new)),
                    _ => None,
                };
                let copy = action.map(|action| TimedEvent { action, ..event.clone() });
                [Some(event), copy]
            });
            self.events = events.flatten().collect();
        }
        let nothing =
            || Error::new(format!("the workloads of `{vm}` have one I/O outstanding each"));
        (self.workloads.len() > before).then_some(()).ok_or_else(nothing)
    }

    /// The same on a host; `second` gets the new disk of each.
    fn double_disks_on(
        &mut self,
        index: usize,
        vm: &str,
        second: &mut BTreeMap<(usize, VdiskId), VdiskId>,
    ) -> Result<(), Error> {
        let own: Vec<_> = self.hosts[index].disks_of(vm).collect();
        let Some(first) = own.first() else { return Ok(()) };
        let Self { hosts, arrays, .. } = self;
        let Host { config, targets, images, policy_of, blocks, .. } = &mut hosts[index];
        let bus =
            |disk: &VdiskId| DiskName::from(&*format!(":{}", config.vdisks[disk.index()].name));
        let used = own.iter().filter_map(|disk| Some(bus(disk).disk?.bus)).max();
        let free = used.map(|bus| bus + 1).filter(|bus| *bus < ADAPTERS_MAX);
        let free = free.filter(|_| config.vdisks.len() + own.len() <= IDS_MAX);
        let bus = free.ok_or_else(|| Error::new(format!("`{vm}` has no free virtual adapter")))?;
        let vscsi = VscsiId::new(config.vscsi.len());
        config.vscsi.push(config.vscsi[config.vdisks[first.index()].vscsi.index()].clone());
        for (unit, disk) in own.into_iter().enumerate() {
            let old = config.vdisks[disk.index()].clone();
            let name = format!("scsi{bus}:{unit}");
            let mut target = targets[disk.index()];
            if config.devices[old.device.index()].kind == DeviceKind::ProtocolEndpoint {
                target.volume =
                    arrays[target.array].add_volume_like(target.volume, format!("{vm}:{name}"));
            }
            second.insert((index, disk), VdiskId::new(config.vdisks.len()));
            config.vdisks.push(VdiskConfig { name, vscsi, ..old });
            targets.push(target);
            images.push(None);
            policy_of.push(policy_of[disk.index()]);
            blocks.push(blocks[disk.index()]);
        }
        Ok(())
    }

    /// The host on which the workloads of a virtual machine are when the run begins.
    ///
    /// # Errors
    /// One line, when it has none, or there is no such virtual machine.
    pub fn home(&self, vm: &str) -> Result<usize, Error> {
        let is_known = |host: &Host| host.config.vms.iter().any(|known| known.name == vm);
        if !self.hosts.iter().any(is_known) {
            let vms = self.hosts.iter().flat_map(|host| &host.config.vms);
            let known = vms.filter(|vm| !vm.system).map(|vm| vm.name.as_str());
            return Err(Error::new(names::unknown("VM", vm, known)));
        }
        let no_work = || Error::new(format!("VM `{vm}` has no workload"));
        Ok(self.workloads_of(vm).next().ok_or_else(no_work)?.host)
    }

    /// Refuses arrays to whose controllers paths lead by their places and those of their hosts: copies have others.
    fn require_equal_paths(&self) -> Result<(), Error> {
        match self.arrays.iter().find(|array| array.config.queues.controllers.is_some()) {
            Some(array) => Err(Error::new(format!(
                "the paths to the controllers of array `{}` would be others",
                array.name
            ))),
            None => Ok(()),
        }
    }

    /// Refuses a virtual machine that an event of the file moves or switches.
    fn require_still(&self, vm: &str) -> Result<(), Error> {
        let is_moved = self.events.iter().any(|event| {
            let host = &self.hosts[event.host];
            let is_own = |id: VmId| host.config.vms[id.index()].name == vm;
            match &event.action {
                Action::Migrate { vm, .. } | Action::Power { vm, .. } | Action::RebootGuest(vm) => {
                    is_own(*vm)
                }
                Action::Relocate { from, .. } | Action::Copy { from, .. } => {
                    is_own(host.config.vdisks[from.index()].vm)
                }
                _ => false,
            }
        });
        let refuse = || Error::new(format!("an event of the file moves `{vm}` or switches it"));
        (!is_moved).then_some(()).ok_or_else(refuse)
    }

    /// The workloads of a virtual machine.
    pub fn workloads_of<'a>(&'a self, vm: &'a str) -> impl Iterator<Item = &'a Workload> {
        self.workloads.iter().filter(move |workload| workload.is_of(&self.hosts, vm))
    }

    /// How many I/Os the workloads of a virtual machine have outstanding at most, of those that are at work
    /// at one time; and how many workloads these are.
    #[must_use]
    pub fn outstanding_of(&self, vm: &str) -> (u32, u32) {
        let beside = self.workloads_of(vm).map(|own| self.beside(own, vm));
        beside.fold((0, 0), |most, each| (most.0.max(each.0), most.1.max(each.1)))
    }

    /// The same of those that are at work while `own` is, itself included.
    fn beside(&self, own: &Workload, vm: &str) -> (u32, u32) {
        let beside = self.workloads_of(vm).filter(|other| own.overlaps(other));
        beside.fold((0, 0), |(sum, count), other| {
            (sum.saturating_add(other.outstanding()), count + 1)
        })
    }

    /// Lets the workloads of a virtual machine have `most` I/Os outstanding together, each its part and
    /// one at least; one that has fewer keeps them. One that pauses has them on its disk: its threads are
    /// not what is outstanding.
    pub fn set_outstanding(&mut self, vm: &str, most: u32) {
        let of = |own: &Workload| {
            let part = u64::from(own.outstanding()) * u64::from(most);
            let all = u64::from(self.beside(own, vm).0.max(1));
            u32::try_from(part / all).unwrap_or(most).clamp(1, own.outstanding())
        };
        let is_own = |own: &&Workload| own.is_of(&self.hosts, vm);
        let parts = self.workloads.iter().map(|own| is_own(&own).then(|| of(own)));
        let parts: Vec<Option<u32>> = parts.collect();
        let Self { hosts, workloads, .. } = self;
        for (workload, part) in workloads.iter_mut().zip(parts) {
            let Some(part) = part.filter(|part| *part < workload.outstanding()) else { continue };
            match &mut workload.config.arrival {
                Arrival::Closed { think_ns: 1.., .. } => {
                    let disk = &mut hosts[workload.host].config.vdisks[workload.vdisk.index()];
                    disk.depth = disk.depth.min(part);
                }
                Arrival::Closed { threads: depth, .. }
                | Arrival::Open { outstanding_max: depth, .. } => *depth = part,
            }
        }
    }

    /// Locks the metadata of a datastore by ATS instead of reservations, and no host holds one of it.
    pub fn lock_by_ats(&mut self, datastore: &str) {
        let Self { hosts, arrays, workloads, .. } = self;
        for host in &*hosts {
            for (disk, Target { array, volume }) in host.targets.iter().enumerate() {
                if host.is_on(VdiskId::new(disk), datastore) {
                    arrays[*array].config.volumes[*volume as usize].stuck = None;
                }
            }
        }
        for Workload { host, vdisk, config, .. } in workloads {
            if config.mix == Mix::Reserve && hosts[*host].is_on(*vdisk, datastore) {
                config.mix = Mix::Ats;
            }
        }
    }

    /// Gives the volumes behind a device to the other controller of their array; paths to that are optimized then.
    pub fn give_to_other_controller(&mut self, device: &str) {
        let mut volumes = BTreeSet::new();
        for host in &mut self.hosts {
            let is_it = |id: DeviceId| host.config.devices[id.index()].name == device;
            let disks = host.config.vdisks.iter().zip(&host.targets);
            let own = disks.filter(|(disk, _)| is_it(disk.device));
            let own = own.map(|(_, target)| (target.array, target.volume as usize));
            volumes.extend(own);
            let of = |array: usize| self.arrays[array].config.queues.controllers;
            let is_standby = |(array, _): &(usize, usize)| {
                of(*array).is_some_and(|controllers| controllers.active_passive)
            };
            let other = match volumes.iter().any(is_standby) {
                true => PathAccess::Standby,
                false => PathAccess::NonOptimized,
            };
            let devices = &host.config.devices;
            let paths = host.config.paths.iter_mut();
            for path in paths.filter(|path| devices[path.device.index()].name == device) {
                path.access = match path.access {
                    PathAccess::Optimized => other,
                    _ => PathAccess::Optimized,
                };
            }
        }
        for (array, volume) in volumes {
            let volume = &mut self.arrays[array].config.volumes[volume];
            volume.owner = 1 - volume.owner;
        }
    }

    /// Gives the volumes of a virtual machine's disks another quality of service; `None` is none.
    pub fn set_qos(&mut self, vm: &str, qos: Option<&Qos>) {
        for host in &self.hosts {
            for disk in host.disks_of(vm) {
                let Target { array, volume } = host.targets[disk.index()];
                self.arrays[array].config.volumes[volume as usize].qos = qos.cloned();
            }
        }
    }
}

/// Takes half of what a workload asks for; nothing where it has one I/O outstanding.
fn halve(config: &mut WorkloadConfig) -> Option<WorkloadConfig> {
    let mut other = config.clone();
    for (arrival, is_other) in [(&mut config.arrival, false), (&mut other.arrival, true)] {
        let rounded = u32::from(!is_other);
        match arrival {
            Arrival::Closed { threads: 1, .. } | Arrival::Open { outstanding_max: 1, .. } => {
                return None;
            }
            Arrival::Closed { threads, rate, .. } => {
                *threads = (*threads + rounded) / 2;
                *rate = rate.map(|rate| Ceiling { per_sec: rate.per_sec / 2.0, ..rate });
            }
            Arrival::Open { rate, outstanding_max, waiting_max, .. } => {
                *rate /= 2.0;
                *outstanding_max = (*outstanding_max + rounded) / 2;
                *waiting_max = (*waiting_max + rounded) / 2;
            }
        }
    }
    for (ios, is_other) in [(&mut config.ios_max, false), (&mut other.ios_max, true)] {
        *ios = ios.map(|ios| (ios + u64::from(!is_other)) / 2);
    }
    Some(other)
}
