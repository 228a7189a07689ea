//! Knobs turned: what each setting does, and the refusals that depend on the host's state. Ranges
//! and all other refusals are those of [`Knob::check`].

use alloc::{boxed::Box, format, vec::Vec};

use counters::{DeviceId, VdiskId, VmId};

use knobs::{
    Advanced, Allocation, Driver, IoControl, Knob, PVSCSI_COMMANDS_PER_PAGE, PathPolicy, Target,
};

use crate::{
    Error, Event, Output, Sink,
    sioc::{Sioc, Use},
    stack::Stack,
    vscsi::Vdisk,
    world::joined,
};

impl Stack {
    pub(crate) fn set(&mut self, knob: Knob, out: &mut impl Sink) -> Result<(), Error> {
        self.check_ids(knob)?;
        knob.check(self.version).map_err(|refusal| Error::Refused(refusal.into()))?;
        match knob {
            Knob::SchedNumReqOutstanding { device, value } => self.set_dsnro(device, value, out)?,
            Knob::MaxQueueDepth { device, value } => self.set_max_depth(device, value, out)?,
            Knob::QueueFull { device, sample_size, threshold } => {
                self.set_queue_full(device, sample_size, threshold, out);
            }
            Knob::DepthByLatency { device, on } => self.set_depth_by_latency(device, on, out),
            Knob::StorageIoControl { device, control } => self.set_sioc(device, control, out),
            Knob::Advanced { option, value } => self.set_advanced(option, value, out),
            Knob::ModuleDepth { driver, value } => self.set_module_depth(driver, value)?,
            Knob::Pvscsi { vm, depth, ring_pages } => self.set_pvscsi(vm, depth, ring_pages),
            Knob::PathPolicy { device, policy } => self.set_path_policy(device, policy),
            Knob::Allocation { vdisk, allocation } => self.set_allocation(vdisk, allocation, out),
        }
        Ok(())
    }

    /// A thing that the host does not have is told before a value that it would not take.
    fn check_ids(&mut self, knob: Knob) -> Result<(), Error> {
        match knob.target() {
            Target::Device(device) => self.known_device(device).map(|_| ()),
            Target::Vm(vm) => self.check_vm(vm),
            Target::Vdisk(vdisk) => self.known_vdisk(vdisk).map(|_| ()),
            Target::Host => Ok(()),
        }
    }

    fn set_dsnro(&mut self, id: DeviceId, value: u32, out: &mut impl Sink) -> Result<(), Error> {
        let device = &mut self.devices[id.index()];
        let max = device.base;
        if self.version.refuses_dsnro_above_depth() && !(1..=max).contains(&value) {
            return refuse(&format!(
                "Unable to set device's sched-num-req-outstanding to {value}: allowed is 1 to {max}, the Device Max Queue Depth"
            ));
        }
        device.dsnro_set = Some(value);
        device.dsnro = value;
        self.refresh_depth(id, out);
        self.pump(id, out);
        Ok(())
    }

    fn set_max_depth(
        &mut self,
        id: DeviceId,
        value: u32,
        out: &mut impl Sink,
    ) -> Result<(), Error> {
        let max = self.driver_depth(id);
        if !(1..=max).contains(&value) {
            return refuse(&format!(
                "Unable to set device's max-queue-depth to {value}: allowed is 1 to {max}, the maxPathQueueDepth that the device advertises"
            ));
        }
        self.devices[id.index()].max_depth_set = value;
        self.refresh_base(id, out);
        self.pump(id, out);
        Ok(())
    }

    fn set_queue_full(&mut self, id: DeviceId, size: u32, threshold: u32, out: &mut impl Sink) {
        let device = &mut self.devices[id.index()];
        device.throttle.set(size, threshold);
        let of_host = [Advanced::QFullSampleSize, Advanced::QFullThreshold];
        let [size, threshold] = of_host.map(|option| self.options.get(option));
        device.throttle.set_global(size, threshold);
        device.refresh_rare();
        self.refresh_depth(id, out);
        self.pump(id, out);
    }

    fn set_depth_by_latency(&mut self, id: DeviceId, on: bool, out: &mut impl Sink) {
        let device = &mut self.devices[id.index()];
        device.find_depth(on);
        device.refresh_room();
        self.refresh_depth(id, out);
        self.pump(id, out);
    }

    /// Storage I/O Control of a device begins, goes on otherwise, or ends.
    fn set_sioc(&mut self, id: DeviceId, control: IoControl, out: &mut impl Sink) {
        let was = self.devices[id.index()].sioc.as_deref();
        let sioc = Sioc::with(was, control, || self.uses(id), self.now).map(Box::new);
        self.devices[id.index()].sioc = sioc;
        self.refresh_depth(id, out);
        self.pump(id, out);
    }

    /// What the record of the datastore on a device says; nothing happens where nobody goes by it.
    pub(crate) fn congestion(
        &mut self,
        id: DeviceId,
        latency_ns: u64,
        out: &mut impl Sink,
    ) -> Result<(), Error> {
        self.known_device(id)?;
        let (now, disks) = (self.now, self.uses(id));
        let device = &mut self.devices[id.index()];
        let most = device.base;
        if let Some(sioc) = &mut device.sioc {
            if let Some(is_congested) = sioc.count(latency_ns) {
                out.put(Output::Event(Event::Congestion { device: id, latency_ns, is_congested }));
            } else if sioc.controls() && sioc.follow(latency_ns, most, disks, now) {
                out.put(Output::Event(Event::ExternalWorkload { device: id }));
            }
            self.refresh_depth(id, out);
            self.pump(id, out);
        }
        Ok(())
    }

    /// The virtual disks on a device that are on.
    fn uses(&self, id: DeviceId) -> Vec<Use> {
        let disks = self.vdisks.iter().enumerate();
        let disks = disks.filter(|(_, disk)| disk.device == id && disk.is_on && !disk.is_gone);
        let uses = disks.map(|(index, disk)| {
            let (queued, slots) = (&disk.counters.queued, &disk.counters.slots);
            Use {
                disk: VdiskId::new(index),
                shares: disk.allocation.shares,
                under_way_ns: queued.integral(self.now).wrapping_add(slots.integral(self.now)),
            }
        });
        uses.collect()
    }

    fn set_advanced(&mut self, option: Advanced, value: u32, out: &mut impl Sink) {
        self.options.set(option, value);
        self.apply_options(out);
    }

    /// Hands the options in force to those who go by them.
    pub(crate) fn apply_options(&mut self, out: &mut impl Sink) {
        self.refresh_pieces();
        self.refresh_affinity();
        let policy = self.default_policy();
        let (limit_unit, idle_credit) = (self.limit_unit(), self.idle_credit());
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
            device.sched.limit_unit = limit_unit;
            device.sched.idle_credit = idle_credit;
            device.competition.set_limits(
                self.options.get(Advanced::SchedQControlVmSwitches),
                self.options.get(Advanced::SchedQControlSeqReqs),
            );
            device.throttle.set_global(sample_size, threshold);
            device.refresh_rare();
            self.refresh_apd(DeviceId::new(index), out);
            self.refresh_base(DeviceId::new(index), out);
            self.pump(DeviceId::new(index), out);
        }
    }

    /// In force after the next reboot [S0].
    fn set_module_depth(&mut self, driver: &'static Driver, value: u32) -> Result<(), Error> {
        let mut mine = self.adapters.iter_mut().filter(|a| a.driver == driver);
        let Some(first) = mine.next() else {
            return refuse(&format!("Unable to find module {}: no adapter uses it", driver.module));
        };
        first.staged_lun_depth = value;
        mine.for_each(|adapter| adapter.staged_lun_depth = value);
        Ok(())
    }

    /// In force after the guest's next reboot [KB-PV].
    fn set_pvscsi(&mut self, vm: VmId, depth: u32, ring_pages: u32) {
        let pvscsi = |vscsi: &&mut crate::vscsi::Vscsi| vscsi.vm == vm && vscsi.pvscsi;
        for vscsi in self.vscsi.iter_mut().filter(pvscsi) {
            vscsi.staged_depth = ring_pages * PVSCSI_COMMANDS_PER_PAGE;
        }
        for vdisk in self.vdisks.iter_mut().filter(|disk| disk.vm == vm) {
            if self.vscsi[vdisk.vscsi.index()].pvscsi {
                vdisk.staged_depth = depth;
            }
        }
    }

    fn set_path_policy(&mut self, id: DeviceId, policy: PathPolicy) {
        let device = &mut self.devices[id.index()];
        device.selector.set_policy(policy, &self.paths);
        device.refresh_rare();
    }

    fn set_allocation(&mut self, id: VdiskId, allocation: Allocation, out: &mut impl Sink) {
        let vdisk = &mut self.vdisks[id.index()];
        let device = vdisk.device;
        vdisk.allocation = allocation;
        self.refresh_world(id);
        self.pump(device, out);
    }

    /// Works out anew what the world of a virtual disk gets from those of its disks that are there.
    pub(crate) fn refresh_world(&mut self, id: VdiskId) {
        let Vdisk { world, device, .. } = self.vdisks[id.index()];
        let mine = self.vdisks.iter().filter(|disk| disk.world == world && !disk.is_gone);
        if let Some(all) = mine.map(|disk| disk.allocation).reduce(joined) {
            let had_reservation = self.worlds[world.index()].reservation_ns != 0;
            self.worlds[world.index()].allocate(all, self.now);
            if had_reservation {
                let sched = &mut self.devices[device.index()].sched;
                sched.forget_lead(&mut self.worlds, world, self.now);
            }
        }
        self.devices[device.index()].sched.has_bounds = self.has_bounds(device);
    }

    /// Whether a world of a device has a limit or a reservation.
    pub(crate) fn has_bounds(&self, id: DeviceId) -> bool {
        let mut mine = self.vdisks.iter().filter(|disk| disk.device == id);
        mine.any(|disk| self.worlds[disk.world.index()].is_bound)
    }
}

fn refuse(line: &str) -> Result<(), Error> {
    Err(Error::Refused(line.into()))
}
