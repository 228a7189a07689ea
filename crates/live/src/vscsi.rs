//! `vscsiStats` of the disks of a component: what is counted at their doors while somebody wants it.

use control::{VscsiAct, VscsiCounts};
use counters::{SECTOR, Time, VSCSI, VdiskId, VscsiBins, VscsiCommand, VscsiStats};

use crate::{
    export::{Asked, Verb},
    requests::Request,
};

/// What a disk has counted; nothing where nobody ever asked for it.
pub(crate) type Counted = Option<Box<VscsiStats>>;

/// By virtual disk; it is as long as it was ever needed.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    disks: Vec<Counted>,
}

impl Counting {
    /// A request comes.
    pub(crate) fn issue(&mut self, vdisk: VdiskId, now: Time, asked: &Asked) {
        let (Some(stats), Verb::Io { op, .. }) = (self.of(vdisk), asked.verb) else { return };
        let bytes = u64::from(asked.bytes);
        let (block, blocks) = (asked.at / SECTOR, bytes.div_ceil(SECTOR));
        stats.issue(now, VscsiCommand { direction: op.direction(), block, blocks, bytes });
    }

    /// A request is answered.
    pub(crate) fn complete(&mut self, now: Time, request: &Request) {
        let (Some(stats), Verb::Io { op, .. }) = (self.of(request.vdisk), request.asked.verb)
        else {
            return;
        };
        stats.complete(now, request.issued, op.direction());
    }

    /// Does what somebody wants of some disks; what each has counted.
    pub(crate) fn order(&mut self, act: VscsiAct, vdisks: &[VdiskId], now: Time) -> Vec<Counted> {
        let of_each = |vdisk: &VdiskId| {
            if act == VscsiAct::Start {
                let places = self.disks.len().max(vdisk.index() + 1);
                self.disks.resize(places, None);
                let stopped = || Box::new(VscsiStats::STOPPED);
                self.disks[vdisk.index()].get_or_insert_with(stopped).start(now);
            }
            if let Some(stats) = self.of(*vdisk) {
                match act {
                    VscsiAct::Start | VscsiAct::Read => {}
                    VscsiAct::Stop => stats.stop(now),
                    VscsiAct::Reset => stats.reset(),
                }
            }
            self.disks.get(vdisk.index()).cloned().flatten()
        };
        vdisks.iter().map(of_each).collect()
    }

    /// A disk is gone; another one may have its id.
    pub(crate) fn forget(&mut self, vdisk: VdiskId) {
        if let Some(stats) = self.disks.get_mut(vdisk.index()) {
            *stats = None;
        }
    }

    fn of(&mut self, vdisk: VdiskId) -> Option<&mut VscsiStats> {
        self.disks.get_mut(vdisk.index())?.as_deref_mut()
    }
}

/// The histograms of a disk as the control socket has them.
pub(crate) fn counts(stats: &VscsiStats) -> impl Iterator<Item = VscsiCounts> + '_ {
    VSCSI.iter().zip(stats.bins()).map(|((metric, ..), bins)| {
        let VscsiBins { min, max, count, .. } = *bins;
        let (min, max) = if count == 0 { (0, 0) } else { (min, max) };
        let commands = bins.commands[..=metric.limits().len()].to_vec();
        VscsiCounts { min, max, mean: bins.mean(), count, commands }
    })
}
