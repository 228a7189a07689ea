//! Every invariant of the stack, checked from the records of the I/Os themselves.
//!
//! Cheap enough for each step of a simulation with few I/Os, and for now and then in a large one.

use alloc::{format, string::String, vec, vec::Vec};

use counters::DeviceKind;

use crate::{engine::Engine, slab::State};

/// How many I/Os each object holds in each state, counted from the records.
struct Census {
    guest: Vec<u32>,
    active: Vec<u32>,
    queued: Vec<u32>,
    slots: Vec<u32>,
    device_queued: Vec<u32>,
    device_held: Vec<u32>,
    device_slots: Vec<u32>,
    adapter_active: Vec<u32>,
    adapter_queued: Vec<u32>,
    path_active: Vec<u32>,
    path_queued: Vec<u32>,
}

impl Engine {
    /// Checks every invariant.
    ///
    /// # Errors
    /// One line that says which invariant does not hold, and where: an error here is a bug of the
    /// engine.
    pub fn check(&self) -> Result<(), String> {
        let census = self.census();
        self.check_vdisks(&census)?;
        self.check_devices(&census)?;
        self.check_paths(&census)?;
        self.check_adapters(&census)
    }

    fn census(&self) -> Census {
        let (disks, devices) = (self.vdisks.len(), self.devices.len());
        let mut census = Census {
            guest: vec![0; disks],
            active: vec![0; disks],
            queued: vec![0; disks],
            slots: vec![0; disks],
            device_queued: vec![0; devices],
            device_held: vec![0; devices],
            device_slots: vec![0; devices],
            adapter_active: vec![0; self.adapters.len()],
            adapter_queued: vec![0; self.adapters.len()],
            path_active: vec![0; self.paths.len()],
            path_queued: vec![0; self.paths.len()],
        };
        for io in self.ios.indices() {
            let record = &self.ios[io];
            let vdisk = usize::from(record.vdisk);
            let device = self.vdisks[vdisk].device.index();
            let in_kernel = !matches!(record.state, State::Free | State::Guest | State::Orphan);
            let in_slot = matches!(record.state, State::AtPath | State::AtAdapter | State::Active);
            census.guest[vdisk] += u32::from(record.state == State::Guest);
            census.active[vdisk] += u32::from(in_kernel);
            census.queued[vdisk] += u32::from(record.state == State::Queued);
            census.slots[vdisk] += u32::from(in_slot);
            census.device_queued[device] += u32::from(record.state == State::Queued);
            census.device_held[device] += u32::from(record.state == State::Held);
            census.device_slots[device] += u32::from(in_slot);
            if in_slot {
                let adapter = self.paths[usize::from(record.path)].adapter.index();
                census.adapter_active[adapter] += u32::from(record.state == State::Active);
                census.adapter_queued[adapter] += u32::from(record.state == State::AtAdapter);
                let path = usize::from(record.path);
                census.path_active[path] += u32::from(record.state != State::AtPath);
                census.path_queued[path] += u32::from(record.state == State::AtPath);
            }
        }
        census
    }

    fn check_vdisks(&self, census: &Census) -> Result<(), String> {
        for (id, vdisk) in self.vdisks.iter().enumerate() {
            let counters = &vdisk.counters;
            equal(
                "guest queue of virtual disk",
                id,
                counters.guest_queued.now(),
                census.guest[id],
            )?;
            equal("ACTV of virtual disk", id, vdisk.active, census.active[id])?;
            equal("QUED of virtual disk", id, counters.queued.now(), census.queued[id])?;
            equal("slots of virtual disk", id, counters.slots.now(), census.slots[id])?;
            equal(
                "guest FIFO of disk",
                id,
                vdisk.guest.iter(&self.ios).count() as u32,
                census.guest[id],
            )?;
            let vscsi = &self.vscsi[vdisk.vscsi.index()];
            let has_room = vdisk.active < vdisk.depth && vscsi.has_room();
            if has_room && census.guest[id] > 0 {
                return Err(format!("virtual disk {id} has a free slot and I/Os waiting for it"));
            }
        }
        for (id, vscsi) in self.vscsi.iter().enumerate() {
            let disks = self.vdisks.iter().enumerate().filter(|(_, d)| d.vscsi.index() == id);
            let active = disks.map(|(disk, _)| census.active[disk]).sum();
            equal("commands of virtual adapter", id, vscsi.active, active)?;
        }
        Ok(())
    }

    fn check_devices(&self, census: &Census) -> Result<(), String> {
        for (id, device) in self.devices.iter().enumerate() {
            let counters = &device.counters;
            equal("ACTV of device", id, device.active, census.device_slots[id])?;
            equal("QUED of device", id, device.queued, census.device_queued[id])?;
            equal("held commands of device", id, counters.held.now(), census.device_held[id])?;
            equal("DQLEN of device", id, counters.depth, device.effective_depth())?;
            equal("DQLEN over time of device", id, counters.depth_over_time.now(), counters.depth)?;
            if counters.depth > device.base && device.kind != DeviceKind::Nfs {
                return Err(format!(
                    "DQLEN {} of device {id} is above its Device Max Queue Depth {}",
                    counters.depth, device.base
                ));
            }
            let is_held = !device.selector.has_path() || self.now < device.full_until;
            let has_slot = device.active < counters.depth && !is_held;
            if has_slot && device.sched.is_ready(&self.worlds, self.now) {
                return Err(format!("device {id} has a free slot and I/Os that may go"));
            }
        }
        Ok(())
    }

    fn check_paths(&self, census: &Census) -> Result<(), String> {
        for (id, path) in self.paths.iter().enumerate() {
            let counters = &path.counters;
            equal("ACTV of path", id, counters.active, census.path_active[id])?;
            equal("QUED of path", id, counters.queued, census.path_queued[id])?;
            if counters.active > counters.depth {
                return Err(format!("path {id} is above its limit {}", counters.depth));
            }
            if path.has_room() && !path.queue.is_empty() {
                return Err(format!("path {id} has room and I/Os waiting for it"));
            }
        }
        Ok(())
    }

    fn check_adapters(&self, census: &Census) -> Result<(), String> {
        for (id, adapter) in self.adapters.iter().enumerate() {
            let counters = &adapter.counters;
            equal("ACTV of adapter", id, counters.active, census.adapter_active[id])?;
            equal("QUED of adapter", id, counters.queued, census.adapter_queued[id])?;
            if counters.active > adapter.counters.depth {
                return Err(format!("adapter {id} is above its limit {}", adapter.counters.depth));
            }
            if counters.active < adapter.counters.depth && !adapter.queue.is_empty() {
                return Err(format!("adapter {id} has room and I/Os waiting for it"));
            }
        }
        Ok(())
    }
}

fn equal(what: &str, id: usize, counted: u32, found: u32) -> Result<(), String> {
    if counted == found {
        return Ok(());
    }
    Err(format!("{what} {id} is counted as {counted} and is {found}"))
}
