//! The engine's surface: inputs in, outputs out, counters to read.
//!
//! Everything is decided in [`Engine::handle_input`]; [`Engine::poll_output`] only hands over. So
//! the outputs are a function of the inputs alone, and a recorded run replays exactly.

use alloc::{
    collections::{BTreeMap, BinaryHeap},
    vec::Vec,
};
use core::cmp::Reverse;

use counters::{
    DeviceCounters, DeviceId, DeviceKind, HostSnapshot, IoId, PathId, Time, VdiskId, VmId, WorldId,
};

use knobs::{Advanced, Version};

use crate::{
    CompetitionUnit, DepthMode, DeviceConfig, Error, HostConfig, Input, Output, SchedPolicy,
    ThrottleMode, VdiskConfig, VmConfig, Wakeup,
    adapter::Adapter,
    device::{Competition, Device, Outage},
    options::Options,
    outputs::Outputs,
    path::{Path, Selector},
    retry::Timer,
    sched::Sched,
    slab::{Extras, Slab, State},
    split::SplitSizes,
    throttle::Throttle,
    vscsi::{Vdisk, Vscsi},
    world::World,
};

/// The queueing stack of one host.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) version: Version,
    pub(crate) depth_mode: DepthMode,
    pub(crate) competition_unit: CompetitionUnit,
    pub(crate) throttle_mode: ThrottleMode,
    pub(crate) now: Time,
    pub(crate) options: Options,
    pub(crate) split: SplitSizes,
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
    pub(crate) timers: BinaryHeap<Reverse<(Time, Timer)>>,
    pub(crate) outputs: Outputs,
}

/// The limits of a device, as `esxcli storage core device list` and esxtop show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Device Max Queue Depth.
    pub max_queue_depth: u32,
    /// No of outstanding IOs with competing worlds (DSNRO).
    pub dsnro: u32,
    /// Whether worlds compete now.
    pub is_competing: bool,
    /// The limit in force (DQLEN).
    pub dqlen: u32,
}

impl Engine {
    /// The stack of a host as it is after a boot.
    ///
    /// # Panics
    /// When an id in the configuration names nothing: whoever made it has checked that.
    #[must_use]
    pub fn new(config: &HostConfig) -> Self {
        let options = Options::new(config.version);
        let mut engine = Self {
            version: config.version,
            depth_mode: config.depth_mode,
            competition_unit: config.competition_unit,
            throttle_mode: config.throttle_mode,
            now: Time::ZERO,
            split: split_sizes(&options),
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
            timers: BinaryHeap::new(),
            outputs: Outputs::default(),
        };
        let mut worlds = BTreeMap::new();
        for disk in &config.vdisks {
            let max_transfer = config.vscsi[disk.vscsi.index()].max_transfer;
            let shared = worlds.get(&(disk.vm, disk.device)).copied();
            let world = engine.add_vdisk(disk, max_transfer, &config.vms[disk.vm.index()], shared);
            if !config.version.schedules_per_file() {
                worlds.insert((disk.vm, disk.device), world);
            }
        }
        engine.add_devices(config);
        engine.refresh_gates();
        // The limits it begins with are no change of them.
        engine.outputs = Outputs::default();
        engine
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
                self.worlds[world.index()].join(disk.allocation);
                world
            }
            None => {
                self.worlds.push(World::new(disk.allocation));
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
            device.selector.add(PathId::new(index));
            device.allow(config.adapters[path.adapter.index()].timeout_ns);
        }
        for disk in &config.vdisks {
            self.devices[disk.device.index()].allow(config.vms[disk.vm.index()].timeout_ns);
        }
        for id in (0..self.devices.len()).map(DeviceId::new) {
            let device = &mut self.devices[id.index()];
            device.selector.refresh(&self.paths);
            device.needs_watch = device.timeout_ns > 0;
            self.refresh_base(id);
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
                self.competition_unit,
                self.options.get(Advanced::SchedQControlVmSwitches),
                self.options.get(Advanced::SchedQControlSeqReqs),
            ),
            throttle: Throttle::new(self.throttle_mode),
            sched: Sched::new(policy, self.options.get(Advanced::SchedCostUnit)),
            selector: Selector::new(Vec::new(), config.path_policy),
            policy_set: config.policy.is_some(),
            window: u32::MAX,
            room: 0,
            wake_at: Time::NEVER,
            timeout_ns: 0,
            outage: Outage::None,
            needs_watch: false,
            watch_at: Time::NEVER,
            is_gone: false,
        }
    }

    /// Takes one input at `now`; what follows from it is in [`Engine::poll_output`]. A submission
    /// gives the id under which the request is dispatched and completed.
    ///
    /// # Errors
    /// [`Error`], and nothing but the passing of time took place: an id that the host does not
    /// have, a time before the last one, an I/O of nothing or of a VM that is off, a setting that
    /// is refused.
    #[inline(always)]
    pub fn handle_input(&mut self, now: Time, input: Input) -> Result<Option<IoId>, Error> {
        if now < self.now {
            return Err(Error::TimeWentBack { last: self.now, now });
        }
        self.now = now;
        if self.timers.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            self.run_timers();
        }
        match input {
            Input::Submit(request) => return self.submit(request).map(Some),
            Input::Done { io, status, array_ns } => self.done(io, status, array_ns)?,
            Input::Cancelled { io } => self.cancelled(io)?,
            Input::Abort { vdisk, tag } => self.abort(vdisk, tag)?,
            Input::Reset(vdisk) => self.reset(vdisk)?,
            Input::Set(knob) => self.set(knob)?,
            Input::Path { path, up } => self.set_path(path, up)?,
            Input::Attach(part) => self.attach(part)?,
            Input::Detach { object, drain } => self.detach(object, drain)?,
            Input::Power { vm, on } => self.power(vm, on)?,
            Input::RebootGuest(vm) => self.reboot_guest(vm)?,
            Input::Reboot => self.reboot(),
            Input::Tick => {}
        }
        Ok(None)
    }

    /// The next thing to do, in the order in which it was decided.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop()
    }

    /// When the engine wants the next [`Input::Tick`], if at all.
    #[inline]
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Wakeup> {
        let &Reverse((at, timer)) = self.timers.peek()?;
        let device = match timer {
            Timer::Device(id) | Timer::Watch(id) | Timer::Apd(id) => id,
            Timer::Again(io) => self.vdisks[usize::from(self.ios[io.slot()].vdisk)].device,
        };
        Some(Wakeup { at, device })
    }

    /// Fills in what has been counted since the engine was built, as of `now`. It is put together
    /// here, because each object keeps its own counters beside the state that changes with them.
    /// Nothing is allocated for a snapshot that was filled before.
    pub fn snapshot(&self, now: Time, into: &mut HostSnapshot) {
        into.at = now;
        into.fill_vdisks(self.vdisks.iter().map(|vdisk| &vdisk.counters));
        into.fill_devices(self.devices.iter().map(|device| &device.counters));
        for (vdisk, counters) in self.vdisks.iter().zip(&mut into.vdisks) {
            let device = &mut into.devices[vdisk.device.index()];
            device.active.add(&counters.slots);
            device.queued.add(&counters.queued);
            vdisk.complete(counters);
        }
        let paths = self.paths.iter().map(|path| &path.counters);
        into.fill_gates(paths, self.adapters.iter().map(|adapter| &adapter.counters));
    }

    /// The limits of a device; `None` when the host does not have it.
    #[must_use]
    pub fn device_limits(&self, id: DeviceId) -> Option<DeviceLimits> {
        let device = self.devices.get(id.index())?;
        Some(DeviceLimits {
            max_queue_depth: device.base,
            dsnro: device.dsnro,
            is_competing: device.competition.is_competing,
            dqlen: device.counters.depth,
        })
    }

    /// The device of a command that the driver has; `None` of any other id.
    #[must_use]
    pub fn device_of_command(&self, id: IoId) -> Option<DeviceId> {
        let is_out = match self.ios.state_of(id)? {
            State::WrittenOff | State::Orphan | State::Piece => true,
            state => state.is_with_driver(),
        };
        let disk = usize::from(self.ios[id.slot()].vdisk);
        is_out.then(|| self.vdisks[disk].device)
    }

    /// The depth of a virtual disk and that of its adapter; `None` when the host does not have it.
    #[must_use]
    pub fn vdisk_depths(&self, id: VdiskId) -> Option<(u32, u32)> {
        let vdisk = self.vdisks.get(id.index())?;
        Some((vdisk.depth, self.vscsi[vdisk.vscsi.index()].depth))
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

    /// Works out the depth of a device anew from its driver, its paths and `-m`.
    pub(crate) fn refresh_base(&mut self, id: DeviceId) {
        let driver_depth = self.driver_depth(id);
        let device = &mut self.devices[id.index()];
        device.base = device.max_depth_set.min(driver_depth);
        self.refresh_depth(id);
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
    pub(crate) fn refresh_depth(&mut self, id: DeviceId) {
        self.devices[id.index()].refresh_depth(id, self.now, &mut self.outputs);
    }

    pub(crate) fn refresh_affinity(&mut self) {
        let quantum = self.options.get(Advanced::SchedQuantum);
        let max_diff = self.options.get(Advanced::SectorMaxDiff);
        for device in &mut self.devices {
            device.sched.set_affinity(quantum, max_diff);
        }
    }

    /// Shows the limits of paths.
    pub(crate) fn refresh_gates(&mut self) {
        for path in &mut self.paths {
            path.counters.depth = self.adapters[path.adapter.index()].lun_depth;
        }
    }

    /// mClock, or what came before it when the option says so or the version has no other.
    pub(crate) fn default_policy(&self) -> SchedPolicy {
        let has_mclock = Advanced::SchedulerWithReservation.exists_in(self.version);
        if has_mclock && self.options.get(Advanced::SchedulerWithReservation) == 1 {
            SchedPolicy::Mclock
        } else {
            SchedPolicy::Sfq
        }
    }

    /// DSNRO [S1, VMB12], for protocol endpoints `Scsi.ScsiVVolPESNRO` [LAMW].
    pub(crate) fn default_dsnro(&self, kind: DeviceKind) -> u32 {
        match kind {
            DeviceKind::ProtocolEndpoint => self.options.get(Advanced::VvolPesnro),
            _ => self.options.get(Advanced::SchedNumReqOutstanding),
        }
    }
}

/// The sizes that the options allow.
pub(crate) fn split_sizes(options: &Options) -> SplitSizes {
    SplitSizes {
        disk_max: options.get(Advanced::DiskMaxIoSize) << 10,
        iscsi_max: options.get(Advanced::IscsiMaxIoSizeKb) << 10,
    }
}
