//! The way between host and array: round trips, and links with a rate in each direction: one for all, and one
//! of each target port.

use alloc::{collections::BTreeMap, vec, vec::Vec};

use counters::{Op, SECOND, Time};

use crate::{
    command::Carried,
    config::{ArrayConfig, WriteProtocol},
};

/// The fabric between the hosts and one array.
#[derive(Clone, Debug)]
pub(crate) struct Fabric {
    /// From the host to the array, and back.
    pub(crate) out_ns: u64,
    pub(crate) back_ns: u64,
    writes: Rounds,
    /// To the host and to the array; `None` is unlimited.
    links: Option<[Link; 2]>,
    /// The same of each port; empty is unlimited.
    ports: Vec<[Link; 2]>,
    /// Whether there is no link of either kind.
    is_unlimited: bool,
    /// What each of two controllers does a second, where that has a limit.
    gates: Option<[Link; 2]>,
    /// From when to when a host's connection, by the nexus that it has, waits for what was lost; empty where nothing is.
    held_up: BTreeMap<(u32, u32), (Time, Time)>,
    /// Of the command that comes next, where there are controllers.
    pub(crate) held: Held,
}

/// Which of two controllers works on a command, and for how long it is held before that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub(crate) by: usize,
    pub(crate) ns: u64,
}

/// What data cost a command, beside the way out and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// Further round trips and time on the link.
    pub(crate) total_ns: u64,
    /// The part of it that the array does not count as its own latency.
    pub(crate) uncounted_ns: u64,
}

impl Fabric {
    pub(crate) fn new(config: &ArrayConfig) -> Self {
        let out_ns = config.round_trip_ns / 2;
        // Ports of controllers have links, be they without an end: who has none asks for no more.
        let unlimited = config.queues.controllers.map(|_| u64::MAX);
        let rate = config.queues.port_bytes_per_sec.or(unlimited);
        let iops = config.queues.controllers.and_then(|both| both.iops);
        Self {
            out_ns,
            back_ns: config.round_trip_ns - out_ns,
            writes: Rounds::of(config.write_protocol),
            links: config.link_bytes_per_sec.map(Link::pair),
            ports: rate.map_or_else(Vec::new, |rate| {
                vec![Link::pair(rate); config.queues.ports.max(1) as usize]
            }),
            is_unlimited: config.link_bytes_per_sec.is_none() && rate.is_none(),
            gates: iops.map(|iops| Link::pair(iops.into())),
            held_up: BTreeMap::new(),
            held: Held::default(),
        }
    }

    /// Moves the data of a command that arrives at the array now, by one of its ports.
    ///
    /// Time on the link, for a controller and further round trips are added to the service instead of standing
    /// before it: then commands reach the servers in the order of dispatch, the sum and the rate
    /// are the same, and writes that wait for the link do not delay reads that need not.
    ///
    /// The array's timer runs while the data of a further round trip come, because the array
    /// asked for them; otherwise it has stopped or not begun while data are on the link [S0].
    ///
    /// The link of all ports comes first: what leaves it leaves it in order, so each port's sees time go
    /// forward. The host's own link does not come before them but beside: data cross both at once, frame by frame,
    /// so of the two waits the longer one is what counts.
    #[inline(always)]
    pub(crate) fn transfer(
        &mut self,
        arrive: Time,
        port: usize,
        (op, bytes): (Op, u32),
        carried: &Carried,
    ) -> Transfer {
        let rounds = match carried.further_rounds {
            None if is_write(op) => self.writes.further(bytes),
            None => 0,
            Some(rounds) => rounds,
        };
        let round_trip_ns = self.out_ns + self.back_ns;
        // Most commands have no further round.
        let rounds_ns = if rounds == 0 { 0 } else { rounds.saturating_mul(round_trip_ns) };
        if self.is_unlimited && carried.link_ns == 0 {
            return Transfer { total_ns: rounds_ns, uncounted_ns: 0 };
        }
        self.cross(arrive, port, (op, bytes), (rounds, rounds_ns), carried)
    }

    /// The same where there are links.
    #[inline(never)]
    fn cross(
        &mut self,
        arrive: Time,
        port: usize,
        (op, bytes): (Op, u32),
        (rounds, rounds_ns): (u64, u64),
        carried: &Carried,
    ) -> Transfer {
        let writes = is_write(op);
        let moved = if op.moves_data() { bytes } else { 0 };
        let links = self.links.iter_mut().chain(self.ports.get_mut(port));
        let link_ns = links.fold(0_u64, |ns, pair| {
            ns.saturating_add(pair[usize::from(writes)].send(arrive + ns, moved))
        });
        let link_ns = link_ns.max(carried.link_ns);
        Transfer {
            total_ns: rounds_ns.saturating_add(link_ns).saturating_add(self.controller(arrive)),
            uncounted_ns: if rounds == 0 { link_ns } else { 0 },
        }
    }

    /// When a host has an answer that leaves the array now. What was lost is sent again segment by segment, each when
    /// the acknowledgement of the one before it has come, and until then nothing that is behind on the connection
    /// reaches the host's driver: TCP hands over in order [RFC9293].
    #[inline(always)]
    pub(crate) fn deliver(&mut self, leaves: Time, host: u32, carried: &Carried) -> Time {
        let at = leaves + self.back_ns;
        match carried.ordered_by {
            None => at,
            Some(by) => self.deliver_in_order(at, (host, by), carried),
        }
    }

    #[cold]
    fn deliver_in_order(&mut self, comes: Time, by: (u32, u32), carried: &Carried) -> Time {
        let (from, until) = self.held_up.entry(by).or_default();
        let is_behind = comes >= *from && comes < *until;
        let at = if is_behind { *until } else { comes };
        if carried.lost == 0 {
            return at;
        }
        let each_ns = (self.out_ns + self.back_ns).saturating_add(carried.ack_ns);
        let at = at + u64::from(carried.lost).saturating_mul(each_ns);
        // What comes before that and was sent later is not held up.
        *from = if comes < *until { comes.min(*from) } else { comes };
        *until = at.max(*until);
        at
    }

    /// Nanoseconds that the command which has come waits for its controller.
    #[cold]
    fn controller(&mut self, arrive: Time) -> u64 {
        let Held { by, ns } = self.held;
        let gate = self.gates.as_mut().map_or(0, |gates| gates[by].send(arrive, 1));
        ns.saturating_add(gate)
    }
}

/// Whether data go to the array with a command.
pub(crate) const fn is_write(op: Op) -> bool {
    matches!(op, Op::Write | Op::WriteFua | Op::Ats)
}

/// How often writes cross the fabric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    /// Bytes of a write that travel with the command, and bytes of each further round trip.
    unsolicited: u32,
    max_burst: u32,
}

impl Rounds {
    pub(crate) fn of(protocol: WriteProtocol) -> Self {
        let (unsolicited, max_burst) = match protocol {
            WriteProtocol::TransferReady => (0, u32::MAX),
            WriteProtocol::Immediate { unsolicited, max_burst } => (unsolicited, max_burst.max(1)),
        };
        Self { unsolicited, max_burst }
    }

    /// Round trips of a write after the first (sections 7.1 and 7.5).
    #[inline]
    pub(crate) fn further(&self, bytes: u32) -> u64 {
        let solicited = bytes.saturating_sub(self.unsolicited);
        if solicited <= self.max_burst {
            return u64::from(solicited > 0);
        }
        u64::from(solicited.div_ceil(self.max_burst))
    }
}

/// One direction of a link, or whatever does so much a second: a FIFO station whose service is the size over the rate.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    free: Time,
    /// Nanoseconds a byte, with 32 fraction bits.
    byte_ns: u64,
}

impl Link {
    pub(crate) fn new(bytes_per_sec: u64) -> Self {
        Self { free: Time::ZERO, byte_ns: (SECOND << 32) / bytes_per_sec.max(1) }
    }

    /// To the host and to the array.
    pub(crate) fn pair(bytes_per_sec: u64) -> [Self; 2] {
        [Self::new(bytes_per_sec), Self::new(bytes_per_sec)]
    }

    /// Nanoseconds until `bytes` that are there now have crossed.
    pub(crate) fn send(&mut self, now: Time, bytes: u32) -> u64 {
        self.begin(now, bytes);
        self.free.since(now)
    }

    /// When they begin to.
    pub(crate) fn begin(&mut self, now: Time, bytes: u32) -> Time {
        let crossing_ns = ((u128::from(bytes) * u128::from(self.byte_ns)) >> 32) as u64;
        let begins = self.free.max(now);
        self.free = begins + crossing_ns;
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ByCommand, Front, Queues, Service, Spread};

    const KIB: u32 = 1 << 10;
    /// The software initiator against COMSTAR (section 7.5).
    const COMSTAR: WriteProtocol =
        WriteProtocol::Immediate { unsolicited: 32 * KIB, max_burst: 256 * KIB };

    fn fabric(write_protocol: WriteProtocol, link_bytes_per_sec: Option<u64>) -> Fabric {
        Fabric::new(&ArrayConfig {
            service: Service::Curve(Vec::new(), Spread::Constant, ByCommand::default()),
            round_trip_ns: 100,
            link_bytes_per_sec,
            write_protocol,
            queues: Queues::default(),
            capacity: None,
            front: Front::default(),
            volumes: Vec::new(),
        })
    }

    #[test]
    fn round_trips_of_writes_are_those_of_the_reference() {
        for (protocol, op, bytes, further) in [
            (WriteProtocol::TransferReady, Op::Read, 4 * KIB, 0),
            (WriteProtocol::TransferReady, Op::Write, 4 * KIB, 1),
            (WriteProtocol::TransferReady, Op::Write, 512 * KIB, 1),
            (COMSTAR, Op::Write, 32 * KIB, 0),
            (COMSTAR, Op::Write, 128 * KIB, 1),
            (COMSTAR, Op::Write, 512 * KIB, 2),
            (COMSTAR, Op::Read, 512 * KIB, 0),
            (COMSTAR, Op::Ats, 512, 0),
            (WriteProtocol::TransferReady, Op::Reserve, 512, 0),
            (COMSTAR, Op::WriteFua, 512 * KIB, 2),
            (COMSTAR, Op::WriteZeroes, 512 * KIB, 0),
            (COMSTAR, Op::Discard, 512 * KIB, 0),
            (COMSTAR, Op::Flush, 0, 0),
        ] {
            let transfer =
                fabric(protocol, None).transfer(Time::ZERO, 0, (op, bytes), &Carried::default());
            let ns = further * 100;
            assert_eq!(transfer, Transfer { total_ns: ns, uncounted_ns: 0 }, "{protocol:?} {op:?}");
        }
    }

    /// A round trip of 100 ns and a timer of 900: nothing passes what is sent again, on its connection.
    #[test]
    fn what_is_lost_holds_up_all_that_comes_behind_it_on_its_connection() {
        let mut fabric = fabric(COMSTAR, None);
        let mut deliver = |leaves, by, lost| {
            let carried = Carried { ordered_by: Some(by), lost, ack_ns: 900, ..Carried::default() };
            fabric.deliver(Time(leaves), 0, &carried).0
        };
        for (leaves, by, lost, at) in [
            (100, 0, 0, 150),
            (1_000, 0, 1, 2_050),
            (900, 0, 0, 950),
            (1_001, 0, 0, 2_050),
            (1_001, 1, 0, 1_051),
            (1_100, 0, 2, 4_050),
            (2_100, 0, 0, 4_050),
            (4_100, 0, 0, 4_150),
            (5_000, 0, 1, 6_050),
            (4_500, 0, 0, 4_550),
        ] {
            assert_eq!(deliver(leaves, by, lost), at, "{leaves} by {by} with {lost} lost");
        }
    }

    #[test]
    fn the_directions_of_a_link_are_apart() {
        let mut fabric = fabric(COMSTAR, Some(1_000_000_000));
        let mut transfer =
            |at, op, bytes| fabric.transfer(Time(at), 0, (op, bytes), &Carried::default());
        for expected in [1_000, 2_000] {
            for op in [Op::Read, Op::Write] {
                let transfer = transfer(0, op, 1_000);
                assert_eq!(transfer, Transfer { total_ns: expected, uncounted_ns: expected });
            }
        }
        assert_eq!(transfer(1_500, Op::Read, 500).total_ns, 1_000);
    }
}
