//! The stack of a run over a window: the levels of all hosts, with the limits that the scenario
//! knows. Picture, windows, comparison and JSON all show it.

use std::collections::BTreeMap;

use counters::{
    Counter, DeviceId, DeviceKind, EntityId, GateCounters, IoTotals, Kind, Occupancy,
    VdiskCounters, VdiskId, sorted::Ordered,
};
use engine::DeviceLimits;
use levels::{Column, Flow, Level, LevelKind, Measured, Queue, Stack, little, slot_wait_ms};
use model::Service;
use scenario::{Host, Scenario, Window};
use sim::WindowView;

use crate::{
    application,
    course::Course,
    known::{mean_ms, switch_ms},
    text::whole,
};

/// The stack of all hosts over one window; `views` has one view for each host.
pub(crate) fn of_run(scenario: &Scenario, window: &Window, views: &[WindowView]) -> Stack {
    let mut parts = Parts::default();
    for (index, view) in views.iter().enumerate() {
        let rows = Rows::new(scenario, index, window, view);
        rows.disks(&mut parts);
        rows.devices(&mut parts);
        rows.adapters(&mut parts);
    }
    let whole = |(guest, disk): (&Queue, &Queue)| Queue {
        name: guest.name.clone(),
        waiting: guest.waiting,
        ms: guest.ms.zip(disk.ms).map(|(guest, disk)| guest + disk),
        ..disk.clone()
    };
    let disks = parts.guests.iter().zip(&parts.disks).map(whole).collect();
    let mib_per_s = parts.mib_per_s;
    let stack = Stack::new(parts.levels(), disks, mib_per_s);
    Stack { application: application::of(scenario, views), ..stack }
}

/// At most `rows` queues of a level: the busiest by name, and the rest as one. Where all have room
/// and nobody waits, one stands for all.
pub(crate) fn top(level: &Level, rows: usize) -> Vec<Queue> {
    let named = match level.queues.len() {
        1 => 1,
        _ if level.queues.iter().all(Queue::is_idle) => 0,
        all if all <= rows => all,
        _ => rows.saturating_sub(1),
    };
    let (named, rest) = level.queues.split_at(named);
    let mut top = named.to_vec();
    if !rest.is_empty() {
        let all = rest.len() == level.queues.len();
        let what = if all { "in all" } else { "more" };
        top.push(Queue::sum(rest, format!("{} {what}", whole(rest.len() as f64))));
    }
    top
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
            queues.into_iter().map(|queue| Queue { ms: None, ..queue }).collect::<Vec<_>>()
        };
        let levels = [
            (LevelKind::Guest, self.guests),
            (LevelKind::VirtualDisk, places(self.disks)),
            (LevelKind::VirtualAdapter, self.rings),
            (LevelKind::Device, self.devices),
            (LevelKind::Held, self.held),
            (LevelKind::Adapter, self.adapters),
            (LevelKind::Fabric, shared(self.fabrics)),
            (LevelKind::Array, shared(self.arrays)),
        ];
        levels.into_iter().map(|(kind, queues)| shown(Level::new(kind, queues))).collect()
    }
}

/// A level without the queues that are there for those only that an I/O spends time in, and without what stands
/// for I/Os that pass it by: no adapter, and no limit of an NFS volume. Its time stays that of all I/Os.
fn shown(mut level: Level) -> Level {
    let lasts = |queue: &Queue| queue.ms >= Some(LASTING_MS);
    match level.kind {
        LevelKind::Held | LevelKind::Fabric => level.queues.retain(lasts),
        LevelKind::Device | LevelKind::Adapter => {
            level.queues.retain(|queue| queue.limit.is_some() || lasts(queue));
        }
        _ => {}
    }
    level
}

/// Of each array one queue: what all devices have there, under the one limit of the array.
fn shared(arrays: BTreeMap<usize, Vec<Queue>>) -> Vec<Queue> {
    arrays.into_values().map(|parts| Queue::one_limit(&parts)).collect()
}

/// What virtual disks have below their guests.
#[derive(Default)]
struct Below {
    io: IoTotals,
    /// Mean commands that wait in the host.
    waiting: f64,
    /// Mean commands at the device.
    active: f64,
    /// How long that is over.
    lasts_ns: u64,
}

impl Below {
    fn per_command(&self, nanos: u64) -> Option<f64> {
        let commands = self.io.commands;
        (commands > 0).then(|| counters::nanos_to_millis(nanos as f64 / commands as f64))
    }

    /// Mean commands below the guests, with those that ended after they had been held.
    fn inside(&self) -> f64 {
        let held_ns = self.io.kernel_ns - self.io.queue_ns;
        self.waiting + self.active + held_ns as f64 / self.lasts_ns.max(1) as f64
    }

    /// KAVG.
    fn kavg_ms(&self) -> Option<f64> {
        self.per_command(self.io.kernel_ns)
    }

    /// DAVG.
    fn davg_ms(&self) -> Option<f64> {
        self.per_command(self.io.device_ns)
    }
}

/// One host over one window, ready to be looked up.
struct Rows<'a> {
    scenario: &'a Scenario,
    host: &'a Host,
    view: &'a WindowView,
    course: Course,
    recording: Measured,
    /// The places of the virtual disks on each device.
    disks: BTreeMap<usize, Vec<usize>>,
    ids: BTreeMap<(Kind, &'a str), EntityId>,
    /// In front of names when there are several hosts.
    prefix: String,
}

impl<'a> Rows<'a> {
    fn new(scenario: &'a Scenario, index: usize, window: &Window, view: &'a WindowView) -> Self {
        let host = &scenario.hosts[index];
        let course = Course::of(scenario, index, window);
        let recording = Measured::of(view.recording.clone());
        let named = |(id, entity): (u32, &'a counters::Entity)| {
            ((entity.kind, entity.name.as_str()), EntityId(id))
        };
        let ids = (0..).zip(view.recording.entities()).map(named).into_map();
        let several = scenario.hosts.len() > 1;
        let prefix = if several { format!("{} ", host.config.name) } else { String::new() };
        let mut disks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, disk) in host.config.vdisks.iter().enumerate() {
            disks.entry(disk.device.index()).or_default().push(index);
        }
        Self { scenario, host, view, course, recording, disks, ids, prefix }
    }

    fn id(&self, kind: Kind, name: &str) -> Option<EntityId> {
        self.ids.get(&(kind, name)).copied()
    }

    fn value(&self, id: EntityId, counter: Counter) -> Option<f64> {
        Column::of(&self.recording, id, counter).at(0)
    }

    fn flow(&self, id: EntityId) -> Flow<'_> {
        Flow::of(&self.recording, id)
    }

    /// What virtual disks did in the window, and how many commands they had in the host and at their devices in the
    /// mean: of all that were there, and not of those alone that ended.
    fn below_guests(&self, disks: &[usize]) -> Below {
        let (after, before) = (&self.view.counters, &self.view.counters_before);
        let lasts_ns = after.at - before.at;
        let mut below = Below { lasts_ns, ..Below::default() };
        for &disk in disks {
            let (now, then) = (&after.vdisks[disk], &before.vdisks[disk]);
            let since = now.io.iter().zip(&then.io).map(|(now, then)| now.since(then));
            since.for_each(|io| below.io.add(&io));
            let mean = |of: fn(&VdiskCounters) -> &Occupancy| {
                of(now).mean_since(of(then), before.at, after.at)
            };
            below.waiting += mean(|disk| &disk.queued);
            below.active += mean(|disk| &disk.slots);
        }
        below
    }

    /// Guests, their virtual disks, and adapters that several disks share.
    fn disks(&self, parts: &mut Parts) {
        let config = &self.host.config;
        let mut rings: BTreeMap<usize, Vec<Queue>> = BTreeMap::new();
        for (index, disk) in config.vdisks.iter().enumerate() {
            let vm = &config.vms[disk.vm.index()].name;
            let name = config.disk_name(VdiskId::new(index));
            let Some(id) = self.id(Kind::VirtualDisk, &name) else { continue };
            let (depth, ring) = self.view.limits.vdisks[index];
            let (flow, ms) = (self.flow(id), self.value(id, Counter::GuestWait));
            let (Some(iops), Some(mib_per_s)) = (flow.rate(0), flow.mib_per_s(0)) else {
                continue;
            };
            let below = self.below_guests(&[index]);
            let controller = config.vscsi[disk.vscsi.index()].controller.name();
            let name = format!("{vm} {}", disk.name);
            let guest = Queue { name, ms, iops, ..Queue::default() };
            let place = Queue {
                name: format!("{} {controller}", guest.name),
                limit: Some(f64::from(depth)),
                in_use: Some(below.inside()),
                ms: below.per_command(below.io.kernel_ns + below.io.device_ns),
                ..guest.clone()
            };
            let bus = disk.name.split(':').next().unwrap_or_default();
            let name = format!("{vm} {bus} {controller}");
            let limit = Some(f64::from(ring));
            let of_ring = Queue { name, limit, ms: None, ..place.clone() };
            rings.entry(disk.vscsi.index()).or_default().push(of_ring);
            parts.disks.push(place);
            let waiting = self.value(id, Counter::MeanGuestQueued);
            parts.guests.push(Queue { waiting, ..guest });
            parts.mib_per_s += mib_per_s;
        }
        for disks in rings.into_values().filter(|disks| disks.len() > 1) {
            parts.rings.push(Queue::one_limit(&disks));
        }
    }

    /// Device queues, and what is below them: the fabric and the array.
    fn devices(&self, parts: &mut Parts) {
        let config = &self.host.config;
        let mut paths: BTreeMap<EntityId, Vec<Flow<'_>>> = BTreeMap::new();
        for (id, path) in self.recording.of_kind(Kind::Path) {
            if let Some(device) = path.device {
                paths.entry(device).or_default().push(self.flow(id));
            }
        }
        for (index, device) in config.devices.iter().enumerate() {
            let datastores = self.host.datastores.get(index).map(|names| names.join(", "));
            // A volume of NFS has the name of its datastore.
            let datastores = datastores.filter(|names| !names.is_empty() && *names != device.name);
            let label = datastores.map_or(String::new(), |names| format!("{names} "));
            let name = format!("{}{label}{}", self.prefix, device.name);
            if device.kind == DeviceKind::Nfs {
                self.volume(parts, index, name);
                continue;
            }
            let Some(id) = self.id(Kind::Device, &device.name) else { continue };
            let flow = self.flow(id);
            let Some(iops) = flow.rate(0) else { continue };
            let paths = paths.remove(&id).unwrap_or_default();
            let limits = &self.view.limits.devices[index];
            let held_ms = flow.kavg(0).zip(flow.qavg(0)).map(|(kavg, qavg)| (kavg - qavg).max(0.0));
            let held = held_ms.map(|held_ms| little(iops, held_ms));
            // The counter has those that are held too, and they have a level of their own.
            let waiting = self.value(id, Counter::MeanQueued);
            let waiting = waiting.map(|all| (all - held.unwrap_or_default()).max(0.0));
            let mut queue = Queue {
                name: name.clone(),
                limit: self.value(id, Counter::MeanDeviceQDepth),
                in_use: self.value(id, Counter::MeanActive),
                waiting,
                ms: slot_wait_ms(&flow, paths.iter(), 0),
                iops,
            };
            if !queue.is_full() && self.has_iops_limit(index) {
                queue.name.push_str(IOPS_LIMIT);
            } else if limits.dqlen < limits.max_queue_depth {
                queue.name.push_str(lowered_by(limits));
            }
            parts.held.push(Queue { name, waiting: held, ms: held_ms, iops, ..Queue::default() });
            let active = queue.in_use.unwrap_or_default();
            parts.devices.push(queue);
            let array_ms = self.value(id, Counter::ArrayLatency).or(flow.davg(0));
            self.below(parts, (index, iops, active), [flow.davg(0), array_ms]);
        }
    }

    /// The queue of an NFS volume in the host and what is below it; its commands pass no adapter, and are not held.
    fn volume(&self, parts: &mut Parts, index: usize, name: String) {
        let id = self.id(Kind::NfsVolume, &self.host.config.devices[index].name);
        let Some(iops) = id.and_then(|id| self.flow(id).rate(0)) else { return };
        let below = self.below_guests(self.disks.get(&index).map_or(&[], Vec::as_slice));
        let depth = self.view.limits.devices[index].dqlen;
        let mut queue = Queue {
            name,
            limit: (depth < u32::MAX).then(|| f64::from(depth)),
            in_use: Some(below.active),
            waiting: Some(below.waiting),
            ms: below.kavg_ms(),
            iops,
        };
        if !queue.is_full() && self.has_iops_limit(index) {
            queue.name.push_str(IOPS_LIMIT);
        }
        parts.devices.push(queue);
        let nobody = || Queue { waiting: Some(0.0), ms: Some(0.0), iops, ..Queue::default() };
        parts.held.push(nobody());
        parts.adapters.push(Queue { in_use: Some(0.0), ..nobody() });
        let (waits, device) = (&self.view.waits, DeviceId::new(index));
        let [window_ms, link_ms] =
            [&waits.windows, &waits.links].map(|waits| mean_ms(self.host, waits, device));
        // Both links are crossed at once.
        let on_the_way = window_ms + link_ms.max(switch_ms(self.host, &waits.switches, device));
        let davg = below.davg_ms();
        let inside = davg.map(|davg| (davg - on_the_way).max(0.0));
        self.below(parts, (index, iops, below.active), [davg, inside]);
    }

    /// Whether a disk on a device may have so many I/Os a second and no more: its I/Os wait here
    /// although slots are free.
    fn has_iops_limit(&self, device: usize) -> bool {
        let mut disks = self.disks.get(&device).into_iter().flatten();
        disks.any(|disk| self.course.is_limited(&self.host.config, VdiskId::new(*disk)))
    }

    /// Adds a device's time below the host to its array: all of it, and what the array reports; the commands there are
    /// in the parts in proportion to their times.
    fn below(
        &self,
        parts: &mut Parts,
        (device, iops, active): (usize, f64, f64),
        ms: [Option<f64>; 2],
    ) {
        let [Some(davg), Some(array_ms)] = ms else { return };
        let on_device = self.disks.get(&device).and_then(|disks| disks.first());
        let Some(target) = on_device.and_then(|disk| self.host.targets.get(*disk)) else { return };
        let array = &self.scenario.arrays[target.array];
        let name = match &array.config.service {
            Service::Servers { servers, .. } => format!("{}, {servers} servers", array.name),
            Service::Spindles { spindles, .. } => format!("{}, {spindles} spindles", array.name),
            Service::Disks(disks) => format!("{}, {} disks", array.name, disks.disks),
            Service::Curve(..) => format!("{}, measured curve", array.name),
        };
        let limit = array.config.queues.of_ports().map(f64::from);
        let queue = |ms| Queue {
            name: name.clone(),
            in_use: Some(if davg > 0.0 { active * ms / davg } else { 0.0 }),
            ms: Some(ms),
            iops,
            ..Queue::default()
        };
        let fabric = Queue {
            name: format!("to {}{}", array.name, self.by_link(device)),
            ..queue((davg - array_ms).max(0.0))
        };
        parts.fabrics.entry(target.array).or_default().push(fabric);
        let inside = Queue { limit, ..queue(array_ms) };
        parts.arrays.entry(target.array).or_default().push(inside);
    }

    /// The adapter by whose port with a link commands to a device leave the one host that there is.
    fn by_link(&self, device: usize) -> String {
        let Host { config, initiator, .. } = self.host;
        let mut paths = config.paths.iter().enumerate();
        let crossed = paths.find_map(|(id, path)| {
            let nexus = initiator.nexus(id).filter(|_| path.device.index() == device)?;
            nexus.link.map(|_| path.adapter)
        });
        let adapter = crossed.filter(|_| self.prefix.is_empty());
        adapter.map_or(String::new(), |id| format!(" by {}", config.adapters[id.index()].name))
    }

    fn adapters(&self, parts: &mut Parts) {
        let (after, before) = (&self.view.counters, &self.view.counters_before);
        let gates = after.adapters.iter().zip(&before.adapters);
        for (adapter, (now, then)) in self.host.config.adapters.iter().zip(gates) {
            let Some(id) = self.id(Kind::Adapter, &adapter.name) else { continue };
            let flow = self.flow(id);
            let Some(iops) = flow.rate(0) else { continue };
            let mean = |of: fn(&GateCounters) -> &Occupancy| {
                Some(of(now).mean_since(of(then), before.at, after.at))
            };
            parts.adapters.push(Queue {
                name: format!("{}{} {}", self.prefix, adapter.name, adapter.driver.module),
                limit: Some(f64::from(now.depth)),
                in_use: mean(|gate| &gate.active),
                waiting: mean(|gate| &gate.queued),
                ms: flow.own_wait_ms(0),
                iops,
            });
        }
    }
}

/// What holds commands beside slots that are free.
const IOPS_LIMIT: &str = " (IOPS limit)";

/// What keeps a device below its Device Max Queue Depth, of what has that for a name: Storage I/O Control sets DSNRO
/// aside, and what the array refuses lowers either.
const fn lowered_by(limits: &DeviceLimits) -> &'static str {
    if limits.congestion_us.is_some() {
        " (SIOC)"
    } else if limits.is_competing && limits.dqlen == limits.dsnro {
        " (DSNRO)"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, limit: f64, in_use: f64, waiting: f64) -> Queue {
        let (limit, in_use) = (Some(limit), Some(in_use));
        let waiting = Some(waiting);
        Queue { name: name.into(), limit, in_use, waiting, ms: Some(1.0), iops: 1.0 }
    }

    fn top(queues: Vec<Queue>, rows: usize) -> Vec<(String, f64)> {
        let top = super::top(&Level::new(LevelKind::Device, queues), rows);
        top.into_iter().map(|queue| (queue.name.clone(), queue.inside().unwrap())).collect()
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
}
