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

use crate::{
    SchedPolicy,
    slab::{Io, Slab},
    world::World,
};

/// The worlds of one device that have something queued, and the state of the order among them.
#[derive(Clone, Debug)]
pub(crate) struct Sched {
    pub(crate) policy: SchedPolicy,
    /// Bytes that count as one I/O (`Disk.SchedCostUnit`).
    pub(crate) cost_unit: u32,
    backlog: Vec<WorldId>,
    /// The least share tag of the backlog under mClock, while it is known: so a crowd that comes at one
    /// instant is not walked for each of it.
    least: Option<u64>,
    affinity: sfq::Affinity,
    /// The share tag of the command dispatched last: fair queueing's virtual time.
    virtual_time: u64,
}

impl Sched {
    pub(crate) fn new(policy: SchedPolicy, cost_unit: u32) -> Self {
        Self {
            policy,
            cost_unit,
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
        ios: &mut Slab,
        world: WorldId,
        io: u32,
        now: Time,
    ) {
        let queue = &mut worlds[world.index()].queue;
        let was_idle = queue.is_empty();
        queue.push(ios, io);
        if was_idle {
            let floor = self.floor(worlds, now);
            self.backlog.push(world);
            let entry = &mut worlds[world.index()];
            self.tag_head(entry, ios, floor);
            self.least = self.least.map(|least| least.min(entry.tags.share));
        }
    }

    /// Puts a command that is to be sent again back to the front of its world. Its cost has been
    /// paid, so it is due at once, and what follows it is not charged a second time: else a world
    /// that an array refuses loses its turn to one that it takes.
    pub(crate) fn push_again(
        &mut self,
        worlds: &mut [World],
        ios: &mut Slab,
        world: WorldId,
        io: u32,
        now: Time,
    ) {
        let entry = &mut worlds[world.index()];
        self.least = None;
        if let Some(next) = entry.queue.head() {
            let step = self.cost_of(&ios[next]) * entry.share_ns;
            entry.tags.share = entry.tags.share.saturating_sub(step);
        } else {
            self.backlog.push(world);
        }
        entry.queue.push_front(ios, io);
        entry.tags.limit = entry.tags.limit.min(now);
    }

    /// Takes the command that goes next; `None` when nothing is queued or limits hold all of it.
    #[inline(always)]
    pub(crate) fn pop(&mut self, worlds: &mut [World], ios: &mut Slab, now: Time) -> Option<u32> {
        let chosen = self.choose(worlds, ios, now)?;
        let world = &mut worlds[chosen.index()];
        let io = world.queue.pop(ios)?;
        self.least = None;
        if world.tags.reservation > now {
            // It went by its share, which does not use up the reservation.
            let step = self.cost_of(&ios[io]) * world.reservation_ns;
            world.tags.reservation = Time(world.tags.reservation.0.saturating_sub(step));
        }
        let Io { block, bytes, .. } = ios[io];
        world.last_block = block.wrapping_add(bytes >> 12);
        self.virtual_time = world.tags.share;
        if world.queue.is_empty() {
            self.drop_from_backlog(chosen);
        } else {
            self.tag_head(world, ios, 0);
        }
        Some(io)
    }

    /// Takes a command out of the middle, because it was aborted.
    pub(crate) fn remove(&mut self, worlds: &mut [World], ios: &mut Slab, world: WorldId, io: u32) {
        let queue = &mut worlds[world.index()].queue;
        queue.remove(ios, io);
        if queue.is_empty() {
            self.drop_from_backlog(world);
        }
    }

    #[inline]
    fn drop_from_backlog(&mut self, world: WorldId) {
        self.least = None;
        if let Some(at) = self.backlog.iter().position(|&other| other == world) {
            self.backlog.swap_remove(at);
        }
    }

    /// When the first limit lets something go.
    pub(crate) fn next_release(&self, worlds: &[World]) -> Option<Time> {
        self.backlog.iter().map(|world| worlds[world.index()].tags.limit).min()
    }

    /// Whether something queued may go now.
    pub(crate) fn is_ready(&self, worlds: &[World], now: Time) -> bool {
        self.backlog.iter().any(|world| worlds[world.index()].may_go(now))
    }

    #[inline(always)]
    fn choose(&mut self, worlds: &[World], ios: &Slab, now: Time) -> Option<WorldId> {
        if let [only] = *self.backlog.as_slice() {
            return worlds[only.index()].may_go(now).then_some(only);
        }
        match self.policy {
            SchedPolicy::Fifo => fifo::choose(&self.backlog, worlds, ios, now),
            SchedPolicy::Sfq => self.affinity.choose(&self.backlog, worlds, ios, now),
            SchedPolicy::Mclock => mclock::choose(&self.backlog, worlds, now),
        }
    }

    /// The least share tag that a world may begin with.
    #[inline]
    fn floor(&mut self, worlds: &[World], now: Time) -> u64 {
        match self.policy {
            SchedPolicy::Fifo => 0,
            SchedPolicy::Sfq => self.virtual_time,
            SchedPolicy::Mclock => {
                let least = self.least.get_or_insert_with(|| mclock::least(&self.backlog, worlds));
                mclock::floor(*least, now)
            }
        }
    }

    /// Gives the command at the head its tags: one step after those of the one before it, and
    /// never before its arrival.
    #[inline]
    fn tag_head(&self, world: &mut World, ios: &Slab, floor: u64) {
        let Some(head) = world.queue.head() else { return };
        let arrival = ios[head].entered;
        let cost = self.cost_of(&ios[head]);
        if world.is_bound {
            world.tag_bounds(cost, arrival);
        }
        let step = world.tags.share.saturating_add(cost * world.share_ns);
        world.tags.share = match self.policy {
            SchedPolicy::Fifo => 0,
            SchedPolicy::Sfq => step.max(floor),
            SchedPolicy::Mclock => step.max(floor).max(arrival.0),
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
