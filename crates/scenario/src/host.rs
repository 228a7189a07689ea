//! `[host.NAME]` with its adapters.

use std::collections::BTreeMap;

use counters::{AdapterId, SECOND};
use engine::{AdapterConfig, CompetitionUnit, DepthMode, HostConfig, ThrottleMode, WEIGHT_SCALE};
use knobs::{Driver, Transport, Version};
use model::InitiatorConfig;

use crate::{
    Error, Host, Lines,
    array::count,
    initiator::{Way, Ways},
    names,
    nouns::Names,
    reader::{Node, Table},
    serving,
    switch::Switches,
};

const HOSTS_MAX: usize = 10_000;
/// A host has at most so many adapters in any version's configuration maximums, with room.
const ADAPTERS_MAX: usize = 64;
/// How long a reboot takes when the file does not say; nobody publishes it.
const BOOT_DEFAULT_NS: u64 = 60 * SECOND;

pub(crate) const HOST_KEYS: &[&str] = &[
    "count",
    "esxi",
    "boot",
    "competition_unit",
    "device_depth_mode",
    "throttle",
    "weight_scale",
    "adapter",
    "nfs_link",
    "nfs_switch",
    "nbd",
    "sockets",
    "cpus",
];

/// Hosts by name.
pub(crate) struct Hosts {
    pub(crate) hosts: Vec<Host>,
    pub(crate) names: Names,
    pub(crate) ways: Ways,
}

impl Hosts {
    /// Reads every host.
    pub(crate) fn read(root: &Table<'_>, switches: &Switches) -> Result<Self, Error> {
        let default = root.read("esxi", version)?.unwrap_or(Version::V7_0);
        let (hosts, ways) = (Vec::new(), Ways::behind(switches));
        let mut all = Self { hosts, names: Names::new("host", HOSTS_MAX), ways };
        for (name, node) in root.named("host")? {
            let table = node.table(HOST_KEYS)?;
            let (host, ways) = host(&table, default, switches)?;
            for member in all.names.add(&node, &name, count(&table, HOSTS_MAX)?)? {
                let mut host = host.clone();
                host.config.name = member;
                all.hosts.push(host);
                all.ways.of.push(ways.clone());
            }
        }
        if all.hosts.is_empty() {
            return Err(root.node().error("a scenario has at least one [host.NAME]"));
        }
        Ok(all)
    }

    /// The hosts that a table's `key` names; all of them when it does not have it.
    pub(crate) fn find_or_all(&self, table: &Table<'_>, key: &str) -> Result<Vec<usize>, Error> {
        let found = table.read(key, |node| self.names.find(node))?;
        Ok(found.unwrap_or_else(|| (0..self.hosts.len()).collect()))
    }
}

fn version(node: &Node<'_>) -> Result<Version, Error> {
    node.choice(&Version::ALL.map(|version| (version.name(), version)))
}

fn host(
    table: &Table<'_>,
    default: Version,
    switches: &Switches,
) -> Result<(Host, Vec<Way>), Error> {
    let units = [("vm", CompetitionUnit::Vm), ("file", CompetitionUnit::File)];
    let depths = [
        ("path_value", DepthMode::PathValue),
        ("sum_of_active_paths", DepthMode::SumOfActivePaths),
    ];
    let throttles = [("kernel", ThrottleMode::Kernel), ("kb", ThrottleMode::Kb)];
    let Adapters { adapters, ways, driver_lines: drivers } = adapters(table, switches)?;
    let cpus = table.get("cpus").map_or(0, |node| node.line());
    let lines = Lines { cpus, drivers, ..Lines::default() };
    let config = HostConfig {
        name: String::new(),
        version: table.read("esxi", version)?.unwrap_or(default),
        competition_unit: table
            .read("competition_unit", |node| node.choice(&units))?
            .unwrap_or(CompetitionUnit::Vm),
        depth_mode: table
            .read("device_depth_mode", |node| node.choice(&depths))?
            .unwrap_or(DepthMode::PathValue),
        throttle_mode: table
            .read("throttle", |node| node.choice(&throttles))?
            .unwrap_or(ThrottleMode::Kernel),
        weight_scale_percent: table.read("weight_scale", weight_scale)?.unwrap_or(100),
        adapters,
        devices: Vec::new(),
        paths: Vec::new(),
        vms: Vec::new(),
        vscsi: Vec::new(),
        vdisks: Vec::new(),
    };
    let host = Host {
        config,
        initiator: InitiatorConfig::default(),
        targets: Vec::new(),
        datastores: Vec::new(),
        rdms: Vec::new(),
        guests: Vec::new(),
        boot_ns: table.read("boot", Node::duration)?.unwrap_or(BOOT_DEFAULT_NS),
        settings: Vec::new(),
        policies: Vec::new(),
        policy_of: Vec::new(),
        blocks: Vec::new(),
        flash_caches: BTreeMap::new(),
        absent: Vec::new(),
        images: Vec::new(),
        nbd: table.read("nbd", serving::nbd)?,
        sockets: table.read("sockets", serving::sockets)?.unwrap_or_default(),
        cpus: serving::cpus(table)?,
        lines,
    };
    Ok((host, ways))
}

/// What a share is, from I/Os a second into hundredths.
fn weight_scale(node: &Node<'_>) -> Result<u32, Error> {
    let [least, most] =
        [WEIGHT_SCALE.start(), WEIGHT_SCALE.end()].map(|end| f64::from(*end) / 100.0);
    Ok((node.number(least..=most)? * 100.0).round() as u32)
}

/// The adapters of a host.
struct Adapters {
    adapters: Vec<AdapterConfig>,
    ways: Vec<Way>,
    driver_lines: Vec<usize>,
}

fn adapters(table: &Table<'_>, switches: &Switches) -> Result<Adapters, Error> {
    let named = table.named("adapter")?;
    if named.len() > ADAPTERS_MAX {
        return Err(table.node().error(&format!("a host has at most {ADAPTERS_MAX} adapters")));
    }
    let mut seen = Names::new("adapter", ADAPTERS_MAX);
    let (mut adapters, mut ways, mut driver_lines) = (Vec::new(), Vec::new(), Vec::new());
    for (name, node) in named {
        seen.add(&node, &name, None)?;
        let table = node.table(ADAPTER_KEYS)?;
        driver_lines.push(table.need("driver")?.line());
        let (adapter, way) = adapter(name, &table, switches)?;
        adapters.push(adapter);
        ways.push(way);
    }
    // The NFS client comes behind them, where there is one.
    ways.push(Way::of_nfs(table, switches)?);
    Ok(Adapters { adapters, ways, driver_lines })
}

const ADAPTER_KEYS: &[&str] =
    &["driver", "lun_depth", "depth", "timeout", "link", "switch", "dead_after", "iscsi"];

fn adapter(
    name: String,
    table: &Table<'_>,
    switches: &Switches,
) -> Result<(AdapterConfig, Way), Error> {
    let driver = table.need("driver")?;
    let module = driver.string()?;
    let hbas = || Driver::ALL.iter().filter(|driver| driver.transport != Transport::Network);
    let driver = hbas().find(|driver| driver.module == module).ok_or_else(|| {
        if Driver::from_module(module).is_some() {
            return driver
                .error("`nfsclient` is no adapter: write `kind = \"nfs\"` at the datastore");
        }
        driver.error(&names::unknown("driver", module, hbas().map(|driver| driver.module)))
    })?;
    let lun = |node: &Node<'_>| node.integer32(driver.depth_min..=driver.depth_max);
    let adapter = AdapterConfig {
        name,
        driver,
        lun_depth: table.read("lun_depth", lun)?.unwrap_or(driver.depth_default),
        depth: table
            .read("depth", |node| node.integer32(1..=65_536))?
            .unwrap_or(driver.adapter_depth),
        timeout_ns: table.read("timeout", Node::positive_duration)?,
    };
    Ok((adapter, Way::read(table, driver, switches)?))
}

/// The adapter of that name on a host.
pub(crate) fn adapter_of(host: &Host, node: &Node<'_>) -> Result<AdapterId, Error> {
    let name = node.string()?;
    let adapters = &host.config.adapters;
    adapters.iter().position(|adapter| adapter.name == name).map(AdapterId::new).ok_or_else(|| {
        let known = adapters.iter().map(|adapter| adapter.name.as_str());
        node.error(&names::unknown("adapter", name, known))
    })
}
