//! `[datastore.NAME]`: the device that each host sees of it, and the paths to that device.

use std::collections::BTreeMap;

use counters::{AdapterId, DeviceId, DeviceKind, MILLISECOND};
use engine::{AdapterConfig, DeviceConfig, HostConfig, PathAccess, PathConfig, SchedPolicy};
use knobs::{
    CONGESTION_MS, CONGESTION_SHARES, DSNRO, Driver, IoControl, Knob, PathPolicy, Transport,
    Version,
};
use model::{Controllers, Qos, Queues};

use crate::{
    AutomaticThreshold, Error, Host, Target,
    array::{Arrays, count},
    host::{Hosts, adapter_of},
    initiator::{self, End},
    injector,
    nouns::Names,
    reader::{Node, Table},
    serving::{self, Store},
    units,
};

const DATASTORES_MAX: usize = 20_000;
/// Paths of a device through one adapter: target ports of an array.
const PATHS_MAX: usize = 32;
/// Devices and paths of all hosts together, so that a small file cannot ask for all memory.
const PATHS_TOTAL_MAX: usize = 4_000_000;
/// Ids are 16 bits wide.
pub(crate) const IDS_MAX: usize = 65_535;

const KEYS: &[&str] = &[
    "count",
    "kind",
    "array",
    "volume",
    "qos",
    "device",
    "endpoint",
    "hosts",
    "adapters",
    "paths",
    "unoptimized_paths",
    "path_policy",
    "connections",
    "rpc_slots",
    "scheduler",
    "dsnro",
    "depth_by_latency",
    "congestion_threshold",
    "stats_only",
    "metadata",
    "backend",
    "directory",
    "emulate",
    "buffers",
];

/// What a datastore lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file system on a LUN.
    Vmfs,
    /// A LUN handed to virtual machines as it is.
    Rdm,
    /// A mount.
    Nfs,
    /// Virtual volumes behind a protocol endpoint.
    Vvol,
}

/// A datastore.
pub(crate) struct Datastore {
    pub(crate) name: String,
    pub(crate) array: usize,
    /// The volume; `None` when each virtual disk is a volume of its own (vVol).
    pub(crate) volume: Option<Target>,
    /// The policy of volumes that it makes for virtual disks.
    pub(crate) qos: Option<Qos>,
    /// Where its disks are in real time.
    pub(crate) store: Option<Store>,
    /// Its device on each host, by host.
    pub(crate) devices: Vec<Option<DeviceId>>,
}

/// Datastores by name.
pub(crate) struct Datastores {
    pub(crate) datastores: Vec<Datastore>,
    pub(crate) names: Names,
    /// Devices by host and name.
    known: BTreeMap<(usize, String), DeviceId>,
    /// The congestion thresholds that were found.
    pub(crate) thresholds: Vec<AutomaticThreshold>,
    paths_total: usize,
}

/// What the datastores of one table have in common.
struct Common<'a> {
    table: Table<'a>,
    kind: Kind,
    array: usize,
    device: DeviceConfig,
    hosts: Vec<usize>,
    /// Paths through each adapter: optimised, and others; of an array with two controllers so many to each.
    paths: (usize, usize),
    controllers: Option<Controllers>,
    /// Target ports of the array.
    ports: usize,
    /// Their switches, in turn.
    switches: Vec<usize>,
    /// Commands that an NFS mount has under way at most, where the file says.
    mount_window: Option<u32>,
}

impl Datastores {
    /// Reads every datastore and adds devices and paths to the hosts.
    pub(crate) fn read(
        root: &Table<'_>,
        arrays: &mut Arrays,
        hosts: &mut Hosts,
    ) -> Result<Self, Error> {
        let mut all = Self {
            datastores: Vec::new(),
            names: Names::new("datastore", DATASTORES_MAX),
            known: BTreeMap::new(),
            thresholds: Vec::new(),
            paths_total: 0,
        };
        for (name, node) in root.named("datastore")? {
            all.read_group(&name, &node, arrays, hosts)?;
        }
        Ok(all)
    }

    /// The hosts that see a datastore.
    pub(crate) fn hosts_of(&self, datastore: usize) -> Vec<usize> {
        let devices = self.datastores[datastore].devices.iter().enumerate();
        devices.filter(|(_, device)| device.is_some()).map(|(host, _)| host).collect()
    }

    /// The device of a datastore on a host.
    pub(crate) fn device(
        &self,
        datastore: usize,
        host: usize,
        host_name: &str,
        node: &Node<'_>,
    ) -> Result<DeviceId, Error> {
        let datastore = &self.datastores[datastore];
        datastore.devices.get(host).copied().flatten().ok_or_else(|| {
            let message = format!("host `{host_name}` does not see datastore `{}`", datastore.name);
            node.error(&format!("{message}; its `hosts` must name it"))
        })
    }

    fn read_group(
        &mut self,
        name: &str,
        node: &Node<'_>,
        arrays: &mut Arrays,
        hosts: &mut Hosts,
    ) -> Result<(), Error> {
        let common = Common::read(node.table(KEYS)?, arrays, hosts)?;
        let count = count(&common.table, DATASTORES_MAX)?;
        let members = self.names.add(node, name, count)?;
        let volumes = common.volumes(&members, arrays)?;
        let group = members.len();
        let by_latency = common.table.read("depth_by_latency", Node::boolean)?.unwrap_or(false);
        let control = common.io_control(arrays, hosts)?;
        if let (Some(share), Some(threshold_us)) = (common.share_of_peak()?, control.threshold_us())
        {
            let datastore = name.to_owned();
            self.thresholds.push(AutomaticThreshold { datastore, share, threshold_us });
        }
        for (index, (member, volume)) in members.into_iter().zip(volumes).enumerate() {
            let device = DeviceConfig {
                name: common.device_name(&member, (index, group), arrays)?,
                ..common.device.clone()
            };
            let qos = arrays.policy(common.array, &common.table)?;
            let store = serving::store(&common.table)?;
            let owner = volume.map(|volume| arrays.owner(volume));
            let (array, devices) = (common.array, Vec::new());
            let mut datastore = Datastore { name: member, array, volume, qos, store, devices };
            datastore.devices.resize(hosts.hosts.len(), None);
            for &host in &common.hosts {
                let id = self.add_device(&common, host, (&device, owner), hosts)?;
                datastore.devices[host] = Some(id);
                hosts.hosts[host].datastores[id.index()].push(datastore.name.clone());
                if by_latency {
                    hosts.hosts[host].apply(Knob::DepthByLatency { device: id, on: true });
                }
                if let Some(node) = common.table.get("congestion_threshold") {
                    let refusal = |why: String| node.error(&format!("Storage I/O Control: {why}"));
                    hosts.hosts[host].check_control(id).map_err(refusal)?;
                    hosts.hosts[host].apply(Knob::StorageIoControl { device: id, control });
                }
            }
            self.datastores.push(datastore);
        }
        Ok(())
    }

    /// The device of that name on a host. Containers of one array share their protocol endpoint;
    /// other devices belong to one datastore.
    fn add_device(
        &mut self,
        common: &Common<'_>,
        host: usize,
        (device, owner): (&DeviceConfig, Option<usize>),
        hosts: &mut Hosts,
    ) -> Result<DeviceId, Error> {
        let devices = &mut hosts.hosts[host].config.devices;
        let key = (host, device.name.clone());
        if let Some(id) = self.known.get(&key) {
            return common.share(&devices[id.index()], device).map(|()| *id);
        }
        let id = DeviceId::new(devices.len());
        self.known.insert(key, id);
        devices.push(device.clone());
        hosts.hosts[host].datastores.push(Vec::new());
        hosts.hosts[host].lines.devices.push(common.table.node().line());
        if common.kind == Kind::Rdm {
            hosts.hosts[host].rdms.push(id);
        }
        self.add_paths(common, host, (id, owner), hosts)?;
        let config = &hosts.hosts[host].config;
        common.check_dsnro(config, id)?;
        common.check_policy(config, id)?;
        if config.devices.len() > IDS_MAX || config.paths.len() > IDS_MAX {
            let message =
                format!("host `{}` has too many devices or paths; at most {IDS_MAX}", config.name);
            return Err(common.table.node().error(&message));
        }
        Ok(id)
    }

    fn add_paths(
        &mut self,
        common: &Common<'_>,
        host: usize,
        (device, owner): (DeviceId, Option<usize>),
        hosts: &mut Hosts,
    ) -> Result<(), Error> {
        let adapters = common.adapters(host, hosts)?;
        let Hosts { hosts, ways, .. } = hosts;
        let Host { config, initiator, .. } = &mut hosts[host];
        let (optimized, others) = common.paths;
        self.paths_total += adapters.len() * (optimized + others);
        if self.paths_total > PATHS_TOTAL_MAX {
            let message = format!("there are too many paths; at most {PATHS_TOTAL_MAX} in all");
            return Err(common.table.node().error(&message));
        }
        let adapters_of = |target: usize| adapters.iter().map(move |adapter| (target, *adapter));
        let by_target = (0..optimized + others).flat_map(adapters_of);
        let places: Vec<_> = match common.controllers {
            None => by_target.collect(),
            // One behind the other, by each adapter, for ports are dealt to paths in turn.
            Some(_) => {
                let targets = |&adapter: &AdapterId| {
                    (0..optimized + others).map(move |target| (target, adapter))
                };
                adapters.iter().flat_map(targets).collect()
            }
        };
        for (target, adapter) in places {
            let path = config.paths.len();
            let port = Queues::port_of(host, path, common.ports);
            let switch = common.switches.get(port % common.switches.len().max(1)).copied();
            let end = End { array: common.array, port, ports: common.ports, switch };
            let end = (&end, common.mount_window);
            let (c, t) = ways.add_path(initiator, (host, adapter), (path, target), end);
            let vmhba = &config.adapters[adapter.index()].name;
            let name = format!("{vmhba}:C{c}:T{t}:L{}", device.index());
            let leads_to = Controllers::of_path(host, path);
            let access = match common.controllers {
                None if target < optimized => PathAccess::Optimized,
                Some(_) if owner == Some(leads_to) => PathAccess::Optimized,
                Some(Controllers { active_passive: true, .. }) => PathAccess::Standby,
                _ => PathAccess::NonOptimized,
            };
            config.paths.push(PathConfig { name, device, adapter, access });
        }
        Ok(())
    }
}

impl<'a> Common<'a> {
    /// `dsnro` is what `storage core device set -O` would take on that host.
    fn check_dsnro(&self, config: &HostConfig, device: DeviceId) -> Result<(), Error> {
        let (Some(node), Some(dsnro)) = (self.table.get("dsnro"), self.device.dsnro) else {
            return Ok(());
        };
        let (host, version) = (&config.name, config.version);
        let path = config.paths.iter().rfind(|path| path.device == device);
        let depth = path.map_or(0, |path| config.adapters[path.adapter.index()].lun_depth);
        let message = if version.has_global_dsnro() {
            format!("host `{host}` has no such setting of a device; ESXi 5.5 has")
        } else if version.refuses_dsnro_above_depth() && dsnro > depth {
            format!("`{dsnro}` is out of range; on host `{host}` it is 1 to {depth}, the depth")
        } else {
            return Ok(());
        };
        Err(node.error(&message))
    }

    /// Storage I/O Control: on where it has a threshold, or only counting by it.
    fn io_control(&self, arrays: &Arrays, hosts: &mut Hosts) -> Result<IoControl, Error> {
        let only_counts = self.table.read("stats_only", Node::boolean)?;
        match (self.congestion_threshold(arrays, hosts)?, self.table.get("stats_only")) {
            (None, Some(node)) => Err(node.error("it goes with `congestion_threshold`")),
            (None, None) => Ok(IoControl::Off),
            (Some(threshold_us), _) => Ok(match only_counts {
                Some(true) => IoControl::Stats { threshold_us },
                _ => IoControl::On { threshold_us },
            }),
        }
    }

    /// The threshold of Storage I/O Control in microseconds: given, or found.
    fn congestion_threshold(
        &self,
        arrays: &Arrays,
        hosts: &mut Hosts,
    ) -> Result<Option<u32>, Error> {
        let Some(node) = self.table.get("congestion_threshold") else { return Ok(None) };
        if let Some(share) = self.share_of_peak()? {
            return self.automatic_threshold(&node, share, arrays, hosts).map(Some);
        }
        let nanos = node.duration()?;
        let millis = u32::try_from(nanos / MILLISECOND).ok();
        let millis = millis
            .filter(|millis| CONGESTION_MS.contains(millis) && nanos.is_multiple_of(MILLISECOND));
        millis.map(|millis| Some(1000 * millis)).ok_or_else(|| {
            let (least, most) = CONGESTION_MS.into_inner();
            node.error(&format!("it is {least}ms to {most}ms, whole milliseconds"))
        })
    }

    /// The share of the array's peak throughput at which the threshold is, where it is automatic.
    fn share_of_peak(&self) -> Result<Option<f64>, Error> {
        let node = self.table.get("congestion_threshold");
        let Some(node) = node.filter(|node| node.string().is_ok_and(|text| text.ends_with('%')))
        else {
            return Ok(None);
        };
        let share = node.parsed(units::percent)?;
        if !CONGESTION_SHARES.contains(&share) {
            let (least, most) = CONGESTION_SHARES.into_inner();
            let (least, most) = (100.0 * least, 100.0 * most);
            return Err(node.error(&format!("it is {least}% to {most}% of the peak throughput")));
        }
        Ok(Some(share))
    }

    /// What the injector finds from the first host that sees the datastore.
    fn automatic_threshold(
        &self,
        node: &Node<'_>,
        share: f64,
        arrays: &Arrays,
        hosts: &mut Hosts,
    ) -> Result<u32, Error> {
        let is_real = self.table.get("backend").is_some();
        if is_real && !self.table.read("emulate", Node::boolean)?.unwrap_or(false) {
            return Err(
                node.error("there is a model to try with `emulate = true` alone; give it in ms")
            );
        }
        let host = self.hosts.first().copied().unwrap_or(0);
        let adapters = self.adapters(host, hosts)?;
        let config = &hosts.hosts[host].config;
        let depths = adapters.iter().map(|adapter| config.adapters[adapter.index()].lun_depth);
        let depth = depths.max().unwrap_or(1);
        Ok(injector::threshold_us(&arrays.arrays[self.array].config, depth, share))
    }

    /// `path_policy` is what `storage nmp psp roundrobin deviceconfig set` would take on that host.
    fn check_policy(&self, config: &HostConfig, device: DeviceId) -> Result<(), Error> {
        let Some(node) = self.table.get("path_policy") else { return Ok(()) };
        let policy = self.device.path_policy;
        let checked = Knob::PathPolicy { device, policy }.check(config.version);
        checked.map_err(|refusal| node.error(&format!("host `{}`: {refusal}", config.name)))
    }

    fn read(table: Table<'a>, arrays: &Arrays, hosts: &Hosts) -> Result<Self, Error> {
        let kinds =
            [("vmfs", Kind::Vmfs), ("rdm", Kind::Rdm), ("nfs", Kind::Nfs), ("vvol", Kind::Vvol)];
        let kind = table.read("kind", |node| node.choice(&kinds))?.unwrap_or(Kind::Vmfs);
        let array = match table.get("volume") {
            Some(node) => arrays.volumes(&node)?.first().map_or(0, |target| target.array),
            None => arrays.array_of(&table)?,
        };
        let others = table.read("unoptimized_paths", |node| node.integer(0..=PATHS_MAX as u64))?;
        let paths = table.read("paths", |node| node.integer(1..=PATHS_MAX as u64))?;
        let paths = paths.unwrap_or(1);
        let Queues { controllers, ports, .. } = arrays.arrays[array].config.queues;
        match (controllers, table.get("unoptimized_paths")) {
            (Some(_), Some(node)) => {
                return Err(node.error("its array has `controllers`: there are `paths` to each"));
            }
            (Some(_), None) if matches!(kind, Kind::Nfs | Kind::Vvol) => {
                let message = "its array has `controllers`, which own LUNs: it is a VMFS or an RDM";
                return Err(table.node().error(message));
            }
            _ => {}
        }
        let others = others.unwrap_or(if controllers.is_some() { paths } else { 0 });
        let hosts_of = hosts.find_or_all(&table, "hosts")?;
        Ok(Self {
            controllers,
            ports: ports as usize,
            switches: arrays.switches[array].clone(),
            mount_window: mount_window(&table, kind, hosts, &hosts_of)?,
            kind,
            array,
            device: device(&table, kind)?,
            hosts: hosts_of,
            paths: (paths as usize, others as usize),
            table,
        })
    }

    /// The volume of each datastore: those that the file names, or new ones.
    fn volumes(
        &self,
        members: &[String],
        arrays: &mut Arrays,
    ) -> Result<Vec<Option<Target>>, Error> {
        let Some(node) = self.table.get("volume") else {
            let qos = arrays.policy(self.array, &self.table)?;
            let volume = |name: &String| {
                let new = self.kind != Kind::Vvol;
                new.then(|| arrays.add_volume(self.array, name.clone(), qos.clone()))
            };
            return Ok(members.iter().map(volume).collect());
        };
        if self.kind == Kind::Vvol {
            return Err(node.error("with kind = \"vvol\" each virtual disk is a volume of its own"));
        }
        if let Some(qos) = self.table.get("qos") {
            return Err(qos.error("with `volume` it stands at the volume"));
        }
        let volumes = arrays.volumes(&node)?;
        if volumes.len() != members.len() {
            return Err(node.error(&format!(
                "it names {} volumes for {} datastores; there must be one for each",
                volumes.len(),
                members.len()
            )));
        }
        Ok(volumes.into_iter().map(Some).collect())
    }

    /// The name that the file gives, or one that is the same in every run. `place` is the
    /// position in a group, and how many it has.
    fn device_name(
        &self,
        member: &str,
        place: (usize, usize),
        arrays: &Arrays,
    ) -> Result<String, Error> {
        let array = &arrays.arrays[self.array].name;
        match (self.kind, self.table.get("device"), self.table.get("endpoint")) {
            (Kind::Nfs, Some(node), _) => Err(node.error("an NFS datastore has no device")),
            (Kind::Nfs, None, None) => Ok(member.to_string()),
            (Kind::Vvol, None, None) => Ok(naa(array, "protocol endpoint")),
            (Kind::Vvol, None, Some(node)) => Ok(naa(array, node.string()?)),
            (_, _, Some(node)) => Err(node.error("it goes with kind = \"vvol\" and no `device`")),
            (Kind::Vvol, Some(node), None) => device_name(&node),
            (_, Some(node), None) => group_device(&node, place),
            (_, None, None) => Ok(naa(array, member)),
        }
    }

    /// Whether a second datastore may live on the same device.
    fn share(&self, there: &DeviceConfig, mine: &DeviceConfig) -> Result<(), Error> {
        if self.kind != Kind::Vvol || there.kind != DeviceKind::ProtocolEndpoint {
            let message = format!("device `{}` belongs to another datastore", mine.name);
            return Err(self.table.node().error(&message));
        }
        if there != mine {
            let message = format!(
                "it shares protocol endpoint `{}` with another datastore; dsnro, scheduler and \
                 path_policy must be the same, or `endpoint` must name another one",
                mine.name
            );
            return Err(self.table.node().error(&message));
        }
        Ok(())
    }

    /// The adapters by which the device is reached.
    fn adapters(&self, host: usize, hosts: &mut Hosts) -> Result<Vec<AdapterId>, Error> {
        let host = &mut hosts.hosts[host];
        if self.kind == Kind::Nfs {
            return Ok(vec![nfs_client(&mut host.config.adapters)]);
        }
        if self.table.get("adapters").is_some() {
            let named = self.table.list("adapters");
            return named.iter().map(|node| adapter_of(host, node)).collect();
        }
        let adapters = host.config.adapters.iter().enumerate();
        let own = adapters.filter(|(_, adapter)| !is_network(adapter));
        let own: Vec<_> = own.map(|(index, _)| AdapterId::new(index)).collect();
        if own.is_empty() {
            return Err(self.table.node().error(&format!(
                "host `{0}` needs an adapter to reach it, as [host.{0}.adapter.vmhba1]; only NFS goes without",
                host.config.name
            )));
        }
        Ok(own)
    }
}

/// How many commands a mount has under way; only newer hosts have more than one connection for it.
fn mount_window(
    table: &Table<'_>,
    kind: Kind,
    hosts: &Hosts,
    seen_by: &[usize],
) -> Result<Option<u32>, Error> {
    let named = ["connections", "rpc_slots"].iter().find_map(|key| table.get(key));
    if let Some(node) = named.filter(|_| kind != Kind::Nfs) {
        return Err(node.error("it goes with kind = \"nfs\""));
    }
    let older = |host: &&usize| hosts.hosts[**host].config.version < Version::V8_0;
    let several = table.get("connections").filter(|node| node.integer(2..=u64::MAX).is_ok());
    if let (Some(node), Some(host)) = (several, seen_by.iter().find(older)) {
        let name = &hosts.hosts[*host].config.name;
        let message = format!("host `{name}` has one for each mount; ESXi 8.0 has more");
        return Err(node.error(&message));
    }
    initiator::mount_window(table)
}

/// The way out for NFS, which is the host's network; added once to a host.
fn nfs_client(adapters: &mut Vec<AdapterConfig>) -> AdapterId {
    let known = adapters.iter().position(is_network);
    AdapterId::new(known.unwrap_or_else(|| {
        adapters.extend(
            Driver::ALL.iter().find(|driver| driver.transport == Transport::Network).map(
                |driver| AdapterConfig {
                    name: "vmk0".into(),
                    driver,
                    lun_depth: driver.depth_default,
                    depth: driver.adapter_depth,
                    timeout_ns: None,
                },
            ),
        );
        adapters.len() - 1
    }))
}

/// Whether an adapter is a network card and no SCSI adapter.
pub(crate) fn is_network(adapter: &AdapterConfig) -> bool {
    adapter.driver.transport == Transport::Network
}

fn device(table: &Table<'_>, kind: Kind) -> Result<DeviceConfig, Error> {
    let kind = match kind {
        Kind::Vmfs | Kind::Rdm => DeviceKind::Scsi,
        Kind::Nfs => DeviceKind::Nfs,
        Kind::Vvol => DeviceKind::ProtocolEndpoint,
    };
    if kind == DeviceKind::Nfs {
        let scsi = [
            "dsnro",
            "depth_by_latency",
            "scheduler",
            "path_policy",
            "adapters",
            "paths",
            "unoptimized_paths",
        ];
        if let Some(node) = scsi.iter().find_map(|key| table.get(key)) {
            return Err(node.error("an NFS datastore has no SCSI device"));
        }
    }
    let policies =
        [("fifo", SchedPolicy::Fifo), ("sfq", SchedPolicy::Sfq), ("mclock", SchedPolicy::Mclock)];
    let paths = [
        ("fixed", PathPolicy::Fixed),
        ("mru", PathPolicy::MostRecentlyUsed),
        ("rr", PathPolicy::ROUND_ROBIN),
        ("latency", PathPolicy::LATENCY),
    ];
    Ok(DeviceConfig {
        name: String::new(),
        kind,
        dsnro: table.read("dsnro", |node| node.integer32(DSNRO.range()))?,
        policy: table.read("scheduler", |node| node.choice(&policies))?,
        path_policy: table
            .read("path_policy", |node| node.choice(&paths))?
            .unwrap_or(PathPolicy::Fixed),
    })
}

/// The device of a member of a group: a list names one for each, a single name counts up.
fn group_device(node: &Node<'_>, (index, group): (usize, usize)) -> Result<String, Error> {
    let named = node.list();
    match named.as_slice() {
        [first] => {
            let name = device_name(first)?;
            count_up(&name, index).ok_or_else(|| {
                node.error(&format!("there are no {group} names from `{name}` on; give a list"))
            })
        }
        all if all.len() == group => device_name(&all[index]),
        all => Err(node.error(&format!(
            "it names {} devices for {group} datastores; give one for each, or the first",
            all.len()
        ))),
    }
}

/// A name so many after another: its last digits counted up, hexadecimal as in identifiers, or
/// decimal as in the names of paths. `None` when they run out.
fn count_up(name: &str, by: usize) -> Option<String> {
    /// Digits that are counted at most, so that they fit into a number.
    const DIGITS: usize = 15;
    if by == 0 {
        return Some(name.to_string());
    }
    let radix = if name.starts_with("mpx.") { 10 } else { 16 };
    let digits = name.bytes().rev().take(DIGITS).take_while(|b| char::from(*b).is_digit(radix));
    let (stem, number) = name.split_at(name.len() - digits.count());
    let next = u64::from_str_radix(number, radix).ok()?.checked_add(by as u64)?;
    let width = number.len();
    let next = if radix == 10 { format!("{next:0width$}") } else { format!("{next:0width$x}") };
    (radix == 10 || next.len() == width).then(|| format!("{stem}{next}"))
}

fn device_name(node: &Node<'_>) -> Result<String, Error> {
    let name = node.string()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    let prefixes = ["naa.", "eui.", "t10.", "mpx."];
    let known = prefixes.iter().any(|prefix| name.starts_with(prefix) && name.len() > prefix.len());
    if !known || name.len() > 223 || !name.chars().all(plain) {
        return Err(node.error(&format!(
            "`{name}` is no device; a device is naa., eui., t10. or mpx. with letters and digits \
             after it"
        )));
    }
    Ok(name.to_string())
}

/// An NAA 6 identifier as arrays give them: a vendor's number, the array's serial, the volume's. The
/// vendor is one that nobody can be: the bit for addresses that are administered locally is set.
fn naa(array: &str, volume: &str) -> String {
    const VENDOR: &str = "0200000";
    let serial = hash(array.bytes()) >> 80;
    let volume = hash(array.bytes().chain([b'/']).chain(volume.bytes())) >> 80;
    format!("naa.6{VENDOR}{serial:012x}{volume:012x}")
}

/// FNV-1a of 128 bits: the same in every run.
fn hash(bytes: impl Iterator<Item = u8>) -> u128 {
    bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_of_one_array_bear_its_serial() {
        let serial = |array, volume| naa(array, volume)[..24].to_string();
        assert_eq!(naa("a", "ds-1"), naa("a", "ds-1"));
        assert_eq!(naa("a", "ds-1").len(), 36);
        assert_eq!(serial("a", "ds-1"), serial("a", "ds-2"));
        assert_ne!(serial("a", "ds-1"), serial("b", "ds-1"));
        let names = (0..DATASTORES_MAX).map(|index| naa("a", &format!("ds-{index}")));
        assert_eq!(names.collect::<std::collections::BTreeSet<_>>().len(), DATASTORES_MAX);
    }

    #[test]
    fn names_of_devices_count_up_in_their_last_digits() {
        let table = [
            ("naa.600a", 0, Some("naa.600a")),
            ("naa.600a", 6, Some("naa.6010")),
            (
                "naa.60000000000000000000000000000fff",
                1,
                Some("naa.60000000000000000000000000001000"),
            ),
            ("naa.ffff", 1, None),
            ("mpx.vmhba1:C0:T0:L9", 1, Some("mpx.vmhba1:C0:T0:L10")),
            ("t10.disk-", 1, None),
        ];
        for (name, by, expected) in table {
            assert_eq!(count_up(name, by).as_deref(), expected, "{name} + {by}");
        }
    }
}
