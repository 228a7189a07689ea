//! The objects of one host's stack, and what is worked out from several of them.

use alloc::{collections::BTreeMap, vec::Vec};

use counters::{DeviceCounters, DeviceId, DeviceKind, PathId, Time, VdiskId, VmId, WorldId};

use knobs::{Advanced, Version};

use crate::{
    CompetitionUnit, DepthMode, DeviceConfig, Error, HostConfig, SchedPolicy, Sink, ThrottleMode,
    VdiskConfig, VmConfig,
    adapter::Adapter,
    codec::records,
    device::{Competition, Device, Outage},
    options::Options,
    path::{Path, Selector},
    sched::Sched,
    slab::{Extras, Slab},
    split::SplitSizes,
    throttle::Throttle,
    timer::{Timer, Timers},
    vscsi::{Vdisk, Vscsi},
    world::{World, joined},
};

/// Everything that a host has, by its ids. The rules are in the files of those whose state they
/// change; what they decide goes to the [`Sink`] that they are given.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) version: Version,
    pub(crate) depth_mode: DepthMode,
    pub(crate) competition_unit: CompetitionUnit,
    pub(crate) throttle_mode: ThrottleMode,
    pub(crate) weight_scale_percent: u32,
    pub(crate) now: Time,
    pub(crate) options: Options,
    /// How many virtual machines there are.
    pub(crate) vms: usize,
    pub(crate) vscsi: Vec<Vscsi>,
    pub(crate) vdisks: Vec<Vdisk>,
    pub(crate) worlds: Vec<World>,
    pub(crate) devices: Vec<Device>,
    pub(crate) paths: Vec<Path>,
    pub(crate) adapters: Vec<Adapter>,
    pub(crate) ios: Slab,
    pub(crate) extras: Extras,
    pub(crate) timers: Timers,
}

impl Stack {
    /// As it is after a boot of the host.
    ///
    /// # Panics
    /// When an id in the configuration names nothing.
    pub(crate) fn new(config: &HostConfig) -> Self {
        let options = Options::new(config.version);
        let mut stack = Self {
            version: config.version,
            depth_mode: config.depth_mode,
            competition_unit: config.competition_unit,
            throttle_mode: config.throttle_mode,
            weight_scale_percent: config.weight_scale_percent,
            now: Time::ZERO,
            options,
            vms: config.vms.len(),
            vscsi: config.vscsi.iter().map(Vscsi::new).collect(),
            vdisks: Vec::with_capacity(config.vdisks.len()),
            worlds: Vec::with_capacity(config.vdisks.len()),
            devices: Vec::new(),
            paths: config.paths.iter().map(Path::new).collect(),
            adapters: config.adapters.iter().map(Adapter::new).collect(),
            ios: Slab::default(),
            extras: Extras::default(),
            timers: Timers::default(),
        };
        let mut worlds = BTreeMap::new();
        for disk in &config.vdisks {
            let max_transfer = config.vscsi[disk.vscsi.index()].max_transfer;
            let shared = worlds.get(&(disk.vm, disk.device)).copied();
            let world = stack.add_vdisk(disk, max_transfer, &config.vms[disk.vm.index()], shared);
            if !config.version.schedules_per_file() {
                worlds.insert((disk.vm, disk.device), world);
            }
        }
        stack.add_devices(config);
        stack.refresh_gates();
        stack.refresh_pieces();
        stack
    }

    /// From ESXi 6.0 on every virtual disk has a world of its own on its device; before that
    /// those of one VM share it [PFS]: the `shared` one, if there is one already. Its world.
    pub(crate) fn add_vdisk(
        &mut self,
        disk: &VdiskConfig,
        max_transfer: u32,
        vm: &VmConfig,
        shared: Option<WorldId>,
    ) -> WorldId {
        let world = match shared {
            Some(world) => {
                let known = &mut self.worlds[world.index()];
                known.allocate(joined(known.allocation, disk.allocation), self.now);
                world
            }
            None => {
                self.worlds.push(World::new(disk.allocation, self.weight_scale_percent));
                WorldId::new(self.worlds.len() - 1)
            }
        };
        let contender = match self.competition_unit {
            CompetitionUnit::Vm => disk.vm.0,
            CompetitionUnit::File => self.vdisks.len() as u16,
        };
        self.vdisks.push(Vdisk::new(disk, max_transfer, vm, world, contender));
        world
    }

    fn add_devices(&mut self, config: &HostConfig) {
        self.devices = config.devices.iter().map(|device| self.new_device(device)).collect();
        for (index, path) in config.paths.iter().enumerate() {
            let device = &mut self.devices[path.device.index()];
            device.add_path(PathId::new(index), &mut self.paths[index]);
            device.allow(config.adapters[path.adapter.index()].timeout_ns);
        }
        for (disk, known) in config.vdisks.iter().zip(&self.vdisks) {
            let device = &mut self.devices[disk.device.index()];
            device.allow(config.vms[disk.vm.index()].timeout_ns);
            device.sched.has_bounds |= self.worlds[known.world.index()].is_bound;
        }
        for id in (0..self.devices.len()).map(DeviceId::new) {
            let device = &mut self.devices[id.index()];
            device.selector.refresh(&self.paths);
            device.needs_watch = device.timeout_ns > 0;
            // The limits it begins with are no change of them.
            self.refresh_base(id, &mut ());
        }
        self.refresh_affinity();
    }

    /// A device without a path.
    pub(crate) fn new_device(&self, config: &DeviceConfig) -> Device {
        let policy = config.policy.unwrap_or_else(|| self.default_policy());
        Device {
            counters: DeviceCounters::default(),
            active: 0,
            taken: 0,
            taken_at_cut: 0,
            queued: 0,
            kind: config.kind,
            max_depth_set: u32::MAX,
            base: 0,
            dsnro_set: config.dsnro,
            dsnro: config.dsnro.unwrap_or_else(|| self.default_dsnro(config.kind)),
            competition: Competition::new(
                self.options.get(Advanced::SchedQControlVmSwitches),
                self.options.get(Advanced::SchedQControlSeqReqs),
            ),
            throttle: Throttle::new(self.throttle_mode),
            knee: None,
            sioc: None,
            sched: Sched::new(
                policy,
                self.options.get(Advanced::SchedCostUnit),
                self.limit_unit(),
                self.idle_credit(),
            ),
            selector: Selector::new(Vec::new(), config.path_policy),
            policy_set: config.policy.is_some(),
            window: u32::MAX,
            room: 0,
            wake_at: Time::NEVER,
            timeout_ns: 0,
            outage: Outage::None,
            has_rare: false,
            failed: None,
            needs_watch: false,
            watch_at: Time::NEVER,
            is_gone: false,
        }
    }

    pub(crate) fn known_vdisk(&self, id: VdiskId) -> Result<&Vdisk, Error> {
        let known = self.vdisks.get(id.index()).filter(|disk| !disk.is_gone);
        known.ok_or(Error::Unknown("virtual disk", id.index()))
    }

    pub(crate) fn check_vm(&self, id: VmId) -> Result<(), Error> {
        if id.index() < self.vms {
            return Ok(());
        }
        Err(Error::Unknown("virtual machine", id.index()))
    }

    pub(crate) fn known_device(&mut self, id: DeviceId) -> Result<&mut Device, Error> {
        let known = self.devices.get_mut(id.index()).filter(|device| !device.is_gone);
        known.ok_or(Error::Unknown("device", id.index()))
    }

    pub(crate) fn known_path(&mut self, id: PathId) -> Result<&mut Path, Error> {
        let known = self.paths.get_mut(id.index()).filter(|path| !path.is_gone);
        known.ok_or(Error::Unknown("path", id.index()))
    }

    /// Works out the depth of a device anew from its driver, its paths and `-m`; that of an NFS mount from the
    /// host's option [LAMW].
    pub(crate) fn refresh_base(&mut self, id: DeviceId, out: &mut impl Sink) {
        let driver_depth = self.driver_depth(id);
        let device = &mut self.devices[id.index()];
        device.base = match device.kind {
            DeviceKind::Nfs => self.options.get(Advanced::NfsMaxQueueDepth),
            _ => device.max_depth_set.min(driver_depth),
        };
        self.refresh_depth(id, out);
    }

    /// What the driver gives the device: the value of one path, or the sum over those that are up.
    pub(crate) fn driver_depth(&self, id: DeviceId) -> u32 {
        let paths = self.devices[id.index()].selector.paths();
        let depth =
            |path: &PathId| self.adapters[self.paths[path.index()].adapter.index()].lun_depth;
        match self.depth_mode {
            DepthMode::PathValue => {
                let there = paths.iter().find(|path| !self.paths[path.index()].is_gone);
                there.or(paths.first()).map_or(1, depth)
            }
            DepthMode::SumOfActivePaths => {
                let up = paths.iter().filter(|path| self.paths[path.index()].is_usable());
                up.map(depth).fold(0, u32::saturating_add).max(1)
            }
        }
    }

    /// Puts the limit in force that follows from the state of the device.
    pub(crate) fn refresh_depth(&mut self, id: DeviceId, out: &mut impl Sink) {
        let device = &mut self.devices[id.index()];
        device.refresh_depth(id, self.now, out);
        let alarm = device.knee.as_mut().and_then(|knee| knee.take_alarm());
        if let Some(at) = alarm {
            self.timers.set(at, Timer::Probe(id));
        }
    }

    pub(crate) fn refresh_affinity(&mut self) {
        let quantum = self.options.get(Advanced::SchedQuantum);
        let max_diff = self.options.get(Advanced::SectorMaxDiff);
        for device in &mut self.devices {
            device.sched.set_affinity(quantum, max_diff);
        }
    }

    /// I/Os that a world may bank under mClock (ruling: the option that allows a burst says whether, and the
    /// credit how much; section 4.1 of the reference).
    pub(crate) fn idle_credit(&self) -> u64 {
        let bursts = self.options.get(Advanced::SchedReservationBurst) == 1;
        if bursts { self.options.get(Advanced::IdleCredit).into() } else { 0 }
    }

    /// Shows the limits of paths.
    pub(crate) fn refresh_gates(&mut self) {
        for path in &mut self.paths {
            path.counters.depth = self.adapters[path.adapter.index()].lun_depth;
        }
    }

    /// What serves the devices that say nothing else.
    pub(crate) fn default_policy(&self) -> SchedPolicy {
        let with_reservation = self.options.get(Advanced::SchedulerWithReservation);
        SchedPolicy::default_in(self.version, with_reservation)
    }

    /// Bytes that an IOPS limit counts as one I/O.
    pub(crate) fn limit_unit(&self) -> u32 {
        self.default_policy().limit_unit(self.options.get(Advanced::SchedCostUnit))
    }

    /// DSNRO [S1, VMB12], for protocol endpoints `Scsi.ScsiVVolPESNRO` [LAMW].
    pub(crate) fn default_dsnro(&self, kind: DeviceKind) -> u32 {
        match kind {
            DeviceKind::ProtocolEndpoint => self.options.get(Advanced::VvolPesnro),
            _ => self.options.get(Advanced::SchedNumReqOutstanding),
        }
    }

    /// Works out anew what adapters cut commands into.
    pub(crate) fn refresh_pieces(&mut self) {
        let sizes = SplitSizes::of(&self.options);
        for adapter in &mut self.adapters {
            adapter.piece_max = sizes.piece(adapter.driver.transport);
        }
    }
}

records! {
    Stack {
        version, depth_mode, competition_unit, throttle_mode, weight_scale_percent, now, options, vms,
        vscsi, vdisks, worlds, devices, paths, adapters, ios, extras, timers,
    }
}
