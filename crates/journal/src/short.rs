//! A short run of two hosts with an input of every kind, for tests.

use counters::{
    AdapterId, Controller, DeviceId, DeviceKind, HostSnapshot, MILLISECOND, Op, PathId, Recording,
    Sampler, Status, Time, VdiskId, VmId, VscsiId,
};
use engine::{
    AdapterConfig, CompetitionUnit, DepthMode, DeviceConfig, Engine, HostConfig, Input, Output,
    PathAccess, PathConfig, Request, SchedPolicy, ThrottleMode, VdiskConfig, VmConfig, VscsiConfig,
};
use knobs::{Advanced, Allocation, Driver, Knob, PVSCSI_MAX_TRANSFER, PathPolicy, Version};

use std::{
    io::{self, Write},
    sync::Arc,
};

use crate::{Files, Journal, Limits, Look};

const STEPS: u64 = 120;
const STEP_NS: u64 = 50 * MILLISECOND;
/// The time of the last input.
pub(crate) const END: Time = Time((STEPS - 1) * STEP_NS);

/// Two VMs on a device with two paths.
pub(crate) fn host(name: &str) -> HostConfig {
    let path = |index: usize| PathConfig {
        name: format!("vmhba{index}:C0:T0:L0"),
        device: DeviceId(0),
        adapter: AdapterId(0),
        access: if index == 0 { PathAccess::Optimized } else { PathAccess::NonOptimized },
    };
    let vm = |index: u16| VmConfig {
        name: format!("vm{index}"),
        world: 2_100_000 + u32::from(index),
        system: false,
        powered_on: true,
        timeout_ns: Some(100_000_000),
    };
    let vscsi = |vm| VscsiConfig {
        vm: VmId(vm),
        controller: Controller::Pvscsi,
        depth: 8,
        max_transfer: PVSCSI_MAX_TRANSFER,
    };
    let vdisk = |vm| VdiskConfig {
        name: "scsi0:0".into(),
        vm: VmId(vm),
        vscsi: VscsiId(vm),
        device: DeviceId(0),
        depth: 4,
        allocation: Allocation { limit_iops: Some(1000), ..Allocation::default() },
    };
    HostConfig {
        name: name.into(),
        version: Version::V7_0,
        competition_unit: CompetitionUnit::Vm,
        depth_mode: DepthMode::PathValue,
        throttle_mode: ThrottleMode::Kernel,
        weight_scale_percent: 100,
        adapters: vec![AdapterConfig {
            name: "vmhba1".into(),
            driver: Driver::ANY,
            lun_depth: 6,
            depth: 5,
            timeout_ns: Some(20 * STEP_NS),
        }],
        devices: vec![DeviceConfig {
            name: "naa.1".into(),
            kind: DeviceKind::Scsi,
            dsnro: None,
            policy: Some(SchedPolicy::Mclock),
            path_policy: PathPolicy::RoundRobin { iops: 3, bytes: u64::MAX },
        }],
        paths: vec![path(0), path(1)],
        vms: vec![vm(0), vm(1)],
        vscsi: vec![vscsi(0), vscsi(1)],
        vdisks: vec![vdisk(0), vdisk(1)],
    }
}

/// What happens at a step, beside submissions and answers.
fn event(step: u64) -> Input {
    match step % 40 {
        3 => Input::Abort { vdisk: VdiskId(1), tag: step as u32 - 1 },
        7 => Input::Path { path: PathId(1), up: false },
        11 => Input::Path { path: PathId(1), up: true },
        15 => Input::Set(Knob::Advanced { option: Advanced::SchedQuantum, value: 4 }),
        19 => Input::Reset(VdiskId(0)),
        23 => Input::Power { vm: VmId(0), on: false },
        27 => Input::Power { vm: VmId(0), on: true },
        31 => Input::RebootGuest(VmId(1)),
        35 => Input::Reboot,
        _ => Input::Tick,
    }
}

/// The journal of the run.
pub(crate) fn journal() -> Vec<u8> {
    run(0, |hosts| Journal::new(Vec::new(), "short", hosts).unwrap())
}

/// The same in real time, with other numbers for each seed: a segment each second.
pub(crate) fn segments(seed: u64) -> Vec<Vec<u8>> {
    let limits = Limits { epoch_ms: 1_700_000_000_000, segment_bytes: 0 };
    let file = Memory(vec![Vec::new()]);
    run(seed, |hosts| Journal::of_real_time(file, "short", hosts, limits).unwrap()).0
}

/// Segments in memory.
#[derive(Debug)]
pub(crate) struct Memory(pub(crate) Vec<Vec<u8>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.last_mut().map_or(Ok(0), |segment| segment.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Files for Memory {
    fn go_on(&mut self, number: u64) -> io::Result<()> {
        assert_eq!(number, self.0.len() as u64);
        self.0.push(Vec::new());
        Ok(())
    }
}

fn run<W: Write + Send + 'static>(
    seed: u64,
    journal: impl FnOnce(&[HostConfig; 2]) -> Journal<W>,
) -> W {
    let configs = ["a", "b"].map(host);
    let mut engines = configs.each_ref().map(Engine::new);
    let mut out = [Vec::new(), Vec::new()];
    let mut journal = journal(&configs);
    let mut dice = seed;
    for step in 0..STEPS {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed);
        let drawn = dice >> 40;
        let (at, host) = (Time(step * STEP_NS), (step / 2 % 2) as usize);
        let vdisk = VdiskId(step as u16 % 2);
        let op = Op::ALL[(step + drawn) as usize % Op::ALL.len()];
        let (bytes, tag) = (1 << ((step + drawn) % 21), step as u32);
        let request = Request { vdisk, op, lba: step << 30, bytes, waited_ns: step % 3, tag };
        let mut inputs = vec![event(step), Input::Submit(request)];
        let answered = out[host].len().min((step + drawn) as usize % 3);
        inputs.extend(out[host].drain(..answered).map(|io| Input::Done {
            io,
            status: Status::ALL[(step + drawn) as usize % Status::ALL.len()],
            array_ns: step,
        }));
        while let Some(input) = inputs.pop() {
            journal.go_on(&engines);
            journal.input(host, at, &input);
            let _ = engines[host].handle_input(at, input);
            while let Some(output) = engines[host].poll_output() {
                journal.output(host, &output);
                match output {
                    Output::Dispatch(dispatch) => out[host].push(dispatch.io),
                    Output::Cancel { io, .. } => inputs.push(Input::Cancelled { io }),
                    Output::Complete { .. } | Output::Reset { .. } | Output::Event(_) => {}
                }
            }
        }
    }
    for (host, engine) in engines.iter().enumerate() {
        let mut counters = HostSnapshot::default();
        engine.snapshot(END, &mut counters);
        journal.counted(host, &counters);
    }
    journal.finish().unwrap()
}

/// Makes rows of whatever is fed, one for each input.
#[derive(Default)]
pub(crate) struct Rows {
    hosts: Vec<(Sampler, Recording)>,
}

impl Look for Rows {
    fn begin(&mut self, _: Option<u64>, at: Time, hosts: &[(&HostConfig, &Engine)]) {
        for (config, engine) in hosts {
            let mut begin = HostSnapshot::default();
            engine.snapshot(at, &mut begin);
            let has = [begin.vdisks.len(), begin.devices.len(), begin.paths.len()];
            if has == [config.vdisks.len(), config.devices.len(), config.paths.len()]
                && begin.adapters.len() == config.adapters.len()
            {
                let sampler = Sampler::new(config.inventory(), 0, Arc::new(begin));
                let rows = sampler.recording();
                self.hosts.push((sampler, rows));
            }
        }
    }

    fn input(&mut self, host: usize, at: Time, engine: &Engine) {
        let Some((sampler, rows)) = self.hosts.get_mut(host) else { return };
        let mut now = HostSnapshot::default();
        engine.snapshot(at, &mut now);
        sampler.sample(&Arc::new(now), rows);
    }
}
