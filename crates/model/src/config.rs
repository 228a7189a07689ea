//! What arrays and workloads are made of, before their state machines are built. Whoever fills
//! these in has checked the ranges.

use alloc::{sync::Arc, vec::Vec};

use counters::{Op, SECTOR, Status, Time};

use crate::percentiles::Percentiles;

/// The spread of a service time around its mean.
#[expect(
    clippy::large_enum_variant,
    reason = "an array has a few of them, and none is moved while it runs"
)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Always the mean.
    Constant,
    /// Exponential.
    Exponential,
    /// Lognormal with this coefficient of variation (above 0, at most 10).
    Lognormal(f64),
    /// As percentiles that were published say, in units of the mean.
    Percentiles(Percentiles),
}

/// How an array serves commands.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// `servers` equal servers, mean service `mean_ns` (reference `array-and-control.md`, section 1).
    Servers {
        /// 1 to 65,536.
        servers: u32,
        /// Nanoseconds, above 0.
        mean_ns: u64,
        /// The spread of the service time.
        spread: Spread,
        /// Where commands wait for them.
        queue: ServerQueue,
        /// What of their time goes by the command.
        by: ByCommand,
        /// What acknowledges writes before they are done; `None` writes through.
        write_cache: Option<WriteCache>,
    },
    /// A pool of spindles: a write costs several back-end I/Os on as many random spindles.
    Spindles {
        /// 1 to 65,536.
        spindles: u32,
        /// Nanoseconds a random I/O takes on a spindle, above 0.
        mean_ns: u64,
        /// The spread of it.
        spread: Spread,
        /// Back-end I/Os of a write: 1, 2, 4 or 6 for RAID 0, 1/10, 5, 6; at most 64.
        write_penalty: u32,
        /// What acknowledges writes before they are done; `None` writes through.
        write_cache: Option<WriteCache>,
    },
    /// Disks whose time depends on where commands are.
    Disks(Disks),
    /// A measured curve: latency in nanoseconds at so many outstanding commands, ascending,
    /// linear between the points and constant before the first. Beyond the last point the array
    /// is saturated: it does as many a second as there, and latency grows with what is
    /// outstanding. Each command takes that in the mean, with this spread; one that would take longer alone,
    /// by what goes by the command, takes as many times longer at every load.
    Curve(Vec<(u32, u64)>, Spread, ByCommand),
}

/// What of the time of a server, or of a curve, goes by the command; by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByCommand {
    /// Mean nanoseconds of a write, above 0; `None` is that of a read.
    pub write_ns: Option<u64>,
    /// Nanoseconds that each KiB adds to the mean.
    pub kib_ns: u64,
    /// Bytes of which the time has that already: those of the commands for which a curve was measured.
    pub free_bytes: u32,
}

impl ByCommand {
    /// Mean nanoseconds of a command, where those of a read without bytes are these.
    #[must_use]
    pub fn mean_ns(&self, read_ns: u64, is_write: bool, bytes: u32) -> u64 {
        let alone_ns = self.write_ns.filter(|_| is_write).unwrap_or(read_ns);
        let bytes = bytes.saturating_sub(self.free_bytes);
        alone_ns.saturating_add(self.kib_ns.saturating_mul(bytes.into()) >> 10)
    }
}

/// Where commands wait for the servers of an array, each served in the order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerQueue {
    /// Each server has a queue of its own, and each command goes to one at random.
    #[default]
    Random,
    /// One queue is before all: nobody waits while a server is idle.
    Shared,
}

/// What a command meets before servers, spindles or disks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Front {
    /// Nanoseconds that each command takes there, for which none waits.
    pub overhead_ns: u64,
    /// The read cache; `None` is none.
    pub reads: Option<ReadCache>,
    /// The fast tier; `None` is none.
    pub tier: Option<Tier>,
    /// What the array does by itself; `None` is nothing.
    pub background: Option<Background>,
    /// Bytes a second that it copies when it is asked to (XCOPY), above 0; `None` where it does not.
    pub copier_bytes_per_sec: Option<u64>,
}

impl Front {
    /// The share of the reads that its cache does not answer.
    #[must_use]
    pub fn missed(&self) -> f64 {
        self.reads.map_or(1.0, |reads| 1.0 - reads.hits)
    }

    /// The share of the commands that its tier serves.
    #[must_use]
    pub fn of_tier(&self) -> f64 {
        self.tier.map_or(0.0, |tier| tier.share)
    }
}

/// Equal servers beside the rest of an array, where the data lie that are used most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tier {
    /// Its share of the commands that no cache answers, 0 to 1, at random.
    pub share: f64,
    /// 1 to 65,536.
    pub servers: u32,
    /// Nanoseconds, above 0.
    pub mean_ns: u64,
    /// The spread of the service time.
    pub spread: Spread,
    /// Where commands wait for them.
    pub queue: ServerQueue,
}

/// What an array does beside the commands of hosts, as of a rebuild or a snapshot: commands of its own, one behind
/// the other on its disks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Background {
    /// Commands a second, above 0, at most 1,000,000, which come at random; fewer where it would have more than these
    /// outstanding.
    pub rate: f64,
    /// Its commands that are under way at most, above 0.
    pub outstanding: u32,
    /// The share of reads among them, 0 to 1.
    pub read_share: f64,
    /// Bytes of each.
    pub bytes: u32,
    /// From when.
    pub from: Time,
    /// Until when; [`Time::NEVER`] is for good.
    pub until: Time,
}

impl Background {
    /// Commands a second between two moments, in the mean and at most.
    #[must_use]
    pub fn rate_between(&self, from: Time, until: Time) -> f64 {
        let inside = until.min(self.until).since(from.max(self.from));
        self.rate * inside as f64 / until.since(from).max(1) as f64
    }
}

/// Reads that are answered without servers, spindles or disks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadCache {
    /// Their share of all reads, 0 to 1, at random.
    pub hits: f64,
    /// Nanoseconds of such a read, beside the overhead.
    pub hit_ns: u64,
}

/// What acknowledges writes before the spindles are through with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteCache {
    /// Nanoseconds after which it acknowledges a write for which it has room.
    pub ack_ns: u64,
    /// Bytes that it keeps until the spindles have nothing else to do; a write that it has no room for is
    /// written through. With `None` writes go to the spindles as they come, and there is room as long as these are
    /// not more than 100 ms behind.
    pub bytes: Option<u64>,
}

/// Equal disks behind a RAID, mechanically (section 7.2). What is behind each other on the array is dealt to
/// them in stripe units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disks {
    /// 1 to 65,536.
    pub disks: u32,
    /// Those of a row that hold data: all of RAID 0, all but one of RAID 5, a half of RAID 10.
    pub data_disks: u32,
    /// Bytes of a disk.
    pub bytes: u64,
    /// Nanoseconds of a turn, at most a second.
    pub turn_ns: u64,
    /// Nanoseconds of the mean seek, between two random places of a disk; at most a second.
    pub seek_ns: u64,
    /// Bytes a second that pass under the head, above 0.
    pub bytes_per_sec: u64,
    /// Bytes of a stripe unit, whole blocks of 4 KiB.
    pub stripe_bytes: u64,
    /// Commands among which a disk chooses its way, 1 to 256; 1 serves them as they came.
    pub elevator: u32,
    /// Back-end I/Os of a write, as of [`Service::Spindles`].
    pub write_penalty: u32,
    /// As of [`Service::Spindles`].
    pub write_cache: Option<WriteCache>,
}

impl Disks {
    /// Nanoseconds of a command that waits for nobody, anywhere on a disk.
    #[must_use]
    pub const fn alone_ns(&self) -> u64 {
        self.turn_ns / 2 + self.seek_ns
    }
}

/// How many times a write crosses the fabric, and which of them the array counts
/// (reference `array-and-control.md`, section 7.1 and 7.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteProtocol {
    /// FC: transfer-ready first, so two round trips; the array counts one of them [S0].
    TransferReady,
    /// iSCSI: one round trip up to `unsolicited` bytes, one more for each `max_burst` after them.
    Immediate {
        /// Bytes that travel with the command.
        unsolicited: u32,
        /// Bytes of each further round.
        max_burst: u32,
    },
}

/// A host's end of its ways to arrays, where more is known of it than how many commands an adapter takes (section
/// 7.5).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitiatorConfig {
    /// Bytes a second of the link of each port, in each direction, above 0.
    pub links: Vec<u64>,
    /// Its nexuses.
    pub nexuses: Vec<NexusConfig>,
    /// The nexus of each path, by the path's number on the host; a path of which nothing is known has none.
    pub of_path: Vec<Option<u32>>,
}

impl InitiatorConfig {
    /// What is known of the nexus of a path, by the path's number on the host.
    #[must_use]
    pub fn nexus(&self, path: usize) -> Option<&NexusConfig> {
        self.nexuses.get((*self.of_path.get(path)?)? as usize)
    }
}

/// A nexus, as SCSI calls what two ports are to each other that talk: what paths have in common which end at one port
/// of the host and one of an array. With iSCSI it is an iSCSI session; a mount of NFS is taken for one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NexusConfig {
    /// The link that it crosses, by its place in [`InitiatorConfig::links`]; `None` is unlimited.
    pub link: Option<usize>,
    /// The switches whose links its commands cross on their way to the array, by their numbers.
    pub crosses: [Option<u32>; 2],
    /// Commands that are under way by it at most, above 0; `None` is no limit.
    pub window: Option<u32>,
    /// How writes cross the fabric; `None` is as [`ArrayConfig::write_protocol`] says.
    pub write_protocol: Option<WriteProtocol>,
    /// Segments of reads that are lost; `None` is none.
    pub loss: Option<Loss>,
}

/// Segments that are lost on the way to a host, and what that costs where an array sends them again one at a
/// time, each when the one before is acknowledged [KB-ACK].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// The probability of a segment, above 0, at most a tenth.
    pub share: f64,
    /// Bytes of a segment, above 0.
    pub segment: u32,
    /// Nanoseconds for which the host keeps an acknowledgement back.
    pub ack_ns: u64,
}

/// An array.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayConfig {
    /// What stands before its service.
    pub front: Front,
    /// How it serves commands.
    pub service: Service,
    /// The fabric's round-trip time in nanoseconds.
    pub round_trip_ns: u64,
    /// Bytes a second of the link that all ports share, in each direction; `None` is unlimited.
    pub link_bytes_per_sec: Option<u64>,
    /// How writes cross the fabric.
    pub write_protocol: WriteProtocol,
    /// How many commands it takes.
    pub queues: Queues,
    /// What its volumes with a policy get together; `None` is all that their policies say.
    pub capacity: Option<Capacity>,
    /// Its volumes.
    pub volumes: Vec<VolumeConfig>,
}

impl ArrayConfig {
    /// Puts every moment at which it does something else to where `moved` has it.
    pub fn retime(&mut self, moved: impl Fn(Time) -> Time) {
        let background = self.front.background.iter_mut().map(|of| [&mut of.from, &mut of.until]);
        let controllers = self.queues.controllers.iter_mut().flat_map(|of| &mut of.outages);
        let outages = controllers.map(|of| [&mut of.from, &mut of.until]);
        let stuck = self.volumes.iter_mut().filter_map(|volume| volume.stuck.as_mut());
        let stuck = stuck.map(|of| [&mut of.from, &mut of.until]);
        background.chain(outages).chain(stuck).flatten().for_each(|at| *at = moved(*at));
    }
}

/// What an array takes: commands, each from its arrival to its answer, and bytes at each of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Its target ports, above 0. The paths of a host are dealt to them in turn, those of each host from
    /// another one on.
    pub ports: u32,
    /// Commands that a port takes of all hosts and volumes; `None` is no limit [S0].
    pub port_limit: Option<u32>,
    /// Bytes a second of a port's link in each direction; `None` is unlimited.
    pub port_bytes_per_sec: Option<u64>,
    /// Commands that a volume takes of all hosts and ports; `None` is no limit.
    pub lun_limit: Option<u32>,
    /// What is answered where there is no place: TASK SET FULL, or BUSY [KB-QF; section 7.3].
    pub full: Status,
    /// To whom the ports belong in turn; `None` where that makes no difference.
    pub controllers: Option<Controllers>,
}

/// Two controllers (section 7.2). A volume belongs to one of them; when that fails, the other one takes it over,
/// and gives it back when it is there again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controllers {
    /// Commands a second that each does for the volumes that it has, above 0; `None` is unlimited.
    pub iops: Option<u32>,
    /// Nanoseconds that a command takes longer which came to the one that does not have its volume.
    pub extra_ns: u64,
    /// Nanoseconds that it takes until a volume has gone over; its commands wait.
    pub takeover_ns: u64,
    /// Nanoseconds after which hosts know that a controller is out of order; what they sent it is lost then.
    pub dead_after_ns: u64,
    /// Whether a volume goes over to the controller that a command for it comes to.
    pub active_passive: bool,
    /// When each is out of order.
    pub outages: [Outage; 2],
}

impl Controllers {
    /// Whether each volume stays with its owner: either answers for it, and none is ever out of order.
    #[must_use]
    pub fn keep_volumes(&self) -> bool {
        !self.active_passive && self.outages == [Outage::NONE; 2]
    }

    /// To which of the two, 0 or 1, a port belongs.
    #[must_use]
    pub const fn of_port(port: usize) -> usize {
        port % 2
    }

    /// To which of them a path of a host leads, by the places of both: they have as many ports.
    #[must_use]
    pub const fn of_path(host: usize, path: usize) -> usize {
        Self::of_port(Queues::port_of(host, path, 2))
    }
}

/// When a controller is out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// From this moment on; [`Time::NEVER`] where it does not fail.
    pub from: Time,
    /// Until before this one; [`Time::NEVER`] where it does not come back.
    pub until: Time,
}

impl Outage {
    /// Never.
    pub const NONE: Self = Self { from: Time::NEVER, until: Time::NEVER };

    /// Whether it is out of order then.
    #[must_use]
    pub fn holds(&self, at: Time) -> bool {
        (self.from..self.until).contains(&at)
    }
}

/// Without limits.
impl Default for Queues {
    fn default() -> Self {
        Self {
            ports: 1,
            port_limit: None,
            port_bytes_per_sec: None,
            lun_limit: None,
            full: Status::TaskSetFull,
            controllers: None,
        }
    }
}

impl Queues {
    /// What all ports take together; `None` is no limit.
    #[must_use]
    pub fn of_ports(&self) -> Option<u32> {
        self.port_limit.map(|limit| limit.saturating_mul(self.ports))
    }

    /// The port to which a path of a host leads where there are so many, above 0, by the places of host
    /// and path.
    #[must_use]
    #[inline]
    pub const fn port_of(host: usize, path: usize, ports: usize) -> usize {
        (host + path) % ports
    }

    /// Whether it is ever full.
    #[must_use]
    pub const fn are_limited(&self) -> bool {
        self.port_limit.is_some() || self.lun_limit.is_some()
    }
}

/// A volume of an array.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VolumeConfig {
    /// The quality of service that the array enforces by delaying completions; `None` is none.
    pub qos: Option<Qos>,
    /// Nanoseconds for which a metadata operation keeps the whole LUN reserved once the command that
    /// reserves it is done, unless that is released before.
    pub reserve_hold_ns: u64,
    /// A reservation that its host does not release; `None` is none.
    pub stuck: Option<Stuck>,
    /// Which of two controllers owns it, 0 or 1.
    pub owner: u8,
}

/// A host keeps the whole LUN reserved and goes on with its own I/O: all others conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The host that has it.
    pub host: u32,
    /// From this moment on.
    pub from: Time,
    /// Until before this one, which is after `from`.
    pub until: Time,
}

/// What all volumes with a policy get together (section 6.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Cost units a second, above 0.
    pub units: u32,
    /// The share of it up to which there are bursts, 0 to 1.
    pub burst_share: f64,
}

/// Quality of service of one volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Qos {
    /// Cost units a second below which it falls only where all volumes of the array are at theirs, at most
    /// `max`; without effect where the array has no [`Capacity`].
    pub min: u32,
    /// Cost units a second in the long run, above 0 (for SolidFire: 4 KiB IOPS).
    pub max: u32,
    /// Cost units a second while burst credit lasts, at least `max`; equal to it for none.
    pub burst: u32,
    /// Seconds of burst credit that can be stored, 60 for SolidFire.
    pub burst_secs: u32,
    /// What a command costs.
    pub cost: Cost,
    /// Bytes a second beside them, above 0; `None` is no limit.
    pub bytes_per_sec: Option<u64>,
}

/// The cost of a command under quality of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// One unit, whatever its size.
    Flat,
    /// SolidFire's measured curve: 1 unit at 4 KiB, 76 at 512 KiB (section 6.2).
    SolidFire,
}

/// Sizes of I/Os in bytes with their weights; at least one, weights above 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeMix(pub Vec<(u32, u32)>);

/// Arrivals that an application keeps waiting at most. One that has fallen so far behind no
/// longer measures anything.
pub const WAITING_MAX: u32 = 1_000_000;

/// A rate that a closed loop does not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// I/Os a second, 0.001 to 1e9.
    pub per_sec: f64,
    /// Whether I/Os that come late are made up for, so that the mean is held: fio does [FIO]. Otherwise no two are closer
    /// than the rate allows.
    pub makes_up: bool,
}

/// When a workload issues I/Os.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// Each of `threads` issues its next I/O when the last one completed, `think_ns` later.
    Closed {
        /// 1 to 65,536: the outstanding I/Os.
        threads: u32,
        /// Nanoseconds between a completion and the next I/O.
        think_ns: u64,
        /// What they are held to; `None` is nothing.
        rate: Option<Ceiling>,
    },
    /// I/Os arrive whether or not earlier ones completed.
    Open {
        /// I/Os a second, 0.001 to 1e9.
        rate: f64,
        /// Random (Poisson) or evenly spaced arrivals.
        poisson: bool,
        /// I/Os outstanding beyond which arrivals wait in the application, 1 to 65,536.
        outstanding_max: u32,
        /// Arrivals that wait there at most, up to [`WAITING_MAX`]; what comes on top is dropped.
        /// 0 does not make up for what it missed.
        waiting_max: u32,
    },
}

/// Whether the next I/O continues where the last one ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// Anywhere in the working set.
    Random,
    /// From its beginning to its end, and again.
    Sequential,
    /// This share of the I/Os anywhere, between 0 and 1; the others continue where the last one
    /// ended.
    Mixed(f64),
}

impl Access {
    /// The access of which this share, 0 to 1, is random.
    #[must_use]
    pub fn of(random_share: f64) -> Self {
        if random_share <= 0.0 {
            Self::Sequential
        } else if random_share >= 1.0 {
            Self::Random
        } else {
            Self::Mixed(random_share)
        }
    }
}

/// One stretch of a workload's life, repeated in order for as long as the workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Nanoseconds during which it issues, above 0.
    pub on_ns: u64,
    /// Nanoseconds during which it does not; 0 never pauses.
    pub off_ns: u64,
}

/// What a mix has beside plain reads and writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Others {
    /// Operations with their shares of all I/Os that are drawn, 0 to 1, together at most 1. A compare
    /// and write is of one sector; all others have the sizes of the mix.
    pub shares: Vec<(Op, f64)>,
    /// Writes after which the next I/O is a flush, at least 1; `None` flushes never.
    pub flush_after: Option<u32>,
}

/// What the I/Os of a workload are.
#[derive(Clone, Debug, PartialEq)]
pub enum Mix {
    /// Reads and writes.
    ReadWrite {
        /// The share of reads among what `others` leaves, 0 to 1.
        read_share: f64,
        /// Sizes.
        sizes: SizeMix,
        /// What else there is.
        others: Others,
    },
    /// Metadata operations under a reservation of the whole LUN.
    Reserve,
    /// Metadata operations under atomic test and set.
    Ats,
}

/// A workload on one virtual disk.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadConfig {
    /// When it issues.
    pub arrival: Arrival,
    /// What it issues.
    pub mix: Mix,
    /// Where.
    pub access: Access,
    /// Bytes that it touches, at least its largest I/O.
    pub working_set: u64,
    /// On and off in turn; `None` is always on.
    pub burst: Option<Burst>,
    /// I/Os after which it is over; `None` goes on for as long as it runs.
    pub ios_max: Option<u64>,
    /// What was recorded, in the place of all of this.
    pub tape: Option<Tape>,
}

impl WorkloadConfig {
    /// The load that was recorded.
    #[must_use]
    pub fn taped(tape: Tape) -> Self {
        let end =
            |taped: &Taped| taped.lba.saturating_mul(SECTOR).saturating_add(taped.bytes.into());
        let others = Others { shares: Vec::new(), flush_after: None };
        Self {
            arrival: Arrival::Closed { threads: 1, think_ns: 0, rate: None },
            mix: Mix::ReadWrite { read_share: 1.0, sizes: SizeMix(Vec::new()), others },
            access: Access::Random,
            working_set: tape.requests.iter().map(end).max().unwrap_or_default(),
            burst: None,
            ios_max: None,
            tape: Some(tape),
        }
    }
}

/// A request that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taped {
    /// When it was sent, in nanoseconds from the begin of the recording.
    pub at_ns: u64,
    /// Nanoseconds for which the thread that sent it had paused: since the answer that it had waited for.
    pub pause_ns: u64,
    /// Nanoseconds for which it had waited in the guest.
    pub waited_ns: u64,
    /// Its first sector of 512 bytes on the virtual disk.
    pub lba: u64,
    /// Its size in bytes.
    pub bytes: u32,
    /// What it does.
    pub op: Op,
}

/// What was recorded of a virtual disk, from the first request to the last, and then again from one of them on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tape {
    /// The requests in their order; at least one.
    pub requests: Arc<[Taped]>,
    /// The place of the request that comes after the last: what is before it is played once.
    pub again: usize,
    /// How long the recording is that is played again, in nanoseconds, above 0.
    pub span_ns: u64,
    /// The threads of a guest that waits for its answers, 1 to 65,536: each answer lets the next request go, a pause
    /// later. With none each request is sent when it was, whatever the answers take.
    pub threads: Option<u32>,
}
