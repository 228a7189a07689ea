//! What bounds a remedy for a recorded host besides its models.
//!
//! Of one that is nothing but settings it is what `kavg whatif` says: it knows laws that hold of any array, which no
//! run of a scenario does, and one change has one range. Of one that lets the bad VM do less it is what the good one
//! had whenever the bad one rested: all models have the array as equal servers, where a full link may be what less
//! load relieves.

use ::whatif::Model;
use counters::{Counter, Kind};

use super::{
    candidates::Remedy,
    case::{Case, REST},
    find::question,
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

/// What is said of a remedy for a recorded host by which the bad one does less than it did, or not.
pub(super) fn bounds(case: &Case, remedy: &Remedy, does_less: bool) -> Bounds {
    let mut bounds = rows(case, remedy).unwrap_or_default();
    if let Some([ms, iops]) = does_less.then(|| while_bad_rests(case)).flatten() {
        let with = |range: Option<Range>, [low, high]: Range| {
            let [least, most] = range.unwrap_or([low, high]);
            Some([least.min(low), most.max(high)])
        };
        bounds.good_ms = with(bounds.good_ms, [ms - ROUNDED, ms + ROUNDED]);
        bounds.good_iops = with(bounds.good_iops, [iops; 2]);
    }
    bounds
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

fn rows(case: &Case, remedy: &Remedy) -> Option<Bounds> {
    let original = case.original.as_ref()?;
    let question = question(original.window, remedy.typed(case)?, &[]);
    let model = Model::calibrate(&original.recording, &original.facts, &question).ok()?;
    let rows = model.answer().ok()?.simulated.rows;
    let range = |vm: &str, counter: Counter| {
        let name = counter.info().column;
        let vm = case.called(vm);
        let row = rows.iter().find(|row| row.object == vm && row.counter == name)?;
        Some([row.low, row.high])
    };
    Some(Bounds {
        good_ms: range(&case.good, Counter::GuestLatency),
        good_iops: range(&case.good, Counter::Commands),
        bad_iops: range(&case.bad, Counter::Commands),
    })
}
