//! `[[window]]` and `[[expect]]`: what a run must show, and when.

use std::collections::BTreeSet;

use counters::{AdapterId, Counter, DeviceId, DeviceKind, Kind, PathId, Time, sorted::Ordered};

use engine::PathConfig;

use crate::{
    Bound, Error, Expectation, Host, Role, Subject, Window,
    datastore::is_network,
    names,
    nouns::Names,
    reader::{Node, Table},
    units,
    vm::Site,
};

const WINDOWS_MAX: usize = 10_000;
const EXPECTATIONS_MAX: usize = 10_000;
/// The window that every scenario has: all of it after the warm-up.
pub(crate) const RUN: &str = "run";

const KEYS: &[&str] = &[
    "window",
    "relative_to",
    "host",
    "vm",
    "disk",
    "datastore",
    "device",
    "adapter",
    "path",
    "counter",
    "value",
    "within",
    "min",
    "max",
    "published",
    "rounded_to",
    "role",
    "source",
];

/// The keys that say what is tested.
const BOUNDS: [&str; 4] = ["value", "within", "min", "max"];
const ROLES: [Role; 4] = [Role::Calibration, Role::Prediction, Role::Input, Role::Derived];

/// The windows by name.
pub(crate) struct Windows {
    pub(crate) windows: Vec<Window>,
    names: Names,
}

impl Windows {
    /// Reads every window. The first is the run after its warm-up.
    pub(crate) fn read(root: &Table<'_>, warmup: u64, duration: u64) -> Result<Self, Error> {
        let run = Window { name: RUN.into(), from: Time(warmup), to: Time(duration) };
        let mut all = Self { windows: vec![run], names: Names::new("window", WINDOWS_MAX) };
        all.names.add(root.node(), RUN, None)?;
        for node in root.list("window") {
            let table = node.table(&["name", "from", "to"])?;
            let name = table.need("name")?;
            all.names.add(&name, name.string()?, None)?;
            let from = table.read("from", Node::duration)?.unwrap_or(warmup);
            let to = table.read("to", Node::duration)?.unwrap_or(duration);
            if from >= to || to > duration {
                let place = table.get("to").or_else(|| table.get("from")).unwrap_or(node);
                return Err(place.error("a window ends after it begins and not after the run"));
            }
            let name = name.string()?.to_string();
            all.windows.push(Window { name, from: Time(from), to: Time(to) });
        }
        Ok(all)
    }
}

/// Reads every expectation.
pub(crate) fn read(
    root: &Table<'_>,
    windows: &Windows,
    site: &Site,
) -> Result<Vec<Expectation>, Error> {
    let nodes = root.list("expect");
    if let (true, Some(node)) = (nodes.len() > EXPECTATIONS_MAX, nodes.first()) {
        let message = format!("there are too many expectations; at most {EXPECTATIONS_MAX}");
        return Err(node.error(&message));
    }
    nodes.iter().map(|node| expectation(node, windows, site)).collect()
}

fn expectation(node: &Node<'_>, windows: &Windows, site: &Site) -> Result<Expectation, Error> {
    let table = node.table(KEYS)?;
    let (kind, subjects, subject_name) = subjects(&table, site)?;
    let window = table.read("window", |node| windows.names.find_one(node))?.unwrap_or(0);
    let relative_to = table.read("relative_to", |node| windows.names.find_one(node))?;
    if let (true, Some(node)) = (relative_to == Some(window), table.get("relative_to")) {
        return Err(node.error("it is another window than `window`"));
    }
    let published = published(&table)?;
    let bound = match published {
        Some(published) if BOUNDS.iter().all(|key| table.get(key).is_none()) => published,
        _ => bound(&table)?,
    };
    let roles = ROLES.map(|role| (role.name(), role));
    Ok(Expectation {
        window,
        subjects,
        subject_name,
        counter: counter(&table.need("counter")?, kind)?,
        relative_to,
        bound,
        published,
        role: table.read("role", |node| node.choice(&roles))?,
        source: table.read("source", Node::string)?.unwrap_or("").to_string(),
        line: node.line(),
    })
}

/// A counter by its key, one that objects of this kind have.
fn counter(node: &Node<'_>, kind: Kind) -> Result<Counter, Error> {
    let key = node.string()?;
    let known = || kind.counters().map(|counter| counter.info().key);
    match Counter::from_key(key) {
        Some(counter) if kind.counters().any(|own| own == counter) => Ok(counter),
        Some(_) => {
            let owner = [Kind::Device, Kind::VirtualDisk, Kind::Adapter, Kind::World]
                .into_iter()
                .find(|kind| kind.counters().any(|own| own.info().key == key));
            let hint = owner.map_or("", |owner| match owner {
                Kind::Device => "; a device has it",
                Kind::VirtualDisk => "; a virtual disk has it: name `vm` and `disk`",
                Kind::Adapter => "; an adapter has it",
                _ => "; a world has it: name `vm` and `datastore`",
            });
            Err(node.error(&format!("{} has no counter `{key}`{hint}", noun(kind))))
        }
        None => Err(node.error(&names::unknown("counter", key, known()))),
    }
}

fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Adapter => "an adapter",
        Kind::Path => "a path",
        Kind::Device => "a device",
        Kind::World => "a world",
        Kind::Partition => "a partition",
        Kind::NfsVolume => "an NFS datastore",
        Kind::Vm => "a VM",
        Kind::VirtualDisk => "a virtual disk",
    }
}

fn figure(node: &Node<'_>) -> Result<f64, Error> {
    node.number(-1e15..=1e15)
}

/// `published`: a figure, exact or `rounded_to` steps of so much, or the two ends of a range, of which the
/// second may be `inf`.
fn published(table: &Table<'_>) -> Result<Option<Bound>, Error> {
    let rounded_to = table.get("rounded_to");
    let Some(node) = table.get("published") else {
        return rounded_to.map_or(Ok(None), |node| Err(node.error("it goes with `published`")));
    };
    match (node.list().as_slice(), rounded_to) {
        ([one], step) => {
            let step = step.map_or(Ok(0.0), |node| node.number(0.0..=1e15))?;
            Ok(Some(Bound::Near { value: figure(one)?, tolerance: step / 2.0 }))
        }
        ([min, max], None) => {
            let (low, high) = (figure(min)?, max.number(-1e15..=f64::INFINITY)?);
            if low > high {
                return Err(max.error("a range ends above its beginning"));
            }
            Ok(Some(Bound::Between { min: low, max: high }))
        }
        ([_, _], Some(step)) => Err(step.error("it goes with one published figure, not a range")),
        _ => Err(node.error("it is a figure or the two ends of a range, as [29, 32]")),
    }
}

/// `value` with `within`, or `min`, `max` or both.
fn bound(table: &Table<'_>) -> Result<Bound, Error> {
    let min = table.read("min", figure)?;
    let max = table.read("max", figure)?;
    let Some(node) = table.get("value") else {
        if let Some(within) = table.get("within") {
            return Err(within.error("it goes with `value`"));
        }
        let (low, high) = (min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY));
        if min.is_none() && max.is_none() {
            return Err(table
                .node()
                .error("`value` with `within`, `min`, `max` or `published` is missing"));
        }
        if low > high {
            return Err(table.need("max")?.error("it must not be below `min`"));
        }
        return Ok(Bound::Between { min: low, max: high });
    };
    if let Some(other) = table.get("min").or_else(|| table.get("max")) {
        return Err(other.error("it does not go with `value`"));
    }
    let value = figure(&node)?;
    Ok(Bound::Near { value, tolerance: within(&table.need("within")?, value)? })
}

/// `"10%"` of the value, or a number in its unit.
fn within(node: &Node<'_>, value: f64) -> Result<f64, Error> {
    if node.is_string() {
        return Ok(node.parsed(units::percent)? * value.abs());
    }
    node.number(0.0..=1e15)
}

/// Whose figure it is: the kind, each of them, and how the file says it.
fn subjects(table: &Table<'_>, site: &Site) -> Result<(Kind, Vec<Subject>, String), Error> {
    let (kind, subjects) = match (table.get("vm"), table.get("disk"), place(table)?) {
        (Some(vm), Some(disk), None) => (Kind::VirtualDisk, vdisks(&vm, &disk, table, site)?),
        (Some(vm), None, None) => (Kind::Vm, vms(&vm, table, site)?),
        (Some(vm), None, Some(place)) => (Kind::World, worlds(&vm, &place, table, site)?),
        (Some(_), Some(disk), Some(_)) => {
            return Err(disk.error("`disk` does not go with a device"));
        }
        (None, Some(disk), _) => return Err(disk.error("it goes with `vm`")),
        (None, None, Some(place)) => on_hosts(&place, table, site)?,
        (None, None, None) => {
            let message = "one of `vm`, `datastore`, `device`, `adapter` and `path` is missing";
            return Err(table.node().error(message));
        }
    };
    let keys = ["host", "vm", "disk", "datastore", "device", "adapter", "path"];
    let words = keys.iter().filter_map(|key| {
        let node = table.get(key)?;
        let list: Vec<_> = node.list().iter().filter_map(|node| node.string().ok()).collect();
        Some(format!("{key} {}", list.join(", ")))
    });
    Ok((kind, subjects, words.collect::<Vec<_>>().join(" ")))
}

/// The one of the keys that name something on a host.
fn place<'a>(table: &Table<'a>) -> Result<Option<Node<'a>>, Error> {
    let keys = ["datastore", "device", "adapter", "path"];
    if keys.iter().any(|key| table.get(key).is_some()) {
        return table.exactly_one(&keys).map(Some);
    }
    Ok(None)
}

/// The places of the VMs that a value names, on the hosts that `host` allows. Without `host`, a
/// VM is looked at where the run begins with it.
fn places<'s>(
    node: &Node<'_>,
    table: &Table<'_>,
    site: &'s Site,
) -> Result<Vec<(usize, &'s crate::vm::Vm, &'s crate::vm::Place)>, Error> {
    let hosts = table.read("host", |node| site.hosts.names.find(node))?;
    let mut places = Vec::new();
    for index in site.vms.names.find(node)? {
        let vm = &site.vms.vms[index];
        let on = |host: &&usize| hosts.as_ref().map_or(**host == vm.home, |all| all.contains(host));
        places.extend(vm.places.iter().filter(|(host, _)| on(host)).map(|(h, p)| (*h, vm, p)));
    }
    if places.is_empty() {
        return Err(node.error("no such VM is ever on that host"));
    }
    Ok(places)
}

fn vms(node: &Node<'_>, table: &Table<'_>, site: &Site) -> Result<Vec<Subject>, Error> {
    let places = places(node, table, site)?;
    Ok(places.into_iter().map(|(host, _, place)| Subject::Vm { host, vm: place.vm }).collect())
}

fn vdisks(
    node: &Node<'_>,
    disk: &Node<'_>,
    table: &Table<'_>,
    site: &Site,
) -> Result<Vec<Subject>, Error> {
    let mut subjects = Vec::new();
    for (host, vm, place) in places(node, table, site)? {
        subjects.push(Subject::Vdisk { host, vdisk: place.vdisks[vm.row(disk)?] });
    }
    Ok(subjects)
}

fn worlds(
    node: &Node<'_>,
    place: &Node<'_>,
    table: &Table<'_>,
    site: &Site,
) -> Result<Vec<Subject>, Error> {
    let (kind, devices) = on_hosts(place, table, site)?;
    let mut subjects = Vec::new();
    for (host, _, vm) in places(node, table, site)? {
        let disks =
            vm.vdisks.iter().map(|vdisk| &site.hosts.hosts[host].config.vdisks[vdisk.index()]);
        let used: BTreeSet<_> = disks.map(|disk| disk.device).into_set();
        let wanted = |device: &&counters::DeviceId| {
            devices.contains(&Subject::Device { host, device: **device })
        };
        subjects.extend(used.iter().filter(wanted).map(|&device| Subject::World {
            host,
            vm: vm.vm,
            device,
        }));
    }
    if kind != Kind::Device || subjects.is_empty() {
        return Err(place.error("no such VM has a disk on that device"));
    }
    Ok(subjects)
}

/// Devices, adapters or paths by name, on the hosts that have them.
fn on_hosts(
    node: &Node<'_>,
    table: &Table<'_>,
    site: &Site,
) -> Result<(Kind, Vec<Subject>), Error> {
    let hosts = site.hosts.find_or_all(table, "host")?;
    if node.name() == "datastore" {
        return datastores(node, &hosts, site);
    }
    let (kind, rows): (Kind, Rows) = match node.name() {
        "adapter" => (Kind::Adapter, adapters),
        "path" => (Kind::Path, paths),
        _ => (Kind::Device, devices),
    };
    let name = node.string()?;
    let mut found = Vec::new();
    for &host in &hosts {
        let own = rows(&site.hosts.hosts[host]).into_iter().find(|(_, known)| *known == name);
        found.extend(own.map(|(index, _)| subject(kind, host, index)));
    }
    if found.is_empty() {
        let known = hosts.iter().flat_map(|host| rows(&site.hosts.hosts[*host]));
        let known = known.map(|(_, name)| name);
        return Err(node.error(&names::unknown(node.name(), name, known)));
    }
    Ok((kind, found))
}

fn subject(kind: Kind, host: usize, index: usize) -> Subject {
    match kind {
        Kind::Adapter => Subject::Adapter { host, adapter: AdapterId::new(index) },
        Kind::Path => Subject::Path { host, path: PathId::new(index) },
        _ => Subject::Device { host, device: DeviceId::new(index) },
    }
}

/// What esxtop shows of one kind on a host: ids and names. NFS has no adapter, path or device.
type Rows = fn(&Host) -> Vec<(usize, &str)>;

fn adapters(host: &Host) -> Vec<(usize, &str)> {
    let all = host.config.adapters.iter().enumerate().filter(|(_, adapter)| !is_network(adapter));
    all.map(|(index, adapter)| (index, adapter.name.as_str())).collect()
}

fn paths(host: &Host) -> Vec<(usize, &str)> {
    let by_network = |path: &PathConfig| is_network(&host.config.adapters[path.adapter.index()]);
    let all = host.config.paths.iter().enumerate().filter(|(_, path)| !by_network(path));
    all.map(|(index, path)| (index, path.name.as_str())).collect()
}

fn devices(host: &Host) -> Vec<(usize, &str)> {
    let all = host.config.devices.iter().enumerate();
    let scsi = all.filter(|(_, device)| device.kind != DeviceKind::Nfs);
    scsi.map(|(index, device)| (index, device.name.as_str())).collect()
}

/// The devices of datastores; an NFS datastore has counters of its own kind.
fn datastores(
    node: &Node<'_>,
    hosts: &[usize],
    site: &Site,
) -> Result<(Kind, Vec<Subject>), Error> {
    let mut found = Vec::new();
    for datastore in site.datastores.names.find(node)? {
        let devices = &site.datastores.datastores[datastore].devices;
        for &host in hosts {
            found.extend(devices[host].map(|device| Subject::Device { host, device }));
        }
    }
    let nfs = |subject: &Subject| match *subject {
        Subject::Device { host, device } => {
            site.hosts.hosts[host].config.devices[device.index()].kind == DeviceKind::Nfs
        }
        _ => false,
    };
    match (found.iter().any(nfs), found.iter().all(nfs)) {
        _ if found.is_empty() => Err(node.error("no such host sees that datastore")),
        (true, true) => Ok((Kind::NfsVolume, found)),
        (true, false) => Err(node.error("NFS and others have different counters; name one kind")),
        (false, _) => Ok((Kind::Device, found)),
    }
}
