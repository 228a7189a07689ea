//! From a recording and a question to an answer.

use counters::{EntityId, Kind, Recording};
use diagnose::{Facts, Simulated};
use serde::Serialize;

use crate::{
    ArrayCalibration, Error, GuestCalibration, Habit, Question,
    answer::{self, Run},
    build::{self, Assumed, Capped, Knee, Plan, Reading},
    observe::{Device, levels},
    question::limit_of,
    rows::mean,
    run,
};

/// A VM and the IOPS limit of its disks, if any.
type Limit<'a> = (&'a str, Option<u32>);

/// Devices that one model holds, the busiest first.
const DEVICES_MAX: usize = 16;

/// A recorded host, calibrated over a stretch of its recording.
pub struct Model<'a> {
    recording: &'a Recording,
    facts: &'a Facts,
    question: &'a Question,
    devices: Vec<Device>,
    /// Samples of the window with load.
    window: Vec<usize>,
    levels: Vec<Vec<usize>>,
    calibrated: Vec<DeviceCalibration>,
}

/// What was read out of the recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Begin and end of the simulated stretch, in milliseconds since 1970-01-01 UTC.
    pub window_ms: (i64, i64),
    /// Samples of it with load.
    pub samples: usize,
    /// How far the simulation of today is from the recording, in per cent: the mean over CMDS/s
    /// and GAVG of devices and VMs.
    pub mismatch_percent: f64,
    /// By device.
    pub devices: Vec<DeviceCalibration>,
}

/// A device: the array behind it, and who sends to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceCalibration {
    /// Its name.
    pub device: String,
    /// The array.
    pub array: ArrayCalibration,
    /// Its guests, as the recording names them.
    pub guests: Vec<GuestCalibration>,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Before and after, counter by counter.
    pub simulated: Simulated,
    /// What the model was made of.
    pub calibration: Calibration,
}

impl<'a> Model<'a> {
    /// Calibrates the devices in question.
    ///
    /// # Errors
    /// One line when the recording does not have the device, when the window has no samples, or
    /// when there was no load to calibrate on.
    pub fn calibrate(
        recording: &'a Recording,
        facts: &'a Facts,
        question: &'a Question,
    ) -> Result<Self, Error> {
        let window = samples_in(recording, question.window)?;
        let mut devices: Vec<Device> = chosen(recording, question)?
            .into_iter()
            .map(|id| Device::of(recording, id))
            .filter(|device| !device.busy(&window).is_empty())
            .collect();
        let rate = |device: &Device| mean(window.iter().map(|&s| device.flow.rate[s]));
        devices.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        devices.truncate(DEVICES_MAX);
        let Some(first) = devices.first() else {
            return Err(Error::new(match &question.device {
                Some(name) => {
                    format!("`{name}` is idle in this window: there is nothing to simulate")
                }
                None => "no device has load in this window: there is nothing to simulate".into(),
            }));
        };
        let mut busy = first.busy(&window);
        busy.extend(devices[1..].iter().flat_map(|device| device.busy(&window)));
        busy.sort_unstable();
        busy.dedup();
        let levels = levels(&devices, &busy);
        let interval_s = interval_s(recording);
        let calibrated =
            devices.iter().map(|device| calibrate(device, &busy, &levels, interval_s)).collect();
        Ok(Self { recording, facts, question, devices, window: busy, levels, calibrated })
    }

    /// The host as it is, as the text of a scenario.
    #[must_use]
    pub fn scenario(&self) -> String {
        self.plan(&[]).scenario(self.best())
    }

    /// Simulates today and the change, at every reading of the recording that fits it.
    ///
    /// # Errors
    /// One line when a setting is refused as esxcli refuses it, or the host cannot be modelled.
    pub fn answer(&self) -> Result<Answer, Error> {
        let names = build::vm_names(&self.calibrated);
        let (settings, limits) = self.settings(&names)?;
        let keys = run::keys(self.recording, &self.devices, &names, &self.window);
        let (plan, changed) = (self.plan(&[]), self.plan(&limits));
        run::parse(&plan.scenario(self.best()), &settings)?;
        let readings = self.readings(settings.iter().any(|line| is_of_guest(line)));
        let today = readings.iter().map(|reading| (plan.scenario(*reading), &[][..]));
        let after = readings.iter().map(|r| (changed.scenario(*r), settings.as_slice()));
        let jobs: Vec<_> = today.chain(after).collect();
        let mut figures = run::run_all(&jobs, &keys);
        let after = figures.split_off(readings.len());
        let runs: Result<Vec<Run>, Error> = figures
            .into_iter()
            .zip(after)
            .zip(&readings)
            .map(|((today, after), reading)| {
                // What a guest is behind grows with time: its today never settles.
                let judged = reading.capped != Capped::Behind;
                Ok(Run { today: today?, after: after?, judged })
            })
            .collect();
        let (simulated, mismatch) = answer::answer(&keys, &runs?, &self.calibrated, self.doubts());
        Ok(Answer { simulated, calibration: self.calibration(100.0 * mismatch) })
    }

    fn calibration(&self, mismatch_percent: f64) -> Calibration {
        Calibration {
            window_ms: self.question.window,
            samples: self.window.len(),
            mismatch_percent,
            devices: self.calibrated.clone(),
        }
    }

    fn plan<'p>(&'p self, limits: &'p [Limit<'p>]) -> Plan<'p> {
        Plan {
            host: &self.recording.host,
            facts: self.facts,
            devices: &self.devices,
            calibrated: &self.calibrated,
            levels: &self.levels,
            settings: &self.question.settings,
            limits,
            commands: self.question.commands,
        }
    }

    /// What fits best; a guest of unknown habit is taken to keep its commands outstanding, as
    /// most that queue do.
    fn best(&self) -> Reading {
        Reading { knee: Knee::Best, unknown: Habit::Closed, capped: Capped::Content }
    }

    /// The best reading first, then all combinations of what the recording leaves open.
    fn readings(&self, guests_change: bool) -> Vec<Reading> {
        let any = |is: fn(&GuestCalibration) -> bool| {
            self.calibrated.iter().flat_map(|device| &device.guests).any(is)
        };
        let mut habits = vec![Habit::Closed];
        if any(|guest| guest.habit == Habit::Unknown) {
            habits.push(Habit::Open);
        }
        let mut wants = vec![Capped::Content];
        if any(|guest| guest.may_be_behind) {
            wants.push(Capped::Behind);
        }
        if guests_change && any(|guest| guest.capped_at.is_some()) {
            wants.push(Capped::Hungry);
        }
        let mut readings = vec![self.best()];
        for knee in [Knee::Least, Knee::Most] {
            for &unknown in &habits {
                readings.extend(wants.iter().map(|&capped| Reading { knee, unknown, capped }));
            }
        }
        readings
    }

    /// The settings with VMs as the scenario names them, and apart from them the IOPS limits.
    fn settings(&self, names: &[(String, String)]) -> Result<(Vec<String>, Vec<Limit<'_>>), Error> {
        let (mut settings, mut limits) = (Vec::new(), Vec::new());
        for line in &self.question.settings {
            if let Some((vm, limit)) = limit_of(line) {
                limits.push((vm, limit?));
                continue;
            }
            let known = names.iter().find_map(|(vm, name)| {
                let rest = line.trim().strip_prefix(vm.as_str())?.strip_prefix(':')?;
                Some(format!("{name}: {}", rest.trim()))
            });
            settings.push(known.unwrap_or_else(|| line.clone()));
        }
        Ok((settings, limits))
    }

    /// What the answer rests on, beyond arrays and guests.
    fn doubts(&self) -> Vec<String> {
        let plan = self.plan(&[]);
        let doubt = |device: &Device| match plan.queue(device).assumed {
            Assumed::Nothing => None,
            Assumed::Dsnro => Some(format!(
                "DQLEN of {} never left 32, the default of DSNRO, so the depth above it is a \
                 guess; `esxcli storage core device list -d {}` says it (--esxcli FILE).",
                device.name, device.name
            )),
            Assumed::Restless => Some(format!(
                "Something moves DQLEN of {} (adaptive throttling or Storage I/O Control); the \
                 model keeps it at its mean.",
                device.name
            )),
        };
        self.devices.iter().filter(|device| !device.is_nfs).filter_map(doubt).collect()
    }
}

fn is_of_guest(line: &str) -> bool {
    line.contains("cmd_per_lun") || line.contains("MaxQueueDepth") || line.contains("RingPages")
}

fn calibrate(
    device: &Device,
    window: &[usize],
    levels: &[Vec<usize>],
    interval_s: f64,
) -> DeviceCalibration {
    let everything: Vec<usize> = (0..device.flow.rate.len()).collect();
    let own = device.busy(window);
    let is_full = device.is_full(&own);
    let guests: Vec<GuestCalibration> = device
        .tenants
        .iter()
        .map(|tenant| {
            let device = (is_full, device.others_wait(tenant, &own));
            GuestCalibration::of(tenant, window, levels, interval_s, device)
        })
        .collect();
    let closed: f64 =
        guests.iter().filter(|g| g.habit == Habit::Closed).map(|g| g.outstanding).sum();
    let all: f64 = guests.iter().map(|guest| guest.outstanding).sum();
    let busy = device.busy(&everything);
    let habit = (2.0 * closed >= all, interval_s);
    let array = ArrayCalibration::of(&device.flow, &busy, &own, habit);
    DeviceCalibration { device: device.name.clone(), array, guests }
}

/// The samples whose interval ends in the window.
fn samples_in(recording: &Recording, (from, to): (i64, i64)) -> Result<Vec<usize>, Error> {
    let times = recording.times_ms.iter().enumerate();
    let samples: Vec<usize> =
        times.filter(|(_, at)| from < **at && **at <= to).map(|(sample, _)| sample).collect();
    if samples.is_empty() {
        return Err(Error::new(format!(
            "{}: no sample ends in the window; the recording has {}",
            recording.host,
            recording.len()
        )));
    }
    Ok(samples)
}

/// Seconds of an interval: the median, 5 when there is only one sample (esxtop's default).
fn interval_s(recording: &Recording) -> f64 {
    let steps = recording.times_ms.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let mut steps: Vec<i64> = steps.filter(|step| *step > 0).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).map_or(5.0, |step| *step as f64 / 1000.0)
}

/// The devices in question.
fn chosen(recording: &Recording, question: &Question) -> Result<Vec<EntityId>, Error> {
    let all = || {
        let of = |kind| recording.of_kind(kind).map(|(id, _)| id);
        of(Kind::Device).chain(of(Kind::NfsVolume))
    };
    let named = |name: &str| all().find(|id| recording.entity(*id).name == name);
    if let Some(name) = &question.device {
        return named(name).map(|id| vec![id]).ok_or_else(|| unknown_device(recording, name));
    }
    let mut found = Vec::new();
    for line in &question.settings {
        let words: Vec<&str> = line.split_whitespace().collect();
        for (place, word) in words.iter().enumerate().filter(|_| line.contains(" device ")) {
            let (option, value) = word.split_once('=').unwrap_or((word, ""));
            let next = words.get(place + 1).copied();
            let name = if value.is_empty() { next } else { Some(value) };
            if let (true, Some(name)) = (option == "-d" || option == "--device", name) {
                let name = name.trim_matches(['\'', '"']);
                found.push(named(name).ok_or_else(|| unknown_device(recording, name))?);
            }
        }
        let guest = line.split_once(':').filter(|_| is_of_guest(line)).map(|(vm, _)| vm.trim());
        if let Some(vm) = guest.or(limit_of(line).map(|(vm, _)| vm)) {
            found.extend(devices_of(recording, vm)?);
        }
    }
    if found.is_empty() {
        found.extend(all());
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn devices_of(recording: &Recording, vm: &str) -> Result<Vec<EntityId>, Error> {
    let vm_id = recording.find(Kind::Vm, vm).ok_or_else(|| {
        let names = recording.of_kind(Kind::Vm).map(|(_, vm)| vm.name.as_str());
        Error::new(format!("no VM `{vm}` in this recording; there are: {}", some(names)))
    })?;
    let parts = recording.of_kind(Kind::World).chain(recording.of_kind(Kind::VirtualDisk));
    Ok(parts
        .filter(|(_, part)| part.vm == Some(vm_id))
        .filter_map(|(_, part)| part.device)
        .collect())
}

fn unknown_device(recording: &Recording, name: &str) -> Error {
    let names = recording.of_kind(Kind::Device).map(|(_, device)| device.name.as_str());
    Error::new(format!("no device `{name}` in this recording; there are: {}", some(names)))
}

/// The first names of many.
fn some<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const SHOWN: usize = 8;
    let names: Vec<&str> = names.collect();
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match (names.is_empty(), more) {
        (true, _) => "none".into(),
        (false, 0) => shown,
        _ => format!("{shown} and {more} more"),
    }
}
