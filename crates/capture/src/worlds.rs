//! Who the worlds of a capture are: the join VM <-> world, and the types of virtual adapters.
//!
//! Three groups of columns name worlds: `Group Cpu(<gid>:<group>)`,
//! `Vcpu(<gid>:<group>:<world>:<name>)` and `Network Port(<switch>:<port>:<world>:<group>)`.
//! A VM's row on a device carries the id of its leader world, which has no column of its own; it
//! is in the names of the VM's helper worlds, and so is the type of each SCSI adapter [CAP-A].

use std::collections::{BTreeMap, BTreeSet};

use counters::{Controller, Entity, EntityId, Kind, Recording, sorted::Ordered};

use crate::{
    VersionHint,
    bus::{Bus, split_virtual_disk},
};

/// Names of helper worlds before the id of the leader world, and the adapter that they tell of
/// [CAP-A]. LSI Logic SAS and Parallel have one name; both take 32 commands a disk.
const HELPERS: [(&str, Option<Controller>); 4] = [
    ("vmast.", None),
    ("NetWorld-VM-", None),
    ("PVSCSI-", Some(Controller::Pvscsi)),
    ("LSI-", Some(Controller::LsiSas)),
];

/// What the names of other columns tell of worlds.
#[derive(Default)]
pub(crate) struct Worlds {
    /// Group names by group id.
    groups: BTreeMap<String, String>,
    /// Worlds with columns of their own: group and name.
    named: BTreeMap<String, (Group, String)>,
    /// The groups of leader worlds.
    leaders: BTreeMap<String, Group>,
    /// Types of SCSI adapters by group and bus.
    adapters: BTreeMap<(String, String), Controller>,
    /// The least id of a world of the VMkernel.
    first_world: Option<u64>,
    /// A world has a column for each counter; only the first is looked at.
    last: String,
}

/// The group of a world: that of a VM is called as the VM.
#[derive(Clone)]
struct Group {
    /// A port does not tell it.
    id: Option<String>,
    name: String,
}

/// The VMkernel's own group [CAP-A].
const SYSTEM: &str = "system";

impl Worlds {
    /// Takes note of a column that is not about disks.
    pub(crate) fn add(&mut self, group: &str, instance: &str) {
        if instance == self.last {
            return;
        }
        self.last.clear();
        self.last.push_str(instance);
        match group {
            "Group Cpu" => self.add_group(instance),
            "Vcpu" => self.add_world(instance),
            "Network Port" => self.add_port(instance),
            _ => None,
        };
    }

    fn add_group(&mut self, instance: &str) -> Option<()> {
        let (id, name) = instance.split_once(':')?;
        self.groups.insert(id.into(), name.into());
        Some(())
    }

    fn add_world(&mut self, instance: &str) -> Option<()> {
        let (id, rest) = instance.split_once(':')?;
        // Names hold colons, so the group's own column says how long its name is.
        let known = self.groups.get(id).and_then(|group| {
            Some((group.as_str(), rest.strip_prefix(group.as_str())?.strip_prefix(':')?))
        });
        let (group, rest) = known.or_else(|| rest.split_once(':'))?;
        let (world, name) = rest.split_once(':')?;
        let of = Group { id: Some(id.into()), name: group.into() };
        if group == SYSTEM {
            self.first_world = self.first_world.into_iter().chain(world.parse().ok()).min();
        }
        for (prefix, controller) in HELPERS {
            let Some(rest) = name.strip_prefix(prefix) else { continue };
            let (leader, bus) = rest.split_once(':').unwrap_or((rest, ""));
            self.leaders.insert(leader.into(), of.clone());
            if let Some(controller) = controller {
                self.adapters.insert((group.into(), bus.into()), controller);
            }
        }
        self.named.insert(world.into(), (of, name.into()));
        Some(())
    }

    fn add_port(&mut self, instance: &str) -> Option<()> {
        let mut parts = instance.splitn(4, ':').skip(2);
        let (world, name) = (parts.next()?, parts.next()?);
        self.leaders.entry(world.into()).or_insert_with(|| Group { id: None, name: name.into() });
        Some(())
    }

    /// What the id of the VMkernel's first world tells of the version: it was 32769 on a host with
    /// 6.0, 65537 on one with 6.5, and ids from 2097152 on are of 6.7 and later [CAP, VSCSI].
    pub(crate) fn version(&self) -> Option<VersionHint> {
        let first_world = self.first_world?;
        let versions = match first_world {
            32_769 => "6.0",
            65_537 => "6.5",
            2_097_152.. => "6.7 or later",
            _ => return None,
        };
        Some(VersionHint { versions, first_world })
    }

    /// The names that several VMs have, with the ids of their groups. Names are unique in a folder of vCenter
    /// alone.
    fn namesakes(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for Group { id, name } in self.leaders.values() {
            if let Some(id) = id {
                ids.entry(name).or_default().insert(id);
            }
        }
        ids.retain(|_, ids| ids.len() > 1);
        ids
    }

    /// Gives each of several VMs of one name one of its own, with its group. Returns the rows that have the one
    /// name for all of them, of which nobody can tell whose they are.
    fn tell_apart(&self, recording: &mut Recording) -> Vec<EntityId> {
        let mut untold = Vec::new();
        for (name, ids) in self.namesakes() {
            let mut own = recording.find(Kind::Vm, name);
            untold.extend(own);
            let disks =
                recording.of_kind(Kind::VirtualDisk).filter(|(_, d)| own.is_some() && d.vm == own);
            let disks: Vec<EntityId> = disks.map(|(disk, _)| disk).collect();
            disks.iter().for_each(|disk| recording.entity_mut(*disk).vm = None);
            untold.extend(disks);
            for id in ids {
                let new = || Entity::new(Kind::Vm, String::new());
                let vm = own.take().unwrap_or_else(|| recording.add_entity(new()));
                let entity = recording.entity_mut(vm);
                (entity.name, entity.called) = (with_group(name, id), Some(name.into()));
            }
        }
        untold
    }

    /// Sets the VM or the process of every world and the adapter type of every virtual disk. A VM
    /// that has a leader world and no column is added. Returns the rows that are of no one VM.
    pub(crate) fn link(&self, recording: &mut Recording) -> Vec<EntityId> {
        let untold = self.tell_apart(recording);
        let mut vms = Vms {
            ids: recording.of_kind(Kind::Vm).map(|(id, vm)| (vm.name.clone(), id)).into_map(),
            led: self.leaders.values().map(|group| group.name.as_str()).into_set(),
            namesakes: self.namesakes(),
        };
        let ids = |kind, recording: &Recording| -> Vec<EntityId> {
            recording.of_kind(kind).map(|(id, _)| id).collect()
        };
        for world in ids(Kind::World, recording) {
            let name = &recording.entity(world).name;
            let number = name.rsplit_once('-').map_or("", |(_, number)| number).to_owned();
            self.link_world(recording, world, &number, &mut vms);
        }
        for disk in ids(Kind::VirtualDisk, recording) {
            let entity = recording.entity_mut(disk);
            if let Some((vm, Bus::Scsi(bus))) = split_virtual_disk(&entity.name) {
                entity.controller = self.adapters.get(&(vm.into(), bus.into())).copied();
            }
        }
        untold
    }

    fn link_world(
        &self,
        recording: &mut Recording,
        world: EntityId,
        number: &str,
        vms: &mut Vms<'_>,
    ) {
        let (group, name) = match (self.named.get(number), self.leaders.get(number)) {
            (Some((group, name)), _) => (group, name.as_str()),
            (None, Some(group)) => (group, ""),
            (None, None) => return,
        };
        match vms.get(group, recording) {
            Some(vm) => recording.entity_mut(world).vm = Some(vm),
            None => recording.entity_mut(world).process = Some(process(&group.name, name)),
        }
    }
}

/// The VMs of a host.
struct Vms<'a> {
    ids: BTreeMap<String, EntityId>,
    /// Groups with a leader world.
    led: BTreeSet<&'a str>,
    /// The names that several have.
    namesakes: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl Vms<'_> {
    /// The VM of a group: one that a virtual disk bears the name of [CAP-A], or that has a leader.
    fn get(&mut self, group: &Group, recording: &mut Recording) -> Option<EntityId> {
        let is_one = !self.namesakes.contains_key(group.name.as_str());
        let id = group.id.as_deref().filter(|_| !is_one);
        let told = id.and_then(|id| self.ids.get(&with_group(&group.name, id)));
        let group = group.name.as_str();
        if let Some(&vm) = told.or_else(|| self.ids.get(group)) {
            return Some(vm);
        }
        self.led.contains(group).then(|| {
            let vm = recording.add_entity(Entity::new(Kind::Vm, group.into()));
            self.ids.insert(group.into(), vm);
            vm
        })
    }
}

/// A VM by its name and its group, which esxtop shows as GID.
fn with_group(name: &str, id: &str) -> String {
    format!("{name} ({id})")
}

/// A system process: `hostd.66694` without its number, or a world of the kernel's own group.
fn process(group: &str, world: &str) -> String {
    match group.rsplit_once('.') {
        Some((name, id)) if id.bytes().all(|byte| byte.is_ascii_digit()) => name.into(),
        _ => world.into(),
    }
}
