//! What stands between the workloads and the engine of a host: block layers of guests, where what a workload issues
//! waits and merges, and caches of flash, which send what they hold to another disk. A command that ends is told to each
//! of those whose I/Os it had.

use std::collections::VecDeque;

use counters::{HostSnapshot, Status, Time, VdiskId};
use engine::{Output, Outputs, Request};
use model::{Block, BlockConfig, FlashCache, IoScheduler};
use scenario::Host;

use crate::copy::{Copy, Ended};

/// The block layers and caches of a host.
pub(crate) struct Blocks {
    /// That of each virtual disk, where it has one.
    blocks: Vec<Option<Block>>,
    /// The cache before each virtual disk that has one, and the disk that is in its flash.
    caches: Vec<(VdiskId, FlashCache, VdiskId)>,
    /// Disks at which something came or ended at this instant.
    pub(crate) touched: Vec<VdiskId>,
    /// I/Os that ended with a command, and that are to be told.
    ended: VecDeque<Output>,
    /// Disks that are copied, and what is to be sent because of that.
    pub(crate) copies: Vec<Copy>,
    pub(crate) requests: VecDeque<Request>,
}

/// What holds what a disk before a cache has under way in both places, and changes nothing of it.
const NOTHING: BlockConfig = BlockConfig {
    scheduler: IoScheduler::None,
    requests_max: u32::MAX,
    bytes_max: u32::MAX,
    merges: false,
    batch: 1,
};

impl Blocks {
    /// Those of a host's virtual disks, if any has one; `copied` are disks that will be copied.
    pub(crate) fn new(host: &Host, copied: &[VdiskId]) -> Option<Box<Self>> {
        let caches = host
            .flash_caches
            .iter()
            .map(|(of, cache)| (*of, FlashCache::new(cache.config), cache.flash));
        let mut configs = host.blocks.clone();
        for of in host.flash_caches.keys().chain(copied) {
            configs[of.index()].get_or_insert(NOTHING);
        }
        configs.iter().any(Option::is_some).then(|| {
            Box::new(Self {
                blocks: configs.iter().map(|config| config.map(Block::new)).collect(),
                caches: caches.collect(),
                touched: Vec::new(),
                ended: VecDeque::new(),
                copies: Vec::new(),
                requests: VecDeque::new(),
            })
        })
    }

    /// That of a virtual disk.
    pub(crate) fn of(&mut self, vdisk: VdiskId) -> Option<&mut Block> {
        self.blocks[vdisk.index()].as_mut()
    }

    /// Adds what is counted here to the counters of the engine, which sees commands: offered are the I/Os of
    /// applications, before they are merged or cut, and on the disk that they are for.
    pub(crate) fn count(&self, into: &mut HostSnapshot) {
        for (disk, block) in into.vdisks.iter_mut().zip(&self.blocks) {
            if let Some(block) = block {
                disk.offered = block.ios();
                disk.guest_queued.add(&block.waiting());
                disk.merged += block.merged();
            }
        }
        for (_, _, flash) in &self.caches {
            into.vdisks[flash.index()].offered = 0;
        }
        for copy in &self.copies {
            copy.count(&mut into.vdisks[copy.from.index()]);
        }
    }

    /// The cache before a virtual disk, and the disk in its flash.
    pub(crate) fn cache(&mut self, vdisk: VdiskId) -> Option<(&mut FlashCache, VdiskId)> {
        let (_, cache, flash) = self.caches.iter_mut().find(|(of, ..)| *of == vdisk)?;
        Some((cache, *flash))
    }

    /// The disk that what ended on a disk is of: the one before which that is a cache.
    fn before(&self, vdisk: VdiskId) -> VdiskId {
        let flash = self.caches.iter().find(|(_, _, flash)| *flash == vdisk);
        flash.map_or(vdisk, |(of, ..)| *of)
    }

    /// Takes what is to be told next, of what ended here and of what is `left` of what the engine said;
    /// of a command that ended, its I/Os. `None` when there is nothing.
    pub(crate) fn take(&mut self, now: Time, left: &mut Outputs) -> Option<Output> {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                return Some(ended);
            }
            let output = match left.pop() {
                Some(Output::Complete { request, vdisk, tag, status }) => {
                    match self.ended(now, (vdisk, tag, status)) {
                        Some((vdisk, tag, status)) => {
                            Some(Output::Complete { request, vdisk, tag, status })
                        }
                        None => continue,
                    }
                }
                other => other,
            };
            match output {
                Some(Output::Complete { request, vdisk, tag, status })
                    if let vdisk = self.before(vdisk)
                        && let Some(block) = self.of(vdisk) =>
                {
                    let ended = block.complete(tag).into_iter();
                    let told = |tag| Output::Complete { request, vdisk, tag, status };
                    self.ended.extend(ended.map(told));
                    self.touched.push(vdisk);
                }
                other => return other,
            }
        }
    }

    /// What the end of a command is of a guest's: nothing where a copy has more to do for it, or it was the data
    /// mover's.
    fn ended(
        &mut self,
        now: Time,
        command: (VdiskId, u32, Status),
    ) -> Option<(VdiskId, u32, Status)> {
        for copy in self.copies.iter_mut().filter(|copy| !copy.is_gone()) {
            match copy.ended(now, command, &mut self.requests) {
                Ended::Other => {}
                Ended::Nothing => return None,
                Ended::Write(tag, status) => return Some((copy.from, tag, status)),
            }
        }
        Some(command)
    }

    /// Sends a request of a disk that is copied; `false` where it is not.
    pub(crate) fn send(&mut self, now: Time, request: Request) -> bool {
        let mut copies = self.copies.iter_mut();
        let Some(copy) = copies.find(|copy| copy.from == request.vdisk && copy.end().is_none())
        else {
            return false;
        };
        copy.send(now, request, &mut self.requests);
        true
    }

    /// A request because of a copy found its disk gone.
    pub(crate) fn refused(&mut self, now: Time, request: Request) {
        self.ended(now, (request.vdisk, request.tag, Status::NoConnect));
    }

    /// Where a disk still is that is being copied to another.
    pub(crate) fn source_of(&self, to: VdiskId) -> Option<VdiskId> {
        let copy = self.copies.iter().find(|copy| copy.to == to && copy.end().is_none());
        copy.map(|copy| copy.from)
    }

    /// The disk of a copy that has just ended.
    pub(crate) fn copied(&mut self) -> Option<VdiskId> {
        let mut copies = self.copies.iter_mut();
        copies.find_map(|copy| copy.has_just_ended().then_some(copy.from))
    }
}
