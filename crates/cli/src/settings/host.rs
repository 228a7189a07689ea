//! A host as its outputs tell it: what it has, and what each thing is set to.

use counters::DeviceId;
use knobs::{Advanced, Driver, IoControl, Knob, PathPolicy, Transport, Version};

/// A parameter of software iSCSI [ELA; reference `array-and-control.md` section 7.5].
pub(super) const DELAYED_ACK: &str = "DelayedAck";

/// A host.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// Its version, where an output says it or leaves no other.
    pub(crate) version: Option<Version>,
    /// Its release, as it says it.
    pub(crate) release: Option<String>,
    pub(crate) drivers: Vec<Module>,
    /// Whether it lists its adapters: what is not in that list it does not have.
    pub(crate) lists_adapters: bool,
    /// The modules among them of which kavg knows nothing.
    pub(crate) unknown_drivers: Vec<String>,
    pub(crate) options: Vec<(Advanced, u32)>,
    /// The defaults of these, where it prints them.
    pub(crate) defaults: Vec<(Advanced, u32)>,
    /// Whether it says that it permits no latency policy ([`knobs::ENABLE_PSP_LATENCY`]).
    pub(crate) forbids_latency: bool,
    /// Whether its software initiator delays acknowledgements.
    pub(crate) delayed_ack: Option<bool>,
    /// In the order of their ids.
    pub(crate) devices: Vec<Device>,
}

/// A driver of a host.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(crate) driver: &'static Driver,
    /// The depth that the host boots with; `None` where the module's parameters are not told.
    pub(crate) depth: Option<u32>,
    /// The depth that it gives its devices now at least, where anything tells it. A parameter that was set since the
    /// last boot is not in force yet.
    pub(crate) in_force: Option<u32>,
    /// What else its parameters are set to, as `name=value`: each line that sets its depth repeats it.
    pub(crate) others: String,
}

impl Module {
    pub(crate) const fn of(driver: &'static Driver) -> Self {
        Self { driver, depth: None, in_force: None, others: String::new() }
    }
}

/// A device as a host sees it. What no output tells is `None`.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) id: DeviceId,
    /// The place in [`Host::drivers`] of what gives it its depth.
    pub(crate) module: Option<usize>,
    pub(crate) max_depth: Option<u32>,
    /// What `-m` holds it at whatever the driver gives: of one that is as deep as that nothing.
    pub(crate) lowered_to: u32,
    /// Whether it may as well follow its driver, whose parameter no boot has brought then.
    pub(crate) may_follow: bool,
    pub(crate) dsnro: Option<u32>,
    pub(crate) queue_full: Option<(u32, u32)>,
    pub(crate) policy: Option<PathPolicy>,
    /// Whether round robin takes paths to the other controller as well (`useANO`).
    pub(crate) use_ano: Option<bool>,
    /// The path that Fixed prefers.
    pub(crate) preferred: Option<String>,
    /// Whether NMP has its paths, and no other plug-in.
    pub(crate) is_nmp: bool,
    /// Whether one controller of its array at a time has it.
    pub(crate) is_active_passive: bool,
    /// Whether it is a protocol endpoint of vVols.
    pub(crate) is_endpoint: bool,
    /// The most that DQLEN was in a capture.
    pub(crate) dqlen: Option<u32>,
    /// What a capture shows that it may be set to.
    pub(crate) reach: u32,
    /// Whether nothing else tells how deep it is: it is so deep at least.
    pub(crate) is_captured: bool,
}

impl Device {
    pub(crate) const fn new(id: DeviceId) -> Self {
        Self {
            id,
            module: None,
            max_depth: None,
            lowered_to: u32::MAX,
            may_follow: false,
            dsnro: None,
            queue_full: None,
            policy: None,
            use_ano: None,
            preferred: None,
            is_nmp: true,
            is_active_passive: false,
            is_endpoint: false,
            dqlen: None,
            reach: 0,
            is_captured: false,
        }
    }

    /// What it is set to.
    fn knobs(&self) -> impl Iterator<Item = Knob> {
        let device = self.id;
        let max_depth = self.max_depth.map(|value| Knob::MaxQueueDepth { device, value });
        let dsnro = self.dsnro.map(|value| Knob::SchedNumReqOutstanding { device, value });
        let queue_full = self.queue_full.map(|(sample_size, threshold)| Knob::QueueFull {
            device,
            sample_size,
            threshold,
        });
        let policy = self.policy.map(|policy| Knob::PathPolicy { device, policy });
        [max_depth, dsnro, queue_full, policy].into_iter().flatten()
    }
}

impl Host {
    pub(crate) const fn named(name: String) -> Self {
        Self {
            name,
            version: None,
            release: None,
            drivers: Vec::new(),
            lists_adapters: false,
            unknown_drivers: Vec::new(),
            options: Vec::new(),
            defaults: Vec::new(),
            forbids_latency: false,
            delayed_ack: None,
            devices: Vec::new(),
        }
    }

    /// Its version; where nothing tells it, 7.0, as kavg takes it everywhere.
    pub(crate) fn version(&self) -> Version {
        self.version.unwrap_or(Version::V7_0)
    }

    /// Whether an option does anything there: one of software iSCSI does nothing where no adapter is of that.
    pub(crate) fn uses(&self, option: Advanced) -> bool {
        let transport = Transport::of_option(option).filter(|_| self.lists_adapters);
        transport.is_none_or(|transport| self.has(transport))
    }

    /// Whether it is told that a driver of it has that transport.
    pub(crate) fn has(&self, transport: Transport) -> bool {
        self.drivers.iter().any(|own| own.driver.transport == transport)
    }

    pub(crate) fn value_of(&self, option: Advanced) -> Option<u32> {
        let own = self.options.iter().find(|(own, _)| *own == option);
        own.map(|(_, value)| *value)
    }

    /// The default of an option: as it prints it, or of its version.
    pub(crate) fn default_of(&self, option: Advanced) -> u32 {
        let printed = self.defaults.iter().find(|(own, _)| *own == option);
        printed.map_or_else(|| option.default_in(self.version()), |(_, default)| *default)
    }

    /// All that it is set to, and that has a line.
    pub(crate) fn knobs(&self) -> impl Iterator<Item = Knob> {
        let modules = self.drivers.iter().filter_map(|module| {
            Some(Knob::ModuleDepth { driver: module.driver, value: module.depth? })
        });
        let options = self.options.iter().filter(|(option, _)| self.uses(*option));
        let options = options.map(|&(option, value)| Knob::Advanced { option, value });
        modules.chain(options).chain(self.devices.iter().flat_map(Device::knobs))
    }

    pub(crate) fn device(&self, id: DeviceId) -> Option<&Device> {
        let place = self.devices.binary_search_by_key(&id, |device| device.id).ok()?;
        self.devices.get(place)
    }

    pub(crate) fn device_mut(&mut self, id: DeviceId) -> Option<&mut Device> {
        let place = self.devices.binary_search_by_key(&id, |device| device.id).ok()?;
        self.devices.get_mut(place)
    }

    pub(crate) fn module(&self, driver: &Driver) -> Option<&Module> {
        self.drivers.iter().find(|module| module.driver == driver)
    }

    /// What is set of that of which a knob sets something.
    pub(crate) fn is_set_to(&self, knob: &Knob) -> Option<Knob> {
        match *knob {
            Knob::ModuleDepth { driver, .. } => {
                let value = self.module(driver)?.depth?;
                Some(Knob::ModuleDepth { driver, value })
            }
            Knob::Advanced { option, .. } => {
                Some(Knob::Advanced { option, value: self.value_of(option)? })
            }
            Knob::MaxQueueDepth { device, .. }
            | Knob::SchedNumReqOutstanding { device, .. }
            | Knob::QueueFull { device, .. }
            | Knob::PathPolicy { device, .. } => {
                self.device(device)?.knobs().find(|own| own.is_turned_by(knob))
            }
            _ => None,
        }
    }

    /// Turns a knob that acts at once. The depth of a module acts with [`Self::boot`].
    pub(crate) fn set(&mut self, knob: &Knob) {
        match *knob {
            Knob::ModuleDepth { driver, value } => {
                let module = self.drivers.iter_mut().find(|module| module.driver == driver);
                module.into_iter().for_each(|module| module.depth = Some(value));
            }
            Knob::Advanced { option, value } => {
                if option == Advanced::VvolPesnro {
                    self.endpoints_follow(value);
                }
                self.options.retain(|(own, _)| *own != option);
                self.options.push((option, value));
            }
            Knob::MaxQueueDepth { device, value } => {
                self.turn(device, |device| {
                    (device.max_depth, device.lowered_to) = (Some(value), value);
                    device.may_follow = false;
                });
            }
            Knob::SchedNumReqOutstanding { device, value } => {
                self.turn(device, |device| device.dsnro = Some(value));
            }
            Knob::QueueFull { device, sample_size, threshold } => {
                self.turn(device, |device| device.queue_full = Some((sample_size, threshold)));
            }
            Knob::PathPolicy { device, policy } => {
                self.turn(device, |device| device.policy = Some(policy));
            }
            _ => {}
        }
    }

    /// Endpoints have the DSNRO of their option [LAMW], but for those that have another, as that of [S4].
    pub(crate) fn follows_pesnro(&self, device: &Device) -> bool {
        device.is_endpoint && device.dsnro == Some(self.pesnro())
    }

    fn pesnro(&self) -> u32 {
        let own = self.value_of(Advanced::VvolPesnro);
        own.unwrap_or_else(|| Advanced::VvolPesnro.default_in(self.version()))
    }

    fn endpoints_follow(&mut self, pesnro: u32) {
        let was = self.pesnro();
        let follows = |device: &&mut Device| device.is_endpoint && device.dsnro == Some(was);
        self.devices.iter_mut().filter(follows).for_each(|device| device.dsnro = Some(pesnro));
    }

    fn turn(&mut self, id: DeviceId, set: impl FnOnce(&mut Device)) {
        if let Some(device) = self.device_mut(id) {
            set(device);
        }
    }

    /// Boots with what its drivers are set to: devices follow, and lowered ones as far as they may.
    pub(crate) fn boot(&mut self) {
        for module in &mut self.drivers {
            module.in_force = module.depth.or(module.in_force);
        }
        for device in &mut self.devices {
            let gives = device.module.and_then(|module| self.drivers[module].in_force);
            let Some(gives) = gives else { continue };
            device.max_depth = device.max_depth.map(|_| device.lowered_to.min(gives));
        }
    }

    /// Whether a device may be deeper than is thought: a boot has brought what it may follow.
    pub(crate) fn is_unsure(&self, device: &Device) -> bool {
        let gives = device.module.and_then(|module| self.drivers[module].in_force);
        device.may_follow && gives > device.max_depth
    }

    /// Whether a line makes a driver so deep there.
    pub(crate) fn takes(&self, module: &Module, depth: u32) -> bool {
        let knob = Knob::ModuleDepth { driver: module.driver, value: depth };
        knob.check(self.version()).is_ok()
    }

    /// What is wanted of a driver.
    pub(crate) fn wanted_of(module: &Module, wanted: &[Knob]) -> Option<u32> {
        wanted.iter().find_map(|knob| match knob {
            Knob::ModuleDepth { driver, value } if *driver == module.driver => Some(*value),
            _ => None,
        })
    }

    /// What is wanted of devices behind a driver.
    pub(crate) fn wanted_behind(
        &self,
        module: usize,
        wanted: &[Knob],
    ) -> impl Iterator<Item = u32> {
        wanted.iter().filter_map(move |knob| match knob {
            Knob::MaxQueueDepth { device, value } => {
                let device = self.device(*device)?;
                (device.module == Some(module)).then_some(*value)
            }
            _ => None,
        })
    }

    /// Whether the parameter of a driver takes a boot to bring what devices behind it are to have.
    pub(crate) fn is_boot_due(&self, module: usize, depth: u32, wanted: &[Knob]) -> bool {
        let in_force = self.drivers[module].in_force;
        let is_brought = |value: u32| value <= depth && in_force.is_none_or(|gives| value > gives);
        self.wanted_behind(module, wanted).any(is_brought)
    }
}

/// A host where settings look for a device that has been found already, whatever a line calls it.
pub(crate) struct At<'a> {
    pub(crate) host: &'a Host,
    pub(crate) device: Option<DeviceId>,
}

impl knobs::Host for At<'_> {
    fn version(&self) -> Version {
        self.host.version()
    }

    fn device(&self, _: &str) -> Result<Option<DeviceId>, knobs::Refusal> {
        Ok(self.device)
    }

    fn controlled(&self, _: &str) -> Result<Option<(DeviceId, IoControl)>, knobs::Refusal> {
        Ok(None)
    }

    fn has_driver(&self, driver: &'static Driver) -> bool {
        self.host.module(driver).is_some()
    }

    fn vms(&self, _: Option<&str>) -> Vec<(counters::VmId, knobs::GuestOs)> {
        Vec::new()
    }

    fn has_pvscsi(&self, _: counters::VmId) -> bool {
        false
    }

    fn disks(&self, _: &knobs::Disks) -> Vec<(counters::VdiskId, knobs::Allocation)> {
        Vec::new()
    }

    fn policy(&self, name: &str) -> Result<knobs::Allocation, knobs::Refusal> {
        Err(format!("`{name}` is known to vCenter alone").into())
    }
}
