//! What hosts send to an array.

use counters::{Direction, IoId, Op};

/// Bytes of a block, in which places are counted.
pub(crate) const BLOCK: u64 = 4096;

/// A command to a volume of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The volume, by its position in [`crate::ArrayConfig::volumes`].
    pub volume: u32,
    /// The host that sends it; reservations belong to hosts.
    pub host: u32,
    /// The path that it took, by its number on that host: it leads to a port.
    pub path: u32,
    /// What it does.
    pub op: Op,
    /// Where it begins, in blocks of 4 KiB from the beginning of the array on.
    pub block: u64,
    /// Bytes that it moves.
    pub bytes: u32,
}

/// What a host's end of the way adds to a command; by default nothing, and its array's fabric says the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Round trips of a write after the first; `None` is as the array's protocol has it.
    pub further_rounds: Option<u64>,
    /// Nanoseconds for its port's link and on it, or for that of a switch where that is longer.
    pub link_ns: u64,
    /// The switches whose links its way leads over, by their numbers: [`crate::Switches::cross`].
    pub crosses: [Option<u32>; 2],
    /// The nexus of its host by which it goes, where that loses segments: what comes back by it comes in order.
    pub ordered_by: Option<u32>,
    /// Segments of a read that are lost.
    pub lost: u32,
    /// Nanoseconds for which the acknowledgement of each is kept back.
    pub ack_ns: u64,
    /// Whether its host would rather hear that an active/passive array has the volume at its other controller than
    /// have it brought to this one.
    pub follows: bool,
    /// What its host calls it when it takes it back: [`crate::Array::take_back`]. `None` where it takes none back.
    pub io: Option<IoId>,
}

impl Carried {
    /// Nothing.
    pub(crate) const NOTHING: Self = Self {
        further_rounds: None,
        link_ns: 0,
        crosses: [None; 2],
        ordered_by: None,
        lost: 0,
        ack_ns: 0,
        follows: false,
        io: None,
    };
}

impl Command {
    pub(crate) fn is_write(&self) -> bool {
        self.op.direction() == Direction::Write
    }
}
