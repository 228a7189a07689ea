//! The rows at the very beginning of a capture that are no measurement.
//!
//! esxtop's first sample has no rates and is left out [CAP-A]. Where it stands there twice, as in a file
//! that was put together by hand, the copy has what was outstanding and nothing that completed, as a
//! device has that does not answer. What completes next tells the two apart: after a silence it has waited
//! for as long.

use counters::{Counter, EntityId, Kind, Recording};

/// How many of the first rows are no measurement; `first_ms` is the time of the row without rates above
/// them. Where rows may well be of one time (`is_fast`), none is a copy for that.
pub(crate) fn unmeasured(
    recordings: &[Recording],
    times_ms: &[i64],
    first_ms: i64,
    is_fast: bool,
) -> usize {
    let is_still = |row: usize| recordings.iter().all(|recording| has_no_rates(recording, row));
    let is_doubt =
        |row: &usize| is_still(*row) && recordings.iter().any(|r| shows_commands(r, *row));
    let doubtful = (0..times_ms.len()).take_while(is_doubt).count();
    let is_copy = |time: &&i64| !is_fast && **time == first_ms;
    let copies = times_ms.iter().take(doubtful).take_while(is_copy).count();
    if doubtful == copies || doubtful == times_ms.len() {
        return copies;
    }
    let last = doubtful - 1;
    let begin_ms = if last == 0 { first_ms } else { times_ms[last - 1] };
    let seconds = |from: i64, to: i64| to.saturating_sub(from) as f64 / 1_000.0;
    let still_s = seconds(begin_ms, times_ms[last]);
    let next_s = seconds(times_ms[last], times_ms[doubtful]);
    let verdicts = recordings.iter().flat_map(|recording| waited(recording, last, still_s, next_s));
    let verdicts: Vec<bool> = verdicts.collect();
    let is_refuted = !verdicts.is_empty() && !verdicts.contains(&true);
    if is_refuted { doubtful } else { copies }
}

/// Whether every rate and latency of a row that is there is 0.
fn has_no_rates(recording: &Recording, row: usize) -> bool {
    let of_rates = recording.columns().filter(|column| is_rate(column.1));
    of_rates.map(|column| column.2[row]).all(|value| value.is_nan() || value == 0.0)
}

/// Whether a counter is 0 in esxtop's first sample [CAP-A].
pub(crate) fn is_rate(counter: Counter) -> bool {
    matches!(counter.info().unit, "1/s" | "MiB/s" | "ms")
}

/// Devices and NFS volumes, and what of them is outstanding in a row.
fn outstanding(recording: &Recording, row: usize) -> impl Iterator<Item = (EntityId, f64)> {
    let kinds = [Kind::Device, Kind::NfsVolume];
    let objects = kinds.into_iter().flat_map(|kind| recording.of_kind(kind));
    objects.filter_map(move |(id, _)| {
        let of = |counter| recording.value(id, counter, row);
        let inside = of(Counter::ActiveCommands)? + of(Counter::QueuedCommands).unwrap_or_default();
        (inside >= 1.0).then_some((id, inside))
    })
}

fn shows_commands(recording: &Recording, row: usize) -> bool {
    outstanding(recording, row).next().is_some()
}

/// Of each device that has commands outstanding in a row and completes as many in the next one, whether
/// these waited for most of the row beside what commands take later.
fn waited(
    recording: &Recording,
    row: usize,
    still_s: f64,
    next_s: f64,
) -> impl Iterator<Item = bool> {
    /// Commands of a true silence were sent at its beginning, or in the row at all.
    const MOST: f64 = 0.5;
    /// Rows that tell how long commands take.
    const LATER: usize = 4;
    outstanding(recording, row).filter_map(move |(id, inside)| {
        let latency_ms = |row: usize| recording.value(id, Counter::GuestLatency, row);
        let later = (row + 2..row + 2 + LATER).filter_map(latency_ms).filter(|ms| *ms > 0.0);
        let usual_ms = later.reduce(f64::min)?;
        let completed = recording.value(id, Counter::Commands, row + 1)? * next_s;
        let waited_s = completed * (latency_ms(row + 1)? - usual_ms) / 1_000.0;
        (completed >= inside).then_some(waited_s >= MOST * inside * still_s)
    })
}
