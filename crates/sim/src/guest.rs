//! The block layers of a host's guests, between workloads and engine: what a workload issues waits and merges
//! there, and a command that ends is told to each of those whose I/Os it had.

use std::collections::VecDeque;

use counters::VdiskId;
use engine::{Output, Outputs};
use model::{Block, BlockConfig};

/// The block layers of the guests of a host.
pub(crate) struct Blocks {
    /// That of each virtual disk, where its guest has one.
    blocks: Vec<Option<Block>>,
    /// Disks at which something came or ended at this instant.
    pub(crate) touched: Vec<VdiskId>,
    /// I/Os that ended with a command, and that are to be told.
    ended: VecDeque<Output>,
    /// What was told last.
    told: Option<Output>,
}

impl Blocks {
    /// Those of a host's virtual disks, if any has one.
    pub(crate) fn new(configs: &[Option<BlockConfig>]) -> Option<Box<Self>> {
        configs.iter().any(Option::is_some).then(|| {
            Box::new(Self {
                blocks: configs.iter().map(|config| config.map(Block::new)).collect(),
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
        disks.filter_map(|(vdisk, layer)| Some((vdisk, layer.as_ref()?)))
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
                    if let Some(block) = self.blocks[vdisk.index()].as_mut() =>
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
