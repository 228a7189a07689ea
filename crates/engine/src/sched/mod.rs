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
use knobs::cost_units;

use crate::{SchedPolicy, codec::records, slab::Io, world::World};

/// The worlds of one device that have something queued, and the state of the order among them.
#[derive(Clone, Debug)]
pub(crate) struct Sched {
    pub(crate) policy: SchedPolicy,
    /// Bytes that count as one I/O (`Disk.SchedCostUnit`).
    pub(crate) cost_unit: u32,
    /// The same for an IOPS limit.
    pub(crate) limit_unit: u32,
    /// I/Os that a world may bank while it is idle, under mClock.
    pub(crate) idle_credit: u64,
    /// Whether a world of the device has a limit or a reservation.
    pub(crate) has_bounds: bool,
    /// What the commands counted together that went while that was so.
    pub(crate) units: u64,
    backlog: Vec<Waiting>,
    affinity: sfq::Affinity,
    /// The greatest share tag of the commands that went by their share: fair queueing's virtual time. It
    /// never goes back, or a world that a limit held would take everybody's place behind itself.
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
    pub(crate) fn new(
        policy: SchedPolicy,
        cost_unit: u32,
        limit_unit: u32,
        idle_credit: u64,
    ) -> Self {
        Self {
            policy,
            cost_unit,
            limit_unit,
            idle_credit,
            has_bounds: false,
            units: 0,
            backlog: Vec::new(),
            affinity: sfq::Affinity::default(),
            virtual_time: 0,
        }
    }

    pub(crate) const fn set_affinity(&mut self, quantum: u32, max_diff_sectors: u32) {
        self.affinity.set(quantum, max_diff_sectors);
    }

    /// Queues a command of a world.
    #[inline(always)]
    pub(crate) fn push(&mut self, worlds: &mut [World], ios: &mut [Io], id: WorldId, io: u32) {
        let world = &mut worlds[id.index()];
        let was_idle = world.queue.is_empty();
        world.queue.push(ios, io);
        if was_idle {
            self.tag(world, &ios[io as usize]);
            self.backlog.push(Waiting::of(id, world));
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
        if self.has_bounds {
            self.units = self.units.saturating_sub(cost_of(&ios[io as usize], self.cost_unit));
        }
        let world = &mut worlds[id.index()];
        if let Some(next) = world.queue.head() {
            let step = cost_of(&ios[next as usize], self.cost_unit) * world.share_ns;
            world.tags.share = world.tags.share.saturating_sub(step);
        }
        match self.place_of(id) {
            Some(at) => self.backlog[at] = Waiting::of(id, world),
            None => self.backlog.push(Waiting::of(id, world)),
        }
        world.queue.push_front(ios, io);
        world.tags.limit = world.tags.limit.min(now);
    }

    /// Takes the command that goes next; `None` when nothing is queued or limits hold all of it. What it
    /// counts is added to `units` where there are limits or reservations.
    #[inline(always)]
    pub(crate) fn pop(&mut self, worlds: &mut [World], ios: &[Io], now: Time) -> Option<u32> {
        // What most devices have is asked once; what the others need is apart.
        let is_simple = self.policy == SchedPolicy::Mclock && !self.has_bounds;
        let at = match is_simple {
            true => mclock::by_share(&self.backlog, |_| true)?,
            false => self.choose(worlds, ios, now)?,
        };
        let id = self.backlog[at].world;
        let world = &mut worlds[id.index()];
        let io = world.queue.pop(ios)?;
        let record = &ios[io as usize];
        if is_simple {
            self.virtual_time = self.virtual_time.max(world.tags.share);
        } else {
            self.charge(worlds, record, id, now);
        }
        let world = &mut worlds[id.index()];
        world.last_block = record.block.wrapping_add(record.bytes >> 12);
        match world.queue.head() {
            Some(head) => {
                let head = &ios[head as usize];
                if is_simple {
                    self.tag_in_real_time(world, head);
                } else {
                    self.tag(world, head);
                }
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
        if queue.is_empty()
            && let Some(at) = self.place_of(id)
        {
            self.backlog.swap_remove(at);
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
    #[inline(never)]
    fn choose(&mut self, worlds: &[World], ios: &[Io], now: Time) -> Option<usize> {
        match self.policy {
            SchedPolicy::Mclock => mclock::choose(&self.backlog, worlds, now),
            SchedPolicy::Fifo => fifo::choose(&self.backlog, worlds, ios, now),
            SchedPolicy::Sfq => self.affinity.choose(&self.backlog, worlds, ios, now),
        }
    }

    /// A command of a world goes by its share. Who goes on with a run is ahead of the others by it; whoever
    /// waits keeps his claim.
    fn go_by_share(&mut self, world: &World) {
        if !(self.policy == SchedPolicy::Sfq && self.affinity.goes_on()) {
            self.virtual_time = self.virtual_time.max(world.tags.share);
        }
    }

    /// A command of a world goes. Where there are limits or reservations it adds what it counts to `units`: it goes by
    /// its share, or by what was reserved for its world, which only mClock knows.
    #[inline(never)]
    fn charge(&mut self, worlds: &mut [World], io: &Io, id: WorldId, now: Time) {
        let is_mclock = self.policy == SchedPolicy::Mclock;
        let cost = cost_of(io, self.cost_unit);
        self.units += if self.has_bounds { cost } else { 0 };
        if self.has_bounds && worlds[id.index()].is_behind(now) && is_mclock {
            let level = self.level(worlds, id, now);
            worlds[id.index()].cap_share(cost, level);
        } else {
            let world = &mut worlds[id.index()];
            if self.has_bounds && world.is_bound {
                world.give_back_reservation(cost);
            }
            self.go_by_share(world);
        }
    }

    /// A world whose allocation is new is ahead of the others by nothing that a reservation of before gave it.
    #[cold]
    pub(crate) fn forget_lead(&mut self, worlds: &mut [World], id: WorldId, now: Time) {
        if self.policy == SchedPolicy::Mclock {
            let level = self.level(worlds, id, now);
            let share = &mut worlds[id.index()].tags.share;
            *share = level.min(*share);
            if let Some(at) = self.place_of(id) {
                self.backlog[at].share = *share;
            }
        }
    }

    #[cold]
    fn level(&self, worlds: &[World], id: WorldId, now: Time) -> u64 {
        let may_go =
            |waiting: &&Waiting| waiting.world != id && worlds[waiting.world.index()].may_go(now);
        let least = self.backlog.iter().filter(may_go).map(|waiting| waiting.share).min();
        least.unwrap_or(0).max(self.virtual_time).max(now.0)
    }

    /// Gives the command at the head of a world its tags: one step after those of the one before it,
    /// but not before virtual time, and under mClock not before its arrival. So who was idle or held by its
    /// limit begins level with the others, and neither makes up for it nor waits for what it had alone; but
    /// under mClock it may make up for as much as it may bank [mClock; reference section 4.1].
    #[inline(always)]
    fn tag(&self, world: &mut World, head: &Io) {
        match self.policy {
            SchedPolicy::Fifo => world.tags.share = 0,
            SchedPolicy::Sfq => {
                world.tags.share = self.next_share(world, head).max(self.virtual_time);
            }
            SchedPolicy::Mclock => self.tag_in_real_time(world, head),
        }
        if world.is_bound {
            world.tag_bounds(cost_of(head, self.limit_unit), head.entered);
        }
    }

    /// The same of mClock's shares.
    #[inline(always)]
    fn tag_in_real_time(&self, world: &mut World, head: &Io) {
        let banked = self.idle_credit * world.share_ns;
        let level = self.virtual_time.saturating_sub(banked);
        world.tags.share = self.next_share(world, head).max(level).max(head.entered.0);
    }

    #[inline(always)]
    fn next_share(&self, world: &World, head: &Io) -> u64 {
        let cost = cost_of(head, self.cost_unit);
        world.tags.share.saturating_add(cost * world.share_ns)
    }
}

#[inline(always)]
fn cost_of(io: &Io, unit: u32) -> u64 {
    if io.bytes <= unit {
        return 1;
    }
    cost_units(io.data(), unit).into()
}

records! {
    Sched { policy, cost_unit, limit_unit, idle_credit, has_bounds, units, backlog, affinity, virtual_time }
    Waiting { share, world }
}
