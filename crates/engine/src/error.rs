//! Refusals: what the engine says no to, in one line, having changed nothing.

use alloc::string::String;
use core::fmt;

use counters::{IoId, Time};

/// A request that the engine refuses. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An id that the host does not have; the noun and the number.
    Unknown(&'static str, usize),
    /// A place that is taken, or a part of which something is under way or that others need; the
    /// noun and the number.
    InUse(&'static str, usize),
    /// An answer to a command that the driver does not have: it was answered before, or never sent.
    NotOutstanding(IoId),
    /// The driver let go of a command that it has and was not asked to cancel.
    NotCancelled(IoId),
    /// A time before the last one.
    TimeWentBack {
        /// The time of the last input.
        last: Time,
        /// The time of this one.
        now: Time,
    },
    /// An I/O of a VM that is powered off.
    PoweredOff,
    /// An I/O of 0 bytes that is nothing without one.
    Empty,
    /// A setting out of its range or not of this version: the line to print.
    Refused(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(noun, id) => write!(f, "this host has no {noun} {id}"),
            Self::InUse(noun, id) => write!(f, "{noun} {id} is in use"),
            Self::NotOutstanding(io) => write!(f, "I/O {io} is not outstanding"),
            Self::NotCancelled(io) => write!(f, "I/O {io} was not asked back"),
            Self::TimeWentBack { last, now } => {
                write!(f, "time went back from {} ns to {} ns", last.0, now.0)
            }
            Self::PoweredOff => f.write_str("the virtual machine is powered off"),
            Self::Empty => f.write_str("an I/O has at least 1 byte"),
            Self::Refused(line) => f.write_str(line),
        }
    }
}

impl core::error::Error for Error {}
