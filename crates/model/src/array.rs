//! An array: takes a command at its dispatch and knows at once when the host sees the answer.
//!
//! ```text
//!   host --- out ---> array: accepted? --> servers --> data --> tokens --- back ---> host
//!                       no: TASK SET FULL, BUSY, RESERVATION CONFLICT ---- back --->
//! ```
//!
//! Every station on the way is first come, first served in the order of dispatch, so one event
//! an I/O is enough. The array's own latency begins when the command arrives and ends when the
//! answer leaves, as FlashArray counts it [S0].

use alloc::{boxed::Box, vec, vec::Vec};

use counters::{IoId, Op, Sense, Status, Time};

use crate::{
    cluster::Cluster,
    command::{Carried, Command},
    config::{ArrayConfig, Queues, Stuck, VolumeConfig},
    controllers::{Pair, Unheld},
    curve::ArrayUse,
    fabric::{Fabric, Link},
    holes::{Turns, note},
    qos::Bucket,
    queue::Queue,
    random::{Random, below},
    service::Service,
};

/// The array's answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When the host sees it.
    pub at: Time,
    /// Good, or why the command was refused.
    pub status: Status,
    /// Nanoseconds that the array reports as its own latency.
    pub array_ns: u64,
}

/// A command in parts, put together only for what is rare: then it need not lie in memory for the rest.
#[derive(Clone, Copy)]
struct Parts {
    /// Volume, host and path.
    from: (u32, u32, u32),
    /// What it does, block and bytes.
    what: (Op, u64, u32),
}

impl Parts {
    #[inline(always)]
    const fn of(command: Command) -> Self {
        let Command { volume, host, path, op, block, bytes } = command;
        Self { from: (volume, host, path), what: (op, block, bytes) }
    }

    #[inline(always)]
    const fn command(self) -> Command {
        let Self { from: (volume, host, path), what: (op, block, bytes) } = self;
        Command { volume, host, path, op, block, bytes }
    }
}

/// Whether a command reserves a volume or releases it.
const fn locks(op: Op) -> bool {
    matches!(op, Op::Reserve | Op::Release)
}

/// A storage array and the fabric to it.
#[derive(Clone, Debug)]
pub struct Array {
    fabric: Fabric,
    service: Service,
    random: Random,
    volumes: Vec<Volume>,
    /// Until when any of them may be reserved.
    held_until: Time,
    port_count: usize,
    /// Whether any command to any of its volumes comes in at once, by its one port, and leaves when it is done.
    is_open: bool,
    controllers: Option<Pair>,
    cluster: Option<Cluster>,
    /// Of each port, where they have a limit.
    ports: Vec<Queue>,
    full: Status,
    outstanding: u32,
    /// When servers work on the commands of hosts that take some back.
    turns: Turns,
    kept: u64,
}

/// Commands to a volume with a policy, and what they waited for its tokens when all else was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyWait {
    /// Commands that were accepted.
    pub commands: u64,
    /// Nanoseconds that they waited together.
    pub wait_ns: u64,
}

/// A policy at work.
#[derive(Clone, Debug)]
struct Policy {
    bucket: Bucket,
    /// Its bytes, where they have a limit.
    bytes: Option<Link>,
    waited: PolicyWait,
}

#[derive(Clone, Debug)]
struct Volume {
    policy: Option<Box<Policy>>,
    /// Until when, and by whom, the LUN is reserved.
    reserved_until: Time,
    reserved_by: u32,
    reserve_hold_ns: u64,
    /// The reservation that is not released; never, where there is none.
    stuck: Stuck,
    /// Its own queue, where that has a limit.
    queue: Option<Box<Queue>>,
}

const NOT_STUCK: Stuck = Stuck { host: 0, from: Time::NEVER, until: Time::ZERO };

impl Array {
    /// An idle array, whose draws depend on `seed` alone. Values outside their ranges are taken
    /// as the nearest end of the range.
    #[must_use]
    pub fn new(config: &ArrayConfig, seed: u64) -> Self {
        Self {
            fabric: Fabric::new(config),
            service: Service::new(&config.service).behind(&config.front),
            random: Random::new(seed),
            volumes: config.volumes.iter().map(|volume| Volume::new(volume, config)).collect(),
            held_until: config
                .volumes
                .iter()
                .filter_map(|volume| volume.stuck)
                .map(|stuck| stuck.until)
                .max()
                .unwrap_or(Time::ZERO),
            port_count: config.queues.ports.max(1) as usize,
            is_open: config.queues.ports <= 1
                && !config.queues.are_limited()
                && config.capacity.is_none()
                && config.volumes.iter().all(|volume| volume.qos.is_none()),
            controllers: config
                .queues
                .controllers
                .as_ref()
                .map(|both| Pair::new(both, &config.volumes)),
            cluster: config.capacity.as_ref().map(Cluster::new),
            ports: Self::ports(&config.queues),
            full: config.queues.full,
            outstanding: 0,
            turns: Turns::new(),
            kept: 0,
        }
    }

    fn ports(queues: &Queues) -> Vec<Queue> {
        let queue = queues.port_limit.map(Queue::new);
        queue.map_or_else(Vec::new, |queue| vec![queue; queues.ports.max(1) as usize])
    }

    /// Takes a command at `now`, which never goes back from one call to the next.
    ///
    /// A command that is refused is answered after one round trip: TASK SET FULL or BUSY at the limit
    /// of a queue, its port's or its volume's (section 7.3), RESERVATION CONFLICT while another host has the
    /// LUN reserved (section 7.4). What comes to a controller that is out of order is not answered: it is
    /// PATH LOST when its host has found that out. [`Sense::STANDBY`] is the answer to one that follows its volume.
    ///
    /// # Panics
    /// When the array has no such volume and any is reserved, or has a policy or a limit.
    #[inline(always)]
    pub fn dispatch(&mut self, now: Time, command: Command) -> Answer {
        let parts = Parts::of(command);
        if self.is_open && !locks(command.op) {
            return self.take::<true>(now, parts, &Carried::NOTHING);
        }
        self.dispatch_carried(now, parts.command(), &Carried::NOTHING)
    }

    /// The same with what its host's end of the way adds.
    ///
    /// # Panics
    /// When the array has no such volume.
    #[cold]
    pub fn dispatch_carried(&mut self, now: Time, command: Command, carried: &Carried) -> Answer {
        self.take::<false>(now, Parts::of(command), carried)
    }

    /// `PLAIN` is a command that reserves and releases nothing, to an array that is open: what the others need is not
    /// asked then.
    #[inline(always)]
    fn take<const PLAIN: bool>(&mut self, now: Time, parts: Parts, carried: &Carried) -> Answer {
        let (_, host, _) = parts.from;
        let (volume, (op, _, bytes)) = (parts.from.0, parts.what);
        let arrive = now + self.fabric.out_ns;
        let mut at = 0;
        if !PLAIN && !self.is_open {
            match self.enter(arrive, &parts.command(), carried.follows) {
                Ok(port) => at = port,
                Err((at, status)) => return Answer { at, status, array_ns: 0 },
            }
        }
        if arrive < self.held_until && self.volumes[volume as usize].conflicts(arrive, host) {
            let (at, status) = self.refuse(arrive, Status::ReservationConflict);
            return Answer { at, status, array_ns: 0 };
        }
        self.outstanding = self.outstanding.wrapping_add(1);
        let served = match carried.io {
            None => {
                let command = || parts.command();
                self.service.serve(arrive, command, self.outstanding, &mut self.random)
            }
            Some(io) => {
                let (service, random) = (&mut self.service, &mut self.random);
                let command = parts.command();
                let served = service.serve_apart(arrive, &command, self.outstanding, random);
                note(&mut self.turns, (host, io), service.turn(), arrive);
                served
            }
        };
        let transfer = self.fabric.transfer(arrive, at, (op, bytes), carried);
        let mut done = served + transfer.total_ns;
        if !PLAIN && locks(op) {
            self.lock(volume, op, host, (arrive, done));
        }
        if !PLAIN && !self.is_open {
            done = self.leave(at, &parts.command(), arrive, done);
        }
        Answer {
            at: self.fabric.deliver(done, host, carried),
            status: Status::Good,
            array_ns: done.after(arrive).saturating_sub(transfer.uncounted_ns),
        }
    }

    /// Reserves a volume when a command is done, or releases it when it arrives.
    #[cold]
    fn lock(&mut self, volume: u32, op: Op, host: u32, (arrive, done): (Time, Time)) {
        let volume = &mut self.volumes[volume as usize];
        if op == Op::Reserve {
            volume.reserve(done, host);
        } else {
            volume.reserved_until = volume.reserved_until.min(arrive);
        }
        self.held_until = self.held_until.max(volume.reserved_until);
    }

    /// When a command is done that would be then, by the policy of its volume; the queues that it is in know it.
    #[cold]
    fn leave(&mut self, port: usize, command: &Command, arrive: Time, mut done: Time) -> Time {
        let Command { volume, op, bytes, .. } = *command;
        if let Some(policy) = &mut self.volumes[volume as usize].policy {
            done = done.max(policy.grant(arrive, (op, bytes), done, self.cluster.as_mut()));
        }
        self.queues(port, volume).for_each(|queue| queue.enter(done));
        done
    }

    /// The port by which a command comes in, or when its host hears of one that does not, and what.
    #[cold]
    fn enter(
        &mut self,
        arrive: Time,
        command: &Command,
        follows: bool,
    ) -> Result<usize, (Time, Status)> {
        if self.cluster.as_ref().is_some_and(|cluster| cluster.is_over(arrive)) {
            self.share(arrive);
        }
        let Command { volume, host, path, .. } = *command;
        let at = Queues::port_of(host as usize, path as usize, self.port_count);
        if let Some(both) = &mut self.controllers {
            match both.hold(arrive, at, volume, follows) {
                Ok(held) => self.fabric.held = held,
                Err(Unheld::Lost(at)) => return Err(self.lose(at)),
                Err(Unheld::Standby) => {
                    return Err(self.refuse(arrive, Status::CheckCondition(Sense::STANDBY)));
                }
            }
        }
        let is_full = self.queues(at, volume).any(|queue| queue.is_full(arrive));
        if is_full { Err(self.refuse(arrive, self.full)) } else { Ok(at) }
    }

    /// The queues of a port and a volume, where they have a limit.
    fn queues(&mut self, port: usize, volume: u32) -> impl Iterator<Item = &mut Queue> {
        let of_volume = self.volumes[volume as usize].queue.as_deref_mut();
        self.ports.get_mut(port).into_iter().chain(of_volume)
    }

    /// Shares what it can do among its volumes for the second that has begun.
    #[cold]
    fn share(&mut self, arrive: Time) {
        let policies = self.volumes.iter_mut().filter_map(|volume| volume.policy.as_mut());
        let mut buckets: Vec<_> = policies.map(|policy| &mut policy.bucket).collect();
        self.cluster.iter_mut().for_each(|cluster| cluster.share(arrive, &mut buckets));
    }

    /// Says no. Of a full queue a host hears after the way back and up to a round trip more, at random (ruling):
    /// hosts that were refused at one instant would all ask again at one instant, as often as they are, in the
    /// order in which they stand in the scenario, and the first of them would have every place.
    #[cold]
    fn refuse(&mut self, arrive: Time, status: Status) -> (Time, Status) {
        let round_trip = self.fabric.out_ns + self.fabric.back_ns;
        let apart = if status == self.full { below(self.random.bits(), round_trip) } else { 0 };
        (arrive + self.fabric.back_ns + apart, status)
    }

    /// Says nothing: its host gives the command up then.
    #[cold]
    fn lose(&self, at: Time) -> (Time, Status) {
        (at + self.fabric.back_ns, Status::PathLost)
    }

    /// An answer of this status reached the host. A command that was refused never occupied the
    /// array; any other leaves it.
    #[inline]
    pub fn done(&mut self, status: Status) {
        if status == Status::Good {
            debug_assert!(self.outstanding > 0, "an answer without a command");
            self.outstanding = self.outstanding.saturating_sub(1);
        }
    }

    /// A host, by its number, takes back what it called so. What has not begun then takes no time of a server, and its answer
    /// means nothing; all else that it has or was granted it keeps until then.
    pub fn take_back(&mut self, now: Time, host: u32, io: IoId) {
        let turn = self.turns.remove(&(host, io));
        match turn.filter(|turn| turn.begins > now + self.fabric.out_ns) {
            Some(turn) => self.service.give_back(turn),
            None => self.kept += 1,
        }
    }

    /// Whether it matters to it how many commands are outstanding.
    #[must_use]
    pub const fn minds_outstanding(&self) -> bool {
        self.service.minds_outstanding()
    }

    /// How its measured curve was used, and its controllers, where it has them; and what it did for nobody.
    #[must_use]
    pub fn used(&self) -> ArrayUse {
        let handed_over = self.controllers.as_ref().map_or(0, Pair::handed_over);
        ArrayUse { handed_over, kept: self.kept, ..self.service.read() }
    }

    /// What commands to a volume waited for its policy so far; `None` where it has none.
    ///
    /// # Panics
    /// When the array has no such volume.
    #[must_use]
    pub fn policy_wait(&self, volume: u32) -> Option<PolicyWait> {
        Some(self.volumes[volume as usize].policy.as_ref()?.waited)
    }

    /// Commands that the array accepted and whose answer has not reached the host; of no meaning where the array is
    /// not told of answers, because it does not mind.
    #[must_use]
    pub const fn outstanding(&self) -> u32 {
        self.outstanding
    }
}

impl Policy {
    /// When a command that arrives now, and would be done then, has its tokens.
    #[cold]
    fn grant(
        &mut self,
        arrive: Time,
        (op, bytes): (Op, u32),
        done: Time,
        cluster: Option<&mut Cluster>,
    ) -> Time {
        let mut granted = self.bucket.grant(arrive, bytes);
        if let Some(cluster) = cluster {
            cluster.count(granted, bytes, &mut self.bucket);
        }
        if let Some(link) = self.bytes.as_mut().filter(|_| op.moves_data()) {
            granted = granted.max(link.begin(arrive, bytes));
        }
        self.waited.commands += 1;
        self.waited.wait_ns += granted.0.saturating_sub(done.0);
        granted
    }
}

impl Volume {
    fn new(config: &VolumeConfig, of: &ArrayConfig) -> Self {
        Self {
            policy: config.qos.as_ref().map(|qos| {
                let bytes = qos.bytes_per_sec.map(Link::new);
                Box::new(Policy { bucket: Bucket::new(qos), bytes, waited: PolicyWait::default() })
            }),
            reserved_until: Time::ZERO,
            reserved_by: 0,
            reserve_hold_ns: config.reserve_hold_ns,
            stuck: config.stuck.unwrap_or(NOT_STUCK),
            queue: of.queues.lun_limit.map(|limit| Box::new(Queue::new(limit))),
        }
    }

    #[cold]
    fn conflicts(&self, arrive: Time, host: u32) -> bool {
        let is_stuck = arrive >= self.stuck.from && arrive < self.stuck.until;
        arrive < self.reserved_until && self.reserved_by != host
            || is_stuck && self.stuck.host != host
    }

    /// Reserves the LUN for a metadata operation, from a command that is done at `done` until the operation
    /// ends. The command has its answer by then: what is held is the LUN, and no place in a queue.
    fn reserve(&mut self, done: Time, host: u32) {
        self.reserved_until = self.reserved_until.max(done + self.reserve_hold_ns);
        self.reserved_by = host;
    }
}
