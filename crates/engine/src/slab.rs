//! The I/Os inside the engine: fixed records in a slab, linked into the queues they wait in.
//!
//! A record is 64 bytes. What few I/Os need (a retry, a wait at an adapter, pieces) lies in an
//! [`Extra`] beside it, so that the common I/O stays small and nothing is allocated once warm.
//!
//! Three things have a record, and with it an [`IoId`]: an I/O, a piece of one that was cut for the
//! wire, and a guest's request that its driver cut into several I/Os.
//!
//! ```text
//!   Whole (the request) <-- Extra::request -- I/O <-- Extra::io -- Piece (what the driver has)
//! ```

use alloc::vec::Vec;

use counters::{IoId, Op, PathId, Status, Time, VdiskId};

use crate::{
    Dispatch, Request,
    codec::{choices, records},
};

/// No record.
pub(crate) const NONE: u32 = u32::MAX;

/// Where an I/O is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The record is unused.
    Free,
    /// Waits in the guest.
    Guest,
    /// Waits for a slot of the device.
    Queued,
    /// Holds a slot of the device and waits for one of its path.
    AtPath,
    /// Holds a slot of the device and of its path, and waits at the adapter.
    AtAdapter,
    /// With the driver.
    Active,
    /// With the driver in pieces.
    InPieces,
    /// With the driver, whole or in pieces, and asked back because its guest gave up.
    Recalled,
    /// The same because the driver takes too long.
    Overdue,
    /// The driver has it, and it holds no slot any more: it did not answer.
    WrittenOff,
    /// The same, and its guest gave up.
    Orphan,
    /// Waits for the moment to be sent again.
    Held,
    /// No I/O: a piece of one, with the driver.
    Piece,
    /// No I/O: a piece of one that came back and was not moved.
    Left,
    /// No I/O: a request that is under way in parts.
    Whole,
}

impl State {
    /// Whether the driver has it, in a slot.
    pub(crate) const fn is_with_driver(self) -> bool {
        matches!(self, Self::Active | Self::InPieces | Self::Recalled | Self::Overdue)
    }
}

/// One I/O.
#[derive(Clone, Debug)]
pub(crate) struct Io {
    /// When the application had it to issue.
    pub(crate) submitted: Time,
    /// When it entered the VMkernel.
    pub(crate) entered: Time,
    /// When it came into its present state.
    pub(crate) since: Time,
    pub(crate) tag: u32,
    /// Its neighbours in the queue it waits in; before the first there is none, whatever it says.
    next: u32,
    prev: u32,
    /// Its place among those of its virtual disk.
    pub(crate) seat: u32,
    pub(crate) bytes: u32,
    /// Its first sector in units of 4 KiB, modulo 16 TB: near enough for sequential affinity. Of a
    /// piece where it begins in the guest's request, in bytes.
    pub(crate) block: u32,
    /// Its [`Extra`], or [`NONE`]; of a piece that of its I/O.
    pub(crate) extra: u32,
    generation: u32,
    pub(crate) vdisk: u16,
    pub(crate) path: u16,
    /// How often its path had gone down when it was handed over.
    pub(crate) losses: u16,
    pub(crate) op: Op,
    pub(crate) state: State,
}

impl Io {
    /// A record that has never been used.
    const FREE: Self = Self {
        submitted: Time::ZERO,
        entered: Time::ZERO,
        since: Time::ZERO,
        tag: 0,
        next: NONE,
        prev: NONE,
        seat: NONE,
        bytes: 0,
        block: 0,
        extra: NONE,
        generation: 0,
        vdisk: 0,
        path: 0,
        losses: 0,
        op: Op::Read,
        state: State::Free,
    };

    /// An I/O as it comes from the guest. What is not written here is written where it goes on, before
    /// it is read.
    #[inline]
    const fn begin(&mut self, now: Time, request: &Request, extra: u32) {
        self.submitted = Time(now.0.saturating_sub(request.waited_ns));
        self.since = now;
        self.tag = request.tag;
        self.bytes = request.bytes;
        self.block = (request.lba / 8) as u32;
        self.extra = extra;
        self.vdisk = request.vdisk.0;
        self.op = request.op;
        self.state = State::Guest;
    }

    /// Goes to the driver.
    #[inline]
    pub(crate) const fn hand_over(&mut self, losses: u16) {
        self.state = State::Active;
        self.losses = losses;
    }

    /// Whether the driver gets all of a request at once, where the wire takes so many bytes.
    #[inline]
    pub(crate) const fn is_whole(&self, piece: u32) -> bool {
        self.extra == NONE && self.bytes <= piece
    }

    /// Its id; `io` is its own number.
    #[inline]
    pub(crate) const fn id(&self, io: u32) -> IoId {
        IoId::new(io, self.generation)
    }

    /// What the driver gets of an I/O that is a request of its own, down a path; `io` is its own
    /// number. The path is handed in: reading back what was just written beside other fields stalls
    /// the processor.
    #[inline]
    pub(crate) const fn command(&self, io: u32, path: PathId) -> Dispatch {
        let id = self.id(io);
        Dispatch {
            io: id,
            request: id,
            vdisk: VdiskId(self.vdisk),
            tag: self.tag,
            path,
            op: self.op,
            block: self.block,
            offset: 0,
            bytes: self.bytes,
        }
    }

    /// Bytes that it moves.
    #[inline]
    pub(crate) const fn data(&self) -> u32 {
        if self.op.moves_data() { self.bytes } else { 0 }
    }

    /// Whether it holds a slot of its device and waits for its path or the adapter.
    pub(crate) const fn is_at_gate(&self) -> bool {
        matches!(self.state, State::AtPath | State::AtAdapter)
    }

    /// Whether an answer of the driver is still to come.
    pub(crate) const fn is_with_driver(&self) -> bool {
        self.state.is_with_driver()
    }

    /// Whether it may have pieces: it is none, and has where they are noted.
    pub(crate) fn has_pieces(&self) -> bool {
        self.extra != NONE && !matches!(self.state, State::Free | State::Piece | State::Left)
    }

    /// Whether it waits inside the VMkernel and in no queue.
    pub(crate) const fn is_held(&self) -> bool {
        matches!(self.state, State::Held | State::WrittenOff | State::Orphan)
    }
}

/// What only few I/Os need.
#[derive(Clone, Debug)]
pub(crate) struct Extra {
    /// The I/O it belongs to.
    pub(crate) io: u32,
    /// Time with the driver in earlier attempts.
    pub(crate) device_ns: u64,
    /// Wait at a path or an adapter.
    pub(crate) gate_ns: u64,
    /// Time held before being sent again.
    pub(crate) hold_ns: u64,
    /// How often it was sent again.
    pub(crate) retries: u32,
    /// The guest's request: the I/O itself, or what it is a part of.
    pub(crate) request: IoId,
    /// Where it begins in the request, in bytes.
    pub(crate) offset: u32,
    /// Of a request in parts: how many have not ended.
    pub(crate) parts: u32,
    /// Its pieces that the driver has, and those that came back and were not moved.
    pub(crate) pieces: Queue,
    pub(crate) left: Queue,
    /// The longest latency that the array reported for a piece, and the worst result of a piece or
    /// a part so far.
    pub(crate) array_ns: u64,
    pub(crate) status: Status,
}

impl Extra {
    /// That of a part of a request, or of a request.
    pub(crate) fn new(request: IoId) -> Self {
        Self {
            io: request.slot(),
            request,
            device_ns: 0,
            gate_ns: 0,
            hold_ns: 0,
            retries: 0,
            offset: 0,
            parts: 0,
            pieces: Queue::default(),
            left: Queue::default(),
            array_ns: 0,
            status: Status::Good,
        }
    }

    /// Whether its I/O is a part of a request that the guest's driver cut.
    #[inline]
    pub(crate) const fn is_of_part(&self) -> bool {
        self.request.slot() != self.io
    }
}

/// Where the time of one I/O went, or that of many, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) guest: u64,
    pub(crate) kernel: u64,
    /// The part of `kernel` in queues.
    pub(crate) queue: u64,
    pub(crate) device: u64,
}

impl Times {
    /// In wrapping arithmetic, as [`counters::IoTotals`].
    pub(crate) const fn add(&mut self, other: &Self) {
        self.guest = self.guest.wrapping_add(other.guest);
        self.kernel = self.kernel.wrapping_add(other.kernel);
        self.queue = self.queue.wrapping_add(other.queue);
        self.device = self.device.wrapping_add(other.device);
    }
}

/// The records of I/Os. A place is used again once its I/O has ended; allocates only to grow.
#[derive(Clone, Debug)]
pub(crate) struct Slab {
    items: Vec<Io>,
    /// The places that are free, through [`Io::next`], the last one freed first.
    free: u32,
}

impl Default for Slab {
    fn default() -> Self {
        Self { items: Vec::new(), free: NONE }
    }
}

impl Slab {
    /// A record for an I/O, written in its place: it is too large to be made elsewhere and copied. With all records, of
    /// which it is one.
    #[inline]
    pub(crate) fn insert(&mut self, now: Time, request: &Request, extra: u32) -> (u32, &mut [Io]) {
        if self.free == NONE {
            self.grow();
        }
        let slot = self.free;
        let record = &mut self.items[slot as usize];
        self.free = record.next;
        record.begin(now, request, extra);
        (slot, &mut self.items)
    }

    #[cold]
    fn grow(&mut self) {
        self.free = self.items.len() as u32;
        // By a sixteenth: on many hosts the room that doubling leaves adds up.
        if self.items.len() == self.items.capacity() {
            self.items.reserve_exact(self.items.len() / 16 + 8);
        }
        self.items.push(Io::FREE);
    }

    /// A record for a piece of an I/O with the driver: `bytes` from `offset` in its request on.
    pub(crate) fn insert_piece(&mut self, of: u32, offset: u32, bytes: u32) -> u32 {
        let Io { vdisk, tag, op, extra, path, since, .. } = self[of];
        let (vdisk, lba, waited_ns) = (VdiskId(vdisk), 0, 0);
        let request = Request { vdisk, op, lba, bytes, waited_ns, tag };
        let (piece, ios) = self.insert(since, &request, extra);
        let record = &mut ios[piece as usize];
        record.state = State::Piece;
        record.path = path;
        record.block = offset;
        piece
    }

    /// What the driver is given again has a new id: a late answer to the first time is none to the
    /// second.
    #[inline]
    pub(crate) fn renew(&mut self, slot: u32) {
        let generation = &mut self[slot].generation;
        *generation = generation.wrapping_add(1);
    }

    /// Its id, which this was, ends with it.
    #[inline]
    pub(crate) fn free(&mut self, slot: u32) -> IoId {
        let record = &mut self.items[slot as usize];
        let id = record.id(slot);
        record.generation = record.generation.wrapping_add(1);
        record.state = State::Free;
        record.next = core::mem::replace(&mut self.free, slot);
        id
    }

    /// The state of what has that id; `None` when it has ended, or never was.
    #[inline]
    pub(crate) fn state_of(&self, id: IoId) -> Option<State> {
        let record = self.items.get(id.slot() as usize)?;
        (record.generation == id.generation()).then_some(record.state)
    }

    #[inline]
    pub(crate) fn id_of(&self, slot: u32) -> IoId {
        self[slot].id(slot)
    }

    /// The places that are free, in the order in which they will be used.
    pub(crate) fn free_places(&self) -> impl Iterator<Item = u32> + '_ {
        Queue { head: self.free, tail: NONE }.iter(self)
    }

    /// Whether the free places are a row of free records; marks them as seen.
    pub(crate) fn free_is_sound(&self, seen: &mut [bool]) -> bool {
        let mut next = self.free;
        while next != NONE {
            let Some(record) = self.items.get(next as usize) else { return false };
            if record.state != State::Free || core::mem::replace(&mut seen[next as usize], true) {
                return false;
            }
            next = record.next;
        }
        true
    }

    /// Every record, used or not.
    pub(crate) fn indices(&self) -> core::ops::Range<u32> {
        0..self.items.len() as u32
    }
}

/// The records themselves, by their places.
impl core::ops::Deref for Slab {
    type Target = [Io];

    #[inline]
    fn deref(&self) -> &[Io] {
        &self.items
    }
}

impl core::ops::DerefMut for Slab {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Io] {
        &mut self.items
    }
}

impl core::ops::Index<u32> for Slab {
    type Output = Io;

    #[inline]
    fn index(&self, slot: u32) -> &Io {
        &self.items[slot as usize]
    }
}

impl core::ops::IndexMut<u32> for Slab {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Io {
        &mut self.items[slot as usize]
    }
}

/// What lies beside the records of a few I/Os; allocates only to grow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras {
    items: Vec<Extra>,
    free: Vec<u32>,
}

impl Extras {
    pub(crate) fn insert(&mut self, extra: Extra) -> u32 {
        if let Some(index) = self.free.pop() {
            self.items[index as usize] = extra;
            return index;
        }
        self.items.push(extra);
        (self.items.len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, index: u32) {
        self.free.push(index);
    }

    pub(crate) const fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether those that nobody owns are free, each once.
    pub(crate) fn are_free(&self, owned: &[bool]) -> bool {
        let mut seen = owned.to_vec();
        let each_once = self.free.iter().all(|index| {
            let seen = seen.get_mut(*index as usize);
            seen.is_some_and(|seen| !core::mem::replace(seen, true))
        });
        each_once && !seen.contains(&false)
    }
}

impl core::ops::Index<u32> for Extras {
    type Output = Extra;

    #[inline]
    fn index(&self, index: u32) -> &Extra {
        &self.items[index as usize]
    }
}

impl core::ops::IndexMut<u32> for Extras {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Extra {
        &mut self.items[index as usize]
    }
}

/// The I/Os of a virtual disk that are in the VMkernel, wherever they are there, so that those that
/// take too long are found without a look at others, nor at what waits in the guest.
/// A seat is used again; none is ever taken away from who sits.
#[derive(Clone, Debug)]
pub(crate) struct Seats {
    /// An I/O, or [`Seats::FREE`] and the next free seat.
    seats: Vec<u32>,
    free: u32,
}

impl Default for Seats {
    fn default() -> Self {
        Self { seats: Vec::new(), free: Self::END }
    }
}

impl Seats {
    const FREE: u32 = 1 << 31;
    /// No seat is free.
    const END: u32 = NONE;

    /// Gives an I/O a seat.
    #[inline]
    pub(crate) fn take(&mut self, io: u32) -> u32 {
        if self.free == Self::END {
            self.grow();
        }
        let seat = self.free ^ Self::FREE;
        self.free = core::mem::replace(&mut self.seats[seat as usize], io);
        seat
    }

    #[cold]
    fn grow(&mut self) {
        self.free = self.len() as u32 | Self::FREE;
        self.seats.push(Self::END);
    }

    /// Gives the seat of an I/O to another one.
    #[inline]
    pub(crate) fn pass_on(&mut self, seat: u32, io: u32) {
        self.seats[seat as usize] = io;
    }

    #[inline]
    pub(crate) fn leave(&mut self, seat: u32) {
        self.seats[seat as usize] = core::mem::replace(&mut self.free, seat | Self::FREE);
    }

    /// Whether the free ones are a row, and the others are taken by one of so many I/Os.
    pub(crate) fn are_sound(&self, ios: usize) -> bool {
        let (mut free, mut left) = (self.free, self.len() - self.iter().count());
        while free != Self::END {
            let next = self.seats.get((free ^ Self::FREE) as usize);
            let Some(next) = next.filter(|next| *next & Self::FREE != 0 && left > 0) else {
                return false;
            };
            (free, left) = (*next, left - 1);
        }
        left == 0 && self.iter().all(|io| (io as usize) < ios)
    }

    /// How many there have ever been at one time.
    pub(crate) const fn len(&self) -> usize {
        self.seats.len()
    }

    /// Who sits there, if anybody.
    pub(crate) fn at(&self, seat: usize) -> Option<u32> {
        self.seats.get(seat).copied().filter(|io| io & Self::FREE == 0)
    }

    /// Everybody who sits.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).filter_map(|seat| self.at(seat))
    }
}

/// A first-in first-out queue through [`Io::next`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    head: u32,
    /// Of no meaning while it is empty.
    tail: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self { head: NONE, tail: NONE }
    }
}

impl Queue {
    #[inline]
    pub(crate) const fn is_empty(self) -> bool {
        self.head == NONE
    }

    /// Whether another one is empty as well.
    #[inline]
    pub(crate) const fn is_empty_beside(self, other: Self) -> bool {
        self.head & other.head == NONE
    }

    /// Its first and its last, or [`NONE`] twice.
    pub(crate) const fn ends(self) -> [u32; 2] {
        if self.is_empty() { [NONE; 2] } else { [self.head, self.tail] }
    }

    #[inline]
    pub(crate) const fn head(self) -> Option<u32> {
        if self.head == NONE { None } else { Some(self.head) }
    }

    #[inline]
    pub(crate) fn push(&mut self, ios: &mut [Io], io: u32) {
        ios[io as usize].next = NONE;
        ios[io as usize].prev = self.tail;
        if self.head == NONE {
            self.head = io;
        } else {
            ios[self.tail as usize].next = io;
        }
        self.tail = io;
    }

    /// Puts back what was taken from the front.
    pub(crate) fn push_front(&mut self, ios: &mut [Io], io: u32) {
        ios[io as usize].next = self.head;
        ios[io as usize].prev = NONE;
        if self.head == NONE {
            self.tail = io;
        } else {
            ios[self.head as usize].prev = io;
        }
        self.head = io;
    }

    #[inline]
    pub(crate) fn pop(&mut self, ios: &[Io]) -> Option<u32> {
        let io = self.head()?;
        self.head = ios[io as usize].next;
        Some(io)
    }

    /// Takes one out that is in this queue.
    pub(crate) fn remove(&mut self, ios: &mut [Io], io: u32) {
        let (next, prev) = (ios[io as usize].next, self.before(ios, io));
        match prev {
            None => self.head = next,
            Some(prev) => ios[prev as usize].next = next,
        }
        match next {
            NONE => self.tail = prev.unwrap_or(NONE),
            next => ios[next as usize].prev = prev.unwrap_or(NONE),
        }
    }

    /// The one that came last, and the one before another: to walk from the back while some leave.
    pub(crate) const fn tail(self) -> Option<u32> {
        if self.is_empty() { None } else { Some(self.tail) }
    }

    pub(crate) fn before(self, ios: &[Io], io: u32) -> Option<u32> {
        (io != self.head).then(|| ios[io as usize].prev)
    }

    /// Whether it holds together, with I/Os that are its own and were not seen before; marks them.
    pub(crate) fn is_sound(
        self,
        ios: &[Io],
        seen: &mut [bool],
        is_mine: impl Fn(&Io) -> bool,
    ) -> bool {
        let (mut last, mut next) = (NONE, self.head);
        while next != NONE {
            let Some(io) = ios.get(next as usize) else { return false };
            let is_new = !core::mem::replace(&mut seen[next as usize], true);
            if !is_new || !is_mine(io) || last != NONE && io.prev != last {
                return false;
            }
            (last, next) = (next, io.next);
        }
        self.is_empty() || self.tail == last
    }

    /// Everything in the queue, front first.
    pub(crate) fn iter(self, ios: &[Io]) -> impl Iterator<Item = u32> + '_ {
        let mut next = self.head;
        core::iter::from_fn(move || {
            let io = next;
            (io != NONE).then(|| {
                next = ios[io as usize].next;
                io
            })
        })
    }
}

choices! {
    State {
        0 Free,
        1 Guest,
        2 Queued,
        3 AtPath,
        4 AtAdapter,
        5 Active,
        6 InPieces,
        7 Recalled,
        8 Overdue,
        9 WrittenOff,
        10 Orphan,
        11 Held,
        12 Piece,
        13 Left,
        14 Whole,
    }
}

records! {
    Io {
        submitted, entered, since, tag, next, prev, seat, bytes, block, extra, generation, vdisk,
        path, losses, op, state,
    }
    Extra {
        io, device_ns, gate_ns, hold_ns, retries, request, offset, parts, pieces, left, array_ns,
        status,
    }
    Times { guest, kernel, queue, device }
    Slab { items, free }
    Extras { items, free }
    Seats { seats, free }
    Queue { head, tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_stays_within_64_bytes() {
        assert!(size_of::<Io>() <= 64, "{}", size_of::<Io>());
    }
}
