//! Virtual disks: what the guest sends, and whether it sends more than its driver lets through.
//!
//! esxtop has no queue counter for them, but the mean number outstanding follows from Little's
//! law, and a driver's limit shows as a number that stays at 32, 64 or 254.

use counters::{Controller, Counter, EntityId};

use crate::{
    Measured,
    flow::{inside, little, sum_of},
    numbers::weighted_mean,
    series::Column,
};

/// The columns of a virtual disk.
#[derive(Clone, Debug)]
pub struct Vdisk<'a> {
    /// Its name (`sql01:scsi0:1`).
    pub name: &'a str,
    /// The virtual machine, by its name.
    pub vm: &'a str,
    /// The device that its commands go to.
    pub device: Option<EntityId>,
    /// The type of its virtual adapter.
    pub controller: Option<Controller>,
    commands: Column<'a>,
    directions: [(Column<'a>, Column<'a>); 2],
    megabytes: [Column<'a>; 2],
    /// kavg's own: the wait in the guest, where the source knows it.
    pub guest_wait: Column<'a>,
    /// kavg's own: commands waiting in the guest, where the source knows them.
    pub guest_queued: Column<'a>,
}

impl<'a> Vdisk<'a> {
    /// The counters that it reads.
    pub const COUNTERS: &'static [Counter] = &[
        Counter::Commands,
        Counter::Reads,
        Counter::Writes,
        Counter::VdiskReadLatency,
        Counter::VdiskWriteLatency,
        Counter::MbRead,
        Counter::MbWritten,
        Counter::GuestWait,
        Counter::MeanGuestQueued,
    ];

    /// The columns of a virtual disk.
    #[must_use]
    pub fn of(recording: &'a Measured, id: EntityId) -> Self {
        let column = |counter| Column::of(recording, id, counter);
        let entity = recording.entity(id);
        let owner = entity.vm.and_then(|vm| recording.entities().get(vm.0 as usize));
        Self {
            name: &entity.name,
            vm: owner.map_or(entity.name.as_str(), |vm| vm.name.as_str()),
            device: entity.device,
            controller: entity.controller,
            commands: column(Counter::Commands),
            directions: [
                (column(Counter::Reads), column(Counter::VdiskReadLatency)),
                (column(Counter::Writes), column(Counter::VdiskWriteLatency)),
            ],
            megabytes: [column(Counter::MbRead), column(Counter::MbWritten)],
            guest_wait: column(Counter::GuestWait),
            guest_queued: column(Counter::MeanGuestQueued),
        }
    }

    /// The virtual adapter: the name without the disk's number on it (`sql01:scsi0`).
    #[must_use]
    pub fn adapter(&self) -> &'a str {
        self.name.rsplit_once(':').map_or(self.name, |(adapter, _)| adapter)
    }

    /// Commands per second; reads and writes where they alone were recorded.
    #[must_use]
    pub fn rate(&self, sample: usize) -> Option<f64> {
        let both = || sum_of(self.directions.map(|(rate, _)| rate), sample);
        self.commands.at(sample).or_else(both)
    }

    /// Mean size of a command in KiB.
    #[must_use]
    pub fn size_kib(&self, sample: usize) -> Option<f64> {
        let rate = self.rate(sample).filter(|rate| *rate > 0.0)?;
        Some(1024.0 * sum_of(self.megabytes, sample)? / rate)
    }

    /// Mean commands between the virtual adapter and the completion.
    #[must_use]
    pub fn outstanding(&self, sample: usize) -> Option<f64> {
        let there = || self.directions.iter().filter(|(rate, _)| rate.is_there());
        there().next()?;
        there().map(|(rate, latency)| inside(rate.at(sample), || latency.at(sample))).sum()
    }

    /// The least that [`Vdisk::outstanding`] may be: esxtop rounds latencies to hundredths of a
    /// millisecond [CAP-A], and the virtual adapter takes about as much itself; of many quick
    /// commands that makes a few.
    #[must_use]
    pub fn least_outstanding(&self, sample: usize) -> Option<f64> {
        const INEXACT_MS: f64 = 0.015;
        Some(self.outstanding(sample)? - little(self.rate(sample)?, INEXACT_MS))
    }

    /// Mean latency at the virtual adapter in one sample; `None` without commands.
    #[must_use]
    pub fn latency_at(&self, sample: usize) -> Option<f64> {
        let rate = self.rate(sample).filter(|rate| *rate > 0.0)?;
        Some(self.outstanding(sample)? * 1000.0 / rate)
    }

    /// Mean latency at the virtual adapter; `None` without commands.
    #[must_use]
    pub fn latency_ms(&self, samples: &[usize]) -> Option<f64> {
        weighted_mean(samples.iter().map(|&s| Some((self.latency_at(s)?, self.rate(s)?))))
    }
}
