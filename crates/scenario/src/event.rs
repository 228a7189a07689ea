//! `[[event]]`: what happens to hosts, VMs, paths and workloads while the run goes on.

use counters::sorted::sort_by_key;
use std::{collections::BTreeMap, ops::RangeInclusive};

use counters::{AdapterId, DeviceKind, PathId, SECOND, Time, VdiskId};
use engine::{AdapterConfig, Object, PathConfig};
use knobs::{Allocation, Knob};
use model::Controllers;

use crate::{
    Action, CopyConfig, DownBy, Error, Face, Given, Host, TimedEvent,
    copy::{self, Copied},
    names,
    reader::{Node, Table},
    rehearsal::Rehearsal,
    resolve, storage_policy,
    vm::{self, Place, Site, Vm},
    workload::Workloads,
};

const EVENTS_MAX: usize = 1_000_000;
/// The controllers of an array, as files count them.
const CONTROLLERS: RangeInclusive<u64> = 1..=2;
/// Of paths and controllers.
const STATES: [(&str, bool); 2] = [("up", true), ("down", false)];
/// What an event does: exactly one of these.
const DEEDS: [&str; 15] = [
    "add",
    "remove",
    "esxcli",
    "guest_driver",
    "reboot",
    "power",
    "migrate",
    "path",
    "switch",
    "datastore",
    "controller",
    "allocation",
    "storage_policy",
    "start",
    "stop",
];
const KEYS: [&str; 5] = ["at", "host", "vm", "state", "array"];
/// Which of `host`, `vm`, `state` and `array` go with what an event does.
const COMPANIONS: [(&str, &[&str]); 15] = [
    ("add", &["host"]),
    ("remove", &["host"]),
    ("esxcli", &["host"]),
    ("guest_driver", &["vm"]),
    ("reboot", &["host", "vm"]),
    ("power", &["vm"]),
    ("migrate", &["vm"]),
    ("path", &["host", "state"]),
    ("switch", &["state"]),
    ("datastore", &["host", "state"]),
    ("controller", &["array", "state"]),
    ("allocation", &["vm"]),
    ("storage_policy", &[]),
    ("start", &[]),
    ("stop", &[]),
];

/// An event, and where the file has it.
struct Placed<'a> {
    event: TimedEvent,
    node: Node<'a>,
}

/// What one table makes happen, and on which hosts.
type Actions = Result<Vec<(usize, Action)>, Error>;

/// Makes VMs known to the hosts that they will migrate to, and their disks to the devices.
pub(crate) fn place_migrants(root: &Table<'_>, site: &mut Site) -> Result<(), Error> {
    let migrations = || {
        let nodes = root.list("event").into_iter();
        nodes.filter_map(|node| Some((node.child("migrate")?, node.child("vm")?)))
    };
    for (to, vms) in migrations().filter(|(to, _)| !to.is_table()) {
        let host = site.hosts.names.find_one(&to)?;
        for vm in site.vms.names.find(&vms)? {
            site.place(vm, host, &to)?;
        }
    }
    let mut copied = Copied::default();
    for (to, vms) in migrations().filter(|(to, _)| to.is_table()) {
        for vm in site.vms.names.find(&vms)? {
            let Relocation { datastore, disks, copy } = relocation(&to, site, &site.vms.vms[vm])?;
            if copy.is_some() {
                copied.add(vm, &disks, &to);
            }
            for disk in disks {
                if site.vms.vms[vm].disks[disk].cache.is_some() {
                    return Err(to.error("a disk with a flash cache stays on its datastore"));
                }
                site.place_on((vm, disk), datastore, &to)?;
            }
        }
    }
    copied.add_movers(site)
}

/// Where disks go.
struct Relocation {
    datastore: usize,
    /// Their positions in the VM.
    disks: Vec<usize>,
    /// How they are copied, where that is simulated.
    copy: Option<CopyConfig>,
}

/// `{ datastore = "gold-2", disk = "scsi0:1", copy = { ... } }`; all disks when none is named.
fn relocation(node: &Node<'_>, site: &Site, vm: &Vm) -> Result<Relocation, Error> {
    let table = node.table(&["datastore", "disk", "copy"])?;
    let copy = table.read("copy", copy::read)?;
    let datastore = site.datastores.names.find_one(&table.need("datastore")?)?;
    let mut disks = Vec::new();
    for disk in table.list("disk") {
        disks.push(vm.disk(&disk)?);
    }
    if disks.is_empty() {
        disks.extend((0..vm.disks.len()).filter(|disk| vm.disks[*disk].moved.is_none()));
    }
    Ok(Relocation { datastore, disks, copy })
}

/// Reads every event, ascending in time, and tries each on its host.
pub(crate) fn read(
    root: &Table<'_>,
    site: &mut Site,
    workloads: &Workloads,
    duration_ns: u64,
) -> Result<(Vec<TimedEvent>, Vec<Given>), Error> {
    let mut tables = Vec::new();
    for node in root.list("event") {
        let table = node.table(&[KEYS.as_slice(), &DEEDS].concat())?;
        let at = table.need("at")?;
        let nanos = at.duration()?;
        if nanos >= duration_ns {
            return Err(at.error("it is after the end of the run"));
        }
        tables.push((Time(nanos), table));
    }
    sort_by_key(&mut tables, |(at, ..)| *at);
    let homes = site.vms.vms.iter().map(|vm| vm.home).collect();
    let controllers = site.arrays.arrays.iter().map(|array| array.config.queues.controllers);
    let mut course = Course {
        site,
        workloads,
        homes,
        hosts: before_moves(site),
        moved: BTreeMap::new(),
        controllers: controllers.collect(),
        found: BTreeMap::new(),
        down: BTreeMap::new(),
    };
    let (mut events, mut given) = (Vec::new(), Vec::new());
    for (at, table) in tables {
        let node = table.exactly_one(&DEEDS)?;
        check_companions(&table, &node)?;
        for (host, action) in course.actions(&table, &node, at)? {
            given.extend(course.given(at, host, &action));
            events.push(Placed { event: TimedEvent { at, host, action }, node: node.clone() });
        }
        if events.len() > EVENTS_MAX {
            return Err(node.error(&format!("there are too many events; at most {EVENTS_MAX}")));
        }
    }
    let Course { found, controllers, .. } = course;
    let mut events = with_found(found, events);
    events.retain(|placed| placed.event.at.0 < duration_ns);
    for (array, controllers) in site.arrays.arrays.iter_mut().zip(controllers) {
        array.config.queues.controllers = controllers;
    }
    for Placed { event, .. } in &events {
        let comes = match event.action {
            Action::Attach(object) => object,
            Action::Relocate { to, .. } | Action::Copy { to, .. } => Object::Vdisk(to),
            _ => continue,
        };
        if first_of(&events, event.host, comes) == Some(&event.action) {
            site.hosts.hosts[event.host].absent.push(comes);
        }
    }
    rehearse(&events, &site.hosts.hosts)?;
    Ok((events.into_iter().map(|placed| placed.event).collect(), given))
}

/// The hosts before any event; absent is what disks are on datastores to which events move them.
fn before_moves(site: &Site) -> Vec<Host> {
    let mut hosts = site.hosts.hosts.clone();
    for vm in &site.vms.vms {
        for (host, place) in &vm.places {
            let away = vm.disks.iter().zip(&place.vdisks).filter(|(disk, _)| disk.moved.is_some());
            hosts[*host].absent.extend(away.map(|(_, vdisk)| Object::Vdisk(*vdisk)));
        }
    }
    hosts
}

/// The first thing that happens to a part of a host: what is added was not there before.
fn first_of<'e>(events: &'e [Placed<'_>], host: usize, part: Object) -> Option<&'e Action> {
    let is_it = |action: &Action| match *action {
        Action::Attach(object) | Action::Detach { object, .. } => object == part,
        Action::Relocate { from, to } | Action::Copy { from, to, .. } => {
            [from, to].map(Object::Vdisk).contains(&part)
        }
        _ => false,
    };
    let mine = events.iter().filter(|placed| placed.event.host == host);
    mine.map(|placed| &placed.event.action).find(|action| is_it(action))
}

/// Refuses what the hosts would refuse at that moment, one host after the other.
fn rehearse(events: &[Placed<'_>], hosts: &[Host]) -> Result<(), Error> {
    let mut by_host: BTreeMap<usize, Vec<&Placed<'_>>> = BTreeMap::new();
    for placed in events {
        by_host.entry(placed.event.host).or_default().push(placed);
    }
    for (host, events) in by_host {
        let mut rehearsal = Rehearsal::new(&hosts[host]).map_err(|m| events[0].node.error(&m))?;
        for (place, Placed { event, node }) in events.iter().enumerate() {
            let rehearsed = rehearsal.event(&hosts[host], event.at, &event.action);
            rehearsed.map_err(|message| {
                let later = comes_later(&hosts[host], &event.action, &events[place..]);
                node.error(&(message + &later.unwrap_or_default()))
            })?;
        }
    }
    Ok(())
}

/// That the disk for which something is set is added only by one of the events that follow.
fn comes_later(host: &Host, action: &Action, then: &[&Placed<'_>]) -> Option<String> {
    let Action::Set(Knob::Allocation { vdisk, .. }) = *action else { return None };
    let adds = |placed: &&&Placed<'_>| match placed.event.action {
        Action::Attach(Object::Vdisk(id)) => id == vdisk,
        Action::Attach(Object::Vm(vm)) => vm == host.config.vdisks[vdisk.index()].vm,
        _ => false,
    };
    let at = then.iter().find(adds)?.event.at;
    Some(format!(" before it is added at {} s", at.0 as f64 / SECOND as f64))
}

/// The controllers that an event means, and the array which has them.
fn controllers_of(table: &Table<'_>, site: &Site) -> Result<(usize, Controllers), Error> {
    let array = site.arrays.array_of(table)?;
    let both = site.arrays.arrays[array].config.queues.controllers;
    let missing = || table.node().error("that array has no `controllers`");
    Ok((array, both.ok_or_else(missing)?))
}

/// Paths of hosts, what takes them down, and when that is found by what event.
type Found<'a> = BTreeMap<(usize, PathId, DownBy), Vec<(Time, Node<'a>)>>;

/// The reasons why a path of a host may be dead.
fn reasons(host: usize, path: PathId) -> RangeInclusive<(usize, PathId, DownBy)> {
    (host, path, DownBy::Event)..=(host, path, DownBy::Switch(usize::MAX))
}

/// What happens, with the paths that are found dead: they come first of what happens at a time.
fn with_found<'a>(found: Found<'a>, events: Vec<Placed<'a>>) -> Vec<Placed<'a>> {
    let mut all: Vec<Placed<'a>> = Vec::new();
    for ((host, path, by), times) in found {
        let action = Action::Path { path, up: false, by };
        all.extend(times.into_iter().map(|(at, node)| Placed {
            event: TimedEvent { at, host, action: action.clone() },
            node,
        }));
    }
    all.extend(events);
    sort_by_key(&mut all, |placed| placed.event.at);
    all
}

/// The paths that an event means, and what takes them down: `path = "vmhba1:C0:T0:L0"`, or an adapter for all of its
/// paths; `switch = "edge"` for all that go through it.
fn paths_of(
    table: &Table<'_>,
    deed: &Node<'_>,
    site: &Site,
) -> Result<Vec<(DownBy, usize, PathId)>, Error> {
    if deed.name() == "switch" {
        let switch = site.switches.names.find_one(deed)?;
        let through = &site.hosts.ways.through[switch];
        if through.is_empty() {
            return Err(deed.error("no path goes through it"));
        }
        let by = DownBy::Switch(switch);
        return Ok(through.iter().map(|(host, path)| (by, *host, *path)).collect());
    }
    let name = deed.string()?;
    let hosts = site.hosts.find_or_all(table, "host")?;
    let hosts = || hosts.iter().map(|index| (*index, &site.hosts.hosts[*index].config));
    let mut paths = Vec::new();
    for (index, host) in hosts() {
        let is_meant = |path: &PathConfig| {
            path.name == name || host.adapters[path.adapter.index()].name == name
        };
        let own = (0..).map(PathId::new).zip(&host.paths);
        let own = own.filter(|(_, path)| is_meant(path));
        paths.extend(own.map(|(path, _)| (DownBy::Event, index, path)));
    }
    if paths.is_empty() {
        let known = hosts().flat_map(|(_, host)| &host.paths).map(|path| path.name.as_str());
        return Err(deed.error(&names::unknown("path", name, known)));
    }
    Ok(paths)
}

fn check_companions(table: &Table<'_>, deed: &Node<'_>) -> Result<(), Error> {
    let own = COMPANIONS.iter().find(|(name, _)| *name == deed.name()).map_or(&[][..], |(_, o)| o);
    for key in &KEYS[1..] {
        if let (Some(node), false) = (table.get(key), own.contains(key)) {
            return Err(node.error(&format!("it does not go with `{}`", deed.name())));
        }
    }
    Ok(())
}

/// Where things are as the events go on.
struct Course<'s, 'a> {
    site: &'s Site,
    workloads: &'s Workloads,
    /// The host of each VM.
    homes: Vec<usize>,
    /// The hosts as they are set by now; absent is what is on another datastore.
    hosts: Vec<Host>,
    /// Where disks are that were moved to other datastores, by VM and disk.
    moved: BTreeMap<(usize, usize), usize>,
    /// Those of each array, and when they are out of order.
    controllers: Vec<Option<Controllers>>,
    found: Found<'a>,
    /// Paths that are dead by an event or a switch, and when that is found.
    down: BTreeMap<(usize, PathId, DownBy), Time>,
}

impl<'s, 'a> Course<'s, 'a> {
    fn actions(&mut self, table: &Table<'_>, deed: &Node<'a>, at: Time) -> Actions {
        match deed.name() {
            "esxcli" => self.commands(table, deed),
            "guest_driver" => self.guest_driver(table, deed),
            "reboot" => self.reboot(table, deed),
            "power" => self.power(table, deed),
            "migrate" => self.migrate(table, deed),
            "add" => self.change(table, deed, |object, _| Action::Attach(object)),
            "remove" => {
                let actions =
                    self.change(table, deed, |object, drain| Action::Detach { object, drain })?;
                Ok(self.without_cuts(actions, at))
            }
            "path" | "switch" => self.path(table, deed, at),
            "datastore" => self.datastore(table, deed),
            "controller" => self.controller(table, deed, at),
            "allocation" => self.allocation(table, deed),
            "storage_policy" => self.storage_policy(deed),
            "start" => self.workload(deed, Action::StartWorkload),
            _ => self.workload(deed, Action::StopWorkload),
        }
    }

    /// The storage policy that a disk has after what was done to it.
    fn given(&self, at: Time, host: usize, action: &Action) -> Option<Given> {
        let vdisk = match *action {
            Action::Set(Knob::Allocation { vdisk, .. })
            | Action::Relocate { to: vdisk, .. }
            | Action::Copy { to: vdisk, .. } => vdisk,
            _ => return None,
        };
        Some(Given { at, host, vdisk, policy: self.hosts[host].policy_of[vdisk.index()] })
    }

    /// The VMs that `vm` names.
    fn vms(&self, table: &Table<'_>) -> Result<Vec<(usize, &'s Vm)>, Error> {
        let indexes = self.site.vms.names.find(&table.need("vm")?)?;
        Ok(indexes.into_iter().map(|index| (index, &self.site.vms.vms[index])).collect())
    }

    fn commands(&mut self, table: &Table<'_>, deed: &Node<'_>) -> Actions {
        let meant = self.site.hosts.find_or_all(table, "host")?;
        let mut actions = Vec::new();
        for line in deed.list() {
            let hosts: Vec<_> = meant.iter().map(|&index| (index, &self.hosts[index])).collect();
            let (settings, knobs) = line.parsed(|text| resolve::settings(text, &hosts))?;
            actions.extend(knobs.into_iter().filter_map(|(host, knob)| self.set(host, knob)));
            for host in &meant {
                settings.iter().for_each(|setting| self.hosts[*host].note(setting));
            }
        }
        Ok(actions)
    }

    /// A setting of a host; that of a disk which is elsewhere goes with it when it is there.
    fn set(&mut self, host: usize, knob: Knob) -> Option<(usize, Action)> {
        let of = &mut self.hosts[host];
        of.apply(knob);
        let is_away = match knob {
            Knob::Allocation { vdisk, .. } => of.absent.contains(&Object::Vdisk(vdisk)),
            _ => false,
        };
        (!is_away).then_some((host, Action::Set(knob)))
    }

    /// What is inside a guest goes with it, so every host that knows the VM is told.
    fn guest_driver(&self, table: &Table<'_>, deed: &Node<'_>) -> Actions {
        let mut actions = Vec::new();
        for (_, vm) in self.vms(table)? {
            let (depth, ring_pages) = deed.parsed(|line| resolve::guest_driver(line, vm.guest))?;
            let knob = |place: &Place| Knob::Pvscsi { vm: place.vm, depth, ring_pages };
            actions.extend(vm.places.iter().map(|(host, place)| (*host, Action::Set(knob(place)))));
        }
        Ok(actions)
    }

    /// `reboot = true` with `host`, or with `vm` for its guest.
    fn reboot(&self, table: &Table<'_>, deed: &Node<'_>) -> Actions {
        if !deed.boolean()? {
            return Err(deed.error("leave it out instead of false"));
        }
        if table.get("vm").is_none() {
            let hosts = self.site.hosts.names.find(&table.need("host")?)?;
            return Ok(hosts.into_iter().map(|host| (host, Action::Reboot)).collect());
        }
        if let Some(host) = table.get("host") {
            return Err(host.error("`reboot` goes with `host` or with `vm`, not with both"));
        }
        let places = self.vms(table)?.into_iter().flat_map(|(_, vm)| &vm.places);
        Ok(places.map(|(host, place)| (*host, Action::RebootGuest(place.vm))).collect())
    }

    fn power(&self, table: &Table<'_>, deed: &Node<'_>) -> Actions {
        let on = vm::power(deed)?;
        let action = |(index, vm): (usize, &Vm)| {
            let host = self.homes[index];
            (host, Action::Power { vm: vm.places[&host].vm, on })
        };
        Ok(self.vms(table)?.into_iter().map(action).collect())
    }

    /// Where a disk of a VM is by now: its position there.
    fn now(&self, vm: usize, disk: usize) -> usize {
        self.moved.get(&(vm, disk)).copied().unwrap_or(disk)
    }

    /// `migrate = { datastore = "gold-2" }`: the disks of the VM that are not there yet go on there, on
    /// every host that knows it.
    fn relocate(&mut self, table: &Table<'_>, deed: &Node<'_>) -> Actions {
        let mut actions = Vec::new();
        for (index, vm) in self.vms(table)? {
            let Relocation { datastore, disks, copy } = relocation(deed, self.site, vm)?;
            let before = actions.len();
            for disk in disks {
                let was = self.now(index, disk);
                let Some(is) = vm.place_of(disk, datastore).filter(|is| *is != was) else {
                    continue;
                };
                self.moved.insert((index, disk), is);
                for (host, place) in &vm.places {
                    let (from, to) = (place.vdisks[was], place.vdisks[is]);
                    let action = match copy {
                        None => Action::Relocate { from, to },
                        Some(config) => {
                            let mover = [was, is].map(|at| self.site.vms.movers[&(index, at)]);
                            let may_offload = copy::may_offload(self.site, *host, [from, to]);
                            Action::Copy {
                                from,
                                to,
                                mover,
                                config: CopyConfig { may_offload, ..config },
                            }
                        }
                    };
                    actions.push((*host, action));
                    actions.extend(self.take_along(*host, from, to));
                }
            }
            if actions.len() == before {
                let message =
                    format!("what is meant of VM `{}` is on that datastore already", vm.name);
                return Err(deed.error(&message));
            }
        }
        Ok(actions)
    }

    /// What a disk has of its device goes with it to another.
    fn take_along(&mut self, host: usize, from: VdiskId, to: VdiskId) -> Option<(usize, Action)> {
        let of = &mut self.hosts[host];
        of.absent.retain(|object| *object != Object::Vdisk(to));
        of.absent.push(Object::Vdisk(from));
        of.policy_of[to.index()] = of.policy_of[from.index()];
        let allocation = of.config.vdisks[from.index()].allocation;
        let at_first = self.site.hosts.hosts[host].config.vdisks[to.index()].allocation;
        let knob = Knob::Allocation { vdisk: to, allocation };
        let set = self.set(host, knob);
        set.filter(|_| allocation != at_first)
    }

    /// `migrate = "esx-2"`: the VM goes on there.
    fn migrate(&mut self, table: &Table<'_>, deed: &Node<'_>) -> Actions {
        if deed.is_table() {
            return self.relocate(table, deed);
        }
        let to_host = self.site.hosts.names.find_one(deed)?;
        let mut actions = Vec::new();
        for (index, vm) in self.vms(table)? {
            let from = std::mem::replace(&mut self.homes[index], to_host);
            if from == to_host {
                return Err(deed.error(&format!("VM `{}` is on that host already", vm.name)));
            }
            let (here, there) = (&vm.places[&from], &vm.places[&to_host]);
            let disks = here.vdisks.iter().copied().zip(there.vdisks.iter().copied()).collect();
            actions.push((from, Action::Migrate { vm: here.vm, to_host, to_vm: there.vm, disks }));
        }
        Ok(actions)
    }

    /// `state = "down"` or `"up"`, of paths or of a switch: what is up again before its driver has found it dead is never
    /// found so. What is dead for two reasons is found so once, after the first of them began.
    fn path(&mut self, table: &Table<'_>, deed: &Node<'a>, at: Time) -> Actions {
        let up = table.need("state")?.choice(&STATES)?;
        let mut actions = Vec::new();
        for (by, host, path) in paths_of(table, deed, self.site)? {
            if up {
                self.mend((host, path, by), at);
                actions.push((host, Action::Path { path, up, by }));
                continue;
            }
            if self.down.contains_key(&(host, path, by)) {
                continue;
            }
            let adapter = self.site.hosts.hosts[host].config.paths[path.index()].adapter;
            let way = self.site.hosts.ways.of[host].get(adapter.index());
            let own = Time(at.0 + way.map_or(0, |way| way.dead_after_ns));
            let others = self.down.range(reasons(host, path)).map(|(_, found)| *found);
            let found = others.fold(own, Time::min).max(at);
            self.down.insert((host, path, by), found);
            if found == at {
                actions.push((host, Action::Path { path, up, by }));
            } else {
                let times = self.found.entry((host, path, by)).or_default();
                times.push((found, deed.clone()));
                actions.push((host, Action::Cut { path, by }));
            }
        }
        Ok(actions)
    }

    /// A path is dead for a reason less: if that was not found yet, it is not.
    fn mend(&mut self, path: (usize, PathId, DownBy), at: Time) {
        if self.down.remove(&path).is_some_and(|found| found > at) {
            self.found.get_mut(&path).map(Vec::pop);
        }
    }

    /// What is taken away while its driver has not found it dead gives back first what it was sent.
    fn without_cuts(&mut self, actions: Vec<(usize, Action)>, at: Time) -> Vec<(usize, Action)> {
        let mut all = Vec::new();
        for (host, action) in actions {
            let config = &self.site.hosts.hosts[host].config;
            let is_gone = |path: PathId| match action {
                Action::Detach { object: Object::Path(gone), .. } => gone == path,
                Action::Detach { object: Object::Adapter(gone), .. } => {
                    config.paths[path.index()].adapter == gone
                }
                Action::Detach { object: Object::Device(gone), .. } => {
                    config.paths[path.index()].device == gone
                }
                _ => false,
            };
            let cut = self.down.iter().filter(|(_, found)| **found > at).map(|(key, _)| *key);
            let cut: Vec<_> = cut.filter(|(of, path, _)| *of == host && is_gone(*path)).collect();
            for key @ (_, path, by) in cut {
                self.mend(key, at);
                all.push((host, Action::Path { path, up: true, by }));
            }
            all.push((host, action));
        }
        all
    }

    /// `add` and `remove`: `{ vm = "web" }`, `{ vm = "web", disk = "scsi0:1" }`, `{ datastore = "ds" }`,
    /// `{ adapter = "vmhba2" }`, `{ path = "vmhba2:C0:T0:L0" }`, on `host` or wherever it is known;
    /// `drain = true` lets what is under way go on to its end.
    fn change(
        &self,
        table: &Table<'_>,
        deed: &Node<'_>,
        action: impl Fn(Object, bool) -> Action,
    ) -> Actions {
        let values = deed.table(&["vm", "disk", "datastore", "adapter", "path", "drain"])?;
        let drain = values.read("drain", Node::boolean)?.unwrap_or(false);
        let what = values.exactly_one(&["vm", "datastore", "adapter", "path"])?;
        let named = table.read("host", |node| self.site.hosts.names.find(node))?;
        let is_meant = |host: &usize| named.as_ref().is_none_or(|named| named.contains(host));
        let mut found = Vec::new();
        for (host, known) in self.site.hosts.hosts.iter().enumerate().filter(|(h, _)| is_meant(h)) {
            let config = &known.config;
            let mut add = |object| found.push((host, action(object, drain)));
            match what.name() {
                "vm" => {
                    for index in self.site.vms.names.find(&what)? {
                        let vm = &self.site.vms.vms[index];
                        let Some(place) = vm.places.get(&host) else { continue };
                        add(match values.get("disk") {
                            Some(disk) => {
                                Object::Vdisk(place.vdisks[self.now(index, vm.disk(&disk)?)])
                            }
                            None if vm.disks.iter().any(|disk| disk.moved.is_some()) => {
                                let message =
                                    "its disks are moved to another datastore; name `disk`";
                                return Err(what.error(message));
                            }
                            None => Object::Vm(place.vm),
                        });
                    }
                }
                "datastore" => {
                    for datastore in self.site.datastores.names.find(&what)? {
                        if self.site.datastores.hosts_of(datastore).contains(&host) {
                            let stores = &self.site.datastores;
                            let device = stores.device(datastore, host, &config.name, &what)?;
                            add(Object::Device(device));
                        }
                    }
                }
                "adapter" => {
                    let name = what.string()?;
                    let of = |adapter: &AdapterConfig| adapter.name == name;
                    let known = config.adapters.iter().position(of);
                    known.into_iter().for_each(|id| add(Object::Adapter(AdapterId::new(id))));
                }
                _ => {
                    let name = what.string()?;
                    let known = config.paths.iter().position(|path| path.name == name);
                    known.into_iter().for_each(|id| add(Object::Path(PathId::new(id))));
                }
            }
        }
        if found.is_empty() {
            return Err(what.error("no host that is meant has it"));
        }
        Ok(found)
    }

    /// `datastore = "ds-1"`; `state = "silent"`, `"lost"` or `"up"`: what its array does with the
    /// commands of the device that it is on, to `host` or to all that see it.
    fn datastore(&self, table: &Table<'_>, deed: &Node<'_>) -> Actions {
        let faces = [("up", Face::Up), ("silent", Face::Silent), ("lost", Face::Lost)];
        let state = table.need("state")?;
        let face = state.choice(&faces)?;
        let named = table.read("host", |node| self.site.hosts.names.find(node))?;
        let mut actions = Vec::new();
        for datastore in self.site.datastores.names.find(deed)? {
            let seen_by = || self.site.datastores.hosts_of(datastore);
            for host in named.clone().unwrap_or_else(seen_by) {
                let config = &self.site.hosts.hosts[host].config;
                let device = self.site.datastores.device(datastore, host, &config.name, deed)?;
                if face == Face::Lost && config.devices[device.index()].kind == DeviceKind::Nfs {
                    return Err(state.error("an NFS datastore has no SCSI device"));
                }
                actions.push((host, Action::Face { device, face }));
            }
        }
        Ok(actions)
    }

    /// `controller = 1` of an `array`; `state = "down"` or `"up"`: its paths follow on all hosts, dead ones when
    /// that has been found out.
    fn controller(&mut self, table: &Table<'_>, deed: &Node<'a>, at: Time) -> Actions {
        let (array, mut both) = controllers_of(table, self.site)?;
        let which = deed.integer(CONTROLLERS)? as usize - 1;
        let state = table.need("state")?;
        let up = state.choice(&STATES)?;
        both.outages = self.controllers[array].map_or(both.outages, |known| known.outages);
        let dead_after_ns = both.dead_after_ns;
        let known = |from: Time| Time(from.0 + dead_after_ns);
        let outage = &mut both.outages[which];
        match (up, outage.from, outage.until) {
            (false, Time::NEVER, _) => outage.from = at,
            (true, from, Time::NEVER) if from != Time::NEVER && known(from) <= at => {
                outage.until = at
            }
            (true, ..) => return Err(state.error("it is not known to be down by then")),
            (false, ..) => return Err(state.error("it has failed before; once is what it does")),
        }
        self.controllers[array] = Some(both);
        let mut actions = Vec::new();
        let stores = self.site.datastores.datastores.iter().filter(|store| store.array == array);
        for (host, device) in stores.flat_map(|store| store.devices.iter().enumerate()) {
            let paths = self.site.hosts.hosts[host].config.paths.iter().enumerate();
            for (path, config) in paths {
                if Some(config.device) == *device && Controllers::of_path(host, path) == which {
                    let path = PathId::new(path);
                    if up {
                        actions.push((host, Action::Path { path, up, by: DownBy::Controller }));
                    } else {
                        let times = self.found.entry((host, path, DownBy::Controller)).or_default();
                        times.push((known(at), deed.clone()));
                    }
                }
            }
        }
        Ok(actions)
    }

    /// `allocation = { disk = "scsi0:1", limit = 1000 }`: limit, reservation and shares of a disk, or those of
    /// a `storage_policy`, on every host that knows the VM.
    fn allocation(&mut self, table: &Table<'_>, deed: &Node<'_>) -> Actions {
        let values =
            deed.table(&[&["disk", "storage_policy"][..], &storage_policy::KEYS].concat())?;
        let disk = values.need("disk")?;
        let given = self.site.policies.of(&values)?;
        storage_policy::check_sets(
            &values,
            &[&["storage_policy"][..], &storage_policy::KEYS].concat(),
        )?;
        let policy = given.flatten();
        let mut actions = Vec::new();
        for (index, vm) in self.vms(table)? {
            let now = self.now(index, vm.disk(&disk)?);
            let home = &self.hosts[vm.home];
            let vdisk = vm.places[&vm.home].vdisks[now];
            let was = home.config.vdisks[vdisk.index()].allocation;
            let was = match given {
                Some(Some(policy)) => home.policies[policy].allocation,
                Some(None) => Allocation::default(),
                None => was,
            };
            let allocation = storage_policy::allocation(&values, was)?;
            for (host, place) in &vm.places {
                let (vdisk, of) = (place.vdisks[now], &mut self.hosts[*host]);
                if policy.is_some() {
                    storage_policy::check(&of.config).map_err(|message| deed.error(&message))?;
                }
                of.policy_of[vdisk.index()] = policy;
                actions.extend(self.set(*host, Knob::Allocation { vdisk, allocation }));
            }
        }
        Ok(actions)
    }

    /// `storage_policy = { name = "gold", limit = 1000 }`: the policy says something else, for every disk that
    /// has it by now.
    fn storage_policy(&mut self, deed: &Node<'_>) -> Actions {
        let values = deed.table(&[&["name"][..], &storage_policy::KEYS].concat())?;
        let policy = self.site.policies.names.find_one(&values.need("name")?)?;
        storage_policy::check_sets(&values, &storage_policy::KEYS)?;
        let mut actions = Vec::new();
        for index in 0..self.hosts.len() {
            let host = &mut self.hosts[index];
            let known = &mut host.policies[policy].allocation;
            *known = storage_policy::allocation(&values, *known)?;
            let allocation = *known;
            for place in 0..host.policy_of.len() {
                if self.hosts[index].policy_of[place] == Some(policy) {
                    let vdisk = VdiskId::new(place);
                    actions.extend(self.set(index, Knob::Allocation { vdisk, allocation }));
                }
            }
        }
        Ok(actions)
    }

    /// `start` and `stop` of workloads by name.
    fn workload(&self, deed: &Node<'_>, action: fn(usize) -> Action) -> Actions {
        let mut actions = Vec::new();
        for node in deed.list() {
            let found = self.workloads.find(&node)?.into_iter();
            actions
                .extend(found.map(|index| (self.workloads.workloads[index].host, action(index))));
        }
        Ok(actions)
    }
}
