//! One device of a recording as a stack: the levels that a command passes on it, with their numbers
//! over some samples.
//!
//! In use and waiting are means by Little's law, rate times time inside, because the sampled ACTV
//! and QUED are the state of one instant. The times of the levels add up to what the guest sees:
//! QAVG of a path covers path and adapter alone, so the device queue's wait is QAVG of the device
//! less that of its paths, and what KAVG has beyond QAVG is the world's [CAP-A].

use counters::{Counter, EntityId, Kind, interval_s};

use crate::{
    Column, Flow, Level, LevelKind, Measured, Queue, Tenant, Vdisk,
    flow::{inside, little},
    numbers::{mean, weighted_mean},
    series::usual,
    tenants,
};

/// The mean wait of a command in the queues of paths and adapters, in milliseconds: QAVG of those
/// of these paths that were measured, over their commands. Paths without that counter are seen to
/// wait no more than those that have no commands.
pub fn path_wait_ms<'a: 'b, 'b>(
    paths: impl Iterator<Item = &'b Flow<'a>>,
    sample: usize,
) -> Option<f64> {
    let row = |path: &Flow<'_>| Some((path.own_wait_ms(sample)?, path.rate(sample)?));
    let rows: Vec<_> = paths.filter(|path| path.has_own_wait()).map(row).collect();
    let all_measured = rows.iter().all(Option::is_some);
    weighted_mean(rows).or(all_measured.then_some(0.0))
}

/// The mean wait of a command for a slot of the device alone, in milliseconds: QAVG of the device
/// less what its `paths` have of it.
pub fn slot_wait_ms<'a: 'b, 'b>(
    device: &Flow<'a>,
    paths: impl Iterator<Item = &'b Flow<'a>>,
    sample: usize,
) -> Option<f64> {
    Some((device.qavg(sample)? - path_wait_ms(paths, sample)?).max(0.0))
}

/// A device over some samples, which are to be such with commands.
pub struct DeviceView<'a> {
    recording: &'a Measured,
    device: EntityId,
    flow: Flow<'a>,
    paths: Vec<Flow<'a>>,
    samples: Vec<usize>,
    /// Commands a second; 0 where no sample has any.
    iops: f64,
}

/// A number of a row in a sample.
type Figure<'a> = fn(&Flow<'a>, usize) -> Option<f64>;

impl<'a> DeviceView<'a> {
    /// A device over those of `samples`, which are in order, in which it has commands.
    #[must_use]
    pub fn new(recording: &'a Measured, device: EntityId, samples: Vec<usize>) -> Self {
        let flow = Flow::of(recording, device);
        let samples = with_commands(&recording.times_ms, &flow, samples);
        let iops = flow.mean_rate(&samples).unwrap_or_default();
        let paths = recording.of_kind(Kind::Path).filter(|(_, path)| path.device == Some(device));
        let paths = paths.map(|(id, _)| Flow::of(recording, id)).collect();
        Self { recording, device, flow, paths, samples, iops }
    }

    /// The samples with commands, be it that none of them completes.
    #[must_use]
    pub fn samples(&self) -> &[usize] {
        &self.samples
    }

    /// The levels below the virtual disks, from the world to the array. What a VM waits that is `held`
    /// by a limit of its own is its world's, for no slot of the device is missing.
    #[must_use]
    pub fn levels(&self, held: Option<&str>) -> Vec<Level> {
        if self.recording.entity(self.device).kind == Kind::NfsVolume {
            return vec![self.volume()];
        }
        let wait_below = self.path_wait_ms();
        let mut levels: Vec<Level> = self.world(held).into_iter().collect();
        levels.push(self.device_queue(wait_below, held));
        levels.extend(self.ways(wait_below));
        levels.push(self.array());
        levels
    }

    /// What is above the VMkernel: the guests' own queue, and the virtual disks or the virtual
    /// adapter, with the `limit` of that level where it is known.
    #[must_use]
    pub fn above(&self, disks: &[Vdisk<'a>], kind: LevelKind, limit: Option<f64>) -> [Level; 2] {
        type Value<'b, 'a> = &'b dyn Fn(&Vdisk<'a>, usize) -> Option<f64>;
        let sum = |of: Value<'_, 'a>, disks: &[&Vdisk<'a>]| {
            self.mean(|sample| disks.iter().map(|disk| of(disk, sample)).sum())
        };
        let all: Vec<&Vdisk<'a>> = disks.iter().collect();
        let mut known = all.clone();
        known.retain(|disk| disk.guest_queued.is_there());
        let is_known = !known.is_empty();
        let rate = sum(&|disk, sample| disk.rate(sample), &all).unwrap_or_default();
        let waited = |disk: &Vdisk<'a>, s| inside(disk.rate(s), || disk.guest_wait.at(s));
        let names: Vec<&str> = disks.iter().map(|disk| disk.name).collect();
        let guest = Queue {
            name: if is_known { "in the VMs" } else { "not seen by esxtop" }.into(),
            waiting: sum(&|disk, s| disk.guest_queued.at(s), &known).filter(|_| is_known),
            ms: sum(&waited, &known)
                .filter(|_| is_known && rate > 0.0)
                .map(|all| 1_000.0 * all / rate),
            iops: rate,
            ..Queue::default()
        };
        let disk = Queue {
            name: some_of(&names, "virtual disk"),
            limit,
            in_use: sum(&|disk, s| disk.outstanding(s), &all).filter(|_| rate > 0.0),
            iops: rate,
            ..Queue::default()
        };
        [Level::one(LevelKind::Guest, guest), Level::one(kind, disk)]
    }

    /// The VM that is `held`, or else that which holds most slots. Who waits for a slot waits in the
    /// device queue: here wait those that a limit keeps back and those held until they are sent again,
    /// of all VMs, as the time is that of the commands of all.
    fn world(&self, held: Option<&str>) -> Option<Level> {
        let tenants = tenants(self.recording, self.device);
        let slots = |tenant: &Tenant<'a>| tenant.mean(&self.samples, Flow::in_flight);
        let known = tenants.iter().filter_map(|tenant| Some((tenant, slots(tenant)?)));
        let most = || known.clone().max_by(|a, b| a.1.total_cmp(&b.1));
        let is_held = |tenant: &(&Tenant<'a>, f64)| Some(tenant.0.name) == held;
        let (most, in_use) = known.clone().find(is_held).or_else(most)?;
        let name = match tenants.len() {
            1 => most.name.to_owned(),
            count if held == Some(most.name) => format!("{} of {count}", most.name),
            count => format!("{}, with most slots of {count}", most.name),
        };
        let beyond = |sample| Some(self.flow.kavg(sample)? - self.flow.qavg(sample)?);
        let ms = self.per_command(beyond).map(|ms| ms.max(0.0) + self.held_ms(held));
        let queue = Queue {
            in_use: Some(in_use),
            waiting: ms.map(|ms| little(self.iops, ms)),
            ms,
            ..self.queue(name)
        };
        Some(Level::one(LevelKind::World, queue))
    }

    /// What a command waits in the mean for the limit of the VM that is `held`, by its QAVG.
    fn held_ms(&self, held: Option<&str>) -> f64 {
        let tenants = tenants(self.recording, self.device);
        let held = tenants.iter().find(|tenant| Some(tenant.name) == held);
        let waiting = held.and_then(|held| held.mean(&self.samples, Flow::waiting));
        waiting.filter(|_| self.iops > 0.0).map_or(0.0, |waiting| 1_000.0 * waiting / self.iops)
    }

    fn device_queue(&self, wait_below: Option<f64>, held: Option<&str>) -> Level {
        let depth = Column::of(self.recording, self.device, Counter::DeviceQDepth);
        let qavg = self.per_command(|sample| self.flow.qavg(sample));
        let wait_ms = qavg.zip(wait_below);
        let wait_ms = wait_ms.map(|(qavg, below)| (qavg - below - self.held_ms(held)).max(0.0));
        let queue = Queue {
            limit: usual(depth, &self.samples).filter(|depth| *depth > 0.0),
            in_use: self.mean(|sample| self.flow.in_flight(sample)),
            waiting: wait_ms.map(|ms| little(self.iops, ms)),
            ms: wait_ms,
            ..self.queue(self.flow.name)
        };
        Level::one(LevelKind::Device, queue)
    }

    /// The device's paths and the adapters that they lead through. The wait is that of both.
    fn ways(&self, wait_ms: Option<f64>) -> Vec<Level> {
        let recording = self.recording;
        let mut adapters = Vec::new();
        for (_, path) in recording.of_kind(Kind::Path) {
            if path.device == Some(self.device) {
                adapters.extend(path.adapter.filter(|adapter| !adapters.contains(adapter)));
            }
        }
        let mut levels = Vec::new();
        if !self.paths.is_empty() {
            let ms = wait_ms.filter(|_| adapters.is_empty());
            let queue = Queue { ms, ..self.passing(&self.paths, "path") };
            levels.push(Level::one(LevelKind::Path, queue));
        }
        let flows: Vec<_> = adapters.iter().map(|&id| Flow::of(recording, id)).collect();
        let limits = adapters
            .iter()
            .map(|&id| usual(Column::of(recording, id, Counter::AdapterQDepth), &self.samples));
        if !flows.is_empty() {
            let limit = limits.sum();
            let queue = Queue { limit, ms: wait_ms, ..self.passing(&flows, "adapter") };
            levels.push(Level::one(LevelKind::Adapter, queue));
        }
        levels
    }

    /// What passes some paths or adapters.
    fn passing(&self, flows: &[Flow<'a>], noun: &str) -> Queue {
        let names: Vec<&str> = flows.iter().map(|flow| flow.name).collect();
        Queue {
            in_use: self.sum(flows, Flow::in_flight),
            waiting: self.sum(flows, Flow::own_waiting),
            ..self.queue(some_of(&names, noun))
        }
    }

    /// The wait at the paths, over the commands of all samples.
    fn path_wait_ms(&self) -> Option<f64> {
        self.per_command(|sample| path_wait_ms(self.paths.iter(), sample))
    }

    fn array(&self) -> Level {
        let queue = Queue {
            in_use: self.mean(|sample| self.flow.in_flight(sample)),
            ms: self.per_command(|sample| self.flow.davg(sample)),
            ..self.queue("below the host: DAVG")
        };
        Level::one(LevelKind::Array, queue)
    }

    /// An NFS volume: esxtop has its GAVG alone [ELA].
    fn volume(&self) -> Level {
        let queue = Queue {
            in_use: self.mean(|sample| self.flow.outstanding(sample)),
            ms: self.per_command(|sample| self.flow.gavg(sample)),
            ..self.queue(format!("{}, NFS: GAVG alone", self.flow.name))
        };
        Level::one(LevelKind::Array, queue)
    }

    /// A queue that all commands of the device pass.
    fn queue(&self, name: impl Into<String>) -> Queue {
        Queue { name: name.into(), iops: self.iops, ..Queue::default() }
    }

    fn mean(&self, of: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        mean(self.samples.iter().map(|&sample| of(sample)))
    }

    fn per_command(&self, latency: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        self.flow.per_command(&self.samples, |_, sample| latency(sample))
    }

    fn sum(&self, flows: &[Flow<'a>], of: Figure<'a>) -> Option<f64> {
        self.mean(|sample| flows.iter().map(|flow| of(flow, sample)).sum())
    }
}

/// Those of some samples in which a device has commands. What completes after a sample without completions was in it
/// where it took that long: left out, it would stand in the mean for longer than it was there.
fn with_commands(times_ms: &[i64], flow: &Flow<'_>, samples: Vec<usize>) -> Vec<usize> {
    let mut since_ms = f64::INFINITY;
    let has_commands = |&sample: &usize| {
        let to_ms = times_ms[sample] as f64;
        let length_ms = 1_000.0 * interval_s(times_ms, sample).unwrap_or_default();
        match flow.rate(sample) {
            Some(rate) if rate > 0.0 => {
                let took_ms = flow.gavg(sample).unwrap_or_default();
                since_ms = since_ms.min(to_ms - length_ms - took_ms);
                true
            }
            Some(_) => since_ms <= to_ms - length_ms / 2.0,
            None => false,
        }
    };
    let mut kept: Vec<usize> = samples.into_iter().rev().filter(has_commands).collect();
    kept.reverse();
    kept
}

/// One name, or how many there are.
fn some_of(names: &[&str], noun: &str) -> String {
    match names {
        [] => format!("no {noun} recorded"),
        [one] => (*one).into(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use counters::{Entity, Recording};

    use super::*;

    /// Whose commands wait 1 ms for a slot and are held for 3 ms elsewhere, be it by the limit of one VM:
    /// on each level that many wait as its time says.
    #[test]
    fn as_many_wait_on_a_level_as_littles_law_says() {
        let mut recording = Recording::new("esx".into());
        recording.times_ms = vec![0, 5_000];
        let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
        let world = Entity { device: Some(device), ..Entity::new(Kind::World, "68001".into()) };
        let world = recording.add_entity(world);
        for row in [device, world] {
            let mut put = |counter, value| recording.set_column(row, counter, vec![value; 2]);
            put(Counter::Commands, 1_000.0);
            put(Counter::DriverLatency, 2.0);
            put(Counter::KernelLatency, 4.0);
            put(Counter::QueueLatency, 1.0);
            put(Counter::GuestLatency, 6.0);
        }
        let recording = Measured::of(recording);
        let device = DeviceView::new(&recording, device, (0..2).collect());
        for (held, waits) in [(None, [3.0, 1.0]), (Some("68001"), [4.0, 0.0])] {
            let levels = device.levels(held);
            for (level, waits) in levels.iter().zip(waits) {
                let queue = &level.queues[0];
                assert_eq!((queue.ms, queue.waiting), (Some(waits), Some(waits)), "{level:?}");
            }
        }
    }

    /// 8 commands wait 4 s each and complete together, a second in five: 8 a second then, 1.6 in the mean, of which 6.4
    /// are inside. A sample that nobody's command reaches back to is one at rest.
    #[test]
    fn samples_in_which_nothing_completes_count_where_commands_are_held_in_them() {
        let of = |kernel_ms: f64| {
            let mut recording = Recording::new("esx".into());
            recording.times_ms = (0..20).map(|sample| 1_000 * sample).collect();
            let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
            let world = Entity { device: Some(device), ..Entity::new(Kind::World, "1".into()) };
            let world = recording.add_entity(world);
            let at_end =
                |value: f64| (0..20).map(|s| if s % 5 == 4 { value } else { 0.0 }).collect();
            for row in [device, world] {
                recording.set_column(row, Counter::Commands, at_end(8.0));
                recording.set_column(row, Counter::KernelLatency, at_end(kernel_ms));
                for counter in [Counter::DriverLatency, Counter::QueueLatency] {
                    recording.set_column(row, counter, at_end(0.0));
                }
            }
            let recording = Measured::of(recording);
            let view = DeviceView::new(&recording, device, (0..20).collect());
            let world = view.levels(None).swap_remove(0).queues.swap_remove(0);
            (view.samples().len(), world.ms, world.waiting)
        };
        assert_eq!(of(4_000.0), (20, Some(4_000.0), Some(6.4)));
        assert_eq!(of(4.0), (4, Some(4.0), Some(0.032)));
    }
}
