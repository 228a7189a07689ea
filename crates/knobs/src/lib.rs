//! The one vocabulary of settings: drivers, parameters, options, ranges, defaults by version,
//! moments of effect and refusals, below all who set something and all who propose it.
//!
//! It stands beside `counters`: that is what comes out of a host, this is what goes in. What depends
//! on a host's state (has it the device, how deep is it) is the engine's to refuse; all else is
//! refused here.
#![no_std]

extern crate alloc;

mod advanced;
mod cmdlets;
mod command;
mod cost;
mod disks;
mod driver;
mod effect;
mod esxcli;
mod fixed;
mod guest;
mod line;
mod lists;
mod manual;
mod names;
mod order;
mod place;
mod powercli;
mod query;
mod refusal;
mod setting;
mod show;
mod unsimulated;
mod vcenter;
mod vendor;
mod version;
mod vscsi;
mod words;

pub use advanced::{ActsOn, Advanced, AdvancedInfo, DSNRO};
pub use command::is_active_passive;
pub use cost::{cost_units, default_cost_unit_kib};
pub use disks::{LIMIT, NO_POLICY};
pub use driver::{Driver, DriverSources, MEMORY, Seen, Transport};
pub use effect::Effect;
pub use fixed::{
    CONFLICT_RETRIES, CONFLICT_RETRY_NS, CONGESTION_MS, CONGESTION_MS_DEFAULT,
    CONGESTION_PERIOD_NS, CONGESTION_SHARES, DEAD_AFTER_NS, ENABLE_PSP_LATENCY, FixedOption,
    MAX_CMDS, NFS_OUTSTANDING, QFULL_SAMPLE_SIZE, RESERVE_HOLD_NS, RESERVE_TIME_MAX_MS,
    STALLED_QUEUE_MS,
};
pub use guest::GuestDriver;
pub use line::{Line, manual};
pub use manual::Manual;
pub use names::{list, nearest, unknown};
pub use order::{Order, preferred_path};
pub use place::{BusKind, DiskName, DiskPlace, Disks, MOVED_TO};
pub use powercli::get_esxcli;
pub use query::Query;
pub use refusal::Refusal;
pub use setting::{
    Allocation, AllocationChange, Form, GuestName, Host, IoControl, IoControlChange, Knob, Module,
    Named, PathPolicy, PolicyChange, Resolved, Setting, Target, TargetId,
};
pub use show::{show_device, show_option, show_parameters};
pub use unsimulated::{DepthOf, OtherDriver, OtherOption, Place};
pub use vcenter::{ENABLED, THRESHOLD};
pub use vendor::VendorAdvice;
pub use version::Version;
pub use vscsi::{
    GuestOs, GuestSystem, OTHER_MAX_TRANSFER, PVSCSI_COMMANDS_PER_PAGE, PVSCSI_DEPTH_MAX,
    PVSCSI_MAX_TRANSFER, PVSCSI_RING_PAGES_DEFAULT, PVSCSI_RING_PAGES_MAX, VscsiLimits,
    disk_depths, limits_of,
};
pub use words::{powershell_name, shell};
