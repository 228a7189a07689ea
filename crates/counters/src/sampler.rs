//! Two [`HostSnapshot`]s become a row of rates under esxtop's names.
//!
//! The formulae are esxtop's [S0, S2, CAP-A]: a rate is delta / interval, an average is
//! delta(time) / delta(commands) and 0 without commands, %USD = 100 * ACTV / DQLEN,
//! LOAD = (ACTV + QUED) / DQLEN.

use crate::sorted::sort_by_key;
use alloc::{format, string::String, sync::Arc, vec, vec::Vec};

use core::ops::Range;

use crate::{
    AdapterId, Controller, Counter, DeviceCounters, DeviceId, Direction, Entity, EntityId,
    GateCounters, Histogram, HostSnapshot, IoTotals, Kind, Occupancy, Recording, SECOND,
    VdiskCounters, VdiskId, VmId,
};

/// The percentiles that are told of a latency, each with the share of commands that took no longer.
pub const PERCENTILES: [(Counter, f64); 3] =
    [(Counter::P50, 0.5), (Counter::P95, 0.95), (Counter::P99, 0.99)];

/// The [`PERCENTILES`] of a latency in milliseconds; none where there was no command.
#[must_use]
pub fn percentiles_ms(latency: &Histogram) -> [(Counter, Option<f64>); 3] {
    PERCENTILES.map(|(counter, share)| {
        let nanos = latency.quantile(share);
        (counter, nanos.map(|nanos| crate::nanos_to_millis(nanos as f64)))
    })
}

/// What kind of device queue a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A SCSI or NVMe device.
    Scsi,
    /// The protocol endpoint of virtual volumes.
    ProtocolEndpoint,
    /// An NFS mount: no device queue, and only GAVG in esxtop [ELA].
    Nfs,
}

/// A host adapter, for naming.
#[derive(Clone, Debug)]
pub struct AdapterInfo {
    /// Its name (`vmhba1`).
    pub name: String,
    /// Whether esxtop has rows for it: not for a network card under an NFS mount.
    pub storage: bool,
}

/// A device, for naming.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// Its name (`naa.…`), or the datastore's for NFS.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
}

/// A path, for naming and adding up.
#[derive(Clone, Debug)]
pub struct PathInfo {
    /// Its name (`vmhba1:C0:T0:L3`).
    pub name: String,
    /// The device it leads to.
    pub device: DeviceId,
    /// The adapter it leaves by.
    pub adapter: AdapterId,
}

/// A virtual machine, for naming.
#[derive(Clone, Debug)]
pub struct VmInfo {
    /// Its name.
    pub name: String,
    /// The id of its leader world, by which esxtop names its rows on devices.
    pub world: u32,
    /// A system process of the host (VMFS, hostd): it has worlds and no virtual disks.
    pub system: bool,
}

/// A virtual disk, for naming and adding up.
#[derive(Clone, Debug)]
pub struct VdiskInfo {
    /// Its place in the VM (`scsi0:1`).
    pub name: String,
    /// Its virtual machine.
    pub vm: VmId,
    /// The device its I/Os go to.
    pub device: DeviceId,
    /// The type of its virtual adapter.
    pub controller: Controller,
}

/// Who is who on one host; every vector is indexed by the id of its noun.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// The host's name.
    pub host: String,
    /// Host adapters.
    pub adapters: Vec<AdapterInfo>,
    /// Devices.
    pub devices: Vec<DeviceInfo>,
    /// Paths.
    pub paths: Vec<PathInfo>,
    /// Virtual machines.
    pub vms: Vec<VmInfo>,
    /// Virtual disks.
    pub vdisks: Vec<VdiskInfo>,
}

impl Inventory {
    /// No row of this host has more values: a world may be on a device for each virtual disk.
    #[must_use]
    pub fn values_max(&self) -> u64 {
        let objects = [
            (Kind::Adapter, self.adapters.len()),
            (Kind::Path, self.paths.len()),
            (Kind::Device, self.devices.len()),
            (Kind::World, self.vdisks.len()),
            (Kind::Vm, self.vms.len()),
            (Kind::VirtualDisk, self.vdisks.len()),
        ];
        objects.map(|(kind, count)| count as u64 * kind.counters().count() as u64).iter().sum()
    }
}

/// Turns snapshots of a host into rows. It keeps one snapshot, the last; the rows are the caller's.
#[derive(Clone, Debug)]
pub struct Sampler {
    inventory: Inventory,
    entities: Entities,
    empty: Recording,
    epoch_ms: i64,
    last: Arc<HostSnapshot>,
}

/// The rows of the recording for each noun of the inventory.
#[derive(Clone, Debug)]
struct Entities {
    adapters: Vec<Option<EntityId>>,
    devices: Vec<OfDisks>,
    paths: Vec<Option<EntityId>>,
    worlds: Vec<OfDisks>,
    vms: Vec<Option<OfDisks>>,
    vdisks: Vec<Option<EntityId>>,
    /// The places of all virtual disks, those of one device and there of one VM side by side.
    by_device: Vec<VdiskId>,
    /// The same, those of one VM side by side.
    by_vm: Vec<VdiskId>,
}

/// A row that some virtual disks add up to: a part of the order that has them side by side.
#[derive(Clone, Debug)]
struct OfDisks {
    row: EntityId,
    disks: Range<u32>,
}

impl OfDisks {
    fn new(row: EntityId, from: usize, count: usize) -> Self {
        Self { row, disks: from as u32..(from + count) as u32 }
    }

    /// Their places in the inventory.
    fn of<'a>(&self, order: &'a [VdiskId]) -> &'a [VdiskId] {
        &order[self.disks.start as usize..self.disks.end as usize]
    }
}

/// The two snapshots around a row.
struct Interval<'a> {
    before: &'a HostSnapshot,
    after: &'a HostSnapshot,
}

impl Sampler {
    /// A sampler whose first interval begins with the snapshot `start`. `epoch_ms` is the
    /// wall-clock time of [`Time::ZERO`](crate::Time::ZERO) in milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn new(inventory: Inventory, epoch_ms: i64, start: Arc<HostSnapshot>) -> Self {
        let mut empty = Recording::new(inventory.host.clone());
        let entities = Entities::add(&inventory, &mut empty);
        let interval = Interval { before: &start, after: &start };
        interval.row(&inventory, &entities, |entity, counter, _| empty.add_column(entity, counter));
        empty.close_layout();
        Self { inventory, entities, empty, epoch_ms, last: start }
    }

    /// A recording of this host without a row yet.
    #[must_use]
    pub fn recording(&self) -> Recording {
        self.empty.clone()
    }

    /// Adds the row of the interval from the last snapshot to this one, and gives back the last one,
    /// which is no longer needed. A snapshot that is not later than the last one adds nothing.
    pub fn sample(
        &mut self,
        now: &Arc<HostSnapshot>,
        into: &mut Recording,
    ) -> Option<Arc<HostSnapshot>> {
        (now.at > self.last.at).then(|| {
            self.add_row(&self.last, now, into);
            core::mem::replace(&mut self.last, Arc::clone(now))
        })
    }

    /// Adds the row between any two snapshots of this host: what the one has counted since the
    /// other, which must be earlier.
    pub fn add_row(&self, before: &HostSnapshot, after: &HostSnapshot, into: &mut Recording) {
        let ms = |at: &HostSnapshot| self.epoch_ms + (at.at.0 / crate::MILLISECOND) as i64;
        let mut values = into.add_row(ms(before), ms(after));
        Interval { before, after }.row(&self.inventory, &self.entities, |_, _, value| {
            *values.next().expect("every row has the same values") = value;
        });
    }
}

impl Entities {
    /// Adds the objects in the order of a real file: adapters, then for each device its paths and
    /// worlds, then virtual machines with their virtual disks [CAP-A].
    fn add(inventory: &Inventory, recording: &mut Recording) -> Self {
        let mut add = |entity| recording.add_entity(entity);
        let adapters: Vec<_> = inventory
            .adapters
            .iter()
            .map(|adapter| {
                let row = || add(Entity::new(Kind::Adapter, adapter.name.clone()));
                adapter.storage.then(row)
            })
            .collect();
        let mut entities = Self {
            adapters,
            devices: Vec::with_capacity(inventory.devices.len()),
            paths: Vec::from_iter(inventory.paths.iter().map(|_| None)),
            worlds: Vec::new(),
            vms: Vec::with_capacity(inventory.vms.len()),
            vdisks: Vec::from_iter(inventory.vdisks.iter().map(|_| None)),
            by_device: Vec::from_iter((0..inventory.vdisks.len()).map(VdiskId::new)),
            by_vm: Vec::from_iter((0..inventory.vdisks.len()).map(VdiskId::new)),
        };
        let disk = |id: &VdiskId| &inventory.vdisks[id.index()];
        sort_by_key(&mut entities.by_device, |index| (disk(index).device, disk(index).vm));
        sort_by_key(&mut entities.by_vm, |index| disk(index).vm);
        let mut paths = vec![Vec::new(); inventory.devices.len()];
        for (index, path) in inventory.paths.iter().enumerate() {
            paths[path.device.index()].push(index);
        }
        let mut from = 0;
        for (index, paths) in paths.iter().enumerate() {
            let id = DeviceId::new(index);
            let all = &entities.by_device[from..];
            let count = all.partition_point(|index| disk(index).device == id);
            entities.add_device(inventory, recording, (id, paths), from..from + count);
            from += count;
        }
        let mut from = 0;
        for index in 0..inventory.vms.len() {
            let id = VmId::new(index);
            let count = entities.by_vm[from..].partition_point(|index| disk(index).vm == id);
            entities.add_vm(inventory, recording, id, from..from + count);
            from += count;
        }
        entities.worlds.shrink_to_fit();
        for world in &entities.worlds {
            let owner = world.of(&entities.by_device).first().map(|first| disk(first).vm);
            let owner = owner.and_then(|owner| entities.vms[owner.index()].as_ref());
            recording.entity_mut(world.row).vm = owner.map(|vm| vm.row);
        }
        entities
    }

    /// A device with its paths, and with the worlds of those whose disks are on it.
    fn add_device(
        &mut self,
        inventory: &Inventory,
        recording: &mut Recording,
        (id, paths): (DeviceId, &[usize]),
        disks: Range<usize>,
    ) {
        let device = &inventory.devices[id.index()];
        let kind = if device.kind == DeviceKind::Nfs { Kind::NfsVolume } else { Kind::Device };
        let row = recording.add_entity(Entity::new(kind, device.name.clone()));
        self.devices.push(OfDisks::new(row, disks.start, disks.len()));
        if kind == Kind::NfsVolume {
            return;
        }
        for &index in paths {
            let path = &inventory.paths[index];
            let mut entity = Entity::new(Kind::Path, path.name.clone());
            entity.device = Some(row);
            entity.adapter = self.adapters[path.adapter.index()];
            self.paths[index] = Some(recording.add_entity(entity));
        }
        let owner = |id: &VdiskId| inventory.vdisks[id.index()].vm;
        let mut from = disks.start;
        for own in self.by_device[disks].chunk_by(|a, b| owner(a) == owner(b)) {
            let user = owner(&own[0]);
            let vm = &inventory.vms[user.index()];
            let mut entity = Entity::new(Kind::World, format!("{}-{}", device.name, vm.world));
            entity.device = Some(row);
            entity.process = vm.system.then(|| vm.name.clone());
            let world = OfDisks::new(recording.add_entity(entity), from, own.len());
            self.worlds.push(world);
            from += own.len();
        }
    }

    fn add_vm(
        &mut self,
        inventory: &Inventory,
        recording: &mut Recording,
        id: VmId,
        disks: Range<usize>,
    ) {
        let vm = &inventory.vms[id.index()];
        if vm.system {
            self.vms.push(None);
            return;
        }
        let row = recording.add_entity(Entity::new(Kind::Vm, vm.name.clone()));
        self.vms.push(Some(OfDisks::new(row, disks.start, disks.len())));
        for id in &self.by_vm[disks] {
            let disk = &inventory.vdisks[id.index()];
            let name = format!("{}:{}", vm.name, disk.name);
            let mut entity = Entity::new(Kind::VirtualDisk, name);
            entity.vm = Some(row);
            entity.device = Some(self.devices[disk.device.index()].row);
            entity.controller = Some(disk.controller);
            self.vdisks[id.index()] = Some(recording.add_entity(entity));
        }
    }
}

/// Reads, writes, others and how they ended, over one interval.
#[derive(Default)]
struct Delta {
    io: [IoTotals; 3],
    failed: [u64; 3],
    aborts: u64,
    resets: u64,
    reserves: u64,
    failed_reserves: u64,
    conflicts: u64,
    offered: u64,
    lost: u64,
    merged: u64,
}

impl Delta {
    fn add(&mut self, after: &VdiskCounters, before: &VdiskCounters) {
        let (now, then) = (after.rare.get(), before.rare.get());
        for direction in 0..3 {
            self.io[direction].add(&after.io[direction].since(&before.io[direction]));
            self.failed[direction] += now.failed[direction] - then.failed[direction];
        }
        self.aborts += now.aborts + now.overdue - then.aborts - then.overdue;
        self.resets += now.resets - then.resets;
        self.reserves += now.reserves - then.reserves;
        self.failed_reserves += now.failed_reserves - then.failed_reserves;
        self.conflicts += now.conflicts - then.conflicts;
        self.offered += after.offered - before.offered;
        self.lost += after.lost - before.lost;
        self.merged += after.merged - before.merged;
    }

    fn add_gate(&mut self, after: &GateCounters, before: &GateCounters) {
        let (after, before) = (after.io.get(), before.io.get());
        for direction in 0..3 {
            self.io[direction].add(&after[direction].since(&before[direction]));
        }
    }

    fn all(&self) -> IoTotals {
        let mut sum = self.io[0];
        sum.add(&self.io[1]);
        sum.add(&self.io[2]);
        sum
    }
}

impl Interval<'_> {
    /// Puts the values of its row, in an order that depends on the inventory alone.
    fn row(
        &self,
        inventory: &Inventory,
        entities: &Entities,
        put: impl FnMut(EntityId, Counter, f64),
    ) {
        let mut row = Row { put, interval: self };
        row.adapters(inventory, entities);
        row.paths(entities);
        row.devices(inventory, entities);
        row.worlds(inventory, entities);
        row.vdisks(entities);
    }
}

/// One row under construction.
struct Row<'a, P> {
    put: P,
    interval: &'a Interval<'a>,
}

impl<P: FnMut(EntityId, Counter, f64)> Row<'_, P> {
    fn put(&mut self, entity: EntityId, counter: Counter, value: f64) {
        (self.put)(entity, counter, value);
    }

    fn per_second(&self, count: u64) -> f64 {
        count as f64 * SECOND as f64 / (self.interval.after.at - self.interval.before.at) as f64
    }

    fn adapters(&mut self, inventory: &Inventory, entities: &Entities) {
        for (index, entity) in entities.adapters.iter().enumerate() {
            let Some(entity) = *entity else { continue };
            let after = self.interval.after;
            let mut delta = Delta::default();
            for (path, info) in inventory.paths.iter().enumerate() {
                if info.adapter.index() == index {
                    delta.add_gate(&after.paths[path], &self.interval.before.paths[path]);
                }
            }
            self.put(entity, Counter::AdapterQDepth, f64::from(after.adapters[index].depth));
            self.io(entity, &delta);
            self.latencies(entity, &delta);
            self.split(entity, &after.adapters[index], &self.interval.before.adapters[index]);
        }
    }

    fn paths(&mut self, entities: &Entities) {
        for (index, entity) in entities.paths.iter().enumerate() {
            let Some(entity) = *entity else { continue };
            let (after, before) =
                (&self.interval.after.paths[index], &self.interval.before.paths[index]);
            let mut delta = Delta::default();
            delta.add_gate(after, before);
            self.io(entity, &delta);
            self.latencies(entity, &delta);
            self.split(entity, after, before);
        }
    }

    fn split(&mut self, entity: EntityId, after: &GateCounters, before: &GateCounters) {
        let commands = self.per_second(after.split_commands - before.split_commands);
        let copies = self.per_second(after.split_copies - before.split_copies);
        self.put(entity, Counter::SplitCommands, commands);
        self.put(entity, Counter::SplitCopies, copies);
    }

    fn devices(&mut self, inventory: &Inventory, entities: &Entities) {
        let Interval { before, after } = *self.interval;
        let (from, to) = (before.at, after.at);
        for (index, device) in entities.devices.iter().enumerate() {
            let (entity, disks) = (device.row, device.of(&entities.by_device));
            let (now, then) = (&after.devices[index], &before.devices[index]);
            let mut delta = self.disks(disks);
            delta.resets += now.resets - then.resets;
            let mean = |level: fn(&DeviceCounters) -> &Occupancy| {
                level(now).mean_since(level(then), from, to)
            };
            let waiting = mean(|d| &d.queued) + mean(|d| &d.held);
            if inventory.devices[index].kind == DeviceKind::Nfs {
                self.nfs(entity, now.active.now(), &delta);
                self.put(entity, Counter::MeanQueued, waiting);
                continue;
            }
            let queue = (now.depth, now.active.now(), now.queued.now());
            self.queue(entity, queue);
            self.io(entity, &delta);
            self.latencies(entity, &delta);
            self.errors(entity, &delta);
            self.offloaded(disks, entity);
            let array = [
                (Counter::ArrayLatency, delta.all()),
                (Counter::ArrayLatencyRead, delta.io[Direction::Read as usize]),
                (Counter::ArrayLatencyWrite, delta.io[Direction::Write as usize]),
            ];
            for (counter, sum) in array {
                self.put(entity, counter, mean_millis(sum.array_ns, sum.commands));
            }
            let (depth, active) = (mean(|d| &d.depth_over_time), mean(|d| &d.active));
            self.put(entity, Counter::MeanDeviceQDepth, depth);
            self.put(entity, Counter::MeanActive, active);
            self.put(entity, Counter::MeanQueued, waiting);
        }
    }

    fn nfs(&mut self, entity: EntityId, active: u32, delta: &Delta) {
        self.put(entity, Counter::ActiveCommands, f64::from(active));
        self.io(entity, delta);
        let totals = [delta.all(), delta.io[0], delta.io[1]];
        let counters =
            [Counter::GuestLatency, Counter::GuestLatencyRead, Counter::GuestLatencyWrite];
        for (counter, sum) in counters.into_iter().zip(totals) {
            let latency = mean_millis(sum.kernel_ns + sum.device_ns, sum.commands);
            self.put(entity, counter, latency);
        }
        let all = delta.all();
        self.put(entity, Counter::ArrayLatency, mean_millis(all.array_ns, all.commands));
    }

    fn worlds(&mut self, inventory: &Inventory, entities: &Entities) {
        for world in &entities.worlds {
            let (entity, disks) = (world.row, world.of(&entities.by_device));
            let (mut active, mut queued, mut shares) = (0, 0, 0);
            for disk in disks.iter().map(|id| &self.interval.after.vdisks[id.index()]) {
                active += disk.slots.now();
                queued += disk.queued.now();
                shares += disk.shares;
            }
            let delta = self.disks(disks);
            let device = disks.first().map(|disk| inventory.vdisks[disk.index()].device);
            let device = device.map(|device| &self.interval.after.devices[device.index()]);
            let depth = device.map_or(0, |device| device.depth);
            self.put(entity, Counter::Shares, f64::from(shares));
            self.queue(entity, (depth, active, queued));
            self.io(entity, &delta);
            self.latencies(entity, &delta);
            self.errors(entity, &delta);
        }
    }

    fn vdisks(&mut self, entities: &Entities) {
        for vm in entities.vms.iter().flatten() {
            let delta = self.disks(vm.of(&entities.by_vm));
            self.vdisk_rates(vm.row, &delta);
        }
        for (index, entity) in entities.vdisks.iter().enumerate() {
            if let Some(entity) = *entity {
                self.vdisk(entity, index);
            }
        }
    }

    fn vdisk(&mut self, entity: EntityId, index: usize) {
        let Interval { before, after } = *self.interval;
        let (from, to) = (before.at, after.at);
        let (now, then) = (&after.vdisks[index], &before.vdisks[index]);
        let mut delta = Delta::default();
        delta.add(now, then);
        self.vdisk_rates(entity, &delta);
        let sum = delta.all();
        self.put(entity, Counter::GuestWait, mean_millis(sum.guest_ns, sum.commands));
        let waiting = now.guest_queued.mean_since(&then.guest_queued, from, to);
        self.put(entity, Counter::MeanGuestQueued, waiting);
        let latency = now.total.since(&then.total);
        let total_ns = now.total_ns.wrapping_sub(then.total_ns);
        self.put(entity, Counter::TotalLatency, mean_millis(total_ns, latency.count()));
        for (counter, ms) in percentiles_ms(&latency) {
            self.put(entity, counter, ms.unwrap_or(f64::NAN));
        }
    }

    fn vdisk_rates(&mut self, entity: EntityId, delta: &Delta) {
        self.io(entity, delta);
        let demand = [
            (Counter::Offered, delta.offered),
            (Counter::Lost, delta.lost),
            (Counter::Merged, delta.merged),
        ];
        for (counter, count) in demand {
            let rate = self.per_second(count);
            self.put(entity, counter, rate);
        }
        let counters = [Counter::VdiskReadLatency, Counter::VdiskWriteLatency];
        for (counter, sum) in counters.into_iter().zip(delta.io) {
            let latency = mean_millis(sum.kernel_ns + sum.device_ns, sum.commands);
            self.put(entity, counter, latency);
        }
    }

    fn disks(&self, disks: &[VdiskId]) -> Delta {
        let mut delta = Delta::default();
        for index in disks.iter().map(|disk| disk.index()) {
            delta.add(&self.interval.after.vdisks[index], &self.interval.before.vdisks[index]);
        }
        delta
    }

    /// What the array does by itself, in totals since boot.
    fn offloaded(&mut self, disks: &[VdiskId], entity: EntityId) {
        let (mut ats, mut zeroes, mut discards, mut copies) = (0, 0, 0, 0);
        for disk in disks.iter().map(|disk| self.interval.after.vdisks[disk.index()].rare.get()) {
            ats += disk.ats;
            zeroes += disk.zeroes;
            discards += disk.discards;
            copies += disk.copies;
        }
        let totals = [
            (Counter::Ats, ats),
            (Counter::Zeros, zeroes),
            (Counter::Deletes, discards),
            (Counter::CloneWrites, copies),
        ];
        for (counter, total) in totals {
            self.put(entity, counter, total as f64);
        }
    }

    fn queue(&mut self, entity: EntityId, (depth, active, queued): (u32, u32, u32)) {
        let limit = f64::from(depth.max(1));
        self.put(entity, Counter::DeviceQDepth, f64::from(depth));
        self.put(entity, Counter::WorldQDepth, 0.0);
        self.put(entity, Counter::ActiveCommands, f64::from(active));
        self.put(entity, Counter::QueuedCommands, f64::from(queued));
        self.put(entity, Counter::PercentUsed, 100.0 * f64::from(active) / limit);
        self.put(entity, Counter::Load, f64::from(active + queued) / limit);
    }

    fn io(&mut self, entity: EntityId, delta: &Delta) {
        const MEBIBYTE: f64 = (1 << 20) as f64;
        let [read, write, other] = &delta.io;
        let rates = [
            (Counter::Commands, self.per_second(read.commands + write.commands + other.commands)),
            (Counter::Reads, self.per_second(read.commands)),
            (Counter::Writes, self.per_second(write.commands)),
            (Counter::MbRead, self.per_second(read.bytes) / MEBIBYTE),
            (Counter::MbWritten, self.per_second(write.bytes) / MEBIBYTE),
        ];
        for (counter, rate) in rates {
            self.put(entity, counter, rate);
        }
    }

    fn latencies(&mut self, entity: EntityId, delta: &Delta) {
        use Counter as C;
        let averages = [
            (delta.all(), [C::DriverLatency, C::KernelLatency, C::GuestLatency, C::QueueLatency]),
            (
                delta.io[Direction::Read as usize],
                [
                    C::DriverLatencyRead,
                    C::KernelLatencyRead,
                    C::GuestLatencyRead,
                    C::QueueLatencyRead,
                ],
            ),
            (
                delta.io[Direction::Write as usize],
                [
                    C::DriverLatencyWrite,
                    C::KernelLatencyWrite,
                    C::GuestLatencyWrite,
                    C::QueueLatencyWrite,
                ],
            ),
        ];
        for (sum, counters) in averages {
            let times = [sum.device_ns, sum.kernel_ns, sum.device_ns + sum.kernel_ns, sum.queue_ns];
            for (counter, nanos) in counters.into_iter().zip(times) {
                self.put(entity, counter, mean_millis(nanos, sum.commands));
            }
        }
    }

    fn errors(&mut self, entity: EntityId, delta: &Delta) {
        let rates = [
            (Counter::Reserves, delta.reserves),
            (Counter::Conflicts, delta.conflicts),
            (Counter::FailedCommands, delta.failed.iter().sum()),
            (Counter::FailedReads, delta.failed[0]),
            (Counter::FailedWrites, delta.failed[1]),
            (Counter::FailedReserves, delta.failed_reserves),
            (Counter::Aborts, delta.aborts),
            (Counter::Resets, delta.resets),
        ];
        for (counter, count) in rates {
            let rate = self.per_second(count);
            self.put(entity, counter, rate);
        }
    }
}

fn mean_millis(nanos: u64, commands: u64) -> f64 {
    if commands == 0 {
        return 0.0;
    }
    crate::nanos_to_millis(nanos as f64 / commands as f64)
}
