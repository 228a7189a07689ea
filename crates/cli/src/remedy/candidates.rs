//! The remedies: a table of what can be tried, each of which says what it does to the scenario and what
//! is typed for it, or why it is none here. Every line that is typed is one that `--set` takes.

use ::whatif::STORE_UNKNOWN;
use counters::{DeviceKind, VdiskId};
use diagnose::Change;
use engine::SchedPolicy;
use knobs::{
    Advanced, Allocation, AllocationChange, CONGESTION_MS_DEFAULT, DSNRO, DiskName, GuestName,
    IoControl, IoControlChange, Knob, QFULL_SAMPLE_SIZE, Setting, Transport, powershell_name,
};
use model::{Mix, Qos, Queues};
use scenario::{Host, Over, StoragePolicy, Workload};
use sim::Source;

use crate::{
    known::{advanced, locked_by_scsi2, order, throttles},
    sweep::{Edit, edited},
};

use super::{
    candidate::{Refused, Remedy, lines, typed},
    case::Case,
    controllers,
    original::Original,
};

/// What of the rate at which it works an IOPS limit leaves to the one that is limited: a little below it, as `diagnose`
/// proposes, and half.
const LIMITS: [f64; 2] = [0.9, 0.5];

/// What is tried of a kind, or why nothing.
type Try = fn(&Case) -> Result<Vec<Remedy>, String>;

/// Why it is none on a recorded host, where it never is one.
type Unknown = Option<&'static str>;

/// The same of what goes by the controllers of the array.
const CONTROLLERS: &str = "a recording does not tell which controller of the array has a volume";

/// Every kind: its key, what it is called where it does not apply, what is tried, and whether a recording
/// tells nothing of it.
const KINDS: [(&str, &str, Try, Unknown); 21] = [
    ("own-limit", "no IOPS limit of its own", own_limit, None),
    ("dsnro", "DSNRO up to the depth of the device", dsnro, None),
    ("queues", "deeper queues", queues, None),
    (
        "iscsi-size",
        "larger iSCSI commands",
        iscsi_size,
        Some("a recording does not tell what a piece of a command costs the array"),
    ),
    ("own-device", "a device of its own", own_device, None),
    ("datastore", "another datastore", datastore, None),
    ("own-host", "another host", own_host, None),
    ("disks", "more disks and adapters", disks, None),
    ("iops-limit", "an IOPS limit", iops_limit, None),
    ("storage-policy", "another storage policy", storage_policy, None),
    ("shares", "other shares", shares, Some("a recording does not tell what shares do")),
    (
        "locks",
        "locks by ATS",
        locks,
        Some("a recording does not tell which operations lock a datastore"),
    ),
    ("path-policy", "another path policy", controllers::policy, Some(CONTROLLERS)),
    ("owner", "the other controller of the array", controllers::owner, Some(CONTROLLERS)),
    ("scheduler", "another order in the device queue", scheduler, None),
    ("sioc", "Storage I/O Control", sioc, None),
    (
        "array-qos",
        "another policy of the array",
        array_qos,
        Some("a recording does not tell what the array does under another"),
    ),
    (
        "adaptive",
        "adaptive throttling",
        adaptive,
        Some("a recording does not tell when the array says that it is full"),
    ),
    ("depth-by-latency", "a depth found by latency", depth_by_latency, None),
    ("outstanding", "fewer I/Os outstanding in the guest", outstanding, None),
    ("pvscsi", "a smaller depth of PVSCSI in the guest", pvscsi, None),
];

/// What there is to try in a case, and what is none here; what one of its scenarios refuses is none.
pub(crate) fn candidates(case: &Case, sources: &[Source]) -> (Vec<Remedy>, Vec<Refused>) {
    let (mut remedies, mut refused) = (Vec::new(), Vec::new());
    for (key, title, kind, unknown) in KINDS {
        let unknown = unknown.filter(|_| case.original.is_some());
        match unknown.map_or_else(|| kind(case), |why| Err(why.into())) {
            Err(why) => refused.push(Refused { key, what: title.into(), why }),
            Ok(all) => {
                for remedy in all {
                    let mut refusals = sources.iter().map(|source| edited(source, &remedy.edits));
                    match refusals.find_map(Result::err) {
                        Some(why) => refused.push(Refused { key, what: remedy.what, why }),
                        None => remedies.push(Remedy { key, ..remedy }),
                    }
                }
            }
        }
    }
    (remedies, refused)
}

/// DSNRO of the device as it is.
fn dsnro_now(case: &Case) -> u32 {
    let default = match case.device().kind {
        DeviceKind::ProtocolEndpoint => Advanced::VvolPesnro,
        _ => DSNRO.option,
    };
    case.device().dsnro.unwrap_or_else(|| advanced(case.host(), default))
}

/// How deep the device may be: as its driver makes it, or less where it was lowered (`-m`).
fn depth_max(case: &Case) -> u32 {
    let lowered = case.host().settings.iter().rev().find_map(|knob| match knob {
        Knob::MaxQueueDepth { device, value } if *device == case.device => Some(*value),
        _ => None,
    });
    case.adapter().lun_depth.min(lowered.unwrap_or(u32::MAX))
}

fn set_dsnro(case: &Case, value: u32) -> Setting {
    if case.host().config.version.has_global_dsnro() {
        return Setting::Advanced { option: DSNRO.option, value: Some(value) };
    }
    Setting::SchedNumReqOutstanding { device: case.device().name.clone(), value }
}

fn dsnro(case: &Case) -> Result<Vec<Remedy>, String> {
    if case.is_controlled() {
        return Err("Storage I/O Control sets DSNRO aside".into());
    }
    let (now, depth) = (dsnro_now(case), depth_max(case));
    let to = depth.min(DSNRO.max);
    let device = &case.device().name;
    let is_known = |original: &Original| original.knows_depth_of(device);
    if to <= now && !case.original.as_ref().is_none_or(is_known) {
        return Err(format!(
            "the recording does not show how deep {device} may be (--esxcli with the output of `esxcli \
             storage core device list`)"
        ));
    }
    if to <= now {
        return Err(format!("DSNRO is {now}, and the device's depth {depth}"));
    }
    Ok(vec![Remedy::sets(format!("DSNRO {to}"), [set_dsnro(case, to)])])
}

fn queues(case: &Case) -> Result<Vec<Remedy>, String> {
    let adapter = case.adapter();
    let is_known = |original: &Original| original.knows_driver_of(&adapter.name);
    if !case.original.as_ref().is_none_or(is_known) {
        return Err(format!(
            "the recording does not show the driver of {} (--esxcli with the output of `esxcli storage \
             core adapter list`)",
            adapter.name
        ));
    }
    let (driver, now) = (adapter.driver, adapter.lun_depth);
    let to = driver.depth_max.min(DSNRO.max);
    if to <= now {
        return Err(format!("{} gives a device {now}", driver.module));
    }
    let module = Setting::ModuleDepth { driver: driver.into(), value: to };
    let holds = dsnro_now(case) < to && !case.is_controlled();
    let dsnro = holds.then(|| set_dsnro(case, to));
    let what = match case.is_controlled() {
        true => format!("driver's depth {to}"),
        false => format!("driver's depth and DSNRO {to}"),
    };
    Ok(vec![Remedy::sets(what, [module].into_iter().chain(dsnro))])
}

fn iscsi_size(case: &Case) -> Result<Vec<Remedy>, String> {
    let info = Advanced::IscsiMaxIoSizeKb.info();
    if case.adapter().driver.transport != Transport::Iscsi {
        return Err(format!("{} is no software iSCSI", case.adapter().name));
    }
    if advanced(case.host(), info.option) == info.max {
        return Err(format!("{} is {} already", info.path, info.max));
    }
    let set = Setting::Advanced { option: info.option, value: Some(info.max) };
    Ok(vec![Remedy::sets(format!("iSCSI commands of {} KB", info.max), [set])])
}

fn own_device(case: &Case) -> Result<Vec<Remedy>, String> {
    Ok(both(case, |vm| {
        let called = case.called(vm);
        let line = format!(
            "a LUN of its own as a datastore OWN, then: Move-VM -VM {} -Datastore OWN",
            powershell_name(called)
        );
        let what = format!("a device of its own for {called}");
        Remedy::by_hand(what, Edit::OwnDevice(vm.into()), line)
    }))
}

fn own_host(case: &Case) -> Result<Vec<Remedy>, String> {
    Ok(both(case, |vm| {
        let called = case.called(vm);
        let line = format!("Move-VM -VM {} -Destination HOST", powershell_name(called));
        let what = format!("{called} on another, idle host");
        let mut remedy = Remedy::by_hand(what, Edit::OwnHost(vm.into()), line);
        remedy.by_hand.extend(same_port(case, vm));
        remedy
    }))
}

/// That the host on which a VM is alone has its path at the port of the array at which the other of the two has
/// its own, where a port has a queue.
fn same_port(case: &Case, vm: &str) -> Option<String> {
    let other = [&case.good, &case.bad].into_iter().find(|other| *other != vm)?;
    let hosts = &case.scenario.hosts;
    let port = |vm: &str, on: Option<usize>| {
        let index = case.scenario.home(vm).ok()?;
        let host = &hosts[index];
        let disk = host.disks_of(vm).next()?;
        let device = host.device_of(disk);
        let path = host.config.paths.iter().position(|path| path.device == device)?;
        let array = host.targets[disk.index()].array;
        let queues = &case.scenario.arrays[array].config.queues;
        queues.port_limit?;
        Some((array, Queues::port_of(on.unwrap_or(index), path, queues.ports as usize)))
    };
    let (array, own) = port(vm, Some(hosts.len()))?;
    (port(other, None)? == (array, own)).then(|| {
        format!(
            "HOST with paths to another port of {}: here its path leads to the one of {}, whose queue both share",
            case.scenario.arrays[array].name,
            case.called(other)
        )
    })
}

/// Moves each to the least busy of the datastores that neither uses.
fn datastore(case: &Case) -> Result<Vec<Remedy>, String> {
    let host = case.host();
    let used = |device: usize| {
        [&case.good, &case.bad]
            .into_iter()
            .any(|vm| host.disks_of(vm).any(|disk| host.device_of(disk).index() == device))
    };
    let free = (0..host.datastores.len()).filter(|device| !used(*device));
    let iops = |device: &usize| case.iops_of_device(&host.config.devices[*device].name);
    let least = free.min_by(|a, b| iops(a).total_cmp(&iops(b)));
    let to = least.and_then(|device| host.datastores[device].first());
    let to = to.ok_or_else(|| match case.original {
        Some(_) => "the models have no other, on a device of its own".to_owned(),
        None => "the host sees no other, on a device of its own".to_owned(),
    })?;
    let moved = |vm: &str| {
        let over = Over::datastore(vm, to);
        let (called, to) = (case.called(vm), case.store_called(to));
        let names = [called, &to].map(powershell_name);
        let line = format!("Move-VM -VM {} -Datastore {}", names[0], names[1]);
        Remedy::by_hand(format!("{called} on datastore {to}"), Edit::Key(over), line)
    };
    Ok(both(case, moved))
}

fn disks(case: &Case) -> Result<Vec<Remedy>, String> {
    Ok(both(case, |vm| {
        let called = case.called(vm);
        let Change { powercli, guest, .. } = diagnose::spread(called);
        let edits = vec![Edit::DoubleDisks(vm.into())];
        let by_hand = powercli.into_iter().chain(guest).collect();
        Remedy { by_hand, ..Remedy::new(format!("twice the disks for {called}"), edits) }
    }))
}

fn both(case: &Case, remedy: impl Fn(&str) -> Remedy) -> Vec<Remedy> {
    [&case.good, &case.bad].map(|vm| remedy(vm)).into()
}

fn allocation(vm: &str, allocation: AllocationChange) -> Setting {
    Setting::Allocation { vdisk: DiskName::from(vm).into(), allocation }
}

/// Lifts the limit of the one that suffers.
fn own_limit(case: &Case) -> Result<Vec<Remedy>, String> {
    let (vm, host) = (case.good.as_str(), home(case, &case.good));
    let called = case.called(vm);
    let limit = |disk: VdiskId| host.config.vdisks[disk.index()].allocation.limit_iops;
    if host.disks_of(vm).all(|disk| limit(disk).is_none()) {
        return Err(format!("{called} has none"));
    }
    let set = allocation(vm, AllocationChange::Limit(None));
    Ok(vec![Remedy::sets(format!("no IOPS limit on {called}"), [set])])
}

fn iops_limit(case: &Case) -> Result<Vec<Remedy>, String> {
    let (vm, each) = (case.bad.as_str(), units_of_bad_disk(case));
    let limit = |share: &f64| {
        let limit = ((each * share) as u32).max(1);
        let what = format!("an IOPS limit of {limit} on {}", case.called(vm));
        Remedy::sets(what, [allocation(vm, AllocationChange::Limit(Some(limit)))])
    };
    let mut all: Vec<_> = LIMITS.iter().map(limit).collect();
    all.dedup_by(|a, b| a.what == b.what);
    Ok(all)
}

/// I/Os a second, as limits count them, that a disk of the bad one does while it is at work.
fn units_of_bad_disk(case: &Case) -> f64 {
    let vm = case.bad.as_str();
    let disks = match case.original {
        None => home(case, vm).disks_of(vm).count(),
        // One that the array held to several rates is several in the scenario, one after the other.
        Some(_) => case.scenario.outstanding_of(vm).1 as usize,
    };
    let unit = f64::from(advanced(case.host(), Advanced::SchedCostUnit));
    case.units_of_bad(unit) / disks.max(1) as f64
}

/// Gives the bad one a policy that lets through less than it does or has fewer shares, and the good one a policy
/// that limits it less, reserves more for it or has more. Of those that any file has, of Storage I/O Control v2, the limit counts.
fn storage_policy(case: &Case) -> Result<Vec<Remedy>, String> {
    let host = case.host();
    if !host.config.version.has_storage_policies() {
        return Err(format!("ESXi {} has none", host.config.version.name()));
    }
    let now = |vm: &str| {
        let first = home(case, vm).disks_of(vm).next();
        first.map_or_else(Allocation::default, |disk| {
            home(case, vm).config.vdisks[disk.index()].allocation
        })
    };
    let (bad, good) = (now(&case.bad), now(&case.good));
    let bad_units = units_of_bad_disk(case);
    let limits = |to: &Allocation| to.limit_iops.is_some_and(|limit| f64::from(limit) < bad_units);
    let mut all = Vec::new();
    for StoragePolicy { name, allocation: to } in &host.policies {
        let is_own = !Allocation::POLICY_PRESETS.contains(&(name.as_str(), *to));
        let gives = to.reservation_iops > good.reservation_iops || to.shares > good.shares;
        let frees = good.limit_iops.is_some_and(|now| to.limit_iops.is_none_or(|to| to > now));
        let takes = *to != bad && (limits(to) || is_own && to.shares < bad.shares);
        for (vm, _) in [(&case.bad, takes), (&case.good, is_own && (gives || frees))]
            .iter()
            .filter(|(_, does)| *does)
        {
            let what = format!("storage policy {name} for {}", case.called(vm));
            all.push(Remedy::sets(
                what,
                [allocation(vm, AllocationChange::Policy(Some(name.clone())))],
            ));
        }
    }
    match all.is_empty() {
        true => {
            let [bad, good] = [&case.bad, &case.good].map(|vm| case.called(vm));
            Err(format!("none holds {bad} back or gives {good} more"))
        }
        false => Ok(all),
    }
}

fn shares(case: &Case) -> Result<Vec<Remedy>, String> {
    let [(_, low), _, (_, high)] = Allocation::SHARES_PRESETS;
    let shares = |vm: &str, shares| allocation(vm, AllocationChange::Shares(shares));
    let what = format!("shares {high} for {}, {low} for {}", case.good, case.bad);
    Ok(vec![Remedy::sets(what, [shares(&case.good, high), shares(&case.bad, low)])])
}

/// Locks the metadata of the datastore by ATS: an option of the hosts, where it is that which makes reservations
/// of locks, else one for a datastore that is made anew (reference `array-and-control.md` section 7.4).
fn locks(case: &Case) -> Result<Vec<Remedy>, String> {
    let (scenario, store) = (&case.scenario, case.datastore());
    let device = &case.device().name;
    let is_there = |work: &&Workload| {
        let host = &scenario.hosts[work.host];
        host.config.devices[host.device_of(work.vdisk).index()].name == *device
    };
    let option = Advanced::HardwareAcceleratedLocking;
    let is_off = |work: &Workload| advanced(&scenario.hosts[work.host], option) == 0;
    let mut on_it = scenario.workloads.iter().filter(is_there);
    if on_it.any(|work| work.config.mix == Mix::Ats && is_off(work)) {
        let on = Setting::Advanced { option, value: Some(1) };
        return Ok(vec![Remedy::sets("ATS on".into(), [on])]);
    }
    if !locked_by_scsi2(scenario).contains(store) {
        return Err(format!("no lock of {store} is a SCSI reservation"));
    }
    let line = format!(
        "a new datastore NEW that is ATS-only, on an array with ATS, then: Get-VM -Datastore {} | \
         Move-VM -Datastore NEW",
        powershell_name(store)
    );
    let what = format!("{store} as an ATS-only datastore");
    Ok(vec![Remedy::by_hand(what, Edit::AtsOnly(store.into()), line)])
}

fn scheduler(case: &Case) -> Result<Vec<Remedy>, String> {
    let now = order(case.host(), case.device());
    if case.original.is_some() && case.device().policy.is_some() {
        return Err(
            "the recording does not tell which option of its host gives it the order that it has"
                .into(),
        );
    }
    let orders =
        [("mClock", SchedPolicy::Mclock, "mclock", 1), ("sfq", SchedPolicy::Sfq, "sfq", 0)];
    let others = orders.into_iter().filter(|(_, policy, ..)| *policy != now);
    let remedy = |(name, policy, key, value)| {
        let what = format!("{name} in the device queue");
        // What the file says of the device goes before the option of its host.
        if case.device().policy.is_some() {
            let edit = Edit::Order(case.device().name.clone(), Some(policy));
            let line = format!("in the scenario: scheduler = \"{key}\" for {}", case.datastore());
            return Remedy::by_hand(what, edit, line);
        }
        let option = Advanced::SchedulerWithReservation;
        Remedy::sets(what, [Setting::Advanced { option, value: Some(value) }])
    };
    Ok(others.map(remedy).collect())
}

/// Higher congestion thresholds that may be worth a try, in milliseconds: the default, and the most that gives throughput
/// for the latency (reference `array-and-control.md` section 3, advice text).
const CONGESTION_USEFUL: [u32; 2] = [CONGESTION_MS_DEFAULT, 50];

fn sioc(case: &Case) -> Result<Vec<Remedy>, String> {
    case.host().check_control(case.device).map_err(|why| match case.original {
        Some(_) => "it is for VMFS and NFS; the array holds disks apart here, as vVols".into(),
        None => why,
    })?;
    let set = |control: IoControlChange| Setting::StorageIoControl {
        device: case.datastore().into(),
        control,
    };
    if case.is_controlled() {
        if case.original.is_some() {
            return Err("it is on already".into());
        }
        let now = knobs::Host::controlled(case.host(), case.datastore());
        let now = now.map_err(|refusal| refusal.to_string())?;
        let now_us = now.and_then(|(_, control)| control.threshold_us()).unwrap_or_default();
        let raise = |threshold_us: u32| {
            let what = format!("congestion threshold {} ms", threshold_us / 1000);
            Remedy::sets(what, [set(IoControlChange::Threshold { threshold_us })])
        };
        let higher = CONGESTION_USEFUL.map(|ms| 1000 * ms).into_iter().filter(|us| *us > now_us);
        let off = Remedy::sets("no Storage I/O Control".into(), [set(IoControl::Off.into())]);
        return Ok(higher.map(raise).chain([off]).collect());
    }
    let set = set(IoControl::DEFAULT.into());
    let lacks = |_| format!("{} ({})", lines(&typed(case, &set)).concat(), STORE_UNKNOWN);
    let by_hand = (!case.knows_store(case.datastore())).then_some(()).map(lacks);
    let what = format!("Storage I/O Control at {CONGESTION_MS_DEFAULT} ms");
    Ok(vec![Remedy { by_hand: by_hand.into_iter().collect(), ..Remedy::sets(what, [set]) }])
}

/// The host where the workloads of a VM are.
fn home<'a>(case: &'a Case, vm: &str) -> &'a Host {
    case.scenario.home(vm).map_or(case.host(), |index| &case.scenario.hosts[index])
}

fn array_qos(case: &Case) -> Result<Vec<Remedy>, String> {
    let (vm, host) = (case.bad.as_str(), home(case, &case.bad));
    let disk = host.disks_of(vm).next().ok_or("it has no disk")?;
    let target = host.targets[disk.index()];
    let array = &case.scenario.arrays[target.array];
    let now = array.config.volumes[target.volume as usize].qos.as_ref();
    let named = array.policies.iter().filter(|(_, qos)| Some(qos) != now);
    let policy = |(name, qos): &(String, _)| (format!("policy {name}"), Some(Qos::clone(qos)));
    let none = now.map(|_| ("no policy".to_owned(), None));
    let all: Vec<_> = named.map(policy).chain(none).collect();
    if all.is_empty() {
        return Err(format!("array `{}` has no policies", array.name));
    }
    let remedy = |(name, qos)| {
        let line = format!("on array {}: {name} for the volumes of {vm}", array.name);
        let what = format!("{name} of the array for {vm}");
        Remedy::by_hand(what, Edit::Policy(vm.into(), qos), line)
    };
    Ok(all.into_iter().map(remedy).collect())
}

fn adaptive(case: &Case) -> Result<Vec<Remedy>, String> {
    let scenario = &case.scenario;
    let arrays = case.host().targets.iter().map(|target| target.array);
    let limited: Vec<usize> =
        arrays.filter(|array| scenario.arrays[*array].config.queues.are_limited()).collect();
    if limited.is_empty() {
        return Err("no array of the host ever says that it is full (`queue_limit`)".into());
    }
    // On one of the hosts of a port it is a gift to the others: all have it, or none [KB-QF].
    let window = &scenario.windows[case.window];
    let mut devices: Vec<&str> = Vec::new();
    for work in &scenario.workloads {
        let host = &scenario.hosts[work.host];
        let device = host.device_of(work.vdisk);
        let name = host.config.devices[device.index()].name.as_str();
        if host.config.devices[device.index()].kind != DeviceKind::Nfs
            && limited.contains(&host.targets[work.vdisk.index()].array)
            && !throttles(scenario, work.host, window, device)
            && !devices.contains(&name)
        {
            devices.push(name);
        }
    }
    if devices.is_empty() {
        return Err("all that work on the array throttle already".into());
    }
    let set = |device: &str| Setting::QueueFull {
        device: device.into(),
        sample_size: QFULL_SAMPLE_SIZE,
        threshold: Advanced::QFullThreshold.info().default,
    };
    Ok(vec![Remedy::sets("adaptive throttling".into(), devices.into_iter().map(set))])
}

fn depth_by_latency(case: &Case) -> Result<Vec<Remedy>, String> {
    let set = Setting::DepthByLatency { device: case.device().name.clone(), on: true };
    Ok(vec![Remedy::sets("a depth found by latency (kavg's own)".into(), [set])])
}

/// Half of what the device lets out.
fn half_of_device(case: &Case) -> u32 {
    (case.depth().unwrap_or(0.0) as u32 / 2).max(1)
}

fn outstanding(case: &Case) -> Result<Vec<Remedy>, String> {
    let vm = case.bad.as_str();
    let (now, least) = case.scenario.outstanding_of(vm);
    let mut all = vec![half_of_device(case).max(least), least];
    all.dedup();
    all.retain(|most| *most < now);
    if all.is_empty() {
        return Err(format!("the workloads of {} have {now} outstanding", case.called(vm)));
    }
    let remedy = |most| {
        let called = case.called(vm);
        let line =
            format!("in {called}: I/Os outstanding together (fio's iodepth x numjobs): {most}");
        let what = format!("{most} outstanding in {called}'s guest");
        Remedy::by_hand(what, Edit::Outstanding(vm.into(), most), line)
    };
    Ok(all.into_iter().map(remedy).collect())
}

fn pvscsi(case: &Case) -> Result<Vec<Remedy>, String> {
    let (vm, host, depth) = (case.bad.as_str(), home(case, &case.bad), half_of_device(case));
    let disks = || host.disks_of(vm).map(|disk| host.config.vdisks[disk.index()].depth);
    let first = host.disks_of(vm).next().ok_or("it has no disk")?;
    if disks().all(|now| now <= depth) {
        let called = case.called(vm);
        return Err(format!("the disks of {called} have {depth} or fewer outstanding"));
    }
    let id = host.config.vdisks[first.index()].vm.index();
    // Which system a recorded guest has is not known.
    let system = case.original.is_none().then(|| host.guests[id].system());
    let name = GuestName { vm: Some(vm.into()), system };
    let set = Setting::Pvscsi { vm: name, depth: Some(depth), ring_pages: None };
    Ok(vec![Remedy::sets(format!("PVSCSI depth {depth} in {}", case.called(vm)), [set])])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ::whatif::{Model, Question, by_numbers};
    use diagnose::Facts;
    use knobs::Line;
    use levels::Measured;
    use scenario::Scenario;

    use super::*;
    use crate::{journals::Recorded, remedy, report::Report, shipped};

    /// Fewer than any answer needs: what is refused is so before anything is simulated.
    const COMMANDS: f64 = 1000.0;

    /// Every shipped scenario as it runs.
    fn reports() -> impl Iterator<Item = (Source, Report)> {
        shipped::all().map(|(name, text)| report(name, text))
    }

    fn report(name: &str, text: &str) -> (Source, Report) {
        let source = shipped::source(name, text, &[]);
        let scenario = source.scenario().unwrap();
        let outcome = sim::run(&scenario, 2, &());
        (source, Report::new(scenario, outcome))
    }

    /// A VM at its own limit beside one that fills the queue: a recording of it is that of no array that refuses.
    const LIMITED: &str = r#"
        title = "A VM at its own limit beside one that fills the queue"
        duration = "30s"
        warmup = "2s"
        sample = "2s"
        [array.disk]
        servers = 16
        service = "2ms"
        [host.esx.adapter.vmhba1]
        driver = "qlnativefc"
        [datastore.shared]
        [vm.web.disk."scsi0:1"]
        datastore = "shared"
        limit = 100
        [vm.web.workload]
        threads = 4
        [vm.db.disk."scsi0:1"]
        datastore = "shared"
        [vm.db.workload]
        threads = 64
    "#;

    /// Two VMs that work, where there are two.
    fn two(scenario: &Scenario) -> Option<[String; 2]> {
        let vms = scenario.hosts.iter().flat_map(|host| &host.config.vms);
        let mut vms = vms.filter(|vm| scenario.home(&vm.name).is_ok());
        Some([vms.next()?.name.clone(), vms.next()?.name.clone()])
    }

    #[test]
    fn every_line_is_taken_by_the_scenario_that_it_is_for() {
        let mut kinds = BTreeSet::new();
        for (source, report) in reports() {
            let name = source.file.clone();
            let Some([good, bad]) = two(&report.scenario) else { continue };
            let window = report.worst();
            let case = Case::of(report, window, Some(&good), Some(&bad)).unwrap();
            let (remedies, _) = candidates(&case, std::slice::from_ref(&source));
            assert!(!remedies.is_empty(), "{name}");
            for remedy in remedies {
                let lines = remedy.commands(&case);
                assert_eq!(
                    lines.is_empty(),
                    remedy.settings().next().is_none(),
                    "{name}: {}",
                    remedy.what
                );
                // They are typed one after the other.
                let with = Source { settings: lines.clone(), ..source.clone() }.scenario();
                assert!(with.is_ok(), "{name}: {lines:?}: {:?}", with.err());
                kinds.extend((!lines.is_empty()).then_some(remedy.key));
            }
        }
        let expected = [
            "adaptive",
            "depth-by-latency",
            "dsnro",
            "iops-limit",
            "iscsi-size",
            "own-limit",
            "path-policy",
            "pvscsi",
            "queues",
            "scheduler",
            "shares",
            "sioc",
            "storage-policy",
        ];
        assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);
    }

    /// What `whatif` says of a line for a recorded host.
    fn ask(recording: &Measured, facts: &Facts, case: &Case, line: &str) -> Result<(), String> {
        let window = case.original.as_ref().unwrap().window;
        let question = Question {
            settings: by_numbers(line.parse::<Line>().unwrap().settings).unwrap(),
            window: (window.from_ms, window.to_ms),
            device: None,
            vms: Vec::new(),
            arrays: Vec::new(),
            vscsistats: Vec::new(),
            commands: COMMANDS,
        };
        let model = Model::calibrate(recording, facts, &question);
        model.and_then(|model| model.answer()).map(drop).map_err(|error| error.to_string())
    }

    /// `whatif` takes it, or refuses it for the reason that stands beside it.
    #[test]
    fn every_line_is_taken_by_the_recording_that_it_is_for() {
        let (mut kinds, mut lacking) = (BTreeSet::new(), 0);
        for (source, report) in reports().chain([report("limited", LIMITED)]) {
            let Some(vms) = two(&report.scenario) else { continue };
            let Ok(home) = report.scenario.home(&vms[0]) else { continue };
            let recording = report.measured(0).swap_remove(home);
            let host = &report.scenario.hosts[home];
            let on = host.config.devices.iter().zip(&host.datastores);
            let datastores = on.map(|(device, names)| (device.name.clone(), names[0].clone()));
            let named = Facts { datastores: datastores.collect(), ..Facts::default() };
            let without = (lacking == 0).then(Facts::default);
            for facts in without.into_iter().chain([named]) {
                let own = Recorded {
                    recording: recording.clone(),
                    facts: facts.clone(),
                    turned: Vec::new(),
                };
                let found = remedy::find(own, Some(&vms[0]), Some(&vms[1]));
                let Ok(remedy::Found::Something(case, sources)) = found else { continue };
                let ask = |line: &str| ask(&recording, &facts, &case, line);
                for remedy in candidates(&case, &sources).0 {
                    for line in remedy.commands(&case) {
                        assert_eq!(ask(&line), Ok(()), "{}: {line}", source.file);
                        kinds.insert(remedy.key);
                    }
                    let lacks = format!(" ({STORE_UNKNOWN})");
                    for line in remedy.by_hand.iter().filter_map(|line| line.strip_suffix(&lacks)) {
                        let refusal = ask(line).unwrap_err();
                        assert!(refusal.ends_with(STORE_UNKNOWN), "{line}: {refusal}");
                        lacking += 1;
                    }
                }
            }
        }
        assert!(lacking > 0);
        let expected = [
            "depth-by-latency",
            "dsnro",
            "iops-limit",
            "own-limit",
            "pvscsi",
            "scheduler",
            "sioc",
            "storage-policy",
        ];
        assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);
    }
}
