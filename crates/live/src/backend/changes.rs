//! What is being changed of an image, so that a write of less than a block, which reads what is around
//! it and writes it back, and its neighbours never undo each other.
//!
//! A command that was let go of is still with the kernel and may land at any time: nothing else is
//! written there until it came back, and no more are taken than are worth so many bytes.

use std::collections::VecDeque;

use counters::IoId;

use crate::work::Work;

/// What may be let go of and has not come back, before all else waits: the data of a connection.
const LOST_MAX: u64 = 32 << 20;

/// The commands of an image that change it, or wait for others.
#[derive(Debug, Default)]
pub(super) struct Changes {
    under_way: Vec<Change>,
    waiting: VecDeque<(Change, Work)>,
    /// Those let go of, and their bytes.
    lost: Vec<(IoId, u64)>,
}

/// A command and the blocks that it changes: none where it only reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) io: IoId,
    pub(super) from: u64,
    pub(super) to: u64,
    /// Whether nothing else may change them meanwhile.
    pub(super) is_alone: bool,
}

impl Change {
    const fn is_in_the_way_of(&self, other: &Self) -> bool {
        self.from < other.to && other.from < self.to && (self.is_alone || other.is_alone)
    }
}

impl Changes {
    /// Lets a command begin, or has it wait.
    pub(super) fn admit(&mut self, change: Change, work: Work) -> Option<Work> {
        if self.is_blocked(&change, self.waiting.len()) {
            self.waiting.push_back((change, work));
            return None;
        }
        self.begin(change);
        Some(work)
    }

    /// Whether one has to wait, of those before which so many wait.
    fn is_blocked(&self, change: &Change, before: usize) -> bool {
        let bytes: u64 = self.lost.iter().map(|(_, bytes)| bytes).sum();
        let earlier = self.waiting.iter().take(before).map(|(change, _)| change);
        let mut others = self.under_way.iter().chain(earlier);
        bytes >= LOST_MAX || others.any(|other| other.is_in_the_way_of(change))
    }

    fn begin(&mut self, change: Change) {
        if change.from < change.to {
            self.under_way.push(change);
        }
    }

    /// One has ended. Whether it was let go of before.
    pub(super) fn leave(&mut self, io: IoId) -> bool {
        if let Some(place) = self.under_way.iter().position(|change| change.io == io) {
            self.under_way.swap_remove(place);
        }
        let lost = self.lost.iter().position(|(lost, _)| *lost == io);
        lost.map(|place| self.lost.swap_remove(place)).is_some()
    }

    /// The next of those that wait which may begin now.
    pub(super) fn next(&mut self) -> Option<Work> {
        let free =
            (0..self.waiting.len()).find(|at| !self.is_blocked(&self.waiting[*at].0, *at))?;
        let (change, work) = self.waiting.remove(free)?;
        self.begin(change);
        Some(work)
    }

    /// Takes back one that still waits.
    pub(super) fn recall(&mut self, io: IoId) -> Option<Work> {
        let place = self.waiting.iter().position(|(change, _)| change.io == io)?;
        self.waiting.remove(place).map(|(_, work)| work)
    }

    /// One is not waited for any longer.
    pub(super) fn let_go(&mut self, io: IoId, bytes: u64) {
        let changes = self.under_way.iter_mut();
        changes.filter(|change| change.io == io).for_each(|change| change.is_alone = true);
        self.lost.push((io, bytes));
    }

    /// Whether one was let go of.
    pub(super) fn is_lost(&self, io: IoId) -> bool {
        self.lost.iter().any(|(lost, _)| *lost == io)
    }
}
