//! A host watched over time: each row's counters, with the noise that samples and short intervals
//! have.
//!
//! Where a wait shows is section 5.4 of esxi-host-stack.md: waiting for a slot of the device counts
//! in the QAVG of device and world, and at paths and adapters in KAVG alone; their QAVG has only
//! what waits there.

use super::host::{Demand, DeviceNow, FlowNow, Host, Moment};
use super::queue::{self, Served};
use super::random::Random;

/// What one object did in one interval. Latencies are sums over its commands (ms per second), so
/// that objects add up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Io {
    pub(super) reads: f64,
    pub(super) writes: f64,
    pub(super) mib_read: f64,
    pub(super) mib_written: f64,
    pub(super) driver: f64,
    pub(super) kernel: f64,
    /// Waiting for a slot of the device.
    pub(super) device_queue: f64,
    /// Waiting for a slot of the adapter.
    pub(super) adapter_queue: f64,
    pub(super) reserves: f64,
    pub(super) conflicts: f64,
    pub(super) aborts: f64,
    pub(super) resets: f64,
    pub(super) failed: f64,
    pub(super) split: f64,
    pub(super) active: f64,
    pub(super) queued: f64,
    pub(super) depth: f64,
}

impl Io {
    pub(super) fn commands(&self) -> f64 {
        self.reads + self.writes
    }

    /// A part of it, as one path of several has it.
    fn part(&self, share: f64) -> Self {
        let mut part = *self;
        for value in part.values() {
            *value *= share;
        }
        part
    }

    pub(super) fn add(&mut self, mut other: Self) {
        for (sum, value) in self.values().into_iter().zip(other.values()) {
            *sum += *value;
        }
    }

    fn values(&mut self) -> [&mut f64; 16] {
        [
            &mut self.reads,
            &mut self.writes,
            &mut self.mib_read,
            &mut self.mib_written,
            &mut self.driver,
            &mut self.kernel,
            &mut self.device_queue,
            &mut self.adapter_queue,
            &mut self.reserves,
            &mut self.conflicts,
            &mut self.aborts,
            &mut self.resets,
            &mut self.failed,
            &mut self.split,
            &mut self.active,
            &mut self.queued,
        ]
    }
}

/// One row of the file.
pub(super) struct Row {
    /// Per device, per VM that is on it.
    pub(super) worlds: Vec<Vec<Io>>,
    pub(super) devices: Vec<Io>,
    pub(super) paths: Vec<Vec<Io>>,
    pub(super) adapters: Vec<Io>,
    /// Per flow; its latency is what the virtual SCSI adapter sees.
    pub(super) disks: Vec<Io>,
    /// What the arithmetic says, before the noise: per flow.
    pub(super) served: Vec<Served>,
}

/// What happens to the host in a row.
pub(super) type Effect = Box<dyn Fn(usize, &mut Moment)>;

/// The VMs on a device, in the order of their worlds.
pub(super) fn vms_on(host: &Host, device: usize) -> Vec<usize> {
    let mut vms: Vec<usize> = host.flows_of(device).map(|flow| host.flows[flow].vm).collect();
    vms.sort_unstable();
    vms.dedup();
    vms
}

/// Watches the host.
pub(super) fn record(host: &Host, effects: &[Effect], random: &mut Random) -> Vec<Row> {
    (0..host.rows)
        .map(|row| {
            let mut moment = host.moment();
            for effect in effects {
                effect(row, &mut moment);
            }
            vary(host, &mut moment, random);
            watch(host, &mut moment, random)
        })
        .collect()
}

/// Load is never the same twice, but for the load generators that are.
fn vary(host: &Host, moment: &mut Moment, random: &mut Random) {
    for (flow, now) in host.flows.iter().zip(&mut moment.flows) {
        let factor = (flow.varies * random.normal()).exp();
        now.demand = match now.demand {
            Demand::Open(iops) => Demand::Open(iops * factor),
            Demand::Closed(threads) => Demand::Closed((threads * factor).round().max(1.0)),
        };
    }
}

fn watch(host: &Host, moment: &mut Moment, random: &mut Random) -> Row {
    let served = solve(host, moment);
    let mut row = Row {
        worlds: Vec::new(),
        devices: Vec::new(),
        paths: Vec::new(),
        adapters: vec![Io::default(); host.adapters.len()],
        disks: vec![Io::default(); host.flows.len()],
        served,
    };
    for device in 0..host.devices.len() {
        let now = &moment.devices[device];
        let (worlds, depth) = sample_device(host, moment, device, &mut row, random);
        let mut total = Io::default();
        worlds.iter().for_each(|world| total.add(*world));
        total.depth = depth;
        let each = now.shares.iter().zip(&now.adapters_ms);
        let path = |(share, wait_ms): (&f64, &f64)| {
            let mut io = total.part(*share);
            let more_ms = io.commands() * (wait_ms - now.adapter_ms());
            (io.adapter_queue, io.kernel) = (io.adapter_queue + more_ms, io.kernel + more_ms);
            io
        };
        let paths: Vec<Io> = each.map(path).collect();
        for (path, io) in host.devices[device].paths.iter().zip(&paths) {
            row.adapters[path.adapter].add(*io);
        }
        row.paths.push(paths);
        row.devices.push(total);
        row.worlds.push(worlds);
    }
    row
}

/// Rates and times of every flow: device by device, and the adapters' slots over all of them.
fn solve(host: &Host, moment: &mut Moment) -> Vec<Served> {
    let mut served = serve_all(host, moment);
    for adapter in 0..host.adapters.len() {
        let slots = f64::from(host.adapters[adapter].depth);
        if in_driver(host, moment, &served, adapter) <= slots {
            continue;
        }
        let (mut low, mut high) = (0.0, 2000.0);
        for _ in 0..30 {
            let wait_ms = (low + high) / 2.0;
            for (device, now) in host.devices.iter().zip(&mut moment.devices) {
                let waits = device.paths.iter().zip(&mut now.adapters_ms);
                let waits = waits.filter(|(path, _)| path.adapter == adapter);
                waits.for_each(|(_, own_ms)| *own_ms = wait_ms);
            }
            served = serve_all(host, moment);
            if in_driver(host, moment, &served, adapter) > slots {
                low = wait_ms;
            } else {
                high = wait_ms;
            }
        }
    }
    served
}

fn share(device: &super::host::Device, now: &DeviceNow, adapter: usize) -> f64 {
    let paths = device.paths.iter().zip(&now.shares);
    paths.filter(|(path, _)| path.adapter == adapter).map(|(_, share)| share).sum()
}

/// Commands that an adapter's driver has.
fn in_driver(host: &Host, moment: &Moment, served: &[Served], adapter: usize) -> f64 {
    let flows = host.flows.iter().zip(served);
    flows
        .map(|(flow, served)| {
            let now = &moment.devices[flow.device];
            let driver_ms = (served.davg_ms - now.adapter_ms()).max(0.0);
            share(&host.devices[flow.device], now, adapter) * served.iops * driver_ms / 1e3
        })
        .sum()
}

fn serve_all(host: &Host, moment: &Moment) -> Vec<Served> {
    let mut served = vec![Served::default(); host.flows.len()];
    for device in 0..host.devices.len() {
        let indices: Vec<usize> = host.flows_of(device).collect();
        let flows: Vec<&FlowNow> = indices.iter().map(|flow| &moment.flows[*flow]).collect();
        let now = &moment.devices[device];
        let wide = f64::from(now.depth.min(now.takes));
        let mut answers = queue::serve(now, wide, &flows);
        if now.competes && compete(host, &indices, &answers) {
            let narrow = wide.min(f64::from(host.devices[device].dsnro));
            answers = queue::serve(now, narrow, &flows);
        }
        for (flow, answer) in indices.iter().zip(answers) {
            served[*flow] = answer;
        }
    }
    served
}

/// More than one VM is active: the busiest one's run is below 128 commands (section 2.3).
fn compete(host: &Host, flows: &[usize], served: &[Served]) -> bool {
    let mut rates: Vec<(usize, f64)> = Vec::new();
    for (flow, served) in flows.iter().zip(served) {
        let vm = host.flows[*flow].vm;
        match rates.iter_mut().find(|(other, _)| *other == vm) {
            Some((_, rate)) => *rate += served.iops,
            None => rates.push((vm, served.iops)),
        }
    }
    let most = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let all: f64 = rates.iter().map(|(_, rate)| rate).sum();
    all - most > most / 128.0
}

/// The worlds of a device in this row, and its DQLEN.
fn sample_device(
    host: &Host,
    moment: &Moment,
    device: usize,
    row: &mut Row,
    random: &mut Random,
) -> (Vec<Io>, f64) {
    let now = &moment.devices[device];
    let indices: Vec<usize> = host.flows_of(device).collect();
    let answers: Vec<Served> = indices.iter().map(|flow| row.served[*flow]).collect();
    let competing = now.competes && compete(host, &indices, &answers);
    let dsnro = if competing { host.devices[device].dsnro } else { u32::MAX };
    let depth = f64::from(now.depth.min(dsnro));
    let vms = vms_on(host, device);
    let mut worlds = vec![Io::default(); vms.len()];
    let all: f64 = answers.iter().map(|answer| answer.iops).sum();
    let is_capped = now.cap_iops.is_some_and(|cap| reaches(all, cap));
    let mut free = depth;
    for (flow, answer) in indices.iter().zip(&answers) {
        let mut io = sample_flow(host, moment, *flow, answer, is_capped, random);
        io.active = io.active.min(free);
        free -= io.active;
        let world = vms.iter().position(|vm| *vm == host.flows[*flow].vm).unwrap_or(0);
        row.disks[*flow] = io;
        worlds[world].add(io);
    }
    if let Some(first) = worlds.first_mut() {
        let interval_s = f64::from(host.interval_s);
        first.reserves += random.count(now.reserves * interval_s) / interval_s;
        first.conflicts += random.count(now.conflicts * interval_s) / interval_s;
        first.aborts += random.count(now.aborts * interval_s) / interval_s;
        first.resets += random.count(now.resets * interval_s) / interval_s;
    }
    (worlds, depth)
}

/// Whether a limit is what sets a rate.
fn reaches(iops: f64, cap: f64) -> bool {
    iops > 0.97 * cap
}

/// One flow's counters in this row. Who is held to a rate has as many commands in each interval, one more
/// or less, and so has each flow of a device that is held as a whole: commands are let through as
/// they came (array-and-control.md 6.4: FIFO per volume), and in a closed loop each comes again.
fn sample_flow(
    host: &Host,
    moment: &Moment,
    flow: usize,
    served: &Served,
    is_capped: bool,
    random: &mut Random,
) -> Io {
    let wants = &moment.flows[flow];
    let now = &moment.devices[host.flows[flow].device];
    if now.silent {
        return stuck(wants, now, f64::from(host.interval_s));
    }
    let interval_s = f64::from(host.interval_s);
    let held = wants.limit_iops.or(wants.qos_iops);
    let even = is_capped || held.is_some_and(|cap| reaches(served.iops, cap));
    let mean = served.iops * interval_s;
    let commands =
        if even { (mean + random.between(-1.0, 1.0)).round() } else { random.count(mean) };
    let given = served.capped || matches!(wants.demand, Demand::Closed(_));
    let late = if given {
        // What is outstanding is given, so a row with fewer commands has later ones (Little), but
        // for those that are on their way when it begins and ends.
        let edge = served.outstanding() / commands.max(1.0);
        mean / commands.max(1.0) * (1.0 + (0.3 * edge).min(0.1) * random.normal())
    } else {
        1.0 + random.normal() * (0.01 + 0.3 / commands.max(1.0).sqrt()).min(0.3)
    };
    let rate = commands.max(0.0) / interval_s;
    let reads = (commands * wants.reads).round().min(commands).max(0.0) / interval_s;
    let overhead_ms = queue::OVERHEAD_MS * random.between(0.0, 2.0);
    let wait_ms = (served.wait_ms + served.hold_ms) * late;
    let kernel_ms = wait_ms + now.adapter_ms() + now.kernel_ms + overhead_ms;
    let driver_ms = (served.stack_ms(now) * late - kernel_ms).max(0.02);
    let mut io = Io {
        reads,
        writes: rate - reads,
        mib_read: reads * wants.kib / 1024.0,
        mib_written: (rate - reads) * wants.kib / 1024.0,
        driver: rate * driver_ms,
        kernel: rate * kernel_ms,
        device_queue: rate * wait_ms,
        adapter_queue: rate * now.adapter_ms(),
        failed: rate * now.failed,
        split: rate * now.split,
        ..Io::default()
    };
    (io.active, io.queued) = instant(wants, served, random);
    let (held_back, held_ms) = now.late;
    if held_back > 0.0 && rate > 0.0 {
        io.driver += held_back * held_ms / interval_s;
        io.reads += held_back / interval_s;
    }
    io
}

/// What is on its way at the moment of the sample: whole commands, never above the limit. Of 32 that
/// are always there a sample shows 29 to 32 [S0].
fn instant(wants: &FlowNow, served: &Served, random: &mut Random) -> (f64, f64) {
    let mean = served.active();
    let waits = served.queued();
    if waits > 0.5 {
        let queued = (waits + random.normal() * waits.sqrt() * 0.4).round().max(0.0);
        return (mean.round(), queued);
    }
    let active = match wants.demand {
        Demand::Open(_) => random.count(mean).min(wants.limit),
        Demand::Closed(_) => (mean * random.between(29.0, 32.4) / 32.0).round().min(wants.limit),
    };
    (active, 0.0)
}

/// Nothing completes: what was sent stays, and arrivals pile up to what the guest lets through.
fn stuck(wants: &FlowNow, now: &DeviceNow, interval_s: f64) -> Io {
    let sent = match wants.demand {
        Demand::Closed(threads) => threads.min(wants.limit),
        Demand::Open(iops) => (iops * interval_s).min(wants.limit).round(),
    };
    let active = sent.min(f64::from(now.depth));
    Io { active, queued: sent - active, ..Io::default() }
}
