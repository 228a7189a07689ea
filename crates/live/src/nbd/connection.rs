//! A client that has agreed on an export: its requests in, and replies out.
//!
//! ```text
//!   socket --> input --> head --> (payload) --> Asked          Answer --> replies --> socket
//! ```
//!
//! Nothing here waits: where the socket gives or takes nothing more, it goes on the next time. What a
//! client may have under way is bounded; beyond that its socket is not read, and what it has sent
//! waits there. What makes no sense ends this connection and nothing else.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, IoSlice},
    sync::Arc,
};

use counters::{Op, Status};
use nix::sys::epoll::EpollFlags;

use super::{
    Arrived, Seat,
    handshake::Agreed,
    stream::Stream,
    wire::{Cmd, Errno, Flag, Head, REQUEST_HEAD, ReplyHead},
};
use crate::{
    buffer::{BUFFER_MAX, Buffer, Buffers, Data as Moved},
    export::{Asked, Export, Extent, Verb},
    sense,
};

/// Requests under way on a connection; a deeper queue waits in the socket.
const REQUESTS_MAX: u32 = 1_024;
/// Bytes of data that a connection holds; a request that is alone may be larger by itself only.
const HELD_MAX: usize = BUFFER_MAX;
/// Bytes that are read at once.
const INPUT: usize = 64 << 10;
/// Replies that are written at once.
const BATCH: usize = 64;

/// A client at work.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Free again before the client sees that it is over.
    _seat: Seat,
    stream: Stream,
    exports: Arc<[Export]>,
    agreed: Agreed,
    input: Box<[u8]>,
    /// What of the input is not taken yet.
    from: usize,
    to: usize,
    /// A write whose data are coming.
    incoming: Option<Incoming>,
    replies: VecDeque<Reply>,
    /// How much of the first of them is written.
    sent: usize,
    under_way: u32,
    held: usize,
    /// Whether the socket may have something to read, or room to write.
    is_readable: bool,
    is_writable: bool,
    /// Whether the client has closed its side: what it has sent before is read up to the end.
    is_closing: bool,
    /// Whether no more is to be read: the client has said that it goes, or is to go.
    is_leaving: bool,
    /// Whether it is of no more use.
    is_broken: bool,
}

/// A write whose data are coming.
#[derive(Debug)]
struct Incoming {
    head: Head,
    buffer: Buffer,
    filled: usize,
}

/// An answer on its way to the client.
#[derive(Debug)]
struct Reply {
    head: ReplyHead,
    data: Data,
}

/// What comes after the head.
#[derive(Debug)]
enum Data {
    None,
    Read(Buffer),
    Extents(Vec<u8>),
}

impl Data {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Read(buffer) => buffer.bytes(),
            Self::Extents(bytes) => bytes,
        }
    }
}

impl Connection {
    /// A client that has agreed.
    pub(crate) fn new(arrived: Arrived) -> Self {
        let Arrived { stream, exports, agreed, early, seat } = arrived;
        let mut input = vec![0; INPUT.max(early.len())].into_boxed_slice();
        input[..early.len()].copy_from_slice(&early);
        Self {
            stream,
            _seat: seat,
            exports,
            agreed,
            input,
            from: 0,
            to: early.len(),
            incoming: None,
            replies: VecDeque::new(),
            sent: 0,
            under_way: 0,
            held: 0,
            is_readable: true,
            is_writable: true,
            is_closing: false,
            is_leaving: false,
            is_broken: false,
        }
    }

    /// The disk that it is on.
    pub(crate) fn export(&self) -> &Export {
        &self.exports[self.agreed.export]
    }

    /// Its socket, to be waited for.
    pub(crate) const fn stream(&self) -> &Stream {
        &self.stream
    }

    /// What is with the socket now.
    pub(crate) fn wake(&mut self, flags: EpollFlags) {
        self.is_readable |= flags != EpollFlags::EPOLLOUT;
        self.is_writable |= flags.contains(EpollFlags::EPOLLOUT);
        self.is_closing |= !(flags - EpollFlags::EPOLLIN - EpollFlags::EPOLLOUT).is_empty();
    }

    /// Whether it has something to write, and no room for it.
    pub(crate) const fn lacks_room(&self) -> bool {
        !self.is_writable
    }

    /// It is of no more use.
    pub(crate) const fn hang_up(&mut self) {
        self.is_broken = true;
    }

    /// It is to take no more requests; it ends when the last one is answered.
    pub(crate) const fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Whether it has ended: nothing of it is left to do.
    pub(crate) fn is_over(&self) -> bool {
        let is_answered = self.under_way == 0 && self.replies.is_empty();
        self.is_broken || self.is_leaving && is_answered
    }

    /// The next thing that the client asks for; `None` when there is none yet.
    pub(crate) fn pull(&mut self, buffers: &mut Buffers) -> Option<Asked> {
        while !self.is_leaving && !self.is_broken {
            if let Some(incoming) = &mut self.incoming {
                let input = &self.input[self.from..self.to];
                self.from += incoming.fill(input);
                if incoming.is_whole() {
                    let Incoming { head, buffer, .. } = self.incoming.take()?;
                    match verb(&head, self.export(), self.agreed) {
                        Ok(verb) => return Some(self.ask(head, verb, Some(buffer))),
                        Err(error) => self.refuse(&head, error, Some(buffer), buffers),
                    }
                    continue;
                }
            } else if let Some(bytes) = self.input[self.from..self.to].first_chunk() {
                let Some(head) = Head::parse(bytes) else {
                    self.is_broken = true;
                    return None;
                };
                if !self.has_room(&head) {
                    return None;
                }
                self.from += REQUEST_HEAD;
                if let Some(asked) = self.begin(head, buffers) {
                    return Some(asked);
                }
                continue;
            }
            if !self.read() {
                return None;
            }
        }
        None
    }

    /// Whether there is room for a request.
    fn has_room(&self, head: &Head) -> bool {
        let carries = matches!(head.kind, Cmd::READ | Cmd::WRITE);
        let bytes = if carries { head.length as usize } else { 0 };
        let is_alone = self.held == 0 || self.held + bytes <= HELD_MAX;
        self.under_way < REQUESTS_MAX && self.replies.len() < REQUESTS_MAX as usize && is_alone
    }

    /// A head is there: what is asked, unless its data are still to come.
    fn begin(&mut self, head: Head, buffers: &mut Buffers) -> Option<Asked> {
        let length = head.length as usize;
        match head.kind {
            Cmd::DISC => {
                self.is_leaving = true;
                None
            }
            // Nobody can tell where the next request begins.
            Cmd::WRITE if length > BUFFER_MAX => {
                self.is_broken = true;
                None
            }
            Cmd::WRITE => {
                let buffer = buffers.take(length);
                self.incoming = Some(Incoming { head, buffer, filled: 0 });
                None
            }
            _ => match verb(&head, self.export(), self.agreed) {
                Ok(verb) => {
                    let buffer = (head.kind == Cmd::READ).then(|| buffers.take(length));
                    Some(self.ask(head, verb, buffer))
                }
                Err(error) => {
                    self.refuse(&head, error, None, buffers);
                    None
                }
            },
        }
    }

    fn ask(&mut self, head: Head, verb: Verb, buffer: Option<Buffer>) -> Asked {
        self.under_way += 1;
        self.held += buffer.as_ref().map_or(0, Buffer::len);
        // A flush is of the whole disk, whatever place it names.
        let (at, bytes) = if head.kind == Cmd::FLUSH { (0, 0) } else { (head.offset, head.length) };
        Asked { cookie: head.cookie, verb, at, bytes, buffer: buffer.map(Moved::from) }
    }

    fn refuse(&mut self, head: &Head, error: Errno, buffer: Option<Buffer>, buffers: &mut Buffers) {
        buffer.into_iter().for_each(|buffer| buffers.give(buffer));
        self.fail(head.cookie, error);
    }

    /// Reads what is there; `false` when there is nothing.
    fn read(&mut self) -> bool {
        if !self.is_readable {
            return false;
        }
        let (read, room) = match &mut self.incoming {
            Some(incoming) if self.from == self.to && incoming.missing() > INPUT => {
                let room = incoming.missing();
                let read = self.stream.read(incoming.rest());
                incoming.filled += *read.as_ref().unwrap_or(&0);
                (read, room)
            }
            _ => {
                self.input.copy_within(self.from..self.to, 0);
                (self.from, self.to) = (0, self.to - self.from);
                let room = self.input.len() - self.to;
                let read = self.stream.read(&mut self.input[self.to..]);
                self.to += read.as_ref().unwrap_or(&0);
                (read, room)
            }
        };
        // What does not fill the room is all that there was, but for the end.
        self.is_readable = read.as_ref().is_ok_and(|read| *read == room || self.is_closing);
        match read {
            Ok(0) => self.is_broken = true,
            Ok(_) => return true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == ErrorKind::Interrupted => self.is_readable = true,
            Err(_) => self.is_broken = true,
        }
        !self.is_broken
    }

    /// Answers an I/O that ended.
    pub(crate) fn answer(&mut self, asked: &mut Asked, status: Status, buffers: &mut Buffers) {
        let Asked { cookie, verb, at, .. } = *asked;
        self.under_way -= 1;
        let is_read = verb.is_read();
        match asked.buffer.take() {
            Some(Moved::Own(buffer)) if is_read && status == Status::Good => {
                let head = match self.agreed.structured {
                    true => ReplyHead::data(cookie, at, buffer.len() as u32),
                    false => ReplyHead::simple(cookie, None),
                };
                return self.replies.push_back(Reply { head, data: Data::Read(buffer) });
            }
            Some(buffer) => {
                self.held -= buffer.len();
                buffers.give(buffer);
            }
            None => {}
        }
        match errno(status) {
            None => {
                let head = match self.agreed.structured {
                    true => ReplyHead::none(cookie),
                    false => ReplyHead::simple(cookie, None),
                };
                self.replies.push_back(Reply { head, data: Data::None });
            }
            Some(error) => self.fail(cookie, error),
        }
    }

    /// Answers what parts of the disk are allocated; nothing is where it could not be found out.
    pub(crate) fn answer_map(&mut self, cookie: u64, extents: &[Extent]) {
        const HOLE_THAT_READS_AS_ZEROES: u32 = 3;
        self.under_way -= 1;
        if extents.is_empty() {
            return self.fail(cookie, Errno::Io);
        }
        let flags = |extent: &Extent| if extent.is_hole { HOLE_THAT_READS_AS_ZEROES } else { 0 };
        let words = extents.iter().flat_map(|extent| [extent.bytes, flags(extent)]);
        let bytes: Vec<u8> = words.flat_map(u32::to_be_bytes).collect();
        let head = ReplyHead::status(cookie, bytes.len() as u32);
        self.replies.push_back(Reply { head, data: Data::Extents(bytes) });
    }

    fn fail(&mut self, cookie: u64, error: Errno) {
        let head = match self.agreed.structured {
            true => ReplyHead::error(cookie, error),
            false => ReplyHead::simple(cookie, Some(error)),
        };
        self.replies.push_back(Reply { head, data: Data::None });
    }

    /// Writes what is to be written, as far as the socket takes it; whether it took something.
    pub(crate) fn push(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while self.is_writable && !self.is_broken && !self.replies.is_empty() {
            match self.write() {
                Ok(0) => self.is_broken = true,
                Ok(written) => {
                    any = true;
                    self.written(written, buffers);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.is_broken = true,
            }
        }
        any
    }

    fn write(&mut self) -> io::Result<usize> {
        const EMPTY: &[u8] = &[];
        let mut parts = [IoSlice::new(EMPTY); 2 * BATCH];
        let mut skip = self.sent;
        let pieces = self.replies.iter().flat_map(|reply| [reply.head.bytes(), reply.data.bytes()]);
        let mut count = 0;
        for (part, piece) in parts.iter_mut().zip(pieces) {
            let begin = skip.min(piece.len());
            skip -= begin;
            *part = IoSlice::new(&piece[begin..]);
            count += 1;
        }
        self.stream.write_vectored(&parts[..count])
    }

    /// So many bytes are written: what is whole goes.
    fn written(&mut self, bytes: usize, buffers: &mut Buffers) {
        self.sent += bytes;
        while let Some(first) = self.replies.front() {
            let whole = first.head.bytes().len() + first.data.bytes().len();
            if self.sent < whole {
                return;
            }
            self.sent -= whole;
            if let Some(Reply { data: Data::Read(buffer), .. }) = self.replies.pop_front() {
                self.held -= buffer.len();
                buffers.give(buffer);
            }
        }
    }
}

impl Incoming {
    const fn missing(&self) -> usize {
        self.buffer.len() - self.filled
    }

    const fn is_whole(&self) -> bool {
        self.missing() == 0
    }

    fn rest(&mut self) -> &mut [u8] {
        &mut self.buffer.bytes_mut()[self.filled..]
    }

    /// Takes data; how many bytes.
    fn fill(&mut self, input: &[u8]) -> usize {
        let taken = input.len().min(self.missing());
        self.rest()[..taken].copy_from_slice(&input[..taken]);
        self.filled += taken;
        taken
    }
}

/// What a request asks for, or why it is refused [NBD].
fn verb(head: &Head, export: &Export, agreed: Agreed) -> Result<Verb, Errno> {
    let op = match head.kind {
        Cmd::READ | Cmd::CACHE => Op::Read,
        Cmd::WRITE if head.flags & Flag::FUA != 0 => Op::WriteFua,
        Cmd::WRITE => Op::Write,
        Cmd::FLUSH => Op::Flush,
        Cmd::TRIM => Op::Discard,
        Cmd::WRITE_ZEROES => Op::WriteZeroes,
        Cmd::BLOCK_STATUS if agreed.context => {
            check_place(head, export, Errno::Invalid)?;
            return Ok(Verb::Map { one: head.flags & Flag::REQ_ONE != 0 });
        }
        _ => return Err(Errno::Invalid),
    };
    let allowed = match head.kind {
        Cmd::READ => Flag::FUA | Flag::DF,
        Cmd::WRITE_ZEROES => Flag::FUA | Flag::NO_HOLE,
        _ => Flag::FUA,
    };
    if head.flags & !allowed != 0 {
        return Err(Errno::Invalid);
    }
    let changes = matches!(op, Op::Write | Op::WriteFua | Op::Discard | Op::WriteZeroes);
    if changes && export.read_only {
        return Err(Errno::Perm);
    }
    if op != Op::Flush {
        check_place(head, export, if changes { Errno::NoSpace } else { Errno::Invalid })?;
    }
    if op == Op::Read && head.length as usize > BUFFER_MAX {
        return Err(Errno::Invalid);
    }
    let fua = head.flags & Flag::FUA != 0;
    Ok(Verb::Io { op, fua, keeps_space: head.flags & Flag::NO_HOLE != 0 })
}

/// Whether a request is about something that the disk has.
fn check_place(head: &Head, export: &Export, beyond: Errno) -> Result<(), Errno> {
    if !export.reaches(head.offset, head.length) {
        return Err(beyond);
    }
    if head.length == 0 { Err(Errno::Invalid) } else { Ok(()) }
}

/// What a client is told.
fn errno(status: Status) -> Option<Errno> {
    match status {
        Status::Good => None,
        Status::CheckCondition(sense::NO_SPACE) => Some(Errno::NoSpace),
        _ => Some(Errno::Io),
    }
}
