//! The figures of an object on one side, and what became of them on the other.

use counters::{Counter, DEFAULT_INTERVAL_S, EntityId, Kind};
use levels::{Measured, inside, latency_percentiles, weighted_mean};

use super::noise::{self, Term};
use crate::{Column, Figure, Flow, Vdisk, little, most_frequent};

/// What an object did in one sample. What a recording does not have is nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    /// The length of the sample's interval.
    pub(super) seconds: f64,
    /// Commands per second.
    pub(super) rate: Option<f64>,
    reads: Option<f64>,
    pub(super) mib: Option<f64>,
    pub(super) gavg: Option<f64>,
    pub(super) kavg: Option<f64>,
    pub(super) davg: Option<f64>,
    qavg: Option<f64>,
    depth: Option<f64>,
}

impl Moment {
    /// Those that were measured.
    pub(super) fn commands(&self) -> f64 {
        self.rate.unwrap_or_default() * self.seconds
    }

    fn size_kib(&self) -> Option<f64> {
        Some(self.mib? * 1024.0 / self.rate.filter(|rate| *rate > 0.0)?)
    }

    fn reads_percent(&self) -> Option<f64> {
        Some(100.0 * self.reads? / self.rate.filter(|rate| *rate > 0.0)?)
    }

    /// DAVG; for an NFS volume and a virtual disk all that the host sees.
    pub(super) fn below_ms(&self) -> Option<f64> {
        self.davg.or(self.gavg)
    }

    /// What ACTV samples; for an NFS volume and a virtual disk all that is outstanding.
    pub(super) fn active(&self) -> Option<f64> {
        inside(self.rate, || self.below_ms())
    }

    /// What QUED samples.
    fn queued(&self) -> Option<f64> {
        inside(self.rate, || self.qavg)
    }

    /// The limit on what is active, where there is one.
    pub(super) fn limit(&self) -> Option<f64> {
        self.depth.filter(|depth| *depth > 0.0)
    }

    fn used_percent(&self) -> Option<f64> {
        Some(100.0 * self.active()? / self.limit()?)
    }

    fn load(&self) -> Option<f64> {
        Some((self.active()? + self.queued()?) / self.limit()?)
    }

    /// Some objects as one.
    fn of_all(moments: &[Self]) -> Self {
        let all = Together { all: moments, rate: |moment| moment.rate };
        Self {
            seconds: moments.first().map_or(0.0, |first| first.seconds),
            rate: all.sum(|m| m.rate),
            reads: all.sum(|m| m.reads),
            mib: all.sum(|m| m.mib),
            gavg: all.per_command(|m| m.gavg),
            kavg: all.per_command(|m| m.kavg),
            davg: all.per_command(|m| m.davg),
            qavg: all.per_command(|m| m.qavg),
            depth: None,
        }
    }
}

/// Several objects as one: rates add up, latencies are weighted by commands.
pub(super) struct Together<'a, T> {
    pub(super) all: &'a [T],
    /// Commands per second.
    pub(super) rate: fn(&T) -> Option<f64>,
}

impl<T> Together<'_, T> {
    pub(super) fn sum(&self, value: fn(&T) -> Option<f64>) -> Option<f64> {
        levels::sum(self.all.iter().map(value))
    }

    pub(super) fn per_command(&self, ms: fn(&T) -> Option<f64>) -> Option<f64> {
        weighted_mean(self.all.iter().map(|one| Some((ms(one)?, (self.rate)(one)?))))
    }
}

/// The moments of an object: of a VM, those of its worlds together where they carry its commands.
pub(super) fn moments(recording: &Measured, id: EntityId) -> Vec<Moment> {
    let own = read(recording, id);
    if recording.entity(id).kind != Kind::Vm {
        return own;
    }
    let worlds = recording.of_kind(Kind::World).filter(|(_, world)| world.vm == Some(id));
    let worlds: Vec<_> = worlds.map(|(world, _)| read(recording, world)).collect();
    let all = (0..recording.len()).map(|sample| {
        let of_sample = worlds.iter().filter_map(|world| world.get(sample).copied());
        Moment::of_all(&of_sample.collect::<Vec<_>>())
    });
    let all: Vec<_> = all.collect();
    let commands = |moments: &[Moment]| moments.iter().map(Moment::commands).sum::<f64>();
    if commands(&all) > 0.0 && commands(&all) >= 0.9 * commands(&own) { all } else { own }
}

fn read(recording: &Measured, id: EntityId) -> Vec<Moment> {
    let (flow, disk) = (Flow::of(recording, id), Vdisk::of(recording, id));
    let kind = recording.entity(id).kind;
    let is_disk = matches!(kind, Kind::Vm | Kind::VirtualDisk);
    let column = |counter| Column::of(recording, id, counter);
    let [reads, depth] = [Counter::Reads, Counter::DeviceQDepth].map(column);
    let moment = |sample| Moment {
        seconds: recording.interval_s(sample).unwrap_or(DEFAULT_INTERVAL_S),
        rate: if is_disk { disk.rate(sample) } else { flow.rate(sample) },
        reads: reads.at(sample),
        mib: flow.mib_per_s(sample),
        gavg: if is_disk { disk.latency_at(sample) } else { flow.gavg(sample) },
        kavg: flow.kavg(sample),
        // Of an NFS volume esxtop has GAVG alone [ELA].
        davg: flow.davg(sample).filter(|_| kind != Kind::NfsVolume),
        qavg: flow.own_wait_ms(sample),
        depth: depth.at(sample),
    };
    (0..recording.len()).map(moment).collect()
}

/// How a figure is made of moments.
struct Recipe {
    name: &'static str,
    unit: &'static str,
    value: fn(&Moment) -> Option<f64>,
    weight: fn(&Moment) -> f64,
    /// How much of it is lost in esxtop's two decimals, on both sides together.
    grain: fn(&Moment) -> f64,
}

pub(super) const RATE: &str = "CMDS/s";
pub(super) const SIZE: &str = "size";
pub(super) const READS: &str = "reads";
pub(super) const GAVG: &str = "GAVG/cmd";
pub(super) const KAVG: &str = "KAVG/cmd";
pub(super) const DAVG: &str = "DAVG/cmd";
const GRAIN: f64 = 0.01;

const fn latency(name: &'static str, value: fn(&Moment) -> Option<f64>) -> Recipe {
    Recipe { name, unit: "ms", value, weight: Moment::commands, grain: |_| GRAIN }
}

const fn over_time(
    name: &'static str,
    unit: &'static str,
    value: fn(&Moment) -> Option<f64>,
    grain: fn(&Moment) -> f64,
) -> Recipe {
    Recipe { name, unit, value, weight: |moment| moment.seconds, grain }
}

/// Commands that come and go with the last decimal of a latency.
fn grain_inside(moment: &Moment) -> f64 {
    little(moment.rate.unwrap_or_default(), GRAIN)
}

fn at_least_one(value: Option<f64>) -> f64 {
    value.unwrap_or_default().max(1.0)
}

const RECIPES: [Recipe; 12] = [
    over_time(RATE, "1/s", |m| m.rate, |_| GRAIN),
    over_time("MB/s", "MiB/s", |m| m.mib, |_| GRAIN),
    Recipe {
        name: SIZE,
        unit: "KiB",
        value: Moment::size_kib,
        weight: Moment::commands,
        grain: |m| GRAIN * 1024.0 / at_least_one(m.rate),
    },
    Recipe {
        name: READS,
        unit: "%",
        value: Moment::reads_percent,
        weight: Moment::commands,
        grain: |m| 100.0 * GRAIN / at_least_one(m.rate),
    },
    latency(GAVG, |m| m.gavg),
    latency(KAVG, |m| m.kavg),
    latency(DAVG, |m| m.davg),
    latency("QAVG/cmd", |m| m.qavg),
    over_time("ACTV", "", Moment::active, grain_inside),
    over_time("QUED", "", Moment::queued, grain_inside),
    over_time("%USD", "%", Moment::used_percent, |m| {
        100.0 * grain_inside(m) / at_least_one(m.depth)
    }),
    over_time("LOAD", "", Moment::load, |m| grain_inside(m) / at_least_one(m.depth)),
];

/// Every figure that either side has.
pub(super) fn figures(before: &[Moment], after: &[Moment]) -> Vec<Figure> {
    let mut figures: Vec<Figure> =
        RECIPES.iter().filter_map(|recipe| recipe.figure(before, after)).collect();
    let names = ["P50 of GAVG", "P95 of GAVG", "P99 of GAVG"];
    let [was, is] = [before, after].map(percentiles);
    for ((name, was), is) in names.into_iter().zip(was).zip(is) {
        figures.extend(Figure::new(name, "ms", was, is));
    }
    let [was, is] = [before, after].map(|moments| depth_in_force(moments.iter()));
    figures.extend(Figure::new("DQLEN", "", was, is));
    let lowest = |moments: &[Moment]| moments.iter().filter_map(Moment::limit).reduce(f64::min);
    let [was, is] = [before, after].map(lowest);
    figures.extend(Figure::new("lowest DQLEN", "", was, is));
    figures
}

impl Recipe {
    fn figure(&self, before: &[Moment], after: &[Moment]) -> Option<Figure> {
        let [was, is] = [before, after].map(|moments| self.terms(moments, self.value));
        let mut figure = Figure::new(self.name, self.unit, noise::mean(&was), noise::mean(&is))?;
        let grains = [before, after].map(|moments| {
            noise::mean(&self.terms(moments, |moment| Some((self.grain)(moment)))).unwrap_or(0.0)
        });
        figure.noise =
            noise::noise(&was, &is).map(|noise| noise.max((grains[0] + grains[1]) / 2.0));
        figure.beyond_noise =
            figure.change.zip(figure.noise).map(|(change, noise)| change.abs() > noise);
        Some(figure)
    }

    fn terms(&self, moments: &[Moment], value: impl Fn(&Moment) -> Option<f64>) -> Vec<Term> {
        let term = |moment| Some(Term { value: value(moment)?, weight: (self.weight)(moment) });
        moments.iter().filter_map(term).collect()
    }
}

impl Figure {
    /// A figure without any noise; `None` when neither side has it.
    fn new(
        name: &'static str,
        unit: &'static str,
        before: Option<f64>,
        after: Option<f64>,
    ) -> Option<Self> {
        before.or(after)?;
        let change = before.zip(after).map(|(before, after)| after - before);
        let change_percent = before.zip(change).filter(|(before, _)| *before > 0.0);
        Some(Self {
            name,
            unit,
            before,
            after,
            change,
            change_percent: change_percent.map(|(before, change)| 100.0 * change / before),
            noise: None,
            beyond_noise: None,
        })
    }
}

fn percentiles(moments: &[Moment]) -> [Option<f64>; 3] {
    let known = moments.iter().map(|moment| Some((moment.gavg?, moment.commands())));
    latency_percentiles(known).map_or([None; 3], |found| found.map(Some))
}

/// The limit in force in most of the samples with commands; without any, in most of them.
pub(super) fn depth_in_force<'a>(moments: impl Iterator<Item = &'a Moment> + Clone) -> Option<f64> {
    let with_commands = moments.clone().filter(|moment| moment.rate > Some(0.0));
    most_frequent(with_commands.filter_map(Moment::limit))
        .or_else(|| most_frequent(moments.filter_map(Moment::limit)))
}
