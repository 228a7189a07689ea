//! The array behind some devices, calibrated: how DAVG went with the commands outstanding.
//!
//! What is in flight is taken from Little's law, CMDS/s times DAVG, over all devices that share
//! the array, and not from ACTV, which is the state of one instant. Within what was seen, latency
//! is that of the recording. Beyond it there are bounds that need no model of the array: with more
//! outstanding the rate does not fall, and latency does not fall either (reference
//! `array-and-control.md`, section 1: R rises with n, n / R(n) rises too). So the bounds are a
//! rate that stands still and a latency that does. A recording whose latency rose narrows them,
//! because N equal servers answer in R(n) = S * (1 + (n - 1) / N), a straight line.
//!
//! ```text
//!   ms |           / least: the rate stands still, or the line gets steeper
//!      |         _/ ___ best: the line goes on
//!      |      .-*=----- most: latency stands still, or the line gets flatter
//!      |  .-*'
//!      +--------------- commands outstanding
//! ```

use counters::sorted::sort_by;
use levels::{mean, median, quantile};
use serde::Serialize;

use crate::{light::Light, number::number, rows::ROUNDING_MS};

/// Groups of like load that the curve goes through.
const GROUPS: usize = 8;
/// Outstanding commands vary by this factor between groups that are told apart.
const VARIATION: f64 = 1.25;
/// Where they vary by less the slope is known if its error leaves open no more than this part of what it
/// may be.
const KNOWN: f64 = 0.5;
/// How far from an end, as a factor, groups tell how it goes on there.
const NEIGHBOURHOOD: f64 = 5.0;
/// Standard errors on each side of the slope.
const ERRORS: f64 = 2.0;
/// How much steeper, as a factor, the line may become beyond what was seen.
const STEEPER: f64 = 1.5;
/// And at least by so much, as an elasticity: a knee may be near where latency hardly rises yet.
const NEAR: f64 = 0.25;
/// How much flatter: spindles that sort their commands gain with depth [section 7.2: q^0.24].
const FLATTER: f64 = 0.7;
/// What the fastest spindle takes on average to turn to a block, in milliseconds [section 7.2]: what
/// answers sooner has none to sort for.
const TURN_MS: f64 = 2.0;
/// The part of the variance between intervals that chance alone leaves to the steps, at least.
const CHANCE: f64 = 0.6;
/// Elasticity from which latency rises.
const RISES: f64 = 0.1;
/// The most commands that an array is asked for.
const OUTSTANDING_MAX: f64 = 65_536.0;
/// The shortest latency that is simulated, in milliseconds.
pub(crate) const LATENCY_MIN_MS: f64 = 1e-4;

/// What the recording says of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// Latency rose with the commands outstanding: how it goes on is known within bounds.
    Knee,
    /// The load varied and latency did not follow: the knee lies above, right there or nowhere.
    NoKnee,
    /// The rate stood still while latency followed the commands outstanding: more gains nothing.
    Saturated,
    /// The load never varied: nothing tells where the knee is.
    Steady,
}

/// Latency over commands outstanding, as a scenario's `curve` has it: rising points, in
/// milliseconds.
pub type Curve = Vec<(f64, f64)>;

/// An array, and how sure it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrayCalibration {
    /// The devices that share it.
    pub devices: Vec<String>,
    /// What the recording says of it.
    pub seen: Seen,
    /// Intervals with load.
    pub intervals: usize,
    /// Commands outstanding at the array over them: the lightest and the heaviest group.
    pub outstanding: [f64; 2],
    /// DAVG in the same groups, in milliseconds.
    pub davg_ms: [f64; 2],
    /// As the recording goes on.
    pub best: Curve,
    /// The least favourable reading: more outstanding gain least, fewer lose most.
    pub least: Curve,
    /// The most favourable reading.
    pub most: Curve,
    /// The same where fewer commands take no less: a load that a limit paces would flip between few
    /// and quick commands and many slow ones if they did, and come to no recording.
    #[serde(skip)]
    pub(crate) flat: Curve,
    /// Whether it had one load, or one rate: nothing tells one that is full from one that holds a volume to that.
    #[serde(skip)]
    pub(crate) stands: bool,
    /// How much flatter the line may become beyond what was seen, as a factor.
    #[serde(skip)]
    pub(crate) flatter: f64,
    /// Whether other loads than that of the window in question are of other times alone.
    #[serde(skip)]
    pub(crate) is_of_other_times: bool,
    /// Whether it holds guests to rates: how long their commands take is not in its latencies.
    #[serde(skip)]
    pub(crate) holds_some: bool,
}

/// An interval, or a group of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// Commands outstanding while there are any.
    pub(crate) outstanding: f64,
    pub(crate) ms: f64,
    pub(crate) rate: f64,
}

/// Slopes beyond what was seen, as elasticities: 0 is a latency that stands still, 1 a rate that
/// does.
#[derive(Clone, Copy, Debug)]
struct Slopes {
    above: f64,
    below: f64,
}

impl ArrayCalibration {
    /// Calibrates on the intervals with load, of which there is at least one, and on a lighter load
    /// of other commands.
    /// `is_paced` is whether limits in the host hold all that is sent to it.
    pub(crate) fn of(
        devices: Vec<String>,
        (points, is_paced): (&[Point], bool),
        light: Option<Light>,
    ) -> Self {
        let [by_chance, chance] = chance(points);
        // What chance moves from one interval to the next moves the latency too, by Little's law: that is no
        // sign that the one follows the other.
        let is_one = by_chance >= CHANCE && !are_levels(points);
        let mut groups = if is_one { vec![merged(points)] } else { groups(points) };
        // A rate that stands still is that of the limits then, and no sign that the array gives no more.
        if is_paced && is_still(&groups) {
            groups = vec![merged(points)];
        }
        let (first, last) = (groups[0], groups[groups.len() - 1]);
        let light = light.filter(|light| VARIATION * light.outstanding <= first.outstanding);
        let light = light.map(|light| light.beside(first));
        let upper = part(&groups, |point| point.outstanding * NEIGHBOURHOOD >= last.outstanding);
        let lower = part(&groups, |point| point.outstanding <= NEIGHBOURHOOD * first.outstanding);
        let (mut above, below) =
            (elasticity(&upper, last, chance), elasticity(&lower, first, chance));
        let mut seen = judge(&groups, &upper, above);
        let stands = matches!(seen, Seen::Steady | Seen::Saturated) || is_still(&groups);
        // What rose from a lighter load on does not rise less beyond.
        let rose =
            light.map_or(0.0, |light| light.elasticity(last)).max(chord(points, first, last));
        above[0] = above[0].max(rose).min(above[1]);
        seen = match seen {
            Seen::Steady | Seen::NoKnee if above[0] >= RISES => Seen::Knee,
            Seen::Steady if light.is_some() => Seen::NoKnee,
            other => other,
        };
        let quickest_ms = light.map_or(first.ms, |light| light.alone_ms.min(first.ms));
        let flatter = if quickest_ms < TURN_MS { 1.0 } else { FLATTER };
        let [best, least, most_slopes] = slopes(seen, (above, flatter), below);
        let ends = light.map(|light| light.ends(first)).unwrap_or_default();
        let [best, least, most] = [(best, 0), (least, 1), (most_slopes, 2)].map(|(slopes, end)| {
            let all: Vec<Point> = ends[end].iter().chain(&groups).copied().collect();
            curve(&all, slopes)
        });
        // Where no knee was seen there is none between what was.
        let most = match seen {
            Seen::NoKnee => most,
            _ => sagging(&most, first.outstanding, steepness(&least)),
        };
        let flat = curve(&groups, Slopes { above: most_slopes.above, below: 0.0 });
        Self {
            devices,
            seen,
            intervals: points.len(),
            outstanding: [first.outstanding, last.outstanding],
            davg_ms: [first.ms, last.ms],
            best,
            least,
            most,
            flat,
            stands,
            flatter,
            is_of_other_times: false,
            holds_some: false,
        }
    }
}

impl ArrayCalibration {
    /// Whether it is known how it answers to more than was seen.
    pub(crate) fn is_known_above(&self) -> bool {
        matches!(self.seen, Seen::Knee | Seen::Saturated)
    }

    /// Whether so many were outstanding under a load that varied: between what was seen it needs no guess.
    pub(crate) fn has_had(&self, outstanding: f64) -> bool {
        self.seen != Seen::Steady && outstanding <= self.outstanding[1]
    }

    /// What the calibration saw, in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let [least, most] = self.outstanding.map(number);
        let [quick, slow] = self.davg_ms.map(number);
        let whose = match self.holds_some {
            true => " of those commands that it holds to no rate (QoS),",
            false => "",
        };
        let seen = format!(
            "{} intervals: DAVG {quick} to {slow} ms{whose} with {least} to {most} commands outstanding",
            self.intervals
        );
        match self.seen {
            Seen::Knee => format!("{seen}; latency rose with them"),
            Seen::NoKnee => format!("{seen}; no knee seen, it lies above"),
            Seen::Saturated => {
                format!("{seen}; the rate stood still: saturated, or held to a rate")
            }
            Seen::Steady => format!("{seen}; no variation, so the knee is unknown"),
        }
    }

    /// With what the intervals of the window in question say of it alone.
    pub(crate) fn within(self, window: &[Point]) -> Self {
        let is_of_other_times = self.seen != Seen::Steady && spread(&groups(window)) < VARIATION;
        Self { is_of_other_times, ..self }
    }

    /// What is unknown of it, and what would tell.
    pub(crate) fn doubt(&self) -> Option<String> {
        const OTHER_TIMES: &str = " How it answers to fewer or more than in the window is read from \
                                   other times of the recording, which are taken to be of one kind \
                                   with it: as random, and with the array doing nothing else besides \
                                   (a rebuild, another host).";
        let most = number(self.outstanding[1]);
        let devices = match self.devices.as_slice() {
            [device] => device.clone(),
            [first, others @ ..] => format!(
                "{first} (and {} more devices that are taken to share it, by their names)",
                others.len()
            ),
            [] => return None,
        };
        let other_times = if self.is_of_other_times { OTHER_TIMES } else { "" };
        let seen = match self.seen {
            Seen::Steady => format!(
                "The array of {devices} had about {most} commands whenever there was load, so \
                 nothing shows how it answers to more or to fewer. A recording that begins in a \
                 quiet hour and ends in this load would tell, or one change tried and recorded."
            ),
            Seen::NoKnee => format!(
                "The array of {devices} showed no knee up to {most} commands outstanding; it may \
                 be right above that, or nowhere near."
            ),
            Seen::Saturated => format!(
                "The array of {devices} gives the same rate whatever is outstanding: more gains \
                 nothing there."
            ),
            Seen::Knee => format!(
                "Beyond the {most} commands that were outstanding at the array of {devices}, \
                 latency is taken to go on as it rose, {:.0} % less to 50 % more. That it is full \
                 right there, or a limit above what was seen (QoS, a link), is in no range.",
                100.0 * (1.0 - self.flatter)
            ),
        };
        Some(seen + other_times)
    }
}

impl ArrayCalibration {
    /// With what `bursts` says, where nothing tells whether a guest is held to a rate or sends in bursts
    /// that fill its queue.
    pub(crate) fn or_in_bursts(self, bursts: Self) -> Self {
        let known = |seen: Seen| matches!(seen, Seen::Knee | Seen::Saturated);
        let seen = if known(self.seen) { bursts.seen } else { self.seen };
        let quicker = bursts.quickest_ms();
        Self {
            seen,
            most: if quicker < self.quickest_ms() { bursts.most } else { self.most },
            ..self
        }
    }

    /// How long a command takes at best among the most that there may be.
    fn quickest_ms(&self) -> f64 {
        self.most.last().map_or(0.0, |&(_, ms)| ms)
    }
}

impl Light {
    /// With what `first`, a heavier load of the same commands, leaves of it: fewer outstanding take
    /// no longer, and are not served faster.
    fn beside(self, first: Point) -> Self {
        let least = first.ms * self.outstanding / first.outstanding;
        let alone_ms = self.alone_ms.min(first.ms);
        // Between one alone and `first` the line does not get flatter.
        let part = (self.outstanding - 1.0) / (first.outstanding - 1.0);
        let line_ms = alone_ms + part * (first.ms - alone_ms);
        let most_ms = self.most_ms.unwrap_or(line_ms).clamp(least.min(line_ms), line_ms);
        let least_ms = self.least_ms.clamp(least.min(most_ms), most_ms);
        Self { least_ms, alone_ms, most_ms: Some(most_ms), ..self }
    }

    /// What part of a proportional rise latency takes at `last` at least: that of the line from an
    /// idle array, or from the lighter load, whichever is steeper.
    fn elasticity(self, last: Point) -> f64 {
        let from = |outstanding: f64, ms: f64| {
            (1.0 - ms / last.ms) * last.outstanding / (last.outstanding - outstanding)
        };
        // Commands that come by chance find one more than those of guests that wait.
        let there = self.most_ms.map_or(0.0, |ms| from(self.outstanding - 1.0, ms));
        from(0.0, self.alone_ms).max(there).clamp(0.0, 1.0)
    }

    /// Points before `first`: the likeliest, those as slow and those as quick as can be.
    fn ends(self, first: Point) -> [Vec<Point>; 3] {
        let (least, most) = (self.least_ms, self.most_ms.unwrap_or(self.alone_ms));
        let at = |outstanding, ms| Point { outstanding, ms, rate: 1000.0 * outstanding / ms };
        // As quick as that until the rate of `first` is reached.
        let knee = first.outstanding * least / first.ms;
        let mut quick = vec![at(self.outstanding, least)];
        if knee >= VARIATION * self.outstanding && first.outstanding >= VARIATION * knee {
            quick.push(at(knee, least));
        }
        // Fewer than were seen may take no less.
        let slow = [at(1.0, most), at(self.outstanding, most)];
        let slow = slow.into_iter().skip(usize::from(self.outstanding < 2.0)).collect();
        [vec![at(self.outstanding, f64::midpoint(least, most))], slow, quick]
    }
}

/// What is beyond the seen: as it goes on, least and most favourable.
fn slopes(seen: Seen, (above, flatter): ([f64; 2], f64), below: [f64; 2]) -> [Slopes; 3] {
    let of = |above: f64, below: f64| Slopes { above: above.clamp(0.0, 1.0), below };
    let middle = |[low, high]: [f64; 2]| f64::midpoint(low, high);
    // Fewer than were seen may take no less: an array is no quicker below its knee.
    let flat_below = 0.0;
    let steep_below = (STEEPER * below[1]).clamp(0.0, 1.0);
    let best_below = middle(below).clamp(0.0, 1.0);
    match seen {
        Seen::Steady => [of(0.5, 0.5), of(1.0, 0.0), of(0.0, 1.0)],
        // Its knee may lie right below what was seen.
        Seen::Saturated => [of(1.0, best_below), of(1.0, 0.0), of(0.95, steep_below)],
        Seen::NoKnee => [of(middle(above), best_below), of(1.0, flat_below), of(0.0, steep_below)],
        Seen::Knee => [
            of(middle(above), best_below),
            of((STEEPER * above[1]).max(above[1] + NEAR), flat_below),
            of(flatter * above[0], steep_below),
        ],
    }
}

/// Intervals of like load together, the lightest first; at least one group.
fn groups(points: &[Point]) -> Vec<Point> {
    let mut ordered = points.to_vec();
    sort_by(&mut ordered, |a, b| a.outstanding.total_cmp(&b.outstanding));
    let size = ordered.len().div_ceil(GROUPS).max(1);
    let mut groups: Vec<Vec<Point>> = vec![Vec::new()];
    for point in ordered {
        let last = groups.len() - 1;
        let is_like = |first: &Point| point.outstanding <= VARIATION * first.outstanding.max(1.0);
        if groups[last].len() >= size || !groups[last].first().is_none_or(is_like) {
            groups.push(vec![point]);
        } else {
            groups[last].push(point);
        }
    }
    groups.iter().map(|group| merged(group)).collect()
}

/// The mean over the commands of several intervals.
pub(crate) fn merged(points: &[Point]) -> Point {
    let rate: f64 = points.iter().map(|point| point.rate).sum();
    let mean = |of: &dyn Fn(&Point) -> f64| {
        points.iter().map(of).sum::<f64>() / points.len().max(1) as f64
    };
    let ms = points.iter().map(|point| point.rate * point.ms).sum::<f64>() / rate.max(1e-9);
    Point {
        outstanding: mean(&|point| point.outstanding).max(1e-3),
        ms: ms.max(LATENCY_MIN_MS),
        rate: mean(&|point| point.rate),
    }
}

fn part(groups: &[Point], keep: impl Fn(&Point) -> bool) -> Vec<Point> {
    groups.iter().copied().filter(keep).collect()
}

/// How much further apart the heaviest is from the lightest, as a factor.
fn spread(groups: &[Point]) -> f64 {
    match groups {
        [first, .., last] => (last.outstanding + 0.5) / (first.outstanding + 0.5),
        _ => 1.0,
    }
}

/// What part of a proportional rise latency takes at `at`: least and greatest that fit. Of groups that are
/// close together what is printed of a latency counts, and the part of the differences that `chance` has: by
/// Little's law it moves the commands outstanding with the latency.
fn elasticity(groups: &[Point], at: Point, chance: f64) -> [f64; 2] {
    let [first, .., last] = groups else { return [0.0, 1.0] };
    let apart = last.outstanding - first.outstanding;
    if groups.len() < 3 || apart <= 0.0 {
        return [0.0, 1.0];
    }
    let (slope, error) = fit(groups);
    let scale = at.outstanding / at.ms;
    let is_close = spread(groups) < VARIATION;
    // At a rate that stands still the latency alone makes the difference: it follows itself.
    if is_close && is_still(groups) {
        return [0.0, 1.0];
    }
    let coarse = if is_close { 2.0 * ROUNDING_MS / apart * scale + chance } else { 0.0 };
    let error = ERRORS * error * scale + coarse;
    let ends = [slope * scale - error, slope * scale + error].map(|end| end.clamp(0.0, 1.0));
    if is_close && ends[1] - ends[0] > KNOWN { [0.0, 1.0] } else { ends }
}

/// What part of a proportional rise latency takes at the `last` of some loads at least: that of the line
/// from the `first`, for it does not get flatter. What is printed and two standard errors of both may be
/// less; loads that are close together tell nothing.
fn chord(points: &[Point], first: Point, last: Point) -> f64 {
    let error_ms = |at: Point| {
        let is_like = |point: &&Point| {
            let (a, b) = (point.outstanding, at.outstanding);
            a.max(b) <= VARIATION * a.min(b)
        };
        let like: Vec<f64> = points.iter().filter(is_like).map(|point| point.ms).collect();
        let variance = mean(like.iter().map(|ms| Some((ms - at.ms).powi(2)))).unwrap_or_default();
        let free = like.len().saturating_sub(1) as f64;
        ROUNDING_MS + ERRORS * (variance / free).sqrt()
    };
    if last.outstanding < VARIATION * first.outstanding {
        return 0.0;
    }
    let rise = (last.ms - first.ms - error_ms(first) - error_ms(last)) / last.ms;
    // Of a load that was seen once the error is not known.
    let part = rise * last.outstanding / (last.outstanding - first.outstanding);
    if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
}

/// The part of the variance of the commands outstanding that is between one interval and the next: on
/// average, and but for the few steps from one level of load to another.
fn chance(points: &[Point]) -> [f64; 2] {
    /// What the median of the squares of a normal deviate is.
    const MEDIAN: f64 = 0.455;
    let logs: Vec<f64> = points.iter().map(|point| point.outstanding.max(1e-9).ln()).collect();
    let steps = || logs.windows(2).map(|pair| Some((pair[1] - pair[0]).powi(2) / 2.0));
    let middle = mean(logs.iter().map(|log| Some(*log))).unwrap_or_default();
    let all = mean(logs.iter().map(|log| Some((log - middle).powi(2))));
    let usual = median(steps()).map(|square| square / MEDIAN);
    let part = |steps: Option<f64>| {
        steps.zip(all).filter(|(_, all)| *all > 0.0).map_or(0.0, |(steps, all)| steps / all)
    };
    [mean(steps()), usual].map(part)
}

/// Whether the commands outstanding are of a few loads far apart, whichever comes after which: what chance moves is of
/// all numbers between.
fn are_levels(points: &[Point]) -> bool {
    /// Intervals that are a load.
    const LEAST: usize = 3;
    /// Part of the variance that is left within the loads.
    const WITHIN: f64 = 0.05;
    let mut logs: Vec<f64> = points.iter().map(|point| point.outstanding.max(1e-9).ln()).collect();
    sort_by(&mut logs, f64::total_cmp);
    let squares = |logs: &[f64]| {
        let middle = logs.iter().sum::<f64>() / logs.len() as f64;
        logs.iter().map(|log| (log - middle).powi(2)).sum::<f64>()
    };
    let loads: Vec<&[f64]> = logs.chunk_by(|a, b| b - a < VARIATION.ln()).collect();
    loads.len() > 1
        && loads.iter().all(|load| load.len() >= LEAST)
        && loads.iter().map(|load| squares(load)).sum::<f64>() <= WITHIN * squares(&logs)
}

/// Whether the rate of groups stands still.
fn is_still(groups: &[Point]) -> bool {
    /// Part by which it may differ.
    const STILL: f64 = 0.04;
    let [least, most] =
        [0.0, 1.0].map(|share| quantile(groups.iter().map(|group| group.rate), share));
    most <= least.map(|least| least * (1.0 + STILL))
}

fn judge(groups: &[Point], upper: &[Point], [low, high]: [f64; 2]) -> Seen {
    let is_close = spread(groups) < VARIATION;
    if groups.len() < 3 || is_close && high - low > KNOWN {
        return Seen::Steady;
    }
    match upper.len() >= 3 && (is_close || spread(upper) >= VARIATION) {
        true if is_still(upper) && !is_close => Seen::Saturated,
        true if low >= RISES => Seen::Knee,
        _ => Seen::NoKnee,
    }
}

/// The least squares of relative errors, and the error of the slope: what leaving out a group does.
fn fit(groups: &[Point]) -> (f64, f64) {
    let slope = slope_of(groups.iter());
    let count = groups.len() as f64;
    let without = |out: usize| {
        slope_of(groups.iter().enumerate().filter(|(index, _)| *index != out).map(|(_, g)| g))
    };
    let spread: f64 = (0..groups.len()).map(|out| (without(out) - slope).powi(2)).sum();
    (slope, (spread * (count - 1.0) / count).sqrt())
}

fn slope_of<'a>(points: impl Iterator<Item = &'a Point> + Clone) -> f64 {
    let weight = |point: &Point| 1.0 / (point.ms * point.ms).max(1e-12);
    let total: f64 = points.clone().map(weight).sum();
    let x = points.clone().map(|p| weight(p) * p.outstanding).sum::<f64>() / total.max(1e-300);
    let y = points.clone().map(|p| weight(p) * p.ms).sum::<f64>() / total.max(1e-300);
    let (mut xy, mut xx) = (0.0, 0.0);
    for point in points {
        xy += weight(point) * (point.outstanding - x) * (point.ms - y);
        xx += weight(point) * (point.outstanding - x) * (point.outstanding - x);
    }
    if xx > 0.0 { xy / xx } else { 0.0 }
}

/// Through what was seen, and on from both ends.
fn curve(groups: &[Point], slopes: Slopes) -> Curve {
    let mut points: Curve = Vec::new();
    // Loads that are close together are one point, at the mean of them; but for the last it begins at their least.
    let mut close = (0.0, 0.0);
    let mut count = 0.0;
    for group in rising(groups) {
        let apart =
            |&(last, _): &(f64, f64)| group.outstanding >= (VARIATION * last).max(last + 1.0);
        let own = (group.outstanding, group.ms);
        if points.last().is_none_or(apart) {
            if let Some(last) = points.last_mut() {
                *last = (close.0 / count, close.1 / count);
            }
            points.push(own);
            (close, count) = (own, 1.0);
        } else if let Some(last) = points.last_mut() {
            *last = (last.0, f64::midpoint(last.1, group.ms));
            (close, count) = ((close.0 + own.0, close.1 + own.1), count + 1.0);
        }
    }
    let last = groups[groups.len() - 1];
    if let Some(end) = points.last_mut() {
        end.0 = end.0.max(last.outstanding);
    }
    let on = |(x, ms): (f64, f64), slope: f64, to: f64| {
        (to, (ms * (1.0 + slope * (to - x) / x)).max(LATENCY_MIN_MS))
    };
    let (first, last) = (points[0], points[points.len() - 1]);
    if first.0 > 1.5 {
        points.insert(0, on(first, slopes.below, 1.0));
    }
    points.push(on(last, slopes.above, OUTSTANDING_MAX));
    points
}

/// How steeply a curve goes on past what was seen, in milliseconds a command.
fn steepness(curve: &Curve) -> f64 {
    match curve[..] {
        [.., (x0, ms0), (x1, ms1)] => (ms1 - ms0) / (x1 - x0),
        _ => 0.0,
    }
}

/// As quick as latency may be between two points that were seen, if its line never gets flatter: no quicker than at
/// the one before, and back from the one behind on the line that follows it. Where the two meet is a knee. Behind the
/// last the line is as steep as `steepest` at most; where two loads from `first` on are all that there is, no fit tells
/// that, and it is as steep as that of a rate that stands still.
fn sagging(curve: &Curve, first: f64, steepest: f64) -> Curve {
    /// How far apart points are, as a factor, for the line between them to be in doubt.
    const APART: f64 = 1.5;
    let slope = |from: (f64, f64), to: (f64, f64)| (to.1 - from.1) / (to.0 - from.0);
    let are_two = curve.iter().filter(|(x, _)| (first..OUTSTANDING_MAX).contains(x)).count() == 2;
    let mut out: Curve = Vec::new();
    for (index, &point) in curve.iter().enumerate() {
        out.push(point);
        let (Some(&next), Some(&behind)) = (curve.get(index + 1), curve.get(index + 2)) else {
            continue;
        };
        let is_seen = index + 3 < curve.len();
        let slope_behind = match is_seen {
            true => slope(next, behind),
            false if are_two && point.0 >= first => next.1 / next.0,
            false => steepest,
        };
        let rise = next.1 - point.1;
        let knee = next.0 - rise / slope_behind;
        if next.0 >= APART * point.0 && rise > 0.0 && knee >= point.0 + 1.0 && knee <= next.0 - 1.0
        {
            out.push((knee, point.1));
        }
    }
    out
}

/// Groups in which latency does not fall: neighbours that do are pooled.
fn rising(groups: &[Point]) -> Vec<Point> {
    let mut pools: Vec<(Point, usize)> = Vec::new();
    for &group in groups {
        let mut pool = (group, 1);
        while let Some((before, count)) = pools.pop_if(|(before, _)| before.ms > pool.0.ms) {
            let whole = (count + pool.1) as f64;
            let ms = (before.ms * count as f64 + pool.0.ms * pool.1 as f64) / whole;
            pool = (Point { ms, ..pool.0 }, count + pool.1);
        }
        pools.push(pool);
    }
    let heights = pools.iter().flat_map(|(pool, count)| std::iter::repeat_n(pool.ms, *count));
    groups.iter().zip(heights).map(|(group, ms)| Point { ms, ..*group }).collect()
}

/// Latency on a curve, between its points along a line.
pub(crate) fn latency_at(curve: &Curve, outstanding: f64) -> f64 {
    let above = curve.partition_point(|(x, _)| *x <= outstanding);
    let low = above.checked_sub(1).and_then(|below| curve.get(below));
    match (low, curve.get(above)) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (outstanding - x0) / (x1 - x0),
        (Some((_, ms)), None) | (None, Some((_, ms))) => *ms,
        (None, None) => 0.0,
    }
}
