//! How deep the devices of a host are as settings and reboots follow each other, so that a limit
//! above the depth is refused where the file asks for it.

use std::collections::BTreeMap;

use counters::DeviceId;
use engine::{DepthMode, HostConfig, Knob};

use crate::Host;

/// The depths of a host's devices at one moment.
pub(crate) struct Depths<'h> {
    config: &'h HostConfig,
    /// By adapter: what the driver was loaded with, and what it is loaded with at the next boot.
    loaded: Vec<u32>,
    staged: Vec<u32>,
    /// Devices that `-m` made less deep.
    lowered: BTreeMap<DeviceId, u32>,
}

impl<'h> Depths<'h> {
    /// The depths of a host when the run begins.
    pub(crate) fn new(host: &'h Host) -> Self {
        let loaded: Vec<_> = host.config.adapters.iter().map(|adapter| adapter.lun_depth).collect();
        let lowered = host.settings.iter().filter_map(|knob| match *knob {
            Knob::MaxQueueDepth { device, value } => Some((device, value)),
            _ => None,
        });
        let lowered = lowered.collect();
        Self { config: &host.config, staged: loaded.clone(), loaded, lowered }
    }

    /// The host reboots: staged parameters are in force.
    pub(crate) fn reboot(&mut self) {
        self.loaded.clone_from(&self.staged);
    }

    /// Takes a setting, or refuses it as the host would [QD254, S1].
    pub(crate) fn set(&mut self, knob: &Knob) -> Result<(), String> {
        match *knob {
            Knob::ModuleDepth { driver, value } => {
                let adapters = self.config.adapters.iter().zip(&mut self.staged);
                let own = adapters.filter(|(adapter, _)| adapter.driver == driver);
                own.for_each(|(_, staged)| *staged = value);
            }
            Knob::MaxQueueDepth { device, value } => {
                let advertised = self.advertised(device);
                if value > advertised {
                    return Err(refusal(
                        "-m|--max-queue-depth",
                        value,
                        "is what the driver gives",
                        advertised,
                    ));
                }
                self.lowered.insert(device, value);
            }
            Knob::SchedNumReqOutstanding { device, value } => {
                let depth = self.lowered.get(&device).copied().unwrap_or(u32::MAX);
                let depth = depth.min(self.advertised(device));
                if value > depth && self.config.version.refuses_dsnro_above_depth() {
                    let option = "-O|--sched-num-req-outstanding";
                    return Err(refusal(option, value, "is the device's depth", depth));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What the drivers below a device give.
    fn advertised(&self, device: DeviceId) -> u32 {
        let paths = self.config.paths.iter().filter(|path| path.device == device);
        let depths = paths.map(|path| self.loaded[path.adapter.index()]);
        match self.config.depth_mode {
            DepthMode::PathValue => depths.max().unwrap_or(0),
            DepthMode::SumOfActivePaths => depths.fold(0, u32::saturating_add),
        }
    }
}

fn refusal(option: &str, value: u32, why: &str, depth: u32) -> String {
    format!("Invalid value `{value}` for {option}: at most {depth}, which {why}")
}
