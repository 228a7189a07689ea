//! What the intervals of a recording say of an array: how long its commands took with how many
//! outstanding, over all devices that share it.

use levels::{Measured, median, weighted_mean};

use crate::{
    ArrayCalibration, GuestCalibration,
    array::{Point, merged},
    light::Light,
    observe::Device,
    rows::{FALLS, READS_APART, Row},
};

/// How far the size of commands may be, as a factor.
const SIZES_APART: f64 = 1.3;

/// A device of an array, and its guests: none of one that is not simulated.
pub(crate) type Part<'a> = (&'a Device<'a>, &'a [GuestCalibration]);

/// The array behind some devices, from every interval of the recording with load of like commands. What
/// devices `beside` them had it do at other times tells of it too, where one array may have done both.
pub(crate) fn array(
    own: &[Part<'_>],
    beside: &[&Device<'_>],
    all: (&Measured, &[usize]),
) -> ArrayCalibration {
    let idle = beside.iter().map(|&device| (device, &[][..]));
    let whole: Vec<Part<'_>> = own.iter().copied().chain(idle).collect();
    let is_whole = whole.len() > own.len() && may_be_one(&whole, beside, all);
    calibrated(if is_whole { &whole } else { own }, all)
}

/// Whether one array may have answered in the window and while devices beside it had load.
fn may_be_one(
    whole: &[Part<'_>],
    beside: &[&Device<'_>],
    (recording, window): (&Measured, &[usize]),
) -> bool {
    let points = |samples: &[usize]| -> Vec<Point> {
        settled(samples.iter().filter_map(|&sample| point(whole, sample, false)).collect())
    };
    let is_other = |s: &usize| {
        !window.contains(s) && beside.iter().any(|device| !device.busy(&[*s]).is_empty())
    };
    let others: Vec<usize> = (0..recording.len()).filter(is_other).collect();
    let (now, then) = (points(window), points(&others));
    if now.is_empty() || then.is_empty() {
        return false;
    }
    let now = merged(&now);
    then.iter().all(|then| match now.outstanding <= then.outstanding {
        true => goes_on(&now, then),
        false => goes_on(then, &now),
    })
}

/// Whether an array that answers like the `less` may answer like the `more`: with more outstanding neither
/// its rate nor its latency falls (reference `array-and-control.md`, section 1).
fn goes_on(less: &Point, more: &Point) -> bool {
    less.ms <= FALLS * more.ms && less.rate <= FALLS * more.rate
}

/// What the parts of an array had outstanding in an interval, and how quickly it answered; none without
/// load. `bursts` is whether who is held to a rate is taken to send in bursts.
fn point(parts: &[Part<'_>], sample: usize, bursts: bool) -> Option<Point> {
    let (mut outstanding, mut rate, mut inside) = (0.0, 0.0, 0.0);
    for (device, guests) in parts {
        let held =
            |guest: &GuestCalibration| guest.held_at_iops.or(guest.throttled_at_iops).is_some();
        let is_held = guests.iter().any(held) && !bursts;
        let seen = if is_held { device.row.in_flight(sample) } else { device.concurrency(sample) };
        outstanding += seen?;
        let (commands, own) = free(device, guests, sample)?;
        rate += commands;
        inside += own;
    }
    let point = Point { outstanding, ms: 1000.0 * inside / rate, rate };
    (rate > 0.0 && point.ms > 0.0).then_some(point)
}

fn calibrated(parts: &[Part<'_>], (recording, window): (&Measured, &[usize])) -> ArrayCalibration {
    // An array of which something was not measured tells nothing.
    let is_held = |guest: &GuestCalibration| guest.held_at_iops.is_some() && !guest.is_held_surely;
    let may_burst = parts.iter().any(|(_, guests)| guests.iter().any(is_held));
    let is_busy = |s: &usize| parts.iter().any(|(device, _)| !device.busy(&[*s]).is_empty());
    // Reads and writes, small and large commands are not answered alike.
    let mix = |s: &[usize]| {
        let of = |value: &dyn Fn(&Row<'_>) -> Option<f64>| {
            let each = parts.iter().map(|(device, _)| &device.row);
            weighted_mean(each.map(|row| Some((value(row)?, row.mean_rate(s)?))))
        };
        (of(&|row| row.read_share(s)), of(&|row| row.size_kib(s)))
    };
    // A part of the window may be of other commands.
    let usual: Vec<_> = window.iter().map(|&s| mix(&[s])).collect();
    let reads = median(usual.iter().map(|(reads, _)| *reads));
    let size_kib = median(usual.iter().map(|(_, size_kib)| *size_kib));
    // What never was measured tells no sample from another.
    let is_near = |usual: Option<f64>, own: Option<f64>, near: &dyn Fn(f64, f64) -> bool| {
        usual.is_none_or(|usual| own.is_some_and(|own| near(usual, own)))
    };
    let is_like = |s: &usize| {
        let (own_reads, own_size_kib) = mix(&[*s]);
        is_near(reads, own_reads, &|a, b| (a - b).abs() <= READS_APART)
            && is_near(size_kib, own_size_kib, &|a, b| a.max(b) <= SIZES_APART * a.min(b))
    };
    let busy: Vec<usize> = (0..recording.len()).filter(is_busy).collect();
    let (like, other): (Vec<usize>, Vec<usize>) = busy.iter().partition(|&s| is_like(s));
    let samples = if like.is_empty() { &busy } else { &like };
    let samples = of_one_kind(parts, samples, window);
    let points = |bursts: bool| -> Vec<Point> {
        settled(samples.iter().filter_map(|&s| point(parts, s, bursts)).collect())
    };
    let is_throttled = |guest: &GuestCalibration| guest.throttled_at_iops.is_some();
    let is_free = !parts.iter().any(|(_, guests)| guests.iter().any(is_throttled));
    // A sample beside the load may have a part of it.
    let is_apart = |s: &usize| {
        !like.contains(&(s + 1)) && !s.checked_sub(1).is_some_and(|s| like.contains(&s))
    };
    let light: Vec<usize> = other.into_iter().filter(is_apart).collect();
    let scsi: Vec<&Device<'_>> = parts.iter().map(|(device, _)| *device).collect();
    let light = if is_free { Light::of(recording, &scsi, &light, &like) } else { None };
    let names = parts.iter().map(|(device, _)| device.name.clone()).collect();
    let mut guests = parts.iter().flat_map(|(_, guests)| *guests).peekable();
    let is_paced = guests.peek().is_some() && guests.all(|guest| guest.held_at_iops.is_some());
    let array = ArrayCalibration::of(names, (&points(false), is_paced), light);
    let in_bursts = || ArrayCalibration::of(Vec::new(), (&points(true), is_paced), light);
    let array = if may_burst { array.or_in_bursts(in_bursts()) } else { array };
    let inside: Vec<Point> = window.iter().filter_map(|&s| point(parts, s, false)).collect();
    ArrayCalibration { holds_some: !is_free, ..array.within(&inside) }
}

/// Of samples of like commands those that one array in one state can have answered beside the window's: of what is
/// lighter than that, or heavier, all go where they do not go on from it. Reads and sizes do not tell random commands
/// from sequential ones, nor an array that is being rebuilt.
fn of_one_kind(parts: &[Part<'_>], samples: &[usize], window: &[usize]) -> Vec<usize> {
    let points = |samples: &[usize]| -> Vec<Point> {
        samples.iter().filter_map(|&s| point(parts, s, false)).collect()
    };
    let (inside, beside): (Vec<usize>, Vec<usize>) =
        samples.iter().partition(|sample| window.contains(sample));
    let inside = points(&inside);
    if inside.is_empty() {
        return samples.to_vec();
    }
    let now = merged(&inside);
    let is_lighter = |point: &Point| point.outstanding <= now.outstanding;
    let (lighter, heavier): (Vec<Point>, Vec<Point>) =
        points(&beside).into_iter().partition(is_lighter);
    let has_lighter = lighter.is_empty() || goes_on(&merged(&lighter), &now);
    let has_heavier = heavier.is_empty() || goes_on(&now, &merged(&heavier));
    let may_be = |point: Point| if is_lighter(&point) { has_lighter } else { has_heavier };
    let is_kept = |s: &usize| window.contains(s) || point(parts, *s, false).is_none_or(may_be);
    samples.iter().copied().filter(is_kept).collect()
}

/// Without the intervals in which the load changed: their means are of two loads, and no array
/// answers like that. In time's order.
fn settled(points: Vec<Point>) -> Vec<Point> {
    /// By how much an interval may differ from one beside it, as a factor.
    const LIKE: f64 = 1.3;
    let is_like = |a: &Point, b: &Point| {
        a.outstanding.max(b.outstanding) <= LIKE * a.outstanding.min(b.outstanding)
    };
    let beside = |index: usize| {
        let before = index.checked_sub(1).and_then(|before| points.get(before));
        before.into_iter().chain(points.get(index + 1))
    };
    let kept: Vec<Point> = points
        .iter()
        .enumerate()
        .filter(|(index, point)| beside(*index).any(|other| is_like(point, other)))
        .map(|(_, point)| *point)
        .collect();
    if 2 * kept.len() >= points.len() && !kept.is_empty() { kept } else { points }
}

/// Rate and number in flight of the commands that the array does not hold to a rate.
fn free(device: &Device<'_>, guests: &[GuestCalibration], sample: usize) -> Option<(f64, f64)> {
    let (mut rate, mut inside) = (device.row.rate(sample)?, device.row.in_flight(sample)?);
    for (tenant, guest) in device.tenants.iter().zip(guests) {
        if let (Some(_), Some(world)) = (guest.throttled_at_iops, &tenant.world) {
            rate -= world.rate(sample)?;
            inside -= world.in_flight(sample)?;
        }
    }
    Some(if rate > 1e-6 { (rate, inside.max(0.0)) } else { (0.0, 0.0) })
}

#[cfg(test)]
mod tests {
    use super::{Point, goes_on};

    #[test]
    fn quick_and_slow_disks_are_no_one_array() {
        let at = |outstanding: f64, ms| Point { outstanding, ms, rate: 1000.0 * outstanding / ms };
        // S3: eight datastores, then one on the same disks.
        assert!(goes_on(&at(32.0, 10.7), &at(256.0, 43.6)));
        // Fewer that take longer, and fewer of which more are served.
        assert!(!goes_on(&at(8.0, 43.6), &at(32.0, 10.7)));
        assert!(!goes_on(&at(4.0, 0.3), &at(32.0, 10.7)));
    }
}
