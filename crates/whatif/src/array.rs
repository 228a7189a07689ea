//! The array behind a device, calibrated: how DAVG went with the commands outstanding.
//!
//! N equal servers with a mean service S answer n commands in R(n) = S * (1 + (n - 1) / N): a
//! straight line (reference `array-and-control.md`, section 1). What is in flight is taken from
//! Little's law, CMDS/s times DAVG, and not from ACTV, which is the state of one instant. A rate
//! limit of the array is the same line with no intercept: latency follows what is outstanding.
//!
//! Where the recording has no variation the slope is unknown, and all is known of it is its
//! bounds: a knee right at what was seen, and no knee at all.

use serde::Serialize;

use crate::rows::{Flow, mean, quantile};

/// Groups of like load that the line is laid through.
const GROUPS: usize = 8;
/// Outstanding commands must vary by this factor between the groups for the slope to be known.
const VARIATION: f64 = 1.25;
/// Standard errors on each side of the slope.
const ERRORS: f64 = 2.0;
/// How much steeper the line may become beyond what was seen. Servers of constant service bend up
/// by this much between light load and their asymptote.
const STEEPER: f64 = 1.3;
/// The most servers a scenario takes: with so many there is no knee.
const SERVERS_MAX: f64 = 65_536.0;
/// The shortest service time that is simulated, in milliseconds.
const SERVICE_MIN_MS: f64 = 1e-4;

/// What the recording says of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// Latency rose with the commands outstanding: both numbers are known.
    Knee,
    /// The load varied and latency did not follow: the knee lies above.
    NoKnee,
    /// The rate stood still while latency followed the commands outstanding: more gains nothing.
    Saturated,
    /// The load never varied: nothing tells where the knee is.
    Steady,
}

/// An array as a scenario has it: `servers` and `service`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Law {
    /// Equal servers, 1 to 65,536.
    pub servers: u32,
    /// Mean service of one command, in milliseconds.
    pub service_ms: f64,
}

/// The array behind a device, and how sure it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrayCalibration {
    /// What the recording says of it.
    pub seen: Seen,
    /// Intervals with load.
    pub intervals: usize,
    /// Commands outstanding at the array over them: the lightest and the heaviest group.
    pub outstanding: [f64; 2],
    /// DAVG in the same groups, in milliseconds.
    pub davg_ms: [f64; 2],
    /// The reading that fits best.
    pub best: Law,
    /// The least favourable reading that fits: the earliest knee.
    pub least: Law,
    /// The most favourable reading that fits: the latest knee, or none.
    pub most: Law,
}

/// An interval, or a group of them.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// Commands that one finds before it at the array.
    before: f64,
    ms: f64,
    rate: f64,
}

/// A line through the group with the most load.
#[derive(Clone, Copy, Debug)]
struct Line {
    anchor: Point,
    slope: f64,
    error: f64,
}

impl ArrayCalibration {
    /// Calibrates on the samples with load, of which there is at least one. With `closed`, a
    /// command finds one less than the mean before it: its own place.
    pub(crate) fn of(
        flow: &Flow,
        busy: &[usize],
        window: &[usize],
        (closed, interval_s): (bool, f64),
    ) -> Self {
        let own = if closed { 1.0 } else { 0.0 };
        let point = |&s: &usize| Point {
            before: (flow.in_flight(s) - own).max(0.0),
            ms: flow.davg[s],
            rate: flow.rate[s],
        };
        let points: Vec<Point> = busy.iter().map(point).collect();
        let groups = groups(&points);
        let anchor = merged(&window.iter().map(point).collect::<Vec<_>>());
        let (first, last) = (groups[0], groups[groups.len() - 1]);
        let regulated = closed && is_regulated(flow, window, interval_s) && jumps(&groups);
        let seen = if regulated { Seen::Saturated } else { judge(&groups, own) };
        let line = Line { anchor, ..fit(&groups) };
        let steady = Line { anchor, slope: 0.0, error: 0.0 };
        let ceiling = anchor.ms / (anchor.before + own).max(1.0);
        let law = |slope: f64| Law::of(&steady, slope);
        let (best, least, most) = match seen {
            Seen::Steady => (ceiling / 2.0, ceiling, 0.0),
            Seen::Saturated => (ceiling, ceiling, ceiling * 0.9),
            Seen::Knee | Seen::NoKnee => {
                let steep = (line.slope + ERRORS * line.error) * STEEPER;
                let flat = (line.slope - ERRORS * line.error).max(0.0);
                (line.slope.min(ceiling), steep.min(ceiling), flat.min(ceiling))
            }
        };
        Self {
            seen,
            intervals: points.len(),
            outstanding: [first.before + own, last.before + own],
            davg_ms: [first.ms, last.ms],
            best: law(best),
            least: law(least),
            most: law(most),
        }
    }
}

impl Law {
    /// The servers whose latency has this slope and meets the anchor.
    fn of(line: &Line, slope: f64) -> Self {
        let Point { before, ms, .. } = line.anchor;
        let intercept = ms - slope * before;
        let servers = if slope > 0.0 { (intercept / slope).round() } else { SERVERS_MAX };
        let servers = servers.clamp(1.0, SERVERS_MAX);
        let service_ms = (ms / (1.0 + before / servers)).max(SERVICE_MIN_MS);
        Self { servers: servers as u32, service_ms }
    }
}

/// Intervals of like load together, the lightest first; at least one group.
fn groups(points: &[Point]) -> Vec<Point> {
    let mut ordered = points.to_vec();
    ordered.sort_by(|a, b| a.before.total_cmp(&b.before));
    let size = ordered.len().div_ceil(GROUPS).max(1);
    let mut groups: Vec<Point> = ordered.chunks(size).map(merged).collect();
    if groups.is_empty() {
        groups.push(merged(&[]));
    }
    groups
}

/// The mean over the commands of several intervals.
fn merged(points: &[Point]) -> Point {
    let rate: f64 = points.iter().map(|point| point.rate).sum();
    let ms = points.iter().map(|point| point.rate * point.ms).sum::<f64>() / rate.max(1e-9);
    let before = mean(points.iter().map(|point| point.before));
    Point { before, ms, rate: mean(points.iter().map(|point| point.rate)) }
}

/// Whether the rate is steadier than chance allows in the samples with most outstanding: an array
/// that holds a volume to a rate counts its commands one by one.
fn is_regulated(flow: &Flow, window: &[usize], interval_s: f64) -> bool {
    /// Commands by which samples differ at most.
    const STEADY: f64 = 4.0;
    /// Samples that are enough to tell.
    const SAMPLES: usize = 4;
    let middle = quantile(window.iter().map(|&s| flow.in_flight(s)), 0.5);
    let heavy: Vec<f64> = window
        .iter()
        .filter(|&&s| flow.in_flight(s) >= 0.9 * middle)
        .map(|&s| flow.rate[s])
        .collect();
    let spread = quantile(heavy.iter().copied(), 0.9) - quantile(heavy.iter().copied(), 0.1);
    heavy.len() >= SAMPLES && spread * interval_s <= STEADY
}

/// Whether commands take much longer under load.
fn jumps(groups: &[Point]) -> bool {
    const LONGER: f64 = 1.5;
    groups[groups.len() - 1].ms >= LONGER * groups[0].ms
}

fn judge(groups: &[Point], own: f64) -> Seen {
    /// Part by which the rate may differ while it stands still.
    const STILL: f64 = 0.05;
    /// Part of proportionality that latency must reach to follow the commands outstanding.
    const FOLLOWS: f64 = 0.8;
    /// Part of the latency that the slope must explain over what was seen.
    const RISES: f64 = 0.05;
    let (first, last) = (groups[0], groups[groups.len() - 1]);
    let spread = (last.before + own.max(0.5)) / (first.before + own.max(0.5));
    if groups.len() < 3 || spread < VARIATION {
        return Seen::Steady;
    }
    let rates = || groups.iter().map(|group| group.rate);
    let still = quantile(rates(), 1.0) <= quantile(rates(), 0.0) * (1.0 + STILL);
    if still && last.ms / first.ms >= spread.powf(FOLLOWS) {
        return Seen::Saturated;
    }
    let rise = fit(groups).slope * (last.before - first.before);
    if rise >= RISES * last.ms { Seen::Knee } else { Seen::NoKnee }
}

/// The least squares of relative errors, and the error of the slope: the larger of what residuals
/// say and what leaving out a group does.
fn fit(groups: &[Point]) -> Line {
    let slope = slope_of(groups.iter());
    let count = groups.len() as f64;
    let without = |out: usize| {
        slope_of(groups.iter().enumerate().filter(|(index, _)| *index != out).map(|(_, g)| g))
    };
    let spread: f64 = (0..groups.len()).map(|out| (without(out) - slope).powi(2)).sum();
    let error = (spread * (count - 1.0) / count).sqrt();
    Line { anchor: groups[groups.len() - 1], slope: slope.max(0.0), error }
}

fn slope_of<'a>(points: impl Iterator<Item = &'a Point> + Clone) -> f64 {
    let weight = |point: &Point| 1.0 / (point.ms * point.ms).max(1e-12);
    let total: f64 = points.clone().map(weight).sum();
    let x = points.clone().map(|p| weight(p) * p.before).sum::<f64>() / total.max(1e-300);
    let y = points.clone().map(|p| weight(p) * p.ms).sum::<f64>() / total.max(1e-300);
    let (mut xy, mut xx) = (0.0, 0.0);
    for point in points {
        xy += weight(point) * (point.before - x) * (point.ms - y);
        xx += weight(point) * (point.before - x) * (point.before - x);
    }
    if xx > 0.0 { xy / xx } else { 0.0 }
}
