//! What bounds a remedy for a recorded host besides its models.
//!
//! Of one that is nothing but settings it is what `kavg whatif` says: it knows laws that hold of any array, which no
//! run of a scenario does, and one change has one range; where it says that the recording does not tell, the models
//! have nothing to say either. Of one that lets the bad VM do less it is what the good one
//! had whenever the bad one rested: all models have the array as equal servers, where a full link may be what less
//! load relieves.

use ::whatif::{Answer, Model, by_numbers};
use counters::{Counter, Kind};
use diagnose::Window;
use knobs::Setting;

use crate::whatif;

use super::{
    candidate::Remedy,
    case::{Case, REST},
    original::Original,
};

/// How far a figure of two decimals may be from what it was.
const ROUNDED: f64 = 0.005;

/// From the least to the most.
pub(super) type Range = [f64; 2];

/// Between what a remedy leaves the two VMs; `None` where nothing is said of one.
#[derive(Clone, Copy, Default)]
pub(super) struct Bounds {
    /// Milliseconds of a command of the good one below its virtual adapter.
    pub(super) good_ms: Option<Range>,
    pub(super) good_iops: Option<Range>,
    pub(super) bad_iops: Option<Range>,
}

/// What is said of a remedy for a recorded host by which the bad one does less than it did, or not; or why no
/// recording like this tells what it does, in a sentence.
pub(super) fn bounds(case: &Case, remedy: &Remedy, does_less: bool) -> Result<Bounds, String> {
    let mut bounds = answers(case, remedy)?;
    if let Some([ms, iops]) = does_less.then(|| while_bad_rests(case)).flatten() {
        bounds.good_ms = wider(bounds.good_ms, Some([ms - ROUNDED, ms + ROUNDED]));
        bounds.good_iops = wider(bounds.good_iops, Some([iops; 2]));
    }
    Ok(bounds)
}

/// Milliseconds of a command of the good one, and its commands a second, over the samples of the recording in
/// which the bad one rests; `None` where it never does.
fn while_bad_rests(case: &Case) -> Option<[f64; 2]> {
    let recording = &case.original.as_ref()?.recording;
    let find = |vm: &str| recording.find(Kind::Vm, case.called(vm));
    let (good, bad) = (find(&case.good)?, find(&case.bad)?);
    let of = |vm, counter, sample| recording.value(vm, counter, sample).unwrap_or(0.0);
    let does = |sample: &usize| of(bad, Counter::Commands, *sample);
    let all = 0..recording.len();
    let rest = REST * all.clone().map(|sample| does(&sample)).sum::<f64>() / all.len() as f64;
    let (mut samples, mut commands, mut waits) = (0, 0.0, 0.0);
    for sample in all.filter(|sample| does(sample) <= rest) {
        let rate = of(good, Counter::Commands, sample);
        samples += u32::from(rate > 0.0);
        commands += rate;
        waits += of(good, Counter::Reads, sample) * of(good, Counter::VdiskReadLatency, sample)
            + of(good, Counter::Writes, sample) * of(good, Counter::VdiskWriteLatency, sample);
    }
    (samples > 0).then(|| [waits / commands, commands / f64::from(samples)])
}

/// What `kavg whatif` says of it, where it sets something and does nothing else: of the stretch of the case, and of
/// the one that is asked about where nobody says which.
fn answers(case: &Case, remedy: &Remedy) -> Result<Bounds, String> {
    let original = case.original.as_ref();
    let Some((original, settings)) = original.zip(remedy.typed(case)) else {
        return Ok(Bounds::default());
    };
    let Ok(settings) = by_numbers(settings) else { return Ok(Bounds::default()) };
    let own = whatif::window(&original.verdict, &settings, None);
    let mut windows = vec![original.window, own];
    windows.dedup();
    let answers = windows.into_iter().filter_map(|window| answer(original, &settings, window));
    let (told, untold): (Vec<_>, Vec<_>) =
        answers.partition(|answer| !answer.simulated.rows.is_empty());
    if let (true, Some(answer)) = (told.is_empty(), untold.into_iter().next()) {
        return Err(answer.simulated.sentence);
    }
    let each = told.iter().map(|answer| ranges(case, answer));
    Ok(each.reduce(both).unwrap_or_default())
}

fn both(one: Bounds, other: Bounds) -> Bounds {
    Bounds {
        good_ms: wider(one.good_ms, other.good_ms),
        good_iops: wider(one.good_iops, other.good_iops),
        bad_iops: wider(one.bad_iops, other.bad_iops),
    }
}

fn wider(one: Option<Range>, other: Option<Range>) -> Option<Range> {
    let both = |(one, other): (Range, Range)| [one[0].min(other[0]), one[1].max(other[1])];
    one.zip(other).map(both).or(one).or(other)
}

fn answer(original: &Original, settings: &[Setting], window: Window) -> Option<Answer> {
    let Original { recording, facts, .. } = original;
    let window = (window.from_ms, window.to_ms);
    let question = whatif::question(settings.to_vec(), window, whatif::COMMANDS);
    Model::calibrate(recording, facts, &question).ok()?.answer().ok()
}

fn ranges(case: &Case, answer: &Answer) -> Bounds {
    let rows = &answer.simulated.rows;
    let range = |vm: &str, counter: Counter| {
        let name = counter.info().column;
        let vm = case.called(vm);
        let row = rows.iter().find(|row| row.object == vm && row.counter == name)?;
        Some([row.low, row.high])
    };
    Bounds {
        good_ms: range(&case.good, Counter::GuestLatency),
        good_iops: range(&case.good, Counter::Commands),
        bad_iops: range(&case.bad, Counter::Commands),
    }
}
