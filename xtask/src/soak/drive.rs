//! One episode: some hosts on one array, from one thing that happens to the next.

use std::collections::BTreeMap;

use counters::{IoId, Op, PathId, Sense, Status, Time, VdiskId, VmId};
use engine::{Dispatch, Engine, Event, HostConfig, Input, Output, Part, Request};
use model::{Array, Command};

use super::{Counts, host, ledger::Ledger};
use crate::corpus::draw::Draw;

/// Steps from one check of a large host to the next; small ones are checked after each.
const LARGE_CHECKED_EVERY: u64 = 1_000;
/// Inputs that an I/O may take: submission, answers to its pieces and to what was sent again,
/// wake-ups, and what happens to the host beside it.
const INPUTS_PER_IO_MAX: u64 = 40;
/// Those of them that may be wake-ups, beside those that look after a device that has something: one in
/// the shortest timeout of a guest.
const WAKEUPS_PER_IO_MAX: u64 = 10;
/// Steps from one attempt to the next to attach what was in use when the episode came to its end.
const RESTORED_EVERY: u64 = 1_000;
/// I/Os of an episode.
const IOS: u64 = 4_000;
/// One episode of so many has one large host.
const LARGE_ONE_OF: u64 = 50;

struct Host {
    config: HostConfig,
    engine: Engine,
    ledger: Ledger,
    /// Whether each VM is on.
    is_on: Vec<bool>,
}

/// An answer on its way: to which host, what it says, and what the array had said, if it was asked.
type Answer = (usize, Input, Option<Status>);
/// How late the driver lets go of what it was asked for, at most.
const LET_GO_NS: u64 = 2_000_000;
/// How late an answer of a back end that has gone silent is, at most.
const LATE_NS: u64 = 30_000_000_000;

pub(crate) struct Episode {
    draw: Draw,
    hosts: Vec<Host>,
    array: Array,
    /// By the moment, and at one moment in the order of sending.
    answers: BTreeMap<(Time, u64), Answer>,
    now: Time,
    /// I/Os that a host may have under way.
    outstanding: usize,
    checked_every: u64,
    next_tag: u32,
    pub(crate) steps: u64,
    pub(crate) counts: Counts,
}

impl Episode {
    /// One whose small hosts are checked after every so many steps.
    pub(crate) fn new(mut draw: Draw, every: u64) -> Self {
        let is_large = draw.whole(1, LARGE_ONE_OF) == 1;
        let (hosts, vms) = if is_large { (1, 400) } else { (draw.whole(1, 3), 6) };
        let devices = draw.whole(1, if is_large { 32 } else { 4 }) as usize;
        let array = host::array(&mut draw, devices);
        let seed = draw.whole(0, u64::from(u32::MAX));
        let hosts = (0..hosts).map(|_| Host::new(host::host(&mut draw, devices, vms)));
        let hosts = hosts.collect();
        Self {
            hosts,
            array: Array::new(&array, seed),
            answers: BTreeMap::new(),
            now: Time::ZERO,
            outstanding: draw.whole(1, if is_large { 2_000 } else { 200 }) as usize,
            checked_every: if is_large { LARGE_CHECKED_EVERY.max(every) } else { every },
            next_tag: 0,
            steps: 0,
            counts: Counts::from([("large hosts", u64::from(is_large))]),
            draw,
        }
    }

    /// Runs it to the end: every I/O that was taken completes.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        for _ in 0..IOS * 10 {
            if self.counts.get("I/Os").is_some_and(|ios| *ios >= IOS) {
                break;
            }
            self.step()?;
        }
        self.drain()
    }

    /// That the I/Os so far took no more inputs than they may.
    fn check_inputs(&self) -> Result<(), String> {
        let of = |what: &str| self.counts.get(what).copied().unwrap_or(0);
        let ios = of("I/Os").max(IOS / 4);
        let devices: usize = self.hosts.iter().map(|host| host.config.devices.len()).sum();
        let looks = self.now.0 / host::GUEST_TIMEOUT_MIN_NS * devices as u64;
        let wakeups = of("wake-ups").saturating_sub(looks);
        if of("inputs") <= INPUTS_PER_IO_MAX * ios + looks && wakeups <= WAKEUPS_PER_IO_MAX * ios {
            return Ok(());
        }
        Err(format!("too many inputs at {:?}: {:?}", self.now, self.counts))
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn step(&mut self) -> Result<(), String> {
        let host = self.draw.whole(0, self.hosts.len() as u64 - 1) as usize;
        let has_room = self.hosts[host].ledger.under_way() < self.outstanding;
        match self.draw.whole(0, 99) {
            0..50 if has_room => self.submit(host),
            98 => self.turn(host),
            99 => {
                self.now = self.now + self.draw.whole(0, 1_000_000);
                Ok(())
            }
            _ => self.next_event().map(|_| ()),
        }
    }

    fn submit(&mut self, host: usize) -> Result<(), String> {
        self.catch_up()?;
        let disks = self.hosts[host].config.vdisks.len() as u64;
        let op = match self.draw.whole(0, 199) {
            0 => *self.draw.one(&Op::ALL),
            1..80 => Op::Write,
            _ => Op::Read,
        };
        let request = Request {
            vdisk: VdiskId::new(self.draw.whole(0, disks - 1) as usize),
            op,
            lba: self.draw.whole(0, 1 << 24) * 8,
            bytes: *self.draw.one(&[512, 4096, 4096, 8192, 65_536, 262_144, 1_048_576]),
            waited_ns: *self.draw.one(&[0, 0, 1_000]),
            tag: self.next_tag,
        };
        let vm = self.hosts[host].config.vdisks[request.vdisk.index()].vm;
        if !self.hosts[host].is_on[vm.index()] {
            return Ok(());
        }
        self.next_tag += 1;
        if self.input(host, Input::Submit(request))? {
            self.count("I/Os");
        }
        Ok(())
    }

    /// What an administrator, a fault or a guest that gives up does.
    fn turn(&mut self, host: usize) -> Result<(), String> {
        self.catch_up()?;
        let Host { config, .. } = &self.hosts[host];
        let (vms, paths) = (config.vms.len() as u64, config.paths.len() as u64);
        let vm = VmId::new(self.draw.whole(0, vms - 1) as usize);
        match self.draw.whole(0, 99) {
            0..40 => {
                let knob = host::knob(&mut self.draw, &self.hosts[host].config);
                let is_taken = self.input(host, Input::Set(knob))?;
                self.count(if is_taken { "settings taken" } else { "settings refused" });
            }
            40..60 => {
                let path = PathId::new(self.draw.whole(0, paths - 1) as usize);
                let up = self.draw.whole(0, 2) > 0;
                self.count(if up { "paths up" } else { "paths down" });
                self.input(host, Input::Path { path, up })?;
            }
            60..70 => self.abort(host)?,
            70..75 => self.reset(host)?,
            75..80 => self.change(host)?,
            80..84 => self.power(host, vm, false)?,
            84..92 => self.power(host, vm, true)?,
            92..95 => {
                self.count("guests rebooted");
                self.input(host, Input::RebootGuest(vm))?;
            }
            95 => {
                self.count("hosts rebooted");
                self.input(host, Input::Reboot)?;
            }
            _ => self.wild_answer(host)?,
        }
        Ok(())
    }

    /// A part of the host goes, or comes back to its place.
    fn change(&mut self, host: usize) -> Result<(), String> {
        if self.draw.whole(0, 1) == 0 {
            let object = host::object(&mut self.draw, &self.hosts[host].config);
            let drain = self.draw.whole(0, 1) == 0;
            let taken = self.input(host, Input::Detach { object, drain })?;
            self.count(if taken { "parts detached" } else { "parts kept" });
            return Ok(());
        }
        for part in host::parts(&self.hosts[host].config) {
            if self.draw.whole(0, 1) == 0 {
                self.attach(host, part)?;
            }
        }
        Ok(())
    }

    fn attach(&mut self, host: usize, part: Part) -> Result<(), String> {
        if self.input(host, Input::Attach(part))? {
            self.count("parts attached");
            if let Part::Vdisk { id, powered_on, .. } = part {
                let vm = self.hosts[host].config.vdisks[id.index()].vm;
                self.power(host, vm, powered_on)?;
            }
        }
        Ok(())
    }

    fn power(&mut self, host: usize, vm: VmId, on: bool) -> Result<(), String> {
        self.count(if on { "powered on" } else { "powered off" });
        self.hosts[host].is_on[vm.index()] = on;
        self.input(host, Input::Power { vm, on }).map(|_| ())
    }

    fn abort(&mut self, host: usize) -> Result<(), String> {
        let nth = self.draw.whole(0, 100) as usize;
        let Some((vdisk, tag)) = self.hosts[host].ledger.nth(nth) else { return Ok(()) };
        self.count("aborts");
        self.input(host, Input::Abort { vdisk, tag }).map(|_| ())
    }

    fn reset(&mut self, host: usize) -> Result<(), String> {
        let disks = self.hosts[host].config.vdisks.len() as u64;
        self.count("resets");
        let vdisk = VdiskId::new(self.draw.whole(0, disks - 1) as usize);
        self.input(host, Input::Reset(vdisk)).map(|_| ())
    }

    /// An answer that nobody waits for is refused.
    fn wild_answer(&mut self, host: usize) -> Result<(), String> {
        let (slot, used) = (self.draw.whole(0, 400) as u32, self.draw.whole(0, 9) as u32);
        let io = IoId::new(slot, used);
        if self.hosts[host].ledger.is_out(io) {
            return Ok(());
        }
        self.count("wild answers");
        self.refused(host, Input::Done { io, status: Status::Good, array_ns: 0 })
    }

    fn refused(&mut self, host: usize, input: Input) -> Result<(), String> {
        match self.input(host, input)? {
            false => Ok(()),
            true => Err(format!("{input:?} was taken, which nobody waits for")),
        }
    }

    /// What is due by now happens, as it would before anything else does.
    fn catch_up(&mut self) -> Result<(), String> {
        while self.next_at().is_some_and(|at| at <= self.now) {
            self.next_event()?;
        }
        Ok(())
    }

    fn next_wakeup(&self) -> Option<(Time, usize)> {
        let wakeups = self.hosts.iter().enumerate();
        wakeups.filter_map(|(host, h)| Some((h.engine.next_wakeup()?.at, host))).min()
    }

    fn next_at(&self) -> Option<Time> {
        let answer = self.answers.keys().next().map(|(at, _)| *at);
        let wakeup = self.next_wakeup().map(|(at, _)| at);
        [answer, wakeup].into_iter().flatten().min()
    }

    /// The next answer or wake-up; `false` when there is none.
    fn next_event(&mut self) -> Result<bool, String> {
        let answer = self.answers.keys().next().map(|(at, _)| *at);
        if let Some((at, host)) = self.next_wakeup()
            && answer.is_none_or(|answer| at < answer)
        {
            self.now = self.now.max(at);
            self.count("wake-ups");
            self.input(host, Input::Tick)?;
            return Ok(true);
        }
        let Some(((at, _), (host, input, of_array))) = self.answers.pop_first() else {
            return Ok(false);
        };
        self.now = self.now.max(at);
        of_array.iter().for_each(|status| self.array.done(*status));
        self.answer(host, input)?;
        Ok(true)
    }

    /// The driver says something of a command: it is taken once, and never again.
    fn answer(&mut self, host: usize, input: Input) -> Result<(), String> {
        let io = match input {
            Input::Done { io, status, .. } => {
                self.count(name_of(status));
                io
            }
            Input::Cancelled { io } => io,
            _ => return Ok(()),
        };
        if !self.hosts[host].ledger.answered(io, self.now) {
            self.count("late answers");
            return self.refused(host, input);
        }
        if !self.input(host, input)? {
            return Err(format!("{input:?} was refused"));
        }
        if self.draw.whole(0, 99) == 0 {
            self.count("second answers");
            self.refused(host, input)?;
        }
        Ok(())
    }

    /// Hands an input over, books what comes out, and checks. `true` when it was taken.
    fn input(&mut self, host: usize, input: Input) -> Result<bool, String> {
        self.count("inputs");
        self.steps += 1;
        self.check_inputs()?;
        let Host { config, engine, ledger, .. } = &mut self.hosts[host];
        let taken = engine.handle_input(self.now, input);
        if let (Input::Submit(request), Ok(Some(id))) = (&input, &taken) {
            ledger.submitted(config, request, *id, self.now);
        }
        while let Some(output) = self.hosts[host].engine.poll_output() {
            self.output(host, output)?;
        }
        if self.steps.is_multiple_of(self.checked_every) {
            let Host { config, engine, ledger, .. } = &mut self.hosts[host];
            let checked = engine.check().and_then(|()| ledger.check(config, engine, self.now));
            checked.map_err(|broken| format!("{broken}\nafter {input:?} at {:?}", self.now))?;
        }
        Ok(taken.is_ok())
    }

    fn output(&mut self, host: usize, output: Output) -> Result<(), String> {
        let Host { config, ledger, .. } = &mut self.hosts[host];
        match output {
            Output::Dispatch(sent) => {
                ledger.dispatched(config, &sent, self.now)?;
                let volume = u32::from(config.vdisks[sent.vdisk.index()].device.0);
                let path = u32::from(sent.path.0);
                let Dispatch { op, block, bytes, .. } = sent;
                let block = u64::from(block);
                let command = Command { volume, host: host as u32, path, op, block, bytes };
                let answer = self.array.dispatch(self.now, command);
                let status = self.status(answer.status);
                self.count("commands sent");
                let done = Input::Done { io: sent.io, status, array_ns: 1 };
                let is_late = self.draw.whole(0, 199) == 0;
                let late_ns = if is_late { self.draw.whole(0, LATE_NS) } else { 0 };
                self.send(answer.at + late_ns, (host, done, Some(answer.status)));
                Ok(())
            }
            Output::Complete { request, tag, .. } => {
                ledger.completed(config, request, tag, self.now)?;
                self.count("completions");
                Ok(())
            }
            Output::Cancel { io, .. } => {
                // What was due by now comes before an answer that is given now.
                if !ledger.is_out(io) && !ledger.has_just_ended(io) {
                    return Err(format!("{io} is asked for and is not with the driver"));
                }
                self.count("recalls");
                if self.draw.whole(0, 1) == 0 {
                    let at = self.now + self.draw.whole(0, LET_GO_NS);
                    self.send(at, (host, Input::Cancelled { io }, None));
                }
                Ok(())
            }
            Output::Reset { .. } => {
                self.count("LUN resets");
                Ok(())
            }
            Output::Event(event) => {
                self.count(kind_of(event));
                Ok(())
            }
        }
    }

    fn send(&mut self, at: Time, answer: Answer) {
        let order = self.counts.entry("answers sent").or_default();
        self.answers.insert((at, *order), answer);
        *order += 1;
    }

    /// What the array said, or now and then something worse.
    fn status(&mut self, status: Status) -> Status {
        match self.draw.whole(0, 499) {
            0 => Status::Busy,
            1 => Status::TaskSetFull,
            2 => Status::ReservationConflict,
            3 => Status::CheckCondition(Sense { key: 3, code: 0x11, qualifier: 0 }),
            6 => Status::CheckCondition(*self.draw.one(&Sense::PERMANENT_LOSS)),
            4 => Status::PathLost,
            5 => Status::Aborted,
            _ => status,
        }
    }

    /// What lacks on the ways to the array comes back; what is in use is refused.
    fn restore_ways(&mut self, host: usize) -> Result<(), String> {
        for part in host::parts(&self.hosts[host].config) {
            if !matches!(part, Part::Vdisk { .. }) {
                self.attach(host, part)?;
            }
        }
        Ok(())
    }

    /// Every path is up and nothing more is submitted: everything ends.
    fn drain(&mut self) -> Result<(), String> {
        self.catch_up()?;
        for host in 0..self.hosts.len() {
            self.restore_ways(host)?;
            for path in 0..self.hosts[host].config.paths.len() {
                self.input(host, Input::Path { path: PathId::new(path), up: true })?;
            }
        }
        while self.hosts.iter().any(|host| host.ledger.under_way() > 0) {
            let is_over = !self.next_event()?;
            if is_over || self.steps.is_multiple_of(RESTORED_EVERY) {
                for host in 0..self.hosts.len() {
                    self.restore_ways(host)?;
                }
            }
            if is_over && self.next_at().is_none() {
                return Err("I/Os wait, and nobody wakes them".into());
            }
        }
        let is_done = self.counts.get("completions") == self.counts.get("I/Os");
        is_done.then_some(()).ok_or_else(|| "an I/O got lost".into())
    }
}

impl Host {
    fn new(config: HostConfig) -> Self {
        Self {
            engine: Engine::new(&config),
            ledger: Ledger::new(&config),
            is_on: config.vms.iter().map(|vm| vm.powered_on).collect(),
            config,
        }
    }
}

const fn kind_of(event: Event) -> &'static str {
    match event {
        Event::DepthChanged { .. } => "depths changed",
        Event::AllPathsDown { .. } => "all paths down",
        Event::ApdTimedOut { .. } => "outages timed out",
        Event::PermanentLoss { .. } => "permanent losses",
        Event::PathsBack { .. } => "paths back",
        Event::ExternalWorkload { .. } => "external workloads",
        Event::Congestion { .. } => "congested or no longer",
    }
}

const fn name_of(status: Status) -> &'static str {
    match status {
        Status::Good => "GOOD",
        Status::Busy => "BUSY",
        Status::TaskSetFull => "TASK SET FULL",
        Status::ReservationConflict => "RESERVATION CONFLICT",
        Status::CheckCondition(_) => "CHECK CONDITION",
        Status::PathLost => "paths lost",
        Status::Aborted => "ABORTED",
        Status::NoConnect => "NO CONNECT",
    }
}
