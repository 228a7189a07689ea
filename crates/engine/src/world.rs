//! What a device queue schedules: per VM and device a world, from ESXi 6.0 on each file of a VM
//! on its own [PFS]. It has shares, a limit, a reservation, and a queue.

use counters::{SECOND, Time};

use knobs::Allocation;

use crate::{codec::records, slab::Queue};

/// Steps of cost / shares that a reservation may take a world ahead of the others (ruling). What is beyond is given
/// to it: where its share is about its reservation it is ahead by chance, as the device is slow and quick, and the
/// fewer steps, the more it has above its share, a tenth with 8. They are also what it waits for when its share becomes
/// more than its reservation.
const AHEAD_MAX: u64 = 128;

/// A scheduling queue of a device.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// What waits for a slot of the device.
    pub(crate) queue: Queue,
    pub(crate) allocation: Allocation,
    /// What a share is (`HostConfig::weight_scale_percent`).
    pub(crate) weight_scale_percent: u32,
    /// Nanoseconds that one unit of cost takes at the rate of the shares, the limit and the
    /// reservation; 0 where there is none.
    pub(crate) share_ns: u64,
    pub(crate) limit_ns: u64,
    pub(crate) reservation_ns: u64,
    /// Whether it has a limit or a reservation.
    pub(crate) is_bound: bool,
    /// The tags of the command at the head of the queue.
    pub(crate) tags: Tags,
    /// Where the last command dispatched ended, in blocks of 4 KiB.
    pub(crate) last_block: u32,
}

/// When the command at the head may or should go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tags {
    /// Not before this: the IOPS limit.
    pub(crate) limit: Time,
    /// By this, whatever the shares say: the reservation.
    pub(crate) reservation: Time,
    /// Its rank among the worlds: a real time under mClock, a virtual one under fair queueing.
    pub(crate) share: u64,
}

impl World {
    pub(crate) fn new(allocation: Allocation, weight_scale_percent: u32) -> Self {
        let mut world = Self {
            queue: Queue::default(),
            allocation,
            weight_scale_percent,
            share_ns: 0,
            limit_ns: 0,
            reservation_ns: 0,
            is_bound: false,
            tags: Tags::default(),
            last_block: 0,
        };
        world.set_allocation(allocation);
        world
    }

    /// Changes shares, limit and reservation, each from `now` on: a limit or reservation that is new counts
    /// nothing that was before it, and of one that changes what is left of the wait is at the new rate. What a
    /// limit let go that had to wait for a slot, the next one does not let follow at once.
    pub(crate) fn allocate(&mut self, allocation: Allocation, now: Time) {
        let (limit_ns, reservation_ns) = (self.limit_ns, self.reservation_ns);
        self.set_allocation(allocation);
        let Tags { limit, reservation, .. } = &mut self.tags;
        change_rate(limit, (limit_ns, self.limit_ns), now);
        if self.limit_ns != limit_ns {
            *limit = (*limit).max(now);
        }
        change_rate(reservation, (reservation_ns, self.reservation_ns), now);
    }

    fn set_allocation(&mut self, allocation: Allocation) {
        // Of more than one a nanosecond it is one: 0 is none.
        let nanos_per = |rate: u32| SECOND.checked_div(u64::from(rate)).map_or(0, |ns| ns.max(1));
        self.allocation = allocation;
        let weight = u64::from(allocation.shares) * u64::from(self.weight_scale_percent);
        self.share_ns = (100 * SECOND).checked_div(weight).unwrap_or(0);
        self.limit_ns = allocation.limit_iops.map_or(0, nanos_per);
        self.reservation_ns = nanos_per(allocation.reservation_iops);
        self.is_bound = self.limit_ns != 0 || self.reservation_ns != 0;
    }

    /// Whether its times are those of its allocation.
    pub(crate) fn is_as_allocated(&self) -> bool {
        let fresh = Self::new(self.allocation, self.weight_scale_percent);
        let times = |world: &Self| (world.share_ns, world.limit_ns, world.reservation_ns);
        (times(self), self.is_bound) == (times(&fresh), fresh.is_bound)
    }

    /// Whether the limit lets the command at the head go.
    #[inline]
    pub(crate) fn may_go(&self, now: Time) -> bool {
        self.limit_ns == 0 || self.tags.limit <= now
    }

    /// Whether the command at the head is due by the reservation.
    #[inline]
    pub(crate) fn is_behind(&self, now: Time) -> bool {
        self.reservation_ns != 0 && self.tags.reservation <= now
    }

    /// A command that goes by its share does not use up the reservation.
    #[cold]
    pub(crate) fn give_back_reservation(&mut self, cost: u64) {
        let due = self.tags.reservation.0.saturating_sub(cost * self.reservation_ns);
        self.tags.reservation = Time(due);
    }

    /// What goes by the reservation moves the share tag too. So that shares count again soon where they give
    /// more than the reservation, it is not further ahead of `level` than [`AHEAD_MAX`] steps.
    #[cold]
    pub(crate) fn cap_share(&mut self, cost: u64, level: u64) {
        let most = level.saturating_add(AHEAD_MAX * cost * self.share_ns);
        self.tags.share = self.tags.share.min(most);
    }

    /// Gives the command at the head what holds it back and what hurries it.
    #[cold]
    pub(crate) fn tag_bounds(&mut self, cost: u64, arrival: Time) {
        if self.limit_ns != 0 {
            self.tags.limit = (self.tags.limit + cost * self.limit_ns).max(arrival);
        }
        if self.reservation_ns != 0 {
            let due = self.tags.reservation + cost * self.reservation_ns;
            self.tags.reservation = due.max(arrival);
        }
    }
}

/// Moves a tag to another time per unit; 0 is none.
fn change_rate(tag: &mut Time, (was_ns, is_ns): (u64, u64), now: Time) {
    if was_ns == 0 {
        *tag = (*tag).max(now);
    } else if is_ns != was_ns && *tag > now {
        let left = u128::from(*tag - now) * u128::from(is_ns) / u128::from(was_ns);
        *tag = now + left as u64;
    }
}

records! {
    World {
        queue, allocation, weight_scale_percent, share_ns, limit_ns, reservation_ns, is_bound, tags, last_block,
    }
    Tags { limit, reservation, share }
}

/// Joins the allocations of virtual disks of one VM: before ESXi 6.0 they share one world, whose shares add up
/// and whose limit holds only when every disk has one.
pub(crate) fn joined(one: Allocation, other: Allocation) -> Allocation {
    Allocation {
        shares: one.shares.saturating_add(other.shares),
        limit_iops: one.limit_iops.zip(other.limit_iops).map(|(a, b)| a.saturating_add(b)),
        reservation_iops: one.reservation_iops.saturating_add(other.reservation_iops),
    }
}
