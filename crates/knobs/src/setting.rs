//! A setting: what esxcli, the guest's drivers and a disk's policy set, and when it acts.
//!
//! A line that somebody types names the things that it sets ([`Setting<Named>`](Named)); on a host
//! that has them they have ids ([`Knob`]). The settings and their fields are the same.

use alloc::{format, string::String, vec, vec::Vec};
use core::{
    fmt::Debug,
    mem::discriminant,
    ops::{Deref, RangeInclusive},
};

use counters::{DeviceId, VdiskId, VmId};

use crate::{
    Advanced, CONGESTION_MS, CONGESTION_MS_DEFAULT, DSNRO, Disks, Driver, Effect, GuestDriver,
    GuestOs, GuestSystem, PVSCSI_DEPTH_MAX, PVSCSI_RING_PAGES_MAX, Refusal, Version,
};

/// What a setting says of the things that it sets.
pub trait Form {
    /// A device.
    type Device: Clone + Debug + PartialEq;
    /// A virtual machine.
    type Vm: Clone + Debug + PartialEq;
    /// A virtual disk.
    type Vdisk: Clone + Debug + PartialEq;
    /// A number for which a line may say "the default".
    type Number: Clone + Debug + PartialEq;
    /// A path policy.
    type Policy: Clone + Debug + PartialEq;
    /// What a virtual disk may have.
    type Allocation: Clone + Debug + PartialEq;
    /// What Storage I/O Control does.
    type Control: Clone + Debug + PartialEq;
    /// A driver of which a parameter is set.
    type Module: Clone + Debug + PartialEq + Deref<Target = Driver>;
}

/// As a line says it: by name, and no more than it sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {}

impl Form for Named {
    type Device = String;
    type Vm = GuestName;
    type Vdisk = Disks;
    /// `None` is the default of the host's version or of the guest's driver.
    type Number = Option<u32>;
    type Policy = PolicyChange;
    type Allocation = AllocationChange;
    type Control = IoControlChange;
    type Module = Module;
}

/// As the engine of a host takes it: by id, and complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {}

impl Form for Resolved {
    type Device = DeviceId;
    type Vm = VmId;
    type Vdisk = VdiskId;
    type Number = u32;
    type Policy = PathPolicy;
    type Allocation = Allocation;
    type Control = IoControl;
    type Module = &'static Driver;
}

/// A setting on a host whose things have ids.
pub type Knob = Setting<Resolved>;

/// A change of one setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting<F: Form = Named> {
    /// `storage core device set -O`: outstanding I/Os with competing worlds (DSNRO).
    SchedNumReqOutstanding {
        /// The device.
        device: F::Device,
        /// In the range of [`DSNRO`]; from ESXi 6.5 at most the device's depth [HP, S1].
        value: u32,
    },
    /// `storage core device set -m`: the device's depth, at most what the driver gives [QD254].
    MaxQueueDepth {
        /// The device.
        device: F::Device,
        /// 1 to the driver's depth.
        value: u32,
    },
    /// `storage core device set -s -q`: adaptive throttling of one device [KB-QF].
    QueueFull {
        /// The device.
        device: F::Device,
        /// Results in a window, as [`Advanced::QFullSampleSize`], which counts where this is 0: the device has none of
        /// its own [reference, device list prints 0/0].
        sample_size: u32,
        /// Bad results that halve the depth, as [`Advanced::QFullThreshold`] and at most the
        /// sample size [LAMW].
        threshold: u32,
    },
    /// `kavg device set -l`: whether the device's depth is found by latency. kavg's own; no ESXi has
    /// it.
    DepthByLatency {
        /// The device.
        device: F::Device,
        /// Whether it is.
        on: bool,
    },
    /// `Set-Datastore`: Storage I/O Control of a datastore, on each host that
    /// sees it [PCLI].
    StorageIoControl {
        /// The device; a line names its datastore.
        device: F::Device,
        /// What it does.
        control: F::Control,
    },
    /// `system settings advanced set`.
    Advanced {
        /// The option.
        option: Advanced,
        /// A value in its range.
        value: F::Number,
    },
    /// `system module parameters set`: the depth of every device behind a driver.
    ModuleDepth {
        /// The driver; a line says its other parameters too, all of which it replaces.
        driver: F::Module,
        /// A value in the parameter's range.
        value: u32,
    },
    /// The PVSCSI driver inside a guest: registry value or module parameters [KB-PV].
    Pvscsi {
        /// The virtual machine.
        vm: F::Vm,
        /// Commands per disk, 1 to [`PVSCSI_DEPTH_MAX`].
        depth: F::Number,
        /// Pages of the ring, 1 to [`PVSCSI_RING_PAGES_MAX`].
        ring_pages: F::Number,
    },
    /// `storage nmp device set -P` and `psp roundrobin deviceconfig set`.
    PathPolicy {
        /// The device.
        device: F::Device,
        /// The policy.
        policy: F::Policy,
    },
    /// A virtual disk's limit, reservation and shares.
    Allocation {
        /// The virtual disk; a line may name a storage policy, and means what that says.
        vdisk: F::Vdisk,
        /// The allocation.
        allocation: F::Allocation,
    },
}

/// What Storage I/O Control does with a datastore. A congestion threshold is in microseconds, in the range
/// of [`CONGESTION_MS`]: in whole milliseconds but where it was found and not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoControl {
    /// Nothing.
    Off,
    /// It counts and holds nobody back, the mode of statistics alone [API, SC-SIOC]: that the datastore is
    /// congested is told.
    Stats {
        /// The congestion threshold.
        threshold_us: u32,
    },
    /// Hosts share what the array does from the threshold on.
    On {
        /// The congestion threshold.
        threshold_us: u32,
    },
}

impl IoControl {
    /// On, at the threshold that it has where nobody gives one.
    pub const DEFAULT: Self = Self::On { threshold_us: 1000 * CONGESTION_MS_DEFAULT };

    /// The congestion threshold; `None` where it is off.
    #[must_use]
    pub const fn threshold_us(self) -> Option<u32> {
        match self {
            Self::Off => None,
            Self::Stats { threshold_us } | Self::On { threshold_us } => Some(threshold_us),
        }
    }
}

/// What a line sets of Storage I/O Control: what the line leaves out stays [API].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoControlChange {
    /// All of it.
    To(IoControl),
    /// That hosts share, from the threshold on that it has, or [`CONGESTION_MS_DEFAULT`].
    Enabled,
    /// The congestion threshold alone. Where it was off it counts by it from now on and holds nobody back.
    Threshold {
        /// The congestion threshold.
        threshold_us: u32,
    },
}

impl From<IoControl> for IoControlChange {
    fn from(control: IoControl) -> Self {
        Self::To(control)
    }
}

impl IoControlChange {
    /// What Storage I/O Control does after it.
    #[must_use]
    pub fn of(self, was: IoControl) -> IoControl {
        match (self, was) {
            (Self::To(control), _) => control,
            (Self::Enabled, _) => was
                .threshold_us()
                .map_or(IoControl::DEFAULT, |threshold_us| IoControl::On { threshold_us }),
            (Self::Threshold { threshold_us }, IoControl::On { .. }) => {
                IoControl::On { threshold_us }
            }
            (Self::Threshold { threshold_us }, _) => IoControl::Stats { threshold_us },
        }
    }
}

/// A driver's module as a line sets its parameters: all of them at once, what it leaves out is unset [S0].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The driver.
    pub driver: &'static Driver,
    /// Its parameters beside that of the depth, `ql2xextended_error_logging=1`, with a space between them: they are
    /// kept in the line and change nothing else here.
    pub others: String,
}

impl From<&'static Driver> for Module {
    fn from(driver: &'static Driver) -> Self {
        Self { driver, others: String::new() }
    }
}

impl Deref for Module {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        self.driver
    }
}

/// Guests by name: one virtual machine, or every one of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestName {
    /// The virtual machine; `None` is every one.
    pub vm: Option<String>,
    /// The system whose syntax the line has; `None` where the system is not known.
    pub system: Option<GuestSystem>,
}

/// A path policy as a line sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyChange {
    /// `nmp device set -P`: the plug-in that chooses paths, as it starts.
    PlugIn(PathPolicy),
    /// `nmp psp roundrobin deviceconfig set`: when round robin takes the next path.
    RoundRobin(PathPolicy),
}

/// What a line sets of what a virtual disk may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationChange {
    /// Its limit: I/Os a second, or `None` for no limit.
    Limit(Option<u32>),
    /// Its shares.
    Shares(u32),
    /// Its reservation: I/Os a second.
    Reservation(u32),
    /// The storage policy of that name, which says all three: ESXi 6.5 has them [DOC65]. Without one a disk has
    /// what no number is set of.
    Policy(Option<String>),
}

impl AllocationChange {
    /// What a disk of a host has after it.
    ///
    /// # Errors
    /// One line: no such storage policy.
    pub fn of(&self, was: Allocation, host: &impl Host) -> Result<Allocation, Refusal> {
        Ok(match *self {
            Self::Limit(limit_iops) => Allocation { limit_iops, ..was },
            Self::Shares(shares) => Allocation { shares, ..was },
            Self::Reservation(reservation_iops) => Allocation { reservation_iops, ..was },
            Self::Policy(Some(ref name)) => host.policy(name)?,
            Self::Policy(None) => Allocation::default(),
        })
    }
}

impl PolicyChange {
    /// The policy that it sets.
    #[must_use]
    pub const fn policy(self) -> PathPolicy {
        match self {
            Self::PlugIn(policy) | Self::RoundRobin(policy) => policy,
        }
    }
}

impl<F: Form> Setting<F> {
    /// When it acts.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        match self {
            Self::Advanced { option, .. } => option.info().effect,
            Self::ModuleDepth { .. } => Effect::HostReboot,
            Self::Pvscsi { .. } => Effect::GuestReboot,
            Self::SchedNumReqOutstanding { .. }
            | Self::MaxQueueDepth { .. }
            | Self::QueueFull { .. }
            | Self::DepthByLatency { .. }
            | Self::StorageIoControl { .. }
            | Self::PathPolicy { .. }
            | Self::Allocation { .. } => Effect::AtOnce,
        }
    }

    /// Whether it sets the same as another, of whatever it names.
    #[must_use]
    pub fn is_kind_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Advanced { option, .. }, Self::Advanced { option: known, .. }) => {
                option == known
            }
            (Self::ModuleDepth { driver, .. }, Self::ModuleDepth { driver: known, .. }) => {
                **driver == **known
            }
            _ => discriminant(self) == discriminant(other),
        }
    }
}

impl Setting {
    /// Whether nothing is left of it after another of the same things.
    #[must_use]
    pub fn is_replaced_by(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Allocation { vdisk, allocation },
                Self::Allocation { vdisk: others, allocation: other },
            ) => {
                let is_of_same = match vdisk {
                    Disks::Of(_) => matches!(others, Disks::Of(_)),
                    Disks::With(_) => vdisk == others,
                };
                let is_all = matches!(other, AllocationChange::Policy(_));
                is_of_same && (is_all || discriminant(allocation) == discriminant(other))
            }
            (
                Self::StorageIoControl { control, .. },
                Self::StorageIoControl { control: other, .. },
            ) => {
                let is_all = matches!(other, IoControlChange::To(_));
                is_all || discriminant(control) == discriminant(other)
            }
            _ => self.is_kind_of(other),
        }
    }

    /// The device that it names.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        match self {
            Self::SchedNumReqOutstanding { device, .. }
            | Self::MaxQueueDepth { device, .. }
            | Self::QueueFull { device, .. }
            | Self::DepthByLatency { device, .. }
            | Self::PathPolicy { device, .. } => Some(device),
            Self::StorageIoControl { .. }
            | Self::Advanced { .. }
            | Self::ModuleDepth { .. }
            | Self::Pvscsi { .. }
            | Self::Allocation { .. } => None,
        }
    }

    /// The virtual machine that it names.
    #[must_use]
    pub fn vm(&self) -> Option<&str> {
        match self {
            Self::Pvscsi { vm, .. } => vm.vm.as_deref(),
            Self::Allocation { vdisk: Disks::Of(disk), .. } => Some(&disk.vm),
            _ => None,
        }
    }

    /// The name of the virtual machine or of the datastore that it names, for who calls it otherwise.
    #[must_use]
    pub const fn name_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Pvscsi { vm, .. } => vm.vm.as_mut(),
            Self::Allocation { vdisk: Disks::Of(disk), .. } => Some(&mut disk.vm),
            Self::StorageIoControl { device, .. } => Some(device),
            _ => None,
        }
    }
}

/// A host, as far as settings ask for what it has.
pub trait Host {
    /// Its version.
    fn version(&self) -> Version;
    /// The SCSI device of that name, when the host has it.
    ///
    /// # Errors
    /// One line: what it is instead.
    fn device(&self, name: &str) -> Result<Option<DeviceId>, Refusal>;
    /// The device on which the datastore of that name is, when the host sees it and Storage I/O Control is for it,
    /// with what that does.
    ///
    /// # Errors
    /// One line: what it is for.
    fn controlled(&self, datastore: &str) -> Result<Option<(DeviceId, IoControl)>, Refusal>;
    /// Whether one of its adapters has that driver.
    fn has_driver(&self, driver: &'static Driver) -> bool;
    /// Its virtual machines of that name, or all, with their guests.
    fn vms(&self, name: Option<&str>) -> Vec<(VmId, GuestOs)>;
    /// Whether a virtual machine has a disk on PVSCSI.
    fn has_pvscsi(&self, vm: VmId) -> bool;
    /// Those of its virtual disks, with what they have.
    fn disks(&self, name: &Disks) -> Vec<(VdiskId, Allocation)>;
    /// What the storage policy of that name says.
    ///
    /// # Errors
    /// One line: there is none, and which there are.
    fn policy(&self, name: &str) -> Result<Allocation, Refusal>;
}

impl Setting {
    /// What it is on a host; nothing when the host lacks what it names.
    ///
    /// # Errors
    /// One line: why it is none for what the host has of that name.
    pub fn on(&self, host: &impl Host) -> Result<Vec<Knob>, Refusal> {
        let one = |name: &str, knob: &dyn Fn(DeviceId) -> Knob| {
            host.device(name).map(|device| device.map(knob).into_iter().collect())
        };
        match *self {
            Self::SchedNumReqOutstanding { device: ref name, value } => {
                one(name, &|device| Knob::SchedNumReqOutstanding { device, value })
            }
            Self::MaxQueueDepth { device: ref name, value } => {
                one(name, &|device| Knob::MaxQueueDepth { device, value })
            }
            Self::QueueFull { device: ref name, sample_size, threshold } => {
                one(name, &|device| Knob::QueueFull { device, sample_size, threshold })
            }
            Self::DepthByLatency { device: ref name, on } => {
                one(name, &|device| Knob::DepthByLatency { device, on })
            }
            Self::StorageIoControl { device: ref name, control } => {
                let found = host.controlled(name)?;
                let knob = found.map(|(device, was)| Knob::StorageIoControl {
                    device,
                    control: control.of(was),
                });
                Ok(knob.into_iter().collect())
            }
            Self::PathPolicy { device: ref name, policy } => {
                one(name, &|device| Knob::PathPolicy { device, policy: policy.policy() })
            }
            Self::Advanced { option, value } => {
                let value = value.unwrap_or_else(|| option.default_in(host.version()));
                Ok(vec![Knob::Advanced { option, value }])
            }
            Self::ModuleDepth { driver: Module { driver, .. }, value } => {
                let is_there = host.has_driver(driver);
                Ok(is_there.then_some(Knob::ModuleDepth { driver, value }).into_iter().collect())
            }
            Self::Pvscsi { ref vm, depth, ring_pages } => self.in_guests(host, vm, |system, os| {
                GuestDriver { system, depth, ring_pages }.with_defaults(os)
            }),
            Self::Allocation { ref vdisk, ref allocation } => allocate(host, vdisk, allocation),
        }
    }

    /// The guests that are meant: those whose system has the words of the line, and a disk on PVSCSI.
    fn in_guests(
        &self,
        host: &impl Host,
        name: &GuestName,
        driver: impl Fn(GuestSystem, GuestOs) -> (u32, u32),
    ) -> Result<Vec<Knob>, Refusal> {
        let mut knobs = Vec::new();
        for (vm, guest) in host.vms(name.vm.as_deref()) {
            let system = guest.system();
            let is_its = name.system.is_none_or(|named| named == system);
            let has_it = host.has_pvscsi(vm);
            if is_its && has_it {
                let (depth, ring_pages) = driver(system, guest);
                knobs.push(Knob::Pvscsi { vm, depth, ring_pages });
            }
            let Some(name) = name.vm.as_deref() else { continue };
            refuse_if(!is_its, || {
                format!("`{self}` is no setting of PVSCSI in a {} guest", system.name())
            })?;
            refuse_if(!has_it, || format!("`{name}` has no disk on PVSCSI"))?;
        }
        Ok(knobs)
    }
}

/// Limit, reservation and shares of disks, or of a storage policy and so of all disks that have it.
fn allocate(host: &impl Host, of: &Disks, change: &AllocationChange) -> Result<Vec<Knob>, Refusal> {
    let policy = match of {
        Disks::With(name) => Some(change.of(host.policy(name)?, host)?),
        Disks::Of(_) => None,
    };
    let disks = host.disks(of);
    let is_by_policy = policy.is_some() || matches!(change, AllocationChange::Policy(_));
    let version = host.version();
    refuse_if(is_by_policy && !disks.is_empty() && !version.has_storage_policies(), || {
        format!("ESXi {} has no limits, reservations and shares by policy; 6.5 has", version.name())
    })?;
    let knob = |(vdisk, was)| {
        let allocation = policy.map_or_else(|| change.of(was, host), Ok)?;
        Ok(Knob::Allocation { vdisk, allocation })
    };
    disks.into_iter().map(knob).collect()
}

/// What a knob turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A host.
    Host,
    /// A device.
    Device(DeviceId),
    /// A virtual machine.
    Vm(VmId),
    /// A virtual disk.
    Vdisk(VdiskId),
}

/// The id of what a knob turns.
#[derive(Debug)]
pub enum TargetId<'a> {
    /// A host has none.
    Host,
    /// That of a device.
    Device(&'a mut DeviceId),
    /// That of a virtual machine.
    Vm(&'a mut VmId),
    /// That of a virtual disk.
    Vdisk(&'a mut VdiskId),
}

impl Knob {
    /// What it turns.
    #[must_use]
    pub const fn target(&self) -> Target {
        let mut copy = *self;
        match copy.id() {
            TargetId::Host => Target::Host,
            TargetId::Device(id) => Target::Device(*id),
            TargetId::Vm(id) => Target::Vm(*id),
            TargetId::Vdisk(id) => Target::Vdisk(*id),
        }
    }

    /// The id of what it turns, for who counts them otherwise.
    #[must_use]
    pub const fn id(&mut self) -> TargetId<'_> {
        match self {
            Self::SchedNumReqOutstanding { device, .. }
            | Self::MaxQueueDepth { device, .. }
            | Self::QueueFull { device, .. }
            | Self::DepthByLatency { device, .. }
            | Self::StorageIoControl { device, .. }
            | Self::PathPolicy { device, .. } => TargetId::Device(device),
            Self::Pvscsi { vm, .. } => TargetId::Vm(vm),
            Self::Allocation { vdisk, .. } => TargetId::Vdisk(vdisk),
            Self::Advanced { .. } | Self::ModuleDepth { .. } => TargetId::Host,
        }
    }

    /// Whether another one turns the same.
    #[must_use]
    pub fn is_turned_by(&self, other: &Self) -> bool {
        self.is_kind_of(other) && self.target() == other.target()
    }

    /// Whether a host of that version takes it, as far as that does not depend on the host's state.
    ///
    /// # Errors
    /// One line: what cannot be set to what, and what is allowed.
    pub fn check(&self, version: Version) -> Result<(), Refusal> {
        match *self {
            Self::SchedNumReqOutstanding { value, .. } => check_dsnro(value, version),
            Self::QueueFull { sample_size, threshold, .. } => {
                let options = [Advanced::QFullSampleSize, Advanced::QFullThreshold];
                let [sizes, thresholds] = options.map(|option| option.info().range());
                check_range("queue-full-sample-size", sample_size, sizes)?;
                if sample_size == 0 {
                    return Ok(());
                }
                check_range("queue-full-threshold", threshold, thresholds)?;
                refuse_if(threshold > sample_size, || {
                    format!(
                        "Unable to set queue-full-threshold to {threshold}: it is at most the \
                         queue-full-sample-size, {sample_size}"
                    )
                })
            }
            Self::Advanced { option, value } => {
                check_exists(option, version)?;
                check_range(option.info().path, value, option.info().range())
            }
            Self::ModuleDepth { driver, value } => {
                let module = driver.module;
                let Some(parameter) = driver.parameter else {
                    return Err(format!("Module {module} has no parameter for a depth").into());
                };
                check_range(&format!("{parameter} of module {module}"), value, driver.depths())
            }
            Self::Pvscsi { depth, ring_pages, .. } => {
                check_range("the PVSCSI depth per disk", depth, 1..=PVSCSI_DEPTH_MAX)?;
                check_range("the pages of the PVSCSI ring", ring_pages, 1..=PVSCSI_RING_PAGES_MAX)
            }
            Self::StorageIoControl { control, .. } => match control.threshold_us() {
                Some(micros) => {
                    check_range("the congestion threshold", micros / 1000, CONGESTION_MS)
                }
                None => Ok(()),
            },
            Self::PathPolicy { policy, .. } => check_policy(policy, version),
            Self::Allocation { allocation, .. } => allocation.check(),
            Self::MaxQueueDepth { value, .. } => refuse_if(value == 0, || {
                "Unable to set device's max-queue-depth to 0: allowed is 1 to what the driver gives"
                    .into()
            }),
            Self::DepthByLatency { .. } => Ok(()),
        }
    }
}

fn refuse_if(refused: bool, line: impl FnOnce() -> String) -> Result<(), Refusal> {
    if refused { Err(line().into()) } else { Ok(()) }
}

fn check_range(name: &str, value: u32, range: RangeInclusive<u32>) -> Result<(), Refusal> {
    refuse_if(!range.contains(&value), || {
        format!("Unable to set {name} to {value}: allowed is {} to {}", range.start(), range.end())
    })
}

/// From 6.5 on the engine knows a second bound: the depth of the device [S1].
fn check_dsnro(value: u32, version: Version) -> Result<(), Refusal> {
    refuse_if(version.has_global_dsnro(), || {
        let (range, taken) = (DSNRO.range(), DSNRO.range().contains(&value));
        let (value, within) = match taken {
            true => (format!("{value}"), String::new()),
            false => ("N".into(), format!(", N being {} to {}", range.start(), range.end())),
        };
        format!(
            "ESXi {} has no such setting of a device: use `system settings advanced set -o {} -i \
             {value}`{within}",
            version.name(),
            DSNRO.path
        )
    })?;
    check_range("device's sched-num-req-outstanding", value, DSNRO.range())
}

/// Options come and go with versions.
fn check_exists(option: Advanced, version: Version) -> Result<(), Refusal> {
    refuse_if(!option.exists_in(version), || {
        let instead = match option {
            Advanced::SchedNumReqOutstanding => {
                "; it is set for each device: `storage core device set -d DEVICE -O VALUE`"
            }
            _ => "",
        };
        format!("ESXi {} has no option {}{instead}", version.name(), option.info().path)
    })
}

fn check_policy(policy: PathPolicy, version: Version) -> Result<(), Refusal> {
    match policy {
        PathPolicy::Latency { .. } if !version.has_latency_policy() => {
            Err(format!("ESXi {} has no --type=latency; 6.7 has", version.name()).into())
        }
        PathPolicy::RoundRobin { iops: 0, .. } | PathPolicy::RoundRobin { bytes: 0, .. } => {
            Err("Unable to set round robin: iops and bytes are at least 1".into())
        }
        PathPolicy::Latency { sampling_ios: 0, .. } => {
            Err("Unable to set round robin: num-sampling-cycles is at least 1".into())
        }
        _ => Ok(()),
    }
}

/// What a virtual disk may have of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// [`Self::SHARES`]; its presets are [`Self::SHARES_PRESETS`].
    pub shares: u32,
    /// The most I/Os of `Disk.SchedCostUnit` bytes a second; `None` is unlimited [API].
    pub limit_iops: Option<u32>,
    /// The least of them a second; 0 reserves nothing.
    pub reservation_iops: u32,
}

impl Allocation {
    /// Shares go from 100 to 10,000 [LAMW].
    pub const SHARES: RangeInclusive<u32> = 100..=10_000;
    /// Low, Normal and High [LAMW].
    pub const SHARES_PRESETS: [(&str, u32); 3] = [("low", 500), ("normal", 1000), ("high", 2000)];
    /// The storage policies that Storage I/O Control v2 comes with, Low, Normal and High (reference
    /// `array-and-control.md` section 3; the numbers from memory).
    pub const POLICY_PRESETS: [(&str, Self); 3] = [
        ("low", Self { shares: 500, limit_iops: Some(1_000), reservation_iops: 10 }),
        ("normal", Self { shares: 1_000, limit_iops: Some(10_000), reservation_iops: 50 }),
        ("high", Self { shares: 2_000, limit_iops: Some(100_000), reservation_iops: 100 }),
    ];
    /// I/Os a second that a limit may allow: the API has a signed number, -1 of which is none.
    pub const LIMITS: RangeInclusive<u32> = 1..=i32::MAX as u32;

    /// Whether a host takes it.
    fn check(self) -> Result<(), Refusal> {
        check_range("shares", self.shares, Self::SHARES)?;
        self.limit_iops.map_or(Ok(()), |limit| check_range("the IOPS limit", limit, Self::LIMITS))
    }
}

impl Default for Allocation {
    fn default() -> Self {
        Self { shares: 1000, limit_iops: None, reservation_iops: 0 }
    }
}

/// How the next path is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPolicy {
    /// `VMW_PSP_FIXED`: the first path, and back to it when it is up again.
    Fixed,
    /// `VMW_PSP_MRU`: the path used last for as long as it is up.
    MostRecentlyUsed,
    /// `VMW_PSP_RR`: the next path after so many I/Os or so many bytes [ELA, BB].
    RoundRobin {
        /// I/Os, 1,000 by default.
        iops: u32,
        /// Bytes, 10,485,760 by default.
        bytes: u64,
    },
    /// `VMW_PSP_RR` with `policy=latency` [DOC67].
    Latency {
        /// I/Os that probe each path, 16 by default.
        sampling_ios: u32,
        /// Nanoseconds between evaluations, 180 s by default.
        eval_ns: u64,
    },
}

impl PathPolicy {
    /// Round robin as it starts: 1,000 I/Os or 10,485,760 bytes [ELA].
    pub const ROUND_ROBIN: Self = Self::RoundRobin { iops: 1000, bytes: 10_485_760 };
    /// The latency policy as it starts: 16 I/Os a path every 180 s [DOC67].
    pub const LATENCY: Self = Self::Latency { sampling_ios: 16, eval_ns: 180 * counters::SECOND };
}
