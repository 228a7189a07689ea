//! How fast the simulator is, beside a bare event loop of the base model in the same run.
//!
//! The models are those of the reference (`simulation.md` sections 1 and 2): (a) one VM with 96
//! outstanding, 64 / 32, (b) 32 VMs x 8 devices x 2 hosts, (c) 1,000 hosts x 10,000 VMs in
//! components of 10 hosts, (d) the same on one array, (e) that with a fabric: its hosts run apart.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    collections::{BinaryHeap, VecDeque},
    time::Instant,
};

use counters::{AdapterId, Controller, DeviceId, DeviceKind, Time, VdiskId, VmId, VscsiId};
use engine::{
    AdapterConfig, CompetitionUnit, DepthMode, DeviceConfig, HostConfig, PathAccess, PathConfig,
    SchedPolicy, ThrottleMode, VdiskConfig, VmConfig, VscsiConfig,
};
use knobs::{Allocation, Driver, GuestOs, PVSCSI_MAX_TRANSFER, PathPolicy, Version};
use model::{
    Access, ArrayConfig, Arrival, ByCommand, Front, InitiatorConfig, Mix, Others, Queues,
    ServerQueue, Service, SizeMix, Spread, VolumeConfig, WorkloadConfig, WriteProtocol,
};
use scenario::{Array, Host, Scenario, Target, Window, Workload};

use crate::run;

mod alone;
mod laws;

pub use alone::{time_counters, time_engine, time_journal};
pub use laws::{scenario_with_laws, time_laws};

/// The mean service time of a server: 0.5 ms.
const SERVICE_NS: u64 = 500_000;
/// The depth of a device queue.
const DEPTH: u32 = 32;
/// Servers of an array at most.
const SERVERS_MAX: u32 = 1 << 16;
/// Outstanding I/Os of a VM.
const THREADS: u32 = 96;

/// A model to time.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Its letter and what it is.
    pub name: &'static str,
    hosts: usize,
    vms_per_host: usize,
    devices: usize,
    hosts_per_array: usize,
    round_trip_ns: u64,
    duration_ns: u64,
}

/// The five models.
pub const MODELS: [Model; 5] = [
    Model {
        name: "(a) 1 VM, 96 outstanding, 64/32",
        hosts: 1,
        vms_per_host: 1,
        devices: 1,
        hosts_per_array: 1,
        round_trip_ns: 0,
        duration_ns: 60_000_000_000,
    },
    Model {
        name: "(b) 32 VMs x 8 devices x 2 hosts",
        hosts: 2,
        vms_per_host: 16,
        devices: 8,
        hosts_per_array: 2,
        round_trip_ns: 0,
        duration_ns: 6_000_000_000,
    },
    Model {
        name: "(c) 1,000 hosts x 10,000 VMs, 100 arrays",
        hosts: 1000,
        vms_per_host: 10,
        devices: 5,
        hosts_per_array: 10,
        round_trip_ns: 0,
        duration_ns: 40_000_000,
    },
    Model {
        name: "(d) 1,000 hosts x 10,000 VMs, 1 array",
        hosts: 1000,
        vms_per_host: 10,
        devices: 5,
        hosts_per_array: 1000,
        round_trip_ns: 0,
        duration_ns: 40_000_000,
    },
    Model {
        name: "(e) the same, a round trip of 0.1 ms away",
        hosts: 1000,
        vms_per_host: 10,
        devices: 5,
        hosts_per_array: 1000,
        round_trip_ns: 100_000,
        duration_ns: 40_000_000,
    },
];

/// What a timed run took.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// I/Os simulated.
    pub ios: u64,
    /// Wall-clock nanoseconds.
    pub nanos: u64,
}

impl Timing {
    /// Nanoseconds an I/O.
    #[must_use]
    pub fn nanos_per_io(self) -> f64 {
        self.nanos as f64 / self.ios.max(1) as f64
    }

    /// Millions of I/Os a second.
    #[must_use]
    pub fn millions_per_sec(self) -> f64 {
        1000.0 / self.nanos_per_io()
    }
}

/// Simulates a model with every counter and histogram on. Only the run is timed, not the making
/// of the scenario.
#[must_use]
pub fn time_model(model: &Model, threads: usize) -> Timing {
    time_scenario(&model.scenario(), threads)
}

fn time_scenario(scenario: &Scenario, threads: usize) -> Timing {
    let start = Instant::now();
    let outcome = run(scenario, threads, &());
    Timing { ios: outcome.ios, nanos: start.elapsed().as_nanos() as u64 }
}

/// The floor: the base model on `std`'s binary heap without statistics, 96 threads over a guest
/// limit of 64 over 32 servers of exponential service.
#[must_use]
pub fn time_floor(ios: u64) -> Timing {
    let services = exponential_table();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        services[(random >> 54) as usize]
    };
    let start = Instant::now();
    let (mut guest, mut device): (VecDeque<u32>, VecDeque<u32>) =
        (VecDeque::new(), VecDeque::new());
    let mut events = BinaryHeap::new();
    let mut sequence = 0_u64;
    for thread in 0..THREADS {
        match thread {
            0..DEPTH => {
                events.push(Reverse((draw(), sequence, thread)));
                sequence += 1;
            }
            DEPTH..64 => device.push_back(thread),
            _ => guest.push_back(thread),
        }
    }
    for _ in 0..ios {
        let Some(Reverse((at, _, thread))) = events.pop() else { break };
        guest.push_back(thread);
        device.extend(guest.pop_front());
        if let Some(next) = device.pop_front() {
            events.push(Reverse((at + draw(), sequence, next)));
            sequence += 1;
        }
    }
    std::hint::black_box(&events);
    Timing { ios, nanos: start.elapsed().as_nanos() as u64 }
}

/// 1,024 values of the exponential distribution at the middles of equal shares.
fn exponential_table() -> Vec<u64> {
    let value = |cell: u32| -(1.0 - (f64::from(cell) + 0.5) / 1024.0).ln() * SERVICE_NS as f64;
    (0..1024).map(|cell| value(cell) as u64).collect()
}

impl Model {
    /// The scenario of the model.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        let arrays = self.hosts / self.hosts_per_array;
        Scenario {
            name: "bench".into(),
            title: self.name.into(),
            about: String::new(),
            source: String::new(),
            seed: 1,
            duration_ns: self.duration_ns,
            warmup_ns: 0,
            sample_ns: self.duration_ns,
            hosts: (0..self.hosts).map(|host| self.host(host)).collect(),
            arrays: (0..arrays).map(|_| self.array()).collect(),
            switches: Vec::new(),
            workloads: (0..self.hosts).flat_map(|host| self.workloads(host)).collect(),
            events: Vec::new(),
            given: Vec::new(),
            windows: vec![Window {
                name: "run".into(),
                from: Time::ZERO,
                to: Time(self.duration_ns),
            }],
            expectations: Vec::new(),
            thresholds: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// A server for each slot of a device; as fast in all when that is more than an array has.
    fn array(&self) -> Array {
        let slots = DEPTH * self.devices as u32 * self.hosts_per_array as u32;
        let servers = slots.min(SERVERS_MAX);
        Array {
            name: "array".into(),
            config: ArrayConfig {
                service: Service::Servers {
                    servers,
                    mean_ns: SERVICE_NS * u64::from(servers) / u64::from(slots),
                    spread: Spread::Exponential,
                    queue: ServerQueue::Random,
                    by: ByCommand::default(),
                    write_cache: None,
                },
                round_trip_ns: self.round_trip_ns,
                link_bytes_per_sec: None,
                write_protocol: WriteProtocol::TransferReady,
                queues: Queues::default(),
                capacity: None,
                front: Front::default(),
                volumes: vec![VolumeConfig::default(); self.devices],
            },
            volumes: (0..self.devices).map(|volume| format!("lun{volume}")).collect(),
            policies: Vec::new(),
            line: 0,
        }
    }

    fn host(&self, index: usize) -> Host {
        let vms = 0..self.vms_per_host;
        let target =
            |vm| Target { array: index / self.hosts_per_array, volume: (vm % self.devices) as u32 };
        let driver = Driver::ANY;
        Host {
            config: HostConfig {
                name: format!("esx{index}"),
                version: Version::V7_0,
                competition_unit: CompetitionUnit::Vm,
                depth_mode: DepthMode::PathValue,
                throttle_mode: ThrottleMode::Kernel,
                weight_scale_percent: 100,
                adapters: vec![AdapterConfig {
                    name: "vmhba1".into(),
                    driver,
                    lun_depth: DEPTH,
                    depth: driver.adapter_depth,
                    timeout_ns: None,
                }],
                devices: (0..self.devices).map(device).collect(),
                paths: (0..self.devices).map(path).collect(),
                vms: vms.clone().map(|vm| vm_config(index, vm)).collect(),
                vscsi: vms.clone().map(vscsi).collect(),
                vdisks: vms.clone().map(|vm| self.vdisk(vm)).collect(),
            },
            targets: vms.map(target).collect(),
            datastores: vec![Vec::new(); self.devices],
            rdms: Vec::new(),
            guests: vec![GuestOs::Linux; self.vms_per_host],
            initiator: InitiatorConfig::default(),
            boot_ns: 0,
            settings: Vec::new(),
            policies: Vec::new(),
            policy_of: vec![None; self.vms_per_host],
            blocks: vec![None; self.vms_per_host],
            flash_caches: BTreeMap::new(),
            absent: Vec::new(),
            images: Vec::new(),
            nbd: None,
            sockets: scenario::Sockets::default(),
            cpus: Vec::new(),
            lines: scenario::Lines::default(),
        }
    }

    fn vdisk(&self, vm: usize) -> VdiskConfig {
        VdiskConfig {
            name: "scsi0:0".into(),
            vm: VmId::new(vm),
            vscsi: VscsiId::new(vm),
            device: DeviceId::new(vm % self.devices),
            depth: 64,
            allocation: Allocation::default(),
        }
    }

    fn workloads(&self, host: usize) -> impl Iterator<Item = Workload> {
        (0..self.vms_per_host).map(move |vm| Workload {
            name: String::new(),
            host,
            vdisk: VdiskId::new(vm),
            config: WorkloadConfig {
                arrival: Arrival::Closed { threads: THREADS, think_ns: 0, rate: None },
                mix: Mix::ReadWrite {
                    read_share: 0.7,
                    sizes: SizeMix(vec![(4096, 1)]),
                    others: Others::default(),
                },
                access: Access::Random,
                working_set: 1 << 30,
                burst: None,
                ios_max: None,
                tape: None,
            },
            starts: Time::ZERO,
            from_ns: 0,
            for_ns: None,
            stops: Time::NEVER,
        })
    }
}

fn device(index: usize) -> DeviceConfig {
    DeviceConfig {
        name: format!("naa.{index}"),
        kind: DeviceKind::Scsi,
        dsnro: None,
        policy: Some(SchedPolicy::Mclock),
        path_policy: PathPolicy::Fixed,
    }
}

fn path(device: usize) -> PathConfig {
    PathConfig {
        name: format!("vmhba1:C0:T0:L{device}"),
        device: DeviceId::new(device),
        adapter: AdapterId::new(0),
        access: PathAccess::Optimized,
    }
}

fn vm_config(host: usize, vm: usize) -> VmConfig {
    VmConfig {
        name: format!("vm{host}-{vm}"),
        world: 2_100_000 + vm as u32,
        system: false,
        powered_on: true,
        timeout_ns: Some(GuestOs::Linux.disk_timeout_ns(true)),
    }
}

fn vscsi(vm: usize) -> VscsiConfig {
    VscsiConfig {
        vm: VmId::new(vm),
        controller: Controller::Pvscsi,
        depth: 256,
        max_transfer: PVSCSI_MAX_TRANSFER,
    }
}
