//! Timestamps of captures: `MM/DD/YYYY HH:MM:SS` in UTC, and what spreadsheets make of it.
//!
//! esxtop's stamps have one second of resolution [CAP-A]; a file saved again by Excel has lost
//! the seconds (ten equal stamps in a row), the date, or the date and the hour, when its cells
//! were shown as `mm:ss.0` [CAP].

use counters::{date, is_leap};

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// How exact the stamps of a file are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stamps {
    /// As esxtop writes them.
    #[default]
    Seconds,
    /// Date, hour and minute: instants inside a minute are spread evenly.
    Minutes,
    /// Time without a date: days are counted from 1970-01-01.
    TimeOnly,
    /// Minute and second without an hour (`22:42.0`): hours are counted from 1970-01-01, so two
    /// samples must not lie more than an hour apart.
    MinuteOfHour,
}

/// The instant of a timestamp cell in milliseconds since 1970-01-01 UTC, and how exact it is.
/// `None` when it is no timestamp.
#[must_use]
pub fn parse_stamp(cell: &[u8]) -> Option<(i64, Stamps)> {
    let text = std::str::from_utf8(cell).ok()?.trim_matches(|c: char| c == '"' || c == ' ');
    let Some((date, time)) = text.split_once(' ') else {
        let of_hour = minute_of_hour(text).map(|time_ms| (time_ms, Stamps::MinuteOfHour));
        return of_hour.or_else(|| Some((time_of_day(text)?.0, Stamps::TimeOnly)));
    };
    let (month, rest) = date.split_once('/')?;
    let (day, year) = rest.split_once('/')?;
    let day_ms = days(number(year, 9999)?, number(month, 12)?, number(day, 31)?)? * DAY_MS;
    let (time_ms, has_seconds) = time_of_day(time.trim())?;
    Some((day_ms + time_ms, if has_seconds { Stamps::Seconds } else { Stamps::Minutes }))
}

/// The cell that esxtop prints for an instant, without quotes; milliseconds are cut off.
#[must_use]
pub fn format_stamp(time_ms: i64) -> String {
    let (year, month, day) = date(time_ms.div_euclid(DAY_MS));
    let seconds = time_ms.rem_euclid(DAY_MS) / SECOND_MS;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{month:02}/{day:02}/{year:04} {hour:02}:{minute:02}:{second:02}")
}

/// `HH:MM[:SS[.fff]]`, and whether it has seconds.
fn time_of_day(text: &str) -> Option<(i64, bool)> {
    let mut parts = text.split(':');
    let hour = number(parts.next()?, 23)?;
    let minute = number(parts.next()?, 59)?;
    let seconds = parts.next();
    if parts.next().is_some() {
        return None;
    }
    let millis = match seconds {
        Some(text) => seconds_of(text)?,
        None => 0,
    };
    Some((hour * HOUR_MS + minute * MINUTE_MS + millis, seconds.is_some()))
}

/// `MM:SS.f`; without the fraction it would be an hour and a minute.
fn minute_of_hour(text: &str) -> Option<i64> {
    let (minute, second) = text.split_once(':').filter(|(_, second)| second.contains('.'))?;
    Some(number(minute, 59)? * MINUTE_MS + seconds_of(second)?)
}

/// `SS[.fff]`.
fn seconds_of(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = if fraction.is_empty() { 0 } else { thousandths(fraction)? };
    Some(number(whole, 60)? * SECOND_MS + fraction)
}

fn thousandths(fraction: &str) -> Option<i64> {
    let digits = fraction.get(..fraction.len().min(3))?;
    Some(number(digits, 999)? * [100, 10, 1][digits.len() - 1])
}

fn number(text: &str, max: i64) -> Option<i64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|&value| value <= max)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; `None` where that has no such day.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if month < 1 || day < 1 || year < 1 {
        return None;
    }
    let days = days_since(year, month, day);
    (date(days) == (year, month, day)).then_some(days)
}

const fn days_since(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March put the leap day at the end.
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let of_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

/// Where the clock of a host, by the stamps of its rows, did not run on: places of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Jumps {
    /// The first rows after it was set back.
    pub(crate) back: Vec<usize>,
    /// The first rows after it was set ahead, or after a hole.
    pub(crate) ahead: Vec<usize>,
    /// Rows with the time of another day, between two that follow each other.
    pub(crate) strays: Vec<usize>,
}

/// Gives every sample of one file an instant of its own, as far as the stamps allow. Returns where the
/// clock jumped.
///
/// Times without a date go on after midnight, those without an hour after the full hour; what stands
/// before a clock that was set back is moved back with it; what stands between two jumps that undo each
/// other is moved to what follows; one row far from all others is put beside
/// the row above; equal stamps in a row are spread evenly over their second or minute, the first run
/// before its end, the others from its beginning.
pub(crate) fn refine(times_ms: &mut [i64], stamps: Stamps) -> Jumps {
    let mut jumps = Jumps::default();
    match stamps {
        Stamps::TimeOnly => unwrap(times_ms, DAY_MS),
        Stamps::MinuteOfHour => unwrap(times_ms, HOUR_MS),
        Stamps::Seconds | Stamps::Minutes => {
            let usual_ms = usual_step(times_ms);
            jumps.strays = gather(times_ms, usual_ms);
            jumps.ahead = leaps(times_ms, usual_ms);
            jumps.back = follow_the_clock(times_ms, usual_ms, &jumps.ahead);
            if !times_ms.is_sorted() {
                jumps.ahead.clear();
            }
        }
    }
    spread(times_ms, stamps);
    jumps
}

/// How far the stamps of two rows that follow each other are usually apart.
pub(crate) fn usual_step(times_ms: &[i64]) -> i64 {
    let forward = times_ms.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let mut forward: Vec<i64> = forward.filter(|gap| *gap > 0).collect();
    forward.sort_unstable();
    forward.get(forward.len() / 2).copied().unwrap_or(SECOND_MS)
}

/// Puts a row whose stamp is a leap from the row above, and no stamp of the rows around it, half way to
/// the row below. Returns which. A row in the wrong place is none: it is within the time of the others.
fn gather(times_ms: &mut [i64], usual_ms: i64) -> Vec<usize> {
    let is_far = |a: i64, b: i64| is_leap(a.max(b).saturating_sub(a.min(b)), usual_ms);
    let is_alone = |place: usize| {
        let above = place.checked_sub(1).map(|row| times_ms[row]);
        let below = times_ms.get(place + 1).copied();
        let here = times_ms[place];
        let is_astray = match (above, below) {
            (Some(above), Some(below)) => {
                above <= below
                    && !is_far(above, below)
                    && is_far(above, here)
                    && is_far(here, below)
            }
            // Nothing tells whether a leap ahead at the end is a pause.
            (Some(above), None) => above > here && is_far(above, here),
            _ => false,
        };
        is_astray.then_some(place)
    };
    let alone: Vec<usize> = (0..times_ms.len()).filter_map(is_alone).collect();
    let mut others =
        times_ms.iter().enumerate().filter(|(place, _)| alone.binary_search(place).is_err());
    let Some((_, &first)) = others.next() else { return Vec::new() };
    let (first, last) =
        others.fold((first, first), |(first, last), (_, time)| (first.min(*time), last.max(*time)));
    let strays: Vec<usize> =
        alone.into_iter().filter(|place| !(first..=last).contains(&times_ms[*place])).collect();
    for &place in &strays {
        let above = times_ms[place - 1];
        let below = times_ms.get(place + 1).copied().unwrap_or(above.saturating_add(2 * usual_ms));
        times_ms[place] = above + (below - above) / 2;
    }
    strays
}

/// The rows that lie a leap after the row above.
fn leaps(times_ms: &[i64], usual_ms: i64) -> Vec<usize> {
    let follows_leap =
        |row: &usize| is_leap(times_ms[*row].saturating_sub(times_ms[row - 1]), usual_ms);
    (1..times_ms.len()).filter(follows_leap).collect()
}

/// Spreads equal stamps over their second or minute.
fn spread(times_ms: &mut [i64], stamps: Stamps) {
    let tick = if stamps == Stamps::Minutes { MINUTE_MS } else { SECOND_MS };
    let runs: Vec<usize> = times_ms.chunk_by(|a, b| a == b).map(<[i64]>::len).collect();
    let most = runs.iter().copied().max().unwrap_or(1);
    if most == 1 {
        return;
    }
    let mut start = 0;
    for (index, length) in runs.iter().copied().enumerate() {
        // The first run may have begun before the recording did.
        let missing = if index == 0 && runs.len() > 1 { most - length } else { 0 };
        for (place, time) in times_ms[start..start + length].iter_mut().enumerate() {
            *time += tick * (place + missing) as i64 / most as i64;
        }
        start += length;
    }
}

/// Moves what stands before a clock that was set back, so that the order of the file stays and the last
/// times are right. Returns the first rows after each time.
///
/// It was set back where two rows that follow each other lie before the one above them: a row in the
/// wrong place is alone, and in a file that was sorted by something else it happens all the time.
/// Where it was set ahead before and the two undo each other, or the other way round, only the rows
/// between them are moved.
fn follow_the_clock(times_ms: &mut [i64], usual_ms: i64, leaps: &[usize]) -> Vec<usize> {
    const OFTEN: usize = 4;
    let is_step = |place: &usize| {
        let [before, here, after] = [*place - 1, *place, *place + 1].map(|row| times_ms[row]);
        here < before && (here..before).contains(&after)
    };
    let steps: Vec<usize> = (1..times_ms.len().saturating_sub(1)).filter(is_step).collect();
    if steps.len() * OFTEN > times_ms.len() {
        return Vec::new();
    }
    let jump = |&place: &usize| {
        let gap = times_ms[place].saturating_sub(times_ms[place - 1]);
        (place, gap.saturating_sub(usual_ms))
    };
    let mut jumps: Vec<(usize, i64)> = steps.iter().chain(leaps).map(jump).collect();
    jumps.sort_unstable();
    let (mut moved, mut end) = (0_i64, times_ms.len());
    while let Some((place, mut length)) = jumps.pop() {
        move_back(&mut times_ms[place..end], moved);
        end = place;
        let undo = |(_, earlier): &mut (usize, i64)| {
            let left = length.saturating_add(*earlier);
            (*earlier < 0) != (length < 0) && !is_leap(left.saturating_abs(), usual_ms)
        };
        if let Some((earlier, other)) = jumps.pop_if(undo) {
            move_back(&mut times_ms[earlier..end], moved.saturating_sub(length));
            (end, length) = (earlier, length.saturating_add(other));
        }
        moved = moved.saturating_sub(length.min(0));
    }
    move_back(&mut times_ms[..end], moved);
    steps
}

fn move_back(times_ms: &mut [i64], by_ms: i64) {
    times_ms.iter_mut().for_each(|time| *time = time.saturating_sub(by_ms));
}

/// Adds a turn of the clock whenever it begins anew.
fn unwrap(times_ms: &mut [i64], turn_ms: i64) {
    let mut turns_ms = 0;
    let mut last = i64::MIN;
    for time in times_ms {
        if *time + turns_ms < last {
            turns_ms += turn_ms;
        }
        *time += turns_ms;
        last = *time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stamps_are_read_in_every_form_seen() {
        let table = [
            ("\"04/26/2018 14:06:27\"", Some((1_524_751_587_000, Stamps::Seconds))),
            ("3/26/2015 22:42", Some((1_427_409_720_000, Stamps::Minutes))),
            ("22:42:26", Some((81_746_000, Stamps::TimeOnly))),
            ("22:42:26.5", Some((81_746_500, Stamps::TimeOnly))),
            ("22:42", Some((81_720_000, Stamps::TimeOnly))),
            ("22:42.0", Some((1_362_000, Stamps::MinuteOfHour))),
            ("59:59.9", Some((3_599_900, Stamps::MinuteOfHour))),
            ("60:00.0", None),
            (":.", None),
            ("01/01/1970 00:00:01.5", Some((1_500, Stamps::Seconds))),
            ("04/26/2018", None),
            ("13/26/2018 14:06:27", None),
            ("00/26/2018 14:06:27", None),
            ("04/26/2018 24:06:27", None),
            ("04/26/2018 14:06:27:9", None),
            ("-4/26/2018 14:06:27", None),
            ("0.00", None),
            ("", None),
        ];
        for (cell, expected) in table {
            assert_eq!(parse_stamp(cell.as_bytes()), expected, "{cell}");
        }
    }

    #[test]
    fn equal_stamps_are_spread_and_nights_are_counted() {
        let mut minutes = [0, 0, MINUTE_MS, MINUTE_MS, MINUTE_MS, 2 * MINUTE_MS];
        assert_eq!(refine(&mut minutes, Stamps::Minutes), Jumps::default());
        assert_eq!(minutes, [20_000, 40_000, 60_000, 80_000, 100_000, 120_000]);
        let mut night = [DAY_MS - 5_000, 0, 5_000];
        refine(&mut night, Stamps::TimeOnly);
        assert_eq!(night, [DAY_MS - 5_000, DAY_MS, DAY_MS + 5_000]);
        let mut hours = [HOUR_MS - 5_000, 0, HOUR_MS - 10_000, 5_000];
        refine(&mut hours, Stamps::MinuteOfHour);
        assert_eq!(hours, [HOUR_MS - 5_000, HOUR_MS, 2 * HOUR_MS - 10_000, 2 * HOUR_MS + 5_000]);
    }

    #[test]
    fn a_clock_that_was_set_back_is_followed() {
        let rows = |seconds: std::ops::Range<i64>| seconds.step_by(5).map(|s| s * SECOND_MS);
        // Two steps: of an hour, and of half a minute.
        let clock = rows(3_600..7_200).chain(rows(3_700..8_000)).chain(rows(7_970..8_500));
        let mut times: Vec<i64> = clock.collect();
        let length = times.len() as i64;
        assert_eq!(refine(&mut times, Stamps::Seconds).back, [720, 1_580]);
        let last = 8_495;
        assert_eq!(times, rows(last - 5 * (length - 1)..last + 1).collect::<Vec<_>>());
        let in_wrong_order: [Vec<i64>; 3] = [
            rows(0..100).map(|time| 100 * SECOND_MS - time).collect(),
            rows(0..50).chain([40 * SECOND_MS]).chain(rows(50..100)).collect(),
            rows(0..400).map(|time| time * 33 % (400 * SECOND_MS)).collect(),
        ];
        for times in in_wrong_order {
            let mut kept = times.clone();
            assert_eq!((refine(&mut kept, Stamps::Seconds), &kept), (Jumps::default(), &times));
        }
    }

    #[test]
    fn a_row_of_another_time_is_put_between_its_neighbours() {
        const AT: i64 = 1_577_836_800_000;
        let rows: Vec<i64> = (0..20).map(|row| AT + row * 5_000).collect();
        let hours = |hours: i64| AT + hours * HOUR_MS;
        for (row, stamp) in [(10, 0), (10, hours(5)), (10, hours(-5)), (1, hours(700_000)), (19, 0)]
        {
            let mut times = rows.clone();
            times[row] = stamp;
            let jumps = Jumps { strays: vec![row], ..Jumps::default() };
            assert_eq!((refine(&mut times, Stamps::Seconds), &times), (jumps, &rows), "{row}");
        }
    }

    #[test]
    fn a_clock_that_was_set_ahead_is_told() {
        let mut times: Vec<i64> = (0..20).map(|row| row * 5_000).collect();
        times[10..].iter_mut().for_each(|time| *time += 5 * HOUR_MS);
        let kept = times.clone();
        let jumps = Jumps { ahead: vec![10], ..Jumps::default() };
        assert_eq!((refine(&mut times, Stamps::Seconds), times), (jumps, kept));
    }

    #[test]
    fn rows_between_two_jumps_that_undo_each_other_keep_their_pace() {
        let steady: Vec<i64> = (0..60).map(|row| 9 * HOUR_MS + row * 5_000).collect();
        for (hours, back, ahead) in [(5, 40, 20), (-5, 20, 40)] {
            let mut times = steady.clone();
            times[20..40].iter_mut().for_each(|time| *time += hours * HOUR_MS);
            let jumps = Jumps { back: vec![back], ahead: vec![ahead], strays: Vec::new() };
            assert_eq!((refine(&mut times, Stamps::Seconds), &times), (jumps, &steady), "{hours}");
        }
        // A hole of five hours, and later summer time that ends: the hole stays as long as it is.
        let mut times = steady.clone();
        times[20..].iter_mut().for_each(|time| *time += 5 * HOUR_MS);
        let expected: Vec<i64> = times.iter().map(|time| time - HOUR_MS).collect();
        times[40..].iter_mut().for_each(|time| *time -= HOUR_MS);
        let jumps = Jumps { back: vec![40], ahead: vec![20], strays: Vec::new() };
        assert_eq!((refine(&mut times, Stamps::Seconds), times), (jumps, expected));
    }

    proptest! {
        #[test]
        fn a_stamp_printed_is_a_stamp_read(seconds in -62_135_596_800_i64..253_402_300_800) {
            let cell = format_stamp(seconds * 1_000);
            prop_assert_eq!(parse_stamp(cell.as_bytes()), Some((seconds * 1_000, Stamps::Seconds)));
        }
    }
}
