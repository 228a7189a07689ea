//! What the I/Os of a workload are: operation, size and place.

use alloc::boxed::Box;

use counters::{Direction, Op};

use crate::{
    config::{Access, Mix, Others, WorkloadConfig},
    random::{Random, below},
};

/// Bytes of a sector, in which places are counted.
pub(crate) const SECTOR: u32 = counters::SECTOR as u32;
/// What 32 random bits are less than.
const WHOLE: f64 = (1_u64 << 32) as f64;

/// An I/O of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// What it does.
    pub op: Op,
    /// Its first sector of 512 bytes on the virtual disk.
    pub lba: u64,
    /// Its size in bytes.
    pub bytes: u32,
    /// Nanoseconds that it has waited in the application.
    pub waited_ns: u64,
    /// Who issued it: the thread of a closed loop, the slot of an open one.
    pub tag: u32,
}

/// Draws I/Os.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    /// The first when 32 random bits are below `first_below`, else the second.
    ops: [Op; 2],
    first_below: u64,
    /// Few workloads have any.
    others: Option<Box<OtherOps>>,
    sizes: Box<[Size]>,
    access: Access,
    /// Sectors of the working set, and where the next sequential I/O begins.
    sectors: u64,
    next: u64,
}

/// What is neither the first nor the second.
#[derive(Clone, Debug)]
struct OtherOps {
    /// Each when 32 random bits are below its number, and not below the one before it.
    below: Box<[(u64, Op)]>,
    /// Writes until the next flush, and from one to the next; 0 for never.
    until_flush: u32,
    flush_after: u32,
}

#[derive(Clone, Copy, Debug)]
struct Size {
    /// Chosen when 32 random bits are below this.
    below: u64,
    bytes: u32,
    sectors: u32,
    /// Places of this size in the working set.
    places: u64,
}

impl Requests {
    pub(crate) fn new(config: &WorkloadConfig) -> Self {
        let sectors = (config.working_set / u64::from(SECTOR)).max(1);
        // A metadata operation is one small I/O: the lock's sector (section 7.4).
        let one_sector = &[(SECTOR, 1)];
        let (ops, first_share, sizes, others): (_, _, &[_], _) = match &config.mix {
            Mix::ReadWrite { read_share, sizes, others } => {
                ([Op::Read, Op::Write], *read_share, &sizes.0, OtherOps::new(others))
            }
            Mix::Reserve => ([Op::Reserve; 2], 1.0, one_sector, None),
            Mix::Ats => ([Op::Ats; 2], 1.0, one_sector, None),
        };
        let taken = others.as_ref().map_or(0, |others| others.all_below());
        let left = (1_u64 << 32) - taken;
        Self {
            ops,
            first_below: taken + (first_share * left as f64) as u64,
            others,
            sizes: thresholds(sizes, sectors),
            access: config.access,
            sectors,
            next: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn draw(&mut self, random: &mut Random, tag: u32) -> Io {
        let bits = random.bits();
        let drawn = u64::from(bits as u32);
        let op = self.ops[usize::from(drawn >= self.first_below)];
        let Some(others) = &mut self.others else { return self.place(random, op, bits, tag) };
        match others.instead_of(op, drawn) {
            Op::Flush => Io { op: Op::Flush, lba: 0, bytes: 0, waited_ns: 0, tag },
            Op::Ats => Io { bytes: SECTOR, ..self.place(random, Op::Ats, bits, tag) },
            op => self.place(random, op, bits, tag),
        }
    }

    /// How large it is and where.
    #[inline(always)]
    fn place(&mut self, random: &mut Random, op: Op, bits: u64, tag: u32) -> Io {
        let size = self.size(random);
        let lba = match self.access {
            Access::Random => below(bits, size.places) * u64::from(size.sectors),
            _ => self.go_on(random, bits, size),
        };
        Io { op, lba, bytes: size.bytes, waited_ns: 0, tag }
    }

    /// Where it is, of those that do not go to random places alone.
    #[inline(never)]
    fn go_on(&mut self, random: &mut Random, bits: u64, size: Size) -> u64 {
        if let Access::Mixed(share) = self.access
            && ((random.bits() >> 32) as f64 / WHOLE) < share
        {
            let first = below(bits, size.places) * u64::from(size.sectors);
            self.next = first + u64::from(size.sectors);
            return first;
        }
        self.follow(size.sectors)
    }

    #[inline]
    fn size(&self, random: &mut Random) -> Size {
        if let [only] = *self.sizes {
            return only;
        }
        let bits = random.bits() >> 32;
        let chosen = self.sizes.iter().find(|size| bits < size.below);
        *chosen.unwrap_or(&self.sizes[0])
    }

    fn follow(&mut self, sectors: u32) -> u64 {
        let end = self.next + u64::from(sectors);
        let first = if end > self.sectors { 0 } else { self.next };
        self.next = first + u64::from(sectors);
        first
    }
}

impl OtherOps {
    fn new(others: &Others) -> Option<Box<Self>> {
        let mut sum = 0.0;
        let below = others.shares.iter().map(|(op, share)| {
            sum += share;
            ((f64::min(sum, 1.0) * WHOLE) as u64, *op)
        });
        let below: Box<[_]> = below.collect();
        let flush_after = others.flush_after.unwrap_or(0);
        let any = !below.is_empty() || flush_after > 0;
        any.then(|| Box::new(Self { below, until_flush: flush_after, flush_after }))
    }

    /// What 32 random bits are below where they choose one of these.
    fn all_below(&self) -> u64 {
        self.below.last().map_or(0, |(below, _)| *below)
    }

    /// What is issued where `op` was chosen by 32 random bits: a flush when it is due, one of these
    /// when it is chosen.
    fn instead_of(&mut self, op: Op, drawn: u64) -> Op {
        if self.flush_after > 0 && self.until_flush == 0 {
            self.until_flush = self.flush_after;
            return Op::Flush;
        }
        let op = self.below.iter().find(|(below, _)| drawn < *below).map_or(op, |(_, op)| *op);
        if op.direction() == Direction::Write {
            self.until_flush = self.until_flush.saturating_sub(1);
        }
        op
    }
}

/// The weights of the sizes, added up and scaled to 32 bits.
fn thresholds(sizes: &[(u32, u32)], sectors: u64) -> Box<[Size]> {
    let total: u64 = sizes.iter().map(|&(_, weight)| u64::from(weight)).sum();
    let mut sum = 0;
    sizes
        .iter()
        .map(|&(bytes, weight)| {
            sum += u64::from(weight);
            let per_io = bytes.div_ceil(SECTOR).max(1);
            Size {
                below: ((u128::from(sum) << 32) / u128::from(total.max(1))) as u64,
                bytes,
                sectors: per_io,
                places: (sectors / u64::from(per_io)).max(1),
            }
        })
        .collect()
}
