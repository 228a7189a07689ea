//! The nouns that every part of kavg shares: units, ids, the one table of counters,
//! cumulative totals, and recordings.
//!
//! Counters have one direction: the engine fills a [`HostSnapshot`], a [`Sampler`] turns two of
//! them into rates under esxtop's names, and a [`Recording`] holds the rows. A capture of a
//! real ESXi host is read into the same [`Recording`], so whoever looks at one never asks where
//! it came from.
//!
//! The crate has no clock, no I/O and no hashing, and builds without `std`.
#![no_std]

extern crate alloc;

mod date;
mod histogram;
mod ids;
mod interval;
mod io;
mod kind;
mod recording;
mod sampler;
mod seldom;
pub mod sorted;
mod table;
mod totals;
mod units;
mod vscsi;

pub use date::date;
pub use histogram::Histogram;
pub use ids::{AdapterId, DeviceId, IoId, PathId, VdiskId, VmId, VscsiId, WorldId};
pub use interval::{DEFAULT_INTERVAL_S, SHORTEST_INTERVAL_S, holes, interval_s, is_leap};
pub use io::{Direction, Op, Sense, Status};
pub use kind::Kind;
pub use recording::{Controller, Entity, EntityId, Recording};
pub use sampler::{
    AdapterInfo, DeviceInfo, DeviceKind, Inventory, PERCENTILES, PathInfo, Sampler, VdiskInfo,
    VmInfo, percentiles_ms,
};
pub use seldom::Seldom;
pub use table::{Counter, CounterInfo, Format};
pub use totals::{
    DeviceCounters, GateCounters, HostSnapshot, IoTotals, Levels, Occupancy, RareCounters,
    VdiskCounters,
};
pub use units::{MICROSECOND, MILLISECOND, SECOND, SECTOR, Time, nanos_to_millis};
pub use vscsi::{Metric, VSCSI, VscsiBins, VscsiCommand, VscsiStats};
