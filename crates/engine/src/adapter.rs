//! The host adapter: one limit (AQLEN) over all devices behind it. A command that holds a slot
//! of its device waits here, in the order of arrival, for the adapter [S0, KB-AQ].

use crate::{AdapterConfig, Driver, slab::Queue};

/// A host adapter. Its commands with the driver are counted in
/// [`GateCounters::active`](counters::GateCounters::active).
#[derive(Clone, Debug)]
pub(crate) struct Adapter {
    pub(crate) driver: &'static Driver,
    /// The depth per LUN that its driver gives.
    pub(crate) lun_depth: u32,
    /// The same after the host's next reboot.
    pub(crate) staged_lun_depth: u32,
    /// Its own limit.
    pub(crate) depth: u32,
    /// What waits for it.
    pub(crate) queue: Queue,
}

impl Adapter {
    pub(crate) fn new(config: &AdapterConfig) -> Self {
        Self {
            driver: config.driver,
            lun_depth: config.lun_depth,
            staged_lun_depth: config.lun_depth,
            depth: config.depth,
            queue: Queue::default(),
        }
    }
}
