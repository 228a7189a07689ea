//! The queueing stack of one ESXi host as a pure state machine.
//!
//! ```text
//!   guest -> vSCSI -> world -> device queue -> path -> adapter -> (the array)
//! ```
//!
//! The engine never reads a clock, never does I/O and allocates nothing per I/O once warm. Time
//! comes in with every input; what is to be done is polled out. The order in which an I/O meets
//! the levels is written once, in `flow.rs`.
#![no_std]

extern crate alloc;

mod account;
mod adapter;
mod ahead;
mod answer;
mod attach;
mod bytes;
mod check;
pub mod codec;
mod config;
mod device;
mod dispatcher;
mod engine;
mod error;
mod flow;
mod gates;
mod io;
mod knee;
mod options;
mod outage;
mod overdue;
mod path;
mod pieces;
mod request;
mod reset;
mod retry;
mod sched;
mod settings;
mod sink;
mod sioc;
mod slab;
mod sound;
mod split;
mod stack;
mod state;
mod throttle;
mod timer;
mod vscsi;
mod world;

pub use ahead::Fetch;
pub use config::{
    AdapterConfig, CompetitionUnit, DepthMode, DeviceConfig, HostConfig, PathAccess, PathConfig,
    SchedPolicy, ThrottleMode, VdiskConfig, VmConfig, VscsiConfig, WEIGHT_SCALE,
};
pub use engine::{DeviceLimits, Engine};
pub use error::Error;
pub use io::{Dispatch, Event, Input, Object, Output, Part, Request, Wakeup};
pub use sink::{Outputs, Sink};
