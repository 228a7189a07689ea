//! Captures with causes planted by formulas, not by our engine: what Little's law and the
//! published rules say that esxtop must show. They have what the simulator cannot make (Storage
//! I/O Control, NFS, timeouts, limits above the VMkernel, long tails, holes, missing rows), and
//! they keep the diagnosis from only inverting the model.
//!
//! A family plants one thing, or something that is no problem though it looks like one; the seed
//! draws its numbers.

use counters::{Controller, Counter, Entity, EntityId, Kind, Recording};
use diagnose::{Cause, Facts, Thresholds, diagnose};

use super::{draw::Draw, score::Score, through_esxtop, truth::Truth};

/// A value for each sample.
type Series<'a> = &'a dyn Fn(&mut Draw, usize) -> f64;

/// What a VM does on a device in one sample, as esxtop shows it.
#[derive(Clone, Copy, Default)]
struct Io {
    rate: f64,
    davg: f64,
    wait: f64,
    kib: f64,
    /// ACTV and QUED at the instant of the sample, where they are not rate times latency.
    caught: Option<[f64; 2]>,
    /// Wait that only the virtual disk shows.
    above: f64,
}

impl Io {
    /// `rate` commands a second of 8 KiB, each answered in `davg` milliseconds.
    fn of(rate: f64, davg: f64) -> Self {
        Self { rate, davg, kib: 8.0, ..Self::default() }
    }

    /// `total` commands outstanding on a queue of `depth` before an array that takes `davg`.
    fn closed(depth: f64, total: f64, davg: f64) -> Self {
        let inside = depth.min(total);
        let rate = inside * 1_000.0 / davg;
        Self { wait: (total - inside) * 1_000.0 / rate, ..Self::of(rate, davg) }
    }
}

/// A host in the making: one adapter, and devices that are planted one after the other.
pub(crate) struct Plant {
    draw: Draw,
    samples: usize,
    recording: Recording,
    adapter: EntityId,
    total: Vec<Io>,
    truth: Truth,
    devices: usize,
}

type Family = fn(&mut Plant);

/// Every family; in those called healthy, nothing is wrong.
const FAMILIES: [(&str, Family); 25] = [
    ("dsnro-two-levels", Plant::dsnro_two_levels),
    ("device-depth", Plant::device_depth),
    ("device-depth-window", Plant::device_depth_window),
    ("virtual-disk-64", |plant| plant.disk_cap(Some(Controller::Pvscsi), 64.0)),
    ("virtual-disk-254", |plant| plant.disk_cap(Some(Controller::Pvscsi), 254.0)),
    ("virtual-disk-32", |plant| plant.disk_cap(Some(Controller::LsiSas), 32.0)),
    ("virtual-disk-unknown", |plant| plant.disk_cap(None, 32.0)),
    ("iops-limit", |plant| plant.iops_limit(false)),
    ("iops-limit-above", |plant| plant.iops_limit(true)),
    ("qos-follows", Plant::qos_follows),
    ("array-slow", Plant::array_slow),
    ("nfs-slow", Plant::nfs_slow),
    ("sioc", Plant::sioc),
    ("throttling", Plant::throttling),
    ("timeouts", Plant::timeouts),
    ("silence-throughout", Plant::silence_throughout),
    ("conflicts", Plant::conflicts),
    ("healthy-backup", Plant::backup),
    ("healthy-tail", Plant::tail),
    ("healthy-day", Plant::day),
    ("healthy-nfs", Plant::nfs_fine),
    ("healthy-paced", Plant::paced),
    ("healthy-cache", Plant::cache_and_disks),
    ("healthy-one-sample", Plant::one_sample),
    ("healthy-two-limits", Plant::two_limits),
];

/// All families for some seeds.
pub(crate) fn score(seeds: std::ops::Range<u64>) -> Score {
    let mut score = Score::default();
    for ((name, family), seed) in
        FAMILIES.iter().flat_map(|family| seeds.clone().map(move |seed| (family, seed)))
    {
        let case = format!("planted/{name}/{seed}");
        let mut plant = Plant::new(&case, seed);
        family(&mut plant);
        let (recording, truth) = plant.finish();
        let recording = through_esxtop(&recording);
        let verdict = diagnose(&recording, &Thresholds::default(), &Facts::default());
        score.count(&case, &truth, &verdict);
    }
    score
}

impl Plant {
    fn new(name: &str, seed: u64) -> Self {
        let mut draw = Draw::new(name, seed);
        let samples = *draw.one(&[12, 24, 40, 60, 120, 600]);
        let interval_s = *draw.one(&[2, 5, 10, 20, 60]);
        let mut recording = Recording::new("esx".into());
        recording.times_ms =
            (0..samples as i64).map(|s| 1_700_000_000_000 + s * interval_s * 1_000).collect();
        let adapter = recording.add_entity(Entity::new(Kind::Adapter, "vmhba1".into()));
        let total = vec![Io::default(); samples];
        Self { draw, samples, recording, adapter, total, truth: Truth::new(), devices: 0 }
    }

    fn finish(mut self) -> (Recording, Truth) {
        let total = std::mem::take(&mut self.total);
        self.rates(self.adapter, &total, false);
        (self.recording, self.truth)
    }

    /// A device; returns its row and its name.
    fn device(&mut self, depth: Series<'_>) -> (EntityId, String) {
        self.devices += 1;
        let name = format!("naa.6000000000000000000000000000000{}", self.devices);
        let row = self.recording.add_entity(Entity::new(Kind::Device, name.clone()));
        self.put(row, Counter::DeviceQDepth, depth);
        (row, name)
    }

    /// The load of VMs on a device, their worlds and virtual disks, and the rows of the device.
    fn load(&mut self, row: EntityId, controller: Option<Controller>, vms: &[(&str, Vec<Io>)]) {
        let mut sum = vec![Io::default(); self.samples];
        for (vm, load) in vms {
            let id = self.recording.add_entity(Entity::new(Kind::Vm, (*vm).into()));
            let world = format!("{}-{}", self.recording.entity(row).name, 2_100_000 + id.0);
            let mut world = Entity::new(Kind::World, world);
            (world.device, world.vm) = (Some(row), Some(id));
            let world = self.recording.add_entity(world);
            self.queue(world, load);
            self.rates(world, load, true);
            let mut disk = Entity::new(Kind::VirtualDisk, format!("{vm}:scsi0:0"));
            (disk.device, disk.vm, disk.controller) = (Some(row), Some(id), controller);
            let disk = self.recording.add_entity(disk);
            self.disk(disk, load);
            sum = sum.iter().zip(load).map(|(a, b)| add(*a, *b)).collect();
        }
        self.queue(row, &sum);
        self.rates(row, &sum, true);
        let mut path = Entity::new(Kind::Path, format!("vmhba1:C0:T0:L{}", self.devices));
        (path.device, path.adapter) = (Some(row), Some(self.adapter));
        let path = self.recording.add_entity(path);
        self.rates(path, &sum, false);
        self.total = self.total.iter().zip(&sum).map(|(a, b)| add(*a, *b)).collect();
    }

    /// ACTV and QUED: what was caught, or rate times latency, shaken as an instant is.
    fn queue(&mut self, row: EntityId, load: &[Io]) {
        let shaken: Vec<[f64; 2]> = load
            .iter()
            .map(|io| {
                let mut shake = |mean: f64| (mean * (0.97 + 0.05 * self.draw.unit())).round();
                io.caught.unwrap_or([
                    shake(io.rate * io.davg / 1_000.0),
                    shake(io.rate * io.wait / 1_000.0),
                ])
            })
            .collect();
        self.put(row, Counter::ActiveCommands, &|_, s| shaken[s][0]);
        self.put(row, Counter::QueuedCommands, &|_, s| shaken[s][1]);
    }

    /// Rates and latencies of a row; `waits` is whether the device queue's wait is in its QAVG.
    fn rates(&mut self, row: EntityId, load: &[Io], waits: bool) {
        let mut put = |counter, value: &dyn Fn(&Io) -> f64| {
            self.recording.set_column(row, counter, load.iter().map(value).collect());
        };
        put(Counter::Commands, &|io| io.rate);
        put(Counter::Reads, &|io| io.rate);
        put(Counter::MbRead, &|io| io.rate * io.kib / 1_024.0);
        put(Counter::DriverLatency, &|io| io.davg);
        put(Counter::KernelLatency, &|io| io.wait + 0.01);
        put(Counter::GuestLatency, &|io| io.davg + io.wait + 0.01);
        put(Counter::QueueLatency, &|io| if waits { io.wait } else { 0.0 });
    }

    fn disk(&mut self, disk: EntityId, load: &[Io]) {
        let column = |value: &dyn Fn(&Io) -> f64| load.iter().map(value).collect();
        self.recording.set_column(disk, Counter::Commands, column(&|io| io.rate));
        self.recording.set_column(disk, Counter::Reads, column(&|io| io.rate));
        let latency = column(&|io| io.davg + io.wait + io.above + 0.01);
        self.recording.set_column(disk, Counter::VdiskReadLatency, latency);
    }

    fn put(&mut self, row: EntityId, counter: Counter, value: Series<'_>) {
        let column = (0..self.samples).map(|sample| value(&mut self.draw, sample)).collect();
        self.recording.set_column(row, counter, column);
    }

    /// The load of each sample.
    fn each(&mut self, io: impl Fn(&mut Draw, usize) -> Io) -> Vec<Io> {
        (0..self.samples).map(|sample| io(&mut self.draw, sample)).collect()
    }

    fn is(&mut self, cause: Cause, at: &str) {
        self.truth.insert((cause, at.into()), true);
    }

    fn may_be(&mut self, cause: Cause, at: &str) {
        self.truth.entry((cause, at.into())).or_insert(false);
    }
}

/// The sum of two loads: rates add up, latencies are the mean over commands.
fn add(a: Io, b: Io) -> Io {
    let rate = a.rate + b.rate;
    let mean = |a_ms: f64, b_ms: f64| {
        if rate > 0.0 { (a.rate * a_ms + b.rate * b_ms) / rate } else { 0.0 }
    };
    let caught =
        |io: Io| io.caught.unwrap_or([io.rate * io.davg / 1_000.0, io.rate * io.wait / 1_000.0]);
    let any = a.caught.is_some() || b.caught.is_some();
    let both = [0, 1].map(|index| (caught(a)[index] + caught(b)[index]).round());
    Io {
        rate,
        davg: mean(a.davg, b.davg),
        wait: mean(a.wait, b.wait),
        kib: mean(a.kib, b.kib),
        caught: any.then_some(both),
        above: 0.0,
    }
}

mod families;
