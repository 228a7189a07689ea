//! Knobs turned: ranges, refusals and the moment of effect of every setting.

use alloc::format;

use counters::{DeviceId, VdiskId, VmId};

use crate::{
    Advanced, Allocation, Driver, Error, Knob, PVSCSI_COMMANDS_PER_PAGE, PVSCSI_DEPTH_MAX,
    PVSCSI_RING_PAGES_MAX, PathPolicy,
    engine::{Engine, split_sizes},
};

impl Engine {
    pub(crate) fn set(&mut self, knob: Knob) -> Result<(), Error> {
        match knob {
            Knob::SchedNumReqOutstanding { device, value } => self.set_dsnro(device, value),
            Knob::MaxQueueDepth { device, value } => self.set_max_depth(device, value),
            Knob::QueueFull { device, sample_size, threshold } => {
                self.set_queue_full(device, sample_size, threshold)
            }
            Knob::Advanced { option, value } => self.set_advanced(option, value),
            Knob::ModuleDepth { driver, value } => self.set_module_depth(driver, value),
            Knob::Pvscsi { vm, depth, ring_pages } => self.set_pvscsi(vm, depth, ring_pages),
            Knob::PathPolicy { device, policy } => self.set_path_policy(device, policy),
            Knob::Allocation { vdisk, allocation } => self.set_allocation(vdisk, allocation),
        }
    }

    fn set_dsnro(&mut self, id: DeviceId, value: u32) -> Result<(), Error> {
        let version = self.version;
        let device = self.known_device(id)?;
        if version.has_global_dsnro() {
            return refuse(
                "Unknown option --sched-num-req-outstanding: up to ESXi 5.1 DSNRO is the advanced option /Disk/SchedNumReqOutstanding",
            );
        }
        let max = if version.refuses_dsnro_above_depth() { device.base } else { knobs::DSNRO.max };
        if !(1..=max).contains(&value) {
            return refuse(&format!(
                "Unable to set device's sched-num-req-outstanding to {value}: allowed is 1 to {max}, {}",
                if version.refuses_dsnro_above_depth() {
                    "the Device Max Queue Depth"
                } else {
                    "whatever the device's depth"
                }
            ));
        }
        device.dsnro_set = Some(value);
        device.dsnro = value;
        self.refresh_depth(id);
        self.pump(id);
        Ok(())
    }

    fn set_max_depth(&mut self, id: DeviceId, value: u32) -> Result<(), Error> {
        self.known_device(id)?;
        let max = self.driver_depth(id);
        if !(1..=max).contains(&value) {
            return refuse(&format!(
                "Unable to set device's max-queue-depth to {value}: allowed is 1 to {max}, the maxPathQueueDepth that the device advertises"
            ));
        }
        self.devices[id.index()].max_depth_set = Some(value);
        self.refresh_base(id);
        self.pump(id);
        Ok(())
    }

    fn set_queue_full(&mut self, id: DeviceId, size: u32, threshold: u32) -> Result<(), Error> {
        self.known_device(id)?;
        check_range("queue-full-sample-size", size, Advanced::QFullSampleSize)?;
        if size > 0 {
            check_range("queue-full-threshold", threshold, Advanced::QFullThreshold)?;
            if threshold > size {
                return refuse(&format!(
                    "Unable to set queue-full-threshold to {threshold}: it is at most the queue-full-sample-size, {size}"
                ));
            }
        }
        self.devices[id.index()].throttle.set(size, threshold);
        self.refresh_depth(id);
        self.pump(id);
        Ok(())
    }

    fn set_advanced(&mut self, option: Advanced, value: u32) -> Result<(), Error> {
        if option == Advanced::SchedNumReqOutstanding && !self.version.has_global_dsnro() {
            return refuse(
                "Unable to find option SchedNumReqOutstanding: since ESXi 5.5 DSNRO is set per device with storage core device set -O",
            );
        }
        self.options.set(option, value)?;
        self.apply_options();
        Ok(())
    }

    /// Hands the options in force to those who go by them.
    pub(crate) fn apply_options(&mut self) {
        self.split = split_sizes(&self.options);
        self.refresh_affinity();
        let policy = self.default_policy();
        let sample_size = self.options.get(Advanced::QFullSampleSize);
        let threshold = self.options.get(Advanced::QFullThreshold);
        for index in 0..self.devices.len() {
            let dsnro = self.default_dsnro(self.devices[index].kind);
            let device = &mut self.devices[index];
            device.dsnro = device.dsnro_set.unwrap_or(dsnro);
            if !device.policy_set {
                device.sched.policy = policy;
            }
            device.sched.cost_unit = self.options.get(Advanced::SchedCostUnit);
            device.competition.switches_max = self.options.get(Advanced::SchedQControlVmSwitches);
            device.competition.run_max = self.options.get(Advanced::SchedQControlSeqReqs);
            device.throttle.set_global(sample_size, threshold);
            self.refresh_depth(DeviceId::new(index));
            self.pump(DeviceId::new(index));
        }
    }

    /// In force after the next reboot [S0].
    fn set_module_depth(&mut self, driver: &'static Driver, value: u32) -> Result<(), Error> {
        let Some(parameter) = driver.parameter else {
            return refuse(&format!("Module {} has no parameter for a depth", driver.module));
        };
        if !(driver.depth_min..=driver.depth_max).contains(&value) {
            return refuse(&format!(
                "Unable to set {parameter} of module {} to {value}: allowed is {} to {}",
                driver.module, driver.depth_min, driver.depth_max
            ));
        }
        let mut mine = self.adapters.iter_mut().filter(|a| a.driver == driver);
        let Some(first) = mine.next() else {
            return refuse(&format!("Unable to find module {}: no adapter uses it", driver.module));
        };
        first.staged_lun_depth = value;
        mine.for_each(|adapter| adapter.staged_lun_depth = value);
        Ok(())
    }

    /// In force after the guest's next reboot [KB-PV].
    fn set_pvscsi(&mut self, vm: VmId, depth: u32, ring_pages: u32) -> Result<(), Error> {
        self.check_vm(vm)?;
        if !(1..=PVSCSI_DEPTH_MAX).contains(&depth) {
            return refuse(&format!(
                "Unable to set the PVSCSI depth per disk to {depth}: allowed is 1 to {PVSCSI_DEPTH_MAX}"
            ));
        }
        if !(1..=PVSCSI_RING_PAGES_MAX).contains(&ring_pages) {
            return refuse(&format!(
                "Unable to set the PVSCSI ring to {ring_pages} pages: allowed is 1 to {PVSCSI_RING_PAGES_MAX}"
            ));
        }
        let pvscsi = |vscsi: &&mut crate::vscsi::Vscsi| vscsi.vm == vm && vscsi.pvscsi;
        for vscsi in self.vscsi.iter_mut().filter(pvscsi) {
            vscsi.staged_depth = ring_pages * PVSCSI_COMMANDS_PER_PAGE;
        }
        for vdisk in self.vdisks.iter_mut().filter(|disk| disk.vm == vm) {
            if self.vscsi[vdisk.vscsi.index()].pvscsi {
                vdisk.staged_depth = depth;
            }
        }
        Ok(())
    }

    fn set_path_policy(&mut self, id: DeviceId, policy: PathPolicy) -> Result<(), Error> {
        let has_latency = self.version.has_latency_policy();
        self.known_device(id)?;
        match policy {
            PathPolicy::Latency { .. } if !has_latency => {
                return refuse("Unknown type latency: path selection by latency needs ESXi 6.7");
            }
            PathPolicy::RoundRobin { iops: 0, .. } | PathPolicy::RoundRobin { bytes: 0, .. } => {
                return refuse("Unable to set round robin: iops and bytes are at least 1");
            }
            PathPolicy::Latency { sampling_ios: 0, .. } => {
                return refuse("Unable to set round robin: num-sampling-cycles is at least 1");
            }
            _ => {}
        }
        self.devices[id.index()].selector.set_policy(policy, &self.paths);
        Ok(())
    }

    fn set_allocation(&mut self, id: VdiskId, allocation: Allocation) -> Result<(), Error> {
        let (world, device) = {
            let vdisk = self.known_vdisk(id)?;
            (vdisk.world, vdisk.device)
        };
        if !Allocation::SHARES.contains(&allocation.shares) {
            return refuse(&format!(
                "Unable to set shares to {}: allowed is {} to {}",
                allocation.shares,
                Allocation::SHARES.start(),
                Allocation::SHARES.end()
            ));
        }
        if allocation.limit_iops == Some(0) {
            return refuse("Unable to set the IOPS limit to 0: it is at least 1, or unlimited");
        }
        self.vdisks[id.index()].allocation = allocation;
        let mut mine = self.vdisks.iter().filter(|disk| disk.world == world);
        if let Some(first) = mine.next() {
            let of_world = &mut self.worlds[world.index()];
            of_world.allocate(first.allocation);
            mine.for_each(|disk| of_world.join(disk.allocation));
        }
        self.pump(device);
        Ok(())
    }
}

fn check_range(name: &str, value: u32, option: Advanced) -> Result<(), Error> {
    let info = option.info();
    if (info.min..=info.max).contains(&value) {
        return Ok(());
    }
    refuse(&format!("Unable to set {name} to {value}: allowed is {} to {}", info.min, info.max))
}

fn refuse(line: &str) -> Result<(), Error> {
    Err(Error::Refused(line.into()))
}
