//! Who asks for I/O of a component: connections, each with a key that is never another's.

use counters::{Status, VdiskId};
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};

use crate::{
    buffer::Buffers,
    export::{Asked, Extent},
    nbd::{Arrived, Connection},
};

/// Guests by their keys: the place, and above it how many guests there were before.
#[derive(Debug, Default)]
pub(crate) struct Guests {
    places: Vec<Option<Guest>>,
    seated: u64,
}

#[derive(Debug)]
struct Guest {
    key: u64,
    connection: Connection,
    /// Whether it is waited for that its socket has room.
    awaits_room: bool,
}

/// Bits of a key that are the place.
const PLACE_BITS: u32 = 16;

const fn place(key: u64) -> usize {
    (key & ((1 << PLACE_BITS) - 1)) as usize
}

impl Guests {
    /// Gives one a place. One that cannot be waited for goes.
    pub(crate) fn seat(&mut self, arrived: Arrived, epoll: &Epoll) {
        let connection = Connection::new(arrived);
        let free = self.places.iter().position(Option::is_none).unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.seated += 1;
        let key = self.seated << PLACE_BITS | free as u64;
        if epoll.add(connection.stream(), event(key, false)).is_ok() {
            self.places[free] = Some(Guest { key, connection, awaits_room: false });
        }
    }

    fn get(&mut self, key: u64) -> Option<&mut Connection> {
        let guest = self.places.get_mut(place(key))?.as_mut()?;
        (guest.key == key).then_some(&mut guest.connection)
    }

    /// How many places there are.
    pub(crate) const fn places(&self) -> usize {
        self.places.len()
    }

    /// The key of the guest at a place.
    pub(crate) fn at(&self, place: usize) -> Option<u64> {
        Some(self.places[place].as_ref()?.key)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.iter().all(Option::is_none)
    }

    /// The disk of one.
    pub(crate) fn vdisk(&mut self, key: u64) -> Option<VdiskId> {
        Some(self.get(key)?.export().vdisk)
    }

    /// Its socket has something, or room.
    pub(crate) fn wake(&mut self, key: u64, flags: EpollFlags) {
        if let Some(connection) = self.get(key) {
            connection.wake(flags);
        }
    }

    /// The next thing that one asks for.
    pub(crate) fn pull(&mut self, key: u64, buffers: &mut Buffers) -> Option<Asked> {
        self.get(key)?.pull(buffers)
    }

    /// Tells one that an I/O ended; one that has gone is not told.
    pub(crate) fn answer(&mut self, key: u64, asked: Asked, status: Status, buffers: &mut Buffers) {
        match self.get(key) {
            Some(connection) => connection.answer(asked, status, buffers),
            None => asked.buffer.into_iter().for_each(|buffer| buffers.give(buffer)),
        }
    }

    /// Tells one which parts are allocated.
    pub(crate) fn answer_map(&mut self, key: u64, cookie: u64, extents: &[Extent]) {
        if let Some(connection) = self.get(key) {
            connection.answer_map(cookie, extents);
        }
    }

    /// Writes what is to be written; whether any was. Room is waited for only where there was none, or
    /// each reply that a client reads would wake the thread.
    pub(crate) fn push(&mut self, buffers: &mut Buffers, epoll: &Epoll) -> bool {
        let mut any = false;
        for Guest { key, connection, awaits_room } in self.places.iter_mut().flatten() {
            any |= connection.push(buffers);
            if connection.lacks_room() != *awaits_room {
                *awaits_room = !*awaits_room;
                let waited = epoll.modify(connection.stream(), &mut event(*key, *awaits_room));
                if waited.is_err() {
                    connection.hang_up();
                }
            }
        }
        any
    }

    /// They are to take no more requests.
    pub(crate) fn leave(&mut self) {
        self.places.iter_mut().flatten().for_each(|guest| guest.connection.leave());
    }

    /// The disks that are open.
    pub(crate) fn vdisks(&self) -> impl Iterator<Item = VdiskId> + '_ {
        self.places.iter().flatten().map(|guest| guest.connection.export().vdisk)
    }

    /// One that has ended, which has gone then, and the disk that it was on.
    pub(crate) fn next_over(&mut self) -> Option<(u64, VdiskId)> {
        let is_over = |place: &&mut Option<Guest>| {
            place.as_ref().is_some_and(|guest| guest.connection.is_over())
        };
        let Guest { key, connection, .. } = self.places.iter_mut().find(is_over)?.take()?;
        Some((key, connection.export().vdisk))
    }
}

/// What is waited for on a guest's socket.
fn event(key: u64, awaits_room: bool) -> EpollEvent {
    let something = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
    let room = if awaits_room { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
    EpollEvent::new(something | room, key)
}
