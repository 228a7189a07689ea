//! What does as the engine decides: commands go to images, past the model of their array, and what has ended goes to
//! its guest. It is not given the engine: what is to be told to that waits in `answers`.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    io,
};

use counters::{IoId, PathId, SECTOR, Status, Time, VdiskId};
use engine::{Dispatch, Input, Output};
use model::{Array, Command};

use super::{RECALL_NS, faults::Faults};
use crate::{
    backend::Image,
    buffer::{Buffers, Data},
    executor::Executor,
    export::{Asked, Verb},
    guests::Guests,
    requests::Requests,
    served::Disk,
    vscsi::Counting,
    work::{Ended, Job, Question},
};

/// Guests and disks, and what is under way between them.
pub(super) struct Hands {
    /// By virtual disk; nothing where it is of another component, or gone.
    pub(super) disks: Vec<Option<Disk>>,
    pub(super) images: Vec<Image>,
    pub(super) arrays: Vec<Array>,
    /// The time of this pass.
    pub(super) now: Time,
    /// That of the last one in which a guest was answered.
    pub(super) answered: Time,
    pub(super) requests: Requests,
    /// Commands that are not done yet, by the place of their id.
    commands: Vec<Option<Sent>>,
    /// Answers that the engine is not told yet.
    pub(super) answers: VecDeque<Input>,
    /// Commands that were asked back, until when they are waited for.
    recalled: VecDeque<(Time, IoId)>,
    /// Those that are not any longer, and the path that is dead until they come.
    pub(super) lost: Vec<(IoId, PathId)>,
    /// Commands that are done, and whose array would still be at them.
    later: BinaryHeap<Reverse<(Time, IoId)>>,
    pub(super) guests: Guests,
    pub(super) buffers: Buffers,
    pub(super) executor: Executor,
    faults: Faults,
    /// Who hears what goes wrong at work.
    pub(super) tell: fn(&str),
    /// What is counted at the doors of disks.
    pub(super) vscsi: Counting,
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

impl Hands {
    pub(super) fn new(executor: Executor, tell: fn(&str)) -> Self {
        Self {
            disks: Vec::new(),
            images: Vec::new(),
            arrays: Vec::new(),
            now: Time::ZERO,
            answered: Time::ZERO,
            requests: Requests::default(),
            commands: Vec::new(),
            answers: VecDeque::new(),
            recalled: VecDeque::new(),
            lost: Vec::new(),
            later: BinaryHeap::new(),
            guests: Guests::default(),
            buffers: Buffers::default(),
            executor,
            faults: Faults::default(),
            tell,
            vscsi: Counting::default(),
        }
    }

    /// Does what the engine has decided.
    #[inline(always)]
    pub(super) fn take(&mut self, output: Output) {
        match output {
            Output::Dispatch(dispatch) => self.start(&dispatch),
            Output::Complete { tag, status, .. } => self.complete(tag, status),
            Output::Cancel { io, .. } => self.cancel(io),
            // Its commands were asked back before, and a file has no reset.
            Output::Reset { .. } | Output::Event(_) => {}
        }
    }

    /// Takes the next thing that a guest asks for; its tag.
    #[inline]
    pub(super) fn pull(&mut self, guest: u64) -> Option<u32> {
        let tag = self.requests.next();
        let asked = &mut self.requests[tag].asked;
        self.guests.pull(guest, asked, &mut self.buffers).then_some(tag)
    }

    /// What was taken begins: the request that the engine is to be told of, where it is an I/O.
    #[inline]
    pub(super) fn begin(
        &mut self,
        tag: u32,
        (guest, vdisk): (u64, VdiskId),
        image: usize,
    ) -> Option<engine::Request> {
        let asked = &self.requests[tag].asked;
        let Asked { cookie, verb, at, bytes, .. } = *asked;
        match verb {
            Verb::Map { one } => {
                self.map((guest, cookie), image, (at, bytes), one);
                None
            }
            Verb::Io { op, .. } => {
                self.vscsi.issue(vdisk, self.now, asked);
                self.requests.begin(tag, self.now, (guest, vdisk), &mut self.buffers);
                let lba = at / SECTOR;
                Some(engine::Request { vdisk, op, lba, bytes, waited_ns: 0, tag })
            }
        }
    }

    fn map(
        &mut self,
        (guest, cookie): (u64, u64),
        image: usize,
        (at, bytes): (u64, u32),
        one: bool,
    ) {
        match &self.images[image] {
            Image::File(file) => {
                let file = file.file();
                self.executor.ask(Question { guest, cookie, image, file, at, bytes, one });
            }
            image => {
                let mut extents = image.map(at, bytes).unwrap_or_default();
                extents.truncate(if one { 1 } else { usize::MAX });
                self.guests.answer_map(guest, cookie, &extents);
            }
        }
    }

    /// A request ended: its guest is told, if it is still there.
    pub(super) fn complete(&mut self, tag: u32, status: Status) {
        if let Some(request) = self.requests.end(tag, &mut self.buffers) {
            self.answered = self.now;
            self.vscsi.complete(self.now, request);
            self.guests.answer(request.guest, &mut request.asked, status, &mut self.buffers);
        }
    }

    /// Sends a command to its image, past the model of its array.
    fn start(&mut self, dispatch: &Dispatch) {
        let Dispatch { io, vdisk, tag, .. } = *dispatch;
        let Some(Disk { image, array, .. }) = self.disk(vdisk) else { return };
        let emulated = array.map(|(array, volume)| self.emulate(dispatch, array, volume));
        if let Some(refused) = emulated.as_ref().filter(|sent| sent.answer.is_some()) {
            self.later.push(Reverse((refused.due, io)));
            return emulated.into_iter().for_each(|sent| self.keep(sent));
        }
        let request = &mut self.requests[tag];
        let Some(mut work) = request.work(dispatch, image, &mut self.buffers) else { return };
        let image = &mut self.images[image];
        if emulated.is_none()
            && let Some(status) = image.try_now(&mut work)
        {
            // Nobody looks for it any more.
            let buffers = &mut self.buffers;
            work.buffer.into_iter().for_each(|buffer| request.give_back(dispatch, buffer, buffers));
            return self.answers.push_back(Input::Done { io, status, array_ns: 0 });
        }
        let is_lent = matches!(work.buffer, Some(Data::Lent(_)));
        let ended = image.start(work, &mut self.executor, &mut self.buffers);
        let sent = emulated.unwrap_or_else(|| Sent::new(dispatch, self.now));
        self.keep(Sent { is_lent, ..sent });
        ended.into_iter().for_each(|ended| self.end(ended));
    }

    /// A command as an array takes it, or refuses it.
    fn emulate(&mut self, dispatch: &Dispatch, array: usize, volume: u32) -> Sent {
        let Dispatch { op, bytes, path, block, .. } = *dispatch;
        let (path, block) = (u32::from(path.0), u64::from(block));
        let command = Command { volume, host: 0, path, op, block, bytes };
        let said = self.arrays[array].dispatch(self.now, command);
        let (array, answer) = match said.status {
            Status::Good => (Some((array, said.array_ns)), None),
            refused => (None, Some(refused)),
        };
        Sent { array, answer, ..Sent::new(dispatch, said.at) }
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

    /// Takes what calls returned, and what arrays answer by now; whether there was anything.
    pub(super) fn reap(&mut self) -> bool {
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
        any
    }

    /// When the next of what is waited for is due: an answer of an array, or what was asked back.
    pub(super) fn due(&self) -> [Option<Time>; 2] {
        let later = self.later.peek().map(|Reverse((at, _))| *at);
        [later, self.recalled.front().map(|(at, _)| *at)]
    }

    /// A call came back.
    pub(super) fn resume(&mut self, job: Job, result: io::Result<u32>) {
        let (io, image) = (job.work.io, job.work.image);
        let Self { images, executor, buffers, .. } = self;
        let ended = images[image].resume(job, result, executor, buffers);
        if let Some((error, title)) = images[image].take_failure() {
            let told = self.faults.meet(self.now, (image, error), title);
            told.iter().for_each(|line| (self.tell)(line));
        }
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
    pub(super) fn let_go(&mut self) {
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

    pub(super) fn disk(&self, vdisk: VdiskId) -> Option<Disk> {
        self.disks.get(vdisk.index()).copied().flatten()
    }

    fn image_of(&self, io: IoId) -> Option<usize> {
        let sent = self.commands[io.slot() as usize].as_ref()?;
        Some(self.disk(sent.dispatch.vdisk)?.image)
    }
}

impl Sent {
    /// A command that is due then, and has no answer yet.
    const fn new(dispatch: &Dispatch, due: Time) -> Self {
        Self { dispatch: *dispatch, array: None, is_lent: false, due, answer: None }
    }
}
