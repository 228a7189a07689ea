//! A disk that a virtual machine sees: its socket, its front end, and the requests that it has under way.
//!
//! A new front end is let in when the one before has gone and its last request has ended: a request that
//! the guest sends again must not be overtaken by the first one.

use std::{
    io, mem,
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    sync::Arc,
};

use counters::{Status, VdiskId};
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use vm_memory::GuestAddress;

use super::{
    channel::{Came, Channel},
    memory::Reader,
    request::{End, Manner, Request, Wanted},
    ring::{Broken, Ring, ring_bell},
    terms::{Kicks, Outcome, Terms},
    wire::{self, Message},
};
use crate::{
    buffer::{BUFFER_MAX, Buffer, Buffers, Data},
    export::{Asked, Export, Verb},
    lent::Lent,
    socket::{self, SocketFile},
};

/// Bytes of data that a disk holds; a request that is alone may be larger by itself only.
const HELD_MAX: usize = BUFFER_MAX;
/// Requests that need no I/O and are answered in a row before others have their turn.
const KNOWN_MAX: usize = 64;
/// Messages of a front end that are followed in a row before others have their turn.
const HEARD_MAX: usize = 16;

/// What of a device has something, by the upper bits of a key.
const LISTENER: u64 = 0;
const SOCKET: u64 = 1;
const KICKS: u64 = 2;

/// A disk.
#[derive(Debug)]
pub(crate) struct Device {
    export: Export,
    file: SocketFile,
    listener: UnixListener,
    /// What it is known by.
    key: u64,
    /// From one of its keys to the next.
    step: u64,
    channel: Option<Channel>,
    terms: Terms,
    /// What the front end waits for.
    awaited: Option<Awaited>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    held: usize,
    /// The ring that is looked at first.
    turn: usize,
    /// The part of the guest's memory that the last request was in.
    place: usize,
    /// Whether somebody may be at the door.
    has_knocked: bool,
    /// Who came while the one before was going.
    at_door: Option<UnixStream>,
    /// Whether a front end has gone and left requests behind.
    has_left: bool,
    /// Whether it is to take no more.
    is_leaving: bool,
    /// Who hears that a guest's memory cannot be mapped, and whether that was told since one's could.
    tell: fn(&str),
    is_told: bool,
}

/// A message that is answered when requests have ended: of a ring, or of all of them.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    ring: Option<usize>,
    kind: u32,
    needs_reply: bool,
}

/// A place for a request.
#[derive(Debug, Default)]
struct Slot {
    /// Where its data are in the guest's memory; it is with the I/O if they are lent to that. Behind the request it is
    /// for the next one, if it is of the memory that the guest has then: that of others is to be unmapped.
    record: Option<Box<Lent>>,
    /// Whether the request is under way.
    is_taken: bool,
    ring: usize,
    head: u16,
    status: GuestAddress,
    /// Bytes of the daemon's that it holds.
    held: u32,
    /// Whether the guest still waits for it.
    is_wanted: bool,
}

/// What a ring has.
enum Next {
    Asked,
    /// It was answered at once.
    Known,
    Nothing,
}

impl Device {
    /// A disk at a Unix socket that only its owner may open. Nobody is let in yet.
    pub(crate) fn bind(export: Export, path: &Path) -> io::Result<Self> {
        let (file, listener) = socket::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            export,
            file,
            listener,
            key: 0,
            step: 0,
            channel: None,
            terms: Terms::new(),
            awaited: None,
            slots: Vec::new(),
            free: Vec::new(),
            held: 0,
            turn: 0,
            place: 0,
            has_knocked: false,
            at_door: None,
            has_left: false,
            is_leaving: false,
            tell: |_| {},
            is_told: false,
        })
    }

    /// Which virtual disk it is.
    pub(crate) const fn vdisk(&self) -> VdiskId {
        self.export.vdisk
    }

    /// Waits for front ends. What is waited for has this key, and `step` more for each next thing; what is wrong with
    /// one is told to `tell`.
    pub(crate) fn open(
        &mut self,
        (key, step): (u64, u64),
        epoll: &Epoll,
        tell: fn(&str),
    ) -> io::Result<()> {
        (self.key, self.step, self.tell) = (key, step, tell);
        self.await_guests(epoll)
    }

    fn await_guests(&self, epoll: &Epoll) -> io::Result<()> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, self.key);
        Ok(epoll.add(&self.listener, event)?)
    }

    /// Its socket was made anew, and it waits there. Who is connected stays so.
    pub(crate) fn renew(
        &mut self,
        file: SocketFile,
        listener: UnixListener,
        epoll: &Epoll,
    ) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        (self.file, self.listener) = (file, listener);
        self.await_guests(epoll)
    }

    const fn kicks<'a>(&self, epoll: &'a Epoll) -> Kicks<'a> {
        Kicks { epoll, first: self.key + self.step * KICKS, step: self.step }
    }

    /// Something is with one of its sockets. A ring that was kicked is looked at anyway.
    pub(crate) fn wake(&mut self, which: u64) {
        match which {
            LISTENER => self.has_knocked = true,
            SOCKET => {
                if let Some(channel) = &mut self.channel {
                    channel.is_readable = true;
                }
            }
            _ => {}
        }
    }

    /// It has another size.
    pub(crate) fn resize(&mut self, bytes: u64) {
        self.export.bytes = bytes;
        self.terms.tell_of_config();
    }

    /// Whether nobody is connected any more, and nothing under way.
    pub(crate) fn is_over(&self) -> bool {
        self.is_leaving && self.channel.is_none() && self.is_idle()
    }

    /// It is to take no more requests.
    pub(crate) const fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Whether a front end has gone since this was asked, with requests under way.
    pub(crate) fn take_left(&mut self) -> bool {
        mem::take(&mut self.has_left) && !self.is_idle()
    }

    /// Whether a guest is at work with it: none is once it has stopped its rings, as in a reboot.
    pub(crate) fn is_used(&self) -> bool {
        self.is_open() && self.terms.rings.iter().any(|ring| ring.kick.is_some())
    }

    fn is_idle(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    fn is_open(&self) -> bool {
        self.channel.is_some() && !self.is_leaving && !self.terms.is_broken
    }

    /// The next thing that the guest asks for is put there; whether there was any.
    pub(crate) fn pull(&mut self, into: &mut Asked, buffers: &mut Buffers) -> bool {
        if !self.is_open() {
            return false;
        }
        let rings = self.terms.width;
        let (mut quiet, mut known) = (0, 0);
        while quiet < rings && known < KNOWN_MAX && self.held < HELD_MAX {
            let ring = if self.turn < rings { self.turn } else { 0 };
            self.turn = ring + 1;
            match self.next(ring, into, buffers) {
                Ok(Next::Asked) => return true,
                Ok(Next::Known) => (quiet, known) = (0, known + 1),
                Ok(Next::Nothing) => quiet += 1,
                Err(Broken) => {
                    self.fail(ring);
                    return false;
                }
            }
        }
        false
    }

    #[inline]
    fn next(
        &mut self,
        ring: usize,
        into: &mut Asked,
        buffers: &mut Buffers,
    ) -> Result<Next, Broken> {
        let manner = Manner { export: &self.export, writes_through: self.terms.writes_through() };
        let Terms { rings, memory, .. } = &mut self.terms;
        let own = &mut rings[ring];
        if !own.is_open() {
            return Ok(Next::Nothing);
        }
        let Some(head) = own.take(memory)? else { return Ok(Next::Nothing) };
        if self.free.is_empty() {
            self.free.push(self.slots.len());
            self.slots.push(Slot::default());
        }
        let place = self.free[self.free.len() - 1];
        let slot = &mut self.slots[place];
        let record = slot.record.get_or_insert_with(|| Box::new(Lent::new(memory.clone())));
        let table = own.table().ok_or(Broken)?;
        let mut reader = Reader::new(memory, self.place);
        let request = Request::read(&mut reader, (table, head), record, manner);
        self.place = reader.place();
        let Request { status, wanted } = request.ok_or(Broken)?;
        match wanted {
            Wanted::Known { data, end } => {
                record.copy_from(0, &data);
                record.write_status(status, end as u8);
                record.clear();
                own.give(head, data.len() as u32 + 1)?;
                Ok(Next::Known)
            }
            Wanted::Io { verb, at, bytes } => {
                self.free.pop();
                (slot.is_taken, slot.is_wanted, slot.held) = (true, true, 0);
                (slot.ring, slot.head, slot.status) = (ring, head, status);
                let aligned = self.export.lends.filter(|align| at.is_multiple_of((*align).into()));
                let buffer = if record.len() == 0 {
                    None
                } else if aligned.is_some_and(|align| record.is_aligned(align)) {
                    slot.record.take().map(Data::Lent)
                } else {
                    slot.held = record.len() as u32;
                    Some(Data::Own(copy(record, verb, buffers)))
                };
                self.held += slot.held as usize;
                *into = Asked { cookie: place as u64, verb, at, bytes, buffer };
                Ok(Next::Asked)
            }
        }
    }

    /// The guest may have another memory.
    fn drop_records(&mut self) {
        let memory = &self.terms.memory;
        let free = self.slots.iter_mut().filter(|slot| !slot.is_taken);
        free.for_each(|slot| drop(slot.record.take_if(|record| !record.is_of(memory))));
    }

    /// An I/O has ended: the guest is told, if it still waits for that.
    pub(crate) fn answer(&mut self, asked: &mut Asked, status: Status, buffers: &mut Buffers) {
        let place = asked.cookie as usize;
        let Some(slot) = self.slots.get_mut(place).filter(|slot| slot.is_taken) else { return };
        slot.is_taken = false;
        self.free.push(place);
        self.held -= slot.held as usize;
        let is_read = asked.verb.is_read() && status == Status::Good;
        let own = match asked.buffer.take() {
            Some(Data::Lent(record)) => {
                slot.record = Some(record);
                None
            }
            Some(Data::Own(own)) => Some(own),
            None => None,
        };
        let record = slot.record.as_mut().expect("what was lent comes back");
        let (ring, mut is_told) = (slot.ring, true);
        if slot.is_wanted {
            if let Some(own) = own.as_ref().filter(|_| is_read) {
                record.copy_from(0, own.bytes());
            }
            record.write_status(slot.status, End::of(status) as u8);
            let written = if is_read { record.len() as u32 } else { 0 } + 1;
            is_told = self.terms.rings[ring].give(slot.head, written).is_ok();
        }
        if record.is_of(&self.terms.memory) {
            record.clear();
        } else {
            slot.record = None;
        }
        if !is_told {
            self.fail(ring);
        }
        own.into_iter().for_each(|buffer| buffers.give(buffer));
    }

    /// The guest has made no sense: nothing more is read or written of it until it begins anew.
    fn fail(&mut self, ring: usize) {
        self.terms.is_broken = true;
        if let Some(err) = &self.terms.rings[ring].err {
            ring_bell(err);
        }
        self.forget();
    }

    /// Nobody waits any more for what is under way.
    fn forget(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.is_wanted = false);
        self.terms.rings.iter_mut().for_each(|ring| ring.in_flight = 0);
    }

    /// Calls the guest for what has ended, and hears what the front end says; whether there was anything.
    pub(crate) fn push(&mut self, epoll: &Epoll) -> bool {
        self.call();
        let mut any = false;
        for _ in 0..HEARD_MAX {
            let Some(heard) = self.hear(epoll) else { break };
            any = true;
            if heard.is_err() {
                self.hang_up(epoll);
            }
        }
        if self.is_leaving && self.is_idle() && self.channel.is_some() {
            self.hang_up(epoll);
        }
        any | self.answer_door(epoll)
    }

    fn call(&mut self) {
        if self.channel.is_none() || self.terms.is_broken {
            return;
        }
        let Terms { rings, memory, width, .. } = &mut self.terms;
        let called = rings[..*width].iter_mut().position(|ring| ring.call().is_err());
        let failed = called.or_else(|| memory.is_torn().then_some(0));
        if let Some(ring) = failed {
            self.fail(ring);
        }
    }

    /// The next message, or what was waited for; `None` when there is neither.
    fn hear(&mut self, epoll: &Epoll) -> Option<io::Result<()>> {
        if let Some(awaited) = self.awaited {
            return self.is_drained(awaited.ring).then(|| self.drained(awaited, epoll));
        }
        let channel = self.channel.as_mut().filter(|channel| channel.is_readable)?;
        match channel.read() {
            Ok(None) => None,
            Ok(Some(came)) => Some(self.follow(came, epoll)),
            Err(error) => Some(Err(error)),
        }
    }

    /// Does what a message says, and answers it.
    fn follow(&mut self, came: Came, epoll: &Epoll) -> io::Result<()> {
        let Came { head, body, files } = came;
        let message = Message::parse(head.kind, &body).ok_or(io::ErrorKind::InvalidData)?;
        let kicks = self.kicks(epoll);
        let outcome = self.terms.take(message, files, &self.export, kicks);
        self.drop_records();
        self.terms.measure();
        self.complain();
        let (kind, needs_reply) = (head.kind, head.needs_reply);
        match outcome {
            Outcome::Reply(body) => self.reply(kind, &body, None),
            Outcome::Inflight(mut body, file) => {
                // Some front ends have four bytes of padding at the end.
                body.resize(head.body.max(body.len()), 0);
                self.reply(kind, &body, Some(&file))
            }
            Outcome::Drain(ring) => {
                self.awaited = Some(Awaited { ring, kind, needs_reply });
                Ok(())
            }
            Outcome::Done if !needs_reply => Ok(()),
            Outcome::Done => self.reply(kind, &0_u64.to_ne_bytes(), None),
            Outcome::Refused if needs_reply => self.reply(kind, &1_u64.to_ne_bytes(), None),
            Outcome::Refused => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Says that a guest's memory cannot be mapped: once, for who is hung up on comes again.
    fn complain(&mut self) {
        if self.terms.rings.iter().any(Ring::is_at_work) {
            self.is_told = false;
        }
        let Some(why) = self.terms.unmapped.take() else { return };
        if !mem::replace(&mut self.is_told, true) {
            let socket = self.export.socket.as_deref().unwrap_or(Path::new("")).display();
            (self.tell)(&format!(
                "memory of the guest at {socket} cannot be mapped: {why}; QEMU needs share=on"
            ));
        }
    }

    fn reply(&self, kind: u32, body: &[u8], file: Option<&OwnedFd>) -> io::Result<()> {
        use std::os::fd::AsFd;
        let Some(channel) = &self.channel else { return Ok(()) };
        channel.write(&wire::reply(kind, body), file.map(AsFd::as_fd))
    }

    fn is_drained(&self, ring: Option<usize>) -> bool {
        let is_of = |slot: &Slot| slot.is_taken && ring.is_none_or(|ring| slot.ring == ring);
        !self.slots.iter().any(is_of)
    }

    /// Rings have ended all that they had: the front end is told.
    fn drained(&mut self, awaited: Awaited, epoll: &Epoll) -> io::Result<()> {
        self.awaited = None;
        let kicks = self.kicks(epoll);
        match awaited.ring {
            Some(ring) => {
                let body = self.terms.stopped(ring, kicks);
                self.reply(awaited.kind, &body, None)
            }
            None => {
                self.terms.reset(kicks);
                match awaited.needs_reply {
                    true => self.reply(awaited.kind, &0_u64.to_ne_bytes(), None),
                    false => Ok(()),
                }
            }
        }
    }

    /// The front end has gone, or is of no more use.
    fn hang_up(&mut self, epoll: &Epoll) {
        let kicks = self.kicks(epoll);
        self.terms.end(kicks);
        self.drop_records();
        self.forget();
        (self.channel, self.awaited) = (None, None);
        self.has_left = true;
        self.has_knocked = true;
    }

    /// Lets a front end in; a second one is turned away.
    fn answer_door(&mut self, epoll: &Epoll) -> bool {
        if !self.has_knocked || self.is_leaving || self.channel.is_none() && !self.is_idle() {
            return false;
        }
        if self.channel.as_ref().is_some_and(Channel::has_gone) {
            // The next one waits at the door until this one's end has been read.
            return false;
        }
        self.has_knocked = false;
        while let Some(stream) = self.next_at_door() {
            if let Some(channel) = &self.channel {
                if channel.has_gone() {
                    // It went while this one came, who may be the same.
                    self.at_door = Some(stream);
                    return false;
                }
                continue;
            }
            let Ok(channel) = Channel::new(stream) else { continue };
            let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
            let event = EpollEvent::new(flags, self.key + self.step * SOCKET);
            if epoll.add(&channel, event).is_ok() {
                self.channel = Some(channel);
            }
        }
        self.channel.is_some()
    }

    fn next_at_door(&mut self) -> Option<UnixStream> {
        let next = || self.listener.accept().ok().map(|(stream, _)| stream);
        self.at_door.take().or_else(next)
    }

    /// The component is about to sleep: guests are to kick. Whether there is something to do already.
    pub(crate) fn rest(&mut self) -> bool {
        if !self.is_open() || self.held >= HELD_MAX {
            return false;
        }
        let memory = Arc::clone(&self.terms.memory);
        let mut any = false;
        for ring in 0..self.terms.width {
            match self.terms.rings[ring].rest(&memory) {
                Ok(more) => any |= more,
                Err(Broken) => {
                    self.fail(ring);
                    return false;
                }
            }
        }
        any
    }
}

/// A buffer for data that the guest does not lend; for a write with what is in them.
fn copy(record: &Lent, verb: Verb, buffers: &mut Buffers) -> Buffer {
    let mut buffer = buffers.take(record.len());
    if !verb.is_read() {
        record.copy_to(0, buffer.bytes_mut());
    }
    buffer
}
