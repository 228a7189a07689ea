//! Every invariant of the stack, checked from the records of the I/Os themselves.
//!
//! Cheap enough for each step of a simulation with few I/Os, and for now and then in a large one.
//!
//! Little's law is held as an identity of whole numbers: the integral of an occupancy is the time
//! of those who left plus that of those inside. The integrals are added up where an I/O passes a
//! level; the times are those that latencies are made of, and those inside are counted here.

use alloc::{format, string::String, vec, vec::Vec};

use counters::{DeviceId, DeviceKind, Time, VdiskId};

use knobs::Advanced;

use crate::{
    device::{Device, Outage},
    path::Stays,
    slab::{Io, State, Times},
    stack::Stack,
    vscsi::Vdisk,
};

/// The I/Os of a virtual disk, counted from the records.
#[derive(Clone, Copy, Default)]
struct OfVdisk {
    guest: u32,
    kernel: u32,
    queued: u32,
    slots: u32,
    held: u32,
    recalled: u32,
    /// Longer in the virtual adapter than its guest waits.
    forgotten: u32,
    /// With an end to the patience of the host or of the guest.
    timed: u32,
    times: Times,
    /// The waits at paths and adapters that go on.
    gate_ns: u64,
}

/// The commands on a path, counted from the records.
#[derive(Clone, Copy, Default)]
struct OnPath {
    waiting: u32,
    at_adapter: u32,
    active: u32,
    /// Of the active, those asked back.
    recalled: u32,
    /// How long what goes on has gone on.
    waiting_ns: u64,
    at_adapter_ns: u64,
    active_ns: u64,
}

struct Census {
    vdisks: Vec<OfVdisk>,
    paths: Vec<OnPath>,
}

impl Stack {
    /// [`Engine::check`](crate::Engine::check).
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_records()?;
        self.check_pieces()?;
        let census = self.census();
        for (id, vdisk) in self.vdisks.iter().enumerate() {
            self.check_vdisk(id, vdisk, &census.vdisks[id])?;
        }
        self.check_rings(&census)?;
        for (id, device) in self.devices.iter().enumerate() {
            self.check_device(id, device, &census)?;
            self.check_queue(id, device)?;
        }
        self.check_paths(&census)?;
        self.check_adapters(&census)
    }

    /// A record is free or in use, and whoever sits on a virtual disk is in the VMkernel: what ended is
    /// found by nobody any more, not by the reset of its disk nor by a reboot.
    fn check_records(&self) -> Result<(), String> {
        let is_free = |io: &u32| self.ios[*io].state == State::Free;
        let free = self.ios.indices().filter(is_free).count();
        equal("free records of host", 0, self.ios.free_places().take_while(is_free).count(), free)?;
        for (id, vdisk) in self.vdisks.iter().enumerate() {
            for seat in 0..vdisk.inside.len() {
                let Some(io) = vdisk.inside.at(seat) else { continue };
                let Io { vdisk, seat: own, state, .. } = self.ios[io];
                let is_inside = !matches!(
                    state,
                    State::Free | State::Guest | State::Piece | State::Left | State::Whole
                );
                if (usize::from(vdisk), own as usize, is_inside) != (id, seat, true) {
                    return Err(format!("seat {seat} of virtual disk {id} is taken by {state:?}"));
                }
            }
        }
        Ok(())
    }

    /// A piece belongs to a command that is under way.
    fn check_pieces(&self) -> Result<(), String> {
        for piece in self.ios.indices() {
            let record = &self.ios[piece];
            let of = match record.state {
                State::Piece | State::Left => &self.ios[self.extras[record.extra].io],
                _ => continue,
            };
            let is_at_driver = of.is_with_driver() || of.is_held() && of.state != State::Held;
            let is_left = record.state == State::Left && of.state != State::Free;
            if of.extra != record.extra || !(is_at_driver || is_left) {
                return Err(format!("piece {piece} belongs to a command that is {:?}", of.state));
            }
        }
        Ok(())
    }

    fn census(&self) -> Census {
        let mut census = Census {
            vdisks: vec![OfVdisk::default(); self.vdisks.len()],
            paths: vec![OnPath::default(); self.paths.len()],
        };
        for io in self.ios.indices() {
            let record = &self.ios[io];
            if matches!(record.state, State::Free | State::Piece | State::Left | State::Whole) {
                continue;
            }
            let disk = &mut census.vdisks[usize::from(record.vdisk)];
            let ends = self.given_up_at(io).min(self.deadline(io));
            disk.timed += u32::from(ends != Time::NEVER);
            disk.forgotten += u32::from(self.given_up_at(io) <= self.now);
            let path = &mut census.paths[usize::from(record.path)];
            let lasts = self.now - record.since;
            disk.times.add(&self.times_of(io));
            disk.kernel += u32::from(record.state != State::Guest);
            match record.state {
                State::Guest => disk.guest += 1,
                State::Queued => disk.queued += 1,
                State::Held | State::WrittenOff | State::Orphan => disk.held += 1,
                State::AtPath => {
                    path.waiting += 1;
                    path.waiting_ns = sum([path.waiting_ns, lasts]);
                }
                State::AtAdapter => {
                    path.at_adapter += 1;
                    path.at_adapter_ns = sum([path.at_adapter_ns, lasts]);
                }
                State::Active | State::InPieces | State::Recalled | State::Overdue => {
                    path.active += 1;
                    path.active_ns = sum([path.active_ns, lasts]);
                }
                State::Free | State::Piece | State::Left | State::Whole => {}
            }
            let is_recalled = u32::from(record.state == State::Recalled);
            disk.recalled += is_recalled + u32::from(record.state == State::Orphan);
            path.recalled += is_recalled;
            disk.slots += u32::from(record.is_at_gate() || record.is_with_driver());
            disk.gate_ns = sum([disk.gate_ns, if record.is_at_gate() { lasts } else { 0 }]);
        }
        census
    }

    fn check_vdisk(&self, id: usize, vdisk: &Vdisk, found: &OfVdisk) -> Result<(), String> {
        let counters = &vdisk.counters;
        let waiting = vdisk.guest.iter(&self.ios).count() as u32;
        let seats = vdisk.inside.iter().count() as u32;
        equal("I/Os that sit on virtual disk", id, seats, found.kernel)?;
        equal("guest queue of virtual disk", id, counters.guest_queued.now(), found.guest)?;
        equal("guest FIFO of virtual disk", id, waiting, found.guest)?;
        equal("ACTV of virtual disk", id, vdisk.active, found.kernel)?;
        equal("QUED of virtual disk", id, counters.queued.now(), found.queued)?;
        equal("slots of virtual disk", id, counters.slots.now(), found.slots)?;
        let completed: u64 = counters.io.iter().map(|io| io.commands).sum();
        let inside = u64::from(found.guest + found.kernel);
        // What was asked back is counted as aborted, and still inside.
        let offered = counters.offered + u64::from(found.recalled);
        equal(
            "I/Os submitted to virtual disk",
            id,
            offered,
            completed + counters.rare.get().aborts + inside,
        )?;
        let refusal = self.refusal_of(VdiskId::new(id));
        let waits = found.guest + found.queued;
        if vdisk.takes_io != (vdisk.is_on && refusal.is_none()) || refusal.is_some() && waits > 0 {
            return Err(format!(
                "virtual disk {id} ends its I/O with {refusal:?}, and {waits} wait"
            ));
        }
        equal("commands of virtual disk that its guest forgot", id, found.forgotten, 0)?;
        let has_room = vdisk.has_slot() && self.vscsi[vdisk.vscsi.index()].has_room();
        if has_room && found.guest > 0 {
            return Err(format!("virtual disk {id} has a free slot and I/Os waiting for it"));
        }
        if counters.io.iter().any(|io| io.queue_ns > io.kernel_ns) {
            return Err(format!("QAVG of virtual disk {id} is above its KAVG"));
        }
        let times = times_at(vdisk, found);
        let gate_ns = vdisk.gate_ns.wrapping_add(found.gate_ns);
        let integral = |level: &counters::Occupancy| level.integral(self.now);
        let guest_ns = times.guest.wrapping_sub(vdisk.waited_ns);
        equal("time in the guest queue of disk", id, integral(&counters.guest_queued), guest_ns)?;
        let queued_ns = times.queue.wrapping_sub(gate_ns);
        equal("time queued of disk", id, integral(&counters.queued), queued_ns)?;
        let slots_ns = times.device.wrapping_add(gate_ns);
        equal("time in slots of disk", id, integral(&counters.slots), slots_ns)
    }

    fn check_rings(&self, census: &Census) -> Result<(), String> {
        for (id, vscsi) in self.vscsi.iter().enumerate() {
            let disks = self.vdisks.iter().zip(&census.vdisks);
            let mine = disks.filter(|(disk, _)| disk.vscsi.index() == id);
            let active = mine.map(|(_, found)| found.kernel).sum();
            equal("commands of virtual adapter", id, vscsi.active, active)?;
        }
        Ok(())
    }

    fn check_device(&self, id: usize, device: &Device, census: &Census) -> Result<(), String> {
        let disks = self.vdisks.iter().zip(&census.vdisks);
        let (mut all, mut held_ns, mut slots_ns) = (OfVdisk::default(), 0, 0);
        for (disk, found) in disks.filter(|(disk, _)| disk.device.index() == id) {
            let times = times_at(disk, found);
            held_ns = sum([held_ns, times.kernel, times.queue.wrapping_neg()]);
            slots_ns = sum([slots_ns, times.device, disk.gate_ns, found.gate_ns]);
            all.queued += found.queued;
            all.timed += found.timed;
            all.slots += found.slots;
            all.held += found.held;
        }
        equal("ACTV of device", id, device.active, all.slots)?;
        equal("QUED of device", id, device.queued, all.queued)?;
        if device.timeout_ns > 0 && all.timed > 0 && device.needs_watch {
            return Err(format!("device {id} has commands, and nobody watches whether they end"));
        }
        if device.watch_at == Time::NEVER && device.timeout_ns > 0 && !device.needs_watch {
            return Err(format!("device {id} would never be watched"));
        }
        if (device.outage == Outage::None) != device.selector.has_path() {
            return Err(format!("device {id} has {:?} by its paths", device.outage));
        }
        let is_apd_timed = self.options.get(Advanced::ApdHandlingEnable) == 1;
        if let Outage::Apd { until } = device.outage
            && (until <= self.now || is_apd_timed == (until == Time::NEVER))
        {
            return Err(format!("device {id} without a path waits until {until:?}"));
        }
        equal("held commands of device", id, device.counters.held.now(), all.held)?;
        let integral = device.counters.held.integral(self.now);
        equal("time held of device", id, integral, held_ns)?;
        let mine = |path: &counters::PathId| path.index();
        let paths: Vec<usize> = device.selector.paths().iter().map(mine).collect();
        let taken = paths.iter().map(|path| self.paths[*path].stays.taken).sum();
        equal("slots given of device", id, device.taken, taken)?;
        let of_path = |path: &usize| {
            let (stays, found) = (&self.paths[*path].stays, &census.paths[*path]);
            sum([stays.path_ns, found.waiting_ns, passed_ns(stays, found)])
        };
        equal("time on the paths of device", id, sum(paths.iter().map(of_path)), slots_ns)
    }

    /// The limit of a device, and that nothing waits for it in vain.
    fn check_queue(&self, id: usize, device: &Device) -> Result<(), String> {
        let counters = &device.counters;
        equal("DQLEN of device", id, counters.depth, device.effective_depth())?;
        equal("DQLEN over time of device", id, counters.depth_over_time.now(), counters.depth)?;
        if counters.depth > device.base && device.kind != DeviceKind::Nfs {
            return Err(format!(
                "DQLEN {} of device {id} is above its Device Max Queue Depth {}",
                counters.depth, device.base
            ));
        }
        if device.active > counters.depth && device.taken != device.taken_at_cut {
            return Err(format!(
                "ACTV {} of device {id} is above its DQLEN {}, and slots were given since the cut",
                device.active, counters.depth
            ));
        }
        equal("slots of device", id, device.room, device.limits_now())?;
        if device.has_rare != device.has_anything_rare() {
            return Err(format!("device {id} has something rare about it that it knows not of"));
        }
        if device.sched.has_bounds != self.has_bounds(DeviceId::new(id)) {
            return Err(format!(
                "device {id} has worlds with bounds that its scheduler knows not of"
            ));
        }
        if device.window == 0 && device.active > 0 {
            return Err(format!("device {id} has commands, and none that may complete"));
        }
        let is_full = device.active >= device.room && device.active > 0;
        if is_full || device.queued == 0 || !device.selector.has_path() {
            return Ok(());
        }
        if device.has_free_slot() && device.sched.is_ready(&self.worlds, self.now) {
            return Err(format!("device {id} has a free slot and I/Os that may go"));
        }
        if device.wake_at == Time::NEVER {
            return Err(format!("device {id} has I/Os waiting for a moment that nobody waits for"));
        }
        Ok(())
    }

    fn check_paths(&self, census: &Census) -> Result<(), String> {
        for (id, (path, found)) in self.paths.iter().zip(&census.paths).enumerate() {
            let (counters, stays) = (&path.counters, &path.stays);
            let active = found.at_adapter + found.active;
            equal("ACTV of path", id, counters.active.now(), active)?;
            equal("QUED of path", id, counters.queued.now(), found.waiting)?;
            let inside = u64::from(found.waiting + active);
            equal("commands sent to path", id, stays.taken, stays.left + inside)?;
            let queued_ns = counters.queued.integral(self.now);
            let waiting_ns = sum([stays.path_ns, found.waiting_ns]);
            equal("time queued of path", id, queued_ns, waiting_ns)?;
            let active_ns = counters.active.integral(self.now);
            equal("time active of path", id, active_ns, passed_ns(stays, found))?;
            // A reboot may lower the limit under what it asks back.
            if active - found.recalled > counters.depth {
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
            let (mut queued, mut active, mut queued_ns, mut active_ns) = (0, 0, 0, 0);
            let paths = self.paths.iter().zip(&census.paths);
            for (path, found) in paths.filter(|(path, _)| path.adapter.index() == id) {
                queued += found.at_adapter;
                active += found.active;
                queued_ns = sum([queued_ns, path.stays.adapter_ns, found.at_adapter_ns]);
                active_ns = sum([active_ns, path.stays.driver_ns, found.active_ns]);
            }
            let counters = &adapter.counters;
            equal("ACTV of adapter", id, counters.active.now(), active)?;
            equal("QUED of adapter", id, counters.queued.now(), queued)?;
            equal("time active of adapter", id, counters.active.integral(self.now), active_ns)?;
            equal("time queued of adapter", id, counters.queued.integral(self.now), queued_ns)?;
            if active > counters.depth {
                return Err(format!("adapter {id} is above its limit {}", counters.depth));
            }
            if active < counters.depth && !adapter.queue.is_empty() {
                return Err(format!("adapter {id} has room and I/Os waiting for it"));
            }
        }
        Ok(())
    }
}

/// Where the time of every I/O of a virtual disk went: of those that completed, those that were
/// aborted, and those inside.
fn times_at(vdisk: &Vdisk, found: &OfVdisk) -> Times {
    let mut times = found.times;
    times.add(&vdisk.aborted);
    for io in &vdisk.counters.io {
        times.add(&Times {
            guest: io.guest_ns,
            kernel: io.kernel_ns,
            queue: io.queue_ns,
            device: io.device_ns,
        });
    }
    times
}

/// The time of commands past the gate of a path: at the adapter and with the driver.
fn passed_ns(stays: &Stays, found: &OnPath) -> u64 {
    sum([stays.adapter_ns, found.at_adapter_ns, stays.driver_ns, found.active_ns])
}

/// Sums of times go round, as they do where they are added up.
fn sum(times: impl IntoIterator<Item = u64>) -> u64 {
    times.into_iter().fold(0, u64::wrapping_add)
}

fn equal<T: Eq + core::fmt::Display>(
    what: &str,
    id: usize,
    counted: T,
    found: T,
) -> Result<(), String> {
    if counted == found {
        return Ok(());
    }
    Err(format!("{what} {id} is counted as {counted} and is {found}"))
}
