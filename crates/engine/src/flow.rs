//! The order in which an I/O meets the levels, written once:
//!
//! ```text
//!   submit -> [virtual disk, adapter ring] -> queue -> [device: DQLEN] -> [path] -> [adapter: AQLEN]
//!             else waits in the guest          else waits in its world            else waits there
//!          -> dispatch ... done -> the slots go to whoever waits, the last level first
//! ```
//!
//! The device comes before the adapter (ruling; CAP-A charges the wait to the device rows).

use counters::{AdapterId, DeviceId, IoId, PathId, Status, VdiskId};

use crate::{
    Dispatch, Error, Output, Request,
    engine::Engine,
    slab::{Extra, Io, NONE, Parent, State},
    split,
};

impl Engine {
    /// A guest issues an I/O; its driver cuts what is larger than the adapter takes [VMB14].
    pub(crate) fn submit(&mut self, request: Request) -> Result<(), Error> {
        let vdisk = self.known_vdisk(request.vdisk)?;
        if !self.vms[vdisk.vm.index()].is_on {
            return Err(Error::PoweredOff);
        }
        if request.bytes == 0 {
            return Err(Error::Empty);
        }
        let max = self.vscsi[vdisk.vscsi.index()].max_transfer;
        if request.bytes <= max {
            self.admit(request, NONE);
            return Ok(());
        }
        let children = request.bytes.div_ceil(max);
        let parent =
            self.parents.insert(Parent { tag: request.tag, children, status: Status::Good });
        let mut lba = request.lba;
        for bytes in split::pieces(request.bytes, max) {
            let extra = self.extras.insert(Extra { parent, ..Extra::default() });
            self.admit(Request { lba, bytes, ..request }, extra);
            lba = lba.wrapping_add(u64::from(bytes) / 512);
        }
        Ok(())
    }

    fn admit(&mut self, request: Request, extra: u32) {
        let io = self.ios.insert(Io {
            submitted: self.now,
            entered: self.now,
            since: self.now,
            tag: request.tag,
            next: NONE,
            bytes: request.bytes,
            block: (request.lba / 8) as u32,
            extra,
            vdisk: request.vdisk.0,
            path: 0,
            pieces: 0,
            op: request.op,
            state: State::Guest,
        });
        let counters = &mut self.counters.vdisks[request.vdisk.index()];
        let vdisk = &mut self.vdisks[request.vdisk.index()];
        let vscsi = &self.vscsi[vdisk.vscsi.index()];
        let has_slot = counters.active.now() < vdisk.depth;
        if has_slot && vdisk.guest.is_empty() && vscsi.has_room() {
            self.enter(io, request.vdisk);
            return;
        }
        counters.guest_queued.enter(self.now);
        vdisk.guest.push(&mut self.ios, io);
        self.wait_for_ring(request.vdisk);
    }

    /// From the guest into the VMkernel.
    fn enter(&mut self, io: u32, vdisk: VdiskId) {
        let record = &mut self.ios[io];
        record.entered = self.now;
        self.counters.vdisks[vdisk.index()].active.enter(self.now);
        self.vscsi[self.vdisks[vdisk.index()].vscsi.index()].active += 1;
        self.queue(io, vdisk, false);
    }

    /// Into the queue of its world; `again` puts it at the front.
    pub(crate) fn queue(&mut self, io: u32, vdisk: VdiskId, again: bool) {
        let (world, device) = {
            let disk = &self.vdisks[vdisk.index()];
            (disk.world, disk.device)
        };
        self.ios[io].state = State::Queued;
        self.ios[io].since = self.now;
        self.counters.vdisks[vdisk.index()].queued.enter(self.now);
        self.counters.devices[device.index()].queued.enter(self.now);
        let sched = &mut self.devices[device.index()].sched;
        if again {
            sched.push_again(&mut self.worlds, &mut self.ios, world, io, self.now);
        } else {
            sched.push(&mut self.worlds, &mut self.ios, world, io, self.now);
        }
        self.pump(device);
    }

    /// Gives free slots of a device to what waits for them.
    pub(crate) fn pump(&mut self, id: DeviceId) {
        loop {
            let counters = &self.counters.devices[id.index()];
            let is_full = counters.active.now() >= counters.depth;
            let device = &mut self.devices[id.index()];
            if counters.queued.now() == 0 || is_full || !device.selector.has_path() {
                return;
            }
            if self.now < device.full_until {
                return;
            }
            let Some((_, io)) = device.sched.pop(&mut self.worlds, &self.ios, self.now) else {
                self.wake_for_limit(id);
                return;
            };
            self.take_slot(id, io);
        }
    }

    /// Into a slot of the device, onto a path, and through the adapter if it has room.
    fn take_slot(&mut self, id: DeviceId, io: u32) {
        let record = &mut self.ios[io];
        let vdisk = &mut self.counters.vdisks[usize::from(record.vdisk)];
        vdisk.queued.leave(self.now);
        vdisk.slots.enter(self.now);
        let counters = &mut self.counters.devices[id.index()];
        counters.queued.leave(self.now);
        counters.active.enter(self.now);
        let contender = self.contenders[usize::from(record.vdisk)];
        let device = &mut self.devices[id.index()];
        let path = device.selector.choose(&mut self.paths, self.now, record.bytes);
        let path = path.expect("a device without a path gives no slots");
        record.path = path.0;
        record.since = self.now;
        if device.competition.count(contender) {
            self.refresh_depth(id);
        }
        let adapter = self.paths[path.index()].adapter;
        if self.adapters[adapter.index()].queue.is_empty() && self.adapter_has_room(adapter) {
            self.dispatch(io, adapter);
            return;
        }
        self.ios[io].state = State::Gated;
        self.adapters[adapter.index()].queue.push(&mut self.ios, io);
        self.counters.adapters[adapter.index()].queued.enter(self.now);
        self.counters.paths[path.index()].queued.enter(self.now);
    }

    fn adapter_has_room(&self, id: AdapterId) -> bool {
        self.counters.adapters[id.index()].active.now() < self.adapters[id.index()].depth
    }

    /// To the driver, cut into pieces where the wire takes no more.
    fn dispatch(&mut self, io: u32, adapter: AdapterId) {
        let piece = self.split.piece(self.adapters[adapter.index()].driver.transport);
        let record = &mut self.ios[io];
        record.state = State::Active;
        record.since = self.now;
        record.pieces = 1;
        let (bytes, path) = (record.bytes, PathId(record.path));
        let command =
            Dispatch { io: IoId(io), vdisk: VdiskId(record.vdisk), path, op: record.op, offset: 0, bytes };
        self.counters.paths[path.index()].active.enter(self.now);
        self.counters.adapters[adapter.index()].active.enter(self.now);
        if bytes <= piece {
            self.outputs.push_back(Output::Dispatch(command));
        } else {
            self.dispatch_pieces(command, piece, adapter);
        }
    }

    fn dispatch_pieces(&mut self, command: Dispatch, piece: u32, adapter: AdapterId) {
        let io = command.io.0;
        self.extra_of(io);
        let pieces = command.bytes.div_ceil(piece);
        self.ios[io].pieces = pieces as u16;
        let mut offset = 0;
        for bytes in split::pieces(command.bytes, piece) {
            self.outputs.push_back(Output::Dispatch(Dispatch { offset, bytes, ..command }));
            offset += bytes;
        }
        let gates = [
            &mut self.counters.paths[command.path.index()],
            &mut self.counters.adapters[adapter.index()],
        ];
        for gate in gates {
            gate.split_commands += 1;
            gate.split_copies += u64::from(pieces);
        }
    }

    /// The driver answered a command or a piece of one.
    pub(crate) fn done(&mut self, id: IoId, status: Status, array_ns: u64) -> Result<(), Error> {
        let io = id.0;
        let outstanding =
            self.ios.get(io).is_some_and(|r| matches!(r.state, State::Active | State::Orphan));
        if !outstanding {
            return Err(Error::NotOutstanding(id));
        }
        let record = &mut self.ios[io];
        record.pieces -= 1;
        let (left, extra, is_orphan) = (record.pieces, record.extra, record.state == State::Orphan);
        let (mut status, mut array_ns) = (status, array_ns);
        if extra != NONE {
            (status, array_ns) = self.extras[extra].collect(status, array_ns);
        }
        if left > 0 {
            return Ok(());
        }
        if is_orphan {
            self.free(io);
        } else {
            self.answered(io, status, array_ns);
        }
        Ok(())
    }

    /// Every piece of a command is back: it ends or is to be sent again, and its slots are free.
    fn answered(&mut self, io: u32, status: Status, array_ns: u64) {
        let vdisk = VdiskId(self.ios[io].vdisk);
        let path = PathId(self.ios[io].path);
        let device = self.vdisks[vdisk.index()].device;
        let adapter = self.paths[path.index()].adapter;
        let status = self.status_by_path(io, path, status);
        self.leave_slot(vdisk, device, path, adapter);
        self.count_result(device, status);
        match status {
            Status::Good | Status::CheckCondition | Status::Aborted => {
                self.account(io, status, array_ns);
                self.finish(io, status);
            }
            Status::Busy | Status::TaskSetFull | Status::ReservationConflict | Status::PathLost => {
                self.send_again(io, status)
            }
        }
        self.open_adapter(adapter);
        self.pump(device);
        self.open_guest(vdisk);
    }

    pub(crate) fn leave_slot(
        &mut self,
        vdisk: VdiskId,
        device: DeviceId,
        path: PathId,
        adapter: AdapterId,
    ) {
        self.counters.vdisks[vdisk.index()].slots.leave(self.now);
        self.counters.devices[device.index()].active.leave(self.now);
        self.counters.paths[path.index()].active.leave(self.now);
        self.counters.adapters[adapter.index()].active.leave(self.now);
    }

    /// The I/O goes back to the guest; the parts of one that the guest's driver cut go together.
    pub(crate) fn finish(&mut self, io: u32, status: Status) {
        let record = &self.ios[io];
        let (vdisk, extra, tag) = (VdiskId(record.vdisk), record.extra, record.tag);
        self.counters.vdisks[vdisk.index()].active.leave(self.now);
        self.vscsi[self.vdisks[vdisk.index()].vscsi.index()].active -= 1;
        let parent = if extra == NONE { NONE } else { self.extras[extra].parent };
        self.free(io);
        self.complete(vdisk, tag, parent, status);
    }

    /// Tells the guest, once the last part is back.
    pub(crate) fn complete(&mut self, vdisk: VdiskId, tag: u32, parent: u32, status: Status) {
        if parent == NONE {
            self.outputs.push_back(Output::Complete { vdisk, tag, status });
            return;
        }
        let whole = &mut self.parents[parent];
        whole.children -= 1;
        if status != Status::Good {
            whole.status = status;
        }
        if whole.children == 0 {
            let Parent { tag, status, .. } = *whole;
            self.parents.remove(parent);
            self.outputs.push_back(Output::Complete { vdisk, tag, status });
        }
    }

    /// Lets what waits at an adapter pass, as far as it has room.
    pub(crate) fn open_adapter(&mut self, id: AdapterId) {
        while self.adapter_has_room(id) {
            let Some(io) = self.adapters[id.index()].queue.pop(&self.ios) else { return };
            self.counters.adapters[id.index()].queued.leave(self.now);
            self.counters.paths[usize::from(self.ios[io].path)].queued.leave(self.now);
            let waited = self.now - self.ios[io].since;
            if waited > 0 {
                self.extra_of(io).gate_ns += waited;
            }
            self.dispatch(io, id);
        }
    }

    /// Lets what waits in the guest enter: the disks that lack nothing but the ring, in turn.
    pub(crate) fn open_guest(&mut self, freed: VdiskId) {
        let vscsi = self.vdisks[freed.index()].vscsi.index();
        self.wait_for_ring(freed);
        while self.vscsi[vscsi].has_room() {
            let Some(id) = self.vscsi[vscsi].waiting.pop_front() else { return };
            let vdisk = &mut self.vdisks[id.index()];
            vdisk.waits_for_ring = false;
            let Some(io) = vdisk.guest.pop(&self.ios) else { continue };
            self.counters.vdisks[id.index()].guest_queued.leave(self.now);
            self.enter(io, id);
            self.wait_for_ring(id);
        }
    }

    /// Puts a disk in line for the ring if it has something to send and a slot of its own.
    fn wait_for_ring(&mut self, id: VdiskId) {
        let vdisk = &mut self.vdisks[id.index()];
        let has_slot = self.counters.vdisks[id.index()].active.now() < vdisk.depth;
        if has_slot && !vdisk.guest.is_empty() && !vdisk.waits_for_ring {
            vdisk.waits_for_ring = true;
            self.vscsi[vdisk.vscsi.index()].waiting.push_back(id);
        }
    }
}
