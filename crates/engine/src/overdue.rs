//! Commands that the driver does not answer in time, so that a silent back end keeps no slot of a
//! path or an adapter from others.
//!
//! ```text
//!   Active --- timeout ---> Overdue --- as long again ---> WrittenOff     its guest waits
//!     \--- guest aborts --> Recalled -- twice as long ---> Orphan         its guest gave up
//! ```
//!
//! What is overdue is asked back. It is sent again, perhaps down another path, when the driver has
//! let go of it, and not before: there are never two copies. What is written off holds no slot any
//! more; its guest hears of it when the driver answers at last.
//!
//! The VMkernel's own command timeout is in no source; it is a stated parameter of the adapter, and
//! none by default (reference `esxi-host-stack.md` section 12). One timer a device, set anew when it
//! is due, and none for an I/O.

use core::cmp::Reverse;

use counters::{DeviceId, Status, Time, VdiskId};

use crate::{engine::Engine, retry::Timer, slab::State};

impl Engine {
    /// Looks after a device from now on, until it has nothing outstanding.
    #[cold]
    pub(crate) fn watch(&mut self, id: DeviceId) {
        let device = &mut self.devices[id.index()];
        device.needs_watch = false;
        self.timers.push(Reverse((self.now + device.timeout_ns, Timer::Watch(id))));
    }

    /// Deals with what is overdue on a device.
    pub(crate) fn look_after(&mut self, id: DeviceId) {
        let mut next = Time::NEVER;
        for disk in 0..self.vdisks.len() {
            if self.vdisks[disk].device != id {
                continue;
            }
            for seat in 0..self.vdisks[disk].inside.len() {
                let Some(io) = self.vdisks[disk].inside.at(seat) else { continue };
                if self.deadline(io) <= self.now {
                    self.pass_deadline(io);
                }
                next = next.min(self.deadline(io));
            }
        }
        for at in 0..self.devices[id.index()].selector.paths().len() {
            let path = self.devices[id.index()].selector.paths()[at];
            self.open_adapter(self.paths[path.index()].adapter);
            self.open_path(path);
        }
        self.pump(id);
        let device = &mut self.devices[id.index()];
        if device.active == 0 {
            device.needs_watch = true;
            return;
        }
        // What waits at a gate, or was just sent, has the whole time before it.
        let at = next.min(self.now + device.timeout_ns);
        self.timers.push(Reverse((at, Timer::Watch(id))));
    }

    /// When an I/O is to be asked back, or written off; never when the driver does not have it.
    fn deadline(&self, io: u32) -> Time {
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

    fn pass_deadline(&mut self, io: u32) {
        match self.ios[io].state {
            State::Overdue => self.write_off(io, State::WrittenOff),
            State::Recalled => self.write_off(io, State::Orphan),
            _ => {
                self.vdisks[usize::from(self.ios[io].vdisk)].counters.overdue += 1;
                self.ask_back(io, State::Overdue);
            }
        }
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
    pub(crate) fn answered_late(&mut self, io: u32, status: Status, array_ns: u64) {
        let now = self.now;
        let held = now - self.ios[io].since;
        self.extra_of(io).hold_ns += held;
        self.ios[io].since = now;
        let is_given_up = self.ios[io].state == State::Orphan;
        let mut lane = self.lane(io);
        lane.device.counters.held.leave(now);
        let status = lane.path.status_of(lane.io, status);
        let (vdisk, device, ..) = lane.ids();
        if is_given_up {
            self.end_recalled(io);
        } else if status.is_final() {
            lane.account(status, array_ns);
            lane.leave_kernel();
            self.end(io, status);
        } else {
            self.send_again(io, vdisk, device, status);
        }
        self.pump(device);
        self.open_guest(vdisk);
    }

    /// What a guest gives up while it is overdue has been asked for already.
    pub(crate) fn give_up(&mut self, io: u32, vdisk: VdiskId) {
        self.vdisks[vdisk.index()].counters.aborts += 1;
        self.ios[io].state = match self.ios[io].state {
            State::Overdue => State::Recalled,
            _ => State::Orphan,
        };
    }
}
