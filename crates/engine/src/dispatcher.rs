//! Who gives the slots of a device: it, and what its commands pass on their way to the driver, looked up once for
//! all that an answer leads to there.

use alloc::vec::Vec;

use counters::{DeviceId, Time};

use crate::{
    Sink,
    adapter::Adapter,
    device::Device,
    path::Path,
    slab::{Io, Slab},
    stack::Stack,
    vscsi::{Entrant, Vdisk},
    world::World,
};

/// A device, and what its commands pass.
pub(crate) struct Dispatcher<'a> {
    now: Time,
    id: DeviceId,
    device: &'a mut Device,
    worlds: &'a mut Vec<World>,
    vdisks: &'a mut Vec<Vdisk>,
    paths: &'a mut Vec<Path>,
    adapters: &'a mut Vec<Adapter>,
    ios: &'a mut Slab,
}

/// What a slot that was given, or could not be, leaves to do.
pub(crate) enum Left {
    /// A limit holds all that waits.
    Held,
    /// A command was sent.
    Sent {
        /// It, where it is to be cut first.
        cut: Option<u32>,
        /// Whether the timer for what is overdue is to be set.
        needs_watch: bool,
        /// Whether another one may go.
        goes_on: bool,
    },
}

impl Stack {
    #[inline(always)]
    pub(crate) fn dispatcher(&mut self, id: DeviceId) -> Dispatcher<'_> {
        Dispatcher {
            now: self.now,
            id,
            device: &mut self.devices[id.index()],
            worlds: &mut self.worlds,
            vdisks: &mut self.vdisks,
            paths: &mut self.paths,
            adapters: &mut self.adapters,
            ios: &mut self.ios,
        }
    }

    /// Gives free slots of a device to what waits for them.
    pub(crate) fn pump(&mut self, id: DeviceId, out: &mut impl Sink) {
        while let Some(left) = self.dispatcher(id).give_slot(out)
            && self.follow_up(id, left, out)
        {}
    }

    /// The same after a slot that was given and has left something to do.
    #[cold]
    pub(crate) fn pump_on(&mut self, id: DeviceId, left: Left, out: &mut impl Sink) {
        if self.follow_up(id, left, out) {
            self.pump(id, out);
        }
    }

    /// `true` when another slot may be given.
    fn follow_up(&mut self, id: DeviceId, left: Left, out: &mut impl Sink) -> bool {
        let Left::Sent { cut, needs_watch, goes_on } = left else {
            self.wake_for_limit(id);
            return false;
        };
        if let Some(io) = cut {
            self.send_pieces(io, out);
        }
        if needs_watch {
            self.watch(id);
        }
        goes_on
    }
}

impl Dispatcher<'_> {
    /// Gives a free slot to the command whose turn it is: onto a path, and through the adapter if it has room. What
    /// that leaves to do; mostly nothing, for one slot is free at a time.
    #[inline(always)]
    pub(crate) fn give_slot(&mut self, out: &mut impl Sink) -> Option<Left> {
        let Self { now, id, device, worlds, vdisks, paths, adapters, ios } = self;
        let (now, id) = (*now, *id);
        if !device.has_free_slot() {
            return None;
        }
        // Of records that cannot become more meanwhile, one is looked up once.
        let ios: &mut [Io] = ios;
        let Some(io) = device.sched.pop(worlds, ios, now) else { return Some(Left::Held) };
        let record = &mut ios[io as usize];
        let vdisk = &mut vdisks[usize::from(record.vdisk)];
        vdisk.take_slot(now);
        if device.take_slot(vdisk.contender) {
            device.refresh_depth(id, now, &mut out.again());
        }
        let chosen = device.selector.choose(paths, now, record);
        let path = &mut paths[chosen.index()];
        let adapter = &mut adapters[path.adapter.index()];
        (record.path, record.since) = (chosen.0, now);
        let is_cut = path.enter(ios, io, now)
            && adapter.enter(ios, io, now)
            && !adapter.hand_over(&mut ios[io as usize], io, path.way(chosen), now, out);
        let (needs_watch, goes_on) = (device.needs_watch, device.has_free_slot());
        if is_cut || needs_watch || goes_on {
            return Some(Left::Sent { cut: is_cut.then_some(io), needs_watch, goes_on });
        }
        None
    }

    /// A command that has entered lines up. Whether something is to be done now.
    #[inline(always)]
    pub(crate) fn line_up(&mut self, entrant: Entrant) -> bool {
        let Self { now, device, worlds, ios, .. } = self;
        device.line_up(worlds, ios, entrant, *now);
        device.is_wanted()
    }
}
