//! What a scenario knows of itself over a window, as facts for the diagnosis: settings, limits,
//! policies and paths as they are at the time; how busy arrays are is in `array_load.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use counters::{
    Counter, DeviceId, DeviceKind, Kind, MILLISECOND, PathId, VdiskId, sorted::Ordered,
};
use diagnose::{
    ArrayFacts, CommandWindow, CutPath, Detour, DeviceFacts, Facts, HostLink, LimitFacts,
    LostOnTheWay, PathFacts, SwitchLink, Thrash, VdiskFacts,
};
use engine::{AdapterConfig, DepthMode, DeviceConfig, PathAccess, SchedPolicy};
use knobs::{Advanced, Allocation, Knob, PathPolicy, Transport};
use levels::{Flow, Measured, mean};
use model::{ArrayUse, Controllers, Mix, PolicyWait};
use scenario::{Action, Array, Host, Scenario, Window};
use sim::{Outcome, WindowView};

use crate::{
    array_load::{self, policy_wait_ms},
    array_queues::ArrayQueues,
    asks::{asks, costs, outstanding_most},
    course::Course,
    demand,
    facts::{lasting, with_depths},
    host_links::HostLinks,
    switch_links::SwitchLinks,
};

/// What an advanced option of a host is when a run begins.
pub(crate) fn advanced(host: &Host, wanted: Advanced) -> u32 {
    let set = host.settings.iter().rev().find_map(|knob| match knob {
        Knob::Advanced { option, value } if *option == wanted => Some(*value),
        _ => None,
    });
    set.unwrap_or_else(|| wanted.default_in(host.config.version))
}

/// The same by the end of a window.
pub(crate) fn advanced_by(
    scenario: &Scenario,
    host: usize,
    window: &Window,
    wanted: Advanced,
) -> u32 {
    let events = scenario.events.iter().rev();
    let mut events = events.filter(|event| event.host == host && event.at < window.to);
    let set = events.find_map(|event| match event.action {
        Action::Set(Knob::Advanced { option, value }) if option == wanted => Some(value),
        _ => None,
    });
    set.unwrap_or_else(|| advanced(&scenario.hosts[host], wanted))
}

/// Bytes that an IOPS limit of a host counts as one I/O by the end of a window.
fn limit_unit(scenario: &Scenario, host: usize, window: &Window) -> u32 {
    let option = |wanted| advanced_by(scenario, host, window, wanted);
    let version = scenario.hosts[host].config.version;
    SchedPolicy::default_in(version, option(Advanced::SchedulerWithReservation))
        .limit_unit(option(Advanced::SchedCostUnit))
}

/// The order in which a device queue is served when a run begins.
pub(crate) fn order(host: &Host, device: &DeviceConfig) -> SchedPolicy {
    let with_reservation = advanced(host, Advanced::SchedulerWithReservation);
    let of_host = SchedPolicy::default_in(host.config.version, with_reservation);
    device.policy.unwrap_or(of_host)
}

/// Whether mClock serves a device queue of a host all through a window.
pub(crate) fn has_mclock(
    scenario: &Scenario,
    host: usize,
    window: &Window,
    device: &DeviceConfig,
) -> bool {
    let Host { config, .. } = &scenario.hosts[host];
    let mut options = vec![advanced(&scenario.hosts[host], Advanced::SchedulerWithReservation)];
    let events = scenario.events.iter();
    for event in events.filter(|event| event.host == host && event.at < window.to) {
        if let Action::Set(Knob::Advanced { option, value }) = event.action
            && option == Advanced::SchedulerWithReservation
        {
            if event.at <= window.from {
                options.clear();
            }
            options.push(value);
        }
    }
    let order = |option| SchedPolicy::default_in(config.version, option);
    let mut orders = options.into_iter().map(|option| device.policy.unwrap_or(order(option)));
    orders.all(|order| order == SchedPolicy::Mclock)
}

/// What each virtual disk of a host has at the end of a window, and the least that was reserved for it in the
/// window.
pub(crate) fn allocations(
    scenario: &Scenario,
    host: usize,
    window: &Window,
) -> Vec<(Allocation, u32)> {
    let disks = scenario.hosts[host].config.vdisks.iter().map(|disk| disk.allocation);
    let mut all: Vec<_> = disks.map(|own| (own, own.reservation_iops)).collect();
    let events = scenario.events.iter();
    for event in events.filter(|event| event.host == host && event.at < window.to) {
        if let Action::Set(Knob::Allocation { vdisk, allocation }) = event.action {
            let (_, least) = all[vdisk.index()];
            let was = if event.at > window.from { least } else { u32::MAX };
            all[vdisk.index()] = (allocation, was.min(allocation.reservation_iops));
        }
    }
    all
}

/// Whether adaptive throttling is on for a device of a host by the end of a window.
pub(crate) fn throttles(
    scenario: &Scenario,
    host: usize,
    window: &Window,
    device: DeviceId,
) -> bool {
    Course::of(scenario, host, window).queue_full_sample_size(device) > 0
}

/// Whether Storage I/O Control lowers the depth of a device of a host at some time of a window.
pub(crate) fn is_controlled(
    scenario: &Scenario,
    host: usize,
    window: &Window,
    device: DeviceId,
) -> bool {
    Course::of(scenario, host, window).controlled.contains(&device)
}

/// Whether a device of a host does not answer at some time of a window, or no path leads to it.
pub(crate) fn is_out(scenario: &Scenario, host: usize, window: &Window, device: DeviceId) -> bool {
    let course = Course::of(scenario, host, window);
    let paths = scenario.hosts[host].config.paths.iter().zip((0..).map(PathId));
    let mut own = paths.filter(|(path, _)| path.device == device);
    course.silent.contains_key(&device)
        || course.lost.contains_key(&device)
        || own
            .all(|(_, path)| [&course.dead, &course.cut].iter().any(|out| out.contains_key(&path)))
}

/// How the paths of a device of a host are used by the end of a window.
pub(crate) fn path_policy(
    scenario: &Scenario,
    host: usize,
    window: &Window,
    device: DeviceId,
) -> PathPolicy {
    let set = Course::of(scenario, host, window).policies.get(&device).copied();
    set.unwrap_or(scenario.hosts[host].config.devices[device.index()].path_policy)
}

/// What of an array whose volumes go from one controller to the other oftener than a failure and its end make each
/// go, where they do.
pub(crate) fn thrash(array: &Array, used: ArrayUse) -> Option<Thrash> {
    let controllers = array.config.queues.controllers?;
    let times = used.handed_over;
    (times > 2 * array.volumes.len() as u64).then(|| Thrash {
        array: array.name.clone(),
        times,
        takeover_ms: controllers.takeover_ns as f64 / MILLISECOND as f64,
    })
}

/// The facts of each host over a window of a run, by its index; `samples` has one for each.
pub(crate) fn facts(
    scenario: &Scenario,
    outcome: &Outcome,
    window_index: usize,
    samples: &[Measured],
) -> Vec<Facts> {
    let (window, views, log) =
        (&scenario.windows[window_index], &outcome.windows[window_index], &outcome.log);
    let each = scenario.arrays.iter().zip(&outcome.used[window_index]);
    let thrash: Vec<Option<Thrash>> = each.map(|(array, used)| thrash(array, *used)).collect();
    let (arrays, locked) =
        (array_load::arrays(scenario, window, views, samples), locked_by_scsi2(scenario));
    let short = array_load::short_of_units(scenario, samples);
    let switches = SwitchLinks::of(scenario, samples);
    let queues = ArrayQueues::of(scenario, window.to, views, advanced);
    let hosts = scenario.hosts.iter().zip(views).enumerate();
    let mut facts: Vec<Facts> = hosts
        .zip(samples)
        .map(|((index, (host, view)), recording)| {
            let mut course = Course::of(scenario, index, window);
            course.tell(log.iter().filter(|line| line.host == index && line.is_in(window)));
            let config = &host.config;
            let disks = config.vdisks.iter().zip(&host.targets);
            let array_of = disks.map(|(disk, target)| (disk.device, target.array)).into_map();
            let mut paths: BTreeMap<DeviceId, Vec<PathId>> = BTreeMap::new();
            for (path, id) in config.paths.iter().zip((0..).map(PathId)) {
                paths.entry(path.device).or_default().push(id);
            }
            let (arrays, thrash, queues, locked) = (&arrays, &thrash, &queues, &locked);
            let (asks, short, switches) = (asks(scenario, index, window), &short, &switches);
            let links = HostLinks::of(host, recording);
            Known {
                scenario,
                window,
                index,
                host,
                view,
                recording,
                arrays,
                thrash,
                queues,
                links,
                switches,
                locked,
                asks,
                outstanding_most: outstanding_most(scenario, index, window),
                costs: costs(scenario, index, window, limit_unit(scenario, index, window)),
                short,
                array_of,
                paths,
                course,
            }
            .facts()
        })
        .collect();
    share_disks(&mut facts);
    for unmet in demand::unmet(scenario, outcome, window_index) {
        facts[unmet.host].demands.insert(unmet.name, unmet.demand);
    }
    facts
}

/// Gives each host the virtual disks of all: the array that they share may be full of others'.
fn share_disks(facts: &mut [Facts]) {
    share(facts, |host| &mut host.vdisks);
    share(facts, |host| &mut host.limits);
}

/// Gives each host what all have of something by the names of disks.
fn share<T: Clone>(facts: &mut [Facts], of: impl Fn(&mut Facts) -> &mut Arc<BTreeMap<String, T>>) {
    let own = facts.iter_mut().map(|host| Arc::unwrap_or_clone(mem::take(of(host))));
    let all = Arc::new(own.flatten().into_map());
    facts.iter_mut().for_each(|host| *of(host) = Arc::clone(&all));
}

/// One host over one window.
struct Known<'a> {
    scenario: &'a Scenario,
    window: &'a Window,
    index: usize,
    host: &'a Host,
    view: &'a WindowView,
    recording: &'a Measured,
    arrays: &'a [Arc<ArrayFacts>],
    /// What of those whose volumes go to and fro.
    thrash: &'a [Option<Thrash>],
    queues: &'a ArrayQueues<'a>,
    links: HostLinks<'a>,
    switches: &'a SwitchLinks<'a>,
    /// The datastores of which some host locks the metadata by reservations.
    locked: &'a BTreeSet<&'a str>,
    /// What comes to each virtual disk at a rate of its own.
    asks: Vec<Option<f64>>,
    /// Of each virtual disk the commands that its guest has outstanding at most, where that is known.
    outstanding_most: Vec<Option<u32>>,
    /// What a command of each counts as before an IOPS limit.
    costs: Vec<Option<f64>>,
    /// By array and volume: those that policies of all volumes together hold.
    short: &'a BTreeMap<(usize, u32), u32>,
    /// The array of each device that has a disk.
    array_of: BTreeMap<DeviceId, usize>,
    /// The paths of each device.
    paths: BTreeMap<DeviceId, Vec<PathId>>,
    course: Course,
}

impl Known<'_> {
    fn facts(&self) -> Facts {
        let config = &self.host.config;
        let devices = config.devices.iter().zip(0..);
        let disks = (0..config.vdisks.len()).map(VdiskId::new);
        let vdisks = || disks.clone().map(|id| (config.disk_name(id), id));
        let adapters = config.adapters.iter();
        let option = |wanted| advanced_by(self.scenario, self.index, self.window, wanted);
        Facts {
            esxi_version: Some(config.version),
            max_io_kb: Some(option(Advanced::DiskMaxIoSize)),
            devices: devices
                .map(|(device, id)| (device.name.clone(), self.device(DeviceId(id))))
                .into_map(),
            vdisks: Arc::new(vdisks().map(|(name, id)| (name, self.vdisk(id))).into_map()),
            limits: Arc::new(vdisks().map(|(name, id)| (name, self.limit(id))).into_map()),
            drivers: adapters
                .map(|adapter| (adapter.name.clone(), adapter.driver.module.into()))
                .into_map(),
            adapter_depths: self.adapter_depths(),
            datastores: self.datastores(),
            ..Facts::default()
        }
    }

    /// What the driver of each adapter gives a device by it, as it was set last: it is in force after a reboot.
    fn adapter_depths(&self) -> BTreeMap<String, u32> {
        let events = self.scenario.events.iter().filter(|event| event.host == self.index);
        let set = events.filter(|event| event.at < self.window.to).filter_map(|event| match event
            .action
        {
            Action::Set(Knob::ModuleDepth { driver, value }) => Some((driver.module, value)),
            _ => None,
        });
        let set: BTreeMap<_, _> = set.into_map();
        let adapters = self.host.config.adapters.iter();
        let depth = |adapter: &AdapterConfig| {
            set.get(adapter.driver.module).copied().unwrap_or(adapter.lun_depth)
        };
        adapters.map(|adapter| (adapter.name.clone(), depth(adapter))).into_map()
    }

    /// What is on each device, as far as its name does not say so already (NFS).
    fn datastores(&self) -> BTreeMap<String, String> {
        let devices = self.host.config.devices.iter().zip(&self.host.datastores);
        let named = devices.map(|(device, names)| (device.name.clone(), names.join(", ")));
        named.filter(|(device, names)| device != names && !names.is_empty()).into_map()
    }

    fn device(&self, id: DeviceId) -> DeviceFacts {
        let config = &self.host.config;
        let device = &config.devices[id.index()];
        let array = self.array_of.get(&id).map(|array| self.array(id, *array));
        let thrash = self.array_of.get(&id).and_then(|array| self.thrash[*array].clone());
        let silent = self.course.silent.get(&id).cloned().unwrap_or_default();
        let before = &self.view.limits_before.devices[id.index()];
        let limits = &self.view.limits.devices[id.index()];
        let congestion_us = limits.congestion_us.or(before.congestion_us);
        let controlled = DeviceFacts {
            sioc: Some(self.course.controlled.contains(&id)),
            congestion_ms: congestion_us.map(|micros| f64::from(micros) / 1000.0),
            external_workloads: self.course.external.get(&id).copied().unwrap_or_default(),
            cut_off: self.course.cut_off(self.paths.get(&id).into_iter().flatten()),
            ..DeviceFacts::default()
        };
        if device.kind == DeviceKind::Nfs {
            let inside = self.course.least_depth.get(&id).copied().unwrap_or(u32::MAX);
            let least = inside.min(before.dqlen).min(limits.dqlen);
            let is_lower = |least: &u32| *least < limits.max_queue_depth;
            let sioc_depth = Some(least).filter(is_lower).filter(|_| controlled.sioc == Some(true));
            let (array_queue, window) = (self.queues.before(self.index, id), self.window(id));
            let max_queue_depth = lasting(before.max_queue_depth, limits.max_queue_depth);
            let max_queue_depth = max_queue_depth.filter(|depth| *depth < u32::MAX);
            return DeviceFacts {
                max_queue_depth,
                array,
                array_queue,
                window,
                link: self.link(id),
                switch_link: self.switch_link(id),
                silent,
                sioc_depth,
                ..controlled
            };
        }
        let known = DeviceFacts {
            has_own_dsnro: Some(device.dsnro.is_some() || self.course.own_dsnro.contains(&id)),
            is_protocol_endpoint: device.kind == DeviceKind::ProtocolEndpoint,
            is_flash: false,
            locks_by_scsi2: Some(
                self.host.datastores[id.index()].iter().any(|name| self.locked.contains(&**name)),
            ),
            queue_full_sample_size: Some(self.course.queue_full_sample_size(id)),
            finds_depth: self.course.finds_depth.contains(&id),
            paths: Some(self.paths(id)),
            cut: self.cut(id),
            depth_of_path: self.depth_of_path(id),
            array,
            array_queue: self.queues.before(self.index, id),
            thrash,
            window: self.window(id),
            link: self.link(id),
            switch_link: self.switch_link(id),
            lost_on_the_way: self
                .lost_segments(id)
                .into_iter()
                .chain(self.other_controller(id))
                .collect(),
            silent,
            ended_ms: self.course.ended.get(&id).cloned().unwrap_or_default(),
            lost: self.course.lost.get(&id).cloned().unwrap_or_default(),
            ..controlled
        };
        with_depths(known, before, limits)
    }

    /// The array of a device, to which time on links belongs as the size of the device's commands has it, and time in a
    /// cache as their writes do.
    fn array(&self, id: DeviceId, array: usize) -> Arc<ArrayFacts> {
        let known = &self.arrays[array];
        let config = &self.scenario.arrays[array].config;
        let (size_kib, reads) = self.commands(id);
        let wire_ms = array_load::wire_ms(config, size_kib);
        let service_ms = array_load::service_ms(config, reads).map(|ms| ms + wire_ms);
        let moving_ms = array_load::served_bytes_ms(config, size_kib);
        match service_ms == known.service_ms && moving_ms == 0.0 {
            true => known.clone(),
            false => ArrayFacts { service_ms, wire_ms, moving_ms, ..(**known).clone() }.into(),
        }
    }

    /// The mean size of the commands of a device, 0 where it has none, and the part of what they move that is read.
    fn commands(&self, id: DeviceId) -> (f64, f64) {
        let device = &self.host.config.devices[id.index()];
        let kind = if device.kind == DeviceKind::Nfs { Kind::NfsVolume } else { Kind::Device };
        let all: Vec<usize> = (0..self.recording.len()).collect();
        let flow = self.recording.find(kind, &device.name).map(|row| Flow::of(self.recording, row));
        let of_flow = |flow: Flow<'_>| Some((flow.size_kib(&all)?, flow.read_part(&all)?));
        flow.and_then(of_flow).unwrap_or((0.0, 1.0))
    }

    /// The window of the nexuses by which a device is reached, and what its commands wait for it.
    fn window(&self, id: DeviceId) -> Option<CommandWindow> {
        let Host { config, initiator, .. } = self.host;
        let windows = self.paths.get(&id)?.iter().filter_map(|path| {
            Some((initiator.nexus(path.index())?.window?, config.paths[path.index()].adapter))
        });
        let (takes, adapter) = windows.min()?;
        let adapter = &config.adapters[adapter.index()];
        Some(CommandWindow {
            adapter: (adapter.driver.transport == Transport::Iscsi).then(|| adapter.name.clone()),
            takes,
            wait_ms: self.mean_ms(&self.view.waits.windows, id),
        })
    }

    /// The link of a port of the host that commands of a device cross, if any does.
    fn link(&self, id: DeviceId) -> Option<HostLink> {
        let time_ms = self.mean_ms(&self.view.waits.links, id);
        self.links.before(self.alive(id)?, (self.commands(id).0, time_ms))
    }

    /// The link of a switch that they cross, if any does.
    fn switch_link(&self, id: DeviceId) -> Option<SwitchLink> {
        let waits = &self.view.waits.switches;
        let is_used = |path: PathId| waits.get(path.index()).is_some_and(|wait| wait.commands > 0);
        let time = (self.commands(id).0, switch_ms(self.host, &self.view.waits.switches, id));
        self.switches.before(self.host, (self.alive(id)?, is_used), time)
    }

    /// The paths of a device that are never down.
    fn alive(&self, id: DeviceId) -> Option<impl Iterator<Item = PathId> + Clone> {
        let paths = self.paths.get(&id)?.iter().copied();
        Some(paths.filter(|path| !self.course.dead.contains_key(path)))
    }

    /// What commands of a device lose to segments that are lost: those that are hit, and all that is behind them on the
    /// connection [RFC9293], which is what neither the array nor the rest of the way takes.
    fn lost_segments(&self, id: DeviceId) -> Option<LostOnTheWay> {
        let Host { config, initiator, .. } = self.host;
        let WindowView { recording, waits, .. } = self.view;
        let row = recording.find(Kind::Device, &config.devices[id.index()].name)?;
        let ms = |counter| recording.value(row, counter, 0);
        let [own_ms, link_ms, window_ms] =
            [&waits.losses, &waits.links, &waits.windows].map(|waits| self.mean_ms(waits, id));
        let round_trip_ns = self.scenario.arrays[*self.array_of.get(&id)?].config.round_trip_ns;
        // Both links are crossed at once.
        let link_ms = link_ms.max(switch_ms(self.host, &self.view.waits.switches, id));
        let way_ms = link_ms + window_ms + round_trip_ns as f64 / MILLISECOND as f64;
        let on_the_way = ms(Counter::DriverLatency).zip(ms(Counter::ArrayLatency));
        let behind_ms = on_the_way.map_or(0.0, |(davg, array)| davg - array - way_ms);
        let (loss, adapter) = self.paths.get(&id)?.iter().find_map(|path| {
            Some((initiator.nexus(path.index())?.loss?, config.paths[path.index()].adapter))
        })?;
        let to = Detour::LostSegments {
            adapter: config.adapters[adapter.index()].name.clone(),
            share: loss.share,
            ack_ms: loss.ack_ns as f64 / MILLISECOND as f64,
        };
        (own_ms > 0.0).then(|| LostOnTheWay { to, wait_ms: own_ms.max(behind_ms) })
    }

    /// What commands of a device lose by paths to the controller that does not have its volume, as long as both are there.
    fn other_controller(&self, id: DeviceId) -> Option<LostOnTheWay> {
        let array = &self.scenario.arrays[*self.array_of.get(&id)?];
        let controllers = array.config.queues.controllers.filter(Controllers::keep_volumes)?;
        let rows: BTreeMap<&str, _> = self
            .recording
            .of_kind(Kind::Path)
            .map(|(id, path)| (path.name.as_str(), id))
            .into_map();
        let (mut all, mut by_other, mut has_optimized) = (0.0, 0.0, false);
        for path in self.paths.get(&id)? {
            let config = &self.host.config.paths[path.index()];
            let is_optimized = config.access == PathAccess::Optimized;
            has_optimized |= is_optimized
                && !self.course.dead.contains_key(path)
                && !self.course.detached.contains(path);
            let Some(&row) = rows.get(&*config.name) else { continue };
            let samples = 0..self.recording.len();
            let rates = samples.map(|s| self.recording.value(row, Counter::Commands, s));
            let rate = mean(rates).unwrap_or_default();
            all += rate;
            by_other += if is_optimized { 0.0 } else { rate };
        }
        let share = if all > 0.0 { by_other / all } else { 0.0 };
        let extra_ms = controllers.extra_ns as f64 / MILLISECOND as f64;
        let to =
            Detour::OtherController { array: array.name.clone(), share, extra_ms, has_optimized };
        let wait_ms = share * extra_ms;
        (wait_ms > 0.0).then_some(LostOnTheWay { to, wait_ms })
    }

    /// The mean of what commands of a device waited for something, in milliseconds.
    fn mean_ms(&self, waits: &[(VdiskId, PolicyWait)], id: DeviceId) -> f64 {
        mean_ms(self.host, waits, id)
    }

    /// What one path takes, where those that are up are added.
    fn depth_of_path(&self, id: DeviceId) -> Option<u32> {
        let config = &self.host.config;
        let path = self.paths.get(&id)?.first()?;
        let adapter = &config.adapters[config.paths[path.index()].adapter.index()];
        (config.depth_mode == DepthMode::SumOfActivePaths).then_some(adapter.lun_depth)
    }

    fn vdisk(&self, id: VdiskId) -> VdiskFacts {
        let config = &self.host.config;
        let (disk, target) = (&config.vdisks[id.index()], &self.host.targets[id.index()]);
        let before = self.view.limits_before.vdisks[id.index()];
        let limits = self.view.limits.vdisks[id.index()];
        VdiskFacts {
            depth: lasting(before.0, limits.0),
            adapter_depth: lasting(before.1, limits.1),
            guest: self.host.guests[disk.vm.index()],
            policy_wait_ms: policy_wait_ms(self.view, id),
            short_of_units: self.short.get(&(target.array, target.volume)).copied(),
            asks_iops: self.asks[id.index()],
            outstanding_most: self.outstanding_most[id.index()],
        }
    }

    fn limit(&self, id: VdiskId) -> LimitFacts {
        let policy = self.course.policies_at_end[id.index()];
        let own = LimitFacts {
            iops: self.course.limits[id.index()],
            cost: self.costs[id.index()],
            together: None,
            at_end: self.course.limits_at_end[id.index()],
            policy_at_end: policy.map(|policy| self.host.policies[policy].name.clone()),
        };
        match self.course.limits_together(&self.host.config, id) {
            Some(all) => own.with_all(all),
            None => own,
        }
    }

    fn paths(&self, id: DeviceId) -> PathFacts {
        let config = &self.host.config;
        let policy = self.course.policies.get(&id).copied();
        let policy = policy.unwrap_or(config.devices[id.index()].path_policy);
        let mine = self.paths.get(&id).into_iter().flatten();
        let mine = mine.map(|path| (&config.paths[path.index()], *path));
        let is_alive = |path: &PathId| !self.course.dead.contains_key(path);
        let alive: Vec<_> = mine.clone().filter(|(_, path)| is_alive(path)).collect();
        let optimized =
            alive.iter().filter(|(path, _)| path.access == PathAccess::Optimized).count();
        let (name, round_robin_iops, working) = match policy {
            PathPolicy::Fixed => ("VMW_PSP_FIXED", None, 1),
            PathPolicy::MostRecentlyUsed => ("VMW_PSP_MRU", None, 1),
            PathPolicy::RoundRobin { iops, .. } => ("VMW_PSP_RR", Some(iops), optimized),
            PathPolicy::Latency { .. } => ("VMW_PSP_RR", None, optimized),
        };
        let down = mine.map(|(path, id)| (path.name.clone(), self.course.down(id)));
        let down = down.filter(|(_, outages)| !outages.is_empty());
        PathFacts {
            policy: name.into(),
            round_robin_iops,
            working: working.min(alive.len()),
            dead: Some(down.into_map()),
        }
    }

    /// The paths of a device that lead nowhere before the host finds that.
    fn cut(&self, id: DeviceId) -> Vec<CutPath> {
        let [before, after] = [&self.view.counters_before, &self.view.counters];
        let cut = self.paths.get(&id).into_iter().flatten().filter_map(|path| {
            let times = self.course.cut.get(path)?.clone();
            let [then, now] = [before, after].map(|counters| counters.paths[path.index()].active);
            Some(CutPath {
                name: self.host.config.paths[path.index()].name.clone(),
                times,
                is_used: now.mean_since(&then, before.at, after.at) > 0.0,
                outstanding: now.now(),
            })
        });
        cut.collect()
    }
}

/// The mean of what commands of a device of a host waited for something, in milliseconds.
pub(crate) fn mean_ms(host: &Host, waits: &[(VdiskId, PolicyWait)], id: DeviceId) -> f64 {
    let vdisks = &host.config.vdisks;
    let of_device = waits.iter().filter(|(disk, _)| vdisks[disk.index()].device == id);
    mean_of(of_device.map(|(_, wait)| wait))
}

/// The mean of what commands of a device of a host are on links of switches, in milliseconds.
pub(crate) fn switch_ms(host: &Host, waits: &[PolicyWait], id: DeviceId) -> f64 {
    let of_paths = host.config.paths.iter().zip(waits);
    mean_of(of_paths.filter(|(path, _)| path.device == id).map(|(_, wait)| wait))
}

/// What commands waited in the mean, in milliseconds.
fn mean_of<'a>(waits: impl Iterator<Item = &'a PolicyWait>) -> f64 {
    let (commands, wait_ns) = waits.fold((0, 0), |(commands, wait_ns), wait| {
        (commands + wait.commands, wait_ns + wait.wait_ns)
    });
    wait_ns as f64 / commands.max(1) as f64 / MILLISECOND as f64
}

/// The datastores of which some host locks the metadata by reservations, be it one that sticks.
pub(crate) fn locked_by_scsi2(scenario: &Scenario) -> BTreeSet<&str> {
    let mut stores = BTreeSet::new();
    for work in scenario.workloads.iter().filter(|work| work.config.mix == Mix::Reserve) {
        stores.extend(stores_of(&scenario.hosts[work.host], work.vdisk));
    }
    for host in &scenario.hosts {
        for (disk, target) in host.targets.iter().enumerate() {
            let volume = &scenario.arrays[target.array].config.volumes[target.volume as usize];
            if volume.stuck.is_some() {
                stores.extend(stores_of(host, VdiskId::new(disk)));
            }
        }
    }
    stores
}

/// What is on the device of a virtual disk.
fn stores_of(host: &Host, disk: VdiskId) -> impl Iterator<Item = &str> {
    let device = host.config.vdisks[disk.index()].device;
    host.datastores[device.index()].iter().map(String::as_str)
}
