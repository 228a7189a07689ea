//! The order in which an I/O meets the levels, written once:
//!
//! ```text
//!   submit -> [virtual disk, adapter ring] -> queue -> [device: DQLEN] -> [path] -> [adapter: AQLEN]
//!             else waits in the guest          else waits in its world            else waits there
//!          -> dispatch ... done -> the slots go to whoever waits, the last level first
//! ```
//!
//! The device comes before the adapter (ruling; CAP-A charges the wait to the device rows). What is cut
//! is in `pieces.rs`, what waits at a path or an adapter in `gates.rs`.

use counters::{DeviceId, IoId, Op, Status, VdiskId, VscsiId};

use knobs::Advanced;

use crate::{
    Error, Output, Request, Sink,
    device::Device,
    path::Way,
    slab::{Io, NONE, State},
    stack::Stack,
    vscsi::Vdisk,
};

impl Stack {
    /// A guest issues an I/O; its driver cuts what is larger than the adapter takes [VMB14].
    #[inline]
    pub(crate) fn submit(&mut self, request: Request, out: &mut impl Sink) -> Result<IoId, Error> {
        let id = request.vdisk.index();
        let vdisk = self.vdisks.get(id).ok_or(Error::Unknown("virtual disk", id))?;
        if !vdisk.takes_io {
            return self.submit_in_vain(request, out);
        }
        if request.bytes == 0 && request.op.needs_bytes() {
            return Err(Error::Empty);
        }
        Ok(self.take_in(request, out))
    }

    #[inline(always)]
    pub(crate) fn take_in(&mut self, request: Request, out: &mut impl Sink) -> IoId {
        let vdisk = &self.vdisks[request.vdisk.index()];
        let op = self.lock_of(vdisk, request.op);
        let request = Request { op, ..request };
        if request.bytes <= vdisk.max_transfer || !op.moves_data() {
            return self.admit(request, NONE, out);
        }
        let max = vdisk.max_transfer;
        self.submit_parts(request, max, out)
    }

    /// VMFS's lock by ATS becomes a reservation of the device where the host is told not to use ATS
    /// (reference `array-and-control.md` section 7.4). A guest's own commands stay what they are.
    #[inline]
    const fn lock_of(&self, vdisk: &Vdisk, op: Op) -> Op {
        match op {
            Op::Ats
                if vdisk.is_system
                    && self.options.get(Advanced::HardwareAcceleratedLocking) == 0 =>
            {
                Op::Reserve
            }
            _ => op,
        }
    }

    /// Into the VMkernel if the virtual disk and its adapter have room, else into the guest's
    /// queue.
    #[inline(always)]
    pub(crate) fn admit(&mut self, request: Request, extra: u32, out: &mut impl Sink) -> IoId {
        let now = self.now;
        let (io, record) = self.ios.insert(now, &request, extra);
        let name = record.id(io);
        let id = request.vdisk;
        let vdisk = &mut self.vdisks[id.index()];
        vdisk.counters.offered += 1;
        vdisk.waited_ns += now - record.submitted;
        let ring = &mut self.vscsi[vdisk.vscsi.index()];
        if vdisk.has_slot() && vdisk.guest.is_empty() && ring.has_room() {
            vdisk.enter(ring);
            self.queue(io, id, false, out);
            return name;
        }
        vdisk.counters.guest_queued.enter(now);
        vdisk.guest.push(&mut self.ios, io);
        if vdisk.has_slot() {
            vdisk.wait_for_ring(id, ring);
        }
        name
    }

    /// Into the queue of its world, and on if the device has a slot; `again` puts it at the front.
    #[inline(always)]
    pub(crate) fn queue(&mut self, io: u32, id: VdiskId, again: bool, out: &mut impl Sink) {
        let (id, device) = self.line_up(io, id, again);
        let (needs_watch, has_free_slot) = (device.needs_watch, device.has_free_slot());
        if needs_watch {
            self.watch(id);
        }
        if has_free_slot {
            self.pump(id, out);
        }
    }

    /// Into the queue of its world; gives its device.
    #[inline(always)]
    pub(crate) fn line_up(&mut self, io: u32, id: VdiskId, again: bool) -> (DeviceId, &Device) {
        let now = self.now;
        let vdisk = &mut self.vdisks[id.index()];
        vdisk.counters.queued.enter(now);
        let device = &mut self.devices[vdisk.device.index()];
        device.queued += 1;
        let record = &mut self.ios[io];
        record.state = State::Queued;
        record.since = now;
        if again {
            device.sched.push_again(&mut self.worlds, &mut self.ios, vdisk.world, io, now);
        } else {
            record.entered = now;
            record.seat = vdisk.inside.take(io);
            device.sched.push(&mut self.worlds, &mut self.ios, vdisk.world, io, now);
        }
        (vdisk.device, device)
    }

    /// [`Stack::fill`] where that is rare: its code is large.
    pub(crate) fn pump(&mut self, id: DeviceId, out: &mut impl Sink) {
        self.fill(id, out);
    }

    /// Gives free slots of a device to what waits for them: onto a path, and through the adapter if
    /// it has room.
    #[inline(always)]
    fn fill(&mut self, id: DeviceId, out: &mut impl Sink) {
        let now = self.now;
        loop {
            let device = &mut self.devices[id.index()];
            if !device.has_free_slot() {
                return;
            }
            let Some(io) = device.sched.pop(&mut self.worlds, &mut self.ios, now) else {
                return self.wake_for_limit(id);
            };
            let record = &mut self.ios[io];
            let vdisk = &mut self.vdisks[usize::from(record.vdisk)];
            vdisk.take_slot(now);
            if device.take_slot(vdisk.contender) {
                device.refresh_depth(id, now, out);
            }
            let chosen = device.selector.choose(&mut self.paths, now, record);
            let chosen = chosen.expect("a device without a path gives no slots");
            let path = &mut self.paths[chosen.index()];
            path.stays.taken += 1;
            (record.path, record.since) = (chosen.0, now);
            let needs_watch = device.needs_watch;
            if path.is_open() {
                path.counters.active.enter(now);
                let way = path.way(chosen);
                self.pass(io, way, out);
            } else {
                path.line_up(&mut self.ios, io, now);
            }
            if needs_watch {
                self.watch(id);
            }
        }
    }

    /// On from its path: to the driver, or in line where others wait for the adapter.
    #[inline(always)]
    pub(crate) fn pass(&mut self, io: u32, way: Way, out: &mut impl Sink) {
        let adapter = &mut self.adapters[way.adapter.index()];
        if adapter.is_open() {
            self.hand_over(io, way, out);
        } else {
            adapter.line_up(&mut self.ios, io, self.now);
        }
    }

    /// To the driver, cut into pieces where the wire takes no more.
    #[inline(always)]
    pub(crate) fn hand_over(&mut self, io: u32, way: Way, out: &mut impl Sink) {
        let adapter = &mut self.adapters[way.adapter.index()];
        adapter.counters.active.enter(self.now);
        let piece = self.split.piece(adapter.driver.transport);
        let record = &mut self.ios[io];
        record.hand_over(way.losses, self.now);
        if record.is_whole(piece) {
            out.put(Output::Dispatch(record.command(io, way.path)));
        } else {
            self.send_pieces(io, piece, out);
        }
    }

    /// The driver answered a command.
    #[inline]
    pub(crate) fn done(
        &mut self,
        id: IoId,
        status: Status,
        array_ns: u64,
        out: &mut impl Sink,
    ) -> Result<(), Error> {
        let mut status = status;
        if let Status::CheckCondition(sense) = status {
            status = self.sensed(id, sense, out);
        }
        let state = self.ios.state_of(id);
        if state == Some(State::Active) {
            self.answered(id.slot(), status, array_ns, out);
            return Ok(());
        }
        match state {
            Some(State::Piece) => self.piece_done(id.slot(), status, array_ns, out),
            Some(State::Recalled | State::Overdue | State::WrittenOff | State::Orphan)
                if !self.is_in_pieces(id.slot()) =>
            {
                self.answered_at_last(id.slot(), status, array_ns, out);
            }
            _ => return Err(Error::NotOutstanding(id)),
        }
        Ok(())
    }

    /// The driver let go of a command that it was asked to cancel.
    pub(crate) fn cancelled(&mut self, id: IoId, out: &mut impl Sink) -> Result<(), Error> {
        let io = match self.ios.state_of(id) {
            None | Some(State::Free | State::Left) => return Err(Error::NotOutstanding(id)),
            Some(State::Piece) => self.extras[self.ios[id.slot()].extra].io,
            Some(_) => id.slot(),
        };
        let status = match self.ios[io].state {
            State::Recalled | State::Orphan => Status::Aborted,
            // It may be sent again now.
            State::Overdue | State::WrittenOff => Status::PathLost,
            _ => return Err(Error::NotCancelled(id)),
        };
        self.done(id, status, 0, out)
    }

    /// Every piece of a command is back: it ends or is to be sent again, and its slots are free.
    #[inline(always)]
    pub(crate) fn answered(&mut self, io: u32, status: Status, array_ns: u64, out: &mut impl Sink) {
        let mut lane = self.lane(io);
        let status = lane.path.status_of(lane.io, status);
        lane.leave_slot();
        let depth_changed = lane.device.count_result(status);
        let gates_are_wanted = lane.gates_are_wanted();
        let (vdisk, device, path) = lane.ids();
        if lane.io.state == State::Recalled {
            self.pause_if_stalled(device);
            self.end_recalled(io, out);
        } else if status.is_final() {
            lane.account(status, array_ns);
            lane.leave_kernel();
            self.end(io, status, out);
        } else {
            self.send_again(io, vdisk, device, status, out);
        }
        if depth_changed {
            self.refresh_depth(device, out);
        }
        if gates_are_wanted {
            self.open_adapter(self.paths[path.index()].adapter, out);
            self.open_path(path, out);
        }
        self.fill(device, out);
        self.open_guest(vdisk, out);
    }

    /// The I/O goes back to the guest, and its record is free; the parts of a request that the
    /// guest's driver cut go together.
    #[inline]
    pub(crate) fn end(&mut self, io: u32, status: Status, out: &mut impl Sink) {
        let Io { vdisk, tag, extra, .. } = self.ios[io];
        let vdisk = VdiskId(vdisk);
        let request = self.ios.free(io);
        if extra == NONE {
            out.put(Output::Complete { request, vdisk, tag, status });
            return;
        }
        while let Some(left) = self.extras[extra].left.pop(&self.ios) {
            self.ios.free(left);
        }
        self.extras.remove(extra);
        let request = self.extras[extra].request;
        if request.slot() == io {
            out.put(Output::Complete { request, vdisk, tag, status });
        } else {
            self.end_part(request.slot(), status, out);
        }
    }

    /// Lets what waits in the guest enter. Disks that lack nothing but the ring take turns.
    #[inline]
    pub(crate) fn open_guest(&mut self, freed: VdiskId, out: &mut impl Sink) {
        let vdisk = &mut self.vdisks[freed.index()];
        let id = vdisk.vscsi;
        let ring = &mut self.vscsi[id.index()];
        let mut entered = None;
        if ring.waiting.is_empty() {
            if vdisk.guest.is_empty() {
                return;
            }
            entered = vdisk.enter_next(ring, &self.ios, self.now);
        }
        if vdisk.has_slot() && !vdisk.guest.is_empty() {
            vdisk.wait_for_ring(freed, ring);
        }
        let ring_is_wanted = !ring.waiting.is_empty();
        if let Some(io) = entered {
            self.queue(io, freed, false, out);
        }
        if ring_is_wanted {
            self.open_ring(id, out);
        }
    }

    fn open_ring(&mut self, id: VscsiId, out: &mut impl Sink) {
        loop {
            let ring = &mut self.vscsi[id.index()];
            if !ring.has_room() {
                return;
            }
            let Some(next) = ring.waiting.pop_front() else { return };
            let vdisk = &mut self.vdisks[next.index()];
            vdisk.waits_for_ring = false;
            let entered = vdisk.enter_next(ring, &self.ios, self.now);
            if vdisk.has_slot() && !vdisk.guest.is_empty() {
                vdisk.wait_for_ring(next, ring);
            }
            if let Some(io) = entered {
                self.queue(io, next, false, out);
            }
        }
    }
}
