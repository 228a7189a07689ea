//! What guests sent over a stretch of time, as journals have it, put on the disks of the file that their hosts were
//! run or served from: the load is the recorded one then, and the arrays are those of the file.

use std::path::PathBuf;

use counters::{Counter, DeviceId, HostSnapshot, Kind, MILLISECOND, Time, VdiskId, VmId};
use engine::{Engine, HostConfig, Input, Output, Request};
use journal::Look;
use knobs::{Effect, Knob, TargetId};
use levels::{Column, Measured};
use model::{Tape, Taped, WorkloadConfig};
use scenario::{Host, Scenario, Window, Workload};
use serde::Serialize;

use crate::{Result, journals, text::whole};

/// The part of the stretch that is played before it counts: so many of it are the whole.
const WARMUP: u64 = 10;

/// What was sent over a stretch of time, and the file to whose arrays it goes.
#[derive(Serialize)]
pub(crate) struct Tapes {
    /// The file.
    on: String,
    /// How long the stretch is, in nanoseconds.
    #[serde(skip)]
    span_ns: u64,
    /// Virtual disks to which something was sent.
    disks: usize,
    /// Requests of theirs.
    requests: usize,
    /// Disks of which the guests are not known to wait for their answers.
    #[serde(skip)]
    unsure: Vec<String>,
    #[serde(skip)]
    loads: Vec<Load>,
}

/// What was sent to the disks of a host, of one component of it.
struct Load {
    config: HostConfig,
    /// What was set before it, and whether it is in force.
    set: Vec<(Knob, bool)>,
    /// By virtual disk.
    disks: Vec<Sent>,
    /// Whether something else than I/O came meanwhile.
    is_changed: bool,
}

/// What was sent to a virtual disk.
#[derive(Clone, Default)]
struct Sent {
    requests: Vec<Taped>,
    /// The answers in their order, in nanoseconds from the first instant.
    answers_ns: Vec<u64>,
    /// Requests that are outstanding, those that were at the first instant, and the most that there were.
    outstanding: u32,
    at_first: u32,
    most: u32,
}

/// Collects what is sent from one moment to another.
struct Collector {
    /// Begin and end in milliseconds since 1970.
    window_ms: (i64, i64),
    /// The same by the clock of the journal.
    from: Time,
    to: Time,
    loads: Vec<Load>,
    /// Those of hosts that have other parts now.
    before: Vec<Load>,
}

/// The whole samples of a window, from the first on, that have no more than so many commands, or the first: begin and
/// end.
pub(crate) fn whole_samples(recording: &Measured, (from, to): (i64, i64), most: f64) -> (i64, i64) {
    let of_kind = |kind| recording.of_kind(kind).map(|(id, _)| id);
    let ids = of_kind(Kind::Device).chain(of_kind(Kind::NfsVolume));
    let columns: Vec<_> = ids.map(|id| Column::of(recording, id, Counter::Commands)).collect();
    let (mut commands, mut found) = (0.0, None);
    for (sample, two) in recording.times_ms.windows(2).enumerate() {
        let [before, at] = [two[0], two[1]];
        if at <= from || at > to {
            continue;
        }
        let rate: f64 = columns.iter().filter_map(|column| column.at(sample + 1)).sum();
        commands += rate * (at - before) as f64 / 1000.0;
        let begin = found.map_or(before, |(begin, _)| begin);
        if found.is_some() && commands > most {
            break;
        }
        found = Some((begin, at));
    }
    found.unwrap_or((from, to))
}

impl Tapes {
    /// What guests sent from one instant to another, in milliseconds since 1970, by their journals.
    ///
    /// # Errors
    /// One line, when a journal cannot be read, or no guest sent anything.
    pub(crate) fn read(files: &[PathBuf], on: &str, window_ms: (i64, i64)) -> Result<Self> {
        let collector = || Collector {
            window_ms,
            from: Time::NEVER,
            to: Time::NEVER,
            loads: Vec::new(),
            before: Vec::new(),
        };
        let replayed = journals::replay(files, collector)?;
        let all = replayed.into_iter().flat_map(|(_, of)| of.before.into_iter().chain(of.loads));
        let mut loads: Vec<_> = all.filter(|load| load.sent().next().is_some()).collect();
        loads.iter_mut().flat_map(|load| &mut load.disks).for_each(Sent::pauses);
        if loads.is_empty() {
            return Err("no guest sent anything in this window: there is nothing to play".into());
        }
        let span_ns = u64::try_from(window_ms.1 - window_ms.0).unwrap_or_default() * MILLISECOND;
        let sent =
            || loads.iter().flat_map(|load| load.sent().map(move |(id, sent)| (load, id, sent)));
        let unsure = sent().filter(|(_, _, sent)| !sent.surely_waits(span_ns));
        Ok(Self {
            on: on.to_owned(),
            span_ns,
            disks: sent().count(),
            requests: sent().map(|(_, _, sent)| sent.requests.len()).sum(),
            unsure: unsure.map(|(load, id, _)| disk_name(&load.config, id)).collect(),
            loads,
        })
    }

    /// What guests may do when their answers take another time, whether all wait for them.
    pub(crate) fn readings(&self) -> &[bool] {
        if self.unsure.is_empty() { &[true] } else { &[true, false] }
    }

    /// What it is, in a sentence.
    pub(crate) fn sentence(&self) -> String {
        format!(
            "{} requests of {} virtual disks, as they were sent, on the arrays of {}.",
            whole(self.requests as f64),
            self.disks,
            self.on
        )
    }

    /// What the answer rests on, in sentences.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let unsure = (!self.unsure.is_empty()).then(|| {
            format!(
                "The guests of {} may wait for their answers, or send when they did whatever these take: the \
                 range covers both.",
                self.unsure.join(", ")
            )
        });
        let is_changed = self.loads.iter().any(|load| load.is_changed);
        let changed = is_changed.then(|| {
            "Settings, paths or parts of the host were changed meanwhile; it is played as it was at the first instant."
                .to_owned()
        });
        unsure.into_iter().chain(changed).collect()
    }

    /// Puts it on the hosts of the file, with what was set there then. Guests that surely do so wait for their
    /// answers; the others as `waits` says.
    ///
    /// # Errors
    /// One line: a host or virtual disk that the file does not have.
    pub(crate) fn put(&self, scenario: &mut Scenario, waits: bool) -> Result<()> {
        clear(scenario, self.span_ns);
        for load in &self.loads {
            let name = &load.config.name;
            let lacks = |what: String| format!("{}: it has no {what} of the journal", self.on);
            let mut hosts = scenario.hosts.iter().map(|host| &host.config.name);
            let index = hosts.position(|known| known == name);
            let index = index.ok_or_else(|| lacks(format!("host `{name}`")))?;
            let host = &mut scenario.hosts[index];
            let same = Same::new(&load.config, &host.config);
            same.set(load, host);
            for (id, sent) in load.sent() {
                let name = disk_name(&load.config, id);
                let vdisk = same.vdisks[id];
                let vdisk = vdisk.ok_or_else(|| lacks(format!("virtual disk `{name}`")))?;
                let vm = host.config.vdisks[vdisk.index()].vm;
                host.config.vms[vm.index()].powered_on = true;
                let waits = waits || sent.surely_waits(self.span_ns);
                let threads = waits.then_some(sent.most);
                let requests = sent.requests.as_slice().into();
                let tape = Tape { requests, span_ns: self.span_ns, threads };
                scenario.workloads.push(Workload {
                    name,
                    host: index,
                    vdisk,
                    config: WorkloadConfig::taped(tape),
                    starts: Time::ZERO,
                    from_ns: 0,
                    for_ns: None,
                    stops: Time::NEVER,
                });
            }
        }
        Ok(())
    }
}

/// Takes out of a scenario what its file has happen, for so long a stretch.
fn clear(scenario: &mut Scenario, span_ns: u64) {
    let warmup_ns = span_ns / WARMUP;
    let end_ns = warmup_ns + span_ns;
    (scenario.warmup_ns, scenario.duration_ns, scenario.sample_ns) = (warmup_ns, end_ns, span_ns);
    scenario.windows = vec![Window { name: "run".into(), from: Time(warmup_ns), to: Time(end_ns) }];
    scenario.expectations.clear();
    scenario.events.clear();
    scenario.given.clear();
    scenario.workloads.clear();
    for host in &mut scenario.hosts {
        // What was recorded had come through these already.
        host.blocks.fill(None);
        host.flash_caches.clear();
        host.absent.clear();
    }
}

impl Look for Collector {
    fn begin(&mut self, epoch_ms: Option<u64>, at: Time, hosts: &[(&HostConfig, &Engine)]) {
        let epoch_ms = epoch_ms.map_or(sim::EPOCH_MS, u64::cast_signed);
        let time = |ms: i64| Time(u64::try_from(ms - epoch_ms).unwrap_or_default() * MILLISECOND);
        (self.from, self.to) = (time(self.window_ms.0), time(self.window_ms.1));
        let is_same = self.loads.iter().map(|load| &load.config).eq(hosts.iter().map(|of| of.0));
        if !is_same {
            let begun = hosts.iter().map(|(config, engine)| Load::new(config, engine, at));
            self.before.extend(std::mem::replace(&mut self.loads, begun.collect()));
        }
    }

    fn input(&mut self, _: usize, _: Time, _: &Engine) {}

    fn taken(&mut self, host: usize, at: Time, input: &Input) {
        let Some(load) = self.loads.get_mut(host) else { return };
        let is_within = at > self.from && at <= self.to;
        match *input {
            Input::Submit(request) => {
                let disk = load.disks.get_mut(request.vdisk.index());
                disk.into_iter().for_each(|disk| disk.send(at, &request, (self.from, self.to)));
            }
            Input::Set(knob) if at <= self.from => {
                load.set.push((knob, knob.effect() == Effect::AtOnce));
            }
            Input::Reboot if at <= self.from => load.set.iter_mut().for_each(|set| set.1 = true),
            Input::Set(_)
            | Input::Path { .. }
            | Input::Attach(_)
            | Input::Detach { .. }
            | Input::Power { .. }
            | Input::RebootGuest(_)
            | Input::Reboot => load.is_changed |= is_within,
            Input::Done { .. }
            | Input::Cancelled { .. }
            | Input::Abort { .. }
            | Input::Reset(_)
            | Input::Congestion { .. }
            | Input::Tick => {}
        }
    }

    fn output(&mut self, host: usize, at: Time, output: &Output) {
        let Output::Complete { vdisk, .. } = *output else { return };
        let disk = self.loads.get_mut(host).and_then(|load| load.disks.get_mut(vdisk.index()));
        disk.into_iter().for_each(|disk| disk.answer(at, (self.from, self.to)));
    }
}

impl Load {
    fn new(config: &HostConfig, engine: &Engine, at: Time) -> Self {
        let mut known = HostSnapshot::default();
        engine.snapshot(at, &mut known);
        let sent = known.vdisks.iter().map(|disk| {
            let inside = [&disk.guest_queued, &disk.queued, &disk.slots];
            let outstanding = inside.iter().map(|of| of.now()).sum();
            Sent { outstanding, ..Sent::default() }
        });
        let disks = sent.collect();
        Self { config: config.clone(), set: Vec::new(), disks, is_changed: false }
    }

    /// What was sent, by the number of the virtual disk.
    fn sent(&self) -> impl Iterator<Item = (usize, &Sent)> {
        self.disks.iter().enumerate().filter(|(_, disk)| !disk.requests.is_empty())
    }
}

impl Sent {
    fn send(&mut self, at: Time, request: &Request, (from, to): (Time, Time)) {
        let Request { op, lba, bytes, waited_ns, .. } = *request;
        self.outstanding += 1;
        if at > from && at <= to {
            let at_ns = at.since(from);
            self.requests.push(Taped { at_ns, pause_ns: at_ns, waited_ns, lba, bytes, op });
            self.most = self.most.max(self.outstanding);
        } else if at <= from {
            self.at_first = self.outstanding;
        }
    }

    fn answer(&mut self, at: Time, (from, to): (Time, Time)) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if at > from && at <= to {
            self.answers_ns.push(at.since(from));
        } else if at <= from {
            self.at_first = self.outstanding;
        }
    }

    /// As many threads as were ever outstanding, at most: each request waited for the answer after which so many
    /// less one were outstanding or in their pauses. Those that had theirs before the first instant pause from then on.
    fn pauses(&mut self) {
        let ahead = self.most.saturating_sub(self.at_first) as usize;
        let waiting = self.requests.iter_mut().skip(ahead);
        for (request, answer_ns) in waiting.zip(&self.answers_ns) {
            request.pause_ns = request.at_ns.saturating_sub(*answer_ns);
        }
    }

    /// Whether the guest waits for an answer to send the next, for all that can be told: threads pause for next to none
    /// of their time, or for little of it, while requests come at no even pace, which would look the same.
    fn surely_waits(&self, span_ns: u64) -> bool {
        /// The part of the requests of which it has to hold.
        const MOST: f64 = 0.95;
        /// The part of a thread's time that is next to none, and that which is little: beyond that it may be one of
        /// many that come at random, of which the most are never far from the mean.
        const NONE: f64 = 0.01;
        const LITTLE: f64 = 0.25;
        /// The variation of the times between requests below which they come at an even pace.
        const EVEN: f64 = 0.05;
        let mean = span_ns as f64 / self.requests.len() as f64;
        let pauses = |part: f64| {
            let most_ns = part * f64::from(self.most) * mean;
            let within = self.requests.iter().filter(|request| request.pause_ns as f64 <= most_ns);
            within.count() as f64 >= MOST * self.requests.len() as f64
        };
        let steps = self.requests.windows(2).map(|two| (two[1].at_ns - two[0].at_ns) as f64);
        let squares = levels::mean(steps.map(|step| Some((step - mean).powi(2))));
        pauses(NONE) || pauses(LITTLE) && squares.unwrap_or_default().sqrt() > EVEN * mean
    }
}

fn disk_name(config: &HostConfig, id: usize) -> String {
    let disk = &config.vdisks[id];
    format!("{}:{}", config.vms[disk.vm.index()].name, disk.name)
}

/// The parts of a file's host that those of a journal's are, by name.
struct Same {
    devices: Vec<Option<DeviceId>>,
    vms: Vec<Option<VmId>>,
    vdisks: Vec<Option<VdiskId>>,
}

impl Same {
    fn new(of: &HostConfig, file: &HostConfig) -> Self {
        let device = |name: &str| file.devices.iter().position(|known| known.name == name);
        let vm = |name: &str| file.vms.iter().position(|known| known.name == name);
        let ids = 0..file.vdisks.len();
        let vdisk = |name: String| ids.clone().find(|id| disk_name(file, *id) == name);
        let disks = (0..of.vdisks.len()).map(|id| vdisk(disk_name(of, id)).map(VdiskId::new));
        Self {
            devices: of.devices.iter().map(|one| device(&one.name).map(DeviceId::new)).collect(),
            vms: of.vms.iter().map(|one| vm(&one.name).map(VmId::new)).collect(),
            vdisks: disks.collect(),
        }
    }

    /// Sets on the file's host what was set on the journal's.
    fn set(&self, load: &Load, host: &mut Host) {
        let config = &mut host.config;
        for (was, id) in load.config.vdisks.iter().zip(&self.vdisks) {
            let Some(id) = id else { continue };
            let disk = &mut config.vdisks[id.index()];
            (disk.allocation, disk.depth) = (was.allocation, was.depth);
            let depth = load.config.vscsi[was.vscsi.index()].depth;
            config.vscsi[disk.vscsi.index()].depth = depth;
        }
        for (was, id) in load.config.devices.iter().zip(&self.devices) {
            let Some(id) = id else { continue };
            let device = &mut config.devices[id.index()];
            (device.dsnro, device.path_policy) = (was.dsnro, was.path_policy);
        }
        for adapter in &mut config.adapters {
            let mut known = load.config.adapters.iter();
            let was = known.find(|was| was.name == adapter.name);
            adapter.lun_depth = was.map_or(adapter.lun_depth, |was| was.lun_depth);
        }
        let in_force = load.set.iter().filter(|set| set.1);
        in_force.filter_map(|set| self.knob(set.0)).for_each(|knob| host.apply(knob));
    }

    fn knob(&self, mut knob: Knob) -> Option<Knob> {
        match knob.id() {
            TargetId::Device(id) => *id = (*self.devices.get(id.index())?)?,
            TargetId::Vm(id) => *id = (*self.vms.get(id.index())?)?,
            TargetId::Vdisk(id) => *id = (*self.vdisks.get(id.index())?)?,
            TargetId::Host => {}
        }
        Some(knob)
    }
}
