//! The real-time driver: virtual disks of a scenario file, served to real guests from real storage, with
//! the engine that a simulation has in between.
//!
//! It stands beside `sim` and above the engine: a thread for each component of a host (`machine.rs`)
//! walks its front ends, calls its engine and drives its back ends. A front end is a folder (`nbd/`,
//! `vhost/`), a back end a file of `backend/`; what they have in common is in `export.rs`.

mod access;
mod alone;
mod backend;
mod buffer;
mod change;
mod clock;
mod control;
mod counted;
mod daemon;
mod described;
mod executor;
mod export;
mod folders;
mod guests;
mod hosted;
mod hosts;
mod ids;
mod lent;
mod machine;
mod mailbox;
mod metrics;
mod nbd;
mod periods;
mod record;
mod reload;
mod requests;
mod sandbox;
mod sense;
mod served;
mod settings;
mod socket;
mod spin;
mod vhost;
mod vscsi;
mod work;

pub use alone::{Alone, Extent};
pub use backend::LOCKED;
pub use daemon::{Daemon, Options, Place, Signals, Told, try_cpu};
pub use executor::try_io_uring;
pub use hosts::Begin;
pub use nbd::talk;
pub use sandbox::confine;
pub use served::look_at_image;
pub use settings::Settings;
pub use socket::group_of;
pub use vhost::{messages, rings};
