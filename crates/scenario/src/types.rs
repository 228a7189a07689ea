//! The nouns that a scenario file is parsed into. Every index and id names something, every
//! number is in its range: whoever builds a simulation from them checks nothing again.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use counters::{AdapterId, Counter, DeviceId, PathId, Time, VdiskId, VmId};
use engine::{HostConfig, Object};
use knobs::{Allocation, GuestOs, Knob};
use model::{ArrayConfig, BlockConfig, FlashCacheConfig, InitiatorConfig, Qos, WorkloadConfig};

/// A scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The file's name without directory and extension.
    pub name: String,
    /// One line: what it is.
    pub title: String,
    /// The story in plain words; may be empty.
    pub about: String,
    /// Where its figures come from; may be empty.
    pub source: String,
    /// The seed of every random stream.
    pub seed: u64,
    /// Nanoseconds of virtual time that the run lasts, above 0.
    pub duration_ns: u64,
    /// Nanoseconds at the beginning that the whole-run report leaves out, below the duration.
    pub warmup_ns: u64,
    /// Nanoseconds between samples, as esxtop's delay.
    pub sample_ns: u64,
    /// The hosts; at least one.
    pub hosts: Vec<Host>,
    /// The arrays; at least one.
    pub arrays: Vec<Array>,
    /// The switches between them, by the numbers in [`model::NexusConfig::crosses`] and [`DownBy::Switch`].
    pub switches: Vec<Switch>,
    /// The workloads, in the order of the file.
    pub workloads: Vec<Workload>,
    /// What happens and when, ascending in time, in the order of the file at the same instant.
    pub events: Vec<TimedEvent>,
    /// Which storage policies events give to disks or take from them, ascending in time.
    pub given: Vec<Given>,
    /// Named stretches of the run; the first is `run`, from the end of the warm-up to the end.
    pub windows: Vec<Window>,
    /// What is expected.
    pub expectations: Vec<Expectation>,
    /// The congestion thresholds that were found before the run, in the order of the file.
    pub thresholds: Vec<AutomaticThreshold>,
    /// Options of parameter files that are read and left out: a line each.
    pub warnings: Vec<String>,
}

/// The automatic congestion threshold of Storage I/O Control [API].
#[derive(Clone, Debug, PartialEq)]
pub struct AutomaticThreshold {
    /// The datastore, or the group of datastores.
    pub datastore: String,
    /// The share of the peak throughput that was asked for, 0.5 to 1.
    pub share: f64,
    /// The latency at which the array's model does so much, in microseconds; in the range of a threshold.
    pub threshold_us: u32,
}

/// A host.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// What the engine is built from.
    pub config: HostConfig,
    /// Its end of its ways to arrays.
    pub initiator: InitiatorConfig,
    /// Where the I/Os of each virtual disk go, by [`VdiskId`].
    pub targets: Vec<Target>,
    /// The datastores on each device, by [`DeviceId`]; several on a protocol endpoint.
    pub datastores: Vec<Vec<String>>,
    /// The devices that virtual machines have as they are (RDM).
    pub rdms: Vec<DeviceId>,
    /// The guest of each virtual machine, by [`VmId`].
    pub guests: Vec<GuestOs>,
    /// Nanoseconds that a reboot of this host takes: so long nothing runs on it.
    pub boot_ns: u64,
    /// Settings in force when the run begins that `config` has no place for. They are set at
    /// [`Time::ZERO`] before any I/O, followed by a reboot that takes no time when one of them
    /// needs it.
    pub settings: Vec<Knob>,
    /// The storage policies of disks.
    pub policies: Vec<StoragePolicy>,
    /// That of each virtual disk, by [`VdiskId`]: an index into `policies`.
    pub policy_of: Vec<Option<usize>>,
    /// The block layer of the guest at each virtual disk, by [`VdiskId`], where it has one in virtual time.
    pub blocks: Vec<Option<BlockConfig>>,
    /// The caches of flash before virtual disks, in virtual time.
    pub flash_caches: BTreeMap<VdiskId, FlashCache>,
    /// What is not there when the run begins.
    pub absent: Vec<Object>,
    /// Where the bytes of each virtual disk are in real time, by [`VdiskId`]; nothing where its
    /// datastore has no back end.
    pub images: Vec<Option<Image>>,
    /// Where its disks are served by NBD in real time.
    pub nbd: Option<Nbd>,
    /// Who may open the Unix sockets at which its disks are served.
    pub sockets: Sockets,
    /// The CPUs to which the threads that serve its disks are bound, in turn; none is any.
    pub cpus: Vec<u32>,
    /// Where the file says what.
    pub lines: Lines,
}

/// Lines of the file that say what a host is made of, from 1; 0 where none does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// `cpus`.
    pub cpus: usize,
    /// By adapter the one that names its driver; the network card of an NFS client has none.
    pub drivers: Vec<usize>,
    /// By device that of the first table that is of it.
    pub devices: Vec<usize>,
    /// By VM that of its table.
    pub vms: Vec<usize>,
}

/// A storage policy: limit, reservation and shares under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoragePolicy {
    /// Its name.
    pub name: String,
    /// What it says now; that of each disk that has it.
    pub allocation: Allocation,
}

/// A cache of flash before a virtual disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashCache {
    /// What it is built from.
    pub config: FlashCacheConfig,
    /// The disk in its flash, on the same host.
    pub flash: VdiskId,
}

/// What holds the bytes of a virtual disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Nothing: writes are dropped, and reads give zeroes, or leave the memory of a virtual machine as
    /// it is.
    Null,
    /// Memory of the daemon, gone with it.
    Memory,
    /// A raw image or a block device, by its name.
    File(String),
}

/// A virtual disk in real time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// What holds its bytes.
    pub backend: Backend,
    /// Whether the model of its array stands in front of it.
    pub emulated: bool,
    /// Whether data of virtual machines are copied into buffers of the daemon, so that what hangs in the
    /// back end is nothing of theirs.
    pub bounces: bool,
    /// Its size in bytes, whole sectors; nothing where that of the file is to be taken.
    pub size: Option<u64>,
    /// The name by which a client asks for it.
    pub export: String,
    /// The socket of its own at which a virtual machine finds it, in place of NBD.
    pub vhost_user: Option<String>,
    /// Whether nothing may be written.
    pub read_only: bool,
    /// Whether other disks may be the same image.
    pub shared: bool,
    /// Whether it is raw, whatever it begins with: a guest may have written that.
    pub is_raw: bool,
    /// The line of the disk in the file, from 1.
    pub line: usize,
}

/// Where the disks of a host are served by NBD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nbd {
    /// A Unix socket, by its name.
    pub socket: Option<String>,
    /// An address of the loopback interface.
    pub tcp: Option<SocketAddr>,
    /// The line in the file, from 1.
    pub line: usize,
}

/// Who may open a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sockets {
    /// The group that it belongs to; nothing where it is that of the daemon.
    pub group: Option<String>,
    /// The bits of its mode: reading and writing, for its owner at least.
    pub mode: u32,
    /// The line in the file, from 1; 0 where the file does not say.
    pub line: usize,
}

impl Default for Sockets {
    /// Its owner alone.
    fn default() -> Self {
        Self { group: None, mode: 0o600, line: 0 }
    }
}

/// A volume of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Index into [`Scenario::arrays`].
    pub array: usize,
    /// Index into the array's volumes.
    pub volume: u32,
}

/// An array.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// What the model is built from.
    pub config: ArrayConfig,
    /// The names of its volumes, in the order of `config.volumes`.
    pub volumes: Vec<String>,
    /// Its policies of quality of service by name, also those that no volume has.
    pub policies: Vec<(String, Qos)>,
    /// The line of its table in the file, from 1; 0 where it has none.
    pub line: usize,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// Bytes a second each way of its link to other switches, above 0; `None` is unlimited.
    pub link_bytes_per_sec: Option<u64>,
}

/// A workload on one virtual disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Index into [`Scenario::hosts`]: where it is when the run begins.
    pub host: usize,
    /// The virtual disk it uses on that host.
    pub vdisk: VdiskId,
    /// What the model is built from.
    pub config: WorkloadConfig,
    /// When it starts; [`Time::NEVER`] when only an event starts it. Its clock runs from then on,
    /// or from when its VM is powered on if that is later.
    pub starts: Time,
    /// Nanoseconds by its clock at which it begins to issue: that of a phase or of a run of Vdbench.
    pub from_ns: u64,
    /// Nanoseconds for which it issues then; `None` for as long as it runs.
    pub for_ns: Option<u64>,
    /// When it stops whatever its clock says; [`Time::NEVER`] when only an event or the end of the run does.
    pub stops: Time,
}

/// Something that happens to a host.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedEvent {
    /// When, before the end of the run.
    pub at: Time,
    /// Index into [`Scenario::hosts`].
    pub host: usize,
    /// What.
    pub action: Action,
}

/// The storage policy of a virtual disk from an event on. What it says is set by [`Action::Set`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// When.
    pub at: Time,
    /// Index into [`Scenario::hosts`].
    pub host: usize,
    /// The virtual disk.
    pub vdisk: VdiskId,
    /// Index into [`Host::policies`]; `None` where it has numbers of its own.
    pub policy: Option<usize>,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A setting is changed.
    Set(Knob),
    /// The host reboots: it is gone for its `boot_ns`, then its VMs go on.
    Reboot,
    /// A guest reboots.
    RebootGuest(VmId),
    /// A VM is powered on or off.
    Power {
        /// The virtual machine.
        vm: VmId,
        /// On or off.
        on: bool,
    },
    /// A path is dead from now on, which its driver finds out later: [`Action::Path`].
    Cut {
        /// The path.
        path: PathId,
        /// What took it down.
        by: DownBy,
    },
    /// A path goes up or down.
    Path {
        /// The path.
        path: PathId,
        /// Whether what took it down is over, or begins.
        up: bool,
        /// What took it down.
        by: DownBy,
    },
    /// A part of the host is attached that was not there.
    Attach(Object),
    /// A part of the host is detached.
    Detach {
        /// Which.
        object: Object,
        /// Whether what it has under way goes on to its end.
        drain: bool,
    },
    /// From now on the array does so with the commands of a device.
    Face {
        /// The device.
        device: DeviceId,
        /// What it does.
        face: Face,
    },
    /// A virtual disk goes on on another device: what it has under way goes on to its end where it was.
    Relocate {
        /// The virtual disk where it was.
        from: VdiskId,
        /// The same one where it is from now on.
        to: VdiskId,
    },
    /// A virtual disk is copied to another device while its VM runs, and goes on there when all of it is copied.
    Copy {
        /// The virtual disk where it was.
        from: VdiskId,
        /// The same one where it is to be: it is attached now, and gets writes to what is copied.
        to: VdiskId,
        /// The data mover's disks, which lie where those two do.
        mover: [VdiskId; 2],
        /// How.
        config: CopyConfig,
    },
    /// A workload starts; index into [`Scenario::workloads`].
    StartWorkload(usize),
    /// A workload stops; index into [`Scenario::workloads`].
    StopWorkload(usize),
    /// A VM leaves this host for another and its workloads go on there.
    Migrate {
        /// The virtual machine on the host it leaves.
        vm: VmId,
        /// Index into [`Scenario::hosts`] of the one it goes to.
        to_host: usize,
        /// The same virtual machine there; it is powered off until then.
        to_vm: VmId,
        /// Its virtual disks: here, and there.
        disks: Vec<(VdiskId, VdiskId)>,
    },
}

/// What takes paths down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DownBy {
    /// An event of their own, or of their adapter.
    Event,
    /// Their controller, which is out of order.
    Controller,
    /// A switch that they go through, which has failed; index into [`Scenario::switches`].
    Switch(usize),
}

/// Why paths are down: each reason by itself, for one that ends leaves the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DownPaths(BTreeSet<(PathId, DownBy)>);

impl DownPaths {
    /// A path has a reason more to be down, or one less.
    pub fn set(&mut self, path: PathId, up: bool, by: DownBy) {
        if up {
            self.0.remove(&(path, by));
        } else {
            self.0.insert((path, by));
        }
    }

    /// Whether a path has any.
    #[must_use]
    pub fn contains(&self, path: PathId) -> bool {
        self.0.range((path, DownBy::Event)..).next().is_some_and(|(first, _)| *first == path)
    }
}

/// How the data mover copies a virtual disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyConfig {
    /// Bytes of the disk, whole sectors, above 0.
    pub bytes: u64,
    /// Bytes of a read, and of the write that follows it: whole sectors, above 0.
    pub chunk_bytes: u32,
    /// Chunks at a time, above 0.
    pub outstanding: u32,
    /// Whether the array can copy it by itself, if the host is set to have it so.
    pub may_offload: bool,
}

/// What an array does with the commands of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// It does them.
    Up,
    /// It answers none.
    Silent,
    /// It says that the device is gone for good.
    Lost,
}

/// A named stretch of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// Its beginning.
    pub from: Time,
    /// Its end, after the beginning and not after the end of the run.
    pub to: Time,
}

/// What a figure must be over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// Index into [`Scenario::windows`].
    pub window: usize,
    /// Whose figure; with several it is the mean of theirs. At least one.
    pub subjects: Vec<Subject>,
    /// The subjects as the file names them.
    pub subject_name: String,
    /// Which figure, one that the subject's kind has.
    pub counter: Counter,
    /// The window whose figure it is divided by: then `bound` is about the ratio, as in "reads rose
    /// by 37 %". Index into [`Scenario::windows`].
    pub relative_to: Option<usize>,
    /// What it must be.
    pub bound: Bound,
    /// The published figure, as far as its own rounding goes. Where `bound` is another, what is
    /// published is known to be missed: it is shown, and does not decide.
    pub published: Option<Bound>,
    /// What it says of the model, where the file says so.
    pub role: Option<Role>,
    /// Where the figure comes from; may be empty.
    pub source: String,
    /// The line of the file, from 1.
    pub line: usize,
}

/// What an expectation says of the model that meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing: the model was fitted to the figure.
    Calibration,
    /// The figure is published, and the model was not fitted to it.
    Prediction,
    /// Nothing but that a setting acts: the figure is published, and the scenario sets it or what it
    /// follows from without any model of the array.
    Input,
    /// Nobody published the figure; it follows from what is published.
    Derived,
}

impl Role {
    /// As files and tables name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::Prediction => "prediction",
            Self::Input => "input",
            Self::Derived => "derived",
        }
    }
}

impl Expectation {
    /// Whether there is a published figure and `figure` is not the same within its rounding.
    #[must_use]
    pub fn is_missed(&self, figure: f64) -> bool {
        self.published.is_some_and(|published| !published.holds(figure))
    }
}

/// Whose figure. `host` is an index into [`Scenario::hosts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the id of its noun")]
pub enum Subject {
    /// A virtual machine: the sum of its virtual disks.
    Vm { host: usize, vm: VmId },
    /// A virtual disk.
    Vdisk { host: usize, vdisk: VdiskId },
    /// A device of a host.
    Device { host: usize, device: DeviceId },
    /// A VM's world on a device.
    World { host: usize, vm: VmId, device: DeviceId },
    /// A host adapter.
    Adapter { host: usize, adapter: AdapterId },
    /// A path.
    Path { host: usize, path: PathId },
}

/// What a figure must be, in the counter's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// At most `tolerance` (same unit) away from `value`.
    Near {
        /// The figure.
        value: f64,
        /// How far from it is allowed, 0 or more.
        tolerance: f64,
    },
    /// Between the two, both allowed; open ends are infinite.
    Between {
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
    },
}

impl Bound {
    /// Whether a figure is as expected; NaN never is.
    #[must_use]
    pub fn holds(self, figure: f64) -> bool {
        match self {
            Self::Near { value, tolerance } => (figure - value).abs() <= tolerance,
            Self::Between { min, max } => (min..=max).contains(&figure),
        }
    }
}
