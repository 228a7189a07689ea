//! vhost-user-blk: a disk for a virtual machine, whose memory is shared with the daemon [VHU].
//!
//! ```text
//!   front end (QEMU, User-Mode Linux, ...) --messages--> channel -> terms: features, memory, rings
//!   guest --available ring--> ring -> chain -> request --Asked--> the component
//!         <--used ring, call-- ring <------------------ answer ----
//! ```
//!
//! A disk has a socket of its own, and one front end at a time. Everything here is done by the thread of
//! the disk's component: the messages, which are rare, between two passes, and the rings, which it looks at
//! in every pass. `wire.rs`, `chain.rs` and `request.rs` are functions of bytes; `device.rs` has the
//! requests that are under way, and `terms.rs` what the front end has agreed on.
//!
//! The messages are read here and not by the crate `vhost`: it refuses the table of memory of User-Mode
//! Linux, and wants a thread for each disk.

mod chain;
mod channel;
mod config;
mod device;
mod hostile;
mod inflight;
mod memory;
mod request;
mod ring;
mod sigbus;
mod terms;
mod wire;

pub(crate) use device::Device;
pub use hostile::{messages, rings};

/// Rings of a disk at most.
const RINGS_MAX: usize = 16;
