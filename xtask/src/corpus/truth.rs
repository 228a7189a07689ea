//! What was wrong in a simulated run, told from inside the simulation: integrals of what stood in
//! each queue, the limits in force, what the array held back. Nothing of it is in the capture.
//!
//! A condition that is met by far is sure. One that is met barely, or that barely fails, is
//! borderline: whoever names it is not wrong, and whoever does not is not either.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use counters::{Counter, DeviceKind, EntityId, IoTotals, Kind, Recording, Time};
use diagnose::Cause;
use model::Service;
use scenario::{Action, Host, Scenario};
use sim::{Outcome, WindowView};

use super::published::{
    ABORTS_PER_S, CONFLICTS_PER_S, DAVG_MS, DISC_MS, DRILL_WARNS, KAVG_MS, Published, QAVG_MS,
    QOS_MS, SPLIT, TRANSFER_MIB_S, WAIT_PART,
};
use super::score::{Sure, Truth};

/// How much a condition must exceed its threshold to be sure; as much below, and it is not met.
const BY_FAR: f64 = 1.5;
/// Mean use of a queue from which it is surely full, and below which it surely is not.
const FULL: [f64; 2] = [0.85, 0.5];
/// The same of a virtual disk. With places free, what waits in front of it waits for its own
/// application, which the wait of the guest counts too.
const AT_DEPTH: [f64; 2] = [0.97, 0.85];
/// Wait for slots that others hold, in multiples of a VM's own service: a victim is who waits longer
/// than it is served, as in the captures that nothing of ours made; in [S4] it was 300 times longer.
const UNFAIR: f64 = 1.0;
/// Samples that a fault must last to be sure.
const LASTING: f64 = 3.0;
/// Commands that a path must have carried to be missed.
const CARRIED: f64 = 6_000.0;

/// What was wrong, and whether it surely was: by cause and place.
type Noted = BTreeMap<(Cause, String), bool>;

/// A run, looked at from inside.
struct Inside<'a> {
    scenario: &'a Scenario,
    host: &'a Host,
    recording: &'a Recording,
    whole: &'a WindowView,
    samples: usize,
    truth: Noted,
}

/// What was wrong on the host of index `host`.
pub(crate) fn truth(scenario: &Scenario, outcome: &Outcome, host: usize) -> Vec<Truth> {
    let recording = &outcome.recordings[host];
    let mut inside = Inside {
        scenario,
        host: &scenario.hosts[host],
        recording,
        whole: &outcome.windows[0][host],
        samples: recording.len(),
        truth: Noted::new(),
    };
    for device in 0..inside.host.config.devices.len() {
        inside.judge_device(device);
    }
    inside.judge_adapters();
    inside.judge_disks();
    inside.judge_virtual_adapters();
    inside.judge_paths(host);
    stated(&inside.truth, 0..inside.samples)
}

/// As the score takes it. Where DSNRO and the driver's depth are one number, either name is right.
fn stated(noted: &Noted, rows: Range<usize>) -> Vec<Truth> {
    let truth = |((cause, at), sure): (&(Cause, String), &bool)| {
        let other = (Cause::DeviceDepth, at.clone());
        let either = *cause == Cause::Dsnro && noted.contains_key(&other);
        let other = either.then_some(other.0.key());
        Truth {
            causes: std::iter::once(cause.key()).chain(other).collect(),
            places: vec![at.clone()],
            rows: rows.clone(),
            severity: "told from inside the simulation".to_owned(),
            sure: if *sure { Sure::Certain } else { Sure::May },
        }
    };
    noted.iter().map(truth).collect()
}

/// Sure, borderline or not at all, from how often the threshold is reached in each sample.
fn lasting(ratios: &[f64]) -> Option<bool> {
    let two = |least: f64| ratios.windows(2).any(|pair| pair.iter().all(|ratio| *ratio >= least));
    if two(BY_FAR) { Some(true) } else { two(1.0 / BY_FAR).then_some(false) }
}

/// A share that must reach a threshold: far above, near it, or below.
fn share(value: f64, [sure, least]: [f64; 2]) -> f64 {
    if value >= sure {
        f64::INFINITY
    } else if value >= least {
        1.0
    } else {
        0.0
    }
}

impl Inside<'_> {
    fn at(&self, entity: EntityId, counter: Counter, sample: usize) -> f64 {
        self.recording.value(entity, counter, sample).unwrap_or(0.0)
    }

    fn ratios(&self, ratio: impl Fn(usize) -> f64) -> Option<bool> {
        lasting(&(0..self.samples).map(ratio).collect::<Vec<_>>())
    }

    fn note(&mut self, cause: Cause, at: &str, met: Option<bool>) {
        if let Some(sure) = met {
            let known = self.truth.entry((cause, at.to_owned())).or_insert(sure);
            *known |= sure;
        }
    }

    fn seconds(&self) -> f64 {
        self.scenario.duration_ns as f64 / 1e9
    }

    fn interval_s(&self) -> f64 {
        self.scenario.sample_ns as f64 / 1e9
    }

    /// Milliseconds that a command takes when nobody else is there, at the array of a disk.
    fn unloaded_ms(&self, vdisk: usize) -> f64 {
        let array = &self.scenario.arrays[self.host.targets[vdisk].array].config;
        let service_ns = match &array.service {
            Service::Servers { mean_ns, .. } | Service::Spindles { mean_ns, .. } => *mean_ns,
            Service::Disks(disks) => disks.turn_ns / 2 + disks.seek_ns,
            Service::Curve(points, ..) => points[0].1,
        };
        (service_ns + array.front.overhead_ns + array.round_trip_ns) as f64 / 1e6
    }

    fn disks_on(&self, device: usize) -> impl Iterator<Item = usize> {
        let disks = self.host.config.vdisks.iter().enumerate();
        disks.filter(move |(_, disk)| disk.device.index() == device).map(|(index, _)| index)
    }

    /// What counts for a device, by what its array takes when it is idle.
    fn limit(&self, device: usize, published: Published) -> f64 {
        let unloaded = self.disks_on(device).map(|disk| self.unloaded_ms(disk)).fold(0.0, f64::max);
        if unloaded < DISC_MS { published.flash } else { published.discs }
    }

    /// The threshold that surely counts: flash that is loaded from the first sample to the last
    /// never shows that it is flash.
    fn shown_limit(&self, device: usize, entity: EntityId, published: Published) -> f64 {
        let davg = (0..self.samples).map(|s| self.at(entity, Counter::DriverLatency, s));
        let quickest = davg.filter(|davg| *davg > 0.0).fold(f64::INFINITY, f64::min);
        if quickest < DISC_MS { self.limit(device, published) } else { published.discs }
    }

    /// DAVG that is surely slow, and what the size of the commands may cost.
    fn surely_slow_ms(&self, device: usize, entity: EntityId, sample: usize) -> f64 {
        let limit = self.shown_limit(device, entity, DAVG_MS);
        let steps = if limit < DAVG_MS.discs { DRILL_WARNS } else { 1.0 };
        let at = |counter| self.at(entity, counter, sample);
        let mib = at(Counter::MbRead) + at(Counter::MbWritten);
        let seconds = mib / at(Counter::Commands).max(1.0) / TRANSFER_MIB_S;
        steps * limit + 1000.0 * seconds
    }

    fn totals(&self, vdisk: usize) -> IoTotals {
        let mut totals = IoTotals::default();
        self.whole.counters.vdisks[vdisk].io.iter().for_each(|io| totals.add(io));
        totals
    }

    fn judge_device(&mut self, device: usize) {
        let config = &self.host.config.devices[device];
        if config.kind == DeviceKind::Nfs {
            return;
        }
        let name = config.name.clone();
        let Some(entity) = self.recording.find(Kind::Device, &name) else { return };
        let throttled = self.throttled(device, entity);
        self.note(Cause::AdaptiveThrottling, &name, throttled);
        let full = self.judge_queue(device, entity, &name, throttled.is_some());
        self.judge_neighbours(device, &name, full);
        let conflicts = self.limit(device, CONFLICTS_PER_S);
        let conflicts = self.ratios(|s| self.at(entity, Counter::Conflicts, s) / conflicts);
        self.note(Cause::ReservationConflicts, &name, conflicts);
        let qos = self.held_back(device);
        self.note(Cause::ArrayQos, &name, qos);
        let slow = self.slow(device, entity);
        let slow = if qos == Some(true) { None } else { slow.map(|sure| sure && qos.is_none()) };
        self.note(Cause::ArraySlow, &name, slow);
        let aborts = self.aborted(entity, self.limit(device, ABORTS_PER_S));
        self.note(Cause::Aborts, &name, aborts);
    }

    /// Whether the array answered TASK SET FULL and the host lowered the depth.
    fn throttled(&self, device: usize, entity: EntityId) -> Option<bool> {
        const LOW: f64 = 0.75;
        if self.whole.counters.devices[device].queue_full == 0 {
            return None;
        }
        let base = f64::from(self.whole.limits.devices[device].max_queue_depth);
        let depth = |sample| self.at(entity, Counter::DeviceQDepth, sample) / base;
        let low = self.ratios(|sample| share(1.0 - depth(sample), [1.0 - LOW, f64::MIN_POSITIVE]));
        let depths: BTreeSet<u64> = (0..self.samples).map(|s| depth(s).to_bits()).collect();
        let moves = depths.len() > 2;
        low.map(|sure| sure && moves)
            .or((depths != BTreeSet::from([1.0_f64.to_bits()])).then_some(false))
    }

    /// Whether the device queue was full, and by which limit.
    fn judge_queue(
        &mut self,
        device: usize,
        entity: EntityId,
        name: &str,
        throttled: bool,
    ) -> Option<bool> {
        let limits = self.whole.limits.devices[device];
        let competed = self.whole.counters.devices[device].engagements > 0;
        let limits_ms = [self.shown_limit(device, entity, KAVG_MS), self.limit(device, KAVG_MS)];
        let waits = |sample: usize, least_ms: f64| {
            let rate = self.at(entity, Counter::Commands, sample).max(f64::MIN_POSITIVE);
            let waiting = self.at(entity, Counter::MeanQueued, sample);
            let counts = least_ms.min(WAIT_PART * self.at(entity, Counter::DriverLatency, sample));
            waiting.min(waiting * 1000.0 / rate / counts.max(f64::MIN_POSITIVE))
        };
        let ratio = |sample: usize, least_ms: f64| {
            let depth = self.at(entity, Counter::DeviceQDepth, sample).max(1.0);
            let used = self.at(entity, Counter::MeanActive, sample) / depth;
            share(used, FULL).min(waits(sample, least_ms))
        };
        let is_dsnro = |sample: usize| {
            competed && self.at(entity, Counter::DeviceQDepth, sample) as u32 == limits.dsnro
        };
        let met = |counts: &dyn Fn(usize) -> bool| {
            let [shown, hidden] = limits_ms.map(|least_ms| {
                let ratio = |s: usize| if counts(s) { ratio(s, least_ms) } else { 0.0 };
                self.ratios(ratio)
            });
            shown.or(hidden.map(|_| false))
        };
        let by = |dsnro: bool| met(&|sample| is_dsnro(sample) == dsnro);
        // DQLEN at the instants of the samples does not tell what was between them.
        let between = || self.ratios(|s| if competed { waits(s, limits_ms[0]) } else { 0.0 });
        let unless_throttled = |met: Option<bool>| met.map(|sure| sure && !throttled);
        let (by_dsnro, by_driver) = (
            unless_throttled(by(true).or_else(|| between().map(|_| false))),
            unless_throttled(by(false)),
        );
        // Where both limits are the same number, raising one alone changes nothing: either name
        // is right then.
        let vms: BTreeSet<_> =
            self.disks_on(device).map(|disk| self.host.config.vdisks[disk].vm.index()).collect();
        let both = limits.dsnro == limits.max_queue_depth && vms.len() > 1;
        let (by_dsnro, by_driver) = if both {
            (by_dsnro.or(by_driver), by_dsnro.or(by_driver).map(|_| false))
        } else {
            (by_dsnro, by_driver)
        };
        let full = met(&|_| true);
        self.note(Cause::Dsnro, name, by_dsnro);
        self.note(Cause::DeviceDepth, name, by_driver);
        full
    }

    /// Whether one VM held the slots while another, which asked for next to none, waited.
    fn judge_neighbours(&mut self, device: usize, name: &str, full: Option<bool>) {
        let mut vms: BTreeMap<usize, IoTotals> = BTreeMap::new();
        for disk in self.disks_on(device) {
            let totals = self.totals(disk);
            vms.entry(self.host.config.vdisks[disk].vm.index()).or_default().add(&totals);
        }
        let slots: u64 = vms.values().map(|vm| vm.device_ns).sum();
        let part = |vm: &IoTotals| vm.device_ns as f64 / slots.max(1) as f64;
        let held = vms.values().map(part).fold(0.0, f64::max);
        let least_ns = 1e6 * self.limit(device, KAVG_MS);
        let suffers = |vm: &IoTotals| {
            let unfair = vm.queue_ns as f64 / vm.device_ns.max(1) as f64 / UNFAIR;
            let wait_ns = vm.queue_ns as f64 / vm.commands.max(1) as f64;
            share(1.0 - part(vm), [0.85, 0.75]).min(unfair).min(wait_ns / least_ns)
        };
        let worst = vms.values().map(suffers).fold(0.0, f64::max).min(share(held, [0.65, 0.5]));
        let met = lasting(&[worst; 2]).and_then(|sure| full.map(|full| full && sure));
        self.note(Cause::NoisyNeighbour, name, met);
    }

    /// Whether the array delayed I/Os by a policy: what it took beyond its service.
    fn held_back(&self, device: usize) -> Option<bool> {
        const HELD: f64 = 2.0;
        const CONTRAST: f64 = 4.0;
        let least_ms = self.limit(device, QOS_MS);
        let of_disk = |disk: usize| {
            let target = self.host.targets[disk];
            let array = &self.scenario.arrays[target.array].config;
            array.volumes[target.volume as usize].qos.as_ref()?;
            let totals = self.totals(disk);
            let commands = totals.commands.max(1) as f64;
            let delay_ms = totals.device_ns as f64 / 1e6 / commands - 2.0 * self.unloaded_ms(disk);
            let delayed = delay_ms * commands / self.seconds() / 1000.0;
            let contrast = delay_ms / self.unloaded_ms(disk) / CONTRAST;
            lasting(&[(delayed / HELD).min(delay_ms / least_ms).min(contrast); 2])
        };
        self.disks_on(device).filter_map(of_disk).reduce(|a, b| a || b)
    }

    fn slow(&self, device: usize, entity: EntityId) -> Option<bool> {
        let slow = |limit: &dyn Fn(usize) -> f64| {
            self.ratios(|sample| {
                let davg = self.at(entity, Counter::DriverLatency, sample);
                let in_flight = self.at(entity, Counter::Commands, sample) * davg / 1000.0;
                (davg / limit(sample)).min(in_flight)
            })
        };
        let shown = slow(&|sample| self.surely_slow_ms(device, entity, sample));
        let limit = self.limit(device, DAVG_MS);
        shown.or(slow(&|_| limit).map(|_| false))
    }

    fn aborted(&self, entity: EntityId, limit: f64) -> Option<bool> {
        let most = (0..self.samples).map(|s| self.at(entity, Counter::Aborts, s) / limit);
        lasting(&[most.fold(0.0, f64::max); 2])
    }

    fn judge_adapters(&mut self) {
        for adapter in 0..self.host.config.adapters.len() {
            let name = self.host.config.adapters[adapter].name.clone();
            let Some(entity) = self.recording.find(Kind::Adapter, &name) else { continue };
            let devices = self.host.config.paths.iter();
            let devices = devices.filter(|path| path.adapter.index() == adapter);
            let devices: Vec<usize> = devices.map(|path| path.device.index()).collect();
            let least = |published| {
                devices.iter().map(|d| self.limit(*d, published)).fold(f64::INFINITY, f64::min)
            };
            let wait_ms = least(QAVG_MS);
            let shown = |device: &usize| {
                let name = &self.host.config.devices[*device].name;
                let entity = self.recording.find(Kind::Device, name)?;
                Some(self.shown_limit(*device, entity, DAVG_MS))
            };
            let slow_ms = devices.iter().filter_map(shown).fold(f64::INFINITY, f64::min);
            let full = self.ratios(|sample| {
                let wait = self.at(entity, Counter::QueueLatency, sample);
                let rate = self.at(entity, Counter::Commands, sample);
                (wait / wait_ms).min(rate * wait / 1000.0)
            });
            let split = self.ratios(|sample| {
                let rate = self.at(entity, Counter::Commands, sample).max(f64::MIN_POSITIVE);
                let part = self.at(entity, Counter::SplitCommands, sample) / rate;
                let slow = self.at(entity, Counter::GuestLatency, sample) / slow_ms;
                share(part, SPLIT).min(slow)
            });
            self.note(Cause::AdapterQueue, &name, full);
            self.note(Cause::Splitting, &name, split);
        }
    }

    fn disk_name(&self, disk: usize) -> String {
        let config = &self.host.config.vdisks[disk];
        format!("{}:{}", self.host.config.vms[config.vm.index()].name, config.name)
    }

    /// Mean commands that a disk has outstanding.
    fn outstanding(&self, disk: EntityId, sample: usize) -> f64 {
        let of = |rate, latency| self.at(disk, rate, sample) * self.at(disk, latency, sample);
        let reads = of(Counter::Reads, Counter::VdiskReadLatency);
        (reads + of(Counter::Writes, Counter::VdiskWriteLatency)) / 1000.0
    }

    /// Disks at their depth or at a limit of the host.
    fn judge_disks(&mut self) {
        for disk in 0..self.host.config.vdisks.len() {
            let name = self.disk_name(disk);
            let Some(entity) = self.recording.find(Kind::VirtualDisk, &name) else { continue };
            let depth = f64::from(self.whole.limits.vdisks[disk].0);
            let capped = self.ratios(|sample| {
                let used = self.outstanding(entity, sample) / depth;
                share(used, AT_DEPTH).min(self.at(entity, Counter::MeanGuestQueued, sample))
            });
            self.note(Cause::VirtualDiskCap, &name, capped);
            let config = &self.host.config.vdisks[disk];
            let device = config.device.index();
            let (totals, limited) = (self.totals(disk), config.allocation.limit_iops.is_some());
            let waiting = totals.queue_ns as f64 / 1e9 / self.seconds();
            let wait_ms = totals.queue_ns as f64 / 1e6 / totals.commands.max(1) as f64;
            let part = totals.queue_ns as f64 / totals.device_ns.max(1) as f64 / WAIT_PART;
            let ratio = waiting.min(part).min(wait_ms / self.limit(device, KAVG_MS));
            let met = if limited { lasting(&[ratio; 2]) } else { None };
            self.note(Cause::IopsLimit, &name, met);
        }
    }

    /// Virtual adapters whose disks are together at the depth of it.
    fn judge_virtual_adapters(&mut self) {
        for adapter in 0..self.host.config.vscsi.len() {
            let disks = self.host.config.vdisks.iter().enumerate();
            let disks: Vec<usize> =
                disks.filter(|(_, d)| d.vscsi.index() == adapter).map(|(index, _)| index).collect();
            let entities: Vec<EntityId> = disks
                .iter()
                .filter_map(|disk| self.recording.find(Kind::VirtualDisk, &self.disk_name(*disk)))
                .collect();
            let Some(&first) = disks.first() else { continue };
            let depth = f64::from(self.whole.limits.vdisks[first].1);
            let capped = self.ratios(|sample| {
                let inside: f64 = entities.iter().map(|d| self.outstanding(*d, sample)).sum();
                let waiting: f64 =
                    entities.iter().map(|d| self.at(*d, Counter::MeanGuestQueued, sample)).sum();
                share(inside / depth, FULL).min(waiting)
            });
            let name = self.disk_name(first);
            let name = name.rsplit_once(':').map_or(name.as_str(), |(adapter, _)| adapter);
            if disks.len() > 1 {
                self.note(Cause::VirtualAdapterCap, name, capped);
            }
        }
    }

    /// When a path was down.
    fn down(&self, host: usize, path: usize) -> Option<(Time, Time)> {
        let events = self.scenario.events.iter().filter(|event| event.host == host);
        let turns = events.filter_map(|event| match event.action {
            Action::Path { path: turned, up, .. } if turned.index() == path => Some((event.at, up)),
            _ => None,
        });
        let turns: Vec<_> = turns.collect();
        let from = turns.iter().find(|(_, up)| !up)?.0;
        let back = turns.iter().find(|(at, up)| *up && *at > from);
        Some((from, back.map_or(Time(self.scenario.duration_ns), |(at, _)| *at)))
    }

    /// Paths that went down under load: one of several, or all of them.
    fn judge_paths(&mut self, host: usize) {
        for path in 0..self.host.config.paths.len() {
            let Some((from, to)) = self.down(host, path) else { continue };
            let config = &self.host.config.paths[path];
            let peers = self.host.config.paths.iter().enumerate();
            let mut peers = peers.filter(|(_, peer)| peer.device == config.device);
            let alone = peers.all(|(peer, _)| self.down(host, peer).is_some());
            let device = self.host.config.devices[config.device.index()].name.clone();
            let lasts = (to - from) as f64 / self.scenario.sample_ns as f64 / LASTING;
            let (cause, at, of) = if alone {
                (
                    Cause::Silence,
                    device,
                    self.recording
                        .find(Kind::Device, &self.host.config.devices[config.device.index()].name),
                )
            } else {
                (
                    Cause::PathDown,
                    config.name.clone(),
                    self.recording.find(Kind::Path, &config.name),
                )
            };
            let first = (from.0 / self.scenario.sample_ns) as usize;
            let carried: f64 = of.map_or(0.0, |entity| {
                (0..first).map(|s| self.at(entity, Counter::Commands, s)).sum::<f64>()
                    * self.interval_s()
            });
            let met = lasting(&[(BY_FAR * lasts).min(carried / CARRIED); 2]);
            self.note(cause, &at, met.or((carried > 0.0).then_some(false)));
        }
    }
}
