//! Keys of events and tags of I/Os: small numbers packed into one word.

use counters::{Sense, Status};
use scenario::WORKLOADS_OF_DISK_MAX;

/// What an event is; earlier variants first at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A timed event of the scenario.
    Event = 0,
    /// A host is up again after a reboot.
    Boot = 1,
    /// A workload stops.
    Stop = 2,
    /// A workload starts.
    Start = 3,
    /// The stage of a workload begins.
    Stage = 4,
    /// The answer of an array.
    Done = 5,
    /// The engine asked to be woken.
    Wake = 6,
    /// A workload has something to issue.
    Arrival = 7,
    /// An application goes on after an error.
    Retry = 8,
    /// A copy of a virtual disk has ended.
    Copied = 9,
}

/// What an event is about, packed below its time: class, then host, then the place of the command
/// that is answered and the status, or the index of an event or a workload. The order of the fields
/// is the tie rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

impl Key {
    /// No event comes before it.
    pub(crate) const FIRST: Self = Self(0);
    const IO_SHIFT: u32 = 3;
    const HOST_SHIFT: u32 = 41;
    const CLASS_SHIFT: u32 = 60;
    /// By the number that an answer's status has in a key. The arrays here give one sense.
    const STATUSES: [Status; 1 << Self::IO_SHIFT] = {
        let mut all = [Status::Aborted; 1 << Self::IO_SHIFT];
        all.split_at_mut(Status::ALL.len()).0.copy_from_slice(&Status::ALL);
        let standby = Status::CheckCondition(Sense::STANDBY);
        all[standby.code() as usize] = standby;
        all
    };

    pub(crate) const fn new(class: Class, host: usize, index: u64) -> Self {
        let class = (class as u64) << Self::CLASS_SHIFT;
        Self(class | ((host as u64) << Self::HOST_SHIFT) | index)
    }

    /// Who goes on after an error: the player, and which of its threads.
    pub(crate) const fn retry(host: usize, player: usize, slot: u32) -> Self {
        Self::new(Class::Retry, host, ((player as u64) << Tag::SLOT_BITS) | slot as u64)
    }

    /// What answers to the commands of a host have in common.
    pub(crate) const fn done(host: usize) -> Self {
        Self::new(Class::Done, host, 0)
    }

    /// Of those the answer to the command at that place of the engine's.
    #[inline]
    pub(crate) const fn of(self, slot: u32, status: Status) -> Self {
        Self(self.0 | ((slot as u64) << Self::IO_SHIFT) | status.code() as u64)
    }

    /// What orders events of different hosts at one instant, for a host that is numbered so: class and
    /// host. More than 32 low bits are free.
    pub(crate) const fn rank(self, host: usize) -> u64 {
        self.0 >> Self::CLASS_SHIFT << Self::CLASS_SHIFT | (host as u64) << Self::HOST_SHIFT
    }

    /// The host that an answer comes to; `None` of anything else.
    #[inline(always)]
    pub(crate) const fn answered(self) -> Option<usize> {
        const HOSTS: u32 = 1 << (Key::CLASS_SHIFT - Key::HOST_SHIFT);
        let host = ((self.0 >> Self::HOST_SHIFT) as u32).wrapping_sub(Class::Done as u32 * HOSTS);
        if host < HOSTS { Some(host as usize) } else { None }
    }

    /// Whether an answer says that its command ended well.
    #[inline]
    pub(crate) const fn is_good(self) -> bool {
        self.0 & ((1 << Self::IO_SHIFT) - 1) == Status::Good.code() as u64
    }

    #[inline]
    pub(crate) const fn class(self) -> Class {
        match self.0 >> Self::CLASS_SHIFT {
            0 => Class::Event,
            1 => Class::Boot,
            2 => Class::Stop,
            3 => Class::Start,
            4 => Class::Stage,
            5 => Class::Done,
            6 => Class::Wake,
            7 => Class::Arrival,
            8 => Class::Retry,
            _ => Class::Copied,
        }
    }

    #[inline]
    pub(crate) const fn host(self) -> usize {
        ((self.0 >> Self::HOST_SHIFT) & ((1 << (Self::CLASS_SHIFT - Self::HOST_SHIFT)) - 1))
            as usize
    }

    #[inline]
    pub(crate) const fn index(self) -> usize {
        (self.0 & ((1 << Self::HOST_SHIFT) - 1)) as usize
    }

    #[inline]
    pub(crate) const fn slot(self) -> u32 {
        ((self.0 & ((1 << Self::HOST_SHIFT) - 1)) >> Self::IO_SHIFT) as u32
    }

    pub(crate) const fn status(self) -> Status {
        Self::STATUSES[(self.0 & ((1 << Self::IO_SHIFT) - 1)) as usize]
    }
}

// A scenario with more is refused.
const _: () = assert!(WORKLOADS_OF_DISK_MAX <= 1 << (32 - Tag::SLOT_BITS));

/// What the guest knows an I/O by: which workload of the virtual disk, and which of its threads.
#[derive(Clone, Copy)]
pub(crate) struct Tag(pub(crate) u32);

impl Tag {
    pub(crate) const SLOT_BITS: u32 = 16;
    /// The most threads of a workload.
    pub(crate) const SLOTS: u32 = 1 << Self::SLOT_BITS;

    #[inline]
    pub(crate) const fn new(ordinal: u32, slot: u32) -> Self {
        Self((ordinal << Self::SLOT_BITS) | slot)
    }

    #[inline]
    pub(crate) const fn ordinal(self) -> usize {
        (self.0 >> Self::SLOT_BITS) as usize
    }

    #[inline]
    pub(crate) const fn slot(self) -> u32 {
        self.0 & (Self::SLOTS - 1)
    }
}
