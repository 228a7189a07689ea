//! From a recording and a question to an answer.

use counters::Counter;
use diagnose::{Facts, Simulated};
use knobs::{AllocationChange, DiskName, Disks, GuestName, Setting};
use levels::{Measured, weighted_mean};
use serde::Serialize;

use crate::{
    ArrayCalibration, DeviceCalibration, Error, GuestCalibration, Habit, Question, Verdict, answer,
    beyond,
    build::{Assumed, Plan},
    demand::at_caps,
    far,
    fit::Fit,
    lacks,
    limited::{self, Own},
    lowered, mix, names,
    observe::{Device, Tenant, levels},
    order::{self, run_each},
    points,
    question::{Asked, Limited, NO_WAIT, depth_asked, iscsi_kib},
    reading::{self, BEST, Demand, Knee, Order, Reading},
    roomy,
    rows::Row,
    run::{self, Figures, Key},
    scope::{self, chosen, devices, groups, guests, interval_s, samples_in},
    shared::{self, are_together},
    tried, unmodelled,
    unmoved::{Still, unmoved},
    unseen,
    vscsi::{self, Counted},
};

/// Virtual disks and their IOPS limit, if any.
type Limit<'a> = (&'a DiskName, Option<u32>);

/// Runs by which the latency of an array is brought to what was recorded.
const CALIBRATIONS: usize = 5;

/// A recorded host, calibrated over a stretch of its recording.
pub struct Model<'a> {
    recording: &'a Measured,
    facts: &'a Facts,
    question: &'a Question,
    devices: Vec<Device<'a>>,
    /// Samples of the window with load.
    window: Vec<usize>,
    levels: Vec<Vec<usize>>,
    arrays: Vec<ArrayCalibration>,
    calibrated: Vec<DeviceCalibration>,
    /// Virtual disks whose histograms say nothing of these guests.
    unused: Vec<String>,
}

/// What was read out of the recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Begin and end of the simulated stretch, in milliseconds since 1970-01-01 UTC.
    pub window_ms: (i64, i64),
    /// Samples of it with load.
    pub samples: usize,
    /// How far the simulation of today is from the recording, in per cent, in the counter that is
    /// furthest.
    pub mismatch_percent: f64,
    /// The arrays.
    pub arrays: Vec<ArrayCalibration>,
    /// By device.
    pub devices: Vec<DeviceCalibration>,
}

/// What a recorded host may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenarios {
    /// A scenario for each reading that gives what was recorded, the likeliest first; its window `run`
    /// is what was recorded.
    pub texts: Vec<String>,
    /// The VMs as they were recorded, and as the scenarios name them.
    pub vms: Vec<(String, String)>,
    /// What the differences between them rest on, in sentences.
    pub doubts: Vec<String>,
    /// How far they are from the recording as it is, as a part of what was recorded, in the counter in which
    /// one is furthest: nothing that is nearer can be told apart.
    pub miss: f64,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// How it may be taken.
    pub verdict: Verdict,
    /// Before and after, counter by counter.
    pub simulated: Simulated,
    /// What the model was made of.
    pub calibration: Calibration,
}

/// Readings, brought to today, and which of them give what was recorded.
struct Likely {
    readings: Vec<Reading>,
    scales: Vec<Vec<f64>>,
    likely: Vec<usize>,
    miss: f64,
}

impl<'a> Model<'a> {
    /// Calibrates the devices in question, and those that share an array with them.
    ///
    /// # Errors
    /// One line when the recording does not have the device, when the window has no samples, or
    /// when there was no load to calibrate on.
    pub fn calibrate(
        recording: &'a Measured,
        facts: &'a Facts,
        question: &'a Question,
    ) -> Result<Self, Error> {
        question.check()?;
        let window = samples_in(recording, question.window)?;
        let asked = chosen(recording, question)?;
        let (mut devices, beside) = devices(recording, question, &asked, &window)?;
        let Some(first) = devices.first() else {
            return Err(scope::nothing(question, &beside, &window));
        };
        let mut busy = first.busy(&window);
        busy.extend(devices[1..].iter().flat_map(|device| device.busy(&window)));
        busy.sort_unstable();
        busy.dedup();
        for device in
            devices.iter_mut().filter(|device| device.rests(&busy) || device.hides_load(&busy))
        {
            device.resting.clone_from(&busy);
        }
        let is_limited = |tenant: &Tenant<'_>| scope::is_limited(&question.settings, &tenant.vm);
        let levels = levels(&devices, &busy, is_limited);
        let tenants = devices.iter().flat_map(|device| &device.tenants);
        let deepened = tenants.filter(|tenant| scope::is_deepened(&question.settings, &tenant.vm));
        let levels = deepened.fold(levels, at_caps);
        let interval_s = interval_s(recording);
        let groups = groups(&devices, &busy, &question.arrays);
        let counted = vscsi::by_disk(recording, &question.vscsistats)?;
        let calibrated: Vec<DeviceCalibration> = devices
            .iter_mut()
            .enumerate()
            .map(|(index, device)| DeviceCalibration {
                device: device.name.clone(),
                array: groups.iter().position(|group| group.contains(&index)).unwrap_or(0),
                guests: guests(device, &busy, &levels, (interval_s, &question.settings), &counted),
            })
            .collect();
        let is_used = |counted: &&Counted<'_>| {
            devices.iter().flat_map(|d| &d.tenants).any(|tenant| counted.is_of(tenant))
        };
        let unused = counted.iter().filter(|counted| !is_used(counted)).map(Counted::name);
        let unused = unused.collect();
        let all = (recording, busy.as_slice());
        let is_of = |group: &[usize], name: &str| {
            are_together(&question.arrays, &devices[group[0]].name, name)
        };
        let array = |group: &Vec<usize>| {
            let own: Vec<_> =
                group.iter().map(|&at| (&devices[at], calibrated[at].guests.as_slice())).collect();
            // Of arrays that names do not tell apart none is known to be that of others.
            let is_beside = |device: &&Device<'_>| {
                let of_name = groups.iter().filter(|group| is_of(group, &device.name)).count();
                of_name == 1 && is_of(group, &device.name)
            };
            points::array(&own, &beside.iter().filter(is_beside).collect::<Vec<_>>(), all)
        };
        let arrays = groups.iter().map(array).collect();
        let window = busy;
        Ok(Self { recording, facts, question, devices, window, levels, arrays, calibrated, unused })
    }

    /// The host as it is, as the text of a scenario.
    #[must_use]
    pub fn scenario(&self) -> String {
        self.plan(&[]).scenario(BEST, &[])
    }

    /// Simulates today and the change, at every reading of the recording that fits it.
    ///
    /// # Errors
    /// One line when a setting is refused as esxcli refuses it, or the host cannot be modelled.
    pub fn answer(&self) -> Result<Answer, Error> {
        let names = names::vm_names(&self.calibrated);
        let (settings, limits) = self.settings(&names)?;
        let mut keys = run::keys(self.recording, &self.devices, &names, &self.window);
        let [is_tried, is_hungry] = tried::add_seen(
            &mut keys,
            self.recording,
            (&self.devices[..], &self.calibrated[..]),
            (&self.question.settings, &self.window),
        );
        let plan = self.plan(&[]);
        let changed = Plan { limits: &limits, iscsi_kib: iscsi_kib(&settings), ..self.plan(&[]) };
        if let Some((device, why)) =
            self.devices.iter().find_map(|d| Some((d, self.unmodelled(d)?)))
        {
            return Ok(match self.is_restless(device) && self.is_out_of_reach(device) {
                true => self.unreached(device, &keys),
                false => self.no_model(&why),
            });
        }
        run::parse(&plan.scenario(BEST, &[]), &settings)
            .map_err(|refusal| self.because(refusal))?;
        let guests_change = settings.iter().any(|set| matches!(set, Setting::Pvscsi { .. }));
        let limited = self.limited(&changed);
        let mut readings = self.readings(guests_change, limited.is_some_and(|of| of.is_lifted()));
        readings.extend(self.of_sizes(&readings, &limits));
        let (scales, mut today) = self.fitted(&readings, &keys)?;
        let mut after = run_each(&changed, (&readings, &scales), (&settings, &keys))?;
        let mut above = GUESS;
        if self.competes() {
            let fitted = (readings.as_slice(), scales.as_slice());
            let asked = (settings.as_slice(), keys.as_slice());
            (today, after) = order::others([&plan, &changed], fitted, asked, (today, after))?;
            if beyond::add([&plan, &changed], fitted, asked, (&mut today, &mut after))? {
                above = RANGES;
            }
        }
        if let Some(limited) = limited.filter(|limited| !limited.is_lifted()) {
            run::add_waits(&keys, limited.vm, &mut after);
        }
        let unseen = self.unseen(&changed);
        let (keys, runs) = answer::comparable(keys, today, after);
        let mixes = self.mixes(&changed);
        let (runs, mixed) = mix::spread(&keys, runs, &mixes);
        let calibration = (self.calibrated.as_slice(), self.arrays.as_slice());
        let is_of_depth = !guests_change && limits.is_empty();
        let mut doubts = self.doubts(above);
        doubts.extend(mixed.iter().map(|mix| mix.doubt()));
        let is_whole = is_of_depth && scope::flapping(&self.devices).is_none();
        let (keys, runs, is_undivided) = answer::of_devices((keys, runs), is_whole, &mut doubts);
        let asked = Asked {
            settings: &self.question.settings,
            limited,
            is_of_depth,
            untouched: self.untouched(),
            is_split: changed.is_split(),
            is_undivided,
            flapping: scope::flapping(&self.devices),
            lowered: lowered::of(&self.devices, self.facts, &self.window),
            said: &self.question.arrays,
            unseen: unseen.as_deref(),
            is_bursty: self.is_bursty(),
            may_throttle: self.devices.iter().any(|device| self.may_throttle(device)),
            is_tried,
            is_mixed: !mixed.is_empty(),
            is_hungry,
            span_ms: 1000.0 * interval_s(self.recording) * self.window.len() as f64,
        };
        let (mut simulated, verdict, miss) =
            answer::answer(&keys, &runs, calibration, asked, doubts);
        if !simulated.rows.is_empty() && asked.untouched.is_none() {
            simulated.sentence += &self.condition();
        }
        Ok(Answer { verdict, simulated, calibration: self.calibration(100.0 * miss) })
    }

    /// A refusal with what is guessed of the host that refuses.
    fn because(&self, refusal: Error) -> Error {
        match self.doubts(GUESS) {
            doubts if doubts.is_empty() => refusal,
            doubts => Error::new(format!("{refusal}. {}", doubts.join(" "))),
        }
    }

    /// The arrays that have commands of several kinds.
    fn mixes(&self, changed: &Plan<'_>) -> Vec<mix::Mix> {
        let limit = |guest: &GuestCalibration| Some(changed.most_asked(guest)? / guest.units[0]);
        let of = (self.devices.as_slice(), self.calibrated.as_slice());
        mix::Mix::of_all(of, &self.window, self.recording.len(), &limit)
    }

    /// The scenarios of the host as it is, for whoever changes more of it than settings say. What the VM
    /// `waits` waits for may be its array or the policy of a volume.
    ///
    /// # Errors
    /// One line when no reading gives what was recorded, or the host cannot be modelled.
    pub fn scenarios(&self, waits: &str) -> Result<Scenarios, Error> {
        let vms = names::vm_names(&self.calibrated);
        let keys = run::keys(self.recording, &self.devices, &vms, &self.window);
        let refusals = || self.refusing().map(|device| refuses(&device.name));
        let unmodelled = self.devices.iter().find_map(|device| self.unmodelled(device));
        if let Some(why) = unmodelled.or_else(|| refusals().next()) {
            return Err(Error::new(why + UNFOLLOWED));
        }
        let plan = self.plan(&[]);
        run::parse(&plan.scenario(BEST, &[]), &[])?;
        let mut readings = self.readings(true, false);
        let each = (self.devices.as_slice(), self.calibrated.as_slice());
        readings.extend(reading::of_held(&readings, &self.arrays, each, waits));
        let Likely { readings, scales, likely, mut miss } = self.likely(readings, &keys)?;
        let mut texts: Vec<String> = Vec::new();
        let policies = reading::doubts(likely.iter().map(|index| readings[*index]), &self.arrays);
        for &index in &likely {
            let text = plan.scenario(readings[index], &scales[index]);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let mut above = GUESS;
        let of = |&index: &usize| (readings[index], scales[index].clone());
        if let Some(deeper) = beyond::deeper(&plan, likely.iter().map(of), &keys)? {
            let deepest = Plan { facts: &deeper.facts, ..plan };
            let each = deeper.readings.iter().zip(&deeper.scales);
            texts.extend(each.map(|(reading, scales)| deepest.scenario(*reading, scales)));
            miss = miss.max(deeper.miss);
            above = RANGES;
        }
        let mut doubts = answer::doubts_of(&self.calibrated, &self.arrays, None);
        doubts.extend(self.doubts(above));
        doubts.extend(policies);
        if let Order::Other(order) = readings[0].order {
            doubts.push(format!(
                "No model with the order of this version of ESXi in its device queues gives what was recorded, and \
                 one with {order} does: VMs are taken to be served so."
            ));
        }
        Ok(Scenarios { texts, vms, doubts, miss })
    }

    /// Which of some readings give what was recorded, with the likeliest order of the VMs by which any does.
    fn likely(&self, readings: Vec<Reading>, keys: &[Key]) -> Result<Likely, Error> {
        let mut refusal = None;
        let orders = if self.competes() { &Order::ALL[..] } else { &Order::ALL[..1] };
        for &order in orders {
            let readings: Vec<_> = readings.iter().map(|own| Reading { order, ..*own }).collect();
            let (scales, today) = self.fitted(&readings, keys)?;
            match answer::likely(keys.to_vec(), today) {
                Ok((likely, miss)) => return Ok(Likely { readings, scales, likely, miss }),
                Err(own) => refusal = refusal.or(Some(own)),
            }
        }
        Err(refusal.unwrap_or_else(|| Error::new("there is nothing to simulate")))
    }

    /// Why it says nothing that no model notices the change, in a sentence; nothing where it does.
    fn unseen(&self, changed: &Plan<'_>) -> Option<String> {
        let mut each = self.question.settings.iter();
        let (setting, what) = each.find_map(|set| Some((set, unseen::of(set, changed)?)))?;
        Some(format!(
            "The recording does not tell what `{setting}` does: no simulated command notices it, but no counter \
             shows {what}."
        ))
    }

    /// Whether several VMs compete for a queue.
    fn competes(&self) -> bool {
        self.devices.iter().any(|device| !device.is_nfs && device.vms() > 1)
    }

    /// Each reading brought to answer today as it was recorded: the factors of its arrays, and its run.
    fn fitted(
        &self,
        readings: &[Reading],
        keys: &[Key],
    ) -> Result<(Vec<Vec<f64>>, Vec<Figures>), Error> {
        let plan = self.plan(&[]);
        let mut fits: Vec<Fit> = readings.iter().map(|_| Fit::of(self.arrays.len())).collect();
        for _ in 0..CALIBRATIONS {
            let scales: Vec<_> = fits.iter().map(Fit::next_scales).collect();
            let runs = run_each(&plan, (readings, &scales), (&[], keys))?;
            for (fit, today) in fits.iter_mut().zip(runs) {
                fit.add(&self.misses(keys, &today), today);
            }
        }
        Ok(fits.into_iter().map(Fit::best).unzip())
    }

    /// How much longer each array takes in the recording than in a run of today, as a factor; 1 where
    /// that is not known.
    fn misses(&self, keys: &[Key], today: &Figures) -> Vec<f64> {
        let of = |array: usize| {
            let mut time = [0.0, 0.0];
            for (device, calibrated) in self.devices.iter().zip(&self.calibrated) {
                // What the array itself holds to a rate says nothing of how quick it is.
                let is_free = !calibrated.is_throttled();
                if calibrated.array != array || !is_free {
                    continue;
                }
                let davg =
                    if device.is_nfs { Counter::GuestLatency } else { Counter::DriverLatency };
                let figures = keys.iter().zip(today);
                for (key, figure) in figures.filter(|(key, _)| key.is_of(device, davg)) {
                    let rate = device.row.mean_rate(&self.window);
                    let (Some(rate), Some(captured), Some(figure)) = (rate, key.captured, figure)
                    else {
                        continue;
                    };
                    time[0] += rate * captured;
                    time[1] += rate * figure.mean;
                }
            }
            match time {
                [captured, simulated] if captured > 0.0 && simulated > 0.0 => captured / simulated,
                _ => 1.0,
            }
        };
        (0..self.arrays.len()).map(of).collect()
    }

    /// What goes on at a device that no model here follows, in a sentence.
    fn unmodelled(&self, device: &Device<'_>) -> Option<String> {
        let known = (self.facts, self.question.settings.as_slice(), self.window.as_slice());
        unmodelled::of(device, known, self.is_restless(device))
    }

    /// The devices whose array may refuse what is more than it takes, as far as no limit of a VM is sure to be what
    /// its commands wait for.
    fn refusing(&self) -> impl Iterator<Item = &Device<'a>> {
        let each = self.devices.iter().zip(&self.calibrated);
        let is_it = |(device, of): &(&Device<'_>, &DeviceCalibration)| {
            !of.guests.iter().any(|guest| guest.is_held_surely)
                && device.is_refused(&device.busy(&self.window))
        };
        each.filter(is_it).map(|(device, _)| device)
    }

    /// The answer where no model follows what goes on.
    fn no_model(&self, why: &str) -> Answer {
        let sentence = format!("{why}{UNFOLLOWED}, so there is no prediction.");
        let (identified, rows) = (false, Vec::new());
        Answer {
            verdict: Verdict::NoModel,
            simulated: Simulated { sentence, identified, doubts: self.doubts(GUESS), rows },
            calibration: self.calibration(100.0),
        }
    }

    /// Whether nothing but higher limits is asked for, while what moves DQLEN keeps it below those
    /// that are: at its highest it does not stay.
    fn is_out_of_reach(&self, device: &Device<'_>) -> bool {
        /// The part of the samples in which it is at its highest, at most.
        const STAYS: f64 = 0.25;
        let depths = || self.window.iter().filter_map(|&s| device.depth_at(s));
        let highest = depths().fold(0.0, f64::max);
        let at_highest = depths().filter(|depth| *depth >= highest).count() as f64;
        at_highest <= STAYS * self.window.len() as f64
            && depth_asked(&self.question.settings, &device.name)
                .is_some_and(|asked| f64::from(asked) >= highest)
    }

    /// The answer where what moves a queue keeps it below the limit that is asked for.
    fn unreached(&self, device: &Device<'_>, keys: &[Key]) -> Answer {
        let doubt = format!(
            "What moves DQLEN of {} (adaptive throttling or Storage I/O Control) never let it come \
             to the limit that is set: it is taken to do the same below a higher one.",
            device.name
        );
        let depths = || self.window.iter().filter_map(|&s| device.depth_at(s));
        let moves = [depths().fold(f64::INFINITY, f64::min), depths().fold(0.0, f64::max)];
        let depth = |key: &Key| (key.object == device.name).then_some(moves);
        let still = Still { vm: None, waits: 0.0, is_of_limit: false, depth: &depth };
        let (simulated, verdict) = unmoved(keys, &still, "", vec![doubt]);
        Answer { verdict, simulated, calibration: self.calibration(0.0) }
    }

    fn is_restless(&self, device: &Device<'_>) -> bool {
        !device.is_nfs && self.plan(&[]).queue(device).assumed == Assumed::Restless
    }

    fn calibration(&self, mismatch_percent: f64) -> Calibration {
        Calibration {
            window_ms: self.question.window,
            samples: self.window.len(),
            mismatch_percent,
            arrays: self.arrays.clone(),
            devices: self.calibrated.clone(),
        }
    }

    fn plan<'p>(&'p self, limits: &'p [Limit<'p>]) -> Plan<'p> {
        Plan {
            host: &self.recording.host,
            facts: self.facts,
            devices: &self.devices,
            calibrated: &self.calibrated,
            arrays: &self.arrays,
            levels: &self.levels,
            settings: &self.question.settings,
            limits,
            iscsi_kib: iscsi_kib(&[]),
            commands: self.question.commands,
        }
    }

    /// The likeliest reading first, then all combinations of what the recording leaves open.
    fn readings(&self, guests_change: bool, is_lifted: bool) -> Vec<Reading> {
        let guests = || self.calibrated.iter().flat_map(|device| &device.guests);
        let unknown = guests().filter(|guest| guest.habit != Habit::Open).count();
        let mut demands = vec![Demand::Waits];
        if unknown > 0 {
            demands.push(Demand::Rates);
        }
        if unknown > 0 && guests().count() > 1 {
            demands.extend([Demand::OneWaits, Demand::OneRates]);
        }
        if unknown > 0 && guests().count() > 2 {
            demands.push(Demand::FewRate);
        }
        if self.is_bursty() {
            demands.push(Demand::Bursts);
        }
        if guests_change && guests().any(|guest| guest.capped_at.is_some()) {
            demands.push(Demand::Hungry);
        }
        let mut readings = vec![BEST];
        let knees = [Knee::Least, Knee::Most, Knee::Flat];
        // What is held to a rate was not seen with fewer outstanding: that may take as long.
        for knee in knees.into_iter().filter(|knee| is_lifted || *knee != Knee::Flat) {
            readings.extend(demands.iter().map(|&demand| Reading { knee, demand, ..BEST }));
        }
        readings
    }

    /// The same with other sizes of commands, where no limit is asked for, which knows what each of them counts; the
    /// likeliest, which comes first, is between the others.
    fn of_sizes(&self, readings: &[Reading], limits: &[Limit<'_>]) -> Vec<Reading> {
        match limits {
            [] => reading::of_sizes(&readings[1..], &self.calibrated),
            _ => Vec::new(),
        }
    }

    /// Whether commands of a device come in bursts most of the time.
    fn is_bursty(&self) -> bool {
        let is_other = |of: &DeviceCalibration| {
            let never_rest = !of.guests.is_empty() && of.guests.iter().all(|g| g.never_rests);
            never_rest || of.guests.iter().any(|guest| guest.is_held_surely)
        };
        let mut devices = self.devices.iter().zip(&self.calibrated);
        devices.any(|(device, of)| !is_other(of) && device.is_mostly_bursty(&self.window))
    }

    /// The VM of which the IOPS limit is set, if all settings do that, and all one way.
    fn limited(&self, changed: &Plan<'_>) -> Option<Limited<'_>> {
        let interval_s = interval_s(self.recording);
        let mut each = self.question.settings.iter().map(|setting| match setting {
            Setting::Allocation { vdisk: Disks::Of(DiskName { vm, .. }), allocation } => {
                let own = self.own(vm);
                let is_set = matches!(allocation, AllocationChange::Limit(Some(_)))
                    && own.iter().any(|own| changed.limit_asked(own.guest).is_some());
                let held = is_set
                    .then(|| limited::held(&own, (&self.window, interval_s), changed))
                    .flatten();
                let is_held = self.is_held(vm);
                let most_iops = is_set.then(|| limited::most_iops(&own, changed));
                let paced = limited::paced(&own, (&self.levels, &self.window), changed);
                let waits = self.waits(vm);
                let is_bursty = is_set && own.iter().any(|own| own.guest.bursts.is_some());
                let may_be_none = is_set
                    && self.facts.esxi_version.is_none()
                    && scope::may_share_limits(self.recording, self.question, vm);
                Some(Limited { vm, held, most_iops, paced, is_held, is_bursty, may_be_none, waits })
            }
            _ => None,
        });
        let first = each.next()?;
        first.filter(|_| each.all(|other| other == first))
    }

    /// What is recorded of a VM on each device, and what it is taken for.
    fn guests_of(&self, vm: &str) -> impl Iterator<Item = (&Tenant<'a>, &GuestCalibration)> {
        let each = self.devices.iter().zip(&self.calibrated);
        let each = each.flat_map(|(device, of)| device.tenants.iter().zip(&of.guests));
        each.filter(move |(_, guest)| guest.vm == vm)
    }

    /// The part of a latency that may be a wait for slots, where these are never short.
    fn untouched(&self) -> Option<f64> {
        let of = (self.devices.as_slice(), self.calibrated.as_slice());
        roomy::untouched(of, &self.question.settings, &self.window)
    }

    /// What is recorded of a VM of which a limit is asked.
    fn own(&self, vm: &str) -> Vec<Own<'_>> {
        let may_wait = self.is_held(vm) || self.waits(vm) > NO_WAIT;
        self.guests_of(vm).map(|(tenant, guest)| Own { tenant, guest, may_wait }).collect()
    }

    /// The part of a VM's latency that is spent in the VMkernel, where neither it is seen to wait for a limit there
    /// nor a full queue is.
    fn waits(&self, vm: &str) -> f64 {
        let is_held = self.is_held(vm);
        let part = |(tenant, guest): (&Tenant<'_>, &GuestCalibration)| {
            let world = tenant.world.as_ref().filter(|_| !is_held)?;
            if guest.waits_for_slots {
                return Some((0.0, guest.iops));
            }
            let of = |latency| world.per_command(&self.window, latency);
            Some((of(Row::kavg)? / of(Row::gavg)?.max(1e-9), guest.iops))
        };
        weighted_mean(self.guests_of(vm).filter_map(part).map(Some))
            .map_or(0.0, |part| part.clamp(0.0, 0.9))
    }

    /// Whether a VM is seen to wait for a limit, and for no bursts of itself or of others.
    fn is_held(&self, vm: &str) -> bool {
        let mut each = self.devices.iter().zip(&self.calibrated);
        let is_its = |guest: &GuestCalibration| guest.vm == vm && guest.held_at_iops.is_some();
        each.any(|(device, of)| device.resting.is_empty() && of.guests.iter().any(is_its))
    }

    /// The settings with VMs and datastores as the scenario names them, and apart from them the IOPS limits.
    fn settings(
        &self,
        names: &[(String, String)],
    ) -> Result<(Vec<Setting>, Vec<Limit<'_>>), Error> {
        let (mut settings, mut limits) = (Vec::new(), Vec::new());
        for setting in &self.question.settings {
            if let Setting::Allocation {
                vdisk: Disks::Of(vdisk),
                allocation: AllocationChange::Limit(limit),
            } = setting
            {
                limits.push((vdisk, *limit));
                continue;
            }
            let mut setting = setting.clone();
            if let Setting::Pvscsi { vm: GuestName { vm: Some(vm), .. }, .. } = &mut setting
                && let Some((_, name)) = names.iter().find(|(known, _)| known == vm)
            {
                vm.clone_from(name);
            }
            if let Setting::StorageIoControl { device: datastore, .. } = &mut setting {
                let mut devices = self.devices.iter().enumerate();
                let is_on = |device: &Device<'_>| match device.is_nfs {
                    true => names::device_name(device) == *datastore,
                    false => self.facts.datastores.get(&device.name) == Some(&*datastore),
                };
                let on = devices.find(|(_, device)| is_on(device));
                let unknown = || Error::new(format!("`{datastore}`: {STORE_UNKNOWN}"));
                let (index, device) = on.ok_or_else(unknown)?;
                *datastore = names::store(index, device);
            }
            settings.push(setting);
        }
        Ok((settings, far::without_far(limits, &self.window, |vm| self.own(vm))))
    }

    /// Whether adaptive throttling may be on for a device: esxcli prints a sample size of 0 where it is
    /// off [KB-QF].
    fn may_throttle(&self, device: &Device<'_>) -> bool {
        let known = self.facts.devices.get(&device.name);
        !device.is_nfs && known.and_then(|known| known.queue_full_sample_size) != Some(0)
    }

    /// What Device Max Queue Depth is taken for because DSNRO is to be so much, which nothing shows that
    /// the host takes.
    fn assumed_depth(&self, device: &Device<'_>) -> Option<u32> {
        let is_driver = |setting: &Setting| matches!(setting, Setting::ModuleDepth { .. });
        let queue = self.plan(&[]).queue(device);
        let is_assumed = queue.assumed == Assumed::Dsnro && queue.dsnro < Some(queue.base);
        (is_assumed && !self.question.settings.iter().any(is_driver)).then_some(queue.base)
    }

    /// Under which condition the answer is so, in a sentence; nothing where under none.
    fn condition(&self) -> String {
        let of = |device| Some((device, self.assumed_depth(device)?));
        let Some((device, depth)) = self.devices.iter().find_map(of) else { return String::new() };
        format!(
            " That is so if Device Max Queue Depth of {} is {depth} or more, which the recording does \
             not show.",
            device.name
        )
    }

    /// What the answer rests on, beyond arrays and guests; `above` is what a depth is that nothing shows.
    fn doubts(&self, above: &str) -> Vec<String> {
        let plan = self.plan(&[]);
        let doubt = |device: &Device<'_>| {
            (plan.queue(device).assumed == Assumed::Dsnro).then(|| {
                let above = match self.assumed_depth(device) {
                    Some(depth) => format!(
                        "Device Max Queue Depth for {depth}, as much as is asked for (where it is \
                         less, ESXi 6.5 and later refuse the line, and earlier versions stay below \
                         it [S1])"
                    ),
                    None => above.into(),
                };
                format!(
                    "DQLEN of {name} stood still while VMs competed: it is taken for DSNRO, and \
                     {above}; `esxcli storage core device list -d {name}` says it (--esxcli FILE).",
                    name = device.name
                )
            })
        };
        let scsi = self.devices.iter().filter(|device| !device.is_nfs);
        let lost = self.devices.iter().filter_map(|device| lacks::doubt(device, &self.window));
        let arrays: Vec<_> = self.arrays.iter().map(|array| array.devices.as_slice()).collect();
        let shared = shared::doubts(&self.question.arrays, &arrays);
        let unused = self.unused.iter().map(|disk| {
            format!(
                "vscsiStats of {disk} is not used: it sends nothing to the devices in question, or \
                 the capture does not tell it from other disks of its VM."
            )
        });
        let refusing = self.refusing().map(|device| {
            format!(
                "{}. It is modelled as a limit of its VMs or as bursts: an array that refuses gives no more \
                 whatever is deeper or lifted, and places to whoever asks when another has less. Its own figures \
                 would tell, or commands that failed with these answers (`esxcli storage core device stats get`).",
                refuses(&device.name)
            )
        });
        scsi.filter_map(doubt).chain(refusing).chain(shared).chain(lost).chain(unused).collect()
    }
}

/// Why a line for a datastore sets nothing on a recorded host.
pub const STORE_UNKNOWN: &str = "no file says which datastore that is (--esxcli with the output of \
                                 `esxcli storage vmfs extent list`)";

/// What the depth of a device above DSNRO is where nothing shows it and one is simulated.
const GUESS: &str = "the depth above it is a guess";

/// The same where both ends of it are.
const RANGES: &str = "the range goes from no more above it to all that a driver gives";

/// What is said of what goes on where no model follows it.
const UNFOLLOWED: &str = ", and no model here follows it";

/// What may go on where commands wait in the host beside free slots.
fn refuses(device: &str) -> String {
    format!(
        "Commands to {device} wait in the host while it has slots free, as where the array answers TASK SET FULL or \
         BUSY to more than it takes"
    )
}
