//! What a command counts to an IOPS limit: one for each begun `Disk.SchedCostUnit` of its data
//! [LAMW]. A capture has the mean size of commands, to the grain of its counters: it tells what each
//! of them counts where all are of one size, and bounds where they are not.

use capture::VscsiHistogram;
use counters::Metric;
use diagnose::Threshold;
use knobs::default_cost_unit_kib;

use crate::rows::{READS_APART, Row};

/// KiB that all sizes are whole numbers of.
const SECTOR_KIB: f64 = 0.5;

/// KiB of a command of which the size is unknown.
pub(crate) const SIZE_KIB: f64 = 4.0;

/// Reads of the same size that a write costs an array at most: behind RAID-6 (reference `array-and-control.md`,
/// section 7.2).
pub(crate) const WRITE_MOST: f64 = 6.0;

/// What a write costs at least beside a read of the same size, where a cache answers it.
pub(crate) const WRITE_LEAST: f64 = 0.1;

/// How long an array takes at most for a command of `own` in some samples, in milliseconds, where it takes `ms` for one of
/// `other`: by what it moves, no slower than an array that is not at its limit, and where parts of writes differ, by what
/// these may cost.
pub(crate) fn most_beside(own: &Row<'_>, (other, ms): (&Row<'_>, f64), samples: &[usize]) -> f64 {
    let of = |each: &dyn Fn(&Row<'_>) -> Option<f64>| each(own).zip(each(other));
    let kib_per_ms = 1024.0 * Threshold::TransferMib.info().classic / 1000.0;
    let larger = |(own, other): (f64, f64)| (ms * own / other).min(ms + (own - other) / kib_per_ms);
    let by_size = of(&|row| row.size_kib(samples)).map_or(ms, larger).max(ms);
    let by_reads = match of(&|row| row.read_share(samples)).map(|(own, other)| own - other) {
        Some(apart) if apart < -READS_APART => WRITE_MOST,
        Some(apart) if apart > READS_APART => 1.0 / WRITE_LEAST,
        _ => 1.0,
    };
    by_size * by_reads
}

/// The size of the commands that stand for others: whole sectors, up to what an adapter passes.
pub(crate) fn size_kib(mean_kib: Option<f64>) -> f64 {
    (mean_kib.unwrap_or(SIZE_KIB) / SECTOR_KIB).round().clamp(1.0, 65_536.0) * SECTOR_KIB
}

/// How many pieces a command becomes where no more than so many KiB pass as one.
pub(crate) fn pieces_of(mean_kib: Option<f64>, cut_kib: f64) -> f64 {
    (mean_kib.unwrap_or(SIZE_KIB) / cut_kib).ceil().max(1.0)
}

/// What a command of a size counts.
pub(crate) fn units_of(size_kib: f64) -> f64 {
    (size_kib / default_cost_unit_kib()).ceil().max(1.0)
}

/// The smallest sizes of which commands count so much on average, as a workload has them.
pub(crate) fn sizes_of(units: f64) -> String {
    /// Commands among which the larger ones are counted.
    const PARTS: f64 = 1000.0;
    let bytes =
        |units: f64| 1024.0 * ((units - 1.0).max(0.0) * default_cost_unit_kib() + SECTOR_KIB);
    let larger = (PARTS * units.fract()).round();
    match larger > 0.0 && larger < PARTS {
        true => format!(
            "{{ \"{}\" = {}, \"{}\" = {larger} }}  # of some sizes: what they count at most",
            bytes(units.floor()),
            PARTS - larger,
            bytes(units.ceil())
        ),
        false => format!("\"{}\"", bytes(units.round())),
    }
}

/// What commands count on average, least and greatest: of one size where that never moves by more than
/// the grain of the counters, of any sizes with that mean otherwise. One each where no size was
/// measured.
pub(crate) fn units(row: &Row<'_>, window: &[usize]) -> [f64; 2] {
    /// Samples that are enough to tell one size from several.
    const SAMPLES: usize = 3;
    let sizes: Vec<[f64; 2]> = window.iter().filter_map(|&s| row.kib_between(s)).collect();
    let low = sizes.iter().map(|[low, _]| *low).fold(0.0, f64::max);
    let high = sizes.iter().map(|[_, high]| *high).fold(f64::INFINITY, f64::min);
    let [least, most] =
        [(low / SECTOR_KIB).ceil(), (high / SECTOR_KIB).floor()].map(|n| n * SECTOR_KIB);
    match row.size_kib(window) {
        _ if least <= most && sizes.len() >= SAMPLES => [units_of(least), units_of(most)],
        // A size counts less than one more than its part of a unit.
        Some(kib) => [kib, kib - SECTOR_KIB + default_cost_unit_kib()]
            .map(|kib| (kib / default_cost_unit_kib()).max(1.0)),
        None => [1.0; 2],
    }
}

/// The same by a histogram of lengths, which has every command.
pub(crate) fn counted(lengths: &VscsiHistogram) -> Option<[f64; 2]> {
    if lengths.metric != Metric::IoLength || lengths.count == 0 {
        return None;
    }
    let (mut all, mut least) = ([0.0; 2], lengths.min);
    for bin in &lengths.bins {
        let most = bin.limit.map_or(lengths.max, |limit| limit.min(lengths.max));
        for (sum, bytes) in all.iter_mut().zip([least, most]) {
            *sum += bin.commands as f64 * units_of(bytes as f64 / 1024.0);
        }
        least = least.max(most.saturating_add(1));
    }
    Some(all.map(|sum| sum / lengths.count as f64))
}
