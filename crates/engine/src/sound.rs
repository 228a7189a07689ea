//! Whether a stack that was read from bytes holds together: what `check.rs` and every rule take for
//! granted, because a stack that has only ever been given inputs cannot be otherwise. Ids name
//! something, a record is in the one queue that its state says, an [`Extra`](crate::slab::Extra) belongs
//! to one I/O, time has not gone back, and no count is near the end of its numbers.

use alloc::{vec, vec::Vec};

use counters::{DeviceId, GateCounters, IoTotals, Occupancy, RareCounters, Time, VdiskCounters};

use knobs::Advanced;

use crate::{
    WEIGHT_SCALE,
    codec::Damage,
    slab::{Io, NONE, Queue, State},
    split::SplitSizes,
    stack::Stack,
    vscsi::Vdisk,
    world::World,
};

/// Ids have 16 bits.
const OBJECTS_MAX: usize = 1 << 16;
/// More than anything is counted to: the sum over all that have an id has 64 bits.
const COUNT_MAX: u64 = 1 << 47;
/// Two years in nanoseconds: no command has longer.
const TIMEOUT_MAX: u64 = 1 << 56;

impl Stack {
    pub(crate) fn check_sound(&self) -> Result<(), Damage> {
        self.check_links()?;
        self.check_settings()?;
        self.check_selectors()?;
        self.check_ios()?;
        self.check_extras()?;
        self.check_lists()?;
        self.check_backlogs()?;
        self.check_counts()
    }

    /// Each id names something, and what refers to each other does so from both sides.
    fn check_links(&self) -> Result<(), Damage> {
        let numbers = [
            self.vms,
            self.vscsi.len(),
            self.vdisks.len(),
            self.worlds.len(),
            self.devices.len(),
            self.paths.len(),
            self.adapters.len(),
        ];
        require(numbers.into_iter().all(|number| number <= OBJECTS_MAX), "more than has an id")?;
        let linked = self.vscsi.iter().all(|vscsi| vscsi.vm.index() < self.vms)
            && self.vdisks.iter().all(|disk| {
                disk.vm.index() < self.vms
                    && disk.vscsi.index() < self.vscsi.len()
                    && disk.world.index() < self.worlds.len()
                    && disk.device.index() < self.devices.len()
            })
            && self.paths.iter().all(|path| {
                path.device.index() < self.devices.len()
                    && path.adapter.index() < self.adapters.len()
            })
            && self.timers.iter().all(|timer| timer.device().index() < self.devices.len());
        require(linked, "an id that names nothing")?;
        let mut waits = vec![false; self.vdisks.len()];
        for (id, vscsi) in self.vscsi.iter().enumerate() {
            for disk in &vscsi.waiting {
                let known = self.vdisks.get(disk.index());
                let is_mine = known.is_some_and(|disk| disk.vscsi.index() == id);
                require(is_mine && !waits[disk.index()], "a disk that waits elsewhere")?;
                waits[disk.index()] = true;
            }
        }
        let told = self.vdisks.iter().map(|disk| disk.waits_for_ring);
        require(told.eq(waits), "a disk that waits for nothing")
    }

    /// What follows from settings is as it follows.
    fn check_settings(&self) -> Result<(), Damage> {
        require(self.options.are_in_range(), "an option out of its range")?;
        let scale = WEIGHT_SCALE.contains(&self.weight_scale_percent);
        require(scale, "a weight scale out of its range")?;
        let sizes = SplitSizes::of(&self.options);
        let in_time = |timeout_ns: u64| timeout_ns <= TIMEOUT_MAX;
        let adapters = self.adapters.iter().all(|adapter| {
            adapter.piece_max == sizes.piece(adapter.driver.transport)
                && adapter.timeout_ns.is_none_or(in_time)
        });
        let disks = self.vdisks.iter().all(|disk| {
            let is_patient = disk.timeout_ns > 0 || disk.resets_at == Time::NEVER;
            in_time(disk.timeout_ns)
                && is_patient
                && disk.max_transfer > 0
                && disk.further_parts <= disk.counters.offered
        });
        let worlds = self.worlds.iter().all(World::is_as_allocated)
            && self
                .worlds
                .iter()
                .all(|world| world.weight_scale_percent == self.weight_scale_percent);
        let idle_credit = self.idle_credit();
        let cost_unit = self.options.get(Advanced::SchedCostUnit);
        let limit_unit = self.limit_unit();
        let devices = self.devices.iter().all(|device| {
            device.sched.cost_unit == cost_unit
                && device.sched.limit_unit == limit_unit
                && device.sched.idle_credit == idle_credit
                && device.throttle.is_sound()
                && device.knee.as_ref().is_none_or(|knee| knee.is_sound())
                && device.sioc.as_ref().is_none_or(|sioc| sioc.is_sound())
                && device.competition.is_sound(COUNT_MAX)
                && in_time(device.timeout_ns)
        });
        require(adapters && disks && worlds && devices, "what does not follow from its settings")
    }

    /// Each path is one of its device's, once, and the one in use is one that can be used.
    fn check_selectors(&self) -> Result<(), Damage> {
        let mut seen = vec![false; self.paths.len()];
        for (id, device) in self.devices.iter().enumerate() {
            for (at, path) in device.selector.paths().iter().enumerate() {
                let known = self.paths.get(path.index()).filter(|_| !seen[path.index()]);
                let is_mine = known.is_some_and(|path| {
                    path.device.index() == id && path.is_first == (at == 0) && path.is_sound()
                });
                require(is_mine, "a path of another device")?;
                seen[path.index()] = true;
            }
            require(device.selector.is_sound(&self.paths), "a path in use that cannot be used")?;
        }
        require(!seen.contains(&false), "a path of no device")
    }

    fn check_ios(&self) -> Result<(), Damage> {
        // A record keeps its path until the next I/O in its place has one.
        let paths = self.ios.iter().map(|io| usize::from(io.path));
        let known = paths.max().is_none_or(|path| path == 0 || path < self.paths.len());
        require(known, "an I/O of what is not there")?;
        let used = self.ios.iter().filter(|io| io.state != State::Free);
        require(used.clone().all(|io| self.is_linked(io)), "an I/O of what is not there")?;
        require(used.clone().all(|io| self.is_in_time(io)), "an I/O out of its time")?;
        let seats = self.vdisks.iter().all(|disk| disk.inside.are_sound(self.ios.len()));
        require(seats, "seats that are no seats")
    }

    /// Whether what it says of other objects may be so.
    fn is_linked(&self, io: &Io) -> bool {
        let Some(disk) = self.vdisks.get(usize::from(io.vdisk)) else { return false };
        let Some(path) = self.paths.get(usize::from(io.path)) else { return false };
        let has_extra = (io.extra as usize) < self.extras.len();
        let is_out = io.is_with_driver() || matches!(io.state, State::WrittenOff | State::Orphan);
        let needs_extra =
            matches!(io.state, State::InPieces | State::Piece | State::Left | State::Whole);
        (has_extra || io.extra == NONE && !needs_extra)
            && (!(is_out || io.is_at_gate()) || path.device == disk.device)
    }

    /// Whether its times follow each other, with those of its attempts between them.
    fn is_in_time(&self, io: &Io) -> bool {
        let is_past = io.submitted <= self.now && io.since <= self.now;
        if matches!(io.state, State::Piece | State::Left | State::Whole) {
            return is_past;
        }
        let spent = match io.extra {
            NONE => Some(0),
            extra => {
                let extra = &self.extras[extra];
                let spent = extra.device_ns.checked_add(extra.hold_ns);
                spent.and_then(|spent| spent.checked_add(extra.gate_ns))
            }
        };
        if io.state == State::Guest {
            return is_past && spent == Some(0);
        }
        let is_in_order = io.submitted <= io.entered && io.entered <= io.since;
        is_past && is_in_order && spent.is_some_and(|spent| spent <= io.since - io.entered)
    }

    /// Each belongs to one I/O or is free, and a request that was cut has as many parts as it counts.
    fn check_extras(&self) -> Result<(), Damage> {
        let mut owned = vec![false; self.extras.len()];
        let mut parts = vec![0; self.ios.len()];
        for slot in self.ios.indices() {
            let io = &self.ios[slot];
            let has_own = !matches!(io.state, State::Free | State::Piece | State::Left);
            if !has_own || io.extra == NONE {
                continue;
            }
            let extra = &self.extras[io.extra];
            let whole = extra.request.slot();
            let is_part = whole != slot;
            let of = self.ios.get(whole as usize);
            let is_known = !is_part
                || io.state != State::Whole && of.is_some_and(|of| of.state == State::Whole);
            let is_mine = extra.io == slot && !owned[io.extra as usize];
            require(is_mine && is_known, "an I/O with the record of another")?;
            require(extra.offset.checked_add(io.bytes).is_some(), "a part beyond its request")?;
            require(extra.retries < u32::MAX, "a count near its end")?;
            owned[io.extra as usize] = true;
            parts[whole as usize] += u32::from(is_part);
        }
        for (io, parts) in self.ios.iter().zip(parts) {
            let is_counted = match io.state {
                State::Whole => parts > 0 && self.extras[io.extra].parts == parts,
                State::Piece | State::Left => {
                    let of = self.extras[io.extra].io as usize;
                    of < self.ios.len() && io.block.checked_add(io.bytes).is_some()
                }
                _ => true,
            };
            require(is_counted, "a request of other parts")?;
        }
        require(self.extras.are_free(&owned), "a record that is free and in use")
    }

    /// What waits is in its queue and in no other.
    fn check_lists(&self) -> Result<(), Damage> {
        let mut seen = vec![false; self.ios.len()];
        let disk_of = |io: &Io| -> &Vdisk { &self.vdisks[usize::from(io.vdisk)] };
        let path_of = |io: &Io| &self.paths[usize::from(io.path)];
        let mut are_sound = self.ios.free_is_sound(&mut seen);
        let mut look = |queue: Queue, state: State, is_mine: &dyn Fn(&Io) -> bool| {
            are_sound = are_sound
                && queue.is_sound(&self.ios, &mut seen, |io| io.state == state && is_mine(io));
        };
        for (id, disk) in self.vdisks.iter().enumerate() {
            look(disk.guest, State::Guest, &|io| usize::from(io.vdisk) == id);
        }
        for (id, world) in self.worlds.iter().enumerate() {
            look(world.queue, State::Queued, &|io| disk_of(io).world.index() == id);
        }
        for (id, path) in self.paths.iter().enumerate() {
            look(path.queue, State::AtPath, &|io| usize::from(io.path) == id);
        }
        for (id, adapter) in self.adapters.iter().enumerate() {
            look(adapter.queue, State::AtAdapter, &|io| path_of(io).adapter.index() == id);
        }
        for io in self.ios.iter().filter(|io| io.has_pieces()) {
            let of = &self.extras[io.extra];
            look(of.pieces, State::Piece, &|piece| piece.extra == io.extra);
            look(of.left, State::Left, &|piece| piece.extra == io.extra);
        }
        let waits = |io: &Io| {
            io.is_at_gate()
                || matches!(
                    io.state,
                    State::Free | State::Guest | State::Queued | State::Piece | State::Left
                )
        };
        require(
            are_sound && seen.into_iter().eq(self.ios.iter().map(waits)),
            "a queue that is none",
        )
    }

    /// A device knows each of its worlds that has something queued, once.
    fn check_backlogs(&self) -> Result<(), Damage> {
        let mut device_of: Vec<Option<DeviceId>> = vec![None; self.worlds.len()];
        for disk in &self.vdisks {
            let known = device_of[disk.world.index()].get_or_insert(disk.device);
            require(*known == disk.device, "a world on two devices")?;
        }
        let mut queued: Vec<_> = self.worlds.iter().map(|world| !world.queue.is_empty()).collect();
        for (id, device) in self.devices.iter().enumerate() {
            for world in device.sched.queued() {
                let is_mine = device_of.get(world.index()) == Some(&Some(DeviceId::new(id)));
                require(is_mine && queued[world.index()], "a world that has nothing queued")?;
                queued[world.index()] = false;
            }
        }
        require(!queued.contains(&true), "a world that nobody knows of")
    }

    /// Sums of times and of bytes may go round; what is counted one by one does not.
    fn check_counts(&self) -> Result<(), Damage> {
        let disks = self.vdisks.iter().flat_map(|disk| counts_of_disk(&disk.counters));
        let devices = self.devices.iter().flat_map(|device| {
            let counted = &device.counters;
            let failed = device.failed.iter().flat_map(|failed| commands(failed));
            [
                device.taken,
                counted.engagements,
                counted.queue_full,
                counted.resets,
                device.sched.units,
            ]
            .into_iter()
            .chain(failed)
        });
        let gates = self.paths.iter().map(|path| &path.counters);
        let gates = gates.chain(self.adapters.iter().map(|adapter| &adapter.counters));
        let stays = self.paths.iter().map(|path| path.stays.taken);
        let mut all = disks.chain(devices).chain(gates.flat_map(counts_of_gate)).chain(stays);
        require(all.all(|count| count < COUNT_MAX), "a count near its end")?;
        // They are sums that are made when they are read.
        let levels =
            self.devices.iter().flat_map(|device| [device.counters.active, device.counters.queued]);
        let are_unused =
            levels.eq(core::iter::repeat_n(Occupancy::default(), 2 * self.devices.len()));
        require(are_unused, "a level that nothing keeps")
    }
}

fn commands(io: &[IoTotals; 3]) -> impl Iterator<Item = u64> {
    io.map(|io| io.commands).into_iter()
}

fn counts_of_disk(counted: &VdiskCounters) -> Vec<u64> {
    let VdiskCounters {
        io,
        total: _,
        total_ns: _,
        shares: _,
        offered,
        lost,
        merged,
        guest_queued: _,
        queued: _,
        slots: _,
        rare,
    } = counted;
    let RareCounters {
        failed,
        aborts,
        overdue,
        resets,
        reserves,
        failed_reserves,
        conflicts,
        ats,
        flushes,
        discards,
        zeroes,
        copies,
    } = rare.get();
    let each = [
        *offered,
        *lost,
        *merged,
        aborts,
        overdue,
        resets,
        reserves,
        failed_reserves,
        conflicts,
        ats,
        flushes,
        discards,
        zeroes,
        copies,
    ];
    each.into_iter().chain(failed).chain(commands(io)).collect()
}

fn counts_of_gate(counted: &GateCounters) -> Vec<u64> {
    let GateCounters { depth: _, active: _, queued: _, io, split_commands, split_copies } = counted;
    commands(&io.get()).chain([*split_commands, *split_copies]).collect()
}

fn require(holds: bool, what: &'static str) -> Result<(), Damage> {
    if holds { Ok(()) } else { Err(Damage(what)) }
}
