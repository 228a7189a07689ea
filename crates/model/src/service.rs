//! How long an array works on a command. Every server takes its commands in the order of their
//! arrival, and its next free instant is all there is to know, so the end of the service is a closed form at its beginning
//! (reference `simulation.md`, section 2b).

use alloc::{boxed::Box, collections::BinaryHeap, vec, vec::Vec};
use core::cmp::Reverse;

use counters::{MILLISECOND, Op, SECOND, Time};

use crate::{
    command::Command,
    config::{self, ByCommand, ServerQueue, Spread},
    disks::Disks,
    fabric::Link,
    holes::{Holes, Turn},
    random::{Random, below_low},
    spread::Duration,
    write_cache::{Piece, Spindles, WriteCache},
};

/// The servers of an array. Commands must come in the order of their arrival.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    /// Each command goes to one random station.
    Servers(Stations),
    /// The first one that is idle takes the command that has waited longest.
    Shared(Pool),
    /// Servers whose time goes by the command: what a read without bytes takes, and what else there is.
    ByCommand { read_ns: u64, by: ByCommand, rest: Box<Self> },
    /// A write goes to several, and may be acknowledged before they are done.
    Spindles { raid: Raid, write_cache: Acknowledged },
    /// The same, where the time of each depends on where it is.
    Disks { disks: Disks, write_cache: Acknowledged },
    /// Something is before the rest.
    Behind { front: Front, rest: Box<Self> },
    /// No stations: latency is read off a curve.
    Curve { points: Box<[(u32, u64)]>, time: Option<Duration>, read: ArrayUse },
}

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

/// Equal FIFO servers.
#[derive(Clone, Debug)]
pub(crate) struct Stations {
    /// When each has served what it accepted.
    free: Box<[Time]>,
    time: Duration,
    /// The last command's, and those that were given back.
    turn: Turn,
    holes: Holes,
}

/// Equal servers of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    free: BinaryHeap<Reverse<Time>>,
    time: Duration,
    /// As of [`Stations`], all as if of one: which server it is does not matter.
    turn: Turn,
    holes: Holes,
}

/// Stations of which a write goes to several.
#[derive(Clone, Debug)]
pub(crate) struct Raid {
    stations: Stations,
    write_penalty: u32,
}

/// When writes are acknowledged.
#[derive(Clone, Debug)]
pub(crate) enum Acknowledged {
    /// When all spindles are through with them.
    Through,
    /// After so many nanoseconds, where the spindles are not far behind.
    Early(u64),
    /// By a cache that keeps them.
    Kept(WriteCache),
}

/// Back-end I/Os of a write at most; the worst RAID level needs 6.
const WRITE_PENALTY_MAX: u32 = 64;
/// How far the spindles may be behind the cache before it is full. No source gives a figure; a
/// tenth of a second is some 15 writes a disk (section 7.2), and bounds what reads wait.
const WRITE_BEHIND_MAX_NS: u64 = 100 * MILLISECOND;
/// Servers of an array at most.
const SERVERS_MAX: u32 = 1 << 16;

impl Service {
    pub(crate) fn new(config: &config::Service) -> Self {
        match config {
            config::Service::Servers { servers, mean_ns, spread, queue, by } => {
                let time = Duration::new(*mean_ns, *spread);
                let rest = match queue {
                    ServerQueue::Random => Self::Servers(Stations::new(*servers, time)),
                    ServerQueue::Shared => {
                        let servers = (*servers).clamp(1, SERVERS_MAX) as usize;
                        let free = vec![Reverse(Time::ZERO); servers].into();
                        let (turn, holes) = (Turn::default(), Holes::default());
                        Self::Shared(Pool { free, time, turn, holes })
                    }
                };
                if *by == ByCommand::default() {
                    return rest;
                }
                Self::ByCommand { read_ns: *mean_ns, by: *by, rest: Box::new(rest) }
            }
            config::Service::Spindles { spindles, mean_ns, spread, write_penalty, write_cache } => {
                let raid = Raid {
                    stations: Stations::new(*spindles, Duration::new(*mean_ns, *spread)),
                    write_penalty: (*write_penalty).clamp(1, WRITE_PENALTY_MAX),
                };
                let write_cache = Acknowledged::new(*write_cache, &raid);
                Self::Spindles { raid, write_cache }
            }
            config::Service::Disks(config) => {
                let disks = Disks::new(config);
                let write_cache = Acknowledged::new(config.write_cache, &disks);
                Self::Disks { disks, write_cache }
            }
            config::Service::Curve(points, spread) => Self::Curve {
                points: points.as_slice().into(),
                time: (*spread != Spread::Constant).then(|| Duration::new(0, *spread)),
                read: ArrayUse::default(),
            },
        }
    }

    /// The same with something before it; a curve says all that there is.
    pub(crate) fn behind(self, front: &config::Front) -> Self {
        if *front == config::Front::default() || matches!(self, Self::Curve { .. }) {
            return self;
        }
        Self::Behind { front: Front::new(front), rest: Box::new(self) }
    }

    /// When a command that arrives now is served; `outstanding` counts it already.
    #[inline(always)]
    pub(crate) fn serve(
        &mut self,
        arrive: Time,
        command: &Command,
        outstanding: u32,
        random: &mut Random,
    ) -> Time {
        match self {
            Self::Servers(stations) => stations.serve(arrive, random),
            Self::Shared(pool) => pool.serve(arrive, random),
            Self::Behind { front, rest } => front.serve(arrive, command, outstanding, random, rest),
            Self::Spindles { raid, write_cache } => {
                write_cache.serve(arrive, command, raid, random)
            }
            Self::Disks { disks, write_cache } => write_cache.serve(arrive, command, disks, random),
            Self::Curve { points, time, read } => {
                let last = points.last().map_or(u32::MAX, |&(outstanding, _)| outstanding);
                read.served += 1;
                read.beyond += u64::from(outstanding > last);
                let mean = latency_at(points, outstanding);
                arrive
                    + time.as_mut().map_or(mean, |time| {
                        time.set_mean(mean);
                        time.draw(random.bits())
                    })
            }
            Self::ByCommand { read_ns, by, rest } => {
                rest.set_mean(by.mean_ns(*read_ns, command.is_write(), command.bytes));
                rest.serve_apart(arrive, command, random)
            }
        }
    }

    /// The same, out of the way of arrays that do not need it.
    #[inline(never)]
    fn serve_apart(&mut self, arrive: Time, command: &Command, random: &mut Random) -> Time {
        self.serve(arrive, command, 0, random)
    }

    fn set_mean(&mut self, mean: u64) {
        if let Self::Servers(Stations { time, .. }) | Self::Shared(Pool { time, .. }) = self {
            time.set_mean(mean);
        }
    }
}

impl Service {
    /// When a server works on the command that came last, where that is all that there is of it.
    pub(crate) const fn turn(&self) -> Option<Turn> {
        match self {
            Self::Servers(Stations { turn, .. }) | Self::Shared(Pool { turn, .. }) => Some(*turn),
            Self::ByCommand { rest, .. } => rest.turn(),
            _ => None,
        }
    }

    /// A command that has not begun has no need of its turn any more.
    pub(crate) fn give_back(&mut self, turn: Turn) {
        match self {
            Self::Servers(of) => of.holes.give(turn, &mut of.free[turn.server as usize]),
            Self::Shared(of) => of.holes.give(turn, &mut { Time::NEVER }),
            Self::ByCommand { rest, .. } => rest.give_back(turn),
            _ => {}
        }
    }
}

impl Acknowledged {
    fn new(config: Option<config::WriteCache>, spindles: &impl Spindles) -> Self {
        match config {
            None => Self::Through,
            Some(config::WriteCache { ack_ns, bytes: None }) => Self::Early(ack_ns),
            Some(config::WriteCache { ack_ns, bytes: Some(bytes) }) => {
                Self::Kept(WriteCache::new(ack_ns, bytes, spindles))
            }
        }
    }

    fn serve(
        &mut self,
        arrive: Time,
        command: &Command,
        spindles: &mut impl Spindles,
        random: &mut Random,
    ) -> Time {
        if let Self::Kept(cache) = self {
            return cache.serve(arrive, command, spindles, random);
        }
        let through = spindles.serve(arrive, command, random);
        match self {
            Self::Early(ack_ns) if command.is_write() => {
                let room = Time(through.0.saturating_sub(WRITE_BEHIND_MAX_NS));
                room.max(arrive + *ack_ns)
            }
            _ => through,
        }
    }
}

impl Spindles for Raid {
    fn serve(&mut self, arrive: Time, command: &Command, random: &mut Random) -> Time {
        let copies = if command.is_write() { self.write_penalty } else { 1 };
        let slowest = (0..copies).map(|_| self.stations.serve(arrive, random)).max();
        slowest.unwrap_or(arrive)
    }

    fn count(&self) -> usize {
        self.stations.free.len()
    }

    fn cut(&self, command: &Command, random: &mut Random, pieces: &mut Vec<Piece>) {
        let copies = if command.is_write() { self.write_penalty } else { 1 };
        let bytes = u64::from(command.bytes);
        for copy in 0..copies {
            let spindle = below_low(random.bits(), self.stations.free.len() as u32) as usize;
            let kept = if copy == 0 { bytes } else { 0 };
            pieces.push(Piece { spindle, place: 0, bytes, kept });
        }
    }

    fn free(&self, spindle: usize) -> Time {
        self.stations.free[spindle]
    }

    fn work(&mut self, at: Time, piece: &Piece, random: &mut Random) -> Time {
        self.stations.serve_on(piece.spindle, at, random.bits())
    }
}

/// What stands before the rest.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    overhead_ns: u64,
    /// Of 2^32 reads so many hit, and take so long.
    hits: u64,
    hit_ns: u64,
    /// Of 2^32 commands so many go to the fast tier.
    of_tier: u64,
    tier: Option<Box<Service>>,
    background: Option<Background>,
    copier: Option<Link>,
}

/// What an array does by itself, in the order of its own arrivals.
#[derive(Clone, Debug)]
struct Background {
    config: config::Background,
    between: Duration,
    /// When its next command comes.
    next: Time,
}

/// Bits of a random number for a share of 2^32.
fn of_32_bits(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * (1_u64 << 32) as f64) as u64
}

impl Front {
    fn new(config: &config::Front) -> Self {
        let reads = config.reads.map_or((0.0, 0), |reads| (reads.hits, reads.hit_ns));
        let tier = config.tier.map(|tier| {
            let config::Tier { servers, mean_ns, spread, queue, .. } = tier;
            let by = ByCommand::default();
            Box::new(Service::new(&config::Service::Servers {
                servers,
                mean_ns,
                spread,
                queue,
                by,
            }))
        });
        Self {
            overhead_ns: config.overhead_ns,
            hits: of_32_bits(reads.0),
            hit_ns: reads.1,
            of_tier: of_32_bits(config.of_tier()),
            tier,
            background: config.background.map(Background::new),
            copier: config.copier_bytes_per_sec.map(Link::new),
        }
    }

    #[inline(never)]
    fn serve(
        &mut self,
        arrive: Time,
        command: &Command,
        outstanding: u32,
        random: &mut Random,
        rest: &mut Service,
    ) -> Time {
        if let Some(background) = &mut self.background {
            background.catch_up(arrive, random, rest);
        }
        if let (Op::Copy, Some(copier)) = (command.op, &mut self.copier) {
            // One after the other, and beside all else (ruling: nobody says what it takes from that).
            return arrive + copier.send(arrive, command.bytes) + self.overhead_ns;
        }
        let may_hit = self.hits > 0 && command.op == Op::Read;
        let served = if may_hit && random.bits() >> 32 < self.hits {
            arrive + self.hit_ns
        } else {
            let tier = self.tier.as_deref_mut().filter(|_| random.bits() >> 32 < self.of_tier);
            tier.unwrap_or(rest).serve(arrive, command, outstanding, random)
        };
        served + self.overhead_ns
    }
}

impl Background {
    fn new(config: config::Background) -> Self {
        let between_ns = (SECOND as f64 / config.rate.clamp(1e-3, 1e6)) as u64;
        let between = Duration::new(between_ns, config::Spread::Exponential);
        Self { config, between, next: config.from }
    }

    /// Does what came until now.
    fn catch_up(&mut self, now: Time, random: &mut Random, rest: &mut Service) {
        let config::Background { read_share, bytes, from, until, .. } = self.config;
        while self.next <= now && self.next < until {
            if self.next > from {
                let op =
                    if random.bits() >> 32 < of_32_bits(read_share) { Op::Read } else { Op::Write };
                let block = random.bits() >> 16;
                let command = Command { volume: 0, host: 0, path: 0, op, block, bytes };
                rest.serve_apart(self.next, &command, random);
            }
            self.next = self.next + self.between.draw(random.bits()).max(1);
        }
    }
}

impl Stations {
    fn new(servers: u32, time: Duration) -> Self {
        let servers = servers.clamp(1, SERVERS_MAX) as usize;
        let (turn, holes) = (Turn::default(), Holes::default());
        Self { free: vec![Time::ZERO; servers].into(), time, turn, holes }
    }

    #[inline(always)]
    fn serve(&mut self, arrive: Time, random: &mut Random) -> Time {
        let bits = random.bits();
        let server = below_low(bits, self.free.len() as u32) as usize;
        self.serve_on(server, arrive, bits)
    }

    #[inline(always)]
    fn serve_on(&mut self, server: usize, arrive: Time, bits: u64) -> Time {
        let of = (server as u32, arrive, self.time.draw(bits));
        self.turn = self.holes.turn(of, &mut self.free[server]);
        self.turn.ends
    }
}

impl Pool {
    #[inline(always)]
    fn serve(&mut self, arrive: Time, random: &mut Random) -> Time {
        let of = (0, arrive, self.time.draw(random.bits()));
        let Some(mut first) = self.free.peek_mut() else { return arrive };
        self.turn = self.holes.turn(of, &mut first.0);
        self.turn.ends
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

    fn of(op: Op) -> Command {
        Command { volume: 0, host: 0, path: 0, op, block: 0, bytes: 4096 }
    }

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

    fn raid(write_penalty: u32, ack_ns: Option<u64>) -> Service {
        Service::new(&config::Service::Spindles {
            spindles: 1,
            mean_ns: 10,
            spread: Spread::Constant,
            write_penalty,
            write_cache: ack_ns.map(|ack_ns| config::WriteCache { ack_ns, bytes: None }),
        })
    }

    #[test]
    fn a_write_costs_its_penalty_and_a_read_one() {
        let mut random = Random::new(1);
        for (penalty, done) in [(1, 10), (2, 20), (4, 40), (6, 60)] {
            let mut pool = raid(penalty, None);
            assert_eq!(pool.serve(Time(0), &of(Op::Write), 1, &mut random), Time(done));
            assert_eq!(pool.serve(Time(0), &of(Op::Read), 2, &mut random), Time(done + 10));
        }
    }

    #[test]
    fn a_cached_write_is_acknowledged_early_and_still_occupies_the_spindles() {
        let mut random = Random::new(1);
        let mut pool = raid(4, Some(3));
        assert_eq!(pool.serve(Time(0), &of(Op::Write), 1, &mut random), Time(3));
        assert_eq!(pool.serve(Time(0), &of(Op::Read), 1, &mut random), Time(50));
    }

    #[test]
    fn a_full_cache_takes_writes_as_fast_as_the_spindles() {
        let mut random = Random::new(1);
        let mut pool = raid(1, Some(3));
        let writes = WRITE_BEHIND_MAX_NS / 10;
        let mut acknowledged = || pool.serve(Time(0), &of(Op::Write), 1, &mut random);
        assert!((0..writes).all(|_| acknowledged() == Time(3)));
        assert_eq!([acknowledged(), acknowledged()], [Time(10), Time(20)]);
    }

    /// One spindle that takes 10 ns, and a cache with room for three writes.
    #[test]
    fn what_a_cache_keeps_is_written_when_its_spindle_has_nothing_else_to_do() {
        let mut pool = Service::new(&config::Service::Spindles {
            spindles: 1,
            mean_ns: 10,
            spread: Spread::Constant,
            write_penalty: 1,
            write_cache: Some(config::WriteCache { ack_ns: 3, bytes: Some(3 * 4096) }),
        });
        let mut random = Random::new(1);
        let mut serve = |at, op| pool.serve(Time(at), &of(op), 1, &mut random).0;
        assert_eq!([0; 3].map(|at| serve(at, Op::Write)), [3; 3]);
        assert_eq!(serve(0, Op::Write), 10, "full: through to the spindle, before what is kept");
        assert_eq!(serve(1, Op::Read), 20, "before what is kept as well");
        assert_eq!(serve(25, Op::Write), 28, "one was taken at 20");
        assert_eq!(serve(26, Op::Read), 40, "after that one, before the others");
        assert_eq!(serve(65, Op::Read), 80, "two more are through at 60, the last at 70");
        assert_eq!(serve(100, Op::Read), 110);
    }
}
