//! The virtual SCSI adapter and its virtual disks: what does not fit waits in the guest.
//!
//! ```text
//!   guest queue -> [virtual disk: depth] -> [adapter ring: depth] -> VMkernel
//! ```
//!
//! A command needs a slot of both [KB-PV, S0]. Disks that only lack a slot of the ring are
//! served in turn.

use alloc::collections::VecDeque;

use counters::{DeviceId, Time, VdiskCounters, VdiskId, VmId, VscsiId, WorldId};

use knobs::Allocation;

use crate::{
    VdiskConfig, VmConfig, VscsiConfig,
    codec::records,
    slab::{Io, NONE, Queue, Seats, Times},
};

/// A virtual adapter.
#[derive(Clone, Debug)]
pub(crate) struct Vscsi {
    pub(crate) vm: VmId,
    /// Commands that it may have outstanding.
    pub(crate) depth: u32,
    /// The same after the guest's next reboot.
    pub(crate) staged_depth: u32,
    pub(crate) pvscsi: bool,
    /// Commands outstanding on all its disks.
    pub(crate) active: u32,
    /// Disks that wait for a slot of the ring, each once.
    pub(crate) waiting: VecDeque<VdiskId>,
}

impl Vscsi {
    pub(crate) fn new(config: &VscsiConfig) -> Self {
        Self {
            vm: config.vm,
            depth: config.depth,
            staged_depth: config.depth,
            pvscsi: config.controller == counters::Controller::Pvscsi,
            active: 0,
            waiting: VecDeque::new(),
        }
    }

    #[inline]
    pub(crate) const fn has_room(&self) -> bool {
        self.active < self.depth
    }
}

/// A virtual disk.
#[derive(Clone, Debug)]
pub(crate) struct Vdisk {
    pub(crate) counters: VdiskCounters,
    /// Commands between its adapter and their completion.
    pub(crate) active: u32,
    pub(crate) vm: VmId,
    pub(crate) vscsi: VscsiId,
    pub(crate) world: WorldId,
    /// Its own part of what its world gets.
    pub(crate) allocation: Allocation,
    pub(crate) device: DeviceId,
    /// Who it competes as on its device.
    pub(crate) contender: u16,
    /// Commands that it may have outstanding.
    pub(crate) depth: u32,
    /// The same after the guest's next reboot.
    pub(crate) staged_depth: u32,
    /// Whether it is in its adapter's `waiting`.
    pub(crate) waits_for_ring: bool,
    /// Whether its VM is on.
    pub(crate) is_on: bool,
    /// Whether it was detached.
    pub(crate) is_gone: bool,
    /// Whether it is on and its device does not refuse its I/O.
    pub(crate) takes_io: bool,
    /// How long its guest waits for a command; 0 where the engine does not keep that time.
    pub(crate) timeout_ns: u64,
    /// When its guest resets it if what was aborted has not ended by then.
    pub(crate) resets_at: Time,
    /// Whether it is VMFS's own: that of a process of the host.
    pub(crate) is_system: bool,
    /// The largest command that its adapter takes, in bytes.
    pub(crate) max_transfer: u32,
    /// Commands beyond the first of each request that the guest's driver cut.
    pub(crate) further_parts: u64,
    /// What waits in the guest.
    pub(crate) guest: Queue,
    /// Its I/Os in the VMkernel.
    pub(crate) inside: Seats,
    /// Nanoseconds that its I/Os had waited in the application before they were submitted.
    pub(crate) waited_ns: u64,
    /// The waits at paths and adapters that are over, in nanoseconds.
    pub(crate) gate_ns: u64,
    /// Where the time of aborted I/Os went.
    pub(crate) aborted: Times,
}

/// A command on its way from the guest to the queue of its world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entrant {
    pub(crate) io: u32,
    pub(crate) world: WorldId,
    pub(crate) seat: u32,
}

/// What follows when a virtual disk may have room.
pub(crate) struct Next {
    /// The command that enters, or [`NONE`].
    pub(crate) entrant: Entrant,
    /// The ring, where disks wait for a slot of it.
    pub(crate) ring: Option<VscsiId>,
}

impl Vdisk {
    pub(crate) fn new(
        config: &VdiskConfig,
        max_transfer: u32,
        vm: &VmConfig,
        world: WorldId,
        contender: u16,
    ) -> Self {
        Self {
            counters: VdiskCounters::default(),
            active: 0,
            vm: config.vm,
            vscsi: config.vscsi,
            world,
            allocation: config.allocation,
            device: config.device,
            contender,
            depth: config.depth,
            staged_depth: config.depth,
            waits_for_ring: false,
            is_on: vm.powered_on,
            is_gone: false,
            takes_io: vm.powered_on,
            timeout_ns: vm.timeout_ns.unwrap_or(0),
            resets_at: Time::NEVER,
            is_system: vm.system,
            max_transfer,
            further_parts: 0,
            guest: Queue::default(),
            inside: Seats::default(),
            waited_ns: 0,
            gate_ns: 0,
            aborted: Times::default(),
        }
    }

    pub(crate) const fn is_idle(&self) -> bool {
        self.active == 0 && self.guest.is_empty()
    }

    pub(crate) fn is_from_to(&self, config: &VdiskConfig) -> bool {
        (self.vscsi, self.device) == (config.vscsi, config.device)
    }

    /// It is attached again.
    pub(crate) fn come_back(&mut self, config: &VdiskConfig, max_transfer: u32, vm: &VmConfig) {
        (self.is_gone, self.is_on, self.is_system) = (false, vm.powered_on, vm.system);
        (self.depth, self.staged_depth, self.max_transfer) =
            (config.depth, config.depth, max_transfer);
        self.allocation = config.allocation;
        self.timeout_ns = vm.timeout_ns.unwrap_or(0);
        if self.timeout_ns == 0 {
            // Who keeps no time here resets nothing for what the one before had given up.
            self.resets_at = Time::NEVER;
        }
    }

    /// Adds to its counters what is worked out only when they are read; a request in parts was offered once.
    pub(crate) const fn complete(&self, counters: &mut VdiskCounters) {
        counters.offered -= self.further_parts;
        counters.shares = if self.is_on { self.allocation.shares } else { 0 };
    }

    #[inline]
    pub(crate) const fn has_slot(&self) -> bool {
        self.active < self.depth
    }

    /// A command comes, having waited for so long in the application.
    #[inline]
    pub(crate) const fn take_in(&mut self, waited_ns: u64) {
        self.counters.offered += 1;
        self.waited_ns = self.waited_ns.wrapping_add(waited_ns);
    }

    /// It waits in the guest.
    #[inline]
    pub(crate) fn wait(&mut self, ios: &mut [Io], io: u32, now: Time) {
        self.counters.guest_queued.enter(now);
        self.guest.push(ios, io);
    }

    /// A command takes a slot of the disk and one of its adapter.
    #[inline]
    pub(crate) const fn enter(&mut self, ring: &mut Vscsi) {
        self.active += 1;
        ring.active += 1;
    }

    /// It gives them back, and its seat.
    #[inline]
    pub(crate) fn leave(&mut self, ring: &mut Vscsi, seat: u32) {
        self.active -= 1;
        ring.active -= 1;
        self.inside.leave(seat);
    }

    /// A command that has entered lines up for its device.
    #[inline]
    pub(crate) fn line_up(&mut self, io: u32, now: Time) -> Entrant {
        self.counters.queued.enter(now);
        Entrant { io, world: self.world, seat: self.inside.take(io) }
    }

    /// A command gives back its slots and its seat, and the next one in the guest's queue has them at once, if
    /// there is one and it may. Disks that lack nothing but the ring take turns. `id` is the disk's own.
    #[inline(always)]
    pub(crate) fn hand_on(
        &mut self,
        id: VdiskId,
        ring: &mut Vscsi,
        seat: u32,
        ios: &[Io],
        now: Time,
    ) -> Next {
        let has_room = self.active <= self.depth && ring.active <= ring.depth;
        if has_room
            && ring.waiting.is_empty()
            && let Some(io) = self.guest.pop(ios)
        {
            self.counters.guest_queued.leave(now);
            self.counters.queued.enter(now);
            self.inside.pass_on(seat, io);
            let waits = self.may_wait_for_ring(id, ring);
            let entrant = Entrant { io, world: self.world, seat };
            return Next { entrant, ring: waits.then_some(self.vscsi) };
        }
        self.leave(ring, seat);
        self.next(id, ring, Entrant { io: NONE, world: self.world, seat })
    }

    /// The next one in the guest's queue enters, if there is one and nothing holds it. `id` is the disk's own.
    pub(crate) fn let_in(&mut self, id: VdiskId, ring: &mut Vscsi, ios: &[Io], now: Time) -> Next {
        let next = if ring.waiting.is_empty() { self.enter_next(ring, ios, now) } else { None };
        let nobody = Entrant { io: NONE, world: self.world, seat: NONE };
        let entrant = next.map_or(nobody, |io| self.line_up(io, now));
        self.next(id, ring, entrant)
    }

    fn next(&mut self, id: VdiskId, ring: &mut Vscsi, entrant: Entrant) -> Next {
        let waits = self.may_wait_for_ring(id, ring);
        let is_wanted = waits || !ring.waiting.is_empty();
        Next { entrant, ring: is_wanted.then_some(self.vscsi) }
    }

    /// A command takes a slot of the device.
    #[inline]
    pub(crate) const fn take_slot(&mut self, now: Time) {
        self.counters.queued.leave(now);
        self.counters.slots.enter(now);
    }

    /// The next one in the guest's queue enters, if there is one and it has a slot of both.
    #[inline]
    pub(crate) fn enter_next(&mut self, ring: &mut Vscsi, ios: &[Io], now: Time) -> Option<u32> {
        if !self.has_slot() || !ring.has_room() {
            return None;
        }
        let io = self.guest.pop(ios)?;
        self.counters.guest_queued.leave(now);
        self.enter(ring);
        Some(io)
    }

    /// Puts it in line for the ring if that is all that its next command lacks; whether it is. `id` is its own.
    #[inline]
    pub(crate) fn may_wait_for_ring(&mut self, id: VdiskId, ring: &mut Vscsi) -> bool {
        let waits = self.has_slot() && !self.guest.is_empty();
        if waits {
            self.wait_for_ring(id, ring);
        }
        waits
    }

    /// Puts it in line for the ring; `id` is its own.
    #[cold]
    pub(crate) fn wait_for_ring(&mut self, id: VdiskId, ring: &mut Vscsi) {
        if !self.waits_for_ring {
            self.waits_for_ring = true;
            ring.waiting.push_back(id);
        }
    }
}

records! {
    Vscsi { vm, depth, staged_depth, pvscsi, active, waiting }
    Vdisk {
        counters, active, vm, vscsi, world, allocation, device, contender, depth, staged_depth,
        waits_for_ring, is_on, is_gone, takes_io, timeout_ns, resets_at, is_system, max_transfer,
        further_parts, guest, inside, waited_ns, gate_ns, aborted,
    }
}
