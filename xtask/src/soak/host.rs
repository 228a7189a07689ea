//! Random hosts, the array behind them, and random settings.

use counters::{
    AdapterId, Controller, DeviceId, DeviceKind, MILLISECOND, PathId, Status, VdiskId, VmId,
    VscsiId,
};
use engine::{
    AdapterConfig, CompetitionUnit, DepthMode, DeviceConfig, HostConfig, Object, Part, PathAccess,
    PathConfig, SchedPolicy, ThrottleMode, VdiskConfig, VmConfig, VscsiConfig,
};
use knobs::{Advanced, Allocation, Driver, Knob, PathPolicy, RESERVE_HOLD_NS, Version};
use model::{
    ArrayConfig, ByCommand, Controllers, Front, Outage, Queues, ServerQueue, Service, Spread,
    VolumeConfig, WriteProtocol,
};

use crate::corpus::draw::Draw;

/// The shortest that a guest waits.
pub(crate) const GUEST_TIMEOUT_MIN_NS: u64 = 500 * MILLISECOND;

/// Between which volumes go as commands for them come.
const CONTROLLERS: Controllers = Controllers {
    iops: Some(10_000),
    extra_ns: 0,
    takeover_ns: MILLISECOND,
    dead_after_ns: 0,
    active_passive: true,
    outages: [Outage::NONE; 2],
};

/// A number that is small as often as it is not.
fn number(draw: &mut Draw, most: u64) -> u32 {
    let small = draw.whole(0, 1) == 0;
    draw.whole(1, if small { most.min(8) } else { most }) as u32
}

fn yes(draw: &mut Draw) -> bool {
    draw.whole(0, 1) == 0
}

/// The array of an episode, with so many volumes.
pub(crate) fn array(draw: &mut Draw, volumes: usize) -> ArrayConfig {
    let spread = *draw.one(&[Spread::Constant, Spread::Exponential]);
    let service = Service::Servers {
        servers: number(draw, 64),
        mean_ns: draw.whole(1_000, 5 * MILLISECOND),
        spread,
        queue: ServerQueue::Random,
        by: ByCommand::default(),
        write_cache: None,
    };
    ArrayConfig {
        front: Front::default(),
        service,
        capacity: None,
        round_trip_ns: *draw.one(&[0, 20_000, MILLISECOND]),
        link_bytes_per_sec: *draw.one(&[None, Some(1_000_000_000)]),
        write_protocol: WriteProtocol::TransferReady,
        queues: Queues {
            ports: *draw.one(&[1, 1, 2, 3]),
            port_limit: *draw.one(&[None, None, None, Some(2), Some(24)]),
            port_bytes_per_sec: *draw.one(&[None, None, Some(500_000_000)]),
            lun_limit: *draw.one(&[None, None, None, Some(3), Some(17)]),
            full: *draw.one(&[Status::TaskSetFull, Status::TaskSetFull, Status::Busy]),
            controllers: *draw.one(&[None, None, Some(CONTROLLERS)]),
        },
        volumes: vec![
            VolumeConfig { reserve_hold_ns: RESERVE_HOLD_NS, ..VolumeConfig::default() };
            volumes
        ],
    }
}

/// A host on so many devices with at most so many VMs.
pub(crate) fn host(draw: &mut Draw, devices: usize, vms: u64) -> HostConfig {
    let mut config = HostConfig {
        name: "esx".into(),
        version: *draw.one(&Version::ALL),
        competition_unit: *draw.one(&[CompetitionUnit::Vm, CompetitionUnit::File]),
        depth_mode: *draw.one(&[DepthMode::PathValue, DepthMode::SumOfActivePaths]),
        throttle_mode: *draw.one(&[ThrottleMode::Kernel, ThrottleMode::Kb]),
        weight_scale_percent: 100,
        adapters: Vec::new(),
        devices: Vec::new(),
        paths: Vec::new(),
        vms: Vec::new(),
        vscsi: Vec::new(),
        vdisks: Vec::new(),
    };
    for _ in 0..draw.whole(1, 3) {
        let driver = &Driver::ALL[draw.whole(0, Driver::ALL.len() as u64 - 1) as usize];
        let (lun_depth, depth) = (number(draw, 64), number(draw, 256));
        let timeout_ns =
            *draw.one(&[None, None, Some(1_000 * MILLISECOND), Some(10_000 * MILLISECOND)]);
        let name = String::new();
        config.adapters.push(AdapterConfig { name, driver, lun_depth, depth, timeout_ns });
    }
    (0..devices).for_each(|_| add_device(draw, &mut config));
    (0..draw.whole(1, vms)).for_each(|_| add_vm(draw, &mut config));
    config
}

fn add_device(draw: &mut Draw, config: &mut HostConfig) {
    let device = DeviceId::new(config.devices.len());
    let kinds = [DeviceKind::Scsi, DeviceKind::ProtocolEndpoint, DeviceKind::Nfs];
    let (fifo, sfq, mclock) = (SchedPolicy::Fifo, SchedPolicy::Sfq, SchedPolicy::Mclock);
    config.devices.push(DeviceConfig {
        name: String::new(),
        kind: *draw.one(&kinds),
        dsnro: if yes(draw) { Some(number(draw, 64)) } else { None },
        policy: *draw.one(&[None, Some(fifo), Some(sfq), Some(mclock)]),
        path_policy: path_policy(draw),
    });
    for _ in 0..draw.whole(1, 3) {
        let adapter = AdapterId::new(draw.whole(0, config.adapters.len() as u64 - 1) as usize);
        let access = *draw.one(&PathAccess::ALL);
        config.paths.push(PathConfig { name: String::new(), device, adapter, access });
    }
}

fn add_vm(draw: &mut Draw, config: &mut HostConfig) {
    let vm = VmId::new(config.vms.len());
    let world = 1_000 + u32::from(vm.0);
    let powered_on = draw.whole(0, 9) > 0;
    let timeout_ns = *draw.one(&[None, Some(GUEST_TIMEOUT_MIN_NS), Some(30_000 * MILLISECOND)]);
    let system = draw.whole(0, 9) == 0;
    config.vms.push(VmConfig { name: String::new(), world, system, powered_on, timeout_ns });
    let shares_ring = yes(draw);
    for disk in 0..draw.whole(1, 3) {
        if disk == 0 || !shares_ring {
            let controller = *draw.one(&Controller::ALL);
            let depth = number(draw, 254);
            let max_transfer = *draw.one(&[65_536, 524_288, 33_554_432]);
            config.vscsi.push(VscsiConfig { vm, controller, depth, max_transfer });
        }
        config.vdisks.push(VdiskConfig {
            name: String::new(),
            vm,
            vscsi: VscsiId::new(config.vscsi.len() - 1),
            device: DeviceId::new(draw.whole(0, config.devices.len() as u64 - 1) as usize),
            depth: number(draw, 64),
            allocation: allocation(draw),
        });
    }
}

fn allocation(draw: &mut Draw) -> Allocation {
    let limit = draw.whole(16, 20_000) as u32;
    Allocation {
        shares: *draw.one(&[500, 1_000, 2_000, 10_000]),
        limit_iops: *draw.one(&[None, None, Some(limit)]),
        reservation_iops: *draw.one(&[0, 0, 100, 1_000]),
    }
}

fn path_policy(draw: &mut Draw) -> PathPolicy {
    *draw.one(&[
        PathPolicy::Fixed,
        PathPolicy::MostRecentlyUsed,
        PathPolicy::ROUND_ROBIN,
        PathPolicy::RoundRobin { iops: 1, bytes: 10_485_760 },
        PathPolicy::Latency { sampling_ios: 16, eval_ns: 180_000 * MILLISECOND },
    ])
}

/// A part of a host that may be there.
pub(crate) fn object(draw: &mut Draw, config: &HostConfig) -> Object {
    let mut one = |of: usize| draw.whole(0, of as u64 - 1) as usize;
    match one(10) {
        0 => Object::Adapter(AdapterId::new(one(config.adapters.len()))),
        1 => Object::Device(DeviceId::new(one(config.devices.len()))),
        2..5 => Object::Path(PathId::new(one(config.paths.len()))),
        5 => Object::Vm(VmId::new(one(config.vms.len()))),
        _ => Object::Vdisk(VdiskId::new(one(config.vdisks.len()))),
    }
}

/// All that can be detached from a host, as it was built.
pub(crate) fn parts(config: &HostConfig) -> Vec<Part> {
    let devices = (0..config.devices.len()).map(|id| Object::Device(DeviceId::new(id)));
    let adapters = (0..config.adapters.len()).map(|id| Object::Adapter(AdapterId::new(id)));
    let vms = (0..config.vms.len()).map(|id| Object::Vm(VmId::new(id)));
    devices.chain(adapters).chain(vms).flat_map(|object| config.parts(object)).collect()
}

/// A setting of any kind, of something that the host may not have, at a value that it may refuse.
pub(crate) fn knob(draw: &mut Draw, config: &HostConfig) -> Knob {
    let device = DeviceId::new(draw.whole(0, config.devices.len() as u64) as usize);
    let value = number(draw, 300);
    match draw.whole(0, 8) {
        0 => Knob::SchedNumReqOutstanding { device, value },
        1 => Knob::MaxQueueDepth { device, value },
        2 => {
            let (sample_size, threshold) = (draw.whole(0, 64) as u32, number(draw, 16));
            Knob::QueueFull { device, sample_size, threshold }
        }
        3 => {
            let info = &Advanced::TABLE[draw.whole(0, Advanced::TABLE.len() as u64 - 1) as usize];
            let (from, to) = (*info.range().start(), *info.range().end());
            let near = from.saturating_add(value).min(to);
            Knob::Advanced { option: info.option, value: *draw.one(&[from, near, to]) }
        }
        4 => {
            let driver = &Driver::ALL[draw.whole(0, Driver::ALL.len() as u64 - 1) as usize];
            let driver = if yes(draw) { driver } else { config.adapters[0].driver };
            Knob::ModuleDepth { driver, value }
        }
        5 => {
            let vm = VmId::new(draw.whole(0, config.vms.len() as u64) as usize);
            Knob::Pvscsi { vm, depth: number(draw, 254), ring_pages: number(draw, 32) }
        }
        6 => Knob::DepthByLatency { device, on: yes(draw) },
        7 => Knob::PathPolicy { device, policy: path_policy(draw) },
        _ => {
            let vdisk = VdiskId::new(draw.whole(0, config.vdisks.len() as u64) as usize);
            Knob::Allocation { vdisk, allocation: allocation(draw) }
        }
    }
}
