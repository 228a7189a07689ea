//! One device of a recording as a stack: the levels that a command passes on it, with their numbers
//! over some samples.
//!
//! In use and waiting are means by Little's law, rate times time inside, because the sampled ACTV
//! and QUED are the state of one instant. The times of the levels add up to what the guest sees:
//! QAVG of a path covers path and adapter alone, so the device queue's wait is QAVG of the device
//! less that of its paths, and what KAVG has beyond QAVG is the world's [CAP-A].

use counters::{Counter, EntityId, Kind, Recording};

use crate::{
    Column, Flow, Level, LevelKind, Queue, Tenant, Vdisk, little,
    series::{mean, usual},
    tenants,
};

/// The mean wait of a command in the queues of paths and adapters, in milliseconds: QAVG of these
/// paths, over their commands. `None` where they have none.
pub fn path_wait_ms<'a: 'b, 'b>(
    paths: impl Iterator<Item = &'b Flow<'a>>,
    sample: usize,
) -> Option<f64> {
    crate::series::weighted_mean(
        paths.map(|path| Some((path.own_wait_ms(sample), path.rate(sample)))),
    )
}

/// The mean wait of a command for a slot of the device alone, in milliseconds: QAVG of the device
/// less what its `paths` have of it.
pub fn slot_wait_ms<'a: 'b, 'b>(
    device: &Flow<'a>,
    paths: impl Iterator<Item = &'b Flow<'a>>,
    sample: usize,
) -> f64 {
    (device.qavg(sample) - path_wait_ms(paths, sample).unwrap_or_default()).max(0.0)
}

/// A device over some samples, which are to be such with commands.
pub struct DeviceView<'a> {
    recording: &'a Recording,
    device: EntityId,
    flow: Flow<'a>,
    paths: Vec<Flow<'a>>,
    samples: Vec<usize>,
}

/// A number of a row in a sample.
type Figure<'a> = fn(&Flow<'a>, usize) -> f64;

impl<'a> DeviceView<'a> {
    /// A device over those of `samples` in which it has commands.
    #[must_use]
    pub fn new(recording: &'a Recording, device: EntityId, mut samples: Vec<usize>) -> Self {
        let flow = Flow::of(recording, device);
        samples.retain(|&sample| flow.rate(sample) > 0.0);
        let paths = recording.of_kind(Kind::Path).filter(|(_, path)| path.device == Some(device));
        let paths = paths.map(|(id, _)| Flow::of(recording, id)).collect();
        Self { recording, device, flow, paths, samples }
    }

    /// The samples with commands.
    #[must_use]
    pub fn samples(&self) -> &[usize] {
        &self.samples
    }

    /// The levels below the virtual disks, from the world to the array.
    #[must_use]
    pub fn levels(&self) -> Vec<Level> {
        if self.recording.entity(self.device).kind == Kind::NfsVolume {
            return vec![self.volume()];
        }
        let wait_below = self.path_wait_ms();
        let mut levels: Vec<Level> = self.world().into_iter().collect();
        levels.push(self.device_queue(wait_below));
        levels.extend(self.ways(wait_below));
        levels.push(self.array());
        levels
    }

    /// What is above the VMkernel: the guests' own queue, and the virtual disks or the virtual
    /// adapter, with the `limit` of that level where it is known.
    #[must_use]
    pub fn above(&self, disks: &[Vdisk<'a>], kind: LevelKind, limit: Option<f64>) -> [Level; 2] {
        let sum = |of: &dyn Fn(&Vdisk<'a>, usize) -> Option<f64>| {
            self.mean(|sample| disks.iter().filter_map(|disk| of(disk, sample)).sum())
        };
        let known = disks.iter().any(|disk| disk.guest_queued.is_there());
        let waited = |disk: &Vdisk<'a>, s| Some(disk.rate(s) * disk.guest_wait.at(s)?);
        let rate = sum(&|disk, sample| Some(disk.rate(sample))).unwrap_or_default();
        let names: Vec<&str> = disks.iter().map(|disk| disk.name).collect();
        let guest = Queue {
            name: if known { "in the VMs" } else { "not seen by esxtop" }.into(),
            waiting: sum(&|disk, sample| disk.guest_queued.at(sample)).filter(|_| known),
            ms: sum(&waited).filter(|_| known && rate > 0.0).map(|waited| waited / rate),
            iops: rate,
            ..Queue::default()
        };
        let disk = Queue {
            name: some_of(&names, "virtual disk"),
            limit,
            in_use: sum(&|disk, s| Some(disk.outstanding(s))).filter(|_| rate > 0.0),
            iops: rate,
            ..Queue::default()
        };
        [Level::one(LevelKind::Guest, guest), Level::one(kind, disk)]
    }

    /// The VM that holds most slots.
    fn world(&self) -> Option<Level> {
        let tenants = tenants(self.recording, self.device);
        let slots = |tenant: &Tenant<'a>| tenant.mean(&self.samples, Flow::in_flight);
        let of = |tenant: &Tenant<'a>| slots(tenant).unwrap_or_default();
        let most = tenants.iter().max_by(|a, b| of(a).total_cmp(&of(b)))?;
        let name = match tenants.len() {
            1 => most.name.to_owned(),
            count => format!("{}, with most slots of {count}", most.name),
        };
        let beyond = |sample| self.flow.kavg(sample) - self.flow.qavg(sample);
        let queue = Queue {
            in_use: slots(most),
            waiting: most.mean(&self.samples, Flow::waiting),
            ms: Some(self.per_command(beyond).max(0.0)),
            ..self.queue(name)
        };
        Some(Level::one(LevelKind::World, queue))
    }

    fn device_queue(&self, wait_below: f64) -> Level {
        let depth = Column::of(self.recording, self.device, Counter::DeviceQDepth);
        let wait_ms = (self.per_command(|sample| self.flow.qavg(sample)) - wait_below).max(0.0);
        let queue = Queue {
            limit: usual(depth, &self.samples).filter(|depth| *depth > 0.0),
            in_use: self.mean(|sample| self.flow.in_flight(sample)),
            waiting: Some(little(self.flow.mean_rate(&self.samples), wait_ms)),
            ms: Some(wait_ms),
            ..self.queue(self.flow.name)
        };
        Level::one(LevelKind::Device, queue)
    }

    /// The device's paths and the adapters that they lead through. The wait is that of both.
    fn ways(&self, wait_ms: f64) -> Vec<Level> {
        let recording = self.recording;
        let mut adapters = Vec::new();
        for (_, path) in recording.of_kind(Kind::Path) {
            if path.device == Some(self.device) {
                adapters.extend(path.adapter.filter(|adapter| !adapters.contains(adapter)));
            }
        }
        let mut levels = Vec::new();
        if !self.paths.is_empty() {
            let ms = adapters.is_empty().then_some(wait_ms);
            let queue = Queue { ms, ..self.passing(&self.paths, "path") };
            levels.push(Level::one(LevelKind::Path, queue));
        }
        let flows: Vec<_> = adapters.iter().map(|&id| Flow::of(recording, id)).collect();
        let limits = adapters
            .iter()
            .map(|&id| usual(Column::of(recording, id, Counter::AdapterQDepth), &self.samples));
        if !flows.is_empty() {
            let (limit, ms) = (limits.sum(), Some(wait_ms));
            let queue = Queue { limit, ms, ..self.passing(&flows, "adapter") };
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

    fn path_wait_ms(&self) -> f64 {
        let rate = self.sum(&self.paths, Flow::rate).unwrap_or_default();
        let waiting = self.sum(&self.paths, Flow::own_waiting).unwrap_or_default();
        if rate > 0.0 { 1000.0 * waiting / rate } else { 0.0 }
    }

    fn array(&self) -> Level {
        let queue = Queue {
            in_use: self.mean(|sample| self.flow.in_flight(sample)),
            ms: Some(self.per_command(|sample| self.flow.davg(sample))),
            ..self.queue("below the host: DAVG")
        };
        Level::one(LevelKind::Array, queue)
    }

    /// An NFS volume: esxtop has its GAVG alone [ELA].
    fn volume(&self) -> Level {
        let queue = Queue {
            in_use: self.mean(|sample| self.flow.outstanding(sample)),
            ms: Some(self.per_command(|sample| self.flow.gavg(sample))),
            ..self.queue(format!("{}, NFS: GAVG alone", self.flow.name))
        };
        Level::one(LevelKind::Array, queue)
    }

    /// A queue that all commands of the device pass.
    fn queue(&self, name: impl Into<String>) -> Queue {
        let iops = self.flow.mean_rate(&self.samples);
        Queue { name: name.into(), iops, ..Queue::default() }
    }

    fn mean(&self, of: impl Fn(usize) -> f64) -> Option<f64> {
        mean(self.samples.iter().map(|&sample| of(sample)))
    }

    fn per_command(&self, latency: impl Fn(usize) -> f64) -> f64 {
        self.flow.per_command(&self.samples, |_, sample| latency(sample))
    }

    fn sum(&self, flows: &[Flow<'a>], of: Figure<'a>) -> Option<f64> {
        self.mean(|sample| flows.iter().map(|flow| of(flow, sample)).sum())
    }
}

/// One name, or how many there are.
fn some_of(names: &[&str], noun: &str) -> String {
    match names {
        [] => format!("no {noun} in the capture"),
        [one] => (*one).into(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}
