//! What is known from elsewhere: figures of `esxcli` that no capture has, and what a simulation knows
//! of itself.
//!
//! They are optional. A known fact goes before whatever the counters make likely: a guess becomes a
//! certainty or is not made at all, and the commands name the driver that is really there.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use counters::Status;
use knobs::{AllocationChange, Driver, GuestOs, Module, Version};

use levels::mean;

use crate::{Party, number};

/// What is known of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceFacts {
    /// `Device Max Queue Depth`.
    pub max_queue_depth: Option<u32>,
    /// The same at the end of what is judged, where it changed meanwhile.
    pub max_queue_depth_at_end: Option<u32>,
    /// Whether Storage I/O Control lowers its depth where the datastore is congested.
    pub sioc: Option<bool>,
    /// The congestion threshold from which on it does, in milliseconds.
    pub congestion_ms: Option<f64>,
    /// The least depth that it gave an NFS volume, whose rows have none.
    pub sioc_depth: Option<u32>,
    /// How often it told of a workload from outside in what is judged.
    pub external_workloads: u32,
    /// What the HBA's driver gives the device, which may have been lowered since (`-m`).
    pub driver_depth: Option<u32>,
    /// `No of outstanding IOs with competing worlds` (DSNRO).
    pub dsnro: Option<u32>,
    /// The same at the end of what is judged, where it changed meanwhile.
    pub dsnro_at_end: Option<u32>,
    /// DQLEN while several VMs competed in another recording of the host, and who did.
    pub competed: Option<(u32, Vec<String>)>,
    /// Whether DSNRO was set for this device, which no output of esxcli tells: the host's option for
    /// protocol endpoints has no say in it then.
    pub has_own_dsnro: Option<bool>,
    /// `Is VVOL PE`.
    pub is_protocol_endpoint: bool,
    /// `Is SSD`: whether the host holds it for flash.
    pub is_flash: bool,
    /// Whether the datastore on it is locked by SCSI-2 reservations whatever its hosts are set to; where
    /// it is known not to be, conflicts come from hosts that have ATS switched off.
    pub locks_by_scsi2: Option<bool>,
    /// `Queue Full Sample Size`: above 0, adaptive throttling is on.
    pub queue_full_sample_size: Option<u32>,
    /// Results TASK SET FULL or BUSY that the host counted while it was recorded.
    pub refusals: Option<u64>,
    /// Whether kavg finds its depth by latency, which no ESXi does.
    pub finds_depth: bool,
    /// How its paths are used.
    pub paths: Option<PathFacts>,
    /// What one path takes, where the host adds its paths up to the device's depth: a scenario may ask
    /// for that, ESXi does not do it.
    pub depth_of_path: Option<u32>,
    /// The array behind it.
    pub array: Option<Arc<ArrayFacts>>,
    /// The queue of the array that its commands go through.
    pub array_queue: Option<ArrayQueue>,
    /// What is known of the controllers of that array, where they take volumes from each other again and again.
    pub thrash: Option<Thrash>,
    /// The window that its commands go through below the host.
    pub window: Option<CommandWindow>,
    /// The link of the host's own port that its commands cross.
    pub link: Option<HostLink>,
    /// The link of a switch that its commands cross, where that has a limit.
    pub switch_link: Option<SwitchLink>,
    /// What its commands are known to lose on their way to the array and back.
    pub lost_on_the_way: Vec<LostOnTheWay>,
    /// Paths of it that lead nowhere before the host finds that.
    pub cut: Vec<CutPath>,
    /// When the array is known to answer nothing: from and to, in milliseconds since 1970.
    pub silent: Vec<(i64, i64)>,
    /// The same of when no path leads to it, whether the host knows of that already or not.
    pub cut_off: Vec<(i64, i64)>,
    /// The same of when the array is known to have given it up: all its commands fail (PDL).
    pub lost: Vec<(i64, i64)>,
    /// When somebody ended what was outstanding on it, by switching off or resetting a VM or the host or by removing a
    /// disk, in milliseconds since 1970.
    pub ended_ms: Vec<i64>,
}

impl DeviceFacts {
    /// `Device Max Queue Depth` and DSNRO as they are in the end.
    #[must_use]
    pub fn last_depths(&self) -> [Option<u32>; 2] {
        [self.max_queue_depth_at_end.or(self.max_queue_depth), self.dsnro_at_end.or(self.dsnro)]
    }
}

/// What is known of the window that a device's commands go through below the host.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandWindow {
    /// The adapter whose iSCSI sessions have it; `None` where it is the RPC slots of an NFS mount.
    pub adapter: Option<String>,
    /// Commands that are under way by one at most.
    pub takes: u32,
    /// What a command of the device waits for it in the mean, in milliseconds.
    pub wait_ms: f64,
}

impl CommandWindow {
    /// What it is called.
    pub(crate) fn name(&self) -> String {
        match &self.adapter {
            Some(adapter) => format!("the command window of {adapter}'s iSCSI"),
            None => "the RPC slots of the mount".into(),
        }
    }
}

/// What is known of the link of a host's own port that a device's commands cross: the fullest of those that
/// they do.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLink {
    /// The adapter.
    pub adapter: String,
    /// Whether it is that of a VMkernel port, of which the adapter may have several.
    pub is_vmkernel: bool,
    /// The share of it in use in each sample, in the fuller direction, by all devices, 0 to 1.
    pub busy: Vec<f64>,
    /// What a command of the device is on such links in the mean, waiting or moving, in milliseconds.
    pub time_ms: f64,
    /// What a command of its mean size is on this one that has it for itself, in milliseconds.
    pub own_ms: f64,
    /// Whether another path of the device leaves by a port with room.
    pub has_room_beside: bool,
    /// Whether another path of the device leaves by a port that carries more.
    pub is_slower: bool,
}

impl HostLink {
    /// What it is called.
    pub(crate) fn name(&self) -> String {
        let port = if self.is_vmkernel { "a VMkernel port of " } else { "" };
        format!("the link of {port}{}", self.adapter)
    }
}

/// What is known of the link of a switch that a device's commands cross: the fullest of those that they do.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchLink {
    /// The switch.
    pub switch: String,
    /// The share of it in use in each sample, in the fuller direction, by all hosts, 0 to 1.
    pub busy: Vec<f64>,
    /// What a command of the device is on such links in the mean, waiting or moving, in milliseconds.
    pub time_ms: f64,
    /// What a command of its mean size is on this one that has it for itself, in milliseconds.
    pub own_ms: f64,
    /// What each host moves over it in the mean, in MiB a second, the one that moves most first.
    pub hosts: Vec<(String, f64)>,
    /// Whether another path of the device crosses none that is as full.
    pub has_room_beside: bool,
}

impl SwitchLink {
    /// What it is called.
    pub(crate) fn name(&self) -> String {
        format!("the link of switch {}", self.switch)
    }
}

/// What commands of a device are known to lose between the host and the array.
#[derive(Clone, Debug, PartialEq)]
pub struct LostOnTheWay {
    /// To what.
    pub to: Detour,
    /// What a command loses so in the mean, in milliseconds.
    pub wait_ms: f64,
}

/// What takes commands their time between the host and the array.
#[derive(Clone, Debug, PartialEq)]
pub enum Detour {
    /// Segments of reads that are lost: the array sends the next one when the one before is acknowledged [KB-ACK].
    LostSegments {
        /// The adapter.
        adapter: String,
        /// The share of segments that are lost, 0 to 1.
        share: f64,
        /// How long the host keeps an acknowledgement back, in milliseconds.
        ack_ms: f64,
    },
    /// Paths to the controller that does not have the volume.
    OtherController {
        /// The array.
        array: String,
        /// The share of the commands that come by those, 0 to 1.
        share: f64,
        /// What such a command takes longer, in milliseconds.
        extra_ms: f64,
        /// Whether a path to the controller that has it is up.
        has_optimized: bool,
    },
}

/// What is known of an array whose volumes go over to the controller that a command for them comes to, while
/// commands come to both.
#[derive(Clone, Debug, PartialEq)]
pub struct Thrash {
    /// Its name.
    pub array: String,
    /// How often volumes went over.
    pub times: u64,
    /// How long that takes each time, in milliseconds.
    pub takeover_ms: f64,
}

/// What is known of the paths of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathFacts {
    /// `Path Selection Policy`: `VMW_PSP_RR`, `VMW_PSP_FIXED`, `VMW_PSP_MRU`.
    pub policy: String,
    /// Commands after which round robin takes the next path.
    pub round_robin_iops: Option<u32>,
    /// How many `Working Paths` there are.
    pub working: usize,
    /// Those that were down at some time, whether the host knew it or not, by name (`vmhba1:C0:T0:L3`), with the
    /// times from and to which they were, in milliseconds since 1970; `None` where nobody says.
    pub dead: Option<BTreeMap<String, Vec<(i64, i64)>>>,
}

/// A path that leads nowhere, and what its host does not know of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutPath {
    /// Its name.
    pub name: String,
    /// From and to when it led nowhere and the host did not know, in milliseconds since 1970.
    pub times: Vec<(i64, i64)>,
    /// Whether commands were on it in what is judged.
    pub is_used: bool,
    /// Those that are at the end.
    pub outstanding: u32,
}

/// What is known of the queue of an array before a device: its volume's or that of a port, whichever has
/// fewest places free.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayQueue {
    /// The array's name.
    pub array: String,
    /// Whether it is a port's, and not the volume's.
    pub of_port: bool,
    /// Commands that it takes of all hosts.
    pub takes: u32,
    /// The mean commands there, or on the way, of all hosts.
    pub inside: f64,
    /// Those of this host's.
    pub own: f64,
    /// The other host that has most of them, and how many.
    pub most: Option<(String, f64)>,
    /// The other host of whose commands most wait because they are refused, how many do, and how many it has
    /// inside.
    pub shut_out: Option<(String, f64, f64)>,
    /// What each device has of it where all have as much; `None` where their paths lead to several.
    pub part: Option<u32>,
    /// What it answers where there is no place: TASK SET FULL, or BUSY.
    pub answer: Status,
    /// How often it answered so to the device, a second.
    pub refusals: f64,
    /// The mean commands to the device that waited in the host, for a slot or to be sent again.
    pub waiting: f64,
    /// `Disk.DelayOnBusy` of the host in milliseconds.
    pub delay_ms: u32,
    /// The least that any host has that uses the queue.
    pub least_delay_ms: u32,
}

impl ArrayQueue {
    /// The part of a queue that is most of it.
    const MOST: f64 = 0.6;

    /// Whether it is full: what comes then is refused.
    pub(crate) fn is_full(&self) -> bool {
        const FULL: f64 = 0.95;
        self.inside >= FULL * f64::from(self.takes)
    }

    /// Whether it refuses a device's commands, so that they wait in the host. What was told BUSY waits
    /// longer than the queue is full.
    pub(crate) fn refuses(&self) -> bool {
        self.refusals > 0.0 && (self.is_full() || self.answer == Status::Busy)
    }

    /// Whom this host leaves no places, and how many commands wait there: it has most of them itself.
    pub(crate) fn leaves_none(&self) -> Option<(&str, f64)> {
        let (host, waiting, inside) = self.shut_out.as_ref()?;
        let has_most = self.own > Self::MOST * self.inside && *inside < Self::MOST * self.own;
        (has_most && *waiting >= 1.0).then_some((host, *waiting))
    }

    /// What it is called.
    pub(crate) fn name(&self) -> String {
        let whose = if self.of_port { "a port" } else { "the volume" };
        format!("the queue of {whose} of array {}", self.array)
    }

    /// What it is and what it does.
    pub(crate) fn told(&self) -> String {
        let answer = if self.answer == Status::Busy { "BUSY" } else { "TASK SET FULL" };
        let most = self.most.as_ref().filter(|(_, inside)| *inside > Self::MOST * self.inside);
        let most = most.map(|(host, inside)| format!(", of which {host} has {}", number(*inside)));
        format!(
            "{} takes {} commands{}, and it answers {answer} to more",
            self.name(),
            self.takes,
            most.unwrap_or_default()
        )
    }
}

/// What is known of an array, sample by sample of the recording that is judged: a load of a part of
/// it is judged where it was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArrayFacts {
    /// Its name.
    pub name: String,
    /// What a command takes there and on the wire when it waits for nobody, in milliseconds.
    pub service_ms: Option<f64>,
    /// The part of that which a command of the mean size that is judged is on links of the array, in milliseconds; 0
    /// where they have no limit.
    pub wire_ms: f64,
    /// The part of it that is the way there and back.
    pub round_trip_ms: f64,
    /// What a server has a command of that size beyond it, for its bytes, in milliseconds.
    pub moving_ms: f64,
    /// The mean share of its servers or spindles at work in each sample, for all hosts, 0 to 1.
    pub busy: Vec<f64>,
    /// The mean share of its fullest link in use in each sample, in the fuller direction, 0 to 1; nothing
    /// where it has none.
    pub link_busy: Vec<f64>,
    /// The mean share of the links of all its ports in use in each sample, in the fuller direction, 0 to 1;
    /// nothing where they have no limit.
    pub ports_busy: Vec<f64>,
    /// The part of `busy` that it works for nobody who asks, as for a rebuild, in each sample; nothing where it does not.
    pub own_work: Vec<f64>,
    /// The share of each of its two controllers at work in each sample, 0 to 1; nothing where they have no limit.
    pub controllers: Vec<[f64; 2]>,
    /// Who has commands there in [`ArrayFacts::crowded`], of all hosts; those of one device stand
    /// together.
    pub users: Vec<ArrayUser>,
}

/// A VM on a device of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayUser {
    /// Its host.
    pub host: String,
    /// The device.
    pub device: String,
    /// The VM; its slots are its mean commands at the array.
    pub vm: Party,
    /// The mean size of its commands, in KiB.
    pub size_kib: Option<f64>,
    /// What each of its commands waits there for a policy (QoS), in milliseconds; 0 where it has none.
    pub policy_wait_ms: f64,
    /// Commands a second that it sends whatever is answered; `None` where it sends the next when one is.
    pub asks_iops: Option<f64>,
}

/// The share of the time at work from which commands meet others at an array more often than not.
const WORKS: f64 = 0.5;

impl ArrayFacts {
    /// The part of its time from which it has nothing left.
    pub(crate) const SPENT: f64 = 0.99;

    /// Whether the array, or its link, does all it can for commands that take `davg_ms` below the
    /// host in some samples: nearly all of its time is work, so more commands add a ninth to the rate
    /// at most, and most of a command's time is wait there. An open load near what the array can do
    /// has the first without the second; where there is no time left at all, some wait is enough.
    pub(crate) fn is_full(&self, samples: &[usize], davg_ms: f64) -> bool {
        const FULL: f64 = 0.9;
        const WAITS: f64 = 1.2;
        let work = self.work(samples);
        work >= Self::SPENT && self.service_ms.is_some_and(|alone| davg_ms >= WAITS * alone)
            || work >= FULL && self.is_slow(samples, davg_ms)
    }

    /// Whether a command waits longer for others than it is served while it works all the time; or
    /// several times as long, for where each server has a queue of its own that comes before the array
    /// is full: at four parts of five of its time, where by M/M/1 it is four times.
    pub(crate) fn is_slow(&self, samples: &[usize], davg_ms: f64) -> bool {
        const BUSY: f64 = 0.8;
        const WAITS: f64 = 4.0;
        let work = self.work(samples);
        let takes = |times: f64| self.service_ms.is_some_and(|alone| davg_ms >= times * alone);
        work >= Self::SPENT && takes(2.0) || work >= BUSY && takes(WAITS)
    }

    /// Whether commands that are cut into so many pieces take a good part longer than they would whole: for their last
    /// piece, or for the servers that the pieces take. A server that has bytes for long does them sooner in pieces.
    pub(crate) fn is_slowed_by_pieces(&self, samples: &[usize], davg_ms: f64, pieces: f64) -> bool {
        const LONGER: f64 = 1.5;
        let Some(alone_ms) = self.service_ms else { return false };
        let piece_ms = alone_ms - self.wire_ms - self.round_trip_ms;
        let is_more_work =
            pieces * piece_ms + self.moving_ms >= LONGER * (piece_ms + self.moving_ms);
        let is_longer = davg_ms >= LONGER * (alone_ms + self.moving_ms);
        is_longer && (is_more_work || self.work(samples) < WORKS)
    }

    /// Whether commands meet others at the array more often than not, and most of the `davg_ms` that
    /// they take below the host is wait for those.
    pub(crate) fn is_crowded(&self, samples: &[usize], davg_ms: f64) -> bool {
        const WAITS: f64 = 2.0;
        self.work(samples) >= WORKS && self.service_ms.is_some_and(|alone| davg_ms >= WAITS * alone)
    }

    /// The samples in which commands meet others at the array more often than not.
    pub fn crowded(&self) -> impl Iterator<Item = usize> {
        (0..self.busy.len()).filter(|sample| self.work(&[*sample]) >= WORKS)
    }

    /// The share of its time that it works for nobody who asks, where that is most of its work.
    pub(crate) fn own_work(&self, samples: &[usize]) -> Option<f64> {
        const MOST: f64 = 0.5;
        let own = share(&self.own_work, samples)?;
        (own >= MOST * self.work(samples)).then_some(own)
    }

    /// The controller (1 or 2) that does all it can while the other one has room, and what of its time each works:
    /// where volumes of several hosts or devices are there, one can go over.
    pub(crate) fn full_controller(&self, samples: &[usize]) -> Option<(usize, [f64; 2])> {
        const FULL: f64 = 0.9;
        const ROOM: f64 = 0.7;
        let of = |which: usize| {
            mean(samples.iter().map(|&sample| self.controllers.get(sample).map(|both| both[which])))
        };
        let both = [of(0)?, of(1)?];
        let full = usize::from(both[1] > both[0]);
        (both[full] >= FULL && both[1 - full] < ROOM).then_some((full + 1, both))
    }

    /// Whether the fullest of its ports' links is, and the others have room, in the mean or by turns: what all of
    /// them together have in use.
    pub(crate) fn uneven_ports(&self, samples: &[usize]) -> Option<f64> {
        const ROOM: f64 = 0.9;
        let used = share(&self.ports_busy, samples)?;
        (self.is_held_by_its_link(samples) && used < ROOM).then_some(used)
    }

    /// Whether its link has more to do than it has itself.
    pub(crate) fn is_held_by_its_link(&self, samples: &[usize]) -> bool {
        share(&self.link_busy, samples) > share(&self.busy, samples)
    }

    /// The share of the time that the array or its link, whichever has more to do, is at work.
    pub(crate) fn work(&self, samples: &[usize]) -> f64 {
        let shares = [&self.busy, &self.link_busy].map(|shares| share(shares, samples));
        shares.into_iter().flatten().fold(0.0, f64::max)
    }
}

/// The mean over some samples of a share that is known sample by sample.
pub(crate) fn share(shares: &[f64], samples: &[usize]) -> Option<f64> {
    mean(samples.iter().map(|&sample| shares.get(sample).copied()))
}

/// What a run knows of a virtual disk.
#[derive(Clone, Debug, PartialEq)]
pub struct VdiskFacts {
    /// Commands that its driver lets out of the guest.
    pub depth: Option<u32>,
    /// Commands that its virtual adapter takes.
    pub adapter_depth: Option<u32>,
    /// The system in the guest.
    pub guest: GuestOs,
    /// What a command to its volume waits in the mean, in milliseconds, for the policy by which the
    /// array holds the volume to a rate (QoS); `None` where there is no policy.
    pub policy_wait_ms: Option<f64>,
    /// Cost units a second that all volumes with a policy of its array get together, where it is they that hold its
    /// volume below what its own policy allows.
    pub short_of_units: Option<u32>,
    /// Commands a second that its guest sends whatever is answered; `None` where it sends the next when one is.
    pub asks_iops: Option<f64>,
    /// Commands that its applications have outstanding at most, whatever its driver lets out; `None` where a request of
    /// theirs may be several commands, or one of several.
    pub outstanding_most: Option<u32>,
}

impl VdiskFacts {
    /// Whether its applications never have more outstanding than so many: then no limit of that holds them.
    pub(crate) fn asks_no_more_than(&self, limit: u32) -> bool {
        self.outstanding_most.is_some_and(|most| most <= limit)
    }
}

/// What is known of the IOPS limit of a virtual disk in the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitFacts {
    /// The lowest that was in force, in I/Os a second; `None` is no limit.
    pub iops: Option<u32>,
    /// I/Os that a command of the disk counts as before it in the mean, at most; `None` where the sizes of what
    /// its guest sends are not known one by one.
    pub cost: Option<f64>,
    /// What it comes to with the limits of its VM's other disks on the device, where they hold all together.
    pub together: Option<u32>,
    /// The one that is in force at the end, which an undo restores.
    pub at_end: Option<u32>,
    /// The storage policy that the disk has at the end, whose limit that is; `None` where it has numbers of its own.
    pub policy_at_end: Option<String>,
}

impl LimitFacts {
    /// The same where the limits of all disks that its VM has on the device hold these together, to their sum, and
    /// only where each has one: before ESXi 6.0 they have one world [PFS, DOC50].
    #[must_use]
    pub fn with_all(self, limits: impl IntoIterator<Item = Option<u32>>) -> Self {
        let together: Option<u32> = limits.into_iter().sum();
        Self { iops: self.iops.filter(|_| together.is_some()), together, ..self }
    }

    /// What gives the disk again what it had at the end, after its limit was set: a number that is set takes
    /// the storage policy from it [DOC65].
    pub(crate) fn undo(&self) -> AllocationChange {
        match &self.policy_at_end {
            Some(policy) => AllocationChange::Policy(Some(policy.clone())),
            None => AllocationChange::Limit(self.at_end),
        }
    }
}

/// What a virtual disk is asked for and not served over what is judged, in I/Os of its applications.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// That they want to issue a second.
    pub offered: f64,
    /// That end a second; `None` where a block layer or flash between leaves that unknown.
    pub served: Option<f64>,
    /// That they give up a second, for too many wait.
    pub lost: f64,
    /// The mean that wait in the guest and its applications.
    pub waiting: f64,
}

/// What is known of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The version of ESXi.
    pub esxi_version: Option<Version>,
    /// `/Disk/DiskMaxIOSize`, in KB.
    pub max_io_kb: Option<u32>,
    /// By the name of the device.
    pub devices: BTreeMap<String, DeviceFacts>,
    /// By the name of its row: `sql01:scsi0:1`. Hosts of a simulation, in which no two VMs have one name, share
    /// those of all.
    pub vdisks: Arc<BTreeMap<String, VdiskFacts>>,
    /// By the same, and shared as those: the IOPS limits, which a daemon tells as well.
    pub limits: Arc<BTreeMap<String, LimitFacts>>,
    /// By the name of the row: what the host's own virtual disks are asked for, of those that are not served all of it.
    pub demands: BTreeMap<String, Demand>,
    /// The driver module of each adapter: `vmhba1` is `nfnic`.
    pub drivers: BTreeMap<String, String>,
    /// What the driver of each adapter gives a device by it, as it was set last, in a run.
    pub adapter_depths: BTreeMap<String, u32>,
    /// The name of the datastore on each device.
    pub datastores: BTreeMap<String, String>,
    /// The module parameters, by name: `ql2xmaxqdepth` is `128`, or empty where nobody set it.
    pub parameters: BTreeMap<String, String>,
    /// What else is set of a module, by the parameter of its depth: `ql2xextended_error_logging=1`, with a space between
    /// several. A line that sets the depth replaces them all, and so repeats these.
    pub set_beside: BTreeMap<String, String>,
}

impl Facts {
    /// What is known of a device.
    pub(crate) fn device(&self, name: &str) -> &DeviceFacts {
        static NOTHING: LazyLock<DeviceFacts> = LazyLock::new(DeviceFacts::default);
        self.devices.get(name).unwrap_or(&NOTHING)
    }

    /// The value that somebody set a driver's depth to. It is in force after the next reboot [S0].
    pub(crate) fn depth_set(&self, driver: &Driver) -> Option<u32> {
        let names = [driver.parameter, driver.parameter_of_port].into_iter().flatten();
        let mut set = names.filter_map(|name| self.parameters.get(name));
        set.find_map(|value| value.trim().parse().ok())
    }

    /// The adapters that are known to have a driver, and what it gives a device by each, where a run tells it.
    pub(crate) fn depths_given(&self, driver: &Driver) -> impl Iterator<Item = (&str, u32)> {
        let own = self.drivers.iter().filter(|(_, module)| **module == driver.module);
        own.filter_map(|(name, _)| Some((name.as_str(), *self.adapter_depths.get(name)?)))
    }

    /// A driver with what else is set of its module.
    pub(crate) fn module(&self, driver: &'static Driver) -> Module {
        let beside = driver.parameter.and_then(|parameter| self.set_beside.get(parameter));
        Module { driver, others: beside.cloned().unwrap_or_default() }
    }

    /// What a driver gives its devices after the next reboot: the value of its parameter, or its
    /// default where nobody set that.
    pub(crate) fn depth_staged(&self, driver: &Driver) -> Option<u32> {
        let is_unset = self.parameters.get(driver.parameter?)?.trim().is_empty();
        if is_unset { Some(driver.depth_default) } else { self.depth_set(driver) }
    }

    /// Whether the host of a device prints no `Device Max Queue Depth`, as 5.5 [LIST5]: it is known to be older
    /// than 6.0, or an output of it tells DSNRO alone.
    pub(crate) fn prints_no_depth(&self, name: &str) -> bool {
        let known = self.device(name);
        let depth = known.max_queue_depth.or(known.max_queue_depth_at_end);
        let is_old = |version| version < Version::V6_0;
        depth.is_none() && self.esxi_version.map_or(known.dsnro.is_some(), is_old)
    }

    /// Whether DSNRO is one value for the host (to 5.1) instead of one for each device [S1].
    pub(crate) fn has_global_dsnro(&self) -> bool {
        self.esxi_version.is_some_and(Version::has_global_dsnro)
    }
}
