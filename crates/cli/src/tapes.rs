//! What guests sent over a stretch of time, as journals have it, put on the disks of the file that their hosts were
//! run or served from: the load is the recorded one then, and the arrays are those of the file.

use std::{collections::BTreeMap, mem, path::PathBuf};

use counters::{
    Counter, DeviceId, EntityId, HostSnapshot, Kind, MILLISECOND, SHORTEST_INTERVAL_S, Time,
    VdiskId, VmId,
    sorted::{Ordered, sort_by},
};
use engine::{Engine, HostConfig, Input, Output, Request};
use journal::{Hole, Look};
use knobs::{Effect, Knob, TargetId};
use levels::{Column, Measured};
use model::{Tape, Taped, WorkloadConfig};
use scenario::{Action, Host, Scenario, TimedEvent, Window, Workload};
use serde::Serialize;

use crate::{Result, journals, text::whole};

/// The part of the stretch that is played before it counts, where the journal has no more of what came before it: so
/// many of it are the whole.
const WARMUP: u64 = 10;

/// When what is played begins, when it begins to count, and its end, in milliseconds since 1970.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    begin: i64,
    from: i64,
    to: i64,
}

/// What was sent over a stretch of time, and the file to whose arrays it goes.
#[derive(Serialize)]
pub(crate) struct Tapes {
    /// The file.
    on: String,
    /// How long what came before the stretch is, and the stretch, in nanoseconds.
    #[serde(skip)]
    lead_ns: u64,
    #[serde(skip)]
    span_ns: u64,
    /// Virtual disks to which something was sent.
    disks: usize,
    /// Requests of theirs.
    requests: usize,
    /// By host and virtual disk.
    #[serde(skip)]
    guests: BTreeMap<(String, String), Guest>,
    #[serde(skip)]
    settings: Vec<Settings>,
    /// When the stretch begins, by the clock of the journal.
    #[serde(skip)]
    from: Time,
    /// Whether a part of the stretch is missing.
    #[serde(skip)]
    has_hole: bool,
}

/// What a guest sent to a virtual disk.
struct Guest {
    /// As many threads as ever were outstanding.
    tape: Tape,
    /// Whether it surely waits for its answers.
    waits: bool,
}

/// What a host was set to, by a component of it.
struct Settings {
    config: HostConfig,
    /// What was set before the first instant, and whether it is in force.
    set: Vec<(Knob, bool)>,
    /// What was set after it, and when: in nanoseconds from it.
    later: Vec<(u64, Knob)>,
    /// Whether something else than I/O and settings came after it.
    is_changed: bool,
}

/// A host of a journal.
struct Load {
    settings: Settings,
    /// By virtual disk.
    disks: Vec<Sent>,
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

/// A stretch of time by the clock of a journal.
#[derive(Clone, Copy)]
struct Stretch {
    begin: Time,
    /// When it begins to count.
    from: Time,
    to: Time,
    /// Nanoseconds of it before the time 0 of the journal.
    before_ns: u64,
    /// Whether the journal began after it had begun to count.
    is_late: bool,
}

/// Collects what is sent from one moment to another.
struct Collector {
    span: Span,
    /// The same by the clock of the journal.
    stretch: Stretch,
    loads: Vec<Load>,
    /// Those of hosts that have other parts now.
    before: Vec<Load>,
}

/// The part of a window that has load, without the sample in which that begins and the one in which it ends: who
/// competes with whom is another thing before all have begun.
pub(crate) fn amid(recording: &Measured, (from, to): (i64, i64)) -> (i64, i64) {
    /// With so much of what a sample has in the middle it has load.
    const PART: f64 = 0.5;
    let (times, rates) = (&recording.times_ms, rates(recording));
    let inside = (0..times.len()).filter(|sample| times[*sample] > from && times[*sample] <= to);
    let mut some: Vec<f64> =
        inside.clone().map(|sample| rates[sample]).filter(|rate| *rate > 0.0).collect();
    sort_by(&mut some, f64::total_cmp);
    let least = some.get(some.len() / 2).map_or(0.0, |middle| PART * middle);
    let loaded: Vec<usize> = inside.filter(|sample| rates[*sample] >= least).collect();
    match loaded[..] {
        [first, _, .., _, last] => (
            if first > 0 { times[first] } else { from },
            if last + 1 < times.len() { times[last - 1] } else { to },
        ),
        _ => (from, to),
    }
}

/// The commands of a host a second, by sample.
fn rates(recording: &Measured) -> Vec<f64> {
    sums(recording, |id| {
        let rate = Column::of(recording, id, Counter::Commands);
        move |sample| rate.at(sample)
    })
}

/// Those that are outstanding, by Little's law.
fn outstanding(recording: &Measured) -> Vec<f64> {
    sums(recording, |id| {
        let of = |counter| Column::of(recording, id, counter);
        let (rate, gavg_ms) = (of(Counter::Commands), of(Counter::GuestLatency));
        move |sample| Some(rate.at(sample)? * gavg_ms.at(sample)? / 1000.0)
    })
}

/// The sum of something over the devices of a host, by sample.
fn sums<V: Fn(usize) -> Option<f64>>(recording: &Measured, of: impl Fn(EntityId) -> V) -> Vec<f64> {
    let of_kind = |kind| recording.of_kind(kind).map(|(id, _)| id);
    let ids = of_kind(Kind::Device).chain(of_kind(Kind::NfsVolume));
    let columns: Vec<V> = ids.map(of).collect();
    let sum = |sample| columns.iter().filter_map(|column| column(sample)).sum();
    (0..recording.times_ms.len()).map(sum).collect()
}

/// A window with what came right before it, up to so many commands and to where more was sent or outstanding: who competes
/// with whom, what waits and what credit is left is from then.
pub(crate) fn led_in(recording: &Measured, (from, to): (i64, i64), most: f64) -> Span {
    /// The load is another where it is more than so many times that of each sample of the window: threads that only it
    /// needs would be taken to pause later.
    const MORE: f64 = 2.0;
    let (times, rates, outstanding) =
        (&recording.times_ms, rates(recording), outstanding(recording));
    let limits = [&rates, &outstanding].map(|loads| {
        let inside = times.iter().zip(loads).filter(|(at, _)| **at > from && **at <= to);
        inside.fold(0.0, |most: f64, (_, load)| most.max(MORE * load))
    });
    let (mut begin, mut commands) = (from, 0.0);
    let before = (0..times.len()).rev().skip_while(|sample| times[*sample] > from);
    for sample in before {
        commands += rates[sample] * f64::from(SHORTEST_INTERVAL_S);
        let is_more = rates[sample] > limits[0] || outstanding[sample] > limits[1];
        if times[sample] != begin || is_more || commands > most {
            break;
        }
        begin -= journals::ROW_MS;
    }
    Span { begin, from, to }
}

/// The whole samples of a window, from the first on, that have no more than so many commands, or the first: begin and
/// end.
///
/// # Errors
/// One line, when there is none.
pub(crate) fn whole_samples(
    recording: &Measured,
    (from, to): (i64, i64),
    most: f64,
) -> Result<(i64, i64)> {
    let rates = rates(recording);
    let (mut commands, mut found) = (0.0, None);
    for (sample, two) in recording.times_ms.windows(2).enumerate() {
        let [before, at] = [two[0], two[1]];
        if before < from || at > to {
            continue;
        }
        commands += rates[sample + 1] * (at - before) as f64 / 1000.0;
        let begin = found.map_or(before, |(begin, _)| begin);
        if found.is_some() && commands > most {
            break;
        }
        found = Some((begin, at));
    }
    found.ok_or_else(|| {
        let (host, ends) =
            (&recording.host, recording.times_ms.first().zip(recording.times_ms.last()));
        let span = ends.map_or(String::new(), |(first, last)| {
            format!(
                ": they are of {SHORTEST_INTERVAL_S} s, and end from {}",
                diagnose::span(*first, *last)
            )
        });
        format!("{host}: no whole sample is in the window{span}").into()
    })
}

impl Tapes {
    /// What guests sent over a stretch of time, by their journals.
    ///
    /// # Errors
    /// One line, when a journal cannot be read, or no guest sent anything.
    pub(crate) fn read(files: &[PathBuf], on: &str, span: Span) -> Result<Self> {
        let collector =
            || Collector { span, stretch: Stretch::NEVER, loads: Vec::new(), before: Vec::new() };
        let [lead_ns, span_ns] = [(span.begin, span.from), (span.from, span.to)]
            .map(|(a, b)| nanos(b.saturating_sub(a)));
        let (mut sent, mut settings, mut has_hole) = (BTreeMap::new(), Vec::new(), false);
        let mut from = Time::ZERO;
        for (report, collector) in journals::replay(files, collector)? {
            from = collector.stretch.from;
            has_hole |= report.holes.iter().any(|hole| collector.lacks(hole));
            for load in collector.before.into_iter().chain(collector.loads) {
                let config = &load.settings.config;
                for (id, of) in load.disks.into_iter().enumerate() {
                    if !of.requests.is_empty() {
                        let name = (config.name.clone(), config.disk_name(VdiskId::new(id)));
                        sent.entry(name).or_insert_with(Sent::default).join(of);
                    }
                }
                // Who began within the stretch says nothing of its first instant, unless nobody else does.
                let is_told = |known: &Settings| known.config.name == config.name;
                if !collector.stretch.is_late || !settings.iter().any(is_told) {
                    settings.push(load.settings);
                }
            }
        }
        let within = |sent: &Sent| sent.requests.len() - sent.before(lead_ns);
        let requests = sent.values().map(within).sum();
        if requests == 0 {
            return Err("no guest sent anything in this window: there is nothing to play".into());
        }
        let guest = |(name, mut sent): (_, Sent)| {
            sent.pauses();
            let waits = sent.surely_waits(lead_ns, span_ns);
            (name, Guest { tape: sent.tape(lead_ns, span_ns), waits })
        };
        let guests: BTreeMap<_, _> = sent.into_iter().map(guest).into_map();
        let (on, disks) = (on.to_owned(), guests.len());
        Ok(Self { on, lead_ns, span_ns, disks, requests, guests, settings, from, has_hole })
    }

    /// What guests may do when their answers take another time: whether all wait for them.
    pub(crate) fn readings(&self) -> &[bool] {
        if self.guests.values().all(|guest| guest.waits) { &[true] } else { &[true, false] }
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
        let unsure = self.guests.iter().filter(|(_, guest)| !guest.waits);
        let unsure = unsure.map(|((_, disk), _)| disk.as_str()).collect::<Vec<_>>().join(", ");
        let each = [
            (
                !unsure.is_empty(),
                format!(
                    "The guests of {unsure} may wait for their answers, or send when they did whatever these \
                     take: the range covers both."
                ),
            ),
            (
                self.settings.iter().any(|host| host.is_changed),
                "Paths or parts of the host were changed meanwhile; it is played with those that it had at the first \
                 instant."
                    .into(),
            ),
            (self.has_hole, "A part of this time is not in the journal, and is played as a pause.".into()),
        ];
        each.into_iter().filter(|each| each.0).map(|each| each.1).collect()
    }

    /// Puts it on the hosts of the file, with what was set there then. Guests that surely do so wait for their
    /// answers; the others as `waits` says.
    ///
    /// # Errors
    /// One line: a host or virtual disk that the file does not have.
    pub(crate) fn put(&self, scenario: &mut Scenario, waits: bool) -> Result<()> {
        let warmup_ns = warmup(self.lead_ns, self.span_ns);
        clear(scenario, warmup_ns, self.span_ns);
        let played = |at: Time| match at {
            Time::NEVER => at,
            at => Time((at + warmup_ns).0.saturating_sub(self.from.0)),
        };
        scenario.arrays.iter_mut().for_each(|array| array.config.retime(played));
        let lacks = |what: String| format!("{}: it has no {what} of the journal", self.on);
        let names: Vec<_> = scenario.hosts.iter().map(|host| disks(&host.config)).collect();
        for settings in &self.settings {
            let mut hosts = scenario.hosts.iter_mut().zip(&names).enumerate();
            let is_it = |host: &Host| host.config.name == settings.config.name;
            if let Some((index, (host, names))) = hosts.find(|(_, (host, _))| is_it(host)) {
                settings.put(host, names);
                let later = settings.later.iter().filter_map(|(at_ns, knob)| {
                    let action = Action::Set(settings.named(*knob, &host.config, names)?);
                    let at = Time(at_ns + warmup_ns - self.lead_ns);
                    Some(TimedEvent { at, host: index, action })
                });
                scenario.events.extend(later);
            }
        }
        sort_by(&mut scenario.events, |a, b| a.at.cmp(&b.at));
        for ((host, disk), guest) in &self.guests {
            let mut hosts = scenario.hosts.iter().map(|known| &known.config.name);
            let index = hosts.position(|known| known == host);
            let index = index.ok_or_else(|| lacks(format!("host `{host}`")))?;
            let config = &mut scenario.hosts[index].config;
            let id = names[index].get(disk).copied();
            let id = id.ok_or_else(|| lacks(format!("virtual disk `{disk}`")))?;
            config.vms[config.vdisks[id].vm.index()].powered_on = true;
            let threads = guest.tape.threads.filter(|_| waits || guest.waits);
            scenario.workloads.push(Workload {
                name: disk.clone(),
                host: index,
                vdisk: VdiskId::new(id),
                config: WorkloadConfig::taped(Tape { threads, ..guest.tape.clone() }),
                starts: Time::ZERO,
                from_ns: 0,
                for_ns: None,
                stops: Time::NEVER,
            });
        }
        Ok(())
    }
}

/// How long is played before it counts: what came right before tells most, however short it is against the stretch.
const fn warmup(lead_ns: u64, span_ns: u64) -> u64 {
    if lead_ns > 0 { lead_ns } else { span_ns / WARMUP }
}

/// Takes out of a scenario what its file has happen, for so long a stretch, which counts after so long a time.
fn clear(scenario: &mut Scenario, warmup_ns: u64, span_ns: u64) {
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

fn nanos(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or_default().saturating_mul(MILLISECOND)
}

impl Stretch {
    const NEVER: Self = Self {
        begin: Time::NEVER,
        from: Time::NEVER,
        to: Time::NEVER,
        before_ns: 0,
        is_late: false,
    };

    /// Nanoseconds from its begin to a moment within it.
    fn passed(self, at: Time) -> Option<u64> {
        let is_within = at >= self.begin && at <= self.to;
        is_within.then(|| at.since(self.begin).saturating_add(self.before_ns))
    }
}

impl Collector {
    /// Whether something between the two instants is missing.
    fn lacks(&self, hole: &Hole) -> bool {
        let (from, to) = match hole {
            Hole::Gap(gap) => (gap.from, gap.to),
            Hole::Segments { from, to } => (*from, *to),
        };
        from < self.stretch.to && to > self.stretch.from
    }
}

impl Look for Collector {
    fn begin(&mut self, epoch_ms: Option<u64>, at: Time, hosts: &[(&HostConfig, &Engine)]) {
        let epoch_ms = epoch_ms.map_or(sim::EPOCH_MS, u64::cast_signed);
        let after_ns = |ms: i64| nanos(ms.saturating_sub(epoch_ms));
        let [begin, from, to] =
            [self.span.begin, self.span.from, self.span.to].map(|ms| Time(after_ns(ms)));
        let before_ns = nanos(epoch_ms.saturating_sub(self.span.begin));
        self.stretch = Stretch { begin, from, to, before_ns, is_late: epoch_ms > self.span.from };
        let known = self.loads.iter().map(|load| &load.settings.config);
        if !known.eq(hosts.iter().map(|host| host.0)) {
            let begun = hosts.iter().map(|host| Load::new(host.0)).collect();
            self.before.extend(mem::replace(&mut self.loads, begun));
        }
        for (load, (_, engine)) in self.loads.iter_mut().zip(hosts) {
            load.go_on(engine, at, at <= self.stretch.begin);
        }
    }

    fn input(&mut self, _: usize, _: Time, _: &Engine) {}

    fn taken(&mut self, host: usize, at: Time, input: &Input) {
        let Some(Load { settings, disks }) = self.loads.get_mut(host) else { return };
        let Stretch { begin, to, .. } = self.stretch;
        let is_within = at > begin && at <= to;
        match *input {
            Input::Submit(request) => {
                let disk = disks.get_mut(request.vdisk.index());
                disk.into_iter().for_each(|disk| disk.send(at, &request, self.stretch));
            }
            Input::Set(knob) if at <= begin => {
                settings.set.push((knob, knob.effect() == Effect::AtOnce));
            }
            Input::Reboot if at <= begin => {
                settings.set.iter_mut().for_each(|set| set.1 = true);
            }
            Input::Set(knob) if at < to => {
                settings.later.extend(self.stretch.passed(at).map(|at_ns| (at_ns, knob)));
            }
            Input::Path { .. }
            | Input::Attach(_)
            | Input::Detach { .. }
            | Input::Power { .. }
            | Input::RebootGuest(_)
            | Input::Reboot => settings.is_changed |= is_within,
            Input::Set(_)
            | Input::Done { .. }
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
        disk.into_iter().for_each(|disk| disk.answer(at, self.stretch));
    }
}

impl Load {
    fn new(config: &HostConfig) -> Self {
        let (set, later) = (Vec::new(), Vec::new());
        let settings = Settings { config: config.clone(), set, later, is_changed: false };
        Self { settings, disks: vec![Sent::default(); config.vdisks.len()] }
    }

    /// Takes what is outstanding from its engine; `is_before` is whether that is before the first instant.
    fn go_on(&mut self, engine: &Engine, at: Time, is_before: bool) {
        let mut known = HostSnapshot::default();
        engine.snapshot(at, &mut known);
        for (disk, known) in self.disks.iter_mut().zip(&known.vdisks) {
            let inside = [&known.guest_queued, &known.queued, &known.slots];
            disk.outstanding = inside.iter().map(|of| of.now()).sum();
            if is_before {
                disk.at_first = disk.outstanding;
            }
        }
    }
}

impl Sent {
    /// Adds what was sent later.
    fn join(&mut self, later: Self) {
        if self.requests.is_empty() {
            *self = later;
            return;
        }
        self.requests.extend(later.requests);
        self.answers_ns.extend(later.answers_ns);
        self.most = self.most.max(later.most);
    }

    fn send(&mut self, at: Time, request: &Request, stretch: Stretch) {
        let Request { op, lba, bytes, waited_ns, .. } = *request;
        self.outstanding += 1;
        if let Some(at_ns) = stretch.passed(at) {
            self.requests.push(Taped { at_ns, pause_ns: at_ns, waited_ns, lba, bytes, op });
            self.most = self.most.max(self.outstanding);
        } else if at < stretch.begin {
            self.at_first = self.outstanding;
        }
    }

    fn answer(&mut self, at: Time, stretch: Stretch) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if let Some(at_ns) = stretch.passed(at) {
            self.answers_ns.push(at_ns);
        } else if at < stretch.begin {
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

    /// What was sent, of which the time before the stretch is played once; all of it again where nothing was sent in that.
    /// Where there is no such time, the end of the stretch is played in its place.
    fn tape(self, lead_ns: u64, span_ns: u64) -> Tape {
        let threads = Some(self.most);
        if lead_ns == 0 {
            let warmup_ns = warmup(lead_ns, span_ns);
            let end = &self.requests[self.before(span_ns - warmup_ns)..];
            let again = end.len();
            let first = end.iter().map(|of| (of.at_ns + warmup_ns - span_ns, of));
            let all = first.chain(self.requests.iter().map(|of| (of.at_ns + warmup_ns, of)));
            let requests = all.map(|(at_ns, of)| Taped { at_ns, ..*of }).collect();
            return Tape { requests, again, span_ns, threads };
        }
        let (again, span_ns) = match self.before(lead_ns) {
            all if all == self.requests.len() => (0, lead_ns + span_ns),
            before => (before, span_ns),
        };
        Tape { requests: self.requests.into(), again, span_ns, threads }
    }

    /// Requests of the time before so many nanoseconds from the first instant.
    fn before(&self, ns: u64) -> usize {
        self.requests.partition_point(|request| request.at_ns < ns)
    }

    /// Whether the guest waits for an answer to send the next, for all that can be told: threads pause for next to none
    /// of their time, or most of them, for most of it, for little, while requests come at no even pace, which would
    /// look the same. Of a real guest a pause is sometimes long: it has not only this to do.
    fn surely_waits(&self, lead_ns: u64, span_ns: u64) -> bool {
        /// Which part of the pauses is no longer than what part of a thread's time. Of requests that come at random
        /// half are longer than a twentieth, unless the most that are under way are never far from the mean.
        const NONE: [(f64, f64); 1] = [(0.95, 0.01)];
        const LITTLE: [(f64, f64); 2] = [(0.5, 0.05), (0.75, 0.25)];
        /// The variation of the times between requests below which they come at an even pace.
        const EVEN: f64 = 0.05;
        let requests = &self.requests[self.before(lead_ns)..];
        let count = requests.len() as f64;
        let mean = span_ns as f64 / count;
        let holds = |(part, short): &(f64, f64)| {
            let most_ns = short * f64::from(self.most) * mean;
            let within = requests.iter().filter(|request| request.pause_ns as f64 <= most_ns);
            within.count() as f64 >= part * count
        };
        let steps = requests.windows(2).map(|two| two[1].at_ns as f64 - two[0].at_ns as f64);
        let squares = levels::mean(steps.map(|step| Some((step - mean).powi(2))));
        let is_uneven = squares.unwrap_or_default().sqrt() > EVEN * mean;
        NONE.iter().all(holds) || LITTLE.iter().all(holds) && is_uneven
    }
}

/// The virtual disks of a host by name.
fn disks(config: &HostConfig) -> BTreeMap<String, usize> {
    (0..config.vdisks.len()).map(|id| (config.disk_name(VdiskId::new(id)), id)).into_map()
}

impl Settings {
    /// Sets on a host of the file what was set on that of the journal, by the names of their parts.
    fn put(&self, host: &mut Host, names: &BTreeMap<String, usize>) {
        let (was, config) = (&self.config, &mut host.config);
        for id in 0..was.vdisks.len() {
            let Some(same) = names.get(&was.disk_name(VdiskId::new(id))) else { continue };
            let (was, disk) = (&was.vdisks[id], &mut config.vdisks[*same]);
            (disk.allocation, disk.depth) = (was.allocation, was.depth);
            config.vscsi[disk.vscsi.index()].depth = self.config.vscsi[was.vscsi.index()].depth;
        }
        for device in &mut config.devices {
            if let Some(was) = was.devices.iter().find(|was| was.name == device.name) {
                (device.dsnro, device.path_policy) = (was.dsnro, was.path_policy);
            }
        }
        for adapter in &mut config.adapters {
            if let Some(was) = was.adapters.iter().find(|was| was.name == adapter.name) {
                adapter.lun_depth = was.lun_depth;
            }
        }
        let in_force = self.set.iter().filter(|set| set.1);
        let knobs: Vec<_> =
            in_force.filter_map(|set| self.named(set.0, &host.config, names)).collect();
        knobs.into_iter().for_each(|knob| host.apply(knob));
    }

    /// A knob by the ids of the file; nothing of a part that the file does not have.
    fn named(
        &self,
        mut knob: Knob,
        config: &HostConfig,
        names: &BTreeMap<String, usize>,
    ) -> Option<Knob> {
        let was = &self.config;
        match knob.id() {
            TargetId::Device(id) => {
                let name = &was.devices.get(id.index())?.name;
                let mut devices = config.devices.iter();
                *id = DeviceId::new(devices.position(|device| device.name == *name)?);
            }
            TargetId::Vm(id) => {
                let name = &was.vms.get(id.index())?.name;
                *id = VmId::new(config.vms.iter().position(|vm| vm.name == *name)?);
            }
            TargetId::Vdisk(id) => {
                was.vdisks.get(id.index())?;
                *id = VdiskId::new(*names.get(&was.disk_name(*id))?);
            }
            TargetId::Host => {}
        }
        Some(knob)
    }
}
