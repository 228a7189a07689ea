//! What a recording shows, before anybody judges it: devices with their worlds, paths and virtual
//! disks, and for each the columns that matter and the samples with load.

mod queue;
mod spell;
mod stall;

use counters::sorted::sort_by;
use std::collections::BTreeMap;

use counters::{
    Counter, DEFAULT_INTERVAL_S, Entity, EntityId, Kind, MILLISECOND, interval_s, is_leap,
};
use knobs::CONFLICT_RETRY_NS;
use levels::{Measured, usual_interval_s};

pub(crate) use levels::{
    Column, Flow, LevelKind, Vdisk, is_round, is_round_within, largest, little, mean, median,
    most_frequent, quantile, unrest_percent,
};
pub(crate) use queue::{FullQueue, Motion, Queue, ROUNDED, halves_and_climbs};
pub(crate) use spell::Spell;
pub(crate) use stall::Stall;

use crate::{
    DeviceFacts, Facts, Object, ObjectKind, Party, Threshold, Thresholds, Window,
    thresholds::{Limits, NEXT_STEP},
};

/// A host over a recording.
pub(crate) struct Host<'a> {
    pub(crate) name: &'a str,
    pub(crate) times_ms: &'a [i64],
    /// The length of the first interval in seconds, where that is known.
    first_s: Option<f64>,
    /// The usual length of an interval, in seconds.
    pub(crate) usual_s: f64,
    pub(crate) devices: Vec<Device<'a>>,
    pub(crate) adapters: Vec<Adapter<'a>>,
    pub(crate) vdisks: Vec<Vdisk<'a>>,
    /// The place of each object of the recording among the devices.
    places: Vec<Option<usize>>,
    /// What VMs are called of which another is called so too.
    pub(crate) called: BTreeMap<&'a str, &'a str>,
    /// The places of the virtual disks of each VM, and of each virtual adapter.
    of_vms: BTreeMap<&'a str, Vec<usize>>,
    of_adapters: BTreeMap<&'a str, Vec<usize>>,
    /// What a rate and a latency of the host's own are judged by.
    pub(crate) limits: Limits<'a>,
}

/// A SCSI device or an NFS volume.
pub(crate) struct Device<'a> {
    pub(crate) id: EntityId,
    pub(crate) flow: Flow<'a>,
    pub(crate) queue: Queue<'a>,
    pub(crate) faults: Faults<'a>,
    /// kavg's own: what the array reports, where the source knows it.
    pub(crate) array_ms: Column<'a>,
    /// The same: mean commands that wait in the host, which the row of an NFS volume has no QUED for.
    pub(crate) held: Column<'a>,
    pub(crate) is_nfs: bool,
    pub(crate) worlds: Vec<World<'a>>,
    /// The place of the first world of each owner.
    owners: BTreeMap<&'a str, usize>,
    pub(crate) paths: Vec<Path<'a>>,
    /// The places of its virtual disks among those of the host.
    vdisks: Vec<usize>,
    /// The samples with load.
    pub(crate) busy: Vec<usize>,
    /// Those with load, and those of which nothing tells whether they have any.
    pub(crate) maybe_busy: Vec<usize>,
    /// The latency of its quick samples.
    pub(crate) quickest_ms: f64,
    pub(crate) limits: Limits<'a>,
    /// Whether it is full, and when.
    pub(crate) full: Option<FullQueue>,
    /// The number of commands that it stays at beside free slots, while others wait.
    pub(crate) stands_at: Option<f64>,
    /// How long it gave no answer before what a sample completes, where that is proven.
    pub(crate) stalls: BTreeMap<usize, Stall>,
}

/// A world on a device.
pub(crate) struct World<'a> {
    pub(crate) flow: Flow<'a>,
    pub(crate) queue: Queue<'a>,
    pub(crate) shares: Column<'a>,
    /// The VM, or the name of the row where none is known.
    pub(crate) owner: &'a str,
    /// Whether it is the host's own (VMFS, hostd).
    pub(crate) is_system: bool,
}

/// A path of a device.
pub(crate) struct Path<'a> {
    pub(crate) flow: Flow<'a>,
    pub(crate) adapter: Option<EntityId>,
}

/// A host adapter.
pub(crate) struct Adapter<'a> {
    pub(crate) id: EntityId,
    pub(crate) flow: Flow<'a>,
    pub(crate) aqlen: Column<'a>,
    pub(crate) split_commands: Column<'a>,
    pub(crate) split_copies: Column<'a>,
}

/// What went wrong on a device, per second.
pub(crate) struct Faults<'a> {
    pub(crate) conflicts: Column<'a>,
    pub(crate) aborts: Column<'a>,
    pub(crate) resets: Column<'a>,
    pub(crate) failed: Column<'a>,
}

impl<'a> Host<'a> {
    pub(crate) fn observe(
        recording: &'a Measured,
        thresholds: &'a Thresholds,
        facts: &Facts,
    ) -> Self {
        let first_s = recording.interval_s(0);
        let is_whole = |seconds: &f64| !leaps(*seconds, DEFAULT_INTERVAL_S);
        let usual_s = usual_interval_s(&recording.times_ms).or(first_s.filter(is_whole));
        let mut host = Self {
            name: &recording.host,
            times_ms: &recording.times_ms,
            first_s,
            usual_s: usual_s.unwrap_or(DEFAULT_INTERVAL_S),
            devices: Vec::new(),
            adapters: Vec::new(),
            vdisks: Vec::new(),
            places: vec![None; recording.entities().len()],
            called: BTreeMap::new(),
            of_vms: BTreeMap::new(),
            of_adapters: BTreeMap::new(),
            limits: thresholds.for_device(f64::INFINITY),
        };
        for (id, entity) in (0..).map(EntityId).zip(recording.entities()) {
            if matches!(entity.kind, Kind::Device | Kind::NfsVolume) {
                host.places[id.0 as usize] = Some(host.devices.len());
                host.devices.push(Device::of(recording, id, host.limits));
            }
        }
        for (id, entity) in (0..).map(EntityId).zip(recording.entities()) {
            let device = entity.device.and_then(|device| host.place(device));
            host.add(recording, id, entity, device);
        }
        for device in &mut host.devices {
            let depths = device.vdisks.iter().filter_map(|&place| host.vdisks.get(place));
            let depths = depths.map(|disk| facts.vdisks.get(disk.name)?.depth.map(f64::from));
            let guests = depths.sum::<Option<f64>>().filter(|sum| *sum > 0.0);
            let known = facts.device(device.flow.name);
            device.judge(recording.len(), thresholds, known, guests);
        }
        let stalls: Vec<_> = host.devices.iter().map(|device| stall::all(&host, device)).collect();
        for (device, stalls) in host.devices.iter_mut().zip(stalls) {
            device.stalls = stalls;
        }
        host
    }

    fn add(
        &mut self,
        recording: &'a Measured,
        id: EntityId,
        entity: &'a Entity,
        device: Option<usize>,
    ) {
        let device = device.and_then(|index| self.devices.get_mut(index));
        match (entity.kind, device) {
            (Kind::World, Some(device)) => {
                let world = World::of(recording, id, entity);
                device.owners.entry(world.owner).or_insert(device.worlds.len());
                device.worlds.push(world);
            }
            (Kind::Path, Some(device)) => {
                device.paths.push(Path { flow: Flow::of(recording, id), adapter: entity.adapter })
            }
            (Kind::Vm, _) => {
                let called = entity.called.as_deref();
                self.called.extend(called.map(|called| (entity.name.as_str(), called)));
            }
            (Kind::Adapter, _) => self.adapters.push(Adapter::of(recording, id)),
            (Kind::VirtualDisk, device) => {
                let (disk, place) = (Vdisk::of(recording, id), self.vdisks.len());
                if let Some(device) = device {
                    device.vdisks.push(place);
                }
                self.of_vms.entry(disk.vm).or_default().push(place);
                self.of_adapters.entry(disk.adapter()).or_default().push(place);
                self.vdisks.push(disk);
            }
            _ => {}
        }
    }

    /// All samples, by their places.
    pub(crate) fn every_sample(&self) -> Vec<usize> {
        (0..self.times_ms.len()).collect()
    }

    /// Whether commands that wait are as many, beside those that do not, and wait for as long each, in
    /// milliseconds, as counts.
    pub(crate) fn is_held_up(&self, (waiting, wait_ms): (f64, f64), others: f64) -> bool {
        let limit = |threshold| self.limits.get(threshold);
        waiting >= limit(Threshold::Waiting)
            && waiting >= limit(Threshold::WaitPercent) / 100.0 * others
            && wait_ms >= limit(Threshold::HeldMs)
    }

    /// The devices with load.
    pub(crate) fn busy_devices(&self) -> impl Iterator<Item = &Device<'a>> {
        self.devices.iter().filter(|device| !device.busy.is_empty())
    }

    /// The virtual disks on a device.
    pub(crate) fn vdisks_on<'h>(
        &'h self,
        device: &Device<'_>,
    ) -> impl Iterator<Item = &'h Vdisk<'a>> {
        device.vdisks.iter().filter_map(|&place| self.vdisks.get(place))
    }

    /// The virtual disks of a VM on a device.
    pub(crate) fn vdisks_of<'h>(
        &'h self,
        vm: &str,
        device: &Device<'_>,
    ) -> impl Iterator<Item = &'h Vdisk<'a>> {
        let own = self.of_vms.get(vm).into_iter().flatten().map(|&place| &self.vdisks[place]);
        own.filter(move |disk| disk.device == Some(device.id))
    }

    /// The VMs, each with its virtual disks.
    pub(crate) fn vms(&self) -> impl Iterator<Item = (&'a str, Vec<&Vdisk<'a>>)> {
        let disks = |places: &[usize]| places.iter().map(|&place| &self.vdisks[place]).collect();
        self.of_vms.iter().map(move |(vm, places)| (*vm, disks(places)))
    }

    /// Whether a VM has virtual disks.
    pub(crate) fn has_disks_of(&self, vm: &str) -> bool {
        self.of_vms.contains_key(vm)
    }

    /// Whether a world on any device has the name of a VM.
    pub(crate) fn has_world_of(&self, vm: &str) -> bool {
        self.devices.iter().any(|device| device.world_of(vm).is_some())
    }

    /// The names of the virtual adapters.
    pub(crate) fn virtual_adapters(&self) -> impl Iterator<Item = &'a str> {
        self.of_adapters.keys().copied()
    }

    /// The virtual disks of a virtual adapter.
    pub(crate) fn vdisks_at<'h>(&'h self, adapter: &str) -> impl Iterator<Item = &'h Vdisk<'a>> {
        self.of_adapters.get(adapter).into_iter().flatten().map(|&place| &self.vdisks[place])
    }

    fn place(&self, device: EntityId) -> Option<usize> {
        self.places.get(device.0 as usize).copied()?
    }

    /// The device of a virtual disk.
    pub(crate) fn device_of(&self, disk: &Vdisk<'_>) -> Option<&Device<'a>> {
        self.devices.get(self.place(disk.device?)?)
    }

    /// The device of each object that a finding may be about and that belongs to one: of those of
    /// one name to the first.
    pub(crate) fn objects(&self) -> BTreeMap<Object, &Device<'a>> {
        let own = self.devices.iter().flat_map(|device| {
            let paths = device.paths.iter().map(Path::object);
            paths.chain([device.object()]).map(move |object| (object, device))
        });
        let of_vms = self.vdisks.iter().filter_map(|disk| Some((disk, self.device_of(disk)?)));
        let of_vms = of_vms.flat_map(|(disk, device)| {
            let name = disk.adapter().into();
            let adapter = Object { kind: ObjectKind::VirtualAdapter, name };
            [(Object::row(Kind::VirtualDisk, disk.name), device), (adapter, device)]
        });
        let mut objects = BTreeMap::new();
        for (object, device) in own.chain(of_vms) {
            objects.entry(object).or_insert(device);
        }
        objects
    }

    /// The adapters that lead to a device.
    pub(crate) fn adapters_of(&self, device: &Device<'_>) -> Vec<&Adapter<'a>> {
        let leads = |adapter: &&Adapter<'_>| device.is_behind(adapter.id);
        self.adapters.iter().filter(leads).collect()
    }

    /// The commands that the adapters which lead to a device take together (AQLEN).
    pub(crate) fn adapter_slots(&self, device: &Device<'_>) -> Option<f64> {
        let adapters = self.adapters_of(device).into_iter();
        let slots: Option<f64> = adapters.map(|adapter| largest(adapter.aqlen.every())).sum();
        slots.filter(|slots| *slots > 0.0)
    }

    /// Whether an adapter leads to both devices.
    pub(crate) fn share_an_adapter(&self, one: &Device<'_>, other: &Device<'_>) -> bool {
        let mut adapters = self.adapters.iter();
        adapters.any(|adapter| one.is_behind(adapter.id) && other.is_behind(adapter.id))
    }

    /// The time from the first to the last interval of a spell.
    pub(crate) fn window(&self, spell: &Spell) -> Window {
        let first = spell.samples.first().copied().unwrap_or(0);
        let last = spell.samples.last().copied().unwrap_or(0);
        Window {
            from_ms: self.begin_ms(first),
            to_ms: self.times_ms.get(last).copied().unwrap_or(0),
            samples: spell.samples.len(),
            of: spell.of,
        }
    }

    /// The length of a sample's interval in seconds: the usual one after a hole, or a clock that was
    /// set, for its rates are not of all that time.
    pub(crate) fn interval_s(&self, sample: usize) -> f64 {
        let is_whole = |seconds: &f64| !leaps(*seconds, self.usual_s);
        let own = if sample == 0 { self.first_s } else { interval_s(self.times_ms, sample) };
        own.filter(is_whole).unwrap_or(self.usual_s)
    }

    /// Whether that is its own, and no default.
    fn knows_interval(&self, sample: usize) -> bool {
        sample > 0 || self.first_s.is_some()
    }

    pub(crate) fn begin_ms(&self, sample: usize) -> i64 {
        let end = self.times_ms.get(sample).copied().unwrap_or(0);
        end.saturating_sub((self.interval_s(sample) * 1000.0) as i64)
    }
}

/// Whether an interval beside the usual one is a hole, or a clock that was set.
fn leaps(seconds: f64, usual_s: f64) -> bool {
    is_leap((seconds * 1000.0) as i64, (usual_s * 1000.0) as i64)
}

impl<'a> Device<'a> {
    /// The counters by which every rule's device is observed, beside those of the rule.
    pub(crate) const COUNTERS: &'static [Counter] = &[
        Counter::FailedCommands,
        Counter::Conflicts,
        Counter::Shares,
        Counter::ArrayLatency,
        Counter::MeanQueued,
    ];

    fn of(recording: &'a Measured, id: EntityId, limits: Limits<'a>) -> Self {
        let column = |counter| Column::of(recording, id, counter);
        Self {
            id,
            flow: Flow::of(recording, id),
            queue: Queue::of(recording, id),
            faults: Faults {
                conflicts: column(Counter::Conflicts),
                aborts: column(Counter::Aborts),
                resets: column(Counter::Resets),
                failed: column(Counter::FailedCommands),
            },
            array_ms: column(Counter::ArrayLatency),
            held: column(Counter::MeanQueued),
            is_nfs: recording.entity(id).kind == Kind::NfsVolume,
            worlds: Vec::new(),
            owners: BTreeMap::new(),
            paths: Vec::new(),
            vdisks: Vec::new(),
            busy: Vec::new(),
            maybe_busy: Vec::new(),
            quickest_ms: f64::INFINITY,
            limits,
            full: None,
            stands_at: None,
            stalls: BTreeMap::new(),
        }
    }

    /// What a finding about it is about.
    pub(crate) fn object(&self) -> Object {
        let kind = if self.is_nfs { Kind::NfsVolume } else { Kind::Device };
        Object::row(kind, self.flow.name)
    }

    /// Its samples with load but for some.
    pub(crate) fn busy_but(&self, samples: &[usize]) -> Vec<usize> {
        self.busy.iter().copied().filter(|sample| !samples.contains(sample)).collect()
    }

    /// The first world of an owner.
    pub(crate) fn world_of(&self, owner: &str) -> Option<&World<'a>> {
        self.worlds.get(*self.owners.get(owner)?)
    }

    /// Whether one of its paths is that adapter's.
    fn is_behind(&self, adapter: EntityId) -> bool {
        self.paths.iter().any(|path| path.adapter == Some(adapter))
    }

    /// Finds the samples with load, the profile that fits, and whether the queue is full. A device
    /// is flash where that is known, whatever the recording shows of it.
    fn judge(
        &mut self,
        samples: usize,
        thresholds: &'a Thresholds,
        known: &DeviceFacts,
        guests: Option<f64>,
    ) {
        let limits = self.limits;
        let (measured, unknown): (Vec<usize>, Vec<usize>) =
            (0..samples).partition(|sample| self.flow.is_measured(*sample));
        let outstanding = mean(measured.iter().map(|&sample| self.flow.outstanding(sample)));
        let stands = MOSTLY * limits.get(Threshold::BusyOutstanding);
        let trickles = mean(self.flow.commands.every())
            .is_some_and(|rate| rate < limits.get(Threshold::MinIops))
            && outstanding.is_some_and(|outstanding| outstanding < stands);
        let is_busy = |sample: &usize| {
            is_busy(&self.flow, limits, trickles, *sample) || self.faults.shut_out(limits, *sample)
        };
        self.busy = measured.into_iter().filter(is_busy).collect();
        self.maybe_busy = [&self.busy[..], &unknown].concat();
        self.maybe_busy.sort_unstable();
        if self.busy.is_empty() {
            return;
        }
        self.quickest_ms = self.quickest();
        self.limits = thresholds.for_device(if known.is_flash { 0.0 } else { self.quickest_ms });
        self.stands_at = self.find_stand();
        self.full = self.find_full_queue(known, guests);
    }

    /// The spell of load in which something holds.
    pub(crate) fn spell(&self, holds: impl Fn(usize) -> bool) -> Option<Spell> {
        Spell::find(&self.maybe_busy, |sample| self.flow.is_measured(sample).then(|| holds(sample)))
    }

    /// The latency of the quick samples, of the device or of one of its worlds: a volume that the
    /// array slows down on purpose says nothing of what the array can do, nor do commands that fail.
    fn quickest(&self) -> f64 {
        const QUICK: f64 = 0.1;
        const MOST_FAIL: f64 = 0.5;
        let fails = |sample: usize| {
            let rate = self.flow.rate(sample);
            self.faults.failed.at(sample) >= rate.map(|rate| MOST_FAIL * rate) && rate.is_some()
        };
        let served: Vec<usize> = self.busy.iter().copied().filter(|&s| !fails(s)).collect();
        let served = if served.is_empty() { &self.busy } else { &served };
        let own = quantile(served.iter().map(|&sample| self.flow.davg(sample)), QUICK);
        let worlds = self.worlds.iter();
        worlds
            .filter_map(|world| world.flow.per_command(served, Flow::davg))
            .chain(own)
            .fold(f64::INFINITY, f64::min)
    }

    /// DAVG from which the device is slow: far slower than it is itself, between two steps. Large
    /// commands may take the time to move them. What is surely flash is in no step below that.
    pub(crate) fn slow_ms(&self, sample: usize) -> Option<f64> {
        const FAR: f64 = 9.0;
        let (mut least, most) = self.slow_steps();
        if !self.limits.is_set(Threshold::DavgMs) && self.is_flash() {
            least = self.limits.get(Threshold::FlashMs);
        }
        Some((FAR * self.quickest_ms).max(least).min(most) + self.transfer_ms(sample)?)
    }

    /// DAVG that is slow however quick the device is at times.
    pub(crate) fn surely_slow_ms(&self, sample: usize) -> Option<f64> {
        Some(self.slow_steps().1 + self.transfer_ms(sample)?)
    }

    /// The published threshold and the step beside it, of 5, 10, 20 ms [DRILL]: the next one for
    /// what is held for flash by its quick samples, since it may be a cache before disks; the one
    /// before for disks. A threshold that was set is taken as it is, and so is that of flash where somebody says that
    /// the device is flash.
    fn slow_steps(&self) -> (f64, f64) {
        const STEP_BEFORE: f64 = 0.8;
        let davg = self.limits.get(Threshold::DavgMs);
        if self.limits.is_set(Threshold::DavgMs) || self.limits.is_flash_by_word() {
            (davg, davg)
        } else if self.is_flash() {
            (davg, NEXT_STEP * davg)
        } else {
            (STEP_BEFORE * davg, davg)
        }
    }

    /// Whether its quick samples are those of flash.
    fn is_flash(&self) -> bool {
        self.quickest_ms < self.limits.get(Threshold::FlashMs)
    }

    /// What the size of its commands may cost each of them.
    fn transfer_ms(&self, sample: usize) -> Option<f64> {
        self.flow.transfer_ms(sample, self.limits.get(Threshold::TransferMib))
    }

    /// What each VM does on the device over some samples, the one with most slots first.
    pub(crate) fn tenants(&self, samples: &[usize]) -> Vec<Party> {
        let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
        let mut tenants: Vec<Party> = Vec::new();
        for world in self.worlds.iter().filter(|world| !world.is_system) {
            let Some(party) = world.party(samples) else { continue };
            match by_name.get(world.owner) {
                Some(&place) => tenants[place].add(&party),
                None => {
                    by_name.insert(world.owner, tenants.len());
                    tenants.push(party);
                }
            }
        }
        tenants.retain(|tenant| tenant.iops > 0.0);
        sort_by(&mut tenants, |a, b| b.slots.total_cmp(&a.slots).then_with(|| a.name.cmp(&b.name)));
        tenants
    }
}

/// Whether a number reaches another, where both were measured.
pub(crate) fn reaches(value: Option<f64>, least: Option<f64>) -> bool {
    least.is_some() && value >= least
}

/// Part of the recording in which a device must have a command outstanding to have load, where it
/// does not even complete one a second.
const MOSTLY: f64 = 0.5;

/// Whether a row has load worth judging: many commands, or one outstanding all the time. A trickle
/// that leaves the device empty is none, nor one that is below one a second over the recording and
/// only comes in clusters [CAP-A].
fn is_busy(flow: &Flow<'_>, limits: Limits<'_>, trickles: bool, sample: usize) -> bool {
    let rate = flow.rate(sample);
    let stands = flow.outstanding(sample) >= Some(limits.get(Threshold::BusyOutstanding));
    rate > Some(0.0) && (rate >= Some(limits.get(Threshold::BusyIops)) || stands && !trickles)
}

impl<'a> World<'a> {
    fn of(recording: &'a Measured, id: EntityId, entity: &'a Entity) -> Self {
        Self {
            flow: Flow::of(recording, id),
            queue: Queue::of(recording, id),
            shares: Column::of(recording, id, Counter::Shares),
            owner: levels::owner(recording, entity),
            is_system: entity.vm.is_none() && entity.process.is_some(),
        }
    }

    /// What it does over some samples, if its commands and slots were measured in any.
    fn party(&self, samples: &[usize]) -> Option<Party> {
        Party::of(self.owner, &self.flow, samples)
    }
}

impl Party {
    /// What a world of that owner does over some samples, if its commands and slots were measured
    /// in any.
    #[must_use]
    pub fn of(owner: &str, flow: &Flow<'_>, samples: &[usize]) -> Option<Self> {
        // Its figures are held against each other, so they are of the same samples.
        let is_whole = |&sample: &usize| flow.in_flight(sample).and(flow.waiting(sample)).is_some();
        let whole: Vec<usize> = samples.iter().copied().filter(is_whole).collect();
        let samples = if whole.is_empty() { samples } else { &whole };
        Some(Self {
            name: owner.into(),
            iops: flow.mean_rate(samples)?,
            gavg_ms: flow.per_command(samples, Flow::gavg),
            slots: flow.mean_in_flight(samples)?,
            waiting: mean(samples.iter().map(|s| flow.waiting(*s))),
        })
    }

    /// What a virtual disk does over some samples, by the name that is given, if that was measured in any. On a volume of
    /// NFS, where VMs have no world, it is who is there.
    #[must_use]
    pub fn of_disk(name: &str, disk: &Vdisk<'_>, samples: &[usize]) -> Option<Self> {
        let over = |value: &dyn Fn(usize) -> Option<f64>| mean(samples.iter().map(|&s| value(s)));
        Some(Self {
            name: name.into(),
            iops: over(&|sample| disk.rate(sample))?,
            gavg_ms: disk.latency_ms(samples),
            slots: over(&|sample| disk.outstanding(sample))?,
            waiting: None,
        })
    }

    /// What another row says of the same party.
    pub(crate) fn add(&mut self, other: &Self) {
        let both = [&*self, other].map(|party| Some((party.gavg_ms?, party.iops)));
        self.gavg_ms = levels::weighted_mean(both);
        self.iops += other.iops;
        self.slots += other.slots;
        self.waiting = self.waiting.zip(other.waiting).map(|(a, b)| a + b);
    }
}

impl Faults<'_> {
    /// Reservation conflicts; none are seen where the source has no such counter.
    pub(crate) fn conflicts_at(&self, sample: usize) -> Option<f64> {
        if self.conflicts.is_there() { self.conflicts.at(sample) } else { Some(0.0) }
    }

    /// Mean commands that wait in the VMkernel for their retry after such a conflict.
    pub(crate) fn retrying(&self, sample: usize) -> Option<f64> {
        const RETRY_MS: f64 = (CONFLICT_RETRY_NS / MILLISECOND) as f64;
        Some(little(self.conflicts_at(sample)?, RETRY_MS))
    }

    /// Whether so many commands meet reservations of other hosts that they count: load, however few of
    /// them complete.
    pub(crate) fn shut_out(&self, limits: Limits<'_>, sample: usize) -> bool {
        self.conflicts.at(sample) >= Some(limits.get(Threshold::ConflictsPerSecond))
    }
}

impl Path<'_> {
    /// What a finding about it is about.
    pub(crate) fn object(&self) -> Object {
        Object::row(Kind::Path, self.flow.name)
    }
}

impl<'a> Adapter<'a> {
    /// What a finding about it is about.
    pub(crate) fn object(&self) -> Object {
        Object::row(Kind::Adapter, self.flow.name)
    }

    fn of(recording: &'a Measured, id: EntityId) -> Self {
        let column = |counter| Column::of(recording, id, counter);
        Self {
            id,
            flow: Flow::of(recording, id),
            aqlen: column(Counter::AdapterQDepth),
            split_commands: column(Counter::SplitCommands),
            split_copies: column(Counter::SplitCopies),
        }
    }
}
