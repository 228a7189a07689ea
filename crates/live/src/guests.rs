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
    places: Vec<Option<(u64, Connection)>>,
    seated: u64,
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
        let both = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        if epoll.add(connection.stream(), EpollEvent::new(both, key)).is_ok() {
            self.places[free] = Some((key, connection));
        }
    }

    fn get(&mut self, key: u64) -> Option<&mut Connection> {
        let (own, connection) = self.places.get_mut(place(key))?.as_mut()?;
        (*own == key).then_some(connection)
    }

    /// The keys of all.
    pub(crate) fn all(&self) -> impl Iterator<Item = u64> + use<> {
        let keys = self.places.iter().flatten().map(|(key, _)| *key);
        keys.collect::<Vec<_>>().into_iter()
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
    pub(crate) fn wake(&mut self, key: u64) {
        if let Some(connection) = self.get(key) {
            connection.wake();
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

    /// Writes what is to be written; whether any was.
    pub(crate) fn push(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        for (_, connection) in self.places.iter_mut().flatten() {
            any |= connection.push(buffers);
        }
        any
    }

    /// They are to take no more requests.
    pub(crate) fn leave(&mut self) {
        self.places.iter_mut().flatten().for_each(|(_, connection)| connection.leave());
    }

    /// One that has ended, which has gone then, and the disk that it was on.
    pub(crate) fn next_over(&mut self) -> Option<(u64, VdiskId)> {
        let is_over = |place: &&mut Option<(u64, Connection)>| {
            place.as_ref().is_some_and(|(_, connection)| connection.is_over())
        };
        let (key, connection) = self.places.iter_mut().find(is_over)?.take()?;
        Some((key, connection.export().vdisk))
    }
}
