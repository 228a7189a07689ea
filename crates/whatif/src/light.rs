//! What a lighter load of other commands says of an array: how long a command of the load in
//! question would take there alone.
//!
//! A quiet hour is seldom of the mix of the busy one, so its samples are no points on the curve of
//! this load. They are bounds of it: a command alone takes no longer than one of its kind did while
//! some were outstanding, and no less than that among as many others. Reads are held against reads
//! and writes against writes; what only the load has is bounded by what it takes there. More bytes
//! take no longer than the rate at which the array was seen to pass them.

use counters::Counter;
use levels::{Column, Measured, largest, mean, weighted_mean};

use crate::{cost::WRITE_MOST, observe::Device, rows::FALLS};

/// How long commands of the load take under a lighter one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Light {
    /// Commands outstanding in the lighter load.
    pub(crate) outstanding: f64,
    /// With as many outstanding they take so many milliseconds at least.
    pub(crate) least_ms: f64,
    /// Alone they take so many at most.
    pub(crate) alone_ms: f64,
    /// With as many outstanding they take so many at most; none where the load makes more work of a
    /// command than the lighter one.
    pub(crate) most_ms: Option<f64>,
}

/// Reads or writes of a device.
struct Way<'a> {
    rate: Column<'a>,
    davg: Column<'a>,
    mib_per_s: Column<'a>,
}

/// What was seen of reads, or of writes, in some samples.
struct Kind {
    rate: f64,
    ms: f64,
    kib: f64,
    /// Two standard errors of their latency.
    error_ms: f64,
}

/// How far the size of commands may be, as a factor, for one to bound the other.
const SIZES_APART: f64 = 8.0;
/// How much more of the lighter load may be writes, as a share, than of the load in question: a
/// read behind writes waits longer.
const WRITES_MORE: f64 = 0.05;

impl Light {
    /// From the samples of a lighter load and of the load in question.
    pub(crate) fn of(
        recording: &Measured,
        devices: &[&Device<'_>],
        light: &[usize],
        load: &[usize],
    ) -> Option<Self> {
        let ways = |[rate, davg, mib]: [Counter; 3]| -> Vec<Way<'_>> {
            let column = |id, counter| Column::of(recording, id, counter);
            let way = |device: &&Device<'_>| Way {
                rate: column(device.id, rate),
                davg: column(device.id, davg),
                mib_per_s: column(device.id, mib),
            };
            devices.iter().map(way).collect()
        };
        let reads = ways([Counter::Reads, Counter::DriverLatencyRead, Counter::MbRead]);
        let writes = ways([Counter::Writes, Counter::DriverLatencyWrite, Counter::MbWritten]);
        let every: Vec<usize> = light.iter().chain(load).copied().collect();
        let passed = |&s: &usize| {
            reads.iter().chain(&writes).map(|way| way.mib_per_s.at(s)).sum::<Option<f64>>()
        };
        let passed = largest(every.iter().map(passed)).filter(|passed| *passed > 0.0)?;
        let (quick_reads, slow_reads) = (Kind::of(&reads, light)?, Kind::of(&reads, load)?);
        let reads = slow_reads.alone(&quick_reads, passed)?;
        let (quick_writes, slow_writes) = (Kind::of(&writes, light), Kind::of(&writes, load));
        if is_refuted([&quick_reads, &slow_reads], [quick_writes.as_ref(), slow_writes.as_ref()]) {
            return None;
        }
        let share = |reads: &Kind, writes: &Option<Kind>| {
            let writes = writes.as_ref().map_or(0.0, |writes| writes.rate);
            writes / (reads.rate + writes)
        };
        let writes_share = share(&slow_reads, &slow_writes);
        let has_more_writes = share(&quick_reads, &quick_writes) > writes_share + WRITES_MORE;
        let (writes, is_alike) = match (&slow_writes, &quick_writes) {
            (None, _) => ([0.0; 2], true),
            (Some(slow), Some(quick)) => (slow.alone(quick, passed)?, !has_more_writes),
            (Some(slow), None) => (slow.as_reads(&slow_reads, reads), slow.is_alike(&slow_reads)),
        };
        let [least_ms, alone_ms] =
            [0, 1].map(|end| (1.0 - writes_share) * reads[end] + writes_share * writes[end]);
        let in_flight =
            |&s: &usize| devices.iter().map(|device| device.row.in_flight(s)).sum::<Option<f64>>();
        let outstanding = mean(light.iter().map(in_flight))?.max(1.0);
        let bytes_ms = slow_reads.wait_ms(&quick_reads, outstanding, passed);
        Some(Self {
            outstanding,
            least_ms: if has_more_writes { 0.0 } else { least_ms },
            alone_ms,
            most_ms: is_alike.then_some(alone_ms + bytes_ms),
        })
    }
}

/// Whether the lighter load did more a second than the heavier one could cost, were its commands as dear beside those
/// as their bytes, and a write as dear as one may be: more outstanding do
/// no less of the work, so it was work of another kind (sequential), or the array does something else besides now.
fn is_refuted(
    [quick_reads, slow_reads]: [&Kind; 2],
    [quick_writes, slow_writes]: [Option<&Kind>; 2],
) -> bool {
    let quick = quick_reads.rate + quick_writes.map_or(0.0, |writes| writes.rate);
    let bytes = |slow: &Kind| (slow.kib / quick_reads.kib).max(1.0);
    let writes = slow_writes.map_or(0.0, |writes| writes.rate * WRITE_MOST * bytes(writes));
    quick > FALLS * (slow_reads.rate * bytes(slow_reads) + writes)
}

impl Kind {
    /// `None` where none were, or nothing was measured of them.
    fn of(ways: &[Way<'_>], samples: &[usize]) -> Option<Self> {
        let each = || ways.iter().flat_map(|way| samples.iter().map(move |&s| (way, s)));
        let over = |value: &dyn Fn(&Way<'_>, usize) -> Option<f64>| {
            weighted_mean(each().map(|(way, s)| Some((value(way, s)?, way.rate.at(s)?))))
        };
        let ms = over(&|way, s| way.davg.at(s))?;
        let variance = over(&|way, s| Some((way.davg.at(s)? - ms).powi(2)))?;
        let rate = each().filter_map(|(way, s)| way.rate.at(s)).sum::<f64>() / samples.len() as f64;
        let kib = over(&|way, s| Some(1024.0 * way.mib_per_s.at(s)? / way.rate.at(s)?))?;
        let error_ms = 2.0 * (variance / samples.len() as f64).sqrt();
        (rate > 0.0 && kib > 0.0).then_some(Self { rate, ms, kib, error_ms })
    }

    /// Bounds of what one of these takes under the lighter load of `quick`; `None` where sizes are
    /// too far apart.
    fn alone(&self, quick: &Self, passed_mib_per_s: f64) -> Option<[f64; 2]> {
        if self.kib.max(quick.kib) > SIZES_APART * self.kib.min(quick.kib) {
            return None;
        }
        let bytes_ms = self.further_ms(quick, passed_mib_per_s);
        let least = quick.ms - quick.error_ms + bytes_ms.min(0.0);
        let most = quick.ms + quick.error_ms + bytes_ms.max(0.0);
        Some([least.max(0.0), most.min(self.ms)])
    }

    /// Bounds of what a write takes that the lighter load has none of, by what reads take there.
    fn as_reads(&self, slow: &Self, reads: [f64; 2]) -> [f64; 2] {
        match self.ms / slow.ms {
            _ if self.is_alike(slow) => reads,
            // What it does beyond a read (a further round trip, mirrors, parity) takes no longer where
            // less waits.
            part if part > 1.0 => [reads[0], (reads[1] + self.ms - slow.ms).min(self.ms)],
            // A cache answers it: that may not depend on the load at all.
            _ => [0.0, self.ms],
        }
    }

    /// Whether they take as long as those: then they go the same way.
    fn is_alike(&self, reads: &Self) -> bool {
        /// Part by which the latencies differ at most.
        const ALIKE: f64 = 0.1;
        (self.ms / reads.ms - 1.0).abs() <= ALIKE
    }

    /// What one of these waits at most, in milliseconds, for the bytes of the others among as many as in the
    /// lighter load of `quick`, where a link passes one command after the other; nothing where its bytes are
    /// no more than those are. One that comes to the link finds as many there as those without it have there on
    /// average (mean value analysis); elsewhere it is no shorter than `quick` is, had all of that met at the link.
    fn wait_ms(&self, quick: &Self, outstanding: f64, passed_mib_per_s: f64) -> f64 {
        let [own_ms, quick_ms] =
            [self, quick].map(|kind| 1000.0 * kind.kib / 1024.0 / passed_mib_per_s);
        if own_ms <= quick_ms {
            return 0.0;
        }
        let elsewhere_ms = (quick.ms - outstanding * quick_ms).max(0.0);
        let mut waits_ms = 0.0;
        let mut before = 1.0;
        while before < outstanding {
            let at_link_ms = waits_ms + own_ms;
            waits_ms = own_ms * before * at_link_ms / (elsewhere_ms + at_link_ms);
            before += 1.0;
        }
        waits_ms
    }

    /// What the bytes that one of these has beyond one of `quick` take at most, in milliseconds.
    fn further_ms(&self, quick: &Self, passed_mib_per_s: f64) -> f64 {
        1000.0 * (self.kib - quick.kib) / 1024.0 / passed_mib_per_s
    }
}
