//! The protocol of a daemon's control socket, and its client: one JSON object a line, from either side.
//!
//! It stands above `counters` and `knobs`: what a daemon counts comes out under the keys of the one, what
//! is set goes in as lines of the other. `live` answers, the command line asks. What comes over the
//! socket is from outside on both sides: it is read into these types or refused in a line.

mod client;
mod layout;
mod protocol;
mod state;
mod vscsi;

pub use client::Client;
pub use layout::{Layout, Row};
pub use protocol::{
    Answer, Ask, Done, LINE_MAX, PathState, Said, VERSION, What, read_answer, read_ask,
};
pub use state::{
    Adapter, Congestion, Device, Disk, HostState, Path, Policy, StoragePolicy, Throttle, Totals,
    Vm, World,
};
pub use vscsi::{VscsiAct, VscsiCounts, VscsiDisk, VscsiOrder};
