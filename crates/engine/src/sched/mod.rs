//! Which world goes next when a slot of the device is free.
//!
//! Three orders: `fifo` (arrival), `sfq` (true proportional sharing, the classic scheduler) and
//! `mclock` (reservations and limits in real time, shares as absolute rates). The IOPS limit
//! holds under all of them. Ties go to the lower world id: the rule is part of the model.

mod fifo;
mod mclock;
mod sfq;

use alloc::vec::Vec;

use counters::{Time, WorldId};

use crate::{SchedPolicy, codec::records, slab::Io, world::World};

/// The worlds of one device that have something queued, and the state of the order among them.
#[derive(Clone, Debug)]
pub(crate) struct Sched {
    pub(crate) policy: SchedPolicy,
    /// Bytes that count as one I/O (`Disk.SchedCostUnit`).
    pub(crate) cost_unit: u32,
    /// Whether a world of the device has a limit or a reservation.
    pub(crate) has_bounds: bool,
    backlog: Vec<Waiting>,
    /// The least share tag of the backlog under mClock, while it is known: so a crowd that comes at one
    /// instant is not walked for each of it.
    least: Option<u64>,
    affinity: sfq::Affinity,
    /// The share tag of the command dispatched last: fair queueing's virtual time.
    virtual_time: u64,
}

/// A world that has something queued, and its share tag: the tags of those who wait lie side by
/// side, because all of them are compared for each command.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    share: u64,
    world: WorldId,
}

impl Waiting {
    const fn of(id: WorldId, world: &World) -> Self {
        Self { share: world.tags.share, world: id }
    }
}

impl Sched {
    pub(crate) fn new(policy: SchedPolicy, cost_unit: u32) -> Self {
        Self {
            policy,
            cost_unit,
            has_bounds: false,
            backlog: Vec::new(),
            least: None,
            affinity: sfq::Affinity::default(),
            virtual_time: 0,
        }
    }

    pub(crate) const fn set_affinity(&mut self, quantum: u32, max_diff_sectors: u32) {
        self.affinity.set(quantum, max_diff_sectors);
    }

    /// Queues a command of a world.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        worlds: &mut [World],
        ios: &mut [Io],
        id: WorldId,
        io: u32,
        now: Time,
    ) {
        let world = &mut worlds[id.index()];
        let was_idle = world.queue.is_empty();
        world.queue.push(ios, io);
        if was_idle {
            let floor = self.floor(now);
            self.tag(world, &ios[io as usize], floor);
            self.backlog.push(Waiting::of(id, world));
            self.least = self.least.map(|least| least.min(world.tags.share));
        }
    }

    /// Puts a command that is to be sent again back to the front of its world. Its cost has been
    /// paid, so it is due at once, and what follows it is not charged a second time: else a world
    /// that an array refuses loses its turn to one that it takes.
    pub(crate) fn push_again(
        &mut self,
        worlds: &mut [World],
        ios: &mut [Io],
        id: WorldId,
        io: u32,
        now: Time,
    ) {
        let world = &mut worlds[id.index()];
        self.least = None;
        if let Some(next) = world.queue.head() {
            let step = self.cost_of(&ios[next as usize]) * world.share_ns;
            world.tags.share = world.tags.share.saturating_sub(step);
        }
        match self.place_of(id) {
            Some(at) => self.backlog[at] = Waiting::of(id, world),
            None => self.backlog.push(Waiting::of(id, world)),
        }
        world.queue.push_front(ios, io);
        world.tags.limit = world.tags.limit.min(now);
    }

    /// Takes the command that goes next; `None` when nothing is queued or limits hold all of it.
    #[inline(always)]
    pub(crate) fn pop(&mut self, worlds: &mut [World], ios: &[Io], now: Time) -> Option<u32> {
        let at = self.choose(worlds, ios, now)?;
        let id = self.backlog[at].world;
        let world = &mut worlds[id.index()];
        let io = world.queue.pop(ios)?;
        self.least = None;
        let record = &ios[io as usize];
        if world.is_bound {
            world.give_back_reservation(self.cost_of(record), now);
        }
        world.last_block = record.block.wrapping_add(record.bytes >> 12);
        self.virtual_time = world.tags.share;
        match world.queue.head() {
            Some(head) => {
                self.tag(world, &ios[head as usize], 0);
                self.backlog[at].share = world.tags.share;
            }
            None => _ = self.backlog.swap_remove(at),
        }
        Some(io)
    }

    /// Takes a command out of the middle, because it was aborted.
    pub(crate) fn remove(&mut self, worlds: &mut [World], ios: &mut [Io], id: WorldId, io: u32) {
        let queue = &mut worlds[id.index()].queue;
        queue.remove(ios, io);
        if queue.is_empty() {
            self.least = None;
            if let Some(at) = self.place_of(id) {
                self.backlog.swap_remove(at);
            }
        }
    }

    fn place_of(&self, id: WorldId) -> Option<usize> {
        self.backlog.iter().position(|waiting| waiting.world == id)
    }

    /// Every world of the device that has something queued.
    pub(crate) fn queued(&self) -> impl Iterator<Item = WorldId> + '_ {
        self.backlog.iter().map(|waiting| waiting.world)
    }

    /// When the first limit lets something go.
    pub(crate) fn next_release(&self, worlds: &[World]) -> Option<Time> {
        self.backlog.iter().map(|waiting| worlds[waiting.world.index()].tags.limit).min()
    }

    /// Whether something queued may go now.
    pub(crate) fn is_ready(&self, worlds: &[World], now: Time) -> bool {
        self.backlog.iter().any(|waiting| worlds[waiting.world.index()].may_go(now))
    }

    /// The place in the backlog of the world whose turn it is.
    #[inline(always)]
    fn choose(&mut self, worlds: &[World], ios: &[Io], now: Time) -> Option<usize> {
        if let [only] = *self.backlog.as_slice() {
            return (!self.has_bounds || worlds[only.world.index()].may_go(now)).then_some(0);
        }
        match self.policy {
            SchedPolicy::Mclock if !self.has_bounds => mclock::by_share(&self.backlog, |_| true),
            SchedPolicy::Mclock => mclock::choose(&self.backlog, worlds, now),
            SchedPolicy::Fifo => fifo::choose(&self.backlog, worlds, ios, now),
            SchedPolicy::Sfq => self.affinity.choose(&self.backlog, worlds, ios, now),
        }
    }

    /// The least share tag that a world may begin with.
    #[inline]
    fn floor(&mut self, now: Time) -> u64 {
        match self.policy {
            SchedPolicy::Fifo => 0,
            SchedPolicy::Sfq => self.virtual_time,
            SchedPolicy::Mclock => {
                let least = self.least.get_or_insert_with(|| mclock::least(&self.backlog));
                mclock::floor(*least, now)
            }
        }
    }

    /// Gives the command at the head of a world its tags: one step after those of the one before it,
    /// and never before its arrival.
    #[inline(always)]
    fn tag(&self, world: &mut World, head: &Io, floor: u64) {
        let cost = self.cost_of(head);
        if world.is_bound {
            world.tag_bounds(cost, head.entered);
        }
        let step = world.tags.share.saturating_add(cost * world.share_ns);
        world.tags.share = match self.policy {
            SchedPolicy::Fifo => 0,
            SchedPolicy::Sfq => step.max(floor),
            SchedPolicy::Mclock => step.max(floor).max(head.entered.0),
        };
    }

    /// I/Os that a command counts as: one for each begun `Disk.SchedCostUnit` of its data [LAMW,
    /// API], and one where it moves none (ruling).
    #[inline]
    fn cost_of(&self, io: &Io) -> u64 {
        if io.bytes <= self.cost_unit {
            return 1;
        }
        u64::from(io.data().div_ceil(self.cost_unit)).max(1)
    }
}

records! {
    Sched { policy, cost_unit, has_bounds, backlog, least, affinity, virtual_time }
    Waiting { share, world }
}
