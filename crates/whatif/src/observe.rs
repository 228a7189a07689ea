//! What the recording shows of the devices in question: their queues, who sends to them, through
//! which adapters, and when the load was how high.

use counters::sorted::{sort, sort_by};
use counters::{Controller, Counter, Entity, EntityId, Kind, MILLISECOND};
use knobs::{CONFLICT_RETRY_NS, DSNRO, PVSCSI_DEPTH_MAX, disk_depths};
use levels::{Column, Measured, largest, little, mean, owner, quantile, weighted_mean};

use crate::flaps;
use crate::{
    cost,
    rows::{Figure, READS_APART, ROUNDING_MS, Row, SIZES_APART},
};

/// Rate below which nobody is looked at: latency below one I/O a second says nothing [CAP-A].
pub(crate) const RATE_MIN: f64 = 1.0;
/// Part of a world's commands that its virtual disks must account for to stand in its place.
const ACCOUNTED: f64 = 0.9;
/// Part by which a rate or a number differs by chance.
const CHANCE: f64 = 0.05;
/// Part of a latency that is no wait.
const NO_WAIT: f64 = 0.1;
/// Part of the slots that is in use where none is free.
const FULL: f64 = 0.95;
/// Levels of load that are told apart.
const LEVELS_MAX: usize = 4;

/// A device or NFS volume.
#[derive(Clone, Debug)]
pub(crate) struct Device<'a> {
    pub(crate) id: EntityId,
    pub(crate) name: String,
    pub(crate) is_nfs: bool,
    pub(crate) row: Row<'a>,
    dqlen: Column<'a>,
    actv: Column<'a>,
    qued: Column<'a>,
    conflicts: Column<'a>,
    /// Samples over which its load rests again and again.
    pub(crate) resting: Vec<usize>,
    /// How many samples the recording has.
    samples: usize,
    /// The least of the depths between which DQLEN moves to and fro by itself, if it does.
    flaps_to: Option<f64>,
    /// Names and AQLEN of the adapters that carry its commands.
    pub(crate) adapters: Vec<(String, Option<f64>)>,
    pub(crate) tenants: Vec<Tenant<'a>>,
}

/// Who sends commands to a device: a virtual disk, or a world where its disks are not known.
#[derive(Clone, Debug)]
pub(crate) struct Tenant<'a> {
    /// The VM, or the process of a system world.
    pub(crate) vm: String,
    /// Its place in the VM (`scsi0:1`); nothing for a world.
    pub(crate) disk: Option<String>,
    pub(crate) controller: Option<Controller>,
    pub(crate) is_system: bool,
    pub(crate) row: Row<'a>,
    /// The world's row on the device, which has QAVG.
    pub(crate) world: Option<Row<'a>>,
}

/// Whether the states of single instants are next to nothing more often than any queue is that has as many
/// inside on average around each, or far above that. `instants` are what each showed, and that mean.
pub(crate) fn is_unlike_a_queue(instants: &[(f64, f64)]) -> bool {
    /// Part of the mean that is next to nothing.
    const NOTHING: f64 = 0.125;
    /// Standard errors that tell.
    const ERRORS: f64 = 2.5;
    let of =
        |of: &dyn Fn(f64, f64) -> f64| mean(instants.iter().map(|&(n, mean)| Some(of(n, mean))));
    let is_empty = |n: f64, inside: f64| f64::from(u8::from(n <= NOTHING * inside));
    // Of all queues that of one server is empty most often, 1 / (1 + its mean) of the time, and
    // differs most.
    let usual = of(&|_, inside| 1.0 / (1.0 + inside));
    let (Some(empty), Some(apart), Some(usual), Some(variance)) =
        (of(&is_empty), of(&|n, mean| n - mean), usual, of(&|_, mean| mean * (1.0 + mean)))
    else {
        return false;
    };
    let error = |variance: f64| ERRORS * (variance / instants.len().max(1) as f64).sqrt();
    empty > usual + error(usual * (1.0 - usual)) || apart > error(variance)
}

/// Whether instants show another load than there is between them, each time the same way: then it comes and goes in
/// step with the samples. `instants` are the commands present at each, and their mean number around it.
fn is_in_step(instants: &[(f64, f64)]) -> bool {
    /// Standard errors of the mean of the differences, by how these vary themselves.
    const ERRORS: f64 = 3.5;
    /// Instants that are enough to tell.
    const INSTANTS: usize = 5;
    /// The part of the mean number that counts, and so many commands besides, which are what is printed.
    const COUNTS: [f64; 2] = [0.05, 0.1];
    let of =
        |of: &dyn Fn(f64, f64) -> f64| mean(instants.iter().map(|&(n, mean)| Some(of(n, mean))));
    let (Some(apart), Some(stands)) = (of(&|n, mean| n - mean), of(&|_, mean| mean)) else {
        return false;
    };
    let squares = of(&|n, mean| (n - mean - apart).powi(2)).unwrap_or_default();
    let free = instants.len().saturating_sub(1).max(1) as f64;
    instants.len() >= INSTANTS
        && apart.abs() > ERRORS * (squares / free).sqrt() + COUNTS[0] * stands + COUNTS[1]
}

impl Tenant<'_> {
    /// The most commands that it has outstanding, however long they take.
    pub(crate) fn outstanding_at_most(&self) -> f64 {
        self.outstanding_max().unwrap_or(f64::from(PVSCSI_DEPTH_MAX))
    }

    /// The most commands that its virtual disk lets through, whatever its driver is set to; none of a
    /// world of which the disks are not known.
    pub(crate) fn outstanding_max(&self) -> Option<f64> {
        self.disk.as_ref()?;
        let depths = disk_depths(self.controller.unwrap_or(Controller::Pvscsi));
        depths.last().map(|&most| f64::from(most))
    }

    /// Whether its load in other samples may be that of the window: a guest that waits for its answers
    /// has fewer outstanding where it sends more, and one with a rate of its own keeps that.
    pub(crate) fn is_same(&self, samples: &[usize], window: &[usize]) -> bool {
        let (Some(then), Some(now)) = (self.row.load(samples), self.row.load(window)) else {
            return false;
        };
        let is_less =
            |a: (f64, f64), b: (f64, f64)| a.0 < (1.0 - CHANCE) * b.0 && a.1 < (1.0 - CHANCE) * b.1;
        then.0 >= RATE_MIN && !is_less(then, now) && !is_less(now, then)
    }

    /// Of these samples those with commands like a window's, as far as reads and sizes tell.
    pub(crate) fn like(&self, samples: &[usize], window: &[usize]) -> Vec<usize> {
        let of = |samples: &[usize]| (self.row.read_share(samples), self.row.size_kib(samples));
        let (reads, kib) = of(window);
        let is_near = |one: Option<f64>, other: Option<f64>, near: &dyn Fn(f64, f64) -> bool| {
            one.zip(other).is_none_or(|(one, other)| near(one, other))
        };
        let is_like = |s: &&usize| {
            let (own_reads, own_kib) = of(&[**s]);
            is_near(reads, own_reads, &|a, b| (a - b).abs() <= READS_APART)
                && is_near(kib, own_kib, &|a, b| a.max(b) <= SIZES_APART * a.min(b))
        };
        samples.iter().filter(is_like).copied().collect()
    }

    /// Whether much of what it has outstanding waits in the VMkernel.
    pub(crate) fn waits(&self, samples: &[usize]) -> bool {
        /// Mean commands that wait.
        const WAITING: f64 = 1.0;
        /// Part of its commands that wait.
        const PART: f64 = 0.3;
        let Some(world) = &self.world else { return false };
        let [waiting, inside] = [Row::waiting, Row::outstanding].map(|of| world.mean(samples, of));
        waiting >= Some(WAITING) && waiting >= inside.map(|inside| PART * inside)
    }

    /// The samples in which it waits, or all where it never does.
    pub(crate) fn waiting(&self, samples: &[usize]) -> Vec<usize> {
        let own: Vec<usize> = samples.iter().copied().filter(|s| self.waits(&[*s])).collect();
        if own.is_empty() { samples.to_vec() } else { own }
    }
}

impl<'a> Device<'a> {
    pub(crate) fn of(recording: &'a Measured, id: EntityId) -> Self {
        let entity = recording.entity(id);
        let mut device = Self {
            id,
            name: entity.name.clone(),
            is_nfs: entity.kind == Kind::NfsVolume,
            row: Row::of(recording, id),
            dqlen: Column::of(recording, id, Counter::DeviceQDepth),
            actv: Column::of(recording, id, Counter::ActiveCommands),
            qued: Column::of(recording, id, Counter::QueuedCommands),
            conflicts: Column::of(recording, id, Counter::Conflicts),
            resting: Vec::new(),
            samples: recording.len(),
            flaps_to: None,
            adapters: adapters_of(recording, id),
            tenants: Vec::new(),
        };
        device.tenants = device.find_tenants(recording);
        if !device.is_nfs && device.vms() > 1 {
            let busy = device.busy(&(0..device.samples).collect::<Vec<_>>());
            let rows = device.tenants.iter().map(|tenant| &tenant.row);
            device.flaps_to = flaps::least(&busy, |sample| device.depth_at(sample), rows);
        }
        device
    }

    /// DQLEN at the instant of a sample.
    pub(crate) fn depth_at(&self, sample: usize) -> Option<f64> {
        self.dqlen.at(sample).filter(|depth| *depth >= 1.0)
    }

    /// The depth of a sample's interval: DQLEN. Where that moves to and fro by itself the one of an instant is not
    /// that of the time before it, of which the least of them alone is sure.
    pub(crate) fn depth(&self, sample: usize) -> Option<f64> {
        self.flaps_to.or_else(|| self.depth_at(sample))
    }

    /// The least of the depths between which DQLEN moves to and fro by itself, if it does.
    pub(crate) const fn flaps_to(&self) -> Option<f64> {
        self.flaps_to
    }

    /// The mean of DQLEN.
    pub(crate) fn mean_depth(&self, samples: &[usize]) -> Option<f64> {
        mean(samples.iter().map(|&sample| self.depth(sample)))
    }

    /// Commands a second that meet SCSI reservations of other hosts, where those that wait to be tried
    /// again are a part of what is outstanding that counts.
    pub(crate) fn refused(&self, samples: &[usize]) -> Option<f64> {
        /// That part.
        const COUNTS: f64 = 0.1;
        let conflicts = mean(self.conflicts.over(samples).map(Some))?;
        let held = little(conflicts, (CONFLICT_RETRY_NS / MILLISECOND) as f64);
        let inside = self.row.mean(samples, Row::outstanding)?;
        (held > COUNTS * inside).then_some(conflicts)
    }

    /// Whether its commands wait in the host as where the array refuses what is more than it takes: queued at
    /// instants at which slots are free (TASK SET FULL), or held for no queue (BUSY).
    pub(crate) fn is_refused(&self, samples: &[usize]) -> bool {
        /// Part of the instants at which commands wait.
        const MOST: f64 = 0.5;
        let queues = |&s: &usize| {
            let is_free = self.actv.at(s)? < FULL * self.depth_at(s)?;
            Some(f64::from(u8::from(self.qued.at(s)? >= 1.0 && is_free)))
        };
        let of = |latency| self.row.per_command(samples, latency);
        let held = |kavg: f64, qavg: f64| Some(kavg - qavg > NO_WAIT * of(Row::gavg)?);
        let is_held = of(Row::kavg).zip(of(Row::qavg)).and_then(|(kavg, qavg)| held(kavg, qavg));
        !self.is_nfs && (mean(samples.iter().map(queues)) >= Some(MOST) || is_held == Some(true))
    }

    /// Whether no more than a `part` of its slots is in use on average over a sample, nor at its instant.
    pub(crate) fn has_free(&self, sample: usize, part: f64) -> bool {
        let most = self.depth(sample).map(|depth| part * depth);
        let used = [self.row.in_flight(sample), self.actv.at(sample)];
        used.iter().all(|used| used.is_some() && *used <= most)
    }

    /// Samples among these in which it is seen to have load.
    pub(crate) fn busy(&self, samples: &[usize]) -> Vec<usize> {
        let is_busy =
            |s: &usize| self.row.rate(*s) >= Some(RATE_MIN) && self.row.davg(*s) > Some(0.0);
        samples.iter().copied().filter(is_busy).collect()
    }

    /// Whether its load in a window is but the end of one before it, or the begin of one behind it: in the
    /// first sample alone, or in the last.
    pub(crate) fn is_at_an_edge(&self, window: &[usize]) -> bool {
        let is_busy = |sample: usize| !self.busy(&[sample]).is_empty();
        match (self.busy(window).as_slice(), window) {
            (&[only], &[first, .., last]) => {
                only == first && only.checked_sub(1).is_some_and(is_busy)
                    || only == last && only + 1 < self.samples && is_busy(only + 1)
            }
            _ => false,
        }
    }

    fn find_tenants(&self, recording: &'a Measured) -> Vec<Tenant<'a>> {
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
        // Who was not measured stays, and so does what it lacks.
        let every: Vec<usize> = (0..self.samples).collect();
        tenants.retain(|tenant| tenant.row.mean_rate(&every) != Some(0.0));
        if tenants.is_empty() {
            tenants.push(Tenant {
                vm: "guests".into(),
                disk: None,
                controller: None,
                is_system: false,
                row: self.row.clone(),
                world: None,
            });
        }
        tenants
    }
}

/// The virtual disks of a world when they account for its commands, else the world itself.
fn of_world<'a>(
    recording: &'a Measured,
    (id, world): (EntityId, &'a Entity),
    disks: &[(EntityId, &Entity)],
) -> Vec<Tenant<'a>> {
    let row = Row::of(recording, id);
    let every: Vec<usize> = (0..recording.len()).collect();
    let all = row.mean_rate(&every).map(|rate| ACCOUNTED * rate);
    if let ([(_, disk)], Some(_)) = (disks, all) {
        return vec![named(recording, disk, row.clone(), Some(row))];
    }
    let of_disks: Vec<_> =
        disks.iter().map(|&disk| of_disk(recording, disk, Some(row.clone()))).collect();
    let sum = of_disks.iter().map(|tenant| tenant.row.mean_rate(&every)).sum::<Option<f64>>();
    let has_latency =
        of_disks.iter().any(|tenant| every.iter().any(|&s| tenant.row.gavg(s) > Some(0.0)));
    if has_latency && sum.is_some() && sum >= all {
        return of_disks;
    }
    vec![Tenant {
        vm: owner(recording, world).into(),
        disk: None,
        controller: disks.iter().find_map(|(_, disk)| disk.controller),
        is_system: world.vm.is_none() && world.process.is_some(),
        world: Some(row.clone()),
        row,
    }]
}

fn of_disk<'a>(
    recording: &'a Measured,
    (id, disk): (EntityId, &Entity),
    world: Option<Row<'a>>,
) -> Tenant<'a> {
    named(recording, disk, Row::of(recording, id), world)
}

/// A tenant with the names of a virtual disk.
fn named<'a>(
    recording: &Measured,
    disk: &Entity,
    row: Row<'a>,
    world: Option<Row<'a>>,
) -> Tenant<'a> {
    let vm = owner(recording, disk);
    let slot = disk.name.strip_prefix(vm).and_then(|rest| rest.strip_prefix(':'));
    Tenant {
        vm: vm.into(),
        disk: slot.map(Into::into),
        controller: disk.controller,
        is_system: false,
        row,
        world,
    }
}

/// The adapters over which a device has commands, or all that lead to it when none has. One whose
/// commands were not measured may have them.
fn adapters_of(recording: &Measured, device: EntityId) -> Vec<(String, Option<f64>)> {
    let mut found: Vec<(EntityId, Option<f64>)> = Vec::new();
    for (id, path) in recording.of_kind(Kind::Path).filter(|(_, path)| path.device == Some(device))
    {
        let Some(adapter) = path.adapter else { continue };
        let commands = Column::of(recording, id, Counter::Commands).every().reduce(|a, b| a + b);
        match found.iter_mut().find(|(known, _)| *known == adapter) {
            Some((_, known)) => *known = known.zip(commands).map(|(a, b)| a + b),
            None => found.push((adapter, commands)),
        }
    }
    let most = largest(found.iter().map(|(_, commands)| *commands)).unwrap_or_default();
    found.retain(|(_, commands)| commands.is_none_or(|commands| commands >= 0.01 * most));
    let named = |(id, _): &(EntityId, Option<f64>)| {
        let entity = recording.entities().get(id.0 as usize)?;
        let depths = Column::of(recording, *id, Counter::AdapterQDepth).every();
        Some((entity.name.clone(), largest(depths)))
    };
    found.iter().filter_map(named).collect()
}

/// Samples of like load, the lightest level first: each is simulated as a phase of its own,
/// because latency does not follow the mean of the load. Where the array may hold a tenant to
/// a rate, a level has one such rate; and one load of each that an IOPS limit is to hold (`is_limited`), which cuts
/// what comes in each of them, and not their mean.
pub(crate) fn levels(
    devices: &[Device<'_>],
    samples: &[usize],
    is_limited: impl Fn(&Tenant<'_>) -> bool,
) -> Vec<Vec<usize>> {
    let tenants = || devices.iter().flat_map(|device| &device.tenants);
    let usual: Vec<Option<f64>> =
        tenants().map(|tenant| tenant.row.mean(samples, Row::outstanding)).collect();
    // Who was not measured in a sample makes it neither lighter nor heavier.
    let load = |sample: usize| -> f64 {
        let of = tenants().zip(&usual).map(|(t, usual)| t.row.outstanding(sample).or(*usual));
        of.flatten().sum()
    };
    let mut levels = apart(samples, samples.len(), load);
    for device in devices {
        for tenant in device.tenants.iter().filter(|tenant| device.is_held(tenant, samples)) {
            let rate = |sample| tenant.row.rate(sample).unwrap_or_default();
            levels = levels.iter().flat_map(|level| apart(level, samples.len(), rate)).collect();
        }
    }
    for tenant in tenants().filter(|tenant| is_limited(tenant)) {
        let stands = |sample| tenant.row.outstanding(sample).unwrap_or_default();
        levels = levels.iter().flat_map(|level| apart(level, samples.len(), stands)).collect();
    }
    levels
}

/// Samples in groups of like values, the least first; `all` are those that the smallest group is a
/// part of.
fn apart(samples: &[usize], all: usize, value: impl Fn(usize) -> f64) -> Vec<Vec<usize>> {
    /// Groups differ at least by this factor.
    const APART: f64 = 1.3;
    /// A group has at least this part of all samples.
    const PART: usize = 12;
    let mut ordered: Vec<(f64, usize)> = samples.iter().map(|&s| (value(s).max(1e-3), s)).collect();
    sort_by(&mut ordered, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let least = (all / PART).max(1);
    let mut groups = vec![ordered];
    while groups.len() < LEVELS_MAX {
        let spread = |group: &[(f64, usize)]| match group {
            [first, .., last] => last.0 / first.0,
            _ => 1.0,
        };
        let widest = (0..groups.len())
            .max_by(|&a, &b| (spread(&groups[a])).total_cmp(&spread(&groups[b])).then(b.cmp(&a)));
        let Some(widest) = widest.filter(|&group| spread(&groups[group]) > APART) else { break };
        let Some(cut) = widest_gap(&groups[widest], least) else { break };
        let upper = groups[widest].split_off(cut);
        groups.insert(widest + 1, upper);
    }
    let samples_of = |group: Vec<(f64, usize)>| group.into_iter().map(|(_, s)| s).collect();
    groups.into_iter().map(samples_of).collect()
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

/// Without the first and the last of each stretch of samples, in which the load or the depth may have
/// been another for a part of the time; all where nothing else is left. A recording may be cut
/// anywhere.
fn inner(samples: Vec<usize>, all: usize) -> Vec<usize> {
    let is_in = |sample: Option<usize>| sample.is_none_or(|sample| samples.contains(&sample));
    let next = |sample: usize| Some(sample + 1).filter(|next| *next < all);
    let is_inner = |&s: &usize| is_in(s.checked_sub(1)) && is_in(next(s));
    let inner: Vec<usize> = samples.iter().copied().filter(is_inner).collect();
    if inner.is_empty() { samples } else { inner }
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

impl<'a> Device<'a> {
    /// What DQLEN shows; `None` when it was not recorded. Where VMs compete, the depth without
    /// competition is the deepest of the whole recording; a VM alone has it all the time.
    pub(crate) fn depths(&self, window: &[usize]) -> Option<Depths> {
        let known = |sample: usize| self.depth_at(sample).map(|depth| depth as u32);
        let mut seen: Vec<u32> = window.iter().filter_map(|&s| known(s)).collect();
        // What it falls to may be in no sample of the window.
        seen.extend(self.flaps_to.map(|depth| depth as u32));
        sort(&mut seen);
        let deepest = *seen.last()?;
        let competes = self.vms() > 1;
        let elsewhere = (0..self.samples).filter_map(known).max().filter(|_| competes);
        let base = elsewhere.unwrap_or(deepest);
        let count = |depth: &u32| seen.iter().filter(|other| *other == depth).count();
        let mut levels = seen.clone();
        levels.dedup();
        let is_level = |depth: &u32| {
            count(depth) * 50 >= seen.len() || self.flaps_to == Some(f64::from(*depth))
        };
        levels.retain(|depth| *depth < base && is_level(depth));
        Some(Depths { base, lowered: levels.first().copied(), restless: levels.len() > 1 })
    }

    /// Whether DQLEN was ever so much while no two VMs sent commands: then it is no DSNRO, which binds
    /// only where VMs compete [S1].
    pub(crate) fn is_alone_at(&self, depth: u32) -> bool {
        let sends = |tenant: &&Tenant<'a>, sample| tenant.row.rate(sample) > Some(0.0);
        let is_alone = |sample: usize| {
            let mut vms = self.tenants.iter().filter(|t| sends(t, sample)).map(|t| &t.vm);
            let first = vms.next();
            vms.all(|vm| Some(vm) == first)
        };
        (0..self.samples).any(|s| self.depth_at(s) == Some(f64::from(depth)) && is_alone(s))
    }

    /// The mean of a latency over the commands of other VMs, in milliseconds; none without others.
    pub(crate) fn of_others(
        &self,
        tenant: &Tenant<'a>,
        samples: &[usize],
        latency: Figure<'a>,
    ) -> Option<f64> {
        let others = self.tenants.iter().filter(|other| other.vm != tenant.vm);
        let worlds = others.filter_map(|other| other.world.as_ref());
        let each = worlds.flat_map(|world| samples.iter().map(move |&s| (world, s)));
        weighted_mean(each.map(|(world, s)| Some((latency(world, s)?, world.rate(s)?))))
    }

    /// Whether no other VM has more commands at the device than the VM of a tenant, but for chance.
    pub(crate) fn has_most_slots(&self, tenant: &Tenant<'a>, samples: &[usize]) -> bool {
        let slots = |of: &Tenant<'a>| of.world.as_ref()?.mean(samples, Row::in_flight);
        let mut others = self.tenants.iter().filter(|other| other.vm != tenant.vm).map(slots);
        let has_no_more =
            |own: f64| others.all(|of| of.is_some_and(|other| own >= (1.0 - CHANCE) * other));
        slots(tenant).is_some_and(has_no_more)
    }

    /// Whether another VM has more shares on the device than the VM of a tenant: then that one waits longer, without any
    /// limit.
    pub(crate) fn has_richer(&self, tenant: &Tenant<'a>, samples: &[usize]) -> bool {
        let shares = |of: &Tenant<'a>| of.world.as_ref()?.shares(samples);
        let own = shares(tenant);
        own.is_some() && self.tenants.iter().any(|other| shares(other) > own)
    }

    /// Whether the array takes much longer for a tenant than for the other VMs, as it does for one that
    /// it holds to a rate, and for longer than its commands may cost beside theirs.
    pub(crate) fn is_held(&self, tenant: &Tenant<'a>, samples: &[usize]) -> bool {
        /// How much longer.
        const LONGER: f64 = 3.0;
        let Some(own) = &tenant.world else { return false };
        let others = self.tenants.iter().filter(|other| other.vm != tenant.vm);
        let quick = others.filter_map(|other| other.world.as_ref()).map(|other| {
            let ms = other.per_command(samples, Row::davg)?;
            Some((cost::most_beside(own, (other, ms), samples), other.mean_rate(samples)?))
        });
        let quick = weighted_mean(quick).filter(|ms| *ms > 0.0);
        own.per_command(samples, Row::davg)
            .zip(quick)
            .is_some_and(|(own, others)| own >= LONGER * others)
    }

    /// Commands at the array while there are any: where commands wait although the mean leaves
    /// slots free, they come in bursts that fill the queue.
    pub(crate) fn concurrency(&self, sample: usize) -> Option<f64> {
        let mean = self.row.in_flight(sample)?;
        if self.is_nfs {
            return Some(mean);
        }
        let is_bursty = self.is_bursty(sample)?;
        Some(if is_bursty { mean.max(self.depth(sample)?) } else { mean })
    }

    /// Whether commands wait in the VMkernel while the mean leaves slots free, or the load rests.
    fn is_bursty(&self, sample: usize) -> Option<bool> {
        /// Part of the time that is spent waiting.
        const WAITS: f64 = 0.1;
        /// Part of the slots that is in use on average.
        const FULL: f64 = 0.9;
        let (davg, gavg) = (self.row.davg(sample)?, self.row.gavg(sample)?);
        let mean = self.row.in_flight(sample)?;
        let waits = gavg - davg > WAITS * gavg && mean < FULL * self.depth(sample)?;
        Some(waits || self.resting.contains(&sample))
    }

    /// Whether ACTV, the state of single instants, is next to nothing more often than any queue is
    /// that has as many inside on average, or far above that: then they come in bursts, shorter than a
    /// sample.
    pub(crate) fn rests(&self, samples: &[usize]) -> bool {
        let both = |&sample: &usize| self.actv.at(sample).zip(self.row.in_flight(sample));
        is_unlike_a_queue(&samples.iter().filter_map(both).collect::<Vec<_>>())
    }

    /// Whether the instants of the samples show another load than there is between them: what is told of instants
    /// (ACTV, QUED, DQLEN) is not of the time between then, which Little's law tells.
    pub(crate) fn hides_load(&self, samples: &[usize]) -> bool {
        let both =
            |&s: &usize| Some((self.actv.at(s)? + self.qued.at(s)?, self.row.outstanding(s)?));
        let instants: Vec<(f64, f64)> = samples.iter().filter_map(both).collect();
        !self.is_nfs && is_in_step(&instants)
    }

    /// Whether its depth while VMs compete is in no sample, though they do: it is told of instants at which
    /// their load rests, and nobody competes [S1].
    pub(crate) fn hides_dsnro(&self, samples: &[usize]) -> bool {
        let waits = || {
            let of = |latency| self.row.per_command(samples, latency);
            Some(of(Row::qavg)? > NO_WAIT * of(Row::gavg)?)
        };
        // What stands at the default may be DSNRO.
        let is_seen = |depths: Depths| {
            depths.lowered.is_some() || depths.base <= DSNRO.default || depths.restless
        };
        !self.is_nfs
            && self.vms() > 1
            && (self.rests(samples) || self.hides_load(samples))
            && waits() == Some(true)
            && !self.depths(samples).is_none_or(is_seen)
    }

    /// Whether its depth may have been less between the samples than at each of them: its commands wait for slots of
    /// which it has free ones at every instant, and on average, and several VMs send, so that DSNRO may have held it
    /// while they competed [S1].
    pub(crate) fn may_be_lowered(&self, samples: &[usize]) -> bool {
        let is_full = |used: Option<f64>, s: usize| {
            used.zip(self.depth(s)).is_some_and(|(used, depth)| used >= FULL * depth)
        };
        let is_ever_full = samples
            .iter()
            .any(|&s| is_full(self.actv.at(s), s) || is_full(self.row.in_flight(s), s));
        let depths = self.depths(samples);
        let is_above = depths
            .is_some_and(|of| of.lowered.is_none() && !of.restless && of.base > DSNRO.default);
        let waits = self.row.per_command(samples, Row::qavg) > Some(ROUNDING_MS);
        !self.is_nfs && self.vms() > 1 && is_above && waits && !is_ever_full
    }

    /// Whether it is full at a depth of DSNRO's all the time, and no row tells whether several VMs compete: then that
    /// depth may be its own as well [S1].
    pub(crate) fn hides_who_competes(&self, samples: &[usize], dsnro: u32) -> bool {
        let [Tenant { disk: None, world: None, .. }] = self.tenants[..] else { return false };
        let is_dsnro = |depths: Depths| depths.base == dsnro && depths.lowered.is_none();
        !self.is_nfs && self.is_full(samples) && self.depths(samples).is_some_and(is_dsnro)
    }

    /// Whether that is so in most of these samples.
    pub(crate) fn is_mostly_bursty(&self, samples: &[usize]) -> bool {
        let bursty = samples.iter().map(|&s| self.is_bursty(s).map(|is| f64::from(u8::from(is))));
        mean(bursty) > Some(0.5)
    }

    /// Busy samples outside a window whose depth is another than the window's: the same load, if
    /// nothing else changed.
    pub(crate) fn regimes(&self, window: &[usize]) -> Vec<usize> {
        /// The least factor between two depths.
        const OTHER: f64 = 1.25;
        let Some(usual) = self.mean_depth(window) else { return Vec::new() };
        let is_other = |s: &usize| {
            self.depth(*s).is_some_and(|depth| depth.max(usual) >= OTHER * depth.min(usual))
        };
        self.beside(window).into_iter().filter(is_other).collect()
    }

    /// Busy samples outside a window.
    pub(crate) fn beside(&self, window: &[usize]) -> Vec<usize> {
        let all: Vec<usize> = (0..self.samples).filter(|s| !window.contains(s)).collect();
        self.busy(&all)
    }

    /// Of these samples those in which the same VMs send as in a window.
    pub(crate) fn alike(&self, samples: &[usize], window: &[usize]) -> Vec<usize> {
        let sends = |rate: Option<f64>| rate > Some(0.0);
        let is_alike = |s: &usize| {
            let mut rows = self.tenants.iter().map(|tenant| &tenant.row);
            rows.all(|row| sends(row.rate(*s)) == sends(row.mean_rate(window)))
        };
        samples.iter().copied().filter(is_alike).collect()
    }

    /// Samples at another depth than the window's, of a load that may be the same, that tell what the
    /// depth `asked` does: they are at it, or at a deeper one of which no more slots were in use. Their
    /// VMs send no less and have no more outstanding where the queue is deeper, as guests do
    /// that wait for their answers or send at a rate, and those that are missing send little.
    pub(crate) fn seen_at(&self, asked: f64, window: &[usize]) -> Vec<usize> {
        /// Part of the commands that may be of VMs that are missing.
        const MISSING: f64 = 0.2;
        /// Part of the slots asked for that may be in use on average for them not to be full.
        const FREE: f64 = 0.8;
        let Some(usual) = self.mean_depth(window) else { return Vec::new() };
        let is_deeper = asked > usual;
        let has_room = |s: usize| self.row.in_flight(s) <= Some(FREE * asked);
        let is_there = |&s: &usize| {
            let depth = self.depth(s);
            depth == Some(asked) || is_deeper && depth > Some(asked) && has_room(s)
        };
        let seen = inner(self.regimes(window).into_iter().filter(is_there).collect(), self.samples);
        let load = |samples: &[usize]| -> Option<[f64; 3]> {
            let there = self.tenants.iter().filter(|tenant| tenant.is_same(&seen, window));
            let all: Vec<(f64, f64)> = there.map(|t| t.row.load(samples)).collect::<Option<_>>()?;
            let (rate, stands) =
                all.iter().fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
            Some([rate, stands, self.row.mean(samples, Row::in_flight)?])
        };
        let (Some(now), Some(then)) = (load(window), load(&seen)) else { return Vec::new() };
        let [less, more] = if is_deeper { [now, then] } else { [then, now] };
        let is_most = Some(now[0]) >= self.row.mean_rate(window).map(|all| (1.0 - MISSING) * all);
        let is_same = more[0] >= (1.0 - CHANCE) * less[0]
            && more[1] <= (1.0 + CHANCE) * less[1]
            && more[2] >= (1.0 - CHANCE) * less[2];
        if is_most && is_same { seen } else { Vec::new() }
    }

    /// The depth between that of a window and the one that is `asked` for that is nearest to it, of those that
    /// were tried, and its samples.
    pub(crate) fn tried_towards(&self, asked: f64, window: &[usize]) -> Option<(f64, Vec<usize>)> {
        let usual = self.mean_depth(window)?;
        let is_between = |depth: &f64| (*depth - usual) * (asked - *depth) > 0.0;
        let depths = self.regimes(window).into_iter().filter_map(|s| self.depth(s));
        let mut depths: Vec<f64> = depths.filter(is_between).collect();
        sort_by(&mut depths, |a, b| (a - asked).abs().total_cmp(&(b - asked).abs()));
        depths.dedup();
        let tried = depths.into_iter().map(|depth| (depth, self.seen_at(depth, window)));
        tried
            .into_iter()
            .find(|(depth, seen)| !seen.is_empty() && self.is_beside(*depth, seen, window))
    }

    /// Whether commands wait at every instant of some samples, and no fewer are outstanding then than in a window.
    pub(crate) fn keeps_waiting(&self, samples: &[usize], window: &[usize]) -> bool {
        let [then, now] = [samples, window].map(|samples| self.row.mean(samples, Row::outstanding));
        samples.iter().all(|&s| self.qued.at(s) >= Some(1.0))
            && then >= now.map(|now| (1.0 - CHANCE) * now)
    }

    /// Whether samples at the depth `asked` stand right beside the window: a change of the depth, and
    /// no other load.
    pub(crate) fn is_beside(&self, asked: f64, seen: &[usize], window: &[usize]) -> bool {
        /// Samples between the two.
        const BETWEEN: usize = 3;
        let ends = || window.first().into_iter().chain(window.last());
        let is_beside = |&s: &usize| ends().any(|end| end.abs_diff(s) <= BETWEEN + 1);
        let is_at = |&s: &usize| self.depth(s) == Some(asked);
        let is_same = |tenant: &Tenant<'_>| tenant.is_same(seen, window);
        self.tenants.iter().all(is_same) && seen.iter().all(is_at) && seen.iter().any(is_beside)
    }

    /// How many VMs and system processes send to it.
    pub(crate) fn vms(&self) -> usize {
        let mut vms: Vec<&str> = self.tenants.iter().map(|tenant| tenant.vm.as_str()).collect();
        sort(&mut vms);
        vms.dedup();
        vms.len()
    }

    /// Whether its slots were next to all taken in most of these samples.
    pub(crate) fn is_full(&self, samples: &[usize]) -> bool {
        const FULL: f64 = 0.9;
        let used = |&s: &usize| Some(self.row.in_flight(s)? / self.depth(s)?);
        quantile(samples.iter().map(used), 0.4) >= Some(FULL)
    }
}
