//! `[array.NAME]` and `[volume.NAME]`: how arrays serve commands and how writes reach them.

use std::ops::RangeInclusive;

use counters::{MICROSECOND, SECOND, SECTOR, Status, Time};
use knobs::{DEAD_AFTER_NS, RESERVE_HOLD_NS};
use model::{
    ArrayConfig, Background, ByCommand, Capacity, Controllers, Cost, Disks, Front, Outage,
    Percentiles, Qos, Queues, ReadCache, ServerQueue, Service, Spread, Tier, VolumeConfig,
    WriteCache, WriteProtocol,
};

use crate::{
    Array, Error, Target, names,
    nouns::Names,
    reader::{Node, Table},
    serving::{self, Purpose},
    stream::check_io_size,
    switch::Switches,
    units,
};

/// More volumes than a configuration maximum of any array.
const VOLUMES_MAX: usize = 200_000;
/// More target ports than any array has.
const PORTS_MAX: u32 = 1_024;
/// Arrays of a scenario at most.
pub const ARRAYS_MAX: usize = 10_000;
/// iSCSI as a Linux target negotiated it with ESXi [elatov; reference 7.5].
const UNSOLICITED_DEFAULT: u32 = 65_536;
const MAX_BURST_DEFAULT: u32 = 262_144;
/// IOPS that a policy may say: FlashArray's limits go from 100 to 100 million, from memory [reference 7.1].
const IOPS_MAX: u32 = 100_000_000;
/// Seconds of burst credit that SolidFire stores [reference 6.1].
const BURST_CREDIT_SECS: u32 = 60;

/// Mean seeks by turns a minute, from memory [reference 7.2].
const SEEKS: [(u64, u64); 3] =
    [(15_000, 3_500 * MICROSECOND), (10_000, 4_700 * MICROSECOND), (7_200, 8_500 * MICROSECOND)];
/// Bytes a second under the head of a disk, and of a stripe unit; no source says either.
const TRANSFER_DEFAULT: u64 = 100_000_000;
const STRIPE_DEFAULT: u64 = 64 << 10;
/// Commands among which a disk chooses at most: as many as a SCSI initiator can tag on it.
const ELEVATOR_MAX: u32 = 1 << 8;

/// Servers, spindles or disks of an array.
const SERVERS: RangeInclusive<u32> = 1..=65_536;

/// Commands a second that an array may have of its own, and their size where the file does not say: a ruling.
const BACKGROUND_RATE: RangeInclusive<f64> = 0.001..=1e6;
const BACKGROUND_BYTES: u32 = 64 << 10;

/// Bytes of a write cache.
const CACHE_BYTES: RangeInclusive<u64> = 1 << 20..=1 << 40;

const ARRAY_KEYS: &[&str] = &[
    "servers",
    "queue",
    "service",
    "spread",
    "variation",
    "write_service",
    "per_kib",
    "curve_size",
    "spindles",
    "raid",
    "write_cache",
    "write_cache_size",
    "disk",
    "curve",
    "overhead",
    "read_cache",
    "tier",
    "background",
    "xcopy",
    "round_trip",
    "link",
    "write",
    "unsolicited",
    "max_burst",
    "ports",
    "port_link",
    "switch",
    "queue_limit",
    "lun_queue_limit",
    "full",
    "controllers",
    "qos",
    "qos_capacity",
    "burst_below",
];

/// Arrays with their policies, and volumes by name.
pub(crate) struct Arrays {
    pub(crate) arrays: Vec<Array>,
    pub(crate) names: Names,
    /// The switches of the ports of each, in turn; none where the file does not say.
    pub(crate) switches: Vec<Vec<usize>>,
    volume_names: Names,
    volumes: Vec<Target>,
}

impl Arrays {
    /// Reads every array and every named volume.
    pub(crate) fn read(
        root: &Table<'_>,
        switches: &Switches,
        purpose: Purpose,
    ) -> Result<Self, Error> {
        let mut all = Self {
            arrays: Vec::new(),
            names: Names::new("array", ARRAYS_MAX),
            switches: Vec::new(),
            volume_names: Names::new("volume", VOLUMES_MAX),
            volumes: Vec::new(),
        };
        for (name, node) in root.named("array")? {
            all.names.add(&node, &name, None)?;
            let table = node.table(ARRAY_KEYS)?;
            let (config, policies, line) = (array(&table)?, policies(&table)?, node.line());
            all.switches.push(switches.of_ports(&table, config.queues.ports as usize)?);
            all.arrays.push(Array { config, name, volumes: Vec::new(), policies, line });
        }
        if all.arrays.is_empty() && purpose == Purpose::Serve {
            all.arrays.push(serving::no_array());
            all.switches.push(Vec::new());
        }
        for (name, node) in root.named("volume")? {
            all.read_volume(&name, &node)?;
        }
        Ok(all)
    }

    fn read_volume(&mut self, name: &str, node: &Node<'_>) -> Result<(), Error> {
        let table = node.table(&["array", "qos", "owner", "count"])?;
        let array = self.array_of(&table)?;
        let qos = self.policy(array, &table)?;
        let owner = table.read("owner", |node| Ok(node.integer(1..=2)? as u8 - 1))?;
        if let (None, Some(node)) =
            (self.arrays[array].config.queues.controllers, table.get("owner"))
        {
            return Err(node.error("it goes with `controllers` of its array"));
        }
        let count = count(&table, VOLUMES_MAX)?;
        for member in self.volume_names.add(node, name, count)? {
            let target = self.add_volume(array, member, qos.clone());
            let of = &mut self.arrays[array].config.volumes[target.volume as usize];
            of.owner = owner.unwrap_or(of.owner);
            self.volumes.push(target);
        }
        Ok(())
    }

    /// The array that a table's `array` names; it may be left out when there is only one.
    pub(crate) fn array_of(&self, table: &Table<'_>) -> Result<usize, Error> {
        if let Some(node) = table.get("array") {
            return self.names.find_one(&node);
        }
        match self.arrays.as_slice() {
            [_] => Ok(0),
            [] => Err(table.node().error("there is no array; it is an [array.NAME]")),
            many => {
                let all = names::list(many.iter().map(|array| array.name.as_str()));
                Err(table.node().error(&format!("`array` is missing; it is one of {all}")))
            }
        }
    }

    /// The policy that a table's `qos` names.
    pub(crate) fn policy(&self, array: usize, table: &Table<'_>) -> Result<Option<Qos>, Error> {
        let policies: Vec<(&str, Qos)> = self
            .arrays
            .get(array)
            .into_iter()
            .flat_map(|array| &array.policies)
            .map(|(name, qos)| (name.as_str(), qos.clone()))
            .collect();
        table.read("qos", |node| node.choice(&policies))
    }

    /// Which of two controllers owns a volume.
    pub(crate) fn owner(&self, volume: Target) -> usize {
        let Target { array, volume } = volume;
        self.arrays[array].config.volumes[volume as usize].owner.into()
    }

    /// The volumes that a value names.
    pub(crate) fn volumes(&self, node: &Node<'_>) -> Result<Vec<Target>, Error> {
        let found = self.volume_names.find(node)?;
        Ok(found.into_iter().map(|index| self.volumes[index]).collect())
    }

    /// Adds a volume that has no table of its own.
    pub(crate) fn add_volume(&mut self, array: usize, name: String, qos: Option<Qos>) -> Target {
        let Array { config, volumes, .. } = &mut self.arrays[array];
        let volume = volumes.len() as u32;
        config.volumes.push(VolumeConfig {
            qos,
            reserve_hold_ns: RESERVE_HOLD_NS,
            stuck: None,
            owner: (volume % 2) as u8,
        });
        volumes.push(name);
        Target { array, volume }
    }
}

/// `count`, when it is there.
pub(crate) fn count(table: &Table<'_>, max: usize) -> Result<Option<usize>, Error> {
    table.read("count", |node| Ok(node.integer(1..=max as u64)? as usize))
}

/// What it takes, of its ports and volumes, and what it answers beyond that.
fn queues(table: &Table<'_>) -> Result<Queues, Error> {
    let limit = |key| table.read(key, |node| node.integer32(1..=1_000_000));
    let (port_limit, lun_limit) = (limit("queue_limit")?, limit("lun_queue_limit")?);
    let ports = table.read("ports", |node| node.integer32(1..=PORTS_MAX))?;
    let port_bytes_per_sec = bandwidth(table, "port_link")?;
    let controllers = table.read("controllers", controllers)?;
    let is_odd = ports.is_some_and(|ports| ports % 2 == 1);
    if let (Some(_), Some(node), true) = (controllers, table.get("ports"), is_odd) {
        return Err(node.error("both controllers have as many; give an even number"));
    }
    let statuses = [("task-set-full", Status::TaskSetFull), ("busy", Status::Busy)];
    let full = table.read("full", |node| node.choice(&statuses))?;
    if let (None, None, Some(node)) = (port_limit, lun_limit, table.get("full")) {
        return Err(node.error("it goes with `queue_limit` or `lun_queue_limit`"));
    }
    let none = Queues::default();
    let ports = ports.unwrap_or(if controllers.is_some() { 2 } else { none.ports });
    let full = full.unwrap_or(none.full);
    Ok(Queues { ports, port_limit, port_bytes_per_sec, lun_limit, full, controllers })
}

/// Two of them.
fn controllers(node: &Node<'_>) -> Result<Controllers, Error> {
    let table = node.table(&["iops", "extra", "takeover", "dead_after", "active_passive"])?;
    let active_passive = table.read("active_passive", Node::boolean)?.unwrap_or(false);
    if let (true, Some(node)) = (active_passive, table.get("extra")) {
        return Err(node.error("it does not go with `active_passive`: there is no way round"));
    }
    let duration = |key| table.read(key, Node::duration);
    Ok(Controllers {
        iops: table.read("iops", |node| node.integer32(1..=1_000_000_000))?,
        extra_ns: duration("extra")?.unwrap_or(0),
        takeover_ns: duration("takeover")?.unwrap_or(0),
        dead_after_ns: duration("dead_after")?.unwrap_or(DEAD_AFTER_NS),
        active_passive,
        outages: [Outage::NONE; 2],
    })
}

fn bandwidth(table: &Table<'_>, key: &str) -> Result<Option<u64>, Error> {
    table.read(key, |node| node.parsed(crate::units::bandwidth))
}

fn array(table: &Table<'_>) -> Result<ArrayConfig, Error> {
    let service = service(table)?;
    Ok(ArrayConfig {
        front: front(table, &service)?,
        service,
        round_trip_ns: table.read("round_trip", Node::duration)?.unwrap_or(0),
        link_bytes_per_sec: bandwidth(table, "link")?,
        write_protocol: write_protocol(table)?,
        queues: queues(table)?,
        capacity: capacity(table)?,
        volumes: Vec::new(),
    })
}

/// What its policies share.
fn capacity(table: &Table<'_>) -> Result<Option<Capacity>, Error> {
    let burst_share = table.read("burst_below", |node| node.parsed(units::percent))?;
    let Some(units) = table.read("qos_capacity", |node| node.integer32(1..=1_000_000_000))? else {
        return match table.get("burst_below") {
            Some(node) => Err(node.error("it goes with `qos_capacity`, of which it is a share")),
            None => Ok(None),
        };
    };
    Ok(Some(Capacity { units, burst_share: burst_share.unwrap_or(1.0) }))
}

/// Keys that go with some kinds of service alone.
const SERVICE_KEYS: &[&str] = &[
    "write_service",
    "per_kib",
    "curve_size",
    "queue",
    "overhead",
    "read_cache",
    "tier",
    "background",
    "xcopy",
    "service",
    "spread",
    "variation",
    "raid",
    "write_cache",
    "write_cache_size",
    "disk",
];

/// Whether one of them goes with a kind of service, by its key; `disk` is that of spindles which have one.
fn goes_with(kind: &str, key: &str) -> bool {
    let others: &[&str] = match kind {
        "servers" => &["curve_size", "raid", "disk"],
        "spindles" => &["write_service", "per_kib", "curve_size", "queue"],
        "disk" => {
            &["write_service", "per_kib", "curve_size", "queue", "service", "spread", "variation"]
        }
        _ => &[
            "queue",
            "overhead",
            "tier",
            "service",
            "raid",
            "write_cache",
            "write_cache_size",
            "disk",
        ],
    };
    !others.contains(&key)
}

fn service(table: &Table<'_>) -> Result<Service, Error> {
    let kind = table.exactly_one(&["servers", "spindles", "curve"])?;
    let disk = table.get("disk").filter(|_| kind.name() == "spindles");
    let with = disk.as_ref().map_or(kind.name(), Node::name);
    for key in SERVICE_KEYS {
        if let (Some(node), false) = (table.get(key), goes_with(with, key)) {
            return Err(node.error(&format!("it does not go with `{with}`")));
        }
    }
    match (kind.name(), disk) {
        ("servers", _) => Ok(Service::Servers {
            servers: kind.integer32(SERVERS)?,
            mean_ns: mean(table)?,
            spread: spread(table, mean(table)?)?,
            queue: queue(table)?,
            by: by_command(table)?,
            write_cache: write_cache(table)?,
        }),
        ("spindles", None) => Ok(Service::Spindles {
            spindles: kind.integer32(SERVERS)?,
            mean_ns: mean(table)?,
            spread: spread(table, mean(table)?)?,
            write_penalty: raid(table)?.0,
            write_cache: write_cache(table)?,
        }),
        ("spindles", Some(disk)) => disks(table, &kind, &disk),
        _ => {
            let points = curve(&kind)?;
            let is_plain = table.get("spread").is_none() && table.get("variation").is_none();
            let first_ns = points.first().map_or(1, |&(_, ns)| ns);
            let spread = if is_plain { Spread::Constant } else { spread(table, first_ns)? };
            Ok(Service::Curve(points, spread, by_command(table)?))
        }
    }
}

/// What goes by the command.
fn by_command(table: &Table<'_>) -> Result<ByCommand, Error> {
    let kib_ns = table.read("per_kib", Node::duration)?;
    let size = table.read("curve_size", |node| node.size(SECTOR..=16 << 20))?;
    match (table.get("curve"), table.get("per_kib"), table.get("curve_size")) {
        (Some(_), Some(per_kib), None) => Err(per_kib.error(
            "with a `curve` it is what a larger command takes more: give the size that was measured as `curve_size`",
        )),
        (_, None, Some(size)) => Err(size.error("it goes with `per_kib`")),
        _ => Ok(ByCommand {
            write_ns: table.read("write_service", Node::positive_duration)?,
            kib_ns: kib_ns.unwrap_or(0),
            free_bytes: size.unwrap_or(0) as u32,
        }),
    }
}

/// What stands before the service.
fn front(table: &Table<'_>, service: &Service) -> Result<Front, Error> {
    let reads = table.read("read_cache", |node| {
        let cache = node.table(&["hits", "time"])?;
        let hits = cache.need("hits")?.parsed(units::percent)?;
        Ok(ReadCache { hits, hit_ns: cache.need("time")?.positive_duration()? })
    })?;
    Ok(Front {
        overhead_ns: table.read("overhead", Node::duration)?.unwrap_or(0),
        reads,
        tier: table.read("tier", tier)?,
        background: table.read("background", |node| background(node, service))?,
        copier_bytes_per_sec: bandwidth(table, "xcopy")?,
    })
}

/// Where commands wait for servers.
fn queue(table: &Table<'_>) -> Result<ServerQueue, Error> {
    let queues = [("random", ServerQueue::Random), ("shared", ServerQueue::Shared)];
    Ok(table.read("queue", |node| node.choice(&queues))?.unwrap_or_default())
}

/// The fast tier.
fn tier(node: &Node<'_>) -> Result<Tier, Error> {
    let table = node.table(&["share", "servers", "queue", "service", "spread", "variation"])?;
    Ok(Tier {
        share: table.need("share")?.parsed(units::percent)?,
        servers: table.need("servers")?.integer32(SERVERS)?,
        mean_ns: mean(&table)?,
        spread: spread(&table, mean(&table)?)?,
        queue: queue(&table)?,
    })
}

/// What the array does by itself: one command for each of its servers, spindles or disks, where nothing else is said, or
/// as many as its curve has at its end.
fn background(node: &Node<'_>, service: &Service) -> Result<Background, Error> {
    let table = node.table(&["rate", "outstanding", "read", "size", "from", "to"])?;
    let all = match service {
        Service::Servers { servers, .. } => *servers,
        Service::Spindles { spindles, .. } => *spindles,
        Service::Disks(disks) => disks.disks,
        Service::Curve(points, ..) => points.last().map_or(1, |&(last, _)| last),
    };
    let from = Time(table.read("from", Node::duration)?.unwrap_or(0));
    let until = table.read("to", Node::duration)?.map_or(Time::NEVER, Time);
    if let (true, Some(node)) = (until <= from, table.get("to")) {
        return Err(node.error("it must be after `from`"));
    }
    let size = |node: &Node<'_>| {
        check_io_size(node.size(0..=u64::MAX)?).map_err(|message| node.error(&message))
    };
    Ok(Background {
        rate: table.need("rate")?.number(BACKGROUND_RATE)?,
        outstanding: table.read("outstanding", |node| node.integer32(SERVERS))?.unwrap_or(all),
        read_share: table.read("read", |node| node.parsed(units::percent))?.unwrap_or(1.0),
        bytes: table.read("size", size)?.unwrap_or(BACKGROUND_BYTES),
        from,
        until,
    })
}

/// What acknowledges writes before the spindles are through with them.
fn write_cache(table: &Table<'_>) -> Result<Option<WriteCache>, Error> {
    let bytes = table.read("write_cache_size", |node| node.size(CACHE_BYTES))?;
    match (table.get("write_cache"), table.get("write_cache_size")) {
        (None, Some(size)) => Err(size.error("it goes with `write_cache` only")),
        (None, None) => Ok(None),
        (Some(time), _) => Ok(Some(WriteCache { ack_ns: time.positive_duration()?, bytes })),
    }
}

/// Disks with heads and platters.
fn disks(table: &Table<'_>, kind: &Node<'_>, disk: &Node<'_>) -> Result<Service, Error> {
    let disks = kind.integer32(SERVERS)?;
    let (write_penalty, redundant) = raid(table)?;
    let disk = disk.table(&["rpm", "size", "seek", "transfer", "stripe", "elevator"])?;
    let rpm = u64::from(disk.need("rpm")?.integer32(1_000..=50_000)?);
    let known = SEEKS.iter().find(|(known, _)| *known == rpm);
    let seek_ns = match (disk.get("seek"), known) {
        (None, Some((_, seek_ns))) => *seek_ns,
        _ => disk.need("seek")?.positive_duration()?.min(SECOND),
    };
    let transfer = disk.read("transfer", |node| node.parsed(units::bandwidth))?;
    let stripe = disk.read("stripe", |node| node.size(4096..=1 << 30))?;
    Ok(Service::Disks(Disks {
        disks,
        data_disks: match redundant {
            Redundant::Copies => (disks / 2).max(1),
            Redundant::Disks(parity) => disks.saturating_sub(parity).max(1),
        },
        bytes: disk.need("size")?.size(1 << 20..=1 << 50)?,
        turn_ns: 60 * SECOND / rpm,
        seek_ns,
        bytes_per_sec: transfer.unwrap_or(TRANSFER_DEFAULT),
        stripe_bytes: stripe.unwrap_or(STRIPE_DEFAULT),
        elevator: disk.read("elevator", |node| node.integer32(1..=ELEVATOR_MAX))?.unwrap_or(1),
        write_penalty,
        write_cache: write_cache(table)?,
    }))
}

/// Mean nanoseconds of a server or spindle.
fn mean(table: &Table<'_>) -> Result<u64, Error> {
    table.need("service")?.positive_duration()
}

/// The spread around a mean.
fn spread(table: &Table<'_>, mean_ns: u64) -> Result<Spread, Error> {
    if let Some(node) = table.get("spread").filter(Node::is_table) {
        if let Some(node) = table.get("variation") {
            return Err(node.error("it does not go with percentiles, which say it"));
        }
        return percentiles(&node, mean_ns).map(Spread::Percentiles);
    }
    let choices = [("constant", 0), ("exponential", 1), ("lognormal", 2)];
    let chosen = table.read("spread", |node| node.choice(&choices))?.unwrap_or(1);
    match (chosen, table.get("variation")) {
        (2, Some(node)) => Ok(Spread::Lognormal(node.number(0.001..=10.0)?)),
        (2, None) => Ok(Spread::Lognormal(table.need("variation")?.number(0.001..=10.0)?)),
        (_, Some(node)) => Err(node.error("it goes with spread = \"lognormal\" only")),
        (0, None) => Ok(Spread::Constant),
        (_, None) => Ok(Spread::Exponential),
    }
}

/// Percentiles by their keys, those that fio prints, and how many times of ten thousand are longer.
const PERCENTILES: [(&str, f64); 17] = [
    ("p1", 9_900.0),
    ("p5", 9_500.0),
    ("p10", 9_000.0),
    ("p20", 8_000.0),
    ("p30", 7_000.0),
    ("p40", 6_000.0),
    ("p50", 5_000.0),
    ("p60", 4_000.0),
    ("p70", 3_000.0),
    ("p80", 2_000.0),
    ("p90", 1_000.0),
    ("p95", 500.0),
    ("p99", 100.0),
    ("p995", 50.0),
    ("p999", 10.0),
    ("p9995", 5.0),
    ("p9999", 1.0),
];
/// Longer than the median.
const HALF: f64 = 5_000.0 / 10_000.0;

/// A spread as it was published.
fn percentiles(node: &Node<'_>, mean_ns: u64) -> Result<Percentiles, Error> {
    let table = node.table(&PERCENTILES.map(|(key, _)| key))?;
    table.need("p50")?;
    let mut points: Vec<(f64, u64)> = Vec::new();
    for (key, longer) in PERCENTILES {
        let Some(node) = table.get(key) else { continue };
        let time = node.positive_duration()?;
        if points.last().is_some_and(|&(_, below)| time < below) {
            return Err(node.error("it is shorter than the percentile before it"));
        }
        points.push((longer / 10_000.0, time));
    }
    if points.last().is_none_or(|&(longer, _)| longer >= HALF) {
        return Err(node.error("with `p50` give one above it, as `p99`"));
    }
    let of_mean = |&(longer, time): &(f64, u64)| (longer, time as f64 / mean_ns as f64);
    Percentiles::new(&points.iter().map(of_mean).collect::<Vec<_>>()).map_err(|(least, most)| {
        // In tenths of microseconds, so that whichever is typed is taken.
        let [least, most] = [least, most].map(|mean| mean * mean_ns as f64 / 1e2);
        let (least, most, mean) = (least.ceil() / 10.0, most.floor() / 10.0, mean_ns as f64 / 1e3);
        node.error(&format!(
            "with these percentiles the mean is {least:.1} to {most:.1}us, and it is {mean:.1}us"
        ))
    })
}

/// What a RAID has beside its data.
#[derive(Clone, Copy)]
enum Redundant {
    Copies,
    Disks(u32),
}

/// Back-end I/Os of a write [reference 7.2], and what of a row is no data.
fn raid(table: &Table<'_>) -> Result<(u32, Redundant), Error> {
    let levels = [
        ("0", (1, Redundant::Disks(0))),
        ("1", (2, Redundant::Copies)),
        ("10", (2, Redundant::Copies)),
        ("5", (4, Redundant::Disks(1))),
        ("6", (6, Redundant::Disks(2))),
    ];
    table.need("raid")?.choice(&levels)
}

/// `curve = [[1, "0.3ms"], [64, "0.8ms"]]`: outstanding commands and the latency at so many.
fn curve(node: &Node<'_>) -> Result<Vec<(u32, u64)>, Error> {
    let mut points: Vec<(u32, u64)> = Vec::new();
    for point in node.list() {
        let [outstanding, latency] = point.list().try_into().map_err(|_| {
            point.error("a point is a pair: [outstanding, \"latency\"], as [32, \"0.5ms\"]")
        })?;
        let pair = (outstanding.integer32(1..=1_000_000)?, latency.positive_duration()?);
        if points.last().is_some_and(|last| last.0 >= pair.0) {
            return Err(
                outstanding.error("points stand in ascending order of outstanding commands")
            );
        }
        points.push(pair);
    }
    if points.is_empty() {
        return Err(node.error("a curve has at least one point, as [[32, \"0.5ms\"]]"));
    }
    Ok(points)
}

fn write_protocol(table: &Table<'_>) -> Result<WriteProtocol, Error> {
    let choices = [("transfer-ready", false), ("immediate", true)];
    let immediate = table.read("write", |node| node.choice(&choices))?.unwrap_or(false);
    let bytes = |node: &Node<'_>| Ok(node.size(SECTOR..=16 << 20)? as u32);
    let unsolicited = table.read("unsolicited", bytes)?;
    let max_burst = table.read("max_burst", bytes)?;
    if immediate {
        return Ok(WriteProtocol::Immediate {
            unsolicited: unsolicited.unwrap_or(UNSOLICITED_DEFAULT),
            max_burst: max_burst.unwrap_or(MAX_BURST_DEFAULT),
        });
    }
    match table.get("unsolicited").or_else(|| table.get("max_burst")) {
        Some(node) => Err(node.error("it goes with write = \"immediate\" only")),
        None => Ok(WriteProtocol::TransferReady),
    }
}

fn policies(table: &Table<'_>) -> Result<Vec<(String, Qos)>, Error> {
    let named = table.named("qos")?;
    named.into_iter().map(|(name, node)| Ok((name, policy(&node)?))).collect()
}

fn policy(node: &Node<'_>) -> Result<Qos, Error> {
    let table = node.table(&["min", "max", "burst", "credit", "cost", "bandwidth"])?;
    let bytes_per_sec = bandwidth(&table, "bandwidth")?;
    let max = table.read("max", |node| node.integer32(1..=IOPS_MAX))?;
    let max = match (max, bytes_per_sec) {
        (Some(max), _) => max,
        (None, Some(_)) => IOPS_MAX,
        (None, None) => table.need("max")?.integer32(1..=IOPS_MAX)?,
    };
    let min = table.read("min", |node| node.integer32(0..=max))?.unwrap_or(0);
    let burst = table.read("burst", |node| node.integer32(max..=IOPS_MAX))?;
    let credit = table.read("credit", |node| Ok((node.duration()? / SECOND) as u32))?;
    let costs = [("flat", Cost::Flat), ("solidfire", Cost::SolidFire)];
    Ok(Qos {
        min,
        max,
        burst: burst.unwrap_or(max),
        burst_secs: credit.unwrap_or(BURST_CREDIT_SECS),
        cost: table.read("cost", |node| node.choice(&costs))?.unwrap_or(Cost::Flat),
        bytes_per_sec,
    })
}
