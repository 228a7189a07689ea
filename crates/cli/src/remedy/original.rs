//! The recorded host that scenarios stand for: what it calls its parts, and what is known of it.

use diagnose::{Facts, Verdict, Window};
use levels::Measured;

/// A recorded host.
pub(crate) struct Original {
    pub(crate) name: String,
    /// The stretch of the recording that the scenarios stand for.
    pub(crate) window: Window,
    /// What the differences between them rest on, in sentences.
    pub(crate) doubts: Vec<String>,
    /// How far they are from the recording as it is, as a part of what was recorded, where one is furthest.
    pub(crate) miss: f64,
    pub(super) facts: Facts,
    /// What the diagnosis says of it.
    pub(super) verdict: Verdict,
    pub(super) recording: Measured,
    /// VMs as they were recorded, and as the scenarios name them.
    pub(super) vms: Vec<(String, String)>,
}

impl Original {
    /// What a VM of the scenarios is called.
    pub(super) fn called<'a>(&'a self, vm: &'a str) -> &'a str {
        self.vms.iter().find(|(_, own)| own == vm).map_or(vm, |(name, _)| name)
    }

    /// What the datastore on a device is called, where somebody said that.
    pub(super) fn datastore_on(&self, device: &str) -> Option<&String> {
        self.facts.datastores.get(device)
    }

    /// Whether it is known how deep a device may be.
    pub(super) fn knows_depth_of(&self, device: &str) -> bool {
        self.facts.devices.get(device).is_some_and(|known| known.max_queue_depth.is_some())
    }

    /// Whether Storage I/O Control is known to lower the depth of a device.
    pub(super) fn is_controlled(&self, device: &str) -> bool {
        self.facts.devices.get(device).is_some_and(|known| known.sioc == Some(true))
    }

    /// Whether the driver of an adapter is known.
    pub(super) fn knows_driver_of(&self, adapter: &str) -> bool {
        self.facts.drivers.contains_key(adapter)
    }
}
