//! The levels that an I/O passes on one device, with their numbers over the window of the worst
//! finding: limit, in use, waiting, time.
//!
//! In use and waiting are means by Little's law, rate times time inside, because the sampled ACTV
//! and QUED are the state of one instant. The times of the levels add up to what the guest sees:
//! QAVG of a path covers path and adapter alone, so the device queue's wait is QAVG of the device
//! less that of its paths, and what KAVG has beyond QAVG is the world's [CAP-A].

use counters::{Counter, EntityId, Kind, Recording};
use diagnose::{Finding, Verdict, Window};
use levels::{Column, Flow, LevelKind};

use super::{
    Host,
    rows::{self, Disk, Figure, Tenant, mean},
    words::number,
};

/// A level and its numbers; what the source does not have is none.
pub(crate) struct Level {
    pub(crate) kind: LevelKind,
    /// Whose queue it is.
    pub(crate) whose: String,
    pub(crate) limit: Option<f64>,
    pub(crate) in_use: Option<f64>,
    pub(crate) waiting: Option<f64>,
    /// Time of an I/O that passes here.
    pub(crate) ms: Option<f64>,
    /// The findings that blame it, as numbered on the page.
    pub(crate) findings: Vec<usize>,
}

/// The stack of one device over a window.
pub(crate) struct Stack {
    pub(crate) device: String,
    pub(crate) window: Window,
    pub(crate) levels: Vec<Level>,
    /// The level that the worst finding blames.
    pub(crate) guilty: Option<LevelKind>,
}

impl Stack {
    /// The stack of the device that the worst finding is about, or else of the busiest one.
    pub(super) fn of(host: &Host<'_>) -> Option<Self> {
        Self::new(host.recording, host.verdict, &host.devices)
    }

    /// The same without a page.
    pub(crate) fn of_verdict(recording: &Recording, verdict: &Verdict) -> Option<Self> {
        Self::new(recording, verdict, &rows::devices(recording, verdict))
    }

    fn new(recording: &Recording, verdict: &Verdict, devices: &[EntityId]) -> Option<Self> {
        let worst = verdict.findings.first();
        let device_of = |finding: &Finding| rows::device_of(recording, devices, &finding.at);
        let busiest = || devices.first().copied();
        let device = worst.and_then(device_of).or_else(busiest)?;
        let asked = worst.map_or(verdict.window, |finding| finding.window);
        let flow = Flow::of(recording, device);
        let mut samples = rows::samples(recording, asked.from_ms, asked.to_ms);
        let of = samples.len();
        samples.retain(|&sample| flow.rate(sample) > 0.0);
        let window = Window { samples: samples.len(), of, ..asked };
        let mut levels = View { recording, device, flow, samples }.levels(worst);
        let named = verdict.findings.iter().enumerate();
        for (index, finding) in named.filter(|(_, finding)| device_of(finding) == Some(device)) {
            let blamed = levels.iter_mut().find(|level| level.kind == finding.cause.level());
            blamed.into_iter().for_each(|level| level.findings.push(index + 1));
        }
        let guilty = worst.map(|finding| finding.cause.level());
        Some(Self { device: recording.entity(device).name.clone(), window, levels, guilty })
    }
}

/// A device over some samples.
struct View<'a> {
    recording: &'a Recording,
    device: EntityId,
    flow: Flow<'a>,
    samples: Vec<usize>,
}

impl<'a> View<'a> {
    fn levels(&self, worst: Option<&Finding>) -> Vec<Level> {
        let mut levels = Vec::from(self.guest(worst));
        if self.recording.entity(self.device).kind == Kind::NfsVolume {
            levels.push(self.volume());
            return levels;
        }
        levels.extend(self.world());
        let wait_below = self.path_wait_ms();
        levels.push(self.device_queue(wait_below));
        levels.extend(self.paths(wait_below));
        levels.push(self.array());
        levels
    }

    /// What is above the VMkernel: the guest's own queue, and the virtual disks, or their adapter
    /// where that is blamed.
    fn guest(&self, worst: Option<&Finding>) -> [Level; 2] {
        let disks = self.disks(worst);
        let sum = |of: &dyn Fn(&Disk<'a>, usize) -> f64| {
            mean(&self.samples, |sample| disks.iter().map(|disk| of(disk, sample)).sum())
        };
        let known = disks.iter().any(|disk| disk.guest_queued(0).is_some());
        let queued = sum(&|disk, sample| disk.guest_queued(sample).unwrap_or(0.0));
        let waited =
            |disk: &Disk<'a>, sample| disk.rate(sample) * disk.guest_wait_ms(sample).unwrap_or(0.0);
        let (rate, outstanding) = (sum(&Disk::rate), sum(&Disk::outstanding));
        let names: Vec<&str> = disks.iter().map(|disk| disk.entity.name.as_str()).collect();
        let limit = worst.and_then(limit_of_disk);
        let guest = Level {
            waiting: known.then_some(queued),
            ms: (known && rate > 0.0).then(|| sum(&waited) / rate),
            ..Level::new(LevelKind::Guest, if known { "in the VMs" } else { "not seen by esxtop" })
        };
        let blamed = worst.map(|finding| finding.cause.level());
        let kind = blamed.filter(|level| *level == LevelKind::VirtualAdapter);
        let disk = Level {
            limit,
            in_use: (rate > 0.0).then_some(outstanding),
            ..Level::new(kind.unwrap_or(LevelKind::VirtualDisk), some_of(&names, "virtual disk"))
        };
        [guest, disk]
    }

    /// The virtual disks on the device; those that the finding is about alone, if it is about such.
    fn disks(&self, worst: Option<&Finding>) -> Vec<Disk<'a>> {
        let recording = self.recording;
        let on = recording.of_kind(Kind::VirtualDisk).filter(|d| d.1.device == Some(self.device));
        let all: Vec<_> = on.map(|(id, _)| Disk::of(recording, id)).collect();
        let is_blamed =
            |disk: &Disk<'_>| worst.is_some_and(|worst| rows::is_named(disk.entity, &worst.at));
        if all.iter().any(is_blamed) { all.into_iter().filter(is_blamed).collect() } else { all }
    }

    /// The VM that holds most slots.
    fn world(&self) -> Option<Level> {
        let tenants = rows::tenants(self.recording, self.device);
        let slots = |tenant: &Tenant<'a>| tenant.mean(&self.samples, Flow::in_flight);
        let most = tenants.iter().max_by(|a, b| slots(a).total_cmp(&slots(b)))?;
        let whose = match tenants.len() {
            1 => most.name.to_owned(),
            count => format!("{}, with most slots of {count}", most.name),
        };
        let beyond = |sample| self.flow.kavg(sample) - self.flow.qavg(sample);
        Some(Level {
            in_use: Some(slots(most)),
            waiting: Some(most.mean(&self.samples, Flow::waiting)),
            ms: Some(self.per_command(beyond).max(0.0)),
            ..Level::new(LevelKind::World, whose)
        })
    }

    fn device_queue(&self, wait_below: f64) -> Level {
        let depth = Column::of(self.recording, self.device, Counter::DeviceQDepth);
        let depths = depth.over(&self.samples);
        let (low, high) = depths.fold((f64::INFINITY, 0.0_f64), |(l, h), d| (l.min(d), h.max(d)));
        let name = &self.recording.entity(self.device).name;
        let whose = match low < high {
            true => format!("{name}, DQLEN {} to {}", number(Some(low)), number(Some(high))),
            false => name.clone(),
        };
        let wait_ms = (self.per_command(|sample| self.flow.qavg(sample)) - wait_below).max(0.0);
        Level {
            limit: rows::usual(depth, &self.samples),
            in_use: Some(mean(&self.samples, |sample| self.flow.in_flight(sample))),
            waiting: Some(wait_ms * self.flow.mean_rate(&self.samples) / 1000.0),
            ms: Some(wait_ms),
            ..Level::new(LevelKind::Device, whose)
        }
    }

    /// The device's paths and the adapters that they lead through. The wait is that of both.
    fn paths(&self, wait_ms: f64) -> Vec<Level> {
        let recording = self.recording;
        let (mut paths, mut adapters) = (Vec::new(), Vec::new());
        for (id, path) in recording.of_kind(Kind::Path) {
            if path.device == Some(self.device) {
                paths.push(Flow::of(recording, id));
                adapters.extend(path.adapter.filter(|adapter| !adapters.contains(adapter)));
            }
        }
        let mut levels = Vec::new();
        if !paths.is_empty() {
            levels.push(Level {
                in_use: Some(self.sum(&paths, Flow::in_flight)),
                waiting: Some(self.sum(&paths, own_waiting)),
                ms: adapters.is_empty().then_some(wait_ms),
                ..Level::new(LevelKind::Path, names(&paths, "path"))
            });
        }
        let flows: Vec<_> = adapters.iter().map(|&id| Flow::of(recording, id)).collect();
        let limits = adapters.iter().map(|&id| {
            rows::usual(Column::of(recording, id, Counter::AdapterQDepth), &self.samples)
        });
        if !flows.is_empty() {
            levels.push(Level {
                limit: limits.sum(),
                in_use: Some(self.sum(&flows, Flow::in_flight)),
                waiting: Some(self.sum(&flows, own_waiting)),
                ms: Some(wait_ms),
                ..Level::new(LevelKind::Adapter, names(&flows, "adapter"))
            });
        }
        levels
    }

    /// QAVG of the device's paths, over their commands.
    fn path_wait_ms(&self) -> f64 {
        let of_device = |path: &&(EntityId, &counters::Entity)| path.1.device == Some(self.device);
        let paths: Vec<_> = self.recording.of_kind(Kind::Path).collect();
        let flows = paths.iter().filter(of_device).map(|path| Flow::of(self.recording, path.0));
        let flows: Vec<_> = flows.collect();
        let rate = self.sum(&flows, Flow::rate);
        if rate > 0.0 { 1000.0 * self.sum(&flows, own_waiting) / rate } else { 0.0 }
    }

    fn array(&self) -> Level {
        Level {
            in_use: Some(mean(&self.samples, |sample| self.flow.in_flight(sample))),
            ms: Some(self.per_command(|sample| self.flow.davg(sample))),
            ..Level::new(LevelKind::Array, "below the host: DAVG")
        }
    }

    /// An NFS volume: esxtop has its GAVG alone [ELA].
    fn volume(&self) -> Level {
        let name = self.recording.entity(self.device).name.as_str();
        Level {
            in_use: Some(mean(&self.samples, |sample| self.flow.outstanding(sample))),
            ms: Some(self.per_command(|sample| self.flow.gavg(sample))),
            ..Level::new(LevelKind::Array, format!("{name}, NFS: GAVG alone"))
        }
    }

    fn per_command(&self, latency: impl Fn(usize) -> f64) -> f64 {
        self.flow.per_command(&self.samples, |_, sample| latency(sample))
    }

    fn sum(&self, flows: &[Flow<'a>], of: Figure<'a>) -> f64 {
        mean(&self.samples, |sample| flows.iter().map(|flow| of(flow, sample)).sum())
    }
}

/// Mean commands in the queue of a path or adapter itself.
fn own_waiting(flow: &Flow<'_>, sample: usize) -> f64 {
    flow.rate(sample) * flow.own_wait_ms(sample) / 1000.0
}

/// The depth that a finding about a virtual disk or adapter states.
fn limit_of_disk(finding: &Finding) -> Option<f64> {
    let is_above = finding.cause.level() <= LevelKind::VirtualAdapter;
    finding.limit.filter(|_| is_above)
}

fn names(flows: &[Flow<'_>], noun: &str) -> String {
    some_of(&flows.iter().map(|flow| flow.name).collect::<Vec<_>>(), noun)
}

/// One name, or how many there are.
fn some_of(names: &[&str], noun: &str) -> String {
    match names {
        [] => format!("no {noun} in the capture"),
        [one] => (*one).into(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

impl Level {
    /// A level without a number.
    fn new(kind: LevelKind, whose: impl Into<String>) -> Self {
        Self {
            kind,
            whose: whose.into(),
            limit: None,
            in_use: None,
            waiting: None,
            ms: None,
            findings: Vec::new(),
        }
    }
}
