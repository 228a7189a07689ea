//! What became of the latency of an object, and whether its load lets that be said.
//!
//! Latency may be compared where the load is the same, or where it moved the other way: quicker
//! with more to do is better, slower with less to do is worse. Anything else the load alone may
//! explain.

use counters::Kind;

use super::{
    MIN_IOPS,
    figures::{DAVG, GAVG, KAVG, RATE, READS, SIZE},
};
use crate::{Figure, ObjectChange, Trend, number};

/// Rate and size within this, in percent, are the same load.
const ALIKE_PERCENT: f64 = 10.0;
/// The share of reads within this, in points of percent, is the same load.
const ALIKE_POINTS: f64 = 10.0;
/// A latency that moved by less, in percent, is the same, however sure the difference is.
const MATERIAL_PERCENT: f64 = 5.0;
/// Latencies that are as many times apart are not the same, however uneven the samples are.
const FAR: f64 = 2.0;

/// How the load moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    lighter: bool,
    heavier: bool,
    /// More reads, or fewer: neither lighter nor heavier.
    other: bool,
}

impl ObjectChange {
    /// The figure of that name; `None` when neither side has it.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

impl Figure {
    /// Up or down, when that is sure and more than next to nothing.
    fn moved(&self) -> Option<f64> {
        let change = self.change.filter(|_| self.beyond_noise == Some(true))?;
        let is_much = self.change_percent.is_none_or(|percent| percent.abs() >= MATERIAL_PERCENT);
        is_much.then_some(change)
    }

    /// Whether its two sides are far apart.
    fn is_far(&self) -> bool {
        let sides = self.before.zip(self.after);
        sides.is_some_and(|(before, after)| before.max(after) >= FAR * before.min(after))
    }
}

/// Fills in the trend of an object and its sentence from its figures.
pub(super) fn judge(object: &mut ObjectChange) {
    let load = Load::of(object);
    object.trend = trend(object, load);
    object.sentence = sentence(object, load);
}

fn trend(object: &ObjectChange, load: Load) -> Trend {
    let Some(gavg) = object.figure(GAVG).filter(|_| has_load(object)) else {
        return Trend::Unknown;
    };
    let may_be_the_load = |expected: bool| expected || load.other;
    match gavg.moved() {
        _ if gavg.beyond_noise.is_none() => Trend::Unknown,
        None if gavg.beyond_noise == Some(false) && gavg.is_far() => Trend::Unknown,
        None => Trend::Same,
        Some(change) if change < 0.0 && may_be_the_load(load.lighter) => Trend::LoadDiffers,
        Some(change) if change > 0.0 && may_be_the_load(load.heavier) => Trend::LoadDiffers,
        Some(change) if change < 0.0 => Trend::Better,
        Some(_) => Trend::Worse,
    }
}

/// Whether there is load on both sides.
fn has_load(object: &ObjectChange) -> bool {
    let rate = object.figure(RATE).and_then(|rate| Some(rate.before?.min(rate.after?)));
    rate.is_some_and(|rate| rate >= MIN_IOPS)
}

impl Load {
    fn of(object: &ObjectChange) -> Self {
        let mut load = Self::default();
        for name in [RATE, SIZE] {
            let percent = object.figure(name).and_then(|figure| figure.change_percent);
            load.lighter |= percent.is_some_and(|percent| percent < -ALIKE_PERCENT);
            load.heavier |= percent.is_some_and(|percent| percent > ALIKE_PERCENT);
        }
        let points = object.figure(READS).and_then(|figure| figure.change);
        load.other = points.is_some_and(|points| points.abs() > ALIKE_POINTS);
        load
    }
}

/// `GAVG of naa.1 fell from 3.2 to 0.3 ms (KAVG 2.9 to 0, DAVG 0.3 to 0.3) at the same load (...).`
fn sentence(object: &ObjectChange, load: Load) -> String {
    let name = &object.object.name;
    if !has_load(object) {
        let rate = object.figure(RATE).and_then(|rate| rate.after).unwrap_or(0.0);
        let side = if rate < MIN_IOPS { "after" } else { "before" };
        return format!("{name} has next to no load {side}.");
    }
    let Some((was, is, gavg)) = object.figure(GAVG).and_then(|f| Some((f.before?, f.after?, f)))
    else {
        return format!("{name} has no latency on one of the sides.");
    };
    let (was, is) = (number(was), number(is));
    let what = if object.object.kind == Kind::VirtualDisk { "Latency" } else { "GAVG" };
    let moved = match (object.trend, gavg.moved()) {
        (Trend::Same, _) => format!("is the same ({was} and {is} ms"),
        (_, Some(change)) if change < 0.0 => format!("fell from {was} to {is} ms"),
        (_, Some(_)) => format!("rose from {was} to {is} ms"),
        _ => format!(
            "was {was} and is {is} ms, on samples too few or too uneven to tell that from chance"
        ),
    };
    let parts = parts(object);
    let parts = match (object.trend, parts.is_empty()) {
        (Trend::Same, true) => ")".into(),
        (Trend::Same, false) => format!("; {parts})"),
        (_, true) => String::new(),
        (_, false) => format!(" ({parts})"),
    };
    let doubt = match object.trend {
        Trend::LoadDiffers => ", which may be all there is to it",
        _ if went_below(object) => "; the wait went from the host to the array",
        _ => "",
    };
    format!("{what} of {name} {moved}{parts} {}{doubt}.", load_text(object, load))
}

/// KAVG and DAVG, where they are known.
fn parts(object: &ObjectChange) -> String {
    let part = |(label, name)| {
        let figure = object.figure(name)?;
        Some(format!("{label} {} to {}", number(figure.before?), number(figure.after?)))
    };
    let parts = [("KAVG", KAVG), ("DAVG", DAVG)].into_iter().filter_map(part);
    parts.collect::<Vec<_>>().join(", ")
}

/// Whether commands only wait elsewhere now: deeper queues move the wait from KAVG to DAVG.
fn went_below(object: &ObjectChange) -> bool {
    let moved = |name| object.figure(name).and_then(Figure::moved);
    let Some((kernel, driver)) = moved(KAVG).zip(moved(DAVG)) else { return false };
    object.trend != Trend::Better && kernel < 0.0 && driver >= -kernel / 2.0
}

fn load_text(object: &ObjectChange, load: Load) -> String {
    if load == Load::default() {
        let rate = object.figure(RATE).and_then(|figure| figure.after).unwrap_or(0.0);
        return format!("at the same load ({} commands/s)", number(rate));
    }
    let differs = |name: &str| {
        let figure = object.figure(name)?;
        figure.change_percent.filter(|percent| percent.abs() > ALIKE_PERCENT)?;
        Some((number(figure.before?), number(figure.after?)))
    };
    let rate = differs(RATE).map(|(was, is)| format!("from {was} to {is} commands/s"));
    let size = differs(SIZE).map(|(was, is)| format!("from {was} to {is} KiB a command"));
    let reads = object.figure(READS).filter(|_| load.other);
    let reads = reads.and_then(|figure| {
        Some(format!("from {} to {} % reads", number(figure.before?), number(figure.after?)))
    });
    let parts: Vec<_> = [rate, size, reads].into_iter().flatten().collect();
    format!("while the load went {}", parts.join(", "))
}
