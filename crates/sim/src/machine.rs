//! The loop: hosts that run together, their workloads, and what happens among them in order.
//!
//! ```text
//!   workload --Submit--> engine --Dispatch--> array
//!      ^                   | ^                  |
//!      +----Complete-------+ +------Done--------+   (one event an I/O: the answer)
//! ```
//!
//! The way from the dispatch to the answer is a closed form in the array's model, so an I/O costs
//! one event. Virtual time jumps from one to the next; [`Watch`] may wait, record, or look on.

use counters::{DeviceId, HostSnapshot, PathId, Status, Time, VdiskId};
use engine::{Event, Input, Request};
use model::{Aside, PolicyWait, Switches};
use scenario::{DownBy, Face, Scenario, Window, Workload};

use crate::{
    Watch,
    copy::CopyEnd,
    events::{EventList, Pending, Told},
    host::{Host, Left, Outside, Place},
    key::{Class, Key, Tag},
    nexuses::Nexuses,
    post::Post,
};

/// Of each virtual disk whose volume has a policy of the array, in their order: what commands to the
/// volume, of all hosts, waited for it.
pub type PolicyWaits = Vec<(VdiskId, PolicyWait)>;

/// A line of the log: a change that an administrator would find in vmkernel.log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When.
    pub at: Time,
    /// Index into [`Scenario::hosts`].
    pub host: usize,
    /// What.
    pub what: Logged,
}

impl LogLine {
    /// Whether it is of a window.
    #[must_use]
    pub fn is_in(&self, window: &Window) -> bool {
        window.from < self.at && self.at <= window.to
    }
}

/// What is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logged {
    /// An event of the engine.
    Event(Event),
    /// What the host refused: why.
    Refused(String),
    /// A virtual disk was copied to another datastore, or was not after all: the disk where it was, and there.
    Copied {
        /// Where it was.
        from: VdiskId,
        /// Where it was to be.
        to: VdiskId,
        /// How it ended.
        end: CopyEnd,
    },
}

/// Lines kept of the log of a host; the engine's events that come after them are not.
const LOG_MAX: usize = 1000;

/// A stretch of time during which a workload ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Index into [`Scenario::workloads`].
    pub workload: usize,
    /// From when.
    pub from: Time,
    /// Until when.
    pub to: Time,
}

/// A workload and where it plays.
pub(crate) struct Player {
    pub(crate) workload: model::Workload,
    /// Its index in the scenario.
    pub(crate) index: usize,
    pub(crate) host: usize,
    pub(crate) vdisk: VdiskId,
    ordinal: u32,
    /// Whether it has been started; it issues nothing while its guest is down all the same.
    pub(crate) is_running: bool,
    /// When its clock began to run, or never: it had been started, and its VM was on.
    pub(crate) clock: Time,
    /// Since when it plays, or never: its VM is on, and its stage has begun.
    pub(crate) since: Time,
    /// The earliest arrival in the event list.
    armed: Time,
}

/// Hosts that run together, at work.
pub(crate) struct Machine<'a, W> {
    pub(crate) scenario: &'a Scenario,
    /// In the order of the scenario.
    pub(crate) hosts: Vec<Host>,
    pub(crate) outside: Outside<W>,
    /// In the order of the scenario's workloads.
    pub(crate) players: Vec<Player>,
    pub(crate) log: Vec<LogLine>,
    /// When workloads ran.
    pub(crate) spans: Vec<Span>,
    /// I/Os completed.
    pub(crate) ios: u64,
}

impl<'a, W: Watch> Machine<'a, W> {
    /// No hosts yet; room for so many, and for so many workloads.
    pub(crate) fn new(
        scenario: &'a Scenario,
        (hosts, workloads): (usize, usize),
        watch: W,
    ) -> Self {
        let (arrays, post, events) = (Vec::new(), Post::default(), EventList::default());
        Self {
            scenario,
            hosts: Vec::with_capacity(hosts),
            outside: Outside { arrays, switches: Switches::default(), post, events, watch },
            players: Vec::with_capacity(workloads),
            log: Vec::new(),
            spans: Vec::new(),
            ios: 0,
        }
    }

    /// A host of the scenario, the next one, at [`Time::ZERO`], and where each of its virtual disks is.
    pub(crate) fn add_host(&mut self, index: usize, targets: Vec<Place>) {
        let host = &self.scenario.hosts[index];
        let local = self.hosts.len();
        let copied = self.copied_on(index);
        self.hosts.push(Host::new(index, local, targets, host, &copied));
        let seed = stream(self.scenario.seed, Stream::Host, index);
        let nexuses = Nexuses::new(&host.initiator, host.config.vdisks.len(), seed);
        self.hosts[local].connect(nexuses);
        for knob in &host.settings {
            self.input(local, Time::ZERO, Input::Set(*knob));
        }
        if !host.settings.is_empty() {
            self.input(local, Time::ZERO, Input::Reboot);
        }
        for &object in &host.absent {
            self.detach(Time::ZERO, local, object, false);
        }
    }

    /// A workload of the scenario, the next one on these hosts.
    pub(crate) fn add_workload(&mut self, index: usize) {
        let workload = &self.scenario.workloads[index];
        let Some(host) = self.host_of(workload.host) else { return };
        let seed = stream(self.scenario.seed, Stream::Workload, index);
        let id = self.players.len();
        self.players.push(Player {
            workload: model::Workload::new(&workload.config, seed),
            index,
            host,
            vdisk: workload.vdisk,
            ordinal: 0,
            is_running: false,
            clock: Time::NEVER,
            since: Time::NEVER,
            armed: Time::NEVER,
        });
        self.seat(id, host, workload.vdisk);
        let starts_and_stops = [(workload.starts, Class::Start), (workload.stops, Class::Stop)];
        for (at, class) in starts_and_stops.into_iter().filter(|(at, _)| *at != Time::NEVER) {
            self.push(at, Key::new(class, host, id as u64));
        }
    }

    /// The place here of a host of the scenario.
    pub(crate) fn host_of(&self, index: usize) -> Option<usize> {
        self.hosts.binary_search_by_key(&index, |host| host.index).ok()
    }

    /// The place here of a workload of the scenario.
    pub(crate) fn player_of(&self, index: usize) -> Option<usize> {
        self.players.binary_search_by_key(&index, |player| player.index).ok()
    }

    /// Gives a workload its place on a virtual disk, the same one when it comes back. What it has
    /// outstanding on another one comes back to it all the same.
    pub(crate) fn seat(&mut self, player: usize, host: usize, vdisk: VdiskId) {
        let seats = &mut self.hosts[host].seats[vdisk.index()];
        let seat = seats.iter().position(|seated| *seated == player as u32);
        let ordinal = seat.unwrap_or(seats.len()) as u32;
        if seat.is_none() {
            // There is seldom a second one.
            seats.reserve_exact(1);
            seats.push(player as u32);
        }
        let player = &mut self.players[player];
        (player.host, player.vdisk, player.ordinal) = (host, vdisk, ordinal);
    }

    /// Moves a workload to another virtual disk, and what waits in its application with it.
    pub(crate) fn reseat(&mut self, player: usize, host: usize, vdisk: VdiskId, at: Time) {
        let moving = &mut self.players[player];
        let waiting = u64::from(moving.workload.aside().waiting.now());
        let aside = moving.workload.take_aside(at);
        let (from, here) = (moving.host, moving.vdisk);
        if aside != Aside::default() {
            self.hosts[from].moved.push((here, waiting, aside));
        }
        self.seat(player, host, vdisk);
    }

    pub(crate) fn push(&mut self, at: Time, key: Key) {
        self.outside.events.push(at, Pending::of(key));
    }

    /// Lets everything happen that happens before `limit`.
    pub(crate) fn run_until(&mut self, limit: Time) {
        while let Some((at, event)) = self.outside.events.pop_before(limit) {
            if self.outside.events.is_wide() {
                self.look_ahead();
            }
            self.outside.watch.before(at);
            let turn = &mut self.outside.post.turn;
            if let Some(host) = event.key.answered() {
                *turn = (at, event.key);
                self.done(at, host, event);
            } else {
                // It may be due to another one at this instant whose key is higher.
                *turn = (at, event.key).max(*turn);
                self.turn(at, event.key);
            }
        }
    }

    /// The same where arrays are a round trip away, with the answers that have come from there; when
    /// the next event happens.
    pub(crate) fn run_apart(&mut self, limit: Time) -> Time {
        let Outside { post, events, .. } = &mut self.outside;
        post.answers.drain(..).for_each(|(at, answer)| events.push(at, answer));
        self.run_until(limit);
        self.outside.events.next_at()
    }

    /// What is rarer than an answer. A wake-up that an earlier one took the place of means nothing.
    fn turn(&mut self, at: Time, key: Key) {
        match key.class() {
            Class::Done => {}
            Class::Arrival => {
                let armed = &mut self.players[key.index()].armed;
                if *armed == at {
                    *armed = Time::NEVER;
                    self.play(key.index(), at);
                }
            }
            Class::Wake => {
                let armed = &mut self.hosts[key.host()].armed;
                if *armed == at {
                    *armed = Time::NEVER;
                    self.input(key.host(), at, Input::Tick);
                }
            }
            Class::Retry => self.retry(at, key.index()),
            Class::Event => self.event(at, key.host(), key.index()),
            Class::Boot => self.boot(at, key.host()),
            Class::Copied => self.copied(at, key.host(), VdiskId::new(key.index())),
            Class::Start => self.start(key.index(), at),
            Class::Stage => self.stage(key.index(), at),
            Class::Stop => self.stop_in_time(key.index(), at),
        }
    }

    /// The array answered.
    #[inline(always)]
    fn done(&mut self, at: Time, index: usize, event: Pending) {
        let (host, rest) = self.apart(index);
        if host.looks_at_answers() || !event.key.is_good() {
            // In parts, or each event would lie in memory for this rare way.
            return self.done_in_turn(at, event.of_what(), event.told);
        }
        let input = rest.outside.leave_array(event);
        if host.answer(at, input, rest.outside)
            && let Some(moved) = rest.drain(host, index, at)
        {
            self.drain_on(index, at, moved);
        }
    }

    /// The same of a command that did not end well, or where answers are looked at, with all others that come to the host at this instant by a nexus.
    #[cold]
    fn done_in_turn(&mut self, at: Time, of: (Key, u32), told: Told) {
        let first = Pending::of_parts(of, told);
        let Self { hosts, outside: Outside { events, .. }, .. } = self;
        let of = (Class::Done, first.key.host());
        let Some(nexuses) = hosts[of.1].nexuses.as_ref().filter(|_| events.next_at() <= at) else {
            return self.done_seen(at, first);
        };
        let mut answers = vec![first];
        while let Some((_, next)) = events.pop_before(at + 1) {
            if (next.key.class(), next.key.host()) != of {
                events.push(at, next);
                break;
            }
            answers.push(next);
        }
        answers.sort_by_key(|answer| nexuses.turn_of(answer.io()));
        answers.into_iter().for_each(|answer| self.done_seen(at, answer));
    }

    fn done_seen(&mut self, at: Time, event: Pending) {
        let index = event.key.host();
        let input = self.outside.leave_array(event);
        let host = &mut self.hosts[index];
        host.make_room(at, event.io(), &mut self.outside);
        if host.withhold_answer(at, input, &mut self.outside)
            || host.answer_rarely(at, input, &mut self.outside)
        {
            self.drain(index, at);
        }
    }

    /// From now on the array does so with the commands of a device; those that it kept get what
    /// they would get now.
    pub(crate) fn set_face(&mut self, at: Time, index: usize, device: DeviceId, face: Face) {
        let Self { hosts, outside, scenario, .. } = self;
        let host = &mut hosts[index];
        let devices = scenario.hosts[host.index].config.devices.len();
        let (withheld, told) = host.faults(devices).turn(device, face);
        told.into_iter().for_each(|path| host.turn_path(at, path, true, outside));
        for input in withheld {
            if !host.withhold_answer(at, input, outside) {
                host.answer_rarely(at, input, outside);
            }
        }
        self.drain(index, at);
    }

    /// A path has a reason more to be down, or one less; what was sent down it while it was cut is lost when it is
    /// found dead, and goes again when it is there again before.
    pub(crate) fn turn_path(
        &mut self,
        at: Time,
        index: usize,
        (path, by): (PathId, DownBy),
        up: bool,
    ) {
        self.hosts[index].turn_path(at, path, up, &mut self.outside);
        self.hosts[index].give_back(at, (path, by), up, &mut self.outside);
        self.drain(index, at);
    }

    /// Fills in the counters of a host as of `now`, and in them what applications keep to themselves;
    /// `index` is its place among the hosts.
    pub(crate) fn snapshot(&self, now: Time, index: usize, host: &Host, into: &mut HostSnapshot) {
        host.engine.snapshot(now, into);
        if let Some(blocks) = &host.blocks {
            blocks.count(into);
        }
        let mut add = |vdisk: VdiskId, moved: u64, aside: &Aside| {
            let disk = &mut into.vdisks[vdisk.index()];
            disk.offered += moved + aside.lost + u64::from(aside.waiting.now());
            disk.lost += aside.lost;
            disk.guest_queued.add(&aside.waiting);
        };
        for (vdisk, seats) in (0..).map(VdiskId).zip(&host.seats) {
            let seated = seats.iter().map(|player| &self.players[*player as usize]);
            for player in seated.filter(|player| (player.host, player.vdisk) == (index, vdisk)) {
                add(vdisk, 0, &player.workload.aside());
            }
        }
        host.moved.iter().for_each(|(vdisk, moved, aside)| add(*vdisk, *moved, aside));
    }

    /// Hands an input over and does what follows from it; whether the host took it. A refusal is
    /// logged.
    pub(crate) fn input(&mut self, host: usize, at: Time, input: Input) -> bool {
        let into = &mut self.hosts[host];
        let taken = into.handle_rarely(at, input, &mut self.outside);
        let is_taken = taken.is_ok();
        if let Err(error) = taken {
            let why = self.scenario.hosts[into.index].refusal(&error);
            self.log(host, at, Logged::Refused(why));
        }
        self.drain(host, at);
        is_taken
    }

    /// Adds a line to the log of a host.
    pub(crate) fn log(&mut self, host: usize, at: Time, what: Logged) {
        let host = &mut self.hosts[host];
        host.logged += 1;
        self.log.push(LogLine { at, host: host.index, what });
    }

    /// Lets a workload issue what is due.
    pub(crate) fn play(&mut self, id: usize, at: Time) {
        let player = &mut self.players[id];
        let host = &mut self.hosts[player.host];
        while let Some(io) = player.workload.wake(at) {
            player.submit_rarely(host, at, io, &mut self.outside);
        }
        let index = player.host;
        player.arm(id, &mut self.outside.events);
        self.drain(index, at);
    }

    /// A thread of an application that got an error goes on.
    fn retry(&mut self, at: Time, who: usize) {
        let Self { hosts, players, outside, spans, .. } = self;
        let id = who >> Tag::SLOT_BITS;
        let player = &mut players[id];
        let host = player.host;
        match player.workload.complete(at, Tag(who as u32).slot()) {
            Some(io) => player.submit_rarely(&mut hosts[host], at, io, outside),
            None => {
                player.arm(id, &mut outside.events);
                spans.extend(player.over(at));
            }
        }
        self.drain(host, at);
    }

    /// Does what the engine of a host decided, until there is nothing left to do at this instant.
    pub(crate) fn drain(&mut self, index: usize, at: Time) {
        let (host, rest) = self.apart(index);
        if let Some(moved) = rest.drain(host, index, at) {
            self.drain_on(index, at, moved);
        }
    }

    /// A workload that has moved to another host has an I/O to issue there; then the rest is done here.
    #[cold]
    fn drain_on(&mut self, index: usize, at: Time, (player, io): (usize, model::Io)) {
        let host = self.players[player].host;
        self.players[player].submit_rarely(&mut self.hosts[host], at, io, &mut self.outside);
        self.drain(host, at);
        self.drain(index, at);
    }

    /// A host, and what there is beside the hosts: it is looked up once for all that an answer leads to.
    #[inline(always)]
    fn apart(&mut self, index: usize) -> (&mut Host, Rest<'_, W>) {
        let Self { hosts, players, outside, log, spans, ios, .. } = self;
        (&mut hosts[index], Rest { players, outside, log, spans, ios })
    }
}

/// What a machine has beside its hosts.
struct Rest<'a, W> {
    players: &'a mut Vec<Player>,
    outside: &'a mut Outside<W>,
    log: &'a mut Vec<LogLine>,
    spans: &'a mut Vec<Span>,
    ios: &'a mut u64,
}

impl<W: Watch> Rest<'_, W> {
    /// [`Machine::drain`], until a workload that has moved to another host has an I/O to issue there.
    #[inline(always)]
    fn drain(self, host: &mut Host, index: usize, at: Time) -> Option<(usize, model::Io)> {
        let Self { players, outside, log, spans, ios } = self;
        while let Some(left) = host.next_left(at, outside) {
            let (vdisk, tag, status) = match left {
                Left::Ended(vdisk, tag, status) => (vdisk, tag, status),
                Left::Event(event) if host.logged < LOG_MAX => {
                    host.logged += 1;
                    log.push(LogLine { at, host: host.index, what: Logged::Event(event) });
                    continue;
                }
                Left::Event(_) => continue,
            };
            *ios += 1;
            let id = host.seats[vdisk.index()][tag.ordinal()] as usize;
            let is_bad = status != Status::Good;
            if is_bad && matches!(status, Status::CheckCondition(_) | Status::NoConnect) {
                outside.retry_later(at, index, id, tag);
                continue;
            }
            let player = &mut players[id];
            match player.workload.complete(at, tag.slot()) {
                Some(io) if player.host == index => player.submit(host, at, io, outside),
                Some(io) => return Some((id, io)),
                None => {
                    player.arm(id, &mut outside.events);
                    spans.extend(player.over(at));
                }
            }
        }
        if let Some(wakeup) = host.engine.wakeup_before(host.armed) {
            outside.wake(host, index, wakeup.at.max(at));
        }
        None
    }
}

impl Player {
    /// When its stage begins and ends, by the clock that it has now; it ends with the workload.
    pub(crate) fn stage(&self, scenario: &Scenario) -> (Time, Time) {
        let Workload { from_ns, for_ns, stops, .. } = scenario.workloads[self.index];
        let begins = self.clock + from_ns;
        (begins, for_ns.map_or(stops, |nanos| stops.min(begins + nanos)))
    }

    #[inline(always)]
    fn submit<W: Watch>(&self, host: &mut Host, at: Time, io: model::Io, outside: &mut Outside<W>) {
        let tag = Tag::new(self.ordinal, io.tag).0;
        if !host.is_plain() && host.hold(at, self.vdisk, &model::Io { tag, ..io }, outside) {
            return;
        }
        let request = Request {
            vdisk: self.vdisk,
            op: io.op,
            lba: io.lba,
            bytes: io.bytes,
            waited_ns: io.waited_ns,
            tag,
        };
        let input = Input::Submit(request);
        host.handle(at, input, outside).expect("workloads run on VMs that are on");
    }

    /// [`Player::submit`] where that is rare: its code is large.
    #[inline(never)]
    fn submit_rarely<W: Watch>(
        &self,
        host: &mut Host,
        at: Time,
        io: model::Io,
        outside: &mut Outside<W>,
    ) {
        self.submit(host, at, io, outside);
    }

    /// When it has issued all that it ever will, the time that it took.
    fn over(&mut self, at: Time) -> Option<Span> {
        if !self.workload.is_over() {
            return None;
        }
        self.is_running = false;
        self.rest(at)
    }

    /// It plays no more for the time being; the time for which it did.
    pub(crate) const fn rest(&mut self, at: Time) -> Option<Span> {
        match core::mem::replace(&mut self.since, Time::NEVER) {
            Time::NEVER => None,
            from => Some(Span { workload: self.index, from, to: at }),
        }
    }

    #[inline]
    fn arm(&mut self, id: usize, events: &mut EventList) {
        let at = self.workload.next_wakeup();
        if at < self.armed {
            self.armed = at;
            events.push(at, Pending::of(Key::new(Class::Arrival, self.host, id as u64)));
        }
    }
}

/// What a random stream is for: every station draws from its own.
pub(crate) enum Stream {
    Array = 1,
    Workload = 2,
    Host = 3,
}

/// The seed of a station's stream: it depends on the scenario's seed and on the station alone,
/// not on what it is simulated together with.
pub(crate) fn stream(seed: u64, kind: Stream, index: usize) -> u64 {
    let station = ((kind as u64) << 48) | index as u64;
    let mut mixed = seed ^ station.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
