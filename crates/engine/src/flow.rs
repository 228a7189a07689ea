//! The order in which an I/O meets the levels, written once:
//!
//! ```text
//!   submit -> [virtual disk, adapter ring] -> queue -> [device: DQLEN] -> [path] -> [adapter: AQLEN]
//!             else waits in the guest          else waits in its world            else waits there
//!          -> dispatch ... done -> the slots go to whoever waits, the last level first
//! ```
//!
//! The device comes before the adapter (ruling; CAP-A charges the wait to the device rows). The rules are
//! methods of the objects, which are looked up here once each. What is cut is in `pieces.rs`, what waits
//! at a path or an adapter in `gates.rs`, what is rare of a request and of an answer in `request.rs` and
//! `answer.rs`.

use counters::{DeviceId, IoId, Op, PathId, Status, VdiskId, VscsiId};

use crate::{
    Error, Output, Request, Sink,
    slab::{Io, NONE, State},
    stack::Stack,
    vscsi::{Next, Vdisk},
};

impl Stack {
    /// A guest issues an I/O.
    #[inline(always)]
    pub(crate) fn submit(&mut self, request: Request, out: &mut impl Sink) -> Result<IoId, Error> {
        let Request { vdisk, op, lba, bytes, waited_ns, tag } = request;
        let known = self.vdisks.get(vdisk.index());
        let fits = |disk: &Vdisk| disk.takes_io && (1..=disk.max_transfer).contains(&bytes);
        if op != Op::Ats && known.is_some_and(fits) {
            return Ok(self.admit(request, NONE, out));
        }
        // In parts, or each request would lie in memory for this rare way.
        self.submit_rarely((vdisk, op, tag), (lba, bytes, waited_ns), &mut out.again())
    }

    /// Into the VMkernel if the virtual disk and its adapter have room, else into the guest's
    /// queue.
    #[inline(always)]
    pub(crate) fn admit(&mut self, request: Request, extra: u32, out: &mut impl Sink) -> IoId {
        let now = self.now;
        let vdisk = &mut self.vdisks[request.vdisk.index()];
        let (io, ios) = self.ios.insert(now, &request, extra);
        let record = &ios[io as usize];
        let name = record.id(io);
        vdisk.take_in(now.after(record.submitted));
        // The ring is looked at by who lacks nothing else.
        let is_next = vdisk.guest.is_empty() && vdisk.has_slot();
        let ring = is_next.then(|| &mut self.vscsi[vdisk.vscsi.index()]);
        if let Some(ring) = ring.filter(|ring| ring.has_room()) {
            vdisk.enter(ring);
            self.queue(io, request.vdisk, false, &mut out.again());
        } else {
            vdisk.wait(ios, io, now);
            if vdisk.has_slot() {
                vdisk.wait_for_ring(request.vdisk, &mut self.vscsi[vdisk.vscsi.index()]);
            }
        }
        name
    }

    /// Into the queue of its world, and on if the device has a slot; `again` puts it at the front.
    #[inline(always)]
    pub(crate) fn queue(&mut self, io: u32, id: VdiskId, again: bool, out: &mut impl Sink) {
        let vdisk = &mut self.vdisks[id.index()];
        let id = vdisk.device;
        let device = &mut self.devices[id.index()];
        if again {
            device.line_up_again(vdisk, &mut self.worlds, &mut self.ios, io, self.now);
        } else {
            let entrant = vdisk.line_up(io, self.now);
            device.line_up(&mut self.worlds, &mut self.ios, entrant, self.now);
        }
        if device.is_wanted() {
            self.start(id, &mut out.again());
        }
    }

    /// What lined up at a device begins to matter: it is looked after, and gets a slot if one is free.
    fn start(&mut self, id: DeviceId, out: &mut impl Sink) {
        if self.devices[id.index()].needs_watch {
            self.watch(id);
        }
        self.pump(id, out);
    }

    /// The driver answered a command.
    #[inline(always)]
    pub(crate) fn done(
        &mut self,
        id: IoId,
        status: Status,
        array_ns: u64,
        out: &mut impl Sink,
    ) -> Result<(), Error> {
        let is_good = status == Status::Good && self.ios.state_of(id) == Some(State::Active);
        if !is_good {
            return self.done_rarely(id, status, array_ns, &mut out.again());
        }
        self.answered(id.slot(), Status::Good, array_ns, out);
        Ok(())
    }

    /// Every piece of a command is back: it ends or is to be sent again, and its slots are free.
    #[inline(always)]
    pub(crate) fn answered(&mut self, io: u32, status: Status, array_ns: u64, out: &mut impl Sink) {
        let mut lane = self.lane(io);
        let is_recalled = lane.io.state == State::Recalled;
        lane.leave_slot();
        let depth_changed = lane.count_result(status);
        let opens = depth_changed | lane.gates_are_wanted();
        let (vdisk, device, path) = lane.ids();
        let mut next = None;
        if is_recalled {
            self.pause_if_stalled(device);
            self.end_recalled(io, &mut out.again());
        } else if status.is_final() {
            next = Some(lane.hand_on());
            lane.account(status, array_ns);
            self.end(io, status, out);
        } else {
            self.send_again(io, vdisk, device, status, &mut out.again());
        }
        if opens {
            self.open_gates(depth_changed, device, path, &mut out.again());
        }
        let mut dispatcher = self.dispatcher(device);
        if let Some(left) = dispatcher.give_slot(out) {
            self.pump_on(device, left, &mut out.again());
            dispatcher = self.dispatcher(device);
        }
        let Some(Next { entrant, ring }) = next else {
            return self.open_guest(vdisk, &mut out.again());
        };
        if entrant.io != NONE && dispatcher.line_up(entrant) {
            self.start(device, &mut out.again());
        }
        if let Some(ring) = ring {
            self.open_ring(ring, &mut out.again());
        }
    }

    /// A limit may have changed, and what waits at a path or an adapter passes.
    #[cold]
    fn open_gates(
        &mut self,
        depth_changed: bool,
        device: DeviceId,
        path: PathId,
        out: &mut impl Sink,
    ) {
        if depth_changed {
            self.refresh_depth(device, out);
        }
        self.open_adapter(self.paths[path.index()].adapter, out);
        self.open_path(path, out);
    }

    /// The I/O goes back to the guest, and its record is free.
    #[inline(always)]
    pub(crate) fn end(&mut self, io: u32, status: Status, out: &mut impl Sink) {
        let Io { vdisk, tag, extra, .. } = self.ios[io];
        let request = self.ios.free(io);
        if extra == NONE {
            out.put(Output::Complete { request, vdisk: VdiskId(vdisk), tag, status });
        } else {
            self.end_of_extra(io, status, &mut out.again());
        }
    }

    /// Lets what waits in the guest enter, where nothing ended.
    pub(crate) fn open_guest(&mut self, freed: VdiskId, out: &mut impl Sink) {
        let vdisk = &mut self.vdisks[freed.index()];
        let ring = &mut self.vscsi[vdisk.vscsi.index()];
        let Next { entrant, ring } = vdisk.let_in(freed, ring, &self.ios, self.now);
        let device = vdisk.device;
        if entrant.io != NONE && self.dispatcher(device).line_up(entrant) {
            self.start(device, out);
        }
        if let Some(ring) = ring {
            self.open_ring(ring, out);
        }
    }

    /// Disks that wait for the ring have their turns.
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
            vdisk.may_wait_for_ring(next, ring);
            if let Some(io) = entered {
                self.queue(io, next, false, out);
            }
        }
    }
}
