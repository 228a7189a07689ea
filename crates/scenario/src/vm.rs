//! `[vm.NAME]` with its disks: virtual machines, dealt to hosts and datastores in turn.

use std::collections::BTreeMap;

use counters::{Controller, DeviceId, VdiskId, VmId, VscsiId};
use engine::{Object, VdiskConfig, VmConfig, VscsiConfig};
use knobs::{Allocation, GuestOs, MOVED_TO, PVSCSI_COMMANDS_PER_PAGE, VscsiLimits, limits_of};
use model::{BlockConfig, FlashCacheConfig, Qos, Stuck};

use crate::{
    Error, Host, Image, Target,
    array::{Arrays, count},
    block,
    datastore::{Datastores, IDS_MAX},
    guest::{self, CONTROLLERS, GUESTS, Slot},
    host::Hosts,
    names,
    nouns::Names,
    over::Over,
    reader::{Node, Table},
    resolve,
    serving::{self, Purpose},
    storage_policy::{self, Policies, allocation},
    switch::Switches,
};

/// All VMs together.
const VMS_MAX: usize = 200_000;
/// Four adapters of 64 disks each.
const DISKS_MAX: usize = 256;
/// Virtual disks of all VMs together.
const VDISKS_TOTAL_MAX: usize = 1_000_000;
/// The id of the first leader world on a host, of the order that real hosts show.
const FIRST_WORLD: u32 = 68_001;
/// Why a datastore has no metadata operations.
pub(crate) const NOT_VMFS: &str = "only kind = \"vmfs\" has metadata operations";

const VM_KEYS: &[&str] =
    &["count", "host", "guest", "guest_driver", "timeout", "power", "disk", "workload"];
const DISK_KEYS: &[&str] = &[
    "datastore",
    "adapter",
    "shares",
    "limit",
    "reservation",
    "storage_policy",
    "block",
    "flash_cache",
    "qos",
    "size",
    "image",
    "export",
    "vhost_user",
    "read_only",
    "shared",
    "format",
];

/// A virtual machine and the ids it has on each host that knows it.
pub(crate) struct Vm {
    pub(crate) name: String,
    pub(crate) guest: GuestOs,
    /// The host where it is when the run begins.
    pub(crate) home: usize,
    pub(crate) disks: Vec<Disk>,
    pub(crate) places: BTreeMap<usize, Place>,
    adapters: Vec<Adapter>,
    on: bool,
    system: bool,
    pvscsi: Option<(u32, u32)>,
    /// How long its guest waits for a command.
    timeout_ns: Option<u64>,
    /// That of its table in the file.
    line: usize,
}

/// The ids of a VM on one host.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) vm: VmId,
    /// In the order of the VM's disks.
    pub(crate) vdisks: Vec<VdiskId>,
}

/// A virtual storage adapter: a bus and its number.
struct Adapter {
    bus: &'static str,
    number: u32,
    controller: Controller,
    disks: u32,
}

/// A virtual disk.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) name: String,
    pub(crate) datastore: usize,
    /// Index into the VM's adapters.
    adapter: usize,
    target: Target,
    allocation: Allocation,
    /// The storage policy that says the allocation.
    pub(crate) policy: Option<usize>,
    image: Option<Image>,
    pub(crate) block: Option<BlockConfig>,
    /// The cache of flash before it, and the position of the disk in that.
    pub(crate) cache: Option<(FlashCacheConfig, usize)>,
    /// The disk that this one is once an event has moved that to another datastore: its position.
    pub(crate) moved: Option<usize>,
}

/// A disk as its table has it: VMs of one group deal it to datastores in turn.
struct DiskPlan<'a> {
    table: Table<'a>,
    name: String,
    slot: Slot,
    datastores: Vec<usize>,
    allocation: Allocation,
    policy: Option<usize>,
}

/// Virtual machines by name.
pub(crate) struct Vms {
    pub(crate) vms: Vec<Vm>,
    pub(crate) names: Names,
    /// VMs that each host was given: it deals its own to datastores in turn.
    dealt: Vec<usize>,
    vdisks_total: usize,
    /// The data mover's disk that lies where that of a VM in a position does, of disks that are copied.
    pub(crate) movers: BTreeMap<(usize, usize), VdiskId>,
}

/// Everything that has a name.
pub(crate) struct Site {
    pub(crate) switches: Switches,
    pub(crate) arrays: Arrays,
    pub(crate) hosts: Hosts,
    pub(crate) datastores: Datastores,
    pub(crate) policies: Policies,
    pub(crate) vms: Vms,
}

impl Site {
    /// Reads switches, arrays, hosts, datastores and VMs, with their disks where `overs` puts them.
    pub(crate) fn read(root: &Table<'_>, purpose: Purpose, overs: &[Over]) -> Result<Self, Error> {
        let switches = Switches::read(root)?;
        let mut arrays = Arrays::read(root, &switches, purpose)?;
        let mut hosts = Hosts::read(root, &switches)?;
        let datastores = Datastores::read(root, &mut arrays, &mut hosts)?;
        let vms = Vms {
            vms: Vec::new(),
            names: Names::new("VM", VMS_MAX),
            dealt: vec![0; hosts.hosts.len()],
            vdisks_total: 0,
            movers: BTreeMap::new(),
        };
        let policies = Policies::read(root)?;
        hosts.hosts.iter_mut().for_each(|host| host.policies.clone_from(&policies.all));
        let mut site = Self { switches, arrays, hosts, datastores, policies, vms };
        for (name, node) in root.named("vm")? {
            site.read_vms(&name, &node, overs)?;
        }
        Ok(site)
    }

    fn read_vms(&mut self, name: &str, node: &Node<'_>, overs: &[Over]) -> Result<(), Error> {
        let table = node.table(VM_KEYS)?;
        let hosts = self.hosts.find_or_all(&table, "host")?;
        let guest = table.read("guest", |node| node.choice(&GUESTS))?.unwrap_or(GuestOs::Windows);
        let pvscsi = table
            .read("guest_driver", |node| node.parsed(|line| resolve::guest_driver(line, guest)))?;
        let timeout_ns = table.read("timeout", Node::positive_duration)?;
        let timeout_ns = Some(timeout_ns.unwrap_or(guest.disk_timeout_ns(true)));
        let on = table.read("power", power)?.unwrap_or(true);
        let plans = self.disk_plans(&table)?;
        let members = self.vms.names.add(node, name, count(&table, VMS_MAX)?)?;
        for (index, name) in members.into_iter().enumerate() {
            let home = hosts[index % hosts.len()];
            let mut vm = Vm {
                name,
                guest,
                home,
                disks: Vec::new(),
                places: BTreeMap::new(),
                adapters: Vec::new(),
                on,
                system: false,
                pvscsi,
                timeout_ns,
                line: node.line(),
            };
            let over = overs.iter().find_map(|over| over.datastore_of(&vm.name));
            let datastore = over.and_then(|name| self.datastores.names.get(name));
            let datastore = datastore.map(|members| members.start);
            plans.iter().try_for_each(|plan| self.add_disk(plan, datastore, &mut vm))?;
            self.vms.dealt[home] += 1;
            self.vms.vms.push(vm);
            self.place(self.vms.vms.len() - 1, home, node)?;
        }
        Ok(())
    }

    /// The disks of a table, before they are dealt to datastores.
    fn disk_plans<'a>(&self, table: &Table<'a>) -> Result<Vec<DiskPlan<'a>>, Error> {
        let named = table.named("disk")?;
        if named.is_empty() || named.len() > DISKS_MAX {
            return Err(table.node().error(&format!(
                "a VM has 1 to {DISKS_MAX} disks, as [vm.NAME.disk.\"scsi0:1\"]"
            )));
        }
        let plan = |(name, node): (String, Node<'a>)| {
            let table = node.table(DISK_KEYS)?;
            let policy = self.policies.of(&table)?.flatten();
            let was = policy.map(|policy| self.policies.all[policy].allocation);
            Ok(DiskPlan {
                slot: guest::slot(&name).map_err(|message| node.error(&message))?,
                datastores: self.datastores.names.find(&table.need("datastore")?)?,
                allocation: allocation(&table, was.unwrap_or_default())?,
                policy,
                name,
                table,
            })
        };
        named.into_iter().map(plan).collect()
    }

    /// Adds a disk to a VM: on that datastore, or on the one whose turn it is.
    fn add_disk(
        &mut self,
        plan: &DiskPlan<'_>,
        datastore: Option<usize>,
        vm: &mut Vm,
    ) -> Result<(), Error> {
        self.vms.vdisks_total += 1;
        if self.vms.vdisks_total > VDISKS_TOTAL_MAX {
            let message = format!("there are too many disks; at most {VDISKS_TOTAL_MAX} in all");
            return Err(plan.table.node().error(&message));
        }
        let in_turn = plan.datastores[self.vms.dealt[vm.home] % plan.datastores.len()];
        let datastore = datastore.unwrap_or(in_turn);
        let adapter = vm.adapter(plan.slot, &plan.table)?;
        let disk = Disk {
            name: plan.name.clone(),
            datastore,
            adapter,
            target: self.target(datastore, &plan.table, &vm.name, &plan.name)?,
            allocation: plan.allocation,
            policy: plan.policy,
            image: self.image(datastore, plan, &vm.name)?,
            block: plan.table.read("block", |node| vm.block(adapter, node))?,
            cache: None,
            moved: None,
        };
        vm.disks.push(disk);
        Ok(())
    }

    /// Where a new disk is in real time.
    fn image(
        &self,
        datastore: usize,
        plan: &DiskPlan<'_>,
        vm: &str,
    ) -> Result<Option<Image>, Error> {
        let store = self.datastores.datastores[datastore].store.as_ref();
        serving::image(store, &plan.table, vm, &plan.name)
    }

    /// The volume of a new disk: its datastore's, or one of its own.
    fn target(
        &mut self,
        datastore: usize,
        table: &Table<'_>,
        vm: &str,
        disk: &str,
    ) -> Result<Target, Error> {
        let on = &self.datastores.datastores[datastore];
        if let (Some(_), Some(node)) = (on.volume, table.get("qos")) {
            return Err(node.error(
                "a policy of its own needs a datastore with kind = \"vvol\"; on others it stands \
                 at the datastore or volume",
            ));
        }
        let own = self.arrays.policy(on.array, table)?;
        Ok(self.volume(datastore, own, vm, disk))
    }

    /// The volume of a disk: its datastore's, or one of its own with a policy of its own or of the
    /// datastore's.
    fn volume(&mut self, datastore: usize, own: Option<Qos>, vm: &str, disk: &str) -> Target {
        let on = &self.datastores.datastores[datastore];
        on.volume.unwrap_or_else(|| {
            let qos = own.or_else(|| on.qos.clone());
            self.arrays.add_volume(on.array, format!("{vm}:{disk}"), qos)
        })
    }

    /// Gives a disk of a VM a place on a datastore, on every host that knows the VM, if it has none there
    /// yet.
    pub(crate) fn place_on(
        &mut self,
        (index, position): (usize, usize),
        datastore: usize,
        node: &Node<'_>,
    ) -> Result<(), Error> {
        let vm = &self.vms.vms[index];
        if vm.place_of(position, datastore).is_some() {
            return Ok(());
        }
        let disk = vm.disks[position].clone();
        let name = format!("{}{MOVED_TO}{}", disk.name, self.datastores.datastores[datastore].name);
        let owner = vm.name.clone();
        let (policy, block) = (disk.policy, disk.block);
        let target = self.volume(datastore, None, &owner, &name);
        let vm = &mut self.vms.vms[index];
        for (&host, place) in &mut vm.places {
            let Host { config, targets, images, policy_of, blocks, .. } =
                &mut self.hosts.hosts[host];
            let device = self.datastores.device(datastore, host, &config.name, node)?;
            if config.vdisks.len() >= IDS_MAX {
                return Err(node.error(&too_many(&config.name)));
            }
            let here = config.vdisks[place.vdisks[position].index()].clone();
            place.vdisks.push(VdiskId::new(config.vdisks.len()));
            config.vdisks.push(VdiskConfig { name: name.clone(), device, ..here });
            targets.push(target);
            images.push(None);
            policy_of.push(policy);
            blocks.push(block);
        }
        vm.disks.push(Disk { name, datastore, target, image: None, moved: Some(position), ..disk });
        Ok(())
    }

    /// The ids of a VM on a host, which gets to know it when it does not yet: on at its home,
    /// powered off elsewhere.
    pub(crate) fn place(
        &mut self,
        index: usize,
        host: usize,
        node: &Node<'_>,
    ) -> Result<Place, Error> {
        let vm = &mut self.vms.vms[index];
        if let Some(place) = vm.places.get(&host) {
            return Ok(place.clone());
        }
        let config = &mut self.hosts.hosts[host].config;
        if config.vms.len() >= IDS_MAX || config.vdisks.len() + vm.disks.len() > IDS_MAX {
            return Err(node.error(&too_many(&config.name)));
        }
        let nvme = vm.adapters.iter().any(|adapter| adapter.controller == Controller::Nvme);
        if nvme && !vm.system && !config.version.has_vnvme() {
            let (host, version) = (&config.name, config.version.name());
            let message = format!("host `{host}` has ESXi {version}; NVMe disks need 6.5");
            return Err(node.error(&message));
        }
        if vm.disks.iter().any(|disk| disk.policy.is_some()) {
            storage_policy::check(config).map_err(|message| node.error(&message))?;
        }
        let devices: Result<Vec<_>, _> = vm
            .disks
            .iter()
            .map(|disk| self.datastores.device(disk.datastore, host, &config.name, node))
            .collect();
        let place = vm.add_to(&mut self.hosts.hosts[host], vm.on && host == vm.home, &devices?);
        vm.places.insert(host, place.clone());
        Ok(place)
    }

    /// Says how long metadata operations hold a datastore's volume reserved, where that is said, and
    /// who does not release it.
    pub(crate) fn reserve(&mut self, datastore: usize, hold: Option<u64>, stuck: Option<Stuck>) {
        if let Some(Target { array, volume }) = self.datastores.datastores[datastore].volume {
            let volume = &mut self.arrays.arrays[array].config.volumes[volume as usize];
            volume.reserve_hold_ns = hold.unwrap_or(volume.reserve_hold_ns);
            volume.stuck = stuck;
        }
    }

    /// Nanoseconds for which a metadata operation there has its lock.
    pub(crate) fn hold_of(&self, datastore: usize) -> u64 {
        self.datastores.datastores[datastore].volume.map_or(0, |Target { array, volume }| {
            self.arrays.arrays[array].config.volumes[volume as usize].reserve_hold_ns
        })
    }

    /// Virtual machines, of `some` or of all, whose home is a host and that have a disk on a datastore.
    pub(crate) fn vms_on(&self, host: usize, datastore: usize, some: Option<&[usize]>) -> u32 {
        let is_there = |(index, vm): &(usize, &Vm)| {
            let is_meant = some.map_or(!vm.system, |some| some.contains(index));
            let mut disks = vm.disks.iter();
            is_meant && vm.home == host && disks.any(|disk| disk.datastore == datastore)
        };
        self.vms.vms.iter().enumerate().filter(is_there).count() as u32
    }

    /// Adds a system process of a host with a disk on a datastore: who does VMFS's metadata
    /// operations there.
    pub(crate) fn add_system(
        &mut self,
        host: usize,
        datastore: usize,
        node: &Node<'_>,
    ) -> Result<VdiskId, Error> {
        let on = &self.datastores.datastores[datastore];
        let Some(target) = on.volume else {
            return Err(node.error(NOT_VMFS));
        };
        let (name, disk) = (format!("vmfs.{}", on.name), "metadata".to_owned());
        let place = self.add_process(host, name, [(disk, datastore, target)], node)?;
        Ok(place.vdisks[0])
    }

    /// Adds the data mover of a VM, with a disk that lies where each of those at some positions does, and is there while that is
    /// copied.
    pub(crate) fn add_mover(
        &mut self,
        index: usize,
        positions: &[usize],
        node: &Node<'_>,
    ) -> Result<(), Error> {
        let vm = &self.vms.vms[index];
        let disks = positions.iter().map(|at| &vm.disks[*at]);
        let disks: Vec<_> =
            disks.map(|disk| (disk.name.clone(), disk.datastore, disk.target)).collect();
        let (home, name) = (vm.home, format!("svmotion.{}", vm.name));
        let place = self.add_process(home, name, disks, node)?;
        let absent = &mut self.hosts.hosts[home].absent;
        absent.extend(place.vdisks.iter().map(|disk| Object::Vdisk(*disk)));
        let keys = positions.iter().map(|at| (index, *at));
        self.vms.movers.extend(keys.zip(place.vdisks));
        Ok(())
    }

    /// Adds a system process of a host, with disks on datastores.
    fn add_process(
        &mut self,
        host: usize,
        name: String,
        disks: impl IntoIterator<Item = (String, usize, Target)>,
        node: &Node<'_>,
    ) -> Result<Place, Error> {
        let disks = disks.into_iter().map(|(name, datastore, target)| Disk {
            name,
            datastore,
            adapter: 0,
            target,
            allocation: Allocation::default(),
            policy: None,
            image: None,
            block: None,
            cache: None,
            moved: None,
        });
        let disks: Vec<_> = disks.collect();
        let (controller, count) = (Controller::Nvme, disks.len() as u32);
        self.vms.vms.push(Vm {
            name,
            guest: GuestOs::Linux,
            home: host,
            disks,
            places: BTreeMap::new(),
            adapters: vec![Adapter { bus: "nvme", number: 0, controller, disks: count }],
            on: true,
            system: true,
            pvscsi: None,
            timeout_ns: None,
            line: node.line(),
        });
        self.place(self.vms.vms.len() - 1, host, node)
    }
}

impl Vm {
    /// The adapter of a disk's slot; it is added with its first disk.
    fn adapter(&mut self, slot: Slot, table: &Table<'_>) -> Result<usize, Error> {
        let wanted = table.read("adapter", |node| node.choice(&CONTROLLERS))?;
        if let (Some((_, bus)), Some(node)) = (wanted, table.get("adapter"))
            && bus != slot.bus
        {
            let allowed = guest::controllers_on(slot.bus);
            let message = format!("it has no {} disks; on this bus there is {allowed}", slot.bus);
            return Err(node.error(&message));
        }
        let same = |adapter: &Adapter| (adapter.bus, adapter.number) == (slot.bus, slot.adapter);
        let index = self.adapters.iter().position(same).unwrap_or_else(|| {
            let controller = wanted.map_or(slot.default, |(controller, _)| controller);
            let Slot { bus, adapter: number, .. } = slot;
            self.adapters.push(Adapter { bus, number, controller, disks: 0 });
            self.adapters.len() - 1
        });
        let adapter = &mut self.adapters[index];
        if wanted.is_some_and(|(controller, _)| controller != adapter.controller) {
            let message = format!("another disk says what adapter {}{} is", slot.bus, slot.adapter);
            return Err(table.node().error(&message));
        }
        adapter.disks += 1;
        let max = limits_of(adapter.controller, self.guest).disks_max;
        if adapter.disks > max {
            let message = format!("an adapter of this type has at most {max} disks");
            return Err(table.node().error(&message));
        }
        Ok(index)
    }

    /// The block layer of its guest, at one of its adapters.
    fn block(&self, adapter: usize, node: &Node<'_>) -> Result<BlockConfig, Error> {
        if self.guest != GuestOs::Linux {
            return Err(node.error("only guest = \"linux\" has a block layer of these names"));
        }
        block::block(node, &self.limits(self.adapters[adapter].controller))
    }

    /// The position of the disk that a value names, as the file calls it.
    pub(crate) fn disk(&self, node: &Node<'_>) -> Result<usize, Error> {
        self.named(node, |name| !name.contains(MOVED_TO))
    }

    /// The same where the value may name what a disk is on another datastore, as its row does.
    pub(crate) fn row(&self, node: &Node<'_>) -> Result<usize, Error> {
        self.named(node, |_| true)
    }

    fn named(&self, node: &Node<'_>, is_known: fn(&str) -> bool) -> Result<usize, Error> {
        let name = node.string()?;
        let all = self.disks.iter().map(|disk| disk.name.as_str());
        let position = all.clone().position(|disk| disk == name && is_known(disk));
        let known = all.filter(|disk| is_known(disk));
        position.ok_or_else(|| node.error(&names::unknown("disk", name, known)))
    }

    /// The position of what a disk is on a datastore.
    pub(crate) fn place_of(&self, position: usize, datastore: usize) -> Option<usize> {
        let is_it = |(at, disk): (usize, &Disk)| {
            disk.datastore == datastore && (at == position || disk.moved == Some(position))
        };
        self.disks.iter().enumerate().position(is_it)
    }

    /// Adds the VM to a host's tables. The devices are those of its disks, in order.
    fn add_to(&self, host: &mut Host, powered_on: bool, devices: &[DeviceId]) -> Place {
        let config = &mut host.config;
        let vm = VmId::new(config.vms.len());
        let world = FIRST_WORLD + u32::from(vm.0);
        config.vms.push(VmConfig {
            name: self.name.clone(),
            world,
            system: self.system,
            powered_on,
            timeout_ns: self.timeout_ns,
        });
        host.guests.push(self.guest);
        host.lines.vms.push(self.line);
        let first = config.vscsi.len();
        for adapter in &self.adapters {
            let VscsiLimits { adapter_depth: depth, max_transfer, .. } =
                self.limits(adapter.controller);
            let controller = adapter.controller;
            config.vscsi.push(VscsiConfig { vm, controller, depth, max_transfer });
        }
        let mut vdisks = Vec::new();
        for (disk, &device) in self.disks.iter().zip(devices) {
            vdisks.push(VdiskId::new(config.vdisks.len()));
            host.targets.push(disk.target);
            host.images.push(disk.image.clone());
            host.policy_of.push(disk.policy);
            host.blocks.push(disk.block);
            config.vdisks.push(VdiskConfig {
                name: disk.name.clone(),
                vm,
                vscsi: VscsiId::new(first + disk.adapter),
                device,
                depth: self.limits(self.adapters[disk.adapter].controller).disk_depth,
                allocation: disk.allocation,
            });
        }
        Place { vm, vdisks }
    }

    fn limits(&self, controller: Controller) -> VscsiLimits {
        let limits = limits_of(controller, self.guest);
        match self.pvscsi {
            Some((disk_depth, pages)) if controller == Controller::Pvscsi => {
                let adapter_depth = pages * PVSCSI_COMMANDS_PER_PAGE;
                VscsiLimits { disk_depth, adapter_depth, ..limits }
            }
            _ => limits,
        }
    }
}

fn too_many(host: &str) -> String {
    format!("host `{host}` has too many VMs or disks; at most {IDS_MAX} of each")
}

/// `"on"` or `"off"`.
pub(crate) fn power(node: &Node<'_>) -> Result<bool, Error> {
    node.choice(&[("on", true), ("off", false)])
}
