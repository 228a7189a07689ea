//! Ends other than completion: aborts, power, reboots of guests and of the host, lost paths.

use counters::{IoId, PathId, Status, VdiskId, VmId};

use crate::{
    Error, Event, Output,
    engine::{Engine, adapter_ids},
    slab::State,
};

impl Engine {
    /// Ends every I/O of that tag; none is no error, since it may have completed meanwhile.
    pub(crate) fn abort(&mut self, vdisk: VdiskId, tag: u32) -> Result<(), Error> {
        self.known_vdisk(vdisk)?;
        self.abort_where(|engine, io| engine.ios[io].vdisk == vdisk.0 && engine.ios[io].tag == tag);
        Ok(())
    }

    pub(crate) fn power(&mut self, vm: VmId, on: bool) -> Result<(), Error> {
        self.check_vm(vm)?;
        for vdisk in self.vdisks.iter_mut().filter(|vdisk| vdisk.vm == vm) {
            vdisk.is_on = on;
        }
        if !on {
            self.abort_vm(vm);
        }
        Ok(())
    }

    /// Staged settings of the guest's drivers come into force.
    pub(crate) fn reboot_guest(&mut self, vm: VmId) -> Result<(), Error> {
        self.check_vm(vm)?;
        self.abort_vm(vm);
        self.start_guest(vm);
        Ok(())
    }

    /// Staged settings of the host and of its guests come into force.
    pub(crate) fn reboot(&mut self) {
        self.abort_where(|_, _| true);
        self.options.reboot();
        for adapter in &mut self.adapters {
            adapter.lun_depth = adapter.staged_lun_depth;
        }
        for index in 0..self.vms {
            self.start_guest(VmId::new(index));
        }
        for index in 0..self.devices.len() {
            self.devices[index].competition.reset();
            self.refresh_base(counters::DeviceId::new(index));
        }
        self.refresh_gates();
        self.apply_options();
    }

    fn start_guest(&mut self, vm: VmId) {
        for vscsi in self.vscsi.iter_mut().filter(|vscsi| vscsi.vm == vm) {
            vscsi.depth = vscsi.staged_depth;
        }
        for vdisk in self.vdisks.iter_mut().filter(|vdisk| vdisk.vm == vm) {
            vdisk.depth = vdisk.staged_depth;
        }
    }

    /// A path goes up or down. What was sent down it and has not come back is sent again when its
    /// answer would have come.
    pub(crate) fn set_path(&mut self, id: PathId, up: bool) -> Result<(), Error> {
        let path = self.paths.get_mut(id.index()).ok_or(Error::Unknown("path", id.index()))?;
        path.up = up;
        if !up {
            path.losses = path.losses.wrapping_add(1);
        }
        let device = path.device;
        let state = &mut self.devices[device.index()];
        state.selector.refresh(&self.paths);
        if !state.selector.has_path() {
            self.outputs.push(Output::Event(Event::AllPathsDown { device }));
        }
        self.refresh_base(device);
        if !up {
            self.leave_path(id);
        }
        self.pump(device);
        Ok(())
    }

    fn abort_vm(&mut self, vm: VmId) {
        self.abort_where(|engine, io| engine.vdisks[usize::from(engine.ios[io].vdisk)].vm == vm);
    }

    /// Ends every I/O that is wanted gone, wherever it is, then fills the slots that this freed.
    fn abort_where(&mut self, is_wanted: impl Fn(&Self, u32) -> bool) {
        for io in self.ios.indices() {
            let is_alive = !matches!(self.ios[io].state, State::Free | State::Orphan);
            if is_alive && is_wanted(self, io) {
                self.abort_one(io);
            }
        }
        adapter_ids(self).for_each(|id| self.open_adapter(id));
        for index in 0..self.paths.len() {
            self.open_path(PathId::new(index));
        }
        for index in 0..self.devices.len() {
            self.pump(counters::DeviceId::new(index));
        }
        for index in 0..self.vdisks.len() {
            self.open_guest(VdiskId::new(index));
        }
    }

    fn abort_one(&mut self, io: u32) {
        let (state, vdisk) = (self.ios[io].state, VdiskId(self.ios[io].vdisk));
        let times = self.times_of(io);
        let disk = &mut self.vdisks[vdisk.index()];
        disk.counters.aborts += 1;
        disk.aborted.add(&times);
        match state {
            State::Guest => {
                disk.guest.remove(&mut self.ios, io);
                disk.counters.guest_queued.leave(self.now);
            }
            State::Queued => {
                disk.counters.queued.leave(self.now);
                let world = disk.world;
                let device = &mut self.devices[disk.device.index()];
                device.queued -= 1;
                device.sched.remove(&mut self.worlds, &mut self.ios, world, io);
            }
            State::AtPath | State::AtAdapter => self.leave_gate(io),
            State::Active => return self.recall(io),
            State::Held => {
                let now = self.now;
                self.device_of(vdisk).counters.held.leave(now);
            }
            State::Free | State::Orphan => {}
        }
        if state != State::Guest {
            let disk = &mut self.vdisks[vdisk.index()];
            disk.leave(&mut self.vscsi[disk.vscsi.index()]);
        }
        self.end(io, Status::Aborted);
    }

    /// Gives up its slot of the device while it waits for its path or at the adapter.
    fn leave_gate(&mut self, io: u32) {
        let now = self.now;
        let (vdisk, device, path, adapter) = self.lane(io).ids();
        self.end_wait(io);
        let path = &mut self.paths[path.index()];
        path.stays.left += 1;
        if self.ios[io].state == State::AtPath {
            path.counters.queued.leave(now);
            path.queue.remove(&mut self.ios, io);
        } else {
            path.counters.active.leave(now);
            let adapter = &mut self.adapters[adapter.index()];
            adapter.counters.queued.leave(now);
            adapter.queue.remove(&mut self.ios, io);
        }
        self.vdisks[vdisk.index()].counters.slots.leave(now);
        self.devices[device.index()].active -= 1;
    }

    /// What waits for a path that went down takes another one.
    fn leave_path(&mut self, id: PathId) {
        for io in self.ios.indices() {
            let record = &self.ios[io];
            if record.is_at_gate() && record.path == id.0 {
                let vdisk = VdiskId(record.vdisk);
                self.leave_gate(io);
                self.queue(io, vdisk, true);
            }
        }
    }

    /// What the driver has is recalled; its record stays until the answers have come.
    fn recall(&mut self, io: u32) {
        let mut lane = self.lane(io);
        lane.leave_slot();
        lane.leave_kernel();
        let path = PathId(self.ios[io].path);
        self.outputs.push(Output::Cancel { io: IoId(io), path });
        self.complete(io, Status::Aborted);
        self.ios[io].state = State::Orphan;
    }
}
