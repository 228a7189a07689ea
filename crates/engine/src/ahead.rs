//! What the answer to a command will need of memory, for whoever knows some time before that it is coming and can have it
//! fetched meanwhile: where there are many hosts, none of it is near the core.
//!
//! ```text
//!   id -> record -> virtual disk, path -> device, world, ring, adapter, ends of the guest's queue
//! ```
//!
//! Each step reads what the one before had fetched. Nothing is decided here, and nothing changed: the id of a
//! command that is over is as good as any.

use counters::{IoId, VdiskId};

use crate::{Engine, slab::Io};

/// Has memory fetched that will be needed.
pub trait Fetch {
    /// This will be.
    fn fetch<T>(&self, it: &T);
}

impl Engine {
    /// What the id of a command leads to.
    #[inline]
    pub fn fetch_command(&self, id: IoId, memory: &impl Fetch) {
        if let Some(record) = self.known(id) {
            memory.fetch(record);
        }
    }

    /// What its record leads to: its virtual disk, which is returned, and its path.
    #[inline]
    pub fn fetch_disk(&self, id: IoId, memory: &impl Fetch) -> Option<VdiskId> {
        let record = self.known(id)?;
        memory.fetch(self.stack.vdisks.get(usize::from(record.vdisk))?);
        memory.fetch(self.stack.paths.get(usize::from(record.path))?);
        Some(VdiskId(record.vdisk))
    }

    /// What these lead to, and the virtual disk once more.
    #[inline]
    pub fn fetch_device(&self, id: IoId, memory: &impl Fetch) -> Option<VdiskId> {
        let (record, stack) = (self.known(id)?, &self.stack);
        let vdisk = stack.vdisks.get(usize::from(record.vdisk))?;
        let path = stack.paths.get(usize::from(record.path))?;
        memory.fetch(&stack.devices[vdisk.device.index()]);
        memory.fetch(&stack.worlds[vdisk.world.index()]);
        memory.fetch(&stack.vscsi[vdisk.vscsi.index()]);
        memory.fetch(&stack.adapters[path.adapter.index()]);
        let ends = vdisk.guest.ends().map(|io| stack.ios.get(io as usize));
        ends.into_iter().flatten().for_each(|waiting| memory.fetch(waiting));
        Some(VdiskId(record.vdisk))
    }

    /// The record that the id names, or named.
    fn known(&self, id: IoId) -> Option<&Io> {
        self.stack.ios.get(id.slot() as usize)
    }
}
