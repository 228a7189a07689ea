//! esxtop captures in and out.
//!
//! A capture is what `esxtop -b` wrote on a real ESXi host, or what kavg wrote in the same format.
//! [`read`] turns files into [`counters::Recording`]s: bytes come from [`Input`], the header says
//! which object and counter a column is, rows are read in parallel, and the joins say which VM,
//! world, device, path and adapter belong together. [`write_esxtop`] goes the other way.
//!
//! The crate sees `counters` only; whoever diagnoses, shows or reports a recording stands above.

mod cells;
mod check;
mod error;
mod header;
mod input;
mod joins;
mod merge;
mod reader;
mod report;
mod slice;
mod time;
mod worlds;
mod writer;

pub use cells::Damage;
pub use check::{Check, Identity, check};
pub use error::Error;
pub use input::{Input, Limits};
pub use merge::merge;
pub use reader::{Capture, ReadOptions, read, read_inputs};
pub use report::{Because, DiskLink, FileReport, HostReport, ReadReport};
pub use slice::Slice;
pub use time::{Stamps, format_stamp, parse_stamp};
pub use writer::write_esxtop;
