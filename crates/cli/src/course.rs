//! The course of a scenario's events on a host by the end of a window: what was set, what was down, and when.

use std::collections::{BTreeMap, BTreeSet};

use counters::{DeviceId, MILLISECOND, PathId, Time, VdiskId, sorted::sort};
use engine::{Event, HostConfig, Object, VdiskConfig};
use knobs::{Advanced, IoControl, Knob, PathPolicy};
use scenario::{Action, DownPaths, Face, Scenario, Window};
use sim::{EPOCH_MS, LogLine, Logged};

/// What was set and what happened on a host by the end of a window.
#[derive(Default)]
pub(crate) struct Course {
    /// The IOPS limit of each virtual disk: the lowest that was in force in the window.
    pub(crate) limits: Vec<Option<u32>>,
    /// The same at its end.
    pub(crate) limits_at_end: Vec<Option<u32>>,
    /// The storage policy that each has then, by its place on the host.
    pub(crate) policies_at_end: Vec<Option<usize>>,
    pub(crate) policies: BTreeMap<DeviceId, PathPolicy>,
    /// Devices of which an event set DSNRO.
    pub(crate) own_dsnro: BTreeSet<DeviceId>,
    /// Sample sizes of adaptive throttling: of a device, and of the host for those without.
    queue_full: BTreeMap<DeviceId, u32>,
    queue_full_of_host: u32,
    /// Devices whose depth is found by latency.
    pub(crate) finds_depth: BTreeSet<DeviceId>,
    /// Devices under Storage I/O Control.
    pub(crate) controlled: BTreeSet<DeviceId>,
    /// How often a workload from outside was told of in the window, and the least DQLEN that was put in force.
    pub(crate) external: BTreeMap<DeviceId, u32>,
    pub(crate) least_depth: BTreeMap<DeviceId, u32>,
    /// Paths that were down at some time of the window.
    pub(crate) dead: BTreeMap<PathId, Outages>,
    /// Paths that were dead then, which the host did not know.
    pub(crate) cut: BTreeMap<PathId, Outages>,
    /// Paths that were taken away by its end.
    pub(crate) detached: BTreeSet<PathId>,
    /// Devices that answered nothing then, and those that were lost.
    pub(crate) silent: BTreeMap<DeviceId, Outages>,
    pub(crate) lost: BTreeMap<DeviceId, Outages>,
    /// When somebody ended what was outstanding on a device, in milliseconds since 1970.
    pub(crate) ended: BTreeMap<DeviceId, Vec<i64>>,
}

/// From when to when something was out, in milliseconds since 1970.
pub(crate) type Outages = Vec<(i64, i64)>;

impl Course {
    pub(crate) fn of(scenario: &Scenario, index: usize, window: &Window) -> Self {
        let host = &scenario.hosts[index];
        let disks = host.config.vdisks.iter();
        let limits: Vec<_> = disks.map(|disk| disk.allocation.limit_iops).collect();
        let mut course = Self {
            limits_at_end: limits.clone(),
            limits,
            policies_at_end: host.policy_of.clone(),
            ..Self::default()
        };
        let given = scenario.given.iter();
        for given in given.filter(|given| given.host == index && given.at < window.to) {
            course.policies_at_end[given.vdisk.index()] = given.policy;
        }
        for knob in &host.settings {
            course.set(*knob, false);
        }
        let events = scenario.events.iter();
        let (mut down, mut cut) = (DownPaths::default(), DownPaths::default());
        for event in events.filter(|event| event.host == index && event.at < window.to) {
            let is_during = event.at > window.from;
            for device in ended_by(&event.action, &host.config) {
                course.ended.entry(device).or_default().push(at_ms(event.at));
            }
            match event.action {
                Action::Set(knob) => course.set(knob, is_during),
                Action::Path { path, up, by } => {
                    down.set(path, up, by);
                    turn(&mut course.dead, path, down.contains(path), event.at);
                    cut.set(path, true, by);
                    turn(&mut course.cut, path, cut.contains(path), event.at);
                }
                Action::Cut { path, by } => {
                    cut.set(path, false, by);
                    turn(&mut course.cut, path, true, event.at);
                }
                Action::Detach { object: Object::Path(path), .. } => {
                    course.detached.insert(path);
                }
                Action::Attach(Object::Path(path)) => {
                    course.detached.remove(&path);
                }
                Action::Face { device, face } => {
                    turn(&mut course.silent, device, face == Face::Silent, event.at);
                    turn(&mut course.lost, device, face == Face::Lost, event.at);
                }
                _ => {}
            }
        }
        keep_from(&mut course.dead, window.from);
        keep_from(&mut course.cut, window.from);
        keep_from(&mut course.silent, window.from);
        keep_from(&mut course.lost, window.from);
        course
    }

    /// The limits of the disks of its VM on the device where these hold all of them together, to their sum, and
    /// only where each has one: before ESXi 6.0 they have one world [PFS, DOC50].
    pub(crate) fn limits_together(
        &self,
        config: &HostConfig,
        id: VdiskId,
    ) -> Option<Vec<Option<u32>>> {
        let disk = &config.vdisks[id.index()];
        let of_world = config
            .vdisks
            .iter()
            .zip(&self.limits)
            .filter(|(other, _)| (other.vm, other.device) == (disk.vm, disk.device));
        let together = || of_world.map(|(_, limit)| *limit).collect::<Vec<_>>();
        let of_several = || Some(together()).filter(|together| together.len() > 1);
        if config.version.schedules_per_file() { None } else { of_several() }
    }

    /// Whether a virtual disk may have so many I/Os a second and no more.
    pub(crate) fn is_limited(&self, config: &HostConfig, id: VdiskId) -> bool {
        let is_whole = |limits: Vec<Option<u32>>| limits.iter().all(Option::is_some);
        self.limits[id.index()].is_some() && self.limits_together(config, id).is_none_or(is_whole)
    }

    /// Lines of the host's log in the window.
    pub(crate) fn tell<'a>(&mut self, lines: impl Iterator<Item = &'a LogLine>) {
        for line in lines {
            match line.what {
                Logged::Event(Event::ExternalWorkload { device }) => {
                    *self.external.entry(device).or_default() += 1;
                }
                Logged::Event(Event::DepthChanged { device, depth }) => {
                    let least = self.least_depth.entry(device).or_insert(depth);
                    *least = depth.min(*least);
                }
                _ => {}
            }
        }
    }

    /// When none of some paths leads anywhere.
    pub(crate) fn cut_off<'a>(&self, paths: impl Iterator<Item = &'a PathId>) -> Outages {
        let there = paths.filter(|path| !self.detached.contains(path));
        let out = there.map(|path| self.down(*path));
        out.reduce(|all, one| both(&all, &one)).unwrap_or_default()
    }

    /// When a path was down, whether the host knew it or not: what is found dead has been so for a while.
    pub(crate) fn down(&self, path: PathId) -> Outages {
        let of_path = [&self.cut, &self.dead].into_iter().filter_map(|out| out.get(&path));
        let mut times: Outages = of_path.flatten().copied().collect();
        sort(&mut times);
        let mut down = Outages::new();
        for (from, to) in times {
            match down.last_mut().filter(|last| from <= last.1) {
                Some(last) => last.1 = last.1.max(to),
                None => down.push((from, to)),
            }
        }
        down
    }

    fn set(&mut self, knob: Knob, is_during: bool) {
        match knob {
            Knob::Allocation { vdisk, allocation } => {
                let limit = &mut self.limits[vdisk.index()];
                let was = limit.filter(|_| is_during);
                *limit = was.into_iter().chain(allocation.limit_iops).min();
                self.limits_at_end[vdisk.index()] = allocation.limit_iops;
            }
            Knob::SchedNumReqOutstanding { device, .. } => {
                self.own_dsnro.insert(device);
            }
            Knob::PathPolicy { device, policy } => {
                self.policies.insert(device, policy);
            }
            Knob::QueueFull { device, sample_size, .. } => {
                self.queue_full.insert(device, sample_size);
            }
            Knob::DepthByLatency { device, on: true } => {
                self.finds_depth.insert(device);
            }
            Knob::DepthByLatency { device, on: false } if !is_during => {
                self.finds_depth.remove(&device);
            }
            Knob::StorageIoControl { device, control: IoControl::On { .. } } => {
                self.controlled.insert(device);
            }
            Knob::StorageIoControl { device, .. } if !is_during => {
                self.controlled.remove(&device);
            }
            Knob::Advanced { option: Advanced::QFullSampleSize, value } => {
                self.queue_full_of_host = value;
            }
            _ => {}
        }
    }

    /// The device's own sample size, or where that is 0 the host's.
    pub(crate) fn queue_full_sample_size(&self, id: DeviceId) -> u32 {
        let own = self.queue_full.get(&id).copied().filter(|size| *size > 0);
        own.unwrap_or(self.queue_full_of_host)
    }
}

/// What goes out is out until it comes back, or for good.
fn turn<Id: Ord>(all: &mut BTreeMap<Id, Outages>, id: Id, is_out: bool, at: Time) {
    let outages = all.entry(id).or_default();
    let was_out = outages.last().is_some_and(|outage| outage.1 == i64::MAX);
    match outages.last_mut() {
        Some(outage) if was_out && !is_out => outage.1 = at_ms(at),
        _ if is_out && !was_out => outages.push((at_ms(at), i64::MAX)),
        _ => {}
    }
}

/// The devices on which an event ends commands that nobody waited for too long.
fn ended_by(action: &Action, config: &HostConfig) -> Vec<DeviceId> {
    let ends = |(id, disk): &(VdiskId, &VdiskConfig)| match *action {
        Action::Reboot => true,
        Action::RebootGuest(vm) | Action::Power { vm, on: false } => disk.vm == vm,
        Action::Detach { object: Object::Vm(vm), .. } => disk.vm == vm,
        Action::Detach { object: Object::Vdisk(removed), .. } => *id == removed,
        _ => false,
    };
    let disks = (0..).map(VdiskId).zip(&config.vdisks);
    disks.filter(ends).map(|(_, disk)| disk.device).collect()
}

/// When two things were out at one time.
fn both(one: &Outages, other: &Outages) -> Outages {
    let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1))));
    pairs.filter(|(from, to)| from < to).collect()
}

/// Leaves those out that were over before a window began.
fn keep_from<Id: Ord>(all: &mut BTreeMap<Id, Outages>, from: Time) {
    all.retain(|_, outages| {
        outages.retain(|outage| outage.1 > at_ms(from));
        !outages.is_empty()
    });
}

/// A time of the simulation, as its recordings have it.
fn at_ms(at: Time) -> i64 {
    EPOCH_MS + (at.0 / MILLISECOND) as i64
}
