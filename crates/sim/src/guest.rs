//! What stands between the workloads and the engine of a host: block layers of guests, where what a workload issues
//! waits and merges, and caches of flash, which send what they hold to another disk. A command that ends is told to each
//! of those whose I/Os it had.

use std::collections::VecDeque;

use counters::VdiskId;
use engine::{Output, Outputs};
use model::{Block, BlockConfig, FlashCache, IoScheduler};
use scenario::Host;

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
    /// What was told last.
    told: Option<Output>,
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
    /// Those of a host's virtual disks, if any has one.
    pub(crate) fn new(host: &Host) -> Option<Box<Self>> {
        let caches = host
            .flash_caches
            .iter()
            .map(|(of, cache)| (*of, FlashCache::new(cache.config), cache.flash));
        let mut configs = host.blocks.clone();
        for of in host.flash_caches.keys() {
            configs[of.index()].get_or_insert(NOTHING);
        }
        configs.iter().any(Option::is_some).then(|| {
            Box::new(Self {
                blocks: configs.iter().map(|config| config.map(Block::new)).collect(),
                caches: caches.collect(),
                touched: Vec::new(),
                ended: VecDeque::new(),
                told: None,
            })
        })
    }

    /// That of a virtual disk.
    pub(crate) fn of(&mut self, vdisk: VdiskId) -> Option<&mut Block> {
        self.blocks[vdisk.index()].as_mut()
    }

    /// The virtual disks that have one, and theirs.
    pub(crate) fn all(&self) -> impl Iterator<Item = (VdiskId, &Block)> {
        let disks = (0..).map(VdiskId).zip(&self.blocks);
        disks.filter_map(|(vdisk, block)| Some((vdisk, block.as_ref()?)))
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
    /// of a command that ended, its I/Os. `false` when there is nothing.
    pub(crate) fn take(&mut self, left: &mut Outputs) -> bool {
        self.told = loop {
            if let Some(ended) = self.ended.pop_front() {
                break Some(ended);
            }
            match left.pop().copied() {
                Some(Output::Complete { request, vdisk, tag, status })
                    if let vdisk = self.before(vdisk)
                        && let Some(block) = self.of(vdisk) =>
                {
                    let ended = block.complete(tag).into_iter();
                    let told = |tag| Output::Complete { request, vdisk, tag, status };
                    self.ended.extend(ended.map(told));
                    self.touched.push(vdisk);
                }
                other => break other,
            }
        };
        self.told.is_some()
    }

    /// What was taken last.
    pub(crate) const fn told(&self) -> Option<&Output> {
        self.told.as_ref()
    }
}
