//! What is done to a scenario that no key of its file and no setting says: its parts are put
//! somewhere else, or ask for less. Whoever looks for a remedy tries them.

use counters::{DeviceId, DeviceKind, VdiskId};
use engine::{DeviceConfig, PathConfig};
use model::{Arrival, Qos};

use crate::{
    Action, Array, Error, Host, Scenario, Target, TimedEvent, Workload, datastore::IDS_MAX, names,
};

impl Host {
    /// The virtual disks of a virtual machine here; none where it is not known.
    pub fn disks_of<'a>(&'a self, vm: &'a str) -> impl Iterator<Item = VdiskId> + 'a {
        let all = self.config.vdisks.iter().enumerate();
        all.filter(move |(_, disk)| self.config.vms[disk.vm.index()].name == vm)
            .map(|(index, _)| VdiskId::new(index))
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
    /// Gives the array one more volume, as another is.
    fn add_volume_like(&mut self, volume: u32, name: String) -> u32 {
        let like = self.config.volumes[volume as usize].clone();
        self.config.volumes.push(like);
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
    /// One line, when all of its devices are its own, or have no queue.
    pub fn give_own_device(&mut self, vm: &str) -> Result<(), Error> {
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
        let Host { config, targets, datastores, .. } = &mut hosts[host];
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
        let paths = config.paths.iter().filter(|path| path.device == device);
        let paths = paths.enumerate().map(|(index, path)| PathConfig {
            name: format!("{}.{}.{index}", path.name, id.index()),
            device: id,
            ..path.clone()
        });
        let paths: Vec<_> = paths.collect();
        config.paths.extend(paths);
        datastores.push(vec![name.clone()]);
        for index in own {
            let Target { array, volume } = targets[index];
            config.vdisks[index].device = id;
            let volume = arrays[array].add_volume_like(volume, name.clone());
            targets[index] = Target { array, volume };
        }
        true
    }

    /// Lets the workloads of a virtual machine run on a host that is as theirs, with nothing else at
    /// work on it.
    ///
    /// # Errors
    /// One line, when the file moves it, or switches it on or off, or it has no workload.
    pub fn give_own_host(&mut self, vm: &str) -> Result<(), Error> {
        let host = self.home(vm)?;
        let id = self.hosts[host].config.vms.iter().position(|known| known.name == vm);
        let is_own = |disk: &VdiskId| self.hosts[host].disks_of(vm).any(|own| own == *disk);
        let is_moved = self.events.iter().filter(|event| event.host == host).any(|event| {
            match &event.action {
                Action::Migrate { vm: moved, .. } => Some(moved.index()) == id,
                Action::Power { vm: switched, .. } | Action::RebootGuest(switched) => {
                    Some(switched.index()) == id
                }
                Action::Relocate { from, .. } => is_own(from),
                _ => false,
            }
        });
        if is_moved {
            return Err(Error::new(format!("an event of the file moves `{vm}` or switches it")));
        }
        let mut new = self.hosts[host].clone();
        new.config.name = format!("{}.{}", new.config.name, self.hosts.len());
        let index = self.hosts.len();
        let own: Vec<_> = self.hosts[host].disks_of(vm).collect();
        let workloads = self.workloads.iter_mut();
        for workload in workloads.filter(|w| w.host == host && own.contains(&w.vdisk)) {
            workload.host = index;
        }
        let of_both = |action: &Action| {
            matches!(action, Action::Set(_) | Action::Path { .. } | Action::Face { .. })
        };
        let events = std::mem::take(&mut self.events).into_iter().flat_map(|event| {
            let copy = (event.host == host && of_both(&event.action)).then(|| event.clone());
            [Some(event), copy.map(|copy| TimedEvent { host: index, ..copy })]
        });
        self.events = events.flatten().collect();
        self.hosts.push(new);
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

    /// The workloads of a virtual machine.
    pub fn workloads_of<'a>(&'a self, vm: &'a str) -> impl Iterator<Item = &'a Workload> {
        self.workloads.iter().filter(move |workload| workload.is_of(&self.hosts, vm))
    }

    /// Lets the workloads of a virtual machine have `most` I/Os outstanding together, each its part and
    /// one at least; one that has fewer keeps them.
    pub fn set_outstanding(&mut self, vm: &str, most: u32) {
        let all: u64 = self.workloads_of(vm).map(|own| u64::from(own.outstanding())).sum();
        let Self { hosts, workloads, .. } = self;
        for workload in workloads.iter_mut().filter(|workload| workload.is_of(hosts, vm)) {
            let (Arrival::Closed { threads: depth, .. }
            | Arrival::Open { outstanding_max: depth, .. }) = &mut workload.config.arrival;
            let part = u64::from(*depth) * u64::from(most) / all.max(1);
            *depth = u32::try_from(part).unwrap_or(most).clamp(1, *depth);
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
