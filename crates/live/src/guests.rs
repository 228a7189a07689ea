//! Who asks for I/O of a component: clients and disks of virtual machines, each with a key that is never
//! another's.

use std::os::unix::net::UnixListener;

use counters::{Status, VdiskId};
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};

use crate::{
    buffer::Buffers,
    export::{Asked, Extent},
    nbd::{Arrived, Connection},
    socket::SocketFile,
    vhost::Device,
};

/// Guests by their keys: the place, and above it how many guests there were before.
#[derive(Debug, Default)]
pub(crate) struct Guests {
    places: Vec<Option<Guest>>,
    seated: u64,
    /// Disks that have moved, and what each is now: a client may have agreed on one before it moved.
    moved: Vec<(VdiskId, VdiskId)>,
}

#[derive(Debug)]
struct Guest {
    key: u64,
    /// The virtual disk that it is on: another one once that has moved to another device.
    vdisk: VdiskId,
    front: Front,
}

/// What a guest is to the component: a front end of each kind.
#[derive(Debug)]
enum Front {
    /// A client of NBD, and whether it is waited for that its socket has room.
    Nbd(Box<Connection>, bool),
    /// A disk that stays, whoever comes and goes.
    Vhost(Box<Device>),
}

/// Bits of a key that are the place.
const PLACE_BITS: u32 = 16;
/// What is waited for: the key of the guest, and in the bits above it what of it there is something.
const KEY_BITS: u32 = 56;

const fn place(key: u64) -> usize {
    (key & ((1 << PLACE_BITS) - 1)) as usize
}

impl Guests {
    /// Gives a client a place. One that cannot be waited for goes.
    pub(crate) fn seat(&mut self, arrived: Arrived, epoll: &Epoll) {
        let connection = Connection::new(arrived);
        let (place, key) = self.free();
        if epoll.add(connection.stream(), event(key, false)).is_ok() {
            let vdisk = self.now_of(connection.export().vdisk);
            let front = Front::Nbd(Box::new(connection), false);
            self.places[place] = Some(Guest { key, vdisk, front });
        }
    }

    /// Gives a disk a place.
    pub(crate) fn seat_device(&mut self, mut device: Box<Device>, epoll: &Epoll, tell: fn(&str)) {
        let (place, key) = self.free();
        if device.open((key, 1 << KEY_BITS), epoll, tell).is_ok() {
            let vdisk = device.vdisk();
            self.places[place] = Some(Guest { key, vdisk, front: Front::Vhost(device) });
        }
    }

    /// A disk that virtual machines see has its socket anew.
    pub(crate) fn renew(
        &mut self,
        vdisk: VdiskId,
        file: SocketFile,
        listener: UnixListener,
        epoll: &Epoll,
    ) {
        let device = self.on(vdisk).find_map(|guest| match &mut guest.front {
            Front::Vhost(device) => Some(device),
            Front::Nbd(..) => None,
        });
        if let Some(device) = device {
            // Where it cannot be waited for it goes, and is missing at the next look.
            let _ = device.renew(file, listener, epoll);
        }
    }

    /// A free place, and the key of who takes it.
    fn free(&mut self) -> (usize, u64) {
        let free = self.places.iter().position(Option::is_none).unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.seated += 1;
        (free, self.seated << PLACE_BITS | free as u64)
    }

    fn get(&mut self, key: u64) -> Option<&mut Front> {
        let guest = self.places.get_mut(place(key))?.as_mut()?;
        (guest.key == key).then_some(&mut guest.front)
    }

    fn fronts(&mut self) -> impl Iterator<Item = &mut Front> {
        self.places.iter_mut().flatten().map(|guest| &mut guest.front)
    }

    fn on(&mut self, vdisk: VdiskId) -> impl Iterator<Item = &mut Guest> {
        self.places.iter_mut().flatten().filter(move |guest| guest.vdisk == vdisk)
    }

    /// How many places there are.
    pub(crate) const fn places(&self) -> usize {
        self.places.len()
    }

    /// The guest at a place: its key, and its disk.
    pub(crate) fn at(&self, place: usize) -> Option<(u64, VdiskId)> {
        let guest = self.places[place].as_ref()?;
        Some((guest.key, guest.vdisk))
    }

    /// Whether there is no client. A disk is there even if nobody uses it.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.iter().flatten().all(|guest| matches!(guest.front, Front::Vhost(_)))
    }

    /// Its socket has something, or room, or it has kicked.
    pub(crate) fn wake(&mut self, what: u64, flags: EpollFlags) {
        match self.get(what & ((1 << KEY_BITS) - 1)) {
            Some(Front::Nbd(connection, _)) => connection.wake(flags),
            Some(Front::Vhost(device)) => device.wake(what >> KEY_BITS),
            None => {}
        }
    }

    /// The next thing that one asks for is put there; whether there was any.
    #[inline]
    pub(crate) fn pull(&mut self, key: u64, into: &mut Asked, buffers: &mut Buffers) -> bool {
        match self.get(key) {
            Some(Front::Nbd(connection, _)) => {
                connection.pull(buffers).map(|asked| *into = asked).is_some()
            }
            Some(Front::Vhost(device)) => device.pull(into, buffers),
            None => false,
        }
    }

    /// Tells one that an I/O ended; one that has gone is not told.
    pub(crate) fn answer(
        &mut self,
        key: u64,
        asked: &mut Asked,
        status: Status,
        buffers: &mut Buffers,
    ) {
        match self.get(key) {
            Some(Front::Nbd(connection, _)) => connection.answer(asked, status, buffers),
            Some(Front::Vhost(device)) => device.answer(asked, status, buffers),
            None => asked.buffer.take().into_iter().for_each(|buffer| buffers.give(buffer)),
        }
    }

    /// Tells one which parts are allocated.
    pub(crate) fn answer_map(&mut self, key: u64, cookie: u64, extents: &[Extent]) {
        if let Some(Front::Nbd(connection, _)) = self.get(key) {
            connection.answer_map(cookie, extents);
        }
    }

    /// Tells guests what is to be told; whether there was any. Room is waited for only where there was
    /// none, or each reply that a client reads would wake the thread.
    pub(crate) fn push(&mut self, buffers: &mut Buffers, epoll: &Epoll) -> bool {
        let mut any = false;
        for Guest { key, front, .. } in self.places.iter_mut().flatten() {
            let (connection, awaits_room) = match front {
                Front::Nbd(connection, awaits_room) => (connection, awaits_room),
                Front::Vhost(device) => {
                    any |= device.push(epoll);
                    continue;
                }
            };
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

    /// The thread is about to sleep, and is to be woken from now on; whether there is something already.
    pub(crate) fn rest(&mut self) -> bool {
        let rest = |any: bool, front: &mut Front| match front {
            Front::Nbd(..) => any,
            Front::Vhost(device) => device.rest() | any,
        };
        self.fronts().fold(false, rest)
    }

    /// The disks that guests have open.
    pub(crate) fn vdisks(&self) -> impl Iterator<Item = VdiskId> + '_ {
        let open = self.places.iter().flatten().filter(|guest| match &guest.front {
            Front::Nbd(..) => true,
            Front::Vhost(device) => device.is_used(),
        });
        open.map(|guest| guest.vdisk)
    }

    /// They are to take no more requests.
    pub(crate) fn leave(&mut self) {
        self.fronts().for_each(Front::leave);
    }

    /// The same of those on a disk.
    pub(crate) fn leave_disk(&mut self, vdisk: VdiskId) {
        self.on(vdisk).for_each(|guest| guest.front.leave());
    }

    /// They are on another disk from now on.
    pub(crate) fn move_disk(&mut self, from: VdiskId, to: VdiskId) {
        self.on(from).for_each(|guest| guest.vdisk = to);
        self.moved.iter_mut().filter(|moved| moved.1 == from).for_each(|moved| moved.1 = to);
        self.moved.push((from, to));
    }

    /// What a disk is now: another one once it has moved to another device.
    pub(crate) fn now_of(&self, vdisk: VdiskId) -> VdiskId {
        let moved = self.moved.iter().find(|moved| moved.0 == vdisk);
        moved.map_or(vdisk, |moved| moved.1)
    }

    /// Their disk has another size; clients hear of it when they connect anew.
    pub(crate) fn resize_disk(&mut self, vdisk: VdiskId, bytes: u64) {
        self.on(vdisk).for_each(|guest| {
            if let Front::Vhost(device) = &mut guest.front {
                device.resize(bytes);
            }
        });
    }

    /// Clients of a disk are not waited for any longer.
    pub(crate) fn hang_up(&mut self, vdisk: VdiskId) {
        self.on(vdisk).for_each(|guest| {
            if let Front::Nbd(connection, _) = &mut guest.front {
                connection.hang_up();
            }
        });
    }

    /// Whether all that were to leave a disk have.
    pub(crate) fn have_left(&mut self, vdisk: VdiskId) -> bool {
        for place in &mut self.places {
            let is_over = |guest: &Guest| {
                guest.vdisk == vdisk
                    && matches!(&guest.front, Front::Vhost(device) if device.is_over())
            };
            place.take_if(|guest| is_over(guest));
        }
        self.on(vdisk).next().is_none()
    }

    /// One that has left requests behind: a client has gone then.
    pub(crate) fn next_over(&mut self) -> Option<u64> {
        let is_over = |place: &mut Option<Guest>| match place.as_mut().map(|guest| &mut guest.front)
        {
            Some(Front::Nbd(connection, _)) => connection.is_over(),
            Some(Front::Vhost(device)) => device.take_left(),
            None => false,
        };
        let place = self.places.iter_mut().find_map(|place| is_over(place).then_some(place))?;
        let guest = place.as_ref()?;
        let over = guest.key;
        place.take_if(|guest| matches!(guest.front, Front::Nbd(..)));
        Some(over)
    }
}

impl Front {
    fn leave(&mut self) {
        match self {
            Self::Nbd(connection, _) => connection.leave(),
            Self::Vhost(device) => device.leave(),
        }
    }
}

/// What is waited for on a client's socket.
fn event(key: u64, awaits_room: bool) -> EpollEvent {
    let something = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
    let room = if awaits_room { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
    EpollEvent::new(something | room, key)
}
