//! The row of a device, a world or a virtual disk over all samples, as `levels` reads it. What was
//! not measured is none, and what is made of several samples leaves it out.

use counters::{Counter, EntityId, Kind};
use levels::{Column, Flow, Measured, Vdisk, largest, mean, weighted_mean};

/// The most commands that anybody has outstanding, as a scenario allows.
pub(crate) const OUTSTANDING_MAX: f64 = 65_536.0;

/// How far shares of reads may be apart by chance: behind RAID 5 a write is the work of four reads (reference
/// `array-and-control.md`, section 7.2).
pub(crate) const READS_APART: f64 = 0.05;
/// And mean sizes, as a factor.
pub(crate) const SIZES_APART: f64 = 1.1;
/// By how much the rate and the latency of an array may fall by chance where more is outstanding, as a factor.
pub(crate) const FALLS: f64 = 1.1;

/// Half of the last digit of a latency that esxtop prints.
pub(crate) const ROUNDING_MS: f64 = 0.005;

/// A row, whose virtual disk counts its commands and their latency in columns of its own.
#[derive(Clone, Debug)]
pub(crate) struct Row<'a> {
    flow: Flow<'a>,
    disk: Option<Vdisk<'a>>,
    reads: Column<'a>,
    actv: Column<'a>,
    qued: Column<'a>,
    shares: Column<'a>,
}

/// A number of a row in a sample.
pub(crate) type Figure<'a> = fn(&Row<'a>, usize) -> Option<f64>;

impl<'a> Row<'a> {
    pub(crate) fn of(recording: &'a Measured, id: EntityId) -> Self {
        let is_disk = recording.entity(id).kind == Kind::VirtualDisk;
        Self {
            flow: Flow::of(recording, id),
            disk: is_disk.then(|| Vdisk::of(recording, id)),
            reads: Column::of(recording, id, Counter::Reads),
            actv: Column::of(recording, id, Counter::ActiveCommands),
            qued: Column::of(recording, id, Counter::QueuedCommands),
            shares: Column::of(recording, id, Counter::Shares),
        }
    }

    /// Commands a second.
    pub(crate) fn rate(&self, sample: usize) -> Option<f64> {
        self.disk.as_ref().map_or_else(|| self.flow.rate(sample), |disk| disk.rate(sample))
    }

    /// Mean commands between the virtual adapter and the completion.
    pub(crate) fn outstanding(&self, sample: usize) -> Option<f64> {
        let inside = match &self.disk {
            Some(disk) => disk.outstanding(sample),
            None => self.flow.outstanding(sample),
        };
        inside.map(|inside| inside.min(OUTSTANDING_MAX))
    }

    /// Commands at the instant of the sample, with a slot or waiting for one.
    pub(crate) fn present(&self, sample: usize) -> Option<f64> {
        Some(self.actv.at(sample)? + self.qued.at(sample)?)
    }

    /// The shares of a world on its device, where the recording has them.
    pub(crate) fn shares(&self, samples: &[usize]) -> Option<f64> {
        self.mean(samples, |row, sample| row.shares.at(sample))
    }

    /// Milliseconds from the virtual adapter on; none without commands.
    pub(crate) fn gavg(&self, sample: usize) -> Option<f64> {
        match &self.disk {
            Some(disk) => disk.latency_at(sample),
            None => self.flow.gavg(sample),
        }
    }

    /// Milliseconds at the driver and below; unknown of a virtual disk.
    pub(crate) fn davg(&self, sample: usize) -> Option<f64> {
        self.flow.davg(sample)
    }

    /// Milliseconds in the VMkernel.
    pub(crate) fn kavg(&self, sample: usize) -> Option<f64> {
        Some((self.gavg(sample)? - self.davg(sample)?).max(0.0))
    }

    /// Milliseconds in queues of the VMkernel.
    pub(crate) fn qavg(&self, sample: usize) -> Option<f64> {
        self.flow.qavg(sample)
    }

    /// Mean commands at the driver and below.
    pub(crate) fn in_flight(&self, sample: usize) -> Option<f64> {
        self.flow.in_flight(sample)
    }

    /// Mean commands waiting in the VMkernel.
    pub(crate) fn waiting(&self, sample: usize) -> Option<f64> {
        self.flow.waiting(sample)
    }

    /// KiB of a command.
    fn kib(&self, sample: usize) -> Option<f64> {
        Some(1024.0 * self.flow.mib_per_s(sample)? / self.rate(sample)?)
    }

    /// Between how many KiB that is, by the grain of what is printed.
    pub(crate) fn kib_between(&self, sample: usize) -> Option<[f64; 2]> {
        /// Half of the last digit of a rate that esxtop prints.
        const ROUNDING: f64 = 0.005;
        let rate = self.rate(sample).filter(|rate| *rate > ROUNDING)?;
        // Of what is read and what is written.
        let mib_per_s = self.flow.mib_per_s(sample)?;
        let low = (mib_per_s - 2.0 * ROUNDING).max(0.0) / (rate + ROUNDING);
        let high = (mib_per_s + 2.0 * ROUNDING) / (rate - ROUNDING);
        Some([1024.0 * low, 1024.0 * high])
    }

    /// The share of reads.
    fn read_part(&self, sample: usize) -> Option<f64> {
        Some((self.reads.at(sample)? / self.rate(sample)?).min(1.0))
    }

    /// The mean over samples.
    pub(crate) fn mean(&self, samples: &[usize], of: Figure<'a>) -> Option<f64> {
        mean(samples.iter().map(|&sample| of(self, sample)))
    }

    /// The largest of samples.
    pub(crate) fn largest(&self, samples: &[usize], of: Figure<'a>) -> Option<f64> {
        largest(samples.iter().map(|&sample| of(self, sample)))
    }

    pub(crate) fn mean_rate(&self, samples: &[usize]) -> Option<f64> {
        self.mean(samples, Self::rate)
    }

    /// The mean over commands; none without commands.
    pub(crate) fn per_command(&self, samples: &[usize], of: Figure<'a>) -> Option<f64> {
        let rates = samples.iter().map(|&sample| (sample, self.rate(sample)));
        let busy = rates.filter(|(_, rate)| *rate > Some(0.0));
        weighted_mean(busy.map(|(sample, rate)| Some((of(self, sample)?, rate?))))
    }

    /// Mean KiB of a command; none of so few that esxtop rounds their bytes to nothing.
    pub(crate) fn size_kib(&self, samples: &[usize]) -> Option<f64> {
        self.per_command(samples, Self::kib).filter(|kib| *kib > 0.0)
    }

    /// The share of reads, 0 to 1.
    pub(crate) fn read_share(&self, samples: &[usize]) -> Option<f64> {
        self.per_command(samples, Self::read_part)
    }

    /// Commands a second and commands outstanding, over the samples that have both.
    pub(crate) fn load(&self, samples: &[usize]) -> Option<(f64, f64)> {
        let has_both = |&&sample: &&usize| self.outstanding(sample).is_some();
        let both: Vec<usize> = samples.iter().filter(has_both).copied().collect();
        Some((self.mean_rate(&both)?, self.mean(&both, Self::outstanding)?))
    }
}
