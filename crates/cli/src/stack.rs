//! The queues of a window as figures: for each level of the stack its queues, and of each its
//! limit, its use, who waits for it and for how long.
//!
//! Means over a window come from the sampler where it has them; for paths, adapters and arrays
//! Little's law gives them: mean inside = rate x time inside [S0]. Picture, windows, comparison
//! and JSON all show these figures.

use std::collections::BTreeMap;

use counters::{Controller, Counter, DeviceKind, EntityId, Kind, Recording};
use model::Service;
use scenario::{Host, Scenario};
use serde::Serialize;
use sim::WindowView;

use crate::text::whole;

/// The levels of the stack, in the order in which an I/O meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LevelKind {
    /// Inside the guest, in front of the virtual disk.
    Guest,
    /// The virtual disk: what it lets out of the guest.
    VirtualDisk,
    /// The ring of a virtual adapter that several disks share.
    VirtualAdapter,
    /// The device queue.
    Device,
    /// Held by the VMkernel elsewhere: BUSY, a conflict, a retry.
    Held,
    /// Paths and host adapter.
    Adapter,
    /// The wire to the array.
    Fabric,
    /// The array.
    Array,
}

impl LevelKind {
    /// Its name for people.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::VirtualDisk => "virtual disk",
            Self::VirtualAdapter => "vSCSI adapter",
            Self::Device => "device queue",
            Self::Held => "held and retried",
            Self::Adapter => "paths and adapter",
            Self::Fabric => "fabric",
            Self::Array => "array",
        }
    }
}

/// One queue, or the sum of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Queue {
    /// Whose it is.
    pub(crate) name: String,
    /// The most I/Os that it lets through at a time; `None` where there is no limit.
    pub(crate) limit: Option<f64>,
    /// The mean number of I/Os that hold a place of it; `None` where nobody does.
    pub(crate) in_use: Option<f64>,
    /// The mean number of I/Os that wait for a place.
    pub(crate) waiting: f64,
    /// The mean time that an I/O spends here, in milliseconds.
    pub(crate) ms: f64,
    /// I/Os per second that passed.
    pub(crate) iops: f64,
}

/// A level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Level {
    /// Which.
    pub(crate) kind: LevelKind,
    /// Its queues, the busiest first.
    pub(crate) queues: Vec<Queue>,
    /// The mean time that an I/O spends on this level, in milliseconds, over all I/Os.
    pub(crate) ms: f64,
}

/// The whole stack over one window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Stack {
    /// The levels on which there is something, from the guest to the array.
    pub(crate) levels: Vec<Level>,
    /// The virtual disks; their time is all that the application in the guest sees.
    pub(crate) disks: Vec<Queue>,
    /// I/Os per second of all virtual disks.
    pub(crate) iops: f64,
    /// Mebibytes per second of all virtual disks.
    pub(crate) mib_per_s: f64,
    /// The mean time of an I/O as the application in the guest sees it, in milliseconds.
    pub(crate) total_ms: f64,
}

impl Queue {
    /// Whether hardly a place was ever free.
    pub(crate) fn is_full(&self) -> bool {
        /// Between the end of one I/O and the next a place may be free for a moment.
        const FULL: f64 = 0.98;
        self.share() >= FULL
    }

    /// Whether there is plenty of room and nobody waits.
    fn is_idle(&self) -> bool {
        /// Below this, a mean number of waiting I/Os is shown as 0.
        const NOBODY: f64 = 0.05;
        self.waiting < NOBODY && self.share() < 0.5 && self.limit.is_some() == self.in_use.is_some()
    }

    /// The share of the limit in use.
    pub(crate) fn share(&self) -> f64 {
        match (self.in_use, self.limit) {
            (Some(in_use), Some(limit)) if limit > 0.0 => in_use / limit,
            _ => 0.0,
        }
    }

    /// I/Os here, waiting or not.
    pub(crate) fn inside(&self) -> f64 {
        self.waiting + self.in_use.unwrap_or(0.0)
    }

    /// Several queues as one.
    pub(crate) fn sum(queues: &[Self], name: String) -> Self {
        let add = |value: fn(&Self) -> Option<f64>| queues.iter().map(value).sum::<Option<f64>>();
        Self {
            name,
            limit: add(|queue| queue.limit),
            in_use: add(|queue| queue.in_use),
            waiting: queues.iter().map(|queue| queue.waiting).sum(),
            ms: mean_ms(queues),
            iops: queues.iter().map(|queue| queue.iops).sum(),
        }
    }
}

/// The mean time over all I/Os that passed.
fn mean_ms(queues: &[Queue]) -> f64 {
    let iops: f64 = queues.iter().map(|queue| queue.iops).sum();
    let time: f64 = queues.iter().map(|queue| queue.iops * queue.ms).sum();
    if iops > 0.0 { time / iops } else { 0.0 }
}

/// Mean number inside by Little's law.
fn little(iops: f64, ms: f64) -> f64 {
    iops * ms / 1000.0
}

impl Level {
    fn new(kind: LevelKind, mut queues: Vec<Queue>) -> Self {
        let ms = mean_ms(&queues);
        queues.retain(|queue| queue.iops > 0.0 || queue.inside() > 0.0);
        queues.sort_by(|a, b| b.inside().total_cmp(&a.inside()));
        Self { kind, queues, ms }
    }

    /// At most `rows` queues: the busiest by name, and the rest as one. Where all have room and
    /// nobody waits, one stands for all.
    pub(crate) fn top(&self, rows: usize) -> Vec<Queue> {
        let named = match self.queues.len() {
            1 => 1,
            _ if self.queues.iter().all(Queue::is_idle) => 0,
            all if all <= rows => all,
            _ => rows.saturating_sub(1),
        };
        let (named, rest) = self.queues.split_at(named);
        let mut top = named.to_vec();
        if !rest.is_empty() {
            let all = rest.len() == self.queues.len();
            let what = if all { "in all" } else { "more" };
            top.push(Queue::sum(rest, format!("{} {what}", whole(rest.len() as f64))));
        }
        top
    }

    /// Mean I/Os waiting on this level.
    pub(crate) fn waiting(&self) -> f64 {
        self.queues.iter().map(|queue| queue.waiting).sum()
    }

    /// Mean I/Os that hold a place.
    pub(crate) fn in_use(&self) -> f64 {
        self.queues.iter().filter_map(|queue| queue.in_use).sum()
    }

    /// The sum of the limits.
    pub(crate) fn limit(&self) -> f64 {
        self.queues.iter().filter_map(|queue| queue.limit).sum()
    }
}

impl Stack {
    /// The stack of all hosts over one window; `views` has one view for each host.
    pub(crate) fn new(scenario: &Scenario, views: &[WindowView]) -> Self {
        let mut parts = Parts::default();
        for (host, view) in scenario.hosts.iter().zip(views) {
            let rows = Rows::new(scenario, host, view);
            rows.disks(&mut parts);
            rows.devices(&mut parts);
            rows.adapters(&mut parts);
        }
        let whole = |(guest, disk): (&Queue, &Queue)| Queue {
            name: guest.name.clone(),
            waiting: guest.waiting,
            ms: guest.ms + disk.ms,
            ..disk.clone()
        };
        let disks: Vec<_> = parts.guests.iter().zip(&parts.disks).map(whole).collect();
        let iops = disks.iter().map(|disk| disk.iops).sum();
        let (total_ms, mib_per_s) = (mean_ms(&disks), parts.mib_per_s);
        Self { levels: parts.levels(), disks, iops, mib_per_s, total_ms }
    }

    /// A level, when there is something on it.
    pub(crate) fn level(&self, kind: LevelKind) -> Option<&Level> {
        self.levels.iter().find(|level| level.kind == kind)
    }

    /// The time on a level, 0 where there is nothing.
    pub(crate) fn ms(&self, kind: LevelKind) -> f64 {
        self.level(kind).map_or(0.0, |level| level.ms)
    }

    /// The mean time of an I/O; without end where some are under way and none completes.
    pub(crate) fn longest_ms(&self) -> f64 {
        let inside = |level: &Level| level.waiting() + level.in_use() > 0.0;
        let stands = self.iops == 0.0 && self.levels.iter().any(inside);
        if stands { f64::INFINITY } else { self.total_ms }
    }

    /// KAVG: queueing, holding, paths.
    pub(crate) fn kernel_ms(&self) -> f64 {
        self.ms(LevelKind::Device) + self.ms(LevelKind::Held) + self.ms(LevelKind::Adapter)
    }

    /// DAVG.
    pub(crate) fn device_ms(&self) -> f64 {
        self.ms(LevelKind::Fabric) + self.ms(LevelKind::Array)
    }

    /// The level on which an I/O spends most of its time.
    pub(crate) fn longest(&self) -> Option<LevelKind> {
        self.levels.iter().max_by(|a, b| a.ms.total_cmp(&b.ms)).map(|level| level.kind)
    }
}

/// A level on which no time passes is left out where it has no limit either.
const LASTING_MS: f64 = 0.0005;

/// The queues of all hosts under construction.
#[derive(Default)]
struct Parts {
    guests: Vec<Queue>,
    /// Of these, `ms` is GAVG.
    disks: Vec<Queue>,
    rings: Vec<Queue>,
    devices: Vec<Queue>,
    held: Vec<Queue>,
    adapters: Vec<Queue>,
    /// By array: what each device of a host has there.
    fabrics: BTreeMap<usize, Vec<Queue>>,
    arrays: BTreeMap<usize, Vec<Queue>>,
    mib_per_s: f64,
}

impl Parts {
    fn levels(self) -> Vec<Level> {
        let places = |queues: Vec<Queue>| {
            queues.into_iter().map(|queue| Queue { ms: 0.0, ..queue }).collect::<Vec<_>>()
        };
        let lasting = |mut queues: Vec<Queue>| {
            queues.retain(|queue| queue.ms >= LASTING_MS);
            queues
        };
        let levels = [
            (LevelKind::Guest, self.guests),
            (LevelKind::VirtualDisk, places(self.disks)),
            (LevelKind::VirtualAdapter, self.rings),
            (LevelKind::Device, self.devices),
            (LevelKind::Held, lasting(self.held)),
            (LevelKind::Adapter, self.adapters),
            (LevelKind::Fabric, lasting(shared(self.fabrics))),
            (LevelKind::Array, shared(self.arrays)),
        ];
        let levels = levels.into_iter().map(|(kind, queues)| Level::new(kind, queues));
        levels.filter(|level| !level.queues.is_empty()).collect()
    }
}

/// Of each array one queue: what all devices have there, under the one limit of the array.
fn shared(arrays: BTreeMap<usize, Vec<Queue>>) -> Vec<Queue> {
    arrays.into_values().map(|parts| one_limit(&parts)).collect()
}

/// Users of one limit as one queue.
fn one_limit(users: &[Queue]) -> Queue {
    let first = users.first().cloned().unwrap_or_default();
    Queue { limit: first.limit, ..Queue::sum(users, first.name) }
}

/// One host over one window, ready to be looked up.
struct Rows<'a> {
    scenario: &'a Scenario,
    host: &'a Host,
    view: &'a WindowView,
    recording: &'a Recording,
    ids: BTreeMap<(Kind, &'a str), EntityId>,
    /// In front of names when there are several hosts.
    prefix: String,
}

impl<'a> Rows<'a> {
    fn new(scenario: &'a Scenario, host: &'a Host, view: &'a WindowView) -> Self {
        let recording = &view.recording;
        let named = |(id, entity): (u32, &'a counters::Entity)| {
            ((entity.kind, entity.name.as_str()), EntityId(id))
        };
        let ids = (0..).zip(recording.entities()).map(named).collect();
        let several = scenario.hosts.len() > 1;
        let prefix = if several { format!("{} ", host.config.name) } else { String::new() };
        Self { scenario, host, view, recording, ids, prefix }
    }

    fn id(&self, kind: Kind, name: &str) -> Option<EntityId> {
        self.ids.get(&(kind, name)).copied()
    }

    fn value(&self, id: EntityId, counter: Counter) -> f64 {
        self.recording.value(id, counter, 0).unwrap_or(0.0)
    }

    /// Guests, their virtual disks, and adapters that several disks share.
    fn disks(&self, parts: &mut Parts) {
        let config = &self.host.config;
        let mut rings: BTreeMap<usize, Vec<Queue>> = BTreeMap::new();
        for (index, disk) in config.vdisks.iter().enumerate() {
            let vm = &config.vms[disk.vm.index()].name;
            let Some(id) = self.id(Kind::VirtualDisk, &format!("{vm}:{}", disk.name)) else {
                continue;
            };
            let (depth, ring) = self.view.limits.vdisks[index];
            let iops = self.value(id, Counter::Commands);
            let guest_ms = self.value(id, Counter::GuestWait);
            let gavg = self.value(id, Counter::TotalLatency) - guest_ms;
            let in_use = Some(little(iops, gavg));
            let controller = controller(config.vscsi[disk.vscsi.index()].controller);
            let name = format!("{vm} {}", disk.name);
            let waiting = self.value(id, Counter::MeanGuestQueued);
            parts.guests.push(Queue {
                name: name.clone(),
                limit: None,
                in_use: None,
                waiting,
                ms: guest_ms,
                iops,
            });
            let place = Queue {
                name: format!("{name} {controller}"),
                limit: Some(f64::from(depth)),
                in_use,
                waiting: 0.0,
                ms: gavg,
                iops,
            };
            let bus = disk.name.split(':').next().unwrap_or_default();
            let of_ring =
                Queue { name: format!("{vm} {bus} {controller}"), ms: 0.0, ..place.clone() };
            rings
                .entry(disk.vscsi.index())
                .or_default()
                .push(Queue { limit: Some(f64::from(ring)), ..of_ring });
            parts.disks.push(place);
            parts.mib_per_s += self.value(id, Counter::MbRead) + self.value(id, Counter::MbWritten);
        }
        for disks in rings.into_values().filter(|disks| disks.len() > 1) {
            parts.rings.push(one_limit(&disks));
        }
    }

    /// Device queues, and what is below them: the fabric and the array.
    fn devices(&self, parts: &mut Parts) {
        let config = &self.host.config;
        let mut gates = self.gate_times();
        for (index, device) in config.devices.iter().enumerate() {
            let datastores = self.host.datastores.get(index).map(|names| names.join(", "));
            let datastores = datastores.filter(|names| !names.is_empty());
            let label = datastores.map_or(String::new(), |names| format!("{names} "));
            let name = format!("{}{label}{}", self.prefix, device.name);
            if device.kind == DeviceKind::Nfs {
                let Some(id) = self.id(Kind::NfsVolume, &device.name) else { continue };
                let gavg = self.value(id, Counter::GuestLatency);
                let iops = self.value(id, Counter::Commands);
                self.below(parts, index, iops, (gavg, gavg));
                continue;
            }
            let Some(id) = self.id(Kind::Device, &device.name) else { continue };
            let iops = self.value(id, Counter::Commands);
            let (kavg, qavg) =
                (self.value(id, Counter::KernelLatency), self.value(id, Counter::QueueLatency));
            let gate = gates.remove(&id).unwrap_or(0.0);
            let limits = &self.view.limits.devices[index];
            let mut queue = Queue {
                name: name.clone(),
                limit: Some(f64::from(limits.dqlen)),
                in_use: Some(self.value(id, Counter::MeanActive)),
                waiting: self.value(id, Counter::MeanQueued),
                ms: (qavg - gate).max(0.0),
                iops,
            };
            if !queue.is_full() && self.has_iops_limit(index) {
                queue.name.push_str(" (IOPS limit)");
            } else if limits.is_competing && limits.dqlen < limits.max_queue_depth {
                queue.name.push_str(" (DSNRO)");
            }
            parts.devices.push(queue);
            let held = (kavg - qavg).max(0.0);
            let waiting = little(iops, held);
            parts.held.push(Queue { name, waiting, ms: held, iops, ..Queue::default() });
            let davg = self.value(id, Counter::DriverLatency);
            self.below(parts, index, iops, (davg, self.value(id, Counter::ArrayLatency)));
        }
    }

    /// Whether a disk on a device may have so many I/Os a second and no more: its I/Os wait here
    /// although slots are free.
    fn has_iops_limit(&self, device: usize) -> bool {
        let mut disks = self.host.config.vdisks.iter();
        disks.any(|disk| disk.device.index() == device && disk.allocation.limit_iops.is_some())
    }

    /// Mean wait at the paths of each device.
    fn gate_times(&self) -> BTreeMap<EntityId, f64> {
        let mut queues: BTreeMap<EntityId, Vec<Queue>> = BTreeMap::new();
        for (id, path) in self.recording.of_kind(Kind::Path) {
            let ms = self.value(id, Counter::QueueLatency);
            let iops = self.value(id, Counter::Commands);
            if let Some(device) = path.device {
                queues.entry(device).or_default().push(Queue { ms, iops, ..Queue::default() });
            }
        }
        queues.into_iter().map(|(device, paths)| (device, mean_ms(&paths))).collect()
    }

    /// Adds a device's time below the host to its array: all of it, and what the array reports.
    fn below(&self, parts: &mut Parts, device: usize, iops: f64, (davg, array_ms): (f64, f64)) {
        let vdisks = &self.host.config.vdisks;
        let on_device = vdisks.iter().position(|disk| disk.device.index() == device);
        let Some(target) = on_device.and_then(|disk| self.host.targets.get(disk)) else { return };
        let array = &self.scenario.arrays[target.array];
        let name = match &array.config.service {
            Service::Servers { servers, .. } => format!("{}, {servers} servers", array.name),
            Service::Spindles { spindles, .. } => format!("{}, {spindles} spindles", array.name),
            Service::Curve(_) => format!("{}, measured curve", array.name),
        };
        let limit = array.config.queue_limit.map(f64::from);
        let queue = |ms| Queue {
            name: name.clone(),
            limit: None,
            in_use: Some(little(iops, ms)),
            waiting: 0.0,
            ms,
            iops,
        };
        let fabric = queue((davg - array_ms).max(0.0));
        parts.fabrics.entry(target.array).or_default().push(fabric);
        let inside = Queue { limit, ..queue(array_ms) };
        parts.arrays.entry(target.array).or_default().push(inside);
    }

    fn adapters(&self, parts: &mut Parts) {
        let limits = &self.view.counters.adapters;
        for (adapter, gate) in self.host.config.adapters.iter().zip(limits) {
            let Some(id) = self.id(Kind::Adapter, &adapter.name) else { continue };
            let iops = self.value(id, Counter::Commands);
            let ms = self.value(id, Counter::QueueLatency);
            parts.adapters.push(Queue {
                name: format!("{}{} {}", self.prefix, adapter.name, adapter.driver.module),
                limit: Some(f64::from(gate.depth)),
                in_use: Some(little(iops, self.value(id, Counter::DriverLatency))),
                waiting: little(iops, ms),
                ms,
                iops,
            });
        }
    }
}

/// The name of a virtual adapter's type, as vSphere shows it.
pub(crate) const fn controller(controller: Controller) -> &'static str {
    match controller {
        Controller::Pvscsi => "PVSCSI",
        Controller::LsiSas => "LSI SAS",
        Controller::LsiParallel => "LSI Parallel",
        Controller::BusLogic => "BusLogic",
        Controller::Ahci => "AHCI",
        Controller::Nvme => "NVMe",
        Controller::Ide => "IDE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, limit: f64, in_use: f64, waiting: f64) -> Queue {
        let (limit, in_use) = (Some(limit), Some(in_use));
        Queue { name: name.into(), limit, in_use, waiting, ms: 1.0, iops: 1.0 }
    }

    fn top(queues: Vec<Queue>, rows: usize) -> Vec<(String, f64)> {
        let top = Level::new(LevelKind::Device, queues).top(rows);
        top.into_iter().map(|queue| (queue.name.clone(), queue.inside())).collect()
    }

    #[test]
    fn the_busiest_are_named_and_the_rest_are_summed() {
        let queues = || {
            vec![
                queue("a", 32.0, 1.0, 0.0),
                queue("b", 32.0, 32.0, 5.0),
                queue("c", 32.0, 9.0, 0.0),
            ]
        };
        assert_eq!(top(queues(), 3).len(), 3);
        assert_eq!(top(queues(), 2), [("b".into(), 37.0), ("2 more".into(), 10.0)]);
        assert_eq!(top(queues(), 1), [("3 in all".into(), 47.0)]);
    }

    #[test]
    fn one_stands_for_all_where_there_is_room() {
        let queues = vec![queue("a", 32.0, 1.0, 0.0), queue("b", 32.0, 2.0, 0.0)];
        assert_eq!(top(queues, 5), [("2 in all".into(), 3.0)]);
        assert_eq!(top(vec![queue("a", 32.0, 1.0, 0.0)], 5), [("a".into(), 1.0)]);
    }

    #[test]
    fn sums_weigh_times_by_rates() {
        let slow = Queue { iops: 1.0, ms: 10.0, ..Queue::default() };
        let fast = Queue { iops: 9.0, ms: 0.0, ..Queue::default() };
        assert_eq!(Queue::sum(&[slow, fast], String::new()).ms, 1.0);
        assert_eq!(Queue::sum(&[], String::new()).ms, 0.0);
    }
}
