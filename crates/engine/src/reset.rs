//! Ends other than completion: aborts, power, reboots of guests and of the host, lost paths.

use alloc::vec::Vec;

use counters::{DeviceId, PathId, Status, VdiskId, VmId};

use crate::{
    Error, Output, Sink,
    slab::{Io, State, Times},
    stack::Stack,
    vscsi::Vdisk,
};

impl Stack {
    /// Ends every I/O of that tag; none is no error, since it may have completed meanwhile.
    pub(crate) fn abort(
        &mut self,
        id: VdiskId,
        tag: u32,
        out: &mut impl Sink,
    ) -> Result<(), Error> {
        self.ever_vdisk(id)?;
        self.abort_disk(id, Some(tag), out);
        self.restart(id, out);
        Ok(())
    }

    /// Ends every I/O of a virtual disk.
    pub(crate) fn reset(&mut self, id: VdiskId, out: &mut impl Sink) -> Result<(), Error> {
        self.ever_vdisk(id)?;
        self.vdisks[id.index()].counters.rare.get_mut().resets += 1;
        self.abort_disk(id, None, out);
        self.restart(id, out);
        Ok(())
    }

    /// What is detached may have something to abort.
    fn ever_vdisk(&self, id: VdiskId) -> Result<(), Error> {
        let known = self.vdisks.get(id.index()).map(|_| ());
        known.ok_or(Error::Unknown("virtual disk", id.index()))
    }

    pub(crate) fn power(&mut self, vm: VmId, on: bool, out: &mut impl Sink) -> Result<(), Error> {
        self.check_vm(vm)?;
        for id in (0..self.vdisks.len()).map(VdiskId::new) {
            if self.vdisks[id.index()].vm == vm && !self.vdisks[id.index()].is_gone {
                self.vdisks[id.index()].is_on = on;
                self.refresh_disk(id, out);
            }
        }
        if !on {
            self.abort_vm(vm, out);
        }
        Ok(())
    }

    /// Staged settings of the guest's drivers come into force.
    pub(crate) fn reboot_guest(&mut self, vm: VmId, out: &mut impl Sink) -> Result<(), Error> {
        self.check_vm(vm)?;
        self.abort_vm(vm, out);
        self.start_guest(vm);
        Ok(())
    }

    /// Staged settings of the host and of its guests come into force.
    pub(crate) fn reboot(&mut self, out: &mut impl Sink) {
        self.abort_disks(|_| true, out);
        self.options.reboot();
        for adapter in &mut self.adapters {
            adapter.lun_depth = adapter.staged_lun_depth;
        }
        for index in 0..self.vms {
            self.start_guest(VmId::new(index));
        }
        for index in 0..self.devices.len() {
            self.devices[index].competition.reset();
            self.devices[index].window = u32::MAX;
            self.devices[index].forget_depth();
            self.devices[index].refresh_room();
            self.refresh_base(DeviceId::new(index), out);
        }
        self.refresh_gates();
        self.apply_options(out);
    }

    fn start_guest(&mut self, vm: VmId) {
        for vscsi in self.vscsi.iter_mut().filter(|vscsi| vscsi.vm == vm) {
            vscsi.depth = vscsi.staged_depth;
        }
        for vdisk in self.vdisks.iter_mut().filter(|vdisk| vdisk.vm == vm) {
            vdisk.depth = vdisk.staged_depth;
        }
    }

    /// A path goes up or down. What was sent down it stays with the driver, which answers each command: what it knows to be
    /// lost as such, and that is sent again.
    pub(crate) fn set_path(
        &mut self,
        id: PathId,
        up: bool,
        out: &mut impl Sink,
    ) -> Result<(), Error> {
        let path = self.known_path(id)?;
        path.up = up;
        if up {
            path.is_lost = false;
        } else {
            path.losses = path.losses.wrapping_add(1);
        }
        let device = path.device;
        self.refresh_paths(device, out);
        if !up {
            self.leave_path(id);
        }
        self.pump(device, out);
        Ok(())
    }

    fn abort_vm(&mut self, vm: VmId, out: &mut impl Sink) {
        self.abort_disks(|vdisk| vdisk.vm == vm, out);
    }

    /// Ends every I/O of the disks that are wanted quiet, then fills the slots that this freed.
    fn abort_disks(&mut self, is_wanted: impl Fn(&Vdisk) -> bool, out: &mut impl Sink) {
        let all = (0..self.vdisks.len()).map(VdiskId::new);
        let wanted: Vec<_> = all.filter(|id| is_wanted(&self.vdisks[id.index()])).collect();
        wanted.iter().for_each(|id| self.abort_disk(*id, None, out));
        wanted.iter().for_each(|id| self.restart(*id, out));
    }

    /// Ends the I/Os of a virtual disk, or those of one tag. What the driver has is asked back, and
    /// its guest hears of it when the driver has answered: a late answer must not find the guest's
    /// memory in another use.
    pub(crate) fn abort_disk(&mut self, id: VdiskId, tag: Option<u32>, out: &mut impl Sink) {
        let mut ios = self.ios_of(id);
        ios.retain(|io| tag.is_none_or(|tag| self.ios[*io].tag == tag));
        ios.into_iter().for_each(|io| self.abort_io(io, id, out));
    }

    /// Every I/O of a virtual disk: those in the VMkernel, then those that wait in the guest.
    pub(crate) fn ios_of(&self, id: VdiskId) -> Vec<u32> {
        let disk = &self.vdisks[id.index()];
        disk.inside.iter().chain(disk.guest.iter(&self.ios)).collect()
    }

    pub(crate) fn abort_io(&mut self, io: u32, id: VdiskId, out: &mut impl Sink) {
        let counters = &mut self.vdisks[id.index()].counters;
        match self.ios[io].state {
            State::Active | State::InPieces => {
                counters.rare.get_mut().aborts += 1;
                self.ask_back(io, State::Recalled, out);
            }
            State::Overdue | State::WrittenOff => self.give_up(io, id),
            State::Recalled | State::Orphan => {}
            _ => {
                counters.rare.get_mut().aborts += 1;
                let times = self.take_out(io, id);
                self.vdisks[id.index()].aborted.add(&times);
                self.end(io, Status::Aborted, out);
            }
        }
    }

    /// Takes an I/O from where it waits, which is not with the driver, and says where its time went.
    pub(crate) fn take_out(&mut self, io: u32, id: VdiskId) -> Times {
        let (state, now) = (self.ios[io].state, self.now);
        let disk = &mut self.vdisks[id.index()];
        let device = &mut self.devices[disk.device.index()];
        match state {
            State::Guest => {
                disk.guest.remove(&mut self.ios, io);
                disk.counters.guest_queued.leave(now);
            }
            State::Queued => {
                disk.counters.queued.leave(now);
                device.queued -= 1;
                device.sched.remove(&mut self.worlds, &mut self.ios, disk.world, io);
            }
            State::Held => device.counters.held.leave(now),
            _ => {}
        }
        let (times, seat) = (self.times_of(io), self.ios[io].seat);
        let disk = &mut self.vdisks[id.index()];
        if state != State::Guest {
            disk.leave(&mut self.vscsi[disk.vscsi.index()], seat);
        }
        if self.ios[io].is_at_gate() {
            self.leave_gate(io);
        }
        times
    }

    /// Asks the driver for what it has. The slots are given back with its answer.
    pub(crate) fn ask_back(&mut self, io: u32, state: State, out: &mut impl Sink) {
        let record = &mut self.ios[io];
        record.state = state;
        let (path, extra) = (PathId(record.path), record.extra);
        if !self.is_in_pieces(io) {
            let io = self.ios.id_of(io);
            out.put(Output::Cancel { io, path });
            return;
        }
        for piece in self.extras[extra].pieces.iter(&self.ios) {
            let io = self.ios.id_of(piece);
            out.put(Output::Cancel { io, path });
        }
    }

    /// The driver answered what it was asked for: the guest hears that it was aborted, whatever the
    /// answer says.
    pub(crate) fn end_recalled(&mut self, io: u32, out: &mut impl Sink) {
        let times = self.times_of(io);
        let Io { vdisk, seat, .. } = self.ios[io];
        let disk = &mut self.vdisks[usize::from(vdisk)];
        disk.aborted.add(&times);
        disk.leave(&mut self.vscsi[disk.vscsi.index()], seat);
        self.end(io, Status::Aborted, out);
    }

    /// Fills the slots that aborts on a virtual disk freed: of its device, of the paths there, and
    /// its own.
    pub(crate) fn restart(&mut self, id: VdiskId, out: &mut impl Sink) {
        let device = self.vdisks[id.index()].device;
        for path in 0..self.devices[device.index()].selector.paths().len() {
            self.open_path(self.devices[device.index()].selector.paths()[path], out);
        }
        self.pump(device, out);
        self.open_guest(id, out);
    }
}
