//! esxtop captures in and out.
//!
//! A capture is what `esxtop -b` wrote on a real ESXi host, or what kavg wrote in the same format.
//! [`read`] turns files into [`counters::Recording`]s: bytes come from [`Input`], the header says
//! which object and counter a column is, rows are read in parallel, and the joins say which VM,
//! world, device, path and adapter belong together. [`write_esxtop`] goes the other way.
//!
//! A tag in brackets is the source of a rule; `CAP` is what was seen over all real files at hand
//! (reference: `esxtop-captures.md`).
//!
//! The crate sees `counters` only; whoever diagnoses, shows or reports a recording stands above.

mod anonymize;
mod beginning;
pub mod bench;
mod bus;
mod catalogue;
mod cells;
mod check;
mod columns;
mod copy;
mod cut;
mod error;
mod esxcli;
mod generate;
mod header;
mod info;
mod input;
mod joins;
mod merge;
mod names;
#[cfg(feature = "parquet")]
mod parquet;
mod reader;
mod report;
mod sequence;
mod slice;
mod table;
mod text;
mod time;
mod vscsistats;
mod worlds;
mod writer;
mod zone;

pub use anonymize::{AnonymizeReport, Substitutes, anonymize};
pub use cells::Damage;
pub use check::{Check, Identity, check};
pub use copy::CopyReport;
pub use cut::{Cut, cut};
pub use error::Error;
pub use esxcli::{
    CoreAdapter, CoreDevice, Esxcli, Extent, HostOption, ModuleParameter, NmpDevice, parse_esxcli,
    parse_outputs,
};
pub use info::{HostInfo, Missing, RecordCommand, info, record_command};
pub use input::{Input, Limits, Progress};
pub use merge::merge;
pub use names::parse_names;
#[cfg(feature = "parquet")]
pub use parquet::{ParquetRows, write_parquet};
pub use reader::{Capture, ReadOptions, read, read_inputs};
pub use report::{Because, DiskLink, FileReport, HostReport, ReadReport, VersionHint};
pub use sequence::{Sequence, SequenceReport};
pub use slice::Slice;
pub use table::{Cell, ROW_NAMES, csv_cell, row_names, write_csv, write_csv_row};
pub use text::{read_output, read_text};
pub use time::{Stamps, format_stamp, parse_stamp};
pub use vscsistats::{
    Bin, VscsiHistogram, parse_vscsistats, print_vscsistats, print_vscsistats_text,
};
pub use writer::{write_esxtop, write_esxtop_header, write_esxtop_rows};
pub use zone::Zone;
