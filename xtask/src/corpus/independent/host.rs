//! The nouns: a host with its adapters, devices and VMs, and the state of it in one interval.

/// How quick an array is at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Flash,
    Spindle,
}

#[derive(Clone, Debug)]
pub(super) struct Adapter {
    pub(super) name: String,
    /// AQLEN.
    pub(super) depth: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Path {
    /// `vmhba1:C0:T0:L3`.
    pub(super) name: String,
    pub(super) adapter: usize,
}

/// A SCSI device, or an NFS volume: which has neither queue nor paths.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) nfs: bool,
    pub(super) media: Media,
    /// Device Max Queue Depth.
    pub(super) depth: u32,
    pub(super) dsnro: u32,
    pub(super) service_ms: f64,
    pub(super) servers: f64,
    pub(super) paths: Vec<Path>,
    /// Round robin; else all goes by the first path.
    pub(super) round_robin: bool,
}

/// The virtual adapters of section 1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Controller {
    Pvscsi,
    Lsi,
    Nvme,
}

#[derive(Clone, Debug)]
pub(super) struct Vm {
    pub(super) name: String,
    pub(super) group: u32,
    /// The leader world: what its commands run under.
    pub(super) world: u32,
    pub(super) controller: Controller,
}

/// What a virtual disk wants.
#[derive(Clone, Copy, Debug)]
pub(super) enum Demand {
    /// Arrivals per second, whatever the storage does.
    Open(f64),
    /// Threads that each wait for their answer.
    Closed(f64),
}

/// A virtual disk and its load.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) vm: usize,
    /// Its number on the VM's controller.
    pub(super) target: u32,
    pub(super) device: usize,
    pub(super) now: FlowNow,
    /// How much its load varies from row to row, as a part of it.
    pub(super) varies: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FlowNow {
    pub(super) demand: Demand,
    /// Commands that the virtual disk lets through at once.
    pub(super) limit: f64,
    pub(super) reads: f64,
    pub(super) kib: f64,
    /// IOPS limit of the virtual disk, in the VMkernel's scheduler.
    pub(super) limit_iops: Option<f64>,
    /// QoS of the array on this disk alone: a vVol.
    pub(super) qos_iops: Option<f64>,
}

/// A device in one interval.
#[derive(Clone, Debug)]
pub(super) struct DeviceNow {
    /// DQLEN before competition is looked at.
    pub(super) depth: u32,
    /// Commands that its volume takes at a time: more are answered TASK SET FULL.
    pub(super) takes: u32,
    /// DSNRO acts when VMs compete.
    pub(super) competes: bool,
    pub(super) service_ms: f64,
    pub(super) servers: f64,
    pub(super) cap_iops: Option<f64>,
    /// Wait of each path for a slot of its adapter: below the device's queue, above the driver.
    pub(super) adapters_ms: Vec<f64>,
    /// Kernel time that is no queue.
    pub(super) kernel_ms: f64,
    /// No command completes.
    pub(super) silent: bool,
    /// Commands that come back late in this interval, and how late (ms).
    pub(super) late: (f64, f64),
    pub(super) reserves: f64,
    pub(super) conflicts: f64,
    pub(super) aborts: f64,
    pub(super) resets: f64,
    /// The part of the commands that fails.
    pub(super) failed: f64,
    /// The part of the commands that is split.
    pub(super) split: f64,
    /// The part of the traffic of each path.
    pub(super) shares: Vec<f64>,
}

impl DeviceNow {
    /// The mean wait for a slot of an adapter.
    pub(super) fn adapter_ms(&self) -> f64 {
        self.shares.iter().zip(&self.adapters_ms).map(|(share, wait_ms)| share * wait_ms).sum()
    }
}

/// A host in one interval.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub(super) devices: Vec<DeviceNow>,
    pub(super) flows: Vec<FlowNow>,
}

/// A host, and how it is recorded.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) name: String,
    /// ESXi 6.0: the helper worlds do not tell the controller.
    pub(super) old: bool,
    /// Recorded with `-a`.
    pub(super) all: bool,
    pub(super) trailing_comma: bool,
    pub(super) interval_s: u32,
    pub(super) rows: usize,
    pub(super) garbage: bool,
    pub(super) adapters: Vec<Adapter>,
    pub(super) devices: Vec<Device>,
    pub(super) vms: Vec<Vm>,
    pub(super) flows: Vec<Flow>,
}

impl Host {
    pub(super) fn disk(&self, flow: usize) -> String {
        let Flow { vm, target, .. } = self.flows[flow];
        let kind = if self.vms[vm].controller == Controller::Nvme { "nvme" } else { "scsi" };
        format!("{}:{kind}0:{target}", self.vms[vm].name)
    }

    /// All names under which a trouble of this device may be reported.
    pub(super) fn places(&self, device: usize) -> Vec<String> {
        let device = &self.devices[device];
        let paths = device.paths.iter().map(|path| path.name.clone());
        std::iter::once(device.name.clone()).chain(paths).collect()
    }

    pub(super) fn flows_of(&self, device: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.flows.len()).filter(move |flow| self.flows[*flow].device == device)
    }

    /// The state at rest.
    pub(super) fn moment(&self) -> Moment {
        Moment {
            devices: self.devices.iter().map(Device::now).collect(),
            flows: self.flows.iter().map(|flow| flow.now).collect(),
        }
    }
}

impl Device {
    fn now(&self) -> DeviceNow {
        let even = 1.0 / self.paths.len().max(1) as f64;
        let shares = (0..self.paths.len())
            .map(|path| if self.round_robin { even } else { f64::from(u8::from(path == 0)) })
            .collect();
        DeviceNow {
            depth: self.depth,
            takes: u32::MAX,
            competes: true,
            service_ms: self.service_ms,
            servers: self.servers,
            cap_iops: None,
            adapters_ms: vec![0.0; self.paths.len()],
            kernel_ms: 0.0,
            silent: false,
            late: (0.0, 0.0),
            reserves: 0.0,
            conflicts: 0.0,
            aborts: 0.0,
            resets: 0.0,
            failed: 0.0,
            split: 0.0,
            shares,
        }
    }
}
