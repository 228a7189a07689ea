//! What of a component comes and goes while it is at work: disks that are opened, that grow, that move to
//! another device, and that nobody is to have any more.

use std::sync::mpsc::Sender;

use counters::{Time, VdiskId};
use engine::Input;

use super::{DRAIN_NS, Machine};
use crate::{
    backend::Image,
    served::{Disk, Part},
};

/// A disk that is being given up.
#[derive(Debug)]
pub(super) struct Closing {
    vdisk: VdiskId,
    /// Until when what is under way may end by itself.
    pub(super) until: Time,
    /// Who waits for it.
    done: Sender<()>,
}

impl Machine {
    /// Disks that are open, and what is new of images and arrays: their places follow those there are.
    pub(super) fn open(&mut self, part: Part) {
        self.images.extend(part.images);
        self.arrays.extend(part.arrays);
        for (vdisk, disk) in part.disks {
            if self.disks.len() <= vdisk.index() {
                self.disks.resize(vdisk.index() + 1, None);
            }
            self.disks[vdisk.index()] = Some(disk);
        }
    }

    pub(super) fn resize(&mut self, vdisk: VdiskId, bytes: u64) {
        if let Some(disk) = self.disk(vdisk) {
            self.images[disk.image].grow(bytes);
            self.guests.resize_disk(vdisk, bytes);
        }
    }

    /// Its guests take no more requests of it. What they have under way ends, or is given up after a
    /// while.
    pub(super) fn close(&mut self, vdisk: VdiskId, done: Sender<()>) {
        self.guests.leave_disk(vdisk);
        self.closing.push(Closing { vdisk, until: self.now + DRAIN_NS, done });
    }

    /// Gives up what takes too long on disks that are being closed, and lets go of those that are left.
    pub(super) fn close_left(&mut self) {
        for mut closing in std::mem::take(&mut self.closing) {
            let vdisk = closing.vdisk;
            if closing.until <= self.now {
                closing.until = Time::NEVER;
                self.guests.hang_up(vdisk);
                for (vdisk, tag) in self.requests.on(vdisk).collect::<Vec<_>>() {
                    // It may end on its own by now.
                    let _ = self.input(Input::Abort { vdisk, tag });
                }
                self.answer();
            }
            if self.guests.have_left(vdisk) && self.requests.on(vdisk).next().is_none() {
                self.let_go_of(vdisk);
                // Whoever waited may be gone.
                let _ = closing.done.send(());
            } else {
                self.closing.push(closing);
            }
        }
    }

    /// A disk is no longer served, nor its image where no other disk is the same.
    fn let_go_of(&mut self, vdisk: VdiskId) {
        let Some(Disk { image, .. }) = self.disks.get_mut(vdisk.index()).and_then(Option::take)
        else {
            return;
        };
        if self.disks.iter().flatten().all(|disk| disk.image != image) {
            self.images[image] = Image::Null;
            self.executor.close(image);
        }
    }
}
