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
        self.hands.images.extend(part.images);
        self.hands.arrays.extend(part.arrays);
        for (vdisk, disk) in part.disks {
            if self.hands.disks.len() <= vdisk.index() {
                self.hands.disks.resize(vdisk.index() + 1, None);
            }
            self.hands.disks[vdisk.index()] = Some(disk);
        }
    }

    /// Whether it is one of its disks that is to stay.
    pub(super) fn is_served(&self, vdisk: VdiskId) -> bool {
        let is_it = |closing: &Closing| closing.vdisk == vdisk;
        self.hands.disk(vdisk).is_some() && !self.closing.iter().any(is_it)
    }

    pub(super) fn resize(&mut self, vdisk: VdiskId, bytes: u64) {
        if let Some(disk) = self.hands.disk(vdisk) {
            self.hands.images[disk.image].grow(bytes);
            self.hands.guests.resize_disk(vdisk, bytes);
        }
    }

    /// Its guests take no more requests of it. What they have under way ends, or is given up after a
    /// while.
    pub(super) fn close(&mut self, vdisk: VdiskId, done: Sender<()>) {
        self.hands.guests.leave_disk(vdisk);
        self.closing.push(Closing { vdisk, until: self.hands.now + DRAIN_NS, done });
    }

    /// Gives up what takes too long on disks that are being closed, and lets go of those that are left.
    pub(super) fn close_left(&mut self) {
        for mut closing in std::mem::take(&mut self.closing) {
            let vdisk = closing.vdisk;
            if closing.until <= self.hands.now {
                closing.until = Time::NEVER;
                self.hands.guests.hang_up(vdisk);
                for (vdisk, tag) in self.hands.requests.on(vdisk).collect::<Vec<_>>() {
                    // It may end on its own by now.
                    let _ = self.input(Input::Abort { vdisk, tag });
                }
                self.answer();
            }
            if self.hands.guests.have_left(vdisk) && self.hands.requests.on(vdisk).next().is_none()
            {
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
        let Some(Disk { image, .. }) =
            self.hands.disks.get_mut(vdisk.index()).and_then(Option::take)
        else {
            return;
        };
        self.hands.vscsi.forget(vdisk);
        if self.hands.disks.iter().flatten().all(|disk| disk.image != image) {
            self.hands.images[image] = Image::Null;
            self.hands.executor.close(image);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{TryRecvError, channel};

    use counters::{MICROSECOND, SECOND, VmId};
    use knobs::Knob;

    use super::*;
    use crate::{
        executor::medium::Medium,
        machine::{RECALL_NS, bench::Bench},
        mailbox::Letter,
    };

    const BYTES: usize = 64 << 10;
    const WRITE: u16 = 1;

    fn bench() -> Bench {
        let mut medium = Medium::new(7, vec![0; 2 * BYTES]);
        medium.each = BYTES;
        Bench::new("", 512, BYTES as u64, medium)
    }

    #[test]
    fn a_disk_that_never_answers_is_left_all_the_same_and_stops_no_other() {
        let mut bench = bench();
        bench.medium().silent = vec![0];
        bench.clients[0].ask((0, WRITE), 0, 4096, &[1; 4096]);
        bench.pass(MICROSECOND);
        let (done, left) = channel();
        bench.machine.mailbox.send(Letter::Close(VdiskId(0), done));
        bench.pass(MICROSECOND);
        bench.pass(DRAIN_NS - SECOND);
        assert_eq!(left.try_recv(), Err(TryRecvError::Empty), "it may still end by itself");
        for _ in 0..10 {
            bench.pass((SECOND + RECALL_NS) / 4);
        }
        assert_eq!(left.try_recv(), Ok(()));
        assert!(bench.machine.hands.disk(VdiskId(0)).is_none());
        bench.clients[1].ask((0, WRITE), 0, 4096, &[1; 4096]);
        assert_eq!(bench.answer(1).error, 0);
    }

    #[test]
    fn who_agreed_on_a_disk_before_it_moved_is_let_in_where_it_is_now() {
        // The clients' letters are not read yet.
        let mut bench = bench();
        let (from, to) = (VdiskId(0), VdiskId(1));
        bench.machine.hands.guests.move_disk(from, VdiskId(7));
        bench.machine.hands.guests.move_disk(VdiskId(7), to);
        bench.machine.hands.disks[0] = None;
        bench.pass(MICROSECOND);
        assert_eq!(bench.machine.hands.guests.vdisks().collect::<Vec<_>>(), [to, to]);
        bench.clients[0].ask((0, WRITE), 0, 4096, &[1; 4096]);
        assert_eq!(bench.answer(0).error, 0);
    }

    #[test]
    fn what_is_staged_for_a_guest_acts_when_it_has_let_go_of_all_its_disks() {
        let mut bench = bench();
        let staged = Knob::Pvscsi { vm: VmId(0), depth: 3, ring_pages: 8 };
        bench.pass(MICROSECOND);
        bench.machine.mailbox.send(Letter::Input(Input::Set(staged)));
        let depth = |bench: &Bench| bench.machine.engine.vdisk_depths(VdiskId(0)).map(|it| it.0);
        let before = depth(&bench);
        bench.pass(MICROSECOND);
        bench.clients.remove(0);
        (0..3).for_each(|_| bench.pass(MICROSECOND));
        assert_eq!(depth(&bench), before, "it has another disk open");
        bench.clients.clear();
        (0..3).for_each(|_| bench.pass(MICROSECOND));
        assert_eq!(depth(&bench), Some(3));
    }
}
