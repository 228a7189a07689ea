//! How long an array works on a command. Every server takes its commands in the order of their
//! arrival, and its next free instant is all there is to know, so the end of the service is a closed form at its beginning
//! (reference `simulation.md`, section 2b).

use alloc::{
    boxed::Box,
    collections::{BinaryHeap, VecDeque},
    vec,
    vec::Vec,
};
use core::cmp::Reverse;

use counters::{MILLISECOND, Op, SECOND, Time};

use crate::{
    command::{BLOCK, Command},
    config::{self, ByCommand, ServerQueue},
    curve::{ArrayUse, Curve},
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
    /// Servers whose time goes by the command.
    ByCommand(Box<Servers>),
    /// A write goes to several, and may be acknowledged before they are done.
    Spindles { raid: Raid, write_cache: Acknowledged },
    /// The same, where the time of each depends on where it is.
    Disks { disks: Disks, write_cache: Acknowledged },
    /// Servers before which a cache acknowledges writes.
    Cached { servers: Box<Servers>, write_cache: Acknowledged },
    /// Something is before the rest.
    Behind { front: Front, rest: Box<Self> },
    /// No stations: latency is read off a curve.
    Curve(Box<Curve>),
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

/// Servers whose time may go by the command: what a read without bytes takes, and what else there is. Behind a cache
/// those of one queue count as one that takes the next when any is idle.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    read_ns: u64,
    by: ByCommand,
    rest: Service,
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
            config::Service::Servers { servers, mean_ns, spread, queue, by, write_cache } => {
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
                if write_cache.is_none() && *by == ByCommand::default() {
                    return rest;
                }
                let servers = Box::new(Servers { read_ns: *mean_ns, by: *by, rest });
                if write_cache.is_none() {
                    return Self::ByCommand(servers);
                }
                let write_cache = Acknowledged::new(*write_cache, &*servers);
                Self::Cached { servers, write_cache }
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
            config::Service::Curve(points, spread, by) => {
                Self::Curve(Box::new(Curve::new(points, *spread, *by)))
            }
        }
    }

    /// The same with something before it.
    pub(crate) fn behind(self, front: &config::Front) -> Self {
        if *front == config::Front::default() {
            return self;
        }
        Self::Behind { front: Front::new(front), rest: Box::new(self) }
    }

    /// The curve that it is, where it is one.
    const fn curve(&self) -> Option<&Curve> {
        match self {
            Self::Curve(curve) => Some(curve),
            Self::Behind { rest, .. } => rest.curve(),
            _ => None,
        }
    }

    /// Whether it matters how many commands are outstanding.
    pub(crate) const fn minds_outstanding(&self) -> bool {
        self.curve().is_some()
    }

    /// How its curve was used, where it has one.
    pub(crate) fn read(&self) -> ArrayUse {
        self.curve().map_or_else(ArrayUse::default, |curve| curve.read)
    }

    /// When a command that arrives now is served; `outstanding` counts it already. Its turn is not kept.
    #[inline(always)]
    pub(crate) fn serve(
        &mut self,
        arrive: Time,
        command: impl Fn() -> Command,
        outstanding: u32,
        random: &mut Random,
    ) -> Time {
        match self {
            Self::Servers(stations) => stations.serve(arrive, random).ends,
            _ => self.serve_apart(arrive, &command(), outstanding, random),
        }
    }

    /// The same, out of the way of arrays that do not need it; for [`Service::turn`].
    #[inline(never)]
    pub(crate) fn serve_apart(
        &mut self,
        arrive: Time,
        command: &Command,
        outstanding: u32,
        random: &mut Random,
    ) -> Time {
        match self {
            Self::Servers(stations) => {
                stations.turn = stations.serve(arrive, random);
                stations.turn.ends
            }
            Self::Shared(pool) => pool.serve(arrive, random),
            Self::Behind { front, rest } => front.serve(arrive, command, outstanding, random, rest),
            Self::Spindles { raid, write_cache } => {
                write_cache.serve(arrive, command, raid, random)
            }
            Self::Disks { disks, write_cache } => write_cache.serve(arrive, command, disks, random),
            Self::Cached { servers, write_cache } => {
                write_cache.serve(arrive, command, &mut **servers, random)
            }
            Self::Curve(curve) => arrive + curve.latency(command, outstanding, random),
            Self::ByCommand(servers) => servers.serve(arrive, command, random),
        }
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
            Self::ByCommand(servers) => servers.rest.turn(),
            _ => None,
        }
    }

    /// A command that has not begun has no need of its turn any more.
    pub(crate) fn give_back(&mut self, turn: Turn) {
        match self {
            Self::Servers(of) => of.holes.give(turn, &mut of.free[turn.server as usize]),
            Self::Shared(of) => of.holes.give(turn, &mut { Time::NEVER }),
            Self::ByCommand(servers) => servers.rest.give_back(turn),
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

impl Spindles for Servers {
    fn serve(&mut self, arrive: Time, command: &Command, random: &mut Random) -> Time {
        self.rest.set_mean(self.by.mean_ns(self.read_ns, command.is_write(), command.bytes));
        self.rest.serve_apart(arrive, command, 0, random)
    }

    fn count(&self) -> usize {
        if let Service::Servers(stations) = &self.rest { stations.free.len() } else { 1 }
    }

    fn cut(&self, command: &Command, random: &mut Random, pieces: &mut Vec<Piece>) {
        let spindle = below_low(random.bits(), self.count() as u32) as usize;
        let Command { block, bytes, .. } = *command;
        let bytes = u64::from(bytes);
        let is_write = command.is_write();
        pieces.push(Piece { spindle, place: 0, block, bytes, is_write, kept: bytes });
    }

    fn free(&self, spindle: usize) -> Time {
        match &self.rest {
            Service::Servers(stations) => stations.free[spindle],
            Service::Shared(pool) => pool.free.peek().map_or(Time::ZERO, |first| first.0),
            _ => Time::ZERO,
        }
    }

    fn work(&mut self, at: Time, piece: &Piece, random: &mut Random) -> Time {
        self.rest.set_mean(self.by.mean_ns(self.read_ns, piece.is_write, piece.bytes as u32));
        match &mut self.rest {
            Service::Servers(stations) => stations.serve_on(piece.spindle, at, random.bits()).ends,
            Service::Shared(pool) => pool.serve(at, random),
            _ => at,
        }
    }
}

impl Spindles for Raid {
    fn serve(&mut self, arrive: Time, command: &Command, random: &mut Random) -> Time {
        let copies = if command.is_write() { self.write_penalty } else { 1 };
        let slowest = (0..copies).map(|_| self.stations.serve(arrive, random).ends).max();
        slowest.unwrap_or(arrive)
    }

    fn count(&self) -> usize {
        self.stations.free.len()
    }

    fn cut(&self, command: &Command, random: &mut Random, pieces: &mut Vec<Piece>) {
        let is_write = command.is_write();
        let copies = if is_write { self.write_penalty } else { 1 };
        let block = command.block;
        let bytes = u64::from(command.bytes);
        for copy in 0..copies {
            let spindle = below_low(random.bits(), self.stations.free.len() as u32) as usize;
            let kept = if copy == 0 { bytes } else { 0 };
            pieces.push(Piece { spindle, place: 0, block, bytes, is_write, kept });
        }
    }

    fn free(&self, spindle: usize) -> Time {
        self.stations.free[spindle]
    }

    fn work(&mut self, at: Time, piece: &Piece, random: &mut Random) -> Time {
        self.stations.serve_on(piece.spindle, at, random.bits()).ends
    }
}

/// What stands before the rest.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    overhead_ns: u64,
    /// Of 2^32 reads so many hit, and take so long.
    hits: u64,
    hit_ns: u64,
    /// When those end that are under way, where the rest minds how many it has.
    hits_end: VecDeque<Time>,
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
    /// When its next command comes, and where it is, in blocks.
    next: Time,
    block: u64,
    /// When those end that are under way.
    ends: BinaryHeap<Reverse<Time>>,
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
            let (by, write_cache) = (ByCommand::default(), None);
            Box::new(Service::new(&config::Service::Servers {
                servers,
                mean_ns,
                spread,
                queue,
                by,
                write_cache,
            }))
        });
        Self {
            overhead_ns: config.overhead_ns,
            hits: of_32_bits(reads.0),
            hit_ns: reads.1,
            hits_end: VecDeque::new(),
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
        mut outstanding: u32,
        random: &mut Random,
        rest: &mut Service,
    ) -> Time {
        while self.hits_end.front().is_some_and(|end| *end <= arrive) {
            self.hits_end.pop_front();
        }
        outstanding = outstanding.saturating_sub(self.hits_end.len() as u32);
        if let Some(background) = &mut self.background {
            let own = background.catch_up(arrive, outstanding, random, rest);
            outstanding = outstanding.saturating_add(own);
        }
        if let (Op::Copy, Some(copier)) = (command.op, &mut self.copier) {
            // One after the other, and beside all else (ruling: nobody says what it takes from that).
            return arrive + copier.send(arrive, command.bytes) + self.overhead_ns;
        }
        let may_hit = self.hits > 0 && command.op == Op::Read;
        let served = if may_hit && random.bits() >> 32 < self.hits {
            if rest.minds_outstanding() {
                self.hits_end.push_back(arrive + self.hit_ns);
            }
            arrive + self.hit_ns
        } else {
            let tier = self.tier.as_deref_mut().filter(|_| random.bits() >> 32 < self.of_tier);
            tier.unwrap_or(rest).serve_apart(arrive, command, outstanding, random)
        };
        served + self.overhead_ns
    }
}

impl Background {
    fn new(config: config::Background) -> Self {
        let between_ns = (SECOND as f64 / config.rate.clamp(1e-3, 1e6)) as u64;
        let between = Duration::new(between_ns, config::Spread::Exponential);
        Self { config, between, next: config.from, block: 0, ends: BinaryHeap::new() }
    }

    /// Does what came until now, beside so many of hosts, and has so many under way then.
    fn catch_up(
        &mut self,
        now: Time,
        of_hosts: u32,
        random: &mut Random,
        rest: &mut Service,
    ) -> u32 {
        let config::Background { outstanding, from, until, .. } = self.config;
        while self.next <= now && self.next < until {
            if self.next > from {
                self.end(self.next);
                let under_way = self.ends.len() as u32;
                if let (true, Some(first)) = (under_way >= outstanding.max(1), self.ends.peek()) {
                    // What is not done in time is late, and does not pile up.
                    self.next = first.0;
                    continue;
                }
                let command = self.command(random);
                let all = of_hosts.saturating_add(under_way);
                self.ends.push(Reverse(rest.serve_apart(self.next, &command, all, random)));
            }
            self.next = self.next + self.between.draw(random.bits()).max(1);
        }
        self.end(now);
        self.ends.len() as u32
    }

    /// What has ended is not under way any more.
    fn end(&mut self, now: Time) {
        while self.ends.peek().is_some_and(|end| end.0 <= now) {
            self.ends.pop();
        }
    }

    /// The next one, where the last one ended.
    fn command(&mut self, random: &mut Random) -> Command {
        let config::Background { read_share, bytes, .. } = self.config;
        let is_read = random.bits() >> 32 < of_32_bits(read_share);
        let op = if is_read { Op::Read } else { Op::Write };
        let block = self.block;
        self.block = (block + u64::from(bytes).div_ceil(BLOCK)) & (u64::MAX >> 16);
        Command { volume: 0, host: 0, path: 0, op, block, bytes }
    }
}

impl Stations {
    fn new(servers: u32, time: Duration) -> Self {
        let servers = servers.clamp(1, SERVERS_MAX) as usize;
        let (turn, holes) = (Turn::default(), Holes::default());
        Self { free: vec![Time::ZERO; servers].into(), time, turn, holes }
    }

    #[inline(always)]
    fn serve(&mut self, arrive: Time, random: &mut Random) -> Turn {
        let bits = random.bits();
        let server = below_low(bits, self.free.len() as u32) as usize;
        self.serve_on(server, arrive, bits)
    }

    #[inline(always)]
    fn serve_on(&mut self, server: usize, arrive: Time, bits: u64) -> Turn {
        let of = (server as u32, arrive, self.time.draw(bits));
        self.holes.turn(of, &mut self.free[server])
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Spread;

    fn of(op: Op) -> Command {
        Command { volume: 0, host: 0, path: 0, op, block: 0, bytes: 4096 }
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
            assert_eq!(pool.serve_apart(Time(0), &of(Op::Write), 1, &mut random), Time(done));
            assert_eq!(pool.serve_apart(Time(0), &of(Op::Read), 2, &mut random), Time(done + 10));
        }
    }

    #[test]
    fn a_cached_write_is_acknowledged_early_and_still_occupies_the_spindles() {
        let mut random = Random::new(1);
        let mut pool = raid(4, Some(3));
        assert_eq!(pool.serve_apart(Time(0), &of(Op::Write), 1, &mut random), Time(3));
        assert_eq!(pool.serve_apart(Time(0), &of(Op::Read), 1, &mut random), Time(50));
    }

    #[test]
    fn a_full_cache_takes_writes_as_fast_as_the_spindles() {
        let mut random = Random::new(1);
        let mut pool = raid(1, Some(3));
        let writes = WRITE_BEHIND_MAX_NS / 10;
        let mut acknowledged = || pool.serve_apart(Time(0), &of(Op::Write), 1, &mut random);
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
        let mut block = 0;
        let mut serve = |at, op| {
            block += 1;
            pool.serve_apart(Time(at), &Command { block, ..of(op) }, 1, &mut random).0
        };
        assert_eq!([0; 3].map(|at| serve(at, Op::Write)), [3; 3]);
        assert_eq!(serve(0, Op::Write), 10, "full: through to the spindle, before what is kept");
        assert_eq!(serve(1, Op::Read), 20, "before what is kept as well");
        assert_eq!(serve(25, Op::Write), 28, "one was taken at 20");
        assert_eq!(serve(26, Op::Read), 40, "after that one, before the others");
        assert_eq!(serve(65, Op::Read), 80, "two more are through at 60, the last at 70");
        assert_eq!(serve(100, Op::Read), 110);
    }

    /// As above; what is behind is read and written in the cache, as a whole, until the spindle takes it.
    #[test]
    fn what_is_behind_is_rewritten_and_read_in_the_cache() {
        for queue in [ServerQueue::Random, ServerQueue::Shared] {
            let mut one = Service::new(&config::Service::Servers {
                servers: 1,
                mean_ns: 10,
                spread: Spread::Constant,
                queue,
                by: ByCommand { write_ns: Some(20), ..ByCommand::default() },
                write_cache: Some(config::WriteCache { ack_ns: 3, bytes: Some(4 * 4096) }),
            });
            let mut random = Random::new(1);
            let mut serve = |at, op, block, blocks: u32| {
                let command = Command { block, bytes: blocks * 4096, ..of(op) };
                one.serve_apart(Time(at), &command, 1, &mut random).0
            };
            assert_eq!(serve(0, Op::Read, 9, 1), 10);
            assert_eq!(serve(0, Op::Write, 0, 2), 3);
            assert_eq!(serve(0, Op::Write, 2, 2), 3);
            assert_eq!(serve(1, Op::Write, 1, 2), 4, "of two writes, and no room is needed");
            assert_eq!(serve(1, Op::Read, 0, 4), 4);
            assert_eq!(serve(1, Op::Read, 3, 2), 20, "one block is not there");
            assert_eq!(
                serve(21, Op::Write, 0, 2),
                24,
                "the first was taken at 20, and there is room again"
            );
            assert_eq!(serve(21, Op::Write, 8, 1), 60, "full: after that one, 20 for each write");
            assert_eq!(serve(61, Op::Read, 2, 2), 90, "taken at 60");
            assert_eq!(serve(61, Op::Read, 0, 2), 64, "the later one is behind still");
        }
    }

    /// Runs behind each other pass under the head: a stream of one at a time, and never more, is as fast as the disk.
    #[test]
    fn a_background_is_a_stream_and_what_is_late_does_not_pile_up() {
        let disk = config::Service::Disks(config::Disks {
            disks: 1,
            data_disks: 1,
            bytes: 146 << 30,
            turn_ns: 4 * MILLISECOND,
            seek_ns: 3 * MILLISECOND,
            bytes_per_sec: 65_536_000,
            stripe_bytes: 64 << 10,
            elevator: 1,
            write_penalty: 1,
            write_cache: None,
        });
        let front = config::Front {
            background: Some(config::Background {
                rate: 1e6,
                outstanding: 1,
                read_share: 1.0,
                bytes: 65_536,
                from: Time(0),
                until: Time::NEVER,
            }),
            ..config::Front::default()
        };
        let mut array = Service::new(&disk).behind(&front);
        let mut random = Random::new(1);
        let read = Command { block: 1 << 20, ..of(Op::Read) };
        let served = array.serve_apart(Time(SECOND), &read, 1, &mut random);
        // What it has begun, the way there, a turn at most, and 4 KiB of it.
        assert!(served.since(Time(SECOND)) < 9 * MILLISECOND, "{served:?}");
        let Service::Behind { front, .. } = array else { unreachable!() };
        let done = front.background.map_or(0, |background| background.block / 16);
        assert!((990..=1_001).contains(&done), "{done} of a millisecond");
    }

    /// What a cache answers and what the array does for itself is not what hosts have outstanding on its curve.
    #[test]
    fn a_curve_counts_its_own_commands_and_not_those_of_its_cache() {
        let curve = config::Service::Curve(
            vec![(1, 1_000), (101, 101_000)],
            Spread::Constant,
            ByCommand::default(),
        );
        let mut random = Random::new(1);
        let reads = Some(config::ReadCache { hits: 1.0, hit_ns: 50 });
        let mut array =
            Service::new(&curve).behind(&config::Front { reads, ..config::Front::default() });
        for at in 0..10 {
            array.serve_apart(Time(at), &of(Op::Read), at as u32 + 1, &mut random);
        }
        assert_eq!(array.serve_apart(Time(10), &of(Op::Write), 11, &mut random), Time(1_010));
        assert_eq!(array.serve_apart(Time(55), &of(Op::Write), 12, &mut random), Time(8_055));
    }
}
