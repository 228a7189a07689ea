//! What guests have under way: each request under the tag that the engine knows it by.

use std::ops::{Index, IndexMut};

use counters::{Op, Time, VdiskId};
use engine::Dispatch;

use crate::{
    buffer::{Buffers, Data},
    export::{Asked, Verb},
    work::Work,
};

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) guest: u64,
    /// The virtual disk that the engine was told of.
    pub(crate) vdisk: VdiskId,
    /// When it came.
    pub(crate) issued: Time,
    pub(crate) asked: Asked,
    /// Whether the data are not the guest's to have: it only wants them to be read.
    is_scratch: bool,
    /// Whether it is under way: a record that is not waits for the next one.
    is_open: bool,
}

/// Requests by their tags.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    all: Vec<Request>,
    free: Vec<u32>,
}

impl Requests {
    /// The tag of the next one, whose record is to be filled: it is not under way before it [begins](Self::begin).
    #[inline]
    pub(crate) fn next(&mut self) -> u32 {
        if self.free.is_empty() {
            self.free.push(self.all.len() as u32);
            self.all.push(Request::NONE);
        }
        self.free[self.free.len() - 1]
    }

    /// The next one is under way.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        tag: u32,
        issued: Time,
        (guest, vdisk): (u64, VdiskId),
        buffers: &mut Buffers,
    ) {
        debug_assert_eq!(self.free.last(), Some(&tag));
        self.free.pop();
        let request = &mut self.all[tag as usize];
        (request.guest, request.vdisk) = (guest, vdisk);
        (request.issued, request.is_open) = (issued, true);
        let asked = &mut request.asked;
        request.is_scratch = asked.buffer.is_none() && asked.verb.is_read();
        if request.is_scratch {
            asked.buffer = Some(buffers.take(asked.bytes as usize).into());
        }
    }

    /// Ends one, if it is under way: what is left of it, to tell its guest.
    #[inline]
    pub(crate) fn end(&mut self, tag: u32, buffers: &mut Buffers) -> Option<&mut Request> {
        let request = self.all.get_mut(tag as usize).filter(|request| request.is_open)?;
        request.is_open = false;
        self.free.push(tag);
        if request.is_scratch {
            request.asked.buffer.take().into_iter().for_each(|scratch| buffers.give(scratch));
        }
        Some(request)
    }

    /// Those of a guest: the disk and the tag of each.
    pub(crate) fn of(&self, guest: u64) -> Vec<(VdiskId, u32)> {
        self.all().filter(|(request, _)| request.guest == guest).map(named).collect()
    }

    /// Those on a disk.
    pub(crate) fn on(&self, vdisk: VdiskId) -> impl Iterator<Item = (VdiskId, u32)> + '_ {
        self.all().filter(move |(request, _)| request.vdisk == vdisk).map(named)
    }

    fn all(&self) -> impl Iterator<Item = (&Request, u32)> {
        self.all.iter().zip(0..).filter(|(request, _)| request.is_open)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }
}

fn named((request, tag): (&Request, u32)) -> (VdiskId, u32) {
    (request.vdisk, tag)
}

impl Index<u32> for Requests {
    type Output = Request;

    /// The engine names only those that are under way.
    ///
    /// # Panics
    /// When there was never one of that tag.
    fn index(&self, tag: u32) -> &Request {
        &self.all[tag as usize]
    }
}

impl IndexMut<u32> for Requests {
    fn index_mut(&mut self, tag: u32) -> &mut Request {
        &mut self.all[tag as usize]
    }
}

impl Request {
    /// One that nobody has asked for.
    const NONE: Self = Self {
        guest: 0,
        vdisk: VdiskId(0),
        issued: Time::ZERO,
        asked: Asked::NOTHING,
        is_scratch: false,
        is_open: false,
    };

    /// What an image has to do for a command of the request; nothing for what is no I/O.
    #[inline]
    pub(crate) fn work(
        &mut self,
        command: &Dispatch,
        image: usize,
        buffers: &mut Buffers,
    ) -> Option<Work> {
        let Verb::Io { fua, keeps_space, .. } = self.asked.verb else { return None };
        let Dispatch { io, op, offset, bytes, .. } = *command;
        let at = self.asked.at + u64::from(offset);
        let buffer = self.lend(op, offset, bytes, buffers);
        Some(Work { io, image, op, at, bytes, buffer, fua, keeps_space })
    }

    /// The buffer for a command of the request. Where it is cut each of its commands has one of its own,
    /// and the data are copied, or a part of what the guest has lent: no two that are out share one.
    #[inline]
    fn lend(&mut self, op: Op, offset: u32, bytes: u32, buffers: &mut Buffers) -> Option<Data> {
        if bytes == self.asked.bytes {
            return self.asked.buffer.take();
        }
        let from = offset as usize;
        match self.asked.buffer.as_ref()? {
            Data::Lent(whole) => Some(Data::Lent(whole.part(from..from + bytes as usize).into())),
            Data::Own(whole) => {
                let mut piece = buffers.take(bytes as usize);
                if op != Op::Read {
                    piece.bytes_mut().copy_from_slice(&whole.bytes()[from..][..bytes as usize]);
                }
                Some(Data::Own(piece))
            }
        }
    }

    /// It comes back.
    #[inline]
    pub(crate) fn give_back(&mut self, command: &Dispatch, buffer: Data, buffers: &mut Buffers) {
        let Some(whole) = &mut self.asked.buffer else {
            self.asked.buffer = Some(buffer);
            return;
        };
        if let (Op::Read, Data::Own(piece)) = (command.op, &buffer) {
            whole.copy_from(command.offset as usize, piece.bytes());
        }
        buffers.give(buffer);
    }
}
