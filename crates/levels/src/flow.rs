//! The rates and latencies of a row, and what Little's law makes of them.
//!
//! ACTV and QUED are the state of one instant, and an instant misses bursts: a real device with
//! 18 commands a second had waits and ACTV 0 in every sample [CAP-A]. Commands/sec times latency
//! is the mean number of commands inside over the whole interval.

use counters::{Counter, EntityId, Recording};

use crate::series::{Column, mean};

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
}

impl<'a> Flow<'a> {
    /// The counters that it reads.
    pub const COUNTERS: &'static [Counter] = &[
        Counter::Commands,
        Counter::MbRead,
        Counter::MbWritten,
        Counter::DriverLatency,
        Counter::KernelLatency,
        Counter::GuestLatency,
        Counter::QueueLatency,
    ];

    /// The columns of an object.
    #[must_use]
    pub fn of(recording: &'a Recording, id: EntityId) -> Self {
        let column = |counter| Column::of(recording, id, counter);
        Self {
            name: &recording.entity(id).name,
            commands: column(Counter::Commands),
            megabytes: [column(Counter::MbRead), column(Counter::MbWritten)],
            davg: column(Counter::DriverLatency),
            kavg: column(Counter::KernelLatency),
            gavg: column(Counter::GuestLatency),
            qavg: column(Counter::QueueLatency),
        }
    }

    /// Commands per second; 0 where there is no number.
    #[must_use]
    pub fn rate(&self, sample: usize) -> f64 {
        self.commands.at(sample).unwrap_or_default()
    }

    /// Whether the sample has a rate, and a latency where the row has any. What it lacks makes it
    /// no sample of no load.
    #[must_use]
    pub fn is_measured(&self, sample: usize) -> bool {
        let has_latency = self.davg.is_there() || self.gavg.is_there();
        self.commands.at(sample).is_some() && (!has_latency || self.measured_davg(sample).is_some())
    }

    /// DAVG, or GAVG less KAVG; where there is neither (NFS [ELA]), GAVG.
    fn measured_davg(&self, sample: usize) -> Option<f64> {
        let less_kavg = || {
            let kavg = if self.kavg.is_there() { self.kavg.at(sample)? } else { 0.0 };
            Some((self.gavg.at(sample)? - kavg).max(0.0))
        };
        self.davg.at(sample).or_else(less_kavg)
    }

    /// DAVG; where there is none (NFS [ELA]), GAVG.
    #[must_use]
    pub fn davg(&self, sample: usize) -> f64 {
        self.measured_davg(sample).unwrap_or(0.0)
    }

    /// KAVG; 0 where there is none.
    #[must_use]
    pub fn kavg(&self, sample: usize) -> f64 {
        self.kavg.at(sample).unwrap_or_default()
    }

    /// GAVG, or what it is the sum of.
    #[must_use]
    pub fn gavg(&self, sample: usize) -> f64 {
        self.gavg.at(sample).unwrap_or_else(|| self.davg(sample) + self.kavg(sample))
    }

    /// QAVG; where there is none, KAVG, which is next to always the same [QAVG].
    #[must_use]
    pub fn qavg(&self, sample: usize) -> f64 {
        self.credible_qavg(sample).unwrap_or_else(|| self.kavg(sample))
    }

    /// QAVG alone: at a path or an adapter, KAVG holds the device queue's wait too [CAP-A].
    #[must_use]
    pub fn own_wait_ms(&self, sample: usize) -> f64 {
        self.credible_qavg(sample).unwrap_or(0.0)
    }

    /// Whether [`Flow::own_wait_ms`] is what the row says, and not 0 for want of a number.
    #[must_use]
    pub fn is_wait_measured(&self, sample: usize) -> bool {
        [self.commands, self.qavg].iter().all(|of| !of.is_there() || of.at(sample).is_some())
    }

    /// QAVG, unless it is more than the KAVG that it is a part of: each is rounded on its own
    /// [CAP-A].
    fn credible_qavg(&self, sample: usize) -> Option<f64> {
        const ROUNDED_MS: f64 = 0.011;
        let most = self.kavg.at(sample).map_or(f64::INFINITY, |kavg| kavg + ROUNDED_MS);
        self.qavg.at(sample).filter(|qavg| *qavg <= most)
    }

    /// Mean commands in the queue of a path or adapter itself.
    #[must_use]
    pub fn own_waiting(&self, sample: usize) -> f64 {
        little(self.rate(sample), self.own_wait_ms(sample))
    }

    /// Mean commands outstanding over the first so many samples; 0 over none, which is no load.
    #[must_use]
    pub fn load(&self, samples: usize) -> f64 {
        mean((0..samples).map(|sample| self.outstanding(sample))).unwrap_or_default()
    }

    /// Mean commands between the virtual adapter and the completion: what ACTV + QUED samples.
    #[must_use]
    pub fn outstanding(&self, sample: usize) -> f64 {
        little(self.rate(sample), self.gavg(sample))
    }

    /// Mean commands at the driver and beyond: what ACTV samples.
    #[must_use]
    pub fn in_flight(&self, sample: usize) -> f64 {
        little(self.rate(sample), self.davg(sample))
    }

    /// Mean commands waiting in the VMkernel: what QUED samples.
    #[must_use]
    pub fn waiting(&self, sample: usize) -> f64 {
        little(self.rate(sample), self.qavg(sample))
    }

    /// Mebibytes per second, read and written.
    #[must_use]
    pub fn mib_per_s(&self, sample: usize) -> f64 {
        self.megabytes.iter().filter_map(|column| column.at(sample)).sum()
    }

    /// Mean size of a command in KiB; 0 when unknown.
    #[must_use]
    pub fn size_kib(&self, samples: &[usize]) -> f64 {
        let sum = |of: fn(&Self, usize) -> f64| samples.iter().map(|&s| of(self, s)).sum::<f64>();
        let commands = sum(Self::rate);
        if commands > 0.0 { sum(Self::mib_per_s) * 1024.0 / commands } else { 0.0 }
    }

    /// What the size of its commands alone may cost: the time to move one at `mib_per_s`.
    #[must_use]
    pub fn transfer_ms(&self, sample: usize, mib_per_s: f64) -> f64 {
        let transfer_ms = 1000.0 * self.mib_per_s(sample) / self.rate(sample) / mib_per_s;
        if transfer_ms.is_finite() { transfer_ms } else { 0.0 }
    }

    /// The mean of commands per second over some samples; 0 over none.
    #[must_use]
    pub fn mean_rate(&self, samples: &[usize]) -> f64 {
        mean(samples.iter().map(|&sample| self.rate(sample))).unwrap_or_default()
    }

    /// The mean over commands of a latency; 0 without commands.
    #[must_use]
    pub fn per_command(&self, samples: &[usize], latency: impl Fn(&Self, usize) -> f64) -> f64 {
        let commands: f64 = samples.iter().map(|&sample| self.rate(sample)).sum();
        let time: f64 = samples.iter().map(|&s| self.rate(s) * latency(self, s)).sum();
        if commands > 0.0 { time / commands } else { 0.0 }
    }
}

/// Little's law: the mean number inside at `rate` commands a second that stay `latency_ms` each.
#[must_use]
pub fn little(rate: f64, latency_ms: f64) -> f64 {
    rate * latency_ms / 1000.0
}
