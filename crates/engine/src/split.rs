//! I/O sizes: what a command is cut into on its way down.
//!
//! `Disk.DiskMaxIOSize` cuts in the VMkernel, `ISCSI.MaxIoSizeKB` at the software initiator
//! [LAMW, S4]. Both are below the level that esxtop counts: a cut command is one command, holds
//! one slot, and completes with its last piece (ruling in the design; [S4], [VMB14]).

use knobs::{Advanced, Transport};

use crate::options::Options;

/// The sizes in force on a host, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitSizes {
    disk_max: u32,
    iscsi_max: u32,
}

impl SplitSizes {
    /// Those that the options in force say.
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            disk_max: options.get(Advanced::DiskMaxIoSize) << 10,
            iscsi_max: options.get(Advanced::IscsiMaxIoSizeKb) << 10,
        }
    }

    /// The largest piece that leaves by an adapter.
    #[inline]
    pub(crate) fn piece(self, transport: Transport) -> u32 {
        match transport {
            Transport::Iscsi => self.disk_max.min(self.iscsi_max),
            Transport::Fc | Transport::Local | Transport::Network => self.disk_max,
        }
    }
}

/// The sizes of the pieces of `bytes`, none larger than `piece`.
pub(crate) fn pieces(bytes: u32, piece: u32) -> impl Iterator<Item = u32> {
    let mut left = bytes;
    core::iter::from_fn(move || {
        let next = left.min(piece);
        left -= next;
        (next > 0).then_some(next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn pieces_add_up_to_the_whole() {
        let sizes = |bytes, piece| pieces(bytes, piece).collect::<Vec<_>>();
        assert_eq!(sizes(512 << 10, 128 << 10), [128 << 10; 4]);
        assert_eq!(sizes(5, 2), [2, 2, 1]);
        assert_eq!(sizes(4096, 4096), [4096]);
        assert!(sizes(0, 4096).is_empty());
    }
}
