//! A host's end of its ways to arrays: `link` and `iscsi` of an adapter, and the connections of an NFS datastore.
//!
//! ```text
//!   path --> nexus: the window, the rounds of writes, lost segments --> link of an adapter's port --> links of switches
//! ```
//!
//! A nexus (an iSCSI session) is what paths have in common that end at one port of the host and one of the array, so
//! two devices of one array share it. Software iSCSI that is bound to several ports has its paths dealt to them (port binding).

use std::{collections::BTreeMap, ops::RangeInclusive};

use counters::{AdapterId, MILLISECOND, PathId, SECTOR, sorted::Ordered};
use knobs::{DEAD_AFTER_NS, Driver, MAX_CMDS, Transport};
use model::{InitiatorConfig, Loss, NexusConfig, WriteProtocol};

use crate::{
    Error,
    reader::{Node, Table},
    switch::Switches,
    units,
};

/// Ports of the network to which an adapter can be bound; more than anybody binds.
const VMKNICS_MAX: u32 = 8;
/// What the software initiator asks for [ELA; reference 7.5].
const FIRST_BURST_DEFAULT: u64 = 262_144;
const MAX_BURST_DEFAULT: u64 = 262_144;
/// What a target takes in one piece that declares nothing [RFC7143].
const MAX_XMIT_SEGMENT_DEFAULT: u64 = 8_192;
/// Bytes of a burst, and of a piece [RFC7143].
const BURST: RangeInclusive<u64> = SECTOR..=(1 << 24) - 1;
/// No host keeps an acknowledgement back for longer [KB-ACK].
const ACK_TIMER_MAX_NS: u64 = 500 * MILLISECOND;
/// Beyond this share of lost segments nothing is as it is told here.
const LOSS_MAX: f64 = 0.1;
/// Bytes of a packet on the network, and of its headers (IPv4 and TCP).
const MTU: RangeInclusive<u32> = 576..=9_000;
const MTU_DEFAULT: u32 = 1_500;
const HEADERS: u32 = 40;
/// TCP connections of a mount: `NFS.MaxConnectionsPerDatastore` goes to 8 [NCONNECT].
const CONNECTIONS_MAX: u32 = 8;
/// More than any server or client has.
const SLOTS_MAX: u32 = 65_536;

/// The way out by an adapter, as far as the file says.
#[derive(Clone, Default)]
pub(crate) struct Way {
    /// Bytes a second of each of its ports.
    link: Option<u64>,
    switch: Option<usize>,
    iscsi: Option<Iscsi>,
    /// Nanoseconds until its driver finds that a path is dead.
    pub(crate) dead_after_ns: u64,
}

/// Software iSCSI.
#[derive(Clone)]
struct Iscsi {
    nexus: NexusConfig,
    vmknics: usize,
}

/// The ways of hosts, and the nexuses that there are by them so far.
#[derive(Default)]
pub(crate) struct Ways {
    /// By host and adapter; the last is that of its NFS client.
    pub(crate) of: Vec<Vec<Way>>,
    links: BTreeMap<Port, usize>,
    nexuses: BTreeMap<(Port, usize, usize), u32>,
    /// By switch, whether its link has a limit, and the paths that go through it.
    has_link: Vec<bool>,
    pub(crate) through: Vec<Vec<(usize, PathId)>>,
}

/// A port of a host: the host's and the adapter's place, and the port's among those of the adapter.
type Port = (usize, usize, usize);

/// Where a path ends: the array, its port, how many ports it has, and on which switch it is.
pub(crate) struct End {
    pub(crate) array: usize,
    pub(crate) port: usize,
    pub(crate) ports: usize,
    pub(crate) switch: Option<usize>,
}

impl Way {
    /// Reads that of an adapter with this driver.
    pub(crate) fn read(
        table: &Table<'_>,
        driver: &Driver,
        switches: &Switches,
    ) -> Result<Self, Error> {
        let iscsi = table.read("iscsi", |node| {
            if driver.transport != Transport::Iscsi {
                return Err(node.error("it goes with the driver of software iSCSI"));
            }
            iscsi(node)
        })?;
        let link = table.read("link", |node| node.parsed(units::bandwidth))?;
        let dead_after = match driver.transport {
            Transport::Fc | Transport::Iscsi => DEAD_AFTER_NS,
            Transport::Local | Transport::Network => 0,
        };
        let dead_after_ns = table.read("dead_after", Node::duration)?.unwrap_or(dead_after);
        Ok(Self { link, switch: switches.of(table, "switch")?, iscsi, dead_after_ns })
    }

    /// Reads that of a host's NFS client.
    pub(crate) fn of_nfs(host: &Table<'_>, switches: &Switches) -> Result<Self, Error> {
        let link = host.read("nfs_link", |node| node.parsed(units::bandwidth))?;
        let switch = switches.of(host, "nfs_switch")?;
        Ok(Self { link, switch, dead_after_ns: 0, iscsi: None })
    }

    /// The port by which the path leaves that has this place among those of a device by the adapter. They are
    /// dealt to the ports in turn, so that as many as both have pairs of ports lead from each to each.
    fn port_of(&self, place: usize, ports_there: usize) -> usize {
        let ports = self.iscsi.as_ref().map_or(1, |iscsi| iscsi.vmknics);
        (place + place / least_common_multiple(ports, ports_there)) % ports
    }
}

impl Ways {
    /// None yet.
    pub(crate) fn behind(switches: &Switches) -> Self {
        let has_link = switches.limited();
        Self { through: vec![Vec::new(); has_link.len()], has_link, ..Self::default() }
    }

    /// The switches whose links a path crosses that goes through these.
    fn crosses(&self, through: [Option<usize>; 2]) -> [Option<u32>; 2] {
        let [near, far] = through;
        let leaves = |switch: &usize| near != far && self.has_link[*switch];
        through.map(|switch| switch.filter(leaves).map(|switch| switch as u32))
    }

    /// A path of a host that leaves by an adapter; `place` is its place among those of its device by that adapter, and
    /// `path` its number on the host. Its channel and target there: the C and the T of its name. A mount with a `window`
    /// has a nexus of its own.
    pub(crate) fn add_path(
        &mut self,
        initiator: &mut InitiatorConfig,
        (host, adapter): (usize, AdapterId),
        (path, place): (usize, usize),
        (end, window): (&End, Option<u32>),
    ) -> (usize, usize) {
        let Some(way) = self.of[host].get(adapter.index()) else { return (0, place) };
        let through = [way.switch, end.switch];
        let crosses = self.crosses(through);
        for switch in through.into_iter().flatten().into_set() {
            self.through[switch].push((host, PathId::new(path)));
        }
        let is_direct = crosses == [None; 2] && way.link.is_none();
        if is_direct && way.iscsi.is_none() && window.is_none() {
            return (0, place);
        }
        let (at, config) = (way.port_of(place, end.ports), way.iscsi.as_ref());
        let port = (host, adapter.index(), at);
        let link = way.link.map(|rate| {
            *self.links.entry(port).or_insert_with(|| {
                initiator.links.push(rate);
                initiator.links.len() - 1
            })
        });
        let mut new = || {
            let config = config.map_or_else(NexusConfig::default, |iscsi| iscsi.nexus);
            let window = window.or(config.window);
            initiator.nexuses.push(NexusConfig { link, crosses, window, ..config });
            initiator.nexuses.len() as u32 - 1
        };
        let nexus = match window {
            Some(_) => new(),
            None => *self.nexuses.entry((port, end.array, end.port)).or_insert_with(new),
        };
        initiator.of_path.resize(path, None);
        initiator.of_path.push(Some(nexus));
        (at, place / config.map_or(1, |iscsi| iscsi.vmknics))
    }
}

fn least_common_multiple(a: usize, b: usize) -> usize {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}

fn iscsi(node: &Node<'_>) -> Result<Iscsi, Error> {
    let table = node.table(&[
        "vmknics",
        "immediate_data",
        "initial_r2t",
        "first_burst",
        "max_burst",
        "max_xmit_segment",
        "max_cmds",
        "window",
        "delayed_ack",
        "ack_timer",
        "loss",
        "mtu",
    ])?;
    let max_cmds = table.read("max_cmds", |node| node.integer32(MAX_CMDS.range))?;
    let window = table.read("window", |node| node.integer32(1..=SLOTS_MAX))?;
    let window = max_cmds.unwrap_or(MAX_CMDS.default).min(window.unwrap_or(u32::MAX));
    let vmknics = table.read("vmknics", |node| node.integer32(1..=VMKNICS_MAX))?.unwrap_or(1);
    let nexus = NexusConfig {
        link: None,
        crosses: [None; 2],
        window: Some(window),
        write_protocol: Some(write_protocol(&table)?),
        loss: loss(&table)?,
    };
    Ok(Iscsi { nexus, vmknics: vmknics as usize })
}

/// What both sides agreed on at login: how many bytes of a write go along, and how many are asked for at a time.
fn write_protocol(table: &Table<'_>) -> Result<WriteProtocol, Error> {
    let is = |key, default| Ok(table.read(key, Node::boolean)?.unwrap_or(default));
    let bytes = |key, default| Ok(table.read(key, |node| node.size(BURST))?.unwrap_or(default));
    let (immediate_data, initial_r2t) = (is("immediate_data", true)?, is("initial_r2t", false)?);
    let max_burst = bytes("max_burst", MAX_BURST_DEFAULT)?;
    let first_burst = bytes("first_burst", FIRST_BURST_DEFAULT.min(max_burst))?;
    let segment = bytes("max_xmit_segment", MAX_XMIT_SEGMENT_DEFAULT)?;
    if let (true, Some(node)) = (first_burst > max_burst, table.get("first_burst")) {
        return Err(node.error(&format!("it is at most `max_burst`, {max_burst} bytes")));
    }
    let unsolicited = match (immediate_data, initial_r2t) {
        (_, false) => first_burst,
        (true, true) => first_burst.min(segment),
        (false, true) => 0,
    };
    Ok(WriteProtocol::Immediate { unsolicited: unsolicited as u32, max_burst: max_burst as u32 })
}

fn loss(table: &Table<'_>) -> Result<Option<Loss>, Error> {
    let delayed_ack = table.read("delayed_ack", Node::boolean)?.unwrap_or(true);
    let share = table.read("loss", |node| {
        let share = node.parsed(units::percent)?;
        let is_told = share <= LOSS_MAX;
        is_told.then_some(share).ok_or_else(|| node.error("it is at most \"10%\""))
    })?;
    let timer = table.read("ack_timer", |node| {
        let nanos = node.positive_duration()?;
        let is_short = nanos <= ACK_TIMER_MAX_NS;
        is_short.then_some(nanos).ok_or_else(|| node.error("it is at most \"500ms\""))
    })?;
    let mtu = table.read("mtu", |node| node.integer32(MTU))?.unwrap_or(MTU_DEFAULT);
    let Some(share) = share else {
        let alone = table.get("ack_timer").or_else(|| table.get("mtu"));
        return alone.map_or(Ok(None), |node| Err(node.error("it goes with `loss` only")));
    };
    let ack_ns = match timer {
        _ if !delayed_ack => 0,
        Some(nanos) => nanos,
        None => table.need("ack_timer")?.positive_duration()?,
    };
    Ok((share > 0.0).then_some(Loss { share, segment: mtu - HEADERS, ack_ns }))
}

/// Commands that an NFS mount has under way at most: `rpc_slots` by each of its `connections`.
pub(crate) fn mount_window(table: &Table<'_>) -> Result<Option<u32>, Error> {
    let connections = table.read("connections", |node| node.integer32(1..=CONNECTIONS_MAX))?;
    let slots = table.read("rpc_slots", |node| node.integer32(1..=SLOTS_MAX))?;
    match (slots, table.get("connections")) {
        (None, Some(node)) => Err(node.error("it goes with `rpc_slots`, which are those of each")),
        (None, None) => Ok(None),
        (Some(slots), _) => Ok(Some(slots * connections.unwrap_or(1))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_dealt_to_ports_so_that_pairs_are_all_used() {
        for (vmknics, there) in [(1, 1), (2, 1), (1, 2), (2, 2), (2, 4), (4, 2), (3, 2), (4, 6)] {
            let nexus = NexusConfig::default();
            let way = Way { iscsi: Some(Iscsi { nexus, vmknics }), ..Way::default() };
            let pairs =
                (0..vmknics * there).map(|place| (way.port_of(place, there), place % there));
            let pairs: std::collections::BTreeSet<_> = pairs.collect();
            assert_eq!(pairs.len(), vmknics * there, "{vmknics} x {there}: {pairs:?}");
            let first: Vec<_> = (0..vmknics).map(|place| way.port_of(place, there)).collect();
            assert_eq!(first, (0..vmknics).collect::<Vec<_>>());
        }
    }
}
