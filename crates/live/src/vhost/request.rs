//! What a guest asks for in a request of virtio-blk [VIRTIO], 5.2.6: a head of 16 bytes, data, and a byte
//! for how it ended. How these are cut into descriptors is the guest's own business.

use counters::{Op, SECTOR, Status};
use vm_memory::{GuestAddress, VolatileSlice};

use super::{
    chain::Chain,
    config::{DISCARD_MAX, WRITE_ZEROES_MAX},
    memory::Reader,
};
use crate::{
    buffer::BUFFER_MAX,
    export::{Export, Verb},
    lent::Lent,
};

/// Bytes of what a discard is about.
const RANGE: usize = 16;
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

/// A request. Its data, or where to they are read, are what its record has.
#[derive(Debug)]
pub(super) struct Request {
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
    /// Reads the one that begins with a descriptor of the table, into a record that has nothing yet; `None` makes no
    /// sense: there is not even a place for an answer.
    pub(super) fn read(
        memory: &mut Reader<'_>,
        (table, head): (VolatileSlice<'_>, u16),
        record: &mut Lent,
        manner: Manner<'_>,
    ) -> Option<Self> {
        let chain = Chain::walk(memory, table, head, record)?;
        let (kind, rest) = chain.head()?.split_first_chunk()?;
        let (kind, sector) = (u32::from_le_bytes(*kind), u64::from_le_bytes(*rest.last_chunk()?));
        match kind {
            Kind::IN | Kind::GET_ID => chain.keep_writable(record),
            Kind::OUT | Kind::DISCARD | Kind::WRITE_ZEROES => chain.keep_readable(record),
            _ => record.clear(),
        }
        let wanted = match kind {
            Kind::IN => manner.io(Op::Read, sector, record.len()),
            Kind::OUT => manner.io(manner.write(), sector, record.len()),
            Kind::FLUSH => Ok(Manner::flush()),
            Kind::GET_ID => Ok(Wanted::Known { data: manner.serial(record.len()), end: End::Good }),
            Kind::DISCARD | Kind::WRITE_ZEROES if record.len() == RANGE => {
                let mut range = [0; RANGE];
                record.copy_to(0, &mut range);
                manner.range(kind, range)
            }
            _ => Err(End::Unsupported),
        };
        if !matches!(kind, Kind::IN | Kind::OUT | Kind::GET_ID) {
            record.clear();
        }
        let refused = |end| Wanted::Known { data: Vec::new(), end };
        Some(Self { status: chain.status, wanted: wanted.unwrap_or_else(refused) })
    }
}

impl Manner<'_> {
    const fn write(self) -> Op {
        if self.writes_through { Op::WriteFua } else { Op::Write }
    }

    const fn flush() -> Wanted {
        let verb = Verb::Io { op: Op::Flush, fua: false, keeps_space: false };
        Wanted::Io { verb, at: 0, bytes: 0 }
    }

    /// Whether a range is one of whole sectors that the disk has.
    fn has(self, at: u64, bytes: u32) -> bool {
        bytes > 0 && u64::from(bytes).is_multiple_of(SECTOR) && self.export.reaches(at, bytes)
    }

    /// An I/O that moves data, if the disk has its place.
    fn io(self, op: Op, sector: u64, bytes: usize) -> Result<Wanted, End> {
        let at = sector.checked_mul(SECTOR).ok_or(End::Failed)?;
        let bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes as usize <= BUFFER_MAX);
        let bytes = bytes.filter(|bytes| self.has(at, *bytes)).ok_or(End::Failed)?;
        if op != Op::Read && self.export.read_only {
            return Err(End::Failed);
        }
        let verb = Verb::Io { op, fua: self.writes_through, keeps_space: false };
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
    fn serial(self, room: usize) -> Vec<u8> {
        let mut serial: Vec<u8> = self.export.name.bytes().take(SERIAL).collect();
        serial.resize(room.min(SERIAL), 0);
        serial
    }
}
