//! Random hosts, random inputs, and an array that answers in any order.

use std::collections::{BTreeMap, BTreeSet};

use counters::{
    AdapterId, Controller, DeviceId, DeviceKind, HostSnapshot, IoId, Op, PathId, Sense, Status,
    Time, VdiskId, VmId, VscsiId,
};
use engine::{
    AdapterConfig, CompetitionUnit, DepthMode, DeviceConfig, Dispatch, Engine, Event, HostConfig,
    Input, Object, Output, Part, PathAccess, PathConfig, SchedPolicy, ThrottleMode, VdiskConfig,
    VmConfig, VscsiConfig,
};
use knobs::{Advanced, Allocation, Driver, IoControl, Knob, PathPolicy, Version};
use proptest::{collection::vec, option, prelude::*, sample::select};

/// What an engine has counted so far.
pub(crate) fn counters(engine: &Engine) -> HostSnapshot {
    let mut counters = HostSnapshot::default();
    engine.snapshot(Time::ZERO, &mut counters);
    counters
}

/// What happens next.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// An I/O; its tag is given when it is issued.
    Submit { vdisk: VdiskId, op: Op, lba: u64, bytes: u32 },
    /// An answer to one of the pieces that are out, chosen by the number.
    Answer(usize, Status),
    /// An answer that nobody waits for, or perhaps somebody does.
    Wild(IoId, Status),
    /// A second answer to one of the pieces that were answered, chosen by the number.
    Again(usize, Status),
    /// The driver lets go of one of the pieces that it was asked for, chosen by the number.
    LetGo(usize),
    /// It lets go of one that is out, asked or not.
    LetGoUnasked(usize),
    /// An abort of one of the I/Os under way, chosen by the number.
    Abort(usize),
    /// Anything else.
    Other(Input),
}

pub(crate) fn status() -> impl Strategy<Value = Status> {
    prop_oneof![
        8 => Just(Status::Good),
        1 => Just(Status::Busy),
        1 => Just(Status::TaskSetFull),
        1 => Just(Status::ReservationConflict),
        1 => select(&Sense::PERMANENT_LOSS[..]).prop_map(Status::CheckCondition),
        1 => Just(Status::CheckCondition(Sense::STANDBY)),
        1 => any::<(u8, u8, u8)>().prop_map(|(key, code, qualifier)| {
            Status::CheckCondition(Sense { key, code, qualifier })
        }),
        1 => Just(Status::PathLost),
        1 => Just(Status::Aborted),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    select(&Op::ALL[..])
}

fn bytes() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(512), 1..=65_536_u32, 1..=4_194_304_u32]
}

fn io_control() -> impl Strategy<Value = IoControl> {
    prop_oneof![
        Just(IoControl::Off),
        (5_000..=100_000_u32).prop_map(|threshold_us| IoControl::Stats { threshold_us }),
        (5_000..=100_000_u32).prop_map(|threshold_us| IoControl::On { threshold_us }),
    ]
}

pub(crate) fn allocation() -> impl Strategy<Value = Allocation> {
    let limit = option::of(prop_oneof![Just(0), 1..=20_u32, 100..=100_000_u32]);
    let reservation = prop_oneof![Just(0), 1..=10_000_u32];
    (prop_oneof![Just(1000), 0..=10_001_u32], limit, reservation).prop_map(
        |(shares, limit_iops, reservation_iops)| Allocation {
            shares,
            limit_iops,
            reservation_iops,
        },
    )
}

fn path_policy() -> impl Strategy<Value = PathPolicy> {
    prop_oneof![
        Just(PathPolicy::Fixed),
        Just(PathPolicy::MostRecentlyUsed),
        (0..4_u32, 0..1_000_000_u64)
            .prop_map(|(iops, bytes)| PathPolicy::RoundRobin { iops, bytes }),
        (0..4_u32, 0..1_000_000_000_u64)
            .prop_map(|(sampling_ios, eval_ns)| PathPolicy::Latency { sampling_ios, eval_ns }),
    ]
}

fn knob() -> impl Strategy<Value = Knob> {
    let device = || (0..5_u16).prop_map(DeviceId);
    let value = || prop_oneof![0..=300_u32, any::<u32>()];
    let options: Vec<_> = Advanced::TABLE.iter().map(|info| info.option).collect();
    let drivers: Vec<_> = Driver::ALL.iter().collect();
    prop_oneof![
        (device(), value())
            .prop_map(|(device, value)| Knob::SchedNumReqOutstanding { device, value }),
        (device(), value()).prop_map(|(device, value)| Knob::MaxQueueDepth { device, value }),
        (device(), 0..=65_u32, 0..=17_u32).prop_map(|(device, sample_size, threshold)| {
            Knob::QueueFull { device, sample_size, threshold }
        }),
        (device(), any::<bool>()).prop_map(|(device, on)| Knob::DepthByLatency { device, on }),
        (device(), io_control())
            .prop_map(|(device, control)| Knob::StorageIoControl { device, control }),
        (select(options), prop_oneof![0..=300_u32, any::<u32>()])
            .prop_map(|(option, value)| Knob::Advanced { option, value }),
        (select(drivers), value()).prop_map(|(driver, value)| Knob::ModuleDepth { driver, value }),
        (0..5_u16, 0..=255_u32, 0..=33_u32).prop_map(|(vm, depth, ring_pages)| Knob::Pvscsi {
            vm: VmId(vm),
            depth,
            ring_pages
        }),
        (device(), path_policy()).prop_map(|(device, policy)| Knob::PathPolicy { device, policy }),
        (0..10_u16, allocation())
            .prop_map(|(vdisk, allocation)| Knob::Allocation { vdisk: VdiskId(vdisk), allocation }),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let path = (0..14_u16, 0..5_u16, 0..4_u16, access(), any::<bool>());
    let vscsi = (0..14_u16, 0..5_u16, select(&Controller::ALL[..]), 0..=8_u32, 4096..=65_536_u32);
    let vdisk = (0..12_u16, 0..14_u16, 0..5_u16, 0..=6_u32, allocation(), any::<(bool, bool)>());
    let timeout = option::of(1..=2_000_000_000_u64);
    prop_oneof![
        1 => (0..4_u16, adapter()).prop_map(|(id, config)| part_of_adapter(id, &config)),
        1 => (0..6_u16, device()).prop_map(|(id, (config, _))| part_of_device(id, &config)),
        3 => path.prop_map(|(id, device, adapter, access, up)| Part::Path {
            id: PathId(id),
            device: DeviceId(device),
            adapter: AdapterId(adapter),
            access,
            up,
        }),
        1 => vscsi.prop_map(|(id, vm, controller, depth, max_transfer)| Part::Vscsi {
            id: VscsiId(id),
            vm: VmId(vm),
            controller,
            depth,
            max_transfer,
        }),
        3 => (vdisk, timeout).prop_map(|((id, vscsi, device, depth, allocation, flags), timeout_ns)| {
            Part::Vdisk {
                id: VdiskId(id),
                vscsi: VscsiId(vscsi),
                device: DeviceId(device),
                depth,
                max_transfer: 65_536,
                allocation,
                powered_on: flags.0,
                system: flags.1,
                timeout_ns,
            }
        }),
    ]
}

fn part_of_adapter(id: u16, config: &AdapterConfig) -> Part {
    let AdapterConfig { driver, lun_depth, depth, timeout_ns, .. } = *config;
    Part::Adapter { id: AdapterId(id), driver, lun_depth, depth, timeout_ns }
}

fn part_of_device(id: u16, config: &DeviceConfig) -> Part {
    let DeviceConfig { kind, dsnro, policy, path_policy, .. } = *config;
    Part::Device { id: DeviceId(id), kind, dsnro, policy, path_policy }
}

fn object() -> impl Strategy<Value = Object> {
    prop_oneof![
        (0..4_u16).prop_map(|id| Object::Adapter(AdapterId(id))),
        (0..6_u16).prop_map(|id| Object::Device(DeviceId(id))),
        (0..14_u16).prop_map(|id| Object::Path(PathId(id))),
        (0..5_u16).prop_map(|id| Object::Vm(VmId(id))),
        (0..12_u16).prop_map(|id| Object::Vdisk(VdiskId(id))),
    ]
}

pub(crate) fn act() -> impl Strategy<Value = Act> {
    let path = (0..13_u16).prop_map(PathId);
    let vm = || (0..5_u16).prop_map(VmId);
    prop_oneof![
        20 => (0..10_u16, op(), any::<u64>(), bytes())
            .prop_map(|(vdisk, op, lba, bytes)| Act::Submit { vdisk: VdiskId(vdisk), op, lba, bytes }),
        20 => (any::<usize>(), status()).prop_map(|(pick, status)| Act::Answer(pick, status)),
        1 => (0..40_u32, 0..4_u32, status())
            .prop_map(|(slot, used, status)| Act::Wild(IoId::new(slot, used), status)),
        3 => (any::<usize>(), status()).prop_map(|(pick, status)| Act::Again(pick, status)),
        3 => any::<usize>().prop_map(Act::LetGo),
        1 => any::<usize>().prop_map(Act::LetGoUnasked),
        2 => any::<usize>().prop_map(Act::Abort),
        1 => (0..10_u16).prop_map(|vdisk| Act::Other(Input::Reset(VdiskId(vdisk)))),
        1 => (0..10_u16, any::<u32>())
            .prop_map(|(vdisk, tag)| Act::Other(Input::Abort { vdisk: VdiskId(vdisk), tag })),
        3 => knob().prop_map(|knob| Act::Other(Input::Set(knob))),
        2 => (path, any::<bool>()).prop_map(|(path, up)| Act::Other(Input::Path { path, up })),
        1 => (vm(), any::<bool>()).prop_map(|(vm, on)| Act::Other(Input::Power { vm, on })),
        1 => vm().prop_map(|vm| Act::Other(Input::RebootGuest(vm))),
        1 => Just(Act::Other(Input::Reboot)),
        6 => part().prop_map(|part| Act::Other(Input::Attach(part))),
        2 => (object(), any::<bool>())
            .prop_map(|(object, drain)| Act::Other(Input::Detach { object, drain })),
        5 => Just(Act::Other(Input::Tick)),
    ]
}

/// Nanoseconds between two inputs.
pub(crate) fn wait() -> impl Strategy<Value = u64> {
    let outage = 1..=200_000_000_000_u64;
    prop_oneof![30 => Just(0), 30 => 1..=1_000_000_u64, 10 => 1..=1_000_000_000_u64, 1 => outage]
}

fn adapter() -> impl Strategy<Value = AdapterConfig> {
    let drivers: Vec<_> = Driver::ALL.iter().collect();
    let timeout = option::of(1..=2_000_000_000_u64);
    (select(drivers), 1..=8_u32, 1..=12_u32, timeout).prop_map(
        |(driver, lun_depth, depth, timeout_ns)| AdapterConfig {
            timeout_ns,
            name: String::new(),
            driver,
            lun_depth,
            depth,
        },
    )
}

fn access() -> impl Strategy<Value = PathAccess> {
    select(&PathAccess::ALL[..])
}

fn device() -> impl Strategy<Value = (DeviceConfig, Vec<(usize, PathAccess)>)> {
    let kinds = vec![DeviceKind::Scsi, DeviceKind::ProtocolEndpoint, DeviceKind::Nfs];
    let policies = vec![SchedPolicy::Fifo, SchedPolicy::Sfq, SchedPolicy::Mclock];
    let path_policy = prop_oneof![
        Just(PathPolicy::Fixed),
        Just(PathPolicy::MostRecentlyUsed),
        Just(PathPolicy::RoundRobin { iops: 1, bytes: 10_485_760 }),
        Just(PathPolicy::ROUND_ROBIN),
        Just(PathPolicy::Latency { sampling_ios: 2, eval_ns: 1_000_000 }),
    ];
    let paths = vec((0..3_usize, access()), 1..=3);
    let dsnro = option::of(1..=8_u32);
    (select(kinds), dsnro, option::of(select(policies)), path_policy, paths).prop_map(
        |(kind, dsnro, policy, path_policy, paths)| {
            let name = String::new();
            (DeviceConfig { name, kind, dsnro, policy, path_policy }, paths)
        },
    )
}

/// Whether it is on, its guest's timeout, and its disks: the type of a virtual adapter with its ring and its largest
/// command (the first disk's are those of all when the flag says so), device, depth, allocation.
type Vm = (bool, bool, Option<u64>, Vec<(Controller, u32, u32, usize, u32, Allocation)>);

fn vm() -> impl Strategy<Value = Vm> {
    let limit = option::of(1..=100_000_u32);
    let allocation = (100..=10_000_u32, limit, 0..=1_000_u32).prop_map(
        |(shares, limit_iops, reservation_iops)| Allocation {
            shares,
            limit_iops,
            reservation_iops,
        },
    );
    let transfer = select(vec![4096_u32, 65_536, 524_288, 33_554_432]);
    let disk =
        (select(&Controller::ALL[..]), 1..=8_u32, transfer, 0..4_usize, 1..=6_u32, allocation);
    let timeout = option::of(1..=2_000_000_000_u64);
    (prop::bool::weighted(0.9), any::<bool>(), timeout, vec(disk, 1..=3))
}

/// A small host.
pub(crate) fn host() -> impl Strategy<Value = HostConfig> {
    let modes = (
        select(Version::ALL.to_vec()),
        select(vec![CompetitionUnit::Vm, CompetitionUnit::File]),
        select(vec![DepthMode::PathValue, DepthMode::SumOfActivePaths]),
        select(vec![ThrottleMode::Kernel, ThrottleMode::Kb]),
        select(vec![1, 100, 100_000]),
    );
    let parts = (vec(adapter(), 1..=3), vec(device(), 1..=4), vec(vm(), 1..=4));
    (modes, parts).prop_map(
        |((version, unit, depth_mode, throttle, scale), (adapters, devices, vms))| {
            let mut config = HostConfig {
                name: "esx".into(),
                version,
                competition_unit: unit,
                depth_mode,
                throttle_mode: throttle,
                weight_scale_percent: scale,
                adapters,
                devices: Vec::new(),
                paths: Vec::new(),
                vms: Vec::new(),
                vscsi: Vec::new(),
                vdisks: Vec::new(),
            };
            devices.into_iter().for_each(|(device, paths)| add_device(&mut config, device, &paths));
            vms.into_iter().for_each(|vm| add_vm(&mut config, vm));
            config
        },
    )
}

fn add_device(config: &mut HostConfig, device: DeviceConfig, paths: &[(usize, PathAccess)]) {
    let id = DeviceId::new(config.devices.len());
    config.devices.push(device);
    for &(adapter, access) in paths {
        let adapter = AdapterId::new(adapter % config.adapters.len());
        config.paths.push(PathConfig { name: String::new(), device: id, adapter, access });
    }
}

fn add_vm(config: &mut HostConfig, (powered_on, shares_ring, timeout_ns, disks): Vm) {
    let vm = VmId::new(config.vms.len());
    let name = String::new();
    let system = vm.0 == 3;
    config.vms.push(VmConfig { name, world: u32::from(vm.0), system, powered_on, timeout_ns });
    for (index, (controller, ring, max_transfer, device, depth, allocation)) in
        disks.into_iter().enumerate()
    {
        if index == 0 || !shares_ring {
            config.vscsi.push(VscsiConfig { vm, controller, depth: ring, max_transfer });
        }
        config.vdisks.push(VdiskConfig {
            name: String::new(),
            vm,
            vscsi: VscsiId::new(config.vscsi.len() - 1),
            device: DeviceId::new(device % config.devices.len()),
            depth,
            allocation,
        });
    }
}

/// A request that a guest waits for, and with it its buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) vdisk: VdiskId,
    pub(crate) tag: u32,
    bytes: u32,
    at: Time,
    /// Bytes of its buffer that were moved.
    moved: u64,
}

/// An engine, what is out at the array, and what the guests wait for.
pub(crate) struct Bench {
    pub(crate) config: HostConfig,
    pub(crate) engine: Engine,
    pub(crate) now: Time,
    /// Pieces at the array.
    pub(crate) out: Vec<Dispatch>,
    /// Those of them that the engine asked back.
    asked: BTreeSet<IoId>,
    /// Pieces that were answered.
    answered: Vec<IoId>,
    /// Pieces sent so far.
    pub(crate) sent: u64,
    /// Requests under way by id.
    pub(crate) alive: BTreeMap<IoId, Request>,
    next_tag: u32,
    /// The highest DQLEN of each device since the last input.
    depths: Vec<u32>,
    /// ACTV of each device after the last input.
    active: Vec<u32>,
    /// Nanoseconds from submission to completion of every I/O.
    pub(crate) waited_ns: u64,
    /// Whether every I/O so far went through whole and was not aborted, so that the engine's
    /// times add up to `waited_ns`.
    pub(crate) is_plain: bool,
}

impl Bench {
    pub(crate) fn new(config: HostConfig) -> Self {
        Self {
            engine: Engine::new(&config),
            now: Time::ZERO,
            out: Vec::new(),
            asked: BTreeSet::new(),
            answered: Vec::new(),
            sent: 0,
            alive: BTreeMap::new(),
            next_tag: 0,
            depths: Vec::new(),
            active: vec![0; config.devices.len()],
            waited_ns: 0,
            is_plain: config.vms.iter().all(|vm| vm.timeout_ns.is_none()),
            config,
        }
    }

    pub(crate) fn act(&mut self, act: &Act) {
        match *act {
            Act::Submit { vdisk, op, lba, bytes } => self.submit(vdisk, op, lba, bytes),
            Act::Answer(pick, status) => {
                if !self.out.is_empty() {
                    self.is_plain &= status != Status::Aborted;
                    let pick = pick % self.out.len();
                    self.answer(pick, status);
                }
            }
            Act::Wild(io, status) => {
                // What is due by now may send that very I/O.
                self.input(Input::Tick);
                if !self.is_out(io) {
                    let taken = self.input(Input::Done { io, status, array_ns: 0 });
                    assert!(!taken, "an answer that nobody waits for was taken");
                }
            }
            Act::Again(pick, status) => {
                if !self.answered.is_empty() {
                    let io = self.answered[pick % self.answered.len()];
                    let taken = self.input(Input::Done { io, status, array_ns: 0 });
                    assert!(!taken, "a second answer was taken");
                    assert!(!self.input(Input::Cancelled { io }), "what was answered was let go");
                }
            }
            Act::LetGo(pick) => {
                if let Some(&io) = self.asked.iter().nth(pick % self.asked.len().max(1)) {
                    self.let_go(io);
                }
            }
            Act::LetGoUnasked(pick) => {
                // What is due by now may ask for that very piece.
                self.input(Input::Tick);
                let io = self.out.get(pick % self.out.len().max(1)).map(|sent| sent.io);
                if let Some(io) = io.filter(|io| !self.asked.contains(io)) {
                    assert!(!self.input(Input::Cancelled { io }), "nobody asked for it");
                }
            }
            Act::Abort(pick) => {
                let alive = self.alive.iter().nth(pick % self.alive.len().max(1));
                if let Some((&id, &Request { vdisk, tag, .. })) = alive {
                    self.is_plain = false;
                    assert!(self.input(Input::Abort { vdisk, tag }));
                    let is_out = self.out.iter().any(|sent| sent.request == id);
                    assert_eq!(
                        is_out,
                        self.alive.contains_key(&id),
                        "it ends with its last answer"
                    );
                }
            }
            Act::Other(input) => {
                self.is_plain &= !matches!(
                    input,
                    Input::Power { .. }
                        | Input::RebootGuest(_)
                        | Input::Reboot
                        | Input::Reset(_)
                        | Input::Abort { .. }
                        | Input::Attach(_)
                        | Input::Detach { .. }
                );
                self.input(input);
            }
        }
    }

    pub(crate) fn submit(&mut self, vdisk: VdiskId, op: Op, lba: u64, bytes: u32) {
        let tag = self.next_tag;
        self.next_tag += 1;
        let request = engine::Request { vdisk, op, lba, bytes, waited_ns: 0, tag };
        if let Some(disk) = self.config.vdisks.get(vdisk.index()) {
            self.is_plain &= bytes <= self.config.vscsi[disk.vscsi.index()].max_transfer;
        }
        self.input(Input::Submit(request));
    }

    /// Answers a piece that is out.
    pub(crate) fn answer(&mut self, pick: usize, status: Status) {
        let sent = self.out[pick];
        self.forget(sent.io);
        if status == Status::Good {
            let request = self.alive.get_mut(&sent.request).expect("its guest waits for it");
            request.moved += u64::from(sent.bytes);
        }
        let input = Input::Done { io: sent.io, status, array_ns: 1 };
        assert!(self.input(input), "an answer was refused");
    }

    /// The driver lets go of a piece that it was asked for.
    pub(crate) fn let_go(&mut self, io: IoId) {
        self.forget(io);
        assert!(self.input(Input::Cancelled { io }), "what was asked for is refused");
    }

    /// How many pieces that are out the engine asked back.
    pub(crate) fn asked(&self) -> usize {
        self.asked.len()
    }

    /// The driver is done with a piece: it touches the buffer no more.
    fn forget(&mut self, io: IoId) {
        self.out.retain(|sent| sent.io != io);
        self.asked.remove(&io);
        self.answered.push(io);
    }

    fn is_out(&self, io: IoId) -> bool {
        self.out.iter().any(|sent| sent.io == io)
    }

    /// Hands an input over, checks everything, and says whether it was accepted.
    pub(crate) fn input(&mut self, input: Input) -> bool {
        self.depths = self.limits();
        let taken = self.engine.handle_input(self.now, input);
        if let Err(broken) = self.engine.check() {
            panic!("{broken}\nafter {input:?} at {:?}", self.now);
        }
        if let (Input::Submit(engine::Request { vdisk, tag, bytes, .. }), Ok(id)) = (input, &taken)
        {
            let id = id.expect("a submission gives an id");
            let request = Request { vdisk, tag, bytes, at: self.now, moved: 0 };
            assert!(self.alive.insert(id, request).is_none(), "an id was given twice");
        }
        if let (Input::Attach(part), Ok(_)) = (input, &taken) {
            self.attached(part);
        }
        while let Some(output) = self.engine.poll_output() {
            self.output(output);
        }
        self.check_counters();
        taken.is_ok()
    }

    /// Keeps up with what the host is made of.
    fn attached(&mut self, part: Part) {
        let name = String::new();
        match part {
            Part::Adapter { id, driver, lun_depth, depth, timeout_ns } => {
                let config = AdapterConfig { name, driver, lun_depth, depth, timeout_ns };
                put(&mut self.config.adapters, id.index(), config);
            }
            Part::Device { id, kind, dsnro, policy, path_policy } => {
                let config = DeviceConfig { name, kind, dsnro, policy, path_policy };
                put(&mut self.config.devices, id.index(), config);
                put(&mut self.depths, id.index(), u32::MAX);
            }
            Part::Path { id, device, adapter, access, .. } => {
                let config = PathConfig { name, device, adapter, access };
                put(&mut self.config.paths, id.index(), config);
            }
            Part::Vscsi { id, vm, controller, depth, max_transfer } => {
                let config = VscsiConfig { vm, controller, depth, max_transfer };
                put(&mut self.config.vscsi, id.index(), config);
            }
            Part::Vdisk { id, vscsi, device, depth, allocation, .. } => {
                let vm = self.config.vscsi[vscsi.index()].vm;
                let config = VdiskConfig { name, vm, vscsi, device, depth, allocation };
                put(&mut self.config.vdisks, id.index(), config);
            }
        }
    }

    /// Attaches what lacks on the way to the array; what is in use is refused.
    fn restore_ways(&mut self) {
        let config = self.config.clone();
        let devices = (0..config.devices.len()).map(|id| Object::Device(DeviceId::new(id)));
        let adapters = (0..config.adapters.len()).map(|id| Object::Adapter(AdapterId::new(id)));
        let parts = devices.chain(adapters).flat_map(|object| config.parts(object));
        for part in parts {
            self.input(Input::Attach(part));
        }
        // A device that was attached may never have had a path.
        for device in (0..config.devices.len()).map(DeviceId::new) {
            if config.paths.iter().all(|path| path.device != device) {
                let (id, adapter) = (PathId::new(self.config.paths.len()), AdapterId(0));
                self.input(Input::Attach(Part::Path {
                    id,
                    device,
                    adapter,
                    access: PathAccess::Optimized,
                    up: true,
                }));
            }
        }
        for path in 0..self.config.paths.len() {
            self.input(Input::Path { path: PathId::new(path), up: true });
        }
    }

    fn limits(&self) -> Vec<u32> {
        let limits = (0..).map_while(|id| self.engine.device_limits(DeviceId(id)));
        limits.map(|limits| limits.dqlen).collect()
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Dispatch(sent) => {
                let device = self.config.vdisks[sent.vdisk.index()].device;
                assert_eq!(self.config.paths[sent.path.index()].device, device);
                assert!(!self.is_out(sent.io), "two that are out have one id");
                let request = self.alive.get(&sent.request).expect("its guest waits for it");
                assert_eq!((request.vdisk, request.tag), (sent.vdisk, sent.tag));
                let end = u64::from(sent.offset) + u64::from(sent.bytes);
                assert!(end <= u64::from(request.bytes), "beside the buffer");
                let is_whole = sent.bytes == request.bytes;
                assert!(is_whole || sent.op.moves_data() && sent.bytes > 0, "a range is not cut");
                let overlaps = |other: &Dispatch| {
                    let other_end = u64::from(other.offset) + u64::from(other.bytes);
                    u64::from(sent.offset) < other_end && u64::from(other.offset) < end
                };
                let mut beside = self.out.iter().filter(|other| other.request == sent.request);
                assert!(!beside.any(overlaps), "two commands share a part of a buffer");
                self.out.push(sent);
                self.sent += 1;
            }
            Output::Complete { request, vdisk, tag, status } => {
                let alive = self.alive.remove(&request);
                let alive = alive.expect("completed twice, or never submitted");
                assert_eq!((alive.vdisk, alive.tag), (vdisk, tag));
                let is_out = self.out.iter().any(|sent| sent.request == request);
                assert!(!is_out, "the guest hears of an end while its buffer is in use");
                let is_moved = alive.moved >= u64::from(alive.bytes);
                assert!(is_moved || status != Status::Good, "a part was never moved");
                self.waited_ns += self.now - alive.at;
            }
            Output::Cancel { io, .. } => {
                let is_out = self.is_out(io);
                // What was due by now comes before an answer that is given now.
                assert!(is_out || self.answered.last() == Some(&io), "asked for, but not out");
                assert!(!is_out || self.asked.insert(io), "asked for twice");
            }
            Output::Event(Event::DepthChanged { device, depth }) => {
                let highest = &mut self.depths[device.index()];
                *highest = depth.max(*highest);
            }
            Output::Reset { .. } | Output::Event(_) => {}
        }
    }

    fn check_counters(&mut self) {
        let counters = counters(&self.engine);
        let active: Vec<_> = counters.devices.iter().map(|device| device.active.now()).collect();
        for ((active, before), depth) in active.iter().zip(&self.active).zip(&self.depths) {
            assert!(active <= before || active <= depth, "ACTV {active} above DQLEN {depth}");
        }
        self.active = active;
        for totals in counters.vdisks.iter().flat_map(|disk| disk.io) {
            assert!(totals.queue_ns <= totals.kernel_ns, "QAVG above KAVG");
        }
        for (gate, adapter) in counters.adapters.iter().zip(&self.config.adapters) {
            assert!(gate.active.now() <= adapter.depth, "ACTV of an adapter above AQLEN");
        }
    }

    /// Makes every path usable and answers everything until nothing is under way.
    pub(crate) fn drain(&mut self) {
        self.restore_ways();
        while !self.alive.is_empty() || !self.out.is_empty() {
            if !self.out.is_empty() {
                self.now = self.now + 1000;
                self.answer(self.out.len() - 1, Status::Good);
                continue;
            }
            self.restore_ways();
            if self.out.is_empty() && !self.alive.is_empty() {
                self.wake();
            }
        }
    }

    /// Goes on to the moment that the engine waits for.
    pub(crate) fn wake(&mut self) {
        let wakeup = self.engine.next_wakeup().expect("I/Os wait, and nobody wakes them");
        self.now = self.now.max(wakeup.at);
        self.input(Input::Tick);
    }
}

fn put<T>(all: &mut Vec<T>, index: usize, new: T) {
    match all.get_mut(index) {
        Some(old) => *old = new,
        None => all.push(new),
    }
}

/// One virtual disk of that allocation on one device of that order.
pub(crate) fn one_disk(policy: SchedPolicy, allocation: Allocation) -> HostConfig {
    disks(policy, 32, &[allocation])
}

/// A VM with a virtual disk for each of those allocations, all on one device of that order and depth.
pub(crate) fn disks(policy: SchedPolicy, depth: u32, allocations: &[Allocation]) -> HostConfig {
    let fnic = Driver::from_module("fnic").expect("it is in the table");
    let mut config = HostConfig {
        name: "esx".into(),
        version: Version::V7_0,
        competition_unit: CompetitionUnit::Vm,
        depth_mode: DepthMode::PathValue,
        throttle_mode: ThrottleMode::Kernel,
        weight_scale_percent: 100,
        adapters: vec![AdapterConfig {
            name: "vmhba1".into(),
            driver: fnic,
            lun_depth: depth,
            depth: 2048,
            timeout_ns: None,
        }],
        devices: Vec::new(),
        paths: Vec::new(),
        vms: Vec::new(),
        vscsi: Vec::new(),
        vdisks: Vec::new(),
    };
    let device = DeviceConfig {
        name: "naa.1".into(),
        kind: DeviceKind::Scsi,
        dsnro: None,
        policy: Some(policy),
        path_policy: PathPolicy::Fixed,
    };
    add_device(&mut config, device, &[(0, PathAccess::Optimized)]);
    for allocation in allocations {
        let disk = (Controller::Pvscsi, 256, 1 << 20, 0, 64, *allocation);
        add_vm(&mut config, (true, true, None, vec![disk]));
    }
    config
}
