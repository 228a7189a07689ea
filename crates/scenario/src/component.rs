//! What has nothing in common can be driven apart: in virtual time hosts, each part on a core of its own
//! and with its own small working set; in real time the components of a host, each in a thread of its own.

use std::collections::BTreeMap;

use knobs::Knob;

use crate::{Action, Backend, Host, Scenario, switch::crossed};

impl Scenario {
    /// The parts of a scenario that do not touch each other, and the groups of hosts of each, ascending.
    /// Hosts that share an array, the link of a switch, or the record of a datastore, are in one part; those between which a VM migrates are in one group.
    #[must_use]
    pub fn parts(&self) -> Vec<Vec<Vec<usize>>> {
        let hosts = self.hosts.len();
        let switch = hosts + self.arrays.len();
        let (mut parts, mut groups) = (Sets::new(switch + self.switches.len()), Sets::new(hosts));
        let (mut records, is_controlled) = (BTreeMap::new(), self.has_io_control());
        for (host, config) in self.hosts.iter().enumerate() {
            for target in &config.targets {
                parts.join(host, hosts + target.array);
            }
            crossed(&config.initiator).for_each(|at| parts.join(host, switch + at));
            let devices = config.config.devices.iter().filter(|_| is_controlled);
            for device in devices {
                parts.join(host, *records.entry(&device.name).or_insert(host));
            }
        }
        for event in &self.events {
            if let Action::Migrate { to_host, .. } = event.action {
                parts.join(event.host, to_host);
                groups.join(event.host, to_host);
            }
        }
        let (part_of, group_of) = (parts.number(0..hosts), groups.number(0..hosts));
        let mut parts = vec![Vec::new(); part_of.0];
        for group in listed(group_of) {
            parts[part_of.1[group[0]]].push(group);
        }
        parts
    }

    /// Whether Storage I/O Control is ever on: hosts of one device share its record then.
    #[must_use]
    pub fn has_io_control(&self) -> bool {
        let is_it = |knob: &Knob| matches!(knob, Knob::StorageIoControl { .. });
        let mut events = self.events.iter();
        self.hosts.iter().any(|host| host.settings.iter().any(is_it))
            || events.any(|event| matches!(&event.action, Action::Set(knob) if is_it(knob)))
    }
}

/// The members of each set, ascending, from how many there are and the set of each member.
fn listed((count, of): (usize, Vec<usize>)) -> Vec<Vec<usize>> {
    let mut sets = vec![Vec::new(); count];
    of.into_iter().enumerate().for_each(|(member, set)| sets[set].push(member));
    sets
}

/// The components of a host: of each virtual disk, device, path and adapter, by its id, which one it
/// belongs to. They are numbered from 0; what no disk needs is of some component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Components {
    /// How many there are, at least one.
    pub count: usize,
    /// By virtual disk.
    pub vdisks: Vec<usize>,
    /// By device.
    pub devices: Vec<usize>,
    /// By path.
    pub paths: Vec<usize>,
    /// By adapter.
    pub adapters: Vec<usize>,
}

impl Host {
    /// The components of the host. The disks of one VM are of one, devices that are reached through
    /// one adapter, disks that are one image, and those in front of which one array is emulated.
    #[must_use]
    pub fn components(&self) -> Components {
        let config = &self.config;
        let (vms, devices, adapters) =
            (config.vms.len(), config.devices.len(), config.adapters.len());
        let (device, adapter, vdisk) = (vms, vms + devices, vms + devices + adapters);
        let mut sets = Sets::new(vdisk + config.vdisks.len());
        for path in &config.paths {
            sets.join(device + path.device.index(), adapter + path.adapter.index());
        }
        for (index, disk) in config.vdisks.iter().enumerate() {
            sets.join(disk.vm.index(), device + disk.device.index());
            sets.join(disk.vm.index(), vdisk + index);
            if let Some(other) = (0..index).find(|other| self.are_tied(*other, index)) {
                sets.join(vdisk + other, vdisk + index);
            }
        }
        let (count, of) = sets.number(vdisk..vdisk + config.vdisks.len());
        let mut rest = |node: usize| sets.numbered(node).unwrap_or_default();
        Components {
            count: count.max(1),
            vdisks: of,
            devices: (0..devices).map(|id| rest(device + id)).collect(),
            paths: config.paths.iter().map(|path| rest(device + path.device.index())).collect(),
            adapters: (0..adapters).map(|id| rest(adapter + id)).collect(),
        }
    }

    /// Whether two virtual disks are one image, or behind one emulated array.
    fn are_tied(&self, a: usize, b: usize) -> bool {
        let (Some(image), Some(other)) = (&self.images[a], &self.images[b]) else { return false };
        let is_one = matches!(image.backend, Backend::File(_)) && image.backend == other.backend;
        let array = |disk: usize| self.targets[disk].array;
        is_one || image.emulated && other.emulated && array(a) == array(b)
    }
}

/// Disjoint sets.
struct Sets {
    parents: Vec<usize>,
    /// The number of the set of each root that has one.
    numbers: Vec<Option<usize>>,
}

impl Sets {
    fn new(nodes: usize) -> Self {
        Self { parents: (0..nodes).collect(), numbers: vec![None; nodes] }
    }

    fn root(&mut self, mut node: usize) -> usize {
        while self.parents[node] != node {
            self.parents[node] = self.parents[self.parents[node]];
            node = self.parents[node];
        }
        node
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }

    /// Numbers the sets of these nodes in their order: how many there are, and that of each node.
    fn number(&mut self, nodes: impl Iterator<Item = usize>) -> (usize, Vec<usize>) {
        let mut count = 0;
        let numbers = nodes.map(|node| {
            let root = self.root(node);
            *self.numbers[root].get_or_insert_with(|| {
                count += 1;
                count - 1
            })
        });
        let numbers = numbers.collect();
        (count, numbers)
    }

    fn numbered(&mut self, node: usize) -> Option<usize> {
        let root = self.root(node);
        self.numbers[root]
    }
}
