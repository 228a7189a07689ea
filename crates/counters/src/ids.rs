//! Ids are types: a path cannot be handed over where a device is wanted.
//!
//! Every id is an index into the table of its noun, dense from 0, within one host. An I/O's is used
//! again and says how often.

use core::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// The id of the table row `index`.
            ///
            /// # Panics
            /// When `index` does not fit: tables are bounded where they are built.
            #[must_use]
            pub fn new(index: usize) -> Self {
                Self(<$inner>::try_from(index).expect("more rows than the id type can name"))
            }

            /// The row of this id in its table.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A virtual machine on the host.
    VmId(u16);
    /// A virtual SCSI adapter of a virtual machine.
    VscsiId(u16);
    /// A virtual disk.
    VdiskId(u16);
    /// What the device queue schedules: a VM's world, or one of its files (ESXi 6.0 on) [PFS].
    WorldId(u16);
    /// A device: a LUN, a local disk, a protocol endpoint, or an NFS mount.
    DeviceId(u16);
    /// A path of a device through an adapter.
    PathId(u16);
    /// A host adapter (vmhba).
    AdapterId(u16);
}

/// A guest's request inside the engine, or a command that its driver has: a place that is used
/// again, and the how-manieth use of it this is. An id that has ended names nothing any more, until
/// its place has been used 4,294,967,296 times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoId {
    slot: u32,
    generation: u32,
}

impl IoId {
    /// The use `generation` of the place `slot`.
    #[inline]
    #[must_use]
    pub const fn new(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }

    /// Its place, dense from 0: no two that are under way share one.
    #[inline]
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.slot
    }

    /// Which use of its place it is.
    #[inline]
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

impl fmt::Display for IoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}
