//! What a disk is to a guest: the features that it can agree on, and the configuration space
//! [VIRTIO], 5.2.4.

use virtio_bindings::{
    virtio_blk::{
        VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_CONFIG_WCE, VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_FLUSH,
        VIRTIO_BLK_F_MQ, VIRTIO_BLK_F_RO, VIRTIO_BLK_F_SEG_MAX, VIRTIO_BLK_F_TOPOLOGY,
        VIRTIO_BLK_F_WRITE_ZEROES,
    },
    virtio_config::VIRTIO_F_VERSION_1,
    virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC},
};

use super::{
    RINGS_MAX,
    wire::{CONFIG_MAX, PROTOCOL_FEATURES},
};
use crate::export::Export;

/// Parts of the data of a request: what 128 descriptors, which QEMU's rings have, leave beside head and
/// status.
const PARTS_MAX: u32 = 126;
/// Sectors of a discard and of zeroes at most: 1 GiB.
pub(super) const DISCARD_MAX: u32 = 1 << 21;
pub(super) const WRITE_ZEROES_MAX: u32 = 1 << 21;
/// Where the space says whether a guest flushes.
pub(super) const WRITEBACK: u32 = 32;

/// What a guest has agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Features(pub(super) u64);

impl Features {
    /// What can be agreed on for a disk. The log of what a live migration has to copy again is not
    /// among them.
    pub(super) fn offered(export: &Export) -> Self {
        let always = [
            VIRTIO_BLK_F_SEG_MAX,
            VIRTIO_BLK_F_BLK_SIZE,
            VIRTIO_BLK_F_FLUSH,
            VIRTIO_BLK_F_TOPOLOGY,
            VIRTIO_BLK_F_CONFIG_WCE,
            VIRTIO_BLK_F_MQ,
            VIRTIO_F_VERSION_1,
            VIRTIO_RING_F_INDIRECT_DESC,
            VIRTIO_RING_F_EVENT_IDX,
        ];
        let changing = [VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_WRITE_ZEROES];
        let own = if export.read_only { [VIRTIO_BLK_F_RO].as_slice() } else { &changing };
        let bits = always.iter().chain(own);
        Self(bits.fold(PROTOCOL_FEATURES, |all, bit| all | 1 << bit))
    }

    const fn has(self, bit: u32) -> bool {
        self.0 & 1 << bit != 0
    }

    pub(super) const fn event_idx(self) -> bool {
        self.has(VIRTIO_RING_F_EVENT_IDX)
    }

    /// Whether the guest can flush, so that not each write has to be durable.
    pub(super) const fn flush(self) -> bool {
        self.has(VIRTIO_BLK_F_FLUSH)
    }

    /// Whether it knows of features of the protocol.
    pub(super) const fn protocol(self) -> bool {
        self.0 & PROTOCOL_FEATURES != 0
    }
}

/// The configuration space of a disk.
pub(super) fn space(export: &Export, writeback: bool) -> [u8; CONFIG_MAX] {
    /// What is read ahead of, and is best to be read in: a page.
    const PAGE: u32 = 4096;
    let exponent = (PAGE / export.block).ilog2() as u8;
    let mut space = [0; CONFIG_MAX];
    let mut put = |at: usize, bytes: &[u8]| space[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &(export.bytes / 512).to_le_bytes());
    put(12, &PARTS_MAX.to_le_bytes());
    put(20, &export.block.to_le_bytes());
    put(24, &[exponent, 0]);
    put(26, &1_u16.to_le_bytes());
    put(WRITEBACK as usize, &[writeback.into()]);
    put(34, &(RINGS_MAX as u16).to_le_bytes());
    put(36, &DISCARD_MAX.to_le_bytes());
    put(40, &1_u32.to_le_bytes());
    put(44, &(export.frees / 512).to_le_bytes());
    put(48, &WRITE_ZEROES_MAX.to_le_bytes());
    put(52, &1_u32.to_le_bytes());
    put(56, &[1]);
    space
}
