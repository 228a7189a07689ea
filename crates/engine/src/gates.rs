//! Waiting for a path or an adapter with a slot of the device in hand: who passes when there is room,
//! and who leaves.

use counters::{AdapterId, PathId};

use crate::{Sink, path::Way, slab::State, stack::Stack};

impl Stack {
    /// On from its path: to the driver, or in line where others wait for the adapter.
    pub(crate) fn pass(&mut self, io: u32, way: Way, out: &mut impl Sink) {
        if self.adapters[way.adapter.index()].enter(&mut self.ios, io, self.now) {
            self.hand_over(io, way, out);
        }
    }

    /// To the driver, cut into pieces where the wire takes no more.
    pub(crate) fn hand_over(&mut self, io: u32, way: Way, out: &mut impl Sink) {
        let adapter = &mut self.adapters[way.adapter.index()];
        if !adapter.hand_over(&mut self.ios[io], io, way, self.now, out) {
            self.send_pieces(io, out);
        }
    }

    /// Lets what waits at an adapter pass, as far as it has room.
    pub(crate) fn open_adapter(&mut self, id: AdapterId, out: &mut impl Sink) {
        loop {
            let adapter = &mut self.adapters[id.index()];
            if !adapter.has_room() {
                return;
            }
            let Some(io) = adapter.queue.pop(&self.ios) else { return };
            adapter.counters.queued.leave(self.now);
            self.end_wait(io);
            let path = PathId(self.ios[io].path);
            self.hand_over(io, self.paths[path.index()].way(path), out);
        }
    }

    /// Lets what waits for a path pass, as far as it has room.
    pub(crate) fn open_path(&mut self, id: PathId, out: &mut impl Sink) {
        loop {
            let path = &mut self.paths[id.index()];
            if !path.has_room() {
                return;
            }
            let Some(io) = path.queue.pop(&self.ios) else { return };
            path.counters.queued.leave(self.now);
            path.counters.active.enter(self.now);
            let way = path.way(id);
            self.end_wait(io);
            self.pass(io, way, out);
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
            State::AtPath => stays.path_ns = stays.path_ns.wrapping_add(waited),
            _ => stays.adapter_ns = stays.adapter_ns.wrapping_add(waited),
        }
        if waited > 0 {
            let gate_ns = &mut self.vdisks[vdisk].gate_ns;
            *gate_ns = gate_ns.wrapping_add(waited);
            self.extra_of(io).gate_ns += waited;
        }
    }

    /// Gives up its slot of the device while it waits for its path or at the adapter.
    pub(crate) fn leave_gate(&mut self, io: u32) {
        let now = self.now;
        let (vdisk, device, path) = self.lane(io).ids();
        self.end_wait(io);
        let path = &mut self.paths[path.index()];
        path.stays.left += 1;
        if self.ios[io].state == State::AtPath {
            path.counters.queued.leave(now);
            path.queue.remove(&mut self.ios, io);
        } else {
            path.counters.active.leave(now);
            let adapter = &mut self.adapters[path.adapter.index()];
            adapter.counters.queued.leave(now);
            adapter.queue.remove(&mut self.ios, io);
        }
        self.vdisks[vdisk.index()].counters.slots.leave(now);
        self.devices[device.index()].active -= 1;
    }

    /// What waits for a path that went down takes another one, in the order in which it came: the
    /// last one is put in front of the queue first.
    pub(crate) fn leave_path(&mut self, id: PathId) {
        let path = &self.paths[id.index()];
        let adapter = &self.adapters[path.adapter.index()];
        for queue in [path.queue, adapter.queue] {
            let mut next = queue.tail();
            while let Some(io) = next {
                next = queue.before(&self.ios, io);
                if self.ios[io].path == id.0 {
                    self.leave_gate(io);
                    let vdisk = &mut self.vdisks[usize::from(self.ios[io].vdisk)];
                    let device = &mut self.devices[vdisk.device.index()];
                    device.line_up_again(vdisk, &mut self.worlds, &mut self.ios, io, self.now);
                }
            }
        }
    }
}
