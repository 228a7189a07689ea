//! What `vscsiStats` counts of a virtual disk at its own door: 16 histograms of what a guest asks for,
//! under the titles and between the limits of a real host [VSCSI].

use crate::{Direction, MICROSECOND, SECOND, Time};

/// What a histogram counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Bytes of a command.
    IoLength,
    /// Logical blocks between successive commands.
    SeekDistance,
    /// Logical blocks to the closest of the 16 commands before.
    SeekDistanceWindowed,
    /// Microseconds from the virtual adapter until the completion interrupt.
    Latency,
    /// Commands outstanding when a new one is issued.
    Outstanding,
    /// Microseconds between commands.
    Interarrival,
}

const LENGTHS: [i64; 17] = [
    512, 1024, 2048, 4095, 4096, 8191, 8192, 16383, 16384, 32768, 49152, 65535, 65536, 81920,
    131_072, 262_144, 524_288,
];
const DISTANCES: [i64; 33] = [
    -500_000, -100_000, -50_000, -10_000, -5000, -1000, -500, -128, -64, -32, -16, -8, -6, -4, -2,
    -1, 0, 1, 2, 4, 6, 8, 16, 32, 64, 128, 500, 1000, 5000, 10_000, 50_000, 100_000, 500_000,
];
const MICROSECONDS: [i64; 10] = [1, 10, 100, 500, 1000, 5000, 15_000, 30_000, 50_000, 100_000];
const COMMANDS: [i64; 12] = [1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 64];
/// Bins of the widest histogram: one for each of its limits, and one above the last.
const BINS: usize = DISTANCES.len() + 1;

const READ: Option<Direction> = Some(Direction::Read);
const WRITE: Option<Direction> = Some(Direction::Write);

/// All histograms of a virtual disk in the order in which `vscsiStats` prints them [VSCSI]: what is
/// counted, of which commands (`None` for all), and the title.
pub const VSCSI: [(Metric, Option<Direction>, &str); 16] = [
    (Metric::IoLength, None, "IO lengths of commands"),
    (Metric::IoLength, READ, "IO lengths of Read commands"),
    (Metric::IoLength, WRITE, "IO lengths of Write commands"),
    (Metric::SeekDistance, None, "distance (in LBNs) between successive commands"),
    (Metric::SeekDistance, READ, "distance (in LBNs) between successive Read commands"),
    (Metric::SeekDistance, WRITE, "distance (in LBNs) between successive Write commands"),
    (
        Metric::SeekDistanceWindowed,
        None,
        "distance (in LBNs) between each command from the closest of previous 16",
    ),
    (Metric::Latency, None, "latency of IOs in Microseconds (us)"),
    (Metric::Latency, READ, "latency of Read IOs in Microseconds (us)"),
    (Metric::Latency, WRITE, "latency of Write IOs in Microseconds (us)"),
    (Metric::Outstanding, None, "number of outstanding IOs when a new IO is issued"),
    (Metric::Outstanding, READ, "number of outstanding Read IOs when a new Read IO is issued"),
    (Metric::Outstanding, WRITE, "number of outstanding Write IOs when a new Write IO is issued"),
    (Metric::Interarrival, None, "latency of IO interarrival time in Microseconds (us)"),
    (Metric::Interarrival, READ, "latency of IO interarrival time for Reads in Microseconds (us)"),
    (
        Metric::Interarrival,
        WRITE,
        "latency of IO interarrival time for Writes in Microseconds (us)",
    ),
];

impl Metric {
    /// The greatest values of its bins but the last, which has no end.
    #[must_use]
    pub const fn limits(self) -> &'static [i64] {
        match self {
            Self::IoLength => &LENGTHS,
            Self::SeekDistance | Self::SeekDistanceWindowed => &DISTANCES,
            Self::Latency | Self::Interarrival => &MICROSECONDS,
            Self::Outstanding => &COMMANDS,
        }
    }
}

/// What one histogram has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VscsiBins {
    /// Least value; above the greatest while there is none.
    pub min: i64,
    /// Greatest value.
    pub max: i64,
    sum: i128,
    /// Commands.
    pub count: u64,
    /// Commands by bin; those beyond the metric's own are 0.
    pub commands: [u64; BINS],
}

impl VscsiBins {
    const EMPTY: Self =
        Self { min: i64::MAX, max: i64::MIN, sum: 0, count: 0, commands: [0; BINS] };

    /// The mean, in whole units; 0 while there is none.
    #[must_use]
    pub fn mean(&self) -> i64 {
        (self.sum / i128::from(self.count.max(1))) as i64
    }

    fn add(&mut self, limits: &[i64], value: i64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += i128::from(value);
        self.count += 1;
        self.commands[limits.partition_point(|limit| *limit < value)] += 1;
    }
}

/// A command as it comes from the guest.
#[derive(Clone, Copy, Debug)]
pub struct VscsiCommand {
    /// Reads or writes; others are not counted.
    pub direction: Direction,
    /// The first logical block.
    pub block: u64,
    /// How many blocks.
    pub blocks: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// What came last, of all commands or of those of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    /// When, and its last block.
    command: Option<(Time, u64)>,
    outstanding: u64,
}

/// The counting of one virtual disk.
#[derive(Clone, Debug)]
pub struct VscsiStats {
    bins: [VscsiBins; VSCSI.len()],
    /// Of all commands, of reads and of writes.
    last: [Last; 3],
    /// The last blocks of the 16 commands before, and how many there were.
    before: [u64; 16],
    issued: usize,
    /// What was issued earlier is not known.
    since: Time,
    until: Time,
}

impl VscsiStats {
    /// How long it counts when it is started [ELA].
    pub const TIME_NS: u64 = 30 * 60 * SECOND;

    /// What counts nothing before it is started.
    pub const STOPPED: Self = Self {
        bins: [VscsiBins::EMPTY; VSCSI.len()],
        last: [Last { command: None, outstanding: 0 }; 3],
        before: [0; 16],
        issued: 0,
        since: Time::ZERO,
        until: Time::ZERO,
    };

    /// Counts what comes for [`Self::TIME_NS`] from now on, beside what was counted before.
    pub fn start(&mut self, now: Time) {
        if !self.counts(now) {
            (self.since, self.issued, self.last) = (now, 0, Default::default());
        }
        self.until = now + Self::TIME_NS;
    }

    /// Counts nothing that comes from now on.
    pub const fn stop(&mut self, now: Time) {
        self.until = now;
    }

    /// Whether it counts what comes at that time.
    #[must_use]
    pub fn counts(&self, at: Time) -> bool {
        at >= self.since && at < self.until
    }

    /// Sets all histograms to nothing; what is outstanding stays.
    pub fn reset(&mut self) {
        self.bins = [VscsiBins::EMPTY; VSCSI.len()];
    }

    /// The histograms, in the order of [`VSCSI`].
    #[must_use]
    pub const fn bins(&self) -> &[VscsiBins; VSCSI.len()] {
        &self.bins
    }

    /// A command comes. A distance is that from the last block of one to the first of the next, so that
    /// of a sequential stream it is 1; what is outstanding is what was there before it came [ELA].
    pub fn issue(&mut self, now: Time, command: VscsiCommand) {
        if !self.counts(now) || command.direction == Direction::Other {
            return;
        }
        let VscsiCommand { direction, block, blocks, bytes } = command;
        let from = |end: u64| distance(end, block);
        self.add(Metric::IoLength, direction, |_| Some(clamp(bytes)));
        self.add(Metric::SeekDistance, direction, |last| last.command.map(|(_, end)| from(end)));
        let before = &self.before[..self.issued.min(self.before.len())];
        let closest =
            before.iter().map(|end| from(*end)).min_by_key(|distance| distance.unsigned_abs());
        self.add(Metric::SeekDistanceWindowed, direction, |_| closest);
        self.add(Metric::Outstanding, direction, |last| Some(clamp(last.outstanding)));
        self.add(Metric::Interarrival, direction, |last| {
            last.command.map(|(at, _)| microseconds(at, now))
        });
        let end = block.saturating_add(blocks).saturating_sub(1);
        self.before[self.issued % self.before.len()] = end;
        self.issued += 1;
        for of in [None, Some(direction)] {
            let last = &mut self.last[place(of)];
            last.command = Some((now, end));
            last.outstanding += 1;
        }
    }

    /// A command that came at `issued` is answered.
    pub fn complete(&mut self, now: Time, issued: Time, direction: Direction) {
        if !self.counts(issued) || direction == Direction::Other {
            return;
        }
        self.add(Metric::Latency, direction, |_| Some(microseconds(issued, now)));
        for of in [None, Some(direction)] {
            let last = &mut self.last[place(of)];
            last.outstanding = last.outstanding.saturating_sub(1);
        }
    }

    /// Counts a value, if there is one, in the histograms of a metric that a command belongs to.
    fn add(&mut self, metric: Metric, direction: Direction, value: impl Fn(&Last) -> Option<i64>) {
        for ((of_metric, of, _), bins) in VSCSI.iter().zip(&mut self.bins) {
            if *of_metric == metric
                && of.is_none_or(|of| of == direction)
                && let Some(value) = value(&self.last[place(*of)])
            {
                bins.add(metric.limits(), value);
            }
        }
    }
}

const fn place(of: Option<Direction>) -> usize {
    match of {
        Some(Direction::Read) => 1,
        Some(Direction::Write) => 2,
        _ => 0,
    }
}

fn clamp(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn distance(from: u64, to: u64) -> i64 {
    clamp(to).saturating_sub(clamp(from))
}

fn microseconds(from: Time, to: Time) -> i64 {
    clamp(to.since(from) / MICROSECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stats: &VscsiStats, metric: Metric, direction: Option<Direction>) -> VscsiBins {
        let place = VSCSI.iter().position(|(it, of, _)| (*it, *of) == (metric, direction));
        stats.bins()[place.expect("a histogram")]
    }

    /// The limits of the bins that have commands, `None` for the last, and how many.
    fn filled(bins: &VscsiBins, metric: Metric) -> alloc::vec::Vec<(Option<i64>, u64)> {
        let all = bins.commands.iter().enumerate().filter(|(_, commands)| **commands > 0);
        all.map(|(place, commands)| (metric.limits().get(place).copied(), *commands)).collect()
    }

    const fn read(block: u64, blocks: u64) -> VscsiCommand {
        VscsiCommand {
            direction: Direction::Read,
            block,
            blocks,
            bytes: blocks.saturating_mul(512),
        }
    }

    #[test]
    fn a_sequential_stream_with_two_outstanding_and_a_write_far_away() {
        let at = |micros| Time(micros * MICROSECOND);
        let mut stats = VscsiStats::STOPPED;
        stats.start(at(5));
        stats.issue(at(4), read(0, 8));
        (0..4).for_each(|n| stats.issue(at(10 + 200 * n), read(8 * n, 8)));
        stats.complete(at(350), at(10), Direction::Read);
        stats.complete(at(7000), at(4), Direction::Read);
        stats.issue(at(700), VscsiCommand { direction: Direction::Write, ..read(1_000_000, 256) });
        stats.complete(at(900), at(700), Direction::Write);
        let lengths = of(&stats, Metric::IoLength, None);
        assert_eq!(filled(&lengths, Metric::IoLength), [(Some(4096), 4), (Some(131_072), 1)]);
        assert_eq!(
            (lengths.min, lengths.max, lengths.mean()),
            (4096, 131_072, (4 * 4096 + 131_072) / 5)
        );
        let gaps = of(&stats, Metric::SeekDistance, Some(Direction::Read));
        assert_eq!(filled(&gaps, Metric::SeekDistance), [(Some(1), 3)]);
        let windowed = of(&stats, Metric::SeekDistanceWindowed, None);
        assert_eq!(filled(&windowed, Metric::SeekDistanceWindowed), [(Some(1), 3), (None, 1)]);
        assert_eq!(windowed.max, 1_000_000 - 31);
        let outstanding = of(&stats, Metric::Outstanding, None);
        let expected = [(Some(1), 2), (Some(2), 1), (Some(4), 2)];
        assert_eq!(filled(&outstanding, Metric::Outstanding), expected);
        let writes = of(&stats, Metric::Outstanding, Some(Direction::Write));
        assert_eq!(filled(&writes, Metric::Outstanding), [(Some(1), 1)]);
        let latency = of(&stats, Metric::Latency, None);
        assert_eq!((latency.count, latency.min, latency.max), (2, 200, 340));
        let between = of(&stats, Metric::Interarrival, Some(Direction::Read));
        assert_eq!(filled(&between, Metric::Interarrival), [(Some(500), 3)]);
        stats.reset();
        assert!(stats.bins().iter().all(|bins| bins.count == 0));
        stats.issue(at(800), read(0, 8));
        assert_eq!(of(&stats, Metric::Outstanding, None).max, 3, "those that are still there");
    }

    #[test]
    fn what_comes_when_its_time_is_over_is_not_counted() {
        let (begin, over) = (Time(SECOND), Time(SECOND + VscsiStats::TIME_NS));
        let mut stats = VscsiStats::STOPPED;
        stats.issue(Time::ZERO, read(0, 8));
        stats.start(begin);
        stats.issue(over, read(0, 8));
        stats.complete(over, over, Direction::Read);
        stats.issue(begin, VscsiCommand { direction: Direction::Other, ..read(0, 1) });
        assert!(stats.bins().iter().all(|bins| bins.count == 0));
        stats.issue(begin, read(u64::MAX, u64::MAX));
        stats.stop(begin + 5);
        stats.issue(begin + 6, read(0, 8));
        stats.start(begin + 7);
        stats.complete(begin + 8, begin + 6, Direction::Read);
        stats.issue(begin + 9, read(0, 8));
        assert_eq!(of(&stats, Metric::IoLength, None).count, 2);
        assert_eq!(of(&stats, Metric::Latency, None).count, 0);
        assert_eq!(of(&stats, Metric::Interarrival, None).count, 0, "since it was started again");
    }
}
