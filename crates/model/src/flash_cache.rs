//! A read cache of flash in a host, before a virtual disk: reads that it holds need no array.

use alloc::{collections::BTreeMap, vec::Vec};

use counters::Op;

use crate::request::SECTOR;

/// How large it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashCacheConfig {
    /// Blocks that it holds, at least 1.
    pub blocks: u32,
    /// Bytes of each, whole sectors.
    pub block_bytes: u32,
}

/// What it holds. All that is read or written is kept, and writes go to the array as well [VFRC]. What goes for it is what was
/// not read or written for long: the first that was not since the hand of a clock came by (ruling: nobody says).
#[derive(Clone, Debug)]
pub struct FlashCache {
    config: FlashCacheConfig,
    /// Where each block of the disk is held.
    places: BTreeMap<u64, u32>,
    /// The block in each place, and whether it was used since the hand came by.
    held: Vec<(u64, bool)>,
    hand: usize,
}

impl FlashCache {
    /// An empty one.
    #[must_use]
    pub const fn new(config: FlashCacheConfig) -> Self {
        Self { config, places: BTreeMap::new(), held: Vec::new(), hand: 0 }
    }

    /// Whether a command of the disk needs flash alone: a read of what is held. All that it touches is held from then on.
    pub fn serves(&mut self, op: Op, lba: u64, bytes: u32) -> bool {
        if !matches!(op, Op::Read | Op::Write | Op::WriteFua) {
            return false;
        }
        let sectors = u64::from(self.config.block_bytes / SECTOR);
        let end = lba + u64::from(bytes.div_ceil(SECTOR)).max(1);
        let mut is_held = true;
        for block in lba / sectors..end.div_ceil(sectors) {
            is_held &= self.touch(block);
        }
        is_held && op == Op::Read
    }

    /// What it holds goes elsewhere, or nowhere: it holds nothing any more.
    pub const fn take(&mut self) -> Self {
        core::mem::replace(self, Self::new(self.config))
    }

    /// Holds a block; whether it did before.
    fn touch(&mut self, block: u64) -> bool {
        if let Some(&place) = self.places.get(&block) {
            self.held[place as usize].1 = true;
            return true;
        }
        let place = if self.held.len() < self.config.blocks as usize {
            self.held.push((block, false));
            self.held.len() - 1
        } else {
            let place = self.oldest();
            self.places.remove(&self.held[place].0);
            self.held[place] = (block, false);
            place
        };
        self.places.insert(block, place as u32);
        false
    }

    /// The next place that was not used since the hand came by.
    fn oldest(&mut self) -> usize {
        loop {
            let place = self.hand;
            self.hand = (place + 1) % self.held.len();
            if !core::mem::take(&mut self.held[place].1) {
                return place;
            }
        }
    }
}
