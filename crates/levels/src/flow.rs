//! The rates and latencies of a row, and what Little's law makes of them.
//!
//! ACTV and QUED are the state of one instant, and an instant misses bursts: a real device with
//! 18 commands a second had waits and ACTV 0 in every sample [CAP-A]. Commands/sec times latency
//! is the mean number of commands inside over the whole interval.

use counters::{Counter, EntityId, Kind};

use crate::{
    Measured,
    numbers::{mean, weighted_mean},
    series::Column,
};

/// How far numbers that are rounded on their own may be apart, in milliseconds [CAP-A].
const ROUNDED_MS: f64 = 0.011;

/// The columns that devices, worlds, paths and adapters have in common, by sample.
#[derive(Clone, Debug)]
pub struct Flow<'a> {
    /// The name of the row.
    pub name: &'a str,
    /// CMDS/s.
    pub commands: Column<'a>,
    megabytes: [Column<'a>; 2],
    davg: Column<'a>,
    kavg: Column<'a>,
    gavg: Column<'a>,
    qavg: Column<'a>,
    /// Whether most of its samples have a QAVG that may be one.
    is_mostly_timed: bool,
    /// The adapter that it is or leads through.
    way: Option<Way<'a>>,
}

/// The columns of an adapter that tell how full it is.
#[derive(Clone, Copy, Debug)]
struct Way<'a> {
    aqlen: Column<'a>,
    commands: Column<'a>,
    davg: Column<'a>,
}

impl<'a> Way<'a> {
    /// Of an adapter, or of the one that a path leads through.
    fn of(recording: &'a Measured, id: EntityId) -> Option<Self> {
        let entity = recording.entity(id);
        let adapter = if entity.kind == Kind::Adapter { Some(id) } else { entity.adapter }?;
        let column = |counter| Column::of(recording, adapter, counter);
        Some(Self {
            aqlen: column(Counter::AdapterQDepth),
            commands: column(Counter::Commands),
            davg: column(Counter::DriverLatency),
        })
    }

    /// Whether so few of its slots are in use that they do not run out in bursts either.
    fn is_mostly_free(self, sample: usize) -> bool {
        const MOSTLY_FREE: f64 = 0.25;
        let inside = inside(self.commands.at(sample), || self.davg.at(sample));
        let slots = self.aqlen.at(sample).filter(|slots| *slots > 0.0);
        inside.zip(slots).is_some_and(|(inside, slots)| inside < MOSTLY_FREE * slots)
    }
}

impl<'a> Flow<'a> {
    /// The counters that it reads, with those that tell whether a QAVG was measured.
    pub const COUNTERS: &'static [Counter] = &[
        Counter::Commands,
        Counter::MbRead,
        Counter::MbWritten,
        Counter::DriverLatency,
        Counter::KernelLatency,
        Counter::GuestLatency,
        Counter::QueueLatency,
        Counter::QueuedCommands,
        Counter::AdapterQDepth,
    ];

    /// The columns of an object.
    #[must_use]
    pub fn of(recording: &'a Measured, id: EntityId) -> Self {
        let column = |counter| Column::of(recording, id, counter);
        let mut flow = Self {
            name: &recording.entity(id).name,
            commands: column(Counter::Commands),
            megabytes: [column(Counter::MbRead), column(Counter::MbWritten)],
            davg: column(Counter::DriverLatency),
            kavg: column(Counter::KernelLatency),
            gavg: column(Counter::GuestLatency),
            qavg: column(Counter::QueueLatency),
            is_mostly_timed: false,
            way: Way::of(recording, id),
        };
        let samples = 0..recording.len();
        let timed = samples.clone().filter(|&sample| flow.own_wait_ms(sample).is_some()).count();
        flow.is_mostly_timed = 2 * timed >= samples.len();
        flow
    }

    /// Commands per second.
    #[must_use]
    pub fn rate(&self, sample: usize) -> Option<f64> {
        self.commands.at(sample)
    }

    /// Whether the sample has a rate, and a latency where the row has any. What it lacks makes it
    /// no sample of no load.
    #[must_use]
    pub fn is_measured(&self, sample: usize) -> bool {
        let has_latency = self.davg.is_there() || self.gavg.is_there();
        self.rate(sample).is_some() && (!has_latency || self.davg(sample).is_some())
    }

    /// DAVG, or GAVG less KAVG; of a row without KAVG (NFS [ELA]), GAVG.
    #[must_use]
    pub fn davg(&self, sample: usize) -> Option<f64> {
        let less_kavg = || {
            let kavg = if self.kavg.is_there() { self.kavg.at(sample)? } else { 0.0 };
            Some((self.gavg.at(sample)? - kavg).max(0.0))
        };
        self.davg.at(sample).or_else(less_kavg)
    }

    /// KAVG, or GAVG less DAVG. More than the GAVG that it is a part of is none; each is rounded on its own [CAP-A].
    #[must_use]
    pub fn kavg(&self, sample: usize) -> Option<f64> {
        let most = self.gavg.at(sample).map_or(f64::INFINITY, |gavg| gavg + ROUNDED_MS);
        let less_davg = || Some((self.gavg.at(sample)? - self.davg.at(sample)?).max(0.0));
        self.kavg.at(sample).filter(|kavg| *kavg <= most).or_else(less_davg)
    }

    /// GAVG, or what it is the sum of.
    #[must_use]
    pub fn gavg(&self, sample: usize) -> Option<f64> {
        let sum = || Some(self.davg.at(sample)? + self.kavg.at(sample)?);
        self.gavg.at(sample).or_else(sum)
    }

    /// QAVG; where the row has none, KAVG, which is next to always the same [QAVG]. One that is missing among others is
    /// missing.
    #[must_use]
    pub fn qavg(&self, sample: usize) -> Option<f64> {
        let instead = || self.kavg(sample).filter(|_| !self.is_mostly_timed);
        self.own_wait_ms(sample).or_else(instead)
    }

    /// QAVG alone, for at a path or an adapter KAVG holds the device queue's wait too [CAP-A]. More
    /// than the KAVG that it is a part of is none: each is rounded on its own [CAP-A]; and nobody waits
    /// for an adapter of which most slots are known to be free.
    #[must_use]
    pub fn own_wait_ms(&self, sample: usize) -> Option<f64> {
        if self.qavg.is_there() && self.way.is_some_and(|way| way.is_mostly_free(sample)) {
            return Some(0.0);
        }
        let most = self.kavg(sample).map_or(f64::INFINITY, |kavg| kavg + ROUNDED_MS);
        self.qavg.at(sample).filter(|qavg| *qavg <= most)
    }

    /// Whether the row has a QAVG of its own.
    #[must_use]
    pub(crate) const fn has_own_wait(&self) -> bool {
        self.qavg.is_there()
    }

    /// Mean commands in the queue of a path or adapter itself.
    #[must_use]
    pub fn own_waiting(&self, sample: usize) -> Option<f64> {
        self.inside(sample, Self::own_wait_ms)
    }

    /// Mean commands outstanding over the first so many samples.
    #[must_use]
    pub fn load(&self, samples: usize) -> Option<f64> {
        mean((0..samples).map(|sample| self.outstanding(sample)))
    }

    /// Mean commands between the virtual adapter and the completion: what ACTV + QUED samples.
    #[must_use]
    pub fn outstanding(&self, sample: usize) -> Option<f64> {
        self.inside(sample, Self::gavg)
    }

    /// Mean commands at the driver and beyond: what ACTV samples.
    #[must_use]
    pub fn in_flight(&self, sample: usize) -> Option<f64> {
        self.inside(sample, Self::davg)
    }

    /// Mean commands waiting in the VMkernel: what QUED samples.
    #[must_use]
    pub fn waiting(&self, sample: usize) -> Option<f64> {
        self.inside(sample, Self::qavg)
    }

    /// Mean commands that are inside for a latency.
    fn inside(&self, sample: usize, ms: fn(&Self, usize) -> Option<f64>) -> Option<f64> {
        inside(self.rate(sample), || ms(self, sample))
    }

    /// Mebibytes per second, read and written.
    #[must_use]
    pub fn mib_per_s(&self, sample: usize) -> Option<f64> {
        sum_of(self.megabytes, sample)
    }

    /// Mean size of a command in KiB.
    #[must_use]
    pub fn size_kib(&self, samples: &[usize]) -> Option<f64> {
        let kib = |flow: &Self, s| Some(1024.0 * flow.mib_per_s(s)? / flow.rate(s)?);
        self.per_command(samples, kib)
    }

    /// The part of the bytes that is read, 0 to 1; `None` where nothing is known to be moved.
    #[must_use]
    pub fn read_part(&self, samples: &[usize]) -> Option<f64> {
        let moved = |column: &Column<'_>| match column.is_there() {
            true => mean(samples.iter().map(|&sample| column.at(sample))),
            false => Some(0.0),
        };
        let [read, written] = &self.megabytes;
        let (read, written) = (moved(read)?, moved(written)?);
        (read + written > 0.0).then(|| read / (read + written))
    }

    /// What the size of its commands alone may cost: the time to move one at `mib_per_s`; nothing
    /// of a row that has no sizes.
    #[must_use]
    pub fn transfer_ms(&self, sample: usize, mib_per_s: f64) -> Option<f64> {
        if !self.megabytes.iter().any(|column| column.is_there()) {
            return Some(0.0);
        }
        let transfer_ms = 1000.0 * self.mib_per_s(sample)? / self.rate(sample)? / mib_per_s;
        Some(if transfer_ms.is_finite() { transfer_ms } else { 0.0 })
    }

    /// The mean of commands per second over some samples.
    #[must_use]
    pub fn mean_rate(&self, samples: &[usize]) -> Option<f64> {
        mean(samples.iter().map(|&sample| self.rate(sample)))
    }

    /// The mean of the commands at the driver and beyond over some samples.
    #[must_use]
    pub fn mean_in_flight(&self, samples: &[usize]) -> Option<f64> {
        mean(samples.iter().map(|&sample| self.in_flight(sample)))
    }

    /// The mean over commands of a latency; `None` without commands.
    #[must_use]
    pub fn per_command(
        &self,
        samples: &[usize],
        latency: impl Fn(&Self, usize) -> Option<f64>,
    ) -> Option<f64> {
        let commands =
            samples.iter().map(|&s| (s, self.rate(s))).filter(|(_, rate)| *rate > Some(0.0));
        weighted_mean(commands.map(|(s, rate)| Some((latency(self, s)?, rate?))))
    }
}

/// What the columns that the source has add up to; `None` where it has none of them, or one of
/// those was not measured.
pub(crate) fn sum_of<'a>(columns: [Column<'a>; 2], sample: usize) -> Option<f64> {
    let there = || columns.iter().filter(|column| column.is_there());
    there().next()?;
    there().map(|column| column.at(sample)).sum()
}

/// Little's law for what was measured: the mean number inside; where nothing passes, none.
#[must_use]
pub fn inside(rate: Option<f64>, latency_ms: impl FnOnce() -> Option<f64>) -> Option<f64> {
    let rate = rate?;
    if rate > 0.0 { Some(little(rate, latency_ms()?)) } else { Some(0.0) }
}

/// Little's law: the mean number inside at `rate` commands a second that stay `latency_ms` each.
#[must_use]
pub fn little(rate: f64, latency_ms: f64) -> f64 {
    rate * latency_ms / 1000.0
}
