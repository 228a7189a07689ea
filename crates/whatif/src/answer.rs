//! Runs held against the recording, and what is said of them.

use counters::Counter;
use diagnose::{Simulated, SimulatedRow};

use crate::{ArrayCalibration, DeviceCalibration, Habit, Seen, run::Key};

/// The figures of one reading, by key.
pub(crate) struct Run {
    pub(crate) today: Vec<f64>,
    pub(crate) after: Vec<f64>,
    /// Whether its today must fit the recording.
    pub(crate) judged: bool,
}

/// A reading that misses the recording by more than this, and by more than this much beyond the
/// best, does not fit it.
const FITS: f64 = 0.12;
/// Mismatch of today from which an answer is worth little.
const POOR: f64 = 0.15;
/// Width of a range, as a part of its middle, up to which the recording identifies the answer.
const NARROW: f64 = 0.3;
/// Change below which nothing changes.
const NOTHING: f64 = 0.03;

/// The answer, and how far today is from the recording (0.1 is 10 %). The first run is that of
/// the best reading.
pub(crate) fn answer(
    keys: &[Key],
    runs: &[Run],
    calibrated: &[DeviceCalibration],
    mut doubts: Vec<String>,
) -> (Simulated, f64) {
    let misses: Vec<f64> = runs.iter().map(|run| mismatch(keys, &run.today)).collect();
    let judged = runs.iter().zip(&misses).filter(|(run, _)| run.judged);
    let best = judged.map(|(_, miss)| *miss).fold(f64::INFINITY, f64::min);
    let fits = |miss: f64| miss <= best + FITS;
    let chosen = if misses.first().is_some_and(|miss| fits(*miss)) {
        0
    } else {
        misses.iter().position(|miss| *miss == best).unwrap_or(0)
    };
    let kept: Vec<&Run> = runs
        .iter()
        .zip(&misses)
        .filter(|(run, miss)| !run.judged || fits(**miss))
        .map(|(run, _)| run)
        .collect();
    let rows: Vec<SimulatedRow> = keys
        .iter()
        .enumerate()
        .map(|(index, key)| {
            let today = runs.get(chosen).map_or(0.0, |run| run.today[index]);
            let after = || kept.iter().map(|run| run.after[index]);
            let low = after().fold(f64::INFINITY, f64::min);
            let high = after().fold(f64::NEG_INFINITY, f64::max);
            // As far as today misses the recording, the change may be missed too.
            let missed = missed(key, today);
            SimulatedRow {
                object: key.object.clone(),
                counter: key.name,
                unit: key.unit,
                captured: key.captured,
                today,
                low: low * missed.min(1.0),
                high: high * missed.max(1.0),
            }
        })
        .collect();
    let miss = misses.get(chosen).copied().unwrap_or(f64::INFINITY);
    // The busiest device comes first.
    let main: Vec<&SimulatedRow> = rows
        .iter()
        .filter(|row| keys.first().is_some_and(|key| key.object == row.object))
        .collect();
    let identified = miss <= POOR && main.iter().take(2).all(|row| width(row) <= NARROW);
    doubts.splice(0..0, doubts_of(calibrated, miss, identified));
    let sentence = sentence(&main, identified, miss);
    (Simulated { sentence, identified, doubts, rows }, miss)
}

/// Recorded by simulated, of a rate or a latency; 1 for other counters.
fn missed(key: &Key, today: f64) -> f64 {
    const MOST: f64 = 1.5;
    let judged = key.is(Counter::Commands) || key.is(Counter::GuestLatency);
    match key.captured {
        Some(captured) if judged && captured > 0.0 && today > 0.0 => {
            (captured / today).clamp(1.0 / MOST, MOST)
        }
        _ => 1.0,
    }
}

fn width(row: &SimulatedRow) -> f64 {
    let middle = (row.low + row.high) / 2.0;
    if middle > 0.0 { (row.high - row.low) / middle } else { 0.0 }
}

/// How far figures are from the recording: the mean over rates and latencies of devices and VMs.
fn mismatch(keys: &[Key], figures: &[f64]) -> f64 {
    let judged = |key: &&Key| key.is(Counter::Commands) || key.is(Counter::GuestLatency);
    let (mut sum, mut weights) = (0.0, 0.0);
    for (key, figure) in keys.iter().zip(figures).filter(|(key, _)| judged(key)) {
        let Some(captured) = key.captured.filter(|captured| *captured > 0.0) else { continue };
        sum += key.weight * ((figure - captured).abs() / captured).min(2.0);
        weights += key.weight;
    }
    if weights > 0.0 { sum / weights } else { f64::INFINITY }
}

/// The answer in a sentence: rate and latency of the device in question.
fn sentence(main: &[&SimulatedRow], identified: bool, miss: f64) -> String {
    let [rate, latency, ..] = main else {
        return "The recording has no device to simulate.".into();
    };
    if miss > POOR {
        return format!(
            "The model misses this recording by {:.0} %, so do not rely on it: {} would do {} \
             commands a second at {} ms (GAVG).",
            100.0 * miss,
            rate.object,
            range(rate),
            range(latency)
        );
    }
    let same = |row: &&SimulatedRow| {
        let moved = |value: f64| (value - row.today).abs() <= NOTHING * row.today;
        moved(row.low) && moved(row.high)
    };
    if same(rate) && same(latency) {
        return format!(
            "This changes nothing for {}: {} commands a second at {} ms (GAVG), before and after.",
            rate.object,
            number(rate.today),
            number(latency.today)
        );
    }
    let doubt = if identified { "" } else { "The recording cannot tell how much this gains: " };
    format!(
        "{doubt}{} does {} commands a second instead of {} ({}), at {} ms instead of {} (GAVG, {}).",
        rate.object,
        range(rate),
        number(rate.today),
        change(rate),
        range(latency),
        number(latency.today),
        change(latency)
    )
}

fn range(row: &SimulatedRow) -> String {
    let (low, high) = (number(row.low), number(row.high));
    if low == high { low } else { format!("{low} to {high}") }
}

fn change(row: &SimulatedRow) -> String {
    // Adding 0 makes a negative zero a positive one.
    let percent = |value: f64| (100.0 * (value / row.today.max(1e-9) - 1.0)).round() + 0.0;
    let percent = |value: f64| match percent(value) {
        0.0 => "0".into(),
        percent => format!("{percent:+.0}"),
    };
    let (low, high) = (percent(row.low), percent(row.high));
    if low == high { format!("{low} %") } else { format!("{low} to {high} %") }
}

/// A number with three figures that count.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let digits = text.len();
    if value.abs() < 1000.0 || !text.is_char_boundary(digits.saturating_sub(3)) {
        return text;
    }
    let mut out = String::new();
    for (index, digit) in text.chars().enumerate() {
        if index > 0 && (digits - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn doubts_of(calibrated: &[DeviceCalibration], miss: f64, identified: bool) -> Vec<String> {
    let mut doubts = Vec::new();
    if miss > POOR {
        doubts.push(format!(
            "Today's simulation is {:.0} % away from the recording in rates and latencies.",
            100.0 * miss
        ));
    }
    for device in calibrated {
        doubts.extend(device.array.doubt(&device.device, identified));
        let unknown = device.guests.iter().filter(|guest| guest.habit == Habit::Unknown).count();
        if unknown > 0 {
            doubts.push(format!(
                "{unknown} of {} guests on {} may keep their commands outstanding or send at a \
                 rate of their own: the range covers both.",
                device.guests.len(),
                device.device
            ));
        }
        for guest in &device.guests {
            let Some(depth) = guest.capped_at else { continue };
            doubts.push(format!(
                "{} stands at the {depth} commands of its driver: what more it would send waits \
                 in the guest, where no counter of the host sees it{}.",
                guest.vm,
                if guest.may_be_behind {
                    ", and it may be behind with little, and content with little more"
                } else {
                    ""
                }
            ));
        }
    }
    doubts
}

impl ArrayCalibration {
    /// What the calibration saw, in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let [least, most] = self.outstanding.map(number);
        let [quick, slow] = self.davg_ms.map(number);
        let seen = format!(
            "{} intervals: DAVG {quick} to {slow} ms with {least} to {most} commands outstanding",
            self.intervals
        );
        match self.seen {
            Seen::Knee => format!("{seen}; latency rose along a line"),
            Seen::NoKnee => format!("{seen}; no knee seen, it lies above"),
            Seen::Saturated => {
                format!("{seen}; the rate stood still: saturated, or held to a rate")
            }
            Seen::Steady => format!("{seen}; no variation, so the knee is unknown"),
        }
    }

    /// What is unknown of it, and what would tell.
    fn doubt(&self, device: &str, identified: bool) -> Option<String> {
        let most = number(self.outstanding[1]);
        match self.seen {
            Seen::Steady if !identified => Some(format!(
                "{device} had about {most} commands at its array whenever it had load, so nothing \
                 shows how the array answers to more or to fewer. A recording that begins in a \
                 quiet hour and ends in this load would tell."
            )),
            Seen::NoKnee => Some(format!(
                "The array of {device} showed no knee up to {most} commands outstanding; where it \
                 is above that is not known."
            )),
            Seen::Saturated => Some(format!(
                "The array of {device} gives the same rate whatever is outstanding: more gains \
                 nothing there, and what fewer would do is not known."
            )),
            _ => None,
        }
    }
}
