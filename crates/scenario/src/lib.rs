//! A scenario: what is simulated, what happens meanwhile and what is expected of it, parsed once
//! from a TOML file into types that cannot be wrong.
//!
//! It stands between the file and whoever drives the engine: hosts, arrays and workloads come out
//! as the configuration of [`engine`] and [`model`], lines that set something as [`knobs::Knob`].

mod array;
mod block;
mod change;
mod component;
mod copy;
mod datastore;
mod error;
mod event;
mod expect;
mod fio;
mod fio_options;
mod flash_cache;
mod guest;
mod host;
mod initiator;
mod injector;
mod metadata;
mod names;
mod nouns;
mod over;
mod reader;
mod rehearsal;
mod resolve;
mod scenario;
mod serving;
mod storage_policy;
mod stream;
mod switch;
mod types;
mod units;
mod vdbench;
mod vm;
mod workload;

pub use array::ARRAYS_MAX;
pub use component::Components;
pub use copy::check as check_copy;
pub use error::Error;
pub use names::is_member;
pub use over::Over;
pub use scenario::{Beside, parse_knob};
pub use types::{
    Action, Array, AutomaticThreshold, Backend, Bound, CopyConfig, DownBy, DownPaths, Expectation,
    Face, FlashCache, Given, Host, Image, Lines, Nbd, Role, Scenario, Sockets, StoragePolicy,
    Subject, Switch, Target, TimedEvent, Window, Workload,
};
pub use units::{duration as parse_duration, size as parse_size};
pub use workload::WORKLOADS_OF_DISK_MAX;
