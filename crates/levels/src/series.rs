//! Columns of a recording, and the few statistics that the rules need of them.

use counters::{Counter, EntityId, PERCENTILES, Recording, interval_s};
use knobs::NFS_OUTSTANDING;

use crate::beside::Beside;

/// The column of a counter; empty where the source does not have it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Column<'a> {
    values: &'a [f64],
    /// What its counter never comes to.
    absurd: f64,
    is_time: bool,
    /// What it comes to beside the others of its row.
    beside: Option<Beside<'a>>,
}

/// From where on a value was not measured: a counter of 32 or 64 bits that wrapped prints numbers
/// beside 2^32 or 2^64, divided by the interval or not. What kavg counts itself is what it is.
fn absurd(counter: Counter) -> f64 {
    const NONE: f64 = 1e15;
    let info = counter.info();
    match (counter, info.unit) {
        _ if !info.in_esxtop => NONE,
        // The most that are outstanding anywhere are those of NFS on all its volumes; one less is
        // 16 bits that are all set.
        (
            Counter::AdapterQDepth
            | Counter::DeviceQDepth
            | Counter::WorldQDepth
            | Counter::ActiveCommands
            | Counter::QueuedCommands,
            _,
        ) => f64::from(NFS_OUTSTANDING.default - 1),
        // More than any device completes, and than can be refused, aborted or split of it.
        (_, "1/s") => 4e6,
        (_, "MiB/s") => 1e6,
        // The most patient guest gives a command up after 3 minutes (reference, section 12), the
        // host before it (`Misc.APDTimeout`).
        (_, "ms") => 1.8e5,
        _ => NONE,
    }
}

impl<'a> Column<'a> {
    /// The column of a counter of an object.
    #[must_use]
    pub fn of(recording: &'a Recording, entity: EntityId, counter: Counter) -> Self {
        let values = recording.series(entity, counter).unwrap_or_default();
        let is_time = counter.info().unit == "ms";
        let beside = Some(Beside::of(recording, entity, counter));
        Self { values, absurd: absurd(counter), is_time, beside }
    }

    /// One value. Missing and negative ones (esxtop's sentinels -1 and -3) are none, and so is what
    /// its counter never comes to, a time of all 16 bits, and what cannot be beside the others of the
    /// row.
    #[must_use]
    pub fn at(&self, sample: usize) -> Option<f64> {
        let value = self.values.get(sample).copied()?;
        let is_possible = (0.0..self.absurd).contains(&value)
            && !(self.is_time && value == f64::from(u16::MAX))
            && self.beside.is_none_or(|beside| beside.allows(sample, value));
        is_possible.then_some(value)
    }

    /// Whether the source has the counter.
    #[must_use]
    pub const fn is_there(self) -> bool {
        !self.values.is_empty()
    }

    /// All its values.
    pub fn every(self) -> impl Iterator<Item = f64> + 'a {
        (0..self.values.len()).filter_map(move |sample| self.at(sample))
    }

    /// The values at those samples that have one.
    pub fn over(self, samples: &[usize]) -> impl Iterator<Item = f64> {
        samples.iter().filter_map(move |&sample| self.at(sample))
    }
}

/// The numbers of a series that were measured: the others are left out of whatever is made of it.
fn measured<V: Into<Option<f64>>>(
    values: impl IntoIterator<Item = V>,
) -> impl Iterator<Item = f64> {
    values.into_iter().filter_map(Into::into)
}

/// The mean of what was measured; `None` of nothing.
#[must_use]
pub fn mean<V: Into<Option<f64>>>(values: impl IntoIterator<Item = V>) -> Option<f64> {
    let (sum, count) = measured(values).fold((0.0, 0.0), |(s, n), value| (s + value, n + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// What numbers of one kind add up to: `None` where one of them was not measured, for the rest is
/// not the sum; and of nothing.
#[must_use]
pub fn sum(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    values.into_iter().reduce(|a, b| Some(a? + b?)).flatten()
}

/// The mean of values by their weights; `None` where these weigh nothing. What is none is left out.
#[must_use]
pub fn weighted_mean(values: impl IntoIterator<Item = Option<(f64, f64)>>) -> Option<f64> {
    let add =
        |(sum, all): (f64, f64), (value, weight): (f64, f64)| (sum + value * weight, all + weight);
    let (sum, all) = values.into_iter().flatten().fold((0.0, 0.0), add);
    (all > 0.0).then(|| sum / all)
}

/// The limit in force in most samples: a mean of limits would be none that ever was.
#[must_use]
pub fn usual(limit: Column<'_>, samples: &[usize]) -> Option<f64> {
    quantile(limit.over(samples), 0.5)
}

/// The median length of the intervals between samples, in seconds; `None` of a single one.
#[must_use]
pub fn usual_interval_s(times_ms: &[i64]) -> Option<f64> {
    quantile((1..times_ms.len()).map(|sample| interval_s(times_ms, sample)), 0.5)
}

/// The largest of what was measured; `None` of nothing.
#[must_use]
pub fn largest<V: Into<Option<f64>>>(values: impl IntoIterator<Item = V>) -> Option<f64> {
    measured(values).reduce(f64::max)
}

/// The least of the measured values that a share (0 to 1) of all do not exceed; `None` of nothing.
/// A histogram's is [`counters::Histogram::quantile`].
#[must_use]
pub fn quantile<V: Into<Option<f64>>>(
    values: impl IntoIterator<Item = V>,
    share: f64,
) -> Option<f64> {
    let alike = measured(values).map(|value| Some((value, 1.0)));
    weighted_quantiles(alike, [share]).map(|[value]| value)
}

/// The least of the values that those with so much of all weight do not exceed, for each of the
/// shares (0 to 1); `None` where nothing weighs anything. What is none is left out.
#[must_use]
pub fn weighted_quantiles<const N: usize>(
    values: impl IntoIterator<Item = Option<(f64, f64)>>,
    shares: [f64; N],
) -> Option<[f64; N]> {
    /// A sum of weights may miss by its rounding what the same share of all comes to.
    const ROUNDED: f64 = 1.0 - 1e-9;
    let mut sorted: Vec<(f64, f64)> = values.into_iter().flatten().collect();
    sorted.retain(|(_, weight)| *weight > 0.0);
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let &(last, _) = sorted.last()?;
    let all: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    Some(shares.map(|share| {
        let (wanted, mut below) = (share * all * ROUNDED, 0.0);
        let reached = sorted.iter().find(|(_, weight)| {
            below += weight;
            below >= wanted
        });
        reached.map_or(last, |(value, _)| *value)
    }))
}

/// P50, P95 and P99 of a latency: what it is of so many of the commands at most, each taken for the
/// mean of its sample. A sample has its latency and its commands.
#[must_use]
pub fn latency_percentiles(
    samples: impl IntoIterator<Item = Option<(f64, f64)>>,
) -> Option<[f64; 3]> {
    weighted_quantiles(samples, PERCENTILES.map(|(_, share)| share))
}

/// The value that occurs most often; the first of them when there are several.
#[must_use]
pub fn most_frequent(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut counts: Vec<(f64, usize)> = Vec::new();
    for value in values {
        match counts.iter_mut().find(|(seen, _)| *seen == value) {
            Some((_, count)) => *count += 1,
            None => counts.push((value, 1)),
        }
    }
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(value, _)| value)
}

/// How far a series moves from one value to the next, in percent: the median of the relative
/// steps, so that a level that changes once is still flat. Of two in the middle it is the larger: two
/// steps are too few to call one of them the exception. `None` for fewer than two values.
#[must_use]
pub fn unrest_percent(values: &[f64]) -> Option<f64> {
    let steps = values.windows(2).filter_map(|pair| match *pair {
        [a, b] if a.max(b) > 0.0 => Some(-100.0 * (a - b).abs() / a.max(b)),
        _ => None,
    });
    quantile(steps, 0.5).map(f64::abs)
}

/// Whether a rate looks like a setting: two significant digits and the rest nothing, to 1 %.
#[must_use]
pub fn is_round(rate: f64) -> bool {
    is_round_within(rate, 0.01)
}

/// Whether a rate is that of a setting to some part of it.
#[must_use]
pub fn is_round_within(rate: f64, part: f64) -> bool {
    const LEADING: [f64; 12] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0, 10.0];
    if rate < 1.0 {
        return false;
    }
    let leading = rate / 10_f64.powf(rate.log10().floor());
    LEADING.iter().any(|round| (leading - round).abs() <= part * round)
}

#[cfg(test)]
mod tests {
    use counters::{Entity, Kind};

    use super::*;

    #[test]
    fn statistics_of_nothing_are_nothing() {
        let nothing: [Option<f64>; 2] = [None; 2];
        assert_eq!((mean(nothing), largest(nothing), sum(nothing)), (None, None, None));
        assert_eq!(sum([]), None);
        assert_eq!(quantile(nothing, 0.5), None);
        assert_eq!(most_frequent([]), None);
        assert_eq!(unrest_percent(&[1.0]), None);
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let values = [Some(1.0), None, Some(3.0)];
        assert_eq!((mean(values), largest(values)), (Some(2.0), Some(3.0)));
        assert_eq!(quantile(values, 0.0), Some(1.0));
    }

    #[test]
    fn what_lacks_a_part_has_no_sum() {
        assert_eq!(sum([Some(1.0), Some(2.0)]), Some(3.0));
        assert_eq!(sum([Some(1.0), None]), None);
    }

    #[test]
    fn a_percentile_is_the_least_value_that_so_many_do_not_exceed() {
        let to = |last: u32| (1..=last).rev().map(f64::from);
        let of = |last| [0.0, 0.5, 0.95, 0.99, 1.0].map(|share| quantile(to(last), share));
        assert_eq!(of(100), [1.0, 50.0, 95.0, 99.0, 100.0].map(Some));
        assert_eq!(of(20), [1.0, 10.0, 19.0, 20.0, 20.0].map(Some));
        assert_eq!(of(3), [1.0, 2.0, 3.0, 3.0, 3.0].map(Some));
        assert_eq!(quantile(to(100), 0.07), Some(7.0));
    }

    #[test]
    fn a_percentile_of_a_latency_is_of_its_commands_and_not_of_its_samples() {
        let quiet = (0..9).map(|_| Some((1.0, 10.0)));
        let busy = [Some((20.0, 910.0)), None];
        assert_eq!(latency_percentiles(quiet.chain(busy)), Some([20.0; 3]));
        assert_eq!(latency_percentiles([Some((5.0, 0.0))]), None);
    }

    #[test]
    fn a_hole_is_no_usual_interval() {
        assert_eq!(usual_interval_s(&[0, 5_000, 10_000, 310_000, 315_000]), Some(5.0));
        assert_eq!(usual_interval_s(&[0]), None);
    }

    #[test]
    fn a_percentile_by_weight_is_that_of_what_the_values_stand_for() {
        let values =
            [Some((9.0, 5.0)), Some((1.0, 90.0)), None, Some((4.0, 5.0)), Some((99.0, 0.0))];
        let shares = [0.5, 0.9, 0.95, 0.96, 1.0];
        assert_eq!(weighted_quantiles(values, shares), Some([1.0, 1.0, 4.0, 9.0, 9.0]));
        assert_eq!(weighted_quantiles([Some((1.0, 0.0)), None], shares), None);
    }

    #[test]
    fn a_level_that_changes_once_is_flat() {
        assert_eq!(unrest_percent(&[52.0, 52.0, 52.0, 26.0, 26.0]), Some(0.0));
        assert_eq!(unrest_percent(&[50.0, 100.0, 50.0]), Some(50.0));
        assert_eq!(unrest_percent(&[50.0, 100.0, 100.0]), Some(50.0));
    }

    #[test]
    fn the_most_frequent_value_is_found() {
        assert_eq!(most_frequent([128.0, 32.0, 32.0, 128.0]), Some(128.0));
        assert_eq!(most_frequent([128.0, 32.0, 32.0]), Some(32.0));
    }

    #[test]
    fn settings_are_round() {
        assert!([1_000.0, 2_512.0, 64_500.0 / 43.0].map(is_round).iter().all(|round| *round));
        assert!([0.0, 0.5, 1_370.0, 33_000.0].map(is_round).iter().all(|round| !round));
    }

    #[test]
    fn sentinels_and_holes_are_no_values() {
        let column = column(&[1.0, -3.0, f64::NAN, f64::INFINITY, 2.0], Counter::Resets);
        assert_eq!(column.over(&[0, 1, 2, 3, 4, 5]).collect::<Vec<_>>(), [1.0, 2.0]);
    }

    fn column(values: &[f64], counter: Counter) -> Column<'_> {
        let is_time = counter.info().unit == "ms";
        Column { values, absurd: absurd(counter), is_time, beside: None }
    }

    /// A device of 2,000 commands a second at 1 ms with the values of one sample replaced.
    fn with(replaced: &[(Counter, f64)]) -> Recording {
        let mut recording = Recording::new("esx".into());
        recording.times_ms = (0..6).map(|sample| 5_000 * sample).collect();
        let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
        let row = [
            (Counter::Commands, 2_000.0),
            (Counter::Reads, 2_000.0),
            (Counter::Writes, 0.0),
            (Counter::MbRead, 15.6),
            (Counter::DriverLatency, 1.0),
            (Counter::KernelLatency, 0.01),
            (Counter::QueueLatency, 0.0),
            (Counter::GuestLatency, 1.01),
            (Counter::DeviceQDepth, 64.0),
            (Counter::ActiveCommands, 2.0),
            (Counter::QueuedCommands, 0.0),
            (Counter::Aborts, 0.0),
            (Counter::Resets, 0.0),
            (Counter::Conflicts, 0.0),
            (Counter::FailedCommands, 0.0),
        ];
        for (counter, value) in row {
            let mut values = vec![value; 6];
            for (_, other) in replaced.iter().filter(|(of, _)| *of == counter) {
                values[3] = *other;
            }
            recording.set_column(device, counter, values);
        }
        recording
    }

    fn is_measured(recording: &Recording, counter: Counter) -> bool {
        Column::of(recording, EntityId(0), counter).at(3).is_some()
    }

    #[test]
    fn what_cannot_be_beside_its_row_was_not_measured() {
        let impossible = [
            (Counter::Aborts, 2_147_483.65),
            (Counter::Resets, 65_535.0),
            (Counter::Aborts, 1_900.0),
            (Counter::FailedCommands, 65_535.0),
            (Counter::Conflicts, 65_535.0),
            (Counter::DriverLatency, 65_535.0),
            (Counter::DriverLatency, 4_294.97),
            (Counter::KernelLatency, 65_535.0),
            (Counter::QueueLatency, 65_535.0),
            (Counter::GuestLatency, 65_535.0),
            (Counter::GuestLatency, 1e6),
            (Counter::Commands, 0.0),
            (Counter::Writes, 1e6),
        ];
        for (counter, value) in impossible {
            assert!(!is_measured(&with(&[(counter, value)]), counter), "{counter:?} {value}");
        }
        for (counter, value) in [
            (Counter::Aborts, 40.0),
            (Counter::Resets, 4.0),
            (Counter::FailedCommands, 1_990.0),
            (Counter::Conflicts, 91.0),
            (Counter::DriverLatency, 30.0),
            (Counter::KernelLatency, 137.0),
        ] {
            assert!(is_measured(&with(&[(counter, value)]), counter), "{counter:?} {value}");
        }
    }

    #[test]
    fn one_number_in_every_cell_of_a_row_was_not_measured() {
        let all = |number| {
            let rates = [
                Counter::Commands,
                Counter::Reads,
                Counter::Writes,
                Counter::MbRead,
                Counter::Aborts,
            ];
            let times =
                [Counter::DriverLatency, Counter::KernelLatency, Counter::GuestLatency].into_iter();
            times.chain(rates).map(|counter| (counter, number)).collect::<Vec<_>>()
        };
        for number in [2.0, 7_000.0, 65_535.0, 1e6, 1.7e5] {
            let row = with(&all(number));
            for (counter, _) in all(number) {
                assert!(!is_measured(&row, counter), "{counter:?} {number}");
            }
        }
    }

    #[test]
    fn what_a_row_bounds_is_bounded_in_the_first_row_too() {
        let mut first = with(&[]);
        first.set_column(EntityId(0), Counter::Aborts, vec![65_535.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(Column::of(&first, EntityId(0), Counter::Aborts).at(0), None);
    }

    #[test]
    fn a_stall_of_seconds_is_possible_for_those_that_were_outstanding() {
        for (rate, stall_ms) in [(5.0, 4_200.0), (0.2, 90_000.0), (12.0, 9_000.0)] {
            let moved = (Counter::MbRead, 0.0);
            let row = [(Counter::Commands, rate), (Counter::Reads, rate), moved];
            let stalled = with(&[&row[..], &[(Counter::DriverLatency, stall_ms)]].concat());
            assert!(is_measured(&stalled, Counter::DriverLatency), "{stall_ms}");
        }
    }

    #[test]
    fn wrapped_and_impossible_values_are_none_in_every_counter_of_esxtop() {
        let wrapped = [2_f64.powi(32), 2_f64.powi(64)];
        let garbage: Vec<f64> = wrapped
            .into_iter()
            .flat_map(|most| [most - 2.0, most - 1.0, most, most + 1.0, most / 5.0, most / 60.0])
            .chain([-1.0, -3.0, 1e9])
            .collect();
        let judged = [
            Counter::Commands,
            Counter::Resets,
            Counter::Aborts,
            Counter::Conflicts,
            Counter::SplitCopies,
            Counter::MbRead,
            Counter::DriverLatency,
            Counter::QueueLatency,
            Counter::VdiskReadLatency,
            Counter::DeviceQDepth,
            Counter::AdapterQDepth,
            Counter::QueuedCommands,
        ];
        for counter in judged {
            let most: Vec<f64> = column(&garbage, counter).every().collect();
            assert_eq!(most, [], "{counter:?}");
        }
        assert_eq!(column(&[4_096.0], Counter::DeviceQDepth).at(0), Some(4_096.0));
        assert_eq!(column(&[65_535.0, 65_534.0], Counter::VdiskReadLatency).at(0), None);
        assert_eq!(column(&[65_535.0], Counter::Commands).at(0), Some(65_535.0));
        assert_eq!(column(&[22_263.0], Counter::QueueLatency).at(0), Some(22_263.0));
        assert_eq!(column(&[2_000_000.0], Counter::Commands).at(0), Some(2_000_000.0));
    }
}
