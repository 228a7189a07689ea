//! The I/Os inside the engine: fixed records in a pool, linked into the queues they wait in.
//!
//! A record is 56 bytes. What few I/Os need (a retry, a wait at an adapter, pieces) lies in an
//! [`Extra`] beside it, so that the common I/O stays small and nothing is allocated once warm.

use alloc::vec::Vec;

use counters::{IoId, Op, PathId, Status, Time, VdiskId};

use crate::{Dispatch, Request, adapter::Adapter};

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
    /// Waits for the moment to be sent again.
    Held,
    /// Given up while it was with the driver, whose answers are still to come.
    Orphan,
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
    /// The next one in the queue it waits in.
    pub(crate) next: u32,
    pub(crate) bytes: u32,
    /// Its first sector in units of 4 KiB, modulo 16 TB: near enough for sequential affinity.
    pub(crate) block: u32,
    /// Its [`Extra`], or [`NONE`].
    pub(crate) extra: u32,
    pub(crate) vdisk: u16,
    pub(crate) path: u16,
    /// Pieces that the driver still has.
    pub(crate) pieces: u16,
    /// How often its path had gone down when it was handed over.
    pub(crate) losses: u16,
    pub(crate) op: Op,
    pub(crate) state: State,
}

impl Io {
    /// An I/O as it comes from the guest.
    #[inline]
    pub(crate) const fn new(now: Time, request: &Request, extra: u32) -> Self {
        Self {
            submitted: Time(now.0.saturating_sub(request.waited_ns)),
            entered: now,
            since: now,
            tag: request.tag,
            next: NONE,
            bytes: request.bytes,
            block: (request.lba / 8) as u32,
            extra,
            vdisk: request.vdisk.0,
            path: 0,
            pieces: 0,
            losses: 0,
            op: request.op,
            state: State::Guest,
        }
    }

    /// Goes to the driver, whole.
    #[inline]
    pub(crate) const fn hand_over(&mut self, losses: u16, adapter: &mut Adapter, now: Time) {
        self.state = State::Active;
        self.since = now;
        self.pieces = 1;
        self.losses = losses;
        adapter.counters.active.enter(now);
    }

    /// What the driver gets; `io` is its own number.
    #[inline]
    pub(crate) const fn command(&self, io: u32) -> Dispatch {
        Dispatch {
            io: IoId(io),
            vdisk: VdiskId(self.vdisk),
            path: PathId(self.path),
            op: self.op,
            offset: 0,
            bytes: self.bytes,
        }
    }

    /// Whether it holds a slot of its device and waits for its path or the adapter.
    pub(crate) const fn is_at_gate(&self) -> bool {
        matches!(self.state, State::AtPath | State::AtAdapter)
    }

    /// Whether an answer of the driver is still to come.
    #[inline]
    pub(crate) const fn is_with_driver(&self) -> bool {
        matches!(self.state, State::Active | State::Orphan)
    }
}

/// What only few I/Os need.
#[derive(Clone, Debug)]
pub(crate) struct Extra {
    /// Time with the driver in earlier attempts.
    pub(crate) device_ns: u64,
    /// Wait at a path or an adapter.
    pub(crate) gate_ns: u64,
    /// Time held before being sent again.
    pub(crate) hold_ns: u64,
    /// When the hold ends; an earlier timer was set for another I/O in the same record.
    pub(crate) held_until: Time,
    /// The longest latency that the array reported for a piece.
    pub(crate) array_ns: u64,
    /// How often it was sent again.
    pub(crate) retries: u32,
    /// The guest's I/O that this is a part of, or [`NONE`].
    pub(crate) parent: u32,
    /// The worst result of a piece so far.
    pub(crate) status: Status,
}

impl Default for Extra {
    fn default() -> Self {
        Self {
            device_ns: 0,
            gate_ns: 0,
            hold_ns: 0,
            held_until: Time::ZERO,
            array_ns: 0,
            retries: 0,
            parent: NONE,
            status: Status::Good,
        }
    }
}

/// Where the time of one I/O went, or that of many, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) guest: u64,
    pub(crate) kernel: u64,
    /// The part of `kernel` in queues.
    pub(crate) queue: u64,
    /// The part of `queue` at paths and adapters.
    pub(crate) gate: u64,
    pub(crate) device: u64,
}

impl Times {
    pub(crate) const fn add(&mut self, other: &Self) {
        self.guest += other.guest;
        self.kernel += other.kernel;
        self.queue += other.queue;
        self.gate += other.gate;
        self.device += other.device;
    }
}

/// A guest's I/O that its driver had to split.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parent {
    pub(crate) tag: u32,
    pub(crate) children: u32,
    pub(crate) status: Status,
}

/// Records that are used again; allocates only to grow.
#[derive(Clone, Debug)]
pub(crate) struct Pool<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Pool<T> {
    /// Puts in what `make` makes, in its place: records are too large to be made elsewhere and
    /// copied.
    #[inline]
    pub(crate) fn insert(&mut self, make: impl Fn() -> T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.items[index as usize] = make();
            return index;
        }
        self.items.push(make());
        (self.items.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: u32) {
        self.free.push(index);
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.items.get_mut(index as usize)
    }

    pub(crate) fn indices(&self) -> core::ops::Range<u32> {
        0..self.items.len() as u32
    }
}

impl<T> core::ops::Index<u32> for Pool<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.items[index as usize]
    }
}

impl<T> core::ops::IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.items[index as usize]
    }
}

/// A first-in first-out queue through [`Io::next`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    head: u32,
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

    #[inline]
    pub(crate) const fn head(self) -> Option<u32> {
        if self.head == NONE { None } else { Some(self.head) }
    }

    #[inline]
    pub(crate) fn push(&mut self, ios: &mut Pool<Io>, io: u32) {
        ios[io].next = NONE;
        if self.head == NONE {
            self.head = io;
        } else {
            ios[self.tail].next = io;
        }
        self.tail = io;
    }

    /// Puts back what was taken from the front.
    pub(crate) fn push_front(&mut self, ios: &mut Pool<Io>, io: u32) {
        ios[io].next = self.head;
        if self.head == NONE {
            self.tail = io;
        }
        self.head = io;
    }

    #[inline]
    pub(crate) fn pop(&mut self, ios: &Pool<Io>) -> Option<u32> {
        let io = self.head()?;
        self.head = ios[io].next;
        Some(io)
    }

    /// Takes one out of the middle; `false` when it is not in this queue.
    pub(crate) fn remove(&mut self, ios: &mut Pool<Io>, io: u32) -> bool {
        let mut kept = Self::default();
        let mut found = false;
        while let Some(next) = self.pop(ios) {
            if next == io {
                found = true;
            } else {
                kept.push(ios, next);
            }
        }
        *self = kept;
        found
    }

    /// Everything in the queue, front first.
    pub(crate) fn iter(self, ios: &Pool<Io>) -> impl Iterator<Item = u32> + '_ {
        let mut next = self.head;
        core::iter::from_fn(move || {
            let io = next;
            (io != NONE).then(|| {
                next = ios[io].next;
                io
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_stays_within_56_bytes() {
        assert!(size_of::<Io>() <= 56, "{}", size_of::<Io>());
    }
}
