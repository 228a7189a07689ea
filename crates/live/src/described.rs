//! A host at work in the words of the control socket: what it is made of, set to, and has counted.

use control::{
    Adapter, Congestion, Device, Disk, HostState, Path, StoragePolicy, Throttle, Totals, Vm, World,
};
use counters::sorted::sort_by_key;
use counters::{DeviceKind, Direction, GateCounters, HostSnapshot, IoTotals, VdiskCounters};
use engine::PathAccess;
use knobs::{Advanced, Allocation, IoControl, Knob, Setting};
use scenario::Host;

use crate::{counted::Counted, hosts::Hosts, mailbox::Reading};

/// The state of a host.
pub(crate) fn describe(
    hosts: &Hosts,
    place: usize,
    counted: &Counted,
    reading: &Reading,
) -> HostState {
    let counters = &reading.counters;
    let host = hosts.host(place);
    let config = &host.config;
    let set = |driver| {
        hosts.is_kept(|kept| {
            let is_it = matches!(&kept.setting, Setting::ModuleDepth { driver: known, .. } if known.driver == driver);
            is_it && kept.on.iter().any(|(on, _)| *on == place)
        })
    };
    let adapters = config.adapters.iter().zip(&counters.adapters).enumerate();
    let adapters = adapters.map(|(id, (adapter, gate))| {
        let is_set = adapter.lun_depth != adapter.driver.depth_default || set(adapter.driver);
        let of_it = |path: &usize| config.paths[*path].adapter.index() == id;
        let paths = (0..config.paths.len()).filter(of_it);
        let mut totals = Totals { splits: gate.split_commands, ..Totals::default() };
        paths.for_each(|path| totals.add(&of_path(&counters.paths[path])));
        Adapter {
            name: adapter.name.clone(),
            driver: adapter.driver.module.into(),
            lun_depth: is_set.then_some(adapter.lun_depth),
            totals,
        }
    });
    let paths = config.paths.iter().zip(hosts.paths_up(place)).zip(&reading.usable);
    let paths = paths.map(|((path, up), usable)| Path {
        name: path.name.clone(),
        device: path.device.index() as u32,
        adapter: path.adapter.index() as u32,
        up: *up,
        dead: *up && !usable,
        optimized: path.access == PathAccess::Optimized,
    });
    let vms = config.vms.iter().map(|vm| Vm { name: vm.name.clone(), world: vm.world });
    let in_version = |info: &&knobs::AdvancedInfo| info.option.exists_in(config.version);
    let options = Advanced::TABLE.iter().filter(in_version);
    HostState {
        name: config.name.clone(),
        version: config.version.name().into(),
        adapters: adapters.collect(),
        devices: devices(hosts, place, counted, counters),
        paths: paths.collect(),
        vms: vms.collect(),
        disks: disks(host, counted),
        storage_policies: storage_policies(host),
        worlds: worlds(host),
        options: options.map(|info| (info.path.into(), option(host, info.option))).collect(),
    }
}

/// The value that an option is set to.
fn option(host: &Host, option: Advanced) -> u32 {
    let set = host.settings.iter().rev().find_map(|knob| match knob {
        Knob::Advanced { option: known, value } if *known == option => Some(*value),
        _ => None,
    });
    set.unwrap_or_else(|| option.default_in(host.config.version))
}

fn devices(hosts: &Hosts, place: usize, counted: &Counted, counters: &HostSnapshot) -> Vec<Device> {
    let host = hosts.host(place);
    let all = host.config.devices.iter().zip(hosts.limits(place)).enumerate();
    let all = all.map(|(id, (device, limits))| {
        let own = |disk: &usize| host.config.vdisks[*disk].device.index() == id;
        let own: Vec<_> = (0..host.config.vdisks.len()).filter(own).collect();
        let mut totals = Totals::default();
        own.iter().for_each(|disk| totals.add(&of_disk(&counters.vdisks[*disk])));
        let paths = host.config.paths.iter().zip(&counters.paths);
        let paths = paths.filter(|(path, _)| path.device.index() == id);
        totals.splits = paths.map(|(_, path)| path.split_commands).sum();
        totals.refusals = counters.devices[id].queue_full;
        let throttle = host.settings.iter().rev().find_map(|knob| match *knob {
            Knob::QueueFull { device, sample_size, threshold } if device.index() == id => {
                Some(Throttle { sample_size, threshold })
            }
            _ => None,
        });
        let congestion = host.settings.iter().rev().find_map(|knob| match *knob {
            Knob::StorageIoControl { device, control } if device.index() == id => {
                let stats_only = matches!(control, IoControl::Stats { .. });
                Some(control.threshold_us().map(|threshold_us| Congestion { threshold_us, stats_only }))
            }
            _ => None,
        });
        let finds = |knob: &Knob| {
            matches!(*knob, Knob::DepthByLatency { device, on: true } if device.index() == id)
        };
        Device {
            name: device.name.clone(),
            is_nfs: device.kind == DeviceKind::Nfs,
            is_protocol_endpoint: device.kind == DeviceKind::ProtocolEndpoint,
            datastores: host.datastores[id].clone(),
            bytes: own.iter().map(|disk| counted.bytes(*disk)).sum(),
            max_queue_depth: limits.max_queue_depth,
            dsnro: limits.dsnro,
            throttle,
            depth_by_latency: host.settings.iter().any(finds),
            congestion: congestion.flatten(),
            policy: device.path_policy.into(),
            totals,
        }
    });
    all.collect()
}

fn disks(host: &Host, counted: &Counted) -> Vec<Disk> {
    let all = host.config.vdisks.iter().zip(&host.images).enumerate();
    let all = all.map(|(id, (disk, image))| Disk {
        vm: disk.vm.index() as u32,
        name: disk.name.clone(),
        device: disk.device.index() as u32,
        export: image.as_ref().map(|image| image.export.clone()),
        bytes: counted.bytes(id),
        shares: disk.allocation.shares,
        limit_iops: disk.allocation.limit_iops,
        reservation_iops: disk.allocation.reservation_iops,
        storage_policy: host.policy_of[id].map(|policy| host.policies[policy].name.clone()),
    });
    all.collect()
}

fn storage_policies(host: &Host) -> Vec<StoragePolicy> {
    let policy = |policy: &scenario::StoragePolicy| {
        let Allocation { shares, limit_iops, reservation_iops } = policy.allocation;
        StoragePolicy { name: policy.name.clone(), shares, limit_iops, reservation_iops }
    };
    host.policies.iter().map(policy).collect()
}

/// A world is a machine on a device that has disks of it.
fn worlds(host: &Host) -> Vec<World> {
    let mut worlds: Vec<World> = Vec::new();
    for disk in &host.config.vdisks {
        let (device, vm) = (disk.device.index() as u32, disk.vm.index() as u32);
        match worlds.iter_mut().find(|world| (world.device, world.vm) == (device, vm)) {
            Some(world) => world.opens += 1,
            None => worlds.push(World { device, vm, opens: 1 }),
        }
    }
    sort_by_key(&mut worlds, |world| (world.device, world.vm));
    worlds
}

fn of_disk(disk: &VdiskCounters) -> Totals {
    let rare = disk.rare.get();
    let [failed_reads, failed_writes, failed_others] = rare.failed;
    let failed = failed_reads + failed_writes + failed_others;
    Totals {
        reserves: rare.reserves,
        conflicts: rare.conflicts,
        failed,
        failed_reads,
        failed_writes,
        failed_reserves: rare.failed_reserves,
        ..of_io(&disk.io, failed)
    }
}

/// What fails is told by disk: a path has all.
fn of_path(path: &GateCounters) -> Totals {
    of_io(&path.io.get(), 0)
}

fn of_io(io: &[IoTotals; 3], failed: u64) -> Totals {
    let [reads, writes] = [Direction::Read, Direction::Write].map(|it| &io[it as usize]);
    let ended: u64 = io.iter().map(|io| io.commands).sum();
    Totals {
        commands: ended.saturating_sub(failed),
        reads: reads.commands,
        writes: writes.commands,
        bytes_read: reads.bytes,
        bytes_written: writes.bytes,
        ..Totals::default()
    }
}
