//! What a line of esxcli may ask for.

use alloc::string::String;

use crate::{Advanced, Driver};

/// What a line of esxcli shows of a host; `None` in a name is all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// `storage core device list`
    Devices {
        /// The device.
        device: Option<String>,
    },
    /// `storage core device stats get`
    DeviceStats {
        /// The device.
        device: Option<String>,
    },
    /// `storage core device world list`
    Worlds {
        /// The device.
        device: Option<String>,
    },
    /// `storage core adapter list`
    Adapters,
    /// `storage core adapter stats get`
    AdapterStats {
        /// The adapter.
        adapter: Option<String>,
    },
    /// `storage core path list`
    Paths {
        /// The device.
        device: Option<String>,
        /// The path.
        path: Option<String>,
    },
    /// `storage nmp device list`
    NmpDevices {
        /// The device.
        device: Option<String>,
    },
    /// `storage nmp psp roundrobin deviceconfig get`
    RoundRobin {
        /// The device.
        device: String,
    },
    /// `system module parameters list`
    Parameters {
        /// Of which driver.
        driver: &'static Driver,
    },
    /// `kavg disk list`: kavg's own; no esxcli has it.
    Disks,
    /// `system settings advanced list`
    Options {
        /// The option.
        option: Option<Advanced>,
        /// Only what is not as it starts.
        changed: bool,
    },
}
