//! A bench for the tests: recordings made by hand. VMs on devices are described by what esxtop
//! would print for their worlds; the rows of devices, paths, adapters and virtual disks follow.

use std::sync::Arc;

use counters::{Controller, Counter, Entity, EntityId, Kind, Recording};
use levels::Measured;

use crate::{
    Cause, Device, Facts, Finding, Host, LimitFacts, TICKET_LINE, Thresholds, Verdict, diagnose,
    rules::Case,
};

/// A value for each sample.
type Series<T> = Box<dyn Fn(usize) -> T>;

/// One host with one adapter, or one for each path of a device.
pub(crate) struct Bench {
    samples: usize,
    interval_s: i64,
    devices: Vec<DeviceBench>,
    worlds: bool,
    paths: usize,
    adapters: usize,
    path_share: Box<dyn Fn(usize, usize) -> f64>,
    path_davg: Box<dyn Fn(usize) -> f64>,
    adapter_wait_ms: f64,
    aqlen: u32,
    split: Option<(f64, f64)>,
}

/// One device.
pub(crate) struct DeviceBench {
    name: String,
    depth: Series<u32>,
    vms: Vec<VmBench>,
    counters: Vec<(Counter, Series<f64>)>,
}

/// One VM with one virtual disk on the device.
pub(crate) struct VmBench {
    name: String,
    iops: Series<f64>,
    davg: Series<f64>,
    kavg: Series<f64>,
    sampled: Option<Series<u32>>,
    queued: Option<Series<u32>>,
    size_kib: Series<f64>,
    controller: Option<Controller>,
    guest_wait: Option<(f64, f64)>,
    above_ms: f64,
    slot: usize,
    shares: Option<f64>,
    is_cut: bool,
}

/// A device with a world of a VM and one of a process of the host, in samples at these times, without a counter yet.
pub(crate) fn beside_the_host(
    process: &str,
    times_ms: impl Iterator<Item = i64>,
) -> (Recording, [EntityId; 3]) {
    let mut recording = Recording::new("esx1".into());
    recording.times_ms = times_ms.collect();
    let device = recording.add_entity(Entity::new(Kind::Device, "naa.1".into()));
    let vm = recording.add_entity(Entity::new(Kind::Vm, "a".into()));
    let world = |process: Option<&str>, vm| Entity {
        process: process.map(Into::into),
        vm,
        device: Some(device),
        ..Entity::new(Kind::World, "world".into())
    };
    let of_vm = recording.add_entity(world(None, Some(vm)));
    let own = recording.add_entity(world(Some(process), None));
    (recording, [device, of_vm, own])
}

/// A virtual disk is known to have an IOPS limit.
pub(crate) fn limited(disk: &str, limit: u32) -> Facts {
    let known = LimitFacts { iops: Some(limit), at_end: Some(limit), ..LimitFacts::default() };
    Facts { limits: Arc::new([(disk.into(), known)].into()), ..Facts::default() }
}

impl Bench {
    /// A bench of so many samples, 5 s apart unless told otherwise; before them comes esxtop's first one, all zero.
    pub(crate) fn new(samples: usize) -> Self {
        Self {
            samples,
            interval_s: 5,
            devices: Vec::new(),
            worlds: true,
            paths: 1,
            adapters: 1,
            path_share: Box::new(|_, _| 1.0),
            path_davg: Box::new(|_| 1.0),
            adapter_wait_ms: 0.0,
            aqlen: 4_096,
            split: None,
        }
    }

    /// Two VMs on one protocol endpoint [S4]: the array delays one, the other waits for slots.
    pub(crate) fn noisy_neighbour() -> Self {
        let mut bench = Self::new(12);
        let device = bench.device("naa.pe", 32).depth(|s| if s < 2 { 128 } else { 32 });
        let bad = |s: usize| if s < 2 { 0.0 } else { 26.0 };
        device.vm("bad").iops_when(bad).davg(1_230.0).kavg(308.0).size_kib(512.0);
        let held = |s: usize| if s < 2 { 0.0 } else { 330.0 };
        device.vm("good").iops_when(|s| if s < 2 { 1.0 } else { 0.75 }).davg(1.0).kavg_when(held);
        bench
    }

    pub(crate) fn device(&mut self, name: &str, depth: u32) -> &mut DeviceBench {
        self.devices.push(DeviceBench {
            name: name.into(),
            depth: Box::new(move |_| depth),
            vms: Vec::new(),
            counters: Vec::new(),
        });
        self.devices.last_mut().unwrap()
    }

    /// How far apart its samples are.
    pub(crate) fn interval_s(&mut self, seconds: i64) {
        self.interval_s = seconds;
    }

    /// Leaves the rows of worlds out.
    pub(crate) fn without_worlds(&mut self) {
        self.worlds = false;
    }

    pub(crate) fn paths(&mut self, paths: usize) -> &mut Self {
        self.paths = paths;
        self
    }

    /// Gives each path an adapter of its own.
    pub(crate) fn adapter_each(&mut self) -> &mut Self {
        self.adapters = self.paths;
        self
    }

    /// The share of the commands that a path carries in a sample.
    pub(crate) fn path_share(&mut self, share: impl Fn(usize, usize) -> f64 + 'static) {
        self.path_share = Box::new(share);
    }

    /// How many times as long as the device's a path's DAVG is.
    pub(crate) fn path_davg(&mut self, times: impl Fn(usize) -> f64 + 'static) {
        self.path_davg = Box::new(times);
    }

    pub(crate) fn adapter_wait_ms(&mut self, wait: f64) {
        self.adapter_wait_ms = wait;
    }

    pub(crate) fn aqlen(&mut self, aqlen: u32) {
        self.aqlen = aqlen;
    }

    /// The share of commands that are split, and into how many pieces.
    pub(crate) fn split(&mut self, share: f64, pieces: f64) {
        self.split = Some((share, pieces));
    }

    pub(crate) fn diagnose(&self, thresholds: &Thresholds, facts: &Facts) -> Verdict {
        for &cause in Cause::ALL {
            self.check_what_is_read(cause, facts);
        }
        let verdict = diagnose(&Measured::of(self.recording()), thresholds, facts);
        for line in [Some(&verdict.headline), verdict.advice.as_ref()].into_iter().flatten() {
            assert!(line.chars().count() <= TICKET_LINE && !line.contains('\n'), "{line}");
        }
        verdict
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.diagnose(&Thresholds::default(), &Facts::default()).findings
    }

    /// The finding of that cause, which must be the only one but for virtual disks at their depth.
    pub(crate) fn only(&self, cause: Cause, facts: &Facts) -> Finding {
        let findings = self.diagnose(&Thresholds::default(), facts).findings;
        let causes: Vec<_> = findings.iter().map(|finding| finding.cause.key()).collect();
        let others = findings.iter().filter(|finding| finding.cause != Cause::VirtualDiskCap);
        let expected = usize::from(cause != Cause::VirtualDiskCap);
        assert_eq!(others.count(), expected, "{causes:?}");
        self.first(cause, facts)
    }

    /// The first finding of that cause.
    pub(crate) fn first(&self, cause: Cause, facts: &Facts) -> Finding {
        let findings = self.diagnose(&Thresholds::default(), facts).findings;
        let causes: Vec<_> = findings.iter().map(|finding| finding.cause.key()).collect();
        let found = findings.into_iter().find(|finding| finding.cause == cause);
        found.unwrap_or_else(|| panic!("no {} in {causes:?}", cause.key()))
    }

    /// A rule finds the same in what it says that it reads as in everything.
    fn check_what_is_read(&self, cause: Cause, facts: &Facts) {
        let (all, rule) = (self.recording(), cause.rule());
        let mut shown = Recording::new(all.host.clone());
        shown.times_ms.clone_from(&all.times_ms);
        all.entities().iter().for_each(|entity| _ = shown.add_entity(entity.clone()));
        let groups = rule.reads.iter().chain([&Device::COUNTERS]);
        let is_read = |counter| groups.clone().any(|group| group.contains(&counter));
        for (id, counter, values) in all.columns().filter(|column| is_read(column.1)) {
            shown.set_column(id, counter, values.to_vec());
        }
        let thresholds = Thresholds::default();
        let [of_shown, of_all] = [shown, all].map(|recording| {
            let recording = Measured::of(recording);
            let host = Host::observe(&recording, &thresholds, facts);
            (rule.find)(&Case::new(&host, &[], facts))
        });
        assert_eq!(of_shown, of_all, "{} reads more", cause.key());
    }

    pub(crate) fn recording(&self) -> Recording {
        let mut recording = Recording::new("esx01".into());
        recording.times_ms =
            (0..=self.samples).map(|s| 1_000 * self.interval_s * s as i64).collect();
        let mut adapter =
            |number| recording.add_entity(Entity::new(Kind::Adapter, format!("vmhba{number}")));
        let adapters: Vec<EntityId> = (1..=self.adapters).map(&mut adapter).collect();
        for (index, device) in self.devices.iter().enumerate() {
            device.record(self, &mut recording, &adapters, index);
        }
        for (index, adapter) in adapters.into_iter().enumerate() {
            self.record_adapter(&mut recording, adapter, index);
        }
        recording
    }

    /// The part of a device's commands that goes over an adapter.
    fn adapter_share(&self, adapter: usize, sample: usize) -> f64 {
        match self.adapters {
            1 => 1.0,
            _ => (self.path_share)(adapter, sample),
        }
    }

    fn record_adapter(&self, recording: &mut Recording, adapter: EntityId, index: usize) {
        let sum = |sample| {
            let devices = self.devices.iter().map(|device| device.sum(sample));
            devices.fold(Io::default(), Io::add)
        };
        self.record_path(recording, adapter, &sum, &|sample| self.adapter_share(index, sample));
        let column = vec![f64::from(self.aqlen); self.samples + 1];
        recording.set_column(adapter, Counter::AdapterQDepth, column);
        if let Some((share, pieces)) = self.split {
            let rate = |sample| share * sum(sample).rate;
            self.put(recording, adapter, Counter::SplitCommands, &rate);
            self.put(recording, adapter, Counter::SplitCopies, &|s| pieces * rate(s));
        }
    }

    /// A row of a path or adapter: its QAVG is its own wait alone.
    fn record_path(
        &self,
        recording: &mut Recording,
        row: EntityId,
        io: &dyn Fn(usize) -> Io,
        share: &dyn Fn(usize) -> f64,
    ) {
        let scaled = |sample: usize| Io { rate: io(sample).rate * share(sample), ..io(sample) };
        self.record_io(recording, row, &scaled);
        self.put(recording, row, Counter::QueueLatency, &|_| self.adapter_wait_ms);
    }

    fn record_io(&self, recording: &mut Recording, row: EntityId, io: &dyn Fn(usize) -> Io) {
        self.put(recording, row, Counter::Commands, &|s| io(s).rate);
        self.put(recording, row, Counter::Reads, &|s| io(s).rate);
        self.put(recording, row, Counter::MbRead, &|s| io(s).rate * io(s).size_kib / 1024.0);
        self.put(recording, row, Counter::DriverLatency, &|s| io(s).davg);
        self.put(recording, row, Counter::KernelLatency, &|s| io(s).kavg);
        self.put(recording, row, Counter::GuestLatency, &|s| io(s).davg + io(s).kavg);
        self.put(recording, row, Counter::QueueLatency, &|s| io(s).kavg);
    }

    fn put(
        &self,
        recording: &mut Recording,
        row: EntityId,
        counter: Counter,
        value: &dyn Fn(usize) -> f64,
    ) {
        let values = (0..self.samples).map(value);
        recording.set_column(row, counter, std::iter::once(0.0).chain(values).collect());
    }
}

/// The I/O of one row in one sample.
#[derive(Clone, Copy, Debug, Default)]
struct Io {
    rate: f64,
    davg: f64,
    kavg: f64,
    size_kib: f64,
    active: f64,
    queued: f64,
}

impl Io {
    fn add(self, other: Self) -> Self {
        let rate = self.rate + other.rate;
        let mean = |mine: f64, theirs: f64| {
            if rate > 0.0 { (self.rate * mine + other.rate * theirs) / rate } else { 0.0 }
        };
        Self {
            rate,
            davg: mean(self.davg, other.davg),
            kavg: mean(self.kavg, other.kavg),
            size_kib: mean(self.size_kib, other.size_kib),
            active: self.active + other.active,
            queued: self.queued + other.queued,
        }
    }
}

impl DeviceBench {
    pub(crate) fn depth(&mut self, depth: impl Fn(usize) -> u32 + 'static) -> &mut Self {
        self.depth = Box::new(depth);
        self
    }

    pub(crate) fn counter(&mut self, counter: Counter, value: impl Fn(usize) -> f64 + 'static) {
        self.counters.push((counter, Box::new(value)));
    }

    pub(crate) fn vm(&mut self, name: &str) -> &mut VmBench {
        self.vms.push(VmBench {
            name: name.into(),
            iops: Box::new(|_| 0.0),
            davg: Box::new(|_| 0.0),
            kavg: Box::new(|_| 0.0),
            sampled: None,
            queued: None,
            size_kib: Box::new(|_| 8.0),
            controller: Some(Controller::Pvscsi),
            guest_wait: None,
            above_ms: 0.0,
            slot: 1,
            shares: None,
            is_cut: false,
        });
        self.vms.last_mut().unwrap()
    }

    fn sum(&self, sample: usize) -> Io {
        self.vms.iter().map(|vm| vm.io(sample)).fold(Io::default(), Io::add)
    }

    fn record(
        &self,
        bench: &Bench,
        recording: &mut Recording,
        adapters: &[EntityId],
        index: usize,
    ) {
        let row = recording.add_entity(Entity::new(Kind::Device, self.name.clone()));
        self.record_queue(bench, recording, row, &|sample| self.sum(sample));
        for counter in [Counter::Aborts, Counter::FailedCommands, Counter::Conflicts] {
            bench.put(recording, row, counter, &|_| 0.0);
        }
        for (counter, value) in &self.counters {
            bench.put(recording, row, *counter, value);
        }
        for path in 0..bench.paths {
            let adapter = path % adapters.len();
            let name = format!("vmhba{}:C0:T{path}:L{index}", adapter + 1);
            let mut entity = Entity::new(Kind::Path, name);
            entity.device = Some(row);
            entity.adapter = Some(adapters[adapter]);
            let id = recording.add_entity(entity);
            let share = |sample| (bench.path_share)(path, sample);
            let io = |sample| {
                let sum = self.sum(sample);
                Io { davg: sum.davg * (bench.path_davg)(path), ..sum }
            };
            bench.record_path(recording, id, &io, &share);
        }
        for vm in self.vms.iter().filter(|vm| !vm.is_cut) {
            vm.record(self, bench, recording, row);
        }
    }

    fn record_queue(
        &self,
        bench: &Bench,
        recording: &mut Recording,
        row: EntityId,
        io: &dyn Fn(usize) -> Io,
    ) {
        let depth = |sample: usize| f64::from((self.depth)(sample));
        bench.record_io(recording, row, io);
        let first = depth(0);
        bench.put(recording, row, Counter::ActiveCommands, &|s| io(s).active.round().min(depth(s)));
        bench.put(recording, row, Counter::QueuedCommands, &|s| {
            io(s).queued.round() + (io(s).active.round() - depth(s)).max(0.0)
        });
        let depths = std::iter::once(first).chain((0..bench.samples).map(depth)).collect();
        recording.set_column(row, Counter::DeviceQDepth, depths);
    }
}

impl VmBench {
    pub(crate) fn iops(&mut self, iops: f64) -> &mut Self {
        self.iops_when(move |_| iops)
    }

    pub(crate) fn iops_when(&mut self, iops: impl Fn(usize) -> f64 + 'static) -> &mut Self {
        self.iops = Box::new(iops);
        self
    }

    pub(crate) fn davg(&mut self, davg: f64) -> &mut Self {
        self.davg_when(move |_| davg)
    }

    pub(crate) fn davg_when(&mut self, davg: impl Fn(usize) -> f64 + 'static) -> &mut Self {
        self.davg = Box::new(davg);
        self
    }

    pub(crate) fn kavg(&mut self, kavg: f64) -> &mut Self {
        self.kavg_when(move |_| kavg)
    }

    pub(crate) fn kavg_when(&mut self, kavg: impl Fn(usize) -> f64 + 'static) -> &mut Self {
        self.kavg = Box::new(kavg);
        self
    }

    /// ACTV + QUED at the instants of the samples; by default what Little's law gives.
    pub(crate) fn sampled(&mut self, sampled: impl Fn(usize) -> u32 + 'static) -> &mut Self {
        self.sampled = Some(Box::new(sampled));
        self
    }

    /// QUED at the instants of the samples.
    pub(crate) fn queued(&mut self, queued: impl Fn(usize) -> u32 + 'static) -> &mut Self {
        self.queued = Some(Box::new(queued));
        self
    }

    pub(crate) fn size_kib(&mut self, size_kib: f64) -> &mut Self {
        self.size_kib_when(move |_| size_kib)
    }

    pub(crate) fn size_kib_when(&mut self, size_kib: impl Fn(usize) -> f64 + 'static) -> &mut Self {
        self.size_kib = Box::new(size_kib);
        self
    }

    pub(crate) fn controller(&mut self, controller: Controller) -> &mut Self {
        self.controller = Some(controller);
        self
    }

    /// The shares of its world.
    pub(crate) fn shares(&mut self, shares: f64) -> &mut Self {
        self.shares = Some(shares);
        self
    }

    /// Its place on the virtual adapter `scsi0`.
    pub(crate) fn slot(&mut self, slot: usize) -> &mut Self {
        self.slot = slot;
        self
    }

    /// Leaves its rows out of the recording; the device still has its commands.
    pub(crate) fn cut_out(&mut self) -> &mut Self {
        self.is_cut = true;
        self
    }

    /// What the virtual disk waits above the VMkernel's queues.
    pub(crate) fn above_ms(&mut self, above_ms: f64) -> &mut Self {
        self.above_ms = above_ms;
        self
    }

    pub(crate) fn guest_wait(&mut self, wait_ms: f64, queued: f64) -> &mut Self {
        self.guest_wait = Some((wait_ms, queued));
        self
    }

    fn io(&self, sample: usize) -> Io {
        let (rate, davg, kavg) = ((self.iops)(sample), (self.davg)(sample), (self.kavg)(sample));
        let sampled = self.sampled.as_ref().map(|sampled| f64::from(sampled(sample)));
        Io {
            rate,
            davg,
            kavg,
            size_kib: (self.size_kib)(sample),
            active: sampled.unwrap_or(rate * davg / 1000.0),
            queued: match &self.queued {
                Some(queued) => f64::from(queued(sample)),
                None if sampled.is_some() => 0.0,
                None => rate * kavg / 1000.0,
            },
        }
    }

    fn record(
        &self,
        device: &DeviceBench,
        bench: &Bench,
        recording: &mut Recording,
        row: EntityId,
    ) {
        let vm = recording.find(Kind::Vm, &self.name);
        let vm =
            vm.unwrap_or_else(|| recording.add_entity(Entity::new(Kind::Vm, self.name.clone())));
        if bench.worlds {
            let mut world = Entity::new(Kind::World, format!("{}-{}", device.name, vm.0));
            (world.device, world.vm) = (Some(row), Some(vm));
            let world = recording.add_entity(world);
            device.record_queue(bench, recording, world, &|sample| self.io(sample));
            if let Some(shares) = self.shares {
                bench.put(recording, world, Counter::Shares, &|_| shares);
            }
            // What a device's commands wait in no queue they do not wait in their worlds' either.
            for (counter, value) in &device.counters {
                if *counter == Counter::QueueLatency {
                    bench.put(recording, world, *counter, value);
                }
            }
        }
        let mut disk = Entity::new(Kind::VirtualDisk, format!("{}:scsi0:{}", self.name, self.slot));
        (disk.device, disk.vm, disk.controller) = (Some(row), Some(vm), self.controller);
        let disk = recording.add_entity(disk);
        let latency = |sample| self.io(sample).davg + self.io(sample).kavg + self.above_ms;
        bench.put(recording, disk, Counter::Commands, &|s| self.io(s).rate);
        bench.put(recording, disk, Counter::Reads, &|s| self.io(s).rate);
        bench.put(recording, disk, Counter::VdiskReadLatency, &latency);
        if let Some((wait_ms, queued)) = self.guest_wait {
            bench.put(recording, disk, Counter::GuestWait, &|_| wait_ms);
            bench.put(recording, disk, Counter::MeanGuestQueued, &|_| queued);
        }
    }
}
