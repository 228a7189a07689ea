//! One run of a scenario, and the counters of it that stand beside those of the recording.

use std::thread;

use counters::{Counter, EntityId, Kind, Recording};
use knobs::Setting;
use levels::{Column, Measured, most_first};
use scenario::Scenario;

use crate::{
    Error, names,
    observe::{Device, Tenant},
    rows::Row,
};

/// The file that a refusal names.
const FILE: &str = "model.toml";
/// VMs that are shown, the busiest first.
const VMS_MAX: usize = 12;
/// Part of all commands from which a VM is shown: who sends few may lose most.
const PART: f64 = 0.001;

/// What the mean of a depth that stands still is away from it, for its arithmetic.
pub(crate) const STILL: f64 = 1e-6;

/// Counters of a device, with the names and units of their rows.
const OF_DEVICE: [(Counter, &str, &str); 7] = [
    (Counter::Commands, "CMDS/s", "1/s"),
    (Counter::GuestLatency, "GAVG/cmd", "ms"),
    (Counter::KernelLatency, "KAVG/cmd", "ms"),
    (Counter::DriverLatency, "DAVG/cmd", "ms"),
    (Counter::DeviceQDepth, "DQLEN", ""),
    (Counter::MeanActive, "ACTV", ""),
    (Counter::MeanQueued, "QUED", ""),
];
const OF_VM: [(Counter, &str, &str); 2] =
    [(Counter::Commands, "CMDS/s", "1/s"), (Counter::GuestLatency, "GAVG/cmd", "ms")];

/// A counter of an object, as the recording and the scenario name it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) object: String,
    simulated: String,
    kind: Kind,
    counter: Counter,
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) captured: Option<f64>,
    /// What chance alone does to the captured mean, as a part of it.
    pub(crate) chance: f64,
    /// What it was at the depth that is asked for, if a load that may be the same was seen there.
    pub(crate) seen: Option<Seen>,
    /// What it was at a depth between that of the window and the one that is asked for, if that was tried.
    pub(crate) between: Option<Seen>,
}

/// A counter at another depth than the window's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    mean: f64,
    /// The least of a sample.
    least: f64,
    /// What chance does to it, as a part of it.
    chance: f64,
    /// Whether that was right beside the window, and of all its VMs: a change that was tried.
    pub(crate) is_tried: bool,
}

impl Key {
    fn new(
        (object, simulated, kind): (&str, &str, Kind),
        (counter, name, unit): (Counter, &'static str, &'static str),
        (captured, chance): (Option<f64>, f64),
    ) -> Self {
        let (object, simulated) = (object.to_owned(), simulated.to_owned());
        Self {
            object,
            simulated,
            kind,
            counter,
            name,
            unit,
            captured,
            chance,
            seen: None,
            between: None,
        }
    }

    pub(crate) fn is_device(&self) -> bool {
        self.kind != Kind::Vm
    }

    /// Whether it is one of the two by which a device is judged: its rate and its whole latency.
    pub(crate) fn is_total(&self) -> bool {
        self.is(Counter::Commands) || self.is(Counter::GuestLatency)
    }

    /// Whether it is that counter of that device.
    pub(crate) fn is_of(&self, device: &Device<'_>, counter: Counter) -> bool {
        self.is_device() && self.object == device.name && self.counter == counter
    }

    pub(crate) fn is(&self, counter: Counter) -> bool {
        self.counter == counter
    }

    /// Between which it was at the depth that is asked for, if it was seen there.
    pub(crate) fn seen_between(&self, rounding: f64) -> Option<[f64; 2]> {
        self.around(self.seen?, rounding).into()
    }

    /// The same at a depth on the way there.
    pub(crate) fn between(&self, rounding: f64) -> Option<[f64; 2]> {
        self.around(self.between?, rounding).into()
    }

    /// The least of a sample at that depth.
    pub(crate) fn least_between(&self) -> Option<f64> {
        Some(self.between?.least)
    }

    fn around(&self, Seen { mean, chance, .. }: Seen, rounding: f64) -> [f64; 2] {
        let margin = match self.is(Counter::DeviceQDepth) {
            true => 0.0,
            false => chance + rounding,
        };
        [mean * (1.0 - margin), mean * (1.0 + margin)]
    }

    /// Whether it is the rate of that VM.
    pub(crate) fn is_rate_of(&self, vm: &str) -> bool {
        !self.is_device() && self.object == vm && self.is(Counter::Commands)
    }
}

/// The counters of the devices and of their busiest VMs, with what the recording has over the
/// window.
pub(crate) fn keys(
    recording: &Measured,
    devices: &[Device<'_>],
    names: &[(String, String)],
    window: &[usize],
) -> Vec<Key> {
    let mut keys = Vec::new();
    for device in devices {
        let kind = if device.is_nfs { Kind::NfsVolume } else { Kind::Device };
        let of = (device.name.as_str(), &*names::device_name(device), kind);
        for counter in OF_DEVICE {
            let captured = of_device(recording, device, counter.0, window);
            if device.is_nfs && captured.is_none() {
                continue;
            }
            let chance = match counter.0 {
                Counter::DeviceQDepth => chance_of_depth(device, window),
                counter => chance(&[&device.row], counter, window),
            };
            keys.push(Key::new(of, counter, (captured, chance)));
        }
    }
    for (object, simulated, rate, ms) in vms(devices, names, window) {
        let tenants = devices.iter().flat_map(|device| &device.tenants);
        let rows: Vec<&Row<'_>> =
            tenants.filter(|tenant| tenant.vm == object).map(|tenant| &tenant.row).collect();
        for (counter, captured) in OF_VM.into_iter().zip([rate, ms]) {
            let chance = chance(&rows, counter.0, window);
            keys.push(Key::new((&object, &simulated, Kind::Vm), counter, (Some(captured), chance)));
        }
    }
    keys
}

/// What the counters of a device and of its VMs were in `samples`, which tell what the depth `asked`
/// does; `is_beside` is whether they are beside the window, and `place` where a key has them. A VM that was
/// not there is taken to keep its rate, and to be as much quicker as the device.
pub(crate) fn add_seen(
    keys: &mut [Key],
    (recording, device): (&Measured, &Device<'_>),
    (asked, samples, is_beside): (f64, &[usize], bool),
    place: fn(&mut Key) -> &mut Option<Seen>,
) {
    let is_there = |tenant: &Tenant<'_>| tenant.row.mean_rate(samples) > Some(0.0);
    let is_tried = is_beside && device.tenants.iter().all(is_there);
    let of = |counter, samples: &[usize]| of_device(recording, device, counter, samples);
    let gavg = keys.iter().find(|key| key.is_of(device, Counter::GuestLatency));
    let quicker = gavg.and_then(|key| Some(of(Counter::GuestLatency, samples)? / key.captured?));
    for key in keys.iter_mut() {
        let own = || device.tenants.iter().filter(|tenant| tenant.vm == key.object);
        let is_own = key.is_of(device, key.counter);
        let value = |samples: &[usize]| {
            let loads: Vec<(f64, f64)> =
                own().filter_map(|tenant| tenant.row.load(samples)).collect();
            let (rate, stands) =
                loads.iter().fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
            match key.counter {
                Counter::DeviceQDepth if is_own => Some(asked),
                counter if is_own => of(counter, samples),
                _ if key.is_device() || loads.is_empty() => None,
                Counter::Commands if rate > 0.0 => Some(rate),
                Counter::Commands => key.captured,
                _ if rate > 0.0 => Some(1000.0 * stands / rate),
                _ => key.captured.zip(quicker).map(|(captured, quicker)| captured * quicker),
            }
        };
        let Some(mean) = value(samples) else { continue };
        let least = samples.iter().filter_map(|&s| value(&[s])).fold(mean, f64::min);
        let rows: Vec<&Row<'_>> = match is_own {
            true => vec![&device.row],
            false => own().map(|tenant| &tenant.row).collect(),
        };
        let chance = match key.counter {
            Counter::DeviceQDepth => 0.0,
            counter => chance(&rows, counter, samples),
        };
        *place(key) = Some(Seen { mean, least, chance, is_tried });
    }
}

/// Stand-ins for latencies of a VM that is held to so few commands that none came to its end, and of
/// a device that has no others: the laws say what they are.
pub(crate) fn add_waits(keys: &[Key], vm: &str, after: &mut [Figures]) {
    let is_meant = |key: &Key| key.is_device() || key.object == vm;
    for figures in after {
        let figures = keys.iter().zip(figures);
        let totals = figures.filter(|(key, _)| is_meant(key) && key.is(Counter::GuestLatency));
        for (key, figure) in totals {
            let mean = key.captured.unwrap_or_default();
            figure.get_or_insert(Figure { mean, ends: [mean; 2] });
        }
    }
}

/// What chance does to the mean of DQLEN, which is the state of instants, as a part of it: how often one
/// finds it at the deeper of the depths that it moves between.
fn chance_of_depth(device: &Device<'_>, window: &[usize]) -> f64 {
    let depths: Vec<f64> = window.iter().filter_map(|&s| device.depth_at(s)).collect();
    let least = depths.iter().copied().fold(f64::INFINITY, f64::min);
    let moves = depths.iter().copied().fold(0.0, f64::max) - least;
    let Some(mean) = levels::mean(depths.iter().copied().map(Some)).filter(|_| moves > 0.0) else {
        return 0.0;
    };
    // With one instant more at each end: few tell little, however alike they are.
    let count = depths.len() as f64;
    let part = (count * (mean - least) / moves + 1.0) / (count + 2.0);
    student(depths.len()) * moves * (part * (1.0 - part) / count).sqrt() / mean
}

/// Standard errors on each side of a mean of so many samples that leave out one of twenty (Student's t).
fn student(samples: usize) -> f64 {
    const FEW: [f64; 10] = [12.7, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
    match samples.saturating_sub(1) {
        0 => FEW[0],
        free => FEW.get(free - 1).copied().unwrap_or(2.0 + 2.4 / free as f64),
    }
}

/// What chance does to the mean of a rate or a latency, from how it differs from sample to sample:
/// the standard errors that [`student`] says, as a part of it; the most of it where no steps were measured.
fn chance(rows: &[&Row<'_>], counter: Counter, window: &[usize]) -> f64 {
    const MOST: f64 = 0.25;
    let rate = |s: usize| rows.iter().map(|row| row.rate(s)).sum::<Option<f64>>();
    let stands = |s: usize| rows.iter().map(|row| row.outstanding(s)).sum::<Option<f64>>();
    let deviation = match counter {
        Counter::Commands => deviation(window, rate),
        _ => deviation(window, |s| Some(stands(s)? / rate(s)?.max(1e-9))),
    };
    deviation.unwrap_or(MOST).min(MOST)
}

/// What chance does to a mean, as a part of it: levels and trends do not count, and so no jumps
/// from one level to another, which are few.
fn deviation(window: &[usize], value: impl Fn(usize) -> Option<f64>) -> Option<f64> {
    /// The load changes where it is so much higher than before, as a factor.
    const JUMPS: f64 = 1.3;
    /// The part of the steps that are jumps at most, where these are of levels.
    const FEW: f64 = 0.2;
    let pairs = window.windows(2).filter_map(|pair| value(pair[0]).zip(value(pair[1])));
    let all: Vec<(f64, f64)> = pairs.collect();
    let stays = |(a, b): &&(f64, f64)| a.max(*b) <= JUMPS * a.min(*b);
    let still: Vec<(f64, f64)> = all.iter().filter(stays).copied().collect();
    let jumps = all.len() - still.len();
    let counted = if jumps as f64 <= FEW * all.len() as f64 { still } else { all };
    let steps = counted.iter().map(|(a, b)| (b - a).powi(2) / 2.0);
    let middle = levels::mean(window.iter().map(|&s| value(s)))?;
    let count = window.iter().filter(|&&s| value(s).is_some()).count();
    let error = (levels::mean(steps)? / count as f64).sqrt();
    Some(if middle > 0.0 { student(count) * error / middle } else { 0.0 })
}

fn of_device(
    recording: &Measured,
    device: &Device<'_>,
    counter: Counter,
    window: &[usize],
) -> Option<f64> {
    let row = &device.row;
    let sampled = |counter| levels::mean(Column::of(recording, device.id, counter).over(window));
    // What is no state of an instant goes before what is.
    let mean = |mean, instants| sampled(mean).or_else(|| sampled(instants));
    match counter {
        Counter::Commands => row.mean_rate(window),
        Counter::GuestLatency => row.per_command(window, Row::gavg),
        _ if device.is_nfs => None,
        Counter::DriverLatency => row.per_command(window, Row::davg),
        Counter::KernelLatency => row.per_command(window, Row::kavg),
        Counter::MeanActive => mean(counter, Counter::ActiveCommands),
        Counter::MeanQueued => mean(counter, Counter::QueuedCommands),
        Counter::DeviceQDepth => mean(Counter::MeanDeviceQDepth, counter),
        _ => sampled(counter),
    }
}

/// Name, name in the scenario, rate and latency of the VMs that matter, the busiest first.
fn vms(
    devices: &[Device<'_>],
    names: &[(String, String)],
    window: &[usize],
) -> Vec<(String, String, f64, f64)> {
    let mut vms: Vec<(String, String, f64, f64)> = names
        .iter()
        .filter_map(|(vm, name)| {
            let tenants = devices.iter().flat_map(|device| &device.tenants);
            let own = tenants.filter(|tenant| tenant.vm == *vm);
            let loads = own.map(|tenant| tenant.row.load(window)).collect::<Option<Vec<_>>>()?;
            let (rate, stands) = loads.into_iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
            Some((vm.clone(), name.clone(), rate, 1000.0 * stands / rate))
        })
        .collect();
    let all: f64 = vms.iter().map(|vm| vm.2).sum();
    vms.retain(|vm| vm.2 >= PART * all && vm.2 > 0.0);
    most_first(&mut vms, |vm| vm.2);
    vms.truncate(VMS_MAX);
    vms
}

/// What a counter is in one run: its mean, and least and greatest, which differ for a depth that
/// moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) mean: f64,
    pub(crate) ends: [f64; 2],
}

/// A figure for each key; none of a latency without commands.
pub(crate) type Figures = Vec<Option<Figure>>;

/// Runs a scenario with settings in force.
pub(crate) fn run(text: &str, settings: &[Setting], keys: &[Key]) -> Result<Figures, Error> {
    figures(&parse(text, settings)?, 0, keys)
}

/// Runs a scenario; the figures of one of its hosts over its first window.
pub(crate) fn figures(scenario: &Scenario, host: usize, keys: &[Key]) -> Result<Figures, Error> {
    let outcome = sim::run(scenario, 1, &());
    let view = outcome.windows.first().and_then(|hosts| hosts.get(host));
    let view = view.ok_or_else(|| Error::new("the model has no window"))?;
    let names = scenario.hosts.get(host).map_or(&[][..], |host| &host.config.devices);
    let depths = |key: &Key| {
        let device = names.iter().position(|device| device.name == key.simulated)?;
        view.limits.devices.get(device)
    };
    let figure = |key: &Key| {
        let mean = figure(&view.recording, key)?;
        let ends = match depths(key).filter(|_| key.is(Counter::DeviceQDepth)) {
            // It is the one or the other, with and without VMs that compete; or less, where it is found, or other ones
            // were set meanwhile.
            Some(limits) if (mean - mean.round()).abs() > STILL => {
                let ends = [limits.dsnro.min(limits.max_queue_depth), limits.max_queue_depth];
                let [least, most] = ends.map(f64::from);
                [least.min(mean), most.max(mean)]
            }
            Some(_) => [mean.round(); 2],
            None => [mean; 2],
        };
        Some(Figure { mean, ends })
    };
    Ok(keys.iter().map(figure).collect())
}

/// A scenario with settings in force.
pub(crate) fn parse(text: &str, settings: &[Setting]) -> Result<Scenario, Error> {
    let no_files = &mut |_: &str| Err("a model names no files".to_owned());
    let parsed = Scenario::parse(FILE, text, no_files);
    let mut scenario =
        parsed.map_err(|error| Error::new(format!("this host cannot be modelled: {error}")))?;
    for setting in settings {
        scenario.apply(setting).map_err(|error| Error::new(error.to_string()))?;
    }
    Ok(scenario)
}

/// A counter of the only sample of a run. What the simulation counted is what it is, however long
/// it took.
fn figure(recording: &Recording, key: &Key) -> Option<f64> {
    let value = |id, counter| recording.value(id, counter, 0).filter(|value| value.is_finite());
    if key.is_device() {
        // DQLEN itself is that of the last instant.
        let counter = match key.counter {
            Counter::DeviceQDepth => Counter::MeanDeviceQDepth,
            other => other,
        };
        let id = recording.find(key.kind, &key.simulated)?;
        // A latency of no commands is printed as 0.
        let is_idle = counter.info().unit == "ms" && value(id, Counter::Commands) == Some(0.0);
        return value(id, counter).filter(|_| !is_idle);
    }
    let vm = recording.find(Kind::Vm, &key.simulated)?;
    let own = recording.of_kind(Kind::VirtualDisk).filter(|(_, disk)| disk.vm == Some(vm));
    let own: Vec<EntityId> = own.map(|(id, _)| id).collect();
    let rate = levels::sum(own.iter().map(|&id| value(id, Counter::Commands)))?;
    if key.counter == Counter::Commands {
        return Some(rate);
    }
    let ways = [
        (Counter::Reads, Counter::VdiskReadLatency),
        (Counter::Writes, Counter::VdiskWriteLatency),
    ];
    let time = own.iter().flat_map(|&id| {
        let of = move |(way, ms)| Some((value(id, ms)?, value(id, way)?));
        ways.into_iter().map(of)
    });
    levels::weighted_mean(time)
}

/// Runs several scenarios, on every processor; the results in order.
pub(crate) fn run_all(jobs: &[(String, &[Setting])], keys: &[Key]) -> Vec<Result<Figures, Error>> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(jobs.len().max(1));
    let share = jobs.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let run_some = |jobs: &[(String, &[Setting])]| -> Vec<_> {
            jobs.iter().map(|(text, settings)| run(text, settings, keys)).collect()
        };
        let workers: Vec<_> =
            jobs.chunks(share).map(|jobs| scope.spawn(move || run_some(jobs))).collect();
        let lost = || vec![Err(Error::new("a run was lost"))];
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(|_| lost())).collect()
    })
}
