//! An array of which it was measured how long a command takes with so many outstanding, and nothing else is known.

use alloc::boxed::Box;

use crate::{
    command::Command,
    config::{ByCommand, Spread},
    random::Random,
    spread::Duration,
};

/// How often a measured curve was read, and how often where nobody had measured; volumes that went over; and what was done
/// for nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayUse {
    /// Commands served.
    pub served: u64,
    /// Those that came when more were outstanding than at the curve's last point.
    pub beyond: u64,
    /// Times that a command for a volume came to the controller which did not have it, and got it.
    pub handed_over: u64,
    /// Commands that a host took back and that took time of it all the same.
    pub kept: u64,
}

/// A measured curve.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    points: Box<[(u32, u64)]>,
    time: Option<Duration>,
    by: ByCommand,
    pub(crate) read: ArrayUse,
}

impl Curve {
    pub(crate) fn new(points: &[(u32, u64)], spread: Spread, by: ByCommand) -> Self {
        Self {
            points: points.into(),
            time: (spread != Spread::Constant).then(|| Duration::new(0, spread)),
            by,
            read: ArrayUse::default(),
        }
    }

    /// How long a command takes with which so many are outstanding.
    pub(crate) fn latency(
        &mut self,
        command: &Command,
        outstanding: u32,
        random: &mut Random,
    ) -> u64 {
        let last = self.points.last().map_or(u32::MAX, |&(outstanding, _)| outstanding);
        self.read.served += 1;
        self.read.beyond += u64::from(outstanding > last);
        let mut mean = latency_at(&self.points, outstanding);
        if self.by != ByCommand::default() {
            // Alone it would take so much instead of what the curve begins with, and so many times as long in a crowd:
            // then the array does as much less of it.
            let first_ns = self.points.first().map_or(1, |&(_, ns)| ns.max(1));
            let alone_ns = self.by.mean_ns(first_ns, command.is_write(), command.bytes);
            let times = u128::from(mean) * u128::from(alone_ns) / u128::from(first_ns);
            mean = u64::try_from(times).unwrap_or(u64::MAX);
        }
        self.time.as_mut().map_or(mean, |time| {
            time.set_mean(mean);
            time.draw(random.bits())
        })
    }
}

/// Linear between the points and constant before the first; 0 without points. Beyond the last
/// point the array does no more a second than it did there, so latency grows with the number
/// outstanding: Little's law.
fn latency_at(points: &[(u32, u64)], outstanding: u32) -> u64 {
    let above = points.partition_point(|&(n, _)| n <= outstanding);
    let low = above.checked_sub(1).and_then(|below| points.get(below));
    match (low, points.get(above)) {
        (Some(&(n0, y0)), Some(&(n1, y1))) => {
            let (part, whole) = (i128::from(outstanding - n0), i128::from(n1 - n0));
            let rise = i128::from(y1) - i128::from(y0);
            (i128::from(y0) + rise * part / whole) as u64
        }
        (Some(&(n, y)), None) => {
            let saturated = u128::from(y) * u128::from(outstanding) / u128::from(n.max(1));
            u64::try_from(saturated).unwrap_or(u64::MAX)
        }
        (None, Some(&(_, y))) => y,
        (None, None) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counters::Op;

    #[test]
    fn a_curve_is_linear_between_its_points_and_saturated_beyond_them() {
        let points = [(8, 1_000), (16, 2_000), (32, 1_000)];
        for (outstanding, latency) in [
            (0, 1_000),
            (8, 1_000),
            (12, 1_500),
            (16, 2_000),
            (24, 1_500),
            (32, 1_000),
            (96, 3_000),
        ] {
            assert_eq!(latency_at(&points, outstanding), latency, "{outstanding}");
        }
        assert_eq!(latency_at(&[], 5), 0);
        assert_eq!(latency_at(&[(0, 0), (u32::MAX, u64::MAX)], u32::MAX - 1) >> 32, (1 << 32) - 2);
    }

    /// 100 us alone and 800 with 16: a read of 64 KiB on a curve of 4 KiB, 60 KiB at 5 us more, is four times one; a write, too.
    #[test]
    fn on_a_curve_a_larger_command_is_as_many_small_ones() {
        let points = [(1, 100_000), (16, 800_000)];
        let by = ByCommand { write_ns: Some(400_000), kib_ns: 5_000, free_bytes: 4096 };
        let mut curve = Curve::new(&points, Spread::Constant, by);
        let mut random = Random::new(1);
        let mut us = |op, bytes, outstanding| {
            let command = Command { volume: 0, host: 0, path: 0, op, block: 0, bytes };
            curve.latency(&command, outstanding, &mut random) / 1_000
        };
        for (op, kib, outstanding, expected) in [
            (Op::Read, 4, 1, 100),
            (Op::Read, 1, 1, 100),
            (Op::Read, 64, 1, 400),
            (Op::Read, 64, 16, 3_200),
            (Op::Write, 4, 16, 3_200),
            (Op::Write, 64, 1, 700),
            (Op::Read, 64, 32, 6_400),
        ] {
            assert_eq!(us(op, kib << 10, outstanding), expected, "{op:?} {kib} {outstanding}");
        }
    }
}
