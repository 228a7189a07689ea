//! A host's end of its ways to arrays: the rounds of a write, its ports' links, and segments that are lost.
//!
//! ```text
//!   path --> nexus --> link of a port ---> array's fabric
//!              rounds of a write, lost segments
//! ```
//!
//! What commands wait for a nexus's window is no matter of this file: whoever drives a host keeps them until an
//! answer makes room, and an array hears of them then.

use alloc::vec::Vec;

use counters::{Op, Time};

use crate::{
    command::Carried,
    config::{InitiatorConfig, Loss, NexusConfig, Spread},
    fabric::{Link, Rounds, is_write},
    random::Random,
    spread::Duration,
};

/// A host's end of its ways at work.
#[derive(Clone, Debug)]
pub struct Initiator {
    links: Vec<[Link; 2]>,
    nexuses: Vec<Nexus>,
    random: Random,
}

#[derive(Clone, Debug)]
struct Nexus {
    link: Option<usize>,
    crosses: [Option<u32>; 2],
    writes: Option<Rounds>,
    losses: Option<Losses>,
}

/// Segments that are lost, each with the same probability.
#[derive(Clone, Debug)]
struct Losses {
    segment: u32,
    ack_ns: u64,
    /// Segments from one that is lost to the next, in parts of [`GAP_UNIT`].
    gap: Duration,
    /// Segments that arrive before the next is lost.
    left: u64,
}

/// A gap is drawn so finely that what is cut off does not show.
const GAP_UNIT: u64 = 1 << 16;

impl Initiator {
    /// Idle links, and losses whose draws depend on `seed` alone.
    #[must_use]
    pub fn new(config: &InitiatorConfig, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let nexus = |config: &NexusConfig| Nexus {
            link: config.link,
            crosses: config.crosses,
            writes: config.write_protocol.map(Rounds::of),
            losses: config.loss.map(|loss| Losses::new(&loss, &mut random)),
        };
        Self {
            links: config.links.iter().map(|rate| Link::pair(*rate)).collect(),
            nexuses: config.nexuses.iter().map(nexus).collect(),
            random,
        }
    }

    /// What a command by a nexus costs that leaves at `now`, which never goes back from one call to the next.
    ///
    /// # Panics
    /// When there is no such nexus, or not its link.
    pub fn carry(&mut self, now: Time, nexus: usize, op: Op, bytes: u32) -> Carried {
        let by = nexus as u32;
        let nexus = &mut self.nexuses[nexus];
        let writes = is_write(op);
        let moved = if op.moves_data() { bytes } else { 0 };
        let link = nexus.link.map(|link| &mut self.links[link][usize::from(writes)]);
        let mut carried = Carried {
            further_rounds: nexus.writes.filter(|_| writes).map(|rounds| rounds.further(bytes)),
            link_ns: link.map_or(0, |link| link.send(now, moved)),
            crosses: nexus.crosses,
            ..Carried::default()
        };
        if let Some(losses) = &mut nexus.losses {
            carried.ordered_by = Some(by);
            carried.ack_ns = losses.ack_ns;
            if op == Op::Read {
                carried.lost = losses.of(moved, &mut self.random);
            }
        }
        carried
    }
}

impl Losses {
    fn new(loss: &Loss, random: &mut Random) -> Self {
        // The whole part of an exponential time of this mean is as the number of segments before one is lost.
        let mean = -1.0 / libm::log1p(-loss.share.clamp(1e-9, 0.1));
        let gap = Duration::new((mean * GAP_UNIT as f64) as u64, Spread::Exponential);
        let left = gap.draw(random.bits()) / GAP_UNIT;
        Self { segment: loss.segment.max(1), ack_ns: loss.ack_ns, gap, left }
    }

    /// How many are lost of those that so many bytes take.
    fn of(&mut self, bytes: u32, random: &mut Random) -> u32 {
        let mut segments = u64::from(bytes.div_ceil(self.segment));
        let mut lost = 0;
        while self.left < segments {
            segments -= self.left + 1;
            self.left = self.gap.draw(random.bits()) / GAP_UNIT;
            lost += 1;
        }
        self.left -= segments;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::WriteProtocol;
    use alloc::vec;

    const KIB: u32 = 1 << 10;

    fn initiator(links: Vec<u64>, nexus: NexusConfig) -> Initiator {
        let nexuses = vec![nexus, NexusConfig::default()];
        Initiator::new(&InitiatorConfig { links, nexuses, of_path: Vec::new() }, 1)
    }

    #[test]
    fn a_nexus_has_its_rounds_and_one_without_leaves_them_to_the_array() {
        // The software initiator against COMSTAR (section 7.5).
        let comstar = WriteProtocol::Immediate { unsolicited: 32 * KIB, max_burst: 256 * KIB };
        let nexus = NexusConfig { write_protocol: Some(comstar), ..NexusConfig::default() };
        let mut initiator = initiator(Vec::new(), nexus);
        for (op, bytes, expected) in [
            (Op::Write, 32 * KIB, Some(0)),
            (Op::Write, 128 * KIB, Some(1)),
            (Op::WriteFua, 512 * KIB, Some(2)),
            (Op::Read, 512 * KIB, None),
            (Op::WriteZeroes, 512 * KIB, None),
        ] {
            let carried = initiator.carry(Time::ZERO, 0, op, bytes);
            let expected = Carried { further_rounds: expected, ..Carried::default() };
            assert_eq!(carried, expected, "{op:?} {bytes}");
            assert_eq!(initiator.carry(Time::ZERO, 1, op, bytes), Carried::default());
        }
    }

    #[test]
    fn nexuses_of_one_port_share_its_link() {
        let nexus = NexusConfig { link: Some(0), ..NexusConfig::default() };
        let config = InitiatorConfig {
            links: vec![1_000_000_000; 2],
            nexuses: vec![nexus, nexus, NexusConfig { link: Some(1), ..nexus }],
            of_path: Vec::new(),
        };
        let mut initiator = Initiator::new(&config, 1);
        let mut link_ns = |nexus, op| initiator.carry(Time::ZERO, nexus, op, 1_000).link_ns;
        assert_eq!([0, 1, 2].map(|nexus| link_ns(nexus, Op::Read)), [1_000, 2_000, 1_000]);
        assert_eq!([0, 1, 2].map(|nexus| link_ns(nexus, Op::Write)), [1_000, 2_000, 1_000]);
        assert_eq!(link_ns(0, Op::Flush), 2_000);
    }

    #[test]
    fn as_many_segments_are_lost_as_the_probability_says_and_no_write_loses_any() {
        for (share, bytes) in [(0.0002, 64 * KIB), (0.01, 4 * KIB), (0.1, 512 * KIB)] {
            let loss = Loss { share, segment: 1_460, ack_ns: 7 };
            let mut initiator =
                initiator(Vec::new(), NexusConfig { loss: Some(loss), ..NexusConfig::default() });
            let reads = 400_000;
            let (mut lost, mut hit) = (0, 0);
            for _ in 0..reads {
                let carried = initiator.carry(Time::ZERO, 0, Op::Read, bytes);
                lost += u64::from(carried.lost);
                hit += u64::from(carried.lost > 0);
                assert_eq!(carried.ack_ns, 7);
            }
            let segments = f64::from(bytes.div_ceil(1_460));
            let close = |found: u64, expected: f64| {
                let found = found as f64 / f64::from(reads);
                assert!((found / expected - 1.0).abs() < 0.03, "{found} for {expected}");
            };
            close(lost, segments * share);
            close(hit, 1.0 - libm::pow(1.0 - share, segments));
            assert_eq!(initiator.carry(Time::ZERO, 0, Op::Write, bytes).lost, 0);
        }
    }
}
