//! What hosts send to an array.

use counters::{Direction, Op};

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

impl Command {
    pub(crate) fn is_write(&self) -> bool {
        self.op.direction() == Direction::Write
    }
}
