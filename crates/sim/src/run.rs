//! A whole run: components side by side, samples, windows, and what comes out.

use counters::sorted::{sort, sort_by_key};
use std::{iter, sync::Arc};

use counters::{HostSnapshot, Recording, Sampler, Time, VdiskId};
use engine::{DeviceLimits, Engine};
use knobs::CONGESTION_PERIOD_NS;
use model::{ArrayUse, PolicyWait, Switches};
use scenario::Scenario;

use crate::{
    Watch,
    component::{Arrays, Component},
    host::Host,
    machine::{LogLine, Machine, PolicyWaits, Span},
    sharing::{self, Sharing},
    windows::Windows,
};

/// What a run yields.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The samples of each host, as [`Scenario::hosts`].
    pub recordings: Vec<Recording>,
    /// For each of [`Scenario::windows`], and in it for each host, what was seen over it.
    pub windows: Vec<Vec<WindowView>>,
    /// For each of [`Scenario::windows`], and in it for each of [`Scenario::arrays`], how it was
    /// used.
    pub used: Vec<Vec<ArrayUse>>,
    /// When workloads ran, in order of their beginning.
    pub spans: Vec<Span>,
    /// What would be in vmkernel.log, in order of time.
    pub log: Vec<LogLine>,
    /// I/Os completed.
    pub ios: u64,
}

/// One host over one window.
#[derive(Clone, Debug)]
pub struct WindowView {
    /// One sample that spans the window.
    pub recording: Recording,
    /// The counters at its beginning; where that is the run's they are 0, and so are the limits among them.
    pub counters_before: Arc<HostSnapshot>,
    /// The counters at its end.
    pub counters: Arc<HostSnapshot>,
    /// The limits at its beginning.
    pub limits_before: Limits,
    /// The limits at its end.
    pub limits: Limits,
    /// What commands waited for policies of the arrays, for room in a nexus, on links of hosts and switches, and for
    /// acknowledgements.
    pub waits: Waits,
}

/// What commands waited for below a host.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// Policies of the arrays.
    pub policies: PolicyWaits,
    /// Windows of the nexuses by which they are reached.
    pub windows: PolicyWaits,
    /// Links of the host's own ports, and how long data cross them.
    pub links: PolicyWaits,
    /// Acknowledgements of segments that were lost: the array sends the next one when one has come.
    pub losses: PolicyWaits,
    /// Links of switches, and how long data cross them: by path, of all that the host has; none without switches.
    pub switches: Vec<PolicyWait>,
}

impl Waits {
    fn of(arrays: &Arrays, switches: &Switches, host: &Host) -> Self {
        let of_disks =
            |waits: &[PolicyWait]| (0..).map(VdiskId).zip(waits.iter().copied()).collect();
        let [windows, links, losses] = host.nexus_waits().map(of_disks);
        let switches = switches.waits(host.index).to_vec();
        Self { policies: arrays.policy_waits(host), windows, links, losses, switches }
    }

    /// What was waited since.
    fn since(&mut self, before: Self) {
        let pairs = [
            (&mut self.policies, before.policies),
            (&mut self.windows, before.windows),
            (&mut self.links, before.links),
            (&mut self.losses, before.losses),
        ];
        let of_disks = pairs.into_iter().flat_map(|(waits, before)| {
            waits.iter_mut().zip(before).map(|((_, wait), (_, before))| (wait, before))
        });
        for (wait, before) in of_disks.chain(self.switches.iter_mut().zip(before.switches)) {
            wait.commands -= before.commands;
            wait.wait_ns -= before.wait_ns;
        }
    }
}

/// The limits in force on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// By device.
    pub devices: Vec<DeviceLimits>,
    /// By virtual disk: its own depth and that of its adapter.
    pub vdisks: Vec<(u32, u32)>,
}

/// What is told of a run under way: the virtual time that the slowest component has reached.
pub trait Progress: Sync {
    /// A component has reached `at`; `ios` more I/Os have completed.
    fn reached(&self, at: Time, ios: u64);
}

/// How often a run tells its progress at least.
const REPORTS: u64 = 1000;
/// I/Os between two reports, roughly, where a thousandth of the run has more: then that takes long.
const IOS_BETWEEN: u64 = 1 << 20;
/// Virtual nanoseconds until the first report, before it is known how much happens.
const FIRST_NS: u64 = 1_000;

/// Nobody is told.
impl Progress for () {
    fn reached(&self, _at: Time, _ios: u64) {}
}

/// The wall-clock time of [`Time::ZERO`] in recordings: 2020-01-01 00:00:00 UTC.
pub const EPOCH_MS: i64 = 1_577_836_800_000;

/// Runs a scenario in virtual time, on up to `threads` threads: its components, and hosts of one whose
/// arrays are a round trip away. One seed gives one result, whatever the number of threads.
#[must_use]
pub fn run(scenario: &Scenario, threads: usize, progress: &dyn Progress) -> Outcome {
    let components = scenario.parts();
    let threads_each = (threads / components.len().max(1)).max(1);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut parts = Vec::new();
        loop {
            let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(groups) = components.get(index) else { return parts };
            parts.push(run_component(scenario, groups, threads_each, progress));
        }
    };
    let threads = threads.clamp(1, components.len().max(1));
    let parts = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut parts = work();
        for other in others {
            parts.extend(other.join().expect("a component's thread ends by itself"));
        }
        parts
    });
    Outcome::join(scenario, parts)
}

/// Runs one component: its groups of hosts apart, or all together.
fn run_component(
    scenario: &Scenario,
    groups: &[Vec<usize>],
    threads: usize,
    progress: &dyn Progress,
) -> Part {
    let none = iter::repeat(());
    let Some(apart_ns) = Windows::length_ns(scenario, groups) else {
        let mut hosts = groups.concat();
        hosts.sort_unstable();
        let component = Component::new(scenario, &[hosts], none);
        return Part::run(component, progress, Component::run_until).0;
    };
    let component = Component { apart_ns, ..Component::new(scenario, groups, none) };
    let mut windows = Windows::new(&component, threads);
    Part::run(component, progress, |component, limit| windows.run_until(component, limit)).0
}

/// Runs a scenario as one component, in order, before the eyes of `watch`.
pub fn run_watched<W: Watch>(scenario: &Scenario, watch: W) -> (Outcome, W) {
    let hosts: Vec<_> = (0..scenario.hosts.len()).collect();
    let component = Component::new(scenario, &[hosts], [watch]);
    let (part, mut watches) = Part::run(component, &(), Component::run_until);
    let watch = watches.pop().expect("all hosts run together");
    (Outcome::join(scenario, vec![part]), watch)
}

/// What one component yields.
struct Part {
    hosts: Vec<HostPart>,
    used: Vec<Vec<ArrayUse>>,
    spans: Vec<Span>,
    log: Vec<LogLine>,
    ios: u64,
}

/// What one host yields.
struct HostPart {
    index: usize,
    recording: Recording,
    windows: Vec<WindowView>,
}

/// The rows of one host: of its samples, and of the windows that are over.
struct HostRows {
    /// The host's index in the scenario.
    host: usize,
    /// From the first row on: who is who takes as much memory as a disk that is used.
    rows: Option<Box<(Sampler, Recording)>>,
    /// Of a window that has begun.
    begins: Vec<Option<Box<Begin>>>,
    windows: Vec<Option<Box<WindowView>>>,
}

/// What a host was like when a window began.
struct Begin {
    /// None at the beginning of the run, when nothing was counted: on many hosts such zeroes add up.
    counters: Option<Arc<HostSnapshot>>,
    limits: Limits,
    waits: Waits,
}

impl Part {
    /// Runs a component from one moment at which something is read to the next, by `run`.
    fn run<'a, W: Watch>(
        mut component: Component<'a, W>,
        progress: &dyn Progress,
        mut run: impl FnMut(&mut Component<'a, W>, Time),
    ) -> (Self, Vec<W>) {
        let scenario = component.scenario;
        let mut rows = component.rows();
        let mut sharing = Sharing::new(&component);
        // A snapshot that nobody needs any longer: the next is filled in its memory.
        let mut spare = HostSnapshot::default();
        let mut used = vec![Vec::new(); scenario.windows.len()];
        let (mut told, mut reached) = (0, Time::ZERO);
        let (least_ns, most_ns) =
            (component.apart_ns.max(1), scenario.duration_ns.div_ceil(REPORTS));
        let most_ns = most_ns.max(least_ns);
        let mut step_ns = FIRST_NS.clamp(least_ns, most_ns);
        for at in moments(scenario) {
            while reached < at {
                reached = at.min(reached + step_ns);
                run(&mut component, reached);
                let ios = component.ios();
                progress.reached(reached, ios - told);
                let is_much = ios - told > IOS_BETWEEN;
                step_ns = if is_much { step_ns / 2 } else { 2 * step_ns };
                step_ns = step_ns.clamp(least_ns, most_ns);
                told = ios;
            }
            let mut rows = rows.iter_mut();
            for machine in &mut component.machines {
                let outside = (&component.arrays, &component.switches);
                read_hosts(machine, outside, at, &mut rows, &mut spare);
            }
            read_uses(&component, at, &mut used);
            if at.0.is_multiple_of(CONGESTION_PERIOD_NS) && at.0 < scenario.duration_ns {
                sharing.share(&mut component, at);
            }
        }
        let hosts = rows.into_iter().map(HostRows::finish).collect();
        let mut part =
            Self { hosts, used, spans: Vec::new(), log: Vec::new(), ios: component.ios() };
        let watches = component.machines.into_iter().map(|mut machine| {
            machine.end(Time(scenario.duration_ns));
            part.log.append(&mut machine.log);
            part.spans.append(&mut machine.spans);
            machine.outside.watch
        });
        let watches = watches.collect();
        (part, watches)
    }
}

impl<W: Watch> Component<'_, W> {
    /// The rows of all hosts, at the beginning.
    fn rows(&self) -> Vec<HostRows> {
        let of = |machine: &Machine<'_, W>| {
            let hosts = machine.hosts.iter();
            let rows = hosts.map(|host| {
                let mut rows = HostRows::new(self.scenario, host.index);
                let waits = || Waits::of(&self.arrays, &self.switches, host);
                rows.begin(self.scenario, (Time::ZERO, None), &host.engine, waits);
                rows
            });
            rows.collect::<Vec<_>>()
        };
        self.machines.iter().flat_map(of).collect()
    }
}

/// Reads the next hosts. One that was read for the last time goes: what its stack took is its report's.
fn read_hosts<'r, W: Watch>(
    machine: &mut Machine<'_, W>,
    (arrays, switches): (&Arrays, &Switches),
    at: Time,
    rows: &mut impl Iterator<Item = &'r mut HostRows>,
    spare: &mut HostSnapshot,
) {
    let scenario = machine.scenario;
    let is_over = at.0 == scenario.duration_ns;
    let hosts = std::mem::take(&mut machine.hosts);
    if !is_over {
        machine.hosts.reserve_exact(hosts.len());
    }
    for (index, host) in hosts.into_iter().enumerate() {
        let Some(rows) = rows.next() else { return };
        let mut now = std::mem::take(spare);
        machine.snapshot(at, index, &host, &mut now);
        let waits = || Waits::of(arrays, switches, &host);
        let old = rows.read(scenario, Arc::new(now), &host.engine, waits);
        *spare = Arc::try_unwrap(old).unwrap_or_default();
        if is_over {
            machine.leave(at, &host);
            host.engine.snapshot(at, spare);
            machine.outside.watch.counted(host.index, spare);
        } else {
            machine.hosts.push(host);
        }
    }
}

/// At the beginning of a window how arrays have been used so far, at its end how they were used since.
fn read_uses<W>(component: &Component<'_, W>, at: Time, windows: &mut [Vec<ArrayUse>]) {
    for (window, used) in component.scenario.windows.iter().zip(windows) {
        if window.from == at || window.to == at {
            let so_far = component.arrays.used();
            used.resize(so_far.len(), ArrayUse::default());
            for (used, now) in used.iter_mut().zip(so_far) {
                used.served = now.served - used.served;
                used.beyond = now.beyond - used.beyond;
                used.handed_over = now.handed_over - used.handed_over;
                used.kept = now.kept - used.kept;
            }
        }
    }
}

/// Every moment after the beginning at which counters are read, ascending: samples, and both ends of windows.
fn moments(scenario: &Scenario) -> Vec<Time> {
    let samples = (1..).map(|n| n * scenario.sample_ns).take_while(|at| *at < scenario.duration_ns);
    let mut moments: Vec<_> = samples.map(Time).collect();
    moments.extend(scenario.windows.iter().flat_map(|window| [window.from, window.to]));
    moments.extend(sharing::moments(scenario));
    moments.push(Time(scenario.duration_ns));
    moments.retain(|at| *at > Time::ZERO);
    sort(&mut moments);
    moments.dedup();
    moments
}

impl HostRows {
    fn new(scenario: &Scenario, host: usize) -> Self {
        let windows = scenario.windows.len();
        Self {
            host,
            rows: None,
            begins: (0..windows).map(|_| None).collect(),
            windows: (0..windows).map(|_| None).collect(),
        }
    }

    /// The sampler, and the recording of its samples; `now` is any snapshot of the host.
    fn rows(&mut self, scenario: &Scenario, now: &HostSnapshot) -> &mut (Sampler, Recording) {
        self.rows.get_or_insert_with(|| {
            let inventory = scenario.hosts[self.host].config.inventory();
            let sampler = Sampler::new(inventory, EPOCH_MS, Arc::new(now.uncounted()));
            let samples = sampler.recording();
            Box::new((sampler, samples))
        })
    }

    /// Notes what windows begin with that begin at a moment.
    fn begin(
        &mut self,
        scenario: &Scenario,
        (at, counters): (Time, Option<&Arc<HostSnapshot>>),
        engine: &Engine,
        waits: impl Fn() -> Waits,
    ) {
        for (begin, window) in self.begins.iter_mut().zip(&scenario.windows) {
            if window.from == at {
                let (counters, limits) = (counters.cloned(), Limits::of(engine));
                *begin = Some(Box::new(Begin { counters, limits, waits: waits() }));
            }
        }
    }

    /// Reads what a moment after the beginning asks for; gives back a snapshot that is no longer needed here.
    fn read(
        &mut self,
        scenario: &Scenario,
        now: Arc<HostSnapshot>,
        engine: &Engine,
        waits: impl Fn() -> Waits,
    ) -> Arc<HostSnapshot> {
        let at = now.at;
        let mut over = None;
        if at.0.is_multiple_of(scenario.sample_ns) || at.0 == scenario.duration_ns {
            let (sampler, samples) = self.rows(scenario, &now);
            over = sampler.sample(&now, samples);
        }
        self.begin(scenario, (at, Some(&now)), engine, &waits);
        for (index, window) in scenario.windows.iter().enumerate() {
            if window.to == at
                && let Some(begin) = self.begins[index].take()
            {
                let Begin { counters, limits: limits_before, waits: waits_before } = *begin;
                let counters_before = counters.unwrap_or_else(|| Arc::new(now.uncounted()));
                let (sampler, _) = self.rows(scenario, &now);
                let mut recording = sampler.recording();
                sampler.add_row(&counters_before, &now, &mut recording);
                let (counters, limits) = (Arc::clone(&now), Limits::of(engine));
                let mut waits = waits();
                waits.since(waits_before);
                self.windows[index] = Some(Box::new(WindowView {
                    recording,
                    counters_before,
                    counters,
                    limits_before,
                    limits,
                    waits,
                }));
            }
        }
        over.unwrap_or(now)
    }

    fn finish(self) -> HostPart {
        let windows = self.windows.into_iter().flatten().map(|view| *view).collect();
        let recording = self.rows.map(|rows| rows.1).unwrap_or_default();
        HostPart { index: self.host, recording, windows }
    }
}

impl Limits {
    fn of(engine: &Engine) -> Self {
        let devices = (0..).map_while(|id| engine.device_limits(counters::DeviceId(id)));
        let vdisks = (0..).map_while(|id| engine.vdisk_depths(counters::VdiskId(id)));
        Self { devices: devices.collect(), vdisks: vdisks.collect() }
    }
}

impl Outcome {
    /// Puts the hosts of all components back in the scenario's order.
    fn join(scenario: &Scenario, parts: Vec<Part>) -> Self {
        let ios = parts.iter().map(|part| part.ios).sum();
        let (mut hosts, mut log, mut spans) = (Vec::new(), Vec::new(), Vec::new());
        let mut used =
            vec![vec![ArrayUse::default(); scenario.arrays.len()]; scenario.windows.len()];
        for part in parts {
            hosts.extend(part.hosts);
            log.extend(part.log);
            spans.extend(part.spans);
            for (all, own) in used.iter_mut().flatten().zip(part.used.iter().flatten()) {
                all.served += own.served;
                all.beyond += own.beyond;
                all.handed_over += own.handed_over;
                all.kept += own.kept;
            }
        }
        sort_by_key(&mut hosts, |host| host.index);
        sort_by_key(&mut log, |line| (line.at, line.host));
        sort_by_key(&mut spans, |span| (span.from, span.workload));
        let (recordings, windows) = (Vec::new(), Vec::new());
        let mut outcome = Self { recordings, windows, used, spans, log, ios };
        outcome.windows.resize_with(scenario.windows.len(), Vec::new);
        for host in hosts {
            outcome.recordings.push(host.recording);
            for (window, view) in outcome.windows.iter_mut().zip(host.windows) {
                window.push(view);
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::Source;
    use counters::Occupancy;

    /// So a window and a sample that begin with the run need no snapshot of its beginning.
    #[test]
    fn nothing_is_counted_when_a_run_begins() {
        let read = |path: &Path| fs::read_to_string(path).map_err(|error| error.to_string());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let is_toml = |path: &Path| path.extension().is_some_and(|ending| ending == "toml");
        for path in files.filter(|path| is_toml(path)) {
            let (_, scenario) = Source::load(&path, Vec::new(), &read).unwrap();
            let hosts: Vec<_> = (0..scenario.hosts.len()).collect();
            let component = Component::new(&scenario, &[hosts], [()]);
            let machine = &component.machines[0];
            for (index, host) in machine.hosts.iter().enumerate() {
                let mut found = HostSnapshot::default();
                machine.snapshot(Time::ZERO, index, host, &mut found);
                for device in &mut found.devices {
                    device.depth = 0;
                    let (_, area) = device.depth_over_time.parts();
                    device.depth_over_time = Occupancy::of_parts((0, area));
                }
                found.vdisks.iter_mut().for_each(|disk| disk.shares = 0);
                let gates = found.paths.iter_mut().chain(&mut found.adapters);
                gates.for_each(|gate| gate.depth = 0);
                assert_eq!(found, found.uncounted(), "{}", path.display());
            }
        }
    }
}
