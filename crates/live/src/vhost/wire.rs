//! What vhost-user has on its socket: heads, numbers of messages, and what is in them [VHU].
//!
//! A message is a head of 12 bytes, in the machine's own order, a body, and descriptors of files beside
//! it. A body that is longer than what is in it is taken: User-Mode Linux sends a memory table of fixed
//! size.

/// Bytes of a head.
pub(crate) const HEAD: usize = 12;
/// Bytes of the largest body: a table of memory is 264, a whole configuration space 268.
pub(crate) const BODY_MAX: usize = 1_024;
/// Parts of memory in a table, at most.
const REGIONS_MAX: usize = 8;
/// Bytes of the configuration space that can be asked for.
pub(crate) const CONFIG_MAX: usize = 256;

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const IS_REPLY: u32 = 1 << 2;
const NEEDS_REPLY: u32 = 1 << 3;

/// Feature of virtio that says that the features below can be agreed on.
pub(crate) const PROTOCOL_FEATURES: u64 = 1 << 30;

/// Features of the protocol.
pub(crate) struct Can;

impl Can {
    pub(crate) const MQ: u64 = 1;
    pub(crate) const REPLY_ACK: u64 = 1 << 3;
    pub(crate) const BACKEND_REQ: u64 = 1 << 5;
    pub(crate) const CONFIG: u64 = 1 << 9;
    pub(crate) const INFLIGHT_SHMFD: u64 = 1 << 12;
    pub(crate) const RESET_DEVICE: u64 = 1 << 13;
    pub(crate) const CONFIGURE_MEM_SLOTS: u64 = 1 << 15;
}

/// The number of a message of ours: `VHOST_USER_BACKEND_CONFIG_CHANGE_MSG`.
const CONFIG_CHANGE: u32 = 2;

/// Numbers of the messages of a front end.
pub(crate) struct Kind;

impl Kind {
    pub(crate) const GET_FEATURES: u32 = 1;
    pub(crate) const SET_FEATURES: u32 = 2;
    pub(crate) const SET_OWNER: u32 = 3;
    pub(crate) const RESET_OWNER: u32 = 4;
    pub(crate) const SET_MEM_TABLE: u32 = 5;
    pub(crate) const SET_VRING_NUM: u32 = 8;
    pub(crate) const SET_VRING_ADDR: u32 = 9;
    pub(crate) const SET_VRING_BASE: u32 = 10;
    pub(crate) const GET_VRING_BASE: u32 = 11;
    pub(crate) const SET_VRING_KICK: u32 = 12;
    pub(crate) const SET_VRING_CALL: u32 = 13;
    pub(crate) const SET_VRING_ERR: u32 = 14;
    pub(crate) const GET_PROTOCOL_FEATURES: u32 = 15;
    pub(crate) const SET_PROTOCOL_FEATURES: u32 = 16;
    pub(crate) const GET_QUEUE_NUM: u32 = 17;
    pub(crate) const SET_VRING_ENABLE: u32 = 18;
    pub(crate) const SET_BACKEND_REQ_FD: u32 = 21;
    pub(crate) const GET_CONFIG: u32 = 24;
    pub(crate) const SET_CONFIG: u32 = 25;
    pub(crate) const GET_INFLIGHT_FD: u32 = 31;
    pub(crate) const SET_INFLIGHT_FD: u32 = 32;
    pub(crate) const RESET_DEVICE: u32 = 34;
    pub(crate) const GET_MAX_MEM_SLOTS: u32 = 36;
    pub(crate) const ADD_MEM_REG: u32 = 37;
    pub(crate) const REM_MEM_REG: u32 = 38;
}

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: u32,
    /// Whether the front end waits to hear how it went, where it is not answered anyway.
    pub(crate) needs_reply: bool,
    /// Bytes of the body.
    pub(crate) body: usize,
}

impl Head {
    /// Reads one; `None` is no message.
    pub(crate) fn parse(bytes: &[u8; HEAD]) -> Option<Self> {
        let mut words = Words(bytes);
        let (kind, flags, body) = (words.u32()?, words.u32()?, words.u32()? as usize);
        let is_good = flags & VERSION_MASK == VERSION && flags & IS_REPLY == 0 && body <= BODY_MAX;
        is_good.then_some(Self { kind, needs_reply: flags & NEEDS_REPLY != 0, body })
    }
}

/// What is in a message, its descriptors aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    GetFeatures,
    SetFeatures(u64),
    /// What needs nothing to be done.
    SetOwner,
    /// It is to forget the front end: an older word for [`Self::ResetDevice`].
    ResetOwner,
    SetMemTable(Vec<Region>),
    SetVringNum(Vring),
    SetVringAddr(Addresses),
    SetVringBase(Vring),
    GetVringBase(u32),
    SetVringKick(RingFile),
    SetVringCall(RingFile),
    SetVringErr(RingFile),
    GetProtocolFeatures,
    SetProtocolFeatures(u64),
    GetQueueNum,
    SetVringEnable(Vring),
    SetBackendReq,
    GetConfig(Config),
    SetConfig(Config, Vec<u8>),
    GetInflight(InflightArea),
    SetInflight(InflightArea),
    ResetDevice,
    GetMaxMemSlots,
    AddMemReg(Region),
    RemMemReg(Region),
}

/// A number for a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vring {
    pub(crate) ring: u32,
    pub(crate) value: u32,
}

/// Which ring a descriptor is for, and whether there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingFile {
    pub(crate) ring: u32,
    pub(crate) has_file: bool,
}

/// Where a ring is, in the front end's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) ring: u32,
    pub(crate) descriptors: u64,
    pub(crate) used: u64,
    pub(crate) available: u64,
}

/// A part of the guest's memory, which is a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// Where the guest has it.
    pub(crate) guest: u64,
    pub(crate) bytes: u64,
    /// Where the front end has it.
    pub(crate) user: u64,
    /// Where it begins in the file.
    pub(crate) offset: u64,
}

/// A part of the configuration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    pub(crate) flags: u32,
}

/// The memory in which a back end notes what is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InflightArea {
    pub(crate) bytes: u64,
    pub(crate) offset: u64,
    pub(crate) rings: u16,
    /// Entries of each ring.
    pub(crate) entries: u16,
}

/// Numbers one after the other.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    fn vring(&mut self) -> Option<Vring> {
        Some(Vring { ring: self.u32()?, value: self.u32()? })
    }

    fn ring_file(&mut self) -> Option<RingFile> {
        const RING: u64 = 0xff;
        const NO_FILE: u64 = 1 << 8;
        let word = self.u64()?;
        Some(RingFile { ring: (word & RING) as u32, has_file: word & NO_FILE == 0 })
    }

    fn addresses(&mut self) -> Option<Addresses> {
        // Flags: none but that of the log, which is not offered.
        let (ring, _) = (self.u32()?, self.u32()?);
        let (descriptors, used, available) = (self.u64()?, self.u64()?, self.u64()?);
        Some(Addresses { ring, descriptors, used, available })
    }

    fn region(&mut self) -> Option<Region> {
        let (guest, bytes, user, offset) = (self.u64()?, self.u64()?, self.u64()?, self.u64()?);
        Some(Region { guest, bytes, user, offset })
    }

    fn regions(&mut self) -> Option<Vec<Region>> {
        let (count, _) = (self.u32()? as usize, self.u32()?);
        (count <= REGIONS_MAX).then(|| (0..count).map(|_| self.region()).collect())?
    }

    fn config(&mut self) -> Option<Config> {
        let (offset, bytes, flags) = (self.u32()?, self.u32()?, self.u32()?);
        let end = offset.checked_add(bytes)?;
        (end as usize <= CONFIG_MAX).then_some(Config { offset, bytes, flags })
    }

    fn inflight(&mut self) -> Option<InflightArea> {
        let (bytes, offset) = (self.u64()?, self.u64()?);
        Some(InflightArea { bytes, offset, rings: self.u16()?, entries: self.u16()? })
    }
}

impl Message {
    /// Reads what is in a message; `None` makes no sense.
    pub(crate) fn parse(kind: u32, body: &[u8]) -> Option<Self> {
        let mut words = Words(body);
        Some(match kind {
            Kind::GET_FEATURES => Self::GetFeatures,
            Kind::SET_FEATURES => Self::SetFeatures(words.u64()?),
            Kind::SET_OWNER => Self::SetOwner,
            Kind::RESET_OWNER => Self::ResetOwner,
            Kind::SET_MEM_TABLE => Self::SetMemTable(words.regions()?),
            Kind::SET_VRING_NUM => Self::SetVringNum(words.vring()?),
            Kind::SET_VRING_ADDR => Self::SetVringAddr(words.addresses()?),
            Kind::SET_VRING_BASE => Self::SetVringBase(words.vring()?),
            Kind::GET_VRING_BASE => Self::GetVringBase(words.vring()?.ring),
            Kind::SET_VRING_KICK => Self::SetVringKick(words.ring_file()?),
            Kind::SET_VRING_CALL => Self::SetVringCall(words.ring_file()?),
            Kind::SET_VRING_ERR => Self::SetVringErr(words.ring_file()?),
            Kind::GET_PROTOCOL_FEATURES => Self::GetProtocolFeatures,
            Kind::SET_PROTOCOL_FEATURES => Self::SetProtocolFeatures(words.u64()?),
            Kind::GET_QUEUE_NUM => Self::GetQueueNum,
            Kind::SET_VRING_ENABLE => Self::SetVringEnable(words.vring()?),
            Kind::SET_BACKEND_REQ_FD => Self::SetBackendReq,
            Kind::GET_CONFIG => Self::GetConfig(words.config()?),
            Kind::SET_CONFIG => {
                let config = words.config()?;
                Self::SetConfig(config, words.0.get(..config.bytes as usize)?.to_vec())
            }
            Kind::GET_INFLIGHT_FD => Self::GetInflight(words.inflight()?),
            Kind::SET_INFLIGHT_FD => Self::SetInflight(words.inflight()?),
            Kind::RESET_DEVICE => Self::ResetDevice,
            Kind::GET_MAX_MEM_SLOTS => Self::GetMaxMemSlots,
            Kind::ADD_MEM_REG => {
                words.u64()?;
                Self::AddMemReg(words.region()?)
            }
            Kind::REM_MEM_REG => {
                words.u64()?;
                Self::RemMemReg(words.region()?)
            }
            _ => return None,
        })
    }
}

/// A reply to a message.
/// What tells a front end that the configuration of its disk has changed: it reads it again.
pub(crate) fn config_changed() -> Vec<u8> {
    [CONFIG_CHANGE, VERSION, 0].into_iter().flat_map(u32::to_ne_bytes).collect()
}

pub(crate) fn reply(kind: u32, body: &[u8]) -> Vec<u8> {
    let words = [kind, VERSION | IS_REPLY, body.len() as u32];
    words.into_iter().flat_map(u32::to_ne_bytes).chain(body.iter().copied()).collect()
}

impl Vring {
    pub(crate) fn bytes(self) -> [u8; 8] {
        (u64::from(self.ring) | u64::from(self.value) << 32).to_le_bytes()
    }
}

impl InflightArea {
    pub(crate) fn bytes(self) -> Vec<u8> {
        let wide = [self.bytes, self.offset].into_iter().flat_map(u64::to_ne_bytes);
        wide.chain([self.rings, self.entries].into_iter().flat_map(u16::to_ne_bytes)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn a_table_of_memory_may_be_longer_than_what_is_in_it() {
        let region = [0x1000_u64, 0x2000, 0x7f00_0000_0000, 0];
        let mut body: Vec<u8> = [1_u32, 0].into_iter().flat_map(u32::to_ne_bytes).collect();
        body.extend(region.into_iter().flat_map(u64::to_ne_bytes));
        let region = Region { guest: 0x1000, bytes: 0x2000, user: 0x7f00_0000_0000, offset: 0 };
        let expected = Some(Message::SetMemTable(vec![region]));
        assert_eq!(Message::parse(Kind::SET_MEM_TABLE, &body), expected);
        // As User-Mode Linux sends it.
        body.resize(72, 0);
        assert_eq!(Message::parse(Kind::SET_MEM_TABLE, &body), expected);
        body[0] = 9;
        assert_eq!(Message::parse(Kind::SET_MEM_TABLE, &body), None, "there are 8 at most");
    }

    #[test]
    fn what_makes_no_sense_is_none() {
        let head = |flags: u32, body: u32| {
            let words = [Kind::GET_FEATURES, flags, body].into_iter();
            let bytes: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
            Head::parse(bytes.first_chunk().unwrap())
        };
        assert_eq!(head(1, 8), Some(Head { kind: 1, needs_reply: false, body: 8 }));
        assert_eq!(head(9, 8), Some(Head { kind: 1, needs_reply: true, body: 8 }));
        for (flags, body) in [(0, 0), (2, 0), (5, 0), (1, 1_025), (1, u32::MAX)] {
            assert_eq!(head(flags, body), None, "{flags} {body}");
        }
        assert_eq!(Message::parse(99, &[0; 64]), None);
        assert_eq!(Message::parse(Kind::SET_FEATURES, &[0; 7]), None);
        let config = |offset: u32, bytes: u32| {
            let words = [offset, bytes, 0].into_iter();
            Message::parse(Kind::GET_CONFIG, &words.flat_map(u32::to_ne_bytes).collect::<Vec<_>>())
        };
        assert!(config(0, 256).is_some());
        assert_eq!(config(1, 256), None);
        assert_eq!(config(u32::MAX, 2), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(kind in 0..40_u32, body in vec(any::<u8>(), 0..300)) {
            let _ = Message::parse(kind, &body);
        }
    }
}
