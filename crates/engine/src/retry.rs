//! What is sent again: BUSY, TASK SET FULL, reservation conflicts and lost paths, and what is done
//! when a timer is due.

use counters::{DeviceId, IoId, MILLISECOND, Status, Time, VdiskId};

use knobs::{Advanced, CONFLICT_RETRIES, CONFLICT_RETRY_NS, STALLED_QUEUE_MS};

use crate::{
    Sink,
    device::Device,
    slab::{Extra, NONE, State},
    stack::Stack,
    timer::Timer,
};

impl Extra {
    /// Adds the answer to a piece. The longest latency counts, and the worst result: one that
    /// sending again does not mend before one that it does, the last of several.
    pub(crate) fn collect(&mut self, status: Status, array_ns: u64) -> (Status, u64) {
        let has_failed = self.status != Status::Good && self.status.is_final();
        if status != Status::Good && (status.is_final() || !has_failed) {
            self.status = status;
        }
        self.array_ns = self.array_ns.max(array_ns);
        (self.status, self.array_ns)
    }
}

impl Stack {
    /// Sends a command again, at once or after the wait that its result asks for. It has given up
    /// its slot and stays in the VMkernel, so the wait is KAVG.
    pub(crate) fn send_again(
        &mut self,
        io: u32,
        vdisk: VdiskId,
        device: DeviceId,
        why: Status,
        out: &mut impl Sink,
    ) {
        let spent = self.now - self.ios[io].since;
        let extra = self.extra_of(io);
        extra.device_ns += spent;
        extra.retries += 1;
        extra.status = Status::Good;
        let retries = extra.retries;
        self.ios.renew(io);
        self.ios[io].since = self.now;
        self.pause_if_stalled(device);
        if let Some(status) = self.refusal_of(vdisk) {
            return self.fail(io, status, out);
        }
        match why {
            Status::Busy => self.hold(io, self.busy_hold_ns()),
            Status::ReservationConflict => {
                self.vdisks[vdisk.index()].counters.rare.get_mut().conflicts += 1;
                if retries > CONFLICT_RETRIES {
                    self.fail(io, why, out);
                } else {
                    self.hold(io, CONFLICT_RETRY_NS);
                }
            }
            _ => self.queue(io, vdisk, true, out),
        }
    }

    /// Ends an I/O that has had a path and holds no slot.
    fn fail(&mut self, io: u32, status: Status, out: &mut impl Sink) {
        let mut lane = self.lane(io);
        lane.leave_kernel();
        lane.account(status, 0);
        self.end(io, status, out);
    }

    /// A full array has nothing of this device that could complete.
    pub(crate) fn pause_if_stalled(&mut self, id: DeviceId) {
        let device = &mut self.devices[id.index()];
        if device.window == 0 {
            // Nothing can go before that, whatever was to be woken for.
            device.wake_at = Time::NEVER;
            self.wake(self.now + STALLED_QUEUE_MS.default_ns(), id);
        }
    }

    /// At 0 the command goes again after a millisecond, the option's unit: an array that refuses at
    /// once would be asked for ever at one and the same instant (ruling).
    fn busy_hold_ns(&self) -> u64 {
        u64::from(self.options.get(Advanced::DelayOnBusy).max(1)) * MILLISECOND
    }

    fn hold(&mut self, io: u32, nanos: u64) {
        let until = self.now + nanos;
        self.ios[io].state = State::Held;
        self.ios[io].since = self.now;
        let id = self.vdisks[usize::from(self.ios[io].vdisk)].device;
        self.devices[id.index()].counters.held.enter(self.now);
        self.timers.set(until, Timer::Again(self.ios.id_of(io), id));
    }

    /// Asks for a wake-up when the first limit of a device lets something go.
    pub(crate) fn wake_for_limit(&mut self, id: DeviceId) {
        if let Some(at) = self.devices[id.index()].sched.next_release(&self.worlds) {
            self.wake(at, id);
        }
    }

    fn wake(&mut self, at: Time, id: DeviceId) {
        let device = &mut self.devices[id.index()];
        if at < device.wake_at {
            device.wake_at = at;
            self.timers.set(at, Timer::Device(id));
        }
    }

    /// Does what is due by now.
    pub(crate) fn run_timers(&mut self, out: &mut impl Sink) {
        while let Some((at, timer)) = self.timers.take_due(self.now) {
            match timer {
                Timer::Device(id) => self.device_due(id, at, out),
                Timer::Again(io, _) => self.hold_ended(io, out),
                Timer::Watch(id) => self.look_after(id, at, out),
                Timer::Apd(id) => self.apd_due(id, at, out),
                Timer::Probe(id) => self.probe_due(id, at, out),
            }
        }
    }

    /// A timer that an earlier one took the place of means nothing: it would only set another,
    /// and the two would go on beside each other.
    fn device_due(&mut self, id: DeviceId, at: Time, out: &mut impl Sink) {
        let device = &mut self.devices[id.index()];
        if device.wake_at != at {
            return;
        }
        device.wake_at = Time::NEVER;
        if device.window == 0 {
            device.make_room();
        }
        self.pump(id, out);
    }

    /// A probe that is over by then, or was switched off, has a timer that means nothing.
    fn probe_due(&mut self, id: DeviceId, at: Time, out: &mut impl Sink) {
        let now = self.now;
        let knee = self.devices[id.index()].knee.as_mut();
        if knee.is_some_and(|knee| knee.expire(at, now)) {
            self.refresh_depth(id, out);
            self.pump(id, out);
        }
    }

    /// When a held I/O was aborted meanwhile, its timer means nothing: its id has ended.
    fn hold_ended(&mut self, id: IoId, out: &mut impl Sink) {
        if self.ios.state_of(id) != Some(State::Held) {
            return;
        }
        let io = id.slot();
        let held = self.now - self.ios[io].since;
        self.extra_of(io).hold_ns += held;
        let vdisk = VdiskId(self.ios[io].vdisk);
        let now = self.now;
        self.device_of(vdisk).counters.held.leave(now);
        self.queue(io, vdisk, true, out);
    }

    /// The device of a virtual disk.
    pub(crate) fn device_of(&mut self, vdisk: VdiskId) -> &mut Device {
        &mut self.devices[self.vdisks[vdisk.index()].device.index()]
    }

    /// The [`Extra`] of an I/O, made when it has none.
    pub(crate) fn extra_of(&mut self, io: u32) -> &mut Extra {
        if self.ios[io].extra == NONE {
            self.ios[io].extra = self.extras.insert(Extra::new(self.ios.id_of(io)));
        }
        &mut self.extras[self.ios[io].extra]
    }
}
