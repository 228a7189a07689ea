//! `sfq`: start-time fair queueing, with the sequential affinity of the classic scheduler
//! [VMB12; PARDA's local scheduler].
//!
//! A world may issue up to `Disk.SchedQuantum` commands in a row as long as each begins within
//! `Disk.SectorMaxDiff` sectors of the end of the last one; then the lowest start tag goes.

use counters::{Time, WorldId};

use super::{Waiting, mclock};
use crate::{codec::records, slab::Io, world::World};

/// Sectors of 512 bytes in a block of 4 KiB.
const SECTORS_PER_BLOCK: u32 = 8;

/// Which world is in the middle of a sequential run.
#[derive(Clone, Debug, Default)]
pub(super) struct Affinity {
    quantum: u32,
    max_diff_blocks: u32,
    current: Option<WorldId>,
    left: u32,
}

impl Affinity {
    pub(super) const fn set(&mut self, quantum: u32, max_diff_sectors: u32) {
        self.quantum = quantum;
        self.max_diff_blocks = max_diff_sectors / SECTORS_PER_BLOCK;
    }

    pub(super) fn choose(
        &mut self,
        backlog: &[Waiting],
        worlds: &[World],
        ios: &[Io],
        now: Time,
    ) -> Option<usize> {
        let world = |waiting: &Waiting| &worlds[waiting.world.index()];
        let place = |id| backlog.iter().position(|waiting| waiting.world == id);
        let current = self.current.and_then(place);
        if let Some(at) = current.filter(|at| self.continues(world(&backlog[*at]), ios, now)) {
            self.left -= 1;
            return Some(at);
        }
        let at = mclock::by_share(backlog, |waiting| world(waiting).may_go(now))?;
        self.current = Some(backlog[at].world);
        self.left = self.quantum.saturating_sub(1);
        Some(at)
    }

    /// Whether what it chose last was not the first of a run.
    pub(super) const fn goes_on(&self) -> bool {
        self.left + 1 < self.quantum
    }

    fn continues(&self, world: &World, ios: &[Io], now: Time) -> bool {
        let Some(head) = world.queue.head().filter(|_| self.left > 0 && world.may_go(now)) else {
            return false;
        };
        ios[head as usize].block.abs_diff(world.last_block) <= self.max_diff_blocks
    }
}

records! {
    Affinity { quantum, max_diff_blocks, current, left }
}
