//! Cumulative counters of one host: what the engine adds up and never resets.
//!
//! I/Os are counted where they cannot be summed from elsewhere: at the virtual disk and at the
//! path. A world is the sum of its virtual disks on a device, a device that of its virtual
//! disks, an adapter that of its paths; the [`Sampler`](crate::Sampler) adds them up when read.

use alloc::vec::Vec;

use crate::{Direction, Histogram, Op, Seldom, Status, Time};

/// What completed I/Os of one direction add up to. All times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoTotals {
    /// Commands completed.
    pub commands: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Time waiting inside the guest for a slot of the virtual disk or adapter.
    pub guest_ns: u64,
    /// Time in the VMkernel (KAVG).
    pub kernel_ns: u64,
    /// The part of it spent in queues (QAVG).
    pub queue_ns: u64,
    /// Time from the hand-over to the driver until the completion (DAVG).
    pub device_ns: u64,
    /// The part of it that the array reports as its own latency.
    pub array_ns: u64,
}

impl IoTotals {
    /// Adds other totals. Sums go round, as those of times do after months of many I/Os.
    pub const fn add(&mut self, other: &Self) {
        self.commands = self.commands.wrapping_add(other.commands);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.guest_ns = self.guest_ns.wrapping_add(other.guest_ns);
        self.kernel_ns = self.kernel_ns.wrapping_add(other.kernel_ns);
        self.queue_ns = self.queue_ns.wrapping_add(other.queue_ns);
        self.device_ns = self.device_ns.wrapping_add(other.device_ns);
        self.array_ns = self.array_ns.wrapping_add(other.array_ns);
    }

    /// What was added since an `earlier` reading.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            commands: self.commands.wrapping_sub(earlier.commands),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
            guest_ns: self.guest_ns.wrapping_sub(earlier.guest_ns),
            kernel_ns: self.kernel_ns.wrapping_sub(earlier.kernel_ns),
            queue_ns: self.queue_ns.wrapping_sub(earlier.queue_ns),
            device_ns: self.device_ns.wrapping_sub(earlier.device_ns),
            array_ns: self.array_ns.wrapping_sub(earlier.array_ns),
        }
    }
}

/// How many are inside a level now, and the integral of that number over time.
///
/// The integral costs one addition a passage: it is the sum of all departures minus the sum of
/// all arrivals, in wrapping arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    now: u32,
    area: u64,
}

impl Occupancy {
    /// How many are inside and the integral as it is kept, for whoever keeps it elsewhere.
    #[must_use]
    pub const fn parts(&self) -> (u32, u64) {
        (self.now, self.area)
    }

    /// What had these [`Self::parts`].
    #[must_use]
    pub const fn of_parts((now, area): (u32, u64)) -> Self {
        Self { now, area }
    }

    /// One more is inside from `at` on.
    #[inline]
    pub const fn enter(&mut self, at: Time) {
        self.now += 1;
        self.area = self.area.wrapping_sub(at.0);
    }

    /// One left at `at`.
    #[inline]
    pub const fn leave(&mut self, at: Time) {
        debug_assert!(self.now > 0, "left a level that nobody was in");
        self.now -= 1;
        self.area = self.area.wrapping_add(at.0);
    }

    /// From `at` on so many are inside.
    pub const fn set(&mut self, count: u32, at: Time) {
        let change = (count as u64).wrapping_sub(self.now as u64);
        self.now = count;
        self.area = self.area.wrapping_sub(change.wrapping_mul(at.0));
    }

    /// Adds those who are inside another level, as if both were one.
    pub const fn add(&mut self, other: &Self) {
        self.now += other.now;
        self.area = self.area.wrapping_add(other.area);
    }

    /// How many are inside.
    #[must_use]
    pub const fn now(&self) -> u32 {
        self.now
    }

    /// The mean number inside between an `earlier` reading taken at `from` and this one at `to`.
    #[must_use]
    pub fn mean_since(&self, earlier: &Self, from: Time, to: Time) -> f64 {
        let area = self.integral(to).wrapping_sub(earlier.integral(from));
        area as f64 / (to - from).max(1) as f64
    }

    /// The integral of the number inside over time, up to `at`: the nanoseconds that those who
    /// left and those who are inside spent here.
    #[must_use]
    pub const fn integral(&self, at: Time) -> u64 {
        self.area.wrapping_add((self.now as u64).wrapping_mul(at.0))
    }
}

/// Latency histograms of one direction, a level each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// Waiting inside the guest.
    pub guest: Histogram,
    /// Inside the VMkernel.
    pub kernel: Histogram,
    /// From the driver to the array and back.
    pub device: Histogram,
}

impl Levels {
    fn copy(&mut self, from: &Self) {
        self.guest.copy(&from.guest);
        self.kernel.copy(&from.kernel);
        self.device.copy(&from.device);
    }
}

/// What most virtual disks count none of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RareCounters {
    /// Commands that failed, by [`Direction`].
    pub failed: [u64; 3],
    /// Commands aborted: from the abort on, also while the driver still has them.
    pub aborts: u64,
    /// Commands that the host asked back because they took too long.
    pub overdue: u64,
    /// Resets that its guest issued.
    pub resets: u64,
    /// SCSI reservations taken.
    pub reserves: u64,
    /// Those that failed: others had the device for as long as they were tried.
    pub failed_reserves: u64,
    /// Results RESERVATION CONFLICT, each retried.
    pub conflicts: u64,
    /// Atomic test and set commands completed.
    pub ats: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Discards completed.
    pub discards: u64,
    /// Writes of zeroes completed.
    pub zeroes: u64,
    /// Copies by the array completed.
    pub copies: u64,
}

/// Counters of a virtual disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VdiskCounters {
    /// Completed I/Os, by [`Direction`].
    pub io: [IoTotals; 3],
    /// Latencies of I/Os as the application sees them, guest wait included: one that its guest's driver cuts takes
    /// until the last of its commands ends.
    pub total: Histogram,
    /// Their sum in nanoseconds.
    pub total_ns: u64,
    /// The shares in force; 0 while its VM is off.
    pub shares: u32,
    /// I/Os that the application wanted to issue. The engine sees those that were submitted;
    /// whoever drives it adds those that still wait in the application or were lost there.
    pub offered: u64,
    /// I/Os that the application gave up before they were submitted.
    pub lost: u64,
    /// I/Os of the application that its guest made a part of another one's command. The engine sees
    /// none of it: whoever drives it adds them.
    pub merged: u64,
    /// Commands waiting inside the guest, in the application too.
    pub guest_queued: Occupancy,
    /// Commands waiting for a slot of the device.
    pub queued: Occupancy,
    /// Commands holding one.
    pub slots: Occupancy,
    /// What most virtual disks have none of.
    pub rare: Seldom<RareCounters>,
}

impl VdiskCounters {
    fn copy(&mut self, from: &Self) {
        let mut total = core::mem::take(&mut self.total);
        total.copy(&from.total);
        let mut rare = core::mem::take(&mut self.rare);
        rare.copy(&from.rare);
        *self = Self { total, rare, ..*from };
    }

    /// Counts a command that ended, and the application's I/O with it unless it is only a part of that.
    #[inline(always)]
    pub fn count(&mut self, op: Op, status: Status, ended: &IoTotals, is_part: bool) {
        let direction = op.direction();
        // Those that lie beside each other at different times: each is one addition in memory then, and otherwise the
        // compiler takes them for a vector that it has to put together first.
        self.io[direction as usize].add(&IoTotals { commands: 0, queue_ns: 0, ..*ended });
        if !is_part {
            self.count_whole(ended.guest_ns + ended.kernel_ns + ended.device_ns);
        }
        let io = &mut self.io[direction as usize];
        io.commands = io.commands.wrapping_add(ended.commands);
        io.queue_ns = io.queue_ns.wrapping_add(ended.queue_ns);
        if !matches!(status, Status::Good) || direction == Direction::Other {
            self.count_rest(op, status);
        }
    }

    /// Counts an I/O of the application that ended after so long.
    #[inline(always)]
    pub fn count_whole(&mut self, total_ns: u64) {
        self.total.record(total_ns);
        self.total_ns = self.total_ns.wrapping_add(total_ns);
    }

    /// Counts what is neither a read nor a write, or did not end well.
    fn count_rest(&mut self, op: Op, status: Status) {
        let rare = self.rare.get_mut();
        match (status, op) {
            (Status::Good, Op::Reserve) => rare.reserves += 1,
            (Status::Good, Op::Ats) => rare.ats += 1,
            (Status::Good, Op::Flush) => rare.flushes += 1,
            (Status::Good, Op::Discard) => rare.discards += 1,
            (Status::Good, Op::WriteZeroes) => rare.zeroes += 1,
            (Status::Good, Op::Copy) => rare.copies += 1,
            (Status::Good, Op::Read | Op::Write | Op::WriteFua | Op::Release) => {}
            _ => {
                rare.failed[op.direction() as usize] += 1;
                rare.failed_reserves += u64::from(op == Op::Reserve);
            }
        }
    }
}

/// Counters of a device queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// The limit in force (DQLEN).
    pub depth: u32,
    /// The same over time.
    pub depth_over_time: Occupancy,
    /// Commands holding a slot (ACTV).
    pub active: Occupancy,
    /// Commands waiting for one (QUED).
    pub queued: Occupancy,
    /// Commands held until they are sent again, after BUSY or a reservation conflict.
    pub held: Occupancy,
    /// Latency histograms of reads and writes.
    pub levels: [Levels; 2],
    /// Times the limit fell to DSNRO because VMs competed.
    pub engagements: u64,
    /// Results TASK SET FULL or BUSY.
    pub queue_full: u64,
    /// LUN resets by the host, because the driver did not answer.
    pub resets: u64,
    /// Units of `Disk.SchedCostUnit` that went to the driver while a disk on it had an IOPS limit or a reservation.
    pub units: u64,
}

impl DeviceCounters {
    fn copy(&mut self, from: &Self) {
        let mut levels = core::mem::take(&mut self.levels);
        levels.iter_mut().zip(&from.levels).for_each(|(levels, from)| levels.copy(from));
        *self = Self { levels, ..*from };
    }
}

/// Counters of a path or an adapter: a limit and those who pass it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateCounters {
    /// The limit: AQLEN, or the driver's depth.
    pub depth: u32,
    /// Commands that passed this gate and have not completed.
    pub active: Occupancy,
    /// Commands waiting at this gate.
    pub queued: Occupancy,
    /// Completed I/Os, by [`Direction`]; `queue_ns` is the wait at paths and adapters alone.
    /// Adapters leave them 0: they are the sums of their paths.
    pub io: Seldom<[IoTotals; 3]>,
    /// Commands that were split.
    pub split_commands: u64,
    /// The pieces that splitting made.
    pub split_copies: u64,
}

impl GateCounters {
    fn copy(&mut self, from: &Self) {
        let mut io = core::mem::take(&mut self.io);
        io.copy(&from.io);
        *self = Self { io, ..*from };
    }

    /// Counts a command that was split into so many pieces.
    pub const fn count_split(&mut self, pieces: u32) {
        self.split_commands += 1;
        self.split_copies += pieces as u64;
    }
}

/// Everything that one host has counted since it was built, at one instant. A row is the difference
/// of two. One that was filled before is filled anew in its own memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSnapshot {
    /// The instant.
    pub at: Time,
    /// By [`VdiskId`](crate::VdiskId).
    pub vdisks: Vec<VdiskCounters>,
    /// By [`DeviceId`](crate::DeviceId).
    pub devices: Vec<DeviceCounters>,
    /// By [`PathId`](crate::PathId).
    pub paths: Vec<GateCounters>,
    /// By [`AdapterId`](crate::AdapterId).
    pub adapters: Vec<GateCounters>,
}

impl HostSnapshot {
    /// The same objects before they have counted anything, at [`Time::ZERO`]; their limits and shares are 0 too.
    #[must_use]
    pub fn uncounted(&self) -> Self {
        fn none<T: Default>(like: &[T]) -> Vec<T> {
            like.iter().map(|_| T::default()).collect()
        }
        Self {
            at: Time::ZERO,
            vdisks: none(&self.vdisks),
            devices: none(&self.devices),
            paths: none(&self.paths),
            adapters: none(&self.adapters),
        }
    }

    /// Fills in the virtual disks, in the order of their ids.
    pub fn fill_vdisks<'a>(&mut self, from: impl ExactSizeIterator<Item = &'a VdiskCounters>) {
        self.vdisks.resize_with(from.len(), VdiskCounters::default);
        self.vdisks.iter_mut().zip(from).for_each(|(disk, from)| disk.copy(from));
    }

    /// Fills in the devices, in the order of their ids.
    pub fn fill_devices<'a>(&mut self, from: impl ExactSizeIterator<Item = &'a DeviceCounters>) {
        self.devices.resize_with(from.len(), DeviceCounters::default);
        self.devices.iter_mut().zip(from).for_each(|(device, from)| device.copy(from));
    }

    /// Fills in the paths and the adapters, in the order of their ids.
    pub fn fill_gates<'a>(
        &mut self,
        paths: impl ExactSizeIterator<Item = &'a GateCounters>,
        adapters: impl ExactSizeIterator<Item = &'a GateCounters>,
    ) {
        self.paths.resize_with(paths.len(), GateCounters::default);
        self.paths.iter_mut().zip(paths).for_each(|(path, from)| path.copy(from));
        self.adapters.resize_with(adapters.len(), GateCounters::default);
        self.adapters.iter_mut().zip(adapters).for_each(|(adapter, from)| adapter.copy(from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_an_occupancy_is_its_time_average() {
        let mut level = Occupancy::default();
        level.enter(Time(100));
        let before = level;
        level.enter(Time(200));
        level.leave(Time(300));
        assert_eq!(level.now(), 1);
        let mean = level.mean_since(&before, Time(100), Time(400));
        assert!((mean - (3 * 100 + 100) as f64 / 300.0).abs() < 1e-12);
    }

    #[test]
    fn a_number_that_is_set_has_its_time_average() {
        let mut limit = Occupancy::default();
        limit.set(128, Time(0));
        let before = limit;
        limit.set(32, Time(100));
        limit.set(64, Time(300));
        assert_eq!(limit.now(), 64);
        let mean = limit.mean_since(&before, Time(0), Time(400));
        assert!((mean - f64::from(128 + 2 * 32 + 64) / 4.0).abs() < 1e-12);
    }
}
