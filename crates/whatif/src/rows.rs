//! The numbers of one row over all samples, as `levels` reads them, at hand for the calibration.

use counters::{Counter, EntityId, Kind, Recording};
use levels::{Column, Vdisk, little};

/// The most commands that anybody has outstanding, as a scenario allows.
pub(crate) const OUTSTANDING_MAX: f64 = 65_536.0;

/// Rates and latencies of a device, a world or a virtual disk, a value a sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// Commands a second.
    pub(crate) rate: Vec<f64>,
    /// Milliseconds at the driver and below; of a virtual disk unknown and 0.
    pub(crate) davg: Vec<f64>,
    /// Milliseconds from the virtual adapter on.
    pub(crate) gavg: Vec<f64>,
    /// Milliseconds in queues of the VMkernel; of a virtual disk unknown and 0.
    pub(crate) qavg: Vec<f64>,
    /// Mebibytes a second.
    pub(crate) mib: Vec<f64>,
    /// Reads a second.
    pub(crate) reads: Vec<f64>,
}

/// A counter over all samples; 0 where there is none.
pub(crate) fn column(recording: &Recording, id: EntityId, counter: Counter) -> Vec<f64> {
    let column = Column::of(recording, id, counter);
    (0..recording.len()).map(|sample| column.at(sample).unwrap_or_default()).collect()
}

/// The mean over samples; over none it is 0, for there is no load.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    levels::mean(values).unwrap_or_default()
}

impl Flow {
    pub(crate) fn of(recording: &Recording, id: EntityId) -> Self {
        let row = levels::Flow::of(recording, id);
        let every = |value: &dyn Fn(usize) -> Option<f64>| {
            (0..recording.len()).map(|sample| value(sample).unwrap_or_default()).collect()
        };
        let mut flow = Self {
            rate: every(&|sample| row.rate(sample)),
            davg: every(&|sample| row.davg(sample)),
            gavg: every(&|sample| row.gavg(sample)),
            qavg: every(&|sample| row.qavg(sample)),
            mib: every(&|sample| row.mib_per_s(sample)),
            reads: column(recording, id, Counter::Reads),
        };
        if recording.entity(id).kind == Kind::VirtualDisk {
            let disk = Vdisk::of(recording, id);
            flow.rate = every(&|sample| disk.rate(sample));
            flow.gavg = every(&|sample| disk.latency_at(sample));
        }
        flow
    }

    /// Mean commands between the virtual adapter and the completion, by Little's law.
    pub(crate) fn outstanding(&self, sample: usize) -> f64 {
        little(self.rate[sample], self.gavg[sample]).min(OUTSTANDING_MAX)
    }

    /// Mean commands at the driver and below.
    pub(crate) fn in_flight(&self, sample: usize) -> f64 {
        little(self.rate[sample], self.davg[sample])
    }

    /// Mean commands waiting in the VMkernel.
    pub(crate) fn waiting(&self, sample: usize) -> f64 {
        little(self.rate[sample], self.qavg[sample])
    }

    pub(crate) fn mean_rate(&self, samples: &[usize]) -> f64 {
        mean(samples.iter().map(|&sample| self.rate[sample]))
    }

    /// The mean over commands of a latency; 0 without commands.
    pub(crate) fn per_command(&self, samples: &[usize], latency: &[f64]) -> f64 {
        let commands: f64 = samples.iter().map(|&sample| self.rate[sample]).sum();
        let time: f64 = samples.iter().map(|&s| self.rate[s] * latency[s]).sum();
        if commands > 0.0 { time / commands } else { 0.0 }
    }

    /// Mean KiB of a command; 0 when unknown.
    pub(crate) fn size_kib(&self, samples: &[usize]) -> f64 {
        let rate = self.mean_rate(samples);
        let mib = mean(samples.iter().map(|&sample| self.mib[sample]));
        if rate > 0.0 { mib * 1024.0 / rate } else { 0.0 }
    }

    /// The share of reads; 1 when unknown.
    pub(crate) fn read_share(&self, samples: &[usize]) -> f64 {
        let reads = mean(samples.iter().map(|&sample| self.reads[sample]));
        let rate = self.mean_rate(samples);
        if rate > 0.0 { (reads / rate).min(1.0) } else { 1.0 }
    }
}
