//! A host under simulation, and its driver: between the engine, which decides, and the arrays,
//! which do what it says.
//!
//! A command goes to its array while the engine decides, and the array's answer onto the event list.
//! All else that the engine says is kept until it has done with its input, because it may lead to the
//! next one: so are commands where a device of the host does not answer as it should.

use std::collections::BTreeMap;

use counters::{DeviceId, IoId, PathId, SECOND, Status, Time, VdiskId};
use engine::{Dispatch, Engine, Event, Input, Output, Outputs, Request, Sink};
use knobs::Advanced;
use model::{
    Array, Aside, Block, BlockRequest, Carried, Command, FlashCache, Io, PolicyWait, Switches,
};
use scenario::{CopyConfig, DownBy, DownPaths, Face};

use crate::{
    Watch,
    events::{EventList, Pending, Told},
    fault::{Faults, gone},
    guest::Blocks,
    key::{Class, Key, Tag},
    nexuses::Nexuses,
    post::Post,
    watch::hand_over,
};

/// What hosts have in common: the arrays and the switches before them, what is pending, and whoever looks on.
pub(crate) struct Outside<W> {
    /// None where they are a round trip away, and hear by post.
    pub(crate) arrays: Vec<Array>,
    pub(crate) switches: Switches,
    pub(crate) post: Post,
    pub(crate) events: EventList,
    pub(crate) watch: W,
}

/// How long an application waits after an error before it goes on (ruling: one that did not would
/// fail without end at one instant).
const ERROR_PAUSE_NS: u64 = SECOND;

/// A host under simulation.
pub(crate) struct Host {
    /// Its index in the scenario.
    pub(crate) index: usize,
    pub(crate) engine: Engine,
    driver: Driver,
    /// Whether nothing stands between the engine and what is done as it says: no block layer of a
    /// guest, no device that does not answer.
    is_plain: bool,
    /// The block layers of its guests, if any has one.
    pub(crate) blocks: Option<Box<Blocks>>,
    /// The workloads that issued to each virtual disk, by the ordinal in their tags.
    pub(crate) seats: Vec<Vec<u32>>,
    /// The earliest wake-up in the event list.
    pub(crate) armed: Time,
    /// Between going down for a reboot and being up again.
    pub(crate) is_down: bool,
    /// Which of its VMs are on.
    pub(crate) is_on: Vec<bool>,
    /// What arrays do with the commands of devices, if any does not answer them.
    pub(crate) faults: Option<Box<Faults>>,
    /// The nexuses by which it reaches them, where the scenario says what these are.
    pub(crate) nexuses: Option<Box<Nexuses>>,
    /// Whether it has taken any command back.
    takes_back: bool,
    /// How often it had each volume of an active/passive array taken over, as the array and the volume have heard.
    takeovers: BTreeMap<(u32, u32), u32>,
    /// Paths that are down, and why.
    pub(crate) down: DownPaths,
    /// Which of its virtual disks are not there.
    pub(crate) gone: Vec<VdiskId>,
    /// What applications that have left kept to themselves while they were here: the virtual disk
    /// they were on, and how many waited when they left.
    pub(crate) moved: Vec<(VdiskId, u64, Aside)>,
    /// Lines of its log that are kept so far.
    pub(crate) logged: usize,
}

/// What is left to do for others of what an engine decided.
pub(crate) enum Left {
    /// The I/O of that disk and tag ended so.
    Ended(VdiskId, Tag, Status),
    /// It is to be logged.
    Event(Event),
}

/// Where a virtual disk is.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Its array (of this component) and its volume there.
    pub(crate) array: u32,
    pub(crate) volume: u32,
    /// Where it begins on the array, in blocks of 4 KiB.
    pub(crate) begins: u64,
    /// Whether one of the array's controllers alone answers for it at a time.
    pub(crate) is_passive: bool,
}

/// What does as the engine of a host says.
struct Driver {
    /// The host's index in the scenario, and in the component.
    index: usize,
    host: usize,
    /// What answers to its commands have in common.
    done: Key,
    /// Where each virtual disk is.
    targets: Vec<Place>,
    /// Whether commands are kept as well: a device may not answer them, or a nexus have no room for them.
    keeps_commands: bool,
    /// What the engine decided and is not done yet.
    left: Outputs,
}

/// Where the decisions of an engine go.
struct Outlet<'a, W> {
    driver: &'a mut Driver,
    outside: &'a mut Outside<W>,
    at: Time,
}

impl<W: Watch> Sink for Outlet<'_, W> {
    type Again<'a>
        = Outlet<'a, W>
    where
        Self: 'a;

    #[inline(always)]
    fn again(&mut self) -> Outlet<'_, W> {
        Outlet { driver: self.driver, outside: self.outside, at: self.at }
    }

    #[inline(always)]
    fn put(&mut self, output: Output) {
        let Self { driver, outside, at } = self;
        outside.watch.output(driver.index, *at, &output);
        match output {
            Output::Dispatch(command) if !driver.keeps_commands => {
                driver.send(*at, command, outside);
            }
            output => driver.left.put(output),
        }
    }
}

impl Driver {
    /// Sends a command to its array, which says when it will answer.
    #[inline(always)]
    fn send<W>(&self, at: Time, sent: Dispatch, outside: &mut Outside<W>) {
        let place @ Place { array, .. } = self.targets[sent.vdisk.index()];
        let Some(here) = outside.arrays.get_mut(array as usize) else {
            let command = self.command(place, sent);
            return outside.post.command(array, self.host, sent.io, command);
        };
        let answer = here.dispatch(at, self.command(place, sent));
        outside.events.push(answer.at, Pending::answer(self.done, sent.io, array, answer));
    }

    /// The same by a nexus.
    #[cold]
    fn send_carried<W>(
        &self,
        at: Time,
        sent: Dispatch,
        carried: Carried,
        outside: &mut Outside<W>,
    ) {
        let place @ Place { array, .. } = self.targets[sent.vdisk.index()];
        let command = self.command(place, sent);
        let Some(here) = outside.arrays.get_mut(array as usize) else {
            outside.post.command(array, self.host, sent.io, command);
            return outside.post.carry_last(carried);
        };
        let carried = outside.switches.cross(at, &command, carried);
        let answer = here.dispatch_carried(at, command, &carried);
        outside.events.push(answer.at, Pending::answer(self.done, sent.io, array, answer));
    }

    /// Tells the array that a command is taken back.
    fn take_back<W>(&self, at: Time, disk: VdiskId, io: IoId, outside: &mut Outside<W>) {
        let (array, host) = (self.targets[disk.index()].array, self.index as u32);
        match outside.arrays.get_mut(array as usize) {
            Some(here) => here.take_back(at, host, io),
            None => outside.post.take_back(array, host, io),
        }
    }

    /// A command from a virtual disk that is there, as its array knows it.
    #[inline(always)]
    fn command(&self, at: Place, sent: Dispatch) -> Command {
        let Dispatch { path, op, block, bytes, .. } = sent;
        let (host, path) = (self.index as u32, u32::from(path.0));
        let block = at.begins + u64::from(block);
        Command { volume: at.volume, host, path, op, block, bytes }
    }
}

impl<W> Outside<W> {
    /// An answer leaves its array: what its host hears.
    #[inline(always)]
    pub(crate) fn leave_array(&mut self, event: Pending) -> Input {
        let status = event.key.status();
        if self.post.tells_ends {
            self.tell_end(event.told, status);
        }
        Input::Done { io: event.io(), status, array_ns: event.told.array_ns() }
    }

    #[cold]
    fn tell_end(&mut self, told: Told, status: Status) {
        match self.arrays.get_mut(told.array() as usize) {
            Some(array) => array.done(status),
            None => self.post.done(told.array(), status),
        }
    }

    /// A thread of an application got an error, and goes on after a while.
    #[cold]
    pub(crate) fn retry_later(&mut self, at: Time, host: usize, player: usize, thread: Tag) {
        let key = Key::retry(host, player, thread.slot());
        self.events.push(at + ERROR_PAUSE_NS, Pending::of(key));
    }

    /// The engine of a host wants to be woken, earlier than it was said to be so far; `index` is the
    /// host's in the component.
    #[cold]
    pub(crate) fn wake(&mut self, host: &mut Host, index: usize, due: Time) {
        if due < host.armed {
            host.armed = due;
            self.events.push(due, Pending::of(Key::new(Class::Wake, index, 0)));
        }
    }
}

impl Host {
    /// A host as it is after a boot: its index in the scenario and in the component, and where its
    /// virtual disks lie.
    pub(crate) fn new(
        index: usize,
        local: usize,
        targets: Vec<Place>,
        host: &scenario::Host,
        copied: &[VdiskId],
    ) -> Self {
        let config = &host.config;
        let blocks = Blocks::new(host, copied);
        Self {
            index,
            is_plain: blocks.is_none(),
            blocks,
            engine: Engine::new(config),
            driver: Driver {
                index,
                host: local,
                done: Key::done(local),
                keeps_commands: targets.iter().any(|target| target.is_passive),
                targets,
                left: Outputs::default(),
            },
            seats: vec![Vec::new(); config.vdisks.len()],
            armed: Time::NEVER,
            is_down: false,
            is_on: config.vms.iter().map(|vm| vm.powered_on).collect(),
            faults: None,
            nexuses: None,
            takes_back: false,
            takeovers: BTreeMap::new(),
            down: DownPaths::default(),
            gone: Vec::new(),
            moved: Vec::new(),
            logged: 0,
        }
    }

    /// Where each virtual disk is.
    pub(crate) fn targets(&self) -> &[Place] {
        &self.driver.targets
    }

    /// What commands of its virtual disks waited so far for room in a nexus, what they were on links of its ports,
    /// and what they waited for acknowledgements of lost segments; nothing where nothing is said of those.
    pub(crate) fn nexus_waits(&self) -> [&[PolicyWait]; 3] {
        self.nexuses.as_ref().map_or([&[]; 3], |nexuses| nexuses.waits())
    }

    /// Hands an input over. Commands that follow from it are on their way to the arrays then, and
    /// the rest is in [`Host::next_left`].
    #[inline(always)]
    pub(crate) fn handle<W: Watch>(
        &mut self,
        at: Time,
        input: Input,
        outside: &mut Outside<W>,
    ) -> Result<Option<IoId>, engine::Error> {
        outside.watch.input(self.index, at, &input);
        let outlet = &mut Outlet { driver: &mut self.driver, outside, at };
        hand_over::<W>(&mut self.engine, at, input, outlet)
    }

    /// The same where that is rare: its code is large.
    #[inline(never)]
    pub(crate) fn handle_rarely<W: Watch>(
        &mut self,
        at: Time,
        input: Input,
        outside: &mut Outside<W>,
    ) -> Result<Option<IoId>, engine::Error> {
        self.handle(at, input, outside)
    }

    /// What arrays do with the commands of its devices; from now on none is sent unseen.
    pub(crate) fn faults(&mut self, devices: usize) -> &mut Faults {
        (self.driver.keeps_commands, self.is_plain) = (true, false);
        self.faults.get_or_insert_with(|| Faults::new(devices))
    }

    /// By what nexuses it reaches its arrays; from now on no command is sent unseen where there are any.
    pub(crate) fn connect(&mut self, nexuses: Option<Box<Nexuses>>) {
        self.driver.keeps_commands |= nexuses.is_some();
        self.nexuses = nexuses;
    }

    /// Whether answers are looked at before the engine hears of them.
    #[inline(always)]
    pub(crate) const fn looks_at_answers(&self) -> bool {
        self.driver.keeps_commands
    }

    /// From now on they are: a path of it goes, and with it what was sent.
    pub(crate) const fn look_at_answers(&mut self) {
        self.driver.keeps_commands = true;
    }

    /// Whether a path is down: for an event, for its controller, or because the array says over it that the device is gone.
    pub(crate) fn is_down_path(&self, path: PathId) -> bool {
        let is_told = |faults: &Faults| faults.told.iter().any(|(_, told)| *told == path);
        self.down.contains(path) || self.faults.as_deref().is_some_and(is_told)
    }

    /// A path goes down, or comes up if nothing else keeps it down.
    pub(crate) fn turn_path<W: Watch>(
        &mut self,
        at: Time,
        path: PathId,
        up: bool,
        outside: &mut Outside<W>,
    ) {
        self.look_at_answers();
        if !up || !self.is_down_path(path) {
            // A path that was removed meanwhile stays so.
            let _ = self.handle_rarely(at, Input::Path { path, up }, outside);
        }
    }

    /// The next thing that is left to do for others, when all before it is done.
    #[inline(always)]
    pub(crate) fn next_left<W: Watch>(
        &mut self,
        at: Time,
        outside: &mut Outside<W>,
    ) -> Option<Left> {
        if self.is_plain {
            let left = &mut self.driver.left;
            match left.first() {
                None => return None,
                Some(&Output::Complete { vdisk, tag, status, .. }) => {
                    left.drop_first();
                    return Some(Left::Ended(vdisk, Tag(tag), status));
                }
                Some(_) => {}
            }
        }
        self.next_rarely(at, outside)
    }

    #[cold]
    fn next_rarely<W: Watch>(&mut self, at: Time, outside: &mut Outside<W>) -> Option<Left> {
        loop {
            let next = match self.is_plain {
                true => self.driver.left.pop(),
                false => self.next_but_plain(at, outside),
            };
            match next? {
                Output::Complete { vdisk, tag, status, .. } => {
                    return Some(Left::Ended(vdisk, Tag(tag), status));
                }
                Output::Event(event) => return Some(Left::Event(event)),
                Output::Dispatch(command) => {
                    if !self.withhold(at, command, outside) {
                        self.send(at, command, outside);
                    }
                }
                Output::Cancel { io, .. } => self.let_go(at, io, outside),
                Output::Reset { device } => self.reset(at, Some(device), outside),
            }
        }
    }

    /// What the engine decided, and then what a device that was silent was sent.
    fn next_but_plain<W: Watch>(&mut self, at: Time, outside: &mut Outside<W>) -> Option<Output> {
        if self.driver.left.first().is_none() {
            let resumed = self.faults.as_mut().and_then(|faults| faults.resumed.pop_front());
            resumed.into_iter().for_each(|command| self.driver.left.put(Output::Dispatch(command)));
        }
        while let Some(blocks) = &mut self.blocks {
            if let Some(output) = blocks.take(at, &mut self.driver.left) {
                return Some(output);
            }
            if let Some(request) = blocks.requests.pop_front() {
                self.submit(at, request, outside);
                continue;
            }
            while let Some(vdisk) = blocks.copied() {
                let key = Key::new(Class::Copied, self.driver.host, vdisk.index() as u64);
                outside.events.push(at, Pending::of(key));
            }
            // Nothing is left to be told: the system calls of this instant are over.
            let vdisk = blocks.touched.pop()?;
            blocks.of(vdisk)?.unplug();
            self.dispatch(at, vdisk, outside);
        }
        self.driver.left.pop()
    }

    /// A workload issues an I/O; `false` where its guest has no block layer.
    #[cold]
    pub(crate) fn hold<W: Watch>(
        &mut self,
        at: Time,
        vdisk: VdiskId,
        io: &Io,
        outside: &mut Outside<W>,
    ) -> bool {
        let Some(blocks) = &mut self.blocks else { return false };
        let Some(block) = blocks.of(vdisk) else { return false };
        block.submit(at, io);
        blocks.touched.push(vdisk);
        self.dispatch(at, vdisk, outside);
        true
    }

    /// What waits in the guest goes to its virtual disk while that has room.
    fn dispatch<W: Watch>(&mut self, at: Time, vdisk: VdiskId, outside: &mut Outside<W>) {
        let Some((depth, _)) = self.engine.vdisk_depths(vdisk) else { return };
        self.hand_in(at, vdisk, |block| block.dispatch(at, depth), outside);
    }

    /// The guests of some disks go down, or the disks go: what waits there goes to the engine, which
    /// ends it with the rest.
    pub(crate) fn give_up<W: Watch>(
        &mut self,
        at: Time,
        disks: &[VdiskId],
        outside: &mut Outside<W>,
    ) {
        for &vdisk in disks {
            self.hand_in(at, vdisk, |block| block.give_up(at), outside);
        }
        let Some(blocks) = &mut self.blocks else { return };
        let copies = blocks.copies.iter_mut().filter(|copy| disks.contains(&copy.from));
        let held: Vec<_> = copies.flat_map(|copy| copy.held(at)).collect();
        held.into_iter().for_each(|request| self.submit(at, request, outside));
    }

    /// The cache before a virtual disk.
    pub(crate) fn cache(&mut self, vdisk: VdiskId) -> Option<&mut FlashCache> {
        self.blocks.as_mut()?.cache(vdisk).map(|(cache, _)| cache)
    }

    fn hand_in<W: Watch>(
        &mut self,
        at: Time,
        vdisk: VdiskId,
        next: impl Fn(&mut Block) -> Option<(u32, &BlockRequest, u64)>,
        outside: &mut Outside<W>,
    ) {
        while let Some(block) = self.blocks.as_mut().and_then(|blocks| blocks.of(vdisk))
            && let Some((tag, sent, waited_ns)) = next(block)
        {
            let (op, lba, bytes) = (sent.op, sent.lba, sent.bytes);
            let cache = self.blocks.as_mut().and_then(|blocks| blocks.cache(vdisk));
            let flash =
                cache.and_then(|(cache, flash)| cache.serves(op, lba, bytes).then_some(flash));
            let vdisk = flash.unwrap_or(vdisk);
            let request = Request { vdisk, op, lba, bytes, waited_ns, tag };
            let copied = self.blocks.as_mut().is_some_and(|blocks| blocks.send(at, request));
            if !copied {
                let taken = self.handle_rarely(at, Input::Submit(request), outside);
                taken.expect("block layers are of VMs that are on");
            }
        }
    }

    /// A request because of a copy; a disk that is not there any more refuses it.
    fn submit<W: Watch>(&mut self, at: Time, request: Request, outside: &mut Outside<W>) {
        if self.handle_rarely(at, Input::Submit(request), outside).is_err()
            && let Some(blocks) = &mut self.blocks
        {
            blocks.refused(at, request);
        }
    }

    /// How it copies a disk now: a transfer of the data mover is 32 MiB, which goes to an array that copies by itself in
    /// commands of `DataMover.MaxHWTransferSize`, all at once [DM].
    pub(crate) const fn copying(&self, config: CopyConfig) -> CopyConfig {
        const TRANSFER: u32 = 32 << 20;
        if !config.may_offload || self.engine.option(Advanced::HardwareAcceleratedMove) == 0 {
            return CopyConfig { may_offload: false, ..config };
        }
        let chunk_bytes = self.engine.option(Advanced::MaxHwTransferSize) << 10;
        CopyConfig { chunk_bytes, outstanding: TRANSFER / chunk_bytes, ..config }
    }

    /// Copies of some disks are given up.
    pub(crate) fn give_up_copies(&mut self, at: Time, disks: &[VdiskId]) {
        let Some(Blocks { copies, requests, .. }) = self.blocks.as_deref_mut() else { return };
        for copy in copies.iter_mut().filter(|copy| copy.is_of(disks)) {
            copy.give_up(at, requests);
        }
    }

    /// Whether an I/O of a workload goes to the engine as it is.
    #[inline(always)]
    pub(crate) const fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Sends a command by its nexus, where that has room for it.
    fn send<W>(&mut self, at: Time, sent: Dispatch, outside: &mut Outside<W>) {
        let nexuses = self.nexuses.as_mut();
        let carried = nexuses.map_or(Some(Carried::default()), |nexuses| nexuses.send(at, sent));
        if let Some(carried) = carried {
            let (follows, io) = (self.follows(sent), self.takes_back.then_some(sent.io));
            self.driver.send_carried(at, sent, Carried { follows, io, ..carried }, outside);
        }
    }

    /// Whether a command goes where its volume is, and does not have it brought to where it comes: the first one after
    /// the host has found no other way does that.
    fn follows(&mut self, sent: Dispatch) -> bool {
        let Place { array, volume, is_passive, .. } = self.driver.targets[sent.vdisk.index()];
        let takeovers = if is_passive { self.engine.takeovers(sent.path) } else { None };
        takeovers.is_some_and(|now| {
            let heard = self.takeovers.insert((array, volume), now);
            heard.unwrap_or_default() == now
        })
    }

    /// An answer has come, whether the host waits for it or not: its nexus lets the next command go.
    pub(crate) fn make_room<W>(&mut self, at: Time, io: IoId, outside: &mut Outside<W>) {
        let Some(nexuses) = &mut self.nexuses else { return };
        let is_wanted = |io| self.engine.device_of_command(io).is_some();
        if let Some(next) = nexuses.answered(at, io, is_wanted) {
            self.send(at, next, outside);
        }
    }

    /// A command is taken back at once, unless the array answers it at this very instant or does not
    /// even answer that. From the first on the array is told what its host calls each.
    fn let_go<W: Watch>(&mut self, at: Time, io: IoId, outside: &mut Outside<W>) {
        let asked = self.faults.as_mut().zip(self.engine.device_of_command(io));
        if !asked.is_some_and(|(faults, device)| faults.keeps(device, io)) {
            (self.takes_back, self.driver.keeps_commands) = (true, true);
            if let Some(disk) = self.engine.disk_of_command(io) {
                self.driver.take_back(at, disk, io, outside);
            }
            self.answer_rarely(at, Input::Cancelled { io }, outside);
        }
    }

    /// [`Host::answer`] where that is rare: its code is large.
    #[cold]
    pub(crate) fn answer_rarely<W: Watch>(
        &mut self,
        at: Time,
        input: Input,
        outside: &mut Outside<W>,
    ) -> bool {
        let input = match input {
            // It comes by a path that has gone down since, so it does not come.
            Input::Done { io, array_ns, .. } if self.engine.is_lost(io) => {
                Input::Done { io, status: Status::PathLost, array_ns }
            }
            input => input,
        };
        self.answer(at, input, outside)
    }

    /// Hands over what became of a command; `false` when nobody listens, because the host took it
    /// back meanwhile.
    #[inline(always)]
    pub(crate) fn answer<W: Watch>(
        &mut self,
        at: Time,
        input: Input,
        outside: &mut Outside<W>,
    ) -> bool {
        match self.handle(at, input, outside) {
            Ok(_) => true,
            Err(error) => not_listened(&error),
        }
    }

    /// A command to a device that is silent or gone; `false` when the array takes it.
    fn withhold<W: Watch>(&mut self, at: Time, sent: Dispatch, outside: &mut Outside<W>) -> bool {
        let device = self.engine.device_of_command(sent.io);
        let Some((faults, device)) = self.faults.as_mut().zip(device) else { return false };
        if faults.cut.iter().any(|(cut, _)| *cut == sent.path) {
            faults.unsent.push(sent);
            return true;
        }
        match faults.faces[device.index()] {
            Face::Up => return false,
            Face::Silent => faults.commands.push((device, sent)),
            Face::Lost => self.tell_gone(at, device, sent.io, outside),
        }
        true
    }

    /// An answer of a device that is silent or gone; `false` when it is as good as any.
    pub(crate) fn withhold_answer<W: Watch>(
        &mut self,
        at: Time,
        input: Input,
        outside: &mut Outside<W>,
    ) -> bool {
        let Input::Done { io, .. } = input else { return false };
        let device = self.engine.device_of_command(io);
        let Some((faults, device)) = self.faults.as_mut().zip(device) else { return false };
        match faults.faces[device.index()] {
            Face::Up => return false,
            Face::Silent => faults.answers.push((device, input)),
            Face::Lost => self.tell_gone(at, device, io, outside),
        }
        true
    }

    /// The array says over the path of a command that its device is gone.
    fn tell_gone<W: Watch>(
        &mut self,
        at: Time,
        device: DeviceId,
        io: IoId,
        outside: &mut Outside<W>,
    ) {
        let path = self.engine.path_of_command(io);
        let told = self.faults.iter_mut().zip(path.map(|path| (device, path)));
        for (faults, path) in told.filter(|(faults, path)| !faults.told.contains(path)) {
            faults.told.push(path);
        }
        self.answer_rarely(at, gone(io), outside);
    }

    /// What a path that was cut was sent is lost, now that its driver has found it dead, or goes again, now that nothing
    /// cuts it any more.
    pub(crate) fn give_back<W: Watch>(
        &mut self,
        at: Time,
        cut @ (path, _): (PathId, DownBy),
        up: bool,
        outside: &mut Outside<W>,
    ) {
        let Some(faults) = &mut self.faults else { return };
        faults.cut.retain(|other| *other != cut);
        if up && faults.cut.iter().any(|(other, _)| *other == path) {
            return;
        }
        let lost: Vec<_> = faults.unsent.extract_if(.., |sent| sent.path == path).collect();
        for Dispatch { io, .. } in lost {
            let input = Input::Done { io, status: Status::PathLost, array_ns: 0 };
            self.answer_rarely(at, input, outside);
        }
    }

    /// The driver lets go of what it was asked for on a device, or on all.
    pub(crate) fn reset<W: Watch>(
        &mut self,
        at: Time,
        device: Option<DeviceId>,
        outside: &mut Outside<W>,
    ) {
        let Some(faults) = &mut self.faults else { return };
        let is_meant = |(of, _): &mut (DeviceId, IoId)| device.is_none_or(|device| *of == device);
        let asked: Vec<_> = faults.asked.extract_if(.., is_meant).collect();
        for (_, io) in asked {
            self.answer_rarely(at, Input::Cancelled { io }, outside);
        }
    }
}

/// Nobody listens to the answer to what was taken back; any other refusal is a bug.
#[cold]
fn not_listened(error: &engine::Error) -> bool {
    assert!(matches!(error, engine::Error::NotOutstanding(_)), "an answer was refused: {error}");
    false
}
