//! `[[event]]`: what happens to hosts, VMs, paths and workloads while the run goes on.

use std::collections::{BTreeMap, btree_map::Entry};

use counters::{PathId, Time};
use engine::Knob;

use crate::{
    Action, Error, Host, TimedEvent, esxcli, guest, names,
    reader::{Node, Table},
    rehearsal::Rehearsal,
    vm::{self, Site},
    workload::Workloads,
};

const EVENTS_MAX: usize = 1_000_000;
/// What an event does: exactly one of these.
const DEEDS: [&str; 9] =
    ["esxcli", "guest_driver", "reboot", "power", "migrate", "path", "allocation", "start", "stop"];
const KEYS: [&str; 4] = ["at", "host", "vm", "state"];
/// Which of `host`, `vm` and `state` go with what an event does.
const COMPANIONS: [(&str, &[&str]); 9] = [
    ("esxcli", &["host"]),
    ("guest_driver", &["vm"]),
    ("reboot", &["host", "vm"]),
    ("power", &["vm"]),
    ("migrate", &["vm"]),
    ("path", &["host", "state"]),
    ("allocation", &["vm"]),
    ("start", &[]),
    ("stop", &[]),
];

/// An event, and where the file has it.
pub(crate) struct Placed<'a> {
    pub(crate) event: TimedEvent,
    pub(crate) node: Node<'a>,
}

/// Reads every event, ascending in time.
pub(crate) fn read<'a>(
    root: &Table<'a>,
    site: &mut Site,
    workloads: &Workloads,
    duration_ns: u64,
) -> Result<Vec<Placed<'a>>, Error> {
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
    tables.sort_by_key(|(at, _)| *at);
    // Where each VM is: it migrates from there.
    let mut homes: Vec<usize> = site.vms.vms.iter().map(|vm| vm.home).collect();
    let mut events = Vec::new();
    for (at, table) in tables {
        let deed = table.exactly_one(&DEEDS)?;
        check_companions(&table, &deed)?;
        for (host, action) in actions(&table, &deed, site, workloads, &mut homes)? {
            events.push(Placed { event: TimedEvent { at, host, action }, node: deed.clone() });
        }
        if events.len() > EVENTS_MAX {
            return Err(deed.error(&format!("there are too many events; at most {EVENTS_MAX}")));
        }
    }
    Ok(events)
}

/// Refuses what the hosts would refuse at that moment.
pub(crate) fn rehearse(events: &[Placed<'_>], hosts: &[Host]) -> Result<(), Error> {
    let mut rehearsals = BTreeMap::new();
    for Placed { event: TimedEvent { at, host, action }, node } in events {
        let refuse = |message: String| node.error(&message);
        let rehearsal = match rehearsals.entry(*host) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Rehearsal::new(&hosts[*host]).map_err(refuse)?),
        };
        rehearsal.event(*at, action).map_err(refuse)?;
    }
    Ok(())
}

fn check_companions(table: &Table<'_>, deed: &Node<'_>) -> Result<(), Error> {
    let own = COMPANIONS.iter().find(|(name, _)| *name == deed.name()).map_or(&[][..], |(_, o)| o);
    for key in ["host", "vm", "state"] {
        if let (Some(node), false) = (table.get(key), own.contains(&key)) {
            return Err(node.error(&format!("it does not go with `{}`", deed.name())));
        }
    }
    Ok(())
}

/// What one table makes happen, on which hosts.
fn actions(
    table: &Table<'_>,
    deed: &Node<'_>,
    site: &mut Site,
    workloads: &Workloads,
    homes: &mut [usize],
) -> Result<Vec<(usize, Action)>, Error> {
    match deed.name() {
        "esxcli" => commands(table, deed, site),
        "guest_driver" => guest_driver(table, deed, site, homes),
        "reboot" => reboot(table, deed, site, homes),
        "power" => {
            let on = vm::power(deed)?;
            each_vm(table, site, homes, |vm, _| Ok(vec![Action::Power { vm, on }]))
        }
        "migrate" => migrate(table, deed, site, homes),
        "path" => path(table, deed, site),
        "allocation" => allocation(table, deed, site, homes),
        "start" => workload(workloads, deed, Action::StartWorkload),
        _ => workload(workloads, deed, Action::StopWorkload),
    }
}

/// The hosts that `host` names, or all.
fn hosts<'s>(table: &Table<'_>, site: &'s Site) -> Result<Vec<(usize, &'s Host)>, Error> {
    let indexes = site.hosts.find_or_all(table, "host")?;
    Ok(indexes.into_iter().map(|index| (index, &site.hosts.hosts[index])).collect())
}

fn commands(
    table: &Table<'_>,
    deed: &Node<'_>,
    site: &Site,
) -> Result<Vec<(usize, Action)>, Error> {
    let hosts = hosts(table, site)?;
    let mut actions = Vec::new();
    for line in deed.list() {
        let settings = line.parsed(|text| esxcli::settings(text, &hosts))?;
        actions.extend(settings.into_iter().map(|(host, knob)| (host, Action::Set(knob))));
    }
    Ok(actions)
}

/// An action for each VM that `vm` names, on the host where it is.
fn each_vm(
    table: &Table<'_>,
    site: &Site,
    homes: &[usize],
    mut action: impl FnMut(counters::VmId, &vm::Vm) -> Result<Vec<Action>, Error>,
) -> Result<Vec<(usize, Action)>, Error> {
    let mut actions = Vec::new();
    for index in site.vms.names.find(&table.need("vm")?)? {
        let vm = &site.vms.vms[index];
        let host = homes[index];
        let done = action(vm.places[&host].vm, vm)?;
        actions.extend(done.into_iter().map(|action| (host, action)));
    }
    Ok(actions)
}

fn guest_driver(
    table: &Table<'_>,
    deed: &Node<'_>,
    site: &Site,
    homes: &[usize],
) -> Result<Vec<(usize, Action)>, Error> {
    each_vm(table, site, homes, |vm, known| {
        let guest::Pvscsi { depth, ring_pages } =
            deed.parsed(|line| guest::parse(line, known.guest))?;
        Ok(vec![Action::Set(Knob::Pvscsi { vm, depth, ring_pages })])
    })
}

/// `reboot = true` with `host`, or with `vm` for its guest.
fn reboot(
    table: &Table<'_>,
    deed: &Node<'_>,
    site: &Site,
    homes: &[usize],
) -> Result<Vec<(usize, Action)>, Error> {
    if !deed.boolean()? {
        return Err(deed.error("leave it out instead of false"));
    }
    match (table.get("host"), table.get("vm")) {
        (Some(_), Some(vm)) => {
            Err(vm.error("`reboot` goes with `host` or with `vm`, not with both"))
        }
        (None, Some(_)) => each_vm(table, site, homes, |vm, _| Ok(vec![Action::RebootGuest(vm)])),
        (host, None) => {
            let node = host.map_or_else(|| table.need("host"), Ok)?;
            let hosts = site.hosts.names.find(&node)?;
            Ok(hosts.into_iter().map(|host| (host, Action::Reboot)).collect())
        }
    }
}

/// `migrate = "esx-2"`: the VM goes on there.
fn migrate(
    table: &Table<'_>,
    deed: &Node<'_>,
    site: &mut Site,
    homes: &mut [usize],
) -> Result<Vec<(usize, Action)>, Error> {
    let to_host = site.hosts.names.find_one(deed)?;
    let mut actions = Vec::new();
    for index in site.vms.names.find(&table.need("vm")?)? {
        let from = homes[index];
        if from == to_host {
            let name = &site.vms.vms[index].name;
            return Err(deed.error(&format!("VM `{name}` is on that host already")));
        }
        let there = site.place(index, to_host, deed)?;
        let here = site.vms.vms[index].places[&from].clone();
        let disks = here.vdisks.into_iter().zip(there.vdisks).collect();
        actions.push((from, Action::Migrate { vm: here.vm, to_host, to_vm: there.vm, disks }));
        homes[index] = to_host;
    }
    Ok(actions)
}

/// `path = "vmhba1:C0:T0:L0"`, or an adapter for all of its paths; `state = "down"` or `"up"`.
fn path(table: &Table<'_>, deed: &Node<'_>, site: &Site) -> Result<Vec<(usize, Action)>, Error> {
    let up = table.need("state")?.choice(&[("up", true), ("down", false)])?;
    let name = deed.string()?;
    let hosts = hosts(table, site)?;
    let mut actions = Vec::new();
    for (index, host) in &hosts {
        for (path, config) in host.config.paths.iter().enumerate() {
            let adapter = &host.config.adapters[config.adapter.index()];
            if config.name == name || adapter.name == name {
                actions.push((*index, Action::Path { path: PathId::new(path), up }));
            }
        }
    }
    if actions.is_empty() {
        let paths = hosts.iter().flat_map(|(_, host)| &host.config.paths);
        let names = paths.map(|path| path.name.as_str());
        return Err(deed.error(&names::unknown("path", name, names)));
    }
    Ok(actions)
}

/// `allocation = { disk = "scsi0:1", limit = 1000 }`: limit, reservation and shares of a disk.
fn allocation(
    table: &Table<'_>,
    deed: &Node<'_>,
    site: &Site,
    homes: &[usize],
) -> Result<Vec<(usize, Action)>, Error> {
    let values = deed.table(&["disk", "shares", "limit", "reservation"])?;
    let disk = values.need("disk")?;
    let name = disk.string()?;
    let mut actions = Vec::new();
    for index in site.vms.names.find(&table.need("vm")?)? {
        let (vm, host) = (&site.vms.vms[index], homes[index]);
        let known = vm.disks.iter().map(|disk| disk.name.as_str());
        let position = known.clone().position(|disk| disk == name);
        let Some(position) = position else {
            return Err(disk.error(&names::unknown("disk", name, known)));
        };
        let vdisk = vm.places[&host].vdisks[position];
        let was = site.hosts.hosts[host].config.vdisks[vdisk.index()].allocation;
        let allocation = vm::allocation(&values, was)?;
        actions.push((host, Action::Set(Knob::Allocation { vdisk, allocation })));
    }
    Ok(actions)
}

/// `start` and `stop` of workloads by name.
fn workload(
    workloads: &Workloads,
    deed: &Node<'_>,
    action: fn(usize) -> Action,
) -> Result<Vec<(usize, Action)>, Error> {
    let mut actions = Vec::new();
    for node in deed.list() {
        for index in workloads.find(&node)? {
            actions.push((workloads.workloads[index].host, action(index)));
        }
    }
    Ok(actions)
}
