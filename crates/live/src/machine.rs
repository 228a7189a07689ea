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
#[cfg(test)]
mod journalled;
#[cfg(test)]
mod lending;
#[cfg(test)]
mod stuck;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    io,
    sync::{Arc, mpsc::Receiver},
    time::Duration,
};

use counters::{
    HostSnapshot, IoId, MICROSECOND, PathId, SECOND, SECTOR, Status, Time, VdiskId, VmId,
};
use engine::{Dispatch, Engine, Input, Output};
use journal::Journal;
use knobs::Knob;
use model::{Array, Command};
use nix::sys::{
    epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
    time::TimeSpec,
    timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
};

use changes::Closing;

use crate::{
    backend::Image,
    buffer::{Buffers, Data},
    clock::Clock,
    executor::Executor,
    export::{Asked, Verb},
    guests::Guests,
    mailbox::{Letter, Mailbox},
    periods::Periods,
    record::Record,
    requests::{Request, Requests},
    served::{Disk, Part},
    spin::Spin,
    vscsi::Counting,
    work::{Ended, Job, Question},
};

/// How long what is under way may take when the daemon is to end.
const DRAIN_NS: u64 = 10 * SECOND;
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
}

/// One component at work.
pub(crate) struct Machine {
    engine: Engine,
    journal: Option<Journal<Record>>,
    /// By virtual disk; nothing where it is of another component, or gone.
    disks: Vec<Option<Disk>>,
    images: Vec<Image>,
    arrays: Vec<Array>,
    clock: Clock,
    mailbox: Arc<Mailbox>,
    /// The time of this pass.
    now: Time,
    requests: Requests,
    /// Commands that the engine dispatched, by the place of their id.
    commands: Vec<Option<Sent>>,
    /// Answers that the engine is not told yet.
    answers: VecDeque<Input>,
    /// Commands that were asked back, until when they are waited for.
    recalled: VecDeque<(Time, IoId)>,
    /// Those that are not any longer, and the path that is dead until they come.
    lost: Vec<(IoId, PathId)>,
    /// Commands that are done, and whose array would still be at them.
    later: BinaryHeap<Reverse<(Time, IoId)>>,
    guests: Guests,
    buffers: Buffers,
    executor: Executor,
    epoll: Epoll,
    timer: TimerFd,
    spin: Spin,
    /// When sockets and letters are asked about next.
    look_at: Time,
    /// Guests for which something is staged.
    staged: Vec<VmId>,
    /// Disks that are being given up.
    closing: Vec<Closing>,
    /// Those of Storage I/O Control.
    periods: Periods,
    /// What is counted at the doors of disks.
    vscsi: Counting,
    /// Disks that come.
    more: Receiver<Part>,
    /// When it ends at the latest, once it is to end.
    ends: Option<Time>,
}

/// A command that was dispatched.
#[derive(Debug)]
struct Sent {
    dispatch: Dispatch,
    /// The emulated array that has it, and what it says of its own time.
    array: Option<(usize, u64)>,
    /// Whether its data are in the memory of a guest.
    is_lent: bool,
    /// When its answer may be told at the earliest, and the answer once there is one.
    due: Time,
    answer: Option<Status>,
}

impl Machine {
    /// A component that is ready to work.
    pub(crate) fn new(parts: Parts) -> io::Result<Self> {
        let Parts { engine, journal, first, part, more, executor, clock, mailbox } = parts;
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
            disks: Vec::new(),
            images: Vec::new(),
            arrays: Vec::new(),
            clock,
            mailbox,
            now: Time::ZERO,
            requests: Requests::default(),
            commands: Vec::new(),
            answers: VecDeque::new(),
            recalled: VecDeque::new(),
            lost: Vec::new(),
            later: BinaryHeap::new(),
            guests: Guests::default(),
            buffers: Buffers::default(),
            executor,
            epoll,
            timer,
            spin: Spin::default(),
            look_at: Time::ZERO,
            staged: Vec::new(),
            periods: Periods::default(),
            closing: Vec::new(),
            vscsi: Counting::default(),
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

    /// Works until it is told to end and has.
    ///
    /// # Errors
    /// When its journal could not be written.
    pub(crate) fn run(mut self) -> Result<(), String> {
        let mut last = self.clock.now();
        while !self.is_over() {
            if self.pass() {
                last = self.now;
                continue;
            }
            if self.now.since(last) < self.spin.ns() || self.guests.rest() {
                std::hint::spin_loop();
                continue;
            }
            self.sleep();
            let woken = self.clock.now();
            self.spin.woken(woken.since(last));
            last = woken;
        }
        self.finish()
    }

    /// Whether it was told to end, and nothing is under way or that has taken too long.
    fn is_over(&self) -> bool {
        let is_idle = self.guests.is_empty() && self.requests.is_empty();
        self.ends.is_some_and(|ends| is_idle || self.now >= ends)
    }

    /// Everything that can be done now; whether there was anything.
    pub(crate) fn pass(&mut self) -> bool {
        self.pass_at(self.clock.now())
    }

    fn pass_at(&mut self, now: Time) -> bool {
        self.now = now;
        let is_time = !self.guests.is_empty() || now >= self.look_at;
        let mut any = is_time && self.look();
        any |= self.pull();
        any |= self.reap();
        any |= self.tick();
        if !any && !is_time {
            // Nothing came, and what else there may be can wait until it is time to look.
            return false;
        }
        self.let_go();
        self.answer();
        self.executor.flush();
        any |= self.guests.push(&mut self.buffers, &self.epoll);
        self.dismiss();
        any
    }

    /// Which sockets have something, and the letters that came.
    fn look(&mut self) -> bool {
        self.look_at = self.now + LOOK_NS;
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
                guest => self.guests.wake(guest, event.events()),
            }
        }
    }

    /// Until something comes or is due.
    fn sleep(&mut self) {
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
        self.now = self.clock.now();
        self.woken(&events[..count]);
    }

    /// When it has something to do without being told.
    fn due(&self) -> Time {
        let engine = self.engine.next_wakeup().map(|wakeup| wakeup.at);
        let later = self.later.peek().map(|Reverse((at, _))| *at);
        let recalled = self.recalled.front().map(|(at, _)| *at);
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
                    let vdisk = self.guests.now_of(arrived.vdisk());
                    if self.ends.is_none() && self.is_served(vdisk) {
                        self.guests.seat(*arrived, &self.epoll);
                    }
                }
                Letter::Disk(device) => self.guests.seat_device(device, &self.epoll),
                Letter::Returned(returned) => {
                    let (job, result) = *returned;
                    self.resume(job, result);
                }
                Letter::Mapped { guest, cookie, extents } => {
                    self.guests.answer_map(guest, cookie, &extents);
                }
                Letter::Counters(mut into, to) => {
                    self.engine.snapshot(self.now, &mut into.counters);
                    let paths = (0..into.counters.paths.len()).map(PathId::new);
                    into.usable = paths.map(|path| self.engine.is_usable(path)).collect();
                    // Whoever asked may be gone.
                    let _ = to.send(into);
                }
                Letter::Vscsi(act, vdisks, to) => {
                    // As above.
                    let _ = to.send(self.vscsi.order(act, &vdisks, self.now));
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
                Letter::Move(from, to) => self.guests.move_disk(from, to),
                Letter::Close(vdisk, done) => self.close(vdisk, done),
                Letter::Stop => {
                    self.guests.leave();
                    self.ends.get_or_insert(self.now + DRAIN_NS);
                }
            }
        }
    }

    /// Takes what guests ask for.
    fn pull(&mut self) -> bool {
        let mut any = false;
        for place in 0..self.guests.places() {
            let Some((guest, vdisk)) = self.guests.at(place) else { continue };
            // Only letters change what disk it has, and where that is.
            let disk = self.disk(vdisk);
            for _ in 0..ASKED_MAX {
                let Some(asked) = self.guests.pull(guest, &mut self.buffers) else { break };
                any = true;
                if let Some(Disk { image, .. }) = disk {
                    self.ask((guest, vdisk), image, asked);
                    self.answer();
                }
            }
        }
        any
    }

    fn ask(&mut self, (guest, vdisk): (u64, VdiskId), image: usize, asked: Asked) {
        let Asked { cookie, verb, at, bytes, .. } = asked;
        match verb {
            Verb::Map { one } => match &self.images[image] {
                Image::File(file) => {
                    let file = file.file();
                    self.executor.ask(Question { guest, cookie, image, file, at, bytes, one });
                }
                image => {
                    let mut extents = image.map(at, bytes).unwrap_or_default();
                    extents.truncate(if one { 1 } else { usize::MAX });
                    self.guests.answer_map(guest, cookie, &extents);
                }
            },
            Verb::Io { op, .. } => {
                self.vscsi.issue(vdisk, self.now, &asked);
                let tag = self.requests.add(self.now, (guest, vdisk), asked, &mut self.buffers);
                let lba = at / SECTOR;
                let request = engine::Request { vdisk, op, lba, bytes, waited_ns: 0, tag };
                if self.input(Input::Submit(request)).is_err() {
                    self.complete(tag, Status::NoConnect);
                }
            }
        }
    }

    /// Hands the engine an input, and does what follows from it. What a component tells its engine is
    /// in order, so a refusal is that of a guest which is off.
    fn input(&mut self, input: Input) -> Result<(), engine::Error> {
        if let Some(journal) = &mut self.journal {
            journal.go_on([&self.engine]);
            journal.input(0, self.now, &input);
        }
        if matches!(input, Input::Set(Knob::StorageIoControl { .. })) {
            self.periods.begin(&self.engine, self.now);
        }
        let taken = self.engine.handle_input(self.now, input);
        while let Some(output) = self.engine.poll_output() {
            if let Some(journal) = &mut self.journal {
                journal.output(0, &output);
            }
            match output {
                Output::Dispatch(dispatch) => self.start(dispatch),
                Output::Complete { tag, status, .. } => self.complete(tag, status),
                Output::Cancel { io, .. } => self.cancel(io),
                // Its commands were asked back before, and a file has no reset.
                Output::Reset { .. } | Output::Event(_) => {}
            }
        }
        taken.map(drop)
    }

    /// Tells the engine what was answered.
    fn answer(&mut self) {
        while let Some(answer) = self.answers.pop_front() {
            let told = self.input(answer);
            // The path of a call that comes back at last may be gone.
            let is_path = matches!(answer, Input::Path { .. });
            debug_assert!(told.is_ok() || is_path, "{answer:?}: {told:?}");
        }
    }

    /// Sends a command to its image, past the model of its array.
    fn start(&mut self, dispatch: Dispatch) {
        let Dispatch { io, vdisk, tag, .. } = dispatch;
        let Some(Disk { image, array, .. }) = self.disk(vdisk) else { return };
        let mut sent = match array {
            Some((array, volume)) => self.emulate(dispatch, array, volume),
            None => Sent { dispatch, array: None, is_lent: false, due: self.now, answer: None },
        };
        if sent.answer.is_some() {
            self.keep(sent);
            return self.due_later(io);
        }
        let work = self.requests[tag].work(&dispatch, image, &mut self.buffers);
        let Some(work) = work else { return };
        sent.is_lent = matches!(work.buffer, Some(Data::Lent(_)));
        match self.images[image].start(work, &mut self.executor, &mut self.buffers) {
            // What ends at once, and is in front of no array, nobody looks for any more.
            Some(Ended { buffer, status: Some(status), .. }) if sent.array.is_none() => {
                self.take_back(&dispatch, buffer);
                self.answers.push_back(Input::Done { io, status, array_ns: 0 });
            }
            Some(ended) => {
                self.keep(sent);
                self.end(ended);
            }
            None => self.keep(sent),
        }
    }

    /// A command as an array takes it, or refuses it.
    fn emulate(&mut self, dispatch: Dispatch, array: usize, volume: u32) -> Sent {
        let Dispatch { op, bytes, path, block, .. } = dispatch;
        let (path, block) = (u32::from(path.0), u64::from(block));
        let command = Command { volume, host: 0, path, op, block, bytes };
        let said = self.arrays[array].dispatch(self.now, command);
        let (array, answer) = match said.status {
            Status::Good => (Some((array, said.array_ns)), None),
            refused => (None, Some(refused)),
        };
        Sent { dispatch, array, is_lent: false, due: said.at, answer }
    }

    fn keep(&mut self, sent: Sent) {
        let slot = sent.dispatch.io.slot() as usize;
        if self.commands.len() <= slot {
            self.commands.resize_with(slot + 1, || None);
        }
        self.commands[slot] = Some(sent);
    }

    /// The buffer of a command comes back to its request.
    fn take_back(&mut self, command: &Dispatch, buffer: Option<Data>) {
        if let Some(buffer) = buffer {
            self.requests[command.tag].give_back(command, buffer, &mut self.buffers);
        }
    }

    /// A call came back.
    fn resume(&mut self, job: Job, result: io::Result<u32>) {
        let (io, image) = (job.work.io, job.work.image);
        let Self { images, executor, buffers, .. } = self;
        let ended = images[image].resume(job, result, executor, buffers);
        ended.into_iter().for_each(|ended| self.end(ended));
        self.wake(image);
        if let Some(place) = self.lost.iter().position(|(lost, _)| *lost == io) {
            let (_, path) = self.lost.swap_remove(place);
            if self.lost.iter().all(|(_, other)| *other != path) {
                self.answers.push_back(Input::Path { path, up: true });
            }
        }
    }

    /// What waited for others at an image goes on.
    fn wake(&mut self, image: usize) {
        let Self { images, executor, buffers, .. } = self;
        if let Some(ended) = images[image].wake(executor, buffers) {
            self.end(ended);
            self.wake(image);
        }
    }

    /// A command has ended at its image: the buffer comes back, and the engine is told when the array
    /// would have answered.
    fn end(&mut self, ended: Ended) {
        let Ended { io, buffer, status } = ended;
        let Some(sent) = self.commands[io.slot() as usize].as_mut() else { return };
        sent.answer = status;
        let (dispatch, is_early) = (sent.dispatch, sent.due > self.now);
        self.take_back(&dispatch, buffer);
        match status {
            None => self.tell(io, Input::Cancelled { io }),
            Some(_) if is_early => self.due_later(io),
            Some(_) => self.tell_answer(io),
        }
    }

    fn due_later(&mut self, io: IoId) {
        if let Some(sent) = &self.commands[io.slot() as usize] {
            self.later.push(Reverse((sent.due, io)));
        }
    }

    /// The answer of a command is told now, if it has one that is not told.
    fn tell_answer(&mut self, io: IoId) {
        let sent = self.commands[io.slot() as usize].as_ref();
        let Some(sent) = sent.filter(|sent| sent.dispatch.io == io) else { return };
        let Some(status) = sent.answer else { return };
        let array_ns = sent.array.map_or(0, |(_, array_ns)| array_ns);
        self.tell(io, Input::Done { io, status, array_ns });
    }

    fn tell(&mut self, io: IoId, answer: Input) {
        let sent = &mut self.commands[io.slot() as usize];
        if let Some((array, _)) = sent.as_ref().and_then(|sent| sent.array) {
            self.arrays[array].done(Status::Good);
        }
        *sent = None;
        self.answers.push_back(answer);
    }

    /// What is asked back is told at once where it is done already, and recalled where that is possible.
    fn cancel(&mut self, io: IoId) {
        let sent = self.commands[io.slot() as usize].as_ref();
        match sent.filter(|sent| sent.dispatch.io == io).map(|sent| sent.answer) {
            Some(Some(_)) => self.tell_answer(io),
            Some(None) => self.recall(io),
            None => {}
        }
    }

    fn recall(&mut self, io: IoId) {
        let Some(image) = self.image_of(io) else { return };
        match self.images[image].cancel(io, &mut self.executor) {
            Some(ended) => {
                self.end(ended);
                self.wake(image);
            }
            None => self.recalled.push_back((self.now + RECALL_NS, io)),
        }
    }

    /// What was asked back and has not come is not waited for any longer: its buffer is the kernel's, and
    /// the path that it went down is dead until it comes. Where the kernel has the memory of a guest, that
    /// guest is told nothing before it came: a memory that is the guest's again must not be written.
    fn let_go(&mut self) {
        while let Some((_, io)) = self.recalled.pop_front_if(|(until, _)| *until <= self.now) {
            let sent = self.commands[io.slot() as usize].as_ref();
            let sent = sent.filter(|sent| sent.dispatch.io == io && sent.answer.is_none());
            let (Some(sent), Some(image)) = (sent, self.image_of(io)) else { continue };
            let Dispatch { op, bytes, path, .. } = sent.dispatch;
            if !sent.is_lent {
                self.images[image].let_go(io, bytes);
                let buffer = op.moves_data().then(|| self.buffers.take(bytes as usize).into());
                self.end(Ended { io, buffer, status: None });
            }
            if self.lost.iter().all(|(_, other)| *other != path) {
                self.answers.push_back(Input::Path { path, up: false });
            }
            self.lost.push((io, path));
        }
    }

    fn disk(&self, vdisk: VdiskId) -> Option<Disk> {
        self.disks.get(vdisk.index()).copied().flatten()
    }

    fn image_of(&self, io: IoId) -> Option<usize> {
        let sent = self.commands[io.slot() as usize].as_ref()?;
        Some(self.disk(sent.dispatch.vdisk)?.image)
    }

    /// Takes what calls returned, and what arrays answer by now.
    fn reap(&mut self) -> bool {
        let mut any = false;
        while let Some((job, result)) = self.executor.reap() {
            any = true;
            self.resume(job, result);
        }
        while let Some(Reverse((_, io))) =
            self.later.peek().filter(|first| first.0.0 <= self.now).copied()
        {
            any = true;
            self.later.pop();
            self.tell_answer(io);
        }
        self.answer();
        any
    }

    fn tick(&mut self) -> bool {
        let is_due = self.engine.next_wakeup().is_some_and(|wakeup| wakeup.at <= self.now);
        if is_due {
            // Time passes for anybody.
            let _ = self.input(Input::Tick);
        }
        for read in self.periods.read(&self.engine, self.now) {
            // A device that is gone reads nothing.
            let _ = self.input(read);
        }
        is_due
    }

    /// A request ended: its guest is told, if it is still there.
    fn complete(&mut self, tag: u32, status: Status) {
        if let Some(request) = self.requests.remove(tag, &mut self.buffers) {
            self.vscsi.complete(self.now, &request);
            let Request { guest, asked, .. } = request;
            self.guests.answer(guest, asked, status, &mut self.buffers);
        }
    }

    /// Guests that have gone: what they had under way is given up.
    fn dismiss(&mut self) {
        while let Some(guest) = self.guests.next_over() {
            for (vdisk, tag) in self.requests.of(guest) {
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
        let Self { staged, guests, disks, .. } = self;
        let opened = guests.vdisks().filter_map(|vdisk| disks.get(vdisk.index()).copied()?);
        let vms: Vec<_> = opened.map(|disk| disk.vm).collect();
        for vm in staged.extract_if(.., |vm| !vms.contains(vm)).collect::<Vec<_>>() {
            // It is one of this host.
            let _ = self.input(Input::RebootGuest(vm));
        }
    }

    fn counters(&self) -> HostSnapshot {
        let mut counters = HostSnapshot::default();
        self.engine.snapshot(self.now, &mut counters);
        counters
    }

    fn finish(mut self) -> Result<(), String> {
        let Some(mut journal) = self.journal.take() else { return Ok(()) };
        let counters = self.counters();
        journal.counted(0, &counters);
        journal.finish().map(drop).map_err(|error| error.to_string())
    }
}
