//! What a guest asks for in a request of virtio-blk [VIRTIO], 5.2.6: a head of 16 bytes, data, and a byte
//! for how it ended. How these are cut into descriptors is the guest's own business.

use counters::{Op, Status};
use vm_memory::GuestAddress;

use super::{
    chain::{self, Chain},
    config::{DISCARD_MAX, WRITE_ZEROES_MAX},
    memory::Memory,
};
use crate::{
    buffer::BUFFER_MAX,
    export::{Export, Verb},
    lent::Parts,
};

/// Bytes of a head, and of what a discard is about.
const HEAD: usize = 16;
const RANGE: usize = 16;
/// Bytes of a sector, in which places are counted.
const SECTOR: u64 = 512;
/// Bytes of a serial number.
const SERIAL: usize = 20;

/// Kinds of requests.
struct Kind;

impl Kind {
    const IN: u32 = 0;
    const OUT: u32 = 1;
    const FLUSH: u32 = 4;
    const GET_ID: u32 = 8;
    const DISCARD: u32 = 11;
    const WRITE_ZEROES: u32 = 13;
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum End {
    Good = 0,
    Failed = 1,
    Unsupported = 2,
}

impl End {
    /// What a guest is told.
    pub(super) fn of(status: Status) -> Self {
        if status == Status::Good { Self::Good } else { Self::Failed }
    }
}

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    /// Data to be written, or where to those that are read.
    pub(super) data: Parts,
    /// Where it is told how it ended.
    pub(super) status: GuestAddress,
    pub(super) wanted: Wanted,
}

/// What is wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// An I/O.
    Io { verb: Verb, at: u64, bytes: u32 },
    /// It is known at once: so many bytes are to be read, and this is how it ends.
    Known { data: Vec<u8>, end: End },
}

/// How a guest has agreed to work with a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner<'a> {
    pub(super) export: &'a Export,
    /// Whether each write is to be durable: the guest does not flush.
    pub(super) writes_through: bool,
}

impl Request {
    /// Reads one; `None` makes no sense: there is not even a place for an answer.
    pub(super) fn parse(memory: &Memory, chain: Chain, manner: Manner<'_>) -> Option<Self> {
        let Chain { mut readable, mut writable } = chain;
        let mut head = [0; HEAD];
        let status = chain::cut_last(&mut writable)?;
        let payload = chain::bytes(&readable).checked_sub(HEAD as u64)?;
        let (kind, sector) = {
            take(memory, &mut readable, &mut head)?;
            let (kind, rest) = head.split_first_chunk()?;
            (u32::from_le_bytes(*kind), u64::from_le_bytes(*rest.last_chunk()?))
        };
        let refused = |end| Wanted::Known { data: Vec::new(), end };
        let at = sector.checked_mul(SECTOR);
        let (data, wanted) = match kind {
            Kind::IN => (writable, manner.io(Op::Read, at)),
            Kind::OUT => (readable, manner.io(manner.write(), at)),
            Kind::FLUSH => return Some(manner.flush(status)),
            Kind::GET_ID => (writable, Ok(None)),
            Kind::DISCARD | Kind::WRITE_ZEROES if payload != RANGE as u64 => {
                (Parts::new(), Err(End::Unsupported))
            }
            Kind::DISCARD | Kind::WRITE_ZEROES => {
                let mut range = [0; RANGE];
                take(memory, &mut readable, &mut range)?;
                let wanted = manner.range(kind, range).unwrap_or_else(refused);
                return Some(Self { data: Parts::new(), status, wanted });
            }
            _ => (Parts::new(), Err(End::Unsupported)),
        };
        let bytes = chain::bytes(&data);
        let wanted = match wanted {
            Ok(Some((verb, at))) => manner.place(verb, at, bytes).unwrap_or_else(refused),
            Ok(None) => Wanted::Known { data: manner.serial(bytes), end: End::Good },
            Err(end) => refused(end),
        };
        Some(Self { data, status, wanted })
    }
}

/// Copies the beginning of parts, which have as much, and begin behind it then.
fn take(memory: &Memory, parts: &mut Parts, into: &mut [u8]) -> Option<()> {
    chain::gather(memory, parts, into).then_some(())?;
    chain::cut_front(parts, into.len() as u32);
    Some(())
}

impl Manner<'_> {
    const fn write(self) -> Op {
        if self.writes_through { Op::WriteFua } else { Op::Write }
    }

    /// An I/O at a place.
    fn io(self, op: Op, at: Option<u64>) -> Result<Option<(Verb, u64)>, End> {
        let verb = Verb::Io { op, fua: self.writes_through, keeps_space: false };
        at.map(|at| Some((verb, at))).ok_or(End::Failed)
    }

    fn flush(self, status: GuestAddress) -> Request {
        let verb = Verb::Io { op: Op::Flush, fua: false, keeps_space: false };
        Request { data: Parts::new(), status, wanted: Wanted::Io { verb, at: 0, bytes: 0 } }
    }

    /// Whether a range is one of whole sectors that the disk has.
    fn has(self, at: u64, bytes: u32) -> bool {
        bytes > 0 && u64::from(bytes).is_multiple_of(SECTOR) && self.export.reaches(at, bytes)
    }

    /// An I/O that moves data, if the disk has its place.
    fn place(self, verb: Verb, at: u64, bytes: u64) -> Result<Wanted, End> {
        let changes = !matches!(verb, Verb::Io { op: Op::Read, .. });
        let bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes as usize <= BUFFER_MAX);
        let bytes = bytes.filter(|bytes| self.has(at, *bytes)).ok_or(End::Failed)?;
        if changes && self.export.read_only {
            return Err(End::Failed);
        }
        Ok(Wanted::Io { verb, at, bytes })
    }

    /// A discard or zeroes, of one range.
    fn range(self, kind: u32, range: [u8; RANGE]) -> Result<Wanted, End> {
        const UNMAP: u32 = 1;
        let (sector, rest) = range.split_first_chunk().ok_or(End::Failed)?;
        let (sectors, flags) = rest.split_first_chunk().ok_or(End::Failed)?;
        let flags = u32::from_le_bytes(*flags.first_chunk().ok_or(End::Failed)?);
        let at = u64::from_le_bytes(*sector).checked_mul(SECTOR).ok_or(End::Failed)?;
        let (op, allowed, most) = match kind {
            Kind::DISCARD => (Op::Discard, 0, DISCARD_MAX),
            _ => (Op::WriteZeroes, UNMAP, WRITE_ZEROES_MAX),
        };
        if flags & !allowed != 0 {
            return Err(End::Unsupported);
        }
        let sectors = u32::from_le_bytes(*sectors);
        let bytes = sectors.checked_mul(SECTOR as u32).filter(|_| sectors <= most);
        let bytes = bytes.filter(|bytes| self.has(at, *bytes)).ok_or(End::Failed)?;
        if self.export.read_only {
            return Err(End::Failed);
        }
        let keeps_space = kind == Kind::WRITE_ZEROES && flags & UNMAP == 0;
        let verb = Verb::Io { op, fua: self.writes_through, keeps_space };
        Ok(Wanted::Io { verb, at, bytes })
    }

    /// The name of the disk, as far as there is room for it.
    fn serial(self, room: u64) -> Vec<u8> {
        let mut serial: Vec<u8> = self.export.name.bytes().take(SERIAL).collect();
        serial.resize(room.min(SERIAL as u64) as usize, 0);
        serial
    }
}
