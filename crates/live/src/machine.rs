//! The loop of one component: guests, the engine that decides, and the back ends that do.
//!
//! ```text
//!   guest --Asked--> request --Submit--> engine --Dispatch--> (array's model) --> image --> executor
//!     ^                                   | ^                                                 |
//!     +------------ answer <---Complete---+ +------------------------Done---------------------+
//! ```
//!
//! A pass reads the clock once, takes what guests ask and what calls returned, lets the engine decide,
//! and sends off what follows, in one system call for all of it where that is possible. Nothing in it
//! waits. A pass that finds nothing is tried again for a while, because to sleep and to be woken costs
//! more than most I/Os; then the thread sleeps until something comes or is due.

#[cfg(test)]
mod bench;
mod changes;
#[cfg(test)]
mod cuts;
#[cfg(test)]
mod experiments;
mod faults;
mod hands;
#[cfg(test)]
mod journalled;
#[cfg(test)]
mod lending;
#[cfg(test)]
mod stuck;

use std::{
    io,
    sync::{Arc, mpsc::Receiver},
    time::Duration,
};

use counters::{HostSnapshot, MICROSECOND, PathId, SECOND, Status, Time, VmId};
use engine::{Engine, Input, Output, Sink};
use journal::Journal;
use knobs::Knob;
use nix::sys::{
    epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
    time::TimeSpec,
    timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
};

use changes::Closing;
use hands::Hands;

use crate::{
    clock::Clock,
    executor::Executor,
    mailbox::{Letter, Mailbox},
    periods::Periods,
    record::Record,
    served::{Disk, Part},
    spin::Spin,
};

/// How long what is under way may take when the daemon is to end.
pub(crate) const DRAIN_NS: u64 = 10 * SECOND;
/// How long a command that was asked back may take to come before it is not waited for any longer.
const RECALL_NS: u64 = SECOND;
/// What a guest may ask in a pass before the next one has its turn.
const ASKED_MAX: usize = 256;

/// How long sockets and letters are not asked about where only rings are served, which say themselves
/// that there is something: to ask costs as much as an I/O.
pub(crate) const LOOK_NS: u64 = 20 * MICROSECOND;

/// What wakes the thread, beside guests.
const MAILBOX: u64 = u64::MAX;
const RING: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;

/// What a component is made of.
pub(crate) struct Parts {
    pub(crate) engine: Engine,
    pub(crate) journal: Option<Journal<Record>>,
    /// What is put in force before anything else.
    pub(crate) first: Vec<Input>,
    /// Its disks, and where more of them come from.
    pub(crate) part: Part,
    pub(crate) more: Receiver<Part>,
    pub(crate) executor: Executor,
    pub(crate) clock: Clock,
    pub(crate) mailbox: Arc<Mailbox>,
    /// Who hears what goes wrong at work.
    pub(crate) tell: fn(&str),
}

/// One component at work.
pub(crate) struct Machine {
    engine: Engine,
    journal: Option<Journal<Record>>,
    /// What does as the engine decides.
    hands: Hands,
    clock: Clock,
    mailbox: Arc<Mailbox>,
    epoll: Epoll,
    timer: TimerFd,
    /// How long it looks for what a call returns, and for what guests ask that were just answered: how long a disk
    /// takes says nothing of how soon a guest comes again.
    spins: [Spin; 2],
    /// When sockets and letters are asked about next.
    look_at: Time,
    /// Guests for which something is staged.
    staged: Vec<VmId>,
    /// Disks that are being given up.
    closing: Vec<Closing>,
    /// Those of Storage I/O Control.
    periods: Periods,
    /// Disks that come.
    more: Receiver<Part>,
    /// When it ends at the latest, once it is to end.
    ends: Option<Time>,
}

/// Where the decisions of the engine go.
struct Outlet<'a> {
    journal: &'a mut Option<Journal<Record>>,
    hands: &'a mut Hands,
}

impl Sink for Outlet<'_> {
    type Again<'a>
        = Outlet<'a>
    where
        Self: 'a;

    #[inline(always)]
    fn put(&mut self, output: Output) {
        if let Some(journal) = self.journal {
            journal.output(0, &output);
        }
        self.hands.take(output);
    }

    #[inline(always)]
    fn again(&mut self) -> Outlet<'_> {
        Outlet { journal: self.journal, hands: self.hands }
    }
}

impl Machine {
    /// A component that is ready to work.
    pub(crate) fn new(parts: Parts) -> io::Result<Self> {
        let Parts { engine, journal, first, part, more, executor, clock, mailbox, tell } = parts;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        epoll.add(&mailbox, EpollEvent::new(EpollFlags::EPOLLIN, MAILBOX))?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, TIMER))?;
        if let Some(ring) = executor.ring() {
            epoll.add(ring, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, RING))?;
        }
        let mut machine = Self {
            engine,
            journal,
            hands: Hands::new(executor, tell),
            clock,
            mailbox,
            epoll,
            timer,
            spins: Default::default(),
            look_at: Time::ZERO,
            staged: Vec::new(),
            periods: Periods::default(),
            closing: Vec::new(),
            more,
            ends: None,
        };
        machine.open(part);
        for input in first {
            // A setting that the file has was tried on this host.
            let _ = machine.input(input);
        }
        Ok(machine)
    }

    /// Works until it is told to end and has; how many I/Os are still under way then.
    ///
    /// # Errors
    /// When its journal could not be written.
    pub(crate) fn run(mut self) -> Result<usize, String> {
        let mut last = self.clock.now();
        while !self.is_over() {
            if self.pass() {
                last = self.hands.now;
                continue;
            }
            let spin = usize::from(self.hands.answered == last);
            if self.hands.now.since(last) < self.spins[spin].ns() || self.hands.guests.rest() {
                std::hint::spin_loop();
                continue;
            }
            self.sleep();
            let woken = self.clock.now();
            self.spins[spin].woken(woken.since(last));
            last = woken;
        }
        self.finish()
    }

    /// Whether it was told to end, and nothing is under way or that has taken too long.
    fn is_over(&self) -> bool {
        let is_idle = self.hands.guests.is_empty() && self.hands.requests.is_empty();
        self.ends.is_some_and(|ends| is_idle || self.hands.now >= ends)
    }

    /// Everything that can be done now; whether there was anything.
    pub(crate) fn pass(&mut self) -> bool {
        self.pass_at(self.clock.now())
    }

    fn pass_at(&mut self, now: Time) -> bool {
        self.hands.now = now;
        let is_time = !self.hands.guests.is_empty() || now >= self.look_at;
        let mut any = is_time && self.look();
        any |= self.pull();
        any |= self.hands.reap();
        self.answer();
        any |= self.tick();
        if !any && !is_time {
            // Nothing came, and what else there may be can wait until it is time to look.
            return false;
        }
        self.hands.let_go();
        self.answer();
        self.hands.executor.flush();
        let Hands { guests, buffers, .. } = &mut self.hands;
        any |= guests.push(buffers, &self.epoll);
        self.dismiss();
        any
    }

    /// Which sockets have something, and the letters that came.
    fn look(&mut self) -> bool {
        self.look_at = self.hands.now + LOOK_NS;
        let mut events = [EpollEvent::empty(); 64];
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        self.woken(&events[..count]);
        count > 0
    }

    fn woken(&mut self, events: &[EpollEvent]) {
        for event in events {
            match event.data() {
                RING => {}
                TIMER => drop(self.timer.wait()),
                MAILBOX => self.read_letters(),
                guest => self.hands.guests.wake(guest, event.events()),
            }
        }
    }

    /// Until something comes or is due.
    fn sleep(&mut self) {
        self.hands.buffers.trim();
        let now = self.clock.now();
        let due = self.due();
        if due <= now {
            return;
        }
        if due != Time::NEVER {
            let after = TimeSpec::from_duration(Duration::from_nanos(due - now));
            let set = self.timer.set(Expiration::OneShot(after), TimerSetTimeFlags::empty());
            if set.is_err() {
                return;
            }
        }
        let mut events = [EpollEvent::empty(); 64];
        let count = self.epoll.wait(&mut events, EpollTimeout::NONE).unwrap_or(0);
        self.hands.now = self.clock.now();
        self.woken(&events[..count]);
    }

    /// When it has something to do without being told.
    fn due(&self) -> Time {
        let engine = self.engine.next_wakeup().map(|wakeup| wakeup.at);
        let [later, recalled] = self.hands.due();
        let closing = self.closing.iter().map(|closing| closing.until).min();
        [engine, later, recalled, closing, self.periods.end(), self.ends]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Time::NEVER)
    }

    fn read_letters(&mut self) {
        for letter in self.mailbox.take() {
            match letter {
                // Who has agreed on a disk that has gone meanwhile is hung up on.
                Letter::Guest(arrived) => {
                    let vdisk = self.hands.guests.now_of(arrived.vdisk());
                    if self.ends.is_none() && self.is_served(vdisk) {
                        self.hands.guests.seat(*arrived, &self.epoll);
                    }
                }
                Letter::Disk(device) => {
                    let Hands { guests, tell, .. } = &mut self.hands;
                    guests.seat_device(device, &self.epoll, *tell);
                }
                Letter::Socket(vdisk, file, listener) => {
                    self.hands.guests.renew(vdisk, file, listener, &self.epoll);
                }
                Letter::Returned(returned) => {
                    let (job, result) = *returned;
                    self.hands.resume(job, result);
                }
                Letter::Mapped { guest, cookie, extents } => {
                    self.hands.guests.answer_map(guest, cookie, &extents);
                }
                Letter::Counters(mut into, to) => {
                    self.engine.snapshot(self.hands.now, &mut into.counters);
                    let paths = (0..into.counters.paths.len()).map(PathId::new);
                    into.usable = paths.map(|path| self.engine.is_usable(path)).collect();
                    // Whoever asked may be gone.
                    let _ = to.send(into);
                }
                Letter::Vscsi(act, vdisks, to) => {
                    // As above.
                    let _ = to.send(self.hands.vscsi.order(act, &vdisks, self.hands.now));
                }
                Letter::Input(input) => {
                    // It was tried.
                    let _ = self.input(input);
                    if let Input::Set(Knob::Pvscsi { vm, .. }) = input {
                        self.staged.push(vm);
                    }
                }
                Letter::More(host) => {
                    self.journal.iter_mut().for_each(|journal| journal.has_more([&*host]));
                }
                Letter::Open => {
                    while let Ok(part) = self.more.try_recv() {
                        self.open(part);
                    }
                }
                Letter::Resize(vdisk, bytes) => self.resize(vdisk, bytes),
                Letter::Move(from, to) => self.hands.guests.move_disk(from, to),
                Letter::Close(vdisk, done) => self.close(vdisk, done),
                Letter::Stop => {
                    self.hands.guests.leave();
                    self.ends.get_or_insert(self.hands.now + DRAIN_NS);
                }
            }
        }
    }

    /// Takes what guests ask for.
    fn pull(&mut self) -> bool {
        let mut any = false;
        for place in 0..self.hands.guests.places() {
            let Some((guest, vdisk)) = self.hands.guests.at(place) else { continue };
            // Only letters change what disk it has, and where that is.
            let disk = self.hands.disk(vdisk);
            for _ in 0..ASKED_MAX {
                let Some(tag) = self.hands.pull(guest) else { break };
                any = true;
                let Some(Disk { image, .. }) = disk else { continue };
                if let Some(request) = self.hands.begin(tag, (guest, vdisk), image) {
                    if self.tell(Input::Submit(request)).is_err() {
                        self.hands.complete(request.tag, Status::NoConnect);
                    }
                    self.answer();
                }
            }
        }
        any
    }

    /// Hands the engine an input, and does what follows from it. What a component tells its engine is
    /// in order, so a refusal is that of a guest which is off.
    fn input(&mut self, input: Input) -> Result<(), engine::Error> {
        if matches!(input, Input::Set(Knob::StorageIoControl { .. })) {
            self.periods.begin(&self.engine, self.hands.now);
        }
        self.tell(input)
    }

    /// The same of what every I/O passes.
    #[inline(always)]
    fn tell(&mut self, input: Input) -> Result<(), engine::Error> {
        let Self { engine, journal, hands, .. } = self;
        if let Some(journal) = journal {
            journal.go_on([&*engine]);
            journal.input(0, hands.now, &input);
        }
        engine.handle(hands.now, input, &mut Outlet { journal, hands }).map(drop)
    }

    /// Tells the engine what was answered.
    fn answer(&mut self) {
        while let Some(answer) = self.hands.answers.pop_front() {
            let told = match answer {
                Input::Done { io, status, array_ns } => {
                    self.tell(Input::Done { io, status, array_ns })
                }
                rare => self.input(rare),
            };
            // The path of a call that comes back at last may be gone.
            let is_path = matches!(answer, Input::Path { .. });
            debug_assert!(told.is_ok() || is_path, "{answer:?}: {told:?}");
        }
    }

    fn tick(&mut self) -> bool {
        let is_due = self.engine.next_wakeup().is_some_and(|wakeup| wakeup.at <= self.hands.now);
        if is_due {
            // Time passes for anybody.
            let _ = self.input(Input::Tick);
        }
        for read in self.periods.read(&self.engine, self.hands.now) {
            // A device that is gone reads nothing.
            let _ = self.input(read);
        }
        is_due
    }

    /// Guests that have gone: what they had under way is given up.
    fn dismiss(&mut self) {
        while let Some(guest) = self.hands.guests.next_over() {
            self.hands.buffers.trim_soon();
            for (vdisk, tag) in self.hands.requests.of(guest) {
                // It may end on its own by now.
                let _ = self.input(Input::Abort { vdisk, tag });
            }
            self.answer();
        }
        if !self.closing.is_empty() {
            self.close_left();
        }
        if !self.staged.is_empty() {
            self.reboot_guests();
        }
    }

    /// What is staged for guests that have let go of all their disks acts now, as when they reboot.
    fn reboot_guests(&mut self) {
        let Self { staged, hands: Hands { guests, disks, .. }, .. } = self;
        let opened = guests.vdisks().filter_map(|vdisk| disks.get(vdisk.index()).copied()?);
        let vms: Vec<_> = opened.map(|disk| disk.vm).collect();
        for vm in staged.extract_if(.., |vm| !vms.contains(vm)).collect::<Vec<_>>() {
            // It is one of this host.
            let _ = self.input(Input::RebootGuest(vm));
        }
    }

    fn counters(&self) -> HostSnapshot {
        let mut counters = HostSnapshot::default();
        self.engine.snapshot(self.hands.now, &mut counters);
        counters
    }

    fn finish(mut self) -> Result<usize, String> {
        let left = self.hands.requests.count();
        let Some(mut journal) = self.journal.take() else { return Ok(left) };
        let counters = self.counters();
        journal.counted(0, &counters);
        journal.finish().map(|_| left).map_err(|error| error.to_string())
    }
}
