//! What each guest asks for: how many commands it keeps outstanding, or how many it sends a
//! second, and whether its driver hides more.
//!
//! By Little's law a guest has N = CMDS/s times GAVG outstanding. If M threads wait for their
//! answers and then pause for Z, then M = X * (GAVG + Z) in every interval, so that N = M - Z * X:
//! how N moves against X from sample to sample is the pause, and what is left over is how sure it
//! is. A pause of nothing is the closed guest, a pause without bounds the one that is driven from
//! outside (open). Threads that come and go leave so much over that nothing is said.
//!
//! A rate that stands still says nothing where a full queue or a limit holds it: there it is that
//! of the queue, not of the guest.

use counters::Controller;
use knobs::{PVSCSI_DEPTH_MAX, disk_depths};
use levels::{mean, quantile};
use serde::Serialize;

use crate::{
    bursts::Bursts,
    cost::{size_kib, units, units_of},
    observe::Tenant,
    phases,
    rows::{ROUNDING_MS, Row},
};

/// How a guest answers to latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Habit {
    /// It keeps a number of commands outstanding: quicker answers make more commands.
    Closed,
    /// It sends a number of commands a second: quicker answers make fewer outstanding.
    Open,
    /// The recording does not tell: it may be either, or anything between.
    Unknown,
}

/// A device: the array behind it, and who sends to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceCalibration {
    /// Its name.
    pub device: String,
    /// The place of its array among the arrays, from 0.
    pub array: usize,
    /// Its guests, as the recording names them.
    pub guests: Vec<GuestCalibration>,
}

impl DeviceCalibration {
    /// Whether the array holds some of its disks and not others.
    pub(crate) fn is_throttled(&self) -> bool {
        self.guests.iter().any(|guest| guest.throttled_at_iops.is_some())
    }

    /// How many VMs send to it.
    pub(crate) fn vms(&self) -> f64 {
        let is_first =
            |&at: &usize| self.guests[..at].iter().all(|guest| guest.vm != self.guests[at].vm);
        (0..self.guests.len()).filter(is_first).count() as f64
    }

    /// Whether next to all that is outstanding waits for rates that the array holds disks to.
    pub(crate) fn is_mostly_held(&self) -> bool {
        const MOST: f64 = 0.8;
        let of = |is_meant: &dyn Fn(&GuestCalibration) -> bool| -> f64 {
            self.guests.iter().filter(|guest| is_meant(guest)).map(|guest| guest.outstanding).sum()
        };
        of(&|guest| guest.throttled_at_iops.is_some()) >= MOST * of(&|_| true)
    }
}

/// What one guest asks of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuestCalibration {
    /// The VM, or the process of a system world.
    pub vm: String,
    /// Its virtual disk, where known.
    pub disk: Option<String>,
    /// The type of its virtual adapter, where known.
    #[serde(skip)]
    pub controller: Option<Controller>,
    /// How it answers to latency.
    pub habit: Habit,
    /// How long its threads pause between an answer and the next command, in milliseconds: at
    /// least and, where it has a bound, at most.
    pub pause_ms: (f64, Option<f64>),
    /// Mean commands outstanding over the window.
    pub outstanding: f64,
    /// Commands a second over the window.
    pub iops: f64,
    /// KiB of a command, where known.
    pub size_kib: Option<f64>,
    /// What a command counts to an IOPS limit on average, least and greatest.
    #[serde(skip)]
    pub(crate) units: [f64; 2],
    /// What the array takes for a command of its world, in milliseconds, where known.
    #[serde(skip)]
    pub(crate) davg_ms: Option<f64>,
    /// The share of reads, 0 to 1, where known.
    pub read_share: Option<f64>,
    /// Whether a full queue or a limit makes its rate, which then tells nothing of what it wants.
    pub is_pinned: bool,
    /// The depth at which its driver stands: it may want more than is seen.
    pub capped_at: Option<u32>,
    /// The most commands that its virtual disk lets through; none where its disks are not known.
    #[serde(skip)]
    pub(crate) outstanding_max: Option<f64>,
    /// The rate at which something in the host holds it while its device has free slots.
    pub held_at_iops: Option<u32>,
    /// Whether that is sure: a limit of its own, and no bursts.
    #[serde(skip)]
    pub(crate) is_held_surely: bool,
    /// Whether it waits for slots of a full queue, and so for no limit of its own.
    #[serde(skip)]
    pub(crate) waits_for_slots: bool,
    /// The rate at which the array holds its disk while it answers the others quickly: the mean,
    /// where that is not always the same.
    pub throttled_at_iops: Option<u32>,
    /// The same rate by level of load; nothing where the array does not hold it.
    #[serde(skip)]
    pub(crate) throttled: Vec<f64>,
    /// The most commands a second that it was seen to do, where nothing shows that it wants more: its rate may be
    /// its own, and as many outstanding as it lets there be.
    #[serde(skip)]
    pub(crate) content_at_iops: Option<f64>,
    /// Its bursts that are shorter than a sample, where it sends in some.
    #[serde(skip)]
    pub(crate) bursts: Option<Bursts>,
    /// What `vscsiStats` says of it, and what that narrows, in a sentence.
    pub vscsistats: Option<String>,
    /// Whether all of its threads are there at every instant: by Little's law its rate is as high as it is answered
    /// quickly.
    #[serde(skip)]
    pub(crate) never_pauses: bool,
    /// Whether `vscsiStats` shows no bursts.
    #[serde(skip)]
    pub(crate) never_rests: bool,
}

/// Pauses beyond so many times GAVG are those of a rate.
const LONG: f64 = 4.0;
/// Pauses up to this part of GAVG are next to none.
const SHORT: f64 = 0.1;

/// Samples beside the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Others<'a> {
    /// Those in which slots are free.
    pub(crate) free: &'a [usize],
    /// Those of the same load under another depth, if the recording has any.
    pub(crate) regimes: &'a [usize],
    /// All with load.
    pub(crate) all: &'a [usize],
    /// Those of commands like the window's.
    pub(crate) like: &'a [usize],
}

/// What is known of a guest's device when the guest is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Whether no slot is free most of the time in which the guest waits.
    pub(crate) is_full: bool,
    /// What a command of the others waits in the VMkernel, in milliseconds.
    pub(crate) others_wait_ms: Option<f64>,
    /// Whether the array takes much longer for its commands than for those of others.
    pub(crate) is_held: bool,
    /// Commands by which samples of the device differ; none without others.
    pub(crate) unrest: Option<f64>,
    /// Seconds of an interval.
    pub(crate) interval_s: f64,
    /// The slots of its device; none of a volume without.
    pub(crate) slots: Option<f64>,
    /// Whether its load rests again and again, for less than a sample.
    pub(crate) rests: bool,
    /// Whether the depth asked for lies between depths under which it was seen.
    pub(crate) is_between: bool,
    /// Whether an IOPS limit of its own is asked for.
    pub(crate) is_limited: bool,
    /// Whether no other VM has more of its slots while it waits.
    pub(crate) has_most_slots: bool,
    /// Whether another VM has more shares.
    pub(crate) has_richer: bool,
}

impl GuestCalibration {
    /// What a guest asks for over `window`, of which `levels` are samples of like load, beside `others`.
    /// `None` where its commands or their latency were not measured.
    pub(crate) fn of(
        tenant: &Tenant<'_>,
        window: &[usize],
        levels: &[Vec<usize>],
        others: Others<'_>,
        place: Place,
    ) -> Option<Self> {
        let row = &tenant.row;
        let (iops, outstanding) = row.load(window)?;
        let capped_at = cap(tenant, levels);
        let throttled = throttled(tenant, window, levels, place).unwrap_or_default();
        let throttled_at_iops = (!throttled.is_empty()).then(|| whole(iops));
        // What the array holds fills the queue, and then its commands wait in the host too.
        let held = held(tenant, window, place).filter(|_| throttled_at_iops.is_none());
        let held_at_iops = held.map(|(rate, _)| rate);
        let is_held = held_at_iops.or(throttled_at_iops).or(capped_at).is_some();
        // Whose wait was not measured may be held by anything.
        let is_seen = tenant.world.as_ref().is_none_or(|world| {
            [Row::waiting, Row::in_flight].iter().all(|of| world.mean(window, *of).is_some())
        });
        // Who has fewer slots than another and does not wait for more asks for less than its part of a full queue, which
        // does not make its rate then (reference `esxi-host-stack.md`, section 2.6).
        let is_content = tenant.world.is_some() && !place.has_most_slots && !tenant.waits(window);
        let is_pinned = place.is_full && !is_content || is_held || !is_seen;
        let gavg_ms = row.per_command(window, Row::gavg).unwrap_or_default();
        let pause_ms = if tenant.is_system || (!is_pinned && keeps_its_rate(row, window, place)) {
            (LONG * gavg_ms, None)
        } else if let Some(depth) = capped_at {
            // As many as its driver lets through stand still, whatever it wants; between two depths
            // at which they do, that is all there is to know.
            let stands = row.mean(others.regimes, Row::outstanding);
            let is_known = place.is_between && stands.is_some_and(|n| stands_at(depth, n));
            (0.0, is_known.then_some(0.0))
        } else {
            let known = pause(row, window, others, (place.interval_s, !is_pinned));
            // A limit that is not seen may hold who is to have another one.
            let most_ms = (!place.is_limited).then(|| pauses_at_most(row, window, place)).flatten();
            match most_ms.filter(|most_ms| *most_ms >= known.0) {
                Some(most_ms) => (known.0, Some(known.1.map_or(most_ms, |ms| ms.min(most_ms)))),
                None => known,
            }
        };
        let habit = Habit::of(pause_ms, gavg_ms);
        let is_bound = capped_at.is_none() && !is_held && !tenant.is_system && habit != Habit::Open;
        let content_at_iops =
            if is_bound { content_at(row, window, others, pause_ms.0) } else { None };
        Some(Self {
            vm: tenant.vm.clone(),
            disk: tenant.disk.clone(),
            controller: tenant.controller,
            habit,
            pause_ms,
            outstanding,
            iops,
            size_kib: row.size_kib(window),
            units: units(row, window),
            davg_ms: tenant.world.as_ref().and_then(|world| world.per_command(window, Row::davg)),
            read_share: row.read_share(window),
            is_pinned,
            capped_at,
            outstanding_max: tenant.outstanding_max().map(|most| most.max(outstanding)),
            held_at_iops,
            is_held_surely: held.is_some_and(|(_, is_sure)| is_sure),
            waits_for_slots: held.is_none()
                && place.is_full
                && (place.has_most_slots || place.has_richer),
            throttled_at_iops,
            throttled,
            content_at_iops,
            bursts: Bursts::of(tenant, window, (place.slots, place.interval_s)),
            never_pauses: phases::never_pauses(row, window),
            vscsistats: None,
            never_rests: false,
        })
    }
}

impl GuestCalibration {
    /// Whether its rate may be its own.
    pub(crate) fn may_come(&self) -> bool {
        self.habit == Habit::Open || self.content_at_iops.is_some()
    }

    /// Whether all of its commands are known to be as large as their mean.
    pub(crate) fn is_of_one_size(&self) -> bool {
        self.size_kib.is_some() && self.counts_alike()
    }

    /// Whether it is known what its commands count on average.
    pub(crate) fn counts_alike(&self) -> bool {
        self.units[0] >= self.units[1]
    }

    /// The most commands a second that it sends, however quickly it is answered, where it has less than one outstanding:
    /// that is one thread that is mostly elsewhere, or several that are even more so.
    pub(crate) fn most_iops(&self) -> f64 {
        /// Commands outstanding from which a thread may be one that never pauses.
        const ONE: f64 = 0.9;
        match self.bursts {
            None if self.outstanding < ONE => self.iops / (1.0 - self.outstanding),
            _ => f64::INFINITY,
        }
    }

    /// The most commands that it has outstanding, however long they take.
    pub(crate) fn outstanding_at_most(&self) -> f64 {
        let undriven = f64::from(PVSCSI_DEPTH_MAX).max(self.outstanding);
        let most = self.outstanding_max.unwrap_or(undriven);
        let all = |pause_ms: f64| self.outstanding + self.iops * pause_ms / 1000.0;
        self.pause_ms.1.filter(|_| self.capped_at.is_none()).map_or(most, |ms| most.min(all(ms)))
    }
}

impl Habit {
    /// What pauses of so many milliseconds, at least and at most, are beside a latency.
    pub(crate) fn of(pause_ms: (f64, Option<f64>), gavg_ms: f64) -> Self {
        match pause_ms {
            (least, _) if least >= LONG * gavg_ms => Self::Open,
            (_, Some(most)) if most <= SHORT * gavg_ms => Self::Closed,
            _ => Self::Unknown,
        }
    }
}

/// Whether the rate differs no more than chance makes it, while latency does. One that chance does not
/// touch is as well that of something that holds it, in the host or in the array.
fn keeps_its_rate(row: &Row<'_>, window: &[usize], place: Place) -> bool {
    /// By how much less than chance the counts of a rate differ that is held, by their variance.
    const PACED: f64 = 0.1;
    /// How much more than chance the counts may differ, by their variance.
    const CHANCE: f64 = 2.0;
    /// How much more than the rate latency must differ: threads that pause for `LONG` times GAVG
    /// let through one part of `1 + LONG` of it, and twice that is beyond what few samples do.
    const MORE: f64 = 2.0 * (1.0 + LONG);
    /// Samples that are enough to tell.
    const SAMPLES: usize = 6;
    let is_busy = |&&s: &&usize| row.rate(s) > Some(0.0) && row.gavg(s).is_some();
    let busy: Vec<usize> = window.iter().filter(is_busy).copied().collect();
    let rate = unrest(&busy, |s| Some(row.rate(s)?.ln()));
    let latency = unrest(&busy, |s| Some(row.gavg(s)?.max(1e-6).ln()));
    let (Some(rate), Some(latency), Some(mean)) = (rate, latency, row.mean_rate(&busy)) else {
        return false;
    };
    let commands = mean * place.interval_s;
    busy.len() >= SAMPLES
        && (PACED..=CHANCE).contains(&(rate * rate * commands))
        && latency >= MORE * rate
}

/// The most that a guest was seen to do, in commands a second, where that may be all that it wants: what comes at a
/// rate of its own with so many outstanding at most (`rate_iops` with `iodepth` of fio) has always as many while it
/// gets less, and no more than its rate where it could have it. Nothing where threads are seen to pause, or where
/// it kept its number outstanding beside the window while slots were free: there it waited for its answers.
fn content_at(row: &Row<'_>, window: &[usize], others: Others<'_>, pause_ms: f64) -> Option<f64> {
    if pause_ms > 0.0 || waits_for_answers(row, others.free) {
        return None;
    }
    let most = |samples: &[usize]| row.largest(samples, Row::rate).unwrap_or_default();
    Some(most(window).max(most(others.like)))
}

/// Whether at every instant as many commands of a guest are there as on average around it, as where threads wait for
/// their answers and none pauses.
fn waits_for_answers(row: &Row<'_>, samples: &[usize]) -> bool {
    /// Part by which the number of an instant may differ, beside what is printed of latency.
    const LIKE: f64 = 0.01;
    let is_still = |&s: &usize| {
        let (present, stands) = (row.present(s)?, row.outstanding(s)?);
        let grain = LIKE * stands + row.rate(s)? * ROUNDING_S;
        Some(stands > 0.5 && (present - stands).abs() <= grain)
    };
    let still: Vec<bool> = samples.iter().filter_map(is_still).collect();
    still.len() >= SAMPLES && still.iter().all(|is| *is)
}

/// How long its threads pause at most, in milliseconds, by how many commands are there at the instants of the
/// samples. Who pauses is who was answered in the time of a pause before, so that their number, which is
/// missing, varies as much as the answers do, or as chance does where each pauses for another time. The
/// same number at every instant, and on average, is that of threads of which none pauses.
fn pauses_at_most(row: &Row<'_>, window: &[usize], place: Place) -> Option<f64> {
    /// Instants that are enough to tell.
    const INSTANTS: usize = 6;
    /// Part by which the means of the instants and of the time may differ, beside what is printed.
    const LIKE: f64 = 0.01;
    /// The variance of what whole numbers leave out.
    const GRAIN: f64 = 1.0 / 12.0;
    let present: Vec<f64> = window.iter().map(|&s| row.present(s)).collect::<Option<_>>()?;
    let (rate, stands) = row.load(window)?;
    let middle = mean(present.iter().copied().map(Some))?;
    if present.len() < INSTANTS || rate <= 0.0 {
        return None;
    }
    let free = (present.len() - 1) as f64;
    let variance = present.iter().map(|n| (n - middle).powi(2)).sum::<f64>() / free;
    let error = ERRORS * (variance / present.len() as f64).sqrt();
    // Loads in step with the samples have other numbers between them.
    if (stands - middle).abs() > LIKE * middle + rate * ROUNDING_S + error {
        return None;
    }
    if variance <= 0.0 {
        return Some(0.0);
    }
    // The answers of an interval vary by so much of what chance does to them.
    let counts = unrest(window, |s| Some(row.rate(s)? * place.interval_s))?;
    let uneven = (counts * counts / (rate * place.interval_s)).min(1.0);
    // The ratio of two variances, two standard errors of its logarithm above.
    let varies = (variance + GRAIN) / uneven * (4.0 / free.sqrt()).exp();
    (varies < stands).then(|| 1000.0 * varies / (1.0 - varies / stands) / rate)
}

/// The deviation from sample to sample: levels and trends do not count.
fn unrest(samples: &[usize], value: impl Fn(usize) -> Option<f64>) -> Option<f64> {
    let steps =
        samples.windows(2).map(|pair| Some((value(pair[1])? - value(pair[0])?).powi(2) / 2.0));
    mean(steps).map(f64::sqrt)
}

/// How long its threads pause: the line of the commands outstanding over the rate, from sample to
/// sample. Samples of the same load under another depth make it longer, and so do those in which it had
/// as many outstanding at another rate. A rate of its own that nothing holds (`is_free`) has more outstanding as
/// its latency is long (N = X * GAVG): where that line may be it, no pause is the longest.
fn pause(
    row: &Row<'_>,
    window: &[usize],
    others: Others<'_>,
    (interval_s, is_free): (f64, bool),
) -> (f64, Option<f64>) {
    let within = steps(row, window, interval_s).unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
    let is_same = is_same_load(row, window, others.regimes);
    let across = if is_same { between(row, window, others.regimes) } else { None };
    let across = across.or_else(|| stands_still(row, window, others.all));
    let [low, high] = match across {
        Some([low, high]) if low <= within[1] && high >= within[0] => {
            [low.max(within[0]), high.min(within[1])]
        }
        _ => within,
    };
    let gavg_ms = row.per_command(window, Row::gavg).filter(|_| is_free);
    let may_be_its_own = gavg_ms.is_some_and(|ms| low <= -ms);
    // More outstanding at a higher rate: threads come and go, or the rate is its own.
    if high < 0.0 || may_be_its_own {
        (0.0, None)
    } else {
        (low.max(0.0), Some(high).filter(|high| high.is_finite()))
    }
}

/// Samples beside the window that are enough to tell.
const SAMPLES: usize = 4;

/// Whether samples under another depth may be of the same load: it has about as many outstanding.
fn is_same_load(row: &Row<'_>, window: &[usize], regimes: &[usize]) -> bool {
    /// How much a change of depth moves it, as a factor.
    const MOVES: f64 = 2.0;
    let [one, other] = [window, regimes].map(|samples| row.mean(samples, Row::outstanding));
    let is_like = |(one, other): (f64, f64)| one.max(other) <= MOVES * one.min(other);
    regimes.len() >= SAMPLES && one.zip(other).is_some_and(is_like)
}

/// Standard errors on each side of a pause.
const ERRORS: f64 = 3.0;
const ROUNDING_S: f64 = ROUNDING_MS / 1000.0;

/// Bounds of the pause from one sample to the next, in milliseconds; `None` of too few steps.
fn steps(row: &Row<'_>, window: &[usize], interval_s: f64) -> Option<[f64; 2]> {
    /// Steps that are enough to tell.
    const STEPS: usize = 6;
    /// The load changes where it is so much higher than before, as a factor.
    const JUMPS: f64 = 1.3;
    /// Part of what is outstanding that may be left over.
    const STEADY: f64 = 0.01;
    /// Commands by which two counts of a rate that stands still may differ.
    const GRAIN: f64 = 2.0;
    /// Steps share their samples: what that does to their error.
    const SHARED: f64 = 1.5;
    let (mut xx, mut xy, mut yy, mut count) = (0.0, 0.0, 0.0, 0_usize);
    for pair in window.windows(2).filter(|pair| pair[1] == pair[0] + 1) {
        let at = |s: usize| Some((row.rate(s)?, row.outstanding(s)?));
        let (Some(before), Some(after)) = (at(pair[0]), at(pair[1])) else { continue };
        let (low, high) = (before.1.min(after.1), before.1.max(after.1));
        if low > 0.0 && high <= JUMPS * low {
            let (x, y) = (after.0 - before.0, after.1 - before.1);
            (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
            count += 1;
        }
    }
    // Counts are of whole commands: what moves by no more stands still.
    if count < STEPS || (xx / count as f64).sqrt() * interval_s <= GRAIN {
        return None;
    }
    let slope = xy / xx;
    let left_over = (yy - slope * xy).max(0.0) / (count - 1) as f64;
    let (rate, stands) = row.load(window)?;
    // Who is driven from outside has more outstanding now and less then.
    if left_over.sqrt() > STEADY * stands {
        return None;
    }
    let apart = (xx / count as f64).sqrt();
    let error = ERRORS * SHARED * (left_over / xx).sqrt() + ROUNDING_S * rate / apart;
    Some([-slope - error, -slope + error].map(|seconds| 1000.0 * seconds))
}

/// The same where others came or went and it kept its number outstanding, quick or slow: it waits for its
/// answers. Any other difference may be another load.
fn stands_still(row: &Row<'_>, window: &[usize], others: &[usize]) -> Option<[f64; 2]> {
    let short_ms = SHORT * row.per_command(window, Row::gavg)?;
    let is_still = |[low, high]: &[f64; 2]| -short_ms <= *low && *high <= short_ms;
    between(row, window, others).filter(|bounds| others.len() >= SAMPLES && is_still(bounds))
}

/// Bounds of the pause between samples of the same load, in milliseconds.
fn between(row: &Row<'_>, window: &[usize], regimes: &[usize]) -> Option<[f64; 2]> {
    let of = |samples: &[usize]| {
        let (rate, middle) = row.load(samples)?;
        let squares = mean(samples.iter().map(|&s| Some((row.outstanding(s)? - middle).powi(2))));
        Some((rate, middle, squares? / samples.len().max(1) as f64))
    };
    let (one, other) = (of(window)?, of(regimes)?);
    let apart = (one.0 - other.0).abs().max(1e-9);
    let slope = (one.1 - other.1) / (one.0 - other.0 + f64::MIN_POSITIVE);
    let error = ERRORS * (one.2 + other.2).sqrt() / apart + ROUNDING_S * (one.0 + other.0) / apart;
    Some([-slope - error, -slope + error].map(|seconds| 1000.0 * seconds))
}

/// Whether a number of outstanding commands is that of a driver's depth.
pub(crate) fn stands_at(depth: u32, outstanding: f64) -> bool {
    const NEAR: f64 = 0.03;
    (outstanding / f64::from(depth) - 1.0).abs() <= NEAR
}

/// Levels of load, of which those are two in which some samples of a guest stand at its driver's depth and others stay
/// below it: more waits in the guest in the one alone.
pub(crate) fn at_caps(mut levels: Vec<Vec<usize>>, tenant: &Tenant<'_>) -> Vec<Vec<usize>> {
    /// Samples that are a level.
    const LEAST: usize = 3;
    let Some(depth) = cap(tenant, &levels) else { return levels };
    let stands = |&s: &usize| tenant.row.outstanding(s).is_some_and(|n| stands_at(depth, n));
    for place in (0..levels.len()).rev() {
        let (at, below): (Vec<usize>, Vec<usize>) = levels[place].iter().partition(|s| stands(s));
        if at.len().min(below.len()) >= LEAST {
            levels.splice(place..=place, [below, at]);
        }
    }
    levels
}

/// The depth at which it stands, when it does so in most of a level of load.
fn cap(tenant: &Tenant<'_>, levels: &[Vec<usize>]) -> Option<u32> {
    let depths = match tenant.controller {
        Some(Controller::BusLogic | Controller::Ahci | Controller::Ide) => return None,
        Some(controller) => disk_depths(controller),
        None => {
            [Controller::LsiSas, Controller::Pvscsi].into_iter().flat_map(disk_depths).collect()
        }
    };
    let held = |depth: u32, level: &Vec<usize>| {
        let at =
            |&s: &usize| Some(f64::from(u8::from(stands_at(depth, tenant.row.outstanding(s)?))));
        mean(level.iter().map(at)) >= Some(0.5)
    };
    depths.into_iter().find(|&depth| levels.iter().any(|level| held(depth, level)))
}

/// The rate at which something in the host holds a guest: it waits in the VMkernel while its
/// device has free slots, or much longer than others on a full one and at a rate that no chance
/// touches. Only an IOPS limit does that [API: enforced even when uncongested]; where chance
/// touches its rate, or the device rests meanwhile, so do bursts. Of a full queue who waits for slots has as
/// many as any other (reference `esxi-host-stack.md`, section 2.6), and who waits for a limit leaves some: a wait
/// with as many is longer because more wait for them, and a rate is steady then because the array's is.
fn held(tenant: &Tenant<'_>, window: &[usize], place: Place) -> Option<(u32, bool)> {
    /// How much longer it waits than others on a full device.
    const LONGER: f64 = 1.5;
    /// Commands by which its samples differ at most: less than chance does.
    const STEADY: f64 = 4.0;
    /// The same of many, as a part of what chance does.
    const QUIET: f64 = 0.1;
    /// How much more than that those of others differ, as a factor.
    const RESTLESS: f64 = 4.0;
    /// What others wait on a device that is full for a part of the time, as a part of its own wait, where it does not
    /// wait for slots.
    const ALONE: f64 = 0.02;
    let world = tenant.world.as_ref()?;
    let rate = tenant.row.mean_rate(window)?;
    let waits = tenant.waits(window) && rate >= 1.0;
    let wait_ms = world.per_command(window, Row::qavg)?;
    let steady = STEADY.max(QUIET * (rate * place.interval_s).sqrt());
    let is_steady = spread(&tenant.row, window)? * place.interval_s <= steady;
    let is_longer = |others_ms: f64| others_ms > 0.0 && wait_ms >= LONGER * others_ms;
    // A full queue makes nobody's rate as steady as that: those of others vary.
    let is_paced = place.unrest.is_some_and(|unrest| unrest >= RESTLESS * steady);
    let is_limits = place.others_wait_ms.is_some_and(is_longer) || is_paced;
    let waits_alone = place.others_wait_ms.is_some_and(|others_ms| others_ms <= ALONE * wait_ms);
    let is_its_own = is_steady && is_limits || waits_alone;
    let alone = is_its_own && !place.has_most_slots && !place.has_richer;
    let units = units_of(size_kib(tenant.row.size_kib(window)));
    let held = whole(rate * units);
    (waits && (!place.is_full || alone)).then_some((held, is_steady && !place.rests))
}

/// A rate in whole commands a second.
const fn whole(rate: f64) -> u32 {
    rate.round().clamp(1.0, 1e9) as u32
}

/// How far its samples of the rate are apart, but for a tenth on each side.
pub(crate) fn spread(row: &Row<'_>, window: &[usize]) -> Option<f64> {
    let share = |share| quantile(window.iter().map(|&s| row.rate(s)), share);
    Some(share(0.9)? - share(0.1)?)
}

/// The rates at which the array holds a disk, by level of load: its commands take much longer there
/// than those of the others, and come at a rate that no chance touches (QoS of a volume delays what
/// comes too early, and lets a burst through until its credit is spent; reference
/// `array-and-control.md`, sections 6.1 and 6.4).
fn throttled(
    tenant: &Tenant<'_>,
    window: &[usize],
    levels: &[Vec<usize>],
    place: Place,
) -> Option<Vec<f64>> {
    /// Part by which the rate differs at most, beside a few commands.
    const STEADY: f64 = 0.03;
    /// Samples of a level that are enough to tell.
    const SAMPLES: usize = 3;
    let steady = |samples: &[usize]| {
        let rate = tenant.row.mean_rate(samples).filter(|rate| *rate >= 1.0)?;
        let is_steady = spread(&tenant.row, samples)? <= STEADY * rate + 4.0 / place.interval_s;
        is_steady.then_some(rate)
    };
    let of = |level: &Vec<usize>| steady(level).filter(|_| level.len() >= SAMPLES);
    match steady(window).filter(|_| place.is_held) {
        Some(rate) => Some(vec![rate; levels.len()]),
        None if place.is_held => levels.iter().map(of).collect(),
        None => None,
    }
}
