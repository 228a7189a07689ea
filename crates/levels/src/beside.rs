//! What a value may come to beside the others of its row: what cannot be was not measured.
//!
//! A counter that wrapped or was read while it moved often prints a number that a device could have
//! in principle, but not in this row: aborts without commands that could be aborted, a minute of
//! latency for thousands of commands where three were outstanding. A stall is possible, however
//! long: its few commands were outstanding before. A QAVG of 0 beside commands that are queued was
//! not measured, and neither was a DAVG of 0 beside commands that are active.

use std::ops::RangeInclusive;

use counters::{Controller, Counter, EntityId, Recording, SECOND, interval_s};
use knobs::{Advanced, CONFLICT_RETRY_NS, NFS_OUTSTANDING, disk_depths};

/// The columns of an object that bound each other.
pub(crate) struct Beside<'a> {
    times_ms: &'a [i64],
    commands: &'a [f64],
    /// Mebibytes and commands a second, read and written.
    parts: [&'a [f64]; 4],
    latencies: [&'a [f64]; 3],
    active: &'a [f64],
    queued: &'a [f64],
    /// The deepest DQLEN that was seen.
    slots: f64,
    /// The most commands that any virtual disk lets through.
    disk_slots: f64,
}

/// What bounds a counter.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    /// Commands are at least those that read and write.
    Commands,
    /// Those that read are some of all, and so are those that write.
    Parts,
    /// What goes wrong goes wrong with a command.
    Faults,
    /// A command is aborted only after it took so long that the guest gave it up.
    GivenUp,
    /// A refused command is sent again after a while.
    Conflicts,
    /// Below the host no more than these can be at a time.
    Slots,
    /// What took longer than an interval was there when it began, and who is inside is there for some
    /// time.
    Guest,
    /// The same of those that wait in the host.
    Kernel,
    /// The same, and who waits in a queue does so for some time.
    Queue,
    /// Of a virtual disk no more than its adapter lets through are under way at a time, be it its reads.
    DiskReads,
    /// Or its writes.
    DiskWrites,
    /// By nothing of its own.
    Row,
}

/// The most commands that a device takes: a protocol endpoint's [LAMW].
const MOST_SLOTS: f64 = Advanced::VvolPesnro.info().max as f64;
/// The most commands that a host has outstanding: on all its NFS mounts.
const MOST_INSIDE: f64 = NFS_OUTSTANDING.default as f64;
/// How long the host tries a command of its own that no path takes.
const TIMER_S: f64 = Advanced::ApdTimeout.info().default as f64;
/// What a conflict costs until its retry.
const RETRY_S: f64 = CONFLICT_RETRY_NS as f64 / SECOND as f64;
/// How inexact intervals are: their ends are stamped in whole seconds, and they are as short as 2.
const INEXACT: f64 = 2.0;
/// How often those outstanding at an instant may have been there within the interval.
const INSTANT: f64 = 16.0;
/// What two decimals may hide of a sum of two.
const ROUNDED: f64 = 0.02;
/// Commands of which nothing is made.
const FEW: f64 = 8.0;
/// What 16 bits that are all set make of an interval, as inexact as it is: no device has so many faults.
const ALL_SET: RangeInclusive<f64> = 0.98 * ALL_16_BITS..=1.02 * ALL_16_BITS;
const ALL_16_BITS: f64 = u16::MAX as f64;

impl Bound {
    /// What bounds that counter.
    pub(crate) const fn of(counter: Counter) -> Self {
        match counter {
            Counter::Commands => Self::Commands,
            Counter::Reads | Counter::Writes | Counter::SplitCommands => Self::Parts,
            Counter::FailedCommands | Counter::FailedReads | Counter::FailedWrites => Self::Faults,
            Counter::Aborts | Counter::Resets => Self::GivenUp,
            Counter::Conflicts => Self::Conflicts,
            Counter::DriverLatency => Self::Slots,
            Counter::QueueLatency => Self::Queue,
            Counter::KernelLatency => Self::Kernel,
            Counter::GuestLatency => Self::Guest,
            Counter::VdiskReadLatency => Self::DiskReads,
            Counter::VdiskWriteLatency => Self::DiskWrites,
            _ => Self::Row,
        }
    }

    /// Whether it bounds what goes wrong.
    pub(crate) const fn is_of_faults(self) -> bool {
        matches!(self, Self::Faults | Self::GivenUp | Self::Conflicts)
    }
}

impl<'a> Beside<'a> {
    /// The columns of an object.
    pub(crate) fn of(recording: &'a Recording, id: EntityId) -> Self {
        let series = |counter| recording.series(id, counter).unwrap_or_default();
        let depths = series(Counter::DeviceQDepth).iter().copied();
        let deepest = depths.filter(|depth| (1.0..=MOST_SLOTS).contains(depth)).reduce(f64::max);
        let disk_slots =
            Controller::ALL.into_iter().flat_map(disk_depths).max().unwrap_or_default();
        let parts = [Counter::MbRead, Counter::MbWritten, Counter::Reads, Counter::Writes];
        let latencies = [Counter::DriverLatency, Counter::KernelLatency, Counter::GuestLatency];
        Self {
            times_ms: &recording.times_ms,
            commands: series(Counter::Commands),
            parts: parts.map(series),
            latencies: latencies.map(series),
            active: series(Counter::ActiveCommands),
            queued: series(Counter::QueuedCommands),
            slots: deepest.unwrap_or(MOST_SLOTS),
            disk_slots: f64::from(disk_slots),
        }
    }

    /// Whether a value may be true beside the others of its sample.
    pub(crate) fn allows(&self, bound: Bound, sample: usize, value: f64) -> bool {
        // Most cells are 0, which only commands and who is inside bound from below.
        if value == 0.0 && !matches!(bound, Bound::Commands | Bound::Queue) {
            return !self.takes_time(bound, sample);
        }
        if self.is_repeated(sample, value) {
            return false;
        }
        let Some(seconds) = interval_s(self.times_ms, sample) else { return true };
        if bound.is_of_faults() && ALL_SET.contains(&(value * seconds)) {
            return false;
        }
        let rate = at(self.commands, sample);
        match bound {
            Bound::Commands => self.has_as_many(sample, value),
            Bound::Row => true,
            Bound::Parts => {
                let all = rate.filter(|rate| *rate > 0.0);
                all.is_none_or(|all| value <= INEXACT * all + ROUNDED)
            }
            Bound::GivenUp => {
                let given_up = (INSTANT * (self.inside(sample) + FEW)).min(MOST_SLOTS);
                value * seconds <= given_up * seconds.max(1.0)
            }
            Bound::Faults => {
                let commands = INEXACT * rate.unwrap_or_default() * seconds;
                value * seconds <= commands + INSTANT * (self.inside(sample) + FEW)
            }
            Bound::Conflicts => {
                // Who waits to be sent again has given up its slot and is in no queue.
                let inside = self.inside(sample).max(self.slots);
                let retries = INSTANT * (inside + 1.0) / RETRY_S;
                value <= INEXACT * rate.unwrap_or_default() + retries
            }
            Bound::Slots => fits(rate, value, self.slots, seconds),
            Bound::DiskReads | Bound::DiskWrites => {
                let [.., reads, writes] = self.parts;
                let rates = if matches!(bound, Bound::DiskReads) { reads } else { writes };
                fits(at(rates, sample), value, self.disk_slots, seconds)
            }
            Bound::Queue if value == 0.0 && at(self.queued, sample) >= Some(1.0) => false,
            Bound::Guest | Bound::Kernel | Bound::Queue => {
                let (Some(rate), each_s) = (rate, value / 1000.0) else { return true };
                if !fits(Some(rate), value, MOST_INSIDE, seconds) {
                    return false;
                }
                let before = sample.checked_sub(1).and_then(|before| self.sampled(before));
                let Some(before) = before.filter(|_| each_s > seconds) else { return true };
                // For such a mean at least so many of them are older than the interval.
                let older = ((each_s - seconds) / (TIMER_S - seconds).max(1.0)).min(1.0);
                rate * seconds * older <= INSTANT * (before + 1.0)
            }
        }
    }

    /// Whether all that the row has of commands, bytes and latencies is one number: they have not
    /// one unit, and commands are the sum of those that read and write.
    fn is_repeated(&self, sample: usize, value: f64) -> bool {
        const SEVERAL: usize = 3;
        let columns = [&self.commands].into_iter().chain(&self.parts).chain(&self.latencies);
        let row = || columns.clone().filter_map(|column| column.get(sample));
        value > 0.0 && row().all(|other| *other == value) && row().count() >= SEVERAL
    }

    /// No fewer commands than read and write, and some where bytes move.
    fn has_as_many(&self, sample: usize, commands: f64) -> bool {
        const HALF: f64 = 0.5;
        let [mb_read, mb_written, reads, writes] =
            self.parts.map(|part| at(part, sample).unwrap_or_default());
        let moves = mb_read + mb_written > ROUNDED;
        (commands > 0.0 || !moves) && commands + ROUNDED >= HALF * (reads + writes)
    }

    /// Whether a latency cannot be 0: commands complete, and some were seen where they spend that time
    /// when the sample began and when it ended. By Little's law even the most that is printed as
    /// 0.00 ms [CAP-A] would show one in few of such instants.
    fn takes_time(&self, bound: Bound, sample: usize) -> bool {
        let seen: &[&[f64]] = match bound {
            Bound::Slots => &[self.active],
            Bound::Kernel => &[self.queued],
            Bound::Guest => &[self.active, self.queued],
            _ => return false,
        };
        let most = |sample| seen.iter().filter_map(|column| at(column, sample)).reduce(f64::max);
        let is_there = |sample| most(sample) >= Some(1.0);
        at(self.commands, sample) >= Some(FEW)
            && is_there(sample)
            && sample.checked_sub(1).is_none_or(is_there)
    }

    /// ACTV + QUED at the end of a sample.
    fn sampled(&self, sample: usize) -> Option<f64> {
        let inside = at(self.active, sample)? + at(self.queued, sample)?;
        (inside < MOST_INSIDE - 1.0).then_some(inside)
    }

    /// The most commands that were seen inside at the begin and the end of a sample; where nothing
    /// tells, all its slots may be taken.
    fn inside(&self, sample: usize) -> f64 {
        let before = sample.checked_sub(1).and_then(|before| self.sampled(before));
        let seen = [before, self.sampled(sample)].into_iter().flatten().reduce(f64::max);
        seen.unwrap_or(self.slots)
    }
}

/// Whether commands at a rate take so many milliseconds where no more than `slots` are under way at a time:
/// those that complete began in the interval, or are of those that were under way before.
fn fits(rate: Option<f64>, each_ms: f64, slots: f64, seconds: f64) -> bool {
    let (Some(rate), each_s) = (rate, each_ms / 1000.0) else { return true };
    rate * seconds * each_s <= INEXACT * slots * (seconds + each_s)
}

/// Whether a number is that of 16 bits which are all set, or one beside it.
pub(crate) fn fills_16_bits(value: f64) -> bool {
    (value - ALL_16_BITS).abs() <= 1.0
}

/// A number that may be one.
fn at(values: &[f64], sample: usize) -> Option<f64> {
    values.get(sample).copied().filter(|value| (0.0..1e6).contains(value))
}
