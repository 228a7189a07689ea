//! The order in which an I/O meets the levels, written once:
//!
//! ```text
//!   submit -> [virtual disk, adapter ring] -> queue -> [device: DQLEN] -> [path] -> [adapter: AQLEN]
//!             else waits in the guest          else waits in its world            else waits there
//!          -> dispatch ... done -> the slots go to whoever waits, the last level first
//! ```
//!
//! The device comes before the adapter (ruling; CAP-A charges the wait to the device rows).

use counters::{AdapterId, DeviceId, IoId, Op, PathId, Status, VdiskId, VscsiId};

use knobs::Advanced;

use crate::{
    Dispatch, Error, Output, Request,
    engine::Engine,
    slab::{Extra, Io, NONE, Parent, State},
    split,
};

impl Engine {
    /// A guest issues an I/O; its driver cuts what is larger than the adapter takes [VMB14].
    #[inline]
    pub(crate) fn submit(&mut self, request: Request) -> Result<(), Error> {
        let vdisk = self.known_vdisk(request.vdisk)?;
        if !vdisk.is_on {
            return Err(Error::PoweredOff);
        }
        if request.bytes == 0 {
            return Err(Error::Empty);
        }
        let request = Request { op: self.lock_of(request.op), ..request };
        if request.bytes <= vdisk.max_transfer {
            self.admit(request, NONE);
        } else {
            let max = vdisk.max_transfer;
            self.submit_parts(request, max);
        }
        Ok(())
    }

    /// A lock by ATS becomes a reservation of the device where the host is told not to use ATS
    /// (reference `array-and-control.md` section 7.4).
    #[inline]
    const fn lock_of(&self, op: Op) -> Op {
        match op {
            Op::Ats if self.options.get(Advanced::HardwareAcceleratedLocking) == 0 => Op::Reserve,
            _ => op,
        }
    }

    fn submit_parts(&mut self, request: Request, max: u32) {
        let children = request.bytes.div_ceil(max);
        let (tag, status) = (request.tag, Status::Good);
        let parent = self.parents.insert(|| Parent { tag, children, status });
        let mut lba = request.lba;
        for bytes in split::pieces(request.bytes, max) {
            let extra = self.extras.insert(|| Extra { parent, ..Extra::default() });
            self.admit(Request { lba, bytes, ..request }, extra);
            lba = lba.wrapping_add(u64::from(bytes) / 512);
        }
    }

    /// Into the VMkernel if the virtual disk and its adapter have room, else into the guest's
    /// queue.
    #[inline]
    fn admit(&mut self, request: Request, extra: u32) {
        let now = self.now;
        let io = self.ios.insert(|| Io::new(now, &request, extra));
        let id = request.vdisk;
        let vdisk = &mut self.vdisks[id.index()];
        vdisk.counters.offered += 1;
        vdisk.waited_ns += now - self.ios[io].submitted;
        let ring = &mut self.vscsi[vdisk.vscsi.index()];
        if vdisk.has_slot() && vdisk.guest.is_empty() && ring.has_room() {
            vdisk.enter(ring);
            self.queue(io, id, false);
            return;
        }
        vdisk.counters.guest_queued.enter(now);
        vdisk.guest.push(&mut self.ios, io);
        if vdisk.has_slot() {
            vdisk.wait_for_ring(id, ring);
        }
    }

    /// Into the queue of its world; `again` puts it at the front.
    #[inline]
    pub(crate) fn queue(&mut self, io: u32, id: VdiskId, again: bool) {
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
            device.sched.push(&mut self.worlds, &mut self.ios, vdisk.world, io, now);
        }
        if device.has_free_slot(now) {
            let device = vdisk.device;
            self.pump(device);
        }
    }

    /// Gives free slots of a device to what waits for them.
    pub(crate) fn pump(&mut self, id: DeviceId) {
        loop {
            let device = &mut self.devices[id.index()];
            if !device.has_free_slot(self.now) {
                return;
            }
            let Some(io) = device.sched.pop(&mut self.worlds, &self.ios, self.now) else {
                self.wake_for_limit(id);
                return;
            };
            self.take_slot(id, io);
        }
    }

    /// Into a slot of the device, onto a path, and through the adapter if it has room.
    #[inline]
    fn take_slot(&mut self, id: DeviceId, io: u32) {
        let now = self.now;
        let record = &mut self.ios[io];
        let vdisk = &mut self.vdisks[usize::from(record.vdisk)];
        vdisk.counters.queued.leave(now);
        vdisk.counters.slots.enter(now);
        let device = &mut self.devices[id.index()];
        device.queued -= 1;
        device.active += 1;
        device.taken += 1;
        let path = device.selector.choose(&mut self.paths, now, record.bytes);
        record.path = path.expect("a device without a path gives no slots").0;
        if device.competition.count(vdisk.contender) {
            device.refresh_depth(id, now, &mut self.outputs);
        }
        record.since = now;
        let path = &mut self.paths[usize::from(record.path)];
        path.stays.taken += 1;
        let adapter = &mut self.adapters[path.adapter.index()];
        if !path.is_open() {
            record.state = State::AtPath;
            path.counters.queued.enter(now);
            path.queue.push(&mut self.ios, io);
            return;
        }
        path.counters.active.enter(now);
        if adapter.is_open() {
            record.hand_over(path.losses, adapter, now);
            let piece = self.split.piece(adapter.driver.transport);
            self.send(io, piece);
        } else {
            adapter.line_up(&mut self.ios, io, now);
        }
    }

    /// To the driver, cut into pieces where the wire takes no more.
    #[inline]
    fn send(&mut self, io: u32, piece: u32) {
        let record = &self.ios[io];
        if record.bytes <= piece {
            self.outputs.push(Output::Dispatch(record.command(io)));
        } else {
            self.send_pieces(io, piece);
        }
    }

    fn send_pieces(&mut self, io: u32, piece: u32) {
        self.extra_of(io);
        let command = self.ios[io].command(io);
        let pieces = command.bytes.div_ceil(piece);
        self.ios[io].pieces = pieces as u16;
        let path = &mut self.paths[command.path.index()];
        path.counters.count_split(pieces);
        self.adapters[path.adapter.index()].counters.count_split(pieces);
        let mut offset = 0;
        for bytes in split::pieces(command.bytes, piece) {
            self.outputs.push(Output::Dispatch(Dispatch { offset, bytes, ..command }));
            offset += bytes;
        }
    }

    /// The driver answered a command or a piece of one.
    #[inline]
    pub(crate) fn done(
        &mut self,
        id: IoId,
        mut status: Status,
        mut array_ns: u64,
    ) -> Result<(), Error> {
        let record = self.ios.get_mut(id.0).filter(|io| io.is_with_driver());
        let record = record.ok_or(Error::NotOutstanding(id))?;
        record.pieces -= 1;
        let (left, is_orphan) = (record.pieces, record.state == State::Orphan);
        if record.extra != NONE {
            (status, array_ns) = self.extras[record.extra].collect(status, array_ns);
        }
        if left > 0 {
            return Ok(());
        }
        if is_orphan {
            self.free(id.0);
        } else {
            self.answered(id.0, status, array_ns);
        }
        Ok(())
    }

    /// Every piece of a command is back: it ends or is to be sent again, and its slots are free.
    #[inline]
    fn answered(&mut self, io: u32, status: Status, array_ns: u64) {
        let mut lane = self.lane(io);
        let status = lane.path.status_of(lane.io, status);
        lane.leave_slot();
        let depth_changed = lane.device.count_result(status);
        let adapter_waits = !lane.adapter.queue.is_empty();
        let path_waits = !lane.path.queue.is_empty();
        let (vdisk, device, path, adapter) = lane.ids();
        if status.is_final() {
            lane.account(status, array_ns);
            lane.leave_kernel();
            self.end(io, status);
        } else {
            self.send_again(io, vdisk, device, status);
        }
        if depth_changed {
            self.refresh_depth(device);
        }
        if adapter_waits {
            self.open_adapter(adapter);
        }
        if path_waits {
            self.open_path(path);
        }
        self.pump(device);
        self.open_guest(vdisk);
    }

    /// The I/O goes back to the guest, and its record is free.
    #[inline]
    pub(crate) fn end(&mut self, io: u32, status: Status) {
        self.complete(io, status);
        self.free(io);
    }

    /// Tells the guest; the parts of an I/O that the guest's driver cut go together.
    #[inline]
    pub(crate) fn complete(&mut self, io: u32, status: Status) {
        let record = &self.ios[io];
        let (vdisk, tag, extra) = (VdiskId(record.vdisk), record.tag, record.extra);
        if extra == NONE || self.extras[extra].parent == NONE {
            self.outputs.push(Output::Complete { vdisk, tag, status });
        } else {
            self.complete_part(vdisk, self.extras[extra].parent, status);
        }
    }

    fn complete_part(&mut self, vdisk: VdiskId, parent: u32, status: Status) {
        let whole = &mut self.parents[parent];
        whole.children -= 1;
        if status != Status::Good {
            whole.status = status;
        }
        if whole.children == 0 {
            let Parent { tag, status, .. } = *whole;
            self.parents.remove(parent);
            self.outputs.push(Output::Complete { vdisk, tag, status });
        }
    }

    /// Lets what waits at an adapter pass, as far as it has room.
    pub(crate) fn open_adapter(&mut self, id: AdapterId) {
        loop {
            let adapter = &mut self.adapters[id.index()];
            if !adapter.has_room() {
                return;
            }
            let Some(io) = adapter.queue.pop(&self.ios) else { return };
            adapter.counters.queued.leave(self.now);
            self.end_wait(io);
            self.pass_adapter(io);
        }
    }

    /// Lets what waits for a path pass, as far as it has room.
    pub(crate) fn open_path(&mut self, id: PathId) {
        loop {
            let path = &mut self.paths[id.index()];
            if !path.has_room() {
                return;
            }
            let Some(io) = path.queue.pop(&self.ios) else { return };
            path.counters.queued.leave(self.now);
            path.counters.active.enter(self.now);
            let adapter = path.adapter;
            self.end_wait(io);
            let adapter = &mut self.adapters[adapter.index()];
            if adapter.is_open() {
                self.pass_adapter(io);
            } else {
                adapter.line_up(&mut self.ios, io, self.now);
            }
        }
    }

    /// A wait at its path or at the adapter is over; it is counted apart.
    pub(crate) fn end_wait(&mut self, io: u32) {
        let record = &mut self.ios[io];
        let waited = self.now - record.since;
        record.since = self.now;
        let (state, vdisk) = (record.state, usize::from(record.vdisk));
        let stays = &mut self.paths[usize::from(record.path)].stays;
        match state {
            State::AtPath => stays.path_ns += waited,
            _ => stays.adapter_ns += waited,
        }
        if waited > 0 {
            self.vdisks[vdisk].gate_ns += waited;
            self.extra_of(io).gate_ns += waited;
        }
    }

    /// To the driver after a wait.
    fn pass_adapter(&mut self, io: u32) {
        let record = &mut self.ios[io];
        let path = &self.paths[usize::from(record.path)];
        let adapter = &mut self.adapters[path.adapter.index()];
        record.hand_over(path.losses, adapter, self.now);
        let piece = self.split.piece(adapter.driver.transport);
        self.send(io, piece);
    }

    /// Lets what waits in the guest enter. Disks that lack nothing but the ring take turns.
    #[inline]
    pub(crate) fn open_guest(&mut self, freed: VdiskId) {
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
            self.queue(io, freed, false);
        }
        if ring_is_wanted {
            self.open_ring(id);
        }
    }

    fn open_ring(&mut self, id: VscsiId) {
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
                self.queue(io, next, false);
            }
        }
    }
}
