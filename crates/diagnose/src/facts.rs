//! What is known from elsewhere: figures of `esxcli` that no capture has.
//!
//! They are optional. With them a guess becomes a certainty, and the commands name the driver
//! that is really there.

use std::collections::BTreeMap;

use knobs::Version;

/// What esxcli says of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// `Device Max Queue Depth`.
    pub max_queue_depth: Option<u32>,
    /// `No of outstanding IOs with competing worlds` (DSNRO).
    pub dsnro: Option<u32>,
    /// `Is VVOL PE`.
    pub is_protocol_endpoint: bool,
    /// `Queue Full Sample Size`: above 0, adaptive throttling is on.
    pub queue_full_sample_size: Option<u32>,
    /// How its paths are used.
    pub paths: Option<PathFacts>,
}

/// What esxcli says of the paths of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathFacts {
    /// `Path Selection Policy`: `VMW_PSP_RR`, `VMW_PSP_FIXED`, `VMW_PSP_MRU`.
    pub policy: String,
    /// Commands after which round robin takes the next path.
    pub round_robin_iops: Option<u32>,
    /// How many `Working Paths` there are.
    pub working: usize,
}

/// What esxcli says of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The version of ESXi.
    pub esxi_version: Option<Version>,
    /// By the name of the device.
    pub devices: BTreeMap<String, DeviceFacts>,
    /// The driver module of each adapter: `vmhba1` is `nfnic`.
    pub drivers: BTreeMap<String, String>,
    /// The name of the datastore on each device.
    pub datastores: BTreeMap<String, String>,
    /// The module parameters that somebody set, by name: `ql2xmaxqdepth` is `128`.
    pub parameters: BTreeMap<String, String>,
}

impl Facts {
    /// What is known of a device.
    pub(crate) fn device(&self, name: &str) -> DeviceFacts {
        self.devices.get(name).cloned().unwrap_or_default()
    }

    /// The value that somebody set a driver's depth to. It is in force after the next reboot [S0].
    pub(crate) fn depth_set(&self, parameter: &str) -> Option<u32> {
        self.parameters.get(parameter)?.trim().parse().ok()
    }

    /// Whether DSNRO is one value for the host (to 5.1) instead of one for each device [S1].
    pub(crate) fn has_global_dsnro(&self) -> bool {
        self.esxi_version.is_some_and(Version::has_global_dsnro)
    }
}
