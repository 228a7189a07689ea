//! Commands that take too long: for the host, so that a silent back end keeps no slot of a path or an
//! adapter from others, and for the guest.
//!
//! ```text
//!   Active --- timeout ---> Overdue --- as long again ---> WrittenOff     its guest waits
//!     \--- guest aborts --> Recalled -- twice as long ---> Orphan         its guest gave up
//! ```
//!
//! What is overdue is asked back, and its path is left if there is another. It is sent again when the
//! driver has let go of it, and not before: there are never two copies. When it does not, the device
//! is reset, and what is written off holds no slot any more; its guest hears of it when the driver
//! answers at last. The VMkernel's own command timeout is in no source; it is a stated parameter of
//! the adapter, and none by default (reference `esxi-host-stack.md` section 12).
//!
//! A guest aborts what has been in its virtual adapter for its own timeout, and resets the disk each
//! time that as long again passes and what it aborted has not ended [KB-TO; section 12]. How long it
//! waits for an abort is in no source (ruling). It looks once a second, and [`LOOKS`] times in its timeout at least (ruling):
//! one that aborted to the nanosecond would fall in step with an IOPS limit, which lets go the oldest of all.
//!
//! One timer a device, set anew when it is due, and none for an I/O.

use alloc::vec::Vec;

use counters::{DeviceId, PathId, SECOND, Status, Time, VdiskId};

use crate::{
    Output, Sink,
    slab::{Io, State},
    stack::Stack,
    timer::Timer,
};

/// How often a guest looks after its commands in its timeout, at least.
const LOOKS: u64 = 16;

impl Stack {
    /// Looks after a device from now on, until it has nothing outstanding.
    #[cold]
    pub(crate) fn watch(&mut self, id: DeviceId) {
        self.watch_at(id, self.now + self.devices[id.index()].timeout_ns);
    }

    /// Looks after it then, and at no other time that was set before.
    pub(crate) fn watch_at(&mut self, id: DeviceId, at: Time) {
        let device = &mut self.devices[id.index()];
        device.needs_watch = false;
        device.watch_at = at;
        self.timers.set(at, Timer::Watch(id));
    }

    /// Deals with what is overdue on a device.
    pub(crate) fn look_after(&mut self, id: DeviceId, at: Time, out: &mut impl Sink) {
        if self.devices[id.index()].watch_at != at {
            return;
        }
        let disks = (0..self.vdisks.len()).map(VdiskId::new);
        let mine: Vec<_> = disks.filter(|disk| self.vdisks[disk.index()].device == id).collect();
        let (mut next, mut is_silent) = (Time::NEVER, false);
        for &disk in &mine {
            self.reset_if_stuck(disk, out);
            is_silent |= self.look_after_disk(disk, &mut next, out);
            next = next.min(self.vdisks[disk.index()].resets_at);
        }
        if is_silent {
            self.devices[id.index()].counters.resets += 1;
            out.put(Output::Reset { device: id });
            self.hold_back(id);
        }
        for at in 0..self.devices[id.index()].selector.paths().len() {
            let path = self.devices[id.index()].selector.paths()[at];
            self.open_adapter(self.paths[path.index()].adapter, out);
            self.open_path(path, out);
        }
        mine.iter().for_each(|disk| self.restart(*disk, out));
        let device = &mut self.devices[id.index()];
        if next == Time::NEVER && device.active == 0 || device.timeout_ns == 0 {
            device.needs_watch = device.timeout_ns > 0;
            device.watch_at = Time::NEVER;
            return;
        }
        // What waits at a gate, or was just sent, has the whole time before it.
        let at = next.min(self.now + device.timeout_ns);
        self.watch_at(id, at);
    }

    /// What does not answer is sent one command at a time until it does, and what waits at its gates goes back to its queue:
    /// the slots that were written off are for others behind its adapters. Each answer makes room for one more, as with a
    /// full array.
    fn hold_back(&mut self, id: DeviceId) {
        let device = &mut self.devices[id.index()];
        device.window = device.window.min(1);
        device.refresh_room();
        for at in 0..self.devices[id.index()].selector.paths().len() {
            self.leave_path(self.devices[id.index()].selector.paths()[at]);
        }
    }

    /// The same of a virtual disk, and when the first of its I/Os wants it again. `true` when the
    /// driver does not even let go of what it was asked for.
    fn look_after_disk(&mut self, id: VdiskId, next: &mut Time, out: &mut impl Sink) -> bool {
        let mut is_silent = false;
        for seat in 0..self.vdisks[id.index()].inside.len() {
            let of_seat = |engine: &Self| engine.vdisks[id.index()].inside.at(seat);
            if let Some(io) = of_seat(self).filter(|io| self.given_up_at(*io) <= self.now) {
                self.abort_io(io, id, out);
                let disk = &mut self.vdisks[id.index()];
                disk.resets_at = disk.resets_at.min(self.now + disk.timeout_ns);
            }
            let Some(io) = of_seat(self) else { continue };
            if self.deadline(io) <= self.now {
                is_silent |= self.pass_deadline(io, out);
            }
            *next = self.deadline(io).min(self.given_up_at(io)).min(*next);
        }
        is_silent
    }

    /// A guest whose aborts did not help resets its disk.
    fn reset_if_stuck(&mut self, id: VdiskId, out: &mut impl Sink) {
        let disk = &mut self.vdisks[id.index()];
        if disk.resets_at > self.now {
            return;
        }
        if disk
            .inside
            .iter()
            .any(|io| matches!(self.ios[io].state, State::Recalled | State::Orphan))
        {
            disk.resets_at = self.now + disk.timeout_ns;
            disk.counters.rare.get_mut().resets += 1;
            self.abort_disk(id, None, out);
        } else {
            disk.resets_at = Time::NEVER;
        }
    }

    /// When its guest aborts an I/O; never where it does not keep the time, or has aborted it.
    pub(crate) fn given_up_at(&self, io: u32) -> Time {
        let record = &self.ios[io];
        let timeout_ns = self.vdisks[usize::from(record.vdisk)].timeout_ns;
        match record.state {
            State::Guest | State::Recalled | State::Orphan => Time::NEVER,
            _ if timeout_ns == 0 => Time::NEVER,
            _ => {
                let beat = (timeout_ns / LOOKS).clamp(1, SECOND);
                let overdue = (record.entered + timeout_ns).0;
                Time(overdue.div_ceil(beat).saturating_mul(beat))
            }
        }
    }

    /// When an I/O is to be asked back, or written off; never when the driver does not have it.
    pub(crate) fn deadline(&self, io: u32) -> Time {
        let record = &self.ios[io];
        let path = &self.paths[usize::from(record.path)];
        let Some(timeout_ns) = self.adapters[path.adapter.index()].timeout_ns else {
            return Time::NEVER;
        };
        match record.state {
            State::Active | State::InPieces => record.since + timeout_ns,
            State::Overdue | State::Recalled => record.since + timeout_ns * 2,
            _ => Time::NEVER,
        }
    }

    /// `true` when it is written off.
    fn pass_deadline(&mut self, io: u32, out: &mut impl Sink) -> bool {
        match self.ios[io].state {
            State::Overdue => self.write_off(io, State::WrittenOff),
            State::Recalled => self.write_off(io, State::Orphan),
            _ => {
                let Io { vdisk, path, .. } = self.ios[io];
                let disk = &mut self.vdisks[usize::from(vdisk)];
                disk.counters.rare.get_mut().overdue += 1;
                let selector = &mut self.devices[disk.device.index()].selector;
                selector.avoid(PathId(path), &mut self.paths);
                self.ask_back(io, State::Overdue, out);
                return false;
            }
        }
        true
    }

    /// Takes its slots from it. It stays in the VMkernel, so what is left of its wait is KAVG.
    fn write_off(&mut self, io: u32, state: State) {
        let now = self.now;
        let mut lane = self.lane(io);
        lane.leave_slot();
        lane.device.counters.held.enter(now);
        let spent = now - self.ios[io].since;
        self.extra_of(io).device_ns += spent;
        self.ios[io].since = now;
        self.ios[io].state = state;
    }

    /// The driver answers what was written off.
    pub(crate) fn answered_late(
        &mut self,
        io: u32,
        status: Status,
        array_ns: u64,
        out: &mut impl Sink,
    ) {
        let now = self.now;
        let held = now - self.ios[io].since;
        self.extra_of(io).hold_ns += held;
        self.ios[io].since = now;
        let is_given_up = self.ios[io].state == State::Orphan;
        let mut lane = self.lane(io);
        lane.device.counters.held.leave(now);
        let (vdisk, device, _) = lane.ids();
        if is_given_up {
            self.end_recalled(io, out);
        } else if status.is_final() {
            lane.leave_kernel();
            lane.account(status, array_ns);
            self.end(io, status, out);
        } else {
            self.send_again(io, vdisk, device, status, out);
        }
        self.pump(device, out);
        self.open_guest(vdisk, out);
    }

    /// What a guest gives up while it is overdue has been asked for already.
    pub(crate) fn give_up(&mut self, io: u32, vdisk: VdiskId) {
        self.vdisks[vdisk.index()].counters.rare.get_mut().aborts += 1;
        self.ios[io].state = match self.ios[io].state {
            State::Overdue => State::Recalled,
            _ => State::Orphan,
        };
    }
}
