//! What is cut: a request that is larger than its adapter takes into parts, by the guest's driver; a
//! command that is larger than the wire takes into pieces, below the level that esxtop counts.

use counters::{IoId, PathId, Status, VdiskId};

use crate::{
    Dispatch, Output, Request, Sink,
    slab::{Extra, Io, NONE, State},
    split,
    stack::Stack,
};

/// Bytes of a block, in which places on a virtual disk are kept.
const BLOCK: u32 = 4096;

impl Stack {
    /// A request in parts of `max` bytes at most, each an I/O of its own.
    pub(crate) fn submit_parts(&mut self, request: Request, max: u32, out: &mut impl Sink) -> IoId {
        let (whole, ios) = self.ios.insert(self.now, &request, NONE);
        ios[whole as usize].state = State::Whole;
        let parts = request.bytes.div_ceil(max);
        self.extra_of(whole).parts = parts;
        self.vdisks[request.vdisk.index()].further_parts += u64::from(parts - 1);
        let id = self.ios.id_of(whole);
        let mut part = request;
        for bytes in split::pieces(request.bytes, max) {
            let offset = request.bytes - part.bytes;
            let extra = self.extras.insert(Extra { offset, ..Extra::new(id) });
            self.extras[extra].io = self.admit_rarely(Request { bytes, ..part }, extra, out).slot();
            part.lba = part.lba.wrapping_add(u64::from(bytes) / 512);
            part.bytes -= bytes;
        }
        id
    }

    /// What is no request of its own, or more than the wire takes.
    #[cold]
    pub(crate) fn send_pieces(&mut self, io: u32, out: &mut impl Sink) {
        let command = self.command(io);
        let adapter = self.paths[command.path.index()].adapter;
        let piece = self.adapters[adapter.index()].piece_max;
        self.extra_of(io).array_ns = 0;
        if self.has_left(io) {
            self.send_left(io, command, piece, out);
        } else if command.bytes <= piece || !command.op.moves_data() {
            out.put(Output::Dispatch(command));
        } else {
            let pieces = command.bytes.div_ceil(piece);
            self.paths[command.path.index()].counters.count_split(pieces);
            self.adapters[adapter.index()].counters.count_split(pieces);
            self.cut(io, command, piece, out);
        }
    }

    /// Of a command that was cut only what was not moved is sent again: an array that takes fewer
    /// commands than it has pieces gets it done in turns.
    fn send_left(&mut self, io: u32, command: Dispatch, piece: u32, out: &mut impl Sink) {
        let extra = self.ios[io].extra;
        while let Some(left) = self.extras[extra].left.pop(&self.ios) {
            let Io { block: offset, bytes, .. } = self.ios[left];
            self.ios.free(left);
            let block = command.block.wrapping_add(offset.wrapping_sub(command.offset) / BLOCK);
            self.cut(io, Dispatch { block, offset, bytes, ..command }, piece, out);
        }
    }

    fn cut(&mut self, io: u32, mut command: Dispatch, piece: u32, out: &mut impl Sink) {
        self.ios[io].state = State::InPieces;
        for bytes in split::pieces(command.bytes, piece) {
            let piece = self.ios.insert_piece(io, command.offset, bytes);
            let extra = &mut self.extras[self.ios[io].extra];
            extra.pieces.push(&mut self.ios, piece);
            command = Dispatch { io: self.ios.id_of(piece), bytes, ..command };
            out.put(Output::Dispatch(command));
            command.offset += bytes;
            command.block = command.block.wrapping_add(bytes / BLOCK);
        }
    }

    /// What the driver gets of an I/O that may be a part of a request, or sent again.
    fn command(&self, io: u32) -> Dispatch {
        let record = &self.ios[io];
        let (command, extra) = (record.command(io, PathId(record.path)), record.extra);
        if extra == NONE {
            return command;
        }
        let Extra { request, offset, .. } = self.extras[extra];
        Dispatch { request, offset, ..command }
    }

    /// The worst result of a piece counts, and the longest latency.
    pub(crate) fn piece_done(
        &mut self,
        piece: u32,
        status: Status,
        array_ns: u64,
        out: &mut impl Sink,
    ) {
        let extra = &mut self.extras[self.ios[piece].extra];
        let io = extra.io;
        let vdisk = self.ios[io].vdisk;
        extra.pieces.remove(&mut self.ios, piece);
        if status == Status::Good {
            self.ios.free(piece);
        } else {
            self.ios[piece].state = State::Left;
            extra.left.push(&mut self.ios, piece);
        }
        let (worst, array_ns) = extra.collect(status, array_ns);
        if !extra.pieces.is_empty() {
            return;
        }
        self.answered_at_last(io, worst, array_ns, out);
        if status.is_final() && worst == Status::TaskSetFull {
            // What was refused came back before what the array took, so there is room now.
            let device = self.vdisks[usize::from(vdisk)].device;
            self.devices[device.index()].make_room();
            self.pump(device, out);
        }
    }

    /// Every piece of a command is back, perhaps after its slots were written off.
    pub(crate) fn answered_at_last(
        &mut self,
        io: u32,
        status: Status,
        array_ns: u64,
        out: &mut impl Sink,
    ) {
        match self.ios[io].state {
            State::WrittenOff | State::Orphan => self.answered_late(io, status, array_ns, out),
            _ => self.answered(io, status, array_ns, out),
        }
    }

    pub(crate) fn is_in_pieces(&self, io: u32) -> bool {
        let extra = self.ios[io].extra;
        extra != NONE && !self.extras[extra].pieces.is_empty()
    }

    /// Whether it is a part of a request that the guest's driver cut.
    pub(crate) fn is_part(&self, io: u32) -> bool {
        let extra = self.ios[io].extra;
        extra != NONE && self.extras[extra].is_of_part()
    }

    fn has_left(&self, io: u32) -> bool {
        !self.extras[self.ios[io].extra].left.is_empty()
    }

    /// The same of one that has an [`Extra`]: the parts of a request that the
    /// guest's driver cut go together.
    #[cold]
    pub(crate) fn end_of_extra(&mut self, io: u32, status: Status, out: &mut impl Sink) {
        let Io { vdisk, tag, extra, .. } = self.ios[io];
        while let Some(left) = self.extras[extra].left.pop(&self.ios) {
            self.ios.free(left);
        }
        self.extras.remove(extra);
        let request = self.extras[extra].request;
        if request.slot() == io {
            out.put(Output::Complete { request, vdisk: VdiskId(vdisk), tag, status });
        } else {
            self.end_part(request.slot(), status, out);
        }
    }

    pub(crate) fn end_part(&mut self, whole: u32, status: Status, out: &mut impl Sink) {
        let extra = self.ios[whole].extra;
        let request = &mut self.extras[extra];
        request.parts -= 1;
        let (status, _) = request.collect(status, 0);
        if request.parts > 0 {
            return;
        }
        let Io { vdisk, tag, submitted, .. } = self.ios[whole];
        let vdisk = VdiskId(vdisk);
        if status != Status::Aborted {
            self.vdisks[vdisk.index()].counters.count_whole(self.now - submitted);
        }
        let request = self.ios.id_of(whole);
        self.extras.remove(extra);
        self.ios.free(whole);
        out.put(Output::Complete { request, vdisk, tag, status });
    }
}
