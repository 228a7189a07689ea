//! A virtual machine's side of vhost-user-blk, to measure and to test a back end with: its memory, its
//! rings, and the requests in them, without a machine.
//!
//! It stands beside the stack, knows nothing of ours, and speaks to its back end by the crate `vhost`,
//! which others wrote: what it judges has no part in it. `disk.rs` has the front end, `ring.rs` a ring as a
//! driver fills it, and `layout.rs` says where what is in the memory. `nbd.rs` is a client of NBD, to measure
//! that as well, and `machine.rs` boots Linux where a driver of others is to be the one that asks.

mod disk;
mod layout;
pub mod machine;
mod nbd;
mod ring;

use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};

pub use disk::{Disk, Wish, feature};
pub use layout::Shape;
pub use nbd::NbdClient;
pub use ring::{Done, Ring};

/// Binds this thread to a CPU.
///
/// # Errors
/// When there is none of that number.
pub fn pin(cpu: usize) -> Result<(), String> {
    let mut only = CpuSet::new();
    let pinned = only.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
    pinned.map_err(|error| format!("CPU {cpu}: {}", error.desc()))
}

/// Bytes of a sector.
pub const SECTOR: u64 = 512;

/// What is asked of a disk [VIRTIO], 5.2.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask<'a> {
    /// So many bytes from a sector on.
    Read(u64, u32),
    /// These bytes, to be written from a sector on.
    Write(u64, &'a [u8]),
    /// So many bytes, whichever, to be written from a sector on.
    Fill(u64, u32),
    /// What was written before is to be durable.
    Flush,
    /// So many sectors from a sector on are not needed any more.
    Discard(u64, u32),
    /// So many sectors from a sector on are to read as zeroes; whether their space may be given back.
    WriteZeroes(u64, u32, bool),
    /// The serial number.
    Id,
    /// A request of any kind, with data that can be read, and room for so many bytes.
    Other(u32, &'a [u8], u32),
}
