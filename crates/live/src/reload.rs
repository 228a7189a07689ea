//! A file that is read again while guests are at work: what came, went and changed in it from one reading to
//! the next. What cannot change at work is refused by its name.
//!
//! ```text
//!   as it was --carried over--> in the new reading's order, with its new parts --knobs--> as it is now
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use counters::{AdapterId, DeviceId, PathId, VdiskId, VscsiId, sorted::Ordered};
use engine::{HostConfig, Object, Part};
use knobs::{Advanced, DSNRO, IoControl, Knob, PVSCSI_COMMANDS_PER_PAGE, Target, TargetId};
use scenario::{Components, Host, Image, Scenario};

use crate::{ids::Same, served::same_volume};

/// What changed on a host. Ids are those of the new reading, but for what is gone.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) same: Same,
    /// By disk of the new reading its place in the one before, also where it has moved to another device.
    pub(crate) origins: Vec<Option<usize>>,
    /// What is gone, by its ids in the reading before: first what is on the rest.
    pub(crate) gone: Vec<Object>,
    /// What is new, in the order in which it is attached.
    pub(crate) new: Vec<Part>,
    pub(crate) knobs: Vec<Knob>,
    /// As it would be begun anew.
    pub(crate) host: Host,
    /// Which component has what.
    pub(crate) components: Components,
}

/// A host as it was in the reading before, as it would be begun anew, and in this reading; and which
/// component has what.
pub(crate) struct Readings<'a> {
    /// The name of the file.
    pub(crate) file: &'a str,
    pub(crate) was: (&'a Scenario, &'a Host),
    pub(crate) now: &'a Host,
    pub(crate) new: (&'a Scenario, &'a Host),
    /// The host as it would be begun anew by the reading before and by this one, each with what was set at
    /// work.
    pub(crate) begun: (&'a Host, &'a Host),
    pub(crate) components: &'a Components,
}

/// What the file turns on a host that is as it says, from one reading to the next.
///
/// # Errors
/// One line: what changed and cannot at work.
pub(crate) fn turned(was: &Host, new: &Host) -> Result<Vec<Knob>, String> {
    let (same, origins) = same_parts(&was.config, &new.config);
    knobs(&carried(was, new, &same, &origins), new)
}

/// Whether two readings have the same hosts.
///
/// # Errors
/// One line: which are not.
pub(crate) fn same_hosts(was: &Scenario, new: &Scenario) -> Result<(), String> {
    let names = |scenario: &Scenario| -> Vec<String> {
        scenario.hosts.iter().map(|host| host.config.name.clone()).collect()
    };
    let (was, new) = (names(was), names(new));
    let gone = was.iter().find(|name| !new.contains(name));
    let came = new.iter().find(|name| !was.contains(name));
    match (gone, came) {
        (Some(name), _) => Err(refusal(&format!("host `{name}` is gone from the file, which"))),
        (_, Some(name)) => Err(refusal(&format!("host `{name}` is new in the file, which"))),
        _ if was != new => Err(refusal("the order of hosts")),
        _ => Ok(()),
    }
}

impl Changes {
    /// What changed on a host.
    ///
    /// # Errors
    /// One line: what changed and cannot at work.
    pub(crate) fn of(readings: &Readings<'_>) -> Result<Self, String> {
        let Readings { was: (_, was), now, new: (_, new), begun, components, .. } = readings;
        let (same, origins) = same_parts(&was.config, &new.config);
        let mut patched = carried(was, new, &same, &origins);
        let mut knobs = knobs(&patched, new)?;
        knobs.iter().for_each(|knob| patched.apply(*knob));
        check_images(readings, &origins)?;
        check_rest(readings.file, patched, new)?;
        check_arrays(readings, &origins)?;
        let mut host = carried(now, new, &same, &origins);
        name_paths(&mut host.config, &same);
        knobs.iter().for_each(|knob| host.apply(*knob));
        let allocated = allocations(&mut host, now, *begun, &origins, &knobs);
        allocated.iter().for_each(|knob| host.apply(*knob));
        knobs.extend(allocated);
        let components = assigned(new, &origins, components)?;
        let (gone, new) = (gone(&was.config, &same), attached(&host.config, &same));
        Ok(Self { same, origins, gone, new, knobs, host, components })
    }

    /// How many devices were not there.
    pub(crate) fn new_devices(&self) -> usize {
        self.same.devices.iter().filter(|origin| origin.is_none()).count()
    }

    /// How many devices are not there any more.
    pub(crate) fn gone_devices(&self) -> usize {
        self.gone.iter().filter(|object| matches!(object, Object::Device(_))).count()
    }

    /// How many disks were not there.
    pub(crate) fn new_disks(&self) -> usize {
        self.origins.iter().filter(|origin| origin.is_none()).count()
    }

    /// How many disks are not there any more. One that moves leaves its place.
    pub(crate) fn gone_disks(&self) -> usize {
        let places = self.gone.iter().filter(|object| matches!(object, Object::Vdisk(_))).count();
        let moved = self.origins.iter().zip(&self.same.vdisks);
        places - moved.filter(|(origin, same)| origin.is_some() && same.is_none()).count()
    }
}

fn refusal(what: &str) -> String {
    format!("{what} cannot be changed at work: begin the daemon anew")
}

/// The same with its line in the file, where it has one.
fn refusal_at(file: &str, line: usize, what: &str) -> String {
    match line {
        0 => refusal(what),
        line => format!("{file}:{line}: {}", refusal(what)),
    }
}

/// The line of a part, by its place; 0 where it has none.
fn line_of(lines: &[usize], place: usize) -> usize {
    lines.get(place).copied().unwrap_or_default()
}

/// Where the parts of a host were in the reading before, and each disk also where it has moved.
fn same_parts(was: &HostConfig, new: &HostConfig) -> (Same, Vec<Option<usize>>) {
    /// The places of what has the same key; of several with one key the first.
    fn places<K: Ord>(was: Vec<K>, new: Vec<K>) -> Vec<Option<usize>> {
        let mut known = BTreeMap::new();
        was.into_iter().enumerate().rev().for_each(|(place, key)| _ = known.insert(key, place));
        new.iter().map(|key| known.get(key).copied()).collect()
    }
    let adapters = |host: &HostConfig| host.adapters.iter().map(|it| it.name.clone()).collect();
    let devices = |host: &HostConfig| host.devices.iter().map(|it| it.name.clone()).collect();
    let vms = |host: &HostConfig| host.vms.iter().map(|it| it.name.clone()).collect();
    let disk = |host: &HostConfig, id: usize| {
        let disk = &host.vdisks[id];
        (host.vms[disk.vm.index()].name.clone(), disk.name.clone())
    };
    let disks =
        |host: &HostConfig| (0..host.vdisks.len()).map(|id| disk(host, id)).collect::<Vec<_>>();
    let on = |host: &HostConfig| {
        let device = |id: usize| host.devices[host.vdisks[id].device.index()].name.clone();
        disks(host).into_iter().enumerate().map(|(id, disk)| (disk, device(id))).collect()
    };
    let origins = places(disks(was), disks(new));
    let same = Same {
        adapters: places(adapters(was), adapters(new)),
        devices: places(devices(was), devices(new)),
        paths: places(ways(was), ways(new)),
        vms: places(vms(was), vms(new)),
        vscsi: places(buses(was), buses(new)),
        vdisks: places::<((String, String), String)>(on(was), on(new)),
    };
    (same, origins)
}

/// What tells a path from others, whatever the device's number is: the names of its device and adapter, and
/// the how-manieth between the two it is.
fn ways(host: &HostConfig) -> Vec<(String, String, usize)> {
    let mut seen = BTreeMap::new();
    let way = |path: &engine::PathConfig| {
        let ends = (path.device, path.adapter);
        let nth: &mut usize = seen.entry(ends).or_default();
        *nth += 1;
        let device = host.devices[path.device.index()].name.clone();
        (device, host.adapters[path.adapter.index()].name.clone(), *nth)
    };
    host.paths.iter().map(way).collect()
}

/// What tells a virtual adapter from others: its VM, and the bus that the names of its disks begin with.
fn buses(host: &HostConfig) -> Vec<(String, String)> {
    let bus = |(id, vscsi): (usize, &engine::VscsiConfig)| {
        let disk = host.vdisks.iter().find(|disk| disk.vscsi.index() == id);
        let bus = disk.and_then(|disk| disk.name.split(':').next()).unwrap_or_default();
        (host.vms[vscsi.vm.index()].name.clone(), bus.to_owned())
    };
    host.vscsi.iter().enumerate().map(bus).collect()
}

/// A host in the order and with the new parts of a new reading, and the rest as it was.
fn carried(was: &Host, new: &Host, same: &Same, origins: &[Option<usize>]) -> Host {
    fn each<T: Clone>(into: &mut [T], was: &[T], same: &[Option<usize>], keep: impl Fn(&mut T, T)) {
        for (into, origin) in into.iter_mut().zip(same) {
            if let Some(origin) = origin {
                keep(into, was[*origin].clone());
            }
        }
    }
    let mut host = Host { settings: settings_over(was, same), ..new.clone() };
    (host.nbd, host.sockets, host.cpus) = (was.nbd.clone(), was.sockets.clone(), was.cpus.clone());
    (host.boot_ns, host.absent) = (was.boot_ns, was.absent.clone());
    each(&mut host.guests, &was.guests, &same.vms, |into, was| *into = was);
    let (config, was) = (&mut host.config, &was.config);
    (config.version, config.competition_unit) = (was.version, was.competition_unit);
    (config.depth_mode, config.throttle_mode) = (was.depth_mode, was.throttle_mode);
    config.weight_scale_percent = was.weight_scale_percent;
    each(&mut config.adapters, &was.adapters, &same.adapters, |into, was| *into = was);
    each(&mut config.devices, &was.devices, &same.devices, |into, was| *into = was);
    each(&mut config.vms, &was.vms, &same.vms, |into, was| *into = was);
    each(&mut config.paths, &was.paths, &same.paths, |into, was| {
        *into = engine::PathConfig { device: into.device, adapter: into.adapter, ..was };
    });
    each(&mut config.vscsi, &was.vscsi, &same.vscsi, |into, was| {
        *into = engine::VscsiConfig { vm: into.vm, ..was };
    });
    each(&mut config.vdisks, &was.vdisks, origins, |into, was| {
        let engine::VdiskConfig { vm, vscsi, device, .. } = *into;
        *into = engine::VdiskConfig { vm, vscsi, device, ..was };
    });
    number_worlds(config, &same.vms);
    host
}

/// The lines for esxcli, of what is still there.
fn settings_over(was: &Host, same: &Same) -> Vec<Knob> {
    let device = |id: DeviceId| {
        same.devices.iter().position(|origin| *origin == Some(id.index())).map(DeviceId::new)
    };
    let over = |knob: &Knob| {
        let mut knob = *knob;
        // What is of VMs and disks has its place in the configuration.
        if let TargetId::Device(id) = knob.id() {
            *id = device(*id)?;
        }
        Some(knob)
    };
    was.settings.iter().filter_map(over).collect()
}

/// VMs keep the numbers of their worlds; new ones have the next.
fn number_worlds(config: &mut HostConfig, same: &[Option<usize>]) {
    let is_known = |place: &usize| same[*place].is_some();
    let known = (0..config.vms.len()).filter(is_known).map(|place| config.vms[place].world);
    let mut last = known.max();
    for (vm, origin) in config.vms.iter_mut().zip(same) {
        if let (None, Some(last)) = (origin, &mut last) {
            *last += 1;
            vm.world = *last;
        }
    }
}

/// A path that is new has a name that none has that was there.
fn name_paths(config: &mut HostConfig, same: &Same) {
    let known = config.paths.iter().zip(&same.paths).filter(|(_, origin)| origin.is_some());
    let mut taken: BTreeSet<_> = known.map(|(path, _)| path.name.clone()).into_set();
    let mut next = config.devices.len();
    for device in (0..config.devices.len()).map(DeviceId::new) {
        let is_new = |(place, path): &(usize, &engine::PathConfig)| {
            path.device == device && same.paths[*place].is_none()
        };
        let new: Vec<_> =
            config.paths.iter().enumerate().filter(is_new).map(|(place, _)| place).collect();
        while new.iter().any(|place| taken.contains(&config.paths[*place].name)) {
            for place in &new {
                let name = &mut config.paths[*place].name;
                let stem = name.rfind(":L").unwrap_or(name.len());
                *name = format!("{}:L{next}", &name[..stem]);
            }
            next += 1;
        }
        taken.extend(new.iter().map(|place| config.paths[*place].name.clone()));
    }
}

/// What the reading before had and this one has not.
fn gone(was: &HostConfig, same: &Same) -> Vec<Object> {
    let left = |same: &[Option<usize>], count: usize| {
        let there: BTreeSet<_> = same.iter().flatten().copied().into_set();
        (0..count).filter(|place| !there.contains(place)).collect::<Vec<_>>()
    };
    let vdisks = left(&same.vdisks, was.vdisks.len()).into_iter();
    let devices = left(&same.devices, was.devices.len());
    let adapters = left(&same.adapters, was.adapters.len());
    // They go with their devices and adapters.
    let alone = |path: &usize| {
        let path = &was.paths[*path];
        !devices.contains(&path.device.index()) && !adapters.contains(&path.adapter.index())
    };
    let paths = left(&same.paths, was.paths.len()).into_iter().filter(alone).collect::<Vec<_>>();
    let vdisks = vdisks.map(|id| Object::Vdisk(VdiskId::new(id)));
    let devices = devices.into_iter().map(|id| Object::Device(DeviceId::new(id)));
    let paths = paths.into_iter().map(|id| Object::Path(PathId::new(id)));
    let adapters = adapters.into_iter().map(|id| Object::Adapter(AdapterId::new(id)));
    vdisks.chain(paths).chain(devices).chain(adapters).collect()
}

/// What this reading has and the one before had not.
fn attached(config: &HostConfig, same: &Same) -> Vec<Part> {
    let new = |same: &[Option<usize>]| {
        let places = same.iter().enumerate().filter(|(_, origin)| origin.is_none());
        places.map(|(place, _)| place).collect::<Vec<_>>()
    };
    let first = |object: Object| config.parts(object).swap_remove(0);
    let adapters = new(&same.adapters).into_iter().map(|id| Object::Adapter(AdapterId::new(id)));
    let devices = new(&same.devices).into_iter().map(|id| Object::Device(DeviceId::new(id)));
    let paths = new(&same.paths).into_iter().map(|id| Object::Path(PathId::new(id)));
    let vscsi = new(&same.vscsi).into_iter().map(|id| {
        let engine::VscsiConfig { vm, controller, depth, max_transfer } = config.vscsi[id];
        Part::Vscsi { id: VscsiId::new(id), vm, controller, depth, max_transfer }
    });
    let vdisks = new(&same.vdisks).into_iter().map(|id| Object::Vdisk(VdiskId::new(id)));
    let parts = adapters.chain(devices).chain(paths).map(first);
    parts.chain(vscsi).chain(vdisks.map(first)).collect()
}

/// Which component has what from now on: what is tied to a disk that is there goes to its component, what is
/// not to the one with the fewest disks. Threads are those of the start.
fn assigned(new: &Host, origins: &[Option<usize>], was: &Components) -> Result<Components, String> {
    let found = new.components();
    let mut running: Vec<Option<(usize, usize)>> = vec![None; found.count];
    let mut load = vec![0; was.count];
    for (disk, origin) in origins.iter().enumerate() {
        let Some(component) = origin.map(|origin| was.vdisks[origin]) else { continue };
        load[component] += 1;
        match running[found.vdisks[disk]] {
            Some((other, beside)) if other != component => {
                let name = |disk| new.config.disk_name(VdiskId::new(disk));
                return Err(refusal(&format!(
                    "disk `{}` and disk `{}` are served by two threads, and by the new file they would be by one, \
                     which",
                    name(beside),
                    name(disk)
                )));
            }
            _ => running[found.vdisks[disk]] = Some((component, disk)),
        }
    }
    let component = |running: Option<(usize, usize)>| {
        let least = || (0..load.len()).min_by_key(|component| load[*component]).unwrap_or(0);
        running.map_or_else(least, |(component, _)| component)
    };
    let of: Vec<_> = running.into_iter().map(component).collect();
    let map = |places: Vec<usize>| places.into_iter().map(|set| of[set]).collect();
    Ok(Components {
        count: was.count,
        vdisks: map(found.vdisks),
        devices: map(found.devices),
        paths: map(found.paths),
        adapters: map(found.adapters),
    })
}

/// An array that is emulated in front of a disk stays as it is.
fn check_arrays(readings: &Readings<'_>, origins: &[Option<usize>]) -> Result<(), String> {
    let Readings { file, was: (was, was_host), new: (new, new_host), .. } = readings;
    for (disk, origin) in origins.iter().enumerate() {
        let is_emulated = new_host.images[disk].as_ref().is_some_and(|image| image.emulated);
        let Some(origin) = origin.filter(|_| is_emulated) else { continue };
        let before = &was.arrays[was_host.targets[origin].array];
        let target = new_host.targets[disk];
        let now = &new.arrays[target.array];
        if same_volume(before, now, target.volume).is_none() {
            let what = format!("array `{}`, which is emulated,", before.name);
            return Err(refusal_at(file, now.line, &what));
        }
    }
    Ok(())
}

/// What may change, of two hosts with the same parts.
fn knobs(was: &Host, new: &Host) -> Result<Vec<Knob>, String> {
    let mut knobs = Vec::new();
    let adapters = was.config.adapters.iter().zip(&new.config.adapters);
    for (_, adapter) in adapters.filter(|(was, new)| was.lun_depth != new.lun_depth) {
        knobs.push(Knob::ModuleDepth { driver: adapter.driver, value: adapter.lun_depth });
    }
    let devices = was.config.devices.iter().zip(&new.config.devices).enumerate();
    for (id, (was, new)) in devices {
        let device = DeviceId::new(id);
        if was.dsnro != new.dsnro {
            let value = new.dsnro.unwrap_or(DSNRO.default);
            knobs.push(Knob::SchedNumReqOutstanding { device, value });
        }
        if was.path_policy != new.path_policy {
            knobs.push(Knob::PathPolicy { device, policy: new.path_policy });
        }
    }
    let disks = was.config.vdisks.iter().zip(&new.config.vdisks).enumerate();
    for (id, (was, disk)) in disks {
        if was.allocation != disk.allocation {
            let (vdisk, allocation) = (VdiskId::new(id), disk.allocation);
            knobs.push(Knob::Allocation { vdisk, allocation });
        }
        if was.depth != disk.depth {
            let ring_pages = new.config.vscsi[disk.vscsi.index()].depth / PVSCSI_COMMANDS_PER_PAGE;
            knobs.push(Knob::Pvscsi { vm: disk.vm, depth: disk.depth, ring_pages });
        }
    }
    knobs.extend(settings(was, new)?);
    Ok(knobs)
}

/// Limits, reservations, shares and storage policies are what they would be on a host begun anew, where that
/// is something else than by the reading before, and else what they are at work. What disks are set to by it
/// that are not so yet.
fn allocations(
    host: &mut Host,
    now: &Host,
    (before, after): (&Host, &Host),
    origins: &[Option<usize>],
    set: &[Knob],
) -> Vec<Knob> {
    let says = |host: &Host, name: &str| {
        let known = host.policies.iter().find(|policy| policy.name == name);
        known.map(|policy| policy.allocation)
    };
    let of_disk = |host: &Host, disk: usize| {
        let policy = host.policy_of[disk].map(|policy| host.policies[policy].name.clone());
        (policy, host.config.vdisks[disk].allocation)
    };
    host.policies.clone_from(&after.policies);
    for policy in &mut host.policies {
        let is_same = says(before, &policy.name) == Some(policy.allocation);
        policy.allocation =
            says(now, &policy.name).filter(|_| is_same).unwrap_or(policy.allocation);
    }
    let mut knobs = Vec::new();
    for (disk, origin) in origins.iter().enumerate() {
        let (vdisk, begun) = (VdiskId::new(disk), of_disk(after, disk));
        let stays = origin.filter(|origin| of_disk(before, *origin) == begun);
        let (policy, allocation) = stays.map_or(begun, |origin| of_disk(now, origin));
        let is_set = set.iter().any(|knob| knob.target() == Target::Vdisk(vdisk));
        let is_given = origin.is_some_and(|origin| of_disk(now, origin).0 != policy) && !is_set;
        if is_given || host.config.vdisks[disk].allocation != allocation {
            knobs.push(Knob::Allocation { vdisk, allocation });
        }
        let place = |name| host.policies.iter().position(|policy| policy.name == name);
        host.policy_of[disk] = policy.and_then(place);
    }
    knobs
}

/// The lines for esxcli: what is gone is as it starts.
fn settings(was: &Host, new: &Host) -> Result<Vec<Knob>, String> {
    let mut knobs = Vec::new();
    let turned = |knob: &Knob| new.settings.iter().any(|known| known.is_turned_by(knob));
    for gone in was.settings.iter().filter(|knob| !turned(knob)) {
        knobs.push(match *gone {
            Knob::Advanced { option, .. } => {
                Knob::Advanced { option, value: option.default_in(new.config.version) }
            }
            Knob::QueueFull { device, .. } => {
                let threshold = Advanced::QFullThreshold.info().default;
                Knob::QueueFull { device, sample_size: 0, threshold }
            }
            Knob::DepthByLatency { device, .. } => Knob::DepthByLatency { device, on: false },
            Knob::StorageIoControl { device, .. } => {
                Knob::StorageIoControl { device, control: IoControl::Off }
            }
            _ => return Err(refusal("a line for esxcli that is gone from the file, which")),
        });
    }
    knobs.extend(new.settings.iter().filter(|knob| !was.settings.contains(knob)));
    Ok(knobs)
}

/// Images are as they were, but for what is looked at when they are opened: their names and sizes.
fn check_images(readings: &Readings<'_>, origins: &[Option<usize>]) -> Result<(), String> {
    let Readings { file, was: (_, was), new: (_, new), .. } = readings;
    for (disk, origin) in origins.iter().enumerate() {
        let was = origin.and_then(|origin| was.images[origin].as_ref());
        let (Some(was), Some(image)) = (was, &new.images[disk]) else { continue };
        check_image(was, image).map_err(|key| {
            let what = refusal(&format!("`{key}`"));
            let name = new.config.disk_name(VdiskId::new(disk));
            format!("{file}:{}: disk `{name}`: {what}", image.line)
        })?;
    }
    Ok(())
}

/// What is left must be as it was.
fn check_rest(file: &str, mut patched: Host, new: &Host) -> Result<(), String> {
    if let (Some(was), Some(new)) = (&mut patched.nbd, &new.nbd) {
        was.line = new.line;
    }
    patched.sockets.line = new.sockets.line;
    // A setting that is gone is one at its default.
    patched.settings.clone_from(&new.settings);
    check_adapters(file, &patched, new)?;
    check_parts(file, &mut patched.config, new)?;
    if let Some(vm) = patched.guests.iter().zip(&new.guests).position(|(was, new)| was != new) {
        let what = format!("`guest` of VM `{}`", new.config.vms[vm].name);
        return Err(refusal_at(file, line_of(&new.lines.vms, vm), &what));
    }
    let name = &new.config.name;
    let keys = [
        ("nbd", patched.nbd == new.nbd, new.nbd.as_ref().map_or(0, |nbd| nbd.line)),
        ("sockets", patched.sockets == new.sockets, new.sockets.line),
        ("cpus", patched.cpus == new.cpus, new.lines.cpus),
    ];
    if let Some((key, _, line)) = keys.iter().find(|(_, is_same, _)| !is_same) {
        return Err(refusal_at(file, *line, &format!("`{key}` of host `{name}`")));
    }
    if patched != *new {
        return Err(refusal(&format!("what host `{name}` is made of")));
    }
    Ok(())
}

/// What of a disk's image has become another, by its key.
fn check_image(was: &Image, new: &Image) -> Result<(), &'static str> {
    let is_same_kind = mem::discriminant(&was.backend) == mem::discriminant(&new.backend);
    let keys = [
        ("backend", is_same_kind),
        ("emulate", was.emulated == new.emulated),
        ("export", was.export == new.export),
        ("vhost_user", was.vhost_user == new.vhost_user),
        ("read_only", was.read_only == new.read_only),
        ("shared", was.shared == new.shared),
        ("format", was.is_raw == new.is_raw),
    ];
    changed(&keys).map_or(Ok(()), Err)
}

/// The first of some keys that is not as it was.
fn changed(keys: &[(&'static str, bool)]) -> Option<&'static str> {
    keys.iter().find(|(_, is_same)| !is_same).map(|(key, _)| *key)
}

/// What adapters are made of must be as it was.
fn check_adapters(file: &str, was: &Host, new: &Host) -> Result<(), String> {
    for (id, (was, adapter)) in was.config.adapters.iter().zip(&new.config.adapters).enumerate() {
        // The depth of an adapter is its driver's, where the file says none.
        let keys = [
            ("driver", was.driver == adapter.driver),
            ("depth", was.depth == adapter.depth),
            ("timeout", was.timeout_ns == adapter.timeout_ns),
        ];
        if let Some(key) = changed(&keys) {
            let line = line_of(&new.lines.drivers, id);
            return Err(refusal_at(file, line, &format!("`{key}` of adapter `{}`", adapter.name)));
        }
    }
    Ok(())
}

/// What parts are made of must be as it was, but for how they are numbered.
fn check_parts(file: &str, was: &mut HostConfig, new: &Host) -> Result<(), String> {
    fn differing<T: PartialEq>(was: &[T], new: &[T]) -> Option<usize> {
        was.iter().zip(new).position(|(was, new)| was != new)
    }
    let Host { config: new, lines, .. } = new;
    let of_device = |id: usize, key: &str| {
        let what = format!("`{key}` of device `{}`", new.devices[id].name);
        Err(refusal_at(file, line_of(&lines.devices, id), &what))
    };
    let of_vm = |id: usize, what: &str| {
        let what = format!("{what} of VM `{}`", new.vms[id].name);
        Err(refusal_at(file, line_of(&lines.vms, id), &what))
    };
    was.paths.iter_mut().zip(&new.paths).for_each(|(was, new)| was.name.clone_from(&new.name));
    was.vms.iter_mut().zip(&new.vms).for_each(|(was, new)| was.world = new.world);
    was.devices.iter_mut().zip(&new.devices).for_each(|(was, new)| was.dsnro = new.dsnro);
    if let Some(id) = differing(&was.devices, &new.devices) {
        let is_same_kind = was.devices[id].kind == new.devices[id].kind;
        return of_device(id, if is_same_kind { "scheduler" } else { "kind" });
    }
    if let Some(id) = differing(&was.paths, &new.paths) {
        return of_device(new.paths[id].device.index(), "unoptimized_paths");
    }
    if let Some(id) = differing(&was.vms, &new.vms) {
        let is_same_power = was.vms[id].powered_on == new.vms[id].powered_on;
        return of_vm(id, if is_same_power { "`timeout`" } else { "`power`" });
    }
    if let Some(id) = differing(&was.vscsi, &new.vscsi) {
        return of_vm(new.vscsi[id].vm.index(), "`adapter` of disks");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use counters::{Op, Status, Time};
    use engine::{Engine, Input, Output, Request};
    use proptest::{collection::vec, prelude::*, sample::subsequence};

    use super::*;
    use crate::ids::Ids;

    /// VMs by their numbers, each with the datastore and the limit of its disk, in this order.
    type Reading = Vec<(usize, usize, u32)>;

    fn scenario(reading: &Reading) -> Scenario {
        let mut text =
            "title = \"t\"\n[host.h.adapter.vmhba1]\ndriver = \"qlnativefc\"\n[host.h.nbd]\nsocket = \"s\"\n"
                .to_owned();
        let mut stores: Vec<_> = reading.iter().map(|(_, store, _)| *store).collect();
        stores.sort_by_key(|store| store * 7 % 5);
        stores.dedup();
        for store in stores {
            text += &format!("[datastore.d{store}]\nbackend = \"memory\"\n");
        }
        for (vm, store, limit) in reading {
            text += &format!(
                "[vm.v{vm}.disk.\"scsi0:0\"]\ndatastore = \"d{store}\"\nsize = \"1m\"\nlimit = {limit}\n"
            );
        }
        Scenario::parse_served("h.toml", &text, &mut |_| Err(String::new())).expect("it is sound")
    }

    fn reading() -> impl Strategy<Value = Reading> {
        let vms = subsequence((0..8).collect::<Vec<_>>(), 1..8).prop_shuffle();
        vms.prop_flat_map(|vms| {
            let disks = vec((0..4_usize, 100..103_u32), vms.len());
            disks.prop_map(move |disks| {
                let each = vms.iter().zip(disks);
                each.map(|(vm, (store, limit))| (*vm, store, limit)).collect()
            })
        })
    }

    proptest! {
        /// Whatever comes, goes, moves and changes its place in the file: engines take it, and what the file
        /// has finds its own device there.
        #[test]
        fn engines_follow_any_row_of_readings(readings in vec(reading(), 2..12)) {
            let mut was = scenario(&readings[0]);
            let mut now = was.hosts[0].clone();
            let mut ids = Ids::new(&now.config);
            let mut components = now.components();
            let (mut engine, mut at) = (Engine::new(&now.config), Time::ZERO);
            for reading in &readings[1..] {
                let new = scenario(reading);
                let changes = Changes::of(&Readings {
                    file: "h.toml",
                    was: (&was, &was.hosts[0]),
                    now: &now,
                    new: (&new, &new.hosts[0]),
                    begun: (&was.hosts[0], &new.hosts[0]),
                    components: &components,
                });
                let changes = changes.expect("nothing of it needs the daemon to begin anew");
                let next = ids.next(&changes.same).expect("so many ids there are");
                let attached = changes.new.iter().map(|part| Input::Attach(*part));
                let set = changes.knobs.iter().map(|knob| Input::Set(*knob));
                let gone = changes.gone.iter();
                let gone = gone.map(|object| Input::Detach { object: *object, drain: true });
                let told = attached.chain(set).map(|input| next.input(input));
                for input in told.chain(gone.map(|input| ids.input(input))) {
                    engine.handle_input(at, input).expect("it is taken");
                    while engine.poll_output().is_some() {}
                }
                engine.check().expect("every invariant holds");
                let config = &changes.host.config;
                let names: BTreeSet<_> = config.paths.iter().map(|path| &path.name).collect();
                prop_assert_eq!(names.len(), config.paths.len());
                for (disk, allocated) in config.vdisks.iter().enumerate() {
                    let limit = reading[disk].2;
                    prop_assert_eq!(allocated.allocation.limit_iops, Some(limit));
                    check_io(&mut engine, &mut at, &next, config, disk)?;
                }
                (was, now, ids, components) = (new, changes.host, next, changes.components);
            }
        }
    }

    /// An I/O of a disk goes down a path of its device.
    fn check_io(
        engine: &mut Engine,
        at: &mut Time,
        ids: &Ids,
        config: &HostConfig,
        disk: usize,
    ) -> Result<(), TestCaseError> {
        let vdisk = ids.vdisk(VdiskId::new(disk));
        let request = Request { vdisk, op: Op::Read, lba: 0, bytes: 512, waited_ns: 0, tag: 1 };
        engine.handle_input(*at, Input::Submit(request)).expect("it is there");
        loop {
            match engine.poll_output() {
                Some(Output::Dispatch(dispatch)) => {
                    let path = ids.paths.place(dispatch.path.index()).expect("one of the file");
                    prop_assert_eq!(config.paths[path].device, config.vdisks[disk].device);
                    let (io, status) = (dispatch.io, Status::Good);
                    let done = Input::Done { io, status, array_ns: 0 };
                    engine.handle_input(*at, done).expect("it is out");
                }
                Some(Output::Complete { .. }) => return Ok(()),
                Some(_) => {}
                None => {
                    let due = engine.next_wakeup().expect("it waits for its limit").at;
                    *at = due.max(*at);
                    engine.handle_input(*at, Input::Tick).expect("time passes");
                }
            }
        }
    }
}
