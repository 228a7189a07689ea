//! The numbers of one row, cleaned: what no host can show is taken as nothing.

use counters::{Counter, EntityId, Kind, Recording};

/// The most commands a second that a row is believed to have.
const RATE_MAX: f64 = 1e8;
/// The longest latency that is believed, in milliseconds: an hour.
const LATENCY_MAX_MS: f64 = 3.6e6;
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
pub(crate) fn column(recording: &Recording, id: EntityId, counter: Counter, max: f64) -> Vec<f64> {
    let mut values: Vec<f64> = recording.series(id, counter).unwrap_or_default().to_vec();
    values.resize(recording.len(), 0.0);
    for value in &mut values {
        *value = if *value >= 0.0 && *value <= max { *value } else { 0.0 };
    }
    values
}

impl Flow {
    pub(crate) fn of(recording: &Recording, id: EntityId) -> Self {
        let rate = |counter| column(recording, id, counter, RATE_MAX);
        let ms = |counter| column(recording, id, counter, LATENCY_MAX_MS);
        let mib = [rate(Counter::MbRead), rate(Counter::MbWritten)];
        let mut flow = Self {
            rate: rate(Counter::Commands),
            davg: ms(Counter::DriverLatency),
            gavg: ms(Counter::GuestLatency),
            qavg: ms(Counter::QueueLatency),
            mib: mib[0].iter().zip(&mib[1]).map(|(read, written)| read + written).collect(),
            reads: rate(Counter::Reads),
        };
        match recording.entity(id).kind {
            Kind::VirtualDisk => flow.gavg = vdisk_latency(recording, id, &flow.reads),
            Kind::NfsVolume => flow.davg.clone_from(&flow.gavg),
            _ => flow.complete(ms(Counter::KernelLatency)),
        }
        flow
    }

    /// GAVG where it was not recorded.
    fn complete(&mut self, kavg: Vec<f64>) {
        for (sample, kavg) in kavg.into_iter().enumerate() {
            if self.gavg[sample] == 0.0 {
                self.gavg[sample] = self.davg[sample] + kavg;
            }
        }
    }

    /// Mean commands between the virtual adapter and the completion, by Little's law.
    pub(crate) fn outstanding(&self, sample: usize) -> f64 {
        little(self.rate[sample], self.gavg[sample])
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

/// Latency at the virtual adapter, over reads and writes.
fn vdisk_latency(recording: &Recording, id: EntityId, reads: &[f64]) -> Vec<f64> {
    let writes = column(recording, id, Counter::Writes, RATE_MAX);
    let read_ms = column(recording, id, Counter::VdiskReadLatency, LATENCY_MAX_MS);
    let write_ms = column(recording, id, Counter::VdiskWriteLatency, LATENCY_MAX_MS);
    let latency = |sample: usize| {
        let both = reads[sample] + writes[sample];
        let time = reads[sample] * read_ms[sample] + writes[sample] * write_ms[sample];
        if both > 0.0 { time / both } else { 0.0 }
    };
    (0..reads.len()).map(latency).collect()
}

/// Little's law: commands a second times milliseconds.
pub(crate) fn little(rate: f64, ms: f64) -> f64 {
    (rate * ms / 1000.0).min(OUTSTANDING_MAX)
}

/// The mean; 0 of nothing.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0_u32), |(sum, n), v| (sum + v, n + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// The value below which a share of the values lies; 0 of nothing.
pub(crate) fn quantile(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let place = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(place).copied().unwrap_or(0.0)
}
