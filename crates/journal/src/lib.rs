//! The journal of engines: every input with its time, and a digest of what came out. It is what keeps
//! the engine honest: [`replay()`] feeds the inputs to fresh engines, and what comes out must be the
//! same bit for bit.
//!
//! It stands above the engine and below whoever drives one, in virtual time or in real time, and is
//! made for a driver that is killed: what reached the file is a row of whole frames, each checked
//! (see `frame.rs`), and replays as far as it goes. It needs nothing beside it: the hosts are in it
//! as they were built.
//!
//! One of real time is in segments, a file each, of which all but the first begin with the engines as
//! they were: old ones may go, and recording goes on behind a gap. One of virtual time is one segment.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `KAVGJRNL` |
//! | 1 | version of the format: 17 |
//! | rest | frames |
//!
//! The first frame is as in `segment.rs`. The others hold whole
//! records, with numbers and fields as in `engine::codec`. A record begins with a number
//! whose five lowest bits are a code:
//!
//! | code | what is above it | what follows |
//! |---|---|---|
//! | 0 | the host that the records after it are of; the first until one says so | |
//! | of an input | the number of outputs polled from the host since its last input | the input's fields; nanoseconds since the input before, of whichever host; the mark of the outputs if there are any |
//! | 29 | | of each host the number of outputs, and their digest in 8 bytes; the next segment goes on where this one ends |
//! | 30 | | nanoseconds from the last input to the first that is not recorded, and from there to the last, and their number; the next segment, if there is one, begins behind them |
//! | 31 | | of each host the number of outputs, their digest in 8 bytes, and for virtual disks, devices, paths and adapters their number and a digest of the counters of each in 8 bytes; nothing follows |
//!
//! The mark are two bytes of the digest of all outputs of the host so far.

mod digest;
mod error;
mod frame;
mod journal;
mod look;
mod name;
mod replay;
mod report;
mod segment;
#[cfg(test)]
mod short;
mod topology;

use std::io::Read;

pub use error::Error;
pub use journal::{Files, Gap, Journal, Limits};
pub use look::Look;
pub use name::{EXTENSION, file_name, of_file};
pub use replay::{Replay, replay};
pub use report::{Difference, Differing, Hole, Report};

/// Whether a file is a journal, of whatever version, by its first bytes.
pub fn is_journal(mut file: impl Read) -> bool {
    let mut head = [0; MAGIC.len()];
    file.read_exact(&mut head).is_ok() && head == *MAGIC
}

/// Whether it may be one that was cut, as early as before its first byte.
pub fn may_be_journal(mut file: impl Read) -> bool {
    let mut head = [0; MAGIC.len()];
    frame::read_up_to(&mut file, &mut head).is_ok_and(|filled| MAGIC.starts_with(&head[..filled]))
}

/// What a journal begins with.
const MAGIC: &[u8; 8] = b"KAVGJRNL";
/// The version of the format, which is the byte after it.
const VERSION: u8 = 17;
