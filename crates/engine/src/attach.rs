//! Parts of a host that come and go while others run.
//!
//! An id belongs to one place for good: a virtual disk's to its adapter and device, a path's to its
//! device and adapter. What is attached with the next id of its noun is new; what was detached may be
//! attached again in its place, when nothing of it is under way any more. An id is never another's.
//!
//! What is detached takes nothing more. What it has under way goes on to its end, or is aborted in the
//! two steps of every abort, or, on a path, is sent again down another one.

use alloc::{string::String, vec, vec::Vec};

use counters::{AdapterId, DeviceId, GateCounters, PathId, VdiskId, VscsiId, WorldId};

use knobs::Knob;

use crate::{
    AdapterConfig, DeviceConfig, Error, HostConfig, Object, Part, PathConfig, Sink, VdiskConfig,
    VmConfig, VscsiConfig,
    adapter::Adapter,
    path::Path,
    slab::State,
    stack::Stack,
    vscsi::{Vdisk, Vscsi},
};

impl Stack {
    pub(crate) fn attach(&mut self, part: Part, out: &mut impl Sink) -> Result<(), Error> {
        let name = String::new();
        self.check_part(&part)?;
        match part {
            Part::Adapter { id, driver, lun_depth, depth, timeout_ns } => self
                .attach_adapter(id, &AdapterConfig { name, driver, lun_depth, depth, timeout_ns }),
            Part::Device { id, kind, dsnro, policy, path_policy } => self.attach_device(
                id,
                &DeviceConfig { name, kind, dsnro, policy, path_policy },
                out,
            ),
            Part::Path { id, device, adapter, access, up } => {
                self.attach_path(id, &PathConfig { name, device, adapter, access }, up, out)
            }
            Part::Vscsi { id, vm, controller, depth, max_transfer } => {
                self.attach_vscsi(id, &VscsiConfig { vm, controller, depth, max_transfer })
            }
            Part::Vdisk {
                id,
                vscsi,
                device,
                depth,
                max_transfer,
                allocation,
                powered_on,
                system,
                timeout_ns,
            } => {
                let vm = self.known_vscsi(vscsi)?.vm;
                let disk = VdiskConfig { name: name.clone(), vm, vscsi, device, depth, allocation };
                let vm = VmConfig { name, world: 0, system, powered_on, timeout_ns };
                self.attach_vdisk(id, &disk, max_transfer, &vm, out)
            }
        }
    }

    /// Whether a part has what one of a host can have.
    fn check_part(&self, part: &Part) -> Result<(), Error> {
        let none = |nanos: Option<u64>| nanos == Some(0);
        let (least, set) = match *part {
            Part::Adapter { lun_depth, depth, timeout_ns, .. } => {
                (lun_depth.min(depth).min(u32::from(!none(timeout_ns))), None)
            }
            Part::Device { id: device, dsnro, path_policy: policy, .. } => {
                (dsnro.unwrap_or(1), Some(Knob::PathPolicy { device, policy }))
            }
            Part::Path { .. } => return Ok(()),
            Part::Vscsi { depth, max_transfer, .. } => (depth.min(max_transfer), None),
            Part::Vdisk { id: vdisk, depth, max_transfer, allocation, timeout_ns, .. } => (
                depth.min(max_transfer).min(u32::from(!none(timeout_ns))),
                Some(Knob::Allocation { vdisk, allocation }),
            ),
        };
        at_least_one(least)?;
        let checked = set.map_or(Ok(()), |knob| knob.check(self.version));
        checked.map_err(|refusal| Error::Refused(refusal.into()))
    }

    fn attach_adapter(&mut self, id: AdapterId, config: &AdapterConfig) -> Result<(), Error> {
        match self.adapters.get_mut(id.index()) {
            None => push("adapter", id.index(), &mut self.adapters, Adapter::new(config))?,
            Some(known) if known.is_gone && known.is_idle() => {
                let counters = core::mem::take(&mut known.counters);
                *known = Adapter::new(config);
                known.counters = GateCounters { depth: config.depth, ..counters };
            }
            Some(_) => return Err(Error::InUse("adapter", id.index())),
        }
        self.refresh_pieces();
        Ok(())
    }

    fn attach_device(
        &mut self,
        id: DeviceId,
        config: &DeviceConfig,
        out: &mut impl Sink,
    ) -> Result<(), Error> {
        match self.devices.get(id.index()) {
            None => {
                let device = self.new_device(config);
                push("device", id.index(), &mut self.devices, device)?;
            }
            Some(known) if known.is_gone => {
                let fresh = self.new_device(config);
                self.devices[id.index()].take_over(fresh);
                self.devices[id.index()].sched.has_bounds = self.has_bounds(id);
            }
            Some(_) => return Err(Error::InUse("device", id.index())),
        }
        self.refresh_paths(id, out);
        self.refresh_timeout(id);
        self.apply_options(out);
        Ok(())
    }

    fn attach_path(
        &mut self,
        id: PathId,
        config: &PathConfig,
        up: bool,
        out: &mut impl Sink,
    ) -> Result<(), Error> {
        self.known_device(config.device)?;
        self.known_adapter(config.adapter)?;
        match self.paths.get_mut(id.index()) {
            None => {
                push("path", id.index(), &mut self.paths, Path::new(config))?;
                let device = &mut self.devices[config.device.index()];
                device.add_path(id, &mut self.paths[id.index()]);
            }
            Some(known) if known.is_gone && known.is_idle() && known.is_from_to(config) => {
                known.come_back(config);
            }
            Some(_) => return Err(Error::InUse("path", id.index())),
        }
        self.paths[id.index()].up = up;
        self.refresh_gates();
        self.refresh_paths(config.device, out);
        self.refresh_timeout(config.device);
        self.pump(config.device, out);
        Ok(())
    }

    fn attach_vscsi(&mut self, id: VscsiId, config: &VscsiConfig) -> Result<(), Error> {
        if config.vm.index() > self.vms {
            return Err(Error::Unknown("virtual machine", config.vm.index()));
        }
        match self.vscsi.get_mut(id.index()) {
            None => push("virtual adapter", id.index(), &mut self.vscsi, Vscsi::new(config))?,
            Some(known) if known.active == 0 && known.vm == config.vm => {
                *known = Vscsi::new(config)
            }
            Some(_) => return Err(Error::InUse("virtual adapter", id.index())),
        }
        self.vms = self.vms.max(config.vm.index() + 1);
        Ok(())
    }

    fn attach_vdisk(
        &mut self,
        id: VdiskId,
        config: &VdiskConfig,
        max_transfer: u32,
        vm: &VmConfig,
        out: &mut impl Sink,
    ) -> Result<(), Error> {
        self.known_device(config.device)?;
        let next = self.vdisks.len();
        match self.vdisks.get_mut(id.index()) {
            None if id.index() == next => {
                let shared = self.shared_world(config);
                self.add_vdisk(config, max_transfer, vm, shared);
            }
            None => return Err(Error::Unknown("virtual disk", id.index())),
            Some(known) if known.is_gone && known.is_idle() && known.is_from_to(config) => {
                known.come_back(config, max_transfer, vm);
            }
            Some(_) => return Err(Error::InUse("virtual disk", id.index())),
        }
        self.refresh_world(id);
        self.refresh_disk(id, out);
        self.refresh_timeout(config.device);
        // Its allocation may be one more of a world whose limit held what waits.
        self.pump(config.device, out);
        Ok(())
    }

    /// The world that a virtual disk has in common with one that is there.
    fn shared_world(&self, config: &VdiskConfig) -> Option<WorldId> {
        let is_beside = |disk: &&Vdisk| (disk.vm, disk.device) == (config.vm, config.device);
        let beside = self.vdisks.iter().find(is_beside);
        beside.map(|disk| disk.world).filter(|_| !self.version.schedules_per_file())
    }

    pub(crate) fn detach(
        &mut self,
        object: Object,
        drain: bool,
        out: &mut impl Sink,
    ) -> Result<(), Error> {
        match object {
            Object::Adapter(id) => {
                self.known_adapter(id)?;
                self.adapters[id.index()].is_gone = true;
                self.detach_paths(drain, |path| path.adapter == id, out);
            }
            Object::Device(id) => {
                self.known_device(id)?;
                let is_needed = |disk: &Vdisk| !disk.is_gone || !disk.is_idle();
                if self.vdisks.iter().any(|disk| disk.device == id && is_needed(disk)) {
                    return Err(Error::InUse("device", id.index()));
                }
                self.devices[id.index()].is_gone = true;
                self.detach_paths(drain, |path| path.device == id, out);
            }
            Object::Path(id) => {
                self.known_path(id)?;
                self.detach_path(id, drain, out);
            }
            Object::Vm(id) => {
                self.check_vm(id)?;
                for disk in (0..self.vdisks.len()).map(VdiskId::new) {
                    if self.vdisks[disk.index()].vm == id {
                        self.detach_vdisk(disk, drain, out);
                    }
                }
            }
            Object::Vdisk(id) => {
                self.known_vdisk(id)?;
                self.detach_vdisk(id, drain, out);
            }
        }
        Ok(())
    }

    /// Whether a part has nothing under way.
    pub(crate) fn is_idle(&self, object: Object) -> bool {
        let paths = |is_meant: &dyn Fn(&Path) -> bool| {
            self.paths.iter().filter(|path| is_meant(path)).all(Path::is_idle)
        };
        match object {
            Object::Adapter(id) => {
                let adapter = self.adapters.get(id.index());
                adapter.is_none_or(Adapter::is_idle) && paths(&|path| path.adapter == id)
            }
            Object::Device(id) => paths(&|path| path.device == id),
            Object::Path(id) => self.paths.get(id.index()).is_none_or(Path::is_idle),
            Object::Vm(id) => self.vdisks.iter().filter(|disk| disk.vm == id).all(Vdisk::is_idle),
            Object::Vdisk(id) => self.vdisks.get(id.index()).is_none_or(Vdisk::is_idle),
        }
    }

    fn detach_paths(&mut self, drain: bool, is_meant: impl Fn(&Path) -> bool, out: &mut impl Sink) {
        for id in (0..self.paths.len()).map(PathId::new) {
            if is_meant(&self.paths[id.index()]) {
                self.detach_path(id, drain, out);
            }
        }
    }

    fn detach_path(&mut self, id: PathId, drain: bool, out: &mut impl Sink) {
        let path = &mut self.paths[id.index()];
        let device = path.device;
        path.is_gone = true;
        path.losses = path.losses.wrapping_add(u16::from(!drain));
        self.refresh_paths(device, out);
        self.leave_path(id);
        if !drain {
            self.recall_from(id, device, out);
        }
        self.refresh_timeout(device);
        self.pump(device, out);
    }

    /// What the driver has of a path that is taken away is asked back, and goes again when that is answered.
    fn recall_from(&mut self, path: PathId, device: DeviceId, out: &mut impl Sink) {
        let disks = self.vdisks.iter().filter(|disk| disk.device == device);
        let inside: Vec<u32> = disks.flat_map(|disk| disk.inside.iter()).collect();
        for io in inside {
            let record = &self.ios[io];
            if record.path == path.0 && matches!(record.state, State::Active | State::InPieces) {
                self.ask_back(io, State::Overdue, out);
            }
        }
    }

    fn detach_vdisk(&mut self, id: VdiskId, drain: bool, out: &mut impl Sink) {
        let disk = &mut self.vdisks[id.index()];
        (disk.is_gone, disk.is_on) = (true, false);
        self.refresh_disk(id, out);
        if !drain {
            self.abort_disk(id, None, out);
        }
        self.refresh_world(id);
        self.restart(id, out);
    }

    fn known_adapter(&self, id: AdapterId) -> Result<(), Error> {
        let known = self.adapters.get(id.index()).filter(|adapter| !adapter.is_gone);
        known.map(|_| ()).ok_or(Error::Unknown("adapter", id.index()))
    }

    fn known_vscsi(&self, id: VscsiId) -> Result<&Vscsi, Error> {
        self.vscsi.get(id.index()).ok_or(Error::Unknown("virtual adapter", id.index()))
    }

    /// Works out anew how long commands to a device may take, and looks after them by that.
    fn refresh_timeout(&mut self, id: DeviceId) {
        let paths = self.paths.iter().filter(|path| path.device == id && !path.is_gone);
        let of_adapters = paths.filter_map(|path| self.adapters[path.adapter.index()].timeout_ns);
        let disks = self.vdisks.iter().filter(|disk| disk.device == id);
        let of_guests = disks.map(|disk| disk.timeout_ns).filter(|nanos| *nanos > 0);
        let timeout_ns = of_adapters.chain(of_guests).min().unwrap_or(0);
        if timeout_ns != self.devices[id.index()].timeout_ns {
            self.devices[id.index()].timeout_ns = timeout_ns;
            self.watch_at(id, self.now);
        }
    }
}

impl HostConfig {
    /// What is attached, in order, where an object of this host comes back to its place.
    #[must_use]
    pub fn parts(&self, object: Object) -> Vec<Part> {
        let paths = (0..).zip(&self.paths).map(|(id, path)| (PathId(id), path));
        let vdisks = (0..).zip(&self.vdisks).map(|(id, disk)| (VdiskId(id), disk));
        let all = |own: Option<Part>, paths: &mut dyn Iterator<Item = (PathId, &PathConfig)>| {
            own.into_iter().chain(paths.map(|(id, path)| path.part(id))).collect()
        };
        match object {
            Object::Adapter(id) => all(
                Some(self.adapters[id.index()].part(id)),
                &mut paths.filter(|(_, path)| path.adapter == id),
            ),
            Object::Device(id) => all(
                Some(self.devices[id.index()].part(id)),
                &mut paths.filter(|(_, path)| path.device == id),
            ),
            Object::Path(id) => vec![self.paths[id.index()].part(id)],
            Object::Vm(vm) => {
                let mine = vdisks.filter(|(_, disk)| disk.vm == vm);
                mine.map(|(id, disk)| self.part_of(id, disk)).collect()
            }
            Object::Vdisk(id) => vec![self.part_of(id, &self.vdisks[id.index()])],
        }
    }

    fn part_of(&self, id: VdiskId, disk: &VdiskConfig) -> Part {
        let VdiskConfig { vscsi, device, depth, allocation, vm, .. } = *disk;
        let max_transfer = self.vscsi[vscsi.index()].max_transfer;
        let VmConfig { powered_on, system, timeout_ns, .. } = self.vms[vm.index()];
        Part::Vdisk {
            id,
            vscsi,
            device,
            depth,
            max_transfer,
            allocation,
            powered_on,
            system,
            timeout_ns,
        }
    }
}

impl AdapterConfig {
    const fn part(&self, id: AdapterId) -> Part {
        let Self { driver, lun_depth, depth, timeout_ns, .. } = *self;
        Part::Adapter { id, driver, lun_depth, depth, timeout_ns }
    }
}

impl DeviceConfig {
    const fn part(&self, id: DeviceId) -> Part {
        let Self { kind, dsnro, policy, path_policy, .. } = *self;
        Part::Device { id, kind, dsnro, policy, path_policy }
    }
}

impl PathConfig {
    const fn part(&self, id: PathId) -> Part {
        let Self { device, adapter, access, .. } = *self;
        Part::Path { id, device, adapter, access, up: true }
    }
}

/// Adds what has the next id.
fn push<T>(noun: &'static str, index: usize, to: &mut Vec<T>, new: T) -> Result<(), Error> {
    if index != to.len() || index > usize::from(u16::MAX) {
        return Err(Error::Unknown(noun, index));
    }
    to.push(new);
    Ok(())
}

fn at_least_one(number: u32) -> Result<(), Error> {
    if number == 0 {
        return Err(Error::Refused(
            "a depth, a size or a time of 0 is none: allowed is 1 or more".into(),
        ));
    }
    Ok(())
}
