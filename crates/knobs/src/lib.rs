//! The one vocabulary of settings: drivers, parameters, options, ranges, defaults by version,
//! moments of effect and refusals, below all who set something and all who propose it.
//!
//! It stands beside `counters`: that is what comes out of a host, this is what goes in. What depends
//! on a host's state (has it the device, how deep is it) is the engine's to refuse; all else is
//! refused here.
#![no_std]

extern crate alloc;

mod advanced;
mod driver;
mod effect;
mod setting;
mod version;
mod vscsi;

pub use advanced::{Advanced, AdvancedInfo, DSNRO};
pub use driver::{Driver, Transport};
pub use effect::Effect;
pub use setting::{Allocation, Knob, PathPolicy, Setting};
pub use version::Version;
pub use vscsi::{
    GuestOs, OTHER_MAX_TRANSFER, PVSCSI_COMMANDS_PER_PAGE, PVSCSI_DEPTH_MAX, PVSCSI_MAX_TRANSFER,
    PVSCSI_RING_PAGES_DEFAULT, PVSCSI_RING_PAGES_MAX, VscsiLimits, limits_of,
};
