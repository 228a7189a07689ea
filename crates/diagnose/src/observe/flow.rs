//! The rates and latencies of a row, and what Little's law makes of them.
//!
//! ACTV and QUED are the state of one instant, and an instant misses bursts: a real device with
//! 18 commands a second had waits and ACTV 0 in every sample [CAP-A]. Commands/sec times latency
//! is the mean number of commands inside over the whole interval.

use counters::{Counter, EntityId, Recording};

use super::series::{Column, mean};

/// The columns that devices, worlds, paths and adapters have in common.
#[derive(Clone, Debug)]
pub(crate) struct Flow<'a> {
    pub(crate) name: &'a str,
    pub(crate) commands: Column<'a>,
    megabytes: [Column<'a>; 2],
    davg: Column<'a>,
    kavg: Column<'a>,
    gavg: Column<'a>,
    qavg: Column<'a>,
}

impl<'a> Flow<'a> {
    pub(crate) fn of(recording: &'a Recording, id: EntityId) -> Self {
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

    pub(crate) fn rate(&self, sample: usize) -> f64 {
        self.commands.or_zero(sample)
    }

    /// DAVG; where there is none (NFS [ELA]), GAVG.
    pub(crate) fn davg(&self, sample: usize) -> f64 {
        self.davg.at(sample).unwrap_or_else(|| self.gavg.or_zero(sample))
    }

    pub(crate) fn kavg(&self, sample: usize) -> f64 {
        self.kavg.or_zero(sample)
    }

    pub(crate) fn gavg(&self, sample: usize) -> f64 {
        let sum = || self.davg.or_zero(sample) + self.kavg.or_zero(sample);
        self.gavg.at(sample).unwrap_or_else(sum)
    }

    /// QAVG; where there is none, KAVG, which is next to always the same [QAVG].
    pub(crate) fn qavg(&self, sample: usize) -> f64 {
        self.qavg.at(sample).unwrap_or_else(|| self.kavg.or_zero(sample))
    }

    /// QAVG alone: at a path or an adapter, KAVG holds the device queue's wait too [CAP-A].
    pub(crate) fn own_wait_ms(&self, sample: usize) -> f64 {
        self.qavg.or_zero(sample)
    }

    /// Mean commands between the virtual adapter and the completion: what ACTV + QUED samples.
    pub(crate) fn outstanding(&self, sample: usize) -> f64 {
        little(self.rate(sample), self.gavg(sample))
    }

    /// Mean commands at the driver and beyond: what ACTV samples.
    pub(crate) fn in_flight(&self, sample: usize) -> f64 {
        little(self.rate(sample), self.davg(sample))
    }

    /// Mean commands waiting in the VMkernel: what QUED samples.
    pub(crate) fn waiting(&self, sample: usize) -> f64 {
        little(self.rate(sample), self.qavg(sample))
    }

    /// Mean size of a command in KiB; 0 when unknown.
    pub(crate) fn size_kib(&self, samples: &[usize]) -> f64 {
        let megabytes = mean(samples.iter().map(|&sample| {
            self.megabytes.iter().map(|column| column.or_zero(sample)).sum::<f64>()
        }));
        let rate = self.mean_rate(samples);
        if rate > 0.0 { megabytes * 1024.0 / rate } else { 0.0 }
    }

    pub(crate) fn mean_rate(&self, samples: &[usize]) -> f64 {
        mean(samples.iter().map(|&sample| self.rate(sample)))
    }

    /// The mean over commands of a latency; 0 without commands.
    pub(crate) fn per_command(
        &self,
        samples: &[usize],
        latency: impl Fn(&Self, usize) -> f64,
    ) -> f64 {
        let commands: f64 = samples.iter().map(|&sample| self.rate(sample)).sum();
        let time: f64 = samples.iter().map(|&s| self.rate(s) * latency(self, s)).sum();
        if commands > 0.0 { time / commands } else { 0.0 }
    }
}

/// Little's law: the mean number inside at `rate` commands a second that stay `latency_ms` each.
pub(crate) fn little(rate: f64, latency_ms: f64) -> f64 {
    rate * latency_ms / 1000.0
}
