//! VMs whose commands differ, and a change by which an array gets other parts of them: what one of its commands
//! costs then is not what it cost before.
//!
//! A curve is of the mix that was recorded. What commands of the VMs cost beside each other no counter says, and
//! costs add up at a server: whatever they are, an array that has more outstanding does no less of that work, and it
//! does no more of it for each that is outstanding (reference `array-and-control.md`, section 1). Samples in which a
//! VM rests say which costs may be so, and every split that may is a reading further.

use counters::Counter;
use levels::weighted_mean;

use crate::{
    DeviceCalibration, GuestCalibration, Habit,
    answer::Run,
    cost::{SIZE_KIB, WRITE_LEAST, WRITE_MOST},
    observe::{Device, RATE_MIN},
    rows::{READS_APART, Row, SIZES_APART},
    run::Key,
};

/// What a write may cost beside a read of the same size: next to nothing where a cache answers it, up to that
/// behind RAID-6.
const WRITES: [f64; 12] =
    [WRITE_LEAST, 0.15, 0.25, 0.4, 0.65, 1.0, 1.5, 2.25, 3.0, 4.0, 5.0, WRITE_MOST];
/// The part of the cost that does not go by the bytes: none behind a link, all behind spindles.
const FIXED: [f64; 8] = [0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0];
/// By how much the work of an array differs all the same, as a factor, where the commands of another sample do.
const LIKE: f64 = 1.1;

/// The guests of an array whose commands differ, and what was seen of it.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    guests: Vec<Sender>,
    /// The window first, then the samples in which the same VMs rest.
    points: Vec<Point>,
}

/// A guest on one device of the array.
#[derive(Clone, Debug)]
struct Sender {
    vm: String,
    device: String,
    reads: f64,
    kib: f64,
    iops: f64,
    outstanding: f64,
    /// Whether its rate is none that the array makes.
    is_its_own: bool,
    /// What a limit that is asked for lets through at most.
    limit: Option<f64>,
    /// What its pauses leave it at most, and such a limit.
    most_iops: f64,
}

/// Commands in flight, and the rate of each guest.
#[derive(Clone, Debug)]
struct Point {
    inside: f64,
    iops: Vec<f64>,
}

/// By how much a figure of a guest may be another than a run has it, as factors of its rate, its latency and what it
/// has in flight.
#[derive(Clone, Copy)]
struct Part {
    rate: f64,
    ms: f64,
    inside: f64,
}

impl Mix {
    /// Of each array whose guests send other commands than each other. What waits there for the rate of a policy is
    /// outstanding and no work, so nothing can be read of costs beside it.
    pub(crate) fn of_all(
        (devices, calibrated): (&[Device<'_>], &[DeviceCalibration]),
        window: &[usize],
        samples: usize,
        limit: &dyn Fn(&GuestCalibration) -> Option<f64>,
    ) -> Vec<Self> {
        let arrays = calibrated.iter().map(|of| of.array + 1).max().unwrap_or(0);
        let of = |array: usize| {
            let own: Vec<_> =
                devices.iter().zip(calibrated).filter(|(_, of)| of.array == array).collect();
            let rows: Vec<&Row<'_>> =
                own.iter().flat_map(|(d, _)| &d.tenants).map(|t| &t.row).collect();
            let each =
                own.iter().flat_map(|(_, of)| of.guests.iter().map(move |guest| (of, guest)));
            // What was not measured of one is that of the others.
            let usual = |value: &dyn Fn(&GuestCalibration) -> Option<f64>| {
                weighted_mean(each.clone().map(|(_, own)| Some((value(own)?, own.iops))))
            };
            let usual = (usual(&|own| own.read_share), usual(&|own| own.size_kib));
            let guests: Vec<Sender> =
                each.map(|(of, guest)| Sender::of(of, guest, usual, limit)).collect();
            let points = points(&own, &rows, (window, samples));
            Self { guests, points }
        };
        let is_free =
            |array: &usize| calibrated.iter().all(|of| of.array != *array || !of.is_throttled());
        let all = (0..arrays).filter(is_free).map(of);
        all.filter(|mix| mix.differs() && !mix.points.is_empty()).collect()
    }

    /// Whether commands of its guests are not of one kind.
    fn differs(&self) -> bool {
        let ends = |of: &dyn Fn(&Sender) -> f64| {
            let each = || self.guests.iter().map(of);
            [each().fold(f64::INFINITY, f64::min), each().fold(0.0, f64::max)]
        };
        let ([least, most], [small, large]) = (ends(&|own| own.reads), ends(&|own| own.kib));
        self.guests.len() > 1 && (most - least > READS_APART || large > SIZES_APART * small)
    }

    /// What a command of each guest may cost, in any unit, as far as the samples leave it open; whether it may be
    /// the same for all.
    fn costs(&self) -> (Vec<Vec<f64>>, bool) {
        let small = self.guests.iter().map(|own| own.kib).fold(f64::INFINITY, f64::min);
        let of = |writes: f64, fixed: f64| -> Vec<f64> {
            let each = self.guests.iter().map(|own| {
                let of_bytes = fixed + (1.0 - fixed) * own.kib / small;
                (own.reads + (1.0 - own.reads) * writes) * of_bytes
            });
            each.collect()
        };
        let every = || WRITES.into_iter().flat_map(|writes| FIXED.map(|fixed| of(writes, fixed)));
        let fit: Vec<Vec<f64>> = every().filter(|costs| self.is_possible(costs)).collect();
        let may_be_alike = self.is_possible(&vec![1.0; self.guests.len()]);
        match fit.is_empty() {
            true => (every().collect(), true),
            false => (fit, may_be_alike),
        }
    }

    /// Whether all that was seen goes with these costs.
    fn is_possible(&self, costs: &[f64]) -> bool {
        let goes = |less: &Point, more: &Point| {
            let [few, many] = [less, more].map(|of| work(&of.iops, costs));
            few <= LIKE * many && many / more.inside <= LIKE * few / less.inside
        };
        let mut pairs =
            self.points.iter().flat_map(|one| self.points.iter().map(move |two| (one, two)));
        pairs.all(|(one, two)| one.inside > two.inside || goes(one, two))
    }

    /// The least and the most work that the array does a second with so many commands in flight.
    fn works(&self, costs: &[f64], inside: f64) -> [f64; 2] {
        let (mut least, mut most) = (0.0_f64, f64::INFINITY);
        for (index, point) in self.points.iter().enumerate() {
            let like = if index == 0 { 1.0 } else { LIKE };
            let (same, part) = (work(&point.iops, costs), inside / point.inside);
            least = least.max(same * part.min(1.0) / like);
            most = most.min(same * part.max(1.0) * like);
        }
        [least.min(most), least.max(most)]
    }

    /// What a run has of each guest.
    fn rates(&self, keys: &[Key], run: &Run) -> Vec<f64> {
        let of = |own: &Sender| {
            let place = keys.iter().position(|key| key.is_rate_of(&own.vm));
            place
                .map_or(own.iops, |at| own.iops * run.after[at].mean / run.today[at].mean.max(1e-9))
        };
        self.guests.iter().map(of).collect()
    }

    /// How many a run has in flight after the change.
    fn inside(&self, keys: &[Key], run: &Run) -> f64 {
        let [mut now, mut then] = [0.0; 2];
        for (at, key) in keys.iter().enumerate().filter(|(_, key)| self.is_on(key)) {
            if key.is(Counter::Commands) {
                let is_its = |key: &Key, counter| self.is_on(key) && key.is(counter);
                let of = |counter| {
                    keys.iter()
                        .position(|other| other.object == key.object && is_its(other, counter))
                };
                let ms = of(Counter::DriverLatency).or(of(Counter::GuestLatency));
                let Some(ms) = ms else { continue };
                now += run.today[at].mean * run.today[ms].mean;
                then += run.after[at].mean * run.after[ms].mean;
            }
        }
        self.points[0].inside * then / now.max(1e-9)
    }

    /// Whether it is a counter of one of its devices.
    fn is_on(&self, key: &Key) -> bool {
        key.is_device() && self.guests.iter().any(|own| own.device == key.object)
    }

    /// What the guests have of a run with these costs, where the array does so much work.
    fn parts(&self, rates: &[f64], costs: &[f64], work_done: f64) -> Vec<Vec<Part>> {
        /// Part of a limit from which it is what holds the rate.
        const NEAR: f64 = 0.9;
        let is_held = |(own, rate): (&Sender, &f64)| {
            own.is_its_own || own.limit.is_some_and(|limit| *rate >= NEAR * limit)
        };
        let held: Vec<bool> = self.guests.iter().zip(rates).map(is_held).collect();
        let each =
            || rates.iter().zip(costs).zip(&held).map(|((rate, cost), held)| (rate * cost, *held));
        let of_held: f64 = each().filter(|(_, held)| *held).map(|(own, _)| own).sum();
        let whole: f64 = each().map(|(own, _)| own).sum();
        let free = (work_done - of_held).max(0.0) / (whole - of_held).max(1e-9);
        let even = work_done / whole.max(1e-9);
        // In the order of their arrival each has its part of those that are outstanding at least.
        let all: f64 =
            self.guests.iter().zip(costs).map(|(own, cost)| own.outstanding * cost).sum();
        let share = work_done / all.max(1e-9);
        let mut ends = vec![[free, 1.0]];
        // Whom nothing is left for takes from those that are held.
        if even < 1.0 {
            ends.push([even; 2]);
        }
        ends.into_iter().map(|ends| self.after(rates, &held, ends, share)).collect()
    }

    /// The same where rates change by factors, of guests that wait for their answers and of those that are held, and
    /// so many commands a second are answered of each that is outstanding at least.
    fn after(
        &self,
        rates: &[f64],
        held: &[bool],
        [free, fixed]: [f64; 2],
        share: f64,
    ) -> Vec<Part> {
        let factor = |at: usize| {
            let (own, rate) = (&self.guests[at], rates[at].max(1e-9));
            let least = (own.outstanding * share / rate).min(1.0);
            let factor = if held[at] { fixed } else { free.max(least) };
            factor.min((own.most_iops / rate).max(1.0))
        };
        let factors: Vec<f64> = (0..rates.len()).map(factor).collect();
        // Who waits has as many in flight as before, so that the way is as much longer as his rate is lower.
        let is_all = held.iter().all(|held| *held);
        let waits = || (0..rates.len()).filter(|&at| is_all || !held[at]);
        let now: f64 = waits().map(|at| rates[at]).sum();
        let slower = now / waits().map(|at| rates[at] * factors[at]).sum::<f64>().max(1e-9);
        let part = |at: usize| {
            let (rate, own) = (factors[at], &self.guests[at]);
            let is_open = own.is_its_own && own.limit.is_none();
            let ms = if is_open { slower } else { 1.0 / rate.max(1e-6) };
            Part { rate, ms, inside: if held[at] { rate * slower } else { 1.0 } }
        };
        (0..rates.len()).map(part).collect()
    }
}

impl Mix {
    /// Whether the array gets other parts of what its guests send, where these costs make that count.
    fn moves(&self, rates: &[f64], all: &[Vec<f64>]) -> bool {
        /// What chance does to the mean cost of a run, as a part of it.
        const CHANCE: f64 = 0.03;
        let mean =
            |rates: &[f64], costs: &[f64]| work(rates, costs) / rates.iter().sum::<f64>().max(1e-9);
        let today: Vec<f64> = self.guests.iter().map(|own| own.iops).collect();
        all.iter()
            .any(|costs| (mean(rates, costs) / mean(&today, costs).max(1e-9)).ln().abs() > CHANCE)
    }

    /// Widens factors of a run's figures to those of all costs.
    fn widen(
        &self,
        keys: &[Key],
        (run, rates): (&Run, &[f64]),
        all: &[Vec<f64>],
        ends: &mut [Vec<f64>; 2],
    ) {
        let inside = self.inside(keys, run);
        let places: Vec<Option<Vec<usize>>> = keys.iter().map(|key| self.own(key)).collect();
        for costs in all {
            for done in self.works(costs, inside) {
                for parts in self.parts(rates, costs, done) {
                    for (at, (key, own)) in keys.iter().zip(&places).enumerate() {
                        let Some(factor) =
                            own.as_ref().and_then(|own| factor(key, own, rates, &parts))
                        else {
                            continue;
                        };
                        ends[0][at] = ends[0][at].min(factor);
                        ends[1][at] = ends[1][at].max(factor);
                    }
                }
            }
        }
    }

    /// The guests that a counter is of: of one of its devices, or of a VM.
    fn own(&self, key: &Key) -> Option<Vec<usize>> {
        let is_its = |own: &Sender| match key.is_device() {
            true => own.device == key.object,
            false => own.vm == key.object,
        };
        let own: Vec<usize> =
            (0..self.guests.len()).filter(|&at| is_its(&self.guests[at])).collect();
        (!own.is_empty()).then_some(own)
    }

    /// Why the range is as wide, and what would tell.
    pub(crate) fn doubt(&self) -> String {
        /// Guests that are named.
        const NAMED: usize = 4;
        let kind = |own: &Sender| {
            format!("{} {:.0} % reads of {:.0} KiB", own.vm, 100.0 * own.reads, own.kib)
        };
        let named: Vec<String> = self.guests.iter().take(NAMED).map(kind).collect();
        let more = if self.guests.len() > NAMED { " and more" } else { "" };
        let seen = match self.points.len() {
            1 => "nothing shows",
            _ => "the samples in which one of them rests show within bounds",
        };
        format!(
            "The commands of the VMs differ ({}{more}), and after the change the array has other parts of them: what \
             one of them costs it beside another {seen}, so the range covers every split of the cost that gives what \
             was recorded. A recording in which one of them rests, or does much less, would tell.",
            named.join(", ")
        )
    }
}

/// What some parts of guests come to in a counter, as a factor.
fn factor(key: &Key, own: &[usize], rates: &[f64], parts: &[Part]) -> Option<f64> {
    let all: f64 = own.iter().map(|&at| rates[at]).sum();
    let mean = |of: &dyn Fn(&Part) -> f64| {
        own.iter().map(|&at| rates[at] * of(&parts[at])).sum::<f64>() / all.max(1e-9)
    };
    let rate = mean(&|part| part.rate);
    let inside = mean(&|part| part.inside);
    // By Little's law.
    match key.is_device() {
        _ if key.is(Counter::Commands) => Some(rate),
        true if key.is(Counter::MeanActive) => Some(inside),
        true if key.is(Counter::DriverLatency) => Some(inside / rate.max(1e-6)),
        true if key.is(Counter::GuestLatency) || key.is(Counter::KernelLatency) => {
            Some(1.0 / rate.max(1e-6))
        }
        false if key.is(Counter::GuestLatency) => Some(mean(&|part| part.ms)),
        _ => None,
    }
}

impl Sender {
    fn of(
        device: &DeviceCalibration,
        guest: &GuestCalibration,
        (reads, kib): (Option<f64>, Option<f64>),
        limit: &dyn Fn(&GuestCalibration) -> Option<f64>,
    ) -> Self {
        let limit = limit(guest);
        let pause_s = guest.pause_ms.0 / 1000.0;
        let all = guest.outstanding + guest.iops * pause_s;
        let is_held = guest.held_at_iops.or(guest.throttled_at_iops).is_some();
        Self {
            vm: guest.vm.clone(),
            device: device.device.clone(),
            reads: guest.read_share.or(reads).unwrap_or(1.0),
            kib: guest.size_kib.or(kib).unwrap_or(SIZE_KIB),
            iops: guest.iops,
            outstanding: guest.outstanding,
            is_its_own: guest.habit == Habit::Open || is_held && limit.is_none(),
            limit,
            // With no pause at all that is infinite.
            most_iops: (all / pause_s).min(limit.unwrap_or(f64::INFINITY)).min(guest.most_iops()),
        }
    }
}

/// What the rates come to at these costs.
fn work(iops: &[f64], costs: &[f64]) -> f64 {
    iops.iter().zip(costs).map(|(iops, cost)| iops * cost).sum()
}

/// The means of the window, and of the samples in which the same guests rest.
fn points(
    own: &[(&Device<'_>, &DeviceCalibration)],
    rows: &[&Row<'_>],
    (window, samples): (&[usize], usize),
) -> Vec<Point> {
    /// Part of what a guest does in the window up to which it rests.
    const RESTS: f64 = 0.02;
    let usual: Vec<f64> =
        rows.iter().map(|row| row.mean_rate(window).unwrap_or_default()).collect();
    let resting = |sample: usize| -> Option<Vec<bool>> {
        let rests = |(row, usual): (&&Row<'_>, &f64)| Some(row.rate(sample)? <= RESTS * usual);
        rows.iter().zip(&usual).map(rests).collect()
    };
    let kinds: Vec<Option<Vec<bool>>> = (0..samples).map(resting).collect();
    let point = |samples: &[usize]| {
        let inside = own.iter().map(|(device, _)| device.row.mean(samples, Row::in_flight));
        let inside = inside.sum::<Option<f64>>().filter(|inside| *inside > 0.0)?;
        let iops = rows.iter().map(|row| row.mean_rate(samples)).collect::<Option<_>>()?;
        Some(Point { inside, iops })
    };
    let Some(all) = point(window) else { return Vec::new() };
    let mut seen: Vec<&Vec<bool>> = Vec::new();
    let mut points = vec![all];
    for kind in kinds.iter().flatten() {
        let rests = kind.iter().any(|rests| *rests) && !kind.iter().all(|rests| *rests);
        if !rests || seen.contains(&kind) {
            continue;
        }
        seen.push(kind);
        // A sample beside others may have a part of their load.
        let is_it = |s: Option<usize>| {
            s.and_then(|s| kinds.get(s)).is_none_or(|of| of.as_ref() == Some(kind))
        };
        let inner: Vec<usize> = (0..samples)
            .filter(|&s| is_it(Some(s)) && is_it(s.checked_sub(1)) && is_it(Some(s + 1)))
            .filter(|&s| own.iter().any(|(device, _)| device.row.rate(s) >= Some(RATE_MIN)))
            .collect();
        points.extend(point(&inner));
    }
    points
}

/// Runs of readings with all that other costs make of them, where the change brings an array other parts of commands
/// that differ; none but those where the costs cannot be alike. The arrays of which that is so.
pub(crate) fn spread<'m>(
    keys: &[Key],
    runs: Vec<Run>,
    mixes: &'m [Mix],
) -> (Vec<Run>, Vec<&'m Mix>) {
    let known: Vec<(&Mix, Vec<Vec<f64>>, bool)> = mixes
        .iter()
        .map(|mix| {
            let (costs, may_be_alike) = mix.costs();
            (mix, costs, may_be_alike)
        })
        .collect();
    let mut moved: Vec<&Mix> = Vec::new();
    let mut all = Vec::new();
    for run in runs {
        let mut ends = [vec![f64::INFINITY; keys.len()], vec![0.0; keys.len()]];
        let (mut moves, mut stays) = (false, true);
        for (mix, costs, may_be_alike) in &known {
            let rates = mix.rates(keys, &run);
            if !mix.moves(&rates, costs) {
                continue;
            }
            if !moved.iter().any(|other| std::ptr::eq(*other, *mix)) {
                moved.push(mix);
            }
            (moves, stays) = (true, stays && *may_be_alike);
            mix.widen(keys, (&run, &rates), costs, &mut ends);
        }
        if moves {
            let with = |parts: &[f64]| {
                let mut after = run.after.clone();
                let moved = after
                    .iter_mut()
                    .zip(parts)
                    .filter(|(_, part)| **part > 0.0 && part.is_finite());
                for (figure, part) in moved {
                    figure.mean *= part;
                    figure.ends = [figure.mean; 2];
                }
                Run { today: run.today.clone(), after }
            };
            all.extend(ends.iter().map(|parts| with(parts)));
        }
        if stays {
            all.push(run);
        }
    }
    (all, moved)
}
