//! The host adapter: one limit (AQLEN) over all devices behind it. A command that holds a slot
//! of its device waits here, in the order of arrival, for the adapter [S0, KB-AQ].

use counters::{GateCounters, Time};

use knobs::Driver;

use crate::{
    AdapterConfig, Output, Sink,
    codec::records,
    path::Way,
    slab::{Io, Queue, State},
};

/// A host adapter.
#[derive(Clone, Debug)]
pub(crate) struct Adapter {
    pub(crate) counters: GateCounters,
    pub(crate) driver: &'static Driver,
    /// The depth per LUN that its driver gives.
    pub(crate) lun_depth: u32,
    /// The same after the host's next reboot.
    pub(crate) staged_lun_depth: u32,
    /// The largest piece that leaves by it, in bytes.
    pub(crate) piece_max: u32,
    /// How long a command may be with the driver.
    pub(crate) timeout_ns: Option<u64>,
    /// Whether it was detached.
    pub(crate) is_gone: bool,
    /// What waits for it.
    pub(crate) queue: Queue,
}

impl Adapter {
    pub(crate) fn new(config: &AdapterConfig) -> Self {
        Self {
            counters: GateCounters { depth: config.depth, ..GateCounters::default() },
            driver: config.driver,
            lun_depth: config.lun_depth,
            staged_lun_depth: config.lun_depth,
            piece_max: 0,
            timeout_ns: config.timeout_ns,
            is_gone: false,
            queue: Queue::default(),
        }
    }

    /// Whether a command that holds a slot of its path may go to the driver; else it waits here.
    #[inline(always)]
    pub(crate) fn enter(&mut self, ios: &mut [Io], io: u32, now: Time) -> bool {
        let is_open = self.is_open();
        if !is_open {
            self.line_up(ios, io, now);
        }
        is_open
    }

    /// To the driver; `false` when the wire takes no more than a part of it, and it is still to be sent.
    #[inline(always)]
    pub(crate) fn hand_over(
        &mut self,
        record: &mut Io,
        io: u32,
        way: Way,
        now: Time,
        out: &mut impl Sink,
    ) -> bool {
        self.counters.active.enter(now);
        record.hand_over(way.losses);
        let is_whole = record.is_whole(self.piece_max);
        if is_whole {
            out.put(Output::Dispatch(record.command(io, way.path)));
        }
        is_whole
    }

    #[cold]
    fn line_up(&mut self, ios: &mut [Io], io: u32, now: Time) {
        ios[io as usize].state = State::AtAdapter;
        self.counters.queued.enter(now);
        self.queue.push(ios, io);
    }

    pub(crate) const fn is_idle(&self) -> bool {
        self.counters.active.now() == 0 && self.queue.is_empty()
    }

    #[inline]
    pub(crate) const fn has_room(&self) -> bool {
        self.counters.active.now() < self.counters.depth
    }

    /// Whether a command may pass without waiting behind others.
    #[inline]
    pub(crate) const fn is_open(&self) -> bool {
        self.queue.is_empty() && self.has_room()
    }
}

records! {
    Adapter {
        counters, driver, lun_depth, staged_lun_depth, piece_max, timeout_ns, is_gone, queue,
    }
}
