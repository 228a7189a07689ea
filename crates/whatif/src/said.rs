//! What is said of an answer: how it may be taken, and its sentence.
//!
//! It stands behind `answer`, which has the rows, and knows nothing of how they came about.

use counters::Counter;
use diagnose::SimulatedRow;
use levels::most_first;
use serde::Serialize;

use crate::{number::number, run::Key};

/// How an answer may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Neither rate nor latency moves, and that is sure.
    GainsNothing,
    /// The rate after it is known within a narrow range; that of the latency may be wider.
    Identified,
    /// The range is wide, but it leaves out that nothing happens.
    Bounded,
    /// The range is wide, and nothing may happen too.
    CannotTell,
    /// No reading of the recording gives what it shows: there is no table of after.
    NoModel,
}

impl Verdict {
    /// Whether it is worth printing unasked.
    #[must_use]
    pub const fn is_useful(self) -> bool {
        matches!(self, Self::GainsNothing | Self::Identified | Self::Bounded)
    }
}

/// Width of the range of the rate, as a part of its middle, up to which it is identified.
pub(crate) const NARROW: f64 = 0.25;
/// Change below which nothing changes.
const NOTHING: f64 = 0.05;

/// Rate and latency of what is in question: the VM that gets more, or the device, of which the busiest
/// comes first.
pub(crate) fn main_rows<'r>(
    keys: &[Key],
    vm: Option<&str>,
    rows: &'r [SimulatedRow],
) -> Vec<&'r SimulatedRow> {
    let is_of_vm = |key: &&Key| !key.is_device() && Some(key.object.as_str()) == vm;
    let Some(main) = keys.iter().find(is_of_vm).or(keys.first()) else { return Vec::new() };
    let is_its = |key: &Key| key.is_device() == main.is_device() && key.object == main.object;
    let both = keys.iter().zip(rows).filter(|(key, _)| is_its(key) && key.is_total());
    both.map(|(_, row)| row).collect()
}

/// How wide a range is, as a part of its middle.
pub(crate) fn width(row: &SimulatedRow) -> f64 {
    let middle = f64::midpoint(row.low, row.high);
    if middle > 0.0 { (row.high - row.low) / middle } else { 0.0 }
}

/// What a counter was.
pub(crate) fn before(row: &SimulatedRow) -> f64 {
    row.captured.unwrap_or(row.today).max(1e-9)
}

/// The rows of a counter of every VM, if there are several: each with what chance does to it.
fn of_vms<'r>(
    keys: &[Key],
    rows: &'r [SimulatedRow],
    counter: Counter,
) -> Vec<(f64, &'r SimulatedRow)> {
    let is_it = |key: &Key| !key.is_device() && key.is(counter);
    let vms = keys.iter().zip(rows).filter(|(key, _)| is_it(key));
    let vms: Vec<_> = vms.map(|(key, row)| (key.chance, row)).collect();
    if vms.len() < 2 { Vec::new() } else { vms }
}

/// Whether no VM among several moves by more than chance does.
pub(crate) fn vms_stay(keys: &[Key], rows: &[SimulatedRow]) -> bool {
    let counters = [Counter::Commands, Counter::GuestLatency];
    let mut each = counters.into_iter().flat_map(|counter| of_vms(keys, rows, counter));
    each.all(|(chance, row)| {
        let part = (NOTHING + chance) * before(row);
        row.low >= before(row) - part && row.high <= before(row) + part
    })
}

/// From rate and latency of the device in question.
pub(crate) fn verdict(main: &[&SimulatedRow]) -> Verdict {
    let [rate, latency, ..] = main else { return Verdict::NoModel };
    let stays = |row: &SimulatedRow| {
        let part = row.today * NOTHING;
        row.high <= before(row) + part && row.low >= before(row) - part
    };
    let moves = |row: &SimulatedRow| {
        row.low >= before(row) * (1.0 + NOTHING) || row.high <= before(row) * (1.0 - NOTHING)
    };
    match () {
        () if stays(rate) && stays(latency) => Verdict::GainsNothing,
        () if width(rate) <= NARROW => Verdict::Identified,
        () if moves(rate) || moves(latency) => Verdict::Bounded,
        () => Verdict::CannotTell,
    }
}

/// The answer in a sentence: rate and latency of the device in question.
pub(crate) fn sentence(main: &[&SimulatedRow], verdict: Verdict) -> String {
    let [rate, latency, ..] = main else { return String::new() };
    let [was, took] = [before(rate), before(latency)].map(number);
    let becomes = format!(
        "{} does {} commands a second instead of {was} ({}), at {} ms instead of {took} (GAVG, {})",
        rate.object,
        range(rate),
        change(rate),
        range(latency),
        change(latency)
    );
    match verdict {
        Verdict::GainsNothing => format!(
            "This gains nothing: {} does {was} commands a second at {took} ms (GAVG) before, and \
             {} at {} after.",
            rate.object,
            range(rate),
            range(latency)
        ),
        Verdict::Identified if width(latency) > NARROW => {
            format!(
                "{becomes}. Only the rate is known as narrowly as that: of the latency these are bounds."
            )
        }
        Verdict::Identified => format!("{becomes}."),
        Verdict::Bounded => format!("Bounds, and no more than that, are known: {becomes}."),
        Verdict::CannotTell => {
            format!("The recording cannot tell what this gains or costs: {becomes}.")
        }
        Verdict::NoModel => String::new(),
    }
}

/// What a VM falls to on which a limit is put, where the answer is not about it.
pub(crate) fn falls(
    keys: &[Key],
    vm: &str,
    main: &[&SimulatedRow],
    rows: &[SimulatedRow],
) -> String {
    let is_main = main.first().is_some_and(|row| row.object == vm);
    let own = keys.iter().zip(rows).find(|(key, _)| key.is_rate_of(vm) && !is_main);
    let Some((_, row)) = own.filter(|(_, row)| row.high < before(row)) else {
        return String::new();
    };
    format!(" {vm} falls to {} commands a second instead of {}.", range(row), number(before(row)))
}

/// VMs that are named.
const NAMED: usize = 4;

/// Whose latency, of several VMs, surely moves otherwise than that of what is in question, the most
/// first: it says nothing of them.
pub(crate) fn apart_from(keys: &[Key], main: &[&SimulatedRow], rows: &[SimulatedRow]) -> String {
    let [_, whole, ..] = main else { return String::new() };
    let parts = |row: &SimulatedRow| [row.low, row.high].map(|end| end / before(row));
    let [least, most] = parts(whole);
    // By how much more, as a factor.
    let beyond = |row: &SimulatedRow| {
        let [low, high] = parts(row);
        (least / high.max(1e-9)).max(low / most.max(1e-9))
    };
    let mut moved: Vec<&SimulatedRow> = of_vms(keys, rows, Counter::GuestLatency)
        .into_iter()
        .filter(|(chance, row)| beyond(row) > 1.0 + NOTHING + chance)
        .map(|(_, row)| row)
        .collect();
    most_first(&mut moved, |row| beyond(row));
    let named = moved
        .iter()
        .take(NAMED)
        .map(|row| format!("{} {} ms instead of {}", row.object, range(row), number(before(row))));
    let named: Vec<String> = named.collect();
    match moved.len().saturating_sub(NAMED) {
        _ if moved.is_empty() => String::new(),
        0 => format!(" VMs whose latency moves otherwise: {}.", named.join(", ")),
        more => {
            format!(" VMs whose latency moves otherwise: {} and {more} more.", named.join(", "))
        }
    }
}

/// Who of several VMs loses commands, and how many, the worst first; or that nobody does. What chance
/// takes is no loss.
pub(crate) fn losses(keys: &[Key], rows: &[SimulatedRow]) -> String {
    let vms = of_vms(keys, rows, Counter::Commands);
    if vms.is_empty() {
        return String::new();
    }
    let loses = |chance: f64, row: &SimulatedRow| row.low < before(row) * (1.0 - NOTHING - chance);
    let mut losers: Vec<&SimulatedRow> =
        vms.into_iter().filter(|(chance, row)| loses(*chance, row)).map(|(_, row)| row).collect();
    most_first(&mut losers, |row| -row.low / before(row));
    let lost = |part: f64| 100.0 * (1.0 - part).max(0.0);
    let named = losers.iter().take(NAMED).map(|row| {
        let (least, most) = (lost(row.high / before(row)), lost(row.low / before(row)));
        match least >= 100.0 * NOTHING {
            true if most - least < 1.0 => format!("{} {most:.0} %", row.object),
            true => format!("{} {least:.0} to {most:.0} %", row.object),
            false => format!("{} {most:.0} % at most, if anything", row.object),
        }
    });
    let named: Vec<String> = named.collect();
    match losers.len().saturating_sub(NAMED) {
        _ if losers.is_empty() => " No VM loses commands.".into(),
        0 => format!(" VMs that lose commands: {}.", named.join(", ")),
        more => format!(" VMs that lose commands: {} and {more} more.", named.join(", ")),
    }
}

fn range(row: &SimulatedRow) -> String {
    let (low, high) = (number(row.low), number(row.high));
    if low == high { low } else { format!("{low} to {high}") }
}

fn change(row: &SimulatedRow) -> String {
    // Adding 0 makes a negative zero a positive one.
    let percent = |value: f64| (100.0 * (value / before(row) - 1.0)).round() + 0.0;
    let percent = |value: f64| match percent(value) {
        0.0 => "0".into(),
        percent => format!("{percent:+.0}"),
    };
    let (low, high) = (percent(row.low), percent(row.high));
    if low == high { format!("{low} %") } else { format!("{low} to {high} %") }
}
