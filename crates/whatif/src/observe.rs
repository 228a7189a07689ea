//! What the recording shows of the devices in question: their queues, who sends to them, through
//! which adapters, and when the load was how high.

use counters::{Controller, Counter, Entity, EntityId, Kind, Recording};
use levels::quantile;

use crate::rows::{Flow, column, mean};

/// Rate below which nobody is looked at: latency below one I/O a second says nothing [CAP-A].
pub(crate) const RATE_MIN: f64 = 1.0;
/// Part of a world's commands that its virtual disks must account for to stand in its place.
const ACCOUNTED: f64 = 0.9;
/// Levels of load that are told apart.
const LEVELS_MAX: usize = 4;

/// A device or NFS volume.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) id: EntityId,
    pub(crate) name: String,
    pub(crate) is_nfs: bool,
    pub(crate) flow: Flow,
    /// DQLEN, 0 where unknown.
    pub(crate) depth: Vec<f64>,
    /// Names and AQLEN (0 where unknown) of the adapters that carry its commands.
    pub(crate) adapters: Vec<(String, f64)>,
    pub(crate) tenants: Vec<Tenant>,
}

/// Who sends commands to a device: a virtual disk, or a world where its disks are not known.
#[derive(Clone, Debug)]
pub(crate) struct Tenant {
    /// The VM, or the process of a system world.
    pub(crate) vm: String,
    /// Its place in the VM (`scsi0:1`); nothing for a world.
    pub(crate) disk: Option<String>,
    pub(crate) controller: Option<Controller>,
    pub(crate) is_system: bool,
    pub(crate) flow: Flow,
    /// The world's row on the device, which has QAVG.
    pub(crate) world: Option<Flow>,
}

impl Device {
    pub(crate) fn of(recording: &Recording, id: EntityId) -> Self {
        let entity = recording.entity(id);
        let mut device = Self {
            id,
            name: entity.name.clone(),
            is_nfs: entity.kind == Kind::NfsVolume,
            flow: Flow::of(recording, id),
            depth: column(recording, id, Counter::DeviceQDepth),
            adapters: adapters_of(recording, id),
            tenants: Vec::new(),
        };
        device.tenants = device.find_tenants(recording);
        device
    }

    /// Samples among these in which it has load.
    pub(crate) fn busy(&self, samples: &[usize]) -> Vec<usize> {
        let is_busy = |s: &usize| self.flow.rate[*s] >= RATE_MIN && self.flow.davg[*s] > 0.0;
        samples.iter().copied().filter(is_busy).collect()
    }

    fn find_tenants(&self, recording: &Recording) -> Vec<Tenant> {
        let disks: Vec<(EntityId, &Entity)> = recording
            .of_kind(Kind::VirtualDisk)
            .filter(|(_, disk)| disk.device == Some(self.id))
            .collect();
        let mut tenants = Vec::new();
        for (id, world) in recording.of_kind(Kind::World) {
            if world.device == Some(self.id) {
                let own = disks.iter().filter(|(_, d)| d.vm.is_some() && d.vm == world.vm);
                tenants.extend(of_world(recording, (id, world), &own.copied().collect::<Vec<_>>()));
            }
        }
        if tenants.is_empty() {
            tenants.extend(disks.iter().map(|&disk| of_disk(recording, disk, None)));
        }
        tenants.retain(|tenant| mean(tenant.flow.rate.iter().copied()) > 0.0);
        if tenants.is_empty() {
            tenants.push(Tenant {
                vm: "guests".into(),
                disk: None,
                controller: None,
                is_system: false,
                flow: self.flow.clone(),
                world: None,
            });
        }
        tenants
    }
}

/// The virtual disks of a world when they account for its commands, else the world itself.
fn of_world(
    recording: &Recording,
    (id, world): (EntityId, &Entity),
    disks: &[(EntityId, &Entity)],
) -> Vec<Tenant> {
    let flow = Flow::of(recording, id);
    if let [(_, disk)] = disks {
        return vec![Tenant { world: Some(flow.clone()), flow, ..named(recording, disk) }];
    }
    let of_disks: Vec<_> =
        disks.iter().map(|&disk| of_disk(recording, disk, Some(flow.clone()))).collect();
    let total = |flow: &Flow| flow.rate.iter().sum::<f64>();
    let sum: f64 = of_disks.iter().map(|tenant| total(&tenant.flow)).sum();
    let has_latency = of_disks.iter().any(|tenant| tenant.flow.gavg.iter().any(|ms| *ms > 0.0));
    if has_latency && sum >= ACCOUNTED * total(&flow) {
        return of_disks;
    }
    let vm = world.vm.and_then(|vm| recording.entities().get(vm.0 as usize));
    let name = vm.map(|vm| &vm.name).or(world.process.as_ref()).unwrap_or(&world.name);
    vec![Tenant {
        vm: name.clone(),
        disk: None,
        controller: disks.iter().find_map(|(_, disk)| disk.controller),
        is_system: vm.is_none() && world.process.is_some(),
        world: Some(flow.clone()),
        flow,
    }]
}

fn of_disk(recording: &Recording, disk: (EntityId, &Entity), world: Option<Flow>) -> Tenant {
    Tenant { flow: Flow::of(recording, disk.0), world, ..named(recording, disk.1) }
}

/// A tenant with the names of a virtual disk.
fn named(recording: &Recording, disk: &Entity) -> Tenant {
    let vm = disk.vm.and_then(|vm| recording.entities().get(vm.0 as usize));
    let vm = vm.map_or(disk.name.as_str(), |vm| vm.name.as_str());
    let slot = disk.name.strip_prefix(vm).and_then(|rest| rest.strip_prefix(':'));
    Tenant {
        vm: vm.into(),
        disk: slot.map(Into::into),
        controller: disk.controller,
        is_system: false,
        flow: Flow::default(),
        world: None,
    }
}

/// The adapters over which a device has commands, or all that lead to it when none has.
fn adapters_of(recording: &Recording, device: EntityId) -> Vec<(String, f64)> {
    let mut found: Vec<(EntityId, f64)> = Vec::new();
    for (id, path) in recording.of_kind(Kind::Path).filter(|(_, path)| path.device == Some(device))
    {
        let Some(adapter) = path.adapter else { continue };
        let commands: f64 = column(recording, id, Counter::Commands).iter().sum();
        match found.iter_mut().find(|(known, _)| *known == adapter) {
            Some(known) => known.1 += commands,
            None => found.push((adapter, commands)),
        }
    }
    let most = found.iter().map(|(_, commands)| *commands).fold(0.0, f64::max);
    found.retain(|(_, commands)| *commands >= 0.01 * most);
    let named = |(id, _): &(EntityId, f64)| {
        let entity = recording.entities().get(id.0 as usize)?;
        let depth = column(recording, *id, Counter::AdapterQDepth);
        Some((entity.name.clone(), depth.into_iter().fold(0.0, f64::max)))
    };
    found.iter().filter_map(named).collect()
}

/// Samples of like load, the lightest level first: each is simulated as a phase of its own,
/// because latency does not follow the mean of the load.
pub(crate) fn levels(devices: &[Device], samples: &[usize]) -> Vec<Vec<usize>> {
    /// Levels differ at least by this factor in the commands outstanding.
    const APART: f64 = 1.3;
    /// A level has at least this part of the samples.
    const PART: usize = 12;
    let load = |sample: usize| -> f64 {
        let tenants = devices.iter().flat_map(|device| &device.tenants);
        tenants.map(|tenant| tenant.flow.outstanding(sample)).sum::<f64>().max(1e-3)
    };
    let mut ordered: Vec<(f64, usize)> = samples.iter().map(|&s| (load(s), s)).collect();
    ordered.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let least = (samples.len() / PART).max(1);
    let mut levels = vec![ordered];
    while levels.len() < LEVELS_MAX {
        let spread = |level: &[(f64, usize)]| match level {
            [first, .., last] => last.0 / first.0,
            _ => 1.0,
        };
        let widest = (0..levels.len())
            .max_by(|&a, &b| (spread(&levels[a])).total_cmp(&spread(&levels[b])).then(b.cmp(&a)));
        let Some(widest) = widest.filter(|&level| spread(&levels[level]) > APART) else { break };
        let Some(cut) = widest_gap(&levels[widest], least) else { break };
        let upper = levels[widest].split_off(cut);
        levels.insert(widest + 1, upper);
    }
    let samples_of = |level: Vec<(f64, usize)>| level.into_iter().map(|(_, s)| s).collect();
    levels.into_iter().map(samples_of).collect()
}

/// Where to cut a level in two so that its loads differ most, by the sum of squares of logarithms.
fn widest_gap(level: &[(f64, usize)], least: usize) -> Option<usize> {
    let logs: Vec<f64> = level.iter().map(|(load, _)| load.ln()).collect();
    let total: f64 = logs.iter().sum();
    let (mut sum, mut best) = (0.0, None);
    for (index, log) in logs.iter().enumerate() {
        let (below, above) = (index, logs.len() - index);
        if below >= least && above >= least {
            let between = sum * sum / below as f64 + (total - sum) * (total - sum) / above as f64;
            if best.is_none_or(|(most, _)| between > most) {
                best = Some((between, index));
            }
        }
        sum += log;
    }
    best.map(|(_, index)| index)
}

/// The limits of a device's queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Depths {
    /// The depth without competition, as far as it was seen.
    pub(crate) base: u32,
    /// The lower of two levels between which DQLEN moves.
    pub(crate) lowered: Option<u32>,
    /// Whether DQLEN had more levels than two: something else moves it.
    pub(crate) restless: bool,
}

impl Device {
    /// What DQLEN shows; `None` when it was not recorded. Where VMs compete, the depth without
    /// competition is the deepest of the whole recording; a VM alone has it all the time.
    pub(crate) fn depths(&self, window: &[usize]) -> Option<Depths> {
        let known = |depth: &f64| (*depth >= 1.0).then_some(*depth as u32);
        let mut seen: Vec<u32> = window.iter().filter_map(|&s| known(&self.depth[s])).collect();
        seen.sort_unstable();
        let deepest = *seen.last()?;
        let competes = self.vms() > 1;
        let elsewhere = self.depth.iter().filter_map(known).max().filter(|_| competes);
        let base = elsewhere.unwrap_or(deepest);
        let count = |depth: &u32| seen.iter().filter(|other| *other == depth).count();
        let mut levels = seen.clone();
        levels.dedup();
        levels.retain(|depth| *depth < base && count(depth) * 50 >= seen.len());
        Some(Depths { base, lowered: levels.first().copied(), restless: levels.len() > 1 })
    }

    /// The mean of a latency over the commands of other VMs, in milliseconds; 0 without others.
    pub(crate) fn of_others(
        &self,
        tenant: &Tenant,
        samples: &[usize],
        latency: impl Fn(&Flow) -> &Vec<f64>,
    ) -> f64 {
        let (mut commands, mut time) = (0.0, 0.0);
        for other in self.tenants.iter().filter(|other| other.vm != tenant.vm) {
            let Some(world) = &other.world else { continue };
            let ms = latency(world);
            commands += samples.iter().map(|&s| world.rate[s]).sum::<f64>();
            time += samples.iter().map(|&s| world.rate[s] * ms[s]).sum::<f64>();
        }
        if commands > 0.0 { time / commands } else { 0.0 }
    }

    /// Commands at the array while there are any: where commands wait although the mean leaves
    /// slots free, they come in bursts that fill the queue.
    pub(crate) fn concurrency(&self, sample: usize) -> f64 {
        let (mean, depth) = (self.flow.in_flight(sample), self.depth[sample]);
        if self.is_bursty(sample) { mean.max(depth) } else { mean }
    }

    /// Whether commands wait in the VMkernel while the mean leaves slots free.
    pub(crate) fn is_bursty(&self, sample: usize) -> bool {
        /// Part of the time that is spent waiting.
        const WAITS: f64 = 0.1;
        /// Part of the slots that is in use on average.
        const FULL: f64 = 0.9;
        let (davg, gavg) = (self.flow.davg[sample], self.flow.gavg[sample]);
        let mean = self.flow.in_flight(sample);
        gavg - davg > WAITS * gavg && mean < FULL * self.depth[sample]
    }

    /// Busy samples outside a window whose depth is another than the window's: the same load, if
    /// nothing else changed.
    pub(crate) fn regimes(&self, window: &[usize]) -> Vec<usize> {
        /// The least factor between two depths.
        const OTHER: f64 = 1.25;
        let depth = mean(window.iter().map(|&s| self.depth[s]));
        let is_other = |s: &usize| {
            let (low, high) = (self.depth[*s].min(depth), self.depth[*s].max(depth));
            low > 0.0 && high >= OTHER * low
        };
        let all: Vec<usize> = (0..self.flow.rate.len()).filter(|s| !window.contains(s)).collect();
        self.busy(&all).into_iter().filter(is_other).collect()
    }

    /// How many VMs and system processes send to it.
    pub(crate) fn vms(&self) -> usize {
        let mut vms: Vec<&str> = self.tenants.iter().map(|tenant| tenant.vm.as_str()).collect();
        vms.sort_unstable();
        vms.dedup();
        vms.len()
    }

    /// Whether its slots were next to all taken in most of these samples.
    pub(crate) fn is_full(&self, samples: &[usize]) -> bool {
        const FULL: f64 = 0.9;
        let used = |&s: &usize| {
            let depth = self.depth[s];
            if depth > 0.0 { self.flow.in_flight(s) / depth } else { 0.0 }
        };
        quantile(samples.iter().map(used), 0.4) >= Some(FULL)
    }
}
